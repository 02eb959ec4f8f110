"""The post-processing estimators: what they do, alone and inside scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    cross_val_predict,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import isocost as ic
from isocost.learn import (
    CalibratedEqualizedOdds,
    EqualizedOdds,
    GroupCalibrator,
    HandOver,
    Reconciled,
    cost_disparity_scorer,
)
from isocost.learn.inputs import read_groups
from isocost.learn.postprocess import folds_of
from tests.conftest import measured

EVERY = [CalibratedEqualizedOdds, EqualizedOdds, Reconciled]
FAST = LogisticRegression(solver="liblinear")


def people(rows=3000, seed=0, base=0.0):
    """Rows whose scores say more about group a than about group b."""
    random = np.random.default_rng(seed)
    group = random.choice(["a", "b"], rows)
    X = random.normal(size=(rows, 3)) * np.where(group == "a", 2.0, 1.0)[:, None]
    y = (random.random(rows) < 1 / (1 + np.exp(-X.sum(axis=1) - base))).astype(int)
    return X, y, group


X, Y, GROUP = people()
NEW_X, NEW_Y, NEW_GROUP = people(500, seed=1)


@pytest.fixture(scope="module")
def fitted():
    return CalibratedEqualizedOdds(FAST, cv=3).fit(X, Y, sensitive_features=GROUP)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def problem(error):
    return str(error.value)


# What is fitted


def test_the_rule_comes_from_out_of_fold_scores(fitted):
    """Recomputed by hand: score each fold by a model of the others, tally, withhold."""
    scores = np.empty(len(Y))
    for train, test in folds_of(X, Y, read_groups(X, GROUP), 3, {}):
        scores[test] = clone(FAST).fit(X[train], Y[train]).predict_proba(X[test])[:, 1]
    tally = ic.tally({"score": scores, "label": Y, "group": GROUP})
    assert fitted.tally_ == tally
    assert fitted.rule_ == ic.withhold(fitted.tally_, "fnr")
    training = FAST.fit(X, Y).predict_proba(X)[:, 1]
    assert fitted.tally_ != ic.tally({"score": training, "label": Y, "group": GROUP})


def test_the_final_estimator_is_trained_on_everything(fitted):
    assert np.array_equal(fitted.estimator_.coef_, clone(FAST).fit(X, Y).coef_)


def test_folds_are_stratified_by_group_and_label():
    cells = np.unique(np.char.add(GROUP, Y.astype(str)), return_inverse=True)[1]
    for _, test in folds_of(X, Y, read_groups(X, GROUP), 5, {}):
        assert np.abs(np.bincount(cells[test]) - np.bincount(cells) / 5).max() <= 1


def test_each_repair_does_what_its_function_does():
    odds = EqualizedOdds(FAST, rates="hard", cv=2).fit(X, Y, sensitive_features=GROUP)
    assert odds.rule_ == ic.equalize_odds(odds.tally_, rates="hard")
    assert odds.repaired_audit_.equalized_odds_difference == pytest.approx(0, abs=1e-9)
    same = Reconciled(FAST, levels=16, cv=2).fit(X, Y, sensitive_features=GROUP)
    assert same.rule_ == ic.reconcile(same.tally_, levels=16)
    assert same.feasibility_.feasible
    assert same.repaired_audit_.equalized_odds_difference == pytest.approx(0, abs=1e-9)
    pools = CalibratedEqualizedOdds(FAST, method="coarsen", cv=2, tolerance=0.08)
    pools.fit(X, Y, sensitive_features=GROUP)
    assert pools.rule_ == ic.coarsen(pools.tally_, "fnr", tolerance=0.08)
    assert pools.repaired_audit_.disparity.difference == pytest.approx(0.08, abs=1e-9)
    pools.set_params(minimize="mean").fit(X, Y, sensitive_features=GROUP)
    assert pools.rule_ == ic.coarsen(pools.tally_, "fnr", tolerance=0.08, minimize="mean")
    pools.set_params(tolerance=0.0)
    with pytest.raises(ic.UsageError, match="allow_decision_changes=True"):
        pools.fit(X, Y, sensitive_features=GROUP)
    pools.set_params(allow_decision_changes=True).fit(X, Y, sensitive_features=GROUP)
    assert pools.repaired_audit_.disparity.difference == pytest.approx(0.0, abs=1e-9)


def test_audits_are_those_of_the_tally(fitted):
    assert fitted.audit_ == measured(fitted.tally_, "fnr")
    assert fitted.repaired_audit_ == measured(fitted.rule_.expected(fitted.tally_), "fnr")
    assert fitted.feasibility_ == ic.feasibility(fitted.tally_, "fnr")
    sure = clone(fitted).set_params(confidence=0.9).fit(X, Y, sensitive_features=GROUP)
    assert sure.audit_.intervals.confidence == 0.9


@pytest.mark.parametrize("threshold", [0.5, 0.3, 0.33])
@pytest.mark.parametrize("kind", EVERY)
def test_predictions_are_the_rule_applied(kind, threshold):
    model = kind(FAST, threshold=threshold, cv=2).fit(X, Y, sensitive_features=GROUP)
    ids = np.arange(500)
    scores = model.estimator_.predict_proba(NEW_X)[:, 1]
    wanted = model.rule_.apply(score=scores, group=NEW_GROUP, id=ids)
    found = model.predict_proba(NEW_X, sensitive_features=NEW_GROUP, ids=ids)
    assert np.array_equal(found[:, 1], wanted)
    assert np.allclose(found.sum(axis=1), 1)
    decided = model.predict(NEW_X, sensitive_features=NEW_GROUP, ids=ids)
    assert np.array_equal(decided, (wanted >= threshold).astype(int))
    accuracy = model.score(NEW_X, NEW_Y, sensitive_features=NEW_GROUP, ids=ids)
    assert accuracy == np.mean(decided == NEW_Y)


def test_the_score_is_about_the_decisions_of_a_subclass_too(fitted):
    class Selecting(CalibratedEqualizedOdds):
        def predict(self, X, **_):
            return np.ones(len(X), dtype=int)

    model = Selecting(FAST)
    vars(model).update(vars(fitted))
    assert model.score(NEW_X, NEW_Y, sensitive_features=NEW_GROUP) == np.mean(NEW_Y)


@pytest.mark.parametrize("kind", EVERY)
def test_expected_proba_is_the_average_over_many_coins(kind):
    model = kind(FAST, cv=2).fit(X, Y, sensitive_features=GROUP)
    rows = slice(0, 40)
    expected = model.expected_proba(NEW_X[rows], sensitive_features=NEW_GROUP[rows])[:, 1]
    scores = model.estimator_.predict_proba(NEW_X[rows])[:, 1]
    many = {"score": np.tile(scores, 4000), "group": np.tile(NEW_GROUP[rows], 4000)}
    thrown = model.rule_.apply(many, seed=0)["repaired_score"].reshape(4000, 40)
    assert np.abs(thrown.mean(axis=0) - expected).max() < 0.03
    assert thrown.std(axis=0).max() > 1e-4


def test_infeasible():
    x, y, group = people(4000)
    y = np.where(group == "b", np.random.default_rng(0).random(4000) < 0.2, y)
    with pytest.raises(ic.InfeasibleError):
        CalibratedEqualizedOdds(FAST, cv=2).fit(x, y, sensitive_features=group)
    model = CalibratedEqualizedOdds(FAST, cv=2, infeasible="closest")
    with pytest.warns(ic.InfeasibleWarning):
        model.fit(x, y, sensitive_features=group)
    assert not model.feasibility_.feasible
    small = Reconciled(FAST, equal=("generalized_fpr", "generalized_fnr"), cv=2)
    with pytest.raises(ic.InfeasibleError):
        small.fit(x, y, sensitive_features=group)
    with pytest.warns(ic.InfeasibleWarning):
        small.set_params(infeasible="closest").fit(x, y, sensitive_features=group)
    assert small.feasibility_.excess > 0


# cv


def test_prefit_and_frozen_use_the_model_as_it_is():
    base = clone(FAST).fit(NEW_X, NEW_Y)
    model = CalibratedEqualizedOdds(base, cv="prefit").fit(X, Y, sensitive_features=GROUP)
    assert model.estimator_ is base
    scores = base.predict_proba(X)[:, 1]
    assert model.tally_ == ic.tally({"score": scores, "label": Y, "group": GROUP})
    frozen = CalibratedEqualizedOdds(FrozenEstimator(base), cv=3)
    assert frozen.fit(X, Y, sensitive_features=GROUP).tally_ == model.tally_


def test_a_splitter_may_make_one_holdout():
    split = ShuffleSplit(1, test_size=0.3, random_state=0)
    model = CalibratedEqualizedOdds(FAST, cv=split).fit(X, Y, sensitive_features=GROUP)
    assert model.tally_.n == 900
    assert np.array_equal(model.estimator_.coef_, clone(FAST).fit(X, Y).coef_)


def test_a_group_that_vanishes_from_a_fold():
    group = np.where(np.arange(3000) < 1000, "first", "rest")
    with pytest.raises(ic.DataError) as error:
        CalibratedEqualizedOdds(FAST, cv=KFold(3)).fit(X, Y, sensitive_features=group)
    assert problem(error) == (
        "cv: the training part of every fold must have positives and negatives of every group\n"
        "  got:  no rows of group 'first' in the training part of fold 1 of 3\n"
        "  next: merge the group with another or leave it out; use cv=5, whose folds are "
        'stratified by group and label; or cv="prefit" with an estimator fitted on other data'
    )


def test_one_positive_in_a_group_vanishes_too():
    group = GROUP.copy()
    group[np.flatnonzero(Y == 1)[7]] = "c"
    group[np.flatnonzero(Y == 0)[:9]] = "c"
    with pytest.raises(ic.DataError, match="no positives of group 'c' in the training part of"):
        CalibratedEqualizedOdds(FAST).fit(X, Y, sensitive_features=group)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"cv": "holdout"}, 'cv: must be a whole number, "prefit", or a splitter'),
        ({"cv": 1}, "cv: must be at least 2"),
        ({"cv": ShuffleSplit(3, random_state=0)}, "cv: must test each row at most once"),
        ({"cv": 5000}, "the largest group has 802 rows of its commoner label"),
        ({"random_state": 2**70}, "random_state: must be a whole number from 0 to 42949"),
        ({"sample_weight": [1.0]}, "sample_weight: must have one value per row"),
        ({"sample_weight": np.full(3000, -1.0)}, "sample_weight: must be finite and not negative"),
        ({"sample_weight": np.full(3000, np.nan)}, "sample_weight: must be finite and not"),
        ({"sample_weight": ["x"] * 3000}, "sample_weight: must have one number per row"),
        ({"sensitive_features": ["a"] * 3000}, "group: must have at least two values"),
        ({"sensitive_features": ["a", "b"]}, "one value per row\n  got:  2 values for 3,000 rows"),
        ({"y": Y * 0}, "y: must have two classes\n  got:  one class, 0"),
        ({"y": np.arange(3000) % 3}, "Only binary classification is supported"),
    ],
)
def test_what_fit_refuses(changed, text):
    data = {"y": Y, "sensitive_features": GROUP, "sample_weight": None}
    settings = {name: value for name, value in changed.items() if name not in data}
    passed = data | {name: value for name, value in changed.items() if name in data}
    error = ic.UsageError if settings else ic.DataError
    with pytest.raises(error, match=text):
        EqualizedOdds(FAST, **settings).fit(X, **passed)


# Weights


def test_weights_reach_the_estimator_and_the_tally():
    weight = np.random.default_rng(3).gamma(2.0, size=len(Y))
    model = CalibratedEqualizedOdds(FAST, cv=2, tolerance=0.02)
    model.fit(X, Y, sensitive_features=GROUP, sample_weight=weight)
    assert np.array_equal(model.estimator_.coef_, clone(FAST).fit(X, Y, sample_weight=weight).coef_)
    assert model.tally_.is_weighted
    assert model.tally_.totals.w.sum() == pytest.approx(weight.sum())


def test_rows_of_weight_zero_do_not_count_for_the_rule():
    base = clone(FAST).fit(NEW_X, NEW_Y)
    weight = (np.arange(len(Y)) % 3 > 0).astype(float)
    kept = weight > 0
    model = CalibratedEqualizedOdds(FrozenEstimator(base), cv="prefit")
    all_rows = clone(model).fit(X, Y, sensitive_features=GROUP, sample_weight=weight)
    some = clone(model).fit(X[kept], Y[kept], sensitive_features=GROUP[kept])
    assert all_rows.tally_ == some.tally_


def test_an_estimator_without_weights_is_told():
    class Plain(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X, y)

    model = EqualizedOdds(Plain(), cv=2)
    with pytest.warns(ic.IsocostWarning, match="Plain takes no sample_weight"):
        model.fit(X, Y, sensitive_features=GROUP, sample_weight=np.ones(len(Y)) * 2)
    assert model.tally_.is_weighted


# Estimators of many kinds


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        HistGradientBoostingClassifier(max_iter=10),
        RandomForestClassifier(20, min_samples_leaf=20, random_state=0),
        MLPClassifier((4,), max_iter=30, random_state=0, tol=0.1, n_iter_no_change=3),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda e: type(e).__name__,
)
def test_works_with(estimator):
    model = CalibratedEqualizedOdds(estimator, cv=2, tolerance=0.01)
    with threadpool_limits(1):
        model.fit(X, Y, sensitive_features=GROUP)
    assert model.repaired_audit_.disparity.difference <= 0.01 + 1e-9
    assert model.predict_proba(NEW_X, sensitive_features=NEW_GROUP).shape == (500, 2)


@pytest.mark.parametrize(
    ("estimator", "text"),
    [
        (
            SVC(),
            "estimator: must have predict_proba: decision values are not probabilities\n"
            "  got:  SVC, which has only decision_function\n"
            '  next: set recalibrate="sigmoid" (or another method), which turns them into '
            "probabilities in each group",
        ),
        (
            LinearRegression(),
            "estimator: must have predict_proba or decision_function\n"
            "  got:  LinearRegression, which has neither\n"
            "  next: use a classifier that gives scores, or wrap it in "
            "sklearn.calibration.CalibratedClassifierCV",
        ),
    ],
)
def test_estimators_without_probabilities(estimator, text):
    with pytest.raises(ic.UsageError) as error:
        CalibratedEqualizedOdds(estimator).fit(X, Y, sensitive_features=GROUP)
    assert problem(error) == text


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_recalibrated_decision_values(kind, method):
    model = kind(RidgeClassifier(), recalibrate=method, cv=2, unknown="keep")
    model.fit(X, Y, sensitive_features=GROUP)
    assert model.response_ == "decision_function"
    assert set(model.calibrator_.groups_) == {"a", "b"}
    found = model.predict_proba(NEW_X, sensitive_features=NEW_GROUP)[:, 1]
    assert found.min() >= 0
    assert found.max() <= 1
    assert model.audit_.overall.calibration_gap_debiased < 0.05
    strangers = model.predict_proba(NEW_X, sensitive_features=["z"] * 500)[:, 1]
    assert len(np.unique(strangers)) > 20


@pytest.mark.filterwarnings("ignore:The scores do not rise")
@pytest.mark.parametrize("method", ["isotonic", "histogram", "beta"])
def test_no_score_is_calibrated_on_its_own_label(method):
    """With labels that mean nothing, calibrated scores must say nothing either."""
    random = np.random.default_rng(0)
    x, y, group = random.random((600, 2)), random.integers(0, 2, 600), random.choice([1, 2], 600)
    base = clone(FAST).fit(NEW_X[:, :2], NEW_Y)
    model = EqualizedOdds(base, recalibrate=method, cv="prefit").fit(x, y, sensitive_features=group)
    own = GroupCalibrator(method, cv=None, shrinkage=0.0)
    scores = base.predict_proba(x)[:, 1]
    fooled = own.fit(scores, y, sensitive_features=group).predict(scores, sensitive_features=group)

    def gain(tally):
        audit = measured(tally)
        return np.mean([1 - m.generalized_fpr - m.generalized_fnr for m in audit.groups.values()])

    assert gain(ic.tally({"score": fooled, "label": y, "group": group})) > 0.0
    assert gain(model.tally_) < gain(ic.tally({"score": fooled, "label": y, "group": group}))


def test_labels_of_any_kind():
    model = CalibratedEqualizedOdds(FAST, cv=2)
    words = np.where(Y == 1, "yes", "no")
    with pytest.warns(ic.IsocostWarning, match="'yes' is taken as positive because it is the last"):
        model.fit(X, words, sensitive_features=GROUP)
    assert model.classes_.tolist() == ["no", "yes"]
    plain = CalibratedEqualizedOdds(FAST, cv=2).fit(X, Y, sensitive_features=GROUP)
    assert model.rule_ == plain.rule_
    new = {"sensitive_features": NEW_GROUP}
    assert (model.predict(NEW_X, **new) == "yes").tolist() == (
        plain.predict(NEW_X, **new) == 1
    ).tolist()


@pytest.mark.parametrize("inner", [FAST, RidgeClassifier()], ids=["proba", "decision"])
def test_which_label_is_positive(inner):
    """bad sorts before good; the columns of predict_proba keep the order of classes_."""
    settings = {"cv": 2, "infeasible": "closest"}
    settings["recalibrate"] = None if inner is FAST else "sigmoid"
    plain = CalibratedEqualizedOdds(inner, **settings).fit(X, Y, sensitive_features=GROUP)
    words = np.where(Y == 1, "bad", "good")
    model = CalibratedEqualizedOdds(inner, pos_label="bad", **settings)
    model.fit(X, words, sensitive_features=GROUP)
    assert model.classes_.tolist() == ["bad", "good"]
    assert model.pos_label_ == "bad"
    new = {"sensitive_features": NEW_GROUP}
    bad = model.predict_proba(NEW_X, **new)[:, 0]
    assert bad == pytest.approx(plain.predict_proba(NEW_X, **new)[:, 1], abs=1e-6)
    assert ((model.predict(NEW_X, **new) == "bad") == (bad >= 0.5)).all()
    assert model.expected_proba(NEW_X, **new).sum(axis=1) == pytest.approx(1.0)
    assert np.exp(model.predict_log_proba(NEW_X, **new))[:, 0] == pytest.approx(bad)
    wanted = ic.scorer("generalized_fpr")(plain, NEW_X, NEW_Y, **new)
    named = np.where(NEW_Y == 1, "bad", "good")
    assert ic.scorer("generalized_fpr")(model, NEW_X, named, **new) == pytest.approx(wanted)
    with pytest.raises(ic.UsageError, match="pos_label: must be one of the labels"):
        clone(model).set_params(pos_label="worse").fit(X, words, sensitive_features=GROUP)


def test_groups_in_a_dict_are_intersections():
    age = np.where(X[:, 1] > 0, "old", "young")
    both = {"race": GROUP, "age": pd.Series(age)}
    model = CalibratedEqualizedOdds(FAST, cv=2, tolerance=1.0).fit(X, Y, sensitive_features=both)
    assert ("a", "old") in model.rule_.groups
    framed = model.predict_proba(X, sensitive_features=pd.DataFrame(both))
    assert model.predict_proba(X, sensitive_features=both).tolist() == framed.tolist()
    with pytest.raises(ic.UsageError, match="an empty dict"):
        model.predict_proba(X, sensitive_features={})
    with pytest.raises(ic.DataError, match="must have one value per row"):
        model.predict_proba(X, sensitive_features={"race": GROUP[:9], "age": age})


def test_predictions_in_folds():
    """scikit-learn hands no groups to predict, so they must be in X: see docs/scikit-learn.md."""
    data = np.column_stack([X, GROUP == "a"])
    model = CalibratedEqualizedOdds(FAST, cv=2, groups_from=3, infeasible="closest")
    scores = cross_val_predict(model, data, Y, cv=2, method="predict_proba")
    assert scores.shape == (len(Y), 2)
    assert np.corrcoef(scores[:, 1], Y)[0, 1] > 0.3
    logs = cross_val_predict(model, data, Y, cv=2, method="predict_log_proba")
    assert np.exp(logs) == pytest.approx(scores)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = CalibratedEqualizedOdds(FAST, cv=2)
        with pytest.raises(ic.UsageError, match="sensitive_features: must be given"):
            cross_val_predict(routed, X, Y, cv=2, params={"sensitive_features": GROUP})


# Frames, and what scikit-learn asks of everybody


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame, fitted):
    columns = {"one": X[:, 0], "two": X[:, 1], "three": X[:, 2]}
    data, groups = frame(columns), frame({"g": GROUP})
    model = CalibratedEqualizedOdds(FAST, cv=3).fit(data, Y, sensitive_features=groups)
    assert model.tally_ == fitted.tally_
    assert model.feature_names_in_.tolist() == ["one", "two", "three"]
    assert model.n_features_in_ == 3
    found = model.predict_proba(data, sensitive_features=groups["g"])
    wanted = fitted.predict_proba(X, sensitive_features=GROUP)
    assert np.allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_model_is_not_trained_on_the_column_of_the_groups(kind, frame):
    columns = {"one": X[:, 0], "race": (GROUP == "a").astype(int), "two": X[:, 1]}
    data = frame(columns)
    model = kind(FAST, cv=2, groups_from="race").fit(data, Y)
    assert model.estimator_.feature_names_in_.tolist() == ["one", "two"]
    assert model.estimator_.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["one", "race", "two"]
    assert model.n_features_in_ == 3
    assert model.rule_.groups == (0, 1)
    assert model.predict_proba(data).shape == (len(Y), 2)
    beside = kind(FAST, cv=2).fit(X[:, :2], Y, sensitive_features=columns["race"])
    assert model.tally_ == beside.tally_
    left_in = clone(model).set_params(train_on_groups=True).fit(data, Y)
    assert left_in.get_params()["train_on_groups"] is True
    assert left_in.estimator_.feature_names_in_.tolist() == ["one", "race", "two"]
    assert left_in.predict_proba(data).shape == (len(Y), 2)


@pytest.mark.parametrize("position", [1, -2, [1]])
@pytest.mark.parametrize("kind", [np.array, scipy.sparse.csr_array, np.ndarray.tolist])
def test_columns_of_groups_by_position(position, kind):
    data = kind(np.column_stack([X[:, 0], GROUP == "a", X[:, 1]]))
    model = EqualizedOdds(FAST, cv=2, groups_from=position).fit(data, Y)
    assert (model.estimator_.n_features_in_, model.n_features_in_) == (2, 3)
    assert model.predict_proba(data).shape == (len(Y), 2)


def test_a_column_of_groups_and_a_fitted_model():
    data = pd.DataFrame({"one": X[:, 0], "race": (GROUP == "a").astype(int), "two": X[:, 1]})
    options = {"cv": "prefit", "groups_from": "race"}
    blind = clone(FAST).fit(data[["one", "two"]], Y)
    assert len(EqualizedOdds(blind, **options).fit(data, Y).predict(data)) == len(Y)
    seeing = clone(FAST).fit(data, Y)
    with pytest.raises(ic.UsageError) as error:
        EqualizedOdds(seeing, **options).fit(data, Y)
    assert problem(error) == (
        "train_on_groups: must be True for an estimator that was fitted on the column of the "
        "groups\n"
        "  got:  an estimator fitted on 3 columns, and X has 2 without it\n"
        "  next: pass train_on_groups=True, or an estimator that was fitted without the column"
    )
    model = EqualizedOdds(seeing, **options, train_on_groups=True).fit(data, Y)
    assert len(model.predict(data)) == len(Y)


def test_set_output_in_a_pipeline():
    pipeline = make_pipeline(
        StandardScaler(), CalibratedEqualizedOdds(FAST, groups_from="f", cv=2, tolerance=0.3)
    ).set_output(transform="pandas")
    data = pd.DataFrame({"x": X[:, 0], "f": GROUP == "a"})
    with pytest.warns(ic.IsocostWarning, match="it seems that the group column was scaled"):
        pipeline.fit(data.astype(float), Y)
    assert pipeline[-1].feature_names_in_.tolist() == ["x", "f"]
    assert len(pipeline[-1].tally_.groups) == 2


def test_the_default_estimator():
    model = EqualizedOdds().fit(X, Y, sensitive_features=GROUP)
    assert isinstance(model.estimator_, LogisticRegression)
    assert model.estimator is None


# The coin


def test_the_same_row_alone_or_in_a_batch(fitted):
    new = {"sensitive_features": NEW_GROUP}
    batch = fitted.predict_proba(NEW_X, **new)
    alone = [
        fitted.predict_proba(NEW_X[i : i + 1], sensitive_features=NEW_GROUP[i : i + 1])[0]
        for i in range(100)
    ]
    assert np.allclose(batch[:100], alone, rtol=1e-12)
    order = np.random.default_rng(0).permutation(500)
    shuffled = fitted.predict_proba(NEW_X[order], sensitive_features=NEW_GROUP[order])
    assert np.array_equal(shuffled, batch[order])
    changed = batch[:, 1] != fitted.estimator_.predict_proba(NEW_X)[:, 1]
    share = fitted.rule_.alpha["a"]
    assert abs(changed[NEW_GROUP == "a"].mean() - share) < 0.1


def test_another_salt_throws_other_coins(fitted):
    other = clone(fitted).set_params(salt="other").fit(X, Y, sensitive_features=GROUP)
    new = {"sensitive_features": NEW_GROUP}
    assert not np.array_equal(other.predict_proba(NEW_X, **new), fitted.predict_proba(NEW_X, **new))


def test_random_state_gives_equal_rows_coins_of_their_own(fitted):
    rows, group = np.repeat(NEW_X[NEW_GROUP == "a"][:1], 2000, axis=0), ["a"] * 2000
    new = {"sensitive_features": group}
    assert len(np.unique(fitted.predict_proba(rows, **new)[:, 1])) == 1
    model = pickle.loads(pickle.dumps(fitted)).set_params(random_state=7)
    found = model.predict_proba(rows, **new)[:, 1]
    share = fitted.rule_.alpha["a"]
    withheld = np.mean(found == fitted.rule_.rows[0].value)
    assert abs(withheld - share) < 4 * np.sqrt(share * (1 - share) / 2000)
    assert np.array_equal(found, model.predict_proba(rows, **new)[:, 1])
    model.set_params(random_state=np.random.RandomState(0))
    assert not np.array_equal(found, model.predict_proba(rows, **new)[:, 1])


# Bad input


def test_sensitive_features_are_required(fitted):
    text = (
        "sensitive_features: must be given: the group of each row\n"
        "  got:  None\n"
        "  next: pass sensitive_features=; in a pipeline or a search this needs "
        "sklearn.set_config(enable_metadata_routing=True) and a request such as "
        "set_fit_request(sensitive_features=True); or set groups_from=, where there is this "
        "parameter, to the columns of X that hold the group, which needs no routing"
    )
    with pytest.raises(ic.UsageError) as error:
        EqualizedOdds(FAST).fit(X, Y)
    assert problem(error) == text
    with pytest.raises(ic.UsageError) as error:
        fitted.predict(X)
    assert problem(error) == text


def test_groups_not_seen_in_fit(fitted):
    with pytest.raises(ic.UsageError) as error:
        fitted.predict_proba(NEW_X[:2], sensitive_features=["a", "z"])
    assert "group: must be one the rule knows: 'a', 'b'\n  got:  'z'" in problem(error)
    kind = pickle.loads(pickle.dumps(fitted)).set_params(unknown="keep")
    found = kind.predict_proba(NEW_X[:2], sensitive_features=["a", "z"])
    assert found[1, 1] == fitted.estimator_.predict_proba(NEW_X[:2])[1, 1]
    average = kind.expected_proba(NEW_X[:2], sensitive_features=["a", "z"])
    assert average[1, 1] == pytest.approx(found[1, 1], abs=1e-15)


def test_one_class_in_a_group():
    group = np.where(Y == 1, GROUP, np.where(np.arange(3000) < 50, "c", GROUP))
    model = EqualizedOdds(FAST).fit(X, Y, sensitive_features=group)
    assert (model.rule_.groups, model.rule_.fitted) == (("a", "b", "c"), ("a", "b"))
    with pytest.raises(ic.DataError, match="only 'a'; 'c' has no positives"):
        EqualizedOdds(FAST).fit(X, Y, sensitive_features=np.where(group == "b", "a", group))


def test_prefit_needs_a_fitted_model_of_the_same_classes():
    with pytest.raises(ic.UsageError, match='estimator: must be fitted when cv="prefit"'):
        EqualizedOdds(clone(FAST), cv="prefit").fit(X, Y, sensitive_features=GROUP)
    base = clone(FAST).fit(NEW_X, NEW_Y)
    with pytest.raises(ic.DataError, match="y: must have the classes that the estimator was"):
        EqualizedOdds(base, cv="prefit", pos_label=2).fit(X, Y * 2, sensitive_features=GROUP)
    three = LogisticRegression().fit(NEW_X, np.arange(500) % 3)
    with pytest.raises(ic.UsageError, match="estimator: must be a binary classifier"):
        EqualizedOdds(three, cv="prefit").fit(X, Y, sensitive_features=GROUP)


@pytest.mark.parametrize("ids", [[1], "id"])
def test_bad_ids(ids, fitted):
    with pytest.raises(ic.UsageError, match="ids: must have one value per row of X"):
        fitted.predict_proba(NEW_X, sensitive_features=NEW_GROUP, ids=ids)


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        (CalibratedEqualizedOdds, {"method": "flip"}),
        (CalibratedEqualizedOdds, {"infeasible": "ignore"}),
        (CalibratedEqualizedOdds, {"recalibrate": "platt"}),
        (CalibratedEqualizedOdds, {"minimize": "median"}),
        (CalibratedEqualizedOdds, {"threshold": 1.5}),
        (CalibratedEqualizedOdds, {"confidence": 2.0}),
        (CalibratedEqualizedOdds, {"unknown": "drop"}),
        (EqualizedOdds, {"rates": "soft"}),
        (Reconciled, {"equal": "auc"}),
        (Reconciled, {"levels": 1}),
        (HandOver, {"share": 2.0}),
    ],
)
def test_bad_settings_are_told_before_training(kind, setting):
    with pytest.raises(ic.UsageError, match=f"{next(iter(setting))}: must"):
        kind(LinearRegression(), **setting).fit(X, Y, sensitive_features=GROUP)


# Metadata routing


def test_pipeline(routing):
    model = CalibratedEqualizedOdds(FAST, cv=2).set_predict_proba_request(ids=True)
    pipeline = make_pipeline(StandardScaler(), model)
    pipeline.fit(X, Y, sensitive_features=GROUP)
    ids = np.arange(500)
    found = pipeline.predict_proba(NEW_X, sensitive_features=NEW_GROUP, ids=ids)
    scaled = pipeline[0].transform(NEW_X)
    wanted = pipeline[-1].predict_proba(scaled, sensitive_features=NEW_GROUP, ids=ids)
    assert np.array_equal(found, wanted)
    assert pipeline.predict(NEW_X, sensitive_features=NEW_GROUP).shape == (500,)


def test_requests_can_be_turned_off_and_renamed(routing):
    model = EqualizedOdds(FAST, cv=2).set_fit_request(sensitive_features="race")
    pipeline = make_pipeline(StandardScaler(), model).fit(X, Y, race=GROUP)
    assert pipeline[-1].rule_.groups == ("a", "b")
    model.set_fit_request(sensitive_features=False)
    with pytest.raises(TypeError, match="unexpected argument"):
        make_pipeline(StandardScaler(), model).fit(X, Y, sensitive_features=GROUP)


@pytest.mark.parametrize("scoring", ["of the pipeline", "given"])
def test_grid_search(routing, scoring):
    version = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
    if scoring == "of the pipeline" and version < (1, 8):
        pytest.skip("scikit-learn routes to the score of a pipeline from 1.8 on")
    scorer = cost_disparity_scorer("fpr").set_score_request(sensitive_features=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), CalibratedEqualizedOdds(FAST, cv=2)),
        {"calibratedequalizedodds__tolerance": [0.0, 0.05]},
        scoring=scorer if scoring == "given" else None,
        cv=2,
    )
    search.fit(X, Y, sensitive_features=GROUP)
    assert np.isfinite(search.best_score_)
    best = search.best_estimator_[-1]
    assert best.rule_.settings["tolerance"] == best.tolerance


def test_weights_are_routed_to_the_inner_estimator(routing):
    weight = np.random.default_rng(3).gamma(2.0, size=len(Y))
    asked = clone(FAST).set_fit_request(sample_weight=True)
    given = {"sensitive_features": GROUP, "sample_weight": weight}
    model = EqualizedOdds(asked, cv=2).fit(X, Y, **given)
    assert np.array_equal(model.estimator_.coef_, clone(FAST).fit(X, Y, sample_weight=weight).coef_)
    refused = clone(FAST).set_fit_request(sample_weight=False)
    model = EqualizedOdds(refused, cv=2).fit(X, Y, **given)
    assert np.array_equal(model.estimator_.coef_, clone(FAST).fit(X, Y).coef_)
    assert model.tally_.is_weighted
    unset = sklearn.exceptions.UnsetMetadataPassedError
    with pytest.raises(unset, match="not explicitly set as requested or not requested"):
        EqualizedOdds(clone(FAST), cv=2).fit(X, Y, **given)
    assert EqualizedOdds(cv=2).fit(X, Y, **given).tally_.is_weighted


def test_groups_for_the_splitter_are_routed(routing):
    site = np.arange(len(Y)) % 7
    model = EqualizedOdds(FAST, cv=GroupKFold(3).set_split_request(groups=True))
    model.fit(X, Y, sensitive_features=GROUP, groups=site)
    assert model.tally_.n == 3000


def test_fit_params_go_to_the_estimator_without_routing():
    class Noted(LogisticRegression):
        def fit(self, X, y, note=None, rows=None):
            self.note_, self.rows_ = note, rows
            return super().fit(X, y)

    model = EqualizedOdds(Noted(), cv=2)
    model.fit(X, Y, sensitive_features=GROUP, note="hello", rows=np.arange(3000))
    assert model.estimator_.note_ == "hello"
    assert len(model.estimator_.rows_) == 3000


# Truth


def test_held_out_disparity_is_within_its_interval():
    """Fitted on 1e5 rows, the costs of new people differ by no more than chance."""
    x, y, group = people(100_000, seed=5)
    model = CalibratedEqualizedOdds(FAST, cost="fnr", cv=3).fit(x, y, sensitive_features=group)
    new_x, new_y, new_group = people(100_000, seed=6)
    before = model.estimator_.predict_proba(new_x)[:, 1]
    after = model.predict_proba(new_x, sensitive_features=new_group)[:, 1]

    def difference(scores):
        tally = ic.tally({"score": scores, "label": new_y, "group": new_group})
        return ic.intervals(tally, "fnr", replicates=500).differences["cost"]

    assert min(map(abs, difference(before))) > 0.1
    low, high = sorted(difference(after))
    assert low <= 0 <= high
    assert high - low < 0.01
    gaps = measured(ic.tally({"score": after, "label": new_y, "group": new_group})).groups.values()
    assert max(m.calibration_gap_debiased for m in gaps) < 0.02


def test_reconciling_that_selects_nobody_is_infeasible():
    random = np.random.default_rng(5)
    group = random.choice(["a", "b"], 4000)
    # Few positives in b, and scores that say less about a.
    x = random.normal(size=(4000, 1)) * np.where(group == "a", 0.75, 1.6)[:, None]
    y = random.random(4000) < 1 / (1 + np.exp(-x[:, 0] + np.where(group == "a", 0.4, 3.0)))
    given = {"sensitive_features": group}
    model = Reconciled(LogisticRegression(), recalibrate="isotonic", cv=2)
    with pytest.raises(ic.InfeasibleError, match="only if nobody is selected"):
        model.fit(x, y, **given)
    with pytest.warns(ic.InfeasibleWarning, match="closest with somebody selected"):
        model.set_params(infeasible="closest").fit(x, y, **given)
    verdict, after = model.feasibility_, model.repaired_audit_
    assert not verdict.feasible
    assert verdict.selecting_tolerance > 0
    assert min(m.selection_rate for m in after.groups.values()) > 0.005
    odds = after.equalized_odds_difference
    assert odds == pytest.approx(verdict.selecting_tolerance, abs=1e-8)


# Handing over: a third value


@pytest.mark.filterwarnings("ignore::isocost.DeferralWarning", "ignore:y has the labels")
def test_people_who_are_handed_over_have_a_third_value():
    X, y, group = people(3000, base=0.5)
    model = HandOver(FAST, share=0.4, cv=2).fit(X, y, sensitive_features=group)
    assert model.rule_.method == "hand_over"
    assert model.repaired_audit_.equalized_odds_difference < 1e-9
    assert model.classes_.tolist() == [0, 1]
    assert model.feasibility_.feasible
    assert str(model.feasibility_) == "Feasible."
    given = {"sensitive_features": NEW_GROUP, "ids": np.arange(len(NEW_X))}
    gone = model.handed_over(NEW_X, **given)
    assert gone.mean() == pytest.approx(0.4, abs=0.1)
    predicted, scores = model.predict(NEW_X, **given), model.predict_proba(NEW_X, **given)
    np.testing.assert_array_equal(predicted == -1, gone)
    np.testing.assert_array_equal(np.isnan(scores).all(axis=1), gone)
    np.testing.assert_array_equal(predicted[~gone], scores[~gone].argmax(axis=1))
    right = (predicted == NEW_Y)[~gone].mean()
    assert model.score(NEW_X, NEW_Y, **given) == pytest.approx(right)
    # Nobody need know what became of those who are handed over.
    unknown = np.where(gone, np.nan, NEW_Y)
    assert model.score(NEW_X, unknown, **given) == pytest.approx(right)
    # The rule does the same to data.
    raw = model.estimator_.predict_proba(NEW_X)[:, 1]
    after = model.rule_.apply(score=raw, group=NEW_GROUP, id=given["ids"])
    np.testing.assert_array_equal(after, scores[:, 1])
    # On average over the coin there is a score wherever somebody may be decided.
    mean = model.expected_proba(NEW_X, sensitive_features=NEW_GROUP)[:, 1]
    assert not np.isnan(mean[~gone]).any()


@pytest.mark.parametrize(
    ("names", "chosen", "third", "kind"),
    [
        ([False, True], None, -1, "i"),
        ([-1, 1], None, -2, "i"),
        ([1.0, 2.0], None, np.nan, "f"),
        (["no", "yes"], None, "handed over", "U"),
        (["no", "yes"], -1, -1, "O"),
        ([0, 1], 9, 9, "i"),
    ],
)
@pytest.mark.filterwarnings("ignore::isocost.DeferralWarning", "ignore:y has the labels")
def test_the_third_value_fits_the_classes(names, chosen, third, kind):
    X, y, group = people(400, base=0.5)
    model = HandOver(FAST, share=0.6, cv=2, handed_over_label=chosen, infeasible="closest")
    model.fit(X, np.array(names)[y], sensitive_features=group)
    predicted = model.predict(X, sensitive_features=group)
    assert predicted.dtype.kind == kind
    gone = model.handed_over(X, sensitive_features=group)
    wanted = np.full(gone.sum(), third, dtype=predicted.dtype)
    np.testing.assert_array_equal(predicted[gone], wanted)
    assert set(predicted[~gone].tolist()) <= set(names)
    with pytest.raises(ic.UsageError, match="must be none of the classes"):
        model.set_params(handed_over_label=names[0]).fit(
            X, np.array(names)[y], sensitive_features=group
        )
