"""Recalibration: each group's scores become its share of positives, by one of four maps.

=============  ==============================================  ==========================
``sigmoid``    1 / (1 + exp(-(slope s + intercept)))           Platt (1999)
``isotonic``   the best non-decreasing steps, joined           Zadrozny and Elkan (2002)
``histogram``  the share of positives in bins of equal mass    Zadrozny and Elkan (2001)
``beta``       logit = a log s - b log(1 - s) + c              Kull et al. (2017)
=============  ==============================================  ==========================

A fitted map is a handful of numbers: call it with scores, or turn it into JSON.  All but the
histogram are non-decreasing.

Maps are fitted to three arrays: scores, and the weight of the positives and of the negatives at
each of them.  A score may occur several times, so rows (weight w, label y) are ``w * y`` and
``w * (1 - y)``, and the cells of a tally are levels of scores.  Weights count like repeated rows.

Each group has its own map, and all share a pooled one: :class:`GroupMaps`.  :func:`recalibrate`
fits them to the cells of a tally and :class:`isocost.learn.GroupCalibrator` to rows.  In a rule
steps become rows that set a score, curves rows that move it along lines between bin edges.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from isocost.cells import add_up
from isocost.checks import as_number, check_whole, check_word
from isocost.errors import DataError, Problem, UncertainWarning, UsageError, listing
from isocost.groups import names_of
from isocost.measures.feasibility import large_groups
from isocost.question import DEFAULT
from isocost.repairs.base import summary_of
from isocost.result import Record
from isocost.rules import NARROWEST, Promise, Row, Rule
from isocost.tallies import ColumnOptions, Tally, TallyLike, as_tally, check_tally
from isocost.typing import Floats, Ints

ERROR = 1e-4
"""Largest distance of the scores of a rule from those of the map it stands for."""

CURVES = ("sigmoid", "beta")


def recalibrate(
    tally: TallyLike,
    method: str = "isotonic",
    *,
    shrinkage: float | str = "auto",
    bins: int = 10,
    **reading: Unpack[ColumnOptions],
) -> Rule:
    """Make the scores of each group calibrated.

    Each group t has its own map, and all share a pooled one.  A score h of group t becomes

        lambda_t map_t(h) + (1 - lambda_t) pooled(h),    lambda_t = n_t / (n_t + shrinkage),

    where n_t is the effective number of its rows with the rarer label.  So a small group borrows
    from everybody; a group with one label uses the pooled map.

    Parameters
    ----------
    tally : Tally, or data
        Of people the scores were not trained on.
    method : {"isotonic", "beta", "sigmoid", "histogram"}
        The map; see :mod:`isocost.repairs.recalibrate`.
    shrinkage : "auto" or float
        The number of rows of the rarer label at which a group's own map counts half; "auto" is
        what :class:`isocost.learn.GroupCalibrator` uses.
    bins : int
        Number of bins of the histogram; data are counted in the usual number of bins.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Returns
    -------
    Rule
        It throws no coin, and promises calibration and nothing else.  ``rule.then(other, tally)``
        makes one rule of it and a repair of ``rule.expected(tally)``.

    Notes
    -----
    A tally knows bins, not scores.  Isotonic and histogram maps give all scores of a bin the same
    value.  For curves, the scores of the rule are within 1e-4 of the map's; only where a curve
    bends by more than that inside one bin, as beta calibration may near 0 and 1, does everybody in
    the bin get the map's value for their mean score.  More bins make it finer.

    The rule is fitted to these people, so on the same people the gap is too good: look at others.

    Examples
    --------
    >>> import isocost as ic, numpy as np
    >>> random = np.random.default_rng(0)
    >>> score, group = random.random(20_000), random.choice(["a", "b"], 20_000)
    >>> label = random.random(20_000) < np.where(group == "a", score, score**2)
    >>> t = ic.tally({"score": score, "label": label, "group": group})
    >>> rule = ic.recalibrate(t, "beta")
    >>> rule.apply(score=[0.5, 0.5], group=["a", "b"]).round(2)
    array([0.5 , 0.26])
    >>> [round(ic.audit(s).groups["b"].calibration_gap, 2) for s in (t, rule.expected(t))]
    [0.16, 0.01]
    """
    tally = as_tally(tally, reading)
    rule = fitted_rule(tally, method, shrinkage=shrinkage, bins=bins)
    for note in rule.notes:
        warnings.warn(note, UncertainWarning, stacklevel=2)
    return rule


def fitted_rule(tally: Tally, method: str, *, shrinkage: float | str, bins: int) -> Rule:
    """The rule of :func:`recalibrate`, whose notes are its warnings."""
    check_tally(tally)
    check_word("method", method, METHODS)
    number = check_shrinkage(method, shrinkage)
    if math.isinf(number):
        step = "use a large number such as 1e9, or isotonic regression of everybody together"
        raise UsageError(Problem("shrinkage", "must be finite in a rule", repr(shrinkage), step))
    bins = check_whole("bins", bins, 1, 1024, "use 10")
    maps = _fit_maps(tally, method, number, bins)
    make = _curve_rows if method in CURVES else _step_rows
    rows = tuple(row for code in range(len(tally.groups)) for row in make(tally, maps, code))
    return Rule(
        groups=tally.groups,
        rows=rows,
        method="recalibrate",
        settings={
            "method": method,
            "shrinkage": shrinkage if isinstance(shrinkage, str) else number,
            "bins": bins,
        },
        notes=tuple(_notes(tally, maps)),
        made_from=summary_of(tally),
        promise=Promise({}, {}, calibrated=True, coin=False),
    )


def _fit_maps(tally: Tally, method: str, shrinkage: float, bins: int) -> GroupMaps:
    """The pooled map and each group's own, from the cells."""
    cells, totals = tally.cells, tally.totals
    if not (totals.w.sum(axis=0) > 0).all():
        kind = ("negatives", "positives")[int(totals.w[:, 1].sum() == 0)]
        rule, step = "must have positives and negatives to be recalibrated", "check the labels"
        raise DataError(Problem("tally", rule, f"no {kind}", step))
    # Steps must not tell the labels of a bin apart, so all its people have one score.
    score = cells.wh / cells.w if method in CURVES else bin_scores(tally)[cells.bin]

    def fit(part: slice) -> CalibrationMap:
        chosen = cells.take(part)
        positives = chosen.w * chosen.label
        w, w2 = (add_up(chosen.label, values, 2) for values in (chosen.w, chosen.w2))
        # As for rows: weights count like repeated rows, unless they are small.
        counts = np.maximum(w, w**2 / w2).tolist()
        negatives = chosen.w - positives
        return fit_map(method, score[part], positives, negatives, counts=(*counts,), bins=bins)

    rarer = (totals.w**2 / np.where(totals.w2 > 0, totals.w2, 1.0)).min(axis=1).tolist()
    own = [fit(cells.of_group(code)) if n else None for code, n in enumerate(rarer)]
    return GroupMaps(fit(slice(None)), own, [own_share(n, shrinkage) for n in rarer])


