"""The paper's Figure 3 for one study, with a panel of ours beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isocost.show.geometry import crossing
from isocost.show.plane import PlaneDisplay
from isocost.show.style import GREY, SIZE, SMALL, looks, require_matplotlib
from reproduction.numbers import Numbers, mean_of, stage_numbers
from reproduction.studies import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PANELS", "RESOLUTION", "figure_3", "panels"]

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
KEY = 0.55
"""The size of a panel, and the height of the key where it has no panel's place, in inches."""

RESOLUTION = 160
ROOM = 0.12
"""How far the axes go beyond the outermost points."""

SOURCES = {
    "retrained": "models trained anew, mean of {models} models, people held out",
    "published": "the authors' published scores",
    "counts": "COMPAS deciles as shares of recidivism",
}


def panels(study: Study, spread: Sequence[Numbers] = ()) -> dict[str, PlaneDisplay]:
    """What each panel shows, as numbers: circles before, diamonds after; ellipses in ours.

    EO-Trained is there if the study has trained models; its diamonds are named by the bound.
    """
    numbers, feasible = study.numbers, study.numbers["feasible"] == 1.0
    after = {
        "EO-Derived": {"EO-Derived": "odds"},
        "Calibrated": {"withhold": "withhold"} if feasible else {},
        "Ours": ({"coarsen": "coarsen"} if feasible else {}) | {"reconcile": "reconcile"},
    }
    found = {
        panel: _display(study, numbers, rules, spread if panel == "Ours" else ())
        for panel, rules in after.items()
    }
    return {"EO-Trained": _trained(study), **found} if study.trained else found


def figure_3(study: Study, spread: Sequence[Numbers] = ()) -> Figure:
    """Draw the panels two by two, with the same axes, and a key.

    ``spread`` has the numbers for other people; with them there are ellipses.
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
    axes = [figure.add_subplot(rows, 2, place + 1) for place in range(2 * rows)]
    _key(study, figure, None if apart else axes.pop())
    limits = _limits(shown)
    # Labels look for room in the panels as they will be, so all else is laid out before.
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
    titles = PANELS if study.numbers["feasible"] == 1.0 else PANELS | INFEASIBLE
    for ax, (panel, display) in zip(axes, shown.items(), strict=True):
        display.plot(
            ax,
            labels=labels and ("groups" if panel == "EO-Trained" else True),
            level=panel in ("Calibrated", "Ours"),
            ellipses=panel == "Ours",
            arrows=panel != "EO-Trained",
            limits=limits,
            title=titles[panel],
        )
        if panel == "EO-Trained":
            _path(display, ax)


def _key(study: Study, figure: Figure, ax: Axes | None) -> None:
    """What the marks mean, in a place of its own or below the panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def line(label: str, **look: Any) -> Line2D:
        return Line2D([], [], label=label, **{"color": GREY, "linestyle": "none"} | look)

    marks = [
        line("a group, before", marker="o"),
        line("after a repair", marker="D"),
        line("calibrated scores of a group", linestyle="-", linewidth=1.6),
        line("everybody gets the base rate", marker="o", markerfacecolor="white"),
        line("the highest cost of a group", linestyle=(0, (4, 3)), linewidth=1.1),
        Patch(facecolor=GREY, alpha=0.3, label="95 % interval, before"),
        line("95 % interval, after", linestyle="-", linewidth=0.8),
    ]
    if study.numbers["feasible"] < 1.0:
        out = "where a group would have to be"
        marks.append(line(out, marker="x", linestyle=(0, (1, 1.5))))
    if ax is None:
        figure.legend(
            handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL
        )
    else:
        ax.set_axis_off()
        ax.legend(handles=marks, loc="center", frameon=False, fontsize=SIZE, labelspacing=1.0)


def _display(
    study: Study, numbers: Mapping[str, float], rules: Mapping[str, str], spread: Sequence[Numbers]
) -> PlaneDisplay:
    first = _points(numbers, "original")
    rates = [numbers[f"original base_rate {group}"] for group in (1, 2)]
    found = {name: _covariances(spread, of) for name, of in rules.items()} if spread else {}
    return PlaneDisplay(
        study.experiment.groups,
        first[:, 0],
        first[:, 1],
        rates,
        study.experiment.cost,
        {name: _points(numbers, of) for name, of in rules.items()},
        # Negatives and positives are other people, so these two vary apart.
        _covariances(spread, "original")[:, [0, 1], [0, 1]] if spread else None,
        spreads=found,
    )


def _covariances(spread: Sequence[Numbers], stage: str) -> Floats:
    """How the two rates of each group vary with the people, as (groups, 2, 2)."""
    drawn = np.stack([_points(numbers, stage) for numbers in spread])
    return np.stack([np.cov(drawn[:, place], rowvar=False) for place in range(drawn.shape[1])])


def _trained(study: Study) -> PlaneDisplay:
    """Models from the loosest bound to the tightest, averaged over the splits."""
    names = list(study.trained[0].scores)
    by_bound = {
        name: mean_of(
            [stage_numbers("trained", part.tally(name), study.experiment) for part in study.trained]
        )
        for name in names
    }
    loosest, *others = names
    first = _points(by_bound[loosest], "trained")
    rates = [by_bound[loosest][f"trained base_rate {group}"] for group in (1, 2)]
    after = {name: _points(by_bound[name], "trained") for name in others}
    groups, cost = study.experiment.groups, study.experiment.cost
    return PlaneDisplay(groups, first[:, 0], first[:, 1], rates, cost, after)


def _path(display: PlaneDisplay, ax: Axes) -> None:
    """Join the points of a group, from the loosest bound to the tightest."""
    steps = np.stack([display.points, *map(np.asarray, display.after.values())])
    for place, look in enumerate(looks(len(display.groups))):
        ax.plot(*steps[:, place].T, color=look.colour, linewidth=1.0, zorder=2.5)


def _points(numbers: Mapping[str, float], stage: str) -> Floats:
    rates = ("generalized_fpr", "generalized_fnr")
    return np.array([[numbers[f"{stage} {rate} {group}"] for rate in rates] for group in (1, 2)])


def _limits(shown: Mapping[str, PlaneDisplay]) -> tuple[float, float, float, float]:
    """A square that holds all there is to see with room around it, alike in all panels."""
    points = np.concatenate([place for one in shown.values() for place in _seen(one)])
    low, high = points.min(axis=0), points.max(axis=0)
    half = float((high - low).max()) / 2 * (1 + ROOM) + ROOM / 2
    left, bottom = np.maximum(-0.02, (low + high) / 2 - half)
    return float(left), float(left + 2 * half), float(bottom), float(bottom + 2 * half)


def _seen(display: PlaneDisplay) -> list[Floats]:
    """Marks, ellipses, and where groups would have to be that cannot."""
    found = [display.points, *map(np.asarray, display.after.values())]
    if display.ellipse_axes is not None:
        found += [display.points - display.ellipse_axes, display.points + display.ellipse_axes]
    found += [outline for outlines in display.outlines.values() for outline in outlines]
    for place in np.flatnonzero(display.unreachable).tolist():
        mu, group = float(np.asarray(display.base_rates)[place]), display.groups[place]
        goal = crossing(mu, display.cost, display.target_cost, group)
        found += [np.array([goal.point])] if goal.share < 2.0 else []
    return found
