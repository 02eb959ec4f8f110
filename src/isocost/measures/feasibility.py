"""Feasibility of calibrated scores that cost every group the same, and what it would take.

Withholding information can only raise a group's cost, up to that of its trivial score, the
base rate for everybody.  So the target is the highest cost g*, and it can be met exactly when no
group's trivial cost lies below it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isocost.costs import Cost
from isocost.errors import DataError, Problem, listing, spoken
from isocost.groups import Group, names_of
from isocost.measures import rates
from isocost.measures.rates import by_group
from isocost.question import Question, asks
from isocost.result import Record
from isocost.tables import round_down, round_up
from isocost.tallies import Tally
from isocost.typing import Floats

SLACK = 1e-12
"""Rounding error allowed in comparisons of costs, as a share of the costs."""

MIN_LABEL = 5
"""Groups with fewer rows of a label are not compared: the usual least number of events."""


@dataclass(frozen=True)
class Feasibility(Record):
    """The verdict on calibrated scores that cost every group the same, within a tolerance.

    Attributes
    ----------
    cost : Cost
        The cost in question.
    tolerance : float
        Largest distance of a group's cost below the target.
    feasible : bool
        True if such scores are possible.
    target_group, target_cost
        The group whose errors cost most, and that cost: what the others are raised to.
    costs, trivial_costs : {group: float}
        The present cost, and the highest that calibrated scores can have.
    alpha : {group: float}
        The share to withhold, (g* - tolerance - g) / (trivial - g).  Above 1, or infinite, where
        the group cannot reach the target: no share does it.
    unreachable : tuple
        The groups that cannot reach the target.
    smallest_tolerance : float
        The smallest tolerance that would be feasible; 0 if none is needed.
    required_cost : float
        What the target group's cost must come down to for tolerance 0: the lowest trivial cost.
    uninformative : tuple
        Groups whose scores cost at least as much as saying nothing.  They are not calibrated.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> print(ic.feasibility(compas(), "fpr"))
    Not feasible: the scores of African-American cost 0.4475 (fpr), and calibrated scores of \
Caucasian cannot cost more than 0.3936.
    It would take a tolerance of at least 0.0539, or better scores for African-American: \
