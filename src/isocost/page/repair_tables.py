"""The repairs of the page: those it is given or offers, what each does, and whom one hands over.

The page computes ``withhold`` for any settings.  The others are made here, in advance and for a
few settings, from the bins that the page holds, so that they reveal nothing that it hides.

A rule that hands people over makes the others equal, so its numbers are about part of the people.
A section of its own says who the others are, and what everybody's error rates are if somebody
decides about those: always as two halves, and never the one without the share of the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from isocost.checks import finite_or_none
from isocost.costs import Cost, as_cost
from isocost.grid import TENTHS
from isocost.groups import Group, shown_names
from isocost.judging.audit import Audit
from isocost.judging.offers import Compared, Offer, compared, unrepaired
from isocost.judging.unseen import NUMBERS, Outlook, Unseen, is_made_from, unseen
from isocost.measures.bounds import bounds
from isocost.measures.rates import require_all_decided
from isocost.page.facts import COSTS, THRESHOLD_HEADS, WORDS, spoken_names
from isocost.page.payload import safe_group, snapped, undecided
from isocost.plots.display import PALETTE
from isocost.question import DEFAULT
from isocost.repairs.composition import named_rules
from isocost.repairs.reconcile import ReconcilableAt, reconcilable
from isocost.repairs.review import EDGES, REVIEWERS, HandedOver, handed_over
from isocost.repairs.table import REPAIRS, Repair
from isocost.rules import Rule
from isocost.tables import round_up
from isocost.tallies import Tally
from isocost.verdict.sentences import Figures, fill, number, percent
from isocost.verdict.wording import figures_of

MOST_ROWS = 2400
"""With more rows than this, rules for thresholds other than the audit's are left out."""

MOST_HANDED = 12
"""With more groups than this the page hands nobody over by itself: its rows would fill it."""

MOST_RECONCILED = 8
"""With more groups than this, the table of thresholds is left out: it takes long to make."""

COMPUTED = ("withhold",)
"""The repairs that the page computes by itself, for any settings."""


@dataclass(frozen=True)
class Line:
    """A repair of the page: a rule, or why there is none; ``offer`` if it was made here."""

    label: str
    rule: Rule | None
    offer: Offer | None = None
    why: str = ""

    @property
    def repair(self) -> Repair | None:
        """The row of the table of repairs, if the rule was made here."""
        return None if self.offer is None else self.offer.repair


def lines_of(audit: Audit, given: Mapping[str, Rule] | Iterable[Rule] | None) -> list[Line]:
    r"""The rules given, or every offer of the audit.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> [line.label for line in lines_of(ic.audit(compas(), "fpr"), None)][-2:]
    ['Reconcile', 'Hand over, 24.0\xa0% handed over']
    """
    if given is not None:
        return [Line(_told(n, rule, audit.tally), rule) for n, rule in named_rules(given).items()]
    return [_line_of(offer) for offer in audit.offers.values()]


def _line_of(offer: Offer) -> Line:
    if offer.repair.defers and len(offer.tally.groups) > MOST_HANDED:
        return Line(
            offer.repair.title, None, offer, WORDS["hand_over_many"].format(most=MOST_HANDED)
        )
    if offer.rule is None:
        return Line(offer.repair.title, None, offer, offer.said)
    return Line(_told(offer.repair.title, offer.rule, offer.tally), offer.rule, offer)


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
    figures = figures_of(audit)
    now = unrepaired(audit.tally, audit.question)
    rows = [
        {"label": "As it is", "does": "", "keeps": "", "why": "", **_line(now, figures, decided)}
    ]
    for one in lines:
        does, keeps = (one.repair.sentence, one.repair.keeps) if one.repair else ("", "")
        row = {"label": one.label, "does": does, "keeps": keeps, "why": one.why}
        if one.rule is not None:
            after = (
                one.offer.compared if one.offer else compared(audit.tally, one.rule, audit.question)
            )
            row |= _line(after, figures, decided)
        rows.append(row)
    return rows


def _line(one: Compared, figures: Figures, decided: bool) -> dict[str, Any]:
    audit, names, percent = one.audit, shown_names(one.by_group), figures.percent
    return {
        "numbers": [
            figures.plain(audit.disparity.difference),
            figures.plain(audit.equalized_odds_difference) if decided else "–",
            figures.plain(one.gap),
            percent(audit.overall.accuracy) if decided else "–",
        ],
        "who": [(names[g], percent(c.changed)) for g, c in one.by_group.items() if c.changed],
        "chance": [
            percent(one.changes.by_coin),
            percent(one.changes.decisions) if decided else "–",
            percent(one.changes.handed_over),
        ],
    }


