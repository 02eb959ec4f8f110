"""Levels of cost in the plane, as curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from isocost.checks import check_amount, check_listed
from isocost.costs import Cost, CostLike, as_cost
from isocost.groups import Group
from isocost.show import geometry

__all__ = ["Level", "LevelLine", "level_lines"]

Floats = npt.NDArray[np.float64]
Level: TypeAlias = float | tuple[CostLike, float]


@dataclass(frozen=True)
class LevelLine:
    """One level of cost in the plane; ``group`` is whose it is where the cost differs by group."""

    cost: Cost
    value: float
    group: int | None
    points: Floats


def level_lines(
    levels: Iterable[Level], cost: CostLike, groups: Sequence[Group], base_rates: npt.ArrayLike
) -> list[LevelLine]:
    """The levels as curves, one each, or one per group where the cost differs by group.

    A level is a number, for ``cost``, or a pair of another cost and a number.
    """
    found = []
    rule, step = "must be a list of numbers, or of pairs of a cost and a number", "use levels=[0.3]"
    for level in check_listed("levels", levels, rule, step):
        its, value = level if isinstance(level, tuple) and len(level) == 2 else (cost, level)
        its, value = as_cost(its), check_amount("levels", value)
        stretch = _stretch(its, value, groups, base_rates)
        by_group = isinstance(its.fp, Mapping) or isinstance(its.fn, Mapping)
        for place in range(len(groups)) if by_group else [None]:
            group = None if place is None else groups[place]
            points = geometry.level_curve(its, value, group, stretch=stretch)
            found.append(LevelLine(its, float(value), place, points))
    return found


def _stretch(cost: Cost, value: float, groups: Sequence[Group], base_rates: npt.ArrayLike) -> float:
    """How far past the diagonal a level must go to pass all that it is compared with."""
    shares = [
        geometry.crossing(mu, cost, value, group).share
        for mu, group in zip(np.asarray(base_rates), groups, strict=True)
    ]
    near = [share for share in shares if share < 2.0]
    return max([1.0, *near]) * (1.0 if max(near, default=0.0) <= 1.0 else 1.03)
