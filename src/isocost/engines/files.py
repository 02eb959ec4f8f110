"""CSV and Parquet files to a tally through DuckDB: out of core, in one query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from isocost.cells import Cells
from isocost.engines import sql
from isocost.engines.arrays import EXTREME, WEIGHTS, raise_all
from isocost.engines.encode import GroupEncoder
from isocost.engines.labels import two_valued
from isocost.engines.problems import Problems
from isocost.engines.source import Progress, Source, encode_cells, no_rows
from isocost.errors import Problem, UsageError, missing_column
from isocost.grid import Grid
from isocost.groups import Group
from isocost.tallies import Tally

__all__ = ["tally_files"]

_SCORES = {-1: "null or NaN", -2: "infinite", -3: "outside [0, 1]"}
_LABELS = {-1: "null or NaN", -2: "other than 0 and 1"}
_WEIGHTS = {-1: "null or NaN", -2: "infinite", -3: "zero", -4: "negative", -5: EXTREME}


def _usual(weight: str) -> str:
    low, high = (sql.literal(end) for end in WEIGHTS)
    return f"({weight} BETWEEN {low} AND {high})"


def tally_files(
    path: str | Path,
    columns: dict[str, Any],
    *,
    grid: Grid,
    positive: Any = None,
    missing_group: Group | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Count the cells of CSV or Parquet files in one query; see :func:`isocost.tally`."""
    source = Source(path, [*columns["group"], columns["label"]])
    query = _tally_query(source, columns, grid, positive)
    found = source.columns_of(query, progress)
    names = {**columns, "group": ", ".join(columns["group"])}
    problems = Problems({role: name for role, name in names.items() if name is not None})
    if len(found["n"]) == 0:
        raise no_rows(path)
    problems.rows = int(found["n"].sum())
    encoder = GroupEncoder([found[f"g{i}"] for i in range(len(columns["group"]))], missing_group)
    raw = [found[f"g{i}"] for i in range(len(columns["group"]))]
    codes = encode_cells(encoder, raw, found["n"], problems)
    _count_bad(source, columns, found, problems)
    raise_all(problems, _label_problems(found, positive, columns["label"]))
    sums = {name: found[name].astype(np.float64) for name in ("n", "wh", "wh2")}
    for name in ("w", "w2"):
        sums[name] = found[name].astype(np.float64) if name in found else sums["n"]
    cells = Cells(codes, found["y"], found["b"], **sums)
    return Tally.build(grid, encoder.groups, cells, columns)


def _tally_query(source: Source, columns: dict[str, Any], grid: Grid, positive: Any) -> str:
    wrong = [
        missing_column(role, name, list(source.types))
        for role in ("score", "label", "group", "weight")
        for name in (columns[role] if role == "group" else [columns[role]])
        if name is not None and name not in source.types
    ]
    if wrong:
        raise UsageError(wrong)
    groups = [source.column("group", name) for name in columns["group"]]
    keys = ", ".join(f"{group} AS g{i}" for i, group in enumerate(groups))
    label = source.column("label", columns["label"])
    h = source.number("score", columns["score"])
    first = f"SELECT {keys}, {h} AS h, {_label(label, source, columns, positive)} AS y"
    seen = ""
    if positive is not None:
        first += f", CAST({label} AS VARCHAR) AS l"
        seen = ", min(l) AS least_label, max(l) AS most_label"
    sums = "sum(h) AS wh, sum(h * h) AS wh2"
    status = "0"
    if columns["weight"] is not None:
        first += f", {source.number('weight', columns['weight'])} AS w"
        status = (
            "CASE WHEN w IS NULL OR isnan(w) THEN -1 WHEN isinf(w) THEN -2 WHEN w = 0 THEN -3 "
            f"WHEN w < 0 THEN -4 WHEN NOT {_usual('w')} THEN -5 ELSE 0 END"
        )
        sums = "sum(w) AS w, sum(w * w) AS w2, sum(w * h) AS wh, sum(w * h * h) AS wh2"
    bins = (
        "CASE WHEN h IS NULL OR isnan(h) THEN -1 WHEN isinf(h) THEN -2 "
        f"WHEN h < 0 OR h > 1 THEN -3 ELSE {sql.bin_of('h', grid)} END"
    )
    return (
        f"WITH picked AS ({first} FROM {source.reader}), "
        f"placed AS (SELECT *, {bins} AS b, {status} AS bad_weight FROM picked) "
        f"SELECT {', '.join(f'g{i}' for i in range(len(groups)))}, y, b, bad_weight, "
        f"count(*) AS n, {sums}{seen} FROM placed GROUP BY ALL"
    )


