"""The program of equalized odds in training, and the search for its solution.

With z = w'x, labels y = -1 or 1, and g(y, z) what a row adds to the error of a kind,

    fpr: g = min(0, -z) where y = -1;   fnr: g = min(0, z) where y = 1;   all: g = min(0, yz)

and 0 elsewhere, the program of Zafar et al. (2017) is

    minimise   mean log(1 + exp(-yz)) + |w|^2 / (2 C n)
    such that  |cov(1[group = k], g)| <= bound                   for each group k.

Every constraint is a difference of two convex functions.  Rows with equal features are one cell:
nothing in the program depends on which is which, so this changes no result.

The program is not convex, and a solver's "optimal" depends on where it started.  So it is solved
from several starts: convex-concave programs with several first penalties (dccp), and a smooth
solver from the unconstrained optimum, from random points around it, and from what the
convex-concave programs gave.  Loss and constraints of every answer are computed again, and the best
is kept.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import NonlinearConstraint, minimize, root
from scipy.special import expit

from isocost.cells import add_up
from isocost.errors import require_package
from isocost.groups import Group
from isocost.learn.inputs import Groups
from isocost.typing import Floats, Ints

KINDS = {"fpr": ("fpr",), "fnr": ("fnr",), "both": ("fpr", "fnr"), "all": ("all",)}
"""The kinds of error that each constraint bounds."""

GROWTH, HIGHEST_PENALTY = 1.2, 1e10
"""How the penalty grows with each step, as in the paper's own experiments."""

MANY = 400
"""With more coefficients than this the smooth solver is slower than what it improves."""

SHIFTS = (-2.0, -1.0, 1.0, 2.0)
"""How far the boundary is moved for further starts, in mean distances."""

NOISE = 1e-8
"""Objectives that differ by less are equal."""

TURNS = 10
"""Number of further starts if all others give nearly everybody one class."""

NEARLY_NOBODY = 0.05
"""A share of people so small that a model which gives it one of the classes is of little use."""

TIE = 1e-6
"""Cells nearer to the boundary than this, relative to the mean distance, lie on it."""


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
        The penalty of each squared coefficient.
    over, under : array of shape (constraints, cells)
        Covariance is -(over @ max(0, z) + under @ max(0, -z)).
    names : tuple of (kind, group)
        Which covariance each constraint is.
    center, scale : array
        Of the features, to convert coefficients.
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
        """The mean logistic loss with the penalty."""
        return self.loss(w) + float(self.ridge @ w**2) / 2.0

    def gradient(self, w: Floats) -> Floats:
        """The gradient of the objective."""
        pull = self.weight * expit(self.x @ w) - self.positive
        return np.asarray(pull @ self.x / self.weight.sum() + self.ridge * w)

    def hessian(self, w: Floats) -> Floats:
        """The second derivatives of the objective."""
        p = expit(self.x @ w)
        curvature = (self.x.T * (self.weight * p * (1.0 - p))) @ self.x
        return np.asarray(curvature / self.weight.sum() + np.diag(self.ridge))

    def covariances(self, w: Floats) -> Floats:
        """The covariance that each constraint bounds."""
        z = self.x @ w
        return -(self.over @ np.maximum(z, 0.0) + self.under @ np.maximum(-z, 0.0))

    def jacobian(self, w: Floats) -> Floats:
        """The gradients of the covariances; at a kink, one of them."""
        z = self.x @ w
        return np.asarray((self.under * (z < 0) - self.over * (z > 0)) @ self.x)

    def violation(self, w: Floats, bound: float) -> float:
        """By how much the largest covariance exceeds the bound."""
        return max(0.0, float(np.abs(self.covariances(w)).max()) - bound)

    def rate_gap(self, w: Floats) -> float:
        """The largest covariance between a group and its number of errors, not their distance."""
        z = self.x @ w
        return float(np.abs(self.over @ (z > 0) + self.under @ (z <= 0)).max())

    def selected(self, w: Floats) -> float:
        """The share of people who are given the positive class."""
        return float(self.weight @ (self.x @ w > 0) / self.weight.sum())

    def rarer(self, w: Floats) -> float:
        """The share of people who are given the class that fewer are given."""
        return min(self.selected(w), 1.0 - self.selected(w))

    def accuracy(self, w: Floats) -> float:
        """The share of people who are given the right class."""
        right = np.where(self.x @ w > 0, self.positive, self.weight - self.positive)
        return float(right.sum() / self.weight.sum())

    def is_useful(self, w: Floats, free: Floats, least: float = NEARLY_NOBODY) -> bool:
        """True if both classes are given to many, and not by the noise of coefficients near 0."""
        return self.rarer(w) >= least and self.distance(w) > 1e-3 * self.distance(free)

    def is_constant(self, w: Floats) -> bool:
        """True if everybody is given one class."""
        return len(np.unique(self.x @ w > 0)) == 1

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
    groups: Groups,
    weight: Floats,
    *,
    kinds: tuple[str, ...],
    compared: Sequence[int],
    C: float,
    intercept: bool,
) -> Program:
    """Gather rows into cells, and write the covariances of the groups ``compared`` in them."""
    cells, index = np.unique(features, axis=0, return_inverse=True)
    index, size = index.ravel(), len(cells)
    negative, positive = (
        _centered(index, size, groups, weight, label == value, compared) for value in (0, 1)
    )
    none = np.zeros_like(negative)
    mass = add_up(index, weight, size)
    center, scale = _shape_of(cells, mass, intercept)
    ridge = 1.0 / (C * weight.sum() * scale**2)
    x = (cells - center) / scale
    if intercept:
        x, ridge = np.column_stack([x, np.ones(len(x))]), np.append(ridge, 0.0)
    return Program(
        x=x,
        weight=mass,
        positive=add_up(index, weight * label, size),
        ridge=ridge,
        over=np.vstack([none if kind == "fnr" else negative for kind in kinds]),
        under=np.vstack([none if kind == "fpr" else positive for kind in kinds]),
        names=tuple((kind, groups.names[code]) for kind in kinds for code in compared),
        center=center,
        scale=scale,
        intercept=intercept,
    )


