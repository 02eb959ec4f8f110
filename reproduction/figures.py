"""The paper's Figure 3 for one study, with a panel of ours beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isocost.plots.display import GREY, SIZE, SMALL, looks, require_matplotlib
from isocost.plots.plane import PlaneDisplay, crossing
from reproduction.study import RATES, Study, Values, mean_values, stage_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
Limits = tuple[float, float, float, float]

PANELS = {
    "EO-Trained": "Equalized odds, trained: from no bound to the tightest",
    "EO-Derived": "Equalized odds, derived",
    "Calibrated": "Calibrated, equal cost",
    "Ours": "Ours: coarsened, reconciled",
}
INFEASIBLE = {
    "Calibrated": "Calibrated, equal cost: not feasible",
    "Ours": "Ours: reconciled (coarsening is not feasible either)",
}
WITH_LEVELS = ("Calibrated", "Ours")
"""The panels that show where costs are equal."""

WIDTH, HEIGHT = 4.1, 4.3
KEY = 0.75
"""The size of a panel, and the height of a key below the panels, in inches."""

RESOLUTION = 160
COINCIDENT = 0.02
"""Marks nearer to each other than this share of the axis are shown as one."""

ROOM = 0.12
"""Margin of the axes beyond the outermost points."""

SOURCES = {
    "retrained": "models trained anew, mean of {models} models, people held out",
    "published": "the authors' published scores",
    "counts": "COMPAS deciles as shares of recidivism",
}


def panels(study: Study, spread: Sequence[Values] = ()) -> dict[str, PlaneDisplay]:
    """The contents of each panel: circles before, diamonds after, and ellipses.

    EO-Trained is included if the study has trained models; its diamonds are named by the bound.
    """
    values, feasible = study.values, study.values["feasible"] > 0.5
    after = {
        "EO-Derived": {"EO-Derived": "odds"},
        "Calibrated": {"withhold": "withhold"} if feasible else {},
        "Ours": ({"coarsen": "coarsen"} if feasible else {}) | {"reconcile": "reconcile"},
    }
    displays = {panel: _display(study, values, rules, spread) for panel, rules in after.items()}
    return {"EO-Trained": _trained(study, spread), **displays} if study.trained else displays


def figure_3(study: Study, spread: Sequence[Values] = ()) -> Figure:
    """Draw the panels two by two, with the same axes, and a key.

    ``spread`` has the values of bootstrap samples or of the splits, for the ellipses.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    shown = panels(study, spread)
    rows, apart = math.ceil(len(shown) / 2), len(shown) % 2 == 0
    size = (2 * WIDTH, rows * HEIGHT + (KEY if apart else 0.0))
    make = require_matplotlib().Figure
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.1)
    figure: Figure = make(figsize=size, dpi=RESOLUTION, layout=layout, facecolor="white")
    source = SOURCES[study.source].format(models=len(study.splits[0].fitting.scores))
    figure.suptitle(f"{study.experiment.title}: {source}", fontsize=11, fontweight="bold")
    axes = [figure.add_subplot(rows, 2, number) for number in range(1, 2 * rows + 1)]
    limits = _limits(shown)
    _key(shown, limits, figure, None if apart else axes.pop())
    # Labels are placed last, because they need the final layout of everything else.
    _draw(study, shown, axes, limits, labels=False)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for ax in axes:
        ax.clear()
    _draw(study, shown, axes, limits, labels=True)
    return figure


def _draw(
    study: Study,
    shown: Mapping[str, PlaneDisplay],
    axes: Sequence[Axes],
    limits: Limits,
    labels: bool,
) -> None:
    titles = PANELS if study.values["feasible"] > 0.5 else PANELS | INFEASIBLE
    for ax, (panel, display) in zip(axes, shown.items(), strict=True):
        display.plot(
            ax,
            labels=labels and ("groups" if panel == "EO-Trained" else True),
            level=panel in WITH_LEVELS,
            ellipses=display.variances is not None,
            arrows=panel != "EO-Trained",
            limits=limits,
            title=titles[panel],
        )
        if panel == "EO-Trained":
            _path(display, ax)
        for point in _coincident(display, limits):
            ax.plot(*point, zorder=7, **_two_coloured())
        _name_diagonal(display, ax)