def _label(label: str, source: Source, columns: dict[str, Any], positive: Any) -> str:
    """The label as 0 and 1; -1 for null, -2 for anything else."""
    kind = source.types[columns["label"]]
    if positive is not None:
        nan = f"OR isnan({label}) " if kind in ("DOUBLE", "FLOAT") else ""
        same = f"({_is_positive(label, kind, positive)})::INT"
        return f"CASE WHEN {label} IS NULL {nan}THEN -1 ELSE {same} END"
    if kind == "BOOLEAN":
        return f"CASE WHEN {label} IS NULL THEN -1 ELSE {label}::INT END"
    if any(number in kind for number in sql.NUMBERS):
        nan = f"OR isnan({label}) " if kind in ("DOUBLE", "FLOAT") else ""
        return (
            f"CASE WHEN {label} IS NULL {nan}THEN -1 WHEN {label} = 0 THEN 0 "
            f"WHEN {label} = 1 THEN 1 ELSE -2 END"
        )
    text = f"CAST({label} AS VARCHAR)"
    return (
        f"CASE WHEN {label} IS NULL THEN -1 WHEN {text} = '0' THEN 0 WHEN {text} = '1' THEN 1 "
        "ELSE -2 END"
    )


def _count_bad(
    source: Source, columns: dict[str, Any], found: dict[str, Any], problems: Problems
) -> None:
    roles = (("score", "b", _SCORES), ("label", "y", _LABELS), ("weight", "bad_weight", _WEIGHTS))
    for role, key, kinds in roles:
        for code, kind in kinds.items():
            count = int(found["n"][found[key] == code].sum())
            if count:
                problems.add(role, kind, count, _example(source, columns[role], role, code))


def _example(source: Source, column: str, role: str, code: int) -> Any:
    """One of the bad values; the second query runs only when there is something to tell."""
    name, number = sql.name(column), f"CAST({sql.name(column)} AS DOUBLE)"
    if code == -1:
        return None
    if role == "label":
        where = f"{name}::VARCHAR NOT IN ('0', '1', '0.0', '1.0')"
    elif code == -2:
        where = f"isinf({number})"
    elif role == "weight":
        where = {-3: f"{number} = 0", -4: f"{number} < 0"}.get(code, f"NOT {_usual(number)}")
        where += f" AND NOT isinf({number}) AND NOT isnan({number})"
    else:
        where = f"({number} < 0 OR {number} > 1) AND NOT isinf({number}) AND NOT isnan({number})"
    row = source.run(f"SELECT {name} FROM {source.reader} WHERE {where} LIMIT 1").fetchone()
    return row[0] if row else None


def _is_positive(label: str, kind: str, positive: Any) -> str:
    """The condition that a label is the positive one, by the type of the column.

    On the command line every value is a text, so "2" is also the number 2 and "True" the boolean.
    """
    text = str(positive)
    if kind == "BOOLEAN":
        known = {"true": "TRUE", "1": "TRUE", "false": "FALSE", "0": "FALSE"}
        return f"{label} = {known[text.lower()]}" if text.lower() in known else "FALSE"
    if any(number in kind for number in sql.NUMBERS):
        try:
            return f"{label} = {sql.literal(float(positive))}"
        except (TypeError, ValueError):
            return "FALSE"
    return f"CAST({label} AS VARCHAR) = {sql.literal(text)}"


def _label_problems(found: dict[str, Any], positive: Any, name: str) -> list[Problem]:
    if positive is None:
        return []
    others = found["y"] == 0
    texts = [*found["least_label"][others].tolist(), *found["most_label"][others].tolist()]
    seen: list[Any] = sorted({text for text in texts if text is not None})
    if (found["y"] == 1).any():
        seen.insert(0, positive)
    return two_valued(positive, seen, name)
