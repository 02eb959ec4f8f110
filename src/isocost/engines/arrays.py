"""Arrays: the kernel that counts cells in chunks, and applies a rule to scores.

And cells that a warehouse has counted, which become a tally here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import compress
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isocost.cells import SUMS, Cells, add_up
from isocost.checks import check_flag, short
from isocost.engines.columns import (
    USUAL_WEIGHTS,
    WRONG,
    GroupEncoder,
    LabelReader,
    Problems,
    as_objects,
    column_array,
    count_bad,
    label_problems,
    missing_cells,
    no_rows,
    nothing_left,
    null_rows,
    number_text,
    text_numbers,
    title_of,
)
from isocost.errors import DataError, IsocostError, Problem
from isocost.grid import PROBABILITY, Grid, Scale
from isocost.groups import Group, as_group, is_null, to_json
from isocost.rules import Rule, unknown_groups
from isocost.tallies import FORMAT, VERSION, Tally, read_fields
from isocost.typing import Bools, Floats, Ints

CHUNK = 2**17
"""Rows per chunk: large enough to hide NumPy's call overhead, small enough for the cache."""

DENSE = 2**22
"""Up to this many possible cells the sums are dense arrays; beyond, only cells that occur."""


def tally_arrays(
    score: Any,
    label: Any,
    groups: Sequence[Any],
    weight: Any = None,
    *,
    grid: Grid,
    positive: Any = None,
    missing_group: Group | None = None,
    names: dict[str, str] | None = None,
    columns: dict[str, Any] | None = None,
    scale: Scale = PROBABILITY,
    decimal: str | None = None,
    drop_missing: bool | None = None,
) -> Tally:
    """Count the cells of columns that are arrays; see :func:`isocost.tally`.

    If ``drop_missing`` is None, errors do not offer it.
    """
    names = names or {}
    problems = Problems(names, scale=scale, decimal=decimal, can_drop=drop_missing is not None)
    score = as_scores(score, problems, "score")
    weight = None if weight is None else as_scores(weight, problems, "weight")
    label = column_array("label", label)
    groups = [column_array("group", column) for column in groups]
    named = {"score": score, "label": label, **({} if weight is None else {"weight": weight})}
    rows = same_length({**named, **{f"group {i}": g for i, g in enumerate(groups)}})
    problems.rows = rows
    if scale.is_open:
        problems.scale = scale.within(*_range(score))
    encoder, labels = GroupEncoder(groups, missing_group), LabelReader(positive)
    totals = _Totals(grid)
    needed = {(columns or {}).get(role, role): column for role, column in named.items()}
    if missing_group is None:
        several = [f"group {i}" for i in range(len(groups))] if len(groups) > 1 else ["group"]
        needed |= dict(zip((columns or {}).get("group", several), groups, strict=True))
    for first in range(0, rows, CHUNK):
        part: Any = slice(first, first + CHUNK)
        start = first
        if drop_missing:
            gone = problems.drop({name: null_rows(one, part) for name, one in needed.items()})
            start, part = 0, first + np.flatnonzero(~gone)
            problems.places = part
            if not len(part):
                continue
        h = _checked_scores(score[part], problems, start)
        w = None if weight is None else _checked_weights(weight[part], problems, start)
        y = labels.read(label[part], problems, start)
        g = encoder.encode([column[part] for column in groups], problems, start)
        totals.add(h, y, g, w, len(encoder.groups))
    if any(role == "score" for role, _ in problems.counts):
        problems.span = (*_range(score), bool((score[np.isfinite(score)] % 1.0 == 0.0).all()))
    problems.check(labels.finish(names.get("label", "label")))
    problems.places = None
    ways = {"missing_group": missing_group, "drop_missing": bool(drop_missing)}
    reading = problems.reading(columns, positive, **ways)
    return Tally.build(grid, encoder.groups, totals.cells(), reading)


def _range(score: Floats) -> tuple[float, float]:
    """The least and the greatest finite number."""
    finite = score[np.isfinite(score)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)


