"""Tally: the one small table that everything else is computed from.

Its cells have a row per group, label and score bin that occurs.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypedDict

import numpy as np

from isocost.cells import KEYS, OF_WEIGHTS, SUMS, UNWEIGHTED, Cells, Handed, Sums
from isocost.checks import (
    check_kind,
    check_listed,
    check_numbers,
    check_unit,
    parse_json,
    short,
)
from isocost.errors import DataError, Problem, UsageError, listing, setting
from isocost.grid import Grid
from isocost.groups import (
    Group,
    as_group,
    beside_groups,
    group_names,
    names_of,
    sort_groups,
    to_json,
)
from isocost.readings import Reading
from isocost.result import Saved
from isocost.tables import frame_of, html_table, text_table

FORMAT, VERSION = "isocost-tally", 1

MOST_ROWS = 2.0**53
"""Beyond this a count is not exact."""

WEIGHTS = (1e-75, 1e90)
"""The least and greatest total weight of a cell; fourth powers of its rows' weights are finite."""

ROUNDING = 1e-9
"""The relative error of sums, which depend on the order of adding."""


def read_fields(content: Any, *, repeated: bool = False) -> dict[str, Any]:
    """The arguments of ``Tally.build`` from plain values, all of them checked.

    With ``repeated``, a cell may occur several times, to be added up.
    """
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _corrupt("something else")
    if content.get("version") != VERSION or isinstance(content["version"], bool):
        raise _corrupt(f"version {short(content.get('version'))}")
    fields = {"format", "version", "bins", "edges", "reading", "groups", "cells"}
    _check_names(content.keys() - {"handed_over"}, fields, "field")
    edges, groups = content["edges"], content["groups"]
    if not isinstance(edges, list) or not isinstance(groups, list):
        raise _corrupt("edges or groups that are not a list")
    try:
        grid, named = Grid(content["bins"], tuple(edges)), [as_group(group) for group in groups]
        sort_groups(named)
    except (DataError, UsageError) as error:
        problem = error.problems[0]
        raise _corrupt(f"{problem.got}, but {problem.name} {problem.rule}") from error
    cells = _read_cells(content["cells"], {"group": len(named), "label": 2, "bin": grid.size})
    if not repeated:
        keys = np.sort(cells.key(grid.size))
        if len(again := keys[1:][keys[1:] == keys[:-1]]):
            rest, twice = divmod(int(again[0]), grid.size)
            key = f"group {rest // 2}, label {rest % 2} and bin {twice}"
            raise _corrupt(f"{key} in more than one cell")
    handed = _read_handed(content.get("handed_over", []))
    with np.errstate(all="ignore"):
        _check_sums(cells, grid)
        _check_totals(cells, named, handed)
    try:
        reading = Reading.from_dict(content["reading"])
    except ValueError as error:
        raise _corrupt(str(error)) from error
    held = {"grid": grid, "groups": named, "cells": cells}
    return {**held, "reading": reading, "handed_over": handed}


def _corrupt(got: str) -> DataError:
    rule = f"must be what Tally.save writes (format {FORMAT!r}, version {VERSION})"
    step = "make the tally again with isocost.tally and save it"
    return DataError(Problem("tally file", rule, got, step))


def _check_names(got: Iterable[str], wanted: set[str], kind: str) -> None:
    missing, extra = sorted(wanted - set(got)), sorted(set(got) - wanted)
    if missing or extra:
        known = f"no {kind} {missing[0]!r}" if missing else f"an unknown {kind} {short(extra[0])}"
        raise _corrupt(known)


