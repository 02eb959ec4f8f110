"""Plain-text and HTML tables: one summary, many renderings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from unicodedata import east_asian_width


def width(text: str) -> int:
    """The width of a text in columns of a terminal."""
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def _pad(text: str, to: int, left: bool) -> str:
    space = " " * (to - width(text))
    return text + space if left else space + text


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], room: float = math.inf) -> str:
    """A table in aligned columns: the first to the left, the others to the right.

    A table that is wider than ``room`` is printed in several parts, each with the first column.

    Examples
    --------
    >>> print(text_table(["group", "n"], [["a", "10"], ["bb", "5"]]))
    group   n
    -----  --
    a      10
    bb      5
    """
    widths = [max(width(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [header, ["-" * w for w in widths], *rows]
    return "\n\n".join(
        "\n".join(
            "  ".join(_pad(line[i], widths[i], i == 0) for i in (0, *part)).rstrip()
            for line in lines
        )
        for part in _parts(widths, room)
    )


def _parts(widths: Sequence[int], room: float) -> Iterator[list[int]]:
    """The columns after the first, as many together as there is room for."""
    part: list[int] = []
    for i in range(1, len(widths)):
        if part and widths[0] + sum(2 + widths[j] for j in (*part, i)) > room:
            yield part
            part = []
        part.append(i)
    yield part


def transposed(
    header: Sequence[str], rows: Sequence[Sequence[str]], corner: str = ""
) -> tuple[list[str], list[list[str]]]:
    """The table with rows and columns exchanged; ``corner`` names the new first column.

    Examples
    --------
    >>> transposed(["", "a", "b"], [["n", "1", "2"]], "group")
    (['group', 'n'], [['a', '1'], ['b', '2']])
    """
    first, *rest = (list(line) for line in zip(header, *rows, strict=True))
    return [corner, *first[1:]], rest


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """The same table as HTML, with every text escaped."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        "<tr>"
        + f'<th scope="row" style="text-align:left">{escape(row[0])}</th>'
        + "".join(f'<td style="text-align:right">{escape(cell)}</td>' for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
