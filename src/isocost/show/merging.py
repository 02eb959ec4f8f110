"""Bins put together for the page: so that no cell has few people, and so that the page is small.

Neighbouring bins of a group are merged, both labels together, into runs.  The sums per group and
label stay exactly as they were, and so do base rates, generalized rates, costs and mixing rates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.cells import SUMS, Cells, add_up
from isocost.grid import TENTHS, Grid
from isocost.rules import Rule
from isocost.tallies import Tally

__all__ = ["MOST_CELLS", "merged", "page_tally", "runs_of", "snapped", "undecided"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Run = tuple[int, int]

MOST_CELLS = 8000
"""With more cells than this the page would pass two megabytes, and answer slowly."""

WIDTHS = (1024, 512, 256, 128, 64, 32)
"""Into how many parts of equal width bins may be put together, the finest first."""

NEAR_MIRROR = 1e-12
"""How far a cut may be from 1 - threshold and still be it."""


def merged(shown: Tally, least: int, thresholds: Iterable[float]) -> dict[str, Any] | None:
    """The columns of the cells with bins put together, or None if all may stay as they are.

    ``first`` and ``end`` say which bins a cell holds: from first up to, not including, end.
    """
    walls = _walls(shown, thresholds)
    blocks = _blocks(shown, walls[0])
    if least <= 1 and blocks is None:
        return None
    cells, size, cuts = shown.cells, shown.grid.size, shown.grid.cuts
    first, end = _run_of_each(shown, least, walls, blocks)
    # A run lies where the mean of both its labels is: it stays together.
    _, run = np.unique(cells.group * size + first, return_inverse=True)
    mean = (add_up(run, cells.wh, 0) / add_up(run, cells.w, 0))[run]
    bin_ = shown.grid.index(np.clip(mean, cuts[first], np.nextafter(cuts[end], 0.0)))
    key = (cells.group * 2 + cells.label) * size + first
    _, some, place = np.unique(key, return_index=True, return_inverse=True)
    keys = {"group": cells.group, "label": cells.label, "bin": bin_, "first": first, "end": end}
    names = SUMS if shown.is_weighted else ("n", "wh", "wh2")
    sums = {name: add_up(place, getattr(cells, name), 0).tolist() for name in names}
    plain = {name: [int(v) if v.is_integer() else v for v in sums[name]] for name in sums}
    return {**{name: values[some].tolist() for name, values in keys.items()}, **plain}


def page_tally(shown: Tally, held: dict[str, Any]) -> Tally:
    """The tally that the page has: what is computed from it tells nothing that the page hides."""
    columns = held["cells"]
    if "first" not in columns:
        return shown
    counts = columns["n"]
    cells = Cells(**{"w": counts, "w2": counts, **{k: columns[k] for k in _KEPT if k in columns}})
    return replace(shown, cells=cells)


_KEPT = ("group", "label", "bin", *SUMS)


def runs_of(held: dict[str, Any], group: int) -> list[tuple[int, int, int]]:
    """First bin, end and place of each run of a group, from low to high; none if unmerged."""
    columns = held["cells"]
    if "first" not in columns:
        return []
    rows = zip(columns["group"], columns["first"], columns["end"], columns["bin"], strict=True)
    return sorted({(first, end, place) for g, first, end, place in rows if g == group})


def undecided(held: dict[str, Any], grid: Grid, threshold: float) -> list[int]:
    """The groups some of whose merged bins lie across a threshold: their rates are not shown."""
    cut = grid.first_bin(threshold)
    groups = range(len(held["groups"]))
    return [g for g in groups if any(a < cut < b for a, b, _ in runs_of(held, g))]


def snapped(rule: Rule, tally: Tally, held: dict[str, Any]) -> Rule:
    """A rule made from the page's tally, whose intervals end where runs do."""
    cuts = tally.grid.cuts
    runs = {group: runs_of(held, place) for place, group in enumerate(tally.groups)}

    def moved(end: float, group: Any) -> float:
        cut = int(np.searchsorted(cuts, end))
        for first, last, place in runs[group]:
            if first < cut < last:
                return float(cuts[first if cut <= place else last])
        return end

    rows = (
        replace(row, lo=moved(row.lo, row.group), hi=moved(row.hi, row.group)) for row in rule.rows
    )
    return replace(rule, rows=tuple(rows))


def _blocks(shown: Tally, walls: Sequence[int]) -> Ints | None:
    """Where bins are cut anew if there are too many cells; None if there are not."""
    if len(shown.cells) <= MOST_CELLS:
        return None
    cuts, cells = shown.grid.cuts, shown.cells
    edges = [shown.grid.first_bin(edge) for edge in shown.edges]
    blocks = np.arange(len(cuts))
    for parts in WIDTHS:
        even = np.flatnonzero(cuts * parts == np.floor(cuts * parts))
        blocks = np.unique(np.concatenate([even, walls, edges]).astype(np.intp))
        block = np.searchsorted(blocks, cells.bin, side="right")
        if len(np.unique((cells.group * 2 + cells.label) * len(cuts) + block)) <= MOST_CELLS:
            break
    return blocks


def _walls(tally: Tally, thresholds: Iterable[float]) -> list[list[int]]:
    """The bins that merging should not cross: first the tenths too, then only the thresholds."""
    last = tally.grid.size
    listed = list(thresholds)
    decided = {tally.grid.first_bin(threshold) for threshold in listed}
    # Scores may be turned round; 1 - 0.7 is not the double 0.3, so the nearest cut is asked.
    for mirror in (1.0 - threshold for threshold in listed):
        nearest = int(np.abs(tally.grid.cuts - mirror).argmin())
        if abs(tally.grid.cuts[nearest] - mirror) < NEAR_MIRROR:
            decided.add(nearest)
    tenths = {tally.grid.first_bin(tenth) for tenth in TENTHS}
    return [sorted({0, last, *inner}) for inner in (decided | tenths, decided, set())]


def _run_of_each(
    shown: Tally, least: int, walls: Sequence[Sequence[int]], blocks: Ints | None
) -> tuple[Ints, Ints]:
    """Where the run of each cell begins and ends."""
    cells = shown.cells
    first, end = np.empty_like(cells.bin), np.empty_like(cells.bin)
    for group in range(len(shown.groups)):
        mine = cells.of_group(group)
        counts = np.zeros((shown.grid.size, 2))
        counts[cells.bin[mine], cells.label[mine]] = cells.n[mine]
        starts, ends = np.array(_runs(counts, least, walls, blocks)).T
        run = np.searchsorted(starts, cells.bin[mine], side="right") - 1
        first[mine], end[mine] = starts[run], ends[run]
    return first, end


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
    """Neighbouring ranges put together from the left, until each has enough rows."""

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
