"""Equalized odds in training: logistic regression with bounds on differences of error rates."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import validate_data

from isocost.checks import as_number, check_amount, check_flag, check_whole, check_word, short
from isocost.engines.columns import Encoded
from isocost.errors import (
    ConstraintWarning,
    DataError,
    IsocostWarning,
    Problem,
    UsageError,
    listing,
)
from isocost.groups import names_of
from isocost.learn.inputs import read_groups, read_labels, taken, weights_of
from isocost.typing import Floats, Ints

KINDS = {"both": {"fpr": 0, "fnr": 1}, "fpr": {"fpr": 0}, "fnr": {"fnr": 1}}
"""The rates that each constraint bounds, and the label of the people a rate is about."""

TEMPERATURES = (0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625)
"""Widths of the sigmoid in units of the decision function, from smooth to sharp."""

PRICE = 10.0
"""Price of exceeding half the bound by 1, in units of the loss; constraints are rarely worth 1."""

NEARLY_NOBODY = 0.05
"""A share of people so small that a model which gives it one of the classes is of little use."""


@dataclass(frozen=True, eq=False)
class Training:
    """The loss of linear models, and the rates that a constraint bounds."""

    x: Floats
    """Features, scaled; a last column of ones is the intercept."""
    label: Ints
    weight: Floats
    """Weights that add up to 1."""
    ridge: Floats
    """The penalty of each squared coefficient."""
    means: Any
    """A sparse array of shape (rates, rows): averages over the people of a group and label."""
    kind: Floats
    """An array of shape (rates, kinds): 1 where a rate is of a kind, FPR or FNR."""

    def objective(self, w: Floats) -> tuple[float, Floats]:
        """The mean logistic loss with the penalty, and its gradient."""
        z = self.x @ w
        loss = self.weight @ (np.logaddexp(0.0, z) - self.label * z) + self.ridge @ w**2 / 2.0
        return float(loss), (self.weight * (expit(z) - self.label)) @ self.x + self.ridge * w

    def rates(self, w: Floats, temperature: float) -> tuple[Floats, Floats]:
        """The smoothed share selected in each group and label, and its gradient.

        Among negatives this is the FPR; among positives 1 - FNR, whose differences are the same.
        """
        selected = expit(self.x @ w / temperature)
        slope = selected * (1.0 - selected) / temperature
        return self.means @ selected, self.means @ (slope[:, np.newaxis] * self.x)

    def differences(self, shares: Floats) -> Floats:
        """The largest difference of each kind, for the share selected in each group and label."""
        of_kind = self.kind.T > 0
        highest = np.where(of_kind, shares, -np.inf).max(axis=1)
        return np.asarray(highest - np.where(of_kind, shares, np.inf).min(axis=1))

    def hard(self, w: Floats) -> Floats:
        """The largest difference of each kind, for decisions."""
        return self.differences(self.means @ (self.x @ w > 0))

    def rarer(self, w: Floats) -> float:
        """The share of people who are given the class that fewer are given."""
        selected = float(self.weight @ (self.x @ w > 0))
        return min(selected, 1.0 - selected)

    def free(self) -> tuple[Floats, int]:
        """The coefficients without a constraint, and the number of steps."""
        start = np.zeros(self.x.shape[1])
        options = {"maxiter": 2000, "ftol": 0.0, "gtol": 1e-9}
        found = minimize(self.objective, start, jac=True, method="L-BFGS-B", options=options)
        return found.x, int(found.nit)

    def constrained(
        self, start: Floats, bound: float, temperature: float, max_iter: int
    ) -> tuple[Floats, int]:
        """The coefficients whose smoothed differences are at most the bound, and the steps.

        Each kind has a variable of its own, the middle of its rates, which all lie within
        bound / 2 + excess of it: two constraints for each group, not for each pair of groups.  The
        excess is one more variable, at a price that makes it 0 where that is possible; so there
        is always a feasible step, and an answer that is near where there is none.
        """
        count, kinds = self.x.shape[1], self.kind.shape[1]
        shares, _ = self.rates(start, temperature)
        middles = [(shares[mine].max() + shares[mine].min()) / 2.0 for mine in self.kind.T > 0]
        excess = max(0.0, float(self.differences(shares).max()) - bound) / 2.0
        price = np.append(np.zeros(kinds), PRICE)
        ones = np.ones((len(shares), 1))

        def objective(v: Floats) -> tuple[float, Floats]:
            loss, gradient = self.objective(v[:count])
            return loss + PRICE * v[-1], np.append(gradient, price)

        def room(v: Floats) -> Floats:
            off = self.rates(v[:count], temperature)[0] - self.kind @ v[count:-1]
            wide = bound / 2.0 + v[-1]
            return np.concatenate([wide - off, wide + off])

        def slope_of_room(v: Floats) -> Floats:
            slope = np.hstack([self.rates(v[:count], temperature)[1], -self.kind])
            return np.vstack([np.hstack([-slope, ones]), np.hstack([slope, ones])])

        found = minimize(
            objective,
            np.concatenate([start, middles, [excess]]),
            jac=True,
            method="SLSQP",
            bounds=[(None, None)] * (count + kinds) + [(0.0, None)],
            constraints={"type": "ineq", "fun": room, "jac": slope_of_room},
            options={"maxiter": max_iter, "ftol": 1e-9},
        )
        end = found.x[:count]
        return (end if np.isfinite(end).all() else start), int(found.nit)


@dataclass(eq=False, repr=False)
class EqualizedOddsLogisticRegression(LinearClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Logistic regression whose error rates differ by at most a bound between groups.

    With decision function z = w'x + b and groups k, it minimises

        C * sum of log(1 + exp(z)) - y z  +  w'w / 2

    such that the largest differences between groups of these two rates are at most the bound:

        FPR_k = mean over negatives of k of sigmoid(z / T),
        FNR_k = mean over positives of k of sigmoid(-z / T).

    As the temperature T falls they become the error rates of decisions at a probability of 1/2.
    T is halved from 0.5 on, each time starting from the last solution, and the first solution is
    kept whose *decisions* on the training people meet the bound: no sharper than needed, because
    sharp rates fit the accidents of the sample.  If none meets it, the nearest is kept, with a
    :class:`~isocost.errors.ConstraintWarning`.  Where logistic regression without a constraint
    meets the bound, that is the result.

    The group is used in :meth:`fit` only, never to predict, unless X holds it too.  The result is
    one linear model; nothing is randomized.

    Parameters
    ----------
    constraint : {"both", "fpr", "fnr"}
        The error rates whose differences are bounded.
    bound : float or None
        Largest difference allowed; None or infinity for no constraint.
    C : float or None
        As in ``LogisticRegression``: smaller is a stronger penalty; None or infinity for none.
    fit_intercept : bool
        Whether to add a constant.
    max_iter : int
        Maximum number of steps at each temperature.
    pos_label : optional
        The positive label, which FPR and FNR are about; by default the last in sorted order,
        which a warning says unless labels are 0 and 1, -1 and 1, or boolean.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_
        As in ``LogisticRegression``.
    n_iter_ : int
        Number of steps of all temperatures.
    temperature_ : float or None
        T of the solution; None if the bound is met without a constraint.
    differences_ : {rate: {"hard": float, "smoothed": float}}
        Largest differences on the training people: of decisions, and of smoothed rates at
        ``temperature_`` (without one, at the highest).
    met_ : bool
        True if the hard differences are at most the bound.
    pos_label_ : object
        The positive class.

    Notes
    -----
    The bound holds for the training people.  For others the differences are larger, by about what
    chance makes of rates in the smallest group; audit held-out people.  The program is not convex:
    there may be better solutions than the one found.  A bound of 0 is hardly ever met exactly.
    Steps take time that grows with the cube of the number of features: use it for hundreds, not
    for thousands.

    Zafar et al. bound the covariance of the group and the distance of misclassified people from
    the boundary instead.  fairlearn's ``ExponentiatedGradient`` takes any classifier and draws one
    of several models for each person.  docs/scikit-learn.md compares them on held-out people:
    with many features and few people in a group, ``ExponentiatedGradient`` is the better choice.

    References
    ----------
    Zafar, Valera, Gomez Rodriguez, Gummadi: Fairness Beyond Disparate Treatment & Disparate Impact.
    WWW 2017.

    Agarwal, Beygelzimer, Dudik, Langford, Wallach: A Reductions Approach to Fair Classification.
    ICML 2018 (``fairlearn.reductions.ExponentiatedGradient``).

    Examples
    --------
    >>> import numpy as np
    >>> from isocost.learn import EqualizedOddsLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 2000)
    >>> X = rng.normal(size=(2000, 2)) + np.outer(group, [1.0, 0.0])
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X.sum(axis=1)))
    >>> free = EqualizedOddsLogisticRegression(bound=None).fit(X, y, sensitive_features=group)
    >>> round(free.differences_["fpr"]["hard"], 2)
    0.24
    >>> model = EqualizedOddsLogisticRegression(bound=0.05).fit(X, y, sensitive_features=group)
    >>> model.met_, round(model.differences_["fpr"]["hard"], 2)
    (True, 0.05)
    """

    constraint: str = "both"
    bound: float | None = 0.05
    C: float | None = 1.0
    _: KW_ONLY
    fit_intercept: bool = True
    max_iter: int = 200
    pos_label: Any = None

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> EqualizedOddsLogisticRegression:
        """Train the model under the constraint.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            Numbers.
        y : array
            Two classes; ``pos_label`` says which is positive.
        sensitive_features : array, frame, name or list of names
            The group of each row: values, or columns of X that hold them.  Required.
        sample_weight : array, optional
            A weight of 2 is the same as the row twice.

        Returns
        -------
        self
        """
        check_word("constraint", self.constraint, tuple(KINDS))
        bound = math.inf if self.bound is None else as_number(self.bound)
        if bound != math.inf:
            check_amount("bound", self.bound, "use 0.05, or None for no constraint")
        C = math.inf if self.C is None else as_number(self.C)
        if not C > 0.0:
            rule, step = "must be a number above 0", "use 1.0, or None for no penalty"
            raise UsageError(Problem("C", rule, short(self.C), step))
        check_flag("fit_intercept", self.fit_intercept)
        max_iter = check_whole("max_iter", self.max_iter, 1)
        given = X
        X, y = validate_data(self, X, y, dtype=np.float64)
        groups = read_groups(given, sensitive_features)
        weight = weights_of(sample_weight, len(X))
        label, used = read_labels(self, y, weight), weight > 0
        X, label, groups, weight = X[used], label[used], taken(groups, used), weight[used]
        scaler = StandardScaler(with_mean=self.fit_intercept).fit(X, sample_weight=weight)
        x, ridge = scaler.transform(X), 1.0 / (C * weight.sum() * scaler.scale_**2)
        if self.fit_intercept:
            x, ridge = np.column_stack([x, np.ones(len(x))]), np.append(ridge, 0.0)
        kinds = KINDS[self.constraint]
        means, kind = _averages(groups, label, weight, list(kinds.values()))
        training = Training(x, label, weight / weight.sum(), ridge, means, kind)
        w = self._search(training, bound, max_iter)
        smoothed = training.differences(training.rates(w, self.temperature_ or TEMPERATURES[0])[0])
        self.differences_ = {
            name: {"hard": float(one), "smoothed": float(two)}
            for name, one, two in zip(kinds, training.hard(w), smoothed, strict=True)
        }
        coef = w[: X.shape[1]] / scaler.scale_
        intercept = w[-1] - coef @ scaler.mean_ if self.fit_intercept else 0.0
        # Coefficients are those of the last class.
        sign = 1.0 if self.classes_[1] == self.pos_label_ else -1.0
        self.coef_, self.intercept_ = sign * coef[np.newaxis], sign * np.array([intercept])
        return self

    def _search(self, training: Training, bound: float, max_iter: int) -> Floats:
        """The first solution that meets the bound, else the nearest, with a warning."""
        free, steps = training.free()
        best, nearest, self.temperature_ = free, training.hard(free).max(), None
        w = free
        for temperature in TEMPERATURES:
            # Averages may be off by rounding.
            if nearest <= bound + 1e-9:
                break
            w, count = training.constrained(w, bound, temperature, max_iter)
            steps, reached = steps + count, training.hard(w).max()
            if reached < nearest:
                best, nearest, self.temperature_ = w, reached, temperature
        self.n_iter_, self.met_ = max(1, steps), bool(nearest <= bound + 1e-9)
        if not self.met_:
            problem = Problem(
                "bound",
                f"must be met: no difference of error rates beyond {bound:g}",
                f"{nearest:.4f} on the training people",
                f"accept bound={math.ceil(nearest * 1000.0) / 1000.0:g}, aim lower with bound="
                f"{0.8 * bound:.2g}, bound one rate only with constraint=, or raise max_iter",
            )
            warnings.warn(ConstraintWarning(str(problem)), stacklevel=3)
        elif training.rarer(best) < NEARLY_NOBODY <= training.rarer(free):
            problem = Problem(
                "constraint",
                "should leave predictions of use",
                f'"{self.constraint}" with bound={bound:g}, met by giving '
                f"{1.0 - training.rarer(best):.1%} of the people one class",
                "raise the bound, choose another constraint, or use better features",
            )
            warnings.warn(ConstraintWarning(str(problem)), stacklevel=3)
        return best

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, by the logistic model."""
        z = self.decision_function(X)
        return np.column_stack([expit(-z), expit(z)])

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of the probability of each class."""
        z = self.decision_function(X)
        return -np.column_stack([np.logaddexp(0.0, z), np.logaddexp(0.0, -z)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _averages(
    groups: Encoded, label: Ints, weight: Floats, labels: list[int]
) -> tuple[Any, Floats]:
    """Averages over the people of each label and group, and the label's place of each average.

    Groups without the labels that the constraint is about are left out; a warning names them.
    """
    names = list(names_of(groups.values).values())
    if len(names) < 2:
        rule, got = "must hold at least two groups", f"only {names[0]!r}"
        step = "train without a constraint: sklearn.linear_model.LogisticRegression"
        raise DataError(Problem("sensitive_features", rule, got, step))
    cell, cells = groups.codes * 2 + label, 2 * len(names)
    counts = np.bincount(cell, minlength=cells).reshape(-1, 2)
    has_all = np.asarray(counts[:, labels].all(axis=1))
    words = " and ".join(("negative", "positive")[value] for value in labels)
    others = listing(name for name, one in zip(names, has_all, strict=True) if not one)
    if has_all.sum() < 2:
        step = "merge small groups, get more data, or choose another constraint"
        rule = f"needs {words} rows in at least two groups"
        raise DataError(Problem("constraint", rule, f"not in {others}", step))
    if others:
        text = f"Left out of the constraint, which needs {words} rows of a group: {others}."
        warnings.warn(text, IsocostWarning, stacklevel=3)
    share = weight / np.bincount(cell, weight, minlength=cells)[cell]
    every = csr_array((share, (cell, np.arange(len(cell)))), shape=(cells, len(cell)))
    compared = np.flatnonzero(has_all)
    rows = np.concatenate([compared * 2 + value for value in labels])
    return every[rows], np.repeat(np.eye(len(labels)), len(compared), axis=0)
