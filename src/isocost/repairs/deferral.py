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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from isocost.cells import KINDS
from isocost.groups import Group
from isocost.measures.measure import Measure
from isocost.repairs.levels import ScoreLevels
from isocost.repairs.linear_program import SOLVED, unsolved
from isocost.rows import Row
from isocost.typing import Floats, Ints

MOST_OUTPUTS = 128
"""The most outputs that all groups share."""

FEWEST_DECIDED = 0.01
"""At least this share of every group is decided; handing over all others repairs nothing."""

EXACT = 1e-9
"""How exactly a program and its dual must agree."""

NOISE = 1e-12
"""A weight up to here is rounding."""

SCALES = (0.0, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9)
"""By how much fewer people may be decided so that rounding does not make it impossible."""


def parts_of(measure: Measure, outputs: Floats, threshold: float) -> tuple[Floats, Floats]:
    """What people with each calibrated output add to a measure, and to how many it is a mean of.

    Examples
    --------
    >>> from isocost.measures.table import MEASURES
    >>> added, total = parts_of(MEASURES["fpr"], np.array([0.2, 0.6]), 0.5)
    >>> added.tolist(), total.tolist()
    ([0.0, 0.4], [0.8, 0.4])
    """
    selected = outputs >= threshold
    added, total = np.zeros((2, len(outputs)))
    for index, kind in enumerate(KINDS):
        a, b, c = measure.coefficients[index]
        label, side = divmod(index, 2)
        share = np.where(selected == bool(side), outputs if label else 1.0 - outputs, 0.0)
        added += share * (a + b * outputs + c * outputs**2)
        total += share * (kind in measure.over)
    return added, total


@dataclass(frozen=True, eq=False)
class Rate:
    """A rate that is to be equal: added @ s / total @ s, for the weights s of a group's outputs.

    Attributes
    ----------
    added, total : sequences of arrays
        For each group, what each output adds, and to how many people.
    tolerance : float
        How far groups may differ.
    """

    added: Sequence[Floats]
    total: Sequence[Floats]
    tolerance: float

    @property
    def is_ratio(self) -> bool:
        """Whether it is a mean over some of the decided, so that the program needs its value."""
        return any(np.ptp(total) > 0.0 or total[0] != 1.0 for total in self.total)

    def values(self, weights: Sequence[Floats]) -> Floats:
        """The rate of each group; NaN where it is a mean over nobody."""
        sums = [
            (float(a @ s), float(b @ s))
            for a, b, s in zip(self.added, self.total, weights, strict=True)
        ]
        return np.array([a / b if b > NOISE else math.nan for a, b in sums])


class Solved(NamedTuple):
    """A solution: weights of the outputs of each group, shares that are decided, and a bound.

    ``bound`` is what no solution can be below, by the dual; ``value`` is what this one has.
    """

    weights: list[Floats]
    decided: Floats
    value: float
    bound: float


