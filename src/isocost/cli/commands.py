"""audit, fit and apply."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from isocost.cli import options
from isocost.cli.output import complain, progress, say, show_table
from isocost.engines.files import tally_files
from isocost.engines.rewrite import apply_file
from isocost.errors import FileError, Problem, UsageError
from isocost.grid import Grid
from isocost.groups import names_of
from isocost.measure.audit import Audit
from isocost.measure.audit import audit as measure
from isocost.repair.withhold import withhold
from isocost.rules import DEFAULT_SALT, Rule
from isocost.tallies import Tally

__all__ = ["apply", "audit", "fit", "show_audit", "show_change"]


class Method(StrEnum):
    """How a rule is made."""

    withhold = "withhold"


class Infeasible(StrEnum):
    """What to do when the goal cannot be reached."""

    stop = "raise"
    closest = "closest"


class Unknown(StrEnum):
    """What to do with groups that a rule does not know."""

    error = "error"
    keep = "keep"


def audit(
    data: options.Data,
    score: options.ScoreColumn = "score",
    label: options.LabelColumn = "label",
    group: options.GroupColumns = ["group"],  # noqa: B006 - typer reads the default
    weight: options.WeightColumn = None,
    cost: options.CostOption = "fnr",
    threshold: options.Threshold = 0.5,
    tolerance: options.Tolerance = 0.0,
    positive: options.Positive = None,
    missing_group: options.MissingGroup = None,
    drop_group: options.DropGroup = None,
    bins: options.Bins = 1024,
    json: options.Json = False,
    fail_above: Annotated[
        float | None,
        typer.Option("--fail-above", help="Exit with 1 if the costs differ by more than this."),
    ] = None,
) -> None:
    """Measure each group's errors and calibration, and say what can be made equal."""
    tally = _read(
        data, score, label, group, weight, positive, missing_group, drop_group, bins, threshold
    )
    result = measure(tally, cost, threshold, tolerance=tolerance)
    if json:
        say(result.to_json())
    else:
        show_audit(result)
    found = result.disparity.difference
    if fail_above is not None and found > fail_above:
        complain(f"costs differ by {found:.4f}, more than {fail_above:g} (--fail-above)", 1)
        raise typer.Exit(1)


def fit(
    data: options.Data,
    score: options.ScoreColumn = "score",
    label: options.LabelColumn = "label",
    group: options.GroupColumns = ["group"],  # noqa: B006 - typer reads the default
    weight: options.WeightColumn = None,
    method: Annotated[  # noqa: ARG001 - one so far
        Method, typer.Option("--method", help="How to repair.")
    ] = Method.withhold,
    cost: options.CostOption = "fnr",
    threshold: options.Threshold = 0.5,
    tolerance: options.Tolerance = 0.0,
    infeasible: Annotated[
        Infeasible, typer.Option("--infeasible", help="Stop, or do the closest thing.")
    ] = Infeasible.stop,
    salt: Annotated[str, typer.Option("--salt", help="Salt of the coin.")] = DEFAULT_SALT,
    positive: options.Positive = None,
    missing_group: options.MissingGroup = None,
    drop_group: options.DropGroup = None,
    bins: options.Bins = 1024,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Make a rule that repairs the scores; without -o it is printed as JSON."""
    if output is not None:
        _may_write(output, force)
    tally = _read(
        data, score, label, group, weight, positive, missing_group, drop_group, bins, threshold
    )
    rule = withhold(tally, cost, tolerance, infeasible.value, salt=salt)
    if output is None:
        say(rule.to_json())
        return
    rule.save(output)
    show_change(tally, rule, threshold)
    say(f"\nThe rule is in {output}.")


def apply(
    rule: Annotated[Path, typer.Argument(help="The rule, as isocost fit wrote it.")],
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV or Parquet file to write.")],
    score: Annotated[
        str | None, typer.Option("--score", help="Column of scores; default: as in the rule.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", help="Column of groups; default: as in the rule.")
    ] = None,
    id: Annotated[str, typer.Option("--id", help="Column that says who a row is about.")] = "id",
    column: Annotated[
        str | None, typer.Option("--column", help="Column to write; default: the score column.")
    ] = None,
    unknown: Annotated[
        Unknown, typer.Option("--unknown", help="Groups the rule does not know.")
    ] = Unknown.error,
    missing_group: options.MissingGroup = None,
    force: options.Force = False,
) -> None:
    """Repair the scores of a file into a new file; the input is never changed."""
    loaded = Rule.load(rule)
    columns = loaded.made_from.get("columns", {})
    with _local(data) as path, progress("applying the rule") as report:
        rows = apply_file(
            loaded,
            path,
            output,
            score=score or columns.get("score", "score"),
            group=group or columns.get("group", ["group"]),
            id=id,
            column=column,
            unknown=unknown.value,
            missing_group=missing_group,
            force=force,
            progress=report,
        )
    say(f"{rows:,} rows are in {output}.")


def show_audit(result: Audit) -> None:
    """The table of an audit and what it means."""
    show_table(result.headline(), *result.table())
    say("\n" + "\n".join((*result.summary(), result.advice)))


def show_change(tally: Tally, rule: Rule, threshold: float) -> None:
    """What a rule is expected to do, before and after, per group."""
    say(repr(rule))
    cost = rule.cost or "fnr"
    before, after = measure(tally, cost, threshold), measure(rule.expected(tally), cost, threshold)
    names = names_of(tally.groups)
    rows = [
        [
            names[group],
            *(
                f"{getattr(audit.groups[group], number):.4f}"
                for number in (
                    "cost",
                    "generalized_fpr",
                    "generalized_fnr",
                    "accuracy",
                    "calibration_gap",
                )
                for audit in (before, after)
            ),
        ]
        for group in tally.groups
    ]
    header = ["group", "cost", "after", "gen. FPR", "after", "gen. FNR", "after"]
    header += ["accuracy", "after", "gap", "after"]
    say()
    show_table("Before and after, on average over the coin", header, rows)


def _read(
    data: str,
    score: str,
    label: str,
    group: list[str],
    weight: str | None,
    positive: str | None,
    missing_group: str | None,
    drop_group: list[str] | None,
    bins: int,
    threshold: float,
) -> Tally:
    columns = {"score": score, "label": label, "weight": weight, "group": list(group)}
    with _local(data) as path, progress("counting") as report:
        tally = tally_files(
            path,
            columns,
            grid=Grid(bins, (threshold,)),
            positive=positive,
            missing_group=missing_group,
            progress=report,
        )
    dropped = drop_group or []
    names = names_of(tally.groups)
    strange = [name for name in dropped if name not in names.values()]
    if strange:
        raise UsageError(
            Problem(
                "--drop-group",
                "must name a group of the data",
                f"{strange[0]!r}, and the groups are {', '.join(names.values())}",
                "write the group as the audit table does",
            )
        )
    return tally.drop(group for group, name in names.items() if name in dropped)


@contextmanager
def _local(data: str) -> Iterator[str]:
    """The path of the data; standard input is kept in a temporary file meanwhile."""
    if data != "-":
        yield data
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard-input.csv"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        if path.stat().st_size == 0:
            step = "pipe a CSV file with a header into the command"
            raise FileError(Problem("standard input", "must hold CSV", "nothing", step))
        yield str(path)


def _may_write(path: Path, force: bool) -> None:
    if path.exists() and not force:
        step = "choose another path, or pass --force to replace it"
        raise FileError(Problem("output", "must not exist yet", str(path), step))
