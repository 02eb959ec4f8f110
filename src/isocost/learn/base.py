"""What the post-processing estimators share: score held-out rows, make a rule, apply it.

Scores are ``predict_proba`` of the positive class, else ``decision_function``.  fairlearn's
reductions and its ThresholdOptimizer have neither; their ``_pmf_predict`` is used instead, the
probability of a positive decision.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import (
    _check_method_params,
    _get_feature_names,
    _num_features,
    _num_samples,
    check_is_fitted,
)

from isocost.checks import check_flag, check_threshold, check_word
from isocost.engines.arrays import apply_arrays, tally_arrays
from isocost.errors import DataError, IsocostWarning, Problem, UsageError
from isocost.grid import Grid
from isocost.learn.calibrator import GroupCalibrator
from isocost.learn.inputs import (
    Groups,
    GroupsFrom,
    check_random,
    coins_of_rows,
    in_order,
    log_of,
    positive_labels,
    read_groups,
    two_classes,
    warn_of_scaled,
    weights_of,
    without_groups,
)
from isocost.measures.audit import Audit, audit
from isocost.measures.feasibility import fitted_groups
from isocost.repairs.maps import METHODS
from isocost.repairs.unseen import Unseen, unseen
from isocost.rules import DEFAULT_SALT, Rule, unknown_groups
from isocost.tallies import Tally
from isocost.typing import Floats, Ints

Fold = tuple[Ints, Ints]
"""The rows to train on, and those to score."""

RESPONSES = ("predict_proba", "decision_function", "_pmf_predict")
"""Where scores come from, in order of preference."""

ROUTED = ("fit", "predict", "predict_proba", "decision_function")
"""The methods we call that scikit-learn routes metadata to."""

ROUNDING = 1e-9
"""How far a sum of probabilities may lie outside [0, 1]."""

Calibration = Literal["sigmoid", "isotonic", "histogram", "beta"]

CALIBRATION_FOLDS = 5
"""Number of parts of a single holdout whose scores are to be recalibrated."""


# The wrapped estimator


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
    routed = routing_is_on()
    if routed and method in ROUTED and get_routing_for_object(estimator).consumes(method, [name]):
        return True
    steps = getattr(estimator, "steps", None)
    if steps and routed:
        return False
    # Without routing a pipeline passes what it gets at prediction to its last step.
    target = steps[-1][1] if steps and method != "fit" else estimator
    function = getattr(target, method, None)
    parameters = inspect.signature(function).parameters if function is not None else {}
    if name in parameters:
        return True
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    from_fairlearn = type(estimator).__module__.startswith("fairlearn.")
    return method == "fit" and name == "sensitive_features" and takes_all and from_fairlearn


def response_of(estimator: Any, recalibrated: bool, needs_calibration: bool) -> str:
    """The method that scores come from; raise if there is none that can be used."""
    name = type(estimator).__name__
    response = next((method for method in RESPONSES if hasattr(estimator, method)), None)

    def unusable(rule: str, has: str, step: str) -> UsageError:
        return UsageError(Problem("estimator", rule, f"{name}, which has {has}", step))

    if response is None:
        raise unusable(
            "must have predict_proba or decision_function",
            "neither",
            "use a classifier that gives scores, or wrap it in "
            "sklearn.calibration.CalibratedClassifierCV",
        )
    if response == "decision_function" and not recalibrated:
        raise unusable(
            "must have predict_proba: decision values are not probabilities",
            "only decision_function",
            'set recalibrate="sigmoid" (or another method), which turns them into probabilities '
            "in each group",
        )
    if response == "_pmf_predict" and needs_calibration and not recalibrated:
        raise unusable(
            "must have predict_proba: the probability of a decision is not a risk score",
            "only the probability of a positive decision",
            'set recalibrate="isotonic" (or another method), or wrap the estimator that '
            f"{name} was made from",
        )
    return response


def positive_of(estimator: Any) -> Any:
    """The positive class of a fitted classifier, also inside a pipeline or a search."""
    inner = estimator
    while not hasattr(inner, "pos_label_"):
        if hasattr(inner, "steps"):
            inner = inner.steps[-1][1]
        elif hasattr(inner, "best_estimator_"):
            inner = inner.best_estimator_
        else:
            return list(estimator.classes_)[-1]
    return inner.pos_label_


def raw_scores(estimator: Any, X: Any, response: str, groups: Groups, positive: Any) -> Floats:
    """One score per row: the positive class's column, or the decision values."""
    params = {}
    if wants(estimator, response, "sensitive_features"):
        params["sensitive_features"] = groups.features
    answer = np.asarray(getattr(estimator, response)(X, **params), dtype=np.float64)
    is_decision = response == "decision_function"
    columns = answer.reshape(len(answer), -1) if is_decision else answer
    if columns.ndim != 2 or columns.shape[1] != (1 if is_decision else 2):
        rule = "must be a binary classifier"
        got = f"{type(estimator).__name__} with scores of shape {columns.shape}"
        step = "train it with two classes"
        raise UsageError(Problem("estimator", rule, got, step))
    classes = list(getattr(estimator, "classes_", [None, positive]))
    if is_decision:
        # Decision values are those of the last class.
        return -columns[:, 0] if classes[0] == positive else columns[:, 0]
    if positive not in classes:
        rule = "must have the classes that the estimator was trained with"
        got = f"{positive!r}, and the estimator knows {', '.join(map(repr, classes))}"
        step = "pass labels coded as they were in training"
        raise DataError(Problem("y", rule, got, step))
    scores = columns[:, classes.index(positive)]
    near = (scores > -ROUNDING) & (scores < 1.0 + ROUNDING)
    return np.where(near, np.clip(scores, 0.0, 1.0), scores)


