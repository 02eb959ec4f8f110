"""The repairs of isocost as meta-estimators: classifiers that repair the scores of another.

And a scorer to select them by: minus the disparity of the groups' costs, because scikit-learn
selects the highest score.  All estimators fit in the same way.

- With ``cv=5`` (or a splitter) the rows are scored by models that were trained without them, and
  the rule is made from these out-of-fold scores.  It is never made from scores of the training
  rows, which look better than they are, and not equally so in every group.  Then the estimator is
  trained again on all rows; the rule is applied to its scores.  A splitter with a single
  test part, ShuffleSplit(1), makes a holdout.
- With ``cv="prefit"`` the estimator is used as it is, and it must not have been trained on any of
  the rows passed to fit.  Where estimators are cloned, as in searches, put the fitted one into
  sklearn.frozen.FrozenEstimator.
- With ``recalibrate`` the held-out scores are first calibrated in each group.  The scores that the
  rule is made from are calibrated by a calibrator that was fitted on the other folds;
  ``calibrator_`` is fitted on all held-out scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRequest

from isocost.checks import check_threshold, check_word
from isocost.costs import CostLike, as_cost
from isocost.engines.arrays import tally_arrays
from isocost.errors import DataError, InfeasibleError, Problem, UsageError
from isocost.grid import Grid
from isocost.learn.base import PostProcessor, wants
from isocost.learn.inputs import GroupsFrom, read_groups
from isocost.measures.audit import Audit, audit
from isocost.measures.feasibility import Feasibility, feasibility
from isocost.repairs.odds import equalize_odds
from isocost.repairs.reconcilability import Reconcilability, check_request
from isocost.repairs.reconcile import reconcile
from isocost.repairs.registry import REPAIRS
from isocost.rules import DEFAULT_SALT, Rule
from isocost.tallies import Tally

Calibration = Literal["sigmoid", "isotonic", "histogram", "beta"]


class CalibratedEqualizedOdds(PostProcessor):
    """Make errors cost every group the same and keep scores calibrated.

    Scores h of a classifier are repaired by :func:`isocost.withhold` or :func:`isocost.coarsen`,
    so that g = a c_fp + b c_fn is equal over all groups; see there for the formulas.

    Parameters
    ----------
    estimator : classifier
        With predict_proba or decision_function; LogisticRegression() if None.
    cost : Cost or str
        What an error costs: "fpr", "fnr", "weighted:1,3" or a :class:`isocost.Cost`.
    method : {"withhold", "coarsen"}
        Withhold scores by a coin, or pool neighbouring scores without one.
    tolerance : float
        How far costs may differ.
    threshold : float
        The score from which :meth:`predict` returns the positive class; "coarsen" changes no
        decisions there.
    allow_decision_changes : bool
        Whether "coarsen" may change decisions where costs cannot be made equal otherwise.
    infeasible : {"raise", "closest"}
        What to do when costs cannot be made equal: raise :class:`isocost.InfeasibleError`, or
        come as close as possible, with a warning.
    recalibrate : {None, "sigmoid", "isotonic", "histogram", "beta"}
        Calibrate scores in each group first, by
        :class:`isocost.learn.calibrator.GroupCalibrator`.
        Calibrated scores are the method's precondition: look at ``audit_``.
    cv : int, "prefit" or splitter
        How the scores that the rule is made from are held out.  A number is the number of folds,
        stratified by group and label.
    groups_from : str, int, list of these, or callable
        Where groups are when no ``sensitive_features`` are passed: columns of X by name or
        position, or a function of X, such as one that cuts age at 40.  Then no routing is
        needed, and every scorer of scikit-learn works.
    unknown : {"error", "keep"}
        What happens to rows of groups that fit has not seen: an error, or they keep their
        score; with ``recalibrate`` the pooled map calibrates it.
    salt : str
        The coin's salt; see :func:`isocost.withhold`.
    random_state : int, RandomState instance or None
        Without ids the coin depends on the values of the row.  If set, it also depends on this
        and on the number of equal rows before it; use that where few different rows occur.
    confidence : float or None
        Of the intervals in ``audit_``; None for no intervals.

    Attributes
    ----------
    estimator_, calibrator_
        What computes the scores; the calibrator is None without ``recalibrate``.
    rule_ : Rule
        The repair: ``rule_.to_json()`` is all that another system needs.
    tally_ : Tally
        Of the held-out scores, before the repair.
    audit_, repaired_audit_ : Audit
        Of ``tally_``, before the repair and after it, on average over the coin.
    unseen_ : Unseen
        What the rule does to people not seen, by :func:`isocost.unseen`; computed when it is first
        asked for.
    feasibility_ : Feasibility
        Whether costs can be made equal, and at what price.
    response_ : str
        The method of the estimator that scores come from.
    classes_, n_features_in_, feature_names_in_
        As in every scikit-learn estimator; the last two if the wrapped estimator has them.

    Notes
    -----
    Costs are equal on average over the coin and on the held-out scores; on new data up to chance:
    ``unseen_`` says how far they are expected to differ there.
    The final estimator was trained on more rows than those of the folds, so its
    scores are a little better than those the rule was made from.

    fairlearn's GridSearch has predict_proba.  Its ExponentiatedGradient and ThresholdOptimizer have
    only the probability of a positive decision, which is not a risk score: they need
    ``recalibrate``.  Sensitive features are passed on to the estimators of fairlearn, and to others
    that name them in their signature or request them.

    Examples
    --------
    >>> import numpy as np
    >>> from isocost.learn import CalibratedEqualizedOdds
    >>> random = np.random.default_rng(0)
    >>> group = random.choice(["a", "b"], 4000)
    >>> X = random.normal(size=(4000, 2)) * np.where(group == "a", 2.0, 1.0)[:, None]
    >>> y = random.random(4000) < 1 / (1 + np.exp(-X.sum(axis=1)))
    >>> model = CalibratedEqualizedOdds(cost="fnr").fit(X, y, sensitive_features=group)
    >>> f"{model.audit_.disparity.difference:.3f}"
    '0.109'
    >>> f"{model.repaired_audit_.disparity.difference:.3f}"
    '0.000'
    >>> model.predict_proba(X[:2], sensitive_features=group[:2]).shape
    (2, 2)
    """

    _needs_calibration = True

    def __init__(
        self,
        estimator: Any = None,
        *,
        cost: CostLike = "fnr",
        method: Literal["withhold", "coarsen"] = "withhold",
        tolerance: float = 0.0,
        threshold: float = 0.5,
        allow_decision_changes: bool = False,
        infeasible: Literal["raise", "closest"] = "raise",
        recalibrate: Calibration | None = None,
        cv: Any = 5,
        groups_from: GroupsFrom = None,
        unknown: Literal["error", "keep"] = "error",
        salt: str = DEFAULT_SALT,
        random_state: Any = None,
        confidence: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.cost = cost
        self.method = method
        self.tolerance = tolerance
        self.threshold = threshold
        self.allow_decision_changes = allow_decision_changes
        self.infeasible = infeasible
        self.recalibrate = recalibrate
        self.cv = cv
        self.groups_from = groups_from
        self.unknown = unknown
        self.salt = salt
        self.random_state = random_state
        self.confidence = confidence

    def _check_words(self) -> None:
        super()._check_words()
        known = [name for name, repair in REPAIRS.items() if repair.goal == "cost"]
        check_word("method", self.method, known)
        check_word("infeasible", self.infeasible, ("raise", "closest"))

    def _make_rule(self, tally: Tally) -> tuple[Rule, Feasibility]:
        verdict = feasibility(tally, self.cost, self.tolerance)
        rule = REPAIRS[self.method].make_with(
            tally,
            cost=self.cost,
            tolerance=self.tolerance,
            threshold=self.threshold,
            infeasible=self.infeasible,
            allow_decision_changes=self.allow_decision_changes,
            salt=self.salt,
        )
        return rule, verdict

    def _audit(self, tally: Tally) -> Audit:
        return audit(tally, self.cost, self.threshold, self.confidence, tolerance=self.tolerance)


class EqualizedOdds(PostProcessor):
    """Give every group the same false-positive and false-negative rate; calibration is given up.

    Scores are flipped, h to 1 - h, by :func:`isocost.equalize_odds` (EO-Derived).

    Parameters
    ----------
    estimator : classifier
        With predict_proba or decision_function; LogisticRegression() if None.
    threshold : float
        The score from which people are treated as positive.
    rates : {"generalized", "hard"}
        Which rates to equalize: generalized ones, or those of the decisions at the threshold.
    recalibrate, cv, groups_from, unknown, salt, random_state, confidence
        As in :class:`CalibratedEqualizedOdds`.

    Attributes
    ----------
    feasibility_ : Feasibility
        Equal odds can always be reached in this way; this says whether *calibrated* scores could
        have equal generalized FNR instead.

    Notes
    -----
    The other attributes are those of :class:`CalibratedEqualizedOdds`.  Scores need not be
    calibrated, so ExponentiatedGradient and ThresholdOptimizer of fairlearn may be wrapped as
    they are.  For decisions at a threshold :class:`Reconciled` usually keeps more of them
    right, unless people are few (docs/decisions.md).

    Examples
    --------
    >>> import numpy as np
    >>> from isocost.learn import EqualizedOdds
    >>> random = np.random.default_rng(0)
    >>> group = random.choice(["a", "b"], 4000)
    >>> X = random.normal(size=(4000, 2)) * np.where(group == "a", 2.0, 1.0)[:, None]
    >>> y = random.random(4000) < 1 / (1 + np.exp(-X.sum(axis=1)))
    >>> model = EqualizedOdds().fit(X, y, sensitive_features=group)
    >>> round(model.repaired_audit_.generalized_equalized_odds_difference, 9)
    0.0
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        threshold: float = 0.5,
        rates: Literal["generalized", "hard"] = "generalized",
        recalibrate: Calibration | None = None,
        cv: Any = 5,
        groups_from: GroupsFrom = None,
        unknown: Literal["error", "keep"] = "error",
        salt: str = DEFAULT_SALT,
        random_state: Any = None,
        confidence: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.rates = rates
        self.recalibrate = recalibrate
        self.cv = cv
        self.groups_from = groups_from
        self.unknown = unknown
        self.salt = salt
        self.random_state = random_state
        self.confidence = confidence

    def _check_words(self) -> None:
        super()._check_words()
        check_word("rates", self.rates, ("generalized", "hard"))

    def _edges(self) -> tuple[float, ...]:
        threshold = check_threshold(self.threshold)
        # A bin of its own for 1/2, which flipped is itself; forests give it often.
        return (threshold, float(f"{1.0 - threshold:.12g}"), float(np.nextafter(0.5, 1.0)))

    def _make_rule(self, tally: Tally) -> tuple[Rule, Feasibility]:
        rule = equalize_odds(tally, self.threshold, rates=self.rates, salt=self.salt)
        return rule, feasibility(tally)


