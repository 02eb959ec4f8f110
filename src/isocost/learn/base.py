"""The estimator inside: what it can be asked for, and how it is asked.

Scores are ``predict_proba`` of the positive class, else ``decision_function``.  fairlearn's
reductions and its ThresholdOptimizer have neither; their ``_pmf_predict`` is taken, the chance of
a positive decision.

What the post-processing estimators share: fit on scores not seen, then repair by a rule.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from isocost.checks import check_threshold, check_word
from isocost.engines.arrays import apply_arrays, tally_arrays
from isocost.errors import DataError, IsocostWarning, Problem, UsageError
from isocost.grid import Grid
from isocost.learn.folds import (
    HeldOut,
    averaged,
    cross_calibrated,
    folds_of,
    held_out_scores,
    two_columns,
)
from isocost.learn.row_coin import coins_of_rows
from isocost.learn.sensitive import (
    Groups,
    as_fitted,
    check_cells,
    need_labels,
    read_groups,
    two_classes,
    weights_of,
)
from isocost.measures.audit import Audit, audit
from isocost.rules import Rule, unknown_groups
from isocost.tallies import Tally

__all__ = [
    "PostProcessor",
    "inner_params",
    "raw_scores",
    "response_of",
    "routing_is_on",
    "rows_of_params",
    "wants",
]

Floats = npt.NDArray[np.float64]

RESPONSES = ("predict_proba", "decision_function", "_pmf_predict")
"""Where scores come from, in order of preference."""

ROUTED = ("fit", "predict", "predict_proba", "decision_function")
"""The methods among ours that scikit-learn routes metadata to."""

ROUNDING = 1e-9
"""How far a sum of probabilities may lie outside [0, 1]."""


def routing_is_on() -> bool:
    """Whether scikit-learn's metadata routing is enabled."""
    return bool(sklearn.get_config()["enable_metadata_routing"])


def wants(estimator: Any, method: str, name: str) -> bool:
    """Whether a method of an estimator takes this metadata.

    It does if its signature names it; if routing is on and it was requested, also deep inside;
    and ``fit`` of fairlearn's estimators takes sensitive features by any name.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> wants(LogisticRegression(), "fit", "sample_weight")
    True
    """
    known = routing_is_on() and method in ROUTED
    if known and get_routing_for_object(estimator).consumes(method, [name]):
        return True
    steps = getattr(estimator, "steps", None)
    if steps and routing_is_on():
        return False
    # Without routing a pipeline hands what it gets at prediction to its last step.
    target = steps[-1][1] if steps and method != "fit" else estimator
    function = getattr(target, method, None)
    parameters = inspect.signature(function).parameters if function is not None else {}
    if name in parameters:
        return True
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    from_fairlearn = type(estimator).__module__.startswith("fairlearn.")
    return method == "fit" and name == "sensitive_features" and takes_all and from_fairlearn


