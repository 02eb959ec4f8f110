"""The queries on every warehouse that can run here: DuckDB, PostgreSQL, Spark, and translations.

Each gives the repaired scores, the tallies and the errors that NumPy gives.
"""

import math
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

import isocost as ic
from isocost.engines.dialects import DIALECTS
from isocost.rules import Row
from tests import warehouse
from tests.conftest import free_port
from tests.engines import SPARK_ERRORS

try:
    import psycopg
except ImportError:
    psycopg = None

TRANSPILED = ("bigquery", "snowflake", "trino", "redshift", "clickhouse")
"""Dialects that sqlglot turns into DuckDB's faithfully; the others run or are parsed."""

MACROS = (
    "CREATE MACRO toFloat64(x) AS CAST(x AS DOUBLE)",
    "CREATE MACRO toTypeName(x) AS replace(typeof(x), 'DOUBLE', 'Float64')",
)
"""Functions of ClickHouse that sqlglot leaves as they are."""

# Compiling each long CASE takes longer than running it on so few rows.
QUICK_SPARK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}

TYPES = {
    "row": "int", "score": "double precision", "group": "text", "three": "text", "number": "int",
    "half": "double precision", "flag": "boolean", "id": "bigint", "name": "text", "label": "int",
    "yes": "text", "weight": "double precision",
}  # fmt: skip
ODD_LOCALE = "en-u-kn-true-kr-latn-digit"
"""Numbers inside texts compare by their size, and letters come before digits."""


def binaries():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    place = shutil.which("postgres") or (str(found[-1]) if found else None)
    return Path(place).parent if place else None


def as_user():
    """PostgreSQL refuses to run as root; then it runs as the user its package made."""
    if os.geteuid() != 0:
        return {}
    import pwd

    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@pytest.fixture(scope="module")
def server():
    """A server in a folder of its own; gives the words that connect to it."""
    place = binaries()
    if place is None or psycopg is None:
        pytest.skip("PostgreSQL or psycopg is not installed")
    folder = Path(tempfile.mkdtemp(prefix="isocost-postgres-"))
    try:
        yield from running(place, folder, as_user())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def running(place, folder, user):
    if user:
        os.chown(folder, user["user"], user["group"])
    data = folder / "data"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "cwd": folder, **user}
    command = [place / "initdb", "-D", data, "-U", "isocost", "-A", "trust", "-E", "UTF8"]
    done = subprocess.run([*command, "--locale=C", "--no-sync"], check=False, **quiet)
    if done.returncode:
        pytest.skip(f"initdb does not run here: {done.stderr.decode()[:200]}")
    port = free_port()
    options = ["-D", data, "-k", folder, "-h", "127.0.0.1", "-p", str(port), "-F"]
    with (folder / "log").open("wb") as log:
        started = subprocess.Popen(
            [place / "postgres", *options], stdout=log, stderr=log, cwd=folder, **user
        )
    try:
        words = f"host=127.0.0.1 port={port} user=isocost"
        wait_for(started, words, folder / "log")
        yield words
    finally:
        started.send_signal(signal.SIGINT)
        started.wait(timeout=20)


