"""ReconcilableDisplay: at which thresholds calibrated scores can have equal rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from isocost.checks import check_kind, check_numbers
from isocost.groups import Group, names_of
from isocost.plots.display import (
    GREY,
    INK,
    PALE,
    SIZE,
    Display,
    legend_below,
    looks,
    panels,
    percent,
    plain_axes,
)
from isocost.repairs.thresholds import Reconcilable, reconcilable
from isocost.tallies import Tally
from isocost.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_GROUPS = 8
"""With more groups than this, only all people together are drawn."""


@dataclass
class ReconcilableDisplay(Display):
    """Whether rates can be equal, threshold by threshold, and how many people are selected then.

    The upper diagram has the selection rate of each group, and as a grey bar the rates that are
    possible for all people together.  The lower one has the least tolerance.  Thresholds at which
    no tolerance helps are hatched.

    Parameters
    ----------
    found : Reconcilable
        What :func:`isocost.reconcilable` returned.

    Attributes
    ----------
    threshold, tolerance : array
        The thresholds, and the least tolerance at each; NaN where there is none.
    selection_rates : {group: array}
        The share of each group that is selected.
    ax_, figure_, axes_
        The axes given or made, their figure, and {"selected": Axes, "tolerance": Axes}.
    lines_ : {group: Line2D}
        The selection rates.
    bars_ : {"possible", "tolerance"}
        What is possible for all people, and the tolerances.
    hatched_ : list
        The thresholds at which no tolerance helps.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> display = ReconcilableDisplay.from_tally(compas(), [0.3, 0.5, 0.8])
    >>> display.tolerance.round(4).tolist()
    [0.0004, 0.0, nan]
    >>> display.selection_rates["Caucasian"].round(3).tolist()
    [0.861, 0.354, nan]
    """

    found: Reconcilable

    def __post_init__(self) -> None:
        rule, step = "must be a Reconcilable", "pass what isocost.reconcilable returned"
        points = check_kind("found", self.found, Reconcilable, rule, step).points
        self.threshold: Floats = np.array([point.threshold for point in points])
        self.tolerance: Floats = np.array([point.tolerance for point in points])
        self.selection_rates: dict[Group, Floats] = {
            group: np.array([point.selection_rates[group] for point in points])
            for group in points[0].selection_rates
        }

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        thresholds: float | Iterable[float] | None = None,
        equal: str | Sequence[str] = ("fpr", "fnr"),
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """From a tally; the arguments are those of :func:`isocost.reconcilable`."""
        return cls(reconcilable(tally, thresholds, equal, **options))._drawn_on(ax)

    @classmethod
    def from_reconcilable(cls, found: Reconcilable, *, ax: Axes | None = None) -> Self:
        """From what :func:`isocost.reconcilable` returned."""
        return cls(found)._drawn_on(ax)

    @classmethod
    def _edges(cls, thresholds: Any = None, *args: Any, **options: Any) -> tuple[float, ...]:  # noqa: ARG003
        return () if thresholds is None else check_numbers("thresholds", thresholds)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        size, margin, gap = (5.2, 2.3), (0.7, 0.5), (0.0, 0.55)
        self.ax_, self.figure_, small = panels(ax, 2, 1, size, margin, gap)
        self.axes_ = dict(zip(("selected", "tolerance"), small, strict=True))
        self.bars_: dict[str, Any] = {}
        self.hatched_: list[Any] = []
        steps = np.diff(self.threshold)
        self._width = 0.7 * float(steps.min(initial=0.1))
        for panel in self.axes_.values():
            plain_axes(panel)
            panel.set_xlim(0.0, 1.0)
            for at in self.threshold[np.isnan(self.tolerance)]:
                self.hatched_.append(
                    panel.axvspan(
                        at - self._width / 2, at + self._width / 2, facecolor="#f4f4f4",
                        edgecolor="#c9c9c9", hatch="///", linewidth=0, zorder=0.5,
                    )
                )  # fmt: skip
        self._selected(self.axes_["selected"])
        self._tolerances(self.axes_["tolerance"])
        return self

    def _selected(self, ax: Axes) -> None:
        points = self.found.points
        lowest = np.array([point.lowest for point in points])
        height = np.array([point.highest for point in points]) - lowest
        self.bars_["possible"] = ax.bar(
            self.threshold, height, self._width, lowest, color=PALE, zorder=1,
            label="possible for all people",
        )  # fmt: skip
        lines = self.selection_rates
        if len(lines) > MOST_GROUPS:
            lines = {"all people": np.array([point.selection_rate for point in points])}
        self.lines_: dict[Group, Any] = {}
        names = names_of(lines)
        for (group, rates), look in zip(lines.items(), looks(len(lines)), strict=True):
            (self.lines_[group],) = ax.plot(
                self.threshold, rates, color=look.colour, linestyle=look.dashes, linewidth=1.6,
                marker=look.marker, markersize=4.5, zorder=3, label=names[group],
            )  # fmt: skip
        ax.set_ylim(0.0, 1.0)
        ax.yaxis.set_major_formatter(percent)
        title = f"people selected with equal {' and '.join(self.found.equal)}"
        ax.set_title(title, loc="left", fontsize=SIZE, color=INK)
        # Below both diagrams: in the upper one it would lie over a bar.
        handles = [self.bars_["possible"], *self.lines_.values()]
        self.legend_ = legend_below(self.ax_, handles)

    def _tolerances(self, ax: Axes) -> None:
        self.bars_["tolerance"] = ax.bar(
            self.threshold, self.tolerance, self._width, color=GREY, zorder=2
        )
        top = float(np.nanmax(self.tolerance, initial=0.0))
        ax.set_ylim(0.0, 1.2 * top if top > 0.001 else 0.01)
        title = "least tolerance (hatched: nobody or everybody would be selected)"
        ax.set_title(title, loc="left", fontsize=SIZE, color=INK)
        ax.set_xlabel("threshold", fontsize=SIZE, color=INK)
