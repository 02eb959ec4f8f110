"""The queries run on a PostgreSQL of their own, and give what NumPy gives."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import isocost as ic
from isocost.rules import Row
from tests import warehouse
from tests.conftest import free_port

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

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
    if place is None:
        pytest.skip("PostgreSQL is not installed")
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


@pytest.fixture(scope="module", params=["C", ODD_LOCALE])
def database(server, request):
    """The people in a database, under the plain order of bytes and under a strange one."""
    name = "plain" if request.param == "C" else "odd"
    icu = "" if name == "plain" else f" LOCALE_PROVIDER icu ICU_LOCALE '{request.param}'"
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as connection:
        try:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0{icu}")
        except psycopg.Error as error:
            pytest.skip(f"this PostgreSQL has no ICU locales: {error}")
    with psycopg.connect(f"{server} dbname={name}", autocommit=True) as connection:
        yield filled(connection)


def runner(connection):
    return lambda query: connection.execute(query).fetchall()


@pytest.mark.parametrize("id", ["id", "name"])
@pytest.mark.parametrize("name", [*warehouse.rules()])
def test_every_row_is_that_of_numpy(database, name, id):
    rule = warehouse.rules()[name]
    warehouse.check_rule(runner(database), "postgres", rule, warehouse.group_of(name), id)


@pytest.mark.parametrize("kind", ["whole", "float", "boolean", "pairs"])
def test_groups_of_other_types(database, kind):
    warehouse.check_rule(runner(database), "postgres", *warehouse.typed_rule(kind))


@pytest.mark.parametrize("name", warehouse.TALLIES)
def test_cells_make_the_same_tally(database, name):
    warehouse.check_tally(runner(database), "postgres", name)


def test_without_the_collation_the_coins_would_differ(database):
    rule = warehouse.custom()
    query = rule.to_sql("postgres", "people", columns=["row"], output="new", id="id").replace(
        'COLLATE "C" AS isocost_tmp_coin', "AS isocost_tmp_coin"
    )
    found = np.array([row[1] for row in sorted(runner(database)(query))], dtype=float)
    wanted = rule.apply(warehouse.people(), id="id")["repaired_score"]
    odd = database.info.dbname == "odd"
    # People handed over have no score.
    assert np.array_equal(found, wanted, equal_nan=True) is not odd


def test_a_star_keeps_the_columns_and_the_types(database):
    query = warehouse.custom().to_sql("postgres", "public.people", changed="moved", id="id")
    cursor = database.execute(query)
    assert [column.name for column in cursor.description] == [*TYPES, "repaired_score", "moved"]


def test_enumerations_and_padded_texts_are_groups(database):
    database.execute("CREATE TYPE pg_temp.side AS ENUM ('left', 'right')")
    rule = ic.Rule(("left", "right"), (Row("left", 0.0, 1.0, "set", 0.25, 1.0),), "by hand")
    database.execute(
        "CREATE TEMP TABLE sides AS SELECT 1 AS id, 0.5::real AS score, "
        "'left'::pg_temp.side AS g, 'left'::char(9) AS c"
    )
    for group in ("g", "c"):
        query = rule.to_sql("postgres", "sides", group=group, id=None, columns=[])
        assert runner(database)(query) == [(0.25,)]
    database.execute("DROP TABLE sides")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1, NULL, 'a'", 'score outside [0, 1]: null"'),
        ("1, 'NaN', 'a'", 'score outside [0, 1]: NaN"'),
        ("1, 1.5, 'a'", 'score outside [0, 1]: 1.5"'),
        ("1, -1e-300, 'a'", 'score outside [0, 1]: -1e-300"'),
        ("NULL, 0.5, 'a'", 'null or float id, where the score is: 0.5"'),
        ("1, 0.5, NULL", 'null group, where the score is: 0.5"'),
        ("1, 0.5, 'c'", 'group that the rule does not know: c"'),
    ],
)
def test_bad_rows_end_the_query(database, row, message):
    rule = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.25, 0.5),), "by hand")
    query = rule.to_sql("postgres", "bad", id="id")
    with database.transaction(force_rollback=True):
        database.execute('CREATE TABLE bad (id int, score float8, "group" text)')
        database.execute("INSERT INTO bad VALUES (1, 0.5, 'a'), (2, 0.5, 'b')")
        assert len(runner(database)(query)) == 2
        database.execute(f"INSERT INTO bad VALUES ({row})")
        with pytest.raises(psycopg.Error) as error:
            database.execute(query)
    assert f'"isocost: {message}' in str(error.value)


def test_float_ids_end_the_query(database):
    rule = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.25, 0.5),), "by hand")
    source = "(SELECT 1e0::float8 AS id, 0.5 AS score, 'a' AS \"group\")"
    query = rule.to_sql("postgres", "scores", id="id").replace('"scores"', source)
    with pytest.raises(psycopg.Error, match="null or float id"):
        database.execute(query)


def test_all_problems_of_a_tally_together(database):
    with database.transaction(force_rollback=True):
        database.execute('CREATE TABLE bad (score float8, label int, "group" text, weight float8)')
        with database.cursor() as cursor:
            rows = list(zip(*warehouse.BAD.values(), strict=True))
            cursor.executemany("INSERT INTO bad VALUES (%s, %s, %s, %s)", rows)
        cells = runner(database)(ic.tally_sql("postgres", "bad", weight="weight"))
    with pytest.raises(ic.DataError) as error:
        ic.tally_from_cells(cells)
    for part in warehouse.TOLD:
        assert part in str(error.value)


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
        found = runner(connection)(rule.to_sql("postgres", columns=["id"], output="new", id="id"))
    assert [dict(found)[name] for name in data["id"]] == wanted
    assert 0 < wanted.count(0.25) < 40
