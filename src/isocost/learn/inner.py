"""The estimator inside: what it can be asked for, and how it is asked.

Scores are ``predict_proba`` of the positive class, else ``decision_function``.  fairlearn's
reductions and its ThresholdOptimizer have neither; their ``_pmf_predict`` is taken, the chance of
a positive decision.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import get_routing_for_object

from isocost.errors import DataError, IsocostWarning, Problem, UsageError
from isocost.learn.sensitive import Groups

__all__ = ["inner_params", "raw_scores", "response_of", "routing_is_on", "rows_of_params", "wants"]

Floats = npt.NDArray[np.float64]

RESPONSES = ("predict_proba", "decision_function", "_pmf_predict")
"""Where scores come from, in order of preference."""

ROUTED = ("fit", "predict", "predict_proba", "decision_function")
"""The methods among ours that scikit-learn routes metadata to."""

ROUNDING = 1e-9
"""How far a sum of probabilities may lie outside [0, 1]."""


def routing_is_on() -> bool:
    """Whether scikit-learn's metadata routing is enabled."""
    return bool(sklearn.get_config()["enable_metadata_routing"])


def wants(estimator: Any, method: str, name: str) -> bool:
    """Whether a method of an estimator takes this metadata.

    It does if its signature names it; if routing is on and it was requested, also deep inside;
    and ``fit`` of fairlearn's estimators takes sensitive features by any name.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> wants(LogisticRegression(), "fit", "sample_weight")
    True
    """
    known = routing_is_on() and method in ROUTED
    if known and get_routing_for_object(estimator).consumes(method, [name]):
        return True
    steps = getattr(estimator, "steps", None)
    if steps and routing_is_on():
        return False
    # Without routing a pipeline hands what it gets at prediction to its last step.
    target = steps[-1][1] if steps and method != "fit" else estimator
    function = getattr(target, method, None)
    parameters = inspect.signature(function).parameters if function is not None else {}
    if name in parameters:
        return True
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    from_fairlearn = type(estimator).__module__.startswith("fairlearn.")
    return method == "fit" and name == "sensitive_features" and takes_all and from_fairlearn


def inner_params(
    estimator: Any,
    fit_params: Mapping[str, Any],
    sample_weight: Any,
    groups: Groups,
    routed: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """What the estimator's fit gets besides X and y.

    With routing on, what it requested; else all ``fit_params``, and the weights if it takes them.
    """
    params = dict(fit_params if routed is None else routed)
    if routed is None and sample_weight is not None:
        if wants(estimator, "fit", "sample_weight"):
            params["sample_weight"] = sample_weight
        elif not isinstance(estimator, FrozenEstimator):
            warnings.warn(
                f"{type(estimator).__name__} takes no sample_weight: it is trained without; the "
                "repair uses the weights.",
                IsocostWarning,
                stacklevel=4,
            )
    if wants(estimator, "fit", "sensitive_features"):
        params["sensitive_features"] = groups.features
    return params


def rows_of_params(params: Mapping[str, Any], rows: Any, total: int) -> dict[str, Any]:
    """The same parameters for some rows: what has one value per row is cut."""

    def cut(value: Any) -> Any:
        sized = hasattr(value, "__len__") and not isinstance(value, str | dict)
        return _safe_indexing(value, rows) if sized and len(value) == total else value

    return {name: cut(value) for name, value in params.items()}


def response_of(estimator: Any, recalibrated: bool, needs_calibration: bool) -> str:
    """The method that scores come from, or why there are none that can be used."""
    name = type(estimator).__name__
    found = next((method for method in RESPONSES if hasattr(estimator, method)), None)
    if found is None:
        raise UsageError(
            Problem(
                "estimator",
                "must have predict_proba or decision_function",
                f"{name}, which has neither",
                "use a classifier that gives scores, or wrap it in "
                "sklearn.calibration.CalibratedClassifierCV",
            )
        )
    if found == "decision_function" and not recalibrated:
        raise UsageError(
            Problem(
                "estimator",
                "must have predict_proba: decision values are not probabilities",
                f"{name}, which has only decision_function",
                'set recalibrate="sigmoid" (or another method), which turns them into '
                "probabilities in each group",
            )
        )
    if found == "_pmf_predict" and needs_calibration and not recalibrated:
        raise UsageError(
            Problem(
                "estimator",
                "must have predict_proba: the chance of a decision is not a risk score",
                f"{name}, which has only the chance of a positive decision",
                'set recalibrate="isotonic" (or another method), or wrap the estimator that '
                f"{name} was made from",
            )
        )
    return found


def raw_scores(estimator: Any, X: Any, response: str, groups: Groups, positive: Any) -> Floats:
    """One score per row: the positive class's column, or the decision values."""
    params = {}
    if wants(estimator, response, "sensitive_features"):
        params["sensitive_features"] = groups.features
    answer = np.asarray(getattr(estimator, response)(X, **params), dtype=np.float64)
    if response == "decision_function":
        return _one_column(answer.reshape(len(answer), -1), estimator, 1)[:, 0]
    answer = _one_column(answer, estimator, 2)
    classes = list(getattr(estimator, "classes_", [None, positive]))
    if positive not in classes:
        raise DataError(
            Problem(
                "y",
                "must have the classes that the estimator was trained with",
                f"{positive!r}, and the estimator knows {', '.join(map(repr, classes))}",
                "pass labels coded as they were in training",
            )
        )
    scores = answer[:, classes.index(positive)]
    near = (scores > -ROUNDING) & (scores < 1.0 + ROUNDING)
    return np.where(near, np.clip(scores, 0.0, 1.0), scores)


def _one_column(answer: Floats, estimator: Any, columns: int) -> Floats:
    if answer.ndim != 2 or answer.shape[1] != columns:
        raise UsageError(
            Problem(
                "estimator",
                "must tell two classes apart",
                f"{type(estimator).__name__} with scores of shape {answer.shape}",
                "train it with two classes, the positive one last in sorted order",
            )
        )
    return answer
