"""report: one HTML file to look at and to pass around."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isocost.atomic import check_target
from isocost.checks import check_threshold
from isocost.cli import options
from isocost.cli.output import say
from isocost.cli.reading import Columns, read
from isocost.engines.settings import Settings
from isocost.measure.audit import audit
from isocost.rules import Rule
from isocost.show.payload import Origin, payload, single_text
from isocost.show.report import ENDINGS
from isocost.show.report import report as write_report

__all__ = ["report"]


def report(
    data: options.DataOrTallies,
    score: options.ScoreColumn = "score",
    label: options.LabelColumn = "label",
    group: options.GroupColumns = ["group"],  # noqa: B006 - typer reads the default
    weight: options.WeightColumn = None,
    cost: options.CostOption = "fnr",
    threshold: options.Threshold = 0.5,
    tolerance: options.Tolerance = 0.0,
    rule: Annotated[
        list[Path] | None,
        typer.Option("--rule", help="A rule to show, as isocost fit wrote it; give it again."),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="What stands on top.")] = None,
    min_count: Annotated[
        int, typer.Option("--min-count", help="Merge cells of the page with fewer rows than this.")
    ] = 0,
    confidence: options.Confidence = 0.95,
    replicates: options.Replicates = 2000,
    seed: options.Seed = 0,
    positive: options.Positive = None,
    missing_group: options.MissingGroup = None,
    drop_group: options.DropGroup = None,
    bins: options.Bins = 1024,
    memory_limit: options.MemoryLimit = None,
    threads: options.Threads = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")] = Path(
        "report.html"
    ),
    force: options.Force = False,
) -> None:
    """Write an interactive report: one HTML file that works offline and holds no rows."""
    check_target(output, force, *ENDINGS)
    loaded = {path.stem: Rule.load(path) for path in rule or []}
    limits = Settings(memory_limit, threads)
    columns = Columns(
        score, label, group, weight, positive, missing_group, drop_group, bins, limits
    )
    ends = {end for one in loaded.values() for row in one.rows for end in (row.lo, row.hi)}
    check_threshold(threshold, "--threshold")
    tally = read(data, columns, (threshold, 1.0 - threshold, *sorted(ends - {0.0, 1.0})))
    result = audit(tally, cost, threshold, confidence, replicates, seed, tolerance=tolerance)
    origin = Origin(tuple(data), positive, missing_group, tuple(drop_group or ()))
    write_report(
        result,
        loaded or None,
        output,
        title=title,
        min_count=min_count,
        origin=origin,
        force=force,
    )
    say(f"The report is in {output}: open it in a browser.")
    single = single_text(payload(tally, min_count, (threshold,)))
    if single:
        say(single)
