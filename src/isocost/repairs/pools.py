"""Pools of neighbouring scores of one group: what they are worth, and how they meet a target.

A pool gets its share of positives as its score, so any set of pools is calibrated on the tally.
Its cost depends on one number alone, its information, the sum over pools of w q^2 with weight w
and value q:

    g = K (mu - information / W),    K = a / (1 - mu) + b / mu.

Telling two neighbouring pools apart is worth w1 w2 / (w1 + w2) (q2 - q1)^2 of it.  A target is met
exactly by moving one edge between two pools, into a bin if need be, whose people a coin divides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from isocost.typing import Floats, Ints

Minimize = Literal["largest", "mean"]

Piece: TypeAlias = tuple[int, int, list[tuple[float, float]]]
"""Neighbouring bins, from start to stop, and the (value, probability) pairs of their scores."""

ROUNDING = 1e-12
"""How far rounding may carry a value over a limit, or the information per person over another."""

EXACT = 1e-14
"""How far the information per person may be from the target: no cost shows it."""

NEWTON = 8
"""Steps of Newton's method, which doubles the right digits with each."""

CLOSE = 1e-6
"""How far rounding may carry a share of a divided bin."""


@dataclass(frozen=True)
class Bins:
    """The bins of one group that hold anybody, from low to high, and the thresholds to respect.

    Attributes
    ----------
    w, y : array
        The weight of everybody, and of the positives.
    score : array
        The mean score.
    thresholds : tuple of float
        No pool crosses one, and no value.
    """

    w: Floats
    y: Floats
    score: Floats
    thresholds: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.w)

    @cached_property
    def sums(self) -> Floats:
        """Weight, positives and weighted scores of the bins below each edge."""
        columns = np.stack([self.w, self.y, self.w * self.score])
        return np.concatenate([np.zeros((3, 1)), np.cumsum(columns, axis=1)], axis=1)

    @cached_property
    def side(self) -> Ints:
        """The number of thresholds at or below each bin."""
        return np.searchsorted(self.thresholds, self.score, side="right")

    @cached_property
    def bounds(self) -> Floats:
        """Values on side k lie in [bounds[k], bounds[k + 1])."""
        return np.array([-math.inf, *self.thresholds, math.inf])

    @cached_property
    def walls(self) -> Ints:
        """The edges between sides, with both ends: one pool per side."""
        return np.concatenate([[0], np.flatnonzero(np.diff(self.side)) + 1, [len(self)]])

    def totals(self, edges: Ints) -> tuple[Floats, Floats]:
        """Weight and positives of each pool."""
        return np.add.reduceat(self.w, edges[:-1]), np.add.reduceat(self.y, edges[:-1])

    def values(self, edges: Ints) -> Floats:
        """The shares of positives of pools."""
        w, y = self.totals(edges)
        return y / w

    def information(self, edges: Ints) -> float:
        """The sum of w q^2 over pools."""
        w, y = self.totals(edges)
        return math.fsum((y * y / w).tolist())

    def changes(self, start: Ints, stop: Ints, value: Floats, minimize: Minimize) -> Floats:
        """How far scores of the bins from start to stop are from a value: at most, or in all."""
        if minimize == "largest":
            return np.maximum(value - self.score[start], self.score[stop - 1] - value)
        w, _, score = self.sums
        middle = np.clip(np.searchsorted(self.score, value), start, stop)
        below = value * (w[middle] - w[start]) - (score[middle] - score[start])
        above = score[stop] - score[middle] - value * (w[stop] - w[middle])
        total: Floats = below + above
        return total

    def rising(self, edges: Ints) -> Ints:
        """The pools, joined where values fall."""
        from scipy.optimize import isotonic_regression

        w, y = self.totals(edges)
        blocks: Ints = isotonic_regression(y / w, weights=w).blocks
        return edges[blocks]

    @cached_property
    def finest(self) -> Ints:
        """The edges of the finest pools whose values rise and stay on their side."""
        edges = []
        for start, stop in pairwise(self.walls.tolist()):
            own = Bins(self.w[start:stop], self.y[start:stop], self.score[start:stop])
            low, high = self.bounds[self.side[start] :][:2].tolist()
            pools = own.rising(np.arange(stop - start + 1)).tolist()
            # Join the outermost pools until their values lie on this side.
            while len(pools) > 2 and own.values(np.array(pools))[-1] >= high:
                del pools[-2]
            while len(pools) > 2 and own.values(np.array(pools))[0] < low:
                del pools[1]
            edges += [start + edge for edge in pools[:-1]]
        return np.array([*edges, len(self)])

    def narrow(self, width: float) -> Ints:
        """The edges of pools that join the finest ones if they begin within the same width."""
        start = self.finest[:-1]
        lowest = self.score[self.walls[np.searchsorted(self.walls, start, side="right") - 1]]
        part = np.stack([self.side[start], ((self.score[start] - lowest) / width).astype(int)])
        new = (np.diff(part, axis=1) != 0).any(axis=0)
        return np.array([0, *start[1:][new], len(self)])


