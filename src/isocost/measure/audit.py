"""Audit: everything isocost measures about a tally, in one frozen result."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isocost.checks import check_threshold
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import UncertainWarning
from isocost.groups import Group, group_names, names_of, to_json
from isocost.measure.advice import advice_of
from isocost.measure.disparity import Disparity, disparity
from isocost.measure.feasibility import Feasibility, feasibility
from isocost.measure.intervals import Intervals, intervals
from isocost.measure.measures import Measures, group_columns, measures_at, overall_columns
from isocost.measure.table import Measure, chosen_measures
from isocost.tallies import Tally, check_tally
from isocost.text import html_table, text_table, transposed

__all__ = ["Audit", "Measures", "audit"]

MOST_INTERVALS = 3
"""With more groups than this the printed table has no room for intervals."""

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
    intervals : Intervals or None
        How far the numbers may be off by chance; see :class:`isocost.Intervals`.
    measures : {name: Measure}
        What was measured.
    """

    cost: Cost
    threshold: float
    groups: dict[Group, Measures]
    overall: Measures
    disparities: dict[str, Disparity]
    feasibility: Feasibility
    tally: Tally
    intervals: Intervals | None = None
    measures: Mapping[str, Measure] = field(default_factory=chosen_measures)

    @property
    def differs(self) -> bool:
        """Whether costs differ by more than the tolerance."""
        return self.disparity.difference > self.feasibility.tolerance + 1e-9

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
        return "\n".join(
            advice_of(
                self.groups,
                self.cost,
                self.threshold,
                self.disparity,
                self.feasibility,
                self.intervals,
            )
        )

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
            "intervals": None if self.intervals is None else self.intervals.to_dict(),
            "advice": self.advice,
        }

    def to_json(self) -> str:
        """The audit as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The printed table, as header and rows; with many groups each has a row."""
        names = group_names(tuple(self.groups))
        names.append("all" if "all" not in names else "everybody")
        columns = [*self.groups.values(), self.overall]
        inline = self.intervals is not None and len(self.groups) <= MOST_INTERVALS
        rows = [
            [title, *(_cell(name, m, inline).rstrip() for m in columns)]
            for name, title in self._shown().items()
        ]
        header = ["", *names]
        return (header, rows) if len(self.groups) <= WIDEST else transposed(header, rows, "group")

    def _shown(self) -> dict[str, str]:
        """The rows of the printed table, with the names people read."""
        rows = {name: one.title for name, one in self.measures.items() if one.printed}
        return {"n": "n", **rows, "cost": "cost", "trivial_cost": "trivial cost"}

    def headline(self) -> str:
        """What was audited, in a line."""
        level = f"; {self.intervals.confidence:.4g} intervals" if self.intervals else ""
        return (
            f"Audit of {self.tally.n:,.15g} rows; cost {self.cost}, "
            f"threshold {self.threshold:g}{level}"
        )

    def summary(self) -> list[str]:
        """The differences between groups, in a few lines."""
        names = names_of(self.groups)
        d = self.disparity
        ratio = self.four_fifths_ratio
        generalized = self.generalized_equalized_odds_difference
        found = self.intervals and self.intervals.disparities.get("cost")
        return [
            f"Cost differs by {d.difference:.4f}{f' {_short(found)}' if found else ''}: "
            f"{names[d.highest]} highest, {names[d.lowest]} lowest.",
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


def _cell(name: str, measures: Measures, with_interval: bool) -> str:
    value = measures[name]
    if name == "n":
        return f"{value:,.6g}" if value < 1e6 or not value.is_integer() else f"{value:,.0f}"
    if math.isnan(value):
        return "-"
    interval = measures.intervals.get(name)
    if not with_interval:
        return f"{value:.4f}"
    return f"{value:.4f} {_short(interval):12}" if interval else f"{value:.4f} {'':12}"


def _short(interval: Sequence[float]) -> str:
    """An interval in few letters: [.438, .457]."""
    low, high = (f"{end:.3f}".removeprefix("0") if not end >= 10 else "inf" for end in interval)
    return f"[{low}, {high}]"


def audit(
    tally: Tally,
    cost: CostLike = "fnr",
    threshold: float = 0.5,
    confidence: float | None = 0.95,
    replicates: int = 2000,
    seed: int = 0,
    *,
    tolerance: float = 0.0,
    measures: Iterable[Measure] | None = None,
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
    confidence : float or None
        Of the intervals; None for no intervals.
    replicates : int
        How often the cells are resampled for the intervals; 0 for closed forms only.
    seed : int
        The same seed gives the same intervals.
    tolerance : float
        How far costs may differ and still count as equal.
    measures : sequence of Measure, optional
        Measures of your own, besides those of :data:`isocost.MEASURES`.

    Warns
    -----
    UncertainWarning
        If costs differ, but it is not established which group's errors cost most.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> a = ic.audit(compas(), cost="fpr")
    >>> white = a.groups["Caucasian"]
    >>> low, high = white.intervals["generalized_fpr"]
    >>> f"{white.generalized_fpr:.3f}, between {low:.3f} and {high:.3f}"
    '0.360, between 0.352 and 0.367'
    >>> a.feasibility.feasible
    False
    """
    check_tally(tally)
    cost, threshold = as_cost(cost), check_threshold(threshold)
    verdict = feasibility(tally, cost, tolerance)
    rows = chosen_measures(measures)
    columns = group_columns(tally, cost, threshold, rows)
    found = None
    if confidence is not None:
        found = intervals(
            tally,
            cost,
            threshold,
            tolerance=tolerance,
            confidence=confidence,
            replicates=replicates,
            seed=seed,
            measures=rows.values(),
        )
    result = Audit(
        cost=cost,
        threshold=threshold,
        groups={
            group: measures_at(columns, i, found.groups[group] if found else None)
            for i, group in enumerate(tally.groups)
        },
        overall=measures_at(
            overall_columns(tally, cost, threshold, rows), 0, found.overall if found else None
        ),
        disparities={
            name: disparity(tally.groups, column)
            for name, column in columns.items()
            if name not in ("n", "share")
        },
        feasibility=verdict,
        tally=tally,
        intervals=found,
        measures=rows,
    )
    if found and not found.direction_established and result.differs:
        warnings.warn(_uncertain(result, found), UncertainWarning, stacklevel=2)
    return result


def _uncertain(result: Audit, found: Intervals) -> str:
    names = names_of(result.groups)
    top, bottom = (names[group] for group in found.compared)
    start = f"It is not established at {found.confidence:.0%}"
    if len(names) > 2:
        chance = found.direction_share
        often = "" if chance is None else f": {top} does in {chance:.0%} of resamples"
        return f"{start} which group's errors cost most{often}."
    low, high = found.differences["cost"]
    return (
        f"{start} whose errors cost more: {top} less {bottom} is "
        f"{result.disparity.difference:.4f}, with an interval from {low:.4f} to {high:.4f}."
    )
