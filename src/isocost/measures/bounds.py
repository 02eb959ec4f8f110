"""The paper's theorems, applied to a tally: what its numbers prove about each other.

For one group with base rate mu, generalized rates c_fp and c_fn, and a cost g = a c_fp + b c_fn:

    residual   r  = mu c_fn - (1-mu) c_fp = mu - E[h]       always
    gap           >= |r|                                    so calibrated scores lie on r = 0
    trivial cost  T = a mu + b (1-mu)                       the cost of the score mu for everybody
    c_fp = (mu g - b r) / T,   c_fn = ((1-mu) g + a r) / T  two linear equations, solved

The paper's supplement has the same statements with constants twice as large: it bounds the two
rates one by one and adds both errors, where their difference is known exactly.

What two equal costs at once require is in :mod:`isocost.measures.two_costs`.  :func:`ratio_bound`
is not in the paper: the bound of Camp (TMLR 2025) for monotone likelihood ratios between groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from isocost.checks import check_amount, check_base_rate, check_unit
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import Problem, UsageError
from isocost.groups import Group, beside_groups, names_of, shown_names
from isocost.measures import rates
from isocost.measures.calibration import gap_equal_width, levels_of
from isocost.measures.feasibility import fitted_groups
from isocost.measures.two_costs import (
    SLACK,
    CostComparison,
    ImpossibilityBound,
    Incompatible,
    both_costs,
    check_base_rates,
    incompatible,
)
from isocost.question import Question, asks
from isocost.result import Printed, Record, Result
from isocost.tables import (
    columns_from,
    frame_of,
    number_text,
)
from isocost.tallies import Tally

USUAL = ("fpr", "fnr", "weighted:1,1")
"""Costs that are compared in pairs, besides the one asked for."""

LEAST_SHOWN = 5e-5
"""Smaller differences are shown as none."""

PAIRS = (
    "Two costs, for calibrated scores that are nowhere better than these: whether both can be "
    "equal, and how far groups must differ in one of them."
)


@dataclass(frozen=True)
class Bound:
    """The same bound twice: with the best constant, and with the paper's."""

    sharp: float
    paper: float


@dataclass(frozen=True)
class ErrorDrop:
    """By how much each error rate can fall while the cost does not; see :func:`drop_of`."""

    generalized_fpr: Bound
    generalized_fnr: Bound


@dataclass(frozen=True)
class RateRange:
    """The lowest and highest value of each error rate."""

    generalized_fpr: tuple[float, float]
    generalized_fnr: tuple[float, float]


def linearity_residual(base_rate: float, generalized_fpr: float, generalized_fnr: float) -> float:
    """How far a group is from its calibrated line, mu c_fn - (1-mu) c_fp.

    It equals mu - E[h] for any scores whatever, because E[(1-h) y] - E[h (1-y)] = E[y] - E[h].
    Its absolute value is a lower bound of the calibration gap that needs no binning.

    Examples
    --------
    >>> round(linearity_residual(0.3936, 0.3600, 0.5263), 4)  # mean score 0.4047
    -0.0112
    """
    mu = check_base_rate(base_rate)
    c_fp = check_unit("generalized_fpr", generalized_fpr)
    c_fn = check_unit("generalized_fnr", generalized_fnr)
    return mu * c_fn - (1.0 - mu) * c_fp


def linearity_bound(gap: float) -> Bound:
    """The largest |residual| of scores with this calibration gap: the gap itself.

    The gap is a mean of absolute values and the residual the mean of the same values, so
    |residual| <= gap, with equality when every level errs to the same side.  The paper's
    lemma has 2 gap.

    Examples
    --------
    >>> linearity_bound(0.02)
    Bound(sharp=0.02, paper=0.04)
    """
    gap = check_amount("gap", gap)
    return Bound(gap, 2.0 * gap)


def drop_of(a: float, b: float, mu: float, gap: float) -> ErrorDrop:
    """By how much other scores can have a lower error rate without a lower cost a c_fp + b c_fn.

    Let h and h' be scores of one group, both with a calibration gap of at most ``gap``, and let
    h' cost at least as much as h.  Then, with T the trivial cost,

        c_fp(h') >= c_fp(h) - 2 gap b / T       and       c_fn(h') >= c_fn(h) - 2 gap a / T.

    So for calibrated scores a lower cost and lower error rates are the same thing.  The worst
    costs are "fnr" for c_fp, 2 gap / (1-mu), and "fpr" for c_fn, 2 gap / mu.  The paper's lemma
    has 4 in place of 2, for every cost.

    Examples
    --------
    >>> drop_of(0.0, 1.0, 0.5, 0.1).generalized_fpr
    Bound(sharp=0.4, paper=0.8)
    >>> drop_of(1.0, 0.0, 0.5, 0.1).generalized_fpr  # this rate is the cost itself
    Bound(sharp=0.0, paper=0.8)
    """
    trivial = a * mu + b * (1.0 - mu)
    return ErrorDrop(
        Bound(2.0 * gap * b / trivial, 4.0 * gap / (1.0 - mu)),
        Bound(2.0 * gap * a / trivial, 4.0 * gap / mu),
    )