def settle(bins: Bins) -> Bins:
    """The bins without thresholds that no pools respect.

    These are thresholds where a whole side has a share of positives that belongs on another.
    """
    for start, share in zip(bins.walls.tolist(), bins.values(bins.walls).tolist(), strict=False):
        low, high = bins.bounds[bins.side[start] :][:2].tolist()
        if not low <= share < high:
            wrong = high if share >= high else low
            return settle(replace(bins, thresholds=tuple(t for t in bins.thresholds if t != wrong)))
    return bins


@dataclass(frozen=True)
class Pools:
    """Pools of neighbouring bins, of which one bin may be divided.

    Attributes
    ----------
    edges : array
        The first bin of each pool, and the number of bins.
    values : array
        Of each pool.
    share : float
        The share of the first bin of pool ``at`` that belongs to the pool before it.
    at : int
        That pool; 0 if no bin is divided.
    """

    edges: Ints
    values: Floats
    share: float = 0.0
    at: int = 0

    def pieces(self) -> Iterator[Piece]:
        """The bins of each pool, and the divided bin by itself."""
        for k, (start, stop) in enumerate(pairwise(self.edges.tolist())):
            value = float(self.values[k])
            if k and k == self.at:
                both = [(float(self.values[k - 1]), self.share), (value, 1.0 - self.share)]
                yield start, start + 1, both
                start += 1
            if start < stop:
                yield start, stop, [(value, 1.0)]


def crossing(bins: Bins, target: float) -> list[Pools]:
    """Give up thresholds until the information is the target; the last edge can move both ways.

    Empty if the neighbouring pools leave that edge no room.
    """
    edges, free = bins.walls, replace(bins, thresholds=())
    while len(edges) > 2:
        # The side with the fewest people is given up first.
        w, _ = bins.totals(edges)
        at = 1 + int(np.argmin(np.minimum(w[:-1], w[1:])))
        fewer = np.delete(edges, at)
        if target - bins.information(fewer) > EXACT * bins.sums[0, -1]:
            spans = around(free, fewer, "largest", only=at - 1)
            return [pools for pools, _ in Meeting(free, target, "largest").divided(spans)]
        edges = fewer
    return [Pools(edges, bins.values(edges))]


def nearest_pools(bins: Bins, target: float) -> Ints:
    """The finest pools, joined while that leaves at least the target's information.

    As values rise, the last edge can then be moved until it is worth what is missing, unless bins
    of a side need each other for a value between two thresholds.
    """
    edges = bins.finest
    while True:
        w, y = bins.totals(edges)
        worth = w[:-1] * w[1:] / (w[:-1] + w[1:]) * np.diff(y / w) ** 2
        worth[np.isin(edges[1:-1], bins.walls)] = math.inf
        spare = math.fsum((y * y / w).tolist()) - target
        if not len(worth) or worth.min() > spare:
            return edges
        edges = np.delete(edges, 1 + int(worth.argmin()))


@dataclass(frozen=True)
class Spans:
    """Sets of pools that leave out the bins from start to stop, to be divided into two pools.

    Attributes
    ----------
    start, stop : array
        The bins left out.
    information, change : array
        Of the other pools; the change is the largest or the sum.
    low, high : array
        The values of the neighbouring pools.
    edges : callable
        The edges of the other pools of a row, below and above.
    """

    start: Ints
    stop: Ints
    information: Floats
    change: Floats
    low: Floats
    high: Floats
    edges: Callable[[int], tuple[Sequence[int], Sequence[int]]]


