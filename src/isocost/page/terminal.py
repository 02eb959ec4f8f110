"""Drawings for a terminal: the plane and a bar per group, in characters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from isocost.groups import Group, names_of
from isocost.judging.audit import Audit
from isocost.typing import Floats

LABEL = 4
"""The width of the numbers left of the vertical axis."""

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
    text = _safe(text, ascii)
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    dots = ("..." if ascii else "…")[:width]
    return set_cell_size(set_cell_size(text, width - len(dots)).rstrip() + dots, width)


def _safe(text: str, ascii: bool) -> str:
    return text.encode("ascii", "backslashreplace").decode() if ascii else text


class Window(NamedTuple):
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
    """Lines and marks in a window, drawn into a grid of characters, without axes.

    With ``ascii``, only with characters that every terminal has.
    """

    def __init__(self, window: Window, width: int, height: int, ascii: bool = False) -> None:
        self.window, self.width, self.height, self.ascii = window, width, height, ascii
        self._dots = np.zeros((height, width), dtype=np.uint8)
        self._pens: dict[tuple[int, int], tuple[str, str]] = {}
        self._marks: dict[tuple[int, int], tuple[str, str]] = {}

    def _dots_at(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """The places of points, in dots from the upper left; they may lie outside."""
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
        across, down = self._dots_at(x, y)
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
        across, down = self._dots_at(x[None], y[None])
        cell = int(down[0] // 4), int(across[0] // 2)
        if 0 <= cell[0] < self.height and 0 <= cell[1] < self.width:
            self._marks[cell] = ("*", "bold") if cell in self._marks else (letter, style)

    def drawn(self, across: str, upwards: str) -> Text:
        """The picture with its axes and their titles."""
        side, corner, floor = ("|", "+", "-") if self.ascii else ("│", "└", "─")
        w, blank = self.window, " " * LABEL
        text = Text(f"{upwards}\n")
        for row in range(self.height):
            label = f"{w.top:.2f}" if row == 0 else blank
            text.append(f"{label}{side}", "dim")
            for cell in ((row, column) for column in range(self.width)):
                letter, style = self._marks.get(cell) or self._pens.get(cell, (" ", ""))
                if cell in self._pens and cell not in self._marks and not self.ascii:
                    letter = chr(_BRAILLE + int(self._dots[cell]))
                text.append(letter, style)
            text.append("\n")
        low, high = f"{w.left:.2f}", f"{w.right:.2f}"
        text.append(f"{w.bottom:.2f}{corner}{floor * self.width}\n", "dim")
        title = set_cell_size(across, self.width - len(low) - len(high) - 2)
        text.append(f"{blank} {low}", "dim").append(f" {title} ").append(f"{high}\n", "dim")
        return text


MOST_IN_PLANE = 5
"""With more groups than this a plane of characters cannot be read."""

MOST_BARS = 24
"""With more groups than this, only those at both ends get a bar."""

COLOURS = ("#2A87C8", "#C98A00", "#009E73", "#CC79A7", "#D55E00")
"""Near the hues of the page, in its order as far as it goes; seen on dark and on light."""

WORDS = 64
"""The width from which a bar has a verdict in words at its end."""


class _Pen(NamedTuple):
    """The characters of one kind of terminal."""

    points: str
    limits: str
    wanted: str
    full: str
    interval: str
    room: str
    limit: str
    goal: str


_FINE = _Pen("●▲■◆★", "○△□◇☆", "×", "█", "▒", "┄", "┤", "┃")

_ASCII = _Pen("ABCDE", "abcde", "x", "#", "=", ".", "]", "|")

CHARACTERS = "".join(_FINE) + "⣿│└─╌…"
"""The characters that an encoding must have for the fine drawing."""


def plane_text(audit: Audit, width: int = 64, height: int = 18, ascii: bool = False) -> Text:
    """Draw the plane of generalized FPR and FNR, for up to five groups.

    A group's calibrated scores lie on a line from the origin, perfect scores, to its limit: the
    base rate for everybody.  The dashed line joins all points that cost the target.  A
    line that ends before it says that the group cannot get there.  Where the cost differs by
    group, as a weighted one does, a cross on each line shows the same.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> drawing = plane_text(ic.audit(compas(), "fpr", confidence=None), 40, 10)
    >>> drawing.plain.splitlines()[0]
    'generalized FNR (lower left is better)'
    """
    pen = _ASCII if ascii else _FINE
    if len(audit.groups) > MOST_IN_PLANE:
        note = f"{len(audit.groups)} groups, too many to draw the plane."
        return Text(fitted(note, width, ascii).rstrip() + "\n")
    mu = np.array([m.base_rate for m in audit.groups.values()])
    points = np.array([(m.generalized_fpr, m.generalized_fnr) for m in audit.groups.values()])
    limits = np.column_stack([mu, 1.0 - mu])
    a, b = audit.cost.coefficients(list(audit.groups), mu)
    goal = _goal(audit)
    wanted = goal / (a * mu + b * (1.0 - mu))[:, None] * limits
    level = bool(np.ptp(a) == 0 and np.ptp(b) == 0)
    seen = np.vstack([points, limits] if level else [points, limits, wanted.clip(0.0, 1.0)])
    window = Window.around(seen[:, 0], seen[:, 1])
    canvas = Canvas(window, width - LABEL - 1, height - 3, ascii)
    for end, style in zip(limits, COLOURS, strict=False):
        canvas.line((0.0, 0.0), end, style)
    if level:
        # Two points of a c_fp + b c_fn = goal, at the edges that the line crosses widest apart.
        if a[0] > b[0]:
            ends = [((goal - b[0] * y) / a[0], y) for y in (window.bottom, window.top)]
        else:
            ends = [(x, (goal - a[0] * x) / b[0]) for x in (window.left, window.right)]
        canvas.line(ends[0], ends[1], "bold", dashed=True)
    for index, group in enumerate(audit.groups):
        canvas.mark(points[index], pen.points[index], f"bold {COLOURS[index]}")
        canvas.mark(limits[index], pen.limits[index], COLOURS[index])
        if not level and group != audit.feasibility.target_group:
            canvas.mark(wanted[index], pen.wanted, f"bold {COLOURS[index]}")
    drawing = canvas.drawn("generalized FPR", "generalized FNR (lower left is better)")
    return drawing.append(_legend(audit, pen, width, level, ascii))


def _goal(audit: Audit) -> float:
    return audit.feasibility.target_cost - audit.feasibility.tolerance


def _goal_name(audit: Audit, names: dict[Group, str]) -> str:
    """The cost that is aimed at, in words."""
    reach = audit.feasibility
    less = f", less {reach.tolerance:g}" if reach.tolerance else ""
    return f"{_goal(audit):.4f}, the cost of {names[reach.target_group]}{less}"


def _legend(audit: Audit, pen: _Pen, width: int, shared: bool, ascii: bool) -> Text:
    names = names_of(audit.groups)
    text = Text()

    def add(marks: str, meaning: str, style: str = "") -> None:
        text.append(marks, style).append(f"{fitted(f' {meaning}', width - cell_len(marks), ascii)}")
        text.rstrip()
        text.append("\n")

    for index, name in enumerate(names.values()):
        add(f"{pen.points[index]} {pen.limits[index]}", name, COLOURS[index])
    add(f"{pen.points[0]} {pen.limits[0]}", "scores; limit: all get the base rate")
    goal = _goal_name(audit, names)
    if shared:
        add(": :" if ascii else "╌ ╌", f"cost {goal}")
    else:
        add(f"{pen.wanted}  ", f"where it would cost {goal}")
    return text


def bars_text(audit: Audit, width: int = 80, ascii: bool = False) -> Text:
    """Draw what errors cost each group, as far as it could rise, and what is aimed at.

    A bar is the cost.  The thin line goes on to the limit, the highest cost that calibrated scores
    can have.  A group can be made equal if its limit lies beyond the vertical line.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> audit = ic.audit(compas(), "fpr", confidence=None)
    >>> print(bars_text(audit, 60, ascii=True).plain.rstrip())
    Cost (fpr)
    African-American 0.4475 ##############################|....]
    Caucasian        0.3600 ########################...]  |
    # cost  .] how far it can rise
    | 0.4475, the cost of African-American
    """
    pen = _ASCII if ascii else _FINE
    names = names_of(audit.groups)
    shown = list(audit.groups)
    left_out = max(0, len(shown) - MOST_BARS)
    if left_out:
        shown.sort(key=lambda group: -audit.groups[group].cost)
        shown[MOST_BARS // 2 : -MOST_BARS // 2] = []
    wide = min(max(cell_len(_safe(names[g], ascii)) for g in shown), width // 3)
    words = {g: _verdict(audit, g) for g in shown} if width >= WORDS else dict.fromkeys(shown, "")
    tail = max(map(len, words.values()))
    room = width - wide - len(" 0.0000 ") - (tail + 1 if tail else 0)
    ends = [max(m.cost, m.trivial_cost, _goal(audit)) for m in audit.groups.values()]
    scale = (room - 1) / (max(ends) or 1.0)
    text = Text().append(f"{fitted(f'Cost ({audit.cost})', width, ascii).rstrip()}\n", "bold")
    for index, group in enumerate(shown):
        if left_out and index == MOST_BARS // 2:
            text.append(f"{fitted(f'({left_out} groups between)', width, ascii).rstrip()}\n", "dim")
        number = f"{audit.groups[group].cost:.4f}"[:6]
        text.append(f"{fitted(names[group], wide, ascii)} {number} ")
        text.append(_bar(audit, group, scale, room, pen, COLOURS[index % len(COLOURS)]))
        text.append(f" {words[group]}")
        text.rstrip()
        text.append("\n")
    level = audit.confidence
    interval = f"  {pen.interval} {level:.4g} interval" if level else ""
    first = f"{pen.full} cost{interval}  {pen.room}{pen.limit} how far it can rise"
    second = f"{pen.goal} {_goal_name(audit, names)}"
    lines = [fitted(line, width, ascii).rstrip() for line in (first, second)]
    return text.append("\n".join(lines) + "\n", "dim")


def _verdict(audit: Audit, group: Group) -> str:
    reach = audit.feasibility
    if group == reach.target_group:
        return "highest"
    if group in reach.unreachable:
        return "cannot reach it"
    return "can reach it" if reach.alpha[group] > 0 else "close enough"


def _bar(audit: Audit, group: Group, scale: float, room: int, pen: _Pen, style: str) -> Text:
    measures = audit.groups[group]

    def column(value: float) -> int:
        return min(room - 1, max(0, round(value * scale)))

    cells: list[tuple[str, str]] = [(" ", "")] * room
    cost, limit = column(measures.cost), column(measures.trivial_cost)
    cells[:cost] = [(pen.full, style)] * cost
    for at in range(cost, limit):
        cells[at] = (pen.room, style)
    if "cost" in measures.intervals:
        low, high = (column(end) for end in measures.intervals["cost"])
        for at in range(low, high + 1):
            cells[at] = (pen.interval, style)
    cells[limit] = (pen.limit, style)
    cells[column(_goal(audit))] = (pen.goal, "bold")
    return Text.assemble(*cells)
