"""Two files side by side: what each audit says, and which numbers have changed between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isocost.costs import CostLike
from isocost.errors import DataError, Problem
from isocost.groups import Group, shown_names
from isocost.judging.audit import Audit, audit
from isocost.measures.feasibility import compared_groups
from isocost.measures.intervals import Interval, difference
from isocost.measures.rates import Measures
from isocost.page.report import filled
from isocost.page.view import cost_words, row_titles, spoken_names
from isocost.question import DEFAULT, MOST_REPLICATES
from isocost.tallies import Tally
from isocost.verdict.sentences import (
    NEUTRAL,
    SENTENCES,
    Figures,
    Name,
    Sentence,
    Vocabulary,
    fill,
    joined,
    number,
)
from isocost.verdict.wording import figures_of, statement

ERROR = 0.05
"""The chance that any interval in one table of changes misses."""


@dataclass(frozen=True)
class Change:
    """One number in two files.

    Attributes
    ----------
    name : str
        Whose number it is.
    before, after : float
        The number in the first file, and in the second.
    spans : (interval or None, interval or None)
        Of these numbers, each alone.
    interval : (float, float) or None
        Of the change, for all changes of one measure at once.
    is_group : bool
        Whether it is a group's, and not that of all or their largest difference.
    """

    name: str
    before: float
    after: float
    spans: tuple[Interval | None, Interval | None] = (None, None)
    interval: Interval | None = None
    is_group: bool = False

    @property
    def change(self) -> float:
        """By how much the number rose."""
        return self.after - self.before

    @property
    def is_established(self) -> bool:
        """True if the interval leaves out zero."""
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)


@dataclass(frozen=True)
class TwoAudits:
    """Two tallies of different people, and the audits of the groups that both can compare.

    Attributes
    ----------
    audits : (Audit, Audit)
        With intervals for each number alone.
    strict : (Audit, Audit)
        With intervals so wide that those of the changes of one measure hold all at once.
    left_out : list of Group
        Groups that one of them has not, or too few of.
    min_count : int
        As for a report: smaller counts are not to be read off.
    """

    audits: tuple[Audit, Audit]
    strict: tuple[Audit, Audit]
    left_out: list[Group]
    min_count: int = 0

    def changes(self, key: str) -> list[Change]:
        """The changes of a number: for each group, for all people, and between groups.

        The interval of a change is that of a difference of two groups: MOVER, from the intervals
        of both at the level 1 - 0.05 / m for m changes (Bonferroni).
        """
        every = (*self.audits, *self.strict)
        lines = [
            _change(name, [_of(one.groups[group], key) for one in every], is_group=True)
            for group, name in shown_names(self.audits[0].groups).items()
        ]
        # If a count is hidden, the totals would reveal it.
        if not self.min_count:
            lines.append(_change("All", [_of(one.overall, key) for one in every]))
            lines.append(_change("Highest minus lowest", [_spread(one, key) for one in every]))
        return [line for line in lines if math.isfinite(line.change)]


Number = tuple[float, Interval | None]


def _of(record: Measures, key: str) -> Number:
    return record.values.get(key, math.nan), record.intervals.get(key)


def _spread(one: Audit, key: str) -> Number:
    if key not in one.disparities or one.intervals is None:
        return math.nan, None
    return one.disparities[key].difference, one.intervals.disparities.get(key)


def _change(name: str, numbers: Sequence[Number], is_group: bool = False) -> Change:
    """From the number in both files, and the same with the wider intervals."""
    (a, of_a), (b, of_b), (_, wide_a), (_, wide_b) = numbers
    interval = difference(b, wide_b, a, wide_a) if wide_a and wide_b else None
    return Change(name, a, b, (of_a, of_b), interval, is_group)


def compared(
    first: Tally,
    second: Tally,
    *,
    cost: CostLike = DEFAULT.cost,
    threshold: float = DEFAULT.threshold,
    tolerance: float = DEFAULT.tolerance,
    min_count: int = 0,
) -> TwoAudits:
    """Compare two tallies of different people, such as those of two periods.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> [line.change for line in compared(compas(), compas(), cost="fpr").changes("cost")]
    [0.0, 0.0, 0.0, 0.0]
    """
    least = max(DEFAULT.min_group, min_count)
    enough = [compared_groups(tally, least) for tally in (first, second)]
    groups = [group for group in enough[0] if group in enough[1]]
    if len(groups) < 2:
        got = f"{len(groups)}: {list(first.groups)} and {list(second.groups)}"[:200]
        step = "choose files whose groups have the same names"
        raise DataError(Problem("both files", "must share at least two groups", got, step))
    tallies = [tally.select(groups) for tally in (first, second)]

    def audits(confidence: float, replicates: int) -> tuple[Audit, Audit]:
        settings: dict[str, Any] = {"tolerance": tolerance, "warn": False}
        a, b = (
            audit(tally, cost, threshold, confidence, replicates, **settings) for tally in tallies
        )
        return a, b

    lines = len(groups) + 2
    left_out = [g for g in dict.fromkeys([*first.groups, *second.groups]) if g not in groups]
    # As many draws as intervals at this level need.
    draws = max(2000, math.ceil(10.0 * lines / ERROR) + 1)
    strict = audits(1.0 - ERROR / lines, draws if draws <= MOST_REPLICATES else 0)
    return TwoAudits(audits(1.0 - ERROR, 2000), strict, left_out, min_count)


def beside_html(
    comparison: TwoAudits, names: Sequence[str], vocabulary: Vocabulary = NEUTRAL
) -> str:
    """A page with both audits side by side, and every number that changed."""
    audits = comparison.audits
    figures = max(map(figures_of, audits), key=lambda one: one.decimals)
    sides = [
        {
            "name": name,
            "rows": f"{one.tally.n:,.15g}",
            "said": statement(one, spoken_names(one.groups), vocabulary=vocabulary).headline,
        }
        for name, one in zip(names, audits, strict=True)
    ]
    return filled(
        "beside.html",
        (),
        sides=sides,
        headline=_headline(comparison, figures),
        axis=cost_words(audits[0], vocabulary)["axis"],
        tables=list(_tables(comparison, figures.decimals + 2)),
        left_out=[name.text for name in spoken_names(comparison.left_out).values()],
    )


def _headline(comparison: TwoAudits, figures: Figures) -> Sentence:
    lines = [line for line in comparison.changes("cost") if line.is_established]
    told = [
        fill(
            SENTENCES["beside_rose" if line.change > 0 else "beside_fell"],
            group=Name(line.name),
            by=figures.difference(abs(line.change)),
            low=figures.bare(min(map(abs, line.interval or ()))),
            high=figures.bare(max(map(abs, line.interval or ()))),
        )
        for line in lines
        if line.is_group
    ]
    if not told:
        return fill(SENTENCES["beside_same"])
    return fill(SENTENCES["beside_changed"], changes=joined(told))


def _tables(comparison: TwoAudits, decimals: int) -> list[Mapping[str, Any]]:
    """A table for each measure: the cost first, and open where a change is established."""
    first = comparison.audits[0]
    titles = {key: title for key, title in row_titles(first).items() if key != "n"}
    tables: list[Mapping[str, Any]] = []
    for key in ["cost", *(key for key in titles if key != "cost")]:
        hides = key in first.measures and first.measures[key].uses_threshold
        if hides and comparison.min_count:
            continue
        lines = comparison.changes(key)
        rows = [
            {
                "name": line.name,
                "cells": [
                    _cell(line.before, line.spans[0], decimals),
                    _cell(line.after, line.spans[1], decimals),
                    _cell(line.change, line.interval, decimals, "+"),
                ],
                "is_established": line.is_established,
            }
            for line in lines
        ]
        count = sum(line.is_established for line in lines)
        label, hint = titles[key]
        tables.append({"label": label, "hint": hint, "rows": rows, "count": count, "key": key})
    return tables


def _cell(value: float, span: Interval | None, decimals: int, sign: str = "") -> tuple[str, str]:
    def text(one: float) -> str:
        return f"{sign if one > 0 else ''}{number(one, decimals)}"

    return text(value), f"{text(span[0])} to {text(span[1])}" if span else ""
