"""Pieces of SQL: quoting, the bin of a score, and a rule as one CASE expression.

For DuckDB, which reads files for isocost; the types of the columns are known here.  Queries for
other databases are in :mod:`isocost.engines.warehouse.select`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isocost.engines.warehouse.dialects import DUCKDB
from isocost.engines.warehouse.select import Case, repaired_group
from isocost.groups import Group, Scalar, is_exact
from isocost.rules import Rule

__all__ = [
    "WHOLE",
    "Column",
    "as_number",
    "is_decimal",
    "is_group",
    "is_number",
    "literal",
    "name",
    "repaired",
]

_SIZES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
WHOLE = (*_SIZES, *(f"U{size}" for size in _SIZES))
"""The types of whole numbers."""


def is_decimal(kind: str) -> bool:
    """Whether a type is DECIMAL; a list of decimals is not."""
    return kind.startswith("DECIMAL(") and kind.endswith(")")


def is_number(kind: str) -> bool:
    """Whether a type holds numbers.

    Examples
    --------
    >>> [is_number(kind) for kind in ("BIGINT", "DECIMAL(3,1)", "INTERVAL", "INTEGER[]")]
    [True, True, False, False]
    """
    return kind in WHOLE or kind in ("DOUBLE", "FLOAT") or is_decimal(kind)


def as_number(text: str) -> str:
    """A text as a double, null if it is none; DuckDB alone would read 0_1 as 1."""
    return f"try_cast(CASE WHEN contains({text}, '_') THEN NULL ELSE {text} END AS DOUBLE)"


def name(column: str) -> str:
    """A column name in double quotes, those inside it doubled."""
    return '"' + column.replace('"', '""') + '"'


def literal(value: Scalar) -> str:
    """A value as SQL; floats with an exponent, so that they are doubles and not decimals.

    Examples
    --------
    >>> literal("it's"), literal(0.1), literal(3), literal(True)
    ("'it''s'", '0.1e0', '3', 'TRUE')
    """
    if isinstance(value, str):
        # Also a path, which must be one literal whatever is in it.
        return "'" + value.replace("'", "''") + "'"
    return DUCKDB.literal(value)


@dataclass(frozen=True)
class Column:
    """A column as SQL, with its type; or, of a CSV, with what each of its texts means."""

    text: str
    kind: str
    meaning: Mapping[str, Scalar] | None = None

    def test(self, value: Scalar) -> str:
        """The condition that it has a value, as Python compares: 1 is 1.0 and True."""
        if self.meaning is not None:
            same = [text for text, v in self.meaning.items() if v == value]
            return f"{self.text} IN ({', '.join(map(literal, same))})" if same else "FALSE"
        if isinstance(value, str):
            fits = self.kind == "VARCHAR" or self.kind.startswith("ENUM")
        elif self.kind == "BOOLEAN":
            fits, value = value in (0, 1), bool(value)
        elif self.kind in WHOLE:
            # As a whole number, because DuckDB compares with a double by rounding the column.
            fits, value = value == int(value), int(value)
        else:
            fits = is_number(self.kind) and is_exact(value)
            value = float(value) if fits else value
        return f"{self.text} = {literal(value)}" if fits else "FALSE"

    def is_missing(self) -> str:
        """The condition that it is null or NaN."""
        nan = f" OR isnan({self.text})" if self.kind in ("DOUBLE", "FLOAT") else ""
        return f"{self.text} IS NULL{nan}"


def is_group(columns: Sequence[Column], group: Group, missing: Group | None) -> str:
    """The condition that a row is of a group; nulls are of the group called ``missing``."""
    parts = group if isinstance(group, tuple) else (group,)
    tests = []
    for column, part in zip(columns, parts, strict=True):
        test = column.test(part)
        tests.append(f"({test} OR {column.is_missing()})" if part == missing else test)
    return " AND ".join(tests)


def repaired(
    rule: Rule,
    groups: Sequence[Group],
    score: str,
    columns: Sequence[Column],
    id: str | None,
    missing: Group | None = None,
) -> str:
    """The score after the rule, as one CASE expression over the groups that occur.

    Parameters
    ----------
    score, id : str
        SQL expressions for the score (a double) and the id (a text).
    columns : list of Column
        The group columns.
    """
    coin = "" if id is None else DUCKDB.coin(rule.salt, id)
    whens = tuple(
        (is_group(columns, group, missing), repaired_group(rule, group, score, coin, DUCKDB))
        for group in groups
        if rule.segments(group)
    )
    return str(Case(whens, score)) if whens else score
