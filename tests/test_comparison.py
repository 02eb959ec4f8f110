"""Distinct costs: what the theorem needs, and where the paper's meaning fails."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import isocost as ic
from isocost.errors import UsageError
from isocost.measures import bounds as mb
from tests.conftest import measured
from tests.populations import (
    CLOSE,
    Population,
    amounts,
    base_rates,
    costs,
    placed,
    tally_of,
)


@given(st.lists(base_rates, min_size=2, max_size=4), costs(), costs())
def test_distinct_is_when_the_constraints_have_full_rank(mus, cost, other):
    exact = [Fraction(round(mu * 40), 40) for mu in mus]
    rows = []
    n = len(mus)
    for t, mu in enumerate(exact):
        rows.append([0] * (2 * t) + [1 - mu, -mu] + [0] * (2 * (n - t - 1)))
    for _, coefficients in (cost, other):
        first = [as_fraction(x) for x in coefficients(exact[0])]
        for t in range(1, n):
            its = [-as_fraction(x) for x in coefficients(exact[t])]
            rows.append([*first, *([0] * (2 * (t - 1))), *its, *([0] * (2 * (n - t - 1)))])
    assert mb.distinct(cost[0], other[0], mus) == (rank(rows) == 2 * n)


def as_fraction(x):
    return Fraction(x).limit_denominator(10**6)


def rank(rows):
    rows, found = [list(map(Fraction, row)) for row in rows], 0
    for column in range(len(rows[0])):
        pivot = next((r for r in rows[found:] if r[column] != 0), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        rows.insert(found, pivot)
        for i in range(found + 1, len(rows)):
            factor = rows[i][column] / pivot[column]
            rows[i] = [x - factor * y for x, y in zip(rows[i], pivot, strict=True)]
        found += 1
    return found


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
    # Not the same constraint away from the calibrated lines: one holds, the other does not.
    off = {"a": (0.4, 0.1), "b": (0.4, 0.12)}
    mu = {"a": 0.2, "b": 0.5}
    gaps = []
    for fp, fn in ((1, 3), (3, 1)):
        a, b = (fp * (1 - mu[g]) * off[g][0] + fn * mu[g] * off[g][1] for g in "ab")
        gaps.append(abs(a - b))
    assert gaps == pytest.approx([0.0, 0.32], abs=1e-12)
    found = mb.compare_costs("weighted:1,3", "weighted:3,1", mu)
    assert not found.distinct
    assert set(map(round, found.ratios.values())) == {1}


@given(base_rates, st.integers(0, 10).map(lambda i: i / 10), amounts, amounts)
def test_ratio_cancels_out_of_the_weighted_cost_of_calibrated_scores(mu, s, fp, fn):
    p = placed(mu, s * mu, s * (1 - mu))
    squares = float((p.score**2 * (p.neg + p.pos)).sum())
    assert p.cost(fp * (1 - mu), fn * mu) == pytest.approx((fp + fn) * (mu - squares), abs=CLOSE)


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
    assert mb.distinct(cost, other, mus) is expected
    assert mb.distinct(other, cost, mus) is expected


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: mb.distinct("fpr", "fnr", [0.5]), "base_rates: must be of at least two groups"),
        (lambda: mb.distinct("fpr", "fnr", 0.5), "got:  0 of them"),
        (lambda: mb.distinct("fpr", "fnr", "ab"), "got:  0 of them"),
        (
            lambda: mb.distinct("fpr", "fnr", {"a": 0.5, "b": 0.0}),
            "base rate of group 'b': must be a number strictly between 0 and 1",
        ),
        (lambda: mb.distinct("tpr", "fnr", [0.2, 0.5]), "cost: must be a Cost, or one of"),
        (
            lambda: mb.distinct("fnr", ic.Cost(fp=0, fn={"a": 1, "c": 2}), {"a": 0.2, "b": 0.5}),
            "unknown group 'c', no number for group 'b'",
        ),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(UsageError) as caught:
        call()
    assert text in str(caught.value)
