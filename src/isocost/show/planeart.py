"""How a :class:`isocost.show.PlaneDisplay` is drawn."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from isocost.errors import Problem, UsageError
from isocost.show import geometry
from isocost.show.planewords import write
from isocost.show.style import (
    GREY,
    INK,
    MOVED,
    SIZE,
    Look,
    axes_for,
    looks,
    plain_axes,
    root_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from isocost.show.plane import PlaneDisplay

__all__ = ["Limits", "draw"]

Floats = npt.NDArray[np.float64]
Limits: TypeAlias = tuple[float, float, float, float] | Literal["tight"] | None

WHOLE = (-0.02, 1.0, -0.02, 1.0)


@dataclass
class Drawing:
    """What was drawn: an artist per group or level; diamonds and arrows as lists per rule."""

    ax: Axes
    figure: Figure
    diagonal: Any = None
    circles: list[Any] = field(default_factory=list)
    lines: list[Any] = field(default_factory=list)
    trivials: list[Any] = field(default_factory=list)
    levels: list[Any] = field(default_factory=list)
    beyond: list[Any] = field(default_factory=list)
    ellipses: list[Any] = field(default_factory=list)
    diamonds: dict[str, list[Any]] = field(default_factory=dict)
    arrows: dict[str, list[Any]] = field(default_factory=dict)
    outlines: dict[str, list[Any]] = field(default_factory=dict)
    texts: list[Any] = field(default_factory=list)


def draw(display: PlaneDisplay, ax: Axes | None, **options: Any) -> Drawing:
    """Draw a plane."""
    ax, figure = axes_for(ax, (5.4, 5.6))
    art = Drawing(ax, figure)
    view = _limits(display, options["limits"])
    ax.set_xlim(view[:2])
    ax.set_ylim(view[2:])
    ax.set_aspect("equal", adjustable="box")
    plain_axes(ax)
    ax.set_xlabel("generalized false-positive rate", fontsize=SIZE, color=INK)
    ax.set_ylabel("generalized false-negative rate", fontsize=SIZE, color=INK)
    style = looks(len(display.names))
    _ground(art)
    _lines(display, art, style, options["lines"])
    _levels(display, art, style, options["level"])
    _ellipses(display, art, style, options["ellipses"])
    _after(display, art, style, options["arrows"])
    art.circles = [
        ax.scatter(
            point[0],
            point[1],
            s=58,
            color=look.colour,
            edgecolor="white",
            linewidth=0.9,
            zorder=4.5,
        )
        for point, look in zip(display.points, style, strict=True)
        if options["circles"]
    ]
    _title(display, ax, options["title"])
    write(display, art, style, options)
    return art


def _limits(display: PlaneDisplay, limits: Any) -> tuple[float, float, float, float]:
    if limits is None:
        return WHOLE
    if not isinstance(limits, str):
        left, right, bottom, top = map(float, limits)
        return left, right, bottom, top
    if limits != "tight":
        step = 'use limits="tight", limits=None, or (left, right, bottom, top)'
        raise UsageError(Problem("limits", "must be four numbers, or a word", repr(limits), step))
    mu = np.asarray(display.base_rates)
    seen = np.vstack(
        [display.points, np.column_stack([mu, 1.0 - mu]), *map(np.asarray, display.after.values())]
    )
    low, high = seen.min(axis=0), seen.max(axis=0)
    # A square, so that panels side by side have the same shape.
    side = 1.3 * max(float((high - low).max()), 0.1)
    x, y = (low + high) / 2.0 - side / 2.0
    return float(x), float(x) + side, float(y), float(y) + side


def _ground(art: Drawing) -> None:
    """The triangle of scores that are better than saying the same to everybody."""
    art.ax.fill([0, 1, 0], [0, 0, 1], color="#f6f6f6", zorder=0, linewidth=0)
    (art.diagonal,) = art.ax.plot([0, 1], [1, 0], color="#a8a8a8", linewidth=0.8, zorder=1)


def _lines(display: PlaneDisplay, art: Drawing, style: list[Look], wanted: bool) -> None:
    if not wanted:
        return
    for mu, look in zip(np.asarray(display.base_rates), style, strict=True):
        ends = geometry.calibrated_line(mu)
        (line,) = art.ax.plot(
            *ends.T, color=look.colour, linestyle=look.dashes, linewidth=1.6, zorder=2,
            solid_capstyle="butt",
        )  # fmt: skip
        (end,) = art.ax.plot(
            *ends[1:].T, marker="o", markersize=5, markerfacecolor="white",
            markeredgecolor=look.colour, markeredgewidth=1.2, linestyle="none", zorder=3,
        )  # fmt: skip
        art.lines.append(line)
        art.trivials.append(end)


def _levels(display: PlaneDisplay, art: Drawing, style: list[Look], wanted: bool) -> None:
    if not wanted:
        return
    for level in display.level_lines:
        colour = GREY if level.group is None else style[level.group].colour
        (line,) = art.ax.plot(
            *level.points.T, color=colour, linestyle=(0, (4, 3)), linewidth=1.1, zorder=1.8
        )
        art.levels.append(line)
    for place in np.flatnonzero(display.unreachable):
        _beyond(display, art, int(place), style[place])


def _beyond(display: PlaneDisplay, art: Drawing, place: int, look: Look) -> None:
    """Where a group would have to go, past the end of its line: a dotted line to a cross."""
    mu = float(np.asarray(display.base_rates)[place])
    goal = geometry.crossing(mu, display.cost, display.target_cost, display.groups[place])
    if goal.share >= 2.0:
        return
    ends = np.array([geometry.trivial_point(mu), goal.point])
    (line,) = art.ax.plot(
        *ends.T, color=look.colour, linestyle=(0, (1, 1.5)), linewidth=1.2, zorder=2, marker="x",
        markevery=[1], markersize=6, markeredgewidth=1.6,
    )  # fmt: skip
    art.beyond.append(line)


def _ellipses(display: PlaneDisplay, art: Drawing, style: list[Look], wanted: bool) -> None:
    if not wanted or display.ellipse_axes is None:
        return
    for point, axes, look in zip(display.points, display.ellipse_axes, style, strict=True):
        if np.isfinite(axes).all():
            outline = geometry.ellipse(point, axes)
            art.ellipses += art.ax.fill(
                *outline.T, facecolor=look.colour, alpha=0.22, linewidth=0, zorder=1.5
            )
    for name, outlines in display.outlines.items():
        ends = np.asarray(display.after[name])
        moved = np.abs(ends - display.points).max(axis=1) > MOVED
        art.outlines[name] = [
            art.ax.plot(*outline.T, color=look.colour, linewidth=0.8, alpha=0.8, zorder=1.6)[0]
            for outline, look, far in zip(outlines, style, moved, strict=True)
            if far
        ]


def _after(display: PlaneDisplay, art: Drawing, style: list[Look], arrows: bool) -> None:
    for name, places in display.after.items():
        marks, shafts = [], []
        for start, end, look in zip(display.points, np.asarray(places), style, strict=True):
            if np.abs(end - start).max() <= MOVED:
                continue
            marks.append(
                art.ax.scatter(
                    end[0], end[1], s=62, marker="D", color=look.colour, edgecolor="white",
                    linewidth=0.9, zorder=4,
                )
            )  # fmt: skip
            if arrows and _far(art.ax, start, end):
                shafts.append(_arrow(art.ax, start, end, look.ink))
        art.diamonds[name], art.arrows[name] = marks, shafts


def _far(ax: Axes, start: Floats, end: Floats) -> bool:
    """Whether there is room for an arrow between two marks."""
    ax.apply_aspect()
    scale = 72.0 / root_figure(ax).dpi
    first, last = ax.transData.transform([start, end]) * scale
    return bool(np.hypot(*(last - first)) > 14.0)


def _arrow(ax: Axes, start: Floats, end: Floats, colour: str) -> Any:
    return ax.annotate(
        "",
        xy=(float(end[0]), float(end[1])),
        xytext=(float(start[0]), float(start[1])),
        arrowprops={
            "arrowstyle": "-|>,head_width=0.22,head_length=0.4", "color": colour, "lw": 1.3,
            "shrinkA": 4.5, "shrinkB": 5.5,
        },
        zorder=3.6,
    )  # fmt: skip


def _title(display: PlaneDisplay, ax: Axes, title: str | None) -> None:
    text = display.verdict if title is None else title
    if text:
        ax.set_title(
            _even_lines(text, 62) if title is None else text,
            loc="left",
            fontsize=SIZE + 0.5,
            color=INK,
            parse_math=False,
        )


def _even_lines(text: str, width: int) -> str:
    """A text in as few lines as the width allows, of about the same length."""
    lines = math.ceil(len(text) / width)
    return "\n".join(textwrap.wrap(text, math.ceil(len(text) / lines) + 5))
