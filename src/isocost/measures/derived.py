"""Measures that are no plain means: formulas of sums, ranks, logistic fits, comparisons of groups.

Each gives a number and its standard error by linearization: if a row of weight w and value x moves
the number by w u(x), the variance is the sum of w^2 u(x)^2.  A cell keeps sum w^2, so no rows are
needed.

==============================  ==================================================================
formulas of sums                f1, mcc, balanced_accuracy, observed_to_expected, brier_skill,
                                net_benefit; u is the derivative of the formula
ranks                           auc, cross_auc (DeLong, DeLong and Clarke-Pearson 1988)
logistic recalibration          calibration_slope, calibration_intercept (Cox 1958)
compared with a reference       impact_ratio, standardized_difference
compared with everybody         scoring_rate, adjusted_fpr, adjusted_fnr, adjusted_ppv
==============================  ==================================================================

Scores are known as far as their bins tell: two people in a bin count as tied, and a logit is that
of the bin's mean score.  Scores that take few values are exact; each function gives the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from isocost.checks import check_numbers
from isocost.groups import Group
from isocost.tallies import KINDS, Cells, Tally, add_up, check_tally
from isocost.typing import Bools, Floats, Ints

STEP = 1e-30
"""Of the derivative along the imaginary axis, which has no rounding error."""

CLIPPED = 1e-6
"""Scores nearer to 0 or 1 have the logit of this one."""

STEPS, CONVERGED = 60, 1e-11
"""Newton steps of a logistic fit, and the last one's size."""

STEEPEST = 1e3
"""A slope beyond this means that scores separate the labels: there is no finite one."""

RISK_BINS = 20
"""Parts of the range of scores, each with about as many people, in which groups are compared."""

THIN = 5
"""A part in which a group has fewer rows is too thin to compare it there."""

MOST_THIN = 0.05
"""How much of everybody may be in parts that are too thin; with more there is no adjusted rate."""


@dataclass(frozen=True)
class Estimated:
    """A number with its standard error.

    Attributes
    ----------
    value, error : float
        NaN where the number is not defined.
    rows : float
        The effective number of people it rests on; it gives an interval even where nobody in the
        sample differs, such as an area of 1.
    """

    value: float
    error: float
    rows: float


UNDEFINED = Estimated(math.nan, math.nan, 0.0)


@dataclass(frozen=True)
class People:
    """Rows, or cells of rows, of one group or of everybody.

    Attributes
    ----------
    label, level : array of int
        The level is the rank of the score: equal for tied rows.
    selected : array of bool
        Whether the score is at or above the threshold.
    n, w, w2, wh, wh2 : arrays
        Rows, and sums of w, w^2, w h and w h^2.
    """

    label: Ints
    level: Ints
    selected: Bools
    n: Floats
    w: Floats
    w2: Floats
    wh: Floats
    wh2: Floats

    @cached_property
    def score(self) -> Floats:
        """The mean score of each."""
        return self.wh / self.w

    @cached_property
    def kind(self) -> Ints:
        """An index into :data:`isocost.tallies.KINDS`."""
        return self.label * 2 + self.selected

    @property
    def rows(self) -> float:
        """The effective number of rows (Kish)."""
        squares = float(self.w2.sum())
        return float(self.w.sum()) ** 2 / squares if squares > 0 else 0.0

    def take(self, keep: Bools) -> People:
        """Only those to keep."""
        return People(*(getattr(self, column.name)[keep] for column in fields(self)))

    def variance(self, moves: Floats) -> float:
        """The sum of w^2 u^2, for what a unit of weight moves the number by."""
        return float((self.w2 * moves**2).sum())

    def spread(self, levels: int) -> Floats:
        """The share of the weight at each level."""
        return add_up(self.level, self.w, levels) / float(self.w.sum())

    @classmethod
    def of_cells(cls, cells: Cells, first: int) -> People:
        """Cells as they are; ``first`` is the first bin at the threshold."""
        sums = (cells.n, cells.w, cells.w2, cells.wh, cells.wh2)
        return cls(cells.label, cells.bin, cells.bin >= first, *sums)


