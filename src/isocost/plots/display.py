"""Shared parts of the displays: colours, names, panels, legend, labels, ways to make a display."""

from __future__ import annotations

import math
import textwrap
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from inspect import Parameter, signature
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np

from isocost.checks import check_kind, check_numbers, check_threshold
from isocost.errors import require_package
from isocost.groups import Group, group_names
from isocost.judging.audit import Audit
from isocost.question import check_question
from isocost.repairs.composition import edges_of, named_rules
from isocost.tallies import DataOptions, TallyLike, as_tally
from isocost.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Annotation, Text

# Looks


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
Style: TypeAlias = dict[str, Any]
"""Keywords of a line of matplotlib: how a mark is drawn, on the axes and in the legend."""

INK, GREY, PALE = "#222222", "#6b6b6b", "#d9d9d9"
SIZE, SMALL = 9.0, 7.5
"""The size of text, in points."""

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
    """The look of one group: a colour for areas, an ink for text, dashes and a marker."""

    colour: str
    ink: str
    dashes: Dashes
    marker: str

    def line(self, **style: Any) -> Style:
        """Keywords of the line of the group, with its marks."""
        own = Style(color=self.colour, linestyle=self.dashes, marker=self.marker, markersize=4.5)
        return own | style


def looks(count: int) -> list[Look]:
    """As many looks as there are groups; the lists have different lengths, so pairs repeat late."""
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


def percent(share: float, position: float = 0.0) -> str:  # noqa: ARG001
    """A share on an axis, with as many digits as it needs; matplotlib also passes its position.

    Examples
    --------
    >>> percent(0.075), percent(0.3)
    ('7.5%', '30%')
    """
    return f"{round(100.0 * share, 6):g}%"


def level_of(confidence: float | None) -> str:
    """The end of a legend's text about intervals; nothing without them.

    Examples
    --------
    >>> level_of(0.95), level_of(None)
    (', 95% interval', '')
    """
    return "" if confidence is None else f", {percent(confidence)} interval"


# Axes


def require_matplotlib() -> Any:
    """The module matplotlib.figure; raise with the pip command if it is missing."""
    step = 'pip install "isocost[plot]"'
    require_package("matplotlib", "plot", "needs matplotlib", step)
    from matplotlib import figure

    return figure


def points_per_pixel(ax: Axes) -> float:
    """The size of a pixel in points, 1/72 inch."""
    return 72.0 / float(ax.figure.canvas.figure.dpi)


def inches_of(ax: Axes) -> Pair:
    """The width and height of axes, in inches."""
    extent, scale = ax.get_window_extent(), points_per_pixel(ax) / 72.0
    return extent.width * scale, extent.height * scale


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
    plain = Style(fontsize=SIZE, color=INK, parse_math=False)
    ax.set_title(text, loc="left", **(plain | style))


def write(ax: Axes, x: float, y: float, text: str, **style: Any) -> Text:
    """Write a small grey text, unless the style says otherwise, at a place of the data."""
    return ax.text(x, y, text, **(Style(fontsize=SMALL, color=GREY) | style))


# Labels

# Of a label from its anchor, around a mark and around a label, all in points.
DISTANCES = (8.0, 13.0, 20.0, 30.0, 42.0, 56.0, 74.0, 96.0, 122.0, 150.0)
ANGLES = 16
MARK, MARGIN = 4.0, 3.0

# Up to this distance, in points, no line is needed to see what a label belongs to.
NEAR = 20.0

# How bad a point of distance is; covering a sample of a line is about ten times as bad.
FAR = 0.25


@dataclass(frozen=True)
class Label:
    """A text for a point of the data.

    ``prefer`` is the preferred direction in degrees, 0 to the right; ``tied`` says whether a line
    joins it to its point when it is far away; ``math`` whether $ opens a formula, which it must not
    in names from the data.
    """

    text: str
    anchor: Sequence[float] | Floats
    ink: str = INK
    size: float = SIZE
    bold: bool = False
    prefer: float = 0.0
    tied: bool = True
    math: bool = False


