"""The theorems: about one group, with the best constants, and all of them for a tally."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import isocost as ic
from isocost.errors import UsageError
from isocost.examples import compas
from isocost.measures import bounds as mb
from isocost.measures.bounds import drop_of, range_at
from tests.conftest import measured
from tests.populations import (
    CLOSE,
    Population,
    base_rates,
    costs,
    near_line,
    placed,
    populations,
    populations_at,
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


# Two costs at once: distinct costs, and the approximate theorem, true for all and attained


@given(st.lists(base_rates, min_size=2, max_size=4), costs(), costs())
def test_distinct_is_when_the_constraints_have_full_rank(mus, cost, other):
    n, rows = len(mus), []
    for t, mu in enumerate(mus):
        rows.append(np.zeros((n, 2)))
        rows[-1][t] = 1 - mu, -mu
    for _, coefficients in (cost, other):
        for t in range(1, n):
            rows.append(np.zeros((n, 2)))
            rows[-1][0], rows[-1][t] = coefficients(mus[0]), -np.array(coefficients(mus[t]))
    rank = np.linalg.matrix_rank(np.reshape(rows, (-1, 2 * n)), tol=1e-9)
    assert ic.distinct(cost[0], other[0], mus) == (rank == 2 * n)


@given(st.lists(base_rates, min_size=2, max_size=4), costs(), costs())
def test_costs_that_are_not_distinct_are_both_equal_for_imperfect_scores(mus, cost, other):
    found = mb.compare_costs(cost[0], other[0], mus)
    assume(not found.distinct)
    top = min(k * (1 - mu) for k, mu in zip(found.k.values(), mus, strict=True))
    scores = []
    for mu, k in zip(mus, found.k.values(), strict=True):
        c_fn = 0.5 * top / k
        scores.append(placed(mu, c_fn * mu / (1 - mu), c_fn))
    for _, coefficients in (cost, other):
        values = [p.cost(*coefficients(p.mu)) for p in scores]
        assert max(values) == pytest.approx(min(values), rel=1e-9)
        assert min(values) > 0
    assert max(p.gap for p in scores) < CLOSE


def test_the_theorem_read_literally_fails():
    # Different functions, different constraints; calibrated, imperfect, and both costs equal.
    t = tally_of({"a": Population.of([(0.2, 0.8, 0.2)]), "b": placed(0.5, 0.32, 0.32)})
    first, second = (measured(t, cost=cost) for cost in ("weighted:1,3", "weighted:3,1"))
    for audit in (first, second):
        assert audit.disparity.difference == pytest.approx(0, abs=1e-12)
        assert all(m.calibration_gap < 1e-12 for m in audit.groups.values())
        assert all(m.cost == pytest.approx(0.64) for m in audit.groups.values())
        assert all(m.generalized_fnr > 0.3 for m in audit.groups.values())
    found = mb.compare_costs("weighted:1,3", "weighted:3,1", {"a": 0.2, "b": 0.5})
    assert not found.distinct
    assert found.k == pytest.approx(found.other_k)


@pytest.mark.parametrize(
    ("cost", "other", "mus", "expected"),
    [
        ("fpr", "fnr", [0.2, 0.5], True),
        ("fpr", "fnr", [0.4, 0.4, 0.4], False),
        ("fpr", "fnr", [0.4, 0.4, 0.4 + 1e-9], True),
        ("fpr", "plain:7,0", [0.2, 0.5], False),
        ("fnr", "weighted:1,1", [0.2, 0.5], True),
        (ic.Cost(fp=1e-100, fn=0), ic.Cost(fp=1e100, fn=0), [0.2, 0.5], False),
        (ic.Cost(fp=1e-100, fn=0), ic.Cost(fp=0, fn=1e100), [0.2, 0.5], True),
        ("fnr", ic.Cost(fp=0, fn={"a": 1, "b": 2}), {"a": 0.3, "b": 0.3}, True),
        # k' = 0.25 a + b of group a, and of group b: the same although the costs differ.
        ("fnr", ic.Cost(fp={"a": 4, "b": 0}, fn={"a": 0, "b": 1}), {"a": 0.2, "b": 0.5}, False),
    ],
)
def test_distinct_by_hand(cost, other, mus, expected):
    assert ic.distinct(cost, other, mus) is expected
    assert ic.distinct(other, cost, mus) is expected


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ic.distinct("fpr", "fnr", [0.5]), "base_rates: must be of at least two groups"),
        (lambda: ic.distinct("fpr", "fnr", 0.5), "got:  0 of them"),
        (lambda: ic.distinct("fpr", "fnr", "ab"), "got:  0 of them"),
        (
            lambda: ic.distinct("fpr", "fnr", {"a": 0.5, "b": 0.0}),
            "base rate of group 'b': must be a number strictly between 0 and 1",
        ),
        (lambda: ic.distinct("tpr", "fnr", [0.2, 0.5]), "cost: must be a Cost, or one of"),
        (
            lambda: ic.distinct("fnr", ic.Cost(fp=0, fn={"a": 1, "c": 2}), {"a": 0.2, "b": 0.5}),
            "unknown group 'c', no number for group 'b'",
        ),
        (
            lambda: mb.impossibility_bound("fpr", "fnr", [0.2, 0.5], -1),
            "cost_difference: must be a number that is at least 0",
        ),
        (
            lambda: mb.impossibility_bound("fpr", "fnr", [0.2, 0.5], gap=-1),
            "gap: must be a number that is at least 0",
        ),
    ],
)
def test_bad_input_of_two_costs(call, text):
    with pytest.raises(UsageError) as caught:
        call()
    assert text in str(caught.value)


def linear_program(found, cost_difference, gap):
    """The largest value of each error rate, all groups at once, and no rate negative."""

    groups, mu = tuple(found.base_rates), np.array(list(found.base_rates.values()))
    n = len(groups)
    rows, limits = [], []
    for t in range(n):
        row = np.zeros((n, 2))
        row[t] = mu[t] - 1, mu[t]
        rows += [row.ravel(), -row.ravel()]
        limits += [gap, gap]
    for cost in (found.cost, found.other):
        each = np.stack(cost.coefficients(groups, mu), axis=1)
        for s in range(n):
            for t in range(n):
                row = np.zeros((n, 2))
                row[s] += each[s]
                row[t] -= each[t]
                rows.append(row.ravel())
                limits.append(cost_difference)
    best = [linprog(-unit, np.array(rows), limits) for unit in np.eye(2 * n)]
    assert all(result.status == 0 for result in best)
    return np.array([result.x for result in best])


def as_array(bound):
    return np.stack([list(bound.generalized_fpr.values()), list(bound.generalized_fnr.values())], 1)


@settings(deadline=None)
@given(st.data(), st.lists(base_rates, min_size=2, max_size=4), costs(), costs())
def test_no_population_breaks_the_bound(data, mus, cost, other):
    scores = [data.draw(st.one_of(near_line(mu), populations_at(mu))) for mu in mus]
    assume(ic.distinct(cost[0], other[0], mus))
    gap = max(p.gap for p in scores)
    apart = 0.0
    for _, coefficients in (cost, other):
        values = [p.cost(*coefficients(p.mu)) for p in scores]
        apart = max(apart, max(values) - min(values))
    bound = mb.impossibility_bound(cost[0], other[0], mus, apart, gap)
    assert (np.array([p.rates for p in scores]) <= as_array(bound) * (1 + 1e-9) + CLOSE).all()
    assert bound.tight <= bound.norm * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(base_rates, min_size=2, max_size=4, unique=True),
    costs(),
    costs(),
    st.integers(0, 4),
    st.integers(1, 4),
)
def test_bound_is_above_the_linear_program(mus, cost, other, difference, gap):
    found = mb.compare_costs(cost[0], other[0], mus)
    assume(found.distinct)
    bound = mb.impossibility_bound(cost[0], other[0], mus, difference, gap)
    exact = np.diag(linear_program(found, difference, gap)).reshape(-1, 2)
    assert (exact <= as_array(bound) * (1 + 1e-6) + 1e-6).all()


@settings(max_examples=25, deadline=None)
@given(st.lists(base_rates, min_size=2, max_size=2, unique=True), st.integers(0, 4))
def test_bound_of_two_groups_is_the_linear_program(mus, difference):
    # Equalized odds: nothing smaller is true.
    found = mb.compare_costs("fpr", "fnr", mus)
    bound = mb.impossibility_bound("fpr", "fnr", mus, difference, 1.0)
    exact = np.diag(linear_program(found, difference, 1.0)).reshape(-1, 2)
    assert exact == pytest.approx(as_array(bound), rel=1e-6)


@pytest.mark.parametrize("other", ["fnr", "weighted:1,3", "plain:1,2"])
@pytest.mark.parametrize(("difference", "gap"), [(0.01, 0.0), (0.0, 0.01), (0.01, 0.01)])
def test_bound_is_attained_by_scores(other, difference, gap):
    mu = {"a": 0.2, "b": 0.6}
    bound = mb.impossibility_bound("fpr", other, mu, difference, gap)
    solutions = linear_program(bound.comparison, difference, gap)
    for i, q in enumerate(solutions):
        group, rate = "ab"[i // 2], i % 2
        scores = {g: placed(mu[g], *q.reshape(2, 2)[t]) for t, g in enumerate("ab")}
        assert max(p.gap for p in scores.values()) <= gap + 1e-9
        for cost in ("fpr", other):
            audit = measured(tally_of(scores), cost=cost)
            assert audit.disparity.difference <= difference + 1e-9
        highest = (bound.generalized_fpr, bound.generalized_fnr)[rate][group]
        assert scores[group].rates[rate] == pytest.approx(highest, rel=1e-6)


def test_constants_by_hand():
    # The odds are 1/4 and 1, so det A = 3/4.
    bound = mb.impossibility_bound("fpr", "fnr", {"a": 0.2, "b": 0.5}, 0.01, 0.0)
    # c_fn,a - c_fn,b = -d, c_fp,a - c_fp,b = d, c_fp,a = c_fn,a / 4 and c_fp,b = c_fn,b.
    assert bound.generalized_fnr == pytest.approx({"a": 0.08 / 3, "b": 0.05 / 3})
    assert bound.generalized_fpr == pytest.approx({"a": 0.02 / 3, "b": 0.05 / 3})


def test_bound_scales_and_does_not_mind_units():
    mu = [0.2, 0.5, 0.7]
    one = mb.impossibility_bound("fpr", "fnr", mu, 0.01, 0.02)
    ten = mb.impossibility_bound("fpr", "fnr", mu, 0.1, 0.2)
    assert as_array(ten) == pytest.approx(10 * as_array(one))
    cents = ic.Cost(fp=1e9, fn=0)
    only_gap = mb.impossibility_bound("fpr", "fnr", mu, 0.0, 0.02)
    assert as_array(mb.impossibility_bound(cents, "fnr", mu, 0.0, 0.02)) == pytest.approx(
        as_array(only_gap)
    )


def test_a_pair_that_is_not_distinct_bounds_nothing_but_a_third_group_does():
    none = mb.impossibility_bound("fpr", "fnr", {"a": 0.3, "b": 0.3}, 0.01, 0.01)
    assert none.tight == none.norm == math.inf
    assert "not distinct" in str(none)
    assert str(none).endswith("So this bounds no error rate.")
    assert json.loads(json.dumps(none.to_dict(), allow_nan=False))["tight"] is None
    third = mb.impossibility_bound("fpr", "fnr", {"a": 0.3, "b": 0.3, "c": 0.6}, 0.01, 0.01)
    assert third.tight < 0.2
    assert third.generalized_fpr["a"] == third.generalized_fpr["b"]


def test_three_groups_are_bounded_together_and_not_in_pairs():
    """Calibrated scores: c_fn of each group lies where two strips overlap, here tried on a grid."""
    mu, difference = np.array([0.2, 0.6, 0.65]), 0.01
    bound = mb.impossibility_bound("fpr", "weighted:1,3", mu.tolist(), difference)
    k, other_k = (
        np.array(list(v.values())) for v in (bound.comparison.k, bound.comparison.other_k)
    )
    lowest, others = (x.ravel()[:, None] for x in np.meshgrid(*[np.linspace(0, 0.2, 801)] * 2))
    low = np.maximum(lowest / k, others / other_k)
    high = np.minimum((lowest + difference) / k, (others + difference) / other_k)
    best = high[(low <= high).all(axis=1)].max(axis=0)
    found = np.array(list(bound.generalized_fnr.values()))
    assert found == pytest.approx(best, abs=1e-3)
    pairs = [
        mb.impossibility_bound("fpr", "weighted:1,3", [mu[i], mu[j]], difference).generalized_fnr[0]
        for i, j in ((0, 1), (1, 0), (2, 0))
    ]
    assert (found <= np.array(pairs) + 1e-9).all()
    assert (found < np.array(pairs) - 1e-4).any()


@pytest.mark.parametrize("pair", [("fpr", "fnr"), ("fpr", "weighted:1,3"), ("plain:1,1", "fnr")])
def test_the_least_difference_of_two_costs_by_trying_every_share(pair):
    found = mb.incompatible(compas(), *pair)
    shares = np.array(list(found.comparison.base_rates.values()))
    sums = compas().totals
    now = np.array([mb.rates.generalized_fpr(sums), mb.rates.generalized_fnr(sums)])
    x = np.stack(np.meshgrid(*[np.linspace(0, 1, 1001)] * 2), axis=-1)
    fp, fn = (n + x * (t - n) for n, t in zip(now, (shares, 1 - shares), strict=True))
    differences = []
    for cost in (found.comparison.cost, found.comparison.other):
        a, b = cost.coefficients((0, 1), shares)
        g = a * fp + b * fn
        differences.append(np.abs(g[..., 0] - g[..., 1]))
    assert found.least == pytest.approx(np.maximum(*differences).min(), abs=2e-3)


def test_one_cost_twice_leaves_what_feasibility_says():
    again = mb.incompatible(compas(), "fpr", "plain:1,0")
    assert again.least == pytest.approx(
        measured(compas(), cost="fpr").feasibility.smallest_tolerance
    )


def test_the_bounds_of_a_tally_tell_what_is_now():
    def both(**allowed):
        return ic.bounds(compas(), "fpr", "fnr", **allowed).impossibility

    possible = both(cost_difference=0.1, gap=0.02)
    assert possible.excluded == ()
    assert "rule nothing out" in str(possible)
    ruled_out = both(cost_difference=0.01, gap=0.02)
    assert ruled_out.excluded == ("African-American", "Caucasian")
    assert "Caucasian: generalized FPR at most 0.1831 (now 0.3600)" in str(ruled_out)
    numbers = mb.impossibility_bound("fpr", "fnr", ruled_out.comparison.base_rates, 0.01, 0.02)
    assert as_array(numbers) == pytest.approx(as_array(ruled_out))
    assert numbers.present == {}
    assert "now" not in str(numbers)


def test_only_the_groups_above_the_bound_are_excluded():
    t = tally_of({1: placed(0.2, 0.1, 0.4), "1": placed(0.6, 0.01, 0.02)})
    bound = ic.bounds(t, "fpr", "fnr", cost_difference=0.02, gap=0.01).impossibility
    assert bound.excluded == (1,)
    fp, fn = bound.present[1]
    for now, excluded in (((0.0, fn), (1,)), ((fp, 0.0), (1,)), ((0.0, 0.0), ())):
        assert replace(bound, present={1: now}).excluded == excluded
    assert "The scores of 1 have higher error rates" in str(bound)
    assert "  '1': generalized FPR at most" in str(bound)
