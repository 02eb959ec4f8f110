"""How many people it takes to establish a difference, or that scores are calibrated."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from isocost.checks import check_confidence
from isocost.costs import Cost, CostLike, as_cost
from isocost.groups import Group, beside_groups, group_names, to_json
from isocost.measures.calibration import SMOOTH_CELLS, gap_noise, levels_of
from isocost.measures.feasibility import large_groups
from isocost.measures.margins import Mean, mean_of, normal_quantile, size_interval, stretch
from isocost.measures.table import MEASURES, cost_row
from isocost.tables import columns_from, frame_of, html_table, text_table
from isocost.tallies import Cells, Tally, check_tally
from isocost.typing import Floats
from isocost.verdict.judgement import CALIBRATED, MIN_GROUP, MIN_LABEL


@dataclass(frozen=True)
class GroupPlan:
    """What one group takes.

    Attributes
    ----------
    rows : float
        How many there are.
    difference : float
        How many are needed to establish a difference of the size asked for.
    calibration : float
        How many are needed to rule out a calibration gap above the limit, if there is none.
    """

    rows: float
    difference: float
    calibration: float


@dataclass(frozen=True, repr=False)
class Plan:
    """How many people of each group it takes.

    Attributes
    ----------
    groups : {group: GroupPlan}
        What each group takes.
    cost : Cost
        What an error costs.
    detect, limit : float
        The difference in cost to be established, and the calibration gap to be ruled out.
    confidence, power : float
        Of the intervals, and how often the plan is to succeed if the difference is there.
    columns, backend
        Those of the tally.
    """

    groups: Mapping[Group, GroupPlan]
    cost: Cost
    detect: float
    limit: float
    confidence: float
    power: float
    columns: Mapping[str, Any] = field(default_factory=dict)
    backend: str | None = None

    def to_frame(self, *, backend: str | None = None) -> Any:
        """A row for each group, in the library of the data; see :meth:`isocost.Audit.to_frame`."""
        numbers = columns_from([asdict(one) for one in self.groups.values()])
        table = beside_groups(list(self.groups), numbers, self.columns.get("group"))
        return frame_of(table, backend or self.backend)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; groups become [group, numbers] pairs."""
        numbers = {name: getattr(self, name) for name in ("detect", "limit", "confidence", "power")}
        groups = [[to_json(group), asdict(one)] for group, one in self.groups.items()]
        return {"cost": self.cost.to_dict(), **numbers, "groups": groups}

    def to_json(self) -> str:
        """The plan as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def headline(self) -> str:
        """What the numbers are for, in a line."""
        return (
            f"People needed; cost {self.cost}; {self.confidence:.4g} intervals, power "
            f"{self.power:.4g}"
        )

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The printed table, as header and rows."""
        header = ["group", "now", f"difference of {self.detect:g}", f"gap within {self.limit:g}"]
        names = group_names(tuple(self.groups))
        return header, [
            [name, *(f"{number:,.0f}" for number in asdict(one).values())]
            for name, one in zip(names, self.groups.values(), strict=True)
        ]

    def __repr__(self) -> str:
        return f"{self.headline()}\n{text_table(*self.table())}"

    def _repr_html_(self) -> str:
        return html_table(*self.table(), caption=self.headline())


def plan(
    tally: Tally,
    cost: CostLike = "fnr",
    detect: float = 0.05,
    *,
    limit: float = CALIBRATED,
    confidence: float = 0.95,
    power: float = 0.8,
) -> Plan:
    """Compute how many people of each group are needed to establish a difference, or calibration.

    The tally shows how much scores vary; the standard error of a cost falls with the square root of
    the rows.  A difference d between two of k groups is established with the given power if

        (c + z) sqrt(v_s / n_s + v_t / n_t) = d,

    with v the variance of the cost per row, z the normal quantile of the power, and c the factor
    that bounds all pairs of k groups at once.  Each group gets the rows that make its share
    of the variance the same.  For calibration it is the number of rows at which the interval of
    the gap of calibrated scores ends below the limit, with the given power.  No group gets fewer
    rows than it takes to be compared at all.

    Parameters
    ----------
    tally : Tally
        A first sample.  A group that is too small to be compared is taken to vary as everybody
        does.
    cost : Cost or str
        What an error costs.
    detect : float
        The difference in cost to be established.
    limit : float
        The calibration gap to be ruled out.
    confidence, power : float
        Of the intervals, and how often the plan is to succeed if the difference is there.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> ic.plan(compas(), "fpr", detect=0.02)
    People needed; cost fpr; 0.95 intervals, power 0.8
    group               now  difference of 0.02  gap within 0.02
    ----------------  -----  ------------------  ---------------
    African-American  3,696               2,225           10,731
    Caucasian         2,454               1,374           10,135
    """
    check_tally(tally)
    cost, detect = as_cost(cost), check_confidence(detect, "detect", 0.05)
    limit, confidence = check_confidence(limit, "limit", CALIBRATED), check_confidence(confidence)
    power = check_confidence(power, "power", 0.8)
    large = large_groups(tally, MIN_GROUP)
    z = normal_quantile((1.0 + confidence) / 2.0)
    factor = z * stretch(confidence, max(2, len(tally.groups))) + normal_quantile(power)
    variance = (detect / factor) ** 2 / 2.0
    draws = np.random.default_rng(0).standard_normal((2000, SMOOTH_CELLS))
    result = {}
    for index, group in enumerate(tally.groups):
        own = tally.cells.take(tally.cells.of_group(index))
        like, cells = (index, own) if group in large else (None, tally.cells)
        rows = float(cells.n.sum())
        now = _cost_variance(cells, cost, group)
        gap = _gap_limit(tally, like, confidence, power, draws)
        needed = (rows * now / variance, rows * (gap / limit) ** 2)
        least = _least(cells)
        result[group] = GroupPlan(float(own.n.sum()), *(max(least, math.ceil(n)) for n in needed))
    return Plan(result, cost, detect, limit, confidence, power, tally.columns, tally.backend)


def _least(cells: Cells) -> int:
    """So many rows that a group can be compared, with its share of the rarer label."""
    rarer = min(float((cells.n * (cells.label == y)).sum()) for y in (0, 1)) / float(cells.n.sum())
    return max(MIN_GROUP, math.ceil(MIN_LABEL / rarer) if rarer else MIN_GROUP)


def _cost_variance(cells: Cells, cost: Cost, group: Group) -> float:
    """The squared standard error of the group's cost."""
    amounts = cost.amounts(group)

    def error(mean: Mean) -> float:
        return mean.error * mean.inflation

    if cost.by_base_rate:
        return error(mean_of(cost_row(*amounts), cells, 0)) ** 2
    rates = (MEASURES["generalized_fpr"], MEASURES["generalized_fnr"])
    return sum(
        (amount * error(mean_of(rate, cells, 0))) ** 2
        for amount, rate in zip(amounts, rates, strict=True)
        if amount
    )


def _gap_limit(
    tally: Tally, index: int | None, confidence: float, power: float, draws: Floats
) -> float:
    """Where the interval of the gap would end, with this power, if the group were calibrated."""
    _, noise = gap_noise(levels_of(tally, index), 0.05, draws)["calibration_gap"]
    error = noise.std(axis=0)
    size = float(np.quantile(np.abs(noise).sum(axis=1), power))
    return size_interval(error * (size / error.sum()), noise, (1.0 - confidence) / 2.0)[1]
