"""Displays of measurements: reliability, predictive values, net benefit, and any measures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from isocost.cells import add_up
from isocost.checks import check_confidence, check_kind, check_seed, check_whole, check_word
from isocost.grid import MAX_BINS
from isocost.groups import Group
from isocost.judging.audit import Audit, audit
from isocost.measures.calibration import gap_equal_width, levels_of
from isocost.measures.derived import Estimated, NetBenefitCurve, net_benefit_curve
from isocost.measures.intervals import Estimates, design_effects, interval_of
from isocost.measures.table import MEASURES, Chosen, Measure, chosen_measures
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
    check_audit,
    draws,
    inches_of,
    level_of,
    looks,
    percent,
    place_labels,
    plain_axes,
    sampled,
    short_name,
    short_names,
    write,
    write_title,
)
from isocost.question import DEFAULT, MOST_REPLICATES
from isocost.tallies import Tally
from isocost.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 3
"""Number of diagrams side by side."""


# Reliability


@dataclass(frozen=True)
class Reliability:
    """The reliability diagram of one group: a point for each bin that holds somebody.

    ``low`` and ``high`` are the ends of the consistency band of a bin.  ``isotonic`` has the best
    rising curve through the labels, as rows (score, share).  The histogram of the scores has
    ``edges`` and the weight of each label between them.
    """

    score: Floats
    share: Floats
    low: Floats
    high: Floats
    isotonic: Floats
    edges: Floats
    negatives: Floats
    positives: Floats


def reliability(
    tally: Tally,
    group: int,
    *,
    bins: int = 10,
    strategy: str = "equal_width",
    confidence: float | None = DEFAULT.confidence,
    replicates: int = 500,
    seed: int = DEFAULT.seed,
) -> Reliability:
    """The reliability of one group of a tally, given by its index.

    A consistency band shows where the shares would lie if the scores were calibrated: labels are
    drawn repeatedly with the scores as their probabilities, and counted in the same bins.

    Notes
    -----
    When labels are drawn, a level of weighted scores counts as its effective number of rows,
    (sum w)^2 / sum w^2, rounded.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> curve = reliability(compas(), 1, replicates=100)
    >>> curve.score.round(3).tolist()[:3], curve.share.round(3).tolist()[:3]
    ([0.216, 0.341, 0.452], [0.209, 0.325, 0.426])
    """
    from scipy.optimize import isotonic_regression

    check_word("strategy", strategy, ("equal_width", "equal_mass"))
    bins = check_whole("bins", bins, 1, MAX_BINS)
    replicates = check_whole("replicates", replicates, 0, MOST_REPLICATES)
    random = np.random.default_rng(check_seed(seed))
    levels = levels_of(tally, group, float(design_effects(tally)[group]))
    if strategy == "equal_width":
        bin_ = np.searchsorted(np.arange(1, bins) / bins, levels.position, side="right")
    else:
        middle = (np.cumsum(levels.w) - levels.w / 2.0) / levels.total
        bin_ = np.minimum((middle * bins).astype(np.intp), bins - 1)
    bin_ = np.unique(bin_, return_inverse=True)[1]
    weight = add_up(bin_, levels.w, int(bin_.max()) + 1)
    score, share = (np.bincount(bin_, x) / weight for x in (levels.wh, levels.wy))
    low, high = np.full((2, len(weight)), np.nan)
    if confidence is not None:
        tail = (1.0 - check_confidence(confidence)) / 2.0
        rows = np.maximum(np.rint(levels.w**2 / levels.w2), 1.0).astype(np.int64)
        chance = np.clip(levels.wh / levels.w, 0.0, 1.0)
        drawn = random.binomial(rows, chance, size=(replicates, len(rows))) / rows
        if replicates:
            shares = [np.bincount(bin_, y * levels.w) / weight for y in drawn]
            low, high = np.quantile(shares, [tail, 1.0 - tail], axis=0)
    # The non-decreasing curve with the least squares.
    rising = isotonic_regression(levels.wy / levels.w, weights=levels.w).x
    isotonic = np.column_stack([levels.position, rising])
    cells = tally.cells.take(tally.cells.of_group(group))
    edges = np.arange(41) / 40
    bar = np.searchsorted(edges[1:-1], cells.wh / cells.w + 1e-12, side="right")
    counts = (add_up(bar, cells.w * (cells.label == label), 40) for label in (0, 1))
    return Reliability(score, share, low, high, isotonic, edges, *counts)


@dataclass
class ReliabilityDisplay(Display):
    """The share of positives against the score, a small diagram per group.

    Dots are bins, the stepped line the best rising curve (isotonic regression).  If the scores are
    calibrated, a dot lies in the grey band with probability ``confidence``.  Underneath is the
    histogram of the scores, the positives dark.

    Parameters
    ----------
    groups : sequence
        The groups.
    curves : sequence of Reliability
        The curves of each group.
    counts : sequence of float
        The number of rows of each group.
    gaps : sequence of float
        The calibration gap of each, over ten bins of equal width.
    confidence : float or None
        Of the bands; None for no bands.

    Attributes
    ----------
    axes_, histograms_, dots_, isotonic_, bands_ : lists
        The diagram, histogram, binned shares, rising curve and consistency band of each group.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.plots import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_tally(compas(), replicates=100)
    >>> display.names, display.curves[0].share.round(3).tolist()[:2]
    (['African-American', 'Caucasian'], [0.229, 0.357])
    """

    groups: Sequence[Group]
    curves: Sequence[Reliability]
    counts: Sequence[float]
    gaps: Sequence[float]
    confidence: float | None = DEFAULT.confidence

    @classmethod
    @draws
    def from_tally(
        cls,
        tally: Tally,
        *,
        bins: int = 10,
        strategy: str = "equal_width",
        confidence: float | None = DEFAULT.confidence,
        replicates: int = 500,
        seed: int = DEFAULT.seed,
    ) -> Self:
        """The reliability of each group of a tally.

        Parameters
        ----------
        bins : int
            Number of bins, one dot each; data are counted in the usual number of bins.
        strategy : {"equal_width", "equal_mass"}
            Bins of equal width, or with equally many people.
        confidence, replicates, seed
            Of the consistency bands; no bands for None or 0 replicates.
        """
        options = Style(bins=bins, strategy=strategy, replicates=replicates, seed=seed)
        groups = range(len(tally.groups))
        curves = [reliability(tally, group, confidence=confidence, **options) for group in groups]
        gaps = [gap_equal_width(levels_of(tally, group)) for group in groups]
        return cls(tally.groups, curves, tally.totals.n.sum(axis=1).tolist(), gaps, confidence)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the diagrams in the place of the given axes, or on a new figure."""
        count, columns = len(self.names), min(len(self.names), COLUMNS)
        cells = self._panels(ax, count, columns, (2.9, 3.9), (0.7, 0.3), (0.55, 0.95))
        self.axes_, self.histograms_ = list[Any](), list[Any]()
        self.dots_, self.isotonic_, self.bands_ = list[Any](), list[Any](), list[Any]()
        for index, (cell, look) in enumerate(zip(cells, looks(count), strict=True)):
            curve, is_first = self.curves[index], index % columns == 0
            cell.set_axis_off()
            upper, lower = (cell.inset_axes((0.0, y, 1.0, h)) for y, h in ((0.27, 0.73), (0, 0.21)))
            for panel in (upper, lower):
                plain_axes(panel)
                panel.set(xlim=(0, 1), xticks=np.arange(6) / 5)
            self.axes_.append(upper)
            self.histograms_.append(lower)
            upper.set(ylim=(0, 1), yticks=np.arange(6) / 5)
            upper.tick_params(labelbottom=False)
            upper.set_ylabel("share of positives" if is_first else "")
            name = short_name(self.names[index])
            write_title(upper, name, color=look.ink, fontweight="bold", pad=14)
            says = f"n = {self.counts[index]:,.6g}, calibration gap {self.gaps[index]:.3f}"
            write(upper, 0.0, 1.015, says, va="bottom", transform=upper.transAxes)
            upper.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
            if self.confidence is not None:
                grey = Style(color=PALE, zorder=0.8, linewidth=9)
                self.bands_.append(upper.vlines(curve.score, curve.low, curve.high, **grey))
            steps = Style(drawstyle="steps-mid", linewidth=1.4, zorder=2)
            self.isotonic_ += upper.plot(*curve.isotonic.T, color=look.colour, **steps)
            dot = Style(s=26, edgecolor="white", linewidth=0.7, clip_on=False, zorder=3)
            self.dots_.append(upper.scatter(curve.score, curve.share, color=look.colour, **dot))
            total = curve.negatives.sum() + curve.positives.sum()
            positives, negatives = curve.positives / total, curve.negatives / total
            bars = Style(align="edge", color=look.colour, linewidth=0, width=np.diff(curve.edges))
            lower.bar(curve.edges[:-1], positives, **bars)
            lower.bar(curve.edges[:-1], negatives, bottom=positives, alpha=0.35, **bars)
            lower.yaxis.set_major_formatter(percent)
            lower.locator_params(axis="y", nbins=2)
            lower.set_xlabel("score")
            if is_first:
                lower.set_ylabel("people\n(dark: positive)", fontsize=SMALL, color=INK)
        if self.confidence is not None:
            text, first = (
                f"grey: where {self.confidence:.0%} of\ncalibrated scores fall",
                self.axes_[0],
            )
            write(first, 0.98, 0.03, text, ha="right", va="bottom", transform=first.transAxes)
        return self


