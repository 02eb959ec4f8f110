"""The pools that change scores least: a search by dynamic programming over their edges.

Values must not fall.  For the least change with *at most* a given information this needs no care:
if q1 > q2 for neighbours, then as one pool they have less information, and neither the largest
change nor the mean change grows.  (Let u be a score between both pools and m their common value.
If m <= u, the people above come nearer by w2 (m - q2) in all, those below move by w1 (q1 - m) at
most, and the two are equal; likewise if m > u.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isocost.repairs.pools import (
    EXACT,
    ROUNDING,
    Bins,
    Meeting,
    Minimize,
    Pools,
    Spans,
    around,
    nearest_pools,
)
from isocost.typing import Bools, Floats, Ints

LEVELS = 5
"""How often the search looks, each time closer."""

EDGES = 64
"""How many edges the search looks at together; then it looks closer around the best ones."""

STEPS = 20
"""How often the search halves the bound of the largest change, or the price of information."""

PRECISE = 0.01
"""How precisely, relative to its size."""

WAYS = 256
"""How many sets of pools are remembered in all."""

WORK = 20_000
"""How many bins to divide are tried for the last edge."""

NEAR = 1.01
"""How far above a lower bound of the largest change the search is content."""


def best_pools(bins: Bins, target: float, minimize: Minimize = "largest") -> Pools | None:
    """The pools with exactly the target's information that change scores least.

    Parameters
    ----------
    bins : Bins
        With thresholds that pools can respect, see :func:`settle`.
    target : float
        Between the information of one pool per side and that of the finest pools.
    minimize : {"largest", "mean"}
        Which change of the scores to make small.

    Returns
    -------
    Pools or None
        None if no pools meet the target by dividing a single bin.

    Notes
    -----
    A search by dynamic programming over at most EDGES edges finds the pools with at most the
    target's information that change scores least, and some with a little more; then again with
    edges closer to theirs.  One edge of these is moved or added.  If that is not within NEAR of a
    lower bound, or if there are few bins, many sets of pools from below and from above are put
    together, with a gap between them for the last edge.
    """
    for extreme in (bins.walls, bins.finest):
        if abs(bins.information(extreme) - target) <= EXACT * bins.sums[0, -1]:
            return Pools(extreme, bins.values(extreme))
    meeting = Meeting(bins, target, minimize)
    edges, bracket = _spread(bins), (0.0, 1.0)
    for _ in range(LEVELS):
        choices = _Choices.of(bins, edges, minimize)
        bound, bracket, sets = _searched(bins, choices, target, minimize, bracket)
        edges = _closer(bins, edges, sets)
        if np.isin(edges, choices.edges).all():
            break
    for pools in sets:
        meeting.add(around(bins, bins.rising(pools), minimize))
    if len(bins) <= EDGES or meeting.change > NEAR * bound:
        meeting.add(_gaps(bins, choices, target, minimize, meeting.change))
    if meeting.pools is None:
        meeting.add(around(bins, nearest_pools(bins, target), minimize))
    return meeting.pools


@dataclass(frozen=True)
class _Choices:
    """All pools that begin and end at some edges.

    Attributes
    ----------
    edges : array
        The edges, from 0 to the number of bins.
    legal : array
        Whether a pool may begin at edge i and end at edge j + 1: not across a threshold, with a
        value on its side.
    value, information, change : array
        Of each of these pools.
    """

    edges: Ints
    legal: Bools
    value: Floats
    information: Floats
    change: Floats

    @classmethod
    def of(cls, bins: Bins, edges: Ints, minimize: Minimize) -> _Choices:
        """Those with some edges."""
        start, stop = np.broadcast_arrays(edges[:-1, None], edges[None, 1:])
        forward = stop > start
        stop = np.maximum(stop, start + 1)
        w, y = bins.sums[:2, stop] - bins.sums[:2, start]
        value = y / w
        side = bins.side[start]
        legal = forward & (side == bins.side[stop - 1]) & (value < bins.bounds[side + 1])
        legal &= value >= bins.bounds[side] - ROUNDING
        change = bins.changes(start, stop, value, minimize)
        return cls(edges, legal, value, y * value, change)

    def upside_down(self) -> _Choices:
        """The same pools, counted from above; values have the other sign, so that they rise."""
        return _Choices(
            edges=self.edges,
            legal=np.flip(self.legal).T,
            value=-np.flip(self.value).T,
            information=np.flip(self.information).T,
            change=np.flip(self.change).T,
        )

    def shortest(self, lengths: Floats) -> tuple[float, Ints]:
        """The shortest way through all bins, and its edges; infinite if there is none."""
        reached = np.zeros(len(self.edges))
        before = np.zeros(len(self.edges), dtype=np.int64)
        for j, column in enumerate(np.ascontiguousarray(lengths.T), start=1):
            ways = reached[:j] + column[:j]
            before[j] = i = ways.argmin()
            reached[j] = ways[i]
        way = [len(self.edges) - 1]
        while way[-1]:
            way.append(int(before[way[-1]]))
        return float(reached[-1]), self.edges[way[::-1]]


def _searched(
    bins: Bins,
    choices: _Choices,
    target: float,
    minimize: Minimize,
    bracket: tuple[float, float],
) -> tuple[float, tuple[float, float], list[Ints]]:
    """A lower bound of the change, the best pools with at most the target's information, and more.

    A bound of the largest change is halved until the pools with the least information that respect
    it have the target's.  For the mean change it is the price of information that is halved.
    """
    largest, bound, (low, high) = minimize == "largest", 0.0, bracket
    trial, enough, too_much = high, bins.walls, bins.walls
    for _ in range(STEPS):
        if high - low <= PRECISE * high:
            break
        if largest:
            lengths = np.where(choices.change <= trial, choices.information, math.inf)
        else:
            lengths = (1.0 - trial) * choices.change + trial * choices.information
        length, pools = choices.shortest(np.where(choices.legal, lengths, math.inf))
        fits = length < math.inf and bins.information(pools) <= target + EXACT * bins.sums[0, -1]
        low, high = (low, trial) if fits else (trial, high)
        if length < math.inf:
            enough, too_much = (pools, too_much) if fits else (enough, pools)
        if not largest and trial < 1.0:
            bound = max(bound, (length - trial * target) / (1.0 - trial))
        trial = (low + high) / 2.0
    around = (0.9 * low, high) if largest else (0.5 * low, (1.0 + high) / 2.0)
    return low if largest else bound, around, [enough, too_much]


def _spread(bins: Bins) -> Ints:
    """All edges; or some, equally far apart, equally many people apart, and of the finest pools."""
    if len(bins) <= EDGES:
        return np.arange(len(bins) + 1)
    parts = np.linspace(0.0, 1.0, EDGES // 3)
    score, w = bins.score, bins.sums[0]
    even = np.searchsorted(score, score[0] + parts * (score[-1] - score[0]))
    alike = np.searchsorted(w, parts * w[-1])
    return np.unique([*bins.walls, *even, *alike, *_thinned(bins.finest, EDGES // 3)])


def _closer(bins: Bins, edges: Ints, sets: list[Ints]) -> Ints:
    """Edges next to those of some pools, up to the edges that were looked at before."""
    best = np.unique(np.concatenate([bins.walls, *sets]))
    at = np.searchsorted(edges, best)
    first, last = edges[np.maximum(at - 1, 0)], edges[np.minimum(at + 1, len(edges) - 1)]
    near = np.concatenate([np.arange(i, j + 1) for i, j in zip(first, last, strict=True)])
    return np.unique([*best, *_thinned(np.unique(near), EDGES)])


def _thinned(edges: Ints, most: int) -> Ints:
    """At most so many of the edges."""
    return edges[:: -(-len(edges) // most)]


@dataclass(frozen=True)
class _Ways:
    """Sets of pools of the bins below an edge: a few for each edge, with spread information."""

    to: Ints
    information: Floats
    change: Floats
    value: Floats
    before: Ints

    def edges(self, way: int) -> list[int]:
        """The edges of one of them, as positions among the choices' edges."""
        edges = [int(self.to[way])]
        while edges[-1]:
            way = int(self.before[way])
            edges.append(int(self.to[way]))
        return edges[::-1]


