"""The paper's three experiments and three more; a study is one with one kind of scores, measured.

A measured value is named by its stage, quantity and group, such as "withhold generalized_fnr 2".
Stages are "original" and the repairs; groups are numbered as in the paper.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from isocost.costs import as_cost
from isocost.errors import DataError, IsocostWarning
from isocost.measures import rates
from isocost.measures.feasibility import feasibility
from isocost.measures.table import MEASURES
from isocost.question import Question
from isocost.repairs.table import REPAIRS as KNOWN
from isocost.rules import Rule
from isocost.tallies import Tally
from reproduction.people import EVALUATION, POSTPROCESSING, People, Split

Values = dict[str, float]

RATES = ("generalized_fpr", "generalized_fnr")


@dataclass(frozen=True)
class Experiment:
    """One experiment of Section 5, or the same procedure on other data.

    Attributes
    ----------
    name, title : str
        On the command line, and in print.
    figure : str
        The number of its figure in the paper, or after the paper's last.
    cost : str
        The cost that is made equal.
    groups : (str, str)
        G_1 and G_2, as the paper numbers them.
    positive, data : str
        The meaning of label 1, and where the people come from.
    """

    name: str
    title: str
    figure: str
    cost: str
    groups: tuple[str, str]
    positive: str
    data: str


INCOME = Experiment(
    "income", "Income prediction", "3a", "fnr", ("women", "men"),
    "earns more than $50,000", "Adult (UCI), 48,842 people",
)  # fmt: skip
HEALTH = Experiment(
    "health", "Health prediction", "3b", "weighted:1,3", ("middle-aged", "seniors"),
    "has a heart condition", "Heart Disease (UCI), 920 people",
)  # fmt: skip
RECIDIVISM = Experiment(
    "recidivism", "Recidivism prediction", "3c", "fpr", ("African-American", "Caucasian"),
    "charged again within two years", "COMPAS (ProPublica), 6,150 people",
)  # fmt: skip
GERMAN = Experiment(
    "german", "German credit", "4a", "fpr", ("women", "men"),
    "did not repay", "German credit (UCI), 1,000 people",
)  # fmt: skip
LAW = Experiment(
    "law", "Law school", "4b", "fnr", ("Black", "White"),
    "passed the bar exam at the first attempt", "Law school (LSAC), 19,567 black and white people",
)  # fmt: skip
TAIWAN = Experiment(
    "taiwan", "Taiwan credit", "4c", "fpr", ("women", "men"),
    "did not pay in the next month", "Taiwan credit (UCI), 30,000 people",
)  # fmt: skip
ELSEWHERE = (GERMAN, LAW, TAIWAN)
"""Data that the paper did not have, so that one can ask whether its picture holds elsewhere."""

EXPERIMENTS = {
    experiment.name: experiment for experiment in (INCOME, HEALTH, RECIDIVISM, *ELSEWHERE)
}

REPAIRS: Mapping[str, Mapping[str, Any]] = {
    "withhold": {"infeasible": "closest"},
    "odds": {},
    "coarsen": {"infeasible": "closest", "allow_decision_changes": True},
    "reconcile": {"infeasible": "closest"},
}
"""The paper's two repairs and two of isocost; what is infeasible is approximated."""


def repaired_by(name: str, tally: Tally, cost: str) -> Rule:
    """The rule of one of :data:`REPAIRS`, whether or not the data support it."""
    return KNOWN[name].rule(tally, Question(cost), **REPAIRS[name])


PAPER_REPAIRS = ("withhold", "odds")
"""The repairs that the paper's claims are about."""

ENOUGH_SPLITS = 5
"""With fewer random splits people are resampled instead, to tell what is chance."""

REFUTING = "plain:1,1"
"""A cost of both error rates: COMPAS can have it equal, though neither rate alone."""


