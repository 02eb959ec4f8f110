"""What decisions at a threshold are worth: predictive values in a plane, and net benefit.

If scores are calibrated, PPV is the mean score of those selected and FOR that of those passed over,
so PPV is at least the threshold and FOR at most.  The base rate lies between,
mu = s PPV + (1 - s) FOR for a share s selected: the line from (FOR, PPV) to (mu, mu) has slope
-(1 - s) / s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from isocost.checks import check_confidence, check_kind, check_threshold
from isocost.groups import Group, group_names
from isocost.measures.audit import Audit
from isocost.measures.derived import Estimated, NetBenefitCurve, net_benefit_curve
from isocost.measures.margins import derived_interval, mean_interval, means_of
from isocost.measures.table import MEASURES
from isocost.plots.display import (
    GREY,
    PALE,
    SIZE,
    SMALL,
    Display,
    Label,
    Look,
    axes_for,
    legend_below,
    level_of,
    looks,
    panels,
    percent,
    place_labels,
    plain_axes,
    short_name,
    short_names,
    write_title,
)
from isocost.tallies import DataOptions, Tally, TallyLike, as_tally
from isocost.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMED = 8
"""With more groups than this, only those with the highest and lowest values are named."""

DASHED = (0, (4, 2))

MANY = 9
"""With more groups than this, the diagrams of the groups are smaller."""


def check_audit(audit: Any) -> Audit:
    """Raise unless the value is an audit."""
    step = "pass what isocost.audit returned"
    checked: Audit = check_kind("audit", audit, Audit, "must be an audit", step)
    return checked


@dataclass
class PredictiveValuesDisplay(Display):
    """Groups in the plane of false omission rate (across) and positive predictive value (up).

    A filled mark is what happened, with intervals; the hollow one beside it what the group's own
    scores predict.  The shaded area is where calibrated scores are.  On the dotted diagonal are the
    base rates; a steep line to there means that few of the group are selected.

    Parameters
    ----------
    groups : sequence
        The groups.
    observed, predicted : arrays of shape (groups, 2)
        Rows (FOR, PPV), and the same with scores in place of labels.  NaN where nobody is passed
        over or selected; such a group is not drawn.
    intervals : array of shape (groups, 2, 2) or None
        The low and the high end of each number of ``observed``.
    base_rates : array
        The share of positives in each group.
    threshold : float
        From which people are selected.

    Attributes
    ----------
    names : list of str
        The names of the groups.
    shown : list of int
        The indices of the groups that have both numbers.
    ax_, figure_
        The axes given or made, and their figure.
    area_ : Polygon
        Where calibrated scores are.
    observed_, predicted_, base_rates_ : {group: artist}
        The marks of each group that is drawn.
    lines_ : {group: Line2D}
        From what happened to the base rate; not drawn for many groups.
    texts_, legend_ : list of Annotation, Legend
        The names, and what the marks are.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.plots import PredictiveValuesDisplay
    >>> display = PredictiveValuesDisplay.from_tally(compas())
    >>> display.observed.round(3).tolist(), display.predicted.round(3).tolist()
    ([[0.375, 0.659], [0.311, 0.643]], [[0.36, 0.66], [0.326, 0.641]])
    """

    groups: Sequence[Group]
    observed: Floats
    predicted: Floats
    intervals: Floats | None
    base_rates: Floats
    threshold: float = 0.5

    def __post_init__(self) -> None:
        self.names = group_names(list(self.groups))
        known = np.isfinite(self.observed).all(axis=1)
        self.shown = [int(index) for index in np.flatnonzero(known)]

    @classmethod
    def from_tally(
        cls,
        tally: TallyLike,
        *,
        threshold: float = 0.5,
        confidence: float | None = 0.95,
        ax: Axes | None = None,
        **reading: Unpack[DataOptions],
    ) -> Self:
        """The predictive values of the groups of a tally.

        Parameters
        ----------
        tally : Tally, or data
            Scores and labels.
        threshold : float
            From which people are selected; must be an edge of the tally.
        confidence : float or None
            Of the intervals; None for no intervals.
        ax : Axes, optional
            Axes to draw on; by default those of a new figure, ``figure_``.
        **reading
            With data: the keywords of :func:`isocost.tally`.
        """
        threshold = check_threshold(threshold)
        tally = as_tally(tally, reading, threshold)
        sums = tally.kinds(threshold)
        rows = [MEASURES[name] for name in ("false_omission_rate", "ppv")]
        passed, selected = [0, 2], [1, 3]
        w, wh = (
            np.stack([x[:, passed].sum(axis=1), x[:, selected].sum(axis=1)], axis=1)
            for x in (sums.w, sums.wh)
        )
        display = cls(
            tally.groups,
            np.stack([measure.of(sums) for measure in rows], axis=1),
            np.divide(wh, w, out=np.full_like(w, np.nan), where=w > 0),
            None if confidence is None else _intervals(tally, threshold, confidence),
            MEASURES["base_rate"].of(sums),
            threshold,
        )
        return display.plot(ax)

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Axes | None = None) -> Self:
        """At the threshold and the confidence of an audit."""
        checked = check_audit(audit)
        confidence = checked.confidence
        return cls.from_tally(
            checked.tally, threshold=checked.threshold, confidence=confidence, ax=ax
        )

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        self.ax_, self.figure_ = axes_for(ax, (5.4, 5.2))
        self.observed_: dict[Group, Any] = {}
        self.predicted_: dict[Group, Any] = {}
        self.base_rates_: dict[Group, Any] = {}
        self.lines_: dict[Group, Any] = {}
        self._frame()
        style = looks(len(self.names))
        many = len(self.shown) > MOST_NAMED
        named = self._extremes() if many else self.shown
        for index in self.shown:
            look = style[index] if index in named else replace(style[index], colour="#8a8a8a")
            self._group(index, look, many)
        self._write(style, named)
        self._legend()
        return self

    def _limits(self) -> tuple[Floats, Floats]:
        """The part of the plane that has the marks, and some of the shaded area."""
        points = [self.observed[self.shown], self.predicted[self.shown]]
        points += [np.repeat(self.base_rates[self.shown, None], 2, axis=1)]
        if self.intervals is not None:
            points += list(np.moveaxis(self.intervals[self.shown], 2, 0))
        if not self.shown:
            points = [np.array([[0.0, 0.0], [1.0, 1.0]])]
        both = np.concatenate(points)
        low, high = both.min(axis=0), both.max(axis=0)
        # The corner of the area, unless it is so far away that the marks would be all in one place.
        room = 1.5 * np.maximum(high - low, 0.02)
        if self.threshold <= high[0] + room[0]:
            low[0], high[0] = min(low[0], self.threshold), max(high[0], self.threshold)
        if self.threshold >= low[1] - room[1]:
            low[1], high[1] = min(low[1], self.threshold), max(high[1], self.threshold)
        pad = np.maximum(0.1 * (high - low), 0.002)
        return np.maximum(low - pad, -pad / 3), np.minimum(high + pad, 1.0 + pad / 3)

    def _frame(self) -> None:
        ax, t = self.ax_, self.threshold
        plain_axes(ax)
        low, high = self._limits()
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        self.area_ = ax.fill_between(
            [0.0, t], t, 1.0, facecolor="#f0f0f0", edgecolor=PALE, linewidth=1.0, zorder=0.5
        )
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.9, linestyle=(0, (1.2, 2)), zorder=1)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(percent)
        ax.set_xlabel("false omission rate: positives among the passed over")
        ax.set_ylabel("PPV: positives among the selected")
        write_title(ax, f"threshold {t:g}; shaded: calibrated scores, PPV ≥ {percent(t)} ≥ FOR")

    def _group(self, index: int, look: Look, many: bool) -> None:
        ax, group = self.ax_, self.groups[index]
        (x, y), expected, mu = self.observed[index], self.predicted[index], self.base_rates[index]
        colour, faint = look.colour, 0.3 if many else 0.75
        if self.intervals is not None:
            (left, right), (low, high) = self.intervals[index]
            for across, up in (((left, right), (y, y)), ((x, x), (low, high))):
                ax.plot(across, up, color=colour, linewidth=1.1, alpha=faint, zorder=2)
        if not many:
            (self.lines_[group],) = ax.plot(
                [x, mu], [y, mu], color=colour, linewidth=0.8, alpha=0.45, zorder=1.5
            )
        ax.plot(
            [x, expected[0]], [y, expected[1]], color=colour, linewidth=1.2, linestyle=(0, (1, 1)),
            alpha=faint, zorder=2.5,
        )  # fmt: skip
        style: dict[str, Any] = {
            "marker": look.marker,
            "color": colour,
            "linestyle": "none",
            "clip_on": False,
        }
        size = 5.0 if many else 7.5
        (self.observed_[group],) = ax.plot(
            x, y, **style, markersize=size, markeredgecolor="white", markeredgewidth=0.7, zorder=4
        )
        (self.predicted_[group],) = ax.plot(
            *expected, **style, markersize=size - 1.5, markerfacecolor="white",
            markeredgewidth=1.3, zorder=3,
        )  # fmt: skip
        (self.base_rates_[group],) = ax.plot(
            mu, mu, color=colour, marker="|", markersize=7, markeredgewidth=1.6, zorder=2,
            linestyle="none",
        )  # fmt: skip

    def _write(self, style: list[Look], named: Sequence[int]) -> None:
        """Names beside the marks."""
        short = short_names(self.names)
        labels = [
            Label(
                short[index], (self.observed[index, 0], self.observed[index, 1]),
                style[index].ink, bold=True, prefer=90.0,
            )
            for index in named
        ]  # fmt: skip
        marks = np.concatenate(
            [
                self.observed[self.shown],
                self.predicted[self.shown],
                np.repeat(self.base_rates[self.shown, None], 2, axis=1),
            ]
        )
        lines = self._samples()
        weights = np.repeat([4.0, 1.0], [len(marks), len(lines)])
        self.texts_ = place_labels(self.ax_, labels, np.concatenate([marks, lines]), weights)

    def _samples(self) -> Floats:
        """Points on the intervals."""
        if self.intervals is None:
            return np.empty((0, 2))
        steps, points = np.linspace(0.0, 1.0, 16)[:, None], [np.empty((0, 2))]
        for index in self.shown:
            x, y = self.observed[index]
            (left, right), (low, high) = self.intervals[index]
            points += [np.hstack([left + steps * (right - left), np.full_like(steps, y)])]
            points += [np.hstack([np.full_like(steps, x), low + steps * (high - low)])]
        return np.concatenate(points)

    def _extremes(self) -> list[int]:
        """The groups with the highest and the lowest of the two values."""
        values = self.observed[self.shown]
        ends = {self.shown[int(i)] for f in (np.argmax, np.argmin) for i in f(values, axis=0)}
        return sorted(ends)

    def _legend(self) -> None:
        from matplotlib.lines import Line2D

        marks: dict[str, Any] = {"color": GREY, "linestyle": "none"}
        handles = [
            Line2D([], [], marker="o", markersize=6, label="observed", **marks),
            Line2D(
                [], [], marker="o", markersize=5, markerfacecolor="white", **marks,
                label="predicted by the group's own scores",
            ),
            Line2D(
                [], [], marker="|", markersize=7, markeredgewidth=1.6, **marks,
                label="base rate, on the diagonal",
            ),
        ]  # fmt: skip
        missing = [name for index, name in enumerate(self.names) if index not in self.shown]
        title = ""
        if missing:
            which = short_name(", ".join(missing), 60, 2)
            title = f"Not drawn, because nobody or everybody is selected: {which}"
        self.legend_ = legend_below(self.ax_, handles, short_name(title, 90, 2) if title else "")


def _intervals(tally: Tally, threshold: float, confidence: float) -> Floats:
    """The ends of the intervals, an array (groups, 2, 2) for (FOR, PPV) and (low, high)."""
    confidence = check_confidence(confidence)
    first, cells = tally.grid.first_bin(threshold), tally.cells
    rows = {name: MEASURES[name] for name in ("false_omission_rate", "ppv")}
    own = [cells.take(cells.of_group(index)) for index in range(len(tally.groups))]
    means = [means_of(rows, each, first).values() for each in own]
    return np.array([[mean_interval(mean, confidence) for mean in each] for each in means])


@dataclass
class NetBenefitDisplay(Display):
    """Decision curves: net benefit over thresholds, a small diagram per group.

    The coloured curve is deciding by the scores, with its interval; the dashed line selecting
    everybody ("treat all"), and 0 selecting nobody.  Where the curve is above both, the scores
    help the group.

    Parameters
    ----------
    curve : NetBenefitCurve
        What :func:`isocost.measures.derived.net_benefit_curve` returned.
    confidence : float or None
        Of the bands; None for no bands.

    Attributes
    ----------
    names : list of str
        The names of the groups.
    low, high : arrays of shape (groups, thresholds)
        The ends of the intervals, at each threshold by itself; NaN without them.
    ax_, figure_, axes_
        The axes that were given or made, their figure, and the small axes of each group.
    lines_, bands_, treat_all_ : lists of artists
        The curve, its band and the line of selecting everybody, of each group.
    legend_ : Legend
        What the lines are.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.plots import NetBenefitDisplay
    >>> display = NetBenefitDisplay.from_tally(compas(), [0.3, 0.5])
    >>> display.low.round(3).tolist()
    [[0.295, 0.134], [0.146, 0.052]]
    """

    curve: NetBenefitCurve
    confidence: float | None = 0.95

    def __post_init__(self) -> None:
        step = "pass what isocost.measures.derived.net_benefit_curve returned"
        check_kind("curve", self.curve, NetBenefitCurve, "must be a NetBenefitCurve", step)
        self.names = group_names(list(self.curve.groups))
        self.low, self.high = self._ends()

    def _ends(self) -> tuple[Floats, Floats]:
        values, errors = self.curve.net_benefit, self.curve.error
        if self.confidence is None:
            return np.full_like(values, np.nan), np.full_like(values, np.nan)
        confidence, limits = check_confidence(self.confidence), MEASURES["net_benefit"].limits
        ends = [
            derived_interval(Estimated(value, error, float(rows)), limits, confidence)
            for of_group, errors_of, rows in zip(values, errors, self.curve.rows, strict=True)
            for value, error in zip(of_group.tolist(), errors_of.tolist(), strict=True)
        ]
        low, high = np.array(ends).T.reshape(2, *values.shape)
        return low, high

    @classmethod
    def from_tally(
        cls,
        tally: TallyLike,
        thresholds: float | Sequence[float] | None = None,
        *,
        confidence: float | None = 0.95,
        ax: Axes | None = None,
        **reading: Unpack[DataOptions],
    ) -> Self:
        """The decision curves of the groups of a tally.

        Parameters
        ----------
        tally : Tally, or data
            Scores and labels.
        thresholds : float or several, optional
            Edges of the tally; by default about a hundred, up to the highest score.
        confidence : float or None
            Of the bands; None for no bands.
        ax : Axes, optional
            Axes to draw on; by default those of a new figure, ``figure_``.
        **reading
            With data: the keywords of :func:`isocost.tally`.
        """
        return cls(net_benefit_curve(tally, thresholds, **reading), confidence).plot(ax)

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Axes | None = None) -> Self:
        """From the tally of an audit, with bands of its confidence."""
        checked = check_audit(audit)
        return cls.from_tally(checked.tally, confidence=checked.confidence, ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        count = len(self.names)
        many = count > MANY
        columns = min(count, 5 if many else 3)
        size, gap = ((1.9, 1.75), (0.45, 0.62)) if many else ((2.7, 2.4), (0.55, 0.85))
        self.ax_, self.figure_, self.axes_ = panels(ax, count, columns, size, (0.7, 0.5), gap)
        self.lines_: list[Any] = []
        self.bands_: list[Any] = []
        self.treat_all_: list[Any] = []
        for index, look in enumerate(looks(count)):
            panel = self.axes_[index]
            self._panel(panel, index, look, many)
            if index % columns == 0:
                panel.set_ylabel("net benefit")
            if index + columns >= count:
                panel.set_xlabel("threshold")
        self._legend()
        return self

    def _panel(self, ax: Axes, index: int, look: Look, many: bool) -> None:
        curve, t = self.curve, self.curve.threshold
        plain_axes(ax)
        ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)
        mu, end = float(curve.base_rate[index]), self._last()
        # It is known between thresholds too.
        every = np.linspace(0.0, min(end, 0.999), 400)
        self.treat_all_ += ax.plot(
            every, mu - (1.0 - mu) * every / (1.0 - every), color=GREY, linewidth=1.0,
            linestyle=DASHED, zorder=1.5,
        )  # fmt: skip
        if self.confidence is not None:
            self.bands_.append(
                ax.fill_between(
                    t, self.low[index], self.high[index], color=look.colour, alpha=0.18,
                    linewidth=0, zorder=2,
                )
            )  # fmt: skip
        self.lines_ += ax.plot(
            t, curve.net_benefit[index], color=look.colour, linewidth=1.7, zorder=3,
            marker=look.marker if len(t) < 15 else "", markersize=4,
        )  # fmt: skip
        # A group without positives has no benefit, only harm.
        top = max(mu, float(curve.net_benefit[index].max())) or 0.2
        ax.set(xlim=(0.0, end), ylim=(-0.25 * top, 1.12 * top))
        ax.locator_params(nbins=4 if many else 5)
        name = short_names(self.names, 20 if many else 26)[index]
        size = SMALL if many else SIZE
        write_title(ax, name, fontsize=size, color=look.ink, fontweight="bold")

    def _last(self) -> float:
        """The end of the axis: the last threshold that anybody reaches."""
        reached = self.curve.threshold[self.curve.selection_rate.max(axis=0) > 0]
        return min(1.04 * float(reached.max(initial=self.curve.threshold[0])), 1.0)

    def _legend(self) -> None:
        from matplotlib.lines import Line2D

        level = level_of(self.confidence)
        handles = [
            Line2D([], [], color=looks(1)[0].colour, linewidth=1.7, label=f"by the scores{level}"),
            Line2D([], [], color=GREY, linewidth=1.0, linestyle=DASHED, label="treat all"),
            Line2D([], [], color=GREY, linewidth=0.8, label="treat none"),
        ]
        self.legend_ = legend_below(self.ax_, handles)
