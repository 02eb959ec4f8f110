"""Whether the data support a repair: what the verdict says before a rule is made and used.

Functions that make rules warn and write the doubt into the rule; ``isocost fit`` refuses.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from isocost.checks import check_numbers
from isocost.costs import Cost, CostLike
from isocost.errors import (
    IsocostWarning,
    NotAdvisedError,
    Problem,
    UncalibratedWarning,
    UncertainWarning,
    listing,
    setting,
    spoken,
)
from isocost.groups import Group, names_of, shown_names, to_json
from isocost.measures.calibration import gap_equal_width, levels_of
from isocost.measures.feasibility import fitted_groups, large_groups
from isocost.measures.intervals import disparity_intervals, gap_floors
from isocost.measures.rates import base_rate, disparity, group_costs, lacking
from isocost.measures.table import MEASURES
from isocost.question import DEFAULT, Question
from isocost.tallies import DataOptions, Tally, TallyLike, as_tally
from isocost.verdict.judgement import CALIBRATED, MIN_LABEL, Findings, judge
from isocost.verdict.sentences import SENTENCES, fill, plain, round_up
from isocost.verdict.wording import FEW

if TYPE_CHECKING:
    from isocost.promises import Promise
    from isocost.rules import Rule

Make = TypeVar("Make", bound=Callable[..., Any])

DOUBTS: dict[str, type[IsocostWarning]] = {
    "few": UncertainWarning,
    "small": UncertainWarning,
    "uncalibrated": UncalibratedWarning,
    "unestablished": UncertainWarning,
}
"""The reasons for which a repair is not advised although one can be made, and what is warned of."""


def reason_on(tally: Tally, promise: Promise, cost: CostLike | None = None) -> str:
    """The reason of the verdict on what a rule promises to make equal.

    It is what an audit would say, from the few numbers that decide it.  Whether equal cost is
    feasible is not asked, since there is a rule; calibration is asked for only if the repaired
    scores are to be calibrated.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> reason_on(compas(), ic.reconcile(compas()).promise)
    'repair'
    """
    groups = large_groups(tally, DEFAULT.min_group)
    findings = Findings(len(groups), 0.0, math.nan, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if len(groups) < 2:
        return judge(findings).reason
    question = _question_of(promise, cost).among(tally.groups)
    differences = _differences(tally, promise, question, groups)
    findings = replace(
        findings,
        gap_low=_largest_floor(tally, groups) if promise.calibrated else 0.0,
        difference=max(differences.values(), default=0.0),
        tolerance=max(promise.asked.values(), default=0.0),
    )
    if (reason := judge(findings).reason) != "unestablished":
        return reason
    spans = disparity_intervals(tally, question, differences, groups)
    low = max(span[0] for span in spans.values())
    return judge(replace(findings, difference_low=low)).reason


def _question_of(promise: Promise, cost: CostLike | None) -> Question:
    """The question that a rule answers, as far as it has a cost and a threshold of its own."""
    own = {"cost": cost, "threshold": promise.threshold}
    return DEFAULT.but(**{name: value for name, value in own.items() if value is not None})


def _differences(
    tally: Tally, promise: Promise, question: Question, groups: Sequence[Group]
) -> dict[str, float]:
    """How far apart the groups are in what a rule makes equal."""
    indices = [tally.index_of(group) for group in groups]
    columns = {
        name: group_costs(tally.totals, tally.groups, question.cost)
        if name == "cost"
        else MEASURES[name].of(tally.kinds(question.threshold))
        for name in promise.equal
    }
    return {name: disparity(groups, column[indices]).difference for name, column in columns.items()}


def _largest_floor(tally: Tally, groups: Sequence[Group]) -> float:
    """The calibration gap that some group has at least."""
    levels = [levels_of(tally, tally.index_of(group)) for group in groups]
    # No gap is above the one measured, so only a large one has to be looked at closely.
    large = [one for one in levels if gap_equal_width(one) > CALIBRATED]
    return max(gap_floors(large, len(tally.groups), DEFAULT)) if large else 0.0


def doubt_of(tally: Tally, promise: Promise, cost: CostLike | None = None) -> tuple[str, str]:
    """The reason why the data do not support the repair, and the sentence; empty if they do.

    A verdict is about the groups that are large enough; a rule is about all of them.
    """
    reason = reason_on(tally, promise, cost)
    large = set(large_groups(tally, DEFAULT.min_group))
    small = [name for group, name in shown_names(tally.groups).items() if group not in large]
    if small and reason != "few":
        reason = "small"
    if reason not in DOUBTS:
        return "", ""
    listed = f"{len(small)} groups" if len(small) > FEW else " and ".join(small)
    fields = {"what": titles_of(promise), "groups": listed, "min_group": DEFAULT.min_group}
    return reason, SENTENCES[f"doubt_{reason}"].format(**fields, min_label=MIN_LABEL)


def titles_of(promise: Promise) -> str:
    """What a rule makes equal, in words."""
    names = promise.equal
    return " and ".join(MEASURES[name].title if name in MEASURES else name for name in names)


def heed(rule: Rule, tally: Tally, stacklevel: int | None = 2) -> Rule:
    """The rule, with a note if the data do not support it, and a warning if there is a level."""
    if not rule.rows:
        return rule
    reason, doubt = doubt_of(tally.select(rule.fitted), rule.promise, rule.cost)
    if not doubt:
        return rule
    if stacklevel is not None:
        warnings.warn(doubt, DOUBTS[reason], stacklevel=stacklevel + 1)
    return replace(rule, notes=(*rule.notes, doubt))


def require_support(tally: Tally, promise: Promise, cost: CostLike | None = None) -> None:
    """Raise :class:`isocost.NotAdvisedError` if the data do not support what a rule promises."""
    reason, doubt = doubt_of(tally, promise, cost)
    if doubt:
        raise not_advised("must be supported by the data", doubt, reason)


def not_advised(rule: str, doubt: str, reason: str) -> NotAdvisedError:
    """The error for a repair that can be made but should not be."""
    step = plain(fill(SENTENCES[f"doubt_{reason}_next"]))
    step += spoken("", "; or pass --anyway")
    return NotAdvisedError(Problem("repair", rule, doubt, step))


SAME = 1e-12
"""A score that moves by no more than this has not moved."""


def share_changed(tally: Tally, rule: Rule) -> float:
    """The share of people whose score changes; the same as in :func:`changes`, and faster.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> round(share_changed(compas(), ic.withhold(compas(), "fpr", 0.07)), 4)
    0.2072
    """
    cells = tally.cells
    scores, changed = cells.wh / cells.w, 0.0
    for portion in (p for g in range(len(tally.groups)) for p in rule.portions(tally, g)):
        if portion.row is not None:
            old = scores[portion.cells]
            moved = np.abs(portion.after(old) - old) > SAME
            changed += float((cells.w[portion.cells] * portion.share)[moved].sum())
    return changed / float(cells.w.sum())


def closest_steps(rule: Rule, tally: Tally, remains: str = "") -> list[str]:
    """The step that offers the closest rule together with what it does; none if it does nothing.

    ``remains`` says what is not reached; by default it is how far groups still differ.
    """
    names, does = names_of(tally.groups), []
    for group in dict.fromkeys(row.group for row in rule.rows):
        own = tally.select([group])
        mine = [row for row in rule.rows if row.group == group]
        certain = [row for row in mine if row.probability > 1.0 - SAME]
        values, width = {row.value for row in certain}, sum(row.hi - row.lo for row in certain)
        whose = f"{own.n:,.0f} scores in group {names[group]}"
        if len(values) == 1 and math.isclose(width, 1.0):
            does.append(f"every one of {whose} becomes {values.pop():.4f}")
        elif (share := share_changed(own, rule)) > 1.0 - SAME:
            does.append(f"every one of {whose} changes")
        elif share > SAME:
            does.append(f"{own.n * share:,.0f} of {whose} change")
    if not does or rule.promise is None:
        return []
    if len(does) > FEW:
        does = [f"{tally.n * share_changed(tally, rule):,.0f} of {tally.n:,.0f} scores change"]
    left = f"a difference of {round_up(max(rule.promise.equal.values()))} remains"
    return [f"pass {setting('infeasible', 'closest')}: {', '.join(does)}, and {remains or left}"]


def _thresholds_in(arguments: Mapping[str, Any]) -> list[float]:
    """The thresholds among the arguments of a repair, and what they are for flipped scores."""
    names = [name for name in ("threshold", "thresholds") if name in arguments]
    asked = [one for name in names for one in check_numbers(name, arguments[name])]
    return [*asked, *(1.0 - one for one in asked)]


def heeding(make: Make) -> Make:
    """A function that makes a rule from the groups that can be compared, and heeds the verdict.

    It takes a tally, or data with the keywords of :func:`isocost.tally`, and warns if the data do
    not support the rule.  The function without the warning is its ``__wrapped__``; with
    ``fitted`` it compares none but these groups.
    """
    own = signature(make)

    @wraps(make)
    def made(
        tally: TallyLike, *args: Any, fitted: Collection[Group] | None = None, **options: Any
    ) -> Rule:
        tally = as_tally(tally, {})
        asked = tally.groups if fitted is None else [g for g in tally.groups if g in fitted]
        groups = fitted_groups(tally.select(asked))
        bound = own.bind_partial(tally.select(groups), *args, **options)
        cost = bound.arguments.get("cost")
        if isinstance(cost, Cost):
            cost.check_groups(tally.groups)
            bound.arguments["cost"] = cost.among(groups)
        rule: Rule = make(*bound.args, **bound.kwargs)
        return replace(
            rule,
            groups=tally.groups,
            fitted=groups,
            cost=cost if isinstance(cost, Cost) else rule.cost,
            notes=(*rule.notes, *_left_out(tally, groups)),
            made_from=summary_of(tally),
        )

    @wraps(made)
    def checked(tally: TallyLike, *args: Any, **options: Any) -> Rule:
        names = DataOptions.__annotations__.keys() & options.keys() - own.parameters.keys()
        reading = {name: options.pop(name) for name in names}
        given = own.bind_partial(tally, *args, **options).arguments
        tally = as_tally(tally, reading, *_thresholds_in(given))
        return heed(made(tally, *args, **options), tally, stacklevel=2)

    return cast("Make", checked)


def _left_out(tally: Tally, fitted: Collection[Group]) -> list[str]:
    """The note about groups that are in a rule without rows."""
    names, lacks = shown_names(tally.groups), lacking(tally)
    others = [
        f"{names[group]} (no {lacks[group]})" if group in lacks else names[group]
        for group in tally.groups
        if group not in fitted
    ]
    return [SENTENCES["rule_left_out"].format(groups=listing(others, FEW))] if others else []


def summary_of(tally: Tally) -> dict[str, Any]:
    """What a rule says about the tally it was made from."""
    mu = base_rate(tally.totals)
    return {
        "reading": tally.reading.to_dict(),
        "n": tally.n,
        "groups": [
            {
                "group": to_json(group),
                "n": float(tally.totals.n[index].sum()),
                "base_rate": float(mu[index]),
            }
            for index, group in enumerate(tally.groups)
        ],
    }
