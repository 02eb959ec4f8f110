"""The models of the paper's supplement: features, hyperparameter grids and training.

The supplement names the models and says that a grid search with three folds tunes them; it does not
print the grids.  These are ours.  A quick run uses small grids, fewer trees and fewer rows.
Models are trained in parallel, and their scores are cached by joblib: a run that is interrupted
resumes where it stopped.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from joblib import Memory, Parallel, delayed
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from reproduction import zafar
from reproduction.datasets import Dataset
from reproduction.people import Column, People, Split, split_rows

FOLDS = 3

BOUNDS = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1, 0.0)
"""Bounds of EO-Trained, as shares of the covariance that unconstrained training gives."""

PENALTIES = (0.5, 5.0, 50.0)
"""First penalties of the convex-concave programs that a full run adds to the smooth solver."""

SVM_ROWS = 20_000
"""Rows that the RBF SVM is trained on; its time grows with their square."""

RACES = ["Caucasian", "African-American"]
AGES = ["Less than 25", "25 - 45", "Greater than 45"]

SOLVERS = ("isocost", "scipy", "cvxpy", "dccp")


@dataclass(frozen=True, eq=False)
class Features:
    """What models learn from: features, labels, groups, and further columns of each person."""

    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.intp]
    group: Column
    extra: dict[str, Column] = field(default_factory=dict)


@dataclass(frozen=True)
class Model:
    """A model to train.

    Attributes
    ----------
    name : str
        Its name in print.
    estimator : object
        A scikit-learn classifier.
    grid : mapping
        The parameters that the grid search tries.
    platt : bool
        Whether Platt scaling turns its scores into probabilities.
    rows, tuning_rows : int or None
        Largest number of rows to train and to tune on (default: all).
    tuning : mapping
        Parameters that only the grid search uses, such as fewer trees.
    """

    name: str
    estimator: Any
    grid: Mapping[str, Sequence[Any]]
    platt: bool = False
    rows: int | None = None
    tuning_rows: int | None = None
    tuning: Mapping[str, Any] = field(default_factory=dict)


def encode(data: Dataset) -> npt.NDArray[np.float64]:
    """The features of a data set: numbers as they are, then one column per category.

    This is done before the split, so a part that lacks a rare category still has its column.
    Missing numbers stay NaN: what replaces them is learned from the training part alone.
    """
    encoder = ColumnTransformer(
        [
            ("numbers", "passthrough", list(data.numeric)),
            ("categories", OneHotEncoder(sparse_output=False), list(data.categorical)),
        ]
    )
    return np.ascontiguousarray(encoder.fit_transform(data.table), dtype=np.float64)


def zafar_features(table: pd.DataFrame) -> Features:
    """Zafar et al.'s study of COMPAS: 5,278 black and white defendants with five attributes.

    The filter is ProPublica's: screened within 30 days of the arrest, known whether charged again,
    no ordinary traffic offence, and a score.  Race is a feature, as in the paper.
    """
    kept = table[
        (table["days_b_screening_arrest"].abs() <= 30)  # not true where the days are missing
        & (table["is_recid"] != -1)
        & (table["c_charge_degree"] != "O")
        & (table["score_text"] != "N/A")
        & table["race"].isin(RACES)
    ]

    def indicators(*categories: Sequence[str], **options: Any) -> OneHotEncoder:
        return OneHotEncoder(categories=list(categories), sparse_output=False, **options)

    encoder = ColumnTransformer(
        [
            ("age", indicators(AGES), ["age_cat"]),
            ("person", indicators(RACES, ["Female", "Male"], drop="first"), ["race", "sex"]),
            ("priors", StandardScaler(), ["priors_count"]),
            ("charge", indicators(["M", "F"], drop="first"), ["c_charge_degree"]),
        ]
    )
    return Features(
        encoder.fit_transform(kept),
        kept["two_year_recid"].to_numpy(np.intp),
        kept["race"].to_numpy(np.str_),
    )


def models_of(experiment: str, *, full: bool, seed: int) -> list[Model]:
    """The models of an experiment: three for income, two for others; those of health if small."""
    trees = {"n_estimators": 500 if full else 100, "n_jobs": 1, "random_state": seed}
    forest = Model(
        "random forest",
        _pipeline(RandomForestClassifier(**trees), scaled=False),
        {"randomforestclassifier__min_samples_leaf": [1, 3, 5, 10, 20] if full else [3, 10]},
        tuning_rows=None if full else 2500,
        tuning={"randomforestclassifier__n_estimators": 100 if full else 50},
    )
    if experiment in ("health", "german"):
        grid = {"svc__C": [0.001, 0.01, 0.1, 1.0, 10.0] if full else [0.01, 0.1, 1.0]}
        return [forest, Model("linear SVM", _pipeline(SVC(kernel="linear")), grid, platt=True)]
    network = MLPClassifier(early_stopping=True, max_iter=200 if full else 30, random_state=seed)
    perceptron = Model(
        "multi-layer perceptron",
        _pipeline(network),
        {
            "mlpclassifier__hidden_layer_sizes": [(50,), (100,), (50, 50)] if full else [(50,)],
            "mlpclassifier__alpha": [1e-4, 1e-2, 1.0] if full else [1e-2, 1.0],
        },
        rows=None if full else 12_000,
        tuning_rows=None if full else 2500,
    )
    if experiment != "income":
        return [forest, perceptron]
    svm = Model(
        "RBF SVM",
        _pipeline(SVC(cache_size=1000)),
        {
            "svc__C": [0.1, 1.0, 10.0] if full else [1.0],
            "svc__gamma": [0.001, 0.01, 0.1] if full else [0.003, 0.03],
        },
        platt=True,
        rows=SVM_ROWS if full else 6000,
        tuning_rows=None if full else 1500,
    )
    return [forest, perceptron, svm]


def _pipeline(classifier: Any, *, scaled: bool = True) -> Any:
    """Missing numbers become the median, with an indicator column; then all are standardized."""
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    return make_pipeline(*([imputer, StandardScaler()] if scaled else [imputer]), classifier)


def tuned(model: Model, X: Any, y: Any) -> Any:
    """The estimator with the best parameters of a three-fold grid search, not yet fitted.

    The criterion is the logarithmic loss where the model gives probabilities, and the area under
    the ROC curve where Platt scaling makes them afterwards.
    """
    rows = slice(None, model.tuning_rows)
    scoring = "roc_auc" if model.platt else "neg_log_loss"
    searched = clone(model.estimator).set_params(**model.tuning)
    search = GridSearchCV(searched, model.grid, scoring=scoring, cv=FOLDS, refit=False)
    search.fit(X[rows], y[rows])
    # A clone: the result for one split must change neither the next one nor the cache's key.
    chosen = clone(model.estimator).set_params(**search.best_params_)
    if model.platt:
        return CalibratedClassifierCV(chosen, method="sigmoid", cv=FOLDS, ensemble=False)
    return chosen


def train(
    features: Features,
    models: Mapping[int, Sequence[Model]],
    *,
    memory: Memory,
    jobs: int = 1,
    progress: Callable[[Iterable[Any], int], Iterable[Any]] = lambda trained, _: trained,
) -> tuple[Split, ...]:
    """Scores of each model on the post-processing and evaluation parts of each split.

    As in the supplement, hyperparameters are tuned on the part that is later used for
    post-processing; models are trained on the other 80 %.

    Parameters
    ----------
    features : Features
        What the models learn from.
    models : {seed: models}
        The models of each split; the seed divides the people.
    memory : Memory
        The cache; what it holds is not trained again.
    jobs : int
        Number of processes.
    progress : callable
        Wraps the results as they arrive, given their number.
    """
    parts = {seed: split_rows(features.y, features.group, seed) for seed in models}
    tasks = [(seed, model) for seed, several in models.items() for model in several]
    # Arrays are copied, not mapped into memory: a mapped array would have another key.
    trained = Parallel(n_jobs=jobs, return_as="generator_unordered", max_nbytes=None)(
        delayed(_named_scores)(memory, features, parts[seed], seed, model) for seed, model in tasks
    )
    scores = dict(progress(trained, len(tasks)))
    return tuple(
        _split(features, parts[seed], {m.name: scores[seed, m.name] for m in several})
        for seed, several in models.items()
    )


def _named_scores(
    memory: Memory, features: Features, parts: tuple[Column, ...], seed: int, model: Model
) -> tuple[tuple[int, str], tuple[Column, Column]]:
    both = memory.cache(_scores)(features.X, features.y, parts, model, version("scikit-learn"))
    return (seed, model.name), both


def _split(
    features: Features, parts: tuple[Column, ...], scores: Mapping[str, tuple[Column, Column]]
) -> Split:
    fitting, evaluation = (
        People(
            features.y[rows],
            features.group[rows],
            {name: both[which] for name, both in scores.items()},
            {name: values[rows] for name, values in features.extra.items()},
        )
        for which, rows in enumerate(parts[1:])
    )
    return Split(fitting, evaluation)


def _scores(
    X: Column, y: Column, parts: tuple[Column, Column, Column], model: Model, library: str
) -> tuple[Column, Column]:
    """Scores for post-processing and evaluation; ``library`` is only part of the cache's key."""
    del library
    training, fitting, evaluation = parts
    with warnings.catch_warnings():
        # A network that stops at the largest number of epochs is intended.
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator = tuned(model, X[fitting], y[fitting])
        rows = training[: model.rows]
        estimator.fit(X[rows], y[rows])
    positive = list(estimator.classes_).index(1)
    return (
        estimator.predict_proba(X[fitting])[:, positive],
        estimator.predict_proba(X[evaluation])[:, positive],
    )


