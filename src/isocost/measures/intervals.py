"""Confidence intervals for every number of an audit, from the cells of the tally.

===================================================  =============================================
base_rate, fpr, fnr, accuracy, selection_rate,       Wilson, with the effective number of rows
share; any rate of scores that are all 0 or 1
generalized_fpr, generalized_fnr, mean_score,        Student, corrected for skewness (Hall 1992); an
brier, cost                                          inverted score test where few rows decide
trivial_cost                                         image of the interval of the base rate
other measures (see derived)                         by their limits: :func:`interval_of`
calibration_gap and its variants                     a test of each size on replicates, inverted
differences                                          MOVER (Zou and Donner 2008) from the intervals
                                                     of the two groups; of Wilson's: Newcombe's
disparities, highest                                 for all pairs of groups at once: Tukey's
                                                     studentized range (Games and Howell 1976)
excess, target_cost, alpha                           for all groups that may be the highest at once
===================================================  =============================================

Every plain measure is a mean m = sum w x / sum w over some rows.  Its linearised variance is
sum w^2 (x - m)^2 / (sum w)^2; a cell keeps sum w^2, so it needs no rows.  :class:`Estimates`
computes value, standard error and degrees of freedom of every measure in every group, once.  With
heavy weights few rows decide how large the variance seems, and the degrees of freedom are as few
(Satterthwaite 1946): a cell keeps sum w^4 for them.

Where a tally knows whose rows belong together, the variance is the sum of u^2 over persons, u being
what the rows of one move the mean by, and persons give the degrees of freedom.  A measure whose
variance does not follow from sums of persons has the largest design effect of the others.

Groups are different people, so their numbers are independent.  The questions about all of them
(who costs most, is equal cost feasible, how much to withhold) are asked in a fixed order, each only
if the one before was answered with yes, so together they are wrong no more often than one alone.

Intervals say what drawing other people would change.  They say nothing about labels that are wrong,
people who are missing, or scores that were trained on these rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np

from isocost.cells import KINDS, SUMS, Sums
from isocost.checks import short
from isocost.errors import Problem, UsageError, listing
from isocost.groups import Group, group_names
from isocost.measures.calibration import SMOOTH_CELLS, Levels, bin_noise, gap_noise, levels_of
from isocost.measures.derived import UNDEFINED, Estimated, GroupedPeople, People, freedom_of
from isocost.measures.feasibility import Feasibility, compared_groups, examined_groups, reach_of
from isocost.measures.rates import Columns, group_costs, trivial_costs
from isocost.measures.table import BIAS, MEASURES, Measure, chosen_measures, cost_row
from isocost.persons import Persons
from isocost.question import DEFAULT, Question, asks
from isocost.result import Record
from isocost.tallies import Tally
from isocost.typing import Floats, Ints

Interval: TypeAlias = tuple[float, float]

UNKNOWN: Interval = (math.nan, math.nan)

PAID = ("generalized_fpr", "generalized_fnr")
"""The rates that a plain cost is a sum of."""

_STEPS = 16

RARE = 30
"""Means over mostly equal rows, of which fewer than this differ, have an inverted score test: the
data may lack values that are rare."""

SLACK = 1e-9
"""Differences below this are rounding."""

SPREADS = tuple((np.arange(800) * 0.02 - 4.0).tolist())
"""Where the distribution of a spread is looked up."""


def normal_quantile(probability: float) -> float:
    """The standard normal quantile."""
    from scipy.special import ndtri

    return float(ndtri(probability))


def skewed_interval(value: float, error: float, skew: float, factor: float) -> Interval:
    """Student's interval of a mean whose distribution is skewed (Hall 1992).

    With t the standardized mean and skew k, t + k t^2 / 3 + k^2 t^3 / 27 + k / 6 is closer to
    normal than t is, and it rises everywhere; the interval is the range of it within ``factor``,
    mapped back.  Without skew it is value +- factor error.

    Examples
    --------
    >>> [round(end, 3) for end in skewed_interval(0.5, 0.1, 0.3, 2.0)]
    [0.334, 0.773]
    """
    if abs(skew) < 1e-9:
        return value - factor * error, value + factor * error
    low, high = (
        3.0 / skew * (math.cbrt(1.0 + skew * (x - skew / 6.0)) - 1.0) for x in (-factor, factor)
    )
    return value - high * error, value - low * error


def score_interval(
    value: float, variance: float, rows: float, limits: Interval, z: float
) -> Interval:
    """The means that a score test does not reject, for values between two limits.

    A mean that lies d above what was seen is imagined as some rows moved to the upper limit, D
    above: the variance becomes v + d (D - v / D) - d^2, and d^2 = z^2 / n times it is solved for d;
    and the same below.  So the interval has width even if no row differs from the others.
    For values of 0 and 1 it is Wilson's interval.
    """
    c = z * z / rows
    ends = []
    for room in (value - limits[0], limits[1] - value):
        if room <= 0.0:
            ends.append(0.0)
            continue
        slope = c * (room - variance / room)
        root = math.sqrt(slope * slope + 4.0 * (1.0 + c) * c * variance)
        ends.append(min(room, (slope + root) / (2.0 * (1.0 + c))))
    return value - ends[0], value + ends[1]


def around(estimate: float, interval: Interval) -> Interval:
    """The interval, widened to hold the estimate where rounding or bias left it outside."""
    return min(estimate, interval[0]), max(estimate, interval[1])


def size_interval(
    residual: Floats, noise: Floats, tail: float, several: int = 1
) -> tuple[float, float, float]:
    """The interval of the absolute sum of a vector, given one noisy observation of it.

    Noise makes the sum larger, most of all where it is near 0, so percentiles would be too high.
    Instead each multiple k of the ``residual`` seen is taken for the truth, and kept if the
    size seen is not in either tail of the size of k residual + noise.  At k = 0 the test is exact.
    What was seen is noisy itself, which makes the upper end a little too low: half the
    tail is used there (docs/coverage.md shows what that gives).

    A size below the lower tail at k = 0 is less than chance would show: the scores were
    fitted to these very rows.  The upper end is then the size that chance could hide.

    Parameters
    ----------
    residual : array (parts,)
        The observation.
    noise : array (replicates, parts)
        Its deviations when drawn again, with mean about 0.
    tail : float
        The share of replicates in each tail.
    several : int
        How many sizes are looked at.

    Returns
    -------
    low, high, floor
        The interval, and a lower end that holds for all of ``several`` sizes together.
    """
    seen = float(np.abs(residual).sum())
    # Adding up ten long rows is several times as fast as thousands of short ones.
    noise = np.ascontiguousarray(noise.T)
    count = noise.shape[1]
    rank = min(max(int(tail * (count + 1)) - 1, 0), (count - 1) // 2)
    by_chance = np.partition(np.abs(noise).sum(axis=0), (rank, count - 1 - rank))
    low_of_chance, high_of_chance = float(by_chance[rank]), float(by_chance[count - 1 - rank])
    if seen <= low_of_chance:
        return 0.0, high_of_chance, 0.0
    top = 1.0 + 2.0 * high_of_chance / seen
    multiples = top * (np.arange(_STEPS) / (_STEPS - 1)) ** 1.5
    sizes = np.empty((_STEPS, count))
    for step, multiple in enumerate(multiples):
        moved = noise + multiple * residual[:, None]
        np.abs(moved, out=moved).sum(axis=0, out=sizes[step])
    # Several times as fast as numpy's partition at several ranks.
    sizes.sort(axis=1)
    tails = (tail / 2.0, 1.0 - tail, (1.0 - tail) ** (1.0 / several))
    ranks = [min(max(int(p * (count + 1)) - 1, 0), count - 1) for p in tails]
    high, low, floor = (float(np.interp(seen, sizes[:, r], multiples)) * seen for r in ranks)
    return low if seen > high_of_chance else 0.0, high, min(low, floor)


def mean_of(measure: Measure, people: People, value: float | None = None) -> Estimated:
    """A plain measure of a group's people; ``value`` is the mean itself, if it is known already.

    Inside a cell a + b h + c h^2 is close to a straight line of the score, with slope b + 2 c h.
    """
    inside = np.array([name in measure.over for name in KINDS])[people.kind]
    if not inside.any():
        return UNDEFINED
    columns = (people.kind, people.n, people.w, people.w2, people.w4)
    kind, n, w, w2, w4 = (column[inside] for column in columns)
    a, b, c = measure.coefficients[kind].T
    x, within = a, np.zeros(1)
    if b.any() or c.any():
        h, square = people.score[inside], people.wh2[inside] / w
        x = a + b * h + c * square
        spread = np.maximum(square - h**2, 0.0)
        within = np.where(spread > 1e-14, (b + 2.0 * c * h) ** 2 * spread, 0.0)
    total, rows = float(w.sum()), float(n.sum())
    effective = total**2 / float(w2.sum())
    if value is None:
        value = float((w * x).sum() / total)
    # As shares of the whole, so that no power of a weight is too large or too small.
    w, w2, off = w / total, w2 / total**2, x - value
    squares = off**2 + within
    terms = w2 * squares
    variance, inflation, skew = float(terms.sum()), 1.0, 0.0
    weighted = effective < rows * (1.0 - 1e-9)
    freedom = freedom_of(n, w2, w4 / total**2 / total**2, squares) if weighted else rows - 1.0
    if variance > 0:
        # The weight of a row as the cell's weight meets it; a row that is everything has no peer.
        leverage = np.minimum(w2 / w, 0.9)
        inflation = math.sqrt(float((terms / (1.0 - leverage) ** 2).sum()) / variance)
        # Rows of a cell are taken to weigh the same here.
        cubes = w2 * np.sqrt(w2 / n) * (off**3 + 3.0 * off * within)
        skew = float(cubes.sum()) / variance / math.sqrt(variance)
    error = math.sqrt(variance)
    mean = Estimated(value, error, effective, freedom, inflation, skew, weighted, "mean")
    if within.any():
        return mean
    if not weighted:
        mean = replace(mean, freedom=math.inf)
    if measure.limits == (0.0, 1.0) and ((x == 0) | (x == 1)).all():
        return replace(mean, form="proportion")
    _, level = np.unique(x, return_inverse=True)
    if rows - float(np.bincount(level, n).max()) >= min(RARE, rows / 2.0):
        return replace(mean, freedom=freedom)
    # The terms of the measure at the lowest and the highest score of the group.
    ends = np.array([people.score.min(), people.score.max()])
    a, b, c = measure.coefficients[np.unique(kind)].T[:, :, None]
    terms = a + b * ends + c * ends**2
    return replace(mean, form="rare", seen=(float(terms.min()), float(terms.max())))


def interval_of(number: Estimated, limits: Interval, confidence: float) -> Interval:
    """The interval of a number from its standard error, between the limits it can have.

    A proportion, and any number between two limits that is not a mean, has Wilson's interval, with
    the number of rows that gives its standard error (Korn and Graubard 1998).  A mean that few rows
    decide has the same kind of interval, between the lowest and the highest score of the group.  A
    ratio has Student's interval of its logarithm, and one of 0 the limit that a score test of a
    count of 0 gives.  Everything else has Student's interval, corrected for skewness; where weights
    differ the skewness is hardly known, and no end is nearer than without the correction.  With
    less than two effective rows the interval is all that is possible.
    """
    from scipy.special import stdtrit

    value, error, rows = number.value, number.error, number.rows
    if math.isnan(value):
        return UNKNOWN
    if math.isinf(rows):
        return value, value
    if rows < 2 and number.form != "proportion":
        return limits
    share, (low, high) = (1.0 + confidence) / 2.0, limits
    z = normal_quantile(share)
    factor = number.inflation * float(stdtrit(min(number.freedom, 1e9), share)) if rows >= 2 else z
    ends = number.seen if number.form == "rare" else limits
    if number.form != "mean" and math.isfinite(ends[1] - ends[0]):
        variance = (value - ends[0]) * (ends[1] - value)
        if number.form == "rare":
            variance = error**2 * rows
        effective = variance / error**2 if error > 0 and variance > 0 else rows
        # With equal weights and labels this is Wilson's interval as everybody knows it.
        wider = factor / z if number.weighted else 1.0
        interval = score_interval(value, variance, effective / wider**2, ends, z)
    elif number.form != "mean" and low == 0.0:
        if value == 0.0:
            return 0.0, z * z / rows
        reach = min(factor * error / value, 700.0)
        interval = value * math.exp(-reach), value * math.exp(reach)
    else:
        least, most = skewed_interval(value, error, number.skew, factor)
        if number.weighted:
            least, most = min(least, value - factor * error), max(most, value + factor * error)
        interval = max(low, least), min(high, most)
    return around(value, interval)


class Estimates:
    """The numbers of every group of a tally for a question: values, errors and intervals.

    Each is computed when first asked for, and once.  A group is its index in the tally; None is
    everybody.

    Parameters
    ----------
    tally, question
        What is asked of what.
    compared : sequence of groups
        Those that may be the reference of others if the question names none; by default all.
    people : GroupedPeople, optional
        Those of other estimates from the same tally at the same threshold, with all that was
        computed from them: it does not depend on the cost.
    """

    def __init__(
        self,
        tally: Tally,
        question: Question,
        compared: Sequence[Group] | None = None,
        people: GroupedPeople | None = None,
    ) -> None:
        self.tally, self.question = tally, question
        if people is None:
            index, reference = None, question.reference
            if isinstance(reference, Hashable) and reference in tally.groups:
                index = tally.index_of(reference)
            elif reference is not None:
                got, step = short(reference), f"name one of {listing(group_names(tally.groups))}"
                raise UsageError(Problem("reference", "must be a group of the data", got, step))
            candidates = map(tally.index_of, tally.groups if compared is None else compared)
            people = GroupedPeople.of_tally(tally, question.threshold, tuple(candidates), index)
        self.people = people

    def number(self, measure: Measure, group: int | None) -> Estimated:
        """Value, standard error and degrees of freedom of a measure; not of a calibration gap."""

        def compute() -> Estimated:
            if measure.is_derived:
                return self.clustered(measure, group, measure.estimated(self.people, group))
            people = self.people.people(group)
            value = float(self.column(measure)[_place(group)])
            mean = mean_of(measure, people.decided if measure.counts_decisions else people, value)
            return self.clustered(measure, group, mean)

        return self.people.once(("number", measure.name, group), compute)

    def interval(self, measure: Measure, group: int | None) -> Interval:
        """The interval of a measure that is no calibration gap."""
        return interval_of(self.number(measure, group), measure.limits, self.question.level)

    def repeated(self, group: int | None) -> Persons | None:
        """The persons of the tally, if some in a group have several rows."""
        persons, at = self.tally.persons, slice(None) if group is None else group
        alone = persons is None or persons.number[at].sum() > self.tally.totals.n[at].sum() - 0.5
        return None if alone else persons

    def moves(self, measure: Measure, group: int | None) -> Floats | None:
        """What a unit of each sum of a person adds to a mean A / B, and to B / B; None if unknown.

        With the sums of persons, A_p and B_p, these are (A_p - m B_p) / B and B_p / B.
        """
        if self.tally.persons is None or not measure.is_plain:
            return None
        over = np.zeros((len(KINDS), 3))
        over[:, 0] = [kind in measure.over for kind in KINDS]
        known, people = self.tally.persons, self.people.people(group)
        a, b = (known.adds(x, self.people.threshold) for x in (measure.coefficients, over))
        if a is None or b is None:
            return None
        sums = people.sums[[SUMS.index(name) for name in ("w", "wh", "wh2")]].T
        total = float((sums * over).sum())
        return np.array([a - float((sums * measure.coefficients).sum()) / total * b, b]) / total

    def clustered(self, measure: Measure, group: int | None, number: Estimated) -> Estimated:
        """A number of a group, with the error it has where people have several rows.

        The variance of a mean is the sum of its squared moves over persons.  Other numbers have the
        largest design effect of such means.
        """
        persons = self.repeated(group)
        if persons is None or not 0.0 < number.rows < math.inf:
            return number
        moves, rows = self.moves(measure, group), number.rows
        if moves is None:
            others = range(len(self.tally.groups)) if measure.compares else ()
            effect = max(map(self.effect, {group, *others}))
            return number.clustered(effect, self.number(BIAS, group).share)
        (variance, _), (_, square) = persons.covariances(group, moves)
        effect, share = variance / max(number.error**2, 1e-300), 1.0 / square / rows
        if square > 0.5 or number.error == 0.0:
            # Nothing tells how rows of a person vary: all may be the same.
            effect = 1.0 / share
        return number.clustered(effect if effect > SLACK else 1.0, share)

    def effect(self, group: int | None, names: Collection[str] = ()) -> float:
        """The largest design effect of the means of a group that is known, at least 1.

        With ``names``, of these measures, if one of them is known.
        """

        def largest() -> float:
            known = [row for row in MEASURES.values() if self.moves(row, group) is not None]
            named = [row for row in known if row.name in names]
            numbers = [self.number(row, group) for row in named or known]
            return max([1.0, *(number.effect for number in numbers if number.error > 0.0)])

        return self.people.once(("effect", group, *names), largest)

    def paid(self, group: int | None) -> Floats:
        """The covariances of generalized FPR, generalized FNR and base rate between persons."""
        persons, rows = self.repeated(group), [MEASURES[name] for name in (*PAID, "base_rate")]
        moves = [one[0] for row in rows if (one := self.moves(row, group)) is not None]
        return np.zeros((3, 3)) if persons is None else persons.covariances(group, np.array(moves))

    def column(self, measure: Measure) -> Floats:
        """The value of a measure in each group, and last that of everybody."""

        def compute() -> Floats:
            if measure.is_plain:
                return measure.of(self.sums)
            groups = [*range(len(self.tally.groups)), None]
            if measure.of_levels is not None:
                return np.array([measure.of_levels(self.levels(group)) for group in groups])
            return np.array([self.number(measure, group).value for group in groups])

        return self.people.once(("column", measure.name), compute)

    def value(self, name: str, group: int) -> float:
        """A measure of the table, or the cost, of a group."""
        values = self.costs[name] if name == "cost" else self.column(MEASURES[name])
        return float(values[group])

    @cached_property
    def measures(self) -> Mapping[str, Measure]:
        """The measures that the question asks for."""
        return chosen_measures(self.question.measures).rows

    @cached_property
    def sums(self) -> Sums:
        """Sums by kind of people of each group, and last of everybody."""
        sums = self.tally.kinds(self.people.threshold)
        both = (sums, sums.pooled())
        return Sums(*(np.concatenate([getattr(one, name) for one in both]) for name in SUMS))

    def levels(self, group: int | None) -> Levels:
        """The levels of a group, for calibration gaps."""
        return self.people.once(
            ("levels", group), lambda: levels_of(self.tally, group, self.effect(group))
        )

    @cached_property
    def costs(self) -> dict[str, Floats]:
        """The cost and the trivial cost of each group, and last of everybody."""
        tally, cost = self.tally, self.question.cost
        columns = {}
        for name, costs in (("cost", group_costs), ("trivial_cost", trivial_costs)):
            # A cost that differs by group has no meaning for everybody.
            pooled = math.nan if cost.is_per_group else costs(tally.totals.pooled(), ("all",), cost)
            columns[name] = np.append(costs(tally.totals, tally.groups, cost), pooled)
        return columns

    @cached_property
    def columns(self) -> Columns:
        """Every number of an audit, with an entry for each group and a last one for everybody."""
        weight = self.sums.weight
        columns: Columns = {"n": self.sums.n.sum(axis=-1), "share": weight / weight[-1]}
        values = {name: self.column(measure) for name, measure in self.measures.items()}
        return columns | values | self.costs

    def cost_interval(self, group: int | None) -> tuple[Interval, float]:
        """The interval of the cost of errors, and its degrees of freedom."""
        cost, at = self.question.cost, _place(group)
        amounts = cost.amounts(None if group is None else self.tally.groups[group])
        if cost.by_base_rate:
            row, people = cost_row(*amounts), self.people.people(group)
            number = mean_of(row, people, float(self.costs["cost"][at]))
            number = self.clustered(row, group, number)
            return interval_of(number, row.limits, self.question.level), number.freedom
        parts = []
        for name, amount in zip(PAID, amounts, strict=True):
            if amount:
                low, high = self.interval(MEASURES[name], group)
                number = self.number(MEASURES[name], group)
                span = amount * number.value, (amount * low, amount * high)
                parts.append((*span, number.freedom))
        if len(parts) == 1:
            return parts[0][1:]
        # Positives and negatives are different people, unless people have several rows; the
        # smaller number of degrees of freedom is on the safe side.
        (a, of_a, freedom), (b, of_b, other) = parts
        (u, both, _), (_, v, _), _ = self.paid(group).tolist()
        shared = both / math.sqrt(u * v) if u * v > 0.0 else 0.0
        x, y = ([own - low, high - own] for own, (low, high) in ((a, of_a), (b, of_b)))
        down, up = (
            math.sqrt(p * p + q * q + 2.0 * shared * p * q) for p, q in zip(x, y, strict=True)
        )
        return (a + b - down, a + b + up), min(freedom, other)

    def freedom(self, name: str, group: int) -> float:
        """The degrees of freedom of the interval of a number; infinite if it is a gap's."""
        if name == "cost":
            return self.cost_interval(group)[1]
        measure = MEASURES["base_rate"] if name == "trivial_cost" else self.measures.get(name)
        if measure is None or measure.of_levels is not None:
            return math.inf
        return self.number(measure, group).freedom

    def trivial_interval(self, group: int | None) -> Interval:
        """The interval of the trivial cost, the image of that of the base rate."""
        cost, (low, high) = self.question.cost, self.interval(MEASURES["base_rate"], group)
        fp, fn = cost.amounts(None if group is None else self.tally.groups[group])
        # It is largest or smallest at the ends, or at 1/2 if that is inside.
        mu = np.array([low, high, min(max(0.5, low), high)])
        ends = (fp + fn) * mu * (1.0 - mu) if cost.by_base_rate else fp * mu + fn * (1.0 - mu)
        value = float(self.costs["trivial_cost"][_place(group)])
        return around(value, (float(ends.min()), float(ends.max())))

    def covariance(self, group: int) -> float:
        """The covariance of the cost with the trivial cost, by linearization.

        The rates of a plain cost are means over one label, which do not covary with the base rate
        unless people have several rows.
        """
        cost, own = self.question.cost, self.people.people(group)
        fp, fn = cost.amounts(self.tally.groups[group])
        rate = float(self.column(MEASURES["base_rate"])[group])
        if self.repeated(group) is not None:
            slope, parts = fp - fn, np.array([fp, fn, 0.0])
            if cost.by_base_rate:
                c_fp, c_fn = (self.value(name, group) for name in PAID)
                slope = (fp + fn) * (1.0 - 2.0 * rate)
                parts = np.array([fp * (1.0 - rate), fn * rate, fn * c_fn - fp * c_fp])
            return slope * float(self.paid(group)[2] @ parts)
        if not cost.by_base_rate:
            return 0.0
        paid = np.where(own.label == 1, fn * (1.0 - own.score), fp * own.score)
        terms = own.w2 * (paid - self.costs["cost"][group]) * (own.label - rate)
        return (fp + fn) * (1.0 - 2.0 * rate) * float(terms.sum()) / own.total**2

    def share_interval(self, group: int | None) -> Interval:
        """The interval of the share of the weight that is this group's."""

        def sums(index: int | None) -> Floats:
            people, share = self.people.people(index), self.number(BIAS, index).share
            own = np.array([getattr(people, name).sum() for name in ("n", "w", "w2", "w4")])
            # A person weighs what all rows weigh.
            return own / share ** np.array([0.0, 0.0, 1.0, 3.0])

        own, everybody = (sums(index) for index in (group, None))
        # Rounding may leave less than nothing for the others.
        rest = np.maximum(everybody - own, 0.0)
        alone = rest[0] < 0.5 or rest[1] == 0.0
        # It is the base rate if people of the group are the positives.
        n, w, w2, w4 = (own if alone else np.stack([own, rest], axis=1)).reshape(4, -1)
        label, none = np.array([1, 0])[: len(n)], np.zeros(len(n))
        people = People(label, label, label > 1, n, w, w2, w4, none, none)
        value = 1.0 if alone else float(own[1] / (own[1] + rest[1]))
        share = mean_of(MEASURES["base_rate"], people, value)
        return interval_of(share, (0.0, 1.0), self.question.level)

    def spans(
        self, group: int | None, draws: Floats | None, examined: int
    ) -> tuple[dict[str, Interval], float]:
        """The interval of every number of an audit, and the calibration gap there is at least.

        The gap holds for all groups that are ``examined``; without ``draws`` it is NaN.
        """
        question, columns, at = self.question, self.columns, _place(group)
        spans = {
            name: self.interval(measure, group)
            for name, measure in self.measures.items()
            if measure.of_levels is None
        }
        spans["share"] = self.share_interval(group)
        if group is not None or not question.cost.is_per_group:
            spans["cost"], _ = self.cost_interval(group)
            spans["trivial_cost"] = self.trivial_interval(group)
        low, high = self.interval(BIAS, group)
        sizes = sorted((abs(low), abs(high)))
        least, most = (0.0 if low <= 0.0 <= high else sizes[0]), sizes[1]
        spans["calibration_gap_bound"] = least, most
        if draws is None:
            return spans, math.nan
        bandwidth = float(columns["calibration_gap_smooth"][at])
        gaps, floors, tail = {}, {}, (1.0 - question.level) / 2.0
        for name, noise in gap_noise(self.levels(group), bandwidth, draws).items():
            low, high, floors[name] = size_interval(*noise, tail, examined)
            # No gap is below the bound, so no interval ends below that of the bound.
            gaps[name] = low, min(1.0, max(high, most))
        # The debiased gap estimates the same number.
        gaps["calibration_gap_debiased"] = gaps["calibration_gap"]
        spans |= {name: around(float(columns[name][at]), span) for name, span in gaps.items()}
        return spans, floors["calibration_gap"]


