"""The geometry of the false-positive / false-negative plane, as numbers.

A group with base rate mu is a point (c_fp, c_fn).  Its calibrated scores lie on the line from
the origin, the perfect score, to (mu, 1 - mu), the score that says mu to everybody.  A point of
that line is s (mu, 1 - mu) with s in [0, 1], and costs s T, where T = a mu + b (1 - mu) is the
trivial cost.  So a cost g is met at s = g / T, and out of reach where s > 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from isocost.checks import check_amount, check_base_rate, check_confidence, check_listed
from isocost.costs import Cost, CostLike, as_cost
from isocost.groups import Group
from isocost.tallies import Tally
from isocost.typing import Floats

Level: TypeAlias = float | tuple[CostLike, float]
"""A level of the cost of the display, or of another cost."""

SLACK = 1e-12
"""Rounding may put a point this far beyond the end of its line."""


@dataclass(frozen=True)
class Crossing:
    """Where a level of cost meets the calibrated line of a group.

    Attributes
    ----------
    point : (c_fp, c_fn)
        The meeting point; beyond the end of the line if it is out of reach.
    share : float
        How far along the line it lies: 0 is the perfect score, 1 the trivial one.
    """

    point: tuple[float, float]
    share: float

    @property
    def reachable(self) -> bool:
        """Whether calibrated scores can be there."""
        return self.share <= 1.0 + SLACK


def trivial_point(base_rate: float) -> tuple[float, float]:
    """Where a group is whose score is the base rate for everybody: (mu, 1 - mu).

    Examples
    --------
    >>> trivial_point(0.25)
    (0.25, 0.75)
    """
    mu = check_base_rate(base_rate)
    return mu, 1.0 - mu


def calibrated_line(base_rate: float) -> Floats:
    """The two ends of a group's calibrated line: the perfect score and the trivial one.

    On it mu c_fn = (1 - mu) c_fp.

    Examples
    --------
    >>> calibrated_line(0.25).tolist()
    [[0.0, 0.0], [0.25, 0.75]]
    """
    return np.array([(0.0, 0.0), trivial_point(base_rate)])


def crossing(
    base_rate: float, cost: CostLike, value: float, group: Group | None = None
) -> Crossing:
    """The point of a group's calibrated line that costs ``value``.

    Examples
    --------
    >>> crossing(0.25, "fpr", 0.125)
    Crossing(point=(0.125, 0.375), share=0.5)
    >>> crossing(0.25, "fpr", 0.5).reachable
    False
    """
    mu, value = check_base_rate(base_rate), check_amount("value", value)
    share = value / float(_trivial_cost(np.array([mu]), cost, group)[0])
    return Crossing((share * mu, share * (1.0 - mu)), share)


def level_curve(
    cost: CostLike,
    value: float,
    group: Group | None = None,
    *,
    stretch: float = 1.0,
    points: int = 201,
) -> Floats:
    """The points of all calibrated lines that cost ``value``, as rows (c_fp, c_fn).

    Where the cost depends on the base rate, so do a and b, and the curve bends: for weighted
    costs it is c_fp c_fn (fp + fn) = value (c_fp + c_fn).  Else it is straight.

    Parameters
    ----------
    cost, value
        The cost and its level.
    group : optional
        Whose numbers to take where the cost differs by group.
    stretch : float
        How far to follow the lines: 1 ends the curve on the diagonal of trivial scores.
    points : int
        Number of points.

    Returns
    -------
    array of shape (points, 2), or (0, 2)
        From low to high base rates; empty if no line reaches this cost.

    Examples
    --------
    >>> level_curve("fpr", 0.25, points=3).round(9).tolist()
    [[0.25, 0.75], [0.25, 0.15], [0.25, 0.0]]
    """
    value = check_amount("value", value)
    if value == 0.0:
        return np.zeros((1, 2))
    low, high = _base_rates_reaching(cost, value / stretch, group)
    if low > high:
        return np.empty((0, 2))
    mu = np.linspace(low, high, points)
    share = value / _trivial_cost(mu, cost, group)
    return np.column_stack([share * mu, share * (1.0 - mu)])


@dataclass(frozen=True)
class LevelLine:
    """One level of cost in the plane; ``group`` is whose it is where the cost differs by group."""

    cost: Cost
    value: float
    group: int | None
    points: Floats


def level_lines(
    levels: Iterable[Level], cost: CostLike, groups: Sequence[Group], base_rates: npt.ArrayLike
) -> list[LevelLine]:
    """The levels as curves, one each, or one per group where the cost differs by group.

    A level is a number, for ``cost``, or a pair of another cost and a number.
    """
    lines = []
    rule, step = "must be a list of numbers, or of pairs of a cost and a number", "use levels=[0.3]"
    for level in check_listed("levels", levels, rule, step):
        its, value = level if isinstance(level, tuple) and len(level) == 2 else (cost, level)
        its, value = as_cost(its), check_amount("levels", value)
        stretch = _stretch(its, value, groups, base_rates)
        for index in range(len(groups)) if its.is_per_group else [None]:
            group = None if index is None else groups[index]
            points = level_curve(its, value, group, stretch=stretch)
            lines.append(LevelLine(its, float(value), index, points))
    return lines


def _stretch(cost: Cost, value: float, groups: Sequence[Group], base_rates: npt.ArrayLike) -> float:
    """How far past the diagonal a level must go to pass all that it is compared with."""
    shares = [
        crossing(mu, cost, value, group).share
        for mu, group in zip(np.asarray(base_rates), groups, strict=True)
    ]
    near = [share for share in shares if share < 2.0]
    return max([1.0, *near]) * (1.0 if max(near, default=0.0) <= 1.0 else 1.03)


def rate_variances(tally: Tally) -> Floats:
    """The variances of c_fp and c_fn of each group, as rows; NaN where one row is all there is.

    The two rates come from different people, the negatives and the positives, so they
    are independent.  Each is a weighted mean m, with variance
    sum w^2 (h - m)^2 / (sum w)^2 times n / (n - 1), n the effective number of rows
    (sum w)^2 / sum w^2.

    Examples
    --------
    >>> import isocost as ic
    >>> t = ic.tally({"score": [0.25, 0.75, 0.5], "label": [0, 0, 1], "group": list("aaa")})
    >>> rate_variances(t)
    array([[0.0625,    nan]])
    """
    cells, sums = tally.cells, tally.totals
    index = cells.group * 2 + cells.label
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (sums.wh / sums.w).ravel()[index]
        # Within a cell weights and scores are taken to be unrelated.
        spread = cells.wh2 / cells.w - 2.0 * mean * cells.wh / cells.w + mean**2
        squares = np.bincount(index, cells.w2 * np.maximum(spread, 0.0), minlength=sums.w.size)
        rows = sums.w**2 / sums.w2
        variance = squares.reshape(sums.w.shape) / sums.w**2 * rows / (rows - 1.0)
    return np.where(rows > 1.0 + SLACK, variance, np.nan)


def ellipse_axes(variances: npt.ArrayLike, confidence: float = 0.95) -> Floats:
    """Half the width and height of the ellipses that cover the truth at this confidence.

    sqrt(q var), with q = -2 log(1 - confidence), the quantile of chi-squared with two degrees
    of freedom.

    Examples
    --------
    >>> ellipse_axes([[0.0001, 0.0004]]).round(4).tolist()
    [[0.0245, 0.049]]
    """
    confidence = check_confidence(confidence)
    quantile = -2.0 * math.log1p(-confidence)
    axes: Floats = np.sqrt(quantile * np.asarray(variances, dtype=np.float64))
    return axes


def tilted_ellipse(
    centre: npt.ArrayLike, covariance: npt.ArrayLike, confidence: float = 0.95, points: int = 73
) -> Floats:
    """The outline that covers the truth at this confidence when the two rates are correlated.

    Examples
    --------
    >>> tilted_ellipse([0.5, 0.5], [[0.0001, 0.0], [0.0, 0.0004]], points=5).round(4).tolist()
    [[0.5245, 0.5], [0.5, 0.549], [0.4755, 0.5], [0.5, 0.451], [0.5245, 0.5]]
    """
    sizes, directions = np.linalg.eigh(np.asarray(covariance, dtype=np.float64))
    circle = ellipse([0.0, 0.0], ellipse_axes(np.maximum(sizes, 0.0), confidence), points)
    outline: Floats = np.asarray(centre, dtype=np.float64) + circle @ directions.T
    return outline


def ellipse(centre: npt.ArrayLike, axes: npt.ArrayLike, points: int = 73) -> Floats:
    """The outline of an ellipse as rows (c_fp, c_fn), closed.

    Examples
    --------
    >>> ellipse([0.5, 0.5], [0.1, 0.2], points=5).round(3).tolist()
    [[0.6, 0.5], [0.5, 0.7], [0.4, 0.5], [0.5, 0.3], [0.6, 0.5]]
    """
    angle = np.linspace(0.0, 2.0 * math.pi, points)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    outline: Floats = np.asarray(centre, dtype=np.float64) + circle * np.asarray(axes)
    return outline


def _trivial_cost(mu: Floats, cost: CostLike, group: Group | None) -> Floats:
    cost = as_cost(cost)
    fp, fn = cost.amounts(group)
    if cost.by_base_rate:
        return (fp + fn) * mu * (1.0 - mu)
    return fp * mu + fn * (1.0 - mu)


def _base_rates_reaching(cost: CostLike, value: float, group: Group | None) -> tuple[float, float]:
    """The lowest and highest base rate whose trivial cost is at least ``value``."""
    cost = as_cost(cost)
    fp, fn = cost.amounts(group)
    if cost.by_base_rate:
        room = 0.25 - value / (fp + fn)
        half = math.sqrt(max(room, 0.0))
        return (0.5 - half, 0.5 + half) if room >= -SLACK else (1.0, 0.0)
    if fp == fn:
        return (0.0, 1.0) if value <= fp * (1.0 + SLACK) else (1.0, 0.0)
    bound = (value - fn) / (fp - fn)
    return (max(bound, 0.0), 1.0) if fp > fn else (0.0, min(bound, 1.0))
