"""Who is in which group: sensitive features in any form, read once, as codes.

Groups come as an array, a series, a frame, or as the names of columns of X; several columns make
a group of each combination that occurs, as in :func:`isocost.tally`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from isocost.engines.encode import Encoded, GroupEncoder, column_array
from isocost.engines.frames import Frame
from isocost.engines.problems import Problems
from isocost.errors import DataError, Problem, UsageError, missing_column
from isocost.groups import Group

__all__ = ["Groups", "GroupsFrom", "as_eager_frame", "column_of", "groups_of", "read_groups"]

Ints = npt.NDArray[np.intp]
GroupsFrom: TypeAlias = str | int | Sequence[str | int] | Callable[[Any], Any] | None

_NAME = "sensitive_features"


@dataclass(frozen=True)
class Groups:
    """The group of each row: codes into ``names``.

    Examples
    --------
    >>> groups = read_groups(np.zeros((3, 1)), ["a", "b", "a"])
    >>> groups.names, groups.codes.tolist()
    (('a', 'b'), [0, 1, 0])
    """

    codes: Ints
    names: tuple[Group, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Any) -> Groups:
        """Only these rows; every name stays."""
        return Groups(self.codes[rows], self.names)

    @property
    def encoded(self) -> Encoded:
        """As the array kernel takes them."""
        return Encoded(self.codes, self.names)

    @property
    def values(self) -> npt.NDArray[Any]:
        """The name of each row's group; an array of objects, tuples where columns meet."""
        named = np.empty(len(self.names), dtype=object)
        named[:] = self.names
        return named[self.codes]

    @property
    def features(self) -> npt.NDArray[Any]:
        """As other libraries take them: one column, or one for each part of a tuple."""
        values = self.values
        if values.size and isinstance(values[0], tuple):
            return np.array(values.tolist(), dtype=object)
        kinds = {type(name) for name in self.names}
        return values if len(kinds) > 1 else np.array(values.tolist())


def read_groups(X: Any, sensitive_features: Any, groups_from: GroupsFrom = None) -> Groups:
    """The groups of the rows of X.

    Parameters
    ----------
    X : array, frame or sparse matrix
        The rows.
    sensitive_features : array, series, frame, str or list of str
        One value per row, or several; or the names of columns of X.
    groups_from : str, int, list of these, or callable
        Where the groups are when ``sensitive_features`` is None: columns of X by name or
        position, or a function that makes them from X.
    """
    rows = _rows_of(X)
    if sensitive_features is None:
        return _encode(_from_setting(X, groups_from), rows)
    if not _names_columns(X, sensitive_features, rows):
        return groups_of(sensitive_features, rows)
    names = [sensitive_features] if isinstance(sensitive_features, str) else sensitive_features
    return _encode([column_of(X, name, _NAME) for name in names], rows)


def groups_of(sensitive_features: Any, rows: int) -> Groups:
    """The groups of so many rows, from an array, a series or a frame.

    Examples
    --------
    >>> groups_of([("F", 30), ("M", 30), ("F", 30)], 3).names
    (('F', 30), ('M', 30))
    """
    if sensitive_features is None:
        raise UsageError(
            Problem(
                _NAME,
                "must be given: the group of each row",
                "None",
                f"pass {_NAME}=; in a pipeline or a search also request it with "
                f"set_fit_request({_NAME}=True) and the like",
            )
        )
    return _encode(_columns_in(sensitive_features), rows)


def _rows_of(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X if hasattr(X, "__len__") else np.asarray(X))


def _from_setting(X: Any, groups_from: GroupsFrom) -> list[Any]:
    if groups_from is None:
        raise UsageError(
            Problem(
                _NAME,
                "must be given: the repair depends on the group",
                "None",
                f"pass {_NAME}=, in a pipeline or a search with sklearn.set_config("
                "enable_metadata_routing=True); or set groups_from= to the columns of X that hold "
                "the group, which needs no routing",
            )
        )
    if callable(groups_from):
        return _columns_in(groups_from(X))
    places = [groups_from] if isinstance(groups_from, str | int) else list(groups_from)
    return [column_of(X, place, "groups_from") for place in places]


