"""The repairs of isocost as meta-estimators: classifiers that repair the scores of another.

All of them fit in the same way.

- With ``cv=5`` (or a splitter) the rows are scored by models that were trained without them, and
  the rule is made from these out-of-fold scores.  It is never made from scores of the training
  rows, which look better than they are, and not equally so in every group.  Then the estimator is
  trained again on all rows; the rule is applied to its scores.  A splitter with a single
  test part, ShuffleSplit(1), makes a holdout.
- With ``cv="prefit"`` the estimator is used as it is, and it must not have been trained on any of
  the rows passed to fit.  Where estimators are cloned, as in searches, put the fitted one into
  sklearn.frozen.FrozenEstimator.
- With ``recalibrate`` the held-out scores are first calibrated in each group.  The scores that the
  rule is made from are calibrated by a calibrator that was fitted on the other folds;
  ``calibrator_`` is fitted on all held-out scores.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import (
    _check_method_params,
    _get_feature_names,
    _num_features,
    _num_samples,
    check_is_fitted,
)

from isocost.checks import check_flag, check_single, check_word
from isocost.costs import CostLike
from isocost.engines.arrays import apply_arrays, tally_arrays
from isocost.engines.columns import Encoded
from isocost.errors import DataError, IsocostWarning, Problem, UsageError
from isocost.grid import Grid
from isocost.judging.audit import audit
from isocost.judging.offers import Offer
from isocost.judging.unseen import Unseen, unseen
from isocost.learn.calibrator import GroupCalibrator
from isocost.learn.inputs import (
    GroupsFrom,
    check_random,
    coins_of_rows,
    features_of,
    in_order,
    log_of,
    raw_scores,
    read_groups,
    read_labels,
    response_of,
    routing_is_on,
    taken,
    wants,
    warn_of_scaled,
    weights_of,
    without_groups,
)
from isocost.measures.feasibility import feasibility, fitted_groups
from isocost.question import DEFAULT, Question
from isocost.repairs.coarsen import Minimize
from isocost.repairs.hand_over import Deferral
from isocost.repairs.lp import Levels, check_request
from isocost.repairs.recalibrate import METHODS
from isocost.repairs.reconcile import Reconcilability
from isocost.repairs.table import REPAIRS, Repair
from isocost.rules import DEFAULT_SALT, unknown_groups
from isocost.typing import Bools, Floats, Ints

Fold = tuple[Ints, Ints]
"""The rows to train on, and the rows to score."""

Infeasible = Literal["raise", "closest"]


def folds_of(
    X: Any, y: Ints, groups: Encoded, cv: Any, split_params: Mapping[str, Any]
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


def _stratified(y: Ints, groups: Encoded, count: int) -> list[Fold]:
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


def _check_training(fold: int, count: int, y: Ints, groups: Encoded, train: Any) -> None:
    """Refuse a fold whose model would never see a group, or one label of it.

    Groups of one label are not compared, so a model need not have seen them.
    """
    cells, size = groups.codes * 2 + y, 2 * len(groups.values)
    everybody, trained = (
        np.bincount(rows, minlength=size).reshape(-1, 2) for rows in (cells, cells[train])
    )
    lost = np.flatnonzero(everybody.all(axis=1) & ~trained.all(axis=1))
    if len(lost):
        negatives, positives = trained[lost[0]].tolist()
        lacks = "rows" if not negatives + positives else "negatives" if positives else "positives"
        rule = "the training part of every fold must have positives and negatives of every group"
        got = f"no {lacks} of group {groups.values[lost[0]]!r} in the training part of "
        step = (
            "merge the group with another or leave it out; use cv=5, whose folds are "
            'stratified by group and label; or cv="prefit" with an estimator fitted on other '
            "data"
        )
        raise DataError(Problem("cv", rule, f"{got}fold {fold + 1} of {count}", step))


def _cross_calibrated(
    method: str, scores: Floats, fold: Ints, y: Ints, groups: Encoded, weight: Floats
) -> Floats:
    """Calibrated scores, each by a calibrator that was fitted without the row's fold.

    So the rule is not made from scores that were calibrated on their own labels.
    """
    if fold.max() == 0:
        for part, (_, test) in enumerate(_stratified(y, groups, 5)):
            fold[test] = part
    out, count = np.empty(len(y)), int(fold.max()) + 1
    for part in range(count):
        mine = fold == part
        _check_training(part, count, y, groups, ~mine)
        rest, own = features_of(taken(groups, ~mine)), features_of(taken(groups, mine))
        # A group of one label may have no row among the others.
        calibrator = GroupCalibrator(method, unknown="pooled", cv=None)
        calibrator.fit(
            scores[~mine], y[~mine], sensitive_features=rest, sample_weight=weight[~mine]
        )
        out[mine] = calibrator.predict(scores[mine], sensitive_features=own)
    return out


@dataclass(eq=False, repr=False, kw_only=True)
class PostProcessor(ClassifierMixin, MetaEstimatorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier whose scores are repaired by a rule; the base of all that do this.

    A subclass adds its own parameters as fields, and names its repair.  The fields of a question
    that the repair asks for, and its options, are parameters of the same names.
    """

    # The repair needs the groups, so they are requested wherever metadata are routed.
    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__predict = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__predict_log_proba = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__score = {"sensitive_features": True}  # noqa: RUF012

    _needs_calibration = False
    _verdict: ClassVar[type[Any] | None] = None

    estimator: Any = field(default=None, kw_only=False)
    threshold: float = DEFAULT.threshold
    recalibrate: Literal["sigmoid", "isotonic", "histogram", "beta"] | None = None
    cv: Any = 5
    groups_from: GroupsFrom = None
    train_on_groups: bool = False
    unknown: Literal["error", "keep"] = "error"
    salt: str = DEFAULT_SALT
    random_state: Any = None
    confidence: float | None = None
    pos_label: Any = None

    @property
    @abstractmethod
    def _repair(self) -> Repair:
        """The row of the table of repairs."""

    def _edges(self, question: Question) -> tuple[float, ...]:
        return (question.threshold,)

    def _read_classes(self) -> None:
        """Set what depends on the classes."""

    def _options(self) -> dict[str, Any]:
        """The parameters that are options of the repair."""
        known = (option.name for option in self._repair.options)
        return {name: getattr(self, name) for name in known if hasattr(self, name)}

    def _met(self, question: Question) -> Any:
        """The verdict on rates that can be made equal; an error if the request is invalid."""
        if self._verdict is None:
            return None
        asked = {name: value for name, value in self._options().items() if name != "infeasible"}
        return self._verdict(check_request(question, **asked))

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
        question = self._check()
        X, y = indexable(X, y)
        weight = weights_of(sample_weight, _num_samples(X))
        labels, counted = read_labels(self, y, weight), weight > 0
        self._read_classes()
        groups = read_groups(X, sensitive_features, self.groups_from)
        warn_of_scaled(groups)
        # Fewer than two groups with both labels are refused before anything is trained.
        halves, own = np.full(int(counted.sum()), 0.5), taken(groups, counted)
        fitted_groups(tally_arrays(halves, labels[counted], [own], grid=Grid(1)))
        given = {"sensitive_features": sensitive_features}
        given |= {"sample_weight": None if sample_weight is None else weight, **fit_params}
        scores, fold = self._held_out(X, y, labels, groups, given)
        held_out = (fold >= 0) & counted
        scores, labels, weight = scores[held_out], labels[held_out], weight[held_out]
        groups, self.calibrator_ = taken(groups, held_out), None
        if self.recalibrate is not None:
            raw, method, fold = scores, self.recalibrate, fold[held_out]
            scores = _cross_calibrated(method, raw, fold, labels, groups, weight)
            unknown = "pooled" if self.unknown == "keep" else "error"
            self.calibrator_ = GroupCalibrator(method, unknown=unknown).fit(
                raw, labels, sensitive_features=features_of(groups), sample_weight=weight
            )
        grid = Grid(edges=self._edges(question))
        self.tally_ = tally_arrays(scores, labels, [groups], weight, grid=grid)
        repair, options = self._repair, self._options()
        self._offer = Offer(repair.name, self.tally_, question, {**options, "salt": self.salt})
        self._unseen: Unseen | None = None
        self.rule_ = self._offer.made(warn=True)
        self.feasibility_ = self._met(question) or feasibility(self.tally_, question=question)
        if repair.goal == "rates" and options.get("infeasible") == "closest":
            error = self._offer.but(infeasible="raise").error
            self.feasibility_ = getattr(error, "feasibility", self.feasibility_)
        self.audit_ = audit(self.tally_, question=question)
        self.repaired_audit_ = audit(self.rule_.expected(self.tally_), question=question)
        if hasattr(self.estimator_, "n_features_in_"):
            self.n_features_in_ = _num_features(X)
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = _get_feature_names(X)
        return self

    def _features(self, X: Any) -> Any:
        """The columns that the wrapped estimator sees."""
        return X if self.train_on_groups else without_groups(X, self.groups_from)

    def _check(self) -> Question:
        """The question that the parameters ask; an error if one of them is invalid."""
        check_word("unknown", self.unknown, ("error", "keep"))
        check_random(self.random_state)
        check_flag("train_on_groups", self.train_on_groups)
        if self.recalibrate is not None:
            check_word("recalibrate", self.recalibrate, METHODS)
        for option in (option for repair in REPAIRS.values() for option in repair.options):
            if option.choices and not option.many and hasattr(self, option.name):
                check_word(option.name, getattr(self, option.name), option.choices)
        names = ("threshold", "confidence", *self._repair.asks)
        question = Question(**{name: getattr(self, name) for name in names})
        self._met(question)
        return question

    def _estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        default = LogisticRegression()
        return default.set_fit_request(sample_weight=True) if routing_is_on() else default

    def _held_out(
        self, X: Any, y: Any, labels: Ints, groups: Encoded, given: dict[str, Any]
    ) -> tuple[Floats, Ints]:
        """Fit the final estimator; return scores by models that had not seen the row, and folds.

        ``given`` is what fit was given besides.  With routing on, the estimator and the splitter
        get what they request; else the estimator gets all of it, and the weights if it takes them.
        Unlike for cross_val_predict, rows may be left out, as by a holdout: their fold is -1.
        """
        base, X = self._estimator(), self._features(X)
        is_prefit = isinstance(self.cv, str) and self.cv == "prefit"
        given = {name: value for name, value in given.items() if value is not None}
        if routing_is_on():
            routed = process_routing(self, "fit", **given)
            params, split_params = dict(routed.estimator.fit), routed.splitter.split
        else:
            params, split_params = given, {}
            params.pop("sensitive_features", None)
            if "sample_weight" in params and not wants(base, "fit", "sample_weight"):
                del params["sample_weight"]
                if not is_prefit and not isinstance(base, FrozenEstimator):
                    warnings.warn(
                        f"{type(base).__name__} takes no sample_weight: it is trained without; "
                        "the repair uses the weights.",
                        IsocostWarning,
                        stacklevel=3,
                    )
        if wants(base, "fit", "sensitive_features"):
            params["sensitive_features"] = features_of(groups)
        recalibrated = self.recalibrate is not None
        self.response_ = response_of(base, recalibrated, self._needs_calibration)
        if is_prefit:
            self.estimator_ = base
            try:
                check_is_fitted(base)
            except NotFittedError as error:
                rule, got = 'must be fitted when cv="prefit"', f"{type(base).__name__} that is not"
                step = (
                    "fit it on other data first, and put it into sklearn.frozen.FrozenEstimator "
                    "where this estimator is cloned, as in searches; or use cv=5"
                )
                raise UsageError(Problem("estimator", rule, got, step)) from error
            count, kept_out = _num_features(X), self.groups_from is not None
            seen = getattr(base, "n_features_in_", 0)
            if kept_out and not self.train_on_groups and seen > count:
                rule = "must be True for an estimator that was fitted on the column of the groups"
                got = f"an estimator fitted on {seen} columns, and X has {count} without it"
                step = "pass train_on_groups=True, or an estimator that was fitted without the "
                raise UsageError(Problem("train_on_groups", rule, got, step + "column"))
            scores = raw_scores(base, X, self.response_, groups, self.pos_label_)
            return scores, np.zeros(len(scores), dtype=np.intp)
        folds = folds_of(X, labels, groups, self.cv, split_params)
        tested = np.concatenate([np.asarray(test) for _, test in folds])
        if len(tested) == 0 or np.bincount(tested).max() > 1:
            rule = "must test each row at most once"
            got = "a splitter that tests rows several times, or none"
            step = "use cv=5, a KFold, or a ShuffleSplit with n_splits=1 for a single holdout"
            raise UsageError(Problem("cv", rule, got, step))
        scores, fold_of_row = np.full(len(groups), np.nan), np.full(len(groups), -1)
        for fold, (train, test) in enumerate(folds):
            # Some estimators do not return themselves, such as fairlearn's GridSearch before 0.13.
            model = clone(base)
            part = _check_method_params(X, params, train)
            model.fit(_safe_indexing(X, train), _safe_indexing(y, train), **part)
            held_out, mine = _safe_indexing(X, test), taken(groups, test)
            scores[test] = raw_scores(model, held_out, self.response_, mine, self.pos_label_)
            fold_of_row[test] = fold
        self.estimator_ = clone(base)
        self.estimator_.fit(X, y, **params)
        return scores, fold_of_row

    @property
    def unseen_(self) -> Unseen:
        """The rule's effect on people not seen; see :func:`isocost.unseen`.

        Computed when it is first asked for, because the rule is made again many times: as often as
        for an offer of :func:`isocost.compare`.
        """
        if self._unseen is None:
            # An offer that changes nothing does not look at new people.
            asked = self._offer.question
            self._unseen = self._offer.unseen or unseen(self.tally_, self.rule_, question=asked)
        return self._unseen

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
        coins = partial(coins_of_rows, X, ids, self.rule_.salt, self.random_state)
        return apply_arrays(self.rule_, scores, [groups], coins, unknown=self.unknown)[1]

    def expected_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """The probability of each class on average over the coin: for ranking.

        sum over outcomes of probability x value.  Nobody's place depends on a coin; but the
        average of a repaired and a kept score is not calibrated as each of the two is.
        """
        _, scores, groups = self._scores(X, sensitive_features)
        mean = scores.copy()
        for code, group in enumerate(groups.values):
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
        """The accuracy of :meth:`predict`.

        People who are handed over do not count, and their outcomes may be missing; NaN if everybody
        is.
        """
        predicted = self.predict(X, sensitive_features=sensitive_features, ids=ids)
        decided = np.isin(predicted, self.classes_)
        if not decided.any():
            return float("nan")
        weight = None if sample_weight is None else np.asarray(sample_weight)[decided]
        predicted = predicted[decided].astype(self.classes_.dtype)
        return float(accuracy_score(np.asarray(y)[decided], predicted, sample_weight=weight))

    def _scores(self, X: Any, sensitive_features: Any) -> tuple[Any, Floats, Encoded]:
        """The rows, their scores before the repair (recalibrated if so set), and their groups."""
        check_is_fitted(self)
        X = indexable(X)[0]
        groups = read_groups(X, sensitive_features, self.groups_from)
        unknown = [name for name in groups.values if name not in self.rule_.groups]
        if unknown and self.unknown == "error":
            raise unknown_groups(unknown, self.rule_.groups)
        features = self._features(X)
        scores = raw_scores(self.estimator_, features, self.response_, groups, self.pos_label_)
        if self.calibrator_ is not None:
            scores = self.calibrator_.predict(scores, sensitive_features=features_of(groups))
        return X, scores, groups

    # For scikit-learn

    def get_metadata_routing(self) -> Any:
        """The metadata passed on to the estimator and the splitter, for scikit-learn's routing."""
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


