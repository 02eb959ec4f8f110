"""The bins that scores are counted in, the same on every engine.

A grid is ``bins`` equal parts of [0, 1], the nine tenths 0.1 ... 0.9, and any further
edges.  The tenths are always included, so that the usual ten-bin calibration gap and common
thresholds are exact, not rounded to a bin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.checks import check_numbers, check_whole
from isocost.errors import Problem, UsageError, setting
from isocost.typing import Bools, Floats, Ints

MAX_BINS = 2**16
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

    bins: int = 1024
    edges: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        bins = check_whole(
            "bins", self.bins, 1, MAX_BINS, f"use {setting('bins', 1024)}, the default"
        )
        object.__setattr__(self, "bins", bins)
        object.__setattr__(self, "edges", self._normalise(self.edges))

    def _normalise(self, edges: Iterable[float]) -> tuple[float, ...]:
        checked = set(check_numbers("edges", edges))
        on_grid = {i / self.bins for i in range(1, self.bins)}.union(TENTHS)
        return tuple(sorted(checked - on_grid))

    @cached_property
    def cuts(self) -> Floats:
        """All cut points from 0 to 1, sorted."""
        uniform = np.arange(self.bins + 1) / self.bins
        cuts = np.unique(np.concatenate([uniform, TENTHS, self.edges]))
        cuts.flags.writeable = False
        return cuts

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.cuts) - 1

    @cached_property
    def extra(self) -> tuple[float, ...]:
        """Cut points that are not i / bins: tenths and edges."""
        uniform = np.arange(self.bins + 1) / self.bins
        return tuple(np.setdiff1d(self.cuts, uniform).tolist())

    @property
    def is_dyadic(self) -> bool:
        """Whether floor(score * bins) is exact in floating point."""
        return self.bins & (self.bins - 1) == 0

    @property
    def slots(self) -> int:
        """The number of slots of :meth:`slot`; a few more than there are bins."""
        return self.bins + 1 + len(self.extra)

    @cached_property
    def bin_of_slot(self) -> Ints:
        """The bin of each slot."""
        starts = np.concatenate([np.arange(self.bins + 1) / self.bins, self.extra])
        return self._search(starts)

    @cached_property
    def _is_cut(self) -> Bools:
        """For each equal part, whether a further edge lies inside it."""
        cut = np.zeros(self.bins + 1, dtype=bool)
        cut[(np.array(self.extra) * self.bins).astype(np.intp)] = True
        return cut

    def slot(self, scores: Floats) -> Ints:
        """The slot of each score, quick to compute; :attr:`bin_of_slot` gives its bin.

        Slot i is the equal part that starts at i / bins (the last is for 1 alone); after them come
        the bins that start at a further edge.  The scores must lie in [0, 1].
        """
        if not self.is_dyadic:
            return self._slot_of_bin[self._search(scores)]
        part = (scores * self.bins).astype(np.intp)
        if self.extra:
            # Only the few scores in a part with an edge inside are searched.
            rows = np.flatnonzero(self._is_cut[part])
            part[rows] = self._slot_of_bin[self._search(scores[rows])]
        return part

    @cached_property
    def _slot_of_bin(self) -> Ints:
        slots = np.empty(self.size, dtype=np.intp)
        # Backwards, so that the last bin does not get the slot of score 1.
        slots[self.bin_of_slot[::-1]] = np.arange(self.slots)[::-1]
        return slots

    def index(self, scores: Floats) -> Ints:
        """The bin of each score; the scores must lie in [0, 1]."""
        return self.bin_of_slot[self.slot(scores)]

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

    def has_cut(self, value: float) -> bool:
        """Whether ``value`` is one of the cut points."""
        return value in self._index_of_cut

    @cached_property
    def _index_of_cut(self) -> dict[float, int]:
        return {cut: index for index, cut in enumerate(self.cuts.tolist())}

    def first_bin(self, value: float, name: str = "threshold") -> int:
        """The first bin at or above ``value``, which must be a cut point."""
        if not self.has_cut(value):
            rule = "must be an edge of the tally, so that no bin lies on both sides of it"
            got = f"{value!r}, which lies inside a bin"
            step = (
                f"make the tally with {setting('edges', (value,))}, or use a tenth or a multiple "
                f"of 1/{self.bins}"
            )
            raise UsageError(Problem(name, rule, got, step))
        return self._index_of_cut[value]
