import json
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

import isocost as ic
from isocost.learn.calibrator import GroupCalibrator
from isocost.repairs.recalibrate import (
    CLIP,
    SHRINKAGE,
    BetaMap,
    HistogramMap,
    IsotonicMap,
    SigmoidMap,
    fit_map,
)
from tests.conftest import populations

METHODS = ("sigmoid", "isotonic", "histogram", "beta")
MONOTONE = ("sigmoid", "isotonic", "beta")
TRUTH = {"a": BetaMap(0.5, 0.6, -0.8), "b": BetaMap(1.5, 1.2, 0.7), "c": BetaMap(1.0, 1.0, 0.0)}


def people(rows=12_000, seed=0, truth=TRUTH):
    """Scores that are miscalibrated in a known way, another one in each group."""
    random = np.random.default_rng(seed)
    names = np.array(list(truth))
    group = names[random.integers(0, len(names), rows)]
    score = random.beta(1.4, 1.6, rows)
    chance = np.select([group == name for name in names], [truth[n](score) for n in names])
    return score, (random.random(rows) < chance).astype(int), group, chance


def fitted(method="sigmoid", rows=2_000, **options):
    score, label, group, _ = people(rows)
    return GroupCalibrator(method, **options).fit(score, label, sensitive_features=group)


def fit_rows(method, score, label, weight, **options):
    return fit_map(method, score, weight * label, weight * (1 - label), **options)


# Known truth


def test_beta_recovers_the_true_map_of_each_group():
    score, label, group, _ = people(90_000)
    found = GroupCalibrator("beta", shrinkage=0, cv=None)
    found.fit(score, label, sensitive_features=group)
    for name, true in TRUTH.items():
        mine = found.maps_[name]
        assert (mine.a, mine.b, mine.c) == pytest.approx((true.a, true.b, true.c), abs=0.15)
        grid = np.linspace(0.02, 0.98, 49)
        assert np.abs(mine(grid) - true(grid)).max() < 0.015


def test_sigmoid_recovers_the_true_map_of_decision_values():
    random = np.random.default_rng(1)
    value, group = random.normal(0, 3, 60_000), random.integers(0, 2, 60_000)
    slope, intercept = np.array([0.5, 1.5])[group], np.array([-0.3, 1.0])[group]
    label = random.random(60_000) < expit(slope * value + intercept)
    found = GroupCalibrator(shrinkage=0, cv=None).fit(value, label, sensitive_features=group)
    for place, expected in enumerate([(0.5, -0.3), (1.5, 1.0)]):
        mine = found.maps_[place]
        assert (mine.slope, mine.intercept) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_the_gap_falls_on_new_rows_and_pooling_alone_leaves_it(method):
    found = fitted(method, 12_000)
    pooled = fitted(method, 12_000, shrinkage=math.inf, cv=None)
    score, label, group, _ = people(60_000, seed=3)
    after = found.predict(score, sensitive_features=group)
    everybody = pooled.predict(score, sensitive_features=group)
    for name in "ab":
        mine = group == name
        gap = {
            kind: ic.calibration_gap(label[mine], values[mine])
            for kind, values in {"before": score, "pooled": everybody, "after": after}.items()
        }
        assert gap["after"] < 0.03 < 0.06 < min(gap["before"], gap["pooled"])
        report = found.report_.groups[name]
        assert report.after.gap < 0.06
        for kind in gap:
            judged = getattr(report, kind)
            assert judged.gap_debiased == pytest.approx(gap[kind], abs=0.025)
        assert report.after.brier < report.pooled.brier < report.before.brier + 0.01
    together = found.report_.overall
    assert together.pooled.gap_debiased < 0.03


@pytest.mark.parametrize("method", ["sigmoid", "histogram"])
def test_the_held_out_report_is_honest(method):
    """On average it says what maps of as many rows get on as many fresh rows."""
    said, got = [], []
    for seed in range(25):
        score, label, group, chance = people(600, seed)
        c = GroupCalibrator(method, shrinkage=0, random_state=seed)
        report = c.fit(score, label, sensitive_features=group).report_.groups["a"].after
        mine = group == "a"
        # The Brier score of the truth is taken off: it is only noise here.
        said.append([report.gap, report.brier - np.mean((chance - label)[mine] ** 2)])
        c.set_params(cv=None).fit(score[:480], label[:480], sensitive_features=group[:480])
        fresh, y, g, chance = people(120, seed + 1000)
        mine = g == "a"
        after = c.predict(fresh, sensitive_features=g)
        excess = np.mean((after - y)[mine] ** 2 - (chance - y)[mine] ** 2)
        got.append([ic.calibration_gap(y[mine], after[mine]), excess])
    error = np.hypot(np.std(said, axis=0), np.std(got, axis=0)) / math.sqrt(len(got))
    assert (np.abs(np.mean(said, axis=0) - np.mean(got, axis=0)) < 3 * error).all()


