"""Reading a tally from JSON that nobody vouches for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from isocost.cells import KEYS, SUMS, Cells, add_up
from isocost.checks import is_writable, parse_json, short
from isocost.errors import DataError, Problem, UsageError
from isocost.grid import Grid
from isocost.groups import from_json, sort_groups

__all__ = ["FORMAT", "VERSION", "parse_text", "read_fields"]

FORMAT = "isocost-tally"
VERSION = 1

ROLES = ("score", "label", "group", "weight")
"""What a column may be in a tally."""

MOST_ROWS = 2.0**53
"""Beyond this a count is not exact."""

WEIGHTS = (1e-130, 1e130)
"""What the weights of a cell may add up to, so that squares are numbers."""

ROUNDING = 1e-9
"""How far, relatively, sums may be off because of the order in which they were added."""

_FIELDS = {"format", "version", "bins", "edges", "columns", "groups", "cells"}


def parse_text(text: str) -> Any:
    """The content of JSON text, or a :class:`DataError`."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise _corrupt(f"text that is not JSON: {error}") from error


def read_fields(content: Any, *, repeated: bool = False) -> dict[str, Any]:
    """The arguments of ``Tally.build`` from plain values, all of them checked.

    ``repeated`` says that a cell may come several times, to be added up.
    """
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _corrupt("something else")
    if content.get("version") != VERSION or isinstance(content["version"], bool):
        raise _corrupt(f"version {short(content.get('version'))}")
    if content.keys() != _FIELDS:
        raise _corrupt(_other_names(content, _FIELDS, "field"))
    edges, groups = content["edges"], content["groups"]
    if not isinstance(edges, list) or not isinstance(groups, list):
        raise _corrupt("edges or groups that are not a list")
    try:
        grid, named = Grid(content["bins"], tuple(edges)), [from_json(group) for group in groups]
        sort_groups(named)
    except (DataError, UsageError) as error:
        problem = error.problems[0]
        raise _corrupt(f"{problem.got}, but {problem.name} {problem.rule}") from error
    arrays = _read_cells(content["cells"])
    _check_keys(arrays, len(named), grid, repeated)
    with np.errstate(over="ignore", invalid="ignore"):
        _check_sums(arrays, grid)
        _check_totals(arrays, len(named))
    columns = _check_columns(content["columns"])
    return {"grid": grid, "groups": named, "cells": Cells(**arrays), "columns": columns}


def _corrupt(got: str) -> DataError:
    return DataError(
        Problem(
            "tally file",
            f"must be what Tally.save writes (format {FORMAT!r}, version {VERSION})",
            got,
            "make the tally again with isocost.tally and save it",
        )
    )


def _other_names(got: Iterable[str], wanted: set[str], kind: str) -> str:
    missing, extra = sorted(wanted - set(got)), sorted(set(got) - wanted)
    return f"no {kind} {missing[0]!r}" if missing else f"an unknown {kind} {short(extra[0])}"


def _read_cells(raw: Any) -> dict[str, Any]:
    """The columns of the cells as arrays of one length; weights are left out when all are 1."""
    plain, weighted = {*KEYS, "n", "wh", "wh2"}, {*KEYS, *SUMS}
    if not isinstance(raw, dict):
        raise _corrupt("cells that are not columns by name")
    if raw.keys() not in (plain, weighted):
        wanted = weighted if {"w", "w2"} & raw.keys() else plain
        raise _corrupt(_other_names(raw, wanted, "column of cells"))
    arrays = {}
    for name in (*KEYS, *SUMS):
        try:
            array = np.asarray(raw.get(name, raw["n"]))
        except (ValueError, OverflowError):
            array = np.empty(0, dtype=object)
        kinds, kind = ("i", "whole") if name in KEYS else ("if", "finite")
        if array.ndim != 1 or array.dtype.kind not in kinds or not np.isfinite(array).all():
            raise _corrupt(f"a value of {name} that is not a {kind} number")
        arrays[name] = array if name in KEYS else array.astype(np.float64)
    if len({len(array) for array in arrays.values()}) != 1 or not len(arrays["n"]):
        raise _corrupt("cells whose columns are empty or differ in length")
    return arrays