def _names_columns(X: Any, given: Any, rows: int) -> bool:
    """Whether texts name columns of X rather than groups."""
    if isinstance(given, str):
        return True
    if not isinstance(given, list | tuple) or not all(isinstance(v, str) for v in given):
        return False
    frame = as_eager_frame(X)
    known = [] if frame is None else frame.columns
    are_columns = bool(given) and all(name in known for name in given)
    if are_columns and len(given) == rows:
        raise UsageError(
            Problem(
                _NAME,
                "must be the groups or the names of columns, not what could be both",
                f"{len(given)} texts for {rows} rows, all of them names of columns",
                "pass the groups as an array, or the columns themselves",
            )
        )
    # Texts that are neither one per row nor all columns: a misspelt column, most likely.
    return are_columns or (frame is not None and len(given) != rows and len(given) <= len(known))


def as_eager_frame(data: Any) -> Frame | None:
    """Data as a frame, or None when they are something else."""
    import narwhals as nw

    found = nw.from_native(data, eager_only=True, pass_through=True)
    return Frame(found) if isinstance(found, nw.DataFrame) else None


def column_of(X: Any, place: str | int, role: str) -> Any:
    """A column of X by name or position."""
    frame = as_eager_frame(X)
    if frame is not None:
        names = frame.columns
        if isinstance(place, int):
            _check_position(place, len(names), role)
            place = names[place]
        if place not in names:
            raise UsageError(missing_column(role, place, list(map(str, names))))
        return frame.groups(place)
    if isinstance(place, str):
        raise UsageError(
            Problem(
                role,
                "may name a column only if X is a frame",
                f"{place!r}, and X is of type {type(X).__name__}",
                "pass the groups themselves, or X as a frame with named columns",
            )
        )
    array = X if hasattr(X, "shape") else np.asarray(X)
    _check_position(place, array.shape[1] if len(array.shape) == 2 else 0, role)
    column = array[:, [place]]
    return np.asarray(column.toarray() if hasattr(column, "toarray") else column).ravel()


def _check_position(place: int, columns: int, role: str) -> None:
    if not -columns <= place < columns:
        raise UsageError(
            Problem(
                role,
                "must be the position of a column of X",
                f"{place}, and X has {columns} columns",
                "count columns from 0",
            )
        )


def _columns_in(given: Any) -> list[Any]:
    """The columns of an array, a series or a frame."""
    import narwhals as nw

    found = nw.from_native(given, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(found, nw.Series):
        found = found.alias("group").to_frame()
    if isinstance(found, nw.DataFrame):
        frame = Frame(found)
        return [frame.groups(name) for name in frame.columns]
    array = given if isinstance(given, np.ndarray) else _plain_array(given)
    if array.ndim == 2:
        return [array[:, place] for place in range(array.shape[1])]
    return [array]


def _plain_array(given: Any) -> Any:
    if hasattr(given, "__array__") or not isinstance(given, list | tuple):
        return np.asarray(given)
    if given and isinstance(given[0], list | tuple | np.ndarray):
        return np.array(given, dtype=object)
    return column_array(_NAME, given)


def _check_lengths(columns: list[Any], rows: int) -> None:
    sizes = {len(column) for column in columns}
    if sizes != {rows}:
        got = ", ".join(map(str, sorted(sizes))) or "no"
        raise DataError(
            Problem(
                _NAME,
                "must have one value per row of X",
                f"{got} values for {rows:,} rows",
                "pass the groups of the same rows, in the same order",
            )
        )


def _encode(columns: list[Any], rows: int) -> Groups:
    arrays = [column_array(_NAME, column) for column in columns]
    _check_lengths(arrays, rows)
    encoder, problems = GroupEncoder(arrays, None), Problems()
    codes = encoder.encode([array[:] for array in arrays], problems, 0)
    if problems.found:
        count, first = problems.found["group", "null"]
        raise DataError(
            Problem(
                _NAME,
                "must be known in every row",
                f"{count:,} null{first}, of {rows:,} rows, counted from 0",
                'drop those rows, or fill them with a name of their own such as "unknown"',
            )
        )
    return Groups(np.asarray(codes, dtype=np.intp), tuple(encoder.groups))
