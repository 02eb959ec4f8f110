"""Which groups' costs differ, and by how much: bounds for all pairs of groups at once.

Groups are different people, so their numbers are independent.  The difference of two of them is
bounded by MOVER from the two intervals, which keeps their asymmetry.  For statements about
all pairs the intervals are stretched first, by the ratio of Tukey's studentized range (for
unequal groups this is the method of Tukey and Kramer, which is never too narrow) to the normal
quantile; with two groups the ratio is 1.

The questions are asked in a fixed order, each only if the one before it was answered with yes,
so together they are wrong no more often than one of them alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from isocost.measures.margins import Interval, around, normal_quantile
from isocost.typing import Floats, Ints

__all__ = [
    "CostBounds",
    "alpha_intervals",
    "excess",
    "highest",
    "pair_bounds",
    "range_interval",
    "range_quantile",
    "target_interval",
]

SLACK = 1e-9
"""Differences below this are rounding."""


@lru_cache(maxsize=256)
def range_quantile(probability: float, groups: int) -> float:
    """The quantile of the range of so many standard normal variates.

    P(range <= q) = k int phi(x) (Phi(x + q) - Phi(x))^(k - 1) dx.

    Examples
    --------
    >>> round(range_quantile(0.95, 2), 3), round(range_quantile(0.95, 10), 3)
    (2.772, 4.474)
    """
    from scipy.special import ndtr

    if groups == 2:
        return math.sqrt(2.0) * normal_quantile((1.0 + probability) / 2.0)
    x, density = _normal_grid()
    q = np.arange(0.0, 16.0, 0.01)[:, None]
    inside = (ndtr(x + q) - ndtr(x)) ** (groups - 1)
    return float(np.interp(probability, groups * inside @ density, q[:, 0]))


def _spread_within(size: Floats, above: int, below: int, weight: float) -> Floats:
    """P(a max z - b min u <= size) for standard normal z and u, with a^2 = weight = 1 - b^2."""
    from scipy.special import ndtr

    x, density = _normal_grid()
    reach = ndtr((size[:, None] - math.sqrt(weight) * x) / math.sqrt(1.0 - weight)) ** below
    within: Floats = reach @ (above * ndtr(x) ** (above - 1) * density)
    return np.clip(within, 0.0, 1.0)


@lru_cache(maxsize=256)
def _spread_quantile(probability: float, above: int, below: int, weight: float) -> float:
    size = np.arange(-4.0, 12.0, 0.02)
    return float(np.interp(probability, _spread_within(size, above, below, weight), size))


@lru_cache(maxsize=1)
def _normal_grid() -> tuple[Floats, Floats]:
    """Points, and the probability that a standard normal variate is near each."""
    x = np.arange(-9.0, 9.0, 0.05)
    density = np.exp(-(x**2) / 2.0)
    return x, density / density.sum()


@dataclass(frozen=True)
class CostBounds:
    """The cost and the trivial cost of each group, with their intervals.

    Attributes
    ----------
    cost, trivial : array (groups, 3)
        Value, lower end and upper end.
    covariance : array (groups,)
        Of a group's cost with its trivial cost.
    tolerance, confidence : float
        How far costs may differ, and the confidence of the intervals.
    rows : float
        How many rows there are in all.
    """

    cost: Floats
    trivial: Floats
    covariance: Floats
    tolerance: float
    confidence: float
    rows: float

    @property
    def groups(self) -> int:
        """How many groups are compared."""
        return len(self.cost)

    @property
    def z(self) -> float:
        """The normal quantile that the intervals stand for."""
        return normal_quantile((1.0 + self.confidence) / 2.0)


def stretch(confidence: float, groups: int) -> float:
    """How much wider intervals must be for all differences to be bounded at once."""
    z = normal_quantile((1.0 + confidence) / 2.0)
    return range_quantile(confidence, groups) / math.sqrt(2.0) / z


def pair_bounds(a: Floats, b: Floats, factor: float = 1.0) -> tuple[Floats, Floats]:
    """The bounds of a_s - b_t for all s and t; a and b have value, lower and upper end as columns.

    MOVER, with both intervals stretched by ``factor``.
    """
    value = a[:, None, 0] - b[None, :, 0]
    a_low, a_high = a[:, 0] - a[:, 1], a[:, 2] - a[:, 0]
    b_low, b_high = b[:, 0] - b[:, 1], b[:, 2] - b[:, 0]
    low: Floats = value - factor * np.hypot(a_low[:, None], b_high[None, :])
    high: Floats = value + factor * np.hypot(a_high[:, None], b_low[None, :])
    return low, high


def range_interval(values: Floats, confidence: float, most: float = math.inf) -> Interval:
    """The interval of the largest difference between two groups.

    Its lower end is the largest difference that is established for some pair while all pairs are
    looked at; it is 0 with the given confidence if all groups are alike.  Its upper end is the
    largest of all pairs' own upper ends.  ``values`` has value, lower and upper end as columns.

    Examples
    --------
    >>> ends = range_interval(np.array([[0.2, 0.1, 0.3], [0.5, 0.4, 0.6]]), 0.95)
    >>> [round(end, 3) for end in ends]
    [0.159, 0.441]
    """
    low, _ = pair_bounds(values, values, stretch(confidence, len(values)))
    _, high = pair_bounds(values, values)
    size = float(np.ptp(values[:, 0]))
    return around(size, (max(0.0, float(low.max())), min(most, float(high.max()))))


def highest(bounds: CostBounds) -> list[int]:
    """The groups that may be the one whose errors cost most: no other is surely above them."""
    low, _ = pair_bounds(bounds.cost, bounds.cost, stretch(bounds.confidence, bounds.groups))
    np.fill_diagonal(low, -np.inf)
    return [int(i) for i in np.flatnonzero(low.max(axis=0) <= SLACK)]


def target_interval(bounds: CostBounds, candidates: Sequence[int]) -> Interval:
    """The interval of the highest cost of any group.

    The highest of several noisy costs is too high.  So the lower ends of the ``candidates``, those
    that may be the highest, are lowered until all of them hold together.
    """
    low, high = _highest_of(bounds, np.asarray(candidates))
    return around(float(bounds.cost[:, 0].max()), (low, high))


def _highest_of(bounds: CostBounds, candidates: Ints) -> Interval:
    one = (1.0 + bounds.confidence) / 2.0
    factor = normal_quantile(one ** (1.0 / len(candidates))) / bounds.z
    value, low, high = bounds.cost[candidates].T
    return max(0.0, float((value - factor * (value - low)).max())), float(high.max())


def excess(bounds: CostBounds) -> tuple[Interval, float]:
    """How far the highest cost is above what another group can reach, less the tolerance.

    Equal cost is feasible if it is at most 0.  It is the largest of g_s - max(g_t, trivial_t) -
    tolerance over all pairs of groups.

    Returns the interval, and the probability of an excess as large as the one seen if the pairs
    that are near 0 were exactly there: small values speak against feasibility.  The lower end is
    above 0 exactly if that probability is below (1 - confidence) / 2.  The upper end is the
    largest upper end of any pair: all must be at most 0.
    """
    ceiling = _ceiling(bounds)
    low, high = pair_bounds(bounds.cost, ceiling)
    value = bounds.cost[:, None, 0] - ceiling[None, :, 0] - bounds.tolerance
    error = np.maximum(value + bounds.tolerance - low, 1e-12) / bounds.z
    np.fill_diagonal(value, -np.inf)
    np.fill_diagonal(high, -np.inf)
    size = value / error
    # Pairs far below 0, and far below the largest, do not matter: generalized moment selection
    # (Andrews and Soares 2010).
    far = math.sqrt(2.0 * math.log(math.log(bounds.rows + 3.0)))
    near = size >= min(0.0, float(size.max())) - far
    above, below = int(near.any(axis=1).sum()), int(near.any(axis=0).sum())
    # How much of a pair's variance is that of the higher cost, on average over the pairs.
    own = ((bounds.cost[:, 0] - bounds.cost[:, 1]) / bounds.z)[:, None]
    weight = round(float(np.clip((own / error) ** 2, 0.01, 0.99)[near].mean()), 2)
    within = _spread_within(size.max(keepdims=True)[0], above, below, weight)
    probability = 1.0 - float(within[0])
    factor = _spread_quantile((1.0 + bounds.confidence) / 2.0, above, below, weight)
    ends = float((value - factor * error).max()), float(high.max()) - bounds.tolerance
    return around(float(value.max()), ends), probability


def _ceiling(bounds: CostBounds) -> Floats:
    """The highest cost that each group can have: the trivial cost, or its own if that is higher.

    Which of the two it is may be chance, so the wider interval is taken.
    """
    value = np.maximum(bounds.cost[:, 0], bounds.trivial[:, 0])
    wider = [
        np.maximum(*(abs(one[:, end] - one[:, 0]) for one in (bounds.cost, bounds.trivial)))
        for end in (1, 2)
    ]
    return np.column_stack([value, value - wider[0], value + wider[1]])


def alpha_intervals(
    bounds: CostBounds, candidates: Sequence[int], estimates: Floats
) -> list[Interval]:
    """The interval of the share to withhold, for each group.

    With G the highest cost of the other groups, a share a is enough for group t exactly if
    D(a) = G - tolerance - (1 - a) g_t - a trivial_t is at most 0.  The interval holds every a for
    which D(a) = 0 is not rejected (Fieller); its ends solve a quadratic equation.  The upper end is
    infinite where it is not established that withholding raises the cost at all.
    """
    result = []
    for t in range(bounds.groups):
        others = np.array([s for s in candidates if s != t], dtype=np.intp)
        if not len(others):
            others = np.array([s for s in range(bounds.groups) if s != t], dtype=np.intp)
        value = float(bounds.cost[others, 0].max())
        low, high = around(value, _highest_of(bounds, others))
        ends = (
            _solve(bounds, t, value, value - low, side=2),
            _solve(bounds, t, value, high - value, side=1),
        )
        result.append(around(float(estimates[t]), ends))
    return result


def _solve(bounds: CostBounds, t: int, target: float, error: float, side: int) -> float:
    """Where D(a) is as many errors above 0 (side 2, the lower end of a) or below it (side 1)."""
    g, trivial = float(bounds.cost[t, 0]), float(bounds.trivial[t, 0])
    a = (float(bounds.cost[t, side]) - g) ** 2
    b = (float(bounds.trivial[t, side]) - trivial) ** 2
    c = bounds.z**2 * float(bounds.covariance[t])
    start, room = target - bounds.tolerance - g, trivial - g
    if side == 2 and start <= math.sqrt(error**2 + a) + SLACK:
        return 0.0
    if side == 1 and start <= -math.sqrt(error**2 + a):
        return 0.0
    if room <= 0.0:
        return math.inf
    square = room**2 - (a - 2.0 * c + b)
    linear = -2.0 * start * room + 2.0 * (a - c)
    constant = start**2 - error**2 - a
    if square <= 0.0 and side == 1:
        return math.inf
    roots = np.roots([square, linear, constant])
    real = sorted(float(root.real) for root in roots if abs(root.imag) < 1e-9)
    if side == 1:
        return max(real[-1], 0.0) if real else math.inf
    return next((root for root in real if root > 0.0), math.inf)
