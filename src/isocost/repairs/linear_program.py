"""The levels of a group: neighbouring scores pooled until a share of positives means something.

The linear program of reconciling: who may get which score, and what that does to the rates.

A *choice* is a level and an output.  Its variable is the share x of the level that gets
the output, so that x >= 0 adds up to 1 over the choices of a level.  Everything else is
linear in x: that an output is calibrated, every rate, and every harm.

Solving the program of reconciling, to the last digit.

A solver of linear programs meets its constraints to about 1e-9.  Its answer says who is
split between which outputs; the shares themselves are then found again from the equations.

Equal rates that nobody wants: those of selecting nobody, or everybody.

With every base rate below the threshold, a score just below it for everybody is calibrated and has
FPR 0 and FNR 1 in every group.  It is always there, and of no use.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from isocost.errors import IsocostError, Problem
from isocost.groups import Group
from isocost.measures.table import MEASURES
from isocost.tallies import Tally, add_up
from isocost.typing import Bools, Floats, Ints

__all__ = [
    "BELOW",
    "EXACT",
    "FEWEST",
    "SOME",
    "Choices",
    "Corner",
    "Plan",
    "ScoreLevels",
    "Selected",
    "bounds",
    "clash",
    "corner_of",
    "least_excess",
    "make_choices",
    "score_levels",
    "solve",
    "unsolved",
]

FEWEST = 20
"""A level holds at least so many rows where it can: the share of positives of fewer is noise, and
a level of one row would hand out its label as a score."""

SNAP = 1e-12
"""A share of positives this near the threshold is the threshold: rounding decides nothing."""


@dataclass(frozen=True, eq=False)
class ScoreLevels:
    """The levels of one group, from low to high scores.

    Attributes
    ----------
    lo, hi : arrays
        The interval [lo, hi) of scores; no interval reaches over the threshold.
    above : array of bool
        Whether the interval lies at or above the threshold.
    n, w : arrays
        Rows, and share of the group's weight.
    p, h : arrays
        Share of positives, and mean score.
    share : float
        The group's share of everybody.
    base_rate : float
        The group's share of positives.
    """

    lo: Floats
    hi: Floats
    above: Bools
    n: Floats
    w: Floats
    p: Floats
    h: Floats
    share: float
    base_rate: float

    def __len__(self) -> int:
        return len(self.w)


def score_levels(tally: Tally, place: int, threshold: float, most: int) -> ScoreLevels:
    """Pool neighbouring bins of a group to at most ``most`` levels (two or more).

    From low to high a level is closed when it has 1 / most of the group's weight and
    :data:`FEWEST` rows; what is left over at the end of a side of the threshold joins the
    last level of that side.  Between two levels empty bins are shared half and half.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> caucasian = score_levels(compas(), 1, 0.5, 64)
    >>> caucasian.p.round(3).tolist()
    [0.209, 0.313, 0.341, 0.396, 0.461, 0.572, 0.615, 0.719, 0.694, 0.703]
    >>> len(score_levels(compas(), 1, 0.5, 4))
    3
    """
    cells, size = tally.cells, tally.grid.size
    inside = cells.group == place
    bin_, w = cells.bin[inside], cells.w[inside]
    values = (cells.n[inside], w, w * cells.label[inside], cells.wh[inside])
    sums = np.stack([add_up(bin_, value, size) for value in values])
    used = np.flatnonzero(sums[1] > 0)
    first = tally.grid.first_bin(threshold)
    starts = np.array(list(_starts(used >= first, sums[:2, used], most)), dtype=np.intp)
    n, weight, positive, wh = np.add.reduceat(sums[:, used], starts, axis=1)
    above = used[starts] >= first
    lo, hi = _intervals(tally.grid.cuts, used, starts, first)
    p = positive / weight
    return ScoreLevels(
        lo=lo,
        hi=hi,
        above=above,
        n=n,
        w=weight / weight.sum(),
        p=np.where(np.abs(p - threshold) < SNAP, threshold, p),
        h=wh / weight,
        share=float(weight.sum() / tally.totals.w.sum()),
        base_rate=float(positive.sum() / weight.sum()),
    )


def _starts(above: Bools, sums: Floats, most: int) -> Iterator[int]:
    """The places where a level begins."""
    enough = sums[1].sum() / most * (1.0 - 1e-12)
    for side in (False, True):
        places = np.flatnonzero(above == side)
        rest = sums[:, places].sum(axis=1)
        rows = weight = 0.0
        for k, place in enumerate(places):
            # What is left must be able to fill a level of its own.
            full = weight >= enough and rows >= FEWEST
            if k == 0 or (full and rest[1] >= enough and rest[0] >= FEWEST):
                yield int(place)
                rows = weight = 0.0
            rows, weight = rows + sums[0, place], weight + sums[1, place]
            rest = rest - sums[:, place]


def _intervals(cuts: Floats, used: Ints, starts: Ints, first: int) -> tuple[Floats, Floats]:
    """The intervals of the levels: they fill each side of the threshold that has anybody."""
    begin = used[starts]
    end = np.append(used[starts[1:] - 1], used[-1]) + 1
    above = begin >= first
    middle = (end[:-1] + begin[1:]) // 2
    apart = above[1:] != above[:-1]
    lo = np.concatenate([[first if above[0] else 0], np.where(apart, first, middle)])
    hi = np.append(np.where(apart, first, middle), len(cuts) - 1 if above[-1] else first)
    return cuts[lo], cuts[hi]


BELOW = 1.0 / 1024.0
"""How far below the threshold the highest pool of negatives lies."""

OUTPUTS = 32
"""How many evenly spaced outputs a group's levels share where hard rates are not all."""


