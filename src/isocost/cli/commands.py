"""audit, fit, compare and apply."""

from __future__ import annotations

import json as json_text
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from isocost.atomic import check_target, read_text
from isocost.checks import check_threshold, check_tolerance
from isocost.cli import options
from isocost.cli.output import complain, draw, progress, prose, say, show_table
from isocost.cli.reading import Columns, format_of, local, read
from isocost.engines.files import apply_file
from isocost.engines.source import Settings
from isocost.measures.audit import Audit
from isocost.measures.audit import audit as measure
from isocost.repairs.compare import Comparison
from isocost.repairs.compare import compare as put_side_by_side
from isocost.repairs.registry import REPAIRS
from isocost.rules import DEFAULT_SALT, Rule
from isocost.tallies import FORMAT as TALLY
from isocost.tallies import Tally

__all__ = [
    "Unknown",
    "apply",
    "audit",
    "columns_of",
    "compare",
    "fit",
    "show_audit",
    "show_comparison",
    "show_rule",
]


class Unknown(StrEnum):
    """What to do with groups that a rule does not know."""

    error = "error"
    keep = "keep"


def audit(
    data: options.DataOrTallies,
    score: options.ScoreColumn = "score",
    label: options.LabelColumn = "label",
    group: options.GroupColumns = ["group"],  # noqa: B006 - typer reads the default
    weight: options.WeightColumn = None,
    cost: options.CostOption = "fnr",
    threshold: options.Threshold = 0.5,
    tolerance: options.Tolerance = 0.0,
    confidence: options.Confidence = 0.95,
    replicates: options.Replicates = 2000,
    seed: options.Seed = 0,
    positive: options.Positive = None,
    missing_group: options.MissingGroup = None,
    drop_group: options.DropGroup = None,
    bins: options.Bins = 1024,
    memory_limit: options.MemoryLimit = None,
    threads: options.Threads = None,
    json: options.Json = False,
    plot: options.Plot = None,
    fail_above: Annotated[
        float | None,
        typer.Option("--fail-above", help="Exit with 1 if the costs differ by more than this."),
    ] = None,
) -> None:
    """Measure each group's errors and calibration, and say what can be made equal."""
    if fail_above is not None:
        check_tolerance(fail_above, "--fail-above")
    limits = Settings(memory_limit, threads)
    columns = Columns(
        score, label, group, weight, positive, missing_group, drop_group, bins, limits
    )
    check_threshold(threshold, "--threshold")
    tally = read(data, columns, (threshold,))
    result = measure(tally, cost, threshold, confidence, replicates, seed, tolerance=tolerance)
    if json:
        say(result.to_json())
    else:
        show_audit(result, plot)
    found = result.disparity.difference
    if fail_above is not None and found > fail_above:
        complain(f"costs differ by {found:.4f}, more than {fail_above:g} (--fail-above)", 1)
        raise typer.Exit(1)


