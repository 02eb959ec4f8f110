"""At which thresholds calibrated scores can have equal rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isocost.checks import check_numbers, finite_or_none
from isocost.costs import CostLike
from isocost.errors import Problem, UsageError
from isocost.grid import TENTHS
from isocost.groups import Group, names_of, to_json
from isocost.measures.rates import require_both_labels, require_two_groups
from isocost.repairs.linear_program import extremes
from isocost.repairs.reconcilability import Levels, Request, Selected, check_request
from isocost.repairs.reconcile import solution_of, with_levels
from isocost.tables import html_table, text_table
from isocost.tallies import Tally, check_tally

NOBODY = 1e-6
"""A selection rate up to here is that of nobody."""

MOST_GROUPS = 4
"""With more groups than this, the table shows the lowest and the highest selection rate only."""


@dataclass(frozen=True)
class ReconcilableAt:
    """What can be had at one threshold.

    Attributes
    ----------
    threshold : float
        The score from which people are positive.
    feasible : bool
        Whether the rates can be equal with somebody selected, and not everybody.
    tolerance : float
        The least tolerance with which they can: 0 if feasible, NaN if there is none.
    selected : {"nobody", "everybody"} or None
        Who must be selected for the rates to be equal.
    selection_rates : {group: float}
        The share of each group that :func:`isocost.reconcile` selects with that tolerance.
    selection_rate, accuracy : float
        The share of all people that it selects, and that it decides rightly.
    lowest, highest : float
        The lowest and the highest share of all people that any such scores select.
    """

    threshold: float
    feasible: bool
    tolerance: float
    selected: Selected | None
    selection_rates: Mapping[Group, float]
    selection_rate: float
    accuracy: float
    lowest: float
    highest: float

    @property
    def answer(self) -> str:
        """Whether the rates can be equal, in a word or two."""
        if self.feasible:
            return "yes"
        return "no" if self.selected is None else f"only if {self.selected}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        numbers = ("tolerance", "selection_rate", "accuracy", "lowest", "highest")
        return {
            "threshold": self.threshold,
            "feasible": self.feasible,
            "selected": self.selected,
            **{name: finite_or_none(getattr(self, name)) for name in numbers},
            "selection_rates": [
                [to_json(group), finite_or_none(rate)]
                for group, rate in self.selection_rates.items()
            ],
        }


@dataclass(frozen=True, repr=False)
class Reconcilable:
    """What :func:`reconcilable` found, threshold by threshold.

    Attributes
    ----------
    equal : tuple of str
        The rates to be equal.
    points : tuple of ReconcilableAt
        From the lowest threshold to the highest.
    """

    equal: tuple[str, ...]
    points: tuple[ReconcilableAt, ...]

    @property
    def feasible(self) -> tuple[float, ...]:
        """The thresholds at which the rates can be equal."""
        return tuple(point.threshold for point in self.points if point.feasible)

    def headline(self) -> str:
        """What the table shows, in a line."""
        return f"Calibrated scores with equal {' and '.join(self.equal)}, by threshold"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table."""
        names = names_of(self.points[0].selection_rates)
        few = len(names) <= MOST_GROUPS
        titles = [f"{name} selected" for name in names.values()]
        header = ["threshold", "equal rates", "least tolerance", "people selected", "possible"]
        header += [*(titles if few else ["least selected", "most selected"]), "accuracy"]
        rows = []
        for point in self.points:
            rates = list(point.selection_rates.values())
            shown = rates if few else [min(rates), max(rates)]
            possible = f"{point.lowest:.1%} to {point.highest:.1%}"
            rows.append(
                [
                    f"{point.threshold:g}",
                    point.answer,
                    "-" if math.isnan(point.tolerance) else f"{point.tolerance:.4f}",
                    _share(point.selection_rate),
                    "-" if math.isnan(point.lowest) else possible,
                    *map(_share, shown),
                    "-" if math.isnan(point.accuracy) else f"{point.accuracy:.4f}",
                ]
            )
        return header, rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "format": "isocost-reconcilable",
            "version": 1,
            "equal": list(self.equal),
            "points": [point.to_dict() for point in self.points],
        }

    def __repr__(self) -> str:
        return f"{self.headline()}\n{text_table(*self.table())}"

    def _repr_html_(self) -> str:
        return html_table(*self.table(), caption=self.headline())


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1%}"


