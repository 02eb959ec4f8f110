"""Prepare the studies of each experiment: load the data and train the models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from joblib import Memory

from isocost.errors import FileError
from isocost.examples import compas_rows
from reproduction import datasets
from reproduction.models import (
    Features,
    encode,
    models_of,
    train,
    train_equalized_odds,
    zafar_features,
)
from reproduction.people import Column, People, Split
from reproduction.study import HEALTH, INCOME, RECIDIVISM, Experiment, Study

AGE_CUT = 48
"""Age at which seniors begin; the paper does not give it, this is nearest to its shares."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a run.

    Attributes
    ----------
    full : bool
        Use the paper's procedure with full grids, all rows and all trees.
    repeats : int
        Number of random splits, each with models of its own.
    seed : int
        Seed of the first split; the others follow.
    data : Path or None
        The user's data folder.
    cache : Path or None
        Folder for trained scores; None to train again.
    report : callable
        Called with a line of progress.
    """

    full: bool = False
    repeats: int = 1
    seed: int = 0
    data: Path | None = None
    cache: Path | None = None
    report: Callable[[str], None] = lambda _: None

    @property
    def seeds(self) -> range:
        """One seed per split."""
        return range(self.seed, self.seed + self.repeats)

    @property
    def memory(self) -> Memory:
        """The cache of trained scores."""
        return Memory(self.cache, verbose=0)


@dataclass(frozen=True)
class PreparedStudies:
    """The studies whose data are available, and why others are missing."""

    studies: tuple[Study, ...]
    missing: tuple[str, ...]


def prepare(experiment: Experiment, options: RunOptions) -> PreparedStudies:
    """Every study of an experiment whose data are available.

    Raises the first reason if there is none.
    """
    if experiment is RECIDIVISM:
        return _recidivism(options)
    retrained = {INCOME.name: _retrained_income, HEALTH.name: _retrained_health}[experiment.name]
    studies, reasons = [], []
    for make in (retrained, lambda options: published_study(experiment, options.data)):
        try:
            studies.append(make(options))
        except FileError as error:
            reasons.append(error)
    if not studies:
        raise reasons[0]
    missing = [f"Some scores were left out.\n{reason}" for reason in reasons]
    return PreparedStudies(tuple(studies), tuple(missing))


def _retrained_income(options: RunOptions) -> Study:
    """Models trained on Adult; gender and race are features like all others."""
    data = datasets.adult(options.data)
    group = np.where(data.table["sex"] == "Female", *INCOME.groups)
    race = data.table["race"].to_numpy(np.str_)
    both = np.char.add(np.char.add(race, " "), group)
    return _retrained(INCOME, data, group, {"race and gender": both}, options)


def _retrained_health(options: RunOptions) -> Study:
    data = datasets.heart(options.data)
    age = data.table["age"].to_numpy()
    group = np.where(age < AGE_CUT, *HEALTH.groups)
    study = _retrained(HEALTH, data, group, {"age": age}, options)
    places = float(data.table["site"].nunique())
    return replace(study, facts=study.facts | {"places": places})


def _retrained(
    experiment: Experiment,
    data: datasets.Dataset,
    group: Column,
    extra: dict[str, Column],
    options: RunOptions,
) -> Study:
    features = Features(encode(data), data.label, group, extra)
    splits = tuple(
        train(
            features,
            models_of(experiment.name, full=options.full, seed=seed),
            seed,
            memory=options.memory,
            report=options.report,
        )
        for seed in options.seeds
    )
    columns = len(data.numeric) + len(data.categorical)
    facts = {"people": float(len(data)), "features": float(columns)}
    return Study(experiment, "retrained", splits, facts=facts)


def published_study(experiment: Experiment, folder: Path | None = None) -> Study:
    """The authors' own scores of income or health."""
    rows = datasets.scored(experiment.name, folder)
    return _fixed_scores(experiment, "published", rows["label"], rows["group"], rows["score"])


def _fixed_scores(
    experiment: Experiment, source: str, label: Column, group: Column, score: Column
) -> Study:
    """Scores whose parts are not known: rules are fitted and evaluated on the same people."""
    people = People(label, group, {"scores": score})
    return Study(experiment, source, (Split(people, people),))


def _recidivism(options: RunOptions) -> PreparedStudies:
    """The built-in counts, which are the authors' published scores row by row.

    Models trained under equalized odds are added if ProPublica's table is available.
    """
    rows = compas_rows()
    study = _fixed_scores(RECIDIVISM, "counts", rows["label"], rows["group"], rows["score"])
    try:
        features = zafar_features(datasets.compas(options.data))
        trained = []
        for seed in options.seeds:
            options.report(f"EO-Trained, split {seed + 1}")
            trained.append(
                train_equalized_odds(features, seed, full=options.full, memory=options.memory)
            )
    except FileError as error:
        return PreparedStudies((study,), (f"EO-Trained was left out.\n{error}",))
    return PreparedStudies((replace(study, trained=tuple(trained)),), ())