def wait_for(started, words, log):
    for _ in range(200):
        if started.poll() is not None:
            pytest.skip(f"PostgreSQL does not start here: {log.read_text()[-300:]}")
        try:
            psycopg.connect(f"{words} dbname=postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("PostgreSQL does not answer")


def filled(connection):
    columns = ", ".join(f'"{name}" {kind}' for name, kind in TYPES.items())
    connection.execute(f"CREATE TABLE people ({columns})")
    rows = zip(*(warehouse.people()[name].tolist() for name in TYPES), strict=True)
    with connection.cursor() as cursor, cursor.copy("COPY people FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    return connection


def on_postgres(server, name):
    """The people in a database, under the plain order of bytes or under a strange one."""
    icu = "" if name == "plain" else f" LOCALE_PROVIDER icu ICU_LOCALE '{ODD_LOCALE}'"
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as connection:
        try:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0{icu}")
        except psycopg.Error as error:
            pytest.skip(f"this PostgreSQL has no ICU locales: {error}")
    with psycopg.connect(f"{server} dbname={name}", autocommit=True) as connection:
        filled(connection)
        run = lambda query: connection.execute(query).fetchall()  # noqa: E731
        yield SimpleNamespace(dialect="postgres", run=run, errors=psycopg.Error, native=connection)


def on_spark(spark, folder):
    before = {name: spark.conf.get(name) for name in QUICK_SPARK}
    for name, value in QUICK_SPARK.items():
        spark.conf.set(name, value)
    people = pa.table({k: v.tolist() for k, v in warehouse.people().items()})
    for part, start in enumerate((0, 500)):
        pq.write_table(people[start : 500 if start == 0 else None], folder / f"{part}.parquet")
    spark.read.parquet(str(folder)).createOrReplaceTempView("people")
    run = lambda query: spark.sql(query).collect()  # noqa: E731
    yield SimpleNamespace(dialect="spark", run=run, errors=SPARK_ERRORS, native=spark)
    spark.catalog.dropTempView("people")
    for name, value in before.items():
        spark.conf.set(name, value)


def on_duckdb(dialect):
    with duckdb.connect() as connection:
        connection.register("people", pd.DataFrame(warehouse.people()))
        for macro in MACROS:
            connection.execute(macro)

        def run(query):
            if dialect != "duckdb":
                (query,) = sqlglot.transpile(query, read=dialect, write="duckdb")
            return connection.execute(query).fetchall()

        yield SimpleNamespace(dialect=dialect, run=run, errors=duckdb.Error, native=connection)


WAREHOUSES = ("duckdb", *TRANSPILED, "plain", "odd", "spark")


@pytest.fixture(scope="module")
def houses(request, tmp_path_factory):
    """A function that opens a warehouse when it is first asked for."""
    opened = {}

    def made(name):
        if name in ("plain", "odd"):
            return on_postgres(request.getfixturevalue("server"), name)
        if name != "spark":
            return on_duckdb(name)
        pytest.importorskip("pyspark", reason="pyspark is not installed")
        return on_spark(request.getfixturevalue("spark"), tmp_path_factory.mktemp("lake"))

    with ExitStack() as stack:

        def get(name):
            if name not in opened:
                opened[name] = stack.enter_context(contextmanager(lambda: made(name))())
            return opened[name]

        yield get


@pytest.fixture(params=WAREHOUSES)
def house(request, houses):
    """A warehouse with the people: its dialect, a function that runs a query, and its errors."""
    return houses(request.param)


on_both_postgres = pytest.mark.parametrize("house", ["plain", "odd"], indirect=True)

FEW = [("withhold", "id"), ("recalibrated", "name"), ("custom", "name")]
MORE = [("coarsen", "name"), ("odds", "id"), ("reconcile", "name"), ("custom", "id")]
ALL = [(name, id) for name in warehouse.rules() for id in ("id", "name")]
CASES = dict.fromkeys(TRANSPILED, FEW) | {"spark": FEW + MORE}


@pytest.mark.parametrize(
    ("house", "name", "id"),
    [(house, *case) for house in WAREHOUSES for case in CASES.get(house, ALL)],
    indirect=["house"],
)
def test_every_row_is_that_of_numpy(house, name, id):
    rule = warehouse.rules()[name]
    warehouse.check_rule(house.run, house.dialect, rule, warehouse.group_of(name), id)


@pytest.mark.parametrize("kind", ["whole", "float", "boolean", "pairs"])
def test_groups_of_other_types(house, kind):
    warehouse.check_rule(house.run, house.dialect, *warehouse.typed_rule(kind))


@pytest.mark.parametrize("name", warehouse.TALLIES)
def test_cells_make_the_same_tally(house, name):
    warehouse.check_tally(house.run, house.dialect, name)


RULE = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.25, 0.5),), "by hand")


def rows_of(dialect, rows, kinds):
    """A query whose rows are literals, by the types of the columns."""
    d = DIALECTS[dialect]
    types = {"double": d.double, "int": d.whole, "text": d.as_text.format("").split("AS")[-1][:-1]}

    def value(one):
        return "NULL" if one is None else d.text(str(one))

    selects = (
        ", ".join(f"CAST({value(one)} AS {types[kind]}) AS {d.name_of(name)}"
                  for one, (name, kind) in zip(row, kinds.items(), strict=True))
        for row in rows
    )  # fmt: skip
    return f"({' UNION ALL '.join(f'SELECT {line}' for line in selects)})"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((1, None, "a"), "score outside [0, 1]: null"),
        ((1, math.nan, "a"), "score outside [0, 1]: nan"),
        ((1, -0.5, "a"), "score outside [0, 1]: -0.5"),
        ((1, 1.5, "a"), "score outside [0, 1]: 1.5"),
        ((None, 0.5, "b"), "null or float id, where the score is: 0.5"),
        ((1, 0.5, None), "null group, where the score is: 0.5"),
        ((1, 0.5, "c"), "group that the rule does not know: c"),
    ],
)
def test_bad_rows_end_the_query(house, row, message):
    d, kinds = DIALECTS[house.dialect], {"id": "int", "score": "double", "group": "text"}
    if d.float_id is None:
        message = message.replace("null or float", "null")
    query, good = RULE.to_sql(house.dialect, id="id"), [(1, 0.5, "a"), (2, 0.5, "b")]
    source = rows_of(house.dialect, good, kinds)
    assert len(house.run(query.replace(d.table_of("scores"), source))) == 2
    source = rows_of(house.dialect, [*good, row], kinds)
    with pytest.raises(house.errors) as error:
        house.run(query.replace(d.table_of("scores"), source))
    assert f"isocost: {message}" in str(error.value).replace("NaN", "nan")


@pytest.mark.parametrize("house", ["duckdb", "plain", "spark"], indirect=True)
def test_float_ids_end_the_query(house):
    kinds = {"id": "double", "score": "double", "group": "text"}
    source = rows_of(house.dialect, [(1.0, 0.5, "a")], kinds)
    query = RULE.to_sql(house.dialect, id="id")
    with pytest.raises(house.errors, match="null or float id"):
        house.run(query.replace(DIALECTS[house.dialect].table_of("scores"), source))