def as_scores(column: Any, problems: Problems, role: str) -> Floats:
    """A column as floats; null becomes NaN, and values that are not numbers are counted."""
    array = column_array(role, column)
    if array.dtype.kind in "biuf":
        return np.asarray(array, dtype=np.float64)
    values = list(array)
    if set(map(type, values)) <= {float, int, bool, type(None)}:
        try:
            return np.asarray(array, dtype=np.float64)  # None becomes NaN
        except OverflowError:
            pass
    # NumPy would also convert "0_1", b"1", nanoseconds and the real part of complex numbers.
    numbers = np.array([_as_number(value, problems.decimal or ".") for value in values])
    wrong = [row for row, number in enumerate(numbers) if number == -np.inf]
    texts = [str(value) for value in values if isinstance(value, str)]
    if wrong and problems.decimal != "," and any("," in text for text in texts):
        return _text_scores(texts, values, problems, role)
    if wrong:
        problems.add(role, "not a number", len(wrong), values[wrong[0]], wrong[0])
        numbers[wrong] = 0.5
    return numbers


def _text_scores(
    texts: Sequence[str], values: Sequence[Any], problems: Problems, role: str
) -> Floats:
    """A column of texts, not all of which are numbers with the decimal sign that was asked for."""
    asked = problems.decimal
    numbers = text_numbers(texts, asked or ".")
    if asked is None and numbers.fits_comma and len(texts) == sum(not is_null(v) for v in values):
        problems.decimal = ","
        return np.array([_as_number(value, ",") for value in values])
    problems.texts.append(numbers.problem(title_of(role, problems.names.get(role, role)), asked))
    return np.full(len(values), 0.5)


def _as_number(value: Any, decimal: str) -> float:
    """A value as a float: NaN for null, minus infinity if it is not a number."""
    if is_null(value):
        return np.nan
    if isinstance(value, str):
        text = number_text(value, decimal)
        return -np.inf if text is None else float(text)
    # NumPy's time spans are integers.
    span = isinstance(value, np.generic) and value.dtype.kind == "m"
    if span or not isinstance(value, Real | Decimal | np.bool_):
        return -np.inf
    try:
        return float(value)
    except OverflowError:
        return -np.inf


def same_length(columns: dict[str, Any]) -> int:
    """The common length of columns, at least 1."""
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        got = ", ".join(f"{name} has {size:,}" for name, size in sizes.items())
        rule, step = "columns must have the same length", "pass columns of the same rows"
        raise DataError(Problem("data", rule, got, step))
    rows = next(iter(sizes.values()))
    if rows == 0:
        raise no_rows()
    return rows


def _checked_scores(h: Floats, problems: Problems, start: int) -> Floats:
    """The scores as probabilities; bad ones are counted and replaced."""
    scale = problems.scale
    # NaN fails both comparisons, so two reductions check everything.
    if not (h.min() >= scale.low and h.max() <= scale.high) or scale.is_rank:
        wrong = (np.isnan(h), np.isinf(h), np.isfinite(h) & ~scale.holds(h))
        h = _without(h, wrong, problems, "score", start, max(scale.low, 0.0))
    return np.asarray(scale.probability(h), dtype=np.float64)


def _checked_weights(w: Floats, problems: Problems, start: int) -> Floats:
    least, most = USUAL_WEIGHTS
    if w.min() >= least and w.max() <= most:
        return w
    finite = np.isfinite(w)
    extreme = finite & (w > 0.0) & ((w < least) | (w > most))
    wrong = (np.isnan(w), np.isinf(w), w == 0.0, finite & (w < 0.0), extreme)
    return _without(w, wrong, problems, "weight", start, 1.0)


def _without(
    values: Floats,
    wrong: tuple[Bools, ...],
    problems: Problems,
    role: str,
    start: int,
    filler: float,
) -> Floats:
    """The values with wrong ones counted and replaced; ``wrong`` is in the order of the codes."""
    bad = np.zeros(len(values), dtype=bool)
    for (code, kind), these in zip(WRONG[role].items(), wrong, strict=True):
        rows = np.flatnonzero(these)
        if len(rows):
            value = None if code == -1 else values[rows[0]]
            problems.add(role, kind, len(rows), value, start + int(rows[0]))
        bad |= these
    return np.where(bad, filler, values)


