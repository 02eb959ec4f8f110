"""The repairs that a report compares, made at the audit's own settings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from isocost.errors import InfeasibleError, InfeasibleWarning, IsocostError
from isocost.grid import TENTHS
from isocost.measure.audit import Audit
from isocost.measure.audit import audit as measure
from isocost.measure.feasibility import Feasibility, round_up
from isocost.repair.coarsen import coarsen
from isocost.repair.compare import Compared, compare, named_rules
from isocost.repair.reconcile import Reconcilability, reconcile
from isocost.repair.registry import REPAIRS, Repair
from isocost.rules import Rule
from isocost.show.merging import page_tally, snapped, undecided
from isocost.show.sentences import number, percent, shown_names
from isocost.show.words import WORDS
from isocost.tallies import Tally

__all__ = ["Option", "compact", "options_of", "reconciled", "repair_rows"]

MOST_ROWS = 4000
"""With more rows than this over all thresholds, only the audit's own is precomputed."""


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
        return [Option(name, rule) for name, rule in named_rules(given).items()]
    cost, at = audit.cost, audit.threshold
    # The audit's tolerance is one of costs; rates are made equal without one.
    costs = {"cost": cost, "tolerance": audit.feasibility.tolerance}
    return [
        _attempt(audit, repair, {"threshold": at, **(costs if repair.goal == "cost" else {})})
        for repair in REPAIRS.values()
    ]


def _attempt(audit: Audit, repair: Repair, settings: Mapping[str, Any]) -> Option:
    words = repair.sentence, repair.keeps
    try:
        return Option(repair.title, repair.make_with(audit.tally, **settings), *words)
    except InfeasibleError as error:
        why = _needed(error.feasibility)
        if repair.name == "coarsen":
            why = WORDS["needs_tolerance"].format(smallest=round_up(_coarsest(audit)))
    except IsocostError as error:
        problem = error.problems[0]
        why = f"{problem.name} {problem.rule}"
        if problem.name == "decisions":
            least = _coarsest(audit)
            why = WORDS["needs_tolerance_decisions"].format(smallest=round_up(least))
    told = WORDS["not_feasible"].format(why=why)
    return Option(repair.title, None, *words, told)


def _needed(found: Feasibility | Reconcilability) -> str:
    """What it would take, in words."""
    corner = found.corner if isinstance(found, Reconcilability) else None
    if corner is None:
        return WORDS["needs_tolerance"].format(smallest=round_up(found.smallest_tolerance))
    if math.isnan(corner.tolerance):
        return WORDS["no_tolerance"].format(selected=corner.selected)
    smallest = round_up(corner.tolerance)
    return WORDS["needs_selecting"].format(selected=corner.selected, smallest=smallest)


def _coarsest(audit: Audit) -> float:
    """How far costs still differ when coarsening does all it can without changing decisions."""
    tally, tolerance = audit.tally, audit.feasibility.tolerance
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)
        rule = coarsen(tally, audit.cost, (audit.threshold,), tolerance, "closest")
    after = measure(rule.expected(tally), audit.cost, audit.threshold, confidence=None)
    return after.disparity.difference


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


def reconciled(shown: Tally, held: dict[str, Any], threshold: float) -> list[dict[str, Any]]:
    """What reconcile gives at the audit's threshold and at the tenths; the page cannot solve it.

    It is computed from the bins that the page has: a level of fewer people would tell of them.
    """
    tally = page_tally(shown, held)
    found: list[dict[str, Any]] = []
    total = 0
    for at in (threshold, *(tenth for tenth in TENTHS if tenth != threshold)):
        if total > MOST_ROWS:
            break
        if undecided(held, tally.grid, at):
            continue
        try:
            rule = snapped(reconcile(tally, at), tally, held)
        except InfeasibleError as error:
            found.append({"threshold": at, "rule": None, "why": _needed(error.feasibility)})
        except IsocostError:
            # Python's own table says why, if it is the audit's threshold.
            continue
        else:
            total += len(rule.rows)
            found.append({"threshold": at, "rule": compact(tally, rule)})
    return found


def compact(tally: Tally, rule: Rule) -> dict[str, Any]:
    """A rule for the page: rows are [place of the group, lo, hi, value or null, probability].

    Places instead of groups, because JavaScript does not know 1.0 from 1.
    """
    content = rule.to_dict()
    places = {group: place for place, group in enumerate(tally.groups)}
    content["rows"] = [
        [places[row.group], row.lo, row.hi, row.value, row.probability]
        for row in rule.rows
        if row.group in places
    ]
    kept = ("method", "cost", "settings", "coin", "rows", "notes")
    return {name: content[name] for name in kept}
