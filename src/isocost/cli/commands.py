"""The commands, in the order of the list: each is a function, and its parameters are its options.

What only some commands need is imported inside them, so that a command loads what it uses.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import isocost as ic
from isocost.atomic import check_ending, check_target, read_text, write_text
from isocost.checks import check_confidence, check_threshold, check_tolerance
from isocost.cli import options
from isocost.cli.options import as_in, in_data, in_measured, in_output, in_repair, other
from isocost.cli.output import (
    Printer,
    complain,
    progress,
    say,
    show_audit,
    show_calibration,
    show_result,
    show_rule,
    show_tables,
    typed,
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
from isocost.errors import (
    FileError,
    MissingDependencyError,
    Problem,
    UncertainWarning,
    UsageError,
    speak_of,
)
from isocost.groups import Group, parts_of
from isocost.question import DEFAULT, Question
from isocost.readings import Reading
from isocost.rules import DEFAULT_SALT, Rule, repaired_column
from isocost.tallies import FORMAT as TALLY
from isocost.tallies import Tally, check_all_known
from isocost.verdict.judgement import CALIBRATED

if TYPE_CHECKING:
    from isocost.judging.plan import Plan, RepairPlan
    from isocost.page.layouts import Layout


# Look and measure


def look(data: options.Data, printing: options.Printing, texts: options.Texts) -> None:
    """Say what is in a file, which columns could be what, and the command line to go on with."""
    with local(data) as path:
        looked = ic.look(path, **vars(texts))
    looked = replace(looked, path=data)

    def show(out: Printer) -> None:
        out.table(looked.headline(), *looked.table())
        # Not wrapped, so that the command line can be copied.
        say("\n".join(["", *looked.summary()]))

    show_result(looked, printing, show)


def audit(
    data: options.DataOrTallies,
    columns: options.Columns,
    measuring: options.Measuring,
    printing: options.Printing,
    layout: options.LayoutOptions,
    plot: bool | None = in_output(
        None, "Draw the audit.  [default: on a terminal]", "--plot/--no-plot"
    ),
    full: bool = in_output(
        False, "Print every usual number and note, not only what fits a screen."
    ),
    fail_above: float | None = in_measured(
        None, "Exit with 1 if the costs differ by more than this."
    ),
) -> None:
    """Measure each group's errors and calibration, and say what can be made equal."""
    if fail_above is not None:
        check_tolerance(fail_above, "--fail-above")
    printing.check_plot(plot)
    full = full or printing.chosen != "table"
    _check_together(layout, measures=measuring.measures, fail_above=fail_above)
    tally = read(data, columns, measuring.question().edges)
    if layout.layout is not None:
        arranged = _arranged(tally, columns, measuring, layout)

        def show(out: Printer) -> None:
            out.prose(f"{arranged.title}\n", piped=False)
            tables = [(table.title, *table.table()) for table in arranged.tables]
            show_tables(out, tables, ["\n".join(arranged.summary())])

        show_result(arranged, printing, show)
        return
    result = ic.audit(tally, question=question_about(measuring, tally), warn=False)
    _speak_of(data, tally, result.question)
    show_result(result, printing, lambda out: show_audit(out, result, plot, data, full=full))
    difference = result.disparity.difference
    if fail_above is not None and difference > fail_above:
        complain(f"costs differ by {difference:.4f}, more than {fail_above:g} (--fail-above)", 1)
        raise typer.Exit(1)


def _check_together(asked: options.LayoutOptions, **others: Any) -> None:
    """Raise for a wrong layout, and for options that have no effect with it or without one."""
    if asked.layout is None:
        selected = None if asked.selected == "above" else asked.selected
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
    given: dict[str, Any] = {"selected": asked.selected, "unknown": unknown or None}
    kind = check_layout(asked.layout)
    if measuring.reference is not None:
        rule = f"must be left out of the layout {kind.name!r}"
        raise UsageError(Problem("--reference", rule, repr(measuring.reference), "leave it out"))
    if kind.by_category:
        return ic.layout(tally, kind.name, threshold=measuring.question().threshold, **given)
    question = question_about(measuring, tally).but(replicates=0)
    return ic.layout(ic.audit(tally, question=question, warn=False), kind.name, **given)


