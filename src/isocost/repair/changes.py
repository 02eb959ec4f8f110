"""Who is changed by a rule, by how much, and by what chance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from isocost.moves import mirrored_bins
from isocost.rules import Rule
from isocost.tallies import Tally

__all__ = ["Changes", "changes", "gini"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

SAME = 1e-12
"""A score that moves by no more than this has not moved."""


@dataclass(frozen=True)
class Changes:
    """What a rule does to people, on average over the coin.

    Attributes
    ----------
    changed : float
        Share of people whose score changes.
    mean_change, largest_change : float
        Mean and maximum of ``|new - old|``; the mean is over everybody, changed or not.
    by_coin : float
        Share of people whose outcome hangs on a coin.
    decisions : float
        Share of people whose decision at the threshold changes.
    gini : float
        Gini coefficient of ``|new - old|``: 0 if everybody is changed alike, near 1 if few bear
        it all.  NaN if nobody is changed.
    """

    changed: float
    mean_change: float
    largest_change: float
    by_coin: float
    decisions: float
    gini: float

    def to_dict(self) -> dict[str, float | None]:
        """Plain values for JSON; an undefined Gini coefficient becomes null."""
        return {k: None if math.isnan(v) else v for k, v in asdict(self).items()}


@dataclass(frozen=True, eq=False)
class _Outcomes:
    """Parts of cells with the same fate: weight, distance moved, coin or not, side changed."""

    weight: Floats
    distance: Floats
    coin: Bools
    turned: Bools


def changes(tally: Tally, rule: Rule, threshold: float = 0.5, group: int | None = None) -> Changes:
    """Measure what a rule does to everybody, or to one group of the tally.

    The old score is the mean of its bin, so distances are exact to a bin's width.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> found = changes(compas(), ic.withhold(compas(), "fpr", 0.07), group=1)
    >>> round(found.changed, 4), round(found.largest_change, 4)
    (0.5194, 0.3835)
    """
    wanted = range(len(tally.groups)) if group is None else [group]
    parts = [part for place in wanted for part in _outcomes(tally, rule, threshold, place)]
    weight = np.concatenate([part.weight for part in parts])
    distance = np.concatenate([part.distance for part in parts])
    coin = np.concatenate([part.coin for part in parts])
    turned = np.concatenate([part.turned for part in parts])
    share = weight / weight.sum()
    moved = (distance > SAME) & (weight > 0)
    return Changes(
        changed=float(share[moved].sum()),
        mean_change=float(share @ distance),
        largest_change=float(distance[moved].max(initial=0.0)),
        by_coin=float(share[coin].sum()),
        decisions=float(share[turned].sum()),
        gini=gini(distance, share),
    )


def _outcomes(tally: Tally, rule: Rule, threshold: float, place: int) -> Iterator[_Outcomes]:
    """Every fate that a person of a group can have, with its weight."""
    first = tally.grid.first_bin(threshold)
    for part in rule.parts(tally, place):
        mine = tally.cells.take(part.place)
        mean, weight = mine.wh / mine.w, mine.w * part.share
        above = mine.bin >= first
        if part.row is None:
            after = above
        elif part.row.value is None:
            after = mirrored_bins(mine, tally.grid) >= first
        else:
            after = np.full(len(mine), part.row.value >= threshold)
        turned = (after != above) & (weight > 0)
        yield _Outcomes(weight, np.abs(part.after(mean) - mean), part.by_coin, turned)


def gini(values: Floats, weights: Floats) -> float:
    """The Gini coefficient of values with weights; NaN if all values are 0.

    Half the mean absolute difference of two people drawn at random, over the mean.

    Examples
    --------
    >>> gini(np.array([1.0, 1.0]), np.array([0.5, 0.5])), gini(np.array([0.0, 1.0]), np.ones(2))
    (0.0, 0.5)
    """
    order = np.argsort(values, kind="stable")
    x, w = values[order], weights[order] / weights.sum()
    mean = float(w @ x)
    if mean <= SAME:
        return math.nan
    # Twice the area between the line of equality and the Lorenz curve.
    lorenz = np.concatenate([[0.0], np.cumsum(w * x)]) / mean
    return max(0.0, 1.0 - float((w * (lorenz[1:] + lorenz[:-1])).sum()))
