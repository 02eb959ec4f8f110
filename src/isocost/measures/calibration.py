"""Calibration: the distance of scores from the share of positives among people who have them.

The calibration gap is the sum over levels p of ``P(h = p) |P(y = 1 | h = p) - p|``.  With
continuous scores it has to be estimated, and there is no one right way; this module has four, and
one bound that needs no estimate at all:

================  ==============================================================
``equal_width``   bins of equal width, the plug-in estimate everybody reports
``equal_mass``    bins that hold equally many people
``debiased``      equal width, less the amount that chance alone adds
``smooth``        kernel smoothing at the bandwidth that equals the result
``bound``         ``|mu - E[h]|``, which is never above the true gap
================  ==============================================================

Binned estimates are too high for small samples: a perfectly calibrated score with n rows in B
bins shows a gap of about 0.4 sqrt(B / n).

The logistic recalibration of Cox (1958) needs no bins: its slope and intercept.  A logit is that of
a bin's mean score.

Examples
--------
>>> from isocost.examples import compas
>>> caucasian = levels_of(compas(), 1)
>>> {name: round(estimate(caucasian), 4) for name, estimate in GAP_METHODS.items()}
{'equal_width': 0.017, 'equal_mass': 0.0146, 'debiased': 0.011, 'smooth': 0.0175, 'bound': 0.0111}
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isocost.cells import add_up
from isocost.measures.derived import UNDEFINED, Estimated, GroupedPeople, People, freedom_of
from isocost.tallies import Tally
from isocost.typing import Floats, Ints

BINS = 10

_GRID = 2048

_TAIL = 1e-12

CLIPPED, MOST_CLIPPED = 1e-6, 0.01
"""Scores nearer to 0 or 1 have the logit of this one; with a larger share of such people than this
there is no fit: it would depend on where logits are cut."""

STEPS, CONVERGED = 60, 1e-11
"""Newton steps of a logistic fit, and the last one's size."""


@dataclass(frozen=True)
class Levels:
    """People at the same score, or in the same fine bin: the input of the estimators.

    Arrays of scores, sorted or not, and of sums of w, w y, w h and w^2.
    """

    position: Floats
    w: Floats
    wy: Floats
    wh: Floats
    w2: Floats

    @property
    def total(self) -> float:
        """The weight of everybody."""
        return float(self.w.sum())


def levels_of(tally: Tally, group: int | None = None, effect: float = 1.0) -> Levels:
    """The levels of one group of a tally, or of everybody, with a design effect."""
    cells = tally.cells
    own = slice(None) if group is None else cells.of_group(group)
    columns = (cells.w[own], cells.w[own] * cells.label[own], cells.wh[own], cells.w2[own] * effect)
    sums = [add_up(cells.bin[own], values, tally.grid.size) for values in columns]
    used = np.flatnonzero(sums[0] > 0)
    w, wy, wh, w2 = (values[used] for values in sums)
    # Rounding must not carry a mean over the edge of its bin.
    top = np.nextafter(tally.grid.cuts[used + 1], 0.0)
    position = np.clip(wh / w, tally.grid.cuts[used], top)
    return Levels(position, w, wy, wh, w2)


def gap_bound(levels: Levels) -> float:
    """|mu - E[h]|: a lower bound of the calibration gap that needs no binning.

    The gap is a sum of absolute values, and this is the absolute value of the same sum.
    """
    return abs(float(levels.wy.sum() - levels.wh.sum())) / levels.total


def gap_equal_width(levels: Levels) -> float:
    """The plug-in gap over ten bins of equal width.

    sum over bins of share * |mean label - mean score|; biased upwards when bins hold few people.
    """
    off = add_up(_equal_width_bins(levels, BINS), levels.wy - levels.wh, BINS)
    return float(np.abs(off).sum()) / levels.total


def gap_equal_mass(levels: Levels) -> float:
    """The plug-in gap over ten bins that hold about the same weight.

    People at one level stay together, so bins can only be as equal as the levels allow.
    """
    off = add_up(_equal_mass_bins(levels), levels.wy - levels.wh, BINS)
    return float(np.abs(off).sum()) / levels.total


def gap_debiased(levels: Levels) -> float:
    """The equal-width gap less its estimated bias, at least 0.

    In a bin the difference d of mean label and mean score has standard error s, so
    the plug-in |d| has mean

        E|N(d, s)| = s sqrt(2/pi) exp(-d^2 / 2 s^2) + d erf(d / (s sqrt 2)).

    The excess over |d| is taken off once: a parametric bootstrap in closed form.  With
    weights s^2 = p(1-p) sum w^2 / (sum w)^2.
    """
    from scipy.special import erf

    index = _equal_width_bins(levels, BINS)
    sums = [add_up(index, x, BINS) for x in (levels.w, levels.wy, levels.wh, levels.w2)]
    w, wy, wh, w2 = (x[sums[0] > 0] for x in sums)
    d, p = np.abs(wy - wh) / w, wy / w
    s = np.sqrt(p * (1.0 - p) * w2) / w
    excess, known = np.zeros_like(d), s > 0
    ratio = d[known] / s[known]
    spread = s[known] * math.sqrt(2.0 / math.pi) * np.exp(-(ratio**2) / 2.0)
    excess[known] = spread + d[known] * erf(ratio / math.sqrt(2.0)) - d[known]
    return max(0.0, float(((d - excess) * w).sum()) / levels.total)


