"""The trade-off: what equality costs as the tolerance goes from 0 to the present disparity."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np

from isocost.checks import check_flag, check_whole, check_word
from isocost.costs import Cost
from isocost.errors import DeferralWarning, InfeasibleError, setting
from isocost.groups import Group, names_of, pairs_to_json
from isocost.judging.audit import audit
from isocost.judging.offers import compared
from isocost.measures.feasibility import fitted_groups
from isocost.measures.table import MEASURES
from isocost.question import Question, asks
from isocost.repairs.coarsen import Minimize
from isocost.repairs.review import explained
from isocost.repairs.table import REPAIRS, Repair
from isocost.result import Result
from isocost.rules import Rule
from isocost.tallies import Tally

NUMBERS = (
    "disparity", "accuracy", "calibration_gap", "changed", "mean_change", "by_coin", "decisions",
)  # fmt: skip

SHARE_NUMBERS = (
    "share", "information", "accuracy", "fpr", "fnr", "ppv", "npv", "selection_rate", "base_rate",
    "by_coin",
)  # fmt: skip
"""Numbers of a method that hands people over; rates are those of the decided."""


@dataclass(frozen=True)
class FrontierPoint:
    """One tolerance, and what it takes; NaN where it is not feasible.

    Attributes
    ----------
    disparity : float
        How far the costs differ then (for "reconcile": the equalized odds difference).
    accuracy, calibration_gap : float
        Of everybody, and the largest of a group.
    changed, mean_change, by_coin, decisions : float
        As in :class:`isocost.judging.offers.Changes`.
    share : float
        The share of people handed over; what is above is about the others.
    information : float
        The share of the variance of labels within groups that scores explain then.
    rates : {name: float}
        FPR, FNR, PPV, NPV, selection rate and base rate of those who are decided, together.
    """

    tolerance: float
    feasible: bool
    disparity: float
    costs: dict[Group, float]
    accuracy: float
    calibration_gap: float
    changed: float
    mean_change: float
    by_coin: float
    decisions: float
    share: float = 0.0
    information: float = math.nan
    rates: Mapping[str, float] = field(default_factory=dict)

    def number(self, name: str) -> float:
        """A number by its name, also one of the rates."""
        return float(self.rates[name] if name in self.rates else getattr(self, name))


@dataclass(frozen=True, repr=False)
class Frontier(Result):
    """The result of :func:`frontier`: a point per tolerance, or per share handed over."""

    format = "isocost-frontier"
    written = ("method", "cost", "threshold", "_points")

    method: str
    cost: Cost
    threshold: float
    points: tuple[FrontierPoint, ...]
    backend: str | None = None

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers of each point; along shares that are handed over, the share first."""
        return SHARE_NUMBERS if REPAIRS[self.method].defers else NUMBERS

    def rows(self) -> list[dict[str, Any]]:
        """A tidy table for plotting: one flat row per tolerance, costs as "cost NAME".

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> [row["feasible"] for row in ic.frontier(compas(), "fpr", points=3).rows()]
        [False, False, True]
        """
        return [
            {
                "tolerance": p.tolerance,
                "feasible": p.feasible,
                **{name: p.number(name) for name in self.numbers},
                **{f"cost {name}": p.costs[g] for g, name in names_of(p.costs).items()},
            }
            for p in self.points
        ]

    records = rows

    def _points(self) -> list[dict[str, Any]]:
        names = ("tolerance", "feasible", *self.numbers)
        return [
            {**{name: row[name] for name in names}, "costs": pairs_to_json(p.costs)}
            for p, row in zip(self.points, self.rows(), strict=True)
        ]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table."""
        along = () if REPAIRS[self.method].defers else ("tolerance",)
        header = [name.replace("_", " ") for name in (*along, *self.numbers)]
        rows = [
            [
                *(f"{p.number(name):.4f}" for name in along),
                *(f"{p.number(name):.4f}" if p.feasible else "-" for name in self.numbers),
            ]
            for p in self.points
        ]
        return header, rows

    def headline(self) -> str:
        """The method, the cost and the threshold, in a line."""
        return f"Trade-off of {self.method}; cost {self.cost}, threshold {self.threshold:g}"


@asks("cost", "method")
def frontier(
    tally: Tally,
    question: Question,
    *,
    method: str = "withhold",
    points: int = 21,
    allow_decision_changes: bool = True,
    minimize: Minimize = "largest",
) -> Frontier:
    """Follow the trade-off as the tolerance goes from 0 to the present disparity.

    Parameters
    ----------
    tally : Tally, or data
        At least two groups, each with positives and negatives.
    cost, threshold, min_group
        What is asked: see :class:`isocost.Question`.
    method : str
        How to repair: "withhold", "coarsen", "reconcile" or any other of ``isocost.REPAIRS`` that
        has a tolerance.  For "reconcile" the tolerance is that of FPR and FNR at the threshold.
        For "hand_over" the tolerance is 0, and points differ in the share that is handed over, from
        the least on.
    points : int
        How many tolerances, evenly spaced; at least 2.
    allow_decision_changes : bool
        For "coarsen": whether pools may cross the threshold where the goal needs it.
    minimize : {"largest", "mean"}
        For "coarsen": which change of the scores to make as small as possible.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Returns
    -------
    Frontier
        ``.rows()`` is a tidy table.  Tolerances that are not feasible are there, with NaN.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> result = ic.frontier(compas(), "fpr", points=3)
    >>> [(round(p.tolerance, 4), p.feasible, round(p.changed, 4)) for p in result.points]
    [(0.0, False, nan), (0.0437, False, nan), (0.0875, True, 0.0)]
    >>> result = ic.frontier(compas(), method="hand_over", points=3)
    >>> [(round(p.share, 3), round(p.information, 3), round(p.accuracy, 3)) for p in result.points]
    [(0.231, 0.066, 0.615), (0.423, 0.071, 0.621), (0.615, 0.048, 0.613)]
    """
    known = tuple(n for n, one in REPAIRS.items() if "tolerance" in one.settings)
    check_word("method", method, known)
    check_flag("allow_decision_changes", allow_decision_changes)
    check_word("minimize", minimize, get_args(Minimize))
    step = f"use {setting('points', 21)}, the default"
    points = check_whole("points", points, 2, 10_000, step)
    groups = fitted_groups(tally, question.min_group)
    tally, question = tally.select(groups), question.among(groups)
    repair = REPAIRS[method]
    now = audit(tally, question=question.but(confidence=None))
    if repair.defers:
        found = list(_share_points(tally, repair, question, points))
    else:
        options = {"allow_decision_changes": allow_decision_changes, "minimize": minimize}
        hard = repair.goal == "rates"
        widest = now.equalized_odds_difference if hard else now.disparity.difference
        found = [
            _point(tally, repair, question.but(tolerance=t), tolerance=t, **options)
            for t in np.linspace(0.0, widest, points).tolist()
        ]
    return Frontier(method, question.cost, question.threshold, tuple(found), tally.backend)


def _share_points(
    tally: Tally, repair: Repair, question: Question, points: int
) -> Iterator[FrontierPoint]:
    """Points from the least share that must be handed over to 0.6, unless more is needed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeferralWarning)
        least = repair.rule(tally, question, share=None)
        smallest = least.expected(tally).share_handed_over
        rest = np.linspace(smallest, max(0.6, (1.0 + smallest) / 2.0), points)[1:]
        for rule in (least, *(repair.rule(tally, question, share=s) for s in rest.tolist())):
            point = _measured(tally, rule, question.but(tolerance=0.0), hard=True)
            after = rule.expected(tally)
            pooled = after.kinds(question.threshold).pooled()
            rates = [name for name in SHARE_NUMBERS if name in MEASURES and name != "accuracy"]
            yield replace(
                point,
                share=after.share_handed_over,
                information=explained(after),
                rates={name: float(MEASURES[name].of(pooled)[0]) for name in rates},
            )


def _point(tally: Tally, repair: Repair, question: Question, **options: Any) -> FrontierPoint:
    try:
        rule = repair.rule(tally, question, **options)
    except InfeasibleError:
        costs = dict.fromkeys(tally.groups, math.nan)
        unknown: Any = dict.fromkeys(NUMBERS, math.nan)
        return FrontierPoint(question.tolerance, False, costs=costs, **unknown)
    return _measured(tally, rule, question, repair.goal == "rates")


def _measured(tally: Tally, rule: Rule, question: Question, hard: bool) -> FrontierPoint:
    one = compared(tally, rule, question)
    numbers, costs = one.numbers(), {group: m.cost for group, m in one.audit.groups.items()}
    numbers["disparity"] = numbers["equalized_odds_difference" if hard else "cost_difference"]
    chosen: Any = {name: numbers[name] for name in NUMBERS}
    return FrontierPoint(question.tolerance, True, costs=costs, **chosen)
