"""Spark for real: partitions, skew, tasks that fail and are tried again, and the whole job."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import isocost as ic
from isocost.rules import Row
from tests.conftest import sample
from tests.engines import SPARK_AND_PANDAS, SPARK_ERRORS, as_spark, by_id, columns_of

pytest.importorskip("pyspark", reason="pyspark is not installed")
pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings(SPARK_AND_PANDAS)

JOB = Path(__file__).parent.parent / "examples" / "spark_job.py"

RULE = ic.Rule(groups=("a", "b"), rows=(Row("a", 0.0, 1.0, "set", 0.5, 0.4),), method="test")


@pytest.fixture(scope="module")
def skewed():
    """One group has 99 % of the rows."""
    data = sample(6000, weighted=True)
    data["group"] = np.where(np.arange(6000) % 100 == 0, "b", "a")
    return data


@pytest.fixture(scope="module")
def people(spark, skewed):
    return as_spark(spark, pa.table(skewed)).cache()


@pytest.mark.parametrize("partitions", [1, 7])
def test_neither_partitions_nor_skew_matter(people, skewed, partitions):
    by_group = people.repartition(partitions, "group")
    assert ic.tally(by_group, weight="weight") == ic.tally(skewed, weight="weight")
    out = RULE.apply(by_group, output="new", id="id").select("id", "new")
    assert (
        by_id(columns_of("pyspark", out))["new"]
        == RULE.apply(skewed, id="id")["repaired_score"].tolist()
    )


def test_a_task_that_fails_and_is_tried_again_gives_the_same(spark, people, skewed, tmp_path):
    from pyspark.sql import functions as f
    from pyspark.sql.types import DoubleType

    failures = tmp_path

    @f.udf(DoubleType())
    def unreliable(score):
        from pyspark import TaskContext

        context = TaskContext.get()
        if context.attemptNumber() == 0:
            (failures / f"{context.stageId()}-{context.partitionId()}").touch()
            raise RuntimeError("the machine went away")
        return score

    frame = people.repartition(2).withColumn("score", unreliable("score"))
    assert ic.tally(frame) == ic.tally(skewed)
    out = RULE.apply(frame, output="new", id="id").select("id", "new")
    assert (
        by_id(columns_of("pyspark", out))["new"]
        == RULE.apply(skewed, id="id")["repaired_score"].tolist()
    )
    assert len(list(failures.iterdir())) == 4  # each of the two tasks, in both queries


def test_rows_stay_where_they_are(people):
    # The plan ends in an aggregation: what is collected are its cells.
    from isocost.engines.frames import as_frame
    from isocost.engines.lazy import LazyRows, _counted, _placed
    from isocost.grid import Grid

    columns = {
        "score": "score",
        "label": "label",
        "group": ["group"],
        "weight": None,
        "person": None,
    }
    rows = LazyRows(as_frame(people), columns, None).pick(False)
    native = _counted(_placed(rows, Grid()), None).to_native()
    plan = native._jdf.queryExecution().optimizedPlan().toString()
    assert plan.startswith("Aggregate")
    assert plan.count("Aggregate") == 1
    assert native.count() <= 2 * 2 * Grid().size


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("score", 1.5, "score: must be a number in .0, 1. in every row"),
        ("group", None, "group: must be known in every row"),
        ("group", "z", "group: must be one the rule knows: 'a', 'b'"),
    ],
)
def test_a_bad_row_stops_the_job(spark, column, value, text):
    data = {"id": [1, 2], "group": ["a", "a"], "score": [0.1, 0.5]}
    data[column] = [data[column][0], value]
    frame = as_spark(spark, pa.table(data))
    with pytest.raises(SPARK_ERRORS, match=text):
        RULE.apply(frame, id="id").collect()


@pytest.fixture(scope="module")
def job():
    spec = importlib.util.spec_from_file_location("spark_job", JOB)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_job_of_the_guide(spark, job, tmp_path):
    source, target, reports = tmp_path / "scores", tmp_path / "repaired", tmp_path / "reports"
    data = sample(6000)
    as_spark(spark, pa.table(data)).write.parquet(str(source))
    options = ["--cost", "fnr", "--tolerance", "0.01", "--reports", str(reports)]
    job.main(["--input", str(source), "--output", str(target), *options])

    expected = ic.withhold(ic.tally(data), cost="fnr", tolerance=0.01)
    rule = ic.Rule.load(reports / "rule.json")
    assert rule.alpha == pytest.approx(expected.alpha)
    assert ic.Tally.load(reports / "tally.json") == ic.tally(data)
    assert "Audit of 6,000 rows" in (reports / "audit.txt").read_text()
    assert json.loads((reports / "rule.json").read_text())["method"] == "withhold"

    found = by_id(columns_of("pyspark", spark.read.parquet(str(target))))
    assert list(found) == ["id", "group", "score", "label", "repaired_score", "changed"]
    assert found["repaired_score"] == rule.apply(data, id="id")["repaired_score"].tolist()
    assert found["score"] == data["score"].tolist()
    assert np.mean(found["changed"]) == pytest.approx(
        sum(np.mean(data["group"] == g) * share for g, share in rule.alpha.items()), abs=0.01
    )


def test_the_job_reads_a_table_by_its_name(spark, people, job):
    people.createOrReplaceTempView("scores_today")
    assert job.read(spark, "scores_today").count() == 6000
