"""The coin, which falls the same way for the same person everywhere.

The coin of an id is the first 13 hexadecimal digits of ``md5(salt + ":" + id)``, a whole
number below 2^52.  It shows heads with probability p when it is below ceil(p 2^52).  Whole
numbers are written in decimal and texts in UTF-8, so any engine that has MD5 and text
comparison throws the same coin.

MD5 is used as a well-mixed function that every engine has, not for secrecy.  Many are computed at
once in NumPy, about seven times as fast as a loop over hashlib: messages of one length share the
words that hold only salt, padding or length, which are plain numbers and cost nothing per row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from isocost.checks import check_seed
from isocost.errors import DataError, Problem
from isocost.groups import is_null
from isocost.typing import is_masked

SCHEME, BITS = "md5-52", 52

Coins: TypeAlias = npt.NDArray[np.uint64]
Words: TypeAlias = npt.NDArray[np.uint32]
Bytes: TypeAlias = npt.NDArray[np.uint8]

_CHUNK = 2**15
_LONGEST = 200
_BILLION = np.uint64(10**9)
_POWERS = np.array([10**k for k in range(20)], dtype=np.uint64)
_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_SINE = tuple(int(abs(math.sin(i + 1)) * 2**32) for i in range(64))
_ROTATIONS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_ORDER = ((1, 0), (5, 1), (3, 5), (7, 0))


def _hashed(prefix: bytes, columns: Bytes) -> Coins:
    """The coins of messages: a prefix, then a column each of ``columns``, shape (length, rows)."""
    start, length = len(prefix), len(prefix) + columns.shape[0]
    padded = 64 * ((length + 8) // 64 + 1)
    fixed = bytearray(padded)
    fixed[:start] = prefix
    fixed[length] = 0x80
    fixed[-8:] = (8 * length).to_bytes(8, "little")
    # Words that are the same in all messages are plain numbers.
    words: list[Any] = [int.from_bytes(fixed[i : i + 4], "little") for i in range(0, padded, 4)]
    for position in range(start, length):
        byte = columns[position - start].astype(np.uint32)
        words[position // 4] = words[position // 4] + (byte << np.uint32(8 * (position % 4)))
    state = tuple(np.full(columns.shape[1], word, dtype=np.uint32) for word in _START)
    for i in range(0, len(words), 16):
        state = _compress(state, words[i : i + 16])
    high, low = (word.byteswap().astype(np.uint64) for word in state[:2])
    return ((high << np.uint64(32)) | low) >> np.uint64(64 - BITS)


def _mix(round_: int, b: Words, c: Words, d: Words, out: Words) -> Words:
    """The function of each of the four rounds."""
    if round_ == 0:
        np.bitwise_xor(c, d, out=out)
        np.bitwise_and(b, out, out=out)
        return np.bitwise_xor(d, out, out=out)
    if round_ == 1:
        np.bitwise_xor(b, c, out=out)
        np.bitwise_and(d, out, out=out)
        return np.bitwise_xor(c, out, out=out)
    if round_ == 2:
        np.bitwise_xor(b, c, out=out)
        return np.bitwise_xor(out, d, out=out)
    np.bitwise_not(d, out=out)
    np.bitwise_or(b, out, out=out)
    return np.bitwise_xor(c, out, out=out)


def _compress(state: tuple[Words, ...], block: list[Words | int]) -> tuple[Words, ...]:
    a, b, c, d = (word.copy() for word in state)
    mixed, rotated = np.empty_like(a), np.empty_like(a)
    for step in range(64):
        round_ = step // 16
        factor, shift = _ORDER[round_]
        word, rotation = block[(factor * step + shift) % 16], _ROTATIONS[round_][step % 4]
        _mix(round_, b, c, d, out=mixed)
        a += mixed
        if isinstance(word, int):
            a += np.uint32((word + _SINE[step]) & 0xFFFFFFFF)
        else:
            a += word
            a += np.uint32(_SINE[step])
        np.left_shift(a, np.uint32(rotation), out=rotated)
        np.right_shift(a, np.uint32(32 - rotation), out=a)
        a |= rotated
        a += b
        a, b, c, d = d, a, b, c
    return tuple(old + new for old, new in zip(state, (a, b, c, d), strict=True))


def bound(probability: float) -> int:
    """The number that a coin must be below, which happens with this probability.

    Examples
    --------
    >>> bound(0.5) == 2**51, bound(1.0) == 2**52, bound(0.0)
    (True, True, 0)
    """
    return math.ceil(probability * float(2**BITS))


def bounds(probabilities: Sequence[float]) -> list[int]:
    """The bounds of outcomes that share one coin: outcome i lies between bounds i - 1 and i."""
    # Fractions add up exactly, so each sum is rounded once, and the bounds stay in order.
    sums = accumulate(map(Fraction, probabilities))
    return [bound(min(1.0, float(total))) for total in sums]


def hex_bound(limit: int) -> str:
    """A bound as text, to be compared with hexadecimal digits; "g" is above all of them.

    Examples
    --------
    >>> hex_bound(bound(0.5)), hex_bound(bound(1.0))
    ('8000000000000', 'g')
    """
    return "g" if limit >= 2**BITS else f"{limit:013x}"


def seeded_coins(rows: int, seed: int) -> Coins:
    """Coins in row order from a seed, for data without ids.

    A person's coin then depends on the order of the rows.
    """
    generator = np.random.default_rng(check_seed(seed))
    return generator.integers(0, 2**BITS, size=rows, dtype=np.uint64)


def coins(ids: npt.ArrayLike | Sequence[Any], salt: str) -> Coins:
    """The coin of each id, a whole number or a text; another salt gives other coins.

    Null ids are an error, and so are floats, because 1.0 is not written like 1.

    Examples
    --------
    >>> coins([1, 2, 3], "isocost").tolist() == coins(["1", "2", "3"], "isocost").tolist()
    True
    """
    array = _as_array(ids)
    prefix = f"{salt}:".encode()
    out = np.empty(len(array), dtype=np.uint64)
    throw = _throw_numbers if array.dtype.kind in "iu" else _throw_texts
    for start in range(0, len(array), _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = throw(array[part], prefix)
    return out


def _as_array(ids: Any) -> npt.NDArray[Any]:
    """An array of whole numbers, or of texts and perhaps large whole numbers."""
    if is_masked(ids) and np.ma.getmaskarray(ids).any():
        raise _bad_ids(f"{int(np.ma.getmaskarray(ids).sum())} masked values", null=True)
    # np.asarray would silently turn [1, "a"] into texts.
    array = np.asarray(ids, dtype=object if isinstance(ids, list | tuple) else None)
    if array.ndim != 1:
        raise _bad_ids(f"an array of shape {array.shape}")
    if array.dtype.kind in "iuU":
        return array
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise _bad_ids(f"{int(np.isnan(array).sum())} null values among floats", null=True)
    if array.dtype.kind not in "TO":
        raise _bad_ids(f"values of type {array.dtype}")
    array = array.astype(object, copy=False)
    kinds = set(map(type, array.tolist()))
    nulls = sum(map(is_null, array.tolist())) if kinds - {str, int} else 0
    if nulls:
        raise _bad_ids(f"{nulls} null values", null=True)
    # NumPy's time spans are integers.
    refused = (bool, np.timedelta64)
    wrong = [k for k in kinds if k in refused or not issubclass(k, str | int | np.integer)]
    if wrong:
        raise _bad_ids(f"values of type {', '.join(sorted(k.__name__ for k in wrong))}")
    if not any(issubclass(kind, str) for kind in kinds):
        with suppress(OverflowError):
            return array.astype(np.int64)
    return array


def _bad_ids(got: str, null: bool = False) -> DataError:
    step = "use whole numbers or texts as ids, for example by casting the column to text"
    if null:
        step = "give every row an id, or pass seed= instead of id="
    return DataError(Problem("id", "must be a whole number or a text in every row", got, step))


def _throw_numbers(values: npt.NDArray[Any], prefix: bytes) -> Coins:
    negative = values < 0
    size = values.astype(np.uint64)
    size[negative] = ~size[negative] + np.uint64(1)
    out = np.empty(len(values), dtype=np.uint64)
    digits = np.searchsorted(_POWERS, size, side="right")
    digits[size == 0] = 1
    shape = digits * 2 + negative
    for kind in np.flatnonzero(np.bincount(shape)).tolist():
        rows = slice(None) if kind == shape[0] and (shape == kind).all() else shape == kind
        sign = b"-" if kind % 2 else b""
        out[rows] = _hashed(prefix + sign, _decimal(size[rows], kind // 2))
    return out


def _decimal(values: Coins, digits: int) -> npt.NDArray[np.uint8]:
    """The decimal digits as ASCII, one row per position."""
    if digits > 9:
        # 32-bit division is several times faster: split off the last nine digits.
        above = values // _BILLION
        return np.concatenate([_decimal(above, digits - 9), _decimal(values - above * _BILLION, 9)])
    out = np.empty((digits, len(values)), dtype=np.uint8)
    rest = values.astype(np.uint32)
    for position in range(digits - 1, -1, -1):
        left = rest // np.uint32(10)
        out[position] = rest - left * np.uint32(10)
        rest = left
    out += np.uint8(ord("0"))
    return out


def _throw_texts(values: npt.NDArray[Any], prefix: bytes) -> Coins:
    texts = values if values.dtype.kind == "U" else _fixed_width(values)
    if texts is None:
        return _throw_slowly(values.tolist(), prefix)
    letters = np.ascontiguousarray(texts).view(np.uint32).reshape(len(texts), -1)
    if letters.size and letters.max() >= 128:
        return _throw_slowly(values.tolist(), prefix)
    lengths = np.char.str_len(texts)
    out = np.empty(len(texts), dtype=np.uint64)
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        rows = lengths == length
        out[rows] = _hashed(prefix, np.ascontiguousarray(letters[rows, :length].T.astype(np.uint8)))
    return out


def _fixed_width(values: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Texts as a NumPy text array, or None where that would lose characters or waste memory."""
    texts = values.tolist()
    if not all(issubclass(kind, str) for kind in set(map(type, texts))):
        return None
    sizes = list(map(len, texts))
    if max(sizes, default=0) > _LONGEST:
        return None
    array = np.array(texts, dtype=np.str_)
    # NumPy drops trailing NUL characters, which changes the lengths.
    return array if int(np.char.str_len(array).sum()) == sum(sizes) else None


def _throw_slowly(values: Iterable[Any], prefix: bytes) -> Coins:
    # Few come here, and importing it loads OpenSSL.
    import hashlib

    try:
        messages = [prefix + str(value).encode() for value in values]
    except UnicodeEncodeError as error:
        raise _bad_ids("a text that UTF-8 cannot encode") from error
    digests = (hashlib.md5(one, usedforsecurity=False).hexdigest() for one in messages)
    return np.fromiter((int(digest[: BITS // 4], 16) for digest in digests), dtype=np.uint64)
