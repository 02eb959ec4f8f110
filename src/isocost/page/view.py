"""The view: one dict with everything that the page says, shows and holds.

It is made from an audit and its offers.  The page's script fills in the same sentences for any
other settings.  A name in braces is filled in; ``{high}``, ``{low}`` and the like are groups.  What
is filled in is made of plain texts and of :class:`Name`, so that whoever writes the page can keep
the names of groups apart from words.

The page computes measures, feasibility and ``withhold`` for any settings.  Intervals and the other
repairs are made here, for a few settings, from the bins that the page holds, so that they reveal
nothing that it hides.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from isocost.checks import finite_or_none
from isocost.costs import Cost, as_cost
from isocost.errors import listing, setting
from isocost.grid import TENTHS
from isocost.groups import Group, as_group, shown_names
from isocost.judging.audit import Audit, audited
from isocost.judging.offers import Compared, Offer, compared
from isocost.judging.unseen import NUMBERS, Outlook, Unseen, is_made_from, unseen
from isocost.measures.bounds import bounds
from isocost.measures.feasibility import MIN_LABEL
from isocost.measures.intervals import Estimates, stretch
from isocost.measures.rates import require_all_decided
from isocost.page.charts import (
    MARKS,
    MOST_PANELS,
    came_true,
    charts,
    mark_of,
    or_dash,
    panels,
    rate_lines,
)
from isocost.page.layouts import page_layouts
from isocost.page.payload import page_file, safe_group, snapped, undecided
from isocost.plots.display import PALETTE
from isocost.question import DEFAULT
from isocost.readings import System, command_line
from isocost.repairs.reconcile import reconcilable
from isocost.repairs.review import handed_over
from isocost.repairs.table import REPAIRS
from isocost.rules import Rule
from isocost.tables import round_up
from isocost.tallies import Tally
from isocost.verdict.judgement import ANSWERS, CALIBRATED, REASONS, SLACK
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
    percent,
    plain,
    with_ways,
)
from isocost.verdict.wording import (
    DETAILS,
    FEW,
    MOST_IN_PLANE,
    MOST_SHARES,
    between_fields,
    blocked_group,
    changed_groups,
    figures_of,
    is_offered,
    named_groups,
    reading_notes,
    statement,
)

_TEXTS = json.loads(page_file("words.json"))

WORDS: dict[str, str] = {**SENTENCES, **_TEXTS["words"]}
"""The sentences of the verdict, and the page's own."""

COSTS: dict[str, dict[str, str]] = _TEXTS["costs"]
"""How costs are called and explained, by kind."""

METHODS = {
    repair.function: {
        "name": repair.name,
        "goal": repair.goal,
        "label": repair.title,
        "does": repair.sentence,
        "keeps": repair.keeps,
        "defers": repair.defers,
    }
    for repair in REPAIRS.values()
}

JUDGEMENT = {
    "details": DETAILS,
    "answers": ANSWERS,
    "reasons": [(reason, dict(needed), act) for reason, needed, act in REASONS],
    "slack": SLACK,
    "calibrated": CALIBRATED,
    "named": FEW,
    "shares": MOST_SHARES,
    "in_plane": MOST_IN_PLANE,
}
"""The tables of the judgement and its limits, for the page."""

LONGEST = 60
"""Letters of a name within a sentence."""

MOST_ROWS = 2400
"""With more rows than this, rules for thresholds other than the audit's are left out."""

MOST_HANDED = 12
"""With more groups than this the page hands nobody over by itself: its rows would fill it."""

MOST_RECONCILED = 8
"""With more groups than this, the table of thresholds is left out: it takes long to make."""

COMPUTED = ("withhold",)
"""The repairs that the page computes by itself, for any settings."""

SHARES = (0.5, 0.2, 0.1, 0.05, 0.01)
"""Thresholds that select about these shares of people are offered."""

MOST_EDGES = 20

OF_COST = ("cost", "trivial_cost")


