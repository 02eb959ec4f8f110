import json
import math
import re

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from isocost.measures.table import MEASURES
from tests.conftest import DATA, measured, sample


def test_disparities():
    result = ic.audit(compas(), "fpr")
    d = result.disparity
    assert (d.highest, d.lowest) == ("African-American", "Caucasian")
    assert d.difference == pytest.approx(0.4475 - 0.3600, abs=1e-4)
    assert d.ratio == pytest.approx(0.3600 / 0.4475, abs=1e-3)
    assert result.generalized_equalized_odds_difference == pytest.approx(0.5263 - 0.4369, abs=1e-4)
    assert result.equalized_odds_difference == pytest.approx(0.5921 - 0.3724, abs=1e-4)
    assert result.statistical_parity_difference == pytest.approx(0.4894 - 0.2498, abs=1e-4)
    assert result.four_fifths_ratio == pytest.approx(0.2498 / 0.4894, abs=1e-3)


def test_nobody_selected_has_no_ratio():
    data = {"score": [0.1, 0.2] * 2, "label": [0, 1] * 2, "group": ["a", "a", "b", "b"]}
    result = measured(ic.tally(data))
    assert math.isnan(result.four_fifths_ratio)
    assert "nobody is selected" in repr(result)
    assert result.to_dict()["four_fifths_ratio"] is None
    assert "NaN" not in result.to_json()


def test_a_threshold_inside_a_bin_is_refused():
    with pytest.raises(ic.UsageError, match="must be an edge of the tally"):
        ic.audit(compas(), threshold=0.333)
    assert ic.audit(compas(edges=(0.333,)), threshold=0.333).threshold == 0.333


def test_json_is_complete_and_plain():
    content = json.loads(ic.audit(compas(), "weighted:1,3").to_json())
    assert content["format"] == "isocost-audit"
    names = {pair[0] for pair in content["groups"]}
    assert names == {"African-American", "Caucasian"}
    numbers = dict(content["groups"][0][1])
    for name in (
        "base_rate",
        "generalized_fpr",
        "fnr",
        "brier",
        "calibration_gap_smooth",
        "trivial_cost",
    ):
        assert isinstance(numbers[name], float)
    assert content["feasibility"]["feasible"] in (True, False)


def test_print_is_a_table_a_person_can_read():
    text = str(ic.audit(compas(), "fpr"))
    lines = text.splitlines()
    assert lines[0] == "Audit of 6,150 rows; cost fpr, threshold 0.5; 0.95 intervals"
    assert "generalized FPR  0.4475 [.440, .456]  0.3600 [.352, .367]  0.4078 [.402, .414]" in lines
    assert max(len(line) for line in lines[:18]) <= 80
    plain = str(measured(compas(), "fpr")).splitlines()
    assert "generalized FPR            0.4475     0.3600  0.4078" in plain


def test_many_groups_get_a_line_each():
    with pytest.warns(ic.UncertainWarning, match="which group's errors cost most: . does in"):
        result = ic.audit(ic.tally(sample(5_000, groups=8)))
    header, rows = result.table()
    assert header[0] == "group"
    assert [row[0] for row in rows] == [*map(str, range(8)), "all"]


def test_html_escapes_group_names():
    data = {"score": [0.1, 0.9] * 2, "label": [0, 1] * 2, "group": ["<b>x</b>"] * 2 + ["y"] * 2}
    html = measured(ic.tally(data))._repr_html_()
    assert "<b>x" not in html
    assert "&lt;b&gt;x" in html


def test_a_cost_per_group_has_no_overall_value():
    cost = ic.Cost(fp={"African-American": 1, "Caucasian": 2}, fn=1)
    result = ic.audit(compas(), cost)
    assert math.isnan(result.overall.cost)
    assert result.to_dict()["overall"]["cost"] is None
    row = next(row for row in result.table()[1] if row[0] == "cost")
    assert row[-1] == "-"


