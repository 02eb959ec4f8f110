"""Linear programs: what may be asked of them, levels of scores, and sparse models to solve.

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
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from isocost.cells import add_up
from isocost.checks import (
    as_number,
    check_flag,
    check_tolerance,
    check_unit,
    check_whole,
    check_word,
    short,
)
from isocost.costs import Cost
from isocost.errors import IsocostError, Problem, UsageError, setting, spoken
from isocost.measures.table import MEASURES, OVERALL
from isocost.question import Question
from isocost.result import Record
from isocost.tables import round_up
from isocost.tallies import Tally
from isocost.typing import Bools, Floats, Ints

# Requests and verdicts

RATES: tuple[str, ...] = (
    # Base rate and mean score of calibrated scores are the same, and no rule changes them.
    *(m for m, row in MEASURES.items() if row.over_labels and m not in {"base_rate", "mean_score"}),
    "cost",
)
"""Rates that can be made equal: measures that are linear in who gets which score, and costs."""

FLOORS: tuple[str, ...] = tuple(
    prefix + name
    for prefix in ("", OVERALL)
    for name in RATES
    if name in MEASURES and MEASURES[name].better != "lower"
)
"""Rates that can have a floor: of which more may be wanted."""

EVERYTHING = "everything"
"""Equal among the decided when people are handed over."""

_WHOLE = (EVERYTHING,)

KEEPS: tuple[str, ...] = ("information", "brier")

LEAST = "least"

FEWEST_DECIDED = 0.01
"""At least this share of every group is decided; handing over all others repairs nothing."""

FEWEST_LEVELS, MOST_LEVELS = 2, 1024

Levels: TypeAlias = int | Literal["auto"]


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`isocost.reconcile` or :func:`isocost.hand_over`, in one form.

    ``tolerances`` has a number for each rate that is to be equal; ``share`` is None for the least.
    """

    threshold: float
    tolerances: Mapping[str, float]
    levels: Levels
    cost: Cost | None = None
    floor: Mapping[str, float] = field(default_factory=dict)
    no_worse: bool = False
    monotone: bool = False
    share: float | None = None
    keep: str = KEEPS[0]

    @property
    def equal(self) -> tuple[str, ...]:
        """The rates that are to be equal."""
        return tuple(self.tolerances)

    def raised(self, excess: float = 0.0) -> float | dict[str, float]:
        """The tolerances, raised; one number if all are the same."""
        raised = {name: tolerance + excess for name, tolerance in self.tolerances.items()}
        return raised if len(set(raised.values())) > 1 else max(raised.values())


def check_request(
    question: Question,
    tolerance: Any,
    levels: Any,
    *,
    equal: Any = _WHOLE,
    floor: Any = None,
    no_worse: Any = False,
    monotone: Any = False,
    share: Any = None,
    keep: Any = KEEPS[0],
) -> Request:
    """Bring the arguments into one form; raise if one of them is invalid."""
    names = _WHOLE if equal is _WHOLE else _check_equal(equal)
    # Everything at once has one tolerance.
    is_named = isinstance(tolerance, Mapping) and names is not _WHOLE
    by_name = tolerance if is_named else dict.fromkeys(names, tolerance)
    if unknown := [name for name in by_name if name not in names]:
        rule = f"must be a number, or name only rates that are to be equal: {', '.join(names)}"
        step = f"add them to {setting('equal')}, or leave them out; a rate that is not named gets 0"
        raise UsageError(Problem("tolerance", rule, ", ".join(map(repr, unknown)), step))
    if not isinstance(levels, str) or levels != "auto":
        step = f"use {setting('levels', 'auto')}, the default"
        levels = check_whole("levels", levels, FEWEST_LEVELS, MOST_LEVELS, step)
    if check_flag("no_worse", no_worse) and not any(map(direction_of, names)):
        can = spoken("can be True", "can be given")
        rule = f"{can} only if {setting('equal')} has a rate that can get worse"
        least = setting("floor", {"selection_rate": ...})
        step = f"use {least}, or another rate in {setting('equal')}"
        raise UsageError(Problem("no_worse", rule, setting("equal", names), step))
    check_word("keep", keep, KEEPS)
    share = None if isinstance(share, str) and share == LEAST else share
    if share is not None and not 0.0 <= as_number(share) <= 1.0 - FEWEST_DECIDED:
        rule = f'must be a share from 0 to {1.0 - FEWEST_DECIDED:g}, or "{LEAST}"'
        step = "use 0.25 to hand over a quarter of each group"
        raise UsageError(Problem("share", rule, short(share), step))
    return Request(
        threshold=question.threshold,
        tolerances={name: check_tolerance(by_name.get(name, 0.0)) for name in names},
        levels=levels,
        cost=question.cost if "cost" in names else None,
        floor={} if floor is None else _check_floor(floor),
        no_worse=bool(no_worse),
        monotone=check_flag("monotone", monotone),
        share=None if share is None else as_number(share),
        keep=keep,
    )


