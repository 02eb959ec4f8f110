"""Feasibility and Algorithm 1 together: what one promises the other does."""

import math
import pickle
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from isocost.examples import compas
from isocost.measures.calibration import gap_equal_width, levels_of
from tests.conftest import counted, measured, populations

COSTS = st.sampled_from(["fpr", "fnr", "weighted:1,3", "plain:2,1"])


@given(data=populations(groups=(2, 6)), cost=COSTS, tolerance=st.sampled_from([0.0, 0.01, 0.1]))
def test_the_target_is_met_exactly_or_the_nearest_thing_is_said(data, cost, tolerance):
    tally = counted(data)
    verdict = ic.feasibility(tally, cost, tolerance)
    if verdict.feasible:
        rule = ic.withhold(tally, cost, tolerance)
        reached = tolerance
    else:
        with pytest.raises(ic.InfeasibleError):
            ic.withhold(tally, cost, tolerance)
        with pytest.warns(ic.InfeasibleWarning, match="not feasible"):
            rule = ic.withhold(tally, cost, tolerance, infeasible="closest")
        reached = verdict.smallest_tolerance
        assert rule.notes
    assert all(0 <= share <= 1 for share in rule.alpha.values())
    after = measured(rule.expected(tally), cost)
    assert after.disparity.difference <= max(reached, 0) + 1e-9
    goal = verdict.target_cost - reached
    for group, share in rule.alpha.items():
        if share > 0:
            assert after.groups[group].cost == pytest.approx(goal, abs=1e-9)
        else:
            assert after.groups[group].cost == pytest.approx(verdict.costs[group], abs=1e-12)


@given(data=populations(groups=(2, 3)), cost=COSTS)
def test_the_gap_shrinks_at_least_by_what_is_kept(data, cost):
    tally = counted(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ic.InfeasibleWarning)
        rule = ic.withhold(tally, cost, infeasible="closest")
    after = rule.expected(tally)
    for place, group in enumerate(tally.groups):
        before_gap = gap_equal_width(levels_of(tally, place))
        after_gap = gap_equal_width(levels_of(after, place))
        assert after_gap <= (1 - rule.alpha[group]) * before_gap + 1e-12


@given(data=populations(groups=(2, 5)), cost=COSTS)
def test_the_smallest_tolerance_is_feasible_and_none_below_it(data, cost):
    tally = counted(data)
    smallest = ic.feasibility(tally, cost).smallest_tolerance
    assert ic.feasibility(tally, cost, smallest).feasible
    if smallest > 1e-6:
        assert not ic.feasibility(tally, cost, smallest * 0.999).feasible


def test_what_it_takes_is_enough():
    # Bring the target group's cost down to what is required, and it becomes feasible.
    verdict = ic.feasibility(compas(), "fpr")
    assert not verdict.feasible
    assert verdict.target_group == "African-American"
    assert verdict.unreachable == ("Caucasian",)
    assert verdict.required_cost == verdict.trivial_costs["Caucasian"]
    assert verdict.alpha["Caucasian"] == pytest.approx(2.6006, abs=5e-5)
    scale = verdict.required_cost / verdict.target_cost
    easier = ic.Cost(fp={"African-American": scale, "Caucasian": 1}, fn=0)
    assert ic.feasibility(compas(), easier).feasible


def test_scores_that_cost_more_than_saying_nothing_are_named():
    data = {
        "score": [0.9, 0.1, 0.8, 0.2, 0.2, 0.8, 0.4, 0.6],
        "label": [0, 1, 0, 1, 0, 1, 0, 1],
        "group": ["wrong"] * 4 + ["right"] * 4,
    }
    verdict = ic.feasibility(ic.tally(data), "fpr")
    assert verdict.uninformative == ("wrong",)
    assert verdict.alpha["wrong"] == 0.0
    other = {
        **data,
        "group": ["wrong"] * 4 + ["worse"] * 4,
        "score": [*data["score"][:4], 1, 0, 1, 0],
    }
    stuck = ic.feasibility(ic.tally(other), "fpr")
    assert stuck.unreachable == ("wrong",)
    assert math.isinf(stuck.alpha["wrong"])
    assert stuck.to_dict()["alpha"] == [["worse", 0.0], ["wrong", None]]


def test_the_message_a_person_understands():
    with pytest.raises(ic.InfeasibleError) as error:
        ic.withhold(compas(), "fpr")
    text = str(error.value)
    assert "Caucasian cannot" in text
    assert "calibrated scores of Caucasian cannot cost more than 0.3936" in text
    assert "accept tolerance=0.0539 or more" in text
    assert error.value.feasibility.smallest_tolerance == pytest.approx(0.0539, abs=1e-4)
    assert isinstance(error.value, ic.IsocostError)
    back = pickle.loads(pickle.dumps(error.value))
    assert str(back) == text
    assert ic.feasibility(compas(), "fpr", 0.0539).feasible


def test_closest_says_so_in_rule_and_warning():
    with pytest.warns(ic.InfeasibleWarning, match="every score of Caucasian becomes"):
        rule = ic.withhold(compas(), "fpr", infeasible="closest")
    assert rule.alpha == {"African-American": 0.0, "Caucasian": 1.0}
    assert "costs differ by 0.0539" in rule.notes[0]
    assert rule.notes[0] in repr(rule)


def test_the_rule_says_where_it_comes_from():
    rule = ic.withhold(compas(), "fpr", 0.06)
    assert rule.made_from["n"] == 6150
    assert rule.made_from["groups"][1]["base_rate"] == pytest.approx(0.3936, abs=5e-5)
    assert rule.settings == {"tolerance": 0.06, "infeasible": "raise"}
    assert rule.rows[0].value == rule.made_from["groups"][1]["base_rate"]


def test_closest_does_not_speak_of_groups_it_leaves_alone():
    data = {
        "score": [0.95, 0.05] * 2 + [0.6, 0.5] * 2,
        "label": [0, 1] * 4,
        "group": ["A"] * 4 + ["B"] * 4,
    }
    verdict = ic.feasibility(ic.tally(data), "fpr")
    assert "withholding cannot raise the cost of B above the 0.6000 that it has" in str(verdict)
    with pytest.warns(ic.InfeasibleWarning) as caught:
        rule = ic.withhold(ic.tally(data), "fpr", infeasible="closest")
    assert rule.rows == ()
    assert "becomes the group's base rate" not in str(caught[0].message)


def test_the_unit_of_cost_does_not_matter():
    small, one = (ic.feasibility(compas(), ic.Cost(fp=unit, fn=0)) for unit in (1e-13, 1.0))
    assert small.alpha == pytest.approx(one.alpha)
    assert small.feasible == one.feasible
