"""The commands report, verify, serve and demo."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import isocost as ic
from isocost.atomic import check_ending, check_target, write_text
from isocost.cli import options
from isocost.cli.output import Printer, say, typed
from isocost.cli.reading import question_about, read
from isocost.errors import FileError, MissingDependencyError, Problem, UsageError
from isocost.readings import Reading
from isocost.rules import Rule

if TYPE_CHECKING:
    from isocost.judging.audit import Audit


def report(
    data: options.DataOrTallies,
    columns: options.Columns,
    measuring: options.Measuring,
    rule: Annotated[
        list[Path] | None,
        options.in_output(
            "--rule", help="A rule to show, as isocost fit wrote it; may be repeated."
        ),
    ] = None,
    title: Annotated[str | None, options.in_output("--title", help="Title of the page.")] = None,
    min_count: Annotated[
        int,
        options.in_output("--min-count", help="Merge cells of the page with fewer rows than this."),
    ] = 0,
    people: Annotated[
        str | None,
        options.in_output("--people", help="Whom rows are about, for example: defendants."),
    ] = None,
    outcome: Annotated[
        str | None,
        options.in_output(
            "--outcome",
            help="Words that complete “people who ...” for positive people, in the past tense, for "
            "example: reoffended, “were denied”, “repaid / did not repay”.",
        ),
    ] = None,
    positive_means: Annotated[
        str | None,
        options.in_output(
            "--positive-means", help="What a high score speaks of, for example: risk."
        ),
    ] = None,
    output: Annotated[
        Path, options.in_output("--output", "-o", help="HTML or PDF file to write.")
    ] = Path("report.html"),
    force: options.Force = False,
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
    origin = origin.with_command(["isocost", *typed()], output, *(rule or []))
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
    for line in result.lines():
        say(line)
    if not result.unchanged:
        raise typer.Exit(1)


_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def serve(
    data: Annotated[
        str | None, typer.Argument(help="A file, a glob or a folder to start with.")
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open the page in the browser.")
    ] = False,
    max_size: Annotated[
        str, typer.Option("--max-size", help="The largest file that may be dropped on the page.")
    ] = "200MB",
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0.1, help="Seconds until a silent connection is closed."),
    ] = 30.0,
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
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?)B?\s*", size, re.IGNORECASE | re.ASCII)
    number = round(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if number < 1:
        step = "for example --max-size 500MB"
        raise UsageError(Problem("--max-size", "must be a size such as 200MB", repr(size), step))
    return number


TOLERANCE = 0.06

TITLE = "COMPAS: do errors cost every group the same?"


def demo(
    data: Annotated[
        bool, typer.Option("--data", help="Only write the people of the demo to a file, data.csv.")
    ] = False,
    output: Annotated[
        Path | None,
        options.in_output(
            "--output", "-o", help="File to write; default: report.html, or data.csv with --data."
        ),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Whether to write the report.")
    ] = True,
    force: options.Force = False,
) -> None:
    """Audit and repair COMPAS, from counts that come with the package; needs no network."""
    from isocost.examples import compas
    from isocost.verdict.sentences import Vocabulary, plain
    from isocost.verdict.wording import statement

    if data:
        _leave_data(output or Path("data.csv"), force)
        return
    output = output or Path("report.html")
    if report:
        check_ending(output, ".html", ".htm")
        if not force:
            _only_its_own(output)
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
        f"\nwithhold brings the costs to within {TOLERANCE:g}. odds brings them together and gives "
        "up calibration. reconcile keeps it, and makes wrong decisions equally frequent."
    )
    if report:
        _write(result, output)
    out.prose("Next: isocost demo --data leaves these people in data.csv, for other commands.")


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


def _leave_data(path: Path, force: bool) -> None:
    from isocost.examples import compas_csv

    check_target(path, force, ".csv")
    write_text(path, compas_csv(), force=force)
    audit_it = Reading().command("audit", [str(path)], "--cost", "fpr")
    say(f"6,150 rows are in {path}. Next: {audit_it}")


def _only_its_own(path: Path) -> None:
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


def _write(result: Audit, path: Path) -> None:

    try:
        ic.report(result, None, path, title=TITLE, **WORDS)
    except MissingDependencyError as error:
        say(f"\nNo report was written. {error}")
        return
    say(f"\nThe report is in {path}: open it in a browser.")