def _read_handed(content: Any) -> Handed:
    """The people handed over, from [group, n, sum w, sum w^2] for each group."""
    handed: dict[Group, tuple[float, float, float]] = {}
    for one in content if isinstance(content, list) else [None]:
        if not (isinstance(one, list) and len(one) == 4) or not all(
            type(x) in (int, float) and 0.0 < x <= MOST_ROWS * WEIGHTS[1] for x in one[1:]
        ):
            raise _corrupt("people handed over who are not a group and three positive numbers")
        try:
            group = as_group(one[0])
        except DataError as error:
            raise _corrupt("people handed over of a group that is none") from error
        n, w, w2 = map(float, one[1:])
        if w2 * n < w * w * (1.0 - ROUNDING) or group in handed:
            raise _corrupt("people handed over whose weights do not fit, or who are listed twice")
        handed[group] = (n, w, w2)
    return handed


def _read_cells(raw: Any, sizes: Mapping[str, int]) -> Cells:
    """The cells from their columns by name, with keys below these sizes."""
    if not isinstance(raw, dict):
        raise _corrupt("cells that are not columns by name")
    # Sums of weights are left out when all weights are 1.
    sums = SUMS if raw.keys() & set(OF_WEIGHTS) else UNWEIGHTED
    _check_names(raw, {*KEYS, *sums}, "column of cells")
    arrays = {}
    for name in (*KEYS, *SUMS):
        try:
            array = np.asarray(raw.get(name, raw["n"]))
        except (ValueError, OverflowError):
            array = np.empty(0, dtype=object)
        kinds, kind = ("i", "whole") if name in KEYS else ("if", "finite")
        if array.ndim != 1 or array.dtype.kind not in kinds or not np.isfinite(array).all():
            raise _corrupt(f"a value of {name} that is not a {kind} number")
        arrays[name] = array
    if len({len(array) for array in arrays.values()}) != 1 or not len(arrays["n"]):
        raise _corrupt("cells whose columns are empty or differ in length")
    for name, top in sizes.items():
        if arrays[name].min() < 0 or arrays[name].max() >= top:
            raise _corrupt(f"a {name} in the cells that is not a whole number below {top}")
    return Cells(**arrays)


def _check_sums(cells: Cells, grid: Grid) -> None:
    """Refuse sums that no rows of a cell can have."""
    n, w, w2, wh, wh2 = cells.n, cells.w, cells.w2, cells.wh, cells.wh2
    low, high, slack = grid.cuts[cells.bin], grid.cuts[cells.bin + 1], ROUNDING * w
    # (h - low)(high - h) >= 0 for scores of the bin.  Where a rule mirrored them only their mean
    # is sure to lie in it, and they are off by a bin at most.
    most = np.minimum(wh, (low + high) * wh - low * high * w + w / grid.bins**2)
    wrong = {
        "a cell with no rows or no weight": (n <= 0) | (w <= 0),
        f"a cell whose weights do not lie between {WEIGHTS[0]:g} and {WEIGHTS[1]:g}": (
            (w < WEIGHTS[0]) | (w > WEIGHTS[1])
        ),
        "a cell whose squared weights do not fit its weights": ~(w2 * n >= w**2 * (1.0 - ROUNDING)),
        "a cell whose fourth powers of weights do not fit their squares": ~(
            np.sqrt(cells.w4) * np.sqrt(n) >= w2 * (1.0 - ROUNDING)
        ),
        "a cell whose mean score lies outside its bin": (
            (wh < low * w - slack) | (wh > high * w + slack)
        ),
        "a cell whose squared scores do not fit its scores": (
            (wh2 > most + slack) | (wh2 / w < (wh / w) ** 2 - ROUNDING)
        ),
    }
    for got, cases in wrong.items():
        if cases.any():
            raise _corrupt(got)