# Against other implementations


class Identity(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)


@pytest.mark.filterwarnings("ignore:Since FrozenEstimator does not appear to accept sample_weight")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_the_same_as_scikit_learn(method, weighted):
    random = np.random.default_rng(5)
    value, group = random.normal(0, 2, 900), random.integers(0, 3, 900)
    label = (random.random(900) < expit(value * (1 + group) - group)).astype(int)
    weight = random.integers(1, 5, 900) * 1.0 if weighted else None
    found = GroupCalibrator(method, shrinkage=0, cv=None)
    found.fit(value, label, sensitive_features=group, sample_weight=weight)
    new = np.linspace(-9, 9, 101)
    for name in (None, 0, 1, 2):
        mine = group == name if name is not None else np.ones(900, dtype=bool)
        model = FrozenEstimator(Identity().fit(None, None))
        reference = CalibratedClassifierCV(model, method=method)
        part = None if weight is None else weight[mine]
        reference.fit(value[mine, None], label[mine], sample_weight=part)
        ours = (
            found.pooled_(new)
            if name is None
            else found.predict(new, sensitive_features=np.full(101, name))
        )
        assert ours == pytest.approx(reference.predict_proba(new[:, None])[:, 1], abs=1e-5)


def beta_loss(parameters, score, target, weight):
    a, b, c = parameters
    inside = np.clip(score, CLIP, 1 - CLIP)
    raw = a * np.log(inside) - b * np.log(1 - inside) + c
    return np.average(np.logaddexp(0, raw) - target * raw, weights=weight)


@settings(max_examples=20)
@given(populations(groups=(1, 1), rows=(4, 40)))
def test_beta_is_the_best_of_all_allowed(data):
    score, label, weight = data["score"], data["label"].astype(float), data["weight"]
    counts = [
        max(w.sum(), w.sum() ** 2 / (w**2).sum()) for w in (weight[label == 0], weight[label == 1])
    ]
    target = np.where(label == 1, (counts[1] + 1) / (counts[1] + 2), 1 / (counts[0] + 2))
    ours = fit_rows("beta", score, label, weight)
    assert min(ours.a, ours.b) >= 0
    mine = beta_loss((ours.a, ours.b, ours.c), score, target, weight)
    for start in ((1, 1, 0), (0, 0, 0)):
        other = minimize(
            beta_loss,
            start,
            (score, target, weight),
            method="L-BFGS-B",
            bounds=[(0, None), (0, None), (None, None)],
            options={"ftol": 1e-15, "gtol": 1e-9},
        )
        assert mine <= other.fun + 1e-9


@pytest.mark.parametrize(("seed", "zero"), [(0, ""), (1, "a"), (2, "b")])
def test_beta_slopes_that_would_be_negative_are_zero(seed, zero):
    random = np.random.default_rng(seed)
    score = random.random(3_000)
    # A bump at one end makes the unconstrained slope of that end negative.
    chance = {"": score**2, "a": 0.9 - 0.8 * score, "b": 0.5 * score}[zero]
    if zero == "a":
        chance = np.where(score < 0.4, 0.5 - score, np.maximum(score**4, 0.1))
    if zero == "b":
        chance = np.where(score > 0.6, 1.5 - score, np.minimum(1 - (1 - score) ** 4, 0.9))
    label = (random.random(3_000) < chance).astype(float)
    ours = fit_rows("beta", score, label, np.ones(3_000))
    assert [name for name in "ab" if getattr(ours, name) == 0] == list(zero)


def test_histogram_by_hand():
    score = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.6, 0.6, 0.9])
    label = np.array([0, 1, 0, 0, 1, 0, 1, 1.0])
    ours = fit_rows("histogram", score, label, np.ones(8), bins=2)
    assert ours.edges.tolist() == [0.5]
    assert ours.values.tolist() == [0.25, 0.75]
    assert ours([0.0, 0.49, 0.5, 1.0]).tolist() == [0.25, 0.25, 0.75, 0.75]
    # Equal scores stay together, so with many bins each score is one.
    fine = fit_rows("histogram", score, label, np.ones(8), bins=100)
    assert fine([0.6]) == pytest.approx([2 / 3])


