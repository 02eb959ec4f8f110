"""Recalibration per group: a pooled map, a map for each group, and a held-out report."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, astuple, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from isocost.checks import check_whole, check_word
from isocost.errors import DataError, IsocostWarning, Problem, UsageError
from isocost.groups import Group, group_names
from isocost.learn.inputs import (
    check_random,
    groups_of,
    in_order,
    log_of,
    positive_labels,
    read_all,
    real_scores,
    two_classes,
    weights_of,
)
from isocost.metrics import calibration_gap
from isocost.repairs.maps import (
    METHODS,
    PROBABILITIES,
    CalibrationMap,
    GroupMaps,
    check_shrinkage,
    effective_number,
    fit_map,
    own_share,
)
from isocost.result import Result
from isocost.typing import Bools, Floats, Ints

# The report


@dataclass(frozen=True)
class Quality:
    """How good scores are: two estimates of the calibration gap, and the Brier score.

    See :mod:`isocost.measures.calibration` for how ``equal_width`` and ``debiased`` differ.
    """

    gap: float
    gap_debiased: float
    brier: float


@dataclass(frozen=True)
class GroupQuality:
    """One group, or everybody together.

    Attributes
    ----------
    n, positives : int
        Rows, and those with the positive label.
    own_share : float or None
        The weight of the group's own map beside the pooled one; None for everybody.
    before : Quality or None
        Of the scores as they came; None if they are not probabilities.
    pooled, after : Quality
        Of one map for everybody, and of the maps per group.
    note : str
        What is special about the group; empty if nothing is.
    """

    n: int
    positives: int
    own_share: float | None
    before: Quality | None
    pooled: Quality
    after: Quality
    note: str = ""


@dataclass(frozen=True, repr=False)
class RecalibrationReport(Result):
    """The gap before and after recalibration, by cross-validation.

    Each fold is judged with maps fitted to the others, and the numbers are averaged over the
    folds.  So the gap after is what to expect on new rows, not on the rows of the fit.  Folds are
    small, and chance alone adds to a gap: compare ``gap`` before and
    after, or look at ``gap_debiased``.

    Attributes
    ----------
    method, shrinkage, folds : str, float, int
        What it was made with.
    groups : {group: GroupQuality}
        Each group.
    overall : GroupQuality
        Everybody together, where one group's gap can hide another's.
    """

    format = "isocost-recalibration"

    method: str
    shrinkage: float
    folds: int
    groups: dict[Group, GroupQuality]
    overall: GroupQuality

    def headline(self) -> str:
        """What was measured, in a line."""
        return (
            f"Recalibration of {self.overall.n:,} rows per group: {self.method}, "
            f"shrinkage {self.shrinkage:g}; held out in {self.folds} folds"
        )

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The printed table, as header and rows."""
        titles = ["group", "n", "positives", "own share", "gap before", "pooled", "after"]
        titles += ["debiased before", "after", "Brier before", "after"]
        names = [*group_names(tuple(self.groups)), "all"]
        rows = [
            [name, f"{x.n:,}", f"{x.positives:,}", _number(x.own_share, 2), *_cells(x)]
            for name, x in zip(names, [*self.groups.values(), self.overall], strict=True)
        ]
        return titles, rows

    def notes(self) -> list[str]:
        """What is special about some groups, a line each."""
        names = group_names(tuple(self.groups))
        noted = [
            f"{name}: {x.note}."
            for name, x in zip(names, self.groups.values(), strict=True)
            if x.note
        ]
        if self.overall.before is None:
            noted.append("The scores are not probabilities, so they have no gap before.")
        return noted


def _cells(row: GroupQuality) -> list[str]:
    gaps = [("gap", kind) for kind in (row.before, row.pooled, row.after)]
    rest = [(name, kind) for name in ("gap_debiased", "brier") for kind in (row.before, row.after)]
    return [_number(getattr(kind, name, None), 4) for name, kind in gaps + rest]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


# Maps


