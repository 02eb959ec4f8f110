"""Layouts: tables that a law or a guideline asks for, filled from the same numbers as an audit.

Each is a row of :data:`LAYOUTS`: the text it follows and the date of that text, what of it is not
covered, its columns and its notes.  None of them says whether a number is legal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Unpack

import numpy as np

from isocost.checks import check_threshold, check_word, short
from isocost.errors import Problem, UsageError, listing
from isocost.groups import Group, names_of, parts_of, shown_names
from isocost.judging.audit import Audit, audit_or_tally, audited
from isocost.measures.derived import GroupedPeople, People
from isocost.measures.table import MEASURES
from isocost.page.payload import undecided
from isocost.question import DEFAULT
from isocost.result import Printed, Result
from isocost.tables import LINE, transposed
from isocost.tallies import DataOptions, Tally, TallyLike
from isocost.typing import Floats

LEAST_SHARE = 0.02
"""New York's rules let the auditor leave categories with a smaller share out of the ratios."""

MOST_ON_PAGE = 20
"""With more groups than this the page has no layouts: its tables would be too long."""

FEW = 4
"""A table of no more rows than this is printed with its columns down."""

SIDES = ("above", "below")
"""The people who are selected: those at or above the threshold, or those below."""

RATIOS = {"impact_ratio": "selection_rate", "scoring_impact_ratio": "scoring_rate"}
"""Ratios of a rate to the highest one of a category."""

Row = dict[str, Any]

Names = Callable[[Iterable[Group]], dict[Group, str]]


@dataclass(frozen=True)
class LayoutKind:
    """A row of :data:`LAYOUTS`; most fields are those of :class:`Layout`.

    ``columns`` are measures and :data:`RATIOS` with their headings, which may have the field
    {threshold}; notes may have {selected}, {side} and {intervals}.  A layout ``by_category`` is
    about selection: it needs no labels, has a table for each column of the groups, and leaves
    unknown and small categories out of the ratios.  Others show an audit, with intervals.
    """

    name: str
    title: str
    follows: str
    since: str
    as_of: str
    covers_not: tuple[str, ...]
    columns: Mapping[str, str]
    notes: tuple[str, ...]
    by_category: bool = False

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures among the columns."""
        return tuple(name for name in self.columns if name in MEASURES and name not in RATIOS)


LAYOUTS: Mapping[str, LayoutKind] = {
    row.name: row
    for row in (
        LayoutKind(
            "ll144",
            "Local Law 144 of New York City: selection and scoring rates by category",
            "the numbers of a bias audit in New York City's rules on automated employment "
            "decision tools, 6 RCNY 5-301, which implement Local Law 144 of 2021",
            "enforced since 5 July 2023",
            "2023-04-06",
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
            "2024-04-16",
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
class LayoutTable:
    """One table of a layout.

    Attributes
    ----------
    title : str
        What it is about.
    columns : {name: str}
        The columns that are printed, and what they are called there.
    rows : tuple of dict
        By the names of columns.  ``group`` is the group itself, None for others than a group.  An
        interval of ``auc`` is ``auc_low`` to ``auc_high``.  A number that is left out on purpose
        is None, one that is not defined NaN.
    """

    title: str
    columns: Mapping[str, str]
    rows: tuple[Row, ...]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows as printed."""
        header = list(self.columns.values())
        rows = [[_shown(row, name) for name in self.columns] for row in self.rows]
        return transposed(header, rows) if len(rows) <= FEW < len(header) else (header, rows)


def _shown(row: Row, name: str) -> str:
    value = row[name]
    if value is None:
        return "left out"
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "-"
    if name in ("n", "events"):
        return f"{value:,.0f}" if value >= 1e6 else f"{value:,.6g}"
    if name == "share":
        return f"{100.0 * value:.1f} %"
    low, high = row.get(f"{name}_low", math.nan), row.get(f"{name}_high", math.nan)
    interval = f" [{low:.3f}, {high:.3f}]" if low < high else ""
    return f"{value:.3f}{interval}"


