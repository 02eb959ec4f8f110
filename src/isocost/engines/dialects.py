"""Dialects of SQL: names, texts, numbers, the coin and an error, as each database spells them.

A new dialect is a new row of :data:`DIALECTS`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from isocost.checks import is_writable
from isocost.errors import Problem, UsageError, setting, spoken
from isocost.groups import Scalar

DOLLAR = r"\u0024"
"""A dollar sign that begins no ${name}, where a backslash escapes."""


@dataclass(frozen=True)
class Dialect:
    """One way to write SQL; what has braces is a template.

    ``double`` and ``whole`` are types to cast to.  ``as_text`` makes a text, ``hexed`` the MD5 of a
    text as lower-case hexadecimal digits, ``fails`` an expression that ends the query with a text,
    ``compared`` a text that is compared byte by byte, ``joined`` one text of two, null if either
    is, ``number_as`` an exact double of its digits, and ``as_number`` a double of a column.

    ``star`` is how columns are left out of a star; "lateral" where helpers stand beside the table
    instead.  ``strings`` and ``names`` say what a backslash is in a text and in a quoted name:
    itself ("plain"), an escape ("escape", "escape all"), either ("E", "chr").

    ``is_nan`` is None where a double is never NaN; ``float_id`` tests that a column is of a
    floating type, where there is one; rows are grouped by ``group_key`` where values that differ
    may be held equal.  ``numbers_as_text`` compares whole numbers as texts; ``underflow_fails``
    where a product that is too small is an error, and ``substitutes`` where ${name} is replaced
    anywhere before the query is read.  Names in lower case are left without quotes except for the
    words of ``reserved``, if there is any.  ``aliases`` are databases that read this dialect.
    """

    name: str
    double: str = "DOUBLE"
    whole: str = "INT"
    as_text: str = "CAST({} AS VARCHAR)"
    hexed: str = "MD5({})"
    fails: str = "CAST({} AS DOUBLE)"
    star: Literal["EXCLUDE", "EXCEPT", "EXCLUDE last", "lateral"] = "lateral"
    is_nan: str | None = None
    quote: str = '"'
    compared: str = "{}"
    strings: Literal["plain", "escape", "escape all", "E", "chr"] = "plain"
    names: Literal["plain", "escape", "escape all"] = "plain"
    joined: str = "{} || {}"
    number_as: str = "{}"
    as_number: str = "CAST({0} AS {1})"
    float_id: str | None = None
    group_key: str | None = None
    numbers_as_text: bool = False
    underflow_fails: bool = False
    substitutes: bool = False
    reserved: str | None = None
    aliases: tuple[str, ...] = ()

    def name_of(self, column: str) -> str:
        """The name of a column or table, quoted.

        Examples
        --------
        >>> from isocost.engines.dialects import DIALECTS
        >>> print(DIALECTS["postgres"].name_of('a"b'), DIALECTS["mysql"].name_of("a`b"))
        "a""b" `a``b`
        """
        if not (isinstance(column, str) and "\0" not in column and is_writable(column) and column):
            step = "pass the name as it stands in the database"
            must = "must be a text that is not empty"
            raise UsageError(Problem("name", must, repr(column), step))
        if self.substitutes and "${" in column:
            step = "give the column another name in a view, and pass that"
            rule = f"must not contain ${{, which {self.name} replaces before it reads the query"
            raise UsageError(Problem("name", rule, repr(column), step))
        plain = re.fullmatch("[a-z_][a-z0-9_]*", column)
        if self.reserved is not None and plain and column not in self.reserved.split():
            return column
        if self.names == "escape all":
            return f"{self.quote}{_escaped(column, self.quote)}{self.quote}"
        if self.names == "escape":
            column = column.replace("\\", "\\\\")
        return self.quote + column.replace(self.quote, self.quote * 2) + self.quote

    def table_of(self, table: str | Sequence[str]) -> str:
        """A table, given as its parts or with dots between them; parts may be quoted."""
        if not isinstance(table, str | list | tuple) or not table:
            step = f"use {setting('table', 'scores')}"
            raise UsageError(Problem("table", "must be named", repr(table), step))
        parts = _split(table, self.quote) if isinstance(table, str) else list(table)
        return ".".join(self.name_of(part) for part in parts)

    def text(self, value: str) -> str:
        r"""A text as a literal, exactly.

        Examples
        --------
        >>> from isocost.engines.dialects import DIALECTS
        >>> for name in ("duckdb", "postgres", "mysql", "bigquery", "redshift"):
        ...     print(DIALECTS[name].text("it's a\\b"))
        'it''s a\b'
        E'it''s a\\b'
        'it''s a\\b'
        'it\'s a\\b'
        'it''s a' || CHR(92) || 'b'
        """
        if "\0" in value:
            step = "rename the group in the data and make the rule again"
            rule = "must be a text that SQL can express"
            raise UsageError(Problem("text", rule, f"{value!r}, with a null character", step))
        if self.strings == "escape all":
            escaped = _escaped(value, "'")
            return f"'{escaped.replace('$', DOLLAR) if self.substitutes else escaped}'"
        doubled = value.replace("'", "''")
        if self.strings in ("plain", "chr"):
            # Line breaks are written as CHR, so that a text does not break the lines of the query.
            apart = "([\n\r])" if self.strings == "plain" else r"([\n\r\\])"
            pieces = enumerate(re.split(apart, doubled))
            return " || ".join(f"CHR({ord(p)})" if i % 2 else f"'{p}'" for i, p in pieces)
        # Where a setting decides whether backslashes escape, doubled quotes work in both cases.
        escaped = doubled.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        prefix = "E" if self.strings == "E" and escaped != doubled else ""
        return f"{prefix}'{escaped}'"

    def number(self, value: float) -> str:
        """A double with all its digits and an exponent, so that it is not a decimal number."""
        digits = repr(float(value))
        if self.number_as == "{}" and "e" not in digits:
            digits += "e0"
        return self.number_as.format(digits)

    def literal(self, value: Scalar) -> str:
        """A value of a group as a literal."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            return self.text(value)
        return str(value) if isinstance(value, int) else self.number(value)

    def same(self, column: str, value: Scalar) -> str:
        """The condition that a column, prepared by :meth:`comparable`, has a value."""
        if self.numbers_as_text and isinstance(value, int):
            return f"{column} = {self.text(str(int(value)))}"
        return f"{column} = {self.literal(value)}"

    def comparable(self, column: str, kind: type) -> str:
        """A column prepared for comparison with values of a type."""
        if kind is float:
            return self.as_double(column)
        if kind is str or self.numbers_as_text:
            return self.compared.format(self.as_text.format(column))
        return column

    def as_double(self, column: str) -> str:
        """A column as double."""
        return self.as_number.format(column, self.double)

    def coin(self, salt: str, id: str) -> str:
        """The coin of an id as 13 hexadecimal digits."""
        message = self.joined.format(self.text(f"{salt}:"), self.as_text.format(id))
        return self.compared.format(f"SUBSTR({self.hexed.format(message)}, 1, 13)")

    def fail(self, what: str, shown: str) -> str:
        """An expression that ends the query with a message and a text.

        It always depends on the row: otherwise it may be evaluated before any row is read, and
        every query would fail.
        """
        value = f"COALESCE({shown}, 'null')"
        return self.fails.format(self.joined.format(self.text(f"isocost: {what}: "), value))


