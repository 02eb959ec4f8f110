"""Persons in columns that are arrays: codes for who a row is about, and the sums of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from isocost.cells import UNLABELLED, add_up
from isocost.engines.columns import Array, Problems, null_rows
from isocost.errors import DataError, Problem
from isocost.groups import Group, is_known
from isocost.persons import Persons
from isocost.typing import Floats, Ints

_BLOCK = 2**22
"""Rows that are added at once; more if there are more persons, so that sums are seldom copied."""

_PART = 2**15
"""Persons whose sums are multiplied at once."""

_SPARSE = 4
"""Whole numbers are their own codes if they span less than this many times the rows."""


def codes_of(column: Any) -> tuple[Ints, int]:
    """A code for each person, -1 where there is none, and a number above all codes.

    Examples
    --------
    >>> codes, size = codes_of(np.array(["x", None, "y", "x"], dtype=object))
    >>> codes.tolist(), size
    ([0, -1, 1, 0], 2)
    """
    if column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < _SPARSE * len(column) + _BLOCK:
            wide = column.astype(np.int64 if column.dtype.kind == "i" else np.uint64, copy=False)
            return (wide - wide.dtype.type(low)).astype(np.intp, copy=False), high - low + 1
    if column.dtype.kind in "biufSU":
        values, codes = np.unique(column, return_inverse=True)
        size = len(values)
    else:
        known: dict[Any, int] = {}
        try:
            listed = [known.setdefault(x, len(known)) for x in column.tolist()]
        except TypeError as error:
            rule, step = "must be texts, numbers or dates", "name the column of the persons' ids"
            raise DataError(Problem("person", rule, str(error), step)) from error
        codes, size = np.array(listed, dtype=np.intp), len(known)
    null = null_rows(column)
    if not null.any():
        return codes, size
    # Null may have had a code; the others move up.
    kept, codes = np.unique(np.where(null, -1, codes), return_inverse=True)
    return codes - 1, len(kept) - 1


def distinct(column: Any) -> int:
    """The number of different values; each null counts as one."""
    codes, _ = codes_of(column)
    counts = np.bincount(codes + 1, minlength=1)
    return int(counts[0]) + int(np.count_nonzero(counts[1:]))


class PersonSums:
    """The sums of each person, added part by part; see :func:`isocost.persons.terms_of`.

    A person belongs to the group of the first row.  Rows in another group are of a further entry,
    which has its own number.
    """

    def __init__(self, column: Array, thresholds: tuple[float, ...], weighted: bool) -> None:
        self.codes, self.size = codes_of(column)
        self.thresholds = thresholds
        self.home: Ints = np.full(self.size, -1, dtype=np.int32)
        self.further: dict[tuple[int, int], int] = {}
        self.sums: Floats | None = None
        # Rows wait here until it pays to go through the sums of all persons.
        room = min(len(self.codes), max(_BLOCK, 4 * self.size))
        self.index: Ints = np.empty(room, dtype=np.intp)
        self.h, self.spare = np.empty(room), np.empty(room)
        self.w = np.empty(room) if weighted else None
        self.waiting = 0

    def add(
        self,
        part: Any,
        y: Ints,
        g: Ints,
        h: Floats,
        w: Floats | None,
        problems: Problems,
        start: int,
    ) -> None:
        """Add rows with labels y, group codes g, scores h and weights w."""
        p = self.codes[part]
        if p.min(initial=0) < 0:
            (lacking,) = np.nonzero(p < 0)
            problems.add("person", "null", len(lacking), None, start + int(lacking[0]))
            return
        if (y == UNLABELLED).any():
            known = y != UNLABELLED
            p, y, g, h, w = p[known], y[known], g[known], h[known], w if w is None else w[known]
        if self.waiting + len(p) > len(self.index):
            self._flush()
        rows = slice(self.waiting, self.waiting + len(p))
        self.waiting = rows.stop
        np.multiply(self._entries(p, g), 2, out=self.index[rows])
        self.index[rows] += y
        self.h[rows] = h
        if self.w is not None:
            self.w[rows] = w

    def _entries(self, p: Ints, g: Ints) -> Ints:
        """The number of each row's entry: that of its person, or a further one."""
        (away,) = np.nonzero(self.home[p] != g)
        new = away[self.home[p[away]] < 0]
        if len(new):
            self.home[p[new]] = g[new]
            away = away[self.home[p[away]] != g[away]]
        if not len(away):
            return p
        pairs, index = np.unique(np.stack([p[away], g[away]]), axis=1, return_inverse=True)
        codes = [
            self.further.setdefault((person, group), self.size + len(self.further))
            for person, group in pairs.T.tolist()
        ]
        further = np.array([group for _, group in self.further], dtype=np.int32)
        self.home = np.concatenate([self.home[: self.size], further])
        entries = p.copy()
        entries[away] = np.array(codes)[index.reshape(-1)]
        return entries

    def _flush(self) -> None:
        index, h = self.index[: self.waiting], self.h[: self.waiting]
        spare = self.spare[: self.waiting]
        w = None if self.w is None else self.w[: self.waiting]
        self.waiting, size = 0, 2 * len(self.home)

        def terms() -> Iterator[Floats | None]:
            yield w
            yield h if w is None else np.multiply(h, w, out=spare)
            yield np.multiply(h if w is None else spare, h, out=spare)
            for threshold in self.thresholds:
                np.greater_equal(h, threshold, out=spare)
                yield spare if w is None else np.multiply(spare, w, out=spare)

        added: Floats = np.stack([add_up(index, term, size) for term in terms()])
        if self.sums is not None:
            added[:, : self.sums.shape[1]] += self.sums
        self.sums = added

    def finish(self, groups: list[Group]) -> Persons:
        """The persons of each group; those whose group is unknown are in none."""
        self._flush()
        assert self.sums is not None
        size = 2 * len(self.sums)
        products, home = np.zeros((len(groups), size, size)), self.home
        # A part of the persons at a time, so that putting them in order stays in the cache.
        for first in range(0, len(home), _PART):
            own = home[first : first + _PART]
            order = np.argsort(own, kind="stable")
            sums = self.sums[:, 2 * first : 2 * (first + _PART)].reshape(len(self.sums), -1, 2)
            sums = sums.transpose(2, 0, 1).reshape(size, -1)[:, order]
            there, ends = np.unique(own[order], return_index=True)
            for group, low, high in zip(there, ends, [*ends[1:], len(own)], strict=True):
                if group >= 0:
                    products[group] += sums[:, low:high] @ sums[:, low:high].T
        number = np.bincount(home + 1, minlength=len(groups) + 1)[1:]
        known = np.array([is_known(group) for group in groups])
        pairs = [*self.further, *((p, int(home[p])) for p in {p for p, _ in self.further})]
        times = np.bincount([p for p, g in pairs if known[g]] or [0], minlength=1)
        several = int((times > 1).sum())
        return Persons(self.thresholds, number.astype(float), products, several)