def bin_scores(tally: Tally, group: int | None = None) -> Floats:
    """The mean score of everybody in each bin, or of a group; the middle where there is nobody."""
    cells = tally.cells.take(slice(None) if group is None else tally.cells.of_group(group))
    cuts = tally.grid.cuts
    w, wh = (add_up(cells.bin, values, tally.grid.size) for values in (cells.w, cells.wh))
    middle = (cuts[:-1] + cuts[1:]) / 2.0
    mean = np.divide(wh, w, out=middle, where=w > 0)
    return np.clip(mean, cuts[:-1], cuts[1:])


# Rows


def _step_rows(tally: Tally, maps: GroupMaps, code: int) -> Iterator[Row]:
    """A row for each run of bins with the same value, or values within the error of it."""
    values = maps.of_group(code, bin_scores(tally), stepwise=True)
    cuts, group, first = tally.grid.cuts, tally.groups[code], 0
    cells = tally.cells.take(tally.cells.of_group(code))
    weight = add_up(cells.bin, cells.w, tally.grid.size)
    while first < len(values):
        away = np.abs(values[first:] - values[first]) > ERROR
        last = first + int(np.argmax(away)) if away.any() else len(values)
        own, w = values[first:last], weight[first:last]
        same = own.min() == own.max() or not w.any()
        value = float(own[0] if same else np.average(own, weights=w))
        yield Row(group, float(cuts[first]), float(cuts[last]), "set", value, 1.0)
        first = last


