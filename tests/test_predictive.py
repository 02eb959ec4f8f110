"""The plane of predictive values and the decision curves, against rows counted one by one."""

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost.examples import compas, compas_rows
from isocost.measures.derived import net_benefit_curve
from tests.test_derived import of_group, rows

pytest.importorskip("matplotlib", reason='needs pip install "isocost[plot]"')
from isocost.plots import NetBenefitDisplay, PredictiveValuesDisplay
from tests.test_plane import no_global_state  # noqa: F401


def tally_of(data, **options):
    return ic.tally(data, weight="weight", **options)


@pytest.mark.parametrize("weighted", [False, True])
def test_net_benefit_is_that_of_the_confusion_matrix(weighted):
    data = rows(groups=3, seed=1, weighted=weighted)
    thresholds = [0.07, 0.25, 0.5, 0.9]
    curve = net_benefit_curve(tally_of(data, edges=(0.07,)), thresholds)
    assert curve.groups == (0, 1, 2)
    for group in curve.groups:
        y, h, w = of_group(data, group)
        for place, t in enumerate(thresholds):
            (tn, fp), (fn, tp) = sklearn.metrics.confusion_matrix(y, h >= t, sample_weight=w)
            n = tn + fp + fn + tp
            assert curve.net_benefit[group, place] == pytest.approx((tp - fp * t / (1 - t)) / n)
            assert curve.selection_rate[group, place] == pytest.approx((tp + fp) / n)
            mu = (fn + tp) / n
            assert curve.treat_all[group, place] == pytest.approx(mu - (1 - mu) * t / (1 - t))


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
def test_the_curve_and_its_interval_are_those_of_the_audit(threshold):
    tally = tally_of(rows(groups=3, weighted=True))
    audit = ic.audit(tally, "fpr", threshold, measures=["net_benefit"], replicates=0, warn=False)
    display = NetBenefitDisplay.from_tally(tally, threshold)
    for index, numbers in enumerate(audit.groups.values()):
        assert display.curve.net_benefit[index, 0] == pytest.approx(numbers.net_benefit, abs=1e-12)
        ends = (display.low[index, 0], display.high[index, 0])
        assert ends == pytest.approx(numbers.intervals["net_benefit"], abs=1e-12)


def test_thresholds_are_edges_up_to_the_highest_score():
    data = rows(seed=2)
    data["score"] = data["score"] * 0.05
    tally = tally_of(data)
    curve = net_benefit_curve(tally)
    assert set(curve.threshold) <= set(tally.grid.cuts)
    assert 40 < len(curve.threshold) <= 100
    assert curve.threshold[-1] == pytest.approx(0.05, abs=2 / 1024)
    assert len(net_benefit_curve(compas()).threshold) > 75
    with pytest.raises(ic.UsageError, match="must be an edge of the tally"):
        net_benefit_curve(tally, [0.0123])
    assert len(net_benefit_curve(ic.tally(data, bins=2)).threshold) == 1


def test_decision_curves_are_drawn():
    display = NetBenefitDisplay.from_audit(ic.audit(compas(), replicates=0))
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["African-American", "Caucasian"]
    for index, line in enumerate(display.lines_):
        assert line.get_xdata() == pytest.approx(display.curve.threshold)
        assert line.get_ydata() == pytest.approx(display.curve.net_benefit[index])
        x, y = display.treat_all_[index].get_data()
        mu = display.curve.base_rate[index]
        assert y[0] == pytest.approx(mu)
        assert np.interp(mu, x, y) == pytest.approx(0, abs=1e-3), "it is 0 where t is mu"
    assert len(display.bands_) == 2
    assert "treat all" in [text.get_text() for text in display.legend_.get_texts()]
    bare = NetBenefitDisplay.from_audit(ic.audit(compas(), confidence=None))
    assert bare.bands_ == []
    assert np.isnan(bare.low).all()


def test_a_group_without_positives_has_only_harm():
    data = rows(groups=2)
    data["label"] = np.where(data["group"] == 1, 0, data["label"])
    display = NetBenefitDisplay.from_tally(tally_of(data))
    assert display.curve.net_benefit[1].max() == 0
    low, high = display.axes_[1].get_ylim()
    assert low < -0.01 < 0.01 < high


