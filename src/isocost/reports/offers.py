"""The repairs that a report compares, made at the audit's own settings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from isocost.costs import Cost, as_cost
from isocost.errors import InfeasibleError, InfeasibleWarning, IsocostError
from isocost.grid import TENTHS
from isocost.groups import Group
from isocost.measures.audit import Audit
from isocost.measures.audit import audit as measure
from isocost.measures.feasibility import Feasibility, round_up
from isocost.repairs.compare import Compared, compare, named_rules
from isocost.repairs.reconcile import Reconcilability
from isocost.repairs.registry import REPAIRS, Repair
from isocost.repairs.unseen import NUMBERS, Outlook, is_made_from, unseen
from isocost.reports.facts import shown_names
from isocost.reports.payload import page_tally, rule_fields, snapped, undecided
from isocost.reports.words import WORDS
from isocost.rules import Rule
from isocost.tallies import Tally
from isocost.verdict.sentences import number, percent

__all__ = ["Offer", "compact", "given_repairs", "options_of", "outlook_rows", "repair_rows"]

MOST_ROWS = 3200
"""With more rows than this, rules for thresholds other than the audit's are left out."""


PAGE_REPLICATES = 100
"""How often a rule is made again for the page."""

_FAST = tuple(name for name, repair in REPAIRS.items() if repair.goal == "cost")

COMPUTED = ("withhold",)
"""The repairs that the page computes by itself, for any settings."""


class Asked(NamedTuple):
    """What a repair is made for."""

    threshold: float
    cost: Cost
    tolerance: float


@dataclass(frozen=True)
class Offer:
    """A repair of the report: a rule, or why there is none."""

    label: str
    rule: Rule | None
    does: str = ""
    keeps: str = ""
    why: str = ""


def options_of(audit: Audit, given: Mapping[str, Rule] | Iterable[Rule] | None) -> list[Offer]:
    """The rules given, or every method as far as it is feasible at the audit's settings."""
    if given is not None:
        return [Offer(name, rule) for name, rule in named_rules(given).items()]
    asked = Asked(audit.threshold, audit.cost, audit.feasibility.tolerance)
    return [_attempt(audit.tally, repair, asked) for repair in REPAIRS.values()]


def _made(repair: Repair, tally: Tally, asked: Asked) -> Rule:
    """The rule of a repair; the tolerance is one of costs, and rates are made equal without one."""
    costs: dict[str, Any] = {}
    if repair.goal == "cost":
        costs = {"cost": asked.cost, "tolerance": asked.tolerance}
    return repair.make_with(tally, threshold=asked.threshold, **costs)


def _attempt(tally: Tally, repair: Repair, asked: Asked) -> Offer:
    words = repair.sentence, repair.keeps
    try:
        return Offer(repair.title, _made(repair, tally, asked), *words)
    except IsocostError as error:
        told = WORDS["not_feasible"].format(why=_reason(error, tally, repair, asked))
        return Offer(repair.title, None, *words, told)


def _reason(error: IsocostError, tally: Tally, repair: Repair, asked: Asked) -> str:
    """Why a method cannot be used here, and what it would take."""
    problem = error.problems[0]
    coarsens = repair.name == "coarsen"
    if coarsens and problem.name == "decisions":
        least = round_up(_coarsest(tally, asked))
        return WORDS["needs_tolerance_decisions"].format(smallest=least)
    if not isinstance(error, InfeasibleError):
        return f"{problem.name} {problem.rule}"
    if coarsens:
        return WORDS["needs_tolerance"].format(smallest=round_up(_coarsest(tally, asked)))
    return _needed(error.feasibility)


def _needed(found: Feasibility | Reconcilability) -> str:
    """What it would take, in words."""
    corner = found.corner if isinstance(found, Reconcilability) else None
    if corner is None:
        return WORDS["needs_tolerance"].format(smallest=round_up(found.smallest_tolerance))
    if math.isnan(corner.tolerance):
        return WORDS["no_tolerance"].format(selected=corner.selected)
    smallest = round_up(corner.tolerance)
    return WORDS["needs_selecting"].format(selected=corner.selected, smallest=smallest)


def _coarsest(tally: Tally, asked: Asked) -> float:
    """How far costs still differ when coarsening does all it can without changing decisions."""
    at, cost, tolerance = asked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)
        rule = REPAIRS["coarsen"].make_with(
            tally, cost=cost, threshold=(at,), tolerance=tolerance, infeasible="closest"
        )
    return measure(rule.expected(tally), cost, at, confidence=None).disparity.difference


