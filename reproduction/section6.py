"""The sentences of Section 6 that can be true or false, judged on all experiments together.

Most are general: "necessarily", "unique", "no lower-error solution".  One example refutes such a
sentence, and no number of experiments proves it, so each gets a verdict in words with what it
rests on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from isocost.costs import CostLike
from isocost.errors import Problem, UsageError
from isocost.measures.bounds import BaseRates, CostComparison, compare_costs
from reproduction.beyond import RepairSummary
from reproduction.claims import UNDECIDED
from reproduction.rerun import Reproduction, StudyResult
from reproduction.section5 import further_apart
from reproduction.study import Values

OTHER_RATE = {"fpr": ("fnr", "generalized_fnr"), "fnr": ("fpr", "generalized_fpr")}
"""The error rate beside the one that is made equal."""

CHANCE = 0.05
"""A correlation with a larger p-value may be chance."""


@dataclass(frozen=True)
class Judged:
    """A sentence, what was found, and the verdict."""

    sentence: str
    evidence: str
    verdict: str


def judged(done: Sequence[Reproduction]) -> list[Judged]:
    """Every sentence of Section 6, as far as these experiments bear on it."""
    results = [result for one in done for result in one.results]
    sentences = [_necessarily(results), _base_rates_cause()]
    sentences += [_amplified(results)] if len(results) >= 4 else []
    sentences += _near_trivial(results)
    return [*sentences, *_compared(results)]


def _necessarily(results: Iterable[StudyResult]) -> Judged:
    """One error rate made equal, and the difference in the other."""
    counter = trade_off("fnr", "fpr", [0.50, 0.49], [0.077, 0.42])
    seen = []
    for result in results:
        values, cost = result.study.values, result.study.experiment.cost
        if cost not in OTHER_RATE or values["feasible"] < 1:
            continue
        _, rate = OTHER_RATE[cost]
        rise = further_apart("withhold", rate)(values)
        agrees = "as" if (rise > 0) == condition(values, cost) else "unlike"
        seen.append(f"{_title(result)}: {rise:+.4f}, {agrees} the condition says")
    return Judged(
        "Equality in one error rate will necessarily increase disparity in the other.",
        "Two calibrated groups with base rates 0.50 and 0.49 and FN rates 0.077 and 0.42: equal FN "
        f"rates take the difference in FP rates from {counter.before:.3f} to {counter.after:.4f}. "
        "It increases exactly when (odds of the changed group) × (mean of the two FN rates) is "
        "above (odds of the other) × (its FN rate). Here: "
        + ("; ".join(seen) or "nothing to see")
        + ".",
        "does not hold as written; true under the condition",
    )


def condition(values: Values, cost: str) -> bool:
    """Whether theory says that equalizing a rate widens the other, from the rates as they are."""
    other, _ = OTHER_RATE[cost]
    base_rates = [values[f"original base_rate {group}"] for group in (1, 2)]
    costs = [values[f"original cost {group}"] for group in (1, 2)]
    return trade_off(cost, other, base_rates, costs).widens


def _base_rates_cause() -> Judged:
    return Judged(
        "Base rate differences are what give rise to cost disparity in the calibrated setting.",
        "Two groups with base rate 0.5, one with the scores 0.1 and 0.9, the other with 0.4 and "
        "0.6: both calibrated, FN rates 0.18 and 0.48. Scores that say less about one group "
        "suffice. Base rates do give rise to the impossibility of two equal costs.",
        "does not hold as written",
    )


def _amplified(results: Iterable[StudyResult]) -> Judged:
    """Shares to withhold against differences in base rates, where equal cost is feasible."""
    feasible = [r.study.values for r in results if r.study.values["feasible"] > 0.5]
    apart = [abs(v["original base_rate 1"] - v["original base_rate 2"]) for v in feasible]
    found = spearmanr(apart, [v["withheld"] for v in feasible])
    beyond = found.pvalue < CHANCE
    word = "holds" if found.statistic > 0 else "does not hold"
    return Judged(
        "Where feasible, the penalty of equal cost is amplified if base rates differ "
        "significantly.",
        f"Rank correlation {found.statistic:+.2f} (p = {found.pvalue:.2f}) of the difference in "
        f"base rates and the share to withhold, over the {len(feasible)} kinds of scores for which "
        "equal cost is feasible.",
        word if beyond else f"{UNDECIDED}: too few data sets",
    )


def _near_trivial(results: Iterable[StudyResult]) -> list[Judged]:
    """The cost of the group to be changed, as a share of its highest calibrated one."""
    parts: dict[bool, dict[str, float]] = {True: {}, False: {}}
    for result in results:
        values = result.study.values
        parts[values["feasible"] > 0.5][_title(result)] = values["cost of trivial"]
    if not all(parts.values()):
        return []
    told = [
        ", ".join(f"{name} {share:.0%}" for name, share in sorted(parts[which].items()))
        for which in (False, True)
    ]
    apart = min(parts[False].values()) > max(parts[True].values())
    return [
        Judged(
            "The relaxation is infeasible when the best classifiers are not far from trivial.",
            "Cost of the group to be changed as a share of its trivial cost. Infeasible (in most "
            f"splits): {told[0]}. Feasible: {told[1]}. Exactly: infeasible when the other group "
            "costs more than the trivial classifier of this one.",
            "holds" if apart else "does not hold: the two overlap",
        )
    ]


def _compared(results: Iterable[StudyResult]) -> list[Judged]:
    """What a repair without a coin shows about the algorithm, on scores where it is exact."""
    pairs: list[tuple[str, RepairSummary, RepairSummary]] = []
    for result in results:
        rows = {row.rule: row for row in result.compared}
        if not result.study.held_out and result.study.values["feasible"] == 1:
            pairs.append((_title(result), rows["withhold"], rows["coarsen"]))
    if not pairs:
        return []
    coin = "; ".join(f"{n}: {w.by_coin:.0%} and {c.by_coin:.1%}" for n, w, c in pairs)
    right = "; ".join(f"{n}: {w.accuracy:.4f} and {c.accuracy:.4f}" for n, w, c in pairs)
    better = any(c.accuracy > w.accuracy for _, w, c in pairs)
    return [
        Judged(
            "The algorithm finds the unique feasible solution.",
            "The error rates are unique, because calibrated scores lie on a line. The scores are "
            "not: coarsening has the same rates with other scores.",
            "by construction for the rates; does not hold for the scores",
        ),
        Judged(
            "It is inherently based on randomly exchanging predictions.",
            f"Share of people whose score is randomized, withholding and coarsening: {coin}.",
            "does not hold: the same costs take next to no coin",
        ),
        Judged(
            "As long as calibration is required, no lower-error solution can be achieved.",
            "Generalized rates: a theorem. Decisions at 0.5: accuracy of withholding and of "
            f"coarsening, with equal generalized rates: {right}.",
            "by construction for generalized rates; "
            + ("does not hold for decisions" if better else "not refuted for decisions"),
        ),
    ]


def _title(result: StudyResult) -> str:
    return f"{result.study.experiment.name}, {result.study.source}"


class TradeOff(NamedTuple):
    """The difference in another cost, before and after one cost is made equal."""

    before: float
    after: float

    @property
    def widens(self) -> bool:
        """True if the difference grows."""
        return self.after > self.before


def trade_off(
    cost: CostLike,
    other: CostLike,
    base_rates: BaseRates,
    costs: Iterable[float],
) -> TradeOff:
    """The difference in another cost once one is made equal, for two calibrated groups.

    Let r = k'/k of each group (see :func:`compare_costs`), and let group 2, which costs less, be
    brought to the cost of group 1: g_2 < g_1.  The other cost is r g, so its difference goes from
    |r_1 g_1 - r_2 g_2| to g_1 |r_1 - r_2|, and

        it grows if and only if   r_2 (g_1 + g_2) / 2 > r_1 g_1.

    For "fnr" and "fpr" r is the odds of the base rate.  So if the false-negative rates are made
    equal, the difference in false-positive rates grows only where the changed group has the
    higher base rate, by more than the rates themselves differ.  Section 6 of the paper says that
    it grows necessarily.

    Parameters
    ----------
    cost, other : Cost or str
        The cost that is made equal, and the one that is looked at.
    base_rates : {group: float} or sequence of float
        Those of the two groups.
    costs : sequence of float
        The cost of each group, in the same order.

    Examples
    --------
    >>> result = trade_off("fnr", "fpr", [0.50, 0.49], [0.077, 0.42])
    >>> round(result.before, 3), round(result.after, 4), result.widens
    (0.327, 0.0165, False)
    """
    comparison, now = compare_costs(cost, other, base_rates), list(costs)
    ratios = [comparison.other_k[group] / k for group, k in comparison.k.items()]
    if len(ratios) != 2 or len(now) != 2:
        rule, step = "must be of two groups", "compare two groups at a time"
        got = f"{len(ratios)} base rates and {len(now)} costs"
        raise UsageError(Problem("base_rates, costs", rule, got, step))
    before = abs(ratios[0] * now[0] - ratios[1] * now[1])
    return TradeOff(float(before), float(max(now) * abs(ratios[0] - ratios[1])))


def theorem_constant(comparison: CostComparison, first: int = 0, second: int = 1) -> float:
    """The constant 16 M^3 D^4 of the theorem about two costs, infinite above 1e308.

    M is the largest absolute value in the matrix A of two groups and D the common denominator of
    its entries, read as the simplest fractions that round to them.  The theorem bounds every error
    rate by it times max(2 gap / (1 - mu_t), the difference of costs).

    Examples
    --------
    >>> theorem_constant(compare_costs("fpr", "fnr", [0.2, 0.5]))
    4096.0
    """
    entries = []
    for value in np.abs(comparison.constraints(first, second)).ravel().tolist():
        exact = Fraction(value)
        simple = (exact.limit_denominator(10**digits) for digits in (3, 6, 9))
        near = (one for one in simple if abs(one - exact) <= abs(exact) * Fraction(1, 2**50))
        entries.append(next(near, exact))
    common = math.lcm(*(entry.denominator for entry in entries))
    try:
        return float(16 * max(entries) ** 3 * common**4)
    except OverflowError:
        return math.inf
