"""Pools: rising values on their sides, and targets met by dividing at most one bin."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isocost.repairs.pools import (
    Pool,
    even_pools,
    fewest_pools,
    information,
    joined,
    meet,
    meet_from_finest,
    move_edge,
    narrow_pools,
    settle,
    worth,
)


def pools_of(w, y, score):
    return [
        Pool(float(a), float(b), float(s), float(s), i, i)
        for i, (a, b, s) in enumerate(zip(w, y, score, strict=True))
    ]


def drawn_sides(seed, count, thresholds=(0.5,)):
    rng = np.random.default_rng(seed)
    w = rng.integers(1, 50, count)
    y = rng.binomial(w, np.sort(rng.random(count)))
    return settle(pools_of(w, y, np.sort(rng.random(count))), thresholds)


def rises(values):
    return all(low <= high + 1e-12 for low, high in pairwise(values))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.floats(0.0, 1.0))
def test_pools_meet_a_target_and_rise(seed, count, part):
    sides = drawn_sides(seed, count)
    assert rises([p.value for p in sides.pools])
    low, high = information(fewest_pools(sides)), information(sides.pools)
    target = low + part * (high - low)
    even = even_pools(sides, target)
    assert information(even) <= target + 1e-9
    assert rises([p.value for p in even])
    narrow = narrow_pools(sides)
    assert rises([p.value for p in narrow])
    assert low - 1e-9 <= information(narrow) <= high + 1e-9
    for start in (even, fewest_pools(sides)):
        pieces = meet(start, sides, target)
        if pieces is None:
            assert start is even
            continue
        values = sorted({value for piece in pieces for value, _ in piece.outcomes})
        got = sums_of(pieces, sides.bins)
        assert sum(y * y / w for w, y in got.values()) == pytest.approx(target, abs=1e-9)
        assert [v for v in values if v in got] == values
        assert rises([max(v for v, _ in p.outcomes) for p in pieces])
        assert sum(len(p.outcomes) > 1 for p in pieces) <= 1
        assert all(p.first == p.last for p in pieces if len(p.outcomes) > 1)
        for piece in pieces:
            for t in sides.thresholds:
                assert all((v >= t) == (piece.low >= t) for v, _ in piece.outcomes)


def test_equal_parts_by_hand():
    # Nobody from 0.4 to 0.6; the share falls from the second to the third part of the upper side.
    score = [0.1, 0.2, 0.3, 0.6, 0.7, 0.8, 0.9]
    pools = pools_of([10] * 7, [1, 2, 3, 5, 8, 6, 9], score)
    sides = settle(pools, (0.5,))
    assert [p.value for p in sides.pools] == pytest.approx([0.1, 0.2, 0.3, 0.5, 0.7, 0.9])
    # One more part for the upper side, which is wider: 0.6 and 0.7 against 0.8 and 0.9.
    two = information([joined(pools[:3]), joined(pools[3:5]), joined(pools[5:])])
    assert [(p.low, p.high) for p in even_pools(sides, two)] == [(0.1, 0.3), (0.6, 0.7), (0.8, 0.9)]
    assert [(p.low, p.high) for p in even_pools(sides, two - 1e-6)] == [(0.1, 0.3), (0.6, 0.9)]


def sums_of(pieces, units):
    """Weight and positives of each value, from the units that get it."""
    sums = {}
    for piece in pieces:
        for value, share in piece.outcomes:
            got = sums.setdefault(value, np.zeros(2))
            for unit in units:
                if piece.first <= unit.first <= piece.last:
                    got += share * np.array([unit.w, unit.y])
    for value, (w, y) in sums.items():
        assert y == pytest.approx(value * w, abs=1e-9)
    return {value: got for value, got in sums.items() if got[0] > 0}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 1.0), st.booleans())
def test_a_moved_edge_is_worth_what_was_asked(seed, part, down):
    rng = np.random.default_rng(seed)
    w = rng.gamma(1.0, size=12)
    units = pools_of(w, w * np.sort(rng.random(12)), np.linspace(0.1, 0.9, 12))
    low, high = joined(units[:5]), joined(units[5:])
    keep = part * worth(low, high)
    pieces = move_edge(low, high, units, keep, down=down)
    sums = sums_of(pieces, units)
    assert sum(len(piece.outcomes) > 1 for piece in pieces) <= 1
    assert [p.first for p in pieces[1:]] == [p.last + 1 for p in pieces[:-1]]
    both = joined(units)
    worth_now = sum(y * y / w for w, y in sums.values()) - both.y**2 / both.w
    assert worth_now == pytest.approx(keep, abs=1e-12)


def between_two_thresholds(seed):
    """Few bins, most of them between thresholds, where values have little room."""
    rng = np.random.default_rng(seed)
    count, thresholds = int(rng.integers(4, 8)), ((0.1, 0.9), (0.2, 0.5, 0.8))[seed % 2]
    w = rng.integers(1, 30, count)
    y = rng.binomial(w, np.clip(np.sort(rng.random(count)) + rng.normal(0, 0.15, count), 0, 1))
    inside = rng.uniform(thresholds[0], thresholds[-1], count)
    score = np.where(rng.random(count) < 0.2, rng.random(count), inside)
    return settle(pools_of(w, y, np.sort(score)), thresholds)


def can_be_met(sides, target):
    """Try every set of pools, and every share of a bin at an edge of two that moves over."""
    w, y = (np.array([getattr(bin_, name) for bin_ in sides.bins]) for name in "wy")
    side = np.searchsorted(sides.thresholds, [bin_.low for bin_ in sides.bins], side="right")
    bounds = (-np.inf, *sides.thresholds, np.inf)
    share = np.linspace(0.0, 1.0, 301)[:, None]
    for edges in product((0, 1), repeat=len(w) - 1):
        pool = np.concatenate([[0], np.cumsum(edges)])
        own = np.array([side[pool == k][0] for k in range(pool[-1] + 1)])
        if (own[pool] != side).any():
            continue
        sums = np.stack([np.bincount(pool, w), np.bincount(pool, y)])
        for at in np.flatnonzero(edges):
            for moving, to in ((at, at + 1), (at + 1, at)):
                if own[pool[moving]] != own[pool[to]]:
                    continue
                step = np.zeros_like(sums)
                step[:, pool[to]] = w[moving], y[moving]
                step[:, pool[moving]] = -w[moving], -y[moving]
                mass, positives = (sums[k] + share * step[k] for k in (0, 1))
                used = mass > 1e-9
                value = np.where(used, positives / np.where(used, mass, 1.0), np.nan)
                low = np.fmax.accumulate(value, axis=1)
                legal = ~(value < np.array(bounds)[own]).any(axis=1)
                legal &= ~(value >= np.array(bounds)[own + 1]).any(axis=1)
                legal &= ~(value < low - 1e-12).any(axis=1)
                surplus = np.where(used, value * positives, 0.0).sum(axis=1) - target
                crossed = surplus[1:] * surplus[:-1] <= 0.0
                if (legal[1:] & legal[:-1] & crossed).any():
                    return True
    return False


def test_a_target_is_refused_only_if_no_single_bin_can_be_divided_for_it():
    refused = 0
    for seed in range(200):
        sides = between_two_thresholds(seed)
        low, high = information(fewest_pools(sides)), information(sides.pools)
        for part in (0.03, 0.3, 0.8):
            target = low + part * (high - low)
            pieces, nearest = meet_from_finest(sides, target)
            if pieces is None:
                refused += 1
                assert meet(fewest_pools(sides), sides, target) is None
                assert not can_be_met(sides, target)
                assert information(nearest) > target
                # What is offered instead can be had.
                assert meet_from_finest(sides, information(nearest))[0]
            elif high - low > 1e-9:
                got = sums_of(pieces, sides.bins)
                assert sum(y * y / w for w, y in got.values()) == pytest.approx(target, abs=1e-9)
                assert all(p.first == p.last for p in pieces if len(p.outcomes) > 1)
    assert refused >= 5


def test_settling_merges_what_falls_and_what_is_on_the_wrong_side():
    falling = pools_of([10, 10, 10], [5, 3, 8], [0.1, 0.2, 0.3])
    assert [p.value for p in settle(falling, ()).pools] == [0.4, 0.8]
    # The third bin lies below 0.5 and has a share of 0.8: it is joined with those below.
    sides = settle(falling, (0.5,))
    assert sides.dropped == (0.5,)
    mostly_low = pools_of([10, 30, 10], [1, 6, 8], [0.1, 0.2, 0.3])
    sides = settle(mostly_low, (0.5,))
    assert [p.value for p in sides.pools] == [0.1, 14 / 40]
    assert [(u.first, u.last) for u in sides.units] == [(0, 0), (1, 2)]
    assert sides.dropped == ()


def test_several_new_edges_where_one_is_not_worth_enough():
    pools = pools_of([10, 10, 10, 10], [0, 3, 7, 10], [0.1, 0.3, 0.7, 0.9])
    whole = [joined(pools)]
    target = information(pools) - 1e-3
    pieces = meet(whole, settle(pools, ()), target)
    assert len({value for piece in pieces for value, _ in piece.outcomes}) == 4