@pytest.mark.parametrize("method", METHODS)
def test_cells_of_a_tally_are_as_good_as_its_rows(method):
    score, label, _, _ = people(2_000)
    score = score.round(2).clip(0.01, 0.99)
    by_row = fit_rows(method, score, label, np.ones(2_000))
    levels, index = np.unique(score, return_inverse=True)
    positives, negatives = (np.bincount(index, label == value) * 1.0 for value in (1, 0))
    by_level = fit_map(method, levels, positives, negatives)
    new = np.linspace(0, 1, 99)
    assert by_level(new) == pytest.approx(by_row(new), abs=1e-7)


@pytest.mark.parametrize("method", ["sigmoid", "beta"])
def test_counts_say_how_many_rows_weights_stand_for(method):
    score, label = np.array([0.2, 0.3, 0.7, 0.9]), np.array([0, 0, 1, 1])
    few = fit_rows(method, score, label, np.ones(4))
    assert fit_rows(method, score, label, np.ones(4), counts=(2.0, 2.0)) == few
    many = fit_rows(method, score, label, np.ones(4), counts=(2000.0, 2000.0))
    assert np.ptp(many([0.2, 0.9])) > np.ptp(few([0.2, 0.9])) + 0.1


def test_scores_too_small_for_a_slope_are_all_the_same():
    score, label = np.array([0.0, 2e-313, 0.0, 2e-313] * 10), np.array([0, 1, 1, 0] * 10)
    found = fit_rows("sigmoid", score, label, np.ones(40))
    assert found([0.0, 2e-313]) == pytest.approx([0.5, 0.5])


# What holds always


@pytest.mark.parametrize("method", MONOTONE)
@given(data=populations(), shrinkage=st.sampled_from([0, 1, "auto", 100, math.inf]))
@pytest.mark.filterwarnings("ignore:The scores do not rise")
def test_no_order_is_reversed(method, data, shrinkage):
    found = GroupCalibrator(method, shrinkage=shrinkage, cv=None)
    found.fit(
        data["score"], data["label"], sensitive_features=data["group"], sample_weight=data["weight"]
    )
    grid = np.linspace(0, 1, 201)
    for group in found.groups_:
        after = found.predict(grid, sensitive_features=np.full(201, group))
        assert np.isfinite(after).all()
        assert after.min() >= 0
        assert after.max() <= 1
        assert np.diff(after).min() >= -1e-12


