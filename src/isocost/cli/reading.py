"""The data of commands: files, standard input and tallies, combined into one tally."""

from __future__ import annotations

import glob
import json as json_text
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isocost.atomic import read_text, status_of
from isocost.cli.options import Columns, Measuring
from isocost.cli.output import complain, progress
from isocost.errors import DataError, FileError, Problem, UsageError, listing
from isocost.grid import Grid, scale_named
from isocost.groups import Group, names_of
from isocost.question import Question
from isocost.readings import ROLES, Reading, merging
from isocost.rules import FORMAT as RULE
from isocost.rules import Rule
from isocost.tallies import FORMAT, Tally

if TYPE_CHECKING:
    from isocost.engines.files import Part
    from isocost.engines.kinds import FileReading


def is_tally_path(name: str) -> bool:
    """True if a name ends in .json, as tallies do; data in JSON end in .jsonl or .ndjson."""
    return name.lower().endswith(".json")


def expanded_paths(names: Iterable[str]) -> list[str]:
    """The files and folders that names and globs stand for; of a glob, day-2 before day-10."""

    def by_numbers(path: str) -> list[int | str]:
        # Every second part is a number.
        return [int(p) if i % 2 else p for i, p in enumerate(re.split(r"([0-9]+)", path))]

    paths = []
    for name in names:
        if not glob.has_magic(name) or "://" in name or status_of(name) is not None:
            paths.append(name)
            continue
        matched = glob.glob(name, recursive=True)  # noqa: PTH207 - the glob may be absolute
        # With ** a file is matched by itself and in each folder above it.
        above = {parent for path in matched for parent in Path(path).parents}
        found = [path for path in matched if Path(path) not in above]
        if not found:
            from isocost.engines.kinds import nothing_at

            raise nothing_at(name)
        paths += sorted(found, key=by_numbers)
    check_once(paths)
    return paths


def check_once(names: Sequence[str]) -> None:
    """Raise if a file is named twice: its people would count twice, and intervals be too narrow."""
    paths = [Path(name).resolve() for name in names]
    twice = [name for i, name in enumerate(names) if paths[i] in paths[:i]]
    if twice:
        step = "name each file once; a glob may already match it"
        raise UsageError(Problem("files", "must each be given once", f"{twice[0]} again", step))


def format_of(text: str) -> Any:
    """The format that a JSON file declares; None if it declares none."""
    try:
        content = json_text.loads(text)
    except (ValueError, RecursionError):
        return None
    return content.get("format") if isinstance(content, dict) else None


def load_tally(name: str) -> Tally:
    """A tally from a file; an error names the file and says what it is instead."""
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


def check_alike(tallies: Sequence[tuple[str, Tally]], but_for: str | None = None) -> None:
    """Raise if tallies cannot be added, naming the files; ``but_for`` is a role that may differ."""
    # A tally made from arrays has no columns.
    made = [
        {"bins": one.bins, "edges": one.edges, "scale": one.reading.scale, **one.columns}
        for _, one in tallies
    ]
    for (name, _), theirs in zip(tallies, made, strict=True):
        for role, ours in made[0].items():
            if role in theirs and role != but_for and ours != theirs[role]:
                where, rule = (
                    f"{tallies[0][0]} and {name}",
                    f"must have the same {role} to be added",
                )
                step = (
                    "make both from the same columns with the same bins and edges; in Python, "
                    "a + b adds tallies whose columns only have different names"
                )
                raise UsageError(Problem(where, rule, f"{ours!r} and {theirs[role]!r}", step))


def read(
    data: str | Sequence[str], columns: Columns, edges: tuple[float, ...], part: Part | None = None
) -> Tally:
    """The tally of all data and tallies, with merged groups and without the dropped ones."""
    return read_merged(data, columns, edges, part)[0]