def reconcilable(
    tally: Tally,
    thresholds: float | Iterable[float] | None = None,
    equal: str | Sequence[str] = ("fpr", "fnr"),
    *,
    cost: CostLike | None = None,
    levels: Levels = "auto",
    floor: Mapping[str, float] | None = None,
    no_worse: bool = False,
    monotone: bool = False,
) -> Reconcilable:
    """Whether :func:`isocost.reconcile` can make rates equal, threshold by threshold.

    Parameters
    ----------
    tally : Tally
        Of a holdout part: not the data the scores were trained on.
    thresholds : numbers, optional
        Edges of the tally; by default the nine tenths.
    equal, cost, levels, floor, no_worse, monotone
        As in :func:`isocost.reconcile`.

    Returns
    -------
    Reconcilable
        Per threshold: whether equal rates can be had with somebody selected, and not everybody;
        the least tolerance if not; and how many people are selected then.

    Notes
    -----
    Equal rates of calibrated scores that select nobody, or everybody, exist nearly always, and
    count as infeasible.  The least tolerance then lets every group select (or leave out) half as
    many people as before.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> found = reconcilable(compas(), [0.3, 0.5, 0.7, 0.8])
    >>> found.feasible
    (0.5, 0.7)
    >>> [(round(point.tolerance, 4), point.selected) for point in found.points]
    [(0.0004, 'everybody'), (0.0, None), (0.0, None), (nan, 'nobody')]
    """
    check_tally(tally)
    require_two_groups(tally)
    require_both_labels(tally)
    chosen = sorted(set(check_numbers("thresholds", TENTHS if thresholds is None else thresholds)))
    if not chosen:
        step = "leave out thresholds= for the nine tenths"
        raise UsageError(Problem("thresholds", "must be at least one number", "none", step))
    requests = [
        check_request(t, equal, 0.0, cost, "information", levels, floor, no_worse, monotone)
        for t in chosen
    ]
    points = tuple(_at(tally, request) for request in requests)
    return Reconcilable(requests[0].equal, points)


def _at(tally: Tally, request: Request) -> ReconcilableAt:
    """What can be had at the threshold of a request."""
    program, shares, nearest = solution_of(tally, with_levels(tally, request))
    verdict = None if nearest is None else nearest.verdict
    choices = program.choices
    selection = choices.rate("selection_rate", overall=True)
    lowest, highest = extremes(program, selection)
    rates = choices.by_group(choices.rate("selection_rate")) @ shares
    selected: Selected | None = None
    if verdict is not None and verdict.corner is not None:
        selected = verdict.corner.selected
    elif highest <= NOBODY:
        selected = "nobody"
    elif lowest >= 1.0 - NOBODY:
        selected = "everybody"
    feasible = selected is None and (verdict is None or verdict.feasible)
    tolerance = 0.0 if verdict is None else verdict.smallest_tolerance
    possible = feasible or (math.isfinite(tolerance) and highest > NOBODY and lowest < 1.0 - NOBODY)
    numbers = [
        float(selection @ shares),
        float(choices.rate("accuracy", overall=True) @ shares),
        lowest,
        highest,
    ]
    if not possible:
        tolerance, numbers, rates = math.nan, [math.nan] * 4, np.full(len(rates), math.nan)
    by_group = dict(zip(tally.groups, rates.tolist(), strict=True))
    return ReconcilableAt(
        request.threshold, feasible, tolerance, selected, by_group, *map(float, numbers)
    )