@dataclass(frozen=True, eq=False)
class Study:
    """One experiment with one kind of scores.

    Attributes
    ----------
    experiment : Experiment
        The experiment.
    source : str
        Where the scores come from: "retrained", "published" or "counts".
    splits : tuple of Split
        One or several random splits of the same people.
    trained : tuple of People
        For recidivism, per split: people held out from training, with the scores of models
        trained under equalized odds, from the loosest bound to the tightest.
    facts : {name: value}
        Properties of the data, such as the number of people and features.
    """

    experiment: Experiment
    source: str
    splits: tuple[Split, ...]
    trained: tuple[People, ...] = ()
    facts: Values = field(default_factory=dict)

    @property
    def held_out(self) -> bool:
        """Whether rules are evaluated on people they were not fitted on."""
        return all(split.held_out for split in self.splits)

    @property
    def correction(self) -> float | None:
        """The variance of a mean over the splits, in units of their variance; None if they are few.

        Splits share most of their people, so their mean varies by more than 1/J: by
        1/J + n_evaluation / n_training, after Nadeau and Bengio (2003).
        """
        if not self.held_out or len(self.splits) < ENOUGH_SPLITS:
            return None
        return 1.0 / len(self.splits) + EVALUATION / (1.0 - EVALUATION - POSTPROCESSING)

    @cached_property
    def by_split(self) -> list[Values]:
        """The values of every split, with all repairs.

        The scores of COMPAS are not trained, so they have one split, while models trained under
        equalized odds may have several: each of those is then combined with the one.
        """
        measured = [measure_split(split, self.experiment, REPAIRS) for split in self.splits]
        return [
            self.facts | measured[i % len(measured)] | self._trained_values(self._trained(i))
            for i in range(max(len(self.splits), len(self.trained)))
        ]

    @cached_property
    def values(self) -> Values:
        """The mean over the splits."""
        return mean_values(self.by_split)

    def replicates(
        self, count: int, seed: int = 0, repairs: Iterable[str] = PAPER_REPAIRS, jobs: int = 1
    ) -> list[Values]:
        """The values of bootstrap samples, with rules fitted again but models not trained again.

        Replicates are spread evenly over the splits.  Samples in which a group loses all its
        positives or negatives have no values and are left out.  Each has a generator of its own,
        so that the first of many are the same as a few.
        """
        # Larger batches cost less to hand over; what is trained is not needed to make them.
        batches = np.array_split(np.arange(count), max(1, min(jobs * 4, count)))
        drawn = Parallel(n_jobs=jobs, max_nbytes=None)(
            delayed(_replicates)(self, batch, seed, tuple(repairs)) for batch in batches
        )
        return [values for batch in drawn for values in batch]

    def _trained(self, i: int) -> People | None:
        return self.trained[i % len(self.trained)] if self.trained else None

    def _trained_values(self, people: People | None) -> Values:
        if people is None:
            return {}
        loosest, *_, tightest = people.scores
        return stage_values("untrained", people.tally(loosest), self.experiment) | stage_values(
            "trained", people.tally(tightest), self.experiment
        )


def _replicates(study: Study, batch: Any, seed: int, repairs: tuple[str, ...]) -> list[Values]:
    replicates = []
    for i in batch.tolist():
        # Separate streams: whether there are trained models must not change the other values.
        random, random_trained = (np.random.default_rng([seed, i, which]) for which in (0, 1))
        trained = study._trained(i)
        resampled = trained.resample(random_trained) if trained else None
        split = study.splits[i % len(study.splits)].resample(random)
        try:
            values = measure_split(split, study.experiment, repairs)
            replicates.append(study.facts | values | study._trained_values(resampled))
        except DataError:
            continue
    return replicates


