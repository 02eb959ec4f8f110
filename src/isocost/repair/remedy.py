"""The rows of a coarsened group: from a goal to pools, and from pools to intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from isocost.cells import add_up
from isocost.costs import Cost
from isocost.groups import Group, group_names
from isocost.measure.calibration import Levels, levels_of
from isocost.measure.rates import base_rate, group_costs
from isocost.repair.edges import (
    ROUNDING,
    SLACK,
    Piece,
    inside,
    meet,
    meet_from_finest,
    moved_edges,
    plain,
)
from isocost.repair.pools import (
    NARROW,
    Pool,
    Sides,
    even_pools,
    fewest_pools,
    information,
    joined,
    narrow_pools,
    settle,
)
from isocost.rows import Row
from isocost.tallies import Tally

__all__ = ["Candidate", "candidates", "repaired"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A group that may be coarsened, and what turns information into cost.

    Attributes
    ----------
    group : Group
        Its name.
    place : int
        Its place in the tally.
    cost : float
        What its errors cost at present.
    sides : Sides
        Its finest pools.
    a, b : float
        What the generalized rates are multiplied with.
    base_rate, weight : float
        A set of pools costs factor * (base_rate - information / weight).
    """

    group: Group
    place: int
    cost: float
    sides: Sides
    a: float
    b: float
    base_rate: float
    weight: float

    @property
    def factor(self) -> float:
        """What turns information into cost."""
        return self.a / (1.0 - self.base_rate) + self.b / self.base_rate

    def cost_of(self, pools: Sequence[Pool]) -> float:
        """What the errors cost when each pool has one score."""
        return self.factor * (self.base_rate - information(pools) / self.weight)

    def information_at(self, cost: float) -> float:
        """The information of pools that have this cost."""
        return self.weight * (self.base_rate - cost / self.factor)

    def added(self, pool: Pool, value: float) -> float:
        """What people who get this value add to the cost, up to the constant b."""
        fp = self.a * (pool.w - pool.y) / (1.0 - self.base_rate)
        fn = self.b * pool.y / self.base_rate
        return (fp - fn) / self.weight * value

    @property
    def limit(self) -> float:
        """The largest cost that leaves every decision alone; the present one if no pools do."""
        if self.sides.dropped:
            return self.cost
        return max(self.cost, self.cost_of(fewest_pools(self.sides)))


def candidates(
    tally: Tally, cost: Cost, thresholds: tuple[float, ...], below: float = math.inf
) -> list[Candidate]:
    """The groups that cost less than a bound, with the finest pools that they can have."""
    mu = base_rate(tally.totals)
    a, b = cost.coefficients(tally.groups, mu)
    costs = group_costs(tally.totals, tally.groups, cost)
    return [
        Candidate(
            group=group,
            place=place,
            cost=float(costs[place]),
            sides=settle(_bins(tally, place), thresholds),
            a=float(a[place]),
            b=float(b[place]),
            base_rate=float(mu[place]),
            weight=float(tally.totals.weight[place]),
        )
        for place, group in enumerate(tally.groups)
        if costs[place] < below
    ]


def _bins(tally: Tally, place: int) -> list[Pool]:
    levels = levels_of(tally, place)
    columns = (levels.w, levels.wy, levels.position, tally.grid.index(levels.position))
    return [
        Pool(w, y, score, score, bin_, bin_)
        for w, y, score, bin_ in zip(*(column.tolist() for column in columns), strict=True)
    ]


