"""Data in memory and lazy frames: from any data to a tally, and from a rule to repaired data.

:class:`Arrays` is a dict of arrays, :class:`Frame` an eager frame, and :class:`Lazy` a frame whose
rows stay where they are.  Dicts and eager frames become columns for the array kernel; lazy frames
and files are counted where they are.  Streams of pyarrow batches become tables, one after the
other, and frames of pandas on Spark become frames of Spark.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost import coin
from isocost.checks import (
    check_columns,
    check_flag,
    check_known,
    check_names,
    check_numbers,
    check_single,
    named_in,
    short,
)
from isocost.engines.arrays import apply_arrays, tally_arrays
from isocost.engines.columns import (
    Array,
    Encoded,
    LabelReader,
    applied_columns,
    as_objects,
    check_decimal,
    column_array,
    is_uniform,
    missing_group_of,
    missing_id,
    scale_of,
    scored,
    title_of,
    written_column,
)
from isocost.errors import DataError, Problem, UsageError, missing_column, setting
from isocost.grid import BINS, Grid, scale_named
from isocost.groups import Group, as_scalar, is_null
from isocost.readings import Missing
from isocost.rules import Applied, Rule, check_unknown
from isocost.tables import BACKENDS
from isocost.tallies import Tally

_HEAD, _FEW = 2**12, 12
"""If the first rows, this many, hold at most this many texts, searching them beats hashing."""

_ROWS_AT_ONCE = 2**17
"""Batches of a stream are joined into tables of at least this many rows."""


def tally(
    data: Any = None,
    score: Any = "score",
    label: Any = "label",
    group: Any = "group",
    weight: Any = None,
    bins: int = BINS,
    edges: tuple[float, ...] = (),
    *,
    person: Any = None,
    id: Any = None,
    positive: Any = None,
    missing_label: str = "refuse",
    missing_group: Group = "refuse",
    scale: str = "probability",
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    handed_over: bool = False,
    drop_missing: bool = False,
) -> Tally:
    """Count scores per group, label and score bin, in one pass over any data.

    Parameters
    ----------
    data : dict of arrays, any frame that narwhals knows, or a path
        Eager frames: pandas, polars, pyarrow.  Datasets and readers of pyarrow are counted batch
        by batch, which uses a reader up.  Lazy frames (polars LazyFrame, duckdb relations,
        ibis, dask, pyspark, pyspark.pandas) run one query, and only cells come back.
        A path, glob or directory of CSV, TSV, JSON lines or Parquet files is read by DuckDB, out
        of core; folders such as ``sex=F`` become a column.  An Excel workbook (.xlsx) needs the
        extra ``excel``.
        Leave it out to pass the columns themselves as arrays.
    score, label, weight : str
        The columns.  Scores lie in [0, 1], unless ``scale`` says what they are; labels are 0/1 or
        boolean, unless ``positive`` names the positive label; weights are positive.
    group : str or list of str
        The group column; with several, each combination that occurs is a group.
    bins : int
        Number of bins of equal width.
    edges : tuple of float
        Further bin edges, such as a decision threshold.
    person : str, optional
        The column that says who a row is about, where people have several rows.  The tally then
        also has ``persons``: how many there are, and sums of products of their sums.  It takes the
        memory of the distinct persons, and tallies to be added must share none.
    id : str, optional
        The column of ids, which are only counted: ``reading.ids`` of the tally is how many there
        are, and an audit warns if they repeat, because its intervals then need ``person``.
    positive : optional
        The positive label of a column with two values other than 0 and 1.
    missing_label : {"refuse", "drop", "keep"}
        Rows without a label: an error, left out, or counted as unknown in ``tally.unknown``.
        Leaving them out assumes that they are like the others.
    missing_group : {"refuse", "drop", "keep"} or group
        The same for rows without a group; any other value names the group to count them in.
    scale : {"probability", "percent", "logit", "rank"}
        What the scores are.  Percentages are divided by 100; log-odds x become
        1 / (1 + exp(-x)).  Ranks, such as deciles, are whole numbers r from low to high, the least
        and the greatest of the data unless named as in "rank:1-10", and become
        (r - low + 1/2) / (high - low + 1), which keeps their order and is no probability.
    decimal : {".", ","}, optional
        The decimal sign of scores and weights that are texts; by default a comma if every one of
        them has one, which ``reading`` of the tally then says.
    encoding : str, optional
        For text files: their encoding.  By default UTF-8, UTF-16 if a byte order mark says so, or
        Windows-1252 if every byte fits, which ``reading`` of the tally then says.  That is a guess:
        there is a warning if the name of a group is not all ASCII.
    sheet : str, optional
        For workbooks: the sheet; by default the only one that has rows.
    memory_limit : str, optional
        For files: the memory to use, such as "512MB".  By default 1 GiB, or 256 MiB per thread, and
        more only if needed.
    threads : int, optional
        For files: number of threads (default: one per core).
    handed_over : bool
        Whether a null score means that a rule handed this person over: such rows are counted
        apart, in ``tally.handed_over``; their labels and persons are not looked at.
    drop_missing : bool
        True to leave out rows without a score, label, group, weight or person; otherwise they are
        an error.  ``tally.reading`` counts them by column.  Rows without a label or a group stay if
        ``missing_label`` or ``missing_group`` says so, and rows without a score if ``handed_over``.

    Returns
    -------
    Tally

    Examples
    --------
    >>> import isocost as ic
    >>> ic.tally({"score": [0.2, 0.7, 0.4], "label": [0, 1, 1], "group": ["a", "a", "b"]})
    Tally of 3 rows in 2 groups; 1024 bins
    group  n  positives  base rate  mean score
    -----  -  ---------  ---------  ----------
    a      2          1     0.5000      0.4500
    b      1          1     1.0000      0.4000
    """
    grid = Grid(bins, check_numbers("edges", edges))
    missing = Missing.asked(missing_label, missing_group, drop_missing)
    check_single("positive", positive)
    options: dict[str, Any] = {"grid": grid, "positive": positive, "missing": missing}
    options |= {"scale": scale_named(scale), "handed_over": check_flag("handed_over", handed_over)}
    if handed_over and missing.keeps("group"):
        rule = "must be known, dropped or named where people were handed over"
        step = f"use {setting('missing_group', 'drop')}, or the name of a group"
        raise UsageError(Problem("missing_group", rule, "'keep'", step))
    check_decimal(decimal)
    for_files: dict[str, Any] = {"encoding": encoding, "sheet": sheet}
    for_files |= {"memory_limit": memory_limit, "threads": threads}
    if isinstance(data, str | Path):
        from isocost.engines.files import tally_files, warn_of_guess
        from isocost.engines.kinds import FileReading

        columns = check_columns(score, label, group, weight, person, id)
        reading = FileReading(decimal, **for_files)
        counted = tally_files(data, columns, reading=reading, **options)
        warn_of_guess(counted.reading, counted.groups, stacklevel=2)
        return counted
    for name, value in for_files.items():
        if value is not None:
            rule, step = "is a setting for files", "leave it out, or pass the path of a file"
            raise UsageError(Problem(name, rule, f"{value!r}, and data in memory", step))
    if data is None:
        groups = _group_arrays(group)
        _need_arrays(score=score, label=label, group=groups[0])
        held = (score, label, groups, weight, person, id)
        return scored(tally_arrays(*held, decimal=decimal, **options))
    columns = check_columns(score, label, group, weight, person, id)
    count: Callable[..., Tally] = partial(_tally_frame, columns=columns, decimal=decimal, **options)
    if is_stream(data) and person is None and id is None:
        return scored(_tally_stream(data, columns, count, positive, scale, missing))
    return scored(count(_whole(data, columns) if is_stream(data) else data))


def column_names(data: Any, *, encoding: str | None, sheet: str | None) -> list[str]:
    """The names of the columns of data of a kind that :func:`tally` accepts; none for others."""
    if not is_data(data):
        return []
    if isinstance(data, str | Path):
        from isocost.engines.files import Source
        from isocost.engines.kinds import FileReading

        with Source(data, reading=FileReading(None, encoding, sheet)) as source:
            return list(source.types)
    return schema_of(data).names if is_stream(data) else as_frame(data).columns


def is_data(data: Any) -> bool:
    """True if data are of a kind that :func:`tally` takes."""
    import narwhals as nw

    if isinstance(data, str | Path | Mapping):
        return True
    if isinstance(data, np.ndarray):
        return data.dtype.names is not None
    if is_stream(data) or is_pyspark_pandas(data) or isinstance(data, nw.DataFrame | nw.LazyFrame):
        return True
    try:
        return nw.from_native(data, pass_through=True) is not data
    except nw.exceptions.DuplicateError:
        return True


def _tally_frame(data: Any, columns: dict[str, Any], decimal: str | None, **options: Any) -> Tally:
    """The tally of a frame or a dict of arrays."""
    source = as_frame(data)
    check_known(source.columns, columns)
    if isinstance(source, Lazy):
        from isocost.engines.lazy import LazyRows, count_cells

        rows = LazyRows(source, columns, options["positive"])
        return replace(count_cells(rows, columns, **options), backend=backend_of(source.frame))
    names = {role: name for role, name in columns.items() if isinstance(name, str)}
    names["group"] = ", ".join(columns["group"])
    weight = columns["weight"]
    counted = tally_arrays(
        source.numbers(columns["score"], "score"),
        source.labels(columns["label"]),
        [source.groups(name) for name in columns["group"]],
        None if weight is None else column_array("weight", source.numbers(weight, "weight")),
        *(
            None if name is None else column_array(role, source.persons(name, role=role))
            for role, name in (("person", columns["person"]), ("id", columns.get("id")))
        ),
        names=names,
        columns=columns,
        decimal=decimal,
        **options,
    )
    return replace(counted, backend=backend_of(getattr(source, "frame", None)))


def _group_arrays(group: Any) -> Sequence[Any]:
    """The group columns that were passed as arrays: one, or a list of several."""
    several = isinstance(group, list | tuple) and len(group) > 0
    if several and all(isinstance(column, np.ndarray | list | tuple) for column in group):
        return group  # type: ignore[no-any-return]
    return [group]


def _need_arrays(**columns: Any) -> None:
    """Raise if columns are named, and not passed, where there are no data."""
    for name, value in columns.items():
        if value is None or isinstance(value, str):
            rule, got = "must be given when the columns are named", f"no data, and {name}={value!r}"
            step = "pass the data first, or arrays as score=, label=, group="
            raise UsageError(Problem("data", rule, got, step))


def apply_rule(rule: Rule, data: Any, asked: Applied) -> Any:
    """See :meth:`isocost.Rule.apply`."""
    check_unknown(asked.unknown)
    flags: dict[str, Any] = {"changed": asked.changed, "handed_over": asked.handed_over}
    check_names(output=asked.output, **flags, optional=("output", *flags))
    scale, missing_group = scale_of(rule, asked.scale), missing_group_of(rule, asked.missing_group)
    options: dict[str, Any] = {"missing_group": missing_group, "scale": scale}
    if data is None:
        columns = _group_arrays(asked.group)
        _need_arrays(score=asked.score, group=columns[0])
        score = column_array("score", asked.score)
        thrown = partial(_coins, rule, lambda: asked.id, asked.seed, len(score))
        return apply_arrays(rule, score, columns, thrown, unknown=asked.unknown, **options)[1]
    if isinstance(data, str | Path):
        must, got = "must be a dict of arrays or a frame", f"the path {str(data)!r}"
        step = "use isocost.apply_file(rule, path, output_path), or the command isocost apply"
        raise UsageError(Problem("data", must, got, step))
    score, group, id = applied_columns(rule, asked.score, asked.group, asked.id)
    asked = replace(asked, score=score, group=group, id=id)
    if is_pyspark_pandas(data):
        levels = [f"__index_{level}__" for level in range(data.index.nlevels)]
        repaired = apply_rule(rule, data.to_spark(index_col=levels), asked)
        return repaired.pandas_api(index_col=levels).rename_axis(data.index.names)
    if is_stream(data):
        if asked.seed is not None:
            must, step = "must be left out for a stream of batches", "pass ids, or a table"
            raise UsageError(Problem("seed", must, repr(asked.seed), step))
        if rule.needs_coin and id is None:
            raise missing_id()
        named = score, asked.output, scale, *flags.values()
        output = written_column(schema_of(data).names, *named, by_case=True)
        empty = {name: np.empty(0, dtype=bool) for name in flags.values() if name is not None}
        again = partial(apply_rule, rule, asked=replace(asked, output=output))
        return _apply_to_stream(again, data, {output: np.empty(0), **empty})
    source = as_frame(data)
    is_lazy = isinstance(source, Lazy)
    groups = check_columns(score, "label", group)["group"]
    check_known(source.columns, {"score": score, "group": groups})
    if rule.needs_coin and asked.seed is None:
        if id is None:
            raise missing_id() if is_lazy else missing_id(*_NO_IDS)
        check_names(id=id)
    named = score, asked.output, scale, *flags.values()
    output = written_column(source.columns, *named, by_case=not is_lazy)
    if isinstance(source, Lazy):
        from isocost.engines.lazy import apply_lazy

        return apply_lazy(rule, source, replace(asked, group=groups, output=output), **options)
    before = column_array("score", source.numbers(score, "score"))
    thrown = partial(_coins, rule, lambda: source.ids(id), asked.seed, len(before))
    columns = [source.groups(name) for name in groups]
    options |= {"names": {"score": score, "group": ", ".join(groups)}, "unknown": asked.unknown}
    before, after = apply_arrays(rule, before, columns, thrown, **options)
    new: dict[str, Array] = {output: after}
    if asked.changed is not None:
        new[asked.changed] = after != before
    if asked.handed_over is not None:
        new[asked.handed_over] = np.isnan(after)
    return source.with_columns(new)


_NO_IDS = (
    "no ids and no seed",
    "pass id= so that a person's coin is always the same, or seed= for row order",
)
"""What came and the next step, where coins can also be thrown in row order."""


def _coins(rule: Rule, ids: Any, seed: int | None, rows: int) -> npt.NDArray[np.uint64]:
    if seed is not None:
        return coin.seeded_coins(rows, seed)
    column = ids()
    if column is None or isinstance(column, str):
        raise missing_id(*_NO_IDS)
    if not hasattr(column, "__len__") or getattr(column, "ndim", 1) == 0:
        must, step = "must be a column of whole numbers or texts", "pass one id per row"
        raise UsageError(Problem("id", must, short(column), step))
    column = column_array("id", column)
    if len(column) != rows:
        must, step = "must have one value per row", "pass the ids of the same rows"
        raise UsageError(Problem("id", must, f"{len(column)} ids for {rows} rows", step))
    return coin.coins(column, rule.salt)


def as_frame(data: Any) -> Arrays | Frame | Lazy:
    """Wrap a dict of arrays or a frame, or raise an error that lists the kinds of data."""
    if isinstance(data, Mapping):
        return Arrays(data)
    if isinstance(data, np.ndarray) and data.dtype.names:
        return Arrays({name: data[name] for name in data.dtype.names})
    if is_pyspark_pandas(data):
        data = data.to_spark()
    import narwhals as nw

    try:
        frame = nw.from_native(data)
    except nw.exceptions.DuplicateError as error:
        raise _not_unique(str(error)) from error
    except TypeError as error:
        rule = (
            "must be a dict of arrays, a frame (pandas, polars, pyarrow, duckdb, ibis, dask, "
            "pyspark), a dataset or a reader of pyarrow, or the path of a CSV or Parquet file"
        )
        got = f"an object of type {type(data).__module__}.{type(data).__name__}"
        step = "convert it to one of these; for arrays pass score=, label=, group="
        raise UsageError(Problem("data", rule, got, step)) from error
    if not isinstance(frame, nw.LazyFrame):
        return Frame(frame)
    if not frame.implementation.is_polars():
        # A dictionary of types would keep only one of them.
        names = [str(name) for name in nw.to_native(frame).columns]
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise _not_unique(f"{', '.join(map(repr, twice))} more than once")
    return Lazy(frame)


def _not_unique(got: str) -> UsageError:
    step = "rename or drop the columns that have the same name"
    return UsageError(Problem("data", "must have columns with different names", got, step))


class Arrays:
    """A dict of arrays, with the methods of a frame."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [str(name) for name in self.data]

    def numbers(self, name: str, role: str) -> Any:
        """A column, as it is."""
        if name not in self.data:
            raise UsageError(missing_column(role, name, self.columns))
        return self.data[name]

    labels = partialmethod(numbers, role="label")
    groups = partialmethod(numbers, role="group")
    ids = partialmethod(numbers, role="id")
    persons = partialmethod(numbers, role="person")

    def with_columns(self, columns: dict[str, Array]) -> dict[str, Any]:
        """The arrays with columns added or replaced."""
        return {**self.data, **columns}


