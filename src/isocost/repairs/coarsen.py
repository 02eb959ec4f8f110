"""Coarsening: pool neighbouring scores until errors cost every group the same.

A pool gets its share of positives as its score, so any set of pools is calibrated on the tally.
Its cost depends on one number alone, its information, the sum over pools of w q^2 with weight w
and value q:

    g = K (mu - information / W),    K = a / (1 - mu) + b / mu.

Telling two neighbouring pools apart is worth w1 w2 / (w1 + w2) (q2 - q1)^2 of it.  A target is met
exactly by moving one edge between two pools, into a bin if need be, whose people a coin divides.

The pools that change scores least are found by dynamic programming over their edges.  Values must
not fall.  For the least change with *at most* a given information this needs no care:
if q1 > q2 for neighbours, then as one pool they have less information, and neither the largest
change nor the mean change grows.  (Let u be a score between both pools and m their common value.
If m <= u, the people above come nearer by w2 (m - q2) in all, those below move by w1 (q1 - m) at
most, and the two are equal; likewise if m > u.)
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from isocost.cells import add_up
from isocost.checks import check_flag, check_numbers, check_word
from isocost.costs import Cost
from isocost.errors import InfeasibleError, InfeasibleWarning, Problem, UsageError, setting
from isocost.groups import Group, group_names, names_of
from isocost.measures.calibration import Levels, levels_of
from isocost.measures.feasibility import SLACK, Feasibility, fitted_groups, reach_of
from isocost.measures.rates import base_rate, group_costs
from isocost.question import Question, asks
from isocost.repairs.base import closest_steps, repairs, thresholds_in
from isocost.repairs.withhold import not_feasible
from isocost.rules import DEFAULT_SALT, Promise, Row, Rule
from isocost.tables import round_up
from isocost.tallies import Tally
from isocost.typing import Bools, Floats, Ints

Minimize = Literal["largest", "mean"]

Piece: TypeAlias = tuple[int, int, list[tuple[float, float]]]
"""Neighbouring bins, from start to stop, and the (value, probability) pairs of their scores."""

ROUNDING = 1e-12
"""Largest error by rounding of a value, or of the information per person."""

EXACT = 1e-14
"""Largest distance of the information per person from the target: no cost shows it."""

NEWTON = 8
"""Steps of Newton's method, which doubles the right digits with each."""

CLOSE = 1e-6
"""Largest error by rounding of the share of a divided bin."""

NARROW = 0.1
"""The greatest width of a pool that only removes miscalibration."""


@repairs("cost", "thresholds", "tolerance", "infeasible")
def coarsen(
    tally: Tally,
    question: Question,
    *,
    thresholds: Iterable[float] | float | None = None,
    infeasible: Literal["raise", "closest"] = "raise",
    allow_decision_changes: bool = False,
    minimize: Minimize = "largest",
    salt: str = DEFAULT_SALT,
) -> Rule:
    """Make errors cost every group the same by pooling neighbouring scores.

    The goal is that of :func:`isocost.withhold`, without the coin: scores of a group that lie
    next to each other become their pool's share of positives q.  That is calibrated on
    the tally whatever the pools, and it costs

        g = (a / (1 - mu) + b / mu) (mu - E[q^2]),

    so pools can be chosen to cost g* - tolerance.  Where withholding moves a few people far, this
    moves everybody a little, and treats equal scores alike.

    Parameters
    ----------
    cost, threshold, tolerance
        What is asked: see :class:`isocost.Question`.
    thresholds : tuple of float, optional
        Scores at which something is decided, edges of the tally, if not at the one threshold.  No
        pool crosses one and every value stays on its side, so no decision changes.  May be empty.
    infeasible : {"raise", "closest"}
        What to do when a group cannot reach the target, or not without changing decisions: raise,
        or use the smallest feasible tolerance, with a warning and a note in the rule.
    allow_decision_changes : bool
        Whether pools may cross a threshold where the target cannot be met otherwise.
    minimize : {"largest", "mean"}
        Which change of the scores to make as small as possible.
    tally, salt, **reading
        As for :func:`isocost.withhold`.  At most one bin of each changed group is divided by a
        coin.

    Returns
    -------
    Rule
        Groups that cost enough have no rows: they keep their scores.  The notes say for each
        changed group how many pools it has, how far a score moves at most, and the largest
        cost that leaves every decision alone.

    Notes
    -----
    Of all pools that cost exactly enough, those are taken that change scores least.  A higher score
    never becomes a lower value.  Usually one edge between two pools lies inside a bin, whose people
    are divided by a coin; everybody else's new score follows from the old one alone.  With at most
    one threshold there are always such pools.  Between two thresholds there may be none, because
    the people there need each other for a value between them; this is an error, or with
    ``infeasible="closest"`` the cost is the next lower one that can be met.

    The pools are found by dynamic programming.  In the tests, which try every set of pools of up to
    nine bins, none is better by 2 %.  With more than 64 bins the search looks at some edges, then
    closer around the best, and is not exhaustive.  On the income data with labels flipped, the
    held-out gap is 1.05 to 1.06 times that of withholding, the mean of 200 half splits with three
    seeds; the tests allow 1.1.

    Pools are calibrated, the scores may not have been.  If even the finest pools cost more than
    the goal, no calibrated pools meet it.  Then the values lie between the mean score of a pool, a
    tenth wide or less, and its share of positives, equally far along for all pools, so that the
    cost is the goal: the calibration gap of the pools shrinks by that share.  If the goal is so
    near the present cost that even mean scores cost more, scores get their pool's value from the
    lowest up until the goal is met, and the others stay.  A note says so.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = ic.coarsen(compas(), cost="fnr", thresholds=(0.5,), tolerance=0.08)
    >>> rule
    Rule by coarsen, cost fnr; unchanged: Caucasian
    group                    score in  becomes  with probability
    ----------------  ---------------  -------  ----------------
    African-American    [0, 0.453125)   0.3747            1.0000
    African-American  [0.453125, 0.5)   0.3747            0.9780
    African-American  [0.453125, 0.5)   0.4822            0.0220
    African-American         [0.5, 1]   0.6595            1.0000
    note: African-American has 3 pools, and no score changes by more than 0.1588.
    Costs up to 0.4464 leave every decision alone, as here.
    note: It is not established that groups differ in cost by more than the
    tolerance: this rule may only follow chance
    >>> round(ic.audit(rule.expected(compas()), cost="fnr").disparity.difference, 9)
    0.08
    """
    check_flag("allow_decision_changes", allow_decision_changes)
    check_word("minimize", minimize, get_args(Minimize))
    cost, tolerance = question.cost, question.tolerance
    edges = _check_thresholds(tally, question.threshold if thresholds is None else thresholds)
    verdict = reach_of(tally, question)
    goal = verdict.target_cost - max(tolerance, verdict.smallest_tolerance)
    candidates = _candidates(tally, cost, edges, below=goal - SLACK)
    blocked = [] if allow_decision_changes else [c for c in candidates if c.limit < goal - SLACK]
    goal = min([goal, *(candidate.limit for candidate in blocked)])
    cost_reached, missed = goal, list[Group]()
    while True:
        # A lower cost is tried until all groups can be raised to it.
        made = {
            one.group: _repaired(one, cost_reached, tally, edges, allow_decision_changes, minimize)
            for one in candidates
            if one.cost < cost_reached - SLACK
        }
        lower = {group: cost for group, cost in made.items() if isinstance(cost, float)}
        if not lower:
            break
        missed += [group for group in lower if group not in missed]
        cost_reached = min(lower.values())
    repairs = [one for one in made.values() if not isinstance(one, float)]
    reached, notes = tolerance, []
    if blocked or missed or not verdict.feasible:
        reached = verdict.target_cost - cost_reached
        why = " without changing a decision" if blocked or missed else ""
        notes.append(
            f"Equal cost ({cost}) within {tolerance:g} is not feasible{why}. This is the closest: "
            f"costs differ by {reached:.4f}."
        )
    rows = tuple(row for rows, _ in repairs for row in rows)
    rule = Rule(
        groups=tally.groups,
        rows=rows,
        method="coarsen",
        cost=cost,
        settings={
            "thresholds": list(edges),
            "tolerance": tolerance,
            "infeasible": infeasible,
            "allow_decision_changes": allow_decision_changes,
            "minimize": minimize,
        },
        notes=(*notes, *(note for _, note in repairs)),
        salt=salt,
        promise=Promise.of(rows, {"cost": tolerance}, {"cost": reached}),
    )
    if notes and infeasible == "raise":
        closest = closest_steps(rule, tally)
        if not verdict.feasible:
            raise InfeasibleError(not_feasible(verdict, closest, reached), verdict)
        goals = goal, cost_reached
        raise UsageError(_refused(blocked, missed, goals, verdict, edges, closest))
    if notes:
        warnings.warn(notes[0], InfeasibleWarning, stacklevel=5)
    return rule


