"""Rules made from rules: one after another in one pass, and for groups that were merged.

And several rules beside each other: their names, their cost and their edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from isocost.checks import check_kind, check_listed, short
from isocost.errors import IsocostError, Problem, UsageError
from isocost.grid import Grid
from isocost.groups import Group, as_group, sort_groups, to_json
from isocost.repairs.recalibrate import bin_scores
from isocost.rules import ROUNDING, Row, Rule, Segment, check_rule
from isocost.tallies import Tally, check_tally
from isocost.typing import Floats

MERGED = "merged"
"""The key of ``made_from`` for the groups that were one when the rule was made."""


def composed(first: Rule, second: Rule, tally: Tally | None = None) -> Rule:
    """A rule that does what two rules do one after the other; see :meth:`isocost.Rule.then`."""
    _check(first, second, tally)
    rows = tuple(
        row
        for group in first.groups
        for piece in _pieces(group, first.segments(group), tally)
        for row in _rows_after(group, piece, second.segments(group))
    )
    return Rule(
        groups=first.groups,
        rows=rows,
        method=f"{first.method}+{second.method}",
        cost=second.cost,
        settings={first.method: dict(first.settings), second.method: dict(second.settings)},
        notes=(*first.notes, *second.notes),
        made_from=first.made_from,
        salt=second.salt,
        promise=replace(second.promise, coin=any(0.0 < row.probability < 1.0 for row in rows)),
        fitted=second.fitted,
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

    def image(self, lo: float, hi: float) -> tuple[float, float]:
        """Two scores after the first rule."""
        return (lo, hi) if self.row is None else _both(self.row, (lo, hi))

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
    """The rows of the second rule, on the scores that the first gives in [lo, hi)."""
    ends = piece.image(lo, hi)
    left = 1.0
    for row in rows:
        if row.probability > 0.0:
            left -= row.probability
            if row.defers or (row.value is None and piece.row is None):
                yield replace(row, group=group, lo=lo, hi=hi)
            else:
                yield Row.leading(group, lo, hi, _both(row, ends), row.probability)
    if piece.row is not None and left > ROUNDING:
        yield Row.leading(group, lo, hi, ends, left)


def _both(row: Row, scores: tuple[float, float]) -> tuple[float, float]:
    first, second = row.after(np.array(scores)).tolist()
    return first, second


# Merged groups


def unmerged(rule: Rule, names: Mapping[Group, Group]) -> Rule:
    """The rule for the groups of the data; see :meth:`isocost.Rule.unmerged`."""
    check_kind("names", names, Mapping, "must be {group: merged group}", _SAME_NAMES)
    new = [group for group in dict.fromkeys(names.values()) if group not in rule.groups]
    if new or MERGED in rule.made_from:
        got = f"{new[0]!r}" if new else "a rule that was unmerged before"
        raise UsageError(Problem("names", "must lead to groups of the rule", got, _SAME_NAMES))
    if not names:
        return rule
    into = set(names.values())
    parts = {group: [] if group in into else [group] for group in rule.groups}
    for group, name in names.items():
        parts[name].append(as_group(group))
    listed = [[to_json(group), to_json(name)] for group, name in names.items()]
    return replace(
        rule,
        groups=tuple(sort_groups(part for own in parts.values() for part in own)),
        fitted=tuple(sort_groups(part for name in rule.fitted for part in parts[name])),
        rows=tuple(replace(row, group=part) for row in rule.rows for part in parts[row.group]),
        made_from={**rule.made_from, MERGED: listed},
    )


_SAME_NAMES = "pass what tally.relabel was given when the rule was made"


def merging(rule: Rule) -> dict[Group, Group]:
    """The group that each one was merged into when the rule was made; empty if unreadable."""
    listed: Any = rule.made_from.get(MERGED, [])
    try:
        names = {as_group(group): as_group(name) for group, name in listed}
    except (IsocostError, TypeError, ValueError):
        return {}
    return names if names.keys() <= set(rule.groups) else {}


def merged(rule: Rule, *tallies: Tally) -> tuple[Rule, list[Tally]]:
    """The rule as it was made, and tallies whose groups are merged like those it was made from."""
    names = merging(rule)
    if not names:
        return rule, list(tallies)
    # Groups that were one have the same rows: those of the first of them are enough.
    first = {name: group for group, name in reversed(names.items())}
    groups = {group: names.get(group, group) for group in rule.groups}
    own = (row for row in rule.rows if first.get(groups[row.group], row.group) == row.group)
    whole = replace(
        rule,
        groups=tuple(sort_groups(set(groups.values()))),
        fitted=tuple(sort_groups({groups[group] for group in rule.fitted})),
        rows=tuple(replace(row, group=groups[row.group]) for row in own),
        made_from={key: value for key, value in rule.made_from.items() if key != MERGED},
    )
    return whole, [t.relabel({g: names[g] for g in t.groups if g in names}) for t in tallies]


ORIGINAL = "original"


def named_rules(rules: Mapping[str, Rule] | Iterable[Rule]) -> dict[str, Rule]:
    """Rules by name; those without a name are called by their method, numbered if need be."""
    must = f"must be rules, by other names than {ORIGINAL!r}"
    step = "pass one rule, a list of rules or {name: rule}, as withhold, coarsen ... return them"
    if isinstance(rules, Mapping):
        named = {str(name): rule for name, rule in rules.items()}
    else:
        named = {}
        one = isinstance(rules, Rule)
        for rule in [rules] if one else check_listed("rules", rules, must, step):
            method = getattr(rule, "method", "?")
            times = sum(name.split(" ")[0] == method for name in named)
            named[method if not times else f"{method} {times + 1}"] = rule
    wrong = [rule for rule in named.values() if not isinstance(rule, Rule)]
    if wrong or ORIGINAL in named:
        got = short(wrong[0]) if wrong else f"a rule called {ORIGINAL!r}"
        raise UsageError(Problem("rules", must, got, step))
    return named


def edges_of(rules: Iterable[Rule], *thresholds: float) -> tuple[float, ...]:
    """The ends of the intervals of rules, and thresholds, so that no bin is divided."""
    ends = {end for rule in rules for row in rule.rows for end in (row.lo, row.hi)}
    return tuple(sorted({*ends, *thresholds} - {0.0, 1.0}))


def question_of(*rules: Rule) -> dict[str, Any]:
    """The cost and the threshold that rules were made for: of each, the first that there is."""
    found: dict[str, Any] = {}
    for rule in rules:
        if rule.cost is not None:
            found.setdefault("cost", rule.cost)
        several = rule.settings.get("thresholds")
        listed = several if isinstance(several, list) else []
        for one in (rule.promise.threshold, rule.settings.get("threshold"), *listed):
            if isinstance(one, float):
                found.setdefault("threshold", one)
    return found