@pytest.mark.parametrize("weighted", [False, True])
def test_predictive_values_are_those_of_the_rows(weighted):
    data = rows(groups=3, seed=3, weighted=weighted)
    display = PredictiveValuesDisplay.from_tally(tally_of(data), threshold=0.3)
    for group in range(3):
        y, h, w = of_group(data, group)
        for column, side in enumerate((h < 0.3, h >= 0.3)):
            assert display.observed[group, column] == pytest.approx(
                np.average(y[side], weights=w[side])
            )
            assert display.predicted[group, column] == pytest.approx(
                np.average(h[side], weights=w[side])
            )


def test_intervals_are_those_of_the_audit():
    audit = ic.audit(compas(), threshold=0.6, confidence=0.9, replicates=0, warn=False)
    display = PredictiveValuesDisplay.from_audit(audit)
    assert display.threshold == 0.6
    for index, numbers in enumerate(audit.groups.values()):
        names = ("false_omission_rate", "ppv")
        assert display.observed[index] == pytest.approx([numbers[name] for name in names])
        spans = np.array([numbers.intervals[name] for name in names])
        assert display.intervals[index] == pytest.approx(spans)


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 50)), min_size=2, max_size=12,
        unique_by=lambda level: level[0],
    ),
    st.integers(1, 19),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_calibrated_scores_lie_in_the_area(levels, step):
    """PPV >= t >= FOR, and the base rate is s PPV + (1 - s) FOR."""
    score, label, weight = [], [], []
    for twentieth, n in levels:
        h = twentieth / 20
        score += [h, h]
        label += [0, 1]
        weight += [max(n * (1 - h), 1e-9), max(n * h, 1e-9)]
    data = {"score": score, "label": label, "weight": weight, "group": ["a"] * len(score)}
    t = step / 20
    tally = tally_of(data, edges=(t,))
    display = PredictiveValuesDisplay.from_tally(tally, threshold=t, confidence=None)
    omitted, precision = display.observed[0]
    assert display.predicted[0] == pytest.approx(display.observed[0], abs=1e-6, nan_ok=True)
    s = net_benefit_curve(tally, t).selection_rate[0, 0]
    if not display.shown:
        assert min(s, 1 - s) == pytest.approx(0)
        return
    assert precision >= t - 1e-6
    assert omitted <= t + 1e-6
    assert display.base_rates[0] == pytest.approx(s * precision + (1 - s) * omitted)


def test_the_plane_is_drawn():
    display = PredictiveValuesDisplay.from_tally(compas())
    for index, group in enumerate(display.groups):
        for marks, points in (
            (display.observed_, display.observed[index]),
            (display.predicted_, display.predicted[index]),
            (display.base_rates_, [display.base_rates[index]] * 2),
        ):
            assert marks[group].get_xydata()[0] == pytest.approx(points)
        s = net_benefit_curve(compas(), 0.5).selection_rate[index, 0]
        (x, y), (mu, _) = display.lines_[group].get_xydata()
        assert (mu - y) / (mu - x) == pytest.approx(-(1 - s) / s)
    corners = display.area_.get_paths()[0].vertices
    assert corners.min(axis=0) == pytest.approx([0, 0.5])
    assert corners.max(axis=0) == pytest.approx([0.5, 1])
    assert [text.get_text() for text in display.texts_] == list(display.groups)


def test_many_groups_have_a_few_names_and_the_undefined_are_told():
    data = rows(n=80, groups=20)
    data["score"] = np.where(data["group"] == 3, data["score"] * 0.4, data["score"])
    display = PredictiveValuesDisplay.from_tally(tally_of(data))
    assert 3 not in display.shown
    assert "nobody or everybody is selected: 3" in display.legend_.get_title().get_text()
    assert 2 <= len(display.texts_) <= 4
    data["score"] = data["score"] * 0.4
    nobody = PredictiveValuesDisplay.from_tally(tally_of(data))
    assert nobody.shown == nobody.texts_ == []


def test_from_predictions_makes_the_edges_it_needs():
    data = compas_rows()
    args = data["label"], data["score"], data["group"]
    display = PredictiveValuesDisplay.from_predictions(*args, threshold=0.333)
    other = PredictiveValuesDisplay.from_tally(compas(edges=(0.333,)), threshold=0.333)
    assert display.observed == pytest.approx(other.observed)
    curve = NetBenefitDisplay.from_predictions(*args, [0.333, 0.5]).curve
    assert curve.threshold == pytest.approx([0.333, 0.5])


def test_wrong_arguments():
    with pytest.raises(ic.UsageError, match="must be a NetBenefitCurve"):
        NetBenefitDisplay(3)
    with pytest.raises(ic.UsageError, match="must be an audit"):
        PredictiveValuesDisplay.from_audit(compas())
