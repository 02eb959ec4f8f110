"""isocost inside scikit-learn: estimators that repair, recalibrate, and train with equal odds.

Names are loaded when they are first used; cvxpy only by what trains with it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isocost.learn.postprocess import CalibratedEqualizedOdds, EqualizedOdds, Reconciled
    from isocost.learn.recalibrate import GroupCalibrator
    from isocost.learn.scorers import cost_disparity_scorer
    from isocost.learn.trained import EqualizedOddsLogisticRegression

_HOME = {
    "CalibratedEqualizedOdds": "postprocess",
    "EqualizedOdds": "postprocess",
    "EqualizedOddsLogisticRegression": "trained",
    "GroupCalibrator": "recalibrate",
    "Reconciled": "postprocess",
    "cost_disparity_scorer": "scorers",
}

__all__ = [
    "CalibratedEqualizedOdds",
    "EqualizedOdds",
    "EqualizedOddsLogisticRegression",
    "GroupCalibrator",
    "Reconciled",
    "cost_disparity_scorer",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'isocost.learn' has no attribute {name!r}")
    value = getattr(import_module(f"isocost.learn.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
