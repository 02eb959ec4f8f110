"""ReliabilityDisplay: whether a score means the same in every group, and what it says.

A consistency band shows where the shares would lie if the scores were calibrated: labels are
drawn repeatedly with the scores as their probabilities, and the same curve is made from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from isocost.cells import add_up
from isocost.checks import check_confidence, check_seed, check_whole, check_word
from isocost.grid import MAX_BINS
from isocost.groups import Group, group_names
from isocost.measures.calibration import Levels, gap_equal_width, levels_of
from isocost.plots.display import (
    GREY,
    INK,
    PALE,
    SMALL,
    Display,
    Look,
    looks,
    panels,
    percent,
    plain_axes,
    short_name,
    write_title,
)
from isocost.question import MOST_REPLICATES
from isocost.tallies import Tally, TallyLike, as_tally
from isocost.typing import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STRATEGIES = ("equal_width", "equal_mass")


@dataclass(frozen=True)
class Reliability:
    """What a reliability diagram of one group shows.

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
    confidence: float = 0.95,
    replicates: int = 500,
    seed: int = 0,
) -> Reliability:
    """The reliability of one group of a tally, given by its index.

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
    check_word("strategy", strategy, STRATEGIES)
    bins = check_whole("bins", bins, 1, MAX_BINS)
    replicates = check_whole("replicates", replicates, 0, MOST_REPLICATES)
    confidence, seed = check_confidence(confidence), check_seed(seed)
    levels = levels_of(tally, group)
    bin_ = _bins(levels, bins, strategy)
    weight = add_up(bin_, levels.w, int(bin_.max()) + 1)
    score = np.bincount(bin_, levels.wh) / weight
    share = np.bincount(bin_, levels.wy) / weight
    curve = isotonic_shares(levels.wy / levels.w, levels.w)
    drawn = _redrawn(levels, replicates, seed)
    binned = np.array([np.bincount(bin_, y * levels.w) / weight for y in drawn])
    rising = np.array([isotonic_shares(y, levels.w) for y in drawn])
    low, high = _band(binned.reshape(replicates, len(weight)), confidence)
    iso_low, iso_high = _band(rising.reshape(replicates, len(curve)), confidence)
    edges, negatives, positives = _histogram(tally, group)
    return Reliability(
        score, share, weight, low, high, levels.position, curve, iso_low, iso_high,
        edges, negatives, positives,
    )  # fmt: skip


def isotonic_shares(share: Floats, weight: Floats) -> Floats:
    """Isotonic regression of the shares: the non-decreasing curve with the least squares.

    Examples
    --------
    >>> isotonic_shares(np.array([0.0, 0.6, 0.4, 1.0]), np.ones(4)).tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    from scipy.optimize import isotonic_regression

    curve: Floats = isotonic_regression(share, weights=weight).x
    return curve


def _redrawn(levels: Levels, replicates: int, seed: int) -> Floats:
    """Shares of positives per level, drawn as if the scores were calibrated."""
    rows = np.maximum(np.rint(levels.w**2 / levels.w2), 1.0).astype(np.int64)
    chance = np.clip(levels.wh / levels.w, 0.0, 1.0)
    random = np.random.default_rng(seed)
    drawn: Floats = random.binomial(rows, chance, size=(replicates, len(rows))) / rows
    return drawn


def _band(curves: Floats, confidence: float) -> tuple[Floats, Floats]:
    if not len(curves):
        unknown = np.full(curves.shape[1], np.nan)
        return unknown, unknown
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(curves, [tail, 1.0 - tail], axis=0)
    return low, high


def _bins(levels: Levels, bins: int, strategy: str) -> Ints:
    """The bin of each level, without counting empty bins."""
    if strategy == "equal_width":
        edges = np.arange(1, bins) / bins
        bin_ = np.searchsorted(edges, levels.position, side="right")
    else:
        middle = (np.cumsum(levels.w) - levels.w / 2.0) / levels.total
        bin_ = np.minimum((middle * bins).astype(np.intp), bins - 1)
    return np.unique(bin_, return_inverse=True)[1]


def _histogram(tally: Tally, group: int, bars: int = 40) -> tuple[Floats, Floats, Floats]:
    cells = tally.cells.take(tally.cells.of_group(group))
    edges = np.arange(bars + 1) / bars
    bar = np.searchsorted(edges[1:-1], cells.wh / cells.w + 1e-12, side="right")
    negatives, positives = (add_up(bar, cells.w * (cells.label == label), bars) for label in (0, 1))
    return edges, negatives, positives


COLUMNS = 3
"""Number of groups side by side."""

