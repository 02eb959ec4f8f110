"""Four maps from scores to probabilities, and how each is fitted.

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

Where there are groups, each has its own map, and all share a pooled one: :class:`GroupMaps`.
:func:`isocost.recalibrate` and :class:`isocost.learn.GroupCalibrator` are both made of this.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from isocost.cells import add_up
from isocost.checks import as_number
from isocost.errors import Problem, UsageError
from isocost.result import Record
from isocost.typing import Floats, Ints

Counts = tuple[float, float] | None
"""The effective number of negatives and positives; None to compute it from the weights."""

METHODS = ("sigmoid", "isotonic", "histogram", "beta")

PROBABILITIES = ("histogram", "beta")
"""The methods whose scores have to lie in [0, 1]."""

SHRINKAGE = {"sigmoid": 10.0, "beta": 10.0, "isotonic": 30.0, "histogram": 75.0}
"""The values of ``shrinkage="auto"``: those of least regret in tools/choose_shrinkage.py."""

CLIP = 1e-6
"""Scores of 0 and 1 have no logarithm; beta calibration moves them in by this much."""

_RANK = 1e-12
"""Directions in which features vary by less, relative to the widest, are left alone."""


class CalibrationMap(Record, ABC):
    """Turns scores into probabilities; a dataclass of the numbers that define it."""

    also = ("method",)

    method: ClassVar[str]

    @abstractmethod
    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """The probability of each score."""


@dataclass(frozen=True)
class SigmoidMap(CalibrationMap):
    """Platt's map, 1 / (1 + exp(-(slope s + intercept))), with slope >= 0.

    Examples
    --------
    >>> SigmoidMap(slope=2.0, intercept=-1.0)([0.5, 3.0]).round(3)
    array([0.5  , 0.993])
    """

    method = "sigmoid"
    slope: float
    intercept: float

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """The probability of each score."""
        from scipy.special import expit

        raw = self.slope * np.asarray(scores, dtype=np.float64) + self.intercept
        return np.asarray(expit(raw))


@dataclass(frozen=True)
class BetaMap(CalibrationMap):
    """Beta calibration, logit = a log s - b log(1 - s) + c, with a, b >= 0.

    a = b = 1 and c = 0 leave a score as it is, so scores that are calibrated already can stay
    so, which no sigmoid of a probability can do.

    Examples
    --------
    >>> BetaMap(a=1.0, b=1.0, c=0.0)([0.2, 0.9]).round(6)
    array([0.2, 0.9])
    """

    method = "beta"
    a: float
    b: float
    c: float

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """The probability of each score."""
        from scipy.special import expit

        left, right = _logarithms(np.asarray(scores, dtype=np.float64)).T
        return np.asarray(expit(self.a * left + self.b * right + self.c))


class _ArrayMap(CalibrationMap):
    """Read-only arrays, so that a fitted map cannot be changed by accident."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            array = np.array(getattr(self, field.name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, field.name, array)


