"""Names of groups: which values they may be, their order, and how they are shown.

A group is a text, a whole number, a float, a boolean, or a tuple of these for several
columns.  Values keep their type: 1 and "1" are two groups.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from isocost.checks import is_writable
from isocost.errors import DataError, Problem

Scalar: TypeAlias = str | int | float | bool
Group: TypeAlias = Scalar | tuple[Scalar, ...]

_RANK = {bool: 0, int: 1, float: 2, str: 3}


def as_group(value: Any) -> Group:
    """Convert a value from any engine to a group; an error says why it cannot be one.

    Examples
    --------
    >>> import numpy as np
    >>> as_group(np.int8(3)), as_group(["F", 1])
    (3, ('F', 1))
    """
    if isinstance(value, tuple | list) and value:
        return tuple(as_scalar(part) for part in value)
    return as_scalar(value)


def as_scalar(value: Any) -> Scalar:
    """Convert a single value of a column to a part of a group; nested values are an error."""
    # NumPy's own numbers and texts; item() of a date would be nanoseconds.
    if getattr(value, "ndim", 1) == 0 and getattr(value.dtype, "kind", "?") in "biufU":
        value = value.item()
    if type(value) not in _RANK and isinstance(value, str):
        value = str(value)
    unwritable = isinstance(value, str) and not is_writable(value)
    infinite = isinstance(value, float) and not math.isfinite(value)
    if type(value) not in _RANK or unwritable or infinite:
        rule = "values must be text, numbers or booleans"
        got = f"{repr(value)[:100]} of type {type(value).__name__}"
        step = "convert the column to text first, for example with str() or CAST(... AS VARCHAR)"
        raise DataError(Problem("group", rule, got, step))
    return value  # type: ignore[no-any-return]


def parts_of(group: Group) -> tuple[Scalar, ...]:
    """A group as a tuple of the values of its columns."""
    return group if isinstance(group, tuple) else (group,)


def is_known(group: Group | None) -> bool:
    """True if no column of a group is null."""
    return group is not None and not any(map(is_null, parts_of(group)))


def is_null(value: Any) -> bool:
    """True if a value is None, NaN, NaT or pandas.NA; arrays and other objects are not."""
    if value is None or isinstance(value, bool):
        return value is None
    if isinstance(value, Decimal):
        # A signaling NaN cannot be compared.
        return value.is_nan()
    try:
        differs = value != value
        if hasattr(differs, "ndim"):
            return bool(differs.ndim == 0 and differs)
        # Every comparison with pandas.NA gives pandas.NA.
        return differs is value or bool(differs)
    except (TypeError, ValueError, ArithmeticError):
        return False


def is_exact(number: float) -> bool:
    """True if a number is exact as a double, which a large whole number may not be.

    Examples
    --------
    >>> is_exact(2**53), is_exact(2**53 + 1), is_exact(10**400)
    (True, False, False)
    """
    try:
        return float(number) == number
    except OverflowError:
        return False


def sort_groups(groups: Iterable[Group]) -> list[Group]:
    """Sort groups by type, then value, so that the order of rows never matters.

    Groups that are equal in Python although their types differ (1, 1.0 and True) are an error:
    they would be one key of a mapping.
    """
    ordered = sorted(groups, key=lambda g: tuple((_RANK[type(x)], x) for x in parts_of(g)))
    twin, times = Counter(ordered).most_common(1)[0] if ordered else (None, 0)
    if times > 1:
        twins = [group for group in ordered if group == twin]
        rule = "values must stay different when compared"
        got = f"{', '.join(map(repr, twins[:5]))}, which are equal in Python"
        step = "convert the column to text first, so that each value is its own group"
        raise DataError(Problem("group", rule, got, step))
    return ordered


def group_names(groups: Sequence[Group]) -> list[str]:
    """The name to show for each group; with quotes only if both 1 and "1" occur.

    Examples
    --------
    >>> group_names(["a", ("F", 30)])
    ['a', 'F, 30']
    >>> group_names([1, "1"])
    ['1', "'1'"]
    """
    parts = list(map(parts_of, groups))
    # What cannot be printed is escaped, so that it does nothing to a terminal.
    plain = [
        "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
        for name in (", ".join(map(str, group)) for group in parts)
    ]
    return plain if len(set(plain)) == len(plain) else [", ".join(map(repr, g)) for g in parts]


def names_of(groups: Iterable[Group]) -> dict[Group, str]:
    """The name to show for each group; see :func:`group_names`."""
    listed = list(groups)
    return dict(zip(listed, group_names(listed), strict=True))


def shown_names(groups: Iterable[Group]) -> dict[Group, str]:
    """The name of each group in sentences: a bare number or truth value becomes "group 0".

    The parts of an intersection have a dot between them: a comma would be one of the sentence's.

    Examples
    --------
    >>> list(shown_names(["women", 1.0, ("F", 30)]).values())
    ['women', 'group 1', 'F · 30']
    """
    plain = names_of(groups)
    shown = dict(plain)
    for group, name in plain.items():
        if isinstance(group, tuple) and len(group) > 1:
            shown[group] = " · ".join(group_names([part])[0] for part in group)
        elif re.fullmatch(r"-?\d+(\.\d+)?|True|False|.", name):
            shown[group] = f"group {name.removesuffix('.0')}"
    return shown if len(set(shown.values())) == len(shown) else plain


def columns_of(groups: Sequence[Group | None], names: Any = None) -> dict[str, list[Any]]:
    """Groups as columns of a table: one, or one for each part of intersections.

    There is a group for each row, None for everybody; ``names`` are those of the parts.  Values
    keep their type.  A column of a table has one type, so groups of several types, and whole
    numbers of more than 64 bits, become the texts that tables show.

    Examples
    --------
    >>> columns_of(["a", "b", None])
    {'group': ['a', 'b', None]}
    >>> columns_of([("F", 30), ("M", 30)], ["sex", "age"])
    {'sex': ['F', 'M'], 'age': [30, 30]}
    """
    sizes = {len(g) if isinstance(g, tuple) else 0 for g in groups if g is not None}
    size = max(sizes, default=0)
    if len(sizes) > 1 or not size:
        return {"group": _of_one_type(groups, mixed=len(sizes) > 1)}
    if not isinstance(names, list) or len(names) != size:
        names = [f"group_{number}" for number in range(1, size + 1)]
    parts = ([g[i] if isinstance(g, tuple) else None for g in groups] for i in range(size))
    return dict(zip(names, map(_of_one_type, parts), strict=True))


def beside_groups(
    groups: Sequence[Group | None], columns: Mapping[str, Any], names: Any = None
) -> dict[str, Any]:
    """The columns of a table, after those of its groups; see :func:`columns_of`.

    Examples
    --------
    >>> beside_groups([("F", 3), ("M", 4)], {"n": [10.0, 20.0]}, ["sex", "n"])
    {'sex': ['F', 'M'], 'group_n': [3, 4], 'n': [10.0, 20.0]}
    """
    named = columns_of(groups, names)
    return {
        **{f"group_{name}" if name in columns else name: v for name, v in named.items()},
        **columns,
    }


def _of_one_type(values: Sequence[Any], mixed: bool = False) -> list[Any]:
    known = [value for value in dict.fromkeys(values) if value is not None]
    wide = any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in known)
    if len(set(map(type, known))) <= 1 and not wide and not mixed:
        return list(values)
    texts = names_of(known)
    return [None if value is None else texts[value] for value in values]


def to_json(group: Group) -> Any:
    """A group for JSON, which :func:`as_group` reads: a tuple becomes a list."""
    return list(group) if isinstance(group, tuple) else group


def pairs_to_json(values: Mapping[Group, Any]) -> list[list[Any]]:
    """Values by group for JSON: [group, value] pairs, which keep the type of the group."""
    return [[to_json(group), value] for group, value in values.items()]