@dataclass(frozen=True)
class _Rows:
    """Checked rows: scores, labels 0 and 1, weights above 0, and codes into the sorted groups."""

    scores: Floats
    y: Floats
    w: Floats
    codes: Ints
    groups: tuple[Group, ...]
    classes: npt.NDArray[Any]

    def take(self, chosen: Bools) -> _Rows:
        """Some of the rows; groups keep their codes even where none of their rows is left."""
        arrays = {name: getattr(self, name)[chosen] for name in ("scores", "y", "w", "codes")}
        return replace(self, **arrays)


def _read_rows(scores: Any, y: Any, groups: Any, weight: Any, method: str) -> _Rows:
    """Check everything that a calibrator is fitted to; rows of weight 0 are left out."""
    values = real_scores(scores, method)
    (classes, labels), features, w = read_all(
        partial(two_classes, y, len(values)),
        partial(groups_of, groups, len(values)),
        partial(weights_of, weight, len(values)),
    )
    counted = w > 0
    if not counted.all():
        classes, labels = two_classes(y, len(values), w)
        values, labels, w = values[counted], labels[counted], w[counted]
    groups = features.take(counted).sorted()
    return _Rows(values, labels.astype(np.float64), w, groups.codes, groups.names, classes)


def _is_constant(fitted: CalibrationMap, scores: Floats) -> bool:
    """Whether different scores all get the same probability."""
    values = fitted(scores)
    return bool(scores.min() < scores.max() and values.min() == values.max())


def _quality(y: Floats, scores: Floats, w: Floats) -> Quality:
    return Quality(
        gap=calibration_gap(y, scores, sample_weight=w),
        gap_debiased=calibration_gap(y, scores, sample_weight=w, method="debiased"),
        brier=float(np.average((scores - y) ** 2, weights=w)),
    )


def _mean_quality(folds: Sequence[Quality], weights: Sequence[float]) -> Quality:
    return Quality(*np.average([astuple(fold) for fold in folds], axis=0, weights=weights).tolist())


def _deal(rows: _Rows, folds: int, random_state: Any) -> Ints:
    """The fold of each row: the rows of a group are shuffled and dealt in turn, as cards are.

    Labels play no part in it: folds with the same share of positives would hide how far off a
    map's share of positives is.
    """
    mixed = check_random_state(0 if random_state is None else random_state).permutation(len(rows.y))
    order = mixed[np.argsort(rows.codes[mixed], kind="stable")]
    dealt = np.empty(len(order), dtype=np.intp)
    dealt[order] = np.arange(len(order)) % folds
    return dealt


def _training_part(rows: _Rows, fold_of_row: Ints, fold: int, count: int) -> _Rows:
    part = rows.take(fold_of_row != fold)
    if count < 2 or part.y.min() == part.y.max():
        rule = "must have both labels in every training part of the held-out report"
        got = f"{len(rows.y):,} rows, {int(rows.y.sum()):,} of them positive, and outside of "
        got += f"fold {fold + 1} of {count} only one label"
        step = "pass more rows, fewer or more folds with cv=, or cv=None for no report"
        raise DataError(Problem("y", rule, got, step))
    return part


