"""Two costs side by side: whether calibrated scores can have both equal.

On calibrated scores c_fp = mu/(1-mu) c_fn, so a cost is one number times c_fn:

    g_t = k_t c_fn,t        k_t = a_t mu_t/(1-mu_t) + b_t > 0

Two costs can both be equal for all groups, with scores that are not perfect, exactly when the
vectors (k_t) and (k'_t) are proportional.  Only costs for which they are not are *distinct*.
The paper calls costs distinct when their constraints differ as functions of all four error
rates; with that meaning its theorem fails, as "weighted:1,3" and "weighted:3,1" show.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.checks import check_base_rate
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import Problem, UsageError
from isocost.groups import Group, as_group, names_of, to_json

__all__ = ["CostComparison", "compare_costs", "distinct"]

Floats = npt.NDArray[np.float64]

PROPORTIONAL = 1e-12
"""How far, relatively, k'/k may vary over the groups by rounding."""


@dataclass(frozen=True)
class CostComparison:
    """What two costs ask of calibrated scores, side by side.

    Attributes
    ----------
    cost, other : Cost
        The costs.
    base_rates : {group: float}
        The share of positives.
    k, other_k : {group: float}
        The cost of calibrated scores per unit of c_fn, a mu/(1-mu) + b.

    Examples
    --------
    >>> print(compare_costs("weighted:1,3", "weighted:3,1", {"a": 0.2, "b": 0.5}))
    weighted:1,3 and weighted:3,1 are not distinct: calibrated scores that make one of them \
equal for a and b make both equal.
    Of calibrated scores a weighted cost is (fp + fn)(mu - E[h^2]): the ratio fp : fn cancels, \
only the sum matters.
    """

    cost: Cost
    other: Cost
    base_rates: dict[Group, float]
    k: dict[Group, float]
    other_k: dict[Group, float]

    @property
    def ratios(self) -> dict[Group, float]:
        """k'/k of each group; the costs are distinct when these differ."""
        return {group: self.other_k[group] / k for group, k in self.k.items()}

    @property
    def distinct(self) -> bool:
        """Whether only perfect scores can be calibrated and have both costs equal."""
        return differ(np.array(list(self.k.values())), np.array(list(self.other_k.values())))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; per-group numbers become [group, number] pairs."""
        return {
            "cost": self.cost.to_dict(),
            "other": self.other.to_dict(),
            "base_rates": pairs(self.base_rates),
            "k": pairs(self.k),
            "other_k": pairs(self.other_k),
            "distinct": self.distinct,
        }

    def __str__(self) -> str:
        costs, everybody = f"{self.cost} and {self.other}", listed(names_of(self.k).values())
        if self.distinct:
            text = (
                f"{costs} are distinct: no calibrated scores but perfect ones make both equal "
                f"for {everybody}."
            )
        else:
            text = (
                f"{costs} are not distinct: calibrated scores that make one of them equal for "
                f"{everybody} make both equal."
            )
        if self.cost.by_base_rate or self.other.by_base_rate:
            text += (
                "\nOf calibrated scores a weighted cost is (fp + fn)(mu - E[h^2]): the ratio "
                "fp : fn cancels, only the sum matters."
            )
        return text


def compare_costs(
    cost: CostLike, other: CostLike, base_rates: Mapping[Group, float] | Iterable[float]
) -> CostComparison:
    """Put two costs side by side on the calibrated lines of the groups.

    Parameters
    ----------
    cost, other : Cost or str
        What an error costs.
    base_rates : {group: float} or sequence of float
        Strictly between 0 and 1, for two groups or more; in a sequence the groups are 0, 1, ...
    """
    cost, other = as_cost(cost), as_cost(other)
    shares = _check_base_rates(base_rates)
    groups, mu = tuple(shares), np.array(list(shares.values()))
    per_fnr = []
    for each in (cost, other):
        a, b = each.coefficients(groups, mu)
        per_fnr.append(by_group(groups, a * mu / (1.0 - mu) + b))
    return CostComparison(cost, other, shares, *per_fnr)


def distinct(
    cost: CostLike, other: CostLike, base_rates: Mapping[Group, float] | Iterable[float]
) -> bool:
    """Whether two costs cannot both be equal for scores that are calibrated and not perfect.

    Then (k_t) and (k'_t) are not proportional; see :func:`compare_costs`, which also gives them.

    Examples
    --------
    >>> distinct("fpr", "fnr", [0.2, 0.5])
    True
    >>> distinct("fpr", "fnr", [0.5, 0.5])
    False
    >>> distinct("weighted:1,3", "weighted:3,1", [0.2, 0.5])
    False
    """
    return compare_costs(cost, other, base_rates).distinct


def _check_base_rates(base_rates: Any) -> dict[Group, float]:
    if not isinstance(base_rates, Mapping):
        base_rates = dict(enumerate(base_rates)) if _is_listed(base_rates) else {}
    if len(base_rates) < 2:
        raise UsageError(
            Problem(
                "base_rates",
                "must be of at least two groups, to be compared",
                f"{len(base_rates)} of them",
                'use {"a": 0.2, "b": 0.5}, or a sequence of numbers',
            )
        )
    return {
        as_group(group): check_base_rate(mu, f"base rate of group {group!r}")
        for group, mu in base_rates.items()
    }


def _is_listed(values: Any) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, str)


def differ(k: Floats, other_k: Floats) -> bool:
    """Whether two vectors of positive numbers are more than rounding from proportional."""
    # Each in its own unit first: costs may be in cents or in billions.
    ratios = (other_k / other_k.max()) / (k / k.max())
    return bool(ratios.max() > ratios.min() * (1.0 + PROPORTIONAL))


def by_group(groups: tuple[Group, ...], values: Floats) -> dict[Group, float]:
    """Numbers by the group they belong to."""
    return dict(zip(groups, map(float, values), strict=True))


def finite(value: float) -> float | None:
    """A number for JSON, which has no infinity."""
    return value if math.isfinite(value) else None


def pairs(values: Mapping[Group, float]) -> list[list[Any]]:
    """Numbers by group for JSON, as [group, number] pairs."""
    return [[to_json(group), finite(value)] for group, value in values.items()]


def listed(names: Iterable[str]) -> str:
    """Names in a row: a, b and c."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
