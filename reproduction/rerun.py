"""Rerun an experiment: values, claims, figures, and what goes beyond the paper; write results."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isocost import __version__
from isocost.atomic import replacing, write_text
from isocost.errors import FileError, Problem
from reproduction import datasets
from reproduction.beyond import (
    AgeCut,
    CostDifferences,
    ManyGroups,
    RepairSummary,
    SmallPart,
    age_cuts,
    compared,
    held_out,
    many_groups,
    small_part,
)
from reproduction.claims import Finding, check
from reproduction.experiments import RunOptions, income_ways, prepare
from reproduction.figures import RESOLUTION, figure_3
from reproduction.geometry_figures import figure_1, figure_2
from reproduction.people import People, Split
from reproduction.section5 import CLAIMS
from reproduction.study import HEALTH, INCOME, RECIDIVISM, REPAIRS, Experiment, Study, Values

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SMALL = 500
"""With fewer people in an evaluation part the page says what they can show."""


@dataclass(frozen=True, eq=False)
class StudyResult:
    """One study with its claims and repairs.

    ``spread`` has the values of bootstrap samples, or of the splits if they are many, with all
    repairs.
    """

    study: Study
    findings: list[Finding]
    compared: list[RepairSummary]
    held_out: list[CostDifferences]
    spread: list[Values]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        split = self.study.splits[0]
        return {
            "scores": self.study.source,
            "held_out": self.study.held_out,
            "models": list(split.fitting.scores),
            "people": {"fitting": len(split.fitting), "judged": len(split.evaluation)},
            "numbers": self.study.values,
            "claims": [finding.to_dict() for finding in self.findings],
            "repairs": [asdict(row) for row in self.compared],
            "unseen_people": [asdict(row) for row in self.held_out],
        }


@dataclass(frozen=True, eq=False)
class Reproduction:
    """One experiment, rerun.

    Attributes
    ----------
    experiment : Experiment
        The experiment.
    results : list of StudyResult
        One per kind of scores.
    many_groups : {title: ManyGroups}
        The same with more than two groups.
    age_cuts : list of AgeCut
        For health: other ages at which seniors begin.
    small_part : list of SmallPart
        Where evaluation parts are small: what they can show.
    ways : list of {way: {number: value}}
        For income: EO-Trained beside other ways of training, on each sample.
    missing : list of str
        What was left out, and why.
    """

    experiment: Experiment
    results: list[StudyResult]
    many_groups: dict[str, ManyGroups] = field(default_factory=dict)
    age_cuts: list[AgeCut] = field(default_factory=list)
    small_part: list[SmallPart] = field(default_factory=list)
    ways: list[dict[str, dict[str, float]]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "experiment": asdict(self.experiment),
            "studies": [result.to_dict() for result in self.results],
            "many_groups": {name: asdict(many) for name, many in self.many_groups.items()},
            "age_cuts": [asdict(cut) for cut in self.age_cuts],
            "small_part": [asdict(row) for row in self.small_part],
            "ways_of_training": self.ways,
            "missing": self.missing,
        }


def reproduce(experiment: Experiment, options: RunOptions) -> Reproduction:
    """Rerun one experiment as far as its data are available."""
    prepared = prepare(experiment, options)
    many, missing = _many_groups(experiment, prepared.studies, options)
    return Reproduction(
        experiment,
        [_evaluate(study, options) for study in prepared.studies],
        many,
        [
            cut
            for study in prepared.studies
            if experiment is HEALTH and study.held_out
            for cut in age_cuts(study)
        ],
        [
            row
            for study in prepared.studies
            if len(study.splits[0].evaluation) < SMALL
            for row in small_part(study)
        ],
        income_ways(options)
        if any(experiment is INCOME and s.held_out for s in prepared.studies)
        else [],
        [*prepared.missing, *missing],
    )


def _evaluate(study: Study, options: RunOptions) -> StudyResult:
    name = study.experiment.name
    options.report(f"{name}, {study.source} scores: claims")
    if study.correction is not None:
        return StudyResult(
            study,
            check(study, CLAIMS[name], []),
            compared(study),
            held_out(study, options.seed),
            study.by_split,
        )
    replicates = study.replicates(options.replicates, options.seed, jobs=options.jobs)
    findings = check(study, CLAIMS[name], replicates)
    options.report(f"{name}, {study.source} scores: repairs on bootstrap samples")
    spread = study.replicates(options.spreads, options.seed, REPAIRS, options.jobs)
    return StudyResult(study, findings, compared(study), held_out(study, options.seed), spread)


def _many_groups(
    experiment: Experiment, studies: Iterable[Study], options: RunOptions
) -> tuple[dict[str, ManyGroups], list[str]]:
    held_out_splits = [study.splits[0] for study in studies if study.held_out]
    if experiment is INCOME and held_out_splits:
        title, split = "race and gender", held_out_splits[0]
        by = split.fitting.extra[title], split.evaluation.extra[title]
        return {title: many_groups(split, INCOME, by)}, []
    if experiment is RECIDIVISM:
        try:
            return {"race": _races(options)}, []
        except FileError as error:
            return {}, [f"More than two groups were left out.\n{error}"]
    return {}, []


def _races(options: RunOptions) -> ManyGroups:
    """COMPAS with all races: the score of a decile is its recidivism rate among all people."""
    table = datasets.compas(options.data)
    label = table["two_year_recid"].to_numpy(np.intp)
    decile = table["decile_score"].to_numpy(np.intp)
    rates = np.bincount(decile, weights=label) / np.maximum(1, np.bincount(decile))
    people = People(label, table["race"].to_numpy(np.str_), {"COMPAS": rates[decile]})
    return many_groups(Split(people, people), RECIDIVISM, (people.group, people.group))


def save(done: Sequence[Reproduction], options: RunOptions, folder: Path) -> list[Path]:
    """Write figures as PNG and SVG and all values as results.json; return the paths."""
    from matplotlib import rc_context

    create_folder(folder)
    written = []
    for name, figure in _figures(done):
        for kind in ("png", "svg"):
            path = folder / f"{name}.{kind}"
            # No date, version and random ids, so that the same values give the same file.
            meta = {"Date": None} if kind == "svg" else {"Software": None}
            with replacing(path) as temporary, rc_context({"svg.hashsalt": name}):
                figure.savefig(temporary, format=kind, dpi=RESOLUTION, metadata=meta)
            written.append(path)
    summary = {
        "format": "isocost-reproduction",
        "version": 1,
        "isocost": __version__,
        "mode": "full" if options.full else "quick",
        "seed": options.seed,
        "repeats": {one.experiment.name: len(options.seeds(one.experiment)) for one in done},
        "replicates": options.replicates,
        "experiments": {one.experiment.name: one.to_dict() for one in done},
    }
    path = folder / "results.json"
    text = json.dumps(_finite(summary), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")
    return [*written, path]


def _figures(done: Iterable[Reproduction]) -> Iterator[tuple[str, Figure]]:
    yield "figure-1", figure_1()
    yield "figure-2", figure_2()
    for one in done:
        for result in one.results:
            name = f"figure-{one.experiment.figure}-{one.experiment.name}-{result.study.source}"
            yield name, figure_3(result.study, result.spread)


def create_folder(folder: Path, option: str = "-o") -> None:
    """Create a folder, and raise if files cannot be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        rule = "must be a writable folder, or one that can be created"
        step = f"choose another folder with {option}"
        got = f"{folder}: {error.strerror}"
        raise FileError(Problem(option, rule, got, step)) from error


def _finite(value: Any) -> Any:
    """The same with null for infinity and NaN, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
