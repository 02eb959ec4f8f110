"""How many people it takes: a plan is carried out many times, and succeeds as often as it says."""

import json

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from isocost.judging.plan import drawn as drawn_from
from isocost.judging.plan import moved
from isocost.measures.rates import group_costs
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


def test_a_plan_succeeds_where_a_label_is_rare():
    """Few positives: intervals are skewed, and a sample may lack five of them."""
    rng, shapes = np.random.default_rng(4), ((0.4, 7.6), (0.32, 1.68))

    def sample(sizes):
        return ic.tally(drawn_rows(int(rng.integers(1 << 30)), sizes, shapes))

    # Of Beta(a, b) the generalized FNR is b / (a + b + 1).
    plan = ic.plan(sample((20_000, 20_000)), "fnr", detect=7.6 / 9 - 1.68 / 3)
    sizes = [int(one.difference) for one in plan.groups.values()]
    done = []
    for _ in range(200):
        audit = ic.audit(sample(sizes), "fnr", replicates=0, warn=False)
        enough = audit.verdict.enough
        done.append(enough and audit.intervals.disparities["cost"][0] > 0)
    # A standard error of 0.028.
    assert 0.72 < np.mean(done) < 0.9


def as_tally(cells):
    """Cells of one group as a tally."""
    return ic.Tally(ic.tally({"score": [0.1], "label": [0], "group": ["a"]}).grid, ("a",), cells)


def cost_of(cells, cost):
    return float(group_costs(as_tally(cells).totals, ("a",), cost)[0])


@pytest.mark.parametrize("cost", ["fpr", "fnr", "weighted:1,3", "plain:1,2"])
@pytest.mark.parametrize("weighted", [False, True])
def test_people_are_moved_to_exactly_the_cost(cost, weighted):
    rng, cost = np.random.default_rng(5), ic.Cost.parse(cost)
    data = drawn_rows(5, [500], [(2, 3)]) | {"weight": rng.gamma(2.0, 0.5, 500)}
    cells = ic.tally(data, weight="weight" if weighted else None).cells
    for times in (0.6, 1.0, 1.3):
        goal = times * cost_of(cells, cost)
        after = moved(cells, "a", cost, goal)
        assert cost_of(after, cost) == pytest.approx(goal, abs=1e-9)
        # The share of each label stays where a cost is a rate among its people.
        if not cost.by_base_rate:
            shares = [one.w @ one.label / one.w.sum() for one in (cells, after)]
            assert shares[0] == pytest.approx(shares[1])
    same = moved(cells, "a", cost, cost_of(cells, cost))
    np.testing.assert_allclose(same.w, cells.w, rtol=1e-9)
    # Scores that do not vary are moved themselves.
    constant = ic.tally({"score": [0.5] * 10, "label": [0, 1] * 5, "group": ["a"] * 10}).cells
    goal = 1.1 * cost_of(constant, cost)
    assert cost_of(moved(constant, "a", cost, goal), cost) == pytest.approx(goal)


def test_samples_vary_as_much_as_the_people_they_are_drawn_from():
    rng = np.random.default_rng(6)
    score, weight = rng.beta(2, 3, 4000), rng.gamma(2.0, 0.5, 4000)
    data = {"score": score, "label": np.zeros(4000, int), "group": ["a"] * 4000, "weight": weight}
    cells = ic.tally(data, weight="weight").cells
    samples = [drawn_from(cells, rng, 1000) for _ in range(1500)]
    means = [one.wh.sum() / one.w.sum() for one in samples]
    mean = (weight * score).sum() / weight.sum()
    error = np.sqrt((weight**2 * (score - mean) ** 2).sum()) / weight.sum() * np.sqrt(4.0)
    assert np.mean(means) == pytest.approx(mean, abs=4 * error / np.sqrt(1500))
    assert np.std(means) == pytest.approx(error, rel=0.08)
    assert all(abs(one.n.sum() - 1000) < 60 for one in samples)


def test_a_difference_beyond_a_tolerance_takes_more_people():
    plain, beyond = (ic.plan(compas(), "fpr", detect=0.06, tolerance=t) for t in (0.0, 0.03))
    # Half the distance, four times as many.
    four = 4 * plain.groups["Caucasian"].difference
    assert beyond.groups["Caucasian"].difference == pytest.approx(four, rel=0.15)
    with pytest.raises(ic.UsageError) as error:
        ic.plan(compas(), "fpr", detect=0.05, tolerance=0.05)
    assert str(error.value) == (
        "detect: must be greater than the tolerance, 0.05\n"
        "  got:  0.05\n"
        "  next: plan for a larger difference, or with a lower tolerance"
    )


def test_half_the_difference_takes_four_times_as_many():
    one, four = (ic.plan(compas(), "fpr", detect=d).groups["Caucasian"] for d in (0.04, 0.02))
    assert four.difference == pytest.approx(4 * one.difference, rel=0.15)
    assert four.calibration == one.calibration


def test_more_groups_take_more_people():
    data = drawn_rows(0, [6000], [(2, 3)])
    two, ten = (ic.plan(ic.tally({**data, "group": np.arange(6000) % k})) for k in (2, 10))
    assert ten.groups[0].difference > 1.1 * two.groups[0].difference


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
    # With 100 people of each group the expected positives are five, so that often there are fewer.
    assert 130 < ic.plan(ic.tally(rare), "fnr").groups[0].difference < 400


def test_a_plan_as_text_and_json():
    plan = ic.plan(compas(), "fpr", 0.05)
    assert "difference of 0.05" in repr(plan)
    assert "<table" in plan._repr_html_()
    content = json.loads(plan.to_json())
    assert content["groups"][0][1]["rows"] == 3696
    assert content["power"] == 0.8
