"""PlaneDisplay: groups in the plane of generalized false-positive and false-negative rates."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from isocost.checks import check_confidence
from isocost.costs import CostLike, as_cost
from isocost.errors import Problem, UsageError
from isocost.groups import Group, group_names, shown_names
from isocost.measures import rates
from isocost.measures.audit import audit
from isocost.measures.feasibility import fitted_groups, large_groups
from isocost.measures.table import MEASURES
from isocost.plots import geometry
from isocost.plots.display import (
    GREY,
    INK,
    MOVED,
    SIZE,
    SMALL,
    Display,
    Label,
    Look,
    axes_for,
    legend_below,
    looks,
    place_labels,
    plain_axes,
    root_figure,
    short_name,
    write_title,
)
from isocost.plots.dots import MeasuresDisplay
from isocost.plots.geometry import Level, level_lines
from isocost.question import DEFAULT
from isocost.repairs.composition import cost_of_rules, edges_of, named_rules
from isocost.rules import Rule
from isocost.tallies import Tally, TallyLike, as_tally
from isocost.typing import Floats
from isocost.verdict.judgement import Findings, judge
from isocost.verdict.sentences import Figures, Name, Vocabulary, plain
from isocost.verdict.wording import (
    MOST_IN_PLANE,
    changed_groups,
    extremes,
    headline,
    statement,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rules: TypeAlias = Mapping[str, Rule] | Iterable[Rule]

Limits: TypeAlias = tuple[float, float, float, float] | Literal["tight"] | None

SLACK = 1e-9
"""Costs that differ by no more than this are equal."""

WHOLE = (-0.02, 1.0, -0.02, 1.0)
"""The limits of the whole plane: left, right, bottom, top."""

HOLLOW: dict[str, Any] = {
    "marker": "o", "markersize": 5, "markerfacecolor": "white", "linestyle": "none"
}  # fmt: skip
"""The mark at the end of a calibrated line."""

DIAMOND: dict[str, Any] = {"marker": "D", "markersize": 4.5, "linestyle": "none", "color": INK}
"""The mark of where a rule puts a group, in rows."""


@dataclass
class PlaneDisplay(Display):
    """Where groups are in the plane, what they can reach, and what rules do to them.

    Parameters
    ----------
    groups : sequence
        The groups; :func:`isocost.groups.group_names` names them.
    generalized_fpr, generalized_fnr, base_rates : arrays
        A number per group.
    cost : Cost or str
        What an error costs.
    after : {name: array of shape (groups, 2)}
        Where rules put the groups, as rows (c_fp, c_fn).
    variances : array of shape (groups, 2), optional
        The variances of the two rates, for ellipses.
    levels : sequence of numbers or (cost, number) pairs, optional
        Levels of cost to draw; by default the highest cost of a group.
    confidence : float
        Of the ellipses.
    spreads : {name: array of shape (groups, 2, 2)}, optional
        The covariances of where rules put the groups, for outlines around these.
    said : str, optional
        The verdict, such as the headline of an audit; by default that on the numbers as they are.

    Attributes
    ----------
    names : list of str
        The names of the groups.
    points : array of shape (groups, 2)
        The groups, as rows (c_fp, c_fn).
    costs, trivial_costs : arrays
        What the groups cost, and the most that calibrated scores of theirs can cost.
    target_cost : float
        The highest cost of a group, which the others are raised to.
    unreachable : array of bool
        Which groups cannot reach it.
    ellipse_axes : array of shape (groups, 2) or None
        Half the width and height of the ellipses.
    level_lines : list of LevelLine
        The levels as curves.
    outlines : {rule: list of arrays}
        The outlines around where rules put the groups, as curves.
    ax_, figure_, diagonal_
        What :meth:`plot` drew on, and the diagonal of trivial scores.
    circles_, lines_, trivials_, ellipses_, levels_, beyond_, texts_ : lists of artists
        The groups, their calibrated lines, the ends of these, the ellipses; the levels of cost,
        the ways past the end of a line to a level out of reach; all text.
    diamonds_, arrows_, outlines_ : {rule: list of artists}
        Where rules put the groups that they move, the arrows to there, the outlines around it.
    rows_ : MeasuresDisplay
        The rows that took the place of the plane, if they did.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.plots import PlaneDisplay
    >>> display = PlaneDisplay.from_tally(compas(), cost="fpr")
    >>> display.names, display.unreachable.tolist()
    (['African-American', 'Caucasian'], [False, True])
    >>> print(display.verdict)
    People who turned out negative were given an average score of 45\u00a0% if African-American, \
