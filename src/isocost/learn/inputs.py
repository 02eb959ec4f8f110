"""The inputs of the estimators: groups, scores, labels, weights and coins, in any usual form.

Rows without ids get a coin from their own values.  Equal rows have the same coin, scored alone or
in a batch, today or tomorrow, from an array, a frame or a sparse matrix.  That is reproducible, and
it treats equal rows alike; but where few different rows occur, the share that a rule withholds is
only right on average over distinct rows.  Then pass ids; or set ``random_state``, and the coin also
depends on the number of equal rows before the row.

Scores of an estimator are ``predict_proba`` of the positive class, else ``decision_function``.
fairlearn's reductions and its ThresholdOptimizer have neither; their ``_pmf_predict`` is used
instead, the probability of a positive decision.
"""

from __future__ import annotations

import hashlib
import inspect
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples, column_or_1d

from isocost import coin
from isocost.checks import short
from isocost.engines.columns import (
    Encoded,
    GroupEncoder,
    Problems,
    as_objects,
    column_array,
    null_rows,
)
from isocost.engines.frames import Frame
from isocost.errors import DataError, IsocostWarning, Problem, UsageError, missing_column
from isocost.groups import is_null, sort_groups
from isocost.typing import Bools, Floats, Ints

GroupsFrom: TypeAlias = str | int | Sequence[str | int] | Callable[[Any], Any] | None

_NAME = "sensitive_features"


# Groups


def taken(groups: Encoded, rows: Any) -> Encoded:
    """The groups of some rows."""
    return Encoded(groups.codes[rows], groups.values)


def features_of(groups: Encoded) -> npt.NDArray[Any]:
    """Groups as other libraries take them: one column, or one for each element of a tuple."""
    values = as_objects(groups.values)[groups.codes]
    if values.size and isinstance(values[0], tuple):
        return np.array(values.tolist(), dtype=object)
    kinds = {type(name) for name in groups.values}
    return values if len(kinds) > 1 else np.array(values.tolist())


def read_groups(X: Any, sensitive_features: Any, groups_from: GroupsFrom = None) -> Encoded:
    """The groups of the rows of X, whose values are sorted.

    ``sensitive_features`` has one value or several per row, or names columns of X.  If it is None,
    ``groups_from`` says where groups are: in columns of X by name or position, or it is a function
    that makes them from X.

    Examples
    --------
    >>> groups = read_groups(np.zeros((3, 1)), ["a", "b", "a"])
    >>> groups.values, groups.codes.tolist()
    (['a', 'b'], [0, 1, 0])
    """
    rows, named, role = _num_samples(X), sensitive_features, _NAME
    if sensitive_features is None and groups_from is not None:
        if callable(groups_from):
            return groups_of(groups_from(X), rows)
        named, role = groups_from, "groups_from"
    elif not _names_columns(X, sensitive_features, rows):
        return groups_of(sensitive_features, rows)
    return _encode([_column_of(X, column, role) for column in _listed(named)], rows)


def groups_of(sensitive_features: Any, rows: int) -> Encoded:
    """The groups of a number of rows, from an array, a series, a frame or a dict of columns."""
    if sensitive_features is None:
        step = (
            f"pass {_NAME}=; in a pipeline or a search this needs sklearn.set_config("
            "enable_metadata_routing=True) and a request such as "
            f"set_fit_request({_NAME}=True); or set groups_from=, where there is this parameter, "
            "to the columns of X that hold the group, which needs no routing"
        )
        raise UsageError(Problem(_NAME, "must be given: the group of each row", "None", step))
    return _encode(_columns_in(sensitive_features), rows)


def without_groups(X: Any, groups_from: GroupsFrom) -> Any:
    """The rows without the columns that hold their groups; all of X if a function makes them."""
    if groups_from is None or callable(groups_from):
        return X
    frame = _as_eager_frame(X)
    array: Any = X if frame is not None or hasattr(X, "shape") else np.asarray(X)
    names = list(range(array.shape[1])) if frame is None else frame.columns
    # Where groups are passed beside X, it may lack the column.
    dropped = [
        names[one] if isinstance(one, int) else one
        for one in _listed(groups_from)
        if not isinstance(one, int) or -len(names) <= one < len(names)
    ]
    if frame is not None:
        return frame.frame.drop(*dict.fromkeys(dropped), strict=False).to_native()
    return array[:, [name for name in names if name not in dropped]]


