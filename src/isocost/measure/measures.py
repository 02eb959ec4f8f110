"""The numbers of one group, and of everybody."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isocost.cells import Sums
from isocost.costs import Cost
from isocost.groups import Group
from isocost.measure import rates
from isocost.measure.calibration import levels_of
from isocost.measure.table import Measure
from isocost.tallies import Tally

__all__ = ["Measures", "group_columns", "measures_at", "overall_columns"]

Columns = dict[str, Any]


@dataclass(frozen=True)
class Measures:
    """The numbers of one group, or of everybody.

    ``numbers["fpr"]`` and ``numbers.fpr`` are the same.

    Attributes
    ----------
    n : float
        Rows.
    share : float
        Share of the total weight.
    cost, trivial_cost : float
        The present cost, and that of the base rate for everybody.  NaN for everybody together
        when the cost differs by group.
    values : {name: float}
        All numbers: those above, and one for each :class:`isocost.Measure` of the audit, in the
        order of :data:`isocost.MEASURES`.  NaN where a number is not defined.
    intervals : {name: (low, high)}
        Confidence intervals, for the numbers that have one.
    """

    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def __getattr__(self, name: str) -> float:
        # Copies and unpickled records are asked for names before they have values.
        values = self.__dict__.get("values", {})
        if name not in values:
            raise AttributeError(f"{type(self).__name__} has no number {name!r}")
        return float(values[name])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.values]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an undefined number becomes null."""
        plain = {name: _plain(value) for name, value in self.values.items()}
        spans = {name: list(map(_plain, pair)) for name, pair in self.intervals.items()}
        return {**plain, "intervals": spans}


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def group_columns(
    tally: Tally, cost: Cost, threshold: float, measures: Mapping[str, Measure]
) -> Columns:
    """Every number as an array with one entry per group."""
    sums = tally.kinds(threshold)
    places = range(len(tally.groups))
    columns = _columns(tally, sums, places, measures)
    columns["share"] = sums.weight / sums.w.sum()
    # By label, as everywhere else: a rounding error would tell two equal costs apart.
    columns["cost"] = rates.group_costs(tally.totals, tally.groups, cost)
    columns["trivial_cost"] = rates.trivial_costs(tally.totals, tally.groups, cost)
    return columns


def overall_columns(
    tally: Tally, cost: Cost, threshold: float, measures: Mapping[str, Measure]
) -> Columns:
    """The same for everybody together; a cost that differs by group has no meaning there."""
    sums = tally.kinds(threshold).pooled()
    columns = _columns(tally, sums, [None], measures)
    columns["share"] = np.ones(1)
    if cost.is_per_group:
        columns["cost"] = columns["trivial_cost"] = np.full(1, math.nan)
    else:
        everybody: tuple[Group, ...] = ("all",)
        columns["cost"] = rates.group_costs(sums, everybody, cost)
        columns["trivial_cost"] = rates.trivial_costs(sums, everybody, cost)
    return columns


def _columns(
    tally: Tally, sums: Sums, places: Sequence[int | None], measures: Mapping[str, Measure]
) -> Columns:
    levels = [levels_of(tally, place) for place in places]
    columns: Columns = {"n": sums.n.sum(axis=-1), "share": None}
    for name, measure in measures.items():
        if measure.of_levels is None:
            columns[name] = measure.of(sums)
        else:
            columns[name] = np.array([measure.of_levels(one) for one in levels])
    return columns


def measures_at(
    columns: Columns, place: int, intervals: Mapping[str, tuple[float, float]] | None = None
) -> Measures:
    """The numbers of one place as a record."""
    values = {name: float(column[place]) for name, column in columns.items()}
    return Measures(values, dict(intervals or {}))
