"""Bounds for all groups at once, checked against scipy, simulation and closed forms."""

import time

import numpy as np
import pytest
from scipy.stats import norm, studentized_range

import isocost as ic
from isocost.measures.intervals import (
    CostBounds,
    _spread_within,
    alpha_intervals,
    range_interval,
    range_quantile,
)

intervals = ic.intervals


def drawn(shapes, sizes, seed):
    rng = np.random.default_rng(seed)
    score = np.concatenate([rng.beta(*shape, n) for shape, n in zip(shapes, sizes, strict=True)])
    label = (rng.random(len(score)) < score).astype(int)
    return ic.tally({"score": score, "label": label, "group": np.repeat(range(len(sizes)), sizes)})


@pytest.mark.parametrize("groups", [2, 3, 10, 100])
def test_the_range_of_normal_variates(groups):
    truth = studentized_range.ppf(0.95, groups, np.inf)
    assert range_quantile(0.95, groups) == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("weight", [0.1, 0.5, 0.9])
def test_the_spread_of_normal_variates(weight):
    rng = np.random.default_rng(0)
    z, u = rng.standard_normal((200_000, 3)), rng.standard_normal((200_000, 5))
    spread = np.sqrt(weight) * z.max(axis=1) - np.sqrt(1 - weight) * u.min(axis=1)
    sizes = (1.0, 2.0, 3.0)
    within = _spread_within(sizes, 3, 5, weight)
    assert within == pytest.approx([(spread <= size).mean() for size in sizes], abs=0.005)
    one = _spread_within(sizes, 1, 1, weight)
    assert one == pytest.approx(norm.cdf(sizes), abs=1e-4)


def test_two_groups_have_the_interval_of_their_difference():
    found = intervals(drawn([(2, 2), (2, 3)], [500, 500], 0), "fpr", replicates=0)
    assert found.disparities["cost"] == pytest.approx(found.differences["cost"])


def test_two_alike_and_one_apart():
    a = ic.audit(drawn([(2, 2), (2, 2), (1, 4)], [5000] * 3, 1), "fpr")
    assert a.verdict.established
    assert set(a.verdict.highest) == {0, 1}
    assert a.verdict.reason == "infeasible"


@pytest.mark.parametrize("groups", [5, 30])
def test_alike_groups_are_not_told_apart(groups):
    wrong, infeasible, alpha, target = 0, 0, [], 0
    for seed in range(40):
        found = intervals(drawn([(2, 3)] * groups, [200] * groups, seed), "fpr", replicates=0)
        wrong += found.disparities["cost"][0] > 0
        infeasible += found.feasible_probability < 0.025
        alpha += [low <= 0 for low, _ in found.alpha.values()]
        # E[h (1 - h)] / E[1 - h] for Beta(2, 3).
        target += found.target_cost[0] <= 1 / 3 <= found.target_cost[1]
    assert wrong <= 6
    assert infeasible <= 2
    assert np.mean(alpha) > 0.9
    assert target >= 36


def test_on_the_boundary_feasibility_is_uniform():
    # Group 1's base rate is the cost of group 0: E[h (1 - h)] / E[1 - h] = 0.4 for Beta(2, 2).
    chance = [
        intervals(drawn([(2, 2), (2, 3)], [400, 400], s), "fpr", replicates=0).feasible_probability
        for s in range(200)
    ]
    assert np.mean(chance) == pytest.approx(0.5, abs=0.07)
    assert np.mean(np.array(chance) < 0.25) == pytest.approx(0.25, abs=0.1)


def test_alpha_solves_its_quadratic_equation():
    cost = np.array([[0.40, 0.38, 0.42], [0.30, 0.28, 0.32]])
    trivial = np.array([[0.55, 0.53, 0.57], [0.50, 0.47, 0.53]])
    bounds = CostBounds(cost, trivial, np.zeros(2), 0.0, 0.95, 1000)
    low, high = alpha_intervals(bounds, [0], np.array([0.0, 0.5]))[1]
    for a, half, side in ((low, 0.02, 1.0), (high, 0.02, -1.0)):
        error = np.sqrt(half**2 + (1 - a) ** 2 * 0.02**2 + a**2 * 0.03**2)
        assert 0.40 - (1 - a) * 0.30 - a * 0.50 == pytest.approx(side * error)
    assert alpha_intervals(bounds, [0], np.array([0.0, 0.5]))[0] == (0.0, 0.0)


def test_a_range_is_at_most_what_is_possible():
    values = np.array([[0.1, 0.0, 0.9], [0.9, 0.1, 1.8]])
    assert range_interval(values, 0.95, ic.MEASURES["fpr"])[1] == 1.0
    assert range_interval(values, 0.95)[1] > 1.0


def test_time_grows_with_groups_not_with_pairs():
    def seconds(groups):
        tally = drawn([(2, 3)] * groups, [50] * groups, 0)
        start = time.process_time()
        intervals(tally, "fpr", replicates=200)
        return time.process_time() - start

    seconds(10)
    assert seconds(160) < 12 * seconds(40)