@dataclass(frozen=True, eq=False)
class Choices:
    """The columns of the program, over all groups; every array has one entry per choice.

    Attributes
    ----------
    levels : sequence of ScoreLevels
        The levels of each group.
    threshold : float
        An output at or above it is positive.
    group, level : arrays
        The group, and the level within the group.
    row : array
        The number of the level among all levels of all groups.
    pool : array
        The number of the output among all outputs that several levels share; -1 for a level's
        own share of positives, which is calibrated whoever else is there.
    value : array
        The output.
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
        values: Floats = np.concatenate([getattr(part, name) for part in self.levels])[self.row]
        return values

    def _of_group(self, name: str) -> Floats:
        values: Floats = np.array([getattr(part, name) for part in self.levels])[self.group]
        return values

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
        """Whether the output is at or above the threshold."""
        return self.value >= self.threshold

    @cached_property
    def people(self) -> Floats:
        """The level's share of everybody."""
        return self.w * self._of_group("share")

    @cached_property
    def turned(self) -> Bools:
        """Whether the output changes the decision."""
        return np.asarray(self.positive != self._of_level("above"), dtype=np.bool_)

    @cached_property
    def distance(self) -> Floats:
        """How far the output lies from the level's mean score."""
        return np.abs(self.value - self._of_level("h"))

    def rate(self, name: str) -> Floats:
        """What each choice adds to a rate of its group."""
        measure = MEASURES[name]
        mu, q = self._of_group("base_rate"), self.value
        added, total = np.zeros(len(self)), np.zeros(len(self))
        for label, share, everyone in ((0, 1.0 - self.p, 1.0 - mu), (1, self.p, mu)):
            if label in (measure.over_labels or ()):
                # The kinds of a label stand side by side, those below the threshold first.
                a, b, c = measure.coefficients[2 * label + self.positive].T
                added += self.w * share * (a + b * q + c * q * q)
                total += everyone
        return added / total

    def cost(self, a: Floats, b: Floats) -> Floats:
        """What each choice adds to the cost a c_fp + b c_fn of its group."""
        fp, fn = self.rate("generalized_fpr"), self.rate("generalized_fnr")
        return a[self.group] * fp + b[self.group] * fn

    def harm(self, keep: str) -> Floats:
        """What each choice adds to the harm that is made small.

        Information lost: -E[q^2].  Decisions: the share of people whose decision changes.
        Scores: E|q - h|.
        """
        if keep == "information":
            return -self.people * self.value**2
        return self.people * (self.turned if keep == "decisions" else self.distance)

    @cached_property
    def matrix(self) -> Any:
        """The rows that hold whatever is asked: every level is somewhere, pools are calibrated."""
        from scipy.sparse import coo_array, vstack

        columns = np.arange(len(self))
        shape = (sum(map(len, self.levels)), len(self))
        everyone = coo_array((np.ones(len(self)), (self.row, columns)), shape=shape)
        pooled = self.pool >= 0
        excess = (self.w * (self.p - self.value))[pooled]
        shape = (int(self.pool.max()) + 1, len(self))
        calibrated = coo_array((excess, (self.pool[pooled], columns[pooled])), shape=shape)
        return vstack([everyone, calibrated]).tocsr()

    @cached_property
    def totals(self) -> Floats:
        """The right-hand sides of :attr:`matrix`."""
        right = np.zeros(self.matrix.shape[0])
        right[: sum(map(len, self.levels))] = 1.0
        return right

    def rates_matrix(self, rates: Mapping[str, Floats]) -> Any:
        """One row per rate and group, the groups of a rate together."""
        from scipy.sparse import coo_array

        groups = len(self.levels)
        columns = np.arange(len(self))
        rows = np.concatenate([self.group + groups * k for k in range(len(rates))])
        values = np.concatenate(list(rates.values()))
        shape = (groups * len(rates), len(self))
        return coo_array((values, (rows, np.tile(columns, len(rates)))), shape=shape).tocsr()


