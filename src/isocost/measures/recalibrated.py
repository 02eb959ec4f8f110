"""Costs if calibrated: those of scores that are the share of positives at their level.

Each group's scores are replaced by an isotonic regression of its labels.  In sample that would be
too good, so a person's score comes from the other folds; ``REPEATS`` divisions are averaged.  Folds
divide the people inside each cell at random: leaving whole cells out would take all positives of a
score away.

With q the calibrated score, the cost is the mean of a q (1 - y) + b (1 - q) y, and a row moves it
by its own term, less the mean, and by (a (1 - q) - b q)(y - q), because its label moves q.  So the
standard errors are closed forms; ``python -m benchmarks.recalibrated`` measures what they cover.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isocost.groups import Group
from isocost.measures.derived import Estimated, People
from isocost.measures.feasibility import Feasibility, mixing_rates
from isocost.measures.intervals import (
    CostBounds,
    Estimates,
    Interval,
    alpha_intervals,
    highest_candidates,
    interval_of,
    pair_bounds,
    range_interval,
    stretch,
)
from isocost.measures.rates import by_group, disparity, has_both_labels
from isocost.result import Record
from isocost.typing import Floats

FOLDS, REPEATS = 5, 10


@dataclass(frozen=True)
class RecalibratedIntervals(Record):
    """Intervals of the numbers of :class:`Recalibrated`, by the same names.

    Those of ``difference`` and ``change`` hold while all pairs of groups are looked at.
    """

    cost: dict[Group, Interval]
    alpha: dict[Group, Interval]
    difference: Interval
    change: Interval


@dataclass(frozen=True)
class Recalibrated(Record):
    """The costs that the groups compared would have if the scores of each were calibrated.

    Attributes
    ----------
    cost : {group: float}
        The cost of errors; NaN for a group with one label.
    alpha : {group: float}
        The share of each group to withhold.
    difference : float
        The largest difference in cost between two groups.
    change : float
        How far calibration moves the difference in cost between the groups ``between``, the one
        whose errors cost more as measured less the other; below -|difference| it turns it round.
    between : (group, group)
        Of all pairs whose difference is shown to move, the one that moves most; if none is shown
        to, the groups whose errors cost most and least as measured.
    intervals : RecalibratedIntervals or None
        How far these numbers may be off by chance.
    """

    cost: dict[Group, float]
    alpha: dict[Group, float]
    difference: float
    change: float
    between: tuple[Group, Group]
    intervals: RecalibratedIntervals | None = None


def recalibrated(estimates: Estimates, reach: Feasibility) -> Recalibrated:
    """The costs, if calibrated, of the groups whose feasibility is ``reach``."""
    tally, question, level = estimates.tally, estimates.question, estimates.question.level
    both = dict(zip(tally.groups, has_both_labels(tally), strict=True))
    groups = tuple(group for group in reach.costs if both[group])
    if len(groups) < 2:
        first, *_, last = reach.costs
        nobody = dict.fromkeys(reach.costs, math.nan)
        return Recalibrated(nobody, nobody, math.nan, math.nan, (first, last))
    indices, cost = [*map(tally.index_of, groups)], question.cost
    parts = [
        _if_calibrated(
            estimates.people.people(i),
            cost.amounts(group),
            cost.by_base_rate,
            np.random.default_rng([question.seed, i]),
        )
        for i, group in zip(indices, groups, strict=True)
    ]

    def ends(numbers: Sequence[Estimated], limits: Interval) -> Floats:
        """Value, lower and upper end of each; without intervals the ends are the value."""
        if question.confidence is None:
            return np.array([[one.value] * 3 for one in numbers])
        return np.array([(one.value, *interval_of(one, limits, level)) for one in numbers])

    most = max(max(cost.amounts(group)) for group in groups)
    costs = ends([one for one, _, _ in parts], (0.0, most))
    moves = ends([one for _, one, _ in parts], (-math.inf, math.inf))
    trivial = np.array([
        (estimates.costs["trivial_cost"][i], *estimates.trivial_interval(i)) for i in indices
    ])  # fmt: skip
    alpha = mixing_rates(costs[:, 0], trivial[:, 0], reach.tolerance)
    now = np.array([reach.costs[group] for group in groups])
    low, high = pair_bounds(moves, moves, stretch(level, len(groups)))
    far = np.where(low > 0.0, moves[:, None, 0] - moves[None, :, 0], 0.0)
    s, t = np.unravel_index(far.argmax(), far.shape) if far.any() else (now.argmax(), now.argmin())
    if now[s] < now[t]:
        s, t = t, s
    intervals = None
    if question.confidence is not None:
        covariance = np.array([one for _, _, one in parts])
        bounds = CostBounds(costs, trivial, covariance, reach.tolerance, level, tally.n)
        spans = alpha_intervals(bounds, highest_candidates(costs, level), alpha)
        intervals = RecalibratedIntervals(
            cost={group: (a, b) for group, (_, a, b) in zip(groups, costs.tolist(), strict=True)},
            alpha=dict(zip(groups, spans, strict=True)),
            difference=range_interval(costs, level),
            change=(float(low[s, t]), float(high[s, t])),
        )
    return Recalibrated(
        cost=dict.fromkeys(reach.costs, math.nan) | by_group(groups, costs[:, 0]),
        alpha=dict.fromkeys(reach.costs, math.nan) | by_group(groups, alpha),
        difference=disparity(groups, costs[:, 0]).difference,
        change=float(moves[s, 0] - moves[t, 0]),
        between=(groups[s], groups[t]),
        intervals=intervals,
    )


def _if_calibrated(
    people: People, amounts: tuple[float, float], by_base_rate: bool, rng: np.random.Generator
) -> tuple[Estimated, Estimated, float]:
    """The cost if calibrated, how far that is from the present cost, and a covariance.

    The covariance is that of the first with the trivial cost.
    """
    from scipy.optimize import isotonic_regression

    level, place = np.unique(people.level, return_inverse=True)
    total, y = people.total, np.array([[0.0], [1.0]])

    def by_label(values: Floats) -> Floats:
        """Values of the cells, by label and level."""
        dense = np.zeros((2, len(level)))
        dense[people.label, place] = values
        return dense

    # As shares of the whole, so that no power of a weight is too large or too small.
    n, w, w2 = (by_label(people.n), by_label(people.w / total), by_label(people.w2 / total**2))
    w4 = by_label(people.w4 / total**4)
    # A rule may leave a share of a row in a cell: that share is in one fold.
    rows = np.where(n > 0, np.maximum(np.rint(n), 1.0), 0.0).astype(np.int64)
    drawn = rng.multinomial(rows, [1.0 / FOLDS] * FOLDS, size=(REPEATS, *rows.shape))
    held = np.moveaxis(drawn, -1, 1).reshape(-1, *rows.shape) / np.maximum(rows, 1)
    others = w * (1.0 - held)
    weight, positive = others.sum(axis=1), others[:, 1]
    q = np.full(weight.shape, w[1].sum())
    for fold in np.flatnonzero(weight.any(axis=1)):
        known = weight[fold] > 0
        share = positive[fold, known] / weight[fold, known]
        fitted = isotonic_regression(share, weights=weight[fold, known]).x
        q[fold] = np.interp(level, level[known], fitted)

    fp, fn = amounts
    a, b = (fp, fn) if by_base_rate else (fp, fn) / w.sum(axis=1)
    h, held = by_label(people.score), held / REPEATS
    paid, paid_now = np.stack([a * q, b * (1.0 - q)], axis=1), np.stack([a * h[0], b * (1 - h[1])])
    # A plain cost is a sum of means over one label each.
    axes = (0, 1) if by_base_rate else (1,)
    mean, now = (
        terms.sum(axis=axes, keepdims=True) / w.sum(axis=axes, keepdims=True)
        for terms in ((w * held * paid).sum(axis=0), w * paid_now)
    )
    moved = paid - mean + (a * (1.0 - q) - b * q)[:, None] * (y - q[:, None])
    # Scores differ inside a cell; calibrated ones do not.
    square = np.divide(by_label(people.wh2 / total), w, out=h**2, where=w > 0)
    inside = (w2 * np.array([[a], [b]]) ** 2 * np.maximum(square - h**2, 0.0)).sum()

    def estimated(value: float, move: Floats, more: float) -> Estimated:
        """A number that a unit of weight moves so far, with ``more`` variance."""
        square, powers = move * move, (w2, np.sqrt(w2 * w4), w4)
        terms = (held * square, held * square * move, held * square * square)
        variance, cubes, fourth = (
            float((power * term.sum(axis=0)).sum())
            for power, term in zip(powers, terms, strict=True)
        )
        if variance + more == 0.0:
            return Estimated(value, 0.0, people.rows, form="mean")
        # Satterthwaite: the degrees of freedom of a variance whose terms differ.
        variance, spread = variance + more, fourth - variance**2 / float(n.sum())
        freedom = 2.0 * variance**2 / spread if spread > 0.0 else math.inf
        skew = cubes / variance**1.5
        error, rows = math.sqrt(variance), min(people.rows, 1.0 + freedom)
        return Estimated(value, error, rows, skew=skew, form="mean")

    cost, cost_now = float((w * held * paid).sum()), float((w * paid_now).sum())
    base_rate = float(w[1].sum())
    slope = (fp + fn) * (1.0 - 2.0 * base_rate) if by_base_rate else fp - fn
    covariance = slope * float((w2 * held * moved * (y - base_rate)).sum())
    shift = estimated(cost - cost_now, moved - (paid_now - now), float(inside))
    return estimated(cost, moved, 0.0), shift, covariance
