"""PlaneDisplay: groups in the plane of generalized false-positive and false-negative rates.

A group with base rate mu is a point (c_fp, c_fn).  Its calibrated scores lie on the line from
the origin, the perfect score, to (mu, 1 - mu), the score that says mu to everybody.  A point of
that line is s (mu, 1 - mu) with s in [0, 1], and costs s T, where T = a mu + b (1 - mu) is the
trivial cost.  So a cost g is met at s = g / T, and out of reach where s > 1.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from isocost.checks import check_amount, check_base_rate, check_confidence, check_listed, short
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import Problem, UsageError
from isocost.groups import Group, shown_names
from isocost.judging.audit import audit
from isocost.measures import rates
from isocost.measures.feasibility import fitted_groups, large_groups
from isocost.measures.intervals import Estimates
from isocost.measures.table import MEASURES
from isocost.plots.display import (
    GREY,
    INK,
    SIZE,
    SMALL,
    Display,
    Label,
    Look,
    Pair,
    Style,
    draws,
    looks,
    place_labels,
    points_per_pixel,
    sampled,
    short_name,
    write,
    write_title,
)
from isocost.plots.measures import MeasuresDisplay
from isocost.question import DEFAULT
from isocost.repairs.composition import question_of
from isocost.tallies import Tally
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

Level: TypeAlias = float | tuple[CostLike, float]
"""A level of the cost of the display, or of another cost."""

SLACK = 1e-12
"""Rounding may put a point this far beyond the end of its line."""

EQUAL = 1e-9
"""Costs that differ by no more than this are equal, and so are points before and after a rule."""

RATES = (MEASURES["generalized_fpr"], MEASURES["generalized_fnr"])
"""The axes of the plane."""


# Geometry


@dataclass(frozen=True)
class Crossing:
    """The point (c_fp, c_fn) where a level of cost meets the calibrated line of a group.

    The share is how far along the line it lies: 0 is the perfect score, 1 the trivial one, and what
    is beyond is out of reach.
    """

    point: Pair
    share: float

    @property
    def reachable(self) -> bool:
        """True if calibrated scores can be there."""
        return self.share <= 1.0 + SLACK


def trivial_point(base_rate: float) -> Pair:
    """The end of a group's calibrated line, (mu, 1 - mu): the base rate as everybody's score.

    On the line from the origin to there mu c_fn = (1 - mu) c_fp.
    """
    mu = check_base_rate(base_rate)
    return mu, 1.0 - mu


def crossing(
    base_rate: float, cost: CostLike, value: float, group: Group | None = None
) -> Crossing:
    """The point of a group's calibrated line that costs ``value``.

    Examples
    --------
    >>> crossing(0.25, "fpr", 0.125)
    Crossing(point=(0.125, 0.375), share=0.5)
    >>> crossing(0.25, "fpr", 0.5).reachable
    False
    """
    mu, value = check_base_rate(base_rate), check_amount("value", value)
    share = value / float(_trivial_cost(np.array([mu]), cost, group)[0])
    return Crossing((share * mu, share * (1.0 - mu)), share)


def level_curve(
    cost: CostLike,
    value: float,
    group: Group | None = None,
    *,
    stretch: float = 1.0,
    points: int = 201,
) -> Floats:
    """The points of all calibrated lines that cost ``value``, as rows (c_fp, c_fn).

    Where the cost depends on the base rate, so do a and b, and the curve bends: for weighted
    costs it is c_fp c_fn (fp + fn) = value (c_fp + c_fn).  Else it is straight.

    They run from low to high base rates, and there are none if no line reaches this cost.  The
    lines are followed ``stretch`` times as far as the diagonal of trivial scores; ``group`` is
    needed where the cost differs by group.

    Examples
    --------
    >>> level_curve("fpr", 0.25, points=3).round(9).tolist()
    [[0.25, 0.75], [0.25, 0.15], [0.25, 0.0]]
    """
    value = check_amount("value", value)
    if value == 0.0:
        return np.zeros((1, 2))
    # The lowest and the highest base rate whose trivial cost is enough.
    least, cost = value / stretch, as_cost(cost)
    fp, fn = cost.amounts(group)
    if cost.by_base_rate:
        room = 0.25 - least / (fp + fn)
        half = math.sqrt(max(room, 0.0))
        low, high = (0.5 - half, 0.5 + half) if room >= -SLACK else (1.0, 0.0)
    elif fp == fn:
        low, high = (0.0, 1.0) if least <= fp * (1.0 + SLACK) else (1.0, 0.0)
    else:
        bound = (least - fn) / (fp - fn)
        low, high = (max(bound, 0.0), 1.0) if fp > fn else (0.0, min(bound, 1.0))
    if low > high:
        return np.empty((0, 2))
    mu = np.linspace(low, high, points)
    share = value / _trivial_cost(mu, cost, group)
    return np.column_stack([share * mu, share * (1.0 - mu)])


def _trivial_cost(mu: Floats, cost: CostLike, group: Group | None) -> Floats:
    cost = as_cost(cost)
    fp, fn = cost.amounts(group)
    return (fp + fn) * mu * (1.0 - mu) if cost.by_base_rate else fp * mu + fn * (1.0 - mu)


@dataclass(frozen=True)
class LevelLine:
    """One level of cost in the plane; ``group`` is an index where the cost differs by group."""

    cost: Cost
    value: float
    group: int | None
    points: Floats


def rate_variances(tally: Tally) -> Floats:
    """The variances of c_fp and c_fn of each group, as rows; NaN where one row is all there is.

    The two rates come from different people, the negatives and the positives, so they
    are independent.  A variance is that of :class:`isocost.measures.intervals.Estimates` times
    n / (n - 1), n the effective number of rows.

    Examples
    --------
    >>> import isocost as ic
    >>> t = ic.tally({"score": [0.25, 0.75, 0.5], "label": [0, 0, 1], "group": list("aaa")})
    >>> rate_variances(t)
    array([[0.0625,    nan]])
    """
    estimates, groups = Estimates(tally, DEFAULT), range(len(tally.groups))
    numbers = [estimates.number(rate, group) for group in groups for rate in RATES]
    rows = np.array([number.rows for number in numbers])
    error = np.where(rows > 1.0 + SLACK, [number.error for number in numbers], np.nan)
    variances: Floats = error**2 * rows / np.where(rows == 1.0, np.nan, rows - 1.0)
    return variances.reshape(-1, 2)


def ellipse_axes(variances: npt.ArrayLike, confidence: float = DEFAULT.level) -> Floats:
    """Half the width and height of the ellipses that cover the truth at this confidence.

    sqrt(q var), with q = -2 log(1 - confidence), the quantile of chi-squared with two degrees
    of freedom.
    """
    quantile = -2.0 * math.log1p(-check_confidence(confidence))
    axes: Floats = np.sqrt(quantile * np.asarray(variances, dtype=np.float64))
    return axes


def ellipse(
    centre: npt.ArrayLike,
    covariance: npt.ArrayLike,
    confidence: float = DEFAULT.level,
    points: int = 73,
) -> Floats:
    """The outline that covers the truth at this confidence, as rows (c_fp, c_fn), closed.

    Examples
    --------
    >>> ellipse([0.5, 0.5], [[0.0001, 0.0], [0.0, 0.0004]], points=5).round(4).tolist()
    [[0.5245, 0.5], [0.5, 0.549], [0.4755, 0.5], [0.5, 0.451], [0.5245, 0.5]]
    """
    sizes, directions = np.linalg.eigh(np.asarray(covariance, dtype=np.float64))
    angle = np.linspace(0.0, 2.0 * math.pi, points)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    axes = ellipse_axes(np.maximum(sizes, 0.0), confidence)
    outline: Floats = np.asarray(centre, dtype=np.float64) + (circle * axes) @ directions.T
    return outline


# The display

TRIVIAL = Style(marker="o", markersize=5, markerfacecolor="white", linestyle="none")
"""The end of a calibrated line."""

AFTER = Style(marker="D", markersize=4.5, linestyle="none", color=INK)
"""A group after a rule, in rows."""

BEYOND = Style(
    linestyle=(0, (1, 1.5)),
    linewidth=1.2,
    marker="x",
    markevery=[1],
    markersize=6,
    markeredgewidth=1.6,
)
"""The way past the end of a line to a level out of reach."""

ARROW = Style(arrowstyle="-|>,head_width=0.22,head_length=0.4", lw=1.3, shrinkA=4.5, shrinkB=5.5)


@dataclass
class PlaneDisplay(Display):
    """Groups in the plane of error rates, what they can reach, and what rules do to them.

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
    diagonal_ : Line2D
        The diagonal of trivial scores.
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
36\u00a0% if Caucasian. No repair can close this gap and keep the scores calibrated.
    """

    groups: Sequence[Group]
    generalized_fpr: Any
    generalized_fnr: Any
    base_rates: Any
    cost: Any = DEFAULT.cost
    after: Mapping[str, Any] = field(default_factory=dict)
    variances: npt.ArrayLike | None = None
    levels: Sequence[Level] | None = None
    confidence: float = DEFAULT.level
    spreads: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    said: str | None = None

    def __post_init__(self) -> None:
        self.cost, self.groups = as_cost(self.cost), tuple(self.groups)
        count = len(self.groups)
        for name in ("base_rates", "generalized_fpr", "generalized_fnr"):
            setattr(self, name, _numbers(name, getattr(self, name), (count,)))
        self.points = np.column_stack([self.generalized_fpr, self.generalized_fnr])
        self.after = {
            str(name): _numbers(f"after {name!r}", points, (count, 2))
            for name, points in self.after.items()
        }
        mu = self.base_rates
        a, b = self.cost.coefficients(self.groups, mu)
        self.costs: Floats = a * self.points[:, 0] + b * self.points[:, 1]
        self.trivial_costs: Floats = a * mu + b * (1.0 - mu)
        self.target_cost = float(self.costs.max())
        ceiling = np.maximum(self.costs, self.trivial_costs)
        self.unreachable = self.target_cost > ceiling + EQUAL * ceiling.max()
        self.ellipse_axes = None
        if self.variances is not None:
            variances = _numbers("variances", self.variances, (count, 2), nan=True)
            self.ellipse_axes = ellipse_axes(variances, self.confidence)
        self.level_lines = []
        rule = "must be a list of numbers, or of pairs of a cost and a number"
        levels = [self.target_cost] if self.levels is None else self.levels
        for level in check_listed("levels", levels, rule, "use levels=[0.3]"):
            pair = level if isinstance(level, tuple) and len(level) == 2 else (self.cost, level)
            cost, value = as_cost(pair[0]), check_amount("levels", pair[1])
            # Past the diagonal, as far as there is something to compare with.
            pairs = zip(mu, self.groups, strict=True)
            shares = [crossing(one, cost, value, group).share for one, group in pairs]
            farthest = max((share for share in shares if share < 2.0), default=0.0)
            stretch = 1.03 * farthest if farthest > 1.0 else 1.0
            for index in range(count) if cost.is_per_group else [None]:
                group = None if index is None else self.groups[index]
                points = level_curve(cost, value, group, stretch=stretch)
                self.level_lines.append(LevelLine(cost, float(value), index, points))
        self.outlines = {}
        for name, spread in self.spreads.items():
            covariances = np.asarray(spread, dtype=np.float64)
            if name not in self.after or covariances.shape != (count, 2, 2):
                rule = f"must have a rule of after each, with an array of shape {(count, 2, 2)}"
                got, step = f"{name!r} of shape {covariances.shape}", "pass a covariance per group"
                raise UsageError(Problem("spreads", rule, got, step))
            pairs = zip(self.after[name], covariances, strict=True)
            self.outlines[name] = [ellipse(*pair, self.confidence) for pair in pairs]
        # The groups before and after, the ends of their lines, and what each rule moves.
        self._marks = np.vstack([self.points, *self.after.values()])
        self._ends = np.column_stack([mu, 1.0 - mu])
        self._moved: list[tuple[str, int, Floats]] = [
            (name, index, end)
            for name, points in self.after.items()
            for index, end in enumerate(points)
            if np.abs(end - self.points[index]).max() > EQUAL
        ]

    @classmethod
    @draws
    def from_tally(
        cls,
        tally: Tally,
        rules: Any = (),
        *,
        cost: CostLike | None = None,
        levels: Sequence[Level] | None = None,
        confidence: float | None = DEFAULT.confidence,
    ) -> Self:
        """The plane of a tally, and what rules would do to it.

        Parameters
        ----------
        tally : Tally, or data
            Groups with positives only, or negatives only, are not drawn.
        cost : Cost or str, optional
            What an error costs; by default that of the first rule that has one, else "fnr".
        levels : optional
            As for the class.
        """
        # A group of one label has no point; without any there is nothing to draw.
        tally = tally.select(large_groups(tally, 0) or fitted_groups(tally))
        asked = question_of(*rules.values()) if cost is None else {"cost": cost}
        cost, now = DEFAULT.but(**asked).cost, _points(tally)
        after = {name: _points(rule.expected(tally)) for name, rule in rules.items()}
        level, variances, said = DEFAULT.level, None, None
        if confidence is not None:
            level, variances = check_confidence(confidence), rate_variances(tally)
            if len(tally.groups) > 1:
                # An end far out in the tails could not be read from so many draws.
                replicates = DEFAULT.replicates if level <= 0.995 else 0
                found = audit(tally, cost, confidence=level, replicates=replicates, warn=False)
                said = plain(statement(found).headline)
        mu = rates.base_rate(tally.totals)
        return cls(
            tally.groups, now[:, 0], now[:, 1], mu, cost, after, variances, levels, level, said=said
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        labels: bool | str = True,
        level: bool = True,
        ellipses: bool = True,
        arrows: bool = True,
        circles: bool = True,
        limits: tuple[float, float, float, float] | None = None,
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
        level, ellipses, arrows, circles : bool
            Whether to draw levels of cost, interval ellipses, arrows from before to after, and the
            groups themselves.
        limits : (left, right, bottom, top), optional
            The part to show; by default the whole plane.
        title : str, optional
            By default the verdict; "" for none.
        rows : bool, optional
            Whether to draw a diagram per rate with a row per group, its interval, and a hollow mark
            at the end of its calibrated line; by default with more than 8 groups, whose names a
            plane has no room for.  Of the other options only ``title`` matters then.
        """
        if len(self.groups) > MOST_IN_PLANE if rows is None else rows:
            return self._plot_rows(ax, title)
        ax, style = self._on(ax, (5.4, 5.6)), looks(len(self.groups))
        try:
            left, right, bottom, top = map(float, limits or (-0.02, 1.0, -0.02, 1.0))
        except (TypeError, ValueError) as error:
            rule, step = "must be left, right, bottom and top", "use (0.0, 1.0, 0.0, 1.0)"
            raise UsageError(Problem("limits", rule, short(limits), step)) from error
        ax.set(xlim=(left, right), ylim=(bottom, top))
        ax.set_aspect("equal", adjustable="box")
        ax.set_xlabel("generalized false-positive rate")
        ax.set_ylabel("generalized false-negative rate")
        # The triangle of scores that are better than the same score for everybody.
        ax.fill([0, 1, 0], [0, 0, 1], color="#f6f6f6", zorder=0, linewidth=0)
        (self.diagonal_,) = ax.plot([0, 1], [1, 0], color="#a8a8a8", linewidth=0.8, zorder=1)
        self.lines_, self.trivials_, self.circles_ = list[Any](), list[Any](), list[Any]()
        self.levels_, self.beyond_, self.ellipses_ = list[Any](), list[Any](), list[Any]()
        variances = self.variances if ellipses else None
        spread = np.full_like(self.points, np.nan) if variances is None else np.asarray(variances)
        pairs = zip(style, self.points, self._ends, spread, strict=True)
        for look, point, (x, y), variance in pairs:
            line = Style(linestyle=look.dashes, linewidth=1.6, solid_capstyle="butt")
            self.lines_ += ax.plot([0.0, x], [0.0, y], color=look.colour, zorder=2, **line)
            end = Style(markeredgecolor=look.colour, markeredgewidth=1.2, **TRIVIAL)
            self.trivials_ += ax.plot(x, y, zorder=3, **end)
            if np.isfinite(variance).all():
                outline = ellipse(point, np.diag(variance), self.confidence)
                area = Style(facecolor=look.colour, alpha=0.22, linewidth=0, zorder=1.5)
                self.ellipses_ += ax.fill(*outline.T, **area)
            if circles:
                dot = Style(s=58, edgecolor="white", linewidth=0.9, zorder=4.5)
                self.circles_.append(ax.scatter(*point, color=look.colour, **dot))
        if level:
            self._draw_levels(style)
        self._draw_after(style, arrows, variances is not None)
        self._write_title(title)
        self.texts_ = list[Any]()
        if labels:
            self._write_labels(style, labels != "groups", level, limits is None)
        return self

    def _draw_levels(self, style: list[Look]) -> None:
        dashed = Style(linestyle=(0, (4, 3)), linewidth=1.1, zorder=1.8)
        for level in self.level_lines:
            colour = GREY if level.group is None else style[level.group].colour
            self.levels_ += self.ax_.plot(*level.points.T, color=colour, **dashed)
        for index in np.flatnonzero(self.unreachable).tolist():
            mu, group = float(self.base_rates[index]), self.groups[index]
            goal = crossing(mu, self.cost, self.target_cost, group)
            if goal.share < 2.0:
                way = np.array([self._ends[index], goal.point])
                colour = style[index].colour
                self.beyond_ += self.ax_.plot(*way.T, color=colour, zorder=2, **BEYOND)

    def _draw_after(self, style: list[Look], arrows: bool, outlines: bool) -> None:
        """Diamonds where rules put the groups that they move, with arrows and outlines."""
        ax = self.ax_
        self.diamonds_: dict[str, list[Any]] = {name: [] for name in self.after}
        self.arrows_: dict[str, list[Any]] = {name: [] for name in self.after}
        self.outlines_: dict[str, list[Any]] = {}
        diamond = Style(s=62, marker="D", edgecolor="white", linewidth=0.9)
        thin = Style(linewidth=0.8, alpha=0.8, zorder=1.6)
        if outlines:
            self.outlines_ = {name: [] for name in self.outlines}
        ax.apply_aspect()
        for name, index, end in self._moved:
            start, look = self.points[index], style[index]
            mark = ax.scatter(*end, color=look.colour, zorder=4, **diamond)
            self.diamonds_[name].append(mark)
            if name in self.outlines_:
                outline = self.outlines[name][index]
                self.outlines_[name] += ax.plot(*outline.T, color=look.colour, **thin)
            first, last = ax.transData.transform([start, end]) * points_per_pixel(ax)
            # Only where there is room for an arrow between the two marks.
            if arrows and np.hypot(*(last - first)) > 14.0:
                way = Style(xy=tuple(end), xytext=tuple(start), zorder=3.6)
                shaft = ARROW | {"color": look.ink}
                self.arrows_[name].append(ax.annotate("", arrowprops=shaft, **way))

    def _write_title(self, title: str | None, pad: float | None = None) -> None:
        if title is None:
            # As few lines as the width allows, of about the same length.
            lines = max(math.ceil(len(self.verdict) / 62), 1)
            width = math.ceil(len(self.verdict) / lines) + 5
            title = "\n".join(textwrap.wrap(self.verdict, width))
        if title:
            write_title(self.ax_, title, fontsize=SIZE + 0.5, pad=pad)

    def _plot_rows(self, ax: Axes | None, title: str | None) -> Self:
        """Both rates, each from the highest to the lowest."""
        intervals, confidence = np.full((2, len(self.groups), 2), np.nan), None
        if self.variances is not None:
            confidence = self.confidence
            spread = NormalDist().inv_cdf(0.5 + confidence / 2.0) * np.sqrt(self.variances)
            ends = np.stack([self.points - spread, self.points + spread], axis=-1)
            intervals = np.clip(ends, 0.0, 1.0).swapaxes(0, 1)
        self.rows_ = dots = MeasuresDisplay(
            self.groups, RATES, self.points.T, intervals, np.full(2, np.nan), (), confidence
        ).plot(ax)
        self.ax_, self.figure_ = dots.ax_, dots.figure_
        self.trivials_, self.diamonds_ = list[Any](), {name: list[Any]() for name in self.after}
        for side, measure in enumerate(RATES):
            panel, order = dots.axes_[measure.name], dots.order[measure.name]
            row_of = [order.index(group) for group in self.groups]
            seen = [*self.points[:, side], *self._ends[:, side]]
            for end, row in zip(self._ends[:, side], row_of, strict=True):
                self.trivials_ += panel.plot(end, row, color=GREY, zorder=2.5, **TRIVIAL)
            for name, index, end in self._moved:
                if abs(end[side] - self.points[index, side]) > EQUAL:
                    mark = panel.plot(end[side], row_of[index], zorder=3.5, **AFTER)
                    self.diamonds_[name] += mark
                    seen.append(end[side])
            low, high = panel.get_xlim()
            pad = 0.04 * (max(*seen, high) - min(*seen, low))
            panel.set_xlim(min(low, min(seen) - pad), max(high, max(seen) + pad))
        legend = dots.legend() | {"no information": TRIVIAL}
        if any(self.diamonds_.values()):
            legend |= {short_name(", ".join(self.after), 30): AFTER}
        self._legend(legend, inches=0.35)
        self._write_title(title, pad=22)
        return self

    @property
    def verdict(self) -> str:
        """The sentence for people that says whether the costs can be made equal."""
        if len(self.groups) < 2:
            return ""
        if self.said is not None:
            return self.said
        names = [Name(name) for name in shown_names(self.groups).values()]
        top, lowest = int(np.argmax(self.costs)), int(np.argmin(self.costs))
        difference = float(np.ptp(self.costs))
        below = [i for i, cost in enumerate(self.costs) if cost < self.target_cost - EQUAL]
        excess = 1.0 if self.unreachable.any() else -1.0
        # Nothing is known here of calibration and of chance.
        findings = Findings(
            groups=len(names),
            gap_high=0.0,
            difference=difference,
            difference_low=difference,
            excess=excess,
            excess_low=excess,
            excess_high=excess,
            intervals=False,
        )
        kind = self.cost.kind
        high, low = ((names[i], float(self.costs[i])) for i in (top, lowest))
        fields = {
            **Vocabulary().fields(),
            **extremes(kind, Figures.of(self.costs, kind), high, low),
            "count": str(len(names)),
            "changed": changed_groups(below, dict(enumerate(names))),
        }
        return plain(headline(judge(findings), kind, fields))

    # Labels

    def _write_labels(self, style: list[Look], everything: bool, level: bool, whole: bool) -> None:
        """Write beside the marks, where there is room: names of the groups, or all labels."""
        self.figure_.draw_without_rendering()
        light = [sampled([0.0, 0.0], line.get_xydata()[1], 81) for line in self.lines_]
        light += [sampled([0.0, 1.0], [1.0, 0.0], 81)]
        light += [line.get_xydata() for line in (*self.levels_, *self.beyond_)]
        for ends in self.after.values():
            light += list(np.moveaxis(sampled(self.points, ends, 21), 1, 0))
        # Curves are named first: their labels are small, and must stay beside them.
        labels = self._level_labels() if everything and level else []
        # The group far left looks for room on its left.
        middle = float(np.median(self.points[:, 0]))
        for name, cost, point, look in zip(self.names, self.costs, self.points, style, strict=True):
            text = f"{short_name(name)}\ncosts {cost:.3f}"
            prefer = 0.0 if point[0] >= middle else 180.0
            labels.append(Label(text, point, look.ink, bold=True, prefer=prefer))
        if everything:
            labels += self._rule_labels()
        # The most that groups can cost which cannot reach the target, at the end of their line.
        for index in np.flatnonzero(self.unreachable) if everything and level else ():
            name = short_name(self.names[index], lines=1)
            text = f"{name}:\nat most {self.trivial_costs[index]:.3f}"
            ink = style[index].ink
            labels.append(Label(text, self._ends[index], ink, SMALL + 0.5, prefer=90.0))
        marks = [(self._marks, 8.0), (self._ends, 8.0), *((points, 0.6) for points in light)]
        if everything and whole:
            marks.append((self._write_diagonal(), 0.9))
        self.texts_ += place_labels(self.ax_, labels, marks)

    def _rule_labels(self) -> list[Label]:
        """One label for diamonds that lie together, whatever their rule and group."""
        together: list[tuple[Floats, list[str]]] = []
        for name, _, end in self._moved:
            near = next((names for p, names in together if np.abs(p - end).max() < 0.012), None)
            if near is None:
                together.append((end, [name]))
            elif name not in near:
                near.append(name)
        return [
            Label(short_name(", ".join(names), 30), point, INK, SMALL, prefer=-45)
            for point, names in together
        ]

    def _level_labels(self) -> list[Label]:
        """The value of each level, near that end of its curve where fewer things are."""
        (left, right), (bottom, top) = self.ax_.get_xlim(), self.ax_.get_ylim()
        high, marks, labels = top - bottom, self._marks, []

        def before_end(curve: Floats) -> Any:
            far = np.flatnonzero(np.hypot(*(curve - curve[-1]).T) >= 0.06 * high)
            return curve[far[-1] if len(far) else -1]

        def room(point: Floats) -> float:
            return min(float(np.hypot(*(marks - point).T).min()), 0.25 * high)

        for level in self.level_lines:
            x, y = level.points.T
            seen = level.points[(x >= left) & (x <= right) & (y >= bottom) & (y <= top)]
            if len(seen):
                point = max((before_end(seen), before_end(seen[::-1])), key=room)
                ink = GREY if level.group is None else INK
                text = f"calibrated scores here\ncost {level.value:.3f} ({level.cost})"
                labels.append(Label(text, point, ink, SMALL, tied=False))
        return labels

    def _write_diagonal(self) -> Floats:
        """Name the diagonal, along it where no line ends; return the room that takes."""
        choices = np.linspace(0.82, 0.18, 17)
        free = [min(np.abs(self.base_rates - x).min(), 0.21) for x in choices]
        middle = choices[int(np.argmax(free))]
        along = Style(rotation=-45, rotation_mode="anchor", transform_rotates_text=True)
        place = middle + 0.008, 1.0 - middle + 0.008, "the same score for everybody"
        self.texts_.append(write(self.ax_, *place, ha="center", va="bottom", **along))
        x = middle + np.linspace(-0.17, 0.17, 40)
        return np.column_stack([x + 0.02, 1.0 - x + 0.02])


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
