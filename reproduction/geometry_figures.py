"""The paper's Figures 1 and 2: the geometry of calibration and equal cost, drawn from numbers.

:func:`panels_1` and :func:`panels_2` return what is drawn; :func:`figure_1` and :func:`figure_2`
draw it.  Group 1 has the base rate 0.55, group 2 has 0.25, and the cost is the expected cost per
person with both errors counted alike, unless a panel is about another.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isocost.costs import Cost
from isocost.plots.display import (
    GREY,
    INK,
    SIZE,
    SMALL,
    Label,
    looks,
    place_labels,
    require_matplotlib,
    sampled,
)
from isocost.plots.plane import PlaneDisplay, crossing, level_curve, trivial_point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASE_RATES = (0.55, 0.25)
GROUPS = ("group 1", "group 2")

Point = tuple[float, float]


@dataclass(frozen=True)
class Panel:
    """One part of a figure.

    Attributes
    ----------
    title : str
        What it shows, in a sentence.
    cost : Cost
        The cost whose levels are drawn.
    levels : tuple of float
        The levels.
    groups : tuple of two points, or None
        Where h_1 and h_2 are, as (c_fp, c_fn); None if there are no circles.
    repaired : point or None
        Where h_2 is moved to.
    alpha : float or None
        The share of group 2 whose score is withheld for that.
    marks : dict of points
        Further points by their text.
    segment : two points or None
        What mixtures of two scores can reach.
    """

    title: str
    cost: Cost
    levels: tuple[float, ...] = ()
    groups: tuple[Point, Point] | None = None
    repaired: Point | None = None
    alpha: float | None = None
    marks: tuple[tuple[str, Point], ...] = ()
    segment: tuple[Point, Point] | None = None


def panels_1() -> list[Panel]:
    """Figure 1: where calibrated scores lie, and where their costs are equal.

    Examples
    --------
    >>> for panel in panels_1():
    ...     print(panel.title)
    Calibrated scores of a group lie on a line to its trivial score.
    Equal false-positive rates: both on one vertical.
    Equal false-negative rates: both on one horizontal.
    Any other cost: both on one falling curve.
    """
    trivial = tuple(trivial_point(mu) for mu in BASE_RATES)
    ends = ((_trivial_name(1), trivial[0]), (_trivial_name(2), trivial[1]))
    lines = Panel(
        "Calibrated scores of a group lie on a line to its trivial score.",
        Cost.weighted(),
        marks=(*ends, ("perfect", (0.0, 0.0))),
    )
    return [
        lines,
        _equal("Equal false-positive rates: both on one vertical.", Cost.fpr(), 0.18),
        _equal("Equal false-negative rates: both on one horizontal.", Cost.fnr(), 0.3),
        _equal("Any other cost: both on one falling curve.", Cost.weighted(), 0.22),
    ]


def panels_2() -> list[Panel]:
    """Figure 2: when costs can be made equal, and by what.

    Examples
    --------
    >>> _, feasible, infeasible, mixture = panels_2()
    >>> round(feasible.alpha, 3), infeasible.alpha
    (0.622, None)
    """
    cost = Cost.weighted()
    worth = [float(crossing(mu, cost, 1.0).share) ** -1 for mu in BASE_RATES]
    h_1, h_2 = _along(0, 0.6), _along(1, 0.45)
    level = 0.6 * worth[0]
    meeting = crossing(BASE_RATES[1], cost, level)
    alpha = (meeting.share - 0.45) / (1.0 - 0.45)
    end = trivial_point(BASE_RATES[1])
    return [
        Panel(
            "Levels of cost: the lower the cost, the lower both error rates.",
            cost,
            levels=(0.1, 0.2, 0.3),
        ),
        Panel(
            "Usually group 2 can be raised to the cost of group 1.",
            cost,
            (level,),
            (h_1, h_2),
            meeting.point,
            alpha,
        ),
        Panel(
            "Not if group 1 costs more than the trivial score of group 2.",
            cost,
            (0.9 * worth[0],),
            (_along(0, 0.9), h_2),
            marks=((_trivial_name(2), end),),
        ),
        Panel(
            "Withholding a share of scores takes group 2 along its line.",
            cost,
            groups=(h_1, h_2),
            repaired=meeting.point,
            alpha=alpha,
            marks=((_trivial_name(2), end),),
            segment=(h_2, end),
        ),
    ]


def figure_1() -> Figure:
    """The paper's Figure 1, a new figure that pyplot does not know."""
    return _figure(panels_1())


def figure_2() -> Figure:
    """The paper's Figure 2, a new figure that pyplot does not know."""
    return _figure(panels_2())


def _equal(title: str, cost: Cost, level: float) -> Panel:
    first, second = (crossing(mu, cost, level).point for mu in BASE_RATES)
    return Panel(title, cost, (level,), (first, second))


def _along(group: int, share: float) -> Point:
    x, y = trivial_point(BASE_RATES[group])
    return share * x, share * y


