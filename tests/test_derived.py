"""Derived measures, checked against scikit-learn, statsmodels, rows one by one, and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost import metrics
from isocost.examples import compas
from isocost.measures import calibration, derived
from isocost.measures.derived import GroupedPeople
from isocost.measures.intervals import interval_of
from isocost.measures.table import MEASURES, chosen_measures

DERIVED = [name for name, row in MEASURES.items() if row.is_derived]
OWN = [name for name in DERIVED if not MEASURES[name].compares]


def rows(n=400, groups=2, seed=0, weighted=False, levels=None, pull=0.0):
    rng = np.random.default_rng(seed)
    group = np.arange(n * groups) % groups
    score = rng.beta(1.0 + 0.5 * group, 1.5)
    if levels:
        score = np.round(score * levels) / levels
    label = (rng.random(len(score)) < score + pull * (0.5 - score)).astype(int)
    weight = rng.gamma(2.0, 1.0, len(score)) + 0.1 if weighted else np.ones(len(score))
    return {"score": score, "label": label, "group": group, "weight": weight}


def audited(data, names=("all",), **options):
    tally = ic.tally(data, weight="weight", bins=options.pop("bins", 1024))
    return ic.audit(tally, "fpr", measures=list(names), warn=False, **options)


def of_group(data, group):
    mine = data["group"] == group
    return tuple(data[name][mine] for name in ("label", "score", "weight"))


def logistic(y, h, w, slope=True):
    """By statsmodels: intercept and slope, or the intercept if the slope is 1."""
    import statsmodels.api as sm

    logit = np.log(h / (1 - h))
    design = sm.add_constant(logit) if slope else np.ones((len(h), 1))
    offset = None if slope else logit
    family = sm.families.Binomial()
    fit = sm.GLM(y, design, family=family, freq_weights=w, offset=offset).fit(tol=1e-13)
    return fit.params


def by_rows(name, y, h, w, threshold=0.5):
    """What scikit-learn, statsmodels or a formula on rows gives."""
    decided = (h >= threshold).astype(int)
    theirs = sklearn.metrics
    tn, fp, fn, tp = theirs.confusion_matrix(y, decided, sample_weight=w).ravel()
    mu = np.average(y, weights=w)
    return {
        "f1": lambda: theirs.f1_score(y, decided, sample_weight=w),
        "mcc": lambda: theirs.matthews_corrcoef(y, decided, sample_weight=w),
        "balanced_accuracy": lambda: theirs.balanced_accuracy_score(y, decided, sample_weight=w),
        "net_benefit": lambda: (tp - fp * threshold / (1 - threshold)) / (tn + fp + fn + tp),
        "auc": lambda: theirs.roc_auc_score(y, h, sample_weight=w),
        "observed_to_expected": lambda: (w * y).sum() / (w * h).sum(),
        "brier_skill": lambda: (
            theirs.d2_brier_score(y, h, sample_weight=w)
            if hasattr(theirs, "d2_brier_score")
            else 1 - np.average((y - h) ** 2, weights=w) / (mu * (1 - mu))
        ),
        "calibration_slope": lambda: logistic(y, h, w)[1],
        "recalibration_intercept": lambda: logistic(y, h, w)[0],
        "calibration_intercept": lambda: logistic(y, h, w, slope=False)[0],
    }[name]()


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threshold", [0.5, 0.25])
def test_scores_of_few_values_agree_with_other_libraries(name, weighted, threshold):
    data = rows(weighted=weighted, seed=3)
    data["score"] = np.clip(np.round(data["score"] * 20) / 20, 0.05, 0.95)
    found = audited(data, [name], threshold=threshold, confidence=None)
    for group in (0, 1):
        y, h, w = of_group(data, group)
        wanted = by_rows(name, y, h, w, threshold)
        assert found.groups[group][name] == pytest.approx(wanted, abs=1e-9)
        function = getattr(metrics, name)
        assert function(y, h, sample_weight=w, threshold=threshold) == pytest.approx(
            wanted, abs=1e-9
        )


def area_bound(people, group):
    """Half the share of pairs that share a bin."""
    below, above = people.weights(group)[0]
    return float((below / below.sum() * above / above.sum()).sum()) / 2.0


@pytest.mark.parametrize("name", OWN)
def test_functions_of_continuous_scores_are_exact_and_tallies_within_their_bound(name):
    data = rows(2000, seed=4)
    found = audited(data, [name], confidence=None)
    y, h, w = of_group(data, 1)
    wanted = by_rows(name, y, h, w)
    assert getattr(metrics, name)(y, h) == pytest.approx(wanted, abs=1e-8)
    tally = ic.tally(data)
    bound = 1e-9
    if name == "auc":
        bound += area_bound(GroupedPeople.of_tally(tally, 0.5), 1)
        assert 1e-5 < bound < 1e-3
    if "slope" in name or "intercept" in name:
        # Where logits vary most within a bin there are few people.
        bound = 0.005
    assert found.groups[1][name] == pytest.approx(wanted, abs=bound)


@given(st.integers(0, 2**31), st.sampled_from([8, 32, 256]))
@settings(max_examples=30)
def test_bins_move_an_area_by_no_more_than_the_bound(seed, bins):
    data = rows(60, seed=seed)
    if min(of_group(data, 0)[0].sum(), (1 - of_group(data, 0)[0]).sum()) == 0:
        return
    tally = ic.tally(data, bins=bins)
    people = GroupedPeople.of_tally(tally, 0.5)
    y, h, _ = of_group(data, 0)
    off = abs(derived.auc(people, 0).value - sklearn.metrics.roc_auc_score(y, h))
    assert off <= area_bound(people, 0) + 1e-12


@pytest.mark.parametrize("weighted", [False, True])
def test_areas_across_groups_are_pairs_of_people(weighted):
    data = rows(80, groups=3, weighted=weighted, levels=10)
    found = audited(data, ["cross_auc", "cross_auc_negatives"], confidence=None)
    y, h, w, group = (data[name] for name in ("label", "score", "weight", "group"))

    def pairs(ahead, behind):
        higher = (h[ahead][:, None] > h[behind]) + (h[ahead][:, None] == h[behind]) / 2
        return np.average(higher, weights=w[ahead][:, None] * w[behind])

    for one in range(3):
        own, other = group == one, group != one
        wanted = pairs(own & (y == 1), other & (y == 0)), pairs(other & (y == 1), own & (y == 0))
        numbers = found.groups[one]
        assert (numbers.cross_auc, numbers.cross_auc_negatives) == pytest.approx(wanted, abs=1e-12)
    assert math.isnan(found.overall.cross_auc)


def test_selection_is_compared_with_the_highest_or_the_group_named():
    data = rows(500, groups=3, weighted=True)
    usual = audited(data, ["impact_ratio", "standardized_difference"])
    rates = {g: m.selection_rate for g, m in usual.groups.items()}
    top = max(rates, key=rates.get)
    for group, numbers in usual.groups.items():
        assert numbers.impact_ratio == pytest.approx(rates[group] / rates[top], abs=1e-12)
    assert usual.groups[top].intervals["impact_ratio"] == (1.0, 1.0)
    named = audited(data, ["impact_ratio", "standardized_difference"], reference=0)
    assert named.groups[2].impact_ratio == pytest.approx(rates[2] / rates[0], abs=1e-12)
    mean = np.average(data["score"], weights=data["weight"])
    deviation = np.sqrt(np.average((data["score"] - mean) ** 2, weights=data["weight"]))
    means = [np.average(of_group(data, g)[1], weights=of_group(data, g)[2]) for g in (0, 2)]
    wanted = (means[1] - means[0]) / deviation
    assert named.groups[2].standardized_difference == pytest.approx(wanted, abs=1e-9)
    assert named.groups[0].standardized_difference == 0.0
    assert named.disparities["standardized_difference"].ratio != named.disparities["fpr"].ratio


@pytest.mark.parametrize("levels", [None, 10, 2])
def test_scoring_rates_are_of_the_median(levels):
    data = rows(500, weighted=False, levels=levels)
    found = audited(data, ["scoring_rate"], confidence=None)
    above = data["score"] > np.median(data["score"])
    for group in (0, 1):
        wanted = above[data["group"] == group].mean()
        bin_share = 1 / 1024 if levels is None else 0.0
        assert found.groups[group].scoring_rate == pytest.approx(wanted, abs=20 * bin_share + 1e-9)
    if levels is None:
        assert found.overall.scoring_rate == pytest.approx(0.5, abs=1e-9)


def test_adjusted_rates_are_those_of_weighted_rows():
    data = rows(3000, weighted=True, levels=20)
    data["score"] = np.clip(data["score"], 0.1, 0.9)
    found = audited(data, ["adjusted_fpr", "adjusted_fnr", "adjusted_ppv"], confidence=None)
    # Twenty-one scores: a part of the range may hold several, so weights are made by part.
    tally = ic.tally(data, weight="weight")
    people = GroupedPeople.of_tally(tally, 0.5)
    part_of = derived._risk_parts(people)
    part = part_of[np.searchsorted(tally.grid.cuts, data["score"], side="right") - 1]
    for group in (0, 1):
        mine = data["group"] == group
        y, h, w = of_group(data, group)
        share = np.bincount(part, data["weight"], minlength=40) / data["weight"].sum()
        own = np.bincount(part[mine], w, minlength=40) / w.sum()
        weight = w * (share / np.where(own > 0, own, 1))[part[mine]]
        chosen = h >= 0.5
        wanted = [
            np.average(chosen[y == 0], weights=weight[y == 0]),
            np.average(~chosen[y == 1], weights=weight[y == 1]),
            np.average(y[chosen], weights=weight[chosen]),
        ]
        numbers = found.groups[group]
        got = [numbers.adjusted_fpr, numbers.adjusted_fnr, numbers.adjusted_ppv]
        assert got == pytest.approx(wanted, abs=1e-12)
    for name in ("fpr", "fnr", "ppv"):
        assert found.overall[f"adjusted_{name}"] == pytest.approx(found.overall[name], abs=1e-12)


def test_adjusted_rates_tell_different_groups_from_different_treatment():
    same = audited(rows(40_000), ["fpr", "adjusted_fpr"], confidence=None)
    assert same.disparities["fpr"].difference > 0.1
    assert same.disparities["adjusted_fpr"].difference < 0.01
    data = rows(40_000)
    # Positives of group 1 at the same score are fewer: its scores are too high.
    chance = np.where(data["group"] == 1, data["score"] ** 2, data["score"])
    data["label"] = (np.random.default_rng(1).random(80_000) < chance).astype(int)
    unlike = audited(data, ["adjusted_fpr", "adjusted_ppv"], confidence=None)
    assert unlike.disparities["adjusted_ppv"].difference > 0.08


def test_where_a_group_is_too_thin_there_is_no_adjusted_rate():
    rng = np.random.default_rng(0)
    score = np.concatenate([rng.uniform(0, 1, 500), rng.uniform(0, 0.3, 500)])
    label = (rng.random(1000) < score).astype(int)
    data = {"score": score, "label": label, "group": np.repeat([0, 1], 500)}
    found = audited({**data, "weight": np.ones(1000)}, ["adjusted_fpr"])
    assert math.isnan(found.groups[1].adjusted_fpr)
    assert found.groups[1].intervals["adjusted_fpr"] == pytest.approx((math.nan,) * 2, nan_ok=True)
    assert not math.isnan(found.groups[0].adjusted_fpr)
    assert "No adjusted rates for" in str(found)


def estimated(name, data):
    """A measure of group 0, compared with group 1 if it is compared at all."""
    people = GroupedPeople.of_tally(ic.tally(data, weight="weight"), 0.5, reference=1)
    return MEASURES[name].estimated(people, 0)


def bootstrapped(data, name, replicates=200):
    """The standard deviation over resampled rows, group by group."""
    rng, own = np.random.default_rng(7), [np.flatnonzero(data["group"] == g) for g in (0, 1)]
    values = []
    for _ in range(replicates):
        index = np.concatenate([rng.choice(rows, len(rows)) for rows in own])
        again = {column: values_[index] for column, values_ in data.items()}
        values.append(estimated(name, again).value)
    return np.std(values)


@pytest.mark.parametrize("name", [n for n in DERIVED if n != "scoring_rate"])
@pytest.mark.parametrize("weighted", [False, True])
def test_standard_errors_are_those_of_resampled_rows(name, weighted):
    data = rows(600, weighted=weighted, levels=20, seed=5, pull=0.2)
    data["score"] = np.clip(data["score"], 0.05, 0.95)
    assert estimated(name, data).error == pytest.approx(bootstrapped(data, name), rel=0.2)


@pytest.mark.parametrize(
    ("name", "truth"),
    [("auc", None), ("calibration_slope", 1.0), ("calibration_intercept", 0.0),
     ("observed_to_expected", 1.0), ("f1", None), ("mcc", None), ("impact_ratio", None)],
)  # fmt: skip
@pytest.mark.parametrize("n", [60, 500])
def test_intervals_hold_the_truth_as_often_as_they_say(name, truth, n):
    if truth is None:
        truth = estimated(name, rows(400_000, seed=99)).value
    held = []
    for seed in range(200):
        number = estimated(name, rows(n, seed=seed))
        low, high = interval_of(number, MEASURES[name].limits, 0.95)
        held.append(low <= truth <= high)
    assert np.mean(held) > 0.92


def test_a_perfect_ranking_still_has_an_interval():
    score = np.repeat([0.2, 0.8], 30)
    people = GroupedPeople.of_rows(np.repeat([0.0, 1.0], 30), score, np.ones(60), 0.5)
    for name in ("auc", "f1", "mcc", "balanced_accuracy"):
        number = MEASURES[name].estimated(people, 0)
        assert number.value == pytest.approx(1.0)
        low, high = interval_of(number, MEASURES[name].limits, 0.95)
        assert 0.6 < low < 0.97
        assert high == 1.0


def test_nobody_is_a_positive():
    y, h = np.zeros(50), np.linspace(0.1, 0.6, 50)
    people = GroupedPeople.of_rows(y, h, np.ones(50), 0.5)
    observed = interval_of(
        MEASURES["observed_to_expected"].estimated(people, 0), (0.0, math.inf), 0.95
    )
    assert observed[0] == 0.0 < observed[1] < 1.0
    for name in OWN:
        number = MEASURES[name].estimated(people, 0)
        known = name in ("observed_to_expected", "net_benefit", "f1")
        assert math.isnan(number.value) != known
        if not known:
            with pytest.warns(ic.UncertainWarning, match="is not defined, and NaN, for these 50"):
                assert math.isnan(getattr(metrics, name)(y, h))


@pytest.mark.parametrize(
    ("label", "score", "known"),
    [
        ([0, 0, 1, 1], [0.3, 0.3, 0.6, 0.6], True),
        ([0, 0, 1, 1], [0.5, 0.5, 0.5, 0.5], True),
        ([0, 1, 1, 0], [0.0, 1.0, 0.0, 1.0], False),
    ],
)
def test_no_slope_without_scores_that_differ_or_overlap(label, score, known):
    people = GroupedPeople.of_rows(np.tile(label, 50), np.tile(score, 50), np.ones(200), 0.5)
    assert math.isnan(calibration.calibration_slope(people, 0).value)
    assert math.isfinite(calibration.calibration_intercept(people, 0).value) == known


@pytest.mark.parametrize("rate", [0.01, 0.97])
@pytest.mark.parametrize("groups", [2, 40])
def test_every_measure_has_an_interval_on_other_shapes(rate, groups):
    rng = np.random.default_rng(2)
    n = 200 * groups
    score = np.clip(rng.beta(50 * rate, 50 * (1 - rate), n), 1e-4, 1 - 1e-4)
    label = (rng.random(n) < score).astype(int)
    group = np.arange(n) % groups
    label[: 12 * groups] = np.arange(12 * groups) // groups % 2
    found = ic.audit(
        ic.tally({"score": score, "label": label, "group": group}), measures="all", warn=False
    )
    for numbers in found.groups.values():
        for name in chosen_measures("all").shown:
            low, high = numbers.intervals[name]
            value = numbers[name]
            assert math.isnan(value) == math.isnan(low) == math.isnan(high), name
            assert math.isnan(value) or low - 1e-9 <= value <= high + 1e-9, name
            limits = MEASURES[name].limits
            assert math.isnan(value) or limits[0] <= low + 1e-9, name
    found.to_json()
    str(found)


def test_choosing():
    assert chosen_measures().shown[:2] == ("base_rate", "mean_score")
    assert {"ppv", "npv", "fpr", "selection_rate", "calibration_gap"} <= {*chosen_measures().shown}
    assert "auc" not in chosen_measures().rows
    assert chosen_measures("all").shown == tuple(MEASURES)
    assert chosen_measures("auc, ppv").shown == ("ppv", "auc")
    assert chosen_measures("decisions,auc").shown[-1] == "auc"
    own = ic.Measure("mine", "Mine", ("fp",))
    assert chosen_measures([own]).shown == (*chosen_measures().shown, "mine")
    assert chosen_measures(["auc", own]).shown == ("auc", "mine")
    with pytest.raises(ic.UsageError, match="did you mean 'ppv'"):
        chosen_measures("pvv")
    printed = str(ic.audit(compas(), "fpr", measures="calibration"))
    assert "O:E" in printed
    assert "FPR  " not in printed


def test_a_rate_of_one_among_few_is_not_certain():
    y = np.repeat([1.0, 0.0], [5, 1000])
    chosen = np.r_[np.ones(5), np.ones(100), np.zeros(900)]
    people = GroupedPeople.of_rows(y, np.where(chosen == 1, 0.7, 0.3), np.ones(1005), 0.5)
    row = MEASURES["balanced_accuracy"]
    low, high = interval_of(row.estimated(people, 0), row.limits, 0.95)
    assert low < 0.85 < 0.97 < high
    people = GroupedPeople.of_rows(y, np.full(1005, 0.3), np.ones(1005), 0.5)
    low, high = interval_of(
        MEASURES["net_benefit"].estimated(people, 0), MEASURES["net_benefit"].limits, 0.95
    )
    assert low < 0.0 < high


def test_selecting_everybody_leaves_the_ratio_uncertain():
    score = np.r_[np.full(40, 0.7), np.full(985, 0.7), np.full(15, 0.3)]
    label = np.arange(1040) % 2
    data = {"score": score, "label": label, "group": np.repeat(["a", "b"], [40, 1000])}
    found = ic.audit(ic.tally(data), measures=["impact_ratio"], reference="b", warn=False)
    low, high = found.groups["a"].intervals["impact_ratio"]
    assert low < 1.0 < high


def test_no_side_of_the_threshold_is_left_out_of_adjusted_rates():
    rng = np.random.default_rng(3)
    score = np.where(rng.random(11_000) < 0.003, 0.7, rng.uniform(0, 0.2, 11_000))
    label = (rng.random(11_000) < score).astype(int)
    data = {"score": score, "label": label, "group": np.repeat([0, 1], [1000, 10_000])}
    found = audited({**data, "weight": np.ones(11_000)}, ["adjusted_fnr"], confidence=None)
    few = (score[:1000] >= 0.5).sum()
    assert 0 < few < 5
    assert math.isnan(found.groups[0].adjusted_fnr)
    assert not math.isnan(found.groups[1].adjusted_fnr)


def test_a_number_that_was_not_measured_says_how_to_ask():
    found = ic.audit(compas(), "fpr", confidence=None)
    with pytest.raises(KeyError, match="pass measures='auc'"):
        found.groups["Caucasian"]["auc"]
    chosen = ic.audit(compas(), "fpr", measures=["ppv", "auc"], confidence=None)
    columns = chosen.to_frame(backend="dict")
    assert {"ppv", "auc", "cost", "n"} <= columns.keys()
    assert "fpr" not in columns


def test_a_formula_of_ones_own_may_use_scores_whatever_its_family():
    mine = ic.Measure(
        "mine", "Mine", of_sums=lambda sums: (sums.w[2] + sums.w[3]) / sums.wh.sum(axis=0)
    )
    found = ic.audit(compas(), "fpr", measures=["observed_to_expected", mine])
    for numbers in found.groups.values():
        assert numbers.mine == pytest.approx(numbers.observed_to_expected)
        low, high = numbers.intervals["mine"]
        assert low < numbers.mine < high
