"""Formulas for intervals: proportions, means, differences, and sizes of vectors.

================  ====================================================================
proportions       Wilson's interval with the effective number of rows
means             Student's interval, corrected for skewness (Hall 1992)
rare scores       means of which few rows decide: a score test inverted, as Wilson's is
differences       MOVER (Zou and Donner 2008) from the two intervals; for Wilson's
                  intervals that is Newcombe's
sizes             the gap, or the range over groups: a test of each size, inverted
================  ====================================================================

Means over rows with their standard errors, from the cells of a tally.

Every plain measure is a mean m = sum w x / sum w over some rows.  Its linearised variance is
sum w^2 (x - m)^2 / (sum w)^2; a cell keeps sum w^2, so it needs no rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from isocost.measures.table import Measure
from isocost.tallies import KINDS, Cells
from isocost.typing import Floats, Ints

__all__ = [
    "Interval",
    "Mean",
    "around",
    "difference",
    "fold",
    "mean_interval",
    "mean_of",
    "normal_quantile",
    "percentiles",
    "score_interval",
    "share_of",
    "size_interval",
    "skewed_interval",
    "student_quantile",
    "wilson",
]

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
    place = min(max(int(tail * (size + 1)) - 1, 0), (size - 1) // 2)
    ordered = np.partition(values, (place, size - 1 - place))
    return float(ordered[place]), float(ordered[size - 1 - place])


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
    others = _rows_off_the_mode(x, n) if not within.any() else math.inf
    rare = others < min(RARE, n.sum() / 2.0)
    return replace(mean, seen=_seen(measure, cells, kind), rare=True) if rare else mean


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
        found = score_interval(mean.value, variance, rows / wider**2, limits, z)
        return around(mean.value, found)
    if mean.rows < 2:
        return mean.limits
    low, high = skewed_interval(mean.value, mean.error, mean.skew, factor)
    return around(mean.value, (max(low, mean.limits[0]), min(high, mean.limits[1])))
