"""Checks of arguments and of untrusted JSON: one function for each kind of value.

A check returns the value in its usual type, or raises a :class:`~isocost.errors.UsageError`
that names the argument.  Tallies and rules are checked beside their classes, by
:func:`isocost.tallies.check_tally` and :func:`isocost.rules.check_rule`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np

from isocost.errors import Problem, UsageError, missing_column, setting

DEEPEST = 64
"""The deepest nesting of JSON; what isocost writes has fewer than ten levels."""

LONGEST, LONGEST_SALT = 10_000, 1000
"""The greatest length of a text, and of a salt."""

_INSIDE = "must be a number strictly between 0 and 1"

_PLAIN = (str, bytes, int, float, list, tuple, dict, set, np.generic, Decimal, Fraction, type(None))


def short(value: Any) -> str:
    """A value for an error message: the repr of plain values, the type of others.

    Examples
    --------
    >>> short("a"), short(np.zeros((2, 2)))
    ("'a'", 'an object of type ndarray')
    """
    if not isinstance(value, _PLAIN):
        return f"an object of type {type(value).__name__}"
    # The first part is enough, and a list may hold a million values.
    cut = isinstance(value, str | bytes | list | tuple) and len(value) > 120
    part: Any = value
    try:
        text = " ".join(repr(part[:120] if cut else part).split("\n"))
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= 120 and not cut else text[:117] + "..."


def check_kind(name: str, value: Any, kind: type | tuple[type, ...], rule: str, step: str) -> Any:
    """An instance of a class."""
    if not isinstance(value, kind):
        raise UsageError(Problem(name, rule, short(value), step))
    return value


# Numbers


def as_number(value: Any) -> float:
    """A single real number as a float; NaN for anything else, also for booleans and text."""
    if isinstance(value, bool | np.bool_ | str | bytes):
        return math.nan
    # Arrays without dimensions hold one number too.
    if not isinstance(value, Real | Decimal) and getattr(value, "ndim", None) != 0:
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return math.nan


def _check_number(
    name: str, value: Any, valid: Callable[[float], bool], rule: str, step: str
) -> float:
    number = as_number(value)
    if not valid(number):
        raise UsageError(Problem(name, rule, short(value), step))
    return number


def _check_inside(name: str, value: Any, step: str, rule: str = _INSIDE) -> float:
    return _check_number(name, value, lambda x: 0.0 < x < 1.0, rule, step)


def check_threshold(threshold: Any, name: str = "threshold") -> float:
    """A decision threshold, strictly between 0 and 1."""
    step = f"use {name}=0.5, or the score from which people are treated as positive"
    return _check_inside(name, threshold, step)


def check_confidence(confidence: Any, name: str = "confidence", usual: float = 0.95) -> float:
    """A confidence level, or another share, strictly between 0 and 1."""
    return _check_inside(name, confidence, f"use {name}={usual:g}")


def check_base_rate(value: Any, name: str = "base_rate") -> float:
    """A base rate, strictly between 0 and 1."""
    rule = f"{_INSIDE}: without positives or negatives there are no error rates"
    step = "use the share of positives of a group that has both labels"
    return _check_inside(name, value, step, rule)


def check_amount(name: str, value: Any, step: str = "use 0.0 for none") -> float:
    """A finite number that is at least 0."""
    rule = "must be a number that is at least 0"
    return _check_number(name, value, lambda x: 0.0 <= x < math.inf, rule, step)


def check_tolerance(tolerance: Any, name: str = "tolerance") -> float:
    """A tolerance, finite and at least 0."""
    return check_amount(name, tolerance, "use 0 for equal costs, or the difference you accept")


def check_unit(name: str, value: Any) -> float:
    """A number in [0, 1]."""
    rule, step = "must be a number in [0, 1]", "rates and shares lie there"
    return _check_number(name, value, lambda x: 0.0 <= x <= 1.0, rule, step)


def check_whole(
    name: str, value: Any, least: int, most: int | None = None, step: str | None = None
) -> int:
    """A whole number from ``least`` to ``most``."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        ends = f"that is at least {least}" if most is None else f"from {least} to {most}"
        step = step or f"leave out {setting(name)} for the default"
        raise UsageError(Problem(name, f"must be a whole number {ends}", short(value), step))
    return int(value)


def check_seed(seed: Any) -> int:
    """The seed of a random generator, a whole number that is at least 0."""
    return check_whole("seed", seed, 0, step=f"use {setting('seed', 0)}")


def check_numbers(name: str, values: Any) -> tuple[float, ...]:
    """Cut points or thresholds: one number strictly between 0 and 1, or several."""
    listed = isinstance(values, Iterable) and getattr(values, "ndim", 1) != 0
    if not listed or isinstance(values, str | bytes | Mapping):
        values = (values,)
    return tuple(check_threshold(value, name) for value in values)


# Words, text and lists


def check_word(name: str, value: object, words: Sequence[str], step: str | None = None) -> None:
    """Raise unless the value is one of these words."""
    if not isinstance(value, str) or value not in words:
        *others, last = (f'"{word}"' for word in words)
        rule = f"must be {', '.join(others)} or {last}"
        raise UsageError(Problem(name, rule, short(value), step or f'use "{words[0]}"'))


