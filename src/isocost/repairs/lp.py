"""Levels of scores, and the linear program of reconciling over them.

Neighbouring scores of a group are pooled into levels until their share of positives is known.
The number of levels is a compromise for people who are not seen yet.  Few levels throw away what
the scores say; many have shares of positives that are mostly noise, which a program that looks for
the best rule takes for a difference.  With n people the best number grows like n^(1/3), as that
of the bins of a histogram does; ``"auto"`` means (2 n)^(1/3), the rule of Terrell and Scott
(JASA 1985) for these.  ``python -m benchmarks.decisions`` compares it with fixed numbers on people
that rules have not seen.

A *choice* is a level and an output.  Its variable is the share x of the level that gets the
output, so that x >= 0 adds up to 1 over the choices of a level.  Everything else is linear in x:
that an output is calibrated, every rate, the information, and that higher scores get higher
outputs.

A solver meets its constraints to about 1e-9.  Its answer says which levels are split between which
outputs; the shares themselves are then recomputed from the equations, to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from isocost.cells import add_up
from isocost.checks import check_whole
from isocost.errors import IsocostError, Problem, setting
from isocost.measures.table import MEASURES
from isocost.tallies import Tally
from isocost.typing import Bools, Floats, Ints

FEWEST = 20
"""The least number of rows of a level, where there are as many: the share of positives of fewer is
noise, and a level of one row would hand out its label as a score."""

FEWEST_LEVELS, MOST_LEVELS = 2, 1024

Levels: TypeAlias = int | Literal["auto"]


@dataclass(frozen=True, eq=False)
class ScoreLevels:
    """The levels of one group, from low to high scores.

    Level i has the scores in [lo, hi), which lie ``above`` the threshold or below it; ``n`` rows,
    the share ``w`` of the group's weight, and the share ``p`` of positives.  ``share`` is the
    group's share of everybody, and ``base_rate`` its share of positives.
    """

    lo: Floats
    hi: Floats
    above: Bools
    n: Floats
    w: Floats
    p: Floats
    share: float
    base_rate: float

    def __len__(self) -> int:
        return len(self.w)


def check_levels(levels: Any) -> Levels:
    """A number of levels, or "auto"; raise if it is neither."""
    if isinstance(levels, str) and levels == "auto":
        return "auto"
    step = f"use {setting('levels', 'auto')}, the default"
    return check_whole("levels", levels, FEWEST_LEVELS, MOST_LEVELS, step)


def score_levels(
    tally: Tally,
    group: int,
    threshold: float,
    most: Levels = "auto",
    monotone: bool = False,
) -> ScoreLevels:
    """Pool neighbouring bins of a group into at most ``most`` levels (two or more).

    From low to high, a level is closed when it has 1 / most of the group's weight and
    :data:`FEWEST` rows; the remainder on either side of the threshold joins the last level of
    that side.  Empty bins between two levels are shared half and half.  If ``monotone``, levels
    are pooled further until shares of positives rise on each side of the threshold.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> caucasian = score_levels(compas(), 1, 0.5, 64)
    >>> caucasian.p.round(3).tolist()
    [0.209, 0.313, 0.341, 0.396, 0.461, 0.572, 0.615, 0.719, 0.694, 0.703]
    >>> len(score_levels(compas(), 1, 0.5, 4))
    3
    >>> score_levels(compas(), 1, 0.5, 64, monotone=True).p.round(3).tolist()
    [0.209, 0.313, 0.341, 0.396, 0.461, 0.572, 0.615, 0.707]
    """
    cells = tally.cells.take(tally.cells.of_group(group))
    columns = (cells.n, cells.w, cells.w * cells.label, cells.w2)
    sums = np.stack([add_up(cells.bin, column, tally.grid.size) for column in columns])
    used = np.flatnonzero(sums[1] > 0)
    first = tally.grid.first_bin(threshold)
    above = used >= first
    if not isinstance(most, int):
        # With weights, as many rows as would tell as much without them.  Of few scores each is a
        # level, unless it has too few rows.
        rows = sums[1].sum() ** 2 / sums[3].sum()
        most = 64 if len(used) <= 16 else int(np.clip(round((2.0 * rows) ** (1.0 / 3.0)), 4, 64))
    starts = np.array(list(_starts(above, sums[:2, used], most)), dtype=np.intp)
    if monotone:
        weight, positive = np.add.reduceat(sums[1:3, used], starts, axis=1)
        sides = (~above[starts], above[starts])
        rising = (isotonic(positive[side] / weight[side], weight[side])[1] for side in sides)
        starts = np.concatenate([starts[s][kept] for s, kept in zip(sides, rising, strict=True)])
    n, weight, positive, _ = np.add.reduceat(sums[:, used], starts, axis=1)
    # The intervals fill each side of the threshold that has anybody.
    begin, end = used[starts], np.append(used[starts[1:] - 1], used[-1]) + 1
    above, cuts = begin >= first, tally.grid.cuts
    inner = np.where(above[1:] != above[:-1], first, (end[:-1] + begin[1:]) // 2)
    p = positive / weight
    return ScoreLevels(
        lo=cuts[np.append(first if above[0] else 0, inner)],
        hi=cuts[np.append(inner, len(cuts) - 1 if above[-1] else first)],
        above=above,
        n=n,
        w=weight / weight.sum(),
        # Rounding decides nothing.
        p=np.where(np.abs(p - threshold) < 1e-12, threshold, p),
        share=float(weight.sum() / tally.totals.w.sum()),
        base_rate=float(positive.sum() / weight.sum()),
    )


def isotonic(values: Floats, weights: Floats) -> tuple[Floats, Ints]:
    """The nearest values that never fall, by pooling adjacent violators; and where blocks start.

    Examples
    --------
    >>> fitted, starts = isotonic(np.array([0.1, 0.4, 0.2, 0.9]), np.ones(4))
    >>> fitted.round(3).tolist(), starts.tolist()
    ([0.1, 0.3, 0.3, 0.9], [0, 1, 3])
    """
    blocks: list[tuple[float, float, int]] = []
    for start, (value, weight) in enumerate(zip(values, weights, strict=True)):
        mean, total = float(value), float(weight)
        while blocks and blocks[-1][0] >= mean:
            before, own, start = blocks.pop()
            mean = (mean * total + before * own) / (total + own)
            total += own
        blocks.append((mean, total, start))
    starts = np.array([start for *_, start in blocks], dtype=np.intp)
    sizes = np.diff(np.append(starts, len(values)))
    return np.repeat([mean for mean, *_ in blocks], sizes), starts


def _starts(above: Bools, sums: Floats, most: int) -> Iterator[int]:
    """The indices at which a level begins; ``sums`` are the rows and the weight of each bin."""
    enough = sums[1].sum() / most * (1.0 - 1e-12)
    for side in (False, True):
        bins = np.flatnonzero(above == side)
        rest = sums[:, bins].sum(axis=1)
        rows = weight = 0.0
        for k, bin_ in enumerate(bins):
            # What is left must be able to fill a level of its own.
            full = weight >= enough and rows >= FEWEST
            if k == 0 or (full and rest[1] >= enough and rest[0] >= FEWEST):
                yield int(bin_)
                rows = weight = 0.0
            rows, weight = rows + sums[0, bin_], weight + sums[1, bin_]
            rest = rest - sums[:, bin_]


# The program

BELOW = 1.0 / 1024.0
"""Distance of the highest pool of negatives from the threshold."""

OUTPUTS = 32
"""The number of evenly spaced outputs that a group's levels share where hard rates are not all."""

