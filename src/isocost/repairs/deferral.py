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
    between : sequence of arrays
        What outputs between those of the program might add more than their neighbours do; 0 where
        that is a straight line.
    """

    added: Sequence[Floats]
    total: Sequence[Floats]
    tolerance: float
    between: Sequence[Floats]

    @property
    def is_curved(self) -> bool:
        """Whether other outputs than those of the program might be better."""
        return any(bool(more.any()) for more in self.between)

    @property
    def is_searched(self) -> bool:
        """Whether its common value must be known, so that the program is linear and exact.

        That is so if it is a mean over some of the decided, or curved.
        """
        is_over_some = any(np.ptp(total) > 0.0 or total[0] != 1.0 for total in self.total)
        return is_over_some or self.is_curved

    def values(self, weights: Sequence[Floats]) -> Floats:
        """The rate of each group; NaN where it is a mean over nobody."""
        sums = [
            (float(a @ s), float(b @ s))
            for a, b, s in zip(self.added, self.total, weights, strict=True)
        ]
        return np.array([a / b if b > NOISE else math.nan for a, b in sums])

    def off(self, weights: Sequence[Floats], common: float) -> float:
        """By how much the people that it counts are off at most, if this is the common value."""
        off = 0.0
        for a, b, s in zip(self.added, self.total, weights, strict=True):
            added, total = float(a @ s), float(b @ s)
            over = added - (common + self.tolerance) * total
            off = max(off, common * total - added, over)
        return off


Ranges = Mapping[str, tuple[float, float]]
"""For each rate that is searched, from where to where its common value may be."""

Reach = Mapping[str, tuple[Floats, Floats]]
"""For each of them, the least and the most people of each group that it can be a mean of."""


class Solved(NamedTuple):
    """A solution: weights of the outputs of each group, shares that are decided, and a bound.

    ``bound`` is what no solution can be below, by the dual; ``value`` is what this one has;
    ``common`` are the common values of the rates that are searched.
    """

    weights: list[Floats]
    decided: Floats
    value: float
    bound: float
    common: dict[str, float]


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
    def searched(self) -> dict[str, Rate]:
        """The rates whose common value must be searched for."""
        return {name: rate for name, rate in self.rates.items() if rate.is_searched}

    @property
    def is_curved(self) -> bool:
        """Whether other outputs might be better, so that bounds allow for these."""
        return any(rate.is_curved for rate in self.rates.values())

    @cached_property
    def _starts(self) -> dict[str, Any]:
        """Where variables begin: v, s of each group, lowest and common rates, u of each group."""
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
        starts["common"], at = at, at + len(self.searched)
        starts["u"], at = at, at + len(self.levels)
        return {**starts, "width": at}

    @property
    def _plain(self) -> list[Rate]:
        return [rate for rate in self.rates.values() if not rate.is_searched]

    @property
    def _steps(self) -> int:
        return 0 if self.spread is None else 2 * len(self.outputs[0])

    @cached_property
    def _always(self) -> tuple[_System, _System]:
        """The inequalities and equations that do not depend on common values."""
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
        return below.system, equal.system

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
        costs: Floats,
        ranges: Ranges,
        least: Floats,
        most: Floats,
        tied: bool = False,
        reach: Reach | None = None,
    ) -> Solved | None:
        """The best solution in which 1 / u of a group is decided, with ``least <= u <= most``.

        Parameters
        ----------
        costs : array
            What each variable counts: :attr:`uninformed` for the best scores, or :meth:`people`.
        ranges : {name: (float, float)}
            From where to where the common value of each rate that is searched may be; its tolerance
            goes upwards.  With ends that differ, rates are equal only up to what the ends leave
            open, and the value is a bound, also for outputs between those of the program.
        least, most : arrays
            Bounds of u.
        tied : bool
            Whether u must be the same for all groups.
        reach : {name: (array, array)}
            The least and the most people of each group that a rate can be a mean of.
        """
        at = self._starts
        width = at["width"]
        below, equal = self._always
        extra, ties = _Rows(width), _Rows(width)
        lower, upper = np.zeros(width), np.ones(width)
        lower[at["u"] :], upper[at["u"] :] = least, most
        for k, (name, rate) in enumerate(self.searched.items()):
            column = at["common"] + k
            lower[column], upper[column] = ranges[name]
            self._add_ratio(extra, column, rate, ranges[name], (reach or self.reach)[name])
        for t in self.groups[1:] if tied else ():
            ties.add({at["u"]: np.eye(1), at["u"] + t: -np.eye(1)})
        minimum = _minimize(
            costs, _both(below, extra.system), _both(equal, ties.system), (lower, upper)
        )
        if minimum is None:
            return None
        x, bound = minimum
        weights = [x[s : s + len(q)] for s, q in zip(at["s"], self.outputs, strict=True)]
        common = dict(zip(self.searched, x[at["common"] : at["u"]].tolist(), strict=True))
        return Solved(weights, 1.0 / x[at["u"] :], float(costs @ x), bound, common)

    @cached_property
    def shares(self) -> Floats:
        """The share of each group in everybody."""
        return np.array([one.share for one in self.levels])

    @cached_property
    def uninformed(self) -> Floats:
        """Costs of variables: less of what ``keep`` names."""
        at = self._starts
        costs = np.zeros(at["width"])
        for t, q in enumerate(self.outputs):
            kept = q**2 if self.keep == "information" else q**2 - q
            costs[at["s"][t] : at["s"][t] + len(q)] -= self.shares[t] * kept
        return costs

    def people(self, slopes: Floats) -> Floats:
        """Costs of variables: the sum of u times slopes."""
        costs = np.zeros(self._starts["width"])
        costs[self._starts["u"] :] = slopes
        return costs

    def _add_ratio(
        self,
        below: _Rows,
        column: int,
        rate: Rate,
        ends: tuple[float, float],
        reach: tuple[Floats, Floats],
    ) -> None:
        """The rate of each group is the common value c at a column, between two ends.

        c times the people T that the rate is a mean of is not linear.  With c between its ends, and
        T between those that it can reach, it is between the planes of McCormick (Mathematical
        Programming 10, 1976), which meet where the ends do.
        """
        low, high = ends
        for t in self.groups:
            s, added, total = self._starts["s"][t], rate.added[t], rate.total[t]
            most = added + rate.between[t] if low < high else added
            fewest, all_ = reach[0][t], reach[1][t]
            # Where T is known, or c, the planes are the same, and twice the same row confuses.
            planes = 1 if all_ - fewest <= EXACT or high == low else 2
            for end, people in ((low, fewest), (high, all_))[:planes]:
                row = {s: (end * total - most)[None, :], column: np.full((1, 1), people)}
                below.add(row, end * people)
            for end, people in ((high, fewest), (low, all_))[:planes]:
                over = added - (end + rate.tolerance) * total
                below.add({s: over[None, :], column: np.full((1, 1), -people)}, -end * people)

    @cached_property
    def widest(self) -> Ranges:
        """Where common values can be at all, because outputs are no further apart."""
        ranges = {}
        for name, rate in self.searched.items():
            ends = [(a[b > 0.0] / b[b > 0.0]) for a, b in zip(rate.added, rate.total, strict=True)]
            low = max((float(x.min()) for x in ends if len(x)), default=0.0) - rate.tolerance
            high = min((float(x.max()) for x in ends if len(x)), default=0.0)
            ranges[name] = (min(max(low, 0.0), high), high)
        return ranges

    @cached_property
    def reach(self) -> Reach:
        """What the weights of outputs allow, whoever is handed over."""
        return {
            name: (np.array([x.min() for x in rate.total]), np.array([x.max() for x in rate.total]))
            for name, rate in self.searched.items()
        }

    def reach_within(self, most: Floats) -> Reach:
        """The same if u of each group is at most this, as far as each group alone can tell."""
        reach = {name: (low.copy(), high.copy()) for name, (low, high) in self.reach.items()}
        for t in self.groups:
            own = [{0: limit[t]} for limit in self.limits if limit.keys() == {t}]
            alone = DeferralProgram([self.levels[t]], [self.outputs[t]], False, limits=own)
            first, last = alone._starts["s"][0], alone._starts["low"]
            for name, rate in self.searched.items():
                for sign, ends in zip((1.0, -1.0), reach[name], strict=True):
                    costs = np.zeros(alone._starts["width"])
                    costs[first:last] = sign * rate.total[t]
                    solved = alone.solve(costs, {}, np.ones(1), most[t : t + 1])
                    if solved is not None:
                        ends[t] = sign * solved.bound
        return reach


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

        empty = [(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))]
        i, j, values = (np.concatenate(x) for x in zip(*(self._entries or empty), strict=True))
        matrix = coo_array((values, (i, j)), shape=(self.count, self.width)).tocsr()
        return matrix, np.concatenate([*self._right, np.empty(0)])


def _both(first: _System, second: _System) -> _System:
    from scipy.sparse import vstack

    if not len(second[1]):
        return first
    return vstack([first[0], second[0]]).tocsr(), np.append(first[1], second[1])


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
