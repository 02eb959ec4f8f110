"""The cells of a tally: what is summed for each group, label and score bin, and sums of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from isocost.groups import Group, as_group
from isocost.typing import Bools, Floats, Ints

KEYS = ("group", "label", "bin")
"""The key of a cell."""

SUMS = ("n", "w", "w2", "wh", "wh2")
"""The sums of a cell: of 1, w, w^2, w h and w h^2, for weight w and score h."""

_COLUMNS = {name: np.dtype(np.float64 if name in SUMS else np.intp) for name in (*KEYS, *SUMS)}

KINDS = ("tn", "fp", "fn", "tp")
"""The kinds of people at a threshold, by label and then side."""

Handed = Mapping[Group, tuple[float, float, float]]
"""Per group, of people without a score because somebody else decides: rows, sum w and sum w^2."""


def add_up(index: Ints, values: Floats, size: int) -> Floats:
    """Add up the values that have the same index, as floats."""
    return np.bincount(index, values, minlength=size).astype(np.float64, copy=False)


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
        for name, kind in _COLUMNS.items():
            array = getattr(self, name)
            # What nobody can write to needs no copy.
            if type(array) is not np.ndarray or array.flags.writeable or array.dtype != kind:
                array = np.array(array, dtype=kind)
                array.flags.writeable = False
                object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.n)

    @classmethod
    def merge(cls, parts: Sequence[Cells]) -> Cells:
        """Put cells together: add up those that share a key, drop empty ones, sort."""
        group, label, bin_ = (np.concatenate([getattr(p, name) for p in parts]) for name in KEYS)
        bins = int(bin_.max(initial=0)) + 1
        # One number per cell sorts many times as fast as three.
        unique, index = _distinct((group * 2 + label) * bins + bin_)
        joined = (np.concatenate([getattr(p, name) for p in parts]) for name in SUMS)
        sums = [add_up(index, values, len(unique)) for values in joined]
        rest, bin_ = np.divmod(unique, bins)
        group, label = np.divmod(rest, 2)
        merged = cls(group, label, bin_, *sums)
        return merged if merged.w.all() else merged.take(merged.w > 0)

    def recoded(self, codes: Sequence[int]) -> Cells:
        """The cells with group i called codes[i]."""
        return replace(self, group=np.array(codes, dtype=np.intp)[self.group])

    def of_group(self, group: int) -> slice:
        """The place of the cells of a group, which stand together."""
        first, last = np.searchsorted(self.group, [group, group + 1])
        return slice(int(first), int(last))

    def take(self, keep: Bools | Ints | slice) -> Cells:
        """Only the cells to keep."""
        return Cells(*(getattr(self, name)[keep] for name in _COLUMNS))

    def kind(self, first: int) -> Ints:
        """The kind of people in each cell, as an index into :data:`KINDS`.

        ``first`` is the first bin at the threshold.
        """
        return self.label * 2 + (self.bin >= first)

    def totals(self, groups: int) -> Sums:
        """Sum over bins, per group and label."""
        return self._summed(self.label, groups, 2)

    def handed(self, groups: Sequence[Group]) -> Handed:
        """Rows, sum w and sum w^2 of each group, if these are people handed over."""
        sums = [add_up(self.group, getattr(self, name), len(groups)) for name in SUMS[:3]]
        totals = {group: (n, w, w2) for group, n, w, w2 in zip(groups, *sums, strict=True) if n}
        return {as_group(g): (float(n), float(w), float(w2)) for g, (n, w, w2) in totals.items()}

    def kinds(self, groups: int, first: int) -> Sums:
        """Sum over bins, per group and kind; ``first`` is the first bin at the threshold."""
        return self._summed(self.kind(first), groups, len(KINDS))

    @property
    def is_weighted(self) -> bool:
        """True if any row had a weight other than 1."""
        return not (np.array_equal(self.n, self.w) and np.array_equal(self.n, self.w2))

    def _summed(self, column: Ints, groups: int, columns: int) -> Sums:
        index, shape = self.group * columns + column, (groups, columns)
        sums = (add_up(index, getattr(self, name), groups * columns) for name in SUMS)
        return Sums(*(values.reshape(shape) for values in sums))


def _distinct(keys: Ints) -> tuple[Ints, Ints]:
    """The distinct keys in order, and where each key is among them.

    Where there are nearly as many keys as there could be, counting is quicker than sorting.
    """
    if keys.max(initial=0) > 4 * len(keys):
        unique, index = np.unique(keys, return_inverse=True)
        return unique, index
    occurs = np.bincount(keys) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[keys]