def view(
    audit: Audit,
    held: dict[str, Any],
    made: dict[str, Any],
    rules: Mapping[str, Rule] | None = None,
) -> dict[str, Any]:
    """Everything that the page has, for JSON; "shown" is what the template shows before that.

    Parameters
    ----------
    audit : Audit
        About the tally that the page holds.
    held, made
        That tally as :func:`isocost.page.payload.payload` has it, and how the page was made.
    rules : {name: Rule}, optional
        Repairs to show instead of the audit's offers.
    """
    vocabulary = Vocabulary(**made["vocabulary"])
    lines = lines_of(audit, rules)
    hidden = undecided(held, audit.tally.grid, audit.threshold)
    files = made["origin"]["data"] or ["data.csv"]
    supplied = lines if rules is not None else []
    outlooks = {one.label: o for one in lines if (o := _outlook(audit, one)) is not None}
    said = facts(audit, made["title"], hidden, files, vocabulary)
    defers = any(one.rule is not None and one.rule.defers for one in supplied)
    titles = {n: t for n, t in NUMBERS.items() if n != "handed_over" or defers}
    level = audit.confidence or DEFAULT.confidence or math.nan
    shown = {
        **said,
        "decided_only": decided_only(audit, held),
        "missing": [
            WORDS[name].format(groups=listing(groups, FEW), min_count=held["min_count"])
            for name, groups in (("hidden", made["hidden"]), ("not_here", held["left_out"]))
            if groups
        ],
        "computed": computed(audit, made, held),
        "names": list(shown_names(audit.groups).values()),
        "level": f"{100 * level:.4g} %",
        "has_intervals": audit.intervals is not None,
        "settings_text": f"cost {audit.cost}, threshold {audit.threshold:g}, "
        f"tolerance {audit.feasibility.tolerance:g}",
        "repairs": repair_rows(audit, lines, not hidden),
        "handed": [
            _handed_section(audit, one, not hidden)
            for one in lines
            if one.rule is not None and one.rule.defers and (supplied or not said["none_advised"])
        ],
        "thresholds": thresholds_table(audit, held),
        "bounds": bounds_table(audit),
        "outlooks": None if not outlooks else {
            "header": ["Repair", *map(_capital, titles.values())],
            "rows": [
                [label, *_three(one, titles, figures_of(audit), not hidden)]
                for label, one in outlooks.items()
            ],
            "notes": [one.notes() for one in outlooks.values()],
        },
        "layouts": page_layouts(audit, held),
    }  # fmt: skip
    return {
        "tally": held,
        "made": made,
        "commands": page_commands(audit, held["names"], files),
        "own": own_numbers(audit, held, hidden),
        "judgement": JUDGEMENT,
        "rules": {one.label: compact(audit.tally.groups, one.rule) for one in supplied if one.rule},
        "given": given_repairs(audit, held),
        "called": shown["names"],
        "spoken": [spoken.text for spoken in spoken_names(audit.groups).values()],
        "words": {
            **{name: with_ways(text) for name, text in WORDS.items()},
            **vocabulary.fields(),
            "costs": COSTS,
            "methods": METHODS,
            "heads": _TEXTS["heads"],
            "rows": row_titles(audit),
        },
        "charts": charts(),
        "palette": PALETTE,
        "marks": MARKS,
        "outlooks": {n: finite_or_none(o.cost_difference.expected) for n, o in outlooks.items()},
        "reliability": [came_true(audit.tally, i, level) for i in range(len(audit.groups))],
        "shown": {**shown, "heads": _TEXTS["heads"], "holds": WORDS["holds"]},
    }  # fmt: skip


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# Sentences


def spoken_names(groups: Iterable[Group]) -> dict[Group, Name]:
    """Names of groups within sentences; long ones are cut.

    Examples
    --------
    >>> [len(name.text) for name in spoken_names(["women", "long " * 20]).values()]
    [5, 60]
    """
    whole = shown_names(groups)
    short = {
        group: name if len(name) <= LONGEST else f"{name[: LONGEST - 1].rstrip()}…"
        for group, name in whole.items()
    }
    names = short if len(set(short.values())) == len(short) else whole
    return {group: Name(name) for group, name in names.items()}


def cost_words(audit: Audit, vocabulary: Vocabulary = NEUTRAL) -> dict[str, str]:
    """What the cost of the audit is called and what it means."""
    amounts = {
        name: "an amount of its own group" if isinstance(one, Mapping) else f"{one:.12g}"
        for name, one in (("fp", audit.cost.fp), ("fn", audit.cost.fn))
    }
    words = {**amounts, **vocabulary.fields()}
    return {name: plain(fill(text, **words)) for name, text in COSTS[audit.cost.kind].items()}


def facts(
    audit: Audit,
    title: str,
    hidden: Collection[int] = (),
    data: Sequence[str] = ("data.csv",),
    vocabulary: Vocabulary = NEUTRAL,
) -> dict[str, Any]:
    """Everything that the page says before a control is moved.

    ``hidden`` are the indices of groups whose rates at the threshold must not be shown;
    ``data`` are the files that commands name.
    """
    said = statement(audit, spoken_names(named_groups(audit)), data, vocabulary)
    reach, doubt = audit.feasibility, _doubt(audit)
    if not reach.feasible:
        why = "not" if audit.advised.reason == "infeasible" else "not_measured"
    elif not reach.changed or doubt:
        why = "nothing"
    else:
        why = "closer" if reach.tolerance else "equal"
    words = cost_words(audit, vocabulary)
    return {
        "title": title,
        "verdict": said.headline,
        "next": said.next,
        "ledes": [[words["meaning"]], *said.details],
        "left_out": said.left_out,
        "figures": [{"alert": False, **key} for key in keys(audit, vocabulary)],
        "settings": fill(
            WORDS["settings"],
            axis=cost_words(audit)["axis"],
            tolerance=figures_of(audit).tolerance(reach.tolerance),
            threshold=f"{audit.threshold:g}",
            off="",
        ),
        "why": WORDS[f"why_{why}"],
        "geometry": list(geometry(audit)),
        "table": table(audit, hidden),
        "advice": [note.sentence for note in said.notes],
        "none_advised": WORDS["none_advised"].format(why=doubt) if doubt else "",
        "cost": words,
    }


