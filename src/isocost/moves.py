"""Where cells go when a row of a rule is applied to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.cells import SUMS, Cells
from isocost.grid import Grid
from isocost.rows import Row

__all__ = ["mirrored_bins", "moved", "share_of"]


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
    """The cells after a row was applied to its share of them."""
    if row.value is not None:
        value = row.value
        place = np.full(len(cells), grid.index(np.array([value]))[0])
        wh, wh2 = cells.w * value, cells.w * value**2
    else:
        wh = cells.w - cells.wh
        wh2 = cells.w - 2.0 * cells.wh + cells.wh2
        place = mirrored_bins(cells, grid)
    after = Cells(cells.group, cells.label, place, cells.n, cells.w, cells.w2, wh, wh2)
    return share_of(after, row.probability)
