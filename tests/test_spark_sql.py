"""The queries run on Spark SQL, and give what NumPy gives."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isocost as ic
from isocost.rules import Row
from tests import warehouse
from tests.engines import SPARK_ERRORS

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")

RULE = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.25, 0.5),), "by hand")


# Compiling each long CASE takes longer than running it on so few rows.
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}


@pytest.fixture(scope="module")
def run(spark, tmp_path_factory):
    before = {name: spark.conf.get(name) for name in QUICK}
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    folder = tmp_path_factory.mktemp("lake")
    people = pa.table({k: v.tolist() for k, v in warehouse.people().items()})
    for part, start in enumerate((0, 500)):
        pq.write_table(people[start : 500 if start == 0 else None], folder / f"{part}.parquet")
    spark.read.parquet(str(folder)).createOrReplaceTempView("people")
    yield lambda query: spark.sql(query).collect()
    spark.catalog.dropTempView("people")
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.parametrize(
    ("name", "id"),
    [("withhold", "id"), ("coarsen", "name"), ("odds", "id"), ("reconcile", "name"),
     ("recalibrated", "id"), ("custom", "id"), ("custom", "name")],
)  # fmt: skip
def test_every_row_is_that_of_numpy(run, name, id):
    warehouse.check_rule(run, "spark", warehouse.rules()[name], warehouse.group_of(name), id)


@pytest.mark.parametrize("kind", ["whole", "float", "boolean", "pairs"])
def test_groups_of_other_types(run, kind):
    warehouse.check_rule(run, "spark", *warehouse.typed_rule(kind))


@pytest.mark.parametrize("name", ["weighted", "seven bins", "positive", "pairs", "booleans"])
def test_cells_make_the_same_tally(run, name):
    warehouse.check_tally(run, "spark", name)


def test_a_star_keeps_the_columns(spark, run):
    frame = spark.sql(warehouse.custom().to_sql("spark", "people", changed="moved", id="id"))
    assert frame.columns == [*warehouse.people(), "repaired_score", "moved"]


def view(spark, rows, names=("id", "score", "group"), kinds=("int", "double", "string")):
    """A view called bad; rows as literals, because a Python worker takes seconds to start."""
    words = {None: "NULL"}
    listed = [
        ", ".join(f"CAST({words.get(v, repr(str(v)))} AS {kind}) AS `{name}`"
                  for v, name, kind in zip(row, names, kinds, strict=True))
        for row in rows
    ]  # fmt: skip
    query = " UNION ALL ".join(f"SELECT {line}" for line in listed)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW bad AS {query}")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((1, None, "a"), "score outside [0, 1]: null"),
        ((1, float("nan"), "a"), "score outside [0, 1]: NaN"),
        ((None, 0.5, "a"), "null or float id, where the score is: 0.5"),
        ((1, 0.5, None), "null group, where the score is: 0.5"),
        ((1, 0.5, "c"), "group that the rule does not know: c"),
    ],
)
def test_bad_rows_end_the_query(spark, row, message):
    query = RULE.to_sql("spark", "bad", id="id")
    view(spark, [(1, 0.5, "a"), (2, 0.5, "b")])
    assert len(spark.sql(query).collect()) == 2
    view(spark, [(2, 0.5, "b"), row])
    with pytest.raises(SPARK_ERRORS) as error:
        spark.sql(query).collect()
    assert f"isocost: {message}" in str(error.value)


def test_float_ids_end_the_query(spark):
    view(spark, [(1.0, 0.5, "a")], kinds=("double", "double", "string"))
    with pytest.raises(SPARK_ERRORS, match="null or float id"):
        spark.sql(RULE.to_sql("spark", "bad", id="id")).collect()


def test_all_problems_of_a_tally_together(spark):
    rows = list(zip(*warehouse.BAD.values(), strict=True))
    view(spark, rows, warehouse.BAD, ("double", "int", "string", "double"))
    cells = spark.sql(ic.tally_sql("spark", "bad", weight="weight")).collect()
    with pytest.raises(ic.DataError) as error:
        ic.tally_from_cells(cells)
    for part in warehouse.TOLD:
        assert part in str(error.value)


def test_a_lateral_query_reads_the_table_once(spark, run):
    plan = spark.sql(warehouse.custom().to_sql("spark", "people", id="id"))._jdf.queryExecution()
    assert "Join" not in plan.optimizedPlan().toString()
