"""The models of the paper's supplement, with the grids that tune them.

The supplement names the models and says that a grid search with three folds tunes them; it does not
print the grids.  These are ours.  ``quick`` uses small grids, fewer trees and fewer rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

__all__ = ["Model", "models_of", "tuned"]

FOLDS = 3


@dataclass(frozen=True)
class Model:
    """A model to train.

    Attributes
    ----------
    name : str
        In print.
    estimator : object
        A scikit-learn classifier, ready for the grid.
    grid : mapping
        What the grid search tries.
    platt : bool
        Whether its scores must be made probabilities by Platt scaling.
    rows, tuning_rows : int or None
        At most so many rows are trained and tuned on; None for all.
    """

    name: str
    estimator: Any
    grid: Mapping[str, Sequence[Any]]
    platt: bool = False
    rows: int | None = None
    tuning_rows: int | None = None

    def describe(self) -> str:
        """All that decides what is learned, for the cache's key."""
        decisive = (dict(self.grid), self.platt, self.rows, self.tuning_rows, FOLDS)
        return f"{self.name} {self.estimator.get_params()!r} {decisive!r}"


def models_of(experiment: str, *, full: bool, seed: int) -> list[Model]:
    """The models of an experiment: for income three, for health two."""
    trees = {"n_estimators": 500 if full else 100, "n_jobs": 1, "random_state": seed}
    leaves = [1, 3, 5, 10, 20] if full else [3, 10]
    forest = Model(
        "random forest",
        _prepared(RandomForestClassifier(**trees), scaled=False),
        {"randomforestclassifier__min_samples_leaf": leaves},
        tuning_rows=None if full else 2500,
    )
    if experiment == "health":
        grid = {"svc__C": [0.001, 0.01, 0.1, 1.0, 10.0] if full else [0.01, 0.1, 1.0]}
        return [forest, Model("linear SVM", _prepared(SVC(kernel="linear")), grid, platt=True)]
    net = MLPClassifier(early_stopping=True, max_iter=200 if full else 30, random_state=seed)
    sizes = [(50,), (100,), (50, 50)] if full else [(50,)]
    decays = [1e-4, 1e-2, 1.0] if full else [1e-2, 1.0]
    perceptron = Model(
        "multi-layer perceptron",
        _prepared(net),
        {"mlpclassifier__hidden_layer_sizes": sizes, "mlpclassifier__alpha": decays},
        rows=None if full else 12_000,
        tuning_rows=None if full else 2500,
    )
    svm = Model(
        "RBF SVM",
        _prepared(SVC(cache_size=1000)),
        {
            "svc__C": [0.1, 1.0, 10.0] if full else [1.0],
            "svc__gamma": [0.001, 0.01, 0.1] if full else [0.003, 0.03],
        },
        platt=True,
        rows=None if full else 6000,
        tuning_rows=None if full else 1500,
    )
    return [forest, perceptron, svm]


def tuned(model: Model, X: Any, y: Any) -> Any:
    """The estimator with the parameters that three folds of these rows prefer, not yet fitted.

    The measure is the logarithmic loss where the model gives probabilities, and the area under the
    curve where Platt scaling makes them afterwards.
    """
    rows = slice(None, model.tuning_rows)
    scoring = "roc_auc" if model.platt else "neg_log_loss"
    search = GridSearchCV(model.estimator, model.grid, scoring=scoring, cv=FOLDS, refit=False)
    search.fit(X[rows], y[rows])
    # A copy: what one division prefers must change neither the next one nor the cache's key.
    chosen = clone(model.estimator).set_params(**search.best_params_)
    if model.platt:
        return CalibratedClassifierCV(chosen, method="sigmoid", cv=FOLDS, ensemble=False)
    return chosen


def _prepared(classifier: Any, *, scaled: bool = True) -> Any:
    """Gaps filled by the median with a column that says so, and the same scale for all columns."""
    filled = SimpleImputer(strategy="median", add_indicator=True)
    steps = [filled, StandardScaler()] if scaled else [filled]
    return make_pipeline(*steps, classifier)
