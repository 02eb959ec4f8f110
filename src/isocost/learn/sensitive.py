"""What estimators are given: groups, ids and scores, in every form people have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from isocost.engines.arrays import tally_arrays
from isocost.engines.frames import Frame
from isocost.engines.problems import Problems
from isocost.engines.values import Encoded, GroupEncoder, column_array
from isocost.errors import DataError, IsocostError, Problem, UsageError, missing_column
from isocost.grid import Grid
from isocost.groups import Group, is_null, names_of, sort_groups
from isocost.measures.rates import require_both_labels, require_two_groups

__all__ = [
    "Groups",
    "GroupsFrom",
    "as_eager_frame",
    "as_fitted",
    "check_cells",
    "check_groups",
    "column_of",
    "group_codes",
    "groups_of",
    "need_labels",
    "read_all",
    "read_groups",
    "real_scores",
    "two_classes",
    "two_labels",
    "weights_of",
]

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


Floats = npt.NDArray[np.float64]


def read_all(*readers: Callable[[], Any]) -> list[Any]:
    """What each reader finds; everything that is wrong is told together."""
    found: list[Any] = []
    problems: list[Problem] = []
    for reader in readers:
        try:
            found.append(reader())
        except IsocostError as error:
            problems.extend(error.problems)
    if problems:
        raise DataError(problems)
    return found


def real_scores(scores: Any, probabilities: str = "") -> Floats:
    """Scores as floats, one per row: finite, and in [0, 1] if ``probabilities`` says who asks.

    Examples
    --------
    >>> real_scores([[-1], [2]])
    array([-1.,  2.])
    """
    values = _numbers("scores", scores)
    if not len(values):
        raise DataError(
            Problem(
                "scores", "must have at least one row", "0 rows", "check the source of the data"
            )
        )
    _refuse(
        "scores",
        "must be finite numbers",
        ~np.isfinite(values),
        values,
        "drop or fill rows without a score",
    )
    if probabilities:
        _refuse(
            "scores",
            f"must lie in [0, 1] for {probabilities}",
            (values < 0) | (values > 1),
            values,
            'pass the positive column of predict_proba, or use method="sigmoid" or "isotonic", '
            "which take any numbers",
        )
    return values


def weights_of(sample_weight: Any, rows: int) -> Floats:
    """Weights as floats, 1 if there are none; a row of weight 0 is one that is not there."""
    if sample_weight is None:
        return np.ones(rows)
    values = _numbers("sample_weight", sample_weight)
    _same_rows("sample_weight", len(values), rows)
    _refuse(
        "sample_weight",
        "must be finite and not negative",
        ~(np.isfinite(values) & (values >= 0)),
        values,
        "correct those weights or drop the rows",
    )
    if not values.any():
        raise DataError(
            Problem(
                "sample_weight",
                "must be positive somewhere",
                f"{rows:,} weights, all of them zero",
                "pass the weights of rows that count",
            )
        )
    return values


def two_labels(y: Any, rows: int) -> tuple[npt.NDArray[Any], Floats]:
    """The two values of the labels, sorted, and the labels as 0 and 1; the second is positive.

    Examples
    --------
    >>> two_labels(["yes", "no"], 2)
    (array(['no', 'yes'], dtype='<U3'), array([1., 0.]))
    """
    if y is None:
        raise UsageError(Problem("y", "must be given", "None", "pass the labels of the rows as y"))
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    values = column_array("y", values)
    _same_rows("y", len(values), rows)
    null = np.array([is_null(v) for v in values.tolist()]) if values.dtype.kind in "fO" else None
    if null is not None and null.any():
        _refuse("y", "must be known in every row", null, values, "drop rows without a label")
    try:
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError as error:
        step = "turn the labels into one type first"
        raise DataError(Problem("y", "must hold comparable values", str(error), step)) from error
    if len(classes) != 2:
        shown = ", ".join(map(repr, classes[:6].tolist())) + (" ..." if len(classes) > 6 else "")
        step = "pass rows of both labels; a comparison such as y == 'x' makes labels of two values"
        got = f"{len(classes)} class{'es' if len(classes) != 1 else ''}: {shown}"
        raise DataError(Problem("y", "must have two values", got, step))
    return classes, codes.astype(np.float64)


def _numbers(name: str, values: Any) -> Floats:
    try:
        plain = values.to_numpy() if hasattr(values, "to_numpy") else values
        array = np.asarray(plain, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            Problem(name, "must hold numbers", str(error), "pass an array of numbers")
        ) from error
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim != 1:
        step = "pass one column; for predict_proba its second one, predict_proba(X)[:, 1]"
        got = f"an array of shape {array.shape}"
        raise DataError(Problem(name, "must have one value per row", got, step))
    return array


def _same_rows(name: str, size: int, rows: int) -> None:
    if size != rows:
        got = f"{size:,} values for {rows:,} rows"
        step = "pass the values of the same rows, in the same order"
        raise DataError(Problem(name, "must have one value per row", got, step))


def _refuse(
    name: str, rule: str, bad: npt.NDArray[np.bool_], values: npt.NDArray[Any], step: str
) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        got = f"{len(rows):,} not so, such as {values[rows[0]]} in row {rows[0]}, counted from 0"
        raise DataError(Problem(name, rule, got, step))


def need_labels(y: Any) -> Any:
    """The labels, or an error if there are none."""
    if y is None:
        raise UsageError(
            Problem(
                "y",
                "must be given: fit requires y to be passed, but the target y is None",
                "None",
                "pass the labels of the rows",
            )
        )
    return y


def two_classes(y: Any, weight: Floats | None) -> tuple[npt.NDArray[Any], Ints]:
    """The two classes, and the labels as 0 and 1."""
    if not len(y):
        raise DataError(
            Problem("y", "must have at least one row", "0 rows", "check the source of the data")
        )
    values = np.asarray(y)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataError(
            Problem(
                "y",
                "must be known in every row",
                f"{int((~np.isfinite(values)).sum())} values that are NaN or infinite",
                "drop rows without a label",
            )
        )
    kind = type_of_target(y, input_name="y")
    if kind != "binary":
        raise DataError(
            Problem(
                "y",
                "must have two classes. Only binary classification is supported.",
                f"Unknown label type: {kind}",
                "make it two-valued first; a comparison such as y == 'x' does",
            )
        )
    classes, labels = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    counted = labels if weight is None else labels[weight > 0]
    if counted.min() == counted.max():
        raise DataError(
            Problem(
                "y",
                "must have two classes",
                f"one class, {classes.tolist()[counted[0]]!r}",
                "check the labels; without both there are no error rates to make equal",
            )
        )
    return classes, labels.astype(np.intp)


def check_cells(labels: Ints, groups: Groups, weight: Floats | None) -> None:
    """Refuse one group, and groups of one label, before anything is trained."""
    counted = np.ones(len(labels), dtype=bool) if weight is None else weight > 0
    kept = groups.take(counted).encoded
    level = np.full(int(counted.sum()), 0.5)
    tally = tally_arrays(level, labels[counted], [kept], grid=Grid(1))
    require_two_groups(tally)
    require_both_labels(tally)


def as_fitted(estimator: Any) -> Any:
    """The estimator, or an error if it has not been fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise UsageError(
            Problem(
                "estimator",
                'must be fitted when cv="prefit"',
                f"{type(estimator).__name__} that is not",
                "fit it on other data first, and put it into sklearn.frozen.FrozenEstimator where "
                "this estimator is cloned, as searches do; or use cv=5",
            )
        ) from error
    return estimator


