import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.optimize import check_grad
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import isocost as ic
from isocost.errors import ConstraintWarning, DataError, UsageError
from isocost.learn import EqualizedOddsLogisticRegression
from isocost.learn.trained import TEMPERATURES, Training


def people(rows=600, groups=2, seed=0, levels=None):
    """Two features; the first and the base rate vary with the group."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, rows)
    X = rng.normal(size=(rows, 2)) + np.outer(group, [1.0, -0.3])
    if levels:
        X = np.round(X * levels) / levels
    y = (rng.random(rows) < 1 / (1 + np.exp(-(X @ [1.2, 0.7] - 0.4)))).astype(int)
    return X, y, np.array(list("abcdef"))[group]


def difference(selected, y, group, label, weight=None):
    """The largest difference in the share selected, group by group."""
    weight = np.ones(len(y)) if weight is None else weight
    rates = []
    for name in np.unique(group):
        mine = (group == name) & (y == label)
        rates.append(np.average(selected[mine], weights=weight[mine]))
    return max(rates) - min(rates)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("constraint", ["fpr", "fnr", "both"])
def test_differences_are_what_the_rows_say_and_within_the_bound(constraint, groups):
    X, y, group = people(900, groups)
    model = EqualizedOddsLogisticRegression(constraint, 0.06).fit(X, y, sensitive_features=group)
    free = EqualizedOddsLogisticRegression(constraint, None).fit(X, y, sensitive_features=group)
    kinds = ("fpr", "fnr") if constraint == "both" else (constraint,)
    assert tuple(model.differences_) == kinds
    z = model.decision_function(X)
    for kind in kinds:
        label, found = int(kind == "fnr"), model.differences_[kind]
        hard = difference(model.predict(X), y, group, label)
        smoothed = difference(1 / (1 + np.exp(-z / model.temperature_)), y, group, label)
        assert found == pytest.approx({"hard": hard, "smoothed": smoothed}, abs=1e-12)
        assert hard <= 0.06
        assert free.differences_[kind]["hard"] > 0.06
    assert max(found["smoothed"] for found in model.differences_.values()) == pytest.approx(0.06)
    assert model.met_
    assert free.met_
    assert free.temperature_ is None
    # No sharper than needed.
    assert model.temperature_ in TEMPERATURES


@pytest.mark.parametrize(("C", "bound"), [(1.0, None), (0.01, np.inf), (None, 1.0), (np.inf, None)])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_bound_that_does_not_bind_gives_logistic_regression(C, bound, intercept):
    X, y, group = people()
    X = X * [1.0, 30.0]
    model = EqualizedOddsLogisticRegression("both", bound, C, fit_intercept=intercept)
    model.fit(X, y, sensitive_features=group)
    peer = LogisticRegression(
        C=np.inf if C is None else C, fit_intercept=intercept, tol=1e-12, max_iter=10_000
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-6)


def training(X, y, group, C=1.0):
    """The problem as it is written down, with features as they come and an intercept."""
    cells = [(group == name) & (y == label) for label in (0, 1) for name in np.unique(group)]
    return Training(
        x=np.column_stack([X, np.ones(len(y))]),
        label=y,
        weight=np.full(len(y), 1 / len(y)),
        ridge=np.append(np.full(X.shape[1], 1 / (C * len(y))), 0.0),
        means=np.array([cell / cell.sum() for cell in cells]),
        kind=np.repeat(np.eye(2), len(cells) // 2, axis=0),
    )


@pytest.mark.parametrize("temperature", [0.5, 0.125])
def test_gradients_are_finite_differences(temperature):
    problem = training(*people(200, groups=3))
    rng = np.random.default_rng(0)
    for w in rng.normal(size=(3, 3)):
        assert (
            check_grad(lambda v: problem.objective(v)[0], lambda v: problem.objective(v)[1], w)
            < 1e-6
        )
        for i in range(6):
            off = check_grad(
                lambda v, i=i: problem.rates(v, temperature)[0][i],
                lambda v, i=i: problem.rates(v, temperature)[1][i],
                w,
            )
            assert off < 1e-6


@pytest.mark.parametrize("temperature", [0.5, 0.25])
@pytest.mark.parametrize("seed", range(3))
def test_no_point_of_a_grid_is_better(seed, temperature):
    X, y, group = people(300, seed=seed)
    problem = training(X[:, :1], y, group)
    w, _ = problem.free()
    for stage in (0.5, temperature):
        w, _ = problem.constrained(w, 0.08, stage, 200)
    assert problem.differences(problem.rates(w, temperature)[0]).max() <= 0.08 + 1e-7
    grid = np.array([(a, b) for a in np.linspace(-2, 3, 151) for b in np.linspace(-3, 3, 181)])
    z = grid @ problem.x.T
    shares = 1 / (1 + np.exp(-z / temperature)) @ problem.means.T
    worst = np.maximum(np.ptp(shares[:, :2], axis=1), np.ptp(shares[:, 2:], axis=1))
    loss = (np.logaddexp(0, z) - y * z).mean(axis=1) + grid**2 @ problem.ridge / 2
    best = loss[worst <= 0.08].min()
    assert best - 0.01 < problem.objective(w)[0] <= best + 1e-6


def test_integer_weights_are_repeated_rows():
    X, y, group = people(300)
    weight = np.random.default_rng(1).integers(0, 4, 300)
    one = EqualizedOddsLogisticRegression("fpr", 0.06)
    two = clone(one)
    one.fit(X, y, sensitive_features=group, sample_weight=weight)
    two.fit(*(np.repeat(a, weight, axis=0) for a in (X, y)),
            sensitive_features=np.repeat(group, weight))  # fmt: skip
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-5)
    hard = difference(one.predict(X), y, group, 0, weight)
    assert one.differences_["fpr"]["hard"] == pytest.approx(hard, abs=1e-12)


@pytest.mark.parametrize("C", [1.0, None])
def test_separable_data(C):
    X, _, group = people()
    y = (X[:, 0] > 0.5).astype(int)
    model = EqualizedOddsLogisticRegression("both", C=C).fit(X, y, sensitive_features=group)
    assert model.met_
    assert (model.predict(X) == y).mean() > 0.97
    assert np.isfinite(model.coef_).all()


def test_a_constant_feature_changes_nothing():
    X, y, group = people()
    model = EqualizedOddsLogisticRegression("fpr")
    plain = clone(model).fit(X, y, sensitive_features=group)
    wider = clone(model).fit(
        np.column_stack([X, np.full(len(y), 0.1)]), y, sensitive_features=group
    )
    np.testing.assert_allclose(wider.coef_, np.append(plain.coef_[0], 0.0)[None], atol=1e-4)


def test_many_groups_get_as_near_as_possible():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 40, 4000)
    X = rng.normal(size=(4000, 3)) + np.outer(group / 20 - 1, [1.0, -0.3, 0.0])
    y = (rng.random(4000) < 1 / (1 + np.exp(-X @ [1.2, 0.7, 1.0]))).astype(int)
    free = EqualizedOddsLogisticRegression(bound=None).fit(X, y, sensitive_features=group)
    model = EqualizedOddsLogisticRegression(bound=0.15)
    with pytest.warns(ConstraintWarning):
        model.fit(X, y, sensitive_features=group)
    worst = [max(d["hard"] for d in m.differences_.values()) for m in (free, model)]
    assert worst[1] < 0.7 * worst[0]


def test_a_bound_that_is_not_met_is_told():
    X, y, group = people()
    model = EqualizedOddsLogisticRegression("fpr", 0.0, max_iter=1)
    with pytest.warns(ConstraintWarning) as caught:
        model.fit(X, y, sensitive_features=group)
    text = str(caught[0].message)
    assert text.startswith("bound: must be met: no difference of error rates beyond 0\n  got:  ")
    assert f"got:  {model.differences_['fpr']['hard']:.4f} on the training people" in text
    assert "next: accept bound=0." in text
    assert caught[0].filename == __file__
    assert not model.met_


def test_one_class_for_nearly_everybody_is_told():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 200)
    # All that is known is the group itself: only a constant treats the groups alike.
    X = (group == "a")[:, None].astype(float)
    y = (rng.random(400) < np.where(group == "a", 0.7, 0.2)).astype(int)
    model = EqualizedOddsLogisticRegression("fpr", C=None)
    with pytest.warns(ConstraintWarning, match="should leave predictions of use") as caught:
        model.fit(X, y, sensitive_features=group)
    assert "met by giving 100.0% of the people one class" in str(caught[0].message)
    assert "next: raise the bound" in str(caught[0].message)
    assert len(set(model.predict(X))) == 1


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
        ({"constraint": "tpr"}, 'constraint: must be "both", "fpr" or "fnr"\n  got:  \'tpr\''),
        ({"bound": -0.1}, "bound: must be a number that is at least 0\n  got:  -0.1"),
        ({"bound": np.nan}, "bound: must be a number that is at least 0\n  got:  nan"),
        ({"bound": "0"}, "bound: must be a number that is at least 0\n  got:  '0'"),
        ({"C": 0.0}, "C: must be a number above 0\n  got:  0.0\n  next: use 1.0, or None"),
        ({"C": "1"}, "C: must be a number above 0\n  got:  '1'"),
        ({"max_iter": 0}, "max_iter: must be a whole number that is at least 1\n  got:  0"),
        ({"fit_intercept": "no"}, "fit_intercept: must be True or False\n  got:  'no'"),
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
    text = fails(DataError, X, y, ["a"] * 50)
    assert "must hold at least two groups\n  got:  only 'a'" in text
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
    model = EqualizedOddsLogisticRegression()
    with pytest.warns(
        ic.IsocostWarning, match="negative and positive rows of a group: c"
    ) as caught:
        model.fit(X, y, sensitive_features=group)
    assert caught[0].filename == __file__
    first = group != "c"
    hard = difference(model.predict(X)[first], y[first], group[first], 1)
    assert model.differences_["fnr"]["hard"] == pytest.approx(hard)


def test_labels_and_weights_that_cannot_be():
    X, y, group = people(50)
    assert "Only binary classification" in fails(DataError, X, np.arange(50) % 3, group)
    text = fails(DataError, X, np.ones(50), group)
    assert "y: must have two classes\n  got:  one class, 1.0" in text
    text = fails(DataError, X, y, group, weight=y.astype(float))
    assert "y: must have two classes in rows of positive weight\n  got:  one class, 1" in text
    text = fails(DataError, X, y, group, weight=-np.ones(50))
    assert text.startswith("sample_weight: must be finite and not negative")


@pytest.mark.parametrize("kind", ["series", "name", "names", "two columns"])
def test_ways_to_give_the_group(kind):
    X, y, group = people()
    number = (group == "b").astype(float)
    want = EqualizedOddsLogisticRegression("fpr").fit(X, y, sensitive_features=group)
    frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1]})
    data = {"name": frame.assign(g=number), "names": pl.DataFrame(frame).with_columns(g=number)}
    given = {
        "series": pd.Series(group, index=np.arange(600) + 7),
        "name": "g",
        "names": ["g"],
        "two columns": pd.DataFrame({"g": group, "h": 1}),
    }[kind]
    model = clone(want).fit(data.get(kind, frame), y, sensitive_features=given)
    if kind in data:
        # A group that is a column of X is a feature like any other.
        assert model.coef_.shape == (1, 3)
    else:
        np.testing.assert_allclose(model.coef_, want.coef_)
        # Otherwise it is none, and prediction needs no group.
        assert model.predict(frame[:3]).shape == (3,)


@pytest.mark.filterwarnings("ignore::isocost.errors.ConstraintWarning")
def test_in_pipelines_and_searches():
    X, y, group = people()
    with sklearn.config_context(enable_metadata_routing=True):
        model = EqualizedOddsLogisticRegression("fpr")
        model.set_fit_request(sensitive_features=True, sample_weight=True)
        pipe = make_pipeline(StandardScaler(), model)
        pipe.fit(X, y, sensitive_features=group)
        assert pipe[-1].met_
        params = {"sensitive_features": group}
        scores = cross_validate(pipe, X, y, params=params, cv=3)["test_score"]
        assert (scores > 0.55).all()
        grid = {"equalizedoddslogisticregression__bound": [0.1, 0.05]}
        search = GridSearchCV(pipe, grid, cv=2).fit(X, y, sensitive_features=group)
        assert hasattr(search.best_estimator_[-1], "met_")


def test_which_label_is_positive():
    X, y, group = people()
    plain = EqualizedOddsLogisticRegression("fnr").fit(X, y, sensitive_features=group)
    model = EqualizedOddsLogisticRegression("fnr", pos_label="bad")
    model.fit(X, np.where(y == 1, "bad", "good"), sensitive_features=group)
    assert model.coef_ == pytest.approx(-plain.coef_)
    assert model.differences_ == plain.differences_
    assert model.predict_proba(X)[:, 0] == pytest.approx(plain.predict_proba(X)[:, 1])
