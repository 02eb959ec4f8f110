"""Levels: how many there are, and levels whose shares of positives rise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

import isocost as ic
from isocost.examples import compas
from isocost.repairs.levels import isotonic, score_levels
from tests.populations import drawn, from_counts

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
