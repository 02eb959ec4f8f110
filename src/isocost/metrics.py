"""Every measure of a group's own people as a function of arrays: ``isocost.metrics.fpr(y, score)``.

Each has the signature ``f(y_true, y_score, *, sample_weight=None, threshold=0.5)``, so it works
inside scikit-learn's ``make_scorer`` and fairlearn's ``MetricFrame``.  Where nobody is of the kind
that a measure is about, it is NaN, with a warning: one such group does not stop others.

Examples
--------
>>> import isocost as ic
>>> ic.metrics.fpr([0, 0, 1], [0.25, 0.5, 0.9]), ic.metrics.fpr([0, 0], [0.25, 0.5], threshold=0.6)
(0.5, 0.0)
>>> ic.generalized_fnr([0, 1, 1], [0.2, 0.5, 0.7], sample_weight=[1, 1, 1])
0.4
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.cells import KINDS, POWERS, Sums, add_up
from isocost.checks import check_threshold, check_word
from isocost.errors import DataError, Problem, UncertainWarning
from isocost.measures.calibration import GAP_METHODS, Levels
from isocost.measures.derived import GroupedPeople
from isocost.measures.table import MEASURES, Measure
from isocost.question import DEFAULT
from isocost.typing import Floats, is_masked


def _function_of(measure: Measure) -> Callable[..., float]:
    """A measure as a function of arrays."""

    def compute(
        y_true: npt.ArrayLike,
        y_score: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        threshold: float = DEFAULT.threshold,
    ) -> float:
        y, h, w = _checked(y_true, y_score, sample_weight)
        if measure.is_plain:
            kind = (2 * y + (h >= check_threshold(threshold))).astype(np.intp)
            columns = (w**p * h**q for p, q in POWERS.values())
            value = float(measure.of(Sums(*(add_up(kind, x, len(KINDS)) for x in columns))))
        else:
            people = GroupedPeople.of_rows(y, h, w, check_threshold(threshold))
            value = measure.estimated(people, 0).value
        if math.isnan(value):
            warnings.warn(_undefined(measure, len(h)), UncertainWarning, stacklevel=2)
        return value

    compute.__name__ = compute.__qualname__ = measure.name
    compute.__doc__ = f"{measure.sentence}\n\n{measure.formula}"
    return compute


_FUNCTIONS = {
    name: _function_of(one)
    for name, one in MEASURES.items()
    if one.is_plain or (one.is_derived and not one.compares)
}

generalized_fpr, generalized_fnr = _FUNCTIONS["generalized_fpr"], _FUNCTIONS["generalized_fnr"]


def __getattr__(name: str) -> Callable[..., float]:
    """Every measure of the table that needs no other groups, by name."""
    if name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _FUNCTIONS[name]


def __dir__() -> list[str]:
    return [name for name in MEASURES if name in _FUNCTIONS or name == "calibration_gap"]


def calibration_gap(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    method: str = "equal_width",
) -> float:
    """The calibration gap; see :mod:`isocost.measures.calibration` for the methods.

    Examples
    --------
    >>> import isocost as ic
    >>> ic.calibration_gap([0, 0, 0, 1], [0.25, 0.25, 0.25, 0.25])
    0.0
    """
    check_word("method", method, tuple(GAP_METHODS))
    y, h, w = _checked(y_true, y_score, sample_weight)
    return GAP_METHODS[method](Levels(h, w, w * y, w * h, w**2))


def _undefined(measure: Measure, rows: int) -> str:
    if not measure.is_plain:
        return (
            f"{measure.title} is not defined, and NaN, for these {rows:,} rows: it needs both "
            "labels, and scores or decisions that differ. Check which label is the positive one "
            "and the threshold, or leave this group out."
        )
    labels = measure.over_labels
    kind = "people on that side" if labels is None else ("negatives", "positives")[labels[0]]
    check = "the threshold" if labels is None else "which label is the positive one"
    return (
        f"{measure.title} is not defined, and NaN: there are no {kind} among {rows:,} rows. Check "
        f"{check}, or leave this group out."
    )


def _checked(y_true: Any, y_score: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
    y, h = _column("y_true", y_true), _column("y_score", y_score)
    w = np.ones(len(h)) if sample_weight is None else _column("sample_weight", sample_weight)
    if not len(y) == len(h) == len(w) or len(h) == 0:
        name, rule = "y_true, y_score and sample_weight", "must have the same length, at least 1"
        sizes = f"{len(y)}, {len(h)} and {len(w)} values"
        raise DataError(Problem(name, rule, sizes, "pass arrays of the same rows"))
    scores = "pass probabilities: the positive column of predict_proba, not decision_function"
    weights = "drop rows without weight"
    problems = [
        Problem(name, rule, f"{(~valid).sum()} others, such as {values[row]} in row {row}", step)
        for name, values, valid, rule, step in (
            ("y_true", y, (y == 0) | (y == 1), "labels must be 0 or 1", "encode positives as 1"),
            ("y_score", h, (h >= 0) & (h <= 1), "scores must lie in [0, 1]", scores),
            ("sample_weight", w, (w > 0) & (w < np.inf), "weights must be positive", weights),
        )
        if not valid.all()
        for row in [int(np.argmin(valid))]
    ]
    if problems:
        raise DataError(problems)
    return y, h, w


def _column(name: str, values: Any) -> Floats:
    if is_masked(values):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        step = "pass an array of numbers"
        raise DataError(Problem(name, "must hold numbers", str(error), step)) from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        got, step = f"an array of shape {array.shape}", "for predict_proba pass its second column"
        raise DataError(Problem(name, "must have one dimension", got, step))
    return array
