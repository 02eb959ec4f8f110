"""Four maps from scores to probabilities, and how each is fitted.

=============  ==============================================  ==========================
``sigmoid``    1 / (1 + exp(-(slope s + intercept)))           Platt (1999)
``isotonic``   the best non-decreasing steps, joined           Zadrozny and Elkan (2002)
``histogram``  the share of positives in bins of equal mass    Zadrozny and Elkan (2001)
``beta``       logit = a log s - b log(1 - s) + c              Kull et al. (2017)
=============  ==============================================  ==========================

A fitted map is a handful of numbers: call it with scores, or turn it into JSON.  All but the
histogram never reverse an order: of two scores the higher one keeps at least the probability
of the lower.  Weights count like repeated rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from isocost.tallies import add_up

__all__ = [
    "METHODS",
    "PROBABILITIES",
    "BetaMap",
    "CalibrationMap",
    "HistogramMap",
    "IsotonicMap",
    "SigmoidMap",
    "effective_number",
    "fit_map",
]

Floats = npt.NDArray[np.float64]

METHODS = ("sigmoid", "isotonic", "histogram", "beta")
PROBABILITIES = ("histogram", "beta")
"""The methods whose scores have to lie in [0, 1]."""

CLIP = 1e-6
"""Scores of 0 and 1 have no logarithm; beta calibration moves them in by this much."""

_RANK = 1e-12
"""Directions in which features vary by less, relative to the widest, are left alone."""


class CalibrationMap(Protocol):
    """Turns scores into probabilities."""

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """The probability of each score."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The numbers that make the map, for JSON."""
        ...


@dataclass(frozen=True)
class SigmoidMap:
    """Platt's map, 1 / (1 + exp(-(slope s + intercept))), with slope >= 0.

    Examples
    --------
    >>> SigmoidMap(slope=2.0, intercept=-1.0)([0.5, 3.0]).round(3)
    array([0.5  , 0.993])
    """

    slope: float
    intercept: float

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """The probability of each score."""
        raw = self.slope * np.asarray(scores, dtype=np.float64) + self.intercept
        return np.asarray(expit(raw))

    def to_dict(self) -> dict[str, Any]:
        """The numbers that make the map, for JSON."""
        return {"method": "sigmoid", "slope": self.slope, "intercept": self.intercept}


@dataclass(frozen=True)
class BetaMap:
    """Beta calibration, logit = a log s - b log(1 - s) + c, with a, b >= 0.

    a = b = 1 and c = 0 leave a score as it is, so scores that are calibrated already can stay
    so, which no sigmoid of a probability can do.

    Examples
    --------
    >>> BetaMap(a=1.0, b=1.0, c=0.0)([0.2, 0.9]).round(6)
    array([0.2, 0.9])
    """

    a: float
    b: float
    c: float

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """The probability of each score."""
        left, right = _logarithms(np.asarray(scores, dtype=np.float64)).T
        return np.asarray(expit(self.a * left + self.b * right + self.c))

    def to_dict(self) -> dict[str, Any]:
        """The numbers that make the map, for JSON."""
        return {"method": "beta", "a": self.a, "b": self.b, "c": self.c}


