"""Pieces of SQL: quoting, the bin of a score, and a rule as one CASE expression.

Written for DuckDB, which reads files for isocost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isocost.coin import hex_bound
from isocost.grid import Grid
from isocost.groups import Group, Scalar
from isocost.rows import Segment
from isocost.rules import Rule

__all__ = ["NUMBERS", "Column", "bin_of", "is_group", "literal", "name", "repaired"]

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
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, int):
        return str(value)
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def bin_of(score: str, grid: Grid) -> str:
    """The bin of a score in [0, 1]: the equal part it is in, plus the further edges below it."""
    last = grid.bins - 1
    part = f"least(floor({score} * {grid.bins}), {last})"
    if not grid.is_dyadic:
        # The product may round across an edge: compare with the edge itself.
        bins = literal(float(grid.bins))
        part = (
            f"least({part} - ({score} < {part} / {bins})::INT "
            f"+ ({score} >= ({part} + 1) / {bins})::INT, {last})"
        )
    beyond = "".join(f" + ({score} >= {literal(edge)})::INT" for edge in grid.extra)
    return f"({part})::INT{beyond}"


@dataclass(frozen=True)
class Column:
    """A column as SQL, with its type."""

    text: str
    kind: str

    def test(self, value: Scalar) -> str:
        """The condition that it has a value; none that is of another type is ever equal."""
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
    digest = "" if id is None else f"substr(md5({literal(rule.salt + ':')} || {id}), 1, 13)"
    whens = []
    for group in groups:
        segments = rule.segments(group)
        if segments:
            inner = " ".join(_when(segment, score, digest) for segment in segments)
            condition = is_group(columns, group, missing)
            whens.append(f"WHEN {condition} THEN CASE {inner} ELSE {score} END")
    return f"CASE {' '.join(whens)} ELSE {score} END" if whens else score


def _when(segment: Segment, score: str, digest: str) -> str:
    upper = "" if segment.hi == 1.0 else f" AND {score} < {literal(segment.hi)}"
    outcomes = []
    for row, bound in zip(segment.rows, segment.bounds, strict=True):
        new = f"1e0 - {score}" if row.value is None else literal(row.value)
        test = f"{digest} < '{hex_bound(bound)}'" if segment.needs_coin else str(bound > 0).upper()
        outcomes.append(f"WHEN {test} THEN {new}")
    chosen = f"CASE {' '.join(outcomes)} ELSE {score} END"
    return f"WHEN {score} >= {literal(segment.lo)}{upper} THEN {chosen}"
