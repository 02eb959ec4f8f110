"""Sentences of the report: words, numbers, and the names of groups kept apart from them.

What the report says at the audit's own settings: sentences, key numbers and tables.

Everything is made of plain texts and of :class:`Name`, so that whoever writes the page can keep
the names of groups apart from words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from isocost import __version__
from isocost.groups import Group, group_names, names_of
from isocost.measures.audit import Audit
from isocost.measures.feasibility import Feasibility, round_down, round_up
from isocost.reports.words import COSTS, WORDS
from isocost.verdict.advice import advice_of

__all__ = [
    "Name",
    "Sentence",
    "cost_words",
    "facts",
    "fill",
    "number",
    "percent",
    "row_titles",
    "shown_names",
    "signed",
    "spoken_names",
]


@dataclass(frozen=True)
class Name:
    """The name of a group within a sentence."""

    text: str


Sentence = list[str | Name]

LONGEST = 60
"""Letters of a name within a sentence."""

_PLACE = re.compile(r"\{(\w+)\}")


def fill(template: str, **values: str | Name | Sentence) -> Sentence:
    """A sentence with its places filled.

    Examples
    --------
    >>> fill("Errors cost {high} {cost}.", high=Name("men"), cost="0.5")
    ['Errors cost ', Name(text='men'), ' 0.5.']
    """
    found: Sentence = []
    for place, part in enumerate(_PLACE.split(template)):
        value = values[part] if place % 2 else part
        for piece in value if isinstance(value, list) else [value]:
            if isinstance(piece, str) and found and isinstance(found[-1], str):
                found[-1] += piece
            elif piece != "":
                found.append(piece)
    return found


def shown_names(groups: Iterable[Group]) -> dict[Group, str]:
    """What the page calls each group: a bare number or truth value reads better as "group 0".

    The parts of an intersection have a dot between them: a comma would be one of the sentence's.

    Examples
    --------
    >>> list(shown_names(["women", 1.0, ("F", 30)]).values())
    ['women', 'group 1', 'F · 30']
    """
    plain = names_of(groups)
    shown = {
        group: " · ".join(group_names([part])[0] for part in group)
        if isinstance(group, tuple) and len(group) > 1
        else _called(name)
        for group, name in plain.items()
    }
    return shown if len(set(shown.values())) == len(shown) else plain


def _called(name: str) -> str:
    bare = re.fullmatch(r"-?\d+(\.\d+)?|True|False|.", name) is not None
    return f"group {name.removesuffix('.0')}" if bare else name


def spoken_names(groups: Iterable[Group]) -> dict[Group, Name]:
    """The same names within sentences: cut where they would drown them.

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


def number(value: float) -> str:
    """Three decimals: more than anybody compares by eye."""
    return f"{value:.3f}"


def percent(value: float) -> str:
    """A share in percent, with one decimal."""
    return f"{100 * value:.1f}\u00a0%"


def signed(value: float) -> str:
    """A number with a real minus sign."""
    return number(value).replace("-", "−")


MOST_SHARES = 4
"""With more groups to change than this, a sentence names only those that lose most."""


def cost_words(audit: Audit) -> dict[str, str]:
    """What the cost of the audit is called and what it means."""
    cost = audit.cost
    kind = str(cost).partition(":")[0].partition(" ")[0]
    amounts = {name: _amount(getattr(cost, name)) for name in ("fp", "fn")}
    return {name: text.format(**amounts) for name, text in COSTS[kind].items()}


def _amount(amount: float | Mapping[Group, float]) -> str:
    return "an amount of its own group" if isinstance(amount, Mapping) else f"{amount:.12g}"


def facts(
    audit: Audit,
    title: str,
    suppressed: str = "nothing",
    hidden: Collection[int] = (),
    single: str = "",
) -> dict[str, Any]:
    """Everything that the page says before anybody touches it.

    ``hidden`` are the places of groups whose rates at the threshold are not to be told;
    ``single`` says of how many people alone the page tells.
    """
    return {
        "title": title,
        "verdict": verdict(audit),
        "ledes": [[cost_words(audit)["meaning"]], *ledes(audit)],
        "figures": [{"alert": False, **key} for key in keys(audit)],
        "settings": settings(audit),
        "why": why(audit),
        "geometry": list(geometry(audit)),
        "table": table(audit, hidden),
        "advice": advice(audit),
        "computed": computed(audit, suppressed, single),
        "cost": cost_words(audit),
    }


def settings(audit: Audit) -> Sentence:
    """What the page is shown for: on paper there are no controls to see it from."""
    tolerance, threshold = audit.feasibility.tolerance, audit.threshold
    axis = cost_words(audit)["axis"]
    words = {"tolerance": f"{tolerance:g}", "threshold": f"{threshold:g}", "off": ""}
    return fill(WORDS["settings"], axis=axis, **words)


def why(audit: Audit) -> str:
    """What stands above the explanation."""
    found = audit.feasibility
    if not found.feasible:
        return WORDS["why_not_measured" if _uncertain(audit) else "why_not"]
    if not found.changed:
        return WORDS["why_nothing"]
    return WORDS["why_closer" if found.tolerance else "why_equal"]