class Frame:
    """A thin wrapper: the columns of a frame as the array kernel needs them."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.frame.columns)

    def _series(self, name: str, role: str) -> Any:
        if name not in self.columns:
            raise UsageError(missing_column(role, name, [str(name) for name in self.columns]))
        import narwhals as nw

        series = self.frame.get_column(name)
        if series.implementation.is_pyarrow() and str(series.to_native().type) == "string_view":
            # pyarrow can neither search nor encode these.
            return nw.from_native(series.to_native().cast("string"), series_only=True)
        return series

    def numbers(self, name: str, role: str) -> Array:
        """A numeric column; nulls become NaN."""
        import narwhals as nw

        series = self._series(name, role)
        if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
            return as_objects(series.to_list())
        if series.dtype == nw.Decimal:
            # Through text, because pyarrow turns 0.7 into 0.7000000000000001.
            series = series.cast(nw.String)
        try:
            return np.asarray(series.cast(nw.Float64).to_numpy())
        except ValueError:
            # pyarrow does not round a whole number beyond 2^53.
            return as_objects(series.to_list())

    def labels(self, name: str) -> Any:
        """A label column as an array, or encoded; nulls stay visible as None, NaN or -1."""
        import narwhals as nw

        series = self._series(name, "label")
        if series.dtype == nw.String and not series.implementation.is_pandas_like():
            guessed = _guessed(series, nw.to_native(series))
            if guessed is not None:
                return guessed
        plain = series.dtype.is_numeric() and not is_wide(series.dtype)
        if (plain or series.dtype in (nw.Boolean, nw.String)) and not series.null_count():
            return np.asarray(series.to_numpy())
        return as_objects(series.to_list())

    def groups(self, name: str) -> Any:
        """A group column, through the frame's own dictionary encoding where that is quicker."""
        import narwhals as nw

        series = self._series(name, "group")
        check_scalars(name, series.dtype, "group")
        if series.dtype in (nw.Object, nw.Unknown) or is_wide(series.dtype):
            return as_objects(series.to_list())
        if series.dtype.is_numeric() and not series.null_count():
            return np.asarray(series.to_numpy())
        return _encoded(series)

    def persons(self, name: str, role: str = "person") -> Any:
        """Who each row is about: numbers, or codes that the frame itself gives; NaN for nobody."""
        import narwhals as nw

        series = self._series(name, role)
        check_scalars(name, series.dtype, role)
        native, kind, nulls = nw.to_native(series), series.implementation, series.null_count()
        whole = series.dtype.is_integer() and not is_wide(series.dtype) and not nulls
        if whole or series.dtype.is_float():
            return np.asarray(series.to_numpy())
        if kind.is_pandas_like():
            codes = np.asarray(native.factorize()[0])
            return np.where(codes < 0, np.nan, codes) if nulls else codes
        if kind.is_pyarrow():
            return (
                native.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
            )
        return np.asarray(series.rank("dense").to_numpy())

    def ids(self, name: str) -> Array:
        """An id column, or the index of pandas that has this name; nulls stay visible."""
        import narwhals as nw

        index: Any = getattr(nw.to_native(self.frame), "index", None)
        if name not in self.columns and getattr(index, "name", None) == name:
            series = nw.from_native(index.to_series(), series_only=True)
        else:
            series = self._series(name, "id")
        if series.dtype.is_integer() and not is_wide(series.dtype) and not series.null_count():
            return np.asarray(series.to_numpy())
        return as_objects(series.to_list())

    def with_columns(self, columns: dict[str, Array]) -> Any:
        """The native frame with columns added or replaced; the original is untouched."""
        import narwhals as nw

        if self.frame.implementation.is_pandas_like():
            # By position, whatever the index; aligning a new series to it takes seconds.
            return nw.to_native(self.frame).assign(**columns)
        backend = nw.get_native_namespace(self.frame)
        new = []
        for name, values in columns.items():
            if values.dtype.kind == "f" and np.isnan(values).any():
                # The score of people who are handed over is null.
                listed = [None if math.isnan(score) else score for score in values.tolist()]
                new.append(nw.new_series(name, listed, nw.Float64, backend=backend))
            else:
                new.append(nw.new_series(name, values, backend=backend))
        return nw.to_native(self.frame.with_columns(*new))


