"""Pools of neighbouring scores of one group: how fine they may be, and which meet a target exactly.

A pool gets its share of positives as its score, so any set of pools is calibrated on the tally.
Its cost depends on one number alone, its information, the sum over pools of w q^2 with weight w
and value q:

    g = K (mu - information / W),    K = a / (1 - mu) + b / mu.

Telling two neighbouring pools apart is worth w1 w2 / (w1 + w2) (q2 - q1)^2 of it.  A target is met
exactly by moving one edge between two pools, into a bin if need be, whose people a coin divides.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from isocost.typing import Floats

__all__ = [
    "Piece",
    "Pool",
    "Sides",
    "even_pools",
    "fewest_pools",
    "information",
    "inside",
    "joined",
    "meet",
    "meet_from_finest",
    "move_edge",
    "moved_edges",
    "narrow_pools",
    "plain",
    "settle",
    "worth",
]

EDGE_SLACK = 1e-14
"""Information per person that does not count: it moves a cost by less than rounding shows."""

ROUNDING = 1e-12
"""How far rounding may carry a value over a limit."""

HALVINGS = 60
"""A few more than a double in [0, 1] has digits."""

TRIES = 32
"""How many places for a new edge are tried."""

MOST = 1024
"""The largest number of parts of equal width that is tried."""

NARROW = 0.1
"""The greatest width of a pool that only removes miscalibration."""


@dataclass(frozen=True)
class Pool:
    """Neighbouring scores that become one value.

    Attributes
    ----------
    w, y : float
        The weight of everybody, and of the positives.
    low, high : float
        The mean scores of its lowest and its highest bin.
    first, last : int
        These bins.
    """

    w: float
    y: float
    low: float
    high: float
    first: int
    last: int

    @property
    def value(self) -> float:
        """The share of positives."""
        return self.y / self.w


@dataclass(frozen=True)
class Sides:
    """The finest pools of a group that respect the thresholds.

    Attributes
    ----------
    bins : list of Pool
        Its bins, from low to high.
    units : list of Pool
        What pools are made of: the bins, except that bins which must stay together for a value
        on their side are one unit.
    pools : list of Pool
        The finest pools with rising values, each made of units.
    thresholds : tuple of float
        No pool crosses one.
    dropped : tuple of float
        Thresholds that no pools respect, because the people on one side have a share of
        positives that belongs on the other.
    """

    bins: list[Pool]
    units: list[Pool]
    pools: list[Pool]
    thresholds: tuple[float, ...]
    dropped: tuple[float, ...]

    def limits(self, pools: Sequence[Pool], start: int, stop: int) -> tuple[float, float]:
        """Where values of ``pools[start:stop]`` may lie: on their side, between the neighbours'."""
        low, high = _side_of(pools[start], self.thresholds)
        if start:
            low = max(low, pools[start - 1].value)
        if stop < len(pools):
            high = min(high, pools[stop].value)
        return low, high

    def together(self, one: Pool, other: Pool) -> bool:
        """Whether two pools lie on the same side of every threshold."""
        sides = [bisect_right(self.thresholds, pool.low) for pool in (one, other)]
        return sides[0] == sides[1]


def _side_of(pool: Pool, thresholds: tuple[float, ...]) -> tuple[float, float]:
    """The thresholds next to a pool, below and above; infinite where there are none."""
    index = bisect_right(thresholds, pool.low)
    return (-math.inf, *thresholds)[index], (*thresholds, math.inf)[index]


def joined(pools: Sequence[Pool]) -> Pool:
    """Neighbours as one pool."""
    return Pool(
        w=math.fsum(pool.w for pool in pools),
        y=math.fsum(pool.y for pool in pools),
        low=pools[0].low,
        high=pools[-1].high,
        first=pools[0].first,
        last=pools[-1].last,
    )


def information(pools: Sequence[Pool]) -> float:
    """The sum of w q^2."""
    return math.fsum(pool.y * pool.value for pool in pools)


def worth(low: Pool, high: Pool) -> float:
    """The information that is lost when two neighbours become one pool."""
    return low.w * high.w / (low.w + high.w) * (high.value - low.value) ** 2


