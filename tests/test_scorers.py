"""The scorers: their numbers and signs, and that groups get wherever scikit-learn takes them."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import isocost as ic
from isocost.learn import CalibratedEqualizedOdds, EqualizedOdds, Reconciled, cost_disparity_scorer
from tests.conftest import measured
from tests.test_postprocess import FAST, GROUP, NEW_GROUP, NEW_X, NEW_Y, X, Y

NEW = {"sensitive_features": NEW_GROUP}


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def model():
    return clone(FAST).fit(X, Y)


@pytest.mark.parametrize("cost", ["fnr", "fpr", "weighted:1,3", ic.Cost(fp=1, fn=2)])
def test_it_is_minus_the_disparity_of_the_audit(model, cost):
    scores = model.predict_proba(NEW_X)[:, 1]
    audit = measured(ic.tally({"score": scores, "label": NEW_Y, "group": NEW_GROUP}), cost)
    found = cost_disparity_scorer(cost)(model, NEW_X, NEW_Y, **NEW)
    assert found == -audit.disparity.difference
    assert found < 0


def test_weights_count(model):
    weight = np.random.default_rng(0).gamma(2.0, size=len(NEW_Y))
    data = {"s": model.predict_proba(NEW_X)[:, 1], "y": NEW_Y, "g": NEW_GROUP, "w": weight}
    audit = measured(ic.tally(data, score="s", label="y", group="g", weight="w"))
    found = cost_disparity_scorer()(model, NEW_X, NEW_Y, sample_weight=weight, **NEW)
    assert found == pytest.approx(-audit.disparity.difference, abs=1e-12)


def test_decisions(model):
    scorer = cost_disparity_scorer("fpr", response_method="predict")
    scores = model.predict_proba(NEW_X)[:, 1]
    audit = measured(ic.tally({"score": scores, "label": NEW_Y, "group": NEW_GROUP}))
    found = scorer(model, NEW_X, NEW_Y, **NEW)
    assert found == pytest.approx(-audit.disparities["fpr"].difference, abs=1e-12)


def test_expected_scores_and_ids():
    repaired = CalibratedEqualizedOdds(FAST, cv=2).fit(X, Y, sensitive_features=GROUP)
    average = cost_disparity_scorer(response_method="expected_proba")
    plain = cost_disparity_scorer()(repaired.estimator_, NEW_X, NEW_Y, **NEW)
    assert average(repaired, NEW_X, NEW_Y, **NEW) > plain
    scorer = cost_disparity_scorer()
    one = scorer(repaired, NEW_X, NEW_Y, ids=np.arange(500), **NEW)
    two = scorer(repaired, NEW_X, NEW_Y, ids=np.arange(500) + 1000, **NEW)
    assert one != two


def test_labels_of_any_kind(model):
    words = np.where(Y == 1, "yes", "no")
    other = clone(FAST).fit(X, words)
    scorer = cost_disparity_scorer()
    found = scorer(other, NEW_X, np.where(NEW_Y == 1, "yes", "no"), **NEW)
    assert found == scorer(model, NEW_X, NEW_Y, **NEW)


# Higher is better: the search must choose the model whose costs differ least


def test_grid_search_takes_the_smallest_disparity(routing):
    grid = {"tolerance": [0.1, 0.0, 0.05]}
    scorer = cost_disparity_scorer("fnr", response_method="expected_proba")
    search = GridSearchCV(CalibratedEqualizedOdds(FAST, cv=2), grid, scoring=scorer, cv=2)
    search.fit(X, Y, sensitive_features=GROUP)
    assert search.best_params_ == {"tolerance": 0.0}
    means = search.cv_results_["mean_test_score"]
    assert (means <= 0).all()
    assert means[1] > means[2] > means[0]
    assert search.best_score_ == means.max()


def test_pipelines_hand_the_groups_on(routing):
    pipeline = make_pipeline(StandardScaler(), CalibratedEqualizedOdds(FAST, cv=2))
    given = {"sensitive_features": GROUP}
    found = cross_validate(pipeline, X, Y, scoring=cost_disparity_scorer(), cv=2, params=given)
    plain = cross_validate(
        make_pipeline(StandardScaler(), clone(FAST)),
        X, Y, scoring=cost_disparity_scorer(), cv=2, params=given,
    )  # fmt: skip
    assert found["test_score"].mean() > plain["test_score"].mean() + 0.03


def test_weights_are_routed_when_asked_for(routing):
    given = {"sensitive_features": GROUP, "sample_weight": np.linspace(0.1, 2, len(Y))}
    base = clone(FAST).set_fit_request(sample_weight=False)
    scorer = cost_disparity_scorer()
    with pytest.raises(ValueError, match="not explicitly set as requested or not requested"):
        cross_validate(base, X, Y, scoring=scorer, cv=2, params=given)
    with_weights = cost_disparity_scorer().set_score_request(sample_weight=True)
    without = cost_disparity_scorer().set_score_request(sample_weight=False)
    base.set_fit_request(sample_weight=True)
    scores = [
        cross_validate(base, X, Y, scoring=s, cv=2, params=given)["test_score"].tolist()
        for s in (with_weights, without)
    ]
    assert scores[0] != scores[1]


def sides(X):
    return np.where(np.asarray(X)[:, 2] > 0, "right", "left")


def test_without_routing_groups_come_from_x():
    scorer = cost_disparity_scorer(groups_from=sides)
    model = CalibratedEqualizedOdds(FAST, cv=2, groups_from=sides, infeasible="closest")
    assert cross_validate(GaussianNB(), X, Y, scoring=scorer, cv=2)["test_score"].max() < 0
    with pytest.warns(ic.InfeasibleWarning):
        found = cross_validate(model, X, Y, scoring={"a": scorer, "b": "roc_auc"}, cv=2)
    assert np.isfinite(found["test_b"]).all()


def test_pipelines_without_routing():
    repaired = CalibratedEqualizedOdds(FAST, cv=2)
    pipeline = make_pipeline(StandardScaler(), repaired)
    pipeline.fit(X, Y, calibratedequalizedodds__sensitive_features=GROUP)
    found = cost_disparity_scorer()(pipeline, NEW_X, NEW_Y, **NEW)
    scaled = pipeline[0].transform(NEW_X)
    assert found == cost_disparity_scorer()(pipeline[-1], scaled, NEW_Y, **NEW)


# Any metric


def lowest_auc(y_true, y_score, *, sensitive_features, sample_weight=None):
    """A metric of somebody else that takes groups."""
    return min(
        roc_auc_score(
            y_true[sensitive_features == group],
            y_score[sensitive_features == group],
            sample_weight=None if sample_weight is None else sample_weight[mine],
        )
        for group in np.unique(sensitive_features)
        for mine in [sensitive_features == group]
    )


def test_any_metric_has_its_own_number(model):
    scores = model.predict_proba(NEW_X)[:, 1]
    weight = np.random.default_rng(0).gamma(2.0, size=len(NEW_Y))
    call = (model, NEW_X, NEW_Y)
    assert ic.scorer(roc_auc_score)(*call) == roc_auc_score(NEW_Y, scores)
    brier = ic.scorer(brier_score_loss, greater_is_better=False)
    assert brier(*call, sample_weight=weight) == -brier_score_loss(
        NEW_Y, scores, sample_weight=weight
    )
    correct = ic.scorer(accuracy_score, response_method="predict", normalize=False)
    assert correct(*call) == (model.predict(NEW_X) == NEW_Y).sum()
    assert ic.scorer(lowest_auc)(*call, **NEW) == lowest_auc(
        NEW_Y, scores, sensitive_features=np.asarray(NEW_GROUP)
    )


@pytest.mark.parametrize("name", dir(ic.metrics))
def test_measures_by_name_have_the_sign_of_the_table(model, name):
    scores = model.predict_proba(NEW_X)[:, 1]
    number = getattr(ic.metrics, name)(NEW_Y, scores)
    sign = -1 if ic.MEASURES[name].better == "lower" else 1
    for metric in (name, getattr(ic.metrics, name)) if ic.MEASURES[name].better else ():
        assert ic.scorer(metric)(model, NEW_X, NEW_Y) == sign * number
    found = ic.scorer(name, greater_is_better=True)(model, NEW_X, NEW_Y)
    assert found == number


@pytest.mark.parametrize("kind", [CalibratedEqualizedOdds, EqualizedOdds, Reconciled])
def test_cross_validation_of_repaired_models_gives_numbers(routing, kind):
    scoring = {
        "auc": ic.scorer(roc_auc_score),
        "fpr": ic.scorer("fpr"),
        "groups": ic.scorer(lowest_auc, response_method="expected_proba"),
        "costs": cost_disparity_scorer(),
    }
    model = kind(FAST, cv=2)
    given = {"sensitive_features": GROUP}
    found = cross_validate(model, X, Y, scoring=scoring, cv=2, params=given, error_score="raise")
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in scoring)
    assert (found["test_auc"] > 0.55).all()


def test_the_scores_are_those_of_the_repaired_model(routing):
    given = {"sensitive_features": GROUP}
    halves = [(np.arange(0, 2000), np.arange(2000, 3000))]
    found = cross_validate(
        CalibratedEqualizedOdds(FAST, cv=2), X, Y, cv=halves, params=given,
        scoring=ic.scorer("brier", response_method="expected_proba"),
    )["test_score"]  # fmt: skip
    train, test = halves[0]
    model = CalibratedEqualizedOdds(FAST, cv=2)
    model.fit(X[train], Y[train], sensitive_features=np.asarray(GROUP)[train])
    scores = model.expected_proba(X[test], sensitive_features=np.asarray(GROUP)[test])[:, 1]
    assert found[0] == pytest.approx(-np.mean((scores - Y[test]) ** 2), abs=1e-12)


def test_metrics_of_fairlearn(routing, model):
    metrics = pytest.importorskip("fairlearn.metrics")
    decisions = model.predict(NEW_X)
    for metric in (metrics.demographic_parity_difference, metrics.selection_rate_difference):
        one = ic.scorer(metric, response_method="predict", greater_is_better=False)
        expected = metric(NEW_Y, decisions, sensitive_features=NEW_GROUP)
        assert one(model, NEW_X, NEW_Y, **NEW) == pytest.approx(-expected, abs=1e-12)
        given = {"sensitive_features": GROUP}
        repaired = EqualizedOdds(FAST, cv=2)
        found = cross_validate(repaired, X, Y, scoring=one, cv=2, params=given)["test_score"]
        assert np.isfinite(found).all()


def unweighted(y_true, y_score):
    return float(np.mean(y_score))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: cost_disparity_scorer("fdr"), "cost: must be a Cost"),
        (
            lambda: cost_disparity_scorer(response_method="decision_function"),
            "response_method: must be",
        ),
        (
            lambda: cost_disparity_scorer().set_score_request(weight=True),
            "set_score_request: takes sensitive_features",
        ),
        (lambda: ic.scorer("f42"), "metric: must be a function f.* or the name of a measure: "),
        (lambda: ic.scorer(3), "metric: must be a function f"),
        (lambda: ic.scorer("fpr", greater_is_better="yes"), "greater_is_better: must be True or"),
        (lambda: ic.scorer("calibration_slope"), "must be given for calibration_slope"),
        (lambda: ic.scorer("fpr", edge=1), "scorer: must be arguments of the metric"),
        (lambda: ic.scorer("fpr", sensitive_features=GROUP), "scorer: must be arguments of the"),
    ],
)
def test_scorers_that_cannot_be_made(make, text):
    with pytest.raises(ic.UsageError, match=text):
        make()


@pytest.mark.parametrize(
    ("scorer", "given", "text"),
    [
        (cost_disparity_scorer(), {}, "sensitive_features: must be given"),
        (ic.scorer(lowest_auc), {}, "sensitive_features: must be given"),
        (
            ic.scorer(unweighted),
            {"sample_weight": np.ones(len(NEW_Y))},
            "sample_weight: must be taken by the metric",
        ),
        (
            ic.scorer("fpr", response_method="expected_proba"),
            {},
            "response_method: must be one that the estimator has",
        ),
    ],
)
def test_what_scorers_refuse(model, scorer, given, text):
    with pytest.raises(ic.UsageError, match=text):
        scorer(model, NEW_X, NEW_Y, **given)


def test_scorers_refuse_three_classes():
    three = LogisticRegression().fit(X, np.arange(3000) % 3)
    with pytest.raises(ic.DataError, match="y: must have two classes"):
        cost_disparity_scorer()(three, NEW_X, NEW_Y, **NEW)


def test_repr_pickle_and_threshold(model):
    scorers = {
        "scorer(fpr, lower is better)": ic.scorer("fpr", threshold=0.4),
        "scorer(roc_auc_score, higher is better)": ic.scorer(roc_auc_score),
        "cost_disparity_scorer('weighted:1,3', lower disparity is better)": (
            cost_disparity_scorer("weighted:1,3")
        ),
    }
    for text, one in scorers.items():
        again = pickle.loads(pickle.dumps(one))
        assert repr(again) == text
        assert again(model, NEW_X, NEW_Y, **NEW) == one(model, NEW_X, NEW_Y, **NEW)
    decided = model.predict_proba(NEW_X)[NEW_Y == 0, 1] >= 0.4
    assert ic.scorer("fpr", threshold=0.4)(model, NEW_X, NEW_Y) == -decided.mean()
