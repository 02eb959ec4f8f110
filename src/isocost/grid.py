"""The scales of scores, and the bins that they are counted in, the same on every engine.

A grid is ``bins`` equal parts of [0, 1], the nine tenths 0.1 ... 0.9, and any further
edges.  The tenths are always included, so that the usual ten-bin calibration gap and common
thresholds are exact, not rounded to a bin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.checks import check_numbers, check_whole
from isocost.errors import Problem, UsageError, setting
from isocost.typing import Floats, Ints

BINS, MAX_BINS = 1024, 2**16
"""The number of equal parts that scores are counted in by default, and the greatest."""

TENTHS = tuple(i / 10 for i in range(1, 10))


@dataclass(frozen=True)
class Grid:
    """Cut points of [0, 1]: bin k holds the scores in [cuts[k], cuts[k + 1]).

    Parameters
    ----------
    bins : int
        Number of equal parts; a power of two makes 0.5, 0.25 ... exact edges.
    edges : tuple of float
        Further cut points, such as a decision threshold.  Those already on the grid are
        dropped, so that grids with the same cuts are equal.

    Attributes
    ----------
    thresholds : tuple of float
        The edges that were asked for, on the grid or not; 0.5 if none was.

    Notes
    -----
    The last bin includes 1.  A cut point is the double nearest to i / bins and membership
    is decided by comparing with it, so every engine that has IEEE doubles agrees.

    Examples
    --------
    >>> grid = Grid(4, (0.3, 0.5, 0.55))
    >>> grid.edges
    (0.55,)
    >>> grid.index(np.array([0.0, 0.25, 0.54, 0.55, 1.0])).tolist()
    [0, 3, 6, 7, 12]
    """

    bins: int = BINS
    edges: tuple[float, ...] = ()
    thresholds: tuple[float, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        step = f"use {setting('bins', BINS)}, the default"
        object.__setattr__(self, "bins", check_whole("bins", self.bins, 1, MAX_BINS, step))
        asked = set(check_numbers("edges", self.edges))
        object.__setattr__(self, "thresholds", tuple(sorted(asked)) or (0.5,))
        further = asked - self._even.union(TENTHS)
        object.__setattr__(self, "edges", tuple(sorted(further)))

    @property
    def _even(self) -> set[float]:
        """The cut points i / bins."""
        return {i / self.bins for i in range(self.bins + 1)}

    @cached_property
    def cuts(self) -> Floats:
        """All cut points from 0 to 1, sorted."""
        cuts = np.array(sorted(self._even.union(TENTHS, self.edges)))
        cuts.flags.writeable = False
        return cuts

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.cuts) - 1

    @cached_property
    def extra(self) -> tuple[float, ...]:
        """Cut points that are not i / bins: tenths and edges."""
        return tuple(sorted({*TENTHS, *self.edges} - self._even))

    @property
    def is_dyadic(self) -> bool:
        """True if floor(score * bins) is exact in floating point."""
        return self.bins & (self.bins - 1) == 0

    @cached_property
    def _bin_of_part(self) -> Ints:
        """The bin of each equal part, the last being 1 alone; -1 where an edge lies inside."""
        bins = self._search(np.arange(self.bins + 1) / self.bins)
        bins[(np.array(self.extra) * self.bins).astype(np.intp)] = -1
        return bins

    def index(self, scores: Floats) -> Ints:
        """The bin of each score; the scores must lie in [0, 1]."""
        if not self.is_dyadic:
            return self._search(scores)
        bins = self._bin_of_part[(scores * self.bins).astype(np.intp)]
        # Only the few scores in a part with an edge inside are searched.
        rows = np.flatnonzero(bins < 0)
        bins[rows] = self._search(scores[rows])
        return bins

    def at_count(self, counts: npt.NDArray[Any]) -> Ints:
        """The bins of scores, from the number of edges at or below each.

        The equal parts, the tenths and the further edges are counted separately, which is
        quickest in a query: an edge in two of these lists counts twice.

        Examples
        --------
        >>> scores = np.array([0.0, 0.3, 0.75, 1.0])
        >>> counts = np.floor(scores * 4) + np.floor(scores * 10)
        >>> Grid(4).at_count(counts).tolist(), Grid(4).index(scores).tolist()
        ([0, 4, 9, 11], [0, 4, 9, 11])
        """
        lists = (np.arange(1, self.bins) / self.bins, TENTHS, self.edges)
        known = sum(np.searchsorted(edges, self.cuts[:-1], side="right") for edges in lists)
        return np.searchsorted(known, counts, side="right") - 1

    def _search(self, scores: Floats) -> Ints:
        bins = np.searchsorted(self.cuts, scores, side="right") - 1
        return np.minimum(bins, self.size - 1)

    @cached_property
    def index_of_cut(self) -> dict[float, int]:
        """The first bin at or above each cut point."""
        return {cut: index for index, cut in enumerate(self.cuts.tolist())}

    def first_bin(self, value: float, name: str = "threshold") -> int:
        """The first bin at or above ``value``, which must be a cut point."""
        if value not in self.index_of_cut:
            rule = "must be an edge of the tally, so that no bin lies on both sides of it"
            got = f"{value!r}, which lies inside a bin"
            step = (
                f"make the tally with {setting('edges', (value,))}, or use a tenth or a multiple "
                f"of 1/{self.bins}"
            )
            raise UsageError(Problem(name, rule, got, step))
        return self.index_of_cut[value]


_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Scale:
    """The kind of numbers in a score column, and the probability that each stands for.

    A rank r, a whole number from low to high, stands for the middle of its part of [0, 1] cut into
    as many parts as there are ranks: (r - low + 1/2) / (high - low + 1).  That is not a
    probability of anything; it only keeps the order.
    """

    name: str
    low: float
    high: float
    rule: str
    outside: str

    @property
    def is_plain(self) -> bool:
        """True if scores are probabilities as they are."""
        return self.name == "probability"

    @property
    def is_rank(self) -> bool:
        """True if scores are ranks."""
        return self.name.startswith("rank")

    @property
    def is_open(self) -> bool:
        """True if the range of the ranks must be found in the data."""
        return self.name == "rank"

    def within(self, low: float, high: float) -> Scale:
        """These ranks."""
        return _ranks(math.floor(low), math.ceil(high))

    def holds(self, values: Any) -> Any:
        """True for values, an array or an expression, that are on the scale."""
        good = (values >= self.low) & (values <= self.high)
        if not self.is_rank:
            return good
        return good & (values == (values.floor() if hasattr(values, "floor") else np.floor(values)))

    def probability(self, values: Any) -> Any:
        """The probabilities that values, an array or an expression, stand for."""
        if self.is_plain:
            return values
        if self.name == "logit":
            # Without exp(-x), which overflows.
            size = values.abs() if hasattr(values, "abs") else np.abs(values)
            return _exp((values - size) * 0.5) / (1.0 + _exp(0.0 - size))
        first, size = (self.low - 0.5, self.high - self.low + 1.0) if self.is_rank else (0.0, 100.0)
        # By a column, since Polars multiplies by the reciprocal of a constant, and 57 * 0.01 is
        # not 0.57.
        return (values - first) / (values * 0.0 + size)

    def sql(self, value: str, literal: Callable[[float], str]) -> str:
        """The probability that a column stands for; null if it is on no rank."""
        if self.is_plain:
            return value
        if self.name == "logit":
            one, half = literal(1.0), literal(0.5)
            return f"(exp(({value} - abs({value})) * {half}) / ({one} + exp(-abs({value}))))"
        if not self.is_rank:
            return f"(({value}) / {literal(100.0)})"
        size = literal(self.high - self.low + 1.0)
        rank = f"(({value}) - {literal(self.low - 0.5)}) / {size}"
        return f"CASE WHEN floor({value}) = {value} THEN {rank} END"


def _exp(values: Any) -> Any:
    return values.exp() if hasattr(values, "exp") else np.exp(values)


def _ranks(low: int, high: int) -> Scale:
    rule = f"must be a whole number from {low} to {high} in every row"
    return Scale(f"rank:{low}-{high}", low, high, rule, f"other than ranks from {low} to {high}")


SCALES = {
    scale.name: scale
    for scale in (
        Scale("probability", 0.0, 1.0, "must be a number in [0, 1] in every row", "outside [0, 1]"),
        Scale(
            "percent", 0.0, 100.0, "must be a percentage in [0, 100] in every row",
            "outside [0, 100]",
        ),
        Scale("logit", -_LARGEST, _LARGEST, "must be a finite number in every row", "infinite"),
        Scale(
            "rank", -_LARGEST, _LARGEST, "must be a whole number in every row",
            "other than whole numbers",
        ),
    )
}  # fmt: skip
"""The scales of scores, by name; ranks may also name their range, as in rank:1-10."""

PROBABILITY = SCALES["probability"]


def scale_named(name: Any) -> Scale:
    """The scale of a name such as "percent" or "rank:1-10".

    Examples
    --------
    >>> scale_named("percent").probability(57.0), scale_named("rank:1-10").probability(1.0)
    (0.57, 0.05)
    """
    if isinstance(name, str):
        named = re.fullmatch(r"rank:(-?[0-9]{1,9})-(-?[0-9]{1,9})", name)
        if named and int(named[1]) < int(named[2]):
            return _ranks(int(named[1]), int(named[2]))
        if name in SCALES:
            return SCALES[name]
    rule = f"must be {', '.join(SCALES)}, or a range of ranks such as rank:1-10"
    step = "leave it out if scores are probabilities"
    raise UsageError(Problem("scale", rule, repr(name)[:80], step))


def fitting_scales(low: float, high: float, is_whole: bool) -> list[str]:
    """The scales that numbers in a range may have, other than probabilities.

    Examples
    --------
    >>> fitting_scales(1, 10, True), fitting_scales(-3.2, 4.1, False), fitting_scales(0, 1.1, False)
    (['rank', 'percent'], ['logit'], [])
    """
    if low > -0.5 and high < 2.0:
        return []
    ranks = ["rank"] if is_whole and high - low < 10_000 else []
    if low >= 0.0 and high <= 100.0:
        return ["percent", *ranks] if high > 20.0 else [*ranks, "percent"]
    return ["logit", *ranks] if -1000.0 < low < 0.0 and high < 1000.0 else ranks


def scale_step(low: float, high: float, is_whole: bool) -> str:
    """The next step for scores outside [0, 1]: the scales that fit."""
    meant = {"percent": "percentages", "logit": "log-odds", "rank": "ranks such as deciles"}
    offered = " or ".join(
        f"{setting('scale', name)} if they are {meant[name]}"
        for name in fitting_scales(low, high, is_whole)
    )
    return f"pass {offered}; else correct those rows" if offered else ""
