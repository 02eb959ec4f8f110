"""Values of files in which everything is text: what a CSV says, read as what it means.

Types are decided from all values that occur, never from the first rows of a file: a column that
begins with whole numbers may go on with others, and nothing may be rounded in silence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from isocost.groups import Scalar, is_exact

__all__ = ["NUMBER", "WHOLE", "json_values", "read_as", "typed"]

WHOLE = "-?[0-9]+"
"""What a whole number looks like, for Python and for DuckDB."""

NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
"""What a number looks like; Python would also take 0_1 for one."""

# As Python writes it and in 64 bits: 007 and +7 are names, not numbers.
_PLAIN = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_BOOLEANS = {"true": True, "false": False}


def _int(text: str) -> int | None:
    value = int(text) if _PLAIN.fullmatch(text) else None
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


_READERS: dict[type, Callable[[str], Scalar | None]] = {int: _int, float: _float, bool: _bool}


def typed(texts: Iterable[str | None]) -> dict[str, Scalar]:
    """What each text means: whole numbers, numbers or booleans if all are, else the texts.

    Examples
    --------
    >>> typed(["1", "2", None]), typed(["1", "2.5"]), typed(["1", "x"]), typed(["007", "7"])
    ({'1': 1, '2': 2}, {'1': 1.0, '2.5': 2.5}, {'1': '1', 'x': 'x'}, {'007': '007', '7': '7'})
    """
    distinct = [text for text in dict.fromkeys(texts) if text is not None]
    for read in _READERS.values():
        values: dict[str, Any] = {text: read(text) for text in distinct}
        if None not in values.values():
            return values
    return {text: text for text in distinct}


def json_values(texts: Iterable[str | None]) -> dict[str, Any]:
    """What each text of JSON means; whole numbers among fractions are floats if none is rounded.

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
    """What a text means where values of some types are expected: the first that it fits.

    Examples
    --------
    >>> read_as("1", {int}), read_as("1", {str}), read_as("1", {float}), read_as("x", {int})
    (1, '1', 1.0, 'x')
    """
    for kind, read in _READERS.items():
        value = read(text) if kind in kinds else None
        if value is not None:
            return value
    return text
