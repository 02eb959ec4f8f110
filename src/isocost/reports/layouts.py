"""The layouts there are: tables that a law or a guideline asks for, filled from the same numbers.

Each is a row of :data:`LAYOUTS`: which text it follows and from when, what of it is not covered,
its columns and its notes.  None of them says whether a number is legal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Unpack

import numpy as np

from isocost.checks import check_threshold, check_word, short
from isocost.errors import Problem, UsageError, listing
from isocost.groups import Group, names_of, parts_of, shown_names
from isocost.measures.audit import Audit, audit_or_tally
from isocost.measures.audit import audit as measure
from isocost.measures.derived import GroupedPeople, People
from isocost.measures.table import MEASURES
from isocost.reports.layout import Layout, LayoutTable, Row
from isocost.reports.payload import undecided
from isocost.tallies import DataOptions, Tally, TallyLike
from isocost.typing import Floats

LEAST_SHARE = 0.02
"""Of the data: New York's rules let the auditor leave smaller categories out of the ratios."""

MOST_ON_PAGE = 20
"""With more groups than this the page has no layouts: its tables would be too long."""

SIDES = ("above", "below")
"""Whether people at or above the threshold are selected, or those below."""


@dataclass(frozen=True)
class LayoutKind:
    """A row of :data:`LAYOUTS`.

    Attributes
    ----------
    name, title, follows, since, covers_not
        As in :class:`Layout`.
    columns : {name: str}
        The columns after the number of people, and their headings.  A column has the name of a
        measure, or of a ratio (:data:`RATIOS`).  A heading may have the field {threshold}.
    notes : tuple of str
        How numbers are computed, with the fields {selected}, {side} and {intervals}.
    by_category : bool
        Whether it is about selection: it then needs no labels, has a table for each column of the
        groups, and leaves unknown and small categories out of the ratios.  Otherwise it shows an
        audit, with intervals.
    """

    name: str
    title: str
    follows: str
    since: str
    covers_not: tuple[str, ...]
    columns: Mapping[str, str]
    notes: tuple[str, ...]
    by_category: bool = False

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures among the columns."""
        return tuple(name for name in self.columns if name in MEASURES and name not in RATIOS)


RATIOS = {"impact_ratio": "selection_rate", "scoring_impact_ratio": "scoring_rate"}
"""Ratios of a rate to the highest one of a category."""

LAYOUTS: Mapping[str, LayoutKind] = {
    row.name: row
    for row in (
        LayoutKind(
            "ll144",
            "Local Law 144 of New York City: selection and scoring rates by category",
            "the numbers of a bias audit in New York City's rules on automated employment "
            "decision tools, 6 RCNY 5-301, which implement Local Law 144 of 2021",
            "enforced since 5 July 2023",
            (
                "the independence of the auditor",
                "the rules' own categories of sex, race and ethnicity: the data bring theirs",
                "whether data are historical or test data, and what must be said of them",
                "what must be published, and notices to candidates",
            ),
            {
                "share": "share",
                "selection_rate": "selection rate",
                "impact_ratio": "impact ratio",
                "scoring_rate": "scoring rate",
                "scoring_impact_ratio": "impact ratio of scoring",
            },
            (
                "Selected means {selected}. The scoring rate is the share with a score {side} the "
                "median of those whose category is known: use it if the tool gives scores, and the "
                "selection rate if it selects or classifies. The impact ratio is a rate over the "
                "highest one of a category.",
                f"Categories with less than {100 * LEAST_SHARE:g} % of the data are left out of "
                "the ratios, which the rules let the auditor do; n and rates are shown. Unknown "
                "categories are left out of all calculations.",
                "Scores are counted in bins: a scoring rate is off by at most the share of the "
                "category that is in the bin of the median, by nothing if scores there are all the "
                "same.",
                "The law names no threshold for the ratio.",
            ),
            by_category=True,
        ),
        LayoutKind(
            "tripod",
            "TRIPOD+AI: performance of a prediction model by group",
            "the part of TRIPOD+AI (BMJ 2024;385:e078378) that asks for estimates of performance "
            "with intervals, also for subgroups",
            "published 16 April 2024",
            (
                "the other items of the checklist, such as participants, predictors, missing data "
                "and how the model was made",
                "outcomes that are censored, or not yes or no",
                "several clusters or studies: intervals take rows to be independent",
                "plots of calibration and of net benefit over thresholds",
            ),
            {
                "events": "events",
                "observed_to_expected": "O:E",
                "calibration_slope": "calibration slope",
                "calibration_intercept": "calibration intercept",
                "auc": "AUC",
                "brier": "Brier score",
                "net_benefit": "net benefit at {threshold}",
            },
            (
                "O:E is events over expected ones; the intercept is calibration in the large, with "
                "the slope held at 1; the slope comes from logistic recalibration. Ideal: O:E 1, "
                "intercept 0, slope 1.",
                "{intervals}",
            ),
        ),
    )
}
"""The layouts by name; a new one is a new row here."""


@dataclass(frozen=True)
class _Subject:
    """The tally, threshold and side that a layout is filled from; an audit if it shows one."""

    tally: Tally
    threshold: float
    audit: Audit | None = None
    unknown: tuple[Any, ...] = ()
    below: bool = False
    names: Callable[[Iterable[Group]], dict[Group, str]] = names_of


def _filled(kind: LayoutKind, asked: _Subject) -> Layout:
    """A layout from a subject that is checked already."""
    if asked.audit is None:
        tables, level = _by_category(kind, asked), None
    else:
        audit = _with_measures(asked.audit, kind.measures)
        tables, level = [_performance(kind, audit, asked)], audit.intervals
    said = {
        "selected": f"a score {'below' if asked.below else 'of at least'} {asked.threshold:g}",
        "side": SIDES[asked.below],
        "intervals": f"In brackets, {level.confidence:.4g} intervals."
        if level
        else "No intervals were computed.",
    }
    return Layout(
        kind.name,
        kind.title,
        kind.follows,
        kind.since,
        kind.covers_not,
        {"threshold": asked.threshold, "selected": SIDES[asked.below]},
        tuple(tables),
        tuple(note.format(**said) for note in kind.notes),
        asked.tally.backend,
    )


def _table(title: str, kind: LayoutKind, rows: Iterable[Row], asked: _Subject) -> LayoutTable:
    headings = {
        n: text.format(threshold=f"{asked.threshold:g}") for n, text in kind.columns.items()
    }
    first = "category" if kind.by_category else "group"
    return LayoutTable(title, {"name": first, "n": "n", **headings}, tuple(rows))


# Selection by category


def _by_category(kind: LayoutKind, asked: _Subject) -> list[LayoutTable]:
    """Each column of groups by itself, and then their intersections."""
    tally = asked.tally
    widths = {len(parts_of(group)) for group in tally.groups}
    names = tally.columns.get("group")
    names = [names] if isinstance(names, str) else list(names or ["group"])
    parts = {f"By {names[0]}": tally}
    if max(widths) > 1 and len(widths) == 1:
        parts = {}
        for column in range(max(widths)):
            title = names[column] if len(names) == max(widths) else f"column {column + 1}"
            values: dict[Group, Group] = {g: parts_of(g)[column] for g in tally.groups}
            parts[f"By {title}"] = tally.relabel(values)
        parts[f"Intersections of {' and '.join(names)}"] = tally
    return [
        _table(title, kind, _categories(kind, part, asked), asked) for title, part in parts.items()
    ]


def _categories(kind: LayoutKind, tally: Tally, asked: _Subject) -> list[Row]:
    """The rows of the categories that are known, and one for all others."""
    unknown = [g for g in tally.groups if any(part in asked.unknown for part in parts_of(g))]
    rows: list[Row] = []
    if len(unknown) < len(tally.groups):
        known = tally.drop(unknown) if unknown else tally
        people = known.totals.n.sum(axis=1)
        large = people >= LEAST_SHARE * tally.n
        rates = {name: _rates(name, known, asked) for name in kind.measures}
        for index, (group, name) in enumerate(asked.names(known.groups).items()):
            row: Row = {"group": group, "name": name, "n": float(people[index])}
            row |= {"share": row["n"] / tally.n, "left_out": not large[index]}
            for column in kind.columns:
                if column in RATIOS:
                    row[column] = _ratio(rates[RATIOS[column]], large, index)
                elif column in rates:
                    row[column] = float(rates[column][index])
            rows.append(row)
    count = tally.n - sum(row["n"] for row in rows)
    others: Row = {"group": None, "name": "(unknown)", "n": count, "share": count / tally.n}
    nothing = {**dict.fromkeys(kind.measures, math.nan), **dict.fromkeys(RATIOS, None)}
    return [*rows, {**others, "left_out": True, **nothing}]


def _rates(name: str, tally: Tally, asked: _Subject) -> Floats:
    """A rate of each group, with people selected on the side that was asked for."""
    row = MEASURES[name]
    if row.is_plain:
        above = row.of(tally.kinds(asked.threshold))
        return 1.0 - above if asked.below else above
    people = GroupedPeople.of_tally(tally, asked.threshold)
    people = _mirrored(people) if asked.below else people
    return np.array([row.estimated(people, index).value for index in range(len(tally.groups))])


def _mirrored(population: GroupedPeople) -> GroupedPeople:
    """The same people with scores 1 - h, of whom the others are selected."""

    def flipped(people: People) -> People:
        return replace(
            people,
            level=population.levels - 1 - people.level,
            selected=~people.selected,
            wh=people.w - people.wh,
            wh2=people.w - 2.0 * people.wh + people.wh2,
        )

    return replace(population, of=lambda group: flipped(population.people(group)))


def _ratio(rates: Floats, large: Any, index: int) -> float | None:
    """A rate over the highest one; None if the category is too small, NaN if nobody has any."""
    if not large[index]:
        return None
    highest = float(rates[large].max())
    return float(rates[index]) / highest if highest > 0 else math.nan


# Performance


def _performance(kind: LayoutKind, audit: Audit, asked: _Subject) -> LayoutTable:
    """The measures of each group and of everybody, with intervals."""
    events = audit.tally.totals.n[:, 1]
    numbers = [*audit.groups.values(), audit.overall]
    labels = [*asked.names(audit.groups).items(), (None, "all")]
    rows = []
    for (group, name), one, positives in zip(labels, numbers, [*events, events.sum()], strict=True):
        row: Row = {"group": group, "name": name, "n": one.n, "events": float(positives)}
        for each in kind.measures:
            row[each] = one[each]
            if each in one.intervals:
                row[f"{each}_low"], row[f"{each}_high"] = one.intervals[each]
        rows.append(row)
    return _table("Performance by group", kind, rows, asked)


def _with_measures(audit: Audit, names: Sequence[str]) -> Audit:
    """The audit, made again if it lacks some of the measures."""
    if audit.measures.keys() >= set(names):
        return audit
    asked = audit.question.but(measures=names, replicates=0)
    return measure(audit.tally, question=asked, warn=False)


def layout(
    audit: Audit | TallyLike,
    name: str,
    *,
    threshold: float | None = None,
    unknown: Any = None,
    selected: str = "above",
    **reading: Unpack[DataOptions],
) -> Layout:
    """The tables that a law or a guideline asks for, filled from a tally.

    Parameters
    ----------
    audit : Audit, Tally, or data
        What it is about.  A tally is audited first, except for "ll144", which needs no labels.
    name : {"ll144", "tripod"}
        "ll144": selection and scoring rates and impact ratios per category, per intersection where
        groups have several columns (New York City's Local Law 144).  "tripod": observed to
        expected, calibration slope and intercept, AUC, Brier score and net benefit with intervals
        (TRIPOD+AI).
    threshold : float, optional
        Score from which people are selected; for a tally only, an audit has its own.
    unknown : value or list of values, optional
        For "ll144": the values of the group columns that stand for an unknown category.
    selected : {"above", "below"}
        For "ll144", who is selected: people at or above the threshold, or below it, as for a score
        of default.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Returns
    -------
    Layout
        Which prints as tables; ``to_dict`` has the numbers.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> result = ic.layout(compas(), "ll144", selected="below")
    >>> [(row["name"], round(row["impact_ratio"], 3)) for row in result.tables[0].rows[:2]]
    [('African-American', 0.681), ('Caucasian', 1.0)]
    >>> result.since
    'enforced since 5 July 2023'
    """
    kind = check_layout(name)
    check_word("selected", selected, SIDES)
    given = {"unknown": unknown, "selected": selected if selected != SIDES[0] else None}
    for option, value in given.items():
        if value is not None and not kind.by_category:
            rule = f"must be left out of the layout {kind.name!r}"
            raise UsageError(Problem(option, rule, short(value), 'leave it out; it is for "ll144"'))
    edges = () if threshold is None else (check_threshold(threshold),)
    subject = _subject(audit_or_tally(audit, reading, *edges), kind, threshold)
    named = _unknown_values(subject.tally, unknown)
    return _filled(kind, replace(subject, unknown=named, below=selected == "below"))


def check_layout(name: Any, argument: str = "layout") -> LayoutKind:
    """The row of a layout; raise if none has this name."""
    near = get_close_matches(name, LAYOUTS, 1) if isinstance(name, str) else []
    check_word(argument, name, tuple(LAYOUTS), f"did you mean {near[0]!r}?" if near else None)
    return LAYOUTS[name]


def page_layouts(audit: Audit, held: dict[str, Any], unknown: Any = None) -> list[Layout]:
    """Every layout for the page, from the bins that it holds: they reveal nothing that it hides.

    None with many groups, or if a bin of the page lies across the threshold.  ``unknown`` is the
    group of rows without one.
    """
    tally = audit.tally
    if len(tally.groups) > MOST_ON_PAGE or undecided(held, tally.grid, audit.threshold):
        return []
    none = () if unknown is None else (unknown,)
    asked = _Subject(tally, audit.threshold, audit, unknown=none, names=shown_names)
    return [
        _filled(kind, replace(asked, audit=None) if kind.by_category else asked)
        for kind in LAYOUTS.values()
    ]


def _subject(subject: Audit | Tally, kind: LayoutKind, threshold: float | None) -> _Subject:
    """The tally and the threshold, with an audit if the layout shows one."""
    if isinstance(subject, Tally):
        threshold = check_threshold(0.5 if threshold is None else threshold)
        if kind.by_category:
            subject.grid.first_bin(threshold)
            return _Subject(subject, threshold)
        measures = kind.measures
        audited = measure(subject, threshold=threshold, replicates=0, measures=measures, warn=False)
        return _Subject(subject, threshold, audited)
    if threshold is not None:
        step = "leave it out, or pass the tally instead of the audit"
        raise UsageError(
            Problem("threshold", "belongs to the audit already", f"{threshold:g}", step)
        )
    audit = None if kind.by_category else subject
    return _Subject(subject.tally, subject.threshold, audit)


def _unknown_values(tally: Tally, unknown: Any) -> tuple[Any, ...]:
    """The values that stand for an unknown category, each of which occurs."""
    if unknown is None:
        return ()
    values = list(unknown) if isinstance(unknown, list | tuple | set) else [unknown]
    known = {part: None for group in tally.groups for part in parts_of(group)}
    for value in values:
        if not isinstance(value, Hashable) or value not in known:
            got = f"{short(value)}, and the categories are {listing(map(repr, known))}"
            step = "use one of these, with the same type, or leave it out if nobody is unknown"
            raise UsageError(Problem("unknown", "must be a category of the data", got, step))
    return tuple(values)
