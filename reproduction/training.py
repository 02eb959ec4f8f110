"""Train the models of an experiment on one split; what is done is kept and not done again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.exceptions import ConvergenceWarning

from reproduction.keeping import kept, key_of
from reproduction.models import Model, tuned
from reproduction.parts import Part, Split, divide

__all__ = ["Features", "train"]

Column = npt.NDArray[Any]
Report = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Features:
    """What models learn from: features, labels, groups, and what else is kept for each person."""

    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.intp]
    group: Column
    more: dict[str, Column] = field(default_factory=dict)


def train(
    features: Features, models: list[Model], seed: int, *, cache: Path | None, report: Report
) -> Split:
    """Scores of each model on the post-processing and evaluation parts of one split.

    As the supplement says, the hyperparameters are tuned on the part that is later used
    for post-processing; the models are trained on the other 80 %.
    """
    parts = divide(features.y, features.group, seed)
    scores: dict[str, dict[str, Column]] = {}
    for model in models:
        report(f"{model.name}, split {seed + 1}")
        key = _key(features, model, parts)
        scores[model.name] = kept(cache, key, partial(_scores, features, model, parts))
    return Split(
        *(
            Part(
                features.y[rows],
                features.group[rows],
                {name: found[which] for name, found in scores.items()},
                {name: values[rows] for name, values in features.more.items()},
            )
            for which, rows in zip(("fitting", "evaluation"), parts[1:], strict=True)
        )
    )


def _scores(
    features: Features, model: Model, parts: tuple[Column, Column, Column]
) -> dict[str, Column]:
    X, y = features.X, features.y
    training, fitting, evaluation = parts
    with warnings.catch_warnings():
        # A network stopped after its last epoch is what was asked for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator = tuned(model, X[fitting], y[fitting])
        rows = training[: model.rows]
        estimator.fit(X[rows], y[rows])
    positive = list(estimator.classes_).index(1)
    return {
        "fitting": estimator.predict_proba(X[fitting])[:, positive],
        "evaluation": estimator.predict_proba(X[evaluation])[:, positive],
    }


def _key(features: Features, model: Model, parts: tuple[Column, ...]) -> str:
    """Changes with the data, who is in which part, the model and the library that trains it.

    The rows themselves are part of it, so that kept scores never belong to other people.
    """
    rows = [array.astype(np.int64) for array in (features.y, *parts)]
    return key_of([features.X, *rows], f"{model.describe()} {sklearn.__version__}")
