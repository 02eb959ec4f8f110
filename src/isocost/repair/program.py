"""The linear program of reconciling: who may get which score, and what that does to the rates.

A *choice* is a level and an output.  Its variable is the share x of the level that gets
the output, so that x >= 0 adds up to 1 over the choices of a level.  Everything else is
linear in x: that an output is calibrated, every rate, and every harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.measure.table import MEASURES
from isocost.repair.levels import ScoreLevels

__all__ = ["BELOW", "Choices", "make_choices"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

BELOW = 1.0 / 1024.0
"""How far below the threshold the highest pool of negatives lies."""

OUTPUTS = 32
"""How many evenly spaced outputs a group's levels share where hard rates are not all."""


@dataclass(frozen=True, eq=False)
class Choices:
    """The columns of the program, over all groups; every array has one entry per choice.

    Attributes
    ----------
    levels : sequence of ScoreLevels
        The levels of each group.
    threshold : float
        An output at or above it is positive.
    group, level : arrays
        The group, and the level within the group.
    row : array
        The number of the level among all levels of all groups.
    pool : array
        The number of the output among all outputs that several levels share; -1 for a level's
        own share of positives, which is calibrated whoever else is there.
    value : array
        The output.
    """

    levels: Sequence[ScoreLevels]
    threshold: float
    group: Ints
    level: Ints
    row: Ints
    pool: Ints
    value: Floats

    def __len__(self) -> int:
        return len(self.value)

    def _of_level(self, name: str) -> Floats:
        values: Floats = np.concatenate([getattr(part, name) for part in self.levels])[self.row]
        return values

    def _of_group(self, name: str) -> Floats:
        values: Floats = np.array([getattr(part, name) for part in self.levels])[self.group]
        return values

    @cached_property
    def w(self) -> Floats:
        """The level's share of its group."""
        return self._of_level("w")

    @cached_property
    def p(self) -> Floats:
        """The level's share of positives."""
        return self._of_level("p")

    @cached_property
    def positive(self) -> npt.NDArray[np.bool_]:
        """Whether the output is at or above the threshold."""
        return self.value >= self.threshold

    @cached_property
    def people(self) -> Floats:
        """The level's share of everybody."""
        return self.w * self._of_group("share")

    @cached_property
    def turned(self) -> npt.NDArray[np.bool_]:
        """Whether the output changes the decision."""
        return np.asarray(self.positive != self._of_level("above"), dtype=np.bool_)

    @cached_property
    def distance(self) -> Floats:
        """How far the output lies from the level's mean score."""
        return np.abs(self.value - self._of_level("h"))

    def rate(self, name: str) -> Floats:
        """What each choice adds to a rate of its group."""
        measure = MEASURES[name]
        mu, q = self._of_group("base_rate"), self.value
        added, total = np.zeros(len(self)), np.zeros(len(self))
        for label, share, everyone in ((0, 1.0 - self.p, 1.0 - mu), (1, self.p, mu)):
            if label in (measure.over_labels or ()):
                # The kinds of a label stand side by side, those below the threshold first.
                a, b, c = measure.coefficients[2 * label + self.positive].T
                added += self.w * share * (a + b * q + c * q * q)
                total += everyone
        return added / total

    def cost(self, a: Floats, b: Floats) -> Floats:
        """What each choice adds to the cost a c_fp + b c_fn of its group."""
        fp, fn = self.rate("generalized_fpr"), self.rate("generalized_fnr")
        return a[self.group] * fp + b[self.group] * fn

    def harm(self, keep: str) -> Floats:
        """What each choice adds to the harm that is made small.

        Information lost: -E[q^2].  Decisions: the share of people whose decision changes.
        Scores: E|q - h|.
        """
        if keep == "information":
            return -self.people * self.value**2
        return self.people * (self.turned if keep == "decisions" else self.distance)

    @cached_property
    def matrix(self) -> Any:
        """The rows that hold whatever is asked: every level is somewhere, pools are calibrated."""
        from scipy.sparse import coo_array, vstack

        columns = np.arange(len(self))
        shape = (sum(map(len, self.levels)), len(self))
        everyone = coo_array((np.ones(len(self)), (self.row, columns)), shape=shape)
        pooled = self.pool >= 0
        excess = (self.w * (self.p - self.value))[pooled]
        shape = (int(self.pool.max()) + 1, len(self))
        calibrated = coo_array((excess, (self.pool[pooled], columns[pooled])), shape=shape)
        return vstack([everyone, calibrated]).tocsr()

    @cached_property
    def totals(self) -> Floats:
        """The right-hand sides of :attr:`matrix`."""
        right = np.zeros(self.matrix.shape[0])
        right[: sum(map(len, self.levels))] = 1.0
        return right

    def rates_matrix(self, rates: Mapping[str, Floats]) -> Any:
        """One row per rate and group, the groups of a rate together."""
        from scipy.sparse import coo_array

        groups = len(self.levels)
        columns = np.arange(len(self))
        rows = np.concatenate([self.group + groups * k for k in range(len(rates))])
        values = np.concatenate(list(rates.values()))
        shape = (groups * len(rates), len(self))
        return coo_array((values, (rows, np.tile(columns, len(rates)))), shape=shape).tocsr()


def make_choices(levels: Sequence[ScoreLevels], threshold: float, wide: bool) -> Choices:
    """The outputs that each level may get.

    Always its own share of positives; the threshold; a point :data:`BELOW` under it; and the
    group's base rate if it lies between the two.

    Notes
    -----
    For hard rates nothing else is needed.  Let a group's levels be split into those sent to the
    positive and to the negative side.  The positive outputs are a mean-preserving contraction of
    the levels sent there, within [threshold, 1].  The greatest of these in the convex order pools
    the lowest of them at the threshold and leaves the others alone, and so it has the
    greatest E[q^2].  The same holds below, except that the threshold itself is not reached:
    this costs at most :data:`BELOW` in the place of one pool.

    Generalized rates, costs and distances may want coarser outputs in between.  Then (``wide``)
    the base rate and :data:`OUTPUTS` values spaced evenly over the group's levels are outputs too:
    with d their distance, E[q^2] comes within (d / 2)^2 of the lowest that can be had.
    """
    parts = []
    first_row = first_pool = 0
    for group, part in enumerate(levels):
        shared = _shared(part, threshold, wide)
        level = np.arange(len(part))
        own = np.stack([level, np.full_like(level, -1)])
        cross = np.stack(
            [np.repeat(level, len(shared)), np.tile(np.arange(len(shared)), len(part))]
        )
        cross = cross[:, shared[cross[1]] != part.p[cross[0]]]
        level, output = np.concatenate([own, cross], axis=1)
        value = np.where(output < 0, part.p[level], shared[output])
        pool = np.where(output < 0, -1, output + first_pool)
        parts.append((np.full_like(level, group), level, level + first_row, pool, value))
        first_row, first_pool = first_row + len(part), first_pool + len(shared)
    return Choices(levels, threshold, *(np.concatenate(x) for x in zip(*parts, strict=True)))


def _shared(part: ScoreLevels, threshold: float, wide: bool) -> Floats:
    """The outputs that every level of a group may get."""
    below = max(threshold - BELOW, threshold / 2.0)
    values = [threshold, below]
    if wide or below < part.base_rate < threshold:
        values.append(part.base_rate)
    if wide:
        even = np.linspace(part.p.min(), part.p.max(), OUTPUTS)
        # Near the threshold only the two points above, so that rounding decides nothing.
        values.extend(even[np.abs(even - threshold) > BELOW])
    return np.unique(values)