def inner_params(
    estimator: Any,
    fit_params: Mapping[str, Any],
    sample_weight: Any,
    groups: Groups,
    routed: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """What the estimator's fit gets besides X and y.

    With routing on, what it requested; else all ``fit_params``, and the weights if it takes them.
    """
    params = dict(fit_params if routed is None else routed)
    if routed is None and sample_weight is not None:
        if wants(estimator, "fit", "sample_weight"):
            params["sample_weight"] = sample_weight
        elif not isinstance(estimator, FrozenEstimator):
            warnings.warn(
                f"{type(estimator).__name__} takes no sample_weight: it is trained without; the "
                "repair uses the weights.",
                IsocostWarning,
                stacklevel=4,
            )
    if wants(estimator, "fit", "sensitive_features"):
        params["sensitive_features"] = groups.features
    return params


def rows_of_params(params: Mapping[str, Any], rows: Any, total: int) -> dict[str, Any]:
    """The same parameters for some rows: what has one value per row is cut."""

    def cut(value: Any) -> Any:
        sized = hasattr(value, "__len__") and not isinstance(value, str | dict)
        return _safe_indexing(value, rows) if sized and len(value) == total else value

    return {name: cut(value) for name, value in params.items()}


def response_of(estimator: Any, recalibrated: bool, needs_calibration: bool) -> str:
    """The method that scores come from, or why there are none that can be used."""
    name = type(estimator).__name__
    found = next((method for method in RESPONSES if hasattr(estimator, method)), None)
    if found is None:
        raise UsageError(
            Problem(
                "estimator",
                "must have predict_proba or decision_function",
                f"{name}, which has neither",
                "use a classifier that gives scores, or wrap it in "
                "sklearn.calibration.CalibratedClassifierCV",
            )
        )
    if found == "decision_function" and not recalibrated:
        raise UsageError(
            Problem(
                "estimator",
                "must have predict_proba: decision values are not probabilities",
                f"{name}, which has only decision_function",
                'set recalibrate="sigmoid" (or another method), which turns them into '
                "probabilities in each group",
            )
        )
    if found == "_pmf_predict" and needs_calibration and not recalibrated:
        raise UsageError(
            Problem(
                "estimator",
                "must have predict_proba: the chance of a decision is not a risk score",
                f"{name}, which has only the chance of a positive decision",
                'set recalibrate="isotonic" (or another method), or wrap the estimator that '
                f"{name} was made from",
            )
        )
    return found


def raw_scores(estimator: Any, X: Any, response: str, groups: Groups, positive: Any) -> Floats:
    """One score per row: the positive class's column, or the decision values."""
    params = {}
    if wants(estimator, response, "sensitive_features"):
        params["sensitive_features"] = groups.features
    answer = np.asarray(getattr(estimator, response)(X, **params), dtype=np.float64)
    if response == "decision_function":
        return _one_column(answer.reshape(len(answer), -1), estimator, 1)[:, 0]
    answer = _one_column(answer, estimator, 2)
    classes = list(getattr(estimator, "classes_", [None, positive]))
    if positive not in classes:
        raise DataError(
            Problem(
                "y",
                "must have the classes that the estimator was trained with",
                f"{positive!r}, and the estimator knows {', '.join(map(repr, classes))}",
                "pass labels coded as they were in training",
            )
        )
    scores = answer[:, classes.index(positive)]
    near = (scores > -ROUNDING) & (scores < 1.0 + ROUNDING)
    return np.where(near, np.clip(scores, 0.0, 1.0), scores)


def _one_column(answer: Floats, estimator: Any, columns: int) -> Floats:
    if answer.ndim != 2 or answer.shape[1] != columns:
        raise UsageError(
            Problem(
                "estimator",
                "must tell two classes apart",
                f"{type(estimator).__name__} with scores of shape {answer.shape}",
                "train it with two classes, the positive one last in sorted order",
            )
        )
    return answer


Ints = npt.NDArray[np.intp]

CALIBRATORS = ("sigmoid", "isotonic", "histogram", "beta")


class PostProcessor(ClassifierMixin, MetaEstimatorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier whose scores are repaired by a rule; the base of all that do this.

    A subclass says which edges its tally needs, how the rule is made and whether scores must be
    calibrated.
    """

    # The repair cannot do without the groups, so they are requested wherever metadata are routed.
    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__predict = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__score = {"sensitive_features": True}  # noqa: RUF012

    _needs_calibration = False

    # What a subclass decides

    def _edges(self) -> tuple[float, ...]:
        return (check_threshold(self.threshold),)

    @abstractmethod
    def _make_rule(self, tally: Tally) -> tuple[Rule, Any]:
        """The rule, and whether what was asked for can be had."""

    def _audit(self, tally: Tally) -> Audit:
        return audit(tally, threshold=self.threshold, confidence=self.confidence)

    # Fitting

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        **fit_params: Any,
    ) -> Any:
        """Score rows with models that had not seen them, make the rule, train on everything.

        Parameters
        ----------
        X : array, frame or sparse matrix
            Whatever the estimator takes.
        y : array
            Two classes of any kind; the last in sorted order is the positive one.
        sensitive_features : array, series, frame, str or list of str
            The groups: one column or several, or the names of columns of X.  May be left out
            when ``groups_from`` says where they are.
        sample_weight : array, optional
            Always used for the rule, and for the estimator if it takes weights.  Rows of weight 0
            do not count for the rule.
        **fit_params
            For the estimator; with metadata routing also ``groups`` and such for a splitter.
        """
        self._check_words()
        X, y = indexable(X, need_labels(y))
        weight = None if sample_weight is None else weights_of(sample_weight, len(y))
        self.classes_, labels = two_classes(y, weight)
        groups = read_groups(X, sensitive_features, self.groups_from)
        check_cells(labels, groups, weight)
        params, split_params = self._routed(sensitive_features, weight, fit_params, groups)
        base = self._estimator()
        self.response_ = response_of(base, self.recalibrate is not None, self._needs_calibration)
        held = self._hold_out(base, X, y, labels, groups, params, split_params)
        self._fit_rule(held, labels, groups, weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _check_words(self) -> None:
        check_threshold(self.threshold)
        check_word("unknown", self.unknown, ("error", "keep"))
        if self.recalibrate is not None:
            check_word("recalibrate", self.recalibrate, CALIBRATORS)

    def _estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        default = LogisticRegression()
        return default.set_fit_request(sample_weight=True) if routing_is_on() else default

    def _routed(
        self,
        sensitive_features: Any,
        sample_weight: Any,
        fit_params: dict[str, Any],
        groups: Groups,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the estimator's fit and the splitter get."""
        routed, split = None, {}
        if routing_is_on():
            own = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
            given = {k: v for k, v in {**own, **fit_params}.items() if v is not None}
            found = process_routing(self, "fit", **given)
            routed, split = found.estimator.fit, found.splitter.split
        if self._is_prefit():
            return {}, {}
        inside = self._estimator()
        return inner_params(inside, fit_params, sample_weight, groups, routed), split

    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "prefit"

    def _hold_out(
        self,
        base: Any,
        X: Any,
        y: Any,
        labels: Ints,
        groups: Groups,
        params: dict[str, Any],
        split_params: dict[str, Any],
    ) -> HeldOut:
        """Fit the final estimator, and score rows by models that had not seen them."""
        n, positive = len(labels), self.classes_[1]
        if self._is_prefit():
            self.estimator_ = as_fitted(base)
            scores = raw_scores(base, X, self.response_, groups, positive)
            return HeldOut(np.arange(n), np.zeros(n, dtype=np.intp), scores)

        def fitted(X: Any, y: Any, params: dict[str, Any]) -> Any:
            # Some estimators do not return themselves, such as fairlearn's GridSearch before 0.13.
            model = clone(base)
            model.fit(X, y, **params)
            return model

        def score(train: Ints, test: Ints) -> Floats:
            part = rows_of_params(params, train, n)
            model = fitted(_safe_indexing(X, train), _safe_indexing(y, train), part)
            unseen, mine = _safe_indexing(X, test), groups.take(test)
            return raw_scores(model, unseen, self.response_, mine, positive)

        folds = folds_of(X, labels, groups, self.cv, split_params)
        held = held_out_scores(folds, score, n)
        self.estimator_ = fitted(X, y, params)
        return held

    def _fit_rule(self, held: HeldOut, labels: Ints, groups: Groups, weight: Floats | None) -> None:
        if weight is not None:
            counted = weight[held.rows] > 0
            held = HeldOut(held.rows[counted], held.fold[counted], held.scores[counted])
        y, mine = labels[held.rows], groups.take(held.rows)
        w = None if weight is None else weight[held.rows]
        scores, self.calibrator_ = held.scores, None
        if self.recalibrate is not None:
            scores = cross_calibrated(self._calibrator, held, y, mine, w)
            self.calibrator_ = self._calibrator(report_folds=5).fit(
                held.scores, y, sensitive_features=mine.features, sample_weight=w
            )
        self.tally_ = tally_arrays(scores, y, [mine.encoded], w, grid=Grid(edges=self._edges()))
        self.rule_, self.feasibility_ = self._make_rule(self.tally_)
        self.audit_ = self._audit(self.tally_)
        self.repaired_audit_ = self._audit(self.rule_.expected(self.tally_))

    def _calibrator(self, report_folds: int | None = None) -> Any:
        from isocost.learn.recalibrate import GroupCalibrator

        unknown = "pooled" if self.unknown == "keep" else "error"
        return GroupCalibrator(self.recalibrate, unknown=unknown, cv=report_folds)

    # Predicting

    def predict_proba(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Floats:
        """The repaired probability of each class.

        Parameters
        ----------
        X : array, frame or sparse matrix
            The rows.
        sensitive_features : array, series, frame, str or list of str
            Their groups, as in :meth:`fit`.
        ids : array of whole numbers or texts, optional
            An id decides a person's coin.  Without ids the values of the row do, so that the same
            row gets the same answer alone or in a batch and equal rows get equal answers, unless
            ``random_state`` is set.
        """
        check_is_fitted(self)
        X = indexable(X)[0]
        scores, groups = self._scores(X, sensitive_features)

        def thrown() -> npt.NDArray[np.uint64]:
            return coins_of_rows(X, ids, self.rule_.salt, self.random_state)

        repaired = apply_arrays(self.rule_, scores, [groups.encoded], thrown, unknown=self.unknown)
        return two_columns(repaired)

    def expected_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """The probability of each class on average over the coin: for ranking.

        sum over outcomes of probability x value.  Nobody's place depends on a coin; but the
        average of a repaired and a kept score is not calibrated as each of the two is.
        """
        check_is_fitted(self)
        X = indexable(X)[0]
        scores, groups = self._scores(X, sensitive_features)
        return two_columns(averaged(self.rule_, scores, groups))

    def predict(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Any:
        """The class of each row: the positive one from the threshold on."""
        scores = self.predict_proba(X, sensitive_features=sensitive_features, ids=ids)[:, 1]
        return self.classes_[(scores >= self.threshold).astype(np.intp)]

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        sensitive_features: Any = None,
        ids: Any = None,
    ) -> float:
        """The accuracy of :meth:`predict`."""
        predicted = self.predict(X, sensitive_features=sensitive_features, ids=ids)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _scores(self, X: Any, sensitive_features: Any) -> tuple[Floats, Groups]:
        """The scores before the repair, recalibrated where that was asked for."""
        groups = read_groups(X, sensitive_features, self.groups_from)
        strangers = [name for name in groups.names if name not in self.rule_.groups]
        if strangers and self.unknown == "error":
            raise unknown_groups(strangers, self.rule_.groups)
        scores = raw_scores(self.estimator_, X, self.response_, groups, self.classes_[1])
        if self.calibrator_ is not None:
            scores = self.calibrator_.predict(scores, sensitive_features=groups.features)
        return scores, groups

    # scikit-learn's questions

    def get_metadata_routing(self) -> Any:
        """What is passed on to the estimator and the splitter, for scikit-learn's routing."""
        asked = MethodMapping().add(caller="fit", callee="fit")
        for caller in ("predict", "predict_proba", "score"):
            asked = asked.add(caller=caller, callee="predict_proba")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self._estimator(), method_mapping=asked)
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inside = get_tags(self._estimator()).input_tags
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = inside.sparse
        tags.input_tags.allow_nan = inside.allow_nan
        return tags
