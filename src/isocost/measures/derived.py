"""Measures that are not plain means: formulas of sums, ranks, comparisons of groups.

Each gives a number and its standard error by linearization: if a row of weight w and value x moves
the number by w u(x), the variance is the sum of w^2 u(x)^2.  A cell keeps sum w^2, so no rows are
needed.

==============================  ==================================================================
formulas of sums                f1, mcc, balanced_accuracy, observed_to_expected, brier_skill,
                                net_benefit; u is the derivative of the formula
ranks                           auc, cross_auc (DeLong, DeLong and Clarke-Pearson 1988)
compared with a reference       impact_ratio, standardized_difference
compared with everybody         scoring_rate, adjusted_fpr, adjusted_fnr, adjusted_ppv
==============================  ==================================================================

Scores are known as far as their bins tell: two people in a bin count as tied.  Scores that take few
values are exact; each function gives the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, TypeVar, Unpack

import numpy as np

from isocost.cells import KINDS, POWERS, SUMS, Cells, add_up
from isocost.checks import check_numbers
from isocost.groups import Group
from isocost.tallies import DataOptions, Tally, TallyLike, as_tally
from isocost.typing import Bools, Floats, Ints

STEP = 1e-30
"""Step of derivatives along the imaginary axis, which have no rounding error."""

Kept = TypeVar("Kept")

RISK_BINS = 20
"""Parts of the range of scores, each with about as many people, in which groups are compared."""


@dataclass(frozen=True)
class Estimated:
    """A number with its standard error.

    Attributes
    ----------
    value, error : float
        The number and its linearized standard error; NaN where it is not defined.
    rows : float
        The effective number of people it rests on (Kish); it gives an interval even where nobody
        in the sample differs, such as an area of 1.
    freedom : float
        The degrees of freedom of the standard error; see :func:`freedom_of`.  Infinite where the
        value tells it: for a proportion, or a rare mean, of rows that weigh the same.
    inflation : float
        Factor of the standard error by the jackknife, which allows for rows that pull a mean
        towards themselves (HC3): n / (n - 1) without weights.
    skew : float
        The skewness of the number over samples.
    weighted : bool
        False if all rows weigh the same and the number is a mean.
    form : str
        "mean"; "proportion", a mean of rows that are all 0 or 1; "rare", a mean over rows most of
        which have one value, and only a few another; or "derived", any other number.
    seen : (low, high)
        If rare, the smallest and largest value at any score of the group.
    effect : float
        The design effect: by how much the variance is larger than that of independent rows.
    share : float
        The effective number of people over that of rows.
    """

    value: float
    error: float
    rows: float
    freedom: float
    inflation: float = 1.0
    skew: float = 0.0
    weighted: bool = True
    form: Literal["mean", "proportion", "rare", "derived"] = "derived"
    seen: tuple[float, float] = (0.0, 1.0)
    effect: float = 1.0
    share: float = 1.0

    def clustered(self, effect: float, share: float) -> Estimated:
        """The same number with this design effect, and this share."""
        return replace(
            self,
            error=self.error * math.sqrt(effect),
            rows=self.rows / effect,
            freedom=max(1.0, (min(self.freedom, self.rows - 1.0) + 1.0) * share - 1.0),
            inflation=1.0 + (self.inflation - 1.0) / share,
            # As it is if rows of a person are the same, and if they are independent.
            skew=self.skew * math.sqrt(effect),
            # The quantile is Student's.
            weighted=self.weighted or self.form != "mean",
            effect=effect,
            share=share,
        )


UNDEFINED = Estimated(math.nan, math.nan, 0.0, 0.0)


def freedom_of(n: Floats, w2: Floats, w4: Floats, squares: Floats) -> float:
    """The degrees of freedom of sum w^2 u^2, the variance of a number (Satterthwaite 1946).

    k (sum w^2 u^2)^2 / sum w^4 u^4 - 1, at least 1, where k is the kurtosis of u over the rows: one
    less than the number of rows if all weigh the same, whatever u is, and few if a few rows weigh
    most.  Given for each cell, ``squares`` is the mean of u^2.
    """
    moved, rows = float((n * squares).sum()), float(n.sum())
    # Where nobody moves the number, everybody would by the same; else u^2 is 1 on average.
    squares = squares * (rows / moved) if moved > 0.0 else np.ones(len(n))
    kurtosis = float((n * squares**2).sum()) / rows
    freedom = kurtosis * float((w2 * squares).sum() ** 2 / (w4 * squares**2).sum()) - 1.0
    return max(1.0, freedom)


@dataclass(frozen=True)
class People:
    """Rows, or cells of rows, of one group or of everybody.

    The level is the rank of the score, equal for tied rows; ``selected`` is true for scores at or
    above the threshold; the others are the sums of :data:`isocost.cells.POWERS`.
    """

    label: Ints
    level: Ints
    selected: Bools
    n: Floats
    w: Floats
    w2: Floats
    w4: Floats
    wh: Floats
    wh2: Floats

    @cached_property
    def score(self) -> Floats:
        """The mean score of each."""
        return np.asarray(self.wh / self.w)

    @cached_property
    def kind(self) -> Ints:
        """An index into :data:`isocost.tallies.KINDS`."""
        return self.label * 2 + self.selected

    @cached_property
    def total(self) -> float:
        """The weight of all."""
        return float(self.w.sum())

    @cached_property
    def rows(self) -> float:
        """The effective number of rows (Kish)."""
        return self.total**2 / float(self.w2.sum())

    @cached_property
    def sums(self) -> Floats:
        """What :data:`isocost.cells.SUMS` names, by kind of people: an array (sums, kinds)."""
        columns = (getattr(self, name) for name in SUMS)
        return np.array([add_up(self.kind, column, len(KINDS)) for column in columns])

    @cached_property
    def decided(self) -> People:
        """One row for each kind, which is enough for decisions; all of them if weights differ."""
        if not (np.array_equal(self.n, self.w) and np.array_equal(self.n, self.w2)):
            return self
        used = np.flatnonzero(self.sums[0])
        label, selected = np.divmod(used, 2)
        return People(label, selected, selected == 1, *self.sums[:, used])

    @cached_property
    def selection(self) -> float:
        """The share that is selected."""
        return float(self.w[self.selected].sum()) / self.total

    @cached_property
    def mean_score(self) -> float:
        """The mean score."""
        return float(self.wh.sum()) / self.total

    @cached_property
    def freedom(self) -> float:
        """The degrees of freedom of a number that every row moves by the same."""
        return freedom_of(self.n, self.w2, self.w4, np.ones(len(self.n)))

    def moved(self, value: float, moves: Floats) -> Estimated:
        """A number that a unit of weight moves by ``moves``: its variance is sum w^2 u^2."""
        squares = moves**2
        error = math.sqrt(float((self.w2 * squares).sum()))
        freedom = freedom_of(self.n, self.w2, self.w4, squares)
        return Estimated(value, error, self.rows, freedom)

    @classmethod
    def of_cells(cls, cells: Cells, first: int) -> People:
        """Cells, a row each; ``first`` is the first bin at the threshold."""
        columns = (getattr(cells, name) for name in SUMS)
        return cls(cells.label, cells.bin, cells.bin >= first, *columns)


def _people(tally: Tally, first: int, group: int | None) -> People:
    """The people of a group of a tally, or everybody; ``first`` is the first bin selected."""
    cells = tally.cells
    if group is None:
        return People.of_cells(Cells.merge([cells.recoded([0] * len(tally.groups))]), first)
    return People.of_cells(cells.take(cells.of_group(group)), first)


@dataclass(frozen=True)
class GroupedPeople:
    """Everybody, by group, with what was computed about them.

    ``of`` gives the people of a group by its index, or everybody for None; scores have so many
    ``levels``, and those at or above the threshold are selected.  ``reference`` is the group that
    others are compared with, if the caller named one, else one of the ``candidates``.
    """

    of: Callable[[int | None], People]
    levels: int
    threshold: float
    candidates: tuple[int, ...]
    reference: int | None = None
    kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, key: tuple[Any, ...], compute: Callable[[], Kept]) -> Kept:
        """A value that several measures need, computed when first asked for."""
        if key not in self.kept:
            self.kept[key] = compute()
        value: Kept = self.kept[key]
        return value

    @classmethod
    def of_tally(
        cls,
        tally: Tally,
        threshold: float,
        candidates: Sequence[int] | None = None,
        reference: int | None = None,
    ) -> GroupedPeople:
        """The people of a tally, a cell at a time."""
        among = range(len(tally.groups)) if candidates is None else candidates
        # Not a function of its own in here, which could not be pickled.
        people = partial(_people, tally, tally.grid.first_bin(threshold))
        return cls(people, tally.grid.size, threshold, tuple(among), reference)

    @classmethod
    def of_rows(cls, y: Floats, h: Floats, w: Floats, threshold: float) -> GroupedPeople:
        """One group, a row at a time: nothing is lost to bins."""
        scores, level = np.unique(h, return_inverse=True)
        columns = (w**p * h**q for p, q in POWERS.values())
        people = People(y.astype(np.intp), level, h >= threshold, *columns)
        return cls(lambda _: people, len(scores), threshold, (0,))

    def people(self, group: int | None) -> People:
        """The people of a group, or everybody."""
        return self.once(("people", group), lambda: self.of(group))

    def weights(self, group: int | None) -> Floats:
        """Sums of w, w^2, w^4 and 1 by label and level, an array (4, 2, levels)."""
        people, size = self.people(group), 2 * self.levels

        def compute() -> Floats:
            index = people.label * self.levels + people.level
            sums = [add_up(index, x, size) for x in (people.w, people.w2, people.w4, people.n)]
            return np.array(sums).reshape(4, 2, self.levels)

        return self.once(("weights", group), compute)

    def spread(self) -> Floats:
        """The share of everybody at each level."""
        total: Floats = self.weights(None)[0].sum(axis=0)
        return total / self.people(None).total

    def highest(self, number: str) -> int:
        """The reference group: the one named, or the candidate for which a number is highest."""
        if self.reference is not None:
            return self.reference
        numbers = {index: getattr(self.people(index), number) for index in self.candidates}
        return max(numbers, key=lambda index: float(numbers[index]))


@dataclass(frozen=True)
class Totals:
    """Sums of w, w h and w h^2 of a group, arrays (4, ...) by kind of people, for formulas."""

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


def of_sums(
    formula: Formula, counts: bool, population: GroupedPeople, group: int | None
) -> Estimated:
    """A smooth formula of sums by kind; ``counts`` if it depends on decisions alone."""
    people = population.people(group)
    sums = people.sums[[SUMS.index(name) for name in ("w", "wh", "wh2")]] / people.total
    # A step in each of the twelve sums.
    steps = sums[..., None] + 1j * STEP * np.eye(sums.size).reshape(*sums.shape, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(formula(Totals(sums[0], sums[1], sums[2], population.threshold)))
        moved = formula(Totals(steps[0], steps[1], steps[2], population.threshold))
    slopes = np.imag(moved) / STEP
    if not math.isfinite(value):
        return UNDEFINED
    if counts and not slopes[len(KINDS) :].any():
        # With one more row of each kind (Agresti and Coull 1998): without, a rate of 0 or 1 of a
        # few people would be taken for certain.
        rows = people.rows + len(KINDS)
        more = (sums[0] * people.rows + 1.0) / rows
        steps = more[:, None] + 1j * STEP * np.eye(len(KINDS))
        none = np.zeros_like(steps)
        slopes = np.imag(formula(Totals(steps, none, none, population.threshold))) / STEP
        # What a row adds to the formula has mean 0 over the rows.
        error = math.sqrt(float((more * slopes**2).sum()) / rows)
        return Estimated(value, error, people.rows, people.freedom)
    if not np.isfinite(slopes).all():
        return Estimated(value, 0.0, people.rows, people.freedom)
    one, line, square = slopes.reshape(sums.shape)[:, people.kind]
    moves = one + line * people.score + square * people.wh2 / people.w
    return people.moved(value, moves / people.total)


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
    threshold : array (m,)
        Rising; all are edges of the tally.
    net_benefit, error, selection_rate : array (groups, m)
        Of deciding by the scores, its standard error, and the share selected.
    treat_all : array (groups, m)
        Of selecting everybody, mu - (1 - mu) t / (1 - t); selecting nobody has 0.
    base_rate, rows, freedom : array (groups,)
        The share of positives, the effective number of rows, and the degrees of freedom.
    """

    groups: tuple[Group, ...]
    threshold: Floats
    net_benefit: Floats
    error: Floats
    treat_all: Floats
    selection_rate: Floats
    base_rate: Floats
    rows: Floats
    freedom: Floats


