"""The judgement: :data:`QUESTIONS` in their order, each answered by comparing two numbers.

The last one takes a second to answer, so the answer is "unknown" until somebody asks: see
:meth:`isocost.Unseen.judged`.

The first "no" is the reason of the verdict.  What follows it decides nothing, so all questions
together are wrong no more often than one alone.  With too little data the others are not answered.

:data:`ANSWERS` and :data:`REASONS` are all there is to it.  The page evaluates the same two tables
for whatever a reader sets.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from isocost.groups import Group
from isocost.result import Record

CALIBRATED = 0.02
"""A calibration gap up to here passes for calibrated: two points in a hundred."""

UNKNOWN = 0.05
"""While a gap above this cannot be ruled out, calibration is not known."""

MIN_GROUP = 30
"""Groups with fewer rows are not compared.  With 15 rows per label the interval of a rate reaches
about 0.25 to each side, as far as differences between groups ever go."""

MIN_LABEL = 5
"""Nor are groups with fewer rows of a label, the usual least number of events for an interval."""

SLACK = 1e-9
"""Differences below this are rounding."""

YesNo = Literal["yes", "no", "unknown"]

Comparison = tuple[Any, str, str, float | str]

ANSWERS: tuple[tuple[str, tuple[Comparison, ...], Any], ...] = (
    ("enough", ((False, "groups", "<=", 1),), True),
    (
        "calibrated",
        (
            ("unknown", "groups", "<=", 1),
            ("no", "gap_low", ">", CALIBRATED),
            ("unknown", "gap_high", ">", UNKNOWN),
        ),
        "yes",
    ),
    ("differs", ((True, "difference", ">", "tolerance"),), False),
    ("established", ((False, "groups", "<=", 1), (True, "difference_low", ">", 0.0)), False),
    ("reachable", ((True, "excess", "<=", 0.0),), False),
    (
        "feasible",
        (
            ("unknown", "groups", "<=", 1),
            ("no", "excess_low", ">", 0.0),
            ("yes", "excess_high", "<=", 0.0),
        ),
        "unknown",
    ),
    (
        "helps",
        (("no", "unrepaired", "<=", "expected"), ("yes", "unrepaired", ">", "expected")),
        "unknown",
    ),
)
"""For each question the answers with their comparisons, of which the first that holds counts, and
the answer if none does."""

QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "Is there enough data?": ("enough",),
    "Is each group calibrated?": ("calibrated",),
    "Do costs differ beyond chance?": ("differs", "established"),
    "Can they be made equal?": ("reachable", "feasible"),
    "Is a repair expected to help people not seen?": ("helps",),
}
"""The questions in words, as every page lists them, and the answers of each in ANSWERS."""

REASONS: tuple[tuple[str, Mapping[str, Any], bool], ...] = (
    ("few", {"enough": False}, False),
    ("uncalibrated", {"calibrated": "no"}, False),
    ("equal", {"differs": False}, False),
    ("unestablished", {"established": False}, False),
    ("infeasible", {"feasible": "no"}, False),
    ("unreachable", {"feasible": "unknown", "reachable": False}, False),
    ("unhelpful", {"helps": "no"}, False),
    ("uncertain", {"feasible": "unknown"}, True),
    ("repair", {}, True),
)
"""Reason, the answers that lead to it, and whether a repair is advised; the first that fits."""


@dataclass(frozen=True)
class Findings(Record):
    """The numbers that a verdict rests on; without intervals, bounds are the numbers themselves.

    Attributes
    ----------
    groups : int
        How many groups are large enough to be compared.
    gap_low, gap_high : float
        The calibration gap that some group has at least, and the largest that cannot be ruled out.
    difference, difference_low : float
        The largest difference between two groups, and the lower end of its interval.
    tolerance : float
        How far the groups may differ.
    excess, excess_low, excess_high : float
        How far the highest cost is above what another group can reach, less the tolerance.
    intervals : bool
        Whether there are intervals.
    expected, unrepaired : float
        How far groups are expected to differ among new people, with a repair and without; NaN if
        nobody has asked.
    """

    groups: int
    gap_low: float
    gap_high: float
    difference: float
    difference_low: float
    tolerance: float
    excess: float
    excess_low: float
    excess_high: float
    intervals: bool = True
    expected: float = math.nan
    unrepaired: float = math.nan


@dataclass(frozen=True)
class Verdict(Record):
    """What the data say, in codes.

    Attributes
    ----------
    enough : bool
        Whether at least two groups are large enough to be compared.
    calibrated : {"yes", "no", "unknown"}
        Whether each group's scores mean what they say, to within 0.02.
    differs : bool
        Whether the costs, as measured, differ by more than the tolerance.
    established : bool
        Whether some two groups differ beyond chance.
    highest : tuple
        The groups that may be the one whose errors cost most.
    feasible : {"yes", "no", "unknown"}
        Whether calibrated scores can cost every group the same.
    helps : {"yes", "no", "unknown"}
        Whether new people are expected to differ less with a repair; "unknown" if nobody has asked.
    act : bool
        Whether a repair is advised.
    reason : str
        The code of the first answer that settles it: "few", "uncalibrated", "equal",
        "unestablished", "infeasible", "unreachable" (infeasible as measured, but that is not
        established), "unhelpful", "uncertain" (feasible as measured, but not established) or
        "repair".
    findings : Findings
        The numbers that were compared.
    """

    enough: bool
    calibrated: YesNo
    differs: bool
    established: bool
    feasible: YesNo
    helps: YesNo
    act: bool
    reason: str
    highest: tuple[Group, ...] = ()
    findings: Findings = field(repr=False, kw_only=True)


@dataclass(frozen=True)
class Candidate:
    """A repair that may be chosen, in numbers.

    Attributes
    ----------
    method : str
        Its name in the table of repairs.
    made : bool
        Whether the rule could be made as asked.
    idle : bool
        Whether there is nothing for it to change.
    doubt : str
        Why the data do not support it: a reason of :data:`isocost.repairs.counsel.DOUBTS`, or "".
    expected, unrepaired : float
        How far groups are expected to differ among new people in what it makes equal, with it and
        without.
    cost_expected, cost_unrepaired : float
        How far costs are expected to differ among new people, with it and without.
    uninformative : bool
        Whether the scores of a group tell nothing after it, and told something before.
    calibrated : bool
        Whether scores stay calibrated.
    accuracy, unrepaired_accuracy : float
        Expected among new people, with it and without.
    by_coin, changed : float
        The share of people whose score is randomized, and whose score changes.
    handed_over : float
        The share of people about whom somebody else decides; the other numbers are not theirs.
    """

    method: str
    made: bool = False
    idle: bool = False
    doubt: str = ""
    expected: float = math.nan
    unrepaired: float = math.nan
    cost_expected: float = math.nan
    cost_unrepaired: float = math.nan
    uninformative: bool = False
    calibrated: bool = True
    accuracy: float = math.nan
    unrepaired_accuracy: float = math.nan
    by_coin: float = math.nan
    changed: float = math.nan
    handed_over: float = 0.0

    @property
    def standing(self) -> str:
        """Whether it is "fit" to be chosen, or the first thing that speaks against it."""
        if self.idle:
            return "equal"
        if not self.made:
            return "infeasible"
        if self.doubt:
            return self.doubt
        if not self.unrepaired > self.expected + SLACK:
            return "unhelpful"
        return "uninformative" if self.uninformative else "fit"


AS_ACCURATE = 0.01
"""An accuracy lower by no more than this counts as the same when a repair is chosen."""

AGAINST = (
    "few",
    "small",
    "uncalibrated",
    "unestablished",
    "unhelpful",
    "uninformative",
    "infeasible",
    "equal",
)
"""What speaks against a repair, in the order in which it is said when nothing is to be done."""


@dataclass(frozen=True)
class RepairChoice:
    """Which repair to take, if any.

    Attributes
    ----------
    method : str or None
        The repair; None to leave the scores as they are.
    reason : str
        "fit", or why none is to be taken: one of :data:`AGAINST`.
    standings : {method: str}
        "fit", or what speaks against each repair.
    """

    method: str | None
    reason: str
    standings: Mapping[str, str]


def choose(candidates: Sequence[Candidate], verdict: Verdict) -> RepairChoice:
    """Choose among repairs, or none of them.

    Without enough data, or with scores that do not mean the same for each group, none.  Of those
    that the data support, that help new people and leave scores informative: those that decide
    about everybody, if any; of these, those that keep scores calibrated, if any; of these, those
    whose expected accuracy is within :data:`AS_ACCURATE` of the highest; and of these the one that
    leaves least to a coin.

    Examples
    --------
    >>> findings = Findings(2, 0.0, 0.03, 0.1, 0.05, 0.0, -0.2, -0.3, -0.1)
    >>> flips = Candidate("odds", True, expected=0.0, unrepaired=0.1, calibrated=False)
    >>> rounds = Candidate("coarsen", True, expected=0.01, unrepaired=0.1)
    >>> choose([flips, rounds], judge(findings)).method
    'coarsen'
    """
    standings = {one.method: one.standing for one in candidates}
    if verdict.reason in ("few", "uncalibrated"):
        return RepairChoice(None, verdict.reason, standings)
    fit = [one for one in candidates if one.standing == "fit"]
    if not fit:
        return RepairChoice(
            None, next(code for code in AGAINST if code in standings.values()), standings
        )
    fit = [one for one in fit if not one.handed_over] or fit
    calibrated = [one for one in fit if one.calibrated] or fit
    highest = max(one.accuracy for one in calibrated)
    accurate = [one for one in calibrated if one.accuracy >= highest - AS_ACCURATE] or calibrated
    taken = min(accurate, key=lambda one: (one.by_coin, one.changed))
    return RepairChoice(taken.method, "fit", standings)


_COMPARE = {">": operator.gt, "<=": operator.le}


def judge(findings: Findings, highest: tuple[Group, ...] = ()) -> Verdict:
    """The verdict on some numbers.

    Examples
    --------
    >>> judge(Findings(2, 0.0, 0.03, 0.1, 0.05, 0.0, -0.2, -0.3, -0.1)).reason
    'repair'
    >>> judge(Findings(2, 0.03, 0.08, 0.1, 0.05, 0.0, -0.2, -0.3, -0.1)).reason
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
    del answers["reachable"]
    return Verdict(**answers, act=act, reason=reason, highest=highest, findings=findings)
