"""What the command line shows: tables on a terminal, plain text in a pipe, progress, errors."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import Any, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from isocost.cli.tables import Block, blocks_of
from isocost.engines.source import Progress as Report
from isocost.measure.audit import Audit
from isocost.show.terminal import CHARACTERS, bars_text, plane_text
from isocost.text import text_table

__all__ = [
    "complain",
    "console_of",
    "draw",
    "progress",
    "prose",
    "say",
    "show_table",
    "standard_streams",
    "use_color",
]

_colored = True

LINE = 80
"""How wide sentences are, like the table above them."""

NARROWEST, WIDEST, WIDEST_PLANE = 40, 100, 72
"""How wide a drawing may be, in characters."""


class _Standard(io.FileIO):
    """A standard stream that never fails: the work goes on, and its exit code counts.

    Attributes
    ----------
    failure : str or None
        Why something could not be written.  A reader that has seen enough, such as `head`, is no
        failure.
    """

    failure: str | None = None

    def __init__(self, descriptor: int | None) -> None:
        # A stream may have been closed by whoever started us; another file may have its number.
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
    """Write to the standard streams without failing; what is given tells whether output was lost.

    A terminal that cannot write a letter gets its code.
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
        # Whoever calls us has put something else there.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        return stream
    raw = _Standard(None if stream is None else stream.fileno())
    encoding = "utf-8" if stream is None else stream.encoding
    lines = stream is not None and stream.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=lines
    )


def use_color(wanted: bool) -> None:
    """Say whether what is printed from now on may have colours; NO_COLOR forbids them too."""
    global _colored
    _colored = wanted


def console_of(*, error: bool = False) -> Console:
    """The terminal of this command; every table and bar is printed through it."""
    return Console(stderr=error, emoji=False, color_system="auto" if _colored else None)


def say(text: str = "", *, error: bool = False) -> None:
    """Print text as it is, without markup or wrapping."""
    stream = sys.stderr if error else sys.stdout
    stream.write(f"{text}\n")
    stream.flush()


def complain(problem: object, code: int) -> int:
    """Print a problem to the error stream and give back the exit code."""
    say(str(problem) if code == 0 else f"isocost: {problem}", error=True)
    return code


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show a table: drawn on a terminal, in parts if it is too wide; aligned text elsewhere."""
    console = console_of()
    if not console.is_terminal:
        say(f"{title}\n{text_table(header, rows)}")
        return
    # Text, so that a group called [red] is a name and not an instruction.
    console.print(Text(title, style="bold"))
    parts = blocks_of(header, rows, console.width)
    if parts and isinstance(parts[0], str):
        console.print()
    for place, part in enumerate(parts):
        if isinstance(part, str):
            # What comes after an empty line is the name of the next thing.
            style = "" if place and parts[place - 1] else "bold"
            console.print(Text(part, style), soft_wrap=True)
            continue
        if place:
            console.print()
        console.print(_drawn(part))


def _drawn(block: Block) -> Table:
    table = Table(header_style="bold")
    for place, name in enumerate(block.header):
        table.add_column(Text(name), justify="right" if place else "left", overflow="fold")
    for row in block.rows:
        table.add_row(*map(Text, row))
    return table


def prose(text: str, *, piped: bool = True) -> None:
    """Print sentences in lines of at most 80 letters, fewer on a narrow terminal.

    If not ``piped``, this is only done on a terminal: elsewhere lines stay as they are.
    """
    console = console_of()
    if not (piped or console.is_terminal):
        say(text)
        return
    wide = min(LINE, console.width) if console.is_terminal else LINE
    for paragraph in text.split("\n"):
        say(fill(paragraph, max(1, wide), break_long_words=False, break_on_hyphens=False))


def draw(audit: Audit, wanted: bool | None = None) -> None:
    """Draw an audit: on a terminal with room unless unwanted, elsewhere only if wanted."""
    console = console_of()
    possible = console.is_terminal and console.width >= NARROWEST
    if not (possible if wanted is None else wanted):
        return
    plain = not _can_write(CHARACTERS, console.encoding)
    width = max(NARROWEST, min(WIDEST, console.width))
    plane = plane_text(audit, min(width, WIDEST_PLANE), max(10, min(18, width // 3)), plain)
    drawing = Text("\n").append(plane).append("\n").append(bars_text(audit, width, plain))
    console.print(drawing, soft_wrap=True, end="")


def _can_write(letters: str, encoding: str) -> bool:
    try:
        letters.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


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
