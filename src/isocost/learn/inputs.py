"""The inputs of the estimators: groups, scores, labels, weights and coins, in any usual form.

Rows without ids get a coin from their own values.  Equal rows have the same coin, scored alone or
in a batch, today or tomorrow, from an array, a frame or a sparse matrix.  That is reproducible, and
it treats equal rows alike; but where few different rows occur, the share that a rule withholds is
only right on average over distinct rows.  Then pass ids; or set ``random_state``, and the coin also
depends on the number of equal rows before the row.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Never, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples, column_or_1d

from isocost import coin
from isocost.checks import short
from isocost.engines.columns import Encoded, GroupEncoder, Problems, as_objects, column_array
from isocost.engines.frames import Frame
from isocost.errors import (
    DataError,
    IsocostError,
    IsocostWarning,
    Problem,
    UsageError,
    missing_column,
)
from isocost.groups import Group, is_null, sort_groups
from isocost.typing import Bools, Floats, Ints

GroupsFrom: TypeAlias = str | int | Sequence[str | int] | Callable[[Any], Any] | None

_NAME = "sensitive_features"


# Groups


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

    def sorted(self) -> Groups:
        """The same rows with sorted names, without those that no row has."""
        names = sort_groups(self.names[code] for code in np.unique(self.codes))
        rank = {name: i for i, name in enumerate(names)}
        ranks = np.array([rank.get(name, -1) for name in self.names], dtype=np.intp)
        return Groups(ranks[self.codes], tuple(names))

    @property
    def encoded(self) -> Encoded:
        """As the array kernel takes them."""
        return Encoded(self.codes, self.names)

    @property
    def values(self) -> npt.NDArray[Any]:
        """The name of each row's group; an array of objects, tuples where columns meet."""
        return as_objects(self.names)[self.codes]

    @property
    def features(self) -> npt.NDArray[Any]:
        """As other libraries take them: one column, or one for each element of a tuple."""
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
    sensitive_features : array, series, frame, dict of columns, str or list of str
        One value per row, or several; or the names of columns of X.
    groups_from : str, int, list of these, or callable
        Where the groups are when ``sensitive_features`` is None: columns of X by name or
        position, or a function that makes them from X.
    """
    rows = _num_samples(X)
    if sensitive_features is None:
        return _encode(_from_setting(X, groups_from), rows)
    if not _names_columns(X, sensitive_features, rows):
        return groups_of(sensitive_features, rows)
    names = [sensitive_features] if isinstance(sensitive_features, str) else sensitive_features
    return _encode([_column_of(X, name, _NAME) for name in names], rows)


def groups_of(sensitive_features: Any, rows: int) -> Groups:
    """The groups of a number of rows, from an array, a series or a frame.

    Examples
    --------
    >>> groups_of([("F", 30), ("M", 30), ("F", 30)], 3).names
    (('F', 30), ('M', 30))
    """
    return _encode(_columns_in(require_groups(sensitive_features)), rows)


def require_groups(sensitive_features: Any) -> Any:
    """Raise if no groups are given."""
    if sensitive_features is None:
        step = (
            f"pass {_NAME}=; in a pipeline or a search also request it with "
            f"set_fit_request({_NAME}=True) and the like"
        )
        raise UsageError(Problem(_NAME, "must be given: the group of each row", "None", step))
    return sensitive_features


def without_groups(X: Any, groups_from: GroupsFrom) -> Any:
    """The rows without the columns that hold their groups; all of X if a function makes them.

    Examples
    --------
    >>> without_groups(np.array([[1, 2, 3]]), [0, -1])
    array([[2]])
    """
    if groups_from is None or callable(groups_from):
        return X
    columns = [groups_from] if isinstance(groups_from, str | int) else list(groups_from)
    frame = as_eager_frame(X)
    array: Any = X if frame is not None or hasattr(X, "shape") else np.asarray(X)
    names = list(range(array.shape[1])) if frame is None else frame.columns
    # Where groups are passed beside X, it may lack the column.
    dropped = [
        names[one] if isinstance(one, int) else one
        for one in columns
        if not isinstance(one, int) or -len(names) <= one < len(names)
    ]
    if frame is not None:
        return frame.frame.drop(*dict.fromkeys(dropped), strict=False).to_native()
    return array[:, [name for name in names if name not in dropped]]


def _from_setting(X: Any, groups_from: GroupsFrom) -> list[Any]:
    if groups_from is None:
        rule = "must be given: the repair depends on the group"
        step = (
            f"pass {_NAME}=, in a pipeline or a search with sklearn.set_config("
            "enable_metadata_routing=True); or set groups_from= to the columns of X that hold "
            "the group, which needs no routing"
        )
        raise UsageError(Problem(_NAME, rule, "None", step))
    if callable(groups_from):
        return _columns_in(groups_from(X))
    columns = [groups_from] if isinstance(groups_from, str | int) else list(groups_from)
    return [_column_of(X, column, "groups_from") for column in columns]


def _names_columns(X: Any, features: Any, rows: int) -> bool:
    """Whether texts name columns of X rather than groups."""
    if isinstance(features, str):
        return True
    if not isinstance(features, list | tuple) or not all(isinstance(v, str) for v in features):
        return False
    frame = as_eager_frame(X)
    known = [] if frame is None else frame.columns
    count, are_columns = len(features), bool(features) and set(features) <= set(known)
    if are_columns and count == rows:
        rule = "must be either the groups or the names of columns, but could be both"
        got = f"{count} texts for {rows} rows, all of them names of columns"
        step = "pass the groups as an array, or the columns themselves"
        raise UsageError(Problem(_NAME, rule, got, step))
    # Texts that are neither one per row nor all columns: most likely a misspelled column.
    return are_columns or (frame is not None and count != rows and count <= len(known))


def as_eager_frame(data: Any) -> Frame | None:
    """Data as a frame, or None when they are something else."""
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    return Frame(frame) if isinstance(frame, nw.DataFrame) else None


def _column_of(X: Any, column: str | int, role: str) -> Any:
    """A column of X by name or position."""
    frame = as_eager_frame(X)
    if frame is not None:
        names = frame.columns
        if isinstance(column, int):
            _check_position(column, len(names), role)
            column = names[column]
        if column not in names:
            raise UsageError(missing_column(role, column, list(map(str, names))))
        return frame.groups(column)
    if isinstance(column, str):
        rule, got = "may name a column only if X is a frame", f"X of type {type(X).__name__}"
        step = "pass the groups themselves, or X as a frame with named columns"
        raise UsageError(Problem(role, rule, f"{column!r}, and {got}", step))
    array = X if hasattr(X, "shape") else np.asarray(X)
    _check_position(column, array.shape[1] if len(array.shape) == 2 else 0, role)
    values = array[:, [column]]
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values).ravel()


def _check_position(position: int, columns: int, role: str) -> None:
    if not -columns <= position < columns:
        rule, got = "must be the position of a column of X", f"{position}, and X has {columns}"
        raise UsageError(Problem(role, rule, f"{got} columns", "count columns from 0"))


def warn_of_scaled(groups: Groups) -> None:
    """Warn if groups are numbers of mean 0 and deviation 1, as a scaler makes them."""
    names = groups.names
    if not all(isinstance(name, float) and not name.is_integer() for name in names):
        return
    values = np.array(names, dtype=np.float64)[groups.codes]
    if abs(values.mean()) < 0.1 and abs(values.std() - 1.0) < 0.1 and len(names) > 1:
        warnings.warn(
            f"The groups are numbers such as {names[0]:.3g} and {names[1]:.3g}, with mean 0 and "
            "standard deviation 1: it seems that the group column was scaled, and other rows would "
            f"give other groups. Pass {_NAME}= from before the scaler, or leave the column out of "
            "it, for example with a ColumnTransformer.",
            IsocostWarning,
            stacklevel=4,
        )


def _columns_in(features: Any) -> list[Any]:
    """The columns of an array, a series, a frame or a dict of columns."""
    if isinstance(features, Mapping):
        if not features:
            rule, step = "must have at least one column", "pass the groups of the rows"
            raise UsageError(Problem(_NAME, rule, "an empty dict", step))
        return [column for one in features.values() for column in _columns_in(one)]
    native = nw.from_native(features, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        native = native.alias("group").to_frame()
    if isinstance(native, nw.DataFrame):
        frame = Frame(native)
        return [frame.groups(name) for name in frame.columns]
    array = features if isinstance(features, np.ndarray) else _plain_array(features)
    return list(array.T) if array.ndim == 2 else [array]


def _plain_array(features: Any) -> Any:
    if hasattr(features, "__array__") or not isinstance(features, list | tuple):
        return np.asarray(features)
    if features and isinstance(features[0], list | tuple | np.ndarray):
        return np.array(features, dtype=object)
    return column_array(_NAME, features)


def _encode(columns: list[Any], rows: int) -> Groups:
    arrays = [column_array(_NAME, column) for column in columns]
    sizes = {len(array) for array in arrays}
    if sizes != {rows}:
        _refuse_length(_NAME, ", ".join(map(str, sorted(sizes))) or "no", rows)
    encoder, problems = GroupEncoder(arrays, None), Problems()
    codes = encoder.encode([array[:] for array in arrays], problems, 0)
    if problems.counts:
        count, first = problems.counts["group", "null"]
        got = f"{count:,} null{first}, of {rows:,} rows, counted from 0"
        step = 'drop those rows, or fill them with a value of their own such as "unknown"'
        raise DataError(Problem(_NAME, "must be known in every row", got, step))
    return Groups(np.asarray(codes, dtype=np.intp), tuple(encoder.groups))


# Scores, weights and labels


def read_all(*readers: Callable[[], Any], error: type[IsocostError] = DataError) -> list[Any]:
    """What each reader returns; all their problems are raised together."""
    values: list[Any] = []
    problems: list[Problem] = []
    for reader in readers:
        try:
            values.append(reader())
        except IsocostError as problem:
            problems.extend(problem.problems)
    if problems:
        raise error(problems)
    return values


def real_scores(scores: Any, probabilities: str = "") -> Floats:
    """Scores as floats, one per row: finite, and in [0, 1] if ``probabilities`` says what for.

    Examples
    --------
    >>> real_scores([[-1], [2]])
    array([-1.,  2.])
    """
    values = _numbers("scores", scores)
    _require_rows("scores", len(values))
    rule, step = "must be finite numbers", "drop or fill rows without a score"
    _refuse("scores", rule, ~np.isfinite(values), values, step)
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
    """Weights as floats, 1 by default; a row of weight 0 counts as absent."""
    if sample_weight is None:
        return np.ones(rows)
    name = "sample_weight"
    values = _numbers(name, sample_weight)
    if len(values) != rows:
        _refuse_length(name, f"{len(values):,}", rows)
    rule, step = "must be finite and not negative", "correct those weights or drop the rows"
    _refuse(name, rule, ~(np.isfinite(values) & (values >= 0)), values, step)
    if not values.any():
        rule, step = "must be positive in at least one row", "pass the weights of rows that count"
        raise DataError(Problem(name, rule, f"{rows:,} weights, all of them zero", step))
    return values


def positive_labels(
    classes: npt.NDArray[Any], codes: Ints, pos_label: Any, stacklevel: int = 3
) -> tuple[Any, Ints]:
    """The positive class, and the labels as 1 where they are of it.

    Without ``pos_label`` it is the last in sorted order.  That is said in a warning, unless the
    labels are 0 and 1, -1 and 1, or boolean, for which nobody expects anything else.

    Examples
    --------
    >>> positive, labels = positive_labels(np.array(["bad", "good"]), np.array([0, 1, 1]), "bad")
    >>> str(positive), labels.tolist()
    ('bad', [1, 0, 0])
    """
    listed = classes.tolist()
    if pos_label is None:
        if listed not in ([0, 1], [-1, 1]):
            low, high = listed
            warnings.warn(
                f"y has the labels {low!r} and {high!r}, and {high!r} is taken as positive because "
                f"it is the last in sorted order; pos_label={low!r} or pos_label={high!r} says "
                "which it is.",
                IsocostWarning,
                stacklevel=stacklevel + 1,
            )
        return classes[1], codes
    if isinstance(pos_label, np.generic):
        pos_label = pos_label.item()
    if not isinstance(pos_label, Hashable) or pos_label not in listed:
        rule, got = "must be one of the labels", f"{pos_label!r}, and y has {listed[0]!r} and "
        step = "pass one of these, with the same type"
        raise UsageError(Problem("pos_label", rule, got + repr(listed[1]), step))
    index = listed.index(pos_label)
    return classes[index], (codes == index).astype(np.intp)


def in_order(positive: Floats, classes: npt.NDArray[Any], pos_label: Any) -> Floats:
    """Probabilities of the positive class as two columns, in the order of the classes."""
    columns = [1.0 - positive, positive]
    return np.column_stack(columns if classes[1] == pos_label else columns[::-1])


def log_of(probabilities: Floats) -> Floats:
    """The logarithm; minus infinity for 0, without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probabilities))


