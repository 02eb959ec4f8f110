"""The paper's Figure 3 for one study, with a panel of ours beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isocost.plots.display import GREY, SIZE, SMALL, looks, require_matplotlib
from isocost.plots.geometry import crossing
from isocost.plots.plane import PlaneDisplay
from reproduction.study import RATES, Study, Values, mean_values, stage_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

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
WIDTH, HEIGHT = 4.1, 4.3
KEY = 0.75
"""The size of a panel, and the height of a key below the panels, in inches."""

RESOLUTION = 160
DIAGONAL = 0.26
"""The share of the axis that must be visible of the diagonal, to be named along it."""

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
    values, feasible = study.values, study.values["feasible"] == 1.0
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
    _key(study, figure, None if apart else axes.pop())
    limits = _limits(shown)
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
    limits: tuple[float, float, float, float],
    labels: bool,
) -> None:
    titles = PANELS if study.values["feasible"] == 1.0 else PANELS | INFEASIBLE
    for ax, (panel, display) in zip(axes, shown.items(), strict=True):
        display.plot(
            ax,
            labels=labels and ("groups" if panel == "EO-Trained" else True),
            level=panel in ("Calibrated", "Ours"),
            ellipses=display.variances is not None,
            arrows=panel != "EO-Trained",
            limits=limits,
            title=titles[panel],
        )
        if panel == "EO-Trained":
            _path(display, ax)
        _draw_shared(display, ax)
        _name_diagonal(display, ax)


def _key(study: Study, figure: Figure, ax: Axes | None) -> None:
    """The key, in axes of its own or below the panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def line(label: str, **look: Any) -> Line2D:
        return Line2D([], [], label=label, **{"color": GREY, "linestyle": "none"} | look)

    marks = [
        line("original scores of a group", marker="o"),
        line("the same group after the repair", marker="D"),
        line("both groups at this point after it", **_two_coloured()),
        line("all calibrated scores of a group", linestyle="-", linewidth=1.6),
        line("its end: all of the group get one score", marker="o", markerfacecolor="white"),
        line("as costly as the costliest group", linestyle=(0, (4, 3)), linewidth=1.1),
        Patch(facecolor=GREY, alpha=0.3, label="chance: 95 % interval, before"),
        line("chance: 95 % interval, after", linestyle="-", linewidth=0.8),
    ]
    if study.values["feasible"] < 1.0:
        out = "where a group would have to be, but cannot"
        marks.append(line(out, marker="x", linestyle=(0, (1, 1.5))))
    if ax is None:
        figure.legend(
            handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL
        )
    else:
        ax.set_axis_off()
        ax.legend(handles=marks, loc="center", frameon=False, fontsize=SIZE, labelspacing=1.0)


def _display(
    study: Study, values: Values, rules: Mapping[str, str], spread: Sequence[Values]
) -> PlaneDisplay:
    first = _points(values, "original")
    rates = [values[f"original base_rate {group}"] for group in (1, 2)]
    return PlaneDisplay(
        study.experiment.groups,
        first[:, 0],
        first[:, 1],
        rates,
        study.experiment.cost,
        {name: _points(values, of) for name, of in rules.items()},
        # Negatives and positives are different people, so the two rates are independent.
        _covariances(study, spread, "original")[:, [0, 1], [0, 1]] if spread else None,
        spreads={name: _covariances(study, spread, of) for name, of in rules.items()}
        if spread
        else {},
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
    loosest, *others = names
    first = _points(by_bound[loosest], "trained")
    rates = [by_bound[loosest][f"trained base_rate {group}"] for group in (1, 2)]
    after = {name: _points(by_bound[name], "trained") for name in others}
    return PlaneDisplay(
        study.experiment.groups,
        first[:, 0],
        first[:, 1],
        rates,
        study.experiment.cost,
        after,
        _covariances(study, spread, "untrained")[:, [0, 1], [0, 1]] if spread else None,
        spreads={names[-1]: _covariances(study, spread, "trained")} if spread else {},
    )


def _name_diagonal(display: PlaneDisplay, ax: Axes) -> None:
    """Say what the diagonal is, along what is visible of it and away from the ends of lines."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    half = DIAGONAL * (right - left) / 2
    low, high = max(left, 1.0 - top) + half, min(right, 1.0 - bottom) - half
    if low > high:
        return
    places = np.linspace(low, high, 25)
    ends = np.asarray(display.base_rates)[:, None]
    place = float(places[np.abs(places - ends).min(axis=0).argmax()])
    ax.annotate(
        "one score for everybody",
        (place, 1.0 - place),
        (4.0, 4.0),
        textcoords="offset points",
        rotation=-45.0,
        ha="center",
        va="center",
        fontsize=SMALL - 1.0,
        color=GREY,
    )


def _draw_shared(display: PlaneDisplay, ax: Axes) -> None:
    """Where a rule puts both groups at one point, one mark in both colours."""
    near = COINCIDENT * abs(ax.get_xlim()[1] - ax.get_xlim()[0])
    for points in map(np.asarray, display.after.values()):
        if np.abs(points[0] - points[1]).max() < near:
            ax.plot(*points.mean(axis=0), zorder=7, **_two_coloured())


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


def _limits(shown: Mapping[str, PlaneDisplay]) -> tuple[float, float, float, float]:
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
    for row in np.flatnonzero(display.unreachable).tolist():
        mu, group = float(np.asarray(display.base_rates)[row]), display.groups[row]
        goal = crossing(mu, display.cost, display.target_cost, group)
        points += [np.array([goal.point])] if goal.share < 2.0 else []
    return points
