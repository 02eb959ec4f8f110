"""The commands that read data, make and apply rules, and watch them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import isocost as ic
from isocost.atomic import check_target, read_text, write_text
from isocost.checks import check_confidence, check_threshold, check_tolerance, check_word
from isocost.cli import options
from isocost.cli.output import (
    Printer,
    complain,
    progress,
    say,
    show_audit,
    show_calibration,
    show_comparison,
    show_layout,
    show_result,
    show_rule,
    show_unseen,
    show_watch,
)
from isocost.cli.reading import (
    check_once,
    format_of,
    local,
    question_about,
    read,
    read_merged,
    read_periods,
)
from isocost.engines.columns import applied_columns
from isocost.engines.dialects import DIALECTS
from isocost.errors import Problem, UncertainWarning, UsageError, speak_of
from isocost.grid import BINS
from isocost.groups import Group, parts_of
from isocost.question import DEFAULT, Question
from isocost.rules import DEFAULT_SALT, Rule, repaired_column
from isocost.tallies import FORMAT as TALLY
from isocost.tallies import Tally
from isocost.verdict.judgement import CALIBRATED

if TYPE_CHECKING:
    from isocost.judging.plan import Plan, RepairPlan
    from isocost.page.layouts import Layout


def audit(
    data: options.DataOrTallies,
    columns: options.Columns,
    measuring: options.Measuring,
    printing: options.Printing,
    layout: options.LayoutOptions,
    plot: options.Plot = None,
    full: options.Full = False,
    fail_above: Annotated[
        float | None,
        options.in_measured(
            "--fail-above", help="Exit with 1 if the costs differ by more than this."
        ),
    ] = None,
) -> None:
    """Measure each group's errors and calibration, and say what can be made equal."""
    if fail_above is not None:
        check_tolerance(fail_above, "--fail-above")
    full = printing.chosen(plot) is not options.PrintedAs.table or full
    _check_together(layout, measures=measuring.measures, fail_above=fail_above)
    tally = read(data, columns, measuring.question().edges)
    if layout.layout is not None:
        arranged = _arranged(tally, columns, measuring, layout)
        show_result(arranged, printing, lambda out: show_layout(out, arranged))
        return
    result = ic.audit(tally, question=question_about(measuring, tally), warn=False)
    show_result(result, printing, lambda out: show_audit(out, result, plot, data, full=full))
    difference = result.disparity.difference
    if fail_above is not None and difference > fail_above:
        complain(f"costs differ by {difference:.4f}, more than {fail_above:g} (--fail-above)", 1)
        raise typer.Exit(1)


def _check_together(asked: options.LayoutOptions, **others: Any) -> None:
    """Raise for a wrong layout, and for options that have no effect with it or without one."""
    if asked.layout is None:
        selected = None if asked.selected == "above" else str(asked.selected)
        others = {"unknown": asked.unknown, "selected": selected}
    else:
        from isocost.page.layouts import check_layout

        check_layout(asked.layout, "--layout")
    for name, value in others.items():
        if value is not None:
            how = "with" if asked.layout is None else "without"
            rule = f"must be given {how} --layout"
            step = "use --layout ll144" if how == "with" else "leave out one"
            raise UsageError(Problem(f"--{name.replace('_', '-')}", rule, repr(value), step))


def _arranged(
    tally: Tally,
    columns: options.Columns,
    measuring: options.Measuring,
    asked: options.LayoutOptions,
) -> Layout:
    """The layout; unknown categories are matched as they are written."""
    from isocost.page.layouts import check_layout

    categories = {str(value): value for group in tally.groups for value in parts_of(group)}
    unknown = [categories.get(text, text) for text in asked.unknown or ()]
    if asked.layout == "ll144" and columns.missing_group in categories:
        unknown.append(categories[columns.missing_group])
    given: dict[str, Any] = {"selected": str(asked.selected), "unknown": unknown or None}
    kind = check_layout(asked.layout)
    if measuring.reference is not None:
        rule = f"must be left out of the layout {kind.name!r}"
        raise UsageError(Problem("--reference", rule, repr(measuring.reference), "leave it out"))
    if kind.by_category:
        return ic.layout(tally, kind.name, threshold=measuring.question().threshold, **given)
    question = question_about(measuring, tally).but(replicates=0)
    return ic.layout(ic.audit(tally, question=question, warn=False), kind.name, **given)


