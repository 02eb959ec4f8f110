"""Beyond the paper: other repairs, held-out people, more than two groups, other ages."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isocost.costs import as_cost
from isocost.measures.feasibility import feasibility
from isocost.measures.rates import group_costs
from isocost.repairs.compare import Compared, compare
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
    """One repair on the evaluation part, averaged over models and splits; shares of people."""

    rule: str
    cost_difference: float
    hard_difference: float
    calibration_gap: float
    accuracy: float
    changed: float
    by_coin: float
    decisions: float


def compared(study: Study) -> list[RepairSummary]:
    """Each repair beside the original, as :func:`isocost.compare` measures it."""
    experiment = study.experiment
    comparisons = [
        compare(
            split.evaluation.tally(model),
            fit_rules(split.fitting.tally(model), experiment),
            experiment.cost,
        ).rules
        for split in study.splits
        for model in split.fitting.scores
    ]
    return [_summary(name, [rules[name] for rules in comparisons]) for name in comparisons[0]]


def _summary(name: str, models: list[Compared]) -> RepairSummary:
    means = np.mean(
        [
            [
                one.audit.disparity.difference,
                one.audit.equalized_odds_difference,
                one.gap,
                one.audit.overall.accuracy,
                one.changes.changed,
                one.changes.by_coin,
                one.changes.decisions,
            ]
            for one in models
        ],
        axis=0,
    )
    return RepairSummary(name, *map(float, means))


@dataclass(frozen=True)
class CostDifferences:
    """The difference in cost on the people that a rule was fitted on, and on unseen people."""

    rule: str
    fitted: float
    unseen: float


def held_out(study: Study, seed: int = 0) -> list[CostDifferences]:
    """Rules of one part applied unchanged to another.

    Where the parts are not known, people are split into halves a hundred times.
    """
    splits = study.splits if study.held_out else _halves(study.splits[0].fitting, seed)
    names = ["original", *REPAIRS]
    differences = []
    for split in splits:
        for model in split.fitting.scores:
            parts = [split.fitting.tally(model), split.evaluation.tally(model)]
            rules = fit_rules(parts[0], study.experiment)
            stages = [parts, *([rule.expected(part) for part in parts] for rule in rules.values())]
            differences.append(
                [[_difference(t, study.experiment) for t in pair] for pair in stages]
            )
    means = np.mean(differences, axis=0)
    return [
        CostDifferences(name, *map(float, pair)) for name, pair in zip(names, means, strict=True)
    ]


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
