"""Confidence intervals for every number of an audit, from the cells of the tally.

===================================================  =============================================
base_rate, fpr, fnr, accuracy, selection_rate,       Wilson, with the effective number of rows
share; any rate of scores that are all 0 or 1
generalized_fpr, generalized_fnr, mean_score,        Student, corrected for skewness (Hall 1992); an
brier, cost                                          inverted score test where few rows decide
trivial_cost                                         image of the interval of the base rate
other measures (see derived)                         by their limits: :func:`derived_interval`
calibration_gap and its variants                     a test of each size on replicates, inverted
differences                                          MOVER (Zou and Donner 2008) from the intervals
                                                     of the two groups; of Wilson's: Newcombe's
disparities, highest, excess, target_cost, alpha     for all pairs of groups at once: stretched by
                                                     Tukey's studentized range (Tukey and Kramer)
===================================================  =============================================

Every plain measure is a mean m = sum w x / sum w over some rows.  Its linearised variance is
sum w^2 (x - m)^2 / (sum w)^2; a cell keeps sum w^2, so it needs no rows.

Groups are different people, so their numbers are independent.  The questions about all of them
(who costs most, is equal cost feasible, how much to withhold) are asked in a fixed order, each only
if the one before was answered with yes, so together they are wrong no more often than one alone.

Intervals say what drawing other people would change.  They say nothing about labels that are wrong,
people who are missing, or scores that were trained on these rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

import numpy as np

from isocost.cells import KINDS, Cells
from isocost.checks import short
from isocost.costs import Cost
from isocost.errors import Problem, UsageError, listing
from isocost.groups import Group, group_names
from isocost.measures.calibration import SMOOTH_CELLS, Levels, bin_noise, gap_noise, levels_of
from isocost.measures.derived import Estimated, GroupedPeople
from isocost.measures.feasibility import Feasibility, compared_groups, examined_groups, reach_of
from isocost.measures.rates import Columns, all_columns, group_costs
from isocost.measures.table import BIAS, MEASURES, Measure, chosen_measures, cost_row
from isocost.question import DEFAULT, Question, asks
from isocost.result import Record
from isocost.tallies import Tally
from isocost.typing import Floats, Ints

Interval: TypeAlias = tuple[float, float]

UNKNOWN: Interval = (math.nan, math.nan)

PAID = ("generalized_fpr", "generalized_fnr")
"""The rates that a plain cost is a sum of."""

_STEPS = 16

RARE = 30
"""Means over mostly equal rows, of which fewer than this differ, have an inverted score test: the
data may lack values that are rare."""

SLACK = 1e-9
"""Differences below this are rounding."""


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
    """The values with a share ``tail`` beyond them on either side, not interpolated."""
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
    # Several times as fast as numpy's partition at several ranks.
    sizes.sort(axis=1)
    count, tails = sizes.shape[1], (tail / 2.0, 1.0 - tail, (1.0 - tail) ** (1.0 / several))
    ranks = [min(max(int(p * (count + 1)) - 1, 0), count - 1) for p in tails]
    high, low, floor = (float(np.interp(seen, sizes[:, r], multiples)) * seen for r in ranks)
    return low if seen > high_of_chance else 0.0, high, min(low, floor)


@dataclass(frozen=True)
class Mean:
    """A weighted mean over rows.

    Attributes
    ----------
    value, error : float
        The mean and its linearised standard error; NaN if there are no rows.
    inflation : float
        Factor of the standard error by the jackknife, which allows for rows that pull the mean
        towards themselves (HC3): n / (n - 1) without weights.
    skew : float
        The skewness of the mean over samples.
    rows : float
        The effective number of rows (Kish), (sum w)^2 / sum w^2.
    weighted, binary : bool
        True if the weights differ; if every row is 0 or 1, which makes the mean a proportion.
    limits : (low, high)
        The smallest and largest value that the mean can have.
    seen : (low, high)
        The smallest and largest value at any score of the group; looked up only if ``rare``.
    rare : bool
        True if most rows have one value, and fewer than :data:`RARE` another.
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
        """The reach of the interval in standard errors, by Student's t and the jackknife."""
        if self.rows < 2:
            return math.inf
        return self.inflation * student_quantile((1.0 + confidence) / 2.0, self.rows - 1.0)


