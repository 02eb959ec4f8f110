"""The judgement: :data:`QUESTIONS` in their order, each answered by comparing two numbers.

The last one is about a rule, so it is answered only where advice is given; see
:attr:`isocost.Audit.advised`.

The first "no" is the reason of the verdict.  What follows it decides nothing, so all questions
together are wrong no more often than one alone.  With too little data the others are not answered.

:data:`ANSWERS` and :data:`REASONS` are all there is to it.  The page evaluates the same two tables
for whatever a reader sets.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from isocost.groups import Group
from isocost.result import Record

CALIBRATED = 0.02
"""A calibration gap up to here passes for calibrated: two points in a hundred."""

MOVED = 0.01
"""Recalibration comes first if it moves a difference in cost by more: one point in a hundred."""

UNKNOWN = 0.05
"""While a gap above this cannot be ruled out, calibration is not known."""

SLACK = 1e-9
"""Differences below this are rounding."""

YesNo = Literal["yes", "no", "unknown"]

Comparison = tuple[Any, str, str, float | str]

_FEW: Comparison = (False, "groups", "<=", 1)

_NOT_KNOWN: Comparison = ("unknown", "groups", "<=", 1)

ANSWERS: tuple[tuple[str, tuple[Comparison, ...], Any], ...] = (
    ("enough", (_FEW,), True),
    (
        "calibrated",
        (
            _NOT_KNOWN,
            ("no", "gap_low", ">", CALIBRATED),
            ("no", "labels_low", ">", CALIBRATED),
            # Two groups that are each off by no more may differ by twice as much.
            ("no", "bias_low", ">", 2 * CALIBRATED),
            ("unknown", "gap_high", ">", UNKNOWN),
            ("unknown", "gap", ">", CALIBRATED),
        ),
        "yes",
    ),
    (
        "recalibrate",
        (
            _FEW,
            (False, "change", "<=", "tolerance"),
            (False, "change", "<=", MOVED),
            (True, "change", ">", MOVED),
            # On the page the change is not known for every cost.
            (True, "gap_low", ">", CALIBRATED),
            (False, "labels_low", ">", CALIBRATED),
            (True, "bias_low", ">", 2 * CALIBRATED),
        ),
        False,
    ),
    ("curable", ((False, "labels_low", ">", CALIBRATED),), True),
    (
        "same",
        (_NOT_KNOWN, ("yes", "bias_high", "<=", CALIBRATED), ("no", "bias_low", ">", CALIBRATED)),
        "unknown",
    ),
    ("differs", ((True, "difference", ">", "tolerance"),), False),
    ("established", (_FEW, (True, "difference_low", ">", "tolerance")), False),
    (
        "equal",
        (_FEW, (False, "tolerance", "<=", 0.0), (True, "difference_high", "<=", "tolerance")),
        False,
    ),
    ("reachable", ((True, "excess", "<=", 0.0),), False),
    (
        "feasible",
        (_NOT_KNOWN, ("no", "excess_low", ">", 0.0), ("yes", "excess_high", "<=", 0.0)),
        "unknown",
    ),
    (
        "helps",
        (("no", "unrepaired", "<=", "expected"), ("yes", "unrepaired", ">", "expected")),
        "unknown",
    ),
)
"""Each question's answers in order; the first whose comparison holds is taken, else the default."""

QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "Is there enough data?": ("enough",),
    "Is each group calibrated?": ("calibrated", "recalibrate", "curable", "same"),
    "Do costs differ by more than the tolerance?": ("differs", "established", "equal"),
    "Can they be made equal?": ("reachable", "feasible"),
    "Is a repair expected to help people not seen?": ("helps",),
}
"""The questions in words, as every page lists them, and the answers of each in ANSWERS."""

REASONS: tuple[tuple[str, Mapping[str, Any], bool], ...] = (
    ("few", {"enough": False}, False),
    ("uncalibrated", {"recalibrate": True}, False),
    ("one_label", {"curable": False}, False),
    ("equal", {"equal": True}, False),
    ("unestablished", {"established": False}, False),
    ("infeasible", {"feasible": "no"}, False),
    ("unreachable", {"feasible": "unknown", "reachable": False}, False),
    ("unhelpful", {"helps": "no"}, False),
    ("uncertain", {"feasible": "unknown"}, True),
    ("repair", {}, True),
)
"""Reason, the answers that lead to it, and whether a repair is advised; the first that fits."""


