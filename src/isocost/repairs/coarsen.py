"""Coarsening: pool neighbouring scores until errors cost every group the same."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Unpack, get_args

import numpy as np

from isocost.cells import add_up
from isocost.checks import check_flag, check_numbers, check_salt, check_tolerance, check_word
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import InfeasibleError, InfeasibleWarning, Problem, UsageError, setting
from isocost.groups import Group, group_names, names_of
from isocost.measures.calibration import Levels, levels_of
from isocost.measures.feasibility import SLACK, Feasibility, feasibility, fitted_groups
from isocost.measures.rates import base_rate, group_costs
from isocost.promises import Promise
from isocost.repairs.counsel import closest_steps, heeding
from isocost.repairs.least_change import best_pools
from isocost.repairs.pools import (
    EXACT,
    ROUNDING,
    Bins,
    Minimize,
    Piece,
    Pools,
    crossing,
    nearest_pools,
    settle,
)
from isocost.repairs.withhold import not_feasible
from isocost.rows import Row
from isocost.rules import DEFAULT_SALT, Rule
from isocost.tallies import DataOptions, Tally, TallyLike, as_tally
from isocost.typing import Floats, Ints
from isocost.verdict.sentences import round_up

NARROW = 0.1
"""The greatest width of a pool that only removes miscalibration."""


@heeding
def coarsen(
    tally: TallyLike,
    cost: CostLike = "fnr",
    thresholds: Iterable[float] | float = (0.5,),
    tolerance: float = 0.0,
    infeasible: Literal["raise", "closest"] = "raise",
    *,
    allow_decision_changes: bool = False,
    minimize: Minimize = "largest",
    salt: str = DEFAULT_SALT,
    **reading: Unpack[DataOptions],
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
    cost : Cost or str
        What an error costs.
    thresholds : tuple of float
        Scores at which something is decided; edges of the tally.  No pool crosses one and
        every value stays on its side, so no decision changes.  May be empty.
    tolerance : float
        How far the costs may differ.
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
    tally = as_tally(tally, reading)
    check_salt(salt)
    check_flag("allow_decision_changes", allow_decision_changes)
    check_word("infeasible", infeasible, ("raise", "closest"))
    check_word("minimize", minimize, get_args(Minimize))
    cost, tolerance = as_cost(cost), check_tolerance(tolerance)
    edges = _check_thresholds(tally, thresholds)
    verdict = feasibility(tally, cost, tolerance)
    goal = verdict.target_cost - max(tolerance, verdict.smallest_tolerance)
    candidates = _candidates(tally, cost, edges, below=goal - SLACK)
    blocked = [] if allow_decision_changes else [c for c in candidates if c.limit < goal - SLACK]
    goal = min([goal, *(candidate.limit for candidate in blocked)])
    how = _How(edges, allow_decision_changes, minimize)
    cost_reached, repairs, missed = _repairs(candidates, goal, tally, how)
    reached, notes = tolerance, []
    if blocked or missed or not verdict.feasible:
        reached = verdict.target_cost - cost_reached
        notes.append(_closest_note(verdict, reached, bool(blocked or missed)))
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
            raise InfeasibleError(not_feasible(verdict, closest), verdict)
        if blocked:
            raise UsageError(_refused(blocked, verdict, edges, closest))
        raise UsageError(_no_pools(missed, goal, cost_reached, verdict, edges, closest))
    if notes:
        warnings.warn(notes[0], InfeasibleWarning, stacklevel=4)
    return rule


def decision_limit(
    tally: TallyLike,
    cost: CostLike = "fnr",
    thresholds: Iterable[float] | float = (0.5,),
    **reading: Unpack[DataOptions],
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
    thresholds = check_numbers("thresholds", thresholds)
    tally = as_tally(tally, reading, *thresholds)
    edges = _check_thresholds(tally, thresholds)
    groups = fitted_groups(tally)
    paid = as_cost(cost).among(groups)
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
    """A group that may be coarsened, and what turns information into cost.

    Attributes
    ----------
    group : Group
        Its name.
    index : int
        Its index in the tally.
    cost : float
        What its errors cost at present.
    bins : Bins
        Its bins, with the thresholds that its pools can respect.
    first : array
        The bins of the tally that these are.
    dropped : tuple of float
        Thresholds that no pools respect, because the people on one side have a share of positives
        that belongs on the other.
    a, b : float
        The coefficients of the generalized rates.
    base_rate, weight : float
        A set of pools costs factor * (base_rate - information / weight).
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
        """What turns information into cost."""
        return self.a / (1.0 - self.base_rate) + self.b / self.base_rate

    def cost_of(self, edges: Ints) -> float:
        """What the errors cost when each pool has one score."""
        return self.factor * (self.base_rate - self.bins.information(edges) / self.weight)

    def information_at(self, cost: float) -> float:
        """The information of pools that have this cost."""
        return self.weight * (self.base_rate - cost / self.factor)

    def added(self, w: Floats, y: Floats, value: Floats) -> Floats:
        """What people who get these values add to the cost, up to the constant b."""
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


