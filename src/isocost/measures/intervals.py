"""The numbers of one group, or of everybody, each with its interval.

Confidence intervals for every number of an audit, from the cells of the tally.

===================================================  =============================================
base_rate, fpr, fnr, accuracy, selection_rate,       Wilson, with the effective number of rows
share; any rate of scores that are all 0 or 1
generalized_fpr, generalized_fnr, mean_score,        percentiles of replicates, expanded for small
brier, cost, alpha                                   samples; BCa but for alpha
trivial_cost                                         image of the interval of the base rate
calibration_gap and its variants                     a test of each size, inverted
differences                                          MOVER from the two groups' intervals
===================================================  =============================================

They say what drawing other people would change.  They say nothing about labels that are wrong,
people who are missing, or scores that were trained on these rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.checks import check_confidence, check_seed, check_threshold, check_tolerance, short
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import Problem, UsageError
from isocost.groups import Group, to_json
from isocost.measures import rates
from isocost.measures.bootstrap import Replicates, resample
from isocost.measures.calibration import levels_of
from isocost.measures.feasibility import SLACK, Feasibility, feasibility, mixing_rates
from isocost.measures.margins import (
    Interval,
    Mean,
    around,
    difference,
    expanded_tail,
    fold,
    mean_interval,
    mean_of,
    normal_quantile,
    percentiles,
    share_of,
    size_interval,
)
from isocost.measures.table import BIAS, Measure, chosen_measures, cost_row
from isocost.tallies import Cells, Sums, Tally, check_tally

__all__ = ["Estimate", "Intervals", "estimate_groups", "intervals"]

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


MOST_REPLICATES = 100_000


@dataclass(frozen=True)
class Intervals:
    """Intervals of the numbers of an audit.

    Attributes
    ----------
    groups : {group: {name: (low, high)}}
        For each group, by the names of :class:`Measures`.
    overall : {name: (low, high)}
        For everybody together.
    differences : {name: (low, high)}
        The number of ``compared[0]`` less that of ``compared[1]``.  An interval that holds 0 says
        that no difference is established.  With three groups or more the pair was chosen
        after looking at the costs: use ``disparities`` there.
    compared : (group, group)
        The groups whose errors cost most and least.
    disparities : {name: (low, high)}
        The largest difference between any two groups, at least 0.  Chance alone makes it
        larger, most of all when groups are alike; the interval allows for that.
    alpha : {group: (low, high)}
        The share to withhold; above 1, or infinite, where no share is enough.  From 0 to infinity
        for all when some group has less than two effective rows of a label that costs.
    target_cost : (low, high)
        The highest cost of any group.
    feasible_probability : float or None
        The share of replicates in which equal cost is feasible; None without replicates, and
        when a group is too small to say (as for ``alpha``).
    direction_probability : float or None
        The share of replicates in which the same group has the highest cost; ties count in part.
        Without replicates a normal approximation, for three groups or more a lower bound.
    direction_established : bool
        Whether that share is at least (1 + confidence) / 2, and the intervals of the difference
        in cost from every other group lie above 0.  For two groups both say the same, unless
        a group is small.
    confidence, replicates, seed
        What it was made with.
    method : str
        "replicates", or "analytic" when there are none.
    """

    groups: dict[Group, dict[str, Interval]]
    overall: dict[str, Interval]
    differences: dict[str, Interval]
    compared: tuple[Group, Group]
    disparities: dict[str, Interval]
    alpha: dict[Group, Interval]
    target_cost: Interval
    feasible_probability: float | None
    direction_probability: float | None
    direction_established: bool
    confidence: float
    replicates: int
    seed: int
    method: str

    @property
    def direction_share(self) -> float | None:
        """The share of resamples in which the same group has the highest cost; None without any."""
        return self.direction_probability if self.replicates else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; groups become [group, ...] pairs, infinity becomes null."""

        def plain(interval: Interval) -> list[float | None]:
            return [end if math.isfinite(end) else None for end in interval]

        return {
            "confidence": self.confidence,
            "replicates": self.replicates,
            "seed": self.seed,
            "method": self.method,
            "compared": [to_json(group) for group in self.compared],
            "differences": {name: plain(i) for name, i in self.differences.items()},
            "disparities": {name: plain(i) for name, i in self.disparities.items()},
            "alpha": [[to_json(group), plain(i)] for group, i in self.alpha.items()],
            "target_cost": plain(self.target_cost),
            "feasible_probability": self.feasible_probability,
            "direction_probability": self.direction_probability,
            "direction_established": self.direction_established,
        }