@dataclass(frozen=True)
class GroupedPeople:
    """Everybody, by group: what a derived measure looks at.

    Attributes
    ----------
    groups : tuple of People
        The groups.
    everybody : People
        All of them together.
    levels : int
        How many levels of the score there are.
    threshold : float
        From which people are selected.
    candidates : tuple of int
        The groups that others may be compared with: those that are large enough.
    reference : int or None
        The group that others are compared with, if the caller named one.
    """

    groups: tuple[People, ...]
    everybody: People
    levels: int
    threshold: float
    candidates: tuple[int, ...]
    reference: int | None = None

    @classmethod
    def of_tally(
        cls,
        tally: Tally,
        threshold: float,
        candidates: Sequence[int] | None = None,
        reference: int | None = None,
    ) -> GroupedPeople:
        """The people of a tally, a cell at a time."""
        first, cells = tally.grid.first_bin(threshold), tally.cells
        own = [cells.take(cells.of_group(index)) for index in range(len(tally.groups))]
        among = range(len(own)) if candidates is None else candidates
        return cls(
            tuple(People.of_cells(each, first) for each in own),
            People.of_cells(cells, first),
            tally.grid.size,
            threshold,
            tuple(among),
            reference,
        )

    @classmethod
    def of_rows(cls, y: Floats, h: Floats, w: Floats, threshold: float) -> GroupedPeople:
        """One group, a row at a time: nothing is lost to bins."""
        scores, level = np.unique(h, return_inverse=True)
        columns = (np.ones(len(h)), w, w * w, w * h, w * h * h)
        people = People(y.astype(np.intp), level, h >= threshold, *columns)
        return cls((people,), people, len(scores), threshold, (0,))

    def people(self, group: int | None) -> People:
        """Those of a group, or everybody."""
        return self.everybody if group is None else self.groups[group]

    def others(self, group: int) -> list[People]:
        """Everybody else, group by group."""
        return [people for index, people in enumerate(self.groups) if index != group]

    def highest(self, number: Callable[[People], float]) -> int:
        """The reference group: the one named, or the candidate for which a number is highest."""
        if self.reference is not None:
            return self.reference
        return max(self.candidates, key=lambda index: number(self.groups[index]))


@dataclass(frozen=True)
class Totals:
    """Sums of a group by kind, for formulas.

    Attributes
    ----------
    w, wh, wh2 : arrays (4, ...)
        The sums of w, w h and w h^2 of true negatives, false positives, false negatives and true
        positives.
    threshold : float
        From which people are selected.
    """

    w: Any
    wh: Any
    wh2: Any
    threshold: float

    @property
    def total(self) -> Any:
        """The weight of all."""
        return self.w.sum(axis=0)


Formula = Callable[[Totals], Any]
"""From sums to a number; smooth, and of no unit: weights in another unit give the same."""


