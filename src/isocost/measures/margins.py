"""Formulas for intervals: proportions, means, differences, and sizes of vectors.

================  ====================================================================
proportions       Wilson's interval with the effective number of rows
means             Student's interval, corrected for skewness (Hall 1992)
rare scores       means of which few rows decide: a score test inverted, as Wilson's is
differences       MOVER (Zou and Donner 2008) from the two intervals; for Wilson's
                  intervals that is Newcombe's
sizes             the gap, or the range over groups: a test of each size, inverted
all groups        the intervals of differences stretched by Tukey's studentized range
                  (Tukey and Kramer), so that they hold for all pairs at once
================  ====================================================================

Every plain measure is a mean m = sum w x / sum w over some rows.  Its linearised variance is
sum w^2 (x - m)^2 / (sum w)^2; a cell keeps sum w^2, so it needs no rows.

Groups are different people, so their numbers are independent.  The questions about all of them
(who costs most, is equal cost feasible, how much to withhold) are asked in a fixed order, each only
if the one before was answered with yes, so together they are wrong no more often than one alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

import numpy as np

from isocost.cells import KINDS, Cells
from isocost.measures.derived import Estimated
from isocost.measures.measure import Measure
from isocost.typing import Floats, Ints

Interval: TypeAlias = tuple[float, float]

_STEPS = 16


def normal_quantile(probability: float) -> float:
    """The standard normal quantile."""
    from scipy.special import ndtri

    return float(ndtri(probability))


def student_quantile(probability: float, freedom: float) -> float:
    """The quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def skewed_interval(value: float, error: float, skew: float, factor: float) -> Interval:
    """Student's interval of a mean whose distribution is skewed (Hall 1992).

    With t the standardized mean and skew k, t + k t^2 / 3 + k^2 t^3 / 27 + k / 6 is closer to
    normal than t is, and it rises everywhere; the interval is the range of it within ``factor``,
    mapped back.  Without skew it is value +- factor error.

    Examples
    --------
    >>> [round(end, 3) for end in skewed_interval(0.5, 0.1, 0.3, 2.0)]
    [0.334, 0.773]
    """
    if abs(skew) < 1e-9:
        return value - factor * error, value + factor * error
    low, high = (
        3.0 / skew * (math.cbrt(1.0 + skew * (x - skew / 6.0)) - 1.0) for x in (-factor, factor)
    )
    return value - high * error, value - low * error