a cost of at most 0.3936.
    """

    cost: Cost
    tolerance: float
    feasible: bool
    target_group: Group
    target_cost: float
    costs: dict[Group, float]
    trivial_costs: dict[Group, float]
    alpha: dict[Group, float]
    unreachable: tuple[Group, ...]
    smallest_tolerance: float
    required_cost: float
    uninformative: tuple[Group, ...]

    @property
    def excess(self) -> float:
        """The highest cost less the least that another group can reach, less the tolerance."""
        others = [self.ceiling(group) for group in self.costs if group != self.target_group]
        return self.target_cost - float(np.fmin.reduce(others)) - self.tolerance

    @property
    def changed(self) -> tuple[Group, ...]:
        """The groups whose scores must be withheld in part."""
        return tuple(group for group, share in self.alpha.items() if share > 0)

    def ceiling(self, group: Group) -> float:
        """The highest cost that the group can have: its trivial cost, or its own if higher."""
        return max(self.costs[group], self.trivial_costs[group])

    def __str__(self) -> str:
        return self.told(names_of(self.costs))

    def told(self, names: Mapping[Group, str], most: float = math.inf) -> str:
        """The verdict in words; shares are listed for at most ``most`` groups."""
        target = names[self.target_group]
        if not self.feasible and not self.unreachable:
            return f"Not known: fewer than two groups have a cost ({self.cost})."
        if not self.feasible:
            lowest = min(self.unreachable, key=self.ceiling)
            limit = (
                f"calibrated scores of {names[lowest]} cannot cost more than "
                f"{self.trivial_costs[lowest]:.4f}"
                if lowest not in self.uninformative
                else f"withholding cannot raise the cost of {names[lowest]} above the "
                f"{self.costs[lowest]:.4f} that it has"
            )
            return (
                f"Not feasible: the scores of {target} cost {self.target_cost:.4f} ({self.cost}), "
                f"and {limit}.\n"
                f"It would take a tolerance of at least {round_up(self.smallest_tolerance)}, "
                f"or better scores for {target}: a cost of at most "
                f"{round_down(self.required_cost)}."
            )
        if not self.changed:
            return f"Nothing to do: the costs ({self.cost}) differ by at most {self.tolerance:g}."
        shares = ", ".join(f"{self.alpha[group]:.2%} of {names[group]}" for group in self.changed)
        if len(self.changed) > most:
            shares = f"some people in {len(self.changed)} groups"
        goal, whose = self.target_cost - self.tolerance, f"that of {target}"
        if self.tolerance:
            whose = f"within {self.tolerance:g} of {self.target_cost:.4f}, the cost of {target}"
        return (
            f"Feasible: withholding the scores of {shares} raises the cost ({self.cost}) to "
            f"{goal:.4f}, {whose}."
        )


def mixing_rates(costs: Floats, trivial: Floats, tolerance: float) -> Floats:
    """The shares alpha that raise each cost to the highest less the tolerance.

    The last dimension runs over the groups.  Infinite where withholding does not raise the cost,
    NaN where a group has no cost.
    """
    scale = np.fmax.reduce(np.maximum(costs, trivial), axis=-1, keepdims=True)
    need = np.fmax.reduce(costs, axis=-1, keepdims=True) - tolerance - costs
    room = trivial - costs
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = np.where(room <= 0, np.inf, need / room)
    return np.where(need <= SLACK * scale, 0.0, alpha)


@asks("cost", "tolerance")
def feasibility(tally: Tally, question: Question) -> Feasibility:
    """Decide whether calibrated scores can cost every group the same.

    Parameters
    ----------
    tally : Tally, or data
        Of the original scores.  Groups of one label are not compared.
    cost, tolerance, ...
        Fields of :class:`isocost.Question`; with data, keywords of :func:`isocost.tally`.
    """
    question.cost.check_groups(tally.groups)
    groups = fitted_groups(tally, question.min_group)
    return reach_of(tally.select(groups), question.among(groups))


def reach_of(tally: Tally, question: Question) -> Feasibility:
    """The feasibility for all groups of a tally; a group without the rates of a cost has NaN."""
    groups, cost, tolerance = tally.groups, question.cost, question.tolerance
    costs = rates.group_costs(tally.totals, groups, cost)
    trivial = rates.trivial_costs(tally.totals, groups, cost)
    known = ~np.isnan(costs)
    top = int(np.argmax(np.where(known, costs, -np.inf)))
    goal = float(costs[top]) - tolerance
    alpha = mixing_rates(costs, trivial, tolerance)
    # A group that already costs more than its trivial score can at least stay where it is.
    ceiling = np.maximum(costs, trivial)
    short = goal > ceiling + SLACK * np.fmax.reduce(ceiling)
    # Rounding may put a share that is just enough a hair above 1.
    alpha = np.where(short, alpha, np.minimum(alpha, 1.0))
    lowest = float(np.fmin.reduce(ceiling))
    return Feasibility(
        cost=cost,
        tolerance=tolerance,
        feasible=bool(known.sum() > 1 and not short.any()),
        target_group=groups[top],
        target_cost=float(costs[top]),
        costs=by_group(groups, costs),
        trivial_costs=by_group(groups, trivial),
        alpha=by_group(groups, alpha),
        unreachable=tuple(g for g, far in zip(groups, short, strict=True) if far),
        smallest_tolerance=float(np.maximum(0.0, costs[top] - lowest)),
        required_cost=lowest,
        uninformative=tuple(
            g for g, c, t in zip(groups, costs, trivial, strict=True) if c >= t * (1.0 - SLACK)
        ),
    )


def large_groups(tally: Tally, min_group: int) -> tuple[Group, ...]:
    """The groups with at least ``min_group`` rows, five of each label; with 0, one of each."""
    least = max(1, min(MIN_LABEL, min_group))
    large = (tally.totals.n.sum(axis=1) >= min_group) & (tally.totals.n.min(axis=1) >= least)
    large &= rates.has_both_labels(tally)
    return tuple(group for group, is_large in zip(tally.groups, large, strict=True) if is_large)


def compared_groups(tally: Tally, min_group: int) -> tuple[Group, ...]:
    """The groups that decide: the large ones; if there are not two, those with both labels.

    If there are not two of those either, all: what rates they have is shown, and decides nothing.
    Raises :class:`isocost.DataError` if there is only one group.
    """
    rates.require_two_groups(tally)
    chosen = (large_groups(tally, min_group), large_groups(tally, 0))
    return next((groups for groups in chosen if len(groups) >= 2), tally.groups)


def examined_groups(tally: Tally, min_group: int) -> tuple[Group, ...]:
    """The groups whose calibration is judged: those compared, and others that are as large.

    A group with positives only, or negatives only, has no cost, but may be miscalibrated.
    """
    rows = zip(tally.groups, tally.totals.n.sum(axis=1), strict=True)
    large = (group for group, n in rows if n >= min_group)
    return tuple(dict.fromkeys((*compared_groups(tally, min_group), *large)))


def fitted_groups(tally: Tally, min_group: int = 0) -> tuple[Group, ...]:
    """The groups that a repair compares, as :func:`compared_groups`; the others keep their scores.

    Raises :class:`isocost.DataError` if fewer than two have positives and negatives.
    """
    groups, both = compared_groups(tally, min_group), large_groups(tally, 0)
    if len(both) < 2:
        lacks = (f"{group!r} has no {label}" for group, label in rates.lacking(tally).items())
        got = f"{f'only {both[0]!r}' if both else 'none'}; {listing(lacks, 5)}"
        merge = spoken("tally.relabel", "--merge-groups", "rename them in the rows")
        step = f"check the label and the group column, merge groups ({merge}), or gather more data"
        rule = "at least two must have positives and negatives, to be compared"
        raise DataError(Problem("groups", rule, got, step))
    return groups