PART = (0.27, 0.73)
"""Where the diagram of a group begins, and its height, above its histogram."""


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
    confidence : float
        Of the bands.

    Attributes
    ----------
    names : list of str
        The names of the groups.
    ax_, figure_
        The axes that were given or made; they hold the small ones.
    axes_, histograms_ : lists of Axes
        The diagram and the histogram of each group.
    dots_, isotonic_, bands_ : lists of artists
        The binned shares, the rising curve and the consistency band of each group.

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
    confidence: float = 0.95

    def __post_init__(self) -> None:
        self.names = group_names(list(self.groups))

    @classmethod
    def from_tally(
        cls,
        tally: TallyLike,
        *,
        bins: int = 10,
        strategy: str = "equal_width",
        confidence: float = 0.95,
        replicates: int = 500,
        seed: int = 0,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """The reliability of each group of a tally.

        Parameters
        ----------
        tally : Tally, or data
            Scores and labels.
        bins : int
            Number of bins, one dot each; data are counted in the usual number of bins.
        strategy : {"equal_width", "equal_mass"}
            Bins of equal width, or with equally many people.
        confidence, replicates, seed
            Of the consistency bands; no bands for 0 replicates.
        ax : Axes, optional
            Axes to draw on; by default those of a new figure, ``figure_``.
        **options
            Those of :meth:`plot`; and with data, the keywords of :func:`isocost.tally`.
        """
        reading, drawing = cls._told_apart(options)
        tally = as_tally(tally, reading)
        groups = range(len(tally.groups))
        display = cls(
            tally.groups,
            [
                reliability(
                    tally, group, bins=bins, strategy=strategy, confidence=confidence,
                    replicates=replicates, seed=seed,
                )
                for group in groups
            ],
            tally.totals.n.sum(axis=1).tolist(),
            [gap_equal_width(levels_of(tally, group)) for group in groups],
            confidence,
        )  # fmt: skip
        return display.plot(ax, **drawing)

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
        size, margin, gap = (2.9, 3.9), (0.7, 0.3), (0.55, 0.95)
        self.ax_, self.figure_, small = panels(ax, count, columns, size, margin, gap)
        self.axes_: list[Axes] = []
        self.histograms_: list[Axes] = []
        self.dots_: list[Any] = []
        self.isotonic_: list[Any] = []
        self.bands_: list[Any] = []
        for index, look in enumerate(looks(count)):
            top = self._frame(small[index], index, look, index % columns == 0, histogram)
            self._curves(top, self.curves[index], look, (binned, isotonic, bands))
        if bands:
            self._explain()
        return self

    def _frame(self, cell: Axes, index: int, look: Look, edge: bool, histogram: bool) -> Axes:
        """The diagram of a group, empty, with its histogram underneath."""
        cell.set_axis_off()
        top = cell.inset_axes((0.0, PART[0], 1.0, PART[1]) if histogram else (0.0, 0.0, 1.0, 1.0))
        plain_axes(top)
        top.set(xlim=(0, 1), ylim=(0, 1), xticks=np.arange(6) / 5, yticks=np.arange(6) / 5)
        top.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
        self.axes_.append(top)
        name, count, gap = self.names[index], self.counts[index], self.gaps[index]
        write_title(top, short_name(name), color=look.ink, fontweight="bold", pad=14)
        top.text(
            0.0, 1.015, f"n = {count:,.6g}, calibration gap {gap:.3f}", fontsize=SMALL, color=GREY,
            transform=top.transAxes, va="bottom",
        )  # fmt: skip
        if edge:
            top.set_ylabel("share of positives")
        lowest = top
        if histogram:
            lowest = cell.inset_axes((0.0, 0.0, 1.0, PART[0] - 0.06))
            top.tick_params(labelbottom=False)
            self._histogram(lowest, self.curves[index], look, edge)
        lowest.set_xlabel("score")
        return top

    def _explain(self) -> None:
        """What the grey means, once, in an empty corner."""
        self.axes_[0].text(
            0.98, 0.03, f"grey: where {self.confidence:.0%} of\ncalibrated scores fall", ha="right",
            va="bottom", fontsize=SMALL, color=GREY, transform=self.axes_[0].transAxes,
        )  # fmt: skip

    def _histogram(self, ax: Axes, curve: Reliability, look: Look, edge: bool) -> None:
        plain_axes(ax)
        ax.set(xlim=(0, 1), xticks=np.arange(6) / 5)
        total = curve.negatives.sum() + curve.positives.sum()
        low, high = curve.edges[:-1], np.diff(curve.edges)
        negatives, positives = curve.negatives / total, curve.positives / total
        ax.bar(low, positives, high, align="edge", color=look.colour, linewidth=0)
        ax.bar(
            low, negatives, high, bottom=positives, align="edge", color=look.colour, alpha=0.35,
            linewidth=0,
        )  # fmt: skip
        ax.yaxis.set_major_formatter(percent)
        ax.locator_params(axis="y", nbins=2)
        if edge:
            ax.set_ylabel("people\n(dark: positive)", fontsize=SMALL, color=INK)
        self.histograms_.append(ax)

    def _curves(
        self, ax: Axes, curve: Reliability, look: Look, wanted: tuple[bool, bool, bool]
    ) -> None:
        binned, isotonic, bands = wanted
        if bands and binned:
            self.bands_.append(
                ax.vlines(
                    curve.score, curve.low, curve.high, color=PALE, linewidth=9, zorder=0.8,
                )
            )  # fmt: skip
        elif bands:
            self.bands_.append(
                ax.fill_between(
                    curve.isotonic_score, curve.isotonic_low, curve.isotonic_high, color=PALE,
                    linewidth=0, zorder=0.8, step="mid",
                )
            )  # fmt: skip
        if isotonic:
            self.isotonic_ += ax.plot(
                curve.isotonic_score, curve.isotonic_share, color=look.colour, linewidth=1.4,
                drawstyle="steps-mid", zorder=2,
            )  # fmt: skip
        if binned:
            self.dots_.append(
                ax.scatter(
                    curve.score, curve.share, s=26, color=look.colour,
                    edgecolor="white", linewidth=0.7, zorder=3, clip_on=False,
                )
            )  # fmt: skip
