"""The paper's theorems, applied to a tally: what its numbers prove about each other.

For one group with base rate mu, generalized rates c_fp and c_fn, and a cost g = a c_fp + b c_fn:

    residual   r  = mu c_fn - (1-mu) c_fp = mu - E[h]       always
    gap           >= |r|                                    so calibrated scores lie on r = 0
    trivial cost  T = a mu + b (1-mu)                       the cost of the score mu for everybody
    c_fp = (mu g - b r) / T,   c_fn = ((1-mu) g + a r) / T  two linear equations, solved

The paper's supplement has the same statements with constants twice as large.

Two costs at once.  On calibrated scores c_fp = mu/(1-mu) c_fn, so a cost is one number times c_fn:

    g_t = k_t c_fn,t        k_t = a_t mu_t/(1-mu_t) + b_t > 0.

Two costs can both be equal for all groups, with scores that are not perfect, exactly when the
vectors (k_t) and (k'_t) are proportional.  Only costs for which they are not are *distinct*.
The paper calls costs distinct when their constraints differ as functions of all four error
rates; with that meaning its theorem fails, as "weighted:1,3" and "weighted:3,1" show.
Calibration and two distinct costs are four linear equations in the four error rates of
two groups, solved by perfect scores alone.  Met within a tolerance, they bound the error rates.
Among three groups or more all equations hold at once: a linear program, not the best of the pairs.

Two results are not in the paper.  :func:`incompatible` gives the least difference of one of two
costs.  :func:`ratio_bound` is the bound of Camp (TMLR 2025) for monotone likelihood ratios.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from isocost.checks import check_amount, check_base_rate
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import Problem, UsageError
from isocost.groups import Group, as_group, beside_groups, names_of, shown_names
from isocost.measures import rates
from isocost.measures.calibration import gap_equal_width, levels_of
from isocost.measures.feasibility import SLACK, fitted_groups
from isocost.measures.rates import by_group
from isocost.question import Question, asks
from isocost.result import Printed, Record, Result
from isocost.tables import columns_from, frame_of, number_text, round_up
from isocost.tallies import Tally
from isocost.typing import Floats

USUAL = ("fpr", "fnr", "weighted:1,1")
"""Costs that are compared in pairs, besides the one asked for."""

BaseRates: TypeAlias = Mapping[Group, float] | Iterable[float]
"""Strictly between 0 and 1, for two groups or more; in a sequence the groups are 0, 1, ..."""

LEAST_SHOWN = 5e-5
"""Smaller differences are shown as none."""

PAIRS = (
    "Two costs, for calibrated scores that are nowhere better than these: whether both can be "
    "equal, and how far groups must differ in one of them."
)


@dataclass(frozen=True)
class CostComparison(Record):
    """Two costs on the calibrated lines of the groups, side by side.

    Attributes
    ----------
    cost, other : Cost
        The costs.
    base_rates : {group: float}
        The share of positives.
    k, other_k : {group: float}
        The cost of calibrated scores per unit of c_fn, a mu/(1-mu) + b.

    Examples
    --------
    >>> print(compare_costs("weighted:1,3", "weighted:3,1", {"a": 0.2, "b": 0.5}))
    weighted:1,3 and weighted:3,1 are not distinct: calibrated scores that make one of them \
equal for a and b make both equal.
    Of calibrated scores a weighted cost is (fp + fn)(mu - E[h^2]): the ratio fp : fn cancels, \