def _curve_rows(tally: Tally, maps: GroupMaps, code: int) -> Iterator[Row]:
    """Lines between bin edges that lie on the curve, as few as the error allows."""
    cuts, group = tally.grid.cuts, tally.groups[code]

    def curve(scores: Floats) -> Floats:
        return maps.of_group(code, scores.ravel()).reshape(scores.shape)

    # Bins in which no straight line comes close to the curve.
    at_cut, width = curve(cuts), np.diff(cuts)
    share = np.arange(1, 16)[:, None] / 16.0
    line = at_cut[:-1] + share * np.diff(at_cut)
    away = np.abs(curve(cuts[:-1] + share * width) - line).max(axis=0)
    bent = (away > ERROR) | (width < NARROWEST)
    at_mean = curve(bin_scores(tally, code))
    # Four points of each bin at which the curve is compared with a line, from the lower edge on.
    inside = np.linspace(cuts[:-1], cuts[1:], 4, endpoint=False, axis=1)
    truth = curve(inside)
    first = 0
    while first < tally.grid.size:
        last, ends = first + 1, (float(at_mean[first]), float(at_mean[first]))
        if not bent[first]:
            # The farthest edge to which one line from the first edge stays close to the curve.
            beyond = first + int(np.argmax(np.append(bent[first:], True))) + 1
            while beyond - last > 1:
                middle = (last + beyond) // 2
                slope = (at_cut[middle] - at_cut[first]) / (cuts[middle] - cuts[first])
                line = at_cut[first] + slope * (inside[first:middle] - cuts[first])
                close = np.abs(line - truth[first:middle]).max() <= 0.9 * ERROR
                last, beyond = (middle, beyond) if close else (last, middle)
            ends = float(at_cut[first]), float(at_cut[last])
        yield Row.leading(group, float(cuts[first]), float(cuts[last]), ends)
        first = last


def _notes(tally: Tally, maps: GroupMaps) -> Iterator[str]:
    """Notes on groups that are too small for a map of their own."""
    names, large = names_of(tally.groups), set(large_groups(tally, DEFAULT.min_group))
    pooled = [names[g] for g, own in zip(tally.groups, maps.own, strict=True) if own is None]
    small = [names[g] for g in tally.groups if g not in large and names[g] not in pooled]
    if pooled:
        yield (
            f"Recalibrated by the map of all groups together, because they have positives only or "
            f"negatives only: {listing(pooled)}."
        )
    if small:
        yield (
            f"There are few people of {listing(small)}: their scores are recalibrated mostly by "
            "the map of all groups together, and it is not known how well it fits them."
        )


# Maps

Counts = tuple[float, float] | None
"""The effective number of negatives and positives; None to compute it from the weights."""

METHODS = ("sigmoid", "isotonic", "histogram", "beta")

PROBABILITIES = ("histogram", "beta")
"""The methods whose scores have to lie in [0, 1]."""

SHRINKAGE = {"sigmoid": 10.0, "beta": 10.0, "isotonic": 30.0, "histogram": 75.0}
"""The values of ``shrinkage="auto"``: those of least regret in tools/choose_shrinkage.py."""

CLIP = 1e-6
"""Scores of 0 and 1 have no logarithm; beta calibration moves them in by this much."""


class CalibrationMap(Record, ABC):
    """Turns scores into probabilities; a dataclass of the numbers that define it."""

    also = ("method",)

    method: ClassVar[str]

    def __post_init__(self) -> None:
        # Arrays are read-only, so that a fitted map cannot be changed by accident.
        for field in fields(self):  # type: ignore[arg-type]
            if field.type == "Floats":
                array = np.array(getattr(self, field.name), dtype=np.float64)
                array.flags.writeable = False
                object.__setattr__(self, field.name, array)

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """The probability of each score."""
        return np.asarray(self._read(np.asarray(scores, dtype=np.float64)))

    @abstractmethod
    def _read(self, scores: Floats) -> Floats: ...

    def steps(self, scores: npt.ArrayLike) -> Floats:
        """The probability of each score, without lines between the steps of a map."""
        return self(scores)


@dataclass(frozen=True)
class SigmoidMap(CalibrationMap):
    """Platt's map, 1 / (1 + exp(-(slope s + intercept))), with slope >= 0."""

    method = "sigmoid"
    slope: float
    intercept: float

    def _read(self, scores: Floats) -> Any:
        from scipy.special import expit

        return expit(self.slope * scores + self.intercept)