def _centered(
    index: Ints, cells: int, groups: Groups, weight: Floats, chosen: Any, compared: Sequence[int]
) -> Floats:
    """Per group and cell, the sum of (1[group] - share of the group) over the chosen rows.

    Shares are those among the groups ``compared``, and people of other groups do not count.
    """
    codes, count = groups.codes, len(groups.names)
    weight = np.where(np.isin(codes, compared), weight, 0.0)
    weight = weight / weight.sum()
    share, counted = add_up(codes, weight, count), np.where(chosen, weight, 0.0)
    both = add_up(codes * cells + index, counted, count * cells).reshape(count, cells)
    centered: Floats = both - np.outer(share, add_up(index, counted, cells))
    return centered[list(compared)]


def _shape_of(cells: Floats, mass: Floats, intercept: bool) -> tuple[Floats, Floats]:
    """Centre and width of the features; the width is 1 for features that do not vary.

    Without an intercept features keep their origin.
    """
    mean = mass @ cells / mass.sum()
    center = mean if intercept else np.zeros(cells.shape[1])
    scale = np.sqrt(mass @ (cells - center) ** 2 / mass.sum())
    # The width of a constant feature is a rounding error.
    flat = scale <= 1e-12 * np.maximum(1.0, np.abs(mean))
    return center, np.where(flat, 1.0, scale)


@dataclass(frozen=True, eq=False)
class Start:
    """The end of the search from one start.

    Attributes
    ----------
    name : str
        "unconstrained", "tau=5.0" (a convex-concave program), "random 1" or "given"; with
        " + smooth" when the smooth solver went on from there.
    loss, objective, violation : float
        Computed from the coefficients; violation is how far the bound is exceeded.
    met : bool
        Whether the bound is met within the tolerance.
    iterations : int
        Of the smooth solver; 0 if it was not used.
    seconds : float
        Time taken.
    note : str
        The solver's message, if it did not converge.
    """

    name: str
    loss: float
    objective: float
    violation: float
    met: bool
    iterations: int
    seconds: float
    note: str
    w: Floats


