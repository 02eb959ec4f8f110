"""A tally counted by a warehouse: the query for its cells, and the way back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost import __version__
from isocost.checks import check_names, check_numbers, check_single, group_names_of, short
from isocost.engines.dialects import Dialect, dialect_named
from isocost.engines.select import Case, Lines, bin_of, comment, named, select, steps_of
from isocost.engines.values import (
    USUAL_WEIGHTS,
    WRONG,
    GroupEncoder,
    Problems,
    as_objects,
    two_valued,
)
from isocost.errors import DataError, IsocostError, Problem, UsageError
from isocost.grid import Grid
from isocost.groups import Group, as_group, is_null, to_json
from isocost.tallies import FORMAT, SUMS, VERSION, Tally, read_fields

_ZEROS = ("0", "false", "0.0", "0.0E0")

_ONES = ("1", "true", "1.0", "1.0E0")

_NANS = ("NaN", "nan")


def tally_sql(
    dialect: str = "duckdb",
    table: str | Sequence[str] = "scores",
    *,
    score: str = "score",
    label: str = "label",
    group: str | Sequence[str] = "group",
    weight: str | None = None,
    bins: int = 1024,
    edges: Sequence[float] = (),
    positive: Any = None,
) -> str:
    """The query that counts the cells of a tally where the data are.

    Run it, and pass the result to :func:`isocost.tally_from_cells`: a few thousand rows, however
    many the table has.

    Parameters
    ----------
    dialect, table
        As in :meth:`isocost.Rule.to_sql`.
    score, label, group, weight, bins, edges, positive
        As in :func:`isocost.tally`.

    Notes
    -----
    Rows whose score, label or weight is invalid become cells of their own with a negative
    ``bin``, ``label`` or ``weight_problem``, so one pass also counts them.  A label is read by its
    text: 0, 1, true and false, or the value of ``positive``.  In PostgreSQL and Redshift products
    that are too small are an error, so there scores below 1e-200 add nothing to weighted sums.

    Examples
    --------
    >>> import duckdb
    >>> import isocost as ic
    >>> database = duckdb.connect()
    >>> rows = "(0.2, 0, 'a'), (0.7, 1, 'a'), (0.4, 1, 'b')"
    >>> names = 'scores (score, label, "group")'
    >>> _ = database.execute(f"CREATE VIEW {names} AS SELECT * FROM (VALUES {rows})")
    >>> ic.tally_from_cells(database.execute(ic.tally_sql()).fetchall())
    Tally of 3 rows in 2 groups; 1024 bins
    group  n  positives  base rate  mean score
    -----  -  ---------  ---------  ----------
    a      2          1     0.5000      0.4500
    b      1          1     1.0000      0.4000
    """
    d = dialect_named(dialect)
    grid = Grid(bins, check_numbers("edges", edges))
    check_names(score=score, label=label, weight=weight, optional=("weight",))
    groups = group_names_of(group)
    made_with = {
        "bins": grid.bins,
        "edges": list(grid.edges),
        "columns": {"score": score, "label": label, "weight": weight, "group": groups},
        "positive": _plain(positive),
    }
    query = _Query(d, grid, groups, weight is not None, positive)
    steps = {
        "isocost_picked": query.picked(d.table_of(table), score, label, weight),
        "isocost_placed": query.placed(),
    }
    head = [
        f"Cells of a tally: rows per group, label and score bin; isocost {__version__}.",
        "Give the rows to isocost.tally_from_cells. Negative labels, bins and weight problems "
        "count rows that cannot be used.",
    ]
    written = d.text(json.dumps(made_with, ensure_ascii=False, allow_nan=False))
    body = [*steps_of(steps), *query.counted(written)]
    return "\n".join([*(comment(line) for line in head), *body, ""])


def _plain(positive: Any) -> Any:
    """The positive label as a value for JSON."""
    check_single("positive", positive)
    value = positive.item() if getattr(positive, "ndim", None) == 0 else positive
    good = not isinstance(value, float) or math.isfinite(value)
    if value is None or (isinstance(value, str | int | float) and good):
        return value
    step = "use a text, a number or a boolean"
    raise UsageError(Problem("positive", "must be a single value", short(positive), step))


def cell_columns(made_with: Mapping[str, Any]) -> list[str]:
    """The columns that the query returns, in order."""
    names = made_with["columns"]
    weighted, named = names["weight"] is not None, _has_named_label(made_with["positive"])
    keys = [f"group_{i + 1}" for i in range(len(names["group"]))]
    sums = ["w", "w2", "wh", "wh2"] if weighted else ["wh", "wh2"]
    seen = ["least_label", "most_label"] if named else []
    status = ["weight_problem"] if weighted else []
    return ["made_with", *keys, "label", "bin", *status, "n", *sums, *seen]


def _has_named_label(positive: Any) -> bool:
    """Whether the labels must be looked at; one that is true or false has no third value."""
    return positive is not None and not isinstance(positive, bool)


class _Query:
    """The three steps: pick the columns, place each row in its cell, count."""

    def __init__(
        self, d: Dialect, grid: Grid, groups: Sequence[str], weighted: bool, positive: Any
    ) -> None:
        self.d = d
        self.grid = grid
        self.names = list(groups)
        self.keys = [f"group_{i + 1}" for i in range(len(groups))]
        self.weighted = weighted
        self.positive = _plain(positive)
        self.named = _has_named_label(self.positive)

    def picked(self, table: str, score: str, label: str, weight: str | None) -> Lines:
        """The columns as the types they are counted in."""
        d = self.d
        columns = [f"t.{d.name_of(name)}" for name in self.names]
        items: list[str | Lines] = [
            f"{column} AS {key}" for column, key in zip(columns, self.keys, strict=True)
        ]
        if d.group_key is not None:
            items += [
                f"{d.group_key.format(column)} AS {key}_bytes"
                for column, key in zip(columns, self.keys, strict=True)
            ]
        y = f"t.{d.name_of(label)}"
        items.append(f"{d.as_double(f't.{d.name_of(score)}')} AS h")
        items.append(named(self._label(y).lines(), "label"))
        if weight is not None:
            items.append(f"{d.as_double(f't.{d.name_of(weight)}')} AS weight")
        if self.named:
            items.append(f"{d.as_text.format(y)} AS label_text")
        return [*select(items), f"FROM {table} AS t"]

    def _label(self, y: str) -> Case:
        d = self.d
        text, nan = d.as_text.format(y), ", ".join(map(d.text, _NANS))
        if self.positive is not None:
            same = d.same(d.comparable(y, type(self.positive)), self.positive)
            # A text may be "nan"; a number that is NaN has no label.
            number = not isinstance(self.positive, str | bool)
            null = f"{y} IS NULL" + (f" OR {text} IN ({nan})" if number else "")
            return Case(((null, "-1"), (same, "1")), "0")
        zero, one = (", ".join(map(d.text, texts)) for texts in (_ZEROS, _ONES))
        return Case(
            (
                (f"{y} IS NULL OR {text} IN ({nan})", "-1"),
                (f"{text} IN ({zero})", "0"),
                (f"{text} IN ({one})", "1"),
            ),
            "-2",
        )

    def placed(self) -> Lines:
        """The cell of each row, and the numbers to add where they are valid."""
        nan, infinite = self._is_nan("h"), self._is_infinite("h")
        first, *others = bin_of("h", self.grid, self.d)
        terms = [first, *(f"    + {term}" for term in others)] if others else first
        bin_case = Case(((nan, "-1"), (infinite, "-2"), ("h < 0 OR h > 1", "-3")), terms)
        keys = list(self.keys)
        if self.d.group_key is not None:
            keys += [f"{key}_bytes" for key in self.keys]
        items: list[str | Lines] = [
            *keys,
            "label",
            named(bin_case.lines(), "bin"),
            "CASE WHEN h BETWEEN 0 AND 1 THEN h END AS score",
        ]
        if self.weighted:
            low, high = (self.d.number(end) for end in USUAL_WEIGHTS)
            usual = f"weight BETWEEN {low} AND {high}"
            status = Case(
                (
                    (self._is_nan("weight"), "-1"),
                    (self._is_infinite("weight"), "-2"),
                    ("weight = 0", "-3"),
                    ("weight < 0", "-4"),
                    (f"NOT ({usual})", "-5"),
                ),
                "0",
            )
            items += [
                named(status.lines(), "weight_problem"),
                f"CASE WHEN {usual} THEN weight END AS good_weight",
            ]
        if self.named:
            items.append("label_text")
        return [*select(items), "FROM isocost_picked"]

    def _is_nan(self, column: str) -> str:
        test = f"{column} IS NULL"
        return test if self.d.is_nan is None else f"{test} OR {self.d.is_nan.format(column)}"

    def _is_infinite(self, column: str) -> str:
        return f"ABS({column}) > {self.d.number(1.7976931348623157e308)}"

    def counted(self, made_with: str) -> Lines:
        """The sums of each cell."""
        by = [*self.keys, "label", "bin"]
        by += ["weight_problem"] if self.weighted else []
        items = [f"{made_with} AS made_with", *by, "COUNT(*) AS n"]
        if self.weighted:
            w = "good_weight"
            items += [f"SUM({w}) AS w", f"SUM({w} * {w}) AS w2"]
            items += [self._sum(f"{w} * score", 1e-200, "wh")]
            items += [self._sum(f"{w} * score * score", 1e-100, "wh2")]
        else:
            items += ["SUM(score) AS wh", self._sum("score * score", 1e-160, "wh2")]
        if self.named:
            items += ["MIN(label_text) AS least_label", "MAX(label_text) AS most_label"]
        if self.d.group_key is not None:
            # The keys are bytes here: letters that are equal under a collation stay apart.
            items = [f"ANY_VALUE({i}) AS {i}" if i in self.keys else i for i in items]
            by = [f"{key}_bytes" if key in self.keys else key for key in by]
        return [*select(items), "FROM isocost_placed", f"GROUP BY {', '.join(by)}"]

    def _sum(self, product: str, least: float, name: str) -> str:
        """The sum of a product; 0 for scores so small that multiplying them is an error."""
        if self.d.underflow_fails:
            product = f"CASE WHEN score > {self.d.number(least)} THEN {product} ELSE 0 END"
        return f"SUM({product}) AS {name}"


_CODES = {"score": "bin", "label": "label", "weight": "weight_problem"}
"""The column with the codes of bad rows, by the role of the bad value."""


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
    The errors are those of :func:`isocost.tally`.  Bins, edges and the names of the columns come
    back with the rows, so they need not be passed again.
    """
    columns = _columns(cells)
    made_with = _made_with(columns)
    names: dict[str, Any] = made_with["columns"]
    weighted, positive = names["weight"] is not None, made_with["positive"]
    needed = cell_columns(made_with)
    missing = [name for name in needed if name not in columns]
    if missing:
        raise _foreign(f"no column {missing[0]!r}")
    whole = ["label", "bin", "n", *(["weight_problem"] if weighted else [])]
    counts = {name: _whole(columns[name], name) for name in whole}
    problems = Problems({k: v for k, v in names.items() if isinstance(v, str)})
    problems.names["group"] = ", ".join(names["group"])
    problems.rows = int(counts["n"].sum())
    raw = [as_objects(columns[f"group_{i + 1}"]) for i in range(len(names["group"]))]
    encoder = GroupEncoder(raw, None if missing_group is None else as_group(missing_group))
    codes = encoder.encode_cells(raw, counts["n"], problems)
    good = _count_bad(counts, problems)
    named = _has_named_label(positive)
    problems.check(_labels(columns, counts["label"], positive, names) if named else [])
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
        "cells": {"group": codes, "label": counts["label"], "bin": counts["bin"], "n": counts["n"]},
    }
    content["cells"].update(sums)
    try:
        return Tally.build(**read_fields(content, repeated=True))
    except IsocostError as error:
        raise _foreign(error.problems[0].got) from error


