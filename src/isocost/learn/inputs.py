"""What estimators are given, checked and turned into arrays: scores, labels, weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.engines.encode import column_array
from isocost.errors import DataError, IsocostError, Problem, UsageError
from isocost.groups import is_null

__all__ = ["read_all", "real_scores", "two_labels", "weights_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


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
