"""EO-Trained, the paper's baseline: Zafar et al.'s program, and the search for its solution.

With z = w'x, labels y = -1 or 1, and g(y, z) what a row adds to the error of a kind,

    fpr: g = min(0, -z) where y = -1;   fnr: g = min(0, z) where y = 1

and 0 elsewhere, the program for two groups is

    minimise   mean log(1 + exp(-yz)) + |w|^2 / (2 C n)
    such that  |cov(1[group], g)| <= bound                   for each kind.

Every constraint is a difference of two convex functions.  Rows with equal features are one cell:
nothing in the program depends on which is which, so this changes no result.

The program is not convex, and a solver's "optimal" depends on where it started.  So it is solved
from several starts: convex-concave programs with several first penalties (dccp), and a smooth
solver from the unconstrained optimum, from points around it, and from what the convex-concave
programs gave.  Loss and constraints of every answer are computed again, and the best is kept.

Zafar, Valera, Gomez Rodriguez, Gummadi: Fairness Beyond Disparate Treatment & Disparate Impact.
WWW 2017.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from scipy.optimize import NonlinearConstraint, minimize
from scipy.special import expit

from isocost.cells import add_up
from isocost.typing import Floats
from reproduction.people import Column

MAX_ITER = 200
"""Maximum number of steps from each start, of either solver."""

GROWTH, HIGHEST_PENALTY = 1.2, 1e10
"""How the penalty grows with each step, as in the paper's own experiments."""

SHIFTS = (-2.0, -1.0, 1.0, 2.0)
"""How far the boundary is moved for further starts, in mean distances."""

NOISE = 1e-8
"""Objectives that differ by less are equal."""

TIE = 1e-6
"""Cells nearer to the boundary than this, relative to the mean distance, lie on it."""


@dataclass(frozen=True, eq=False)
class Program:
    """Loss and constraints over cells.

    Attributes
    ----------
    x : array of shape (cells, coefficients)
        Features of each cell, centred and scaled; the last column of ones is the intercept.
    weight, positive : array
        Number of rows in each cell, and of its positive rows.
    ridge : array
        The penalty of each squared coefficient.
    over, under : array of shape (kinds, cells)
        Covariance is -(over @ max(0, z) + under @ max(0, -z)).
    center, scale : array
        Of the features, to convert coefficients.
    """

    x: Floats
    weight: Floats
    positive: Floats
    ridge: Floats
    over: Floats
    under: Floats
    center: Floats
    scale: Floats

    def loss(self, w: Floats) -> float:
        """The mean logistic loss."""
        z = self.x @ w
        total = self.weight @ np.logaddexp(0.0, z) - self.positive @ z
        return float(total / self.weight.sum())

    def objective(self, w: Floats) -> float:
        """The mean logistic loss with the penalty."""
        return self.loss(w) + float(self.ridge @ w**2) / 2.0

    def gradient(self, w: Floats) -> Floats:
        """The gradient of the objective."""
        pull = self.weight * expit(self.x @ w) - self.positive
        return np.asarray(pull @ self.x / self.weight.sum() + self.ridge * w)

    def covariances(self, w: Floats) -> Floats:
        """The covariance of each kind."""
        z = self.x @ w
        return -(self.over @ np.maximum(z, 0.0) + self.under @ np.maximum(-z, 0.0))

    def jacobian(self, w: Floats) -> Floats:
        """The gradients of the covariances; at a kink, one of them."""
        z = self.x @ w
        return np.asarray((self.under * (z < 0) - self.over * (z > 0)) @ self.x)

    def distance(self, w: Floats) -> float:
        """The mean distance of the rows from the boundary, |z|."""
        return float(self.weight @ np.abs(self.x @ w) / self.weight.sum())

    @cached_property
    def free(self) -> Floats:
        """The coefficients of the least objective, whatever the covariances."""
        start = np.zeros(self.x.shape[1])
        options = {"maxiter": 2000, "ftol": 0.0, "gtol": 1e-9}
        found = minimize(
            self.objective, start, jac=self.gradient, method="L-BFGS-B", options=options
        )
        return np.asarray(found.x)

    def scores(self, w: Floats, X: Column) -> Floats:
        """The probability of the positive label for people with these features."""
        return np.asarray(expit((X - self.center) / self.scale @ w[:-1] + w[-1]))