def test_shares_add_up():
    result = measured(ic.tally(sample(1_000, groups=3, weighted=True), weight="weight"))
    assert np.isclose(sum(m.share for m in result.groups.values()), 1.0)
    assert result.overall.share == 1.0


def test_every_number_of_the_audit_has_an_interval_that_holds_it():
    result = ic.audit(compas(), "fpr")
    for m in result.groups.values():
        assert set(m.intervals) == {*MEASURES, "cost", "trivial_cost", "share"}
        for name, (low, high) in m.intervals.items():
            assert low - 1e-12 <= getattr(m, name) <= high + 1e-12, name
    found = result.intervals
    assert found.feasible_probability == 0.0
    assert found.direction_established
    assert found.disparities["cost"][0] > 0
    low, high = found.alpha["Caucasian"]
    assert 1 < low < 2.6006 < high
    content = json.loads(result.to_json())
    assert content["intervals"]["confidence"] == 0.95
    assert len(content["groups"][0][1]["intervals"]["cost"]) == 2


def test_a_direction_that_is_not_established_is_warned_of_and_told():
    tally = ic.Tally.load(DATA / "health.json")
    with pytest.warns(ic.UncertainWarning, match="not established at 95% whose errors cost more"):
        result = ic.audit(tally, "weighted:1,3")
    assert "It is not established that the errors of 1.0 cost most" in result.advice
    assert "about 3 times as many rows would show it" in result.advice
    assert "too little data to rule out a gap of 0.1" in result.advice


def test_equal_costs_are_not_warned_of():
    tally = compas()
    rule = ic.equalize_odds(tally)
    result = ic.audit(rule.expected(tally), "fpr")
    assert not result.differs
    assert "Nothing to do" in result.advice


def test_advice_when_infeasible_names_what_can_be_had():
    advice = ic.audit(compas(), "fpr").advice
    assert "The errors of African-American cost more, beyond chance" in advice
    assert "Not feasible: the scores of African-American cost 0.4475" in advice
    assert "Instead: reconcile keeps scores calibrated" in advice
    assert "To do it" not in advice


def test_advice_when_feasible_says_what_it_does_to_whom():
    tally = ic.Tally.load(DATA / "income.json")
    with pytest.warns(ic.UncertainWarning):
        advice = ic.audit(tally, "fpr").advice
    assert "To do it: withhold gives 11.8% of 0.0 (between 0.0% and" in advice
    assert "This is uncertain" not in advice


def test_advice_promises_no_more_of_coarsening_than_decisions_allow():
    tally = ic.Tally.load(DATA / "income.json")
    with pytest.warns(ic.UncertainWarning):
        advice = ic.audit(tally, "fpr", 0.3).advice
    assert "reaches the same costs where the decisions at 0.3 allow it" in advice


def graded(many, shrink=0.1):
    """Calibrated scores that say less for each group than for the one before."""
    rng = np.random.default_rng(1)
    which = rng.integers(0, many, 20_000 * many)
    score = 0.5 + (rng.random(len(which)) - 0.5) * (1.0 - shrink * which)
    return {"score": score, "label": rng.random(len(which)) < score, "group": which}


def test_advice_names_the_few_groups_that_matter():
    result = ic.audit(ic.tally(graded(7, 0.12)), "fnr", replicates=0)
    alpha = result.feasibility.alpha
    assert len(result.feasibility.changed) == 6
    assert "withholding the scores of some people in 6 groups raises the cost" in result.advice
    todo = next(line for line in result.advice.split("\n") if line.startswith("To do it"))
    assert " and 3 more the base rate" in todo
    largest = sorted(alpha.values(), reverse=True)
    assert [f"{share:.1%}" for share in largest[:3]] == re.findall(r"([\d.]+%) of", todo)
    # Elsewhere every share is told.
    assert all(f"{alpha[group]:.2%} of" in str(result.feasibility) for group in range(6))


