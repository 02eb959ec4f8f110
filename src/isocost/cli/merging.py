"""Tallies that a command is given instead of data: found, read, and fit to be added."""

from __future__ import annotations

import glob
import json as json_text
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isocost.atomic import read_text, status_of
from isocost.errors import DataError, FileError, Problem, UsageError
from isocost.rulefile import FORMAT as RULE
from isocost.tallies import Tally
from isocost.tallyfile import FORMAT

__all__ = ["check_alike", "check_once", "format_of", "is_tally_path", "load_tally", "tally_paths"]

_ROLES = ("score", "label", "group", "weight")


def is_tally_path(name: str) -> bool:
    """Whether a name is one of tallies, by its ending; data in JSON end in .jsonl or .ndjson."""
    return name.lower().endswith(".json")


def tally_paths(names: Sequence[str]) -> list[str]:
    """The files of tallies among what a command was given, globs written out."""
    found = []
    for name in filter(is_tally_path, names):
        if not glob.has_magic(name) or status_of(name) is not None:
            found.append(name)
            continue
        # Sorted, so that day-01 comes before day-02.
        matched = sorted(glob.glob(name))  # noqa: PTH207 - the glob may be absolute
        if not matched:
            step = "check the path, or make tallies with isocost tally DATA -o day1.json"
            raise FileError(Problem("file", "must exist", f"nothing at {name!r}", step))
        found += matched
    check_once(found)
    return found


def check_once(names: Sequence[str]) -> None:
    """Refuse a file that is named twice: its people would count twice, and intervals be narrow."""
    places = [Path(name).resolve() for name in names]
    twice = [name for i, name in enumerate(names) if places[i] in places[:i]]
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
