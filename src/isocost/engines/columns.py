"""Values of columns: what a text stands for, what groups and labels mean, and what is wrong.

Groups become small codes and labels 0 and 1; everything wrong is reported together.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.cells import UNLABELLED
from isocost.errors import DataError, Problem, UsageError, listing, setting, spoken
from isocost.grid import PROBABILITY, Scale, scale_named, scale_step
from isocost.groups import Group, Scalar, as_group, as_scalar, is_exact, is_null
from isocost.readings import TREATMENTS, Missing, Reading
from isocost.rules import Rule, repaired_column, stored_columns
from isocost.tallies import Tally
from isocost.typing import Bools, Ints, is_masked

WHOLE = "-?[0-9]+"
"""What a whole number looks like, for Python and for DuckDB."""

NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
"""What a number looks like; Python would also accept 0_1."""

# As Python writes it and in 64 bits: 007 and +7 are names, not numbers.
_PLAIN_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")


def _int(text: str) -> int | None:
    value = int(text) if _PLAIN_WHOLE.fullmatch(text) else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def _float(text: str) -> float | None:
    # Digits with leading zeros, or too many, are names.
    if not NUMBER.fullmatch(text) or re.match(r"[-+]?0[0-9]", text):
        return None
    if re.fullmatch(WHOLE, text) and (_int(text) is None or not is_exact(int(text))):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


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

    ``commas``, ``points`` and ``thousands`` count those with a decimal comma, a decimal point or
    separated thousands.  What has a comma, as 1,234 has, is ``unclear`` if that may separate
    thousands.  ``whole`` ones are numbers with neither sign, and ``odd`` ones no numbers as asked.
    There is one example of each kind that occurs.
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
        """True if every text is a number with a decimal comma, and not all may be thousands."""
        return (
            self.commas > 0
            and self.commas + self.whole == self.total
            and self.unclear < self.commas
        )

    def problem(self, title: str, asked: str | None) -> Problem:
        """The problem, in four parts."""
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
    """Counts of the ways in which texts might be read as numbers.

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


_MEANINGS: dict[type, Callable[[str], Scalar | None]] = {
    int: _int,
    float: _float,
    bool: lambda text: {"true": True, "false": False}.get(text.lower()),
}


