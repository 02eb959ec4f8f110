"""MeasuresDisplay: any measures of an audit, sorted, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from isocost.checks import check_threshold
from isocost.groups import Group, group_names
from isocost.measures.audit import Audit, audit
from isocost.measures.measure import Measure
from isocost.measures.table import Chosen, chosen_measures
from isocost.plots.display import (
    GREY,
    INK,
    PALE,
    SMALL,
    Display,
    Look,
    legend_below,
    level_of,
    looks,
    panels,
    plain_axes,
    root_figure,
    short_names,
    write_title,
)
from isocost.plots.predictive import check_audit
from isocost.question import DEFAULT
from isocost.tallies import DataOptions, Tally, TallyLike, as_tally
from isocost.typing import Floats
from isocost.verdict.judgement import MIN_GROUP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 26
"""Letters of a name in a line; longer ones take two."""

COLUMNS = 3
"""Number of measures side by side."""

RANKS = ("auc", "calibration_slope")
"""What is drawn unless measures are chosen."""


@dataclass
class MeasuresDisplay(Display):
    """A dot plot of each measure: a line per group, sorted by value, with intervals.

    The dotted line is the value of everybody together, the solid one the ideal value of a measure
    that has one.  A group too small to be compared is hollow.

    Parameters
    ----------
    groups : sequence
        The groups.
    measures : sequence of Measure
        One diagram each.
    values : array of shape (measures, groups)
        NaN where a number is not defined; such a group stands at the bottom, with a dash.
    intervals : array of shape (measures, groups, 2)
        The low and the high end; NaN for none.
    overall : array
        The value of everybody together for each measure, or NaN.
    small : sequence
        Groups too small to be compared.
    confidence : float or None
        Of the intervals.

    Attributes
    ----------
    names : list of str
        The names of the groups.
    order : {measure: list of groups}
        From the highest value to the lowest; those without a value last.
    ax_, figure_, axes_
        The axes that were given or made, their figure, and the small axes by measure.
    dots_, bars_ : {measure: {group: artist}}
        Values and intervals.
    arrows_ : list of Annotation
        Ends of intervals that are not bounded, out of the picture.
    ideal_, overall_ : {measure: Line2D}
        The lines, where there are any.
    legend_ : Legend
        What the marks are.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.plots import MeasuresDisplay
    >>> display = MeasuresDisplay.from_tally(compas(), ["auc", "calibration_slope"])
    >>> display.order["auc"], display.values.round(3).tolist()
    (['Caucasian', 'African-American'], [[0.692, 0.693], [0.971, 1.004]])
    """

    groups: Sequence[Group]
    measures: Sequence[Measure]
    values: Floats
    intervals: Floats
    overall: Floats
    small: Sequence[Group] = field(default_factory=tuple)
    confidence: float | None = 0.95

    def __post_init__(self) -> None:
        self.names = group_names(list(self.groups))
        self.order: Mapping[str, list[Group]] = {
            measure.name: [self.groups[i] for i in np.argsort(-of_groups, kind="stable")]
            for measure, of_groups in zip(self.measures, self.values, strict=True)
        }

    @classmethod
    def from_tally(
        cls,
        tally: TallyLike,
        measures: Chosen = RANKS,
        *,
        threshold: float = 0.5,
        confidence: float | None = 0.95,
        reference: Group | None = None,
        ax: Axes | None = None,
        **reading: Unpack[DataOptions],
    ) -> Self:
        """Measures of the groups of a tally.

        Parameters
        ----------
        tally : Tally, or data
            At least two groups with positives and negatives.
        measures : str or sequence
            A family, names of :data:`isocost.MEASURES`, or measures of your own; as for
            :func:`isocost.audit`.
        threshold, confidence, reference
            As for :func:`isocost.audit`.
        ax : Axes, optional
            Axes to draw on; by default those of a new figure, ``figure_``.
        **reading
            With data: the keywords of :func:`isocost.tally`.
        """
        tally = as_tally(tally, reading, check_threshold(threshold))
        audited = _audited(tally, measures, threshold, confidence, reference)
        return cls._of(audited, chosen_measures(measures).shown).plot(ax)

    @classmethod
    def from_audit(cls, audit: Audit, measures: Chosen = None, *, ax: Axes | None = None) -> Self:
        """Measures of an audit: all that it prints, or those chosen.

        What it has not computed is measured from its tally, with its settings.
        """
        checked = check_audit(audit)
        names = checked.shown if measures is None else chosen_measures(measures).shown
        if not all(name in checked.measures for name in names):
            checked = _audited(
                checked.tally, measures, checked.threshold, checked.confidence,
                checked.question.reference, checked.question.min_group,
            )  # fmt: skip
        return cls._of(checked, names).plot(ax)

    @classmethod
    def _of(cls, audited: Audit, names: Sequence[str]) -> Self:
        groups, none = audited.groups, (math.nan, math.nan)
        return cls(
            tuple(groups),
            [audited.measures[name] for name in names],
            np.array([[numbers[name] for numbers in groups.values()] for name in names]),
            np.array([[m.intervals.get(name, none) for m in groups.values()] for name in names]),
            np.array([audited.overall[name] for name in names]),
            tuple(group for group in groups if group not in audited.compared),
            audited.confidence,
        )

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure; more groups make it higher."""
        count = len(self.measures)
        columns = 2 if count == 4 else min(count, COLUMNS)
        self._short = short_names(self.names, WIDTH)
        lines = max(name.count("\n") + 1 for name in self._short)
        longest = max(len(line) for name in self._short for line in name.splitlines())
        room = 0.25 + longest * 0.062
        high = len(self.names) * (0.08 + 0.13 * lines) + 0.3
        size, margin = (2.3 + room, high + 0.75), (0.2, 0.2)
        self.ax_, self.figure_, small = panels(ax, count, columns, size, margin, (room, 0.75))
        self.axes_ = {m.name: panel for m, panel in zip(self.measures, small, strict=True)}
        self.dots_: dict[str, dict[Group, Any]] = {}
        self.bars_: dict[str, dict[Group, Any]] = {}
        self.arrows_: list[Any] = []
        self.ideal_: dict[str, Any] = {}
        self.overall_: dict[str, Any] = {}
        for index, measure in enumerate(self.measures):
            self._lines(measure, float(self.overall[index]))
            self._groups(index, measure.name)
            self._limits(index, measure)
            self._rows(measure, lines)
        self._legend()
        return self

    def _lines(self, measure: Measure, overall: float) -> None:
        """The ideal value, that of everybody, and what is measured."""
        ax = self.axes_[measure.name]
        plain_axes(ax)
        ax.spines["left"].set_visible(False)
        if measure.ideal is not None:
            self.ideal_[measure.name] = ax.axvline(
                measure.ideal, color=INK, linewidth=1.0, zorder=1
            )
        if math.isfinite(overall):
            self.overall_[measure.name] = ax.axvline(
                overall, color=GREY, linewidth=1.1, linestyle=(0, (1.2, 1.6)), zorder=1.1
            )
        write_title(ax, measure.title, fontweight="bold")

    def _groups(self, index: int, name: str) -> None:
        """A dot and a bar for each group, the highest on top."""
        ax, index_of = self.axes_[name], {group: i for i, group in enumerate(self.groups)}
        style: list[Look] = looks(len(self.names))
        self.dots_[name], self.bars_[name] = {}, {}
        known = self.values[index][np.isfinite(self.values[index])]
        for row, group in enumerate(self.order[name]):
            look, value = style[index_of[group]], float(self.values[index, index_of[group]])
            if not math.isfinite(value):
                middle = float(known.mean()) if len(known) else 0.5
                ax.text(
                    middle, row, "not defined", ha="center", va="center", fontsize=SMALL,
                    color=GREY, zorder=2, backgroundcolor=ax.get_facecolor(),
                )  # fmt: skip
                continue
            # An end that is not bounded is an arrow out of the picture.
            ends = [(e, np.sign(e)) for e in map(float, self.intervals[index, index_of[group]])]
            low, high = (value if math.isinf(end) else end for end, _ in ends)
            (self.bars_[name][group],) = ax.plot(
                [low, high], [row, row], color=look.colour, linewidth=1.6, solid_capstyle="butt",
                zorder=2,
            )  # fmt: skip
            for sign in (sign for end, sign in ends if math.isinf(end)):
                self._unbounded(ax, value, row, float(sign), look)
            (self.dots_[name][group],) = ax.plot(
                value, row, color=look.colour, marker="o", markersize=5.5, zorder=3,
                markerfacecolor="white" if group in self.small else look.colour,
                linestyle="none", clip_on=False,
            )  # fmt: skip

    def _unbounded(self, ax: Axes, value: float, row: int, sign: float, look: Look) -> None:
        """An arrow from a dot to the edge of its diagram."""
        self.arrows_.append(
            ax.annotate(
                "", xy=(1.0 if sign > 0 else 0.0, row), xycoords=ax.get_yaxis_transform(),
                xytext=(value, row), textcoords="data", zorder=2,
                arrowprops={"arrowstyle": "->", "color": look.colour, "linewidth": 1.6,
                            "shrinkA": 0.0, "shrinkB": 0.0},
            )
        )  # fmt: skip

    def _limits(self, index: int, measure: Measure) -> None:
        """All values and the intervals of the groups compared; those of small ones may go on."""
        compared = [group not in self.small for group in self.groups]
        ideal = [] if measure.ideal is None else [measure.ideal]
        shown = [*self.values[index], *self.intervals[index][compared].ravel(), *ideal]
        finite = np.array([x for x in (*shown, self.overall[index]) if math.isfinite(x)])
        if len(finite):
            pad = max(0.05 * float(np.ptp(finite)), 1e-3)
            self.axes_[measure.name].set_xlim(finite.min() - pad, finite.max() + pad)

    def _rows(self, measure: Measure, lines: int) -> None:
        """The names, as large as the rows allow."""
        ax, count = self.axes_[measure.name], len(self.names)
        index_of = {group: i for i, group in enumerate(self.groups)}
        order, style = [index_of[group] for group in self.order[measure.name]], looks(count)
        ax.set_ylim(count - 0.4, -0.6)
        ax.set_yticks(range(count), [self._short[index] for index in order])
        ax.hlines(range(count), 0, 1, transform=ax.get_yaxis_transform(), color=PALE,
                  linewidth=0.5, zorder=0.5)  # fmt: skip
        high = ax.get_window_extent().height * 72.0 / root_figure(ax).dpi
        size = min(SMALL, high / (count + 0.2) / lines / 1.2)
        ax.tick_params(axis="y", length=0)
        for label, index in zip(ax.get_yticklabels(), order, strict=True):
            label.set(fontsize=size, color=style[index].ink, parse_math=False, linespacing=1.05)
        ax.locator_params(axis="x", nbins=5)

    def _legend(self) -> None:
        self.legend_ = legend_below(self.ax_, self.handles(), inches=0.35)

    def handles(self) -> list[Any]:
        """What the legend explains."""
        from matplotlib.lines import Line2D

        marks: dict[str, Any] = {"color": GREY, "marker": "o", "markersize": 5.5}
        handles = [
            Line2D([], [], linewidth=1.6, label=f"group{level_of(self.confidence)}", **marks)
        ]
        if self.small:
            handles.append(
                Line2D([], [], linewidth=1.6, markerfacecolor="white", label="small group", **marks)
            )
        if self.overall_:
            handles.append(
                Line2D([], [], color=GREY, linestyle=(0, (1.2, 1.6)), label="all people")
            )
        if self.ideal_:
            handles.append(Line2D([], [], color=INK, linewidth=1.0, label="ideal"))
        if self.arrows_:
            handles.append(
                Line2D([], [], color=GREY, marker=">", markersize=4, label="not bounded")
            )
        return handles


def _audited(
    tally: Tally,
    measures: Chosen,
    threshold: float,
    confidence: float | None,
    reference: Group | None,
    min_group: int = MIN_GROUP,
) -> Audit:
    """An audit that has these measures."""
    chosen = chosen_measures(measures)
    # Only calibration gaps need random draws.
    draws = DEFAULT.replicates if any(chosen.rows[name].of_levels for name in chosen.shown) else 0
    return audit(
        tally, threshold=threshold, confidence=confidence, replicates=draws, measures=measures,
        reference=reference, min_group=min_group, warn=False,
    )  # fmt: skip
