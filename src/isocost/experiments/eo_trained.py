"""Recidivism, left panel: models trained under equalized odds, from loose bounds to tight ones."""

from __future__ import annotations

import numpy as np

from isocost.experiments.parts import Part
from isocost.experiments.propublica import CompasStudy
from isocost.learn.trained import EqualizedOddsLogisticRegression

__all__ = ["SHARES", "trained_part"]

SHARES = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1, 0.0)
"""Bounds, as shares of the covariance that training without a constraint gives."""


def trained_part(study: CompasStudy, seed: int, *, full: bool) -> Part:
    """Half of the people, with the scores of models trained on the other half at each bound.

    Both covariances are bounded, that of false positives and that of false negatives.  ``full``
    runs the convex-concave programs besides the smooth solver.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(study.y))
    training, held = np.split(order, [len(order) // 2])
    X, y, group = study.X[training], study.y[training], study.group[training]
    taus = (0.5, 5.0, 50.0) if full else ()
    free = EqualizedOddsLogisticRegression("both", bound=1e6, C=None, taus=())
    free.fit(X, y, sensitive_features=group)
    widest = max(abs(v) for found in free.achieved_.values() for v in found.values())
    model = EqualizedOddsLogisticRegression("both", C=None, taus=taus)
    bounds = [share * widest for share in SHARES]
    path = model.constraint_path(X, y, bounds, sensitive_features=group)
    scores = {
        f"{share:g} of the free covariance": point.model.predict_proba(study.X[held])[:, 1]
        for share, point in zip(SHARES, path, strict=True)
    }
    return Part(study.y[held], study.group[held], scores)