@dataclass(eq=False, repr=False, kw_only=True)
class CalibratedEqualizedOdds(PostProcessor):
    """Make errors cost every group the same and keep scores calibrated.

    Scores h of a classifier are repaired by :func:`isocost.withhold` or :func:`isocost.coarsen`,
    so that g = a c_fp + b c_fn is equal over all groups; see there for the formulas.

    Parameters
    ----------
    estimator : classifier
        With predict_proba or decision_function; LogisticRegression() if None.
    cost : Cost or str
        What an error costs: "fpr", "fnr", "weighted:1,3" or a :class:`isocost.Cost`.
    method : {"withhold", "coarsen"}
        Withhold scores by a coin, or pool neighbouring scores without one.
    tolerance : float
        How far costs may differ.
    threshold : float
        The score from which :meth:`predict` returns the positive class; "coarsen" changes no
        decisions there.
    allow_decision_changes : bool
        Whether "coarsen" may change decisions where costs cannot be made equal otherwise.
    minimize : {"largest", "mean"}
        Which change of the scores "coarsen" makes as small as possible.
    infeasible : {"raise", "closest"}
        What to do when costs cannot be made equal: raise :class:`isocost.InfeasibleError`, or
        come as close as possible, with a warning.
    recalibrate : {None, "sigmoid", "isotonic", "histogram", "beta"}
        Calibrate scores in each group first, by
        :class:`isocost.learn.calibrator.GroupCalibrator`.
        Calibrated scores are the method's precondition: look at ``audit_``.
    cv : int, "prefit" or splitter
        How the scores that the rule is made from are held out.  A number is the number of folds,
        stratified by group and label.
    groups_from : str, int, list of these, or callable
        Where groups are when no ``sensitive_features`` are passed: columns of X by name or
        position, or a function of X, such as one that cuts age at 40.  Then no routing is
        needed, and every scorer of scikit-learn works.  The estimator does not see these columns;
        what a function uses it does see.
    train_on_groups : bool
        Whether the estimator sees the columns that ``groups_from`` names.
    unknown : {"error", "keep"}
        What happens to rows of groups that fit has not seen: an error, or they keep their
        score; with ``recalibrate`` the pooled map calibrates it.
    salt : str
        The coin's salt; see :func:`isocost.withhold`.
    random_state : int, RandomState instance or None
        Without ids the coin depends on the values of the row.  If set, it also depends on this
        and on the number of equal rows before it; use that where few different rows occur.
    confidence : float or None
        Of the intervals in ``audit_``; None for no intervals.
    pos_label : optional
        The positive label; by default the last in sorted order, which a warning says unless labels
        are 0 and 1, -1 and 1, or boolean.

    Attributes
    ----------
    estimator_, calibrator_
        What computes the scores; the calibrator is None without ``recalibrate``.
    rule_ : Rule
        The repair: ``rule_.to_json()`` is all that another system needs.
    tally_ : Tally
        Of the held-out scores, before the repair.
    audit_, repaired_audit_ : Audit
        Of ``tally_``, before the repair and after it, on average over the coin.
    unseen_ : Unseen
        What the rule does to people not seen, by :func:`isocost.unseen`; computed when it is first
        asked for.
    feasibility_ : Feasibility
        Whether costs can be made equal, and at what price.
    response_ : str
        The method of the estimator that scores come from.
    pos_label_ : object
        The positive class.
    classes_, n_features_in_, feature_names_in_
        As in every scikit-learn estimator; the last two if the wrapped estimator has them.

    Notes
    -----
    Costs are equal on average over the coin and on the held-out scores; on new data up to chance:
    ``unseen_`` says how far they are expected to differ there.
    The final estimator was trained on more rows than those of the folds, so its
    scores are a little better than those the rule was made from.

    fairlearn's GridSearch has predict_proba.  Its ExponentiatedGradient and ThresholdOptimizer have
    only the probability of a positive decision, which is not a risk score: they need
    ``recalibrate``.  Sensitive features are passed on to the estimators of fairlearn, and to others
    that name them in their signature or request them.

    Examples
    --------
    >>> import numpy as np
    >>> from isocost.learn import CalibratedEqualizedOdds
    >>> random = np.random.default_rng(0)
    >>> group = random.choice(["a", "b"], 4000)
    >>> X = random.normal(size=(4000, 2)) * np.where(group == "a", 2.0, 1.0)[:, None]
    >>> y = random.random(4000) < 1 / (1 + np.exp(-X.sum(axis=1)))
    >>> model = CalibratedEqualizedOdds(cost="fnr").fit(X, y, sensitive_features=group)
    >>> f"{model.audit_.disparity.difference:.3f}"
    '0.109'
    >>> f"{model.repaired_audit_.disparity.difference:.3f}"
    '0.000'
    >>> model.predict_proba(X[:2], sensitive_features=group[:2]).shape
    (2, 2)
    """

    _needs_calibration = True

    cost: CostLike = str(DEFAULT.cost)
    method: Literal["withhold", "coarsen"] = "withhold"
    tolerance: float = DEFAULT.tolerance
    allow_decision_changes: bool = False
    minimize: Minimize = "largest"
    infeasible: Infeasible = "raise"

    @property
    def _repair(self) -> Repair:
        known = {name: repair for name, repair in REPAIRS.items() if repair.goal == "cost"}
        check_word("method", self.method, tuple(known))
        return known[self.method]