def is_wide(kind: Any) -> bool:
    """True if a type has integers of 128 bits, which NumPy does not have."""
    import narwhals as nw

    return kind in (nw.Int128, nw.UInt128)


def check_scalars(name: str, kind: Any, role: str, is_odd: bool = False) -> None:
    """Raise if a column of this type, or one that ``is_odd``, cannot contain groups or labels."""
    import narwhals as nw

    refused = (nw.Binary, nw.Decimal) if role == "group" else (nw.Binary,)
    if is_odd or kind.is_nested() or kind.is_temporal() or kind in refused:
        shown = "that isocost does not know" if kind == nw.Unknown else kind
        rule, got = "values must be text, numbers or booleans", f"a column of type {shown}"
        step = "convert the column to text first"
        raise DataError(Problem(title_of(role, name), rule, got, step))


def backend_of(frame: Any) -> str | None:
    """The library of small frames that belongs to a narwhals frame; None if there is none.

    What a query of dask brings back is a frame of pandas; other lazy engines have no own.
    """
    if frame is None or frame.implementation.is_dask():
        return None if frame is None else "pandas"
    name = str(frame.implementation.value)
    return name if name in BACKENDS else None


class Lazy:
    """A frame whose rows stay where they are; only the results of queries come back."""

    def __init__(
        self, frame: Any, types: dict[str, Any] | None = None, renamed: dict[str, str] | None = None
    ) -> None:
        self.frame = frame
        self.types: dict[str, Any] = _types(frame) if types is None else types
        self.renamed = renamed or {}

    def inside(self, name: str) -> str:
        """The name that a column has in ``frame``."""
        return self.renamed.get(name, name)

    def check(self, name: str, role: str) -> None:
        """Raise if the values of a column are not texts, numbers or booleans.

        A column of a type that narwhals does not know may only contain nulls, which a query shows.
        """
        import narwhals as nw

        self.check_name(name, role)
        kind = self.types[name]
        is_odd = kind == nw.Object and not self.frame.implementation.is_dask()
        if kind == nw.Unknown:
            is_odd = self.frame.select(nw.col(self.inside(name)).count()).collect().item() > 0
        check_scalars(name, kind, role, is_odd)

    def check_name(self, name: str, role: str) -> None:
        """Raise if a name also stands for another column in an engine that ignores case."""
        engine = self.frame.implementation
        alike = [other for other in self.types if other.lower() == name.lower()]
        if len(alike) > 1 and not (engine.is_polars() or engine.is_dask()):
            rule = f"must name one column, and upper and lower case are the same in {engine.value}"
            got = " and ".join(map(repr, alike))
            step = "rename or drop all but one of them"
            raise DataError(Problem(title_of(role, name), rule, got, step))

    def only_texts(self, names: Iterable[str]) -> Lazy:
        """Itself; in dask, columns of objects raise at a value that is not a text."""
        import narwhals as nw

        odd = [name for name in names if self.types[name] == nw.Object]
        if not odd or not self.frame.implementation.is_dask():
            return self
        native = nw.to_native(self.frame)
        checked = native.map_partitions(_need_texts, odd, meta=native._meta)
        return Lazy(nw.from_native(checked), self.types, self.renamed)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.types)


