"""Solving the program of reconciling, to the last digit.

A solver of linear programs meets its constraints to about 1e-9.  Its answer says who is
split between which outputs; the shares themselves are then found again from the equations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.errors import IsocostError, Problem
from isocost.repair.program import Choices

__all__ = ["EXACT", "Plan", "least_excess", "solve", "unsolved"]

Floats = npt.NDArray[np.float64]

EXACT = 1e-10
"""How exactly a plan must meet its equations."""

SOLVED, INFEASIBLE = 0, 2
"""What scipy calls these states."""

ROOM = 1e-11
"""How far a later harm may raise an earlier one, so that rounding does not forbid all."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What to make equal, how nearly, and over which choices.

    Attributes
    ----------
    choices : Choices
        The columns.
    rates : {name: array}
        What each choice adds to each rate that is to be equal.
    tolerances : {name: float}
        How far each rate may differ between groups.
    selection : (lowest, highest) or None
        Bounds of the selection rate of each group.
    """

    choices: Choices
    rates: Mapping[str, Floats]
    tolerances: Mapping[str, float]
    selection: tuple[Floats, Floats] | None = None

    def values(self, x: Floats) -> Floats:
        """The rates that the shares x give, one row per rate, one column per group."""
        found: Floats = self.choices.rates_matrix(self.rates) @ x
        return found.reshape(len(self.rates), -1)

    def relaxed(self, excess: float) -> Plan:
        """The same with every tolerance raised."""
        raised = {name: tolerance + excess for name, tolerance in self.tolerances.items()}
        return replace(self, tolerances=raised)

    def bounds(self, width: int) -> tuple[Any, Floats]:
        """The bounds of the selection rates as rows of ``width`` columns, each at most a number."""
        from scipy.sparse import csr_array, vstack

        if self.selection is None:
            return csr_array((0, width)), np.empty(0)
        lowest, highest = self.selection
        rates = self.choices.rates_matrix({"": self.choices.rate("selection_rate")})
        rates.resize((len(lowest), width))
        return vstack([rates, -rates]).tocsr(), np.concatenate([highest, -lowest])


def solve(plan: Plan, harms: Sequence[Floats]) -> Floats | None:
    """The shares with the least first harm and, among these, the least second one and so on.

    None if no shares were found that meet the constraints; :func:`least_excess` then says why.
    """
    from scipy.sparse import vstack

    equations, right, upper = _equations(plan)
    spare = equations.shape[1] - len(plan.choices)
    limits, bounds = plan.bounds(equations.shape[1])
    best: Floats | None = None
    for harm in (np.pad(harm, (0, spare)) for harm in harms):
        x = _minimise(harm, equations, right, upper, (limits, bounds))
        if x is None:
            # The first harm has a solution, so only rounding can deny the next one.
            break
        best = x
        limits = vstack([limits, harm[None, :]]).tocsr()
        bounds = np.append(bounds, float(harm @ x) + ROOM)
    if best is None:
        return None
    exact, error = _polish(plan, best[: len(plan.choices)])
    return exact if error <= EXACT else None


def least_excess(plan: Plan) -> float:
    """The least amount by which all tolerances must be raised to be met.

    NaN if the bounds of the selection rates cannot be met with any.
    """
    from scipy.sparse import eye_array, hstack, vstack

    equations, right, upper = _equations(plan)
    capped = np.flatnonzero(np.isfinite(upper))
    caps, width = upper[capped], len(upper)
    # Each difference less the excess, the last variable, is at most the tolerance.
    differences = hstack([eye_array(width).tocsr()[capped], np.full((len(capped), 1), -1.0)])
    equations.resize((equations.shape[0], width + 1))
    objective = np.append(np.zeros(width), 1.0)
    free = np.full(width + 1, np.inf)
    selection, bounds = plan.bounds(width + 1)
    limits = (vstack([differences, selection]).tocsr(), np.concatenate([caps, bounds]))
    x = _minimise(objective, equations, right, free, limits)
    if x is None and plan.selection is not None:
        return math.nan
    if x is None:
        # Every level may keep its own share of positives, so some tolerance is enough.
        raise unsolved("no tolerance is enough")
    return max(0.0, float(x[-1]))


def _equations(plan: Plan) -> tuple[Any, Floats, Floats]:
    """The equations, their right-hand sides, and the upper bounds of the variables.

    Variables: the shares x; per rate its lowest value s; per rate and group d = rate - s, between 0
    and the tolerance.
    """
    from scipy.sparse import block_array, eye_array, kron

    always, rates = plan.choices.matrix, plan.choices.rates_matrix(plan.rates)
    groups, names = len(plan.choices.levels), len(plan.rates)
    lowest = kron(eye_array(names), np.ones((groups, 1)))
    differ = eye_array(groups * names)
    equations = block_array([[always, None, None], [rates, -lowest, -differ]]).tocsr()
    right = np.concatenate([plan.choices.totals, np.zeros(groups * names)])
    caps = np.repeat(list(plan.tolerances.values()), groups)
    upper = np.concatenate([np.full(len(plan.choices) + names, np.inf), caps])
    return equations, right, upper


def _minimise(
    objective: Floats, equations: Any, right: Floats, upper: Floats, limits: tuple[Any, Any]
) -> Floats | None:
    """The variables, at least 0, with the least objective; None if none were found.

    On the brink of infeasibility one method of the solver may give up where the other does not.
    """
    from scipy.optimize import linprog

    for method in ("highs", "highs-ipm"):
        found = linprog(
            objective,
            A_ub=limits[0] if len(limits[1]) else None,
            b_ub=limits[1] if len(limits[1]) else None,
            A_eq=equations,
            b_eq=right,
            bounds=np.stack([np.zeros(len(upper)), upper], axis=1),
            method=method,
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status in (SOLVED, INFEASIBLE):
            break
    return found.x if found.status == SOLVED else None


def _polish(plan: Plan, shares: Floats) -> tuple[Floats, float]:
    """Meet the equations to rounding, by the least change of the shares that are open.

    Shares that are noise are dropped first; if the equations cannot be met without
    them, they stay.
    """
    found, error = shares, np.inf
    for noise in (1e-6, 1e-9, 0.0):
        tried, wrong = _adjust(plan, np.where(shares > noise, shares, 0.0))
        if wrong < error:
            found, error = tried, wrong
        if error <= EXACT / 100:
            break
    return found, error


def _adjust(plan: Plan, x: Floats) -> tuple[Floats, float]:
    from scipy.sparse import vstack

    choices = plan.choices
    rows = choices.row
    x = x / np.bincount(rows, x)[rows]
    matrix = vstack([choices.matrix, choices.rates_matrix(plan.rates)]).tocsc()
    goal = np.concatenate([choices.totals, _within(plan, x).ravel()])
    for _ in range(4):
        open_ = np.flatnonzero((x > 0) & (x < 1))
        residual = goal - matrix @ x
        if not len(open_) or np.abs(residual).max() < 1e-15:
            break
        part = matrix[:, open_].toarray()
        touched = np.abs(part).max(axis=1) > 0
        change = np.linalg.lstsq(part[touched], residual[touched], rcond=1e-12)[0]
        x[open_] = np.clip(x[open_] + change, 0.0, 1.0)
    return x, float(np.abs(goal - matrix @ x).max())


def _within(plan: Plan, x: Floats) -> Floats:
    """The rates as they are, moved by a hair where they differ by more than is allowed."""
    rates = plan.values(x)
    allowed = np.array(list(plan.tolerances.values()))[:, None]
    low, high = rates.min(axis=1, keepdims=True), rates.max(axis=1, keepdims=True)
    middle = (low + high) / 2.0
    half = np.minimum(allowed, high - low) / 2.0
    return np.clip(rates, middle - half, middle + half)


def unsolved(message: str) -> IsocostError:
    """An error of the solver, which should not happen."""
    return IsocostError(
        Problem(
            "reconcile",
            "needs the solution of a linear program",
            f"from the solver: {message}",
            "use fewer levels=, or a tolerance above 0",
        )
    )