def _escaped(text: str, quote: str) -> str:
    """A text for dialects in which a backslash escapes."""
    named = {"\\": "\\\\", quote: f"\\{quote}", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return "".join(named.get(letter, letter) for letter in text)


def _split(table: str, quote: str) -> list[str]:
    """The parts of a dotted name; a quoted part may contain dots."""
    mark = re.escape(quote)
    quoted = rf"{mark}(?:[^{mark}]|{mark}{mark})*{mark}"
    if not re.fullmatch(rf"(?:{quoted}|[^.{mark}]+)(?:\.(?:{quoted}|[^.{mark}]+))*", table):
        step = spoken(
            'pass the parts as a tuple, such as table=("lake", "daily scores")',
            f"quote a part that has a dot or a quote in it with {quote}",
        )
        raise UsageError(Problem("table", "must be a name, or names and dots", repr(table), step))
    parts = re.findall(rf"{quoted}|[^.{mark}]+", table)
    return [
        part[1:-1].replace(quote * 2, quote) if part.startswith(quote) else part for part in parts
    ]


def dialect_named(name: object) -> Dialect:
    """The dialect of this name, or an error that lists the dialects."""
    if isinstance(name, Dialect):
        return name
    plain = str(name).lower()
    plain = next((d.name for d in DIALECTS.values() if plain in d.aliases), plain)
    if plain in _UNABLE:
        rule = "must be able to do what the rule needs"
        raise UsageError(Problem("dialect", rule, *_UNABLE[plain]))
    if plain not in DIALECTS:
        rule = f"must be one of {', '.join(DIALECTS)}"
        step = "use the one whose SQL your database is nearest to, and read the query first"
        raise UsageError(Problem("dialect", rule, repr(name), step))
    return DIALECTS[plain]


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "duckdb",
            hexed="md5({})",
            fails="error({})",
            star="EXCLUDE",
            is_nan="isnan({})",
            # The statistics of Parquet files ignore NaN, and without the CASE DuckDB trusts them:
            # NaN would lie in [0, 1].
            as_number="CASE WHEN {0} IS NOT NULL THEN CAST({0} AS {1}) END",
            float_id="typeof({}) IN ('DOUBLE', 'FLOAT')",
        ),
        Dialect(
            "postgres",
            double="DOUBLE PRECISION",
            as_text="CAST({} AS TEXT)",
            # Otherwise the bytes are those of the database's encoding.
            hexed="md5(convert_to({}, 'UTF8'))",
            fails="CAST({} AS DOUBLE PRECISION)",
            is_nan="{} = 'NaN'::DOUBLE PRECISION",
            # Under a locale, digits may come after letters or be compared as numbers.
            compared='{} COLLATE "C"',
            strings="E",
            number_as="'{}'::DOUBLE PRECISION",
            float_id="CAST(pg_typeof({}) AS TEXT) IN ('double precision', 'real')",
            underflow_fails=True,
            aliases=("postgresql",),
        ),
        Dialect(
            "bigquery",
            double="FLOAT64",
            whole="INT64",
            as_text="CAST({} AS STRING)",
            hexed="TO_HEX(MD5({}))",
            fails="ERROR({})",
            star="EXCEPT",
            is_nan="IS_NAN({})",
            quote="`",
            strings="escape all",
            names="escape all",
        ),
        Dialect(
            "snowflake",
            star="EXCLUDE",
            is_nan="{} = 'NaN'::DOUBLE",
            strings="escape",
            number_as="'{}'::DOUBLE",
            reserved=(
                "account all alter and any as between by case cast check column connect connection "
                "constraint create cross current database delete distinct drop else exists false "
                "following for from full grant group gscluster having ilike in increment inner "
                "insert intersect into is issue join lateral left like localtime localtimestamp "
                "minus natural not null of on or order organization qualify regexp revoke right "
                "rlike row rows sample schema select set some start table tablesample then to "
                "trigger true try_cast union unique update using values view when whenever where "
                "with"
            ),
        ),
        Dialect(
            "spark",
            as_text="CAST({} AS STRING)",
            hexed="md5({})",
            fails="raise_error({})",
            is_nan="isnan({})",
            quote="`",
            strings="escape all",
            float_id="typeof({}) IN ('double', 'float')",
            substitutes=True,
            aliases=("databricks", "spark2"),
        ),
        Dialect(
            "trino",
            whole="INTEGER",
            hexed="LOWER(TO_HEX(MD5(TO_UTF8({}))))",
            is_nan="IS_NAN({})",
            float_id="typeof({}) IN ('double', 'real')",
            aliases=("presto",),
        ),
        Dialect(
            "redshift",
            double="DOUBLE PRECISION",
            # Without a length a text is cut to 256 bytes.
            as_text="CAST({} AS VARCHAR(65535))",
            fails="CAST({} AS DOUBLE PRECISION)",
            star="EXCLUDE last",
            is_nan="{} = 'NaN'::DOUBLE PRECISION",
            strings="chr",
            number_as="'{}'::DOUBLE PRECISION",
            underflow_fails=True,
        ),
        Dialect(
            "mysql",
            whole="SIGNED",
            as_text="CONVERT({} USING utf8mb4)",
            # A cast only warns here; a text that is not JSON is an error.
            fails="JSON_LENGTH({})",
            quote="`",
            # Otherwise 'a', 'A' and 'a ' are equal, and so are the text 'a' and the number 0.
            compared="CAST({} AS BINARY)",
            strings="escape",
            joined="CONCAT({}, {})",
            group_key="CAST(CONVERT({} USING utf8mb4) AS BINARY)",
            numbers_as_text=True,
        ),
        Dialect(
            "clickhouse",
            double="Nullable(Float64)",
            whole="Int32",
            as_text="CAST({} AS Nullable(String))",
            hexed="lower(hex(MD5({})))",
            fails="toFloat64({})",
            star="EXCEPT",
            is_nan="isNaN({})",
            quote="`",
            strings="escape",
            names="escape",
            float_id="toTypeName({}) LIKE '%Float%'",
        ),
    )
}
"""Every dialect by its name."""

DUCKDB = DIALECTS["duckdb"]

_UNABLE = {
    "sqlite": (
        "sqlite, which has no MD5 and so cannot throw the coin",
        "open the file in DuckDB (ATTACH 'file.db' (TYPE sqlite)) and use the dialect duckdb",
    ),
    "mariadb": (
        "mariadb, which has no way to end a SELECT at a bad row and no LATERAL",
        "read the table into a frame, or copy it to a file, and use rule.apply or isocost apply",
    ),
}


def quoted(column: str) -> str:
    """A column name in double quotes; quotes inside it are doubled."""
    return '"' + column.replace('"', '""') + '"'


def literal(value: Scalar) -> str:
    """A value as SQL; floats with an exponent, so that they are doubles and not decimals.

    Examples
    --------
    >>> literal("it's"), literal(0.1), literal(3), literal(True)
    ("'it''s'", '0.1e0', '3', 'TRUE')
    """
    if isinstance(value, str):
        # Also a path, which must be one literal whatever it contains.
        return "'" + value.replace("'", "''") + "'"
    return DUCKDB.literal(value)