@pytest.mark.parametrize("method", ["isotonic", "histogram"])
@given(data=populations(), bins=st.integers(1, 12))
@pytest.mark.filterwarnings("ignore:The scores do not rise")
def test_the_mean_is_the_base_rate_on_the_rows_of_the_fit(method, data, bins):
    found = GroupCalibrator(method, shrinkage=0, cv=None, bins=bins)
    found.fit(
        data["score"], data["label"], sensitive_features=data["group"], sample_weight=data["weight"]
    )
    after = found.predict(data["score"], sensitive_features=data["group"])
    for group in found.groups_:
        mine = data["group"] == group
        weight = data["weight"][mine]
        mean, base_rate = (
            np.average(values[mine], weights=weight) for values in (after, data["label"])
        )
        assert mean == pytest.approx(base_rate, abs=1e-9)
        if method == "histogram":
            values, place = np.unique(after[mine], return_inverse=True)
            total = np.bincount(place, weight)
            share = np.bincount(place, weight * data["label"][mine]) / total
            assert share == pytest.approx(values, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_whole_weights_are_repeated_rows(method):
    score, label, group, _ = people(400)
    weight = np.random.default_rng(2).integers(0, 4, 400)
    weighted = GroupCalibrator(method, shrinkage=0, cv=None)
    weighted.fit(score, label, sensitive_features=group, sample_weight=weight)
    score_, label_, group_ = (np.repeat(x, weight) for x in (score, label, group))
    repeated = GroupCalibrator(method, shrinkage=0, cv=None)
    repeated.fit(score_, label_, sensitive_features=group_)
    new = np.linspace(0, 1, 99)
    for name in "abc":
        one, other = (c.predict(new, sensitive_features=[name] * 99) for c in (weighted, repeated))
        assert one == pytest.approx(other, abs=1e-7)
        assert np.abs(one - fitted(method, 400, shrinkage=0).maps_[name](new)).max() > 1e-3
    assert weighted.pooled_(new) == pytest.approx(repeated.pooled_(new), abs=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_the_scale_of_weights_does_not_matter_to_shares_nor_small_weights_to_maps(method):
    score, label, group, _ = people(900)
    weight = np.random.default_rng(2).gamma(2.0, 1.0, 900)
    new, names = np.linspace(0, 1, 99), ["b"] * 99
    found = []
    for scale in (1e-3 / weight.sum(), 1 / weight.sum()):
        c = GroupCalibrator(method, cv=None)
        c.fit(score, label, sensitive_features=group, sample_weight=weight * scale)
        found.append(c)
    assert found[0].weights_ == pytest.approx(found[1].weights_)
    after = [c.predict(new, sensitive_features=names) for c in found]
    assert after[0] == pytest.approx(after[1], abs=1e-7)
    mean = np.average(found[0].predict(score, sensitive_features=group), weights=weight)
    assert mean == pytest.approx(np.average(label, weights=weight), abs=0.01)


# Shrinkage


def test_the_formula():
    score, label, group, _ = people(300)
    weight = np.random.default_rng(0).gamma(2.0, 1.0, 300)
    found = GroupCalibrator("beta", shrinkage=7.0, cv=None)
    found.fit(score, label, sensitive_features=group, sample_weight=weight)
    for name in "abc":
        parts = [weight[(group == name) & (label == value)] for value in (0, 1)]
        n = min(part.sum() ** 2 / (part**2).sum() for part in parts)
        share = n / (n + 7.0)
        assert found.weights_[name] == pytest.approx(share)
        expected = share * found.maps_[name](score) + (1 - share) * found.pooled_(score)
        after = found.predict(score, sensitive_features=[name] * 300)
        assert after == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_the_limits(method):
    new, names = np.linspace(0, 1, 50), ["a"] * 50
    own = fitted(method, shrinkage=0, cv=None)
    assert set(own.weights_.values()) == {1.0}
    assert own.predict(new, sensitive_features=names) == pytest.approx(own.maps_["a"](new))
    for shrinkage in (1e15, math.inf):
        pooled = fitted(method, shrinkage=shrinkage, cv=None)
        expected = pooled.pooled_(new)
        assert pooled.predict(new, sensitive_features=names) == pytest.approx(expected, abs=1e-9)
    auto, named = fitted(method, cv=None), fitted(method, cv=None, shrinkage=SHRINKAGE[method])
    assert auto.weights_ == named.weights_


@pytest.mark.parametrize("method", METHODS)
def test_tiny_groups_lean_on_everybody(method):
    score, label, group, _ = people(3_000)
    group = group.astype(object)
    group[:3], label[:3] = "one label", 1
    group[3], label[3] = "alone", 0
    group[4:8], label[4:8] = "two labels", [0, 1, 1, 0]
    found = GroupCalibrator(method).fit(score, label, sensitive_features=group)
    assert found.weights_["one label"] == found.weights_["alone"] == 0
    assert found.maps_["alone"] is found.pooled_
    assert found.weights_["two labels"] == pytest.approx(2 / (2 + SHRINKAGE[method]))
    new = np.array([0.2, 0.8])
    after = found.predict(new, sensitive_features=["alone", "one label"])
    assert after == pytest.approx(found.pooled_(new))
    notes = found.report_.notes()
    assert notes[0] == "alone: only negatives, so it uses the pooled map."
    assert notes[1] == "one label: only positives, so it uses the pooled map."
    assert len(notes) in (2, 3)


@pytest.mark.parametrize("method", METHODS)
def test_default_shrinkage_beats_both_limits_for_a_small_group(method):
    """The default does better than a group's own map alone, and than the pooled one."""
    truth = {"large": BetaMap(1, 1, 0), "small": BetaMap(1, 1, 0.6)}
    errors = {"auto": [], 0: [], math.inf: []}
    for seed in range(25):
        score, label, group, _ = people(2_000, seed, truth)
        kept = (group == "large") | (np.cumsum(group == "small") <= 60)
        new = np.linspace(0.05, 0.95, 50)
        for shrinkage, values in errors.items():
            c = GroupCalibrator(method, shrinkage=shrinkage, cv=None)
            c.fit(score[kept], label[kept], sensitive_features=group[kept])
            after = c.predict(new, sensitive_features=["small"] * 50)
            values.append(np.mean((after - truth["small"](new)) ** 2))
    means = {name: np.mean(values) for name, values in errors.items()}
    assert means["auto"] < min(means[0], means[math.inf])


# Groups, labels, scores of every kind


def test_kinds_of_groups_give_the_same():
    score, label, group, _ = people(600)
    frame = pd.DataFrame({"g": group, "h": np.random.default_rng(99).integers(0, 2, 600)})
    answers = []
    for kind in (frame, pl.from_pandas(frame), frame.astype({"g": "category"})):
        c = GroupCalibrator(cv=None).fit(score, label, sensitive_features=kind)
        assert c.groups_ == tuple((g, h) for g in "abc" for h in (0, 1))
        answers.append(c.predict(score, sensitive_features=kind))
    assert all(np.array_equal(answers[0], answer) for answer in answers)


@pytest.mark.parametrize(
    "values", [(0, 1), (False, True), ("no", "yes"), (-1, 1), (1, 2), (0.0, 1.0)], ids=str
)
def test_labels_of_any_two_values(values):
    score, label, group, _ = people(300)
    y = np.array(values)[label]
    c = GroupCalibrator("beta", pos_label=values[1]).fit(score, y, sensitive_features=group)
    assert c.classes_.tolist() == list(values)
    plain = GroupCalibrator("beta").fit(score, label, sensitive_features=group)
    after = c.predict_proba(score, sensitive_features=group)
    assert after.shape == (300, 2)
    assert after.sum(axis=1) == pytest.approx(np.ones(300))
    assert np.array_equal(after[:, 1], plain.predict(score, sensitive_features=group))
    assert c.report_ == plain.report_
    again = clone(c).set_params(cv=None)
    for kind in (y.tolist(), pd.Series(y), pl.Series(y), y.astype(object)):
        assert again.fit(score, kind, sensitive_features=group).weights_ == c.weights_
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        assert again.fit(score, y[:, None], sensitive_features=group).weights_ == c.weights_
    brier = np.mean((after[:, 1] - label) ** 2)
    assert c.score(score, y, sensitive_features=group) == pytest.approx(-brier)


def test_kinds_of_scores_and_decision_values():
    score, label, group, _ = people(300)
    value = logit(score)
    c = GroupCalibrator("isotonic").fit(value, label, sensitive_features=group)
    for kind in (value[:, None], value.tolist(), pd.Series(value), pl.Series(value)):
        assert np.array_equal(
            c.predict(kind, sensitive_features=group), c.predict(value, sensitive_features=group)
        )
    assert c.report_.overall.before is None
    assert "The scores are not probabilities, so they have no gap before." in str(c.report_)


@pytest.mark.parametrize("scale", [1e-200, 1e-8, 1e8, 1e200])
def test_the_scale_of_decision_values_does_not_matter(scale):
    random = np.random.default_rng(0)
    value, group = random.normal(size=300), random.integers(0, 2, 300)
    label = random.random(300) < expit(value)
    new = random.normal(size=300)
    for method in ("sigmoid", "isotonic"):
        plain, scaled = GroupCalibrator(method, cv=None), GroupCalibrator(method, cv=None)
        plain.fit(value, label, sensitive_features=group)
        if method == "sigmoid" or scale > 1:
            scaled.fit(value * scale, label, sensitive_features=group)
            assert scaled.predict(new * scale, sensitive_features=group) == pytest.approx(
                plain.predict(new, sensitive_features=group), abs=1e-6
            )


@pytest.mark.parametrize("method", METHODS)
def test_zeros_ones_and_constants(method):
    label, group = np.tile([0, 1, 1, 0, 1], 40), np.repeat(["a", "b"], 100)
    for score in (np.tile([0.0, 1.0, 1.0, 0.0, 0.0], 40), np.full(200, 0.3), label * 1.0):
        c = GroupCalibrator(method).fit(score, label, sensitive_features=group)
        after = c.predict(score, sensitive_features=group)
        assert np.isfinite(after).all()
        for value in np.unique(score):
            mine = score == value
            assert after[mine].mean() == pytest.approx(label[mine].mean(), abs=0.03)


def test_unknown_groups():
    c = fitted(cv=None)
    with pytest.raises(ic.UsageError) as error:
        c.predict([0.5, 0.5], sensitive_features=["a", "z"])
    assert str(error.value) == (
        "sensitive_features: must be a group that fit has seen: 'a', 'b', 'c'\n"
        "  got:  'z'\n"
        '  next: fit again with rows of these groups, or use unknown="pooled" to give them the '
        "pooled map"
    )
    c.set_params(unknown="pooled")
    after = c.predict([0.5, 0.5], sensitive_features=["a", "z"])
    assert after[1] == c.pooled_(0.5)
    score, label, _, _ = people(100)
    c = GroupCalibrator(cv=None).fit(score, label, sensitive_features=np.arange(100) % 2)
    with pytest.raises(ic.UsageError, match="the type it had in fit: '1' is of type str here"):
        c.predict([0.5], sensitive_features=["1"])


# Bad input


GOOD = {
    "scores": [0.1, 0.4, 0.6, 0.9],
    "y": [0, 1, 0, 1],
    "sensitive_features": ["a", "a", "b", "b"],
    "sample_weight": None,
}
NAN = math.nan


@pytest.mark.parametrize(
    ("bad", "parts"),
    [
        (
            {"scores": [0.1, NAN, 0.6, math.inf]},
            ("scores: must be finite", "2 values are not, for example nan in row 1", "drop or"),
        ),
        (
            {"scores": [0.1, 0.4, 1.6, 0.9]},
            ("scores: must lie in [0, 1]", "1 value is not, for example 1.6 in row 2", "predict"),
        ),
        ({"scores": [[0.1, 0.9]] * 4}, ("one number per row", "shape (4, 2)", "[:, 1]")),
        ({"scores": ["x"] * 4}, ("one number per row", "'x'", "pass one column of numbers")),
        ({"scores": []}, ("scores: must have at least one row", "0 rows", "check the source")),
        ({"y": [0, 1, 0]}, ("y: must have one value per row", "3 values for 4", "same rows")),
        ({"y": [1, 1, 1, 1]}, ("y: must have two classes", "one class, 1", "without both")),
        ({"y": [0, 1, 2, 1]}, ("y: must have two classes", "multiclass", "y == 'x'")),
        ({"y": [0, 1, NAN, 1]}, ("y: must be known", "nan in row 2", "without a label")),
        ({"y": ["a", None, "b", "a"]}, ("y: must be known", "None in row 1", "without a label")),
        (
            {"y": np.array([0, "a", 0, 1], dtype=object)},
            ("y: must have two classes", "Unknown label type: multiclass", "two-valued"),
        ),
        ({"y": None}, ("y: must be given", "None", "pass the labels")),
        (
            {"sensitive_features": None},
            ("sensitive_features: must be given", "None", "set_fit_request"),
        ),
        (
            {"sensitive_features": ["a", None, "b", "b"]},
            ("sensitive_features: must be known", "1 null (first: in row 1), of 4", '"unknown"'),
        ),
        (
            {"sensitive_features": [[1, 2, 3]] * 3},
            ("sensitive_features: must have one value", "3 values for 4 rows", "same order"),
        ),
        (
            {"sensitive_features": [1, 1.0, "a", True]},
            ("group: values must stay different", "True, 1, 1.0", "to text"),
        ),
        ({"sample_weight": [1, 2]}, ("sample_weight: must have one value", "2 values", "same")),
        (
            {"sample_weight": [1, -2, NAN, 1]},
            ("sample_weight: must be", "2 values are not, for example -2.0 in row 1", "correct"),
        ),
        (
            {"sample_weight": [0, 0, 0, 0]},
            ("must be positive in at least one row", "4 weights, all of them zero", "count"),
        ),
        (
            {"sample_weight": [1, 0, 1, 0]},
            ("y: must have two classes in rows of positive weight", "one class, 0", "both"),
        ),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_errors_have_four_parts(bad, parts):
    with pytest.raises(ic.IsocostError) as error:
        GroupCalibrator("beta", cv=None).fit(**{**GOOD, **bad})
    name_and_rule, got, step = parts
    (first, second, third) = str(error.value).split("\n")
    assert name_and_rule in first
    assert got in second
    assert step in third
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "platt"}, 'method: must be "sigmoid", "isotonic", "histogram" or "beta"'),
        ({"shrinkage": -1}, 'shrinkage: must be "auto" or a number that is at least 0'),
        ({"shrinkage": NAN}, "a number that is at least 0\n  got:  nan"),
        ({"shrinkage": "much"}, 'shrinkage: must be "auto" or a number'),
        ({"unknown": "keep"}, 'unknown: must be "error" or "pooled"'),
        ({"cv": 1}, "cv: must be a whole number that is at least 2\n  got:  1\n  next: use 5"),
        ({"cv": "prefit"}, "cv: must be a whole number"),
        ({"bins": 0}, "bins: must be a whole number that is at least 1"),
        ({"bins": True}, "bins: must be a whole number that is at least 1"),
        ({"random_state": "x"}, "random_state: must be a whole number"),
        ({"random_state": 2**70}, "random_state: must be a whole number"),
    ],
    ids=str,
)
def test_bad_parameters(options, message):
    with pytest.raises(ic.UsageError) as error:
        GroupCalibrator(**options).fit(**GOOD)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("score", "group", "text"),
    [
        ([1.5], ["a"], "scores: must lie in"),
        ([NAN], ["a"], "scores: must be finite"),
        ([0.5], ["a", "b"], "2 values for 1 rows"),
        ([0.5], None, "sensitive_features: must be given"),
        ([0.5, 0.5], ["a", None], "must be known in every row"),
    ],
)
def test_what_predict_refuses(score, group, text):
    with pytest.raises(ic.IsocostError, match=text):
        fitted("beta", 300, cv=None).predict(score, sensitive_features=group)


