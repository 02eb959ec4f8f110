"""What the page holds: the tally as plain values, and where it came from.

The page computes from these sums what Python computes from the tally, so they are written with all
their digits.  Where small cells are to be hidden, or there are too many, neighbouring bins of a
group are merged, both labels together, into runs.  The sums per group and label stay exactly as
they were, and so do base rates, generalized rates, costs and mixing rates.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import glob
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from isocost import __version__
from isocost.cells import KEYS, OF_WEIGHTS, SUMS, Cells, add_up
from isocost.checks import check_whole
from isocost.errors import DataError, Problem
from isocost.grid import TENTHS, Grid
from isocost.groups import Group, Scalar, as_group, group_names
from isocost.measures.table import MEASURES, Measure
from isocost.question import DEFAULT
from isocost.readings import Reading, command_line
from isocost.repairs.base import summary_of
from isocost.rules import Rule
from isocost.tallies import Tally
from isocost.typing import Floats, Ints

FORMAT = "isocost-page"

VERSION = 1

MOST_CELLS = 5000
"""With more cells than this the page would pass 1.6 megabytes, and answer slowly."""

WIDTHS = (1024, 512, 256, 128, 64, 32)
"""The numbers of equal parts that bins may be merged into, the finest first."""

NEAR_MIRROR = 1e-12
"""How far a cut may be from 1 - threshold and still be it."""

SAFE = 2**53
"""From here on JavaScript does not know one whole number from the next."""

MOST_FILES = 20

Run = tuple[int, int]


@dataclass(frozen=True)
class Origin:
    """Where the data of a page came from, so that it can be cited and its commands name the files.

    ``data`` are the paths that were read, ``files`` the name, size and SHA-256 of each file, and
    ``command`` is the command line that made the page.
    """

    data: tuple[str, ...] = ()
    files: tuple[tuple[str, int, str], ...] = ()
    command: str = ""

    def with_files(self, stored_at: str | Path | None = None) -> Origin:
        """The same with sizes and digests of the files; of very many only the first are listed.

        ``stored_at`` is where the data lie now, if they were uploaded; the file keeps its own name.
        """
        names = self.data if stored_at is None else (str(stored_at),)
        paths = [path for name in names for path in files_of(name)]
        found = []
        for path in paths[:MOST_FILES]:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            found.append((path.name, path.stat().st_size, digest))
        if stored_at is not None and len(found) == 1:
            found = [(self.to_dict()["data"][0], *found[0][1:])]
        return replace(self, files=tuple(found))

    def with_command(self, words: Sequence[str], *paths: str | Path) -> Origin:
        """The same with a command line, in which these paths are named without their folders.

        Examples
        --------
        >>> words = ["isocost", "report", "/home/ann/s.csv"]
        >>> Origin(("/home/ann/s.csv",)).with_command(words).command
        'isocost report s.csv'
        """
        private = {str(path) for path in (*self.data, *paths)}

        def public(word: str) -> str:
            option, equals, value = word.partition("=")
            if equals and value in private:
                return f"{option}={Path(value).name}"
            return Path(word).name if word in private else word

        return replace(self, command=command_line(map(public, words)))

    def to_dict(self) -> dict[str, Any]:
        """For JSON: files by their last name only, because folders are private.

        Examples
        --------
        >>> Origin(("/home/ann/scores.csv", "-")).to_dict()["data"]
        ['scores.csv', 'data.csv']
        """
        # Standard input and the present folder have no name of their own.
        names = [Path(name).name for name in self.data]
        return {
            "data": [name if name not in ("", "-", "..") else "data.csv" for name in names],
            "files": [list(one) for one in self.files],
            "command": self.command,
        }


def page_file(*path: str) -> str:
    """A file of the page as text."""
    return files("isocost.page").joinpath("web", *path).read_text(encoding="utf-8")


def files_of(name: str) -> list[Path]:
    """The files that a path stands for: itself, those of a glob, or those in a folder."""
    path = Path(name)
    if path.is_file():
        return [path]
    pattern = str(path / "**" / "*") if path.is_dir() else name
    # The pattern may be absolute.
    paths = map(Path, sorted(glob(pattern, recursive=True)))  # noqa: PTH207
    return [each for each in paths if each.is_file()]


def payload(
    tally: Tally,
    min_count: int = 0,
    threshold: float = DEFAULT.threshold,
    measures: Mapping[str, Measure] = MEASURES,
    groups: Collection[Group] | None = None,
) -> dict[str, Any]:
    """A tally as the plain values that the page embeds.

    Parameters
    ----------
    tally : Tally
        What the page is about.
    min_count : int
        No cell (group, label, range of scores) of the page holds fewer rows, unless it is
        empty.  Groups that have fewer rows of a label in all are left out.
    threshold : float
        Edge of the tally at which something is decided.  Bins are merged across it only where
        a side has too few rows; the page then does not show the group's rates there.
    measures : {name: Measure}
        The table of measures that the page evaluates.
    groups : collection of groups, optional
        Those that are compared; the others are left out too.

    Returns
    -------
    dict
        For JSON.  Columns of ``cells`` run side by side.  ``first`` and ``end`` are there only if
        bins were merged, because of ``min_count`` or because there are more cells than a page
        can hold: a cell's rows lie in the bins from first up to, not including, end.
        ``left_out`` names the groups that are too small to be shown.  ``roster`` lists all groups
        as a rule does: by their place among those shown, or what a rule says of the others;
        ``rule_notes`` are for every rule.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> page = payload(compas(), min_count=40)
    >>> min(page["cells"]["n"]), page["left_out"], page["merged"]
    (55, [], True)
    """
    step = "use 0 to show every cell, or the fewest rows that may be shown, such as 10"
    least = check_whole("min_count", min_count, 0, step=step)
    enough = (tally.totals.n >= least).all(axis=1)
    kept = [i for i in np.flatnonzero(enough).tolist() if not groups or tally.groups[i] in groups]
    if not kept:
        rule = "must leave at least one group to show"
        got = f"{least}, and no group has as many rows of each label"
        step = "use a smaller number, or pool groups with tally.relabel"
        raise DataError(Problem("min_count", rule, got, step))
    shown = tally.select(tally.groups[i] for i in kept)
    cells = merged(shown, least, threshold) or shown.to_dict()["cells"]
    names = group_names(tally.groups)
    roster: list[Any] = []
    for i, known in enumerate(summary_of(tally)["groups"]):
        # Counts of groups that are hidden for being small are not told.
        other = {**({} if least else known), "group": safe_group(tally.groups[i])}
        roster.append(kept.index(i) if i in kept else other)
    return {
        **shown.to_dict(),
        "format": FORMAT,
        "version": VERSION,
        "isocost": __version__,
        "reading": tally.reading.to_dict(),
        "groups": [safe_group(group) for group in shown.groups],
        "names": [names[i] for i in kept],
        "cells": cells,
        "measures": {
            name: {
                "over": list(row.over),
                "adds": {kind: list(given) for kind, given in row.adds.items()},
                "uses_threshold": row.uses_threshold,
            }
            for name, row in measures.items()
            if row.is_plain
        },
        "min_count": least,
        "merged": len(cells["n"]) < len(shown.cells),
        "left_out": [name for i, name in enumerate(names) if i not in kept],
        "roster": roster,
        "rule_notes": [],
    }


def safe_group(group: Group) -> Any:
    """A group as JSON that JavaScript reads and writes without a change."""
    return [_safe(part) for part in group] if isinstance(group, tuple) else _safe(group)


def _safe(part: Scalar) -> Any:
    """A number that JavaScript would write in another way, such as 1.0, as its own text."""
    if isinstance(part, bool | str):
        return part
    whole = isinstance(part, float) and part.is_integer()
    return {"exact": json.dumps(part)} if whole or abs(part) >= SAFE else part


def held_tally(held: Mapping[str, Any], groups: Sequence[Any]) -> Tally:
    """The tally that a page holds; everything on the page is computed from it.

    ``groups`` are those of the page as plain JSON; ``held`` spells them as JavaScript can.
    """
    columns = held["cells"]
    # Without weights only rows are held.
    weights = dict.fromkeys(OF_WEIGHTS, columns["n"])
    kept = {name: columns[name] for name in (*KEYS, *SUMS) if name in columns}
    grid, reading = Grid(held["bins"], tuple(held["edges"])), Reading.from_dict(held["reading"])
    return Tally.build(grid, list(map(as_group, groups)), Cells(**{**weights, **kept}), reading)


# Merging bins


def merged(shown: Tally, least: int, threshold: float) -> dict[str, Any] | None:
    """The columns of the cells with bins merged, or None if all may stay as they are.

    ``first`` and ``end`` say which bins a cell holds: from first up to, not including, end.
    """
    walls = _walls(shown, threshold)
    blocks = _blocks(shown, walls[0])
    if least <= 1 and blocks is None:
        return None
    cells, size, cuts = shown.cells, shown.grid.size, shown.grid.cuts
    first, end = np.empty_like(cells.bin), np.empty_like(cells.bin)
    for group in range(len(shown.groups)):
        mine = cells.of_group(group)
        counts = np.zeros((size, 2))
        counts[cells.bin[mine], cells.label[mine]] = cells.n[mine]
        starts, ends = np.array(_runs(counts, least, walls, blocks)).T
        place = np.searchsorted(starts, cells.bin[mine], side="right") - 1
        first[mine], end[mine] = starts[place], ends[place]
    # A run lies where the mean of both its labels is: it stays together.
    _, run = np.unique(cells.group * size + first, return_inverse=True)
    mean = (add_up(run, cells.wh, 0) / add_up(run, cells.w, 0))[run]
    bin_ = shown.grid.index(np.clip(mean, cuts[first], np.nextafter(cuts[end], 0.0)))
    key = (cells.group * 2 + cells.label) * size + first
    _, example, merged_cell = np.unique(key, return_index=True, return_inverse=True)
    keys = {"group": cells.group, "label": cells.label, "bin": bin_, "first": first, "end": end}
    names = SUMS if shown.is_weighted else ("n", "wh", "wh2")
    sums = {name: add_up(merged_cell, getattr(cells, name), 0).tolist() for name in names}
    # Thirteen digits are enough for so many cells; all of them would fill the page.
    digits = 17 if blocks is None else 13
    short = {name: [float(f"{v:.{digits}g}") for v in values] for name, values in sums.items()}
    plain = {name: [int(v) if v.is_integer() else v for v in short[name]] for name in short}
    return {**{name: values[example].tolist() for name, values in keys.items()}, **plain}


def _blocks(shown: Tally, walls: Sequence[int]) -> Ints | None:
    """Where bins are cut anew if there are too many cells; None if there are not."""
    if len(shown.cells) <= MOST_CELLS:
        return None
    cuts, cells = shown.grid.cuts, shown.cells
    edges = [shown.grid.first_bin(edge) for edge in shown.edges]
    blocks = np.arange(len(cuts))
    for width in WIDTHS:
        even = np.flatnonzero(cuts * width == np.floor(cuts * width))
        blocks = np.unique(np.concatenate([even, walls, edges]).astype(np.intp))
        block = np.searchsorted(blocks, cells.bin, side="right")
        if len(np.unique((cells.group * 2 + cells.label) * len(cuts) + block)) <= MOST_CELLS:
            break
    return blocks


def _walls(tally: Tally, threshold: float) -> list[list[int]]:
    """The bins that merging should not cross: first the tenths too, then only the threshold."""
    cuts, last = tally.grid.cuts, tally.grid.size
    decided = {tally.grid.first_bin(threshold)}
    # Scores may be flipped; 1 - 0.7 is not the double 0.3, so the nearest cut is taken.
    nearest = int(np.abs(cuts - (1.0 - threshold)).argmin())
    if abs(cuts[nearest] - (1.0 - threshold)) < NEAR_MIRROR:
        decided.add(nearest)
    tenths = {tally.grid.first_bin(tenth) for tenth in TENTHS}
    return [sorted({0, last, *inner}) for inner in (decided | tenths, decided, set())]


def _runs(
    counts: Floats, least: int, walls: Sequence[Sequence[int]], blocks: Ints | None
) -> list[Run]:
    """Ranges of bins such that each label has enough rows in each, or none.

    Ranges grow between the walls of the first kind; those that are still too small then
    may cross them, up to the next kind of walls.
    """
    ends = range(len(counts) + 1) if blocks is None else blocks.tolist()
    runs = [(low, high) for low, high in pairwise(ends) if counts[low:high].any()]
    for kind in walls:
        grown = []
        for low, high in pairwise(kind):
            section = [run for run in runs if low <= run[0] and run[1] <= high]
            grown += list(_grown(section, counts, least))
        runs = grown
    return runs


def _grown(section: Sequence[Run], counts: Floats, least: int) -> Iterator[Run]:
    """Neighbouring ranges merged from the left, until each has enough rows."""

    def is_enough(first: int, end: int) -> bool:
        rows = counts[first:end].sum(axis=0)
        return bool(((rows >= least) | (rows == 0)).all())

    done: list[Run] = []
    start: int | None = None
    for first, end in section:
        start = first if start is None else start
        if is_enough(start, end):
            done.append((start, end))
            start = None
    if start is not None:
        # What is left over at the end joins ranges before it, until it is enough.
        end = section[-1][1]
        while done and not is_enough(start, end):
            start = done.pop()[0]
        done.append((start, end))
    yield from done


def undecided(held: dict[str, Any], grid: Grid, threshold: float) -> list[int]:
    """The groups some of whose merged bins lie across a threshold: their rates are not shown."""
    columns = held["cells"]
    if "first" not in columns:
        return []
    cut = grid.first_bin(threshold)
    group, first, end = (np.asarray(columns[name]) for name in ("group", "first", "end"))
    return list(map(int, np.unique(group[(first < cut) & (cut < end)])))


def snapped(rule: Rule, tally: Tally, held: dict[str, Any]) -> Rule:
    """A rule made from the page's tally, whose intervals end where runs do."""
    cuts, columns = tally.grid.cuts, held["cells"]
    runs: dict[Group, set[tuple[int, int, int]]] = {group: set() for group in tally.groups}
    names = ("group", "first", "end", "bin")
    if "first" in columns:
        for place, *run in zip(*(columns[name] for name in names), strict=True):
            runs[tally.groups[place]].add(tuple(run))

    def moved(end: float, group: Any) -> float:
        cut = int(np.searchsorted(cuts, end))
        for first, last, bin_ in runs[group]:
            if first < cut < last:
                return float(cuts[first if cut <= bin_ else last])
        return end

    rows = (
        replace(row, lo=moved(row.lo, row.group), hi=moved(row.hi, row.group)) for row in rule.rows
    )
    return replace(rule, rows=tuple(rows))
