"""The program of equalized odds in training as cvxpy and dccp have it."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.errors import MissingDependencyError, Problem
from isocost.learn.program import Program

__all__ = ["convex_concave", "need_dccp"]

Floats = npt.NDArray[np.float64]

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
