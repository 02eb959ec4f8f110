"""Formulas for intervals: proportions, means, differences, and sizes of vectors.

================  ====================================================================
proportions       Wilson's interval with the effective number of rows
means             BCa percentiles of replicates (Efron 1987), expanded for small
                  samples (Hesterberg 2015); or Student's interval
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
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from isocost.measures.table import Measure
from isocost.tallies import KINDS, Cells

__all__ = [
    "Interval",
    "Mean",
    "accelerated",
    "around",
    "difference",
    "expanded_tail",
    "fold",
    "mean_interval",
    "mean_of",
    "normal_quantile",
    "percentiles",
    "share_of",
    "size_interval",
    "student_quantile",
    "wilson",
]

Floats = npt.NDArray[np.float64]

Interval: TypeAlias = tuple[float, float]

_STEPS = 12


def normal_quantile(probability: float) -> float:
    """The standard normal quantile."""
    from scipy.special import ndtri

    return float(ndtri(probability))


def student_quantile(probability: float, freedom: float) -> float:
    """The quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def expanded_tail(factor: float) -> float:
    """The share of replicates beyond ``factor`` standard errors.

    Plain percentiles stand for 1.96 standard errors, which is too few for small samples.

    Examples
    --------
    >>> round(expanded_tail(1.96), 3), round(expanded_tail(2.09), 3)
    (0.025, 0.018)
    """
    from scipy.special import ndtr

    return float(ndtr(-factor))


def accelerated(values: Floats, estimate: float, skew: float, factor: float) -> Interval:
    """BCa percentiles: corrected for bias and for a standard error that grows with the mean.

    ``skew`` is the skewness of the estimate, sum u^3 / (sum u^2)^1.5 over its rows' influences u.
    With skew 0 and no bias these are the percentiles at ``factor`` standard errors.
    """
    from scipy.special import ndtr, ndtri

    below = (float((values < estimate).mean()) + float((values <= estimate).mean())) / 2.0
    bias = float(ndtri(min(max(below, 0.01), 0.99)))
    ordered = np.sort(values)
    ends = []
    for z in (bias - factor, bias + factor):
        # Beyond this the correction would turn back.
        bent = z / max(1.0 - skew / 6.0 * z, 0.1)
        place = round(float(ndtr(bias + bent)) * (len(ordered) + 1)) - 1
        ends.append(float(ordered[min(max(place, 0), len(ordered) - 1)]))
    return min(ends), max(ends)


def percentiles(values: Floats, tail: float) -> Interval:
    """The values with a share ``tail`` beyond them on either side; infinite ones are fine.

    Two of the values themselves: interpolating next to an infinite one would give NaN.
    """
    size = len(values)
    place = min(max(int(tail * (size + 1)) - 1, 0), (size - 1) // 2)
    ordered = np.partition(values, (place, size - 1 - place))
    return float(ordered[place]), float(ordered[size - 1 - place])


def wilson(share: float, rows: float, z: float) -> Interval:
    """Wilson's interval for a proportion; never empty, also when nothing happened.

    Examples
    --------
    >>> low, high = wilson(0.0, 10, 1.96)
    >>> low, round(high, 4)
    (0.0, 0.2775)
    """
    shrink = 1.0 + z * z / rows
    middle = (share + z * z / (2.0 * rows)) / shrink
    half = z / shrink * math.sqrt(share * (1.0 - share) / rows + z * z / (4.0 * rows * rows))
    return around(share, (max(0.0, middle - half), min(1.0, middle + half)))


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
    found: Floats, noise: Floats, size: Callable[[Floats], Floats], tail: float
) -> Interval:
    """The interval of size(v), given one noisy observation of the vector v.

    ``size`` is an absolute sum or a range: noise makes it larger, most of all where the true
    size is near 0, so percentiles would be too high.  Instead each multiple k of what was
    ``found`` is taken for the truth, and kept if the size found is not in either tail of
    size(k found + noise).  At k = 0 the test is exact.

    A size below the lower tail at k = 0 is less than chance would show: the scores were
    fitted to these very rows.  The upper end is then the size that chance could hide.

    Parameters
    ----------
    found : array (parts,)
        The observation.
    noise : array (replicates, parts)
        Its deviations when drawn again, with mean about 0.
    size : callable
        From arrays (..., parts) to sizes (...).
    tail : float
        The share of replicates in each tail.
    """
    seen = float(size(found))
    low_of_chance, high_of_chance = percentiles(size(noise), tail)
    if seen <= low_of_chance:
        return 0.0, high_of_chance

    def ends(multiple: float) -> Interval:
        return percentiles(size(multiple * found + noise), tail)

    top = 1.0 + 2.0 * high_of_chance / seen
    # The size found is in the lower tail for all multiples above the one sought.
    high = _bisect(lambda k: ends(k)[0] > seen, 0.0, top)
    low = 0.0 if seen <= high_of_chance else _bisect(lambda k: ends(k)[1] > seen, 0.0, 1.0)
    return low * seen, high * seen


def _bisect(above: Callable[[float], bool], low: float, high: float) -> float:
    """Where ``above`` turns true."""
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if above(middle) else (middle, high)
    return (low + high) / 2.0


_SUMS = ("n", "w", "w2")

FEW = 10
"""Below so many effective rows percentiles cannot leave the data: Student's interval is used."""


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
    """

    value: float
    error: float
    inflation: float
    skew: float
    rows: float
    weighted: bool
    binary: bool
    limits: Interval

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
    inside = np.isin(kind, [KINDS.index(name) for name in measure.over])
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
    return _summary(
        n, w, w2, x - value, within, value, proportion and not within.any(), measure.limits
    )


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


def mean_interval(mean: Mean, values: Floats | None, confidence: float) -> Interval:
    """The interval of a mean; ``values`` are its replicates, if there are any.

    A proportion has Wilson's interval, with the number of rows that gives its standard error
    (Korn and Graubard 1998): percentiles would be empty when nothing happened.  Other
    means have expanded BCa percentiles; Student's interval without replicates or with few rows;
    and with less than two effective rows all that is possible.
    """
    if math.isnan(mean.value):
        return math.nan, math.nan
    z = normal_quantile((1.0 + confidence) / 2.0)
    if mean.binary:
        spread = mean.value * (1.0 - mean.value)
        rows = spread / mean.error**2 if mean.error > 0 and spread > 0 else mean.rows
        # With equal weights this is Wilson's interval as everybody knows it.
        wider = mean.factor(confidence) / z if mean.weighted and mean.rows >= 2 else 1.0
        return wilson(mean.value, rows / wider**2, z)
    if mean.rows < 2:
        return mean.limits
    factor = mean.factor(confidence)
    # A replicate in which nobody is of the right kind says nothing.
    values = None if values is None else values[~np.isnan(values)]
    if values is not None and len(values) and mean.rows >= FEW:
        return around(mean.value, accelerated(values, mean.value, mean.skew, factor))
    low, high = mean.limits
    half = factor * mean.error
    return max(low, mean.value - half), min(high, mean.value + half)