def _key(
    shown: Mapping[str, PlaneDisplay], limits: Limits, figure: Figure, ax: Axes | None
) -> None:
    """The key to what is drawn, in axes of its own or below the panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def line(label: str, **look: Any) -> Line2D:
        return Line2D([], [], label=label, **{"color": GREY, "linestyle": "none"} | look)

    displays = list(shown.values())
    ends = [np.column_stack([mu := np.asarray(d.base_rates), 1.0 - mu]) for d in displays]
    goals = [goal for panel in WITH_LEVELS for goal in _goals(shown[panel])]
    marks: list[tuple[bool, Any]] = [
        (True, line("original scores of a group", marker="o")),
        (True, line("the same group after the repair", marker="D")),
        (
            any(_coincident(display, limits) for display in displays),
            line("both groups at this point after it", **_two_coloured()),
        ),
        (True, line("all calibrated scores of a group", linestyle="-", linewidth=1.6)),
        (
            _any_inside(ends, limits),
            line("its end: all of the group get one score", marker="o", markerfacecolor="white"),
        ),
        (True, line("as costly as the costliest group", linestyle=(0, (4, 3)), linewidth=1.1)),
        (
            any(display.variances is not None for display in displays),
            Patch(facecolor=GREY, alpha=0.3, label="chance: 95 % interval, before"),
        ),
        (
            any(display.outlines for display in displays),
            line("chance: 95 % interval, after", linestyle="-", linewidth=0.8),
        ),
        (
            _any_inside(goals, limits),
            line(
                "where a group would have to be, but cannot",
                marker="x",
                linestyle=(0, (1, 1.5)),
            ),
        ),
    ]
    handles = [mark for is_drawn, mark in marks if is_drawn]
    if ax is None:
        figure.legend(
            handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL
        )
    else:
        ax.set_axis_off()
        ax.legend(handles=handles, loc="center", frameon=False, fontsize=SIZE, labelspacing=1.0)


def _any_inside(points: Sequence[Floats], limits: Limits) -> bool:
    left, right, bottom, top = limits
    return any(
        left <= x <= right and bottom <= y <= top for several in points for x, y in several.tolist()
    )


def _display(
    study: Study, values: Values, rules: Mapping[str, str], spread: Sequence[Values]
) -> PlaneDisplay:
    after = {name: _points(values, of) for name, of in rules.items()}
    return _plane(study, values, "original", after, spread, {"before": "original", **rules})


def _plane(
    study: Study,
    values: Values,
    stage: str,
    after: Mapping[str, Floats],
    spread: Sequence[Values],
    stages: Mapping[str, str],
) -> PlaneDisplay:
    """A panel: circles at a stage, diamonds, and the ellipses of the stages that have them."""
    first = _points(values, stage)
    spreads = {name: _covariances(study, spread, of) for name, of in stages.items() if spread}
    before = spreads.pop("before", None)
    return PlaneDisplay(
        study.experiment.groups,
        first[:, 0],
        first[:, 1],
        [values[f"{stage} base_rate {group}"] for group in (1, 2)],
        study.experiment.cost,
        after,
        # Negatives and positives are different people, so the two rates are independent.
        None if before is None else before[:, [0, 1], [0, 1]],
        spreads=spreads,
    )


def _covariances(study: Study, spread: Sequence[Values], stage: str) -> Floats:
    """The covariance of each group's two rates, as (groups, 2, 2).

    Over bootstrap samples; or over the splits, as that of their mean.
    """
    drawn = np.stack([_points(values, stage) for values in spread])
    scale = 1.0 if study.correction is None else study.correction
    return np.stack(
        [scale * np.cov(drawn[:, group], rowvar=False) for group in range(drawn.shape[1])]
    )


def _trained(study: Study, spread: Sequence[Values]) -> PlaneDisplay:
    """Models from the loosest bound to the tightest, averaged over the splits.

    Intervals are those of the loosest and of the tightest.
    """
    names = list(study.trained[0].scores)
    by_bound = {
        name: mean_values(
            [stage_values("trained", part.tally(name), study.experiment) for part in study.trained]
        )
        for name in names
    }
    loosest, *others, tightest = names
    after = {name: _points(by_bound[name], "trained") for name in (*others, tightest)}
    stages = {"before": "untrained", tightest: "trained"}
    return _plane(study, by_bound[loosest], "trained", after, spread, stages)


def _name_diagonal(display: PlaneDisplay, ax: Axes) -> None:
    """Say what the diagonal is, along what is visible of it, where nothing else is drawn."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    note = ax.annotate(
        "one score for everybody",
        (0.0, 1.0),
        (4.0, 4.0),
        textcoords="offset points",
        annotation_clip=False,  # it is measured before its place is known
        rotation=-45.0,
        ha="center",
        va="center",
        fontsize=SMALL - 1.0,
        color=GREY,
    )
    drawn = _drawn(display, ax)
    # The box of text at 45 degrees is a square: its width is (length + height) / sqrt 2.
    height = (SMALL - 1.0) * ax.figure.dpi / 72.0
    length = math.sqrt(2.0) * note.get_window_extent().width - height
    # The text and as much again as it is high, so that none of it is outside the axes.
    half = ((length / math.sqrt(2.0) + 2.0 * height) / ax.bbox.width * (right - left)) / 2.0
    low, high = max(left, 1.0 - top) + half, min(right, 1.0 - bottom) - half
    choices = np.linspace(low, high, 25) if low <= high else np.array([])
    free = np.abs(choices - np.asarray(display.base_rates)[:, None]).min(axis=0)
    for place in choices[np.argsort(-free, kind="stable")].tolist():
        middle = ax.transData.transform((place, 1.0 - place)) + 4.0 * ax.figure.dpi / 72.0
        along, across = _turned(drawn - middle)
        if not ((np.abs(along) < length / 2 + 3) & (np.abs(across) < height / 2 + 3)).any():
            note.xy = (place, 1.0 - place)
            return
    note.remove()


