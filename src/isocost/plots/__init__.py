"""Pictures of tallies, audits and rules, in the manner of scikit-learn's displays.

A display holds the numbers it draws; ``plot`` draws them on axes that it is given, or on a figure
of its own.  Names are loaded when they are first used, and matplotlib only by ``plot``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isocost.plots.change import ChangeDisplay
    from isocost.plots.plane import PlaneDisplay
    from isocost.plots.reliability import ReliabilityDisplay
    from isocost.plots.tradeoff import FrontierDisplay

_HOME = {
    "ChangeDisplay": "change",
    "FrontierDisplay": "tradeoff",
    "PlaneDisplay": "plane",
    "ReliabilityDisplay": "reliability",
}

__all__ = [
    "ChangeDisplay",
    "FrontierDisplay",
    "PlaneDisplay",
    "ReliabilityDisplay",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'isocost.plots' has no attribute {name!r}")
    value = getattr(import_module(f"isocost.plots.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