@asks("cost", "thresholds", edges=thresholds_in)
def decision_limit(
    tally: Tally, question: Question, *, thresholds: Iterable[float] | float | None = None
) -> dict[Group, float]:
    """The largest cost that each group's pools can have and leave every decision alone.

    It is the cost of one pool per side of the thresholds.  Where no pools leave
    every decision alone, because the people on one side have a share of positives that
    belongs on the other, or where the scores cost more already, it is the present cost.  It is NaN
    for a group with positives only, or negatives only.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> limits = ic.decision_limit(compas(), "fnr", thresholds=(0.5,))
    >>> {group: round(limit, 4) for group, limit in limits.items()}
    {'African-American': 0.4464, 'Caucasian': 0.5539}
    """
    edges = _check_thresholds(tally, question.threshold if thresholds is None else thresholds)
    groups = fitted_groups(tally, question.min_group)
    paid = question.cost.among(groups)
    limits = {c.group: c.limit for c in _candidates(tally.select(groups), paid, edges)}
    return {**dict.fromkeys(tally.groups, math.nan), **limits}


def _check_thresholds(tally: Tally, thresholds: Iterable[float] | float) -> tuple[float, ...]:
    """Thresholds in order, each once, each an edge of the tally."""
    checked = sorted(set(check_numbers("thresholds", thresholds)))
    for threshold in checked:
        tally.grid.first_bin(threshold, "thresholds")
    return tuple(checked)


@dataclass(frozen=True)
class _Candidate:
    """A group that may be coarsened; a set of pools costs K (base_rate - information / weight).

    Its bins have the thresholds that its pools can respect, and are those of the tally at
    ``first``.  Thresholds are ``dropped`` that no pools respect, because the people on one side
    have a share of positives that belongs on the other.  a and b are the coefficients of the
    generalized rates, and ``cost`` is the present cost.
    """

    group: Group
    index: int
    cost: float
    bins: Bins
    first: Ints
    dropped: tuple[float, ...]
    a: float
    b: float
    base_rate: float
    weight: float

    @property
    def factor(self) -> float:
        """The factor K from information to cost."""
        return self.a / (1.0 - self.base_rate) + self.b / self.base_rate

    def cost_of(self, edges: Ints) -> float:
        """The cost when each pool has one score."""
        return self.factor * (self.base_rate - self.bins.information(edges) / self.weight)

    def added(self, w: Floats, y: Floats, value: Floats) -> Floats:
        """The part of the cost, up to the constant b, of people who get these values."""
        fp = self.a * (w - y) / (1.0 - self.base_rate)
        fn = self.b * y / self.base_rate
        return (fp - fn) / self.weight * value

    @property
    def limit(self) -> float:
        """The largest cost that leaves every decision alone; the present one if no pools do."""
        return self.cost if self.dropped else max(self.cost, self.cost_of(self.bins.walls))


