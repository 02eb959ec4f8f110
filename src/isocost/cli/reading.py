"""Reading for a command: files, standard input and tallies, to one tally."""

from __future__ import annotations

import glob
import json as json_text
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from isocost.atomic import read_text, status_of
from isocost.cli.options import Columns
from isocost.cli.output import progress
from isocost.engines.files import tally_files
from isocost.engines.source import Settings
from isocost.errors import DataError, FileError, Problem, UsageError
from isocost.grid import Grid
from isocost.groups import names_of
from isocost.rulefile import FORMAT as RULE
from isocost.tallies import FORMAT, Tally

__all__ = [
    "check_alike",
    "check_once",
    "format_of",
    "is_tally_path",
    "load_tally",
    "local",
    "read",
    "tally_paths",
]

_ROLES = ("score", "label", "group", "weight")


def is_tally_path(name: str) -> bool:
    """Whether a name is one of tallies, by its ending; data in JSON end in .jsonl or .ndjson."""
    return name.lower().endswith(".json")


def tally_paths(names: Sequence[str]) -> list[str]:
    """The files of tallies among what a command was given, globs written out."""
    paths = []
    for name in filter(is_tally_path, names):
        if not glob.has_magic(name) or status_of(name) is not None:
            paths.append(name)
            continue
        # Sorted, so that day-01 comes before day-02.
        matched = sorted(glob.glob(name))  # noqa: PTH207 - the glob may be absolute
        if not matched:
            step = "check the path, or make tallies with isocost tally DATA -o day1.json"
            raise FileError(Problem("file", "must exist", f"nothing at {name!r}", step))
        paths += matched
    check_once(paths)
    return paths


def check_once(names: Sequence[str]) -> None:
    """Refuse a file that is named twice: its people would count twice, and intervals be narrow."""
    paths = [Path(name).resolve() for name in names]
    twice = [name for i, name in enumerate(names) if paths[i] in paths[:i]]
    if twice:
        step = "name each file once; a glob may already hold it"
        raise UsageError(Problem("files", "must each be given once", f"{twice[0]} again", step))


def format_of(text: str) -> Any:
    """What a JSON file says it is; None if it says nothing."""
    try:
        content = json_text.loads(text)
    except (ValueError, RecursionError):
        return None
    return content.get("format") if isinstance(content, dict) else None


def load_tally(name: str) -> Tally:
    """A tally from a file; an error says which file, and what it is instead."""
    text = read_text(name)
    kind = format_of(text)
    if kind == FORMAT:
        try:
            return Tally.from_json(text)
        except DataError as error:
            problem = error.problems[0]
            named = Problem(name, problem.rule, problem.got, problem.next_step)
            raise DataError(named) from error
    got = "a rule" if kind == RULE else f"something else, format {kind!r}" if kind else "other JSON"
    step = "make it with isocost tally DATA -o day1.json; data as JSON lines must end in .jsonl"
    raise DataError(Problem(name, "must be a tally, because it ends in .json", got, step))


def check_alike(tallies: Sequence[tuple[str, Tally]]) -> None:
    """Refuse tallies that cannot be added, and name the files."""
    for name, tally in tallies[1:]:
        first_name, first = tallies[0]
        ours, theirs = _made_with(first), _made_with(tally)
        different = [role for role in ours if role in theirs and ours[role] != theirs[role]]
        if different:
            role = different[0]
            raise UsageError(
                Problem(
                    f"{first_name} and {name}",
                    f"must have the same {role} to be added",
                    f"{ours[role]!r} and {theirs[role]!r}",
                    "make both from the same columns with the same bins and edges; in Python, "
                    "a + b adds tallies whose columns only have other names",
                )
            )


def _made_with(tally: Tally) -> dict[str, Any]:
    """What has to agree; a tally made from arrays knows no columns."""
    columns = {role: tally.columns[role] for role in _ROLES if role in tally.columns}
    return {"bins": tally.bins, "edges": tally.edges, **columns}


def read(data: str | Sequence[str], columns: Columns, edges: tuple[float, ...]) -> Tally:
    """The tally of data and tallies together, without the groups to be dropped.

    Data that come with tallies are counted in their bins.
    """
    limits = columns.limits
    named = [data] if isinstance(data, str) else list(data)
    check_once(named)
    loaded = [(name, load_tally(name)) for name in tally_paths(named)]
    check_alike(loaded)
    if loaded:
        _check_options(columns, loaded[0][1], only=len(loaded) == len(named))
    grid = loaded[0][1].grid if loaded else Grid(columns.bins, edges)
    counted = [_count(name, columns, grid, limits) for name in named if not is_tally_path(name)]
    merged = reduce(add, [tally for _, tally in loaded] + counted)
    return _without(merged, columns.drop_group or [])


def _count(data: str, columns: Columns, grid: Grid, limits: Settings) -> Tally:
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
            settings=limits,
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
    usual = Columns()
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
        try:
            with path.open("wb") as file:
                if sys.stdin is not None:
                    shutil.copyfileobj(sys.stdin.buffer, file)
        except OSError as error:
            rule = "must be readable, and fit into the temporary folder"
            step = "free space there, set TMPDIR to another folder, or save the data to a file"
            got = str(error.strerror)
            raise FileError(Problem("standard input", rule, got, step)) from error
        if path.stat().st_size == 0:
            step = "pipe a CSV file with a header into the command"
            raise FileError(Problem("standard input", "must hold CSV", "nothing", step))
        yield str(path)
