"""What displays are made from: a tally, arrays of predictions, or an estimator with data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isocost.engines.arrays import tally_arrays
from isocost.engines.dispatch import tally
from isocost.grid import Grid

if TYPE_CHECKING:
    from isocost.tallies import Tally

__all__ = ["tally_of_estimator", "tally_of_predictions"]


def tally_of_predictions(
    y: Any, score: Any, group: Any, *, weight: Any = None, edges: tuple[float, ...] = ()
) -> Tally:
    """The tally of labels, scores and groups given as arrays."""
    return tally(score=score, label=y, group=group, weight=weight, edges=edges)


def tally_of_estimator(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    groups_from: Any = None,
    edges: tuple[float, ...] = (),
) -> Tally:
    """The tally of what a fitted classifier of two classes says about the rows of X.

    The positive class is the last of ``classes_``.  A repaired estimator is asked for its scores
    with the coin thrown: their average over the coin is not calibrated as each of them is.
    """
    from isocost.learn.base import raw_scores, response_of
    from isocost.learn.sensitive import read_groups

    groups = read_groups(X, sensitive_features, groups_from)
    response = response_of(estimator, recalibrated=False, needs_calibration=True)
    positive = list(estimator.classes_)[-1]
    scores = raw_scores(estimator, X, response, groups, positive)
    labels = (np.asarray(y) == positive).astype(np.intp)
    return tally_arrays(scores, labels, [groups.encoded], sample_weight, grid=Grid(edges=edges))
