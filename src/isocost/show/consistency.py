"""Reliability as numbers: shares of positives by score, and how far chance alone moves them.

A consistency band says where the shares would lie if the scores were calibrated: labels are
drawn again and again with the scores as their probabilities, and the same curve is made of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isocost.cells import add_up
from isocost.checks import check_confidence, check_seed, check_whole, check_word
from isocost.grid import MAX_BINS
from isocost.measure.calibration import Levels, levels_of
from isocost.measure.intervals import MOST_REPLICATES
from isocost.tallies import Tally

__all__ = ["Reliability", "isotonic_shares", "reliability"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

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
    """The reliability of one group of a tally, given by its place.

    Notes
    -----
    With weights a level of scores counts as its effective number of rows, (sum w)^2 / sum w^2,
    rounded, when labels are drawn.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> found = reliability(compas(), 1, replicates=100)
    >>> found.score.round(3).tolist()[:3], found.share.round(3).tolist()[:3]
    ([0.216, 0.341, 0.452], [0.209, 0.325, 0.426])
    """
    check_word("strategy", strategy, STRATEGIES)
    bins = check_whole("bins", bins, 1, MAX_BINS)
    replicates = check_whole("replicates", replicates, 0, MOST_REPLICATES)
    confidence, seed = check_confidence(confidence), check_seed(seed)
    levels = levels_of(tally, group)
    place = _places(levels, bins, strategy)
    weight = add_up(place, levels.w, int(place.max()) + 1)
    score = np.bincount(place, levels.wh) / weight
    share = np.bincount(place, levels.wy) / weight
    curve = isotonic_shares(levels.wy / levels.w, levels.w)
    drawn = _redrawn(levels, replicates, seed)
    binned = np.array([np.bincount(place, y * levels.w) / weight for y in drawn])
    rising = np.array([isotonic_shares(y, levels.w) for y in drawn])
    low, high = _band(binned.reshape(replicates, len(weight)), confidence)
    iso_low, iso_high = _band(rising.reshape(replicates, len(curve)), confidence)
    edges, negatives, positives = _histogram(tally, group)
    return Reliability(
        score, share, weight, low, high, levels.position, curve, iso_low, iso_high,
        edges, negatives, positives,
    )  # fmt: skip


def isotonic_shares(share: Floats, weight: Floats) -> Floats:
    """The rising curve nearest to the shares in weighted squares: neighbours that fall are pooled.

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
        nothing = np.full(curves.shape[1], np.nan)
        return nothing, nothing
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(curves, [tail, 1.0 - tail], axis=0)
    return low, high


def _places(levels: Levels, bins: int, strategy: str) -> Ints:
    """The bin of each level, counted without gaps."""
    if strategy == "equal_width":
        cuts = np.arange(1, bins) / bins
        place = np.searchsorted(cuts, levels.position, side="right")
    else:
        middle = (np.cumsum(levels.w) - levels.w / 2.0) / levels.total
        place = np.minimum((middle * bins).astype(np.intp), bins - 1)
    return np.unique(place, return_inverse=True)[1]


def _histogram(tally: Tally, group: int, bars: int = 40) -> tuple[Floats, Floats, Floats]:
    cells = tally.cells.take(tally.cells.of_group(group))
    edges = np.arange(bars + 1) / bars
    place = np.searchsorted(edges[1:-1], cells.wh / cells.w + 1e-12, side="right")
    counts = np.array(
        [np.bincount(place, cells.w * (cells.label == label), minlength=bars) for label in (0, 1)]
    )
    return edges, counts[0], counts[1]