def intervals(
    tally: Tally,
    cost: CostLike = "fnr",
    threshold: float = 0.5,
    *,
    tolerance: float = 0.0,
    confidence: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
    measures: Iterable[Measure] | None = None,
) -> Intervals:
    """Say how far the numbers of an audit may be off because other people might have been drawn.

    Parameters
    ----------
    tally : Tally
        At least two groups, each with positives and negatives.
    cost, threshold, tolerance
        As for :func:`isocost.audit`.
    confidence : float
        How often an interval should hold the true number, over many data sets.
    replicates : int
        How often the cells are resampled; 0 for closed forms only, without intervals for the
        calibration gap and alpha.
    seed : int
        The same seed gives the same intervals.
    measures : sequence of Measure, optional
        Measures of your own, besides those of :data:`isocost.MEASURES`.

    Notes
    -----
    Rows are taken to be drawn independently: for several rows a person, or people who come in
    clusters, intervals are too narrow.  Each interval stands for itself; of twenty at 95 %,
    expect one to miss.

    The plug-in gap is too high for small samples, so it lies near the top of its interval.

    A number that does not vary in the sample, such as a constant score, has an interval without
    width, unless it is a proportion.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> found = intervals(compas(), "fpr")
    >>> low, high = found.differences["generalized_fpr"]
    >>> found.compared, f"{low:.3f} to {high:.3f}", found.direction_established
    (('African-American', 'Caucasian'), '0.078 to 0.099', True)
    >>> found.feasible_probability
    0.0
    """
    check_tally(tally)
    cost, threshold = as_cost(cost), check_threshold(threshold)
    tolerance, confidence = check_tolerance(tolerance), check_confidence(confidence)
    replicates, seed = _check_replicates(replicates, confidence), check_seed(seed)
    verdict = feasibility(tally, cost, tolerance)
    rows = chosen_measures(measures)
    gaps = [
        {name: m.of_levels(levels) for name, m in rows.items() if m.of_levels is not None}
        for levels in (levels_of(tally, i) for i in (*range(len(tally.groups)), None))
    ]
    bandwidths = [gap["calibration_gap_smooth"] for gap in gaps]
    drawn = resample(tally, threshold, replicates, seed, bandwidths) if replicates else None
    found, everybody = estimate_groups(tally, cost, threshold, confidence, rows, gaps, drawn)
    top, low = _extremes([verdict.costs[group] for group in tally.groups])
    alpha: dict[Group, Interval] = {}
    feasible = direction = None
    # One row of a label says nothing of what its group costs, and so of who costs most.
    known = all(math.isfinite(one.cost_factor) for one in found)
    one_sided = (1.0 + confidence) / 2.0
    if known and drawn is None:
        direction = _direction(found, top, normal_quantile(one_sided))
    if drawn is not None:
        costs = rates.group_costs(drawn.sums, tally.groups, cost)
        trivial = rates.trivial_costs(drawn.sums, tally.groups, cost)
        alpha = _alpha(found, mixing_rates(costs, trivial, tolerance), top, verdict)
        direction = _direction_share(costs, top) if known else None
        feasible = _feasible_share(costs, trivial, tolerance) if known else None
    established = direction is not None and direction >= one_sided and _costs_most(found, top)
    return Intervals(
        groups={group: one.intervals for group, one in zip(tally.groups, found, strict=True)},
        overall=everybody.intervals,
        differences=_differences(found[top], found[low]),
        compared=(tally.groups[top], tally.groups[low]),
        disparities=_disparities(found, confidence, replicates, seed),
        alpha=alpha,
        target_cost=_target_cost(found),
        feasible_probability=feasible,
        direction_probability=direction,
        direction_established=established,
        confidence=confidence,
        replicates=replicates,
        seed=seed,
        method="replicates" if replicates else "analytic",
    )


def _extremes(costs: list[float]) -> tuple[int, int]:
    """The groups with the highest and the lowest cost; two groups even when all are equal."""
    top = int(np.argmax(costs))
    return top, min((i for i in range(len(costs)) if i != top), key=lambda i: costs[i])


def _differences(a: Estimate, b: Estimate) -> dict[str, Interval]:
    return {
        name: difference(a.values[name], a.intervals[name], b.values[name], b.intervals[name])
        for name in a.intervals
        if name in b.intervals and name != "share"
    }