def _check_equal(equal: Any) -> tuple[str, ...]:
    listed = (equal,) if isinstance(equal, str) else equal if isinstance(equal, Sequence) else ()
    names = tuple(listed) if all(isinstance(name, str) for name in listed) else ()
    if not names or len(set(names)) != len(names) or not set(names) <= set(RATES):
        rule = f"must name rates to be equal, each once, from {', '.join(RATES)}"
        step = f"use {setting('equal', ('fpr', 'fnr'))}"
        raise UsageError(Problem("equal", rule, short(equal), step))
    return names


def _check_floor(floor: Any) -> dict[str, float]:
    unknown = [name for name in floor if name not in FLOORS] if isinstance(floor, Mapping) else [0]
    if unknown:
        mapping = spoken("must be a mapping from rates to numbers", "must name rates")
        rule = f"{mapping}; a floor can be of {', '.join(FLOORS)}"
        got = setting("floor", floor) if isinstance(floor, Mapping) else short(floor)
        step = f"use for example {setting('floor', {'selection_rate': 0.1})}"
        if any(name in RATES for name in unknown):
            step = f"{step}; to keep error rates from rising use {setting('no_worse', True)}"
        raise UsageError(Problem("floor", rule, spoken(short(floor), got), step))
    return {name: check_unit(f"floor of {name}", least) for name, least in floor.items()}


def direction_of(name: str) -> Literal["lower", "higher"] | None:
    """The better direction of a rate, or of the cost."""
    return "lower" if name == "cost" else MEASURES[name].better


@dataclass(frozen=True)
class Achievability(Record):
    """The verdict on a request, and the nearest one that can be met.

    Attributes
    ----------
    request : Request
        The request.
    feasible : bool
        True if it can be met.
    excess : float
        The least amount by which every tolerance must be raised; 0 if none need be, NaN if no
        tolerance is enough.
    """

    asked: ClassVar[tuple[str, ...]] = ()

    request: Request
    feasible: bool = True
    excess: float = 0.0

    def _asked(self) -> dict[str, Any]:
        return {name: getattr(self.request, name) for name in self.asked}

    @property
    def smallest_tolerance(self) -> float:
        """The largest tolerance requested plus ``excess``: it is enough for all rates."""
        return max(self.request.tolerances.values()) + self.excess

    def enough(self) -> str:
        """The argument with the smallest tolerances, rounded up."""
        raised = self.request.raised(self.excess)
        if isinstance(raised, float):
            return setting("tolerance", float(round_up(raised)))
        return setting("tolerance", {n: float(round_up(t)) for n, t in raised.items()})


# Levels

FEWEST = 20
"""The least number of rows of a level, where there are as many: the share of positives of fewer is
noise, and a level of one row would hand out its label as a score."""


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