def of_sums(formula: Formula, population: GroupedPeople, group: int | None) -> Estimated:
    """A smooth formula of sums by kind, with what each sum moves it by."""
    people = population.people(group)
    columns = (people.w, people.wh, people.wh2)
    sums = np.array([add_up(people.kind, x, len(KINDS)) for x in columns]) / people.w.sum()
    # A step in each of the twelve sums.
    steps = sums[..., None] + 1j * STEP * np.eye(sums.size).reshape(*sums.shape, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(formula(Totals(sums[0], sums[1], sums[2], population.threshold)))
        moved = formula(Totals(steps[0], steps[1], steps[2], population.threshold))
    slopes = np.imag(moved) / STEP
    if not math.isfinite(value):
        return UNDEFINED
    if not np.isfinite(slopes).all():
        return Estimated(value, 0.0, people.rows)
    one, line, square = slopes.reshape(sums.shape)[:, people.kind]
    moves = one + line * people.score + square * people.wh2 / people.w
    return Estimated(value, math.sqrt(people.variance(moves / people.w.sum())), people.rows)


def f1(sums: Totals) -> Any:
    """2 tp / (2 tp + fp + fn)."""
    _, fp, fn, tp = sums.w
    return 2.0 * tp / (2.0 * tp + fp + fn)


def balanced_accuracy(sums: Totals) -> Any:
    """(TPR + TNR) / 2."""
    tn, fp, fn, tp = sums.w
    return (tn / (tn + fp) + tp / (tp + fn)) / 2.0


def mcc(sums: Totals) -> Any:
    """(tp tn - fp fn) / sqrt((tp + fp) (tp + fn) (tn + fp) (tn + fn))."""
    tn, fp, fn, tp = sums.w
    return (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))


def observed_to_expected(sums: Totals) -> Any:
    """Sum w y / sum w h.

    Exact whatever the bins.
    """
    return (sums.w[2] + sums.w[3]) / sums.wh.sum(axis=0)


def brier_skill(sums: Totals) -> Any:
    """1 - Brier score / (mu (1 - mu)).

    Exact whatever the bins.
    """
    squares = sums.wh2.sum(axis=0) + (sums.w - 2.0 * sums.wh)[2:].sum(axis=0)
    mu = (sums.w[2] + sums.w[3]) / sums.total
    return 1.0 - squares / sums.total / (mu * (1.0 - mu))


def net_benefit(sums: Totals) -> Any:
    """(tp - fp t / (1 - t)) / n at threshold t (Vickers and Elkin 2006).

    The threshold of an audit is an edge of the bins, so this is exact.
    """
    if sums.threshold >= 1.0:
        return np.nan * sums.total
    return (sums.w[3] - sums.w[1] * sums.threshold / (1.0 - sums.threshold)) / sums.total


@dataclass(frozen=True)
class NetBenefitCurve:
    """The net benefit of each group over thresholds.

    Attributes
    ----------
    groups : tuple
        The groups.
    threshold : array (m,)
        Rising; all are edges of the tally.
    net_benefit, error : array (groups, m)
        Of deciding by the scores, and its standard error.
    treat_all : array (groups, m)
        Of selecting everybody, mu - (1 - mu) t / (1 - t); selecting nobody has 0.
    selection_rate : array (groups, m)
        The share selected.
    base_rate, rows : array (groups,)
        The share of positives, and the effective number of rows.
    """

    groups: tuple[Group, ...]
    threshold: Floats
    net_benefit: Floats
    error: Floats
    treat_all: Floats
    selection_rate: Floats
    base_rate: Floats
    rows: Floats


