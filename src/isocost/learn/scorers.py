"""Scorers for model selection: how unequal the groups' costs are, with a minus.

scikit-learn takes the model with the highest score.  A disparity is better the lower it is, so the
score is minus the disparity: 0 is best, and a search that maximises it makes costs equal.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRequest

from isocost.checks import check_word
from isocost.costs import CostLike, as_cost
from isocost.engines.arrays import tally_arrays
from isocost.errors import DataError, Problem, UsageError
from isocost.grid import Grid
from isocost.learn.base import wants
from isocost.learn.sensitive import GroupsFrom, read_groups
from isocost.measures.feasibility import feasibility

__all__ = ["CostDisparityScorer", "cost_disparity_scorer"]

Response = Literal["predict_proba", "expected_proba", "predict"]

METADATA = ("sensitive_features", "sample_weight", "ids")


def cost_disparity_scorer(
    cost: CostLike = "fnr",
    *,
    response_method: Response = "predict_proba",
    groups_from: GroupsFrom = None,
) -> CostDisparityScorer:
    """A scorer that is minus the largest difference of the groups' costs.

    score = -(highest g - lowest g), with g = a c_fp + b c_fn the cost of a group's errors

    Parameters
    ----------
    cost : Cost or str
        What an error costs.
    response_method : {"predict_proba", "expected_proba", "predict"}
        What is asked of the model: its scores, which for a rule depend on the coin; their
        average over the coin, for the estimators of isocost.learn; or its decisions, for which
        "fpr" and "fnr" are the rates of the decisions.
    groups_from : str, int, list of these, or callable
        Where the groups are in X.  Without it ``sensitive_features`` must be routed:
        scikit-learn passes them on with ``set_config(enable_metadata_routing=True)``; the scorer
        requests them by itself.

    Returns
    -------
    CostDisparityScorer
        For ``scoring=`` of GridSearchCV, cross_validate and the like.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [0.0], [3.0]] * 5), [0, 1, 0, 1] * 5
    >>> model = LogisticRegression().fit(X, y)
    >>> scorer = cost_disparity_scorer("fnr")
    >>> round(scorer(model, X, y, sensitive_features=list("aabb") * 5), 3)
    -0.357
    """
    as_cost(cost)
    check_word("response_method", response_method, ("predict_proba", "expected_proba", "predict"))
    return CostDisparityScorer(cost, response_method, groups_from)


class CostDisparityScorer:
    """What :func:`cost_disparity_scorer` makes: called with a model, X and y."""

    def __init__(
        self, cost: CostLike, response_method: Response, groups_from: GroupsFrom = None
    ) -> None:
        self.cost = cost
        self.response_method = response_method
        self.groups_from = groups_from
        self._requests: dict[str, Any] = {"sensitive_features": True}

    def set_score_request(self, **requests: bool | str | None) -> CostDisparityScorer:
        """Which metadata to ask for: ``sensitive_features`` (asked for), sample_weight, ids."""
        strange = sorted(set(requests) - set(METADATA))
        if strange:
            raise UsageError(
                Problem(
                    "set_score_request",
                    f"knows {', '.join(METADATA)}",
                    ", ".join(strange),
                    "use one of these names",
                )
            )
        self._requests.update(requests)
        return self

    def get_metadata_routing(self) -> Any:
        """What the scorer asks for, for scikit-learn's routing."""
        request = MetadataRequest(owner=self)
        for name in METADATA:
            request.score.add_request(param=name, alias=self._requests.get(name))
        return request

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        ids: Any = None,
    ) -> float:
        """Minus the difference of costs: 0 is best."""
        X, y = indexable(X, y)
        groups = read_groups(X, sensitive_features, self.groups_from)
        metadata = {"sensitive_features": sensitive_features, "ids": ids}
        params = {
            name: value
            for name, value in metadata.items()
            if value is not None and wants(estimator, self.response_method, name)
        }
        answer = np.asarray(getattr(estimator, self.response_method)(X, **params))
        positive = estimator.classes_[-1]
        labels = _is(y, positive)
        scores = _is(answer, positive) if self.response_method == "predict" else answer[:, -1]
        _check_two(estimator.classes_)
        tally = tally_arrays(scores, labels, [groups.encoded], sample_weight, grid=Grid())
        costs = feasibility(tally, self.cost).costs.values()
        return float(min(costs) - max(costs))

    def __repr__(self) -> str:
        return f"cost_disparity_scorer({str(as_cost(self.cost))!r}, lower disparity is better)"


def _is(values: Any, positive: Any) -> Any:
    return (np.asarray(values) == positive).astype(np.intp)


def _check_two(classes: Any) -> None:
    if len(classes) != 2:
        raise DataError(
            Problem(
                "y",
                "must have two classes",
                f"{len(classes)}: {', '.join(map(repr, list(classes)[:6]))}",
                "score a classifier of two classes",
            )
        )
