"""The levels of a group: neighbouring scores pooled until a share of positives means something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isocost.cells import add_up
from isocost.tallies import Tally

__all__ = ["FEWEST", "ScoreLevels", "score_levels"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

FEWEST = 20
"""A level holds at least so many rows where it can: the share of positives of fewer is noise, and
a level of one row would hand out its label as a score."""

SNAP = 1e-12
"""A share of positives this near the threshold is the threshold: rounding decides nothing."""


@dataclass(frozen=True, eq=False)
class ScoreLevels:
    """The levels of one group, from low to high scores.

    Attributes
    ----------
    lo, hi : arrays
        The interval [lo, hi) of scores; no interval reaches over the threshold.
    above : array of bool
        Whether the interval lies at or above the threshold.
    n, w : arrays
        Rows, and share of the group's weight.
    p, h : arrays
        Share of positives, and mean score.
    share : float
        The group's share of everybody.
    base_rate : float
        The group's share of positives.
    """

    lo: Floats
    hi: Floats
    above: npt.NDArray[np.bool_]
    n: Floats
    w: Floats
    p: Floats
    h: Floats
    share: float
    base_rate: float

    def __len__(self) -> int:
        return len(self.w)


def score_levels(tally: Tally, place: int, threshold: float, most: int) -> ScoreLevels:
    """Pool neighbouring bins of a group to at most ``most`` levels (two or more).

    From low to high a level is closed when it has 1 / most of the group's weight and
    :data:`FEWEST` rows; what is left over at the end of a side of the threshold joins the
    last level of that side.  Between two levels empty bins are shared half and half.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> caucasian = score_levels(compas(), 1, 0.5, 64)
    >>> caucasian.p.round(3).tolist()
    [0.209, 0.313, 0.341, 0.396, 0.461, 0.572, 0.615, 0.719, 0.694, 0.703]
    >>> len(score_levels(compas(), 1, 0.5, 4))
    3
    """
    cells, size = tally.cells, tally.grid.size
    inside = cells.group == place
    bin_, w = cells.bin[inside], cells.w[inside]
    values = (cells.n[inside], w, w * cells.label[inside], cells.wh[inside])
    sums = np.stack([add_up(bin_, value, size) for value in values])
    used = np.flatnonzero(sums[1] > 0)
    first = tally.grid.first_bin(threshold)
    starts = np.array(list(_starts(used >= first, sums[:2, used], most)), dtype=np.intp)
    n, weight, positive, wh = np.add.reduceat(sums[:, used], starts, axis=1)
    above = used[starts] >= first
    lo, hi = _intervals(tally.grid.cuts, used, starts, first)
    p = positive / weight
    return ScoreLevels(
        lo=lo,
        hi=hi,
        above=above,
        n=n,
        w=weight / weight.sum(),
        p=np.where(np.abs(p - threshold) < SNAP, threshold, p),
        h=wh / weight,
        share=float(weight.sum() / tally.totals.w.sum()),
        base_rate=float(positive.sum() / weight.sum()),
    )


def _starts(above: npt.NDArray[np.bool_], sums: Floats, most: int) -> Iterator[int]:
    """The places where a level begins."""
    enough = sums[1].sum() / most * (1.0 - 1e-12)
    for side in (False, True):
        places = np.flatnonzero(above == side)
        rest = sums[:, places].sum(axis=1)
        rows = weight = 0.0
        for k, place in enumerate(places):
            # What is left must be able to fill a level of its own.
            full = weight >= enough and rows >= FEWEST
            if k == 0 or (full and rest[1] >= enough and rest[0] >= FEWEST):
                yield int(place)
                rows = weight = 0.0
            rows, weight = rows + sums[0, place], weight + sums[1, place]
            rest = rest - sums[:, place]


def _intervals(cuts: Floats, used: Ints, starts: Ints, first: int) -> tuple[Floats, Floats]:
    """The intervals of the levels: they fill each side of the threshold that has anybody."""
    begin = used[starts]
    end = np.append(used[starts[1:] - 1], used[-1]) + 1
    above = begin >= first
    middle = (end[:-1] + begin[1:]) // 2
    apart = above[1:] != above[:-1]
    lo = np.concatenate([[first if above[0] else 0], np.where(apart, first, middle)])
    hi = np.append(np.where(apart, first, middle), len(cuts) - 1 if above[-1] else first)
    return cuts[lo], cuts[hi]
