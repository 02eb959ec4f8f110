"""The program of equalized odds in training, and what its terms are worth.

With z = w'x, labels y = -1 or 1, and g(y, z) what a row adds to the error of a kind,

    fpr: g = min(0, -z) where y = -1;   fnr: g = min(0, z) where y = 1;   all: g = min(0, yz)

and 0 elsewhere, the program of Zafar et al. (2017) is

    minimise   mean log(1 + exp(-yz)) + |w|^2 / (2 C n)
    such that  |cov(1[group = k], g)| <= bound                   for each group k.

Every constraint is a difference of two convex functions.  Rows with equal features
are one cell: nothing in the program can tell them apart, so this changes no result.

The program of equalized odds in training as cvxpy and dccp have it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.errors import MissingDependencyError, Problem
from isocost.groups import Group

__all__ = ["KINDS", "Program", "convex_concave", "make_program", "need_dccp"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

KINDS = {"fpr": ("fpr",), "fnr": ("fnr",), "both": ("fpr", "fnr"), "all": ("all",)}
"""The kinds of error that each constraint bounds."""


@dataclass(frozen=True, eq=False)
class Program:
    """Loss and constraints over cells.

    Attributes
    ----------
    x : array of shape (cells, coefficients)
        Features of each cell, centred and scaled; a last column of ones is the intercept.
    weight, positive : array
        Weight of each cell, and of its positive rows.
    ridge : array
        What the square of each coefficient costs.
    over, under : array of shape (constraints, cells)
        Covariance is -(over @ max(0, z) + under @ max(0, -z)).
    names : tuple of (kind, group)
        Which covariance each constraint is.
    center, scale : array
        Of the features, to turn coefficients back.
    """

    x: Floats
    weight: Floats
    positive: Floats
    ridge: Floats
    over: Floats
    under: Floats
    names: tuple[tuple[str, Group], ...]
    center: Floats
    scale: Floats
    intercept: bool

    def loss(self, w: Floats) -> float:
        """The mean logistic loss."""
        z = self.x @ w
        total = self.weight @ np.logaddexp(0.0, z) - self.positive @ z
        return float(total / self.weight.sum())

    def objective(self, w: Floats) -> float:
        """The mean logistic loss with what the coefficients cost."""
        return self.loss(w) + float(self.ridge @ w**2) / 2.0

    def gradient(self, w: Floats) -> Floats:
        """The gradient of the objective."""
        from scipy.special import expit

        pull = self.weight * expit(self.x @ w) - self.positive
        found: Floats = pull @ self.x / self.weight.sum() + self.ridge * w
        return found

    def covariances(self, w: Floats) -> Floats:
        """The covariance that each constraint bounds."""
        z = self.x @ w
        found: Floats = -(self.over @ np.maximum(z, 0.0) + self.under @ np.maximum(-z, 0.0))
        return found

    def jacobian(self, w: Floats) -> Floats:
        """The gradients of the covariances; at a kink, one of them."""
        z = self.x @ w
        found: Floats = (self.under * (z < 0) - self.over * (z > 0)) @ self.x
        return found

    def violation(self, w: Floats, bound: float) -> float:
        """By how much the largest covariance exceeds the bound."""
        return max(0.0, float(np.abs(self.covariances(w)).max()) - bound)

    def binding(self, bound: float) -> Ints:
        """The constraints from which the others follow.

        Covariances of one kind add up to 0 over the groups.  The last is therefore 0 if the others
        are, and with two groups it mirrors the first.
        """
        groups = [group for kind, group in self.names if kind == self.names[0][0]]
        if len(groups) > 2 and bound > 0.0:
            return np.arange(len(self.names))
        last = groups[-1]
        return np.array([i for i, (_, group) in enumerate(self.names) if group != last])

    def distance(self, w: Floats) -> float:
        """The mean distance of the rows from the boundary, |z|."""
        return float(self.weight @ np.abs(self.x @ w) / self.weight.sum())

    def sample(self, cells: Ints) -> Program:
        """The program of some of the cells, with covariances of the same size."""
        share = self.weight[cells].sum() / self.weight.sum()
        return replace(
            self,
            x=self.x[cells],
            weight=self.weight[cells],
            positive=self.positive[cells],
            over=self.over[:, cells] / share,
            under=self.under[:, cells] / share,
        )

    def to_scaled(self, coef: Floats, intercept: float) -> Floats:
        """The coefficients of centred and scaled features."""
        if not self.intercept:
            return coef * self.scale
        return np.append(coef * self.scale, intercept + coef @ self.center)

    def from_scaled(self, w: Floats) -> tuple[Floats, float]:
        """The coefficients of the features as they came, and the intercept."""
        coef = w[: len(self.scale)] / self.scale
        return coef, float(w[-1] - coef @ self.center) if self.intercept else 0.0


def make_program(
    features: Floats,
    label: Ints,
    codes: Ints,
    groups: list[Group],
    weight: Floats,
    *,
    kinds: tuple[str, ...],
    C: float,
    intercept: bool,
) -> Program:
    """Gather rows into cells, and write the covariances in them."""
    cells, place = np.unique(features, axis=0, return_inverse=True)
    place = place.ravel()
    rows = _Rows(place, len(cells), label, codes, len(groups), weight)
    over, under = (np.vstack(parts) for parts in zip(*map(rows.factors, kinds), strict=True))
    mass = _sums(place, weight, len(cells))
    center, scale = _shape_of(cells, mass, intercept)
    ridge = 1.0 / (C * weight.sum() * scale**2)
    x = (cells - center) / scale
    if intercept:
        x, ridge = np.column_stack([x, np.ones(len(x))]), np.append(ridge, 0.0)
    return Program(
        x=x,
        weight=mass,
        positive=_sums(place, weight * label, len(cells)),
        ridge=ridge,
        over=over,
        under=under,
        names=tuple((kind, group) for kind in kinds for group in groups),
        center=center,
        scale=scale,
        intercept=intercept,
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows, as the covariances see them."""

    place: Ints
    cells: int
    label: Ints
    codes: Ints
    groups: int
    weight: Floats

    def factors(self, kind: str) -> tuple[Floats, Floats]:
        """What max(0, z) and max(0, -z) of each cell add to the covariance with each group."""
        none = np.zeros((self.groups, self.cells))
        over = none if kind == "fnr" else self._centred(self.label == 0)
        under = none if kind == "fpr" else self._centred(self.label == 1)
        return over, under

    def _centred(self, chosen: Any) -> Floats:
        """Per group and cell, the sum of (1[group] - share of the group) over the chosen rows."""
        weight = self.weight / self.weight.sum()
        share = _sums(self.codes, weight, self.groups)
        kept = np.where(chosen, weight, 0.0)
        both = _sums(self.codes * self.cells + self.place, kept, self.groups * self.cells)
        every = _sums(self.place, kept, self.cells)
        found: Floats = both.reshape(self.groups, self.cells) - np.outer(share, every)
        return found


