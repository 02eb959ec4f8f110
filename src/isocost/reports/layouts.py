"""The layouts there are: tables that a law or a guideline asks for, filled from the same numbers.

Each is a row of :data:`LAYOUTS`: which text it follows and from when, what of it is not covered,
which measures it shows, and the function that fills it.  None of them says whether a number is
legal.  What a layout is, and how it is printed, is in :mod:`isocost.reports.layout`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Unpack

import numpy as np

from isocost.cells import add_up
from isocost.checks import check_numbers, check_threshold, check_word, short
from isocost.errors import Problem, UsageError, listing, setting
from isocost.groups import Group, parts_of, shown_names
from isocost.measures.audit import Audit, audit_or_tally
from isocost.measures.audit import audit as measure
from isocost.measures.derived import Estimated, GroupedPeople
from isocost.measures.margins import derived_interval
from isocost.measures.table import MEASURES
from isocost.repairs.composition import ORIGINAL
from isocost.reports.layout import (
    SIDES,
    Filled,
    Layout,
    LayoutKind,
    LayoutTable,
    Row,
    Subject,
    filled,
)
from isocost.reports.offers import Offer, options_of
from isocost.reports.payload import undecided
from isocost.tallies import DataOptions, Tally, TallyLike
from isocost.typing import Floats

LEAST_SHARE = 0.02
"""Of the data: New York's rules let the auditor leave smaller categories out of the ratios."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Of everybody's scores, for the cut-offs if none are given."""

MOST_ON_PAGE = 20
"""With more groups than this the page has no layouts: its tables would be too long."""


def _rates(tally: Tally, threshold: float, below: bool) -> Floats:
    """The share of each group that is selected."""
    above = MEASURES["selection_rate"].of(tally.kinds(threshold))
    return 1.0 - above if below else above


# New York City's Local Law 144


def _ll144(asked: Subject) -> Filled:
    """Each column of groups by itself, and then their intersections."""
    tally = asked.tally
    widths = {len(parts_of(group)) for group in tally.groups}
    names = tally.columns.get("group")
    names = [names] if isinstance(names, str) else list(names or ["group"])
    tables = []
    if max(widths) > 1 and len(widths) == 1:
        for column in range(max(widths)):
            title = names[column] if len(names) == max(widths) else f"column {column + 1}"
            values: dict[Group, Group] = {g: parts_of(g)[column] for g in tally.groups}
            tables.append(_categories(tally.relabel(values), f"By {title}", asked))
        tables.append(_categories(tally, f"Intersections of {' and '.join(names)}", asked))
    else:
        tables.append(_categories(tally, f"By {names[0]}", asked))
    notes = [
        f"Selected means {asked.rule}. The scoring rate is the share with a score "
        f"{'below' if asked.below else 'above'} the median of those whose category is known: use "
        "it if the tool gives scores, and the selection rate if it selects or classifies. The "
        "impact ratio is a rate over the highest one of a category.",
        f"Categories with less than {100 * LEAST_SHARE:g} % of the data are left out of the "
        "ratios, which the rules let the auditor do; n and rates are shown. Unknown categories "
        "are left out of all calculations.",
        "Scores are counted in bins: a scoring rate is off by at most the share of the category "
        "that is in the bin of the median, by nothing if scores there are all the same.",
        "The law names no threshold for the ratio.",
    ]
    return tables, notes


def _categories(tally: Tally, title: str, asked: Subject) -> LayoutTable:
    unknown = [group for group in tally.groups if _is_unknown(group, asked.unknown)]
    rows = [] if len(unknown) == len(tally.groups) else _known(tally, unknown, asked)
    count = tally.n - sum(row["n"] for row in rows)
    nothing = {**dict.fromkeys(RATIOS, math.nan), **dict.fromkeys(RATIOS.values(), None)}
    unknowns: Row = {"group": None, "name": "(unknown)", "n": count, "share": count / tally.n}
    rows.append({**unknowns, "left_out": True, **nothing})
    return LayoutTable(title, LL144_COLUMNS, tuple(rows))


def _known(tally: Tally, unknown: Sequence[Group], asked: Subject) -> list[Row]:
    """The rows of the categories that are known."""
    known = tally.drop(unknown) if unknown else tally
    people = known.totals.n.sum(axis=1)
    large = people >= LEAST_SHARE * tally.n
    population = asked.population(known, asked.threshold)
    scoring = MEASURES["scoring_rate"]
    rates = {
        "selection_rate": _rates(known, asked.threshold, asked.below),
        "scoring_rate": np.array(
            [scoring.estimated(population, index).value for index in range(len(known.groups))]
        ),
    }
    rows: list[Row] = []
    for index, (group, name) in enumerate(asked.names(known.groups).items()):
        row: Row = {"group": group, "name": name, "n": float(people[index])}
        row |= {"share": row["n"] / tally.n, "left_out": not large[index]}
        for rate, ratio in RATIOS.items():
            row[rate] = float(rates[rate][index])
            row[ratio] = _ratio(rates[rate], large, index)
        rows.append(row)
    return rows


def _ratio(rates: Floats, large: Any, index: int) -> float | None:
    """A rate over the highest one; None if the category is too small, NaN if nobody has any."""
    if not large[index]:
        return None
    highest = float(rates[large].max())
    return float(rates[index]) / highest if highest > 0 else math.nan


def _is_unknown(group: Group, unknown: Sequence[Any]) -> bool:
    return any(part in unknown for part in parts_of(group))


RATIOS = {"selection_rate": "impact_ratio", "scoring_rate": "scoring_impact_ratio"}
"""The rates of a category, and what each is called over the highest one."""

LL144_COLUMNS = {
    "name": "category",
    "n": "n",
    "share": "share",
    "selection_rate": "selection rate",
    "impact_ratio": "impact ratio",
    "scoring_rate": "scoring rate",
    "scoring_impact_ratio": "impact ratio of scoring",
}


# TRIPOD+AI


def _tripod(asked: Subject) -> Filled:
    """Calibration, discrimination and clinical utility of each group, with intervals."""
    names = LAYOUTS["tripod"].measures
    audit = _with_measures(_audit_of(asked), names)
    events = audit.tally.totals.n[:, 1]
    numbers = [*audit.groups.values(), audit.overall]
    labels = [*asked.names(audit.groups).items(), (None, "all")]
    rows = []
    for (group, name), one, positives in zip(labels, numbers, [*events, events.sum()], strict=True):
        row: Row = {"group": group, "name": name, "n": one.n, "events": float(positives)}
        for each in names:
            row[each] = one[each]
            if each in one.intervals:
                row[f"{each}_low"], row[f"{each}_high"] = one.intervals[each]
        rows.append(row)
    titles = {name: MEASURES[name].title for name in names}
    titles["net_benefit"] += f" at {asked.threshold:g}"
    columns = {"name": "group", "n": "n", "events": "events", **titles}
    level = audit.intervals and f"{audit.intervals.confidence:.4g}"
    notes = [
        "O:E is events over expected ones; the intercept is calibration in the large, with the "
        "slope held at 1; the slope comes from logistic recalibration. Ideal: O:E 1, intercept 0, "
        "slope 1.",
        f"In brackets, {level} intervals." if level else "No intervals were computed.",
    ]
    return [LayoutTable("Performance by group", columns, tuple(rows))], notes


def _with_measures(audit: Audit, names: Sequence[str]) -> Audit:
    """The audit, made again if it lacks some of the measures."""
    if audit.measures.keys() >= set(names):
        return audit
    level = audit.confidence
    settings: dict[str, Any] = {"measures": names, "min_group": audit.min_group}
    return measure(
        audit.tally, audit.cost, audit.threshold, level, replicates=0, warn=False, **settings
    )


# Lending


def _lending(asked: Subject) -> Filled:
    """Differences of scores, ratios at each cut-off, and both after each repair."""
    audit = _audit_of(asked)
    names = asked.names(audit.groups)
    population = asked.population(asked.tally, asked.threshold)
    scores = []
    for index, (group, name) in enumerate(names.items()):
        numbers = audit.groups[group]
        row: Row = {"group": group, "name": name, "n": numbers.n, "mean_score": numbers.mean_score}
        scores.append(row | _estimate("standardized_difference", population, index, audit))
    cutoffs = []
    for threshold in _cutoffs(asked):
        people = asked.population(asked.tally, threshold)
        rates = _rates(asked.tally, threshold, asked.below)
        for index, (group, name) in enumerate(names.items()):
            row = {"name": name, "group": group, "threshold": threshold}
            row["selection_rate"] = float(rates[index])
            cutoffs.append(row | _estimate("impact_ratio", people, index, audit))
    repairs, why = _repaired(asked, audit) if asked.offers != [] else ([], [])
    smd = {"standardized_difference": MEASURES["standardized_difference"].title}
    air = {"selection_rate": "selected", "impact_ratio": "impact ratio"}
    tables = [
        LayoutTable("Scores", {"name": "group", "n": "n", "mean_score": "mean score", **smd},
                    tuple(scores)),
        LayoutTable("At each cut-off", {"name": "group", "threshold": "cut-off", **air},
                    tuple(cutoffs)),
        LayoutTable(f"What each repair would do, at {asked.threshold:g}",
                    {"repair": "repair", "name": "group", **air, **smd}, tuple(repairs)),
    ]  # fmt: skip
    return [table for table in tables if table.rows], [*_lending_notes(asked, audit), *why]


def _lending_notes(asked: Subject, audit: Audit) -> list[str]:
    side, other = ("below", "above") if asked.below else ("at or above", "below")
    compared = "the group with the highest number"
    if audit.reference is not None:
        compared = asked.names(audit.groups)[audit.reference]
    return [
        f"Selected means a score {side} the cut-off. If approval goes to scores {other} it, as "
        f"it does for {'scores of repayment' if asked.below else 'scores of default'}, use "
        f"{setting('selected', SIDES[not asked.below])}.",
        f"Ratios and differences compare with {compared}. SMD is the standardized mean difference, "
        "in standard deviations of everybody; a negative one means less favourable scores.",
        "On ratios: a rule of thumb of the EEOC's guidelines of 1978 looks closer below 0.8. It is "
        "about employment, not about credit.",
        "A repair is shown on average over its coin, on these data, at the audit's own cost and "
        "tolerance.",
    ]


def _estimate(name: str, population: GroupedPeople, index: int, audit: Audit) -> Row:
    """A number of a group, with its interval if the audit has intervals."""
    row = MEASURES[name]
    number: Estimated = row.estimated(population, index)
    if audit.intervals is None:
        return {name: number.value}
    low, high = derived_interval(number, row.limits, audit.intervals.confidence)
    return {name: number.value, f"{name}_low": low, f"{name}_high": high}


def _cutoffs(asked: Subject) -> list[float]:
    """The cut-offs that were asked for, or quantiles of the scores; and the threshold."""
    if asked.thresholds is not None:
        return sorted({*asked.thresholds, asked.threshold})
    grid, cells = asked.tally.grid, asked.tally.cells
    below = np.cumsum(add_up(cells.bin, cells.w, grid.size)) / cells.w.sum()
    bins = np.searchsorted(below, QUANTILES)
    # Edges with somebody below; somebody is above in any case.
    inside = [bin_ for bin_ in bins if bin_ > cells.bin.min()]
    return sorted({*grid.cuts[inside].tolist(), asked.threshold})


def _repaired(asked: Subject, audit: Audit) -> tuple[list[Row], list[str]]:
    """Who is selected after each repair, and why some repairs are not possible."""
    tally = asked.tally.select(list(audit.compared))
    offers = asked.offers
    if offers is None:
        offers = options_of(replace(audit, tally=tally, cost=audit.feasibility.cost), None)
    names = asked.names(tally.groups)
    after = {ORIGINAL: tally, **{one.label: one.rule.expected(tally) for one in offers if one.rule}}
    rows: list[Row] = []
    for repair, scores in after.items():
        population = asked.population(scores, asked.threshold)
        rates = _rates(scores, asked.threshold, asked.below)
        for index, (group, name) in enumerate(names.items()):
            row: Row = {"repair": repair, "name": name, "group": group}
            row["selection_rate"] = float(rates[index])
            for each in LAYOUTS["lending"].measures:
                row[each] = MEASURES[each].estimated(population, index).value
            rows.append(row)
    why = [f"{one.label}: {one.why}" for one in offers if not one.rule]
    small = [name for group, name in asked.names(audit.groups).items() if group not in names]
    if small:
        why.append(f"Too small, or without both labels, to be repaired: {listing(small)}.")
    if audit.reference is not None and audit.reference not in names:
        why.append("So in the table of repairs others compare with the highest number.")
    return rows, why


def _audit_of(asked: Subject) -> Audit:
    assert asked.audit is not None
    return asked.audit


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
            ("selection_rate", "impact_ratio", "scoring_rate"),
            ("unknown", "selected"),
            _ll144,
            needs_labels=False,
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
            ("observed_to_expected", "calibration_slope", "calibration_intercept", "auc", "brier",
             "net_benefit"),
            (),
            _tripod,
        ),
        LayoutKind(
            "lending",
            "Fair lending: adverse impact ratios and standardized differences",
            "practice, not a text: no rule prescribes this table. Adverse impact ratios and "
            "standardized mean differences are what reviews of credit models in the United States "
            "usually report, under the Equal Credit Opportunity Act and the Fair Housing Act",
            "acts of 1974 and 1968",
            (
                "whether a difference has a business justification, or a less discriminatory "
                "alternative exists beyond these repairs",
                "differences in treatment, prices or terms",
                "groups that were estimated from names or addresses",
                "applicants who never applied, or whose outcome is unknown",
            ),
            ("impact_ratio", "standardized_difference"),
            ("thresholds", "reference", "selected"),
            _lending,
        ),
    )
}  # fmt: skip
"""The layouts by name; a new one is a new row here."""


def layout(
    audit: Audit | TallyLike,
    name: str,
    *,
    threshold: float | None = None,
    reference: Group | None = None,
    thresholds: float | Iterable[float] | None = None,
    unknown: Any = None,
    selected: str = "above",
    **reading: Unpack[DataOptions],
) -> Layout:
    """The tables that a law or a guideline asks for, filled from a tally.

    Parameters
    ----------
    audit : Audit, Tally, or data
        What it is about.  A tally is audited first, except for "ll144", which needs no labels.
    name : {"ll144", "tripod", "lending"}
        "ll144": selection and scoring rates and impact ratios per category, per intersection where
        groups have several columns (New York City's Local Law 144).  "tripod": observed to
        expected, calibration slope and intercept, AUC, Brier score and net benefit with intervals
        (TRIPOD+AI).  "lending": impact ratios at several cut-offs, standardized mean differences,
        and both after each repair.
    threshold : float, optional
        Score from which people are selected; for a tally only, an audit has its own.
    reference : group, optional
        For "lending": what ratios and differences compare with; for a tally only.
    thresholds : float or sequence, optional
        For "lending": the cut-offs, edges of the tally.  By default five quantiles of the scores.
    unknown : value or list of values, optional
        For "ll144": the values of the group columns that stand for an unknown category.
    selected : {"above", "below"}
        Who is selected: people at or above the threshold, or below it, as for a score of default.
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
    given = {"reference": reference, "thresholds": thresholds, "unknown": unknown}
    given["selected"] = selected if selected != SIDES[0] else None
    _check_options(kind, given)
    cutoffs = None if thresholds is None else check_numbers("thresholds", thresholds)
    edges = () if threshold is None else (check_threshold(threshold),)
    measured = audit_or_tally(audit, reading, *edges, *(cutoffs or ()))
    subject = _subject(measured, kind, {"threshold": threshold, "reference": reference})
    for cutoff in cutoffs or ():
        subject.tally.grid.first_bin(cutoff, "thresholds")
    named = _unknown_values(subject.tally, unknown)
    return filled(
        kind, replace(subject, thresholds=cutoffs, unknown=named, below=selected == "below")
    )


def check_layout(name: Any, argument: str = "layout") -> LayoutKind:
    """The row of a layout; raise if none has this name."""
    near = get_close_matches(name, LAYOUTS, 1) if isinstance(name, str) else []
    check_word(argument, name, tuple(LAYOUTS), f"did you mean {near[0]!r}?" if near else None)
    return LAYOUTS[name]


def page_layouts(
    audit: Audit, held: dict[str, Any], offers: list[Offer], unknown: Any = None
) -> list[Layout]:
    """Every layout for the page, from the bins that it holds: they reveal nothing that it hides.

    None with many groups, or if a bin of the page lies across the threshold.  Where bins are
    merged, the only cut-off is the threshold, and repairs are left out.  ``unknown`` is the group
    of rows without one.
    """
    tally = audit.tally
    if len(tally.groups) > MOST_ON_PAGE or undecided(held, tally.grid, audit.threshold):
        return []
    merged = "first" in held["cells"]
    asked = Subject(
        tally,
        audit.threshold,
        audit,
        thresholds=() if merged else None,
        unknown=() if unknown is None else (unknown,),
        offers=[] if merged else offers,
        names=shown_names,
    )
    made = {
        name: filled(kind, asked if kind.needs_labels else replace(asked, audit=None))
        for name, kind in LAYOUTS.items()
    }
    if merged:
        notes = (*made["lending"].notes, MERGED)
        made["lending"] = replace(made["lending"], notes=notes)
    return list(made.values())


MERGED = (
    "This page holds merged bins of scores, so other cut-offs and repairs are left out; isocost "
    "audit --layout lending shows them."
)


def _check_options(kind: LayoutKind, given: Mapping[str, Any]) -> None:
    for option, value in given.items():
        if value is not None and option not in kind.options:
            homes = [f'"{one.name}"' for one in LAYOUTS.values() if option in one.options]
            rule = f"must be left out of the layout {kind.name!r}"
            step = f"leave it out; it is for {' and '.join(homes)}"
            raise UsageError(Problem(option, rule, short(value), step))


def _subject(subject: Audit | Tally, kind: LayoutKind, settings: Mapping[str, Any]) -> Subject:
    """The tally and the threshold, with an audit if there is one or it takes one."""
    given = {name: value for name, value in settings.items() if value is not None}
    if isinstance(subject, Tally):
        if not kind.needs_labels:
            threshold = check_threshold(given.get("threshold", 0.5))
            subject.grid.first_bin(threshold)
            return Subject(subject, threshold)
        audited = measure(subject, **given, replicates=0, measures=kind.measures, warn=False)
        return Subject(subject, audited.threshold, audited)
    if given:
        got, step = ", ".join(given), "leave them out, or pass the tally instead of the audit"
        raise UsageError(Problem("settings", "belong to the audit already", got, step))
    audit = subject if kind.needs_labels else None
    return Subject(subject.tally, subject.threshold, audit)


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