def _types(frame: Any) -> dict[str, Any]:
    """The types of a lazy frame, corrected where narwhals takes other values for texts."""
    import narwhals as nw

    types, native = dict(frame.collect_schema()), nw.to_native(frame)
    if frame.implementation.is_dask():
        objects = [name for name in types if str(native.dtypes[name]) == "object"]
        return types | dict.fromkeys(objects, nw.Object())
    if frame.implementation.is_duckdb():
        kinds = zip(native.columns, native.types, strict=True)
        return types | {name: nw.Unknown() for name, kind in kinds if str(kind) == "JSON"}
    return types


def _need_texts(part: Any, names: Sequence[str]) -> Any:
    for name in names:
        odd = [v for v in part[name] if not (isinstance(v, str) or is_null(v))]
        if odd:
            step = "give the column a type of its own, for example with astype"
            rule = "must contain only texts, because its type is object"
            got = f"{len(odd):,} other values, for example {odd[0]!r}"
            raise DataError(Problem(f"column {name!r}", rule, got, step))
    return part


def _encoded(series: Any) -> Any:
    """The dictionary encoding of a series by its own library; mixed objects as they are."""
    import narwhals as nw

    if series.null_count() == len(series):
        return Encoded(np.full(len(series), -1), [])
    native, kind = nw.to_native(series), series.implementation
    if series.dtype == nw.String and not kind.is_pandas_like():
        guessed = _guessed(series, native)
        if guessed is not None:
            return guessed
    if kind.is_pandas_like():
        if str(native.dtype) == "object" and not is_uniform(listed := series.to_list()):
            return as_objects(listed)
        codes, values = native.factorize()
        return Encoded(np.asarray(codes), list(values), as_scalar)
    if kind.is_pyarrow():
        encoded = native.combine_chunks().dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return Encoded(codes, encoded.dictionary.to_pylist(), as_scalar)
    unique = sorted(series.unique().to_list(), key=is_null)
    values = [value for value in unique if not is_null(value)]
    codes = [code if code < len(values) else -1 for code in range(len(unique))]
    encoded = series.replace_strict(unique, codes, return_dtype=nw.Int64)
    return Encoded(encoded.to_numpy(), values, as_scalar)


