"""Confidence intervals for every number of an audit, from the cells of the tally.

===================================================  =============================================
base_rate, fpr, fnr, accuracy, selection_rate,       Wilson, with the effective number of rows
share; any rate of scores that are all 0 or 1
generalized_fpr, generalized_fnr, mean_score,        Student, corrected for skewness; a score test
brier, cost                                          inverted where few rows decide
trivial_cost                                         image of the interval of the base rate
other measures (see derived)                         by their limits: see margins
calibration_gap and its variants                     a test of each size on replicates, inverted
differences                                          MOVER from the two groups' intervals
disparities, highest, excess, target_cost, alpha     for all groups at once: see margins
===================================================  =============================================

They say what drawing other people would change.  They say nothing about labels that are wrong,
people who are missing, or scores that were trained on these rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from isocost.cells import Cells
from isocost.checks import short
from isocost.errors import Problem, UsageError, listing
from isocost.groups import Group, group_names
from isocost.measures import margins
from isocost.measures.calibration import SMOOTH_CELLS, Levels, bin_noise, gap_noise, levels_of
from isocost.measures.derived import GroupedPeople
from isocost.measures.feasibility import Feasibility, compared_groups, reach_of
from isocost.measures.margins import (
    CostBounds,
    Interval,
    Mean,
    around,
    complements,
    derived_interval,
    difference,
    fold,
    mean_interval,
    means_of,
    share_of,
    size_interval,
)
from isocost.measures.measure import Measure
from isocost.measures.table import BIAS, MEASURES, chosen_measures, cost_row
from isocost.question import DEFAULT, Question, asks
from isocost.result import Record
from isocost.tallies import Tally
from isocost.typing import Floats

Amounts = tuple[float, float]

Noise = Mapping[str, tuple[Floats, Floats]]


@dataclass(frozen=True)
class Estimate:
    """What is known about one group, or about everybody.

    Attributes
    ----------
    values, intervals : {name: ...}
        By the names of :class:`Measures`.
    covariance : float
        Of the cost with the trivial cost.
    gap_floor : float
        The calibration gap that this one has at least, when all groups are looked at.
    """

    values: dict[str, float]
    intervals: dict[str, Interval]
    covariance: float = 0.0
    gap_floor: float = math.nan


def estimate_groups(
    tally: Tally,
    question: Question,
    measures: Mapping[str, Measure],
    gaps: list[dict[str, float]],
    noise: list[Noise],
    population: GroupedPeople,
) -> tuple[list[Estimate], Estimate]:
    """Each group's numbers, and those of everybody.

    ``gaps`` are the calibration gaps of the groups, and last those of everybody; those without
    ``noise`` have no interval.
    """
    first = tally.grid.first_bin(population.threshold)
    groups, cells = tally.groups, tally.cells
    cost, confidence = question.cost, question.level
    plain = {name: measure for name, measure in measures.items() if measure.is_plain}
    derived = {name: measure for name, measure in measures.items() if measure.is_derived}
    pairs = complements(plain)
    simple = {name: row for name, row in plain.items() if name not in pairs} | {"bias": BIAS}

    def estimate(own: Cells, index: int, amounts: Amounts) -> Estimate:
        means = means_of(simple | _cost_rows(cost.by_base_rate, amounts), own, first)
        means.update((name, means[other].complement()) for name, other in pairs.items())
        means["share"] = share_of(own, cells)
        covariance = _covariance(own, means, amounts) if cost.by_base_rate else 0.0
        one = _from_means(means, cost.by_base_rate, amounts, confidence, covariance)
        for name, measure in derived.items():
            number = measure.estimated(population, index if index < len(groups) else None)
            one.values[name] = number.value
            one.intervals[name] = derived_interval(number, measure.limits, confidence)
        return _with_gaps(one, gaps[index], noise[index], confidence, len(groups))

    estimates = [
        estimate(cells.take(cells.of_group(index)), index, cost.amounts(group))
        for index, group in enumerate(groups)
    ]
    amounts = (1.0, 1.0) if cost.is_per_group else cost.amounts(groups[0])
    pooled = Cells.merge([cells.recoded([0] * len(groups))])
    everybody = estimate(pooled, len(groups), amounts)
    if cost.is_per_group:
        # A cost that differs by group has no meaning for everybody.
        for name in ("cost", "trivial_cost"):
            del everybody.values[name], everybody.intervals[name]
    return estimates, everybody


def _from_means(
    means: dict[str, Mean],
    by_base_rate: bool,
    amounts: Amounts,
    confidence: float,
    covariance: float,
) -> Estimate:
    """The intervals of the means, and of what follows from them."""
    spans = {name: mean_interval(mean, confidence) for name, mean in means.items()}
    values = {name: mean.value for name, mean in means.items()}
    values["cost"], spans["cost"] = _cost_interval(means, spans, by_base_rate, amounts)
    trivial = [_trivial(mu, amounts, by_base_rate) for mu in _corners(spans["base_rate"])]
    values["trivial_cost"] = _trivial(values["base_rate"], amounts, by_base_rate)
    spans["trivial_cost"] = around(values["trivial_cost"], (min(trivial), max(trivial)))
    values["calibration_gap_bound"] = abs(values["bias"])
    spans["calibration_gap_bound"] = fold(spans["bias"])
    # JSON lists numbers in this order: any cost comes right after the means, where the bias is.
    order = dict.fromkeys("cost" if name == "bias" else name for name in values)
    ordered = {name: values[name] for name in order}
    return Estimate(ordered, {name: spans[name] for name in order}, covariance)


def _covariance(cells: Cells, means: dict[str, Mean], amounts: Amounts) -> float:
    """Of a weighted cost with the trivial cost (fp + fn) mu (1 - mu), by linearization.

    The rates of a plain cost are means over one label, which do not covary with the base rate.
    """
    fp, fn = amounts
    mu = means["base_rate"].value
    score = cells.wh / cells.w
    paid = np.where(cells.label == 1, fn * (1.0 - score), fp * score)
    terms = cells.w2 * (paid - means["cost"].value) * (cells.label - mu)
    slope = (fp + fn) * (1.0 - 2.0 * mu)
    return slope * float(terms.sum()) / float(cells.w.sum()) ** 2


PAID = ("generalized_fpr", "generalized_fnr")
"""What a plain cost is a sum of."""


def _cost_rows(by_base_rate: bool, amounts: Amounts) -> dict[str, Measure]:
    """The means that a cost follows from."""
    if by_base_rate:
        return {"cost": cost_row(*amounts)}
    return {name: MEASURES[name] for name, amount in zip(PAID, amounts, strict=True) if amount}


def _cost_interval(
    means: dict[str, Mean], spans: dict[str, Interval], by_base_rate: bool, amounts: Amounts
) -> tuple[float, Interval]:
    """A cost and its interval; positives and negatives are different people."""
    if by_base_rate:
        return means["cost"].value, spans["cost"]
    paid = zip(PAID, amounts, strict=True)
    value = sum(amount * means[name].value for name, amount in paid if amount)
    return value, _plain_cost(means, amounts, spans)


def _plain_cost(means: dict[str, Mean], amounts: Amounts, spans: dict[str, Interval]) -> Interval:
    """The interval of fp c_fp + fn c_fn."""
    fp, fn = amounts
    if not fn:
        return fp * spans["generalized_fpr"][0], fp * spans["generalized_fpr"][1]
    if not fp:
        return fn * spans["generalized_fnr"][0], fn * spans["generalized_fnr"][1]
    of_fpr, of_fnr = spans["generalized_fpr"], spans["generalized_fnr"]
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
    one: Estimate, gaps: dict[str, float], noise: Noise, confidence: float, groups: int
) -> Estimate:
    """Add the calibration gaps; the debiased one estimates the same number as the plug-in.

    No gap is below the bound, so no interval ends below that of the bound.
    """
    one.values.update(gaps)
    tail = (1.0 - confidence) / 2.0
    for name, (residual, drawn) in noise.items():
        low, high, floor = size_interval(residual, drawn, tail, groups)
        interval = (low, min(1.0, max(high, one.intervals["calibration_gap_bound"][1])))
        one.intervals[name] = around(gaps[name], interval)
        if name == "calibration_gap":
            debiased = "calibration_gap_debiased"
            one.intervals[debiased] = around(gaps[debiased], interval)
            one = replace(one, gap_floor=floor)
    return one


def gap_floors(some: Sequence[Levels], groups: int, question: Question) -> list[float]:
    """The calibration gap that each of some groups has at least, as in an audit of all groups."""
    replicates = question.replicates or DEFAULT.replicates
    draws, tail = normal_draws(replicates, question.seed), (1.0 - question.level) / 2.0
    return [size_interval(*bin_noise(levels, draws), tail, groups)[2] for levels in some]


def normal_draws(replicates: int, seed: int) -> Floats:
    """What chance adds to calibration gaps, in standard errors: (replicates, cells)."""
    return np.random.default_rng(seed).standard_normal((replicates, SMOOTH_CELLS))


@dataclass(frozen=True)
class Intervals(Record):
    """Intervals of the numbers of an audit.

    Attributes
    ----------
    groups : {group: {name: (low, high)}}
        For each group, by the names of :class:`Measures`.
    overall : {name: (low, high)}
        For everybody together.
    differences : {name: (low, high)}
        The number of ``compared[0]`` less that of ``compared[1]``.  With three groups or more the
        pair was chosen after looking at the costs: use ``disparities`` there.
    compared : (group, group)
        The groups whose errors cost most and least.
    disparities : {name: (low, high)}
        The largest difference between any two groups.  Chance alone makes it larger, most of all
        when groups are alike; the interval allows for that: it starts above 0 only if some pair
        differs while all pairs are looked at.
    highest : tuple
        The groups that may be the one whose errors cost most.
    excess : (low, high)
        How far the highest cost is above the highest that calibrated scores of another group can
        have, less the tolerance.  Equal cost is feasible if it is at most 0.
    feasible_probability : float
        How likely an excess as large as the one seen would be if equal cost were just feasible.
        Small values speak against feasibility: it is ruled out below (1 - confidence) / 2.
    alpha : {group: (low, high)}
        The share to withhold; above 1, or infinite, where no share may be enough.
    target_cost : (low, high)
        The highest cost of any group.
    gap_floors : {group: float}
        The calibration gap that each group has at least, when all are looked at together.
    confidence, replicates, seed
        What it was made with.
    method : str
        "replicates", or "analytic" when there are none.
    """

    unwritten = ("groups", "overall", "gap_floors")

    groups: dict[Group, dict[str, Interval]]
    overall: dict[str, Interval]
    differences: dict[str, Interval]
    compared: tuple[Group, Group]
    disparities: dict[str, Interval]
    highest: tuple[Group, ...]
    excess: Interval
    feasible_probability: float
    alpha: dict[Group, Interval]
    target_cost: Interval
    gap_floors: dict[Group, float]
    confidence: float
    replicates: int
    seed: int
    method: str


@asks("cost", "threshold")
def intervals(tally: Tally, question: Question) -> Intervals:
    """Compute confidence intervals for every number of an audit.

    Parameters
    ----------
    tally : Tally, or data
        At least two groups with positives and negatives.
    cost, threshold, ...
        Fields of :class:`isocost.Question`; with data, keywords of :func:`isocost.tally`.

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
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> result = ic.intervals(compas(), "fpr")
    >>> low, high = result.differences["generalized_fpr"]
    >>> result.compared, f"{low:.3f} to {high:.3f}", result.highest
    (('African-American', 'Caucasian'), '0.077 to 0.098', ('African-American',))
    >>> round(result.feasible_probability, 3)
    0.0
    """
    question.cost.check_groups(tally.groups)
    groups = compared_groups(tally, question.min_group)
    reach = reach_of(tally.select(groups), question.among(groups))
    people, rows = population_of(tally, question, groups), chosen_measures(question.measures).rows
    return intervals_of(tally, question, rows, people, reach)


def intervals_of(
    tally: Tally,
    question: Question,
    rows: Mapping[str, Measure],
    people: GroupedPeople,
    reach: Feasibility,
) -> Intervals:
    """The same for measures that were chosen, and people and costs that were looked at before."""
    confidence, replicates = question.level, question.replicates
    groups, tolerance = tuple(reach.costs), reach.tolerance
    levels = [levels_of(tally, index) for index in (*range(len(tally.groups)), None)]
    gaps = [
        {name: m.of_levels(one) for name, m in rows.items() if m.of_levels is not None}
        for one in levels
    ]
    noise: list[Noise] = [{}] * len(levels)
    if replicates:
        draws = normal_draws(replicates, question.seed)
        noise = [
            gap_noise(one, gap["calibration_gap_smooth"], draws)
            for one, gap in zip(levels, gaps, strict=True)
        ]
    estimates, everybody = estimate_groups(tally, question, rows, gaps, noise, people)
    everyone = dict(zip(tally.groups, estimates, strict=True))
    costly = [group for group in groups if not math.isnan(reach.costs[group])]
    pair, candidates, probability = (groups[0], groups[-1]), list[int](), math.nan
    excess = target = (math.nan, math.nan)
    alpha = [excess] * len(costly)
    if len(costly) > 1:
        bounds = _cost_bounds([everyone[g] for g in costly], tolerance, confidence, tally.n)
        candidates = margins.highest(bounds)
        excess, probability = margins.excess(bounds)
        shares = np.array([reach.alpha[group] for group in costly])
        alpha = margins.alpha_intervals(bounds, candidates, shares)
        target = margins.target_interval(bounds, candidates)
        top, low = _extremes(bounds.cost[:, 0])
        pair = costly[top], costly[low]
    return Intervals(
        groups={group: one.intervals for group, one in everyone.items()},
        overall=everybody.intervals,
        differences=_differences(*(everyone[group] for group in pair)),
        compared=pair,
        disparities=_disparities([everyone[group] for group in groups], confidence, rows),
        highest=tuple(costly[index] for index in candidates),
        excess=excess,
        feasible_probability=probability,
        alpha=dict(zip(costly, alpha, strict=True)),
        target_cost=target,
        gap_floors={group: one.gap_floor for group, one in everyone.items()},
        confidence=confidence,
        replicates=replicates,
        seed=question.seed,
        method="replicates" if replicates else "analytic",
    )


def population_of(tally: Tally, question: Question, compared: Sequence[Group]) -> GroupedPeople:
    """The people of a tally; those compared may be the reference of others, if none is named."""
    candidates, reference = [tally.index_of(group) for group in compared], question.reference
    index = None
    if reference is not None:
        if isinstance(reference, Hashable) and reference in tally.groups:
            index = tally.index_of(reference)
        else:
            got, step = short(reference), f"name one of {listing(group_names(tally.groups))}"
            raise UsageError(Problem("reference", "must be a group of the data", got, step))
    return GroupedPeople.of_tally(tally, question.threshold, candidates, index)


def _cost_bounds(
    estimates: list[Estimate], tolerance: float, confidence: float, rows: float
) -> CostBounds:
    cost, trivial = (_ends(estimates, name) for name in ("cost", "trivial_cost"))
    covariance = np.array([one.covariance for one in estimates])
    return CostBounds(cost, trivial, covariance, tolerance, confidence, rows)


def _ends(estimates: list[Estimate], name: str) -> Floats:
    """Value, lower and upper end of a number for each group."""
    return np.array([(one.values[name], *one.intervals[name]) for one in estimates])


def _extremes(costs: Floats) -> tuple[int, int]:
    """The groups with the highest and the lowest cost; two groups even when all are equal."""
    top = int(np.argmax(costs))
    return top, min((i for i in range(len(costs)) if i != top), key=lambda i: float(costs[i]))


def _differences(a: Estimate, b: Estimate) -> dict[str, Interval]:
    return {
        name: difference(a.values[name], a.intervals[name], b.values[name], b.intervals[name])
        for name in a.intervals
        if name in b.intervals and name != "share"
    }


def _disparities(
    estimates: list[Estimate], confidence: float, measures: Mapping[str, Measure]
) -> dict[str, Interval]:
    """The range over the groups that have the number, for each number."""
    return {
        name: _disparity(_ends(estimates, name), confidence, measures.get(name))
        for name in estimates[0].intervals
        if name != "share"
    }


def _disparity(ends: Floats, confidence: float, measure: Measure | None) -> Interval:
    """The range of one number; ``ends`` has value, lower and upper end as columns."""
    known = np.isfinite(ends).all(axis=1)
    if known.sum() < 2:
        return math.nan, math.nan
    most = math.inf if measure is None else measure.limits[1] - measure.limits[0]
    return margins.range_interval(ends[known], confidence, most)


def disparity_intervals(
    tally: Tally, question: Question, names: Collection[str], groups: Sequence[Group]
) -> dict[str, Interval]:
    """The intervals of some disparities of an audit, plain measures or "cost", and no others.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> some = disparity_intervals(compas(), Question("fpr"), ["fpr"], compas().groups)
    >>> some["fpr"] == intervals(compas(), "fpr").disparities["fpr"]
    True
    """
    first, cells = tally.grid.first_bin(question.threshold), tally.cells
    cost, confidence = question.cost, question.level
    plain = {name: MEASURES[name] for name in names if name != "cost"}
    ends: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
    for group in groups:
        amounts = cost.amounts(group)
        paid = _cost_rows(cost.by_base_rate, amounts) if "cost" in ends else {}
        own = cells.take(cells.of_group(tally.index_of(group)))
        means = means_of(plain | paid, own, first)
        spans = {name: mean_interval(mean, confidence) for name, mean in means.items()}
        for name in plain:
            ends[name].append((means[name].value, *spans[name]))
        if "cost" in ends:
            value, span = _cost_interval(means, spans, cost.by_base_rate, amounts)
            ends["cost"].append((value, *span))
    return {
        name: _disparity(np.array(own), confidence, MEASURES.get(name))
        for name, own in ends.items()
    }