def outlook_rows(audit: Audit, lines: list[Line], decided: bool = True) -> list[dict[str, Any]]:
    """The lines of the table of people not seen: each rule fitted, expected and at most.

    Without rules given, and with many groups, only the repairs that equalize a cost: the
    others would take too long.
    """
    rows = []
    for one in lines:
        outlook = _outlook(audit, one)
        if outlook is not None:
            given = [] if one.offer else lines
            cells = [
                _three(getattr(outlook, name), name, figures_of(audit), decided)
                for name in told_of(given)
            ]
            expected = finite_or_none(outlook.cost_difference.expected)
            told = {"cells": cells, "notes": outlook.notes(), "expected": expected}
            rows.append({"label": one.label, **told})
    return rows


def _outlook(audit: Audit, line: Line) -> Unseen | None:
    rule = line.rule
    if rule is None or not rule.rows or not is_made_from(rule, audit.tally):
        return None
    if line.offer is None:
        return unseen(audit.tally, rule, question=audit.question)
    few = len(rule.groups) <= MOST_RECONCILED and not rule.defers
    return line.offer.unseen if rule.cost is not None or few else None


def told_of(lines: list[Line]) -> dict[str, str]:
    """The columns of the table of people not seen: names and titles."""
    deferring = any(one.rule is not None and one.rule.defers for one in lines)
    return {name: title for name, title in NUMBERS.items() if deferring or name != "handed_over"}


def _three(one: Outlook, name: str, figures: Figures, decided: bool) -> str:
    if not decided and name in ("rate_difference", "accuracy"):
        return "–"
    is_share = name in ("accuracy", "changed", "handed_over")
    style = figures.percent if is_share else figures.plain
    shown = (one.fitted, one.expected, one.limit)
    return " / ".join("–" if math.isnan(value) else style(value) for value in shown)


def thresholds_table(audit: Audit, held: dict[str, Any]) -> dict[str, Any] | None:
    """Where wrong decisions can be equally common, as header and rows; None with many groups.

    From the bins that the page holds, so that it reveals nothing that the page hides.
    """
    tally = audit.tally
    thresholds = [
        at for at in sorted({audit.threshold, *TENTHS}) if not undecided(held, tally.grid, at)
    ]
    if len(tally.groups) > MOST_RECONCILED or not thresholds:
        return None
    names = shown_names(audit.groups)
    header = [*THRESHOLD_HEADS, *(f"{names[g]} selected" for g in tally.groups)]
    points = reconcilable(tally, thresholds, question=audit.question).points
    return {
        "header": header,
        "rows": [_threshold_row(point, figures_of(audit)) for point in points],
    }


def bounds_table(audit: Audit) -> dict[str, Any]:
    """Which costs cannot both be equal, as header and rows, and what keeps error rates apart.

    Without rows if fewer than two groups have both outcomes.
    """
    fewest = audit.tally.totals.n.min(axis=1)
    groups = [g for g in audit.compared if fewest[audit.tally.index_of(g)] > 0]
    if len(groups) < 2:
        return {"rows": []}
    proven = bounds(audit.tally.select(groups), question=audit.question.among(groups))
    header, rows = proven.pair_table()
    costs = [(pair.comparison.cost, pair.comparison.other) for pair in proven.pairs]
    for row, (one, other) in zip(rows, costs, strict=True):
        row[0] = f"{_called(one)}; {_called(other).lower()}"
    header = [head[:1].upper() + head[1:] for head in header]
    names, ratio = spoken_names(audit.groups), proven.ratio
    said = fill(ratio.sentence, lower=names[ratio.lower], higher=names[ratio.higher])
    return {"header": header, "rows": rows, "ratio": said}


def _called(cost: Cost) -> str:
    """A cost as the page calls it."""
    kind, _, weights = str(cost).partition(":")
    if kind not in COSTS:
        return str(cost)
    return COSTS[kind]["label"] + (f" {weights.replace(',', ' : ')}" if weights else "")


def _threshold_row(point: ReconcilableAt, figures: Figures) -> list[str]:
    """What the page shows of a threshold; dashes where no tolerance is enough."""
    percent = figures.percent
    known = math.isfinite(point.tolerance)
    possible = f"{percent(point.lowest)} to {percent(point.highest)}" if known else "–"
    shares = [point.accuracy, point.selection_rate, *point.selection_rates.values()]
    accuracy, everybody, *groups = (percent(x) if known else "–" for x in shares)
    least = round_up(point.tolerance) if known else "–"
    return [f"{point.threshold:g}", point.answer, least, accuracy, everybody, possible, *groups]


