"""The same data as a lazy frame of each engine, for the tests that put them side by side."""

from __future__ import annotations

import numpy as np
import pytest

SESSIONS = {"pyspark": "spark", "pyspark-connect": "spark_connect"}
"""The fixture that an engine needs."""

KINDS = ("polars", "duckdb", "ibis", "dask", *SESSIONS)

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


def as_lazy(kind, data, spark=None):
    """A dict of lists or arrays as a lazy frame; None is null."""
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
    """What a lazy frame holds, as a dict of lists; the tests sort by id where order matters."""
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


def by_id(columns):
    """The columns in the order of the ids."""
    order = np.argsort(columns["id"])
    return {name: [values[i] for i in order] for name, values in columns.items()}