class _Arrays:
    """Read-only arrays, so that a fitted map cannot be changed by accident."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            array = np.array(getattr(self, field.name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, field.name, array)


@dataclass(frozen=True, eq=False)
class IsotonicMap(_Arrays):
    """Straight lines between the points of an isotonic regression, level beyond its ends.

    Examples
    --------
    >>> IsotonicMap([0.2, 0.4], [0.1, 0.5])([0.0, 0.3, 1.0])
    array([0.1, 0.3, 0.5])
    """

    positions: Floats
    values: Floats

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """The probability of each score."""
        found = np.interp(np.asarray(scores, dtype=np.float64), self.positions, self.values)
        return np.clip(found, 0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """The numbers that make the map, for JSON."""
        points = {"positions": self.positions.tolist(), "values": self.values.tolist()}
        return {"method": "isotonic", **points}


@dataclass(frozen=True, eq=False)
class HistogramMap(_Arrays):
    """The share of positives of each bin; bin i begins at edge i - 1, the first has no beginning.

    Shares are not smoothed, so that on the rows it was fitted to the mean probability is the
    base rate.  Neighbouring bins may change places: this map need not be monotone.

    Examples
    --------
    >>> HistogramMap(edges=[0.5], values=[0.1, 0.7])([0.4, 0.5])
    array([0.1, 0.7])
    """

    edges: Floats
    values: Floats

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """The probability of each score."""
        place = np.searchsorted(self.edges, np.asarray(scores, dtype=np.float64), side="right")
        return np.asarray(self.values[place])

    def to_dict(self) -> dict[str, Any]:
        """The numbers that make the map, for JSON."""
        parts = {"edges": self.edges.tolist(), "values": self.values.tolist()}
        return {"method": "histogram", **parts}


def fit_map(method: str, scores: Floats, y: Floats, w: Floats, bins: int = 10) -> CalibrationMap:
    """Fit one of the maps to scores, labels 0 and 1 (both must occur) and positive weights.

    Examples
    --------
    >>> scores, labels = np.array([0.1, 0.2, 0.8, 0.9]), np.array([0.0, 1.0, 0.0, 1.0])
    >>> fit_map("histogram", scores, labels, np.ones(4), bins=2)([0.3, 0.6])
    array([0.5, 0.5])
    """
    if method == "sigmoid":
        (slope,), intercept = _fit_logit(scores[:, None], y, w)
        return SigmoidMap(slope, intercept)
    if method == "beta":
        (a, b), c = _fit_logit(_logarithms(scores), y, w)
        return BetaMap(a, b, c)
    if method == "isotonic":
        steps = IsotonicRegression(out_of_bounds="clip").fit(scores, y, sample_weight=w)
        return IsotonicMap(steps.X_thresholds_, steps.y_thresholds_)
    return _fit_histogram(scores, y, w, bins)


def effective_number(w: Floats) -> float:
    """Kish's effective number of rows, (sum w)^2 / sum w^2; 0 for no rows.

    Examples
    --------
    >>> effective_number(np.array([1.0, 1.0, 1.0])), effective_number(np.array([8.0, 1.0, 1.0]))
    (3.0, 1.5151515151515151)
    """
    return float(w.sum() ** 2 / (w**2).sum()) if len(w) else 0.0


def _logarithms(scores: Floats) -> Floats:
    inside = np.clip(scores, CLIP, 1.0 - CLIP)
    return np.column_stack([np.log(inside), -np.log1p(-inside)])


def _fit_histogram(scores: Floats, y: Floats, w: Floats, bins: int) -> HistogramMap:
    """People with one score stay together, so bins are only as equal as the scores allow."""
    level, place = np.unique(scores, return_inverse=True)
    total = add_up(place, w, len(level))
    positive = add_up(place, w * y, len(level))
    middle = (np.cumsum(total) - total / 2.0) / total.sum()
    bin_ = np.minimum((middle * bins).astype(np.intp), bins - 1)
    first = np.flatnonzero(np.diff(bin_, prepend=-1))
    shares = np.add.reduceat(positive, first) / np.add.reduceat(total, first)
    # Halving first: the sum of two huge scores may overflow, and rounding must not pass the level.
    edges = np.minimum(level[first[1:] - 1] / 2.0 + level[first[1:]] / 2.0, level[first[1:]])
    edges = np.where(edges > level[first[1:] - 1], edges, level[first[1:]])
    return HistogramMap(edges, np.clip(shares, 0.0, 1.0))


def _fit_logit(features: Floats, y: Floats, w: Floats) -> tuple[list[float], float]:
    """Maximum likelihood for logit = features @ slopes + intercept, with slopes >= 0.

    Platt's targets (n1 + 1) / (n1 + 2) and 1 / (n0 + 2) stand for the labels 1 and 0, so that there
    is a finite answer when the scores separate them.  The likelihood is concave: if its
    maximum has a negative slope, the maximum under the constraint has some slope at 0.
    """
    target = _platt_targets(y, w)
    size = features.shape[1]
    for kept in range(size, 0, -1):
        answers = []
        for face in combinations(range(size), kept):
            slopes, intercept = _fit_freely(features[:, face], target, w)
            if min(slopes) >= 0.0:
                full = [0.0] * size
                for place, slope in zip(face, slopes, strict=True):
                    full[place] = slope
                answers.append((_loss(features, target, w, full, intercept), full, intercept))
        if answers:
            _, best, intercept = min(answers)
            return best, intercept
    return [0.0] * size, float(logit(np.average(target, weights=w)))


def _platt_targets(y: Floats, w: Floats) -> Floats:
    # The sum of weights makes a weight of 2 the same as a row that stands there twice; the
    # effective number keeps weights that add up to 1 from being taken for a single row.
    counts = [max(float(part.sum()), effective_number(part)) for part in (w[y == 0], w[y == 1])]
    return np.where(y == 1, (counts[1] + 1.0) / (counts[1] + 2.0), 1.0 / (counts[0] + 2.0))


def _fit_freely(features: Floats, target: Floats, w: Floats) -> tuple[list[float], float]:
    """Logistic regression on targets between 0 and 1: each row counts for both labels."""
    size = np.abs(features).max(axis=0)
    scaled = features / np.where(size > 0, size, 1.0)
    centre = np.average(scaled, axis=0, weights=w)
    variance, directions = np.linalg.eigh(((scaled - centre) * w[:, None]).T @ (scaled - centre))
    variance = variance / w.sum()
    wide = variance > _RANK * max(float(variance.max()), _RANK)
    if not wide.any():
        return [0.0] * len(size), float(logit(np.average(target, weights=w)))
    # In these directions features are uncorrelated, which Newton's method likes.
    turn = directions[:, wide] / np.sqrt(variance[wide])
    turned = (scaled - centre) @ turn
    both = np.repeat([1.0, 0.0], len(target))
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)
    shares = np.concatenate([w * target, w * (1.0 - target)]) / w.mean()
    with warnings.catch_warnings():
        # Where nothing is left to gain, scikit-learn hands over to its other solver by itself.
        warnings.filterwarnings("ignore", "Line search of Newton solver", ConvergenceWarning)
        model.fit(np.concatenate([turned, turned]), both, sample_weight=shares)
    slopes = turn @ model.coef_[0]
    intercept = float(model.intercept_[0] - slopes @ centre)
    return (slopes / np.where(size > 0, size, 1.0)).tolist(), intercept


def _loss(
    features: Floats, target: Floats, w: Floats, slopes: Sequence[float], intercept: float
) -> float:
    raw = features @ np.asarray(slopes) + intercept
    return float((w * (np.logaddexp(0.0, raw) - target * raw)).sum())
