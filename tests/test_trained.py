import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import isocost as ic
from isocost.errors import ConstraintWarning, DataError, MissingDependencyError, UsageError
from isocost.learn.trained import EqualizedOddsLogisticRegression
from reproduction.datasets import compas
from reproduction.models import zafar_features
from tests.conftest import OLD_WEIGHT_CHECK
from tests.reproduction.conftest import need

QUICK = {"taus": (), "restarts": 2}


def people(rows=600, groups=2, seed=0, levels=None):
    """Two features; the first and the base rate vary with the group."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, rows)
    X = rng.normal(size=(rows, 2)) + np.outer(group, [1.0, -0.3])
    if levels:
        X = np.round(X * levels) / levels
    y = (rng.random(rows) < 1 / (1 + np.exp(-(X @ [1.2, 0.7] - 0.4)))).astype(int)
    return X, y, np.array(list("abcdef"))[group]


def covariance(kind, z, y, group, name, weight=None):
    """Zafar et al.'s covariance, written row by row."""
    weight = np.ones(len(y)) if weight is None else weight
    sign = 2 * y - 1
    factor = {"fpr": (1 - sign) / 2, "fnr": (1 + sign) / 2, "all": np.ones(len(y))}[kind]
    g = np.minimum(0, factor * sign * z)
    inside = (group == name).astype(float)
    inside -= np.average(inside, weights=weight)
    return np.average(inside * g, weights=weight)


@pytest.mark.parametrize("constraint", ["fpr", "fnr", "both", "all"])
@pytest.mark.parametrize("bound", [0.0, 0.01])
def test_constraint_and_loss_are_what_the_rows_say(constraint, bound):
    X, y, group = people()
    model = EqualizedOddsLogisticRegression(constraint, bound, **QUICK)
    model.fit(X, y, sensitive_features=group)
    z = X @ model.coef_[0] + model.intercept_
    kinds = ("fpr", "fnr") if constraint == "both" else (constraint,)
    assert tuple(model.achieved_) == kinds
    for kind in kinds:
        for name in "ab":
            value = covariance(kind, z, y, group, name)
            assert model.achieved_[kind][name] == pytest.approx(value, abs=1e-12)
            assert abs(value) <= bound + 1e-6
    assert model.loss_ == pytest.approx(log_loss(y, model.predict_proba(X)), abs=1e-12)
    assert model.met_
    free = EqualizedOddsLogisticRegression(constraint, 10.0, **QUICK)
    free.fit(X, y, sensitive_features=group)
    assert model.loss_ >= free.loss_
    assert bound or model.loss_ > free.loss_ + 1e-4


@pytest.mark.parametrize("C", [1.0, 0.01, None, np.inf])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_bound_that_does_not_bind_gives_logistic_regression(C, intercept):
    X, y, group = people()
    X = X * [1.0, 30.0]
    model = EqualizedOddsLogisticRegression("both", 50.0, C, fit_intercept=intercept)
    model.fit(X, y, sensitive_features=group)
    peer = LogisticRegression(
        C=np.inf if C is None else C, fit_intercept=intercept, tol=1e-12, max_iter=10_000
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-6)
    assert [start.name for start in model.starts_] == ["unconstrained"]


@pytest.mark.parametrize("constraint", ["fpr", "fnr", "all"])
@pytest.mark.parametrize("seed", range(3))
def test_no_direction_is_better(constraint, seed):
    # With one feature and an intercept the covariance depends on the direction but for its size:
    # all directions can be looked through.
    X, y, group = people(seed=seed, levels=2)
    x = X[:, :1]
    model = EqualizedOddsLogisticRegression(constraint, 0.0, None, taus=(5.0,))
    with warnings.catch_warnings():
        # Here giving everybody one class may really be the best that meets the bound.
        warnings.simplefilter("ignore", ConstraintWarning)
        model.fit(x, y, sensitive_features=group)
    design = np.column_stack([x, np.ones(len(x))])
    angles = np.linspace(0, 2 * np.pi, 1001)

    def cov(angle):
        return covariance(constraint, design @ [np.cos(angle), np.sin(angle)], y, group, "a")

    values = np.array([cov(angle) for angle in angles])
    feasible = list(angles[np.abs(values) < 1e-12])
    for i in np.flatnonzero(values[:-1] * values[1:] < -1e-30):
        low, high = angles[i], angles[i + 1]
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if cov(middle) * cov(low) > 0 else (low, middle)
        feasible.append(low)
    sign, sizes = 2 * y - 1, np.linspace(0, 6, 121)
    z = [design @ [np.cos(a), np.sin(a)] for a in feasible]
    losses = [np.logaddexp(0, np.outer(sizes, -sign * row)).mean(axis=1).min() for row in z]
    assert model.met_
    assert model.loss_ <= min(losses) + 1e-6


