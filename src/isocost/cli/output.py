"""The printing of commands: tables that fit the terminal, prose, drawings, progress and errors.

Of a result the verdict comes first, then its tables, then notes.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from isocost.atomic import write_text
from isocost.groups import names_of
from isocost.tables import (
    LINE,
    csv_text,
    escape_markdown,
    markdown_table,
    text_table,
    transposed,
    width,
    wrapped,
)
from isocost.verdict.sentences import commands_named

if TYPE_CHECKING:
    from isocost.cli.options import Printing
    from isocost.engines.files import Progress as Report
    from isocost.judging.audit import Audit
    from isocost.question import Question
    from isocost.rules import Rule
    from isocost.tallies import Tally

FRAME, PER_COLUMN = 1, 3
"""The width of a drawn table besides its texts: a line at the end, and for each column a line and
two spaces."""

INTERVAL = re.compile(r"(?<=\S) +\[[^\[\]]*\]$")


@dataclass(frozen=True)
class Block:
    """A part of a table; headers may have several lines."""

    header: list[str]
    rows: list[list[str]]

    @property
    def lines(self) -> int:
        """The number of lines it takes when drawn, with one between blocks."""
        return max(name.count("\n") for name in self.header) + len(self.rows) + 5


def blocks_of(
    header: Sequence[str], rows: Sequence[Sequence[str]], room: int
) -> Sequence[Block | str]:
    """The table as blocks to draw, or as lines if that is shorter or blocks do not fit.

    Examples
    --------
    >>> blocks_of(["", "a", "b"], [["cost", "0.25", "0.50"]], room=24)
    [Block(header=['', 'a', 'b'], rows=[['cost', '0.25', '0.50']])]
    >>> blocks_of(["", "a", "b"], [["cost", "0.25 [.2, .3]", "0.50 [.4, .6]"]], room=12)
    ['a', 'cost  0.25', '', 'b', 'cost  0.50']
    """
    whole = Block(list(header), [list(row) for row in rows])
    if width_of(whole) <= room:
        return [whole]
    bare = Block(whole.header, [[INTERVAL.sub("", cell) for cell in row] for row in whole.rows])
    for table in (whole, bare):
        blocks, lines = _split(table, room), listed(table, room)
        items = len(rows) if header[0] else len(header) - 1
        # A line per item and value, and one between items.
        fits = len(lines) == 2 * items - 1 + len(rows) * (len(header) - 1)
        if blocks and (not fits or sum(block.lines for block in blocks) <= len(lines)):
            return blocks
        if fits:
            return lines
    return listed(bare, room)


def width_of(block: Block) -> int:
    """The width of the block in columns of a terminal when drawn."""
    columns = zip(block.header, *block.rows, strict=True)
    return FRAME + sum(PER_COLUMN + max(map(_broad, column)) for column in columns)


def _broad(text: str) -> int:
    return max((width(line) for line in text.split("\n")), default=0)


def _split(table: Block, room: int) -> list[Block]:
    """Blocks of as many columns as fit beside the first; none if a column does not fit."""
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.header)
    folded = [
        fill(name, max([1, *map(width, column)]), break_long_words=False)
        for name, column in zip(table.header, columns, strict=True)
    ]
    first, *others = zip(folded, *table.rows, strict=True)
    start = FRAME + PER_COLUMN + max(map(_broad, first))
    blocks: list[list[tuple[str, ...]]] = []
    left = 0
    for column in others:
        takes = PER_COLUMN + max(map(_broad, column))
        if start + takes > room:
            return []
        if takes > left:
            blocks.append([])
            left = room - start
        blocks[-1].append(column)
        left -= takes
    tables = ([list(line) for line in zip(first, *block, strict=True)] for block in blocks)
    return [Block(header, rows) for header, *rows in tables]


def listed(table: Block, room: int) -> list[str]:
    """The table as a list: the name of each item, then its values line by line.

    The items are the rows if the first column has a name, otherwise the columns.
    """
    header, rows = table.header, table.rows
    if not header[0]:
        header, rows = transposed(header, rows)
    names = max((width(name) for name in header[1:]), default=0)
    lines: list[str] = []
    for thing, *cells in rows:
        lines += ["", *_words(thing, room)] if lines else _words(thing, room)
        for name, cell in zip(header[1:], cells, strict=True):
            if names + 2 + width(cell) <= room:
                gap = " " * (names - width(name) + 2)
                lines.append(f"{name}{gap}{cell}".rstrip())
            else:
                lines += _words(name, room)
                lines += [f"  {line}" for line in _words(cell, room - 2)]
    return lines


def _words(text: str, room: int) -> list[str]:
    return wrap(text, max(room, 1), break_long_words=False, break_on_hyphens=False) or [""]


NARROWEST, WIDEST, WIDEST_PLANE = 40, 100, 72
"""The width of a drawing in characters."""


class _Standard(io.FileIO):
    """A standard stream that never fails: the command goes on and determines the exit code.

    ``failure`` says why something was not written; a reader that stops early is no failure.
    """

    failure: str | None = None

    def __init__(self, descriptor: int | None) -> None:
        # The caller may have closed a stream; another file may have its number.
        self.missing = descriptor is None
        super().__init__(os.devnull if descriptor is None else descriptor, "w", descriptor is None)

    def write(self, data: Any) -> int:
        try:
            if self.missing:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            return super().write(data)
        except BrokenPipeError:
            pass
        except OSError as error:
            self.failure = self.failure or error.strerror
        return len(data)


@contextmanager
def standard_streams() -> Iterator[Callable[[], str | None]]:
    """Write to the standard streams without failing; yields a function that says what was lost.

    Characters that a terminal cannot display are escaped.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_guarded, before, (sys.__stdout__, sys.__stderr__))

    def lost() -> str | None:
        sys.stdout.flush()
        return getattr(getattr(sys.stdout.buffer, "raw", None), "failure", None)

    try:
        yield lost
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = before


