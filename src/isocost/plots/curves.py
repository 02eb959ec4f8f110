"""What equality takes, what a threshold allows, how many people a repair needs: all as lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from isocost.checks import check_kind, check_listed, check_threshold, check_word
from isocost.costs import CostLike
from isocost.errors import Problem, UsageError
from isocost.groups import Group, names_of
from isocost.measures.table import MEASURES
from isocost.plots.display import (
    GREY,
    PALE,
    SMALL,
    Display,
    Label,
    axes_for,
    legend_below,
    looks,
    panels,
    percent,
    place_labels,
    plain_axes,
    write_title,
)
from isocost.repairs.counsel import titles_of
from isocost.repairs.frontier import NUMBERS, SHARE_NUMBERS, Frontier, frontier
from isocost.repairs.planning import RepairPlan, plan_repair
from isocost.repairs.reconcile import Reconcilable, reconcilable
from isocost.repairs.registry import REPAIRS
from isocost.tallies import DataOptions, TallyLike, as_tally
from isocost.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


TITLES = {
    "disparity": "costs differ by",
    "accuracy": "accuracy",
    "calibration_gap": "largest calibration gap",
    "changed": "people whose score changes",
    "mean_change": "mean change of a score",
    "by_coin": "people decided by a coin",
    "decisions": "decisions that change",
    "information": "variance of labels that scores explain",
} | {
    name: f"{MEASURES[name].title} among the decided"
    for name in SHARE_NUMBERS
    if name in MEASURES and name != "accuracy"
}

SHARES = {"accuracy", "changed", "by_coin", "decisions", *SHARE_NUMBERS}

HATCHED: dict[str, Any] = {
    "facecolor": "#f4f4f4", "edgecolor": "#c9c9c9", "hatch": "///", "linewidth": 0, "zorder": 0.5
}  # fmt: skip
"""How what cannot be had is drawn."""

USUAL = ("changed", "mean_change", "decisions", "accuracy")

USUAL_ALONG_SHARES = ("information", "accuracy", "fpr", "fnr", "ppv", "npv")
"""What is shown of the decided, if points differ in the share that is handed over."""


@dataclass
class FrontierDisplay(Display):
    """What repairs take as the tolerance goes from 0, equal costs, to the present disparity.

    A small diagram per measure, a line per frontier.  Tolerances that no repair can meet are
    hatched; a line begins at the smallest tolerance tried that can be met.  For "hand_over" lines
    run along the share that is handed over instead, and begin at the least that is enough.

    Parameters
    ----------
    frontiers : {name: Frontier}
        What :func:`isocost.frontier` returned.
    measures : sequence of str
        Which numbers of :class:`isocost.repairs.compare.FrontierPoint` to show; along shares
        handed over by default information, accuracy and rates of the decided.

    Attributes
    ----------
    tolerance : {name: array}
        The tolerances of each frontier, or the shares handed over.
    values : {name: {measure: array}}
        The numbers; NaN where it is not feasible.
    infeasible_to : float
        The largest tolerance tried that no frontier can meet; NaN if each can be met.  The least
        share that must be handed over.
    ax_, figure_, axes_
        The axes given or made, their figure, and {measure: Axes}.
    lines_ : {measure: {name: Line2D}}
        The lines.
    hatched_ : {measure: artist}
        The tolerances that cannot be met.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.plots import FrontierDisplay
    >>> display = FrontierDisplay.from_tally(compas(), "fpr", points=5)
    >>> display.tolerance["withhold"].round(4).tolist()
    [0.0, 0.0219, 0.0437, 0.0656, 0.0875]
    >>> display.values["withhold"]["changed"].round(4).tolist()
    [nan, nan, nan, 0.2594, 0.0]
    """

    frontiers: Mapping[str, Frontier]
    measures: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not self.frontiers:
            step = "pass what isocost.frontier returned"
            raise UsageError(Problem("frontiers", "must hold at least one", "none", step))
        along = {f.method: REPAIRS[f.method].defers for f in self.frontiers.values()}
        if len(set(along.values())) > 1:
            must = "must all run along a tolerance, or all along the share handed over"
            step = "draw hand_over in a figure of its own"
            raise UsageError(Problem("frontiers", must, ", ".join(along), step))
        self._along_shares = any(along.values())
        known = SHARE_NUMBERS[1:] if self._along_shares else NUMBERS
        usual = USUAL_ALONG_SHARES if self._along_shares else USUAL
        rule, step = f"must be some of {', '.join(known)}", f"use measures={usual!r}"
        self.measures = usual if self.measures is None else self.measures
        measures = check_listed("measures", self.measures, rule, step)
        unknown = [measure for measure in measures if measure not in known]
        if unknown or not measures:
            got = ", ".join(map(repr, unknown)) or "none"
            raise UsageError(Problem("measures", rule, got, step))
        self.tolerance: dict[str, Floats] = {
            name: np.array([p.share if self._along_shares else p.tolerance for p in curve.points])
            for name, curve in self.frontiers.items()
        }
        self.values: dict[str, dict[str, Floats]] = {
            name: {m: np.array([p.number(m) for p in curve.points]) for m in measures}
            for name, curve in self.frontiers.items()
        }
        failed = [
            max((p.tolerance for p in curve.points if not p.feasible), default=np.nan)
            for curve in self.frontiers.values()
        ]
        shares = [float(share[0]) for share in self.tolerance.values()]
        self.infeasible_to = float(np.min(shares if self._along_shares else failed))

    @classmethod
    def from_tally(
        cls,
        tally: TallyLike,
        cost: CostLike = "fnr",
        *,
        methods: Sequence[str] = ("withhold",),
        points: int = 21,
        threshold: float = 0.5,
        measures: Sequence[str] | None = None,
        ax: Axes | None = None,
        **reading: Unpack[DataOptions],
    ) -> Self:
        """The frontiers of one or several methods; the rest as for :func:`isocost.frontier`."""
        rule, step = "must be a list of methods", 'use methods=("withhold", "coarsen")'
        listed = [methods] if isinstance(methods, str) else methods
        names = check_listed("methods", listed, rule, step)
        if not names:
            raise UsageError(Problem("methods", rule, "none", step))
        tally = as_tally(tally, reading, check_threshold(threshold))
        frontiers = {
            method: frontier(tally, cost, method, points=points, threshold=threshold)
            for method in names
        }
        return cls(frontiers, measures).plot(ax)

    @classmethod
    def from_frontier(
        cls,
        frontiers: Frontier | Mapping[str, Frontier],
        *,
        measures: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """From one frontier, or several by name; see :func:`isocost.frontier`."""
        named = {frontiers.method: frontiers} if isinstance(frontiers, Frontier) else frontiers
        rule, step = "must be a Frontier, or several by name", "pass what isocost.frontier returned"
        check_kind("frontiers", named, Mapping, rule, step)
        for one in named.values():
            check_kind("frontiers", one, Frontier, rule, step)
        return cls(named, measures).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        measures = tuple(next(iter(self.values.values())))
        columns = min(len(measures), 2)
        size, margin, gap = (3.6, 2.5), (0.6, 0.4), (0.7, 0.55)
        self.ax_, self.figure_, small = panels(ax, len(measures), columns, size, margin, gap)
        self.axes_ = dict(zip(measures, small, strict=True))
        self.lines_: dict[str, dict[str, Any]] = {}
        self.hatched_: dict[str, Any] = {}
        for index, (measure, panel) in enumerate(self.axes_.items()):
            self._panel(panel, measure, index >= len(measures) - columns)
        self.figure_.draw_without_rendering()
        self._write(next(iter(self.axes_)))
        return self

    def _panel(self, ax: Axes, measure: str, lowest: bool) -> None:
        plain_axes(ax)
        widest = max(float(tolerance[-1]) for tolerance in self.tolerance.values())
        ax.set_xlim(0.0, widest or 1.0)
        write_title(ax, TITLES[measure])
        self.lines_[measure] = {}
        for (name, values), look in zip(self.values.items(), looks(len(self.values)), strict=True):
            (line,) = ax.plot(
                self.tolerance[name], values[measure], color=look.colour, linewidth=1.8,
                linestyle=look.dashes, marker=look.marker, markersize=4.5,
                markevery=_first(values[measure]), clip_on=False, zorder=3,
            )  # fmt: skip
            self.lines_[measure][name] = line
        _scale(ax, measure, [values[measure] for values in self.values.values()])
        if not np.isnan(self.infeasible_to):
            self.hatched_[measure] = ax.axvspan(0.0, self.infeasible_to, **HATCHED)
        if self._along_shares:
            ax.xaxis.set_major_formatter(percent)
        if lowest:
            ax.set_xlabel(self._tolerance_text())

    def _tolerance_text(self) -> str:
        """What may differ: costs, or the error rates at the threshold; or the share."""
        if self._along_shares:
            return "share of people handed over"
        of_rates = [name for name, repair in REPAIRS.items() if repair.goal == "rates"]
        hard = {frontier.method in of_rates for frontier in self.frontiers.values()}
        what = "costs" if hard == {False} else "FPR and FNR"
        return f"tolerance: how far {what} may differ" if len(hard) == 1 else "tolerance"

    def _write(self, measure: str) -> None:
        """Names beside the lines of the first diagram, and what the hatching means."""
        ax, labels, marks = self.axes_[measure], [], []
        for (name, line), look in zip(
            self.lines_[measure].items(), looks(len(self.values)), strict=True
        ):
            points = np.asarray(line.get_xydata())
            points = points[~np.isnan(points).any(axis=1)]
            if len(points):
                x, y = points[len(points) // 3]
                marks.append(_dense(points))
                labels.append(Label(name, (float(x), float(y)), look.ink, bold=True, prefer=60.0))
        if not np.isnan(self.infeasible_to):
            across = np.meshgrid(
                np.linspace(0.0, self.infeasible_to, 12), np.linspace(*ax.get_ylim(), 12)
            )
            marks.append(np.column_stack([part.ravel() for part in across]))
        self.texts_ = place_labels(ax, labels, np.vstack(marks) if marks else ())
        if not np.isnan(self.infeasible_to):
            wide = self.infeasible_to > 0.35 * ax.get_xlim()[1]
            note = ax.text(
                self.infeasible_to / 2.0, 0.5, "cannot\nbe had" if wide else "cannot be had",
                transform=ax.get_xaxis_transform(), rotation=0 if wide else 90, ha="center",
                va="center", fontsize=SMALL, color=GREY,
            )  # fmt: skip
            note.set_bbox({"facecolor": "#f4f4f4", "edgecolor": "none", "pad": 1.5})
            self.texts_.append(note)  # type: ignore[arg-type]


def _first(values: Floats) -> list[int]:
    """The index of the first number, to mark where a line begins."""
    return [int(index) for index in np.flatnonzero(~np.isnan(values))[:1]]


def _dense(points: Floats) -> Floats:
    steps = np.linspace(0, len(points) - 1, 80)
    return np.column_stack([np.interp(steps, np.arange(len(points)), c) for c in points.T])


def _scale(ax: Axes, measure: str, values: list[Floats]) -> None:
    """From 0 for losses; for accuracy only its range, but at least 2 percentage points."""
    known = np.concatenate(values)
    known = known[~np.isnan(known)]
    top = float(known.max(initial=0.0))
    if measure == "accuracy" and len(known):
        bottom = float(known.min())
        middle, half = (top + bottom) / 2.0, max((top - bottom) * 0.65, 0.01)
        ax.set_ylim(middle - half, middle + half)
    else:
        ax.set_ylim(0.0, 1.2 * top if top > 0.001 else 0.01)
    if measure in SHARES:
        ax.yaxis.set_major_formatter(percent)
    ax.locator_params(axis="y", nbins=5)
    ax.locator_params(axis="x", nbins=6)


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
    >>> from isocost.plots import ReconcilableDisplay
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
        tally: TallyLike,
        thresholds: float | Iterable[float] | None = None,
        equal: str | Sequence[str] = ("fpr", "fnr"),
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """From a tally or data; the arguments are those of :func:`isocost.reconcilable`."""
        return cls(reconcilable(tally, thresholds, equal, **options)).plot(ax)

    @classmethod
    def from_reconcilable(cls, answer: Reconcilable, *, ax: Axes | None = None) -> Self:
        """From what :func:`isocost.reconcilable` returned."""
        return cls(answer).plot(ax)

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
                    panel.axvspan(at - self._width / 2, at + self._width / 2, **HATCHED)
                )
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
        write_title(ax, f"people selected with equal {' and '.join(self.found.equal)}")
        # Below both diagrams: in the upper one it would lie over a bar.
        handles = [self.bars_["possible"], *self.lines_.values()]
        self.legend_ = legend_below(self.ax_, handles)

    def _tolerances(self, ax: Axes) -> None:
        self.bars_["tolerance"] = ax.bar(
            self.threshold, self.tolerance, self._width, color=GREY, zorder=2
        )
        top = float(np.nanmax(self.tolerance, initial=0.0))
        ax.set_ylim(0.0, 1.2 * top if top > 0.001 else 0.01)
        write_title(ax, "least tolerance (hatched: nobody or everybody would be selected)")
        ax.set_xlabel("threshold")


@dataclass
class RepairPlanDisplay(Display):
    """How far groups are expected to differ on new people, and at most, by the number of people.

    Parameters
    ----------
    plan : RepairPlan
        What :func:`isocost.plan_repair` returned.

    Attributes
    ----------
    people : array
        The mean number of people per group at each size tried.
    ax_, figure_
        The axes given or made, and their figure.
    lines_ : {"expected", "at most": Line2D}
        The lines.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.plots import RepairPlanDisplay
    >>> display = RepairPlanDisplay.from_tally(compas(), "reconcile", within=0.05, replicates=20)
    >>> display.people[:2].tolist()
    [768.75, 1537.5]
    """

    plan: RepairPlan

    def __post_init__(self) -> None:
        step = "pass what isocost.plan_repair returned"
        check_kind("plan", self.plan, RepairPlan, "must be a RepairPlan", step)
        now = list(self.plan.now.values())
        self.people = self.plan.times * (sum(now) / len(now))

    @classmethod
    def from_plan(cls, plan: RepairPlan, *, ax: Axes | None = None) -> Self:
        """From what :func:`isocost.plan_repair` returned."""
        return cls(plan).plot(ax)

    @classmethod
    def from_tally(
        cls,
        tally: TallyLike,
        method: str = "withhold",
        cost: CostLike = "fnr",
        *,
        threshold: float = 0.5,
        within: float = 0.02,
        replicates: int = 100,
        ax: Axes | None = None,
        **reading: Unpack[DataOptions],
    ) -> Self:
        """Plan a repair by one of the methods in ``isocost.REPAIRS``."""
        check_word("method", method, tuple(REPAIRS))
        repair, threshold = REPAIRS[method], check_threshold(threshold)
        of_cost: dict[str, Any] = {"cost": cost} if repair.goal == "cost" else {}
        tally = as_tally(tally, reading, *cls._edges(threshold=threshold))
        rule = repair.make_with(tally, threshold=threshold, **of_cost)
        return cls(plan_repair(tally, rule, within, replicates=replicates)).plot(ax)

    @classmethod
    def _edges(cls, *args: Any, threshold: float = 0.5, **options: Any) -> tuple[float, ...]:  # noqa: ARG003
        # Flipping scores needs both.
        return (threshold, 1.0 - threshold)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        self.ax_, self.figure_ = axes_for(ax, (5.2, 3.4))
        plain_axes(self.ax_)
        plan, (look, _) = self.plan, looks(2)
        self.lines_ = {}
        for name, values, dashes in (
            ("expected", plan.expected, "-"),
            ("at most", plan.limit, "--"),
        ):
            (self.lines_[name],) = self.ax_.plot(
                self.people, values, color=look.colour, linestyle=dashes, linewidth=1.8,
                marker=look.marker, markersize=4, zorder=3,
            )  # fmt: skip
            self.ax_.annotate(
                name, (self.people[0], values[0]), (6, 3), textcoords="offset points",
                fontsize=SMALL, color=look.ink,
            )  # fmt: skip
        self.ax_.axhline(plan.within, color=GREY, linewidth=1.0, zorder=1)
        self.ax_.annotate(
            f"asked for:\n{plan.within:g}", (1.0, plan.within), (4, 0), fontsize=SMALL, color=GREY,
            xycoords=self.ax_.get_yaxis_transform(), textcoords="offset points", va="center",
        )  # fmt: skip
        self.ax_.set_xscale("log")
        self.ax_.minorticks_off()
        self.ax_.set_xticks(self.people[:: len(self.people) // 7 + 1])
        self.ax_.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        self.ax_.set_ylim(bottom=0.0)
        self.ax_.set_xlabel("people per group")
        title = f"{plan.rule.method}: difference in {titles_of(plan.rule.promise)} on new people"
        write_title(self.ax_, title)
        return self