def design_effects(tally: Tally, names: Collection[str] = ()) -> Floats:
    """The largest design effect in each group, of some numbers if ``names`` are given."""
    if tally.persons is None:
        return np.ones(len(tally.groups))
    known = tally.persons.thresholds or (DEFAULT.threshold,)
    estimates = Estimates(tally, DEFAULT.but(threshold=known[0]))
    names = (*names, *PAID) if "cost" in names else tuple(names)
    return np.array([estimates.effect(index, names) for index in range(len(tally.groups))])


def _place(group: int | None) -> int:
    return -1 if group is None else group


def range_quantile(probability: float, groups: int, few: Floats | float = 0.0) -> Floats:
    """The quantile of the range of so many standard normal variates, over an independent error.

    ``few`` is 1 over the degrees of freedom of the error, at most 1; with 0 it is known.

    Examples
    --------
    >>> range_quantile(0.95, 10, np.array([0.0, 0.1])).round(2).tolist()
    [4.47, 5.6]
    """
    table: Floats = np.exp(np.interp(few, *_range_table(probability, groups)))
    return table


@lru_cache(maxsize=256)
def _range_table(probability: float, groups: int) -> tuple[Floats, Floats]:
    """1 over degrees of freedom, and the logarithm of the quantile of the studentized range.

    P(range <= q) = k int phi(x) (Phi(x + q) - Phi(x))^(k - 1) dx, and with s the error, so that
    f s^2 is chi-squared with f degrees of freedom, the mean of P(range <= q s).
    """
    from scipy.special import ndtr

    x, density = _normal_grid()
    size = np.arange(0.0, 16.0, 0.01)
    within = groups * (ndtr(x + size[:, None]) - ndtr(x)) ** (groups - 1) @ density
    few = np.linspace(0.0, 1.0, 41) ** 1.5
    freedom = 1.0 / np.maximum(few, 1e-7)[:, None]
    log_s = np.arange(-14.0, 6.0, 0.1) / np.sqrt(2.0 * freedom)
    chance = np.exp(freedom * (log_s - np.expm1(2.0 * log_s) / 2.0))
    chance /= chance.sum(axis=1, keepdims=True)
    low, high = np.full(few.shape, -1.0), np.full(few.shape, 8.0)
    for _ in range(36):
        middle = (low + high) / 2.0
        reached = np.interp(np.exp(middle[:, None] + log_s), size, within)
        below = (chance * reached).sum(axis=1) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return few, high