@dataclass(frozen=True)
class _How:
    """What was asked for: the arguments of :func:`coarsen` that choose among pools."""

    thresholds: tuple[float, ...]
    may_cross: bool
    minimize: Minimize


def _repairs(
    candidates: list[_Candidate], goal: float, tally: Tally, how: _How
) -> tuple[float, list[tuple[list[Row], str]], list[Group]]:
    """The cost that all groups can be raised to, how, and the groups that fall short."""
    missed: list[Group] = []
    while True:
        results = {
            candidate.group: _repaired(candidate, goal, tally, how)
            for candidate in candidates
            if candidate.cost < goal - SLACK
        }
        short = {group: lower for group, lower in results.items() if isinstance(lower, float)}
        if not short:
            return goal, [one for one in results.values() if not isinstance(one, float)], missed
        missed += [group for group in short if group not in missed]
        goal = min(short.values())


def _repaired(
    candidate: _Candidate, goal: float, tally: Tally, how: _How
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
        pools = best_pools(bins, target, how.minimize)
        if pools is None and not how.may_cross:
            return candidate.cost_of(nearest_pools(bins, target))
        ways = [_rows(candidate, pools.pieces(), tally, bins.thresholds)] if pools else []
    else:
        ways = [_rows(candidate, pools.pieces(), tally) for pools in crossing(bins, target)]
    if not ways:
        # Without thresholds every cost can be met.
        pools = best_pools(replace(bins, thresholds=()), target, how.minimize)
        ways = [_rows(candidate, pools.pieces(), tally)] if pools else []
    levels = levels_of(tally, candidate.index)
    shares = [_decisions_changed(levels, rows, how.thresholds) for rows in ways]
    share = min(shares)
    rows = ways[shares.index(share)]
    name, count = group_names(tally.groups)[candidate.index], len({row.value for row in rows})
    text = (
        f"{name} has {count} pools, and no score changes by more than "
        f"{_largest_change(levels, rows):.4f}. {about}"
    )
    if how.thresholds:
        text += _about_decisions(candidate, share)
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
    changes = candidate.added(bins.w, bins.y, values) - _present(candidate, tally)
    reached = np.cumsum(changes)
    # The first bin with which the cost comes up to the goal.
    at = int(np.argmax(reached >= need))
    share = 1.0 - float((reached[at] - need) / changes[at])
    below = np.unique(np.minimum(edges, at)).tolist()
    pieces: list[Piece] = [(i, j, [(float(values[i]), 1.0)]) for i, j in pairwise(below)]
    pieces.append((at, at + 1, [(float(values[at]), share)]))
    return [*pieces, (at + 1, len(bins), [])] if at + 1 < len(bins) else pieces


def _present(candidate: _Candidate, tally: Tally) -> Floats:
    """What the scores of each bin add to the cost at present, up to the constant b."""
    cells = tally.cells.take(tally.cells.of_group(candidate.index))
    fp, fn = candidate.a / (1.0 - candidate.base_rate), -candidate.b / candidate.base_rate
    sums = add_up(cells.bin, np.where(cells.label == 1, fn, fp) * cells.wh, tally.grid.size)
    return sums[candidate.first] / candidate.weight


def _about_decisions(candidate: _Candidate, share: float) -> str:
    limit = f"Costs up to {candidate.limit:.4f} leave every decision alone"
    return f"{limit}; here {share:.2%} of decisions change." if share else f"{limit}, as here."


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
    """Where one piece ends and the next begins: at walls if there are any, else in the middle."""
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


def _largest_change(levels: Levels, rows: Sequence[Row]) -> float:
    """How far a score moves at most; a bin's scores are taken at their mean."""
    own = [(levels.position[slice(*_held(levels, row))], _value(row)) for row in rows]
    return max(float(np.abs(value - score).max(initial=0.0)) for score, value in own)


def _decisions_changed(levels: Levels, rows: Sequence[Row], thresholds: tuple[float, ...]) -> float:
    """The share of people who end up on another side of a threshold."""
    side = np.searchsorted(thresholds, levels.position, side="right")
    moved = 0.0
    for row in rows:
        first, last = _held(levels, row)
        other = side[first:last] != bisect_right(thresholds, _value(row))
        moved += row.probability * float(levels.w[first:last][other].sum())
    return moved / levels.total


def _held(levels: Levels, row: Row) -> tuple[int, int]:
    """The levels in the interval of a row, from the first up to the second."""
    first, last = levels.position.searchsorted([row.lo, row.hi]).tolist()
    return first, len(levels.position) if row.hi == 1.0 else last


def _value(row: Row) -> float:
    """What a row sets scores to."""
    if row.value is None:
        raise AssertionError("rows of pools have values")
    return row.value


def _refused(
    blocked: list[_Candidate],
    verdict: Feasibility,
    thresholds: tuple[float, ...],
    closest: list[str],
) -> Problem:
    """How far coarsening can go without changing a decision."""
    names = names_of(verdict.costs)
    enough = max(verdict.target_cost - candidate.limit for candidate in blocked)
    limits = "; ".join(_limit_text(c, names[c.group]) for c in blocked)
    return Problem(
        "decisions",
        f"at {_listed(thresholds)} must stay as they are while costs are raised to "
        f"{verdict.target_cost - verdict.tolerance:.4f}",
        limits,
        "; or ".join(
            [
                f"accept {setting('tolerance', float(round_up(enough)))} or more",
                f"pass {setting('allow_decision_changes', True)} to let pools cross a threshold",
                *closest,
            ]
        ),
    )


def _no_pools(
    missed: list[Group],
    goal: float,
    reached: float,
    verdict: Feasibility,
    thresholds: tuple[float, ...],
    closest: list[str],
) -> Problem:
    """Which cost needs a coin for several bins, and which does not."""
    names = names_of(verdict.costs)
    return Problem(
        "coarsen",
        "randomizes the people of one bin of a group at most",
        f"no such pools found for {', '.join(names[group] for group in missed)} that cost "
        f"{goal:.4f} and leave every decision at {_listed(thresholds)} alone; a lower cost that "
        f"all groups can be raised to is {reached:.4f}",
        "; or ".join(
            [
                f"accept {setting('tolerance', float(round_up(verdict.target_cost - reached)))}",
                "name fewer thresholds",
                f"pass {setting('allow_decision_changes', True)} to let pools cross a threshold",
                *closest,
            ]
        ),
    )


def _limit_text(candidate: _Candidate, name: str) -> str:
    text = f"the largest cost of {name} that leaves every decision alone is {candidate.limit:.4f}"
    if candidate.dropped:
        text += (
            f", its present one: the people on one side of {_listed(candidate.dropped)} "
            "have a share of positives that belongs on the other"
        )
    return text


def _closest_note(verdict: Feasibility, tolerance: float, blocked: bool) -> str:
    why = " without changing a decision" if blocked else ""
    return (
        f"Equal cost ({verdict.cost}) within {verdict.tolerance:g} is not feasible{why}. This is "
        f"the closest: costs differ by {tolerance:.4f}."
    )


def _listed(thresholds: Iterable[float]) -> str:
    return ", ".join(f"{threshold:g}" for threshold in sorted(thresholds))
