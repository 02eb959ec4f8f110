"""The part that all repairs share: groups that take part, and doubt about the data.

:func:`repairs` makes a public function of one that turns a tally and a question into a rule.  That
function warns, and writes the doubt into the rule, where the data do not support it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from isocost.checks import check_numbers, check_salt, check_word
from isocost.errors import IsocostWarning, UncalibratedWarning, UncertainWarning, listing, setting
from isocost.groups import Group, names_of, shown_names, to_json
from isocost.measures.calibration import gap_equal_width
from isocost.measures.feasibility import examined_groups, fitted_groups, large_groups, reach_of
from isocost.measures.intervals import Estimates, disparity_intervals, gap_floors
from isocost.measures.rates import base_rate, disparity, lacking
from isocost.measures.recalibrated import recalibrated
from isocost.measures.table import MEASURES
from isocost.question import Question, asks
from isocost.tables import round_up
from isocost.tallies import Tally
from isocost.verdict.judgement import CALIBRATED, Findings, Verdict, judge
from isocost.verdict.sentences import SENTENCES
from isocost.verdict.wording import FEW

if TYPE_CHECKING:
    from isocost.rules import Promise, Rule

DOUBTS: dict[str, type[IsocostWarning]] = {
    "few": UncertainWarning,
    "uncalibrated": UncalibratedWarning,
    "one_label": UncalibratedWarning,
    "unestablished": UncertainWarning,
}
"""Reasons against a repair that can be made, and the warning for each."""


def verdict_on(
    tally: Tally, fitted: Collection[Group], promise: Promise, question: Question
) -> Verdict:
    """The verdict on what a rule promises to make equal among the groups that it was fitted on.

    It is what an audit would say, from the few numbers that decide it.  Whether equal cost is
    feasible is not asked, since there is a rule; calibration, of the other groups too, is asked for
    only if the repaired scores are to be calibrated.
    """
    tally = tally.known
    groups = [group for group in large_groups(tally, question.min_group) if group in fitted]
    findings = Findings(groups=len(groups))
    if len(groups) < 2:
        return judge(findings)
    question = question.among(tally.groups)
    if promise.threshold is not None:
        question = question.but(threshold=promise.threshold)
    indices, estimates = list(map(tally.index_of, groups)), Estimates(tally, question)
    differences = {
        name: disparity(groups, np.array([estimates.value(name, i) for i in indices])).difference
        for name in promise.equal
    }
    change, lows = 0.0, [0.0]
    if promise.calibrated:
        asked = Estimates(tally, question.but(confidence=question.level), people=estimates.people)
        change = recalibrated(asked, reach_of(tally.select(groups), question.among(groups))).shown
        examined = examined_groups(tally, question.min_group)
        for index in map(tally.index_of, examined):
            # No gap is above the one measured, so only a large one has to be looked at closely.
            has_one_label = (tally.totals.n[index] == 0).any()
            if has_one_label and gap_equal_width(levels := estimates.levels(index)) > CALIBRATED:
                lows += gap_floors([levels], len(examined), question)
    findings = replace(
        findings,
        labels_low=max(lows),
        change=change,
        difference=max(differences.values(), default=0.0),
        tolerance=max(promise.asked.values(), default=0.0),
    )
    if (verdict := judge(findings)).reason != "unestablished" or not differences:
        return verdict
    spans = disparity_intervals(estimates, differences, groups).values()
    low, high = (max(ends) for ends in zip(*spans, strict=True))
    return judge(replace(findings, difference_low=low, difference_high=high))


def doubt_of(tally: Tally, fitted: Collection[Group], promise: Promise, question: Question) -> str:
    """The reason why the data do not support a repair, a key of :data:`DOUBTS`; "" if they do."""
    verdict = verdict_on(tally, fitted, promise, question)
    # A rule for groups that do not differ, as measured, has another purpose, such as a floor.
    is_doubt = verdict.reason in DOUBTS and (verdict.differs or verdict.reason != "unestablished")
    return verdict.reason if is_doubt else ""


def doubt_text(doubt: str, promise: Promise) -> str:
    """The sentence for a doubt about what a rule promises."""
    return SENTENCES[f"doubt_{doubt}"].format(what=titles_of(promise))


def titles_of(promise: Promise) -> str:
    """The numbers that a rule makes equal, in words."""
    names = promise.equal
    return " and ".join(MEASURES[name].title if name in MEASURES else name for name in names)


def with_doubt(rule: Rule, tally: Tally, question: Question, stacklevel: int | None = 2) -> Rule:
    """The rule, with a note if the data do not support it, and a warning if there is a level."""
    doubt = rule.rows and doubt_of(tally, rule.fitted, rule.promise, question)
    if not doubt:
        return rule
    text = doubt_text(doubt, rule.promise)
    if stacklevel is not None:
        warnings.warn(text, DOUBTS[doubt], stacklevel=stacklevel + 1)
    return replace(rule, notes=(*rule.notes, text))


SAME = 1e-12
"""A score that moves by no more than this has not moved."""


def share_changed(tally: Tally, rule: Rule) -> float:
    """The share of people whose score changes."""
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
    if not does:
        return []
    if len(does) > FEW:
        does = [f"{tally.n * share_changed(tally, rule):,.0f} of {tally.n:,.0f} scores change"]
    left = f"a difference of {round_up(max(rule.promise.equal.values()))} remains"
    return [f"pass {setting('infeasible', 'closest')}: {', '.join(does)}, and {remains or left}"]


def repairs(*positional: str) -> Callable[[Callable[..., Rule]], Callable[..., Rule]]:
    """Make a public repair of a function of a tally, a question and options.

    The function gets the tally of the groups that are compared, and the question about these; its
    rule then names all groups.  The public function takes a tally or data, as every other one, and
    warns if the data do not support the rule.  Its attribute ``unadvised`` does not ask for that,
    takes a tally and a question by position, and with ``fitted`` compares only these groups.

    Parameters
    ----------
    *positional : str
        As for :func:`isocost.question.asks`.
    """

    def door(make: Callable[..., Rule]) -> Callable[..., Rule]:
        @wraps(make)
        def unadvised(
            tally: Tally,
            question: Question,
            *,
            fitted: Collection[Group] | None = None,
            **options: Any,
        ) -> Rule:
            if "salt" in options:
                check_salt(options["salt"])
            if "infeasible" in options:
                check_word("infeasible", options["infeasible"], ("raise", "closest"))
            question.cost.check_groups(tally.groups)
            if fitted is None:
                groups = fitted_groups(tally, question.min_group)
            else:
                groups = fitted_groups(tally.select(g for g in tally.groups if g in fitted))
            rule = make(tally.select(groups), question.among(groups), **options)
            names, lacks = shown_names(tally.groups), lacking(tally)
            others = [
                f"{names[group]} ({f'no {lacks[group]}' if group in lacks else 'too few'})"
                for group in tally.groups
                if group not in groups
            ]
            left_out = SENTENCES["rule_left_out"].format(groups=listing(others, FEW))
            return replace(
                rule,
                groups=tally.groups,
                fitted=groups,
                cost=None if rule.cost is None else question.cost,
                notes=(*rule.notes, *([left_out] if others else [])),
                made_from=summary_of(tally),
            )

        @asks(*positional, edges=thresholds_in)
        @wraps(make)
        def advised(tally: Tally, question: Question, **options: Any) -> Rule:
            return with_doubt(unadvised(tally, question, **options), tally, question, stacklevel=3)

        advised.unadvised = unadvised  # type: ignore[attr-defined]
        return advised

    return door


def thresholds_in(options: Mapping[str, Any]) -> list[float]:
    """Thresholds among the options of a repair, and their mirror images."""
    asked = options.get("thresholds")
    given = [] if asked is None else check_numbers("thresholds", asked)
    return [*given, *(1.0 - one for one in given)]


def summary_of(tally: Tally) -> dict[str, Any]:
    """The facts that a rule keeps about the tally it was made from."""
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
