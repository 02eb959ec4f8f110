"""Pieces of SQL: quoting, the bin of a score, and a rule as one CASE expression.

For DuckDB, which reads files for isocost; the types of the columns are known here.  Queries for
other databases are in :mod:`isocost.engines.select`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isocost.engines.cases import Case, repaired_group
from isocost.engines.dialects import DUCKDB
from isocost.groups import Group, Scalar
from isocost.rules import Rule

__all__ = ["NUMBERS", "Column", "is_group", "literal", "name", "repaired"]

NUMBERS = ("INT", "DOUBLE", "FLOAT", "REAL", "DECIMAL")
"""What the names of numeric types contain."""


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
        """The condition that it has a value; none that is of another type is ever equal."""
        if self.meaning is not None:
            same = [t for t, v in self.meaning.items() if v == value and type(v) is type(value)]
            return f"{self.text} IN ({', '.join(map(literal, same))})" if same else "FALSE"
        if isinstance(value, str):
            fits = self.kind == "VARCHAR" or self.kind.startswith("ENUM")
        elif isinstance(value, bool):
            fits = self.kind == "BOOLEAN"
        else:
            fits = any(number in self.kind for number in NUMBERS)
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
