"""MD5 of many short messages at once, in NumPy.

All messages of one call have the same length, so the words that contain only salt, padding or
length are plain numbers and cost nothing per row.  About seven times as fast as a loop
over hashlib, and bit for bit the same (the tests compare them).

MD5 is used as a well-mixed function that every engine has, not for secrecy.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["first_64_bits"]

Words: TypeAlias = npt.NDArray[np.uint32]
Bytes: TypeAlias = npt.NDArray[np.uint8]

_MASK = 0xFFFFFFFF
_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_SINE = tuple(int(abs(math.sin(i + 1)) * 2**32) for i in range(64))
_ROTATIONS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_ORDER = ((1, 0), (5, 1), (3, 5), (7, 0))


def first_64_bits(prefix: bytes, columns: Bytes) -> npt.NDArray[np.uint64]:
    """The first 8 bytes of each digest, as big-endian numbers.

    Parameters
    ----------
    prefix : bytes
        The start of every message.
    columns : array of uint8, shape (length, rows)
        The rest of each message, one byte position per row of the array.
    """
    blocks = _blocks(prefix, columns)
    rows = columns.shape[1]
    state = tuple(np.full(rows, word, dtype=np.uint32) for word in _START)
    for block in blocks:
        state = _compress(state, block)
    high = state[0].byteswap().astype(np.uint64)
    low = state[1].byteswap().astype(np.uint64)
    return (high << np.uint64(32)) | low


def _blocks(prefix: bytes, columns: Bytes) -> list[list[Words | int]]:
    """Cut the padded messages into blocks of 16 words; constant words are plain numbers."""
    start, length = len(prefix), len(prefix) + columns.shape[0]
    padded = 64 * ((length + 8) // 64 + 1)
    fixed = bytearray(padded)
    fixed[:start] = prefix
    fixed[length] = 0x80
    fixed[-8:] = (8 * length).to_bytes(8, "little")
    words: list[Any] = [int.from_bytes(fixed[i : i + 4], "little") for i in range(0, padded, 4)]
    for position in range(start, length):
        byte = columns[position - start].astype(np.uint32)
        words[position // 4] = words[position // 4] + (byte << np.uint32(8 * (position % 4)))
    return [words[i : i + 16] for i in range(0, len(words), 16)]


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
        word = block[(factor * step + shift) % 16]
        rotation = _ROTATIONS[round_][step % 4]
        _mix(round_, b, c, d, out=mixed)
        a += mixed
        if isinstance(word, int):
            a += np.uint32((word + _SINE[step]) & _MASK)
        else:
            a += word
            a += np.uint32(_SINE[step])
        np.left_shift(a, np.uint32(rotation), out=rotated)
        np.right_shift(a, np.uint32(32 - rotation), out=a)
        a |= rotated
        a += b
        a, b, c, d = d, a, b, c
    return tuple(old + new for old, new in zip(state, (a, b, c, d), strict=True))
