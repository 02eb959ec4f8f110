"""What fit is given, checked before anything is trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from isocost.engines.arrays import tally_arrays
from isocost.errors import DataError, Problem, UsageError
from isocost.grid import Grid
from isocost.learn.sensitive import Groups
from isocost.measure.rates import require_both_labels, require_two_groups

__all__ = ["as_fitted", "check_cells", "need_labels", "two_classes"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


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
