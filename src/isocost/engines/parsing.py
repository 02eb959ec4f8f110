"""What a text stands for: a whole number, a decimal number, true or false, or itself."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from isocost.errors import Problem, UsageError, setting
from isocost.groups import Scalar, is_exact

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


COMMA = r"[-+]?([0-9]+,?[0-9]*|,[0-9]+)([eE][-+]?[0-9]+)?"
"""What a number with a decimal comma looks like, for Python and for DuckDB."""

THOUSANDS = "[-+]?[1-9][0-9]{0,2}([,.' ][0-9]{3})+([.,][0-9]+)?"
"""What a number with separated thousands looks like; 1,234 may also have a decimal comma."""

DECIMALS = (".", ",")


def check_decimal(decimal: object) -> None:
    """Raise unless a decimal sign is a point, a comma or None."""
    if decimal is not None and not (isinstance(decimal, str) and decimal in DECIMALS):
        rule, step = 'must be "." or ","', "leave it out to have it found"
        raise UsageError(Problem("decimal", rule, repr(decimal)[:80], step))


def number_text(text: str, decimal: str) -> str | None:
    """A text as Python writes the number; None if it is not one.

    Examples
    --------
    >>> number_text("0,5", ","), number_text("0.5", ","), number_text(" 1e-3 ", ".")
    ('0.5', None, '1e-3')
    """
    text = text.strip()
    if decimal == ",":
        return text.replace(",", ".") if re.fullmatch(COMMA, text) else None
    return text if NUMBER.fullmatch(text) else None


@dataclass(frozen=True)
class TextNumbers:
    """The texts of a column that are not numbers, and how they might be read.

    Attributes
    ----------
    odd, commas, points, thousands, unclear : int
        How many are not numbers, have a decimal comma, a decimal point or separated thousands.
        What has a comma, as 1,234 has, is unclear if that may separate thousands.
    examples : dict of str
        One text of each kind that occurs.
    whole : int
        How many have neither sign and are numbers.
    total : int
        How many there are.
    """

    odd: int
    commas: int
    points: int
    thousands: int
    unclear: int
    whole: int
    total: int
    examples: dict[str, str]

    @property
    def fits_comma(self) -> bool:
        """Whether every text is a number with a decimal comma, and not all may be thousands."""
        return (
            self.commas > 0
            and self.commas + self.whole == self.total
            and self.unclear < self.commas
        )

    def problem(self, title: str, asked: str | None) -> Problem:
        """What is wrong, in four parts."""
        shown = {kind: repr(text) for kind, text in self.examples.items()}
        if self.thousands or (self.unclear and self.unclear == self.commas and asked != "."):
            got = f"{self.thousands + self.unclear:,} values such as "
            got += shown.get("thousands") or shown["unclear"]
            step = "write 1234.5 for 1,234.5"
            if self.unclear and self.unclear + self.whole == self.total:
                step += f"; or pass {setting('decimal', ',')} if these are decimal commas"
            return Problem(title, "must hold numbers without thousands separators", got, step)
        if self.commas and self.points:
            got = (
                f"{self.commas:,} values with a comma, for example {shown['commas']}, and "
                f"{self.points:,} with a point, for example {shown['points']}"
            )
            step = "write all numbers with the same decimal sign"
            return Problem(title, "must have one decimal sign in every row", got, step)
        example = shown.get("odd") or shown.get("commas") or shown.get("points") or ""
        got, step = f"{self.odd:,} values that are not, for example {example}", ""
        if asked == "," and self.points:
            step = f"leave out {setting('decimal', ',')}: these numbers have a point"
        elif asked == "." and self.commas + self.whole == self.total:
            step = f"pass {setting('decimal', ',')}"
        return Problem(title, "must hold numbers", got, step or "correct or drop those rows")


def text_numbers(texts: Sequence[str], decimal: str) -> TextNumbers:
    """How texts might be read as numbers.

    Examples
    --------
    >>> text_numbers(["0,5", "1"], ".").fits_comma, text_numbers(["0,5", "0.5"], ".").fits_comma
    (True, False)
    """
    counts = dict.fromkeys(("odd", "commas", "points", "thousands", "unclear", "whole"), 0)
    examples: dict[str, str] = {}
    for text in texts:
        plain = text.strip()
        comma, point = number_text(plain, ","), number_text(plain, ".")
        separated = re.fullmatch(THOUSANDS, plain) is not None and point is None
        tests = {
            "odd": number_text(plain, decimal) is None,
            "commas": comma is not None and point is None,
            "points": point is not None and comma is None,
            "thousands": separated and comma is None,
            "unclear": separated and comma is not None,
            "whole": comma is not None and point is not None,
        }
        for kind in (kind for kind, is_so in tests.items() if is_so):
            counts[kind] += 1
            examples.setdefault(kind, text)
    return TextNumbers(**counts, total=len(texts), examples=examples)


_MEANINGS: dict[type, Callable[[str], Scalar | None]] = {int: _int, float: _float, bool: _bool}


def typed(texts: Iterable[str | None]) -> dict[str, Scalar]:
    """What each text means: whole numbers, numbers or booleans if all are, else the texts.

    Two texts never mean the same: of 1 and 1.0, or true and True, both stay texts.

    Examples
    --------
    >>> typed(["1", "2", None]), typed(["1", "2.5"]), typed(["1", "x"]), typed(["007", "7"])
    ({'1': 1, '2': 2}, {'1': 1.0, '2.5': 2.5}, {'1': '1', 'x': 'x'}, {'007': '007', '7': '7'})
    >>> typed(["true", "false"]), typed(["true", "True"]), typed(["1", "1.0"])
    ({'true': True, 'false': False}, {'true': 'true', 'True': 'True'}, {'1': '1', '1.0': '1.0'})
    """
    distinct = [text for text in dict.fromkeys(texts) if text is not None]
    for read in _MEANINGS.values():
        values: dict[str, Any] = {text: read(text) for text in distinct}
        if None not in values.values() and len(set(values.values())) == len(distinct):
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


def read_as(texts: Iterable[str | None], kinds: Collection[type]) -> dict[str, Scalar]:
    """What each text means where values of some types are expected: the first type that fits.

    As for :func:`typed`, texts that would mean the same stay texts.

    Examples
    --------
    >>> read_as(["1", "x", None], {int}), read_as(["1"], {str}), read_as(["1"], {float})
    ({'1': 1, 'x': 'x'}, {'1': '1'}, {'1': 1.0})
    >>> read_as(["true", "TRUE", "false"], {bool})
    {'true': 'true', 'TRUE': 'TRUE', 'false': False}
    """
    reads = [read for kind, read in _MEANINGS.items() if kind in kinds]
    meaning: dict[str, Scalar] = {}
    for text in dict.fromkeys(texts):
        if text is not None:
            values = (value for read in reads if (value := read(text)) is not None)
            meaning[text] = next(values, text)
    times = Counter(meaning.values())
    return {text: value if times[value] == 1 else text for text, value in meaning.items()}


ONES = ("1", "1.0", "1,0")
POSITIVE = (
    *ONES, "true", "yes", "y", "t", "positive", "pos", "event", "case", "ja", "j",
    "oui", "si", "sí", "sim", "tak", "wahr", "vrai",
)  # fmt: skip
"""Texts that mean yes, in lower case."""


def is_binary(values: Sequence[str]) -> bool:
    """Whether labels are 0 and 1, or true and false."""
    known = {value.lower() for value in values}
    zeros_and_ones = {"0", "1", "0.0", "1.0", "0,0", "1,0"}
    return known <= zeros_and_ones or known <= {"true", "false"}


def positive_among(values: Sequence[str]) -> str | None:
    """The positive label where it must be named: not for 0 and 1, nor for true and false.

    Examples
    --------
    >>> positive_among(["no", "Yes"]), positive_among(["-1", "1"]), positive_among(["1", "2"])
    ('Yes', '1', None)
    """
    if is_binary(values):
        return None
    # Of 1 and 2 either may be the positive one.
    words = POSITIVE if any(value.startswith("-") for value in values) else POSITIVE[len(ONES) :]
    return next((value for value in values if value.lower() in words), None)
