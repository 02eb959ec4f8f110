"""Labels as 0 and 1, chunk by chunk."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.engines.problems import Problems
from isocost.errors import Problem
from isocost.groups import is_null

__all__ = ["LabelReader", "two_valued"]

Ints = npt.NDArray[np.intp]
Array = npt.NDArray[Any]


class LabelReader:
    """Labels as 0 and 1, with everything else counted as a problem."""

    def __init__(self, positive: Any = None) -> None:
        self.positive = positive
        self.seen: dict[Any, None] = {}

    def read(self, chunk: Array, problems: Problems, start: int) -> Ints:
        """The chunk as 0 and 1; what cannot be read becomes 0 and is counted."""
        if self.positive is not None:
            return self._named(chunk, problems, start)
        if chunk.dtype.kind == "b":
            return chunk.astype(np.intp)
        if chunk.dtype.kind in "iuf":
            return self._numbers(chunk, problems, start)
        return self._objects(chunk, problems, start)

    def _numbers(self, chunk: Array, problems: Problems, start: int) -> Ints:
        if chunk.dtype.kind == "f":
            good = (chunk == 0) | (chunk == 1)
            if not good.all():
                null = np.isnan(chunk)
                _count(problems, "null or NaN", null, chunk, start, example=False)
                _count(problems, "other than 0 and 1", ~good & ~null, chunk, start)
                return _as_ints(chunk == 1)
        elif chunk.size and _as_unsigned(chunk).max() > 1:
            _count(problems, "other than 0 and 1", (chunk != 0) & (chunk != 1), chunk, start)
            return _as_ints(chunk == 1)
        return chunk.astype(np.intp, copy=False)

    def _objects(self, chunk: Array, problems: Problems, start: int) -> Ints:
        values = _scalars(chunk)
        null = np.array([value is None for value in values], dtype=bool)
        known: dict[Any, int] = {0: 0, 1: 1, "0": 0, "1": 1}
        labels = np.array([known.get(value, -1) for value in values], dtype=np.intp)
        _count(problems, "null or NaN", null, chunk, start, example=False)
        _count(problems, "other than 0 and 1", (labels < 0) & ~null, chunk, start)
        return np.maximum(labels, 0)

    def _named(self, chunk: Array, problems: Problems, start: int) -> Ints:
        if chunk.dtype.kind in "biuf":
            null = np.isnan(chunk) if chunk.dtype.kind == "f" else np.zeros(len(chunk), dtype=bool)
            distinct = np.unique(chunk[~null]).tolist()
        else:
            values = _scalars(chunk)
            null = np.array([value is None for value in values], dtype=bool)
            odd = np.array([value is _ODD for value in values], dtype=bool)
            _count(problems, "neither text, number nor boolean", odd, chunk, start)
            distinct = list(dict.fromkeys(v for v in values if v is not None and v is not _ODD))
        _count(problems, "null or NaN", null, chunk, start, example=False)
        for value in distinct[:20]:
            self.seen[value] = None
        if chunk.dtype.kind in "biuf":
            return _as_ints([value == self.positive for value in chunk.tolist()])
        return _as_ints([value == self.positive for value in values])

    def finish(self, name: str = "label") -> list[Problem]:
        """What is wrong with the set of labels, once all chunks were read."""
        if self.positive is None:
            return []
        return two_valued(self.positive, list(self.seen), name)


def two_valued(positive: Any, seen: list[Any], name: str) -> list[Problem]:
    """Check that a column named by positive= has at most two values, that one among them."""
    title = "label" if name == "label" else f"label (column {name!r})"
    shown = ", ".join(map(repr, seen[:6])) + (" ..." if len(seen) > 6 else "")
    if len(seen) > 2:
        step = "make it two-valued first; a comparison such as label == 'x' does"
        return [Problem(title, "must have two values", f"{len(seen)} or more: {shown}", step)]
    if seen and positive not in seen:
        rule = f"must hold the positive label {positive!r}"
        step = "name the positive label exactly as it stands in the column, with its type"
        return [Problem(title, rule, f"only {shown}", step)]
    return []


_ODD = object()
"""Stands for a value that is neither text, number nor boolean; equal to no label."""


def _scalars(chunk: Array) -> list[Any]:
    """Labels as texts, numbers and booleans; None where they are null."""
    # tolist would turn dates into numbers of nanoseconds.
    values = list(chunk) if chunk.dtype.kind in "mM" else chunk.tolist()
    if set(map(type, values)) <= {str, int, bool, type(None)}:
        return values
    return [_scalar(value) for value in values]


def _scalar(value: Any) -> Any:
    if is_null(value):
        return None
    # A time span of NumPy is one of its whole numbers, and 1 nanosecond would be the label 1.
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        return value.item()
    return value if isinstance(value, str | int | float | Decimal) else _ODD


def _as_unsigned(chunk: Array) -> Array:
    """The same bytes without a sign: negative numbers become large, so one maximum sees them."""
    return chunk.view(f"u{chunk.dtype.itemsize}")


def _as_ints(good: Any) -> Ints:
    return np.asarray(good, dtype=np.intp)


def _count(
    problems: Problems,
    kind: str,
    bad: npt.NDArray[np.bool_],
    chunk: Array,
    start: int,
    example: bool = True,
) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        first = int(rows[0])
        problems.add("label", kind, len(rows), chunk[first] if example else None, start + first)
