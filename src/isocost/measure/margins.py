"""Formulas for intervals: proportions, means, differences, and sizes of vectors.

================  ====================================================================
proportions       Wilson's interval with the effective number of rows
means             BCa percentiles of replicates (Efron 1987), expanded for small
                  samples (Hesterberg 2015); or Student's interval
differences       MOVER (Zou and Donner 2008) from the two intervals; for Wilson's
                  intervals that is Newcombe's
sizes             the gap, or the range over groups: a test of each size, inverted
================  ====================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "Interval",
    "accelerated",
    "around",
    "difference",
    "expanded_tail",
    "fold",
    "normal_quantile",
    "percentiles",
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