@dataclass(frozen=True, kw_only=True)
class Findings(Record):
    """The numbers that a verdict rests on; without intervals, bounds of costs are the costs.

    Attributes
    ----------
    groups : int
        How many groups are large enough to be compared.
    gap_low, gap_high : float
        The calibration gap that some group with both labels has at least, and the largest of any
        group that cannot be ruled out.
    labels_low : float
        The gap that some group with one label only has at least: recalibration cannot close it.
    bias_low, bias_high : float
        The interval of the largest difference between two groups in mean label less mean score.
    gap : float
        Without intervals, the largest calibration gap as measured.  It is biased upwards, so one
        within the limit passes, and a larger one may be chance.
    change : float
        How far calibration moves the difference in cost between two groups; 0 if that may be
        chance, NaN if it is not known.
    difference, difference_low, difference_high : float
        The largest difference between two groups, and its interval.  Without intervals the upper
        end is NaN: equality is never taken for granted.
    tolerance : float
        How far the groups may differ.
    excess, excess_low, excess_high : float
        How far the highest cost is above what another group can reach, less the tolerance.
    intervals : bool
        True if there are intervals.
    expected, unrepaired : float
        How far groups are expected to differ among new people, with a repair and without; NaN if
        nobody has asked.
    """

    groups: int
    gap_low: float = 0.0
    gap_high: float = math.nan
    labels_low: float = 0.0
    bias_low: float = math.nan
    bias_high: float = math.nan
    gap: float = math.nan
    change: float = math.nan
    difference: float = 0.0
    difference_low: float = 0.0
    difference_high: float = math.nan
    tolerance: float = 0.0
    excess: float = 0.0
    excess_low: float = 0.0
    excess_high: float = 0.0
    intervals: bool = True
    expected: float = math.nan
    unrepaired: float = math.nan


@dataclass(frozen=True)
class Verdict(Record):
    """The answers that the data give, in codes.

    Attributes
    ----------
    enough : bool
        Whether at least two groups are large enough to be compared.
    calibrated : {"yes", "no", "unknown"}
        Whether each group's scores mean what they say, to within 0.02; never "no" without
        intervals, because chance alone makes gaps larger.
    recalibrate : bool
        Whether recalibration comes first: it moves the difference in cost between two groups, by
        more than the tolerance and 0.01.
    same : {"yes", "no", "unknown"}
        Whether a score means the same in each group on average, to within 0.02; beyond 0.04 groups
        are not calibrated either.
    differs : bool
        Whether the costs, as measured, differ by more than the tolerance.
    established : bool
        Whether it is established that some two groups differ by more than the tolerance.
    equal : bool
        Whether it is established that no two groups do; never with a tolerance of 0.
    highest : tuple
        The groups that may be the one whose errors cost most.
    feasible : {"yes", "no", "unknown"}
        Whether calibrated scores can cost every group the same.
    helps : {"yes", "no", "unknown"}
        Whether new people are expected to differ less with a repair; "unknown" if nobody has asked.
    act : bool
        True if a repair is advised.
    reason : str
        The code of the first answer that settles it: "few", "uncalibrated", "one_label" (only
        groups with one label are off, so that their labels are in doubt), "equal" (within the
        tolerance), "unestablished" (neither that nor beyond it), "infeasible", "unreachable"
        (infeasible as measured, but that is not established), "unhelpful", "uncertain" (feasible as
        measured, but not established) or "repair".
    findings : Findings
        The numbers that were compared.
    """

    enough: bool
    calibrated: YesNo
    recalibrate: bool
    same: YesNo
    differs: bool
    established: bool
    equal: bool
    feasible: YesNo
    helps: YesNo
    act: bool
    reason: str
    highest: tuple[Group, ...] = ()
    findings: Findings = field(repr=False, kw_only=True)


_COMPARE = {">": operator.gt, "<=": operator.le}


def judge(findings: Findings, highest: tuple[Group, ...] = ()) -> Verdict:
    """The verdict on some numbers.

    Examples
    --------
    >>> judge(Findings(groups=2, difference=0.1, difference_low=0.05)).reason
    'repair'
    >>> judge(Findings(groups=2, gap_low=0.03, difference=0.1, difference_low=0.05)).reason
    'uncalibrated'
    """
    numbers = vars(findings)
    answers: dict[str, Any] = {}
    for question, comparisons, otherwise in ANSWERS:
        answers[question] = otherwise
        for answer, left, compare, right in reversed(comparisons):
            bound = numbers[right] if isinstance(right, str) else right
            # Rounding neither makes a difference nor puts a cost out of reach.
            if _COMPARE[compare](numbers[left], bound + SLACK):
                answers[question] = answer
    reason, act = next(
        (reason, act)
        for reason, needed, act in REASONS
        if all(answers[name] == value for name, value in needed.items())
    )
    del answers["reachable"], answers["curable"]
    return Verdict(**answers, act=act, reason=reason, highest=highest, findings=findings)