def check_flag(name: str, value: Any) -> bool:
    """True or False, not just a truthy value."""
    if not isinstance(value, bool | np.bool_):
        step = f"use {setting(name, True)} or {setting(name, False)}"
        raise UsageError(Problem(name, "must be True or False", short(value), step))
    return bool(value)


def is_writable(text: str) -> bool:
    """True if UTF-8 can encode a text, which it cannot with half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(name: str, value: Any, most: int = LONGEST, step: str = "use a short text") -> str:
    """A text that is not too long and that UTF-8 can encode."""
    if not isinstance(value, str) or len(value) > most or not is_writable(value):
        rule = f"must be a text of at most {most} characters"
        raise UsageError(Problem(name, rule, short(value), step))
    return value


def check_salt(salt: Any) -> str:
    """The salt of a coin."""
    return check_text("salt", salt, LONGEST_SALT, f"use {setting('salt', 'isocost')}, the default")


def check_single(name: str, value: Any) -> None:
    """Raise for a list, an array, a frame, or whatever else is not a single value."""
    if not isinstance(value, str | bytes) and (hasattr(value, "__len__") or np.ndim(value) != 0):
        step = "use a text, a number or a boolean"
        raise UsageError(Problem(name, "must be a single value", short(value), step))


def check_path(path: Any, name: str = "path") -> None:
    """Raise unless the value can be the path of a file."""
    rule, step = "must be the path of a file, as text or a Path", 'use for example "rule.json"'
    check_kind(name, path, (str, PathLike), rule, step)


def check_known(columns: Iterable[Any], wanted: Mapping[str, Any]) -> None:
    """Raise one error for all names, or lists of names, that the data do not have."""
    known = [str(name) for name in columns]
    missing = [missing_column(role, n, known) for role, n in named_in(wanted) if n not in known]
    if missing:
        raise UsageError(missing)


def named_in(columns: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The role and the name of each column, of names or lists of names by role; None is none."""
    several = {k: x if isinstance(x, list | tuple) else [x] for k, x in columns.items()}
    return [(role, name) for role, own in several.items() for name in own if name is not None]


def check_names(*, optional: Sequence[str] = (), step: Any = None, **names: Any) -> None:
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
            step = step or f"pass one text, for example {role}='new'"
            raise UsageError(Problem(role, "must be the name of a column", short(name), step))


def group_names_of(group: Any, step: str | None = None) -> list[str]:
    """The names of the group columns, one or several."""
    names = list(group) if isinstance(group, list | tuple) else [group]
    if not names:
        step = "name the group column"
        raise UsageError(Problem("group", "must name at least one column", "none", step))
    for name in names:
        check_names(group=name, step=step)
    if len(set(names)) != len(names):
        step = "leave out the repetition"
        raise UsageError(Problem("group", "must name each column once", short(group), step))
    return names


def check_columns(
    score: Any, label: Any, group: Any, weight: Any = None, person: Any = None, id: Any = None
) -> dict[str, Any]:
    """Names of columns by role, with ``group`` as a list; ``id`` only if there is one."""
    step = "pass names of columns, or leave data out and pass arrays"
    single = {"score": score, "label": label, "weight": weight, "person": person}
    single |= {} if id is None else {"id": id}
    check_names(**single, optional=("weight", "person"), step=step)
    return {**single, "group": group_names_of(group, step)}


def check_listed(name: str, values: Any, rule: str, step: str) -> list[Any]:
    """Several values as a list; raise for one text, a mapping, or what cannot be listed."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise UsageError(Problem(name, rule, short(values), step))
    return list(values)


# JSON


def finite_or_none(value: float | None) -> float | None:
    """A number for JSON, which has no NaN and no infinity."""
    return value if value is not None and math.isfinite(value) else None


def parse_json(text: str) -> Any:
    """Parse untrusted JSON text; raise a ValueError if it is invalid.

    Also invalid are names that occur twice in an object, numbers that are not finite or too large
    for a float, text that UTF-8 cannot encode, and deep nesting.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for name, value in pairs:
            if name in content:
                raise ValueError(f"the name {short(name)} twice in one object")
            content[name] = value
        return content

    try:
        content = json.loads(text, object_pairs_hook=unique)
    except RecursionError as error:
        raise ValueError("values nested too deeply") from error
    except TypeError as error:
        raise ValueError(f"{short(text)}, which is not text") from error
    # Level by level, without recursion.
    level, depth = [content], 0
    while level:
        inside: list[Any] = []
        for value in level:
            if isinstance(value, str):
                if not value.isascii() and not is_writable(value):
                    raise ValueError(f"text that is not valid Unicode: {short(value)}")
            elif isinstance(value, dict):
                inside += value.keys()
                inside += value.values()
            elif isinstance(value, list):
                inside += value
            elif value is not None and not abs(value) <= sys.float_info.max:
                raise ValueError(f"{short(value)}, which is not a finite number")
        level, depth = inside, depth + 1
        if depth > DEEPEST:
            raise ValueError(f"values nested more than {DEEPEST} deep")
    return content
