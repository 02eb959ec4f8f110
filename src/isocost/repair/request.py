"""What reconciling is asked for, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isocost.checks import check_threshold, check_tolerance, check_whole, check_word, short
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import Problem, UsageError
from isocost.measure.table import MEASURES

__all__ = ["KEEPS", "RATES", "Request", "check_request"]

FIXED = ("base_rate", "mean_score")
"""Of calibrated scores both are the share of positives, which no rule changes."""

RATES = (*(m.name for m in MEASURES.values() if m.over_labels and m.name not in FIXED), "cost")
"""What can be made equal: measures that are linear in who gets which score, and costs."""
KEEPS = ("information", "decisions", "scores")

FEWEST_LEVELS, MOST_LEVELS = 2, 1024


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`isocost.repair.reconcile.reconcile`, in one form.

    ``tolerances`` has a number for each rate that is to be equal.
    """

    threshold: float
    tolerances: dict[str, float]
    cost: Cost | None
    keep: str
    levels: int

    @property
    def equal(self) -> tuple[str, ...]:
        """The rates that are to be equal."""
        return tuple(self.tolerances)

    @property
    def wide(self) -> bool:
        """Whether levels must be able to share more outputs than hard rates need."""
        return self.keep == "scores" or not all(
            name in MEASURES and MEASURES[name].counts_decisions for name in self.equal
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the settings of a rule; one number if all tolerances are the same."""
        numbers = set(self.tolerances.values())
        return {
            "threshold": self.threshold,
            "equal": list(self.equal),
            "tolerance": numbers.pop() if len(numbers) == 1 else dict(self.tolerances),
            "keep": self.keep,
            "levels": self.levels,
        }


def check_request(
    threshold: float,
    equal: str | Sequence[str],
    tolerance: float | Mapping[str, float],
    cost: CostLike | None,
    keep: str,
    levels: int,
) -> Request:
    """Put the arguments into one form, or say what is wrong with them."""
    names = _check_equal(equal)
    check_word("keep", keep, KEEPS)
    return Request(
        threshold=check_threshold(threshold),
        tolerances=_check_tolerances(tolerance, names),
        cost=_check_cost(cost, names),
        keep=keep,
        levels=_check_levels(levels),
    )


def _check_equal(equal: Any) -> tuple[str, ...]:
    names = (equal,) if isinstance(equal, str) else tuple(equal) if _is_listing(equal) else ()
    if not names or len(set(names)) != len(names) or not set(names) <= set(RATES):
        raise UsageError(
            Problem(
                "equal",
                f"must name rates to be equal, each once, from {', '.join(RATES)}",
                short(equal),
                'use equal=("fpr", "fnr")',
            )
        )
    return names


def _is_listing(value: Any) -> bool:
    return isinstance(value, Sequence) and all(isinstance(name, str) for name in value)


def _check_tolerances(tolerance: Any, names: tuple[str, ...]) -> dict[str, float]:
    if not isinstance(tolerance, Mapping):
        return dict.fromkeys(names, check_tolerance(tolerance))
    unknown = [name for name in tolerance if name not in names]
    if unknown:
        raise UsageError(
            Problem(
                "tolerance",
                f"must be a number, or name only rates that are to be equal: {', '.join(names)}",
                ", ".join(map(repr, unknown)),
                "add them to equal=, or leave them out; a rate that is not named gets 0",
            )
        )
    return {name: check_tolerance(tolerance.get(name, 0.0)) for name in names}


def _check_cost(cost: CostLike | None, names: tuple[str, ...]) -> Cost | None:
    if (cost is not None) != ("cost" in names):
        raise UsageError(
            Problem(
                "cost",
                'must be given exactly if equal= has "cost"',
                f"cost={cost!r}, equal={names!r}",
                'use for example equal=("fpr", "cost"), cost="weighted:1,3"',
            )
        )
    return None if cost is None else as_cost(cost)


def _check_levels(levels: Any) -> int:
    step = "use levels=64, the default"
    return check_whole("levels", levels, FEWEST_LEVELS, MOST_LEVELS, step)
