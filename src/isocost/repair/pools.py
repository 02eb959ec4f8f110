"""Pools of neighbouring scores of one group: how fine they may be, and which to take.

A pool gets its share of positives as its score, so any set of pools is calibrated on the
tally.  What it costs depends on one number alone, its information, the sum over pools of w q^2 with
weight w and value q:

    g = K (mu - information / W),    K = a / (1 - mu) + b / mu.

Telling two neighbouring pools apart is worth w1 w2 / (w1 + w2) (q2 - q1)^2 of it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

__all__ = [
    "Pool",
    "Sides",
    "even_pools",
    "fewest_pools",
    "information",
    "joined",
    "narrow_pools",
    "on_side",
    "rising",
    "settle",
    "units_of",
    "worth",
]


MOST = 1024
"""How many parts of equal width are tried at most."""

NARROW = 0.1
"""How wide a pool is at most that only takes miscalibration away."""


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
    """The finest pools of a group that leave it on its sides of the thresholds.

    Attributes
    ----------
    bins : list of Pool
        Its bins, from low to high.
    units : list of Pool
        What pools are made of: the bins, but bins that must stay together for a value on their
        side as one.
    pools : list of Pool
        The finest pools with rising values, each made of units.
    thresholds : tuple of float
        No pool crosses one.
    dropped : tuple of float
        Thresholds that had to be given up, because the people on one side of them have
        a share of positives that belongs on the other.
    """

    bins: list[Pool]
    units: list[Pool]
    pools: list[Pool]
    thresholds: tuple[float, ...]
    dropped: tuple[float, ...]

    def limits(self, pools: Sequence[Pool], start: int, stop: int) -> tuple[float, float]:
        """Where values of ``pools[start:stop]`` may lie: on their side, between the neighbours'."""
        place = bisect_right(self.thresholds, pools[start].low)
        low, high = (-math.inf, *self.thresholds, math.inf)[place : place + 2]
        if start:
            low = max(low, pools[start - 1].value)
        if stop < len(pools):
            high = min(high, pools[stop].value)
        return low, high

    def together(self, one: Pool, other: Pool) -> bool:
        """Whether two pools lie on the same side of every threshold."""
        places = [bisect_right(self.thresholds, pool.low) for pool in (one, other)]
        return places[0] == places[1]


def joined(pools: Sequence[Pool]) -> Pool:
    """One pool of neighbours."""
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
            place = bisect_right(thresholds, side[0].low)
            lo, hi = (-math.inf, *thresholds, math.inf)[place : place + 2]
            found, fixed = on_side(rising(side), lo, hi)
            value = found[0].value
            if not lo <= value < hi:
                wrong = hi if value >= hi else lo
                break
            pools += found
            units += units_of(side, fixed)
        if wrong is None:
            return Sides(list(bins), units, pools, thresholds, dropped)
        dropped = (*dropped, wrong)
        thresholds = tuple(t for t in thresholds if t != wrong)


def _by_side(pools: Sequence[Pool], thresholds: tuple[float, ...]) -> list[list[Pool]]:
    """The pools between one threshold and the next; no empty lists."""
    ends = [bisect_left(pools, t, key=lambda pool: pool.low) for t in thresholds]
    parts = [list(pools[a:b]) for a, b in pairwise([0, *ends, len(pools)])]
    return [part for part in parts if part]


def rising(bins: Sequence[Pool]) -> list[Pool]:
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


def on_side(pools: list[Pool], lo: float, hi: float) -> tuple[list[Pool], list[Pool]]:
    """Join the outermost pools until their values lie in [lo, hi); and say which had to be."""
    found = list(pools)
    joined_high = joined_low = False
    while len(found) > 1 and found[-1].value >= hi:
        found[-2:] = [joined(found[-2:])]
        joined_high = True
    while len(found) > 1 and found[0].value < lo:
        found[:2] = [joined(found[:2])]
        joined_low = True
    return found, [*found[: int(joined_low)], *found[len(found) - int(joined_high) :]]


def units_of(bins: Sequence[Pool], fixed: Sequence[Pool]) -> list[Pool]:
    """The bins, but a fixed pool instead of its own: part of it may be on a wrong side."""
    if not fixed:
        return list(bins)
    free = [b for b in bins if not any(p.first <= b.first <= p.last for p in fixed)]
    return sorted([*free, *dict.fromkeys(fixed)], key=lambda pool: pool.first)


def fewest_pools(sides: Sides) -> list[Pool]:
    """One pool per side: the least information that leaves every decision alone."""
    return [joined(side) for side in _by_side(sides.pools, sides.thresholds)]


def even_pools(sides: Sides, target: float) -> list[Pool]:
    """Pools of equal width on each side, as narrow as the target's information allows.

    Time after time the side with the widest parts gets one part more, of equal width
    between its lowest and its highest score; the last pools before there is more information
    than the target are returned.  Parts in which values fall are joined.  So the edges
    depend on the scores and hardly on the labels.
    """
    lists = _by_side(sides.units, sides.thresholds)
    ranges = [side[-1].high - side[0].low for side in lists]
    parts = [1] * len(lists)
    pools = [rising(_equal_parts(side, 1)) for side in lists]
    for _ in range(min(len(sides.units), MOST)):
        widest = max(range(len(lists)), key=lambda i: ranges[i] / parts[i])
        parts[widest] += 1
        finer = list(pools)
        finer[widest] = rising(_equal_parts(lists[widest], parts[widest]))
        if information([pool for side in finer for pool in side]) > target:
            break
        pools = finer
    return [pool for side in pools for pool in side]


def narrow_pools(sides: Sides, width: float = NARROW) -> list[Pool]:
    """Pools of equal width on each side, none wider than this; joined where values fall."""
    pools = []
    for side in _by_side(sides.units, sides.thresholds):
        count = max(1, math.ceil((side[-1].high - side[0].low) / width - 1e-9))
        pools += rising(_equal_parts(side, count))
    return pools


def _equal_parts(side: list[Pool], count: int) -> list[Pool]:
    """The units of a side, joined where they lie in the same of so many equal parts."""
    low, high = side[0].low, side[-1].high
    width = (high - low) / count or 1.0
    place = [min(int((unit.low - low) / width), count - 1) for unit in side]
    starts = [i for i in range(len(side)) if i == 0 or place[i] > place[i - 1]]
    return [joined(side[a:b]) for a, b in pairwise([*starts, len(side)])]
