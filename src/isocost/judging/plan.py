"""The number of people needed to establish a difference or calibration, or for a repair to hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from isocost.cells import KEYS, SUMS, Cells
from isocost.checks import check_amount, check_confidence
from isocost.costs import Cost
from isocost.errors import DataError, Problem, UsageError
from isocost.groups import Group, group_names, names_of
from isocost.judging.unseen import ABOUT_RULE, Population, Replicates, Report, Yardstick, safe_level
from isocost.measures.calibration import bin_noise, levels_of
from isocost.measures.feasibility import MIN_LABEL, large_groups
from isocost.measures.intervals import (
    SLACK,
    Estimates,
    design_effects,
    disparity_intervals,
    normal_draws,
    normal_quantile,
    size_interval,
)
from isocost.measures.rates import group_costs, require_two_groups
from isocost.question import DEFAULT, LEAST_REMAKES, Question, asks
from isocost.repairs.base import titles_of
from isocost.repairs.table import remade
from isocost.result import Result
from isocost.rules import Rule
from isocost.tables import columns_from
from isocost.tallies import Tally
from isocost.typing import Floats
from isocost.verdict.judgement import CALIBRATED

TRIALS, ROUGH, DRAWS = 10, 3, 100
"""Sizes that are tried when planning for a difference, the first of them to come near, and samples
drawn of each."""

POOL = 20
"""First samples that might have been, from each of which as many samples are drawn."""


@dataclass(frozen=True)
class GroupPlan:
    """The number of people in one group: ``rows`` are there.

    ``difference`` are needed to establish a difference of the size asked for, ``calibration`` to
    rule out a calibration gap above the limit, if there is none.
    """

    rows: float
    difference: float
    calibration: float


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """The number of people that each group takes.

    Attributes
    ----------
    groups : {group: GroupPlan}
        What each group takes.
    cost, detect, limit, confidence, power
        As asked for.
    tally : Tally
        The first sample.
    """

    format = "isocost-plan"
    unwritten = ("tally",)

    groups: Mapping[Group, GroupPlan]
    cost: Cost
    detect: float
    limit: float
    confidence: float
    power: float
    tally: Tally

    def to_frame(self, *, backend: str | None = None) -> Any:
        """A row for each group, in the library of the data; see :meth:`isocost.Audit.to_frame`."""
        numbers = columns_from([asdict(one) for one in self.groups.values()])
        return self.tally.frame_by_group(list(self.groups), numbers, backend)

    def headline(self) -> str:
        """The purpose of the numbers, in a line."""
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


@asks("cost", "detect")
def plan(
    tally: Tally,
    question: Question,
    *,
    detect: float = 0.05,
    limit: float = CALIBRATED,
    power: float = 0.8,
) -> Plan:
    """Compute how many people of each group are needed to establish a difference, or calibration.

    The number for a difference is found by simulation.  Samples are drawn from the cells of the
    tally, moved so that the costs of the groups lie as in the first sample and the highest and the
    lowest differ by exactly ``detect``; each is asked what an audit asks: whether at least two
    groups are large enough, and whether the interval of the largest difference starts above the
    tolerance.  The sizes are those at which the answer is yes with a chance of ``power``, on
    average over what the first sample leaves open (its cells are resampled first).  Costs
    are moved by weighting rows with exp(t x), where x is what a row costs; where scores do not vary
    enough for that, by moving scores.  Each group gets the rows that make its share of the variance
    the same.  Another seed gives numbers that differ by about 5 %.

    If the tally knows that people have several rows, numbers are multiplied by the largest design
    effect that is known in the group, and are of rows, as many per person as there are now.

    For calibration it is the number of rows at which the interval of the gap of calibrated scores
    ends below the limit, with the given power.  No group gets fewer rows than it takes to be
    compared at all.

    Parameters
    ----------
    tally : Tally, or data
        A first sample.  A group that is too small to be compared is taken to vary as everybody
        does.
    cost, tolerance, confidence, replicates, seed, min_group
        What is asked: see :class:`isocost.Question`.
    detect : float
        The difference in cost between two groups at which it is to be established that costs
        differ by more than the tolerance.
    limit : float
        The calibration gap to be ruled out.
    power : float
        The chance that the plan succeeds if the difference is there.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> ic.plan(compas(), "fpr", detect=0.02)
    People needed; cost fpr; 0.95 intervals, power 0.8
    group               now  difference of 0.02  gap within 0.02
    ----------------  -----  ------------------  ---------------
    African-American  3,696               2,536           10,731
    Caucasian         2,454               1,568           10,135
    """
    cost, confidence = question.cost, question.level
    cost.check_groups(tally.groups)
    detect = check_confidence(detect, "detect", 0.05)
    limit = check_confidence(limit, "limit", CALIBRATED)
    power = check_confidence(power, "power", 0.8)
    counts = tally.totals.n.sum(axis=0)
    if not counts.all():
        kind = ("negatives", "positives")[int(counts.argmin())]
        rule = "must have positives and negatives, to see how much costs vary"
        step = "check the label column, or count more people first"
        raise DataError(Problem("label", rule, f"{tally.n:,.15g} rows, no {kind}", step))
    if detect <= question.tolerance:
        rule = f"must be greater than the tolerance, {question.tolerance:g}"
        step = "plan for a larger difference, or with a lower tolerance"
        raise UsageError(Problem("detect", rule, f"{detect:g}", step))
    require_two_groups(tally)
    large = large_groups(tally, question.min_group)
    draws = normal_draws(question.replicates or DEFAULT.replicates, question.seed)
    parts, gaps, least = [], [], []
    for index, group in enumerate(tally.groups):
        like = index if group in large else None
        cells = Cells.merge([tally.cells.recoded([0] * len(tally.groups))])
        if like is not None:
            cells = tally.cells.take(tally.cells.of_group(index))
        parts.append(cells)
        rows = float(cells.n.sum())
        # The end of the interval of the gap, with this power, if the group were calibrated.
        _, noise = bin_noise(levels_of(tally, like), draws)
        error, size = noise.std(axis=0), float(np.quantile(np.abs(noise).sum(axis=1), power))
        gap = size_interval(error * (size / error.sum()), noise, (1.0 - confidence) / 2.0)[1]
        gaps.append(rows * (gap / limit) ** 2)
        rarer = min(float((cells.n * (cells.label == y)).sum()) for y in (0, 1)) / rows
        least.append(max(question.min_group, math.ceil(MIN_LABEL / rarer) if rarer else 0))
    needed = _sizes(_joined(tally, parts), parts, question, detect, power, np.array(least))
    # As many times as many rows, where rows of a person tell the same.
    effects = design_effects(tally)
    needed = np.ceil(needed * effects)
    calibration = np.ceil(np.maximum(least, gaps * effects)).tolist()
    now = tally.totals.n.sum(axis=1).tolist()
    plans = map(GroupPlan, now, needed.tolist(), calibration)
    groups = dict(zip(tally.groups, plans, strict=True))
    return Plan(groups, cost, detect, limit, confidence, power, tally)


def _sizes(
    tally: Tally,
    parts: Sequence[Cells],
    question: Question,
    detect: float,
    power: float,
    least: Floats,
) -> Floats:
    """The sizes at which an audit establishes a difference with a chance of ``power``.

    They are multiples of first sizes, found by stochastic approximation (Robbins and Monro 1951)
    that takes the normal quantile of the chance to grow with the root of the rows.
    """
    groups, random = range(len(parts)), np.random.default_rng(question.seed)
    estimates, level = Estimates(tally, question), question.level
    rows: Floats = tally.totals.n.sum(axis=1)
    costs = estimates.costs["cost"][:-1]
    low, high = costs.min(), costs.max()
    places = np.linspace(0.5, -0.5, len(costs))
    if high - low > SLACK:
        places = (costs - (low + high) / 2.0) / (high - low)
    worst = replace(tally.cells, wh=np.where(tally.cells.label == 0, tally.cells.w, 0.0))
    most = group_costs(worst.totals(len(parts)), tally.groups, question.cost)
    # Room is left at both ends, so that no cost becomes extreme.
    middle = min((low + high) / 2.0, (most.min() + high - detect) / 2.0)
    goals = np.clip(max(middle, (low + detect) / 2.0) + places * detect, 0.0, most)
    pool = []
    for _ in range(POOL):
        # Another first sample that might have been; this one where a label would be lost.
        again = [drawn(part, random, n) for part, n in zip(parts, rows, strict=True)]
        kept = [one if np.ptp(one.label) else part for one, part in zip(again, parts, strict=True)]
        pool.append([moved(kept[g], tally.groups[g], question.cost, goals[g]) for g in groups])
    widths = [high - low for (low, high), _ in map(estimates.cost_interval, groups)]
    pairs = len(parts) * (len(parts) - 1) / 2.0
    z, critical = (normal_quantile(1.0 - (1.0 - level) / 2.0 / n) for n in (1.0, pairs))
    reach = max(critical + normal_quantile(power), 0.5)
    errors = np.array(widths) / (2.0 * z) * math.sqrt(2.0) * reach / (detect - question.tolerance)
    first = np.maximum(rows * errors**2, least)
    times, sizes = 1.0, np.asarray(np.ceil(first))
    for trial in range(TRIALS):
        done = 0
        for people in pool * (DRAWS // POOL):
            sample = _joined(tally, [drawn(people[g], random, sizes[g]) for g in groups])
            compared = large_groups(sample, question.min_group)
            if len(compared) > 1:
                asked = Estimates(sample, question, compared)
                ends = disparity_intervals(asked, ["cost"], compared)["cost"]
                done += ends[0] > question.tolerance + SLACK
        if done >= power * DRAWS and (sizes == least).all():
            break
        seen = critical + normal_quantile((done + 0.5) / (DRAWS + 1.0))
        gain = 1.0 if trial < ROUGH else 1.0 / (trial - 1.0)
        times *= (reach / max(seen, reach / 2.0)) ** (2.0 * gain)
        sizes = np.asarray(np.maximum(least, np.ceil(first * times)))
    return sizes


def _joined(tally: Tally, parts: Sequence[Cells]) -> Tally:
    """A tally like this one with other cells of each group."""
    index = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    names = [name for name in (*KEYS, *SUMS) if name != "group"]
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    return Tally(tally.grid, tally.groups, Cells(index, *columns))


def _times(cells: Cells, times: Floats) -> Cells:
    """The cells with each of their rows so many times, all in one group."""
    sums = (times * values for values in cells.sums.values())
    return Cells(np.zeros_like(cells.group), cells.label, cells.bin, *sums)


def drawn(cells: Cells, random: np.random.Generator, rows: float) -> Cells:
    """A new sample of so many rows.

    Weighted rows of a cell are drawn as fewer equal ones, (sum w)^2 / sum w^2, so that a sum of
    weights varies as much as it does in truth.
    """
    effective = cells.w**2 / cells.w2
    total = effective.sum()
    counts = random.multinomial(round(rows * total / cells.n.sum()), effective / total)
    kept = np.flatnonzero(counts)
    return _times(cells.take(kept), counts[kept] / effective[kept])


def moved(cells: Cells, group: Group, cost: Cost, goal: float) -> Cells:
    """The cells with the cost moved to a goal: a row that costs x counts exp(t x) times.

    Of a rate the share of each label stays.  Where scores vary too little they are moved as well.
    """
    from scipy.optimize import brentq

    harm, score = np.where(cells.label == 1, -1.0, 1.0), cells.wh / cells.w
    amounts = np.array(cost.amounts(group))[cells.label]
    paid = amounts * (cells.label + harm * score)
    part = np.zeros_like(cells.label) if cost.by_base_rate else cells.label

    def changed(t: float, shift: float) -> Cells:
        step = np.clip(score + shift * harm, 0.0, 1.0) - score
        wh2 = cells.wh2 + 2.0 * step * cells.wh + step**2 * cells.w
        times = np.exp(t * paid)
        share = np.bincount(part, cells.w) / np.bincount(part, times * cells.w)
        return _times(replace(cells, wh=cells.wh + step * cells.w, wh2=wh2), times * share[part])

    def above(t: float, shift: float = 0.0) -> float:
        totals = changed(t, shift).totals(1)
        return float(group_costs(totals, (group,), cost)[0]) - goal

    most = 50.0 / amounts.max()
    if above(-most) < 0.0 < above(most):
        return changed(brentq(above, -most, most), 0.0)
    return changed(0.0, brentq(lambda shift: above(0.0, shift), -1.0, 1.0))


TIMES = tuple(2.0**power for power in range(-2, 9))
"""Multiples of the people there are that are tried, until they are enough."""


@dataclass(frozen=True, repr=False)
class RepairPlan(Result):
    """The number of people that a repair needs to hold on new ones.

    Attributes
    ----------
    groups : {group: float}
        How many people of each group are needed; infinity if 256 times as many are not enough, or
        if the rule can hardly ever be made.
        Groups that the rule was made without are not among them.
    now : {group: float}
        How many there are.
    times : array
        The sizes that were tried, as multiples of what there is.
    expected, limit : arrays
        At each size, how far groups are expected to differ on new people in what the rule makes
        equal, and at most.
    rule, within, confidence
        What it was made with.
    tally : Tally
        The first sample.
    """

    format = "isocost-repair-plan"
    written = ("_method", "within", "confidence", "_groups", "_sizes")

    groups: Mapping[Group, float]
    now: Mapping[Group, float]
    times: Floats
    expected: Floats
    limit: Floats
    rule: Rule
    within: float
    confidence: float
    tally: Tally

    def to_frame(self, *, backend: str | None = None) -> Any:
        """A row for each group, in the library of the data; see :meth:`isocost.Audit.to_frame`."""
        needed = [float(rows) for rows in self.groups.values()]
        numbers = {"rows": list(self.now.values()), "needed": needed}
        return self.tally.frame_by_group(list(self.groups), numbers, backend)

    def headline(self) -> str:
        """The purpose of the numbers, in a line."""
        return (
            f"People needed for {self.rule.method} to hold {titles_of(self.rule.promise)} within "
            f"{self.within:g} on new people, confidence {self.confidence:.4g}"
        )

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The printed table, as header and rows."""
        names, rows = names_of(self.groups), []
        for group, needed in self.groups.items():
            enough = f"{needed:,.0f}" if math.isfinite(needed) else "out of reach"
            rows.append([names[group], f"{self.now[group]:,.0f}", enough])
        return ["group", "now", "needed"], rows

    def _method(self) -> str:
        return self.rule.method

    def _groups(self) -> dict[Group, Any]:
        return {g: {"rows": self.now[g], "needed": rows} for g, rows in self.groups.items()}

    def _sizes(self) -> list[dict[str, float]]:
        sizes = zip(self.times, self.expected, self.limit, strict=True)
        return [dict(zip(("times", "expected", "limit"), one, strict=True)) for one in sizes]


