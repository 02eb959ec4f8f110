"""The repairs of isocost as meta-estimators: classifiers that repair the scores of another.

All of them fit in the same way.

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

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from sklearn.metrics import accuracy_score

from isocost.checks import check_single, check_threshold, check_word
from isocost.costs import CostLike
from isocost.errors import InfeasibleError, Problem, UsageError
from isocost.learn.base import PostProcessor
from isocost.measures.audit import Audit, audit
from isocost.measures.feasibility import Feasibility, feasibility
from isocost.repairs.hand_over import Deferral, hand_over
from isocost.repairs.hand_over import check_request as check_deferral
from isocost.repairs.odds import equalize_odds
from isocost.repairs.pools import Minimize
from isocost.repairs.reconcilability import Levels, Reconcilability, check_request
from isocost.repairs.reconcile import reconcile
from isocost.repairs.registry import REPAIRS
from isocost.rules import Rule
from isocost.tallies import Tally
from isocost.typing import Bools

Infeasible = Literal["raise", "closest"]


@dataclass(eq=False, repr=False, kw_only=True)
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
    minimize : {"largest", "mean"}
        Which change of the scores "coarsen" makes as small as possible.
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
        needed, and every scorer of scikit-learn works.  The estimator does not see these columns;
        what a function uses it does see.
    train_on_groups : bool
        Whether the estimator sees the columns that ``groups_from`` names.
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
    pos_label : optional
        The positive label; by default the last in sorted order, which a warning says unless labels
        are 0 and 1, -1 and 1, or boolean.

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
    pos_label_ : object
        The positive class.
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

    cost: CostLike = "fnr"
    method: Literal["withhold", "coarsen"] = "withhold"
    tolerance: float = 0.0
    allow_decision_changes: bool = False
    minimize: Minimize = "largest"
    infeasible: Infeasible = "raise"

    def _check_words(self) -> None:
        super()._check_words()
        known = [name for name, repair in REPAIRS.items() if repair.goal == "cost"]
        check_word("method", self.method, known)
        check_word("minimize", self.minimize, get_args(Minimize))
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
            minimize=self.minimize,
            salt=self.salt,
        )
        return rule, verdict

    def _audit(self, tally: Tally) -> Audit:
        return audit(tally, self.cost, self.threshold, self.confidence, tolerance=self.tolerance)


@dataclass(eq=False, repr=False, kw_only=True)
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
    recalibrate, cv, groups_from, train_on_groups, unknown, salt, random_state, confidence
        As in :class:`CalibratedEqualizedOdds`, and so is ``pos_label``.

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

    rates: Literal["generalized", "hard"] = "generalized"

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


@dataclass(eq=False, repr=False, kw_only=True)
class RequestedRates(PostProcessor):
    """The base of estimators whose repair makes rates equal, or says why it cannot."""

    _repair: ClassVar[str]

    infeasible: Infeasible = "raise"

    def _options(self) -> dict[str, Any]:
        """The arguments of the repair, by the table of repairs."""
        names = [o.name for o in REPAIRS[self._repair].options if o.name != "infeasible"]
        return {name: getattr(self, name) for name in names}

    def _check_words(self) -> None:
        super()._check_words()
        check_word("infeasible", self.infeasible, ("raise", "closest"))
        self._asked()

    @abstractmethod
    def _asked(self) -> Any:
        """The verdict if the request is met; an error if it is invalid."""

    @abstractmethod
    def _made(self, tally: Tally, infeasible: Infeasible) -> Rule:
        """The rule of the repair."""

    def _make_rule(self, tally: Tally) -> tuple[Rule, Any]:
        try:
            return self._made(tally, "raise"), self._asked()
        except InfeasibleError as error:
            if self.infeasible == "raise":
                raise
            return self._made(tally, "closest"), error.feasibility


@dataclass(eq=False, repr=False, kw_only=True)
class Reconciled(RequestedRates):
    """Equalize rates at a threshold over all groups with calibrated scores.

    Scores are repaired by :func:`isocost.reconcile`: each becomes the share of positives of
    those who get it, so they are calibrated whatever they were before.

    Parameters
    ----------
    estimator : classifier
        With predict_proba or decision_function; LogisticRegression() if None.
    threshold, equal, tolerance, cost, levels, floor, no_worse, monotone, infeasible
        As in :func:`isocost.reconcile`.
    recalibrate, cv, groups_from, train_on_groups, unknown, salt, random_state, confidence
        As in :class:`CalibratedEqualizedOdds`, and so is ``pos_label``.

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

    cost: CostLike | None = None
    equal: str | Sequence[str] = ("fpr", "fnr")
    tolerance: float | Mapping[str, float] = 0.0
    levels: Levels = "auto"
    floor: Mapping[str, float] | None = None
    no_worse: bool = False
    monotone: bool = False

    _repair = "reconcile"

    def _asked(self) -> Reconcilability:
        return Reconcilability.met(check_request(**self._options()))

    def _made(self, tally: Tally, infeasible: Infeasible) -> Rule:
        return reconcile(tally, **self._options(), salt=self.salt, infeasible=infeasible)

    def _audit(self, tally: Tally) -> Audit:
        return audit(tally, self.cost or "fnr", self.threshold, self.confidence)


