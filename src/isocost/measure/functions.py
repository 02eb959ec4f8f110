"""The measures as plain functions of arrays, with scikit-learn's signature.

They work inside scikit-learn's ``make_scorer`` and fairlearn's ``MetricFrame``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.checks import check_word
from isocost.errors import DataError, Problem
from isocost.measure.calibration import GAP_METHODS, Levels

__all__ = ["calibration_gap", "generalized_fnr", "generalized_fpr"]

Floats = npt.NDArray[np.float64]


def generalized_fpr(
    y_true: npt.ArrayLike, y_score: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """The generalized false-positive rate: the mean score of the negatives.

    c_fp = sum w h (1-y) / sum w (1-y)

    Examples
    --------
    >>> generalized_fpr([0, 0, 1], [0.25, 0.5, 0.9])
    0.375
    """
    y, h, w = _checked(y_true, y_score, sample_weight)
    return _mean_over(h, w * (1.0 - y), "negatives", "false-positive")


def generalized_fnr(
    y_true: npt.ArrayLike, y_score: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """The generalized false-negative rate: one minus the mean score of the positives.

    c_fn = sum w (1-h) y / sum w y

    Examples
    --------
    >>> generalized_fnr([0, 1, 1], [0.2, 0.5, 0.7])
    0.4
    """
    y, h, w = _checked(y_true, y_score, sample_weight)
    return _mean_over(1.0 - h, w * y, "positives", "false-negative")


def calibration_gap(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    method: str = "equal_width",
) -> float:
    """The calibration gap; see :mod:`isocost.measure.calibration` for the methods.

    Examples
    --------
    >>> calibration_gap([0, 0, 0, 1], [0.25, 0.25, 0.25, 0.25])
    0.0
    """
    check_word("method", method, tuple(GAP_METHODS))
    y, h, w = _checked(y_true, y_score, sample_weight)
    return GAP_METHODS[method](Levels(h, w, w * y, w * h, w**2))


def _mean_over(values: Floats, weights: Floats, kind: str, rate: str) -> float:
    total = weights.sum()
    if total == 0:
        raise DataError(
            Problem(
                "y_true",
                f"must have {kind}: without them there is no {rate} rate",
                f"{len(values)} rows, none of them {kind}",
                "check which label is the positive one, or leave this group out",
            )
        )
    return float((values * weights).sum() / total)


def _checked(y_true: Any, y_score: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
    y, h = _column("y_true", y_true), _column("y_score", y_score)
    w = np.ones(len(h)) if sample_weight is None else _column("sample_weight", sample_weight)
    problems = []
    if not len(y) == len(h) == len(w) or len(h) == 0:
        sizes = f"{len(y)}, {len(h)} and {len(w)} values"
        raise DataError(
            Problem(
                "y_true, y_score and sample_weight",
                "must have the same length, at least 1",
                sizes,
                "pass arrays of the same rows",
            )
        )
    rules = (
        (
            "y_true",
            y,
            (y == 0) | (y == 1),
            "labels must be 0 or 1",
            "encode the positive class as 1",
        ),
        (
            "y_score",
            h,
            (h >= 0) & (h <= 1),
            "scores must lie in [0, 1]",
            "pass probabilities: the positive column of predict_proba, not decision_function",
        ),
        (
            "sample_weight",
            w,
            (w > 0) & np.isfinite(w),
            "weights must be positive",
            "drop rows without weight",
        ),
    )
    for name, values, good, rule, step in rules:
        bad = np.flatnonzero(~good)
        if len(bad):
            got = f"{len(bad)} others, such as {values[bad[0]]} in row {bad[0]}"
            problems.append(Problem(name, rule, got, step))
    if problems:
        raise DataError(problems)
    return y, h, w


def _column(name: str, values: Any) -> Floats:
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            Problem(name, "must hold numbers", str(error), "pass an array of numbers")
        ) from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(
            Problem(
                name,
                "must have one dimension",
                f"an array of shape {array.shape}",
                "for predict_proba pass its second column",
            )
        )
    return array
