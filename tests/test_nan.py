"""NaN in Parquet files, whose statistics leave it out: nobody may take it for a score in [0, 1]."""

import numpy as np
import pytest

import isocost as ic
from isocost.rules import Row

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

# ibis asks DuckDB for a table in the old way.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

ROWS = 40
RULE = ic.Rule(
    groups=(0.0, 1.0, 2.0),
    rows=(Row(0.0, 0.0, 1.0, "set", 0.5, 1.0), Row(1.0, 0.0, 1.0, "mirror", None, 0.5)),
    method="test",
)
READERS = ("file", "relation", "ibis", "polars", "sql")
TEXTS = {
    "score": "score: must be a number in .0, 1. in every row\n  got:  1 null or NaN",
    "label": "label: must be 0/1 or boolean in every row\n  got:  1 null or NaN",
    "weight": "weight.*: must be a positive, finite number in every row\n  got:  1 null or NaN",
    "group": "group: must be known in every row\n  got:  1 null",
}


def write(path, wrong=None):
    """Rows of floats, one of them NaN, as pyarrow writes them."""
    random = np.random.default_rng(0)
    data = {
        "id": np.arange(ROWS),
        "score": random.random(ROWS),
        "label": random.integers(0, 2, ROWS).astype(float),
        "weight": 0.5 + random.random(ROWS),
        "group": random.integers(1, 3, ROWS).astype(float),
    }
    if wrong is not None:
        data[wrong][7] = np.nan
    pq.write_table(pa.table(data), path)
    return data


def opened(reader, path):
    if reader == "relation":
        return duckdb.read_parquet(str(path))
    if reader == "ibis":
        database = pytest.importorskip("ibis").duckdb.connect()
        database.raw_sql(f"CREATE VIEW scores AS FROM '{path}'")
        return database.table("scores")
    if reader == "polars":
        return pytest.importorskip("polars").scan_parquet(path)
    return str(path)


def database(path):
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW scores AS FROM '{path}'")
    return connection


def counted(reader, path):
    if reader != "sql":
        return ic.tally(opened(reader, path), weight="weight")
    query = ic.tally_sql("duckdb", "scores", weight="weight")
    return ic.tally_from_cells(database(path).execute(query).fetchall())


def repaired(reader, path, **options):
    """The new scores, by id."""
    options["id"] = "id"
    if reader == "file":
        output = path.with_name("out.parquet")
        ic.apply_file(RULE, path, output, force=True, **options)
        return pq.ParquetFile(output).read().column("repaired_score").to_numpy()
    if reader == "sql":
        pytest.importorskip("sqlglot")
        query = RULE.to_sql("duckdb", "scores", output="new", **options)
        connection = database(path)
        return np.array(connection.sql(f"SELECT new FROM ({query}) ORDER BY id").fetchall()).T[0]
    out = RULE.apply(opened(reader, path), **options)
    if reader == "relation":
        return np.array(out.order("id").fetchall()).T[-1]
    found = out.order_by("id").to_pyarrow() if reader == "ibis" else out.collect()
    return found["repaired_score"].to_numpy()


@pytest.mark.parametrize("wrong", TEXTS)
@pytest.mark.parametrize("reader", READERS)
def test_a_tally_refuses_it(reader, wrong, tmp_path):
    path = tmp_path / "d.parquet"
    data = write(path)
    assert counted(reader, path) == ic.tally(data, weight="weight")
    write(path, wrong)
    with pytest.raises(ic.DataError, match=TEXTS[wrong]):
        counted(reader, path)


@pytest.mark.parametrize("reader", READERS)
def test_a_rule_refuses_a_score_of_nan(reader, tmp_path):
    path = tmp_path / "d.parquet"
    data = write(path)
    np.testing.assert_array_equal(
        repaired(reader, path), RULE.apply(data, id="id")["repaired_score"]
    )
    write(path, "score")
    with pytest.raises(Exception, match=r"null or NaN|score outside \[0, 1\]: nan"):
        repaired(reader, path)


@pytest.mark.parametrize("reader", READERS)
def test_a_group_of_nan_is_the_missing_one(reader, tmp_path):
    path = tmp_path / "d.parquet"
    data = write(path, "group")
    new = repaired(reader, path, missing_group=0.0)
    assert new[7] == 0.5
    np.testing.assert_array_equal(
        new, RULE.apply(data, missing_group=0.0, id="id")["repaired_score"]
    )
    with pytest.raises(Exception, match=r"group: must be known in every row|null group"):
        repaired(reader, path)
