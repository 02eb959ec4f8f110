"""Measures as sorted dots with intervals."""

from itertools import pairwise

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from isocost.measures.table import MEASURES
from tests.test_derived import audited, rows

pytest.importorskip("matplotlib", reason='needs pip install "isocost[plot]"')
from isocost.plots import MeasuresDisplay
from tests.test_plane import no_global_state  # noqa: F401


def test_dots_are_the_numbers_of_the_audit_sorted():
    audit = audited(rows(groups=5, pull=0.4), ["auc", "calibration_slope"], replicates=0)
    display = MeasuresDisplay.from_audit(audit)
    assert [measure.name for measure in display.measures] == ["auc", "calibration_slope"]
    for name, order in display.order.items():
        values = [audit.groups[group][name] for group in order]
        assert values == sorted(values, reverse=True)
        for row, group in enumerate(order):
            dot, bar = display.dots_[name][group], display.bars_[name][group]
            assert dot.get_xydata()[0] == pytest.approx([audit.groups[group][name], row])
            assert bar.get_xdata() == pytest.approx(audit.groups[group].intervals[name])
        labels = [label.get_text() for label in display.axes_[name].get_yticklabels()]
        assert labels == [str(group) for group in order]
        low, high = display.axes_[name].get_ylim()
        assert low > high, "the highest value is on top"
    assert list(display.ideal_) == ["calibration_slope"]
    assert set(display.ideal_["calibration_slope"].get_xdata()) == {1.0}
    assert set(display.overall_["auc"].get_xdata()) == {audit.overall.auc}


def test_what_an_audit_has_not_computed_is_measured_with_its_settings():
    audit = ic.audit(
        compas(), "fpr", 0.6, confidence=0.8, replicates=0, reference="Caucasian", warn=False
    )
    names = ("auc", "impact_ratio", "ppv")
    display = MeasuresDisplay.from_audit(audit, names)
    again = ic.audit(
        compas(), "fpr", 0.6, confidence=0.8, replicates=0, reference="Caucasian",
        measures=names, warn=False,
    )  # fmt: skip
    assert {measure.name for measure in display.measures} == set(names)
    for index, measure in enumerate(display.measures):
        for place, numbers in enumerate(again.groups.values()):
            assert display.values[index, place] == numbers[measure.name]
            assert tuple(display.intervals[index, place]) == numbers.intervals[measure.name]
    assert display.confidence == 0.8


def test_it_keeps_the_least_size_of_groups():
    data = rows(n=600, groups=3)
    data["group"] = np.repeat([0, 1, 2], [900, 750, 150])
    tally = ic.tally(data, weight="weight")
    for least, small in ((20, ()), (200, (2,))):
        audit = ic.audit(tally, min_group=least, replicates=0, warn=False)
        assert MeasuresDisplay.from_audit(audit, ["auc"]).small == small


def test_ideal_values_lie_within_the_limits():
    for measure in MEASURES.values():
        if measure.ideal is not None:
            assert measure.limits[0] < measure.ideal < measure.limits[1]
    calibrated = {"observed_to_expected": 1, "calibration_slope": 1, "calibration_intercept": 0}
    audit = audited(rows(n=20_000, groups=2), list(calibrated), replicates=0)
    for name, ideal in calibrated.items():
        assert MEASURES[name].ideal == ideal
        assert audit.overall[name] == pytest.approx(ideal, abs=0.05)


def test_small_groups_are_hollow_and_the_undefined_are_told():
    data = rows(n=300, groups=4)
    keep = (data["group"] != 1) | (np.arange(len(data["group"])) < 60)
    data = {name: column[keep] for name, column in data.items()}
    data["label"] = np.where(data["group"] == 2, 0, data["label"])
    display = MeasuresDisplay.from_tally(ic.tally(data, weight="weight"), ["auc"])
    assert set(display.small) == {1, 2}
    assert display.order["auc"][-1] == 2
    assert 2 not in display.dots_["auc"]
    assert [text.get_text() for text in display.axes_["auc"].texts] == ["not defined"]
    assert display.dots_["auc"][1].get_markerfacecolor() == "white"
    assert display.dots_["auc"][0].get_markerfacecolor() != "white"
    limits = display.axes_["auc"].get_xlim()
    wide = display.bars_["auc"][1].get_xdata()
    assert limits[1] - limits[0] < np.ptp(wide), "one small group does not squeeze the others"


@pytest.mark.parametrize("groups", [2, 5, 40])
@pytest.mark.parametrize("given", [False, True])
def test_names_do_not_overlap(groups, given):
    from matplotlib.figure import Figure

    data = rows(n=60, groups=groups)
    long = "Native Hawaiian or Other Pacific Islander of a rural county, aged 65 and over, no. "
    data["group"] = np.array([f"{long if g % 3 == 0 else 'no. '}{g}" for g in data["group"]])
    ax = Figure(figsize=(8, 5)).subplots() if given else None
    tally = ic.tally(data, weight="weight")
    display = MeasuresDisplay.from_tally(tally, ["auc", "ppv", "brier"], ax=ax)
    display.figure_.draw_without_rendering()
    for panel in display.axes_.values():
        labels = panel.get_yticklabels()
        assert len({label.get_text() for label in labels}) == groups
        boxes = [label.get_window_extent() for label in labels]
        for upper, lower in pairwise(boxes):
            assert upper.y0 > lower.y0
            assert lower.y1 - upper.y0 < 0.15 * lower.height
    if not given:
        panels = list(display.axes_.values())
        left = [label.get_window_extent().x0 for label in panels[1].get_yticklabels()]
        assert min(left) > panels[0].get_window_extent().x1


def test_an_interval_without_bounds_is_an_arrow_and_not_a_bare_dot():
    display = MeasuresDisplay.from_tally(compas(), ["calibration_slope"])
    display.intervals[0] = [[0.5, np.inf], [-np.inf, np.inf]]
    display.plot()
    assert len(display.arrows_) == 3
    assert sorted(arrow.xy for arrow in display.arrows_) == [(0.0, 0), (1.0, 0), (1.0, 1)]
    assert np.isfinite(display.axes_["calibration_slope"].get_xlim()).all()
    assert "not bounded" in [text.get_text() for text in display.legend_.get_texts()]
