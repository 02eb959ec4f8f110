"""Coarsening: pool neighbouring scores until errors cost every group the same."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Literal

from isocost.checks import check_flag, check_numbers, check_salt, check_tolerance, check_word
from isocost.costs import CostLike, as_cost
from isocost.errors import InfeasibleError, InfeasibleWarning, Problem, UsageError
from isocost.groups import Group, names_of
from isocost.measure.feasibility import SLACK, Feasibility, feasibility, round_up
from isocost.measure.rates import require_both_labels
from isocost.promises import Promise
from isocost.repair.common import not_feasible, summary_of
from isocost.repair.remedy import Candidate, candidates, repaired
from isocost.rows import Row
from isocost.rules import DEFAULT_SALT, Rule
from isocost.tallies import Tally, check_tally

__all__ = ["coarsen", "decision_limit"]


def coarsen(
    tally: Tally,
    cost: CostLike = "fnr",
    thresholds: Iterable[float] | float = (0.5,),
    tolerance: float = 0.0,
    infeasible: Literal["raise", "closest"] = "raise",
    *,
    allow_decision_changes: bool = False,
    salt: str = DEFAULT_SALT,
) -> Rule:
    """Make errors cost every group the same by pooling neighbouring scores.

    The goal is that of :func:`isocost.withhold`, without the coin: scores of a group that lie
    next to each other become their pool's share of positives q.  That is calibrated on
    the tally whatever the pools, and it costs

        g = (a / (1 - mu) + b / mu) (mu - E[q^2]),

    so pools can be chosen to cost g* - tolerance.  Where withholding moves a few people far, this
    moves everybody a little, and equal scores alike.

    Parameters
    ----------
    tally : Tally
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
        or use the smallest tolerance that will do, with a warning and a note in the rule.
    allow_decision_changes : bool
        Whether pools may cross a threshold where the target cannot be met otherwise.
    salt : str
        The coin's salt.  At most one bin of each changed group is divided by a coin.

    Returns
    -------
    Rule
        Groups that cost enough have no rows: they keep their scores.  The notes say for each
        changed group how many pools it has, how far a score moves at most, and the largest
        cost that leaves every decision alone.

    Notes
    -----
    Each side of the thresholds is cut into parts of equal width, as many as cost at least the
    goal, and parts whose values fall are joined, so that a higher score never becomes a lower
    value.  These pools cost a little too much as a rule, so one of them is split where its
    two parts cost just enough.  That place lies inside a bin, whose people are divided by a
    coin; everybody else's new score follows from the old one alone.  With at most one threshold
    there is always such a place.  Between two thresholds there may be none, because the people
    there need each other for a value between them; this is refused, or with
    ``infeasible="closest"`` answered with a lower cost that can be had.

    Why equal width: it keeps the largest change small, and it does not look at the labels to
    place the edges.  Joining the neighbours that lose least information keeps wide pools beside
    narrow ones and moves some scores much further.  On the income data, labels turned round,
    the tests hold the largest change to 0.25 and the held-out gap to 1.05 times that of
    withholding over 200 half splits.

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
    >>> rule = coarsen(compas(), cost="fnr", thresholds=(0.5,), tolerance=0.08)
    >>> rule
    Rule by coarsen, cost fnr; unchanged: Caucasian
    group                    score in  becomes  with probability
    ----------------  ---------------  -------  ----------------
    African-American         [0, 0.5)   0.3752            1.0000
    African-American  [0.5, 0.581055)   0.5599            0.0241
    African-American  [0.5, 0.581055)   0.6600            0.9759
    African-American    [0.581055, 1]   0.6600            1.0000
    note: African-American has 3 pools, and no score changes by more than 0.1593.
    Costs up to 0.4464 leave every decision alone, as here.
    >>> round(ic.audit(rule.expected(compas()), cost="fnr").disparity.difference, 9)
    0.08
    """
    check_tally(tally)
    check_salt(salt)
    check_flag("allow_decision_changes", allow_decision_changes)
    check_word("infeasible", infeasible, ("raise", "closest"))
    cost, tolerance = as_cost(cost), check_tolerance(tolerance)
    edges = _check_thresholds(tally, thresholds)
    asked = feasibility(tally, cost, tolerance)
    if not asked.feasible and infeasible == "raise":
        raise InfeasibleError(not_feasible(asked), asked)
    goal = asked.target_cost - max(tolerance, asked.smallest_tolerance)
    found = candidates(tally, cost, edges, below=goal - SLACK)
    blocked = [] if allow_decision_changes else [f for f in found if f.limit < goal - SLACK]
    if blocked and infeasible == "raise":
        raise UsageError(_refused(blocked, asked, edges))
    goal = min([goal, *(f.limit for f in blocked)])
    reached, repairs, missed = _repairs(found, goal, tally, edges, allow_decision_changes)
    if missed and infeasible == "raise":
        raise UsageError(_no_pools(missed, goal, reached, asked, edges))
    notes = []
    options: dict[str, Any] = {"infeasible": infeasible}
    if blocked or missed or not asked.feasible:
        options["reached"] = asked.target_cost - reached
        notes.append(_closest_note(asked, asked.target_cost - reached, bool(blocked or missed)))
        warnings.warn(notes[0], InfeasibleWarning, stacklevel=2)
    options["allow_decision_changes"] = allow_decision_changes
    rows = tuple(row for rows, _ in repairs for row in rows)
    within = {"cost": asked.target_cost - reached} if notes else None
    return Rule(
        groups=tally.groups,
        rows=rows,
        method="coarsen",
        cost=cost,
        settings={"thresholds": list(edges), "tolerance": tolerance, **options},
        notes=(*notes, *(note for _, note in repairs)),
        made_from=summary_of(tally),
        salt=salt,
        promise=Promise.of(rows, {"cost": tolerance}, within),
    )


def _repairs(
    found: list[Candidate],
    goal: float,
    tally: Tally,
    thresholds: tuple[float, ...],
    may_cross: bool,
) -> tuple[float, list[tuple[list[Row], str]], list[Group]]:
    """The cost that all groups can be raised to, how, and the groups that kept it from the goal."""
    missed: list[Group] = []
    while True:
        made = {
            f.group: repaired(f, goal, tally, thresholds, may_cross)
            for f in found
            if f.cost < goal - SLACK
        }
        short = {group: lower for group, lower in made.items() if isinstance(lower, float)}
        if not short:
            return goal, [one for one in made.values() if not isinstance(one, float)], missed
        missed += [group for group in short if group not in missed]
        goal = min(short.values())


def decision_limit(
    tally: Tally,
    cost: CostLike = "fnr",
    thresholds: Iterable[float] | float = (0.5,),
) -> dict[Group, float]:
    """The largest cost that each group's pools can have and leave every decision alone.

    It is the cost of one pool per side of the thresholds.  Where no pools leave
    every decision alone, because the people on one side have a share of positives that
    belongs on the other, or where the scores cost more already, it is the present cost.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> limits = decision_limit(compas(), "fnr", thresholds=(0.5,))
    >>> {group: round(limit, 4) for group, limit in limits.items()}
    {'African-American': 0.4464, 'Caucasian': 0.5539}
    """
    check_tally(tally)
    edges = _check_thresholds(tally, thresholds)
    require_both_labels(tally)
    return {found.group: found.limit for found in candidates(tally, as_cost(cost), edges)}


def _check_thresholds(tally: Tally, thresholds: Iterable[float] | float) -> tuple[float, ...]:
    """Thresholds in order, each once, each an edge of the tally."""
    checked = sorted(set(check_numbers("thresholds", thresholds)))
    for threshold in checked:
        tally.grid.first_bin(threshold, "thresholds")
    return tuple(checked)


def _refused(
    blocked: list[Candidate], asked: Feasibility, thresholds: tuple[float, ...]
) -> Problem:
    """Say how far coarsening can go without changing a decision."""
    names = names_of(asked.costs)
    enough = max(asked.target_cost - found.limit for found in blocked)
    limits = "; ".join(_limit_text(found, names[found.group]) for found in blocked)
    return Problem(
        "decisions",
        f"at {_listed(thresholds)} must stay as they are while costs are raised to "
        f"{asked.target_cost - asked.tolerance:.4f}",
        limits,
        f"accept tolerance={round_up(enough)} or more; or pass allow_decision_changes=True "
        "(--allow-decision-changes) to let pools cross a threshold; or "
        'pass infeasible="closest" to go as far as this',
    )


def _no_pools(
    missed: list[Group],
    goal: float,
    reached: float,
    asked: Feasibility,
    thresholds: tuple[float, ...],
) -> Problem:
    """Say which cost cannot be had without a coin for several bins, and which can."""
    names = names_of(asked.costs)
    return Problem(
        "coarsen",
        "randomizes the people of one bin of a group at most",
        f"no such pools found for {', '.join(names[group] for group in missed)} that cost "
        f"{goal:.4f} and leave every decision at {_listed(thresholds)} alone; a lower cost that "
        f"all groups can be raised to is {reached:.4f}",
        f"accept tolerance={round_up(asked.target_cost - reached)}; or name fewer thresholds; or "
        "pass allow_decision_changes=True (--allow-decision-changes) to let pools cross a "
        'threshold; or pass infeasible="closest" to go as far as this',
    )


def _limit_text(found: Candidate, name: str) -> str:
    text = f"the largest cost of {name} that leaves every decision alone is {found.limit:.4f}"
    if found.sides.dropped:
        text += (
            ", its present one: the people on one side of "
            f"{_listed(found.sides.dropped)} have a share of positives that belongs on the other"
        )
    return text


def _closest_note(asked: Feasibility, tolerance: float, blocked: bool) -> str:
    why = " without changing a decision" if blocked else ""
    return (
        f"Equal cost ({asked.cost}) within {asked.tolerance:g} is not feasible{why}. This is the "
        f"closest: costs differ by {tolerance:.4f}."
    )


def _listed(thresholds: Iterable[float]) -> str:
    return ", ".join(f"{threshold:g}" for threshold in sorted(thresholds))
