"""Training on one split: who is trained on, what is kept, and what changes the key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from reproduction.models import Model, models_of, tuned
from reproduction.parts import divide
from reproduction.training import Features, train

MODEL = Model("logistic", LogisticRegression(), {"C": [0.1, 1.0]})


@pytest.fixture(scope="module")
def features() -> Features:
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 3))
    y = (random.random(600) < 1 / (1 + np.exp(-X.sum(axis=1)))).astype(int)
    group = random.choice(["a", "b"], 600)
    return Features(X, y, group, {"row": np.arange(600)})


def test_scores_are_those_of_a_model_trained_on_the_other_eighty_percent(
    features: Features,
) -> None:
    split = train(features, [MODEL], 3, cache=None, report=lambda _: None)
    training, fitting, evaluation = divide(features.y, features.group, 3)
    assert np.array_equal(split.fitting.more["row"], fitting)
    assert np.array_equal(split.evaluation.more["row"], evaluation)
    by_hand = tuned(MODEL, features.X[fitting], features.y[fitting])
    by_hand.fit(features.X[training], features.y[training])
    expected = by_hand.predict_proba(features.X[evaluation])[:, 1]
    np.testing.assert_allclose(split.evaluation.scores["logistic"], expected)


def test_what_is_trained_is_not_trained_again(features: Features, tmp_path: Path) -> None:
    first = train(features, [MODEL], 0, cache=tmp_path, report=lambda _: None)
    (kept,) = tmp_path.glob("*.npz")
    before = kept.stat().st_mtime_ns
    marked = {"fitting": first.fitting.scores["logistic"] * 0, "evaluation": np.zeros(60)}
    np.savez(kept, **marked)
    again = train(features, [MODEL], 0, cache=tmp_path, report=lambda _: None)
    assert (again.fitting.scores["logistic"] == 0).all()
    assert kept.stat().st_mtime_ns != before


def test_a_damaged_file_is_trained_anew(features: Features, tmp_path: Path) -> None:
    first = train(features, [MODEL], 0, cache=tmp_path, report=lambda _: None)
    (kept,) = tmp_path.glob("*.npz")
    kept.write_bytes(kept.read_bytes()[:100])
    again = train(features, [MODEL], 0, cache=tmp_path, report=lambda _: None)
    name = "logistic"
    np.testing.assert_array_equal(again.fitting.scores[name], first.fitting.scores[name])


@pytest.mark.parametrize("change", ["seed", "grid", "rows", "tuning", "group", "data", "estimator"])
def test_the_key_changes_with_all_that_matters(
    change: str, features: Features, tmp_path: Path
) -> None:
    train(features, [MODEL], 0, cache=tmp_path, report=lambda _: None)
    model, seed, data = MODEL, 0, features
    if change == "seed":
        seed = 1
    elif change == "grid":
        model = replace(MODEL, grid={"C": [0.2, 1.0]})
    elif change == "rows":
        model = replace(MODEL, rows=200)
    elif change == "tuning":
        model = replace(MODEL, tuning_rows=40)
    elif change == "group":
        data = replace(features, group=np.roll(features.group, 1))
    elif change == "estimator":
        model = replace(MODEL, estimator=LogisticRegression(fit_intercept=False))
    else:
        data = replace(features, X=features.X + 1)
    train(data, [model], seed, cache=tmp_path, report=lambda _: None)
    assert len(list(tmp_path.glob("*.npz"))) == 2


def test_the_models_are_those_of_the_supplement() -> None:
    names = {e: [m.name for m in models_of(e, full=True, seed=0)] for e in ("income", "health")}
    assert names == {
        "income": ["random forest", "multi-layer perceptron", "RBF SVM"],
        "health": ["random forest", "linear SVM"],
    }
    svms = [m for e in names for m in models_of(e, full=True, seed=0) if m.platt]
    assert [m.name for m in svms] == ["RBF SVM", "linear SVM"]
    assert all(
        m.rows is None and m.tuning_rows is None for m in models_of("income", full=True, seed=0)
    )


def test_a_machine_without_probabilities_gets_platt_s(features: Features) -> None:
    svm = models_of("health", full=False, seed=0)[1]
    split = train(features, [svm], 0, cache=None, report=lambda _: None)
    score = split.evaluation.scores["linear SVM"]
    assert ((score > 0) & (score < 1)).all()
    assert abs(score.mean() - split.evaluation.label.mean()) < 0.15


def test_training_leaves_the_model_as_it_was(features: Features, tmp_path: Path) -> None:
    """What the grid prefers must not change the key of the same model."""
    model = Model("logistic", LogisticRegression(C=1e-9), {"C": [0.1, 1.0]})
    for _ in range(2):
        train(features, [model], 0, cache=tmp_path, report=lambda _: None)
    assert model.estimator.C == 1e-9
    assert len(list(tmp_path.glob("*.npz"))) == 1


def test_a_training_that_is_stopped_leaves_no_file(features: Features, tmp_path: Path) -> None:
    class Stopped(LogisticRegression):
        def predict_proba(self, X: object) -> object:
            raise KeyboardInterrupt

    later = Model("stopped", Stopped(), {"C": [1.0]}, platt=False)
    with pytest.raises(KeyboardInterrupt):
        train(features, [MODEL, later], 0, cache=tmp_path, report=lambda _: None)
    (kept,) = tmp_path.iterdir()
    assert kept.suffix == ".npz"
    train(features, [MODEL], 0, cache=tmp_path, report=lambda _: None)
    assert list(tmp_path.iterdir()) == [kept]