@dataclass(frozen=True, eq=False)
class DeferralProgram:
    """What the decided must have in common, and what they must have at least.

    Attributes
    ----------
    levels : sequence of ScoreLevels
        The levels of each group.
    outputs : sequence of arrays
        The outputs of each group, from low to high.
    common : bool
        Whether all groups must have the same weights of the same outputs.
    spread : float or None
        How far the share of people with an output of at least c and a given label may differ
        between groups, for each c; None if that is not asked.
    rates : {name: Rate}
        What is to be equal.
    limits : sequence of {group: array}
        Each says that the sum of array @ s over its groups is at most 0.
    keep : {"information", "brier"}
        What the scores of the decided should have most of: E[q^2], or E[q^2] - E[q].
    """

    levels: Sequence[ScoreLevels]
    outputs: Sequence[Floats]
    common: bool
    spread: float | None = None
    rates: Mapping[str, Rate] = field(default_factory=dict)
    limits: Sequence[Mapping[int, Floats]] = ()
    keep: str = "information"

    @property
    def groups(self) -> range:
        """The indices of the groups."""
        return range(len(self.levels))

    @property
    def ratios(self) -> dict[str, Rate]:
        """The rates whose common value must be known for the program to be linear."""
        return {name: rate for name, rate in self.rates.items() if rate.is_ratio}

    @cached_property
    def _starts(self) -> dict[str, Any]:
        """Where the variables begin: v and s of each group, lowest rates, u of each group."""
        at = 0
        starts: dict[str, Any] = {"v": [], "s": []}
        for one in self.levels:
            starts["v"].append(at)
            at += len(one)
        for outputs in self.outputs:
            starts["s"].append(at)
            at += 0 if self.common else len(outputs)
        at += len(self.outputs[0]) if self.common else 0
        starts["low"], at = at, at + len(self._plain) + self._steps
        starts["u"], at = at, at + len(self.levels)
        return {**starts, "width": at}

    @property
    def _plain(self) -> list[Rate]:
        return [rate for rate in self.rates.values() if not rate.is_ratio]

    @property
    def _steps(self) -> int:
        return 0 if self.spread is None else 2 * len(self.outputs[0])

    @cached_property
    def _always(self) -> tuple[_Rows, _Rows]:
        """The inequalities and equations that do not depend on targets."""
        at = self._starts
        below, equal = _Rows(at["width"]), _Rows(at["width"])
        for t, (one, q) in enumerate(zip(self.levels, self.outputs, strict=True)):
            v, s, n = at["v"][t], at["s"][t], len(one)
            below.add({v: np.eye(n), at["u"] + t: -one.w[:, None]})
            over = np.maximum(q - one.p[:, None], 0.0)
            below.add({s: over, v: -np.maximum(one.p - one.p[:, None], 0.0)})
            equal.add({v: np.ones((1, n))}, 1.0)
            equal.add({v: one.p[None, :], s: -q[None, :]})
            if t == 0 or not self.common:
                equal.add({s: np.ones((1, len(q)))}, 1.0)
        for k, rate in enumerate(self._plain):
            for t in self.groups:
                below.between(at["s"][t], rate.added[t][None, :], at["low"] + k, rate.tolerance)
        if self.spread is not None:
            self._add_spread(below)
        for limit in self.limits:
            # Groups may share their variables.
            row = np.zeros((1, at["width"]))
            for t, array in limit.items():
                row[0, at["s"][t] : at["s"][t] + len(array)] += array
            below.add({0: row})
        return below, equal

    def _add_spread(self, below: _Rows) -> None:
        at = self._starts
        q = self.outputs[0]
        above = np.triu(np.ones((len(q), len(q))))
        for label, share in enumerate((1.0 - q, q)):
            low = at["low"] + len(self._plain) + label * len(q)
            for t in self.groups:
                below.between(at["s"][t], above * share, low, self.spread or 0.0)

    def solve(
        self,
        objective: str,
        targets: Mapping[str, float],
        least: Floats,
        most: Floats,
        tied: bool = False,
        slopes: Floats | None = None,
    ) -> Solved | None:
        """The best solution in which 1 / u of a group is decided, with ``least <= u <= most``.

        Parameters
        ----------
        objective : {"scores", "people", "both"}
            The most of what ``keep`` names; the lowest sum of u times ``slopes``; or both, people
            first.
        targets : {name: float}
            The common values of rates that are ratios; their tolerance goes upwards.
        least, most : arrays
            Bounds of u.
        tied : bool
            Whether u must be the same for all groups.
        slopes : array
            What u of each group counts; by default its share of everybody.
        """
        from scipy.sparse import vstack

        at = self._starts
        width = at["width"]
        below, equal = self._always
        extra, ties = _Rows(width), _Rows(width)
        for name, rate in self.ratios.items():
            for t in self.groups:
                added, total = rate.added[t], rate.total[t]
                extra.add({at["s"][t]: (targets[name] * total - added)[None, :]})
                high = targets[name] + rate.tolerance
                extra.add({at["s"][t]: (added - high * total)[None, :]})
        for t in self.groups[1:] if tied else ():
            ties.add({at["u"]: np.eye(1), at["u"] + t: -np.eye(1)})
        shares = np.array([one.share for one in self.levels])
        costs = np.zeros(width)
        if objective != "people":
            for t, q in enumerate(self.outputs):
                kept = q**2 if self.keep == "information" else q**2 - q
                costs[at["s"][t] : at["s"][t] + len(q)] -= shares[t] * kept
        if objective != "scores":
            slopes = shares if slopes is None else slopes
            costs[at["u"] :] += PEOPLE_FIRST * slopes if objective == "both" else slopes
        lower, upper = np.zeros(width), np.ones(width)
        lower[at["u"] :], upper[at["u"] :] = least, most
        found = _minimize(
            costs,
            (vstack([below.matrix, extra.matrix]).tocsr(), np.append(below.right, extra.right)),
            (vstack([equal.matrix, ties.matrix]).tocsr(), np.append(equal.right, ties.right)),
            (lower, upper),
        )
        if found is None:
            return None
        x, bound = found
        weights = [x[s : s + len(q)] for s, q in zip(at["s"], self.outputs, strict=True)]
        return Solved(weights, 1.0 / x[at["u"] :], float(costs @ x), bound)

    # The least that must be handed over

    def fewest(self, targets: Mapping[str, float]) -> Solved | None:
        """The solution with the most decided, if the same share of each group is."""
        ones = np.ones(len(self.levels))
        return self.solve("people", targets, ones, ones / FEWEST_DECIDED, tied=True)

    def fewest_in_all(
        self, targets: Mapping[str, float], gap: float = 1e-7, most: int = 400
    ) -> Solved | None:
        """The solution with the most people decided in all, whatever the groups' shares.

        The people decided are sum_t share_t / u_t, which is convex in u: not a linear program.
        On a box of u every 1 / u lies below its chord, so that the program with the chords is a
        bound; the box is cut where the chord is furthest off, until the bound is reached (branch
        and bound).  ``bound`` of the result is the least share handed over that no solution is
        below.
        """
        shares = np.array([one.share for one in self.levels])
        ones = np.ones(len(shares))
        boxes = [(0.0, ones, ones / FEWEST_DECIDED)]
        best, proven = None, math.inf
        for _ in range(most):
            boxes.sort(key=lambda box: box[0])
            if not boxes or (best is not None and boxes[0][0] >= best.value - gap):
                break
            _, low, high = boxes.pop(0)
            slopes = shares / (low * high)
            found = self.solve("people", targets, low, high, slopes=slopes)
            if found is None:
                continue
            u = 1.0 / found.decided
            # 1 - sum of chords: 1/u on [l, h] has the chord (l + h - u) / (l h).
            bound = 1.0 - float((shares * (low + high) / (low * high)).sum()) + found.bound
            value = 1.0 - float(shares @ found.decided)
            if best is None or value < best.value:
                best = found._replace(value=value)
            chords = (low + high - u) / (low * high) - found.decided
            cut = int(np.argmax(shares * chords))
            if bound < best.value - gap and chords[cut] > NOISE:
                left, right = high.copy(), low.copy()
                left[cut] = right[cut] = min(max(u[cut], low[cut] + NOISE), high[cut] - NOISE)
                boxes += [(bound, low, left), (bound, right, high)]
            else:
                proven = min(proven, bound)
        if best is None:
            return None
        proven = min([proven, *(box[0] for box in boxes)])
        return best._replace(bound=min(proven, best.value))


