"""Claims on a terminal: a table if it is wide enough, one claim after the other if not."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

from isocost.cli.output import console_of, show_table
from isocost.text import text_table

__all__ = ["paragraphs", "show_findings"]

FRAME = 6
"""How much wider a drawn table is than plain text."""

NARROWEST = 20
"""Below this a terminal wraps as it likes."""


def show_findings(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show claim, scores, measured, needed and verdict so that no number is broken."""
    console = console_of()
    width = len(text_table(header, rows).splitlines()[0]) + FRAME
    if not console.is_terminal or width <= console.width:
        show_table(title, header, rows)
        return
    console.print(Text(title, style="bold"))
    console.print(Text(paragraphs(rows, console.width)))


def paragraphs(rows: Sequence[Sequence[str]], width: int) -> str:
    """Each claim on a line of its own, and below it what was found with each kind of scores.

    Examples
    --------
    >>> print(paragraphs([
    ...     ("Costs are equal.", "retrained", "0.0593", "below 0.03", "does not hold"),
    ...     ("Costs are equal.", "published", "0.0000", "below 0.03", "holds"),
    ... ], width=80))
    Costs are equal. (below 0.03)
      retrained  0.0593  does not hold
      published  0.0000  holds
    """
    scores = max((len(row[1]) for row in rows), default=0)
    measured = max((len(row[2]) for row in rows), default=0)
    lines = []
    for (claim, needed), found in groupby(rows, key=lambda row: (row[0], row[3])):
        lines.append(f"{claim} ({needed})")
        lines += [f"  {row[1]:<{scores}}  {row[2]:<{measured}}  {row[4]}" for row in found]
    wrapped = (
        textwrap.wrap(line, max(width, NARROWEST), subsequent_indent="    ") for line in lines
    )
    return "\n".join(line for part in wrapped for line in part)