def test_bad_input_to_score():
    c = fitted("beta", cv=None)
    with pytest.raises(ic.DataError, match="y: must be one of the labels 0, 1 in each row"):
        c.score([0.5], [3], sensitive_features=["a"])
    with pytest.raises(NotFittedError):
        GroupCalibrator().predict([0.5], sensitive_features=["a"])


def test_too_few_rows_for_a_report():
    with pytest.raises(ic.DataError) as error:
        GroupCalibrator().fit([0.1, 0.2, 0.3], [0, 0, 1], sensitive_features=list("aab"))
    text = str(error.value)
    assert "y: must have both labels in every training part of the held-out report" in text
    assert "3 rows, 1 of them positive, and outside of fold" in text
    assert "cv=None for no report" in text
    c = GroupCalibrator(cv=None).fit([0.1, 0.2, 0.3], [0, 0, 1], sensitive_features=list("aab"))
    assert c.report_ is None


@pytest.mark.parametrize("method", MONOTONE)
def test_scores_the_wrong_way_round_are_told(method):
    score, label, group, _ = people(2_000)
    with pytest.warns(ic.IsocostWarning, match="The scores do not rise with the labels"):
        c = GroupCalibrator(method).fit(1 - score, label, sensitive_features=group)
    assert "a: scores do not rise with the labels, so its own map is constant." in str(c.report_)
    after = c.predict(score, sensitive_features=["a"] * 2_000)
    assert np.ptp(after) < 1e-12