def _check_totals(cells: Cells, groups: Sequence[Group], handed: Handed) -> None:
    """Refuse rows per group and label that are not whole, and weights that one row cannot have.

    A cell may hold a share of a row, since ``Rule.expected`` divides rows among their outcomes;
    but no row leaves its group and label, except the people who are handed over.
    """
    totals = cells.totals(len(groups))
    if (rows := totals.n).sum() > MOST_ROWS:
        raise _corrupt(f"{rows.sum():g} rows, more than can be counted")
    if handed:
        rows = rows.sum(axis=1) + [handed.get(group, (0.0,))[0] for group in groups]
    if (np.abs(rows - np.rint(rows)) > ROUNDING * np.maximum(rows, 1.0)).any():
        raise _corrupt("numbers of rows n that do not add up to a whole number")
    # No row weighs more than all rows of its group and label together.
    whole = totals.w[cells.group, cells.label]
    beyond = cells.w2 > cells.w * whole * (1.0 + ROUNDING)
    if (beyond | (cells.w4 > cells.w2 * whole**2 * (1.0 + ROUNDING))).any():
        raise _corrupt("cells whose powers of weights do not fit their weights")


@dataclass(frozen=True, eq=False, repr=False)
class Tally(Saved):
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
    reading : Reading
        How the data were read: columns, scale, what was dropped, merged or missing.
    backend : str or None
        The library of the frame it was made from, which :meth:`to_frame` uses again; not saved.
    handed_over : {group: (n, sum w, sum w^2)}
        People who have no score because a rule handed them over to somebody else; the cells are
        those of the others.  Empty unless a rule did so.

    Notes
    -----
    A cell keeps n, sum w, sum w^2, sum w^4, sum w h and sum w h^2.  Rates, costs and mixing
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
    reading: Reading = field(default_factory=Reading)
    backend: str | None = None
    handed_over: Handed = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        grid: Grid,
        groups: Sequence[Any],
        cells: Cells,
        reading: Reading | None = None,
        backend: str | None = None,
        handed_over: Handed | None = None,
    ) -> Tally:
        """Make a tally whose groups are sorted and all occur."""
        named = [as_group(group) for group in groups]
        ordered = sort_groups(named[i] for i in np.flatnonzero(np.bincount(cells.group)))
        codes = _indices(ordered)
        cells = Cells.merge([cells.recoded([codes.get(group, -1) for group in named])])
        handed = dict(handed_over or {})
        return cls(grid, tuple(ordered), cells, reading or Reading(), backend, handed)

    # What it holds

    @property
    def columns(self) -> Mapping[str, Any]:
        """The names of the columns it was made from, by role."""
        return self.reading.columns

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
        """The number of rows."""
        return float(self.cells.n.sum())

    @property
    def is_weighted(self) -> bool:
        """True if any row had a weight other than 1."""
        return self.cells.is_weighted

    @cached_property
    def totals(self) -> Sums:
        """The sums per group and label."""
        return self.cells.totals(len(self.groups))

    def kinds(self, threshold: float) -> Sums:
        """The sums per group and kind of people (:data:`isocost.tallies.KINDS`) at an edge."""
        first = self.grid.first_bin(check_unit("threshold", threshold))
        return self.cells.kinds(len(self.groups), first)

    @property
    def shares_handed_over(self) -> dict[Group, float]:
        """The share of each group that has no score because it was handed over."""
        decided = dict(zip(self.groups, self.totals.weight.tolist(), strict=True))
        handed = {group: w for group, (_, w, _) in self.handed_over.items()}
        groups = dict.fromkeys((*self.groups, *handed))
        return {g: (h := handed.get(g, 0.0)) / (h + decided.get(g, 0.0)) for g in groups}

    @property
    def share_handed_over(self) -> float:
        """The share of everybody that has no score because it was handed over."""
        handed = sum(w for _, w, _ in self.handed_over.values())
        return handed / (handed + float(self.cells.w.sum()))

    def index_of(self, group: Group) -> int:
        """The index of a group in ``groups``."""
        index = self._indices.get(group) if isinstance(group, Hashable) else None
        if index is not None:
            return index
        rule = "must be one of the groups of the tally"
        got = f"{short(group)}, and the groups are {listing(map(repr, self.groups))}"
        raise UsageError(Problem("group", rule, got, "use one of these, with the same type"))

    @cached_property
    def _indices(self) -> dict[Group, int]:
        return _indices(self.groups)

    # New tallies from old ones

    def rebuilt(
        self,
        cells: Cells,
        groups: Sequence[Group] | None = None,
        handed: Handed | None = None,
        reading: Reading | None = None,
    ) -> Tally:
        """A tally of other cells, and of other groups if given, in which all else is the same."""
        groups = self.groups if groups is None else groups
        handed = self.handed_over if handed is None else handed
        reading = reading or self.reading
        return Tally.build(self.grid, groups, cells, reading, self.backend, handed)

    def select(self, groups: Iterable[Group]) -> Tally:
        """Only these groups."""
        chosen = np.array([self.index_of(group) for group in _listed(groups)], dtype=np.intp)
        if not len(chosen):
            step = "leave at least one group"
            raise UsageError(Problem("groups", "at least one must remain", "0", step))
        kept = {self.groups[index] for index in chosen}
        if len(set(chosen.tolist())) == len(self.groups) and self.handed_over.keys() <= kept:
            return self
        cells = self.cells.take(np.isin(self.cells.group, chosen))
        handed = {group: x for group, x in self.handed_over.items() if group in kept}
        others = [name for group, name in names_of(self.groups).items() if group not in kept]
        return self.rebuilt(cells, handed=handed, reading=self.reading.without_groups(others))

    def drop(self, groups: Iterable[Group]) -> Tally:
        """All but these groups."""
        dropped = {self.index_of(group) for group in _listed(groups)}
        return self.select(g for i, g in enumerate(self.groups) if i not in dropped)

    def relabel(self, names: Mapping[Group, Group]) -> Tally:
        """Rename groups; groups that get the same name become one."""
        rule, step = "must be {old group: new group}", 'use {"b": "c"}, for example'
        check_kind("names", names, Mapping, rule, step)
        for group in names:
            self.index_of(group)
        renamed = [as_group(names.get(group, group)) for group in self.groups]
        codes = _indices(renamed)
        cells = self.cells.recoded([codes[group] for group in renamed])
        handed = added([(as_group(names.get(g, g)), x) for g, x in self.handed_over.items()])
        new, old = names_of(codes), group_names(self.groups)
        reading = self.reading.renamed({one: new[g] for one, g in zip(old, renamed, strict=True)})
        return self.rebuilt(cells, list(codes), handed, reading)

    def __add__(self, other: object) -> Tally:
        if isinstance(other, int) and other == 0:
            return self
        if not isinstance(other, Tally):
            return NotImplemented
        if self.grid != other.grid:
            rule = "both must have the same bins and edges"
            got = " and ".join(f"{t.bins} bins with the edges {t.edges}" for t in (self, other))
            step = f"make both tallies with the same {setting('bins')} and {setting('edges')}"
            raise UsageError(Problem("tally + tally", rule, got, step))
        sort_groups({(type(g) is bool, g): g for g in (*self.groups, *other.groups)}.values())
        codes = _indices([*self.groups, *other.groups])
        others = other.cells.recoded([codes[group] for group in other.groups])
        cells = Cells.merge([self.cells, others])
        handed = added([*self.handed_over.items(), *other.handed_over.items()])
        return self.rebuilt(cells, list(codes), handed, self.reading + other.reading)

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        mine, others = self.cells, other.cells
        if (self.grid, self.groups) != (other.grid, other.groups):
            return False
        if not all(np.array_equal(getattr(mine, name), getattr(others, name)) for name in KEYS):
            return False
        if self.handed_over.keys() != other.handed_over.keys():
            return False
        pairs: list[tuple[Any, Any]] = [*zip(mine.sums.values(), others.sums.values(), strict=True)]
        pairs += [(sums, other.handed_over[group]) for group, sums in self.handed_over.items()]
        return all(np.allclose(*pair, rtol=ROUNDING, atol=0.0) for pair in pairs)

    __hash__ = None  # type: ignore[assignment]

    # JSON

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; sums of weights are left out when all weights are 1."""
        names = SUMS if self.is_weighted else UNWEIGHTED
        keys = {name: getattr(self.cells, name).tolist() for name in KEYS}
        sums = {
            name: [int(x) if x.is_integer() and abs(x) < 2**53 else x for x in values.tolist()]
            for name, values in self.cells.sums.items()
            if name in names
        }
        handed = [[to_json(group), *own] for group, own in self.handed_over.items()]
        return {
            "format": FORMAT,
            "version": VERSION,
            "bins": self.bins,
            "edges": list(self.edges),
            "reading": self.reading.to_dict(),
            "groups": [to_json(group) for group in self.groups],
            "cells": {**keys, **sums},
            **({"handed_over": handed} if handed else {}),
        }

    def to_json(self) -> str:
        """The tally as JSON text; :meth:`from_json` reads it back."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, content: Any) -> Tally:
        """The reverse of :meth:`to_dict`; everything is checked."""
        return cls.build(**read_fields(content))

    @classmethod
    def from_json(cls, text: str) -> Tally:
        """The reverse of :meth:`to_json`."""
        try:
            content = parse_json(text)
        except ValueError as error:
            raise _corrupt(f"text that is not JSON: {error}") from error
        return cls.from_dict(content)

    def to_frame(self, *, backend: str | None = None) -> Any:
        """The cells as a frame: group, label, the bin with its edges, and the sums.

        Parameters
        ----------
        backend : str, optional
            "pandas", "polars", "pyarrow" ..., or "dict"; by default the library of the data.

        Examples
        --------
        >>> from isocost.examples import compas
        >>> cells = compas().to_frame(backend="dict")
        >>> list(cells)
        ['group', 'label', 'bin', 'low', 'high', 'n', 'w', 'w2', 'w4', 'wh', 'wh2']
        >>> float(cells["n"].sum()), float(cells["low"][0])
        (6150.0, 0.2158203125)
        """
        cells, cuts = self.cells, self.grid.cuts
        edges = {"bin": cells.bin, "low": cuts[cells.bin], "high": cuts[cells.bin + 1]}
        groups = [self.groups[index] for index in cells.group]
        return self.frame_by_group(groups, {"label": cells.label, **edges, **cells.sums}, backend)

    def frame_by_group(
        self,
        groups: Sequence[Group | None],
        columns: Mapping[str, Any],
        backend: str | None = None,
    ) -> Any:
        """A frame of the library this tally was made from, with the group of each row first.

        A group of several columns has their names; None stands for everybody.
        """
        table = beside_groups(groups, columns, self.columns.get("group"))
        return frame_of(table, backend or self.backend)

    # For people

    def _table(self) -> tuple[list[str], list[list[str]]]:
        totals, shares = self.totals, self.shares_handed_over
        rows = []
        for i, (group, name) in enumerate(names_of(self.groups).items()):
            n, w, wh = totals.n[i], totals.w[i], totals.wh[i]
            counts = [f"{x:,.0f}" if x >= 1e6 else f"{x:,.6g}" for x in (n.sum(), n[1])]
            rates = [f"{w[1] / w.sum():.4f}", f"{wh.sum() / w.sum():.4f}"]
            handed = [f"{shares[group]:.2%}"] if self.handed_over else []
            rows.append([name, *counts, *rates, *handed])
        header = ["group", "n", "positives", "base rate", "mean score"]
        return [*header, *(["handed over"] if self.handed_over else [])], rows

    def _headline(self) -> str:
        weighted = ", weighted" if self.is_weighted else ""
        edges = f", edges {', '.join(map(str, self.edges))}" if self.edges else ""
        groups = f"{len(self.groups)} group{'s' if len(self.groups) != 1 else ''}"
        scale = self.reading.scale
        scale = "" if scale == "probability" else f"; scores from {scale}"
        handed = f", and {self.share_handed_over:.2%} handed over" if self.handed_over else ""
        rows = f"{self.n:,.15g} rows in {groups}{weighted}{handed}"
        return f"Tally of {rows}; {self.bins} bins{edges}{scale}"

    def __repr__(self) -> str:
        return f"{self._headline()}\n{text_table(*self._table())}"

    def _repr_html_(self) -> str:
        return html_table(*self._table(), caption=self._headline())


