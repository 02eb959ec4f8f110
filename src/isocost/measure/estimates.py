"""The numbers of one group, or of everybody, each with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isocost.cells import Cells, Sums
from isocost.costs import Cost
from isocost.measure.margins import Interval, around, difference, fold, size_interval
from isocost.measure.means import Mean, mean_interval, mean_of, share_of
from isocost.measure.resample import Replicates
from isocost.measure.table import BIAS, Measure, cost_row
from isocost.tallies import Tally

__all__ = ["Estimate", "estimate_groups"]

Floats = npt.NDArray[np.float64]
Amounts = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """What is known about one group, or about everybody.

    Attributes
    ----------
    values, intervals : {name: ...}
        By the names of :class:`Measures`.
    safe_cost : float
        The lower end of the cost's interval when all groups' lower ends shall hold together.
    cost_factor : float
        How many standard errors the interval of the cost reaches.
    """

    values: dict[str, float]
    intervals: dict[str, Interval]
    safe_cost: float = 0.0
    cost_factor: float = 0.0


def estimate_groups(
    tally: Tally,
    cost: Cost,
    threshold: float,
    confidence: float,
    measures: Mapping[str, Measure],
    gaps: list[dict[str, float]],
    drawn: Replicates | None,
) -> tuple[list[Estimate], Estimate]:
    """Each group's numbers, and those of everybody; without replicates only closed forms.

    ``gaps`` are the calibration gaps of the groups, and last those of everybody.
    """
    first = tally.grid.first_bin(threshold)
    groups, cells = tally.groups, tally.cells
    plain = {name: measure for name, measure in measures.items() if measure.is_plain}

    def estimate(
        own: Cells, place: int, amounts: Amounts, sums: Sums | None, some: int
    ) -> Estimate:
        rows = {**plain, "cost": cost_row(*amounts), "bias": BIAS}
        means = {name: mean_of(measure, own, first) for name, measure in rows.items()}
        values = None
        if sums is not None:
            values = {name: rows[name].of(sums) for name, mean in means.items() if not mean.binary}
        means["share"] = share_of(own, cells)
        one = _from_means(means, values, cost.by_base_rate, amounts, confidence, some)
        return _with_gaps(one, gaps[place], drawn, place, confidence)

    found = [
        estimate(
            cells.take(cells.of_group(place)),
            place,
            cost.amounts(groups[place]),
            None if drawn is None else drawn.sums.at(place),
            len(groups),
        )
        for place in range(len(groups))
    ]
    amounts = (1.0, 1.0) if cost.is_per_group else cost.amounts(groups[0])
    pooled = None if drawn is None else drawn.sums.pooled().at(0)
    everybody = estimate(cells, len(groups), amounts, pooled, 1)
    if cost.is_per_group:
        # A cost that differs by group has no meaning for everybody.
        for name in ("cost", "trivial_cost"):
            del everybody.values[name], everybody.intervals[name]
    return found, everybody


def _from_means(
    means: dict[str, Mean],
    replicated: dict[str, Floats] | None,
    by_base_rate: bool,
    amounts: Amounts,
    confidence: float,
    groups: int,
) -> Estimate:
    """The intervals of the means, and of what follows from them."""

    def interval(name: str, level: float = confidence) -> Interval:
        values = None if replicated is None else replicated.get(name)
        return mean_interval(means[name], values, level)

    fpr, fnr = means["generalized_fpr"], means["generalized_fnr"]
    safe_level = 1.0 - (1.0 - confidence) / groups
    if by_base_rate:
        cost, safe = interval("cost"), interval("cost", safe_level)
        value, parts = means["cost"].value, [means["cost"]]
    else:
        value = amounts[0] * fpr.value + amounts[1] * fnr.value
        cost, safe = (
            _plain_cost(
                means, amounts, interval("generalized_fpr", c), interval("generalized_fnr", c)
            )
            for c in (confidence, safe_level)
        )
        parts = [mean for mean, amount in zip((fpr, fnr), amounts, strict=True) if amount]
    values = {name: mean.value for name, mean in means.items() if name != "bias"}
    found = {name: interval(name) for name in values if name != "cost"}
    trivial = [_trivial(mu, amounts, by_base_rate) for mu in _corners(found["base_rate"])]
    values["cost"], found["cost"] = value, cost
    values["trivial_cost"] = _trivial(values["base_rate"], amounts, by_base_rate)
    found["trivial_cost"] = around(values["trivial_cost"], (min(trivial), max(trivial)))
    values["calibration_gap_bound"] = abs(means["bias"].value)
    found["calibration_gap_bound"] = fold(interval("bias"))
    return Estimate(values, found, safe[0], max(part.factor(confidence) for part in parts))


def _plain_cost(
    means: dict[str, Mean], amounts: Amounts, of_fpr: Interval, of_fnr: Interval
) -> Interval:
    """The interval of fp c_fp + fn c_fn: positives and negatives are different people."""
    fp, fn = amounts
    a, b = fp * means["generalized_fpr"].value, -fn * means["generalized_fnr"].value
    return difference(a, (fp * of_fpr[0], fp * of_fpr[1]), b, (-fn * of_fnr[1], -fn * of_fnr[0]))


def _corners(interval: Interval) -> tuple[float, float, float]:
    """Where a trivial cost can be largest or smallest: the ends, and 1/2 if it is inside."""
    low, high = interval
    return low, high, min(max(0.5, low), high)


def _trivial(mu: float, amounts: Amounts, by_base_rate: bool) -> float:
    fp, fn = amounts
    return (fp + fn) * mu * (1.0 - mu) if by_base_rate else fp * mu + fn * (1.0 - mu)


def _with_gaps(
    one: Estimate, gaps: dict[str, float], drawn: Replicates | None, place: int, confidence: float
) -> Estimate:
    """Add the calibration gaps; the debiased one estimates the same number as the plug-in.

    No gap is below the bound, so no interval ends below that of the bound.
    """
    one.values.update(gaps)
    if drawn is not None:
        tail = (1.0 - confidence) / 2.0
        for name, residuals in drawn.residuals.items():
            noise = residuals.noise[:, place]
            low, high = size_interval(residuals.found[place], noise, _absolute_sum, tail)
            interval = (low, max(high, one.intervals["calibration_gap_bound"][1]))
            one.intervals[name] = around(gaps[name], interval)
            if name == "calibration_gap":
                debiased = "calibration_gap_debiased"
                one.intervals[debiased] = around(gaps[debiased], interval)
    return one


def _absolute_sum(values: Floats) -> Floats:
    total: Floats = np.abs(values).sum(axis=-1)
    return total