def net_benefit_curve(tally: Tally, thresholds: Any = None) -> NetBenefitCurve:
    """Decision curves of the groups (Vickers and Elkin 2006).

    Parameters
    ----------
    tally : Tally
        Scores and labels.
    thresholds : float or several, optional
        Edges of the tally, at which the curve is exact; nothing is interpolated, so a threshold
        inside a bin is refused.  By default about a hundred, up to the highest score.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> curve = net_benefit_curve(compas(), [0.3, 0.5])
    >>> curve.net_benefit.round(4).tolist()
    [[0.3172, 0.1561], [0.17, 0.0713]]
    >>> curve.treat_all.round(4).tolist()
    [[0.3062, 0.0287], [0.1338, -0.2127]]
    """
    check_tally(tally)
    t = _edges(tally) if thresholds is None else np.unique(check_numbers("thresholds", thresholds))
    first = [tally.grid.first_bin(float(edge), "thresholds") for edge in t]
    cells, shape = tally.cells, (len(tally.groups), 2, tally.grid.size)
    place = (cells.group * 2 + cells.label) * tally.grid.size + cells.bin
    w, w2 = (add_up(place, x, math.prod(shape)).reshape(shape) for x in (cells.w, cells.w2))
    total, squares = w.sum(axis=(1, 2)), w2.sum(axis=(1, 2))
    # Of each label, what is at or above each threshold.
    (fp, tp), (fp2, tp2) = (
        np.moveaxis(x[..., ::-1].cumsum(axis=-1)[..., ::-1][..., first], 1, 0) for x in (w, w2)
    )
    odds, all_of = t / (1.0 - t), total[:, None]
    value = (tp - odds * fp) / all_of
    passed = np.maximum(squares[:, None] - fp2 - tp2, 0.0)
    variance = tp2 * (1.0 - value) ** 2 + fp2 * (odds + value) ** 2 + passed * value**2
    mu = w[:, 1].sum(axis=-1) / total
    treat_all = mu[:, None] - odds * (1.0 - mu[:, None])
    error = np.sqrt(variance) / all_of
    selected = (tp + fp) / all_of
    rows = total**2 / squares
    return NetBenefitCurve(tally.groups, t, value, error, treat_all, selected, mu, rows)


def _edges(tally: Tally) -> Floats:
    """The edge nearest to each hundredth part of the range of scores."""
    inner = tally.grid.cuts[1:-1]
    highest = float(tally.grid.cuts[tally.cells.bin.max() + 1])
    steps = highest * np.arange(1, 101)[:, None] / 100.0
    return np.unique(inner[np.abs(inner - steps).argmin(axis=1)])


def area(positives: Sequence[People], negatives: Sequence[People], levels: int) -> Estimated:
    """The chance that a positive has a higher score than a negative, ties counting half.

    Within a bin all pairs count as ties, so it is off by at most half the share of pairs in the
    same bin; see :func:`area_bound`.
    """
    if not positives or not negatives:
        return UNDEFINED
    one, other = (_joined(people, label) for people, label in ((positives, 1), (negatives, 0)))
    if not len(one.w) or not len(other.w):
        return UNDEFINED
    above, below = one.spread(levels), other.spread(levels)
    lower = np.cumsum(below) - below / 2.0
    higher = 1.0 - np.cumsum(above) + above / 2.0
    value = float((above * lower).sum())
    moves = [
        (people, (rank[people.level] - value) / people.w.sum())
        for people, rank in ((one, lower), (other, higher))
    ]
    variance = sum(people.variance(u) for people, u in moves)
    return Estimated(value, math.sqrt(variance), min(one.rows, other.rows))


def area_bound(population: GroupedPeople, group: int | None = None) -> float:
    """How far an area may be off because of bins: half the share of pairs that share a bin."""
    people = population.people(group)
    spreads = [people.take(people.label == label).spread(population.levels) for label in (0, 1)]
    return float((spreads[0] * spreads[1]).sum()) / 2.0


def _joined(groups: Sequence[People], label: int) -> People:
    """The people of some groups who have a label."""
    own = [people.take(people.label == label) for people in groups]
    names = [column.name for column in fields(People)]
    return People(*(np.concatenate([getattr(each, name) for each in own]) for name in names))


def auc(population: GroupedPeople, group: int | None) -> Estimated:
    """The area under the ROC curve; see :func:`area`."""
    people = [population.people(group)]
    return area(people, people, population.levels)


def cross_auc(population: GroupedPeople, group: int | None) -> Estimated:
    """Positives of this group against negatives of the others (Kallus and Zhou 2019)."""
    if group is None:
        return UNDEFINED
    return area([population.groups[group]], population.others(group), population.levels)


def cross_auc_negatives(population: GroupedPeople, group: int | None) -> Estimated:
    """Positives of the others against negatives of this group."""
    if group is None:
        return UNDEFINED
    return area(population.others(group), [population.groups[group]], population.levels)


