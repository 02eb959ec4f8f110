"""The population that a tally speaks for: scores, and the chance of label 1 at each of them.

Samples are drawn from it where the truth must be known.  It has the scores of the tally, but not
its labels.  A score that occurs once has a share of positives of 0 or 1 in the tally: samples
would find patterns again that are there by chance only, and every score would look miscalibrated.
So P(y = 1 | h) is the score h itself, unless the data show that scores are miscalibrated; then it
is h plus the mean residual y - h of people with similar scores, shrunk as far as it may be chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from isocost.cells import Cells, add_up
from isocost.tallies import Tally
from isocost.typing import Floats, Ints

CHANCE = 0.01
"""Chance that scores of some group are taken for miscalibrated, though all are calibrated."""


class Population:
    """The people that a tally speaks for: scores, and the chance of label 1 at each."""

    def __init__(self, tally: Tally) -> None:
        self.grid, self.groups = tally.grid, tally.groups
        self._parts = [_Part.of(tally, index) for index in range(len(tally.groups))]

    @cached_property
    def tally(self) -> Tally:
        """The population itself: each score has both labels, by their chances."""
        return self._tally([(part.rows, part.rows * part.chance) for part in self._parts])

    def draw(self, random: np.random.Generator, times: float = 1.0) -> Tally:
        """A sample in which each group is ``times`` as large as in the tally."""
        counts = []
        for part in self._parts:
            size = max(1, round(times * part.rows.sum()))
            rows = random.multinomial(size, part.rows / part.rows.sum())
            counts.append((rows.astype(float), random.binomial(rows, part.chance).astype(float)))
        return self._tally(counts)

    def _tally(self, counts: list[tuple[Floats, Floats]]) -> Tally:
        parts = zip(self._parts, counts, strict=True)
        # In the order of cells, so that they need not be merged.
        columns = [
            part.columns(index, label, rows - ones if label == 0 else ones)
            for index, (part, (rows, ones)) in enumerate(parts)
            for label in (0, 1)
        ]
        cells = Cells(*map(np.concatenate, zip(*columns, strict=True)))
        return Tally(self.grid, self.groups, cells)


@dataclass(frozen=True)
class _Part:
    """One group of a population, by bins.

    Rows with weights count as fewer equal ones, (sum w)^2 / sum w^2, each of weight
    sum w^2 / sum w: then a sum of weights varies as much as it does in truth.
    """

    bin: Ints
    rows: Floats
    weight: Floats
    score: Floats
    square: Floats
    chance: Floats

    @classmethod
    def of(cls, tally: Tally, group: int) -> _Part:
        cells = tally.cells.take(tally.cells.of_group(group))
        bins, index = np.unique(cells.bin, return_inverse=True)
        w, wy, w2, wh, wh2 = (
            add_up(index, values, len(bins))
            for values in (cells.w, cells.w * cells.label, cells.w2, cells.wh, cells.wh2)
        )
        score = np.clip(wh / w, 0.0, 1.0)
        # All groups together are taken for miscalibrated by chance no more often than one alone.
        chance = chances(score, w, wy, w2, CHANCE / len(tally.groups))
        return cls(bins, w**2 / w2, w2 / w, score, wh2 / w, chance)

    def columns(self, group: int, label: int, rows: Floats) -> tuple[Any, ...]:
        """The columns of the cells with so many rows in each bin, without empty ones."""
        used = rows > 0
        rows, weight = rows[used], self.weight[used]
        w, ones = rows * weight, np.ones(len(rows), dtype=np.intp)
        sums = (rows, w, w * weight, w * self.score[used], w * self.square[used])
        return (group * ones, label * ones, self.bin[used], *sums)


def chances(score: Floats, w: Floats, wy: Floats, w2: Floats, mistaken: float = CHANCE) -> Floats:
    """The chance of label 1 at each score of a group, from low scores to high.

    The group is cut into J parts.  If scores are calibrated, D = sum of w (y - h) over a part has
    variance V = sum of w^2 h (1 - h), about the same for each part, and the sum of D^2 / V is about
    chi-squared with J degrees of freedom.  If it is no larger than that allows, the chance is the
    score; by chance it is larger in a share ``mistaken`` of all cases.  Otherwise the chance is
    h + (1 - J / sum of D^2 / V) D / W, with W the weight of the part: the estimate of James and
    Stein.

    Examples
    --------
    >>> score, rows = np.array([0.2, 0.6]), np.array([100.0, 100.0])
    >>> chances(score, rows, np.array([22.0, 57.0]), rows)
    array([0.2, 0.6])
    >>> chances(score, rows, np.array([50.0, 85.0]), rows).round(2)
    array([0.49, 0.84])
    """
    from scipy.special import chdtri

    noise = w2 * np.maximum(score * (1.0 - score), 1e-6)
    positives = float((noise * (w / w2) ** 2).sum())
    # Fewer parts if the number of positives in one had a variance so small that it is not normal.
    parts = int(np.clip(positives / 4.0, 1, 10))
    middle = (np.cumsum(noise) - noise / 2.0) / noise.sum()
    block = np.minimum((middle * parts).astype(np.intp), parts - 1)
    total, off, noise = (add_up(block, values, parts) for values in (w, wy - w * score, noise))
    used = total > 0
    size, known = float((off[used] ** 2 / noise[used]).sum()), int(used.sum())
    if size <= chdtri(known, mistaken):
        return score
    mean = off[used] / total[used] * (1.0 - known / size)
    return np.asarray(np.clip(score + mean[(np.cumsum(used) - 1)[block]], 0.0, 1.0))