@dataclass(frozen=True, eq=False)
class IsotonicMap(_ArrayMap):
    """Straight lines between the points of an isotonic regression, constant beyond its ends.

    Examples
    --------
    >>> IsotonicMap([0.2, 0.4], [0.1, 0.5])([0.0, 0.3, 1.0])
    array([0.1, 0.3, 0.5])
    """

    method = "isotonic"
    positions: Floats
    values: Floats

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """The probability of each score."""
        values = np.interp(np.asarray(scores, dtype=np.float64), self.positions, self.values)
        return np.clip(values, 0.0, 1.0)

    def steps(self, scores: npt.ArrayLike) -> Floats:
        """The map without the lines between its steps: a score gets the value of the nearest one.

        Examples
        --------
        >>> IsotonicMap([0.2, 0.4], [0.1, 0.5]).steps([0.0, 0.29, 0.31, 1.0])
        array([0.1, 0.1, 0.5, 0.5])
        """
        middle = (self.positions[1:] + self.positions[:-1]) / 2.0
        return np.clip(self.values[np.searchsorted(middle, scores, side="right")], 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class HistogramMap(_ArrayMap):
    """The share of positives of each bin; bin i begins at edge i - 1, the first has no beginning.

    Shares are not smoothed, so that on the rows it was fitted to the mean probability is the
    base rate.  This map need not be monotone.

    Examples
    --------
    >>> HistogramMap(edges=[0.5], values=[0.1, 0.7])([0.4, 0.5])
    array([0.1, 0.7])
    """

    method = "histogram"
    edges: Floats
    values: Floats

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """The probability of each score."""
        bin_ = np.searchsorted(self.edges, np.asarray(scores, dtype=np.float64), side="right")
        return np.asarray(self.values[bin_])


def fit_map(
    method: str,
    scores: Floats,
    positives: Floats,
    negatives: Floats,
    *,
    counts: Counts = None,
    bins: int = 10,
) -> CalibrationMap:
    """Fit one of the maps.

    Parameters
    ----------
    method : {"sigmoid", "isotonic", "histogram", "beta"}
        Which map.
    scores : array of shape (n,)
        The scores; they may repeat.
    positives, negatives : arrays of shape (n,)
        The weight of the positives and of the negatives at each score.  Each score needs some
        weight, and both labels must occur.
    counts : (float, float), optional
        The effective number of negatives and positives, for weights that stand for several rows
        each; by default a weight stands for one row.  Only Platt's targets depend on it.
    bins : int
        Number of bins of the histogram.

    Examples
    --------
    >>> scores = np.array([0.1, 0.2, 0.8, 0.9])
    >>> positives, negatives = np.array([0.0, 1.0, 0.0, 3.0]), np.array([1.0, 0.0, 1.0, 0.0])
    >>> fit_map("histogram", scores, positives, negatives, bins=2)([0.3, 0.9])
    array([0.33333333, 1.        ])
    """
    if method == "histogram":
        return fit_histogram(scores, positives, negatives, bins)
    if method == "isotonic":
        return fit_isotonic(scores, positives, negatives)
    fit: Callable[..., CalibrationMap] = fit_sigmoid if method == "sigmoid" else fit_beta
    return fit(scores, positives, negatives, counts)


def fit_sigmoid(
    scores: Floats, positives: Floats, negatives: Floats, counts: Counts = None
) -> SigmoidMap:
    """Platt scaling."""
    (slope,), intercept = _fit_logit(scores[:, None], positives, negatives, counts)
    return SigmoidMap(slope, intercept)


def fit_beta(
    scores: Floats, positives: Floats, negatives: Floats, counts: Counts = None
) -> BetaMap:
    """Beta calibration; scores in [0, 1]."""
    (a, b), c = _fit_logit(_logarithms(scores), positives, negatives, counts)
    return BetaMap(a, b, c)


def fit_isotonic(scores: Floats, positives: Floats, negatives: Floats) -> IsotonicMap:
    """Isotonic regression of the share of positives."""
    from sklearn.isotonic import IsotonicRegression

    total = positives + negatives
    fitted = IsotonicRegression(out_of_bounds="clip").fit(scores, positives / total, total)
    return IsotonicMap(fitted.X_thresholds_, fitted.y_thresholds_)


def fit_histogram(
    scores: Floats, positives: Floats, negatives: Floats, bins: int = 10
) -> HistogramMap:
    """Bins of about equal weight; equal scores share a bin."""
    level, index = np.unique(scores, return_inverse=True)
    total = add_up(index, positives + negatives, len(level))
    positive = add_up(index, positives, len(level))
    middle = (np.cumsum(total) - total / 2.0) / total.sum()
    bin_ = np.minimum((middle * bins).astype(np.intp), bins - 1)
    first = np.flatnonzero(np.diff(bin_, prepend=-1))
    shares = np.add.reduceat(positive, first) / np.add.reduceat(total, first)
    # Halving first: the sum of two huge scores may overflow, and rounding must not pass the level.
    below, above = level[first[1:] - 1], level[first[1:]]
    edges = np.minimum(below / 2.0 + above / 2.0, above)
    edges = np.where(edges > below, edges, above)
    return HistogramMap(edges, np.clip(shares, 0.0, 1.0))


def effective_number(w: Floats) -> float:
    """Kish's effective number of rows, (sum w)^2 / sum w^2; 0 if there is no weight.

    Examples
    --------
    >>> effective_number(np.array([1.0, 1.0, 1.0])), effective_number(np.array([8.0, 1.0, 1.0]))
    (3.0, 1.5151515151515151)
    """
    return float(w.sum() ** 2 / (w**2).sum()) if w.any() else 0.0


def own_share(rarer: float, shrinkage: float) -> float:
    """The weight of a group's own map, n / (n + shrinkage), for n rows of its rarer label.

    Examples
    --------
    >>> own_share(30.0, 10.0), own_share(0.0, 0.0), own_share(5.0, np.inf)
    (0.75, 0.0, 0.0)
    """
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

    Examples
    --------
    >>> maps = GroupMaps(BetaMap(1.0, 1.0, 0.0), [HistogramMap([], [0.4]), None], [0.5, 0.0])
    >>> maps(np.array([0.2, 0.2]), np.array([0, 1])).round(6)
    array([0.3, 0.2])
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
            steps = stepwise and isinstance(fitted, IsotonicMap)
            return fitted.steps(scores) if steps else fitted(scores)  # type: ignore[attr-defined]

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
    ones, zeros = _platt_weights(positives, negatives, counts)
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


def _platt_weights(positives: Floats, negatives: Floats, counts: Counts) -> tuple[Floats, Floats]:
    """The weights of the labels 1 and 0 under Platt's targets.

    The targets (n1 + 1) / (n1 + 2) and 1 / (n0 + 2) replace 1 and 0, so that there is a finite
    maximum when the scores separate the labels.
    """
    # The sum of weights makes a weight of 2 the same as a row that occurs twice; the effective
    # number keeps weights that add up to 1 from being taken for a single row.
    n0, n1 = counts or (max(float(w.sum()), effective_number(w)) for w in (negatives, positives))
    high, low = (n1 + 1.0) / (n1 + 2.0), 1.0 / (n0 + 2.0)
    return positives * high + negatives * low, positives * (1.0 - high) + negatives * (1.0 - low)


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
    wide = variance > _RANK * max(float(variance.max()), _RANK)
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