def range_at(value: float, a: float, b: float, mu: float, gap: float) -> RateRange:
    """The error rates that scores with this cost and at most this calibration gap can have.

    c_fp lies within gap b / T of mu g / T, and c_fn within gap a / T of (1-mu) g / T, where T is
    the trivial cost; neither leaves [0, 1].  The lower ends hold for every cost of at least
    ``value``, the upper ends for every cost of at most ``value``.

    Examples
    --------
    >>> range_at(0.25, 0.0, 1.0, 0.5, 0.0625)
    RateRange(generalized_fpr=(0.125, 0.375), generalized_fnr=(0.25, 0.25))
    """
    trivial = a * mu + b * (1.0 - mu)
    # Each limit of a rate, 0 or 1, is a limit of the residual.
    low, high = -gap, gap
    if b > 0:
        low, high = max(low, (mu * value - trivial) / b), min(high, mu * value / b)
    if a > 0:
        low = max(low, -(1.0 - mu) * value / a)
        high = min(high, (trivial - (1.0 - mu) * value) / a)
    largest = a * min(1.0, (mu + gap) / (1.0 - mu)) + b * min(1.0, (1.0 - mu + gap) / mu)
    if value > largest * (1.0 + SLACK):
        rule = f"must be a cost that scores with a calibration gap of {gap:g} can have"
        step = f"use a value of at most {largest:.6g}, or a larger gap"
        raise UsageError(Problem("value", rule, repr(value), step))
    # At the largest cost there is one residual left, and rounding may swap its two limits.
    low, high = min(low, high), max(low, high)
    fp = [_clip((mu * value - b * r) / trivial) for r in (high, low)]
    fn = [_clip(((1.0 - mu) * value + a * r) / trivial) for r in (low, high)]
    return RateRange((fp[0], fp[1]), (fn[0], fn[1]))


def _clip(rate: float) -> float:
    return min(1.0, max(0.0, rate))


@dataclass(frozen=True)
class RatioBound(Record):
    """How far apart error rates of decisions are, if the likelihood ratio of groups is monotone.

    It is the ratio of the densities of scores in the two groups, not that of positives and
    negatives, which rises for all calibrated scores.

    Attributes
    ----------
    lower, higher : Group
        The groups with the lowest and the highest base rate.
    fnr : float
        mu_higher / mu_lower: the false-negative rate of the lower group is at least this many
        times that of the higher one ...
    fpr : float
        (1 - mu_lower) / (1 - mu_higher): ... or the false-positive rate of the higher group is at
        least this many times that of the lower one.
    odds : float
        The ratio of the odds of the base rates, which is the product of the two ratios of
        generalized rates for all calibrated scores, whether or not that likelihood ratio is
        monotone.
    """

    lower: Group
    higher: Group
    fnr: float
    fpr: float
    odds: float

    @property
    def sentence(self) -> str:
        """The bound in words, with {lower} and {higher} in place of the groups."""
        if self.odds == 1.0:
            return "All base rates are equal: nothing keeps calibrated error rates apart."
        return (
            "At every threshold, calibrated scores with these base rates and a monotone "
            "likelihood ratio between the two groups have a false-negative rate for {lower} of at "
            f"least {self.fnr:.4g} times that for {{higher}}, or a false-positive rate for "
            f"{{higher}} of at least {self.fpr:.4g} times that for {{lower}}. Without the "
            "assumption, the two ratios of generalized rates still have the product "
            f"{self.odds:.4g}."
        )

    def __str__(self) -> str:
        names = shown_names([self.lower, self.higher])
        return self.sentence.format(lower=names[self.lower], higher=names[self.higher])