def advice(audit: Audit) -> list[str]:
    """The audit's advice, with the page's names."""
    found = (audit.groups, audit.cost, audit.threshold, audit.disparity, audit.feasibility)
    names = shown_names(audit.groups)
    return "\n".join(advice_of(*found, audit.intervals, names)).split("\n")


def _changed(found: Feasibility, names: Mapping[Group, Name]) -> str | Name | Sentence:
    if len(found.changed) == 1:
        return names[found.changed[0]]
    return fill(WORDS["others"], count=str(len(found.changed)))


def _extremes(audit: Audit) -> dict[str, Any]:
    """The two groups that a sentence is about, and what their errors cost."""
    names, d = spoken_names(audit.groups), audit.disparity
    return {
        "high": names[d.highest],
        "low": names[d.lowest],
        "high_cost": number(audit.groups[d.highest].cost),
        "low_cost": number(audit.groups[d.lowest].cost),
    }


def _uncertain(audit: Audit) -> bool:
    return audit.differs and audit.intervals is not None and not _established(audit)


def _established(audit: Audit) -> bool:
    return audit.intervals is not None and audit.intervals.direction_established


def verdict(audit: Audit) -> Sentence:
    """The one sentence that everybody reads.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> parts = verdict(ic.audit(compas(), "fpr"))
    >>> "".join(part if isinstance(part, str) else part.text for part in parts)
    'Errors cost African-American more than Caucasian, and no calibrated repair can make it equal.'
    """
    found, names = audit.feasibility, spoken_names(audit.groups)
    if not audit.differs:
        kind = "verdict_within" if found.tolerance else "verdict_equal"
        return fill(WORDS[kind], tolerance=f"{found.tolerance:g}")
    many = "_many" if len(audit.groups) > 2 else ""
    if _uncertain(audit):
        return fill(WORDS[f"verdict_uncertain{many}"])
    words = {name: part for name, part in _extremes(audit).items() if name in ("high", "low")}
    if not found.feasible:
        return fill(WORDS[f"verdict_infeasible{many}"], **words)
    kind = "closer" if found.tolerance else "feasible"
    told = {"changed": _changed(found, names), "tolerance": f"{found.tolerance:g}"}
    return fill(WORDS[f"verdict_{kind}{many}"], **words, **told)


def ledes(audit: Audit) -> Iterator[Sentence]:
    """The sentences under the verdict: the numbers behind it, and the way out."""
    found, names = audit.feasibility, spoken_names(audit.groups)
    ends = _extremes(audit)
    if not audit.differs:
        yield fill(WORDS["lede_equal"], **ends)
        return
    if _uncertain(audit) and audit.intervals is not None:
        low, high = audit.intervals.differences["cost"]
        many = "_many" if len(audit.groups) > 2 else ""
        spans = {"span_low": signed(low), "span_high": signed(high)}
        yield fill(WORDS[f"lede_uncertain{many}"], **ends, **spans)
        return
    if found.feasible:
        exact = "" if found.tolerance else "_exact"
        yield fill(
            WORDS[f"lede_feasible{exact}"],
            **ends,
            tolerance=f"{found.tolerance:g}",
            shares=_shares(found, names),
        )
        return
    blocked = blocked_group(found)
    yield fill(
        WORDS["lede_infeasible"],
        **ends,
        blocked=names[blocked],
        blocked_cost=number(found.costs[blocked]),
        ceiling=number(max(found.trivial_costs[blocked], found.costs[blocked])),
        short=number(found.smallest_tolerance - found.tolerance),
    )
    yield fill(
        WORDS["way_out"],
        high=ends["high"],
        required=round_down(found.required_cost),
        smallest=round_up(found.smallest_tolerance),
    )


def blocked_group(found: Feasibility) -> Group:
    """The group that is furthest from where it would have to be."""
    return min(found.unreachable, key=lambda g: max(found.trivial_costs[g], found.costs[g]))


def _shares(found: Feasibility, names: Mapping[Group, Name]) -> Sentence:
    changed = list(found.changed)
    if len(changed) > MOST_SHARES:
        changed = sorted(changed, key=lambda group: -found.alpha[group])[: MOST_SHARES - 1]
    told = [
        fill(WORDS["share_of"], share=percent(found.alpha[group]), group=names[group])
        for group in changed
    ]
    more = len(found.changed) - len(changed)
    if more:
        told.append(fill(WORDS["share_of_more"], count=str(more)))
    parts: Sentence = []
    for place, one in enumerate(told):
        if place:
            parts.append(", " if place < len(told) - 1 else " and ")
        parts += one
    return parts