only the sum matters.
    """

    also = ("distinct",)

    cost: Cost
    other: Cost
    base_rates: dict[Group, float]
    k: dict[Group, float]
    other_k: dict[Group, float]

    @property
    def distinct(self) -> bool:
        """True if only perfect scores can be calibrated and have both costs equal."""
        return self.differs(range(len(self.k)))

    def differs(self, some: Sequence[int]) -> bool:
        """True if k and k' of some groups are more than rounding from proportional."""
        k, other_k = (np.array(list(of.values()))[some] for of in (self.k, self.other_k))
        # Each in its own unit first: costs may be in cents or in billions.
        ratios = (other_k / other_k.max()) / (k / k.max())
        return bool(ratios.max() > ratios.min() * (1.0 + SLACK))

    def constraints(self, first: int, second: int) -> Floats:
        """The paper's matrix A of two groups; see :func:`impossibility_bound`."""
        groups, mu = tuple(self.base_rates), np.array(list(self.base_rates.values()))
        odds = mu / (1.0 - mu)
        rows = [[1.0, -odds[first], 0.0, 0.0], [0.0, 0.0, 1.0, -odds[second]]]
        for cost in (self.cost, self.other):
            a, b = cost.coefficients(groups, mu)
            rows.append([a[first], b[first], -a[second], -b[second]])
        return np.array(rows)

    def __str__(self) -> str:
        text = (
            "{} and {} are distinct: no calibrated scores but perfect ones make both equal for {}."
            if self.distinct
            else "{} and {} are not distinct: calibrated scores that make one of them equal for {} "
            "make both equal."
        ).format(self.cost, self.other, _joined(names_of(self.k).values()))
        if self.cost.by_base_rate or self.other.by_base_rate:
            text += (
                "\nOf calibrated scores a weighted cost is (fp + fn)(mu - E[h^2]): the ratio "
                "fp : fn cancels, only the sum matters."
            )
        return text


def compare_costs(cost: CostLike, other: CostLike, base_rates: BaseRates) -> CostComparison:
    """Put two costs side by side on the calibrated lines of the groups."""
    cost, other, shares = as_cost(cost), as_cost(other), _checked(base_rates)
    groups, mu = tuple(shares), np.array(list(shares.values()))
    per_fnr = []
    for each in (cost, other):
        a, b = each.coefficients(groups, mu)
        per_fnr.append(by_group(groups, a * mu / (1.0 - mu) + b))
    return CostComparison(cost, other, shares, *per_fnr)


def distinct(cost: CostLike, other: CostLike, base_rates: BaseRates) -> bool:
    """True if two costs cannot both be equal for scores that are calibrated and not perfect.

    Then (k_t) and (k'_t) are not proportional; see :func:`compare_costs`, which also gives them.

    Examples
    --------
    >>> import isocost as ic
    >>> ic.distinct("fpr", "fnr", [0.2, 0.5])
    True
    >>> ic.distinct("fpr", "fnr", [0.5, 0.5])
    False
    >>> ic.distinct("weighted:1,3", "weighted:3,1", [0.2, 0.5])
    False
    """
    return compare_costs(cost, other, base_rates).distinct


def _checked(base_rates: Any) -> dict[Group, float]:
    """Check base rates, in whatever form they are given; return them by group."""
    if not isinstance(base_rates, Mapping):
        listed = isinstance(base_rates, Iterable) and not isinstance(base_rates, str)
        base_rates = dict(enumerate(base_rates)) if listed else {}
    if len(base_rates) < 2:
        rule, got = "must be of at least two groups, to be compared", f"{len(base_rates)} of them"
        step = 'use {"a": 0.2, "b": 0.5}, or a sequence of numbers'
        raise UsageError(Problem("base_rates", rule, got, step))
    return {
        as_group(group): check_base_rate(mu, f"base rate of group {group!r}")
        for group, mu in base_rates.items()
    }


