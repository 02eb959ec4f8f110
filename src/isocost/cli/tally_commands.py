"""tally, sql and watch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isocost.atomic import check_target, write_text
from isocost.cli import options
from isocost.cli.commands import Unknown, columns_of
from isocost.cli.output import prose, say, show_table
from isocost.cli.reading import Columns, check_alike, is_tally_path, load_tally, read, tally_paths
from isocost.engines.source import Settings
from isocost.engines.warehouse.dialects import DIALECTS
from isocost.engines.warehouse.select import to_sql
from isocost.engines.warehouse.tally_sql import tally_sql
from isocost.errors import Problem, UsageError
from isocost.monitor.watch import Watch
from isocost.monitor.watch import watch as look_after
from isocost.rules import Rule
from isocost.tallies import Tally

__all__ = ["sql", "tally", "watch"]


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


def sql(
    rule: Annotated[
        Path | None, typer.Argument(help="The rule, as isocost fit wrote it; none with --tally.")
    ] = None,
    tally: Annotated[
        bool, typer.Option("--tally", help="The query that counts a tally, instead of a rule.")
    ] = False,
    dialect: Annotated[
        str,
        typer.Option(
            "--dialect",
            help=f"{', '.join(DIALECTS)}.",
        ),
    ] = "duckdb",
    table: Annotated[str, typer.Option("--table", help="The table.")] = "scores",
    score: Annotated[
        str | None, typer.Option("--score", help="Column of scores; default: as in the rule.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", help="Column of groups; default: as in the rule.")
    ] = None,
    id: Annotated[str, typer.Option("--id", help="Column that says who a row is about.")] = "id",
    column: Annotated[
        str | None,
        typer.Option("--column", help="Column to make; default: repaired_SCORE."),
    ] = None,
    changed: Annotated[
        str | None, typer.Option("--changed", help="Column that says whether a score was changed.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="Column to keep; default: all of them.")
    ] = None,
    unknown: Annotated[
        Unknown, typer.Option("--unknown", help="Groups the rule does not know.")
    ] = Unknown.error,
    missing_group: options.MissingGroup = None,
    label: options.LabelColumn = "label",
    weight: options.WeightColumn = None,
    positive: options.Positive = None,
    bins: options.Bins = 1024,
    edge: Annotated[
        list[float] | None, typer.Option("--edge", help="--tally: a further edge of the bins.")
    ] = None,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Write a query that applies a rule in a warehouse, or with --tally one that counts there."""
    if (rule is None) != tally:
        got = "both" if tally else "neither"
        step = "run isocost sql rule.json, or isocost sql --tally"
        raise UsageError(Problem("sql", "must be given a rule or --tally", got, step))
    if output is not None:
        check_target(output, force, ".sql", ".txt")
    if rule is None:
        query = tally_sql(
            dialect,
            table,
            score=score or "score",
            label=label,
            group=group or ["group"],
            weight=weight,
            bins=bins,
            edges=tuple(edge or ()),
            positive=positive,
        )
    else:
        loaded = Rule.load(rule)
        columns = columns_of(loaded)
        query = to_sql(
            loaded,
            dialect,
            table,
            score=score or columns.score,
            group=group or columns.group,
            id=id,
            output=column,
            changed=changed,
            unknown=unknown.value,
            missing_group=missing_group,
            columns=keep or "*",
        )
    if output is None:
        say(query.rstrip("\n"))
        return
    write_text(output, query, force=force)
    say(f"The query is in {output}.")


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