EXACT = 1e-10
"""Largest error of a plan in its equations."""

NEAR = 1e-6
"""A limit that is this near its bound may be missed when the shares are put right."""

SOLVED, INFEASIBLE = 0, 2
"""Two states of scipy's solver."""


@dataclass(frozen=True, eq=False)
class Choices:
    """The columns of the program, over all groups; every array has one entry per choice.

    ``level`` counts the levels of a group, and ``row`` all levels of all groups.  The output is
    ``value``, and ``pool`` its number among all outputs that several levels share; -1 for a level's
    own share of positives, which is always calibrated.
    """

    levels: Sequence[ScoreLevels]
    threshold: float
    group: Ints
    level: Ints
    row: Ints
    pool: Ints
    value: Floats

    def __len__(self) -> int:
        return len(self.value)

    def _of_level(self, name: str) -> Floats:
        values: Floats = np.concatenate([getattr(each, name) for each in self.levels])
        return values[self.row]

    def _of_group(self, name: str) -> Floats:
        return np.array([getattr(each, name) for each in self.levels])[self.group]

    @cached_property
    def w(self) -> Floats:
        """The level's share of its group."""
        return self._of_level("w")

    @cached_property
    def p(self) -> Floats:
        """The level's share of positives."""
        return self._of_level("p")

    @cached_property
    def positive(self) -> Bools:
        """True where the output is at or above the threshold."""
        return self.value >= self.threshold

    @cached_property
    def people(self) -> Floats:
        """The level's share of everybody."""
        return self.w * self._of_group("share")

    @cached_property
    def flipped(self) -> Bools:
        """True where the output changes the decision."""
        return np.asarray(self._of_level("above") != self.positive)

    def rate(self, name: str, overall: bool = False) -> Floats:
        """The part of each choice in a rate of its group, or in that of everybody."""
        measure = MEASURES[name]
        mu, w, q = self._of_group("base_rate"), self.w, self.value
        if overall:
            each = self.levels
            mu, w = np.array(sum(g.share * g.base_rate for g in each)), self.people
        added, total = np.zeros(len(self)), np.zeros(len(self))
        for label, share, everyone in ((0, 1.0 - self.p, 1.0 - mu), (1, self.p, mu)):
            if label in (measure.over_labels or ()):
                # The kinds of a label stand side by side, those below the threshold first.
                a, b, c = measure.coefficients[2 * label + self.positive].T
                added += w * share * (a + b * q + c * q * q)
                total += everyone
        return added / total

    def cost(self, a: Floats, b: Floats) -> Floats:
        """The part of each choice in the cost a c_fp + b c_fn of its group."""
        fp, fn = self.rate("generalized_fpr"), self.rate("generalized_fnr")
        return a[self.group] * fp + b[self.group] * fn

    @cached_property
    def equations(self) -> tuple[Any, Floats]:
        """The equations of every program: levels are divided up, and pools are calibrated."""
        columns, pooled = np.arange(len(self)), np.flatnonzero(self.pool >= 0)
        levels, pools = sum(map(len, self.levels)), int(self.pool.max()) + 1
        whole = self.row, columns, np.ones(len(self))
        excess = (self.w * (self.p - self.value))[pooled]
        calibrated = levels + self.pool[pooled], pooled, excess
        right = np.append(np.ones(levels), np.zeros(pools))
        return _sparse([whole, calibrated], (levels + pools, len(self))), right

    @property
    def unlimited(self) -> Limits:
        """No limits at all."""
        from scipy.sparse import csr_array

        return Limits.of(csr_array((0, len(self))), np.empty(0))

    @cached_property
    def falls(self) -> Any:
        """A matrix whose rows are at most 0 if and only if no higher score gets a lower output.

        With x_i the outputs of a level and x_j those of the next higher one in its group, a row
        is P(x_i >= c) - P(x_j >= c).  It is enough to look at the outputs c that the lower level
        may get: between two of these only the second term changes, and it falls.
        """
        from scipy.sparse import csr_array

        order = np.lexsort((self.value, self.row))
        ends = np.append(np.flatnonzero(np.diff(self.row[order], prepend=-1)), len(self))
        choices = [order[start:end] for start, end in pairwise(ends)]
        rows: list[Ints] = []
        signs: list[Floats] = []
        for low, high in pairwise(choices):
            if self.group[low[0]] != self.group[high[0]]:
                continue
            for index, value in enumerate(self.value[low]):
                above = high[self.value[high] >= value]
                if len(above) < len(high):
                    rows.append(np.append(low[index:], above))
                    signs.append(np.repeat([1.0, -1.0], [len(low) - index, len(above)]))
        if not rows:
            return csr_array((0, len(self)))
        starts = np.cumsum([0, *map(len, rows)])
        content = np.concatenate(signs), np.concatenate(rows), starts
        return csr_array(content, shape=(len(rows), len(self)))

    def by_group(self, *columns: Floats) -> Any:
        """A matrix that adds up each column by group: a row per column and group."""
        groups, own = len(self.levels), np.arange(len(self))
        blocks = [(self.group + groups * k, own, column) for k, column in enumerate(columns)]
        return _sparse(blocks, (groups * len(columns), len(self)))


