"""What is written in a :class:`isocost.show.PlaneDisplay`: groups, rules, levels, the diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isocost.show import geometry
from isocost.show.labels import Label, place_labels
from isocost.show.style import GREY, INK, MOVED, SMALL, Look, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isocost.show.plane import PlaneDisplay
    from isocost.show.planeart import Drawing

__all__ = ["write"]

Floats = npt.NDArray[np.float64]


def write(display: PlaneDisplay, art: Drawing, style: list[Look], options: dict[str, Any]) -> None:
    """Write beside the marks, where there is room."""
    if not options["labels"]:
        return
    art.figure.draw_without_rendering()
    marks, weights = _marks(display, art)
    found = _group_labels(display, style)
    if options["labels"] != "groups":
        found += _rule_labels(display)
        found += _ceiling_labels(display, style) if options["level"] else []
        # Curves are named first: their labels are small, and must stay beside them.
        found = (_level_labels(display, art.ax) if options["level"] else []) + found
        if options["limits"] is None:
            room = _ground_text(display, art)
            marks = np.vstack([marks, room])
            weights = np.concatenate([weights, np.full(len(room), 0.9)])
    art.texts += place_labels(art.ax, found, marks, weights)


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
    for name, places in display.after.items():
        for start, end in zip(display.points, np.asarray(places), strict=True):
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
    found = []
    for place in np.flatnonzero(display.unreachable):
        end = geometry.trivial_point(float(np.asarray(display.base_rates)[place]))
        name = short_name(display.names[place], lines=1)
        text = f"{name}:\nat most {display.trivial_costs[place]:.3f}"
        found.append(Label(text, end, style[place].ink, SMALL + 0.5, prefer=90.0))
    return found


def _level_labels(display: PlaneDisplay, ax: Axes) -> list[Label]:
    """What each level is, near that end of its curve where fewer things are."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    found = []
    for level in display.level_lines:
        x, y = level.points.T
        seen = np.flatnonzero((x >= left) & (x <= right) & (y >= bottom) & (y <= top))
        if len(seen):
            shown = level.points[seen]
            ends = [_before_end(curve, 0.06 * (top - bottom)) for curve in (shown, shown[::-1])]
            place = max(ends, key=lambda end: min(_room(display, end), 0.25 * (top - bottom)))
            ink = GREY if level.group is None else INK
            text = f"calibrated scores here\ncost {level.value:.3f} ({level.cost})"
            found.append(Label(text, place, ink, SMALL, prefer=0.0, tied=False))
    return found


def _room(display: PlaneDisplay, place: tuple[float, float]) -> float:
    """How far the nearest mark is."""
    marks = np.vstack([display.points, *map(np.asarray, display.after.values())])
    return float(np.hypot(*(marks - place).T).min())


def _before_end(points: Floats, away: float) -> tuple[float, float]:
    """The last point of a curve that is at least so far from its end."""
    far = np.flatnonzero(np.hypot(*(points - points[-1]).T) >= away)
    x, y = points[far[-1]] if len(far) else points[-1]
    return float(x), float(y)


def _ground_text(display: PlaneDisplay, art: Drawing) -> Floats:
    """What the diagonal is, written along it where no line ends; returns the room it takes."""
    mu = np.asarray(display.base_rates)
    places = np.linspace(0.82, 0.18, 17)
    middle = places[int(np.argmax([min(np.abs(mu - x).min(), 0.21) for x in places]))]
    art.texts.append(
        art.ax.text(
            middle + 0.008, 1.0 - middle + 0.008, "the same score for everybody", rotation=-45,
            rotation_mode="anchor", transform_rotates_text=True, ha="center", va="bottom",
            fontsize=SMALL, color=GREY,
        )
    )  # fmt: skip
    along = middle + np.linspace(-0.17, 0.17, 40)
    return np.column_stack([along + 0.02, 1.0 - along + 0.02])


def _marks(display: PlaneDisplay, art: Drawing) -> tuple[Floats, Floats]:
    """What labels should not cover: marks, and samples of lines."""
    mu = np.asarray(display.base_rates)
    heavy = [display.points, *map(np.asarray, display.after.values())]
    if art.lines:
        heavy.append(np.column_stack([mu, 1.0 - mu]))
    steps = np.linspace(0.0, 1.0, 81)[:, None]
    light = [steps * line.get_xydata()[1] for line in art.lines]
    light += [steps * np.array([1.0, -1.0]) + np.array([0.0, 1.0])]
    light += [line.get_xydata() for line in (*art.levels, *art.beyond)]
    for places in display.after.values():
        for start, end in zip(display.points, np.asarray(places), strict=True):
            light.append(start + steps[::4] * (end - start))
    points = [np.vstack(heavy), np.vstack(light)]
    weights = [np.full(len(points[0]), 8.0), np.full(len(points[1]), 0.6)]
    return np.vstack(points), np.concatenate(weights)