class Reconciled(PostProcessor):
    """Equalize rates at a threshold over all groups with calibrated scores.

    Scores are repaired by :func:`isocost.reconcile`: each becomes the share of positives of
    those who get it, so they are calibrated whatever they were before.

    Parameters
    ----------
    estimator : classifier
        With predict_proba or decision_function; LogisticRegression() if None.
    threshold, equal, tolerance, cost, keep, levels, floor, no_worse, monotone, infeasible
        As in :func:`isocost.reconcile`.
    recalibrate, cv, groups_from, unknown, salt, random_state, confidence
        As in :class:`CalibratedEqualizedOdds`.

    Attributes
    ----------
    feasibility_ : Reconcilability
        Whether the rates can be made equal, and if not, how nearly.

    Notes
    -----
    The other attributes are those of :class:`CalibratedEqualizedOdds`.

    Examples
    --------
    >>> import numpy as np
    >>> from isocost.learn import Reconciled
    >>> random = np.random.default_rng(0)
    >>> group = random.choice(["a", "b"], 4000)
    >>> X = random.normal(size=(4000, 2)) * np.where(group == "a", 2.0, 1.0)[:, None]
    >>> y = random.random(4000) < 1 / (1 + np.exp(-X.sum(axis=1)))
    >>> model = Reconciled().fit(X, y, sensitive_features=group)
    >>> round(model.repaired_audit_.equalized_odds_difference, 9)
    0.0
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        threshold: float = 0.5,
        equal: str | Sequence[str] = ("fpr", "fnr"),
        tolerance: float | Mapping[str, float] = 0.0,
        cost: CostLike | None = None,
        keep: Literal["information", "decisions", "scores"] = "information",
        levels: int | Literal["auto"] = "auto",
        floor: Mapping[str, float] | None = None,
        no_worse: bool = False,
        monotone: bool = False,
        infeasible: Literal["raise", "closest"] = "raise",
        recalibrate: Calibration | None = None,
        cv: Any = 5,
        groups_from: GroupsFrom = None,
        unknown: Literal["error", "keep"] = "error",
        salt: str = DEFAULT_SALT,
        random_state: Any = None,
        confidence: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.equal = equal
        self.tolerance = tolerance
        self.cost = cost
        self.keep = keep
        self.levels = levels
        self.floor = floor
        self.no_worse = no_worse
        self.monotone = monotone
        self.infeasible = infeasible
        self.recalibrate = recalibrate
        self.cv = cv
        self.groups_from = groups_from
        self.unknown = unknown
        self.salt = salt
        self.random_state = random_state
        self.confidence = confidence

    def _options(self) -> dict[str, Any]:
        names = [o.name for o in REPAIRS["reconcile"].options if o.name != "infeasible"]
        return {name: getattr(self, name) for name in names}

    def _check_words(self) -> None:
        super()._check_words()
        check_word("infeasible", self.infeasible, ("raise", "closest"))
        check_request(**self._options())

    def _make_rule(self, tally: Tally) -> tuple[Rule, Reconcilability]:
        options = {**self._options(), "salt": self.salt}
        try:
            rule = reconcile(tally, **options, infeasible="raise")
        except InfeasibleError as error:
            if self.infeasible == "raise" or not isinstance(error.feasibility, Reconcilability):
                raise
            return reconcile(tally, **options, infeasible="closest"), error.feasibility
        request = check_request(**self._options())
        return rule, Reconcilability.met(request)

    def _audit(self, tally: Tally) -> Audit:
        return audit(tally, self.cost or "fnr", self.threshold, self.confidence)


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