def test_three_groups():
    X, y, group = people(900, groups=3)
    for constraint in ("fpr", "both"):
        model = EqualizedOddsLogisticRegression(constraint, 0.0, taus=(5.0,))
        with warnings.catch_warnings():
            # All four covariances are 0 only where nearly everybody gets one class.
            warnings.filterwarnings("ignore", ".*of use", ConstraintWarning)
            model.fit(X, y, sensitive_features=group)
        z = model.decision_function(X)
        for kind, found in model.achieved_.items():
            assert list(found) == ["a", "b", "c"]
            assert max(map(abs, found.values())) < 1e-6
            assert found["c"] == pytest.approx(covariance(kind, z, y, group, "c"), abs=1e-12)
    loose = EqualizedOddsLogisticRegression("fpr", 0.01, **QUICK)
    loose.fit(X, y, sensitive_features=group)
    assert max(map(abs, loose.achieved_["fpr"].values())) == pytest.approx(0.01, abs=1e-6)


def test_integer_weights_are_repeated_rows():
    X, y, group = people(300)
    weight = np.random.default_rng(1).integers(0, 4, 300)
    one = EqualizedOddsLogisticRegression("fpr", **QUICK)
    two = clone(one)
    one.fit(X, y, sensitive_features=group, sample_weight=weight)
    two.fit(*(np.repeat(a, weight, axis=0) for a in (X, y)),
            sensitive_features=np.repeat(group, weight))  # fmt: skip
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-9)
    assert one.loss_ == pytest.approx(two.loss_, abs=1e-12)
    value = covariance("fpr", one.decision_function(X), y, group, "a", weight)
    assert one.achieved_["fpr"]["a"] == pytest.approx(value, abs=1e-12)


def test_the_order_and_repetition_of_rows_do_not_matter():
    X, y, group = people(300, levels=2)
    order = np.random.default_rng(0).permutation(600) % 300
    model = EqualizedOddsLogisticRegression("fnr", C=None, **QUICK)
    one = clone(model).fit(X, y, sensitive_features=group)
    two = clone(model).fit(X[order], y[order], sensitive_features=group[order])
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-5)


@pytest.mark.parametrize("C", [1.0, None])
def test_separable_data(C):
    X, _, group = people()
    y = (X[:, 0] > 0.5).astype(int)
    model = EqualizedOddsLogisticRegression("both", C=C, taus=(5.0,))
    model.fit(X, y, sensitive_features=group)
    assert model.met_
    assert (model.predict(X) == y).mean() > 0.99
    assert np.isfinite(model.coef_).all()


def test_a_constant_feature_changes_nothing():
    X, y, group = people()
    model = EqualizedOddsLogisticRegression("fpr", C=None, taus=(5.0,))
    plain = clone(model).fit(X, y, sensitive_features=group)
    wider = clone(model).fit(
        np.column_stack([X, np.full(len(y), 0.1)]), y, sensitive_features=group
    )
    assert wider.loss_ == pytest.approx(plain.loss_, abs=1e-7)
    np.testing.assert_allclose(wider.coef_[0, :2], plain.coef_[0], atol=1e-3)