@dataclass
class Meeting:
    """The best pools so far that meet a target exactly."""

    bins: Bins
    target: float
    minimize: Minimize
    change: float = math.inf
    pools: Pools | None = None

    def add(self, spans: Spans) -> None:
        """Keep the best pools that the spans can become, if they are better than before."""
        for pools, change in self.divided(spans):
            self.pools, self.change = pools, change
            return

    def divided(self, spans: Spans) -> Iterator[tuple[Pools, float]]:
        """Divide the bins that each span leaves out so that the information is the target.

        With share s of bin b in the lower of two pools, which together have weight W and positives
        Y, the edge is worth k information where

            (y W - w Y)^2 = k W w (W - w),    w and y of the lower pool, both linear in s.
        """
        bins, (w, y, _) = self.bins, self.bins.sums
        k = self.target - spans.information
        k -= (y[spans.stop] - y[spans.start]) ** 2 / (w[spans.stop] - w[spans.start])
        slack = ROUNDING * w[-1]
        hopeful = np.flatnonzero((k >= -slack) & (spans.change < self.change))
        length = spans.stop[hopeful] - spans.start[hopeful]
        row = np.repeat(hopeful, length)
        a, c = spans.start[row], spans.stop[row]
        b = a + np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
        k = np.maximum(k[row], 0.0)
        whole, w0, wb = w[c] - w[a], w[b] - w[a], bins.w[b]
        # Measured from the share of positives of all, so that little is lost to subtraction.
        mean = (y[c] - y[a]) / whole
        d0, db = y[b] - y[a] - mean * w0, bins.y[b] - mean * wb
        two = db**2 + k / whole * wb**2
        one = d0 * db - k / whole * wb * (whole / 2.0 - w0)
        zero = d0**2 - k / whole * w0 * (whole - w0)
        root = np.sqrt(np.maximum(one**2 - two * zero, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            far = -(one + np.copysign(root, one))
            share = np.concatenate([far / two, zero / far])
        real = (share > -CLOSE) & (share < 1.0 + CLOSE)
        share = np.clip(share, 0.0, 1.0)
        # An edge is worth no more than the lighter pool weighs.  This rules out empty pools, which
        # solve the equation too.
        lower = np.tile(w0, 2) + share * np.tile(wb, 2)
        lighter = np.minimum(lower, np.tile(whole, 2) - lower)
        real &= lighter >= np.tile(k - NEWTON * CLOSE * wb, 2)
        share = share[real]
        row, a, b, c = (np.tile(one, 2)[real] for one in (row, a, b, c))
        change = self._changes(spans, row, a, b, c, share)
        for at in np.argsort(change, kind="stable").tolist():
            if not change[at] < self.change:
                return
            below, above = spans.edges(int(row[at]))
            edges = [*below, int(b[at]), *above]
            pools = _exact(bins, edges, len(below), float(share[at]), self.target)
            if pools is not None:
                yield pools, float(change[at])

    def _changes(self, spans: Spans, row: Ints, a: Ints, b: Ints, c: Ints, share: Floats) -> Floats:
        """How far scores change if a share of bin b belongs to the lower pool of bins a to c.

        Infinite where values would fall or leave their side.
        """
        bins, minimize = self.bins, self.minimize
        w, y, _ = bins.sums
        lower, upper = w[b] - w[a] + share * bins.w[b], w[c] - w[b] - share * bins.w[b]
        mean = (y[c] - y[a]) / (w[c] - w[a])
        with np.errstate(divide="ignore", invalid="ignore"):
            below = np.where(lower > 0, (y[b] - y[a] + share * bins.y[b]) / lower, mean)
            above = np.where(
                upper > ROUNDING * w[c], (y[c] - y[b] - share * bins.y[b]) / upper, mean
            )
        side = bins.side[a]
        legal = (below <= above + ROUNDING) & (above < bins.bounds[side + 1])
        legal &= below >= np.maximum(spans.low[row], bins.bounds[side]) - ROUNDING
        legal &= above <= spans.high[row] + ROUNDING
        after = np.minimum(b + 1, len(bins) - 1)
        parts = [
            np.where(b > a, bins.changes(a, np.maximum(b, 1), below, minimize), 0.0),
            np.where(b + 1 < c, bins.changes(after, c, above, minimize), 0.0),
        ]
        moved = [np.abs(bins.score[b] - below), np.abs(bins.score[b] - above)]
        if minimize == "largest":
            moved = [np.where(share > 0, moved[0], 0.0), np.where(share < 1, moved[1], 0.0)]
            change = np.max([*parts, *moved, spans.change[row]], axis=0)
        else:
            own = bins.w[b] * (share * moved[0] + (1.0 - share) * moved[1])
            change = parts[0] + parts[1] + own + spans.change[row]
        return np.where(legal, change, math.inf)


def _exact(bins: Bins, edges: list[int], at: int, share: float, target: float) -> Pools | None:
    """Pools with the target's information to the last digit, by Newton's method for the share.

    The share of the first bin of pool ``at`` belongs to the pool before it, which may hold nothing
    else.  None if no share is right.
    """
    b, c = edges[at : at + 2]
    totals = [(float(bins.w[i:j].sum()), float(bins.y[i:j].sum())) for i, j in pairwise(edges)]
    need = target - math.fsum(y * y / w for w, y in totals[: at - 1] + totals[at + 1 :])
    (lower, positives), (wb, yb) = totals[at - 1], (float(bins.w[b]), float(bins.y[b]))
    rest = float(bins.w[b + 1 : c].sum()), float(bins.y[b + 1 : c].sum())
    best = (math.inf, share, 0.0, 0.0)
    for _ in range(NEWTON):
        w, y = lower + share * wb, positives + share * yb
        v, z = rest[0] + (1.0 - share) * wb, rest[1] + (1.0 - share) * yb
        low, high = y / w if w else z / v, z / v if v else y / w
        over = y * low + z * high - need
        best = min(best, (abs(over), share, low, high))
        slope = (low - high) * (2.0 * yb - wb * (low + high))
        if not slope:
            break
        # Near a double root a step may lead far away, to pools that are not legal.
        share = min(max(share - over / slope, share - CLOSE, 0.0), share + CLOSE, 1.0)
    error, share, low, high = best
    floor, ceiling = bins.bounds[bins.side[b] :][:2]
    legal = floor - ROUNDING <= low <= high + ROUNDING and high < ceiling
    if error > EXACT * bins.sums[0, -1] or not legal:
        return None
    if share in {0.0, 1.0}:
        plain = np.unique([*edges[:at], b + int(share), *edges[at + 1 :]])
        return Pools(plain, bins.values(plain))
    values = np.array([y / w if w else 0.0 for w, y in totals])
    values[at - 1 : at + 1] = low, high
    rises = (np.diff(values) >= -ROUNDING).all()
    return Pools(np.array(edges), values, share, at) if rises else None


def around(bins: Bins, edges: Ints, minimize: Minimize, only: int | None = None) -> Spans:
    """Each pool left out, and each two neighbours; or only one pool."""
    w, y = bins.totals(edges)
    values = y / w
    changes = bins.changes(edges[:-1], edges[1:], values, minimize)
    information = y * values
    first = np.arange(len(values))
    together = first[:-1][bins.side[edges[:-2]] == bins.side[edges[1:-1]]]
    first, last = np.concatenate([first, together]), np.concatenate([first, together + 1])
    if only is not None:
        first = last = np.array([only])
    outside = (np.arange(len(values)) < first[:, None]) | (np.arange(len(values)) > last[:, None])
    others = np.where(outside, changes, 0.0)
    padded = np.concatenate([[-math.inf], values, [math.inf]])
    listed = edges.tolist()
    return Spans(
        start=edges[first],
        stop=edges[last + 1],
        information=np.where(outside, information, 0.0).sum(axis=1),
        change=others.max(axis=1) if minimize == "largest" else others.sum(axis=1),
        low=padded[first],
        high=padded[last + 2],
        edges=lambda row: (listed[: first[row] + 1], listed[last[row] + 1 :]),
    )
