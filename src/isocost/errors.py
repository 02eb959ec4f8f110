"""Every error and warning of isocost, and how their messages are built.

A message has four parts: the *name* of what is wrong, the *rule* it breaks, what
was *got* instead, and the *next step*.  :class:`Problem` holds them; an error holds one
or several problems, so that everything wrong with the data is reported at once.

Messages name settings as they are written where the message is read: ``tolerance=0.06`` in Python,
``--tolerance 0.06`` in a shell, the label of its control on a page.  :func:`setting` writes them,
in the :class:`Language` of the present context.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from isocost.measures.feasibility import Feasibility
    from isocost.repairs.hand_over import Deferral
    from isocost.repairs.reconcile import Reconcilability

_LONG_WORD, _LONGEST = re.compile(r"\S{400,}"), 5000
"""Words that are shortened in messages, such as names of columns, and the most of one part."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, in four parts; the middle of what is very long is left out.

    Examples
    --------
    >>> from isocost.errors import Problem
    >>> print(Problem("weight", "must be positive", "3 values <= 0", "drop those rows"))
    weight: must be positive
      got:  3 values <= 0
      next: drop those rows
    """

    name: str
    rule: str
    got: str
    next_step: str

    def __post_init__(self) -> None:
        for part, text in vars(self).items():
            text = _LONG_WORD.sub(lambda word: f"{word[0][:100]}...{word[0][-100:]}", text)
            if len(text) > _LONGEST:
                text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
            object.__setattr__(self, part, text)

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

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems[0], self.feasibility)


class NotAdvisedError(IsocostError):
    """The data do not support the request, though it could be met."""


class IsocostWarning(UserWarning):
    """Base of every warning that isocost gives."""


class InfeasibleWarning(IsocostWarning):
    """The request cannot be met; the closest that is possible was done."""


class DeferralWarning(IsocostWarning):
    """Most people handed over belong to one group, or are the ones the score exists for."""


class ConstraintWarning(IsocostWarning):
    """A model was trained but does not meet the constraint."""


class UncalibratedWarning(IsocostWarning):
    """Scores do not mean the same for every group, so making their costs equal says little."""


class UncertainWarning(IsocostWarning):
    """There is too little data to say whether groups differ."""


class ReadingWarning(IsocostWarning):
    """Data were read in a way that was guessed, and what was read looks as if it may be wrong."""


UNSET: Final[Any] = object()
"""The value of a setting of which only the name is written."""


@dataclass(frozen=True)
class Language:
    """The spelling of settings where messages are read.

    ``setting`` gives the text for a name and a value, which may be :data:`UNSET`; ``command`` that
    for a command and its further words.
    """

    place: Literal["python", "shell", "page"]
    setting: Callable[[str, Any], str]
    command: Callable[..., str] = lambda *words: " ".join(("isocost", *words))


def _literal(value: Any) -> str:
    if value is UNSET:
        return ""
    if isinstance(value, str) and '"' not in value and value.isprintable():
        return f'"{value}"'
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(k)}: {_literal(v)}' for k, v in value.items())}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    return "..." if value is ... else repr(value)


PYTHON = Language("python", lambda name, value: f"{name}={_literal(value)}")

_language: ContextVar[Language] = ContextVar("language", default=PYTHON)


@contextmanager
def speaking(language: Language) -> Iterator[None]:
    """Write messages in a language."""
    token = _language.set(language)
    try:
        yield
    finally:
        _language.reset(token)


def speak_of(command: Callable[..., str]) -> None:
    """Write commands in messages in this way, as long as the present language is spoken."""
    _language.set(replace(_language.get(), command=command))


def command_text(*words: str) -> str:
    """A command as it is written where the message is read, about the data that it is about.

    Examples
    --------
    >>> from isocost.errors import command_text
    >>> command_text("plan", "--method", "withhold")
    'isocost plan --method withhold'
    """
    return _language.get().command(*words)


def setting(name: str, value: Any = UNSET) -> str:
    """A setting as it is written where the message is read.

    Examples
    --------
    >>> from isocost.errors import setting
    >>> setting("tolerance", 0.06), setting("equal", ("fpr", "fnr")), setting("levels")
    ('tolerance=0.06', 'equal=("fpr", "fnr")', 'levels=')
    """
    return _language.get().setting(name, value)


def spoken(python: str, shell: str, page: str | None = None) -> str:
    """The text for where the message is read; a page without one of its own has the shell's."""
    texts = {"python": python, "shell": shell, "page": shell if page is None else page}
    return texts[_language.get().place]


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
    >>> from isocost.errors import listing
    >>> listing(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    texts = list(texts)
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def missing_column(role: str, wanted: object, available: Sequence[str]) -> Problem:
    """A column that does not exist: list those that do, and suggest the nearest.

    Examples
    --------
    >>> from isocost.errors import missing_column
    >>> print(missing_column("score", "scor", ["id", "score"]))
    score: must name a column of the data
      got:  'scor', and the columns are 'id', 'score'
      next: did you mean score="score"?
    """
    near = difflib.get_close_matches(str(wanted), available, n=1, cutoff=0.5)
    got = f"{wanted!r}, and the columns are {listing(map(repr, available))}"
    if near:
        step = f"did you mean {setting(role, near[0])}?"
    elif available:
        step = f"name one of the columns above with {setting(role)}"
    else:
        got, step = f"{wanted!r}, and the data have no columns", "pass data that have columns"
    return Problem(role, "must name a column of the data", got, step)