def repair_rows(audit: Audit, found: list[Offer], decided: bool = True) -> list[dict[str, Any]]:
    """The lines of the table that puts repairs side by side, the present scores first.

    What depends on who is at or above the threshold is left out unless ``decided``.
    """
    rules = {str(place): one.rule for place, one in enumerate(found) if one.rule is not None}
    compared = compare(audit.tally, rules, audit.cost, audit.threshold).rules
    shown = [("original", Offer("As it is", None)), *((str(i), o) for i, o in enumerate(found))]
    return [
        {
            "label": one.label,
            "does": one.does,
            "keeps": one.keeps,
            "why": one.why,
            **(_line(compared[key], decided) if key in compared else {}),
        }
        for key, one in shown
    ]


def _line(one: Compared, decided: bool) -> dict[str, Any]:
    audit, names = one.audit, shown_names(one.by_group)
    return {
        "numbers": [
            number(audit.disparity.difference),
            number(audit.equalized_odds_difference) if decided else "–",
            number(one.gap),
            percent(audit.overall.accuracy) if decided else "–",
        ],
        "who": [(names[g], percent(c.changed)) for g, c in one.by_group.items() if c.changed],
        "chance": [
            percent(one.changes.by_coin),
            percent(one.changes.decisions) if decided else "–",
        ],
    }


def outlook_rows(
    audit: Audit, found: list[Offer], given: bool, decided: bool = True
) -> list[dict[str, Any]]:
    """The lines of the table of people not seen: each rule fitted, expected and at most.

    Without rules ``given``, the repairs that equalize a cost: the others would take too long.
    """
    rows = []
    for one in found:
        rule = one.rule
        if rule is None or not rule.rows or not is_made_from(rule, audit.tally):
            continue
        if given or rule.method in _FAST:
            numbers = unseen(audit.tally, rule, PAGE_REPLICATES)
            cells = [_three(getattr(numbers, name), name, decided) for name in NUMBERS]
            rows.append({"label": one.label, "cells": cells, "notes": numbers.notes()})
    return rows


def _three(one: Outlook, name: str, decided: bool) -> str:
    if not decided and name in ("rate_difference", "accuracy"):
        return "–"
    style = percent if name in ("accuracy", "changed") else number
    shown = (one.fitted, one.expected, one.limit)
    return " / ".join("–" if math.isnan(value) else style(value) for value in shown)


def given_repairs(audit: Audit, held: dict[str, Any]) -> list[dict[str, Any]]:
    """The repairs that the page shows but does not compute, each for a few settings.

    The page computes only ``withhold``.  The other methods are made here, from the bins that the
    page holds, so that they reveal nothing that it hides.
    """
    tally = page_tally(audit.tally, held)
    found: list[dict[str, Any]] = []
    total = 0
    for repair, asked in _given_settings(audit):
        if undecided(held, tally.grid, asked.threshold):
            continue
        of_cost = repair.goal == "cost"
        one = {
            "method": repair.function,
            "threshold": asked.threshold,
            "cost": str(asked.cost) if of_cost else None,
            "tolerance": asked.tolerance if of_cost else None,
        }
        try:
            rule = snapped(_made(repair, tally, asked), tally, held)
        except IsocostError as error:
            found.append({**one, "rule": None, "why": _reason(error, tally, repair, asked)})
        else:
            total += len(rule.rows)
            if total > MOST_ROWS and asked.threshold != audit.threshold:
                break
            found.append({**one, "rule": compact(tally.groups, rule)})
    return found


def _given_settings(audit: Audit) -> list[tuple[Repair, Asked]]:
    """What each repair is made for; what may be left out for lack of room comes last."""
    own, tolerance = audit.threshold, audit.feasibility.tolerance
    costs = {str(cost): cost for cost in (audit.cost, as_cost("fpr"), as_cost("fnr"))}
    found: list[tuple[Repair, Asked]] = []
    for repair in REPAIRS.values():
        if repair.name in COMPUTED:
            continue
        if repair.goal == "cost":
            settings = product(sorted({own, 0.5}), costs.values(), sorted({0.0, tolerance}))
            found += [(repair, Asked(*each)) for each in settings]
        else:
            found += [(repair, Asked(at, audit.cost, 0.0)) for at in sorted({own, *TENTHS})]

    def order(one: tuple[Repair, Asked]) -> tuple[bool, float]:
        away = abs(one[1].threshold - own)
        # Rules with many rows are left out first.
        return one[0].name == "reconcile" and away > 0, away

    return sorted(found, key=order)


def compact(groups: Sequence[Group], rule: Rule) -> dict[str, Any]:
    """A rule for the page: rows are [place of the group, lo, hi, value or null, probability].

    Places instead of groups, because JavaScript does not know 1.0 from 1.
    """
    content = rule_fields(rule)
    places = {group: place for place, group in enumerate(groups)}
    content["rows"] = [
        [places[row.group], row.lo, row.hi, row.value, row.probability]
        for row in rule.rows
        if row.group in places
    ]
    kept = ("method", "cost", "settings", "coin", "rows", "notes", "promise")
    return {name: content[name] for name in kept if name in content}
