"""Reading for a command: files, standard input and tallies, to one tally."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path

from isocost.atomic import check_ending
from isocost.cli.merging import check_alike, check_once, is_tally_path, load_tally, tally_paths
from isocost.cli.output import progress
from isocost.engines.files import tally_files
from isocost.engines.settings import Settings
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
    limits: Settings = field(default_factory=Settings)


def read(data: str | Sequence[str], columns: Columns, edges: tuple[float, ...]) -> Tally:
    """The tally of data and tallies together, without the groups to be dropped.

    Data that come with tallies are counted in their bins.
    """
    named = [data] if isinstance(data, str) else list(data)
    check_once(named)
    loaded = [(name, load_tally(name)) for name in tally_paths(named)]
    check_alike(loaded)
    if loaded:
        _check_options(columns, loaded[0][1], only=len(loaded) == len(named))
    grid = loaded[0][1].grid if loaded else Grid(columns.bins, edges)
    counted = [_count(name, columns, grid) for name in named if not is_tally_path(name)]
    merged = reduce(add, [tally for _, tally in loaded] + counted)
    return _without(merged, columns.drop_group or [])


def _count(data: str, columns: Columns, grid: Grid) -> Tally:
    names = {
        "score": columns.score,
        "label": columns.label,
        "weight": columns.weight,
        "group": list(columns.group),
    }
    with local(data) as path, progress("counting") as report:
        return tally_files(
            path,
            names,
            grid=grid,
            positive=columns.positive,
            missing_group=columns.missing_group,
            settings=columns.limits,
            progress=report,
        )


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


def _check_options(columns: Columns, tally: Tally, only: bool) -> None:
    """Refuse options about columns that the tallies contradict: they would say nothing."""
    made = {**tally.columns, "bins": tally.bins}
    usual = Columns("score", "label", ["group"])
    for role in ("score", "label", "group", "weight", "bins", "positive", "missing_group"):
        asked = getattr(columns, role)
        if asked in (getattr(usual, role), made.get(role)):
            continue
        if not only and role in ("positive", "missing_group"):
            continue
        rule = "must be left out, or be what the tallies were made with"
        got = f"{asked!r}, and the tallies have {made[role]!r}" if role in made else repr(asked)
        step = "give this option to isocost tally when the tallies are made"
        raise UsageError(Problem(f"--{role.replace('_', '-')}", rule, got, step))


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


def may_write(path: Path, force: bool, *endings: str) -> None:
    """Refuse a path whose ending is wrong, or that is taken, unless told otherwise."""
    check_ending(path, *endings)
    if path.exists() and not force:
        step = "choose another path, or pass --force to replace it"
        raise FileError(Problem("output", "must not exist yet", str(path), step))