def net_benefit_curve(
    tally: TallyLike,
    thresholds: Any = None,
    **reading: Unpack[DataOptions],
) -> NetBenefitCurve:
    """Decision curves of the groups (Vickers and Elkin 2006).

    Parameters
    ----------
    tally : Tally, or data
        Scores and labels.
    thresholds : float or several, optional
        Edges of the tally, at which the curve is exact; nothing is interpolated, so a threshold
        inside a bin is refused.  By default about a hundred, up to the highest score.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> curve = net_benefit_curve(compas(), [0.3, 0.5])
    >>> curve.net_benefit.round(4).tolist()
    [[0.3172, 0.1561], [0.17, 0.0713]]
    >>> curve.treat_all.round(4).tolist()
    [[0.3062, 0.0287], [0.1338, -0.2127]]
    """
    chosen = () if thresholds is None else check_numbers("thresholds", thresholds)
    tally = as_tally(tally, reading, *chosen)
    t = np.unique(chosen)
    if thresholds is None:
        # The edge nearest to each hundredth part of the range of scores.
        inner = tally.grid.cuts[1:-1]
        steps = tally.grid.cuts[tally.cells.bin.max() + 1] * np.arange(1, 101)[:, None] / 100.0
        t = np.unique(inner[np.abs(inner - steps).argmin(axis=1)])
    first = [tally.grid.first_bin(float(edge), "thresholds") for edge in t]
    cells, shape = tally.cells, (len(tally.groups), 2, tally.grid.size)
    index = (cells.group * 2 + cells.label) * tally.grid.size + cells.bin
    w, w2 = (add_up(index, x, math.prod(shape)).reshape(shape) for x in (cells.w, cells.w2))
    parts = [cells.take(cells.of_group(at)) for at in range(shape[0])]
    freedom = np.array([freedom_of(x.n, x.w2, x.w4, np.ones(len(x))) for x in parts])
    total, rows = w.sum(axis=(1, 2)), w.sum(axis=(1, 2)) ** 2 / w2.sum(axis=(1, 2))
    # Of each label, what is at or above each threshold.
    fp, tp = np.moveaxis(w[..., ::-1].cumsum(axis=-1)[..., ::-1][..., first], 1, 0)
    odds, all_of = t / (1.0 - t), total[:, None]
    value = (tp - odds * fp) / all_of
    mu = w[:, 1].sum(axis=-1) / total
    treat_all = mu[:, None] - odds * (1.0 - mu[:, None])
    selected = (tp + fp) / all_of
    # With one more row of each kind, as for the single number.
    size = rows[:, None] + len(KINDS)
    more_fp, more_tp = ((x / all_of * rows[:, None] + 1.0) / size for x in (fp, tp))
    more = more_tp - odds * more_fp
    squares = more_tp * (1.0 - more) ** 2 + more_fp * (odds + more) ** 2
    error = np.sqrt((squares + (1.0 - more_tp - more_fp) * more**2) / size)
    return NetBenefitCurve(tally.groups, t, value, error, treat_all, selected, mu, rows, freedom)


