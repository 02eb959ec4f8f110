"""What the command line shows: tables on a terminal, plain text in a pipe, progress, errors."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from isocost.engines.source import Progress as Report
from isocost.text import text_table

__all__ = ["complain", "progress", "say", "show_table"]


def say(text: str = "", *, error: bool = False) -> None:
    """Print text as it is, without markup or wrapping."""
    stream = sys.stderr if error else sys.stdout
    stream.write(f"{text}\n")


def complain(problem: object, code: int) -> int:
    """Print a problem to the error stream and give back the exit code."""
    say(str(problem) if code == 0 else f"isocost: {problem}", error=True)
    return code


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show a table: drawn on a terminal, aligned text anywhere else."""
    console = Console()
    if not console.is_terminal:
        say(f"{title}\n{text_table(header, rows)}")
        return
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for place, name in enumerate(header):
        table.add_column(name, justify="left" if place == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table, markup=False)


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