def test_the_group_is_no_feature():
    X, y, group = people()
    model = EqualizedOddsLogisticRegression(**QUICK).fit(X, y, sensitive_features=group)
    assert model.coef_.shape == (1, 2)
    assert model.predict(X[:3]).shape == (3,)


def test_nobody_is_left_on_the_boundary():
    # Few distinct rows: the optimum runs through some of them.
    through = 0
    for seed in range(6):
        X, y, group = people(seed=seed, levels=1)
        model = EqualizedOddsLogisticRegression("fpr", C=None, **QUICK)
        model.fit(X, y, sensitive_features=group)
        raw = min((s for s in model.starts_ if s.met), key=lambda s: s.objective)
        through += abs(raw.loss - model.loss_) > 1e-15
        assert np.abs(model.decision_function(X)).min() > 1e-7
        assert model.loss_ <= raw.loss + 1e-6
        assert max(map(abs, model.achieved_["fpr"].values())) < 1e-5
    assert through >= 1


def test_every_start_is_told_and_the_best_is_kept():
    X, y, group = people()
    model = EqualizedOddsLogisticRegression("fpr", taus=(0.5, 50.0), restarts=1)
    model.fit(X, y, sensitive_features=group)
    assert [start.name for start in model.starts_] == [
        "unconstrained", "tau=0.5", "tau=0.5 + smooth", "tau=50", "tau=50 + smooth",
        "unconstrained + smooth", "shifted -2 + smooth", "shifted -1 + smooth",
        "shifted +1 + smooth", "shifted +2 + smooth", "random 1 + smooth",
    ]  # fmt: skip
    met = [start for start in model.starts_ if start.met]
    assert model.loss_ <= min(start.objective for start in met) + 1e-6
    assert not model.starts_[0].met
    assert model.converged_
    assert model.n_iter_ >= 1


def test_convex_concave_programs_of_a_sample_are_only_starts():
    X, y, group = people()
    model = EqualizedOddsLogisticRegression("fpr", taus=(5.0,), restarts=0, max_cells=100)
    model.fit(X, y, sensitive_features=group)
    whole = clone(model).set_params(max_cells=None).fit(X, y, sensitive_features=group)
    assert model.starts_[1].name == "tau=5"
    assert not model.starts_[1].met
    assert whole.starts_[1].met
    assert model.met_
    assert model.loss_ == pytest.approx(whole.loss_, abs=1e-5)


def test_a_bound_that_is_not_met_is_told():
    X, y, group = people()
    model = EqualizedOddsLogisticRegression("fpr", taus=(), restarts=0, max_iter=1)
    with pytest.warns(ConstraintWarning) as caught:
        model.fit(X, y, sensitive_features=group)
    value = max(model.achieved_["fpr"].values(), key=abs)
    text = str(caught[0].message)
    assert text.startswith("bound: must be met: no covariance beyond 0\n  got:  ")
    assert f"{abs(value):.6g} (fpr, " in text
    assert "next: raise max_iter, try other taus, or accept bound=" in text
    assert caught[0].filename == __file__
    assert not model.met_
    assert not model.converged_


def test_one_class_for_everybody_is_told():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 200)
    # All that is known is the group itself: only a constant treats the groups alike.
    X = (group == "a")[:, None].astype(float)
    y = (rng.random(400) < np.where(group == "a", 0.7, 0.2)).astype(int)
    model = EqualizedOddsLogisticRegression("fpr", C=None, **QUICK)
    with pytest.warns(ConstraintWarning, match="should allow predictions that vary") as caught:
        model.fit(X, y, sensitive_features=group)
    assert "met only by giving everybody one class" in str(caught[0].message)
    assert "next: raise the bound" in str(caught[0].message)
    assert len(set(model.predict(X))) == 1


def clusters(rows=1500, seed=0):
    """Zafar et al.'s synthetic people: the negatives of one group are like positives."""
    rng = np.random.default_rng(seed)
    y, group = rng.integers(0, 2, (2, rows))
    mean = np.where(y == 1, 2.0, np.where(group == 1, -2.0, 1.0))
    alike = np.where((y == 0) & (group == 0), 2.0, 1.0)  # the covariance of the features
    shared, own = rng.normal(size=rows), rng.normal(size=(rows, 2))
    X = np.sqrt(alike) * shared + np.sqrt(3.0 - alike) * own.T + mean
    return X.T, y, group


