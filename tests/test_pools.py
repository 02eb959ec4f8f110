"""Pools: what they are made of, and thresholds that are given up."""

from __future__ import annotations

import numpy as np
import pytest

from isocost.repairs.pools import Bins, Pools, crossing, settle
from tests.test_least_change import sums_of


def test_settling_merges_what_falls_and_what_is_on_the_wrong_side():
    tens, score = np.full(3, 10.0), np.array([0.1, 0.2, 0.3])
    falling = Bins(tens, np.array([5.0, 3.0, 8.0]), score)
    assert falling.values(falling.finest).tolist() == [0.4, 0.8]
    # All of them lie below 0.5, and their share of positives is above.
    assert settle(Bins(tens, np.array([5.0, 3.0, 8.0]), score, (0.5,))).thresholds == ()
    # The third bin lies below 0.5 and has a share of 0.8: it is joined with those below.
    low = settle(Bins(np.array([10.0, 30.0, 10.0]), np.array([1.0, 6.0, 8.0]), score, (0.5,)))
    assert low.thresholds == (0.5,)
    assert low.values(low.finest).tolist() == [0.1, 14 / 40]


def test_narrow_pools_join_the_finest_ones():
    score = np.array([0.1, 0.15, 0.3, 0.6, 0.62, 0.8])
    bins = Bins(np.full(6, 10.0), np.array([1.0, 2.0, 3.0, 6.0, 7.0, 8.0]), score, (0.5,))
    assert bins.narrow(0.1).tolist() == [0, 2, 3, 5, 6]
    assert bins.narrow(1.0).tolist() == [0, 3, 6]
    assert bins.narrow(0.001).tolist() == bins.finest.tolist()


def test_a_threshold_is_given_up_where_the_target_needs_it():
    score = np.array([0.1, 0.3, 0.7, 0.9])
    bins = Bins(np.full(4, 10.0), np.array([1.0, 3.0, 7.0, 9.0]), score, (0.5,))
    # One pool has 20^2 / 40 = 10, one per side (4^2 + 16^2) / 20 = 13.6.
    ways = crossing(bins, 11.8)
    assert len(ways) >= 2
    for pools in ways:
        sums = sums_of(pools, bins)
        assert sum(y * y / w for w, y in sums.values()) == pytest.approx(11.8)
    (all_one,) = crossing(bins, 10.0)
    assert all_one.values.tolist() == [0.5]


def test_pieces_of_a_divided_bin():
    pools = Pools(np.array([0, 2, 4]), np.array([0.2, 0.7]), share=0.25, at=1)
    assert list(pools.pieces()) == [
        (0, 2, [(0.2, 1.0)]),
        (2, 3, [(0.2, 0.25), (0.7, 0.75)]),
        (3, 4, [(0.7, 1.0)]),
    ]
