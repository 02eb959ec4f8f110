"""The numbers that the claims are about, for one split, averaged over its models.

A number is called by its stage, name and group, such as "withhold generalized_fnr 2"; groups are
numbered as in the paper.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from isocost.costs import as_cost
from isocost.errors import IsocostWarning
from isocost.measure import rates
from isocost.measure.feasibility import feasibility
from isocost.repair.coarsen import coarsen
from isocost.repair.odds import equalize_odds
from isocost.repair.reconcile import reconcile
from isocost.repair.withhold import withhold
from isocost.rules import Rule
from isocost.tallies import Tally
from reproduction.definitions import Experiment
from reproduction.parts import Split

__all__ = ["FIRST", "METHODS", "Numbers", "mean_of", "numbers_of", "rules_of", "stage_numbers"]

Numbers = dict[str, float]

METHODS: Mapping[str, Callable[[Tally, str], Rule]] = {
    "withhold": lambda tally, cost: withhold(tally, cost, infeasible="closest"),
    "odds": lambda tally, _: equalize_odds(tally),
    "coarsen": lambda tally, cost: coarsen(
        tally, cost, infeasible="closest", allow_decision_changes=True
    ),
    "reconcile": lambda tally, _: reconcile(tally, infeasible="closest"),
}
"""The paper's two and ours; what is out of reach is brought as near as it goes."""

FIRST = ("withhold", "odds")
"""What the paper's claims are about."""

WEIGHTS = 101
"""How many mixtures of the two rates are asked whether they could be made equal."""


def rules_of(
    fitting: Tally, experiment: Experiment, methods: Iterable[str] = METHODS
) -> dict[str, Rule]:
    """The rule of each method, fitted on one part."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsocostWarning)  # the numbers say what is not feasible
        return {name: METHODS[name](fitting, experiment.cost) for name in methods}


def numbers_of(split: Split, experiment: Experiment, methods: Iterable[str] = FIRST) -> Numbers:
    """Everything measured on the evaluation part, averaged over the models."""
    found = []
    for model in split.fitting.scores:
        fitting, evaluation = split.fitting.tally(model), split.evaluation.tally(model)
        rules = rules_of(fitting, experiment, methods)
        stages = {"original": evaluation}
        stages |= {name: rule.expected(evaluation) for name, rule in rules.items()}
        numbers = _feasibility_numbers(fitting, experiment)
        for stage, tally in stages.items():
            numbers |= stage_numbers(stage, tally, experiment)
        found.append(numbers | _changed_numbers(numbers))
    return mean_of(found) | _model_numbers(split, found)


def stage_numbers(stage: str, tally: Tally, experiment: Experiment) -> Numbers:
    """Rates and costs of both groups at one stage."""
    sums = tally.totals
    columns = {
        "base_rate": rates.base_rate(sums),
        "mean_score": rates.mean_score(sums),
        "generalized_fpr": rates.generalized_fpr(sums),
        "generalized_fnr": rates.generalized_fnr(sums),
        "cost": rates.group_costs(sums, tally.groups, as_cost(experiment.cost)),
        "trivial_cost": rates.trivial_costs(sums, tally.groups, as_cost(experiment.cost)),
        "accuracy": rates.accuracy(sums, tally.totals_above(0.5)),
    }
    columns["off_line"] = np.abs(columns["base_rate"] - columns["mean_score"])
    places = {number: tally.index_of(g) for number, g in enumerate(experiment.groups, start=1)}
    return {
        f"{stage} {name} {number}": float(values[place])
        for name, values in columns.items()
        for number, place in places.items()
    }


def mean_of(found: list[Numbers]) -> Numbers:
    """The mean of each number; infinite if one is."""
    return {name: float(np.mean([numbers[name] for numbers in found])) for name in found[0]}


def _feasibility_numbers(fitting: Tally, experiment: Experiment) -> Numbers:
    """Whether equal cost can be had, the share it takes, and for how many costs it cannot."""
    asked = feasibility(fitting, experiment.cost)
    numbers = {
        "feasible": float(asked.feasible),
        "smallest_tolerance": asked.smallest_tolerance,
        "out_of_reach": _out_of_reach(fitting),
        "alpha": max(asked.alpha.values()),
    }
    for rate in ("fpr", "fnr"):
        numbers[f"left {rate}"] = feasibility(fitting, rate).smallest_tolerance
    for number, group in enumerate(experiment.groups, start=1):
        numbers[f"alpha {number}"] = asked.alpha[group]
    return numbers


def _changed_numbers(numbers: Numbers) -> Numbers:
    """What withholding does to the group that it changes: with each model it may be another."""
    group = 1 if numbers["alpha 1"] >= numbers["alpha 2"] else 2
    rose = {
        name: numbers[f"withhold {name} {group}"] - numbers[f"original {name} {group}"]
        for name in ("generalized_fpr", "generalized_fnr", "accuracy")
    }
    return {f"changed {name}": value for name, value in rose.items()}


def _model_numbers(split: Split, found: list[Numbers]) -> Numbers:
    """What is not a mean over models: the hardest of them, and how far off the lines each is."""
    numbers = {"hardest alpha": max(numbers["alpha"] for numbers in found)}
    for model in split.evaluation.scores:
        sums = split.evaluation.tally(model).totals
        # Not a binned gap: those grow when people are few, and again when they are redrawn.
        off = np.abs(rates.base_rate(sums) - rates.mean_score(sums))
        numbers[f"off_line of {model}"] = float(off.max())
    return numbers


def _out_of_reach(tally: Tally) -> float:
    """The share of costs w c_fp + (1 - w) c_fn, w from 0 to 1, that cannot be made equal."""
    first, second = (getattr(rates, f"generalized_{rate}")(tally.totals) for rate in ("fpr", "fnr"))
    weight = np.linspace(0.0, 1.0, WEIGHTS)[:, None]
    mu = rates.base_rate(tally.totals)
    now = weight * first + (1 - weight) * second
    trivial = weight * mu + (1 - weight) * (1 - mu)
    highest = now.max(axis=1, keepdims=True)
    return float(np.mean((np.maximum(trivial, now) < highest - 1e-12).any(axis=1)))