def _sparse(blocks: Sequence[tuple[Ints, Ints, Floats]], shape: tuple[int, int]) -> Any:
    """A sparse matrix from blocks of rows, columns and values.

    For small programs it is several times as fast as putting sparse matrices together.
    """
    from scipy.sparse import csr_array

    rows, columns, values = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return csr_array((values, (rows, columns)), shape=shape)


def just_below(threshold: float) -> float:
    """The highest output of people who are not selected."""
    return max(threshold - BELOW, threshold / 2.0)


def make_choices(
    levels: Sequence[ScoreLevels], threshold: float, wide: bool, monotone: bool = False
) -> Choices:
    """The outputs that each level may get, as choices.

    Always its own share of positives; the threshold; a point :data:`BELOW` under it; and the
    group's base rate if it lies between the two.  If outputs are to be ``monotone``, also the
    share of positives of levels that must be pooled because it falls from one to the next.

    Notes
    -----
    For hard rates nothing else is needed.  Let a group's levels be split into those sent to the
    positive and to the negative side.  The positive outputs are a mean-preserving contraction of
    the levels sent there, within [threshold, 1].  The greatest of these in the convex order pools
    the lowest of them at the threshold and leaves the others alone, and so it has the
    greatest E[q^2].  The same holds below, except that the threshold itself is not reached:
    this shifts one pool by at most :data:`BELOW`.  If the shares that levels send to the positive
    side rise with the score, so do these outputs: being monotone needs no others either.

    Generalized rates and costs may need coarser outputs in between.  Then (``wide``)
    the base rate and :data:`OUTPUTS` values spaced evenly over the group's levels are outputs too:
    with d their distance, E[q^2] comes within (d / 2)^2 of the lowest possible.
    """
    columns, below = [], just_below(threshold)
    first_row = first_pool = 0
    for group, own in enumerate(levels):
        values = [threshold, below]
        if wide or below < own.base_rate < threshold:
            values.append(own.base_rate)
        if wide:
            even = np.linspace(own.p.min(), own.p.max(), OUTPUTS)
            # Near the threshold only the two points above, so that rounding decides nothing.
            values.extend(even[np.abs(even - threshold) > BELOW])
        shared = np.unique(values)
        if monotone:
            pooled = isotonic(own.p, own.w)[0]
            shared = np.union1d(shared, pooled[~np.isclose(pooled, own.p, rtol=0.0, atol=1e-12)])
        # Every level with its own share of positives (-1), then with each of the shared outputs.
        level, output = np.divmod(np.arange(len(own) * len(shared)), len(shared))
        other = shared[output] != own.p[level]
        level = np.append(np.arange(len(own)), level[other])
        output = np.append(np.full(len(own), -1), output[other])
        value = np.where(output < 0, own.p[level], shared[output])
        pool = np.where(output < 0, -1, output + first_pool)
        columns.append((np.full_like(level, group), level, level + first_row, pool, value))
        first_row, first_pool = first_row + len(own), first_pool + len(shared)
    return Choices(levels, threshold, *(np.concatenate(x) for x in zip(*columns, strict=True)))


