"""Groups as small whole numbers, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from isocost.engines.problems import Problems
from isocost.errors import DataError, Problem
from isocost.groups import Group, as_group, as_scalar, is_exact, is_null

__all__ = [
    "Encoded",
    "GroupEncoder",
    "Reader",
    "as_objects",
    "column_array",
    "encoder_for",
    "is_uniform",
]

Ints = npt.NDArray[np.intp]
Array = npt.NDArray[Any]

_TABLE = 2**16
_DISTINCT: tuple[set[type], ...] = ({str}, {int}, {bool})


class Encoded:
    """A column that its frame has already encoded: codes into ``values``, -1 for null.

    ``read`` turns each value that occurs into a group.
    """

    def __init__(
        self, codes: Array, values: Sequence[Any], read: Callable[[Any], Group] = as_group
    ) -> None:
        # A dictionary may hold values that no row has, the same value twice, or a null.
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
    """Turns chunks of one group column into codes, and knows the values found so far."""

    values: list[Any]

    def encode(self, chunk: Array) -> Ints:
        """Codes into ``values``; -1 where the group is null."""
        ...

    def code_of(self, value: Group) -> int:
        """The code of a value, which is new or one that occurs."""
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
    """Whole numbers and booleans through a table; other floats by sorting."""

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
        place = chunk.astype(np.intp, copy=False)
        place = place - self.low if self.low else place
        # Without a sign, numbers below the table are large: one maximum finds both sides.
        if place.view(np.uintp).max() >= len(self.table):
            if not self._widen(int(chunk.min()), int(chunk.max())):
                return self._by_sorting(chunk)
            place = chunk.astype(np.intp, copy=False) - self.low
        if self.has_holes:
            fresh = np.bincount(place, minlength=len(self.table)).astype(bool) & (self.table < 0)
            for value in np.flatnonzero(fresh):
                self.table[value] = self._code(int(value) + self.low)
            self._look()
        return place if self.is_identity else self.table[place]

    def _widen(self, low: int, high: int) -> bool:
        """Make room for the numbers from low to high; false if that would take too much."""
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
        unique, place = np.unique(chunk, return_inverse=True)
        return np.array([self._code(v) for v in unique.tolist()], dtype=np.intp)[place]

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
        # tolist would turn dates into numbers of nanoseconds.
        values = list(chunk) if chunk.dtype.kind in "mM" else chunk.tolist()
        # Each value once, unless Python may hold two of them equal, such as 1 and True.
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
    """The reader that fits a column."""
    if isinstance(column, Encoded):
        return _EncodedReader(column)
    if column.dtype.kind in "biuf":
        return _NumberReader(column.dtype.kind)
    return _ObjectReader()


class GroupEncoder:
    """The groups that one or several columns make, found as the chunks come."""

    def __init__(self, columns: Sequence[Any], missing_group: Group | None) -> None:
        self.readers = [encoder_for(column) for column in columns]
        self.missing = missing_group
        self.groups: list[Group] = []
        self._places: dict[tuple[int, ...], int] = {}

    def encode(self, chunks: Sequence[Array], problems: Problems, start: int) -> Ints:
        """Codes into ``groups``; rows whose group is null and has no name are counted."""
        parts = [reader.encode(chunk) for reader, chunk in zip(self.readers, chunks, strict=True)]
        for i, part in enumerate(parts):
            if len(part) and part.min() < 0:
                parts[i] = self._fill(self.readers[i], part, problems, start)
        if len(parts) == 1:
            known = self.readers[0].values
            self.groups.extend(known[len(self.groups) :])
            return parts[0]
        return self._combine(parts)

    def _fill(self, reader: Reader, codes: Ints, problems: Problems, start: int) -> Ints:
        null = codes < 0
        if self.missing is None:
            rows = np.flatnonzero(null)
            problems.add("group", "null", len(rows), row=start + int(rows[0]))
            # The error comes at the end of the pass; until then they count with the first group.
            if not reader.values:
                reader.values.append("")
            return np.where(null, 0, codes)
        return np.where(null, reader.code_of(self.missing), codes)

    def _combine(self, parts: list[Ints]) -> Ints:
        # Two columns at a time, so that the keys stay small however many columns there are.
        key, found = parts[0], [(code,) for code in range(len(self.readers[0].values))]
        for part, reader in zip(parts[1:], self.readers[1:], strict=True):
            size = len(reader.values)
            unique, key = _unique_small(key * size + part, len(found) * size)
            found = [(*found[value // size], value % size) for value in unique.tolist()]
        codes = np.empty(len(found), dtype=np.intp)
        for i, where in enumerate(found):
            if where not in self._places:
                self._places[where] = len(self.groups)
                values = (r.values[k] for r, k in zip(self.readers, where, strict=True))
                self.groups.append(tuple(values))
            codes[i] = self._places[where]
        return codes[key]


def _unique_small(key: Ints, size: int) -> tuple[Ints, Ints]:
    """np.unique with its inverse, by counting where the keys are small."""
    if size > _TABLE:
        unique, place = np.unique(key, return_inverse=True)
        return unique, place
    unique = np.flatnonzero(np.bincount(key, minlength=size))
    rank = np.zeros(size, dtype=np.intp)
    rank[unique] = np.arange(len(unique))
    return unique, rank[key]


def column_array(role: str, column: Any) -> Any:
    """A column as a one-dimensional array, or an error that names it."""
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
        raise DataError(
            Problem(
                role,
                "must have one dimension",
                f"an array of shape {array.shape}",
                "pass one value per row",
            )
        )
    return array


def unmasked(array: Array) -> Array:
    """A masked array as objects, with None where it is masked."""
    plain: Array = np.asarray(array).astype(object)
    plain[np.ma.getmaskarray(array)] = None
    return plain


def _from_list(values: Any) -> Array:
    if hasattr(values, "to_numpy"):
        try:
            return np.asarray(values.to_numpy())
        except Exception:
            # Each library has an error of its own for a type that NumPy lacks.
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

    Python never holds two of them equal that are different groups, as it does 1 and True.
    """
    return set(map(type, values)) - {type(None)} in _DISTINCT


def _is_mixed(values: Sequence[Any]) -> bool:
    """Whether NumPy would change values: [1, "1"], [None, "a"], [1, True], [2**53 + 1, 0.5]."""
    found = set(map(type, values))
    texts = {kind for kind in found if issubclass(kind, str)}
    booleans = {kind for kind in found if issubclass(kind, bool | np.bool_)}
    others = found - texts - booleans
    if sum(map(bool, (texts, booleans, others))) > 1:
        return True
    whole = {kind for kind in others if issubclass(kind, int | np.integer)}
    if not whole or type(None) in others:
        return False
    if whole == others:
        # NumPy makes doubles of [2**63, 1].
        return not -(2**63) <= min(values) <= max(values) < 2**63
    return not all(is_exact(int(v)) for v in values if isinstance(v, int | np.integer))
