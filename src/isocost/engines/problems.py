"""What can be wrong with data and with names of columns, reported together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from isocost.errors import DataError, Problem, UsageError


def check_names(*, optional: Sequence[str] = (), **names: Any) -> None:
    """Raise if names of columns are not texts; those in ``optional`` may be None.

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
    """Raise if the names to write would lose the repair, or overwrite another column.

    Parameters
    ----------
    columns : names
        The columns of the data.
    output : str
        The repaired score; it may replace a column of exactly this name.
    changed : str or None
        The flag, which must be a new column.
    by_case : bool
        Whether names that differ only in case are different.
    """
    check_names(output=output, changed=changed, optional=("changed",))
    existing = [str(name) for name in columns]
    step = "choose another name"
    if changed is not None and _same(changed, output, by_case):
        rule = "must differ from output, or it would replace the scores"
        raise UsageError(Problem("changed", rule, repr(changed), step))
    if changed is not None and (taken := [n for n in existing if _same(n, changed, by_case)]):
        rule = "must be a new column, because the others stay as they are"
        raise UsageError(Problem("changed", rule, f"{changed!r}, and there is {taken[0]!r}", step))
    similar = [name for name in existing if name != output and _same(name, output, by_case)]
    if similar and output not in existing:
        rule = "must be spelled like the existing column, or be new: case is ignored here"
        got = f"{output!r}, and there is {similar[0]!r}"
        raise UsageError(Problem("output", rule, got, f"use {similar[0]!r}, or another name"))


def _same(one: str, other: str, by_case: bool) -> bool:
    return one == other if by_case else one.lower() == other.lower()


USUAL_WEIGHTS = (1e-100, 1e100)
"""Beyond these the square of a weight is not a finite, positive number."""

_EXTREME = "below 1e-100 or above 1e100"

WRONG = {
    "score": {-1: "null or NaN", -2: "infinite", -3: "outside [0, 1]"},
    "label": {-1: "null or NaN", -2: "other than 0 and 1"},
    "weight": {-1: "null or NaN", -2: "infinite", -3: "zero", -4: "negative", -5: _EXTREME},
}
"""What is wrong with a value, by its role and the code that replaces its cell in a query."""

_RULES = {
    "score": (
        "must be a number in [0, 1] in every row",
        "drop or fill rows without a score; divide percentages by 100; convert decision values to "
        "probabilities",
    ),
    "label": (
        "must be 0/1 or boolean in every row",
        "drop rows without a label; name the positive label with positive= (--positive) if the "
        "column has two other values",
    ),
    "group": (
        "must be known in every row",
        'drop those rows, or count them as a group of their own with missing_group="unknown" '
        "(--missing-group)",
    ),
    "weight": (
        "must be a positive, finite number in every row",
        "drop rows with weight 0, and check the column for missing values",
    ),
    "id": (
        "must be a whole number or a text in every row",
        "give every row an id, or use seed= instead of id=",
    ),
}


@dataclass
class Problems:
    """Counts of what is wrong, by role and kind, each with one example.

    ``example`` is which one: the first, or the least where rows have no order.
    """

    names: dict[str, str] = field(default_factory=dict)
    counts: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    rows: int = 0
    example: str = "first"

    def add(self, role: str, kind: str, count: int, example: Any = None, row: Any = None) -> None:
        """Add ``count`` of this kind; the first example is kept."""
        if count <= 0:
            return
        before, shown = self.counts.get((role, kind), (0, ""))
        if not shown:
            value = "" if example is None else f" {_show(example)}"
            where = "" if row is None else f" in row {row}"
            shown = f" ({self.example}:{value}{where})" if value or where else ""
        self.counts[role, kind] = (before + int(count), shown)

    def check(self, more: Sequence[Problem] = ()) -> None:
        """Raise one error that reports everything, and ``more``, if there is anything."""
        problems = []
        for role in (role for role in _RULES if any(role == other for other, _ in self.counts)):
            got = ", ".join(
                f"{count:,} {kind}{example}"
                for (other, kind), (count, example) in self.counts.items()
                if other == role
            )
            counted = ", counted from 0" if " in row " in got else ""
            of = f", of {self.rows:,} rows{counted}" if self.rows else ""
            problems.append(problem_of(role, self.names.get(role, role), got + of))
        if problems or more:
            raise DataError([*problems, *more])


def no_rows(path: object = "") -> DataError:
    """The error for data without rows."""
    got, step = f"0 rows in {path}" if path else "0 rows", "check the source of the data"
    return DataError(Problem("data", "must have at least one row", got, step))


def missing_id(
    got: str = "none", step: str = "name the column that says who a row is about (id=, --id)"
) -> UsageError:
    """The error for a rule with a coin that is applied without ids."""
    return UsageError(Problem("id", "must be given, because this rule throws a coin", got, step))


def problem_of(role: str, name: str, got: str, step: str | None = None) -> Problem:
    """What is wrong with the column that has a role, in four parts.

    Examples
    --------
    >>> print(problem_of("id", "person", "1 null"))
    id (column 'person'): must be a whole number or a text in every row
      got:  1 null
      next: give every row an id, or use seed= instead of id=
    """
    rule, usual_step = _RULES[role]
    return Problem(title_of(role, name), rule, got, step or usual_step)


def title_of(role: str, name: str) -> str:
    """A column in messages: its role, and its name if that is different.

    Examples
    --------
    >>> title_of("score", "score"), title_of("score", "risk")
    ('score', "score (column 'risk')")
    """
    return role if name == role else f"{role} (column {name!r})"


def _show(value: Any) -> str:
    text = repr(value.item() if getattr(value, "ndim", None) == 0 else value)
    return text if len(text) <= 60 else text[:57] + "..."
