"""Equalized odds in training: logistic regression whose errors do not vary with the group."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils.validation import check_random_state, validate_data

from isocost.checks import check_word
from isocost.errors import (
    ConstraintWarning,
    DataError,
    IsocostWarning,
    Problem,
    UsageError,
    listing,
)
from isocost.groups import Group, names_of
from isocost.learn.inputs import (
    Groups,
    check_random,
    positive_labels,
    read_groups,
    require_groups,
    two_classes,
    weights_of,
)
from isocost.learn.program import (
    KINDS,
    NEARLY_NOBODY,
    Program,
    Search,
    make_program,
    need_dccp,
    unconstrained,
)
from isocost.tables import text_table
from isocost.typing import Floats, Ints


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One bound, and the model that was trained with it.

    Attributes
    ----------
    bound : float
        The bound it was trained with.
    model : EqualizedOddsLogisticRegression
        The fitted model.
    achieved : {kind: {group: float}}
        The covariances.
    met : bool
        Whether the bound is met.
    loss, accuracy : float
        On the training data.
    fpr, fnr : {group: float}
        On the training data; NaN for a group without such rows.
    """

    bound: float
    model: EqualizedOddsLogisticRegression
    achieved: dict[str, dict[Group, float]]
    met: bool
    loss: float
    accuracy: float
    fpr: dict[Group, float]
    fnr: dict[Group, float]


