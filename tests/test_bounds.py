"""The theorems: about one group, with the best constants, and all of them for a tally."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import isocost as ic
from isocost.errors import DataError, UsageError
from isocost.examples import compas
from isocost.measures import bounds as mb
from isocost.measures.bounds import drop_of, range_at
from tests.populations import (
    CLOSE,
    Population,
    base_rates,
    costs,
    placed,
    populations,
    tally_of,
    two_scores,
)

RATES = ("generalized_fpr", "generalized_fnr")


@given(st.data(), base_rates, costs())
def test_cost_no_lower_means_error_rates_hardly_lower(data, mu, cost):
    a, b = cost[1](mu)
    h, other = sorted(two_scores(data, mu), key=lambda p: p.cost(a, b))
    gap = max(h.gap, other.gap)
    # Of all costs "fnr" leaves c_fp the most room, and "fpr" c_fn.
    for i, (name, worst) in enumerate(zip(RATES, ((0.0, 1.0), (1.0, 0.0)), strict=True)):
        narrow = getattr(drop_of(a, b, mu, gap), name)
        wide = getattr(drop_of(*worst, mu, gap), name)
        assert h.rates[i] - other.rates[i] <= narrow.sharp + CLOSE
        assert narrow.sharp <= wide.sharp + CLOSE
        assert wide.sharp == pytest.approx(wide.paper / 2)


@given(base_rates, costs())
def test_cost_error_bound_is_attained_by_two_scores_of_the_same_cost(mu, cost):
    a, b = cost[1](mu)
    trivial = a * mu + b * (1 - mu)
    gap, value = 0.02 * min(mu, 1 - mu), 0.5 * trivial

    def at(r):
        return placed(mu, (mu * value - b * r) / trivial, ((1 - mu) * value + a * r) / trivial)

    high, low = at(-gap), at(gap)
    assert high.cost(a, b) == pytest.approx(low.cost(a, b), rel=1e-12)
    assert max(high.gap, low.gap) == pytest.approx(gap, rel=1e-9)
    drop = drop_of(a, b, mu, gap)
    assert high.rates[0] - low.rates[0] == pytest.approx(drop.generalized_fpr.sharp, rel=1e-9)
    assert low.rates[1] - high.rates[1] == pytest.approx(drop.generalized_fnr.sharp, rel=1e-9)


@given(populations(), costs())
def test_rates_lie_in_the_range_of_their_cost(p, cost):
    a, b = cost[1](p.mu)
    found = range_at(p.cost(a, b), a, b, p.mu, p.gap)
    for name, rate in zip(RATES, p.rates, strict=True):
        low, high = getattr(found, name)
        assert low - CLOSE <= rate <= high + CLOSE


@given(st.data(), base_rates, costs())
def test_range_ends_hold_for_higher_and_for_lower_costs(data, mu, cost):
    a, b = cost[1](mu)
    low, high = sorted(two_scores(data, mu), key=lambda p: p.cost(a, b))
    gap = max(low.gap, high.gap)
    at_low = range_at(low.cost(a, b), a, b, mu, gap)
    at_high = range_at(high.cost(a, b), a, b, mu, gap)
    for i, name in enumerate(RATES):
        assert high.rates[i] >= getattr(at_low, name)[0] - CLOSE
        assert low.rates[i] <= getattr(at_high, name)[1] + CLOSE


@given(base_rates, costs(), st.integers(0, 20))
def test_range_of_rates_against_a_search_over_the_square(mu, cost, part):
    a, b = cost[1](mu)
    gap = 0.05
    value = part / 20 * (a * min(1, (mu + gap) / (1 - mu)) + b * min(1, (1 - mu + gap) / mu))
    found = range_at(value, a, b, mu, gap)
    # Every residual that is allowed, one point each.
    r = np.linspace(-gap, gap, 20001)
    trivial = a * mu + b * (1 - mu)
    c_fp, c_fn = (mu * value - b * r) / trivial, ((1 - mu) * value + a * r) / trivial
    inside = (np.minimum(c_fp, c_fn) >= -1e-9) & (np.maximum(c_fp, c_fn) <= 1 + 1e-9)
    assume(inside.any())
    for rate, ends in ((c_fp, found.generalized_fpr), (c_fn, found.generalized_fnr)):
        step = abs(rate[1] - rate[0]) + 1e-8
        assert rate[inside].min() == pytest.approx(ends[0], abs=step)
        assert rate[inside].max() == pytest.approx(ends[1], abs=step)


def test_withholding_scales_the_gap_of_a_tally():
    t = compas()
    rule = ic.withhold(t, cost="fpr", tolerance=0.07)
    before, after = ic.bounds(t, "fpr").groups, ic.bounds(rule.expected(t), "fpr").groups
    for group, alpha in rule.alpha.items():
        assert after[group].gap == pytest.approx((1 - alpha) * before[group].gap, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: range_at(0.9, 1.0, 0.0, 0.4, 0.0),
            "next: use a value of at most 0.666667, or a larger gap",
        ),
        (lambda: ic.bounds(compas(), "fpr", "fnr", gap=True), "got:  True"),
        (lambda: ic.bounds(compas(), "fpr", "fnr", gap=math.inf), "got:  inf"),
        (lambda: ic.bounds(compas(), "fpr", gap=-1), "gap: must be a number that is at least 0"),
        (
            lambda: ic.bounds(compas(), "fpr", cost_difference="far"),
            "cost_difference: must be a number that is at least 0\n  got:  'far'",
        ),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(UsageError) as caught:
        call()
    assert text in str(caught.value)


@settings(deadline=None)
@given(st.lists(populations(), min_size=2, max_size=4), costs(), st.none() | costs())
def test_bounds_of_a_tally_agree_with_its_populations(scores, cost, other):
    coefficients = cost[1]
    found = ic.bounds(
        tally_of(dict(enumerate(scores))), cost[0], None if other is None else other[0]
    )
    for p, group in zip(scores, found.groups.values(), strict=True):
        assert group.residual == pytest.approx(p.mu - p.mean_score, abs=CLOSE)
        assert group.gap_at_least <= group.gap <= p.gap + CLOSE
        assert group.linearity == mb.Bound(group.gap, 2 * group.gap)
        assert group.cost == pytest.approx(p.cost(*coefficients(p.mu)), abs=CLOSE)
        for name in RATES:
            low, high = getattr(group.at_cost, name)
            assert low - CLOSE <= getattr(group, name) <= high + CLOSE
            assert high - low <= getattr(group.drop, name).sharp + CLOSE
    assert json.loads(found.to_json())["format"] == "isocost-bounds"
    if other is not None:
        assert found.impossibility.comparison.distinct == ic.distinct(
            cost[0], other[0], [g.base_rate for g in found.groups.values()]
        )


def test_bounds_of_compas():
    found = ic.bounds(compas(), "fpr", "fnr")
    white = found.groups["Caucasian"]
    assert white.residual == pytest.approx(0.3936 - 0.4047, abs=1e-4)
    assert white.gap == pytest.approx(0.0170, abs=5e-5)
    assert white.at_cost.generalized_fpr == pytest.approx((0.36, 0.36), abs=5e-5)
    assert white.drop.generalized_fnr.sharp == pytest.approx(2 * white.gap / white.base_rate)
    assert found.impossibility.gap == white.gap
    assert found.impossibility.tight == pytest.approx(0.1534, abs=1e-4)
    text = str(found)
    assert "-0.0111  0.0170" in text
    assert "only scores with lower ones can do it" in text
    assert "<table>" in found._repr_html_()
    assert ic.bounds(compas()).impossibility is None
    assert ic.bounds(compas(), "fpr", "fnr", gap=0.0).impossibility.tight == 0.0


def test_bounds_of_perfect_scores():
    perfect = Population.of([(0.0, 0.5, 0.0), (1.0, 0.0, 0.5)])
    found = ic.bounds(tally_of({"a": perfect, "b": perfect}), "weighted:1,3")
    assert found.groups["a"].at_cost == mb.RateRange((0.0, 0.0), (0.0, 0.0))


def test_bad_tally():
    with pytest.raises(DataError, match="group: must have at least two values"):
        ic.bounds(compas().select(["Caucasian"]))
    data = {"score": [0.1, 0.2, 0.3], "label": [0, 1, 1], "group": list("aab")}
    with pytest.raises(DataError, match="only 'a'; 'b' has no negatives"):
        ic.bounds(ic.tally(data))


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_no_calibrated_scores_with_a_monotone_ratio_escape_its_bound(seed):
    """For random scores of one group, a linear program looks for a second group that would."""
    random = np.random.default_rng(seed)
    h = np.sort(random.uniform(0.01, 0.99, 8))
    f = random.dirichlet(np.ones(8))
    mu = f @ h
    higher = random.uniform(mu, h[-1])
    at = random.integers(1, 8)
    missed, alarmed = np.where(np.arange(8) < at, h, 0.0), np.where(np.arange(8) >= at, 1 - h, 0.0)
    rising = np.zeros((7, 8))
    rising[np.arange(7), np.arange(7)] = f[1:]
    rising[np.arange(7), np.arange(1, 8)] = -f[:-1]
    bound = mb.ratio_bound([mu, higher])
    # The higher group misses as many as it may without meeting the first alternative.
    fnr_at_least = (f @ missed) / mu / bound.fnr * (1 + 1e-7)
    found = linprog(
        alarmed, np.vstack([rising, -missed / higher]), [*np.zeros(7), -fnr_at_least],
        np.vstack([np.ones(8), h]), [1.0, higher], method="highs",
    )  # fmt: skip
    if found.success:
        assert found.fun / (1 - higher) >= (f @ alarmed) / (1 - mu) * bound.fpr * (1 - 1e-6)


def test_the_bound_of_a_monotone_ratio_is_attained():
    h, f, other = np.array([0.0, 0.5, 1.0]), np.array([0.4, 0.4, 0.2]), np.array([0.2, 0.4, 0.4])
    assert (np.diff(other / f) >= 0).all()
    bound = mb.ratio_bound([f @ h, other @ h])
    missed = h * [1, 1, 0]
    assert (f @ missed / (f @ h)) / (other @ missed / (other @ h)) == pytest.approx(bound.fnr)
    assert bound.odds == pytest.approx(bound.fnr * bound.fpr)
    said = str(bound)
    assert "these base rates and a monotone likelihood ratio between the two groups have" in said
    assert "nothing keeps" in str(mb.ratio_bound([0.3, 0.3]))


@pytest.mark.parametrize("gap", [0.05, 0.2, 0.5])
def test_no_rate_above_one_is_printed(gap):
    result = ic.bounds(compas(), "fpr", "fnr", gap=gap, cost_difference=0.1)
    found = result.to_dict()["impossibility"]
    rates = [rate for name in RATES for _, rate in found[name]]
    assert max(*rates, found["tight"]) <= 1.0
    shown = re.findall(r"(?:FPR|FNR) at most ([0-9.]+)", str(result))
    assert all(float(rate) <= 1.0 for rate in shown)