def _listed(columns: Any) -> list[str | int]:
    return [columns] if isinstance(columns, str | int) else list(columns)


def _names_columns(X: Any, features: Any, rows: int) -> bool:
    """True if texts name columns of X rather than groups."""
    if isinstance(features, str):
        return True
    if not isinstance(features, list | tuple) or not all(isinstance(v, str) for v in features):
        return False
    frame = _as_eager_frame(X)
    known = [] if frame is None else frame.columns
    count, are_columns = len(features), bool(features) and set(features) <= set(known)
    if are_columns and count == rows:
        rule = "must be either the groups or the names of columns, but could be both"
        got = f"{count} texts for {rows} rows, all of them names of columns"
        step = "pass the groups as an array, or the columns themselves"
        raise UsageError(Problem(_NAME, rule, got, step))
    # Texts that are neither one per row nor all columns: most likely a misspelled column.
    return are_columns or (frame is not None and count != rows and count <= len(known))


def _as_eager_frame(data: Any) -> Frame | None:
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    return Frame(frame) if isinstance(frame, nw.DataFrame) else None


def _column_of(X: Any, column: str | int, role: str) -> Any:
    """A column of X by name or position."""
    frame = _as_eager_frame(X)
    array = X if frame is not None or hasattr(X, "shape") else np.asarray(X)
    if isinstance(column, int):
        count = array.shape[1] if len(array.shape) == 2 else 0
        if not -count <= column < count:
            rule, got = "must be the position of a column of X", f"{column}, and X has {count}"
            raise UsageError(Problem(role, rule, f"{got} columns", "count columns from 0"))
        if frame is not None:
            return frame.groups(frame.columns[column])
        values = array[:, [column]]
        return np.asarray(values.toarray() if hasattr(values, "toarray") else values).ravel()
    if frame is None:
        rule, got = "may name a column only if X is a frame", f"X of type {type(X).__name__}"
        step = "pass the groups themselves, or X as a frame with named columns"
        raise UsageError(Problem(role, rule, f"{column!r}, and {got}", step))
    if column not in frame.columns:
        raise UsageError(missing_column(role, column, list(map(str, frame.columns))))
    return frame.groups(column)


def warn_of_scaled(groups: Encoded) -> None:
    """Warn if groups are numbers of mean 0 and deviation 1, as a scaler makes them."""
    names = [name for name in groups.values if isinstance(name, float) and not name.is_integer()]
    if names != groups.values:
        return
    values = np.array(names)[groups.codes]
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
    if isinstance(features, list | tuple):
        nested = features and isinstance(features[0], list | tuple | np.ndarray)
        array = np.array(features, dtype=object) if nested else column_array(_NAME, features)
    else:
        # Not of an array: masked ones would lose their mask.
        array = features if isinstance(features, np.ndarray) else np.asarray(features)
    return list(array.T) if array.ndim == 2 else [array]


def _encode(columns: list[Any], rows: int) -> Encoded:
    arrays = [column_array(_NAME, column) for column in columns]
    for count in {len(array) for array in arrays} or {0}:
        _check_length(_NAME, count, rows)
    encoder, problems = GroupEncoder(arrays, None), Problems()
    codes = encoder.encode([array[:] for array in arrays], problems, 0)
    if problems.counts:
        count, first = problems.counts["group", "null"]
        got = f"{count:,} null{first}, of {rows:,} rows, counted from 0"
        step = 'drop those rows, or fill them with a value of their own such as "unknown"'
        raise DataError(Problem(_NAME, "must be known in every row", got, step))
    names = sort_groups(encoder.groups)
    rank = {name: code for code, name in enumerate(names)}
    ranks = np.array([rank[group] for group in encoder.groups], dtype=np.intp)
    return Encoded(ranks[codes], names)


# Scores, weights and labels


