"""The program of reconciling: its levels, its outputs, and its solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost.repairs.levels import FEWEST, score_levels
from isocost.repairs.linear_program import (
    BELOW,
    OUTPUTS,
    EqualityProgram,
    make_choices,
    solve,
)
from isocost.repairs.reconcile import reconcile
from tests.populations import from_counts, tables


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
    plan = EqualityProgram(choices, {"fnr": choices.rate("fnr")}, {"fnr": 0.5}, choices.unlimited)
    assert solve(plan) is None
    assert solve(plan.relaxed(0.1)) is not None