@dataclass(frozen=True, eq=False)
class ConstraintPath:
    """Trained points from the loosest bound to the tightest; iterates over them."""

    points: tuple[PathPoint, ...]

    def __iter__(self) -> Iterator[PathPoint]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> PathPoint:
        return self.points[index]

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of numbers, ready for a data frame; rates have one column per group."""
        names = names_of(self.points[0].fpr)
        table: dict[str, list[Any]] = {
            name: [getattr(point, name) for point in self]
            for name in ("bound", "met", "loss", "accuracy")
        }
        table["covariance"] = [
            max(abs(v) for covariances in point.achieved.values() for v in covariances.values())
            for point in self
        ]
        for rate in ("fpr", "fnr"):
            for group, name in names.items():
                table[f"{rate} {name}"] = [getattr(point, rate)[group] for point in self]
        return table

    def __str__(self) -> str:
        table = self.to_dict()
        rows = [
            [("yes" if v else "no") if isinstance(v, bool) else f"{v:.5g}" for v in row]
            for row in zip(*table.values(), strict=True)
        ]
        return text_table(list(table), rows)


@dataclass(eq=False, repr=False)
class EqualizedOddsLogisticRegression(LinearClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Logistic regression with errors that are uncorrelated with the group (EO-Trained).

    Minimises the logistic loss under the constraint of Zafar et al. (2017): for every group, the
    covariance between being in it and the distance from the boundary of those who are
    misclassified lies between -bound and bound.  The group is not a feature unless X holds it, and
    is not needed to predict.

    Parameters
    ----------
    constraint : {"fpr", "fnr", "both", "all"}
        Which errors: false positives, false negatives, each of the two, or both together.
    bound : float
        The largest covariance.  It has the unit of the decision function, so a useful value lies
        between 0 and what ``achieved_`` is without a constraint.
    C : float or None
        As in ``LogisticRegression``; None or infinity for no penalty, which is the paper's program.
    fit_intercept : bool
        Whether to add a constant.
    max_iter : int
        Maximum number of steps from each start, of either solver.
    taus : tuple of float
        First penalties of the convex-concave programs, one start each.  With ``()`` only the
        smooth solver is used, and cvxpy and dccp are not needed.
    restarts : int
        Number of random points near the unconstrained optimum that the smooth solver starts from.
    max_cells : int or None
        Convex-concave programs are solved on at most this many distinct rows, drawn at random; the
        smooth solver then continues with all.  A thousand take about a second, all of them (None)
        minutes if there are many.
    least_selected : float
        The share of people that each of the two classes should get at least, on the training data.
        Solutions that meet the bound but give one of the classes to fewer are passed over, if
        there are others.  Bounds of 0 are often met at the lowest loss by giving nearly everybody
        one class: then there is a :class:`~isocost.errors.ConstraintWarning` that says so.
    tol : float
        By how much the bound may be exceeded, relative to the mean distance from the boundary at
        the unconstrained optimum, or to 1 if that is less.
    verbose : int
        1 shows a progress bar and every start on standard error; 2 also what the solver prints.
    random_state : int, RandomState or None
        For the random starts.
    pos_label : optional
        The positive label, which "fpr" and "fnr" are about; by default the last in sorted order,
        which a warning says unless labels are 0 and 1, -1 and 1, or boolean.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_, n_iter_
        As in ``LogisticRegression``; ``n_iter_`` counts the smooth solver's steps in the start
        that was kept.
    achieved_ : {kind: {group: float}}
        The covariances on the training data, of the groups that have the rows it takes.
    loss_ : float
        The mean logistic loss on the training data, without the penalty.
    met_ : bool
        Whether the bound is met; if not, a :class:`~isocost.errors.ConstraintWarning` was given.
    converged_ : bool
        Whether the solver of the start that was kept reported success; nothing relies on it.
    starts_ : tuple of Start
        What every start gave.

    Notes
    -----
    The constraint is a proxy.  It makes *distances* of misclassified people equal on average over
    everybody in a group, on the training data; error rates on other data come out near, not
    equal.  A program that is not convex may have better solutions than the one found.

    The optimum often puts the boundary through a number of people who have the same features.  It
    is then moved off them by a few millionths, so that rounding decides nobody's answer.

    References
    ----------
    Zafar, Valera, Gomez Rodriguez, Gummadi: Fairness Beyond Disparate Treatment & Disparate Impact.
    WWW 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from isocost.learn import EqualizedOddsLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 2000)
    >>> X = rng.normal(size=(2000, 2)) + np.outer(group, [1.0, 0.0])
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X.sum(axis=1)))
    >>> model = EqualizedOddsLogisticRegression("fpr").fit(X, y, sensitive_features=group)
    >>> model.met_, round(abs(model.achieved_["fpr"][0]), 6)
    (True, 0.0)
    """

    constraint: str = "fpr"
    bound: float = 0.0
    C: float | None = 1.0
    _: KW_ONLY
    fit_intercept: bool = True
    max_iter: int = 200
    taus: tuple[float, ...] = (0.5, 5.0, 50.0)
    restarts: int = 3
    max_cells: int | None = 1000
    least_selected: float = 0.0
    tol: float = 1e-4
    verbose: int = 0
    random_state: Any = 0
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
        self._check_parameters()
        program = self._program(X, y, sensitive_features, sample_weight)
        self._solve(program, ())
        return self

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, by the logistic model."""
        z = self.decision_function(X)
        return np.column_stack([expit(-z), expit(z)])

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of the probability of each class."""
        z = self.decision_function(X)
        return -np.column_stack([np.logaddexp(0.0, z), np.logaddexp(0.0, -z)])

    def constraint_path(
        self,
        X: Any,
        y: Any,
        bounds: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> ConstraintPath:
        """Train at several bounds, from loose to tight, each from where the last one ended.

        Returns
        -------
        ConstraintPath
            A point per bound: the fitted model, its loss, accuracy and error rates on these data.
            This estimator itself is left as it was.

        Notes
        -----
        What meets a tight bound meets a looser one.  So if the way down ended in a worse place than
        the next tighter bound did, the way back starts again from there: the loss never falls as
        the bound tightens.
        """
        copies = [clone(self).set_params(bound=bound) for bound in _descending(bounds)]
        warm: tuple[Floats, ...] = ()
        for copy in copies:
            copy._check_parameters()
            # Each copy learns its own classes and features; the program is the same for all.
            program = copy._program(X, y, sensitive_features, sample_weight)
            copy._solve(program, warm)
            warm = (copy._scaled(program),)
        for tight, loose in zip(copies[:0:-1], copies[-2::-1], strict=True):
            # Less than a millionth is the solver's own noise.
            ends = [program.objective(model._scaled(program)) for model in (loose, tight)]
            if tight.met_ and not (loose.met_ and ends[0] <= ends[1] + 1e-6):
                loose._solve(program, (tight._scaled(program),))
        groups = read_groups(X, sensitive_features).sorted()
        weight = weights_of(sample_weight, len(groups))
        return ConstraintPath(tuple(_point(copy, X, y, groups, weight) for copy in copies))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_parameters(self) -> None:
        check_word("constraint", self.constraint, tuple(KINDS))
        check_random(self.random_state)
        _check_number("bound", self.bound, 0.0, "use 0.0 for no covariance at all")
        _check_number("tol", self.tol, 0.0, "use 1e-4")
        _check_number("least_selected", self.least_selected, 0.0, "use 0.05, or 0.0 for any share")
        for name, least in (("max_iter", 1), ("restarts", 0)):
            _check_number(name, getattr(self, name), least, f"use {least} or more")
        if self.C is not None:
            _check_number("C", self.C, 0.0, "use 1.0, or None for no penalty", open=True)
        if self.max_cells is not None:
            _check_number("max_cells", self.max_cells, 1, "use 1000, or None for all")
        for tau in self.taus:
            _check_number("taus", tau, 0.0, "use (0.5, 5.0, 50.0)", open=True)
        if len(self.taus):
            need_dccp()

    def _program(self, X: Any, y: Any, sensitive: Any, sample_weight: Any) -> Program:
        """Check the rows and write the program."""
        given = X
        X, y = validate_data(self, X, y, dtype=np.float64)
        groups = read_groups(given, require_groups(sensitive))
        weight = weights_of(sample_weight, len(X))
        self.classes_, codes = two_classes(y, weight=weight)
        self.pos_label_, label = positive_labels(self.classes_, codes, self.pos_label)
        used = weight > 0
        X, label, groups, weight = X[used], label[used], groups.take(used).sorted(), weight[used]
        kinds = KINDS[self.constraint]
        compared = _compared(groups, label, kinds)
        C = np.inf if self.C is None else float(self.C)
        return make_program(
            X,
            label,
            groups,
            weight,
            kinds=kinds,
            compared=compared,
            C=C,
            intercept=self.fit_intercept,
        )

    def _scaled(self, program: Program) -> Floats:
        sign = self._sign()
        return program.to_scaled(sign * self.coef_[0], sign * float(self.intercept_[0]))

    def _sign(self) -> float:
        """Coefficients are those of the last class, and the program's those of the positive one."""
        return 1.0 if self.classes_[1] == self.pos_label_ else -1.0

    def _solve(self, program: Program, given: tuple[Floats, ...]) -> None:
        """Search, keep the best, and warn if it does not meet the bound."""
        free = unconstrained(program)
        search = Search(
            program,
            free,
            bound=float(self.bound),
            tolerance=self.tol * min(1.0, program.distance(free)) + 1e-12,
            max_iter=int(self.max_iter),
            taus=tuple(float(tau) for tau in self.taus),
            restarts=int(self.restarts),
            max_cells=self.max_cells,
            verbose=int(self.verbose),
            least_selected=float(self.least_selected),
        )
        starts = search.run(_generator(self.random_state), given)
        best = search.best(starts)
        w = best.w if best is starts[0] else search.settle(best.w)
        coef, intercept = program.from_scaled(w)
        sign = self._sign()
        self.coef_, self.intercept_ = sign * coef[np.newaxis], sign * np.array([intercept])
        self.n_iter_ = max(1, best.iterations)
        self.starts_, self.loss_, self.met_ = tuple(starts), program.loss(w), best.met
        self.converged_ = not best.note
        self.achieved_: dict[str, dict[Group, float]] = {kind: {} for kind, _ in program.names}
        for (kind, group), value in zip(program.names, program.covariances(w), strict=True):
            self.achieved_[kind][group] = float(value)
        if not best.met:
            _warn_unmet(self)
        elif program.is_constant(w) and not program.is_constant(free):
            _warn_constant(self)
        elif program.rarer(w) < NEARLY_NOBODY <= program.rarer(free):
            _warn_useless(self, program, w, free)


def _generator(random_state: Any) -> np.random.Generator:
    if random_state is None or isinstance(random_state, int | np.integer):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def _check_number(name: str, value: Any, least: float, step: str, open: bool = False) -> None:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    # A comparison with NaN is false.
    if not number or not (value > least if open else value >= least):
        words = f"above {least:g}" if open else f"at least {least:g}"
        raise UsageError(Problem(name, f"must be a number {words}", repr(value), step))


_NEEDED = {"fpr": (0,), "fnr": (1,), "all": ()}
"""The labels that every group must have for each kind of error."""


def _compared(groups: Groups, label: Ints, kinds: tuple[str, ...]) -> list[int]:
    """The codes of the groups with the rows that a constraint is about; a warning names others."""
    names = list(names_of(groups.names).values())
    if len(names) < 2:
        rule, got = "must hold at least two groups", f"only {names[0]!r}"
        step = "train without a constraint: sklearn.linear_model.LogisticRegression"
        raise DataError(Problem("sensitive_features", rule, got, step))
    counts = np.bincount(groups.codes * 2 + label, minlength=2 * len(names)).reshape(-1, 2)
    needed = sorted({value for kind in kinds for value in _NEEDED[kind]})
    has_all = np.asarray(counts[:, needed].all(axis=1))
    words = " and ".join(("negative", "positive")[value] for value in needed)
    others = listing(name for name, one in zip(names, has_all, strict=True) if not one)
    if has_all.sum() < 2:
        step = "merge small groups, get more data, or choose another constraint"
        rule = f"needs {words} rows in at least two groups"
        raise DataError(Problem("constraint", rule, f"not in {others}", step))
    if others:
        text = f"Left out of the constraint, which needs {words} rows of a group: {others}."
        warnings.warn(text, IsocostWarning, stacklevel=4)
    return [int(code) for code in np.flatnonzero(has_all)]


def _descending(bounds: Any) -> list[float]:
    listed = sorted({float(bound) for bound in np.atleast_1d(bounds)}, reverse=True)
    if not listed or not np.isfinite(listed).all():
        rule, step = "must be one or more finite numbers", "pass for example [0.02, 0.01, 0.0]"
        raise UsageError(Problem("bounds", rule, repr(bounds), step))
    return listed


def _point(
    model: EqualizedOddsLogisticRegression, X: Any, y: Any, groups: Groups, weight: Floats
) -> PathPoint:
    """Error rates and covariances of a fitted model on the rows it was trained on."""
    actual = np.asarray(y) == model.pos_label_
    predicted = model.predict(X) == model.pos_label_
    rates: dict[bool, dict[Group, float]] = {False: {}, True: {}}
    for code, group in enumerate(groups.names):
        for label in rates:
            rows = (groups.codes == code) & (actual == label)
            total = weight[rows].sum()
            wrong = weight[rows & (predicted != actual)].sum()
            rates[label][group] = float(wrong / total) if total else float("nan")
    return PathPoint(
        bound=model.bound,
        model=model,
        achieved=model.achieved_,
        met=model.met_,
        loss=model.loss_,
        accuracy=float(weight[predicted == actual].sum() / weight.sum()),
        fpr=rates[False],
        fnr=rates[True],
    )


def _warn_unmet(model: EqualizedOddsLogisticRegression) -> None:
    kind, group, value = max(
        ((k, g, v) for k, values in model.achieved_.items() for g, v in values.items()),
        key=lambda row: abs(row[2]),
    )
    name = names_of(model.achieved_[kind])[group]
    problem = Problem(
        "bound",
        f"must be met: no covariance beyond {model.bound:g}",
        f"{value:.6g} ({kind}, {name}) after {len(model.starts_)} starts",
        f"raise max_iter, try other taus, or accept bound={abs(value) * 1.01:.3g}",
    )
    warnings.warn(ConstraintWarning(str(problem)), stacklevel=4)


def _warn_constant(model: EqualizedOddsLogisticRegression) -> None:
    problem = Problem(
        "constraint",
        "should allow predictions that vary",
        f'"{model.constraint}" with bound={model.bound:g}, met only by giving everybody one class',
        "raise the bound, choose another constraint, or use better features",
    )
    warnings.warn(ConstraintWarning(str(problem)), stacklevel=4)


def _warn_useless(
    model: EqualizedOddsLogisticRegression, program: Program, w: Floats, free: Floats
) -> None:
    """The bound is met because nearly everybody gets one class; say what else would meet it."""
    selected, accuracy = program.selected(w), program.accuracy(w)
    others = [start.w for start in model.starts_ if start.met and program.is_useful(start.w, free)]
    step = "raise the bound, choose another constraint, or use better features"
    if others:
        other = max(others, key=program.accuracy)
        step = (
            f"least_selected={NEARLY_NOBODY:g}: of {len(others)} such solutions one selects "
            f"{program.selected(other):.1%} with an accuracy of {program.accuracy(other):.4f}; "
            f"or {step}"
        )
    problem = Problem(
        "constraint",
        "should leave predictions that are of use",
        f'"{model.constraint}" with bound={model.bound:g} is met by selecting {selected:.1%} of '
        f"the people, with an accuracy of {accuracy:.4f}",
        step,
    )
    warnings.warn(ConstraintWarning(str(problem)), stacklevel=4)