def _candidates(
    tally: Tally, cost: Cost, thresholds: tuple[float, ...], below: float = math.inf
) -> list[_Candidate]:
    """The groups that cost less than a bound, with the finest pools that they can have."""
    mu = base_rate(tally.totals)
    a, b = cost.coefficients(tally.groups, mu)
    costs = group_costs(tally.totals, tally.groups, cost)
    candidates = []
    for index in np.flatnonzero(costs < below).tolist():
        levels = levels_of(tally, index)
        bins = settle(Bins(levels.w, levels.wy, levels.position, thresholds))
        candidates.append(
            _Candidate(
                group=tally.groups[index],
                index=index,
                cost=float(costs[index]),
                bins=bins,
                first=tally.grid.index(levels.position),
                dropped=tuple(t for t in thresholds if t not in bins.thresholds),
                a=float(a[index]),
                b=float(b[index]),
                base_rate=float(mu[index]),
                weight=float(tally.totals.weight[index]),
            )
        )
    return candidates


def _repaired(
    candidate: _Candidate,
    goal: float,
    tally: Tally,
    thresholds: tuple[float, ...],
    may_cross: bool,
    minimize: Minimize,
) -> tuple[list[Row], str] | float:
    """The rows that raise a group's cost to the goal, and a note about them.

    If no pools that randomize a single bin have this cost, the next lower cost that some have.
    """
    bins, about, ways = candidate.bins, "", []
    # The information of pools that have this cost.
    target = candidate.weight * (candidate.base_rate - goal / candidate.factor)
    if candidate.cost_of(candidate.bins.finest) > goal + candidate.factor * EXACT:
        pieces, about = _uncalibrated(candidate, goal, tally)
        ways = [_rows(candidate, pieces, tally, bins.thresholds)]
    elif goal <= candidate.cost_of(bins.walls) + ROUNDING:
        pools = best_pools(bins, target, minimize)
        if pools is None and not may_cross:
            return candidate.cost_of(nearest_pools(bins, target))
        ways = [_rows(candidate, pools.pieces(), tally, bins.thresholds)] if pools else []
    else:
        ways = [_rows(candidate, pools.pieces(), tally) for pools in crossing(bins, target)]
    if not ways:
        # Without thresholds every cost can be met.
        pools = best_pools(replace(bins, thresholds=()), target, minimize)
        ways = [_rows(candidate, pools.pieces(), tally)] if pools else []
    levels = levels_of(tally, candidate.index)
    moves = [_moved(levels, rows, thresholds) for rows in ways]
    share, largest = min(moves, key=itemgetter(0))
    rows = ways[moves.index((share, largest))]
    name, count = group_names(tally.groups)[candidate.index], len({row.value for row in rows})
    text = f"{name} has {count} pools, and no score changes by more than {largest:.4f}. {about}"
    if thresholds:
        text += f"Costs up to {candidate.limit:.4f} leave every decision alone"
        text += f"; here {share:.2%} of decisions change." if share else ", as here."
    return rows, text.strip()


def _uncalibrated(candidate: _Candidate, goal: float, tally: Tally) -> tuple[list[Piece], str]:
    """Pools for scores that cost less than calibrated pools do, and a note about them.

    A cost is linear in the scores, so values between the mean score of a pool and its share of
    positives have any cost between the two.
    """
    bins, finest = candidate.bins, candidate.cost_of(candidate.bins.finest)
    why = f"Its finest calibrated pools cost {finest:.4f}, more than the goal, so"
    # The finest pools would follow every accident of the labels.
    for width in (NARROW, NARROW / 4.0, NARROW / 16.0):
        edges = bins.narrow(width)
        w, y = bins.totals(edges)
        means = np.add.reduceat(bins.w * bins.score, edges[:-1]) / w
        low = candidate.b + math.fsum(candidate.added(w, y, means).tolist())
        if low <= goal:
            share = (goal - low) / (candidate.cost_of(edges) - low)
            return list(Pools(edges, means + share * (y / w - means)).pieces()), (
                f"{why} its values lie {share:.2%} of the way from the mean score of a pool to "
                "the share of positives and are not calibrated. "
            )
    return _up_to(candidate, bins.narrow(NARROW), goal, tally), (
        f"{why} only its lower scores get their pool's value; the others stay and are not "
        "calibrated. "
    )


def _up_to(candidate: _Candidate, edges: Ints, goal: float, tally: Tally) -> list[Piece]:
    """Give bins their pool's value, from the lowest up, until the cost is the goal."""
    bins, need = candidate.bins, goal - candidate.cost
    values = np.repeat(bins.values(edges), np.diff(edges))
    cells = tally.cells.take(tally.cells.of_group(candidate.index))
    fp, fn = candidate.a / (1.0 - candidate.base_rate), -candidate.b / candidate.base_rate
    sums = add_up(cells.bin, np.where(cells.label == 1, fn, fp) * cells.wh, tally.grid.size)
    present = sums[candidate.first] / candidate.weight
    changes = candidate.added(bins.w, bins.y, values) - present
    reached = np.cumsum(changes)
    # The first bin with which the cost comes up to the goal.
    at = int(np.argmax(reached >= need))
    share = 1.0 - float((reached[at] - need) / changes[at])
    below = np.unique(np.minimum(edges, at)).tolist()
    pieces: list[Piece] = [(i, j, [(float(values[i]), 1.0)]) for i, j in pairwise(below)]
    pieces.append((at, at + 1, [(float(values[at]), share)]))
    return [*pieces, (at + 1, len(bins), [])] if at + 1 < len(bins) else pieces


