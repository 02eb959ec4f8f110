"""The numbers of one group, and of everybody."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from isocost.cells import Sums
from isocost.costs import Cost
from isocost.groups import Group
from isocost.measure import rates
from isocost.measure.calibration import calibration_gaps, levels_of
from isocost.tallies import Tally

__all__ = ["COMPARED", "NUMBERS", "Measures", "group_columns", "measures_at", "overall_columns"]

Columns = dict[str, Any]


@dataclass(frozen=True)
class Measures:
    """The numbers of one group, or of everybody.

    Attributes
    ----------
    n : float
        Rows.
    share : float
        Share of the total weight.
    base_rate, mean_score : float
        mu = P(y = 1) and E[h].
    generalized_fpr, generalized_fnr : float
        Mean score of the negatives; one minus the mean score of the positives.
    fpr, fnr, accuracy, selection_rate : float
        At the threshold.
    brier : float
        E[(h - y)^2].
    calibration_gap, calibration_gap_equal_mass, calibration_gap_debiased, calibration_gap_smooth
        Estimates of ``E|P(y = 1 | h) - h|``; see :mod:`isocost.measure.calibration`.
    calibration_gap_bound : float
        ``|mu - E[h]|``, a certified lower bound of the gap.
    cost, trivial_cost : float
        The present cost, and that of the base rate for everybody.  NaN for everybody together
        when the cost differs by group.
    intervals : {name: (low, high)}
        Confidence intervals, for the numbers that have one.
    """

    n: float
    share: float
    base_rate: float
    mean_score: float
    generalized_fpr: float
    generalized_fnr: float
    fpr: float
    fnr: float
    accuracy: float
    selection_rate: float
    brier: float
    calibration_gap: float
    calibration_gap_equal_mass: float
    calibration_gap_debiased: float
    calibration_gap_smooth: float
    calibration_gap_bound: float
    cost: float
    trivial_cost: float
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an undefined number becomes null."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        plain = {name: None if math.isnan(v) else v for name, v in numbers.items()}
        return {**plain, "intervals": {name: list(pair) for name, pair in self.intervals.items()}}


NUMBERS = tuple(f.name for f in fields(Measures) if f.name != "intervals")

COMPARED = tuple(name for name in NUMBERS if name not in ("n", "share"))
"""The numbers that groups are compared by."""


def group_columns(tally: Tally, cost: Cost, threshold: float) -> Columns:
    """Every number as an array with one entry per group."""
    sums = tally.totals
    columns = _plain(sums, tally.totals_above(threshold))
    columns["share"] = sums.weight / sums.w.sum()
    columns["cost"] = rates.group_costs(sums, tally.groups, cost)
    columns["trivial_cost"] = rates.trivial_costs(sums, tally.groups, cost)
    _add_gaps(columns, [calibration_gaps(levels_of(tally, i)) for i in range(len(tally.groups))])
    return columns


def overall_columns(tally: Tally, cost: Cost, threshold: float) -> Columns:
    """The same for everybody together; a cost that differs by group has no meaning there."""
    sums = tally.totals.pooled()
    columns = _plain(sums, tally.totals_above(threshold).pooled())
    columns["share"] = np.ones(1)
    _add_gaps(columns, [calibration_gaps(levels_of(tally))])
    if isinstance(cost.fp, Mapping) or isinstance(cost.fn, Mapping):
        columns["cost"] = columns["trivial_cost"] = np.full(1, math.nan)
    else:
        everybody: tuple[Group, ...] = ("all",)
        columns["cost"] = rates.group_costs(sums, everybody, cost)
        columns["trivial_cost"] = rates.trivial_costs(sums, everybody, cost)
    return columns


def measures_at(
    columns: Columns, place: int, intervals: Mapping[str, tuple[float, float]] | None = None
) -> Measures:
    """The numbers of one place as a record."""
    numbers: dict[str, Any] = {name: float(columns[name][place]) for name in NUMBERS}
    return Measures(**numbers, intervals=dict(intervals or {}))


def _plain(sums: Sums, above: Sums) -> Columns:
    """The numbers that are plain formulas of the sums."""
    return {
        "n": sums.n.sum(axis=-1),
        "base_rate": rates.base_rate(sums),
        "mean_score": rates.mean_score(sums),
        "generalized_fpr": rates.generalized_fpr(sums),
        "generalized_fnr": rates.generalized_fnr(sums),
        "fpr": rates.fpr(sums, above),
        "fnr": rates.fnr(sums, above),
        "accuracy": rates.accuracy(sums, above),
        "selection_rate": rates.selection_rate(sums, above),
        "brier": rates.brier(sums),
    }


def _add_gaps(columns: dict[str, Any], gaps: list[dict[str, float]]) -> None:
    for method in gaps[0]:
        name = "calibration_gap" if method == "equal_width" else f"calibration_gap_{method}"
        columns[name] = np.array([gap[method] for gap in gaps])