@dataclass(eq=False, repr=False)
class GroupCalibrator(BaseEstimator):  # type: ignore[misc]
    """Turn scores into probabilities that hold within every group.

    Each group t has its own map, and all share a pooled one.  A score s of group t becomes

        lambda_t map_t(s) + (1 - lambda_t) pooled(s),    lambda_t = n_t / (n_t + shrinkage),

    where n_t is the group's effective number (Kish) of rows with its rarer label.  So a small
    group borrows from everybody.  A group with one label only uses the pooled map.

    Parameters
    ----------
    method : {"sigmoid", "isotonic", "histogram", "beta"}
        The map; see :mod:`isocost.repairs.maps`.  Sigmoid and isotonic take any numbers, such as
        values of ``decision_function``; histogram and beta take scores in [0, 1].
    shrinkage : "auto" or float
        The number of rows of the rarer label at which a group's own map counts half; 0 for
        the group's map alone, ``math.inf`` for the pooled map alone.
    unknown : {"error", "pooled"}
        What to do with groups that ``fit`` has not seen.
    cv : int or None
        Number of folds of the held-out report; None for no report, which is faster.
    bins : int
        Number of bins of the histogram.
    random_state : int, RandomState or None
        Shuffles the rows before they are dealt to the folds; None is the same as 0, so that a
        report does not change from run to run.  Only the report depends on it.
    pos_label : optional
        The positive label; by default the last in sorted order, which a warning says unless labels
        are 0 and 1, -1 and 1, or boolean.

    Attributes
    ----------
    classes_ : array
        The two labels, sorted, as the columns of ``predict_proba``.
    pos_label_ : object
        The positive one, whose probability ``predict`` returns.
    groups_ : tuple
        The groups, sorted.
    maps_ : {group: map}
        Each group's own map, before shrinkage; the pooled one for groups with one label.
    pooled_ : map
        The map fitted to everybody.
    weights_ : {group: float}
        lambda_t.
    report_ : RecalibrationReport or None
        The calibration gap and the Brier score before and after, on held-out rows.

    Notes
    -----
    Mixing with fixed weights keeps what both maps have: they stay between 0 and 1, and
    non-decreasing (all but the histogram).

    Weights count like repeated rows in the maps.  They do not in lambda: a weight of 2 on
    every row says no more about a group than 1 does.  Rows of weight 0 are left out.

    ``"auto"`` is 10 for sigmoid and beta, 30 for isotonic and 75 for histogram.  Of the values
    tried in a simulation (groups of 20 to 2000 rows beside 5000, five kinds of
    miscalibration) these have the smallest worst regret: the distance to the true probabilities
    beyond that of the best value for the case.

    Fit it on scores of rows the model was not trained on, or the maps will believe an
    overconfident model.

    Examples
    --------
    >>> import numpy as np
    >>> from isocost.learn import GroupCalibrator
    >>> random = np.random.default_rng(0)
    >>> score, group = random.random(20_000), random.choice(["a", "b"], 20_000)
    >>> label = random.random(20_000) < np.where(group == "a", score, score**2)
    >>> calibrator = GroupCalibrator("beta").fit(score, label, sensitive_features=group)
    >>> calibrator.predict([0.5, 0.5], sensitive_features=["a", "b"]).round(2)
    array([0.5 , 0.26])
    >>> held_out = calibrator.report_.groups["b"]
    >>> f"gap {held_out.before.gap:.3f}, then {held_out.after.gap:.3f}"
    'gap 0.164, then 0.025'
    """

    # scikit-learn takes every argument that is not called X or y for metadata.
    __metadata_request__fit: ClassVar = {"scores": UNUSED}
    __metadata_request__predict: ClassVar = {"scores": UNUSED}
    __metadata_request__predict_proba: ClassVar = {"scores": UNUSED}
    __metadata_request__predict_log_proba: ClassVar = {"scores": UNUSED}
    __metadata_request__score: ClassVar = {"scores": UNUSED}

    method: str = "sigmoid"
    _: KW_ONLY
    shrinkage: float | str = "auto"
    unknown: str = "error"
    cv: int | None = 5
    bins: int = 10
    random_state: Any = None
    pos_label: Any = None

    def fit(
        self, scores: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit the pooled map, each group's own, and the held-out report.

        Parameters
        ----------
        scores : array of shape (n,) or (n, 1)
            The scores to recalibrate.
        y : array of shape (n,)
            Labels of two values; ``pos_label`` says which is positive.
        sensitive_features : array, series, frame or dict of columns with n rows
            The group of each row; several columns make a group of each combination.
        sample_weight : array of shape (n,), optional
            Weights, not negative.
        """
        self._check_parameters()
        rows = _read_rows(scores, y, sensitive_features, sample_weight, self._range())
        self.pos_label_, labels = positive_labels(
            rows.classes, rows.y.astype(np.intp), self.pos_label, stacklevel=2
        )
        rows = replace(rows, y=labels.astype(np.float64))
        fitted = self._fit_maps(rows)
        self.classes_, self.groups_, self.pooled_ = rows.classes, rows.groups, fitted.pooled
        self.maps_ = {
            group: own or fitted.pooled for group, own in zip(rows.groups, fitted.own, strict=True)
        }
        self.weights_ = dict(zip(rows.groups, fitted.shares, strict=True))
        self.report_ = None if self.cv is None else self._report(rows, fitted)
        if _is_constant(fitted.pooled, rows.scores):
            warnings.warn(_CONSTANT, IsocostWarning, stacklevel=2)
        return self

    def predict(self, scores: Any, *, sensitive_features: Any = None) -> Floats:
        """The calibrated probability of the positive label, one per row."""
        check_is_fitted(self)
        values = real_scores(scores, self._range())
        groups = groups_of(sensitive_features, len(values))
        unknown = [group for group in groups.names if group not in self.maps_]
        if unknown and self.unknown != "pooled":
            raise _unknown(unknown, self.groups_)
        index = {group: i for i, group in enumerate(self.groups_)}
        known = np.array([index.get(group, -1) for group in groups.names], dtype=np.intp)
        maps = [self.maps_[group] for group in self.groups_]
        shares = [self.weights_[group] for group in self.groups_]
        return GroupMaps(self.pooled_, maps, shares)(values, known[groups.codes])

    def predict_proba(self, scores: Any, *, sensitive_features: Any = None) -> Floats:
        """The probabilities of both labels, in the order of ``classes_``."""
        positive = self.predict(scores, sensitive_features=sensitive_features)
        return in_order(positive, self.classes_, self.pos_label_)

    def predict_log_proba(self, scores: Any, *, sensitive_features: Any = None) -> Floats:
        """The logarithm of :meth:`predict_proba`."""
        return log_of(self.predict_proba(scores, sensitive_features=sensitive_features))

    def score(
        self, scores: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> float:
        """Minus the Brier score, so that a grid search can choose the method; higher is better."""
        predicted = self.predict(scores, sensitive_features=sensitive_features)
        values, w = np.asarray(y), weights_of(sample_weight, len(predicted))
        others = int((~np.isin(values, self.classes_)).sum())
        if values.shape != predicted.shape or others:
            labels = ", ".join(map(repr, self.classes_.tolist()))
            rule = f"must be one of the labels {labels} in each row"
            got = f"an array of shape {values.shape}, {others} of them other values"
            raise DataError(Problem("y", rule, got, "pass labels of the kind that fit was given"))
        return -float(np.average((predicted - (values == self.pos_label_)) ** 2, weights=w))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.target_tags.required = True
        return tags

    def _range(self) -> str:
        return f'method="{self.method}"' if self.method in PROBABILITIES else ""

    def _check_parameters(self) -> None:
        read_all(
            partial(check_word, "method", self.method, METHODS),
            partial(check_word, "unknown", self.unknown, ("error", "pooled")),
            partial(check_shrinkage, "sigmoid", self.shrinkage),
            partial(check_whole, "cv", 2 if self.cv is None else self.cv, 2, step=_CV),
            partial(check_whole, "bins", self.bins, 1, step="use 10"),
            partial(check_random, self.random_state),
            error=UsageError,
        )

    def _shrinkage(self) -> float:
        return check_shrinkage(self.method, self.shrinkage)

    def _fit_maps(self, rows: _Rows) -> GroupMaps:
        """Fit the pooled map and each group's own."""

        def fit(part: _Rows) -> CalibrationMap:
            positives, negatives = part.w * part.y, part.w * (1.0 - part.y)
            return fit_map(self.method, part.scores, positives, negatives, bins=int(self.bins))

        own: list[CalibrationMap | None] = []
        shares = []
        for code in range(len(rows.groups)):
            part = rows.take(rows.codes == code)
            rarer = min(effective_number(part.w[part.y == label]) for label in (0, 1))
            own.append(fit(part) if rarer else None)
            shares.append(own_share(rarer, self._shrinkage()))
        return GroupMaps(fit(rows), own, shares)

    def _report(self, rows: _Rows, fitted: GroupMaps) -> RecalibrationReport:
        """Fit to all folds but one, measure on that one, and average over the folds.

        Measuring all folds together would not do: what a fold has too many of, the others have
        too few of, and bin by bin such errors cancel out.
        """
        fold_of_row = _deal(rows, int(self.cv or 0), self.random_state)
        count = int(fold_of_row.max()) + 1
        are_probabilities = rows.scores.min() >= 0 and rows.scores.max() <= 1
        # By group, with everybody last: the weight of each fold, and the quality of its scores.
        measured: list[list[tuple[float, list[Quality]]]] = [[] for _ in [*rows.groups, None]]
        pooled_only = np.zeros(len(rows.groups), dtype=int)
        for fold in range(count):
            maps = self._fit_maps(_training_part(rows, fold_of_row, fold, count))
            pooled_only += np.array([own is None for own in maps.own])
            test = rows.take(fold_of_row == fold)
            kinds = [test.scores] if are_probabilities else []
            kinds += [maps.pooled(test.scores), maps(test.scores, test.codes)]
            for code in range(-1, len(rows.groups)):
                mine = test.codes == code if code >= 0 else np.ones(len(test.y), dtype=bool)
                if mine.any():
                    w = test.w[mine]
                    qualities = [_quality(test.y[mine], kind[mine], w) for kind in kinds]
                    measured[code].append((float(w.sum()), qualities))
        groups = {}
        for code, group in enumerate(rows.groups):
            mine, own = rows.codes == code, fitted.own[code]
            note = _note(rows.take(mine), own, int(pooled_only[code]), count)
            groups[group] = _averaged(measured[code], rows.y[mine], fitted.shares[code], note)
        overall = _averaged(measured[-1], rows.y, None, "")
        return RecalibrationReport(self.method, self._shrinkage(), count, groups, overall)


_CV = "use 5, or None for no report"

_CONSTANT = (
    "The scores do not rise with the labels, so the pooled map gives everybody the same "
    "probability: check that higher scores mean the larger label."
)


def _averaged(
    folds: Sequence[tuple[float, list[Quality]]], y: Floats, share: float | None, note: str
) -> GroupQuality:
    """The mean over folds, weighted by their rows."""
    weights, qualities = zip(*folds, strict=True)
    *before, pooled, after = (_mean_quality(kind, weights) for kind in zip(*qualities, strict=True))
    first = before[0] if before else None
    return GroupQuality(len(y), int(y.sum()), share, first, pooled, after, note)


def _note(group: _Rows, own: CalibrationMap | None, pooled_only: int, folds: int) -> str:
    if own is None:
        kind = "positives" if group.y.any() else "negatives"
        return f"only {kind}, so it uses the pooled map"
    if pooled_only:
        return (
            f"not both labels in {pooled_only} of {folds} training parts, which used the pooled map"
        )
    if _is_constant(own, group.scores):
        return "scores do not rise with the labels, so its own map is constant"
    return ""


def _unknown(unknown: Sequence[Group], known: Sequence[Group]) -> UsageError:
    """Which groups fit has not seen, and whether only their type differs."""
    texts = {str(group) for group in known}
    by_type = [group for group in unknown if str(group) in texts]
    step = (
        f"give the column the type it had in fit: {by_type[0]!r} is of type "
        f"{type(by_type[0]).__name__} here"
        if by_type
        else 'fit again with rows of these groups, or use unknown="pooled" to give them the pooled '
        "map"
    )
    shown = ", ".join(map(repr, unknown[:10])) + (" ..." if len(unknown) > 10 else "")
    rule = f"must be a group that fit has seen: {', '.join(map(repr, known[:30]))}"
    return UsageError(Problem("sensitive_features", rule, shown, step))