def ratio_bound(base_rates: Mapping[Group, float] | Iterable[float]) -> RatioBound:
    """The disparity of calibrated scores if the likelihood ratio between groups is monotone.

    Let f and f' be the densities of calibrated scores in two groups with base rates mu < mu', and
    let f'/f not fall.  Selected are scores of at least t.  If f'(t) <= f(t), then f' <= f at
    every score below t; the positives who are missed have the density f(h) h / mu, so

        FNR / FNR' >= mu' / mu;

    otherwise f' >= f at every score from t on, and FPR' / FPR >= (1-mu) / (1-mu').  One of the
    two holds at every threshold, and for every mu and mu' there are scores for which it is an
    equality.  This is the bound of Camp (TMLR 2025); the proof is ours.

    Examples
    --------
    >>> result = ratio_bound({"a": 0.25, "b": 0.5})
    >>> result.fnr, result.fpr, round(result.odds, 4)
    (2.0, 1.5, 3.0)
    """
    shares = check_base_rates(base_rates)
    lower, higher = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    low, high = shares[lower], shares[higher]
    fnr, fpr = high / low, (1.0 - low) / (1.0 - high)
    return RatioBound(lower, higher, fnr, fpr, fnr * fpr)


@dataclass(frozen=True)
class GroupBounds(Record):
    """What is proved about one group.

    Attributes
    ----------
    base_rate, generalized_fpr, generalized_fnr : float
        The group's rates.
    residual : float
        mu c_fn - (1-mu) c_fp = mu - E[h], the distance from the calibrated line.
    gap : float
        The calibration gap in ten bins of equal width: an estimate, unlike ``gap_at_least``.
    linearity : Bound
        The largest |residual| that such a gap allows.
    cost, trivial_cost : float
        The present cost, and the highest of calibrated scores.
    drop : ErrorDrop
        By how much scores with no larger gap can have lower error rates at no lower cost.
    at_cost : RateRange
        The error rates that scores with the present cost and no larger gap can have.
    """

    also = ("gap_at_least",)

    base_rate: float
    generalized_fpr: float
    generalized_fnr: float
    residual: float
    gap: float
    linearity: Bound
    cost: float
    trivial_cost: float
    drop: ErrorDrop
    at_cost: RateRange

    @property
    def gap_at_least(self) -> float:
        """|mu - E[h]|: the true calibration gap of these rows is no smaller."""
        return abs(self.residual)