def place_labels(
    ax: Axes, labels: Sequence[Label], marks: Sequence[tuple[Floats, float]]
) -> list[Annotation]:
    """Write labels on axes and return their annotations, in the same order.

    Parameters
    ----------
    ax : Axes
        Limits and aspect must be as they will stay.
    labels : list of Label
        The first have the first choice.
    marks : list of (array of shape (n, 2), float)
        Points of the data not to be covered: markers, and samples of lines; and how bad it is to
        cover one.  What weighs more than 1 is a mark, and has a size.
    """
    from matplotlib.patheffects import withStroke

    ax.apply_aspect()
    scale, notes = points_per_pixel(ax), []
    dots = np.vstack([np.empty((0, 2)), *(points for points, _ in marks)])
    weights = np.concatenate([np.full(len(points), weight) for points, weight in marks])
    frame = np.array(ax.get_window_extent().extents) * scale
    page = _Page(frame, ax.transData.transform(dots) * scale, weights)
    free = Style(textcoords="offset points", annotation_clip=False)
    for label in labels:
        x, y = map(float, label.anchor)
        note = ax.annotate(
            label.text, (x, y), (0.0, 0.0), ha="center", va="center", multialignment="center",
            color=label.ink, fontsize=label.size, fontweight="bold" if label.bold else "normal",
            linespacing=1.15, parse_math=label.math, zorder=6,
            path_effects=[withStroke(linewidth=2.5, foreground=ax.get_facecolor())], **free,
        )  # fmt: skip
        notes.append(note)
        extent, start = note.get_window_extent(), ax.transData.transform((x, y)) * scale
        size = np.array([extent.width, extent.height]) * scale
        offset, box, end = _best(label, start, size, page)
        note.set_position(offset)
        note.xyann = offset
        page.boxes = np.vstack([page.boxes, box])
        # A label that could be another mark's is tied to its own.
        if end is not None:
            page.ties = np.concatenate([page.ties, [[start, end]]])
            line = Style(arrowstyle="-", color=GREY, lw=0.6, shrinkA=1.0, shrinkB=5.0)
            ax.annotate("", (x, y), tuple(end - start), arrowprops=line, zorder=5, **free)
    return notes


def sampled(start: Any, end: Any, count: int) -> Floats:
    """Points of a line that labels should not cover, as rows."""
    return np.linspace(start, end, count, dtype=np.float64)


@dataclass
class _Page:
    """The frame, the marks, and the boxes and ties of labels so far, in points."""

    frame: Floats
    marks: Floats
    weights: Floats
    boxes: Floats = field(default_factory=lambda: np.empty((0, 4)))
    ties: Floats = field(default_factory=lambda: np.empty((0, 2, 2)))