@asks("rule", "within", **ABOUT_RULE)
def plan_repair(
    tally: Tally,
    question: Question,
    rule: Rule,
    *,
    within: float = 0.02,
    progress: Report | None = None,
) -> RepairPlan:
    """Say how many people a repair needs to hold within a tolerance on new people.

    As in :func:`isocost.unseen`, with samples of other sizes than that of the tally: a quarter of
    it, half of it and so on, until the limit is within the tolerance.  Between two sizes the
    limit is taken to be a power of the size.

    Parameters
    ----------
    tally : Tally, or data
        A first sample.
    rule : Rule
        Made from it by the method and with the settings that are planned.
    within : float
        Largest acceptable difference among new people in what the rule makes equal; must be above
        zero.
    remakes, confidence, seed, progress
        As in :func:`isocost.unseen`; 100 remakes by default.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> plan = ic.plan_repair(compas(), ic.reconcile(compas()), within=0.05, remakes=20)
    >>> plan.times[:2], bool(plan.limit[0] > plan.limit[-1])
    (array([0.25, 0.5 ]), True)
    """
    within, confidence = check_within(within), question.level
    if not rule.promise.equal:
        step = "make the rule again with withhold, coarsen, equalize_odds or reconcile"
        raise UsageError(Problem("rule", "must promise what it makes equal", "none", step))
    remade(rule, tally)
    yardstick = Yardstick.of(tally, rule, question)
    made_from, base = tally.select(yardstick.made_from), yardstick.numbers(tally, rule)
    population, random = (
        Population(made_from, rule.promise.equal),
        np.random.default_rng(question.seed),
    )
    remakes, sizes = question.remakes or 100, []
    for step_number, size in enumerate(TIMES):
        replicates = Replicates(yardstick, population, rule)
        for index in range(remakes):
            replicates.add(random, base, size)
            if progress is not None:
                progress((step_number + (index + 1) / remakes) / len(TIMES), None)
        if len(replicates.true) < LEAST_REMAKES:
            continue
        # The last number is the difference in what the rule makes equal.
        true = np.array(replicates.true)[:, -1]
        limit = float(np.quantile(true, safe_level(confidence, len(true))))
        sizes.append((size, float(true.mean()), limit))
        if limit <= within:
            break
    times, expected, limits = np.array(sizes).reshape(-1, 3).T
    enough = math.inf
    if len(limits) and limits[-1] <= within:
        enough = float(times[-1])
        if len(limits) > 1:
            # The limit comes down to the tolerance on a line through logarithms.
            x, y = np.log2(times[-2:]), np.log(np.maximum(limits[-2:], 1e-300))
            share = (y[0] - math.log(within)) / (y[0] - y[1])
            enough = float(2.0 ** (x[0] + share * (x[1] - x[0])))
    rows = zip(made_from.groups, made_from.totals.n.sum(axis=1).tolist(), strict=True)
    now = {group: n for group, n in rows if group in rule.fitted}
    needed = {
        group: math.ceil(n * enough) if math.isfinite(enough) else math.inf
        for group, n in now.items()
    }
    return RepairPlan(needed, now, times, expected, limits, rule, within, confidence, tally)


def check_within(within: Any, name: str = "within") -> float:
    """Largest acceptable difference among new people; must be above zero."""
    step = "use 0.02, for example, or the difference you accept"
    checked = check_amount(name, within, step)
    if checked == 0.0:
        must = "must be greater than 0: new people differ by chance, however many there are"
        raise UsageError(Problem(name, must, f"{within!r}", step))
    return checked
