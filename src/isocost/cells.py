"""The columns of a tally: one row per group, label and score bin that occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

__all__ = ["KEYS", "KINDS", "SUMS", "Cells", "Sums", "add_up"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

KEYS = ("group", "label", "bin")
"""What a cell is known by."""

SUMS = ("n", "w", "w2", "wh", "wh2")
"""What is summed in a cell: 1, w, w^2, w h and w h^2, for weight w and score h."""


KINDS = ("tn", "fp", "fn", "tp")
"""The kinds of people at a threshold, in the order of label and then side."""


def add_up(place: Ints, values: Floats, size: int) -> Floats:
    """Add up the values that have the same place, as floats."""
    return np.bincount(place, values, minlength=size).astype(np.float64, copy=False)


@dataclass(frozen=True)
class Sums:
    """The five sums per group and label, or per group and kind: arrays (..., groups, 2 or 4).

    Leading dimensions are free, so that the same formulas serve one tally and
    thousands of resampled ones.
    """

    n: Floats
    w: Floats
    w2: Floats
    wh: Floats
    wh2: Floats

    @property
    def weight(self) -> Floats:
        """The weight of each group."""
        total: Floats = self.w.sum(axis=-1)
        return total

    def by_label(self) -> Sums:
        """Sums by kind added up to sums by label."""
        return Sums(
            *(getattr(self, name).reshape(*self.w.shape[:-1], 2, 2).sum(axis=-1) for name in SUMS)
        )

    def at(self, group: int) -> Sums:
        """The sums of one group, without the dimension of groups."""
        return Sums(*(getattr(self, name)[..., group, :] for name in SUMS))

    def pooled(self) -> Sums:
        """The sums of everybody together, as if there were one group."""
        return Sums(*(getattr(self, name).sum(axis=-2, keepdims=True) for name in SUMS))


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells sorted by group, label and bin, each of which occurs once; read-only arrays.

    ``group`` indexes the tally's groups, ``label`` is 0 or 1, ``bin`` indexes the grid; the
    other five are the sums that :data:`SUMS` names.
    """

    group: Ints
    label: Ints
    bin: Ints
    n: Floats
    w: Floats
    w2: Floats
    wh: Floats
    wh2: Floats

    def __post_init__(self) -> None:
        for field in fields(self):
            kind = np.float64 if field.name in SUMS else np.intp
            array = np.array(getattr(self, field.name), dtype=kind)
            array.flags.writeable = False
            object.__setattr__(self, field.name, array)

    def __len__(self) -> int:
        return len(self.n)

    @classmethod
    def merge(cls, parts: Sequence[Cells]) -> Cells:
        """Put cells together: add up those that share a key, drop empty ones, sort."""
        group, label, bin_ = (np.concatenate([getattr(p, name) for p in parts]) for name in KEYS)
        bins = int(bin_.max()) + 1
        # One number per cell sorts many times as fast as three.
        unique, place = np.unique((group * 2 + label) * bins + bin_, return_inverse=True)
        joined = [np.concatenate([getattr(p, name) for p in parts]) for name in SUMS]
        n, w, w2, wh, wh2 = (add_up(place, values, len(unique)) for values in joined)
        rest, bin_ = np.divmod(unique, bins)
        group, label = np.divmod(rest, 2)
        kept = w > 0
        return cls(group, label, bin_, n, w, w2, wh, wh2).take(kept)

    def renumbered(self, codes: Ints) -> Cells:
        """The same cells with group i called codes[i]."""
        return replace(self, group=codes[self.group])

    def of_group(self, group: int) -> slice:
        """Where the cells of a group are; they stand together."""
        first, last = np.searchsorted(self.group, [group, group + 1])
        return slice(int(first), int(last))

    def take(self, keep: npt.NDArray[np.bool_] | Ints | slice) -> Cells:
        """Only the cells to keep."""
        return Cells(*(getattr(self, field.name)[keep] for field in fields(self)))

    def kind(self, first: int) -> Ints:
        """The kind of people in each cell, as an index into :data:`KINDS`.

        ``first`` is the first bin at the threshold.
        """
        return self.label * 2 + (self.bin >= first)

    def totals(self, groups: int) -> Sums:
        """Sum over bins, per group and label."""
        return self._summed(self.label, groups, 2)

    def kinds(self, groups: int, first: int) -> Sums:
        """Sum over bins, per group and kind; ``first`` is the first bin at the threshold."""
        return self._summed(self.kind(first), groups, len(KINDS))

    def _summed(self, column: Ints, groups: int, columns: int) -> Sums:
        place = self.group * columns + column
        size = groups * columns
        return Sums(*(add_up(place, getattr(self, s), size).reshape(groups, columns) for s in SUMS))