class _Totals:
    """The five sums of every cell, added chunk by chunk."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.full: dict[str, Floats] = {}
        self.sparse: list[Cells] = []
        self.weighted = False

    def add(self, h: Floats, y: Ints, g: Ints, w: Floats | None, groups: int) -> None:
        """Add a chunk with scores h, labels y, group codes g and weights w."""
        cell = g * 2
        cell += y
        cell *= self.grid.size
        cell += self.grid.index(h)
        size = groups * 2 * self.grid.size
        self.weighted = w is not None
        if size > DENSE:
            cell, inverse = np.unique(cell, return_inverse=True)
            sums = _sums(inverse, h, w, len(cell))
            self.sparse.append(self._located(cell, sums))
            return
        for name, added in _sums(cell, h, w, size).items():
            before = self.full.get(name)
            if before is not None:
                added[: len(before)] += before
            self.full[name] = added

    def cells(self) -> Cells:
        """All cells that occur."""
        chunks = list(self.sparse)
        if self.full or not chunks:
            full = self.full or dict.fromkeys(SUMS, np.zeros(0))
            cell = np.flatnonzero(full["n"])
            sums = {name: values[cell] for name, values in full.items()}
            chunks.append(self._located(cell, sums))
        return Cells.merge(chunks)

    def _located(self, cell: Ints, sums: dict[str, Floats]) -> Cells:
        if not self.weighted:
            sums = {**sums, "w": sums["n"], "w2": sums["n"]}
        rest, bin_ = np.divmod(cell, self.grid.size)
        group, label = np.divmod(rest, 2)
        return Cells(group, label, bin_, **sums)


def _sums(cell: Ints, h: Floats, w: Floats | None, size: int) -> dict[str, Floats]:
    n = np.bincount(cell, minlength=size).astype(np.float64)
    if w is None:
        return {"n": n, "wh": add_up(cell, h, size), "wh2": add_up(cell, h * h, size)}
    product = w * h
    return {
        "n": n,
        "w": add_up(cell, w, size),
        "w2": add_up(cell, w * w, size),
        "wh": add_up(cell, product, size),
        "wh2": add_up(cell, product * h, size),
    }


def apply_arrays(
    rule: Rule,
    score: Any,
    groups: Sequence[Any],
    coins: Callable[[], npt.NDArray[np.uint64]],
    *,
    unknown: Literal["error", "keep"] = "error",
    missing_group: Group | None = None,
    names: dict[str, str] | None = None,
    scale: Scale = PROBABILITY,
    decimal: str | None = None,
) -> tuple[Floats, Floats]:
    """The scores as probabilities before and after; ``coins`` is called only when needed."""
    problems = Problems(names or {}, scale=scale, decimal=decimal)
    score = as_scores(score, problems, "score")
    groups = [column_array("group", column) for column in groups]
    problems.rows = rows = same_length(
        {"score": score, **{f"group {i}": g for i, g in enumerate(groups)}}
    )
    encoder = GroupEncoder(groups, missing_group)
    codes = np.empty(rows, dtype=np.intp)
    probabilities = score if scale.is_plain else np.empty(rows)
    for start in range(0, rows, CHUNK):
        part = slice(start, start + CHUNK)
        checked = _checked_scores(score[part], problems, start)
        if not scale.is_plain:
            probabilities[part] = checked
        codes[part] = encoder.encode([column[part] for column in groups], problems, start)
    problems.check()
    known = set(rule.groups)
    others = [group for group in encoder.groups if group not in known]
    if others and unknown == "error":
        raise unknown_groups(others, rule.groups)
    thrown = coins() if rule.needs_coin else np.zeros(rows, dtype=np.uint64)
    score = probabilities
    out: Floats = score.copy()
    # NumPy sorts small integers in one pass.
    small = codes.astype(np.uint16) if len(encoder.groups) <= 2**16 else codes
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(encoder.groups)))
    for group, first, last in zip(encoder.groups, [0, *ends[:-1]], ends, strict=True):
        if rule.segments(group):
            mine = order[first:last]
            out[mine] = _repair(rule, group, score[mine], thrown[mine])
    return score, out


def _repair(rule: Rule, group: Group, h: Floats, thrown: npt.NDArray[np.uint64]) -> Floats:
    """The scores of one group after the rule."""
    out: Floats = h.copy()
    for segment in rule.segments(group):
        inside = segment.holds(h)
        for row, low, high in segment.outcomes():
            chosen = inside & (thrown >= np.uint64(low)) & (thrown < np.uint64(high))
            out[chosen] = row.after(h[chosen])
    return out


def cell_columns(made_with: Mapping[str, Any]) -> list[str]:
    """The columns that the query returns, in order."""
    names = made_with["columns"]
    weighted, named = names["weight"] is not None, has_named_label(made_with["positive"])
    keys = [f"group_{i + 1}" for i in range(len(names["group"]))]
    sums = ["w", "w2", "wh", "wh2"] if weighted else ["wh", "wh2"]
    seen = ["least_label", "most_label"] if named else []
    status = ["weight_problem"] if weighted else []
    return ["made_with", *keys, "label", "bin", *status, "n", *sums, *seen]


def has_named_label(positive: Any) -> bool:
    """True if labels must be checked for a third value, which booleans do not have."""
    return positive is not None and not isinstance(positive, bool)


_CODES = {"score": "bin", "label": "label", "weight": "weight_problem"}
"""The column with the codes of bad rows, by the role of the bad value."""


def tally_from_cells(
    cells: Any, *, missing_group: Group | None = None, drop_missing: bool = False
) -> Tally:
    """The tally of the cells that :func:`isocost.tally_sql` had a warehouse count.

    Parameters
    ----------
    cells : list of rows, dict of columns, or any eager frame that narwhals knows
        What the query returned; a row is a tuple or a mapping.  The rows of several runs of the
        same query may be put together.
    missing_group : optional
        The group of rows whose group is null; without it they are an error.
    drop_missing : bool
        True to leave out rows without a score, label, group or weight, as in :func:`isocost.tally`.

    Returns
    -------
    Tally

    Notes
    -----
    The errors are those of :func:`isocost.tally`.  Bins, edges and the names of the columns come
    back with the rows, so they need not be passed again.
    """
    columns = _columns_of(cells)
    made_with = _made_with(columns)
    names: dict[str, Any] = made_with["columns"]
    weighted, positive = names["weight"] is not None, made_with["positive"]
    needed = cell_columns(made_with)
    missing = [name for name in needed if name not in columns]
    if missing:
        raise _foreign(f"no column {missing[0]!r}")
    whole = ["label", "bin", "n", *(["weight_problem"] if weighted else [])]
    counts = {name: _whole(columns[name], name) for name in whole}
    problems = Problems({k: v for k, v in names.items() if isinstance(v, str)}, can_drop=True)
    problems.names["group"] = ", ".join(names["group"])
    problems.rows = int(counts["n"].sum())
    raw = [as_objects(columns[f"group_{i + 1}"]) for i in range(len(names["group"]))]
    missing_group = None if missing_group is None else as_group(missing_group)
    codes_of = {role: counts[key] for role, key in _CODES.items() if key in counts}
    if check_flag("drop_missing", drop_missing):
        lacking = missing_cells(codes_of, raw if missing_group is None else [], names)
        kept = ~problems.drop(lacking, counts["n"])
        if not kept.any():
            raise nothing_left(problems.dropped, problems.missing)
        counts, codes_of = ({k: v[kept] for k, v in one.items()} for one in (counts, codes_of))
        columns = {k: list(compress(values, kept)) for k, values in columns.items()}
        raw = [values[kept] for values in raw]
    encoder = GroupEncoder(raw, missing_group)
    codes = encoder.encode_cells(raw, counts["n"], problems)
    good = count_bad(codes_of, counts["n"], problems)
    seen = [as_objects(columns[key]) for key in needed if key in ("least_label", "most_label")]
    problems.check(label_problems(counts["label"], seen, positive, names["label"], str))
    sums = {
        name: _floats(columns[name], good, name) for name in needed if name in SUMS and name != "n"
    }
    content = {
        "format": FORMAT,
        "version": VERSION,
        "bins": made_with["bins"],
        "edges": made_with["edges"],
        "reading": problems.reading(
            names, positive, missing_group=missing_group, drop_missing=drop_missing
        ).to_dict(),
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


def _columns_of(cells: Any) -> dict[str, list[Any]]:
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
    """The settings of the query, according to the rows; they are checked, not trusted."""
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
