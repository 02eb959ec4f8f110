"""Levels of scores, and the program of reconciling: its outputs and its solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

import isocost as ic
from isocost.examples import compas
from isocost.repairs.lp import (
    BELOW,
    FEWEST,
    OUTPUTS,
    EqualityProgram,
    isotonic,
    make_choices,
    score_levels,
    solve,
)
from isocost.repairs.reconcile import reconcile
from tests.populations import drawn, from_counts, tables


def test_rounding_does_not_put_a_share_below_the_threshold():
    """Thirty positives of weight 0.1 and ten negatives of 0.3 are as many."""
    for light in (0, 1):
        label = [light] * 30 + [1 - light] * 10
        data = {"score": [0.7] * 80, "label": label * 2, "group": ["a"] * 40 + ["b"] * 40}
        tally = ic.tally({**data, "w": ([0.1] * 30 + [0.3] * 10) * 2}, weight="w")
        assert tally.totals.w[0, 1] != tally.totals.w[0, 0]
        assert score_levels(tally, 0, 0.5, 64).p.tolist() == [0.5]
        assert [row.value for row in reconcile(tally).rows] == [0.5, 0.5]


def test_evenly_spaced_outputs_keep_away_from_the_threshold():
    table = [(0.1, 10_000, 1995), (0.9, 10_000, 8195)]
    tally = from_counts({"a": table, "b": table})
    parts = [score_levels(tally, i, 0.5, 64) for i in range(2)]
    even = np.linspace(0.1995, 0.8195, OUTPUTS)
    assert np.abs(even - 0.4995).min() < 1e-9
    values = make_choices(parts, 0.5, wide=True).value
    assert set(values[np.abs(values - 0.5) <= BELOW]) == {0.5, 0.5 - BELOW}


@given(tables(groups=(2, 2), scores=(1, 12), rows=(1, 40)), st.integers(2, 8))
@settings(max_examples=40, deadline=None)
def test_levels_are_few_full_and_on_one_side(table, most):
    tally = from_counts(table)
    for place in range(2):
        part = score_levels(tally, place, 0.5, most)
        inside = tally.cells.group == place
        assert len(part) <= most
        assert part.n.sum() == tally.cells.n[inside].sum()
        assert part.w.sum() == pytest.approx(1.0)
        assert part.w @ part.p == pytest.approx(part.base_rate)
        assert ((part.lo >= 0.5) == part.above).all()
        assert ((part.hi <= 0.5) != part.above).all()
        for side in (False, True):
            lo, hi = part.lo[part.above == side], part.hi[part.above == side]
            if len(lo):
                assert (lo[0], hi[-1]) == ((0.5, 1.0) if side else (0.0, 0.5))
                assert (lo[1:] == hi[:-1]).all()
            if len(lo) > 1:
                assert part.n[part.above == side].min() >= FEWEST
        # A level is what the tally says about its interval.
        low = tally.grid.cuts[tally.cells.bin]
        for k in range(len(part)):
            here = inside & (low >= part.lo[k]) & (low < part.hi[k])
            assert tally.cells.n[here].sum() == part.n[k]


def test_levels_have_about_equal_weight():
    rng = np.random.default_rng(1)
    score = rng.beta(2, 5, 40_000)
    label = rng.random(len(score)) < score
    tally = ic.tally({"score": score, "label": label, "group": np.zeros(len(score), int)})
    part = score_levels(tally, 0, 0.5, 20)
    assert 15 <= len(part) <= 20
    assert part.w.min() > 0.9 / 20
    assert part.w.max() < 2.1 / 20


def test_the_solver_says_none_where_nothing_is_possible():
    tally = from_counts({"a": [(0.2, 100, 20)], "b": [(0.1, 300, 0), (0.9, 700, 700)]})
    parts = [score_levels(tally, i, 0.5, 64) for i in range(2)]
    choices = make_choices(parts, 0.5, wide=False)
    plan = EqualityProgram(choices, {"fnr": choices.rate("fnr")}, {"fnr": 0.5})
    assert solve(plan) is None
    assert solve(plan.relaxed(0.1)) is not None


# Levels

BETAS = [(0.8, 1.2), (0.7, 1.5)]


@pytest.mark.parametrize("rows", [200, 2_000, 20_000, 300_000])
def test_the_number_grows_with_the_cube_root(rows):
    tally = drawn(0, BETAS, [rows, rows])
    wanted = min(64, round((2 * rows) ** (1 / 3)))
    for group in (0, 1):
        levels = score_levels(tally, group, 0.5)
        # The remainder on either side of the threshold joins the last level of that side.
        assert 0.9 * wanted - 2 <= len(levels) <= wanted
        assert levels.n.min() >= 20


def test_few_different_scores_are_levels():
    for group in (0, 1):
        auto, fine = (score_levels(compas(), group, 0.5, most) for most in ("auto", 64))
        assert len(auto) == 10
        assert auto.p.tolist() == fine.p.tolist()


def test_weights_that_differ_tell_less():
    rng = np.random.default_rng(0)
    score = rng.random(4000)
    data = {"score": score, "label": rng.random(4000) < score, "group": np.arange(4000) % 2}
    equal = ic.tally({**data, "w": np.full(4000, 3.0)}, weight="w")
    unequal = ic.tally({**data, "w": np.where(rng.random(4000) < 0.05, 50.0, 1.0)}, weight="w")
    assert len(score_levels(equal, 0, 0.5)) == len(score_levels(ic.tally(data), 0, 0.5))
    assert len(score_levels(unequal, 0, 0.5)) < len(score_levels(equal, 0, 0.5)) - 3


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 50)), min_size=1, max_size=12))
def test_isotonic_is_that_of_scikit_learn(points):
    values, weights = np.array(points, dtype=float).T
    found, starts = isotonic(values, weights)
    places = np.arange(len(values))
    wanted = IsotonicRegression().fit_transform(places, values, sample_weight=weights)
    assert found == pytest.approx(wanted, abs=1e-9)
    assert (np.diff(found[starts]) > 0).all()


def test_levels_rise_on_each_side_of_the_threshold():
    counts = [(0.1, 50, 20), (0.3, 50, 10), (0.45, 50, 30), (0.6, 50, 25), (0.9, 50, 24)]
    levels = score_levels(from_counts({"a": counts}), 0, 0.5, monotone=True)
    assert levels.p.tolist() == pytest.approx([0.3, 0.6, 0.49])
    assert levels.above.tolist() == [False, False, True]
    assert levels.w.sum() == pytest.approx(1.0)
    assert levels.lo[1:].tolist() == levels.hi[:-1].tolist()
    assert (levels.lo[0], levels.hi[-1]) == (0.0, 1.0)


def test_of_few_scores_those_with_few_rows_are_pooled():
    """As the docstring of reconcile says of 16 different scores or fewer."""
    scores = np.repeat([0.1, 0.2, 0.3, 0.7, 0.8], [100, 15, 100, 15, 100])
    labels = np.arange(len(scores)) % 3 == 0
    levels = score_levels(ic.tally({"score": scores, "label": labels, "group": [0] * 330}), 0, 0.5)
    assert levels.n.tolist() == [100, 115, 115]
    assert "scores with under 20 rows are pooled" in " ".join(ic.reconcile.__doc__.split())
