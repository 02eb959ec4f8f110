"""Tallies counted by a database: DuckDB runs them, the others are parsed back."""

import json
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pytest
import sqlglot

import isocost as ic
from isocost.engines.dialects import DIALECTS
from isocost.engines.sql import cell_columns
from tests import warehouse
from tests.test_dialects import ODD


@pytest.fixture(scope="module")
def database():
    with duckdb.connect() as connection:
        connection.register("people", pd.DataFrame(warehouse.people()))
        yield connection


@pytest.mark.parametrize("dialect", DIALECTS)
def test_queries_are_parsed_back(dialect):
    for options in warehouse.TALLIES.values():
        (tree,) = sqlglot.parse(ic.tally_sql(dialect, "lake.people", **options), read=dialect)
        groups = options.get("group", "group")
        names = {
            "group": [groups] if isinstance(groups, str) else groups,
            "weight": options.get("weight"),
        }
        wanted = cell_columns({"columns": names, "positive": options.get("positive")})
        assert [column.alias_or_name for column in tree.selects] == wanted
        named = options.get("positive") in ("yes", 1) and options["positive"] is not True
        assert ("least_label" in wanted) == named


@pytest.mark.parametrize("odd", ODD)
def test_odd_names_and_groups_run_on_duckdb(database, odd):
    names = {"score": odd, "label": f"{odd}l", "group": f"{odd}g", "weight": f"{odd}w"}
    data = {odd: [0.2, 0.7, 0.4], f"{odd}l": [odd, "b", odd], f"{odd}g": [odd, "b", "c"]}
    data[f"{odd}w"] = [1.0, 2.0, 0.5]
    database.register("plain", pd.DataFrame(data))
    table = DIALECTS["duckdb"].name_of(f"{odd} t")
    database.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM plain")
    query = ic.tally_sql("duckdb", (f"{odd} t",), positive=odd, **names)
    found = ic.tally_from_cells(database.execute(query).fetchall())
    assert found == ic.tally(data, positive=odd, **names)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"dialect": None}, "dialect"),
        ({"table": None}, "table"),
        ({"score": 3}, "score"),
        ({"label": None}, "label"),
        ({"group": []}, "group"),
        ({"group": 3}, "group"),
        ({"group": ["a", None]}, "group"),
        ({"weight": ["w"]}, "weight"),
        ({"positive": ["a"]}, "positive"),
        ({"positive": float("nan")}, "positive"),
        ({"positive": Decimal(1)}, "positive"),
        ({"bins": 0}, "bins"),
        ({"dialect": "oracle"}, "dialect"),
    ],
)
def test_arguments_that_cannot_be_meant(options, name):
    with pytest.raises(ic.UsageError) as error:
        ic.tally_sql(**options)
    (problem,) = error.value.problems
    assert problem.name == name
    assert all((problem.rule, problem.got, problem.next_step))


def test_mysql_groups_by_bytes():
    query = ic.tally_sql("mysql")
    assert "CAST(CONVERT(t.`group` USING utf8mb4) AS BINARY) AS group_1_bytes" in query
    assert "ANY_VALUE(group_1) AS group_1" in query
    assert query.endswith("GROUP BY group_1_bytes, label, bin\n")


def test_whatever_a_driver_returns(database):
    options = {"weight": "weight", "edges": (0.123,)}
    query = ic.tally_sql(table="people", **options)
    wanted = ic.tally(warehouse.people(), **options)
    frame = database.execute(query).df()
    rows = database.execute(query).fetchall()
    upper = [dict(zip(map(str.upper, frame.columns), row, strict=True)) for row in rows]
    exact = [tuple(Decimal(v) if isinstance(v, int) else v for v in row) for row in rows]
    for cells in (frame, pl.from_pandas(frame), rows, upper, exact, frame.to_dict("list")):
        assert ic.tally_from_cells(cells) == wanted


def test_cells_of_several_days_add_up(database):
    data = warehouse.people()
    rows = []
    for day in (0, 1):
        source = f"(SELECT * FROM people WHERE row % 2 = {day})"
        rows += database.execute(ic.tally_sql().replace('"scores"', source)).fetchall()
    assert ic.tally_from_cells(rows) == ic.tally(data)


def spoiled(**changes):
    cells = {"made_with": None, "group_1": "a", "label": 0, "bin": 0, "n": 1, "wh": 0.0, "wh2": 0.0}
    made = {
        "bins": 4, "edges": [], "positive": None,
        "columns": {"score": "s", "label": "y", "weight": None, "group": ["g"]},
    }  # fmt: skip
    return [{**cells, "made_with": json.dumps(made), **changes}]


def test_cells_that_are_ours():
    assert ic.tally_from_cells(spoiled()).n == 1


@pytest.mark.parametrize(
    ("cells", "got"),
    [
        (spoiled(made_with="{}"), "a column 'made_with' that is not ours"),
        (spoiled(made_with='{"columns": 1}'), "a column 'made_with' that is not ours"),
        (spoiled(made_with="nothing"), "a column 'made_with' that is not ours"),
        (spoiled(bin=99), "a bin in the cells that is not a whole number below 12"),
        (spoiled(bin=0.5), "a value of bin that is not a whole number"),
        (spoiled(n="x"), "a value of n that is not a whole number"),
        (spoiled(n=0), "a cell with no rows or no weight"),
        (spoiled(wh=None), "a value of wh that is not a finite number"),
        (spoiled(wh="x"), "a value of wh that is not a number"),
        (spoiled(wh=0.9), "a cell whose mean score lies outside its bin"),
        ([(1, 2, 3)], "a column 'made_with' that is not ours"),
        ([{"a": 1}], "no column 'made_with'"),
        ([(spoiled()[0]["made_with"], 2)], "rows that have not 7 values"),
        (3, "an object of type int, which is neither rows nor an eager frame"),
    ],
)
def test_other_cells_are_refused(cells, got):
    with pytest.raises(ic.DataError) as error:
        ic.tally_from_cells(cells)
    text = str(error.value)
    assert text.startswith("cells: must be what the query of tally_sql returns\n  got:  ")
    assert got in text
    assert text.endswith("next: run the query as it is, and pass all its rows and columns")


def test_no_rows_and_rows_that_differ():
    for nothing in ([], {}, {"n": []}):
        with pytest.raises(ic.DataError, match="must have at least one row"):
            ic.tally_from_cells(nothing)
    other = spoiled()[0]["made_with"].replace("4", "8")
    with pytest.raises(ic.DataError, match="rows of queries that differ"):
        ic.tally_from_cells(spoiled() + spoiled(made_with=other))


def test_nan_is_not_the_other_of_two_labels():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT 0.5 AS score, 'a' AS \"group\", "
        "CASE WHEN i % 7 = 0 THEN 'nan' ELSE '2' END::DOUBLE AS label FROM range(70) AS r(i)"
    )
    cells = connection.execute(ic.tally_sql("duckdb", "t", positive=2)).fetchall()
    with pytest.raises(ic.DataError, match="10 null or NaN"):
        ic.tally_from_cells(cells)
