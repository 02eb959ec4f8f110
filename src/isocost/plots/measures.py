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
from isocost.measures.intervals import Estimates, interval_of
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
    legend_below,
    level_of,
    looks,
    percent,
    place_labels,
    plain_axes,
    short_name,
    short_names,
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
    """The numbers of the reliability diagram of one group.

    Attributes
    ----------
    score, share, weight : arrays
        Of each bin that holds somebody: the mean score, the share of positives, the weight.
    low, high : arrays
        The consistency band of the bins.
    isotonic_score, isotonic_share, isotonic_low, isotonic_high : arrays
        The best rising curve through the labels, and its consistency band.
    edges, negatives, positives : arrays
        The histogram of the scores: edges, and the weight of each label between them.
    """

    score: Floats
    share: Floats
    weight: Floats
    low: Floats
    high: Floats
    isotonic_score: Floats
    isotonic_share: Floats
    isotonic_low: Floats
    isotonic_high: Floats
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
    drawn repeatedly with the scores as their probabilities, and the same curve is made from them.

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
    check_word("strategy", strategy, ("equal_width", "equal_mass"))
    bins = check_whole("bins", bins, 1, MAX_BINS)
    replicates = check_whole("replicates", replicates, 0, MOST_REPLICATES)
    random, tail = np.random.default_rng(check_seed(seed)), 0.0
    if confidence is None:
        replicates = 0
    else:
        tail = (1.0 - check_confidence(confidence)) / 2.0
    levels = levels_of(tally, group)
    if strategy == "equal_width":
        bin_ = np.searchsorted(np.arange(1, bins) / bins, levels.position, side="right")
    else:
        middle = (np.cumsum(levels.w) - levels.w / 2.0) / levels.total
        bin_ = np.minimum((middle * bins).astype(np.intp), bins - 1)
    bin_ = np.unique(bin_, return_inverse=True)[1]
    weight = add_up(bin_, levels.w, int(bin_.max()) + 1)
    rows = np.maximum(np.rint(levels.w**2 / levels.w2), 1.0).astype(np.int64)
    chance = np.clip(levels.wh / levels.w, 0.0, 1.0)
    drawn = random.binomial(rows, chance, size=(replicates, len(rows))) / rows

    def band(curves: list[Floats], size: int) -> Floats:
        if not curves:
            return np.full((2, size), np.nan)
        return np.quantile(np.array(curves), [tail, 1.0 - tail], axis=0)

    low, high = band([np.bincount(bin_, y * levels.w) / weight for y in drawn], len(weight))
    curve = isotonic_shares(levels.wy / levels.w, levels.w)
    iso_low, iso_high = band([isotonic_shares(y, levels.w) for y in drawn], len(rows))
    score, share = (np.bincount(bin_, x) / weight for x in (levels.wh, levels.wy))
    cells = tally.cells.take(tally.cells.of_group(group))
    edges = np.arange(41) / 40
    bar = np.searchsorted(edges[1:-1], cells.wh / cells.w + 1e-12, side="right")
    negatives, positives = (add_up(bar, cells.w * (cells.label == label), 40) for label in (0, 1))
    return Reliability(
        score, share, weight, low, high, levels.position, curve, iso_low, iso_high,
        edges, negatives, positives,
    )  # fmt: skip


