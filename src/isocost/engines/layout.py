"""How a query is laid out: one thing a line, steps with names, comments that stay comments.

A line here is a line of the layout.  A name in quotes may hold a line break, and what follows it
must not be indented: so lines are kept in lists, and no text is ever taken apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TypeAlias

__all__ = ["Lines", "comment", "indented", "named", "select", "steps_of"]

Lines: TypeAlias = list[str]

_WIDTH = 90


def indented(lines: Sequence[str]) -> Lines:
    """Each line two spaces further in."""
    return [f"  {line}" for line in lines]


def named(lines: Sequence[str], alias: str) -> Lines:
    """An expression AS its name."""
    return [*lines[:-1], f"{lines[-1]} AS {alias}"]


def select(items: Sequence[str | Lines]) -> Lines:
    """SELECT and its items, each on a line or several."""
    found = ["SELECT"]
    for place, item in enumerate(items, 1):
        lines = indented([item] if isinstance(item, str) else item)
        found += [*lines[:-1], lines[-1] + ("," if place < len(items) else "")]
    return found


def steps_of(steps: Mapping[str, Lines]) -> Lines:
    """WITH and the named steps of a query."""
    found, start = [], "WITH "
    for name, lines in steps.items():
        found += [f"{start}{name} AS (", *indented(lines), "),"]
        start = ""
    return [*found[:-1], ")"]


def comment(text: str) -> str:
    r"""A comment that no text can break out of: what is not printable is spelled out.

    Examples
    --------
    >>> print(comment("group x\nDROP TABLE y"))
    -- group x\nDROP TABLE y
    """
    visible = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
    # Spark replaces ${name} even here.
    visible = visible.replace("${", "$ {")
    lines = wrap(visible, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"-- {line}" for line in lines)
