"""What the command line shows: tables on a terminal, plain text in a pipe, progress, errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from isocost.engines.source import Progress as Report
from isocost.text import text_table

__all__ = ["complain", "progress", "say", "show_table"]


def say(text: str = "", *, error: bool = False) -> None:
    """Print text as it is, without markup or wrapping."""
    stream = sys.stderr if error else sys.stdout
    try:
        stream.write(f"{text}\n")
        stream.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough. The work goes on: its exit code counts.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain(problem: object, code: int) -> int:
    """Print a problem to the error stream and give back the exit code."""
    say(str(problem) if code == 0 else f"isocost: {problem}", error=True)
    return code


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show a table: drawn on a terminal, aligned text anywhere else."""
    console = Console(emoji=False)
    if not console.is_terminal:
        say(f"{title}\n{text_table(header, rows)}")
        return
    # Text, so that a group called [red] is a name and not an instruction.
    table = Table(title=Text(title, style="bold"), title_justify="left", header_style="bold")
    for place, name in enumerate(header):
        table.add_column(Text(name), justify="left" if place == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


@contextmanager
def progress(what: str) -> Iterator[Report | None]:
    """A progress bar on the error stream, if that is a terminal and the work takes a while."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)
