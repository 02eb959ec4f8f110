"""Features, and training on one split: who is trained on, what is cached and by which key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import Memory
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from reproduction import datasets
from reproduction.models import (
    Features,
    Model,
    encode,
    models_of,
    train,
    train_equalized_odds,
    tuned,
    ways_of_training,
    zafar_features,
)
from reproduction.people import Split, split_rows
from tests.reproduction.conftest import need

MODEL = Model("logistic", LogisticRegression(), {"C": [0.1, 1.0]})


class Stopped(LogisticRegression):
    """Is interrupted before it is done."""

    def predict_proba(self, X: object) -> object:
        raise KeyboardInterrupt


class Counted(LogisticRegression):
    """Counts how often it is fitted."""

    fits = 0

    def fit(self, X: object, y: object, sample_weight: object = None) -> object:
        Counted.fits += 1
        return super().fit(X, y, sample_weight)


def run(features: Features, models: list[Model], seed: int, cache: Path | None = None) -> Split:
    (split,) = train(features, {seed: models}, memory=Memory(cache, verbose=0))
    return split


def test_splits_in_parallel_are_those_in_turn(features: Features, tmp_path: Path) -> None:
    """And what was trained in parallel is found again in turn: the key is the same."""
    memory = Memory(tmp_path, verbose=0)
    seen: list[int] = []

    def progress(trained: Iterable[Any], total: int) -> Iterable[Any]:
        seen.append(total)
        return trained

    both = {seed: [MODEL, Model("flat", LogisticRegression(), {"C": [1e-3]})] for seed in (0, 1)}
    parallel = train(features, both, memory=memory, jobs=2, progress=progress)
    assert seen == [4]
    assert len(list(tmp_path.rglob("output.pkl"))) == 4
    in_turn = train(features, both, memory=memory)
    assert len(list(tmp_path.rglob("output.pkl"))) == 4
    fresh = train(features, both, memory=Memory(None))
    for one, two, three in zip(parallel, in_turn, fresh, strict=True):
        for name, score in one.evaluation.scores.items():
            np.testing.assert_array_equal(score, two.evaluation.scores[name])
            np.testing.assert_array_equal(score, three.evaluation.scores[name])


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
    split = run(features, [MODEL], 3)
    training, fitting, evaluation = split_rows(features.y, features.group, 3)
    assert np.array_equal(split.fitting.extra["row"], fitting)
    assert np.array_equal(split.evaluation.extra["row"], evaluation)
    by_hand = tuned(MODEL, features.X[fitting], features.y[fitting])
    by_hand.fit(features.X[training], features.y[training])
    expected = by_hand.predict_proba(features.X[evaluation])[:, 1]
    np.testing.assert_allclose(split.evaluation.scores["logistic"], expected)


def test_what_is_trained_is_not_trained_again(features: Features, tmp_path: Path) -> None:
    Counted.fits = 0
    model = Model("counted", Counted(), {"C": [1.0]})
    first = run(features, [model], 0, tmp_path)
    trained = Counted.fits
    assert trained > 0
    again = run(features, [model], 0, tmp_path)
    assert Counted.fits == trained
    np.testing.assert_array_equal(again.fitting.scores["counted"], first.fitting.scores["counted"])
    run(features, [model], 0)
    assert Counted.fits == 2 * trained


@pytest.mark.filterwarnings("ignore:Exception while loading results")
def test_a_damaged_file_is_trained_again(features: Features, tmp_path: Path) -> None:
    first = run(features, [MODEL], 0, tmp_path)
    (cached,) = tmp_path.rglob("output.pkl")
    cached.write_bytes(cached.read_bytes()[:100])
    again = run(features, [MODEL], 0, tmp_path)
    np.testing.assert_array_equal(
        again.fitting.scores["logistic"], first.fitting.scores["logistic"]
    )


@pytest.mark.parametrize("change", ["seed", "grid", "rows", "tuning", "group", "data", "estimator"])
def test_the_key_changes_with_all_that_matters(
    change: str, features: Features, tmp_path: Path
) -> None:
    run(features, [MODEL], 0, tmp_path)
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
    run(data, [model], seed, tmp_path)
    assert len(list(tmp_path.rglob("output.pkl"))) == 2


def test_the_models_are_those_of_the_supplement() -> None:
    names = {e: [m.name for m in models_of(e, full=True, seed=0)] for e in ("income", "health")}
    assert names == {
        "income": ["random forest", "multi-layer perceptron", "RBF SVM"],
        "health": ["random forest", "linear SVM"],
    }
    svms = [m for e in names for m in models_of(e, full=True, seed=0) if m.platt]
    assert [m.name for m in svms] == ["RBF SVM", "linear SVM"]
    full = models_of("income", full=True, seed=0)
    assert [m.rows for m in full] == [None, None, 20_000]
    assert all(m.tuning_rows is None for m in full)


def test_what_only_the_search_uses_is_not_kept(features: Features) -> None:
    model = Model(
        "forest", RandomForestClassifier(20), {"max_depth": [1, 2]}, tuning={"n_estimators": 3}
    )
    assert tuned(model, features.X, features.y).n_estimators == 20


def test_ways_of_training_are_told_apart(
    features: Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On people whose groups differ in one feature, constraints bring the error rates nearer."""
    monkeypatch.setattr("reproduction.models.TRAINED_ROWS", 400)
    group = np.where(features.X[:, 0] + 0.5 * features.X[:, 1] > 0, "a", "b")
    found = ways_of_training(replace(features, group=group), 0, Memory(None))
    assert list(found) == ["no constraint", "EO-Trained", "ExponentiatedGradient"]
    differences = [one["FPR difference, trained on"] for one in found.values()]
    assert max(differences[1:]) < differences[0]
    assert all(0.5 < one["accuracy, trained on"] < 1 for one in found.values())


