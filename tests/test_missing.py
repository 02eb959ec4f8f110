"""Rows with missing values: dropped on request and counted by column, alike on every engine."""

import csv
import html
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isocost as ic
from isocost.page.report import report_html
from isocost.plots import PlaneDisplay
from tests import processes
from tests.lazy_frames import KINDS, SPARK_AND_PANDAS, as_lazy, session_of

pytestmark = pytest.mark.filterwarnings(SPARK_AND_PANDAS)

# What is wrong in a row that is dropped anyway is not looked at: row 2 has a score above 1, row 5 a
# third label, row 8 no weight at all.  Row 11 lacks two values.
ROWS = [
    (0.10, "no", "F", "young", 1.0),
    (0.70, "yes", "F", "young", 2.0),
    (1.70, None, "F", "young", 1.0),
    (0.40, "no", "M", "old", 1.5),
    (0.90, "yes", "M", "old", 1.0),
    (0.50, "maybe", None, "old", 1.0),
    (0.30, "yes", "M", None, 1.0),
    (None, "yes", "M", "old", 1.0),
    (0.60, "no", "F", "young", None),
    (0.80, "yes", "F", "young", 0.5),
    (0.20, "no", "M", "old", 1.0),
    (None, "no", None, "old", 1.0),
    (None, "yes", "F", "young", 3.0),
]
NAMES = ("p", "y", "sex", "age", "w")
COLUMNS = {"score": "p", "label": "y", "group": ["sex", "age"], "weight": "w"}
DATA = {name: [row[i] for row in ROWS] for i, name in enumerate(NAMES)}
KEPT = {name: [row[i] for row in ROWS if None not in row] for i, name in enumerate(NAMES)}
MISSING = {"p": 3, "y": 1, "sex": 2, "age": 1, "w": 1}
ENGINES = (
    "dict", "numpy", "pandas", "pandas nullable", "polars eager", "pyarrow", "reader", "csv",
    "jsonl", "parquet", *KINDS,
)  # fmt: skip


def given(engine, tmp_path, request):
    """The rows as an engine has them."""
    table = pa.table(DATA)
    if engine == "dict":
        return DATA
    if engine == "numpy":
        numbers = {n: np.array(DATA[n], dtype=float) for n in ("p", "w")}
        return {**DATA, **numbers}
    if engine == "pandas":
        return pd.DataFrame(DATA)
    if engine == "pandas nullable":
        return pd.DataFrame(DATA).convert_dtypes()
    if engine == "polars eager":
        return pl.DataFrame(DATA)
    if engine == "pyarrow":
        return table
    if engine == "reader":
        # The last batch has no row that is left.
        return pa.RecordBatchReader.from_batches(
            table.schema, [*table[:11].to_batches(max_chunksize=4), *table[11:].to_batches()]
        )
    path = tmp_path / f"d.{engine}"
    if engine == "csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([NAMES, *ROWS])
        return path
    if engine == "jsonl":
        path.write_text("".join(json.dumps(dict(zip(NAMES, r, strict=True))) + "\n" for r in ROWS))
        return path
    if engine == "parquet":
        pq.write_table(table, path)
        return path
    return as_lazy(engine, DATA, session_of(engine, request))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_rows_are_dropped_and_counted_on_every_engine(engine, tmp_path, request):
    options = {**COLUMNS, "positive": "yes"}
    tally = ic.tally(given(engine, tmp_path, request), **options, drop_missing=True)
    assert tally == ic.tally(KEPT, **options)
    reading = tally.reading
    assert (reading.dropped_rows, dict(reading.missing_values)) == (7, MISSING)
    assert (reading.positive, reading.drop_missing) == ("yes", True)
    with pytest.raises(ic.DataError, match=r"drop_missing=True drops them"):
        ic.tally(given(engine, tmp_path, request), **options)
    # A name for rows without a group keeps them; people handed over need neither score nor label.
    both = ic.tally(
        given(engine, tmp_path, request), **options, drop_missing=True, handed_over=True
    )
    assert both == ic.tally(KEPT, **options).rebuilt(tally.cells, handed=both.handed_over)
    assert both.handed_over == {("F", "young"): (1.0, 3.0, 9.0), ("M", "old"): (1.0, 1.0, 1.0)}
    assert (both.reading.dropped_rows, both.reading.missing_values["sex"]) == (5, 2)
    assert "p" not in both.reading.missing_values
    assert both.reading.handed_over


@pytest.mark.parametrize("engine", ["dict", "pyarrow", "reader", "polars", "csv"])
def test_a_named_group_keeps_its_rows(engine, tmp_path, request):
    data = {**DATA, "y": ["no" if y == "maybe" else y for y in DATA["y"]]}
    options = {**COLUMNS, "positive": "yes", "missing_group": "?"}
    found = given(engine, tmp_path, request)
    if engine == "dict":
        found = data
    elif engine == "csv":
        found.write_text(found.read_text().replace("maybe", "no"))
    else:
        table = pa.table(data)
        found = {"pyarrow": table, "reader": table.to_reader(3)}.get(engine)
        found = pl.from_arrow(table).lazy() if found is None else found
    tally = ic.tally(found, **options, drop_missing=True)
    assert dict(tally.reading.missing_values) == {"p": 3, "y": 1, "w": 1}
    assert {("?", "old"), ("M", "?")} <= set(tally.groups)


