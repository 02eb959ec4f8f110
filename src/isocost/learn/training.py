"""What training reads from rows besides features: groups, and whether there is enough of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_sample_weight

from isocost.engines.encode import GroupEncoder, column_array
from isocost.engines.frames import as_frame
from isocost.engines.problems import Problems
from isocost.errors import DataError, Problem, UsageError
from isocost.groups import Group, names_of, sort_groups

__all__ = ["check_groups", "group_codes", "row_weights"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

_NEEDED = {"fpr": (0,), "fnr": (1,), "all": ()}
_CLASS = ("negative", "positive")


def group_codes(sensitive: Any, data: Any, rows: int) -> tuple[Ints, list[Group]]:
    """The group of each row as a place in the sorted list of groups.

    ``sensitive`` is one value per row, several columns of them (a frame or an array of two
    dimensions), or the name or names of columns of ``data``.
    """
    if sensitive is None:
        raise UsageError(
            Problem(
                "sensitive_features",
                "must say the group of each row",
                "None",
                "pass fit(X, y, sensitive_features=...): one value per row, or names of columns "
                "of X; in a pipeline also call set_fit_request(sensitive_features=True)",
            )
        )
    codes, found = _encoded(_columns(sensitive, data), rows)
    groups = sort_groups(found)
    rank = np.array([groups.index(group) for group in found], dtype=np.intp)
    return rank[codes], groups


def _encoded(columns: list[Any], rows: int) -> tuple[Ints, list[Group]]:
    """Codes and the groups that they stand for, in no order."""
    lengths = {len(column) for column in columns}
    if lengths != {rows}:
        raise DataError(
            Problem(
                "sensitive_features",
                f"must have one value for each of the {rows:,} rows of X",
                f"{max(lengths - {rows}):,}",
                "pass the groups of the same rows, in the same order",
            )
        )
    encoder, problems = GroupEncoder(columns, None), Problems(rows=rows)
    codes = encoder.encode([column[:] for column in columns], problems, 0)
    if problems.found:
        raise DataError(
            Problem(
                "sensitive_features",
                "must be known in every row",
                f"{problems.found['group', 'null'][0]:,} null, of {rows:,} rows",
                'drop those rows, or make them a group of their own such as "unknown"',
            )
        )
    # A frame's dictionary may hold values that no row has.
    seen, places = np.unique(codes, return_inverse=True)
    return places, [encoder.groups[code] for code in seen]


def _columns(sensitive: Any, data: Any) -> list[Any]:
    """The columns that make the groups."""
    named = [sensitive] if isinstance(sensitive, str) else sensitive
    if hasattr(data, "columns") and isinstance(named, list) and _are_names(named, data):
        frame = as_frame(data)
        return [frame.groups(name) for name in named]
    if hasattr(sensitive, "columns"):
        frame = as_frame(sensitive)
        return [frame.groups(name) for name in frame.columns]
    if np.ndim(named) == 2:
        return [column_array("sensitive_features", column) for column in np.asarray(named).T]
    return [column_array("sensitive_features", named)]


def _are_names(named: list[Any], data: Any) -> bool:
    """Whether these are names of columns, not one group per row."""
    return all(isinstance(name, str) for name in named) and (
        len(named) != len(data) or set(named) <= set(data.columns)
    )


def row_weights(sample_weight: Any, features: Floats) -> Floats:
    """One weight per row; 1 if none are given."""
    try:
        found: Floats = _check_sample_weight(
            sample_weight, features, dtype=np.float64, ensure_non_negative=True
        )
    except ValueError as error:
        raise DataError(
            Problem(
                "sample_weight",
                f"must be a number, 0 or more, for each of the {len(features):,} rows of X",
                str(error).splitlines()[0],
                "pass the weights of the same rows, or None for equal ones",
            )
        ) from error
    return found


def check_groups(
    codes: Ints, groups: list[Group], label: Ints, weight: Floats, kinds: tuple[str, ...]
) -> None:
    """Refuse one group, and groups without the rows that a constraint is about."""
    names = names_of(groups)
    if len(groups) < 2:
        raise DataError(
            Problem(
                "sensitive_features",
                "must hold at least two groups",
                f"only {names[groups[0]]!r}",
                "train without a constraint: sklearn.linear_model.LogisticRegression",
            )
        )
    mass = np.bincount(codes * 2 + label, weight, 2 * len(groups)).reshape(-1, 2)
    problems = []
    for kind in kinds:
        for value in _NEEDED[kind]:
            short = [names[g] for g, total in zip(groups, mass[:, value], strict=True) if not total]
            if short:
                problems.append(
                    Problem(
                        f'constraint "{kind}"',
                        f"needs {_CLASS[value]} rows in every group",
                        f"none in {', '.join(short)}",
                        "merge small groups, get more data, or choose another constraint",
                    )
                )
    if problems:
        raise DataError(problems)
