"""The paper's rates and costs of each group, all its other numbers, and how far apart they are.

Sums may have leading dimensions, so that one formula serves one tally and thousands of resampled
ones.  With score h, label y and weight w:

    mu   = sum w y / sum w                    base rate
    c_fp = sum w h (1-y) / sum w (1-y)        generalized false-positive rate
    c_fn = sum w (1-h) y / sum w y            generalized false-negative rate

Always mu c_fn - (1-mu) c_fp = mu - E[h].

Numbers are computed as columns, with an entry for each group; :class:`Measures` is one entry of
each, :class:`Disparity` the widest difference in one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np

from isocost.cells import Sums
from isocost.costs import Cost
from isocost.errors import DataError, Problem, listing, spoken
from isocost.groups import Group
from isocost.measures.table import MEASURES
from isocost.result import Record
from isocost.tallies import Tally
from isocost.typing import Bools, Floats

Columns = dict[str, Any]

LEAST_SHARE = 1e-12
"""A label with a smaller share of its group's weight would be lost to rounding."""

base_rate, mean_score = MEASURES["base_rate"].of, MEASURES["mean_score"].of

generalized_fpr, generalized_fnr = MEASURES["generalized_fpr"].of, MEASURES["generalized_fnr"].of


def by_group(groups: Sequence[Group], values: Floats) -> dict[Group, float]:
    """An array with a number per group as a dictionary."""
    return dict(zip(groups, map(float, values), strict=True))


def group_costs(sums: Sums, groups: tuple[Group, ...], cost: Cost) -> Floats:
    """The cost of each group, g = a c_fp + b c_fn."""
    a, b = cost.coefficients(groups, base_rate(sums))
    parts = (a, generalized_fpr(sums)), (b, generalized_fnr(sums))
    # A rate that costs nothing may be undefined.
    fp, fn = (np.where(amount == 0.0, 0.0, amount * rate) for amount, rate in parts)
    return np.asarray(fp + fn)


def trivial_costs(sums: Sums, groups: tuple[Group, ...], cost: Cost) -> Floats:
    """The cost if everybody's score were the base rate, a mu + b (1 - mu).

    No calibrated score costs more.
    """
    mu = base_rate(sums)
    a, b = cost.coefficients(groups, mu)
    return a * mu + b * (1.0 - mu)


def has_both_labels(tally: Tally) -> Bools:
    """True for each group that has positives and negatives, so that all its rates exist."""
    totals = tally.totals
    return np.asarray((totals.w > LEAST_SHARE * totals.weight[:, None]).all(axis=1))


def lacking(tally: Tally) -> dict[Group, str]:
    """The groups of one label, with the label that they lack: "positives" or "negatives"."""
    both, kinds = has_both_labels(tally), ("negatives", "positives")
    lightest = tally.totals.w.argmin(axis=1)
    return {g: kinds[lightest[i]] for i, g in enumerate(tally.groups) if not both[i]}


def wholly_handed_over(tally: Tally) -> list[Group]:
    """Groups in which everyone was handed over."""
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


@dataclass(frozen=True)
class Measures(Record):
    """The numbers of one group, or of everybody.

    ``numbers["fpr"]`` and ``numbers.fpr`` are the same.

    Attributes
    ----------
    n : float
        Rows.
    share : float
        Share of the total weight.
    cost, trivial_cost : float
        The present cost, and that of the base rate for everybody.  NaN for everybody together
        when the cost differs by group.
    values : {name: float}
        All numbers: those above, and one for each :class:`isocost.Measure` of the audit, in the
        order of :data:`isocost.MEASURES`.  NaN where a number is not defined.
    intervals : {name: (low, high)}
        Confidence intervals, for the numbers that have one.
    """

    written = ("*values", "intervals")

    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        if name not in self.values:
            raise KeyError(f"{name}: not measured; pass measures={name!r} to isocost.audit")
        return self.values[name]

    def __getattr__(self, name: str) -> float:
        # Copies and unpickled records are asked for names before they have values.
        values = self.__dict__.get("values", {})
        if name not in values:
            raise AttributeError(f"{type(self).__name__} has no number {name!r}")
        return float(values[name])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.values]


@dataclass(frozen=True)
class Disparity(Record):
    """The largest difference of a number between two groups.

    Attributes
    ----------
    difference : float
        Highest minus lowest; NaN if fewer than two groups have the number.
    ratio : float
        Lowest over highest; NaN when the highest is 0, or the lowest is negative.
    highest, lowest : group
        The groups it is between.
    """

    difference: float
    ratio: float
    highest: Group
    lowest: Group


def disparity(groups: Sequence[Group], values: Floats) -> Disparity:
    """The disparity of one number per group; groups for which it is NaN are left out.

    Examples
    --------
    >>> disparity(["a", "b"], np.array([0.2, 0.25]))
    Disparity(difference=0.04999999999999999, ratio=0.8, highest='b', lowest='a')
    """
    known = [(value, g) for value, g in zip(values.tolist(), groups, strict=True) if value == value]
    if len(known) < 2:
        return Disparity(math.nan, math.nan, groups[0], groups[-1])
    (high, highest), (low, lowest) = (pick(known, key=itemgetter(0)) for pick in (max, min))
    ratio = low / high if high > 0 and low >= 0 else math.nan
    return Disparity(high - low, ratio, highest, lowest)