def fit(
    data: options.DataOrTallies,
    columns: options.Columns,
    repairing: options.Repairing,
    recalibrate: options.Recalibrate = None,
    anyway: options.Anyway = False,
    holdout: options.Holdout = None,
    split: options.Split = None,
    salt: Annotated[str, options.in_repair("--salt", help="Salt of the coin.")] = DEFAULT_SALT,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Make a rule that repairs the scores; without -o it is printed as JSON."""
    from isocost.judging.offers import Offer, not_advised
    from isocost.repairs.base import with_doubt

    if output is not None:
        check_target(output, force, ".json")
    question = repairing.question()
    tally, merged, apart = _kept_apart(data, columns, question.edges, holdout, split)
    _speak_of(data, tally, question)
    first = None if recalibrate is None else ic.recalibrate(tally, str(recalibrate))
    basis = tally if first is None else first.expected(tally)
    with progress("asking what it does to new people") as report:
        given = {**repairing.options, "salt": salt}
        offer = Offer(str(repairing.method), basis, question, given, report)
        if anyway:
            rule = with_doubt(offer.made(warn=True), basis, question)
        else:
            rule = offer.advised(warn=True)
        if first is None and apart is None:
            outlook = offer.unseen
        else:
            rule = rule if first is None else first.then(rule, tally)
            outlook = ic.unseen(tally, rule, question=question, holdout=apart, progress=report)
    if outlook is not None and not outlook.better:
        if not anyway:
            raise not_advised("must help people not seen", outlook.doubt, "unseen")
        warnings.warn(outlook.doubt, UncertainWarning, stacklevel=1)
        rule = replace(rule, notes=(*rule.notes, outlook.doubt))
    if _written(rule.unmerged(merged), output, force):
        out = Printer()
        show_rule(out, tally, rule, question)
        if outlook is not None:
            say()
            show_unseen(out, outlook)
        say(f"\nThe rule is in {output}.")


def _speak_of(files: Sequence[str], tally: Tally, question: Question) -> None:
    """Name commands in messages so that they read the same data, and ask about the same cost."""
    asked = [] if question.cost.is_per_group else ["--cost", str(question.cost)]

    def written(name: str, *more: str) -> str:
        words = [*more, *asked] if name == "plan" else more
        return tally.reading.command(name, files, *words, bins=tally.bins).text

    speak_of(written)


def recalibrate(
    data: options.DataOrTallies,
    columns: options.Columns,
    method: options.MapMethod = "isotonic",
    shrinkage: Annotated[
        float | None,
        options.in_repair("--shrinkage", help="Rows at which a group's own map counts half."),
    ] = None,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Make a rule after which each group's scores mean what they say; or fit --recalibrate."""
    if output is not None:
        check_target(output, force, ".json")
    tally, merged = read_merged(data, columns, ())
    rule = ic.recalibrate(tally, str(method), shrinkage="auto" if shrinkage is None else shrinkage)
    if _written(rule.unmerged(merged), output, force):
        show_calibration(Printer(), tally, rule)
        say(f"\nThe rule is in {output}.")


def _written(result: Rule | Tally, output: Path | None, force: bool) -> bool:
    """Write a rule or a tally to a file; without one, print it, and return False."""
    if output is None:
        say(result.to_json())
        return False
    result.save(output, force=force)
    return True


def _kept_apart(
    data: list[str],
    columns: options.Columns,
    edges: tuple[float, ...],
    holdout: str | None,
    split: float | None,
) -> tuple[Tally, dict[Group, Group], Tally | None]:
    """The tally to make a rule from, its merged groups, and the tally of people kept apart."""
    from isocost.engines.files import Part

    if holdout is not None and split is not None:
        step = "leave out one of them"
        raise UsageError(Problem("--holdout", "must be given without --split", "both", step))
    if holdout is not None:
        check_once([*data, holdout])
        return *read_merged(data, columns, edges), read(holdout, columns, edges)
    if split is None:
        return *read_merged(data, columns, edges), None
    share = check_confidence(split, "--split", 0.5)
    apart = read(data, columns, edges, Part(share, True))
    return *read_merged(data, columns, edges, Part(share, False)), apart


def plan(
    data: options.DataOrTallies,
    columns: options.Columns,
    asking: options.Asking,
    printing: options.Printing,
    detect: Annotated[
        float, options.in_measured("--detect", help="Difference in cost that is to be established.")
    ] = 0.05,
    limit: Annotated[
        float, options.in_measured("--limit", help="Calibration gap that is to be ruled out.")
    ] = CALIBRATED,
    power: Annotated[
        float, options.in_measured("--power", help="Chance to succeed if the difference is there.")
    ] = 0.8,
    method: Annotated[
        str | None,
        options.in_repair(
            "--method", help=f"Plan a repair instead: {', '.join(options.repair_names())}."
        ),
    ] = None,
    within: Annotated[
        float, options.in_measured("--within", help="How far groups may differ on new people.")
    ] = 0.02,
) -> None:
    """Say how many people it takes to establish a difference and calibration, or for a repair."""
    from isocost.judging.offers import Offer
    from isocost.judging.plan import check_within

    printing.chosen()
    result: Plan | RepairPlan
    question = asking.question()
    if method is not None:
        check_word("--method", method, tuple(ic.REPAIRS))
        check_within(within, "--within")
    tally = read(data, columns, question.edges)
    if method is None:
        options: dict[str, Any] = {"detect": detect, "limit": limit, "power": power}
        result = ic.plan(tally, question=question, **options)
    else:
        own = {} if asking.tolerance is None else {"tolerance": asking.tolerance}
        offer = Offer(method, tally, question, own)
        if offer.rule is None:
            step = "plan with another --method, --tolerance or --threshold"
            raise UsageError(Problem("--method", "must be possible", offer.said, step))
        rule = offer.rule
        with progress("asking what it does to new people") as report:
            result = ic.plan_repair(tally, rule, within, question=question, progress=report)
    show_result(result, printing, lambda out: out.table(result.headline(), *result.table()))


def bounds(
    data: options.DataOrTallies,
    columns: options.Columns,
    printing: options.Printing,
    cost: options.Cost = str(DEFAULT.cost),
    other: Annotated[
        str | None,
        options.in_measured("--other", help="A second cost: what would both equal take?"),
    ] = None,
    cost_difference: Annotated[
        float,
        options.in_measured("--cost-difference", help="How far the two costs may differ then."),
    ] = 0.0,
    gap: Annotated[
        float | None,
        options.in_measured("--gap", help="Calibration gap allowed then; default: present."),
    ] = None,
) -> None:
    """Say which costs cannot both be equal here, whatever the method, and by how much at least."""
    printing.chosen()
    tally = read(data, columns, ())
    result = ic.bounds(tally, cost, other, cost_difference=cost_difference, gap=gap)

    def show(out: Printer) -> None:
        for index, table in enumerate(result.printed()):
            if index:
                say()
            out.table(*table)
        for line in result.summary():
            say()
            out.prose(line)

    show_result(result, printing, show)


def compare(
    data: options.Data,
    columns: options.Columns,
    asking: options.Asking,
    printing: options.Printing,
    rules: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Rules, as isocost fit wrote them; without any, every repair. Tallies among them "
            "join the data."
        ),
    ] = None,
) -> None:
    """Put rules side by side, or without rules every repair, and say which one to take.

    Cost and threshold are by default those of the first rule that has them.
    """
    from isocost.repairs.composition import edges_of, question_of

    printing.chosen()
    named = rules or []
    more = [str(path) for path in named if format_of(read_text(path)) == TALLY]
    loaded = {path.stem: Rule.load(path) for path in named if str(path) not in more}
    question = asking.question(question_of(*loaded.values()))
    tally = read([data, *more], columns, edges_of(loaded.values(), *question.edges))
    _speak_of([data, *more], tally, question)
    with progress("making every repair") as report:
        comparison = ic.compare(tally, loaded or None, question=question, progress=report)
        comparison.notes()
    show_result(comparison, printing, lambda out: show_comparison(out, comparison))


