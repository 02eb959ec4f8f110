"""Audit: everything isocost measures about a tally, in one frozen result."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from isocost.cells import Sums
from isocost.costs import Cost, CostLike, as_cost
from isocost.grid import check_threshold
from isocost.groups import Group, group_names, names_of, to_json
from isocost.measure import rates
from isocost.measure.calibration import calibration_gaps, levels_of
from isocost.measure.disparity import Disparity, disparity
from isocost.measure.feasibility import Feasibility, feasibility
from isocost.tallies import Tally
from isocost.text import html_table, text_table

__all__ = ["Audit", "Measures", "audit"]


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

SHOWN = {
    "n": "n",
    "base_rate": "base rate",
    "mean_score": "mean score",
    "generalized_fpr": "generalized FPR",
    "generalized_fnr": "generalized FNR",
    "fpr": "FPR",
    "fnr": "FNR",
    "selection_rate": "selection rate",
    "accuracy": "accuracy",
    "brier": "Brier score",
    "calibration_gap": "calibration gap",
    "calibration_gap_debiased": "gap, debiased",
    "cost": "cost",
    "trivial_cost": "trivial cost",
}
"""The numbers of the printed table, with the names people read."""

WIDEST = 6
"""With more groups than this, each group gets a line of its own."""


@dataclass(frozen=True, repr=False)
class Audit:
    """What a tally says about groups, their errors and what these cost.

    Attributes
    ----------
    cost, threshold : Cost, float
        What it was made with.
    groups : {group: Measures}
        The numbers of each group.
    overall : Measures
        The numbers of everybody together.
    disparities : {name: Disparity}
        For each number, the largest difference between groups.
    feasibility : Feasibility
        Whether calibrated scores can cost every group the same.
    tally : Tally
        What it was computed from.
    """

    cost: Cost
    threshold: float
    groups: dict[Group, Measures]
    overall: Measures
    disparities: dict[str, Disparity]
    feasibility: Feasibility
    tally: Tally

    @property
    def disparity(self) -> Disparity:
        """The disparity of the cost."""
        return self.disparities["cost"]

    @property
    def generalized_equalized_odds_difference(self) -> float:
        """The larger of the differences in generalized FPR and generalized FNR."""
        names = ("generalized_fpr", "generalized_fnr")
        return max(self.disparities[name].difference for name in names)

    @property
    def equalized_odds_difference(self) -> float:
        """The larger of the differences in FPR and FNR at the threshold."""
        return max(self.disparities[name].difference for name in ("fpr", "fnr"))

    @property
    def statistical_parity_difference(self) -> float:
        """The largest difference in selection rates."""
        return self.disparities["selection_rate"].difference

    @property
    def four_fifths_ratio(self) -> float:
        """The lowest selection rate over the highest; NaN when nobody is selected."""
        return self.disparities["selection_rate"].ratio

    @property
    def advice(self) -> str:
        """What the audit means, in plain words."""
        return str(self.feasibility)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; groups become [group, numbers] pairs, to keep their type."""
        return {
            "format": "isocost-audit",
            "version": 1,
            "cost": self.cost.to_dict(),
            "threshold": self.threshold,
            "groups": [[to_json(g), m.to_dict()] for g, m in self.groups.items()],
            "overall": self.overall.to_dict(),
            "disparity": self.disparity.to_dict(),
            "disparities": {name: d.to_dict() for name, d in self.disparities.items()},
            "generalized_equalized_odds_difference": self.generalized_equalized_odds_difference,
            "equalized_odds_difference": self.equalized_odds_difference,
            "four_fifths_ratio": self.disparities["selection_rate"].to_dict()["ratio"],
            "feasibility": self.feasibility.to_dict(),
            "advice": self.advice,
        }

    def to_json(self) -> str:
        """The audit as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The printed table, as header and rows; with many groups each has a row."""
        names = [*group_names(tuple(self.groups)), "all"]
        columns = [*self.groups.values(), self.overall]
        rows = [[title, *(_cell(name, m) for m in columns)] for name, title in SHOWN.items()]
        header = ["", *names]
        if len(self.groups) > WIDEST:
            header, *rows = (list(line) for line in zip(header, *rows, strict=True))
            header[0] = "group"
        return header, rows

    def headline(self) -> str:
        """What was audited, in a line."""
        return f"Audit of {self.tally.n:,.15g} rows; cost {self.cost}, threshold {self.threshold:g}"

    def summary(self) -> list[str]:
        """The differences between groups, in a few lines."""
        names = names_of(self.groups)
        d = self.disparity
        ratio = self.four_fifths_ratio
        generalized = self.generalized_equalized_odds_difference
        return [
            f"Cost differs by {d.difference:.4f}: {names[d.highest]} highest, "
            f"{names[d.lowest]} lowest.",
            f"Equalized odds difference: generalized {generalized:.4f}, "
            f"at the threshold {self.equalized_odds_difference:.4f}.",
            "Selection rates: nobody is selected."
            if math.isnan(ratio)
            else f"Selection rates: lowest over highest is {ratio:.3f} (four fifths is 0.8).",
        ]

    def __repr__(self) -> str:
        table = text_table(*self.table())
        return "\n".join([self.headline(), table, "", *self.summary(), self.advice])

    def _repr_html_(self) -> str:
        from html import escape

        lines = "".join(f"<p>{escape(line)}</p>" for line in (*self.summary(), self.advice))
        return html_table(*self.table(), caption=self.headline()) + lines


