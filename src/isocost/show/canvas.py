"""A picture of characters: braille dots for lines, letters for marks, axes around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len, set_cell_size
from rich.text import Text

__all__ = ["Canvas", "Floats", "Window", "fitted"]

Floats = npt.NDArray[np.float64]

LABEL = 4
"""How wide the numbers left of the vertical axis are."""

_BRAILLE = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bit of each dot of a braille character, by column and row."""


def fitted(text: str, width: int, ascii: bool = False) -> str:
    """The text in exactly so many terminal columns: padded, or cut with dots at the end.

    Examples
    --------
    >>> fitted("漢字漢字", 6), fitted("ab", 4), fitted("abcdef", 5, ascii=True)
    ('漢字… ', 'ab  ', 'ab...')
    """
    if ascii:
        text = text.encode("ascii", "backslashreplace").decode()
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    dots = ("..." if ascii else "…")[:width]
    return set_cell_size(set_cell_size(text, width - len(dots)).rstrip() + dots, width)


@dataclass(frozen=True)
class Window:
    """The part of the plane that is drawn."""

    left: float
    right: float
    bottom: float
    top: float

    @classmethod
    def around(cls, x: Floats, y: Floats, step: float = 0.1) -> Window:
        """The smallest window with edges at tenths that leaves room around the points.

        Examples
        --------
        >>> Window.around(np.array([0.36, 0.51]), np.array([0.44, 0.61]))
        Window(left=0.3, right=0.6, bottom=0.4, top=0.7)
        """
        edges = []
        for values in (x, y):
            room = 0.25 * step
            low = max(0.0, np.floor((values.min() - room) / step) * step)
            high = max(low + step, np.ceil((values.max() + room) / step) * step)
            edges += [round(float(low), 6), round(float(high), 6)]
        return cls(*edges)


class Canvas:
    """Lines and marks in a window, drawn into a grid of characters.

    Parameters
    ----------
    window : Window
        What part of the plane to draw.
    width, height : int
        Characters of the picture itself, without axes.
    ascii : bool
        Draw with characters that every terminal has.
    """

    def __init__(self, window: Window, width: int, height: int, ascii: bool = False) -> None:
        self.window, self.width, self.height, self.ascii = window, width, height, ascii
        self._dots = np.zeros((height, width), dtype=np.uint8)
        self._pens: dict[tuple[int, int], tuple[str, str]] = {}
        self._marks: dict[tuple[int, int], tuple[str, str]] = {}

    def _places(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Where points are, in dots from the upper left; may lie outside."""
        w = self.window
        across = (x - w.left) / (w.right - w.left) * (2 * self.width - 1)
        down = (w.top - y) / (w.top - w.bottom) * (4 * self.height - 1)
        return np.rint(across), np.rint(down)

    def line(
        self, start: npt.ArrayLike, end: npt.ArrayLike, style: str, dashed: bool = False
    ) -> None:
        """A line between two points; what is outside the window is left out."""
        ends = np.array([start, end], dtype=np.float64)
        x, y = np.linspace(ends[0], ends[1], 16 * (self.width + self.height)).T
        across, down = self._places(x, y)
        inside = (across >= 0) & (across < 2 * self.width) & (down >= 0) & (down < 4 * self.height)
        letter = ":" if dashed else "."
        for i, j in zip(across[inside].astype(int), down[inside].astype(int), strict=True):
            if dashed and (j if x[0] == x[-1] else i) % 4 == 3:
                continue
            cell = int(j // 4), int(i // 2)
            self._dots[cell] |= _DOTS[i % 2][j % 4]
            self._pens.setdefault(cell, (letter, style))

    def mark(self, point: npt.ArrayLike, letter: str, style: str) -> None:
        """A letter at a point of the window; where one is already, a star stands for both."""
        x, y = np.asarray(point, dtype=np.float64)
        across, down = self._places(x[None], y[None])
        cell = int(down[0] // 4), int(across[0] // 2)
        if 0 <= cell[0] < self.height and 0 <= cell[1] < self.width:
            self._marks[cell] = ("*", "bold") if cell in self._marks else (letter, style)

    def _cell(self, row: int, column: int) -> tuple[str, str]:
        if (row, column) in self._marks:
            return self._marks[row, column]
        if not self._dots[row, column]:
            return " ", ""
        letter, style = self._pens[row, column]
        return (letter if self.ascii else chr(_BRAILLE + int(self._dots[row, column]))), style

    def drawn(self, across: str, upwards: str) -> Text:
        """The picture with its axes and their titles."""
        side, corner, floor = ("|", "+", "-") if self.ascii else ("│", "└", "─")
        w, blank = self.window, " " * LABEL
        text = Text(f"{upwards}\n")
        for row in range(self.height):
            label = f"{w.top:.2f}" if row == 0 else blank
            text.append(f"{label}{side}", "dim")
            for column in range(self.width):
                text.append(*self._cell(row, column))
            text.append("\n")
        low, high = f"{w.left:.2f}", f"{w.right:.2f}"
        text.append(f"{w.bottom:.2f}{corner}{floor * self.width}\n", "dim")
        title = set_cell_size(across, self.width - len(low) - len(high) - 2)
        text.append(f"{blank} {low}", "dim").append(f" {title} ").append(f"{high}\n", "dim")
        return text
