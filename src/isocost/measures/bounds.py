"""The paper's theorems, applied to a tally: what its numbers prove about each other."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from isocost.checks import check_amount
from isocost.costs import Cost, CostLike, as_cost
from isocost.groups import Group, names_of, to_json
from isocost.measures import rates
from isocost.measures.calibration import gap_equal_width, levels_of
from isocost.measures.theorems import (
    Bound,
    CostComparison,
    ErrorDrop,
    ImpossibilityBound,
    RateRange,
    both_costs,
    compare_costs,
    distinct,
    drop_of,
    impossibility_bound,
    linearity_bound,
    linearity_residual,
    range_at,
)
from isocost.tables import html_table, text_table
from isocost.tallies import Tally, check_tally

__all__ = [
    "Bound",
    "Bounds",
    "CostComparison",
    "ErrorDrop",
    "GroupBounds",
    "ImpossibilityBound",
    "RateRange",
    "both_costs",
    "bounds",
    "compare_costs",
    "distinct",
    "impossibility_bound",
    "linearity_bound",
    "linearity_residual",
]


@dataclass(frozen=True)
class GroupBounds:
    """What is proved about one group.

    Attributes
    ----------
    base_rate, generalized_fpr, generalized_fnr : float
        The group's place.
    residual : float
        mu c_fn - (1-mu) c_fp = mu - E[h], the distance from the calibrated line.
    gap : float
        The calibration gap in ten bins of equal width: an estimate, unlike ``gap_at_least``.
    linearity : Bound
        The largest |residual| that such a gap allows.
    cost, trivial_cost : float
        The present cost, and the highest of calibrated scores.
    drop : ErrorDrop
        By how much scores with no larger gap can have lower error rates at no lower cost.
    at_cost : RateRange
        The error rates that scores with the present cost and no larger gap can have.
    """

    base_rate: float
    generalized_fpr: float
    generalized_fnr: float
    residual: float
    gap: float
    linearity: Bound
    cost: float
    trivial_cost: float
    drop: ErrorDrop
    at_cost: RateRange

    @property
    def gap_at_least(self) -> float:
        """|mu - E[h]|: the true calibration gap of these rows is no smaller."""
        return abs(self.residual)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain = asdict(self)
        plain["at_cost"] = {name: list(ends) for name, ends in plain["at_cost"].items()}
        return {**plain, "gap_at_least": self.gap_at_least}


@dataclass(frozen=True, repr=False)
class Bounds:
    """What the paper's theorems say about a tally.

    Attributes
    ----------
    cost : Cost
        What an error costs.
    groups : {group: GroupBounds}
        The statements about each group.
    impossibility : ImpossibilityBound or None
        Whether a second cost can be equal too, if one was asked about.
    """

    cost: Cost
    groups: dict[Group, GroupBounds]
    impossibility: ImpossibilityBound | None = None

    @property
    def comparison(self) -> CostComparison | None:
        """The two costs on the calibrated lines, if a second one was asked about."""
        return None if self.impossibility is None else self.impossibility.comparison

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; groups become [group, numbers] pairs, to keep their type."""
        return {
            "format": "isocost-bounds",
            "version": 1,
            "cost": self.cost.to_dict(),
            "groups": [[to_json(group), each.to_dict()] for group, each in self.groups.items()],
            "impossibility": None if self.impossibility is None else self.impossibility.to_dict(),
        }

    def to_json(self) -> str:
        """The bounds as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The printed table, as header and rows."""
        header = ["group", "mu - E[h]", "gap", "cost", "trivial cost"]
        header += ["FPR now", "at this cost", "FNR now", "at this cost"]
        rows = []
        for group, name in names_of(self.groups).items():
            each = self.groups[group]
            numbers = [f"{each.residual:+.4f}"]
            numbers += [f"{x:.4f}" for x in (each.gap, each.cost, each.trivial_cost)]
            for rate in ("generalized_fpr", "generalized_fnr"):
                low, high = getattr(each.at_cost, rate)
                numbers += [f"{getattr(each, rate):.4f}", f"{low:.4f} to {high:.4f}"]
            rows.append([name, *numbers])
        return header, rows

    def summary(self) -> list[str]:
        """The statements in words."""
        said = [
            "Each calibration gap is at least |mu - E[h]|, whatever the bins.",
            f"Scores that cost a group as much ({self.cost}), with no larger gap, have generalized "
            "rates in the ranges shown: a lower cost means lower error rates.",
        ]
        if self.impossibility is not None:
            said.append(str(self.impossibility))
        return said

    def __repr__(self) -> str:
        return "\n".join([text_table(*self.table()), "", *self.summary()])

    def _repr_html_(self) -> str:
        from html import escape

        lines = "".join(f"<p>{escape(line)}</p>" for line in self.summary())
        return html_table(*self.table(), caption=f"Bounds; cost {self.cost}") + lines


def bounds(
    tally: Tally,
    cost: CostLike = "fnr",
    other: CostLike | None = None,
    *,
    cost_difference: float = 0.0,
    gap: float | None = None,
) -> Bounds:
    """What the paper's theorems prove about a tally, with the best constants.

    Parameters
    ----------
    tally : Tally
        At least two groups, each with positives and negatives.
    cost : Cost or str
        What an error costs.
    other : Cost or str, optional
        A second cost: could it be equal too?
    cost_difference : float
        How far the two costs may then differ between groups.
    gap : float, optional
        How large the calibration gaps may then be; by default the largest there is now.

    Notes
    -----
    The residual, the rates and the costs are exact; the gap is the ten-bin estimate, which
    pooling can make smaller than the gap level by level.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> found = bounds(compas(), "fpr", "fnr")
    >>> round(found.groups["Caucasian"].gap_at_least, 4)
    0.0111
    >>> found.impossibility.excluded
    ('African-American', 'Caucasian')
    """
    check_tally(tally)
    cost = as_cost(cost)
    rates.require_two_groups(tally)
    rates.require_both_labels(tally)
    groups = _each_group(tally, cost)
    if other is None:
        return Bounds(cost, groups)
    allowed = max(each.gap for each in groups.values()) if gap is None else gap
    allowed = check_amount("gap", allowed)
    return Bounds(cost, groups, both_costs(tally, cost, other, cost_difference, allowed))


def _each_group(tally: Tally, cost: Cost) -> dict[Group, GroupBounds]:
    sums, groups = tally.totals, tally.groups
    mu = rates.base_rate(sums)
    c_fp, c_fn = rates.generalized_fpr(sums), rates.generalized_fnr(sums)
    costs, trivial = rates.group_costs(sums, groups, cost), rates.trivial_costs(sums, groups, cost)
    a, b = cost.coefficients(groups, mu)
    found = {}
    for i, group in enumerate(groups):
        share, fp, fn = float(mu[i]), float(c_fp[i]), float(c_fn[i])
        residual = linearity_residual(share, fp, fn)
        # The binned gap is never below |residual|, but for rounding.
        gap = max(gap_equal_width(levels_of(tally, i)), abs(residual))
        numbers = float(a[i]), float(b[i]), share, gap
        found[group] = GroupBounds(
            base_rate=share,
            generalized_fpr=fp,
            generalized_fnr=fn,
            residual=residual,
            gap=gap,
            linearity=linearity_bound(gap),
            cost=float(costs[i]),
            trivial_cost=float(trivial[i]),
            drop=drop_of(*numbers),
            at_cost=range_at(float(costs[i]), *numbers),
        )
    return found