@dataclass(eq=False, repr=False, kw_only=True)
class EqualizedOdds(PostProcessor):
    """Give every group the same false-positive and false-negative rate; calibration is given up.

    Scores are flipped, h to 1 - h, by :func:`isocost.equalize_odds` (EO-Derived).

    Parameters
    ----------
    threshold : float
        The score from which people are treated as positive.
    rates : {"generalized", "hard"}
        Which rates to equalize: generalized ones, or those of the decisions at the threshold.
    estimator, recalibrate, cv, groups_from, train_on_groups, unknown, salt, random_state
        As in :class:`CalibratedEqualizedOdds`, and so are ``confidence`` and ``pos_label``.

    Attributes
    ----------
    feasibility_ : Feasibility
        Equal odds can always be reached in this way; this says whether *calibrated* scores could
        have equal generalized FNR instead.

    Notes
    -----
    The other attributes are those of :class:`CalibratedEqualizedOdds`.  Scores need not be
    calibrated, so ExponentiatedGradient and ThresholdOptimizer of fairlearn may be wrapped as
    they are.  For decisions at a threshold :class:`Reconciled` usually keeps more of them
    right, unless people are few (docs/decisions.md).

    Examples
    --------
    >>> import numpy as np
    >>> from isocost.learn import EqualizedOdds
    >>> random = np.random.default_rng(0)
    >>> group = random.choice(["a", "b"], 4000)
    >>> X = random.normal(size=(4000, 2)) * np.where(group == "a", 2.0, 1.0)[:, None]
    >>> y = random.random(4000) < 1 / (1 + np.exp(-X.sum(axis=1)))
    >>> model = EqualizedOdds().fit(X, y, sensitive_features=group)
    >>> round(model.repaired_audit_.generalized_equalized_odds_difference, 9)
    0.0
    """

    _repair = REPAIRS["odds"]

    rates: Literal["generalized", "hard"] = "generalized"

    def _edges(self, question: Question) -> tuple[float, ...]:
        # A bin of its own for 1/2, which flipped is itself; forests give it often.
        mirrored = float(f"{1.0 - question.threshold:.12g}")
        return (question.threshold, mirrored, float(np.nextafter(0.5, 1.0)))