def test_all_problems_of_a_tally_together(house):
    kinds = {"score": "double", "label": "int", "group": "text", "weight": "double"}
    rows = list(zip(*warehouse.BAD.values(), strict=True))
    query = ic.tally_sql(house.dialect, weight="weight")
    source = rows_of(house.dialect, rows, kinds)
    cells = house.run(query.replace(DIALECTS[house.dialect].table_of("scores"), source))
    with pytest.raises(ic.DataError) as error:
        ic.tally_from_cells(cells)
    for part in warehouse.TOLD:
        assert part in str(error.value)


@pytest.mark.parametrize("missing_group", ["drop", "keep", "?"])
@pytest.mark.parametrize("missing_label", ["drop", "keep"])
def test_people_without_a_value_are_counted_alike(house, missing_label, missing_group):
    kinds = {"score": "double", "label": "int", "group": "text", "person": "int"}
    rows = [
        (index % 11 / 10, None if index % 5 == 0 else index % 2,
         None if index % 7 == 0 else "abc"[index % 4 - 1], None if index % 13 == 0 else index % 6)
        for index in range(80)
    ]  # fmt: skip
    options = {"missing_label": missing_label, "missing_group": missing_group, "drop_missing": True}
    query = ic.tally_sql(house.dialect, person="person")
    source = rows_of(house.dialect, rows, kinds)
    cells = house.run(query.replace(DIALECTS[house.dialect].table_of("scores"), source))
    found = ic.tally_from_cells(cells, **options)
    data = {name: [row[i] for row in rows] for i, name in enumerate(kinds)}
    wanted = ic.tally(data, person="person", **options)
    assert found == wanted
    assert found.reading == wanted.reading
    assert found.persons.several == wanted.persons.several > 0


@pytest.mark.parametrize("house", ["spark"], indirect=True)
def test_a_lateral_query_of_spark_reads_the_table_once(house):
    query = warehouse.custom().to_sql("spark", "people", changed="moved", id="id")
    frame = house.native.sql(query)
    assert frame.columns == [*warehouse.people(), "repaired_score", "moved"]
    assert "Join" not in frame._jdf.queryExecution().optimizedPlan().toString()


@on_both_postgres
def test_without_the_collation_the_coins_would_differ(house):
    rule = warehouse.custom()
    query = rule.to_sql("postgres", "people", columns=["row"], output="new", id="id").replace(
        'COLLATE "C" AS isocost_tmp_coin', "AS isocost_tmp_coin"
    )
    found = np.array([row[1] for row in sorted(house.run(query))], dtype=float)
    wanted = rule.apply(warehouse.people(), id="id")["repaired_score"]
    odd = house.native.info.dbname == "odd"
    # People handed over have no score.
    assert np.array_equal(found, wanted, equal_nan=True) is not odd


@on_both_postgres
def test_a_star_keeps_the_columns_and_the_types(house):
    query = warehouse.custom().to_sql("postgres", "public.people", changed="moved", id="id")
    cursor = house.native.execute(query)
    assert [column.name for column in cursor.description] == [*TYPES, "repaired_score", "moved"]


@on_both_postgres
def test_enumerations_and_padded_texts_are_groups(house):
    house.native.execute("CREATE TYPE pg_temp.side AS ENUM ('left', 'right')")
    rule = ic.Rule(("left", "right"), (Row("left", 0.0, 1.0, "set", 0.25, 1.0),), "by hand")
    house.native.execute(
        "CREATE TEMP TABLE sides AS SELECT 1 AS id, 0.5::real AS score, "
        "'left'::pg_temp.side AS g, 'left'::char(9) AS c"
    )
    for group in ("g", "c"):
        query = rule.to_sql("postgres", "sides", group=group, id=None, columns=[])
        assert house.run(query) == [(0.25,)]
    house.native.execute("DROP TABLE sides")


def test_the_coin_is_made_of_utf8_in_any_encoding(server):
    rule = ic.Rule(("é", "b"), (Row("é", 0.0, 1.0, "set", 0.25, 0.5),), "by hand", salt="ß")
    data = {"score": [0.5] * 40, "group": ["é"] * 40, "id": [f"é{i}" for i in range(40)]}
    wanted = rule.apply(data, id="id")["repaired_score"].tolist()
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'")
    with psycopg.connect(f"{server} dbname=latin") as connection:
        connection.execute('CREATE TABLE scores (id text, score float8, "group" text)')
        with connection.cursor() as cursor:
            rows = list(zip(data["id"], data["score"], data["group"], strict=True))
            cursor.executemany("INSERT INTO scores VALUES (%s, %s, %s)", rows)
        found = connection.execute(
            rule.to_sql("postgres", columns=["id"], output="new", id="id")
        ).fetchall()
    assert [dict(found)[name] for name in data["id"]] == wanted
    assert 0 < wanted.count(0.25) < 40