def percentiles(values: Floats, tail: float) -> Interval:
    """The values with a share ``tail`` beyond them on either side; infinite ones are fine.

    Two of the values themselves: interpolating next to an infinite one would give NaN.
    """
    size = len(values)
    rank = min(max(int(tail * (size + 1)) - 1, 0), (size - 1) // 2)
    ordered = np.partition(values, (rank, size - 1 - rank))
    return float(ordered[rank]), float(ordered[size - 1 - rank])


def score_interval(
    value: float, variance: float, rows: float, limits: Interval, z: float
) -> Interval:
    """The means that a score test does not reject, for values between two limits.

    A mean that lies d above what was seen is imagined as some rows moved to the upper limit, D
    above: the variance becomes v + d (D - v / D) - d^2, and d^2 = z^2 / n times it is solved for d;
    and the same below.  So the interval has width even if no row differs from the others.
    For values of 0 and 1 it is Wilson's interval.
    """
    c = z * z / rows
    ends = []
    for room in (value - limits[0], limits[1] - value):
        if room <= 0.0:
            ends.append(0.0)
            continue
        slope = c * (room - variance / room)
        root = math.sqrt(slope * slope + 4.0 * (1.0 + c) * c * variance)
        ends.append(min(room, (slope + root) / (2.0 * (1.0 + c))))
    return value - ends[0], value + ends[1]


def wilson(share: float, rows: float, z: float) -> Interval:
    """Wilson's interval for a proportion; never empty, also when nothing happened.

    Examples
    --------
    >>> low, high = wilson(0.0, 10, 1.96)
    >>> low, round(high, 4)
    (0.0, 0.2775)
    """
    return score_interval(share, share * (1.0 - share), rows, (0.0, 1.0), z)


def around(estimate: float, interval: Interval) -> Interval:
    """The interval, widened to hold the estimate where rounding or bias left it outside."""
    return min(estimate, interval[0]), max(estimate, interval[1])


def difference(a: float, of_a: Interval, b: float, of_b: Interval) -> Interval:
    """The interval of a - b from those of a and of b, which are independent (MOVER).

    Examples
    --------
    >>> difference(0.5, (0.2, 0.9), 0.25, (0.25, 0.25))
    (-0.04999999999999999, 0.65)
    """
    low = a - b - math.hypot(a - of_a[0], of_b[1] - b)
    high = a - b + math.hypot(of_a[1] - a, b - of_b[0])
    return low, high


def fold(interval: Interval) -> Interval:
    """The interval of an absolute value from that of the signed one."""
    low, high = interval
    if low <= 0.0 <= high:
        return 0.0, max(-low, high)
    return min(abs(low), abs(high)), max(abs(low), abs(high))


def size_interval(
    residual: Floats, noise: Floats, tail: float, several: int = 1
) -> tuple[float, float, float]:
    """The interval of the absolute sum of a vector, given one noisy observation of it.

    Noise makes the sum larger, most of all where it is near 0, so percentiles would be too high.
    Instead each multiple k of the ``residual`` seen is taken for the truth, and kept if the
    size seen is not in either tail of the size of k residual + noise.  At k = 0 the test is exact.
    What was seen is noisy itself, which makes the upper end a little too low: half the
    tail is used there (docs/coverage.md shows what that gives).

    A size below the lower tail at k = 0 is less than chance would show: the scores were
    fitted to these very rows.  The upper end is then the size that chance could hide.

    Parameters
    ----------
    residual : array (parts,)
        The observation.
    noise : array (replicates, parts)
        Its deviations when drawn again, with mean about 0.
    tail : float
        The share of replicates in each tail.
    several : int
        How many sizes are looked at.

    Returns
    -------
    low, high, floor
        The interval, and a lower end that holds for all of ``several`` sizes together.
    """
    seen = float(np.abs(residual).sum())
    # Adding up ten long rows is several times as fast as thousands of short ones.
    noise = np.ascontiguousarray(noise.T)
    low_of_chance, high_of_chance = percentiles(np.abs(noise).sum(axis=0), tail)
    if seen <= low_of_chance:
        return 0.0, high_of_chance, 0.0
    top = 1.0 + 2.0 * high_of_chance / seen
    multiples = top * (np.arange(_STEPS) / (_STEPS - 1)) ** 1.5
    sizes = np.empty((_STEPS, noise.shape[1]))
    for step, multiple in enumerate(multiples):
        moved = noise + multiple * residual[:, None]
        np.abs(moved, out=moved).sum(axis=0, out=sizes[step])
    high, low, floor = (
        float(np.interp(seen, end, multiples)) * seen
        for end in _quantiles(sizes, [tail / 2.0, 1.0 - tail, (1.0 - tail) ** (1.0 / several)])
    )
    return low if seen > high_of_chance else 0.0, high, min(low, floor)


def _quantiles(sizes: Floats, probabilities: list[float]) -> Floats:
    """Quantiles of the replicates, (probabilities, steps)."""
    count = sizes.shape[1]
    ranks = [min(max(int(p * (count + 1)) - 1, 0), count - 1) for p in probabilities]
    # Several times as fast as numpy's partition at several ranks.
    return np.sort(sizes, axis=1)[:, ranks].T


_SUMS = ("n", "w", "w2")

RARE = 30
"""Where fewer rows than this differ from the most frequent value, and most rows have it, the data
may lack values that are rare: a score test is inverted, in which they could have been seen."""


@dataclass(frozen=True)
class Mean:
    """A weighted mean over rows.

    Attributes
    ----------
    value, error : float
        The mean and its linearised standard error; NaN if there are no rows.
    inflation : float
        How much larger the standard error is by the jackknife, which allows for rows that pull
        the mean towards themselves (HC3): n / (n - 1) without weights.
    skew : float
        The skewness of the mean over samples.
    rows : float
        The effective number of rows (Kish), (sum w)^2 / sum w^2.
    weighted : bool
        Whether the weights differ.
    binary : bool
        Whether every row is 0 or 1, which makes the mean a proportion.
    limits : (low, high)
        The smallest and largest value that the mean can have.
    seen : (low, high)
        The smallest and largest value of the group's scores, whichever label they came with;
        looked up only if ``rare``.
    rare : bool
        Whether most rows have one value, and fewer than :data:`RARE` another.
    """

    value: float
    error: float
    inflation: float
    skew: float
    rows: float
    weighted: bool
    binary: bool
    limits: Interval
    seen: Interval = (0.0, 1.0)
    rare: bool = False

    def complement(self) -> Mean:
        """The mean of 1 less each value."""
        flipped = tuple((1.0 - high, 1.0 - low) for low, high in (self.limits, self.seen))
        return replace(
            self, value=1.0 - self.value, skew=-self.skew, limits=flipped[0], seen=flipped[1]
        )

    def factor(self, confidence: float) -> float:
        """How many standard errors the interval reaches, by Student's t and the jackknife."""
        if self.rows < 2:
            return math.inf
        return self.inflation * student_quantile((1.0 + confidence) / 2.0, self.rows - 1.0)


def mean_of(measure: Measure, cells: Cells, first: int) -> Mean:
    """A plain measure of a group's cells; ``first`` is the first bin at the threshold.

    Inside a cell a + b h + c h^2 is close to a straight line of the score, with slope b + 2 c h.
    """
    kind = cells.kind(first)
    inside = np.array([name in measure.over for name in KINDS])[kind]
    if not inside.any():
        return Mean(math.nan, math.nan, 1.0, 0.0, 0.0, False, False, measure.limits)
    kind, n, w, w2 = kind[inside], cells.n[inside], cells.w[inside], cells.w2[inside]
    h, square = cells.wh[inside] / w, cells.wh2[inside] / w
    a, b, c = measure.coefficients[kind].T
    x = a + b * h + c * square
    spread = np.maximum(square - h**2, 0.0)
    within = np.where(spread > 1e-14, (b + 2.0 * c * h) ** 2 * spread, 0.0)
    value = float((w * x).sum() / w.sum())
    proportion = measure.limits == (0.0, 1.0) and bool(((x == 0) | (x == 1)).all())
    binary = proportion and not within.any()
    mean = _summary(n, w, w2, x - value, within, value, binary, measure.limits)
    others = math.inf if binary or within.any() else _rows_off_the_mode(x, n)
    rare = others < min(RARE, n.sum() / 2.0)
    return replace(mean, seen=_seen(measure, cells, kind), rare=True) if rare else mean


def means_of(measures: Mapping[str, Measure], cells: Cells, first: int) -> dict[str, Mean]:
    """Several plain measures of a group's cells."""
    decided = {name for name, measure in measures.items() if measure.counts_decisions}
    # Four cells are enough for decisions, unless weights differ.
    few = cells.by_kind(first) if decided and not cells.is_weighted else cells
    return {
        name: mean_of(measure, few if name in decided else cells, first)
        for name, measure in measures.items()
    }


def complements(measures: Mapping[str, Measure]) -> dict[str, str]:
    """The measures that are 1 less another that stands before them, such as TPR after FNR."""
    pairs: dict[str, str] = {}
    for (other, first), (name, second) in combinations(measures.items(), 2):
        if other not in pairs and first.is_complement(second):
            pairs[name] = other
    return pairs


def _rows_off_the_mode(x: Floats, n: Floats) -> float:
    """How many rows do not have the most frequent value."""
    _, level = np.unique(x, return_inverse=True)
    return float(n.sum() - np.bincount(level, n).max())


def _seen(measure: Measure, cells: Cells, kind: Ints) -> Interval:
    """What the measure's terms would be at the lowest and the highest score of the group."""
    h = cells.wh / cells.w
    ends = np.array([h.min(), h.max()])
    a, b, c = measure.coefficients[np.unique(kind)].T[:, :, None]
    terms = a + b * ends + c * ends**2
    return float(terms.min()), float(terms.max())


def _summary(
    n: Floats,
    w: Floats,
    w2: Floats,
    off: Floats,
    within: Floats,
    value: float,
    binary: bool,
    limits: Interval,
) -> Mean:
    """A mean from how far cells are off it, and how much rows vary within them."""
    total, squares = float(w.sum()), float(w2.sum())
    rows = total**2 / squares
    # As shares of the whole, so that no power of a weight is too large or too small.
    w, w2 = w / total, w2 / total**2
    terms = w2 * (off**2 + within)
    variance = float(terms.sum())
    inflation, skew = 1.0, 0.0
    if variance > 0:
        # The weight of a row as the cell's weight meets it; a row that is everything has no peer.
        leverage = np.minimum(w2 / w, 0.9)
        inflation = math.sqrt(float((terms / (1.0 - leverage) ** 2).sum() / terms.sum()))
        # Rows of a cell are taken to weigh the same here.
        cubes = w2 * np.sqrt(w2 / n) * (off**3 + 3.0 * off * within)
        skew = float(cubes.sum()) / variance / math.sqrt(variance)
    weighted = rows < float(n.sum()) * (1.0 - 1e-9)
    return Mean(value, math.sqrt(variance), inflation, skew, rows, weighted, binary, limits)


def share_of(cells: Cells, everybody: Cells) -> Mean:
    """The share of the weight that is this group's."""
    own = [float(getattr(cells, name).sum()) for name in _SUMS]
    total = [float(getattr(everybody, name).sum()) for name in _SUMS]
    # Rounding may leave less than nothing for the others.
    rest = [max(0.0, x - y) for x, y in zip(total, own, strict=True)]
    share = own[1] / (own[1] + rest[1])
    if rest[0] < 0.5 or rest[1] == 0.0:
        share, rest = 1.0, [0.0, 0.0, 0.0]
    n, w, w2 = (np.array(pair) for pair in zip(own, rest, strict=True))
    off = np.array([1.0 - share, -share])
    kept = n > 0
    n, w, w2, off = n[kept], w[kept], w2[kept], off[kept]
    return _summary(n, w, w2, off, np.zeros_like(n), share, True, (0.0, 1.0))


def mean_interval(mean: Mean, confidence: float) -> Interval:
    """The interval of a mean.

    A proportion has Wilson's interval, with the number of rows that gives its standard error
    (Korn and Graubard 1998).  A mean that few rows decide has the same kind of interval, between
    the lowest and the highest score of the group.  Other means have Student's interval corrected
    for skewness; and with less than two effective rows all that is possible.
    """
    if math.isnan(mean.value):
        return math.nan, math.nan
    z = normal_quantile((1.0 + confidence) / 2.0)
    factor = mean.factor(confidence)
    if mean.binary or (mean.rare and mean.rows >= 2):
        variance = mean.value * (1.0 - mean.value) if mean.binary else mean.error**2 * mean.rows
        rows = variance / mean.error**2 if mean.error > 0 and variance > 0 else mean.rows
        # With equal weights and labels this is Wilson's interval as everybody knows it.
        wider = factor / z if mean.weighted and mean.rows >= 2 else 1.0
        limits = (0.0, 1.0) if mean.binary else mean.seen
        interval = score_interval(mean.value, variance, rows / wider**2, limits, z)
        return around(mean.value, interval)
    if mean.rows < 2:
        return mean.limits
    low, high = skewed_interval(mean.value, mean.error, mean.skew, factor)
    return around(mean.value, (max(low, mean.limits[0]), min(high, mean.limits[1])))


def derived_interval(number: Estimated, limits: Interval, confidence: float) -> Interval:
    """The interval of a number that is not a mean, from its standard error.

    Between two limits it is Wilson's, with the number of rows that gives the standard error; a
    ratio has Student's interval of its logarithm, and one of 0 the limit that a score test of a
    count of 0 gives; any other number has Student's interval.
    """
    value, error, rows = number.value, number.error, number.rows
    if math.isnan(value):
        return math.nan, math.nan
    if math.isinf(rows):
        return value, value
    if rows < 2:
        return limits
    low, high = limits
    z = normal_quantile((1.0 + confidence) / 2.0)
    factor = student_quantile((1.0 + confidence) / 2.0, rows - 1.0)
    if math.isfinite(low) and math.isfinite(high):
        variance = (value - low) * (high - value)
        effective = variance / error**2 if error > 0 and variance > 0 else rows
        interval = score_interval(value, variance, effective * (z / factor) ** 2, limits, z)
    elif low == 0.0:
        if value == 0.0:
            return 0.0, z * z / rows
        reach = factor * error / value
        interval = value * math.exp(-min(reach, 700.0)), value * math.exp(min(reach, 700.0))
    else:
        interval = max(low, value - factor * error), min(high, value + factor * error)
    return around(value, interval)


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
