"""The linear program of handing over: who is decided, and which scores the decided get.

A group has levels with shares of positives p_i and weights w_i, which add up to 1.  The people who
are decided have the weights v_i <= u w_i, which add up to 1 too, so that 1 / u of the group is
decided and 1 - 1 / u handed over.  Their scores become outputs q_j with weights s_j.

Which s can be had such that every output is calibrated?  Each output is the mean of the levels that
are pooled in it, so s must be a mean-preserving contraction of v, and every contraction will do
(Strassen 1965).  Contractions are those below v in the convex order:

    sum_j s_j max(q_j - p_i, 0)  <=  sum_k v_k max(p_k - p_i, 0)    for each level i

with the same mean.  So who gets which output need not be known to find the best s: instead of a
variable per level and output there is one per level and one per output, and a program of 128 levels
and four groups takes a fifth of a second instead of half a minute.  :func:`assigned` then
says who gets which.

Every rate of the decided is a function of s alone, because among people with the calibrated score q
a share q is positive.  If all groups have the same s, all their rates are the same, at every
threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from isocost.groups import Group
from isocost.repairs.levels import ScoreLevels
from isocost.repairs.linear_program import SOLVED, unsolved
from isocost.rows import Row
from isocost.typing import Floats, Ints

MOST_OUTPUTS = 128
"""The most outputs that all groups share."""

FEWEST_DECIDED = 0.01
"""At least this share of every group is decided; handing over all others repairs nothing."""

NOISE = 1e-12
"""A weight up to here is rounding."""

SCALES = (0.0, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9)
"""By how much fewer people may be decided so that rounding does not make it impossible."""


class Solved(NamedTuple):
    """A solution: weights of the outputs of each group, the share that is decided, and a bound.

    ``value`` is what the solution costs; by the dual, no solution costs less than ``bound``.
    """

    weights: list[Floats]
    decided: float
    value: float
    bound: float


@dataclass(frozen=True, eq=False)
class DeferralProgram:
    """The people decided, the same share of each group, and their scores.

    Attributes
    ----------
    levels : sequence of ScoreLevels
        The levels of each group.
    outputs : array
        The outputs that all groups share, from low to high.
    spread : float
        How far the share of people with an output of at least c and a given label may differ
        between groups, for each c.  With 0 all groups have the same weights of the outputs.
    keep : {"information", "brier"}
        What the scores of the decided should have most of: E[q^2], or E[q^2] - E[q].
    """

    levels: Sequence[ScoreLevels]
    outputs: Floats
    spread: float = 0.0
    keep: str = "information"

    @cached_property
    def _starts(self) -> dict[str, Any]:
        """Where variables begin: v of each group, s of each group or of all, lowest shares, u."""
        size = len(self.outputs)
        ends = np.cumsum([0, *map(len, self.levels)]).tolist()
        own = size if self.spread else 0
        low = ends[-1] + (size if not self.spread else size * len(self.levels))
        u = low + 2 * own
        s = [ends[-1] + own * t for t in range(len(self.levels))]
        return {"v": ends[:-1], "s": s, "low": low, "u": u, "width": u + 1}

    @cached_property
    def _system(self) -> tuple[_System, _System]:
        """The inequalities and equations."""
        at, q = self._starts, self.outputs
        below, equal = _Rows(at["width"]), _Rows(at["width"])
        for t, one in enumerate(self.levels):
            v, s, n = at["v"][t], at["s"][t], len(one)
            below.add({v: np.eye(n), at["u"]: -one.w[:, None]})
            over = np.maximum(q - one.p[:, None], 0.0)
            below.add({s: over, v: -np.maximum(one.p - one.p[:, None], 0.0)})
            equal.add({v: np.ones((1, n))}, 1.0)
            equal.add({v: one.p[None, :], s: -q[None, :]})
            if t == 0 or self.spread:
                equal.add({s: np.ones((1, len(q)))}, 1.0)
        above = np.triu(np.ones((len(q), len(q))))
        for label, share in enumerate((1.0 - q, q) if self.spread else ()):
            low = at["low"] + label * len(q)
            for s in at["s"]:
                below.between(s, above * share, low, self.spread)
        return below.system, equal.system

    def _solve(self, costs: Floats, least: float, most: float) -> Solved | None:
        """The best solution with ``least <= u <= most``; 1 / u of each group is decided."""
        at = self._starts
        lower, upper = np.zeros(at["width"]), np.ones(at["width"])
        lower[at["u"]], upper[at["u"]] = least, most
        minimum = _minimize(costs, *self._system, (lower, upper))
        if minimum is None:
            return None
        x, bound = minimum
        weights = [x[s : s + len(self.outputs)] for s in at["s"]]
        return Solved(weights, 1.0 / float(x[at["u"]]), float(costs @ x), bound)

    def fewest(self) -> Solved | None:
        """The solution with the least u, that is, with the fewest people handed over."""
        costs = np.zeros(self._starts["width"])
        costs[self._starts["u"]] = 1.0
        return self._solve(costs, 1.0, 1.0 / FEWEST_DECIDED)

    def informed(self, decided: float) -> Solved | None:
        """The solution with most of what ``keep`` names if this share is decided."""
        q, costs = self.outputs, np.zeros(self._starts["width"])
        kept = q**2 if self.keep == "information" else q**2 - q
        for s, one in zip(self._starts["s"], self.levels, strict=True):
            costs[s : s + len(q)] -= one.share * kept
        u = max(1.0 / decided, 1.0)
        return self._solve(costs, u, u)


_System = tuple[Any, Floats]
"""A sparse matrix and the right-hand sides of its rows."""


class _Rows:
    """Rows of a sparse matrix as they are added, and their right-hand sides."""

    def __init__(self, width: int) -> None:
        self.width, self.count = width, 0
        self._entries: list[tuple[Ints, Ints, Floats]] = []
        self._right: list[Floats] = []

    def add(self, blocks: Mapping[int, Floats], right: float = 0.0) -> None:
        """Rows with these blocks, each beginning at its column."""
        rows = len(next(iter(blocks.values())))
        for start, block in blocks.items():
            i, j = np.nonzero(block)
            self._entries.append((i + self.count, j + start, block[i, j]))
        self._right.append(np.full(rows, right))
        self.count += rows

    def between(self, start: int, block: Floats, low: int, tolerance: float) -> None:
        """Each row of a block is at least the variable at ``low``, and no more than that above."""
        one = np.eye(len(block))
        self.add({start: -block, low: one})
        self.add({start: block, low: -one}, tolerance)

    @property
    def system(self) -> _System:
        """The rows so far: a sparse matrix, and the right-hand sides."""
        from scipy.sparse import coo_array

        i, j, values = (np.concatenate(x) for x in zip(*self._entries, strict=True))
        matrix = coo_array((values, (i, j)), shape=(self.count, self.width)).tocsr()
        return matrix, np.concatenate(self._right)


def _minimize(
    costs: Floats,
    below: _System,
    equal: _System,
    bounds: tuple[Floats, Floats],
) -> tuple[Floats, float] | None:
    """The best variables, and a bound that the dual proves; None if nothing is feasible."""
    from scipy.optimize import linprog

    # Presolving has found programs infeasible that are not.
    for method, presolve in (("highs-ds", True), ("highs-ds", False), ("highs-ipm", True)):
        result = linprog(
            costs,
            A_ub=below[0],
            b_ub=below[1],
            A_eq=equal[0],
            b_eq=equal[1],
            bounds=np.stack(bounds, axis=1),
            method=method,
            options={
                "presolve": presolve,
                "primal_feasibility_tolerance": 1e-10,
                "dual_feasibility_tolerance": 1e-10,
            },
        )
        if result.status == SOLVED:
            prices = (np.minimum(result.ineqlin.marginals, 0.0), result.eqlin.marginals)
            return result.x, dual_bound(costs, below, equal, bounds, prices)
    return None


def dual_bound(
    costs: Floats,
    below: _System,
    equal: _System,
    bounds: tuple[Floats, Floats],
    prices: tuple[Floats, Floats],
) -> float:
    """What no feasible x has a lower costs @ x than, by weak duality.

    For prices z <= 0 of the inequalities and y of the equations, and reduced costs
    r = costs - A'z - B'y, costs @ x = r @ x + z @ A x + y @ B x >= z @ a + y @ b + the least r @ x
    within the bounds of x.  It holds for any prices, so the solver need not be trusted.
    """
    z, y = prices
    reduced = costs - below[0].T @ z - equal[0].T @ y
    at_best = np.where(reduced > 0.0, bounds[0], bounds[1])
    return float(below[1] @ z + equal[1] @ y + reduced @ at_best)


def assigned(levels: ScoreLevels, outputs: Floats, weights: Floats, decided: float) -> Floats:
    """Who gets which output: the share of each level (rows) that gets each output (columns).

    From the lowest output to the highest, an output takes those who are nearest to it and still
    there: levels around it, without a gap, of which the two at the ends may be divided so that
    their weight and their mean are right.  If there is a solution at all, this is one: it is the
    left-curtain coupling (Beiglböck and Juillet, Annals of Probability 2016).

    Parameters
    ----------
    levels : ScoreLevels
        Those of the group.
    outputs, weights : arrays
        The outputs, and their shares of the decided.
    decided : float
        The share of the group that is decided.

    Examples
    --------
    >>> two = np.array([0.2, 0.8])
    >>> group = ScoreLevels(two, two, two > 0.5, two, np.array([0.5, 0.5]), two, 1.0, 0.5)
    >>> assigned(group, np.array([0.2, 0.5]), np.array([0.25, 0.75]), 0.8).round(3).tolist()
    [[0.4, 0.6], [0.0, 0.6]]
    """
    order = np.argsort(levels.p, kind="stable")
    p, w = levels.p[order], levels.w[order]
    for scale in SCALES:
        left = w.copy()
        taken = np.zeros((len(p), len(outputs)))
        for j in np.flatnonzero(weights > NOISE):
            wanted = weights[j] * decided * (1.0 - scale)
            own = _nearest(p, left, float(outputs[j]), wanted)
            if own is None:
                break
            taken[:, j] = own
            left = np.maximum(left - own, 0.0)
        else:
            shares = np.zeros_like(taken)
            shares[order] = taken / w[:, None]
            return shares
    raise unsolved("scores that nobody can get")


def _nearest(p: Floats, left: Floats, q: float, wanted: float) -> Floats | None:
    """How much to take of each level for the weight ``wanted`` with the mean q; None if impossible.

    The levels are sorted.  What is taken is a part of the weight left from x to x + wanted, counted
    from below; its mean rises with x, so that x is found by bisection between levels and then from
    a linear equation.
    """
    ends = np.concatenate([[0.0], np.cumsum(left)])
    spare = ends[-1] - wanted
    if spare < -NOISE:
        return None
    sums = np.concatenate([[0.0], np.cumsum(left * (p - q))])
    # Where x or x + wanted is the end of a level the excess has its kinks.
    kinks = np.concatenate([ends, ends - wanted, [0.0, spare]])
    kinks = np.unique(kinks[(kinks >= 0.0) & (kinks <= max(spare, 0.0))])
    values = np.interp(kinks + wanted, ends, sums) - np.interp(kinks, ends, sums)
    if not len(kinks) or values[0] > ROUNDS * wanted or values[-1] < -ROUNDS * wanted:
        return None
    k = int(np.clip(np.searchsorted(values, 0.0), 1, max(len(kinks) - 1, 1)))
    x = float(kinks[0])
    if len(kinks) > 1:
        (x0, x1), (y0, y1) = kinks[k - 1 : k + 1], values[k - 1 : k + 1]
        x = float(x0 if y1 == y0 else np.clip(x0 - y0 * (x1 - x0) / (y1 - y0), x0, x1))
    inside = np.minimum(ends[1:], x + wanted) - np.maximum(ends[:-1], x)
    return _exact(p, left, np.clip(inside, 0.0, left), q, wanted)


ROUNDS = 1e-13
"""How far the mean of what is left may be off for rounding alone."""


def _exact(p: Floats, left: Floats, taken: Floats, q: float, wanted: float) -> Floats:
    """The same with the rounding errors of weight and mean moved to the two ends."""
    used = np.flatnonzero(taken > 0.0)
    if len(used) < 2 or p[used[-1]] == p[used[0]]:
        return taken
    first, last = used[0], used[-1]
    missing, off = wanted - taken.sum(), q * wanted - float(p @ taken)
    upper = (off - missing * p[first]) / (p[last] - p[first])
    exact = taken.copy()
    exact[last] += upper
    exact[first] += missing - upper
    return np.clip(exact, 0.0, left)


def rows_of(groups: Sequence[Group], program: DeferralProgram, solved: Solved) -> Iterator[Row]:
    """For each level those who are handed over first, then outputs from low to high.

    First, so that a person who is handed over still is if the rule is made again with a larger
    share: the coins below a bound stay below a higher one.
    """
    for t, group in enumerate(groups):
        levels, outputs = program.levels[t], program.outputs
        given = assigned(levels, outputs, solved.weights[t], solved.decided)
        first, last = float(levels.lo[0]), float(levels.hi[-1])
        if first > 0.0:
            # Nobody had such a score: somebody else must decide.
            yield Row(group, 0.0, first, "defer", None, 1.0)
        for level, shares in enumerate(given):
            lo, hi = float(levels.lo[level]), float(levels.hi[level])
            # A share that only rounding leaves is nobody.
            shares[shares <= NOISE] = 0.0
            rest = 1.0 - math.fsum(shares)
            if rest > NOISE:
                yield Row(group, lo, hi, "defer", None, min(rest, 1.0))
            else:
                # What rounding leaves over would keep a score that nobody else has.
                shares[np.argmax(shares)] += rest
            for j in np.flatnonzero(shares > 0.0):
                yield Row(group, lo, hi, "set", float(outputs[j]), min(float(shares[j]), 1.0))
        if last < 1.0:
            yield Row(group, last, 1.0, "defer", None, 1.0)
