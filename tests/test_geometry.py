import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from isocost.examples import compas
from isocost.measures import rates
from isocost.plots.plane import (
    crossing,
    ellipse,
    ellipse_axes,
    level_curve,
    rate_variances,
    trivial_point,
)
from tests.conftest import sample
from tests.populations import base_rates, costs

COSTS = ["fpr", "fnr", "plain:1,3", "plain:2,2", "weighted:1,1", "weighted:1,3", "weighted:0,1"]


def price(cost, mu, points):
    a, b = ic.Cost.parse(cost).coefficients([0], np.asarray(mu, dtype=float)[..., None])
    return a[..., 0] * points[..., 0] + b[..., 0] * points[..., 1]


@given(mu=base_rates)
def test_the_line_is_where_calibrated_scores_are(mu):
    # Scores 0.2 and 0.9 with as many positives as they say, in the shares that give mu.
    share = (mu - 0.0) / 0.9
    if share < 1:
        c_fp, c_fn = share * 0.1 * 0.9 / (1 - mu), share * 0.9 * 0.1 / mu
        x, y = trivial_point(mu)
        assert c_fp * y == pytest.approx(c_fn * x)
    assert trivial_point(mu) == (mu, 1 - mu)


@given(mu=base_rates, made=costs(), share=st.floats(0.01, 1.5))
def test_crossing_costs_what_was_asked_and_lies_on_the_line(mu, made, share):
    cost, coefficients = made
    a, b = coefficients(mu)
    value = share * (a * mu + b * (1 - mu))
    found = crossing(mu, cost, value)
    x, y = found.point
    assert a * x + b * y == pytest.approx(value)
    assert mu * y == pytest.approx((1 - mu) * x)
    assert found.share == pytest.approx(share)
    assert found.reachable == (found.share <= 1 + 1e-12)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("value", [0.05, 0.2])
def test_level_curve_against_a_search_along_each_line(cost, value):
    curve = level_curve(cost, value)
    mu = curve[:, 0] / curve.sum(axis=1)
    assert price(cost, mu, curve) == pytest.approx(value)
    assert (curve.sum(axis=1) <= 1 + 1e-9).all()
    # A search over all base rates finds a calibrated point of this cost exactly within the ends.
    rates_tried = np.linspace(0.001, 0.999, 999)
    trivial = np.column_stack([rates_tried, 1 - rates_tried])
    prices = price(cost, rates_tried, trivial)
    clear = np.abs(prices - value) > 1e-9
    inside = (rates_tried >= mu.min()) & (rates_tried <= mu.max())
    assert np.array_equal((prices >= value)[clear], inside[clear])


def test_shapes_of_level_curves():
    assert np.ptp(level_curve("fpr", 0.3)[:, 0]) < 1e-12
    assert np.ptp(level_curve("fnr", 0.3)[:, 1]) < 1e-12
    x, y = level_curve("weighted:1,3", 0.5).T
    assert 1 / x + 1 / y == pytest.approx(4 / 0.5)
    slope = np.diff(y) / np.diff(x)
    assert (slope < 0).all()
    assert (np.diff(slope) > 0).all(), "the curve bends towards the origin"


def test_the_ratio_of_a_weighted_cost_does_not_matter_on_calibrated_lines():
    assert level_curve("weighted:1,3", 0.4) == pytest.approx(level_curve("weighted:2,2", 0.4))


def test_out_of_reach_of_every_line_there_is_no_curve():
    assert level_curve("weighted:1,1", 0.6).shape == (0, 2)
    assert level_curve("plain:1,1", 1.5).shape == (0, 2)
    assert len(level_curve("weighted:1,1", 0.6, stretch=1.5)) > 0
    assert level_curve("fpr", 0.0).tolist() == [[0, 0]]


def test_costs_that_differ_by_group_need_one():
    cost = ic.Cost(fp={"a": 1.0, "b": 2.0}, fn=0.0)
    assert crossing(0.5, cost, 0.2, "b").point == pytest.approx((0.1, 0.1))
    with pytest.raises(ic.UsageError, match="must have a number for each group") as error:
        level_curve(cost, 0.2)
    assert str(error.value).splitlines()[-1] == "  next: add the group, or use one number for all"


def test_feasible_is_a_crossing_that_can_be_reached():
    tally = compas()
    found = ic.feasibility(tally, "fpr")
    for group, mu in zip(tally.groups, rates.base_rate(tally.totals), strict=True):
        where = crossing(float(mu), "fpr", found.target_cost)
        assert where.reachable == (group not in found.unreachable)


def test_variances_are_those_of_means_without_weights():
    data = sample(2000, groups=3)
    found = rate_variances(ic.tally(data))
    for group in range(3):
        for label in (0, 1):
            scores = data["score"][(data["group"] == group) & (data["label"] == label)]
            assert found[group, label] == pytest.approx(scores.var(ddof=1) / len(scores), rel=1e-9)


def test_variances_with_weights():
    data = sample(4000, groups=2, weighted=True)
    found = rate_variances(ic.tally(data, weight="weight"))
    inside = (data["group"] == 1) & (data["label"] == 0)
    w, h = data["weight"][inside], data["score"][inside]
    residual = w * (h - np.average(h, weights=w))
    assert found[1, 0] == pytest.approx((residual**2).sum() / w.sum() ** 2, rel=0.01)


def test_ellipses_hold_the_truth_as_often_as_they_say():
    random = np.random.default_rng(1)
    rows, trials, held = 300, 300, 0
    # Scores uniform, labels drawn by them: E[h | y=0] = 1/3, E[1-h | y=1] = 1/3.
    for _ in range(trials):
        h = random.random(rows)
        y = random.random(rows) < h
        tally = ic.tally(score=h, label=y, group=np.zeros(rows, dtype=int))
        sums = tally.totals
        centre = np.array([rates.generalized_fpr(sums)[0], rates.generalized_fnr(sums)[0]])
        axes = ellipse_axes(rate_variances(tally), 0.9)[0]
        held += (((centre - 1 / 3) / axes) ** 2).sum() <= 1.0
    assert abs(held / trials - 0.9) < 4 * math.sqrt(0.9 * 0.1 / trials)


def test_ellipse_axes_have_the_quantile_of_chi_squared():
    from scipy.special import chdtri

    for confidence in (0.5, 0.9, 0.99):
        quantile = chdtri(2, 1 - confidence)
        assert ellipse_axes([1.0], confidence)[0] ** 2 == pytest.approx(quantile)


def test_the_outline_of_an_ellipse():
    variances = np.array([0.0004, 0.0001])
    outline = ellipse([0.2, 0.3], np.diag(variances), 0.9)
    away = (outline - [0.2, 0.3]) / ellipse_axes(variances, 0.9)
    assert (away**2).sum(axis=1) == pytest.approx(1.0)
    assert outline[0] == pytest.approx(outline[-1])


@pytest.mark.parametrize("confidence", [0, 1, 1.5, None, "0.9"])
def test_confidence_must_be_one(confidence):
    with pytest.raises(ic.UsageError, match="confidence: must be a number strictly between"):
        ellipse_axes([0.1], confidence)
