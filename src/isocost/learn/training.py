"""What training reads from rows besides features: groups, and whether there is enough of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.errors import DataError, Problem
from isocost.groups import Group, names_of, sort_groups
from isocost.learn.sensitive import groups_of, read_groups

__all__ = ["check_groups", "group_codes"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

_NEEDED = {"fpr": (0,), "fnr": (1,), "all": ()}
_CLASS = ("negative", "positive")


def group_codes(sensitive: Any, data: Any) -> tuple[Ints, list[Group]]:
    """The group of each row of ``data`` as a place in the sorted list of groups."""
    found = read_groups(data, groups_of(None, 0) if sensitive is None else sensitive)
    groups = sort_groups(found.names)
    rank = np.array([groups.index(group) for group in found.names], dtype=np.intp)
    return rank[found.codes], groups


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