@dataclass(frozen=True, eq=False)
class Limits:
    """Inequalities matrix @ x <= bound for the shares x of the choices.

    The bounds that are ``soft`` are raised by :func:`least_slack`, all by the same amount.
    """

    matrix: Any
    bound: Floats
    soft: Bools

    @classmethod
    def of(cls, matrix: Any, bound: Any, soft: bool = False) -> Limits:
        """Limits that are all soft, or none of them."""
        from scipy.sparse import csr_array

        matrix = csr_array(matrix)
        count = matrix.shape[0]
        return cls(matrix, np.broadcast_to(bound, count).astype(float), np.full(count, soft))

    def __add__(self, other: Limits) -> Limits:
        from scipy.sparse import vstack

        return Limits(
            vstack([self.matrix, other.matrix]).tocsr(),
            np.append(self.bound, other.bound),
            np.append(self.soft, other.soft),
        )

    def padded(self, width: int) -> tuple[Any, Floats]:
        """Matrix and bound for more variables, those of the shares first."""
        matrix = self.matrix.copy()
        matrix.resize((matrix.shape[0], width))
        return matrix, self.bound


@dataclass(frozen=True, eq=False)
class EqualityProgram:
    """A linear program: rates of the choices to make equal, each within its tolerance.

    ``rates`` has the part of each choice in each rate.  There may be further limits on the shares.
    """

    choices: Choices
    rates: Mapping[str, Floats]
    tolerances: Mapping[str, float]
    limits: Limits

    @cached_property
    def rates_matrix(self) -> Any:
        """One row per rate and group, the groups of a rate together."""
        return self.choices.by_group(*self.rates.values())

    def relaxed(self, excess: float = 0.0, slack: float = 0.0) -> EqualityProgram:
        """The program with every tolerance, or every soft limit, raised."""
        raised = {name: tolerance + excess for name, tolerance in self.tolerances.items()}
        bound = self.limits.bound + slack * self.limits.soft
        return replace(self, tolerances=raised, limits=replace(self.limits, bound=bound))

    def equations(self) -> tuple[Any, Floats, Floats]:
        """The equations, their right-hand sides, and the upper bounds of the variables.

        Variables: the shares x; per rate its lowest value s; per rate and group d = rate - s,
        between 0 and the tolerance.
        """
        matrix, right = self.choices.equations
        always, rates = matrix.tocoo(), self.rates_matrix.tocoo()
        groups, names = len(self.choices.levels), len(self.rates)
        shares, pairs = len(self.choices), np.arange(groups * names)
        below, minus = len(right) + pairs, np.full(len(pairs), -1.0)
        blocks = [
            (always.row, always.col, always.data),
            (len(right) + rates.row, rates.col, rates.data),
            (below, shares + pairs // groups, minus),
            (below, shares + names + pairs, minus),
        ]
        caps = np.repeat(list(self.tolerances.values()), groups)
        upper = np.append(np.full(shares + names, np.inf), caps)
        matrix = _sparse(blocks, (len(right) + len(pairs), len(upper)))
        return matrix, np.append(right, np.zeros(len(pairs))), upper


def solve(plan: EqualityProgram) -> Floats | None:
    """The shares with the most information E[q^2].

    None if no shares meet the constraints; :func:`least_excess` then says by how much they fail.
    """
    equations, right, upper = plan.equations()
    lost = -plan.choices.people * plan.choices.value**2
    objective = np.pad(lost, (0, len(upper) - len(lost)))
    best = _minimize(objective, equations, right, upper, plan.limits.padded(len(upper)))
    if best is None:
        return None
    shares, exact, error = best[: len(plan.choices)], None, math.inf
    # Shares that are noise are dropped, unless the equations cannot be met without them.
    for noise in (1e-6, 1e-9, 0.0):
        x, residual = _adjust(plan, np.where(shares > noise, shares, 0.0))
        if residual < error:
            exact, error = x, residual
        if error <= EXACT / 100:
            break
    return exact if error <= EXACT else None


def least_excess(plan: EqualityProgram) -> float:
    """The least amount by which all tolerances must be raised to be met.

    NaN if the plan has limits that no tolerance meets.
    """
    from scipy.sparse import eye_array

    _, _, upper = plan.equations()
    capped = np.flatnonzero(np.isfinite(upper))
    # Each difference less the excess is at most the tolerance.
    differences = Limits.of(eye_array(len(upper)).tocsr()[capped], upper[capped], soft=True)
    hard = replace(plan.limits, soft=np.zeros_like(plan.limits.soft))
    matrix, bound = hard.padded(len(upper))
    free = np.full(len(upper), np.inf)
    least = _least_raise(plan, differences + Limits.of(matrix, bound), free)
    if math.isnan(least) and not len(plan.limits.bound):
        # Every level may keep its own share of positives, so some tolerance is enough.
        raise unsolved("no tolerance is enough")
    return least


def least_slack(plan: EqualityProgram) -> float:
    """The least amount by which all soft limits must be raised for the tolerances to be met.

    NaN if no such amount is enough, or if there are no soft limits.
    """
    _, _, upper = plan.equations()
    if not plan.limits.soft.any():
        return math.nan
    matrix, bound = plan.limits.padded(len(upper))
    return _least_raise(plan, replace(plan.limits, matrix=matrix, bound=bound), upper)


def _least_raise(plan: EqualityProgram, limits: Limits, upper: Floats) -> float:
    """The least amount by which soft limits, here on all variables, must be raised to be met."""
    from scipy.sparse import csr_array, hstack

    equations, right, _ = plan.equations()
    width = equations.shape[1]
    equations.resize((equations.shape[0], width + 1))
    raised = csr_array(-limits.soft[:, None].astype(float))
    matrix = hstack([limits.matrix, raised]).tocsr()
    objective = np.append(np.zeros(width), 1.0)
    x = _minimize(objective, equations, right, np.append(upper, np.inf), (matrix, limits.bound))
    return math.nan if x is None else max(0.0, float(x[-1]))


def extremes(plan: EqualityProgram, column: Floats) -> tuple[float, float]:
    """The lowest and the highest value of what each choice adds; NaN if nothing is feasible."""
    equations, right, upper = plan.equations()
    limits = plan.limits.padded(len(upper))
    objective = np.pad(column, (0, len(upper) - len(column)))
    ends = [_minimize(sign * objective, equations, right, upper, limits) for sign in (1.0, -1.0)]
    low, high = (math.nan if x is None else float(objective @ x) for x in ends)
    return low, high


def _minimize(
    objective: Floats, equations: Any, right: Floats, upper: Floats, limits: tuple[Any, Any]
) -> Floats | None:
    """The variables, at least 0, with the least objective; None if there are none.

    On the brink of infeasibility one method of the solver may give up where the other does not.
    """
    from scipy.optimize import linprog

    for method in ("highs", "highs-ipm"):
        result = linprog(
            objective,
            A_ub=limits[0] if len(limits[1]) else None,
            b_ub=limits[1] if len(limits[1]) else None,
            A_eq=equations,
            b_eq=right,
            bounds=np.stack([np.zeros(len(upper)), upper], axis=1),
            method=method,
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.status in (SOLVED, INFEASIBLE):
            break
    return result.x if result.status == SOLVED else None


def _adjust(plan: EqualityProgram, x: Floats) -> tuple[Floats, float]:
    """Shares near x that meet the equations, and by how much they still miss them.

    Only shares that are open change.  Rates that differ by more than is allowed move minimally.
    """
    from scipy.sparse import vstack

    level = plan.choices.row
    x = x / np.bincount(level, x)[level]
    equations, right = plan.choices.equations
    at = plan.limits.matrix @ x
    # Limits that are met with room to spare stay met; the others become equations.
    tight = at > plan.limits.bound - NEAR
    matrix = vstack([equations, plan.rates_matrix, plan.limits.matrix[tight]]).tocsc()
    bounded = np.minimum(at, plan.limits.bound)[tight]
    rates: Floats = (plan.rates_matrix @ x).reshape(len(plan.rates), -1)
    allowed = np.array(list(plan.tolerances.values()))[:, None]
    low, high = rates.min(axis=1, keepdims=True), rates.max(axis=1, keepdims=True)
    middle, half = (low + high) / 2.0, np.minimum(allowed, high - low) / 2.0
    within = np.clip(rates, middle - half, middle + half)
    goal = np.concatenate([right, within.ravel(), bounded])
    for _ in range(4):
        open_ = np.flatnonzero((x > 0) & (x < 1))
        residual = goal - matrix @ x
        if not len(open_) or np.abs(residual).max() < 1e-15:
            break
        columns = matrix[:, open_].toarray()
        touched = np.abs(columns).max(axis=1) > 0
        change = np.linalg.lstsq(columns[touched], residual[touched], rcond=1e-12)[0]
        x[open_] = np.clip(x[open_] + change, 0.0, 1.0)
    missed = np.abs(goal - matrix @ x)
    # A limit may be missed on the side of caution.
    over = plan.limits.matrix @ x - plan.limits.bound
    exact = missed[: len(missed) - len(bounded)]
    return x, float(max(exact.max(), over.max(initial=0.0)))


def unsolved(message: str) -> IsocostError:
    """An error of the solver, which should not happen."""
    return IsocostError(
        Problem(
            "reconcile",
            "needs the solution of a linear program",
            f"from the solver: {message}",
            f"use fewer {setting('levels')}, or a tolerance above 0",
        )
    )
