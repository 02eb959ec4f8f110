"""At which thresholds rates can be equal."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from tests.conftest import measured
from tests.populations import INCOME, ROWS, drawn, from_counts


@pytest.fixture(scope="module")
def found():
    return ic.reconcilable(compas())


def test_it_says_what_reconcile_does(found):
    tally = compas()
    for point in found.points:
        try:
            rule = ic.reconcile(tally, point.threshold)
        except ic.InfeasibleError as error:
            assert not point.feasible
            verdict = error.feasibility
            assert point.selected == verdict.corner.selected
            assert point.tolerance == pytest.approx(verdict.smallest_tolerance, nan_ok=True)
            continue
        after = measured(rule.expected(tally), threshold=point.threshold)
        if not point.feasible:
            # Nobody, or everybody, is selected now, and there is no other way.
            assert after.overall.selection_rate in (0.0, 1.0)
            continue
        assert point.tolerance == 0.0
        rates = {group: m.selection_rate for group, m in after.groups.items()}
        assert point.selection_rates == pytest.approx(rates, abs=1e-9)
        assert point.accuracy == pytest.approx(after.overall.accuracy, abs=1e-9)
        assert point.lowest - 1e-9 <= point.selection_rate <= point.highest + 1e-9


def test_the_ends_of_what_is_possible_can_be_had(found):
    point = next(point for point in found.points if point.threshold == 0.5)
    highest = ic.reconcile(compas(), floor={"overall_selection_rate": point.highest - 1e-6})
    rate = measured(highest.expected(compas())).overall.selection_rate
    assert rate == pytest.approx(point.highest, abs=2e-6)
    with pytest.raises(ic.InfeasibleError):
        ic.reconcile(compas(), floor={"overall_selection_rate": point.highest + 1e-4})


def test_compas(found):
    assert found.feasible == (0.4, 0.5, 0.6, 0.7)
    by_threshold = {point.threshold: point for point in found.points}
    assert by_threshold[0.3].selected == "everybody"
    assert 0.0 < by_threshold[0.3].tolerance < 0.001
    assert by_threshold[0.9].selected == "nobody"
    assert math.isnan(by_threshold[0.9].tolerance)
    header, rows = found.table()
    assert header[:3] == ["threshold", "equal rates", "least tolerance"]
    assert [row[1] for row in rows][3:5] == ["yes", "yes"]
    assert rows[-1][1:4] == ["only if nobody", "-", "-"]
    assert repr(found).startswith("Calibrated scores with equal fpr and fnr, by threshold\n")
    assert "<table" in found._repr_html_()
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["points"][-1]["tolerance"] is None
    assert plain["points"][4]["selection_rates"][1][0] == "Caucasian"


def test_more_groups_and_limits():
    tally = drawn(6, INCOME, ROWS)
    free, bound = (
        ic.reconcilable(tally, [0.3, 0.5], floor=floor) for floor in (None, {"accuracy": 0.7})
    )
    header, _ = free.table()
    assert header[-3:] == ["least selected", "most selected", "accuracy"]
    for a, b in zip(free.points, bound.points, strict=True):
        assert not b.tolerance < a.tolerance - 1e-9 or a.selected
    assert not free.points[1].feasible
    assert free.points[1].selected == "nobody"
    assert free.points[1].tolerance > 0.0
    assert min(free.points[1].selection_rates.values()) > 0.0


def test_a_floor_that_no_tolerance_meets_is_no():
    point = ic.reconcilable(compas(), 0.5, floor={"accuracy": 0.9}).points[0]
    assert (point.feasible, point.selected, point.answer) == (False, None, "no")
    assert math.isnan(point.tolerance)
    assert np.isnan(list(point.selection_rates.values())).all()


def test_perfect_scores_can_be_reconciled_everywhere():
    tally = from_counts({g: [(0.0, n, 0), (1.0, 50, 50)] for g, n in (("a", 60), ("b", 90))})
    found = ic.reconcilable(tally)
    assert len(found.feasible) == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"thresholds": []}, "thresholds: must be at least one number"),
        ({"thresholds": [0.0]}, "thresholds: must be a number strictly between 0 and 1"),
        ({"thresholds": [0.123]}, "must be an edge of the tally"),
        ({"equal": "auc"}, "equal: must name rates"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ic.UsageError, match=message):
        ic.reconcilable(compas(), **arguments)


def test_one_group_is_not_enough():
    with pytest.raises(ic.DataError, match="at least two values"):
        ic.reconcilable(compas().select(["Caucasian"]))