def _ways(
    choices: _Choices, minimize: Minimize, least: Floats, most: Floats, change_below: float
) -> _Ways:
    """Sets of pools up to each edge, with information between ``least`` and ``most`` there.

    At most WAYS in all are kept: of those with nearly the same information, the one that changes
    scores least.
    """
    count = len(choices.edges) - 1
    keep = max(2, WAYS // count)
    ways = _Ways(np.array([0]), np.zeros(1), np.zeros(1), np.array([-math.inf]), np.array([0]))
    for j in range(count):
        to = ways.to
        change = _together(minimize, ways.change, choices.change[to, j])
        information = ways.information + choices.information[to, j]
        legal = choices.legal[to, j] & (ways.value <= choices.value[to, j] + ROUNDING)
        legal &= (information >= least[j + 1]) & (information <= most[j + 1])
        new = np.flatnonzero(legal & (change < change_below))
        if len(new) > keep:
            own = information[new]
            part = ((own - own.min()) * (keep / (np.ptp(own) or 1.0))).astype(int)
            order = np.lexsort((change[new], part))
            new = new[order[np.flatnonzero(np.diff(part[order], prepend=-1))]]
        ways = _Ways(
            to=np.append(to, np.full(len(new), j + 1)),
            information=np.append(ways.information, information[new]),
            change=np.append(ways.change, change[new]),
            value=np.append(ways.value, choices.value[to[new], j]),
            before=np.append(ways.before, new),
        )
    return ways


def _together(minimize: Minimize, one: Floats, other: Floats) -> Floats:
    """The change of two sets of pools together."""
    total: Floats = np.maximum(one, other) if minimize == "largest" else one + other
    return total


def _gaps(
    bins: Bins, choices: _Choices, target: float, minimize: Minimize, change_below: float
) -> Spans:
    """Sets of pools from below and from above with a gap between them for two pools."""
    edges, count = choices.edges, len(choices.edges) - 1
    w, y, _ = bins.sums[:, edges]
    slack = ROUNDING * w[-1]
    # What the bins below and above each edge have at most, alone, and at least, as one pool.
    alone = np.concatenate([[0.0], np.cumsum(bins.y**2 / bins.w)])[edges]
    below, above = (y[1:] ** 2 / w[1:], (y[-1] - y[:-1]) ** 2 / (w[-1] - w[:-1]))
    least, most = target - alone[-1] + alone - slack, target + slack - np.append(above, 0.0)
    lower = _ways(choices, minimize, least, most, change_below)
    least, most = target - alone - slack, target + slack - np.append(0.0, below)
    upper = _ways(choices.upside_down(), minimize, least[::-1], most[::-1], change_below)
    a, c = lower.to[:, None], count - upper.to
    information = lower.information[:, None] + upper.information
    change = _together(minimize, lower.change[:, None], upper.change)
    need = target - information
    good = (c > a) & (change < change_below) & (need <= alone[c] - alone[a] + slack)
    good &= bins.side[edges[np.minimum(a, count - 1)]] == bins.side[edges[np.maximum(c, 1)] - 1]
    good &= need * (w[c] - w[a]) >= (y[c] - y[a]) ** 2 - slack * w[-1]
    i, j = np.nonzero(good)
    order = np.argsort(change[i, j], kind="stable")
    order = order[: np.searchsorted(np.cumsum((edges[c[j]] - edges[lower.to[i]])[order]), WORK)]
    i, j = i[order], j[order]
    return Spans(
        start=edges[lower.to[i]],
        stop=edges[c[j]],
        information=information[i, j],
        change=change[i, j],
        low=lower.value[i],
        high=-upper.value[j],
        edges=lambda row: (
            edges[lower.edges(int(i[row]))].tolist(),
            edges[count - np.array(upper.edges(int(j[row])))][::-1].tolist(),
        ),
    )