def settle(bins: Sequence[Pool], thresholds: tuple[float, ...]) -> Sides:
    """The finest pools whose values rise and stay on their side of every threshold.

    Where a whole side has a share of positives that belongs on another, the threshold
    between them is dropped, and the pools settle again.
    """
    dropped: tuple[float, ...] = ()
    while True:
        units: list[Pool] = []
        pools: list[Pool] = []
        wrong = None
        for side in _by_side(bins, thresholds):
            low, high = _side_of(side[0], thresholds)
            own, fixed = _on_side(_rising(side), low, high)
            if not low <= own[0].value < high:
                wrong = high if own[0].value >= high else low
                break
            pools += own
            units += _units(side, fixed)
        if wrong is None:
            return Sides(list(bins), units, pools, thresholds, dropped)
        dropped = (*dropped, wrong)
        thresholds = tuple(t for t in thresholds if t != wrong)


def _by_side(pools: Sequence[Pool], thresholds: tuple[float, ...]) -> list[list[Pool]]:
    """The pools between one threshold and the next; no empty lists."""
    ends = [bisect_left(pools, t, key=lambda pool: pool.low) for t in thresholds]
    sides = [list(pools[start:stop]) for start, stop in pairwise([0, *ends, len(pools)])]
    return [side for side in sides if side]


def _rising(bins: Sequence[Pool]) -> list[Pool]:
    """Pool adjacent violators: the most pools whose values rise."""
    stack: list[tuple[float, float, int]] = []
    for bin_ in bins:
        top = (bin_.w, bin_.y, 1)
        # Cross products, so that equal shares are seen as equal.
        while stack and stack[-1][1] * top[0] >= top[1] * stack[-1][0]:
            w, y, count = stack.pop()
            top = (w + top[0], y + top[1], count + top[2])
        stack.append(top)
    ends = np.cumsum([0, *(count for _, _, count in stack)]).tolist()
    return [joined(bins[start:stop]) for start, stop in pairwise(ends)]


def _on_side(pools: Sequence[Pool], low: float, high: float) -> tuple[list[Pool], list[Pool]]:
    """Join the outermost pools until their values lie in [low, high); also return those joined."""
    pools = list(pools)
    joined_high = joined_low = False
    while len(pools) > 1 and pools[-1].value >= high:
        pools[-2:] = [joined(pools[-2:])]
        joined_high = True
    while len(pools) > 1 and pools[0].value < low:
        pools[:2] = [joined(pools[:2])]
        joined_low = True
    return pools, [*pools[: int(joined_low)], *pools[len(pools) - int(joined_high) :]]


def _units(bins: Sequence[Pool], fixed: Sequence[Pool]) -> list[Pool]:
    """The bins, with each fixed pool in place of its bins: a part of it may be on a wrong side."""
    if not fixed:
        return list(bins)
    free = [b for b in bins if not any(p.first <= b.first <= p.last for p in fixed)]
    return sorted([*free, *dict.fromkeys(fixed)], key=lambda pool: pool.first)


def fewest_pools(sides: Sides) -> list[Pool]:
    """One pool per side: the least information that leaves every decision alone."""
    return [joined(side) for side in _by_side(sides.pools, sides.thresholds)]


def even_pools(sides: Sides, target: float) -> list[Pool]:
    """Pools of equal width on each side, as narrow as the target's information allows.

    The side with the widest parts is divided into one part more, all of equal width, as long as
    the pools have no more information than the target.  Parts whose values fall are joined.  So
    the edges depend on the scores and hardly on the labels.
    """
    lists = _by_side(sides.units, sides.thresholds)
    ranges = [side[-1].high - side[0].low for side in lists]
    counts = [1] * len(lists)
    pools = [_equal_parts(side, 1) for side in lists]
    for _ in range(min(len(sides.units), MOST)):
        widest = max(range(len(lists)), key=lambda i: ranges[i] / counts[i])
        counts[widest] += 1
        finer = list(pools)
        finer[widest] = _equal_parts(lists[widest], counts[widest])
        if information(list(chain.from_iterable(finer))) > target:
            break
        pools = finer
    return list(chain.from_iterable(pools))


def narrow_pools(sides: Sides, width: float = NARROW) -> list[Pool]:
    """Pools of equal width on each side, none wider than this; joined where values fall."""
    pools = []
    for side in _by_side(sides.units, sides.thresholds):
        count = max(1, math.ceil((side[-1].high - side[0].low) / width - 1e-9))
        pools += _equal_parts(side, count)
    return pools


