"""What recalibration changed, measured on rows that the maps were not fitted to.

Maps per group with a pooled one behind them: fitting, applying, and judging them held out.

Recalibration per group: scores that mean the same for everybody, before anything else.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from html import escape
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from isocost.checks import check_word
from isocost.errors import DataError, IsocostWarning, Problem, UsageError
from isocost.groups import Group, group_names, sort_groups, to_json
from isocost.learn.maps import METHODS, PROBABILITIES, CalibrationMap, effective_number, fit_map
from isocost.learn.sensitive import groups_of, read_all, real_scores, two_labels, weights_of
from isocost.measures.functions import calibration_gap
from isocost.tables import html_table, text_table

__all__ = [
    "SHRINKAGE",
    "GroupCalibrator",
    "GroupMaps",
    "HeldOut",
    "HeldOutGroup",
    "Quality",
    "Recipe",
    "Rows",
    "fit_groups",
    "held_out",
    "is_level",
    "mean_quality",
    "quality_of",
    "read_rows",
]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Quality:
    """How good scores are: two estimates of the calibration gap, and the Brier score.

    See :mod:`isocost.measures.calibration` for how ``equal_width`` and ``debiased`` differ.
    """

    gap: float
    gap_debiased: float
    brier: float


@dataclass(frozen=True)
class HeldOutGroup:
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
class HeldOut:
    """The gap before and after recalibration, by cross-validation.

    Each fold is judged with maps fitted to the others, and the numbers are averaged over the
    folds.  So the gap after is what new rows can expect, not what the fit has made of its own
    rows.  Folds are small, and chance alone adds to a gap: compare ``gap`` before and
    after, or look at ``gap_debiased``.

    Attributes
    ----------
    method, shrinkage, folds : str, float, int
        What it was made with.
    groups : {group: HeldOutGroup}
        Each group.
    overall : HeldOutGroup
        Everybody together, where one group's gap can hide another's.
    """

    method: str
    shrinkage: float
    folds: int
    groups: dict[Group, HeldOutGroup]
    overall: HeldOutGroup

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; groups become [group, numbers] pairs, to keep their type."""
        return {
            "format": "isocost-recalibration",
            "version": 1,
            "method": self.method,
            "shrinkage": self.shrinkage if np.isfinite(self.shrinkage) else None,
            "folds": self.folds,
            "groups": [[to_json(g), asdict(numbers)] for g, numbers in self.groups.items()],
            "overall": asdict(self.overall),
        }

    def to_json(self) -> str:
        """The report as JSON text; an infinite shrinkage becomes null."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

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
            noted.append("The scores are not probabilities, so before there is no gap.")
        return noted

    def __repr__(self) -> str:
        return "\n".join([self.headline(), text_table(*self.table()), *self.notes()])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in self.notes())
        return html_table(*self.table(), caption=self.headline()) + lines


def quality_of(y: Floats, scores: Floats, w: Floats) -> Quality:
    """The gaps and the Brier score of probabilities.

    Examples
    --------
    >>> found = quality_of(np.array([0.0, 0.0, 0.0, 1.0]), np.full(4, 0.5), np.ones(4))
    >>> found.gap, round(found.gap_debiased, 3), found.brier
    (0.25, 0.223, 0.25)
    """
    return Quality(
        gap=calibration_gap(y, scores, sample_weight=w),
        gap_debiased=calibration_gap(y, scores, sample_weight=w, method="debiased"),
        brier=float(np.average((scores - y) ** 2, weights=w)),
    )


def mean_quality(found: Sequence[Quality], weight: Sequence[float]) -> Quality:
    """The weighted mean of each number.

    Examples
    --------
    >>> mean_quality([Quality(0.1, 0.0, 0.2), Quality(0.3, 0.2, 0.4)], [1.0, 1.0])
    Quality(gap=0.2, gap_debiased=0.1, brier=0.30000000000000004)
    """
    table = np.array([astuple(quality) for quality in found])
    gap, gap_debiased, brier = np.average(table, axis=0, weights=weight).tolist()
    return Quality(gap, gap_debiased, brier)


def _cells(numbers: HeldOutGroup) -> list[str]:
    before, pooled, after = numbers.before, numbers.pooled, numbers.after
    shown = [("gap", before), ("gap", pooled), ("gap", after)]
    shown += [(name, kind) for name in ("gap_debiased", "brier") for kind in (before, after)]
    return [_number(None if kind is None else getattr(kind, name), 4) for name, kind in shown]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


Ints = npt.NDArray[np.intp]

Judged = tuple[float, list[Quality]]
"""The weight of the rows that were judged, and the quality of each kind of score."""


@dataclass(frozen=True)
class Recipe:
    """How maps are fitted: which kind, how much of the pooled one, how many bins."""

    method: str
    shrinkage: float
    bins: int = 10


@dataclass(frozen=True)
class Rows:
    """Checked rows: scores, labels 0 and 1, weights above 0, and codes into the sorted groups."""

    scores: Floats
    y: Floats
    w: Floats
    codes: Ints
    groups: tuple[Group, ...]
    classes: npt.NDArray[Any]

    def take(self, kept: npt.NDArray[np.bool_]) -> Rows:
        """Some of the rows; groups keep their codes even where none of their rows is left."""
        codes = self.codes[kept]
        return replace(self, scores=self.scores[kept], y=self.y[kept], w=self.w[kept], codes=codes)


def read_rows(scores: Any, y: Any, groups: Any, weight: Any, probabilities: str = "") -> Rows:
    """Check everything that a calibrator is fitted to; rows of weight 0 are left out."""
    values = real_scores(scores, probabilities)
    (classes, labels), found, w = read_all(
        partial(two_labels, y, len(values)),
        partial(groups_of, groups, len(values)),
        partial(weights_of, weight, len(values)),
    )
    present, codes = found.names, found.codes
    kept = w > 0
    if not kept.all():
        values, w, codes = values[kept], w[kept], codes[kept]
        classes, labels = two_labels(classes[labels.astype(int)][kept], len(values))
    used = np.unique(codes)
    ordered = sort_groups(present[code] for code in used)
    place = {group: i for i, group in enumerate(ordered)}
    rank = np.array([place.get(group, -1) for group in present], dtype=np.intp)
    return Rows(values, labels, w, rank[codes], tuple(ordered), classes)


@dataclass(frozen=True)
class GroupMaps:
    """A pooled map, each group's own (None where it has one label), and the share of its own.

    Called with scores and codes it gives probabilities; code -1 means the pooled map.
    """

    pooled: CalibrationMap
    own: Sequence[CalibrationMap | None]
    shares: Sequence[float]

    def __call__(self, scores: Floats, codes: Ints) -> Floats:
        """The probability of each row."""
        out = self.pooled(scores)
        for place, (own, share) in enumerate(zip(self.own, self.shares, strict=True)):
            if own is not None and share > 0:
                mine = np.flatnonzero(codes == place)
                out[mine] = share * own(scores[mine]) + (1.0 - share) * out[mine]
        return np.clip(out, 0.0, 1.0)


def fit_groups(rows: Rows, recipe: Recipe) -> GroupMaps:
    """Fit the pooled map and each group's own.

    The share of a group's own map is n / (n + shrinkage), where n is the effective number of rows
    with its rarer label, and 0 for a group with one label.
    """
    pooled = fit_map(recipe.method, rows.scores, rows.y, rows.w, recipe.bins)
    own: list[CalibrationMap | None] = []
    shares = []
    for place in range(len(rows.groups)):
        part = rows.take(rows.codes == place)
        rarer = min(effective_number(part.w[part.y == label]) for label in (0, 1))
        own.append(
            fit_map(recipe.method, part.scores, part.y, part.w, recipe.bins) if rarer else None
        )
        shares.append(rarer / (rarer + recipe.shrinkage) if rarer else 0.0)
    return GroupMaps(pooled, own, shares)


def is_level(fitted: CalibrationMap, scores: Floats) -> bool:
    """Whether different scores all get the same probability."""
    found = fitted(scores)
    return bool(scores.min() < scores.max() and found.min() == found.max())


def held_out(rows: Rows, fitted: GroupMaps, recipe: Recipe, cv: int, random_state: Any) -> HeldOut:
    """Fit to all folds but one, measure on that one, and average over the folds.

    Measuring all folds together would not do: what a fold has too many of, the others have too
    few of, and bin by bin such errors cancel out.
    """
    folds = _folds(rows, cv, random_state)
    count = int(folds.max()) + 1
    whole = rows.scores.min() >= 0 and rows.scores.max() <= 1
    found: list[list[Judged]] = [[] for _ in range(len(rows.groups) + 1)]
    lacking = np.zeros(len(rows.groups), dtype=int)
    for fold in range(count):
        part = fit_groups(_training_part(rows, folds, fold, count), recipe)
        lacking += np.array([own is None for own in part.own])
        test = rows.take(folds == fold)
        kinds = [test.scores] if whole else []
        kinds += [part.pooled(test.scores), part(test.scores, test.codes)]
        for place in range(-1, len(rows.groups)):
            mine = test.codes == place if place >= 0 else np.ones(len(test.y), dtype=bool)
            if mine.any():
                judged = [quality_of(test.y[mine], kind[mine], test.w[mine]) for kind in kinds]
                found[place].append((float(test.w[mine].sum()), judged))
    results = {}
    for place, group in enumerate(rows.groups):
        note = _note(rows, fitted.own[place], place, f"{lacking[place]} of {count}")
        labels = rows.y[rows.codes == place]
        results[group] = _averaged(found[place], labels, fitted.shares[place], note)
    overall = _averaged(found[-1], rows.y, None, "")
    return HeldOut(recipe.method, recipe.shrinkage, count, results, overall)


def _averaged(found: list[Judged], y: Floats, share: float | None, note: str) -> HeldOutGroup:
    """The mean over folds, each as heavy as its rows."""
    weight = [w for w, _ in found]
    kinds = zip(*(judged for _, judged in found), strict=True)
    *before, pooled, after = (mean_quality(kind, weight) for kind in kinds)
    first = before[0] if before else None
    return HeldOutGroup(len(y), int(y.sum()), share, first, pooled, after, note)


def _note(rows: Rows, own: CalibrationMap | None, place: int, lacking: str) -> str:
    mine = rows.codes == place
    if own is None:
        kind = "positives" if rows.y[mine].any() else "negatives"
        return f"only {kind}, so it uses the pooled map"
    if not lacking.startswith("0 "):
        return f"not both labels in {lacking} training parts, which used the pooled map"
    if is_level(own, rows.scores[mine]):
        return "scores do not rise with the labels, so its own map is level"
    return ""


def _folds(rows: Rows, cv: int, random_state: Any) -> Ints:
    """The fold of each row: the rows of a group are shuffled and dealt in turn, as cards are.

    Labels play no part in it: folds with the same share of positives would hide how far off a
    map's share of positives is.
    """
    mixed = check_random_state(0 if random_state is None else random_state).permutation(len(rows.y))
    order = mixed[np.argsort(rows.codes[mixed], kind="stable")]
    folds = np.empty(len(order), dtype=np.intp)
    folds[order] = np.arange(len(order)) % cv
    return folds


def _training_part(rows: Rows, folds: Ints, fold: int, count: int) -> Rows:
    part = rows.take(folds != fold)
    if count < 2 or part.y.min() == part.y.max():
        raise DataError(
            Problem(
                "y",
                "must have both labels in every training part of the held-out report",
                f"{len(rows.y):,} rows, {int(rows.y.sum()):,} of them positive, and outside of "
                f"fold {fold + 1} of {count} only one label",
                "pass more rows, fewer or more folds with cv=, or cv=None for no report",
            )
        )
    return part


SHRINKAGE = {"sigmoid": 10.0, "beta": 10.0, "isotonic": 30.0, "histogram": 75.0}
"""What ``shrinkage="auto"`` means: the least regret found by tools/choose_shrinkage.py."""


class GroupCalibrator(BaseEstimator):  # type: ignore[misc]
    """Turn scores into probabilities that hold within every group.

    Each group t has its own map, and all share a pooled one.  A score s of group t becomes

        lambda_t map_t(s) + (1 - lambda_t) pooled(s),    lambda_t = n_t / (n_t + shrinkage),

    where n_t is the group's effective number (Kish) of rows with its rarer label.  So a small
    group borrows from everybody.  A group with one label only uses the pooled map.

    Parameters
    ----------
    method : {"sigmoid", "isotonic", "histogram", "beta"}
        The map; see :mod:`isocost.learn.maps`.  Sigmoid and isotonic take any numbers, such as
        values of ``decision_function``; histogram and beta take scores in [0, 1].
    shrinkage : "auto" or float
        How many rows of the rarer label it takes for a group's own map to count half; 0 for
        the group's map alone, ``math.inf`` for the pooled map alone.
    unknown : {"error", "pooled"}
        What to do with groups that were not there in ``fit``.
    cv : int or None
        In how many folds the report is held out; None for no report, which is quicker.
    bins : int
        Of the histogram.
    random_state : int, RandomState or None
        Shuffles the rows before they are dealt to the folds; None is the same as 0, so that a
        report does not change from run to run.  Nothing but the report depends on it.

    Attributes
    ----------
    classes_ : array
        The two labels, sorted; probabilities are those of the second.
    groups_ : tuple
        The groups, sorted.
    maps_ : {group: map}
        Each group's own map, before shrinkage; the pooled one for groups with one label.
    pooled_ : map
        The map fitted to everybody.
    weights_ : {group: float}
        lambda_t.
    report_ : HeldOut or None
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
    __metadata_request__score: ClassVar = {"scores": UNUSED}

    def __init__(
        self,
        method: str = "sigmoid",
        *,
        shrinkage: float | str = "auto",
        unknown: str = "error",
        cv: int | None = 5,
        bins: int = 10,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.shrinkage = shrinkage
        self.unknown = unknown
        self.cv = cv
        self.bins = bins
        self.random_state = random_state

    def fit(
        self, scores: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit the pooled map, each group's own, and the held-out report.

        Parameters
        ----------
        scores : array of shape (n,) or (n, 1)
            The scores to recalibrate.
        y : array of shape (n,)
            Labels of two values; the larger is the positive one.
        sensitive_features : array, series or frame with n rows
            The group of each row; several columns make a group of each combination.
        sample_weight : array of shape (n,), optional
            Weights, not negative.
        """
        self._check_parameters()
        rows = read_rows(scores, y, sensitive_features, sample_weight, self._range())
        shrinkage = SHRINKAGE[self.method] if self.shrinkage == "auto" else float(self.shrinkage)
        recipe = Recipe(self.method, shrinkage, int(self.bins))
        fitted = fit_groups(rows, recipe)
        self.classes_, self.groups_, self.pooled_ = rows.classes, rows.groups, fitted.pooled
        self.maps_ = {
            group: own or fitted.pooled for group, own in zip(rows.groups, fitted.own, strict=True)
        }
        self.weights_ = dict(zip(rows.groups, fitted.shares, strict=True))
        self.report_ = None
        if self.cv is not None:
            self.report_ = held_out(rows, fitted, recipe, int(self.cv), self.random_state)
        if is_level(fitted.pooled, rows.scores):
            warnings.warn(_LEVEL, IsocostWarning, stacklevel=2)
        return self

    def predict(self, scores: Any, *, sensitive_features: Any = None) -> Floats:
        """The calibrated probability of the positive label, one per row."""
        check_is_fitted(self)
        values = real_scores(scores, self._range())
        groups = groups_of(sensitive_features, len(values))
        strangers = [group for group in groups.names if group not in self.maps_]
        if strangers and self.unknown != "pooled":
            raise _unknown(strangers, self.groups_)
        place = {group: i for i, group in enumerate(self.groups_)}
        known = np.array([place.get(group, -1) for group in groups.names], dtype=np.intp)
        codes = known[groups.codes]
        maps = [self.maps_[group] for group in self.groups_]
        shares = [self.weights_[group] for group in self.groups_]
        return GroupMaps(self.pooled_, maps, shares)(values, codes)

    def predict_proba(self, scores: Any, *, sensitive_features: Any = None) -> Floats:
        """The probabilities of both labels, in the order of ``classes_``."""
        positive = self.predict(scores, sensitive_features=sensitive_features)
        return np.column_stack([1.0 - positive, positive])

    def score(
        self, scores: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> float:
        """Minus the Brier score, so that a grid search can choose the method; higher is better."""
        found = self.predict(scores, sensitive_features=sensitive_features)
        values, w = np.asarray(y), weights_of(sample_weight, len(found))
        strange = ~np.isin(values, self.classes_)
        if values.shape != found.shape or strange.any():
            rule = f"must have the labels {', '.join(map(repr, self.classes_.tolist()))}, one a row"
            got = f"an array of shape {values.shape}, {int(strange.sum())} of them others"
            raise DataError(Problem("y", rule, got, "pass labels of the kind that fit was given"))
        return -float(np.average((found - (values == self.classes_[1])) ** 2, weights=w))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.target_tags.required = True
        return tags

    def _range(self) -> str:
        return f'method="{self.method}"' if self.method in PROBABILITIES else ""

    def _check_parameters(self) -> None:
        check_word("method", self.method, METHODS)
        check_word("unknown", self.unknown, ("error", "pooled"))
        given: dict[str, Any] = {name: getattr(self, name) for name in _RULES}
        number = isinstance(given["shrinkage"], Real) and not isinstance(given["shrinkage"], bool)
        seed = isinstance(given["random_state"], Integral | np.random.RandomState)
        good = {
            "shrinkage": given["shrinkage"] >= 0 if number else given["shrinkage"] == "auto",
            "cv": given["cv"] is None or _is_whole(given["cv"], 2),
            "bins": _is_whole(given["bins"], 1),
            "random_state": given["random_state"] is None or seed,
        }
        problems = [
            Problem(name, rule, repr(given[name]), step)
            for name, (rule, step) in _RULES.items()
            if not good[name]
        ]
        if problems:
            raise UsageError(problems)


_RULES = {
    "shrinkage": ('must be "auto" or a number of at least 0', 'use "auto"'),
    "cv": ("must be a whole number of at least 2, or None", "use 5"),
    "bins": ("must be a whole number of at least 1", "use 10"),
    "random_state": ("must be a whole number, a NumPy RandomState or None", "use 0"),
}


def _is_whole(value: Any, least: int) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, Integral) and int(value) >= least


_LEVEL = (
    "The scores do not rise with the labels, so the pooled map gives everybody the same "
    "probability: check that higher scores mean the larger label."
)


def _unknown(strangers: Sequence[Group], known: Sequence[Group]) -> UsageError:
    """Say which groups were not there in fit, and whether it is a matter of type."""
    texts = {str(group) for group in known}
    by_type = [group for group in strangers if str(group) in texts]
    step = (
        f"give the column the type it had in fit: {by_type[0]!r} is of type "
        f"{type(by_type[0]).__name__} here"
        if by_type
        else 'fit again with rows of these groups, or use unknown="pooled" to give them the map of '
        "everybody"
    )
    shown = ", ".join(map(repr, strangers[:10])) + (" ..." if len(strangers) > 10 else "")
    rule = f"must be a group that fit has seen: {', '.join(map(repr, known[:30]))}"
    return UsageError(Problem("sensitive_features", rule, shown, step))
