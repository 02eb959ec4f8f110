"""The paper's rates and costs of each group, from the sums of a tally.

Sums may have leading dimensions, so that one formula serves one tally and thousands of resampled
ones.  With score h, label y and weight w:

    mu   = sum w y / sum w                    base rate
    c_fp = sum w h (1-y) / sum w (1-y)        generalized false-positive rate
    c_fn = sum w (1-h) y / sum w y            generalized false-negative rate

Always mu c_fn - (1-mu) c_fp = mu - E[h].
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from isocost.cells import Sums
from isocost.costs import Cost
from isocost.errors import DataError, Problem, listing, spoken
from isocost.groups import Group
from isocost.measures.table import MEASURES
from isocost.tallies import Tally
from isocost.typing import Floats

LEAST_SHARE = 1e-12
"""A label with a smaller share of its group's weight would be lost to rounding."""

MOST_LISTED = 5
"""How many groups an error names."""

base_rate = MEASURES["base_rate"].of

mean_score = MEASURES["mean_score"].of

generalized_fpr = MEASURES["generalized_fpr"].of

generalized_fnr = MEASURES["generalized_fnr"].of


def by_group(groups: Sequence[Group], values: Floats) -> dict[Group, float]:
    """An array with a number per group as a dictionary."""
    return dict(zip(groups, map(float, values), strict=True))


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
    totals = tally.totals
    lacking = totals.w <= LEAST_SHARE * totals.weight[:, None]
    problems = []
    merge = spoken("tally.relabel", "--merge-groups", "rename it in its rows")
    for index, label in np.argwhere(lacking).tolist():
        group, kind = tally.groups[index], ("negatives", "positives")[label]
        rate = ("false-positive", "false-negative")[label]
        share = "none of them" if totals.n[index, label] == 0 else "next to no weight of"
        drop = spoken(
            f"tally.drop([{group!r}])",
            shlex.join(["--drop-group", str(group)]),
            "delete its rows",
        )
        problems.append(
            Problem(
                f"group {group!r}",
                f"must have {kind}: without them it has no {rate} rate",
                f"{totals.n[index].sum():.6g} rows, {share} {kind}",
                f"leave it out ({drop}), merge it with another ({merge}), or gather more data",
            )
        )
    if len(problems) > MOST_LISTED:
        more = f"{len(problems) - MOST_LISTED:,} more groups without positives or negatives"
        step = (
            "check that the group column is the right one; leave small groups out "
            f"({spoken('tally.drop', '--drop-group', 'delete their rows')}) or merge them ({merge})"
        )
        problems[MOST_LISTED:] = [Problem("groups", "must have both labels", more, step)]
    if problems:
        raise DataError(problems)


def wholly_handed_over(tally: Tally) -> list[Group]:
    """The groups of which nobody is decided about."""
    return [group for group in tally.handed_over if group not in tally.groups]


def require_all_decided(tally: Tally) -> None:
    """Refuse the tally of a rule that hands over everybody of a group."""
    if gone := wholly_handed_over(tally):
        rule = "must all have people who are decided about, to be compared"
        got = f"nobody of {listing(map(repr, gone))}: all are handed over"
        step = "use a rule that decides about some people of each group"
        raise DataError(Problem("group", rule, got, step))


def require_two_groups(tally: Tally) -> None:
    """Refuse a tally with one group: there is nothing to compare it with."""
    if len(tally.groups) < 2:
        require_all_decided(tally)
        rule, got = "must have at least two values, to be compared", f"only {tally.groups[0]!r}"
        step = "check the group column" + spoken(
            "; for the rates of one group use isocost.generalized_fpr and generalized_fnr", ""
        )
        raise DataError(Problem("group", rule, got, step))