# Decisions at a threshold

MOST_NAMED = 8
"""With more groups than this, only those with the highest and lowest values are named."""

OBSERVED = Style(
    marker="o", markersize=7.5, markeredgecolor="white", markeredgewidth=0.7, linestyle="none"
)
PREDICTED = Style(
    marker="o", markersize=6.0, markerfacecolor="white", markeredgewidth=1.3, linestyle="none"
)
BASE_RATE = Style(marker="|", markersize=7, markeredgewidth=1.6, linestyle="none")


@dataclass
class PredictiveValuesDisplay(Display):
    """Groups in the plane of false omission rate (across) and positive predictive value (up).

    If scores are calibrated, PPV is the mean score of the people selected and FOR that of the
    people passed over, so PPV is at least the threshold and FOR at most: the shaded area.  A filled
    mark is what happened, with intervals; the hollow one beside it what the group's own scores
    predict.  The base rate lies between, mu = s PPV + (1 - s) FOR for a share s selected.  It is on
    the dotted diagonal, and the line to there has slope -(1 - s) / s: steep where few are selected.

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
    shown : list of int
        The indices of the groups that have both numbers.
    observed_, predicted_, base_rates_, lines_ : {group: artist}
        The marks of each group that is drawn, and the line to its base rate, unless they are many.
    area_, texts_ : artists
        Where calibrated scores are; the names.

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
    threshold: float = DEFAULT.threshold

    def __post_init__(self) -> None:
        known = np.isfinite(self.observed).all(axis=1)
        self.shown = [int(index) for index in np.flatnonzero(known)]

    @classmethod
    @draws
    def from_tally(
        cls,
        tally: Tally,
        *,
        threshold: float = DEFAULT.threshold,
        confidence: float | None = DEFAULT.confidence,
    ) -> Self:
        """The predictive values of the groups of a tally."""
        sums, rows = tally.kinds(threshold), [MEASURES["false_omission_rate"], MEASURES["ppv"]]
        estimates = Estimates(tally, DEFAULT.but(threshold=threshold, confidence=confidence))
        # People passed over, and people selected.
        w, wh = (np.stack([x[:, ::2].sum(1), x[:, 1::2].sum(1)], axis=1) for x in (sums.w, sums.wh))
        intervals = None
        if confidence is not None:
            places = range(len(tally.groups))
            intervals = np.array([[estimates.interval(row, i) for row in rows] for i in places])
        return cls(
            tally.groups,
            np.stack([estimates.column(row)[:-1] for row in rows], axis=1),
            np.divide(wh, w, out=np.full_like(w, np.nan), where=w > 0),
            intervals,
            MEASURES["base_rate"].of(sums),
            threshold,
        )

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        ax, t, shown = self._on(ax, (5.4, 5.2)), self.threshold, self.shown
        diagonal = self.base_rates[:, None].repeat(2, axis=1)
        dots = np.concatenate([x[shown] for x in (self.observed, self.predicted, diagonal)])
        self._set_limits(dots)
        area = Style(facecolor="#f0f0f0", edgecolor=PALE, linewidth=1.0, zorder=0.5)
        self.area_ = ax.fill_between([0.0, t], t, 1.0, **area)
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.9, linestyle=(0, (1.2, 2)), zorder=1)
        ax.xaxis.set_major_formatter(percent)
        ax.yaxis.set_major_formatter(percent)
        ax.set_xlabel("false omission rate: positives among the passed over")
        ax.set_ylabel("PPV: positives among the selected")
        write_title(ax, f"threshold {t:g}; shaded: calibrated scores, PPV ≥ {percent(t)} ≥ FOR")
        self.observed_, self.predicted_ = dict[Group, Any](), dict[Group, Any]()
        self.base_rates_, self.lines_ = dict[Group, Any](), dict[Group, Any]()
        style, named, is_crowded = looks(len(self.groups)), shown, len(shown) > MOST_NAMED
        if is_crowded:
            values = self.observed[shown]
            ends = [*values.argmax(axis=0), *values.argmin(axis=0)]
            named = sorted({shown[int(index)] for index in ends})
        marks = [(dots, 4.0)]
        for index in shown:
            group, look = self.groups[index], style[index]
            point, expected, end = self.observed[index], self.predicted[index], diagonal[index]
            colour = look.colour if index in named else "#8a8a8a"
            faint = Style(color=colour, alpha=0.3 if is_crowded else 0.75)
            for side, span in enumerate([] if self.intervals is None else self.intervals[index]):
                bar = np.stack([point, point])
                bar[:, side] = span
                ax.plot(*bar.T, linewidth=1.1, zorder=2, **faint)
                marks.append((sampled(bar[0], bar[1], 16), 1.0))
            if not is_crowded:
                thin = Style(linewidth=0.8, alpha=0.45, zorder=1.5, color=colour)
                (self.lines_[group],) = ax.plot(*np.stack([point, end]).T, **thin)
            dotted = Style(linewidth=1.2, linestyle=(0, (1, 1)), zorder=2.5)
            ax.plot(*np.stack([point, expected]).T, **faint, **dotted)
            own = Style(color=colour, marker=look.marker, clip_on=False)
            for artists, place, mark, zorder in (
                (self.observed_, point, OBSERVED, 4),
                (self.predicted_, expected, PREDICTED, 3),
            ):
                own["markersize"] = mark["markersize"] - (2.5 if is_crowded else 0.0)
                (artists[group],) = ax.plot(*place, zorder=zorder, **(mark | own))
            (self.base_rates_[group],) = ax.plot(*end, color=colour, zorder=2, **BASE_RATE)
        short = short_names(self.names)
        labels = [
            Label(short[i], self.observed[i], style[i].ink, bold=True, prefer=90.0) for i in named
        ]
        self.texts_ = place_labels(ax, labels, marks)
        missing = [name for index, name in enumerate(self.names) if index not in shown]
        which = short_name(", ".join(missing), 60, 2)
        title = f"Not drawn, because nobody or everybody is selected: {which}" if missing else ""
        legend = {
            "observed": OBSERVED,
            "predicted by the group's own scores": PREDICTED,
            "base rate, on the diagonal": BASE_RATE,
        }
        self._legend(legend, short_name(title, 90, 2))
        return self

    def _set_limits(self, dots: Floats) -> None:
        """Show the part of the plane that has the marks, and some of the shaded area."""
        points = [dots] if self.shown else [np.array([[0.0, 0.0], [1.0, 1.0]])]
        if self.intervals is not None:
            points += list(np.moveaxis(self.intervals[self.shown], 2, 0))
        both, t = np.concatenate(points), self.threshold
        low, high = both.min(axis=0), both.max(axis=0)
        # The corner of the area, unless it is so far away that the marks would be all in one place.
        room = 1.5 * np.maximum(high - low, 0.02)
        is_near = np.array([t <= high[0] + room[0], t >= low[1] - room[1]])
        low = np.where(is_near, np.minimum(low, t), low)
        high = np.where(is_near, np.maximum(high, t), high)
        pad = np.maximum(0.1 * (high - low), 0.002)
        low, high = np.maximum(low - pad, -pad / 3), np.minimum(high + pad, 1.0 + pad / 3)
        self.ax_.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


MANY = 9
"""With more groups than this, the diagrams of the groups are smaller."""

CURVE = Style(linewidth=1.7)
TREAT_ALL = Style(color=GREY, linewidth=1.0, linestyle=(0, (4, 2)))
TREAT_NONE = Style(color=GREY, linewidth=0.8)


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
    low, high : arrays of shape (groups, thresholds)
        The ends of the intervals, at each threshold by itself; NaN without them.
    axes_, lines_, bands_, treat_all_ : lists
        The diagram, curve, band and line of selecting everybody, of each group.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.plots import NetBenefitDisplay
    >>> display = NetBenefitDisplay.from_tally(compas(), [0.3, 0.5])
    >>> display.low.round(3).tolist()
    [[0.295, 0.134], [0.146, 0.052]]
    """

    curve: NetBenefitCurve
    confidence: float | None = DEFAULT.confidence

    def __post_init__(self) -> None:
        step = "pass what isocost.measures.derived.net_benefit_curve returned"
        check_kind("curve", self.curve, NetBenefitCurve, "must be a NetBenefitCurve", step)
        self.groups = self.curve.groups
        values, errors = self.curve.net_benefit, self.curve.error
        rows = np.column_stack([self.curve.rows, self.curve.freedom]).tolist()
        self.low, self.high = np.full((2, *values.shape), np.nan)
        if self.confidence is None:
            return
        confidence, limits = check_confidence(self.confidence), MEASURES["net_benefit"].limits
        for at, value in np.ndenumerate(values):
            number = Estimated(float(value), float(errors[at]), *rows[at[0]])
            self.low[at], self.high[at] = interval_of(number, limits, confidence)

    @classmethod
    @draws
    def from_tally(
        cls,
        tally: Tally,
        thresholds: float | Sequence[float] | None = None,
        *,
        confidence: float | None = DEFAULT.confidence,
    ) -> Self:
        """The decision curves of the groups of a tally.

        Parameters
        ----------
        thresholds : float or several, optional
            Edges of the tally; by default about a hundred, up to the highest score.
        """
        return cls(net_benefit_curve(tally, thresholds), confidence)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        curve, t, count = self.curve, self.curve.threshold, len(self.groups)
        is_crowded = count > MANY
        columns = min(count, 5 if is_crowded else COLUMNS)
        size, gap = ((1.9, 1.75), (0.45, 0.62)) if is_crowded else ((2.7, 2.4), (0.55, 0.85))
        texts = ("threshold", "net benefit")
        self.axes_ = self._panels(ax, count, columns, size, (0.7, 0.5), gap, *texts)
        self.lines_, self.bands_, self.treat_all_ = list[Any](), list[Any](), list[Any]()
        # The last threshold that anybody reaches; selecting everybody is known between them too.
        reached = t[curve.selection_rate.max(axis=0) > 0]
        end = min(1.04 * float(reached.max(initial=t[0])), 1.0)
        every = np.linspace(0.0, min(end, 0.999), 400)
        names = short_names(self.names, 20 if is_crowded else 26)
        for index, (panel, look) in enumerate(zip(self.axes_, looks(count), strict=True)):
            mu, values = float(curve.base_rate[index]), curve.net_benefit[index]
            panel.axhline(0.0, zorder=1, **TREAT_NONE)
            treat_all = mu - (1.0 - mu) * every / (1.0 - every)
            self.treat_all_ += panel.plot(every, treat_all, zorder=1.5, **TREAT_ALL)
            if self.confidence is not None:
                area = Style(color=look.colour, alpha=0.18, linewidth=0, zorder=2)
                band = panel.fill_between(t, self.low[index], self.high[index], **area)
                self.bands_.append(band)
            marks = Style(marker=look.marker if len(t) < 15 else "", markersize=4)
            self.lines_ += panel.plot(t, values, color=look.colour, zorder=3, **CURVE, **marks)
            # A group without positives has no benefit, only harm.
            top = max(mu, float(values.max())) or 0.2
            panel.set(xlim=(0.0, end), ylim=(-0.25 * top, 1.12 * top))
            panel.locator_params(nbins=4 if is_crowded else 5)
            bold = Style(fontsize=SMALL if is_crowded else SIZE, fontweight="bold")
            write_title(panel, names[index], color=look.ink, **bold)
        first = CURVE | {"color": looks(1)[0].colour}
        legend = {f"by the scores{level_of(self.confidence)}": first}
        legend |= {"treat all": TREAT_ALL, "treat none": TREAT_NONE}
        self._legend(legend)
        return self