def apply(
    rule: Annotated[Path, typer.Argument(help="The rule, as isocost fit wrote it.")],
    data: options.Data,
    output: Annotated[
        Path, options.in_output("--output", "-o", help="File to write; its ending says how.")
    ],
    columns: options.RepairedColumns,
    output_column: options.OutputColumn = None,
    force: options.Force = False,
    memory_limit: options.MemoryLimit = None,
    threads: options.Threads = None,
    scale: Annotated[
        str | None,
        options.in_data(
            "--scale",
            help="What the scores are, as for audit; default: as in the rule. What is written are "
            "probabilities.",
        ),
    ] = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    any_order: Annotated[
        bool,
        options.in_output("--any-order", help="Do not keep the order of rows; takes less memory."),
    ] = False,
) -> None:
    """Copy a file with a column of repaired scores added; the input is never changed."""
    from isocost.engines.files import apply_file

    loaded = Rule.load(rule)
    with local(data) as path, progress("applying the rule") as report:
        rows = apply_file(
            loaded,
            path,
            output,
            **columns.arguments,
            output_column=output_column,
            force=force,
            memory_limit=memory_limit,
            threads=threads,
            keep_order=not any_order,
            progress=report,
            scale=scale,
            decimal=decimal,
            encoding=encoding,
            sheet=sheet,
        )
    written = output_column or repaired_column(
        applied_columns(loaded, columns.score, None, None)[0]
    )
    say(f"{rows:,} rows are in {output}, with repaired scores in the column {written}.")