def plan(
    data: options.DataOrTallies,
    columns: options.Columns,
    asking: options.Asking,
    printing: options.Printing,
    detect: float = in_measured(0.05, "Difference in cost that is to be established."),
    limit: float = in_measured(CALIBRATED, "Calibration gap that is to be ruled out."),
    power: float = in_measured(0.8, "Chance to succeed if the difference is there."),
    method: str | None = in_repair(
        None, "Plan a repair instead, by this method.", choices=options.repair_names
    ),
    within: float = in_measured(0.02, "How far groups may differ on new people."),
) -> None:
    """Say how many people it takes to establish a difference and calibration, or for a repair."""
    from isocost.judging.offers import Offer
    from isocost.judging.plan import check_within

    result: Plan | RepairPlan
    question = asking.question()
    if method is not None:
        check_within(within, "--within")
    tally = read(data, columns, question.edges)
    if method is None:
        result = ic.plan(tally, question=question, detect=detect, limit=limit, power=power)
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
    cost: str = in_measured(str(DEFAULT.cost), "fpr, fnr, weighted:FP,FN or plain:FP,FN."),
    other: str | None = in_measured(None, "A second cost: what would both equal take?"),
    cost_difference: float = in_measured(0.0, "How far the two costs may differ then."),
    gap: float | None = in_measured(None, "Calibration gap allowed then; default: present."),
) -> None:
    """Say which costs cannot both be equal here, whatever the method, and by how much at least."""
    tally = read(data, columns, ())
    result = ic.bounds(tally, cost, other, cost_difference=cost_difference, gap=gap)
    show_result(result, printing, lambda out: show_tables(out, result.printed(), result.summary()))


def tally(
    data: options.DataOrTallies,
    columns: options.Columns,
    writing: options.Writing,
    edge: list[float] | None = options.edges(),
) -> None:
    """Count scores per group, label and bin; no row leaves the machine. Tallies are added up."""
    writing.check(".json")
    counted = read(data, columns, tuple(edge or ()))
    if _written(counted, writing):
        say(f"{counted!r}\n\nThe tally is in {writing.output}.")


def _written(result: Rule | Tally, writing: options.Writing) -> bool:
    """Write a rule or a tally to a file; without one, print it, and return False."""
    if writing.output is None:
        say(result.to_json())
        return False
    result.save(writing.output, force=writing.force)
    return True


# Repair


def recalibrate(
    data: options.DataOrTallies,
    columns: options.Columns,
    writing: options.Writing,
    method: str = in_repair(
        "isotonic", "The map from scores to scores.", choices=options.map_names
    ),
    shrinkage: float | None = in_repair(
        None, "Group size at which its own map gets half the weight."
    ),
) -> None:
    """Make a rule after which each group's scores mean what they say; or fit --recalibrate."""
    writing.check(".json")
    tally, merged = read_merged(data, columns, ())
    rule = ic.recalibrate(tally, method, shrinkage="auto" if shrinkage is None else shrinkage)
    if _written(rule.unmerged(merged), writing):
        show_calibration(Printer(), tally, rule)
        say(f"\nThe rule is in {writing.output}.")


def fit(
    data: options.DataOrTallies,
    columns: options.Columns,
    repairing: options.Repairing,
    writing: options.Writing,
    recalibrate: str | None = in_repair(
        None, "Make each group's scores calibrated first, by this map.", choices=options.map_names
    ),
    anyway: bool = in_repair(False, "Make the rule even if the data do not support it."),
    holdout: str | None = in_data(
        None, "Data or a tally of people kept apart, to measure the rule on."
    ),
    split: float | None = in_data(None, "Share of the rows to keep apart, to measure the rule on."),
    salt: str = in_repair(DEFAULT_SALT, "Salt of the coin."),
) -> None:
    """Make a rule that repairs the scores; without -o it is printed as JSON."""
    from isocost.judging.offers import Offer, not_advised
    from isocost.repairs.base import with_doubt

    writing.check(".json")
    question = repairing.question()
    tally, merged, apart = _kept_apart(data, columns, question.edges, holdout, split)
    check_all_known(tally)
    _speak_of(data, tally, question, repairing.method, repairing.options.get("tolerance"))
    first = None if recalibrate is None else ic.recalibrate(tally, recalibrate)
    basis = tally if first is None else first.expected(tally)
    with progress("asking what it does to new people") as report:
        given = {**repairing.options, "salt": salt}
        offer = Offer(repairing.method, basis, question, given, report)
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
    if _written(rule.unmerged(merged), writing):
        out = Printer()
        show_rule(out, tally, rule, question)
        if outlook is not None:
            say()
            out.table(outlook.headline(), *outlook.table())
            for note in outlook.notes():
                out.prose(f"note: {note}", piped=False)
        say(f"\nThe rule is in {writing.output}.")


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