@dataclass(frozen=True, repr=False)
class Layout(Result):
    """The tables of a layout, with what they follow and what they leave out.

    Attributes
    ----------
    layout, title : str
        What :func:`isocost.layout` calls it, and what stands on top.
    follows, since : str
        The text it follows, and from when that is.
    as_of : str
        The date of the version of that text, as YYYY-MM-DD; later changes are not considered.
    covers_not : tuple of str
        What the text asks for besides, or what the numbers cannot say.
    settings : dict
        What it was made with.
    tables : tuple of LayoutTable
        The numbers.
    notes : tuple of str
        How they were computed.
    """

    format = "isocost-layout"
    unwritten = ("backend",)
    room = LINE

    layout: str
    title: str
    follows: str
    since: str
    as_of: str
    covers_not: tuple[str, ...]
    settings: Mapping[str, Any]
    tables: tuple[LayoutTable, ...]
    notes: tuple[str, ...]
    backend: str | None = None

    def headline(self) -> str:
        """The title."""
        return self.title

    def printed(self) -> list[Printed]:
        """Title, header and rows of every table."""
        return [(one.title, *one.table()) for one in self.tables]

    def summary(self) -> list[str]:
        """Notes on the numbers, the text they follow, and what they do not cover."""
        return [
            *self.notes,
            f"Follows {self.follows} ({self.since}; text as of {self.as_of}).",
            f"Does not cover: {'; '.join(self.covers_not)}.",
        ]

    def records(self) -> list[Row]:
        """The rows of all tables; NaN, or "", where one is left out or a table has none."""
        rows = [{"table": one.title, **row} for one in self.tables for row in one.rows]
        names = dict.fromkeys(name for row in rows for name in row if name != "group")
        texts = {name for row in rows for name, value in row.items() if isinstance(value, str)}
        empty = {name: "" if name in texts else math.nan for name in names}
        return [
            {name: empty[name] if row.get(name) is None else row[name] for name in names}
            for row in rows
        ]


def layout(
    audit: Audit | TallyLike,
    name: str,
    *,
    threshold: float | None = None,
    unknown: Any = None,
    selected: str = "above",
    **reading: Unpack[DataOptions],
) -> Layout:
    """Fill the tables that a law or a guideline asks for from a tally.

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
    >>> result.since, result.as_of
    ('enforced since 5 July 2023', '2023-04-06')
    """
    kind = check_layout(name)
    check_word("selected", selected, SIDES)
    given = {"unknown": unknown, "selected": selected if selected != SIDES[0] else None}
    for option, value in given.items():
        if value is not None and not kind.by_category:
            rule = f"must be left out of the layout {kind.name!r}"
            raise UsageError(Problem(option, rule, short(value), 'leave it out; it is for "ll144"'))
    edges = () if threshold is None else (check_threshold(threshold),)
    subject = audit_or_tally(audit, reading, *edges)
    if isinstance(subject, Audit) and threshold is not None:
        rule = "belongs to the audit already"
        step = "leave it out, or pass the tally instead of the audit"
        raise UsageError(Problem("threshold", rule, f"{threshold:g}", step))
    asked = DEFAULT if threshold is None else DEFAULT.but(threshold=threshold)
    if isinstance(subject, Audit):
        asked = subject.question
    elif kind.by_category:
        subject.grid.first_bin(asked.threshold)
    else:
        asked = asked.but(replicates=0, measures=kind.measures)
        subject = audited(subject, asked)
    tally = subject if isinstance(subject, Tally) else subject.tally
    known = {part: None for group in tally.groups for part in parts_of(group)}
    values = list(unknown) if isinstance(unknown, list | tuple | set) else [unknown]
    values = [] if unknown is None else values
    for value in values:
        if not isinstance(value, Hashable) or value not in known:
            got = f"{short(value)}, and the categories are {listing(map(repr, known))}"
            step = "use one of these, with the same type, or leave it out if nobody is unknown"
            raise UsageError(Problem("unknown", "must be a category of the data", got, step))
    return _filled(kind, subject, asked.threshold, values, selected == "below")


def check_layout(name: Any, argument: str = "layout") -> LayoutKind:
    """The row of a layout; raise if none has this name."""
    near = get_close_matches(name, LAYOUTS, 1) if isinstance(name, str) else []
    check_word(argument, name, tuple(LAYOUTS), f"did you mean {near[0]!r}?" if near else None)
    return LAYOUTS[name]


def page_layouts(audit: Audit, held: dict[str, Any]) -> list[Layout]:
    """Every layout for the page, from the bins that it holds: they reveal nothing that it hides.

    None with many groups, or if a bin of the page lies across the threshold.
    """
    tally = audit.tally
    if len(tally.groups) > MOST_ON_PAGE or undecided(held, tally.grid, audit.threshold):
        return []
    unknown = [one for one in (tally.reading.missing.name,) if one is not None]
    given = (audit, audit.threshold, unknown)
    return [_filled(kind, *given, names=shown_names) for kind in LAYOUTS.values()]


