"""Bins put together for the page: exact sums, few cells, nothing told of few people."""

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from isocost.reports.payload import (
    MOST_CELLS,
    held_tally,
    merged,
    payload,
    runs_of,
    snapped,
    undecided,
)
from tests.conftest import measured, sample


@pytest.fixture(scope="module")
def many():
    return ic.tally(sample(60_000, 20, seed=3), edges=(0.503,))


def test_nothing_is_merged_without_need():
    assert merged(compas(), 0, (0.5,)) is None
    assert held_tally(payload(compas()), compas().groups) is not None
    assert runs_of(payload(compas()), 0) == []


def test_many_cells_are_merged_and_sums_stay(many):
    held = payload(many, thresholds=(0.3330078125,))
    assert len(many.cells) > MOST_CELLS >= len(held["cells"]["n"])
    tally = held_tally(held, many.groups)
    for name in ("n", "w", "wh", "wh2"):
        sums = [getattr(t.totals, name) for t in (many, tally)]
        np.testing.assert_allclose(*sums, rtol=1e-12)
    # No run lies across a tenth, an edge of the tally, or the threshold asked for.
    for cut in (0.1, 0.5, 0.9, 0.503, 0.3330078125):
        assert undecided(held, many.grid, cut) == []
    assert undecided(held, many.grid, 0.2509765625) == list(range(20))


def test_measures_at_the_tenths_stay(many):
    tally = held_tally(payload(many), many.groups)
    for wanted, found in zip(
        measured(many, "fnr", 0.4).groups.values(),
        measured(tally, "fnr", 0.4).groups.values(),
        strict=True,
    ):
        for name in ("cost", "fpr", "fnr", "calibration_gap", "brier"):
            assert getattr(found, name) == pytest.approx(getattr(wanted, name), abs=1e-9), name


@pytest.mark.parametrize("least", [10, 25])
def test_no_interval_of_reconcile_rests_on_few_people(least):
    tally = ic.tally(sample(1500, 3, seed=9))
    held = payload(tally, least)
    seen = held_tally(held, tally.groups)
    rule = snapped(ic.reconcile(seen), seen, held)
    cells, cuts = tally.cells, tally.grid.cuts
    for row in rule.rows:
        low, high = np.searchsorted(cuts, [row.lo, row.hi])
        mine = (cells.group == tally.groups.index(row.group)) & (cells.bin >= low)
        mine &= cells.bin < high
        for label in (0, 1):
            rows = cells.n[mine & (cells.label == label)].sum()
            assert rows == 0 or rows >= least
    # Applied to everybody it does what it was made for.
    after = measured(rule.expected(tally), "fnr")
    assert after.equalized_odds_difference == pytest.approx(0.0, abs=1e-9)