# The report


def test_the_report_prints_and_is_json():
    c = fitted("isotonic", 900)
    lines = str(c.report_).split("\n")
    assert lines[0] == (
        "Recalibration of 900 rows per group: isotonic, shrinkage 30; held out in 5 folds"
    )
    header = lines[1].split()
    assert header[:4] == ["group", "n", "positives", "own"]
    assert [line.split()[0] for line in lines[3:]] == ["a", "b", "c", "all"]
    content = json.loads(c.report_.to_json())
    assert content == c.report_.to_dict()
    assert [group for group, _ in content["groups"]] == ["a", "b", "c"]
    first = content["groups"][0][1]
    assert first["after"]["gap"] == c.report_.groups["a"].after.gap
    assert sum(numbers["n"] for _, numbers in content["groups"]) == content["overall"]["n"] == 900
    assert "<strong>Recalibration of 900 rows" in c.report_._repr_html_()
    assert json.loads(fitted(shrinkage=math.inf).report_.to_json())["shrinkage"] is None


def test_the_report_is_the_same_every_time_and_changes_nothing_else():
    first, again = fitted(rows=500), fitted(rows=500)
    other = fitted(rows=500, random_state=3)
    third = fitted(rows=500, random_state=np.random.RandomState(3))
    assert first.report_ == again.report_ == fitted(rows=500, random_state=0).report_
    assert first.report_ != other.report_ == third.report_
    assert first.maps_ == other.maps_
    assert first.report_.overall.before.brier == pytest.approx(other.report_.overall.before.brier)


