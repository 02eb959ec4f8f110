"""Prepare the studies of each experiment: load the data and train the models."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from joblib import Memory, Parallel, delayed

from isocost.errors import FileError
from isocost.examples import compas_rows
from reproduction import datasets
from reproduction.models import (
    Features,
    encode,
    models_of,
    train,
    train_equalized_odds,
    ways_of_training,
    zafar_features,
)
from reproduction.people import Column, People, Split
from reproduction.study import (
    ELSEWHERE,
    GERMAN,
    HEALTH,
    INCOME,
    LAW,
    RECIDIVISM,
    TAIWAN,
    Experiment,
    Study,
)

AGE_CUT = 48
"""Age at which seniors begin; the paper does not give it, this is nearest to its shares."""

SPLITS = {
    "income": (1, 12), "health": (20, 60), "recidivism": (1, 3),
    "german": (10, 30), "law": (2, 12), "taiwan": (1, 12),
}  # fmt: skip
"""Number of random splits of a quick and of a full run.

A tenth of Heart is 92 people and of German credit 100, so a few splits say nothing; Adult has 4,884
in a tenth.  From 12 splits on, what they share (1/8) weighs more than their number (1/12) in the
variance of a mean: see :attr:`reproduction.study.Study.correction`."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class RunOptions:
    """The options of a run.

    Attributes
    ----------
    full : bool
        Use the paper's procedure with full grids, all rows and all trees.
    repeats : int or None
        Number of random splits, each with models of its own (default: see ``SPLITS``).
    seed : int
        Seed of the first split; the others follow.
    data : Path or None
        The user's data folder.
    cache : Path or None
        Folder for trained scores; None to train again.
    report : callable
        Called with a line of progress.
    replicates, spreads : int
        Bootstrap samples for the intervals of claims, and for the ellipses, for which every repair
        is fitted again.  The same in quick and full runs, so that chance moves no verdict.
    jobs : int
        Number of processes (default: one per core).
    """

    full: bool = False
    repeats: int | None = None
    seed: int = 0
    data: Path | None = None
    cache: Path | None = None
    report: Callable[[str], None] = lambda _: None

    replicates: int = 1000
    spreads: int = 100
    jobs: int = os.cpu_count() or 1

    def seeds(self, experiment: Experiment) -> range:
        """One seed per split."""
        count = self.repeats or SPLITS[experiment.name][self.full]
        return range(self.seed, self.seed + count)

    @property
    def memory(self) -> Memory:
        """The cache of trained scores."""
        return Memory(self.cache, verbose=0)

    def progress(self, name: str) -> Callable[[Iterable[Item], int], Iterator[Item]]:
        """A function that passes items on and shows how many of them are done.

        On a terminal that is a bar, otherwise a line for every tenth of the items.
        """

        def shown(items: Iterable[Item], total: int) -> Iterator[Item]:
            if sys.stderr.isatty():
                from rich.console import Console
                from rich.progress import track

                yield from track(items, name, total, console=Console(stderr=True))
                return
            begun, tenth = time.monotonic(), max(1, total // 10)
            for done, item in enumerate(items, start=1):
                if done % tenth == 0 or done == total:
                    minutes = (time.monotonic() - begun) / 60
                    self.report(f"{name}: {done} of {total} in {minutes:.1f} min")
                yield item

        return shown


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
    retrained = RETRAINED[experiment.name]
    if experiment in ELSEWHERE:
        return PreparedStudies((retrained(options),), ())
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


WAYS = (1, 5)
"""Number of samples on which ways of training are put side by side, quick and full."""


def income_ways(options: RunOptions) -> list[dict[str, dict[str, float]]]:
    """EO-Trained beside other ways of training, on samples of Adult."""
    data = datasets.adult(options.data)
    group = np.where(data.table["sex"] == "Female", *INCOME.groups)
    features = Features(encode(data), data.label, group)
    samples = range(options.seed, options.seed + WAYS[options.full])
    drawn = options.progress("income: ways of training")(
        (ways_of_training(features, seed, options.memory) for seed in samples), len(samples)
    )
    return list(drawn)


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


def _retrained_german(options: RunOptions) -> Study:
    data = datasets.german(options.data)
    return _retrained(GERMAN, data, np.where(data.table["sex"] == 0, *GERMAN.groups), {}, options)


def _retrained_law(options: RunOptions) -> Study:
    data = datasets.law(options.data)
    group = np.where(data.table["Race_Black"] == 1, *LAW.groups)
    return _retrained(LAW, data, group, {}, options)


def _retrained_taiwan(options: RunOptions) -> Study:
    data = datasets.taiwan(options.data)
    return _retrained(TAIWAN, data, np.where(data.table["SEX"] == 1, *TAIWAN.groups), {}, options)


RETRAINED = {
    INCOME.name: _retrained_income,
    HEALTH.name: _retrained_health,
    GERMAN.name: _retrained_german,
    LAW.name: _retrained_law,
    TAIWAN.name: _retrained_taiwan,
}


def _retrained(
    experiment: Experiment,
    data: datasets.Dataset,
    group: Column,
    extra: dict[str, Column],
    options: RunOptions,
) -> Study:
    features = Features(encode(data), data.label, group, extra)
    splits = train(
        features,
        {
            seed: models_of(experiment.name, full=options.full, seed=seed)
            for seed in options.seeds(experiment)
        },
        memory=options.memory,
        jobs=options.jobs,
        progress=options.progress(f"{experiment.name}: models"),
    )
    columns = len(data.numeric) + len(data.categorical)
    facts = {"people": float(len(data)), "features": float(columns)}
    facts["features and the label"] = 1.0 + columns
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
        seeds = options.seeds(RECIDIVISM)
        trained = options.progress("recidivism: EO-Trained")(
            Parallel(n_jobs=options.jobs, return_as="generator", max_nbytes=None)(
                delayed(train_equalized_odds)(
                    features, seed, full=options.full, memory=options.memory
                )
                for seed in seeds
            ),
            len(seeds),
        )
        return PreparedStudies((replace(study, trained=tuple(trained)),), ())
    except FileError as error:
        return PreparedStudies((study,), (f"EO-Trained was left out.\n{error}",))
