"""isocost watch: whether what a rule promised still holds, period by period."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isocost.cli import options
from isocost.cli.merging import check_alike, is_tally_path, load_tally, tally_paths
from isocost.cli.output import prose, say, show_table
from isocost.errors import Problem, UsageError
from isocost.measure.watch import watch as look_after
from isocost.measure.watched import Watch
from isocost.rules import Rule
from isocost.tallies import Tally

__all__ = ["watch"]


def watch(
    rule: Annotated[Path, typer.Argument(help="The rule that was deployed.")],
    tallies: Annotated[
        list[str],
        typer.Argument(
            help="Tallies of repaired scores and labels, one a period, in order; or a glob in "
            "quotes, in the order of the names."
        ),
    ],
    cost: Annotated[
        str | None, typer.Option("--cost", help="Default: what the rule makes equal.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option("--tolerance", help="How far groups may differ; default: rule.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="For rates at a threshold; default: rule.")
    ] = None,
    calibration_margin: Annotated[
        float,
        typer.Option(
            "--calibration-margin", help="How far scores may be from shares of positives."
        ),
    ] = 0.02,
    no_calibration: Annotated[
        bool, typer.Option("--no-calibration", help="Do not watch calibration.")
    ] = False,
    confidence: Annotated[
        float,
        typer.Option("--confidence", help="Chance of no false alarm in all periods together."),
    ] = 0.95,
    json: options.Json = False,
) -> None:
    """Watch a deployed rule: exit with 1 if its promises are shown not to hold."""
    loaded = Rule.load(rule)
    found = look_after(
        loaded,
        _named(tallies),
        cost=cost,
        tolerance=tolerance,
        threshold=threshold,
        calibration_margin=None if no_calibration else calibration_margin,
        confidence=confidence,
    )
    if json:
        say(found.to_json())
    else:
        show_watch(found)
    if found.alarm:
        raise typer.Exit(1)


def _named(given: list[str]) -> dict[str, Tally]:
    """The tallies by the names of their files; with their folders if names come twice."""
    data = [name for name in given if not is_tally_path(name)]
    if data:
        step = f"isocost tally {data[0]} -o period.json"
        raise UsageError(Problem("tallies", "must be tallies, in .json", data[0], step))
    paths = tally_paths(given)
    loaded = [(path, load_tally(path)) for path in paths]
    check_alike(loaded)
    stems = [Path(path).stem for path in paths]
    plain = len(set(stems)) == len(stems)
    return {stem if plain else path: t for stem, (path, t) in zip(stems, loaded, strict=True)}


def show_watch(found: Watch) -> None:
    """The table of a watch and what it means."""
    show_table(found.headline(), *found.table())
    say()
    for line in found.summary():
        prose(line)