def isotonic_shares(share: Floats, weight: Floats) -> Floats:
    """Isotonic regression of the shares: the non-decreasing curve with the least squares."""
    from scipy.optimize import isotonic_regression

    curve: Floats = isotonic_regression(share, weights=weight).x
    return curve


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
        options = Style(bins=bins, strategy=strategy, confidence=confidence)
        options |= {"replicates": replicates, "seed": seed}
        groups = range(len(tally.groups))
        return cls(
            tally.groups,
            [reliability(tally, group, **options) for group in groups],
            tally.totals.n.sum(axis=1).tolist(),
            [gap_equal_width(levels_of(tally, group)) for group in groups],
            confidence,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        binned: bool = True,
        isotonic: bool = True,
        bands: bool = True,
        histogram: bool = True,
    ) -> Self:
        """Draw the diagrams.

        Parameters
        ----------
        ax : Axes, optional
            Axes whose place the small ones take; by default those of a new figure.
        binned, isotonic, bands, histogram : bool
            Whether to draw the dots, the rising curve, the bands, the histograms.
        """
        count, columns = len(self.names), min(len(self.names), COLUMNS)
        cells = self._panels(ax, count, columns, (2.9, 3.9), (0.7, 0.3), (0.55, 0.95))
        ticks, bands = np.arange(6) / 5, bands and self.confidence is not None
        self.axes_, self.histograms_ = list[Any](), list[Any]()
        self.dots_, self.isotonic_, self.bands_ = list[Any](), list[Any](), list[Any]()
        for index, (cell, look) in enumerate(zip(cells, looks(count), strict=True)):
            curve, is_first = self.curves[index], index % columns == 0
            cell.set_axis_off()
            top = lowest = cell.inset_axes((0.0, 0.27, 1.0, 0.73) if histogram else (0, 0, 1, 1))
            plain_axes(top)
            top.set(xlim=(0, 1), ylim=(0, 1), xticks=ticks, yticks=ticks)
            top.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
            name = short_name(self.names[index])
            write_title(top, name, color=look.ink, fontweight="bold", pad=14)
            says = f"n = {self.counts[index]:,.6g}, calibration gap {self.gaps[index]:.3f}"
            _write(top, 0.0, 1.015, says, va="bottom")
            self.axes_.append(top)
            if histogram:
                lowest = cell.inset_axes((0.0, 0.0, 1.0, 0.21))
                self._histogram(lowest, curve, look.colour)
                lowest.set(xlim=(0, 1), xticks=ticks)
                top.tick_params(labelbottom=False)
            lowest.set_xlabel("score")
            if is_first:
                top.set_ylabel("share of positives")
                if histogram:
                    lowest.set_ylabel("people\n(dark: positive)", fontsize=SMALL, color=INK)
            if bands:
                self.bands_.append(_band(top, curve, binned))
            if isotonic:
                steps = Style(drawstyle="steps-mid", linewidth=1.4, zorder=2)
                x, y = curve.isotonic_score, curve.isotonic_share
                self.isotonic_ += top.plot(x, y, color=look.colour, **steps)
            if binned:
                dots = Style(s=26, edgecolor="white", linewidth=0.7, clip_on=False)
                x, y = curve.score, curve.share
                self.dots_.append(top.scatter(x, y, color=look.colour, zorder=3, **dots))
        if bands:
            grey = f"grey: where {self.confidence:.0%} of\ncalibrated scores fall"
            _write(self.axes_[0], 0.98, 0.03, grey, ha="right", va="bottom")
        return self

    def _histogram(self, ax: Axes, curve: Reliability, colour: str) -> None:
        plain_axes(ax)
        total = curve.negatives.sum() + curve.positives.sum()
        negatives, positives = curve.negatives / total, curve.positives / total
        bars = Style(align="edge", color=colour, linewidth=0)
        low, wide = curve.edges[:-1], np.diff(curve.edges)
        ax.bar(low, positives, wide, **bars)
        ax.bar(low, negatives, wide, positives, alpha=0.35, **bars)
        ax.yaxis.set_major_formatter(percent)
        ax.locator_params(axis="y", nbins=2)
        self.histograms_.append(ax)


def _band(ax: Axes, curve: Reliability, binned: bool) -> Any:
    """The consistency band of the dots, or of the rising curve."""
    if binned:
        return ax.vlines(curve.score, curve.low, curve.high, color=PALE, linewidth=9, zorder=0.8)
    ends = curve.isotonic_low, curve.isotonic_high
    area = Style(color=PALE, linewidth=0, zorder=0.8, step="mid")
    return ax.fill_between(curve.isotonic_score, *ends, **area)