def test_sorted_rows_do_not_flatter_the_report():
    """Rows in the order of their scores must not make folds that are copies of each other."""
    score, label, group, _ = people(3_000)
    order = np.lexsort((label, score.round(1)))
    report = GroupCalibrator("histogram", shrinkage=0).fit(
        score[order].round(1), label[order], sensitive_features=group[order]
    )
    assert report.report_.groups["a"].after.gap > 0.03


# scikit-learn's ways


def test_pickle_json_tags_and_repr():
    for method in METHODS:
        c = fitted(method, 500)
        assert pickle.loads(pickle.dumps(c)).report_ == c.report_
        assert json.dumps(c.maps_["a"].to_dict())
    tags = GroupCalibrator().__sklearn_tags__()
    assert tags.input_tags.one_d_array
    assert tags.target_tags.required
    assert repr(GroupCalibrator("beta", cv=3)) == "GroupCalibrator(cv=3, method='beta')"


def test_maps_are_read_only():
    for made in (IsotonicMap([0, 1], [0, 1]), HistogramMap([0.5], [0, 1])):
        with pytest.raises(ValueError, match="read-only"):
            made.values[0] = 1
    assert SigmoidMap(1, 0).to_dict() == {"method": "sigmoid", "slope": 1, "intercept": 0}