def _rows(
    candidate: _Candidate, pieces: Iterable[Piece], tally: Tally, thresholds: tuple[float, ...] = ()
) -> list[Row]:
    """Intervals without gaps, except on sides where the group has nobody.

    No value crosses one of the thresholds, not even by rounding.
    """
    cuts, bins, pieces = tally.grid.cuts, candidate.first, list(pieces)
    walls = [0, *map(tally.grid.first_bin, candidate.bins.thresholds), tally.grid.size]
    ends = [0, *(int(bins[stop - 1]) + 1 for _, stop, _ in pieces)]
    firsts = [*(int(bins[start]) for start, _, _ in pieces), tally.grid.size]
    # Before each piece and after the last one: where the previous ends, and where it begins.
    borders = []
    for end, first in zip(ends, firsts, strict=True):
        # At walls if there are any, or halfway.
        between = [wall for wall in walls if end <= wall <= first] or [(end + first) // 2]
        borders.append((between[0], between[-1]))
    rows = []
    for (_, _, outcomes), (before, after) in zip(pieces, pairwise(borders), strict=True):
        lo, hi = float(cuts[before[1]]), float(cuts[after[0]])
        for value, share in outcomes:
            new = _on_its_side(value, lo, hi, thresholds)
            rows.append(Row(candidate.group, lo, hi, "set", new, share))
    return rows


def _on_its_side(value: float, lo: float, hi: float, thresholds: Sequence[float]) -> float:
    """A value that rounding may have carried over a threshold, back on the side of its scores."""
    for threshold in thresholds:
        if lo >= threshold > value > threshold - ROUNDING:
            return threshold
        if hi <= threshold <= value < threshold + ROUNDING:
            return math.nextafter(threshold, 0.0)
    return value


def _moved(
    levels: Levels, rows: Sequence[Row], thresholds: tuple[float, ...]
) -> tuple[float, float]:
    """The share of decisions that change, and the largest change of a score.

    All scores of a bin are taken at their mean.
    """
    side = np.searchsorted(thresholds, levels.position, side="right")
    moved = largest = 0.0
    for row in rows:
        value = float(row.value or 0.0)
        first, last = levels.position.searchsorted([row.lo, row.hi]).tolist()
        held = slice(first, None if row.hi == 1.0 else last)
        other = side[held] != bisect_right(thresholds, value)
        moved += row.probability * float(levels.w[held][other].sum())
        largest = max(largest, float(np.abs(value - levels.position[held]).max(initial=0.0)))
    return moved / levels.total, largest


def _refused(
    blocked: list[_Candidate],
    missed: list[Group],
    goals: tuple[float, float],
    verdict: Feasibility,
    thresholds: tuple[float, ...],
    closest: list[str],
) -> Problem:
    """The error if costs cannot be raised to the goal without changing a decision.

    Or, if nothing is blocked, not without a coin for several bins of a group.
    """
    names, at = names_of(verdict.costs), _listed(thresholds)
    goal, reached = goals
    cross = f"pass {setting('allow_decision_changes', True)} to let pools cross a threshold"
    if blocked:
        limits = []
        for one in blocked:
            limits.append(
                f"the largest cost of {names[one.group]} that leaves every decision alone is "
                f"{one.limit:.4f}"
            )
            if one.dropped:
                limits[-1] += (
                    f", its present one: the people on one side of {_listed(one.dropped)} "
                    "have a share of positives that belongs on the other"
                )
        reached = min(one.limit for one in blocked)
        wanted = verdict.target_cost - verdict.tolerance
        rule = f"at {at} must stay as they are while costs are raised to {wanted:.4f}"
        name, got, more = "decisions", "; ".join(limits), " or more"
    else:
        name, rule = "coarsen", "randomizes the people of one bin of a group at most"
        got = (
            f"no such pools found for {', '.join(names[group] for group in missed)} that cost "
            f"{goal:.4f} and leave every decision at {at} alone; a lower cost that all groups can "
            f"be raised to is {reached:.4f}"
        )
        more = "; or name fewer thresholds"
    accept = f"accept {setting('tolerance', float(round_up(verdict.target_cost - reached)))}{more}"
    return Problem(name, rule, got, "; or ".join([accept, cross, *closest]))


def _listed(thresholds: Iterable[float]) -> str:
    return ", ".join(f"{threshold:g}" for threshold in sorted(thresholds))


# Pools of one group


@dataclass(frozen=True)
class Bins:
    """The bins of one group that hold anybody, from low to high, and the thresholds to respect.

    They have the weight ``w``, the weight ``y`` of the positives, and a mean score.  No pool
    crosses a threshold, and no value.
    """

    w: Floats
    y: Floats
    score: Floats
    thresholds: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.w)

    @cached_property
    def sums(self) -> Floats:
        """Weight, positives and weighted scores of the bins below each edge."""
        columns = np.stack([self.w, self.y, self.w * self.score])
        return np.concatenate([np.zeros((3, 1)), np.cumsum(columns, axis=1)], axis=1)

    @cached_property
    def side(self) -> Ints:
        """The number of thresholds at or below each bin."""
        return np.searchsorted(self.thresholds, self.score, side="right")

    @cached_property
    def bounds(self) -> Floats:
        """Values on side k lie in [bounds[k], bounds[k + 1])."""
        return np.array([-math.inf, *self.thresholds, math.inf])

    @cached_property
    def walls(self) -> Ints:
        """The edges between sides, with both ends: one pool per side."""
        return np.concatenate([[0], np.flatnonzero(np.diff(self.side)) + 1, [len(self)]])

    def totals(self, edges: Ints) -> tuple[Floats, Floats]:
        """Weight and positives of each pool."""
        return np.add.reduceat(self.w, edges[:-1]), np.add.reduceat(self.y, edges[:-1])

    def values(self, edges: Ints) -> Floats:
        """The shares of positives of pools."""
        w, y = self.totals(edges)
        return y / w

    def information(self, edges: Ints) -> float:
        """The sum of w q^2 over pools."""
        w, y = self.totals(edges)
        return math.fsum((y * y / w).tolist())

    def changes(self, start: Ints, stop: Ints, value: Floats, minimize: Minimize) -> Floats:
        """The distance of the bins from start to stop from a value: at most, or in all."""
        if minimize == "largest":
            return np.maximum(value - self.score[start], self.score[stop - 1] - value)
        w, _, score = self.sums
        middle = np.clip(np.searchsorted(self.score, value), start, stop)
        below = value * (w[middle] - w[start]) - (score[middle] - score[start])
        above = score[stop] - score[middle] - value * (w[stop] - w[middle])
        total: Floats = below + above
        return total

    def rising(self, edges: Ints) -> Ints:
        """The pools, joined where values fall."""
        from scipy.optimize import isotonic_regression

        w, y = self.totals(edges)
        blocks: Ints = isotonic_regression(y / w, weights=w).blocks
        return edges[blocks]

    @cached_property
    def finest(self) -> Ints:
        """The edges of the finest pools whose values rise and stay on their side."""
        edges = []
        for start, stop in pairwise(self.walls.tolist()):
            own = Bins(self.w[start:stop], self.y[start:stop], self.score[start:stop])
            low, high = self.bounds[self.side[start] :][:2].tolist()
            pools = own.rising(np.arange(stop - start + 1)).tolist()
            # Join the outermost pools until their values lie on this side.
            while len(pools) > 2 and own.values(np.array(pools))[-1] >= high:
                del pools[-2]
            while len(pools) > 2 and own.values(np.array(pools))[0] < low:
                del pools[1]
            edges += [start + edge for edge in pools[:-1]]
        return np.array([*edges, len(self)])

    def narrow(self, width: float) -> Ints:
        """The edges of pools that join the finest ones if they begin within the same width."""
        start = self.finest[:-1]
        lowest = self.score[self.walls[np.searchsorted(self.walls, start, side="right") - 1]]
        part = np.stack([self.side[start], ((self.score[start] - lowest) / width).astype(int)])
        new = (np.diff(part, axis=1) != 0).any(axis=0)
        return np.array([0, *start[1:][new], len(self)])


