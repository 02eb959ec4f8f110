"""The two entry points: from any data to a tally, and from a rule and any data to repaired data.

Dicts and eager frames become columns for the array kernel; lazy frames and files are counted where
they are.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, partialmethod
from pathlib import Path
from typing import Any, Literal

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
    check_written,
    short,
)
from isocost.engines.arrays import apply_arrays, same_length, tally_arrays
from isocost.engines.parsing import check_decimal
from isocost.engines.streams import (
    apply_to_pyspark_pandas,
    apply_to_stream,
    is_pyspark_pandas,
    is_stream,
    tally_stream,
)
from isocost.engines.values import (
    Encoded,
    as_objects,
    column_array,
    is_uniform,
    missing_id,
    scale_of,
    scored,
    title_of,
)
from isocost.errors import DataError, IsocostWarning, Problem, UsageError, missing_column, setting
from isocost.grid import PROBABILITY, Grid, scale_named
from isocost.groups import Group, as_group, as_scalar, is_null
from isocost.rules import Rule, check_unknown
from isocost.tables import BACKENDS
from isocost.tallies import Tally

_HEAD, _FEW = 2**12, 12


def tally(
    data: Any = None,
    score: Any = "score",
    label: Any = "label",
    group: Any = "group",
    weight: Any = None,
    bins: int = 1024,
    edges: tuple[float, ...] = (),
    *,
    positive: Any = None,
    missing_group: Group | None = None,
    scale: str = "probability",
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    handed_over: bool = False,
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
    positive : optional
        The positive label of a column with two values other than 0 and 1.
    missing_group : optional
        The group of rows whose group is null; without it they are an error.
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
        Windows-1252 if every byte fits, which ``reading`` of the tally then says.
    sheet : str, optional
        For workbooks: the sheet; by default the only one that has rows.
    memory_limit : str, optional
        For files: the memory to use, such as "512MB".  By default 1 GiB, or 256 MiB per thread, and
        more only if needed.
    threads : int, optional
        For files: number of threads (default: one per core).
    handed_over : bool
        Whether a null score means that a rule handed this person over: such rows are counted
        apart, in ``tally.handed_over``, and their labels are not looked at.

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
    missing_group = None if missing_group is None else as_group(missing_group)
    check_single("positive", positive)
    options = {"grid": grid, "positive": positive, "missing_group": missing_group}
    options |= {"scale": scale_named(scale), "handed_over": check_flag("handed_over", handed_over)}
    check_decimal(decimal)
    if not isinstance(data, str | Path):
        _only_for_files(memory_limit=memory_limit, threads=threads, encoding=encoding, sheet=sheet)
    if data is None:
        parts = group if isinstance(group, list | tuple) and _holds_arrays(group) else [group]
        _need_arrays(score=score, label=label, group=parts[0])
        return scored(_tally_arrays(score, label, parts, weight, decimal=decimal, **options))
    columns = check_columns(score, label, group, weight)
    if isinstance(data, str | Path):
        from isocost.engines.connection import Settings
        from isocost.engines.files import tally_files
        from isocost.engines.source import FileReading

        limits, reading = Settings(memory_limit, threads), FileReading(decimal, encoding, sheet)
        return tally_files(data, columns, settings=limits, reading=reading, **options)
    count: Callable[..., Tally] = partial(_tally_frame, columns=columns, decimal=decimal, **options)
    if is_stream(data):
        return scored(tally_stream(data, columns, count, positive, scale))
    return scored(count(data))


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
    counted = _tally_arrays(
        source.numbers(columns["score"], "score"),
        source.labels(columns["label"]),
        [source.groups(name) for name in columns["group"]],
        None if weight is None else column_array("weight", source.numbers(weight, "weight")),
        names=names,
        columns=columns,
        decimal=decimal,
        **options,
    )
    return replace(counted, backend=backend_of(getattr(source, "frame", None)))


def _tally_arrays(
    score: Any, label: Any, groups: Any, weight: Any, *, handed_over: bool, **options: Any
) -> Tally:
    """The tally of arrays; if some are handed over, those without a score are counted apart."""
    if not handed_over:
        return tally_arrays(score, label, groups, weight, **options)
    score = column_array("score", score)
    apart = np.array([is_null(value) for value in score.tolist()], dtype=bool)
    columns = {"label": label, **{f"group {i}": group for i, group in enumerate(groups)}}
    columns |= {} if weight is None else {"weight": weight}
    columns = {name: column_array(name, column) for name, column in columns.items()}
    same_length({"score": score, **columns})

    def part(rows: npt.NDArray[np.bool_], **given: Any) -> Tally:
        taken = {
            name: Encoded(column[rows], column.values)
            if isinstance(column, Encoded)
            else column[rows]
            for name, column in columns.items()
        }
        chosen = [taken.pop(f"group {i}") for i in range(len(groups))]
        return tally_arrays(groups=chosen, **{**options, "score": score[rows], **taken, **given})

    if not apart.any():
        return part(~apart)
    # Labels of people handed over may be unknown, and are not needed.
    zeros = np.zeros(int(apart.sum()))
    others = part(apart, score=zeros, label=zeros, positive=None, scale=PROBABILITY)
    handed = others.cells.handed(others.groups)
    if apart.all():
        return others.rebuilt(others.cells.take(slice(0, 0)), handed=handed)
    return replace(part(~apart), handed_over=handed)


def apply_rule(
    rule: Rule,
    data: Any,
    *,
    score: Any,
    group: Any,
    id: Any,
    output: str,
    seed: int | None,
    unknown: Literal["error", "keep"],
    missing_group: Group | None,
    changed: str | None,
    scale: str | None = None,
    handed_over: str | None = None,
) -> Any:
    """See :meth:`isocost.Rule.apply`."""
    check_unknown(unknown)
    optional = ("changed", "handed_over")
    check_names(output=output, changed=changed, handed_over=handed_over, optional=optional)
    missing_group = None if missing_group is None else as_group(missing_group)
    options: dict[str, Any] = {"unknown": unknown, "missing_group": missing_group}
    options["scale"] = scale_of(rule, scale)
    if data is None:
        group = group if isinstance(group, list | tuple) and _holds_arrays(group) else [group]
        _need_arrays(score=score, group=group[0])
        score = column_array("score", score)
        thrown = partial(_coins, rule, lambda: id, seed, len(score))
        return apply_arrays(rule, score, group, thrown, **options)[1]
    if isinstance(data, str | Path):
        must, got = "must be a dict of arrays or a frame", f"the path {str(data)!r}"
        step = "use isocost.apply_file(rule, path, output_path), or the command isocost apply"
        raise UsageError(Problem("data", must, got, step))
    if is_stream(data) or is_pyspark_pandas(data):
        given: dict[str, Any] = {"score": score, "group": group, "id": id, "output": output}
        given |= {"changed": changed, "handed_over": handed_over, **options, "scale": scale}
        if not is_stream(data):
            return apply_to_pyspark_pandas(partial(apply_rule, rule, seed=seed, **given), data)
        if seed is not None:
            must, step = "must be left out for a stream of batches", "pass ids, or a table"
            raise UsageError(Problem("seed", must, repr(seed), step))
        return apply_to_stream(partial(apply_rule, rule, seed=None, **given), data)
    source = as_frame(data)
    groups = check_columns(score, "label", group)["group"]
    check_known(source.columns, {"score": score, "group": groups})
    if rule.needs_coin and seed is None:
        check_names(id=id, optional=("id",))
    added: dict[str, Any] = {"changed": changed, "handed_over": handed_over}
    check_written(source.columns, output, **added, by_case=not isinstance(source, Lazy))
    if output == score and not options["scale"].is_plain:
        must = "must be another column than the score: repaired scores are probabilities"
        got = f"{output!r}, and scores from {options['scale'].name}"
        step = f"pass {setting('output', f'repaired_{score}')}"
        raise UsageError(Problem("output", must, got, step))
    if isinstance(source, Lazy):
        from isocost.engines.lazy import apply_lazy

        return apply_lazy(
            rule, source, score=score, groups=groups, id=id, output=output, seed=seed, **added,
            **options,
        )  # fmt: skip
    before = column_array("score", source.numbers(score, "score"))
    thrown = partial(_coins, rule, lambda: source.ids(id), seed, len(before))
    before, after = apply_arrays(
        rule,
        before,
        [source.groups(name) for name in groups],
        thrown,
        names={"score": score, "group": ", ".join(groups)},
        **options,
    )
    new: dict[str, npt.NDArray[Any]] = {output: after}
    if changed is not None:
        new[changed] = after != before
    if handed_over is not None:
        new[handed_over] = np.isnan(after)
    return source.with_columns(new)


def _coins(rule: Rule, ids: Any, seed: int | None, rows: int) -> npt.NDArray[np.uint64]:
    if seed is not None:
        return coin.seeded_coins(rows, seed)
    column = ids()
    if isinstance(column, str):
        step = "pass id= so that a person's coin is always the same, or seed= for row order"
        raise missing_id("no ids and no seed", step)
    if not hasattr(column, "__len__") or getattr(column, "ndim", 1) == 0:
        must, step = "must be a column of whole numbers or texts", "pass one id per row"
        raise UsageError(Problem("id", must, short(column), step))
    column = column_array("id", column)
    if len(column) != rows:
        must, step = "must have one value per row", "pass the ids of the same rows"
        raise UsageError(Problem("id", must, f"{len(column)} ids for {rows} rows", step))
    return coin.coins(column, rule.salt)


def _only_for_files(**settings: Any) -> None:
    for name, value in settings.items():
        if value is not None:
            rule, step = "is a setting for files", "leave it out, or pass the path of a file"
            raise UsageError(Problem(name, rule, f"{value!r}, and data in memory", step))


def _holds_arrays(group: Any) -> bool:
    return bool(group) and all(isinstance(g, np.ndarray | list | tuple) for g in group)


def _need_arrays(**columns: Any) -> None:
    for name, value in columns.items():
        if isinstance(value, str):
            rule, got = "must be given when the columns are named", f"no data, and {name}={value!r}"
            step = "pass the data first, or arrays as score=, label=, group="
            raise UsageError(Problem("data", rule, got, step))


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

    def with_columns(self, columns: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
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
        return self.frame.get_column(name)

    def numbers(self, name: str, role: str) -> npt.NDArray[Any]:
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

    def labels(self, name: str) -> npt.NDArray[Any]:
        """A label column as an array; nulls stay visible as None or NaN."""
        import narwhals as nw

        series = self._series(name, "label")
        plain = series.dtype.is_numeric() and not is_wide(series.dtype)
        if (plain or series.dtype in (nw.Boolean, nw.String)) and not series.null_count():
            return np.asarray(series.to_numpy())
        return as_objects(series.to_list())

    def groups(self, name: str) -> Any:
        """A group column, through the frame's own dictionary encoding where that is quicker."""
        import narwhals as nw

        series = self._series(name, "group")
        check_group_type(name, series.dtype)
        if series.dtype in (nw.Object, nw.Unknown) or is_wide(series.dtype):
            return as_objects(series.to_list())
        if series.dtype.is_numeric() and not series.null_count():
            return np.asarray(series.to_numpy())
        return _encoded(series)

    def ids(self, name: str) -> npt.NDArray[Any]:
        """An id column, or a named index of pandas; nulls stay visible."""
        series = self._index(name) if name not in self.columns else None
        series = self._series(name, "id") if series is None else series
        if series.dtype.is_integer() and not is_wide(series.dtype) and not series.null_count():
            return np.asarray(series.to_numpy())
        return as_objects(series.to_list())

    def _index(self, name: str) -> Any:
        """The index of a pandas frame if it has a name; None otherwise.

        One without a name is often just the order of rows, by which nobody's coin is decided.
        """
        import narwhals as nw

        native = nw.to_native(self.frame)
        label = getattr(getattr(native, "index", None), "name", None)
        if label is None or not self.frame.implementation.is_pandas_like():
            return None
        if label != name:
            told = f"There is no column {name!r}: the ids are those of the index, {label!r}."
            warnings.warn(f"{told} id={label!r} says so.", IsocostWarning, stacklevel=6)
        return nw.from_native(native.index.to_series(), series_only=True)

    def with_columns(self, columns: dict[str, npt.NDArray[Any]]) -> Any:
        """The native frame with columns added or replaced; the original is untouched."""
        import narwhals as nw

        if self.frame.implementation.is_pandas_like():
            # By position, whatever the index; aligning a new series to it takes seconds.
            return nw.to_native(self.frame).assign(**columns)
        backend = nw.get_native_namespace(self.frame)
        new = [_series_of(name, values, backend) for name, values in columns.items()]
        return nw.to_native(self.frame.with_columns(*new))


