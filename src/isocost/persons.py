"""Rows of the same person: sums of products, from which the variances of measures follow.

Rows of one person are not independent.  T holds the sums of a person over the rows of a group, in
the order of :func:`terms_of`; the products of a group are the sum of T T' over its persons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isocost.errors import Problem, UsageError
from isocost.typing import Floats

OF_SCORES = ("w", "wh", "wh2")
"""The sums of a person that need no threshold, by the names of those of a cell."""


def terms_of(thresholds: Sequence[float]) -> list[tuple[int, str | float]]:
    """The sums of a person: label, and the sum of a cell, or of w where the score is this high.

    Examples
    --------
    >>> terms_of([0.5])[3:6]
    [(0, 0.5), (1, 'w'), (1, 'wh')]
    """
    terms: list[str | float] = [*OF_SCORES, *thresholds]
    return [(label, term) for label in (0, 1) for term in terms]


def products_of(thresholds: Sequence[float]) -> dict[str, tuple[int, int]]:
    """The products on and above the diagonal: the name of each in a query, and its two sums.

    Examples
    --------
    >>> list(products_of([0.5]).items())[-2:]
    [('product_6_7', (6, 7)), ('product_7_7', (7, 7))]
    """
    rows, columns = np.triu_indices(len(terms_of(thresholds)))
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return {f"product_{i}_{j}": (i, j) for i, j in pairs}


@dataclass(frozen=True, eq=False)
class Persons:
    """The persons of a tally, and the products of their sums.

    Attributes
    ----------
    thresholds : tuple of float
        The thresholds known when the rows were counted.
    number : array (groups,)
        The number of persons of each group.
    products : array (groups, terms, terms)
        The sum of T T' over the persons of each group; see :func:`terms_of`.
    several : int
        How many persons have rows in several groups, at most.
    added : bool
        True if tallies were added, which assumes that no person has rows in two of them.
    """

    thresholds: tuple[float, ...]
    number: Floats
    products: Floats
    several: int = 0
    added: bool = False

    def __post_init__(self) -> None:
        for name in ("number", "products"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def counted(
        cls, thresholds: Sequence[float], found: Mapping[str, Any], several: int = 0
    ) -> Persons:
        """The persons that a query counted: their number n and products by name, in each group."""
        above = [found[name].astype(np.float64) for name in products_of(thresholds)]
        products = symmetric(np.stack(above, axis=-1), len(terms_of(thresholds)))
        return cls(tuple(thresholds), found["n"], products, several)

    def adds(self, coefficients: Floats, threshold: float) -> Floats | None:
        """What a unit of each sum of a person adds to a sum of w (a + b h + c h^2).

        ``coefficients`` has (a, b, c) for each kind of people, an array (4, 3).  None if the sums
        do not tell: those above an unknown threshold, or of scores on one side of it.
        """
        low, high = coefficients[::2], coefficients[1::2]
        jump = high - low
        if jump[:, 1:].any() or (jump.any() and threshold not in self.thresholds):
            return None
        above = [jump[:, 0] * (threshold == known) for known in self.thresholds]
        return np.column_stack([low, *above]).ravel()

    def covariances(self, group: int | None, moves: Floats) -> Floats:
        """The sum over persons of (moves T) (moves T)', for rows of ``moves``; None is everybody.

        A person with rows in several groups counts as one in each.
        """
        products = self.products.sum(axis=0) if group is None else self.products[group]
        return np.asarray(moves @ products @ moves.T)

    def recoded(self, codes: Sequence[int], size: int) -> Persons:
        """The persons with group i called codes[i], of so many groups; left out if negative."""
        kept = [(i, code) for i, code in enumerate(codes) if code >= 0]
        new = [code for _, code in kept]
        if len(set(new)) < len(new) and self.several:
            rule = "must not share persons if they become one"
            got = f"{self.several:,} persons with rows in several groups"
            step = "merge the groups in the data, and count again"
            raise UsageError(Problem("groups", rule, got, step))
        number, products = np.zeros(size), np.zeros((size, *self.products.shape[1:]))
        for index, code in kept:
            number[code] += self.number[index]
            products[code] += self.products[index]
        several = self.several if size > 1 else 0
        return replace(self, number=number, products=products, several=several)

    def at(self, thresholds: Sequence[float]) -> Persons:
        """The same persons, with these of the thresholds."""
        terms = terms_of(self.thresholds)
        kept = [terms.index(term) for term in terms_of(thresholds)]
        products = self.products[:, kept][:, :, kept]
        return replace(self, thresholds=tuple(thresholds), products=products)

    def __add__(self, other: Persons) -> Persons:
        """The persons of both, who have the same groups, and no person in common."""
        common = [t for t in self.thresholds if t in other.thresholds]
        mine, others = self.at(common), other.at(common)
        return Persons(
            tuple(common),
            mine.number + others.number,
            mine.products + others.products,
            self.several + other.several,
            added=True,
        )

    def __str__(self) -> str:
        several = f"{self.several:,} in several groups and counted in each" if self.several else ""
        added = "assumed to be in one of the added tallies only" if self.added else ""
        notes = ", ".join(filter(None, (several, added)))
        return f"{self.number.sum():,.0f} persons{f' ({notes})' if notes else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; of the products those on and above the diagonal."""
        above = np.triu_indices(self.products.shape[1])
        return {
            "thresholds": list(self.thresholds),
            "number": [int(x) for x in self.number],
            "several": self.several,
            "added": self.added,
            "products": [matrix[above].tolist() for matrix in self.products],
        }


def symmetric(above: Floats, size: int) -> Floats:
    """Matrices from their entries on and above the diagonal, row by row: arrays (..., entries).

    Examples
    --------
    >>> symmetric(np.array([1.0, 2.0, 3.0]), 2).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    matrix = np.zeros((*above.shape[:-1], size, size))
    rows, columns = np.triu_indices(size)
    matrix[..., rows, columns] = matrix[..., columns, rows] = above
    return matrix