def added(pairs: Iterable[tuple[Group, tuple[float, ...]]]) -> Handed:
    """Sums of the same group added up."""
    sums: dict[Group, tuple[float, float, float]] = {}
    for group, (n, w, w2) in pairs:
        a, b, c = sums.get(group, (0.0, 0.0, 0.0))
        sums[group] = (a + n, b + w, c + w2)
    return sums


def _indices(groups: Iterable[Group]) -> dict[Group, int]:
    """Number the distinct groups in order of appearance."""
    return {group: index for index, group in enumerate(dict.fromkeys(groups))}


def _listed(groups: Any) -> list[Any]:
    step = "use a list, also for one group"
    return check_listed("groups", groups, "must be a list of groups of the tally", step)


def check_tally(tally: Any, name: str = "tally") -> None:
    """Raise unless the value is a tally."""
    audit = "an audit, " if name == "audit" else ""
    rule = (
        f"must be {audit}a tally made by isocost.tally or read with isocost.Tally.load, or data "
        "that isocost.tally takes: a frame, a dict of arrays, or a path"
    )
    step = "make one: isocost.tally(data, score=..., label=..., group=...)"
    check_kind(name, tally, Tally, rule, step)


# Data in place of a tally


class ColumnOptions(TypedDict, total=False):
    """The keywords of :func:`isocost.tally` but for the bins."""

    score: Any
    label: Any
    group: Any
    weight: Any
    edges: tuple[float, ...]
    positive: Any
    missing_group: Group | None
    scale: str
    decimal: str | None
    encoding: str | None
    sheet: str | None
    memory_limit: str | None
    threads: int | None
    handed_over: bool
    drop_missing: bool