def look(
    data: options.Data,
    printing: options.Printing,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
) -> None:
    """Say what is in a file, which columns could be what, and the command line to go on with."""
    printing.chosen()
    with local(data) as path:
        looked = ic.look(path, decimal=decimal, encoding=encoding, sheet=sheet)
    looked = replace(looked, path=data)

    def show(out: Printer) -> None:
        out.table(looked.headline(), *looked.table())
        say()
        # Not wrapped, so that the command line can be copied.
        say("\n".join(looked.summary()))

    show_result(looked, printing, show)


def tally(
    data: options.DataOrTallies,
    columns: options.Columns,
    edge: options.Edges = None,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Count scores per group, label and bin; no row leaves the machine. Tallies are added up."""
    if output is not None:
        check_target(output, force, ".json")
    counted = read(data, columns, tuple(edge or ()))
    if _written(counted, output, force):
        say(f"{counted!r}\n\nThe tally is in {output}.")


def sql(
    columns: options.RepairedColumns,
    rule: Annotated[
        Path | None, typer.Argument(help="The rule, as isocost fit wrote it; none with --tally.")
    ] = None,
    tally: Annotated[
        bool, typer.Option("--tally", help="The query that counts a tally, instead of a rule.")
    ] = False,
    dialect: Annotated[
        str, options.in_output("--dialect", help=f"{', '.join(DIALECTS)}.")
    ] = "duckdb",
    table: Annotated[str, options.in_data("--table", help="The table.")] = "scores",
    output_column: Annotated[
        str | None,
        options.in_output(
            "--output-column",
            help="Column to write, in place of the score or of one that --keep lists; default: "
            "repaired_SCORE, added.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="Column to keep; default: all of them.")
    ] = None,
    label: options.LabelColumn = "label",
    weight: options.WeightColumn = None,
    positive: options.Positive = None,
    bins: options.Bins = BINS,
    edge: options.Edges = None,
    dbt: Annotated[
        str | None,
        options.in_output(
            "--dbt", help="Write a dbt macro of this name; it is given the relation."
        ),
    ] = None,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Write a query that applies a rule in a warehouse, or with --tally one that counts there."""
    from isocost.engines.sql import dbt_macro, tally_sql, to_sql

    if (rule is None) != tally:
        got = "both" if tally else "neither"
        step = "run isocost sql rule.json, or isocost sql --tally"
        raise UsageError(Problem("sql", "must be given a rule or --tally", got, step))
    if output is not None:
        check_target(output, force, ".sql", ".txt")
    if rule is None:
        query_of = partial(
            tally_sql,
            dialect,
            score=columns.score or "score",
            label=label,
            group=columns.group or ["group"],
            weight=weight,
            bins=bins,
            edges=tuple(edge or ()),
            positive=positive,
        )
    else:
        loaded = Rule.load(rule)
        query_of = partial(
            to_sql,
            loaded,
            dialect,
            **columns.arguments,
            output=output_column,
            columns=keep or "*",
        )
    query = query_of(table) if dbt is None else dbt_macro(dbt, dialect, query_of)
    if output is None:
        say(query.rstrip("\n"))
        return
    write_text(output, query, force=force)
    say(f"The {'query' if dbt is None else 'macro'} is in {output}.")


def watch(
    rule: Annotated[Path, typer.Argument(help="The rule that was deployed.")],
    tallies: Annotated[
        list[str],
        typer.Argument(
            help="Tallies of repaired scores and labels, or files of repaired data, one per period "
            "and in order; or a glob in quotes, in the order of the names (day-2 before day-10). A "
            "folder is one period."
        ),
    ],
    columns: options.Columns,
    printing: options.Printing,
    context: typer.Context,
    cost: Annotated[
        str | None, options.in_measured("--cost", help="Default: what the rule makes equal.")
    ] = None,
    tolerance: Annotated[
        float | None,
        options.in_measured("--tolerance", help="How far groups may differ; default: rule."),
    ] = None,
    threshold: Annotated[
        float | None,
        options.in_measured("--threshold", help="For rates at a threshold; default: rule."),
    ] = None,
    calibration_margin: Annotated[
        float,
        options.in_measured(
            "--calibration-margin", help="How far scores may be from shares of positives."
        ),
    ] = 0.02,
    no_calibration: Annotated[
        bool, options.in_measured("--no-calibration", help="Do not watch calibration.")
    ] = False,
    confidence: Annotated[
        float,
        options.in_measured(
            "--confidence", help="Chance of no false alarm in all periods together."
        ),
    ] = 0.95,
    measures: Annotated[
        str | None,
        options.in_measured(
            "--measures",
            help="Also show how far groups differ in these, such as ppv,auc; not tested.",
        ),
    ] = None,
) -> None:
    """Watch a deployed rule: exit with 1 if its promises are shown not to hold."""
    printing.chosen()
    deployed = Rule.load(rule)
    at = deployed.promise.threshold if threshold is None else threshold
    edges = () if at is None else (check_threshold(at),)
    # A file of options names the scores that the rule was made from, not the repaired ones.
    made = {**deployed.reading.columns, "scale": deployed.reading.scale}
    sources = {
        name: getattr(context.get_parameter_source(name), "name", "") for name in context.params
    }
    asked = {
        name: value
        for name, value in context.params.items()
        if sources[name] != "DEFAULT"
        and not (sources[name] == "DEFAULT_MAP" and value == made.get(name))
    }
    periods, notes = read_periods(tallies, columns, asked, deployed, edges)
    report = ic.watch(
        deployed,
        periods,
        cost=cost,
        tolerance=tolerance,
        threshold=threshold,
        calibration_margin=None if no_calibration else calibration_margin,
        confidence=confidence,
        measures=measures,
    )
    report = replace(report, notes=(*notes, *report.notes))
    show_result(report, printing, lambda out: show_watch(out, report))
    if report.alarm:
        raise typer.Exit(1)