def test_a_grid_search_with_routed_groups_chooses_a_method():
    score, label, group, _ = people(1_500)
    with sklearn.config_context(enable_metadata_routing=True):
        c = GroupCalibrator(cv=None)
        c.set_fit_request(sensitive_features=True, sample_weight=True)
        c.set_predict_request(sensitive_features=True)
        c.set_score_request(sensitive_features=True, sample_weight=True)
        search = GridSearchCV(c, {"method": METHODS, "shrinkage": [0, "auto"]}, cv=3)
        search.fit(score, label, sensitive_features=group, sample_weight=np.ones(1_500))
    assert search.best_params_["method"] in METHODS
    assert search.best_score_ > -np.mean((score - label) ** 2)
    best = search.best_estimator_.score(score, label, sensitive_features=group)
    assert best == pytest.approx(search.best_score_, abs=0.02)


class Grouped(GroupCalibrator):
    """For scikit-learn's checks: the first column makes the score, the last one the group.

    There is no ``cv``, which the checks would set to a list of splits.
    """

    def __init__(self, method="sigmoid", shrinkage=0):
        super().__init__(method, shrinkage=shrinkage, unknown="pooled", cv=None)

    def _parts(self, X):
        score = expit(X[:, 0]) if self.method in ("histogram", "beta") else X[:, 0]
        return score, {"sensitive_features": X[:, -1] > 0}

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y)
        y = y == np.unique(y)[-1]
        score, groups = self._parts(X)
        return super().fit(score, y, **groups, sample_weight=sample_weight)

    def predict(self, X, sensitive_features=None):
        X = validate_data(self, X, reset=False)
        score, groups = self._parts(X)
        return super().predict(score, **groups)

    def score(self, X, y):
        return -np.mean((self.predict(X) - (y == np.unique(y)[-1])) ** 2)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, True
        return tags


def test_which_label_is_positive():
    random = np.random.default_rng(0)
    score, group = random.random(400), random.choice(["a", "b"], 400)
    y = random.random(400) < score
    plain = GroupCalibrator().fit(score, y, sensitive_features=group)
    words = np.where(y, "bad", "good")
    model = GroupCalibrator(pos_label="bad").fit(score, words, sensitive_features=group)
    assert model.predict(score, sensitive_features=group).tolist() == (
        plain.predict(score, sensitive_features=group).tolist()
    )
    both = model.predict_proba(score, sensitive_features=group)
    assert both[:, 0].tolist() == model.predict(score, sensitive_features=group).tolist()
    assert np.exp(model.predict_log_proba(score, sensitive_features=group)) == pytest.approx(both)
    kept = {"sensitive_features": group}
    assert model.score(score, words, **kept) == pytest.approx(plain.score(score, y, **kept))


@pytest.mark.filterwarnings("ignore:The scores do not rise", "ignore:y has the labels")
@parametrize_with_checks([Grouped(method) for method in METHODS])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