def typed(texts: Iterable[str | None]) -> dict[str, Scalar]:
    """The meaning of each text: whole numbers, numbers or booleans if all are, else the texts.

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
    """The meaning of each text of JSON; integers among fractions become floats if none is rounded.

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
    """The meaning of each text where some types are expected: the first type that fits.

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
    """True if labels are 0 and 1, or true and false."""
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


Array = npt.NDArray[Any]


USUAL_WEIGHTS = (1e-70, 1e70)
"""Beyond these the fourth power of a weight may not be a finite, positive number."""

_EXTREME = "below 1e-70 or above 1e70"

WRONG = {
    "score": {-1: "null or NaN", -2: "infinite", -3: "outside [0, 1]"},
    "label": {-1: "null or NaN", -2: "other than 0 and 1"},
    "weight": {-1: "null or NaN", -2: "infinite", -3: "zero", -4: "negative", -5: _EXTREME},
    "person": {-1: "null"},
}
"""What is wrong with a value, by its role and the code that replaces its cell in a query."""

MOST_LABELS = 3
"""How many values of a column of labels are looked at to say what is wrong: more than two."""

_RULES = {
    "score": (
        "must be a number in [0, 1] in every row",
        "drop or fill rows without a score{dropping}{handed_over}; divide percentages by 100; "
        "convert decision values to probabilities",
    ),
    "label": (
        "must be 0/1 or boolean in every row",
        "drop rows without a label{dropping}; name the positive label with {positive} if "
        "the column has two other values",
    ),
    "group": (
        "must be known in every row",
        "drop those rows{dropping}; or count them as a group of their own with {missing_group}",
    ),
    "weight": (
        "must be a positive, finite number in every row",
        "drop rows with weight 0, and check the column for missing values{dropping}",
    ),
    "person": (
        "must be known in every row",
        "give every row a person, or drop those rows{dropping}",
    ),
    "id": ("must be a whole number or a text in every row", "give every row an id{seed}"),
}


@dataclass
class Problems:
    """Counts of what is wrong, by role and kind, each with one example.

    ``example`` is which one: the first, or the least where rows have no order.  ``span`` is the
    range of scores outside [0, 1], and whether they are whole.  ``decimal`` is the decimal sign of
    texts, None until it is known, and ``texts`` are problems with it.  ``labels`` are some of
    them if not all are 0 and 1: all if there are two.  Where a part has only 0 and 1, both are.
    ``can_drop`` is true where rows with missing values may be dropped on request.
    ``dropped`` is the number of rows left out, ``missing`` how many of them lack a value, by
    column, ``unknown`` and ``unknown_values`` the same for rows whose label or group is unknown,
    and ``places`` are the row numbers of those that are left of a chunk.
    """

    names: dict[str, str] = field(default_factory=dict)
    counts: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    rows: int = 0
    example: str = "first"
    scale: Scale = PROBABILITY
    span: tuple[float, float, bool] | None = None
    decimal: str | None = None
    texts: list[Problem] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    can_drop: bool = False
    places: Ints | None = None
    missing: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    unknown_values: dict[str, int] = field(default_factory=dict)
    unknown: int = 0

    def sort_out(
        self, dropped: Mapping[str, Bools], unknown: Mapping[str, Bools], counts: Array | int = 1
    ) -> Bools:
        """Count the rows without a value, by column, and return which are not to be dropped.

        Each place stands for ``counts`` rows; of those that are dropped no value is unknown.
        """

        def number(rows: Bools) -> int:
            return int(np.count_nonzero(rows) if isinstance(counts, int) else (rows * counts).sum())

        def lacking(columns: Mapping[str, Bools], by_column: dict[str, int]) -> Bools:
            found: Bools = np.zeros(1, dtype=bool)
            for name, rows in columns.items():
                found = found | rows
                if several := number(rows):
                    by_column[name] = by_column.get(name, 0) + several
            return found

        gone = lacking(dropped, self.missing)
        left = {name: rows & ~gone for name, rows in unknown.items()} if dropped else unknown
        self.dropped += number(gone)
        self.unknown += number(lacking(left, self.unknown_values))
        return ~gone

    def add(self, role: str, kind: str, count: int, example: Any = None, row: Any = None) -> None:
        """Add ``count`` of this kind; the first example is kept."""
        if count <= 0:
            return
        if row is not None and self.places is not None:
            row = int(self.places[row])
        before, shown = self.counts.get((role, kind), (0, ""))
        if not shown:
            text = repr(example.item() if getattr(example, "ndim", None) == 0 else example)
            value = f" {text if len(text) <= 60 else text[:57] + '...'}"
            value, where = "" if example is None else value, "" if row is None else f" in row {row}"
            shown = f" ({self.example}:{value}{where})" if value or where else ""
        self.counts[role, kind] = (before + int(count), shown)

    def check(self, more: Sequence[Problem] = ()) -> None:
        """Raise one error that reports everything, and ``more``, if there is anything."""
        problems = list(self.texts)
        for role in (role for role in _RULES if any(role == other for other, _ in self.counts)):
            # Scores may be on another scale.
            called = {WRONG["score"][-3]: self.scale.outside} if role == "score" else {}
            got = ", ".join(
                f"{count:,} {called.get(kind, kind)}{example}"
                for (other, kind), (count, example) in self.counts.items()
                if other == role
            )
            counted = ", counted from 0" if " in row " in got else ""
            of = f", of {self.rows:,} rows{counted}" if self.rows else ""
            name, step = self.names.get(role, role), None
            if role == "score" and self.span and self.scale.is_plain:
                step = scale_step(*self.span) or None
            elif role == "label" and len(self.labels) == 2 and self.labels != [0, 1]:
                step = _naming_step(self.labels, got, self.can_drop)
            problem = problem_of(role, name, got + of, step, can_drop=self.can_drop)
            if role == "score" and not self.scale.is_plain:
                step = "drop or fill rows without a score{}, and check that the scale is right"
                step = step.format(_dropping("score", got) if self.can_drop else "")
                problem = replace(problem, rule=self.scale.rule, next_step=step)
            problems.append(problem)
        if problems or more:
            raise DataError([*problems, *more])

    def reading(
        self, columns: Mapping[str, Any] | None, positive: Any, missing: Missing, **ways: Any
    ) -> Reading:
        """The reading of the values; ``ways`` are further fields of the reading."""
        is_plain = positive is None or isinstance(positive, str | int | float)
        return Reading(
            columns=dict(columns or {}),
            positive=positive if is_plain else str(positive),
            scale=self.scale.name,
            decimal=self.decimal or ".",
            read_rows=self.rows,
            dropped_rows=self.dropped,
            missing_values=self.missing,
            unknown_rows=self.unknown,
            unknown_values=self.unknown_values,
            **missing.options,
            **ways,
        )


def _dropping(role: str, got: str) -> str:
    """The options for rows without a value, where there are some, and what dropping assumes."""
    if "null" not in got:
        return ""
    offered = spoken("drop_missing=True", "--drop-missing", setting("drop_missing"))
    dropping = f" ({offered} drops them)"
    if role not in ("label", "group"):
        return dropping
    keeping = f"{setting(f'missing_{role}', 'keep')} counts them as unknown"
    return f"{dropping}, which assumes that they are like the others; {keeping}"


def _naming_step(labels: Sequence[Any], got: str, can_drop: bool) -> str:
    """The next step for labels that have two values, and not 0 and 1."""
    dropping = _dropping("label", got) if can_drop else ""
    first = f"drop rows without a label{dropping}; " if WRONG["label"][-1] in got else ""
    values = {str(label): label for label in sorted(labels, key=str)}
    if positive := positive_among(list(values)):
        return f"{first}name the positive label: {setting('positive', values[positive])}"
    either = " or ".join(map(repr, values.values()))
    return f"{first}say with {setting('positive')} whether {either} is the positive label"


def no_rows(path: object = "") -> DataError:
    """The error for data without rows."""
    got, step = f"0 rows in {path}" if path else "0 rows", "check the source of the data"
    return DataError(Problem("data", "must have at least one row", got, step))


def scored(tally: Tally) -> Tally:
    """The tally; an error if nobody in it has a score, because everybody was handed over."""
    if tally.groups:
        return tally
    if tally.reading.dropped_rows or tally.reading.unknown_rows:
        raise nothing_left(tally.reading)
    got = f"{sum(n for n, _, _ in tally.handed_over.values()):,.0f} rows, all without one"
    step = "check the column of scores: a rule hands over some people, not all"
    name = title_of("score", str(tally.columns.get("score", "score")))
    raise DataError(Problem(name, "must be known in some row", got, step))


def nothing_left(reading: Reading) -> DataError:
    """The error for data of which every row was dropped, or is of somebody unknown."""
    missing = {**reading.missing_values, **reading.unknown_values}
    columns = listing(f"{count:,} without {name!r}" for name, count in missing.items())
    rows = reading.dropped_rows + reading.unknown_rows
    gone = "dropped or unknown" if reading.unknown_rows else "dropped"
    got, step = f"{rows:,} rows, all {gone}: {columns}", "check those columns"
    return DataError(Problem("data", "must have a row without missing values", got, step))


def missing_id(got: str = "none", step: str | None = None) -> UsageError:
    """The error for a rule with a coin that is applied without ids."""
    step = step or f"name the column that says who a row is about with {setting('id')}"
    return UsageError(Problem("id", "must be given, because this rule throws a coin", got, step))


def problem_of(
    role: str, name: str, got: str, step: str | None = None, *, can_drop: bool = False
) -> Problem:
    """The problem with the column that has a role, in four parts.

    Examples
    --------
    >>> print(problem_of("id", "person", "1 null"))
    id (column 'person'): must be a whole number or a text in every row
      got:  1 null
      next: give every row an id, or use seed= instead of id=
    """
    rule, usual_step = _RULES[role]
    counting = "; if a rule handed them over, count them with {}".format(
        spoken("isocost.tally(..., handed_over=True)", "--handed-over", f"{setting('handed_over')}")
    )
    usual_step = usual_step.format(
        positive=setting("positive"),
        missing_group=setting("missing_group", "unknown"),
        seed=spoken(", or use seed= instead of id=", ""),
        dropping=_dropping(role, got) if can_drop else "",
        handed_over=counting if WRONG["score"][-1] in got else "",
    )
    return Problem(title_of(role, name), rule, got, step or usual_step)


def title_of(role: str, name: str) -> str:
    """A column in messages: its role, and its name if that is different.

    Examples
    --------
    >>> title_of("score", "score"), title_of("score", "risk")
    ('score', "score (column 'risk')")
    """
    return role if name == role else f"{role} (column {name!r})"


def scale_of(rule: Rule, asked: str | None) -> Scale:
    """The scale of the scores that a rule is applied to; by default the one it was made from.

    What the rule says about it is not trusted.
    """
    if asked is not None:
        scale = scale_named(asked)
        if not scale.is_open:
            return scale
        rule_scale = scale_of(rule, None)
        if rule_scale.is_rank:
            return rule_scale
        must, step = "must name the range of the ranks here", "for example rank:1-10"
        raise UsageError(Problem("scale", must, repr(asked), step))
    return scale_named(rule.reading.scale)


def missing_group_of(rule: Rule, asked: Any) -> Group | None:
    """The group of rows without one where a rule is applied; by default as the rule was made."""
    group = rule.reading.missing.name if asked is None else as_group(asked)
    if group in TREATMENTS[1:]:
        must = "must be the name of a group, because no row is dropped where a rule is applied"
        step = f"use {setting('missing_group', '?')} and {setting('unknown', 'keep')} to keep them"
        raise UsageError(Problem("missing_group", must, repr(group), step))
    return None if group == TREATMENTS[0] else group


def applied_columns(rule: Rule, score: Any, group: Any, id: Any) -> tuple[Any, Any, Any]:
    """The score, group and id columns that a rule is applied to; by default those it stores."""
    stored = {"score": "score", "group": "group", "id": None, **stored_columns(rule)}
    asked = {"score": score, "group": group, "id": id}
    used = [stored[role] if name is None else name for role, name in asked.items()]
    return used[0], used[1], used[2]


def written_column(
    columns: Iterable[Any],
    score: str,
    output: str | None,
    scale: Scale,
    changed: str | None,
    handed_over: str | None,
    *,
    by_case: bool = False,
    role: str = "output",
) -> str:
    """The column of repaired scores; raise if names would lose it, or overwrite another column.

    It replaces an existing column only if it was named exactly so; the flags ``changed`` and
    ``handed_over`` must be new.  With ``by_case``, names that differ only in case are different.
    ``scale`` is that of the scores, and ``role`` the name of the argument for the output.
    """

    def same(one: str, other: str) -> bool:
        return one == other if by_case else one.lower() == other.lower()

    existing = [str(name) for name in columns]
    written = repaired_column(score) if output is None else output
    taken = [name for name in existing if output is None and same(name, written)]
    if taken:
        must = "must be named, because a column with the usual name exists"
        step = f"pass {setting(role, taken[0])} to replace that column, or another name"
        raise UsageError(Problem(role, must, f"a column {taken[0]!r} in the data", step))
    step = "choose another name"
    for name, flag in (("changed", changed), ("handed_over", handed_over)):
        if flag is None:
            continue
        if same(flag, written):
            rule = "must differ from the column of repaired scores, or it would replace them"
            raise UsageError(Problem(name, rule, repr(flag), step))
        if taken := [name for name in existing if same(name, flag)]:
            rule = "must be a new column, because the others stay as they are"
            raise UsageError(Problem(name, rule, f"{flag!r}, and there is {taken[0]!r}", step))
        existing.append(flag)
    similar = [name for name in existing if name != written and same(name, written)]
    if similar and written not in existing:
        rule = "must be spelled like the existing column, or be new: case is ignored here"
        got = f"{written!r}, and there is {similar[0]!r}"
        raise UsageError(Problem(role, rule, got, f"use {similar[0]!r}, or another name"))
    if written == score and not scale.is_plain:
        must = "must be another column than the score: repaired scores are probabilities"
        step = f"pass {setting(role, repaired_column(score))}"
        raise UsageError(Problem(role, must, f"{written!r}, and scores from {scale.name}", step))
    return written


class LabelReader:
    """Labels as 0 and 1, with everything else counted as a problem."""

    def __init__(self, positive: Any = None, keep: bool = False) -> None:
        self.positive, self.keep = positive, keep
        self.seen: dict[Any, None] = {}

    def read(self, column: Any, part: Any, problems: Problems, start: int) -> Ints:
        """A part of the column as 0 and 1; other values become 0 and are counted.

        If missing ones are to be kept, they become the label of people without one.
        """
        if not isinstance(column, Encoded):
            return self._read(column[part], problems, start)
        codes, values = column[part], as_objects([*column.values, None])
        occurs = np.flatnonzero(np.bincount(codes + 1, minlength=len(values))) - 1
        found = Problems()
        labels: Ints = np.zeros(len(values), dtype=np.intp)
        labels[occurs] = self._read(values[occurs], found, 0)
        # What is wrong is counted in rows.
        return self._read(values[codes], problems, start) if found.counts else labels[codes]

    def _read(self, chunk: Array, problems: Problems, start: int) -> Ints:
        if self.positive is None and _holds_labels(chunk, self.keep):
            # Any other value would be a third label.
            problems.labels = list(dict.fromkeys([0, 1, *problems.labels]))
            if chunk.dtype.kind == "f":
                # The lesser of two numbers, and of a number and NaN the number.
                chunk = np.fmin(chunk, UNLABELLED)
            return chunk.astype(np.intp, copy=False)
        if self.positive is not None and chunk.dtype.kind in "biu":
            listed = np.unique(chunk).tolist()
            self.seen.update(dict.fromkeys(listed[:20]))
            same = [value for value in listed if value == self.positive]
            return np.asarray(chunk == same[0] if same else np.zeros(len(chunk)), dtype=np.intp)
        values = _scalars(chunk)
        distinct = dict.fromkeys(values)

        def count(kind: str, bad: Iterable[bool], example: bool = True) -> None:
            rows = np.flatnonzero(np.fromiter(bad, dtype=bool, count=len(chunk)))
            if len(rows):
                value = chunk[rows[0]] if example else None
                problems.add("label", kind, len(rows), value, start + int(rows[0]))

        if None in distinct and not self.keep:
            count("null or NaN", (value is None for value in values), example=False)
        if self.positive is None:
            known: dict[Any, int] = {None: 0, 0: 0, 1: 1, "0": 0, "1": 1}
            code = {value: known.get(value, -1) for value in distinct}
        else:
            if _ODD in distinct:
                count("neither text, number nor boolean", (value is _ODD for value in values))
            named = [value for value in distinct if value is not None and value is not _ODD]
            self.seen.update(dict.fromkeys(named[:20]))
            code = {value: int(value == self.positive) for value in distinct}
        if self.keep:
            code |= {None: UNLABELLED}
        labels = np.fromiter(map(code.__getitem__, values), dtype=np.intp, count=len(values))
        count("other than 0 and 1", labels < 0)
        if _ODD not in distinct and (labels < 0).any():
            some = [*problems.labels, *(value for value in distinct if value is not None)]
            problems.labels = list(dict.fromkeys(some))[:MOST_LABELS]
        return np.maximum(labels, 0)

    def finish(self, name: str = "label") -> list[Problem]:
        """Problems with the set of labels, once all chunks were read."""
        return [] if self.positive is None else two_valued(self.positive, list(self.seen), name)


def _holds_labels(chunk: Array, or_missing: bool) -> bool:
    """True if an array of numbers or booleans has only zeros and ones, or NaN if that may be."""
    if chunk.dtype.kind == "f":
        good = (chunk == 0) | (chunk == 1)
        return bool((good | np.isnan(chunk) if or_missing else good).all())
    if chunk.dtype.kind in "iu" and chunk.size:
        return bool(chunk.min() >= 0 and chunk.max() <= 1)
    return chunk.dtype.kind in "biu"


def two_valued(positive: Any, seen: list[Any], name: str) -> list[Problem]:
    """Problems with labels: there must be at most two, and the positive one among them."""
    title = title_of("label", name)
    shown = ", ".join(map(repr, seen[:6])) + (" ..." if len(seen) > 6 else "")
    if len(seen) > 2:
        step = "make it two-valued first, for example with label == 'x'"
        return [Problem(title, "must have two values", f"{len(seen)} or more: {shown}", step)]
    if seen and positive not in seen:
        rule = f"must hold the positive label {positive!r}"
        step = "name the positive label exactly as it stands in the column, with its type"
        return [Problem(title, rule, f"only {shown}", step)]
    return []


CODES = {"score": "b", "label": "y", "weight": "v", "person": "u"}
"""The column of counted cells that has the codes of :data:`WRONG`, by role."""


def checked_cells(
    cells: dict[str, Array],
    columns: Mapping[str, Any],
    problems: Problems,
    *,
    positive: Any,
    missing: Missing,
    label_value: Callable[[Any], Any] = str,
    example: Callable[[str, int], Any] | None = None,
) -> tuple[Ints, list[Group]]:
    """The groups of cells that a query counted, as codes, and what they are; raise for bad rows.

    Cells have groups g0, g1 ..., the codes of :data:`CODES`, the number n of rows, and perhaps the
    least and greatest label (least_l, most_l), and which people are handed over (apart).  Those of
    rows that are dropped are removed, and labels that are kept though missing get a code of their
    own.  ``example`` gives a bad value, by role and code.
    """
    keys = [f"g{i}" for i in range(len(columns["group"]))]
    codes = {role: key for role, key in CODES.items() if key in cells}
    problems.rows = int(cells["n"].sum())

    nulls = {role: {columns[role]: np.asarray(cells[key] == -1)} for role, key in codes.items()}
    nulls["group"] = {n: null_rows(cells[k]) for n, k in zip(columns["group"], keys, strict=True)}
    kept = problems.sort_out(*missing.treated(nulls), cells["n"])
    if not kept.all():
        cells.update({key: values[kept] for key, values in cells.items()})
    if missing.keeps("label"):
        cells["y"] = np.where(cells["y"] == -1, UNLABELLED, cells["y"])
    encoder = GroupEncoder([cells[key] for key in keys], missing.name, missing.keeps("group"))
    groups = encoder.encode_cells([cells[key] for key in keys], cells["n"], problems)
    for role, key in codes.items():
        for code, kind in WRONG[role].items():
            count = int(cells["n"][cells[key] == code].sum())
            if count:
                shown = example(role, code) if example is not None and code != -1 else None
                problems.add(role, kind, count, shown)
    more = []
    if "least_l" in cells:
        decided = ~cells["apart"] if "apart" in cells else np.ones(len(groups), dtype=bool)
        negative, found = decided & (cells["y"] == 0), set()
        for key in ("least_l", "most_l"):
            found.update(cells[key][negative].tolist())
        seen = [label_value(value) for value in sorted(found - {None})]
        seen = [positive, *seen] if (cells["y"][decided] == 1).any() else seen
        more = two_valued(positive, seen, columns["label"])
    problems.check(more)
    return groups, encoder.groups


_ODD = object()
"""Stands for a value that is not a text, number or boolean; equal to no label."""


def _scalars(chunk: Array) -> list[Any]:
    """Labels as texts, numbers and booleans; None where they are null."""

    def scalar(value: Any) -> Any:
        if is_null(value):
            return None
        # NumPy's time spans are integers, and 1 nanosecond would be the label 1.
        if isinstance(value, np.generic) and value.dtype.kind in "biufU":
            return value.item()
        return value if isinstance(value, str | int | float | Decimal) else _ODD

    # tolist would turn dates into nanoseconds.
    values = list(chunk) if chunk.dtype.kind in "mM" else chunk.tolist()
    is_plain = set(map(type, values)) <= {str, int, bool, type(None)}
    return values if is_plain else list(map(scalar, values))


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
        new_codes: dict[tuple[type, Group], int] = {}
        table = np.full(len(values) + 1, -1, dtype=np.intp)
        # The last is -1, of null; reading stops as soon as all others occur.
        occurs = np.zeros(len(values) + 1, dtype=bool)
        for start in range(0, len(codes), _TABLE):
            occurs[codes[start : start + _TABLE]] = True
            if occurs[:-1].all():
                break
        for code in np.flatnonzero(occurs[:-1]).tolist():
            if not is_null(values[code]):
                group = read(values[code])
                table[code] = new_codes.setdefault((type(group), group), len(new_codes))
        self.values: list[Group] = [group for _, group in new_codes]
        plain = np.array_equal(table[:-1], np.arange(len(values)))
        self.codes: Array = codes if plain else table[codes]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, part: slice | Bools | Ints) -> Array:
        return self.codes[part]


class _Reader:
    """Turns chunks of one group column into codes; ``values`` are those seen so far."""

    def __init__(self, column: Any) -> None:
        self.values: list[Any] = []
        self.codes: dict[tuple[type, Any], int] = {}
        self.is_encoded = isinstance(column, Encoded)
        for value in column.values if self.is_encoded else ():
            self.code_of(value)
        self.low = 0
        self.table: Ints = np.empty(0, dtype=np.intp)
        self.is_identity = False

    def code_of(self, value: Group | None) -> int:
        """The code of a value, which may be new."""
        key = (type(value), value)
        if key not in self.codes:
            self.codes[key] = len(self.values)
            self.values.append(value)
        return self.codes[key]

    def encode(self, chunk: Array) -> Ints:
        """Codes into ``values``; -1 where the group is null."""
        if self.is_encoded or not len(chunk):
            return chunk.astype(np.intp, copy=False)
        if chunk.dtype.kind not in "biuf":
            return self._by_hashing(chunk)
        null = np.isnan(chunk) if chunk.dtype.kind == "f" else np.zeros(1, dtype=bool)
        if null.any():
            codes = np.full(len(chunk), -1, dtype=np.intp)
            codes[~null] = self.encode(chunk[~null])
            return codes
        small = self._by_table(chunk)
        if small is not None:
            return small
        unique, inverse = np.unique(chunk, return_inverse=True)
        found = [self.code_of(as_scalar(value)) for value in unique.tolist()]
        return np.array(found, dtype=np.intp)[inverse]

    def _by_table(self, chunk: Array) -> Ints | None:
        """The codes of small whole numbers and booleans; None if these are others."""
        is_float = chunk.dtype.kind == "f"
        if is_float and np.abs(chunk).max() >= _TABLE:
            return None
        whole: Ints = chunk.astype(np.intp, copy=False)
        if is_float and not np.array_equal(whole, chunk):
            return None
        index = whole - self.low if self.low else whole
        # Unsigned, numbers below the table are large: one maximum checks both ends.
        if index.view(np.uintp).max() >= len(self.table):
            low, high = int(chunk.min()), int(chunk.max())
            if not -(2**62) < low <= high < 2**62 or high - low >= _TABLE:
                return None
            self.low, self.table = low, np.full(high - low + 1, -1, dtype=np.intp)
            index = whole - low
        if self.table.min() < 0:
            present = np.bincount(index, minlength=len(self.table)) > 0
            new = np.flatnonzero(present & (self.table < 0))
            values = (new + self.low).astype(chunk.dtype).tolist()
            self.table[new] = [self.code_of(as_scalar(value)) for value in values]
            self.is_identity = np.array_equal(self.table, np.arange(len(self.table)))
        # Looking codes up takes longer than the rest.
        return index if self.is_identity else self.table[index]

    def _by_hashing(self, chunk: Array) -> Ints:
        # tolist would turn dates into nanoseconds.
        values = list(chunk) if chunk.dtype.kind in "mM" else chunk.tolist()

        def code(value: Any) -> int:
            return -1 if is_null(value) else self.code_of(as_scalar(value))

        # Each value once, unless two may be equal in Python, such as 1 and True.
        if is_uniform(values):
            codes = {value: code(value) for value in dict.fromkeys(values)}
            return np.fromiter(map(codes.__getitem__, values), dtype=np.intp, count=len(values))
        return np.array([code(value) for value in values], dtype=np.intp)


class GroupEncoder:
    """The groups that one or several columns form, collected chunk by chunk."""

    def __init__(
        self, columns: Sequence[Any], missing_group: Group | None, keep: bool = False
    ) -> None:
        self.readers = [_Reader(column) for column in columns]
        # To keep them, rows without a group are of the group None.
        self.missing, self.fills = missing_group, keep or missing_group is not None
        self.groups: list[Group] = []
        self._index_of: dict[tuple[int, ...], int] = {}

    def encode(self, chunks: Sequence[Array], problems: Problems, start: int) -> Ints:
        """Codes into ``groups``; null groups without a name are counted as a problem."""
        codes = [reader.encode(chunk) for reader, chunk in zip(self.readers, chunks, strict=True)]
        for i, column in enumerate(codes):
            if len(column) and column.min() < 0:
                codes[i] = self._fill(self.readers[i], column, problems, start)
        if len(codes) == 1:
            known = self.readers[0].values
            self.groups.extend(known[len(self.groups) :])
            return codes[0]
        return self._combine(codes)

    def encode_cells(
        self, columns: Sequence[Array], n: npt.NDArray[Any], problems: Problems
    ) -> Ints:
        """The codes of cells; nulls are counted in rows, of which each cell has n."""
        cells = Problems(problems.names)
        codes = self.encode(columns, cells, 0)
        if cells.counts:
            null = np.logical_or.reduce([null_rows(column) for column in columns])
            problems.add("group", "null", int(n[null].sum()))
        return codes

    def _fill(self, reader: _Reader, codes: Ints, problems: Problems, start: int) -> Ints:
        null = codes < 0
        if not self.fills:
            rows = np.flatnonzero(null)
            problems.add("group", "null", len(rows), row=start + int(rows[0]))
            # The error is raised at the end; until then they count as the first group.
            if not reader.values:
                reader.values.append("")
            return np.where(null, 0, codes)
        return np.where(null, reader.code_of(self.missing), codes)

    def _combine(self, columns: list[Ints]) -> Ints:
        # Two columns at a time, so that the keys stay small however many columns there are.
        key, combinations = columns[0], [(code,) for code in range(len(self.readers[0].values))]
        for column, reader in zip(columns[1:], self.readers[1:], strict=True):
            size = len(reader.values)
            unique, key = _unique_small(key * size + column, len(combinations) * size)
            combinations = [
                (*combinations[value // size], value % size) for value in unique.tolist()
            ]
        codes = np.empty(len(combinations), dtype=np.intp)
        for i, combination in enumerate(combinations):
            if combination not in self._index_of:
                self._index_of[combination] = len(self.groups)
                values = (r.values[k] for r, k in zip(self.readers, combination, strict=True))
                self.groups.append(tuple(values))
            codes[i] = self._index_of[combination]
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
    if is_masked(array):
        array = unmasked(array)
    if array.dtype.kind == "T":
        array = array.astype(object)
    if array.ndim != 1:
        got = f"an array of shape {array.shape}"
        raise DataError(Problem(role, "must have one dimension", got, "pass one value per row"))
    return array


def null_rows(column: Any, part: slice = slice(None)) -> Bools:
    """True where a value of a part of a column is null."""
    chunk = column[part]
    if isinstance(column, Encoded):
        return np.asarray(chunk < 0)
    if chunk.dtype.kind in "fmM":
        return np.asarray(np.isnan(chunk) if chunk.dtype.kind == "f" else np.isnat(chunk))
    if chunk.dtype.kind in "biuU":
        return np.zeros(len(chunk), dtype=bool)
    return np.fromiter(map(is_null, chunk.tolist()), dtype=bool, count=len(chunk))


def rows_of(columns: Mapping[str, Array], names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of some columns, with None for what is null."""
    listed = [as_objects(columns[name].tolist()) for name in names]
    for values in listed:
        values[null_rows(values)] = None
    return list(zip(*listed, strict=True))


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
    """Values as an array of objects; NumPy would turn lists into a second dimension."""
    return np.fromiter(values, dtype=object, count=len(values))


def is_uniform(values: Sequence[Any]) -> bool:
    """True if all values are texts, whole numbers or booleans, but for None.

    Then no two different groups are equal in Python, as 1 and True are.
    """
    return set(map(type, values)) - {type(None)} in _DISTINCT


def _is_mixed(values: Sequence[Any]) -> bool:
    """True if NumPy would change values: [1, "1"], [None, "a"], [1, True], [2**53 + 1, 0.5]."""
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
