"""The population of a tally: scores, chances and samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost.judging.population import Population, chances
from tests.populations import TWO, drawn, drawn_rows


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30, unique=True),
    st.integers(1, 50),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_chances_are_probabilities(scores, rows, random):
    score, w = np.sort(scores), np.full(len(scores), float(rows))
    wy = np.array([float(random.randint(0, rows)) for _ in scores])
    found = chances(score, w, wy, w)
    assert (found >= 0).all()
    assert (found <= 1).all()


def test_scores_count_as_calibrated_until_shown_otherwise():
    rng = np.random.default_rng(0)
    kept = 0
    for _ in range(200):
        h = np.sort(rng.beta(0.7, 1.5, 200))
        ones = np.ones(200)
        kept += np.array_equal(chances(h, ones, (rng.random(200) < h).astype(float), ones), h)
    assert kept >= 193
    h, ones = np.sort(rng.random(50_000)), np.ones(50_000)
    truth = h + 0.3 * (0.5 - h)
    found = chances(h, ones, (rng.random(50_000) < truth).astype(float), ones)
    assert np.abs(found - truth).mean() < 0.02


def test_the_population_has_the_scores_and_sizes_of_the_tally():
    tally = drawn(3, TWO, [500, 300])
    population = Population(tally)
    np.testing.assert_allclose(population.tally.totals.n.sum(axis=1), [500, 300])
    np.testing.assert_allclose(population.tally.totals.wh.sum(axis=1), tally.totals.wh.sum(axis=1))
    sample = population.draw(np.random.default_rng(0))
    assert sample.totals.n.sum(axis=1).tolist() == [500, 300]
    assert population.draw(np.random.default_rng(0), 2.0).n == 1600


def test_unequal_weights_count_as_fewer_rows():
    """The noise of a weighted mean: about that of (sum w)^2 / sum w^2 rows."""
    data = drawn_rows(4, [2000, 2000])
    data["w"] = np.random.default_rng(0).choice([0.1, 1.9], 4000)
    tally = ic.tally(data, weight="w")
    random = np.random.default_rng(1)
    rates = [
        t.totals.w[:, 1] / t.totals.weight
        for t in (Population(tally).draw(random) for _ in range(400))
    ]
    own = data["group"] == 0
    h, w = data["score"][own], data["w"][own]
    mean = (w * h).sum() / w.sum()
    error = np.sqrt((w**2 * (h * (1 - h) + (h - mean) ** 2)).sum()) / w.sum()
    assert np.std([rate[0] for rate in rates]) == pytest.approx(error, rel=0.12)