def _cell(name: str, measures: Measures) -> str:
    value = float(getattr(measures, name))
    if name == "n":
        return f"{value:,.6g}" if value < 1e6 or not value.is_integer() else f"{value:,.0f}"
    return "-" if math.isnan(value) else f"{value:.4f}"


def audit(
    tally: Tally,
    cost: CostLike = "fnr",
    threshold: float = 0.5,
    *,
    tolerance: float = 0.0,
) -> Audit:
    """Measure each group's errors and calibration, and decide what can be made equal.

    Parameters
    ----------
    tally : Tally
        At least two groups, each with positives and negatives.
    cost : Cost or str
        What an error costs: "fpr", "fnr", "weighted:1,3" or a :class:`Cost`.
    threshold : float
        The score from which people are treated as positive; must be an edge of the tally.
    tolerance : float
        How far costs may differ and still count as equal.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.experiments import compas
    >>> a = ic.audit(compas(), cost="fpr")
    >>> round(a.groups["Caucasian"].generalized_fpr, 4)
    0.36
    >>> a.feasibility.feasible
    False
    """
    cost, threshold = as_cost(cost), check_threshold(threshold)
    verdict = feasibility(tally, cost, tolerance)
    groups = tally.groups
    sums, above = tally.totals, tally.totals_above(threshold)
    columns = _measure(sums, above)
    columns["share"] = sums.w.sum(axis=-1) / sums.w.sum()
    columns["cost"] = np.array([verdict.costs[group] for group in groups])
    columns["trivial_cost"] = np.array([verdict.trivial_costs[group] for group in groups])
    _add_gaps(columns, [calibration_gaps(levels_of(tally, i)) for i in range(len(groups))])
    per_group = {group: _measures_at(columns, i) for i, group in enumerate(groups)}
    return Audit(
        cost=cost,
        threshold=threshold,
        groups=per_group,
        overall=_overall(tally, cost, above),
        disparities={name: disparity(groups, columns[name]) for name in COMPARED},
        feasibility=verdict,
        tally=tally,
    )


def _measure(sums: Sums, above: Sums) -> dict[str, Any]:
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


def _measures_at(columns: dict[str, Any], place: int) -> Measures:
    numbers: dict[str, Any] = {name: float(columns[name][place]) for name in NUMBERS}
    return Measures(**numbers)


def _add_gaps(columns: dict[str, Any], gaps: list[dict[str, float]]) -> None:
    for method in gaps[0]:
        name = "calibration_gap" if method == "equal_width" else f"calibration_gap_{method}"
        columns[name] = np.array([gap[method] for gap in gaps])


def _overall(tally: Tally, cost: Cost, above: Sums) -> Measures:
    """Everybody together; a cost that differs by group has no meaning there."""
    sums = tally.totals.pooled()
    columns = _measure(sums, above.pooled())
    columns["share"] = np.ones(1)
    _add_gaps(columns, [calibration_gaps(levels_of(tally))])
    if isinstance(cost.fp, Mapping) or isinstance(cost.fn, Mapping):
        columns["cost"] = columns["trivial_cost"] = np.full(1, math.nan)
    else:
        columns["cost"] = rates.group_costs(sums, ("all",), cost)
        columns["trivial_cost"] = rates.trivial_costs(sums, ("all",), cost)
    return _measures_at(columns, 0)