def settle(bins: Bins) -> Bins:
    """The bins without thresholds where a whole side has a share of positives of another."""
    for start, share in zip(bins.walls.tolist(), bins.values(bins.walls).tolist(), strict=False):
        low, high = bins.bounds[bins.side[start] :][:2].tolist()
        if not low <= share < high:
            wrong = high if share >= high else low
            return settle(replace(bins, thresholds=tuple(t for t in bins.thresholds if t != wrong)))
    return bins


@dataclass(frozen=True)
class Pools:
    """Pools of neighbouring bins, of which one bin may be divided.

    The edges are the first bin of each pool, and the number of bins.  A share of the first bin of
    pool ``at`` belongs to the pool before it; with ``at`` 0 no bin is divided.
    """

    edges: Ints
    values: Floats
    share: float = 0.0
    at: int = 0

    def pieces(self) -> Iterator[Piece]:
        """The bins of each pool, and the divided bin by itself."""
        for k, (start, stop) in enumerate(pairwise(self.edges.tolist())):
            value = float(self.values[k])
            if k and k == self.at:
                both = [(float(self.values[k - 1]), self.share), (value, 1.0 - self.share)]
                yield start, start + 1, both
                start += 1
            if start < stop:
                yield start, stop, [(value, 1.0)]


def crossing(bins: Bins, target: float) -> list[Pools]:
    """Give up thresholds until the information is the target; the last edge can move both ways.

    Empty if the neighbouring pools leave that edge no room.
    """
    edges, free = bins.walls, replace(bins, thresholds=())
    while len(edges) > 2:
        # The side with the fewest people is given up first.
        w, _ = bins.totals(edges)
        at = 1 + int(np.argmin(np.minimum(w[:-1], w[1:])))
        fewer = np.delete(edges, at)
        if target - bins.information(fewer) > EXACT * bins.sums[0, -1]:
            spans = around(free, fewer, "largest", only=at - 1)
            return [pools for pools, _ in Meeting(free, target, "largest").divided(spans)]
        edges = fewer
    return [Pools(edges, bins.values(edges))]


def nearest_pools(bins: Bins, target: float) -> Ints:
    """The finest pools, joined while that leaves at least the target's information.

    As values rise, the last edge can then be moved until it is worth what is missing, unless bins
    of a side need each other for a value between two thresholds.
    """
    edges = bins.finest
    while True:
        w, y = bins.totals(edges)
        worth = w[:-1] * w[1:] / (w[:-1] + w[1:]) * np.diff(y / w) ** 2
        worth[np.isin(edges[1:-1], bins.walls)] = math.inf
        spare = math.fsum((y * y / w).tolist()) - target
        if not len(worth) or worth.min() > spare:
            return edges
        edges = np.delete(edges, 1 + int(worth.argmin()))


@dataclass(frozen=True)
class Spans:
    """Sets of pools that leave out the bins from start to stop, to be divided into two pools.

    Information and change (the largest, or the sum) are those of the other pools; ``low`` and
    ``high`` are the values of the neighbouring ones.  ``edges`` gives the edges of the other pools
    of a row, below and above.
    """

    start: Ints
    stop: Ints
    information: Floats
    change: Floats
    low: Floats
    high: Floats
    edges: Callable[[int], tuple[Sequence[int], Sequence[int]]]


