r"""Audit and repair the scores of a lake table with Spark.

    spark-submit examples/spark_job.py --input lake.scores --output s3a://bucket/repaired \
        --reports reports --cost fnr --tolerance 0.02

``--input`` is the name of a table (Iceberg, Delta, Hive ...) or the path of Parquet files, with the
columns id, group, score and label.  ``--reports`` is a folder on the driver: it gets the tally,
the audit and the rule, which are all a reviewer needs, and hold nobody's row.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import isocost as ic


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What the job was called with."""
    parser = argparse.ArgumentParser(description="Audit and repair scores with Spark.")
    parser.add_argument("--input", required=True, help="a table, or the path of Parquet files")
    parser.add_argument("--output", required=True, help="where the repaired rows are written")
    parser.add_argument("--reports", required=True, type=Path, help="a folder on the driver")
    parser.add_argument("--cost", default="fnr")
    parser.add_argument("--tolerance", type=float, default=0.0)
    return parser.parse_args(given)


def read(spark: SparkSession, source: str) -> Any:
    """A table by its name, or Parquet files by their path."""
    is_path = "/" in source or source.endswith(".parquet")
    return spark.read.parquet(source) if is_path else spark.table(source)


def main(given: Sequence[str] | None = None) -> None:
    """Tally, audit, fit, repair."""
    options = arguments(given)
    spark = SparkSession.builder.appName("isocost").getOrCreate()
    people = read(spark, options.input)

    # One query; a few thousand cells come to the driver, whatever the number of rows.
    tally = ic.tally(people, score="score", label="label", group="group")
    audit = ic.audit(tally, cost=options.cost)
    rule = ic.withhold(tally, cost=options.cost, tolerance=options.tolerance)

    options.reports.mkdir(parents=True, exist_ok=True)
    tally.save(options.reports / "tally.json")
    rule.save(options.reports / "rule.json")
    (options.reports / "audit.txt").write_text(f"{audit}\n", encoding="utf-8")

    # Lazy until it is written.  The coin comes from the id, so a task that is
    # retried, or another number of partitions, changes nothing.
    repaired = rule.apply(people, id="id", changed="changed")
    repaired.write.mode("overwrite").parquet(options.output)


if __name__ == "__main__":
    main()
