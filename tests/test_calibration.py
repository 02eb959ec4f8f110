import numpy as np
import pytest
from hypothesis import given

import isocost as ic
from isocost.examples import compas, compas_rows
from isocost.measures.calibration import (
    GAP_METHODS,
    gap_debiased,
    gap_equal_mass,
    gap_equal_width,
    gap_smooth,
    levels_of,
)
from tests.conftest import counted, measured, populations, sample


def gaps_of(levels):
    return {name: estimate(levels) for name, estimate in GAP_METHODS.items()}


def levels(score, label, **options):
    group = np.full(len(score), "a")
    return levels_of(ic.tally({"score": score, "label": label, "group": group}, **options), 0)


@given(data=populations(groups=(1, 1)))
def test_equal_width_by_hand(data):
    h, y, w = data["score"], data["label"], data["weight"]
    place = np.clip(np.searchsorted(np.arange(11) / 10, h, side="right") - 1, 0, 9)
    wanted = sum(abs((w * (y - h))[place == b].sum()) for b in range(10)) / w.sum()
    assert gap_equal_width(levels_of(counted(data), 0)) == pytest.approx(wanted, abs=1e-12)
    assert ic.calibration_gap(y, h, sample_weight=w) == pytest.approx(wanted, abs=1e-12)


@given(data=populations(groups=(1, 1)))
def test_the_certified_bound_is_below_every_plug_in_estimate(data):
    gaps = gaps_of(levels_of(counted(data), 0))
    assert gaps["bound"] <= gaps["equal_width"] + 1e-12
    assert gaps["bound"] <= gaps["equal_mass"] + 1e-12
    assert gaps["debiased"] <= gaps["equal_width"] + 1e-12
    assert all(0 <= gap <= 1 for gap in gaps.values())


def test_equal_mass_bins_hold_equally_many():
    random = np.random.default_rng(0)
    h = random.beta(0.5, 4, 10_000)
    y = (random.random(10_000) < h**2).astype(int)
    order = np.argsort(h)
    parts = np.array_split(order, 10)
    wanted = sum(abs((y[p] - h[p]).sum()) for p in parts) / len(h)
    # The tally knows people only by their bin, so the cuts differ by less than a bin's share.
    assert gap_equal_mass(levels(h, y)) == pytest.approx(wanted, abs=2e-3)
    assert ic.calibration_gap(y, h, method="equal_mass") == pytest.approx(wanted, abs=1e-6)


def test_equal_scores_stay_in_one_equal_mass_bin():
    # All at 0.3 with 30 % positives: calibrated, so any cut through them would show a false gap.
    y = np.array([1] * 30 + [0] * 70)
    assert ic.calibration_gap(y, np.full(100, 0.3), method="equal_mass") == pytest.approx(
        0, abs=1e-12
    )


def test_debiasing_takes_off_what_chance_adds():
    random = np.random.default_rng(1)
    plain, debiased = [], []
    for _ in range(200):
        h = random.random(300)
        found = levels(h, (random.random(300) < h).astype(int))
        plain.append(gap_equal_width(found))
        debiased.append(gap_debiased(found))
    # The true gap is 0; the plug-in estimate is far from it.
    assert np.mean(plain) > 0.05
    assert np.mean(debiased) < 0.6 * np.mean(plain)


def test_debiasing_leaves_a_large_gap_alone():
    random = np.random.default_rng(2)
    h = random.uniform(0, 0.7, 100_000)
    found = levels(h, (random.random(100_000) < h + 0.2).astype(int))
    assert gap_debiased(found) == pytest.approx(0.2, abs=0.01)


def smooth_by_quadrature(h, y, bandwidth, points=4000):
    """The smoothed residual integrated directly, with the reflections written out."""
    t = (np.arange(points) + 0.5) / points
    total = np.zeros(points)
    for shift in range(-6, 7, 2):
        for sign in (1, -1):
            away = t[:, None] - (sign * h[None, :] + shift)
            total += (np.exp(-0.5 * (away / bandwidth) ** 2) * (y - h)[None, :]).sum(axis=1)
    total /= bandwidth * np.sqrt(2 * np.pi) * len(h)
    return np.abs(total).mean()


def test_smooth_gap_is_the_fixed_point_of_the_smoothed_error():
    random = np.random.default_rng(3)
    h = random.random(400)
    y = (random.random(400) < h**1.5).astype(int)
    found = gap_smooth(levels(h, y))
    assert smooth_by_quadrature(h, y, found) == pytest.approx(found, rel=2e-3)


def test_perfect_and_constant_scores():
    y = np.tile([0, 1], 50)
    for score in (y.astype(float), np.full(100, 0.5)):
        for gap in gaps_of(levels(score, y)).values():
            assert gap == pytest.approx(0, abs=1e-9)


def test_coarse_tallies_still_give_the_ten_bin_gap():
    data = sample(5_000)
    fine, coarse = measured(ic.tally(data)), measured(ic.tally(data, bins=1))
    for group in fine.groups:
        a, b = fine.groups[group].calibration_gap, coarse.groups[group].calibration_gap
        assert a == pytest.approx(b, abs=1e-12)


def test_the_bound_is_the_distance_of_the_means():
    assert ic.calibration_gap([0, 1, 1], [0.25, 0.5, 0.5], method="bound") == pytest.approx(0.25)


def test_equal_mass_is_the_same_in_any_order_and_for_rows_and_cells():
    rows = compas_rows()
    mine = rows["group"] == "Caucasian"
    y, h = rows["label"][mine], rows["score"][mine]
    found = ic.calibration_gap(y, h, method="equal_mass")
    assert found == pytest.approx(ic.calibration_gap(y[::-1], h[::-1], method="equal_mass"))
    assert found == pytest.approx(gap_equal_mass(levels_of(compas(), 1)))


def test_the_smooth_gap_is_continuous():
    y = np.tile([0, 1], 50)
    for shift in (1e-9, 1e-5, 1e-4):
        apart = np.tile([0.5 - shift, 0.5 + shift], 50)
        together = apart + 10 * shift
        gap = ic.calibration_gap(y, apart, method="smooth")
        assert gap == pytest.approx(ic.calibration_gap(y, together, method="smooth"), abs=2e-3)
