"""Streams of batches of pyarrow, and pandas on Spark: as tables that others count and repair."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from isocost.checks import check_known
from isocost.engines.arrays import tally_arrays
from isocost.errors import DataError, Problem, UsageError
from isocost.grid import Grid, scale_named
from isocost.groups import is_null
from isocost.tallies import Tally

_ROWS_AT_ONCE = 2**17


def is_stream(data: Any) -> bool:
    """Whether it is a dataset, a scanner or a reader of pyarrow, which gives batches of rows."""
    arrow, dataset = (sys.modules.get(name) for name in ("pyarrow", "pyarrow.dataset"))
    kinds = [arrow.RecordBatchReader] if arrow is not None else []
    kinds += [dataset.Dataset, dataset.Scanner] if dataset is not None else []
    return isinstance(data, tuple(kinds))


def _schema(data: Any) -> Any:
    return data.projected_schema if hasattr(data, "projected_schema") else data.schema


def _tables(data: Any, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """The rows of a stream as tables of a hundred thousand rows or more, but for the last."""
    import pyarrow as pa

    if columns is not None and hasattr(data, "scanner"):
        batches = data.to_batches(columns=list(columns))
    else:
        batches = data.to_batches() if hasattr(data, "to_batches") else iter(data)
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(one) for one in waiting) >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def tally_stream(
    data: Any,
    columns: Mapping[str, Any],
    count: Callable[..., Tally],
    positive: Any,
    scale: str,
) -> Tally:
    """The tally of all batches, which ``count`` counts one after the other."""
    if scale_named(scale).is_open:
        must, step = "must name the range of the ranks for a stream", "for example rank:1-10"
        raise UsageError(Problem("scale", must, repr(scale), step))
    schema = _schema(data)
    check_known(schema.names, columns)
    single = [columns[role] for role in ("score", "label", "weight") if columns.get(role)]
    counted, first = None, 0
    # Whether there are two labels, of which one is positive, no batch can tell alone.
    known = dict[Any, None]()
    for table in _tables(data, [*dict.fromkeys([*single, *columns["group"]])]):
        if not table.num_rows:
            continue
        if positive is not None:
            table = _with_positive(table, columns["label"], positive, known)
        try:
            part = count(table, positive=None)
        except DataError as error:
            raise _located(error, first, first + table.num_rows) from error
        counted, first = part if counted is None else counted + part, first + table.num_rows
    if known:
        same = [0] * len(known)
        tally_arrays(same, list(known), [same], grid=Grid(), positive=positive)
    return count(schema.empty_table(), positive=None) if counted is None else counted


def _with_positive(table: Any, label: str, positive: Any, known: dict[Any, None]) -> Any:
    """The table with whether each label is the positive one; adds the labels to those known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(label)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = [value for value in column.unique().to_pylist() if not is_null(value)]
    known.update(dict.fromkeys(values))
    wanted = [value for value in values if type(value) is type(positive) and value == positive]
    is_positive = pc.is_in(column, value_set=pa.array(wanted, column.type))
    is_positive = pc.if_else(pc.is_null(column), pa.scalar(None, pa.bool_()), is_positive)
    return table.set_column(table.schema.get_field_index(label), label, is_positive)


def _located(error: DataError, first: int, stop: int) -> DataError:
    """The error, which says which rows of a stream it is about."""
    if not first:
        return error
    where = f"among rows {first:,} to {stop - 1:,}: "
    return DataError([replace(problem, got=where + problem.got) for problem in error.problems])


def apply_to_stream(repair: Callable[[Any], Any], data: Any) -> Any:
    """A reader of repaired batches, each of which is made when it is asked for."""
    import pyarrow as pa

    repaired = (repair(table) for table in _tables(data) if table.num_rows)
    first = next(repaired, None)
    if first is None:
        return _schema(data).empty_table().to_reader()

    def batches() -> Iterator[Any]:
        yield from first.to_batches()
        for table in repaired:
            yield from table.cast(first.schema).to_batches()

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def is_pyspark_pandas(data: Any) -> bool:
    """Whether it is a frame of pyspark.pandas."""
    return type(data).__module__.startswith("pyspark.pandas") and hasattr(data, "to_spark")


def apply_to_pyspark_pandas(repair: Callable[[Any], Any], data: Any) -> Any:
    """The repaired frame with the same index."""
    levels = [f"__index_{level}__" for level in range(data.index.nlevels)]
    repaired = repair(data.to_spark(index_col=levels))
    return repaired.pandas_api(index_col=levels).rename_axis(data.index.names)
