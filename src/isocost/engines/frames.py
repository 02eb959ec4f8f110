"""Frames of any library that narwhals knows; eager ones as columns for the array kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.engines.encode import Encoded, is_null
from isocost.errors import DataError, MissingDependencyError, Problem, UsageError, missing_column

__all__ = ["Frame", "Lazy", "as_frame", "check_group_type"]


_HEAD, _FEW = 2**12, 12


class Frame:
    """A thin wrapper: the columns of a frame as the array kernel wants them."""

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
        series = self._series(name, role)
        if not (series.dtype.is_numeric() or str(series.dtype) in ("Boolean", "Object")):
            return series.to_numpy()  # type: ignore[no-any-return]
        if str(series.dtype) != "Object":
            import narwhals as nw

            if series.dtype == nw.Decimal:
                # As a text first: pyarrow makes 0.7000000000000001 of 0.7.
                series = series.cast(nw.String)
            series = series.cast(nw.Float64)
        return np.asarray(series.to_numpy())

    def labels(self, name: str) -> npt.NDArray[Any]:
        """A label column as an array; nulls stay visible as None or NaN."""
        series = self._series(name, "label")
        if series.null_count():
            return np.array(series.to_list(), dtype=object)
        return np.asarray(series.to_numpy())

    def groups(self, name: str) -> Any:
        """A group column, through the frame's own dictionary encoding where that is quicker."""
        series = self._series(name, "group")
        if series.dtype.is_nested():
            check_group_type(name, series.dtype)
        if series.dtype.is_numeric() and not series.null_count():
            return np.asarray(series.to_numpy())
        return _encoded(series)

    def ids(self, name: str) -> npt.NDArray[Any]:
        """An id column; nulls stay visible."""
        series = self._series(name, "id")
        if series.dtype.is_integer() and not series.null_count():
            return np.asarray(series.to_numpy())
        array = np.empty(len(series), dtype=object)
        array[:] = series.to_list()
        return array

    def with_columns(self, columns: dict[str, npt.NDArray[Any]]) -> Any:
        """The native frame with columns added or replaced; the original is untouched."""
        import narwhals as nw

        backend = nw.get_native_namespace(self.frame)
        new = [nw.new_series(name, values, backend=backend) for name, values in columns.items()]
        if self.frame.implementation.is_pandas_like():
            index = nw.to_native(self.frame).index
            new = [nw.maybe_set_index(series, index=index) for series in new]
        return nw.to_native(self.frame.with_columns(*new))


def check_group_type(name: str, kind: Any) -> None:
    """Refuse a column that cannot hold groups, by its type."""
    import narwhals as nw

    if kind.is_nested() or kind.is_temporal() or kind in (nw.Binary, nw.Decimal):
        title = "group" if name == "group" else f"group (column {name!r})"
        got, step = f"a column of type {kind}", "turn the column into text first"
        raise DataError(Problem(title, "values must be text, numbers or booleans", got, step))


class Lazy:
    """A frame whose rows stay where they are: queries go to it, and cells come back."""

    def __init__(
        self, frame: Any, types: dict[str, Any] | None = None, renamed: dict[str, str] | None = None
    ) -> None:
        self.frame = frame
        self.types: dict[str, Any] = dict(frame.collect_schema()) if types is None else types
        self.renamed = renamed or {}

    def inside(self, name: str) -> str:
        """The name that a column has in ``frame``."""
        return self.renamed.get(name, name)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.types)


def _encoded(series: Any) -> Encoded:
    """Dictionary codes of a series, in the way of its own library."""
    import narwhals as nw

    if series.null_count() == len(series):
        return Encoded(np.full(len(series), -1), [])
    native, kind = nw.to_native(series), series.implementation
    if kind.is_pyarrow() and str(native.type) == "string_view":
        # pyarrow can neither look these up nor encode them.
        native = native.cast("string")
        series = nw.from_native(native, series_only=True)
    if series.dtype == nw.String and not kind.is_pandas_like():
        guessed = _guessed(series, native)
        if guessed is not None:
            return guessed
    if kind.is_pandas_like():
        try:
            codes, values = native.factorize()
        except TypeError:
            check_group_type(series.name, nw.List(nw.Object))
            raise
        return Encoded(np.asarray(codes), list(values))
    if kind.is_pyarrow():
        encoded = native.combine_chunks().dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return Encoded(codes, encoded.dictionary.to_pylist())
    unique = sorted(series.unique().to_list(), key=is_null)
    values = [value for value in unique if not is_null(value)]
    codes = [place if place < len(values) else -1 for place in range(len(unique))]
    found = series.replace_strict(unique, codes, return_dtype=nw.Int64)
    return Encoded(found.to_numpy(), values)


def _guessed(series: Any, native: Any) -> Encoded | None:
    """Codes of texts if the first rows have all values, and few: looking up beats hashing."""
    import narwhals as nw

    first = series.head(_HEAD).unique().to_list()
    values = [value for value in first if value is not None]
    if not 0 < len(values) <= _FEW:
        return None
    if series.implementation.is_pyarrow():
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.index_in(native, value_set=pa.array(values, native.type)).fill_null(-1)
        codes = found.to_numpy()
    else:
        code = nw.lit(-1, nw.Int8)
        for place, value in enumerate(values):
            is_value = nw.col(series.name) == value
            code = nw.when(is_value).then(nw.lit(place, nw.Int8)).otherwise(code)
        codes = series.to_frame().select(code.alias("code")).get_column("code").to_numpy()
    complete = np.count_nonzero(codes < 0) == series.null_count()
    return Encoded(codes, values) if complete else None


def as_frame(data: Any) -> Frame | Lazy:
    """Wrap a frame, or say which kinds of data there are."""
    try:
        import narwhals as nw
    except ImportError as error:  # pragma: no cover - narwhals is a required dependency
        raise MissingDependencyError(
            Problem(
                "narwhals",
                "must be installed to read frames",
                "no narwhals",
                "pip install narwhals",
            )
        ) from error
    try:
        frame = nw.from_native(data)
    except nw.exceptions.DuplicateError as error:
        step = "rename or drop the columns that have the same name"
        raise UsageError(
            Problem("data", "must have columns with different names", str(error), step)
        ) from error
    except TypeError as error:
        raise UsageError(
            Problem(
                "data",
                "must be a dict of arrays, a frame (pandas, polars, pyarrow, duckdb, ibis, dask, "
                "pyspark), or the path of a CSV or Parquet file",
                f"an object of type {type(data).__module__}.{type(data).__name__}",
                "turn it into one of these; for arrays pass score=, label=, group=",
            )
        ) from error
    return Lazy(frame) if isinstance(frame, nw.LazyFrame) else Frame(frame)