def test_nothing_is_left(tmp_path):
    data = {"score": [0.1, None], "label": [None, 1], "group": ["a", "b"]}
    message = r"must have a row without missing values\n  got:  2 rows, all dropped: 1 without"
    pd.DataFrame(data).to_csv(tmp_path / "d.csv", index=False)
    for one in (data, pl.DataFrame(data).lazy(), pa.table(data).to_reader(), tmp_path / "d.csv"):
        with pytest.raises(ic.DataError, match=message):
            ic.tally(one, drop_missing=True)
    with pytest.raises(ic.UsageError, match="drop_missing: must be"):
        ic.tally(data, drop_missing="yes")


def test_row_numbers_of_other_problems_are_those_of_the_data():
    data = {"score": [None, 0.5, None, 7.0], "label": [0, 1, 0, 1], "group": list("abab")}
    with pytest.raises(ic.DataError, match=r"7\.0 in row 3"):
        ic.tally(data, drop_missing=True)


def test_ranks_keep_the_range_of_all_rows():
    data = {"score": [1, 5, 10, 3, 7], "label": [0, 1, None, 0, 1], "group": list("aabbb")}
    tallies = [
        ic.tally(one, scale="rank", drop_missing=True)
        for one in (data, pl.DataFrame(data), pl.DataFrame(data).lazy())
    ]
    assert {tally.reading.scale for tally in tallies} == {"rank:1-10"}


def test_cells_of_a_warehouse_are_dropped_too():
    duckdb = pytest.importorskip("duckdb")
    table = pa.table(DATA)  # noqa: F841 - DuckDB reads it by its name
    query = ic.tally_sql("duckdb", "table", **COLUMNS, positive="yes").replace('"table"', "table")
    cells = duckdb.sql(query.replace("FROM table", 'FROM "table"')).fetchall()
    tally = ic.tally_from_cells(cells, drop_missing=True)
    assert tally == ic.tally(KEPT, **COLUMNS, positive="yes")
    assert dict(tally.reading.missing_values) == MISSING
    with pytest.raises(ic.DataError, match="drop_missing=True drops them"):
        ic.tally_from_cells(cells)


@pytest.fixture(scope="module")
def people():
    """Two groups, and a tenth of the rows without a score or a label."""
    rng = np.random.default_rng(3)
    score = rng.beta(2, 3, 2000)
    data = pd.DataFrame({"score": score, "label": (rng.random(2000) < score).astype(float)})
    data["group"] = np.where(rng.random(2000) < 0.5, "a", "b")
    data.loc[:99, "score"] = np.nan
    data.loc[50:199, "label"] = np.nan
    return data


SAID = "Rows with missing values were dropped: 200 in all, 100 without 'score' and 150 without"


def test_every_function_takes_it_and_an_audit_says_it(people):
    audit = ic.audit(people, drop_missing=True)
    assert SAID in " ".join(str(audit).split())
    reading = audit.to_dict()["reading"]
    assert (reading["dropped_rows"], reading["missing_values"]) == (
        200, {"score": 100, "label": 150},
    )  # fmt: skip
    assert ic.plan(people, drop_missing=True).groups
    assert ic.equalize_odds(people, drop_missing=True).reading.dropped_rows == 200
    assert ic.recalibrate(people, drop_missing=True).reading.drop_missing
    assert len(PlaneDisplay.from_tally(people, drop_missing=True).groups) == 2
    assert SAID in html.unescape(report_html(people, drop_missing=True))


@pytest.mark.parametrize(
    "command",
    ["audit", "plan", "bounds", "tally", "compare", "recalibrate", "fit", "report"],
)
def test_every_command_that_counts_takes_it(people, tmp_path, command):
    people.to_csv(tmp_path / "d.csv", index=False)
    refused = processes.run(command, "d.csv", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--drop-missing drops them" in refused.stderr
    more = {"fit": ["--anyway", "--method", "odds", "--remakes", "10"]}.get(command, [])
    more += ["--remakes", "10"] if command == "compare" else []
    done = processes.run(command, "d.csv", "--drop-missing", *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert SAID in done.stderr
    if command == "audit":
        assert SAID in " ".join(done.stdout.split())
    if command == "report":
        assert SAID in html.unescape((tmp_path / "report.html").read_text())


def test_look_offers_it(people, tmp_path):
    people.to_csv(tmp_path / "d.csv", index=False)
    looked = ic.look(tmp_path / "d.csv")
    assert looked.command.endswith("--drop-missing")
    assert "--drop-missing leaves out the rows that have no score or label." in str(looked)
