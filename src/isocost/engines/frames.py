"""Eager frames of any library that narwhals knows, as columns for the array kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.engines.encode import Encoded, is_null
from isocost.errors import MissingDependencyError, Problem, UsageError, missing_column

__all__ = ["Frame", "as_frame"]


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


def _encoded(series: Any) -> Encoded:
    """Dictionary codes of a series, in the way of its own library."""
    import narwhals as nw

    if series.null_count() == len(series):
        return Encoded(np.full(len(series), -1), [])
    native, kind = nw.to_native(series), series.implementation
    if kind.is_pandas_like():
        codes, values = native.factorize()
        return Encoded(np.asarray(codes), list(values))
    if kind.is_pyarrow():
        encoded = native.combine_chunks().dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return Encoded(codes, encoded.dictionary.to_pylist())
    values = [value for value in series.unique().to_list() if not is_null(value)]
    codes = series.replace_strict(
        values, list(range(len(values))), default=-1, return_dtype=nw.Int64
    )
    return Encoded(codes.to_numpy(), values)


def as_frame(data: Any) -> Frame:
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
        frame = nw.from_native(data, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        step = "rename or drop the columns that have the same name"
        raise UsageError(
            Problem("data", "must have columns with different names", str(error), step)
        ) from error
    except TypeError as error:
        raise UsageError(
            Problem(
                "data",
                "must be a dict of arrays, an eager frame (pandas, polars, pyarrow ...), or the "
                "path of a CSV or Parquet file",
                f"an object of type {type(data).__module__}.{type(data).__name__}",
                "for a lazy frame call .collect() first; for arrays pass score=, label=, group=",
            )
        ) from error
    return Frame(frame)
