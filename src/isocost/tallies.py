"""Tally: the one small table that everything else is computed from."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from isocost.atomic import check_ending, read_text, write_text
from isocost.cells import KEYS, SUMS, Cells, Sums
from isocost.checks import check_kind, check_listed, check_path, check_unit, short
from isocost.errors import Problem, UsageError
from isocost.grid import Grid
from isocost.groups import Group, as_group, group_names, sort_groups, to_json
from isocost.tallyfile import FORMAT, VERSION, parse_text, read_fields
from isocost.text import html_table, text_table

__all__ = ["Tally", "check_tally"]

RELATIVE_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """Counts and sums of scores per group, label and score bin.

    Made by :func:`isocost.tally`; ``a + b`` merges two tallies of different rows.

    Parameters
    ----------
    grid : Grid
        The bins.
    groups : tuple
        The groups, sorted; a cell's ``group`` is an index into it.
    cells : Cells
        One row per group, label and bin that occurs.
    columns : mapping
        The names of the columns it was made from, by role.

    Notes
    -----
    A cell keeps n, sum w, sum w^2, sum w h and sum w h^2.  Rates, costs and mixing
    rates need only these sums, so they are exact whatever the bins.

    Two tallies are equal when groups, bins and counts are the same and the sums agree
    to a relative 1e-9: the order in which an engine adds is not fixed.

    Examples
    --------
    >>> import isocost as ic
    >>> data = {"score": [0.2, 0.7, 0.4, 0.9], "label": [0, 1, 0, 1], "group": list("aabb")}
    >>> t = ic.tally(data)
    >>> t.groups, t.n
    (('a', 'b'), 4.0)
    >>> ic.Tally.from_json(t.to_json()) == t
    True
    """

    grid: Grid
    groups: tuple[Group, ...]
    cells: Cells
    columns: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        grid: Grid,
        groups: Sequence[Any],
        cells: Cells,
        columns: Mapping[str, Any] | None = None,
    ) -> Tally:
        """Make a tally whose groups are sorted and all occur."""
        named = [as_group(group) for group in groups]
        seen = np.unique(cells.group)
        ordered = sort_groups(named[i] for i in seen)
        rank = {group: place for place, group in enumerate(ordered)}
        codes = np.array([rank.get(group, -1) for group in named], dtype=np.intp)
        sorted_cells = Cells.merge([cells.renumbered(codes)])
        return cls(grid, tuple(ordered), sorted_cells, dict(columns or {}))

    # What it holds

    @property
    def bins(self) -> int:
        """The number of equal-width bins."""
        return self.grid.bins

    @property
    def edges(self) -> tuple[float, ...]:
        """Edges beyond the equal-width bins and the tenths."""
        return self.grid.edges

    @property
    def n(self) -> float:
        """How many rows were counted."""
        return float(self.cells.n.sum())

    @property
    def is_weighted(self) -> bool:
        """Whether any row had a weight other than 1."""
        n, w, w2 = self.cells.n, self.cells.w, self.cells.w2
        return not (np.array_equal(n, w) and np.array_equal(n, w2))

    @cached_property
    def totals(self) -> Sums:
        """The sums per group and label."""
        return self.cells.totals(len(self.groups))

    def kinds(self, threshold: float) -> Sums:
        """The sums per group and kind of people (:data:`isocost.cells.KINDS`) at an edge."""
        first = self.grid.first_bin(check_unit("threshold", threshold))
        return self.cells.kinds(len(self.groups), first)

    def index_of(self, group: Group) -> int:
        """The place of a group in ``groups``."""
        place = self._place.get(group) if isinstance(group, Hashable) else None
        if place is not None:
            return place
        shown = ", ".join(map(repr, self.groups[:30]))
        more = f" and {len(self.groups) - 30} more" if len(self.groups) > 30 else ""
        raise UsageError(
            Problem(
                "group",
                "must be one of the groups of the tally",
                f"{short(group)}, and the groups are {shown}{more}",
                "use one of these, with the same type",
            )
        )

    @cached_property
    def _place(self) -> dict[Group, int]:
        return _places(self.groups)

    # New tallies from old ones

    def select(self, groups: Iterable[Group]) -> Tally:
        """Only these groups."""
        chosen = np.array([self.index_of(group) for group in _listed(groups)], dtype=np.intp)
        if not len(chosen):
            step = "leave at least one group"
            raise UsageError(Problem("groups", "at least one must remain", "0", step))
        kept = self.cells.take(np.isin(self.cells.group, chosen))
        return Tally.build(self.grid, self.groups, kept, self.columns)

    def drop(self, groups: Iterable[Group]) -> Tally:
        """All but these groups."""
        dropped = {self.index_of(group) for group in _listed(groups)}
        return self.select(g for i, g in enumerate(self.groups) if i not in dropped)

    def relabel(self, names: Mapping[Group, Group]) -> Tally:
        """Rename groups; groups that get the same name become one."""
        check_kind(
            "names", names, Mapping, "must be {old group: new group}", 'use {"b": "c"}, for example'
        )
        for group in names:
            self.index_of(group)
        renamed = [as_group(names.get(group, group)) for group in self.groups]
        place = _places(renamed)
        codes = np.array([place[group] for group in renamed], dtype=np.intp)
        merged = Cells.merge([self.cells.renumbered(codes)])
        return Tally.build(self.grid, list(place), merged, self.columns)

    def __add__(self, other: object) -> Tally:
        if isinstance(other, int) and other == 0:
            return self
        if not isinstance(other, Tally):
            return NotImplemented
        self._check_same_grid(other)
        sort_groups({(type(g) is bool, g): g for g in (*self.groups, *other.groups)}.values())
        place = _places([*self.groups, *other.groups])
        codes = np.array([place[group] for group in other.groups], dtype=np.intp)
        cells = Cells.merge([self.cells, other.cells.renumbered(codes)])
        return Tally.build(self.grid, list(place), cells, self.columns)

    __radd__ = __add__

    def _check_same_grid(self, other: Tally) -> None:
        if self.grid != other.grid:
            raise UsageError(
                Problem(
                    "tally + tally",
                    "both must have the same bins and edges",
                    f"bins={self.bins}, edges={self.edges} and "
                    f"bins={other.bins}, edges={other.edges}",
                    "make both tallies with the same bins= and edges=",
                )
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        same_places = (
            self.grid == other.grid
            and self.groups == other.groups
            and len(self.cells) == len(other.cells)
            and all(
                np.array_equal(getattr(self.cells, name), getattr(other.cells, name))
                for name in KEYS
            )
        )
        return same_places and all(
            np.allclose(
                getattr(self.cells, name),
                getattr(other.cells, name),
                rtol=RELATIVE_TOLERANCE,
                atol=0.0,
            )
            for name in SUMS
        )

    __hash__ = None  # type: ignore[assignment]

    # JSON

    def to_dict(self) -> dict[str, Any]:
        """A dictionary of plain values; the weight columns are left out when all are 1."""
        names = SUMS if self.is_weighted else ("n", "wh", "wh2")
        keys = {name: getattr(self.cells, name).tolist() for name in KEYS}
        sums = {name: _plain_numbers(getattr(self.cells, name)) for name in names}
        return {
            "format": FORMAT,
            "version": VERSION,
            "bins": self.bins,
            "edges": list(self.edges),
            "columns": dict(self.columns),
            "groups": [to_json(group) for group in self.groups],
            "cells": {**keys, **sums},
        }

    def to_json(self) -> str:
        """The tally as JSON text; :meth:`from_json` reads it back."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path, *, force: bool = True) -> None:
        """Write the JSON to a .json file, whole or not at all; unless ``force``, replace none."""
        check_path(path)
        check_ending(path, ".json")
        write_text(path, self.to_json() + "\n", force=force)

    @classmethod
    def from_dict(cls, content: Any) -> Tally:
        """The reverse of :meth:`to_dict`; everything is checked."""
        return cls.build(**read_fields(content))

    @classmethod
    def from_json(cls, text: str) -> Tally:
        """The reverse of :meth:`to_json`."""
        return cls.from_dict(parse_text(text))

    @classmethod
    def load(cls, path: str | Path) -> Tally:
        """Read a tally that :meth:`save` wrote."""
        check_path(path)
        return cls.from_json(read_text(path))

    # For people

    def _table(self) -> tuple[list[str], list[list[str]]]:
        totals = self.totals
        rows = []
        for i, name in enumerate(group_names(self.groups)):
            w, wh = totals.w[i], totals.wh[i]
            counts = [_shown(totals.n[i].sum()), _shown(totals.n[i, 1])]
            rates = [f"{w[1] / w.sum():.4f}", f"{wh.sum() / w.sum():.4f}"]
            rows.append([name, *counts, *rates])
        return ["group", "n", "positives", "base rate", "mean score"], rows

    def _headline(self) -> str:
        weighted = ", weighted" if self.is_weighted else ""
        edges = f", edges {', '.join(map(str, self.edges))}" if self.edges else ""
        groups = f"{len(self.groups)} group{'s' if len(self.groups) != 1 else ''}"
        return f"Tally of {self.n:,.15g} rows in {groups}{weighted}; {self.bins} bins{edges}"

    def __repr__(self) -> str:
        return f"{self._headline()}\n{text_table(*self._table())}"

    def _repr_html_(self) -> str:
        return html_table(*self._table(), caption=self._headline())


def _shown(count: float) -> str:
    return f"{count:,.0f}" if count >= 1e6 else f"{count:,.6g}"


def _places(groups: Iterable[Group]) -> dict[Group, int]:
    """Number the different groups in the order they come."""
    return {group: place for place, group in enumerate(dict.fromkeys(groups))}


def _plain_numbers(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[float | int]:
    return [int(v) if v.is_integer() and abs(v) < 2**53 else v for v in values.tolist()]


def _listed(groups: Any) -> list[Any]:
    step = "use a list, also for one group"
    return check_listed("groups", groups, "must be a list of groups of the tally", step)


def check_tally(tally: Any, name: str = "tally") -> None:
    """Raise unless the value is a tally."""
    rule = "must be a tally made by isocost.tally, or read with isocost.Tally.load"
    step = "make one: isocost.tally(data, score=..., label=..., group=...)"
    check_kind(name, tally, Tally, rule, step)
