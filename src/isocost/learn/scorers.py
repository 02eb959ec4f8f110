"""Scorers for model selection, which pass the groups on to the model and to the metric.

scikit-learn's own scorers call ``predict_proba(X)`` without the groups, and a repaired model cannot
answer: the score becomes NaN.  These request the groups by themselves.

scikit-learn selects the model with the highest score, so a number of which less is better is
negated: minus the disparity of costs, minus the false-positive rate.  0 is best.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRequest

from isocost import metrics
from isocost.checks import check_flag, check_word, short
from isocost.costs import CostLike, as_cost
from isocost.engines.arrays import tally_arrays
from isocost.errors import DataError, Problem, UsageError, listing
from isocost.grid import Grid
from isocost.learn.inputs import GroupsFrom, features_of, groups_of, positive_of, read_groups, wants
from isocost.measures.feasibility import feasibility
from isocost.measures.table import MEASURES
from isocost.question import DEFAULT

Response = Literal["predict_proba", "expected_proba", "predict"]

METADATA = ("sensitive_features", "sample_weight", "ids")


def scorer(
    metric: str | Callable[..., float],
    *,
    response_method: Response = "predict_proba",
    greater_is_better: bool | None = None,
    groups_from: GroupsFrom = None,
    **kwargs: Any,
) -> GroupScorer:
    """A scorer that passes the groups on, for any metric.

    score = metric(y, scores, ...), or minus that if less is better

    Parameters
    ----------
    metric : str or callable
        A measure of :data:`isocost.MEASURES` by name, such as "fpr", or a function of labels (0
        and 1) and scores.  It is passed ``sample_weight`` if that is requested, and
        ``sensitive_features`` if it has a parameter of this name, as the metrics of fairlearn do.
    response_method : {"predict_proba", "expected_proba", "predict"}
        The method to score: the scores, which depend on the coin for repaired estimators; their
        average over the coin, for the estimators of isocost.learn; or the decisions, as 0 and 1.
    greater_is_better : bool, optional
        By default as the table of measures says, and True for other metrics.
    groups_from : str, int, list of these, or callable
        Where the groups are in X.  Without it ``sensitive_features`` must be routed:
        scikit-learn passes them on with ``set_config(enable_metadata_routing=True)``; the scorer
        requests them by itself.
    **kwargs
        Further arguments of the metric, such as ``threshold=0.3``.

    Returns
    -------
    GroupScorer
        For ``scoring=`` of GridSearchCV, cross_validate and the like.

    Examples
    --------
    >>> import isocost as ic, numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = np.array([[0.0], [1.0], [0.0], [3.0]] * 5), [0, 1, 0, 1] * 5
    >>> model = LogisticRegression().fit(X, y)
    >>> ic.scorer(roc_auc_score)(model, X, y), round(ic.scorer("generalized_fpr")(model, X, y), 3)
    (1.0, -0.189)
    """
    known = [name for name in MEASURES if hasattr(metrics, name)]
    if isinstance(metric, str) and metric in known:
        metric = getattr(metrics, metric)
    if not callable(metric):
        measures = listing(known, 40)
        rule = f"must be a function f(y_true, y_score), or the name of a measure: {measures}"
        raise UsageError(Problem("metric", rule, short(metric), 'use "fpr", for example'))
    check_word("response_method", response_method, get_args(Response))
    name = getattr(metric, "__name__", type(metric).__name__)
    if greater_is_better is None:
        ours = name in MEASURES and metric is getattr(metrics, name, None)
        better = MEASURES[name].better if ours else "higher"
        if better is None:
            ideal = "" if MEASURES[name].ideal is None else f": {MEASURES[name].ideal:g} is"
            rule = f"must be given for {name}, of which neither more nor less is better{ideal}"
            step = "pass greater_is_better, or a function of your own, such as minus the distance "
            raise UsageError(Problem("greater_is_better", rule, "None", step + "to it"))
        greater_is_better = better == "higher"
    check_flag("greater_is_better", greater_is_better)
    wrong = [one for one in kwargs if one in METADATA or not _takes(metric, one)]
    if wrong:
        rule = "must be arguments of the metric, and not metadata"
        step = "pass metadata such as sensitive_features to cross_validate, as params="
        raise UsageError(Problem("scorer", rule, ", ".join(wrong), step))
    title = f"scorer({name}, {'higher' if greater_is_better else 'lower'} is better)"
    sign = 1.0 if greater_is_better else -1.0
    return GroupScorer(metric, sign, response_method, groups_from, kwargs, title)


def cost_disparity_scorer(
    cost: CostLike = str(DEFAULT.cost),
    *,
    response_method: Response = "predict_proba",
    groups_from: GroupsFrom = None,
) -> GroupScorer:
    """A scorer that is minus the largest difference of the groups' costs.

    score = -(highest g - lowest g), with g = a c_fp + b c_fn the cost of a group's errors

    Parameters
    ----------
    cost : Cost or str
        What an error costs.
    response_method, groups_from
        As for :func:`scorer`.  With "predict", "fpr" and "fnr" are the rates of the decisions.

    Returns
    -------
    GroupScorer
        For ``scoring=`` of GridSearchCV, cross_validate and the like.

    Examples
    --------
    >>> import numpy as np
    >>> from isocost.learn import cost_disparity_scorer
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [0.0], [3.0]] * 5), [0, 1, 0, 1] * 5
    >>> model = LogisticRegression().fit(X, y)
    >>> scorer = cost_disparity_scorer("fnr")
    >>> round(scorer(model, X, y, sensitive_features=list("aabb") * 5), 3)
    -0.357
    """
    title = f"cost_disparity_scorer({str(as_cost(cost))!r}, lower disparity is better)"
    check_word("response_method", response_method, get_args(Response))
    return GroupScorer(cost_disparity, -1.0, response_method, groups_from, {"cost": cost}, title)


def cost_disparity(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    cost: CostLike = str(DEFAULT.cost),
) -> float:
    """The largest difference of the groups' costs.

    Examples
    --------
    >>> cost_disparity([1, 1, 0, 0], [0.5, 0.75, 0.5, 0.25], sensitive_features=[*"abab"])
    0.25
    """
    groups = groups_of(sensitive_features, len(y_score))
    tally = tally_arrays(y_score, y_true, [groups], sample_weight, grid=Grid())
    costs = feasibility(tally, cost).costs.values()
    return float(max(costs) - min(costs))


def _takes(function: Callable[..., float], name: str) -> bool:
    """True if a metric takes an argument of this name; groups only if its signature has them."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return name == "sample_weight"
    anything = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return name in parameters or (anything and name != "sensitive_features")


