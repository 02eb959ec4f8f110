"""The nine databases that queries are written for, one after the other.

What they have in common is in :mod:`isocost.engines.cases` and :mod:`isocost.engines.select`; what
differs is here, and what the entries mean in :class:`isocost.engines.grammar.Dialect`.
"""

from __future__ import annotations

from isocost.engines.grammar import Dialect
from isocost.errors import Problem, UsageError

__all__ = ["DIALECTS", "DUCKDB", "dialect_named"]


def dialect_named(name: object) -> Dialect:
    """The dialect of this name, or an error that lists those there are."""
    if isinstance(name, Dialect):
        return name
    plain = _ALIASES.get(str(name).lower(), str(name).lower())
    if plain in _UNABLE:
        raise UsageError(
            Problem("dialect", "must be able to do what the rule needs", *_UNABLE[plain])
        )
    if plain not in DIALECTS:
        raise UsageError(
            Problem(
                "dialect",
                f"must be one of {', '.join(DIALECTS)}",
                repr(name),
                "use the one whose SQL your database is nearest to, and read the query first",
            )
        )
    return DIALECTS[plain]


DUCKDB = Dialect(
    "duckdb",
    double="DOUBLE",
    whole="INT",
    as_text="CAST({} AS VARCHAR)",
    hexed="md5({})",
    fails="error({})",
    star="EXCLUDE",
    is_nan="isnan({})",
    # Parquet says nothing of NaN in its least and greatest values, and without the CASE DuckDB
    # believes that there is none: NaN would lie in [0, 1].
    as_number="CASE WHEN {0} IS NOT NULL THEN CAST({0} AS {1}) END",
    float_id="typeof({}) IN ('DOUBLE', 'FLOAT')",
)
POSTGRES = Dialect(
    "postgres",
    double="DOUBLE PRECISION",
    whole="INT",
    as_text="CAST({} AS TEXT)",
    # The bytes are those of the database's encoding unless they are asked for.
    hexed="md5(convert_to({}, 'UTF8'))",
    fails="CAST({} AS DOUBLE PRECISION)",
    star="lateral",
    is_nan="{} = 'NaN'::DOUBLE PRECISION",
    # Under a locale, digits may come after letters or be compared as numbers.
    compared='{} COLLATE "C"',
    strings="E",
    number_as="'{}'::DOUBLE PRECISION",
    float_id="CAST(pg_typeof({}) AS TEXT) IN ('double precision', 'real')",
    underflow_fails=True,
)
BIGQUERY = Dialect(
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
)
SNOWFLAKE = Dialect(
    "snowflake",
    double="DOUBLE",
    whole="INT",
    as_text="CAST({} AS VARCHAR)",
    hexed="MD5({})",
    fails="CAST({} AS DOUBLE)",
    star="EXCLUDE",
    is_nan="{} = 'NaN'::DOUBLE",
    strings="escape",
    number_as="'{}'::DOUBLE",
    folds_case=True,
)
SPARK = Dialect(
    "spark",
    double="DOUBLE",
    whole="INT",
    as_text="CAST({} AS STRING)",
    hexed="md5({})",
    fails="raise_error({})",
    star="lateral",
    is_nan="isnan({})",
    quote="`",
    strings="escape all",
    float_id="typeof({}) IN ('double', 'float')",
)
TRINO = Dialect(
    "trino",
    double="DOUBLE",
    whole="INTEGER",
    as_text="CAST({} AS VARCHAR)",
    hexed="LOWER(TO_HEX(MD5(TO_UTF8({}))))",
    fails="CAST({} AS DOUBLE)",
    star="lateral",
    is_nan="IS_NAN({})",
    float_id="typeof({}) IN ('double', 'real')",
)
REDSHIFT = Dialect(
    "redshift",
    double="DOUBLE PRECISION",
    whole="INT",
    # Without a length a text is cut to 256 bytes.
    as_text="CAST({} AS VARCHAR(65535))",
    hexed="MD5({})",
    fails="CAST({} AS DOUBLE PRECISION)",
    star="EXCLUDE last",
    is_nan="{} = 'NaN'::DOUBLE PRECISION",
    strings="chr",
    number_as="'{}'::DOUBLE PRECISION",
    underflow_fails=True,
)
MYSQL = Dialect(
    "mysql",
    double="DOUBLE",
    whole="SIGNED",
    as_text="CONVERT({} USING utf8mb4)",
    hexed="MD5({})",
    # A cast only warns here; a text that is no JSON is an error.
    fails="JSON_LENGTH({})",
    star="lateral",
    is_nan=None,
    quote="`",
    # Otherwise 'a', 'A' and 'a ' are equal, and so are the text 'a' and the number 0.
    compared="CAST({} AS BINARY)",
    strings="escape",
    group_key="CAST(CONVERT({} USING utf8mb4) AS BINARY)",
    numbers_as_text=True,
)
CLICKHOUSE = Dialect(
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
    float_id="toTypeName({}) LIKE '%Float%'",
)

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        DUCKDB,
        POSTGRES,
        BIGQUERY,
        SNOWFLAKE,
        SPARK,
        TRINO,
        REDSHIFT,
        MYSQL,
        CLICKHOUSE,
    )
}
"""Every dialect by its name."""

_ALIASES = {"postgresql": "postgres", "databricks": "spark", "spark2": "spark", "presto": "trino"}

_UNABLE = {
    "sqlite": (
        "sqlite, which has no MD5 and so cannot throw the coin",
        "open the file in DuckDB (ATTACH 'file.db' (TYPE sqlite)) and use dialect=\"duckdb\"",
    ),
    "mariadb": (
        "mariadb, which has no way to end a SELECT at a bad row and no LATERAL",
        "read the table into a frame, or copy it to a file, and use rule.apply or isocost apply",
    ),
}
