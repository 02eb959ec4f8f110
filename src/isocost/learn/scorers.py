"""Scorers for model selection: minus the disparity of the groups' costs.

scikit-learn selects the model with the highest score.  The lower a disparity, the better, so the
score is minus the disparity: 0 is best, and a search that maximizes it equalizes costs.
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
from isocost.learn.inputs import GroupsFrom, read_groups
from isocost.measures.feasibility import feasibility

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
        The method to score: the scores, which depend on the coin for repaired estimators; their
        average over the coin, for the estimators of isocost.learn; or the decisions, for which
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
    """The scorer that :func:`cost_disparity_scorer` returns: called with a model, X and y."""

    def __init__(
        self, cost: CostLike, response_method: Response, groups_from: GroupsFrom = None
    ) -> None:
        self.cost = cost
        self.response_method = response_method
        self.groups_from = groups_from
        self._requests: dict[str, Any] = {"sensitive_features": True}

    def set_score_request(self, **requests: bool | str | None) -> CostDisparityScorer:
        """Which metadata to request: ``sensitive_features`` (the default), sample_weight, ids."""
        unknown = sorted(set(requests) - set(METADATA))
        if unknown:
            rule = f"takes {', '.join(METADATA)}"
            got, step = ", ".join(unknown), "use one of these names"
            raise UsageError(Problem("set_score_request", rule, got, step))
        self._requests.update(requests)
        return self

    def get_metadata_routing(self) -> Any:
        """What the scorer requests, for scikit-learn's routing."""
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
        classes = list(estimator.classes_)
        if len(classes) != 2:
            got = f"{len(classes)}: {', '.join(map(repr, classes[:6]))}"
            step = "score a classifier of two classes"
            raise DataError(Problem("y", "must have two classes", got, step))
        labels = (np.asarray(y) == classes[1]).astype(np.intp)
        scores = (
            (answer == classes[1]).astype(float)
            if self.response_method == "predict"
            else answer[:, 1]
        )
        tally = tally_arrays(scores, labels, [groups.encoded], sample_weight, grid=Grid())
        costs = feasibility(tally, self.cost).costs.values()
        return float(min(costs) - max(costs))

    def __repr__(self) -> str:
        return f"cost_disparity_scorer({str(as_cost(self.cost))!r}, lower disparity is better)"
