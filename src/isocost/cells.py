"""The cells of a tally: what is summed for each group, label and score bin, and sums of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from isocost.groups import Group, as_group
from isocost.typing import Bools, Floats, Ints

KEYS = ("group", "label", "bin")
"""The key of a cell."""

POWERS = {"n": (0, 0), "w": (1, 0), "w2": (2, 0), "w4": (4, 0), "wh": (1, 1), "wh2": (1, 2)}
"""The sums of a cell: the powers of weight w and score h that are added up over its rows.

A new sum is an entry here and a field of :class:`Summed`.
"""

SUMS = tuple(POWERS)

OF_WEIGHTS = tuple(name for name, (weight, score) in POWERS.items() if weight and not score)
"""Sums that are equal to the number of rows where every weight is 1."""

UNWEIGHTED = tuple(name for name in SUMS if name not in OF_WEIGHTS)
"""Sums that say everything where every weight is 1."""

UNLABELLED = 2
"""The label of people whose outcome is not known; they are counted apart from the others."""

LABELS = 3
"""Labels that a cell may have: 0, 1 and :data:`UNLABELLED`."""

KINDS = ("tn", "fp", "fn", "tp")
"""The kinds of people at a threshold, by label and then side."""

Handed = Mapping[Group, tuple[float, float, float]]
"""Per group, of people without a score because somebody else decides: rows, sum w and sum w^2."""


def add_up(index: Ints, values: Floats | None, size: int) -> Floats:
    """Add up the values that have the same index, as floats; without values, count them."""
    return np.bincount(index, values, minlength=size).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Summed:
    """The sums that :data:`POWERS` names, as arrays of one shape."""

    n: Floats
    w: Floats
    w2: Floats
    w4: Floats
    wh: Floats
    wh2: Floats

    @property
    def sums(self) -> dict[str, Floats]:
        """The sums by name."""
        return {name: getattr(self, name) for name in SUMS}


@dataclass(frozen=True, eq=False)
class Sums(Summed):
    """The sums per group and label, or per group and kind: arrays (..., groups, 2 or 4).

    Leading dimensions are free, so that the same formulas serve one tally and
    thousands of resampled ones.
    """

    @property
    def weight(self) -> Floats:
        """The weight of each group."""
        total: Floats = self.w.sum(axis=-1)
        return total

    def by_label(self) -> Sums:
        """Sums by kind added up to sums by label."""
        shape = (*self.w.shape[:-1], 2, 2)
        return Sums(*(values.reshape(shape).sum(axis=-1) for values in self.sums.values()))

    def at(self, group: int) -> Sums:
        """The sums of one group, without the dimension of groups."""
        return Sums(*(values[..., group, :] for values in self.sums.values()))

    def pooled(self) -> Sums:
        """The sums of everybody together, as if there were one group."""
        return Sums(*(values.sum(axis=-2, keepdims=True) for values in self.sums.values()))


@dataclass(frozen=True, eq=False)
class Keyed:
    """The keys of cells: indices of groups, labels below :data:`LABELS`, and bins of the grid."""

    group: Ints
    label: Ints
    bin: Ints


@dataclass(frozen=True, eq=False)
class Cells(Summed, Keyed):
    """Cells sorted by group, label and bin, each of which occurs once; read-only arrays."""

    def __post_init__(self) -> None:
        for name in (*KEYS, *SUMS):
            array, kind = getattr(self, name), np.dtype(np.intp if name in KEYS else np.float64)
            # What nobody can write to needs no copy.
            if type(array) is not np.ndarray or array.flags.writeable or array.dtype != kind:
                array = np.array(array, dtype=kind)
                array.flags.writeable = False
                object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.n)

    @classmethod
    def none(cls) -> Cells:
        """No cells at all."""
        key: Ints = np.zeros(0, dtype=np.intp)
        return cls(key, key, key, **dict.fromkeys(SUMS, np.zeros(0)))

    @classmethod
    def merge(cls, parts: Sequence[Cells]) -> Cells:
        """Put cells together: add up those that share a key, drop empty ones, sort."""
        bins = max(int(part.bin.max(initial=0)) for part in parts) + 1
        # One number per cell sorts many times as fast as three.
        keys = np.concatenate([part.key(bins) for part in parts])
        if keys.max(initial=0) > 4 * len(keys):
            unique, index = np.unique(keys, return_inverse=True)
        else:
            # Where nearly all that could be occur, counting is quicker than sorting.
            occurs = np.bincount(keys) > 0
            unique, index = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[keys]
        joined = (np.concatenate([getattr(part, name) for part in parts]) for name in SUMS)
        sums = [add_up(index, values, len(unique)) for values in joined]
        rest, bin_ = np.divmod(unique, bins)
        group, label = np.divmod(rest, LABELS)
        merged = cls(group, label, bin_, *sums)
        return merged if merged.w.all() else merged.take(merged.w > 0)

    def key(self, bins: int) -> Ints:
        """The key of each cell as one number, for so many bins."""
        return (self.group * LABELS + self.label) * bins + self.bin

    def recoded(self, codes: Sequence[int]) -> Cells:
        """The cells with group i called codes[i]."""
        return replace(self, group=np.array(codes, dtype=np.intp)[self.group])

    def of_group(self, group: int) -> slice:
        """The place of the cells of a group, which stand together."""
        first, last = np.searchsorted(self.group, [group, group + 1])
        return slice(int(first), int(last))

    def take(self, keep: Bools | Ints | slice) -> Cells:
        """Only the cells to keep."""
        return Cells(*(getattr(self, name)[keep] for name in (*KEYS, *SUMS)))

    def kind(self, first: int) -> Ints:
        """The kind of people in each cell, as an index into :data:`KINDS`.

        ``first`` is the first bin at the threshold.
        """
        return self.label * 2 + (self.bin >= first)

    def totals(self, groups: int, labels: int = 2) -> Sums:
        """Sum over bins, per group and label."""
        return self._summed(self.label, groups, labels)

    def kinds(self, groups: int, first: int) -> Sums:
        """Sum over bins, per group and kind; ``first`` is the first bin at the threshold."""
        return self._summed(self.kind(first), groups, len(KINDS))

    def _summed(self, column: Ints, groups: int, columns: int) -> Sums:
        index, shape = self.group * columns + column, (groups, columns)
        sums = (add_up(index, values, groups * columns) for values in self.sums.values())
        return Sums(*(values.reshape(shape) for values in sums))

    def handed(self, groups: Sequence[Group]) -> Handed:
        """Rows, sum w and sum w^2 of each group, if these are people handed over."""
        sums = (add_up(self.group, x, len(groups)).tolist() for x in (self.n, self.w, self.w2))
        each = zip(groups, *sums, strict=True)
        return {as_group(group): (n, w, w2) for group, n, w, w2 in each if n}

    @property
    def is_weighted(self) -> bool:
        """True if any row had a weight other than 1."""
        return not all(np.array_equal(self.n, getattr(self, name)) for name in OF_WEIGHTS)