@dataclass(frozen=True)
class BetaMap(CalibrationMap):
    """Beta calibration, logit = a log s - b log(1 - s) + c, with a, b >= 0.

    a = b = 1 and c = 0 leave a score as it is, so scores that are calibrated already can stay
    so, which no sigmoid of a probability can do.
    """

    method = "beta"
    a: float
    b: float
    c: float

    def _read(self, scores: Floats) -> Any:
        from scipy.special import expit

        left, right = _logarithms(scores).T
        return expit(self.a * left + self.b * right + self.c)


@dataclass(frozen=True, eq=False)
class IsotonicMap(CalibrationMap):
    """Straight lines between the points of an isotonic regression, constant beyond its ends."""

    method = "isotonic"
    positions: Floats
    values: Floats

    def _read(self, scores: Floats) -> Floats:
        return np.clip(np.interp(scores, self.positions, self.values), 0.0, 1.0)

    def steps(self, scores: npt.ArrayLike) -> Floats:
        """The map without the lines between its steps: a score gets the value of the nearest."""
        middle = (self.positions[1:] + self.positions[:-1]) / 2.0
        return np.clip(self.values[np.searchsorted(middle, scores, side="right")], 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class HistogramMap(CalibrationMap):
    """The share of positives of each bin; bin i begins at edge i - 1, the first has no beginning.

    Shares are not smoothed, so that on the rows it was fitted to the mean probability is the
    base rate.  This map need not be monotone.
    """

    method = "histogram"
    edges: Floats
    values: Floats

    def _read(self, scores: Floats) -> Floats:
        return np.asarray(self.values[np.searchsorted(self.edges, scores, side="right")])


def fit_map(
    method: str,
    scores: Floats,
    positives: Floats,
    negatives: Floats,
    *,
    counts: Counts = None,
    bins: int = 10,
) -> CalibrationMap:
    """Fit one of the maps to the weight of the positives and of the negatives at each score.

    Scores may repeat; each needs some weight, and both labels must occur.  ``counts`` is the
    effective number of negatives and positives where weights stand for several rows each, on which
    only Platt's targets depend; ``bins`` is the number of bins of the histogram.
    """
    if method == "histogram":
        # Bins of about equal weight; equal scores share a bin.
        level, index = np.unique(scores, return_inverse=True)
        total = add_up(index, positives + negatives, len(level))
        positive = add_up(index, positives, len(level))
        middle = (np.cumsum(total) - total / 2.0) / total.sum()
        bin_ = np.minimum((middle * bins).astype(np.intp), bins - 1)
        first = np.flatnonzero(np.diff(bin_, prepend=-1))
        shares = np.add.reduceat(positive, first) / np.add.reduceat(total, first)
        # Halving first: the sum of two huge scores may overflow; rounding must not pass the level.
        below, above = level[first[1:] - 1], level[first[1:]]
        edges = np.minimum(below / 2.0 + above / 2.0, above)
        edges = np.where(edges > below, edges, above)
        return HistogramMap(edges, np.clip(shares, 0.0, 1.0))
    if method == "sigmoid":
        (slope,), intercept = _fit_logit(scores[:, None], positives, negatives, counts)
        return SigmoidMap(slope, intercept)
    if method == "beta":
        (a, b), c = _fit_logit(_logarithms(scores), positives, negatives, counts)
        return BetaMap(a, b, c)
    from sklearn.isotonic import IsotonicRegression

    total = positives + negatives
    fitted = IsotonicRegression(out_of_bounds="clip").fit(scores, positives / total, total)
    return IsotonicMap(fitted.X_thresholds_, fitted.y_thresholds_)


def effective_number(w: Floats) -> float:
    """Kish's effective number of rows, (sum w)^2 / sum w^2; 0 if there is no weight."""
    return float(w.sum() ** 2 / (w**2).sum()) if w.any() else 0.0


def own_share(rarer: float, shrinkage: float) -> float:
    """The weight of a group's own map, n / (n + shrinkage), for n rows of its rarer label."""
    return rarer / (rarer + shrinkage) if rarer else 0.0


def check_shrinkage(method: str, shrinkage: Any) -> float:
    """The shrinkage as a number; that of the method for "auto"."""
    if isinstance(shrinkage, str) and shrinkage == "auto":
        return SHRINKAGE[method]
    # Other text is NaN as a number, and a comparison with NaN is false.
    if not as_number(shrinkage) >= 0.0:
        rule = 'must be "auto" or a number that is at least 0'
        raise UsageError(Problem("shrinkage", rule, repr(shrinkage), 'use "auto"'))
    return float(shrinkage)


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
        out = self.of_group(-1, scores)
        for code, own in enumerate(self.own):
            if own is not None:
                mine = np.flatnonzero(codes == code)
                out[mine] = self.of_group(code, scores[mine])
        return out

    def of_group(self, code: int, scores: Floats, *, stepwise: bool = False) -> Floats:
        """The probabilities for one group; ``stepwise`` without lines between isotonic steps."""

        def read(fitted: CalibrationMap) -> Floats:
            return fitted.steps(scores) if stepwise else fitted(scores)

        out, own = read(self.pooled), None if code < 0 else self.own[code]
        if own is not None:
            out = self.shares[code] * read(own) + (1.0 - self.shares[code]) * out
        return np.clip(out, 0.0, 1.0)


def _logarithms(scores: Floats) -> Floats:
    inside = np.clip(scores, CLIP, 1.0 - CLIP)
    return np.column_stack([np.log(inside), -np.log1p(-inside)])


def _fit_logit(
    features: Floats, positives: Floats, negatives: Floats, counts: Counts
) -> tuple[list[float], float]:
    """Maximum likelihood for logit = features @ slopes + intercept, with slopes >= 0.

    The likelihood is concave: if its maximum has a negative slope, the maximum under the
    constraint has some slope at 0.
    """
    # Platt's targets replace 1 and 0, so that there is a finite maximum when the scores separate
    # the labels.  The sum of weights makes a weight of 2 the same as a row that occurs twice; the
    # effective number keeps weights that add up to 1 from being taken for a single row.
    n0, n1 = counts or (max(float(w.sum()), effective_number(w)) for w in (negatives, positives))
    high, low = (n1 + 1.0) / (n1 + 2.0), 1.0 / (n0 + 2.0)
    ones = positives * high + negatives * low
    zeros = positives * (1.0 - high) + negatives * (1.0 - low)
    size = features.shape[1]
    for free in range(size, 0, -1):
        candidates = []
        for face in combinations(range(size), free):
            fitted, intercept = _fit_freely(features[:, face], ones, zeros)
            if fitted.min() >= 0.0:
                slopes = np.zeros(size)
                slopes[list(face)] = fitted
                raw = features @ slopes + intercept
                loss = float(((ones + zeros) * np.logaddexp(0.0, raw) - ones * raw).sum())
                candidates.append((loss, slopes.tolist(), intercept))
        if candidates:
            _, best, intercept = min(candidates)
            return best, intercept
    return [0.0] * size, _constant_logit(ones, zeros)


def _constant_logit(ones: Floats, zeros: Floats) -> float:
    from scipy.special import logit

    return float(logit(ones.sum() / (ones.sum() + zeros.sum())))


def _fit_freely(features: Floats, ones: Floats, zeros: Floats) -> tuple[Floats, float]:
    """Logistic regression in which each row counts for both labels."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    w = ones + zeros
    size = np.abs(features).max(axis=0)
    # A slope over smaller scores would not be finite: they are all the same.
    size = np.where(size > 1e-290, size, 1.0)
    scaled = features / size
    center = np.average(scaled, axis=0, weights=w)
    variance, directions = np.linalg.eigh(((scaled - center) * w[:, None]).T @ (scaled - center))
    variance = variance / w.sum()
    # Directions in which features hardly vary, relative to the widest, are left alone.
    wide = variance > 1e-12 * max(float(variance.max()), 1e-12)
    if not wide.any():
        return np.zeros(len(size)), _constant_logit(ones, zeros)
    # In these directions features are uncorrelated, which Newton's method likes.
    rotation = directions[:, wide] / np.sqrt(variance[wide])
    rotated = (scaled - center) @ rotation
    labels = np.repeat([1.0, 0.0], len(w))
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)
    with warnings.catch_warnings():
        # Where nothing is left to gain, scikit-learn switches to its other solver.
        warnings.filterwarnings("ignore", "Line search of Newton solver", ConvergenceWarning)
        weights = np.concatenate([ones, zeros]) / w.mean()
        model.fit(np.concatenate([rotated, rotated]), labels, sample_weight=weights)
    slopes = rotation @ model.coef_[0]
    return slopes / size, float(model.intercept_[0] - slopes @ center)