def _equal_parts(side: list[Pool], count: int) -> list[Pool]:
    """The units of a side in so many parts of equal width, joined where values fall."""
    low, high = side[0].low, side[-1].high
    width = (high - low) / count or 1.0
    part = [min(int((unit.low - low) / width), count - 1) for unit in side]
    starts = [i for i in range(len(side)) if i == 0 or part[i] > part[i - 1]]
    return _rising([joined(side[start:stop]) for start, stop in pairwise([*starts, len(side)])])


@dataclass(frozen=True)
class Piece:
    """Neighbouring bins whose scores have the same outcomes: (value, probability) pairs."""

    first: int
    last: int
    outcomes: tuple[tuple[float, float], ...]
    low: float
    high: float

    @property
    def change(self) -> float:
        """How far a score moves at most."""
        return max(max(value - self.low, self.high - value) for value, _ in self.outcomes)


def plain(pool: Pool, value: float | None = None) -> Piece:
    """A pool without a coin; its value is the share of positives unless another is given."""
    value = pool.value if value is None else value
    return Piece(pool.first, pool.last, ((value, 1.0),), pool.low, pool.high)


def meet(pools: Sequence[Pool], sides: Sides, target: float) -> list[Piece] | None:
    """Split one of the pools so that the information is exactly the target.

    Parameters
    ----------
    pools : sequence of Pool
        With rising values and at most the target's information.
    sides : Sides
        The group: what the pools may be split into, and where their values may lie.

    Returns
    -------
    list of Piece or None
        None if no split with rising values has that much information.

    Notes
    -----
    Where no single new edge is worth enough, the best is taken and another one added.  Of several
    that are, the one with the smallest largest change is taken.
    """
    chosen = list(pools)
    known: dict[tuple[int, int, float, float], _Splits] = {}
    while True:
        need = target - information(chosen)
        if need <= EDGE_SLACK * math.fsum(pool.w for pool in chosen):
            return [plain(pool) for pool in chosen]
        splits = [_splits(chosen, index, sides, known) for index in range(len(chosen))]
        cuts = [(w, i, cut) for i, split in enumerate(splits) for cut, w in enumerate(split.worths)]
        edges = _edges(splits, sorted(cut for cut in cuts if cut[0] >= need), sides, need)
        if edges:
            break
        cuts = [cut for cut in cuts if cut[0] < need]
        if not cuts:
            return None
        _, index, cut = max(cuts)
        chosen[index : index + 1] = splits[index].at(cut)
    index, pieces = min(edges, key=lambda edge: _largest_change(edge[1]))
    return [*map(plain, chosen[:index]), *pieces, *map(plain, chosen[index + 1 :])]


def meet_from_finest(sides: Sides, target: float) -> tuple[list[Piece] | None, list[Pool]]:
    """Join the finest pools, neighbour by neighbour, until the information is the target.

    Returns
    -------
    pieces : list of Piece or None
        None if the target cannot be met by dividing the people of a single bin.
    pools : list of Pool
        The last pools that had at least the target's information.

    Notes
    -----
    Two neighbours can be joined gradually as long as the one that loses people does not need them
    for a value on its side.  So this fails only between two thresholds, where the lowest people
    need some above them and the highest some below them.
    """
    pools = list(sides.pools)
    while True:
        spare = information(pools) - target
        if spare <= EDGE_SLACK * math.fsum(pool.w for pool in pools):
            return [plain(pool) for pool in pools], pools
        pairs = enumerate(pairwise(pools))
        worths = [(worth(*pair), i) for i, pair in pairs if sides.together(*pair)]
        least, i = min(worths, default=(math.inf, 0))
        if least > spare:
            break
        pools[i : i + 2] = [joined(pools[i : i + 2])]
    for value, i in sorted(worths):
        before, (low, high), after = pools[:i], pools[i : i + 2], pools[i + 2 :]
        ways = moved_edges(low, high, sides.bins, value - spare, sides.limits(pools, i, i + 2))
        if ways:
            best = min(ways, key=_largest_change)
            return [*map(plain, before), *best, *map(plain, after)], pools
        met = meet([*before, joined([low, high]), *after], sides, target)
        if met:
            return met, pools
    return None, pools


