"""Recidivism, left panel: models trained under equalized odds, from loose bounds to tight ones."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.learn.trained import EqualizedOddsLogisticRegression
from reproduction.keeping import kept, key_of
from reproduction.parts import Part
from reproduction.propublica import CompasStudy

__all__ = ["SHARES", "trained_part"]

Column = npt.NDArray[Any]

SOLVERS = ("isocost", "scipy", "cvxpy", "dccp")
SHARES = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1, 0.0)
"""Bounds, as shares of the covariance that training without a constraint gives."""


def trained_part(study: CompasStudy, seed: int, *, full: bool, cache: Path | None = None) -> Part:
    """Half of the people, with the scores of models trained on the other half at each bound.

    Both covariances are bounded, that of false positives and that of false negatives.  ``full``
    runs the convex-concave programs besides the smooth solver.
    """
    order = np.random.default_rng(seed).permutation(len(study.y))
    training, held = np.split(order, [len(order) // 2])
    taus = (0.5, 5.0, 50.0) if full else ()
    how = f"EO-Trained {taus} {SHARES} {[(name, version(name)) for name in SOLVERS]}"
    key = key_of([study.X, study.y, np.char.encode(study.group, "utf-8"), order], how)
    scores = kept(cache, key, lambda: _scores(study, training, held, taus))
    return Part(study.y[held], study.group[held], scores)


def _scores(
    study: CompasStudy, training: Column, held: Column, taus: tuple[float, ...]
) -> dict[str, Column]:
    X, y, group = study.X[training], study.y[training], study.group[training]
    free = EqualizedOddsLogisticRegression("both", bound=1e6, C=None, taus=())
    free.fit(X, y, sensitive_features=group)
    widest = max(abs(v) for found in free.achieved_.values() for v in found.values())
    model = EqualizedOddsLogisticRegression("both", C=None, taus=taus)
    bounds = [share * widest for share in SHARES]
    path = model.constraint_path(X, y, bounds, sensitive_features=group)
    return {
        f"{share:g} of the free covariance": point.model.predict_proba(study.X[held])[:, 1]
        for share, point in zip(SHARES, path, strict=True)
    }
