"""Gather the studies of an experiment: find the data, train what must be trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.errors import FileError, MissingDependencyError
from isocost.examples import compas_rows
from reproduction import datasets
from reproduction.definitions import HEALTH, INCOME, RECIDIVISM, Experiment
from reproduction.eo_trained import trained_part
from reproduction.models import models_of
from reproduction.numbers import Numbers
from reproduction.parts import Part, Split
from reproduction.propublica import published_item, zafar_study
from reproduction.studies import Study
from reproduction.training import Features, train

__all__ = ["AGE_CUT", "Gathered", "Plan", "gather", "income_features"]

Column = npt.NDArray[Any]

AGE_CUT = 48
"""From this age people are seniors; the paper does not say, this is nearest to its shares."""

PUBLISHED = "published"
RETRAINED = "retrained"
COUNTS = "counts"


@dataclass(frozen=True)
class Plan:
    """How to reproduce: at full size or quickly, how often, and with what.

    Attributes
    ----------
    full : bool
        The paper's procedure with full grids, all rows and all trees.
    repeats : int
        How many divisions of the people, each with models of its own.
    seed : int
        Of the first; the others follow.
    data : Path or None
        A folder to look for data in.
    cache : Path or None
        Where trained scores are kept; None to train anew.
    report : callable
        Told what is being done.
    """

    full: bool = False
    repeats: int = 1
    seed: int = 0
    data: Path | None = None
    cache: Path | None = None
    report: Callable[[str], None] = lambda _: None

    @property
    def seeds(self) -> range:
        """One seed per division."""
        return range(self.seed, self.seed + self.repeats)


@dataclass(frozen=True)
class Gathered:
    """The studies that could be made, and why others could not."""

    studies: tuple[Study, ...]
    missing: tuple[str, ...]


def gather(experiment: Experiment, plan: Plan) -> Gathered:
    """Every study of an experiment whose data can be had.

    Raises the first reason if there is none.
    """
    makers: dict[str, list[Callable[[Plan], Study]]] = {
        INCOME.name: [_retrained_income, _published_income],
        HEALTH.name: [_retrained_health, _published_health],
        RECIDIVISM.name: [_recidivism],
    }
    studies, reasons = [], []
    for make in makers[experiment.name]:
        try:
            studies.append(make(plan))
        except FileError as error:
            reasons.append(error)
    if not studies:
        raise reasons[0]
    missing = [f"Some scores were left out.\n{reason}" for reason in reasons]
    if experiment is RECIDIVISM:
        studies, missing = _with_training(studies, plan)
    return Gathered(tuple(studies), tuple(missing))


def income_features(table: datasets.Dataset) -> Features:
    """Adult, one-hot; gender and race are features as all others are."""
    group = np.where(table.columns["sex"] == "Female", *INCOME.groups)
    cross = np.char.add(np.char.add(table.columns["race"], " "), group)
    return Features(table.features()[0], table.label, group, {"race and gender": cross})


def _retrained_income(plan: Plan) -> Study:
    table = datasets.adult(plan.data)
    return _retrained(INCOME, income_features(table), plan, _facts(table))


def _retrained_health(plan: Plan) -> Study:
    table = datasets.heart(plan.data)
    age = table.columns["age"]
    group = np.where(age < AGE_CUT, *HEALTH.groups)
    features = Features(table.features()[0], table.label, group, {"age": age})
    places = {"places": float(len(np.unique(table.columns["site"])))}
    return _retrained(HEALTH, features, plan, _facts(table) | places)


def _facts(table: datasets.Dataset) -> Numbers:
    """What the paper says about its data sets."""
    features = len(table.numeric) + len(table.categorical)
    return {"people": float(len(table)), "features": float(features)}


def _retrained(experiment: Experiment, features: Features, plan: Plan, facts: Numbers) -> Study:
    splits = tuple(
        train(
            features,
            models_of(experiment.name, full=plan.full, seed=seed),
            seed,
            cache=plan.cache,
            report=plan.report,
        )
        for seed in plan.seeds
    )
    return Study(experiment, RETRAINED, splits, facts=facts)


def _published_income(plan: Plan) -> Study:
    rows = datasets.scored("income", plan.data, turned=True)
    return _same_people(INCOME, PUBLISHED, rows["label"], rows["group"], rows["score"])


def _published_health(plan: Plan) -> Study:
    rows = datasets.scored("health", plan.data)
    group = np.where(rows["group"] == "younger", *HEALTH.groups)
    return _same_people(HEALTH, PUBLISHED, rows["label"], group, rows["score"])


def _recidivism(plan: Plan) -> Study:
    """From the built-in counts; the authors' published scores are these, row by row."""
    del plan
    rows = compas_rows()
    return _same_people(RECIDIVISM, COUNTS, rows["label"], rows["group"], rows["score"])


def _same_people(
    experiment: Experiment, source: str, label: Column, group: Column, score: Column
) -> Study:
    part = Part(label, group, {"scores": score})
    return Study(experiment, source, (Split(part, part),))


def _with_training(studies: list[Study], plan: Plan) -> tuple[list[Study], list[str]]:
    """Recidivism with models trained under equalized odds, if ProPublica's table can be had."""
    try:
        people = zafar_study(datasets.locate(published_item(), plan.data))
        parts = []
        for seed in plan.seeds:
            plan.report(f"EO-Trained, split {seed + 1}")
            parts.append(trained_part(people, seed, full=plan.full, cache=plan.cache))
    except (FileError, MissingDependencyError) as error:
        return studies, [f"EO-Trained was left out.\n{error}"]
    return [replace(study, trained=tuple(parts)) for study in studies], []
