"""The names of columns that callers give, and of those that a repair writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from isocost.errors import Problem, UsageError

__all__ = ["check_names", "check_written", "group_names_of"]


def check_names(*, optional: Sequence[str] = (), **names: Any) -> None:
    """Refuse names of columns that are no texts; those in ``optional`` may be None.

    Examples
    --------
    >>> check_names(output=["x"])
    Traceback (most recent call last):
    isocost.errors.UsageError: output: must be the name of a column
      got:  ['x']
      next: pass one text, for example output='new'
    """
    for role, name in names.items():
        if not isinstance(name, str) and not (name is None and role in optional):
            rule, step = "must be the name of a column", f"pass one text, for example {role}='new'"
            raise UsageError(Problem(role, rule, repr(name)[:80], step))


def group_names_of(group: Any) -> list[str]:
    """The names of the group columns, one or several."""
    if isinstance(group, list | tuple) and not group:
        step = "name the group column"
        raise UsageError(Problem("group", "must name at least one column", "none", step))
    names = list(group) if isinstance(group, list | tuple) else [group]
    for name in names:
        check_names(group=name)
    if len(set(names)) != len(names):
        step = "leave out the repetition"
        raise UsageError(Problem("group", "must name each column once", repr(group)[:80], step))
    return names


def check_written(
    columns: Iterable[Any], output: str, changed: str | None, *, by_case: bool = False
) -> None:
    """Refuse names by which a repair would be lost, or a column that it must leave alone.

    Parameters
    ----------
    columns : names
        What the data have.
    output : str
        The repaired score; it may replace a column of that very name.
    changed : str or None
        The flag, which may replace none.
    by_case : bool
        Whether names that differ only in upper and lower case are two names here.
    """
    check_names(output=output, changed=changed, optional=("changed",))
    there = [str(name) for name in columns]
    step = "choose another name"
    if changed is not None and _same(changed, output, by_case):
        rule = "must differ from output, or it would take the place of the scores"
        raise UsageError(Problem("changed", rule, repr(changed), step))
    if changed is not None and (taken := [n for n in there if _same(n, changed, by_case)]):
        rule = "must be a new column, because the others stay as they are"
        raise UsageError(Problem("changed", rule, f"{changed!r}, and there is {taken[0]!r}", step))
    twin = [name for name in there if name != output and _same(name, output, by_case)]
    if twin and output not in there:
        rule = "must be a column as it is written there, or a new one: case is not looked at here"
        got = f"{output!r}, and there is {twin[0]!r}"
        raise UsageError(Problem("output", rule, got, f"use {twin[0]!r}, or another name"))


def _same(one: str, other: str, by_case: bool) -> bool:
    return one == other if by_case else one.lower() == other.lower()
