"""The repairs that a report compares, made at the audit's own settings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from isocost.costs import Cost, as_cost
from isocost.errors import InfeasibleError, InfeasibleWarning, IsocostError
from isocost.grid import TENTHS
from isocost.groups import Group
from isocost.measure.audit import Audit
from isocost.measure.audit import audit as measure
from isocost.measure.feasibility import Feasibility, round_up
from isocost.repair.coarsen import coarsen
from isocost.repair.compare import Compared, compare
from isocost.repair.odds import equalize_odds
from isocost.repair.reconcile import Reconcilability, reconcile
from isocost.repair.withhold import withhold
from isocost.rules import Rule
from isocost.show.merging import page_tally, snapped, undecided
from isocost.show.payload import rule_fields
from isocost.show.sentences import number, percent, shown_names
from isocost.show.words import METHODS, WORDS
from isocost.tallies import Tally

__all__ = ["Option", "compact", "given_repairs", "options_of", "repair_rows"]

MOST_ROWS = 3200
"""With more rows than this, rules for thresholds other than the audit's are left out."""


class Asked(NamedTuple):
    """What a repair is made for."""

    threshold: float
    cost: Cost
    tolerance: float


MAKERS: dict[str, Callable[[Tally, Asked], Rule]] = {
    "withhold": lambda tally, asked: withhold(tally, asked.cost, asked.tolerance),
    "coarsen": lambda tally, asked: coarsen(tally, asked.cost, (asked.threshold,), asked.tolerance),
    "equalize_odds": lambda tally, asked: equalize_odds(tally, asked.threshold),
    "reconcile": lambda tally, asked: reconcile(tally, asked.threshold),
}
"""How each method of the page's table is made."""


@dataclass(frozen=True)
class Option:
    """A repair of the report: a rule, or why there is none."""

    label: str
    rule: Rule | None
    does: str = ""
    keeps: str = ""
    why: str = ""


def options_of(audit: Audit, given: Mapping[str, Rule] | Iterable[Rule] | None) -> list[Option]:
    """The rules given, or every method as far as it is feasible at the audit's settings."""
    if given is not None:
        named = given if isinstance(given, Mapping) else _by_method(given)
        return [Option(str(name), rule) for name, rule in named.items()]
    asked = Asked(audit.threshold, audit.cost, audit.feasibility.tolerance)
    return [_attempt(audit.tally, name, asked) for name in METHODS]


def _by_method(rules: Iterable[Rule]) -> dict[str, Rule]:
    named: dict[str, Rule] = {}
    for rule in [rules] if isinstance(rules, Rule) else rules:
        # What is no rule is told by compare, with all that is wrong.
        method = getattr(rule, "method", "?")
        times = sum(name.split(" ")[0] == method for name in named)
        named[method if not times else f"{method} {times + 1}"] = rule
    return named


def _attempt(tally: Tally, name: str, asked: Asked) -> Option:
    words = METHODS[name]
    try:
        return Option(words["label"], MAKERS[name](tally, asked), words["does"], words["keeps"])
    except IsocostError as error:
        told = WORDS["not_feasible"].format(why=_reason(error, tally, name, asked))
        return Option(words["label"], None, words["does"], words["keeps"], told)


def _reason(error: IsocostError, tally: Tally, name: str, asked: Asked) -> str:
    """Why a method cannot be used here, and what it would take."""
    problem = error.problems[0]
    if name == "coarsen" and problem.name == "decisions":
        least = round_up(_coarsest(tally, asked))
        return WORDS["needs_tolerance_decisions"].format(smallest=least)
    if not isinstance(error, InfeasibleError):
        return f"{problem.name} {problem.rule}"
    if name == "coarsen":
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
        rule = coarsen(tally, cost, (at,), tolerance, "closest")
    return measure(rule.expected(tally), cost, at, confidence=None).disparity.difference


def repair_rows(audit: Audit, found: list[Option], decided: bool = True) -> list[dict[str, Any]]:
    """The lines of the table that puts repairs side by side, the present scores first.

    What depends on who is at or above the threshold is left out unless ``decided``.
    """
    rules = {str(place): one.rule for place, one in enumerate(found) if one.rule is not None}
    compared = compare(audit.tally, rules, audit.cost, audit.threshold).rules
    shown = [("original", Option("As it is", None)), *((str(i), o) for i, o in enumerate(found))]
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


def given_repairs(audit: Audit, held: dict[str, Any]) -> list[dict[str, Any]]:
    """The repairs that the page shows but does not compute, each for a few settings.

    The page computes only ``withhold``.  The other methods are made here, from the bins that the
    page holds, so that they reveal nothing that it hides.
    """
    tally = page_tally(audit.tally, held)
    found: list[dict[str, Any]] = []
    total = 0
    for method, asked in _given_settings(audit):
        if undecided(held, tally.grid, asked.threshold):
            continue
        cost, tolerance = (None, None)
        if method == "coarsen":
            cost, tolerance = str(asked.cost), asked.tolerance
        one = {"method": method, "threshold": asked.threshold, "cost": cost, "tolerance": tolerance}
        try:
            rule = snapped(MAKERS[method](tally, asked), tally, held)
        except IsocostError as error:
            found.append({**one, "rule": None, "why": _reason(error, tally, method, asked)})
        else:
            total += len(rule.rows)
            if total > MOST_ROWS and asked.threshold != audit.threshold:
                break
            found.append({**one, "rule": compact(tally.groups, rule)})
    return found


def _given_settings(audit: Audit) -> list[tuple[str, Asked]]:
    """What each method is made for; what may be left out for lack of room comes last."""
    own, tolerance = audit.threshold, audit.feasibility.tolerance
    costs = {str(cost): cost for cost in (audit.cost, as_cost("fpr"), as_cost("fnr"))}
    # The cost and the tolerance matter only to coarsen.
    found = [
        ("coarsen", Asked(*settings))
        for settings in product(sorted({own, 0.5}), costs.values(), sorted({0.0, tolerance}))
    ]
    for method in ("equalize_odds", "reconcile"):
        found += [(method, Asked(at, audit.cost, 0.0)) for at in sorted({own, *TENTHS})]

    def order(one: tuple[str, Asked]) -> tuple[bool, float]:
        away = abs(one[1].threshold - own)
        return one[0] == "reconcile" and away > 0, away

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
    kept = ("method", "cost", "settings", "coin", "rows", "notes")
    return {name: content[name] for name in kept}