def fit(
    data: options.DataOrTallies,
    score: options.ScoreColumn = "score",
    label: options.LabelColumn = "label",
    group: options.GroupColumns = ["group"],  # noqa: B006 - typer reads the default
    weight: options.WeightColumn = None,
    method: options.RepairMethod = "withhold",
    cost: options.RepairCost = None,
    threshold: options.Threshold = 0.5,
    tolerance: options.Tolerance = 0.0,
    equal: options.Equal = ["fpr", "fnr"],  # noqa: B006 - typer reads the default
    keep: options.Keep = "information",
    levels: options.Levels = 64,
    rates: options.Rates = "generalized",
    allow_decision_changes: options.AllowDecisionChanges = False,
    infeasible: options.Infeasible = "raise",
    salt: Annotated[str, typer.Option("--salt", help="Salt of the coin.")] = DEFAULT_SALT,
    positive: options.Positive = None,
    missing_group: options.MissingGroup = None,
    drop_group: options.DropGroup = None,
    bins: options.Bins = 1024,
    memory_limit: options.MemoryLimit = None,
    threads: options.Threads = None,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Make a rule that repairs the scores; without -o it is printed as JSON."""
    if output is not None:
        check_target(output, force, ".json")
    limits = Settings(memory_limit, threads)
    columns = Columns(
        score, label, group, weight, positive, missing_group, drop_group, bins, limits
    )
    check_threshold(threshold, "--threshold")
    tally = read(data, columns, (threshold, 1.0 - threshold))
    repair = REPAIRS[method]
    rule = repair.make_with(
        tally,
        salt=salt,
        cost=(cost or "fnr") if repair.goal == "cost" or "cost" in equal else None,
        threshold=threshold,
        tolerance=tolerance,
        # Plain texts: a rule keeps them as its settings.
        equal=[str(rate) for rate in equal],
        keep=str(keep),
        levels=levels,
        rates=str(rates),
        allow_decision_changes=allow_decision_changes,
        infeasible=str(infeasible),
    )
    if output is None:
        say(rule.to_json())
        return
    rule.save(output, force=force)
    show_rule(tally, rule, cost, threshold)
    say(f"\nThe rule is in {output}.")


def compare(
    data: options.Data,
    rules: Annotated[
        list[Path],
        typer.Argument(help="Rules, as isocost fit wrote them; tallies among them join the data."),
    ],
    score: options.ScoreColumn = "score",
    label: options.LabelColumn = "label",
    group: options.GroupColumns = ["group"],  # noqa: B006 - typer reads the default
    weight: options.WeightColumn = None,
    cost: Annotated[
        str | None, typer.Option("--cost", help="Default: the cost of the first rule.")
    ] = None,
    threshold: options.Threshold = 0.5,
    positive: options.Positive = None,
    missing_group: options.MissingGroup = None,
    drop_group: options.DropGroup = None,
    bins: options.Bins = 1024,
    memory_limit: options.MemoryLimit = None,
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """Put rules side by side: costs, calibration, accuracy, and what they do to people."""
    more = [str(path) for path in rules if format_of(read_text(path)) == TALLY]
    loaded = {path.stem: Rule.load(path) for path in rules if str(path) not in more}
    limits = Settings(memory_limit, threads)
    columns = Columns(
        score, label, group, weight, positive, missing_group, drop_group, bins, limits
    )
    ends = {end for rule in loaded.values() for row in rule.rows for end in (row.lo, row.hi)}
    check_threshold(threshold, "--threshold")
    tally = read([data, *more], columns, (threshold, *sorted(ends - {0.0, 1.0})))
    found = put_side_by_side(tally, loaded, cost, threshold)
    if json:
        say(json_text.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        show_comparison(found)


def apply(
    rule: Annotated[Path, typer.Argument(help="The rule, as isocost fit wrote it.")],
    data: options.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write; its ending says how.")
    ],
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
    changed: Annotated[
        str | None, typer.Option("--changed", help="Column to add: whether the score changed.")
    ] = None,
    unknown: Annotated[
        Unknown, typer.Option("--unknown", help="Groups the rule does not know.")
    ] = Unknown.error,
    missing_group: options.MissingGroup = None,
    force: options.Force = False,
    memory_limit: options.MemoryLimit = None,
    threads: options.Threads = None,
    any_order: Annotated[
        bool, typer.Option("--any-order", help="Rows may change places: takes less memory.")
    ] = False,
) -> None:
    """Repair the scores of a file into a new file; the input is never changed."""
    loaded = Rule.load(rule)
    columns = columns_of(loaded)
    with local(data) as path, progress("applying the rule") as report:
        rows = apply_file(
            loaded,
            path,
            output,
            score=score or columns.score,
            group=group or columns.group,
            id=id,
            column=column,
            changed=changed,
            unknown=unknown.value,
            missing_group=missing_group,
            force=force,
            memory_limit=memory_limit,
            threads=threads,
            keep_order=not any_order,
            progress=report,
        )
    say(f"{rows:,} rows are in {output}.")


def columns_of(rule: Rule) -> Columns:
    """The columns the rule was made with, as far as the rule says so; it is not to be trusted."""
    names = rule.made_from.get("columns")
    names = names if isinstance(names, dict) else {}
    score, group = names.get("score"), names.get("group")
    plain = isinstance(group, list) and group and all(isinstance(name, str) for name in group)
    return Columns(
        score=score if isinstance(score, str) else "score",
        label="label",
        group=list(group) if isinstance(group, list) and plain else ["group"],
    )


def show_audit(result: Audit, plot: bool | None = None) -> None:
    """The table of an audit, its drawing, and what it means."""
    show_table(result.headline(), *result.table())
    draw(result, plot)
    prose("\n" + "\n".join(result.summary()), piped=False)
    prose(result.advice)


def show_comparison(found: Comparison) -> None:
    """Rules side by side."""
    show_table(found.headline(), *found.table())


def show_rule(tally: Tally, rule: Rule, cost: str | None, threshold: float) -> None:
    """A rule, and what it is expected to do."""
    if rule.rows:
        show_table(rule.headline(), *rule.table())
        prose("".join(f"note: {note}\n" for note in rule.notes), piped=False)
    else:
        prose(f"{rule!r}\n", piped=False)
    prose("On average over the coin:\n", piped=False)
    show_comparison(put_side_by_side(tally, [rule], cost, threshold))