def _doubt(audit: Audit) -> str:
    """Why the data do not support a repair; nothing if they do, or if none would do it."""
    return WORDS.get(f"key_{audit.advised.reason}", "")


def keys(audit: Audit, vocabulary: Vocabulary = NEUTRAL) -> Iterator[dict[str, Any]]:
    """The key figures at the top of the page, in the order of the verdict.

    What the verdict rests on stands out.
    """
    names, reason = spoken_names(named_groups(audit)), audit.advised.reason
    figures = figures_of(audit)
    yield {
        "value": f"{audit.tally.n:,.0f}",
        "label": WORDS["key_people"].format(people=vocabulary.fields()["people"]),
        "note": fill(WORDS["key_people_note"], count=str(len(audit.groups))),
    }
    worst = max(audit.examined, key=lambda group: audit.examined[group].gap)
    yield {
        "value": f"{figures.points(audit.examined[worst].gap)} points",
        "label": WORDS["key_gap"],
        "note": fill(WORDS["key_gap_note"], group=names[worst]),
        "alert": audit.advised.calibrated == "no",
    }
    interval = None
    if audit.intervals is not None and audit.verdict.enough:
        low, high = audit.intervals.disparities["cost"]
        level = f"{100 * audit.intervals.confidence:.4g}\u00a0%"
        ends = {"low": figures.bare(low), "high": figures.bare(high)}
        interval = fill(WORDS["interval"], level=level, **ends)
    difference = figures.difference(audit.disparity.difference)
    yield {"value": difference, "label": WORDS["key_difference"], "note": interval}
    doubt = _doubt(audit)
    if doubt:
        yield {"value": WORDS["key_no"], "label": WORDS["key_not_advised"], "note": [doubt]}
    else:
        yield {**_reach_key(audit, names), "alert": reason == "infeasible"}
    findings = audit.advised.findings
    if not math.isnan(findings.expected):
        told = {"unrepaired": figures.difference(findings.unrepaired)}
        note = fill(WORDS["key_new_note"], repair=REPAIRS["withhold"].title, **told)
        value = figures.difference(findings.expected)
        yield {"value": value, "label": WORDS["key_new"], "note": note}


def _reach_key(audit: Audit, names: Mapping[Group, Name]) -> dict[str, Any]:
    reach = audit.feasibility
    if not reach.feasible:
        short = figures_of(audit).difference(reach.smallest_tolerance - reach.tolerance)
        note = fill(WORDS["key_reach_note"])
        return {"value": short, "label": WORDS["key_reach"], "note": note}
    if not reach.changed:
        note = fill(WORDS["key_nothing_note"])
        return {"value": "0", "label": WORDS["key_nothing"], "note": note}
    most = max(reach.changed, key=lambda group: reach.alpha[group])
    kind = "closer" if reach.tolerance else "withheld"
    note = fill(WORDS[f"key_{kind}_note"], group=names[most])
    return {"value": percent(reach.alpha[most]), "label": WORDS["key_withheld"], "note": note}


def geometry(audit: Audit) -> Iterator[Sentence]:
    """Why equal cost is feasible or not, explained along the chart."""
    reach, names = audit.feasibility, spoken_names(audit.groups)
    if len(audit.groups) > MOST_IN_PLANE:
        yield fill(WORDS["geometry_rows"])
        return
    yield fill(WORDS["geometry_axes"])
    yield fill(WORDS["geometry_line"])
    tolerance = figures_of(audit).tolerance(reach.tolerance)
    within = fill(WORDS["within"], tolerance=tolerance) if reach.tolerance else ""
    told: dict[str, Any] = {"high": names[reach.target_group], "within": within}
    if not reach.feasible:
        blocked = names[blocked_group(reach)]
        yield fill(WORDS["geometry_infeasible"], **told, blocked=blocked)
    elif reach.changed:
        yield fill(WORDS["geometry_feasible"], **told, changed=changed_groups(reach.changed, names))
    else:
        yield fill(WORDS["geometry_equal"])
    yield fill(WORDS["geometry_both"])


def row_titles(audit: Audit) -> dict[str, tuple[str, str]]:
    """The rows of the table of numbers: a plain label, and the statistical term.

    The page can compute plain measures and the ten-bin gap for any settings; it is given others for
    the audit's own settings, except for other gaps.
    """
    rows = {
        name: (one.label, one.title)
        for name, one in audit.measures.items()
        if name in audit.shown and (one.of_levels is None or name == "calibration_gap")
    }
    names: tuple[str, ...] = ("base_rate", "mean_score")
    first = {name: rows.pop(name) for name in names if name in rows}
    return {
        "n": ("People", "rows of data in the group"),
        **first,
        "cost": ("Cost of errors", "what is to be equal"),
        "trivial_cost": ("Highest possible cost", "trivial cost: telling nobody apart"),
        **rows,
    }


