"""What the displays share: colours, panels, labels, and what they can be made from."""

from __future__ import annotations

import math
import textwrap
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from isocost.checks import check_numbers
from isocost.engines.arrays import tally_arrays
from isocost.engines.dispatch import tally as tally_of
from isocost.errors import require_package
from isocost.grid import Grid
from isocost.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Annotation

    from isocost.tallies import Tally, TallyLike


class Hue(NamedTuple):
    """One hue: for marks on light paper, for text on it (4.5 : 1), and for marks on dark."""

    mark: str
    ink: str
    dark: str


HUES = (
    Hue("#0072b2", "#005c8f", "#5ab4f0"),
    Hue("#b37400", "#7a5400", "#f0b429"),
    Hue("#00805c", "#00664a", "#35c79c"),
    Hue("#b0558c", "#8f3f6c", "#e59acb"),
    Hue("#3285b8", "#1f6a94", "#9fd6f7"),
    Hue("#c75300", "#a94a00", "#f58b4c"),
    Hue("#7d7400", "#5c5500", "#e6dc6a"),
    Hue("#3c3c3c", "#333333", "#d5d7db"),
)
"""In the order of the groups."""

PALETTE = {"light": tuple(h.mark for h in HUES), "dark": tuple(h.dark for h in HUES)}
"""The marks of the page, by theme."""

Pair: TypeAlias = tuple[float, float]

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
        Look(*HUES[i % len(HUES)][:2], _DASHES[i % len(_DASHES)], _MARKERS[i % len(_MARKERS)])
        for i in range(count)
    ]


def short_name(name: str, width: int = 26, lines: int = 2) -> str:
    """A name broken into a few lines, cut where it is too long for them.

    Examples
    --------
    >>> print(short_name("Native Hawaiian or Other Pacific Islander"))
    Native Hawaiian or Other
    Pacific Islander
    """
    wrapped = textwrap.wrap(name, width, max_lines=lines, placeholder=" ...") or [name]
    # A single word that is too long would leave nothing.
    return f"{name[: width - 3]}..." if wrapped[0].strip() == "..." else "\n".join(wrapped)


