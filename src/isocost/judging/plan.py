"""The number of people needed to establish a difference or calibration, or for a repair to hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from isocost.cells import Cells
from isocost.checks import check_amount, check_confidence
from isocost.costs import Cost
from isocost.errors import DataError, Problem, UsageError
from isocost.groups import Group, group_names, names_of
from isocost.judging.unseen import ABOUT_RULE, Population, Replicates, Report, Yardstick, safe_level
from isocost.measures.calibration import bin_noise, levels_of
from isocost.measures.derived import People
from isocost.measures.feasibility import MIN_LABEL, large_groups
from isocost.measures.intervals import (
    mean_of,
    normal_draws,
    normal_quantile,
    size_interval,
    stretch,
)
from isocost.measures.table import MEASURES, cost_row
from isocost.question import DEFAULT, LEAST_REMAKES, Question, asks
from isocost.repairs.base import titles_of
from isocost.repairs.table import remade
from isocost.result import Result
from isocost.rules import Rule
from isocost.tables import columns_from
from isocost.tallies import Tally
from isocost.typing import Floats
from isocost.verdict.judgement import CALIBRATED


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
    tally : Tally, or data
        A first sample.  A group that is too small to be compared is taken to vary as everybody
        does.
    cost, confidence, replicates, seed, min_group
        What is asked: see :class:`isocost.Question`.
    detect : float
        The difference in cost to be established.
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
    African-American  3,696               2,225           10,731
    Caucasian         2,454               1,374           10,135
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
    large = large_groups(tally, question.min_group)
    z = normal_quantile((1.0 + confidence) / 2.0)
    factor = z * stretch(confidence, max(2, len(tally.groups))) + normal_quantile(power)
    variance = (detect / factor) ** 2 / 2.0
    draws = normal_draws(question.replicates or DEFAULT.replicates, question.seed)
    result = {}
    for index, group in enumerate(tally.groups):
        own = tally.cells.take(tally.cells.of_group(index))
        like, cells = (index, own) if group in large else (None, tally.cells)
        rows = float(cells.n.sum())
        now = _cost_variance(cells, cost, group)
        # The end of the interval of the gap, with this power, if the group were calibrated.
        _, noise = bin_noise(levels_of(tally, like), draws)
        error, size = noise.std(axis=0), float(np.quantile(np.abs(noise).sum(axis=1), power))
        gap = size_interval(error * (size / error.sum()), noise, (1.0 - confidence) / 2.0)[1]
        needed = (rows * now / variance, rows * (gap / limit) ** 2)
        rarer = min(float((cells.n * (cells.label == y)).sum()) for y in (0, 1)) / rows
        least = max(question.min_group, math.ceil(MIN_LABEL / rarer) if rarer else 0)
        result[group] = GroupPlan(float(own.n.sum()), *(max(least, math.ceil(n)) for n in needed))
    return Plan(result, cost, detect, limit, confidence, power, tally)


def _cost_variance(cells: Cells, cost: Cost, group: Group) -> float:
    """The squared standard error of the group's cost."""
    amounts = cost.amounts(group)
    parts = list(zip(amounts, ("generalized_fpr", "generalized_fnr"), strict=True))
    rows = [(amount, MEASURES[name]) for amount, name in parts if amount]
    if cost.by_base_rate:
        rows = [(1.0, cost_row(*amounts))]
    people = People.of_cells(cells, 0)
    means = [(amount, mean_of(row, people)) for amount, row in rows]
    return sum((amount * (mean.error * mean.inflation)) ** 2 for amount, mean in means)


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
    population, random = Population(made_from), np.random.default_rng(question.seed)
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
