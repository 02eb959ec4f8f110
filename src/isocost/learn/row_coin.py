"""A coin for rows that have no ids: thrown from the values of the row itself.

Rows with the same values get the same coin, scored alone or in a batch, today or tomorrow, from
an array, a frame or a sparse matrix.  That is reproducible, and it treats equal rows alike; but
where few different rows occur, equal rows all fall on one side, and the share that a rule
withholds is only right on average over distinct rows.  Then pass ids; or set ``random_state``, and
the coin also depends on the number of equal rows before the row.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from isocost import coin
from isocost.errors import Problem, UsageError
from isocost.groups import is_null
from isocost.learn.inputs import as_eager_frame

__all__ = ["coins_of_rows", "row_hashes"]

Words = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

_NAN = np.uint64(0x7FC00000)

_TEXT = np.uint64(1 << 63)

_CHUNK = 2**15


def coins_of_rows(X: Any, ids: Any, salt: str, random_state: Any) -> npt.NDArray[np.uint64]:
    """The coin of each row: by its id, or without ids by its values.

    Parameters
    ----------
    X : array, frame or sparse matrix
        The rows.
    ids : array of whole numbers or texts, or None
        As in :meth:`isocost.Rule.apply`.
    salt : str
        Of the rule.
    random_state : int, RandomState instance or None
        If set, each of several equal rows gets a coin of its own, the same at every call.
        An instance throws other coins at every call.
    """
    if ids is not None:
        rows = _num_samples(X)
        if isinstance(ids, str) or len(ids) != rows:
            got = repr(ids) if isinstance(ids, str) else f"{len(ids)} ids for {rows} rows"
            rule, step = "must have one value per row of X", "pass the ids of the same rows"
            raise UsageError(Problem("ids", rule, got, step))
        return coin.coins(ids.to_numpy() if hasattr(ids, "to_numpy") else ids, salt)
    hashes = row_hashes(X)
    if random_state is not None:
        seed = random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        # Twice, so that neither the seed nor the count can undo what the row adds.
        hashes = _mix(hashes + _mix(_repeats(hashes) + np.uint64(1), int(seed)), 0)
    return coin.coins(hashes, salt)


def _repeats(hashes: Words) -> Words:
    """The number of equal rows before each row."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    first = np.flatnonzero(starts)
    counts = np.empty(len(hashes), dtype=np.uint64)
    counts[order] = np.arange(len(hashes)) - first[np.cumsum(starts) - 1]
    return counts


def row_hashes(X: Any) -> Words:
    """A whole number below 2^64 for each row that depends on its values and their columns.

    sum over columns j of mix(value_j, j) mod 2^64, where a value of 0 adds nothing

    A number is taken as a 32-bit float, so that rounding in the last digits, which may differ
    between a batch and a row alone, does not throw another coin; 0.0 and -0.0 are one value, and
    so is every NaN or null.  Anything else is taken as text.  A sum, so that a sparse row is
    the same as the dense one.

    Examples
    --------
    >>> row_hashes(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -0.0]])).tolist()
    [18260225238054474293, 14100209150436768136, 18260225238054474293]
    """
    if hasattr(X, "tocsr"):
        return _sparse_hashes(X.tocsr())
    frame = as_eager_frame(X)
    if frame is not None:
        columns = [_frame_column(frame.frame.get_column(name)) for name in frame.columns]
        return _sum_over(columns, len(frame.frame))
    array = np.asarray(X)
    if array.dtype.kind not in "biuf":
        array = array.astype(object)
    if array.ndim == 1:
        array = array.reshape(len(array), -1)
    if array.dtype.kind == "O":
        return _sum_over([_words(array[:, j]) for j in range(array.shape[1])], len(array))
    return _dense_hashes(array)


def _mix(words: Words, column: Any) -> Words:
    """The finalizer of splitmix64; 0 stays 0."""
    mixed = words + (np.atleast_1d(column).astype(np.uint64) + np.uint64(1)) * _STEP
    mixed ^= mixed >> np.uint64(30)
    mixed *= _MIX[0]
    mixed ^= mixed >> np.uint64(27)
    mixed *= _MIX[1]
    mixed ^= mixed >> np.uint64(31)
    mixed[words == 0] = 0
    return mixed


def _number_words(values: npt.NDArray[Any]) -> Words:
    with np.errstate(over="ignore"):
        # Adding 0 turns -0.0 into 0.0.
        single = values.astype(np.float32) + np.float32(0)
    words = single.view(np.uint32).astype(np.uint64)
    words[np.isnan(single)] = _NAN
    return words


def _dense_hashes(array: npt.NDArray[Any]) -> Words:
    out = np.empty(len(array), dtype=np.uint64)
    columns = np.arange(array.shape[1], dtype=np.uint64)
    for start in range(0, len(array), _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = _mix(_number_words(array[part]), columns).sum(axis=1, dtype=np.uint64)
    return out


def _sparse_hashes(matrix: Any) -> Words:
    matrix.sum_duplicates()
    mixed = _mix(_number_words(np.asarray(matrix.data)), matrix.indices)
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    sums: Words = total[matrix.indptr[1:]] - total[matrix.indptr[:-1]]
    return sums


def _sum_over(columns: list[Words], rows: int) -> Words:
    out = np.zeros(rows, dtype=np.uint64)
    for column, words in enumerate(columns):
        out += _mix(words, column)
    return out


def _frame_column(series: Any) -> Words:
    """Numbers as numbers, whatever their type in the frame; the rest as text."""
    if series.dtype.is_numeric() or str(series.dtype) == "Boolean":
        import narwhals as nw

        return _number_words(np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64))
    values = np.empty(len(series), dtype=object)
    values[:] = series.to_list()
    return _words(values)


def _words(values: npt.NDArray[Any]) -> Words:
    """Each value of a column of objects as a word."""
    # 1, 1.0 and True are equal, so the type is part of the key.
    keys = [(type(value), value) for value in values.tolist()]
    word = {key: _word(key[1]) for key in dict.fromkeys(keys)}
    return np.fromiter((word[key] for key in keys), np.uint64, count=len(keys))


def _word(value: Any) -> Any:
    if is_null(value):
        return _NAN
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return _number_words(np.array([float(value)]))[0]
    digest = hashlib.md5(str(value).encode(), usedforsecurity=False).digest()
    # The highest bit keeps texts apart from numbers, which have 32 bits.
    return np.uint64(int.from_bytes(digest[:8])) | _TEXT