def _foreign(got: str) -> DataError:
    rule = "must be what the query of tally_sql returns"
    step = "run the query as it is, and pass all its rows and columns"
    return DataError(Problem("cells", rule, got, step))


def _columns(cells: Any) -> dict[str, list[Any]]:
    """The columns of rows, of a dict or of a frame, by their names in lower case."""
    if isinstance(cells, Mapping):
        columns = {str(name): list(values) for name, values in cells.items()}
    elif isinstance(cells, list | tuple):
        columns = _from_rows(list(cells))
    else:
        import narwhals as nw

        try:
            frame = nw.from_native(cells, eager_only=True)
        except TypeError as error:
            kind = f"an object of type {type(cells).__name__}"
            raise _foreign(f"{kind}, which is neither rows nor an eager frame") from error
        columns = {name: frame[name].to_list() for name in frame.columns}
    if not columns or not all(columns.values()):
        raise DataError(
            Problem("cells", "must have at least one row", "0 rows", "check the table of the query")
        )
    return {name.lower(): [_value(v) for v in values] for name, values in columns.items()}


def _from_rows(rows: list[Any]) -> dict[str, list[Any]]:
    if not rows:
        return {}
    # A row of BigQuery or Spark has keys, and is not a mapping.
    if isinstance(rows[0], Mapping) or (
        hasattr(rows[0], "keys") and not isinstance(rows[0], tuple)
    ):
        return {str(name): [row[name] for row in rows] for name in rows[0].keys()}  # noqa: SIM118
    wrong = [row for row in rows if not hasattr(row, "__getitem__") or not hasattr(row, "__len__")]
    if wrong or not len(rows[0]):
        raise _foreign(f"{short(wrong[0]) if wrong else 'nothing'} as a row")
    order = cell_columns(_made_with({"made_with": [row[0] for row in rows if len(row)]}))
    if any(len(row) != len(order) for row in rows):
        raise _foreign(f"rows that have not {len(order)} values: {', '.join(order)}")
    return {name: [row[i] for row in rows] for i, name in enumerate(order)}


def _value(value: Any) -> Any:
    """A value of any driver as a plain Python value."""
    if is_null(value):
        return None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode()
    return value.item() if isinstance(value, np.generic) else value


def _made_with(columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    """What the query was made with, according to the rows; it is checked, not trusted."""
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


def _count_bad(counts: Mapping[str, Any], problems: Problems) -> npt.NDArray[np.bool_]:
    """Count the rows of bad cells; true where a cell is good."""
    good = np.ones(len(counts["n"]), dtype=bool)
    for role, key in _CODES.items():
        if key not in counts:
            continue
        for code, kind in WRONG[role].items():
            problems.add(role, kind, int(counts["n"][counts[key] == code].sum()))
        good &= counts[key] >= 0
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
