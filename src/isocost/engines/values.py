"""What values mean: groups as small codes, labels as 0 and 1, texts as numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from isocost.engines.problems import Problems
from isocost.errors import DataError, Problem
from isocost.groups import Group, Scalar, as_group, as_scalar, is_exact, is_null
from isocost.typing import Bools, Ints

WHOLE = "-?[0-9]+"
"""What a whole number looks like, for Python and for DuckDB."""

NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
"""What a number looks like; Python would also accept 0_1."""

# As Python writes it and in 64 bits: 007 and +7 are names, not numbers.
_PLAIN_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")

_BOOLEANS = {"true": True, "false": False}


def _int(text: str) -> int | None:
    value = int(text) if _PLAIN_WHOLE.fullmatch(text) else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def _float(text: str) -> float | None:
    # Digits with leading zeros, or too many, are names.
    if not NUMBER.fullmatch(text) or re.match(r"[-+]?0[0-9]", text):
        return None
    if _is_whole(text) and (_int(text) is None or not is_exact(int(text))):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _is_whole(text: str) -> bool:
    return re.fullmatch(WHOLE, text) is not None


def _bool(text: str) -> bool | None:
    return _BOOLEANS.get(text.lower())


_MEANINGS: dict[type, Callable[[str], Scalar | None]] = {int: _int, float: _float, bool: _bool}


def typed(texts: Iterable[str | None]) -> dict[str, Scalar]:
    """What each text means: whole numbers, numbers or booleans if all are, else the texts.

    Examples
    --------
    >>> typed(["1", "2", None]), typed(["1", "2.5"]), typed(["1", "x"]), typed(["007", "7"])
    ({'1': 1, '2': 2}, {'1': 1.0, '2.5': 2.5}, {'1': '1', 'x': 'x'}, {'007': '007', '7': '7'})
    """
    distinct = [text for text in dict.fromkeys(texts) if text is not None]
    for read in _MEANINGS.values():
        values: dict[str, Any] = {text: read(text) for text in distinct}
        if None not in values.values():
            return values
    return {text: text for text in distinct}


def json_values(texts: Iterable[str | None]) -> dict[str, Any]:
    """What each text of JSON means; integers among fractions become floats if none is rounded.

    Examples
    --------
    >>> json_values(['"a"', "1", None]), json_values(["1", "2.5"])
    ({'"a"': 'a', '1': 1}, {'1': 1.0, '2.5': 2.5})
    >>> json_values(["9007199254740993", "2.5"])
    {'9007199254740993': 9007199254740993, '2.5': 2.5}
    """
    values = {text: json.loads(text) for text in texts if text is not None}
    numbers = set(map(type, values.values())) == {int, float}
    if numbers and all(map(is_exact, values.values())):
        return {text: float(value) for text, value in values.items()}
    return values


def read_as(text: str, kinds: Collection[type]) -> Scalar:
    """What a text means where values of some types are expected: the first type that fits.

    Examples
    --------
    >>> read_as("1", {int}), read_as("1", {str}), read_as("1", {float}), read_as("x", {int})
    (1, '1', 1.0, 'x')
    """
    for kind, read in _MEANINGS.items():
        value = read(text) if kind in kinds else None
        if value is not None:
            return value
    return text


Array = npt.NDArray[Any]


class LabelReader:
    """Labels as 0 and 1, with everything else counted as a problem."""

    def __init__(self, positive: Any = None) -> None:
        self.positive = positive
        self.seen: dict[Any, None] = {}

    def read(self, chunk: Array, problems: Problems, start: int) -> Ints:
        """The chunk as 0 and 1; other values become 0 and are counted."""
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
        step = "make it two-valued first, for example with label == 'x'"
        return [Problem(title, "must have two values", f"{len(seen)} or more: {shown}", step)]
    if seen and positive not in seen:
        rule = f"must hold the positive label {positive!r}"
        step = "name the positive label exactly as it stands in the column, with its type"
        return [Problem(title, rule, f"only {shown}", step)]
    return []


_ODD = object()
"""Stands for a value that is not a text, number or boolean; equal to no label."""


def _scalars(chunk: Array) -> list[Any]:
    """Labels as texts, numbers and booleans; None where they are null."""
    # tolist would turn dates into nanoseconds.
    values = list(chunk) if chunk.dtype.kind in "mM" else chunk.tolist()
    if set(map(type, values)) <= {str, int, bool, type(None)}:
        return values
    return [_scalar(value) for value in values]


def _scalar(value: Any) -> Any:
    if is_null(value):
        return None
    # NumPy's time spans are integers, and 1 nanosecond would be the label 1.
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        return value.item()
    return value if isinstance(value, str | int | float | Decimal) else _ODD


def _as_unsigned(chunk: Array) -> Array:
    """The same bytes unsigned: negative numbers become large, so one maximum finds them."""
    return chunk.view(f"u{chunk.dtype.itemsize}")


def _as_ints(good: Any) -> Ints:
    return np.asarray(good, dtype=np.intp)


def _count(
    problems: Problems,
    kind: str,
    bad: Bools,
    chunk: Array,
    start: int,
    example: bool = True,
) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        first = int(rows[0])
        problems.add("label", kind, len(rows), chunk[first] if example else None, start + first)


_TABLE = 2**16

_DISTINCT: tuple[set[type], ...] = ({str}, {int}, {bool})


class Encoded:
    """A column that its frame has already encoded: codes into ``values``, -1 for null.

    ``read`` turns each value that occurs into a group.
    """

    def __init__(
        self, codes: Array, values: Sequence[Any], read: Callable[[Any], Group] = as_group
    ) -> None:
        # A dictionary may contain unused values, the same value twice, or a null.
        places: dict[tuple[type, Group], int] = {}
        table = np.full(len(values) + 1, -1, dtype=np.intp)
        used = np.bincount(np.asarray(codes)[np.asarray(codes) >= 0], minlength=len(values))
        for code in np.flatnonzero(used).tolist():
            if not is_null(values[code]):
                group = read(values[code])
                table[code] = places.setdefault((type(group), group), len(places))
        self.values: list[Group] = [group for _, group in places]
        plain = np.array_equal(table[:-1], np.arange(len(values)))
        self.codes: Array = codes if plain else table[codes]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, part: slice) -> Array:
        return self.codes[part]


class Reader(Protocol):
    """Turns chunks of one group column into codes; ``values`` are those seen so far."""

    values: list[Any]

    def encode(self, chunk: Array) -> Ints:
        """Codes into ``values``; -1 where the group is null."""
        ...

    def code_of(self, value: Group) -> int:
        """The code of a value, which may be new."""
        ...


class _EncodedReader:
    def __init__(self, column: Encoded) -> None:
        self.values: list[Any] = list(column.values)

    def encode(self, chunk: Array) -> Ints:
        return chunk.astype(np.intp, copy=False)

    def code_of(self, value: Group) -> int:
        for code, known in enumerate(self.values):
            if known == value and type(known) is type(value):
                return code
        self.values.append(value)
        return len(self.values) - 1


class _NumberReader:
    """Integers and booleans through a table; other floats by sorting."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.values: list[Any] = []
        self.codes: dict[Any, int] = {}
        self.low = 0
        self.table: Ints = np.empty(0, dtype=np.intp)
        self.has_holes = self.is_identity = False

    def encode(self, chunk: Array) -> Ints:
        if self.kind == "b":
            chunk = chunk.view(np.uint8)
        elif self.kind == "f":
            null = np.isnan(chunk)
            if null.any():
                codes = np.full(len(chunk), -1, dtype=np.intp)
                codes[~null] = self.encode(chunk[~null])
                return codes
            small = len(chunk) == 0 or np.abs(chunk).max() < _TABLE
            whole = chunk.astype(np.int64) if small else None
            if whole is None or not np.array_equal(whole, chunk):
                return self._by_sorting(chunk)
            chunk = whole
        return self._by_table(chunk)

    def code_of(self, value: Group) -> int:
        kind = {"b": bool, "f": float}.get(self.kind, int)
        if type(value) is kind:
            return self._code(value)
        self.values.append(value)
        return self.codes.setdefault(("other", value), len(self.values) - 1)

    def _by_table(self, chunk: Array) -> Ints:
        if not len(chunk):
            return np.empty(0, dtype=np.intp)
        if self.kind == "u" and chunk.max() > np.iinfo(np.intp).max:
            return self._by_sorting(chunk)
        index = chunk.astype(np.intp, copy=False)
        index = index - self.low if self.low else index
        # Unsigned, numbers below the table are large: one maximum checks both ends.
        if index.view(np.uintp).max() >= len(self.table):
            if not self._widen(int(chunk.min()), int(chunk.max())):
                return self._by_sorting(chunk)
            index = chunk.astype(np.intp, copy=False) - self.low
        if self.has_holes:
            fresh = np.bincount(index, minlength=len(self.table)).astype(bool) & (self.table < 0)
            for value in np.flatnonzero(fresh):
                self.table[value] = self._code(int(value) + self.low)
            self._look()
        return index if self.is_identity else self.table[index]

    def _widen(self, low: int, high: int) -> bool:
        """Extend the table to the numbers from low to high; false if it would be too large."""
        if len(self.table):
            low, high = min(low, self.low), max(high, self.low + len(self.table) - 1)
        if high - low >= _TABLE:
            return False
        self.low = low
        self.table = np.full(high - low + 1, -1, dtype=np.intp)
        for value, code in self.codes.items():
            if not isinstance(value, tuple) and low <= value <= high and value == int(value):
                self.table[int(value) - low] = code
        self._look()
        return True

    def _look(self) -> None:
        self.has_holes = bool(self.table.min() < 0)
        self.is_identity = np.array_equal(self.table, np.arange(len(self.table)))

    def _by_sorting(self, chunk: Array) -> Ints:
        unique, inverse = np.unique(chunk, return_inverse=True)
        return np.array([self._code(v) for v in unique.tolist()], dtype=np.intp)[inverse]

    def _code(self, value: Any) -> int:
        if value not in self.codes:
            self.codes[value] = len(self.values)
            kind = {"b": bool, "f": float}.get(self.kind, int)
            self.values.append(as_group(kind(value)))
        return self.codes[value]