# Any measures

DOT = Style(marker="o", markersize=5.5)
BAR = Style(linewidth=1.6)
HOLLOW = Style(markerfacecolor="white")
IDEAL = Style(color=INK, linewidth=1.0)
OVERALL = Style(color=GREY, linewidth=1.1, linestyle=(0, (1.2, 1.6)))


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
    order : {measure: list of groups}
        From the highest value to the lowest; those without a value last.
    axes_, ideal_, overall_ : {measure: Axes or line}
        The diagrams, and the lines of the ideal value and of everybody, where there are any.
    dots_, bars_ : {measure: {group: artist}}
        Values and intervals.
    arrows_ : list of Annotation
        Ends of intervals that are not bounded, out of the picture.

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
    confidence: float | None = DEFAULT.confidence

    def __post_init__(self) -> None:
        self.order: Mapping[str, list[Group]] = {
            measure.name: [self.groups[i] for i in np.argsort(-of_groups, kind="stable")]
            for measure, of_groups in zip(self.measures, self.values, strict=True)
        }

    @classmethod
    @draws
    def from_tally(
        cls,
        tally: Tally,
        measures: Chosen = ("auc", "calibration_slope"),
        *,
        threshold: float = DEFAULT.threshold,
        confidence: float | None = DEFAULT.confidence,
        reference: Group | None = DEFAULT.reference,
        min_group: int = DEFAULT.min_group,
    ) -> Self:
        """Measures of the groups of a tally.

        Parameters
        ----------
        tally : Tally, or data
            At least two groups with positives and negatives.
        measures : str or sequence
            A family, names of :data:`isocost.MEASURES`, or measures of your own; as for
            :func:`isocost.audit`.
        threshold, confidence, reference, min_group
            As for :func:`isocost.audit`.
        """
        chosen = chosen_measures(measures)
        # Only calibration gaps need random draws.
        needs_draws = any(chosen.rows[name].of_levels for name in chosen.shown)
        audited = audit(
            tally, threshold=threshold, confidence=confidence, reference=reference,
            replicates=DEFAULT.replicates if needs_draws else 0, measures=measures,
            min_group=min_group, warn=False,
        )  # fmt: skip
        return cls._of(audited, chosen.shown)

    @classmethod
    def from_audit(cls, audit: Audit, measures: Chosen = None, *, ax: Axes | None = None) -> Self:
        """Measures of an audit: all that it prints, or those chosen.

        What it has not computed is measured from its tally, with its settings.
        """
        checked = check_audit(audit)
        names = checked.shown if measures is None else chosen_measures(measures).shown
        if all(name in checked.measures for name in names):
            return cls._of(checked, names).plot(ax)
        return cls.from_tally(checked.tally, measures, question=checked.question, ax=ax)

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
        count, names = len(self.measures), short_names(self.names)
        columns = 2 if count == 4 else min(count, COLUMNS)
        lines = max(name.count("\n") + 1 for name in names)
        room = 0.25 + 0.062 * max(len(line) for name in names for line in name.splitlines())
        size = (2.3 + room, len(names) * (0.08 + 0.13 * lines) + 1.05)
        panels = self._panels(ax, count, columns, size, (0.2, 0.2), (room, 0.75))
        self.axes_ = {m.name: panel for m, panel in zip(self.measures, panels, strict=True)}
        self.dots_: dict[str, dict[Group, Any]] = {m.name: {} for m in self.measures}
        self.bars_: dict[str, dict[Group, Any]] = {m.name: {} for m in self.measures}
        self.arrows_, self.ideal_, self.overall_ = list[Any](), dict[str, Any](), dict[str, Any]()
        style = looks(len(names))
        for index, (measure, panel) in enumerate(zip(self.measures, panels, strict=True)):
            order = [self.groups.index(group) for group in self.order[measure.name]]
            self._frame(panel, index)
            for row, of_group in enumerate(order):
                self._draw_group(panel, index, row, of_group, style[of_group])
            panel.set_ylim(len(names) - 0.4, -0.6)
            panel.set_yticks(range(len(names)), [names[i] for i in order])
            panel.tick_params(axis="y", length=0)
            panel.locator_params(axis="x", nbins=5)
            # Names are as large as the rows allow.
            high = 72.0 * inches_of(panel)[1]
            fontsize = min(SMALL, high / (len(names) + 0.2) / lines / 1.2)
            for label, i in zip(panel.get_yticklabels(), order, strict=True):
                label.set(fontsize=fontsize, color=style[i].ink, parse_math=False, linespacing=1.05)
        self._legend(self.legend(), inches=0.35)
        return self

    def _frame(self, ax: Axes, index: int) -> None:
        """A line per group, the ideal value, that of everybody, and what is measured."""
        measure, overall = self.measures[index], float(self.overall[index])
        ax.spines["left"].set_visible(False)
        rows, across = range(len(self.groups)), ax.get_yaxis_transform()
        ax.hlines(rows, 0, 1, transform=across, color=PALE, linewidth=0.5, zorder=0.5)
        if measure.ideal is not None:
            self.ideal_[measure.name] = ax.axvline(measure.ideal, zorder=1, **IDEAL)
        if math.isfinite(overall):
            self.overall_[measure.name] = ax.axvline(overall, zorder=1.1, **OVERALL)
        write_title(ax, measure.title, fontweight="bold")
        # All values and the intervals of the groups compared; those of small ones may go on.
        compared = [group not in self.small for group in self.groups]
        seen = [*self.values[index], *self.intervals[index][compared].ravel(), overall]
        seen += [] if measure.ideal is None else [measure.ideal]
        finite = np.array([x for x in seen if math.isfinite(x)])
        if len(finite):
            pad = max(0.05 * float(np.ptp(finite)), 1e-3)
            ax.set_xlim(finite.min() - pad, finite.max() + pad)

    def _draw_group(self, ax: Axes, index: int, row: int, of_group: int, look: Look) -> None:
        """A dot and a bar; an end that is not bounded is an arrow out of the picture."""
        name, group = self.measures[index].name, self.groups[of_group]
        value, ends = float(self.values[index, of_group]), self.intervals[index, of_group]
        if not math.isfinite(value):
            known = self.values[index][np.isfinite(self.values[index])]
            middle = float(known.mean()) if len(known) else 0.5
            centred = Style(ha="center", va="center", backgroundcolor=ax.get_facecolor())
            write(ax, middle, row, "not defined", zorder=2, **centred)
            return
        bar = Style(color=look.colour, zorder=2, **BAR)
        x = np.where(np.isinf(ends), value, ends)
        (self.bars_[name][group],) = ax.plot(x, [row, row], solid_capstyle="butt", **bar)
        for edge in (float(end > 0) for end in ends if math.isinf(end)):
            shaft = Style(arrowstyle="->", color=look.colour, shrinkA=0, shrinkB=0)
            arrow = ax.annotate(
                "", xy=(edge, row), xycoords=ax.get_yaxis_transform(), xytext=(value, row),
                textcoords="data", arrowprops=shaft | BAR, zorder=2,
            )  # fmt: skip
            self.arrows_.append(arrow)
        dot = Style(color=look.colour, linestyle="none", clip_on=False, zorder=3, **DOT)
        dot |= HOLLOW if group in self.small else {}
        (self.dots_[name][group],) = ax.plot(value, row, **dot)

    def legend(self) -> dict[str, Style]:
        """The texts of the legend, with their marks."""
        marks = {f"group{level_of(self.confidence)}": DOT | BAR}
        marks |= {"small group": DOT | BAR | HOLLOW} if self.small else {}
        marks |= {"all people": OVERALL} if self.overall_ else {}
        marks |= {"ideal": IDEAL} if self.ideal_ else {}
        marks |= {"not bounded": {"marker": ">", "markersize": 4}} if self.arrows_ else {}
        return marks