def _logit(people: People) -> Floats:
    h = np.clip(people.score, CLIPPED, 1.0 - CLIPPED)
    return np.asarray(np.log(h / (1.0 - h)))


def _recalibrated(people: People, slope: bool) -> tuple[Floats, Floats, Floats] | None:
    """The fit of logit P(y = 1) = a + b logit(h); with ``slope`` false b is 1.

    Gives the coefficients, the residuals, and the inverse of the information times the design;
    None where no finite coefficients fit.
    """
    if len(np.unique(people.label)) < 2:
        return None
    x = _logit(people)
    design = np.stack([np.ones_like(x), x] if slope else [np.ones_like(x)])
    offset = 0.0 if slope else x
    w = people.w / people.w.sum()
    beta = np.array([0.0, 1.0] if slope else [0.0])
    for _ in range(STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(offset + beta @ design, -700.0, 700.0)))
        information = (design * (w * p * (1.0 - p))) @ design.T
        if not np.linalg.cond(information) < 1e14:
            return None
        step = np.linalg.solve(information, design @ (w * (people.label - p)))
        # A long step may overshoot; shortened, the next one is better.
        beta = beta + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < CONVERGED:
            break
    if not np.abs(beta).max() < STEEPEST or np.abs(step).max() >= 1e-6:
        return None
    return beta, people.label - p, np.linalg.solve(information, design) / people.w.sum()


def _coefficient(
    population: GroupedPeople, group: int | None, slope: bool, index: int
) -> Estimated:
    people = population.people(group)
    fit = _recalibrated(people, slope)
    if fit is None:
        return UNDEFINED
    beta, residual, weights = fit
    error = math.sqrt(people.variance(weights[index] * residual))
    fewest = min(people.take(people.label == label).rows for label in (0, 1))
    return Estimated(float(beta[index]), error, fewest)