@dataclass(eq=False, repr=False)
class GroupScorer:
    """The scorer that :func:`scorer` returns: called with a model, X and y."""

    metric: Callable[..., float]
    sign: float
    response_method: Response
    groups_from: GroupsFrom
    kwargs: dict[str, Any]
    title: str
    _requests: dict[str, Any] = field(default_factory=lambda: {"sensitive_features": True})

    def set_score_request(self, **requests: bool | str | None) -> GroupScorer:
        """Request metadata: ``sensitive_features`` (the default), sample_weight, ids."""
        if unknown := ", ".join(sorted(set(requests) - set(METADATA))):
            rule, step = f"takes {', '.join(METADATA)}", "use one of these names"
            raise UsageError(Problem("set_score_request", rule, unknown, step))
        self._requests.update(requests)
        return self

    def get_metadata_routing(self) -> Any:
        """The metadata that the scorer requests, for scikit-learn's routing."""
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
        """The metric, negated if less is better."""
        X, y = indexable(X, y)
        passed: dict[str, Any] = {}
        if _takes(self.metric, "sensitive_features"):
            groups = read_groups(X, sensitive_features, self.groups_from)
            passed["sensitive_features"] = features_of(groups)
        if sample_weight is not None:
            if not _takes(self.metric, "sample_weight"):
                rule, got = "must be taken by the metric", f"{self.title}, which has no such one"
                step = "leave the weights out: set_score_request(sample_weight=False)"
                raise UsageError(Problem("sample_weight", rule, got, step))
            passed["sample_weight"] = sample_weight
        metadata = {"sensitive_features": sensitive_features, "ids": ids}
        params = {
            name: value
            for name, value in metadata.items()
            if value is not None and wants(estimator, self.response_method, name)
        }
        respond = getattr(estimator, self.response_method, None)
        if respond is None:
            rule, step = "must be one that the estimator has", 'use "predict_proba"'
            got = f"{self.response_method!r}, and the estimator is a {type(estimator).__name__}"
            raise UsageError(Problem("response_method", rule, got, step))
        answer = np.asarray(respond(X, **params))
        classes, positive = list(estimator.classes_), positive_of(estimator)
        if len(classes) != 2:
            got = f"{len(classes)}: {', '.join(map(repr, classes[:6]))}"
            step = "score a classifier of two classes"
            raise DataError(Problem("y", "must have two classes", got, step))
        labels = (np.asarray(y) == positive).astype(np.intp)
        if self.response_method == "predict":
            scores = (answer == positive).astype(np.intp)
        else:
            scores = answer[:, classes.index(positive)]
        return self.sign * float(self.metric(labels, scores, **passed, **self.kwargs)) + 0.0

    def __repr__(self) -> str:
        return self.title
