"""How a table is shown in a given width: whole, in blocks of columns, or thing by thing.

No number is ever broken.  What is dropped first, where nothing else helps, are the intervals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill, wrap

from isocost.text import transposed, width

__all__ = ["Block", "blocks_of", "listed", "width_of"]

FRAME, PER_COLUMN = 1, 3
"""What a drawn table takes beside its texts: a line at the end, and for each column a line and
two spaces."""

BETWEEN = 2
"""Spaces between a name and its value in a list."""

INTERVAL = re.compile(r"(?<=\S) +\[[^\[\]]*\]$")


@dataclass(frozen=True)
class Block:
    """A part of a table; headers may have several lines."""

    header: list[str]
    rows: list[list[str]]

    @property
    def lines(self) -> int:
        """How many lines it takes when it is drawn, with one between blocks."""
        return max(name.count("\n") for name in self.header) + len(self.rows) + 5


def blocks_of(
    header: Sequence[str], rows: Sequence[Sequence[str]], room: int
) -> Sequence[Block | str]:
    """The table as blocks to draw, or as lines where that is shorter or blocks do not fit.

    Examples
    --------
    >>> blocks_of(["", "a", "b"], [["cost", "0.25", "0.50"]], room=24)
    [Block(header=['', 'a', 'b'], rows=[['cost', '0.25', '0.50']])]
    >>> blocks_of(["", "a", "b"], [["cost", "0.25 [.2, .3]", "0.50 [.4, .6]"]], room=12)
    ['a', 'cost  0.25', '', 'b', 'cost  0.50']
    """
    whole = Block(list(header), [list(row) for row in rows])
    if width_of(whole) <= room:
        return [whole]
    bare = Block(whole.header, [[INTERVAL.sub("", cell) for cell in row] for row in whole.rows])
    for table in (whole, bare):
        blocks, lines = _split(table, room), listed(table, room)
        fits = len(lines) == _lines(table)
        if blocks and (not fits or sum(block.lines for block in blocks) <= len(lines)):
            return blocks
        if fits:
            return lines
    return listed(bare, room)


def width_of(block: Block) -> int:
    """How many columns of a terminal the block takes when it is drawn."""
    columns = zip(block.header, *block.rows, strict=True)
    return FRAME + sum(PER_COLUMN + max(map(_broad, column)) for column in columns)


def _broad(text: str) -> int:
    return max((width(line) for line in text.split("\n")), default=0)


def _split(table: Block, room: int) -> list[Block]:
    """As many whole columns as fit beside the first, again and again; none if one does not fit."""
    first, *others = zip(_folded(table), *table.rows, strict=True)
    start = FRAME + PER_COLUMN + max(map(_broad, first))
    parts: list[list[tuple[str, ...]]] = []
    left = 0
    for column in others:
        takes = PER_COLUMN + max(map(_broad, column))
        if start + takes > room:
            return []
        if takes > left:
            parts.append([])
            left = room - start
        parts[-1].append(column)
        left -= takes
    whole = ([list(line) for line in zip(first, *part, strict=True)] for part in parts)
    return [Block(header, rows) for header, *rows in whole]


def _folded(table: Block) -> list[str]:
    """The header in lines as short as the cells below, as far as its words allow."""
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.header)
    return [
        fill(name, max([1, *map(width, column)]), break_long_words=False)
        for name, column in zip(table.header, columns, strict=True)
    ]


def listed(table: Block, room: int) -> list[str]:
    """Each thing in a few lines of its own: its name, then what is known of it.

    The things are the rows if their column has a name, and the columns if it has none.
    """
    header, rows = table.header, table.rows
    if not header[0]:
        header, rows = transposed(header, rows)
    names = max((width(name) for name in header[1:]), default=0)
    lines: list[str] = []
    for thing, *cells in rows:
        lines += ["", *_words(thing, room)] if lines else _words(thing, room)
        for name, cell in zip(header[1:], cells, strict=True):
            lines += _item(name, cell, names, room)
    return lines


def _lines(table: Block) -> int:
    """How many lines the list has if each value is beside its name."""
    things, known = len(table.rows), len(table.header) - 1
    return 2 * things - 1 + things * known if table.header[0] else 2 * known - 1 + known * things


def _item(name: str, cell: str, names: int, room: int) -> Iterator[str]:
    """A name and its value in one line, or the value below where that is too long."""
    gap = " " * (names - width(name) + BETWEEN)
    if names + BETWEEN + width(cell) <= room:
        yield f"{name}{gap}{cell}".rstrip()
    else:
        yield from _words(name, room)
        yield from (f"  {line}" for line in _words(cell, room - 2))


def _words(text: str, room: int) -> list[str]:
    return wrap(text, max(room, 1), break_long_words=False, break_on_hyphens=False) or [""]
