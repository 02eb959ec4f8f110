"""The section of the page about people whom a rule hands over, as numbers that the template draws.

A rule that hands people over makes the others equal, so its numbers are about part of the people.
The section says who the others are, and what everybody's error rates are if somebody decides
about those: always as two halves, and never the one without the share of the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from isocost.groups import Group, shown_names
from isocost.measures.audit import Audit
from isocost.plots.display import PALETTE
from isocost.repairs.review import EDGES, REVIEWERS, HandedOver, handed_over
from isocost.reports.facts import WORDS
from isocost.reports.offers import Offer
from isocost.tallies import Tally
from isocost.verdict.sentences import number, percent

MOST_PANELS = 8
"""Of so many groups there is a picture; of more, those of whom most are handed over."""

BAR, TALL = 30.0, 110.0
"""How wide and how high bars can be, in units of the drawing."""

LONG = 220.0
"""How long the axis from 0 to 1 is in the table, in the same units."""

MARKS = {
    "circle": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
    "square": "M-4.5-4.5H4.5V4.5H-4.5Z",
    "diamond": "M0-6.5L5.5 0L0 6.5L-5.5 0Z",
    "triangle-up": "M0-6L6 4.5H-6Z",
    "cross": "M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "triangle-down": "M0 6L6-4.5H-6Z",
}
"""The marks of groups, which differ without colour too: Vega's names, and paths around (0, 0)."""

BY_WHOM = {
    "perfect": "Everybody, if the reviewer is never wrong",
    "score": "Everybody, if the reviewer decides as the old score did",
    "coin": "Everybody, if the reviewer tosses a coin",
}


def handed_over_sections(
    audit: Audit, offers: Sequence[Offer], decided: bool = True
) -> list[dict[str, Any]]:
    """What the page shows of each rule that hands people over; empty if none does.

    Rates at the threshold are left out unless ``decided``.
    """
    return [
        {
            **_section(one.label, handed_over(one.rule, audit.tally, audit.threshold), decided),
            "made": WORDS["hand_over_made"] if one.does else "",
        }
        for one in offers
        if one.rule is not None and one.rule.defers
    ]


def _section(label: str, who: HandedOver, decided: bool) -> dict[str, Any]:
    names = shown_names(who.groups)
    told = _renamed(who, names)
    return {
        "label": label,
        "share": percent(who.share),
        "others": percent(1.0 - who.share),
        "threshold": f"{who.threshold:g}",
        "accuracy": [_or_dash(one, percent) for one in who.accuracy],
        "panels": _panels(who, names),
        "left_out": max(0, len(names) - MOST_PANELS),
        "legend": [(names[group], _look(i)) for i, group in enumerate(who.groups)],
        "rates": _rates(who) if decided else [],
        "table": told.table() if decided else None,
        "notes": told.notes() if decided else [],
    }


def _renamed(who: HandedOver, names: Mapping[Group, str]) -> HandedOver:
    """The same with the names that the page gives to groups."""

    def named(numbers: Mapping[Group, Any]) -> dict[Group, Any]:
        return {names[group]: number for group, number in numbers.items()}

    whole = {reviewer: named(rates) for reviewer, rates in who.whole.items()}
    return replace(who, groups=named(who.groups), before=named(who.before), whole=whole)


def _panels(who: HandedOver, names: dict[Group, str]) -> list[dict[str, Any]]:
    """A histogram of each group's scores, whose upper parts are handed over."""
    order = sorted(who.groups, key=lambda group: -_defined(who.groups[group].share))
    drawn = [group for group in who.groups if group in order[:MOST_PANELS]]
    people = {group: _by_tenth(who.tally, group) for group in drawn}
    highest = max(share for shares in people.values() for share in shares)
    return [
        {
            "name": names[group],
            "share": percent(who.groups[group].share),
            "rows": f"{who.groups[group].rows:,.0f}",
            "of": f"{_rows(who.tally, group):,.0f}",
            "base": _or_dash(who.groups[group].base_rate, percent),
            "decided_base": _or_dash(who.groups[group].decided_base_rate, percent),
            "bars": list(_bars(people[group], who.groups[group].scores, highest)),
        }
        for group in drawn
    ]


def _bars(
    people: Iterable[float], gone: Iterable[float], highest: float
) -> Iterable[dict[str, Any]]:
    for i, (share, away) in enumerate(zip(people, gone, strict=True)):
        if not share > 0.0:
            continue
        whole = TALL * share / highest
        upper = whole * _defined(away)
        yield {
            "x": f"{i * BAR + 2:.1f}",
            "middle": f"{(i + 0.5) * BAR:.1f}",
            "gone": f"{upper:.2f}",
            "stay": f"{whole - upper:.2f}",
            "top": f"{TALL - whole:.2f}",
            "split": f"{TALL - whole + upper:.2f}",
            "percent": f"{100 * _defined(away):.0f}",
            "range": f"{EDGES[i]:g} to {EDGES[i + 1]:g}",
        }


def _rates(who: HandedOver) -> list[dict[str, Any]]:
    """Lines of the table: how far both error rates of groups differ, one after the other."""
    each = who.groups.values()
    share, others = percent(who.share), percent(1.0 - who.share)
    lines: dict[str, list[tuple[float, float]]] = {
        "Everybody, before": list(who.before.values()),
        f"Decided by the score ({others} of people)": [one.decided for one in each],
        f"What the reviewer must reach for the others ({share})": [one.must_reach for one in each],
        **{BY_WHOM[name]: list(who.whole[name].values()) for name in REVIEWERS},
    }
    return [
        {"title": title, "cells": [_strip([pair[k] for pair in pairs]) for k in (0, 1)]}
        for title, pairs in lines.items()
    ]


def _strip(rates: list[float]) -> dict[str, Any]:
    """The rates of all groups on one axis, and how far they differ."""
    known = [(i, rate) for i, rate in enumerate(rates) if not math.isnan(rate)]
    if not known:
        return {"dots": [], "text": "–", "differ": ""}
    low, high = min(rate for _, rate in known), max(rate for _, rate in known)
    text = number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"
    # Each mark is smaller than the one under it, so that none hides another at the same place.
    dots = [
        {"x": f"{LONG * rate:.2f}", "scale": f"{1.35 - 0.6 * k / len(known):.2f}", **_look(i)}
        for k, (i, rate) in enumerate(known)
    ]
    return {"dots": dots, "text": text, "differ": f"differ by {number(high - low)}"}


def _look(index: int) -> dict[str, str]:
    colors = {theme: hues[index % len(hues)] for theme, hues in PALETTE.items()}
    return {**colors, "mark": list(MARKS.values())[index % len(MARKS)]}


def _by_tenth(tally: Tally, group: Group) -> list[float]:
    """The share of a group's people in each tenth of the scores."""
    cells = tally.cells.take(tally.cells.of_group(tally.index_of(group)))
    firsts = [tally.grid.first_bin(edge) for edge in EDGES[:-1]]
    tenth = np.searchsorted(firsts, cells.bin, side="right") - 1
    sums = np.bincount(tenth, cells.w, len(firsts))
    return list(map(float, sums / sums.sum()))


def _rows(tally: Tally, group: Group) -> float:
    return float(tally.totals.n[tally.index_of(group)].sum())


def _defined(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _or_dash(value: float, style: Any) -> str:
    return "–" if math.isnan(value) else str(style(value))