def _guessed(series: Any, native: Any) -> Encoded | None:
    """Codes of texts if the first rows have all values, and few: a search beats hashing."""
    import narwhals as nw

    first = series.head(_HEAD).unique(maintain_order=True).to_list()
    values = [value for value in first if value is not None]
    if not 0 < len(values) <= _FEW:
        return None
    if series.implementation.is_pyarrow():
        import pyarrow as pa
        import pyarrow.compute as pc

        index = pc.index_in(native, value_set=pa.array(values, native.type))
        others = index.null_count
        codes = (index.fill_null(-1) if others else index).to_numpy()
    else:
        code = nw.lit(-1, nw.Int8)
        for index, value in enumerate(values):
            is_value = nw.col(series.name) == value
            code = nw.when(is_value).then(nw.lit(index, nw.Int8)).otherwise(code)
        codes = series.to_frame().select(code.alias("code")).get_column("code").to_numpy()
        others = np.count_nonzero(codes < 0)
    return Encoded(codes, values) if others == series.null_count() else None


def is_stream(data: Any) -> bool:
    """True if data are a dataset, a scanner or a reader of pyarrow, which yield batches."""
    arrow, dataset = (sys.modules.get(name) for name in ("pyarrow", "pyarrow.dataset"))
    kinds = [arrow.RecordBatchReader] if arrow is not None else []
    kinds += [dataset.Dataset, dataset.Scanner] if dataset is not None else []
    return isinstance(data, tuple(kinds))