def program(
    X: Column,
    y: Column,
    group: Column,
    *,
    kinds: Sequence[str] = ("fpr", "fnr"),
    C: float = np.inf,
) -> Program:
    """Gather rows into cells, and write the covariances in them."""
    cells, index = np.unique(X, axis=0, return_inverse=True)
    index, size = index.ravel(), len(cells)
    inside = (group == np.unique(group)[0]).astype(np.float64)
    inside = (inside - inside.mean()) / len(y)
    negative, positive = (add_up(index, inside * (y == v), size) for v in (0, 1))
    none = np.zeros(size)
    weight = np.bincount(index).astype(np.float64)
    center = weight @ cells / len(y)
    scale = np.sqrt(weight @ (cells - center) ** 2 / len(y))
    # The width of a constant feature is a rounding error.
    scale = np.where(scale <= 1e-12 * np.maximum(1.0, np.abs(center)), 1.0, scale)
    return Program(
        x=np.column_stack([(cells - center) / scale, np.ones(size)]),
        weight=weight,
        positive=add_up(index, y, size),
        ridge=np.append(1.0 / (C * len(y) * scale**2), 0.0),
        over=np.vstack([negative if kind == "fpr" else none for kind in kinds]),
        under=np.vstack([none if kind == "fpr" else positive for kind in kinds]),
        center=center,
        scale=scale,
    )


def path(program: Program, bounds: Sequence[float], penalties: Sequence[float]) -> list[Floats]:
    """The coefficients at each bound, given from loose to tight, each from where the last ended.

    What meets a tight bound meets a looser one.  So if the way down ended in a worse place than the
    next tighter bound did, the way back starts again from there: the loss never falls as the bound
    tightens.
    """
    answers: list[Floats] = []
    for bound in bounds:
        answers.append(train(program, bound, penalties, given=answers[-1:]))
    for i in range(len(bounds) - 2, -1, -1):
        loose, tight = Search(program, bounds[i]), Search(program, bounds[i + 1])
        # Less than a millionth is the solver's own noise.
        fine = program.objective(answers[i]) <= program.objective(answers[i + 1]) + 1e-6
        if tight.is_met(answers[i + 1]) and not (loose.is_met(answers[i]) and fine):
            answers[i] = train(program, bounds[i], penalties, given=[answers[i + 1]])
    return answers


def train(
    program: Program,
    bound: float = 0.0,
    penalties: Sequence[float] = (),
    *,
    restarts: int = 3,
    given: Iterable[Floats] = (),
) -> Floats:
    """The best coefficients of all starts.

    Parameters
    ----------
    program : Program
        Loss and covariances.
    bound : float
        The largest covariance.
    penalties : sequence of float
        First penalties of the convex-concave programs, one start each.
    restarts : int
        Number of random points near the unconstrained optimum that the smooth solver starts from.
    given : iterable of array
        Further starts.
    """
    search = Search(program, bound)
    if search.is_met(program.free):
        return program.free
    ends = [program.free]
    for penalty in penalties:
        raw = search.convex_concave(penalty)
        ends += [raw, search.smooth(raw)]
    for start in given:
        ends += [start, search.smooth(start)]
    ends += [search.smooth(start) for start in [program.free, *search.around(restarts)]]
    met = [end for end in ends if search.is_met(end)]
    lowest = min(map(program.objective, met), default=np.inf)
    # Of objectives that are the same but for noise, the one that exceeds the bound least.
    equal = [end for end in met if program.objective(end) <= lowest + NOISE]
    return search.settle(min(equal or ends, key=search.violation))


