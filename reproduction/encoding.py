"""One-hot encoding: columns of texts and numbers to one matrix, as the paper's models want it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.errors import DataError, Problem, missing_column

__all__ = ["one_hot"]


def one_hot(
    table: Mapping[str, npt.NDArray[Any]],
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
) -> tuple[npt.NDArray[np.float64], tuple[str, ...]]:
    """The matrix of features and their names: numbers as they are, one column per category.

    Columns stand in the order of ``numeric``, then of ``categorical``; the categories of a column
    are sorted, so the order of rows does not matter.  Encode before splitting, or a part
    that lacks a rare category lacks its column.  This tells a model which categories exist, and
    nothing else about the held-out rows.

    Missing numbers stay NaN.  A value to put in their place must be learnt from the training part
    alone, so that is the business of the model's pipeline:
    ``SimpleImputer(strategy="median", add_indicator=True)``.  A missing category is a category,
    such as "?".

    Parameters
    ----------
    table : mapping of arrays
        The columns, all of one length.
    categorical, numeric : sequence of str
        Which of them to encode, and which to keep.

    Examples
    --------
    >>> table = {"age": np.array([30, 41, np.nan]), "sex": np.array(["male", "female", "?"])}
    >>> X, names = one_hot(table, categorical=["sex"], numeric=["age"])
    >>> names
    ('age', 'sex=?', 'sex=female', 'sex=male')
    >>> X
    array([[30.,  0.,  0.,  1.],
           [41.,  0.,  1.,  0.],
           [nan,  1.,  0.,  0.]])
    """
    _check(table, (*numeric, *categorical))
    columns = {name: _numbers(name, table[name]) for name in numeric}
    for name in categorical:
        columns |= dict(_indicators(name, np.asarray(table[name])))
    rows = len(next(iter(columns.values())))
    X = np.empty((rows, len(columns)))
    for place, values in enumerate(columns.values()):
        X[:, place] = values
    return X, tuple(columns)


def _check(table: Mapping[str, npt.NDArray[Any]], names: Sequence[str]) -> None:
    problems = [
        missing_column("features", name, list(table), "categorical= or numeric=")
        for name in names
        if name not in table
    ]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        step = "name each column once, as a category or as a number"
        problems.append(Problem("features", "must be different columns", f"{twice[0]!r}", step))
    if not names:
        step = "pass categorical=, numeric= or both"
        problems.append(Problem("features", "must be at least one column", "none", step))
    lengths = {name: len(table[name]) for name in names if name in table}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{name} with {length}" for name, length in lengths.items())
        step = "pass columns of one table"
        problems.append(Problem("features", "must all have the same number of rows", got, step))
    if problems:
        raise DataError(problems)


def _numbers(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    values = np.asarray(values)
    if values.dtype.kind not in "biuf":
        step = f"put {name!r} among the categorical columns, or turn it into numbers"
        got = f"values of type {values.dtype}"
        raise DataError(Problem(name, "must hold numbers to be numeric", got, step))
    return values.astype(np.float64)


def _indicators(
    name: str, values: npt.NDArray[Any]
) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    if values.dtype.kind == "f" and np.isnan(values).any():
        step = f"give missing values of {name!r} a category of their own, such as '?'"
        got = f"{np.isnan(values).sum()} values that are NaN"
        raise DataError(Problem(name, "must hold categories", got, step))
    categories, code = np.unique(values, return_inverse=True)
    for place, category in enumerate(categories.tolist()):
        yield f"{name}={category}", (code == place).astype(np.float64)