def _largest_change(pieces: Sequence[Piece]) -> float:
    return max(piece.change for piece in pieces)


def _edges(
    splits: Sequence[_Splits], cuts: Sequence[tuple[float, int, int]], sides: Sides, need: float
) -> list[tuple[int, list[Piece]]]:
    """New edges that are worth what is needed: the first that is possible, and some more."""
    edges: list[tuple[int, list[Piece]]] = []
    for tried, (_, index, cut) in enumerate(cuts):
        if edges and tried >= TRIES:
            break
        ways = moved_edges(*splits[index].at(cut), sides.bins, need, splits[index].limits)
        edges += [(index, way) for way in ways]
    return edges


@dataclass(frozen=True)
class _Splits:
    """What a pool may be split into, where values may lie, and what each cut is worth."""

    parts: list[Pool]
    limits: tuple[float, float]
    worths: list[float]

    def at(self, cut: int) -> tuple[Pool, Pool]:
        """Two pools, the first with ``cut + 1`` of the parts."""
        return joined(self.parts[: cut + 1]), joined(self.parts[cut + 1 :])


def _splits(
    pools: Sequence[Pool],
    index: int,
    sides: Sides,
    known: dict[tuple[int, int, float, float], _Splits],
) -> _Splits:
    """The finest parts of a pool with which all values still rise.

    The values of its neighbours limit its parts as thresholds limit a side.
    """
    pool, limits = pools[index], sides.limits(pools, index, index + 1)
    key = (pool.first, pool.last, *limits)
    if key not in known:
        parts, _ = _on_side(_rising(inside(sides.units, pool)), *limits)
        sums = np.array([[part.w, part.y] for part in parts])
        low = np.cumsum(sums, axis=0)[:-1]
        high = np.cumsum(sums[::-1], axis=0)[::-1][1:]
        known[key] = _Splits(parts, limits, np.abs(_signed_worth(low, high)).tolist())
    return known[key]


def inside(parts: Sequence[Pool], pool: Pool) -> Sequence[Pool]:
    """The parts that lie in a pool."""
    start = bisect_left(parts, pool.first, key=lambda part: part.first)
    stop = bisect_right(parts, pool.last, key=lambda part: part.first)
    return parts[start:stop]


def moved_edges(
    low: Pool, high: Pool, bins: Sequence[Pool], keep: float, limits: tuple[float, float]
) -> list[list[Piece]]:
    """The edge of two pools, moved down and moved up until it is worth ``keep`` information."""
    ways = (move_edge(low, high, bins, keep, limits, down=down) for down in (True, False))
    return [way for way in ways if way]


def move_edge(
    low: Pool,
    high: Pool,
    bins: Sequence[Pool],
    keep: float,
    limits: tuple[float, float] = (-math.inf, math.inf),
    *,
    down: bool,
) -> list[Piece] | None:
    """Move the edge of two pools until telling them apart is worth ``keep`` information.

    As the edge moves down (or up) until one pool is used up, its worth falls to 0.  The first
    position where it is worth ``keep`` and both values lie within the limits is usually inside a
    bin, whose people, and no others, a coin divides.  None if there is no such position.

    Notes
    -----
    Both values are still the shares of positives of those who get them.  They stay in order,
    because the worth has the sign of the difference.  In rising pools the first position is always
    within the limits: the first bins of a rising pool never have a lower share of positives than
    all of it, nor the last a higher one.  Where bins must stay together it may not be.
    """
    giver, taker = (low, high) if down else (high, low)
    row = list(inside(bins, giver))
    if down:
        row.reverse()
    sums = np.array([[bin_.w, bin_.y] for bin_ in row])
    # Added up from either end, so that nothing is lost to subtraction.
    left = np.vstack([np.cumsum(sums[::-1], axis=0)[::-1], np.zeros(2)])
    taken = np.array([taker.w, taker.y]) + np.vstack([np.zeros(2), np.cumsum(sums, axis=0)])
    sign = 1.0 if down else -1.0
    for at, span in _crossings(left, taken, sums, keep, sign):
        # Plain numbers: they are needed some sixty times, and arrays of two would be slow.
        rest, grown, own = (pair.tolist() for pair in (left[at + 1], taken[at], sums[at]))
        share, kept, moved = _divide(rest, grown, own, keep, sign, span)
        if min(kept, moved) >= limits[0] - ROUNDING and max(kept, moved) < limits[1]:
            break
    else:
        return None
    outcomes = [(kept, 1.0 - share), (moved, share)]
    pieces = [
        _piece([taker, *row[:at]], [(moved, 1.0)]),
        _piece(row[at : at + 1], [pair for pair in outcomes if pair[1] > 0.0]),
    ]
    if row[at + 1 :]:
        pieces.append(_piece(row[at + 1 :], [(kept, 1.0)]))
    return pieces[::-1] if down else pieces


