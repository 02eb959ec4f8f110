"""isocost tally: count data where they are, and take only the counts away."""

from __future__ import annotations

from typing import Annotated

import typer

from isocost.atomic import check_target
from isocost.cli import options
from isocost.cli.output import say
from isocost.cli.reading import Columns, read
from isocost.engines.settings import Settings

__all__ = ["tally"]


def tally(
    data: options.DataOrTallies,
    score: options.ScoreColumn = "score",
    label: options.LabelColumn = "label",
    group: options.GroupColumns = ["group"],  # noqa: B006 - typer reads the default
    weight: options.WeightColumn = None,
    positive: options.Positive = None,
    missing_group: options.MissingGroup = None,
    drop_group: options.DropGroup = None,
    bins: options.Bins = 1024,
    edge: Annotated[
        list[float] | None,
        typer.Option("--edge", help="A further bin edge, such as a threshold; may be given again."),
    ] = None,
    memory_limit: options.MemoryLimit = None,
    threads: options.Threads = None,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Count scores per group, label and bin; no row leaves its place. Tallies given are added."""
    if output is not None:
        check_target(output, force, ".json")
    limits = Settings(memory_limit, threads)
    columns = Columns(
        score, label, group, weight, positive, missing_group, drop_group, bins, limits
    )
    found = read(data, columns, tuple(edge or ()))
    if output is None:
        say(found.to_json())
        return
    found.save(output, force=force)
    say(f"{found!r}\n\nThe tally is in {output}.")