@dataclass(eq=False, repr=False, kw_only=True)
class Reconciled(PostProcessor):
    """Equalize rates at a threshold over all groups with calibrated scores.

    Scores are repaired by :func:`isocost.reconcile`: each becomes the share of positives of
    those who get it, so they are calibrated whatever they were before.

    Parameters
    ----------
    threshold, equal, tolerance, cost, levels, floor, no_worse, monotone, infeasible
        As in :func:`isocost.reconcile`.
    estimator, recalibrate, cv, groups_from, train_on_groups, unknown, salt, random_state
        As in :class:`CalibratedEqualizedOdds`, and so are ``confidence`` and ``pos_label``.

    Attributes
    ----------
    feasibility_ : Reconcilability
        Whether the rates can be made equal, and if not, how nearly.

    Notes
    -----
    The other attributes are those of :class:`CalibratedEqualizedOdds`.

    Examples
    --------
    >>> import numpy as np
    >>> from isocost.learn import Reconciled
    >>> random = np.random.default_rng(0)
    >>> group = random.choice(["a", "b"], 4000)
    >>> X = random.normal(size=(4000, 2)) * np.where(group == "a", 2.0, 1.0)[:, None]
    >>> y = random.random(4000) < 1 / (1 + np.exp(-X.sum(axis=1)))
    >>> model = Reconciled().fit(X, y, sensitive_features=group)
    >>> round(model.repaired_audit_.equalized_odds_difference, 9)
    0.0
    """

    cost: CostLike = str(DEFAULT.cost)
    equal: str | Sequence[str] = ("fpr", "fnr")
    tolerance: float | Mapping[str, float] = 0.0
    levels: Levels = "auto"
    floor: Mapping[str, float] | None = None
    no_worse: bool = False
    monotone: bool = False
    infeasible: Infeasible = "raise"

    _repair = REPAIRS["reconcile"]
    _verdict = Reconcilability