def _speak_of(
    files: Sequence[str],
    tally: Tally,
    question: Question,
    method: str | None = None,
    tolerance: float | None = None,
) -> list[str]:
    """Name commands in messages so that they read the same data, and ask the same question.

    ``method`` is the repair to plan, if there is one, and ``tolerance`` that of this repair.  The
    list holds the commands that were named so far.
    """
    asked = [] if question.cost.is_per_group else ["--cost", str(question.cost)]
    asked += options.words_of(question)
    limit = question.tolerance if tolerance is None else tolerance
    named: list[str] = []

    def written(name: str, *more: str) -> str:
        words = list(more)
        if name == "plan" and more:
            words = words if method is None else ["--method", method]
            words += ["--tolerance", f"{limit:.12g}"] if limit else []
        words += asked if name in ("fit", "plan") else []
        named.append(tally.reading.command(name, files, *words, bins=tally.bins).text)
        return named[-1]

    speak_of(written)
    return named


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

    paths = rules or []
    more = [str(path) for path in paths if format_of(read_text(path)) == TALLY]
    loaded = {path.stem: Rule.load(path) for path in paths if str(path) not in more}
    question = asking.question(question_of(*loaded.values()))
    tally = read([data, *more], columns, edges_of(loaded.values(), *question.edges))
    named = _speak_of([data, *more], tally, question)
    with progress("making every repair") as report:
        result = ic.compare(tally, loaded or None, question=question, progress=report)
        notes = result.notes()
    show_result(result, printing, lambda out: show_tables(out, result.printed(), notes, named))


def apply(
    rule: Annotated[Path, typer.Argument(help="The rule, as isocost fit wrote it.")],
    data: options.Data,
    columns: options.RepairedColumns,
    files: options.Files,
    output: Path = in_output(
        options.REQUIRED, "File to write; its ending says how.", "--output", "-o"
    ),
    output_column: str | None = in_output(
        None, "Column to write, also in place of an existing one; default: repaired_SCORE, added."
    ),
    force: bool = as_in(options.Writing, "force"),
    scale: str | None = in_data(
        None,
        "What the scores are, as for audit; default: as in the rule. What is written are "
        "probabilities.",
    ),
    any_order: bool = in_output(False, "Do not keep the order of rows; takes less memory."),
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
            **vars(files),
            output_column=output_column,
            force=force,
            keep_order=not any_order,
            progress=report,
            scale=scale,
        )
    score = applied_columns(loaded, columns.score, None, None)[0]
    written = output_column or repaired_column(score)
    say(f"{rows:,} rows are in {output}, with repaired scores in the column {written}.")


# Deploy


def sql(
    columns: options.RepairedColumns,
    writing: options.Writing,
    rule: Annotated[
        Path | None, typer.Argument(help="The rule, as isocost fit wrote it; none with --tally.")
    ] = None,
    tally: bool = other(False, "The query that counts a tally, instead of a rule."),
    dialect: str = in_output("duckdb", f"{', '.join(DIALECTS)}."),
    table: str = in_data("scores", "The table."),
    output_column: str | None = in_output(
        None,
        "Column to write, in place of the score or of one that --keep lists; default: "
        "repaired_SCORE, added.",
    ),
    keep: list[str] | None = other(None, "Column to keep; default: all of them."),
    label: str = as_in(options.Columns, "label"),
    weight: str | None = as_in(options.Columns, "weight"),
    person: str | None = as_in(options.Columns, "person"),
    positive: str | None = as_in(options.Columns, "positive"),
    bins: int = as_in(options.Columns, "bins"),
    edge: list[float] | None = options.edges(),
    dbt: str | None = in_output(None, "Write a dbt macro of this name; it is given the relation."),
) -> None:
    """Write a query that applies a rule in a warehouse, or with --tally one that counts there."""
    from isocost.engines.sql import dbt_macro, tally_sql, to_sql

    if (rule is None) != tally:
        got = "both" if tally else "neither"
        step = "run isocost sql rule.json, or isocost sql --tally"
        raise UsageError(Problem("sql", "must be given a rule or --tally", got, step))
    writing.check(".sql", ".txt")
    if rule is None:
        query_of = partial(
            tally_sql,
            dialect,
            score=columns.score or "score",
            label=label,
            group=columns.group or ["group"],
            weight=weight,
            person=person,
            bins=bins,
            edges=tuple(edge or ()),
            positive=positive,
        )
    else:
        query_of = partial(
            to_sql,
            Rule.load(rule),
            dialect,
            **columns.arguments,
            output=output_column,
            columns=keep or "*",
        )
    query = query_of(table) if dbt is None else dbt_macro(dbt, dialect, query_of)
    if writing.output is None:
        say(query.rstrip("\n"))
        return
    write_text(writing.output, query, force=writing.force)
    say(f"The {'query' if dbt is None else 'macro'} is in {writing.output}.")


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
    cost: str | None = in_measured(None, "Default: what the rule makes equal."),
    tolerance: float | None = in_measured(None, "How far groups may differ; default: rule."),
    threshold: float | None = in_measured(None, "For rates at a threshold; default: rule."),
    calibration_margin: float = in_measured(
        0.02, "How far scores may be from shares of positives."
    ),
    no_calibration: bool = in_measured(False, "Do not watch calibration."),
    confidence: float = in_measured(0.95, "Chance of no false alarm in all periods together."),
    measures: str | None = in_measured(
        None, "Also show how far groups differ in these, such as ppv,auc; not tested."
    ),
) -> None:
    """Watch a deployed rule: exit with 1 if its promises are shown not to hold."""
    deployed = Rule.load(rule)
    at = deployed.promise.threshold if threshold is None else threshold
    edges = () if at is None else (check_threshold(at),)
    # A file of options names the scores that the rule was made from, not the repaired ones.
    made = {**deployed.reading.columns, "scale": deployed.reading.scale}
    asked = {}
    for name, value in context.params.items():
        source = getattr(context.get_parameter_source(name), "name", "")
        if source != "DEFAULT" and not (source == "DEFAULT_MAP" and value == made.get(name)):
            asked[name] = value
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
    table, lines = (report.headline(), *report.table()), ["\n".join(report.summary())]
    show_result(report, printing, lambda out: show_tables(out, [table], lines))
    if report.alarm:
        raise typer.Exit(1)


