"""Every error and warning of isocost, and how their messages are built.

A message has four parts: the *name* of what is wrong, the *rule* it breaks, what
was *got* instead, and the *next step*.  :class:`Problem` holds them; an error holds one
or several problems, so that everything wrong with the data is reported at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isocost.measures.feasibility import Feasibility
    from isocost.repairs.hand_over import Deferral
    from isocost.repairs.reconcilability import Reconcilability


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, in four parts.

    Examples
    --------
    >>> print(Problem("weight", "must be positive", "3 values <= 0", "drop those rows"))
    weight: must be positive
      got:  3 values <= 0
      next: drop those rows
    """

    name: str
    rule: str
    got: str
    next_step: str

    def __str__(self) -> str:
        return f"{self.name}: {self.rule}\n  got:  {self.got}\n  next: {self.next_step}"


class IsocostError(Exception):
    """Base of every error that isocost raises on purpose.

    Attributes
    ----------
    problems : tuple of Problem
        What is wrong; at least one.
    """

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        blocks = "\n".join(str(problem) for problem in self.problems)
        if len(self.problems) == 1:
            return blocks
        return f"{len(self.problems)} problems:\n{blocks}"


class DataError(IsocostError, ValueError):
    """The data cannot be used as they are."""


class UsageError(IsocostError, ValueError):
    """An argument has a value that it cannot have."""


class RuleError(IsocostError, ValueError):
    """A rule, or a file that should hold one, is not valid."""


class FileError(IsocostError, OSError):
    """A file cannot be read or written."""


class MissingDependencyError(IsocostError, ImportError):
    """An optional part is not installed; the message has the pip command."""


class InfeasibleError(IsocostError):
    """The request cannot be met with these scores.

    Attributes
    ----------
    feasibility : Feasibility, Reconcilability or Deferral
        By how much it fails, and what is possible instead.
    """

    def __init__(
        self, problem: Problem, feasibility: Feasibility | Reconcilability | Deferral
    ) -> None:
        super().__init__(problem)
        self.feasibility = feasibility

    def __reduce__(
        self,
    ) -> tuple[type[InfeasibleError], tuple[Problem, Feasibility | Reconcilability | Deferral]]:
        return type(self), (self.problems[0], self.feasibility)


class NotAdvisedError(IsocostError):
    """The data do not support the request, though it could be met."""


class IsocostWarning(UserWarning):
    """Base of every warning that isocost gives."""


class InfeasibleWarning(IsocostWarning):
    """The request cannot be met; the closest that is possible was done."""


class DeferralWarning(IsocostWarning):
    """Of the people handed over most are of one group, or are those whom it is about."""


class ConstraintWarning(IsocostWarning):
    """A model was trained but does not meet the constraint."""


class UncalibratedWarning(IsocostWarning):
    """Scores do not mean the same for every group, so making their costs equal says little."""


class UncertainWarning(IsocostWarning):
    """There is too little data to say whether groups differ."""


def require_package(module: str, name: str, rule: str, step: str) -> Any:
    """An optional module; the error says what needs it, and the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        problem = Problem(name, rule, f"no {error.name}", step)
        raise MissingDependencyError(problem) from error


def listing(texts: Iterable[str], most: int = 30) -> str:
    """Texts separated by commas, at most so many.

    Examples
    --------
    >>> listing(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    texts = list(texts)
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def missing_column(
    role: str, wanted: object, available: Sequence[str], option: str | None = None
) -> Problem:
    """A column that does not exist: list those that do, and suggest the nearest.

    Examples
    --------
    >>> print(missing_column("score", "scor", ["id", "score"]))
    score: must name a column of the data
      got:  'scor', and the columns are 'id', 'score'
      next: did you mean score='score'?
    """
    near = difflib.get_close_matches(str(wanted), available, n=1, cutoff=0.5)
    option = option or f"{role}="
    step = (
        f"did you mean {option}{near[0]!r}?"
        if near
        else f"name one of the columns above with {option}"
    )
    got = f"{wanted!r}, and the columns are {listing(map(repr, available))}"
    if not available:
        got, step = f"{wanted!r}, and the data have no columns", "pass data that have columns"
    return Problem(role, "must name a column of the data", got, step)
