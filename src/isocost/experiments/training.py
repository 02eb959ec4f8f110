"""Train the models of an experiment on one split; what is done is kept and not done again."""

from __future__ import annotations

import hashlib
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.exceptions import ConvergenceWarning

from isocost.atomic import replacing
from isocost.experiments.models import Model, tuned
from isocost.experiments.parts import Part, Split, divide

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
    scores: dict[str, tuple[Column, Column]] = {}
    for model in models:
        report(f"{model.name}, split {seed + 1}")
        place = None if cache is None else cache / f"{_key(features, model, parts)}.npz"
        known = None if place is None else _load(place)
        scores[model.name] = known or _scores(features, model, parts)
        if place is not None and known is None:
            _save(place, scores[model.name])
    return Split(
        *(
            Part(
                features.y[rows],
                features.group[rows],
                {name: pair[which] for name, pair in scores.items()},
                {name: values[rows] for name, values in features.more.items()},
            )
            for which, rows in enumerate(parts[1:])
        )
    )


def _scores(
    features: Features, model: Model, parts: tuple[Column, Column, Column]
) -> tuple[Column, Column]:
    X, y = features.X, features.y
    training, fitting, evaluation = parts
    with warnings.catch_warnings():
        # A network stopped after its last epoch is what was asked for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator = tuned(model, X[fitting], y[fitting])
        rows = training[: model.rows]
        estimator.fit(X[rows], y[rows])
    first, second = (
        estimator.predict_proba(X[rows])[:, list(estimator.classes_).index(1)]
        for rows in (fitting, evaluation)
    )
    return first, second


def _key(features: Features, model: Model, parts: tuple[Column, ...]) -> str:
    """Changes with the data, who is in which part, the model and the library that trains it.

    The rows themselves are part of it, so that kept scores never belong to other people.
    """
    digest = hashlib.sha256(np.ascontiguousarray(features.X).tobytes())
    for rows in (features.y, *parts):
        digest.update(rows.astype(np.int64).tobytes())
    digest.update(f"{model.describe()} {sklearn.__version__}".encode())
    return digest.hexdigest()[:24]


def _load(place: Path) -> tuple[Column, Column] | None:
    try:
        with place.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return kept["fitting"], kept["evaluation"]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return None


def _save(place: Path, scores: tuple[Column, Column]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with replacing(place) as temporary, temporary.open("wb") as file:
        np.savez(file, fitting=scores[0], evaluation=scores[1])
