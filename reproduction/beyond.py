"""Beyond the paper: other repairs, held-out people, more than two groups, other ages."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from isocost.costs import as_cost
from isocost.judging.compare import compare
from isocost.judging.offers import Compared
from isocost.measures.feasibility import feasibility
from isocost.measures.rates import group_costs
from isocost.tallies import Tally
from reproduction.people import Column, People, Split
from reproduction.study import HEALTH, REPAIRS, Experiment, Study, fit_rules

ENOUGH = 30
"""Smallest number of positives and of negatives that a group needs in every part."""

HALVES = 100
"""Number of random splits into halves of people whose parts are not known."""

CUTS = range(40, 61, 2)
"""Ages at which seniors may begin."""


@dataclass(frozen=True)
class RepairSummary:
    """One repair on the evaluation part, averaged over models and splits; shares of people.

    ``spread`` has the standard deviation of each number over the splits, if there are several.
    """

    rule: str
    cost_difference: float
    hard_difference: float
    calibration_gap: float
    accuracy: float
    changed: float
    by_coin: float
    decisions: float
    spread: dict[str, float] = field(default_factory=dict)


def compared(study: Study) -> list[RepairSummary]:
    """Each repair beside the original, as :func:`isocost.compare` measures it."""
    experiment = study.experiment
    comparisons = [
        [
            compare(
                split.evaluation.tally(model),
                fit_rules(split.fitting.tally(model), experiment),
                experiment.cost,
            ).rules
            for model in split.fitting.scores
        ]
        for split in study.splits
    ]
    return [
        _summary(name, [[rules[name] for rules in models] for models in comparisons])
        for name in comparisons[0][0]
    ]


def _summary(name: str, by_split: list[list[Compared]]) -> RepairSummary:
    numbers = np.array([np.mean([_numbers(one) for one in models], axis=0) for models in by_split])
    titles = [one.name for one in fields(RepairSummary)][1:-1]
    means = dict(zip(titles, map(float, numbers.mean(axis=0)), strict=True))
    spread = dict(zip(titles, _deviations(numbers), strict=True)) if len(numbers) > 1 else {}
    return RepairSummary(rule=name, **means, spread=spread)


def _numbers(one: Compared) -> list[float]:
    return [
        one.audit.disparity.difference,
        one.audit.equalized_odds_difference,
        one.numbers()["calibration_gap"],
        one.audit.overall.accuracy,
        one.changes.changed,
        one.changes.by_coin,
        one.changes.decisions,
    ]


def _deviations(by_split: Column) -> list[float]:
    """The standard deviation over splits of each number."""
    return list(map(float, np.std(by_split, axis=0, ddof=1)))


@dataclass(frozen=True)
class CostDifferences:
    """The difference in cost on the people that a rule was fitted on, and on unseen people.

    ``spread`` has the standard deviations of both over the splits, if there are several.
    """

    rule: str
    fitted: float
    unseen: float
    spread: tuple[float, float] | None = None


def held_out(study: Study, seed: int = 0) -> list[CostDifferences]:
    """Rules of one part applied unchanged to another.

    Where the parts are not known, people are split into halves a hundred times.
    """
    splits = study.splits if study.held_out else _halves(study.splits[0].fitting, seed)
    by_split = np.array([_differences(split, study.experiment) for split in splits])
    rows = []
    for i, name in enumerate(["original", *REPAIRS]):
        fitted, unseen = by_split[:, i].mean(axis=0)
        spread = _deviations(by_split[:, i]) if len(by_split) > 1 else None
        pair = None if spread is None else (spread[0], spread[1])
        rows.append(CostDifferences(name, float(fitted), float(unseen), pair))
    return rows


def _differences(split: Split, experiment: Experiment) -> Column:
    """The difference in cost of each rule, on both parts, averaged over models."""
    by_model = []
    for model in split.fitting.scores:
        parts = [split.fitting.tally(model), split.evaluation.tally(model)]
        rules = fit_rules(parts[0], experiment)
        stages = [parts, *([rule.expected(part) for part in parts] for rule in rules.values())]
        by_model.append([[_difference(t, experiment) for t in pair] for pair in stages])
    return np.asarray(np.mean(by_model, axis=0))


@dataclass(frozen=True)
class SmallPart:
    """What a small evaluation part can show of one quantity.

    Attributes
    ----------
    quantity : str
        What is measured.
    mean, spread : float
        Its size on one evaluation part: mean and standard deviation over the splits.
    signed : float
        The size of the mean over the splits of the difference with its sign: chance cancels.
    by_chance : float
        The mean size of what changes from split to split: of the signed difference less its mean.
    """

    quantity: str
    mean: float
    spread: float
    signed: float
    by_chance: float


def small_part(study: Study) -> list[SmallPart]:
    """How much of what an evaluation part shows is chance; empty if there are few splits."""
    if study.correction is None:
        return []
    signed: dict[str, list[float]] = {}
    for split in study.splits:
        part = split.evaluation
        for model, score in part.scores.items():
            for group in study.experiment.groups:
                rows = part.group == group
                off = float(np.mean(score[rows] - part.label[rows]))
                signed.setdefault(f"mean score less base rate, {group}", []).append(off)
            difference = _signed(part.tally(model), study.experiment)
            signed.setdefault("difference in cost", []).append(difference)
    rows = []
    for name, differences in signed.items():
        size, mean = np.abs(differences), np.mean(differences)
        chance = np.abs(np.array(differences) - mean).mean()
        numbers = (size.mean(), size.std(ddof=1), abs(mean), chance)
        rows.append(SmallPart(name, *map(float, numbers)))
    return rows


def _signed(tally: Tally, experiment: Experiment) -> float:
    costs = group_costs(tally.totals, tally.groups, as_cost(experiment.cost))
    first, second = (float(costs[tally.index_of(group)]) for group in experiment.groups)
    return first - second


def _halves(people: People, seed: int) -> list[Split]:
    random = np.random.default_rng(seed)
    splits = []
    for _ in range(HALVES):
        order = random.permutation(len(people))
        first, second = (people.take(rows) for rows in np.array_split(order, 2))
        if _complete(first) and _complete(second):
            splits.append(Split(first, second))
    return splits


def _complete(part: People) -> bool:
    """Whether every group has positives and negatives."""
    return all(len(np.unique(part.label[part.group == g])) == 2 for g in np.unique(part.group))


def _difference(tally: Tally, experiment: Experiment) -> float:
    costs = group_costs(tally.totals, tally.groups, as_cost(experiment.cost))
    return float(costs.max() - costs.min())


@dataclass(frozen=True)
class ManyGroups:
    """More than two groups at once.

    Attributes
    ----------
    groups : {group: (people, cost, trivial cost, alpha)}
        On the part that rules are fitted on, mean over models.
    left_out : {group: people}
        Groups with too few people.
    feasible : float
        The share of models for which equal cost is feasible.
    judged_elsewhere : bool
        Whether the repairs are evaluated on people they were not fitted on.
    rows : list of RepairSummary
        The repairs, on the evaluation part.
    unseen : list of CostDifferences
        Differences in cost on the people that rules were fitted on, and on others.
    """

    groups: dict[str, tuple[int, float, float, float]]
    left_out: dict[str, int]
    feasible: float
    judged_elsewhere: bool
    rows: list[RepairSummary]
    unseen: list[CostDifferences]


def many_groups(split: Split, experiment: Experiment, by: tuple[Column, Column]) -> ManyGroups:
    """The experiment with the groups that ``by`` names for both parts of a split."""
    parts = [
        replace(part, group=group)
        for part, group in zip((split.fitting, split.evaluation), by, strict=True)
    ]
    names, counts = np.unique(by[0], return_counts=True)
    kept = [str(name) for name in names if all(_enough(part, name) for part in parts)]
    fitting, evaluation = (part.take(np.flatnonzero(np.isin(part.group, kept))) for part in parts)
    pair = Split(fitting, evaluation if split.held_out else fitting)
    study = Study(experiment, "", (pair,))
    asked = [feasibility(fitting.tally(model), experiment.cost) for model in fitting.scores]
    size = {str(name): int(count) for name, count in zip(names, counts, strict=True)}
    return ManyGroups(
        groups={
            name: (
                size[name],
                float(np.mean([one.costs[name] for one in asked])),
                float(np.mean([one.trivial_costs[name] for one in asked])),
                float(np.mean([one.alpha[name] for one in asked])),
            )
            for name in kept
        },
        left_out={name: count for name, count in size.items() if name not in kept},
        feasible=float(np.mean([one.feasible for one in asked])),
        judged_elsewhere=split.held_out,
        rows=compared(study),
        unseen=held_out(study),
    )


def _enough(part: People, name: str) -> bool:
    labels = part.label[part.group == name]
    return bool(min(np.sum(labels == 0), np.sum(labels == 1)) >= ENOUGH)


@dataclass(frozen=True)
class AgeCut:
    """The health experiment if seniors begin at this age."""

    age: int
    seniors: float
    costs: tuple[float, float]
    alpha: tuple[float, float]
    feasible: float


def age_cuts(study: Study) -> list[AgeCut]:
    """The same scores with other ages at which seniors begin.

    Both parts are combined, because each alone is small.
    """
    return [_age_cut(study, cut) for cut in CUTS]


def _age_cut(study: Study, cut: int) -> AgeCut:
    asked, seniors = [], []
    for split in study.splits:
        parts = (split.fitting, split.evaluation)
        groups = [np.where(part.extra["age"] < cut, *HEALTH.groups) for part in parts]
        seniors.append(np.mean(np.concatenate(groups) == HEALTH.groups[1]))
        for model in split.fitting.scores:
            first, second = (p.tally(model, g) for p, g in zip(parts, groups, strict=True))
            asked.append(feasibility(first + second, HEALTH.cost))

    def mean(of: str) -> tuple[float, float]:
        first, second = (
            float(np.mean([getattr(one, of)[group] for one in asked])) for group in HEALTH.groups
        )
        return first, second

    return AgeCut(
        age=cut,
        seniors=float(np.mean(seniors)),
        costs=mean("costs"),
        alpha=mean("alpha"),
        feasible=float(np.mean([one.feasible for one in asked])),
    )