def table(audit: Audit, hidden: Collection[int] = ()) -> list[dict[str, Any]]:
    """The rows of the table: for each group, and last for everybody, value and interval."""
    columns = [*audit.groups.values(), audit.overall]
    untold = {*hidden, len(columns) - 1} if hidden else set()
    decimals = figures_of(audit).decimals + 2
    rows = []
    for key, (label, hint) in row_titles(audit).items():
        hides = key in audit.measures and audit.measures[key].uses_threshold
        cells = []
        for index, m in enumerate(columns):
            value = m[key]
            text = f"{value:,.6g}" if key == "n" else number(value, decimals)
            span = m.intervals.get(key)
            if math.isnan(value) or (index in untold and hides):
                text, span = "–", None
            told = " to ".join(number(end, decimals) for end in span) if span else ""
            cells.append({"value": text, "span": told})
        rows.append({"key": key, "label": label, "hint": hint, "cells": cells})
    return rows


def decided_only(audit: Audit, held: Mapping[str, Any]) -> Sentence:
    """A note on how many people have no score and are not counted; empty if all have one."""
    away = {as_group(group): weight for group, _, weight, _ in held.get("handed_over", ())}
    if not away:
        return []
    names, decided = spoken_names(audit.groups), audit.tally.totals.w.sum(axis=1)
    shares: list[Sentence] = []
    for group, here in zip(audit.tally.groups, decided, strict=True):
        gone = away.get(group, 0.0)
        shares.append([f"{percent(float(gone / (gone + here)))} of ", names[group]])
    gone = sum(away.values())
    everybody = percent(float(gone / (gone + decided.sum())))
    whole = fill(WORDS["decided_only"], share=everybody)
    if len(shares) > MOST_IN_PLANE:
        return whole
    return fill(WORDS["decided_shares"], whole=whole, shares=joined(shares))