def read_merged(
    data: str | Sequence[str], columns: Columns, edges: tuple[float, ...], part: Part | None = None
) -> tuple[Tally, dict[Group, Group]]:
    """The tally of :func:`read`, and the name in it of each merged group of the data.

    Data are counted in the bins of the tallies they are added to.  ``part`` counts some rows only.
    """
    named = [data] if isinstance(data, str) else list(data)
    check_once(named)
    without_rows = [name for name in named if is_tally_path(name) or name == "-"]
    if part is not None and without_rows:
        step = "pass files of data, or keep people apart beforehand and pass --holdout"
        raise UsageError(Problem("--split", "needs files with rows", without_rows[0], step))
    tallies = expanded_paths(filter(is_tally_path, named))
    loaded = [(name, load_tally(name)) for name in tallies]
    check_alike(loaded)
    if loaded:
        _check_options(columns, loaded[0][1], only=len(loaded) == len(named))
    # Checked even if there are only tallies.
    reading = columns.reading
    grid = loaded[0][1].grid if loaded else Grid(columns.bins, edges)
    files = [name for name in named if not is_tally_path(name)]
    counted = [_count(name, columns, reading, grid, part) for name in files]
    told = {text: None for tally in counted for text in _told(tally, columns)}
    if told:
        complain("\n".join(told), 0)
    whole = reduce(add, [tally for _, tally in loaded] + counted)
    kept = [role for role in ("label", "group") if whole.reading.missing.keeps(role)]
    if all(columns.missing.drops(role) for role in kept):
        whole = whole.known
    names = _merging(whole, columns.merge_groups or [])
    tally = _without(whole.relabel(names), columns.drop_group or [])
    return tally, {group: name for group, name in names.items() if name in tally.groups}


def read_periods(
    names: Sequence[str],
    columns: Columns,
    asked: Mapping[str, Any],
    rule: Rule,
    edges: tuple[float, ...],
) -> tuple[dict[str, Tally], list[str]]:
    """A tally per file or folder, by their names, with folders if two have the same name.

    Columns of files with data that were not ``asked`` for are as the rule was deployed; the list
    has notes on that.
    """
    from isocost.engines.frames import column_names
    from isocost.judging.watch import deployed_columns

    paths = expanded_paths(names)
    loaded = {path: load_tally(path) for path in paths if is_tally_path(path)}
    # Repaired scores may be in a column of their own, or in the place of the others.
    check_alike(list(loaded.items()), but_for="score")
    if loaded:
        first = next(iter(loaded.values()))
        _check_options(columns, first, only=len(loaded) == len(paths))
        columns, edges = replace(columns, bins=first.bins), first.edges
    notes = dict[str, None]()
    for path in paths:
        if path not in loaded:
            with local(path) as file:
                found = column_names(file, encoding=columns.encoding, sheet=columns.sheet)
                used, noted = deployed_columns(rule, found, asked)
                notes |= dict.fromkeys(noted)
                loaded[path] = read(file, replace(columns, **used), edges)
    stems = [Path(path).stem for path in paths]
    plain = len(set(stems)) == len(stems)
    periods = zip(stems if plain else paths, paths, strict=True)
    return {name: loaded[path] for name, path in periods}, list(notes)


def question_about(measuring: Measuring, tally: Tally) -> Question:
    """The question of an audit, with the reference as a group of the tally."""
    from isocost.measures.table import chosen_measures

    chosen_measures(measuring.measures, "--measures")
    reference = None
    if measuring.reference is not None:
        groups = {name: group for group, name in names_of(tally.groups).items()}
        if measuring.reference not in groups:
            raise _no_such_group("--reference", measuring.reference, groups)
        reference = groups[measuring.reference]
    return measuring.question(measures=measuring.measures, reference=reference)


def _count(
    data: str, columns: Columns, reading: FileReading, grid: Grid, part: Part | None
) -> Tally:
    from isocost.engines.files import tally_files
    from isocost.engines.look import completed

    names = {role: getattr(columns, role) for role in ROLES}
    if columns.id is None:
        del names["id"]
    guesses: list[str] = []
    try:
        with local(data) as path, progress("counting") as report:
            return tally_files(
                path,
                names,
                grid=grid,
                positive=columns.positive,
                missing=columns.missing,
                progress=report,
                part=part,
                scale=scale_named(columns.scale),
                reading=reading,
                guess=partial(completed, tell=guesses.append),
                handed_over=columns.handed_over,
            )
    finally:
        # Also before an error, which may be about a column that was guessed.
        if guesses:
            complain("\n".join(dict.fromkeys(guesses)), 0)


