"""Means over rows with their standard errors, from the cells of a tally.

Every plain measure is a mean m = sum w x / sum w over some rows.  Its linearised variance is
sum w^2 (x - m)^2 / (sum w)^2; a cell keeps sum w^2, so it needs no rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isocost.cells import KINDS, Cells
from isocost.measure.margins import (
    Interval,
    accelerated,
    around,
    normal_quantile,
    student_quantile,
    wilson,
)
from isocost.measure.table import Measure

__all__ = ["Mean", "mean_interval", "mean_of", "share_of"]

Floats = npt.NDArray[np.float64]

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