def make_choices(levels: Sequence[ScoreLevels], threshold: float, wide: bool) -> Choices:
    """The outputs that each level may get.

    Always its own share of positives; the threshold; a point :data:`BELOW` under it; and the
    group's base rate if it lies between the two.

    Notes
    -----
    For hard rates nothing else is needed.  Let a group's levels be split into those sent to the
    positive and to the negative side.  The positive outputs are a mean-preserving contraction of
    the levels sent there, within [threshold, 1].  The greatest of these in the convex order pools
    the lowest of them at the threshold and leaves the others alone, and so it has the
    greatest E[q^2].  The same holds below, except that the threshold itself is not reached:
    this costs at most :data:`BELOW` in the place of one pool.

    Generalized rates, costs and distances may want coarser outputs in between.  Then (``wide``)
    the base rate and :data:`OUTPUTS` values spaced evenly over the group's levels are outputs too:
    with d their distance, E[q^2] comes within (d / 2)^2 of the lowest that can be had.
    """
    parts = []
    first_row = first_pool = 0
    for group, part in enumerate(levels):
        shared = _shared(part, threshold, wide)
        level = np.arange(len(part))
        own = np.stack([level, np.full_like(level, -1)])
        cross = np.stack(
            [np.repeat(level, len(shared)), np.tile(np.arange(len(shared)), len(part))]
        )
        cross = cross[:, shared[cross[1]] != part.p[cross[0]]]
        level, output = np.concatenate([own, cross], axis=1)
        value = np.where(output < 0, part.p[level], shared[output])
        pool = np.where(output < 0, -1, output + first_pool)
        parts.append((np.full_like(level, group), level, level + first_row, pool, value))
        first_row, first_pool = first_row + len(part), first_pool + len(shared)
    return Choices(levels, threshold, *(np.concatenate(x) for x in zip(*parts, strict=True)))


def _shared(part: ScoreLevels, threshold: float, wide: bool) -> Floats:
    """The outputs that every level of a group may get."""
    below = max(threshold - BELOW, threshold / 2.0)
    values = [threshold, below]
    if wide or below < part.base_rate < threshold:
        values.append(part.base_rate)
    if wide:
        even = np.linspace(part.p.min(), part.p.max(), OUTPUTS)
        # Near the threshold only the two points above, so that rounding decides nothing.
        values.extend(even[np.abs(even - threshold) > BELOW])
    return np.unique(values)


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


Selected = Literal["nobody", "everybody"]

HALF = 0.5
"""A tolerance selects people if every group can select this share of those it selected before.

Any tolerance above 0 selects somebody, but the fewer the smaller it is, so there is no smallest."""

FEW, NONE = 0.01, 1e-9
"""Up to this share of those selected before, and up to this share of a group, is next to nobody."""

SOME = {"nobody": "somebody selected", "everybody": "somebody not selected"}