def keys(audit: Audit) -> Iterator[dict[str, Any]]:
    """The few numbers that stand large at the top."""
    found, names = audit.feasibility, spoken_names(audit.groups)
    d, interval = audit.disparity, None
    # Closed forms, without resampling, have no interval for three groups and more.
    if audit.intervals is not None and "cost" in audit.intervals.disparities:
        low, high = audit.intervals.disparities["cost"]
        level = f"{100 * audit.intervals.confidence:.4g}\u00a0%"
        interval = fill(WORDS["interval"], level=level, low=number(low), high=number(high))
    yield {"value": number(d.difference), "label": WORDS["key_difference"], "note": interval}
    if not found.feasible:
        short = number(found.smallest_tolerance - found.tolerance)
        note = fill(WORDS["key_reach_note"])
        yield {
            "value": short,
            "label": WORDS["key_reach"],
            "note": note,
            "alert": not _uncertain(audit),
        }
    elif found.changed:
        most = max(found.changed, key=lambda group: found.alpha[group])
        note = fill(WORDS[f"key_{_kind(found)}_note"], group=names[most])
        label = WORDS["key_withheld"]
        yield {"value": percent(found.alpha[most]), "label": label, "note": note}
    else:
        note = fill(WORDS["key_nothing_note"])
        yield {"value": "0", "label": WORDS["key_nothing"], "note": note}
    worst = max(audit.groups, key=lambda group: audit.groups[group].calibration_gap)
    yield {
        "value": number(audit.groups[worst].calibration_gap),
        "label": WORDS["key_gap"],
        "note": fill(WORDS["key_gap_note"], group=names[worst]),
    }
    yield {
        "value": f"{audit.tally.n:,.0f}",
        "label": WORDS["key_people"],
        "note": fill(WORDS["key_people_note"], count=str(len(audit.groups))),
    }


def _kind(found: Feasibility) -> str:
    return "closer" if found.tolerance else "withheld"


def geometry(audit: Audit) -> Iterator[Sentence]:
    """Why it can or cannot be had, told along the picture."""
    found, names = audit.feasibility, spoken_names(audit.groups)
    yield fill(WORDS["geometry_axes"])
    yield fill(WORDS["geometry_line"])
    within = fill(WORDS["within"], tolerance=f"{found.tolerance:g}") if found.tolerance else ""
    told: dict[str, Any] = {"high": names[found.target_group], "within": within}
    if not found.feasible:
        blocked = names[blocked_group(found)]
        yield fill(WORDS["geometry_infeasible"], **told, blocked=blocked)
    elif found.changed:
        yield fill(WORDS["geometry_feasible"], **told, changed=_changed(found, names))
    else:
        yield fill(WORDS["geometry_equal"])
    yield fill(WORDS["geometry_both"])


def row_titles(audit: Audit) -> dict[str, tuple[str, str]]:
    """The rows of the table of numbers: what each is called, and its name among statisticians.

    The page can compute plain measures and the ten-bin gap for any settings; other gaps it cannot.
    """
    rows = {
        name: (one.label, one.title)
        for name, one in audit.measures.items()
        if one.printed and (one.is_plain or name == "calibration_gap")
    }
    first = {name: rows.pop(name) for name in ("base_rate", "mean_score")}
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
    rows = []
    for key, (label, hint) in row_titles(audit).items():
        hides = key in audit.measures and audit.measures[key].uses_threshold
        cells = []
        for place, m in enumerate(columns):
            value = m[key]
            text = f"{value:,.6g}" if key == "n" else number(value)
            span = m.intervals.get(key)
            if math.isnan(value) or (place in untold and hides):
                text, span = "–", None
            told = f"{number(span[0])} to {number(span[1])}" if span else ""
            cells.append({"value": text, "span": told})
        rows.append({"key": key, "label": label, "hint": hint, "cells": cells})
    return rows


def computed(audit: Audit, suppressed: str, single: str = "") -> list[tuple[str, str]]:
    """How the report was made, so that somebody else can make it again."""
    tally, found = audit.tally, audit.intervals
    columns = {k: v for k, v in tally.columns.items() if v}
    named = (f"{k}: {', '.join(v) if isinstance(v, list) else v}" for k, v in columns.items())
    rows = [
        ("Made with", f"isocost {__version__}"),
        ("Made on", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
        ("Rows", f"{tally.n:,.15g}{', weighted' if tally.is_weighted else ''}"),
        ("Columns", "; ".join(named) or "not recorded"),
        ("Groups", str(len(tally.groups))),
        ("Bins of scores", f"{tally.bins} of equal width, and the tenths"),
        ("Cost, threshold, tolerance", _settings(audit)),
    ]
    if tally.edges:
        rows.append(("Further edges", ", ".join(f"{edge:g}" for edge in tally.edges)))
    if found is None:
        rows.append(("Intervals", "none were computed"))
    else:
        how = f"{found.replicates:,} resamples, seed {found.seed}"
        if found.method != "replicates":
            how = "closed forms"
        rows.append(("Intervals", f"{100 * found.confidence:.4g} %; {how}"))
    rows.append(("Left out of this page", suppressed))
    rows.append(
        ("What this page holds", f"{WORDS['holds']}. {single}" if single else WORDS["holds"])
    )
    return rows


def _settings(audit: Audit) -> str:
    return f"{audit.cost}, {audit.threshold:g}, {audit.feasibility.tolerance:g}"
