"""A verdict in words: which sentences are said, in which order, and what they are filled with.

The headline gives the reason of the verdict, the details the numbers behind it, and the notes
what else a reader should know.  Nothing after the headline contradicts it.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isocost.groups import Group, names_of, shown_names
from isocost.verdict.judgement import CALIBRATED, MIN_LABEL, Candidate, RepairChoice
from isocost.verdict.sentences import (
    SENTENCES,
    Name,
    Sentence,
    fill,
    joined,
    number,
    percent,
    plain,
    round_down,
    round_up,
    signed,
)

if TYPE_CHECKING:
    from isocost.measures.audit import Audit
    from isocost.measures.feasibility import Feasibility

FEW = 3
"""So many groups are named in a sentence; the table has all."""

MOST_SHARES = 4
"""With more groups to change than this, a sentence names only those that lose most."""


@dataclass(frozen=True)
class Statement:
    """What is said about an audit."""

    headline: Sentence
    details: list[Sentence]
    notes: list[Sentence]


def statement(
    audit: Audit, names: Mapping[Group, Name] | None = None, data: str | None = None
) -> Statement:
    """The verdict on an audit in words; groups may be given other names.

    Advice names functions, or with ``data``, the words of a command line that stand for the
    data and its columns, commands.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> print(plain(statement(ic.audit(compas(), "fpr")).headline))
    Errors are more costly for African-American than for Caucasian, and no calibrated repair can \
