"""Labels beside what they name, that neither overlap each other nor leave the axes.

Each label tries places around its anchor, near ones first, and takes the one that hides least.
A label that had to move away is tied to its anchor by a thin line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isocost.show.style import GREY, INK, SIZE, root_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

__all__ = ["Label", "place_labels"]

Floats = npt.NDArray[np.float64]
Box = tuple[float, float, float, float]

DISTANCES = (8.0, 13.0, 20.0, 30.0, 42.0, 56.0, 74.0, 96.0, 122.0, 150.0)
"""How far from its anchor a label may stand, in points."""

ANGLES = 16
NEAR = 20.0
"""Up to this distance, in points, no line is needed to see what a label belongs to."""

FAR = 0.25
"""How bad a point of distance is; covering a sample of a line is about ten times as bad."""

MARGIN = 3.0
MARK = 4.0
"""Half the size of a mark, in points."""


@dataclass(frozen=True)
class Label:
    """A text for a point of the data.

    ``prefer`` is the direction in degrees where it would like to stand, 0 to the right; ``tied``
    says whether it is tied to its point when it stands far away; ``math`` whether $ opens a
    formula, which a name of somebody else's must not.
    """

    text: str
    anchor: tuple[float, float]
    ink: str = INK
    size: float = SIZE
    bold: bool = False
    prefer: float = 0.0
    tied: bool = True
    math: bool = False


@dataclass
class _Page:
    """What is on the axes already, in points: the frame, the boxes, the marks, the ties."""

    frame: Box
    marks: Floats
    weights: Floats
    boxes: list[Box]
    ties: list[tuple[Floats, Floats]]


def place_labels(
    ax: Axes,
    labels: Sequence[Label],
    marks: npt.ArrayLike = (),
    weights: npt.ArrayLike | None = None,
) -> list[Annotation]:
    """Write labels on axes and return their annotations, in the same order.

    Parameters
    ----------
    ax : Axes
        Limits and aspect must be as they will stay.
    labels : list of Label
        The first have the first choice.
    marks : array of shape (n, 2)
        Points of the data not to be covered: markers, and samples of lines.
    weights : array of n numbers, optional
        How bad it is to cover each.
    """
    scale = 72.0 / root_figure(ax).dpi
    ax.apply_aspect()
    points = np.asarray(marks, dtype=np.float64).reshape(-1, 2)
    shown = ax.get_window_extent()
    page = _Page(
        frame=(shown.x0 * scale, shown.y0 * scale, shown.x1 * scale, shown.y1 * scale),
        marks=ax.transData.transform(points) * scale,
        weights=np.ones(len(points)) if weights is None else np.asarray(weights, dtype=float),
        boxes=[],
        ties=[],
    )
    return [_write(ax, label, page, scale) for label in labels]


def _write(ax: Axes, label: Label, page: _Page, scale: float) -> Annotation:
    note = ax.annotate(
        label.text,
        xy=label.anchor,
        xytext=(0.0, 0.0),
        textcoords="offset points",
        ha="center",
        va="center",
        multialignment="center",
        color=label.ink,
        fontsize=label.size,
        fontweight="bold" if label.bold else "normal",
        linespacing=1.15,
        parse_math=label.math,
        annotation_clip=False,
        zorder=6,
    )
    _halo(note, ax)
    extent = note.get_window_extent()
    size = (extent.width * scale, extent.height * scale)
    start = ax.transData.transform(label.anchor) * scale
    centre, distance = _best(label, start, size, page)
    note.set_position((float(centre[0]), float(centre[1])))
    note.xyann = (float(centre[0]), float(centre[1]))
    box = _box(start + centre, size)
    page.boxes.append(box)
    if label.tied and distance > NEAR:
        end = _nearest(box, start)
        page.ties.append((start, end))
        _tie(ax, label.anchor, end - start)
    return note


def _best(
    label: Label, start: Floats, size: tuple[float, float], page: _Page
) -> tuple[Floats, float]:
    """The place that hides least; the search ends where mere distance is worse."""
    best, least = (np.zeros(2), 0.0), math.inf
    for place in _places(size, label.prefer):
        if FAR * place[1] >= least:
            break
        badness = _badness(place, start, size, page, label)
        if badness < least:
            best, least = place, badness
    return best


def _tie(ax: Axes, anchor: tuple[float, float], offset: Floats) -> None:
    """A thin line from a point of the data to its label."""
    line = {"arrowstyle": "-", "color": GREY, "lw": 0.6, "shrinkA": 1.0, "shrinkB": 5.0}
    ax.annotate(
        "",
        xy=anchor,
        xytext=(float(offset[0]), float(offset[1])),
        textcoords="offset points",
        arrowprops=line,
        annotation_clip=False,
        zorder=5,
    )


def _halo(note: Annotation, ax: Axes) -> None:
    from matplotlib.patheffects import withStroke

    note.set_path_effects([withStroke(linewidth=2.5, foreground=ax.get_facecolor())])


def _places(size: tuple[float, float], prefer: float) -> Iterator[tuple[Floats, float]]:
    """Places for the middle of a label around its anchor, and how far its edge is away."""
    for distance in DISTANCES:
        for turn in range(ANGLES):
            angle = math.radians(prefer) + 2.0 * math.pi * turn / ANGLES
            cos, sin = math.cos(angle), math.sin(angle)
            # Where the ray leaves the box decides how far its middle must go.
            reach = min(size[0] / 2.0 / max(abs(cos), 1e-9), size[1] / 2.0 / max(abs(sin), 1e-9))
            yield np.array([cos, sin]) * (distance + reach), distance


def _badness(
    place: tuple[Floats, float], start: Floats, size: tuple[float, float], page: _Page, label: Label
) -> float:
    centre, distance = place
    box = _box(start + centre, size)
    angle = math.degrees(math.atan2(centre[1], centre[0])) - label.prefer
    found = FAR * distance * (1.0 if label.tied else 4.0) + 1.5 * (
        1.0 - math.cos(math.radians(angle))
    )
    found += 1e4 * _outside(box, page.frame)
    found += sum(50.0 + 5.0 * _overlap(box, other) for other in page.boxes if _touch(box, other))
    if len(page.marks):
        x, y = page.marks.T
        # What weighs more than a line is a mark, and has a size.
        room = np.where(page.weights > 1.0, MARK, 0.0)
        inside = (x > box[0] - room) & (x < box[2] + room)
        inside &= (y > box[1] - room) & (y < box[3] + room)
        found += 4.0 * float(page.weights[inside].sum())
    if label.tied and distance > NEAR:
        end = _nearest(box, start)
        found += 25.0 * sum(_cross(start, end, *tie) for tie in page.ties)
        found += 25.0 * sum(_through(start, end, other) for other in page.boxes)
        found += 12.0 * _passed(start, end, page.marks[page.weights > 1.0])
    found += 25.0 * sum(_through(*tie, box) for tie in page.ties)
    return found


def _box(centre: Floats, size: tuple[float, float]) -> Box:
    half = (size[0] / 2.0 + MARGIN / 2.0, size[1] / 2.0 + MARGIN / 2.0)
    x, y = float(centre[0]), float(centre[1])
    return x - half[0], y - half[1], x + half[0], y + half[1]


def _outside(box: Box, frame: Box) -> float:
    beyond = (frame[0] - box[0], frame[1] - box[1], box[2] - frame[2], box[3] - frame[3])
    return sum(max(0.0, part) for part in beyond)


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)


def _nearest(box: Box, point: Floats) -> Floats:
    """The point of a box nearest to another point."""
    return np.array([min(max(point[0], box[0]), box[2]), min(max(point[1], box[1]), box[3])])


def _through(start: Floats, end: Floats, box: Box) -> bool:
    """Whether a tie passes through a box."""
    steps = start + np.linspace(0.0, 1.0, 12)[:, None] * (end - start)
    x, y = steps.T
    inside = (x > box[0]) & (x < box[2]) & (y > box[1]) & (y < box[3])
    return bool(inside.any())


def _passed(start: Floats, end: Floats, marks: Floats) -> int:
    """How many marks other than its own a tie passes so closely that it seems to be theirs."""
    others = marks[np.hypot(*(marks - start).T) > 1.0]
    way = end - start
    along = np.clip((others - start) @ way / max(float(way @ way), 1e-9), 0.0, 1.0)
    near = np.hypot(*(start + along[:, None] * way - others).T) < MARK + 1.0
    return int(near.sum())


def _cross(a: Floats, b: Floats, c: Floats, d: Floats) -> bool:
    """Whether two ties cross."""

    def side(p: Floats, q: Floats, r: Floats) -> float:
        return float((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))

    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0
