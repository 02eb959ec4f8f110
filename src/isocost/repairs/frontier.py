"""The trade-off: what equality costs as the tolerance goes from 0 to the present disparity."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Unpack, get_args

import numpy as np

from isocost.checks import check_flag, check_threshold, check_whole, check_word
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import DeferralWarning, InfeasibleError, setting
from isocost.groups import Group, names_of, pairs_to_json
from isocost.measures.audit import audit
from isocost.measures.table import MEASURES
from isocost.repairs.compare import changes
from isocost.repairs.pools import Minimize
from isocost.repairs.registry import REPAIRS, Repair
from isocost.repairs.review import explained
from isocost.result import Result
from isocost.rules import Rule
from isocost.tables import columns_from, frame_of
from isocost.tallies import DataOptions, Tally, TallyLike, as_tally

MOST_POINTS = 10_000

MOST_SHARE = 0.6
"""How large a share to hand over a trade-off ends with, unless more is needed."""

SHARE_NUMBERS = (
    "share",
    "information",
    "accuracy",
    "fpr",
    "fnr",
    "ppv",
    "npv",
    "selection_rate",
    "base_rate",
    "by_coin",
)
"""What a trade-off shows of a method that hands people over; rates are those of the decided."""

NUMBERS = (
    "disparity",
    "accuracy",
    "calibration_gap",
    "changed",
    "mean_change",
    "by_coin",
    "decisions",
)


@dataclass(frozen=True)
class FrontierPoint:
    """One tolerance, and what it takes; NaN where it is not feasible.

    Attributes
    ----------
    tolerance, feasible
        The request, and whether it is feasible.
    disparity : float
        How far the costs differ then (for "reconcile": the equalized odds difference).
    costs : {group: float}
        The cost of each group.
    accuracy, calibration_gap : float
        Of everybody, and the largest of a group.
    changed, mean_change, by_coin, decisions : float
        Share of people changed, mean change, share decided by a coin, share of decisions changed.
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
    """What :func:`frontier` found, a point per tolerance, from 0 up; or per share handed over."""

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

    def to_frame(self, *, backend: str | None = None) -> Any:
        """:meth:`rows` as a frame, in the library of the data; see :meth:`isocost.Audit.to_frame`.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> ic.frontier(compas(), "fpr", points=3).to_frame(backend="dict")["feasible"].tolist()
        [False, False, True]
        """
        return frame_of(columns_from(self.rows()), backend or self.backend)

    def rows(self) -> list[dict[str, Any]]:
        """A tidy table for plotting: one flat row per tolerance, costs as "cost NAME"."""
        return [
            {
                "tolerance": p.tolerance,
                "feasible": p.feasible,
                **{name: p.number(name) for name in self.numbers},
                **{f"cost {name}": p.costs[g] for g, name in names_of(p.costs).items()},
            }
            for p in self.points
        ]

    def _points(self) -> list[dict[str, Any]]:
        return [
            {
                "tolerance": p.tolerance,
                "feasible": p.feasible,
                **{name: p.number(name) for name in self.numbers},
                "costs": pairs_to_json(p.costs),
            }
            for p in self.points
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
        """What it is about, in a line."""
        return f"Trade-off of {self.method}; cost {self.cost}, threshold {self.threshold:g}"


def frontier(
    tally: TallyLike,
    cost: CostLike = "fnr",
    method: str = "withhold",
    *,
    points: int = 21,
    threshold: float = 0.5,
    allow_decision_changes: bool = True,
    minimize: Minimize = "largest",
    **reading: Unpack[DataOptions],
) -> Frontier:
    """Follow the trade-off as the tolerance goes from 0 to the present disparity.

    Parameters
    ----------
    tally : Tally, or data
        At least two groups, each with positives and negatives.
    cost : Cost or str
        What an error costs.
    method : str
        How to repair: "withhold", "coarsen", "reconcile" or any other of ``isocost.REPAIRS`` that
        has a tolerance.  For "reconcile" the tolerance is that of FPR and FNR at the threshold.
        For "hand_over" the tolerance is 0, and points differ in the share that is handed over, from
        the least on.
    points : int
        How many tolerances, evenly spaced; at least 2.
    threshold : float
        For accuracy, decisions and reconciling.
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
    cost, threshold = as_cost(cost), check_threshold(threshold)
    tally = as_tally(tally, reading, threshold)
    known = tuple(name for name, repair in REPAIRS.items() if repair.has("tolerance"))
    check_word("method", method, known)
    check_flag("allow_decision_changes", allow_decision_changes)
    check_word("minimize", minimize, get_args(Minimize))
    points = check_whole(
        "points", points, 2, MOST_POINTS, f"use {setting('points', 21)}, the default"
    )
    now = audit(tally, cost, threshold, confidence=None)
    if REPAIRS[method].defers:
        return Frontier(
            method=method,
            cost=cost,
            threshold=now.threshold,
            points=tuple(_share_points(tally, REPAIRS[method], cost, now.threshold, points)),
            backend=tally.backend,
        )
    hard = REPAIRS[method].goal == "rates"
    maker = partial(
        REPAIRS[method].make_with,
        tally,
        cost=None if hard else cost,
        threshold=threshold,
        allow_decision_changes=allow_decision_changes,
        minimize=minimize,
    )
    widest = now.equalized_odds_difference if hard else now.disparity.difference
    return Frontier(
        method=method,
        cost=cost,
        threshold=now.threshold,
        points=tuple(
            _point(tally, float(t), maker, cost, now.threshold, hard)
            for t in np.linspace(0.0, widest, points)
        ),
        backend=tally.backend,
    )


def _share_points(
    tally: Tally, repair: Repair, cost: Cost, threshold: float, points: int
) -> Iterator[FrontierPoint]:
    """From the least share that must be handed over to :data:`MOST_SHARE`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeferralWarning)
        least = repair.make_with(tally, threshold=threshold, share=None)
        smallest = least.expected(tally).share_handed_over
        rest = np.linspace(smallest, max(MOST_SHARE, (1.0 + smallest) / 2.0), points)[1:]
        rules = (repair.make_with(tally, threshold=threshold, share=float(s)) for s in rest)
        for rule in (least, *rules):
            point = _measured(tally, rule, 0.0, cost, threshold, hard=True)
            after = rule.expected(tally)
            pooled = after.kinds(threshold).pooled()
            rates = [name for name in SHARE_NUMBERS if name in MEASURES and name != "accuracy"]
            yield replace(
                point,
                share=after.share_handed_over,
                information=explained(after),
                rates={name: float(MEASURES[name].of(pooled)[0]) for name in rates},
            )


def _point(
    tally: Tally,
    tolerance: float,
    maker: Callable[..., Rule],
    cost: Cost,
    threshold: float,
    hard: bool,
) -> FrontierPoint:
    try:
        rule = maker(tolerance=tolerance)
    except InfeasibleError:
        costs = dict.fromkeys(tally.groups, math.nan)
        unknown: Any = dict.fromkeys(NUMBERS, math.nan)
        return FrontierPoint(tolerance, False, costs=costs, **unknown)
    return _measured(tally, rule, tolerance, cost, threshold, hard)


def _measured(
    tally: Tally, rule: Rule, tolerance: float, cost: Cost, threshold: float, hard: bool
) -> FrontierPoint:
    after = audit(rule.expected(tally), cost, threshold, confidence=None)
    done = changes(tally, rule, threshold)
    return FrontierPoint(
        tolerance=tolerance,
        feasible=True,
        disparity=after.equalized_odds_difference if hard else after.disparity.difference,
        costs={group: m.cost for group, m in after.groups.items()},
        accuracy=after.overall.accuracy,
        calibration_gap=max(m.calibration_gap for m in after.groups.values()),
        changed=done.changed,
        mean_change=done.mean_change,
        by_coin=done.by_coin,
        decisions=done.decisions,
    )
