"""Where cells go when a row of a rule is applied to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.cells import SUMS, Cells
from isocost.grid import Grid
from isocost.rows import Row, Segment

__all__ = ["Part", "mirrored_bins", "moved", "parts_of", "share_of"]

Floats = npt.NDArray[np.float64]

ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class Part:
    """Cells of one group and the share of each that has the same outcome.

    Attributes
    ----------
    place : array
        Where the cells are among all cells.
    row : Row or None
        What is applied to them; None if they keep their scores.
    share : array
        The share of each cell; over all parts the shares of a cell add up to 1.
    """

    place: npt.NDArray[np.intp]
    row: Row | None
    share: Floats

    @property
    def by_coin(self) -> npt.NDArray[np.bool_]:
        """For which cells a coin decides who is in this part."""
        return (self.share > 0.0) & (self.share < 1.0)

    def after(self, scores: Floats) -> Floats:
        """What becomes of scores in this part."""
        return scores if self.row is None else self.row.after(scores)


def parts_of(cells: Cells, group: int, grid: Grid, segments: Sequence[Segment]) -> Iterator[Part]:
    """Divide the cells of one group among the rows of a rule.

    The last part is that of people who keep their scores.
    """
    mine = cells.of_group(group)
    bins = cells.bin[mine]
    stay = np.ones(len(bins))
    for segment in segments:
        first, last = (grid.first_bin(end, "rule interval") for end in (segment.lo, segment.hi))
        inside = np.flatnonzero((bins >= first) & (bins < last))
        for row in segment.rows:
            stay[inside] -= row.probability
            yield Part(mine.start + inside, row, np.full(len(inside), row.probability))
    # Probabilities that add up to 1 but for rounding leave nobody.
    stay[stay < ROUNDING] = 0.0
    yield Part(np.arange(mine.start, mine.stop), None, stay)


def share_of(cells: Cells, share: Any) -> Cells:
    """A share of each cell, one number for all or one for each."""
    scaled = {name: getattr(cells, name) * share for name in SUMS}
    return Cells(cells.group, cells.label, cells.bin, **scaled)


def mirrored_bins(cells: Cells, grid: Grid) -> npt.NDArray[np.intp]:
    """The bins that cells come to when their scores h become 1 - h.

    The bin of the mirrored mean, not the opposite bin: 0.5 stays in its bin.
    """
    low = grid.cuts[cells.bin]
    mean = np.clip(cells.wh / cells.w, low, np.nextafter(grid.cuts[cells.bin + 1], 0.0))
    # A sum of equal scores may round: 0.3 three times is not 0.9.
    return grid.index(1.0 - np.where(mean - low < 1e-12, low, mean))


def moved(cells: Cells, row: Row, grid: Grid) -> Cells:
    """The cells after a row was applied to all of them."""
    if row.value is not None:
        value = row.value
        place = np.full(len(cells), grid.index(np.array([value]))[0])
        wh, wh2 = cells.w * value, cells.w * value**2
    else:
        wh = cells.w - cells.wh
        wh2 = cells.w - 2.0 * cells.wh + cells.wh2
        place = mirrored_bins(cells, grid)
    return Cells(cells.group, cells.label, place, cells.n, cells.w, cells.w2, wh, wh2)