def _best(
    label: Label, start: Floats, size: Floats, page: _Page
) -> tuple[Pair, Floats, Floats | None]:
    """The offset that hides least, the box there, and the end of a tie if it needs one."""
    turn = 2.0 * math.pi * np.arange(ANGLES) / ANGLES
    angle = math.radians(label.prefer) + turn
    ray = np.column_stack([np.cos(angle), np.sin(angle)])
    # Where the ray leaves the box decides how far its middle must go.
    reach = (size / 2.0 / np.maximum(np.abs(ray), 1e-9)).min(axis=1)
    distance = np.repeat(DISTANCES, ANGLES)
    ray, reach, turn = (np.concatenate([x] * len(DISTANCES)) for x in (ray, reach, turn))
    offsets = ray * (distance + reach)[:, None]
    low, high = (start + offsets + side * (size + MARGIN) / 2.0 for side in (-1, 1))

    bad = FAR * distance * (1.0 if label.tied else 4.0) + 1.5 * (1.0 - np.cos(turn))
    outside = np.maximum(page.frame[:2] - low, 0.0) + np.maximum(high - page.frame[2:], 0.0)
    bad += 1e4 * outside.sum(axis=1)
    first, last = page.boxes[:, :2], page.boxes[:, 2:]
    shared = np.minimum(high[:, None], last) - np.maximum(low[:, None], first)
    area = np.maximum(shared, 0.0).prod(axis=2)
    bad += np.where(area > 0.0, 50.0 + 5.0 * area, 0.0).sum(axis=1)
    room = np.where(page.weights > 1.0, MARK, 0.0)[:, None]
    bad += 4.0 * _inside(page.marks, low[:, None] - room, high[:, None] + room) @ page.weights
    touched = _inside(_along(page.ties), low[:, None, None], high[:, None, None])
    bad += 25.0 * touched.any(axis=2).sum(axis=1)

    # A label that is far away, or as near to another mark as to its own, needs a tie.
    marks = page.marks[page.weights > 1.0]
    others = marks[np.hypot(*(marks - start).T) > 1.0]
    ends = np.clip(start, low, high)
    to_box = others - np.clip(others, low[:, None], high[:, None])
    nearest = np.hypot(*np.moveaxis(to_box, -1, 0)).min(axis=1, initial=math.inf)
    tied = label.tied & ((distance > NEAR) | (nearest < np.hypot(*(ends - start).T) + 1.0))
    ties = np.stack([np.broadcast_to(start, ends.shape), ends], axis=1)
    crossed = _inside(_along(ties)[:, None], first[:, None], last[:, None]).any(axis=2).sum(axis=1)
    crossed += ((_sides(ties, page.ties) < 0) & (_sides(page.ties, ties).T < 0)).sum(axis=1)
    # Marks that a tie passes so closely that it seems theirs.
    tie = (ends - start)[:, None]
    along = ((others - start) * tie).sum(axis=2) / np.maximum((tie**2).sum(axis=2), 1e-9)
    away = start + np.clip(along, 0.0, 1.0)[..., None] * tie - others
    passed = (np.hypot(*np.moveaxis(away, -1, 0)) < MARK + 1.0).sum(axis=1)
    bad += np.where(tied, 2.0 + 25.0 * crossed + 12.0 * passed, 0.0)

    best = int(np.argmin(bad))
    x, y = offsets[best]
    box = np.concatenate([low[best], high[best]])
    return (float(x), float(y)), box, ends[best] if tied[best] else None


def _inside(points: Floats, low: Floats, high: Floats) -> Any:
    return ((points > low) & (points < high)).all(axis=-1)


def _along(ties: Floats) -> Floats:
    """Twelve points of each tie."""
    steps = np.linspace(0.0, 1.0, 12)[:, None]
    return ties[:, :1] + steps * (ties[:, 1:] - ties[:, :1])


def _sides(ties: Floats, others: Floats) -> Floats:
    """For each tie and each other: below 0 where the ends of the other lie on both sides."""
    x, y = np.moveaxis(ties[:, 1] - ties[:, 0], -1, 0)[..., None, None]
    to_ends = others - ties[:, None, :1]
    sides: Floats = (x * to_ends[..., 1] - y * to_ends[..., 0]).prod(axis=-1)
    return sides


# Displays

ASKED = ("cost", "threshold", "confidence", "seed", "reference", "min_group")
"""Fields of a question that displays share; the number of draws differs from one to another."""

Made = TypeVar("Made", bound="Display")