@dataclass
class Meeting:
    """The best pools so far that meet a target exactly."""

    bins: Bins
    target: float
    minimize: Minimize
    change: float = math.inf
    pools: Pools | None = None

    def add(self, spans: Spans) -> None:
        """Keep the best pools that the spans can become, if they are better than before."""
        for pools, change in self.divided(spans):
            self.pools, self.change = pools, change
            return

    def divided(self, spans: Spans) -> Iterator[tuple[Pools, float]]:
        """Divide the bins that each span leaves out so that the information is the target.

        With share s of bin b in the lower of two pools, which together have weight W and positives
        Y, the edge is worth k information where

            (y W - w Y)^2 = k W w (W - w),    w and y of the lower pool, both linear in s.
        """
        bins, (w, y, _) = self.bins, self.bins.sums
        k = self.target - spans.information
        k -= (y[spans.stop] - y[spans.start]) ** 2 / (w[spans.stop] - w[spans.start])
        slack = ROUNDING * w[-1]
        hopeful = np.flatnonzero((k >= -slack) & (spans.change < self.change))
        length = spans.stop[hopeful] - spans.start[hopeful]
        row = np.repeat(hopeful, length)
        a, c = spans.start[row], spans.stop[row]
        b = a + np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
        k = np.maximum(k[row], 0.0)
        whole, w0, wb = w[c] - w[a], w[b] - w[a], bins.w[b]
        # Measured from the share of positives of all, so that little is lost to subtraction.
        mean = (y[c] - y[a]) / whole
        d0, db = y[b] - y[a] - mean * w0, bins.y[b] - mean * wb
        two = db**2 + k / whole * wb**2
        one = d0 * db - k / whole * wb * (whole / 2.0 - w0)
        zero = d0**2 - k / whole * w0 * (whole - w0)
        root = np.sqrt(np.maximum(one**2 - two * zero, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            far = -(one + np.copysign(root, one))
            share = np.concatenate([far / two, zero / far])
        real = (share > -CLOSE) & (share < 1.0 + CLOSE)
        share = np.clip(share, 0.0, 1.0)
        # An edge is worth no more than the lighter pool weighs.  This rules out empty pools, which
        # solve the equation too.
        lower = np.tile(w0, 2) + share * np.tile(wb, 2)
        lighter = np.minimum(lower, np.tile(whole, 2) - lower)
        real &= lighter >= np.tile(k - NEWTON * CLOSE * wb, 2)
        share = share[real]
        row, a, b, c = (np.tile(one, 2)[real] for one in (row, a, b, c))
        change = self._changes(spans, row, a, b, c, share)
        for at in np.argsort(change, kind="stable").tolist():
            if not change[at] < self.change:
                return
            below, above = spans.edges(int(row[at]))
            edges = [*below, int(b[at]), *above]
            pools = _exact(bins, edges, len(below), float(share[at]), self.target)
            if pools is not None:
                yield pools, float(change[at])

    def _changes(self, spans: Spans, row: Ints, a: Ints, b: Ints, c: Ints, share: Floats) -> Floats:
        """The change of scores if a share of bin b belongs to the lower pool of bins a to c.

        Infinite where values would fall or leave their side.
        """
        bins, minimize = self.bins, self.minimize
        w, y, _ = bins.sums
        lower, upper = w[b] - w[a] + share * bins.w[b], w[c] - w[b] - share * bins.w[b]
        mean = (y[c] - y[a]) / (w[c] - w[a])
        with np.errstate(divide="ignore", invalid="ignore"):
            below = np.where(lower > 0, (y[b] - y[a] + share * bins.y[b]) / lower, mean)
            above = np.where(
                upper > ROUNDING * w[c], (y[c] - y[b] - share * bins.y[b]) / upper, mean
            )
        side = bins.side[a]
        legal = (below <= above + ROUNDING) & (above < bins.bounds[side + 1])
        legal &= below >= np.maximum(spans.low[row], bins.bounds[side]) - ROUNDING
        legal &= above <= spans.high[row] + ROUNDING
        after = np.minimum(b + 1, len(bins) - 1)
        parts = [
            np.where(b > a, bins.changes(a, np.maximum(b, 1), below, minimize), 0.0),
            np.where(b + 1 < c, bins.changes(after, c, above, minimize), 0.0),
        ]
        moved = [np.abs(bins.score[b] - below), np.abs(bins.score[b] - above)]
        if minimize == "largest":
            moved = [np.where(share > 0, moved[0], 0.0), np.where(share < 1, moved[1], 0.0)]
            change = np.max([*parts, *moved, spans.change[row]], axis=0)
        else:
            own = bins.w[b] * (share * moved[0] + (1.0 - share) * moved[1])
            change = parts[0] + parts[1] + own + spans.change[row]
        return np.where(legal, change, math.inf)


def _exact(bins: Bins, edges: list[int], at: int, share: float, target: float) -> Pools | None:
    """Pools with the target's information to the last digit, by Newton's method for the share.

    The share of the first bin of pool ``at`` belongs to the pool before it, which may hold nothing
    else.  None if no share is right.
    """
    b, c = edges[at : at + 2]
    totals = [(float(bins.w[i:j].sum()), float(bins.y[i:j].sum())) for i, j in pairwise(edges)]
    need = target - math.fsum(y * y / w for w, y in totals[: at - 1] + totals[at + 1 :])
    (lower, positives), (wb, yb) = totals[at - 1], (float(bins.w[b]), float(bins.y[b]))
    rest = float(bins.w[b + 1 : c].sum()), float(bins.y[b + 1 : c].sum())
    best = (math.inf, share, 0.0, 0.0)
    for _ in range(NEWTON):
        w, y = lower + share * wb, positives + share * yb
        v, z = rest[0] + (1.0 - share) * wb, rest[1] + (1.0 - share) * yb
        low, high = y / w if w else z / v, z / v if v else y / w
        over = y * low + z * high - need
        best = min(best, (abs(over), share, low, high))
        slope = (low - high) * (2.0 * yb - wb * (low + high))
        if not slope:
            break
        # Near a double root a step may lead far away, to pools that are not legal.
        share = min(max(share - over / slope, share - CLOSE, 0.0), share + CLOSE, 1.0)
    error, share, low, high = best
    floor, ceiling = bins.bounds[bins.side[b] :][:2]
    legal = floor - ROUNDING <= low <= high + ROUNDING and high < ceiling
    if error > EXACT * bins.sums[0, -1] or not legal:
        return None
    if share in {0.0, 1.0}:
        plain = np.unique([*edges[:at], b + int(share), *edges[at + 1 :]])
        return Pools(plain, bins.values(plain))
    values = np.array([y / w if w else 0.0 for w, y in totals])
    values[at - 1 : at + 1] = low, high
    rises = (np.diff(values) >= -ROUNDING).all()
    return Pools(np.array(edges), values, share, at) if rises else None


def around(bins: Bins, edges: Ints, minimize: Minimize, only: int | None = None) -> Spans:
    """Each pool left out, and each two neighbours; or only one pool."""
    w, y = bins.totals(edges)
    values = y / w
    changes = bins.changes(edges[:-1], edges[1:], values, minimize)
    information = y * values
    first = np.arange(len(values))
    together = first[:-1][bins.side[edges[:-2]] == bins.side[edges[1:-1]]]
    first, last = np.concatenate([first, together]), np.concatenate([first, together + 1])
    if only is not None:
        first = last = np.array([only])
    outside = (np.arange(len(values)) < first[:, None]) | (np.arange(len(values)) > last[:, None])
    others = np.where(outside, changes, 0.0)
    padded = np.concatenate([[-math.inf], values, [math.inf]])
    listed = edges.tolist()
    return Spans(
        start=edges[first],
        stop=edges[last + 1],
        information=np.where(outside, information, 0.0).sum(axis=1),
        change=others.max(axis=1) if minimize == "largest" else others.sum(axis=1),
        low=padded[first],
        high=padded[last + 2],
        edges=lambda row: (listed[: first[row] + 1], listed[last[row] + 1 :]),
    )


# The pools that change scores least

EDGES = 64
"""The largest number of edges that the search looks at together."""

WAYS = 256
"""The largest number of sets of pools that are remembered."""

NEAR = 1.01
"""The search is content with the largest change if it is this near a lower bound."""


def best_pools(bins: Bins, target: float, minimize: Minimize = "largest") -> Pools | None:
    """The pools with exactly the target's information that change scores least.

    None if no pools meet the target by dividing a single bin.  The bins have thresholds that pools
    can respect (see :func:`settle`), and the target lies between the information of one pool per
    side and that of the finest pools.

    Notes
    -----
    A search by dynamic programming over at most EDGES edges finds the pools with at most the
    target's information that change scores least, and some with a little more; then again with
    edges closer to theirs.  One edge of these is moved or added.  If that is not within NEAR of a
    lower bound, or if there are few bins, many sets of pools from below and from above are put
    together, with a gap between them for the last edge.
    """
    for extreme in (bins.walls, bins.finest):
        if abs(bins.information(extreme) - target) <= EXACT * bins.sums[0, -1]:
            return Pools(extreme, bins.values(extreme))
    meeting = Meeting(bins, target, minimize)
    edges, bracket = _spread(bins), (0.0, 1.0)
    # Each time closer around the best ones.
    for _ in range(5):
        choices = _Choices.of(bins, edges, minimize)
        bound, bracket, sets = _searched(bins, choices, target, minimize, bracket)
        edges = _closer(bins, edges, sets)
        if np.isin(edges, choices.edges).all():
            break
    for pools in sets:
        meeting.add(around(bins, bins.rising(pools), minimize))
    if len(bins) <= EDGES or meeting.change > NEAR * bound:
        meeting.add(_gaps(bins, choices, target, minimize, meeting.change))
    if meeting.pools is None:
        meeting.add(around(bins, nearest_pools(bins, target), minimize))
    return meeting.pools


@dataclass(frozen=True)
class _Choices:
    """All pools that begin at edge i and end at edge j + 1, from 0 to the number of bins.

    A pool is ``legal`` if it crosses no threshold and its value lies on its side.
    """

    edges: Ints
    legal: Bools
    value: Floats
    information: Floats
    change: Floats

    @classmethod
    def of(cls, bins: Bins, edges: Ints, minimize: Minimize) -> _Choices:
        """All pools between some edges."""
        start, stop = np.broadcast_arrays(edges[:-1, None], edges[None, 1:])
        forward = stop > start
        stop = np.maximum(stop, start + 1)
        w, y = bins.sums[:2, stop] - bins.sums[:2, start]
        value = y / w
        side = bins.side[start]
        legal = forward & (side == bins.side[stop - 1]) & (value < bins.bounds[side + 1])
        legal &= value >= bins.bounds[side] - ROUNDING
        change = bins.changes(start, stop, value, minimize)
        return cls(edges, legal, value, y * value, change)

    def upside_down(self) -> _Choices:
        """The pools counted from above; values have the other sign, so that they rise."""
        columns: tuple[Any, ...] = (self.legal, -self.value, self.information, self.change)
        return _Choices(self.edges, *(np.flip(column).T for column in columns))

    def shortest(self, lengths: Floats) -> tuple[float, Ints]:
        """The shortest way through all bins, and its edges; infinite if there is none."""
        reached = np.zeros(len(self.edges))
        before = np.zeros(len(self.edges), dtype=np.int64)
        for j, column in enumerate(np.ascontiguousarray(lengths.T), start=1):
            ways = reached[:j] + column[:j]
            before[j] = i = ways.argmin()
            reached[j] = ways[i]
        way = [len(self.edges) - 1]
        while way[-1]:
            way.append(int(before[way[-1]]))
        return float(reached[-1]), self.edges[way[::-1]]


def _searched(
    bins: Bins,
    choices: _Choices,
    target: float,
    minimize: Minimize,
    bracket: tuple[float, float],
) -> tuple[float, tuple[float, float], list[Ints]]:
    """A lower bound of the change, the best pools with at most the target's information, and more.

    A bound of the largest change is halved until the pools with the least information that respect
    it have the target's.  For the mean change it is the price of information that is halved.
    """
    largest, bound, (low, high) = minimize == "largest", 0.0, bracket
    trial, enough, too_much = high, bins.walls, bins.walls
    for _ in range(20):
        if high - low <= 0.01 * high:
            break
        if largest:
            lengths = np.where(choices.change <= trial, choices.information, math.inf)
        else:
            lengths = (1.0 - trial) * choices.change + trial * choices.information
        length, pools = choices.shortest(np.where(choices.legal, lengths, math.inf))
        fits = length < math.inf and bins.information(pools) <= target + EXACT * bins.sums[0, -1]
        low, high = (low, trial) if fits else (trial, high)
        if length < math.inf:
            enough, too_much = (pools, too_much) if fits else (enough, pools)
        if not largest and trial < 1.0:
            bound = max(bound, (length - trial * target) / (1.0 - trial))
        trial = (low + high) / 2.0
    around = (0.9 * low, high) if largest else (0.5 * low, (1.0 + high) / 2.0)
    return low if largest else bound, around, [enough, too_much]


def _spread(bins: Bins) -> Ints:
    """All edges; or some, equally far apart, equally many people apart, and of the finest pools."""
    if len(bins) <= EDGES:
        return np.arange(len(bins) + 1)
    parts = np.linspace(0.0, 1.0, EDGES // 3)
    score, w = bins.score, bins.sums[0]
    even = np.searchsorted(score, score[0] + parts * (score[-1] - score[0]))
    alike = np.searchsorted(w, parts * w[-1])
    return np.unique([*bins.walls, *even, *alike, *_thinned(bins.finest, EDGES // 3)])


def _closer(bins: Bins, edges: Ints, sets: list[Ints]) -> Ints:
    """Edges next to those of some pools, up to the edges that were looked at before."""
    best = np.unique(np.concatenate([bins.walls, *sets]))
    at = np.searchsorted(edges, best)
    first, last = edges[np.maximum(at - 1, 0)], edges[np.minimum(at + 1, len(edges) - 1)]
    near = np.concatenate([np.arange(i, j + 1) for i, j in zip(first, last, strict=True)])
    return np.unique([*best, *_thinned(np.unique(near), EDGES)])


def _thinned(edges: Ints, most: int) -> Ints:
    return edges[:: -(-len(edges) // most)]


@dataclass(frozen=True)
class _Ways:
    """Sets of pools of the bins below an edge: a few for each edge, with spread information."""

    to: Ints
    information: Floats
    change: Floats
    value: Floats
    before: Ints

    def edges(self, way: int) -> list[int]:
        """The edges of one of them, as positions among the choices' edges."""
        edges = [int(self.to[way])]
        while edges[-1]:
            way = int(self.before[way])
            edges.append(int(self.to[way]))
        return edges[::-1]


def _ways(
    choices: _Choices, minimize: Minimize, least: Floats, most: Floats, change_below: float
) -> _Ways:
    """Sets of pools up to each edge, with information between ``least`` and ``most`` there.

    At most WAYS in all are kept: of those with nearly the same information, the one that changes
    scores least.
    """
    count = len(choices.edges) - 1
    keep = max(2, WAYS // count)
    ways = _Ways(np.array([0]), np.zeros(1), np.zeros(1), np.array([-math.inf]), np.array([0]))
    for j in range(count):
        to = ways.to
        change = _together(minimize, ways.change, choices.change[to, j])
        information = ways.information + choices.information[to, j]
        legal = choices.legal[to, j] & (ways.value <= choices.value[to, j] + ROUNDING)
        legal &= (information >= least[j + 1]) & (information <= most[j + 1])
        new = np.flatnonzero(legal & (change < change_below))
        if len(new) > keep:
            own = information[new]
            part = ((own - own.min()) * (keep / (np.ptp(own) or 1.0))).astype(int)
            order = np.lexsort((change[new], part))
            new = new[order[np.flatnonzero(np.diff(part[order], prepend=-1))]]
        ways = _Ways(
            to=np.append(to, np.full(len(new), j + 1)),
            information=np.append(ways.information, information[new]),
            change=np.append(ways.change, change[new]),
            value=np.append(ways.value, choices.value[to[new], j]),
            before=np.append(ways.before, new),
        )
    return ways


def _together(minimize: Minimize, one: Floats, other: Floats) -> Floats:
    """The change of two sets of pools together."""
    total: Floats = np.maximum(one, other) if minimize == "largest" else one + other
    return total


def _gaps(
    bins: Bins, choices: _Choices, target: float, minimize: Minimize, change_below: float
) -> Spans:
    """Sets of pools from below and from above with a gap between them for two pools."""
    edges, count = choices.edges, len(choices.edges) - 1
    w, y, _ = bins.sums[:, edges]
    slack = ROUNDING * w[-1]
    # What the bins below and above each edge have at most, alone, and at least, as one pool.
    alone = np.concatenate([[0.0], np.cumsum(bins.y**2 / bins.w)])[edges]
    below, above = (y[1:] ** 2 / w[1:], (y[-1] - y[:-1]) ** 2 / (w[-1] - w[:-1]))
    least, most = target - alone[-1] + alone - slack, target + slack - np.append(above, 0.0)
    lower = _ways(choices, minimize, least, most, change_below)
    least, most = target - alone - slack, target + slack - np.append(0.0, below)
    upper = _ways(choices.upside_down(), minimize, least[::-1], most[::-1], change_below)
    a, c = lower.to[:, None], count - upper.to
    information = lower.information[:, None] + upper.information
    change = _together(minimize, lower.change[:, None], upper.change)
    need = target - information
    good = (c > a) & (change < change_below) & (need <= alone[c] - alone[a] + slack)
    good &= bins.side[edges[np.minimum(a, count - 1)]] == bins.side[edges[np.maximum(c, 1)] - 1]
    good &= need * (w[c] - w[a]) >= (y[c] - y[a]) ** 2 - slack * w[-1]
    i, j = np.nonzero(good)
    order = np.argsort(change[i, j], kind="stable")
    # Only so many bins to divide are tried for the last edge.
    work = np.cumsum((edges[c[j]] - edges[lower.to[i]])[order])
    order = order[: np.searchsorted(work, 20_000)]
    i, j = i[order], j[order]
    return Spans(
        start=edges[lower.to[i]],
        stop=edges[c[j]],
        information=information[i, j],
        change=change[i, j],
        low=lower.value[i],
        high=-upper.value[j],
        edges=lambda row: (
            edges[lower.edges(int(i[row]))].tolist(),
            edges[count - np.array(upper.edges(int(j[row])))][::-1].tolist(),
        ),
    )