@dataclass(frozen=True)
class Corner:
    """Rates that can be equal only if nobody, or everybody, is selected.

    Attributes
    ----------
    selected : {"nobody", "everybody"}
        Who would be.
    tolerance : float
        The smallest tolerance with which every group can select half as many people as before, or
        as calibrated scores can select (or leave out half as many); NaN if there is none.
    groups : tuple
        The two groups that clash, or the one that no tolerance helps.
    reason : str
        Why they do.
    """

    selected: Selected
    tolerance: float
    groups: tuple[Group, ...]
    reason: str


def corner_of(choices: Choices, shares: Floats) -> Selected | None:
    """Whether in every group next to nobody is selected, or not selected, unlike before."""
    after = choices.rates_matrix({"": choices.rate("selection_rate")}) @ shares
    before = np.array([_selected(part) for part in choices.levels])
    if before.any() and (after <= FEW * before + NONE).all():
        return "nobody"
    if (before < 1.0).any() and (1.0 - after <= FEW * (1.0 - before) + NONE).all():
        return "everybody"
    return None


def _selected(part: ScoreLevels) -> float:
    """The share of a group that scores at or above the threshold."""
    return float(part.w[part.above].sum())


def bounds(choices: Choices, selected: Selected) -> tuple[Floats, Floats]:
    """Bounds of the selection rates: half as many people as before, or as calibration allows.

    A group can select those of its levels with the highest shares of positives, as many as have
    the threshold for their mean; and leave out in the same way.
    """
    flip = selected == "everybody"
    below = max(choices.threshold - BELOW, choices.threshold / 2.0)
    shares = []
    for part in choices.levels:
        before = _selected(part)
        p, least = (1.0 - part.p, 1.0 - below) if flip else (part.p, choices.threshold)
        most = _most(p, part.w, least)
        # Where calibrated scores can select nobody, no tolerance is to be enough.
        shares.append(min(1.0 - before if flip else before, most or 1.0))
    half = HALF * np.array(shares)
    return (np.zeros(len(half)), 1.0 - half) if flip else (half, np.ones(len(half)))


def _most(p: Floats, w: Floats, least: float) -> float:
    """The weight of the levels with the highest p, as many as have the mean ``least``."""
    order = np.argsort(-p)
    w, spare = w[order], (w * (p - least))[order]
    left = np.cumsum(spare)
    partly = np.flatnonzero(left < 0.0)[:1]
    share = 1.0 - left[partly] / spare[partly]
    return float(w[left >= 0.0].sum() + (w[partly] * share).sum())


def clash(
    levels: Sequence[ScoreLevels], threshold: float, selected: Selected
) -> tuple[list[int], str]:
    """The groups because of which equal FPR and FNR leave nobody, or everybody, selected; and why.

    A pool of people with the share of positives p has TPR / FPR = p / (1 - p) * (1 - mu) / mu, and
    a calibrated score at the threshold or above has p of at least the threshold.  So equal
    rates take a ratio that is no lower than that of the threshold in the group where it is highest,
    and no higher than that of the best level in the group where it is lowest.  For those who are
    not selected it is the same with labels and scores the other way round.

    Returns the places of the groups, and a text with a field for each name.
    """
    flip = selected == "everybody"
    best = [float((1.0 - part.p if flip else part.p).max()) for part in levels]
    rate = np.array([1.0 - part.base_rate if flip else part.base_rate for part in levels])
    least = 1.0 - threshold if flip else threshold
    if min(best) < least:
        short = int(np.argmin(best))
        edge = "over" if flip else "under"
        return [short], f"every share of positives in {{}} lies {edge} {threshold:g}"
    with np.errstate(divide="ignore"):
        can = np.array(best) / (1.0 - np.array(best)) * (1.0 - rate) / rate
    must = least / (1.0 - least) * (1.0 - rate) / rate
    high, low = int(np.argmax(must)), int(np.argmin(can))
    ratio = "TNR / FNR of those not selected" if flip else "TPR / FPR of those selected"
    reason = f"{ratio} is at least {must[high]:.4g} in {{}} and at most {can[low]:.4g} in {{}}"
    return [high, low], reason