@lru_cache(maxsize=256)
def _spread_within(sizes: tuple[float, ...], above: int, below: int, weight: float) -> Floats:
    """P(a max z - b min u <= size) for standard normal z and u, with a^2 = weight = 1 - b^2."""
    from scipy.special import ndtr

    x, density = _normal_grid()
    size = np.array(sizes)[:, None]
    reach = ndtr((size - math.sqrt(weight) * x) / math.sqrt(1.0 - weight)) ** below
    within: Floats = reach @ (above * ndtr(x) ** (above - 1) * density)
    return np.clip(within, 0.0, 1.0)


@lru_cache(maxsize=1)
def _normal_grid() -> tuple[Floats, Floats]:
    """Points, and the probability that a standard normal variate is near each."""
    x = np.arange(-9.0, 9.0, 0.05)
    density = np.exp(-(x**2) / 2.0)
    return x, density / density.sum()


@dataclass(frozen=True)
class CostBounds:
    """The cost and the trivial cost of each group: value, lower and upper end as columns.

    ``covariance`` is that of a group's cost with its trivial cost, ``tolerance`` the largest
    allowed difference of costs, and ``rows`` the number of rows in all.
    """

    cost: Floats
    trivial: Floats
    covariance: Floats
    tolerance: float
    confidence: float
    rows: float

    @property
    def z(self) -> float:
        """The normal quantile that the intervals stand for."""
        return normal_quantile((1.0 + self.confidence) / 2.0)