@dataclass(eq=False, repr=False, kw_only=True)
class HandOver(RequestedRates):
    """Hand some people over, and treat the others of all groups alike, with calibrated scores.

    Scores are repaired by :func:`isocost.hand_over`: everybody gets a calibrated score, or none.
    Those without one have NaN in :meth:`predict_proba`, and in :meth:`predict` a third value, which
    is no class.

    Parameters
    ----------
    estimator : classifier
        With predict_proba or decision_function; LogisticRegression() if None.
    share, tolerance, threshold, keep, levels, infeasible
        As in :func:`isocost.hand_over`.
    handed_over_label : optional
        What :meth:`predict` returns for people who are handed over.  By default, for classes that
        are whole numbers or booleans, the whole number before the least of them (-1 for 0 and 1),
        NaN for other numbers, and "handed over" for texts.
    recalibrate, cv, groups_from, train_on_groups, unknown, salt, random_state, confidence
        As in :class:`CalibratedEqualizedOdds`, and so is ``pos_label``.

    Attributes
    ----------
    handed_over_label_ : object
        What :meth:`predict` returns for people who are handed over.
    feasibility_ : Deferral
        Whether the share is enough; ``smallest_share`` is NaN unless it had to be computed.

    Notes
    -----
    The other attributes are those of :class:`CalibratedEqualizedOdds`; ``classes_`` are the two
    classes.  ``repaired_audit_`` is about the decided and says how many are not, and so does
    ``rule_.handed_over(tally_)``.  Scorers of scikit-learn that need a probability of everybody
    refuse NaN: pass them the rows where :meth:`handed_over` is False.

    Examples
    --------
    >>> import numpy as np
    >>> from isocost.learn import HandOver
    >>> random = np.random.default_rng(0)
    >>> group = random.choice(["a", "b"], 4000)
    >>> X = random.normal(size=(4000, 2)) + np.where(group == "a", 0.5, 0.0)[:, None]
    >>> y = (random.random(4000) < 1 / (1 + np.exp(-X.sum(axis=1)))).astype(int)
    >>> model = HandOver(share=0.3).fit(X, y, sensitive_features=group)
    >>> round(model.repaired_audit_.equalized_odds_difference, 9)
    0.0
    >>> np.unique(model.predict(X, sensitive_features=group)).tolist()
    [-1, 0, 1]
    >>> gone = model.handed_over(X, sensitive_features=group)
    >>> f"{gone.mean():.2f}"
    '0.30'
    """

    share: float | Literal["least"] | None = 0.25
    tolerance: float = 0.0
    keep: Literal["information", "brier"] = "information"
    levels: Levels = "auto"
    handed_over_label: Any = None

    _repair = "hand_over"

    def _check_words(self) -> None:
        super()._check_words()
        check_single("handed_over_label", self.handed_over_label)

    def _asked(self) -> Deferral:
        request = check_deferral(**self._options())
        return Deferral(True, request.share, request.threshold)

    def _made(self, tally: Tally, infeasible: Infeasible) -> Rule:
        return hand_over(tally, **self._options(), salt=self.salt, infeasible=infeasible)

    def _make_rule(self, tally: Tally) -> tuple[Rule, Any]:
        self.handed_over_label_ = self._third_value()
        return super()._make_rule(tally)

    def _third_value(self) -> Any:
        """What stands for people who are handed over; an error if it is one of the classes."""
        classes = self.classes_
        if self.handed_over_label is None:
            if classes.dtype.kind in "biu":
                return int(classes.min()) - 1
            if classes.dtype.kind == "f":
                return np.nan
            return "handed over"
        if self.handed_over_label in classes.tolist():
            rule, step = "must be none of the classes", "leave it out, or use another value"
            raise UsageError(Problem("handed_over_label", rule, f"{classes.tolist()}", step))
        return self.handed_over_label

    def handed_over(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Bools:
        """Whether each person is handed over; the arguments are those of :meth:`predict_proba`."""
        return np.isnan(self._repaired(X, sensitive_features, ids))

    def predict(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Any:
        """The class of each row, or ``handed_over_label_``, which is no class."""
        scores = self._repaired(X, sensitive_features, ids)
        predicted, gone = self._decisions(scores), np.isnan(scores)
        if not gone.any():
            return predicted
        if predicted.dtype.kind == "b":
            predicted = predicted.astype(np.intp)
        third = np.asarray(self.handed_over_label_)
        alike = any(predicted.dtype.kind in k and third.dtype.kind in k for k in ("iuf", "U"))
        both = predicted.astype(np.result_type(predicted, third) if alike else object)
        both[gone] = self.handed_over_label_
        return both

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        sensitive_features: Any = None,
        ids: Any = None,
    ) -> float:
        """The accuracy of :meth:`predict` among the decided; NaN if nobody is.

        The outcomes of the others may be missing.  How many there are, :meth:`handed_over` says.
        """
        repaired = self._repaired(X, sensitive_features, ids)
        decided = ~np.isnan(repaired)
        if not decided.any():
            return float("nan")
        predicted = self._decisions(repaired)[decided]
        weight = None if sample_weight is None else np.asarray(sample_weight)[decided]
        return float(accuracy_score(np.asarray(y)[decided], predicted, sample_weight=weight))
