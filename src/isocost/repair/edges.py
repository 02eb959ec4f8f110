"""Meeting a target exactly: one edge between two pools is moved, into a bin if need be."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isocost.repair.pools import (
    Pool,
    information,
    joined,
    on_side,
    rising,
    units_of,
)

__all__ = ["Piece", "meet", "move_edge", "plain"]

Floats = npt.NDArray[np.float64]

SLACK = 1e-14
"""Information per person that does not count: it moves a cost by less than rounding shows."""

HALVINGS = 60
"""As many as a double in [0, 1] has digits, and some more."""

TRIES = 32
"""How many places for a new edge are tried."""


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


def plain(pool: Pool) -> Piece:
    """A pool without a coin."""
    return Piece(pool.first, pool.last, ((pool.value, 1.0),), pool.low, pool.high)


def meet(pools: Sequence[Pool], units: Sequence[Pool], target: float) -> list[Piece] | None:
    """Split one of the pools so that the information is exactly the target.

    Parameters
    ----------
    pools : sequence of Pool
        With rising values and at most the target's information.
    units : sequence of Pool
        What they may be split into, and what an edge moves over, one after the other.

    Returns
    -------
    list of Piece or None
        None when the pools cannot be split as far as that with values that rise.

    Notes
    -----
    Where no single new edge is worth enough, the best is taken and another is looked for.
    Of several that are, one that changes scores least at most is taken.
    """
    chosen = list(pools)
    known: dict[tuple[int, int, float, float], _Parts] = {}
    while True:
        need = target - information(chosen)
        if need <= SLACK * math.fsum(pool.w for pool in chosen):
            return [plain(pool) for pool in chosen]
        parts = [_parts(chosen, place, units, known) for place in range(len(chosen))]
        cuts = [(w, i, cut) for i, part in enumerate(parts) for cut, w in enumerate(part.worths)]
        enough = sorted(cut for cut in cuts if cut[0] >= need)[:TRIES]
        if enough:
            break
        if not cuts:
            return None
        _, place, cut = max(cuts)
        chosen[place : place + 1] = parts[place].split(cut)
    tries = [
        (place, move_edge(*parts[place].split(cut), parts[place].units, need, down=down))
        for _, place, cut in enough
        for down in (True, False)
    ]
    place, pieces = min(tries, key=lambda found: max(piece.change for piece in found[1]))
    before, after = chosen[:place], chosen[place + 1 :]
    return [*map(plain, before), *pieces, *map(plain, after)]


@dataclass(frozen=True)
class _Parts:
    """What a pool may be taken apart into, the units, and what each cut is worth."""

    pools: list[Pool]
    units: list[Pool]
    worths: list[float]

    def split(self, cut: int) -> tuple[Pool, Pool]:
        """Two pools, the first with ``cut + 1`` of the parts."""
        return joined(self.pools[: cut + 1]), joined(self.pools[cut + 1 :])


def _parts(
    pools: Sequence[Pool],
    place: int,
    units: Sequence[Pool],
    known: dict[tuple[int, int, float, float], _Parts],
) -> _Parts:
    """The finest parts of a pool with which all values still rise.

    The values of its neighbours are to its parts what thresholds are to a side.
    """
    pool = pools[place]
    below = pools[place - 1].value if place else -math.inf
    above = pools[place + 1].value if place + 1 < len(pools) else math.inf
    key = (pool.first, pool.last, below, above)
    if key not in known:
        bins = _inside(units, pool)
        parts, fixed = on_side(rising(bins), below, above)
        sums = np.array([[part.w, part.y] for part in parts])
        low = np.cumsum(sums, axis=0)[:-1]
        high = np.cumsum(sums[::-1], axis=0)[::-1][1:]
        worths = np.abs(_signed_worth(low, high)).tolist()
        known[key] = _Parts(parts, units_of(bins, fixed), worths)
    return known[key]


def _inside(parts: Sequence[Pool], pool: Pool) -> Sequence[Pool]:
    start = bisect_left(parts, pool.first, key=lambda part: part.first)
    stop = bisect_right(parts, pool.last, key=lambda part: part.first)
    return parts[start:stop]


def move_edge(
    low: Pool, high: Pool, units: Sequence[Pool], keep: float, *, down: bool
) -> list[Piece]:
    """Move the edge of two pools until telling them apart is worth just so much information.

    The edge wanders down (or up) until one pool is used up; on the way what it is worth falls to 0.
    The first place where it is worth ``keep`` lies inside a unit as a rule, a single
    bin, whose people are then divided by the coin.  They are the only ones.

    Notes
    -----
    Both values are still the shares of positives of those who get them.  They stay in
    order: the worth is taken with the sign of the difference, and the first place where it has
    come down to ``keep`` lies before any where that sign has changed.  And they stay in
    order with the pools beside them, and on their sides, because the first units of a
    rising pool never have a lower share of positives than all of it, nor the last a higher one.
    """
    giver, taker = (low, high) if down else (high, low)
    row = list(_inside(units, giver))
    if down:
        row.reverse()
    sums = np.array([[unit.w, unit.y] for unit in row])
    # Added up from either end, so that nothing is lost to subtraction.
    left = np.vstack([np.cumsum(sums[::-1], axis=0)[::-1], np.zeros(2)])
    taken = np.array([taker.w, taker.y]) + np.vstack([np.zeros(2), np.cumsum(sums, axis=0)])
    sign = 1.0 if down else -1.0
    at = int(np.argmax(sign * _signed_worth(left, taken)[1:] <= keep))

    # Plain numbers: this is asked some sixty times, and arrays of two would take most of the time.
    (rest_w, rest_y), (grown_w, grown_y), (w, y) = (
        pair.tolist() for pair in (left[at + 1], taken[at], sums[at])
    )

    def divided(moved: float) -> tuple[tuple[float, float], tuple[float, float]]:
        stays = rest_w + (1.0 - moved) * w, rest_y + (1.0 - moved) * y
        return stays, (grown_w + moved * w, grown_y + moved * y)

    share = _root(lambda moved: sign * _worth_of(*divided(moved)) - keep)
    stays, grown = divided(share)
    kept = [] if stays[0] <= 0.0 else [(stays[1] / stays[0], 1.0 - share)]
    moved = [(grown[1] / grown[0], share)]
    pieces = [
        _piece([taker, *row[:at]], [(moved[0][0], 1.0)]),
        _piece(row[at : at + 1], [pair for pair in kept + moved if pair[1] > 0.0]),
    ]
    if row[at + 1 :]:
        pieces.append(_piece(row[at + 1 :], [(kept[0][0], 1.0)]))
    return pieces[::-1] if down else pieces


def _signed_worth(giver: Floats, taker: Floats) -> Floats:
    """What telling apart is worth, with the sign of taker's value - giver's; 0 without a giver."""
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


def _root(surplus: Callable[[float], float]) -> float:
    """Where a surplus on [0, 1] turns from positive to negative, to the last digit.

    Halving, not the formula for the root (it solves a quadratic): the formula
    loses its digits when the shares of positives are close.
    """
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if surplus(middle) > 0.0 else (low, middle)
    return high


def _piece(parts: Sequence[Pool], outcomes: Sequence[tuple[float, float]]) -> Piece:
    ordered = sorted(parts, key=lambda part: part.first)
    low, high = ordered[0], ordered[-1]
    return Piece(low.first, high.last, tuple(outcomes), low.low, high.high)