def _drawn(display: PlaneDisplay, ax: Axes) -> Floats:
    """Samples of all that text must not cover, in pixels: lines, ellipses, arrows and texts."""
    steps = np.linspace(0.0, 1.0, 60)[:, None]
    curves = [line.get_xydata() for line in ax.lines if line is not display.diagonal_]
    curves += [patch.get_xy() for patch in display.ellipses_]
    curves += [
        np.array([start, end])
        for ends in display.after.values()
        for start, end in zip(display.points, np.asarray(ends), strict=True)
    ]
    samples = []
    for one in map(np.asarray, curves):
        between = one[:-1, None] + steps * (one[1:, None] - one[:-1, None])
        samples.append(ax.transData.transform(between.reshape(-1, 2)))
    for text in ax.texts:
        if text.get_text():
            box = text.get_window_extent()
            grid = np.meshgrid(np.linspace(box.x0, box.x1, 30), np.linspace(box.y0, box.y1, 15))
            samples.append(np.column_stack([axis.ravel() for axis in grid]))
    return np.vstack(samples)


def _turned(pixels: Floats) -> Floats:
    """Coordinates along the falling diagonal, and across it."""
    x, y = pixels.T
    return np.array([x - y, x + y]) / math.sqrt(2.0)


def _coincident(display: PlaneDisplay, limits: Limits) -> list[Floats]:
    """The points where a rule puts both groups."""
    near = COINCIDENT * (limits[1] - limits[0])
    pairs = map(np.asarray, display.after.values())
    return [pair.mean(axis=0) for pair in pairs if np.abs(pair[0] - pair[1]).max() < near]


def _two_coloured() -> dict[str, Any]:
    first, second = looks(2)
    return {
        "marker": "D",
        "linestyle": "none",
        "fillstyle": "left",
        "markerfacecolor": first.colour,
        "markerfacecoloralt": second.colour,
        "markeredgecolor": "white",
        "markersize": 8.0,
    }


def _path(display: PlaneDisplay, ax: Axes) -> None:
    """Join the points of a group, from the loosest bound to the tightest."""
    steps = np.stack([display.points, *map(np.asarray, display.after.values())])
    for group, look in enumerate(looks(len(display.groups))):
        ax.plot(*steps[:, group].T, color=look.colour, linewidth=1.0, zorder=2.5)


def _points(values: Values, stage: str) -> Floats:
    return np.array([[values[f"{stage} {rate} {group}"] for rate in RATES] for group in (1, 2)])


def _limits(shown: Mapping[str, PlaneDisplay]) -> Limits:
    """A square around all points, the same for all panels."""
    points = np.concatenate([points for display in shown.values() for points in _visible(display)])
    low, high = points.min(axis=0), points.max(axis=0)
    half = float((high - low).max()) / 2 * (1 + ROOM) + ROOM / 2
    left, bottom = np.maximum(-0.02, (low + high) / 2 - half)
    return float(left), float(left + 2 * half), float(bottom), float(bottom + 2 * half)


def _visible(display: PlaneDisplay) -> list[Floats]:
    """Marks, ellipses, and the points that a group would have to reach but cannot."""
    points = [display.points, *map(np.asarray, display.after.values())]
    if display.ellipse_axes is not None:
        points += [display.points - display.ellipse_axes, display.points + display.ellipse_axes]
    points += [outline for outlines in display.outlines.values() for outline in outlines]
    return points + _goals(display)


def _goals(display: PlaneDisplay) -> list[Floats]:
    """The points that a group would have to reach but cannot, unless they are far away."""
    goals = []
    for row in np.flatnonzero(display.unreachable).tolist():
        mu, group = float(np.asarray(display.base_rates)[row]), display.groups[row]
        goal = crossing(mu, display.cost, display.target_cost, group)
        goals += [np.array([goal.point])] if goal.share < 2.0 else []
    return goals
