"""How a query is laid out: one thing a line, steps with names, comments that stay comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap

__all__ = ["comment", "indented", "select", "steps_of"]

_WIDTH = 90


def indented(text: str) -> str:
    """Each line two spaces further in."""
    return "\n".join(f"  {line}" for line in text.split("\n"))


def select(items: Sequence[str]) -> str:
    """SELECT and its items, one a line."""
    return "SELECT\n" + indented(",\n".join(items))


def steps_of(steps: Mapping[str, str]) -> str:
    """WITH and the named steps of a query."""
    named = ",\n".join(f"{name} AS (\n{indented(text)}\n)" for name, text in steps.items())
    return f"WITH {named}"


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
