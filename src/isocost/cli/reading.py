"""Reading data for a command: files, globs and standard input, to a tally."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from isocost.cli.output import progress
from isocost.engines.files import tally_files
from isocost.errors import FileError, Problem, UsageError
from isocost.grid import Grid
from isocost.groups import names_of
from isocost.tallies import Tally

__all__ = ["Columns", "local", "may_write", "read"]


@dataclass(frozen=True)
class Columns:
    """What the options say about the columns of the data."""

    score: str
    label: str
    group: list[str]
    weight: str | None = None
    positive: str | None = None
    missing_group: str | None = None
    drop_group: list[str] | None = None
    bins: int = 1024


def read(data: str, columns: Columns, edges: tuple[float, ...]) -> Tally:
    """The tally of the data, without the groups to be dropped."""
    names = {
        "score": columns.score,
        "label": columns.label,
        "weight": columns.weight,
        "group": list(columns.group),
    }
    with local(data) as path, progress("counting") as report:
        tally = tally_files(
            path,
            names,
            grid=Grid(columns.bins, edges),
            positive=columns.positive,
            missing_group=columns.missing_group,
            progress=report,
        )
    return _without(tally, columns.drop_group or [])


def _without(tally: Tally, dropped: list[str]) -> Tally:
    names = names_of(tally.groups)
    strange = [name for name in dropped if name not in names.values()]
    if strange:
        raise UsageError(
            Problem(
                "--drop-group",
                "must name a group of the data",
                f"{strange[0]!r}, and the groups are {', '.join(names.values())}",
                "write the group as the audit table does",
            )
        )
    if len(set(dropped)) == len(names):
        step = "leave at least two groups"
        raise UsageError(Problem("--drop-group", "must leave groups", "all of them", step))
    return tally.drop(group for group, name in names.items() if name in dropped)


@contextmanager
def local(data: str) -> Iterator[str]:
    """The path of the data; standard input is kept in a temporary file meanwhile."""
    if data != "-":
        yield data
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard-input.csv"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        if path.stat().st_size == 0:
            step = "pipe a CSV file with a header into the command"
            raise FileError(Problem("standard input", "must hold CSV", "nothing", step))
        yield str(path)


def may_write(path: Path, force: bool) -> None:
    """Refuse a path that is taken, unless told otherwise."""
    if path.exists() and not force:
        step = "choose another path, or pass --force to replace it"
        raise FileError(Problem("output", "must not exist yet", str(path), step))