def test_advice_names_the_groups_that_are_most_off():
    data = graded(5)
    data["score"] = data["score"] * (1.0 - 0.05 * (data["group"] + 2))
    result = ic.audit(ic.tally(data), "fnr", replicates=0)
    first = result.advice.split("\n")[0]
    gaps = sorted((m.calibration_gap for m in result.groups.values()), reverse=True)
    assert first.startswith("Not calibrated: ")
    assert [f"{gap:.3f}" for gap in gaps[:3]] == re.findall(r"\(gap ([\d.]+)", first)
    assert "and 2 more. A score" in first


def test_advice_of_three_groups_names_all():
    result = ic.audit(ic.tally(graded(4)), "fnr", replicates=0)
    assert len(result.feasibility.changed) == 3
    assert " more the base rate" not in result.advice
    assert all(f"% of {group}" in result.advice for group in range(3))


def test_advice_when_not_calibrated_is_to_recalibrate_first():
    data = sample(20_000)
    data["score"] = data["score"] * 0.6
    advice = ic.audit(ic.tally(data), "fnr").advice
    assert advice.startswith("Not calibrated: ")
    assert "on average too low by 0." in advice
    assert "Recalibrate each group first" in advice
    over = {**data, "score": 1 - (1 - data["score"]) * 0.6}
    assert "too high" in measured(ic.tally(over)).advice


def test_advice_on_scores_that_are_worse_than_none():
    data = sample(20_000)
    data["score"] = 1 - data["score"]
    assert "they are worse than no scores" in measured(ic.tally(data), "fpr").advice


def test_advice_on_an_uncertain_verdict():
    # A trivial cost just above the target: other people might have made it infeasible.
    groups = {"African-American": 1.0, "Caucasian": 1.137}
    result = ic.audit(compas(), ic.Cost(fp=groups, fn=0))
    assert 0.025 < result.intervals.feasible_probability < 0.975
    assert "This is uncertain: it is feasible in" in result.advice


def test_advice_on_weights():
    assert "the ratio of the weights cancels" in measured(compas(), "weighted:1,3").advice
    assert "the ratio" not in measured(compas(), "weighted:2,2").advice


def test_options_of_the_intervals():
    wide = ic.audit(compas(), "fpr", confidence=0.99).groups["Caucasian"].intervals["cost"]
    narrow = ic.audit(compas(), "fpr", confidence=0.8).groups["Caucasian"].intervals["cost"]
    assert np.ptp(wide) > np.ptp(narrow)
    again = ic.audit(compas(), "fpr", seed=1).groups["Caucasian"].intervals["cost"]
    assert again != ic.audit(compas(), "fpr", seed=2).groups["Caucasian"].intervals["cost"]
    closed = ic.audit(compas(), "fpr", replicates=0)
    assert closed.intervals.method == "analytic"
    assert closed.groups["Caucasian"].intervals["cost"] == pytest.approx(narrow, abs=0.01)
    with pytest.raises(ic.UsageError, match="confidence: must be a number"):
        ic.audit(compas(), confidence=95)


def test_without_resamples_nothing_speaks_of_them():
    rng = np.random.default_rng(0)
    score = rng.beta(2, 3, 3000)
    label = (rng.random(3000) < score).astype(int)
    tally = ic.tally({"score": score, "label": label, "group": np.arange(3000) % 3})
    with pytest.warns(ic.UncertainWarning) as caught:
        result = ic.audit(tally, replicates=0)
    told = [str(warning.message) for warning in caught] + [repr(result), result._repr_html_()]
    assert not any("resample" in text for text in told)
    assert str(caught[0].message) == (
        "It is not established at 95% which group's errors cost most."
    )
    assert "It is not established that the errors of 1 cost most. If" in result.advice
    plain = json.loads(result.to_json())
    assert plain["intervals"]["feasible_probability"] is None
    assert "resample" not in result.to_json()
    with pytest.warns(ic.UncertainWarning, match="of resamples"):
        ic.audit(tally, replicates=200)