def area(positives: Floats, negatives: Floats) -> Estimated:
    """The chance that a positive has a higher score than a negative, ties counting half.

    Both are sums of w, w^2, w^4 and 1 by level, arrays (4, levels).  Within a bin all pairs count
    as ties, so it is off by at most half the share of pairs in the same bin.
    """
    totals = positives[0].sum(), negatives[0].sum()
    if not min(totals) > 0.0:
        return UNDEFINED
    above, below = positives[0] / totals[0], negatives[0] / totals[1]
    lower = np.cumsum(below) - below / 2.0
    higher = 1.0 - np.cumsum(above) + above / 2.0
    value = float((above * lower).sum())
    variance, rows, freedom = 0.0, math.inf, math.inf
    for (w, w2, w4, n), rank in ((positives, lower), (negatives, higher)):
        squares = (rank - value) ** 2
        variance += float((w2 * squares).sum() / w.sum() ** 2)
        rows = min(rows, float(w.sum() ** 2 / w2.sum()))
        freedom = min(freedom, freedom_of(n, w2, w4, squares))
    return Estimated(value, math.sqrt(variance), rows, freedom)


def auc(population: GroupedPeople, group: int | None) -> Estimated:
    """P(h of a positive > h of a negative) + P(they are equal) / 2.

    The area under the ROC curve; see :func:`area` for what bins do to it.
    """
    negatives, positives = population.weights(group).swapaxes(0, 1)
    return area(positives, negatives)