def train_equalized_odds(features: Features, seed: int, *, full: bool, memory: Memory) -> People:
    """Half of the people, with the scores of models trained on the other half at each bound.

    Both covariances are bounded, that of false positives and that of false negatives.  ``full``
    runs the convex-concave programs besides the smooth solver.
    """
    order = np.random.default_rng(seed).permutation(len(features.y))
    training, held_out = np.split(order, [len(order) // 2])
    versions = [version(name) for name in SOLVERS]
    scores = memory.cache(_equalized_odds_scores)(
        features.X,
        features.y,
        features.group,
        training,
        held_out,
        PENALTIES if full else (),
        versions,
    )
    return People(features.y[held_out], features.group[held_out], scores)


def _equalized_odds_scores(
    X: Column,
    y: Column,
    group: Column,
    training: Column,
    held_out: Column,
    penalties: tuple[float, ...],
    versions: list[str],
) -> dict[str, Column]:
    """Scores by bound, from the loosest; ``versions`` is only part of the cache's key."""
    del versions
    program = zafar.program(X[training], y[training], group[training])
    widest = float(np.abs(program.covariances(program.free)).max())
    path = zafar.path(program, [share * widest for share in BOUNDS], penalties)
    return {
        f"{share:g} of the free covariance": program.scores(w, X[held_out])
        for share, w in zip(BOUNDS, path, strict=True)
    }


TRAINED_ROWS, TESTED_ROWS = 4000, 10_000
"""Rows to train on, and others to judge on, where ways of training are put side by side."""

DIFFERENCE = 0.01
"""The difference in error rates that ExponentiatedGradient is asked for."""


def ways_of_training(features: Features, seed: int, memory: Memory) -> dict[str, dict[str, float]]:
    """Accuracy and differences in error rates of three ways to train, on the same people.

    Logistic regression without a constraint, EO-Trained with both covariances 0, and, if fairlearn
    is installed, ExponentiatedGradient with equalized odds.
    """
    order = np.random.default_rng(seed).permutation(len(features.y))
    training, tested = order[:TRAINED_ROWS], order[TRAINED_ROWS : TRAINED_ROWS + TESTED_ROWS]
    versions = [version(name) for name in SOLVERS]
    has_fairlearn = find_spec("fairlearn") is not None
    arguments = (features.X, features.y, features.group, training, tested, has_fairlearn, versions)
    # On a busy machine, threads that wait for each other take far longer than one.
    with threadpool_limits(1):
        compared: dict[str, dict[str, float]] = memory.cache(_ways_of_training)(*arguments)
    return compared


def _ways_of_training(
    X: Column,
    y: Column,
    group: Column,
    training: Column,
    tested: Column,
    fairlearn: bool,
    versions: list[str],
) -> dict[str, dict[str, float]]:
    """Each way by name; ``versions`` is only part of the cache's key."""
    del versions
    X = StandardScaler().fit(X[training]).transform(X)
    data = X[training], y[training]
    free = LogisticRegression(max_iter=2000).fit(*data)
    program = zafar.program(*data, group[training], C=1.0)
    scores = program.scores(zafar.train(program, restarts=1), X)
    answers = {"no constraint": free.predict(X), "EO-Trained": (scores > 0.5).astype(np.intp)}
    if fairlearn:
        answers["ExponentiatedGradient"] = exponentiated_gradient(X, y, group, training, DIFFERENCE)
    return {
        name: {
            f"{what}, {people}": value
            for people, rows in (("unseen", tested), ("trained on", training))
            for what, value in errors_of(answer[rows], y[rows], group[rows]).items()
        }
        for name, answer in answers.items()
    }


def exponentiated_gradient(
    X: Column, y: Column, group: Column, training: Column, bound: float
) -> Column:
    """The probability of answer 1; the method draws one of several models for each person."""
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

    constraint = EqualizedOdds(difference_bound=bound)
    model = ExponentiatedGradient(LogisticRegression(max_iter=1000), constraint, eps=bound)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what fairlearn does to pandas is not ours to mend
        model.fit(X[training], y[training], sensitive_features=group[training])
    pairs = zip(model.weights_, model.predictors_, strict=True)
    drawn = [weight * np.asarray(one.predict(X)) for weight, one in pairs]
    return np.asarray(np.sum(drawn, axis=0))


def errors_of(answer: Column, y: Column, group: Column) -> dict[str, float]:
    """Accuracy and the differences between the groups, of answers that may be probabilities."""
    rates = {}
    for name, label in (("FPR difference", 0), ("FNR difference", 1)):
        by_group = [np.mean(answer[(y == label) & (group == g)]) for g in np.unique(group)]
        rates[name] = float(max(by_group) - min(by_group))
    return {"accuracy": float(np.mean(np.where(y == 1, answer, 1 - answer)))} | rates