def _trivial_name(group: int) -> str:
    return rf"$h^{{\mu_{group}}}$"


def _figure(panels: list[Panel]) -> Figure:
    figure: Figure = require_matplotlib().Figure(figsize=(11.8, 3.5), dpi=120, layout="constrained")
    axes = figure.subplots(1, len(panels))
    for ax, panel, letter in zip(axes, panels, "abcd", strict=True):
        _draw(ax, panel, letter)
    figure.draw_without_rendering()
    for ax, panel in zip(axes, panels, strict=True):
        _write(ax, panel)
    return figure


def _draw(ax: Axes, panel: Panel, letter: str) -> None:
    points = np.array(panel.groups or [(0.0, 0.0), (0.0, 0.0)])
    after = {}
    if panel.repaired is not None:
        after["repaired"] = np.array([points[0], panel.repaired])
    display = PlaneDisplay(
        GROUPS, points[:, 0], points[:, 1], BASE_RATES, panel.cost, after, levels=panel.levels
    )
    title = "\n".join(textwrap.wrap(f"({letter})  {panel.title}", 36))
    display.plot(ax, labels=False, circles=panel.groups is not None, title=title)
    ax.title.set_fontsize(SIZE)
    ax.set_xticks([0.0, BASE_RATES[1], BASE_RATES[0], 1.0], ["0", r"$\mu_2$", r"$\mu_1$", "1"])
    heights = [0.0, 1.0 - BASE_RATES[0], 1.0 - BASE_RATES[1], 1.0]
    ax.set_yticks(heights, ["0", r"$1-\mu_1$", r"$1-\mu_2$", "1"])
    ax.set_xlabel("generalized false-positive rate", fontsize=SIZE, color=INK)
    upwards = "generalized false-negative rate" if letter == "a" else ""
    ax.set_ylabel(upwards, fontsize=SIZE, color=INK)
    if panel.segment is not None:
        look = looks(2)[1]
        ax.plot(
            *np.array(panel.segment).T, color=look.colour, linewidth=6, alpha=0.35, zorder=1.9,
            solid_capstyle="round",
        )  # fmt: skip
    if not panel.groups and panel.levels:
        for level in panel.levels:
            for mu, look in zip(BASE_RATES, looks(2), strict=True):
                where = crossing(mu, panel.cost, level)
                if where.reachable:
                    ax.plot(*where.point, marker="o", markersize=4, color=look.colour, zorder=4)


def _write(ax: Axes, panel: Panel) -> None:
    """Names beside the points and along the lines."""
    first, second = looks(2)
    labels = []
    if panel.groups is not None:
        labels += [
            Label("$h_1$", panel.groups[0], first.ink, SIZE + 1.5, prefer=-30.0, math=True),
            Label("$h_2$", panel.groups[1], second.ink, SIZE + 1.5, prefer=180.0, math=True),
        ]
    if panel.repaired is not None:
        share = rf", $\alpha={panel.alpha:.2f}$" if panel.segment is not None else ""
        text = rf"$\tilde h_2${share}"
        prefer = 0.0 if share else 180.0
        labels.append(Label(text, panel.repaired, second.ink, SIZE + 1.5, prefer=prefer, math=True))
    for text, point in panel.marks:
        ink = GREY if point == (0.0, 0.0) else (second if point[0] < 0.4 else first).ink
        prefer = 20.0 if point == (0.0, 0.0) else 40.0
        labels.append(Label(text, point, ink, SIZE + 0.5, prefer=prefer, math=True))
    labels += _level_labels(panel)
    labels += _line_labels(panel)
    marks = [sampled((0.0, 0.0), trivial_point(mu), 60) for mu in BASE_RATES]
    marks += [sampled((0.0, 1.0), (1.0, 0.0), 60)]
    marks += [np.asarray(line.get_xydata()) for line in ax.lines]
    place_labels(ax, labels, [(points, 0.6) for points in marks])


def _level_labels(panel: Panel) -> list[Label]:
    """The values of the levels, where their curves meet the diagonal."""
    labels = []
    for level in panel.levels:
        x, y = max(level_curve(panel.cost, level)[[0, -1]], key=lambda end: round(end.sum(), 9))
        text = f"cost {level:.2f}" if level == max(panel.levels) else f"{level:.2f}"
        labels.append(Label(text, (float(x), float(y)), GREY, SMALL, prefer=5.0, tied=False))
    return labels


def _line_labels(panel: Panel) -> list[Label]:
    """The names of the two lines, in the first panel of each figure."""
    if panel.groups is not None:
        return []
    where = (1.0, 1.0) if panel.levels else (0.55, 0.6)
    side = (40.0, 40.0) if panel.levels else (-45.0, 160.0)
    return [
        Label(name, _along(group, share), look.ink, SIZE, True, prefer=prefer, tied=False)
        for group, (name, share, prefer, look) in enumerate(
            zip(GROUPS, where, side, looks(2), strict=True)
        )
    ]
