"""The paper's Figure 3 for one study, with a panel of ours beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isocost.experiments.numbers import mean_of, stage_numbers
from isocost.experiments.studies import Study
from isocost.show.geometry import rate_variances
from isocost.show.plane import PlaneDisplay
from isocost.show.style import looks, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PANELS", "figure_3", "panels"]

Floats = npt.NDArray[np.float64]

PANELS = {
    "EO-Trained": "Equalized odds, trained",
    "EO-Derived": "Equalized odds, derived",
    "Calibrated": "Calibrated, equal cost",
    "Ours": "Ours: coarsened, reconciled",
}
WIDTH, HEIGHT = 4.1, 4.6
ROOM = 0.12
"""How far the axes go beyond the outermost points."""

SOURCES = {
    "retrained": "models trained anew, mean of {models} models, people held out",
    "published": "the authors' published scores",
    "counts": "COMPAS deciles as shares of recidivism",
}


def panels(study: Study) -> dict[str, PlaneDisplay]:
    """What each panel shows, as numbers: circles before, diamonds after.

    EO-Trained is there if the study has trained models; its diamonds are named by the bound.
    """
    numbers, feasible = study.numbers, study.numbers["feasible"] == 1.0
    after = {
        "EO-Derived": {"EO-Derived": "odds"},
        "Calibrated": {"withhold": "withhold"} if feasible else {},
        "Ours": ({"coarsen": "coarsen"} if feasible else {}) | {"reconcile": "reconcile"},
    }
    found = {
        panel: _display(study, numbers, "original", rules, panel == "Ours")
        for panel, rules in after.items()
    }
    return {"EO-Trained": _trained(study), **found} if study.trained else found


def figure_3(study: Study) -> Figure:
    """Draw the panels side by side, with the same axes."""
    shown = panels(study)
    figure: Figure = require_matplotlib().Figure(
        figsize=(WIDTH * len(shown), HEIGHT), layout="constrained", facecolor="white"
    )
    limits = _limits(shown)
    for place, (panel, display) in enumerate(shown.items()):
        ax = figure.add_subplot(1, len(shown), place + 1)
        display.plot(
            ax,
            labels="groups" if panel == "EO-Trained" else True,
            level=panel in ("Calibrated", "Ours"),
            ellipses=panel == "Ours",
            arrows=panel != "EO-Trained",
            limits=limits,
            title=PANELS[panel],
        )
        if panel == "EO-Trained":
            _path(display, ax)
    experiment = study.experiment
    models = len(study.splits[0].fitting.scores)
    source = SOURCES[study.source].format(models=models)
    figure.suptitle(f"{experiment.title}: {source}", fontsize=12, fontweight="bold")
    return figure


def _display(
    study: Study, numbers: Mapping[str, float], stage: str, rules: Mapping[str, str], spread: bool
) -> PlaneDisplay:
    first = _points(numbers, stage)
    rates = [numbers[f"{stage} base_rate {group}"] for group in (1, 2)]
    return PlaneDisplay(
        study.experiment.groups,
        first[:, 0],
        first[:, 1],
        rates,
        study.experiment.cost,
        {name: _points(numbers, of) for name, of in rules.items()},
        _variances(study) if spread else None,
    )


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
    note = "diamonds: tighter and tighter bounds"
    ax.text(0.98, 0.03, note, transform=ax.transAxes, ha="right", fontsize=8, color="#555555")


def _points(numbers: Mapping[str, float], stage: str) -> Floats:
    rates = ("generalized_fpr", "generalized_fnr")
    return np.array([[numbers[f"{stage} {rate} {group}"] for rate in rates] for group in (1, 2)])


def _variances(study: Study) -> Floats:
    """The variances of one model's rates, averaged: models judge the same people."""
    found = []
    for split in study.splits:
        for model in split.evaluation.scores:
            tally = split.evaluation.tally(model)
            places = [tally.index_of(group) for group in study.experiment.groups]
            found.append(rate_variances(tally)[places])
    return np.asarray(np.mean(found, axis=0))


def _limits(shown: Mapping[str, PlaneDisplay]) -> tuple[float, float, float, float]:
    """A square that holds every point with room around it, alike in all panels."""
    places: list[Any] = []
    for display in shown.values():
        places += [display.points, *map(np.asarray, display.after.values())]
    points = np.concatenate(places)
    low, high = points.min(axis=0), points.max(axis=0)
    half = (high - low).max() / 2 + ROOM
    left, bottom = np.maximum(0.0, (low + high) / 2 - half)
    return float(left), float(left + 2 * half), float(bottom), float(bottom + 2 * half)
