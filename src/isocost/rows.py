"""The rows of a rule: their checks, and where they move the cells of a tally."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from isocost.cells import SUMS, Cells
from isocost.checks import short
from isocost.coin import bounds
from isocost.errors import DataError, Problem, RuleError
from isocost.grid import Grid
from isocost.groups import Group, as_group
from isocost.typing import Bools, Floats, Ints

Action = Literal["set", "mirror", "line", "defer"]

SLACK = 1e-9
"""How far rounding may carry the sum of the probabilities of an interval above 1."""

ROUNDING = 1e-15
"""A share below this is rounding: nobody keeps the score."""


NARROWEST = 1e-12
"""The least width of an interval with a line: on a narrower one, rounding decides the score."""


@dataclass(frozen=True)
class Row:
    """One line of a rule: what may happen to the scores of a group in [lo, hi).

    A score becomes ``value`` ("set"), 1 - score ("mirror"), or it is moved along a straight line
    that leads from ``value`` at lo to ``end`` at hi ("line").  With "defer" the person gets no
    score: somebody else decides.
    """

    group: Group
    lo: float
    hi: float
    action: Action
    value: float | None
    probability: float
    end: float | None = None

    @classmethod
    def leading(
        cls, group: Group, lo: float, hi: float, ends: tuple[float, float], probability: float = 1.0
    ) -> Row:
        """A row that leads from one score at lo to another at hi; "set" if they are the same."""
        value, end = ends
        if value == end or hi - lo < NARROWEST:
            return cls(group, lo, hi, "set", value, probability)
        return cls(group, lo, hi, "line", value, probability, end)

    @property
    def defers(self) -> bool:
        """Whether it hands people over instead of giving them a score."""
        return self.action == "defer"

    @property
    def slope(self) -> float:
        """How steep the line is."""
        if self.value is None or self.end is None:
            raise AssertionError(f"the action {self.action} has no slope")
        return (self.end - self.value) / (self.hi - self.lo)

    @property
    def limit(self) -> float | None:
        """0 or 1 if rounding could carry the line beyond it, else None."""
        if self.value is None or self.end is None:
            return None
        # A line cannot pass its beginning: a product with h - lo keeps the sign of the slope.
        limit = float(self.end > self.value)
        return limit if abs(self.end - limit) < SLACK else None

    def holds(self, scores: Floats) -> Bools:
        """Which scores lie in the interval; an interval that ends at 1 includes it."""
        return (scores >= self.lo) & ((scores < self.hi) | (self.hi == 1.0))

    def after(self, scores: Floats) -> Floats:
        """The scores of people it is applied to; NaN for those who are handed over."""
        if self.defers:
            return np.full_like(scores, np.nan)
        if self.value is None:
            return 1.0 - scores
        if self.end is None:
            return np.full_like(scores, self.value)
        return np.clip(self.value + self.slope * (scores - self.lo), 0.0, 1.0)


Outputs = list[tuple[float, float]]
"""What a score may become, and the share of each value."""


@dataclass(frozen=True)
class Segment:
    """All rows of one interval of one group, which share a coin."""

    lo: float
    hi: float
    rows: tuple[Row, ...]

    @cached_property
    def bounds(self) -> list[int]:
        """Row i is chosen when the coin lies between bound i - 1 and bound i."""
        return bounds([row.probability for row in self.rows])

    def holds(self, scores: Floats) -> Bools:
        """Which scores lie in the interval; an interval that ends at 1 includes it."""
        return self.rows[0].holds(scores)

    def mean(self, scores: Floats) -> Floats:
        """What scores in the interval become on average over the coin, unless handed over.

        NaN if everybody is.
        """
        left = max(1.0 - sum(row.probability for row in self.rows), 0.0)
        decided = [row for row in self.rows if not row.defers]
        share = left + sum(row.probability for row in decided)
        if share < ROUNDING:
            return np.full(len(scores), np.nan)
        moved = sum((row.probability * row.after(scores) for row in decided), left * scores)
        return moved / share if len(decided) < len(self.rows) else moved

    def outputs(self) -> tuple[Outputs, Outputs]:
        """What a score at the lower, and one at the upper end may become, unless handed over."""
        ends = np.array([self.lo, self.hi])
        left = 1.0 - math.fsum(row.probability for row in self.rows)
        moved = [(row.after(ends), row.probability) for row in self.rows if not row.defers]
        moved += [(ends, left)] if left > SLACK else []
        total = math.fsum(share for _, share in moved) or 1.0
        low, high = ([(float(after[i]), share / total) for after, share in moved] for i in (0, 1))
        return low, high

    def outcomes(self) -> Iterator[tuple[Row, int, int]]:
        """Each row, and the coins for which it is chosen: from the first up to the second."""
        lows = [0, *self.bounds[:-1]]
        return zip(self.rows, lows, self.bounds, strict=True)

    @property
    def needs_coin(self) -> bool:
        """Whether a coin decides: some row has a probability strictly between 0 and 1."""
        return any(0.0 < row.probability < 1.0 for row in self.rows)


def segments_of(rows: Iterable[Row]) -> dict[Group, list[Segment]]:
    """The intervals of each group that has rows, from low to high."""
    intervals: dict[Group, dict[tuple[float, float], list[Row]]] = {}
    for row in rows:
        intervals.setdefault(row.group, {}).setdefault((row.lo, row.hi), []).append(row)
    return {
        group: [Segment(lo, hi, tuple(own)) for (lo, hi), own in sorted(by_interval.items())]
        for group, by_interval in intervals.items()
    }


def reversals(rows: Iterable[Row]) -> dict[Group, int]:
    """How often, in each group with rows, a higher score may get a lower output.

    Counted between neighbouring intervals, and from the lower to the upper end of an interval.
    With one coin for both, a score gets the lower output for some coin exactly if its
    P(output >= c) is the smaller one for some c.
    """
    counts = {}
    for group, segments in segments_of(rows).items():
        ends = [outputs for segment in segments for outputs in segment.outputs()]
        counts[group] = sum(_may_fall(low, high) for low, high in pairwise(ends))
    return counts


def _may_fall(low: Outputs, high: Outputs) -> bool:
    """Whether the first of two distributions, values and shares, is above the second anywhere."""
    if low and high and max(low)[0] <= min(high)[0]:
        return False

    def share_from(value: float, outputs: Outputs) -> float:
        return math.fsum(share for output, share in outputs if output >= value)

    return any(share_from(value, low) > share_from(value, high) + SLACK for value, _ in low)


def check_rows(groups: Sequence[Group], rows: Sequence[Row]) -> None:
    """Raise unless types, ranges, intervals and probabilities are valid."""
    _check_groups(groups)
    known = set(groups)
    if not isinstance(rows, Sequence) or not all(isinstance(row, Row) for row in rows):
        raise bad_rule("rule rows", "must be a sequence of Row", short(rows))
    for row in rows:
        _check_row(row, known)
    for group, segments in segments_of(rows).items():
        for low, high in pairwise(segments):
            if high.lo < low.hi:
                rule = "of one group must be the same or not overlap"
                got = f"[{low.lo}, {low.hi}) and [{high.lo}, {high.hi}) for group {group!r}"
                raise bad_rule("rule intervals", rule, got)
        for segment in segments:
            total = math.fsum(row.probability for row in segment.rows)
            if total > 1.0 + SLACK:
                rule = "must add up to at most 1 over the rows of an interval"
                got = f"{total!r} for group {group!r} in [{segment.lo}, {segment.hi})"
                raise bad_rule("rule probability", rule, got)


def _check_groups(groups: Any) -> None:
    try:
        named = list(map(as_group, groups)) if isinstance(groups, list | tuple) else []
    except DataError as error:
        raise RuleError(error.problems) from error
    if not named or len(set(named)) != len(named):
        raise bad_rule("rule groups", "must be named, each once", short(groups))


def _check_row(row: Row, groups: set[Group]) -> None:
    try:
        known = row.group in groups
    except TypeError:
        known = False
    if not known:
        raise bad_rule("rule row", "must be of a group the rule names", short(row.group))
    if not (_in_unit(row.lo) and _in_unit(row.hi) and row.lo < row.hi):
        raise bad_rule("rule interval", "must have 0 <= lo < hi <= 1", f"{row.lo!r}, {row.hi!r}")
    if not _in_unit(row.probability):
        raise bad_rule("rule probability", "must be a number in [0, 1]", short(row.probability))
    if not isinstance(row.action, str) or row.action not in get_args(Action):
        must = 'must be "set", "mirror", "line" or "defer"'
        raise bad_rule("rule action", must, short(row.action))
    valued = row.action not in ("mirror", "defer")
    if valued and not _in_unit(row.value):
        raise bad_rule("rule value", "must be a score in [0, 1]", short(row.value))
    if not valued and row.value is not None:
        raise bad_rule("rule value", f"must be null for the action {row.action}", short(row.value))
    if row.action != "line" and row.end is not None:
        raise bad_rule("rule end", "must be left out unless the action is line", short(row.end))
    if row.action == "line" and not _in_unit(row.end):
        raise bad_rule("rule end", "must be a score in [0, 1]", short(row.end))
    if row.action == "line" and not row.hi - row.lo >= NARROWEST:
        rule = f"must be at least {NARROWEST:g} wide for the action line"
        raise bad_rule("rule interval", rule, f"{row.lo!r}, {row.hi!r}")


def _in_unit(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def bad_rule(
    name: str,
    rule: str,
    got: str,
    step: str = "make the rule again with isocost, and do not edit it",
) -> RuleError:
    """An error about a rule."""
    return RuleError(Problem(name, rule, got, step))


@dataclass(frozen=True, eq=False)
class Portion:
    """A share of some cells of one group to which the same row is applied.

    Attributes
    ----------
    cells : array
        The indices of the cells.
    row : Row or None
        What is applied to them; None if they keep their scores.
    share : array
        The share of each cell; the shares of a cell add up to 1 over all portions.
    """

    cells: Ints
    row: Row | None
    share: Floats

    @property
    def by_coin(self) -> Bools:
        """For which cells a coin decides who belongs to this portion."""
        return (self.share > 0.0) & (self.share < 1.0)

    def after(self, scores: Floats) -> Floats:
        """The scores of this portion after the rule."""
        return scores if self.row is None else self.row.after(scores)


def portions_of(
    cells: Cells, group: int, grid: Grid, segments: Iterable[Segment]
) -> Iterator[Portion]:
    """Divide the cells of one group among the rows of a rule.

    The last portion keeps its scores.
    """
    mine = cells.of_group(group)
    bins = cells.bin[mine]
    stay = np.ones(len(bins))
    segments = list(segments)
    ends = [
        grid.first_bin(end, "rule interval")
        for segment in segments
        for end in (segment.lo, segment.hi)
    ]
    # All at once: even positions are inside an interval, odd ones behind it.
    position = np.searchsorted(ends, bins, side="right") - 1
    order = np.argsort(position, kind="stable")
    starts = np.searchsorted(position, np.arange(len(ends) + 1), sorter=order)
    for index, segment in enumerate(segments):
        inside = order[starts[2 * index] : starts[2 * index + 1]]
        for row in segment.rows:
            stay[inside] -= row.probability
            yield Portion(mine.start + inside, row, np.full(len(inside), row.probability))
    stay[stay < ROUNDING] = 0.0
    yield Portion(np.arange(mine.start, mine.stop), None, stay)


def share_of(cells: Cells, share: Any) -> Cells:
    """The cells with all sums multiplied by a share, one for all or one for each."""
    scaled = {name: getattr(cells, name) * share for name in SUMS}
    return Cells(cells.group, cells.label, cells.bin, **scaled)


def moved_bins(cells: Cells, row: Row, grid: Grid) -> Ints:
    """The bins that cells come to when a row is applied to all of them.

    The bin of the moved mean, not that of the moved bin: 0.5 mirrored stays in its bin.
    """
    return grid.index(row.after(_means(cells, grid)))


def _means(cells: Cells, grid: Grid) -> Floats:
    """The mean score of each cell, inside its bin whatever the rounding."""
    low = grid.cuts[cells.bin]
    mean = np.clip(cells.wh / cells.w, low, np.nextafter(grid.cuts[cells.bin + 1], 0.0))
    # A sum of equal scores may round: 0.3 three times is not 0.9.
    return np.where(mean - low < 1e-12, low, mean)


def moved(cells: Cells, row: Row, grid: Grid) -> Cells:
    """The cells after a row was applied to all of them; the sums are exact."""
    if row.end is not None:
        return _along(cells, row, grid)
    if row.value is not None:
        return moved_to(cells, np.full(len(cells), row.value), grid)
    wh, wh2 = cells.w - cells.wh, cells.w - 2.0 * cells.wh + cells.wh2
    bins = moved_bins(cells, row, grid)
    return Cells(cells.group, cells.label, bins, cells.n, cells.w, cells.w2, wh, wh2)


def moved_to(cells: Cells, values: Floats, grid: Grid) -> Cells:
    """The cells after their scores became these values."""
    return _placed(cells, grid.index(values), values)


def _along(cells: Cells, row: Row, grid: Grid) -> Cells:
    """The cells after a line was applied to them.

    A steep line spreads the scores of a bin over several bins.  Then two scores stand for them that
    have the same mean m and variance v: m - sqrt(v) and m + sqrt(v).  If one of them is outside
    [0, 1], it becomes that end x, and the other m + v / (m - x).
    """
    mean = row.after(_means(cells, grid))
    variance = row.slope**2 * (cells.wh2 / cells.w - (cells.wh / cells.w) ** 2)
    variance = np.clip(variance, 0.0, mean * (1.0 - mean))
    bins = grid.index(mean)
    # As much as the bin of the mean can hold; see the checks of a tally.
    most = (mean - grid.cuts[bins]) * (grid.cuts[bins + 1] - mean) + 1.0 / grid.bins**2
    wide = variance > most
    if not wide.any():
        return _placed(cells, bins, mean, variance)
    m, v = mean[wide], variance[wide]
    deviation = np.sqrt(v)
    low = np.where(m + deviation > 1.0, m - v / (1.0 - m), np.maximum(m - deviation, 0.0))
    high = np.minimum(m + v / (m - low), 1.0)
    share = (high - m) / (high - low)
    spread = cells.take(wide)
    return Cells.merge(
        [
            _placed(cells.take(~wide), bins[~wide], mean[~wide], variance[~wide]),
            _placed(share_of(spread, share), grid.index(low), low),
            _placed(share_of(spread, 1.0 - share), grid.index(high), high),
        ]
    )


def _placed(cells: Cells, bins: Ints, mean: Floats, variance: Floats | float = 0.0) -> Cells:
    """The cells in other bins, with scores of another mean and variance."""
    wh, wh2 = cells.w * mean, cells.w * (mean**2 + variance)
    return Cells(cells.group, cells.label, bins, cells.n, cells.w, cells.w2, wh, wh2)