make the costs equal.
    """
    if names is None:
        names = {group: Name(name) for group, name in shown_names(audit.groups).items()}
    calls = commands(audit, data)
    return Statement(
        _headline(audit, names),
        list(_details(audit, names, calls)),
        list(_notes(audit, names, calls)),
    )


def told(audit: Audit) -> str:
    """The whole statement as text, a sentence per line."""
    said = statement(audit)
    return "\n".join(plain(one) for one in (said.headline, *said.details, *said.notes))


def commands(audit: Audit, data: str | None = None) -> dict[str, str]:
    """How to plan, and how to repair by each method, with the settings of the audit.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> commands(ic.audit(compas(), "fpr"))["plan"]
    'ic.plan(tally, "fpr", detect=0.087)'
    >>> commands(ic.audit(compas(), "fpr"), "data.csv")["reconcile"]
    'isocost fit data.csv --method reconcile -o reconcile.json'
    """
    difference = audit.disparity.difference
    # What was seen is what one would like to know about; of few people it says nothing.
    detect = f"{difference:.2g}" if audit.verdict.enough and 0 < difference < 1 else "0.05"
    if data is None or audit.cost.is_per_group:
        return _python_calls(audit, detect)
    names, tolerance = names_of(audit.groups), audit.feasibility.tolerance
    small = [names[group] for group in audit.groups if group not in audit.compared]
    # A rule is for groups that it can be made for.
    large = " ".join([data, *(shlex.quote(f"--drop-group={name}") for name in small)])
    cost = f" --cost {audit.cost}"
    goal = f"{cost} --tolerance {tolerance:g}" if tolerance else cost
    at = f" --threshold {audit.threshold:g}" if audit.threshold != 0.5 else ""
    options = {"withhold": goal, "coarsen": goal + at, "reconcile": at, "odds": at}
    fits = {
        method: f"isocost fit {large} --method {method}{more} -o {method}.json"
        for method, more in options.items()
    }
    across = fits["coarsen"].replace(" -o coarsen", " --allow-decision-changes -o coarsen")
    plan = f"isocost plan {data}{cost} --detect {detect}"
    return {"plan": plan, "coarsen_decisions": across, "unseen": fits["withhold"], **fits}


def _python_calls(audit: Audit, detect: str) -> dict[str, str]:
    tolerance, at = audit.feasibility.tolerance, ""
    cost = "cost" if audit.cost.is_per_group else f'"{audit.cost}"'
    large = "tally" if len(audit.compared) == len(audit.groups) else "tally.select(audit.compared)"
    goal = f"{large}, {cost}, tolerance={tolerance:g}" if tolerance else f"{large}, {cost}"
    if audit.threshold != 0.5:
        at = f", threshold={audit.threshold:g}"
    return {
        "plan": f"ic.plan(tally, {cost}, detect={detect})",
        "withhold": f"ic.withhold({goal})",
        "coarsen": f"ic.coarsen({goal}{at.replace('threshold', 'thresholds')})",
        "coarsen_decisions": f"ic.coarsen({goal}, allow_decision_changes=True)",
        "reconcile": f"ic.reconcile({large}{at})",
        "odds": f"ic.equalize_odds({large}{at})",
        "unseen": f"ic.unseen({large}, ic.withhold({goal}))",
    }


def _headline(audit: Audit, names: Mapping[Group, Name]) -> Sentence:
    return headline(
        audit.verdict.reason,
        [names[group] for group in audit.verdict.highest],
        names[audit.disparity.lowest],
        len(audit.compared),
        audit.feasibility.tolerance,
        changed=changed_groups(audit.feasibility.changed, names),
        off=_listed([names[group] for group in _miscalibrated(audit)]),
    )


def headline(
    reason: str,
    highest: Sequence[Name],
    lowest: Name,
    groups: int,
    tolerance: float,
    **fields: str | Name | Sentence,
) -> Sentence:
    """The sentence that gives the reason of a verdict on so many groups.

    ``highest`` are those that may be the costliest.
    """
    kind = {"unreachable": "uncertain"}.get(reason, reason)
    if tolerance:
        kind = {"equal": "within", "repair": "closer"}.get(kind, kind)
    if reason == "unestablished" and groups > 2:
        kind = "unestablished_many"
    high: str | Name | Sentence = joined(highest[:FEW], SENTENCES["or"])
    form = "costlier" if groups == 2 else "costliest"
    if len(highest) > FEW:
        form = "costlier_some"
    costlier = fill(SENTENCES[form], high=high, low=lowest)
    return fill(
        SENTENCES[f"headline_{kind}"], tolerance=f"{tolerance:g}", costlier=costlier, **fields
    )


def chosen(
    choice: RepairChoice, candidates: Sequence[Candidate], what: Mapping[str, str], audit: Audit
) -> str:
    """Which repair to take and why, or why none; ``what`` each of them makes equal, in words."""
    methods = [name for name, code in choice.standings.items() if code == choice.reason]
    if choice.method is None:
        names = {group: Name(name) for group, name in shown_names(audit.groups).items()}
        off = _listed([names[group] for group in _miscalibrated(audit)]) or ["some groups"]
        kind = {"uncalibrated": "unsound"}.get(choice.reason, choice.reason)
        listed = joined(methods, SENTENCES["or"])
        return plain(fill(SENTENCES[f"choice_{kind}"], off=off, methods=listed))
    taken = next(one for one in candidates if one.method == choice.method)
    coin = "choice_coin" if round(taken.by_coin, 3) else "choice_no_coin"
    costs = fill(
        SENTENCES["choice_costs"],
        cost_expected=number(taken.cost_expected),
        cost_unrepaired=number(taken.cost_unrepaired),
    )
    # Where it is the cost that becomes equal, the first sentence says so already.
    is_cost = taken.expected == taken.cost_expected
    return plain(
        fill(
            SENTENCES["choice_fit"] + ("" if is_cost else " {costs}"),
            costs=costs,
            method=taken.method,
            what=what[taken.method],
            expected=number(taken.expected),
            unrepaired=number(taken.unrepaired),
            among=SENTENCES["choice_best" if len(methods) > 1 else "choice_only"],
            calibration=SENTENCES[
                "choice_calibrated" if taken.calibrated else "choice_uncalibrated"
            ],
            accuracy=number(taken.accuracy),
            unrepaired_accuracy=number(taken.unrepaired_accuracy),
            changed=percent(taken.changed),
            coin=SENTENCES[coin].format(share=percent(taken.by_coin)),
        )
    )


def _listed(names: Sequence[Name]) -> Sentence:
    """The names of a few groups; of more, how many they are."""
    return joined(names) if len(names) <= FEW else fill(SENTENCES["several"], count=str(len(names)))


def _miscalibrated(audit: Audit) -> list[Group]:
    """The groups that are shown to be off, the worst first."""
    floors = {group: audit.gap_floor(group) for group in audit.compared}
    off = [group for group in floors if floors[group] > CALIBRATED]
    return sorted(off, key=lambda group: -floors[group])


def _details(
    audit: Audit, names: Mapping[Group, Name], calls: Mapping[str, str]
) -> Iterator[Sentence]:
    reason = audit.verdict.reason
    if reason == "few":
        large = SENTENCES["few_one" if audit.verdict.findings.groups == 1 else "few_none"]
        yield fill(SENTENCES["few_groups"], large=large, **_limits(audit))
        yield fill(SENTENCES["few_next"], **calls)
    elif reason == "uncalibrated":
        yield from _calibration(audit, names)
    else:
        yield from _costs(audit, names, reason, calls)


def _limits(audit: Audit) -> dict[str, str]:
    return {"min_group": f"{audit.min_group:,}", "min_label": str(MIN_LABEL)}


def _calibration(audit: Audit, names: Mapping[Group, Name]) -> Iterator[Sentence]:
    off = _miscalibrated(audit)
    kind = "off_group" if audit.verdict.findings.intervals else "off_group_measured"
    for group in off[:FEW]:
        m = audit.groups[group]
        yield fill(
            SENTENCES[kind],
            group=names[group],
            gap=number(m.calibration_gap),
            floor=number(audit.gap_floor(group)),
            way=SENTENCES["too_low" if m.mean_score < m.base_rate else "too_high"],
            bias=number(m.calibration_gap_bound),
        )
    if len(off) > FEW:
        yield fill(SENTENCES["off_more"], count=str(len(off) - FEW))
    yield fill(SENTENCES["off_next"])


def _ends(audit: Audit, names: Mapping[Group, Name]) -> dict[str, Any]:
    """The two groups that a sentence is about, and what their errors cost."""
    d = audit.disparity
    return {
        "high": names[d.highest],
        "low": names[d.lowest],
        "high_cost": number(audit.groups[d.highest].cost),
        "low_cost": number(audit.groups[d.lowest].cost),
    }


def _costs(
    audit: Audit, names: Mapping[Group, Name], reason: str, calls: Mapping[str, str]
) -> Iterator[Sentence]:
    reach, ends = audit.feasibility, _ends(audit, names)
    if reason == "equal":
        yield fill(SENTENCES["lede_equal"], **ends)
    elif reason == "unestablished":
        many = "_many" if len(audit.compared) > 2 else ""
        yield fill(
            SENTENCES[f"lede_unestablished{many}"],
            **ends,
            **_span(audit),
            more_data=more_data(audit, calls["plan"]),
        )
    elif audit.verdict.act:
        exact = "" if reach.tolerance else "_exact"
        yield fill(
            SENTENCES[f"lede_repair{exact}"],
            **ends,
            tolerance=f"{reach.tolerance:g}",
            shares=_shares(reach, names),
        )
    if reason == "unhelpful":
        yield fill(SENTENCES["lede_unhelpful"], **_outlook(audit))
    if reason in ("infeasible", "unreachable", "uncertain"):
        yield from _out_of_reach(audit, names, reason)


def _out_of_reach(audit: Audit, names: Mapping[Group, Name], reason: str) -> Iterator[Sentence]:
    reach, ends = audit.feasibility, _ends(audit, names)
    blocked = blocked_group(reach)
    if reason == "infeasible":
        yield fill(
            SENTENCES["lede_infeasible"],
            **ends,
            blocked=names[blocked],
            blocked_cost=number(reach.costs[blocked]),
            ceiling=number(reach.ceiling(blocked)),
            short=number(reach.smallest_tolerance - reach.tolerance),
        )
    else:
        findings = audit.verdict.findings
        yield fill(
            SENTENCES["lede_uncertain"],
            **ends,
            blocked=names[blocked],
            tolerance=f"{reach.tolerance:g}",
            excess=signed(findings.excess + reach.tolerance),
            excess_low=signed(findings.excess_low + reach.tolerance),
            excess_high=signed(findings.excess_high + reach.tolerance),
        )
    if not reach.feasible:
        required = reach.required_cost + reach.tolerance
        yield fill(
            SENTENCES["way_out"],
            high=_listed([names[g] for g, cost in reach.costs.items() if cost > required]),
            required=round_down(required),
            smallest=round_up(reach.smallest_tolerance),
        )


def _outlook(audit: Audit) -> dict[str, str]:
    """How far costs are expected to differ among new people."""
    findings = audit.verdict.findings
    return {"expected": number(findings.expected), "unrepaired": number(findings.unrepaired)}


def _span(audit: Audit) -> dict[str, str]:
    """The interval that decides whether costs differ: of two groups signed, of more the largest."""
    if audit.intervals is None:
        low = high = audit.disparity.difference
    elif len(audit.compared) == 2:
        low, high = audit.intervals.differences["cost"]
    else:
        low, high = audit.intervals.disparities["cost"]
    return {"span_low": signed(low), "span_high": signed(high)}


def more_data(audit: Audit, plan: str) -> str:
    """How much more data would settle whether costs differ; ``plan`` tells of each group."""
    difference = audit.disparity.difference
    low = audit.intervals.disparities["cost"][0] if audit.intervals else difference
    if audit.intervals and len(audit.compared) == 2:
        low = audit.intervals.differences["cost"][0]
    if difference <= 0 or low >= difference:
        return SENTENCES["more_data_some"]
    # The width of an interval falls with the square root of the rows.
    times = max(2, math.ceil(((difference - low) / difference) ** 2))
    if times > 1000:
        return SENTENCES["more_data_none"]
    return SENTENCES["more_data"].format(times=times, plan=plan)


def blocked_group(reach: Feasibility) -> Group:
    """The group that is furthest from where it would have to be."""
    others = [group for group in reach.costs if group != reach.target_group]
    return min(reach.unreachable or others, key=reach.ceiling)


def changed_groups(changed: Sequence[Group], names: Mapping[Group, Name]) -> str | Name | Sentence:
    """The groups whose scores are to be changed."""
    if len(changed) == 1:
        return names[changed[0]]
    return fill(SENTENCES["several"], count=str(len(changed)))


def _shares(reach: Feasibility, names: Mapping[Group, Name]) -> Sentence:
    changed = list(reach.changed)
    if len(changed) > MOST_SHARES:
        changed = sorted(changed, key=lambda group: -reach.alpha[group])[: MOST_SHARES - 1]
    shares: list[str | Name | Sentence] = [
        fill(SENTENCES["share_of"], share=percent(reach.alpha[group]), group=names[group])
        for group in changed
    ]
    if len(reach.changed) > len(changed):
        more = str(len(reach.changed) - len(changed))
        shares.append(fill(SENTENCES["share_of_more"], count=more))
    return joined(shares)


def reading_notes(reading: Mapping[str, str]) -> Iterator[Sentence]:
    """How the data were read, where that is not the usual way; see :class:`isocost.Tally`."""
    for name, value in reading.items():
        if name != "scale":
            yield fill(SENTENCES[f"read_{name}"], value=repr(value) if name == "sheet" else value)
            continue
        rank = re.fullmatch(r"rank:(-?\d+)-(-?\d+)", value)
        if rank:
            size = str(int(rank[2]) - int(rank[1]) + 1)
            yield fill(SENTENCES["read_rank"], low=rank[1], high=rank[2], size=size)
        else:
            yield fill(SENTENCES.get(f"read_{value}", SENTENCES["read_scale"]), value=value)


def _notes(
    audit: Audit, names: Mapping[Group, Name], calls: Mapping[str, str]
) -> Iterator[Sentence]:
    verdict, reach, cost = audit.verdict, audit.feasibility, audit.cost
    yield from reading_notes(audit.tally.reading)
    if verdict.reason not in ("few", "uncalibrated"):
        yield _calibrated(audit, names)
    if verdict.established and verdict.enough and audit.intervals is not None:
        difference = number(audit.disparity.difference)
        many = "_many" if len(audit.compared) > 2 else ""
        template = SENTENCES[f"lede_difference{many}"]
        yield fill(template, difference=difference, **_span(audit))
    if verdict.act:
        yield from _withheld(audit, names)
        kind = "advice_repair" if audit.coarsenable else "advice_repair_decisions"
        yield fill(SENTENCES[kind], threshold=f"{audit.threshold:g}", **calls)
        yield fill(SENTENCES[f"helps_{verdict.helps}"], **calls, **_outlook(audit))
    if verdict.reason in ("infeasible", "unreachable", "uncertain", "repair"):
        if audit.reconcilable:
            yield fill(SENTENCES["advice_reconcile"], threshold=f"{audit.threshold:g}", **calls)
        yield fill(SENTENCES["advice_odds"], **calls)
    untold = [group for group in reach.uninformative if _tells_nothing(audit, group)]
    if untold:
        groups = _listed([names[group] for group in untold])
        yield fill(SENTENCES["note_uninformative"], groups=groups)
    small = [names[group] for group in audit.groups if group not in audit.compared]
    if small:
        listed: list[str | Name | Sentence] = [*small[:FEW]]
        if len(small) > FEW:
            listed.append(fill(SENTENCES["others"], count=str(len(small) - FEW)))
        yield fill(SENTENCES["note_small"], groups=joined(listed), **_limits(audit))
    if cost.by_base_rate and not isinstance(cost.fp, Mapping) and cost.fp != cost.fn:
        yield fill(SENTENCES["note_weights"], cost=str(cost))


def _tells_nothing(audit: Audit, group: Group) -> bool:
    """Whether a cost that is not below the trivial one is more than chance, or exactly that."""
    numbers = audit.groups[group]
    if not audit.verdict.enough:
        return False
    if audit.intervals is None or numbers.cost <= numbers.trivial_cost:
        return True
    return numbers.intervals["cost"][0] > numbers.intervals["trivial_cost"][1]


def _calibrated(audit: Audit, names: Mapping[Group, Name]) -> Sentence:
    if audit.verdict.calibrated == "yes":
        return fill(SENTENCES["calibrated_yes"])

    def largest(group: Group) -> float:
        return audit.groups[group].intervals["calibration_gap"][1]

    worst = max(audit.compared, key=largest)
    gap = number(largest(worst))
    return fill(SENTENCES["calibrated_unknown"], gap=gap, group=names[worst])


def _withheld(audit: Audit, names: Mapping[Group, Name]) -> Iterator[Sentence]:
    """The intervals of the shares."""
    if audit.intervals is None:
        return
    alpha = audit.feasibility.alpha
    for group in sorted(audit.feasibility.changed, key=lambda group: -alpha[group])[:FEW]:
        low, high = audit.intervals.alpha[group]
        kind = "advice_share" if high <= 1 else "advice_share_open"
        ends = {"low": percent(low), "high": percent(high)}
        yield fill(SENTENCES[kind], group=names[group], **ends)