def _others(population: GroupedPeople, group: int, label: int) -> Floats:
    """Sums of w, w^2, w^4 and 1 by level of the other groups' people who have a label."""
    own, everybody = (population.weights(index)[:, label] for index in (group, None))
    # Rounding must leave nobody where there is nobody.
    rest = everybody - own
    return np.where(rest > 1e-12 * everybody, rest, 0.0)


def cross_auc(population: GroupedPeople, group: int | None) -> Estimated:
    """Positives of this group against negatives of the others (Kallus and Zhou 2019)."""
    if group is None:
        return UNDEFINED
    return area(population.weights(group)[:, 1], _others(population, group, 0))


def cross_auc_negatives(population: GroupedPeople, group: int | None) -> Estimated:
    """Positives of the others against negatives of this group."""
    if group is None:
        return UNDEFINED
    return area(_others(population, group, 1), population.weights(group)[:, 0])


def impact_ratio(population: GroupedPeople, group: int | None) -> Estimated:
    """The selection rate over that of the reference group: the highest one, or the one named."""
    reference = population.highest("selection")
    own, other = population.people(group), population.people(reference)
    rate, base = own.selection, other.selection
    if group is None or base == 0.0:
        return UNDEFINED
    if group == reference:
        return Estimated(1.0, 0.0, math.inf, math.inf)
    value = rate / base
    # One more row on each side, so that a rate of 1 is not taken for certain.
    more = [(people.rows, (people.selection * people.rows + 1.0)) for people in (own, other)]
    variance = sum(1.0 / selected - 1.0 / (rows + 2.0) for rows, selected in more)
    freedom = min(own.freedom, other.freedom)
    return Estimated(value, value * math.sqrt(variance), own.rows * base, freedom)


