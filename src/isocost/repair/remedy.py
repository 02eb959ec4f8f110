"""The rows of a coarsened group: from a goal to pools, and from pools to intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isocost.costs import Cost
from isocost.groups import Group, group_names
from isocost.measure.calibration import Levels, levels_of
from isocost.measure.rates import base_rate, group_costs
from isocost.repair.edges import SLACK, Piece, meet, move_edge, plain
from isocost.repair.pools import (
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

ROUNDING = 1e-12
"""How far rounding may carry a value over a threshold."""


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
    factor, base_rate, weight : float
        A set of pools costs factor * (base_rate - information / weight).
    """

    group: Group
    place: int
    cost: float
    sides: Sides
    factor: float
    base_rate: float
    weight: float

    def cost_of(self, pools: Sequence[Pool]) -> float:
        """What the errors cost when each pool has one score."""
        return self.factor * (self.base_rate - information(pools) / self.weight)

    def information_at(self, cost: float) -> float:
        """The information of pools that have this cost."""
        return self.weight * (self.base_rate - cost / self.factor)

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
    factor = a / (1.0 - mu) + b / mu
    costs = group_costs(tally.totals, tally.groups, cost)
    return [
        Candidate(
            group=group,
            place=place,
            cost=float(costs[place]),
            sides=settle(_bins(tally, place), thresholds),
            factor=float(factor[place]),
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
    found: Candidate, goal: float, tally: Tally, thresholds: tuple[float, ...]
) -> tuple[list[Row], str]:
    """The rows that raise a group's cost to the goal, and what to say about them."""
    sides, target = found.sides, found.information_at(goal)
    levels = levels_of(tally, found.place)
    finest, fewest = found.cost_of(sides.pools), fewest_pools(sides)
    about = ""
    if finest > goal + found.factor * SLACK:
        # The finest pools would follow every accident of the labels.
        narrow = narrow_pools(sides)
        share = (goal - found.cost) / (found.cost_of(narrow) - found.cost)
        rows = _rows(found, [plain(pool) for pool in narrow], tally, sides.thresholds, share)
        about = (
            f"Calibrated pools of its scores cost at least {finest:.4f}, more than the goal, so "
            f"only {share:.2%} of its people get their pool's value; the others keep scores that "
            "are not calibrated. "
        )
    elif goal <= found.cost_of(fewest) + ROUNDING:
        even = meet(even_pools(sides, target), sides.units, target)
        # One pool per side can be split down to the finest pools, so this never fails.
        pieces = even or meet(fewest, sides.units, target) or [plain(p) for p in sides.pools]
        rows = _rows(found, pieces, tally, sides.thresholds)
    else:
        ways = [_rows(found, pieces, tally) for pieces in _crossing(found, fewest, target)]
        rows = min(ways, key=lambda rows: _decisions_changed(levels, rows, thresholds))
    text = (
        f"{group_names(tally.groups)[found.place]} has {len({row.value for row in rows})} pools, "
        f"and no score changes by more than {_largest_change(levels, rows):.4f}. {about}"
    )
    if thresholds:
        text += _about_decisions(found, _decisions_changed(levels, rows, thresholds))
    return rows, text.strip()


def _about_decisions(found: Candidate, share: float) -> str:
    limit = f"Costs up to {found.limit:.4f} leave every decision alone"
    return f"{limit}; here {share:.2%} of decisions change." if share else f"{limit}, as here."


def _crossing(found: Candidate, pools: list[Pool], target: float) -> list[list[Piece]]:
    """Give up thresholds until the information is the target; the last edge can move two ways."""
    while len(pools) > 1:
        # The side with the fewest people is given up first.
        place = min(range(len(pools) - 1), key=lambda i: min(pools[i].w, pools[i + 1].w))
        low, high = pools[place : place + 2]
        merged = [*pools[:place], joined([low, high]), *pools[place + 2 :]]
        keep = target - information(merged)
        if keep > SLACK * found.weight:
            before = [plain(pool) for pool in pools[:place]]
            after = [plain(pool) for pool in pools[place + 2 :]]
            return [
                [*before, *move_edge(low, high, found.sides.units, keep, down=down), *after]
                for down in (True, False)
            ]
        pools = merged
    return [[plain(pool) for pool in pools]]


def _rows(
    found: Candidate,
    pieces: Sequence[Piece],
    tally: Tally,
    kept: tuple[float, ...] = (),
    probability: float = 1.0,
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
            rows.append(Row(found.group, lo, hi, "set", new, share * probability))
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