def _write(ax: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """A small grey text at a place on the axes from 0 to 1."""
    ax.text(x, y, text, transform=ax.transAxes, fontsize=SMALL, color=GREY, **style)


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
        ax, t = self._on(ax, (5.4, 5.2)), self.threshold
        low, high = self._limits()
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
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
        style, named = looks(len(self.groups)), self.shown
        is_crowded = len(self.shown) > MOST_NAMED
        if is_crowded:
            values = self.observed[self.shown]
            ends = [*values.argmax(axis=0), *values.argmin(axis=0)]
            named = sorted({self.shown[int(index)] for index in ends})
        for index in self.shown:
            colour = style[index].colour if index in named else "#8a8a8a"
            self._draw_group(ax, index, colour, style[index].marker, is_crowded)
        short, (marks, weights) = short_names(self.names), self._marks()
        labels = [
            Label(short[i], tuple(self.observed[i]), style[i].ink, bold=True, prefer=90.0)
            for i in named
        ]
        self.texts_ = place_labels(ax, labels, marks, weights)
        missing = [name for index, name in enumerate(self.names) if index not in self.shown]
        which = short_name(", ".join(missing), 60, 2)
        title = f"Not drawn, because nobody or everybody is selected: {which}" if missing else ""
        legend = {
            "observed": OBSERVED,
            "predicted by the group's own scores": PREDICTED,
            "base rate, on the diagonal": BASE_RATE,
        }
        self.legend_ = legend_below(ax, legend, short_name(title, 90, 2))
        return self

    def _limits(self) -> tuple[Floats, Floats]:
        """The part of the plane that has the marks, and some of the shaded area."""
        points = [self._points()]
        if self.intervals is not None:
            points += list(np.moveaxis(self.intervals[self.shown], 2, 0))
        both = np.concatenate(points) if self.shown else np.array([[0.0, 0.0], [1.0, 1.0]])
        low, high = both.min(axis=0), both.max(axis=0)
        # The corner of the area, unless it is so far away that the marks would be all in one place.
        room = 1.5 * np.maximum(high - low, 0.02)
        if self.threshold <= high[0] + room[0]:
            low[0], high[0] = min(low[0], self.threshold), max(high[0], self.threshold)
        if self.threshold >= low[1] - room[1]:
            low[1], high[1] = min(low[1], self.threshold), max(high[1], self.threshold)
        pad = np.maximum(0.1 * (high - low), 0.002)
        return np.maximum(low - pad, -pad / 3), np.minimum(high + pad, 1.0 + pad / 3)

    def _points(self) -> Floats:
        """All marks of the groups shown."""
        shown, mu = self.shown, self.base_rates[:, None].repeat(2, axis=1)
        return np.concatenate([self.observed[shown], self.predicted[shown], mu[shown]])

    def _draw_group(self, ax: Axes, index: int, colour: str, marker: str, crowded: bool) -> None:
        group, mu = self.groups[index], self.base_rates[index]
        (x, y), expected = self.observed[index], self.predicted[index]
        faint = Style(color=colour, alpha=0.3 if crowded else 0.75)
        if self.intervals is not None:
            ends = self.intervals[index]
            ax.plot(ends[0], [y, y], linewidth=1.1, zorder=2, **faint)
            ax.plot([x, x], ends[1], linewidth=1.1, zorder=2, **faint)
        if not crowded:
            thin = Style(linewidth=0.8, alpha=0.45, zorder=1.5)
            (self.lines_[group],) = ax.plot([x, mu], [y, mu], color=colour, **thin)
        dotted = Style(linewidth=1.2, linestyle=(0, (1, 1)), zorder=2.5)
        ax.plot([x, expected[0]], [y, expected[1]], **faint, **dotted)
        for artists, point, mark, zorder in (
            (self.observed_, (x, y), OBSERVED, 4),
            (self.predicted_, expected, PREDICTED, 3),
        ):
            size = mark["markersize"] - (2.5 if crowded else 0.0)
            own = Style(color=colour, marker=marker, markersize=size, clip_on=False)
            (artists[group],) = ax.plot(*point, zorder=zorder, **(mark | own))
        (self.base_rates_[group],) = ax.plot(mu, mu, color=colour, zorder=2, **BASE_RATE)

    def _marks(self) -> tuple[Floats, Floats]:
        """Marks and points on the intervals, and how bad it is to cover them."""
        marks, steps = [self._points()], np.linspace(0.0, 1.0, 16)
        if self.intervals is not None:
            for index in self.shown:
                x, y = self.observed[index]
                across, up = (low + steps * (high - low) for low, high in self.intervals[index])
                marks += [np.column_stack([across, np.full(16, y)])]
                marks += [np.column_stack([np.full(16, x), up])]
        lines = sum(map(len, marks[1:]))
        return np.concatenate(marks), np.repeat([4.0, 1.0], [len(marks[0]), lines])


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
        values, errors, rows = self.curve.net_benefit, self.curve.error, self.curve.rows
        self.low, self.high = np.full((2, *values.shape), np.nan)
        if self.confidence is None:
            return
        confidence, limits = check_confidence(self.confidence), MEASURES["net_benefit"].limits
        for at, value in np.ndenumerate(values):
            number = Estimated(float(value), float(errors[at]), float(rows[at[0]]))
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
        self.axes_ = self._panels(ax, count, columns, size, (0.7, 0.5), gap)
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
            panel.set_ylabel("net benefit" if index % columns == 0 else "")
            panel.set_xlabel("threshold" if index + columns >= count else "")
        by_scores = {
            f"by the scores{level_of(self.confidence)}": CURVE | {"color": looks(1)[0].colour}
        }
        legend = by_scores | {"treat all": TREAT_ALL, "treat none": TREAT_NONE}
        self.legend_ = legend_below(self.ax_, legend)
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
        index_of = {group: index for index, group in enumerate(self.groups)}
        style = looks(len(names))
        for index, (measure, panel) in enumerate(zip(self.measures, panels, strict=True)):
            order = [index_of[group] for group in self.order[measure.name]]
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
        self.legend_ = legend_below(self.ax_, self.legend(), inches=0.35)
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
            small = Style(fontsize=SMALL, color=GREY, ha="center", va="center")
            behind = ax.get_facecolor()
            ax.text(middle, row, "not defined", zorder=2, backgroundcolor=behind, **small)
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
        dot = DOT | (HOLLOW if group in self.small else {})
        free = Style(linestyle="none", clip_on=False, zorder=3)
        (self.dots_[name][group],) = ax.plot(value, row, color=look.colour, **free, **dot)

    def legend(self) -> dict[str, Style]:
        """The texts of the legend, with their marks."""
        marks = {f"group{level_of(self.confidence)}": DOT | BAR}
        marks |= {"small group": DOT | BAR | HOLLOW} if self.small else {}
        marks |= {"all people": OVERALL} if self.overall_ else {}
        marks |= {"ideal": IDEAL} if self.ideal_ else {}
        marks |= {"not bounded": {"marker": ">", "markersize": 4}} if self.arrows_ else {}
        return marks
