"""Costs if calibrated: those of scores that are the share of positives at their level.

Each group's scores are replaced by an isotonic regression of its labels.  In sample that would be
too good, so a person's score comes from the other folds; ``REPEATS`` divisions are averaged.  Folds
divide the people inside each cell at random: leaving whole cells out would take all positives of a
score away.

With q the calibrated score, the cost is the mean of a q (1 - y) + b (1 - q) y, and a row moves it
by its own term, less the mean, and by (a (1 - q) - b q)(y - q), because its label moves q.  So
standard errors need no resampling; benchmarks/recalibrated.py measures what intervals cover.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    least_differences,
    range_interval,
)
from isocost.measures.rates import by_group, has_both_labels
from isocost.result import Record
from isocost.typing import Floats

FOLDS, REPEATS = 5, 10


@dataclass(frozen=True)
class RecalibratedIntervals(Record):
    """Intervals of the numbers of :class:`Recalibrated`, by the same names."""

    cost: dict[Group, Interval]
    alpha: dict[Group, Interval]
    difference: Interval
    change: Interval


@dataclass(frozen=True)
class Recalibrated(Record):
    """The costs that the groups compared would have if the scores of each were calibrated.

    Attributes
    ----------
    cost, alpha : {group: float}
        The cost of errors, and the share to withhold; NaN for a group with one label.
    difference : float
        The largest difference in cost between two groups.
    change : float
        How far calibration moves the difference in cost between the groups ``between``: the one
        whose errors cost more as measured less the other.
    between : (group, group)
        The pair whose difference is shown to move most, by the lower end of its interval while all
        pairs are looked at; if none moves, the groups whose errors cost most and least as measured.
    intervals : RecalibratedIntervals or None
        How far these numbers may be off by chance.
    """

    cost: dict[Group, float]
    alpha: dict[Group, float]
    difference: float
    change: float
    between: tuple[Group, Group]
    intervals: RecalibratedIntervals | None = None

    @property
    def shown(self) -> float:
        """The size of the change if its interval excludes 0, else 0; NaN without intervals."""
        if self.intervals is None:
            return math.nan
        low, high = self.intervals.change
        return 0.0 if low <= 0.0 <= high else abs(self.change)


def recalibrated(estimates: Estimates, reach: Feasibility) -> Recalibrated:
    """The costs, if calibrated, of the groups whose feasibility is ``reach``."""
    tally, question, level = estimates.tally, estimates.question, estimates.question.level
    both = dict(zip(tally.groups, has_both_labels(tally), strict=True))
    groups, unknown = [g for g in reach.costs if both[g]], dict.fromkeys(reach.costs, math.nan)
    if len(groups) < 2:
        first, *_, last = reach.costs
        return Recalibrated(unknown, unknown, math.nan, math.nan, (first, last))
    indices = [*map(tally.index_of, groups)]
    parts = [_if_calibrated(estimates, *each) for each in enumerate(indices)]
    numbers, shifts, covariances = zip(*parts, strict=True)

    def ends(some: Sequence[Estimated], limits: Interval) -> Floats:
        """Value, lower and upper end, degrees of freedom; without intervals ends are the value."""
        known = question.confidence is not None
        spans = (interval_of(x, limits, level) if known else (x.value, x.value) for x in some)
        return np.array([(x.value, *span, x.freedom) for x, span in zip(some, spans, strict=True)])

    most = max(max(question.cost.amounts(group)) for group in groups)
    costs, moves = ends(numbers, (0.0, most)), ends(shifts, (-math.inf, math.inf))
    trivial = np.array([
        (estimates.costs["trivial_cost"][i], *estimates.trivial_interval(i)) for i in indices
    ])  # fmt: skip
    alpha = mixing_rates(costs[:, 0], trivial[:, 0], reach.tolerance)

    now = np.array([reach.costs[group] for group in groups])
    low = least_differences(moves, level)
    high = -low.T
    # The largest move itself would be that of the smallest group, which is the least certain.
    far = np.maximum(low, 0.0)
    s, t = np.unravel_index(far.argmax(), far.shape) if far.any() else (now.argmax(), now.argmin())
    s, t = (s, t) if now[s] >= now[t] else (t, s)
    intervals = None
    if question.confidence is not None:
        bounds = CostBounds(
            costs[:, :3], trivial, np.array(covariances), reach.tolerance, level, tally.n
        )
        spans = alpha_intervals(bounds, highest_candidates(costs, level), alpha)
        intervals = RecalibratedIntervals(
            cost={
                group: (a, b) for group, (_, a, b, _) in zip(groups, costs.tolist(), strict=True)
            },
            alpha=dict(zip(groups, spans, strict=True)),
            difference=range_interval(costs, level),
            change=(float(low[s, t]), float(high[s, t])),
        )
    return Recalibrated(
        cost=unknown | by_group(groups, costs[:, 0]),
        alpha=unknown | by_group(groups, alpha),
        difference=float(np.ptp(costs[:, 0])),
        change=float(moves[s, 0] - moves[t, 0]),
        between=(groups[s], groups[t]),
        intervals=intervals,
    )


def _if_calibrated(
    estimates: Estimates, stream: int, index: int
) -> tuple[Estimated, Estimated, float]:
    """The cost of a group if calibrated, and how far that is from the present cost.

    The third is the covariance of the first with the trivial cost; ``stream`` is that of the folds.
    """
    people, seed = estimates.people.people(index), (estimates.question.seed, stream)
    # Folds and calibrated scores are the same for every cost.
    held, q = estimates.people.once(("calibrated", index, seed), lambda: _folds(people, seed))
    cost, w, y = estimates.question.cost, people.w / people.total, people.label
    fp, fn = cost.amounts(estimates.tally.groups[index])
    # A plain cost is a sum of means over one label each.
    part = np.zeros_like(y) if cost.by_base_rate else y
    a, b = (fp, fn) if cost.by_base_rate else (fp, fn) / np.bincount(y, w)

    def paid(score: Floats) -> Floats:
        return np.where(y == 1, b * (1.0 - score), a * score)

    def off(term: Floats, mean: Floats) -> Floats:
        return term - (np.bincount(part, w * mean) / np.bincount(part, w))[part]

    def estimated(value: float, moves: Floats, inside: Floats | float) -> Estimated:
        moved = np.sqrt((held * moves * moves).sum(axis=0) + inside) / people.total
        return replace(people.moved(value, moved), form="mean")

    now, then = paid(people.score), paid(q)
    mean = (held * then).sum(axis=0)
    moves = off(then, mean) + (a * (1.0 - q) - b * q) * (y - q)
    # Scores differ inside a cell; calibrated ones do not.
    inside = np.maximum(people.wh2 / people.w - people.score**2, 0.0)
    inside *= np.where(y == 1, b, a) ** 2
    value, mu = float((w * mean).sum()), float(w[y == 1].sum())
    shift = estimated(value - float((w * now).sum()), moves - off(now, now), inside)
    slope = (fp + fn) * (1.0 - 2.0 * mu) if cost.by_base_rate else fp - fn
    terms = people.w2 / people.total**2 * held * moves * (y - mu)
    return estimated(value, moves, 0.0), shift, slope * float(terms.sum())


def _folds(people: People, seed: tuple[int, int]) -> tuple[Floats, Floats]:
    """The share of each cell in each fold, adding up to 1 in all, and its calibrated score there.

    Arrays (folds, cells).
    """
    from scipy.optimize import isotonic_regression

    level, place = np.unique(people.level, return_inverse=True)
    # A rule may leave a share of a row in a cell: it is in one fold as a whole.
    rows = np.maximum(np.rint(people.n), 1.0).astype(np.int64)
    drawn = np.random.default_rng(seed).multinomial(
        rows, [1.0 / FOLDS] * FOLDS, size=(REPEATS, len(rows))
    )
    held = np.moveaxis(drawn, -1, 1).reshape(-1, len(rows)) / rows
    others, ones = people.w / people.total * (1.0 - held), people.label == 1
    positive, weight = np.zeros((2, len(held), len(level)))
    positive[:, place[ones]] = others[:, ones]
    weight[:, place[~ones]] = others[:, ~ones]
    weight += positive
    q = np.full(weight.shape, float(people.w[ones].sum()) / people.total)
    for fold in np.flatnonzero(weight.any(axis=1)):
        known = weight[fold] > 0.0
        share = positive[fold, known] / weight[fold, known]
        fitted = isotonic_regression(share, weights=weight[fold, known]).x
        q[fold] = np.interp(level, level[known], fitted)
    return held / REPEATS, q[:, place]
