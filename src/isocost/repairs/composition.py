"""One rule after another as a single rule: recalibrate and then repair, in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from isocost.errors import Problem, UsageError
from isocost.grid import Grid
from isocost.groups import Group
from isocost.repairs.recalibrate import bin_scores
from isocost.rows import NARROWEST, ROUNDING, Row, Segment
from isocost.rules import Rule, check_rule
from isocost.tallies import Tally, check_tally
from isocost.typing import Floats

__all__ = ["composed"]


def composed(first: Rule, second: Rule, tally: Tally | None = None) -> Rule:
    """A rule that does what two rules do one after the other; see :meth:`isocost.Rule.then`."""
    _check(first, second, tally)
    rows = tuple(
        row
        for group in first.groups
        for piece in _pieces(group, first.segments(group), tally)
        for row in _rows_after(group, piece, second.segments(group))
    )
    promise = second.promise
    if promise is not None:
        promise = replace(promise, coin=any(0.0 < row.probability < 1.0 for row in rows))
    return Rule(
        groups=first.groups,
        rows=rows,
        method=f"{first.method}+{second.method}",
        cost=second.cost,
        settings={first.method: dict(first.settings), second.method: dict(second.settings)},
        notes=(*first.notes, *second.notes),
        made_from=first.made_from,
        salt=second.salt,
        promise=promise,
    )


def _check(first: Rule, second: Rule, tally: Tally | None) -> None:
    check_rule(second, "second rule")
    if tally is not None:
        check_tally(tally)
    if set(first.groups) != set(second.groups):
        got = f"{len(first.groups)} groups and {len(second.groups)} others"
        step = "make the second rule from first.expected(tally)"
        raise UsageError(Problem("rules", "must be for the same groups", got, step))
    certain = [row for row in first.rows if row.probability > 0.0]
    falling = [r for r in certain if r.value is None or (r.end is not None and r.end < r.value)]
    if first.needs_coin or falling:
        rule = "must throw no coin and keep the order of scores inside each interval"
        got = "a coin" if first.needs_coin else f"a falling line from {falling[0].lo:g} on"
        step = "begin with a rule made by isocost.recalibrate"
        raise UsageError(Problem("first rule", rule, got, step))


@dataclass(frozen=True, eq=False)
class _Piece:
    """An interval and what the first rule does there: a row, or None if scores stay.

    With a grid, cuts are bin edges, and a bin goes where its mean score does.
    """

    lo: float
    hi: float
    row: Row | None
    grid: Grid | None
    means: Floats

    def image(self, *scores: float) -> list[float]:
        """What scores become."""
        at = np.array(scores)
        return (at if self.row is None else self.row.after(at)).tolist()  # type: ignore[no-any-return]

    def cut(self, level: float) -> float:
        """The least score that becomes ``level`` or more."""
        if self.row is None:
            return level
        if self.grid is None:
            there = self.row.lo + (level - float(self.row.value or 0.0)) / self.row.slope
            return min(max(there, self.lo), self.hi)
        first, last = (self.grid.first_bin(end, "rule interval") for end in (self.lo, self.hi))
        below = self.row.after(self.means[first:last]) < level
        return float(self.grid.cuts[first + int(below.sum())])


def _pieces(group: Group, segments: Sequence[Segment], tally: Tally | None) -> Iterator[_Piece]:
    """The first rule on the whole of [0, 1]."""
    grid, means = None, np.empty(0)
    if tally is not None:
        # Of everybody, if there is nobody of this group.
        own = tally.index_of(group) if group in tally.groups else None
        grid, means = tally.grid, bin_scores(tally, own)
    at = 0.0
    for segment in segments:
        certain = [row for row in segment.rows if row.probability > 0.0]
        if certain:
            if segment.lo > at:
                yield _Piece(at, segment.lo, None, grid, means)
            yield _Piece(segment.lo, segment.hi, certain[0], grid, means)
            at = segment.hi
    if at < 1.0:
        yield _Piece(at, 1.0, None, grid, means)


def _rows_after(group: Group, piece: _Piece, segments: Sequence[Segment]) -> Iterator[Row]:
    """The rows of a piece: it is cut where its scores enter another interval of the second rule."""
    low, high = piece.image(piece.lo, piece.hi)
    levels = sorted({end for one in segments for end in (one.lo, one.hi) if low < end < high})
    ends = [piece.lo, *map(piece.cut, levels), piece.hi]
    for (lo, hi), (bottom, top) in zip(pairwise(ends), pairwise([low, *levels, high]), strict=True):
        if hi > lo:
            middle = np.array([(bottom + top) / 2.0])
            own = [row for one in segments if one.holds(middle)[0] for row in one.rows]
            yield from _outcomes(group, piece, lo, hi, own)


def _outcomes(
    group: Group, piece: _Piece, lo: float, hi: float, rows: Sequence[Row]
) -> Iterator[Row]:
    """What the rows of the second rule make of the scores that the first gives in [lo, hi)."""
    ends = piece.image(lo, hi)
    left = 1.0
    for row in rows:
        if row.probability > 0.0:
            left -= row.probability
            if row.value is None and piece.row is None:
                yield replace(row, group=group, lo=lo, hi=hi)
            else:
                value, end = row.after(np.array(ends)).tolist()
                yield _line(group, lo, hi, value, end, row.probability)
    if piece.row is not None and left > ROUNDING:
        yield _line(group, lo, hi, *ends, left)


def _line(group: Group, lo: float, hi: float, value: float, end: float, probability: float) -> Row:
    """A row that leads from one score to another; "set" if they are the same."""
    if value == end or hi - lo < NARROWEST:
        return Row(group, lo, hi, "set", value, probability)
    return Row(group, lo, hi, "line", value, probability, end)
