"""Reliability, predictive values, net benefit and measures, against rows counted one by one."""

from itertools import pairwise

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost.examples import compas, compas_rows
from isocost.measures.derived import net_benefit_curve
from isocost.measures.table import MEASURES
from isocost.plots.measures import reliability
from tests.conftest import DATA, sample
from tests.test_derived import audited, of_group, rows

pytest.importorskip("matplotlib", reason='needs pip install "isocost[plot]"')
from isocost.plots import (
    MeasuresDisplay,
    NetBenefitDisplay,
    PredictiveValuesDisplay,
    ReliabilityDisplay,
)
from tests.test_plane import no_global_state  # noqa: F401


def rows_of(group):
    rows = compas_rows()
    mine = rows["group"] == group
    return rows["label"][mine], rows["score"][mine]


@pytest.mark.parametrize(
    ("strategy", "theirs"), [("equal_width", "uniform"), ("equal_mass", "quantile")]
)
def test_bins_are_those_of_scikit_learn(strategy, theirs):
    from sklearn.calibration import calibration_curve

    data = sample(3000, groups=1)
    found = reliability(ic.tally(data), 0, strategy=strategy, replicates=0)
    share, score = calibration_curve(data["label"], data["score"], n_bins=10, strategy=theirs)
    # Bins of equal mass keep the people of one fine bin together.
    close = 1e-9 if strategy == "equal_width" else 0.02
    assert found.score == pytest.approx(score, abs=close)
    assert found.share == pytest.approx(share, abs=close)
    assert np.isnan(found.low).all()


def test_isotonic_is_that_of_scikit_learn():
    from sklearn.isotonic import IsotonicRegression

    label, score = rows_of("Caucasian")
    found = reliability(compas(), 1, replicates=0)
    model = IsotonicRegression(out_of_bounds="clip").fit(score, label)
    scores, rising = found.isotonic.T
    assert rising == pytest.approx(model.predict(scores))
    assert len(scores) == len(np.unique(score))


def test_isotonic_with_weights_by_hand():
    scores, shares = np.array([0.2, 0.4, 0.8]), np.array([0.5, 0.1, 0.9])
    weight = np.array([1.0, 3.0, 1.0]) * [shares, 1.0 - shares]
    label = np.repeat([1, 0], 3)
    tally = ic.tally(score=np.tile(scores, 2), label=label, weight=weight.ravel(), group=[0] * 6)
    found = reliability(tally, 0, replicates=0).isotonic
    assert found == pytest.approx(np.column_stack([scores, [0.2, 0.2, 0.9]]))


def test_bands_are_binomial_where_a_bin_is_one_score():
    from scipy.special import bdtr

    rows = {"score": [0.3] * 200, "label": [0, 1] * 100, "group": ["a"] * 200}
    found = reliability(ic.tally(rows), 0, replicates=4000, confidence=0.9)
    low, high = found.low[0] * 200, found.high[0] * 200
    # The quantiles of a binomial, up to one step of chance.
    assert bdtr(low - 2, 200, 0.3) < 0.05 < bdtr(low + 1, 200, 0.3)
    assert bdtr(high - 2, 200, 0.3) < 0.95 < bdtr(high + 1, 200, 0.3)


def test_calibrated_scores_stay_in_their_bands_and_others_do_not():
    inside = outside = total = 0
    for seed in range(12):
        data = sample(1500, groups=1, seed=seed)
        found = reliability(ic.tally(data), 0, replicates=200, seed=seed)
        inside += ((found.share >= found.low) & (found.share <= found.high)).sum()
        wrong = reliability(ic.tally(data | {"score": data["score"] ** 2}), 0, replicates=100)
        outside += ((wrong.share < wrong.low) | (wrong.share > wrong.high)).sum()
        total += len(found.share)
    assert 0.9 < inside / total <= 1.0
    assert outside / total > 0.5


def test_weights_widen_the_bands():
    data = sample(3000, groups=1, weighted=True)
    plain = reliability(ic.tally(data), 0, replicates=300)
    heavy = reliability(ic.tally(data, weight="weight"), 0, replicates=300)
    assert (heavy.high - heavy.low).sum() > (plain.high - plain.low).sum()


def test_the_histogram_counts_everybody():
    label, score = rows_of("African-American")
    found = reliability(compas(), 0, replicates=0)
    for counts, wanted in ((found.negatives, 0), (found.positives, 1)):
        expected, _ = np.histogram(score[label == wanted], found.edges)
        assert counts == pytest.approx(expected)


def test_what_is_drawn():
    tally = ic.Tally.load(DATA / "income.json")
    display = ReliabilityDisplay.from_tally(tally, replicates=50)
    assert len(display.axes_) == len(display.histograms_) == 2
    for place, curve in enumerate(display.curves):
        dots = np.asarray(display.dots_[place].get_offsets())
        assert dots == pytest.approx(np.column_stack([curve.score, curve.share]))
        line = display.isotonic_[place].get_xydata()
        assert line == pytest.approx(curve.isotonic)
        bands = np.array(display.bands_[place].get_segments())
        assert bands[:, :, 1] == pytest.approx(np.column_stack([curve.low, curve.high]))
        heights = [bar.get_height() for bar in display.histograms_[place].patches]
        assert sum(heights) == pytest.approx(1.0)
        gap = ic.audit(tally, confidence=None).groups[tally.groups[place]].calibration_gap
        texts = [text.get_text() for text in display.axes_[place].texts]
        assert any(text.endswith(f"calibration gap {gap:.3f}") for text in texts)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"bins": 0}, "bins: must be a whole number from 1 to 65536\n  got:  0"),
        ({"replicates": 2.5}, "replicates: must be a whole number from 0 to 100000\n  got:  2.5"),
        ({"strategy": "wide"}, 'strategy: must be "equal_width" or "equal_mass"'),
    ],
)
def test_wrong_options(options, text):
    with pytest.raises(ic.UsageError) as error:
        reliability(compas(), 0, **options)
    assert text in str(error.value)


# Predictive values and net benefit


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


# Any measures


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