def test_a_machine_without_probabilities_gets_platt_s(features: Features) -> None:
    svm = models_of("health", full=False, seed=0)[1]
    split = run(features, [svm], 0)
    score = split.evaluation.scores["linear SVM"]
    assert ((score > 0) & (score < 1)).all()
    assert abs(score.mean() - split.evaluation.label.mean()) < 0.15


def test_training_leaves_the_model_as_it_was(features: Features, tmp_path: Path) -> None:
    """What the grid prefers must not change the key of the same model."""
    model = Model("logistic", LogisticRegression(C=1e-9), {"C": [0.1, 1.0]})
    for _ in range(2):
        run(features, [model], 0, tmp_path)
    assert model.estimator.C == 1e-9
    assert len(list(tmp_path.rglob("output.pkl"))) == 1


def test_a_training_that_is_stopped_caches_nothing(features: Features, tmp_path: Path) -> None:
    later = Model("stopped", Stopped(), {"C": [1.0]}, platt=False)
    with pytest.raises(KeyboardInterrupt):
        run(features, [MODEL, later], 0, tmp_path)
    assert len(list(tmp_path.rglob("output.pkl"))) == 1


def test_features_are_numbers_then_a_column_per_category() -> None:
    table = pd.DataFrame({"age": [30, 41, 22], "pay": [1.5, np.nan, 0.0]})
    table = table.assign(job=["?", "clerk", "?"], sex=["f", "m", "f"], unused="x")
    label = np.array([0, 1, 0])
    X = encode(datasets.Dataset(table, label, ("job", "sex"), ("pay", "age")))
    want = [[1.5, 30, 1, 0, 1, 0], [np.nan, 41, 0, 1, 0, 1], [0, 22, 1, 0, 1, 0]]
    np.testing.assert_array_equal(X, want)
    assert X.dtype == np.float64


def test_features_of_adult() -> None:
    need("adult")
    X = encode(datasets.adult())
    assert X.shape == (48842, 108)
    assert np.isfinite(X).all()
    assert (X[:, 6:].sum(axis=1) == 8).all()


def test_zafars_filter_and_features() -> None:
    plain = {
        "sex": "Male", "age_cat": "25 - 45", "race": "Caucasian", "c_charge_degree": "F",
        "score_text": "Low", "priors_count": 2, "decile_score": 3, "days_b_screening_arrest": -1.0,
        "is_recid": 1, "two_year_recid": 1,
    }  # fmt: skip
    excluded = [
        {"days_b_screening_arrest": 31.0}, {"days_b_screening_arrest": np.nan}, {"is_recid": -1},
        {"c_charge_degree": "O"}, {"score_text": "N/A"}, {"race": "Hispanic"},
    ]  # fmt: skip
    included = [
        {"race": "African-American", "days_b_screening_arrest": -30.0, "priors_count": 8},
        {"sex": "Female", "c_charge_degree": "M", "age_cat": "Less than 25"},
        {},
    ]
    study = zafar_features(pd.DataFrame([plain | values for values in (*excluded, *included)]))
    assert study.group.tolist() == ["African-American", "Caucasian", "Caucasian"]
    half = 0.5**0.5
    want = [[0, 1, 0, 1, 1, 2 * half, 1], [1, 0, 0, 0, 0, -half, 0], [0, 1, 0, 0, 1, -half, 1]]
    np.testing.assert_allclose(study.X, want)
    assert study.y.tolist() == [1, 1, 1]


def test_zafars_study_of_the_real_file() -> None:
    need("compas")
    study = zafar_features(datasets.compas())
    assert study.X.shape == (5278, 7)
    assert study.y.sum() == 2483
    assert (study.group == "Caucasian").sum() == 2103


def test_models_trained_under_tighter_bounds_come_nearer_to_each_other(trained: Path) -> None:
    need("compas")
    study = zafar_features(datasets.compas())
    memory = Memory(trained, verbose=0)
    people = train_equalized_odds(study, 0, full=False, memory=memory)
    assert len(people) == len(study.y) // 2
    negative, black = people.label == 0, people.group == "African-American"
    gaps = [
        score[negative & black].mean() - score[negative & ~black].mean()
        for score in people.scores.values()
    ]
    assert abs(gaps[-1]) < 0.6 * abs(gaps[0])
    assert (np.diff(np.abs(gaps)) < 0.005).all()
    again = train_equalized_odds(study, 0, full=False, memory=memory)
    assert list(again.scores) == list(people.scores)
    assert len(list(trained.rglob("_equalized_odds_scores/*/output.pkl"))) == 1