def _check_keys(arrays: dict[str, Any], groups: int, grid: Grid, repeated: bool) -> None:
    for name, top in (("group", groups), ("label", 2), ("bin", grid.size)):
        if arrays[name].min() < 0 or arrays[name].max() >= top:
            raise _corrupt(f"a {name} in the cells that is not a whole number below {top}")
    group, label, place = (arrays[name].astype(np.int64) for name in KEYS)
    keys = np.sort((group * 2 + label) * grid.size + place)
    again = keys[1:][keys[1:] == keys[:-1]]
    if len(again) and not repeated:
        rest, twice = divmod(int(again[0]), grid.size)
        key = f"group {rest // 2}, label {rest % 2} and bin {twice}"
        raise _corrupt(f"{key} in more than one cell")


def _check_sums(arrays: dict[str, Any], grid: Grid) -> None:
    """Refuse sums that no rows of a cell can have."""
    n, w, w2, wh, wh2 = (arrays[name] for name in SUMS)
    if (n <= 0).any() or (w <= 0).any():
        raise _corrupt("a cell with no rows or no weight")
    if (w < WEIGHTS[0]).any() or (w > WEIGHTS[1]).any():
        raise _corrupt(f"a cell whose weights do not lie between {WEIGHTS[0]:g} and {WEIGHTS[1]:g}")
    if not (w2 * n >= w**2 * (1.0 - ROUNDING)).all():
        raise _corrupt("a cell whose squared weights do not fit its weights")
    low, high = grid.cuts[arrays["bin"]], grid.cuts[arrays["bin"] + 1]
    slack = ROUNDING * w
    if (wh < low * w - slack).any() or (wh > high * w + slack).any():
        raise _corrupt("a cell whose mean score lies outside its bin")
    # (h - low)(high - h) >= 0 for scores of the bin.  Where a rule turned h into 1 - h only their
    # mean is sure to lie in it, and they are off by a bin at most.
    most = np.minimum(wh, (low + high) * wh - low * high * w + w / grid.bins**2)
    if (wh2 > most + slack).any() or (wh2 / w < (wh / w) ** 2 - ROUNDING).any():
        raise _corrupt("a cell whose squared scores do not fit its scores")


def _check_totals(arrays: dict[str, Any], groups: int) -> None:
    """Refuse rows per group and label that are not whole, and weights that one row cannot have.

    A cell may hold a share of a row, since ``Rule.expected`` divides rows by the chance of where
    they go; but all rows of a group and label stay of that group and label.
    """
    place = arrays["group"].astype(np.intp) * 2 + arrays["label"]
    n, w = (add_up(place, arrays[name], 2 * groups) for name in ("n", "w"))
    if n.sum() > MOST_ROWS:
        raise _corrupt(f"{n.sum():g} rows, more than can be counted")
    if (np.abs(n - np.rint(n)) > ROUNDING * np.maximum(n, 1.0)).any():
        raise _corrupt("numbers of rows n that do not add up to a whole number")
    # No row weighs more than all rows of its group and label together.
    if (arrays["w2"] > arrays["w"] * w[place] * (1.0 + ROUNDING)).any():
        raise _corrupt("cells whose squared weights do not fit their weights")


def _check_columns(columns: Any) -> dict[str, Any]:
    if not isinstance(columns, dict) or not columns.keys() <= set(ROLES):
        raise _corrupt(f"columns that are not names by role ({', '.join(ROLES)})")
    for role, name in columns.items():
        names = name if isinstance(name, list) else [name]
        good = names and all(isinstance(each, str) and is_writable(each) for each in names)
        if not good and name is not None:
            raise _corrupt(f"a column {role} that is not a name: {short(name)}")
    return dict(columns)
