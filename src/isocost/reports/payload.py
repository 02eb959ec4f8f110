"""Bins put together for the page: so that no cell has few people, and so that the page is small.

Neighbouring bins of a group are merged, both labels together, into runs.  The sums per group and
label stay exactly as they were, and so do base rates, generalized rates, costs and mixing rates.

What the page holds of a tally: aggregates as plain values, and no cell with few people.

The page computes from these sums what Python computes from the tally, so they are written with all
their digits.  Where small cells are to be hidden, or there are too many, bins are merged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from isocost import __version__
from isocost.checks import check_whole
from isocost.costs import CostLike, as_cost
from isocost.errors import DataError, Problem
from isocost.grid import TENTHS, Grid
from isocost.groups import Group, Scalar, group_names
from isocost.measures.table import MEASURES, Measure
from isocost.reports.words import WORDS
from isocost.rules import Rule
from isocost.tallies import SUMS, Cells, Tally, add_up
from isocost.typing import Floats, Ints

__all__ = [
    "MOST_CELLS",
    "Origin",
    "cost_fields",
    "merged",
    "page_tally",
    "payload",
    "rule_fields",
    "runs_of",
    "safe_group",
    "single_text",
    "snapped",
    "undecided",
]

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


FORMAT = "isocost-page"

VERSION = 1

SAFE = 2**53
"""From here on JavaScript does not know one whole number from the next."""


@dataclass(frozen=True)
class Origin:
    """How the data of a page were read, so that its command lines can say it again.

    Attributes
    ----------
    data : tuple of str
        The paths that were read.
    positive, missing_group : str or None
        As the command line takes them.
    drop_group : tuple of str
        Names of the groups that were left out before the page was made.
    merge_groups : tuple of str
        Which groups were counted as one, as the command line takes it.
    """

    data: tuple[str, ...] = ()
    positive: str | None = None
    missing_group: str | None = None
    drop_group: tuple[str, ...] = ()
    merge_groups: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON: files by their last name only, as folders are nobody else's business.

        Examples
        --------
        >>> Origin(("/home/ann/scores.csv", "-"), positive="yes").to_dict()["data"]
        ['scores.csv', 'data.csv']
        """
        # Standard input and the present folder have no name of their own.
        names = [Path(name).name for name in self.data]
        return {
            "data": [name if name not in ("", "-", "..") else "data.csv" for name in names],
            "positive": self.positive,
            "missing_group": self.missing_group,
            "drop_group": list(self.drop_group),
            "merge_groups": list(self.merge_groups),
        }


def payload(
    tally: Tally,
    min_count: int = 0,
    thresholds: Iterable[float] = (0.5,),
    measures: Mapping[str, Measure] = MEASURES,
) -> dict[str, Any]:
    """A tally as the plain values that the page embeds.

    Parameters
    ----------
    tally : Tally
        What the page is about.
    min_count : int
        No cell (group, label, range of scores) of the page holds fewer rows, unless it is
        empty.  Groups that have fewer rows of a label in all are left out.
    thresholds : iterable of float
        Edges of the tally at which something is decided.  Bins are merged across them only where
        a side has too few rows; the page then does not show the group's rates at that threshold.
    measures : {name: Measure}
        The table of measures that the page evaluates.

    Returns
    -------
    dict
        For JSON.  Columns of ``cells`` run side by side.  ``first`` and ``end`` are there only if
        bins were merged, because of ``min_count`` or because there are more cells than a page
        can hold: a cell's rows lie in the bins from first up to, not including, end.
        ``left_out`` names the groups that are too small to be shown.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> page = payload(compas(), min_count=40)
    >>> min(page["cells"]["n"]), page["left_out"], page["merged"]
    (55, [], True)
    """
    least = _check_count(min_count)
    names = group_names(tally.groups)
    kept, left_out = _large_enough(tally, least)
    shown = tally.select(tally.groups[i] for i in kept)
    cells = merged(shown, least, thresholds) or shown.to_dict()["cells"]
    return {
        "format": FORMAT,
        "version": VERSION,
        "isocost": __version__,
        "bins": tally.bins,
        "edges": list(tally.edges),
        "columns": dict(tally.columns),
        "groups": [safe_group(tally.groups[i]) for i in kept],
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
        "left_out": [names[i] for i in left_out],
    }


def single_text(held: Mapping[str, Any]) -> str:
    """How many cells of a page tell of one person alone, and what to do; nothing if none does.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> single_text(payload(compas()))
    ''
    """
    counts = held["cells"]["n"]
    alone = sum(count == 1 for count in counts)
    told = {"count": f"{alone:,}", "all": f"{len(counts):,}"}
    return WORDS["holds_single"].format(**told) if alone else ""


def cost_fields(cost: CostLike) -> dict[str, Any]:
    """A cost as the page's model takes it.

    Examples
    --------
    >>> cost_fields("weighted:1,3")
    {'kind': 'weighted', 'fp': 1.0, 'fn': 3.0}
    >>> cost_fields("fnr")
    {'kind': 'fnr', 'fp': 0.0, 'fn': 1.0}
    """
    found = as_cost(cost)
    named = str(found) if str(found) in ("fpr", "fnr") else None
    kind = named or ("weighted" if found.by_base_rate else "plain")
    return {"kind": kind, "fp": _safe_amount(found.fp), "fn": _safe_amount(found.fn)}


def rule_fields(rule: Rule) -> dict[str, Any]:
    """A rule as the page's model takes it: its JSON, with groups that JavaScript does not change.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = ic.withhold(compas(), "fpr", 0.06)
    >>> rule_fields(rule) == rule.to_dict()
    True
    """
    content = rule.to_dict()
    content["groups"] = [safe_group(group) for group in rule.groups]
    for row, fields in zip(rule.rows, content["rows"], strict=True):
        fields["group"] = safe_group(row.group)
    if rule.cost is not None:
        amounts = {"fp": _safe_amount(rule.cost.fp), "fn": _safe_amount(rule.cost.fn)}
        content["cost"] = {**content["cost"], **amounts}
    return content


def _safe_amount(amount: float | Mapping[Group, float]) -> Any:
    if isinstance(amount, Mapping):
        return [[safe_group(group), number] for group, number in amount.items()]
    return amount


def _check_count(count: object) -> int:
    step = "use 0 to show every cell, or the fewest rows that may be shown, such as 10"
    return check_whole("min_count", count, 0, step=step)


def _large_enough(tally: Tally, least: int) -> tuple[list[int], list[int]]:
    """The places of the groups with enough rows of each label, and of the others."""
    enough = (tally.totals.n >= least).all(axis=1)
    if not enough.any():
        raise DataError(
            Problem(
                "min_count",
                "must leave a group that can be shown",
                f"{least}, and no group has as many rows of each label",
                "use a smaller number, or pool groups with tally.relabel",
            )
        )
    return np.flatnonzero(enough).tolist(), np.flatnonzero(~enough).tolist()


def safe_group(group: Group) -> Any:
    """A group as JSON that JavaScript reads and writes without a change."""
    return [_safe(part) for part in group] if isinstance(group, tuple) else _safe(group)


def _safe(part: Scalar) -> Any:
    """A number that JavaScript would write in another way, such as 1.0, as its own text."""
    if isinstance(part, bool | str):
        return part
    whole = isinstance(part, float) and part.is_integer()
    return {"exact": json.dumps(part)} if whole or abs(part) >= SAFE else part