def _told(tally: Tally, columns: Columns) -> list[str]:
    """Notes on how data were read, where that was not asked for."""
    from isocost.verdict.wording import reading_notes

    usual, ways = Reading(), ("scale", "decimal", "encoding", "sheet")
    asked = [name for name in ways if getattr(tally.reading, name) == getattr(columns, name)]
    untold = replace(tally.reading, **{name: getattr(usual, name) for name in asked})
    notes = reading_notes(untold, tally.groups)
    # Who is unknown was asked for, and whether they count depends on the command.
    return [f"note: {one}" for one in notes if one.key != "read_unknown"]


def _merging(tally: Tally, asked: Sequence[str]) -> dict[Group, Group]:
    """The new name of each group that is to be merged, from texts such as "A,B=other"."""
    groups = {name: group for group, name in names_of(tally.groups).items()}
    names: dict[Group, Group] = {}
    # Tallies may have been made of merged groups.
    merged = tally.reading.merged_groups.items()
    done = {merging(new, old) for new, old in merged if not groups.keys() & {*old} - {new}}
    for text in (text for text in asked if text not in done):
        listed, _, new = (part.strip() for part in text.rpartition("="))
        if not listed or not new:
            rule, step = "must be names of groups, = and a new name", 'use "A,B=other", for example'
            raise UsageError(Problem("--merge-groups", rule, repr(text), step))
        for name in _names_in(listed, groups):
            if groups[name] in names:
                rule, step = "must not put a group into two others", "name each group once"
                raise UsageError(Problem("--merge-groups", rule, f"{name!r} again", step))
            # A new name may be that of an existing group, whose value need not be a text.
            names[groups[name]] = groups.get(new, new)
    own = [group for group in tally.groups if group in set(names.values()) - names.keys()]
    return {**names, **{group: group for group in own}}


def _names_in(text: str, known: Collection[str]) -> Iterator[str]:
    """The names in a list with commas, which may be part of names themselves."""
    words = text.split(",")
    while words:
        # The longest name first.
        names = {end: ",".join(words[:end]).strip() for end in range(len(words), 0, -1)}
        end = next((end for end, name in names.items() if name in known), None)
        if end is None:
            raise _no_such_group("--merge-groups", names[1], known)
        yield names[end]
        words = words[end:]


def _no_such_group(option: str, name: str, known: Iterable[str]) -> UsageError:
    got = f"{name!r}, and the groups are {listing(map(repr, known), 20)}"
    step = "write the group as in the table of the audit"
    return UsageError(Problem(option, "must name a group of the data", got, step))


def _without(tally: Tally, dropped: list[str]) -> Tally:
    names = names_of(tally.groups)
    # Tallies may have been made without a group.
    known = {*names.values(), *tally.reading.dropped_groups}
    unknown = [name for name in dropped if name not in known]
    if unknown:
        raise _no_such_group("--drop-group", unknown[0], names.values())
    if set(names.values()) <= set(dropped):
        step = "keep at least two groups"
        raise UsageError(Problem("--drop-group", "must not drop every group", "all of them", step))
    return tally.drop(group for group, name in names.items() if name in dropped)


def _check_options(columns: Columns, tally: Tally, only: bool) -> None:
    """Raise for options about columns that contradict the tallies, and would have no effect."""
    kept = ("missing_label", "missing_group", "drop_missing")
    ways = ("positive", *kept, "decimal", "encoding", "sheet")
    made = {name: getattr(tally.reading, name) for name in ("scale", *ways)}
    made |= {**tally.columns, "bins": tally.bins}
    usual = Columns()
    for role in (*ROLES, "bins", "scale", *ways):
        value = getattr(columns, role)
        if value == getattr(usual, role) or str(value) == str(made.get(role)):
            continue
        if not only and role in ways:
            continue
        if value == "drop" and made.get(role) == "keep":
            continue
        rule = "must be left out, or be what the tallies were made with"
        got = f"{value!r}, and the tallies have {made[role]!r}" if role in made else repr(value)
        step = "pass this option to isocost tally when the tallies are made"
        raise UsageError(Problem(f"--{role.replace('_', '-')}", rule, got, step))


@contextmanager
def local(data: str) -> Iterator[str]:
    """The path of the data; standard input is copied to a temporary file."""
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
            raise FileError(Problem("standard input", "must contain CSV", "nothing", step))
        yield str(path)
