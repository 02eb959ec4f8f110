"""How the results of commands are printed: the verdict first, then tables, then notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from isocost.cli.output import draw, prose, say, show_table
from isocost.groups import Group, names_of
from isocost.measures.audit import Audit
from isocost.measures.calibration import gap_equal_width, levels_of
from isocost.measures.table import MEASURES
from isocost.repairs.compare import Changes, Comparison
from isocost.repairs.compare import compare as put_side_by_side
from isocost.repairs.unseen import Unseen
from isocost.repairs.watch import Watch
from isocost.reports.layout import Layout
from isocost.rules import Rule
from isocost.tallies import Tally
from isocost.verdict.sentences import SENTENCES, plain
from isocost.verdict.wording import statement


def show_watch(report: Watch) -> None:
    """The table of a watch and what it means."""
    show_table(report.headline(), *report.table())
    say()
    for line in report.summary():
        prose(line)


BRIEF = ("base_rate", "fpr", "fnr", "selection_rate", "calibration_gap")
"""The measures of the table that fits a screen, beside n and the costs."""

CAUTIONS = (
    "note_small", "note_uninformative", "read_percent", "read_logit", "read_rank", "read_scale"
)  # fmt: skip
"""Notes that are printed even where there is room for few."""


def show_audit(
    result: Audit, plot: bool | None = None, data: str | None = None, *, full: bool = False
) -> None:
    """The verdict of an audit, its table, its drawing, and what to do; if ``full``, all notes.

    ``data`` are the words of the command line that name the data.
    """
    said = statement(result, data=data)
    details = said.details if full else said.details[:2]
    prose("\n".join(plain(one) for one in (said.headline, said.next, *details)) + "\n")
    usual = {name for name, measure in MEASURES.items() if measure.printed}
    shown = result.shown
    if not full and set(shown) == usual:
        shown = tuple(name for name in shown if name in BRIEF)
    show_table(result.headline(), *replace(result, shown=shown).table())
    draw(result, plot)
    notes = [plain(one) for one in said.notes]
    if full:
        prose("\n" + "\n".join(result.summary()), piped=False)
    else:
        starts = tuple(SENTENCES[name].partition("{")[0] for name in CAUTIONS)
        notes = [note for note in notes if "isocost " in note or note.startswith(starts)]
        more = len(result.shown) - len(shown)
        notes.append(f"--full shows {f'{more} more numbers and ' if more else ''}every note.")
        say()
    prose("\n".join(notes))


def show_layout(layout: Layout) -> None:
    """The tables of a layout, and what they follow."""
    prose(f"{layout.title}\n", piped=False)
    for one in layout.tables:
        show_table(one.title, *one.table())
        say()
    for line in layout.lines():
        prose(line)


def show_comparison(comparison: Comparison) -> None:
    """Rules side by side, and which of them to take, if any."""
    for index, (title, header, rows) in enumerate(comparison.tables()):
        if index:
            say()
        show_table(title, header, rows)
    for line in comparison.lines():
        prose(f"\n{line}")


def show_calibration(tally: Tally, rule: Rule) -> None:
    """The calibration gap of each group before and after a rule."""
    after = rule.expected(tally)
    header = ["group", "people", "mean score", "base rate", "gap before", "gap after", "rows"]
    rows = []
    for index, (group, name) in enumerate(names_of(tally.groups).items()):
        levels = levels_of(tally, index)
        means = (levels.wh.sum() / levels.w.sum(), levels.wy.sum() / levels.w.sum())
        gaps = (gap_equal_width(levels), gap_equal_width(levels_of(after, index)))
        cells = [f"{number:.4f}" for number in (*means, *gaps)]
        people = f"{tally.totals.n[index].sum():,.6g}"
        rows.append([name, people, *cells, str(len(rule.segments(group)))])
    title = f"Recalibrated by {rule.settings['method']}; calibration gap in ten bins"
    show_table(title, header, rows)
    prose("\nThe gap after is that of the people the rule was fitted on, not of others.")


def show_unseen(outlook: Unseen) -> None:
    """What a rule does to people not seen."""
    show_table(outlook.headline(), *outlook.table())
    for note in outlook.notes():
        prose(f"note: {note}", piped=False)


def show_rule(tally: Tally, rule: Rule, cost: str | None, threshold: float) -> None:
    """A rule, and what it is expected to do; of a long one what it does to each group."""
    comparison = put_side_by_side(tally, [rule], cost, threshold)
    if not rule.rows:
        prose(f"{rule!r}\n", piped=False)
    else:
        if rule.is_long:
            title = f"{rule.headline()}; {len(rule.rows):,} rows, not listed here"
            show_table(title, *_by_group(comparison.rules[rule.method].by_group))
            prose(f"promise: {rule.promise}" if rule.promise else "", piped=False)
        else:
            show_table(rule.headline(), *rule.table())
        prose("".join(f"note: {note}\n" for note in rule.notes), piped=False)
    prose("On average over the coin:\n", piped=False)
    show_comparison(comparison)


def _by_group(changes: Mapping[Group, Changes]) -> tuple[list[str], list[list[str]]]:
    """What a rule does to each group, as header and rows."""
    header = ["group", "changed", "mean change", "by a coin", "decisions changed"]
    names = names_of(changes)
    # What is said of the others never stands alone.
    deferring = any(one.handed_over for one in changes.values())
    header[1:1] = ["handed over"] * deferring
    return header, [
        [
            names[group],
            *[f"{one.handed_over:.2%}"] * deferring,
            f"{one.changed:.2%}",
            f"{one.mean_change:.4f}",
            f"{one.by_coin:.2%}",
            f"{one.decisions:.2%}",
        ]
        for group, one in changes.items()
    ]