def _disparities(
    found: list[Estimate], confidence: float, replicates: int, seed: int
) -> dict[str, Interval]:
    """The range over the groups, for each number.

    For two groups it is the size of their difference.  For more, normal noise of the width of
    each group's interval stands for the replicates; without replicates there is no interval.
    """
    if len(found) == 2:
        return {name: fold(interval) for name, interval in _differences(*found).items()}
    if not replicates:
        return {}
    draws = np.random.default_rng((seed, 1)).standard_normal((replicates, len(found)))
    z = normal_quantile((1.0 + confidence) / 2.0)
    result = {}
    for name in _differences(*found[:2]):
        values = np.array([one.values[name] for one in found])
        known = ~np.isnan(values)
        if known.sum() < 2:
            result[name] = (math.nan, math.nan)
            continue
        values, errors = values[known], np.array([_error(one, name, z) for one in found])[known]
        noise = errors * draws[:, known]
        interval = size_interval(values, noise, _range, (1.0 - confidence) / 2.0)
        result[name] = around(float(np.ptp(values)), interval)
    return result


def _range(values: Floats) -> Floats:
    spread: Floats = values.max(axis=-1) - values.min(axis=-1)
    return spread


def _error(one: Estimate, name: str, z: float) -> float:
    low, high = one.intervals[name]
    return (high - low) / (2.0 * z)


def _target_cost(found: list[Estimate]) -> Interval:
    """The highest cost, safe against the luck of the group that happens to look worst.

    The lower ends are taken at a confidence raised for the number of groups (Bonferroni).
    """
    return max(one.safe_cost for one in found), max(one.intervals["cost"][1] for one in found)


def _direction(found: list[Estimate], top: int, z: float) -> float:
    """A normal approximation; exact for two groups, a lower bound for more."""
    from scipy.special import ndtr

    missed = 0.0
    for place, other in enumerate(found):
        if place != top:
            gap = found[top].values["cost"] - other.values["cost"]
            error = math.hypot(_error(found[top], "cost", z), _error(other, "cost", z))
            missed += float(ndtr(-gap / error)) if error > 0 else float(gap <= SLACK) / 2.0
    return max(0.0, 1.0 - missed)


def _direction_share(costs: Floats, top: int) -> float:
    """How often the group costs most; of equal ones each counts in part."""
    highest = costs >= costs.max(axis=-1, keepdims=True) - SLACK
    return float((highest[:, top] / highest.sum(axis=-1)).mean())


def _costs_most(found: list[Estimate], top: int) -> bool:
    others = (one for place, one in enumerate(found) if place != top)
    return all(_differences(found[top], other)["cost"][0] > 0 for other in others)


def _alpha(
    found: list[Estimate], alpha: Floats, top: int, verdict: Feasibility
) -> dict[Group, Interval]:
    """Percentiles of the mixing rates; the smaller of the two groups sets how far to expand.

    Where the costs may differ by no more than the tolerance, nothing may have to be withheld.
    """
    if not all(math.isfinite(one.cost_factor) for one in found):
        return dict.fromkeys(verdict.alpha, (0.0, math.inf))
    result = {}
    for place, (group, estimate) in enumerate(verdict.alpha.items()):
        factor = max(found[place].cost_factor, found[top].cost_factor)
        low, high = percentiles(alpha[:, place], expanded_tail(factor))
        needed = _differences(found[top], found[place])["cost"][0] > verdict.tolerance
        result[group] = around(estimate, (low if needed else 0.0, high))
    return result


def _feasible_share(costs: Floats, trivial: Floats, tolerance: float) -> float:
    goal = costs.max(axis=-1, keepdims=True) - tolerance
    return float((goal <= np.maximum(costs, trivial) + SLACK).all(axis=-1).mean())


def _check_replicates(replicates: Any, confidence: float) -> int:
    # Five replicates beyond each end are the least that an end can be read from.
    least = max(100, math.ceil(10.0 / (1.0 - confidence) - 1e-6))
    whole = isinstance(replicates, int | np.integer) and not isinstance(replicates, bool)
    if not whole or not (replicates == 0 or least <= replicates <= MOST_REPLICATES):
        raise UsageError(
            Problem(
                "replicates",
                f"must be 0, or a whole number from {least} to {MOST_REPLICATES} for "
                f"confidence={confidence:g}",
                short(replicates),
                f"use replicates={max(2000, least)}, or 0 for closed forms only"
                if least <= MOST_REPLICATES
                else "use a lower confidence, or replicates=0 for closed forms only",
            )
        )
    return int(replicates)