@dataclass(frozen=True, repr=False)
class Bounds(Result):
    """What the paper's theorems say about a tally.

    Attributes
    ----------
    cost : Cost
        What an error costs.
    groups : {group: GroupBounds}
        The statements about each group.
    impossibility : ImpossibilityBound or None
        Whether a second cost can be equal too, if one was given.
    pairs : tuple of Incompatible
        The usual costs in pairs: which cannot both be equal, and by how much at least.
    ratio : RatioBound
        How far apart error rates are at least, if the likelihood ratio between groups is monotone.
    """

    format = "isocost-bounds"

    cost: Cost
    groups: dict[Group, GroupBounds]
    pairs: tuple[Incompatible, ...]
    ratio: RatioBound
    impossibility: ImpossibilityBound | None = None

    @property
    def comparison(self) -> CostComparison | None:
        """The two costs on the calibrated lines, if a second one was given."""
        return None if self.impossibility is None else self.impossibility.comparison

    def to_frame(self, *, backend: str | None = None) -> Any:
        """A row for each group, in the library of the data; see :meth:`isocost.Audit.to_frame`."""
        numbers = ("base_rate", "generalized_fpr", "generalized_fnr", "residual", "gap", "cost")
        rows = [
            {name: getattr(each, name) for name in (*numbers, "trivial_cost")}
            | {
                f"{rate}_{end}": value
                for rate in ("generalized_fpr", "generalized_fnr")
                for end, value in zip(("low", "high"), getattr(each.at_cost, rate), strict=True)
            }
            for each in self.groups.values()
        ]
        return frame_of(beside_groups(list(self.groups), columns_from(rows)), backend)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The printed table, as header and rows."""
        header = ["group", "base rate less mean score", "gap", "cost", "trivial cost"]
        header += ["FPR now", "at this cost", "FNR now", "at this cost"]
        rows = []
        for group, name in names_of(self.groups).items():
            each = self.groups[group]
            numbers = [f"{each.residual:+.4f}"]
            numbers += [number_text(x) for x in (each.gap, each.cost, each.trivial_cost)]
            for rate in ("generalized_fpr", "generalized_fnr"):
                low, high = getattr(each.at_cost, rate)
                span = "-" if math.isnan(low) else f"{low:.4f} to {high:.4f}"
                numbers += [number_text(getattr(each, rate)), span]
            rows.append([name, *numbers])
        return header, rows

    def headline(self) -> str:
        """What was proved, in a line."""
        return f"What the theorems prove, cost {self.cost}"

    def printed(self) -> list[Printed]:
        """The statements about groups, and the pairs of costs."""
        return [(self.headline(), *self.table()), (PAIRS, *self.pair_table())]

    def pair_table(self) -> tuple[list[str], list[list[str]]]:
        """The pairs of costs, as header and rows."""
        header = ["costs", "both equal", "one differs by at least", "by the paper's constants"]
        rows = []
        for pair in self.pairs:
            both = pair.comparison
            equal = pair.least <= LEAST_SHOWN
            possible = "possible" if equal else "impossible" if both.distinct else "out of reach"
            least = ["-", "-"] if equal else [f"{pair.least:.4f}", f"{pair.paper:.1e}"]
            rows.append([f"{both.cost} and {both.other}", possible, *least])
        return header, rows

    def summary(self) -> list[str]:
        """The statements in words."""
        lines = [
            "Whatever the bins, a group's calibration gap is at least the distance between its "
            "base rate and its mean score.",
            f"Scores that cost a group as much ({self.cost}), with no larger gap, have generalized "
            "rates in the ranges shown: a lower cost means lower error rates.",
        ]
        if self.impossibility is not None:
            lines.append(str(self.impossibility))
        return [*lines, str(self.ratio)]


@asks("cost", "other")
def bounds(
    tally: Tally,
    question: Question,
    other: CostLike | None = None,
    *,
    cost_difference: float = 0.0,
    gap: float | None = None,
) -> Bounds:
    """What the paper's theorems prove about a tally, with the best constants.

    Parameters
    ----------
    tally : Tally, or data
        At least two groups with positives and negatives.  A group of one label has NaN where a
        rate is undefined, and is not compared with the others.
    cost : Cost or str
        What an error costs.
    other : Cost or str, optional
        A second cost: could it be equal too?
    cost_difference : float
        How far the two costs may then differ between groups.
    gap : float, optional
        How large the calibration gaps may then be; by default the largest there is now.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Notes
    -----
    The residual, the rates and the costs are exact; the gap is the ten-bin estimate, which
    pooling can make smaller than the gap level by level.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> result = ic.bounds(compas(), "fpr", "fnr")
    >>> round(result.groups["Caucasian"].gap_at_least, 4)
    0.0111
    >>> result.impossibility.excluded
    ('African-American', 'Caucasian')
    """
    cost = question.cost
    cost_difference = check_amount("cost_difference", cost_difference)
    gap = None if gap is None else check_amount("gap", gap)
    compared = fitted_groups(tally)
    some, groups = tally.select(compared), _each_group(tally, cost)
    # A cost per group has no hash.
    usual = [cost, *(one for one in map(as_cost, USUAL) if one != cost)]
    among = [one.among(compared) for one in usual]
    pairs = tuple(incompatible(some, *pair) for pair in combinations(among, 2))
    ratio = ratio_bound({group: groups[group].base_rate for group in compared})
    if other is None:
        return Bounds(cost, groups, pairs, ratio)
    allowed = max(groups[group].gap for group in compared) if gap is None else gap
    both = both_costs(tally, cost, other, cost_difference, allowed)
    return Bounds(cost, groups, pairs, ratio, both)


def _each_group(tally: Tally, cost: Cost) -> dict[Group, GroupBounds]:
    sums, groups, lacks = tally.totals, tally.groups, rates.lacking(tally)
    mu, mean = rates.base_rate(sums), rates.mean_score(sums)
    c_fp, c_fn = rates.generalized_fpr(sums), rates.generalized_fnr(sums)
    costs, trivial = rates.group_costs(sums, groups, cost), rates.trivial_costs(sums, groups, cost)
    a, b = cost.coefficients(groups, mu)
    each = {}
    for i, group in enumerate(groups):
        share, fp, fn = float(mu[i]), float(c_fp[i]), float(c_fn[i])
        residual = share - float(mean[i])
        # The binned gap is never below |residual|, but for rounding.
        gap = max(gap_equal_width(levels_of(tally, i)), abs(residual))
        numbers = float(a[i]), float(b[i]), share, gap
        unknown = (math.nan, math.nan)
        drop, at_cost = ErrorDrop(Bound(*unknown), Bound(*unknown)), RateRange(unknown, unknown)
        if group not in lacks:
            drop, at_cost = drop_of(*numbers), range_at(float(costs[i]), *numbers)
        each[group] = GroupBounds(
            base_rate=share,
            generalized_fpr=fp,
            generalized_fnr=fn,
            residual=residual,
            gap=gap,
            linearity=linearity_bound(gap),
            cost=float(costs[i]),
            trivial_cost=float(trivial[i]),
            drop=drop,
            at_cost=at_cost,
        )
    return each