def test_a_bound_that_is_met_by_selecting_nearly_nobody_is_told():
    X, y, group = clusters()
    model = EqualizedOddsLogisticRegression("fpr", C=None, **QUICK)
    with pytest.warns(ConstraintWarning, match="of use") as caught:
        model.fit(X, y, sensitive_features=group)
    assert model.met_
    assert model.predict(X).mean() < 0.05
    assert "next: least_selected=0.05: of " in str(caught[0].message)
    useful = clone(model).set_params(least_selected=0.05).fit(X, y, sensitive_features=group)
    assert useful.met_
    assert 0.05 <= useful.predict(X).mean() <= 0.95
    assert useful.score(X, y) > model.score(X, y) + 0.05
    assert useful.loss_ > model.loss_


def test_path_from_loose_to_tight():
    X, y, group = people()
    model = EqualizedOddsLogisticRegression("fpr", C=None, **QUICK)
    path = model.constraint_path(X, y, [0.0, 0.05, 0.01, 0.02, 9], sensitive_features=group)
    assert [point.bound for point in path] == [9.0, 0.05, 0.02, 0.01, 0.0]
    assert not hasattr(model, "coef_")
    losses = [point.loss for point in path]
    assert losses == sorted(losses)
    assert all(point.met for point in path)
    table = path.to_dict()
    assert all(c <= b + 1e-6 for c, b in zip(table["covariance"], table["bound"], strict=True))
    tight = path[-1]
    said = tight.model.predict(X)
    assert tight.accuracy == (said == y).mean()
    assert tight.fpr["a"] == said[(group == "a") & (y == 0)].mean()
    assert tight.fnr["b"] == (said == 0)[(group == "b") & (y == 1)].mean()
    assert tight.achieved == tight.model.achieved_
    alone = clone(model).fit(X, y, sensitive_features=group)
    assert tight.loss == pytest.approx(alone.loss_, abs=1e-5)
    assert str(path).splitlines()[0].split()[:3] == ["bound", "met", "loss"]
    assert len(str(path).splitlines()) == 2 + len(path) == 7


def test_path_with_weights_and_labels_that_are_texts():
    X, y, group = people()
    weight = np.where(group == "a", 2.0, 1.0)
    named = np.where(y == 1, "yes", "no")
    model = EqualizedOddsLogisticRegression("fnr", pos_label="yes", **QUICK)
    path = model.constraint_path(X, named, [0.01], sensitive_features=group, sample_weight=weight)
    right = path[0].model.predict(X) == named
    assert path[0].accuracy == pytest.approx(np.average(right, weights=weight))
    assert set(path[0].model.classes_) == {"yes", "no"}


@pytest.mark.parametrize("bounds", [[], [np.nan], [np.inf]])
def test_path_needs_bounds(bounds):
    X, y, group = people(50)
    with pytest.raises(UsageError, match="bounds: must be one or more finite numbers"):
        EqualizedOddsLogisticRegression().constraint_path(X, y, bounds, sensitive_features=group)


def fails(error, X, y, group, weight=None, **parameters):
    with pytest.raises(error) as caught:
        EqualizedOddsLogisticRegression(**parameters).fit(
            X, y, sensitive_features=group, sample_weight=weight
        )
    text = str(caught.value)
    assert "\n  got:  " in text
    assert "\n  next: " in text
    return text


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        (
            {"constraint": "tpr"},
            'constraint: must be "fpr", "fnr", "both" or "all"\n  got:  \'tpr\'',
        ),
        ({"bound": -0.1}, "bound: must be a number at least 0\n  got:  -0.1"),
        ({"bound": np.nan}, "bound: must be a number at least 0\n  got:  nan"),
        ({"bound": "0"}, "bound: must be a number at least 0\n  got:  '0'"),
        ({"C": 0.0}, "C: must be a number above 0\n  got:  0.0\n  next: use 1.0, or None"),
        ({"max_iter": 0}, "max_iter: must be a number at least 1\n  got:  0"),
        ({"restarts": -1}, "restarts: must be a number at least 0"),
        ({"max_cells": 0}, "max_cells: must be a number at least 1"),
        ({"tol": -1.0}, "tol: must be a number at least 0"),
        ({"taus": (5.0, 0.0)}, "taus: must be a number above 0\n  got:  0.0"),
    ],
)
def test_parameters_that_cannot_be(parameters, text):
    X, y, group = people(50)
    assert fails(UsageError, X, y, group, **parameters).startswith(text)