PEOPLE_FIRST = 10.0
"""What a person more counts against information: E[q^2] is at most 1, so this decides first."""


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
    def matrix(self) -> Any:
        """The rows so far."""
        from scipy.sparse import coo_array

        empty = [(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))]
        i, j, values = (np.concatenate(x) for x in zip(*(self._entries or empty), strict=True))
        return coo_array((values, (i, j)), shape=(self.count, self.width)).tocsr()

    @property
    def right(self) -> Floats:
        """The right-hand sides so far."""
        return np.concatenate(self._right) if self._right else np.empty(0)


def _minimize(
    costs: Floats,
    below: tuple[Any, Floats],
    equal: tuple[Any, Floats],
    bounds: tuple[Floats, Floats],
) -> tuple[Floats, float] | None:
    """The best variables, and a bound that the dual proves; None if nothing is feasible."""
    from scipy.optimize import linprog

    for method in ("highs-ds", "highs-ipm"):
        result = linprog(
            costs,
            A_ub=below[0],
            b_ub=below[1],
            A_eq=equal[0],
            b_eq=equal[1],
            bounds=np.stack(bounds, axis=1),
            method=method,
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.status == SOLVED:
            prices = (np.minimum(result.ineqlin.marginals, 0.0), result.eqlin.marginals)
            return result.x, dual_bound(costs, below, equal, bounds, prices)
    return None


def dual_bound(
    costs: Floats,
    below: tuple[Any, Floats],
    equal: tuple[Any, Floats],
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
    >>> group = ScoreLevels(two, two, two > 0.5, two, np.array([0.5, 0.5]), two, two, 1.0, 0.5)
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
        levels, outputs = program.levels[t], program.outputs[t]
        given = assigned(levels, outputs, solved.weights[t], float(solved.decided[t]))
        first, last = float(levels.lo[0]), float(levels.hi[-1])
        if first > 0.0:
            # Nobody had such a score: somebody else must decide.
            yield Row(group, 0.0, first, "defer", None, 1.0)
        for level, shares in enumerate(given):
            lo, hi = float(levels.lo[level]), float(levels.hi[level])
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


def best_targets(
    score: Callable[[Mapping[str, float]], float], starts: Sequence[Mapping[str, float]]
) -> dict[str, float]:
    """The common values of the rates with the lowest score, by a search from the best start.

    With these fixed the program is linear; over them it is not, and the search may end at a local
    optimum.
    """
    from scipy.optimize import minimize

    names = list(starts[0])
    start = min(starts, key=score)
    if not names:
        return {}

    def of(values: Floats) -> float:
        inside = np.clip(values, 0.0, 1.0)
        return score(dict(zip(names, inside.tolist(), strict=True)))

    first = np.array([start[name] for name in names])
    inward = STEP * np.where(first > 0.5, -1.0, 1.0)
    options = {
        "initial_simplex": np.vstack([first, first + np.diag(inward)]),
        "maxfev": EVALUATIONS * len(names),
        "xatol": 1e-5,
        "fatol": 1e-9,
    }
    found = minimize(of, first, method="Nelder-Mead", options=options)
    values = np.clip(found.x, 0.0, 1.0) if found.fun < score(start) else first
    return dict(zip(names, map(float, values), strict=True))


STEP, EVALUATIONS = 0.03, 40
"""The first step of that search, and how many programs it may solve for each rate."""