class _ObjectReader:
    """Anything else, through a dictionary."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.codes: dict[tuple[type, Any], int] = {}

    def encode(self, chunk: Array) -> Ints:
        # tolist would turn dates into nanoseconds.
        values = list(chunk) if chunk.dtype.kind in "mM" else chunk.tolist()
        # Each value once, unless two may be equal in Python, such as 1 and True.
        if is_uniform(values):
            codes = {value: self._code(value) for value in dict.fromkeys(values)}
            return np.fromiter(map(codes.__getitem__, values), dtype=np.intp, count=len(values))
        return np.array([self._code(value) for value in values], dtype=np.intp)

    def code_of(self, value: Group) -> int:
        return self._code(value)

    def _code(self, value: Any) -> int:
        if is_null(value):
            return -1
        group = as_scalar(value)
        key = (type(group), group)
        if key not in self.codes:
            self.codes[key] = len(self.values)
            self.values.append(group)
        return self.codes[key]


def encoder_for(column: Any) -> Reader:
    """The reader for a column."""
    if isinstance(column, Encoded):
        return _EncodedReader(column)
    if column.dtype.kind in "biuf":
        return _NumberReader(column.dtype.kind)
    return _ObjectReader()


class GroupEncoder:
    """The groups that one or several columns form, collected chunk by chunk."""

    def __init__(self, columns: Sequence[Any], missing_group: Group | None) -> None:
        self.readers = [encoder_for(column) for column in columns]
        self.missing = missing_group
        self.groups: list[Group] = []
        self._places: dict[tuple[int, ...], int] = {}

    def encode(self, chunks: Sequence[Array], problems: Problems, start: int) -> Ints:
        """Codes into ``groups``; null groups without a name are counted as a problem."""
        parts = [reader.encode(chunk) for reader, chunk in zip(self.readers, chunks, strict=True)]
        for i, part in enumerate(parts):
            if len(part) and part.min() < 0:
                parts[i] = self._fill(self.readers[i], part, problems, start)
        if len(parts) == 1:
            known = self.readers[0].values
            self.groups.extend(known[len(self.groups) :])
            return parts[0]
        return self._combine(parts)

    def encode_cells(
        self, columns: Sequence[Array], n: npt.NDArray[Any], problems: Problems
    ) -> Ints:
        """The codes of cells; nulls are counted in rows, of which each cell has n."""
        cells = Problems(problems.names)
        codes = self.encode(columns, cells, 0)
        if cells.counts:
            null = np.zeros(len(n), dtype=bool)
            for column in columns:
                null |= np.array([is_null(value) for value in column.tolist()])
            problems.add("group", "null", int(n[null].sum()))
        return codes

    def _fill(self, reader: Reader, codes: Ints, problems: Problems, start: int) -> Ints:
        null = codes < 0
        if self.missing is None:
            rows = np.flatnonzero(null)
            problems.add("group", "null", len(rows), row=start + int(rows[0]))
            # The error is raised at the end; until then they count as the first group.
            if not reader.values:
                reader.values.append("")
            return np.where(null, 0, codes)
        return np.where(null, reader.code_of(self.missing), codes)

    def _combine(self, parts: list[Ints]) -> Ints:
        # Two columns at a time, so that the keys stay small however many columns there are.
        key, combinations = parts[0], [(code,) for code in range(len(self.readers[0].values))]
        for part, reader in zip(parts[1:], self.readers[1:], strict=True):
            size = len(reader.values)
            unique, key = _unique_small(key * size + part, len(combinations) * size)
            combinations = [
                (*combinations[value // size], value % size) for value in unique.tolist()
            ]
        codes = np.empty(len(combinations), dtype=np.intp)
        for i, combination in enumerate(combinations):
            if combination not in self._places:
                self._places[combination] = len(self.groups)
                values = (r.values[k] for r, k in zip(self.readers, combination, strict=True))
                self.groups.append(tuple(values))
            codes[i] = self._places[combination]
        return codes[key]


def _unique_small(key: Ints, size: int) -> tuple[Ints, Ints]:
    """np.unique with its inverse, by counting where the keys are small."""
    if size > _TABLE:
        unique, inverse = np.unique(key, return_inverse=True)
        return unique, inverse
    unique = np.flatnonzero(np.bincount(key, minlength=size))
    rank = np.zeros(size, dtype=np.intp)
    rank[unique] = np.arange(len(unique))
    return unique, rank[key]


def column_array(role: str, column: Any) -> Any:
    """A column as a one-dimensional array; an error names it."""
    if isinstance(column, Encoded):
        return column
    try:
        array = column if isinstance(column, np.ndarray) else _from_list(column)
    except ValueError as error:
        step = "pass one value per row"
        raise DataError(Problem(role, "must be a column", str(error), step)) from error
    if isinstance(array, np.ma.MaskedArray):
        array = unmasked(array)
    if array.dtype.kind == "T":
        array = array.astype(object)
    if array.ndim != 1:
        got = f"an array of shape {array.shape}"
        raise DataError(Problem(role, "must have one dimension", got, "pass one value per row"))
    return array


def unmasked(array: Array) -> Array:
    """A masked array as objects, with None where it is masked."""
    plain: Array = np.asarray(array).astype(object)
    plain[np.ma.getmaskarray(array)] = None
    return plain


def _from_list(values: Any) -> Array:
    if str(getattr(values, "dtype", None)) in ("Int128", "UInt128"):
        # Polars panics in to_numpy, and a panic is not an Exception.
        return as_objects(values.to_list())
    if hasattr(values, "to_numpy"):
        try:
            return np.asarray(values.to_numpy())
        except Exception:
            # Each library has its own error for a type that NumPy does not have.
            listed = values.to_pylist if hasattr(values, "to_pylist") else values.to_list
            return as_objects(listed())
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    return as_objects(values) if _is_mixed(values) else np.asarray(values)


def as_objects(values: Sequence[Any]) -> Array:
    """Values as they are; NumPy would make a second dimension of lists."""
    return np.fromiter(values, dtype=object, count=len(values))


def is_uniform(values: Sequence[Any]) -> bool:
    """Whether all values are texts, whole numbers or booleans, but for None.

    Then no two different groups are equal in Python, as 1 and True are.
    """
    return set(map(type, values)) - {type(None)} in _DISTINCT


def _is_mixed(values: Sequence[Any]) -> bool:
    """Whether NumPy would change values: [1, "1"], [None, "a"], [1, True], [2**53 + 1, 0.5]."""
    kinds = set(map(type, values))
    texts = {kind for kind in kinds if issubclass(kind, str)}
    booleans = {kind for kind in kinds if issubclass(kind, bool | np.bool_)}
    others = kinds - texts - booleans
    if sum(map(bool, (texts, booleans, others))) > 1:
        return True
    whole = {kind for kind in others if issubclass(kind, int | np.integer)}
    if not whole or type(None) in others:
        return False
    if whole == others:
        # NumPy makes doubles of [2**63, 1].
        return not -(2**63) <= min(values) <= max(values) < 2**63
    return not all(is_exact(int(v)) for v in values if isinstance(v, int | np.integer))