def draws(function: Callable[..., Made]) -> Callable[..., Made]:
    """Make ``from_tally`` of a class method that makes a display of a tally and settings.

    Data take the place of a tally, and have bin edges at the ``threshold`` and its mirror image,
    the ``thresholds`` and the intervals of ``rules``.  A ``question`` gives what is not given
    otherwise.  The display is drawn on ``ax``, with the keywords of ``plot``.
    """
    own = signature(function)

    @wraps(function)
    def from_tally(cls: type[Made], *args: Any, **options: Any) -> Made:
        question, ax = options.pop("question", None), options.pop("ax", None)
        drawing = {n: options.pop(n) for n in signature(cls.plot).parameters if n in options}
        of_data = [n for n in DataOptions.__annotations__ if n not in own.parameters]
        reading = {n: options.pop(n) for n in of_data if n in options}
        call = own.bind(cls, *args, **options)
        for name, value in call.arguments.items():
            # What is read once would be empty the second time.
            call.arguments[name] = list(value) if isinstance(value, Iterator) else value
        if question is not None:
            asked = {name: getattr(check_question(question), name) for name in ASKED}
            call.arguments = {n: asked[n] for n in own.parameters if n in asked} | call.arguments
        call.apply_defaults()
        given, edges = call.arguments, tuple[float, ...]()
        if "rules" in given:
            given["rules"] = named_rules(given["rules"])
            edges += edges_of(given["rules"].values())
        if "threshold" in given:
            given["threshold"] = check_threshold(given["threshold"])
            edges += (given["threshold"], 1.0 - given["threshold"])
        if given.get("thresholds") is not None:
            given["thresholds"] = check_numbers("thresholds", given["thresholds"])
            edges += given["thresholds"]
        given["tally"] = as_tally(given["tally"], reading, *edges)
        return function(*call.args, **call.kwargs).plot(ax, **drawing)

    parameters = [p for p in own.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    parameters += [
        Parameter("question", Parameter.KEYWORD_ONLY, default=None, annotation="Question | None"),
        Parameter("ax", Parameter.KEYWORD_ONLY, default=None, annotation="Axes | None"),
        Parameter("options", Parameter.VAR_KEYWORD, annotation="Any"),
    ]
    from_tally.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return from_tally


class Display(ABC):
    """A display holds the numbers it draws; ``plot`` draws them, and keeps the artists.

    What begins with ``from_`` makes a display and draws it, as in scikit-learn.

    Attributes
    ----------
    names : list of str
        The names of the groups, of a display that has groups.
    ax_, figure_
        The axes that were given or made, and their figure.  Where there are several diagrams, these
        axes hold the small ones, ``axes_``.
    legend_ : Legend
        What the marks are, where there is a legend.
    """

    groups: Sequence[Group]
    ax_: Axes
    figure_: Figure
    legend_: Legend

    @classmethod
    @abstractmethod
    def from_tally(cls, tally: TallyLike, *args: Any, **options: Any) -> Self:
        """Make a display of a tally, or of data, and draw it.

        Parameters
        ----------
        tally : Tally, or data
            Scores, labels and groups of people.
        rules : {name: Rule} or several rules
            Rules without a name are named after their method.
        cost : Cost or str
            What an error costs.
        threshold : float
            Scores at or above this are treated as positive; an edge of the tally.
        confidence : float or None
            Of the intervals; None for no intervals.
        question : Question, optional
            Settings for those of its fields that are not given.
        ax : Axes, optional
            Axes to draw on; by default those of a new figure, ``figure_``.
        *args, **options
            What a display has besides; the keywords of :meth:`plot`; and with data, the keywords of
            :func:`isocost.tally`.
        """

    @classmethod
    def from_audit(cls, audit: Audit, *args: Any, **options: Any) -> Self:
        """From the tally of an audit, with the settings of its question; the rest as above."""
        checked = check_audit(audit)
        return cls.from_tally(checked.tally, *args, question=checked.question, **options)

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
        columns = {"score": score, "label": y, "group": group, "weight": weight}
        return cls.from_tally(None, *args, **columns, **options)

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
        from isocost.learn.inputs import positive_of, raw_scores, read_groups, response_of

        groups = read_groups(X, sensitive_features)
        response = response_of(estimator, recalibrated=False, needs_calibration=True)
        positive = positive_of(estimator)
        scores = raw_scores(estimator, X, response, groups, positive)
        labels = (np.asarray(y) == positive).astype(np.intp)
        return cls.from_predictions(labels, scores, groups, *args, weight=sample_weight, **options)

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""

    @property
    def names(self) -> list[str]:
        """The names of the groups."""
        return group_names(list(self.groups))

    def _repr_png_(self) -> bytes | None:
        """The picture as the last line of a notebook's cell; none before :meth:`plot`."""
        if not hasattr(self, "figure_"):
            return None
        picture = BytesIO()
        self.figure_.savefig(picture, format="png")
        return picture.getvalue()

    def _on(self, ax: Axes | None, size: Pair) -> Axes:
        """The axes to draw on: by default those of a new figure, unknown to pyplot."""
        module = require_matplotlib()
        if ax is None:
            ax = module.Figure(figsize=size, dpi=120, layout="constrained").subplots()
        self.ax_, self.figure_ = ax, ax.figure.canvas.figure
        plain_axes(ax)
        return ax

    def _panels(
        self,
        ax: Axes | None,
        count: int,
        columns: int,
        size: Pair,
        margin: Pair,
        gap: Pair,
        x: str = "",
        y: str = "",
    ) -> list[Axes]:
        """Small axes in a grid that fills the given axes, which become invisible.

        ``size`` of a panel and ``margin`` around all of them make the size of a new figure, in
        inches; ``gap`` is the room between columns and between rows, at most a third of the axes.
        ``x`` is written below the lowest panels, ``y`` beside the first of each row.
        """
        rows = math.ceil(count / columns)
        ax = self._on(ax, (size[0] * columns + margin[0], size[1] * rows + margin[1]))
        ax.set_axis_off()
        wide, high = inches_of(ax)
        across = min(gap[0] / wide, 0.33 / max(columns - 1, 1))
        down = min(gap[1] / high, 0.33 / max(rows - 1, 1))
        wide, high = (1.0 - across * (columns - 1)) / columns, (1.0 - down * (rows - 1)) / rows
        panels = []
        for index in range(count):
            row, column = divmod(index, columns)
            left, bottom = column * (wide + across), (rows - 1 - row) * (high + down)
            panels.append(ax.inset_axes((left, bottom, wide, high)))
            panels[-1].set_xlabel(x if index + columns >= count else "")
            panels[-1].set_ylabel(y if column == 0 else "")
            plain_axes(panels[-1])
        return panels

    def _legend(self, marks: Mapping[str, Any], title: str = "", inches: float = 0.5) -> None:
        """Write a legend below the axes: texts with styles of marks (in grey), or with artists."""
        from matplotlib.lines import Line2D

        handles = [
            Line2D([], [], **{"color": GREY, **mark}) if isinstance(mark, dict) else mark
            for mark in marks.values()
        ]
        wide, high = inches_of(self.ax_)
        columns = max(min(len(marks), int(wide / 1.3)), 1)
        # Legends fill column by column; a letter is about 0.055 inches wide.
        texts, paper = list(marks), float(self.figure_.get_figwidth())
        while columns > 1:
            rows = math.ceil(len(texts) / columns)
            longest = [max(map(len, texts[i : i + rows])) for i in range(0, len(texts), rows)]
            if sum(0.45 + 0.055 * letters for letters in longest) <= paper:
                break
            columns -= 1
        self.legend_ = self.ax_.legend(
            handles, texts, loc="upper center", bbox_to_anchor=(0.5, -inches / high), ncols=columns,
            fontsize=SMALL, frameon=False, labelcolor=INK, handletextpad=0.4, columnspacing=1.2,
            title=title, title_fontsize=SMALL,
        )  # fmt: skip
        self.legend_.get_title().set_color(GREY)
        for text in (self.legend_.get_title(), *self.legend_.get_texts()):
            text.set_parse_math(False)


def check_audit(audit: Any) -> Audit:
    """Raise unless the value is an audit."""
    step = "pass what isocost.audit returned"
    checked: Audit = check_kind("audit", audit, Audit, "must be an audit", step)
    return checked