def calibration_slope(population: GroupedPeople, group: int | None) -> Estimated:
    """The b of logit P(y = 1) = a + b logit(h).

    With 1,024 bins a logit is off by at most 1 / (1,024 h (1 - h)): less than .01 for scores from
    .11 to .89.  Scores that are all alike, or that separate the labels, have no slope.
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


def _selection(people: People) -> float:
    return float(people.w[people.selected].sum() / people.w.sum())


def _mean_score(people: People) -> float:
    return float(people.wh.sum() / people.w.sum())


def impact_ratio(population: GroupedPeople, group: int | None) -> Estimated:
    """The selection rate over that of the reference group: the highest one, or the one named."""
    reference = population.highest(_selection)
    own, other = population.people(group), population.groups[reference]
    rate, base = _selection(own), _selection(other)
    if group is None or base == 0.0:
        return UNDEFINED
    if group == reference:
        return Estimated(1.0, 0.0, math.inf)
    value = rate / base
    variance = own.variance((own.selected - rate) / own.w.sum() / base)
    variance += other.variance((other.selected - base) / other.w.sum() * value / base)
    return Estimated(value, math.sqrt(variance), own.rows * base)


def standardized_difference(population: GroupedPeople, group: int | None) -> Estimated:
    """The mean score less that of the reference group, over the standard deviation of everybody.

    The reference group is the one with the highest mean score, or the one named.  The standard
    deviation is taken as known.  Exact whatever the bins.
    """
    reference, everybody = population.highest(_mean_score), population.everybody
    own, other = population.people(group), population.groups[reference]
    square = float(everybody.wh2.sum() / everybody.w.sum())
    deviation = math.sqrt(max(square - _mean_score(everybody) ** 2, 0.0))
    if group is None or deviation < 1e-9:
        return UNDEFINED
    if group == reference:
        return Estimated(0.0, 0.0, math.inf)
    value = (_mean_score(own) - _mean_score(other)) / deviation
    variance = sum(
        people.variance((people.score - _mean_score(people)) / people.w.sum() / deviation)
        for people in (own, other)
    )
    return Estimated(value, math.sqrt(variance), min(own.rows, other.rows))


def scoring_rate(population: GroupedPeople, group: int | None) -> Estimated:
    """The share with a score above the median of everybody, which is taken as known.

    People who share a bin with the median count as far as half of everybody is above it, unless
    they all have the same score: the rate is off by at most the group's share of that bin.
    """
    everybody, people = population.everybody, population.people(group)
    below = np.cumsum(everybody.spread(population.levels))
    level = int(np.searchsorted(below, 0.5 - 1e-12))
    tied = everybody.take(everybody.level == level)
    inside = 0.0
    h = _mean_score(tied)
    if float(tied.wh2.sum() / tied.w.sum()) - h * h > 1e-12:
        inside = (below[level] - 0.5) / (below[level] - (below[level - 1] if level else 0.0))
    counted = np.where(people.level == level, inside, people.level > level)
    value = float((people.w * counted).sum() / people.w.sum())
    error = math.sqrt(people.variance((counted - value) / people.w.sum()))
    return Estimated(value, error, people.rows)


def _risk_parts(population: GroupedPeople) -> Ints:
    """Which part of the range of scores each level is in; no part lies on both sides."""
    everybody = population.everybody
    spread = everybody.spread(population.levels)
    middle = np.cumsum(spread) - spread / 2.0
    part = np.minimum((middle * RISK_BINS).astype(np.intp), RISK_BINS - 1)
    first = everybody.level[everybody.selected].min(initial=population.levels)
    return np.asarray(part + RISK_BINS * (np.arange(population.levels) >= first))


def adjusting_weights(population: GroupedPeople, group: int | None) -> Floats | None:
    """What to multiply a group's weights by, to give it everybody's distribution of risk.

    The range of scores is cut into 20 parts that hold about as many people, and at the threshold.
    Parts in which the group has fewer than 5 rows are left out; None if these hold more than 5 %
    of everybody.
    """
    everybody, people = population.everybody, population.people(group)
    part, size = _risk_parts(population), 2 * RISK_BINS
    wanted = add_up(part[everybody.level], everybody.w, size) / everybody.w.sum()
    own = add_up(part[people.level], people.w, size) / people.w.sum()
    thick = add_up(part[people.level], people.n, size) >= THIN
    if wanted[~thick].sum() > MOST_THIN:
        return None
    factor = np.divide(wanted, own, out=np.zeros(size), where=thick & (own > 0))
    return np.asarray(factor[part[people.level]])


def _adjusted(
    population: GroupedPeople, group: int | None, over: Callable[[People], Any], of: str
) -> Estimated:
    """A share of some people, weighted to everybody's distribution of risk."""
    people = population.people(group)
    factor = adjusting_weights(population, group)
    if factor is None:
        return UNDEFINED
    inside = over(people) * factor
    total = float((people.w * inside).sum())
    if total <= 0.0:
        return UNDEFINED
    hit = people.kind == KINDS.index(of)
    value = float((people.w * inside * hit).sum()) / total
    moves = inside * (hit - value) / total
    rows = total**2 / float((people.w2 * inside**2).sum())
    return Estimated(value, math.sqrt(people.variance(moves)), rows)


def adjusted_fpr(population: GroupedPeople, group: int | None) -> Estimated:
    """FPR with the group's scores weighted to everybody's; see :func:`adjusting_weights`."""
    return _adjusted(population, group, lambda people: people.label == 0, "fp")


def adjusted_fnr(population: GroupedPeople, group: int | None) -> Estimated:
    """FNR with the group's scores weighted to everybody's."""
    return _adjusted(population, group, lambda people: people.label == 1, "fn")


def adjusted_ppv(population: GroupedPeople, group: int | None) -> Estimated:
    """PPV with the group's scores weighted to everybody's."""
    return _adjusted(population, group, lambda people: people.selected, "tp")
