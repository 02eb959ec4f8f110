"""What the report says: its sentences, and how they are filled in for the audit's own settings.

The page's script fills in the same sentences for any other settings.  A name in braces is filled
in; ``{high}``, ``{low}`` and the like are groups.  What is filled in is made of plain texts and of
:class:`Name`, so that whoever writes the page can keep the names of groups apart from words.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from isocost.groups import Group, as_group, shown_names
from isocost.judging.audit import Audit
from isocost.repairs.table import REPAIRS
from isocost.verdict.sentences import (
    NEUTRAL,
    SENTENCES,
    Name,
    Sentence,
    Vocabulary,
    fill,
    joined,
    number,
    percent,
    plain,
)
from isocost.verdict.wording import (
    MOST_IN_PLANE,
    blocked_group,
    changed_groups,
    figures_of,
    reading_notes,
    statement,
)

WORDS = {
    **SENTENCES,
    "stale": (
        "Intervals were computed for {kept}, and for all groups. For what you chose there are "
        "none, so whether this difference is more than chance is not known here."
    ),
    "own_only": (
        "This holds for the audit’s own settings, whatever the controls say: cost {cost}, "
        "threshold {threshold}, tolerance {tolerance}."
    ),
    "as_measured": "As measured: {headline}",
    "chosen_cost": (
        "{gap}. “{repair}” would bring the difference to {after}, by changing the scores of "
        "{share} of all {people}."
    ),
    "chosen_rates": (
        "{gap}. “{repair}” would leave a difference of {after}, make the rates of wrong decisions "
        "differ by {odds}, and change the scores of {share} of all {people}."
    ),
    "chosen_deferring": (
        "{gap}. “{repair}” would bring the difference among the others to {after}; for those "
        "handed over it depends on who decides."
    ),
    "settings": (
        "{axis}. Allowed difference: {tolerance}. Decisions at a score of {threshold}.{off}"
    ),
    "off_groups": " Switched off: {groups}.",
    "why_equal": "Why it can be equal",
    "why_closer": "Why it can come that close",
    "why_not": "Why it cannot be equal",
    "why_not_measured": "As measured, it cannot be equal",
    "why_nothing": "Where the groups are",
    "geometry_axes": (
        "Each mark is a group. Further right, people who turned out negative had higher scores: "
        "false alarms. Further up, people who turned out positive had lower scores: misses. "
        "The corner at zero is perfect."
    ),
    "geometry_line": (
        "Scores that mean what they say can only lie on the group’s own line, whose slope is "
        "fixed by how many of the group turn out positive. It runs from perfect to the hollow "
        "mark, where everybody in the group gets the same score. Better scores move a group "
        "towards the corner; withholding information moves it outwards, never past the hollow "
        "mark. A mark beside its line has scores that are off."
    ),
    "geometry_rows": (
        "Each row is a group, the costliest on top: its mark is where it is now. The bar ends "
        "where everybody in the group would get the same score; no scores that mean what they say "
        "are beyond. Its end is fixed by how many of the group turn out positive, for the two "
        "rates in opposite ways. That is why imperfect scores cannot be calibrated and have both "
        "kinds of error equal."
    ),
    "geometry_infeasible": (
        "To cost as much as {high}{within}, {blocked} would have to move past the end of its line. "
        "No calibrated scores are there, whatever the method."
    ),
    "geometry_feasible": (
        "To cost as much as {high}{within}, {changed} must move outwards, towards the hollow mark. "
        "The place comes before the end: that share of the way is the share of people whose score "
        "is withheld."
    ),
    "within": ", to within {tolerance}",
    "geometry_equal": "The costs are as close as you asked for, so nobody has to move.",
    "geometry_both": (
        "Lines of groups with different base rates meet only in the perfect corner. That is why "
        "imperfect scores cannot be calibrated and have both kinds of error equal."
    ),
    "geometry_deferring": (
        "Lines of groups with different base rates meet only in the perfect corner. Handing people "
        "over changes the base rate of the others: their marks lie on other lines, and these can "
        "be the same for all groups."
    ),
    "key_difference": "difference between groups",
    "key_reach": "out of reach",
    "key_reach_note": "what remains after the most that calibrated repairs can do",
    "key_withheld": "would lose their score",
    "key_withheld_note": "of {group}, by a coin, to make costs equal",
    "key_closer_note": "of {group}, by a coin, to bring costs that close",
    "key_nothing": "to be changed",
    "key_nothing_note": "costs are within the tolerance",
    "key_no": "none",
    "key_not_advised": "of the repairs is advised",
    "key_few": "there is too little data",
    "key_uncalibrated": "scores are to be recalibrated first",
    "key_unestablished": "the difference may be chance",
    "key_unhelpful": "none is expected to help new people",
    "none_advised": "None of them is advised here: {why}.",
    "key_gap": "largest calibration gap",
    "key_gap_note": "{group}; 0 means a score of 30\u00a0% comes true for 30\u00a0%",
    "key_people": "{people}",
    "key_people_note": "in {count} groups",
    "key_new": "difference among new people",
    "key_new_note": "expected with “{repair}”; {unrepaired} as it is",
    "key_changed": "of all scores would change",
    "key_changed_note": "with “{repair}”",
    "interval": "{level} interval {low} to {high}",
    "deferring": "{repair}, {share} handed over",
    "one_label": (
        "Not on this page, because too few of their outcomes differ to compare error rates: "
        "{groups}. isocost audit tells whether their scores are calibrated."
    ),
    "decided_only": (
        "{share} of people were handed over and have no score: everything here is about the others."
    ),
    "decided_shares": "{whole} Handed over were {shares}.",
    "hand_over_many": (
        "Not computed for more than {most} groups. Choose it and copy the command line."
    ),
    "hand_over_made": (
        "Nobody asked for this rule: it was computed when this page was made, with the least whole "
        "percentage at which everything can be equal among the others, whatever the threshold."
    ),
    "after_repair": "cost after “{repair}”",
    "after_told": "After the repair “{repair}”: {after}.",
    "what_repair": "what the repair “{repair}” does",
    "given_at": "{name} at {used}",
    "given_nearest": (
        "Computed in advance for certain thresholds: this is for {used}, the nearest to yours, and "
        "decisions are counted there."
    ),
    "given_none": "Not computed: too few people are on one side of the thresholds.",
    "given_groups": (
        "Computed in advance for all groups only. For these groups, choose it and copy the "
        "command line."
    ),
    "given_settings": (
        "Computed in advance only for {costs}, with a tolerance of {tolerances}. For your "
        "settings, choose it and copy the command line."
    ),
    "holds": "counts and sums per group, outcome and score bin",
    "holds_single": (
        "In {count} of {all} cells there is a single person, whose score, outcome and group can be "
        "read from it. Before sharing the page, make it again with {min_count}."
    ),
    "copied": "{what} copied.",
    "copy_below": "{what} is below: copy it from there.",
    "command_path": " It reads {data}: put the path there if the file lies elsewhere.",
    "command_audit": " The repair is not possible here, so this is the command of the audit.",
    "command_fit": " It computes the repair for your settings.",
    "command_own": " You supplied this rule, so this is the command of the audit.",
}

COSTS = {
    "fpr": {
        "label": "False alarms",
        "hint": "scores too high for people who turned out negative",
        "meaning": "Cost is the average {score} of {people} who {negative}.",
        "axis": "Cost of errors: false alarms",
    },
    "fnr": {
        "label": "Misses",
        "hint": "scores too low for people who turned out positive",
        "meaning": (
            "Cost is how far the {score} of {people} who {positive} falls short of 100\u00a0%, on "
            "average."
        ),
        "axis": "Cost of errors: misses",
    },
    "weighted": {
        "label": "Both, weighted",
        "hint": "average harm per person",
        "meaning": (
            "Cost is the average harm per person when a false alarm counts {fp} and a miss "
            "counts {fn}."
        ),
        "axis": "Cost of errors: false alarms × {fp}, misses × {fn}, per person",
    },
    "plain": {
        "label": "Both, added up",
        "hint": "as in the audit",
        "meaning": "Cost is {fp} times the false-alarm rate plus {fn} times the miss rate.",
        "axis": "Cost of errors: {fp} × false-alarm rate + {fn} × miss rate",
    },
}

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

HEADS = (
    "Costs differ by",
    "Wrong decisions differ by",
    "Calibration gap",
    "Right decisions",
    "Whose scores change",
    "Depends on a coin",
    "Decisions changed",
    "Handed over",
)
"""The columns of the table of repairs."""

THRESHOLD_HEADS = (
    "Decided at",
    "Equal rates",
    "Least tolerance",
    "Right decisions",
    "Selected",
    "Can be selected",
)
"""The columns of the table of thresholds, before those of the groups."""

GLOSSARY = (
    ("Score", "A number from 0 to 1 that says how likely something is for a person."),
    ("Positive, negative", "What turned out: it happened (positive) or it did not (negative)."),
    (
        "Calibrated",
        "A score means what it says: of people with a score of 0.3, three in ten turn out "
        "positive, in every group.",
    ),
    (
        "Calibration gap",
        "How far scores are from that, on average. 0 is calibrated; 0.02 is two points in a "
        "hundred.",
    ),
    (
        "False-alarm rate of scores",
        "The average score of people who turned out negative (generalized false-positive rate). "
        "It needs no threshold.",
    ),
    (
        "Miss rate of scores",
        "One minus the average score of people who turned out positive (generalized "
        "false-negative rate).",
    ),
    ("Threshold", "The score from which people are treated as positive, or selected."),
    (
        "Wrongly selected, wrongly passed over",
        "The usual false-positive and false-negative rates (FPR, FNR), at the threshold.",
    ),
    ("Cost", "What you chose to make equal: false alarms, misses, or both with weights."),
    (
        "Highest possible cost",
        "What errors cost when everybody in a group gets the same score, the group’s average "
        "(trivial cost). Calibrated scores never cost more.",
    ),
    ("Tolerance", "How far costs may differ and still count as equal."),
    (
        "Coin",
        "Chance decides. It is the same coin for the same person every time, but it is chance.",
    ),
    (
        "Interval",
        "The range of values that the data do not rule out. It covers chance, not wrong labels or "
        "people who are missing from the data.",
    ),
)


LONGEST = 60
"""Letters of a name within a sentence."""


def spoken_names(groups: Iterable[Group]) -> dict[Group, Name]:
    """Names of groups within sentences; long ones are cut.

    Examples
    --------
    >>> [len(name.text) for name in spoken_names(["women", "long " * 20]).values()]
    [5, 60]
    """
    whole = shown_names(groups)
    short = {group: _shortened(name) for group, name in whole.items()}
    names = short if len(set(short.values())) == len(short) else whole
    return {group: Name(name) for group, name in names.items()}


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1].rstrip()}…"


def cost_words(audit: Audit, vocabulary: Vocabulary = NEUTRAL) -> dict[str, str]:
    """What the cost of the audit is called and what it means."""
    words = {"fp": _amount(audit.cost.fp), "fn": _amount(audit.cost.fn), **vocabulary.fields()}
    return {name: plain(fill(text, **words)) for name, text in COSTS[audit.cost.kind].items()}


def _amount(amount: float | Mapping[Group, float]) -> str:
    return "an amount of its own group" if isinstance(amount, Mapping) else f"{amount:.12g}"


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
    said = statement(audit, spoken_names(audit.groups), data, vocabulary)
    doubt = _doubt(audit)
    return {
        "title": title,
        "verdict": said.headline,
        "next": said.next,
        "ledes": [[cost_words(audit, vocabulary)["meaning"]], *said.details],
        "figures": [{"alert": False, **key} for key in keys(audit, vocabulary)],
        "settings": settings(audit),
        "why": why(audit),
        "geometry": list(geometry(audit)),
        "table": table(audit, hidden),
        "advice": [note.sentence for note in said.notes],
        "none_advised": WORDS["none_advised"].format(why=doubt) if doubt else "",
        "cost": cost_words(audit, vocabulary),
    }


def _doubt(audit: Audit) -> str:
    """Why the data do not support a repair; nothing if they do, or if none would do it."""
    return WORDS.get(f"key_{audit.advised.reason}", "")


def settings(audit: Audit) -> Sentence:
    """The settings in words: on paper there are no controls."""
    tolerance = figures_of(audit).tolerance(audit.feasibility.tolerance)
    axis = cost_words(audit)["axis"]
    words = {"tolerance": tolerance, "threshold": f"{audit.threshold:g}", "off": ""}
    return fill(WORDS["settings"], axis=axis, **words)


def why(audit: Audit) -> str:
    """The heading of the explanation."""
    reach = audit.feasibility
    if not reach.feasible:
        return WORDS["why_not" if audit.advised.reason == "infeasible" else "why_not_measured"]
    if not reach.changed or _doubt(audit):
        return WORDS["why_nothing"]
    return WORDS["why_closer" if reach.tolerance else "why_equal"]


def keys(audit: Audit, vocabulary: Vocabulary = NEUTRAL) -> Iterator[dict[str, Any]]:
    """The key figures at the top of the page, in the order of the verdict.

    What the verdict rests on stands out.
    """
    names, reason, figures = spoken_names(audit.groups), audit.advised.reason, figures_of(audit)
    yield {
        "value": f"{audit.tally.n:,.0f}",
        "label": WORDS["key_people"].format(people=vocabulary.fields()["people"]),
        "note": fill(WORDS["key_people_note"], count=str(len(audit.groups))),
    }
    worst = max(audit.compared, key=lambda group: audit.groups[group].calibration_gap)
    yield {
        "value": f"{figures.points(audit.groups[worst].calibration_gap)} points",
        "label": WORDS["key_gap"],
        "note": fill(WORDS["key_gap_note"], group=names[worst]),
        "alert": reason == "uncalibrated",
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
    audit: Audit, made: Mapping[str, Any], suppressed: str, single: str = ""
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
    rows += [
        ("Rows", f"{tally.n:,.15g}{', weighted' if tally.is_weighted else ''}"),
        ("Columns", "; ".join(named) or "not recorded"),
        *(("Read as", str(one)) for one in reading_notes(tally.reading, tally.groups)),
        ("Groups", str(len(tally.groups))),
        ("Bins of scores", f"{tally.bins} of equal width, and the tenths"),
        (
            "Cost, threshold, tolerance",
            f"{audit.cost}, {audit.threshold:g}, {audit.feasibility.tolerance:g}",
        ),
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
    for name, rule in (made["rules"] or {}).items():
        text = json.dumps(rule, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        digest = hashlib.sha256(text.encode()).hexdigest()
        rows.append(("Rule", f"{name}, as JSON, SHA-256 {digest}"))
    holds = f"{WORDS['holds']}. {single}" if single else WORDS["holds"]
    return [*rows, ("Left out of this page", suppressed), ("What this page holds", holds)]