def mean_of(measure: Measure, cells: Cells, first: int, value: float | None = None) -> Mean:
    """A plain measure of a group's cells; ``first`` is the first bin at the threshold.

    ``value`` is the mean itself, if it is known already.  Inside a cell a + b h + c h^2 is close to
    a straight line of the score, with slope b + 2 c h.
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
    if value is None:
        value = float((w * x).sum() / w.sum())
    proportion = measure.limits == (0.0, 1.0) and bool(((x == 0) | (x == 1)).all())
    binary = proportion and not within.any()
    mean = _summary(n, w, w2, x - value, within, value, binary, measure.limits)
    if binary or within.any():
        return mean
    _, level = np.unique(x, return_inverse=True)
    rows_off_the_mode = float(n.sum() - np.bincount(level, n).max())
    if rows_off_the_mode >= min(RARE, n.sum() / 2.0):
        return mean
    # The terms of the measure at the lowest and the highest score of the group.
    scores = cells.wh / cells.w
    ends = np.array([scores.min(), scores.max()])
    a, b, c = measure.coefficients[np.unique(kind)].T[:, :, None]
    terms = a + b * ends + c * ends**2
    return replace(mean, seen=(float(terms.min()), float(terms.max())), rare=True)


def means_of(
    measures: Mapping[str, Measure],
    cells: Cells,
    first: int,
    values: Mapping[str, float] | None = None,
) -> dict[str, Mean]:
    """Several plain measures of a group's cells; ``values`` are those that are known already."""
    known = values or {}
    decided = {name for name, measure in measures.items() if measure.counts_decisions}
    # Four cells are enough for decisions, unless weights differ.
    few = cells.by_kind(first) if decided and not cells.is_weighted else cells
    return {
        name: mean_of(measure, few if name in decided else cells, first, known.get(name))
        for name, measure in measures.items()
    }