class DataOptions(ColumnOptions, total=False):
    """The keywords of :func:`isocost.tally`: functions of a tally take them together with data."""

    bins: int


TallyLike: TypeAlias = Tally | Any
"""A tally, or data that :func:`isocost.tally` takes."""


def as_tally(
    data: TallyLike, reading: Mapping[str, Any], *edges: float, name: str = "tally"
) -> Tally:
    """The tally itself, or the tally of data with these keywords of :func:`isocost.tally`.

    Data get bin edges at ``edges`` too.  Messages call the argument by its ``name``.

    Examples
    --------
    >>> data = {"risk": [0.2, 0.7, 0.4, 0.9], "label": [0, 1, 0, 1], "group": list("aabb")}
    >>> as_tally(data, {"score": "risk"}, 0.37).edges
    (0.37,)
    """
    if isinstance(data, Tally):
        check_no_keywords(reading, "tally")
        return data
    from isocost.engines.frames import is_data, tally

    if not is_data(data) and not (data is None and reading):
        check_tally(data, name)
    given = check_numbers("edges", reading.get("edges", ()))
    return tally(data, **{**reading, "edges": (*given, *edges)})


def column_names(data: Any, reading: Mapping[str, Any]) -> list[str]:
    """The names of the columns of data; none if :func:`as_tally` does not accept the data."""
    from isocost.engines.frames import column_names

    return column_names(data, **{key: reading.get(key) for key in ("encoding", "sheet")})


def check_no_keywords(reading: Mapping[str, Any], instead: str) -> None:
    """Raise if there are keywords of :func:`isocost.tally`, and something else than data."""
    if reading:
        rule = f"must be left out with this {instead}, for which the columns were read already"
        step = f"leave it out, or pass the data instead of the {instead}"
        got = ", ".join(f"{key}={short(value)}" for key, value in reading.items())
        raise UsageError(Problem(next(iter(reading)), rule, got, step))
