"""How displays look: colours, dashes and names of groups, axes without global state.

Each colour comes with a darker ink for text, and with dashes and a marker, so that groups differ
in grey print as well.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from isocost.errors import MissingDependencyError, Problem
from isocost.show.hues import HUES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "GREY",
    "INK",
    "MOVED",
    "PALE",
    "SIZE",
    "SMALL",
    "Look",
    "axes_for",
    "cells",
    "looks",
    "percent",
    "plain_axes",
    "require_matplotlib",
    "root_figure",
    "short_name",
]

Dashes: TypeAlias = tuple[float, tuple[float, ...] | None]

INK = "#222222"
GREY = "#6b6b6b"
PALE = "#d9d9d9"
SIZE = 9.0
SMALL = 7.5

MOVED = 1e-9
"""A point that a rule moves by no more than this has not moved."""

_DASHES: tuple[Dashes, ...] = (
    (0, None),
    (0, (7, 1.5)),
    (0, (1.2, 1.2)),
    (0, (7, 1.5, 1.2, 1.5)),
    (0, (3, 1.5)),
)
_MARKERS = ("o", "s", "D", "^", "P", "v", "X", "<", ">")


@dataclass(frozen=True)
class Look:
    """How one group is drawn: a colour for areas, an ink for text, dashes and a marker."""

    colour: str
    ink: str
    dashes: Dashes
    marker: str


def looks(count: int) -> list[Look]:
    """As many looks as there are groups; the lists have different lengths, so pairs repeat late.

    Examples
    --------
    >>> [look.colour for look in looks(2)]
    ['#0072b2', '#b37400']
    """
    return [
        Look(
            *HUES[place % len(HUES)][:2],
            _DASHES[place % len(_DASHES)],
            _MARKERS[place % len(_MARKERS)],
        )
        for place in range(count)
    ]


def short_name(name: str, width: int = 26, lines: int = 2) -> str:
    """A name broken into a few lines, cut where it is too long for them.

    Examples
    --------
    >>> print(short_name("Native Hawaiian or Other Pacific Islander"))
    Native Hawaiian or Other
    Pacific Islander
    """
    parts = textwrap.wrap(name, width, max_lines=lines, placeholder=" ...") or [name]
    return "\n".join(parts)


def require_matplotlib() -> Any:
    """The module matplotlib.figure, or the command that installs it."""
    try:
        from matplotlib import figure
    except ImportError as error:
        raise MissingDependencyError(
            Problem(
                "plot",
                "needs matplotlib",
                f"no {error.name}",
                'pip install "isocost[plot]"',
            )
        ) from error
    return figure


def axes_for(ax: Axes | None, size: tuple[float, float]) -> tuple[Axes, Figure]:
    """The axes to draw on, and their figure; a new one that pyplot does not know if None."""
    module = require_matplotlib()
    if ax is not None:
        return ax, root_figure(ax)
    made: Figure = module.Figure(figsize=size, dpi=120, layout="constrained")
    return made.subplots(), made


def percent(share: float, place: float = 0.0) -> str:  # noqa: ARG001
    """A share on an axis, with as many digits as it needs.

    Examples
    --------
    >>> percent(0.075), percent(0.3)
    ('7.5%', '30%')
    """
    return f"{round(100.0 * share, 6):g}%"


def root_figure(ax: Axes) -> Figure:
    """The figure that axes are on; the whole one if they are on a part of it."""
    return ax.figure.canvas.figure


def plain_axes(ax: Axes) -> None:
    """Two spines, quiet ticks, small numbers."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(colors=GREY, labelsize=SMALL, width=0.8, length=3, labelcolor=INK)


def cells(ax: Axes, rows: int, columns: int, gap: tuple[float, float]) -> list[list[Axes]]:
    """Small axes in a grid that fills the given axes, which become invisible.

    ``gap`` is the room between columns and between rows, in inches; no more than a third of
    the axes is given up for it.
    """
    ax.set_axis_off()
    extent, dpi = ax.get_window_extent(), root_figure(ax).dpi
    between = [
        min(inches * dpi / side, 0.33 / max(count - 1, 1))
        for inches, side, count in zip(
            gap, (extent.width, extent.height), (columns, rows), strict=True
        )
    ]
    wide = (1.0 - between[0] * (columns - 1)) / columns
    high = (1.0 - between[1] * (rows - 1)) / rows

    def cell(row: int, column: int) -> Axes:
        left, bottom = column * (wide + between[0]), (rows - 1 - row) * (high + between[1])
        return ax.inset_axes((left, bottom, wide, high))

    return [[cell(row, column) for column in range(columns)] for row in range(rows)]