@dataclass(frozen=True, eq=False)
class Search:
    """A program, its bound, and how hard to look for a solution."""

    program: Program
    free: Floats
    bound: float
    tolerance: float
    max_iter: int
    taus: tuple[float, ...]
    restarts: int
    max_cells: int | None = None
    verbose: int = 0
    least_selected: float = 0.0

    @cached_property
    def free_covariances(self) -> Floats:
        """The covariances at the unconstrained optimum."""
        return self.program.covariances(self.free)

    def run(self, rng: np.random.Generator, given: Iterable[Floats]) -> list[Start]:
        """Every start, from the unconstrained coefficients on; only that if it meets the bound."""
        first = self.judge("unconstrained", self.free)
        if first.met:
            return [first]
        starts: list[Start] = [first]
        with _progress(len(self.taus) + 1, self.verbose) as report:
            part = self._part(rng)
            for tau in self.taus:
                raw = self._convex_concave(part, tau)
                starts += [raw, *self._smoothed(raw)]
                report(starts[-1])
            begins = [first, *(self.judge("given", w) for w in given)]
            begins += [self.judge(name, w) for name, w in self._around(rng)]
            for begin in begins:
                starts += [begin] * (begin.name == "given") + self._smoothed(begin)
            if self.program.intercept and self._is_useless(starts):
                # Boundaries in any direction lead to optima that give both classes to many.
                for i in range(TURNS):
                    starts += self._smoothed(self.judge(f"turned {i + 1}", self._turned(rng)))
            report(starts[-1])
        return starts

    def _is_useless(self, starts: list[Start]) -> bool:
        """True if the bound is met, but only by giving nearly everybody one class."""
        best = self.best(starts)
        enough = max(self.least_selected, NEARLY_NOBODY)
        return best.met and self.program.rarer(best.w) < enough <= self.program.rarer(self.free)

    def _around(self, rng: np.random.Generator) -> Iterator[tuple[str, Floats]]:
        """Starts near the unconstrained optimum.

        With the boundary moved towards all or none positive the solver finds the optima that give
        most people one class; from the middle it may end in the worse of the two.
        """
        free = self.free
        if self.program.intercept:
            for shift in SHIFTS:
                moved = free.copy()
                moved[-1] += shift * self.program.distance(free)
                yield f"shifted {shift:+g}", moved
        spread = np.maximum(np.abs(free), free.std())
        for i in range(self.restarts):
            yield f"random {i + 1}", free + spread * rng.standard_normal(len(free))

    def _turned(self, rng: np.random.Generator) -> Floats:
        """A boundary in any direction, with a tenth of the people or more on each side."""
        w = np.append(rng.standard_normal(len(self.free) - 1), 0.0)
        w *= np.linalg.norm(self.free[:-1]) / np.linalg.norm(w)
        z = np.sort(self.program.x @ w)
        w[-1] = -z[int(rng.uniform(0.1, 0.9) * len(z))]
        return w

    def best(self, starts: list[Start]) -> Start:
        """The lowest objective among those that meet the bound; else the smallest violation.

        Of objectives that are the same but for noise, the one that exceeds the bound least.
        """
        met = [start for start in starts if start.met]
        # Those that select enough people, if there are any.
        enough = self.least_selected
        if enough > 0.0:
            met = [s for s in met if self.program.is_useful(s.w, self.free, enough)] or met
        lowest = min((start.objective for start in met), default=np.inf)
        equal = [start for start in met if start.objective <= lowest + NOISE]
        return min(equal or starts, key=lambda start: start.violation)

    def judge(
        self, name: str, w: Floats, iterations: int = 0, seconds: float = 0.0, note: str = ""
    ) -> Start:
        """Evaluate coefficients, whatever a solver reports about them."""
        loss, objective = self.program.loss(w), self.program.objective(w)
        violation = self.program.violation(w, self.bound)
        met = bool(violation <= self.tolerance)
        return Start(name, loss, objective, violation, met, iterations, seconds, note, w)

    def settle(self, w: Floats) -> Floats:
        """Move the boundary off cells that lie on it, so that rounding decides nobody's answer.

        The optimum often lies where the boundary runs through a cell: its people are misclassified
        by a distance of 0.  Then the intercept moves by a few millionths, to the side where the
        groups' shares of errors differ less, unless that would break the bound.
        """
        program, distance = self.program, self.program.distance(w)
        near = np.abs(program.x @ w) <= TIE * distance
        if not program.intercept or not near.any() or near.all():
            return w
        step = 2.0 * TIE * distance
        sides = [w + np.append(np.zeros(len(w) - 1), side) for side in (-step, step)]
        meeting = [side for side in sides if self.judge("", side).met]
        return min(meeting, key=program.rate_gap, default=w)

    def _part(self, rng: np.random.Generator) -> Program:
        """The program, or a sample of as many cells as a cone solver can handle."""
        cells = len(self.program.weight)
        if self.max_cells is None or cells <= self.max_cells:
            return self.program
        return self.program.sample(np.sort(rng.choice(cells, self.max_cells, replace=False)))

    def _convex_concave(self, program: Program, tau: float) -> Start:
        """The end of the convex-concave procedure that starts with the penalty tau.

        The concave side of each constraint is replaced by its tangent, and what is violated costs
        tau at first and more with each step.  It ends at its start if no step could be solved.
        """
        begun, cp = time.perf_counter(), need_dccp()
        w = cp.Variable(len(self.free))
        w.value = self.free
        objective = cp.Minimize(_objective(cp, program, w))
        problem = cp.Problem(objective, _differences(cp, program, self.bound, w))
        try:
            with warnings.catch_warnings():
                # About inaccurate or unfinished steps; the answer is evaluated anyway.
                warnings.simplefilter("ignore")
                problem.solve(
                    method="dccp", solver=cp.CLARABEL, max_iter=self.max_iter, tau_ini=tau,
                    mu=GROWTH, tau_max=HIGHEST_PENALTY, max_slack=self.tolerance / 10.0,
                    verbose=self.verbose > 1,
                )  # fmt: skip
            note = "" if problem.status == cp.OPTIMAL else str(problem.status)
        except (cp.SolverError, cp.DCPError, ValueError, ArithmeticError) as error:
            note = str(error).splitlines()[0]
        solved = w.value is not None and np.isfinite(w.value).all()
        end = np.asarray(w.value, dtype=np.float64) if solved else self.free
        return self.judge(f"tau={tau:g}", end, 0, time.perf_counter() - begun, note)

    def _smoothed(self, start: Start) -> list[Start]:
        """The end of sequential quadratic programming from a start; none if it is too large.

        A single covariance need only be kept from passing the bound on the side where it is
        without a constraint: a local optimum lies on the bound, so the other side holds.  That
        leaves the solver more room.  With several it is tried both ways.
        """
        if len(start.w) > MANY:
            return []
        rows = self.program.binding(self.bound)
        ends = [self._smooth(start, rows, one_sided=True)]
        if len(rows) > 1:
            ends.append(self._smooth(start, rows, one_sided=False))
        return [min(ends, key=lambda s: (not s.met, s.objective if s.met else s.violation))]

    def _smooth(self, start: Start, rows: Ints, one_sided: bool) -> Start:
        program = self.program
        signs = np.sign(self.free_covariances[rows]) if one_sided else np.ones(len(rows))
        limit = NonlinearConstraint(
            lambda w: signs * program.covariances(w)[rows],
            -np.inf if one_sided else -self.bound,
            self.bound,
            jac=lambda w: signs[:, np.newaxis] * program.jacobian(w)[rows],
        )
        begun = time.perf_counter()
        result = minimize(
            program.objective,
            start.w,
            jac=program.gradient,
            method="SLSQP",
            constraints=limit,
            options={"maxiter": self.max_iter, "ftol": 1e-12},
        )
        seconds = start.seconds + time.perf_counter() - begun
        w = result.x if np.isfinite(result.x).all() else start.w
        note = "" if result.success else str(result.message)
        return self.judge(f"{start.name} + smooth", w, int(result.nit), seconds, note)