def _crossings(
    left: Floats, taken: Floats, sums: Floats, keep: float, sign: float
) -> Iterator[tuple[int, tuple[float, float]]]:
    """The bins, and the spans of their shares, in which the worth crosses ``keep``.

    With share s of a bin moved, W the weight and Y the positives of both pools, the worth is
    ``keep`` where

        (y W - w Y)^2 - keep W w (W - w) = 0,    w and y of the giver, both linear in s,

    which is convex in s: there may be less inside a bin though there is more at both its ends.
    """
    (whole, positives), w = taken[-1], sums[:, 0]
    d = left[:-1, 1] * whole - left[:-1, 0] * positives
    step = w * positives - sums[:, 1] * whole
    middle = keep * whole * w * (left[:-1, 0] - taken[:-1, 0]) / 2.0 - d * step
    lowest = np.clip(middle / (step**2 + keep * whole * w**2), 0.0, 1.0)[:, None]
    inner = _signed_worth(left[:-1] - lowest * sums, taken[:-1] + lowest * sums)
    ends = _signed_worth(left, taken)
    more = np.stack([ends[:-1], inner, ends[1:]], axis=1) * sign > keep
    more[0, 0] = True
    for at in np.flatnonzero(more.any(axis=1) & ~more.all(axis=1)).tolist():
        start, inside_, end = more[at].tolist()
        turn = float(lowest[at, 0])
        if start and not inside_:
            yield at, (0.0, turn)
        elif start:
            yield at, (turn, 1.0)
        if end and not inside_:
            yield at, (1.0, turn)


def _divide(
    rest: list[float],
    grown: list[float],
    own: list[float],
    keep: float,
    sign: float,
    span: tuple[float, float],
) -> tuple[float, float, float]:
    """The share of a bin that moves from the rest to the grown pool, and the values of both.

    A span begins with more worth than ``keep`` and ends with less.  It is halved to the last digit:
    the formula for the root (of a quadratic) loses digits where the shares of positives are close.
    """

    def divided(moved: float) -> tuple[tuple[float, float], tuple[float, float]]:
        stays = rest[0] + (1.0 - moved) * own[0], rest[1] + (1.0 - moved) * own[1]
        return stays, (grown[0] + moved * own[0], grown[1] + moved * own[1])

    more, less = span
    for _ in range(HALVINGS):
        middle = (more + less) / 2.0
        enough = sign * _worth_of(*divided(middle)) > keep
        more, less = (middle, less) if enough else (more, middle)
    stays, taken = divided(less)
    value = taken[1] / taken[0]
    return less, stays[1] / stays[0] if stays[0] > 0.0 else value, value


def _signed_worth(giver: Floats, taker: Floats) -> Floats:
    """The worth of an edge, with the sign of taker's value - giver's; 0 without a giver."""
    there = giver[..., 0] > 0.0
    w = np.where(there, giver[..., 0], 1.0)
    difference = taker[..., 1] / taker[..., 0] - giver[..., 1] / w
    size: Floats = w * taker[..., 0] / (w + taker[..., 0]) * difference * np.abs(difference)
    return np.where(there, size, 0.0)


def _worth_of(giver: tuple[float, float], taker: tuple[float, float]) -> float:
    """The same for one giver and one taker."""
    if giver[0] <= 0.0:
        return 0.0
    difference = taker[1] / taker[0] - giver[1] / giver[0]
    return giver[0] * taker[0] / (giver[0] + taker[0]) * difference * abs(difference)


def _piece(parts: Sequence[Pool], outcomes: Sequence[tuple[float, float]]) -> Piece:
    ordered = sorted(parts, key=lambda part: part.first)
    low, high = ordered[0], ordered[-1]
    return Piece(low.first, high.last, tuple(outcomes), low.low, high.high)
