"""What the loaders have in common: the shape of a data set, and reading its lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.errors import DataError, Problem
from reproduction.catalogue import Item, Source
from reproduction.encoding import one_hot
from reproduction.sources import published

__all__ = ["MISSING", "Columns", "Dataset", "bad_value", "numbers", "read_texts", "together"]

Columns = Mapping[str, npt.NDArray[Any]]

MISSING = "?"
"""How UCI writes a missing value; among categories it is one of them."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set as it was published, one row per person.

    Attributes
    ----------
    columns : mapping of arrays
        Texts and numbers by name; a missing number is NaN, a missing category is "?".
    label : array
        What a model should predict, 0 or 1.
    categorical, numeric : tuple of str
        Which columns are features, by kind; the others are there to group or divide people.
    source : Source
        Publisher, licence, citation and hashes.
    paths : tuple of Path
        The files it was read from.
    """

    columns: Columns
    label: npt.NDArray[np.intp]
    categorical: tuple[str, ...]
    numeric: tuple[str, ...]
    source: Source
    paths: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.label)

    def features(
        self, without: Sequence[str] = ()
    ) -> tuple[npt.NDArray[np.float64], tuple[str, ...]]:
        """The features as :func:`one_hot` encodes them, and their names."""
        return one_hot(
            self.columns,
            [name for name in self.categorical if name not in without],
            [name for name in self.numeric if name not in without],
        )

    def __repr__(self) -> str:
        positives = int(self.label.sum())
        return (
            f"{self.source.title}: {len(self):,} rows, {positives:,} positive; "
            f"{len(self.numeric)} numbers and {len(self.categorical)} categories; "
            f"licence: {self.source.licence}"
        )


def read_texts(
    path: Path, item: Item, names: Sequence[str], *, verify: bool
) -> dict[str, tuple[str, ...]]:
    """The columns of a file without a header, as they are written.

    Blank lines and lines that start with "|", such as the first of adult.test, hold no person.
    """
    rows = []
    text = published(path, item, verify=verify).decode("utf-8", "replace")
    for place, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("|"):
            continue
        values = tuple(value.strip() for value in line.split(","))
        if len(values) != len(names):
            got = f"{len(values)} in line {place} of {path}"
            raise _bad("file", f"must have {len(names)} values in a line", got)
        rows.append(values)
    if not rows:
        raise _bad("file", "must have rows", f"none in {path}")
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def together(parts: Sequence[Columns]) -> dict[str, npt.NDArray[Any]]:
    """The columns of several files, one after the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def numbers(name: str, texts: Sequence[str], path: Path) -> npt.NDArray[np.float64]:
    """A column of numbers, NaN for "?"."""
    values = np.empty(len(texts))
    for place, text in enumerate(texts):
        try:
            values[place] = np.nan if text == MISSING else float(text)
        except ValueError as error:
            raise bad_value(name, "a number or '?'", text, path) from error
    return values


def bad_value(name: str, rule: str, text: str, path: Path) -> DataError:
    """The error for a value that the published file cannot hold."""
    return _bad(name, f"must be {rule}", f"{text!r} in {path}")


def _bad(name: str, rule: str, got: str) -> DataError:
    step = "check that this is the right file, or fetch it again"
    return DataError(Problem(name, rule, got, step))
