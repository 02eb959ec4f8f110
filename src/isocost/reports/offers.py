"""The repairs of the page: those it is given or offers, what each does, and where it can be had.

The page computes ``withhold`` for any settings.  The others are made here, in advance and for a
few settings, from the bins that the page holds, so that they reveal nothing that it hides.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from isocost.checks import finite_or_none
from isocost.costs import Cost, as_cost
from isocost.errors import DeferralWarning, InfeasibleError, InfeasibleWarning, IsocostError
from isocost.grid import TENTHS
from isocost.groups import Group, shown_names
from isocost.measures.audit import Audit
from isocost.measures.audit import audit as measure
from isocost.measures.bounds import bounds
from isocost.measures.feasibility import Feasibility
from isocost.measures.rates import require_all_decided
from isocost.repairs.compare import Compared, compare
from isocost.repairs.composition import named_rules
from isocost.repairs.deferrability import Deferral
from isocost.repairs.deferral import FEWEST_DECIDED
from isocost.repairs.reconcilability import Reconcilability
from isocost.repairs.reconcile import ReconcilableAt, reconcilable
from isocost.repairs.registry import REPAIRS, Repair
from isocost.repairs.unseen import NUMBERS, Outlook, is_made_from, unseen
from isocost.reports.facts import COSTS, THRESHOLD_HEADS, WORDS, spoken_names
from isocost.reports.payload import PAGE_REPLICATES, safe_group, snapped, undecided
from isocost.rules import Rule
from isocost.tallies import Tally
from isocost.verdict.sentences import Figures, fill, percent, round_up
from isocost.verdict.wording import figures_of

MOST_ROWS = 2400
"""With more rows than this, rules for thresholds other than the audit's are left out."""

MOST_HANDED = 12
"""With more groups than this the page hands nobody over by itself: its rows would fill it."""

MOST_RECONCILED = 8
"""With more groups than this, the table of thresholds is left out: it takes long to make."""

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
        return [
            Offer(_told(name, rule, audit.tally), rule) for name, rule in named_rules(given).items()
        ]
    asked = Asked(audit.threshold, audit.cost, audit.feasibility.tolerance)
    repairs = (repair for repair in REPAIRS.values() if not repair.defers)
    return [_attempt(audit.tally, repair, asked) for repair in repairs]


def handing_over(tally: Tally) -> Offer:
    r"""A rule that hands over slightly more people than it takes to make the others equal.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> handing_over(compas()).label
    'Hand over, 24.0\xa0% handed over'
    """
    repair = REPAIRS["hand_over"]
    words = repair.sentence, repair.keeps
    if len(tally.groups) > MOST_HANDED:
        told = WORDS["hand_over_many"].format(most=MOST_HANDED)
        return Offer(repair.title, None, *words, told)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeferralWarning)
            rule = _fewest_handed_over(repair, tally)
    except IsocostError:
        told = WORDS["not_feasible"].format(why=WORDS["no_share"])
        return Offer(repair.title, None, *words, told)
    # Nothing can be measured of a group with less than one person of a label.
    if (rule.expected(tally).totals.n < 1.0).any():
        told = WORDS["not_feasible"].format(why=WORDS["nobody_left"])
        return Offer(repair.title, None, *words, told)
    return Offer(_told(repair.title, rule, tally), rule, *words)


def _fewest_handed_over(repair: Repair, tally: Tally) -> Rule:
    try:
        return repair.make_with(tally, share=0.0)
    except InfeasibleError as error:
        reach = error.feasibility
        if not isinstance(reach, Deferral) or math.isnan(reach.smallest_share):
            raise
    # With the very least nothing is left to choose; half a percent leaves scores that tell more.
    share = math.ceil(100.0 * reach.smallest_share + 0.5) / 100.0
    return repair.make_with(tally, share=min(share, 1.0 - FEWEST_DECIDED))


def _told(name: str, rule: Rule, tally: Tally) -> str:
    """The name of a rule; with the share it hands over, as its numbers are of the others."""
    if not rule.defers:
        return name
    after = rule.expected(tally)
    require_all_decided(after)
    return WORDS["deferring"].format(repair=name, share=percent(after.share_handed_over))


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
    if not isinstance(error, InfeasibleError) or isinstance(error.feasibility, Deferral):
        return f"{problem.name} {problem.rule}"
    if coarsens:
        return WORDS["needs_tolerance"].format(smallest=round_up(_coarsest(tally, asked)))
    return _needed(error.feasibility)


def _needed(reach: Feasibility | Reconcilability) -> str:
    """What it would take, in words."""
    corner = reach.corner if isinstance(reach, Reconcilability) else None
    if corner is None:
        return WORDS["needs_tolerance"].format(smallest=round_up(reach.smallest_tolerance))
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