def repaired(
    found: Candidate, goal: float, tally: Tally, thresholds: tuple[float, ...], may_cross: bool
) -> tuple[list[Row], str] | float:
    """The rows that raise a group's cost to the goal, and what to say about them.

    If no pools that randomize a single bin have this cost, the next lower one that some have.
    """
    sides, target = found.sides, found.information_at(goal)
    finest, fewest = found.cost_of(sides.pools), fewest_pools(sides)
    about = ""
    if finest > goal + found.factor * SLACK:
        pieces, about = _uncalibrated(found, goal, tally)
        ways = [_rows(found, pieces, tally, sides.thresholds)]
    elif goal <= found.cost_of(fewest) + ROUNDING:
        met = meet(even_pools(sides, target), sides, target) or meet(fewest, sides, target)
        if met is None:
            met, nearest = meet_from_finest(sides, target)
            if met is None and not may_cross:
                return found.cost_of(nearest)
        ways = [_rows(found, met, tally, sides.thresholds)] if met else []
    else:
        ways = [_rows(found, pieces, tally) for pieces in _crossing(found, fewest, target)]
    if not ways:
        # Without thresholds every cost can be met: see meet_from_finest.
        met, nearest = meet_from_finest(settle(sides.bins, ()), target)
        ways = [_rows(found, met or [plain(pool) for pool in nearest], tally)]
    levels = levels_of(tally, found.place)
    rows = min(ways, key=lambda rows: _decisions_changed(levels, rows, thresholds))
    text = (
        f"{group_names(tally.groups)[found.place]} has {len({row.value for row in rows})} pools, "
        f"and no score changes by more than {_largest_change(levels, rows):.4f}. {about}"
    )
    if thresholds:
        text += _about_decisions(found, _decisions_changed(levels, rows, thresholds))
    return rows, text.strip()


def _uncalibrated(found: Candidate, goal: float, tally: Tally) -> tuple[list[Piece], str]:
    """Pools for scores that cost less than calibrated pools do, and what to say about them.

    A cost is linear in the scores, so values between the mean score of a pool and its share of
    positives have any cost between the two.
    """
    finest = found.cost_of(found.sides.pools)
    why = f"Its finest calibrated pools cost {finest:.4f}, more than the goal, so"
    # The finest pools would follow every accident of the labels.
    for width in (NARROW, NARROW / 4.0, NARROW / 16.0):
        pools = narrow_pools(found.sides, width)
        means = [_mean_score(found.sides.bins, pool) for pool in pools]
        low = found.b + math.fsum(map(found.added, pools, means))
        if low <= goal:
            share = (goal - low) / (found.cost_of(pools) - low)
            values = [h + share * (p.value - h) for p, h in zip(pools, means, strict=True)]
            return [plain(p, v) for p, v in zip(pools, values, strict=True)], (
                f"{why} its values lie {share:.2%} of the way from the mean score of a pool to "
                "the share of positives and are not calibrated. "
            )
    pools = narrow_pools(found.sides)
    return _up_to(found, pools, goal, tally), (
        f"{why} only its lower scores get their pool's value; the others stay and are not "
        "calibrated. "
    )


def _mean_score(bins: Sequence[Pool], pool: Pool) -> float:
    return math.fsum(one.w * one.low for one in inside(bins, pool)) / pool.w


def _up_to(found: Candidate, pools: Sequence[Pool], goal: float, tally: Tally) -> list[Piece]:
    """Give bins their pool's value, from the lowest up, until the cost is the goal."""
    bins, need = found.sides.bins, goal - found.cost
    values = [pool.value for pool in pools for _ in inside(bins, pool)]
    changes = np.array(list(map(found.added, bins, values))) - _present(found, tally)
    reached = np.cumsum(changes)
    # The first bin with which the cost comes up to the goal.
    at = int(np.argmax(reached >= need))
    share = 1.0 - float((reached[at] - need) / changes[at])
    before = [(inside(bins[:at], pool), pool.value) for pool in pools]
    pieces = [plain(joined(own), value) for own, value in before if own]
    pieces.append(replace(plain(bins[at]), outcomes=((values[at], share),)))
    return pieces + [replace(plain(joined(rest)), outcomes=()) for rest in [bins[at + 1 :]] if rest]


def _present(found: Candidate, tally: Tally) -> Floats:
    """What the scores of each bin add to the cost at present, up to the constant b."""
    cells = tally.cells.take(tally.cells.of_group(found.place))
    fp, fn = found.a / (1.0 - found.base_rate), -found.b / found.base_rate
    sums = add_up(cells.bin, np.where(cells.label == 1, fn, fp) * cells.wh, tally.grid.size)
    return sums[[one.first for one in found.sides.bins]] / found.weight