def standardized_difference(population: GroupedPeople, group: int | None) -> Estimated:
    """The mean score less that of the reference group, over the standard deviation of everybody.

    The reference group is the one with the highest mean score, or the one named.  The standard
    deviation is taken as known.  Exact whatever the bins.
    """
    reference, everybody = population.highest("mean_score"), population.people(None)
    own, other = population.people(group), population.people(reference)
    square = float(everybody.wh2.sum() / everybody.total)
    deviation = math.sqrt(max(square - everybody.mean_score**2, 0.0))
    if group is None or deviation < 1e-9:
        return UNDEFINED
    if group == reference:
        return Estimated(0.0, 0.0, math.inf, math.inf)
    value = (own.mean_score - other.mean_score) / deviation
    a, b = (
        people.moved(value, (people.score - people.mean_score) / people.total / deviation)
        for people in (own, other)
    )
    error, rows = math.hypot(a.error, b.error), min(a.rows, b.rows)
    return Estimated(value, error, rows, min(a.freedom, b.freedom))


def _median(population: GroupedPeople) -> tuple[int, float]:
    """The level of everybody's median, and the share of people at this level who are above it."""
    everybody, spread = population.people(None), population.spread()
    below = np.cumsum(spread)
    level = int(np.searchsorted(below, 0.5 - 1e-12))
    tied = everybody.level == level
    w, wh, wh2 = (float(x[tied].sum()) for x in (everybody.w, everybody.wh, everybody.wh2))
    if wh2 / w - (wh / w) ** 2 <= 1e-12:
        return level, 0.0
    return level, float((below[level] - 0.5) / spread[level])