# Held-out scores


@dataclass(frozen=True)
class _HeldOutScores:
    """Scores of rows by a model that was trained without them; ``fold`` says which model."""

    rows: Ints
    fold: Ints
    scores: Floats


def folds_of(
    X: Any, y: Ints, groups: Groups, cv: Any, split_params: Mapping[str, Any]
) -> list[Fold]:
    """The training and test rows of each fold, checked.

    A whole number is the number of folds, stratified by group and label.
    """
    if isinstance(cv, str):
        rule = 'must be a whole number, "prefit", or a splitter of scikit-learn'
        raise UsageError(Problem("cv", rule, repr(cv), "use cv=5"))
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        folds = _stratified(y, groups, int(cv))
    else:
        folds = list(check_cv(cv, y, classifier=True).split(X, y, **split_params))
    for fold, (train, _) in enumerate(folds):
        _check_training(fold, len(folds), y, groups, train)
    return folds


def _stratified(y: Ints, groups: Groups, count: int) -> list[Fold]:
    cell = groups.codes * 2 + y
    largest = int(np.bincount(cell).max())
    if not 2 <= count <= largest:
        rule = "must be at least 2, and at most the number of rows of a group and label"
        got = f"{count}, and the largest group has {largest} rows of its commoner label"
        step = 'use fewer folds, or cv="prefit" with an estimator fitted on other data'
        raise UsageError(Problem("cv", rule, got, step))
    with warnings.catch_warnings():
        # Small groups are checked where it matters: in the training parts.
        warnings.filterwarnings("ignore", message="The least populated class")
        return list(StratifiedKFold(count).split(np.zeros(len(y)), cell))


def _check_training(fold: int, count: int, y: Ints, groups: Groups, train: Any) -> None:
    """Refuse a fold whose model would never see a group, or one label of it.

    Groups of one label are not compared, so a model need not have seen them.
    """
    cells, size = groups.codes * 2 + y, 2 * len(groups.names)
    everybody, trained = (
        np.bincount(rows, minlength=size).reshape(-1, 2) for rows in (cells, cells[train])
    )
    for name, whole, (negatives, positives) in zip(
        groups.names, everybody.tolist(), trained.tolist(), strict=True
    ):
        if not all(whole) or (negatives and positives):
            continue
        lacks = "rows" if not negatives + positives else "negatives" if positives else "positives"
        rule = "the training part of every fold must have positives and negatives of every group"
        got = f"no {lacks} of group {name!r} in the training part of fold {fold + 1} of {count}"
        step = (
            "merge the group with another or leave it out; use cv=5, whose folds are "
            'stratified by group and label; or cv="prefit" with an estimator fitted on other '
            "data"
        )
        raise DataError(Problem("cv", rule, got, step))


def _held_out_scores(
    folds: list[Fold], score: Callable[[Ints, Ints], Floats], n: int
) -> _HeldOutScores:
    """Score the test rows of each fold with a model of its training rows.

    Unlike for cross_val_predict, rows may be left out, as by a single holdout.
    """
    tested = np.concatenate([np.asarray(test) for _, test in folds])
    if len(tested) == 0 or np.bincount(tested, minlength=n).max() > 1:
        rule = "must test each row at most once"
        got = "a splitter that tests rows several times, or none"
        step = "use cv=5, a KFold, or a ShuffleSplit with n_splits=1 for a single holdout"
        raise UsageError(Problem("cv", rule, got, step))
    scores = np.concatenate([score(train, test) for train, test in folds])
    fold = np.repeat(np.arange(len(folds)), [len(test) for _, test in folds])
    order = np.argsort(tested)
    return _HeldOutScores(tested[order], fold[order], scores[order])


