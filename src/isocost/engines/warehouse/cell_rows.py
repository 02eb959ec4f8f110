"""Cells that a warehouse returned, back to a tally."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.checks import short
from isocost.engines.arrays import raise_all
from isocost.engines.groups import GroupEncoder, two_valued
from isocost.engines.problems import WRONG, Problems
from isocost.engines.source import encode_cells
from isocost.engines.warehouse.tally_sql import cell_columns
from isocost.errors import DataError, IsocostError, Problem
from isocost.groups import Group, as_group, is_null, to_json
from isocost.tallies import FORMAT, SUMS, VERSION, Tally, read_fields

__all__ = ["tally_from_cells"]

_CODES = {"score": "bin", "label": "label", "weight": "weight_problem"}
"""The column that has the codes of bad rows, by the role of what is bad."""


def tally_from_cells(cells: Any, *, missing_group: Group | None = None) -> Tally:
    """The tally of the cells that :func:`isocost.tally_sql` had a warehouse count.

    Parameters
    ----------
    cells : list of rows, dict of columns, or any eager frame that narwhals knows
        What the query returned; a row is a tuple or a mapping.  The rows of several runs of the
        same query may be put together.
    missing_group : optional
        The group of rows whose group is null; without it they are an error.

    Returns
    -------
    Tally

    Notes
    -----
    The same errors come as from :func:`isocost.tally`.  Bins, edges and the names of the columns
    come back with the rows, so they need not be told again.
    """
    columns = _columns(cells)
    made_with = _made_with(columns)
    names: dict[str, Any] = made_with["columns"]
    weighted, positive = names["weight"] is not None, made_with["positive"]
    named = positive is not None and not isinstance(positive, bool)
    needed = cell_columns(len(names["group"]), weighted, named)
    missing = [name for name in needed if name not in columns]
    if missing:
        raise _foreign(f"no column {missing[0]!r}")
    whole = ["label", "bin", "n", *(["weight_problem"] if weighted else [])]
    found = {name: _whole(columns[name], name) for name in whole}
    problems = Problems({k: v for k, v in names.items() if isinstance(v, str)})
    problems.names["group"] = ", ".join(names["group"])
    problems.rows = int(found["n"].sum())
    raw = [_objects(columns[f"group_{i + 1}"]) for i in range(len(names["group"]))]
    encoder = GroupEncoder(raw, None if missing_group is None else as_group(missing_group))
    codes = encode_cells(encoder, raw, found["n"], problems)
    good = _count_bad(found, problems)
    raise_all(problems, _labels(columns, found["label"], positive, names) if named else [])
    sums = {
        name: _floats(columns[name], good, name) for name in needed if name in SUMS and name != "n"
    }
    content = {
        "format": FORMAT,
        "version": VERSION,
        "bins": made_with["bins"],
        "edges": made_with["edges"],
        "columns": names,
        "groups": [to_json(group) for group in encoder.groups],
        "cells": {"group": codes, "label": found["label"], "bin": found["bin"], "n": found["n"]},
    }
    content["cells"].update(sums)
    try:
        return Tally.build(**read_fields(content, repeated=True))
    except IsocostError as error:
        raise _foreign(error.problems[0].got) from error


def _foreign(got: str) -> DataError:
    return DataError(
        Problem(
            "cells",
            "must be what the query of tally_sql returns",
            got,
            "run the query as it is, and pass all its rows and columns",
        )
    )


def _columns(cells: Any) -> dict[str, list[Any]]:
    """The columns of rows, of a dict or of a frame, by their names in lower case."""
    if isinstance(cells, Mapping):
        found = {str(name): list(values) for name, values in cells.items()}
    elif isinstance(cells, list | tuple):
        found = _from_rows(list(cells))
    else:
        import narwhals as nw

        try:
            frame = nw.from_native(cells, eager_only=True)
        except TypeError as error:
            kind = f"an object of type {type(cells).__name__}"
            raise _foreign(f"{kind}, which is neither rows nor an eager frame") from error
        found = {name: frame[name].to_list() for name in frame.columns}
    if not found or not all(found.values()):
        raise DataError(
            Problem("cells", "must have at least one row", "0 rows", "check the table of the query")
        )
    return {name.lower(): [_value(v) for v in values] for name, values in found.items()}


def _from_rows(rows: list[Any]) -> dict[str, list[Any]]:
    if not rows:
        return {}
    # A row of BigQuery or Spark has keys, and is no mapping.
    if isinstance(rows[0], Mapping) or (
        hasattr(rows[0], "keys") and not isinstance(rows[0], tuple)
    ):
        return {str(name): [row[name] for row in rows] for name in rows[0].keys()}  # noqa: SIM118
    wrong = [row for row in rows if not hasattr(row, "__getitem__") or not hasattr(row, "__len__")]
    if wrong or not len(rows[0]):
        raise _foreign(f"{short(wrong[0]) if wrong else 'nothing'} as a row")
    first = _made_with({"made_with": [row[0] for row in rows if len(row)]})
    names: dict[str, Any] = first["columns"]
    positive = first["positive"]
    named = positive is not None and not isinstance(positive, bool)
    order = cell_columns(len(names["group"]), names["weight"] is not None, named)
    if any(len(row) != len(order) for row in rows):
        raise _foreign(f"rows that have not {len(order)} values: {', '.join(order)}")
    return {name: [row[i] for row in rows] for i, name in enumerate(order)}


def _value(value: Any) -> Any:
    """A value of any driver as a plain one."""
    if is_null(value):
        return None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode()
    return value.item() if isinstance(value, np.generic) else value


def _made_with(columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    """What the query was made with, as the rows themselves tell; it is checked, not trusted."""
    texts = set(columns.get("made_with", ()))
    if len(texts) != 1:
        got = "no column 'made_with'" if not texts else "rows of queries that differ"
        raise _foreign(got)
    try:
        content = json.loads(texts.pop())
        names = content["columns"]
        plain = [names["score"], names["label"], *names["group"], names["weight"] or ""]
        good = names["group"] and all(isinstance(name, str) for name in plain)
        good = good and isinstance(content["bins"], int) and isinstance(content["edges"], list)
    except (TypeError, ValueError, KeyError) as error:
        raise _foreign("a column 'made_with' that is not ours") from error
    if not good or "positive" not in content:
        raise _foreign("a column 'made_with' that is not ours")
    return dict(content)


def _objects(values: list[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _whole(values: list[Any], name: str) -> npt.NDArray[np.int64]:
    try:
        array = np.array([int(value) for value in values], dtype=np.int64)
        if [float(value) for value in values] == array.tolist():
            return array
    except (TypeError, ValueError, OverflowError):
        pass
    raise _foreign(f"a value of {name} that is not a whole number")


def _floats(values: list[Any], good: npt.NDArray[np.bool_], name: str) -> npt.NDArray[np.float64]:
    try:
        return np.array(values, dtype=object)[good].astype(np.float64)
    except (TypeError, ValueError) as error:
        raise _foreign(f"a value of {name} that is not a number") from error


def _count_bad(found: Mapping[str, Any], problems: Problems) -> npt.NDArray[np.bool_]:
    """Count the rows of the cells that stand for bad data; true where a cell is good."""
    good = np.ones(len(found["n"]), dtype=bool)
    for role, key in _CODES.items():
        if key not in found:
            continue
        for code, kind in WRONG[role].items():
            problems.add(role, kind, int(found["n"][found[key] == code].sum()))
        good &= found[key] >= 0
    return good


def _labels(
    columns: Mapping[str, list[Any]], label: npt.NDArray[Any], positive: Any, names: dict[str, Any]
) -> list[Problem]:
    others = [
        text
        for key in ("least_label", "most_label")
        for text, y in zip(columns[key], label, strict=True)
        if y == 0 and text is not None
    ]
    seen: list[Any] = sorted(set(map(str, others)))
    if (label == 1).any():
        seen.insert(0, positive)
    return two_valued(positive, seen, names["label"])