def unconstrained(program: Program) -> Floats:
    """The coefficients of the least objective, whatever the covariances."""
    near = minimize(
        program.objective,
        np.zeros(program.x.shape[1]),
        jac=program.gradient,
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 0.0, "gtol": 1e-9},
    ).x
    # The last digits, which a line search leaves, unless the optimum is infinitely far.
    exact = root(
        program.gradient,
        near,
        jac=program.hessian,
        method="lm",
        options={"maxiter": 8, "xtol": 1e-15, "ftol": 1e-15},
    ).x
    far = np.abs(exact - near).max() > 0.01 * np.abs(near).max()
    return np.asarray(near if far else exact)


def _differences(cp: Any, program: Program, bound: float, w: Any) -> list[Any]:
    """Each covariance between -bound and bound, as a difference of convex functions."""
    constraints = []
    for i in program.binding(bound):
        sides = []
        for sign in (1.0, -1.0):
            terms = [
                _distances(cp, program, sign * factors, way, w)
                for way, factors in ((1.0, program.over[i]), (-1.0, program.under[i]))
                if (sign * factors > 0.0).any()
            ]
            # The same on both sides, so that no tangent is 0: dccp fails where one is.
            sides.append(sum(terms, start=cp.sum(w)))
        constraints += [sides[0] <= sides[1] + bound, sides[1] <= sides[0] + bound]
    return constraints


def _distances(cp: Any, program: Program, factors: Floats, way: float, w: Any) -> Any:
    """The sum of max(0, z) or max(0, -z) over the cells whose factor is positive."""
    cells = np.flatnonzero(factors > 0.0)
    return factors[cells] @ cp.pos((way * program.x[cells]) @ w)


def _objective(cp: Any, program: Program, w: Any) -> Any:
    total = program.weight.sum()
    z = program.x @ w
    loss = (program.weight @ cp.logistic(z) - (program.positive @ program.x) @ w) / total
    if program.ridge.any():
        loss = loss + cp.sum_squares(cp.multiply(np.sqrt(program.ridge / 2.0), w))
    return loss


def need_dccp() -> Any:
    """The module cvxpy with dccp registered; raise with the pip command if they are missing."""
    name, rule = "EqualizedOddsLogisticRegression", "needs cvxpy and dccp to train"
    step = 'pip install "isocost[train]", or pass taus=() to use the smooth solver alone'
    cvxpy = require_package("cvxpy", name, rule, step)
    require_package("dccp", name, rule, step)
    return cvxpy


@contextmanager
def _progress(total: int, verbose: int) -> Iterator[Callable[[Start], None]]:
    """A bar on standard error that moves with each start; nothing if not verbose."""
    if not verbose:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("unconstrained", total=total)

        def report(start: Start) -> None:
            state = "met" if start.met else f"exceeded by {start.violation:.2g}"
            bar.console.print(f"{start.name}: loss {start.loss:.6f}, bound {state}")
            bar.update(task, advance=1, description=start.name)

        yield report