def gap_smooth(levels: Levels) -> float:
    """The smooth calibration error of Blasiok and Nakkiran (2023).

    The residuals y - h are smoothed over the score with a Gaussian of bandwidth s reflected at
    0 and 1, and the absolute value is integrated; s is chosen so that the result is s itself.
    It changes continuously with the scores and has no bins to choose.

    Reflecting at both ends makes the smoothing a product in the frequencies of the
    mirrored residuals, so one trial of s costs one short Fourier transform.
    """
    from scipy.optimize import brentq

    # On the middles of the grid's cells, each mass shared by the two nearest, so that the result
    # moves continuously with the scores; beyond the outer middles it is reflected.
    mass, cell = (levels.wy - levels.wh) / levels.total, levels.position * _GRID - 0.5
    low = np.floor(cell).astype(np.intp)
    upper, below, above = cell - low, np.maximum(low, 0), np.minimum(low + 1, _GRID - 1)
    residual = add_up(below, mass * (1.0 - upper), _GRID) + add_up(above, mass * upper, _GRID)
    spectrum = np.fft.rfft(np.concatenate([residual, residual[::-1]]))
    frequency = np.arange(len(spectrum)) * math.pi

    def smoothed(bandwidth: float) -> float:
        damped = spectrum * np.exp(-0.5 * (bandwidth * frequency) ** 2)
        return float(np.abs(np.fft.irfft(damped, 2 * _GRID)[:_GRID]).sum())

    start = smoothed(0.0)
    if start <= _TAIL:
        return start
    return float(brentq(lambda x: smoothed(x) - x, 0.0, 1.0, xtol=_TAIL))


def _equal_width_bins(levels: Levels, bins: int) -> Ints:
    """The bin of each level, of so many of equal width."""
    cuts = np.arange(bins + 1) / bins
    return np.clip(np.searchsorted(cuts, levels.position, side="right") - 1, 0, bins - 1)


def _equal_mass_bins(levels: Levels) -> Ints:
    """The bin of each level, of ten that hold about the same weight."""
    unique, level = np.unique(levels.position, return_inverse=True)
    w = add_up(level, levels.w, len(unique))
    middle = np.cumsum(w) - w / 2.0
    return np.minimum((middle / levels.total * BINS).astype(np.intp), BINS - 1)[level]


SMOOTH_CELLS, SMOOTH_POINTS, SMOOTH_DRAWS = 64, 32, 400
"""Cells of the smooth gap, which costs most, points where it is read off, and draws."""


def gap_noise(levels: Levels, bandwidth: float, draws: Floats) -> dict[str, tuple[Floats, Floats]]:
    """The terms that each gap is an absolute sum of, and their noise.

    A gap is the sum over parts of the score range of |r|, r = sum w (y - h) / sum w over the part.
    By chance r varies with variance sum w^2 (y - h)^2 / (sum w)^2 - r^2 sum w^2 / (sum w)^2.

    Parameters
    ----------
    levels : Levels
        Those of a group, or of everybody.
    bandwidth : float
        Of the smooth gap: the gap itself.
    draws : array (replicates, at least 64)
        Standard normal numbers; what is drawn for different groups need not be independent.

    Returns
    -------
    {name: (residuals, noise)}
        Arrays (parts,) and (replicates, parts).
    """
    residual, error = _residuals(levels, _equal_mass_bins(levels), BINS)
    result = {
        "calibration_gap": bin_noise(levels, draws),
        "calibration_gap_equal_mass": (residual, draws[:, :BINS] * error),
    }
    residual, error = _residuals(levels, _equal_width_bins(levels, SMOOTH_CELLS), SMOOTH_CELLS)
    kernel = _kernel(bandwidth)
    noise = draws[:SMOOTH_DRAWS, :SMOOTH_CELLS] * error
    result["calibration_gap_smooth"] = residual @ kernel, noise @ kernel
    return result


def bin_noise(levels: Levels, draws: Floats) -> tuple[Floats, Floats]:
    """The terms and the noise of the gap over bins of equal width only."""
    residual, error = _residuals(levels, _equal_width_bins(levels, BINS), BINS)
    return residual, draws[:, :BINS] * error


def _residuals(levels: Levels, index: Ints, parts: int) -> tuple[Floats, Floats]:
    """The mean residual of each part of the score range, and its standard error."""
    h, w2 = levels.position, levels.w2
    squares = levels.wy * (1.0 - h) ** 2 + (levels.w - levels.wy) * h**2
    w, own_w2, seen, expected, sums = (
        add_up(index, values, parts)
        for values in (
            levels.w,
            w2,
            w2 / levels.w * squares,
            w2 * h * (1.0 - h),
            levels.wy - levels.wh,
        )
    )
    rows = np.divide(w**2, own_w2, out=np.zeros(parts), where=own_w2 > 0)
    # Few rows may all have the same label by chance: four rows of variance h (1 - h) are added.
    weight = rows / (rows + 4.0)
    residual = sums / levels.total
    variance = weight * seen + (1.0 - weight) * expected - residual**2 * w2.sum()
    return residual, np.sqrt(np.maximum(variance, 0.0)) / levels.total