def real_scores(scores: Any, probabilities: str = "") -> Floats:
    """Scores as floats, one per row: finite, and in [0, 1] if ``probabilities`` says what for."""
    values = _numbers("scores", scores)
    _check_length("scores", len(values), len(values))
    rule, step = "must be finite numbers", "drop or fill rows without a score"
    _refuse("scores", rule, ~np.isfinite(values), values, step)
    if probabilities:
        rule = f"must lie in [0, 1] for {probabilities}"
        step = 'pass the positive column of predict_proba, or use method="sigmoid" or "isotonic", '
        step += "which take any numbers"
        _refuse("scores", rule, (values < 0) | (values > 1), values, step)
    return values


def weights_of(sample_weight: Any, rows: int) -> Floats:
    """Weights as floats, 1 by default; a row of weight 0 counts as absent."""
    if sample_weight is None:
        return np.ones(rows)
    name = "sample_weight"
    values = _numbers(name, sample_weight)
    _check_length(name, len(values), rows)
    rule, step = "must be finite and not negative", "correct those weights or drop the rows"
    _refuse(name, rule, ~(np.isfinite(values) & (values >= 0)), values, step)
    if not values.any():
        rule, step = "must be positive in at least one row", "pass the weights of rows that count"
        raise DataError(Problem(name, rule, f"{rows:,} weights, all of them zero", step))
    return values