def given_repairs(audit: Audit, held: dict[str, Any]) -> list[dict[str, Any]]:
    """The repairs that the page shows but does not compute, each for a few settings.

    The page computes only ``withhold``.  The other methods are made here, from the bins that the
    page holds, so that they reveal nothing that it hides.
    """
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
    return [*repairs, _given_handing_over(audit, held)]


def _given_handing_over(audit: Audit, held: dict[str, Any]) -> dict[str, Any]:
    """As in `given_repairs`; where everything is equal, the threshold does not matter."""
    tally, any_setting = audit.tally, dict.fromkeys(("threshold", "cost", "tolerance"))
    line = _line_of(audit.offers["hand_over"])
    given = {"method": REPAIRS["hand_over"].function, **any_setting, "label": line.label}
    if line.rule is None:
        many = len(tally.groups) > MOST_HANDED
        return {**given, "rule": None, "why": line.why, "elsewhere": many}
    return {**given, "rule": compact(tally.groups, snapped(line.rule, tally, held))}


def _given_offers(audit: Audit) -> list[Offer]:
    """The repairs that are made in advance; what may be left out for lack of room comes last."""
    own, asked = audit.threshold, audit.question
    costs = {str(cost): cost for cost in (audit.cost, as_cost("fpr"), as_cost("fnr"))}
    offers: list[Offer] = []
    for name in audit.offers:
        offer = audit.offers[name]
        if name in COMPUTED or offer.repair.defers:
            continue
        fields: Iterable[dict[str, Any]] = ({"threshold": at} for at in sorted({own, *TENTHS}))
        if offer.repair.goal == "cost":
            settings = product(
                sorted({own, DEFAULT.threshold}), costs.values(), sorted({0.0, asked.tolerance})
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
        content["cost"].update(fp=_safe_amount(rule.cost.fp), fn=_safe_amount(rule.cost.fn))
    kept = ("method", "cost", "settings", "coin", "rows", "notes", "promise")
    return {name: content[name] for name in kept if name in content}


def _safe_amount(amount: float | Mapping[Group, float]) -> Any:
    if isinstance(amount, Mapping):
        return [[safe_group(group), number] for group, number in amount.items()]
    return amount


# Whom a rule hands over

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
    audit: Audit, lines: Sequence[Line], decided: bool = True
) -> list[dict[str, Any]]:
    """The sections about rules that hand people over; empty if none does.

    Rates at the threshold are left out unless ``decided``.
    """
    return [
        {
            **_section(one.label, handed_over(one.rule, audit.tally, audit.threshold), decided),
            "made": WORDS["hand_over_made"] if one.offer else "",
        }
        for one in lines
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
        "legend": [(names[group], _mark(i)) for i, group in enumerate(who.groups)],
        "rates": _rate_lines(who) if decided else [],
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
            "of": f"{_rows_of(who.tally, group):,.0f}",
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


def _rate_lines(who: HandedOver) -> list[dict[str, Any]]:
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
        {"x": f"{LONG * rate:.2f}", "scale": f"{1.35 - 0.6 * k / len(known):.2f}", **_mark(i)}
        for k, (i, rate) in enumerate(known)
    ]
    return {"dots": dots, "text": text, "differ": f"differ by {number(high - low)}"}


def _mark(index: int) -> dict[str, str]:
    colors = {theme: hues[index % len(hues)] for theme, hues in PALETTE.items()}
    return {**colors, "mark": list(MARKS.values())[index % len(MARKS)]}


def _by_tenth(tally: Tally, group: Group) -> list[float]:
    """The share of a group's people in each tenth of the scores."""
    cells = tally.cells.take(tally.cells.of_group(tally.index_of(group)))
    firsts = [tally.grid.first_bin(edge) for edge in EDGES[:-1]]
    tenth = np.searchsorted(firsts, cells.bin, side="right") - 1
    sums = np.bincount(tenth, cells.w, len(firsts))
    return list(map(float, sums / sums.sum()))


def _rows_of(tally: Tally, group: Group) -> float:
    return float(tally.totals.n[tally.index_of(group)].sum())


def _defined(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _or_dash(value: float, style: Any) -> str:
    return "–" if math.isnan(value) else str(style(value))
