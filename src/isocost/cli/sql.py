"""sql: a rule, or the counting of a tally, as a query for a warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isocost.atomic import check_target, write_text
from isocost.cli import options
from isocost.cli.commands import Unknown, columns_of
from isocost.cli.output import say
from isocost.engines.select import to_sql
from isocost.engines.tally_sql import tally_sql
from isocost.errors import Problem, UsageError
from isocost.rules import Rule

__all__ = ["sql"]


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
            help="duckdb, postgres, bigquery, snowflake, spark, trino, redshift, mysql or "
            "clickhouse.",
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
