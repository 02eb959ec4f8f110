"""Tally of frames in memory, beside the aggregation that each library does natively.

By hand means: 1024 plain bins, counts and two sums, no checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import isocost as ic
from benchmarks.timing import in_turns, sample, shown

Row = tuple[str, str, str, str]


def tallying(rows: int = 10_000_000, groups: int = 10) -> Iterator[Row]:
    """Every frame with text groups, and with groups that are whole numbers."""
    data = sample(rows, groups)
    numbers = {name: data[name] for name in ("score", "label", "group")}
    texts = {**numbers, "group": np.array([f"group {i}" for i in range(groups)])[data["group"]]}
    for kind, columns in (("texts", texts), ("whole numbers", numbers)):
        for name, make in FRAMES.items():
            frame, by_hand = make(columns)
            ours, theirs = in_turns(lambda f=frame: ic.tally(f), by_hand)
            what = f"tally of {name}, {rows:.0e} rows, {groups} groups, {kind}"
            yield (
                what,
                shown(ours),
                f"{ours / theirs:.2f} times its own aggregation by hand ({shown(theirs)})",
                "<= 1.3",
            )
            del frame, by_hand


def _pandas(columns: dict[str, Any]) -> tuple[Any, Callable[[], object]]:
    import pandas as pd

    return _pandas_frame(pd.DataFrame(columns))


def _pandas_pyarrow(columns: dict[str, Any]) -> tuple[Any, Callable[[], object]]:
    import pyarrow as pa

    types = {"score": "double[pyarrow]", "label": "int64[pyarrow]"}
    frame = pa.table(columns).to_pandas(types_mapper=_arrow_type).astype(types)
    return _pandas_frame(frame)


def _arrow_type(kind: Any) -> Any:
    import pandas as pd

    return pd.ArrowDtype(kind)


def _pandas_frame(frame: Any) -> tuple[Any, Callable[[], object]]:
    def by_hand() -> object:
        score = frame["score"]
        place = np.minimum((score.to_numpy() * 1024).astype(np.int64), 1023)
        made = frame.assign(bin=place, square=score * score)
        sums = {"n": ("score", "size"), "s": ("score", "sum"), "s2": ("square", "sum")}
        return made.groupby(["group", "label", "bin"], observed=True).agg(**sums)

    return frame, by_hand


def _polars(columns: dict[str, Any]) -> tuple[Any, Callable[[], object]]:
    import polars as pl

    frame = pl.DataFrame(columns)
    return frame, lambda: _polars_query(frame)


def _polars_lazy(columns: dict[str, Any]) -> tuple[Any, Callable[[], object]]:
    import polars as pl

    frame = pl.LazyFrame(columns)
    return frame, lambda: _polars_query(frame).collect(engine="streaming")


def _polars_query(frame: Any) -> Any:
    import polars as pl

    h = pl.col("score")
    place = (h * 1024).floor().clip(upper_bound=1023).cast(pl.Int32).alias("bin")
    sums = (pl.len(), h.sum().alias("s"), (h * h).sum().alias("s2"))
    return frame.group_by("group", "label", place).agg(*sums)


def _pyarrow(columns: dict[str, Any]) -> tuple[Any, Callable[[], object]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.table(columns)

    def by_hand() -> object:
        score = table["score"]
        place = pc.min_element_wise(pc.floor(pc.multiply(score, 1024.0)), 1023.0)
        made = table.append_column("bin", pc.cast(place, pa.int32()))
        made = made.append_column("square", pc.multiply(score, score))
        sums = [("score", "count"), ("score", "sum"), ("square", "sum")]
        return made.group_by(["group", "label", "bin"]).aggregate(sums)

    return table, by_hand


def _duckdb(columns: dict[str, Any]) -> tuple[Any, Callable[[], object]]:
    import duckdb
    import pyarrow as pa

    connection = duckdb.connect()
    connection.register("columns", pa.table(columns))
    connection.execute("CREATE TABLE people AS SELECT * FROM columns")
    connection.unregister("columns")
    query = """SELECT "group", label, least(floor(score * 1024), 1023)::INT AS bin,
                      count(*), sum(score), sum(score * score) FROM people GROUP BY ALL"""
    return connection.table("people"), lambda: connection.execute(query).fetchnumpy()


FRAMES: dict[str, Callable[[dict[str, Any]], tuple[Any, Callable[[], object]]]] = {
    "pandas": _pandas,
    "pandas with pyarrow types": _pandas_pyarrow,
    "polars": _polars,
    "polars, lazy": _polars_lazy,
    "pyarrow": _pyarrow,
    "a DuckDB relation": _duckdb,
}