# Show


def report(
    data: options.DataOrTallies,
    columns: options.Columns,
    measuring: options.Measuring,
    rule: list[Path] | None = in_output(
        None, "A rule to show, as isocost fit wrote it; may be repeated."
    ),
    title: str | None = in_output(None, "Title of the page."),
    min_count: int = in_output(0, "Merge cells of the page with fewer rows than this."),
    people: str | None = in_output(None, "Whom rows are about, for example: defendants."),
    outcome: str | None = in_output(
        None,
        "Words that complete “people who ...” for positive people, in the past tense, for "
        "example: reoffended, “were denied”, “repaid / did not repay”.",
    ),
    positive_means: str | None = in_output(None, "What a high score speaks of, for example: risk."),
    output: Path = in_output(Path("report.html"), "HTML or PDF file to write.", "--output", "-o"),
    force: bool = as_in(options.Writing, "force"),
) -> None:
    """Write an interactive report: one HTML file that works offline and holds no rows.

    A PDF takes a browser such as Chromium on this machine.
    """
    from isocost.page.payload import Origin, payload
    from isocost.page.report import ENDINGS
    from isocost.page.view import single_text

    check_target(output, force, *ENDINGS)
    loaded = {path.stem: Rule.load(path) for path in rule or []}
    ends = {end for made in loaded.values() for row in made.rows for end in (row.lo, row.hi)}
    question = measuring.question()
    tally = read(data, columns, (*question.edges, *sorted(ends - {0.0, 1.0})))
    result = ic.audit(tally, question=question_about(measuring, tally), warn=False)
    origin = Origin(tuple(data)).with_files()
    origin = origin.with_command(["isocost", *typed.get()], output, *(rule or []))
    ic.report(
        result,
        loaded or None,
        output,
        title=title,
        min_count=min_count,
        origin=origin,
        people=people,
        outcome=outcome,
        positive_means=positive_means,
        force=force,
    )
    is_pdf = output.suffix.lower() == ".pdf"
    say(f"The report is in {output}{'.' if is_pdf else ': open it in a browser.'}")
    single = single_text(payload(tally, min_count, question.threshold))
    if single:
        say(single)


def verify(
    page: Annotated[Path, typer.Argument(help="A report, as isocost report wrote it.")],
) -> None:
    """Make a report again, and list every number and word of it that was changed.

    Of a report by another version of isocost the wording cannot be checked, only the numbers; the
    output says so.  Exit codes: 0 nothing that was checked was changed; 1 something was changed; 2
    no report that can be checked.
    """
    result = ic.verify(page)
    say("\n".join(result.lines()))
    if not result.unchanged:
        raise typer.Exit(1)


