"""Resampling a tally by its cells, as if its rows had been drawn again.

A bootstrap of rows gives each row a count that is nearly Poisson with mean 1.  So the rows of a
cell, all with the same label and nearly the same score, are drawn again by one number: a
Poisson count with the cell's n as mean.  That takes the same time for a thousand rows and for
a billion.

Group sizes vary from replicate to replicate, as they do when people are drawn at random.  Rates
within a group do not notice; shares and the numbers of everybody do, and should.
A replicate without positives or without negatives in a group has no rates; its counts of
that label are drawn again, so replicates are conditional on both labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isocost.grid import TENTHS
from isocost.measures.calibration import Levels, levels_of
from isocost.tallies import KINDS, Cells, Sums, Tally, add_up

__all__ = ["Replicates", "Residuals", "resample"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

PARTS = 10
"""Bins of the calibration gap, by width and by mass."""

SLICES = 20
"""Slices of equal mass into which the bins of a large group are merged; a multiple of PARTS."""

UNMERGED = 96
"""A group with at most so many occupied bins keeps them all: with few rows a bin is a row."""

SMOOTHED = 500
"""How many replicates serve the smooth gap, which costs most."""

_POINTS = 64


@dataclass(frozen=True)
class Residuals:
    """The means of w (y - h) per part of the score range, for each group and for everybody.

    ``found`` is (groups + 1, parts), everybody last; ``noise`` is (replicates, groups + 1, parts),
    the deviations of the replicates from it.
    """

    found: Floats
    noise: Floats


@dataclass(frozen=True)
class Replicates:
    """Resampled tallies.

    Attributes
    ----------
    sums : Sums
        By kind of people: arrays (replicates, groups, 4).
    residuals : {name: Residuals}
        What the gaps are absolute sums of; the smooth one has at most :data:`SMOOTHED` replicates.
    """

    sums: Sums
    residuals: dict[str, Residuals]


@dataclass(frozen=True)
class _Merged:
    """The merged cells of one group: sums, and how rows vary inside a cell.

    With r = w (h - mean h): ``weight_variance`` is Var(w), ``slope`` the regression of r on w,
    ``spread`` the standard deviation of r that is left.
    """

    label: Ints
    kind: Ints
    position: Floats
    tenth: Ints
    pooled_part: Ints
    part: Ints
    n: Floats
    w: Floats
    w2: Floats
    wh: Floats
    wh2: Floats
    weight_variance: Floats
    slope: Floats
    spread: Floats


def resample(
    tally: Tally, threshold: float, replicates: int, seed: int, bandwidths: Sequence[float]
) -> Replicates:
    """Draw the tally again ``replicates`` times; each group has its own stream of numbers.

    A group's bins are merged into slices of 1/20 of its weight, never across the threshold, a
    tenth or an edge of the equal-mass bins.  How weights and scores vary inside a merged cell
    is drawn too: the weight from a gamma distribution with the cell's mean and variance, the
    mean score from a normal one.

    ``bandwidths`` are the smooth gaps of the groups, and last that of everybody.
    """
    streams = np.random.SeedSequence(seed).spawn(len(tally.groups))
    everybody = levels_of(tally)
    pooled_part = _parts(tally, everybody, PARTS)
    first = tally.grid.first_bin(threshold)
    drawn = []
    for place, stream in enumerate(streams):
        merged = _merge(tally, place, pooled_part, first)
        kernels = [_kernel(merged.position, bandwidths[i]) for i in (place, -1)]
        rng = np.random.default_rng(stream)
        drawn.append(_draw_group(merged, kernels, replicates, rng))
    stacked = [np.stack(parts, axis=1) for parts in zip(*drawn, strict=True)]
    *totals, width, mass, pooled_mass, smooth, pooled_smooth = stacked
    sums = Sums(*(values[1:] for values in totals))
    weight = totals[1].sum(axis=-1)
    return Replicates(
        sums,
        {
            "calibration_gap": _residuals(width, width, weight),
            "calibration_gap_equal_mass": _residuals(mass, pooled_mass, weight),
            "calibration_gap_smooth": _residuals(smooth, pooled_smooth, weight),
        },
    )


def _residuals(groups: Floats, pooled: Floats, weight: Floats) -> Residuals:
    """Sums of groups become means, and so do those of everybody."""
    weight = weight[: len(groups)]
    everybody = pooled.sum(axis=1) / weight.sum(axis=1)[:, None]
    means = np.concatenate([groups / weight[..., None], everybody[:, None]], axis=1)
    return Residuals(means[0], means[1:] - means[0])


def _parts(tally: Tally, levels: Levels, parts: int) -> Ints:
    """The equal-mass part of every bin of the grid, as :func:`gap_equal_mass` has it."""
    used = tally.grid.index(levels.position)
    middle = np.cumsum(levels.w) - levels.w / 2.0
    found = np.minimum((middle / levels.total * parts).astype(np.intp), parts - 1)
    part = np.zeros(tally.grid.size, dtype=np.intp)
    part[used] = found
    return part


def _merge(tally: Tally, place: int, pooled_part: Ints, first: int) -> _Merged:
    """Merge the bins of one group where nothing that is measured tells them apart."""
    cells = tally.cells.take(tally.cells.of_group(place))
    slices = _parts(tally, levels_of(tally, place), SLICES)
    tenth = np.searchsorted(TENTHS, tally.grid.cuts[:-1], side="right")
    few = len(np.unique(cells.bin)) <= UNMERGED
    key = np.stack(
        [
            cells.kind(first),
            tenth[cells.bin],
            pooled_part[cells.bin],
            cells.bin if few else slices[cells.bin],
        ]
    )
    _, head, cell = np.unique(key, axis=1, return_index=True, return_inverse=True)
    bins = cells.bin[head]
    sums = _moments(cells, cell.ravel(), len(head))
    return _Merged(
        label=cells.label[head],
        kind=cells.kind(first)[head],
        position=np.clip(sums["wh"] / sums["w"], 0.0, 1.0),
        tenth=tenth[bins],
        pooled_part=pooled_part[bins],
        part=slices[bins] // (SLICES // PARTS),
        **sums,
    )


def _moments(cells: Cells, cell: Ints, size: int) -> dict[str, Floats]:
    """The sums of merged cells, and the variation of weights and scores inside them."""
    added = {s: add_up(cell, getattr(cells, s), size) for s in ("n", "w", "w2", "wh", "wh2")}
    n, w = added["n"], added["w"]
    mean = added["wh"] / w
    own = cells.wh / cells.w
    # Inside a bin the weight is taken to be independent of the score.
    own_variance = np.maximum(cells.wh2 / cells.w - own**2, 0.0)
    off = own - mean[cell]
    weight_variance = np.maximum(added["w2"] / n - (w / n) ** 2, 0.0)
    weight_variance[weight_variance < 1e-12 * (w / n) ** 2] = 0.0
    covariance = add_up(cell, cells.w2 * off, size) / n
    variance = add_up(cell, cells.w2 * (off**2 + own_variance), size) / n
    varies = weight_variance > 0
    slope = np.zeros(size)
    slope[varies] = covariance[varies] / weight_variance[varies]
    spread = np.sqrt(np.maximum(variance - slope**2 * weight_variance, 0.0))
    return {**added, "weight_variance": weight_variance, "slope": slope, "spread": spread}


def _draw_group(
    cells: _Merged, kernels: list[Floats], replicates: int, rng: np.random.Generator
) -> tuple[Floats, ...]:
    """The five sums by kind, (1 + R, 4) each, then the residuals by part.

    Row 0 is the cells as they are.
    """
    counts = _draw_counts(cells, replicates, rng)
    w = _draw_weights(cells, counts, rng)
    mean = cells.wh / cells.w
    wh = w * mean
    wh[1:] += _draw_scores(cells, counts[1:], w[1:], rng)
    np.clip(wh, 0.0, w, out=wh)
    kind = np.eye(len(KINDS))[cells.kind]
    # In a narrow cell h^2 is a straight line of h, with slope 2 mean.
    base = cells.wh2 / cells.w - 2.0 * mean**2
    wh2 = w @ (kind * base[:, None]) + wh @ (kind * 2.0 * mean[:, None])
    w2 = counts @ (kind * (cells.w2 / cells.n)[:, None])
    residual = cells.label * w - wh
    parts = [np.eye(PARTS)[place] for place in (cells.tenth, cells.part, cells.pooled_part)]
    by_part = np.split(residual @ np.concatenate(parts, axis=1), 3, axis=1)
    smooth = [residual[: 1 + SMOOTHED] @ kernel for kernel in kernels]
    return (counts @ kind, w @ kind, w2, wh @ kind, wh2, *by_part, *smooth)


def _draw_weights(cells: _Merged, counts: Floats, rng: np.random.Generator) -> Floats:
    """The weight of each cell: a sum of as many gamma variates as it has rows."""
    mean = cells.w / cells.n
    w = counts * mean
    varies = cells.weight_variance > 0
    if varies.any():
        scale = cells.weight_variance[varies] / mean[varies]
        w[1:, varies] = rng.standard_gamma(counts[1:, varies] * (mean[varies] / scale)) * scale
    return w


def _draw_scores(
    cells: _Merged, counts: Floats, w: Floats, rng: np.random.Generator
) -> Floats | float:
    """What the variation of scores inside the cells adds to sum w h."""
    if not cells.spread.any() and not cells.slope.any():
        return 0.0
    off = rng.standard_normal(counts.shape)
    off *= np.sqrt(counts)
    off *= cells.spread
    if cells.slope.any():
        off += cells.slope * (w - counts * (cells.w / cells.n))
    return off


def _draw_counts(cells: _Merged, replicates: int, rng: np.random.Generator) -> Floats:
    """How many rows of each cell a replicate has; row 0 is the cells as they are."""
    counts = np.empty((1 + replicates, len(cells.n)))
    counts[0] = cells.n
    counts[1:] = rng.poisson(cells.n, (replicates, len(cells.n)))
    for label in (0, 1):
        inside = np.flatnonzero(cells.label == label)
        empty = np.flatnonzero(counts[:, inside].sum(axis=1) == 0)
        while len(empty):
            again = rng.poisson(cells.n[inside], (len(empty), len(inside)))
            counts[np.ix_(empty, inside)] = again
            empty = empty[again.sum(axis=1) == 0]
    return counts


def _kernel(position: Floats, bandwidth: float) -> Floats:
    """How a Gaussian reflected at 0 and 1 spreads each position over equal parts of [0, 1]."""
    from scipy.special import ndtr

    cuts = np.arange(_POINTS + 1) / _POINTS
    images = np.stack([position, -position, 2.0 - position, position - 2.0, 2.0 + position])
    below = ndtr((cuts - images[..., None]) / max(bandwidth, 1e-9)).sum(axis=0)
    spread: Floats = np.diff(below, axis=-1)
    return spread
