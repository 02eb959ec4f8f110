"""Rerun the paper's experiments: numbers, claims, figures, and what goes beyond the paper."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isocost.atomic import replacing, write_text
from isocost.errors import FileError, Problem
from reproduction import datasets
from reproduction.beyond import (
    AgeCut,
    HeldOut,
    ManyGroups,
    Row,
    age_cuts,
    compared,
    held_out,
    many_groups,
)
from reproduction.claims import Finding, check
from reproduction.definitions import HEALTH, INCOME, RECIDIVISM, Experiment
from reproduction.figures import RESOLUTION, figure_3
from reproduction.gathering import Plan, gather
from reproduction.geometry_figures import figure_1, figure_2
from reproduction.numbers import METHODS, Numbers
from reproduction.parts import Part, Split
from reproduction.section5 import CLAIMS
from reproduction.studies import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Reproduction", "StudyResult", "make_folder", "reproduce", "save"]

REPLICATES = {False: 200, True: 1000}
"""Bootstrap replicates for the intervals of claims, quick and full."""

SPREADS = {False: 40, True: 100}
"""Those for the ellipses: fewer, because every repair is fitted again."""


@dataclass(frozen=True, eq=False)
class StudyResult:
    """One study: its numbers, what became of the claims, and the repairs side by side.

    ``spread`` has the numbers of all repairs for other people, drawn again.
    """

    study: Study
    findings: list[Finding]
    compared: list[Row]
    held_out: list[HeldOut]
    spread: list[Numbers]


@dataclass(frozen=True, eq=False)
class Reproduction:
    """One experiment, rerun.

    Attributes
    ----------
    experiment : Experiment
        Which.
    results : list of StudyResult
        One per kind of scores.
    many_groups : {title: ManyGroups}
        With more than two groups.
    age_cuts : list of AgeCut
        For health: other ages at which seniors begin.
    missing : list of str
        What could not be done, and why.
    """

    experiment: Experiment
    results: list[StudyResult]
    many_groups: dict[str, ManyGroups] = field(default_factory=dict)
    age_cuts: list[AgeCut] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "experiment": asdict(self.experiment),
            "studies": [_study_dict(result) for result in self.results],
            "many_groups": {name: asdict(found) for name, found in self.many_groups.items()},
            "age_cuts": [asdict(cut) for cut in self.age_cuts],
            "missing": self.missing,
        }


def reproduce(experiment: Experiment, plan: Plan) -> Reproduction:
    """Rerun one experiment as far as its data can be had."""
    gathered = gather(experiment, plan)
    results = [_judged(study, plan) for study in gathered.studies]
    more, missing = _many_groups(experiment, gathered.studies, plan)
    aged = [s for s in gathered.studies if experiment is HEALTH and s.held_out]
    return Reproduction(
        experiment,
        results,
        more,
        [cut for study in aged for cut in age_cuts(study)],
        [*gathered.missing, *missing],
    )


def _judged(study: Study, plan: Plan) -> StudyResult:
    """A study with its claims, repairs and spread; each is told, because each takes its time."""
    name = study.experiment.name
    tell = f"{name}, {study.source} scores: "
    plan.report(f"{tell}claims")
    replicates = study.replicates(REPLICATES[plan.full], plan.seed)
    findings = check(study, CLAIMS[name], replicates)
    plan.report(f"{tell}repairs on other people")
    spread = study.replicates(SPREADS[plan.full], plan.seed, METHODS)
    return StudyResult(study, findings, compared(study), held_out(study, plan.seed), spread)


def save(found: Iterable[Reproduction], plan: Plan, folder: Path) -> list[Path]:
    """Write figures as PNG and SVG and all numbers as results.json; returns the paths."""
    found = list(found)
    make_folder(folder)
    figures: dict[str, Callable[[], Figure]] = {"figure-1": figure_1, "figure-2": figure_2}
    for one in found:
        for result in one.results:
            name = f"figure-{one.experiment.figure}-{one.experiment.name}-{result.study.source}"
            figures[name] = _drawer(result)
    written = []
    for name, draw in figures.items():
        figure = draw()
        for kind in ("png", "svg"):
            path = folder / f"{name}.{kind}"
            with replacing(path) as temporary:
                # No date inside, so that the same numbers give the same file.
                meta = {"Date": None} if kind == "svg" else {"Software": None}
                figure.savefig(temporary, format=kind, dpi=RESOLUTION, metadata=meta)
            written.append(path)
    path = folder / "results.json"
    text = json.dumps(_plain(_summary(found, plan)), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")
    return [*written, path]


def _drawer(result: StudyResult) -> Callable[[], Figure]:
    return lambda: figure_3(result.study, result.spread)


def make_folder(folder: Path, option: str = "-o") -> None:
    """Make a folder and see that files can be made in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        rule = "must be a folder that can be made and written to"
        step = f"choose another folder with {option}"
        got = f"{folder}: {error.strerror}"
        raise FileError(Problem(option, rule, got, step)) from error


def _summary(found: list[Reproduction], plan: Plan) -> dict[str, Any]:
    from isocost import __version__

    return {
        "format": "isocost-reproduction",
        "version": 1,
        "isocost": __version__,
        "mode": "full" if plan.full else "quick",
        "seed": plan.seed,
        "repeats": plan.repeats,
        "replicates": REPLICATES[plan.full],
        "experiments": {one.experiment.name: one.to_dict() for one in found},
    }


def _study_dict(result: StudyResult) -> dict[str, Any]:
    study = result.study
    return {
        "scores": study.source,
        "held_out": study.held_out,
        "models": list(study.splits[0].fitting.scores),
        "people": {
            "fitting": len(study.splits[0].fitting),
            "judged": len(study.splits[0].evaluation),
        },
        "numbers": study.numbers,
        "claims": [finding.to_dict() for finding in result.findings],
        "repairs": [asdict(row) for row in result.compared],
        "unseen_people": [asdict(row) for row in result.held_out],
    }


def _plain(value: Any) -> Any:
    """Infinity and NaN become null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _many_groups(
    experiment: Experiment, studies: Iterable[Study], plan: Plan
) -> tuple[dict[str, ManyGroups], list[str]]:
    trained = [study.splits[0] for study in studies if study.held_out]
    if experiment is INCOME and trained:
        name, split = "race and gender", trained[0]
        by = split.fitting.more[name], split.evaluation.more[name]
        return {name: many_groups(split, INCOME, by)}, []
    if experiment is RECIDIVISM:
        try:
            return {"race": _races(plan)}, []
        except FileError as error:
            return {}, [f"More than two groups were left out.\n{error}"]
    return {}, []


def _races(plan: Plan) -> ManyGroups:
    """COMPAS with every race: a decile's score is its share of recidivism among everybody."""
    table = datasets.compas(plan.data)
    decile = table.columns["decile_score"].astype(np.intp)
    people = np.bincount(decile)
    shares = np.bincount(decile, weights=table.label) / np.maximum(1, people)
    part = Part(table.label, table.columns["race"], {"COMPAS": shares[decile]})
    return many_groups(Split(part, part), RECIDIVISM, (part.group, part.group))