def _filled(
    kind: LayoutKind,
    subject: Audit | Tally,
    threshold: float,
    unknown: list[Any],
    below: bool = False,
    names: Names = names_of,
) -> Layout:
    """A layout from an audit, or from a tally if it is by category."""
    tally = subject if isinstance(subject, Tally) else subject.tally
    intervals = "No intervals were computed."
    if kind.by_category:
        tables = {
            title: _categories(kind, part, threshold, unknown, below, names)
            for title, part in _by_column(tally).items()
        }
    else:
        audit = subject if isinstance(subject, Audit) else audited(subject, DEFAULT)
        if not audit.measures.keys() >= set(kind.measures):
            asked = audit.question.but(measures=kind.measures, replicates=0)
            audit = audited(tally, asked, audit.estimates)
        tables = {"Performance by group": _performance(kind, audit, names)}
        if audit.intervals:
            intervals = f"In brackets, {audit.intervals.confidence:.4g} intervals."
    headings = {"name": "category" if kind.by_category else "group", "n": "n"}
    headings |= {n: text.format(threshold=f"{threshold:g}") for n, text in kind.columns.items()}
    selected = f"a score {'below' if below else 'of at least'} {threshold:g}"
    said = {"selected": selected, "side": SIDES[below], "intervals": intervals}
    texts = {n: getattr(kind, n) for n in ("title", "follows", "since", "as_of", "covers_not")}
    return Layout(
        layout=kind.name,
        settings={"threshold": threshold, "selected": SIDES[below]},
        tables=tuple(LayoutTable(title, headings, tuple(rows)) for title, rows in tables.items()),
        notes=tuple(note.format(**said) for note in kind.notes),
        backend=tally.backend,
        **texts,
    )


def _by_column(tally: Tally) -> dict[str, Tally]:
    """A tally for each column of groups by itself, and then one for their intersections."""
    widths = {len(parts_of(group)) for group in tally.groups}
    named = tally.columns.get("group")
    names = [named] if isinstance(named, str) else list(named or ["group"])
    if max(widths) == 1 or len(widths) > 1:
        return {f"By {names[0]}": tally}
    parts = {}
    for column in range(max(widths)):
        title = names[column] if len(names) == max(widths) else f"column {column + 1}"
        values: dict[Group, Group] = {g: parts_of(g)[column] for g in tally.groups}
        parts[f"By {title}"] = tally.relabel(values)
    return {**parts, f"Intersections of {' and '.join(names)}": tally}


def _categories(
    kind: LayoutKind,
    tally: Tally,
    threshold: float,
    unknown: list[Any],
    below: bool,
    names: Names,
) -> list[Row]:
    """The rows of the categories that are known, and one for all others."""
    dropped = [g for g in tally.groups if any(part in unknown for part in parts_of(g))]
    rows: list[Row] = []
    if len(dropped) < len(tally.groups):
        known = tally.drop(dropped) if dropped else tally
        people = known.totals.n.sum(axis=1)
        large = people >= LEAST_SHARE * tally.n
        rates = {name: _rates(name, known, threshold, below) for name in kind.measures}
        highest = {name: float(each[large].max()) for name, each in rates.items() if large.any()}
        for index, (group, name) in enumerate(names(known.groups).items()):
            row: Row = {"group": group, "name": name, "n": float(people[index])}
            row |= {"share": row["n"] / tally.n, "left_out": not large[index]}
            for column in kind.columns:
                if column in rates:
                    row[column] = float(rates[column][index])
                elif column in RATIOS:
                    # None if the category is too small, NaN if nobody at all is selected.
                    of = RATIOS[column]
                    top = highest[of] if large[index] else 0.0
                    ratio = float(rates[of][index]) / top if top > 0 else math.nan
                    row[column] = ratio if large[index] else None
            rows.append(row)
    count = tally.n - sum(row["n"] for row in rows)
    others: Row = {"group": None, "name": "(unknown)", "n": count, "share": count / tally.n}
    nothing = {**dict.fromkeys(kind.measures, math.nan), **dict.fromkeys(RATIOS, None)}
    return [*rows, {**others, "left_out": True, **nothing}]


def _rates(name: str, tally: Tally, threshold: float, below: bool) -> Floats:
    """A rate of each group, with the people on one side of the threshold selected."""
    row = MEASURES[name]
    if row.is_plain:
        above = row.of(tally.kinds(threshold))
        return 1.0 - above if below else above
    people = seen = GroupedPeople.of_tally(tally, threshold)

    def mirrored(group: int | None) -> People:
        """People with scores 1 - h, of whom everybody else is selected."""
        one = people.people(group)
        wh, wh2 = one.w - one.wh, one.w - 2.0 * one.wh + one.wh2
        level = people.levels - 1 - one.level
        return replace(one, level=level, selected=~one.selected, wh=wh, wh2=wh2)

    if below:
        seen = replace(people, of=mirrored)
    return np.array([row.estimated(seen, index).value for index in range(len(tally.groups))])


def _performance(kind: LayoutKind, audit: Audit, names: Names) -> list[Row]:
    """The measures of each group and of everybody, with intervals."""
    events = audit.tally.totals.n[:, 1]
    numbers = [*audit.groups.values(), audit.overall]
    labels = [*names(audit.groups).items(), (None, "all")]
    rows = []
    for (group, name), one, positives in zip(labels, numbers, [*events, events.sum()], strict=True):
        row: Row = {"group": group, "name": name, "n": one.n, "events": float(positives)}
        for each in kind.measures:
            row[each] = one[each]
            if each in one.intervals:
                row[f"{each}_low"], row[f"{each}_high"] = one.intervals[each]
        rows.append(row)
    return rows