def _sums(place: Ints, values: Floats, size: int) -> Floats:
    """The sum of the values at each place."""
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def _shape_of(cells: Floats, mass: Floats, intercept: bool) -> tuple[Floats, Floats]:
    """Where the features lie and how wide they are; 1 for features that do not vary.

    Without an intercept features keep their origin.
    """
    mean = mass @ cells / mass.sum()
    center = mean if intercept else np.zeros(cells.shape[1])
    scale = np.sqrt(mass @ (cells - center) ** 2 / mass.sum())
    # What rounding leaves of a constant is no width.
    flat = scale <= 1e-12 * np.maximum(1.0, np.abs(mean))
    return center, np.where(flat, 1.0, scale)


GROWTH, HIGHEST_PENALTY = 1.2, 1e10
"""How the penalty grows with each step, as in the paper's own experiments."""


def convex_concave(
    program: Program,
    start: Floats,
    bound: float,
    *,
    tau: float,
    slack: float,
    max_iter: int,
    verbose: bool,
) -> tuple[Floats, str]:
    """Where the convex-concave procedure ends, and its complaint if it has one.

    The concave side of each constraint is replaced by its tangent, and what is violated costs tau
    at first and more with each step.  The start is returned if no step could be solved.
    """
    cp = need_dccp()
    w = cp.Variable(len(start))
    w.value = start
    problem = cp.Problem(cp.Minimize(_loss(program, w)), _differences(program, bound, w))
    options = {"tau_ini": tau, "mu": GROWTH, "tau_max": HIGHEST_PENALTY, "max_slack": slack}
    try:
        with warnings.catch_warnings():
            # Of inaccurate or unfinished steps; the caller judges the answer anyway.
            warnings.simplefilter("ignore")
            problem.solve(
                method="dccp", max_iter=max_iter, solver=cp.CLARABEL, verbose=verbose, **options
            )
        note = "" if problem.status == cp.OPTIMAL else str(problem.status)
    except (cp.SolverError, cp.DCPError, ValueError, ArithmeticError) as error:
        note = str(error).splitlines()[0]
    if w.value is None or not np.isfinite(w.value).all():
        return start, note
    return np.asarray(w.value, dtype=np.float64), note


def _differences(program: Program, bound: float, w: Any) -> list[Any]:
    """Each covariance between -bound and bound, as a difference of convex functions."""
    cp = need_dccp()
    constraints = []
    for i in program.binding(bound):
        sides = []
        for sign in (1.0, -1.0):
            terms = [
                _distances(program, sign * factors, way, w)
                for way, factors in ((1.0, program.over[i]), (-1.0, program.under[i]))
                if (sign * factors > 0.0).any()
            ]
            # The same on both sides, so that no tangent is 0: dccp fails where one is.
            sides.append(sum(terms, start=cp.sum(w)))
        constraints += [sides[0] <= sides[1] + bound, sides[1] <= sides[0] + bound]
    return constraints


def _distances(program: Program, factors: Floats, way: float, w: Any) -> Any:
    """The sum of max(0, z) or max(0, -z) over the cells whose factor is positive."""
    cells = np.flatnonzero(factors > 0.0)
    return factors[cells] @ need_dccp().pos((way * program.x[cells]) @ w)


def _loss(program: Program, w: Any) -> Any:
    """The objective."""
    cp = need_dccp()
    total = program.weight.sum()
    z = program.x @ w
    loss = (program.weight @ cp.logistic(z) - (program.positive @ program.x) @ w) / total
    if program.ridge.any():
        loss = loss + cp.sum_squares(cp.multiply(np.sqrt(program.ridge / 2.0), w))
    return loss


def need_dccp() -> Any:
    """The module cvxpy, with dccp made known to it; an error that says how to get them."""
    try:
        cvxpy: Any = import_module("cvxpy")
        import_module("dccp")
    except ImportError as error:
        raise MissingDependencyError(
            Problem(
                "EqualizedOddsLogisticRegression",
                "needs cvxpy and dccp to train",
                f"no {error.name}",
                'pip install "isocost[train]", or pass taus=() to use the smooth solver alone',
            )
        ) from error
    return cvxpy