def schema_of(data: Any) -> Any:
    """The schema of a stream."""
    return data.projected_schema if hasattr(data, "projected_schema") else data.schema


def _tables(data: Any, columns: Collection[str] | None = None) -> Iterator[Any]:
    """The rows of a stream as tables of a hundred thousand rows or more, but for the last."""
    import pyarrow as pa

    if columns is not None and hasattr(data, "scanner"):
        batches = data.to_batches(columns=list(columns))
    else:
        batches = data.to_batches() if hasattr(data, "to_batches") else iter(data)
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _whole(data: Any, columns: Mapping[str, Any]) -> Any:
    """The columns of a stream as one table: rows of one person may be in several batches."""
    import pyarrow as pa

    check_known(schema_of(data).names, columns)
    used = list(dict.fromkeys(name for _, name in named_in(columns)))
    tables = [table.select(used) for table in _tables(data, used)]
    return pa.concat_tables(tables) if tables else schema_of(data).empty_table()


def _tally_stream(
    data: Any,
    columns: Mapping[str, Any],
    count: Callable[..., Tally],
    positive: Any,
    scale: str,
    missing: Missing,
) -> Tally:
    """The tally of all batches, which ``count`` counts one after the other."""
    if scale_named(scale).is_open:
        must, step = "must name the range of the ranks for a stream", "for example rank:1-10"
        raise UsageError(Problem("scale", must, repr(scale), step))
    schema = schema_of(data)
    check_known(schema.names, columns)
    counted, first = None, 0
    # No batch alone shows whether there are two labels, one of them positive.
    labels = LabelReader(positive, missing.keeps("label"))
    for table in _tables(data, {name for _, name in named_in(columns)}):
        if not table.num_rows:
            continue
        try:
            part = count(table, labels=labels)
        except DataError as error:
            if not first:
                raise
            where = f"among rows {first:,} to {first + table.num_rows - 1:,}: "
            problems = [replace(problem, got=where + problem.got) for problem in error.problems]
            raise DataError(problems) from error
        counted, first = part if counted is None else counted + part, first + table.num_rows
    if wrong := labels.finish(columns["label"]):
        raise DataError(wrong)
    return count(schema.empty_table()) if counted is None else counted


def _apply_to_stream(repair: Callable[[Any], Any], data: Any, empty: dict[str, Array]) -> Any:
    """A reader of repaired batches, each made when it is asked for.

    A stream without rows gets the columns ``empty``.
    """
    import narwhals as nw
    import pyarrow as pa

    repaired = (repair(table) for table in _tables(data) if table.num_rows)
    first = next(repaired, None)
    if first is None:
        return Frame(nw.from_native(schema_of(data).empty_table())).with_columns(empty).to_reader()

    def batches() -> Iterator[Any]:
        yield from first.to_batches()
        for table in repaired:
            yield from table.cast(first.schema).to_batches()

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def is_pyspark_pandas(data: Any) -> bool:
    """True if data are a frame of pyspark.pandas."""
    return type(data).__module__.startswith("pyspark.pandas") and hasattr(data, "to_spark")