def test_groups_that_cannot_be():
    X, y, group = people(50)
    text = fails(UsageError, X, y, None)
    assert text.startswith("sensitive_features: must be given: the group of each row\n  got:  None")
    assert "set_fit_request(sensitive_features=True)" in text
    text = fails(DataError, X, y, group[:40])
    assert "must have one value per row\n  got:  40 values for 50 rows" in text
    text = fails(DataError, X, y, ["a"] * 50)
    assert "must hold at least two groups\n  got:  only 'a'" in text
    text = fails(DataError, X, y, [None, *group[1:]])
    assert "must be known in every row\n  got:  1 null (first: in row 0), of 50 rows" in text
    text = fails(DataError, X, y, group, weight=(group == "a").astype(float))
    assert "must hold at least two groups" in text


@pytest.mark.parametrize(
    ("constraint", "value", "word"), [("fpr", 1, "negative"), ("fnr", 0, "positive")]
)
def test_one_class_in_a_group(constraint, value, word):
    X, y, group = people(50)
    y = np.where(group == "b", value, y)
    for name, words in ((constraint, word), ("both", "negative and positive")):
        text = fails(DataError, X, y, group, constraint=name)
        assert text.startswith(f"constraint: needs {words} rows in at least two groups")
        assert "got:  not in b" in text


def test_a_group_of_one_class_is_left_out_of_the_constraint():
    X, y, group = people(600)
    more = np.random.default_rng(1).normal(size=(100, X.shape[1]))
    X, y = np.vstack([X, more]), np.concatenate([y, np.ones(100, dtype=y.dtype)])
    group = np.concatenate([group, np.full(100, "c")])
    model = EqualizedOddsLogisticRegression("fpr", taus=(), restarts=0)
    with pytest.warns(ic.IsocostWarning, match="which needs negative rows of a group: c"):
        model.fit(X, y, sensitive_features=group)
    assert set(model.achieved_["fpr"]) == {"a", "b"}
    negative = (y == 0) & (group != "c")
    distance = np.where(negative, np.maximum(model.decision_function(X), 0.0), 0.0)[group != "c"]
    is_a = group[group != "c"] == "a"
    covariance = np.mean((is_a - is_a.mean()) * distance)
    assert model.achieved_["fpr"]["a"] == pytest.approx(covariance, abs=1e-9)
    assert model.met_
    assert abs(covariance) < 1e-3


def test_labels_that_cannot_be():
    X, y, group = people(50)
    assert "Only binary classification" in fails(DataError, X, np.arange(50) % 3, group)
    text = fails(DataError, X, np.ones(50), group)
    assert "y: must have two classes in rows of positive weight\n  got:  one class" in text
    assert "must have two classes in rows of" in fails(
        DataError, X, y, group, weight=y.astype(float)
    )


@pytest.mark.parametrize(
    ("weight", "rule"),
    [
        (np.ones(40), "must have one value per row"),
        (-np.ones(50), "must be finite and not negative"),
        (np.full(50, np.nan), "must be finite and not negative"),
    ],
)
def test_weights_that_cannot_be(weight, rule):
    X, y, group = people(50)
    assert f"sample_weight: {rule}" in fails(DataError, X, y, group, weight=weight)


