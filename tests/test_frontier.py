import math

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from tests.conftest import DATA, measured, sample
from tests.populations import INCOME, ROWS, drawn


def test_withholding_falls_as_the_tolerance_grows():
    tally = ic.Tally.load(DATA / "income.json")
    found = ic.frontier(tally, "fpr", points=6)
    changed = [p.changed for p in found.points]
    assert all(p.feasible for p in found.points)
    assert changed == sorted(changed, reverse=True)
    assert changed[-1] == 0
    for p in found.points:
        assert p.disparity == pytest.approx(p.tolerance, abs=1e-9)


def test_the_ends_are_the_repair_and_the_present():
    tally = ic.Tally.load(DATA / "income.json")
    found = ic.frontier(tally, "fpr", points=2)
    rule, now = ic.withhold(tally, "fpr"), measured(tally, "fpr")
    repaired = measured(rule.expected(tally), "fpr")
    assert found.points[0].accuracy == pytest.approx(repaired.overall.accuracy)
    assert found.points[-1].accuracy == pytest.approx(now.overall.accuracy)
    assert found.points[-1].tolerance == now.disparity.difference


def test_what_is_not_feasible_is_there_and_empty():
    found = ic.frontier(compas(), "fpr", points=5)
    least = ic.feasibility(compas(), "fpr").smallest_tolerance
    for p in found.points:
        assert p.feasible == (p.tolerance >= least)
        assert math.isnan(p.accuracy) != p.feasible
    assert found.to_dict()["points"][0]["accuracy"] is None
    assert "-" in repr(found)
    assert "<table>" in found._repr_html_()


def test_reconcile_follows_the_hard_rates():
    found = ic.frontier(compas(), method="reconcile", points=4)
    for p in found.points:
        assert p.disparity <= p.tolerance + 1e-9
        assert p.calibration_gap < 1e-9


def test_a_tolerance_with_which_nobody_would_be_selected_is_not_feasible():
    found = ic.frontier(drawn(9, INCOME, ROWS), method="reconcile", points=4)
    assert [p.feasible for p in found.points] == [False, True, True, True]
    assert math.isnan(found.points[0].accuracy)


@pytest.mark.parametrize("method", ["withhold", "coarsen"])
def test_rows_are_tidy(method):
    tally = ic.tally(sample(5_000, groups=3))
    rows = ic.frontier(tally, "fnr", method, points=3).rows()
    assert len(rows) == 3
    assert {"tolerance", "feasible", "changed", "cost 0", "cost 2"} <= set(rows[0])
    feasible = [row for row in rows if row["feasible"]]
    for row in feasible:
        costs = [row[f"cost {g}"] for g in range(3)]
        assert np.ptp(costs) <= row["tolerance"] + 1e-9


def test_coarsening_may_change_scores_little_on_average():
    tally = drawn(0, [(0.6, 1.2), (0.7, 0.9)], [1500, 1500])
    largest, mean = (
        ic.frontier(tally, "fpr", "coarsen", points=3, minimize=minimize).points[1]
        for minimize in ("largest", "mean")
    )
    assert mean.mean_change < largest.mean_change
    with pytest.raises(ic.UsageError, match="minimize: must be"):
        ic.frontier(tally, "fpr", "coarsen", minimize="median")