def read_labels(estimator: Any, y: Any, weight: Floats) -> Ints:
    """The labels, 1 where they are positive; sets ``classes_`` and ``pos_label_`` of the estimator.

    Without ``pos_label`` the last class in sorted order is positive.  That is said in a warning,
    unless the labels are 0 and 1, -1 and 1, or boolean, for which nobody expects anything else.
    """
    if y is None:
        # scikit-learn's checks look for these words.
        rule = "must be given: fit requires y to be passed, but the target y is None"
        raise UsageError(Problem("y", rule, "None", "pass the labels of the rows"))
    _check_length("y", _num_samples(y), len(weight))
    values = np.asarray(y)
    is_float = values.dtype.kind == "f"
    unknown = ~np.isfinite(values) if is_float else null_rows(values.ravel())
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
    classes, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    listed, counted = classes.tolist(), np.unique(codes[weight > 0])
    if len(counted) < 2:
        rule = "must have two classes" + (" in rows of positive weight" if len(listed) > 1 else "")
        step = "check the labels; without both there are no error rates to make equal"
        raise DataError(Problem("y", rule, f"one class, {listed[counted[0]]!r}", step))
    positive = estimator.pos_label
    if positive is None:
        low, positive = listed
        if listed not in ([0, 1], [-1, 1]):
            warnings.warn(
                f"y has the labels {low!r} and {positive!r}, and {positive!r} is taken as positive "
                f"because it is the last in sorted order; pos_label={low!r} or "
                f"pos_label={positive!r} says which it is.",
                IsocostWarning,
                stacklevel=3,
            )
    if isinstance(positive, np.generic):
        positive = positive.item()
    if not isinstance(positive, Hashable) or positive not in listed:
        rule, got = "must be one of the labels", f"{positive!r}, and y has {listed[0]!r} and "
        step = "pass one of these, with the same type"
        raise UsageError(Problem("pos_label", rule, got + repr(listed[1]), step))
    index = listed.index(positive)
    estimator.classes_, estimator.pos_label_ = classes, classes[index]
    return np.asarray(codes == index, dtype=np.intp)


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
        return np.asarray(column_or_1d(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        rule = "must have one number per row"
        step = "pass one column of numbers; for predict_proba its second one, "
        step += "predict_proba(X)[:, 1]"
        raise DataError(Problem(name, rule, str(error), step)) from error


def _check_length(name: str, count: int, rows: int) -> None:
    if not rows:
        rule, step = "must have at least one row", "check the source of the data"
        raise DataError(Problem(name, rule, "0 rows", step))
    if count != rows:
        step = "pass the values of the same rows, in the same order"
        got = f"{count:,} values for {rows:,} rows"
        raise DataError(Problem(name, "must have one value per row", got, step))


def _refuse(name: str, rule: str, bad: Bools, values: npt.NDArray[Any], step: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        first = f"{values.flat[rows[0]]} in row {rows[0]}, counted from 0"
        many = f"{len(rows):,} values are not" if len(rows) > 1 else "1 value is not"
        raise DataError(Problem(name, rule, f"{many}, for example {first}", step))


# Scores of an estimator


def routing_is_on() -> bool:
    """True if scikit-learn's metadata routing is enabled."""
    return bool(sklearn.get_config()["enable_metadata_routing"])


def wants(estimator: Any, method: str, name: str) -> bool:
    """True if a method of an estimator takes this metadata.

    It does if its signature names it; if routing is on and it was requested, also deep inside;
    and ``fit`` of fairlearn's estimators takes sensitive features by any name.
    """
    routed = routing_is_on()
    has_requests = method in ("fit", "predict", "predict_proba", "decision_function")
    if routed and has_requests and get_routing_for_object(estimator).consumes(method, [name]):
        return True
    steps = getattr(estimator, "steps", None)
    if steps and routed:
        return False
    # Without routing a pipeline passes what it gets at prediction to its last step.
    target = steps[-1][1] if steps and method != "fit" else estimator
    function = getattr(target, method, None)
    parameters = inspect.signature(function).parameters if function is not None else {}
    if name in parameters:
        return True
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    from_fairlearn = type(estimator).__module__.startswith("fairlearn.")
    return method == "fit" and name == "sensitive_features" and takes_all and from_fairlearn


def response_of(estimator: Any, recalibrated: bool, needs_calibration: bool) -> str:
    """The method that scores come from; raise if there is none that can be used."""
    name = type(estimator).__name__
    usable = {
        "predict_proba": True,
        "decision_function": recalibrated,
        "_pmf_predict": recalibrated or not needs_calibration,
    }
    response = next((method for method in usable if hasattr(estimator, method)), "neither")
    if usable.get(response):
        return response
    rule, has, step = {
        "neither": (
            "must have predict_proba or decision_function",
            "neither",
            "use a classifier that gives scores, or wrap it in "
            "sklearn.calibration.CalibratedClassifierCV",
        ),
        "decision_function": (
            "must have predict_proba: decision values are not probabilities",
            "only decision_function",
            'set recalibrate="sigmoid" (or another method), which turns them into probabilities '
            "in each group",
        ),
        "_pmf_predict": (
            "must have predict_proba: the probability of a decision is not a risk score",
            "only the probability of a positive decision",
            'set recalibrate="isotonic" (or another method), or wrap the estimator that '
            f"{name} was made from",
        ),
    }[response]
    raise UsageError(Problem("estimator", rule, f"{name}, which has {has}", step))


def positive_of(estimator: Any) -> Any:
    """The positive class of a fitted classifier, also inside a pipeline or a search."""
    inner = estimator
    while not hasattr(inner, "pos_label_"):
        if hasattr(inner, "steps"):
            inner = inner.steps[-1][1]
        elif hasattr(inner, "best_estimator_"):
            inner = inner.best_estimator_
        else:
            return list(estimator.classes_)[-1]
    return inner.pos_label_


def raw_scores(estimator: Any, X: Any, response: str, groups: Encoded, positive: Any) -> Floats:
    """One score per row: the positive class's column, or the decision values."""
    params = {}
    if wants(estimator, response, "sensitive_features"):
        params["sensitive_features"] = features_of(groups)
    answer = np.asarray(getattr(estimator, response)(X, **params), dtype=np.float64)
    is_decision = response == "decision_function"
    columns = answer.reshape(len(answer), -1) if is_decision else answer
    if columns.ndim != 2 or columns.shape[1] != (1 if is_decision else 2):
        rule = "must be a binary classifier"
        got = f"{type(estimator).__name__} with scores of shape {columns.shape}"
        step = "train it with two classes"
        raise UsageError(Problem("estimator", rule, got, step))
    classes = list(getattr(estimator, "classes_", [None, positive]))
    if is_decision:
        # Decision values are those of the last class.
        return -columns[:, 0] if classes[0] == positive else columns[:, 0]
    if positive not in classes:
        rule = "must have the classes that the estimator was trained with"
        got = f"{positive!r}, and the estimator knows {', '.join(map(repr, classes))}"
        step = "pass labels coded as they were in training"
        raise DataError(Problem("y", rule, got, step))
    scores = columns[:, classes.index(positive)]
    # A sum of probabilities may lie outside [0, 1] by rounding.
    near = (scores > -1e-9) & (scores < 1.0 + 1e-9)
    return np.where(near, np.clip(scores, 0.0, 1.0), scores)


# Coins


Words = npt.NDArray[np.uint64]

_NAN = np.uint64(0x7FC00000)


def check_random(random_state: Any) -> None:
    """Raise unless the value is a seed that NumPy takes, a RandomState or None."""
    is_seed = isinstance(random_state, Integral) and 0 <= int(random_state) < 2**32
    if not is_seed and not isinstance(random_state, np.random.RandomState | None):
        rule = f"must be a whole number from 0 to {2**32 - 1}, a NumPy RandomState or None"
        raise UsageError(Problem("random_state", rule, short(random_state), "use 0"))


def coins_of_rows(X: Any, ids: Any, salt: str, random_state: Any) -> npt.NDArray[np.uint64]:
    """The coin of each row: by its id, or without ids by its values.

    With a ``random_state`` each of several equal rows gets a coin of its own, the same at every
    call; an instance of RandomState throws other coins at every call.
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
        order = np.argsort(hashes, kind="stable")
        ordered, repeats = hashes[order], np.empty(len(hashes), dtype=np.uint64)
        # The number of equal rows up to each row.
        repeats[order] = 1 + np.arange(len(hashes)) - np.searchsorted(ordered, ordered)
        # Twice, so that neither the seed nor the count can undo what the row adds.
        hashes = _mix(hashes + _mix(repeats, int(seed)), 0)
    return coin.coins(hashes, salt)


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
        matrix = X.tocsr()
        matrix.sum_duplicates()
        mixed = _mix(_number_words(np.asarray(matrix.data)), matrix.indices)
        total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        return np.asarray(total[matrix.indptr[1:]] - total[matrix.indptr[:-1]])
    frame = _as_eager_frame(X)
    if frame is not None:
        # Numbers as numbers, whatever their type in the frame; the rest as text.
        columns: Iterable[Words] = (
            _number_words(series.cast(nw.Float64).to_numpy())
            if series.dtype.is_numeric() or series.dtype == nw.Boolean
            else _words(series.to_list())
            for series in frame.frame.iter_columns()
        )
    else:
        array = np.asarray(X)
        array = array[:, np.newaxis] if array.ndim == 1 else array
        if array.dtype.kind in "biuf":
            columns = map(_number_words, array.T)
        else:
            columns = (_words(column.tolist()) for column in array.astype(object).T)
    hashes = np.zeros(_num_samples(X), dtype=np.uint64)
    for place, words in enumerate(columns):
        hashes += _mix(words, place)
    return hashes


def _mix(words: Words, column: Any) -> Words:
    """The finalizer of splitmix64; 0 stays 0."""
    place = np.atleast_1d(column).astype(np.uint64) + np.uint64(1)
    mixed = words + place * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
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


def _words(values: list[Any]) -> Words:
    # 1, 1.0 and True are equal, so the type is part of the key.
    keys = [(type(value), value) for value in values]
    words: dict[Any, Any] = {}
    for key in dict.fromkeys(keys):
        value = key[1]
        if is_null(value):
            words[key] = _NAN
        elif isinstance(value, bool | int | float | np.number | np.bool_):
            words[key] = _number_words(np.array([float(value)]))[0]
        else:
            digest = hashlib.md5(str(value).encode(), usedforsecurity=False).digest()
            # The highest bit keeps texts apart from numbers, which have 32 bits.
            words[key] = np.uint64(int.from_bytes(digest[:8])) | np.uint64(1 << 63)
    return np.fromiter(map(words.__getitem__, keys), np.uint64, count=len(keys))