def test_without_the_solvers(monkeypatch):
    for name in ("cvxpy", "dccp"):
        monkeypatch.setitem(sys.modules, name, None)
    X, y, group = people(50)
    text = fails(MissingDependencyError, X, y, group)
    assert "needs cvxpy and dccp to train\n  got:  no cvxpy" in text
    assert 'next: pip install "isocost[train]"' in text
    model = EqualizedOddsLogisticRegression("all", taus=()).fit(X, y, sensitive_features=group)
    assert model.met_


def test_importing_does_not_load_the_solvers():
    code = "import sys, isocost.learn.trained; print({'cvxpy', 'dccp'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "set()\n"


@pytest.mark.parametrize("kind", ["list", "series", "polars", "name", "names", "two columns"])
def test_ways_to_give_the_group(kind):
    X, y, group = people()
    number = (group == "b").astype(float)
    want = EqualizedOddsLogisticRegression("fpr", **QUICK).fit(X, y, sensitive_features=group)
    frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1]})
    data = {"name": frame.assign(g=number), "names": pl.DataFrame(frame).with_columns(g=number)}
    given = {
        "list": group.tolist(),
        "series": pd.Series(group, index=np.arange(600) + 7),
        "polars": pl.Series(group),
        "name": "g",
        "names": ["g"],
        "two columns": pd.DataFrame({"g": group, "h": 1}),
    }[kind]
    model = clone(want).fit(data.get(kind, frame), y, sensitive_features=given)
    assert list(model.achieved_["fpr"]) == {
        "name": [0.0, 1.0], "names": [0.0, 1.0], "two columns": [("a", 1), ("b", 1)],
    }.get(kind, ["a", "b"])  # fmt: skip
    if kind in data:
        # A group that is a column of X is a feature like any other.
        assert model.coef_.shape == (1, 3)
    else:
        np.testing.assert_allclose(model.coef_, want.coef_)


def test_an_unknown_column_is_told():
    X, y, _ = people(50)
    with pytest.raises(UsageError, match="must name a column") as caught:
        EqualizedOddsLogisticRegression().fit(
            pd.DataFrame(X, columns=["x", "race"]), y, sensitive_features="rac"
        )
    assert 'did you mean sensitive_features="race"' in str(caught.value)


def test_in_pipelines_and_searches():
    X, y, group = people()
    with sklearn.config_context(enable_metadata_routing=True):
        model = EqualizedOddsLogisticRegression("fpr", **QUICK)
        model.set_fit_request(sensitive_features=True, sample_weight=True)
        pipe = make_pipeline(StandardScaler(), model)
        pipe.fit(X, y, sensitive_features=group)
        assert pipe[-1].met_
        params = {"sensitive_features": group}
        scores = cross_validate(pipe, X, y, params=params, cv=3)["test_score"]
        assert (scores > 0.55).all()
        grid = {"equalizedoddslogisticregression__bound": [0.0, 0.05]}
        search = GridSearchCV(pipe, grid, cv=2).fit(X, y, sensitive_features=group)
        assert search.best_estimator_[-1].met_


def test_clone_pickle_and_repr():
    X, y, group = people()
    model = EqualizedOddsLogisticRegression("fnr", 0.01, **QUICK)
    assert clone(model).get_params() == model.get_params()
    assert "constraint='fnr'" in repr(model)
    model.fit(X, y, sensitive_features=group)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert "EqualizedOddsLogisticRegression" in model._repr_html_()


def test_the_same_seed_gives_the_same_model():
    X, y, group = people()
    for state in (3, np.random.RandomState(3)):
        model = EqualizedOddsLogisticRegression("both", random_state=state, **QUICK)
        models = [clone(model).fit(X, y, sensitive_features=group) for _ in range(2)]
        np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_silent_unless_asked(capfd):
    X, y, group = people(200)
    model = EqualizedOddsLogisticRegression("fpr", taus=(5.0,), restarts=1)
    model.fit(X, y, sensitive_features=group)
    assert capfd.readouterr() == ("", "")
    model.set_params(verbose=1).fit(X, y, sensitive_features=group)
    out, err = capfd.readouterr()
    assert out == ""
    assert "tau=5 + smooth: loss 0." in err
    assert "bound met" in err