def _numbers(name: str, values: Any) -> Floats:
    try:
        plain = values.to_numpy() if hasattr(values, "to_numpy") else values
        array = np.asarray(plain, dtype=np.float64)
    except (TypeError, ValueError) as error:
        step = "pass an array of numbers"
        raise DataError(Problem(name, "must hold numbers", str(error), step)) from error
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim != 1:
        step = "pass one column; for predict_proba its second one, predict_proba(X)[:, 1]"
        got = f"an array of shape {array.shape}"
        raise DataError(Problem(name, "must have one value per row", got, step))
    return array


def two_classes(
    y: Any, rows: int | None = None, weight: Floats | None = None
) -> tuple[npt.NDArray[Any], Ints]:
    """The two classes, sorted, and the labels as 0 and 1, as scikit-learn's classifiers read them.

    Examples
    --------
    >>> two_classes(["yes", "no"])
    (array(['no', 'yes'], dtype='<U3'), array([1, 0]))
    """
    if y is None:
        # scikit-learn's checks look for these words.
        rule = "must be given: fit requires y to be passed, but the target y is None"
        raise UsageError(Problem("y", rule, "None", "pass the labels of the rows"))
    count = _num_samples(y)
    _require_rows("y", count)
    if rows is not None and count != rows:
        _refuse_length("y", f"{count:,}", rows)
    values = np.asarray(y)
    unknown = np.zeros(values.shape, dtype=bool)
    if values.dtype.kind == "f":
        unknown = ~np.isfinite(values)
    elif values.dtype.kind == "O":
        unknown = np.array([is_null(value) for value in values.ravel().tolist()])
    _refuse("y", "must be known in every row", unknown, values, "drop rows without a label")
    if values.dtype.kind == "O":
        # Objects of one type are as good as an array of it.
        y = np.array(values.tolist())
    kind = type_of_target(y, input_name="y")
    if kind != "binary":
        # scikit-learn's checks look for these words.
        rule = "must have two classes. Only binary classification is supported."
        step = "make it two-valued first; a comparison such as y == 'x' does"
        raise DataError(Problem("y", rule, f"Unknown label type: {kind}", step))
    classes, labels = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    counted = labels if weight is None else labels[weight > 0]
    if counted.min() == counted.max():
        rule = "must have two classes" + (
            " in rows of positive weight" if weight is not None else ""
        )
        got = f"one class, {classes.tolist()[counted[0]]!r}"
        step = "check the labels; without both there are no error rates to make equal"
        raise DataError(Problem("y", rule, got, step))
    return classes, labels.astype(np.intp)


