"""Persons in columns that are arrays: codes for who a row is about, and the sums of each."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from isocost.cells import UNLABELLED
from isocost.engines.columns import Array, Encoded, Problems, null_rows
from isocost.groups import Group, is_known
from isocost.persons import Persons, terms_of
from isocost.typing import Floats, Ints

_BLOCK = 2**22
"""Rows that are added at once; more if there are more persons, so that sums are seldom copied."""

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
    if isinstance(column, Encoded):
        return column.codes.astype(np.intp, copy=False), len(column.values)
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
        codes = np.array([known.setdefault(x, len(known)) for x in column.tolist()], dtype=np.intp)
        size = len(known)
    null = null_rows(column)
    if not null.any():
        return codes, size
    # Null may have had a code; the others move up.
    kept, codes = np.unique(np.where(null, -1, codes), return_inverse=True)
    return codes - 1, len(kept) - 1


class PersonSums:
    """The sums of each person, added part by part; see :func:`isocost.persons.terms_of`.

    A person belongs to the group of the first row.  Rows in another group are of a further entry,
    which has its own number.
    """

    def __init__(self, column: Array, thresholds: tuple[float, ...]) -> None:
        self.codes, self.size = codes_of(column)
        self.thresholds = thresholds
        self.home: Ints = np.full(self.size, -1, dtype=np.intp)
        self.further: dict[tuple[int, int], int] = {}
        self.sums: Floats = np.zeros((len(terms_of(thresholds)) // 2, 2 * self.size))
        self.waiting: list[tuple[Any, ...]] = []

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
        rows = (p, y, g, h) if w is None else (p, y, g, h, w)
        if (known := y != UNLABELLED).all():
            known = slice(None)
        self.waiting.append(tuple(column[known] for column in rows))
        if sum(len(rows[0]) for rows in self.waiting) >= max(_BLOCK, 4 * self.size):
            self._flush()

    def _flush(self) -> None:
        if not self.waiting:
            return
        joined = [np.concatenate(column) for column in zip(*self.waiting, strict=True)]
        self.waiting = []
        p, y, g, h, *weights = joined
        new = self.home[p] < 0
        self.home[p[new]] = g[new]
        (away,) = np.nonzero(self.home[p] != g)
        if len(away):
            pairs, index = np.unique(np.stack([p[away], g[away]]), axis=1, return_inverse=True)
            codes = [
                self.further.setdefault((person, group), self.size + len(self.further))
                for person, group in pairs.T.tolist()
            ]
            p[away] = np.array(codes)[index.reshape(-1)]
            self.home = np.concatenate([self.home[: self.size], [g for _, g in self.further]])
            grown = np.zeros((len(self.sums), 2 * len(self.home)))
            grown[:, : self.sums.shape[1]] = self.sums
            self.sums = grown
        index, size = p * 2 + y, self.sums.shape[1]
        w = weights[0] if weights else None
        products = [w, h if w is None else w * h, h * h if w is None else w * h * h]
        above = (h >= threshold for threshold in self.thresholds)
        terms = [*products, *(x if w is None else w * x for x in above)]
        for row, term in zip(self.sums, terms, strict=True):
            row += np.bincount(index, term, minlength=size)

    def finish(self, groups: list[Group]) -> Persons:
        """The persons of each group; those whose group is unknown are in none."""
        self._flush()
        home = self.home
        # NumPy sorts small integers in one pass.
        small = (home + 1).astype(np.uint16) if len(groups) < 2**16 - 1 else home
        order = np.argsort(small, kind="stable")
        ends = np.searchsorted(home[order], np.arange(len(groups) + 1))
        sums = self.sums.reshape(len(self.sums), -1, 2)
        size = 2 * len(sums)
        number, products = np.diff(ends), np.zeros((len(groups), size, size))
        for group, (first, last) in enumerate(pairwise(ends)):
            own = sums[:, order[first:last]].transpose(2, 0, 1).reshape(size, -1)
            products[group] = own @ own.T
        known = np.array([is_known(group) for group in groups])
        pairs = [*self.further, *((p, int(home[p])) for p in {p for p, _ in self.further})]
        times = np.bincount([p for p, g in pairs if known[g]] or [0], minlength=1)
        several = int((times > 1).sum())
        return Persons(self.thresholds, number.astype(float), products, several)