@dataclass(frozen=True, eq=False)
class Search:
    """A program and its bound."""

    program: Program
    bound: float

    @cached_property
    def tolerance(self) -> float:
        """The largest excess of the bound that counts as met."""
        return 1e-4 * min(1.0, self.program.distance(self.program.free)) + 1e-12

    def violation(self, w: Floats) -> float:
        """The excess of the largest covariance over the bound."""
        return max(0.0, float(np.abs(self.program.covariances(w)).max()) - self.bound)

    def is_met(self, w: Floats) -> bool:
        """True if the bound is met within the tolerance."""
        return self.violation(w) <= self.tolerance

    def around(self, restarts: int) -> Iterator[Floats]:
        """Starts near the unconstrained optimum.

        With the boundary moved towards all or none positive the solver finds the optima that give
        most people one class; from the middle it may end in the worse of the two.
        """
        free, random = self.program.free, np.random.default_rng(0)
        for shift in SHIFTS:
            yield free + np.append(np.zeros(len(free) - 1), shift * self.program.distance(free))
        spread = np.maximum(np.abs(free), free.std())
        for _ in range(restarts):
            yield free + spread * random.standard_normal(len(free))

    def settle(self, w: Floats) -> Floats:
        """Move the boundary off cells that lie on it, so that rounding decides nobody's answer.

        The optimum often lies where the boundary runs through a cell: its people are misclassified
        by a distance of 0.  Then the intercept moves by a few millionths, to the side where the
        groups' numbers of errors differ less, unless that would break the bound.
        """
        program, distance = self.program, self.program.distance(w)
        near = np.abs(program.x @ w) <= TIE * distance
        if not near.any() or near.all():
            return w

        def differing(side: Floats) -> float:
            z = program.x @ side
            return float(np.abs(program.over @ (z > 0) + program.under @ (z <= 0)).max())

        step = np.append(np.zeros(len(w) - 1), 2.0 * TIE * distance)
        return min(filter(self.is_met, (w - step, w + step)), key=differing, default=w)

    def smooth(self, start: Floats) -> Floats:
        """The end of sequential quadratic programming from a start.

        A single covariance need only be kept from passing the bound on the side where it is
        without a constraint: a local optimum lies on the bound, so the other side holds.  That
        leaves the solver more room.  With several it is tried both ways.
        """
        program = self.program
        sides = np.sign(program.covariances(program.free))
        ends: list[Floats] = []
        for signs in [sides, np.ones(len(sides))][: len(sides)]:
            limit = NonlinearConstraint(
                lambda w, signs=signs: signs * program.covariances(w),
                -self.bound if ends else -np.inf,
                self.bound,
                jac=lambda w, signs=signs: signs[:, np.newaxis] * program.jacobian(w),
            )
            found = minimize(
                program.objective,
                start,
                jac=program.gradient,
                method="SLSQP",
                constraints=limit,
                options={"maxiter": MAX_ITER, "ftol": 1e-12},
            )
            ends.append(found.x if np.isfinite(found.x).all() else start)

        def order(end: Floats) -> tuple[bool, float]:
            met = self.is_met(end)
            return not met, program.objective(end) if met else self.violation(end)

        return min(ends, key=order)

    def convex_concave(self, penalty: float) -> Floats:
        """The end of the convex-concave procedure that starts with this penalty.

        The concave side of each constraint is replaced by its tangent, and what is violated costs
        the penalty at first and more with each step.  It ends at its start if no step could be
        solved.
        """
        cp: Any = import_module("cvxpy")
        import_module("dccp")  # registers its method
        program = self.program
        w = cp.Variable(len(program.free))
        w.value = program.free
        total, z = program.weight.sum(), program.x @ w
        loss = (program.weight @ cp.logistic(z) - (program.positive @ program.x) @ w) / total
        if program.ridge.any():
            loss = loss + cp.sum_squares(cp.multiply(np.sqrt(program.ridge / 2.0), w))

        def side(over: Floats, under: Floats) -> Any:
            """The sum of the distances whose factor is positive, which is convex."""
            # The same on both sides, so that no tangent is 0: dccp fails where one is.
            terms = cp.sum(w)
            for way, factors in ((1.0, over), (-1.0, under)):
                cells = np.flatnonzero(factors > 0.0)
                if len(cells):
                    terms = terms + factors[cells] @ cp.pos((way * program.x[cells]) @ w)
            return terms

        constraints = []
        for over, under in zip(program.over, program.under, strict=True):
            one, other = side(over, under), side(-over, -under)
            constraints += [one <= other + self.bound, other <= one + self.bound]
        problem = cp.Problem(cp.Minimize(loss), constraints)
        try:
            with warnings.catch_warnings():
                # About inaccurate or unfinished steps; the answer is evaluated anyway.
                warnings.simplefilter("ignore")
                problem.solve(
                    method="dccp",
                    solver=cp.CLARABEL,
                    max_iter=MAX_ITER,
                    tau_ini=penalty,
                    mu=GROWTH,
                    tau_max=HIGHEST_PENALTY,
                    max_slack=self.tolerance / 10.0,
                )
        except (cp.SolverError, cp.DCPError, ValueError, ArithmeticError):
            return program.free
        solved = w.value is not None and np.isfinite(w.value).all()
        return np.asarray(w.value, dtype=np.float64) if solved else program.free