def _require_rows(name: str, rows: int) -> None:
    if not rows:
        rule, step = "must have at least one row", "check the source of the data"
        raise DataError(Problem(name, rule, "0 rows", step))


def _refuse_length(name: str, count: str, rows: int) -> Never:
    step = "pass the values of the same rows, in the same order"
    got = f"{count} values for {rows:,} rows"
    raise DataError(Problem(name, "must have one value per row", got, step))


def _refuse(name: str, rule: str, bad: Bools, values: npt.NDArray[Any], step: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        first = f"{values.flat[rows[0]]} in row {rows[0]}, counted from 0"
        many = f"{len(rows):,} values are not" if len(rows) > 1 else "1 value is not"
        raise DataError(Problem(name, rule, f"{many}, for example {first}", step))


Words = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

_NAN = np.uint64(0x7FC00000)

_TEXT = np.uint64(1 << 63)

_CHUNK = 2**15


def check_random(random_state: Any) -> None:
    """Raise unless the value is a seed that NumPy takes, a RandomState or None."""
    is_seed = isinstance(random_state, Integral) and 0 <= int(random_state) < 2**32
    if not is_seed and not isinstance(random_state, np.random.RandomState | None):
        rule = f"must be a whole number from 0 to {2**32 - 1}, a NumPy RandomState or None"
        raise UsageError(Problem("random_state", rule, short(random_state), "use 0"))


def coins_of_rows(X: Any, ids: Any, salt: str, random_state: Any) -> npt.NDArray[np.uint64]:
    """The coin of each row: by its id, or without ids by its values.

    Parameters
    ----------
    X : array, frame or sparse matrix
        The rows.
    ids : array of whole numbers or texts, or None
        As in :meth:`isocost.Rule.apply`.
    salt : str
        Of the rule.
    random_state : int, RandomState instance or None
        If set, each of several equal rows gets a coin of its own, the same at every call.
        An instance throws other coins at every call.
    """
    if ids is not None:
        rows = _num_samples(X)
        if isinstance(ids, str) or len(ids) != rows:
            got = repr(ids) if isinstance(ids, str) else f"{len(ids)} ids for {rows} rows"
            rule, step = "must have one value per row of X", "pass the ids of the same rows"
            raise UsageError(Problem("ids", rule, got, step))
        return coin.coins(ids.to_numpy() if hasattr(ids, "to_numpy") else ids, salt)
    hashes = row_hashes(X)
    if random_state is not None:
        check_random(random_state)
        seed = random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        # Twice, so that neither the seed nor the count can undo what the row adds.
        hashes = _mix(hashes + _mix(_repeats(hashes) + np.uint64(1), int(seed)), 0)
    return coin.coins(hashes, salt)


def _repeats(hashes: Words) -> Words:
    """The number of equal rows before each row."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    first = np.flatnonzero(starts)
    counts = np.empty(len(hashes), dtype=np.uint64)
    counts[order] = np.arange(len(hashes)) - first[np.cumsum(starts) - 1]
    return counts


def row_hashes(X: Any) -> Words:
    """A whole number below 2^64 for each row that depends on its values and their columns.

    sum over columns j of mix(value_j, j) mod 2^64, where a value of 0 adds nothing

    A number is taken as a 32-bit float, so that rounding in the last digits, which may differ
    between a batch and a row alone, does not throw another coin; 0.0 and -0.0 are one value, and
    so is every NaN or null.  Anything else is taken as text.  A sum, so that a sparse row is
    the same as the dense one.

    Examples
    --------
    >>> row_hashes(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -0.0]])).tolist()
    [18260225238054474293, 14100209150436768136, 18260225238054474293]
    """
    if hasattr(X, "tocsr"):
        return _sparse_hashes(X.tocsr())
    frame = as_eager_frame(X)
    if frame is not None:
        columns = [_frame_column(frame.frame.get_column(name)) for name in frame.columns]
        return _sum_over(columns, len(frame.frame))
    array = np.asarray(X)
    if array.dtype.kind not in "biuf":
        array = array.astype(object)
    if array.ndim == 1:
        array = array.reshape(len(array), -1)
    if array.dtype.kind == "O":
        return _sum_over([_words(array[:, j]) for j in range(array.shape[1])], len(array))
    return _dense_hashes(array)


def _mix(words: Words, column: Any) -> Words:
    """The finalizer of splitmix64; 0 stays 0."""
    mixed = words + (np.atleast_1d(column).astype(np.uint64) + np.uint64(1)) * _STEP
    mixed ^= mixed >> np.uint64(30)
    mixed *= _MIX[0]
    mixed ^= mixed >> np.uint64(27)
    mixed *= _MIX[1]
    mixed ^= mixed >> np.uint64(31)
    mixed[words == 0] = 0
    return mixed


def _number_words(values: npt.NDArray[Any]) -> Words:
    with np.errstate(over="ignore"):
        # Adding 0 turns -0.0 into 0.0.
        single = values.astype(np.float32) + np.float32(0)
    words = single.view(np.uint32).astype(np.uint64)
    words[np.isnan(single)] = _NAN
    return words


def _dense_hashes(array: npt.NDArray[Any]) -> Words:
    out = np.empty(len(array), dtype=np.uint64)
    columns = np.arange(array.shape[1], dtype=np.uint64)
    for start in range(0, len(array), _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = _mix(_number_words(array[part]), columns).sum(axis=1, dtype=np.uint64)
    return out


def _sparse_hashes(matrix: Any) -> Words:
    matrix.sum_duplicates()
    mixed = _mix(_number_words(np.asarray(matrix.data)), matrix.indices)
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    sums: Words = total[matrix.indptr[1:]] - total[matrix.indptr[:-1]]
    return sums


def _sum_over(columns: list[Words], rows: int) -> Words:
    out = np.zeros(rows, dtype=np.uint64)
    for column, words in enumerate(columns):
        out += _mix(words, column)
    return out


def _frame_column(series: Any) -> Words:
    """Numbers as numbers, whatever their type in the frame; the rest as text."""
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return _number_words(np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64))
    return _words(as_objects(series.to_list()))


def _words(values: npt.NDArray[Any]) -> Words:
    """Each value of a column of objects as a word."""
    # 1, 1.0 and True are equal, so the type is part of the key.
    keys = [(type(value), value) for value in values.tolist()]
    word = {key: _word(key[1]) for key in dict.fromkeys(keys)}
    return np.fromiter((word[key] for key in keys), np.uint64, count=len(keys))


def _word(value: Any) -> Any:
    if is_null(value):
        return _NAN
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return _number_words(np.array([float(value)]))[0]
    digest = hashlib.md5(str(value).encode(), usedforsecurity=False).digest()
    # The highest bit keeps texts apart from numbers, which have 32 bits.
    return np.uint64(int.from_bytes(digest[:8])) | _TEXT