def complements(measures: Mapping[str, Measure]) -> dict[str, str]:
    """The measures that are 1 less another that stands before them, such as TPR after FNR."""
    pairs: dict[str, str] = {}
    for (other, first), (name, second) in combinations(measures.items(), 2):
        if other not in pairs and first.is_complement(second):
            pairs[name] = other
    return pairs


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
    own, total = (
        [float(column.sum()) for column in (some.n, some.w, some.w2)] for some in (cells, everybody)
    )
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
        return UNKNOWN
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
        return UNKNOWN
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
        Largest allowed difference of costs, and the confidence of the intervals.
    rows : float
        Number of rows in all.
    """

    cost: Floats
    trivial: Floats
    covariance: Floats
    tolerance: float
    confidence: float
    rows: float

    @property
    def groups(self) -> int:
        """The number of groups compared."""
        return len(self.cost)

    @property
    def z(self) -> float:
        """The normal quantile that the intervals stand for."""
        return normal_quantile((1.0 + self.confidence) / 2.0)


def stretch(confidence: float, groups: int) -> float:
    """Factor by which intervals are widened so that they bound all differences at once."""
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


def _highest_of(bounds: CostBounds, candidates: Ints) -> Interval:
    """The interval of the highest cost of some groups, all of which may be the highest.

    The highest of several noisy costs is too high.  So the lower ends are lowered until all of them
    hold together.
    """
    one = (1.0 + bounds.confidence) / 2.0
    factor = normal_quantile(one ** (1.0 / len(candidates))) / bounds.z
    value, low, high = bounds.cost[candidates].T
    return max(0.0, float((value - factor * (value - low)).max())), float(high.max())


def _excess_of(bounds: CostBounds) -> tuple[Interval, float]:
    """The excess of the highest cost over what another group can reach, less the tolerance.

    Equal cost is feasible if it is at most 0.  It is the largest of g_s - max(g_t, trivial_t) -
    tolerance over all pairs of groups.

    Returns the interval, and the probability of an excess as large as the one seen if the pairs
    that are near 0 were exactly there: small values speak against feasibility.  The lower end is
    above 0 exactly if that probability is below (1 - confidence) / 2.  The upper end is the
    largest upper end of any pair: all must be at most 0.
    """
    # A group can cost at most the trivial cost, or its own if that is higher; which of the two
    # it is may be chance, so the wider interval is taken.
    most = np.maximum(bounds.cost[:, 0], bounds.trivial[:, 0])
    wider = [
        np.maximum(*(abs(one[:, end] - one[:, 0]) for one in (bounds.cost, bounds.trivial)))
        for end in (1, 2)
    ]
    ceiling = np.column_stack([most, most - wider[0], most + wider[1]])
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
    """The a for which D(a) is as many errors above 0 (side 2, its lower end) or below (side 1)."""
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


@dataclass(frozen=True)
class Estimate:
    """Intervals of the numbers of one group, or of everybody, by name.

    Also the covariance of the cost with the trivial cost, and the calibration gap that the group
    has at least when all groups are looked at.
    """

    intervals: dict[str, Interval]
    covariance: float = 0.0
    gap_floor: float = math.nan


def _estimates(
    tally: Tally,
    question: Question,
    measures: Mapping[str, Measure],
    people: GroupedPeople,
    columns: Columns,
) -> list[Estimate]:
    """The intervals of each group, and last those of everybody, around the numbers in columns."""
    groups, cells, cost, level = tally.groups, tally.cells, question.cost, question.level
    first, tail = tally.grid.first_bin(question.threshold), (1.0 - level) / 2.0
    plain = {name: measure for name, measure in measures.items() if measure.is_plain}
    derived = {name: measure for name, measure in measures.items() if measure.is_derived}
    pairs = complements(plain)
    simple = {name: row for name, row in plain.items() if name not in pairs} | {"bias": BIAS}
    draws = normal_draws(question.replicates, question.seed) if question.replicates else None

    examined = len(examined_groups(tally, question.min_group))

    def estimate(index: int | None, own: Cells) -> Estimate:
        values = {
            name: float(column[-1 if index is None else index]) for name, column in columns.items()
        }
        # A cost that differs by group has no meaning for everybody.
        costs = index is not None or not cost.is_per_group
        amounts = cost.amounts(groups[index or 0]) if costs else (0.0, 0.0)
        means = means_of(simple | _cost_rows(cost, amounts), own, first, values)
        spans = {name: mean_interval(mean, level) for name, mean in means.items()}
        # JSON lists numbers in this order.
        bias = spans.pop("bias")
        if costs:
            spans["cost"] = _cost_interval(cost, amounts, values, spans)
        spans |= {
            name: mean_interval(means[other].complement(), level) for name, other in pairs.items()
        }
        spans["share"] = mean_interval(share_of(own, cells), level)
        if costs:
            # A trivial cost is largest or smallest at the ends, or at 1/2 if that is inside.
            low, high = spans["base_rate"]
            mu, (fp, fn) = np.array([low, high, min(max(0.5, low), high)]), amounts
            ends = (fp + fn) * mu * (1.0 - mu) if cost.by_base_rate else fp * mu + fn * (1.0 - mu)
            spans["trivial_cost"] = around(
                values["trivial_cost"], (float(ends.min()), float(ends.max()))
            )
        spans["calibration_gap_bound"] = fold(bias)
        for name, measure in derived.items():
            number = measure.estimated(people, index)
            spans[name] = derived_interval(number, measure.limits, level)
        covariance, floor = 0.0, math.nan
        if costs and cost.by_base_rate:
            # By linearization.  The rates of a plain cost are means over one label, which do not
            # covary with the base rate.
            (fp, fn), rate, score = amounts, values["base_rate"], own.wh / own.w
            paid = np.where(own.label == 1, fn * (1.0 - score), fp * score)
            terms = own.w2 * (paid - values["cost"]) * (own.label - rate)
            slope = (fp + fn) * (1.0 - 2.0 * rate)
            covariance = slope * float(terms.sum()) / float(own.w.sum()) ** 2
        if draws is None:
            return Estimate(spans, covariance)
        # No gap is below the bound, so no interval ends below that of the bound.
        least = spans["calibration_gap_bound"][1]
        levels = people.once(("levels", index), lambda: levels_of(tally, index))
        noise = gap_noise(levels, values["calibration_gap_smooth"], draws)
        for name, (residual, drawn) in noise.items():
            low, high, own_floor = size_interval(residual, drawn, tail, examined)
            interval = (low, min(1.0, max(high, least)))
            spans[name] = around(values[name], interval)
            if name == "calibration_gap":
                # The debiased gap estimates the same number.
                debiased, floor = "calibration_gap_debiased", own_floor
                spans[debiased] = around(values[debiased], interval)
        return Estimate(spans, covariance, floor)

    pooled = Cells.merge([cells.recoded([0] * len(groups))])
    own = [cells.take(cells.of_group(index)) for index in range(len(groups))]
    return [*(estimate(index, each) for index, each in enumerate(own)), estimate(None, pooled)]


def _cost_rows(cost: Cost, amounts: tuple[float, float]) -> dict[str, Measure]:
    """The means that a cost follows from."""
    if cost.by_base_rate:
        return {"cost": cost_row(*amounts)} if any(amounts) else {}
    return {name: MEASURES[name] for name, amount in zip(PAID, amounts, strict=True) if amount}


def _cost_interval(
    cost: Cost,
    amounts: tuple[float, float],
    values: Mapping[str, float],
    spans: Mapping[str, Interval],
) -> Interval:
    """The interval of a cost; positives and negatives are different people."""
    if cost.by_base_rate:
        return spans["cost"]
    (a, of_a), *others = [
        (amount * values[name], (amount * spans[name][0], amount * spans[name][1]))
        for name, amount in zip(PAID, amounts, strict=True)
        if amount
    ]
    if not others:
        return of_a
    b, of_b = others[0]
    return difference(a, of_a, -b, (-of_b[1], -of_b[0]))


def gap_floors(some: Sequence[Levels], groups: int, question: Question) -> list[float]:
    """The calibration gap that each of some groups has at least, as in an audit of all groups."""
    replicates = question.replicates or DEFAULT.replicates
    draws, tail = normal_draws(replicates, question.seed), (1.0 - question.level) / 2.0
    return [size_interval(*bin_noise(levels, draws), tail, groups)[2] for levels in some]


def normal_draws(replicates: int, seed: int) -> Floats:
    """Chance deviations of calibration gaps, in standard errors: (replicates, cells)."""
    return np.random.default_rng(seed).standard_normal((replicates, SMOOTH_CELLS))


@dataclass(frozen=True)
class Intervals(Record):
    """Intervals of the numbers of an audit.

    Attributes
    ----------
    groups : {group: {name: (low, high)}}
        For each group, by the names of :class:`Measures`.
    overall : {name: (low, high)}
        For everybody together.
    differences : {name: (low, high)}
        The number of ``compared[0]`` less that of ``compared[1]``.  With three groups or more the
        pair was chosen after looking at the costs: use ``disparities`` there.
    compared : (group, group)
        The groups whose errors cost most and least.
    disparities : {name: (low, high)}
        The largest difference between any two groups.  Chance alone makes it larger, most of all
        when groups are alike; the interval allows for that: it starts above 0 only if some pair
        differs while all pairs are looked at.
    highest : tuple
        The groups that may be the one whose errors cost most.
    excess : (low, high)
        How far the highest cost is above the highest that calibrated scores of another group can
        have, less the tolerance.  Equal cost is feasible if it is at most 0.
    feasible_probability : float
        How likely an excess as large as the one seen would be if equal cost were just feasible.
        Small values speak against feasibility: it is ruled out below (1 - confidence) / 2.
    alpha : {group: (low, high)}
        The share to withhold; above 1, or infinite, where no share may be enough.
    target_cost : (low, high)
        The highest cost of any group.
    gap_floors : {group: float}
        The calibration gap that each group has at least, when all are looked at together.
    confidence, replicates, seed
        What it was made with.
    method : str
        "replicates", or "analytic" when there are none.
    """

    unwritten = ("groups", "overall", "gap_floors")

    groups: dict[Group, dict[str, Interval]]
    overall: dict[str, Interval]
    differences: dict[str, Interval]
    compared: tuple[Group, Group]
    disparities: dict[str, Interval]
    highest: tuple[Group, ...]
    excess: Interval
    feasible_probability: float
    alpha: dict[Group, Interval]
    target_cost: Interval
    gap_floors: dict[Group, float]
    confidence: float
    replicates: int
    seed: int
    method: str


@asks("cost", "threshold")
def intervals(tally: Tally, question: Question) -> Intervals:
    """Compute confidence intervals for every number of an audit.

    Parameters
    ----------
    tally : Tally, or data
        At least two groups with positives and negatives.
    cost, threshold, ...
        Fields of :class:`isocost.Question`; with data, keywords of :func:`isocost.tally`.

    Notes
    -----
    Rows are taken to be drawn independently: for several rows a person, or people who come in
    clusters, intervals are too narrow.  Each interval stands for itself; of twenty at 95 %,
    expect one to miss.

    The plug-in gap is too high for small samples, so it lies near the top of its interval.

    A number that does not vary in the sample, such as a constant score, has an interval without
    width, unless it is a proportion.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> result = ic.intervals(compas(), "fpr")
    >>> low, high = result.differences["generalized_fpr"]
    >>> result.compared, f"{low:.3f} to {high:.3f}", result.highest
    (('African-American', 'Caucasian'), '0.077 to 0.098', ('African-American',))
    >>> round(result.feasible_probability, 3)
    0.0
    """
    question.cost.check_groups(tally.groups)
    groups = compared_groups(tally, question.min_group)
    reach = reach_of(tally.select(groups), question.among(groups))
    people, rows = population_of(tally, question, groups), chosen_measures(question.measures).rows
    columns = all_columns(tally, question.cost, rows, people)
    return intervals_of(tally, question, rows, people, reach, columns)


def intervals_of(
    tally: Tally,
    question: Question,
    rows: Mapping[str, Measure],
    people: GroupedPeople,
    reach: Feasibility,
    columns: Columns,
) -> Intervals:
    """The intervals of chosen measures, of which ``columns`` has the numbers."""
    level, groups = question.level, tuple(reach.costs)
    *estimates, everybody = _estimates(tally, question, rows, people, columns)
    everyone = dict(zip(tally.groups, estimates, strict=True))

    def ends(name: str, some: Sequence[Group]) -> Floats:
        """Value, lower and upper end of a number for each of some groups."""
        values = (float(columns[name][tally.index_of(group)]) for group in some)
        spans = (everyone[group].intervals[name] for group in some)
        return np.array([(value, *span) for value, span in zip(values, spans, strict=True)])

    costly = [group for group in groups if not math.isnan(reach.costs[group])]
    pair, candidates, probability = (groups[0], groups[-1]), list[int](), math.nan
    excess = target = UNKNOWN
    alpha = [UNKNOWN] * len(costly)
    if len(costly) > 1:
        cost, trivial = ends("cost", costly), ends("trivial_cost", costly)
        covariance = np.array([everyone[group].covariance for group in costly])
        bounds = CostBounds(cost, trivial, covariance, reach.tolerance, level, tally.n)
        # The groups that may be the one whose errors cost most: no other is surely above them.
        above, _ = pair_bounds(cost, cost, stretch(level, len(costly)))
        np.fill_diagonal(above, -np.inf)
        candidates = [int(i) for i in np.flatnonzero(above.max(axis=0) <= SLACK)]
        excess, probability = _excess_of(bounds)
        shares = np.array([reach.alpha[group] for group in costly])
        alpha = alpha_intervals(bounds, candidates, shares)
        top = int(np.argmax(cost[:, 0]))
        target = around(float(cost[top, 0]), _highest_of(bounds, np.asarray(candidates)))
        # Two groups even when all costs are equal.
        others = [index for index in range(len(costly)) if index != top]
        pair = costly[top], costly[min(others, key=lambda index: float(cost[index, 0]))]
    names = [name for name in everyone[groups[0]].intervals if name != "share"]
    both = {name: ends(name, pair).tolist() for name in names}
    return Intervals(
        groups={group: one.intervals for group, one in everyone.items()},
        overall=everybody.intervals,
        differences={
            name: difference(a, (a_low, a_high), b, (b_low, b_high))
            for name, ((a, a_low, a_high), (b, b_low, b_high)) in both.items()
        },
        compared=pair,
        disparities={name: _disparity(ends(name, groups), level, rows.get(name)) for name in names},
        highest=tuple(costly[index] for index in candidates),
        excess=excess,
        feasible_probability=probability,
        alpha=dict(zip(costly, alpha, strict=True)),
        target_cost=target,
        gap_floors={group: one.gap_floor for group, one in everyone.items()},
        confidence=level,
        replicates=question.replicates,
        seed=question.seed,
        method="replicates" if question.replicates else "analytic",
    )


def population_of(tally: Tally, question: Question, compared: Sequence[Group]) -> GroupedPeople:
    """The people of a tally; those compared may be the reference of others, if none is named."""
    candidates, reference = [tally.index_of(group) for group in compared], question.reference
    index = None
    if reference is not None:
        if isinstance(reference, Hashable) and reference in tally.groups:
            index = tally.index_of(reference)
        else:
            got, step = short(reference), f"name one of {listing(group_names(tally.groups))}"
            raise UsageError(Problem("reference", "must be a group of the data", got, step))
    return GroupedPeople.of_tally(tally, question.threshold, candidates, index)


def _disparity(ends: Floats, confidence: float, measure: Measure | None) -> Interval:
    """The range of one number; ``ends`` has value, lower and upper end as columns."""
    known = np.isfinite(ends).all(axis=1)
    if known.sum() < 2:
        return UNKNOWN
    most = math.inf if measure is None else measure.limits[1] - measure.limits[0]
    return range_interval(ends[known], confidence, most)


def disparity_intervals(
    tally: Tally, question: Question, names: Collection[str], groups: Sequence[Group]
) -> dict[str, Interval]:
    """The intervals of some disparities of an audit, plain measures or "cost", and no others.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> some = disparity_intervals(compas(), Question("fpr"), ["fpr"], compas().groups)
    >>> some["fpr"] == intervals(compas(), "fpr").disparities["fpr"]
    True
    """
    first, cells = tally.grid.first_bin(question.threshold), tally.cells
    cost, confidence = question.cost, question.level
    plain = {name: MEASURES[name] for name in names if name != "cost"}
    sums = tally.kinds(question.threshold)
    columns = {name: row.of(sums) for name, row in plain.items()}
    if "cost" in names:
        columns |= {name: MEASURES[name].of(sums) for name in PAID}
        columns["cost"] = group_costs(tally.totals, tally.groups, cost)
    ends: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
    for group in groups:
        index, amounts = tally.index_of(group), cost.amounts(group)
        values = {name: float(column[index]) for name, column in columns.items()}
        paid = _cost_rows(cost, amounts) if "cost" in ends else {}
        means = means_of(plain | paid, cells.take(cells.of_group(index)), first, values)
        spans = {name: mean_interval(mean, confidence) for name, mean in means.items()}
        if "cost" in ends:
            spans["cost"] = _cost_interval(cost, amounts, values, spans)
        for name, own in ends.items():
            own.append((values[name], *spans[name]))
    return {
        name: _disparity(np.array(own), confidence, MEASURES.get(name))
        for name, own in ends.items()
    }