def _kernel(bandwidth: float) -> Floats:
    """The shares of each cell in equal parts of [0, 1], by a Gaussian reflected at 0 and 1.

    The middles of the cells and the cuts between the parts lie on one lattice, so that few
    distances occur and each is looked up.
    """
    from scipy.special import ndtr

    distances = (np.arange(6 * SMOOTH_CELLS) - 3 * SMOOTH_CELLS + 0.5) / SMOOTH_CELLS
    below = ndtr(distances / max(bandwidth, 1e-9))[_LATTICE].sum(axis=0)
    return np.diff(below, axis=-1)


_CELL, _WHOLE = np.arange(SMOOTH_CELLS), 2 * SMOOTH_CELLS
_CUT = np.arange(SMOOTH_POINTS + 1) * (SMOOTH_CELLS // SMOOTH_POINTS) + 3 * SMOOTH_CELLS
_IMAGES = np.stack([_CELL, -1 - _CELL, _WHOLE - 1 - _CELL, _CELL - _WHOLE, _CELL + _WHOLE])
_LATTICE = _CUT - 1 - _IMAGES[..., None]
"""The index of the distance from each cell, and its mirror images, to each cut."""


GAP_METHODS: dict[str, Callable[[Levels], float]] = {
    "equal_width": gap_equal_width,
    "equal_mass": gap_equal_mass,
    "debiased": gap_debiased,
    "smooth": gap_smooth,
    "bound": gap_bound,
}


def _recalibrated(people: People, slope: bool) -> tuple[Floats, Floats] | None:
    """The coefficients of logit P(y = 1) = a + b logit(h), and how far a unit of weight moves them.

    With ``slope`` false b is 1.  By Newton's method; None where no finite coefficients fit.
    """
    y, w = people.label, people.w / people.total
    if not 0.0 < float((w * y).sum()) < 1.0 - 1e-12:
        return None
    h = np.clip(people.score, CLIPPED, 1.0 - CLIPPED)
    if float(w[h != people.score].sum()) > MOST_CLIPPED:
        return None
    x = np.log(h / (1.0 - h))
    design = np.stack([np.ones_like(x), x] if slope else [np.ones_like(x)])
    offset = 0.0 if slope else x
    beta = np.array([0.0, 1.0] if slope else [0.0])
    for _ in range(STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(offset + beta @ design, -700.0, 700.0)))
        information = (design * (w * p * (1.0 - p))) @ design.T
        if not np.linalg.det(information) > 1e-14 * information[0, 0] * information[-1, -1]:
            return None
        step = np.linalg.solve(information, design @ (w * (y - p)))
        # A long step may overshoot; shortened, the next one is better.
        beta = beta + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < CONVERGED:
            break
    # With a steeper slope, scores separate the labels: there is no finite one.
    if not np.abs(beta).max() < 1e3 or np.abs(step).max() >= 1e-6:
        return None
    return beta, np.linalg.solve(information, design) * (y - p) / people.total


def _coefficient(
    population: GroupedPeople, group: int | None, slope: bool, index: int
) -> Estimated:
    people = population.people(group)
    fit = population.once(("fit", group, slope), lambda: _recalibrated(people, slope))
    if fit is None:
        return UNDEFINED
    coefficients, moves = fit
    squares, rows, freedom = moves[index] ** 2, math.inf, math.inf
    for own in (people.label == 0, people.label == 1):
        n, w, w2, w4 = (x[own] for x in (people.n, people.w, people.w2, people.w4))
        rows = min(rows, float(w.sum() ** 2 / w2.sum()))
        freedom = min(freedom, freedom_of(n, w2, w4, squares[own]))
    error = math.sqrt(float((people.w2 * squares).sum()))
    return Estimated(float(coefficients[index]), error, rows, freedom)


def calibration_slope(population: GroupedPeople, group: int | None) -> Estimated:
    """The b of logit P(y = 1) = a + b logit(h).

    With 1,024 bins a logit is off by at most 1 / (1,024 h (1 - h)): less than .01 for scores from
    .11 to .89.  Scores that are all alike, or that separate the labels, have no slope; nor have
    scores of which more than 1 % are 0 or 1, whose logits are infinite.
    """
    return _coefficient(population, group, True, 1)


def recalibration_intercept(population: GroupedPeople, group: int | None) -> Estimated:
    """The a of logit P(y = 1) = a + b logit(h).

    See :func:`calibration_slope`.
    """
    return _coefficient(population, group, True, 0)


def calibration_intercept(population: GroupedPeople, group: int | None) -> Estimated:
    """The a of logit P(y = 1) = a + logit(h): calibration in the large."""
    return _coefficient(population, group, False, 0)
