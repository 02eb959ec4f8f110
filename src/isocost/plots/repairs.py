"""Displays of repairs: what equality takes, at which thresholds, with how many people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from isocost.cells import add_up
from isocost.checks import check_kind, check_listed, check_word
from isocost.costs import CostLike
from isocost.errors import Problem, UsageError
from isocost.groups import Group, names_of
from isocost.judging.frontier import NUMBERS, SHARE_NUMBERS, Frontier, frontier
from isocost.judging.offers import Changes, changes
from isocost.judging.plan import RepairPlan, plan_repair
from isocost.measures.table import MEASURES
from isocost.plots.display import (
    GREY,
    INK,
    PALE,
    SIZE,
    SMALL,
    Display,
    Label,
    Look,
    Style,
    draws,
    looks,
    percent,
    place_labels,
    short_name,
    short_names,
    write,
    write_title,
)
from isocost.question import DEFAULT, Question
from isocost.repairs.base import titles_of
from isocost.repairs.reconcile import Reconcilable, reconcilable
from isocost.repairs.table import REPAIRS
from isocost.rules import Rule
from isocost.tallies import Tally
from isocost.typing import Bools, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Frontiers

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

USUAL = ("changed", "mean_change", "decisions", "accuracy")

USUAL_ALONG_SHARES = ("information", "accuracy", "fpr", "fnr", "ppv", "npv")
"""The numbers of the people decided, if points differ in the share that is handed over."""

HATCHED = Style(facecolor="#f4f4f4", edgecolor="#c9c9c9", hatch="///", linewidth=0, zorder=0.5)
"""The look of what is impossible."""


@dataclass
class FrontierDisplay(Display):
    """The price of repairs as the tolerance goes from 0, equal costs, to the present disparity.

    A small diagram per measure, a line per frontier.  Tolerances that no repair can meet are
    hatched; a line begins at the smallest tolerance tried that can be met.  For "hand_over" lines
    run along the share that is handed over instead, and begin at the least that is enough.

    Parameters
    ----------
    frontiers : {name: Frontier}
        What :func:`isocost.frontier` returned.
    measures : sequence of str
        Which numbers of :class:`isocost.judging.compare.FrontierPoint` to show; along shares
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
    axes_, hatched_ : {measure: Axes or artist}
        The diagrams, and the tolerances that cannot be met.
    lines_ : {measure: {name: Line2D}}
        The lines.
    texts_ : list of artists
        The names of the lines, and what the hatching means.

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
        rule, step = "must be a Frontier, or several by name", "pass what isocost.frontier returned"
        check_kind("frontiers", self.frontiers, Mapping, rule, step)
        for one in self.frontiers.values():
            check_kind("frontiers", one, Frontier, rule, step)
        if not self.frontiers:
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
    @draws
    def from_tally(
        cls,
        tally: Tally,
        cost: CostLike = DEFAULT.cost,
        *,
        methods: Sequence[str] = ("withhold",),
        points: int = 21,
        threshold: float = DEFAULT.threshold,
        measures: Sequence[str] | None = None,
    ) -> Self:
        """The frontiers of one or several methods.

        Parameters
        ----------
        methods : sequence of str
            One line each.
        points : int
            Number of tolerances, as for :func:`isocost.frontier`.
        measures : sequence of str
            As for the class.
        """
        rule, step = "must be a list of methods", 'use methods=("withhold", "coarsen")'
        listed = [methods] if isinstance(methods, str) else methods
        names = check_listed("methods", listed, rule, step)
        if not names:
            raise UsageError(Problem("methods", rule, "none", step))
        settings = Style(points=points, threshold=threshold)
        return cls({name: frontier(tally, cost, name, **settings) for name in names}, measures)

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
        return cls(named, measures).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        measures = tuple(next(iter(self.values.values())))
        across = "share of people handed over"
        if not self._along_shares:
            goals = {REPAIRS[frontier.method].goal for frontier in self.frontiers.values()}
            what = "FPR and FNR" if "rates" in goals else "costs"
            across = "tolerance" if len(goals) > 1 else f"tolerance: how far {what} may differ"
        shape = (3.6, 2.5), (0.6, 0.4), (0.7, 0.55)
        panels = self._panels(ax, len(measures), min(len(measures), 2), *shape, across)
        self.axes_ = dict(zip(measures, panels, strict=True))
        self.lines_: dict[str, dict[str, Any]] = {measure: {} for measure in measures}
        self.hatched_ = dict[str, Any]()
        widest = max(float(tolerance[-1]) for tolerance in self.tolerance.values())
        for measure, panel in self.axes_.items():
            panel.set_xlim(0.0, widest or 1.0)
            write_title(panel, TITLES[measure])
            for name, look in zip(self.values, looks(len(self.values)), strict=True):
                values = self.values[name][measure]
                # A mark where the line begins.
                first = np.flatnonzero(~np.isnan(values))[:1].tolist()
                line = look.line(linewidth=1.8, markevery=first, clip_on=False, zorder=3)
                (self.lines_[measure][name],) = panel.plot(self.tolerance[name], values, **line)
            known = np.concatenate([values[measure] for values in self.values.values()])
            known = known[~np.isnan(known)]
            # From 0 for losses; for accuracy only its range, but at least 2 percentage points.
            if measure == "accuracy" and len(known):
                middle, half = (known.max() + known.min()) / 2.0, max(np.ptp(known) * 0.65, 0.01)
                panel.set_ylim(middle - half, middle + half)
            else:
                from_zero(panel, known)
            if measure in SHARES:
                panel.yaxis.set_major_formatter(percent)
            panel.locator_params(axis="y", nbins=5)
            panel.locator_params(axis="x", nbins=6)
            if not np.isnan(self.infeasible_to):
                self.hatched_[measure] = panel.axvspan(0.0, self.infeasible_to, **HATCHED)
            if self._along_shares:
                panel.xaxis.set_major_formatter(percent)
        self.figure_.draw_without_rendering()
        self._write(measures[0])
        return self

    def _write(self, measure: str) -> None:
        """Names beside the lines of the first diagram, and what the hatching means."""
        ax, labels, marks = self.axes_[measure], [], list[tuple[Floats, float]]()
        lines, end = self.lines_[measure], self.infeasible_to
        for (name, line), look in zip(lines.items(), looks(len(lines)), strict=True):
            points = np.asarray(line.get_xydata())
            points = points[~np.isnan(points).any(axis=1)]
            if len(points):
                point = points[len(points) // 3]
                labels.append(Label(name, point, look.ink, bold=True, prefer=60.0))
                steps, rows = np.linspace(0, len(points) - 1, 80), np.arange(len(points))
                along = np.column_stack([np.interp(steps, rows, c) for c in points.T])
                marks.append((along, 1.0))
        if np.isnan(end):
            self.texts_: list[Any] = [*place_labels(ax, labels, marks)]
            return
        x, y = np.linspace(0.0, end, 12), np.linspace(*ax.get_ylim(), 12)
        marks.append((np.array(np.meshgrid(x, y)).reshape(2, -1).T, 1.0))
        self.texts_ = [*place_labels(ax, labels, marks)]
        middle = Style(ha="center", va="center", transform=ax.get_xaxis_transform())
        middle["rotation"] = 0 if end > 0.35 * ax.get_xlim()[1] else 90
        middle["bbox"] = {"facecolor": "#f4f4f4", "edgecolor": "none", "pad": 1.5}
        self.texts_.append(write(ax, end / 2.0, 0.5, "impossible", **middle))


def from_zero(ax: Axes, values: Floats) -> None:
    """Let the axis of the values begin at 0, with some room above them."""
    top = float(np.nanmax(values, initial=0.0))
    ax.set_ylim(0.0, 1.2 * top if top > 0.001 else 0.01)


# Thresholds

MOST_GROUPS = 8
"""With more groups than this, only all people together are drawn."""


@dataclass
class ReconcilableDisplay(Display):
    """Thresholds at which rates can be equal, and how many people are selected then.

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
    axes_ : {"selected": Axes, "tolerance": Axes}
        The diagrams.
    lines_, bars_, hatched_ : {group: Line2D}, {"possible", "tolerance"}, list
        The selection rates; what is possible for all people, and the tolerances; the thresholds at
        which no tolerance helps.

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
    @draws
    def from_tally(
        cls,
        tally: Tally,
        thresholds: float | Iterable[float] | None = None,
        equal: str | Sequence[str] = ("fpr", "fnr"),
        **options: Any,
    ) -> Self:
        """The thresholds at which rates of a tally can be equal.

        Parameters
        ----------
        thresholds, equal, options
            As for :func:`isocost.reconcilable`.
        """
        return cls(reconcilable(tally, thresholds, equal, **options))

    @classmethod
    def from_reconcilable(cls, answer: Reconcilable, *, ax: Axes | None = None) -> Self:
        """From what :func:`isocost.reconcilable` returned."""
        return cls(answer).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        panels = self._panels(ax, 2, 1, (5.2, 2.3), (0.7, 0.5), (0.0, 0.55))
        self.axes_ = dict(zip(("selected", "tolerance"), panels, strict=True))
        at, points = self.threshold, self.found.points
        width = 0.7 * float(np.diff(at).min(initial=0.1))
        self.hatched_ = list[Any]()
        for panel in panels:
            panel.set_xlim(0.0, 1.0)
            for never in at[np.isnan(self.tolerance)]:
                self.hatched_.append(panel.axvspan(never - width / 2, never + width / 2, **HATCHED))
        upper, lower = panels
        lowest, highest = np.array([(point.lowest, point.highest) for point in points]).T
        self.bars_ = {
            "possible": upper.bar(at, highest - lowest, width, lowest, color=PALE, zorder=1),
            "tolerance": lower.bar(at, self.tolerance, width, color=GREY, zorder=2),
        }
        lines = self.selection_rates
        if len(lines) > MOST_GROUPS:
            lines = {"all people": np.array([point.selection_rate for point in points])}
        self.lines_ = dict[Group, Any]()
        for (group, rates), look in zip(lines.items(), looks(len(lines)), strict=True):
            line = look.line(linewidth=1.6, zorder=3)
            (self.lines_[group],) = upper.plot(at, rates, **line)
        upper.set_ylim(0.0, 1.0)
        upper.yaxis.set_major_formatter(percent)
        write_title(upper, f"people selected with equal {' and '.join(self.found.equal)}")
        from_zero(lower, self.tolerance)
        write_title(lower, "least tolerance (hatched: nobody or everybody would be selected)")
        lower.set_xlabel("threshold")
        # Below both diagrams: in the upper one it would lie over a bar.
        names = short_names(list(names_of(lines).values()), 40, 1)
        legend = {"possible for all people": self.bars_["possible"]}
        legend |= dict(zip(names, self.lines_.values(), strict=True))
        self._legend(legend)
        return self


# Numbers of people


@dataclass
class RepairPlanDisplay(Display):
    """The expected and the largest difference of groups on new people, by the number of people.

    Parameters
    ----------
    plan : RepairPlan
        What :func:`isocost.plan_repair` returned.

    Attributes
    ----------
    people : array
        The mean number of people per group at each size tried.
    lines_ : {"expected", "at most": Line2D}
        The lines.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.plots import RepairPlanDisplay
    >>> display = RepairPlanDisplay.from_tally(compas(), "reconcile", within=0.05, remakes=20)
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
    @draws
    def from_tally(
        cls,
        tally: Tally,
        method: str = "withhold",
        cost: CostLike = DEFAULT.cost,
        *,
        threshold: float = DEFAULT.threshold,
        within: float = 0.02,
        remakes: int = 100,
    ) -> Self:
        """Plan a repair.

        Parameters
        ----------
        method : str
            One of ``isocost.REPAIRS``.
        within, remakes
            As for :func:`isocost.plan_repair`.
        """
        check_word("method", method, tuple(REPAIRS))
        rule = REPAIRS[method].rule(tally, Question(cost, threshold))
        return cls(plan_repair(tally, rule, within, remakes=remakes))

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        ax, plan, people = self._on(ax, (5.2, 3.4)), self.plan, self.people
        (look,), small = looks(1), Style(fontsize=SMALL, textcoords="offset points")
        mark = Style(marker=look.marker, markersize=4, linewidth=1.8, zorder=3)
        self.lines_ = dict[str, Any]()
        for name, values, line in (("expected", plan.expected, "-"), ("at most", plan.limit, "--")):
            (self.lines_[name],) = ax.plot(people, values, line, color=look.colour, **mark)
            ax.annotate(name, (people[0], values[0]), (6, 3), color=look.ink, **small)
        ax.axhline(plan.within, color=GREY, linewidth=1.0, zorder=1)
        right = Style(xycoords=ax.get_yaxis_transform(), va="center", color=GREY)
        ax.annotate(f"asked for:\n{plan.within:g}", (1.0, plan.within), (4, 0), **right, **small)
        ax.set_xscale("log")
        ax.minorticks_off()
        ax.set_xticks(people[:: len(people) // 7 + 1])
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        ax.set_ylim(bottom=0.0)
        ax.set_xlabel("people per group")
        equal = titles_of(plan.rule.promise)
        write_title(ax, f"{plan.rule.method}: difference in {equal} on new people")
        return self


# Changes of scores

STEPS = 40
"""Number of steps to which old and new scores are rounded for drawing."""

LARGEST = 130.0
"""The area of the largest bubble, in square points."""

SAME = 1e-12


@dataclass(frozen=True)
class Fates:
    """Possible changes for the people of a group, in segments that are shares of it.

    The old score is the mean of its bin.
    """

    old: Floats
    new: Floats
    share: Floats

    @property
    def moved(self) -> Bools:
        """True where the score changes."""
        return np.abs(self.new - self.old) > SAME

    def gathered(self) -> Fates:
        """Segments whose old and new scores are nearly the same merged, by their means."""
        # What did not move must stay on the diagonal.
        key = np.column_stack([np.rint(self.old * STEPS), np.rint(self.new * STEPS), self.moved])
        _, index = np.unique(key, axis=0, return_inverse=True)
        index = index.ravel()
        share = add_up(index, self.share, int(index.max()) + 1)
        old, new = (np.bincount(index, self.share * x) / share for x in (self.old, self.new))
        return Fates(old, new, share)


def fates(tally: Tally, rule: Rule, group: int) -> Fates:
    """The changes that a rule may make to a group of the tally, given by its index.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> changed = fates(compas(), ic.withhold(compas(), "fpr", 0.07), 1)
    >>> round(float(changed.share[changed.moved].sum()), 4)
    0.5194
    """
    cells, portions = tally.cells, []
    for portion in rule.portions(tally, group):
        if portion.row is not None and portion.row.defers:
            # People handed over have no new score.
            continue
        before = cells.wh[portion.cells] / cells.w[portion.cells]
        weight = cells.w[portion.cells] * portion.share
        portions.append((before, portion.after(before), weight))
    old, new, weight = (np.concatenate(columns) for columns in zip(*portions, strict=True))
    total = tally.totals.weight[group]
    some = weight > SAME * total
    return Fates(old[some], new[some], weight[some] / total)


@dataclass
class ChangeDisplay(Display):
    """Old score against new, a small diagram for each group (down) and rule (across).

    The area of a bubble is a share of the group.  On the diagonal nothing changes; the
    further from it, the larger the change.  In the shaded corners the decision changes too.

    Parameters
    ----------
    groups : sequence
        The groups.
    fates : {rule: sequence of Fates}
        What each rule may do to each group.
    changes : {rule: sequence of Changes}
        The same in a few numbers.
    threshold : float
        Scores at or above this are treated as positive.

    Attributes
    ----------
    shown : list of int
        The indices of the groups that some rule changes; they have a row each.
    axes_, moved_, kept_ : {(rule, group): Axes or artist}
        The diagrams, and their bubbles off the diagonal and on it.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> from isocost.plots import ChangeDisplay
    >>> display = ChangeDisplay.from_tally(compas(), [ic.withhold(compas(), "fpr", 0.07)])
    >>> [display.names[index] for index in display.shown]
    ['Caucasian']
    """

    groups: Sequence[Group]
    fates: Mapping[str, Sequence[Fates]]
    changes: Mapping[str, Sequence[Changes]]
    threshold: float = DEFAULT.threshold

    def __post_init__(self) -> None:
        moved = [[fate.moved.any() for fate in of_groups] for of_groups in self.fates.values()]
        self.shown: list[int] = np.flatnonzero(np.any(moved, axis=0)).tolist()

    @classmethod
    @draws
    def from_tally(cls, tally: Tally, rules: Any, *, threshold: float = DEFAULT.threshold) -> Self:
        """The changes that rules would make to the scores of a tally."""
        may, few = dict[str, list[Fates]](), dict[str, list[Changes]]()
        for name, rule in rules.items():
            indices = range(len(tally.groups))
            may[name] = [fates(tally, rule, index) for index in indices]
            few[name] = [changes(tally, rule, threshold, index) for index in indices]
        return cls(tally.groups, may, few, threshold)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        rows, columns = max(len(self.shown), 1), max(len(self.fates), 1)
        size, margin, gap = (2.45, 2.85), (0.6, 0.4), (0.45, 0.75)
        panels = self._panels(ax, rows * columns, columns, size, margin, gap, "score before")
        self.axes_ = dict[tuple[str, Group], Any]()
        self.moved_, self.kept_ = dict[tuple[str, Group], Any](), dict[tuple[str, Group], Any]()
        if not self.shown:
            for panel in panels:
                panel.set_axis_off()
            write(panels[0], 0.5, 0.5, "nobody is changed", ha="center", fontsize=SIZE)
            return self
        style, places = looks(len(self.groups)), iter(panels)
        for index in self.shown:
            for rule in self.fates:
                self._diagram(next(places), rule, index, style[index])
        for panel, index in zip(panels[::columns], self.shown, strict=True):
            bold = Style(fontweight="bold", parse_math=False, color=style[index].ink)
            panel.set_ylabel(f"{short_name(self.names[index])}\nscore after", **bold)
        for panel, rule in zip(panels, self.fates, strict=False):
            write_title(panel, short_name(rule), fontsize=SIZE + 0.5, fontweight="bold", pad=27)
        write(panels[0], 0.0, 1.0, "decision\nchanges", va="top", zorder=0.6)
        return self

    def _diagram(self, ax: Axes, rule: str, index: int, look: Look) -> None:
        key, at, (low, high) = (rule, self.groups[index]), self.threshold, (-0.03, 1.03)
        ax.set(xlim=(low, high), ylim=(low, high))
        ax.set(xticks=np.arange(6) / 5, yticks=np.arange(6) / 5, aspect="equal")
        for x, y in (((low, at), (at, high)), ((at, high), (low, at))):
            ax.fill_between(x, *y, color="#f1f1f1", linewidth=0, zorder=0)
        ax.plot([0, 1], [0, 1], color="#bdbdbd", linewidth=0.8, zorder=1)
        fate = self.fates[rule][index].gathered()
        area = np.maximum(LARGEST * fate.share / max(float(fate.share.max()), 0.05), 2.0)
        for chosen, store, colour, zorder in (
            (~fate.moved, self.kept_, "#9a9a9a", 2),
            (fate.moved, self.moved_, look.colour, 3),
        ):
            bubble = Style(s=area[chosen], alpha=0.75, linewidth=0, zorder=zorder)
            store[key] = ax.scatter(fate.old[chosen], fate.new[chosen], color=colour, **bubble)
        self.axes_[key] = ax
        above = Style(transform=ax.transAxes, va="bottom", linespacing=1.25)
        change, text = self.changes[rule][index], "nobody is changed\n"
        if change.changed:
            text = f"{change.changed:.1%} changed, by up to {change.largest_change:.2f}\n"
            text += f"{change.decisions:.1%} of decisions; coin for {change.by_coin:.1%}"
        write(ax, 0.0, 1.015, text, color=INK, **above)