class Grouped(EqualizedOddsLogisticRegression):
    """Every second row is of the other group, since the checks know no groups."""

    def fit(self, X, y, *, sensitive_features=None, sample_weight=None):
        if sensitive_features is None:
            rows = X.shape[0] if hasattr(X, "shape") else len(np.asarray(X))
            sensitive_features = np.arange(rows) % 2
        return super().fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)


def test_which_label_is_positive():
    X, y, group = people()
    plain = EqualizedOddsLogisticRegression("fnr", **QUICK).fit(X, y, sensitive_features=group)
    model = EqualizedOddsLogisticRegression("fnr", pos_label="bad", **QUICK)
    model.fit(X, np.where(y == 1, "bad", "good"), sensitive_features=group)
    assert model.coef_ == pytest.approx(-plain.coef_)
    assert model.achieved_["fnr"] == pytest.approx(plain.achieved_["fnr"])
    assert model.predict_proba(X)[:, 0] == pytest.approx(plain.predict_proba(X)[:, 1])


@pytest.mark.filterwarnings("ignore::isocost.errors.ConstraintWarning", "ignore:y has the labels")
@parametrize_with_checks(
    [Grouped("all", taus=(5.0,), restarts=1, max_cells=100)],
    expected_failed_checks=lambda _: (
        {"check_sample_weight_equivalence_on_dense_data": OLD_WEIGHT_CHECK}
        if OLD_WEIGHT_CHECK
        else {}
    ),
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def gathered(X, y, group):
    """Rows with the same features, and the factor of each in the FPR covariance."""
    design = np.column_stack([X, np.ones(len(X))])
    cells, place = np.unique(design, axis=0, return_inverse=True)
    place = place.ravel()
    inside = group == "Caucasian"
    factor = np.bincount(place, (inside - inside.mean()) * (y == 0)) / len(y)
    return cells, np.bincount(place), np.bincount(place, y), factor


def single_run(X, y, group, start):
    """One dccp run from tau = 5, as the paper's authors do it; the loss it ends with."""
    import cvxpy as cp
    import dccp  # noqa: F401

    cells, n, positive, factor = gathered(X, y, group)
    w = cp.Variable(cells.shape[1])
    w.value = start
    loss = (n @ cp.logistic(cells @ w) - positive @ (cells @ w)) / n.sum()
    distance = cp.pos(cells @ w)
    one, other = np.maximum(factor, 0) @ distance, np.maximum(-factor, 0) @ distance
    problem = cp.Problem(cp.Minimize(loss), [one <= other, other <= one])
    with warnings.catch_warnings():
        # Some versions of cvxpy say so of a step on the way.
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        problem.solve(
            method="dccp", tau_ini=5.0, mu=1.2, tau_max=1e10, max_iter=50, solver="CLARABEL"
        )
    z = cells @ w.value
    return (n @ np.logaddexp(0, z) - positive @ z) / n.sum()


def test_compas():
    need("compas")
    study = zafar_features(compas())
    accuracy, gap = [], []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(len(study.y))
        train, test = np.array_split(order, 2)
        X, y, group = study.X[train], study.y[train], study.group[train]
        model = EqualizedOddsLogisticRegression("fpr", C=None)
        model.fit(X, y, sensitive_features=group)
        z = model.decision_function(X)
        assert abs(covariance("fpr", z, y, group, "Caucasian")) < 1e-6
        free = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(X, y)
        single = single_run(X, y, group, np.append(free.coef_, free.intercept_))
        assert model.loss_ <= single
        said, truth = model.predict(study.X[test]), study.y[test]
        accuracy.append((said == truth).mean())
        negative = truth == 0
        black = study.group[test] == "African-American"
        gap.append(abs(said[negative & black].mean() - said[negative & ~black].mean()))
    assert np.mean(accuracy) >= 0.65
    assert np.mean(gap) <= 0.05
