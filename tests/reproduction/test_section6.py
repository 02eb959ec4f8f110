"""The sentences of Section 6: what the examples say, and what experiments add."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost.measures.bounds import compare_costs, impossibility_bound
from reproduction.people import People, Split
from reproduction.rerun import Reproduction
from reproduction.section6 import _amplified, condition, judged, theorem_constant, trade_off
from reproduction.study import RECIDIVISM, Study
from tests.populations import base_rates, costs


def test_an_experiment_that_is_infeasible_leaves_the_general_sentences(
    counts: Reproduction,
) -> None:
    first, second = judged([counts])
    assert first.verdict == "does not hold as written; true under the condition"
    assert "from 0.327 to 0.0165" in first.evidence
    assert second.verdict == "does not hold as written"


def test_equal_base_rates_do_not_make_costs_equal() -> None:
    """The example of the second sentence, measured."""
    label = np.tile(np.repeat([0, 1], 50), 2)
    group = np.repeat(RECIDIVISM.groups, 100)
    sharp = np.where(np.arange(100) % 10 == 0, 0.9, 0.1)
    dull = np.where(np.arange(100) % 10 < 4, 0.6, 0.4)
    score = np.concatenate([np.where(label[:100] == 1, 1 - one, one) for one in (sharp, dull)])
    people = People(label, group, {"m": score})
    values = Study(RECIDIVISM, "made up", (Split(people, people),)).values
    rates = [values[f"original generalized_fnr {number}"] for number in (1, 2)]
    np.testing.assert_allclose(rates, [0.18, 0.48])
    assert max(values["original off_line 1"], values["original off_line 2"]) < 1e-9
    assert values["original base_rate 1"] == values["original base_rate 2"] == 0.5


def test_the_condition_is_that_of_the_rates() -> None:
    values = {"original base_rate 1": 0.5, "original base_rate 2": 0.49}
    values |= {"original cost 1": 0.077, "original cost 2": 0.42}
    assert not condition(values, "fnr")
    assert condition(values | {"original base_rate 1": 0.8}, "fnr")


@pytest.mark.parametrize(
    ("withheld", "verdict"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "holds"),
        ([0.6, 0.5, 0.4, 0.3, 0.2, 0.1], "does not hold"),
        # The correlation is positive, but six data sets may have it by chance.
        ([0.1, 0.5, 0.2, 0.6, 0.3, 0.4], "undecided: too few data sets"),
    ],
)
def test_a_correlation_that_may_be_chance_decides_nothing(
    withheld: list[float], verdict: str
) -> None:
    results = []
    for k, share in enumerate(withheld):
        rates = {"original base_rate 1": 0.2, "original base_rate 2": 0.3 + 0.1 * k}
        values = {**rates, "feasible": 1.0, "withheld": share}
        results.append(SimpleNamespace(study=SimpleNamespace(values=values)))
    assert _amplified(results).verdict == verdict  # type: ignore[arg-type]


@pytest.mark.parametrize("costs", [("fpr", "fnr"), ("fpr", "weighted:1,3"), ("plain:1,2", "fnr")])
@pytest.mark.parametrize("rates", [(0.2, 0.5), (0.3, 0.7), (1901 / 3696, 966 / 2454)])
def test_the_constant_of_the_theorem_is_true_and_far_from_sharp(
    costs: tuple[str, str], rates: tuple[float, float]
) -> None:
    constant = theorem_constant(compare_costs(*costs, rates))
    # Every error rate is at most ||A^-1|| times what is allowed, and the theorem's bound is larger.
    bound = impossibility_bound(*costs, rates, 0.01)
    assert bound.norm < constant * 0.01


def test_the_constant_of_the_theorem_by_hand_and_beyond_floats() -> None:
    # The odds are 1/3 and 1, so M = 2 and D = 3.
    found = theorem_constant(compare_costs("fnr", "plain:2,1", [0.25, 0.5]))
    assert found == 16 * 2**3 * 3**4
    huge = ic.Cost(fp=1e-100, fn=1e100)
    assert theorem_constant(compare_costs("fpr", huge, [0.25, 0.5])) == np.inf


@settings(max_examples=60)
@given(base_rates, base_rates, st.floats(0.02, 0.98), st.floats(0.0, 1.0), costs(), costs())
def test_when_an_equal_cost_widens_another_difference(
    mu: float, other_mu: float, sharp: float, share: float, one: Any, two: Any
) -> None:
    """Two calibrated groups are moved as :func:`isocost.withhold` moves them."""
    (cost, _), (other, _) = one, two
    shares = np.array([mu, other_mu])
    a, b = cost.coefficients((0, 1), shares)
    trivial = a * shares + b * (1 - shares)
    g = np.array([sharp, share * sharp]) * trivial.min()  # so that equal cost is feasible
    assume(g[0] - g[1] > 1e-6 * g[0])
    found = trade_off(cost, other, shares.tolist(), g.tolist())
    c, d = other.coefficients((0, 1), shares)

    def difference(costs: Any) -> float:
        fp, fn = shares * costs / trivial, (1 - shares) * costs / trivial
        first, second = c * fp + d * fn
        return float(abs(first - second))

    assert found == pytest.approx((difference(g), difference(g[[0, 0]])))
    both = compare_costs(cost, other, shares.tolist())
    r = np.array([both.other_k[group] / k for group, k in both.k.items()])
    margin = r[1] * (g[0] + g[1]) / 2 - r[0] * g[0]
    assume(abs(margin) > 1e-9 * r.max() * g[0])
    assert found.widens == (margin > 0)


def test_the_false_sentence_of_section_6() -> None:
    found = trade_off("fnr", "fpr", {"a": 0.50, "b": 0.49}, [0.077, 0.42])
    assert found == pytest.approx((0.3265, 0.0165), abs=1e-3)
    with pytest.raises(ic.UsageError, match="must be of two groups"):
        trade_off("fnr", "fpr", [0.2, 0.3, 0.4], [0.1, 0.2, 0.3])
