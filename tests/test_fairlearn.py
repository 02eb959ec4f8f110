"""Beside fairlearn: its models inside ours, our measures inside its frame."""

import numpy as np
import pytest
from sklearn.base import clone

import isocost as ic
from isocost.learn import CalibratedEqualizedOdds, EqualizedOdds
from tests.conftest import measured
from tests.test_postprocess import FAST, GROUP, NEW_GROUP, NEW_X, NEW_Y, X, Y

metrics = pytest.importorskip("fairlearn.metrics")
reductions = pytest.importorskip("fairlearn.reductions")
postprocessing = pytest.importorskip("fairlearn.postprocessing")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def reduction():
    constraint = reductions.EqualizedOdds(difference_bound=0.05)
    return reductions.ExponentiatedGradient(clone(FAST), constraint, max_iter=5)


def thresholder():
    return postprocessing.ThresholdOptimizer(
        estimator=clone(FAST), constraints="equalized_odds", predict_method="predict_proba"
    )


def test_every_measure_by_name_in_a_frame_with_a_group_without_positives():
    y, group = np.array([0, 1, 0, 1, 0, 0]), [*"aabbcc"]
    scores = np.array([0.2, 0.7, 0.6, 0.4, 0.4, 0.5])
    names = dir(ic.metrics)
    assert {"fpr", "fnr", "selection_rate", "accuracy", "calibration_gap"} <= set(names)
    with pytest.warns(ic.UncertainWarning, match="FNR is not defined, and NaN"):
        frame = metrics.MetricFrame(
            metrics={name: getattr(ic.metrics, name) for name in names},
            y_true=y,
            y_pred=scores,
            sensitive_features=group,
        )
    assert np.isnan(frame.by_group.loc["c", "fnr"])
    tally = ic.tally({"score": scores, "label": y, "group": group})
    audit = measured(tally, measures="all")
    for name in names:
        for each, numbers in audit.groups.items():
            expected = pytest.approx(numbers[name], abs=1e-12, nan_ok=True)
            assert frame.by_group.loc[each, name] == expected


@pytest.mark.parametrize("make", [reduction, thresholder])
def test_their_models_inside_equalized_odds(make):
    model = EqualizedOdds(make(), cv=2).fit(X, Y, sensitive_features=GROUP)
    assert model.response_ == "_pmf_predict"
    assert model.repaired_audit_.generalized_equalized_odds_difference == pytest.approx(0, abs=1e-9)
    found = model.predict_proba(NEW_X, sensitive_features=NEW_GROUP)
    assert found.shape == (500, 2)


@pytest.mark.parametrize("make", [reduction, thresholder])
def test_a_chance_of_a_decision_is_no_risk_score(make):
    with pytest.raises(ic.UsageError) as error:
        CalibratedEqualizedOdds(make()).fit(X, Y, sensitive_features=GROUP)
    name = type(make()).__name__
    assert str(error.value) == (
        "estimator: must have predict_proba: the probability of a decision is not a risk score\n"
        f"  got:  {name}, which has only the probability of a positive decision\n"
        '  next: set recalibrate="isotonic" (or another method), or wrap the estimator that '
        f"{name} was made from"
    )


def test_recalibrated_it_may_be_repaired():
    model = CalibratedEqualizedOdds(thresholder(), recalibrate="isotonic", cv=2, tolerance=0.02)
    model.fit(X, Y, sensitive_features=GROUP)
    assert model.repaired_audit_.disparity.difference <= 0.02 + 1e-9
    assert max(m.calibration_gap_debiased for m in model.audit_.groups.values()) < 0.05


def test_their_grid_search_has_probabilities():
    grid = reductions.GridSearch(clone(FAST), reductions.EqualizedOdds(), grid_size=3)
    model = CalibratedEqualizedOdds(grid, cv=2).fit(X, Y, sensitive_features=GROUP)
    assert model.response_ == "predict_proba"
    assert np.isfinite(model.expected_proba(NEW_X, sensitive_features=NEW_GROUP)).all()


def test_prefit():
    base = thresholder().fit(X, Y, sensitive_features=GROUP)
    model = EqualizedOdds(base, cv="prefit").fit(NEW_X, NEW_Y, sensitive_features=NEW_GROUP)
    assert model.estimator_ is base