def _guarded(stream: TextIO | None, original: TextIO | None) -> TextIO:
    if stream is not None and stream is not original:
        # The caller has replaced it.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        return stream
    raw = _Standard(None if stream is None else stream.fileno())
    encoding = "utf-8" if stream is None else stream.encoding
    lines = stream is not None and stream.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=lines
    )


typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
"""The words of the command line without the program's; a report names them as its origin."""


def say(text: str = "", *, error: bool = False) -> None:
    """Print text as it is, without markup or wrapping."""
    stream = sys.stderr if error else sys.stdout
    stream.write(f"{text}\n")
    stream.flush()


def complain(problem: object, code: int) -> int:
    """Print a problem to the error stream and return the exit code."""
    say(str(problem) if code == 0 else f"isocost: {problem}", error=True)
    return code


def console_of(*, error: bool = False) -> Console:
    """The terminal of this command; --no-color and NO_COLOR switch its colours off."""
    colors = None if "--no-color" in typed.get() else "auto"
    return Console(stderr=error, emoji=False, color_system=colors)  # type: ignore[arg-type]


_TYPED = str.maketrans({"\u00a0": " ", "\u2019": "'"})
"""Characters as a keyboard has them, which every stream can write and everybody can search for."""


@dataclass(frozen=True)
class Printer:
    """Prints for people: drawn on a terminal, as plain text elsewhere, or as Markdown."""

    markdown: bool = False
    console: Console = field(default_factory=console_of)

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; on a terminal it is drawn, in parts if it is too wide."""
        if self.markdown:
            say(f"**{escape_markdown(title)}**\n\n{markdown_table(header, rows)}\n")
            return
        if not self.console.is_terminal:
            say(f"{title}\n{text_table(header, rows, LINE)}")
            return
        # Text, so that a group called [red] is a name and not an instruction.
        self.console.print(Text(title, style="bold"))
        blocks = blocks_of(header, rows, self.console.width)
        if blocks and isinstance(blocks[0], str):
            self.console.print()
        for i, block in enumerate(blocks):
            if isinstance(block, str):
                # The line after an empty one is the name of the next item.
                style = "" if i and blocks[i - 1] else "bold"
                self.console.print(Text(block, style), soft_wrap=True)
                continue
            if i:
                self.console.print()
            table = Table(header_style="bold")
            for column, name in enumerate(block.header):
                side: Any = "right" if column else "left"
                table.add_column(Text(name), justify=side, overflow="fold")
            for row in block.rows:
                table.add_row(*map(Text, row))
            self.console.print(table)

    def prose(self, text: str, *, piped: bool = True, commands: Sequence[str] = ()) -> None:
        """Print sentences in lines of at most 80 characters, fewer on a narrow terminal.

        If not ``piped``, this is only done on a terminal: elsewhere lines stay as they are.  Lines
        do not end within ``commands``, so that they can be copied.
        """
        if self.markdown:
            for paragraph in filter(None, text.split("\n")):
                say(f"{escape_markdown(paragraph)}\n")
            return
        if not (piped or self.console.is_terminal):
            say(text.translate(_TYPED))
            return
        wide = min(LINE, self.console.width) if self.console.is_terminal else LINE
        for command in (*commands, *commands_named()):
            text = text.replace(command, command.replace(" ", "\u00a0"))
        say(wrapped(text, wide).translate(_TYPED))

    def draw(self, audit: Audit, wanted: bool | None = None) -> None:
        """Draw an audit: on a terminal with room unless unwanted, elsewhere only if wanted."""
        room = self.console.width
        possible = self.console.is_terminal and room >= NARROWEST
        if self.markdown or not (possible if wanted is None else wanted):
            return
        from isocost.page.terminal import CHARACTERS, bars_text, plane_text

        plain = False
        try:
            CHARACTERS.encode(self.console.encoding)
        except (UnicodeEncodeError, LookupError):
            plain = True
        wide = max(NARROWEST, min(WIDEST, room))
        plane = plane_text(audit, min(wide, WIDEST_PLANE), max(10, min(18, wide // 3)), plain)
        drawing = Text("\n").append(plane).append("\n").append(bars_text(audit, wide, plain))
        self.console.print(drawing, soft_wrap=True, end="")


def print_json(content: dict[str, Any]) -> None:
    """Print JSON that people can read too."""
    say(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))


def show_result(result: Any, how: Printing, show: Callable[[Printer], None]) -> None:
    """Print a result in the format asked for, and write its CSV file.

    ``show`` prints it for people, as tables or as Markdown.
    """
    chosen = how.chosen
    if how.csv is not None:
        write_text(how.csv, csv_text(result.to_frame(backend="dict")) + "\n", force=how.force)
    if chosen == "json":
        print_json(result.to_dict())
    elif chosen == "csv":
        say(csv_text(result.to_frame(backend="dict")))
    else:
        show(Printer(markdown=chosen == "markdown"))
        if how.csv is not None and chosen == "table":
            say(f"\nThe numbers are in {how.csv}.")


@contextmanager
def progress(what: str) -> Iterator[Report | None]:
    """A progress bar with rows and time left on the error stream, if that is a terminal."""
    console = console_of(error=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=1.0, rows="")

        def report(share: float, rows: int | None) -> None:
            shown = "" if rows is None else f"{share * rows:,.0f} of {rows:,} rows"
            bar.update(task, completed=share, rows=shown)

        yield report


# Results


def show_tables(
    out: Printer,
    tables: Iterable[tuple[str, list[str], list[list[str]]]],
    texts: Iterable[str],
    commands: Sequence[str] = (),
) -> None:
    """Tables and then texts, with an empty line before each but the first.

    Lines do not end within ``commands``.
    """
    for index, table in enumerate(tables):
        if index:
            say()
        out.table(*table)
    for text in filter(None, texts):
        out.prose(f"\n{text}", commands=commands)


BRIEF = ("base_rate", "fpr", "fnr", "selection_rate", "calibration_gap")
"""The measures of the table that fits a screen, beside n and the costs."""


def show_audit(
    out: Printer,
    result: Audit,
    plot: bool | None = None,
    data: Sequence[str] | None = None,
    *,
    full: bool = False,
) -> None:
    """The verdict of an audit, its table, its drawing, and what to do; if ``full``, all notes.

    ``data`` are the files that were read, which commands name.
    """
    from isocost.measures.table import MEASURES
    from isocost.verdict.wording import statement

    said = statement(result, data=data)
    if not full:
        said = replace(said, details=said.details[:2])
    out.prose("\n".join(said.lead) + "\n")
    usual = {name for name, measure in MEASURES.items() if measure.printed}
    shown = result.shown
    if not full and set(shown) == usual:
        shown = tuple(name for name in shown if name in BRIEF)
    out.table(result.headline(), *replace(result, shown=shown).table())
    out.draw(result, plot)
    notes = [note for note in said.notes if full or note.is_caution or note.commands]
    lines = list(map(str, notes))
    if full:
        out.prose("\n" + "\n".join(result.summary()), piped=False)
    else:
        more = len(result.shown) - len(shown)
        lines.append(f"--full shows {f'{more} more numbers and ' if more else ''}every note.")
        say()
    out.prose("\n".join(lines), commands=[one for note in notes for one in note.commands])


def show_calibration(out: Printer, tally: Tally, rule: Rule) -> None:
    """The calibration gap of each group before and after a rule."""
    from isocost.measures.calibration import gap_equal_width, levels_of

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
    out.table(title, header, rows)
    out.prose("\nThe gap after is that of the people the rule was fitted on, not of others.")


def show_rule(out: Printer, tally: Tally, rule: Rule, question: Question) -> None:
    """A rule, and what it is expected to do; of a long one what it does to each group."""
    from isocost.judging.compare import compare

    comparison = compare(tally, [rule], question=question)
    if not rule.rows:
        out.prose(f"{rule!r}\n", piped=False)
    else:
        if rule.is_long:
            out.prose(f"{rule.headline()}; {len(rule.rows):,} rows, not listed here")
            out.prose(f"promise: {rule.promise}", piped=False)
        else:
            out.table(rule.headline(), *rule.table())
        out.prose("".join(f"note: {note}\n" for note in rule.notes), piped=False)
    out.prose("On average over the coin:\n", piped=False)
    out.table(comparison.headline(), *comparison.table())
    if (who := comparison.by_group())[-1]:
        out.prose("", piped=False)
        out.table(*who)
        out.prose("".join(f"\n{one}" for one in comparison.harms()), piped=False)