def _about_decisions(found: Candidate, share: float) -> str:
    limit = f"Costs up to {found.limit:.4f} leave every decision alone"
    return f"{limit}; here {share:.2%} of decisions change." if share else f"{limit}, as here."


def _crossing(found: Candidate, pools: list[Pool], target: float) -> list[list[Piece]]:
    """Give up thresholds until the information is the target; the last edge can move two ways.

    Empty if the pools beside that edge are in its way.
    """
    while len(pools) > 1:
        # The side with the fewest people is given up first.
        place = min(range(len(pools) - 1), key=lambda i: min(pools[i].w, pools[i + 1].w))
        low, high = pools[place : place + 2]
        merged = [*pools[:place], joined([low, high]), *pools[place + 2 :]]
        keep = target - information(merged)
        if keep > SLACK * found.weight:
            before = [plain(pool) for pool in pools[:place]]
            after = [plain(pool) for pool in pools[place + 2 :]]
            limits = (
                pools[place - 1].value if place else -math.inf,
                pools[place + 2].value if place + 2 < len(pools) else math.inf,
            )
            ways = moved_edges(low, high, found.sides.bins, keep, limits)
            return [[*before, *way, *after] for way in ways]
        pools = merged
    return [[plain(pool) for pool in pools]]


def _rows(
    found: Candidate,
    pieces: Sequence[Piece],
    tally: Tally,
    kept: tuple[float, ...] = (),
) -> list[Row]:
    """Intervals without holes, but for sides on which the group has nobody.

    ``kept`` are the thresholds that no value crosses, not even by rounding.
    """
    cuts = tally.grid.cuts
    walls = [0, *map(tally.grid.first_bin, found.sides.thresholds), tally.grid.size]
    rows = []
    lasts = [-1, *(piece.last for piece in pieces)]
    firsts = [*(piece.first for piece in pieces), tally.grid.size]
    for place, piece in enumerate(pieces):
        start = _between(lasts[place] + 1, firsts[place], walls)[1]
        stop = _between(lasts[place + 1] + 1, firsts[place + 1], walls)[0]
        lo, hi = float(cuts[start]), float(cuts[stop])
        for value, share in piece.outcomes:
            new = _on_its_side(value, lo, hi, kept)
            rows.append(Row(found.group, lo, hi, "set", new, share))
    return rows


def _between(low: int, high: int, walls: Sequence[int]) -> tuple[int, int]:
    """Where one piece ends and the next begins: at walls if there are any, else in the middle."""
    found = [wall for wall in walls if low <= wall <= high]
    return (found[0], found[-1]) if found else ((low + high) // 2,) * 2


def _on_its_side(value: float, lo: float, hi: float, thresholds: Sequence[float]) -> float:
    """A value that rounding may have carried over a threshold, back on the side of its scores."""
    for threshold in thresholds:
        if lo >= threshold > value > threshold - ROUNDING:
            return threshold
        if hi <= threshold <= value < threshold + ROUNDING:
            return math.nextafter(threshold, 0.0)
    return value


def _touched(levels: Levels, row: Row) -> npt.NDArray[np.bool_]:
    return (levels.position >= row.lo) & ((levels.position < row.hi) | (row.hi == 1.0))


def _largest_change(levels: Levels, rows: Sequence[Row]) -> float:
    """How far a score moves at most; a bin's scores are taken at their mean."""
    changes = [np.abs(levels.position[_touched(levels, row)] - (row.value or 0.0)) for row in rows]
    return float(np.concatenate(changes).max())


def _decisions_changed(levels: Levels, rows: Sequence[Row], thresholds: tuple[float, ...]) -> float:
    """The share of people who end up on another side of a threshold."""
    sides = np.searchsorted(thresholds, levels.position, side="right")
    moved = 0.0
    for row in rows:
        other = sides != np.searchsorted(thresholds, row.value or 0.0, side="right")
        moved += row.probability * float(levels.w[_touched(levels, row) & other].sum())
    return moved / levels.total
