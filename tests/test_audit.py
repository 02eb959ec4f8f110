import json
import math

import numpy as np
import pytest

import isocost as ic
from isocost.experiments import compas
from tests.conftest import sample


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
    result = ic.audit(ic.tally(data))
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
    assert lines[0] == "Audit of 6,150 rows; cost fpr, threshold 0.5"
    assert any(
        line.split() == ["generalized", "FPR", "0.4475", "0.3600", "0.4078"] for line in lines
    )
    assert max(len(line) for line in lines[:18]) <= 80


def test_many_groups_get_a_line_each():
    result = ic.audit(ic.tally(sample(5_000, groups=8)))
    header, rows = result.table()
    assert header[0] == "group"
    assert [row[0] for row in rows] == [*map(str, range(8)), "all"]


def test_html_escapes_group_names():
    data = {"score": [0.1, 0.9] * 2, "label": [0, 1] * 2, "group": ["<b>x</b>"] * 2 + ["y"] * 2}
    html = ic.audit(ic.tally(data))._repr_html_()
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
    result = ic.audit(ic.tally(sample(1_000, groups=3, weighted=True), weight="weight"))
    assert np.isclose(sum(m.share for m in result.groups.values()), 1.0)
    assert result.overall.share == 1.0