@dataclass(eq=False, repr=False, kw_only=True)
class PostProcessor(ClassifierMixin, MetaEstimatorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier whose scores are repaired by a rule; the base of all that do this.

    A subclass adds its own parameters as fields, and says which edges its tally needs, how the rule
    is made and whether scores must be calibrated.
    """

    # The repair needs the groups, so they are requested wherever metadata are routed.
    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__predict = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__predict_log_proba = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__score = {"sensitive_features": True}  # noqa: RUF012

    _needs_calibration = False

    estimator: Any = field(default=None, kw_only=False)
    threshold: float = 0.5
    recalibrate: Calibration | None = None
    cv: Any = 5
    groups_from: GroupsFrom = None
    train_on_groups: bool = False
    unknown: Literal["error", "keep"] = "error"
    salt: str = DEFAULT_SALT
    random_state: Any = None
    confidence: float | None = None
    pos_label: Any = None

    # What a subclass decides

    def _edges(self) -> tuple[float, ...]:
        return (check_threshold(self.threshold),)

    @abstractmethod
    def _make_rule(self, tally: Tally) -> tuple[Rule, Any]:
        """The rule, and whether the request is feasible."""

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
            Two classes of any kind; ``pos_label`` says which is positive.
        sensitive_features : array, series, frame, dict of columns, str or list of str
            The groups: one column or several, or the names of columns of X.  Not needed if
            ``groups_from`` is set.
        sample_weight : array, optional
            Always used for the rule, and for the estimator if it takes weights.  Rows of weight 0
            do not count for the rule.
        **fit_params
            For the estimator; with metadata routing also ``groups`` and such for a splitter.
        """
        self._check_words()
        X, y = indexable(X, y)
        weight = None if sample_weight is None else weights_of(sample_weight, _num_samples(X))
        self.classes_, codes = two_classes(y, weight=weight)
        self.pos_label_, labels = positive_labels(self.classes_, codes, self.pos_label)
        groups = read_groups(X, sensitive_features, self.groups_from)
        warn_of_scaled(groups)
        _check_cells(labels, groups, weight)
        params, split_params = self._routed(sensitive_features, weight, fit_params, groups)
        base, features = self._estimator(), self._features(X)
        self.response_ = response_of(base, self.recalibrate is not None, self._needs_calibration)
        if self._is_prefit():
            held_out = self._score_prefit(base, features, groups)
        else:
            held_out = self._cross_fit(base, features, y, labels, groups, params, split_params)
        self._fit_rule(held_out, labels, groups, weight)
        if hasattr(self.estimator_, "n_features_in_"):
            self.n_features_in_ = _num_features(X)
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = _get_feature_names(X)
        return self

    def _features(self, X: Any) -> Any:
        """What the wrapped estimator sees of the rows."""
        return X if self.train_on_groups else without_groups(X, self.groups_from)

    def _check_words(self) -> None:
        check_threshold(self.threshold)
        check_word("unknown", self.unknown, ("error", "keep"))
        check_random(self.random_state)
        check_flag("train_on_groups", self.train_on_groups)
        if self.recalibrate is not None:
            check_word("recalibrate", self.recalibrate, METHODS)

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
        """What the estimator's fit and the splitter get.

        With routing on, what they requested; else the estimator gets all ``fit_params``, and the
        weights if it takes them.
        """
        estimator, params, split_params = self._estimator(), dict(fit_params), {}
        if routing_is_on():
            own = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
            passed = {k: v for k, v in {**own, **fit_params}.items() if v is not None}
            routed = process_routing(self, "fit", **passed)
            params, split_params = dict(routed.estimator.fit), routed.splitter.split
        if self._is_prefit():
            return {}, {}
        if not routing_is_on() and sample_weight is not None:
            if wants(estimator, "fit", "sample_weight"):
                params["sample_weight"] = sample_weight
            elif not isinstance(estimator, FrozenEstimator):
                warnings.warn(
                    f"{type(estimator).__name__} takes no sample_weight: it is trained without; "
                    "the repair uses the weights.",
                    IsocostWarning,
                    stacklevel=3,
                )
        if wants(estimator, "fit", "sensitive_features"):
            params["sensitive_features"] = groups.features
        return params, split_params

    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "prefit"

    def _score_prefit(self, base: Any, X: Any, groups: Groups) -> _HeldOutScores:
        try:
            check_is_fitted(base)
        except NotFittedError as error:
            rule, got = 'must be fitted when cv="prefit"', f"{type(base).__name__} that is not"
            step = (
                "fit it on other data first, and put it into sklearn.frozen.FrozenEstimator "
                "where this estimator is cloned, as in searches; or use cv=5"
            )
            raise UsageError(Problem("estimator", rule, got, step)) from error
        self.estimator_ = base
        seen, kept_out = getattr(base, "n_features_in_", 0), self.groups_from is not None
        if kept_out and not self.train_on_groups and seen > _num_features(X):
            rule = "must be True for an estimator that was fitted on the column of the groups"
            got = f"an estimator fitted on {seen} columns, and X has {_num_features(X)} without it"
            step = "pass train_on_groups=True, or an estimator that was fitted without the column"
            raise UsageError(Problem("train_on_groups", rule, got, step))
        scores = raw_scores(base, X, self.response_, groups, self.pos_label_)
        n = len(scores)
        return _HeldOutScores(np.arange(n), np.zeros(n, dtype=np.intp), scores)

    def _cross_fit(
        self,
        base: Any,
        X: Any,
        y: Any,
        labels: Ints,
        groups: Groups,
        params: dict[str, Any],
        split_params: dict[str, Any],
    ) -> _HeldOutScores:
        """Fit the final estimator, and score rows with models that had not seen them."""

        def fitted(rows: Ints) -> Any:
            # Some estimators do not return themselves, such as fairlearn's GridSearch before 0.13.
            model = clone(base)
            part = _check_method_params(X, params, rows)
            model.fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **part)
            return model

        def score(train: Ints, test: Ints) -> Floats:
            unseen, mine = _safe_indexing(X, test), groups.take(test)
            return raw_scores(fitted(train), unseen, self.response_, mine, self.pos_label_)

        folds = folds_of(X, labels, groups, self.cv, split_params)
        held_out = _held_out_scores(folds, score, len(labels))
        self.estimator_ = clone(base)
        self.estimator_.fit(X, y, **params)
        return held_out

    def _fit_rule(
        self, held_out: _HeldOutScores, labels: Ints, groups: Groups, weight: Floats | None
    ) -> None:
        rows, fold, scores = held_out.rows, held_out.fold, held_out.scores
        if weight is not None:
            counted = weight[rows] > 0
            rows, fold, scores = rows[counted], fold[counted], scores[counted]
        y, mine = labels[rows], groups.take(rows)
        w = None if weight is None else weight[rows]
        self.calibrator_ = None
        if self.recalibrate is not None:
            raw, scores = scores, self._cross_calibrated(scores, fold, y, mine, w)
            self.calibrator_ = self._calibrator(report_folds=5).fit(
                raw, y, sensitive_features=mine.features, sample_weight=w
            )
        self.tally_ = tally_arrays(scores, y, [mine.encoded], w, grid=Grid(edges=self._edges()))
        self.rule_, self.feasibility_ = self._make_rule(self.tally_)
        self.audit_ = self._audit(self.tally_)
        self.repaired_audit_ = self._audit(self.rule_.expected(self.tally_))
        self._unseen: Unseen | None = None

    @property
    def unseen_(self) -> Unseen:
        """What the rule does to people not seen; see :func:`isocost.unseen`.

        Computed when it is first asked for, because the rule is made again 200 times.
        """
        rule, tally, asked = self.rule_, self.tally_, self.audit_
        if self._unseen is None:
            self._unseen = unseen(tally, rule, cost=asked.cost, threshold=asked.threshold)
        return self._unseen

    def _calibrator(self, report_folds: int | None = None) -> GroupCalibrator:
        assert self.recalibrate is not None
        unknown = "pooled" if self.unknown == "keep" else "error"
        return GroupCalibrator(self.recalibrate, unknown=unknown, cv=report_folds)

    def _cross_calibrated(
        self, scores: Floats, fold: Ints, y: Ints, groups: Groups, weight: Floats | None
    ) -> Floats:
        """Calibrated scores, each by a calibrator that was fitted without the row's fold.

        So the rule is not made from scores that were calibrated on their own labels.
        """
        if fold.max() == 0:
            fold = np.empty(len(y), dtype=np.intp)
            for part, (_, test) in enumerate(_stratified(y, groups, CALIBRATION_FOLDS)):
                fold[test] = part
        out, count = np.empty(len(y)), int(fold.max()) + 1
        for part in range(count):
            mine = fold == part
            rest, inside = groups.take(~mine), groups.take(mine)
            _check_training(part, count, y, groups, ~mine)
            # A group of one label may have no row among the others.
            calibrator = self._calibrator().set_params(unknown="pooled")
            calibrator.fit(
                scores[~mine],
                y[~mine],
                sensitive_features=rest.features,
                sample_weight=None if weight is None else weight[~mine],
            )
            out[mine] = calibrator.predict(scores[mine], sensitive_features=inside.features)
        return out

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
        repaired = self._repaired(X, sensitive_features, ids)
        return in_order(repaired, self.classes_, self.pos_label_)

    def predict_log_proba(
        self, X: Any, *, sensitive_features: Any = None, ids: Any = None
    ) -> Floats:
        """The logarithm of :meth:`predict_proba`."""
        return log_of(self.predict_proba(X, sensitive_features=sensitive_features, ids=ids))

    def _repaired(self, X: Any, sensitive_features: Any, ids: Any) -> Floats:
        """The repaired score of each row: the probability of the positive class."""
        X, scores, groups = self._scores(X, sensitive_features)

        def coins() -> npt.NDArray[np.uint64]:
            return coins_of_rows(X, ids, self.rule_.salt, self.random_state)

        encoded = [groups.encoded]
        return apply_arrays(self.rule_, scores, encoded, coins, unknown=self.unknown)[1]

    def expected_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """The probability of each class on average over the coin: for ranking.

        sum over outcomes of probability x value.  Nobody's place depends on a coin; but the
        average of a repaired and a kept score is not calibrated as each of the two is.
        """
        _, scores, groups = self._scores(X, sensitive_features)
        mean = scores.copy()
        for code, group in enumerate(groups.names):
            mine = np.flatnonzero(groups.codes == code)
            for segment in self.rule_.segments(group):
                inside = mine[segment.holds(scores[mine])]
                mean[inside] = segment.mean(scores[inside])
        return in_order(np.clip(mean, 0.0, 1.0), self.classes_, self.pos_label_)

    def predict(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Any:
        """The class of each row: the positive one from the threshold on."""
        return self._decisions(self._repaired(X, sensitive_features, ids))

    def _decisions(self, scores: Floats) -> npt.NDArray[Any]:
        """The classes of repaired scores."""
        index = int(self.classes_[1] == self.pos_label_)
        classes: npt.NDArray[Any] = self.classes_
        return classes[np.where(scores >= self.threshold, index, 1 - index)]

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

    def _scores(self, X: Any, sensitive_features: Any) -> tuple[Any, Floats, Groups]:
        """The rows, their scores before the repair (recalibrated if so set), and their groups."""
        check_is_fitted(self)
        X = indexable(X)[0]
        groups = read_groups(X, sensitive_features, self.groups_from)
        unknown = [name for name in groups.names if name not in self.rule_.groups]
        if unknown and self.unknown == "error":
            raise unknown_groups(unknown, self.rule_.groups)
        features = self._features(X)
        scores = raw_scores(self.estimator_, features, self.response_, groups, self.pos_label_)
        if self.calibrator_ is not None:
            scores = self.calibrator_.predict(scores, sensitive_features=groups.features)
        return X, scores, groups

    # For scikit-learn

    def get_metadata_routing(self) -> Any:
        """What is passed on to the estimator and the splitter, for scikit-learn's routing."""
        to_estimator = MethodMapping().add(caller="fit", callee="fit")
        for caller in ("predict", "predict_proba", "predict_log_proba", "score"):
            to_estimator = to_estimator.add(caller=caller, callee="predict_proba")
        to_splitter = MethodMapping().add(caller="fit", callee="split")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self._estimator(), method_mapping=to_estimator)
            .add(splitter=self.cv, method_mapping=to_splitter)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inside = get_tags(self._estimator()).input_tags
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = inside.sparse
        tags.input_tags.allow_nan = inside.allow_nan
        return tags


def _check_cells(labels: Ints, groups: Groups, weight: Floats | None) -> None:
    """Refuse fewer than two groups with both labels, before anything is trained."""
    counted = np.ones(len(labels), dtype=bool) if weight is None else weight > 0
    scores = np.full(int(counted.sum()), 0.5)
    tally = tally_arrays(scores, labels[counted], [groups.take(counted).encoded], grid=Grid(1))
    fitted_groups(tally)