def _series_of(name: str, values: npt.NDArray[Any], backend: Any) -> Any:
    """A new series; the score of people who are handed over is null."""
    import narwhals as nw

    if values.dtype.kind == "f" and np.isnan(values).any():
        listed = [None if math.isnan(one) else one for one in values.tolist()]
        return nw.new_series(name, listed, nw.Float64, backend=backend)
    return nw.new_series(name, values, backend=backend)


def is_wide(kind: Any) -> bool:
    """Whether a type has integers of 128 bits, which NumPy does not have."""
    import narwhals as nw

    return kind in (nw.Int128, nw.UInt128)


def check_group_type(name: str, kind: Any, role: str = "group") -> None:
    """Raise if a column of this type cannot contain groups or labels."""
    import narwhals as nw

    refused = (nw.Binary, nw.Decimal) if role == "group" else (nw.Binary,)
    if kind.is_nested() or kind.is_temporal() or kind in refused:
        raise _no_scalars(name, kind, role)


def _no_scalars(name: str, kind: Any, role: str) -> DataError:
    rule, got = "values must be text, numbers or booleans", f"a column of type {kind}"
    return DataError(Problem(title_of(role, name), rule, got, "convert the column to text first"))


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
        check_group_type(name, kind, role)
        if kind == nw.Object and not self.frame.implementation.is_dask():
            raise _no_scalars(name, kind, role)
        if (
            kind == nw.Unknown
            and self.frame.select(nw.col(self.inside(name)).count()).collect().item()
        ):
            raise _no_scalars(name, "that isocost does not know", role)

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
        """The same frame; in dask, columns of objects raise at a value that is not a text."""
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
    if kind.is_pyarrow() and str(native.type) == "string_view":
        # pyarrow can neither search nor encode these.
        native = native.cast("string")
        series = nw.from_native(native, series_only=True)
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

    first = series.head(_HEAD).unique().to_list()
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


def is_data(data: Any) -> bool:
    """Whether it is of a kind that :func:`tally` takes."""
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