_NEEDED = {"fpr": (0,), "fnr": (1,), "all": ()}

_CLASS = ("negative", "positive")


def group_codes(sensitive: Any, data: Any) -> tuple[Ints, list[Group]]:
    """The group of each row of ``data`` as a place in the sorted list of groups."""
    found = read_groups(data, groups_of(None, 0) if sensitive is None else sensitive)
    groups = sort_groups(found.names)
    rank = np.array([groups.index(group) for group in found.names], dtype=np.intp)
    return rank[found.codes], groups


def check_groups(
    codes: Ints, groups: list[Group], label: Ints, weight: Floats, kinds: tuple[str, ...]
) -> None:
    """Refuse one group, and groups without the rows that a constraint is about."""
    names = names_of(groups)
    if len(groups) < 2:
        raise DataError(
            Problem(
                "sensitive_features",
                "must hold at least two groups",
                f"only {names[groups[0]]!r}",
                "train without a constraint: sklearn.linear_model.LogisticRegression",
            )
        )
    mass = np.bincount(codes * 2 + label, weight, 2 * len(groups)).reshape(-1, 2)
    problems = []
    for kind in kinds:
        for value in _NEEDED[kind]:
            short = [names[g] for g, total in zip(groups, mass[:, value], strict=True) if not total]
            if short:
                problems.append(
                    Problem(
                        f'constraint "{kind}"',
                        f"needs {_CLASS[value]} rows in every group",
                        f"none in {', '.join(short)}",
                        "merge small groups, get more data, or choose another constraint",
                    )
                )
    if problems:
        raise DataError(problems)