def serve(
    data: Annotated[
        str | None, typer.Argument(help="A file, a glob or a folder to start with.")
    ] = None,
    port: int = other(0, "Port; 0 takes a free one.", min=0, max=65535),
    no_browser: bool = other(False, "Do not open the page in the browser."),
    max_size: str = other("200MB", "The largest file that may be dropped on the page."),
    timeout: float = other(30.0, "Seconds until a silent connection is closed.", min=0.1),
) -> None:
    """Open a page on this machine that makes a report of a file; nothing leaves the machine."""
    from isocost.page.server import serve as run

    try:
        size, browser = bytes_of(max_size), not no_browser
        run(data, port=port, browser=browser, max_size=size, timeout=timeout, say=say)
    except KeyboardInterrupt:
        # Ctrl-C is how this command ends, so it is not a failure.
        say("\nClosed; nothing was kept.")


def bytes_of(size: str) -> int:
    """A size with a unit, in bytes.

    Examples
    --------
    >>> bytes_of("200MB"), bytes_of("1.5 gb"), bytes_of("4096")
    (200000000, 1500000000, 4096)
    """
    units = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?)B?\s*", size, re.IGNORECASE | re.ASCII)
    number = round(float(match[1]) * units[match[2].upper()]) if match else 0
    if number < 1:
        step = "for example --max-size 500MB"
        raise UsageError(Problem("--max-size", "must be a size such as 200MB", repr(size), step))
    return number


# About isocost

TOLERANCE = 0.06

TITLE = "COMPAS: do errors cost every group the same?"

WORDS: dict[str, Any] = {"people": "defendants", "outcome": "reoffended", "positive_means": "risk"}
"""The people and the outcome of the demo."""

TELLING = (
    "costs differ by",
    "FPR or FNR differ by",
    "largest calibration gap",
    "accuracy",
    "people changed",
    "decisions changed",
)
"""The rows of a comparison that the demo shows."""


def demo(
    data: bool = other(False, "Only write the people of the demo to a file, data.csv."),
    output: Path | None = in_output(
        None, "File to write; default: report.html, or data.csv with --data.", "--output", "-o"
    ),
    report: bool = other(True, "Whether to write the report.", "--report/--no-report"),
    force: bool = as_in(options.Writing, "force"),
) -> None:
    """Audit and repair COMPAS, from counts that come with the package; needs no network."""
    from isocost.examples import compas, compas_csv
    from isocost.verdict.sentences import Vocabulary, plain
    from isocost.verdict.wording import statement

    if data:
        path = output or Path("data.csv")
        check_target(path, force, ".csv")
        write_text(path, compas_csv(), force=force)
        command = Reading().command("audit", [str(path)], "--cost", "fpr")
        say(f"6,150 rows are in {path}. Next: {command}")
        return
    path = output or Path("report.html")
    if report:
        check_ending(path, ".html", ".htm")
        if not force:
            _check_own(path)
    tally, out = compas(), Printer()
    out.prose(
        "COMPAS risk scores of 6,150 defendants: does a wrong score cost every group the same?\n"
    )
    result = ic.audit(tally, "fpr")
    said = statement(result, vocabulary=Vocabulary(**WORDS))
    out.prose("\n".join(plain(one) for one in (said.headline, said.next, *said.details[:2])))
    rules = {
        "withhold": ic.withhold(tally, "fpr", TOLERANCE),
        "odds": ic.equalize_odds(tally),
        "reconcile": ic.reconcile(tally),
    }
    header, rows = ic.compare(tally, rules, "fpr").table()
    by_name = {row[0]: row for row in rows}
    say()
    title = "What repairs do, beside the scores as they are"
    out.table(title, header, [by_name[name] for name in TELLING])
    out.prose(
        f"\nwithhold brings the costs to within {TOLERANCE:g}. odds makes them equal and gives up "
        "calibration. reconcile keeps it, and makes the error rates of decisions equal."
    )
    if report:
        try:
            ic.report(result, None, path, title=TITLE, **WORDS)
            say(f"\nThe report is in {path}: open it in a browser.")
        except MissingDependencyError as error:
            say(f"\nNo report was written. {error}")
    out.prose("Next: isocost demo --data writes these people to data.csv, for other commands.")


def _check_own(path: Path) -> None:
    """Raise if a file was not written by an earlier demo: it may be somebody's work."""
    check_target(path, force=True)
    if not path.exists():
        return
    try:
        with path.open(encoding="utf-8") as file:
            start = file.read(4096)
    except (OSError, UnicodeDecodeError):
        start = ""
    if f"<title>{TITLE}</title>" not in start:
        step = "choose another path with -o, or pass --no-report"
        raise FileError(Problem("output", "must be free, or a report of the demo", str(path), step))