def short_names(names: Sequence[str], width: int = 26, lines: int = 2) -> list[str]:
    """Short names that stay apart: where the ends would be cut to the same, the middle is cut.

    Examples
    --------
    >>> short_names(["Pacific Islander, women", "Pacific Islander, men", "White, men"], 20, 1)
    ['Pacific ... women', 'Pacific ... men', 'White, men']
    """
    short = [short_name(name, width, lines) for name in names]
    often = Counter(short)
    half = max((width * lines - 5) // 2 - 2 * (lines - 1), 1)

    def cut(name: str) -> str:
        # Whole words, where there are any.
        start = name[: half + 1].rpartition(" ")[0] or name[:half]
        end = name[-half - 1 :].partition(" ")[2] or name[-half:]
        return short_name(f"{start} ... {end}", width, lines)

    return [
        text if often[text] == 1 else cut(name) for name, text in zip(names, short, strict=True)
    ]


def require_matplotlib() -> Any:
    """The module matplotlib.figure; raise with the pip command if it is missing."""
    step = 'pip install "isocost[plot]"'
    require_package("matplotlib", "plot", "needs matplotlib", step)
    from matplotlib import figure

    return figure


def axes_for(ax: Axes | None, size: Pair) -> tuple[Axes, Figure]:
    """The axes to draw on, and their figure: by default a new one, unknown to pyplot."""
    module = require_matplotlib()
    if ax is not None:
        return ax, root_figure(ax)
    figure: Figure = module.Figure(figsize=size, dpi=120, layout="constrained")
    return figure.subplots(), figure


def percent(share: float, position: float = 0.0) -> str:  # noqa: ARG001
    """A share on an axis, with as many digits as it needs; matplotlib also passes its position.

    Examples
    --------
    >>> percent(0.075), percent(0.3)
    ('7.5%', '30%')
    """
    return f"{round(100.0 * share, 6):g}%"


def level_of(confidence: float | None) -> str:
    """What a legend says of intervals; nothing without them.

    Examples
    --------
    >>> level_of(0.95), level_of(None)
    (', 95% interval', '')
    """
    return "" if confidence is None else f", {percent(confidence)} interval"


def root_figure(ax: Axes) -> Figure:
    """The figure that axes are on; the top-level one if they are on a subfigure."""
    return ax.figure.canvas.figure


def plain_axes(ax: Axes) -> None:
    """Two spines, quiet ticks, small numbers and labels."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(colors=GREY, labelsize=SMALL, width=0.8, length=3, labelcolor=INK)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set(fontsize=SIZE, color=INK)


def write_title(ax: Axes, text: str, **style: Any) -> None:
    """Write a title above the axes, on the left; a $ in it starts no formula."""
    plain: dict[str, Any] = {"fontsize": SIZE, "color": INK, "parse_math": False}
    ax.set_title(text, loc="left", **(plain | style))


def panels(
    ax: Axes | None, count: int, columns: int, size: Pair, margin: Pair, gap: Pair
) -> tuple[Axes, Figure, list[Axes]]:
    """Small axes in a grid that fills the given axes, which become invisible; with their figure.

    ``size`` of a panel and ``margin`` around all of them make the size of a new figure, in inches;
    ``gap`` is the room between columns and between rows, at most a third of the axes.
    """
    rows = math.ceil(count / columns)
    ax, figure = axes_for(ax, (size[0] * columns + margin[0], size[1] * rows + margin[1]))
    ax.set_axis_off()
    extent = ax.get_window_extent()
    across = min(gap[0] * figure.dpi / extent.width, 0.33 / max(columns - 1, 1))
    down = min(gap[1] * figure.dpi / extent.height, 0.33 / max(rows - 1, 1))
    wide, high = (1.0 - across * (columns - 1)) / columns, (1.0 - down * (rows - 1)) / rows
    small = []
    for index in range(count):
        row, column = divmod(index, columns)
        left, bottom = column * (wide + across), (rows - 1 - row) * (high + down)
        small.append(ax.inset_axes((left, bottom, wide, high)))
    return ax, figure, small


# Labels

Box: TypeAlias = tuple[float, float, float, float]

DISTANCES = (8.0, 13.0, 20.0, 30.0, 42.0, 56.0, 74.0, 96.0, 122.0, 150.0)
"""Distances of a label from its anchor, in points."""

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

    ``prefer`` is the preferred direction in degrees, 0 to the right; ``tied`` says whether a line
    joins it to its point when it is far away; ``math`` whether $ opens a formula, which it must not
    in names from the data.
    """

    text: str
    anchor: Pair
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
    from matplotlib.patheffects import withStroke

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
        path_effects=[withStroke(linewidth=2.5, foreground=ax.get_facecolor())],
        zorder=6,
    )
    extent = note.get_window_extent()
    size = (extent.width * scale, extent.height * scale)
    start = ax.transData.transform(label.anchor) * scale
    centre, distance = _best(label, start, size, page)
    note.set_position((float(centre[0]), float(centre[1])))
    note.xyann = (float(centre[0]), float(centre[1]))
    box = _box(start + centre, size)
    page.boxes.append(box)
    if label.tied and (distance > NEAR or _could_be_anothers(box, start, page)):
        end = _nearest(box, start)
        page.ties.append((start, end))
        _tie(ax, label.anchor, end - start)
    return note


def _best(label: Label, start: Floats, size: Pair, page: _Page) -> tuple[Floats, float]:
    """The position that hides least; the search ends where mere distance is worse."""
    best, least = (np.zeros(2), 0.0), math.inf
    for centre, distance in _positions(size, label.prefer):
        if FAR * distance >= least:
            break
        badness = _badness(centre, distance, start, size, page, label)
        if badness < least:
            best, least = (centre, distance), badness
    return best


def _tie(ax: Axes, anchor: Pair, offset: Floats) -> None:
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


def _positions(size: Pair, prefer: float) -> Iterator[tuple[Floats, float]]:
    """Positions of the centre of a label around its anchor, and the distance of its edge."""
    for distance in DISTANCES:
        for turn in range(ANGLES):
            angle = math.radians(prefer) + 2.0 * math.pi * turn / ANGLES
            cos, sin = math.cos(angle), math.sin(angle)
            # Where the ray leaves the box decides how far its middle must go.
            reach = min(size[0] / 2.0 / max(abs(cos), 1e-9), size[1] / 2.0 / max(abs(sin), 1e-9))
            yield np.array([cos, sin]) * (distance + reach), distance