def computed(
    audit: Audit, made: Mapping[str, Any], held: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Where the page comes from and how it was made, so that it can be cited and made again."""
    tally, intervals, origin = audit.tally, audit.intervals, made["origin"]
    columns = {k: v for k, v in tally.columns.items() if v}
    named = (f"{k}: {', '.join(v) if isinstance(v, list) else v}" for k, v in columns.items())
    rows = [("Made with", f"isocost {made['versions']['isocost']}"), ("Made on", made["made_on"])]
    if origin["command"]:
        rows.append(("Made by", origin["command"]))
    for name, size, digest in origin["files"]:
        rows.append(("File", f"{name}, {size:,} bytes, SHA-256 {digest}"))
    settings = f"{audit.cost}, {audit.threshold:g}, {audit.feasibility.tolerance:g}"
    rows += [
        ("Rows", f"{tally.n:,.15g}{', weighted' if tally.is_weighted else ''}"),
        ("Columns", "; ".join(named) or "not recorded"),
        *(("Read as", str(one)) for one in reading_notes(tally.reading, tally.groups)),
        ("Groups", str(len(tally.groups))),
        ("Bins of scores", f"{tally.bins} of equal width, and the tenths"),
        ("Cost, threshold, tolerance", settings),
    ]
    if tally.edges:
        rows.append(("Further edges", ", ".join(f"{edge:g}" for edge in tally.edges)))
    if intervals is None:
        rows.append(("Intervals", "none were computed"))
    else:
        how = f"{intervals.replicates:,} draws for calibration gaps, seed {intervals.seed}"
        if intervals.method != "replicates":
            how = "closed forms"
        rows.append(("Intervals", f"{100 * intervals.confidence:.4g} %; {how}"))
    for name, text in (made["rules"] or {}).items():
        digest = hashlib.sha256(f"{text}\n".encode()).hexdigest()
        rows.append(("Rule", f"{name}, as JSON, SHA-256 {digest}"))
    suppressed = []
    if least := held["min_count"]:
        suppressed.append(f"cells of fewer than {least} rows, merged with their neighbours")
    elif held["merged"]:
        suppressed.append("bins of scores merged, because so many would make the page too large")
    if held["left_out"]:
        suppressed.append(f"groups that are not compared: {', '.join(held['left_out'])}")
    holds = ". ".join(filter(None, [WORDS["holds"], single_text(held)]))
    left_out = "; ".join(suppressed) or "nothing"
    return [*rows, ("Left out of this page", left_out), ("What this page holds", holds)]


def single_text(held: Mapping[str, Any]) -> str:
    """How many cells of a page tell of one person alone, and what to do; nothing if none does.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.page.payload import payload
    >>> single_text(payload(compas()))
    ''
    """
    counts = held["cells"]["n"]
    alone = sum(count == 1 for count in counts)
    told = {"count": f"{alone:,}", "all": f"{len(counts):,}"}
    return WORDS["holds_single"].format(**told, min_count=setting("min_count", 10)) if alone else ""


def page_commands(audit: Audit, names: Sequence[str], files: Sequence[str]) -> dict[str, Any]:
    """The parts of command lines that the page puts together, written for each kind of shell.

    ``read`` names the data and how they are read, ``drop`` leaves out a group of the page.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> audit = ic.audit(compas(), confidence=None)
    >>> page_commands(audit, ["men", "old women"], ["my data.csv"])["windows"]
    {'read': '"my data.csv"', 'drop': ['--drop-group=men', '--drop-group="old women"']}
    """
    tally, least = audit.tally, audit.question.min_group
    _, _, *read = tally.reading.command("fit", files, bins=tally.bins).words
    read += [] if least == DEFAULT.min_group else [f"--min-group={least}"]
    systems: tuple[System, ...] = ("posix", "windows")
    shells: dict[str, Any] = {
        system: {
            "read": command_line(read, system),
            "drop": [command_line([f"--drop-group={name}"], system) for name in names],
        }
        for system in systems
    }
    return {"data": list(files), **shells}


# Numbers that the page is given


def own_numbers(audit: Audit, held: dict[str, Any], hidden: Collection[int]) -> dict[str, Any]:
    """The audit's own settings, and what the page cannot compute at these and at other settings.

    ``hidden`` groups are not told of at the audit's own threshold.
    """
    columns = [*audit.groups.values(), audit.overall]
    decided = {name for name, one in audit.measures.items() if one.uses_threshold}
    cost, groups, names = audit.cost, tuple(audit.groups), spoken_names(named_groups(audit))
    fp, fn = (
        [one[group] for group in groups] if isinstance(one, Mapping) else one
        for one in (cost.fp, cost.fn)
    )
    thresholds = offered_thresholds(audit, held)
    return {
        "cost": {"kind": cost.kind, "fp": fp, "fn": fn, "text": str(cost)},
        "threshold": audit.threshold,
        "tolerance": audit.feasibility.tolerance,
        "intervals": [
            {
                name: [rounded(end) for end in ends]
                for name, ends in m.intervals.items()
                if np.isfinite(ends).all() and name not in {*decided, *OF_COST}
            }
            for m in columns
        ],
        "given": [
            {
                name: finite_or_none(m[name])
                for name in audit.shown
                if audit.measures[name].is_derived and name not in decided
            }
            for m in columns
        ],
        "thresholds": thresholds,
        "at": [_threshold_evidence(audit, at, hidden) for at in thresholds],
        "sides": [_mean_scores(audit, at, hidden) for at in thresholds],
        "evidence": cost_evidence(audit),
        "confidence": audit.confidence,
        "groups": audit.verdict.findings.groups,
        "examined": [
            {"name": names[group].text, **audit.examined[group].to_dict()}
            for group in (*groups, *audit.others.examined)
        ],
        "bias": list(map(finite_or_none, audit.bias)),
        "between": {
            name: {"name": part.text} if isinstance(part, Name) else part
            for name, part in between_fields(audit, names).items()
        },
        "reconcilable": is_offered(audit, "reconcile"),
        "min_group": audit.question.min_group,
        "min_label": max(1, min(MIN_LABEL, audit.question.min_group)),
    }


def rounded(value: float) -> float | None:
    """Six digits, more than the page shows; nothing where there is no number."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def offered_thresholds(audit: Audit, held: dict[str, Any]) -> list[float]:
    """The thresholds that the page offers: there the numbers have intervals.

    The audit's own, the tenths, edges that were asked for, and those that select about so many
    people; where outcomes are rare, scores are far below the tenths.
    """
    tally = audit.tally
    cells, cuts = tally.cells, tally.grid.cuts
    above = cells.w.sum() - np.cumsum(np.bincount(cells.bin, cells.w, tally.grid.size))
    shares = above / cells.w.sum()
    selecting = [cuts[1 + int(np.abs(shares[:-1] - share).argmin())] for share in SHARES]
    all_ = {*TENTHS, *tally.edges[:MOST_EDGES], *map(float, selecting)}
    return sorted({audit.threshold, *(at for at in all_ if not undecided(held, tally.grid, at))})


def _threshold_evidence(audit: Audit, at: float, hidden: Collection[int]) -> dict[str, list[Any]]:
    """What depends on a threshold: {name: [low, high, number] by group}.

    Everybody comes last; the number is there only if the page cannot compute it.
    """
    tally, question = audit.tally, audit.question
    estimates = audit.estimates
    if estimates is None or at != audit.threshold:
        estimates = Estimates(tally, question.but(threshold=at), audit.compared)
    untold = {*hidden, None} if hidden and at == audit.threshold else set()
    evidence: dict[str, list[Any]] = {}
    for name, row in audit.measures.items():
        if not row.uses_threshold or not (row.is_plain or name in audit.shown):
            continue
        evidence[name] = []
        for group in (*range(len(tally.groups)), None):
            ends: tuple[float, ...] = ()
            if question.confidence is not None and group not in untold:
                ends = estimates.interval(row, group)
            if row.is_derived and group not in untold:
                ends = (*(ends or (math.nan,) * 2), estimates.number(row, group).value)
            evidence[name].append([rounded(end) for end in ends] or None)
    return evidence


def _mean_scores(audit: Audit, at: float, hidden: Collection[int]) -> list[list[float | None]]:
    """Each group's mean score on either side of a threshold: FOR and PPV if it is calibrated.

    None where there is nobody, or merged bins hide who they are.
    """
    sums = audit.tally.kinds(at)
    # Kinds of people alternate between the two sides.
    w, wh = (np.stack([x[:, ::2].sum(1), x[:, 1::2].sum(1)], axis=1) for x in (sums.w, sums.wh))
    means = np.divide(wh, w, out=np.full_like(w, math.nan), where=w > 0)
    if at == audit.threshold:
        means[list(hidden)] = math.nan
    return [[finite_or_none(mean) for mean in own] for own in means.tolist()]


def cost_evidence(audit: Audit) -> dict[str, dict[str, Any]]:
    """What is established about each cost that the page offers by name, and the audit's own.

    So moving from false alarms to misses loses no interval.  Tolerances only shift the excess.
    """
    by_cost = {}
    for cost in _costs_offered(audit):
        other = audit
        if cost != audit.cost:
            asked = audit.question.but(cost=cost, replicates=0, measures=None, reference=None)
            other = audited(audit.tally, asked, audit.estimates, audit.others)
            if other.intervals is not None and audit.intervals is not None:
                # Calibration gaps do not depend on the cost.
                own = replace(other.intervals, gap_floors=audit.intervals.gap_floors)
                other = replace(other, intervals=own)
        groups, spans = list(other.groups), other.intervals
        by_cost[str(cost)] = {
            "findings": other.advised.to_dict()["findings"],
            "highest": [groups.index(group) for group in other.verdict.highest],
            "stretch": stretch(other.question.level, len(other.compared)),
            "recalibrated": _recalibrated(other),
            "difference": None if spans is None else list(spans.differences["cost"]),
            "disparity": None if spans is None else list(spans.disparities["cost"]),
            "intervals": [
                {name: [rounded(end) for end in m.intervals[name]] for name in OF_COST}
                if OF_COST[0] in m.intervals else {}
                for m in (*other.groups.values(), other.overall)
            ],
        }  # fmt: skip
    return by_cost


def _recalibrated(audit: Audit) -> dict[str, Any] | None:
    """The costs if calibrated, and how far that moves the difference between two groups."""
    found, groups = audit.recalibrated, list(audit.groups)
    if found.intervals is None:
        return None
    return {
        "costs": [finite_or_none(found.cost.get(group, math.nan)) for group in groups],
        "between": [groups.index(group) for group in found.between],
        "change": list(found.intervals.change),
    }


def _costs_offered(audit: Audit) -> list[Cost]:
    """The audit's cost, false alarms and misses."""
    return list({str(c): c for c in (audit.cost, as_cost("fpr"), as_cost("fnr"))}.values())


# Repairs


@dataclass(frozen=True)
class Line:
    """A repair of the page: a rule, or why there is none; ``offer`` if it was made here."""

    label: str
    rule: Rule | None
    offer: Offer | None = None
    why: str = ""


def lines_of(audit: Audit, rules: Mapping[str, Rule] | None) -> list[Line]:
    r"""The rules given, or every offer of the audit.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> [line.label for line in lines_of(ic.audit(compas(), "fpr"), None)][-2:]
    ['Reconcile', 'Hand over, 24.0\xa0% handed over']
    """
    if rules is not None:
        return [Line(_told(name, rule, audit.tally), rule) for name, rule in rules.items()]
    return [_line_of(offer) for offer in audit.offers.values()]


def _line_of(offer: Offer) -> Line:
    title = offer.repair.title
    if offer.repair.defers and len(offer.tally.groups) > MOST_HANDED:
        return Line(title, None, offer, WORDS["hand_over_many"].format(most=MOST_HANDED))
    if offer.rule is None:
        return Line(title, None, offer, offer.said)
    return Line(_told(title, offer.rule, offer.tally), offer.rule, offer)


def _told(name: str, rule: Rule, tally: Tally) -> str:
    """The name of a rule; with the share it hands over, as its numbers are of the others."""
    if not rule.defers:
        return name
    after = rule.expected(tally)
    require_all_decided(after)
    return WORDS["deferring"].format(repair=name, share=percent(after.share_handed_over))


def repair_rows(audit: Audit, lines: list[Line], decided: bool = True) -> list[dict[str, Any]]:
    """The lines of the table that puts repairs side by side, the present scores first.

    What depends on who is at or above the threshold is left out unless ``decided``.
    """
    figures, names = figures_of(audit), shown_names(audit.groups)

    def cells(after: Audit, one: Compared | None) -> dict[str, Any]:
        gap = max(after.groups[group].calibration_gap for group in after.compared)
        coin, turned, away, by_group = 0.0, 0.0, 0.0, {}
        if one is not None:
            done, by_group = one.changes, one.by_group
            coin, turned, away = done.by_coin, done.decisions, done.handed_over
        return {
            "numbers": [
                figures.plain(after.disparity.difference),
                figures.plain(after.equalized_odds_difference) if decided else "–",
                figures.plain(gap),
                figures.percent(after.overall.accuracy) if decided else "–",
            ],
            "who": [
                (names[g], figures.percent(c.changed)) for g, c in by_group.items() if c.changed
            ],
            "chance": [
                figures.percent(coin),
                figures.percent(turned) if decided else "–",
                figures.percent(away),
            ],
        }

    rows = [{"label": "As it is", "does": "", "keeps": "", "why": "", **cells(audit, None)}]
    for line in lines:
        repair = line.offer and line.offer.repair
        does, keeps = (repair.sentence, repair.keeps) if repair else ("", "")
        row = {"label": line.label, "does": does, "keeps": keeps, "why": line.why}
        if line.rule is not None:
            own = line.offer and line.offer.compared
            done = own or compared(audit.tally, line.rule, audit.question)
            row |= cells(done.audit, done)
        rows.append(row)
    return rows


def _outlook(audit: Audit, line: Line) -> Unseen | None:
    """Outlook of a rule that was made from these people; None if it takes too long."""
    rule = line.rule
    if rule is None or not rule.rows or not is_made_from(rule, audit.tally):
        return None
    if line.offer is None:
        return unseen(audit.tally, rule, question=audit.question)
    few = len(rule.groups) <= MOST_RECONCILED and not rule.defers
    return line.offer.unseen if rule.cost is not None or few else None


def _three(one: Unseen, names: Iterable[str], figures: Figures, decided: bool) -> Iterator[str]:
    """Each number as fitted, expected and at most."""
    for name in names:
        if not decided and name in ("rate_difference", "accuracy"):
            yield "–"
            continue
        is_share = name in ("accuracy", "changed", "handed_over")
        style = figures.percent if is_share else figures.plain
        number: Outlook = getattr(one, name)
        shown = (number.fitted, number.expected, number.limit)
        yield " / ".join(or_dash(value, style) for value in shown)


def thresholds_table(audit: Audit, held: dict[str, Any]) -> dict[str, Any] | None:
    """Where wrong decisions can be equally common, as header and rows; None with many groups."""
    tally, percent = audit.tally, figures_of(audit).percent
    thresholds = [
        at for at in sorted({audit.threshold, *TENTHS}) if not undecided(held, tally.grid, at)
    ]
    if len(tally.groups) > MOST_RECONCILED or not thresholds:
        return None
    rows = []
    for point in reconcilable(tally, thresholds, question=audit.question).points:
        known = math.isfinite(point.tolerance)
        possible = f"{percent(point.lowest)} to {percent(point.highest)}" if known else "–"
        shares = [point.accuracy, point.selection_rate, *point.selection_rates.values()]
        accuracy, everybody, *groups = (percent(x) if known else "–" for x in shares)
        least = round_up(point.tolerance) if known else "–"
        first = [f"{point.threshold:g}", point.answer, least]
        rows.append([*first, accuracy, everybody, possible, *groups])
    names = shown_names(audit.groups)
    return {
        "header": [*_TEXTS["threshold_heads"], *(f"{names[g]} selected" for g in tally.groups)],
        "rows": rows,
    }


def bounds_table(audit: Audit) -> dict[str, Any] | None:
    """Costs that cannot both be equal, as header and rows, and what keeps error rates apart.

    None if fewer than two groups have both outcomes.
    """
    fewest = audit.tally.totals.n.min(axis=1)
    groups = [g for g in audit.compared if fewest[audit.tally.index_of(g)] > 0]
    if len(groups) < 2:
        return None
    proven = bounds(audit.tally.select(groups), question=audit.question.among(groups))
    header, rows = proven.pair_table()

    def called(cost: Cost) -> str:
        kind, _, weights = str(cost).partition(":")
        if kind not in COSTS:
            return str(cost)
        return COSTS[kind]["label"] + (f" {weights.replace(',', ' : ')}" if weights else "")

    # The bounds that follow from the paper's constants are too small to tell anything here.
    pairs = (pair.comparison for pair in proven.pairs)
    rows = [
        [f"{called(pair.cost)}; {called(pair.other).lower()}", *row[1:3]]
        for row, pair in zip(rows, pairs, strict=True)
    ]
    names, ratio = spoken_names(audit.groups), proven.ratio
    said = fill(ratio.sentence, lower=names[ratio.lower], higher=names[ratio.higher])
    return {"header": list(map(_capital, header[:3])), "rows": rows, "ratio": said}


def given_repairs(audit: Audit, held: dict[str, Any]) -> list[dict[str, Any]]:
    """The repairs that the page shows but does not compute, each for a few settings."""
    tally = audit.tally
    repairs: list[dict[str, Any]] = []
    total = 0
    for offer in _given_offers(audit):
        asked, of_cost = offer.question, offer.repair.goal == "cost"
        if undecided(held, tally.grid, asked.threshold):
            continue
        setting = {
            "method": offer.repair.function,
            "threshold": asked.threshold,
            "cost": str(asked.cost) if of_cost else None,
            "tolerance": asked.tolerance if of_cost else None,
        }
        if offer.rule is None:
            repairs.append({**setting, "rule": None, "why": offer.said})
            continue
        rule = snapped(offer.rule, tally, held)
        total += len(rule.rows)
        if total > MOST_ROWS and asked.threshold != audit.threshold:
            break
        repairs.append({**setting, "rule": compact(tally.groups, rule)})
    # Where everything is equal, the threshold does not matter.
    line = _line_of(audit.offers["hand_over"])
    any_setting = dict.fromkeys(("threshold", "cost", "tolerance"))
    given = {"method": REPAIRS["hand_over"].function, **any_setting, "label": line.label}
    if line.rule is None:
        given |= {"rule": None, "why": line.why, "elsewhere": len(tally.groups) > MOST_HANDED}
    else:
        given |= {"rule": compact(tally.groups, snapped(line.rule, tally, held))}
    return [*repairs, given]


def _given_offers(audit: Audit) -> list[Offer]:
    """The repairs that are made in advance; what may be left out for lack of room comes last."""
    own, asked = audit.threshold, audit.question
    offers: list[Offer] = []
    for name, offer in audit.offers.items():
        if name in COMPUTED or offer.repair.defers:
            continue
        fields: Iterable[dict[str, Any]] = ({"threshold": at} for at in sorted({own, *TENTHS}))
        if offer.repair.goal == "cost":
            settings = product(
                sorted({own, DEFAULT.threshold}),
                _costs_offered(audit),
                sorted({0.0, asked.tolerance}),
            )
            names = ("threshold", "cost", "tolerance")
            fields = (dict(zip(names, each, strict=True)) for each in settings)
        offers += [offer if asked.but(**one) == asked else offer.but(**one) for one in fields]

    def order(offer: Offer) -> tuple[bool, float]:
        away = abs(offer.question.threshold - own)
        # Rules with many rows are left out first.
        return offer.name == "reconcile" and away > 0, away

    return sorted(offers, key=order)


def compact(groups: Sequence[Group], rule: Rule) -> dict[str, Any]:
    """A rule for the page: rows are [index of the group, lo, hi, value or null, probability].

    The row of a line has its end after that; where people are handed over the value is "defer".

    Indices instead of groups, because JavaScript does not know 1.0 from 1.
    """
    content = rule.to_dict()
    indices = {group: index for index, group in enumerate(groups)}
    content["rows"] = [
        [indices[row.group], row.lo, row.hi, "defer" if row.defers else row.value, row.probability]
        + ([] if row.end is None else [row.end])
        for row in rule.rows
        if row.group in indices
    ]
    if rule.cost is not None:
        for name, amount in (("fp", rule.cost.fp), ("fn", rule.cost.fn)):
            content["cost"][name] = (
                [[safe_group(group), number] for group, number in amount.items()]
                if isinstance(amount, Mapping)
                else amount
            )
    kept = ("method", "cost", "settings", "coin", "rows", "notes", "promise")
    return {name: content[name] for name in kept if name in content}


# People whom a rule hands over: always as two halves, and never one without the share of the other


def _handed_section(audit: Audit, line: Line, decided: bool) -> dict[str, Any]:
    """The section about a rule that hands people over; without rates unless ``decided``."""
    rule = line.rule or Rule(audit.tally.groups, (), "none")
    who = handed_over(rule, audit.tally, audit.threshold)
    names = shown_names(who.groups)

    def named(numbers: Mapping[Group, Any]) -> dict[Group, Any]:
        return {names[group]: number for group, number in numbers.items()}

    whole = {reviewer: named(rates) for reviewer, rates in who.whole.items()}
    told = replace(who, groups=named(who.groups), before=named(who.before), whole=whole)
    return {
        "label": line.label,
        "made": WORDS["hand_over_made"] if line.offer else "",
        "share": percent(who.share),
        "others": percent(1.0 - who.share),
        "threshold": f"{who.threshold:g}",
        "accuracy": [or_dash(one, percent) for one in who.accuracy],
        "panels": panels(who, names),
        "left_out": max(0, len(names) - MOST_PANELS),
        "legend": [(names[group], mark_of(i)) for i, group in enumerate(who.groups)],
        "rates": rate_lines(who) if decided else [],
        "table": told.table() if decided else None,
        "notes": told.notes() if decided else [],
    }