36\u00a0% if Caucasian. No repair can make that equal and keep scores meaning what they say.
    """

    groups: Sequence[Group]
    generalized_fpr: npt.ArrayLike
    generalized_fnr: npt.ArrayLike
    base_rates: npt.ArrayLike
    cost: CostLike = "fnr"
    after: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    variances: npt.ArrayLike | None = None
    levels: Sequence[Level] | None = None
    confidence: float = 0.95
    spreads: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    said: str | None = None

    def __post_init__(self) -> None:
        self.cost = as_cost(self.cost)
        self.groups = tuple(self.groups)
        self.names = group_names(self.groups)
        count = len(self.groups)
        self.base_rates = _numbers("base_rates", self.base_rates, (count,))
        self.generalized_fpr = _numbers("generalized_fpr", self.generalized_fpr, (count,))
        self.generalized_fnr = _numbers("generalized_fnr", self.generalized_fnr, (count,))
        self.points = np.column_stack([self.generalized_fpr, self.generalized_fnr])
        self.after = {
            str(name): _numbers(f"after {name!r}", points, (count, 2))
            for name, points in self.after.items()
        }
        a, b = self.cost.coefficients(self.groups, self.base_rates)
        self.costs: Floats = a * self.points[:, 0] + b * self.points[:, 1]
        self.trivial_costs: Floats = a * self.base_rates + b * (1.0 - self.base_rates)
        self.target_cost = float(self.costs.max())
        ceiling = np.maximum(self.costs, self.trivial_costs)
        self.unreachable = self.target_cost > ceiling + SLACK * ceiling.max()
        self.ellipse_axes = (
            None
            if self.variances is None
            else geometry.ellipse_axes(
                _numbers("variances", self.variances, (count, 2), nan=True), self.confidence
            )
        )
        levels = [self.target_cost] if self.levels is None else self.levels
        self.level_lines = level_lines(levels, self.cost, self.groups, self.base_rates)
        self.outlines = {name: self._outlines(name) for name in self.spreads}

    @classmethod
    def from_tally(
        cls,
        tally: TallyLike,
        rules: Rules = (),
        *,
        cost: CostLike | None = None,
        levels: Sequence[Level] | None = None,
        confidence: float | None = 0.95,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """The plane of a tally, and what rules would do to it.

        Parameters
        ----------
        tally : Tally, or data
            Groups with positives only, or negatives only, are not drawn.
        rules : {name: Rule} or several rules
            Rules without a name are named after their method.
        cost : Cost or str, optional
            What an error costs; by default that of the first rule that has one, else "fnr".
        levels : optional
            As for the class.
        confidence : float or None
            Of the ellipses; None for no ellipses.
        ax : Axes, optional
            Axes to draw on; by default those of a new figure, ``figure_``.
        **options
            Those of :meth:`plot`; and with data, the keywords of :func:`isocost.tally`.
        """
        named = named_rules(rules)
        reading, drawing = cls._told_apart(options)
        tally = as_tally(tally, reading, *edges_of(named.values()))
        # A group of one label has no point; without any there is nothing to draw.
        tally = tally.select(large_groups(tally, 0) or fitted_groups(tally))
        after = {name: _points(rule.expected(tally)) for name, rule in named.items()}
        now = _points(tally)
        cost = cost_of_rules(cost, named)
        display = cls(
            tally.groups,
            now[:, 0],
            now[:, 1],
            rates.base_rate(tally.totals),
            cost,
            after,
            None if confidence is None else geometry.rate_variances(tally),
            levels,
            0.95 if confidence is None else confidence,
            said=None if confidence is None else _headline(tally, cost, confidence),
        )
        return display.plot(ax, **drawing)

    @classmethod
    def _edges(cls, rules: Rules = (), **options: Any) -> tuple[float, ...]:  # noqa: ARG003
        return edges_of(named_rules(rules).values())

    def plot(
        self,
        ax: Axes | None = None,
        *,
        labels: bool | str = True,
        level: bool = True,
        ellipses: bool = True,
        lines: bool = True,
        arrows: bool = True,
        circles: bool = True,
        limits: Limits = None,
        title: str | None = None,
        rows: bool | None = None,
    ) -> Self:
        """Draw the plane; with many groups, both rates as sorted rows of dots.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; by default those of a new figure, ``figure_``.
        labels : bool or "groups"
            Whether to write beside the marks; "groups" leaves out all but the groups' names.
        level, ellipses, lines, arrows, circles : bool
            Whether to draw levels of cost, interval ellipses, calibrated lines, arrows from
            before to after, and the groups themselves.
        limits : (left, right, bottom, top), "tight" or None
            Which part to show; None is the whole plane, "tight" the part where the groups are.
        title : str, optional
            By default the verdict; "" for none.
        rows : bool, optional
            Whether to draw a diagram per rate with a row per group, its interval, and a hollow mark
            at the end of its calibrated line; by default with more than 8 groups, whose names a
            plane has no room for.  Of the other options only ``title`` matters then.
        """
        if len(self.names) > MOST_IN_PLANE if rows is None else rows:
            return self._plot_rows(ax, title)
        self.ax_, self.figure_ = axes_for(ax, (5.4, 5.6))
        self.circles_: list[Any] = []
        self.lines_: list[Any] = []
        self.trivials_: list[Any] = []
        self.levels_: list[Any] = []
        self.beyond_: list[Any] = []
        self.ellipses_: list[Any] = []
        self.texts_: list[Any] = []
        self.diamonds_: dict[str, list[Any]] = {}
        self.arrows_: dict[str, list[Any]] = {}
        self.outlines_: dict[str, list[Any]] = {}
        style = looks(len(self.names))
        self.diagonal_ = _draw_frame(self, limits)
        if lines:
            _draw_lines(self, style)
        if level:
            _draw_levels(self, style)
        if ellipses:
            _draw_ellipses(self, style)
        _draw_after(self, style, arrows)
        if circles:
            _draw_circles(self, style)
        _draw_title(self, title)
        if labels:
            _write_labels(self, style, labels != "groups", level, limits is None)
        return self

    def _plot_rows(self, ax: Axes | None, title: str | None) -> Self:
        """Both rates, each from the highest to the lowest."""
        from matplotlib.lines import Line2D

        rates_of = (MEASURES["generalized_fpr"], MEASURES["generalized_fnr"])
        self.rows_ = dots = MeasuresDisplay(
            self.groups, rates_of, self.points.T, self._intervals(), np.full(2, np.nan),
            confidence=None if self.variances is None else self.confidence,
        ).plot(ax)  # fmt: skip
        self.ax_, self.figure_ = dots.ax_, dots.figure_
        self.trivials_, self.diamonds_ = [], {name: [] for name in self.after}
        mu = np.asarray(self.base_rates)
        for side, (measure, ends) in enumerate(zip(rates_of, (mu, 1.0 - mu), strict=True)):
            panel, seen = dots.axes_[measure.name], [*self.points[:, side], *ends]
            for row, group in enumerate(dots.order[measure.name]):
                index = list(self.groups).index(group)
                self.trivials_ += panel.plot(ends[index], row, color=GREY, zorder=2.5, **HOLLOW)
                for name, points in self.after.items():
                    end = float(np.asarray(points)[index, side])
                    if abs(end - self.points[index, side]) > MOVED:
                        self.diamonds_[name] += panel.plot(end, row, zorder=3.5, **DIAMOND)
                        seen.append(end)
            low, high = panel.get_xlim()
            pad = 0.04 * (max(*seen, high) - min(*seen, low))
            panel.set_xlim(min(low, min(seen) - pad), max(high, max(seen) + pad))
        handles = [*dots.handles(), Line2D([], [], color=GREY, label="no information", **HOLLOW)]
        if any(self.diamonds_.values()):
            handles.append(Line2D([], [], label=short_name(", ".join(self.after), 30), **DIAMOND))
        legend_below(self.ax_, handles, inches=0.35)
        _draw_title(self, title, pad=22)
        return self

    def _intervals(self) -> Floats:
        """Of both rates, from their variances; of shape (2, groups, 2)."""
        if self.variances is None:
            return np.full((2, len(self.names), 2), np.nan)
        spread = NormalDist().inv_cdf(0.5 + self.confidence / 2.0) * np.sqrt(self.variances)
        ends = np.stack([self.points - spread, self.points + spread], axis=-1)
        return np.clip(ends, 0.0, 1.0).swapaxes(0, 1)

    @property
    def verdict(self) -> str:
        """Whether the costs can be made equal, in a sentence for people."""
        if len(self.names) < 2:
            return ""
        if self.said is not None:
            return self.said
        names = [Name(name) for name in shown_names(self.groups).values()]
        top, lowest = int(np.argmax(self.costs)), int(np.argmin(self.costs))
        difference = float(self.target_cost - self.costs[lowest])
        below = [i for i, cost in enumerate(self.costs) if cost < self.target_cost - SLACK]
        excess = 1.0 if self.unreachable.any() else -1.0
        # Nothing is known here of calibration and of chance.
        findings = Findings(
            len(names), 0.0, 0.0, difference, difference, 0.0, excess, excess, excess, False
        )
        kind = as_cost(self.cost).kind
        numbers = Figures.of(self.costs, kind)
        high, low = ((names[i], float(self.costs[i])) for i in (top, lowest))
        fields = {
            **Vocabulary().fields(),
            **extremes(kind, numbers, high, low),
            "count": str(len(names)),
            "is_near": False,
            "changed": changed_groups(below, dict(enumerate(names))),
        }
        return plain(headline(judge(findings).reason, kind, fields))

    def _outlines(self, name: str) -> list[Floats]:
        shape = (len(self.groups), 2, 2)
        covariances = np.asarray(self.spreads[name], dtype=np.float64)
        if name not in self.after or covariances.shape != shape:
            rule = f"must have a rule of after each, with an array of shape {shape}"
            got, step = f"{name!r} of shape {covariances.shape}", "pass a covariance per group"
            raise UsageError(Problem("spreads", rule, got, step))
        return [
            geometry.tilted_ellipse(point, covariance, self.confidence)
            for point, covariance in zip(np.asarray(self.after[name]), covariances, strict=True)
        ]


def _headline(tally: Tally, cost: CostLike, confidence: float) -> str | None:
    """What an audit says first."""
    if len(tally.groups) < 2:
        return None
    # An end far out in the tails could not be read from so many draws.
    draws = DEFAULT.replicates if check_confidence(confidence) <= 0.995 else 0
    result = audit(tally, cost, confidence=confidence, replicates=draws, warn=False)
    return plain(statement(result).headline)


def _points(tally: Tally) -> Floats:
    sums = tally.totals
    return np.column_stack([rates.generalized_fpr(sums), rates.generalized_fnr(sums)])


def _numbers(name: str, values: Any, shape: tuple[int, ...], nan: bool = False) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    known = array[~np.isnan(array)] if nan else array
    if array.shape != shape or not ((known >= 0.0) & (known <= 1.0)).all() or not array.size:
        many = " by ".join(map(str, shape))
        got = f"shape {array.shape}" if array.shape != shape else repr(array.tolist())
        rule = f"must be {many} numbers in [0, 1], a row per group"
        raise UsageError(Problem(name, rule, got, "pass rates in the order of groups"))
    return array


def _draw_frame(display: PlaneDisplay, limits: Limits) -> Any:
    """The axes, and the diagonal of trivial scores, which is returned."""
    ax = display.ax_
    left, right, bottom, top = _limits(display, limits)
    ax.set(xlim=(left, right), ylim=(bottom, top))
    ax.set_aspect("equal", adjustable="box")
    plain_axes(ax)
    ax.set_xlabel("generalized false-positive rate")
    ax.set_ylabel("generalized false-negative rate")
    # The triangle of scores that are better than the same score for everybody.
    ax.fill([0, 1, 0], [0, 0, 1], color="#f6f6f6", zorder=0, linewidth=0)
    return ax.plot([0, 1], [1, 0], color="#a8a8a8", linewidth=0.8, zorder=1)[0]


def _draw_circles(display: PlaneDisplay, style: list[Look]) -> None:
    for (x, y), look in zip(display.points, style, strict=True):
        circle = display.ax_.scatter(
            x, y, s=58, color=look.colour, edgecolor="white", linewidth=0.9, zorder=4.5
        )
        display.circles_.append(circle)


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


def _draw_lines(display: PlaneDisplay, style: list[Look]) -> None:
    for mu, look in zip(np.asarray(display.base_rates), style, strict=True):
        ends = geometry.calibrated_line(mu)
        (line,) = display.ax_.plot(
            *ends.T, color=look.colour, linestyle=look.dashes, linewidth=1.6, zorder=2,
            solid_capstyle="butt",
        )  # fmt: skip
        (end,) = display.ax_.plot(
            *ends[1:].T, **HOLLOW, markeredgecolor=look.colour, markeredgewidth=1.2, zorder=3
        )
        display.lines_.append(line)
        display.trivials_.append(end)


def _draw_levels(display: PlaneDisplay, style: list[Look]) -> None:
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


def _draw_ellipses(display: PlaneDisplay, style: list[Look]) -> None:
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


def _draw_after(display: PlaneDisplay, style: list[Look], arrows: bool) -> None:
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


def _draw_title(display: PlaneDisplay, title: str | None, pad: float | None = None) -> None:
    text = _even_lines(display.verdict) if title is None else title
    if text:
        write_title(display.ax_, text, fontsize=SIZE + 0.5, pad=pad)


def _even_lines(text: str, width: int = 62) -> str:
    """A text in as few lines as the width allows, of about the same length."""
    lines = max(math.ceil(len(text) / width), 1)
    return "\n".join(textwrap.wrap(text, math.ceil(len(text) / lines) + 5))


def _write_labels(
    display: PlaneDisplay, style: list[Look], all_labels: bool, level: bool, whole: bool
) -> None:
    """Write beside the marks, where there is room: names of the groups, or all labels."""
    display.figure_.draw_without_rendering()
    marks, weights = _marks(display)
    labels = _group_labels(display, style)
    if all_labels:
        labels += _rule_labels(display)
        labels += _ceiling_labels(display, style) if level else []
        # Curves are named first: their labels are small, and must stay beside them.
        labels = (_level_labels(display) if level else []) + labels
        if whole:
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