def _badness(
    centre: Floats, distance: float, start: Floats, size: Pair, page: _Page, label: Label
) -> float:
    box = _box(start + centre, size)
    angle = math.degrees(math.atan2(centre[1], centre[0])) - label.prefer
    bad = FAR * distance * (1.0 if label.tied else 4.0)
    bad += 1.5 * (1.0 - math.cos(math.radians(angle)))
    bad += 1e4 * _outside(box, page.frame)
    overlaps = [_overlap(box, other) for other in page.boxes]
    bad += sum(50.0 + 5.0 * area for area in overlaps if area > 0.0)
    if len(page.marks):
        x, y = page.marks.T
        # What weighs more than a line is a mark, and has a size.
        room = np.where(page.weights > 1.0, MARK, 0.0)
        inside = (x > box[0] - room) & (x < box[2] + room)
        inside &= (y > box[1] - room) & (y < box[3] + room)
        bad += 4.0 * float(page.weights[inside].sum())
    if label.tied and (distance > NEAR or _could_be_anothers(box, start, page)):
        end = _nearest(box, start)
        bad += 2.0
        bad += 25.0 * sum(_cross(start, end, *tie) for tie in page.ties)
        bad += 25.0 * sum(_through(start, end, other) for other in page.boxes)
        bad += 12.0 * _passed(start, end, page.marks[page.weights > 1.0])
    bad += 25.0 * sum(_through(*tie, box) for tie in page.ties)
    return bad


def _box(centre: Floats, size: Pair) -> Box:
    x, y = float(centre[0]), float(centre[1])
    wide, high = size[0] / 2.0 + MARGIN / 2.0, size[1] / 2.0 + MARGIN / 2.0
    return x - wide, y - high, x + wide, y + high


def _outside(box: Box, frame: Box) -> float:
    beyond = (frame[0] - box[0], frame[1] - box[1], box[2] - frame[2], box[3] - frame[3])
    return sum(max(0.0, part) for part in beyond)


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)


def _nearest(box: Box, point: Floats) -> Floats:
    """The point of a box nearest to another point."""
    return np.array([min(max(point[0], box[0]), box[2]), min(max(point[1], box[1]), box[3])])


def _could_be_anothers(box: Box, start: Floats, page: _Page) -> bool:
    """Whether a label is as near to another mark as to its own."""
    marks = page.marks[page.weights > 1.0]
    others = marks[np.hypot(*(marks - start).T) > 1.0]
    if not len(others):
        return False
    nearest = np.clip(others, [box[0], box[1]], [box[2], box[3]])
    own = float(np.hypot(*(_nearest(box, start) - start)))
    return bool(np.hypot(*(nearest - others).T).min() < own + 1.0)


def _through(start: Floats, end: Floats, box: Box) -> bool:
    """Whether a tie passes through a box."""
    steps = start + np.linspace(0.0, 1.0, 12)[:, None] * (end - start)
    x, y = steps.T
    inside = (x > box[0]) & (x < box[2]) & (y > box[1]) & (y < box[3])
    return bool(inside.any())


def _passed(start: Floats, end: Floats, marks: Floats) -> int:
    """The number of marks other than its own that a tie passes so closely that it seems theirs."""
    others = marks[np.hypot(*(marks - start).T) > 1.0]
    tie = end - start
    along = np.clip((others - start) @ tie / max(float(tie @ tie), 1e-9), 0.0, 1.0)
    near = np.hypot(*(start + along[:, None] * tie - others).T) < MARK + 1.0
    return int(near.sum())


def _cross(a: Floats, b: Floats, c: Floats, d: Floats) -> bool:
    """Whether two ties cross."""

    def side(p: Floats, q: Floats, r: Floats) -> float:
        return float((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))

    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


