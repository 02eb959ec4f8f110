"""Draw the pictures of the pages, all of COMPAS: python tools/make_pictures.py."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

import isocost as ic
from isocost.examples import compas
from isocost.plots import (
    ChangeDisplay,
    FrontierDisplay,
    MeasuresDisplay,
    NetBenefitDisplay,
    PlaneDisplay,
    PredictiveValuesDisplay,
    ReconcilableDisplay,
    ReliabilityDisplay,
    RepairPlanDisplay,
)
from isocost.plots.display import GREY, INK, PALE, SIZE, Look, looks
from isocost.plots.plane import trivial_point

DOCS = Path(__file__).parent.parent / "docs"
MAXCOVERAGE = Image.Quantize.MAXCOVERAGE


TITLES = (
    "Everybody. Base rates differ, so the lines of calibrated scores do. They meet only where "
    "scores are perfect.",
    "A quarter of each group is handed over (dashed), and the base rate of the others (solid) is "
    "another.",
    "The others. One base rate, one line, and one point for both groups: every rate is equal.",
)


def hand_over_figure() -> Figure:
    """The plane before, while and after a quarter of each group is handed over."""
    tally = compas()
    rule = ic.hand_over(tally, share=0.25)
    before, after = (ic.audit(one, warn=False) for one in (tally, rule.expected(tally)))
    gone = ic.handed_over(rule, tally).groups
    figure = Figure(figsize=(11.8, 4.35), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, title, letter in zip(axes, TITLES, "abc", strict=True):
        _plane(ax, "\n".join(textwrap.wrap(f"({letter})  {title}", 48)))
    for (name, group), look in zip(before.groups.items(), looks(2), strict=True):
        rest = after.groups[name]
        _line(axes[0], group.base_rate, look)
        _point(axes[0], group, look)
        _line(axes[1], gone[name].base_rate, look, linestyle="--")
        _line(axes[1], rest.base_rate, look)
        _say(axes[0], group.base_rate, f"{name}\n{group.base_rate:.1%} positive", look)
        _say(
            axes[1],
            gone[name].base_rate,
            f"handed over:\n{gone[name].base_rate:.1%} positive",
            look,
        )
        _line(axes[2], rest.base_rate, look)
        _point(axes[2], rest, look)
    rest = next(iter(after.groups.values()))
    for ax in axes[1:]:
        _say(ax, rest.base_rate, f"the others of both:\n{rest.base_rate:.1%} positive", None)
    axes[0].set_ylabel("misses of scores (generalized FNR)", fontsize=SIZE, color=INK)
    return figure


def _plane(ax: Any, title: str) -> None:
    ax.plot([0, 1], [1, 0], color=PALE, linewidth=1.5)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    ax.set_title(title, fontsize=SIZE, color=INK, loc="left")
    ax.set_xlabel("false alarms of scores (generalized FPR)", fontsize=SIZE, color=INK)
    ax.tick_params(labelsize=SIZE, colors=GREY)
    ax.spines[["top", "right"]].set_visible(False)


def _line(ax: Any, base_rate: float, look: Look, linestyle: str = "-") -> None:
    """The calibrated scores of people with a base rate; a later line leaves an earlier visible."""
    width = 5.0 if look == looks(1)[0] else 2.0
    x, y = trivial_point(base_rate)
    ax.plot([0, x], [0, y], color=look.colour, linewidth=width, linestyle=linestyle, alpha=0.8)
    ax.plot([x], [y], "o", markersize=7, markerfacecolor="white", color=look.colour, clip_on=False)


def _point(ax: Any, group: Any, look: Look) -> None:
    where = [group.generalized_fpr], [group.generalized_fnr]
    size = 15.0 if look == looks(1)[0] else 8.0
    ax.plot(*where, look.marker, markersize=size, color=look.colour, zorder=4)


def _say(ax: Any, base_rate: float, text: str, look: Look | None) -> None:
    """A text beyond the diagonal, at the end of a line."""
    x, y = trivial_point(base_rate)
    ink = INK if look is None else look.ink
    ax.annotate(text, (x, y), (8, 6), textcoords="offset points", fontsize=SIZE, color=ink)


def main() -> None:
    tally = compas()
    odds = {"equalize_odds": ic.equalize_odds(tally)}
    limits = (0.2, 0.7, 0.25, 0.75)
    measures = ["auc", "cross_auc", "cross_auc_negatives", "calibration_slope"]
    methods = ("withhold", "coarsen")
    pictures = {
        "plane": PlaneDisplay.from_tally(tally, odds, cost="fpr", limits=limits),
        "reliability": ReliabilityDisplay.from_tally(tally),
        "predictive-values": PredictiveValuesDisplay.from_tally(tally),
        "net-benefit": NetBenefitDisplay.from_tally(tally),
        "measures": MeasuresDisplay.from_tally(tally, measures),
        "frontier": FrontierDisplay.from_tally(tally, "fpr", methods=methods, points=9),
        "change": ChangeDisplay.from_tally(tally, odds),
        "reconcilable": ReconcilableDisplay.from_tally(tally),
        "repair-plan": RepairPlanDisplay.from_tally(tally, "reconcile", within=0.05),
    }
    figures = {name: display.figure_ for name, display in pictures.items()}
    figures["hand-over"] = hand_over_figure()
    for name, figure in figures.items():
        path = DOCS / f"{name}.png"
        figure.savefig(path, dpi=110, metadata={"Software": None})
        # Few colours are enough, and a third of the size.
        Image.open(path).convert("RGB").quantize(128, MAXCOVERAGE).save(path, optimize=True)


if __name__ == "__main__":
    main()