def fit_rules(
    fitting: Tally, experiment: Experiment, repairs: Iterable[str] = REPAIRS
) -> dict[str, Rule]:
    """The rule of each repair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsocostWarning)  # the values say what is infeasible
        return {name: repaired_by(name, fitting, experiment.cost) for name in repairs}


def measure_split(
    split: Split, experiment: Experiment, repairs: Iterable[str] = PAPER_REPAIRS
) -> Values:
    """Everything measured on the evaluation part, averaged over the models."""
    by_model = []
    for model in split.fitting.scores:
        fitting, evaluation = split.fitting.tally(model), split.evaluation.tally(model)
        rules = fit_rules(fitting, experiment, repairs)
        stages = {"original": evaluation}
        stages |= {name: rule.expected(evaluation) for name, rule in rules.items()}
        values = _feasibility_values(fitting, evaluation, experiment)
        for stage, tally in stages.items():
            values |= stage_values(stage, tally, experiment)
        by_model.append(values | _changed_group_values(values))
    return mean_values(by_model) | _model_values(split, by_model)


def stage_values(stage: str, tally: Tally, experiment: Experiment) -> Values:
    """Rates and costs of both groups at one stage."""
    sums = tally.totals
    quantities = {
        "base_rate": rates.base_rate(sums),
        "mean_score": rates.mean_score(sums),
        "generalized_fpr": rates.generalized_fpr(sums),
        "generalized_fnr": rates.generalized_fnr(sums),
        "cost": rates.group_costs(sums, tally.groups, as_cost(experiment.cost)),
        "trivial_cost": rates.trivial_costs(sums, tally.groups, as_cost(experiment.cost)),
        "accuracy": MEASURES["accuracy"].of(tally.kinds(0.5)),
    }
    quantities["off_line"] = np.abs(quantities["base_rate"] - quantities["mean_score"])
    rows = {number: tally.index_of(g) for number, g in enumerate(experiment.groups, start=1)}
    values = {
        f"{stage} {name} {number}": float(values[row])
        for name, values in quantities.items()
        for number, row in rows.items()
    }
    for name in RATES:
        values[f"{stage} {name} of everybody"] = float(MEASURES[name].of(sums.pooled())[0])
    return values


def mean_values(several: list[Values]) -> Values:
    """The mean of each value; infinite if one is."""
    return {name: float(np.mean([values[name] for values in several])) for name in several[0]}


def _feasibility_values(fitting: Tally, evaluation: Tally, experiment: Experiment) -> Values:
    """Whether equal cost is feasible, and the shares to withhold."""
    verdict = feasibility(fitting, experiment.cost)
    values = {
        "feasible": float(verdict.feasible),
        "smallest_tolerance": verdict.smallest_tolerance,
        "alpha": max(verdict.alpha.values()),
        "alpha of both rates": max(feasibility(fitting, REFUTING).alpha.values()),
    }
    for rate in ("fpr", "fnr"):
        values[f"left {rate}"] = feasibility(fitting, rate).smallest_tolerance
    people = evaluation.totals.weight
    for number, group in enumerate(experiment.groups, start=1):
        values[f"alpha {number}"] = verdict.alpha[group]
        values[f"share {number}"] = float(people[evaluation.index_of(group)] / people.sum())
    return values


def _changed_group_values(values: Values) -> Values:
    """What withholding does to the group that it changes, which may differ between models.

    Where equal cost is not feasible, all scores of that group are withheld.
    """
    group = 1 if values["alpha 1"] >= values["alpha 2"] else 2
    changed = {
        f"changed {name}": values[f"withhold {name} {group}"] - values[f"original {name} {group}"]
        for name in (*RATES, "accuracy")
    }
    share = values[f"share {group}"]
    return changed | {
        "changed share": share,
        "withheld": min(1.0, values["alpha"]),
        "withheld of everybody": share * min(1.0, values["alpha"]),
        "accuracy lost by everybody": -share * changed["changed accuracy"],
        "cost of trivial": values[f"original cost {group}"]
        / values[f"original trivial_cost {group}"],
    }


def _model_values(split: Split, by_model: list[Values]) -> Values:
    """What is not a mean over models: the largest alpha, and each model's distance to the lines."""
    values = {"hardest alpha": max(one["alpha"] for one in by_model)}
    for model in split.evaluation.scores:
        sums = split.evaluation.tally(model).totals
        # Not a binned gap: those grow when people are few, and again when they are resampled.
        off_line = np.abs(rates.base_rate(sums) - rates.mean_score(sums))
        values[f"off_line of {model}"] = float(off_line.max())
    return values
