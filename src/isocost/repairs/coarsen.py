"""Coarsening: pool neighbouring scores until errors cost every group the same."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import Literal, get_args

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
from isocost.repairs.pools import (
    EXACT,
    ROUNDING,
    Bins,
    Minimize,
    Piece,
    Pools,
    best_pools,
    crossing,
    nearest_pools,
    settle,
)
from isocost.repairs.withhold import not_feasible
from isocost.rules import DEFAULT_SALT, Promise, Row, Rule
from isocost.tables import round_up
from isocost.tallies import Tally
from isocost.typing import Floats, Ints

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
    tally : Tally, or data
        Of a holdout part: not the data the scores were trained on.
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
    salt : str
        The coin's salt.  At most one bin of each changed group is divided by a coin.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

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
    repair = partial(
        _repaired,
        tally=tally,
        thresholds=edges,
        may_cross=allow_decision_changes,
        minimize=minimize,
    )
    cost_reached, repairs, missed = _repairs(candidates, goal, repair)
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
        if blocked:
            raise UsageError(_refused(blocked, verdict, edges, closest))
        raise UsageError(_no_pools(missed, goal, cost_reached, verdict, edges, closest))
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

    def information_at(self, cost: float) -> float:
        """The information of pools that have this cost."""
        return self.weight * (self.base_rate - cost / self.factor)

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


def _repairs(
    candidates: list[_Candidate],
    goal: float,
    repair: Callable[[_Candidate, float], tuple[list[Row], str] | float],
) -> tuple[float, list[tuple[list[Row], str]], list[Group]]:
    """The cost that all groups can be raised to, how, and the groups that fall short."""
    missed: list[Group] = []
    while True:
        results = {
            candidate.group: repair(candidate, goal)
            for candidate in candidates
            if candidate.cost < goal - SLACK
        }
        short = {group: lower for group, lower in results.items() if isinstance(lower, float)}
        if not short:
            return goal, [one for one in results.values() if not isinstance(one, float)], missed
        missed += [group for group in short if group not in missed]
        goal = min(short.values())


def _repaired(
    candidate: _Candidate,
    goal: float,
    *,
    tally: Tally,
    thresholds: tuple[float, ...],
    may_cross: bool,
    minimize: Minimize,
) -> tuple[list[Row], str] | float:
    """The rows that raise a group's cost to the goal, and a note about them.

    If no pools that randomize a single bin have this cost, the next lower cost that some have.
    """
    bins, target = candidate.bins, candidate.information_at(goal)
    about, ways = "", []
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
    borders = [_border(end, first, walls) for end, first in zip(ends, firsts, strict=True)]
    rows = []
    for (_, _, outcomes), (before, after) in zip(pieces, pairwise(borders), strict=True):
        lo, hi = float(cuts[before[1]]), float(cuts[after[0]])
        for value, share in outcomes:
            new = _on_its_side(value, lo, hi, thresholds)
            rows.append(Row(candidate.group, lo, hi, "set", new, share))
    return rows


def _border(low: int, high: int, walls: Sequence[int]) -> tuple[int, int]:
    """The end of one piece and the start of the next: at walls if there are any, or halfway."""
    between = [wall for wall in walls if low <= wall <= high]
    return (between[0], between[-1]) if between else ((low + high) // 2,) * 2


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
    verdict: Feasibility,
    thresholds: tuple[float, ...],
    closest: list[str],
) -> Problem:
    """The error if costs cannot be raised to the goal without changing a decision."""
    names, limits = names_of(verdict.costs), []
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
    return Problem(
        "decisions",
        f"at {_listed(thresholds)} must stay as they are while costs are raised to "
        f"{verdict.target_cost - verdict.tolerance:.4f}",
        "; ".join(limits),
        _steps(verdict.target_cost - min(one.limit for one in blocked), " or more", *closest),
    )


def _no_pools(
    missed: list[Group],
    goal: float,
    reached: float,
    verdict: Feasibility,
    thresholds: tuple[float, ...],
    closest: list[str],
) -> Problem:
    """The error if a cost would need a coin for several bins of a group."""
    names = names_of(verdict.costs)
    return Problem(
        "coarsen",
        "randomizes the people of one bin of a group at most",
        f"no such pools found for {', '.join(names[group] for group in missed)} that cost "
        f"{goal:.4f} and leave every decision at {_listed(thresholds)} alone; a lower cost that "
        f"all groups can be raised to is {reached:.4f}",
        _steps(verdict.target_cost - reached, "; or name fewer thresholds", *closest),
    )


def _steps(tolerance: float, more: str, *closest: str) -> str:
    accept = f"accept {setting('tolerance', float(round_up(tolerance)))}{more}"
    cross = f"pass {setting('allow_decision_changes', True)} to let pools cross a threshold"
    return "; or ".join([accept, cross, *closest])


def _listed(thresholds: Iterable[float]) -> str:
    return ", ".join(f"{threshold:g}" for threshold in sorted(thresholds))