def score_levels(
    tally: Tally,
    group: int,
    threshold: float,
    most: Levels = "auto",
    monotone: bool = False,
    selecting: bool = False,
) -> ScoreLevels:
    """Pool neighbouring bins of a group into at most ``most`` levels (two or more).

    From low to high, a level is closed when it has 1 / most of the group's weight and
    :data:`FEWEST` rows; the remainder on either side of the threshold joins the last level of
    that side.  Empty bins between two levels are shared half and half.  If ``monotone``, levels
    are pooled further until shares of positives rise on each side of the threshold.

    If ``selecting``, a group in which somebody scores at or above the threshold has a level with
    such a share of positives, if need be a small one, and likewise below: see :func:`_reaching`.
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
    # A group of hardly any rows would hand out labels as scores.
    if selecting and sums[0].sum() >= FEWEST:
        for sign, at, side in ((1.0, threshold, above), (-1.0, just_below(threshold), ~above)):
            starts = _reaching(starts, side, sums[0, used], sign * (sums[2] - at * sums[1])[used])
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
    """The nearest values that never fall, and where their blocks start."""
    from scipy.optimize import isotonic_regression

    fitted = isotonic_regression(values, weights=weights)
    return fitted.x, fitted.blocks[:-1]


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


def _reaching(starts: Ints, side: Bools, rows: Floats, excess: Floats) -> Ints:
    """The starts of levels of which at least one has no negative sum of ``excess``, if possible.

    If none has, the interval with most rows on this side that has becomes a level.
    """
    if not side.any() or np.add.reduceat(excess, starts).max() >= 0.0:
        return starts
    places = np.append(np.flatnonzero(side), np.flatnonzero(side)[-1] + 1)
    total, count = (np.append(0.0, np.cumsum(part[side])) for part in (excess, rows))
    size = np.where(total >= total[:, None], count - count[:, None], 0.0)
    begin, end = places[list(np.unravel_index(size.argmax(), size.shape))]
    if size.max() <= 0.0:
        return starts
    kept = starts[(starts < begin) | (starts > end)]
    return np.union1d(kept, [begin, end][: 1 + (end < len(side))]).astype(np.intp)


# The program

BELOW = 1.0 / 1024.0
"""Distance of the highest pool of negatives from the threshold."""

OUTPUTS = 32
"""The number of evenly spaced outputs that a group's levels share where hard rates are not all."""

EXACT = 1e-10
"""Largest error of a plan in its equations."""

NEAR = 1e-6
"""A limit that is this near its bound may be missed when the shares are put right."""


@dataclass(frozen=True, eq=False)
class Choices:
    """The columns of the program, over all groups; every array has one entry per choice.

    ``level`` counts the levels of a group, and ``row`` all levels of all groups.  The output is
    ``value``, and ``pool`` its number among all outputs that several levels share; -1 for a level's
    own share of positives, which is always calibrated.  The level has the share ``w`` of its group
    and ``people`` of everybody, and the share of positives ``p``; ``positive`` outputs are at or
    above the threshold, and ``flipped`` ones change the decision.
    """

    levels: Sequence[ScoreLevels]
    threshold: float
    group: Ints
    level: Ints
    row: Ints
    pool: Ints
    value: Floats
    w: Floats
    p: Floats
    people: Floats
    positive: Bools
    flipped: Bools

    def __len__(self) -> int:
        return len(self.value)

    def rate(self, name: str, overall: bool = False) -> Floats:
        """The part of each choice in a rate of its group, or in that of everybody."""
        measure = MEASURES[name]
        rates, w, q = np.array([each.base_rate for each in self.levels]), self.w, self.value
        mu = rates[self.group]
        if overall:
            mu, w = np.array([each.share for each in self.levels]) @ rates, self.people
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
    def equations(self) -> System:
        """The equations of every program: levels are divided up, and pools are calibrated."""
        pooled, rows = np.flatnonzero(self.pool >= 0), SparseRows(len(self))
        rows.add(sum(map(len, self.levels)), 1.0, (self.row, np.arange(len(self)), 1.0))
        excess = (self.w * (self.p - self.value))[pooled]
        rows.add(int(self.pool.max()) + 1, 0.0, (self.pool[pooled], pooled, excess))
        return rows.system

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
        rows, own = SparseRows(len(self)), np.arange(len(self))
        for column in columns:
            rows.add(len(self.levels), 0.0, (self.group, own, column))
        return rows.system[0]


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
    names = ("group", "level", "row", "pool", "value")
    found: dict[str, Any] = {
        name: np.concatenate(column)
        for name, column in zip(names, zip(*columns, strict=True), strict=True)
    }
    w, p, above = (
        np.concatenate([getattr(each, name) for each in levels])[found["row"]]
        for name in ("w", "p", "above")
    )
    people = w * np.array([each.share for each in levels])[found["group"]]
    positive = found["value"] >= threshold
    found |= {"w": w, "p": p, "people": people}
    return Choices(levels, threshold, **found, positive=positive, flipped=above != positive)


