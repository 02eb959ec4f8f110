"""The same rows as every engine has them, for the tests that put engines side by side."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import pytest

import isocost as ic

SESSIONS = {"pyspark": "spark", "pyspark-connect": "spark_connect"}
"""The fixture that an engine needs."""

QUICK = ("polars", "duckdb", "ibis", "dask")
LAZY = (*QUICK, *SESSIONS)
EAGER = ("dict", "pandas", "pandas nullable", "polars eager", "pyarrow", "reader")
FILES = ("csv", "jsonl", "parquet")
ENGINES = (*EAGER, *LAZY, *FILES, "sql")

# pyspark 4.3 says so whenever it meets pandas 3; nothing here goes through pandas.
SPARK_AND_PANDAS = "ignore:PySpark does not yet fully support pandas:FutureWarning"

try:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    # Before 4.0 what stops a task comes as it is.
    SPARK_ERRORS = (PySparkException, Py4JJavaError)
except ImportError:
    SPARK_ERRORS = ()


def session_of(kind, request):
    """The session of an engine that has one, else None."""
    return request.getfixturevalue(SESSIONS[kind]) if kind in SESSIONS else None


class Engine:
    """One engine: it holds a dict of lists, counts it, and applies rules to it."""

    def __init__(self, name, folder, spark=None):
        self.name, self.folder, self.spark = name, folder, spark
        self.is_lazy, self.is_file = name in LAZY, name in FILES

    def hold(self, data):
        """A dict of lists or arrays, or a table of pyarrow, as this engine has it; None is null."""
        import pyarrow as pa

        table = data if isinstance(data, pa.Table) else pa.table(data)
        if self.name == "dict":
            return table.to_pydict() if data is table else data
        if self.name == "pandas":
            return table.to_pandas()
        if self.name == "pandas nullable":
            # Old versions of pandas warn of infinity while they look for whole numbers.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                return table.to_pandas().convert_dtypes()
        if self.name == "polars eager":
            return pytest.importorskip("polars").from_arrow(table)
        if self.name in ("pyarrow", "sql"):
            return table
        if self.name == "reader":
            batches = [batch for start in range(0, len(table), 4) for batch in
                       table[start : start + 4].to_batches()]  # fmt: skip
            return pa.RecordBatchReader.from_batches(table.schema, batches)
        if self.is_lazy:
            return as_lazy(self.name, table, self.spark)
        path = self.folder / f"data.{self.name}"
        if self.name == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, path)
        elif self.name == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
        else:
            with path.open("w", newline="") as file:
                columns = table.to_pydict()
                csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
        return path

    def tally(self, data, **options):
        """The tally of a dict of lists."""
        if self.name != "sql":
            return ic.tally(self.hold(data), **options)
        names = ("missing_label", "missing_group", "drop_missing")
        after = {name: options.pop(name) for name in names if name in options}
        with self._database(data) as database:
            cells = database.sql(ic.tally_sql(**options)).fetchall()
        return ic.tally_from_cells(cells, **after)

    def apply(self, rule, data, **options):
        """The repaired data as a dict of lists; rows may come in another order."""
        if self.name == "sql":
            # A query knows only the columns that it is told of.
            query = rule.to_sql(columns=list(data), **options)
            with self._database(data) as database:
                return database.sql(query).to_arrow_table().to_pydict()
        if not self.is_file:
            return self.read(rule.apply(self.hold(data), **options))
        target = self.folder / f"out.{self.name}"
        options["output_column"] = options.pop("output", None)
        ic.apply_file(rule, self.hold(data), target, force=True, **options)
        return self.read(target)

    def read(self, held):
        """The rows that this engine has, as a dict of lists."""
        if self.is_lazy:
            return columns_of(self.name, held)
        if self.name == "reader":
            return held.read_all().to_pydict()
        if hasattr(held, "to_pydict"):
            return held.to_pydict()
        if self.name == "parquet":
            import pyarrow.parquet as pq

            return pq.read_table(held).to_pydict()
        if self.name == "jsonl":
            rows = list(map(json.loads, held.read_text().splitlines()))
            return {name: [row[name] for row in rows] for name in rows[0]}
        if self.name == "csv":
            with held.open(newline="") as file:
                names, *rows = csv.reader(file)
            return {name: parsed([row[i] for row in rows]) for i, name in enumerate(names)}
        if self.name == "polars eager":
            return held.to_dict(as_series=False)
        return {name: np.asarray(held[name]).tolist() for name in held}

    def _database(self, data):
        database = pytest.importorskip("duckdb").connect()
        database.register("scores", self.hold(data))
        return database


def parsed(texts):
    """Texts of a CSV as what they stand for; empty ones are None."""
    words = {"": None, "true": True, "false": False}
    if all(text in words for text in texts):
        return [words[text] for text in texts]
    for kind in (int, float):
        try:
            return [None if text == "" else kind(text) for text in texts]
        except ValueError:
            continue
    return texts


def as_lazy(kind, data, spark=None):
    """A dict of lists or arrays, or a table of pyarrow, as a lazy frame; None is null."""
    pa = pytest.importorskip("pyarrow")
    table = data if isinstance(data, pa.Table) else pa.table(data)
    if kind == "polars":
        return pytest.importorskip("polars").from_arrow(table).lazy()
    if kind == "duckdb":
        return pytest.importorskip("duckdb").from_arrow(table)
    if kind == "ibis":
        return pytest.importorskip("ibis").memtable(table)
    if kind == "dask":
        dd = pytest.importorskip("dask.dataframe")
        return dd.from_pandas(table.to_pandas(), npartitions=3)
    return as_spark(spark, table)


def as_spark(spark, table):
    """A pyarrow table as a frame of Spark."""
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.types import from_arrow_schema

    # Spark takes such a table from 4.0 on; if it has no rows, Spark Connect asks for the types.
    if len(table) and hasattr(DataFrame, "toArrow"):
        return spark.createDataFrame(table)
    rows = list(zip(*table.to_pydict().values(), strict=True))
    return spark.createDataFrame(rows, from_arrow_schema(table.schema))


def columns_of(kind, frame):
    """The rows of a lazy frame as a dict of lists, in any order."""
    if kind == "polars":
        return frame.collect().to_dict(as_series=False)
    if kind == "duckdb":
        return frame.to_arrow_table().to_pydict()
    if kind == "ibis":
        return frame.to_pyarrow().to_pydict()
    if kind == "dask":
        return {name: column.tolist() for name, column in frame.compute().items()}
    if hasattr(frame, "toArrow"):
        return frame.toArrow().to_pydict()
    rows = frame.collect()
    return {name: [row[place] for row in rows] for place, name in enumerate(frame.columns)}


def by_id(columns, id="id"):
    """The columns in the order of the ids."""
    order = np.argsort(columns[id])
    return {name: [values[i] for i in order] for name, values in columns.items()}
