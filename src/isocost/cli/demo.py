"""isocost demo: the whole story on COMPAS, from forty built-in counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isocost.atomic import check_ending, check_target
from isocost.cli.commands import show_audit, show_comparison, show_rule
from isocost.cli.output import prose, say
from isocost.errors import FileError, InfeasibleError, MissingDependencyError, Problem
from isocost.examples import compas
from isocost.measure.audit import Audit, audit
from isocost.measure.feasibility import round_up
from isocost.repair.compare import compare
from isocost.repair.odds import equalize_odds
from isocost.repair.reconcile import reconcile
from isocost.repair.withhold import withhold
from isocost.show.report import ENDINGS

__all__ = ["demo"]

TOLERANCE = 0.06
TITLE = "COMPAS: do errors cost every group the same?"


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the report.")
    ] = Path("report.html"),
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the report, or leave it.")
    ] = True,
) -> None:
    """Audit and repair COMPAS, from counts that come with the package; needs no network."""
    if report:
        check_ending(output, *ENDINGS)
        _only_its_own(output)
    tally = compas()
    prose(
        "COMPAS risk scores of 6,150 defendants: does a wrong score cost every group the same?\n",
        piped=False,
    )
    result = audit(tally, "fpr")
    show_audit(result)
    question = "Can calibrated scores have equal generalized false-positive rates?"
    prose(f"\n1. {question}\n", piped=False)
    try:
        withhold(tally, "fpr")
    except InfeasibleError as error:
        why = error.problems[0]
        prose(f"No. {why.name.capitalize()} {why.rule}. {why.got}\nTo go on, {why.next_step}.")
    needed = round_up(result.feasibility.smallest_tolerance)
    prose(
        f"\n2. What withholding can do: bring the difference from "
        f"{result.disparity.difference:.4f} down to {needed}. For {TOLERANCE:g}:\n",
        piped=False,
    )
    withheld = withhold(tally, "fpr", TOLERANCE)
    show_rule(tally, withheld, "fpr", 0.5)
    prose(
        "\n3. What the impossibility leaves open: at a decision threshold, calibrated scores can\n"
        "   have equal false-positive and equal false-negative rates. Reconciled at 0.5, beside\n"
        "   the others (odds gives up calibration):\n",
        piped=False,
    )
    rules = {
        "withhold": withheld,
        "odds": equalize_odds(tally),
        "reconcile": reconcile(tally),
        "fewest decisions": reconcile(tally, keep="decisions"),
    }
    show_comparison(compare(tally, rules, "fpr"))
    prose("\n" + rules["reconcile"].notes[0], piped=False)
    if report:
        _write(result, output)


def _only_its_own(path: Path) -> None:
    """Refuse a file that an earlier demo did not write: it may be somebody's work."""
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
    from isocost.show.report import report

    try:
        report(result, None, path, title=TITLE)
    except MissingDependencyError as error:
        say(f"\nNo report was written. {error}")
        return
    say(f"\nThe report is in {path.resolve()}: open it in a browser.")