def legend_below(ax: Axes, handles: Sequence[Any], title: str = "", inches: float = 0.5) -> Legend:
    """A legend of the marks, this far below the axes."""
    extent, dpi = ax.get_window_extent(), root_figure(ax).dpi
    wide, high = extent.width / dpi, extent.height / dpi
    legend = ax.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -inches / high),
        ncols=max(min(len(handles), int(wide / 1.3)), 1), fontsize=SMALL, frameon=False,
        labelcolor=INK, handletextpad=0.4, columnspacing=1.2, title=title, title_fontsize=SMALL,
    )  # fmt: skip
    legend.get_title().set(color=GREY, parse_math=False)
    return legend


class Display(ABC):
    """A display holds the numbers it draws; ``plot`` draws them, and keeps the artists.

    What begins with ``from_`` makes a display and draws it, as in scikit-learn.
    """

    ax_: Axes
    figure_: Figure

    @classmethod
    @abstractmethod
    def from_tally(cls, tally: TallyLike, *args: Any, **options: Any) -> Self:
        """From a tally, or from data with the keywords of :func:`isocost.tally`."""

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""

    @classmethod
    def _edges(cls, *args: Any, **options: Any) -> tuple[float, ...]:
        """The edges that a tally needs for these arguments of :meth:`from_tally`."""
        call = signature(cls.from_tally).bind(None, *args, **options)
        call.apply_defaults()
        threshold, thresholds = (call.arguments.get(name) for name in ("threshold", "thresholds"))
        if thresholds is not None:
            return check_numbers("thresholds", thresholds)
        return () if threshold is None else (threshold,)

    @classmethod
    def from_predictions(
        cls, y: Any, score: Any, group: Any, *args: Any, weight: Any = None, **options: Any
    ) -> Self:
        """From labels, scores and groups given as arrays.

        Parameters
        ----------
        y, score, group : arrays
            One value per row.
        weight : array, optional
            Weights of the rows.
        *args, **options
            As for :meth:`from_tally`.
        """

        def count(edges: tuple[float, ...]) -> Tally:
            return tally_of(score=score, label=y, group=group, weight=weight, edges=edges)

        return cls._from(count, args, options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *args: Any,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        **options: Any,
    ) -> Self:
        """From the scores that a fitted binary classifier gives the rows of X.

        Parameters
        ----------
        estimator : classifier
            The positive class is its ``pos_label_``, or the last of ``classes_``.  The scores of a
            repaired estimator are those after its coin: their average is not calibrated.
        X, y : arrays
            Rows and labels.
        sensitive_features : array, series, frame, dict of columns, str or list of str
            The groups, or the names of columns of X.
        sample_weight : array, optional
            Weights of the rows.
        *args, **options
            As for :meth:`from_tally`.
        """
        from isocost.learn.base import positive_of, raw_scores, response_of
        from isocost.learn.inputs import read_groups

        groups = read_groups(X, sensitive_features)
        response = response_of(estimator, recalibrated=False, needs_calibration=True)
        positive = positive_of(estimator)
        scores = raw_scores(estimator, X, response, groups, positive)
        labels = (np.asarray(y) == positive).astype(np.intp)

        def count(edges: tuple[float, ...]) -> Tally:
            grid = Grid(edges=edges)
            return tally_arrays(scores, labels, [groups.encoded], sample_weight, grid=grid)

        return cls._from(count, args, options)

    @classmethod
    def _from(
        cls,
        count: Callable[[tuple[float, ...]], Tally],
        args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Self:
        # The arguments are read twice, which would leave nothing of an iterator.
        args = tuple(list(value) if isinstance(value, Iterator) else value for value in args)
        options = {k: list(v) if isinstance(v, Iterator) else v for k, v in options.items()}
        return cls.from_tally(count(cls._edges(*args, **options)), *args, **options)

    @classmethod
    def _told_apart(cls, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The keywords of :func:`isocost.tally`, and those of :meth:`plot`."""
        names = signature(cls.plot).parameters
        drawing = {name: value for name, value in options.items() if name in names}
        return {name: value for name, value in options.items() if name not in names}, drawing

    def _repr_png_(self) -> bytes | None:
        """The picture as the last line of a notebook's cell; none before :meth:`plot`."""
        if not hasattr(self, "figure_"):
            return None
        picture = BytesIO()
        self.figure_.savefig(picture, format="png")
        return picture.getvalue()
