"""The numbers of an audit that are means over rows, with their standard errors, from cells.

The base rate is the mean of the label, the generalized FPR the mean score of the negatives, the
accuracy the mean of "was right", and so on.  For a mean m = sum w x / sum w the linearised
variance is sum w^2 (x - m)^2 / (sum w)^2; a cell keeps sum w^2, so it needs no rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isocost.cells import Cells
from isocost.measure.margins import (
    Interval,
    accelerated,
    around,
    normal_quantile,
    student_quantile,
    wilson,
)

__all__ = ["Mean", "mean_interval", "means_of"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_SUMS = ("n", "w", "w2")

FEW = 10
"""Below so many effective rows percentiles cannot leave the data: Student's interval is used."""


@dataclass(frozen=True)
class Mean:
    """A weighted mean over rows.

    Attributes
    ----------
    value, error : float
        The mean and its linearised standard error.
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
        What the mean can be at all.
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


def means_of(cells: Cells, first: int, everybody: Cells, fp: float, fn: float) -> dict[str, Mean]:
    """The means of a group's cells, by name; ``first`` is the first bin at the threshold.

    ``cost`` is the weighted cost, the mean of fp h for negatives and fn (1 - h) for positives;
    ``bias`` is the mean of y - h, whose size is the certified bound of the gap.
    """
    y = cells.label.astype(np.float64)
    h, square = cells.wh / cells.w, cells.wh2 / cells.w
    high = (cells.bin >= first).astype(np.float64)
    negative, positive, none = y == 0, y == 1, np.zeros_like(h)
    every = np.ones_like(negative)
    one = none + 1.0
    return {
        "base_rate": _mean(cells, every, y, none),
        "mean_score": _mean(cells, every, h, one),
        "generalized_fpr": _mean(cells, negative, h, one),
        "generalized_fnr": _mean(cells, positive, 1.0 - h, one),
        "fpr": _mean(cells, negative, high, none),
        "fnr": _mean(cells, positive, 1.0 - high, none),
        "accuracy": _mean(cells, every, (high == y).astype(np.float64), none),
        "selection_rate": _mean(cells, every, high, none),
        "brier": _mean(cells, every, square - 2.0 * h * y + y, 2.0 * (h - y)),
        "cost": _mean(
            cells,
            every,
            fp * h * (1.0 - y) + fn * (1.0 - h) * y,
            fp * (1.0 - y) - fn * y,
            (0.0, max(fp, fn)),
        ),
        "bias": _mean(cells, every, y - h, one, (-1.0, 1.0)),
        "share": _share(cells, everybody),
    }


def _mean(
    cells: Cells, inside: Flags, x: Floats, slope: Floats, limits: Interval = (0.0, 1.0)
) -> Mean:
    """The mean of x, which inside a cell is a straight line of the score with this slope."""
    n, w, w2, x, slope = (v[inside] for v in (cells.n, cells.w, cells.w2, x, slope))
    spread = np.maximum(cells.wh2[inside] / w - (cells.wh[inside] / w) ** 2, 0.0)
    within = np.where(spread > 1e-14, slope**2 * spread, 0.0)
    value = float((w * x).sum() / w.sum())
    binary = limits == (0.0, 1.0) and bool(((x == 0) | (x == 1)).all()) and not within.any()
    return _summary(n, w, w2, x - value, within, value, binary, limits)


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


def _share(cells: Cells, everybody: Cells) -> Mean:
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
    if values is not None and mean.rows >= FEW:
        return around(mean.value, accelerated(values, mean.value, mean.skew, factor))
    low, high = mean.limits
    half = factor * mean.error
    return max(low, mean.value - half), min(high, mean.value + half)
