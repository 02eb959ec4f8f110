"""The rates of one group, as formulas over the sums of a tally.

Every function takes arrays whose last dimension runs over the groups (and, before that, over
the two labels), so it serves one tally and thousands of resampled ones alike.  With score h,
label y and weight w:

    mu   = sum w y / sum w                    base rate
    c_fp = sum w h (1-y) / sum w (1-y)        generalized false-positive rate
    c_fn = sum w (1-h) y / sum w y            generalized false-negative rate

Always mu c_fn - (1-mu) c_fp = mu - E[h].
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isocost.cells import Sums
from isocost.costs import Cost
from isocost.errors import DataError, Problem
from isocost.groups import Group
from isocost.tallies import Tally

__all__ = [
    "accuracy",
    "base_rate",
    "brier",
    "fnr",
    "fpr",
    "generalized_fnr",
    "generalized_fpr",
    "group_costs",
    "mean_score",
    "require_both_labels",
    "require_two_groups",
    "selection_rate",
    "trivial_costs",
]

LEAST_SHARE = 1e-12
"""A label with a smaller share of its group's weight would be lost to rounding."""

MOST_TOLD = 5
"""How many groups an error names."""

Floats = npt.NDArray[np.float64]


def base_rate(sums: Sums) -> Floats:
    """The share of positives, mu."""
    return sums.w[..., 1] / sums.weight


def mean_score(sums: Sums) -> Floats:
    """The mean score E[h]."""
    total: Floats = sums.wh.sum(axis=-1)
    return total / sums.weight


def generalized_fpr(sums: Sums) -> Floats:
    """The mean score of the negatives, c_fp."""
    return sums.wh[..., 0] / sums.w[..., 0]


def generalized_fnr(sums: Sums) -> Floats:
    """One minus the mean score of the positives, c_fn."""
    return (sums.w[..., 1] - sums.wh[..., 1]) / sums.w[..., 1]


def brier(sums: Sums) -> Floats:
    """The mean squared distance of score and label, E[(h - y)^2]."""
    squares: Floats = sums.wh2.sum(axis=-1)
    lost = squares - 2.0 * sums.wh[..., 1] + sums.w[..., 1]
    return lost / sums.weight


def fpr(sums: Sums, above: Sums) -> Floats:
    """The share of negatives at or above the threshold."""
    return above.w[..., 0] / sums.w[..., 0]


def fnr(sums: Sums, above: Sums) -> Floats:
    """The share of positives below the threshold."""
    return (sums.w[..., 1] - above.w[..., 1]) / sums.w[..., 1]


def selection_rate(sums: Sums, above: Sums) -> Floats:
    """The share of everybody at or above the threshold."""
    return above.weight / sums.weight


def accuracy(sums: Sums, above: Sums) -> Floats:
    """The share whose label is what the threshold says."""
    right = above.w[..., 1] + sums.w[..., 0] - above.w[..., 0]
    return right / sums.weight


def group_costs(sums: Sums, groups: tuple[Group, ...], cost: Cost) -> Floats:
    """The cost of each group, g = a c_fp + b c_fn."""
    a, b = cost.coefficients(groups, base_rate(sums))
    return a * generalized_fpr(sums) + b * generalized_fnr(sums)


def trivial_costs(sums: Sums, groups: tuple[Group, ...], cost: Cost) -> Floats:
    """The cost if everybody's score were the base rate, a mu + b (1 - mu).

    No calibrated score costs more.
    """
    mu = base_rate(sums)
    a, b = cost.coefficients(groups, mu)
    return a * mu + b * (1.0 - mu)


def require_both_labels(tally: Tally) -> None:
    """Refuse groups that have no positives or no negatives: their rates do not exist."""
    problems = []
    least = LEAST_SHARE * tally.totals.weight
    for place, group in enumerate(tally.groups):
        for label, kind, rate in (
            (1, "positives", "false-negative"),
            (0, "negatives", "false-positive"),
        ):
            if tally.totals.w[place, label] <= least[place]:
                count = f"{tally.totals.n[place].sum():.6g}"
                share = (
                    "none of them" if tally.totals.n[place, label] == 0 else "next to no weight of"
                )
                problems.append(
                    Problem(
                        f"group {group!r}",
                        f"must have {kind}: without them it has no {rate} rate",
                        f"{count} rows, {share} {kind}",
                        f"leave it out with tally.drop([{group!r}]) (--drop-group on the command "
                        "line), pool it with another through tally.relabel, or gather more data",
                    )
                )
    if len(problems) > MOST_TOLD:
        more = f"{len(problems) - MOST_TOLD:,} more groups without positives or negatives"
        step = "check that the group column is the right one; leave small groups out or pool them"
        problems[MOST_TOLD:] = [Problem("groups", "must have both labels", more, step)]
    if problems:
        raise DataError(problems)


def require_two_groups(tally: Tally) -> None:
    """Refuse a tally with one group: there is nothing to compare it with."""
    if len(tally.groups) < 2:
        raise DataError(
            Problem(
                "group",
                "must have at least two values, to be compared",
                f"only {tally.groups[0]!r}",
                "check the group column; for the rates of one group use isocost.generalized_fpr "
                "and generalized_fnr",
            )
        )
