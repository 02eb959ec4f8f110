"""Files of any size to a tally through DuckDB: out of core, in one query."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from isocost.cells import Cells
from isocost.engines import sql
from isocost.engines.arrays import raise_all
from isocost.engines.encode import GroupEncoder, as_objects
from isocost.engines.labels import two_valued
from isocost.engines.problems import USUAL_WEIGHTS, WRONG, Problems
from isocost.engines.settings import DOUBT, TRUST, Settings
from isocost.engines.source import Progress, Source, encode_cells, no_rows
from isocost.engines.texts import json_values, typed
from isocost.errors import DataError, Problem, UsageError, missing_column
from isocost.grid import Grid
from isocost.groups import Group
from isocost.tallies import Tally

__all__ = ["tally_files"]

BELOW_NINE_TENTHS = 0.8999999999999999

_SUMS = ("n", "w", "w2", "wh", "wh2")


def _usual(weight: str) -> str:
    low, high = (sql.literal(end) for end in USUAL_WEIGHTS)
    return f"({weight} BETWEEN {low} AND {high})"


_WEIGHT_STATUS = (
    "CASE WHEN w IS NULL OR isnan(w) THEN -1 WHEN isinf(w) THEN -2 WHEN w = 0 THEN -3 "
    f"WHEN w < 0 THEN -4 WHEN NOT {_usual('w')} THEN -5 ELSE 0 END"
)


def tally_files(
    path: str | Path,
    columns: dict[str, Any],
    *,
    grid: Grid,
    positive: Any = None,
    missing_group: Group | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
    name: str | None = None,
) -> Tally:
    """Count the cells of files in one query; see :func:`isocost.tally`.

    ``name`` says of what kind a file is whose path does not.
    """
    source = Source(path, settings, name, groups=columns["group"])
    source.check_divided()
    source.check_names(columns)
    query = _tally_query(source, columns, grid, positive)
    found = _counted(source, query, columns, progress)
    names = {**columns, "group": ", ".join(columns["group"])}
    problems = Problems({role: name for role, name in names.items() if name is not None})
    if len(found["n"]) == 0:
        raise no_rows(path)
    problems.rows = int(found["n"].sum())
    raw = [found[f"g{i}"] for i in range(len(columns["group"]))]
    raw = [
        _meant(found, source.types[name])
        if source.is_text or source.types[name] == "JSON"
        else found
        for found, name in zip(raw, columns["group"], strict=True)
    ]
    encoder = GroupEncoder(raw, missing_group)
    codes = encode_cells(encoder, raw, found["n"], problems)
    _count_bad(source, columns, found, problems)
    raise_all(problems, _label_problems(found, positive, columns["label"]))
    sums = {name: found[name].astype(np.float64) for name in ("n", "wh", "wh2")}
    for name in ("w", "w2"):
        sums[name] = found[name].astype(np.float64) if name in found else sums["n"]
    cells = Cells(codes, found["y"], grid.at_count(found["b"]), **sums)
    return Tally.build(grid, encoder.groups, cells, columns)


def _meant(texts: Any, kind: str) -> Any:
    """The groups of a CSV, or of JSON, as what they mean."""
    meaning = json_values(texts.tolist()) if kind == "JSON" else typed(texts.tolist())
    return as_objects([None if text is None else meaning[text] for text in texts.tolist()])


def _counted(
    source: Source, query: str, columns: dict[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """The cells; first as quick as can be, and once more with care if anything is wrong.

    Statistics that leave NaN out may put it among the good rows, but not into finite sums.
    """
    source.run(TRUST)
    try:
        found = source.columns_of(query, progress)
    except DataError:
        for role in ("score", "weight"):
            if columns[role] is not None:
                source.check_number(role, columns[role])
        raise
    source.run(DOUBT)
    good = all(np.isfinite(found[name].astype(float)).all() for name in _SUMS if name in found)
    good = good and all((found[name] >= 0).all() for name in ("y", "b"))
    good = good and ("bad_weight" not in found or not found["bad_weight"].any())
    return found if good else source.columns_of(query)


def _tally_query(source: Source, columns: dict[str, Any], grid: Grid, positive: Any) -> str:
    wrong = [
        missing_column(role, name, list(source.types))
        for role in ("score", "label", "group", "weight")
        for name in (columns[role] if role == "group" else [columns[role]])
        if name is not None and name not in source.types
    ]
    if wrong:
        raise UsageError(wrong)
    for role, name in (("label", columns["label"]), *(("group", n) for n in columns["group"])):
        source.check_scalar(role, name)
    groups = [source.column("group", name) for name in columns["group"]]
    named = ", ".join(f"{group} AS g{i}" for i, group in enumerate(groups))
    label = source.column("label", columns["label"])
    h = source.number("score", columns["score"])
    first = f"SELECT {named}, {h} AS h, {_label(label, source, columns, positive)} AS y"
    seen = ""
    if positive is not None:
        first += f", {_shown_label(label, source)} AS l"
        seen = ", min(l) AS least_label, max(l) AS most_label"
    sums, keys = "sum(h) AS wh, sum(h * h) AS wh2", [f"g{i}" for i in range(len(groups))]
    if columns["weight"] is not None:
        first += f", {source.number('weight', columns['weight'])} AS w"
        keys.append(f"{_WEIGHT_STATUS} AS bad_weight")
        sums = "sum(w) AS w, sum(w * w) AS w2, sum(w * h) AS wh, sum(w * h * h) AS wh2"
    bins = (
        f"CASE WHEN h BETWEEN 0e0 AND 1e0 THEN {_place('h', grid)} "
        "WHEN h IS NULL OR isnan(h) THEN -1e0 WHEN isinf(h) THEN -2e0 ELSE -3e0 END"
    )
    return (
        f"WITH picked AS ({first} FROM {source.reader}) "
        f"SELECT {', '.join(keys)}, y, {bins} AS b, "
        f"count(*) AS n, {sums}{seen} FROM picked GROUP BY ALL"
    )


def _place(h: str, grid: Grid) -> str:
    """A number for each bin, cheaper than the bin itself; `Grid.at_count` turns it into the bin.

    It is the equal part of a score, plus the tenths and further edges up to it, all as doubles:
    casts to whole numbers and a comparison for each tenth would take half of the time.
    """
    # Of all doubles only this one's product rounds across a tenth.
    tenths = f"floor({h} * 10e0) - ({h} = {sql.literal(BELOW_NINE_TENTHS)})::DOUBLE"
    edges = "".join(f" + ({h} >= {sql.literal(edge)})::DOUBLE" for edge in grid.edges)
    return f"{_part(h, grid)} + {tenths}{edges}"


def _part(h: str, grid: Grid) -> str:
    bins = sql.literal(float(grid.bins))
    part = f"floor({h} * {bins})"
    if grid.is_dyadic:
        return part
    # The product may round across an edge: compare with the edge itself.
    return f"({part} - ({h} < {part} / {bins})::DOUBLE + ({h} >= ({part} + 1) / {bins})::DOUBLE)"


def _label(label: str, source: Source, columns: dict[str, Any], positive: Any) -> str:
    """The label as 0 and 1; -1 for null, -2 for anything else."""
    kind = source.types[columns["label"]]
    if source.is_text:
        return _text_label(label, positive)
    if positive is not None:
        nan = f"OR isnan({label}) " if kind in ("DOUBLE", "FLOAT") else ""
        same = f"({_is_positive(label, kind, positive)})::INT"
        return f"CASE WHEN {label} IS NULL {nan}THEN -1 ELSE {same} END"
    if kind == "BOOLEAN":
        return f"CASE WHEN {label} IS NULL THEN -1 ELSE {label}::INT END"
    if sql.is_number(kind):
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


def _shown_label(label: str, source: Source) -> str:
    """The label as a text; 0 and 0.0 are the same number, however a CSV writes it."""
    if not source.is_text:
        return f"CAST({label} AS VARCHAR)"
    return f"coalesce(CAST({sql.as_number(label)} AS VARCHAR), {label})"


def _text_label(label: str, positive: Any) -> str:
    """The label of a CSV: a number, true or false, or a text of which one is positive."""
    number = sql.as_number(label)
    missing = f"WHEN {label} IS NULL OR coalesce(isnan({number}), FALSE) THEN -1"
    if positive is None:
        return (
            f"CASE WHEN {label} = '0' THEN 0 WHEN {label} = '1' THEN 1 {missing} "
            f"WHEN {number} = 0 OR lower({label}) = 'false' THEN 0 "
            f"WHEN {number} = 1 OR lower({label}) = 'true' THEN 1 ELSE -2 END"
        )
    same = f"{label} = {sql.literal(str(positive))}"
    if isinstance(positive, bool) or str(positive).lower() in ("true", "false"):
        same = f"lower({label}) = {sql.literal(str(positive).lower())}"
    else:
        with suppress(TypeError, ValueError):
            same += f" OR {number} = {sql.literal(float(positive))}"
    return f"CASE {missing} WHEN {same} THEN 1 ELSE 0 END"


def _count_bad(
    source: Source, columns: dict[str, Any], found: dict[str, Any], problems: Problems
) -> None:
    for role, key in (("score", "b"), ("label", "y"), ("weight", "bad_weight")):
        for code, kind in WRONG[role].items() if key in found else ():
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
    shown = number if source.is_text and role != "label" else name
    row = source.run(f"SELECT {shown} FROM {source.reader} WHERE {where} LIMIT 1").fetchone()
    if row and source.is_text and role == "label":
        return typed(row)[row[0]]
    return row[0] if row else None


def _is_positive(label: str, kind: str, positive: Any) -> str:
    """The condition that a label is the positive one, by the type of the column.

    On the command line every value is a text, so "2" is also the number 2 and "True" the boolean.
    """
    text = str(positive)
    if kind == "BOOLEAN":
        known = {"true": "TRUE", "1": "TRUE", "false": "FALSE", "0": "FALSE"}
        return f"{label} = {known[text.lower()]}" if text.lower() in known else "FALSE"
    if sql.is_number(kind):
        with suppress(TypeError, ValueError):
            # Whole numbers as such: DuckDB would round the column to compare it with a double.
            return f"{label} = {sql.literal(int(text))}"
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