def _joined(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


@dataclass(frozen=True)
class ImpossibilityBound(Record):
    """Bounds of error rates when two costs are nearly equal and scores nearly calibrated.

    Attributes
    ----------
    comparison : CostComparison
        The costs, the base rates, and whether the costs are distinct.
    cost_difference, gap : float
        Largest allowed difference of each cost between groups, and calibration gap.
    generalized_fpr, generalized_fnr : {group: float}
        The bound of each rate; infinite if the costs are not distinct.
    norm : float
        ||A^-1|| max(gap/(1-mu_t), cost_difference), coarser than ``tight``.
    present : {group: (float, float)}
        The error rates (c_fp, c_fn) there are now; empty when only base rates were given.
    """

    also = ("tight", "excluded")

    comparison: CostComparison
    cost_difference: float
    gap: float
    generalized_fpr: dict[Group, float]
    generalized_fnr: dict[Group, float]
    norm: float
    present: dict[Group, tuple[float, float]]

    @property
    def tight(self) -> float:
        """The bound of every error rate of every group: the largest of them."""
        return max(*self.generalized_fpr.values(), *self.generalized_fnr.values())

    @property
    def excluded(self) -> tuple[Group, ...]:
        """The groups whose present error rates are too high for it."""
        return tuple(
            group
            for group, (fp, fn) in self.present.items()
            if fp > self.generalized_fpr[group] + SLACK or fn > self.generalized_fnr[group] + SLACK
        )

    def __str__(self) -> str:
        if not self.comparison.distinct:
            return f"{self.comparison}\nSo this bounds no error rate."
        cost, other = self.comparison.cost, self.comparison.other
        names = names_of(self.generalized_fpr)
        within = f" within {self.cost_difference:g}" if self.cost_difference else ""
        gaps = f"calibration gaps of at most {self.gap:.4g}" if self.gap else "calibrated scores"
        lines = [
            f"With {gaps}, {cost} and {other} can both be equal{within} for "
            f"{_joined(names.values())} only if"
        ]
        for group, name in names.items():
            most = self.generalized_fpr[group], self.generalized_fnr[group]
            now = self.present.get(group)
            was = ["", ""] if now is None else [f" (now {rate:.4f})" for rate in now]
            fp, fn = (f"at most {round_up(x)}" if x < 1.0 else "of any size" for x in most)
            lines.append(f"  {name}: generalized FPR {fp}{was[0]}, FNR {fn}{was[1]}")
        if self.excluded:
            lines.append(
                f"The scores of {_joined(names[group] for group in self.excluded)} have higher "
                "error rates: only scores with lower ones can do it."
            )
        elif self.present:
            lines.append("The present error rates are within these bounds, which rule nothing out.")
        return "\n".join(lines)


def impossibility_bound(
    cost: CostLike,
    other: CostLike,
    base_rates: BaseRates,
    cost_difference: float = 0.0,
    gap: float = 0.0,
) -> ImpossibilityBound:
    """Bound the error rates of scores that nearly satisfy calibration and two equal costs.

    For two groups let q = (c_fp,1, c_fn,1, c_fp,2, c_fn,2) and

        A = [1, -mu_1/(1-mu_1), 0, 0]          |A q| <= v = [gap/(1-mu_1)]
            [0, 0, 1, -mu_2/(1-mu_2)]                       [gap/(1-mu_2)]
            [a_1, b_1, -a_2, -b_2]                          [cost_difference]
            [a'_1, b'_1, -a'_2, -b'_2]                      [cost_difference]

    Then q_i <= sum over j of |A^-1|_ij v_j, which some scores attain unless one of the other
    rates would be negative there.  det A = 0 exactly when the costs are not distinct; then
    nothing is bounded.  The norm ||A^-1||_inf max v is given beside it; the paper has a larger
    constant in place of ||A^-1||_inf, and 2 gap in place of gap.

    With more than two groups each rate is maximized under the constraints of all groups at once,
    by a linear program.  Only ``norm`` is then the best of the pairs.

    Parameters
    ----------
    cost, other, base_rates
        As for :func:`compare_costs`.
    cost_difference : float
        How far each of the two costs may differ between any two groups.
    gap : float
        How large the calibration gap of any group may be.

    Examples
    --------
    >>> bound = impossibility_bound("fpr", "fnr", {"a": 0.2, "b": 0.5}, 0.01, 0.01)
    >>> round(bound.tight, 4), round(bound.norm, 4)
    (0.07, 0.1067)
    """
    comparison = compare_costs(cost, other, base_rates)
    difference = check_amount("cost_difference", cost_difference)
    gap = check_amount("gap", gap)
    groups, mu = tuple(comparison.base_rates), np.array(list(comparison.base_rates.values()))
    best = np.full((len(groups), 3), np.inf)
    for pair in map(list, combinations(range(len(groups)), 2)):
        if not comparison.differs(pair):
            continue
        A = comparison.constraints(*pair)
        # Rows may differ by any power of ten; the inverse is found where they do not.
        size = np.abs(A).max(axis=1)
        inverse = np.abs(np.linalg.inv(A / size[:, None])) / size
        allowed = np.array([*(gap / (1.0 - mu[pair])), difference, difference])
        norm = np.full(2, inverse.sum(axis=1).max() * allowed.max())
        own = np.column_stack([(inverse @ allowed).reshape(2, 2), norm])
        best[pair] = np.minimum(best[pair], own)
    if len(groups) > 2 and np.isfinite(best).any():
        best[:, :2] = np.minimum(best[:, :2], _joint_bounds(comparison, difference, gap))
    fp, fn, norm = best.T
    return ImpossibilityBound(
        comparison=comparison,
        cost_difference=difference,
        gap=gap,
        generalized_fpr=by_group(groups, fp),
        generalized_fnr=by_group(groups, fn),
        norm=float(norm.max()),
        present={},
    )


def _joint_bounds(comparison: CostComparison, difference: float, gap: float) -> Floats:
    """For each group the largest c_fp and c_fn that meet the constraints of all groups."""
    from scipy.optimize import linprog

    groups, mu = tuple(comparison.base_rates), np.array(list(comparison.base_rates.values()))
    n, none = len(groups), np.zeros((len(groups), 2))
    # The variables are c_fp and c_fn of each group, and the lowest of each cost.
    line = np.hstack([np.eye(n), -np.diag(mu / (1.0 - mu)), none])
    rows, limits = [line, -line], [np.tile(gap / (1.0 - mu), 2)]
    for i, cost in enumerate((comparison.cost, comparison.other)):
        a, b = cost.coefficients(groups, mu)
        size = max(a.max(), b.max())  # costs may be in cents or in billions
        above = np.hstack([np.diag(a / size), np.diag(b / size), none])
        above[:, 2 * n + i] = -1.0
        rows += [above, -above]
        limits += [np.full(n, difference / size), np.zeros(n)]
    A, v = np.vstack(rows), np.concatenate(limits)
    largest = []
    for rate in range(2 * n):
        aim = np.zeros(2 * n + 2)
        aim[rate] = -1.0
        solution = linprog(aim, A, v, method="highs")
        largest.append(-float(solution.fun) if solution.success else np.inf)
    return np.array(largest).reshape(2, n).T


@dataclass(frozen=True)
class Incompatible(Record):
    """Two costs, and by how much one of them must differ between the groups.

    Attributes
    ----------
    comparison : CostComparison
        The costs, and whether they are distinct.
    least : float
        The smallest number within which both costs can be brought: withholding scores can reach
        it, and no calibrated scores with at least the present error rates can fall below it.
    """

    comparison: CostComparison
    least: float


def incompatible(tally: Tally, cost: CostLike, other: CostLike) -> Incompatible:
    """The least difference of one of two costs, if no score gets better.

    Calibrated scores with no lower errors lie between the present point (c_fp, c_fn) of a group
    and its trivial one (mu, 1-mu), a share x_t of the way; withholding the share x_t gets there.
    Both costs are linear in x, so the least of max(difference, difference') is a linear program,
    for any number of groups at once.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> result = incompatible(compas(), "fpr", "fnr")
    >>> round(result.least, 4)
    0.0886
    """
    from scipy.optimize import linprog

    sums, groups = tally.totals, tally.groups
    mu, c_fp, c_fn = (
        f(sums) for f in (rates.base_rate, rates.generalized_fpr, rates.generalized_fnr)
    )
    comparison = compare_costs(cost, other, by_group(groups, mu))
    n, rows, limits = len(groups), [], []
    coefficients = [each.coefficients(groups, mu) for each in (comparison.cost, comparison.other)]
    size = float(np.max(coefficients))  # costs may be in cents or in billions
    # The variables are the share x of each group, the lowest of each cost, and the difference.
    for i, (a, b) in enumerate(coefficients):
        now, trivial = (a * c_fp + b * c_fn) / size, (a * mu + b * (1.0 - mu)) / size
        at_least = np.hstack([np.diag(now - trivial), np.zeros((n, 3))])
        at_least[:, n + i] = 1.0
        at_most = -at_least
        at_most[:, n + 2] = -1.0
        rows += [at_least, at_most]
        limits += [now, -now]
    aim = np.append(np.zeros(n + 2), 1.0)
    solution = linprog(
        aim,
        np.vstack(rows),
        np.concatenate(limits),
        bounds=[(0.0, 1.0)] * n + [(None, None)] * 2 + [(0.0, None)],
        method="highs",
    )
    return Incompatible(comparison, size * max(0.0, float(solution.fun)))


@dataclass(frozen=True)
class Bound:
    """A bound with the best constant, and with the paper's."""

    sharp: float
    paper: float


@dataclass(frozen=True)
class ErrorDrop:
    """Largest fall of each error rate while the cost does not fall; see :func:`drop_of`."""

    generalized_fpr: Bound
    generalized_fnr: Bound


@dataclass(frozen=True)
class RateRange:
    """The lowest and highest value of each error rate."""

    generalized_fpr: tuple[float, float]
    generalized_fnr: tuple[float, float]


def drop_of(a: float, b: float, mu: float, gap: float) -> ErrorDrop:
    """The largest fall of each error rate without a lower cost a c_fp + b c_fn.

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
    fp = np.clip([(mu * value - b * r) / trivial for r in (high, low)], 0.0, 1.0).tolist()
    fn = np.clip([((1.0 - mu) * value + a * r) / trivial for r in (low, high)], 0.0, 1.0).tolist()
    return RateRange((fp[0], fp[1]), (fn[0], fn[1]))


@dataclass(frozen=True)
class RatioBound(Record):
    """Least ratios of error rates of decisions, if the likelihood ratio of groups is monotone.

    It is the ratio of the densities of scores in the two groups, not that of positives and
    negatives, which rises for all calibrated scores.

    Attributes
    ----------
    lower, higher : Group
        The groups with the lowest and the highest base rate.
    fnr, fpr : float
        mu_higher / mu_lower and (1 - mu_lower) / (1 - mu_higher): the false-negative rate of the
        lower group, or the false-positive rate of the higher one, is at least this many times that
        of the other group.
    odds : float
        The ratio of the odds of the base rates: for all calibrated scores the product of the two
        ratios of generalized rates, whether or not that likelihood ratio is monotone.
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


def ratio_bound(base_rates: BaseRates) -> RatioBound:
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
    shares = _checked(base_rates)
    lower, higher = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    low, high = shares[lower], shares[higher]
    fnr, fpr = high / low, (1.0 - low) / (1.0 - high)
    return RatioBound(lower, higher, fnr, fpr, fnr * fpr)


@dataclass(frozen=True)
class GroupBounds(Record):
    """Statements proved about one group.

    Attributes
    ----------
    base_rate, generalized_fpr, generalized_fnr : float
        The group's rates.
    residual : float
        mu c_fn - (1-mu) c_fp = mu - E[h], the distance from the calibrated line.
    gap : float
        The calibration gap in ten bins of equal width: an estimate, unlike ``gap_at_least``.
    linearity : Bound
        The largest |residual| that such a gap allows: the gap itself.  The residual is the mean of
        the values whose sizes the gap averages, so scores that all err to one side attain it.
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
    """The paper's theorems about a tally.

    Attributes
    ----------
    cost : Cost
        What an error costs.
    groups : {group: GroupBounds}
        The statements about each group.
    impossibility : ImpossibilityBound or None
        Whether a second cost can be equal too, if one was given, with the present error rates; no
        bound is then above 1 unless it is infinite.
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
        """A line that says what was proved."""
        return f"What the theorems prove, cost {self.cost}"

    def printed(self) -> list[Printed]:
        """The statements about groups, and the pairs of costs."""
        return [(self.headline(), *self.table()), (PAIRS, *self.pair_table())]

    def pair_table(self) -> tuple[list[str], list[list[str]]]:
        """The pairs of costs, as header and rows."""
        header = ["costs", "both equal", "one differs by at least"]
        rows = []
        for pair in self.pairs:
            both = pair.comparison
            equal = pair.least <= LEAST_SHOWN
            possible = "possible" if equal else "impossible" if both.distinct else "out of reach"
            least = "-" if equal else f"{pair.least:.4f}"
            rows.append([f"{both.cost} and {both.other}", possible, least])
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
    """Apply the paper's theorems to a tally, with the best constants.

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
    compared = fitted_groups(tally, question.min_group)
    numbers = _each_group(tally, cost)
    # A cost per group has no hash.
    usual = [cost, *(one for one in map(as_cost, USUAL) if one != cost)]
    among, some = [one.among(compared) for one in usual], tally.select(compared)
    pairs = tuple(incompatible(some, *pair) for pair in combinations(among, 2))
    ratio = ratio_bound({group: numbers[group].base_rate for group in compared})
    if other is None:
        return Bounds(cost, numbers, pairs, ratio)
    if gap is None:
        gap = max(numbers[group].gap for group in compared)
    known = fitted_groups(tally)
    base_rates = {group: numbers[group].base_rate for group in known}
    both = (cost.among(known), as_cost(other).among(known))
    bound = impossibility_bound(*both, base_rates, cost_difference, gap)
    most = 1.0 if bound.comparison.distinct else math.inf
    bound = replace(
        bound,
        generalized_fpr={group: min(x, most) for group, x in bound.generalized_fpr.items()},
        generalized_fnr={group: min(x, most) for group, x in bound.generalized_fnr.items()},
        present={g: (numbers[g].generalized_fpr, numbers[g].generalized_fnr) for g in known},
    )
    return Bounds(cost, numbers, pairs, ratio, bound)


def _each_group(tally: Tally, cost: Cost) -> dict[Group, GroupBounds]:
    """The statements about each group; NaN where a group of one label has no rate."""
    sums, groups, lacks = tally.totals, tally.groups, rates.lacking(tally)
    mu = rates.base_rate(sums)
    columns = [mu, rates.generalized_fpr(sums), rates.generalized_fnr(sums)]
    columns += [mu - rates.mean_score(sums), *cost.coefficients(groups, mu)]
    columns += [f(sums, groups, cost) for f in (rates.group_costs, rates.trivial_costs)]
    each = {}
    for i, group in enumerate(groups):
        share, fp, fn, residual, a, b, own, trivial = (float(column[i]) for column in columns)
        # The binned gap is never below |residual|, but for rounding.
        gap = max(gap_equal_width(levels_of(tally, i)), abs(residual))
        unknown = (math.nan, math.nan)
        drop, at_cost = ErrorDrop(Bound(*unknown), Bound(*unknown)), RateRange(unknown, unknown)
        if group not in lacks:
            drop, at_cost = drop_of(a, b, share, gap), range_at(own, a, b, share, gap)
        linearity = Bound(gap, 2.0 * gap)
        each[group] = GroupBounds(
            share, fp, fn, residual, gap, linearity, own, trivial, drop, at_cost
        )
    return each
