"""Tally: the one small table that everything else is computed from.

Its cells have a row per group, label and score bin that occurs.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeAlias, TypedDict

import numpy as np

from isocost.cells import (
    KEYS,
    LABELS,
    OF_WEIGHTS,
    SUMS,
    UNLABELLED,
    UNWEIGHTED,
    Cells,
    Handed,
    Sums,
)
from isocost.checks import (
    check_kind,
    check_listed,
    check_numbers,
    check_unit,
    parse_json,
    short,
)
from isocost.errors import DataError, IsocostError, Problem, UsageError, listing, setting, spoken
from isocost.grid import Grid
from isocost.groups import (
    Group,
    as_group,
    beside_groups,
    group_names,
    is_known,
    names_of,
    sort_groups,
    to_json,
)
from isocost.persons import Persons, symmetric, terms_of
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
    others = {"handed_over", "unknown", "persons", "fingerprint"}
    _check_names(content.keys() - others, fields, "field")
    edges, groups = content["edges"], content["groups"]
    if not isinstance(edges, list) or not isinstance(groups, list):
        raise _corrupt("edges or groups that are not a list")
    try:
        grid, named = Grid(content["bins"], tuple(edges)), [as_group(group) for group in groups]
        sort_groups(named)
    except (DataError, UsageError) as error:
        problem = error.problems[0]
        raise _corrupt(f"{problem.got}, but {problem.name} {problem.rule}") from error
    cells = _read_cells(content["cells"], grid, len(named), 2, repeated)
    handed = _read_handed(content.get("handed_over", []))
    with np.errstate(all="ignore"):
        _check_totals(cells, named, handed)
        own = content.get("persons")
        persons = None if own is None else _read_persons(own, cells, len(named), grid)
    unknown = _read_unknown(content["unknown"], grid, repeated) if "unknown" in content else None
    try:
        reading = Reading.from_dict(content["reading"])
    except ValueError as error:
        raise _corrupt(str(error)) from error
    held = {"grid": grid, "groups": named, "cells": cells, "reading": reading}
    return {**held, "handed_over": handed, "unknown": unknown, "persons": persons}


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


def _read_unknown(content: Any, grid: Grid, repeated: bool) -> Unknown:
    """The people whose label or group is unknown, of groups of which null is one."""
    if not isinstance(content, dict) or not isinstance(content.get("groups"), list):
        raise _corrupt("unknown people who are not groups and cells")
    _check_names(content, {"groups", "cells"}, "field of unknown people")
    try:
        groups = [None if group is None else as_group(group) for group in content["groups"]]
        sort_groups(group for group in groups if group is not None)
    except DataError as error:
        raise _corrupt("unknown people of a group that is none") from error
    if groups.count(None) > 1:
        raise _corrupt("unknown people whose groups are listed twice")
    cells = _read_cells(content["cells"], grid, len(groups), LABELS, repeated)
    without = np.array([group is None for group in groups])
    if ((cells.label != UNLABELLED) & ~without[cells.group]).any():
        raise _corrupt("unknown people who have a label and a group")
    with np.errstate(all="ignore"):
        _check_totals(cells, groups, {}, LABELS)
    return Unknown.build(groups, cells)


def _read_persons(content: Any, cells: Cells, groups: int, grid: Grid) -> Persons:
    """Whose rows belong together, with sums that rows of these cells can have."""
    fields = {"thresholds", "number", "several", "added", "products"}
    if not isinstance(content, dict):
        raise _corrupt("persons who are not values by name")
    _check_names(content, fields, "field of persons")
    try:
        thresholds = check_numbers("thresholds", content["thresholds"])
        number, above = (np.array(content[x], dtype=float) for x in ("number", "products"))
        number, size = number.reshape(groups), len(terms_of(thresholds))
        products = symmetric(above.reshape(groups, size * (size + 1) // 2), size)
    except (IsocostError, TypeError, ValueError, OverflowError) as error:
        raise _corrupt("persons whose numbers are not those of each group") from error
    if not set(thresholds) <= grid.index_of_cut.keys():
        raise _corrupt("persons with thresholds that are no edges")
    if not isinstance(content["added"], bool) or type(content["several"]) is not int:
        raise _corrupt("persons who were not counted")
    totals = cells.totals(groups)
    rows = totals.n.sum(axis=1)
    # Nobody is counted in a group whose people have no label.
    least, most = np.minimum(rows, 1.0), rows * (1.0 + ROUNDING)
    whole = (number >= least) & (number <= most) & (number == np.rint(number))
    if not whole.all() or not 0 <= content["several"] <= number.sum():
        raise _corrupt("a number of persons that the rows cannot have")
    # Of each sum, the squares of its parts lie between those of equal parts and of one part.
    sums = np.stack([totals.w, totals.wh, totals.wh2], axis=-1)
    squares = np.diagonal(products, axis1=1, axis2=2)
    own = squares.reshape(groups, 2, -1)[..., :3]
    root, slack = np.sqrt(squares), 1.0 + ROUNDING
    fits = (own <= sums**2 * slack) & (own * number[:, None, None] * slack >= sums**2)
    if not (fits.all() and (np.abs(products) <= root[:, :, None] * root[:, None] * slack).all()):
        raise _corrupt("products of persons that the rows cannot have")
    return Persons(thresholds, number, products, content["several"], content["added"])


def _read_cells(raw: Any, grid: Grid, groups: int, labels: int, repeated: bool) -> Cells:
    """The cells from their columns by name, checked one by one."""
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
    for name, top in zip(KEYS, (groups, labels, grid.size), strict=True):
        if arrays[name].min() < 0 or arrays[name].max() >= top:
            raise _corrupt(f"a {name} in the cells that is not a whole number below {top}")
    cells = Cells(**arrays)
    keys = np.sort(cells.key(grid.size))
    if not repeated and len(again := keys[1:][keys[1:] == keys[:-1]]):
        rest, twice = divmod(int(again[0]), grid.size)
        key = f"group {rest // LABELS}, label {rest % LABELS} and bin {twice}"
        raise _corrupt(f"{key} in more than one cell")
    with np.errstate(all="ignore"):
        _check_sums(cells, grid)
    return cells


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


def _check_totals(
    cells: Cells, groups: Sequence[Group | None], handed: Handed, labels: int = 2
) -> None:
    """Refuse rows per group and label that are not whole, and weights that one row cannot have.

    A cell may hold a share of a row, since ``Rule.expected`` divides rows among their outcomes;
    but no row leaves its group and label, except the people who are handed over.
    """
    totals = cells.totals(len(groups), labels)
    if (rows := totals.n).sum() > MOST_ROWS:
        raise _corrupt(f"{rows.sum():g} rows, more than can be counted")
    if handed:
        apart = [0.0 if group is None else handed.get(group, (0.0,))[0] for group in groups]
        rows = rows.sum(axis=1) + apart
    if (np.abs(rows - np.rint(rows)) > ROUNDING * np.maximum(rows, 1.0)).any():
        raise _corrupt("numbers of rows n that do not add up to a whole number")
    # No row weighs more than all rows of its group and label together.
    whole = totals.w[cells.group, cells.label]
    beyond = cells.w2 > cells.w * whole * (1.0 + ROUNDING)
    if (beyond | (cells.w4 > cells.w2 * whole**2 * (1.0 + ROUNDING))).any():
        raise _corrupt("cells whose powers of weights do not fit their weights")


@dataclass(frozen=True, eq=False)
class Unknown:
    """People whose label or group is unknown, counted as the others are.

    Attributes
    ----------
    groups : tuple
        Their groups, sorted; None, the last, stands for people whose group is unknown.
    cells : Cells
        Cells with indices of these groups; label 2 stands for people without a label.
    """

    groups: tuple[Group | None, ...] = ()
    cells: Cells = field(default_factory=Cells.none)

    @classmethod
    def build(cls, groups: Sequence[Group | None], cells: Cells) -> Unknown:
        """Sort the groups that occur, and add up cells of the same group."""
        ordered, _, cells = _sorted(groups, cells)
        return cls(tuple(ordered), cells)

    def renamed(self, names: Mapping[Group, Group]) -> Unknown:
        """The same people, whose groups have other names."""
        new = [None if g is None else as_group(names.get(g, g)) for g in self.groups]
        return Unknown.build(new, self.cells)

    def select(self, groups: Iterable[Group]) -> Unknown:
        """The people of these groups, and those whose group is unknown."""
        kept = np.array([group is None or group in groups for group in self.groups], dtype=bool)
        return Unknown.build(self.groups, self.cells.take(kept[self.cells.group]))

    def __add__(self, other: Unknown) -> Unknown:
        shifted = other.cells.recoded([len(self.groups) + i for i in range(len(other.groups))])
        cells = Cells.merge([self.cells, shifted])
        return Unknown.build([*self.groups, *other.groups], cells)

    def __bool__(self) -> bool:
        return bool(self.groups)


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
    unknown : Unknown
        People whose label or group is missing, if they are kept; the cells are those of the others.
    persons : Persons or None
        Whose rows belong together, if a column said so: sums of the products of persons' sums.

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
    unknown: Unknown = field(default_factory=Unknown)
    persons: Persons | None = None

    @classmethod
    def build(
        cls,
        grid: Grid,
        groups: Sequence[Any],
        cells: Cells,
        reading: Reading | None = None,
        backend: str | None = None,
        handed_over: Handed | None = None,
        unknown: Unknown | None = None,
        persons: Persons | None = None,
    ) -> Tally:
        """Make a tally whose groups are sorted and all occur.

        Cells without a label, and of groups that are null or have a part that is, are unknown.
        """
        named = [as_group(group) if is_known(group) else None for group in groups]
        lacking = cells.label == UNLABELLED
        if None in named:
            lacking |= np.array([group is None for group in named])[cells.group]
        if lacking.any():
            apart = Unknown.build(named, cells.take(lacking))
            unknown, cells = apart if unknown is None else unknown + apart, cells.take(~lacking)
        ordered, new, cells = _sorted(named, cells)
        reading, handed = reading or Reading(), dict(handed_over or {})
        persons = persons and persons.recoded(new, len(ordered))
        held = (grid, tuple(ordered), cells, reading, backend, handed, unknown or Unknown())
        return cls(*held, persons)

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

    @property
    def known(self) -> Tally:
        """The tally of the people whose label and group are known."""
        return replace(self, unknown=Unknown()) if self.unknown else self

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

    def rebuilt(self, cells: Cells, **others: Any) -> Tally:
        """A tally of other cells, and ``others`` of its fields, in which all else is the same.

        Persons must be given, because their sums are those of the rows.
        """
        same = {one.name: getattr(self, one.name) for one in fields(self)}
        return Tally.build(**{**same, "persons": None, **others, "cells": cells})

    def select(self, groups: Iterable[Group]) -> Tally:
        """Only these groups."""
        chosen = np.array([self.index_of(group) for group in _listed(groups)], dtype=np.intp)
        if not len(chosen):
            step = "leave at least one group"
            raise UsageError(Problem("groups", "at least one must remain", "0", step))
        kept = {self.groups[index] for index in chosen}
        unknown = self.unknown.select(kept)
        others = self.handed_over.keys() <= kept and len(unknown.groups) == len(self.unknown.groups)
        if len(set(chosen.tolist())) == len(self.groups) and others:
            return self
        cells = self.cells.take(np.isin(self.cells.group, chosen))
        handed = {group: x for group, x in self.handed_over.items() if group in kept}
        left = [name for group, name in names_of(self.groups).items() if group not in kept]
        reading = self.reading.without_groups(left)
        own = {"reading": reading, "handed_over": handed, "unknown": unknown}
        return self.rebuilt(cells, persons=self.persons, **own)

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
        new_codes = [codes[group] for group in renamed]
        cells = self.cells.recoded(new_codes)
        handed = added([(as_group(names.get(g, g)), x) for g, x in self.handed_over.items()])
        new, old = names_of(codes), group_names(self.groups)
        reading = self.reading.renamed({one: new[g] for one, g in zip(old, renamed, strict=True)})
        persons = self.persons and self.persons.recoded(new_codes, len(codes))
        own = {"handed_over": handed, "unknown": self.unknown.renamed(names), "persons": persons}
        return self.rebuilt(cells, groups=list(codes), reading=reading, **own)

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
        new_codes = [codes[group] for group in other.groups]
        cells = Cells.merge([self.cells, other.cells.recoded(new_codes)])
        persons = None
        if self.persons and other.persons:
            mine = self.persons.recoded(range(len(self.groups)), len(codes))
            persons = mine + other.persons.recoded(new_codes, len(codes))
        elif self.persons or other.persons:
            rule, got = "both must know whose rows belong together", "one that does not"
            step = f"make both tallies with {setting('person')}, or both without"
            raise UsageError(Problem("tally + tally", rule, got, step))
        handed = added([*self.handed_over.items(), *other.handed_over.items()])
        own = {"handed_over": handed, "unknown": self.unknown + other.unknown, "persons": persons}
        return self.rebuilt(cells, groups=list(codes), reading=self.reading + other.reading, **own)

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        if not self._exactly == other._exactly:
            return False
        pairs: list[tuple[Any, Any]] = [
            (sums, other.handed_over[group]) for group, sums in self.handed_over.items()
        ]
        cells = (self.cells, other.cells), (self.unknown.cells, other.unknown.cells)
        for mine, others in cells:
            if not all(np.array_equal(getattr(mine, name), getattr(others, name)) for name in KEYS):
                return False
            pairs += zip(mine.sums.values(), others.sums.values(), strict=True)
        if self.persons and other.persons:
            pairs += [(self.persons.products, other.persons.products)]
        return all(np.allclose(*pair, rtol=ROUNDING, atol=0.0) for pair in pairs)

    @property
    def _exactly(self) -> tuple[Any, ...]:
        """What is the same in equal tallies, beside the cells."""
        persons = self.persons and (*self.persons.number.tolist(), *self.persons.thresholds)
        return self.grid, self.groups, self.handed_over.keys(), self.unknown.groups, persons

    __hash__ = None  # type: ignore[assignment]

    # JSON

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; sums of weights are left out when all weights are 1."""
        handed = [[to_json(group), *own] for group, own in self.handed_over.items()]
        groups = [None if group is None else to_json(group) for group in self.unknown.groups]
        unknown = {"groups": groups, "cells": _written_cells(self.unknown.cells)}
        return {
            "format": FORMAT,
            "version": VERSION,
            "bins": self.bins,
            "edges": list(self.edges),
            "reading": self.reading.to_dict(),
            "groups": [to_json(group) for group in self.groups],
            "cells": _written_cells(self.cells),
            **({"handed_over": handed} if handed else {}),
            **({"unknown": unknown} if self.unknown else {}),
            **({"persons": self.persons.to_dict()} if self.persons else {}),
            "fingerprint": self.fingerprint,
        }

    @property
    def fingerprint(self) -> str:
        """A hash of bins, groups and counts: the same for the same rows, on every engine.

        Sums are left out, because their last bits depend on the order of adding.  The group 1.0 is
        hashed as 1, which it equals: pandas has floats where whole numbers are missing.
        """
        from hashlib import sha256

        def plain(group: Group) -> Any:
            if isinstance(group, tuple):
                return list(map(plain, group))
            return group if isinstance(group, str) or group != int(group) else int(group)

        counts = [
            [getattr(cells, name).round().astype(int).tolist() for name in (*KEYS, "n")]
            for cells in (self.cells, self.unknown.cells)
        ]
        named = (*self.groups, "", *(g for g in self.unknown.groups if g is not None))
        handed = sorted(json.dumps([plain(g), round(n)]) for g, (n, *_) in self.handed_over.items())
        held = [self.bins, self.edges, [plain(group) for group in named], counts, handed]
        held.append(self.persons and self.persons.number.tolist())
        return sha256(json.dumps(held).encode()).hexdigest()[:32]

    def to_json(self) -> str:
        """The tally as JSON text; :meth:`from_json` reads it back."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, content: Any) -> Tally:
        """The reverse of :meth:`to_dict`; everything is checked."""
        tally = cls.build(**read_fields(content))
        if content.get("fingerprint") != tally.fingerprint:
            raise _corrupt("counts that do not have the fingerprint of the file")
        return tally

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
        unknown = self.unknown.cells.n.sum()
        unknown = f", and {unknown:,.15g} without label or group" if unknown else ""
        persons = f" of {self.persons}" if self.persons else ""
        rows = f"{self.n:,.15g} rows{persons} in {groups}{weighted}{handed}{unknown}"
        return f"Tally of {rows}; {self.bins} bins{edges}{scale}"

    def __repr__(self) -> str:
        return f"{self._headline()}\n{text_table(*self._table())}"

    def _repr_html_(self) -> str:
        return html_table(*self._table(), caption=self._headline())


def _written_cells(cells: Cells) -> dict[str, list[Any]]:
    """The columns of cells for JSON, without sums of weights where all weights are 1."""
    names = SUMS if cells.is_weighted else UNWEIGHTED
    sums = {
        name: [int(x) if x.is_integer() and abs(x) < 2**53 else x for x in values.tolist()]
        for name, values in cells.sums.items()
        if name in names
    }
    return {**{name: getattr(cells, name).tolist() for name in KEYS}, **sums}


def added(pairs: Iterable[tuple[Group, tuple[float, ...]]]) -> Handed:
    """Sums of the same group added up."""
    sums: dict[Group, tuple[float, float, float]] = {}
    for group, (n, w, w2) in pairs:
        a, b, c = sums.get(group, (0.0, 0.0, 0.0))
        sums[group] = (a + n, b + w, c + w2)
    return sums


def _sorted(groups: Sequence[Group | None], cells: Cells) -> tuple[list[Any], list[int], Cells]:
    """The groups that occur, sorted and None the last, the new code of each, and their cells."""
    # The same group may be listed twice; 1 and True are not the same.
    occur = {repr(groups[i]): groups[i] for i in np.flatnonzero(np.bincount(cells.group)).tolist()}
    known = sort_groups(group for group in occur.values() if group is not None)
    ordered = [*known, *([None] if "None" in occur else [])]
    codes = _indices(ordered)
    new = [codes.get(group, -1) for group in groups]
    return ordered, new, Cells.merge([cells.recoded(new)])


def _indices(groups: Iterable[Any]) -> dict[Any, int]:
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
    person: Any
    id: Any
    edges: tuple[float, ...]
    positive: Any
    missing_label: str
    missing_group: Group
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
    data: TallyLike,
    reading: Mapping[str, Any],
    *edges: float,
    name: str = "tally",
    with_unknown: bool = False,
) -> Tally:
    """The tally itself, or the tally of data with these keywords of :func:`isocost.tally`.

    Data get bin edges at ``edges`` too.  Messages call the argument by its ``name``.  People whose
    label or group is unknown are an error, unless ``with_unknown``.

    Examples
    --------
    >>> data = {"risk": [0.2, 0.7, 0.4, 0.9], "label": [0, 1, 0, 1], "group": list("aabb")}
    >>> as_tally(data, {"score": "risk"}, 0.37).edges
    (0.37,)
    """
    if isinstance(data, Tally):
        check_no_keywords(reading, "tally")
        return data if with_unknown else check_all_known(data, name)
    from isocost.engines.frames import is_data, tally

    if not is_data(data) and not (data is None and reading):
        check_tally(data, name)
    given = check_numbers("edges", reading.get("edges", ()))
    counted = tally(data, **{**reading, "edges": (*given, *edges)})
    return counted if with_unknown else check_all_known(counted, name)


def check_all_known(tally: Tally, name: str = "tally") -> Tally:
    """The tally; an error if it counts people whose label or group is unknown."""
    if tally.unknown:
        rule = "must be of people whose label and group are known"
        got = f"{tally.unknown.cells.n.sum():,.15g} people without one of them"
        step = (
            f"count again without them ({setting('missing_label', 'drop')}, "
            f"{setting('missing_group', 'drop')}){spoken(', or use tally.known', '')}, which "
            "assumes that they are like the others"
        )
        raise UsageError(Problem(name, rule, got, step))
    return tally


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