class Limit(NamedTuple):
    """Inequalities matrix @ x <= bound for the shares x; :func:`least_slack` raises soft ones."""

    matrix: Any
    bound: Floats
    soft: bool = False


@dataclass(frozen=True, eq=False)
class EqualityProgram:
    """A linear program: rates of the choices to make equal, each within its tolerance.

    ``rates`` has the part of each choice in each rate.  There may be limits on the shares.
    """

    choices: Choices
    rates: Mapping[str, Floats]
    tolerances: Mapping[str, float]
    limits: Sequence[Limit] = ()

    @cached_property
    def rates_matrix(self) -> Any:
        """One row per rate and group, the groups of a rate together."""
        return self.choices.by_group(*self.rates.values())

    @cached_property
    def limited(self) -> tuple[System, Bools]:
        """All limits together, and which of them are soft."""
        from scipy.sparse import csr_array, vstack

        none = csr_array((0, len(self.choices)))
        matrix = vstack([none, *(limit.matrix for limit in self.limits)]).tocsr()
        bound = np.concatenate([np.empty(0), *(limit.bound for limit in self.limits)])
        soft = [np.full(len(limit.bound), limit.soft) for limit in self.limits]
        return (matrix, bound), np.concatenate([np.zeros(0, dtype=bool), *soft])

    def relaxed(self, excess: float = 0.0, slack: float = 0.0) -> EqualityProgram:
        """The program with every tolerance, or every soft limit, raised."""
        raised = {name: tolerance + excess for name, tolerance in self.tolerances.items()}
        limits = [limit._replace(bound=limit.bound + slack * limit.soft) for limit in self.limits]
        return replace(self, tolerances=raised, limits=limits)

    def minimum(self, column: Floats | None = None, raising: str = "") -> Floats | None:
        """The variables with the least of what each choice adds; None if nothing is feasible.

        Variables: the shares x; per rate its lowest value s; per rate and group d = rate - s,
        between 0 and the tolerance; and an amount by which "tolerances", or soft "limits", may be
        raised.  Without a column the least such amount is looked for.
        """
        groups, names = len(self.choices.levels), len(self.rates)
        shares, pairs = len(self.choices), np.arange(groups * names)
        differences = shares + names + pairs
        width = shares + names + len(pairs) + 1
        equal, below = SparseRows(width), SparseRows(width)
        matrix, right = self.choices.equations
        equal.add(len(right), right, matrix)
        minus = (pairs, shares + pairs // groups, -1.0), (pairs, differences, -1.0)
        equal.add(len(pairs), 0.0, self.rates_matrix, *minus)
        (matrix, bound), soft = self.limited
        raised = np.flatnonzero(soft) if raising == "limits" else np.empty(0, dtype=int)
        below.add(len(bound), bound, matrix, (raised, np.full(len(raised), width - 1), -1.0))
        upper = np.full(width, np.inf)
        caps = np.repeat(list(self.tolerances.values()), groups)
        if raising == "tolerances":
            capped = np.flatnonzero(np.isfinite(caps))
            rows = np.arange(len(capped))
            amount = rows, np.full(len(capped), width - 1), -1.0
            below.add(len(capped), caps[capped], (rows, differences[capped], 1.0), amount)
        else:
            upper[differences] = caps
        upper[-1] = np.inf if raising else 0.0
        objective = np.zeros(width)
        if column is None:
            objective[-1] = 1.0
        else:
            objective[:shares] = column
        found = minimize(objective, equal.system, below.system, (np.zeros(width), upper))
        return None if found is None else np.asarray(found.x)


def solve(plan: EqualityProgram) -> Floats | None:
    """The shares with the most information E[q^2]; None if none meet the constraints."""
    best = plan.minimum(-plan.choices.people * plan.choices.value**2)
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
    """The least amount by which all tolerances must be raised; NaN if none meets the limits."""
    least = plan.minimum(raising="tolerances")
    if least is None and not plan.limits:
        # Every level may keep its own share of positives, so some tolerance is enough.
        raise unsolved("reconcile", "no tolerance is enough")
    return math.nan if least is None else max(0.0, float(least[-1]))


def least_slack(plan: EqualityProgram) -> float:
    """The least amount by which all soft limits must be raised for the tolerances to be met.

    NaN if no such amount is enough, or if there are no soft limits.
    """
    soft = any(limit.soft for limit in plan.limits)
    least = plan.minimum(raising="limits") if soft else None
    return math.nan if least is None else max(0.0, float(least[-1]))


def extremes(plan: EqualityProgram, column: Floats) -> tuple[float, float]:
    """The lowest and the highest value of what each choice adds; NaN if nothing is feasible."""
    ends = [plan.minimum(sign * column) for sign in (1.0, -1.0)]
    low, high = (math.nan if x is None else float(column @ x[: len(column)]) for x in ends)
    return low, high


def _adjust(plan: EqualityProgram, x: Floats) -> tuple[Floats, float]:
    """Shares near x that meet the equations, and by how much they still miss them.

    Only shares that are open change.  Rates that differ by more than is allowed move minimally.
    """
    from scipy.sparse import vstack

    level = plan.choices.row
    x = x / np.bincount(level, x)[level]
    equations, right = plan.choices.equations
    limits, bound = plan.limited[0]
    at = limits @ x
    # Limits that are met with room to spare stay met; the others become equations.
    tight = at > bound - NEAR
    matrix = vstack([equations, plan.rates_matrix, limits[tight]]).tocsc()
    bounded = np.minimum(at, bound)[tight]
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
    over = limits @ x - bound
    exact = missed[: len(missed) - len(bounded)]
    return x, float(max(exact.max(), over.max(initial=0.0)))


# The solver

System: TypeAlias = tuple[Any, Floats]
"""A sparse matrix and the right-hand sides of its rows."""

SOLVED, INFEASIBLE = 0, 2
"""Two states of scipy's solver."""


class SparseRows:
    """Rows of a sparse matrix as they are added, and their right-hand sides.

    For small programs it is several times as fast as putting sparse matrices together.
    """

    def __init__(self, width: int) -> None:
        self.width, self.count = width, 0
        self._entries: list[tuple[Ints, Ints, Floats]] = []
        self._right: list[Floats] = []

    def add(self, count: int, right: Floats | float, *parts: Any) -> None:
        """Add rows whose entries are sparse matrices, or triples of rows, columns and values."""
        for part in parts:
            if isinstance(part, tuple):
                rows, columns, values = part
            else:
                rows, columns, values = (whole := part.tocoo()).row, whole.col, whole.data
            self._entries.append((rows + self.count, columns, np.broadcast_to(values, len(rows))))
        self._right.append(np.broadcast_to(right, count))
        self.count += count

    def add_blocks(self, blocks: Mapping[int, Floats], right: float = 0.0) -> None:
        """Add rows of dense blocks, each beginning at its column."""
        places = {start: np.nonzero(block) for start, block in blocks.items()}
        parts = [(i, j + start, blocks[start][i, j]) for start, (i, j) in places.items()]
        self.add(len(next(iter(blocks.values()))), right, *parts)

    @property
    def system(self) -> System:
        """The rows so far: a sparse matrix, and the right-hand sides."""
        from scipy.sparse import csr_array

        rows, columns, values = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        matrix = csr_array((values, (rows, columns)), shape=(self.count, self.width))
        return matrix, np.concatenate(self._right)


def minimize(
    costs: Floats, equal: System, below: System | None, bounds: tuple[Floats, Floats]
) -> Any:
    """The best x with equal[0] @ x = equal[1], below[0] @ x <= below[1] and bounds, with prices.

    It is a result of scipy; None if nothing is feasible.  Presolving has found programs infeasible
    that are not, and on the brink of infeasibility one method may give up where another does not.
    """
    from scipy.optimize import linprog

    limits = (None, None) if below is None or not len(below[1]) else below
    for method, presolve in (("highs", True), ("highs", False), ("highs-ipm", True)):
        found = linprog(
            costs,
            A_ub=limits[0],
            b_ub=limits[1],
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
        if found.status == SOLVED:
            return found
        if found.status == INFEASIBLE and not presolve:
            break
    return None


def unsolved(repair: str, message: str) -> IsocostError:
    """An error of the solver, which should not happen."""
    return IsocostError(
        Problem(
            repair,
            "needs the solution of a linear program",
            f"from the solver: {message}",
            f"use fewer {setting('levels')}, or a tolerance above 0",
        )
    )
