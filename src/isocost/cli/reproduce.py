"""isocost reproduce: the paper's three experiments, figures and claims."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from isocost.atomic import check_ending, check_target, write_text
from isocost.cli.findings import show_findings
from isocost.cli.output import console_of, say
from isocost.errors import FileError, Problem, UsageError
from isocost.experiments.definitions import EXPERIMENTS, Experiment

if TYPE_CHECKING:
    from isocost.experiments.gathering import Plan
    from isocost.experiments.reproduce import Reproduction

__all__ = ["reproduce"]

MINUTES = {"income": (1.5, 8.0), "health": (0.5, 1.0), "recidivism": (0.3, 1.0)}
"""Measured on two cores, quick and full, for one division of the people."""


class Which(StrEnum):
    """An experiment of the paper."""

    income = "income"
    health = "health"
    recidivism = "recidivism"
    all = "all"


def reproduce(
    experiment: Annotated[Which, typer.Argument(help="Which experiment.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for figures and results.json.")
    ] = Path("reproduction"),
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's procedure, or a quick one.")
    ] = False,
    repeats: Annotated[
        int, typer.Option("--repeats", help="Divisions of the people; mean and spread.")
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first division.")] = 0,
    data: Annotated[Path | None, typer.Option("--data", help="Folder to look for data in.")] = None,
    page: Annotated[
        Path | None, typer.Option("--page", help="Where to write the page; default: in -o.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Train anew what an earlier run has trained.")
    ] = False,
) -> None:
    """Rerun the paper's experiments, draw its figures, and check its claims one by one."""
    from isocost.experiments import page as pages
    from isocost.experiments import reproduce as work
    from isocost.experiments.datasets import cache_folder
    from isocost.experiments.gathering import Plan

    place = page or output / "reproduction.md"
    _check(repeats, seed, data, output, place)
    chosen = list(EXPERIMENTS.values())
    if experiment is not Which.all:
        chosen = [EXPERIMENTS[experiment.value]]
    cache = None if fresh else cache_folder() / "trained"
    say(_expected(chosen, full, repeats), error=True)
    with _bar(_steps(chosen, repeats)) as report:
        plan = Plan(full, repeats, seed, data, cache, report)
        found, undone = _rerun(chosen, plan)
        written = work.save(found, plan, output)
    command = _command(experiment, output, full, repeats, seed, page, data, fresh)
    write_text(place, pages.page(found, plan, command, pages.relative(output, place)))
    _tell(found, undone)
    say(f"{len(written)} files are in {output}; the page is {place}.")


def _rerun(chosen: list[Experiment], plan: Plan) -> tuple[list[Reproduction], list[str]]:
    """What could be rerun, and why others could not; one alone must not be left out."""
    from isocost.experiments.reproduce import reproduce as rerun

    found, undone = [], []
    for one in chosen:
        try:
            found.append(rerun(one, plan))
        except FileError as error:
            if len(chosen) == 1:
                raise
            undone.append(f"{one.title} was left out.\n{error}")
    return found, undone


def _tell(found: list[Reproduction], undone: list[str]) -> None:
    """The claims of each experiment, and once each reason why something is missing."""
    from isocost.experiments import page as pages

    for done in found:
        title = f"{done.experiment.title}: the paper's claims"
        show_findings(title, *pages.verdicts(pages.by_claim(done)))
        say()
    missing = (text for done in found for text in done.missing)
    for reason in dict.fromkeys([*undone, *missing]):
        say(reason, error=True)


def _check(repeats: int, seed: int, data: Path | None, output: Path, page: Path) -> None:
    """Before anything is trained, so that nothing is trained in vain."""
    from isocost.experiments.reproduce import make_folder
    from isocost.show.style import require_matplotlib

    if repeats < 1:
        raise UsageError(Problem("--repeats", "must be 1 or more", str(repeats), "use --repeats 1"))
    if seed < 0:
        raise UsageError(Problem("--seed", "must be 0 or more", str(seed), "use --seed 0"))
    if data is not None and not data.is_dir():
        step = "check the path, or leave it out to have the data found or fetched"
        raise FileError(Problem("--data", "must be a folder", str(data), step))
    check_ending(page, ".md", ".markdown", ".txt")
    if page.is_dir():
        step = f"name a file, such as {page / 'reproduction.md'}"
        raise FileError(Problem("--page", "must be a file", f"the folder {page}", step))
    check_target(page, force=True)
    require_matplotlib()
    make_folder(output)
    make_folder(page.parent, "--page")


def _expected(chosen: list[Experiment], full: bool, repeats: int) -> str:
    minutes = sum(MINUTES[one.name][full] for one in chosen) * repeats
    names = ", ".join(one.name for one in chosen)
    again = " What is trained is kept: a run that is stopped goes on where it was." if full else ""
    return f"Reproducing {names}: about {max(1, round(minutes))} min on two cores.{again}"


def _steps(chosen: list[Experiment], repeats: int) -> int:
    """Trainings of each division, and for each kind of scores the claims and the repairs."""
    trained = {"income": 3, "health": 2, "recidivism": 1}
    kinds = {"income": 2, "health": 2, "recidivism": 1}
    return sum(trained[one.name] * repeats + 2 * kinds[one.name] for one in chosen)


@contextmanager
def _bar(steps: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal, a line per step anywhere else."""
    console = console_of(error=True)
    if not console.is_terminal:
        yield lambda what: say(what, error=True)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=steps)
        begun = False

        def report(what: str) -> None:
            nonlocal begun
            progress.update(task, description=what, advance=1 if begun else 0)
            begun = True

        yield report


def _command(
    experiment: Which,
    output: Path,
    full: bool,
    repeats: int,
    seed: int,
    page: Path | None,
    data: Path | None,
    fresh: bool,
) -> str:
    parts = [f"isocost reproduce {experiment.value}", "--full" if full else "--quick"]
    parts += [f"--repeats {repeats}"] if repeats != 1 else []
    parts += [f"--seed {seed}"] if seed else []
    places = {"-o": output, "--page": page, "--data": data}
    parts += [f"{o} {shlex.quote(p.as_posix())}" for o, p in places.items() if p is not None]
    return " ".join([*parts, "--fresh"] if fresh else parts)
