"""ReliabilityDisplay: whether a score means the same in every group, and what it says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isocost.groups import Group, group_names
from isocost.measure.calibration import gap_equal_width, levels_of
from isocost.show.consistency import Reliability, reliability
from isocost.show.reading import tally_of_estimator, tally_of_predictions
from isocost.show.style import (
    GREY,
    INK,
    PALE,
    SIZE,
    SMALL,
    Look,
    axes_for,
    cells,
    looks,
    percent,
    plain_axes,
    short_name,
)
from isocost.tallies import Tally, check_tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ReliabilityDisplay"]

COLUMNS = 3
"""How many groups stand side by side before a new row begins."""

PART = (0.27, 0.73)
"""Where the diagram of a group begins, and its height, above its histogram."""


@dataclass
class ReliabilityDisplay:
    """The share of positives against the score, a small diagram per group.

    Dots are bins, the stepped line the best rising curve (isotonic regression).  If the scores are
    calibrated, a dot lies in the grey band with the chance ``confidence``.  Underneath is how
    many people have which score, the positives dark.

    Parameters
    ----------
    groups : sequence
        The groups.
    curves : sequence of Reliability
        What each shows.
    counts : sequence of float
        How many rows each has.
    gaps : sequence of float
        The calibration gap of each, over ten bins of equal width.
    confidence : float
        Of the bands.

    Attributes
    ----------
    names : list of str
        How the groups are called.
    ax_, figure_
        The axes that were given or made; they hold the small ones.
    axes_, histograms_ : lists of Axes
        The diagram and the histogram of each group.
    dots_, isotonic_, bands_ : lists of artists
        The binned shares, the rising curve and the consistency band of each group.

    Examples
    --------
    >>> from isocost.examples import compas
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
        tally: Tally,
        *,
        bins: int = 10,
        strategy: str = "equal_width",
        confidence: float = 0.95,
        replicates: int = 500,
        seed: int = 0,
        ax: Axes | None = None,
    ) -> ReliabilityDisplay:
        """The reliability of each group of a tally.

        Parameters
        ----------
        tally : Tally
            Scores and labels.
        bins : int
            How many bins for the dots.
        strategy : {"equal_width", "equal_mass"}
            Bins of equal width, or with equally many people.
        confidence, replicates, seed
            Of the consistency bands; without replicates there are none.
        ax : Axes, optional
            Axes to draw on; without them nothing is drawn until :meth:`plot` is called.
        """
        check_tally(tally)
        places = range(len(tally.groups))
        display = cls(
            tally.groups,
            [
                reliability(
                    tally, place, bins=bins, strategy=strategy, confidence=confidence,
                    replicates=replicates, seed=seed,
                )
                for place in places
            ],
            tally.totals.n.sum(axis=1).tolist(),
            [gap_equal_width(levels_of(tally, place)) for place in places],
            confidence,
        )  # fmt: skip
        return display if ax is None else display.plot(ax)

    @classmethod
    def from_predictions(
        cls, y: Any, score: Any, group: Any, *, weight: Any = None, **options: Any
    ) -> ReliabilityDisplay:
        """From labels, scores and groups given as arrays; options as :meth:`from_tally` has."""
        return cls.from_tally(tally_of_predictions(y, score, group, weight=weight), **options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        **options: Any,
    ) -> ReliabilityDisplay:
        """From what a fitted classifier says about X; options as :meth:`from_tally` has."""
        tally = tally_of_estimator(
            estimator, X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
        )
        return cls.from_tally(tally, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        binned: bool = True,
        isotonic: bool = True,
        bands: bool = True,
        histogram: bool = True,
    ) -> ReliabilityDisplay:
        """Draw the diagrams.

        Parameters
        ----------
        ax : Axes, optional
            Axes whose place the small ones take; by default those of a new figure.
        binned, isotonic, bands, histogram : bool
            Whether to draw the dots, the rising curve, the bands, the histograms.
        """
        count = len(self.names)
        columns = min(count, COLUMNS)
        rows = math.ceil(count / columns)
        self.ax_, self.figure_ = axes_for(ax, (2.9 * columns + 0.7, 3.9 * rows + 0.3))
        grid = cells(self.ax_, rows, columns, (0.55, 0.95))
        self.axes_: list[Axes] = []
        self.histograms_: list[Axes] = []
        self.dots_: list[Any] = []
        self.isotonic_: list[Any] = []
        self.bands_: list[Any] = []
        for place, look in enumerate(looks(count)):
            cell = grid[place // columns][place % columns]
            edge = place % columns == 0
            top = self._frame(cell, place, look, edge, histogram)
            self._curves(top, self.curves[place], look, (binned, isotonic, bands))
        if bands:
            self._explain()
        for place in range(count, rows * columns):
            grid[place // columns][place % columns].set_axis_off()
        return self

    def _frame(self, cell: Axes, place: int, look: Look, edge: bool, histogram: bool) -> Axes:
        """The diagram of a group, empty, with its histogram underneath."""
        cell.set_axis_off()
        top = cell.inset_axes((0.0, PART[0], 1.0, PART[1]) if histogram else (0.0, 0.0, 1.0, 1.0))
        plain_axes(top)
        top.set(xlim=(0, 1), ylim=(0, 1), xticks=np.arange(6) / 5, yticks=np.arange(6) / 5)
        top.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
        self.axes_.append(top)
        name, count, gap = self.names[place], self.counts[place], self.gaps[place]
        top.set_title(
            short_name(name), loc="left", fontsize=SIZE, color=look.ink, fontweight="bold",
            parse_math=False, pad=14,
        )  # fmt: skip
        top.text(
            0.0, 1.015, f"n = {count:,.6g}, calibration gap {gap:.3f}", fontsize=SMALL, color=GREY,
            transform=top.transAxes, va="bottom",
        )  # fmt: skip
        if edge:
            top.set_ylabel("share of positives", fontsize=SIZE, color=INK)
        lowest = top
        if histogram:
            lowest = cell.inset_axes((0.0, 0.0, 1.0, PART[0] - 0.06))
            top.tick_params(labelbottom=False)
            self._histogram(lowest, self.curves[place], look, edge)
        lowest.set_xlabel("score", fontsize=SIZE, color=INK)
        return top

    def _explain(self) -> None:
        """What the grey is, once, in the corner where nothing else is."""
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