def repair_rows(audit: Audit, offers: list[Offer], decided: bool = True) -> list[dict[str, Any]]:
    """The lines of the table that puts repairs side by side, the present scores first.

    What depends on who is at or above the threshold is left out unless ``decided``.
    """
    keyed = {"original": Offer("As it is", None), **{str(i): o for i, o in enumerate(offers)}}
    rules = {key: offer.rule for key, offer in keyed.items() if offer.rule is not None}
    compared = compare(audit.tally, rules, audit.cost, audit.threshold).rules
    return [
        {
            "label": offer.label,
            "does": offer.does,
            "keeps": offer.keeps,
            "why": offer.why,
            **(_line(compared[key], figures_of(audit), decided) if key in compared else {}),
        }
        for key, offer in keyed.items()
    ]


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


def outlook_rows(
    audit: Audit, offers: list[Offer], given: bool, decided: bool = True
) -> list[dict[str, Any]]:
    """The lines of the table of people not seen: each rule fitted, expected and at most.

    Without rules ``given``, and with many groups, only the repairs that equalize a cost: the
    others would take too long.
    """
    rows = []
    for one in offers:
        rule = one.rule
        if rule is None or not rule.rows or not is_made_from(rule, audit.tally):
            continue
        goal = "rates" if rule.cost is None else "cost"
        few = len(rule.groups) <= MOST_RECONCILED and not rule.defers
        if given or goal == "cost" or few:
            numbers = unseen(audit.tally, rule, PAGE_REPLICATES[goal])
            cells = [
                _three(getattr(numbers, name), name, figures_of(audit), decided)
                for name in told_of(offers if given else [])
            ]
            expected = finite_or_none(numbers.cost_difference.expected)
            told = {"cells": cells, "notes": numbers.notes(), "expected": expected}
            rows.append({"label": one.label, **told})
    return rows


def told_of(offers: list[Offer]) -> dict[str, str]:
    """What the table of people not seen tells of rules, by name and title."""
    deferring = any(one.rule is not None and one.rule.defers for one in offers)
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
    points = reconcilable(tally, thresholds).points
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
    proven = bounds(audit.tally.select(groups), audit.cost)
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
    for repair, asked in _given_settings(audit):
        if undecided(held, tally.grid, asked.threshold):
            continue
        of_cost = repair.goal == "cost"
        setting = {
            "method": repair.function,
            "threshold": asked.threshold,
            "cost": str(asked.cost) if of_cost else None,
            "tolerance": asked.tolerance if of_cost else None,
        }
        try:
            rule = snapped(_made(repair, tally, asked), tally, held)
        except IsocostError as error:
            why = WORDS["not_feasible"].format(why=_reason(error, tally, repair, asked))
            repairs.append({**setting, "rule": None, "why": why})
        else:
            total += len(rule.rows)
            if total > MOST_ROWS and asked.threshold != audit.threshold:
                break
            repairs.append({**setting, "rule": compact(tally.groups, rule)})
    return [*repairs, _given_handing_over(tally, held)]


def _given_handing_over(tally: Tally, held: dict[str, Any]) -> dict[str, Any]:
    """As in `given_repairs`; where everything is equal, the threshold does not matter."""
    offer, any_setting = handing_over(tally), dict.fromkeys(("threshold", "cost", "tolerance"))
    given = {"method": REPAIRS["hand_over"].function, **any_setting, "label": offer.label}
    if offer.rule is None:
        many = len(tally.groups) > MOST_HANDED
        return {**given, "rule": None, "why": offer.why, "elsewhere": many}
    return {**given, "rule": compact(tally.groups, snapped(offer.rule, tally, held))}


def _given_settings(audit: Audit) -> list[tuple[Repair, Asked]]:
    """What each repair is made for; what may be left out for lack of room comes last."""
    own, tolerance = audit.threshold, audit.feasibility.tolerance
    costs = {str(cost): cost for cost in (audit.cost, as_cost("fpr"), as_cost("fnr"))}
    pairs: list[tuple[Repair, Asked]] = []
    for repair in REPAIRS.values():
        if repair.name in COMPUTED or repair.defers:
            continue
        if repair.goal == "cost":
            settings = product(sorted({own, 0.5}), costs.values(), sorted({0.0, tolerance}))
            pairs += [(repair, Asked(*each)) for each in settings]
        else:
            pairs += [(repair, Asked(at, audit.cost, 0.0)) for at in sorted({own, *TENTHS})]

    def order(pair: tuple[Repair, Asked]) -> tuple[bool, float]:
        repair, asked = pair
        away = abs(asked.threshold - own)
        # Rules with many rows are left out first.
        return repair.name == "reconcile" and away > 0, away

    return sorted(pairs, key=order)


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