@dataclass(eq=False, repr=False, kw_only=True)
class HandOver(PostProcessor):
    """Hand some people over, and treat the others of all groups alike, with calibrated scores.

    Scores are repaired by :func:`isocost.hand_over`: everybody gets a calibrated score, or none.
    Those without one have NaN in :meth:`predict_proba`, and in :meth:`predict` a third value, which
    is no class.

    Parameters
    ----------
    share, tolerance, threshold, keep, levels, infeasible
        As in :func:`isocost.hand_over`.
    handed_over_label : optional
        What :meth:`predict` returns for people who are handed over.  By default, for classes that
        are whole numbers or booleans, the whole number before the least of them (-1 for 0 and 1),
        NaN for other numbers, and "handed over" for texts.
    estimator, recalibrate, cv, groups_from, train_on_groups, unknown, salt, random_state
        As in :class:`CalibratedEqualizedOdds`, and so are ``confidence`` and ``pos_label``.

    Attributes
    ----------
    handed_over_label_ : object
        What :meth:`predict` returns for people who are handed over.
    feasibility_ : Deferral
        Whether the share is enough; ``smallest_share`` is NaN unless it had to be computed.

    Notes
    -----
    The other attributes are those of :class:`CalibratedEqualizedOdds`; ``classes_`` are the two
    classes.  ``repaired_audit_`` is about the decided and says how many are not, and so does
    ``rule_.handed_over(tally_)``.  Scorers of scikit-learn that need a probability of everybody
    refuse NaN: pass them the rows where :meth:`handed_over` is False.

    Examples
    --------
    >>> import numpy as np
    >>> from isocost.learn import HandOver
    >>> random = np.random.default_rng(0)
    >>> group = random.choice(["a", "b"], 4000)
    >>> X = random.normal(size=(4000, 2)) + np.where(group == "a", 0.5, 0.0)[:, None]
    >>> y = (random.random(4000) < 1 / (1 + np.exp(-X.sum(axis=1)))).astype(int)
    >>> model = HandOver(share=0.3).fit(X, y, sensitive_features=group)
    >>> round(model.repaired_audit_.equalized_odds_difference, 9)
    0.0
    >>> np.unique(model.predict(X, sensitive_features=group)).tolist()
    [-1, 0, 1]
    >>> gone = model.handed_over(X, sensitive_features=group)
    >>> f"{gone.mean():.2f}"
    '0.30'
    """

    share: float | Literal["least"] | None = 0.25
    tolerance: float = 0.0
    keep: Literal["information", "brier"] = "information"
    levels: Levels = "auto"
    handed_over_label: Any = None
    infeasible: Infeasible = "raise"

    _repair = REPAIRS["hand_over"]
    _verdict = Deferral

    def _read_classes(self) -> None:
        check_single("handed_over_label", self.handed_over_label)
        self.handed_over_label_ = self.handed_over_label
        if self.handed_over_label is None:
            kind = self.classes_.dtype.kind
            other = np.nan if kind == "f" else "handed over"
            self.handed_over_label_ = int(self.classes_[0]) - 1 if kind in "biu" else other
        elif self.handed_over_label in self.classes_.tolist():
            rule, step = "must be none of the classes", "leave it out, or use another value"
            got = f"{self.classes_.tolist()}"
            raise UsageError(Problem("handed_over_label", rule, got, step))

    def handed_over(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Bools:
        """True for each person who is handed over; arguments as for :meth:`predict_proba`."""
        return np.isnan(self._repaired(X, sensitive_features, ids))

    def predict(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Any:
        """The class of each row, or ``handed_over_label_``, which is no class."""
        scores = self._repaired(X, sensitive_features, ids)
        predicted, gone = self._decisions(scores), np.isnan(scores)
        if not gone.any():
            return predicted
        if predicted.dtype.kind == "b":
            predicted = predicted.astype(np.intp)
        third = np.asarray(self.handed_over_label_)
        alike = any(predicted.dtype.kind in k and third.dtype.kind in k for k in ("iuf", "U"))
        both = predicted.astype(np.result_type(predicted, third) if alike else object)
        both[gone] = self.handed_over_label_
        return both