def stretch(confidence: float, groups: int) -> float:
    """Factor by which intervals are widened so that they bound all differences at once."""
    z = normal_quantile((1.0 + confidence) / 2.0)
    return float(range_quantile(confidence, groups)) / math.sqrt(2.0) / z


def pair_bounds(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The bounds of a_s - b_t for all s and t; a and b have value, lower and upper end as columns.

    Groups are independent (MOVER, Zou and Donner 2008).
    """
    value = a[:, None, 0] - b[None, :, 0]
    a_low, a_high = a[:, 0] - a[:, 1], a[:, 2] - a[:, 0]
    b_low, b_high = b[:, 0] - b[:, 1], b[:, 2] - b[:, 0]
    low: Floats = value - np.hypot(a_low[:, None], b_high[None, :])
    high: Floats = value + np.hypot(a_high[:, None], b_low[None, :])
    return low, high


def least_differences(values: Floats, confidence: float) -> Floats:
    """The differences a_s - a_t that are established at least, while all pairs are looked at.

    The intervals give the standard errors, and the studentized range with the degrees of freedom
    of each pair how many of them count (Games and Howell 1976).  ``values`` has value, lower and
    upper end and degrees of freedom as columns.  A bound that is not positive may be too high.
    """
    from scipy.special import stdtrit

    if len(values) == 2:
        return pair_bounds(values, values)[0]
    value, low, high = values[:, :3].T
    freedom = np.clip(values[:, 3], 1.0, 1e9)
    one = stdtrit(freedom, (1.0 + confidence) / 2.0)
    below, above = ((value - low) / one) ** 2, ((high - value) / one) ** 2
    apart, error = value[:, None] - value, np.sqrt((below[:, None] + above) / 2.0)
    bounds: Floats = apart - range_quantile(confidence, len(values)) * error
    # Known errors, as if the degrees of freedom were infinite, settle most pairs.
    s, t = np.nonzero(bounds > 0.0)
    # One over the degrees of freedom of a sum of two variances (Welch 1947).
    few = below[s] ** 2 / freedom[s] + above[t] ** 2 / freedom[t]
    few /= np.maximum((below[s] + above[t]) ** 2, 1e-300)
    bounds[s, t] = apart[s, t] - range_quantile(confidence, len(values), few) * error[s, t]
    return bounds


def difference(a: float, of_a: Interval, b: float, of_b: Interval) -> Interval:
    """The interval of a - b from those of a and of b, which are independent.

    Examples
    --------
    >>> difference(0.5, (0.2, 0.9), 0.25, (0.25, 0.25))
    (-0.04999999999999999, 0.65)
    """
    low, high = pair_bounds(np.array([[a, *of_a]]), np.array([[b, *of_b]]))
    return low.item(), high.item()


def range_interval(values: Floats, confidence: float, measure: Measure | None = None) -> Interval:
    """The interval of the largest difference between two groups in a measure.

    Its lower end is the largest difference that is established for some pair while all pairs are
    looked at; it is 0 with the given confidence if all groups are alike.  Its upper end is the
    largest of all pairs' own upper ends, or what the limits of the measure allow.  ``values`` has
    value, lower and upper end and degrees of freedom as columns; groups without them are left out.

    Examples
    --------
    >>> values = np.array([[0.2, 0.1, 0.3, math.inf], [0.5, 0.4, 0.6, math.inf]])
    >>> ends = range_interval(values, 0.95)
    >>> [round(end, 3) for end in ends]
    [0.159, 0.441]
    """
    values = values[np.isfinite(values[:, :3]).all(axis=1)]
    if len(values) < 2:
        return UNKNOWN
    low = least_differences(values, confidence)
    _, high = pair_bounds(values, values)
    most = math.inf if measure is None else measure.limits[1] - measure.limits[0]
    ends = max(0.0, float(low.max())), min(most, float(high.max()))
    return around(float(np.ptp(values[:, 0])), ends)


def highest_candidates(costs: Floats, confidence: float) -> list[int]:
    """The groups that may be the one whose errors cost most: no other is surely above them.

    ``costs`` has value, lower and upper end and degrees of freedom as columns.
    """
    above = least_differences(costs, confidence)
    np.fill_diagonal(above, -np.inf)
    return [int(i) for i in np.flatnonzero(above.max(axis=0) <= SLACK)]


def _highest_of(bounds: CostBounds, candidates: Ints, other: int | None = None) -> Interval:
    """The interval of the highest cost of some groups, all of which may be the highest.

    The highest of several noisy costs is too high.  So the lower ends are lowered until all of them
    hold together; or, if they are compared with those of an ``other`` group, until all differences
    from that one do (Dunnett 1955).
    """
    one, several = (1.0 + bounds.confidence) / 2.0, len(candidates)
    value, low, high = bounds.cost[candidates].T
    factor = normal_quantile(one ** (1.0 / several)) / bounds.z
    if other is not None and several > 1:
        variance = float(((value - low) ** 2).mean())
        own = float(bounds.cost[other, 2] - bounds.cost[other, 0]) ** 2
        # In steps, because each takes a while.
        share = min(max(round(20.0 * variance / (variance + own + 1e-300)), 1), 19) / 20.0
        within = _spread_within(SPREADS, several, 1, share)
        square = (float(np.interp(one, within, SPREADS)) / bounds.z) ** 2
        factor = math.sqrt((square - (1.0 - share)) / share)
    return max(0.0, float((value - factor * (value - low)).max())), float(high.max())


def _excess_of(bounds: CostBounds) -> tuple[Interval, float]:
    """The excess of the highest cost over what another group can reach, less the tolerance.

    Equal cost is feasible if it is at most 0.  It is the largest of g_s - max(g_t, trivial_t) -
    tolerance over all pairs of groups.

    Returns the interval, and the probability of an excess as large as the one seen if the pairs
    that are near 0 were exactly there: small values speak against feasibility.  The lower end is
    above 0 exactly if that probability is below (1 - confidence) / 2.  The upper end is the
    largest upper end of any pair: all must be at most 0.
    """
    # A group can cost at most the trivial cost, or its own if that is higher; which of the two
    # it is may be chance, so the wider interval is taken.
    most = np.maximum(bounds.cost[:, 0], bounds.trivial[:, 0])
    wider = [
        np.maximum(*(abs(one[:, end] - one[:, 0]) for one in (bounds.cost, bounds.trivial)))
        for end in (1, 2)
    ]
    ceiling = np.column_stack([most, most - wider[0], most + wider[1]])
    low, high = pair_bounds(bounds.cost, ceiling)
    value = bounds.cost[:, None, 0] - ceiling[None, :, 0] - bounds.tolerance
    error = np.maximum(value + bounds.tolerance - low, 1e-12) / bounds.z
    np.fill_diagonal(value, -np.inf)
    np.fill_diagonal(high, -np.inf)
    size = value / error
    # Pairs far below 0, and far below the largest, do not matter: generalized moment selection
    # (Andrews and Soares 2010).
    far = math.sqrt(2.0 * math.log(math.log(bounds.rows + 3.0)))
    near = size >= min(0.0, float(size.max())) - far
    above, below = int(near.any(axis=1).sum()), int(near.any(axis=0).sum())
    # How much of a pair's variance is that of the higher cost, on average over the pairs.
    own = ((bounds.cost[:, 0] - bounds.cost[:, 1]) / bounds.z)[:, None]
    weight = round(float(np.clip((own / error) ** 2, 0.01, 0.99)[near].mean()), 2)
    probability = 1.0 - float(_spread_within((float(size.max()),), above, below, weight)[0])
    within = _spread_within(SPREADS, above, below, weight)
    factor = float(np.interp((1.0 + bounds.confidence) / 2.0, within, SPREADS))
    ends = float((value - factor * error).max()), float(high.max()) - bounds.tolerance
    return around(float(value.max()), ends), probability


def alpha_intervals(
    bounds: CostBounds, candidates: Sequence[int], estimates: Floats
) -> list[Interval]:
    """The interval of the share to withhold, for each group.

    With G the highest cost of the other groups, a share a is enough for group t exactly if
    D(a) = G - tolerance - (1 - a) g_t - a trivial_t is at most 0.  The interval holds every a for
    which D(a) = 0 is not rejected (Fieller); its ends solve a quadratic equation.  The upper end is
    infinite where it is not established that withholding raises the cost at all.
    """
    result = []
    for t in range(len(bounds.cost)):
        others = np.array([s for s in candidates if s != t], dtype=np.intp)
        if not len(others):
            others = np.array([s for s in range(len(bounds.cost)) if s != t], dtype=np.intp)
        value = float(bounds.cost[others, 0].max())
        low, high = around(value, _highest_of(bounds, others, t))
        ends = (
            _solve(bounds, t, value, value - low, side=2),
            _solve(bounds, t, value, high - value, side=1),
        )
        result.append(around(float(estimates[t]), ends))
    return result


def _solve(bounds: CostBounds, t: int, target: float, error: float, side: int) -> float:
    """The a for which D(a) is as many errors above 0 (side 2, its lower end) or below (side 1)."""
    g, trivial = float(bounds.cost[t, 0]), float(bounds.trivial[t, 0])
    a = (float(bounds.cost[t, side]) - g) ** 2
    b = (float(bounds.trivial[t, side]) - trivial) ** 2
    c = bounds.z**2 * float(bounds.covariance[t])
    start, room = target - bounds.tolerance - g, trivial - g
    if side == 2 and start <= math.sqrt(error**2 + a) + SLACK:
        return 0.0
    if side == 1 and start <= -math.sqrt(error**2 + a):
        return 0.0
    if room <= 0.0:
        return math.inf
    square = room**2 - (a - 2.0 * c + b)
    linear = -2.0 * start * room + 2.0 * (a - c)
    constant = start**2 - error**2 - a
    if square <= 0.0 and side == 1:
        return math.inf
    roots = np.roots([square, linear, constant])
    real = sorted(float(root.real) for root in roots if abs(root.imag) < 1e-9)
    if side == 1:
        return max(real[-1], 0.0) if real else math.inf
    return next((root for root in real if root > 0.0), math.inf)


def gap_floors(some: Sequence[Levels], groups: int, question: Question) -> list[float]:
    """The calibration gap that each of some groups has at least, as in an audit of all groups."""
    replicates = question.replicates or DEFAULT.replicates
    draws, tail = normal_draws(replicates, question.seed), (1.0 - question.level) / 2.0
    return [size_interval(*bin_noise(levels, draws), tail, groups)[2] for levels in some]


def normal_draws(replicates: int, seed: int) -> Floats:
    """Chance deviations of calibration gaps, in standard errors: (replicates, cells)."""
    return np.random.default_rng(seed).standard_normal((replicates, SMOOTH_CELLS))


@dataclass(frozen=True)
class Intervals(Record):
    """Intervals of the numbers of an audit.

    Attributes
    ----------
    groups : {group: {name: (low, high)}}
        For each group, by the names of :class:`Measures`.
    overall : {name: (low, high)}
        For everybody together.
    differences : {name: (low, high)}
        The number of ``compared[0]`` less that of ``compared[1]``.  With three groups or more the
        pair was chosen after looking at the costs: use ``disparities`` there.
    compared : (group, group)
        The groups whose errors cost most and least.
    disparities : {name: (low, high)}
        The largest difference between any two groups.  Chance alone makes it larger, most of all
        when groups are alike; the interval allows for that: it starts above 0 only if some pair
        differs while all pairs are looked at.
    highest : tuple
        The groups that may be the one whose errors cost most.
    excess : (low, high)
        How far the highest cost is above the highest that calibrated scores of another group can
        have, less the tolerance.  Equal cost is feasible if it is at most 0.
    feasible_probability : float
        How likely an excess as large as the one seen would be if equal cost were just feasible.
        Small values speak against feasibility: it is ruled out below (1 - confidence) / 2.
    alpha : {group: (low, high)}
        The share to withhold; above 1, or infinite, where no share may be enough.
    target_cost : (low, high)
        The highest cost of any group.
    gap_floors : {group: float}
        The calibration gap that each group has at least, when all are looked at together.
    confidence, replicates, seed
        What it was made with.
    method : str
        "replicates", or "analytic" when there are none.
    approximate : tuple of str
        Numbers whose variance does not follow from the persons of the tally: it has the largest
        design effect of those that do.  Empty if nobody is known to have several rows.
    """

    unwritten = ("groups", "overall", "gap_floors", "approximate")
    also = ("approximate?",)

    groups: dict[Group, dict[str, Interval]]
    overall: dict[str, Interval]
    differences: dict[str, Interval]
    compared: tuple[Group, Group]
    disparities: dict[str, Interval]
    highest: tuple[Group, ...]
    excess: Interval
    feasible_probability: float
    alpha: dict[Group, Interval]
    target_cost: Interval
    gap_floors: dict[Group, float]
    confidence: float
    replicates: int
    seed: int
    method: str
    approximate: tuple[str, ...] = ()


@asks("cost", "threshold")
def intervals(tally: Tally, question: Question) -> Intervals:
    """Compute confidence intervals for every number of an audit.

    Parameters
    ----------
    tally : Tally, or data
        At least two groups with positives and negatives.
    cost, threshold, ...
        Fields of :class:`isocost.Question`; with data, keywords of :func:`isocost.tally`.

    Notes
    -----
    Rows are taken to be drawn independently, unless the tally has persons: then persons are.  For
    people who come in other clusters, intervals are too narrow.  Each interval stands for itself;
    of twenty at 95 %, expect one to miss.

    The plug-in gap is too high for small samples, so it lies near the top of its interval.

    A number that does not vary in the sample, such as a constant score, has an interval without
    width, unless it is a proportion.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> result = ic.intervals(compas(), "fpr")
    >>> low, high = result.differences["generalized_fpr"]
    >>> result.compared, f"{low:.3f} to {high:.3f}", result.highest
    (('African-American', 'Caucasian'), '0.077 to 0.098', ('African-American',))
    >>> round(result.feasible_probability, 3)
    0.0
    """
    question.cost.check_groups(tally.groups)
    groups = compared_groups(tally, question.min_group)
    reach = reach_of(tally.select(groups), question.among(groups))
    return intervals_of(Estimates(tally, question, groups), reach)


def intervals_of(estimates: Estimates, reach: Feasibility, outside: int = 0) -> Intervals:
    """The intervals of an audit of the groups whose feasibility is ``reach``.

    ``outside`` is how many groups that are not in the tally are examined with these.
    """
    tally, question, groups = estimates.tally, estimates.question, tuple(reach.costs)
    level, examined = question.level, len(examined_groups(tally, question.min_group)) + outside
    draws = normal_draws(question.replicates, question.seed) if question.replicates else None
    everyone = (*range(len(tally.groups)), None)
    spans = [estimates.spans(group, draws, examined) for group in everyone]

    def ends(name: str, some: Sequence[Group]) -> Floats:
        """Value, lower and upper end and degrees of freedom of a number in each of some groups."""
        column, at = estimates.columns[name], [tally.index_of(group) for group in some]
        return np.array([(column[i], *spans[i][0][name], estimates.freedom(name, i)) for i in at])

    costly = [group for group in groups if not math.isnan(reach.costs[group])]
    pair, candidates, probability = (groups[0], groups[-1]), list[int](), math.nan
    excess = target = UNKNOWN
    alpha = [UNKNOWN] * len(costly)
    if len(costly) > 1:
        known = ends("cost", costly)
        cost, trivial = known[:, :3], ends("trivial_cost", costly)[:, :3]
        covariance = np.array([estimates.covariance(tally.index_of(g)) for g in costly])
        bounds = CostBounds(cost, trivial, covariance, reach.tolerance, level, tally.n)
        candidates = highest_candidates(known, level)
        excess, probability = _excess_of(bounds)
        shares = np.array([reach.alpha[group] for group in costly])
        alpha = alpha_intervals(bounds, candidates, shares)
        top = int(np.argmax(cost[:, 0]))
        target = around(float(cost[top, 0]), _highest_of(bounds, np.asarray(candidates)))
        # Two groups even when all costs are equal.
        others = [index for index in range(len(costly)) if index != top]
        pair = costly[top], costly[min(others, key=lambda index: float(cost[index, 0]))]
    names = [name for name in spans[0][0] if name != "share"]
    both = {name: ends(name, pair).tolist() for name in names}
    return Intervals(
        groups={group: own for group, (own, _) in zip(tally.groups, spans, strict=False)},
        overall=spans[-1][0],
        differences={
            name: difference(a, (a_low, a_high), b, (b_low, b_high))
            for name, ((a, a_low, a_high, _), (b, b_low, b_high, _)) in both.items()
        },
        compared=pair,
        disparities={
            name: range_interval(ends(name, groups), level, estimates.measures.get(name))
            for name in names
        },
        highest=tuple(costly[index] for index in candidates),
        excess=excess,
        feasible_probability=probability,
        alpha=dict(zip(costly, alpha, strict=True)),
        target_cost=target,
        gap_floors={group: floor for group, (_, floor) in zip(tally.groups, spans, strict=False)},
        confidence=level,
        replicates=question.replicates,
        seed=question.seed,
        method="replicates" if question.replicates else "analytic",
        approximate=tuple(
            name
            for name, row in estimates.measures.items()
            # The interval of the bound is that of the bias, which is a mean.
            if estimates.repeated(None) and estimates.moves(row, None) is None
            if name != "calibration_gap_bound"
        ),
    )


def disparity_intervals(
    estimates: Estimates, names: Collection[str], groups: Sequence[Group]
) -> dict[str, Interval]:
    """The intervals of some disparities of an audit: of plain measures, "bias" or "cost".

    Examples
    --------
    >>> from isocost.examples import compas
    >>> estimates = Estimates(compas(), Question("fpr"))
    >>> some = disparity_intervals(estimates, ["fpr"], compas().groups)
    >>> some["fpr"] == intervals(compas(), "fpr").disparities["fpr"]
    True
    """
    disparities = {}
    for name in names:
        row, ends = BIAS if name == BIAS.name else MEASURES.get(name), []
        for index in map(estimates.tally.index_of, groups):
            if row is None:
                value, (span, freedom) = (
                    estimates.value(name, index),
                    estimates.cost_interval(index),
                )
            else:
                value, span = float(estimates.column(row)[index]), estimates.interval(row, index)
                freedom = estimates.number(row, index).freedom
            ends.append((value, *span, freedom))
        disparities[name] = range_interval(np.array(ends), estimates.question.level, row)
    return disparities
