"""How many people it takes: a plan is carried out many times, and succeeds as often as it says."""

import json

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from tests.populations import drawn_rows

HIGH, LOW = (2, 2), (2, 2.6)
# E[h (1 - h)] / E[1 - h] of Beta(a, b) is a / (a + b + 1).
DIFFERENCE = 2 / 5 - 2 / 5.6


def drawn(sizes, rng):
    score = np.concatenate([rng.beta(*HIGH, sizes[0]), rng.beta(*LOW, sizes[1])])
    label = (rng.random(len(score)) < score).astype(int)
    return ic.tally({"score": score, "label": label, "group": np.repeat(["high", "low"], sizes)})


def test_a_plan_succeeds_as_often_as_it_says():
    rng = np.random.default_rng(1)
    plan = ic.plan(drawn((4000, 4000), rng), "fpr", detect=DIFFERENCE)
    sizes = [int(one.difference) for one in plan.groups.values()]
    done = [
        ic.intervals(drawn(sizes, rng), "fpr", replicates=0).disparities["cost"][0] > 0
        for _ in range(150)
    ]
    assert np.mean(done) == pytest.approx(0.8, abs=0.1)


def test_calibration_can_be_planned():
    rng = np.random.default_rng(2)
    plan = ic.plan(drawn((2000, 2000), rng), "fpr", limit=0.05)
    sizes = [int(one.calibration) for one in plan.groups.values()]
    held = []
    for _ in range(40):
        found = ic.intervals(drawn(sizes, rng), "fpr", replicates=400)
        held += [one["calibration_gap"][1] <= 0.05 for one in found.groups.values()]
    assert 0.65 < np.mean(held) <= 1


@pytest.mark.parametrize("cost", ["fpr", "fnr", "weighted:1,3", "plain:1,2"])
def test_half_the_difference_takes_four_times_as_many(cost):
    one, four = (ic.plan(compas(), cost, detect=d).groups["Caucasian"] for d in (0.04, 0.02))
    assert four.difference == pytest.approx(4 * one.difference, rel=0.01)
    assert four.calibration == one.calibration


def test_more_groups_take_more_people():
    data = drawn_rows(0, [6000], [(2, 3)])
    two, ten = (ic.plan(ic.tally({**data, "group": np.arange(6000) % k})) for k in (2, 10))
    assert ten.groups[0].difference > 1.3 * two.groups[0].difference


def test_small_groups_and_those_without_a_label_are_planned_for():
    rng = np.random.default_rng(3)
    tally = drawn((250, 12), rng)
    only = ic.tally({"score": [0.2] * 40, "label": [0] * 40, "group": ["only"] * 40})
    plan = ic.plan(tally + only, "fpr")
    assert list(plan.groups) == ["high", "low", "only"]
    assert all(one.difference > 100 for one in plan.groups.values())
    assert [one.rows for one in plan.groups.values()] == [250, 12, 40]


def test_no_plan_is_for_fewer_people_than_can_be_compared():
    same = ic.tally({"score": [0.5] * 80, "label": [0, 1] * 40, "group": [0] * 40 + [1] * 40})
    assert ic.plan(same).groups[0].difference == 30
    rare = {"score": [0.1] * 200, "label": ([1] * 5 + [0] * 95) * 2, "group": [0] * 100 + [1] * 100}
    assert ic.plan(ic.tally(rare), "fnr").groups[0].difference == 100


def test_a_plan_as_text_and_json():
    plan = ic.plan(compas(), "fpr", 0.05)
    assert "difference of 0.05" in repr(plan)
    assert "<table" in plan._repr_html_()
    content = json.loads(plan.to_json())
    assert content["groups"][0][1]["rows"] == 3696
    assert content["power"] == 0.8
