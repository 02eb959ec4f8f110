"""How a :class:`isocost.plots.PlaneDisplay` is drawn: marks, lines, and the words beside them."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from isocost.errors import Problem, UsageError
from isocost.plots import geometry
from isocost.plots.style import (
    GREY,
    INK,
    MOVED,
    SIZE,
    SMALL,
    Label,
    Look,
    looks,
    place_labels,
    plain_axes,
    root_figure,
    short_name,
)
from isocost.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isocost.plots.plane import PlaneDisplay

__all__ = ["Limits", "draw"]

Limits: TypeAlias = tuple[float, float, float, float] | Literal["tight"] | None

WHOLE = (-0.02, 1.0, -0.02, 1.0)


def draw(display: PlaneDisplay, **options: Any) -> None:
    """Draw a plane on the axes of the display, and keep the artists there."""
    ax, style = display.ax_, looks(len(display.names))
    left, right, bottom, top = _limits(display, options["limits"])
    ax.set(xlim=(left, right), ylim=(bottom, top))
    ax.set_aspect("equal", adjustable="box")
    plain_axes(ax)
    ax.set_xlabel("generalized false-positive rate", fontsize=SIZE, color=INK)
    ax.set_ylabel("generalized false-negative rate", fontsize=SIZE, color=INK)
    # The triangle of scores that are better than the same score for everybody.
    ax.fill([0, 1, 0], [0, 0, 1], color="#f6f6f6", zorder=0, linewidth=0)
    (display.diagonal_,) = ax.plot([0, 1], [1, 0], color="#a8a8a8", linewidth=0.8, zorder=1)
    if options["lines"]:
        _lines(display, style)
    if options["level"]:
        _levels(display, style)
    if options["ellipses"]:
        _ellipses(display, style)
    _after(display, style, options["arrows"])
    if options["circles"]:
        display.circles_ = [
            ax.scatter(
                xy[0], xy[1], s=58, color=look.colour, edgecolor="white", linewidth=0.9, zorder=4.5
            )
            for xy, look in zip(display.points, style, strict=True)
        ]
    _title(display, ax, options["title"])
    if options["labels"]:
        _write(display, style, options)


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


def _lines(display: PlaneDisplay, style: list[Look]) -> None:
    for mu, look in zip(np.asarray(display.base_rates), style, strict=True):
        ends = geometry.calibrated_line(mu)
        (line,) = display.ax_.plot(
            *ends.T, color=look.colour, linestyle=look.dashes, linewidth=1.6, zorder=2,
            solid_capstyle="butt",
        )  # fmt: skip
        (end,) = display.ax_.plot(
            *ends[1:].T, marker="o", markersize=5, markerfacecolor="white",
            markeredgecolor=look.colour, markeredgewidth=1.2, linestyle="none", zorder=3,
        )  # fmt: skip
        display.lines_.append(line)
        display.trivials_.append(end)


def _levels(display: PlaneDisplay, style: list[Look]) -> None:
    for level in display.level_lines:
        colour = GREY if level.group is None else style[level.group].colour
        (line,) = display.ax_.plot(
            *level.points.T, color=colour, linestyle=(0, (4, 3)), linewidth=1.1, zorder=1.8
        )
        display.levels_.append(line)
    for index in np.flatnonzero(display.unreachable):
        _beyond(display, int(index), style[index])


def _beyond(display: PlaneDisplay, index: int, look: Look) -> None:
    """Where a group would have to go, past the end of its line: a dotted line to a cross."""
    mu = float(np.asarray(display.base_rates)[index])
    goal = geometry.crossing(mu, display.cost, display.target_cost, display.groups[index])
    if goal.share >= 2.0:
        return
    ends = np.array([geometry.trivial_point(mu), goal.point])
    (line,) = display.ax_.plot(
        *ends.T, color=look.colour, linestyle=(0, (1, 1.5)), linewidth=1.2, zorder=2, marker="x",
        markevery=[1], markersize=6, markeredgewidth=1.6,
    )  # fmt: skip
    display.beyond_.append(line)


def _ellipses(display: PlaneDisplay, style: list[Look]) -> None:
    if display.ellipse_axes is None:
        return
    for point, axes, look in zip(display.points, display.ellipse_axes, style, strict=True):
        if np.isfinite(axes).all():
            outline = geometry.ellipse(point, axes)
            display.ellipses_ += display.ax_.fill(
                *outline.T, facecolor=look.colour, alpha=0.22, linewidth=0, zorder=1.5
            )
    for name, outlines in display.outlines.items():
        ends = np.asarray(display.after[name])
        moved = np.abs(ends - display.points).max(axis=1) > MOVED
        display.outlines_[name] = [
            display.ax_.plot(*outline.T, color=look.colour, linewidth=0.8, alpha=0.8, zorder=1.6)[0]
            for outline, look, far in zip(outlines, style, moved, strict=True)
            if far
        ]


def _after(display: PlaneDisplay, style: list[Look], arrows: bool) -> None:
    for name, points in display.after.items():
        marks, shafts = [], []
        for start, end, look in zip(display.points, np.asarray(points), style, strict=True):
            if np.abs(end - start).max() <= MOVED:
                continue
            marks.append(
                display.ax_.scatter(
                    end[0], end[1], s=62, marker="D", color=look.colour, edgecolor="white",
                    linewidth=0.9, zorder=4,
                )
            )  # fmt: skip
            if arrows and _far(display.ax_, start, end):
                shafts.append(_arrow(display.ax_, start, end, look.ink))
        display.diamonds_[name], display.arrows_[name] = marks, shafts


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


def _write(display: PlaneDisplay, style: list[Look], options: dict[str, Any]) -> None:
    """Write beside the marks, where there is room."""
    display.figure_.draw_without_rendering()
    marks, weights = _marks(display)
    labels = _group_labels(display, style)
    if options["labels"] != "groups":
        labels += _rule_labels(display)
        labels += _ceiling_labels(display, style) if options["level"] else []
        # Curves are named first: their labels are small, and must stay beside them.
        labels = (_level_labels(display) if options["level"] else []) + labels
        if options["limits"] is None:
            room = _diagonal_text(display)
            marks = np.vstack([marks, room])
            weights = np.concatenate([weights, np.full(len(room), 0.9)])
    display.texts_ += place_labels(display.ax_, labels, marks, weights)


def _group_labels(display: PlaneDisplay, style: list[Look]) -> list[Label]:
    """Names with costs; the group far left looks for room on its left."""
    middle = float(np.median(display.points[:, 0]))
    return [
        Label(
            f"{short_name(name)}\ncosts {cost:.3f}",
            (float(point[0]), float(point[1])),
            look.ink,
            bold=True,
            prefer=0.0 if point[0] >= middle else 180.0,
        )
        for name, cost, point, look in zip(
            display.names, display.costs, display.points, style, strict=True
        )
    ]


def _rule_labels(display: PlaneDisplay) -> list[Label]:
    """One label for diamonds that lie together, whatever their rule and group."""
    together: list[tuple[Floats, list[str]]] = []
    for name, points in display.after.items():
        for start, end in zip(display.points, np.asarray(points), strict=True):
            if np.abs(end - start).max() <= MOVED:
                continue
            near = next((n for p, n in together if np.abs(p - end).max() < 0.012), None)
            if near is None:
                together.append((end, [name]))
            elif name not in near:
                near.append(name)
    return [
        Label(short_name(", ".join(names), 30), (float(p[0]), float(p[1])), INK, SMALL, prefer=-45)
        for p, names in together
    ]


def _ceiling_labels(display: PlaneDisplay, style: list[Look]) -> list[Label]:
    """For groups that cannot reach the target: the most they can cost, at the end of their line."""
    labels = []
    for index in np.flatnonzero(display.unreachable):
        end = geometry.trivial_point(float(np.asarray(display.base_rates)[index]))
        name = short_name(display.names[index], lines=1)
        text = f"{name}:\nat most {display.trivial_costs[index]:.3f}"
        labels.append(Label(text, end, style[index].ink, SMALL + 0.5, prefer=90.0))
    return labels


def _level_labels(display: PlaneDisplay) -> list[Label]:
    """What each level is, near that end of its curve where fewer things are."""
    (left, right), (bottom, top) = display.ax_.get_xlim(), display.ax_.get_ylim()
    labels = []
    for level in display.level_lines:
        x, y = level.points.T
        seen = np.flatnonzero((x >= left) & (x <= right) & (y >= bottom) & (y <= top))
        if len(seen):
            shown = level.points[seen]
            ends = [_before_end(curve, 0.06 * (top - bottom)) for curve in (shown, shown[::-1])]
            anchor = max(ends, key=lambda end: min(_room(display, end), 0.25 * (top - bottom)))
            ink = GREY if level.group is None else INK
            text = f"calibrated scores here\ncost {level.value:.3f} ({level.cost})"
            labels.append(Label(text, anchor, ink, SMALL, prefer=0.0, tied=False))
    return labels


def _room(display: PlaneDisplay, point: tuple[float, float]) -> float:
    """The distance to the nearest mark."""
    marks = np.vstack([display.points, *map(np.asarray, display.after.values())])
    return float(np.hypot(*(marks - point).T).min())


def _before_end(points: Floats, away: float) -> tuple[float, float]:
    """The last point of a curve at this distance or more from its end."""
    far = np.flatnonzero(np.hypot(*(points - points[-1]).T) >= away)
    x, y = points[far[-1]] if len(far) else points[-1]
    return float(x), float(y)


def _diagonal_text(display: PlaneDisplay) -> Floats:
    """What the diagonal is, written along it where no line ends; returns the room it takes."""
    mu = np.asarray(display.base_rates)
    choices = np.linspace(0.82, 0.18, 17)
    middle = choices[int(np.argmax([min(np.abs(mu - x).min(), 0.21) for x in choices]))]
    display.texts_.append(
        display.ax_.text(
            middle + 0.008, 1.0 - middle + 0.008, "the same score for everybody", rotation=-45,
            rotation_mode="anchor", transform_rotates_text=True, ha="center", va="bottom",
            fontsize=SMALL, color=GREY,
        )
    )  # fmt: skip
    along = middle + np.linspace(-0.17, 0.17, 40)
    return np.column_stack([along + 0.02, 1.0 - along + 0.02])


def _marks(display: PlaneDisplay) -> tuple[Floats, Floats]:
    """What labels should not cover: marks, and samples of lines."""
    mu = np.asarray(display.base_rates)
    heavy = [display.points, *map(np.asarray, display.after.values())]
    if display.lines_:
        heavy.append(np.column_stack([mu, 1.0 - mu]))
    steps = np.linspace(0.0, 1.0, 81)[:, None]
    light = [steps * line.get_xydata()[1] for line in display.lines_]
    light += [steps * np.array([1.0, -1.0]) + np.array([0.0, 1.0])]
    light += [line.get_xydata() for line in (*display.levels_, *display.beyond_)]
    for ends in display.after.values():
        for start, end in zip(display.points, np.asarray(ends), strict=True):
            light.append(start + steps[::4] * (end - start))
    points = [np.vstack(heavy), np.vstack(light)]
    weights = [np.full(len(points[0]), 8.0), np.full(len(points[1]), 0.6)]
    return np.vstack(points), np.concatenate(weights)