def scoring_rate(population: GroupedPeople, group: int | None) -> Estimated:
    """The share with a score above the median of everybody.

    The median is taken as known.  People who share a bin with it count as far as half of everybody
    is above it, unless they all have the same score: the rate is off by at most the group's share
    of that bin.
    """
    people = population.people(group)
    level, inside = population.once(("median",), lambda: _median(population))
    counted = np.where(people.level == level, inside, people.level > level)
    value = float((people.w * counted).sum() / people.total)
    return people.moved(value, (counted - value) / people.total)


def _risk_parts(population: GroupedPeople) -> Ints:
    """The part of the range of scores that each level is in; no part lies on both sides."""
    everybody, spread = population.people(None), population.spread()
    middle = np.cumsum(spread) - spread / 2.0
    part = np.minimum((middle * RISK_BINS).astype(np.intp), RISK_BINS - 1)
    first = everybody.level[everybody.selected].min(initial=population.levels)
    return np.asarray(part + RISK_BINS * (np.arange(population.levels) >= first))


def adjusting_weights(population: GroupedPeople, group: int | None) -> Floats | None:
    """Factors of a group's weights that give it everybody's distribution of risk.

    The range of scores is cut into 20 parts that hold about as many people, and at the threshold.
    Parts in which the group has fewer than 5 rows are left out; None if these hold more than 5 %
    of everybody on either side of the threshold.
    """
    people = population.people(group)
    part = population.once(("parts",), lambda: _risk_parts(population))
    size = 2 * RISK_BINS
    wanted = add_up(part, population.spread(), size)
    own = add_up(part[people.level], people.w, size) / people.total
    thick = add_up(part[people.level], people.n, size) >= 5
    for side in (slice(RISK_BINS), slice(RISK_BINS, None)):
        if wanted[side][~thick[side]].sum() > 0.05 * wanted[side].sum():
            return None
    factor = np.divide(wanted, own, out=np.zeros(size), where=thick & (own > 0))
    return np.asarray(factor[part[people.level]])


def _adjusted(
    population: GroupedPeople, group: int | None, over: Callable[[People], Any], of: str
) -> Estimated:
    """A share of some people, weighted to everybody's distribution of risk."""
    people = population.people(group)
    factor = population.once(("adjusting", group), lambda: adjusting_weights(population, group))
    if factor is None:
        return UNDEFINED
    inside = over(people) * factor
    total = float((people.w * inside).sum())
    if total <= 0.0:
        return UNDEFINED
    hit = people.kind == KINDS.index(of)
    value = float((people.w * inside * hit).sum()) / total
    squares, w2, w4 = (hit - value) ** 2, people.w2 * inside**2, people.w4 * inside**4
    used = inside > 0
    freedom = freedom_of(people.n[used], w2[used], w4[used], squares[used])
    error = math.sqrt(float((w2 * squares).sum())) / total
    return Estimated(value, error, total**2 / float(w2.sum()), freedom)


def adjusted_fpr(population: GroupedPeople, group: int | None) -> Estimated:
    """FPR with weights w q(h) / p(h): q is how everybody's scores are distributed, p the group's.

    See :func:`adjusting_weights`.
    """
    return _adjusted(population, group, lambda people: people.label == 0, "fp")


def adjusted_fnr(population: GroupedPeople, group: int | None) -> Estimated:
    """FNR with weights w q(h) / p(h); see adjusted FPR."""
    return _adjusted(population, group, lambda people: people.label == 1, "fn")


def adjusted_ppv(population: GroupedPeople, group: int | None) -> Estimated:
    """PPV with weights w q(h) / p(h); see adjusted FPR."""
    return _adjusted(population, group, lambda people: people.selected, "tp")
