"""Watching a rule after deployment: claims that it makes, and the evidence against them.

Claims are about differences of means of independent rows with values x in [0, 1], of which each
period brings n more.  For D = sum_s k_s E[x_s] over streams s, and the claim that D is at most d
in every period, the evidence of the periods since j is

    E_j = exp( sum_t L_t (D_t - d) - sum_s sum_i (1/2 + C) u_i^2 - u_i^3 / 3 ),
    u_i = L_t k_s (x_i - m_st) / n_st,

for any mean m_st and bet L_t known before the scores of the period.  C is the least number with
u - (1/2 + C) u^2 + u^3 / 3 <= log(1 + u) for all u that x in [0, 1] makes possible.  While the
claim holds, a bet multiplies money by 1 + u, at most 1 on average, so E_j is at most 1 on average
however often one looks (Waudby-Smith and Ramdas 2024).  Third powers come from the cells too:
inside a bin scores are taken to be symmetric, an error of less than 1e-9 a row with 1024 bins.

An e-detector (Shin, Ramdas and Rinaldo 2024) starts such evidence anew in every period, because
nobody knows when a drift begins.  Here it is the mean of E_j over the periods j and over sizes of a
drift, with weights that add up to 1 (:data:`STARTS`, :data:`EFFECTS`).  So it reaches A with a
chance of at most 1/A, ever, whatever the rows are (Ville).  Evidence that grows in jumps overshoots
A, so for sums close to normal the chance is at most :data:`OVERSHOOT` / A.  An alarm with a chance
of a comes at A = OVERSHOOT / a: ever, a chance of at most a for sums close to normal, and of at
most a / OVERSHOOT in any case.  benchmarks/watching.py measures both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from operator import itemgetter
from typing import Any, Unpack

import numpy as np

from isocost.cells import KINDS, SUMS, Sums
from isocost.checks import (
    as_number,
    check_confidence,
    check_listed,
    check_threshold,
    check_tolerance,
    short,
)
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import DataError, Problem, UsageError, listing, setting
from isocost.groups import Group, as_group, names_of
from isocost.measures.intervals import Estimates, Interval, design_effects
from isocost.measures.rates import disparity, require_all_decided
from isocost.measures.table import (
    BIAS,
    MEASURES,
    OVERALL,
    Measure,
    chosen_measures,
    cost_row,
)
from isocost.question import DEFAULT
from isocost.repairs.composition import merged
from isocost.result import Record, Result
from isocost.rules import Promise, Rule, check_rule, repaired_column, stored_columns, unknown_groups
from isocost.tables import number_text
from isocost.tallies import (
    DataOptions,
    Tally,
    TallyLike,
    as_tally,
    check_no_keywords,
    column_names,
)
from isocost.typing import Floats
from isocost.verdict.sentences import SENTENCES

MOST_LISTED = 5
"""The largest number of groups, and of periods, that a note lists."""

EFFECTS = {5.6: 0.05, 2.8: 0.12, 1.4: 0.6, 0.7: 0.1, 0.35: 0.05, 0.175: 0.04, 0.0875: 0.04}
"""Distances of the truth beyond the limit, in standard errors of a period, and their weights;
evidence grows fastest near the right one."""

STARTS = {"first": 0.1, "soon": 0.7, "later": 0.2}
"""Weights of a drift that was there from the start, of one that began in the first
:data:`SOON` periods, each as likely, and of all later ones, which get less and less."""

SOON = 60

OVERSHOOT = 0.5
"""The chance that evidence ever reaches A, times A, for normal sums; at most 1 for any."""

BANDS = ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0))
"""Scores are compared with labels in each of these, besides all together; tenths are edges."""

WHOLE = (0.0, 1.0)

HANDED_OVER = "handed_over"
"""The kind of a claim about the share of people without a score."""

WATCHABLE = ("cost", *(name for name, measure in MEASURES.items() if measure.is_linear))
"""Numbers that a stream of rows can be made of: it needs squares of what a row adds."""


@dataclass(frozen=True)
class Stream:
    """Rows with values x in [0, 1], per period: how many, sums of powers of x; and their factor k.

    Weighted rows stand for their effective number (Kish), which makes the evidence approximate.
    """

    k: float
    n: Floats
    total: Floats
    square: Floats
    cube: Floats

    @classmethod
    def of(cls, k: float, w: Floats, w2: Floats, wx: Floats, wx2: Floats, wx3: Floats) -> Stream:
        """From the sums of w, w^2, w x, w x^2 and w x^3 of each period."""
        with np.errstate(invalid="ignore", divide="ignore"):
            # Without weights the quotient is exactly 1.
            shrink = np.where(w2 > 0, w / w2, 0.0)
        return cls(k, *(values * shrink for values in (w, wx, wx2, wx3)))

    def before(self) -> tuple[Floats, Floats]:
        """Mean and variance as known before each period: 1/2 and 1/4 at first."""
        columns = (self.n, self.total, self.square)
        n, total, square = (np.cumsum(values) - values for values in columns)
        mean = (0.5 + total) / (1.0 + n)
        spread = square - 2.0 * mean * total + mean**2 * n
        return mean, (0.25 + np.maximum(spread, 0.0)) / (1.0 + n)


@dataclass(frozen=True)
class Evidence:
    """Evidence about D = constant + the means of some streams, after each period.

    ``estimate`` and ``running`` are D in each period and in all periods so far, NaN where a stream
    has no rows; ``weight`` (periods, effects) is L_t and ``price`` (periods, effects, 2) what is
    subtracted for chance, for D too high and too low; ``limits`` are the smallest and largest
    possible D.
    """

    streams: tuple[Stream, ...]
    constant: float
    estimate: Floats
    running: Floats
    weight: Floats
    price: Floats
    limits: Interval

    def against(self, limit: float, sign: float = 1.0) -> Floats:
        """The logarithm of the evidence, after each period, that sign D is not always <= limit."""
        path, earlier = self._paths(limit, sign)
        starts = np.arange(1.0, len(path) + 1.0)
        later = STARTS["later"] * (SOON + 1.0) / (starts * (starts + 1.0))
        weights = np.where(starts <= SOON, STARTS["soon"] / SOON, later)
        weights[0] += STARTS["first"]
        begun = path + np.logaddexp.accumulate(np.log(weights)[:, None] - earlier, axis=0)
        # Evidence that has not begun stays at 1.
        not_begun = np.maximum(1.0 - np.cumsum(weights), 1e-300)
        return np.logaddexp(_log_mean(begun), np.log(not_begun))

    def beginning(self, limit: float, sign: float, now: int) -> int:
        """The period with which the evidence after period ``now`` most likely began."""
        path, earlier = self._paths(limit, sign)
        return int(np.argmax(_log_mean(path[now] - earlier[: now + 1])))

    def mean_since(self, since: int) -> float:
        """D over a period and all after it."""
        parts = ((s.k, s.total[since:].sum(), s.n[since:].sum()) for s in self.streams)
        return self.constant + float(sum(k * total / n for k, total, n in parts))

    def interval(self, error: float, now: int) -> Interval:
        """The interval of D after period ``now``, if it has been the same in all periods.

        The intervals after all periods hold it together with a chance of at least 1 - error.  They
        invert the test of :meth:`against`, so there is an alarm where a limit is outside.  If D is
        shown to have changed, the two bounds cross: it was at or below the first in one period, and
        at or above the second in another.
        """
        above, below = (sign * self.at_least(error / 2.0, sign, now) for sign in (1.0, -1.0))
        return min(above, below), max(above, below)

    def at_least(self, error: float, sign: float, now: int) -> float:
        """A bound that sign D was above in some period up to ``now``."""
        columns = ("estimate", "running", "weight", "price")
        so_far = replace(self, **{name: getattr(self, name)[: now + 1] for name in columns})
        low, high = sorted(sign * end for end in self.limits)
        # To about 1e-7.
        for _ in range(24):
            middle = (low + high) / 2.0
            if so_far.against(middle, sign)[-1] >= alarm_at(error):
                low = middle
            else:
                high = middle
        return low

    def _paths(self, limit: float, sign: float) -> tuple[Floats, Floats]:
        """The sums of gains after each period and before it, for each effect."""
        distance = np.nan_to_num(sign * self.estimate - limit)
        gains = self.weight * distance[:, None] - self.price[..., int(sign < 0.0)]
        path = np.cumsum(gains, axis=0)
        return path, np.vstack([np.zeros((1, path.shape[1])), path[:-1]])


def evidence(streams: Sequence[Stream], constant: float = 0.0) -> Evidence:
    """The evidence about D = constant + sum_s k_s E[x_s].

    Examples
    --------
    >>> ones = np.ones(3)
    >>> coins = Stream(1.0, 1000 * ones, 600 * ones, 600 * ones, 600 * ones)
    >>> result = evidence([coins], constant=-0.5)
    >>> result.against(0.0).round(1).tolist()
    [14.6, 33.9, 53.2]
    >>> low, high = result.interval(0.05, now=2)
    >>> f"{low:.3f} to {high:.3f}"
    '0.069 to 0.131'
    """
    known = np.all([stream.n > 0 for stream in streams], axis=0)
    estimate, running = np.full((2, len(known)), constant)
    variance = np.zeros(len(known))
    boldest = np.full(len(known), np.inf)
    for stream in streams:
        n = np.where(known, stream.n, 1.0)
        estimate += stream.k * stream.total / n
        so_far = np.cumsum(stream.n)
        running += stream.k * np.cumsum(stream.total) / np.where(so_far > 0, so_far, np.nan)
        variance += stream.k**2 * stream.before()[1] / n
        # psi has a pole at 1.
        boldest = np.minimum(boldest, 0.5 * n / abs(stream.k))
    bets = np.array(list(EFFECTS)) / np.sqrt(variance)[:, None]
    weight = np.minimum(bets, boldest[:, None]) * known[:, None]
    price = np.zeros((*weight.shape, 2))
    for stream in streams:
        step = weight * abs(stream.k) / np.where(known, stream.n, 1.0)[:, None]
        mean, _ = stream.before()
        square = stream.square - 2.0 * mean * stream.total + mean**2 * stream.n
        cube = stream.cube - 3.0 * mean * stream.square + 3.0 * mean**2 * stream.total
        cube -= mean**3 * stream.n
        for way, sign in enumerate((1.0, -1.0)):
            side = sign * np.sign(stream.k)
            below, above = (mean, 1.0 - mean) if side > 0.0 else (1.0 - mean, mean)
            rest = np.maximum(_rest(-step * below[:, None]), _rest(step * above[:, None]))
            price[..., way] += (0.5 + rest) * step**2 * np.maximum(square, 0.0)[:, None]
            price[..., way] -= step**3 * side * cube[:, None] / 3.0
    low = constant + sum(min(stream.k, 0.0) for stream in streams)
    high = constant + sum(max(stream.k, 0.0) for stream in streams)
    estimate = np.where(known, estimate, np.nan)
    return Evidence(tuple(streams), constant, estimate, running, weight, price, (low, high))


def _rest(u: Floats) -> Floats:
    """The C for which u - (1/2 + C) u^2 + u^3 / 3 is log(1 + u); it grows with the size of u."""
    terms = u - u**2 / 2.0 + u**3 / 3.0 - np.log1p(u)
    return np.maximum(np.divide(terms, u**2, out=np.zeros_like(u), where=u != 0.0), 0.0)


def alarm_at(error: float) -> float:
    """The logarithm of the evidence at which there is an alarm, for a chance of a false one."""
    return math.log(OVERSHOOT / error)


def _log_mean(values: Floats) -> Floats:
    """The logarithm of the mean of exp(values) over the effects, the last dimension."""
    return np.asarray(np.logaddexp.reduce(values + np.log(list(EFFECTS.values())), axis=-1))


@dataclass(frozen=True)
class Claim(Record):
    """A statement that must hold in every period.

    Attributes
    ----------
    kind : str
        "cost", the name of a rate, "calibration", or "handed_over".
    groups : tuple
        Two groups whose numbers must not differ by more than the limit; one for calibration, for a
        floor and for the share handed over; none for a floor of everybody.
    band : (low, high) or None
        The scores that calibration is about; None for all.
    limit : float
        The largest difference that is allowed, or the floor if ``is_floor``.
    error : float
        The probability of a false alarm that this claim may use.
    promised : float
        The share handed over that was promised.
    """

    written = ("kind", "groups", "band", "limit")

    kind: str
    groups: tuple[Group, ...]
    band: tuple[float, float] | None
    limit: float
    error: float
    is_floor: bool = False
    promised: float = 0.0


class History:
    """The sums of all periods, per group and kind of people: of all scores, and of each band."""

    def __init__(
        self, tallies: Sequence[Tally], groups: Sequence[Group], threshold: float, cost: Cost | None
    ) -> None:
        self.groups = list(groups)
        self.cost = cost
        self.bands = {band: self._stacked(tallies, band, threshold) for band in (WHOLE, *BANDS)}
        self.all, self.cubes = self.bands[WHOLE]
        # Rows, sum w and sum w^2 of people handed over, per period and group.
        self.handed = np.array(
            [[tally.handed_over.get(g, (0.0,) * 3) for g in self.groups] for tally in tallies]
        )

    def _stacked(
        self, tallies: Sequence[Tally], band: tuple[float, float], threshold: float
    ) -> tuple[Sums, Floats]:
        """Sums of scores in a band, as arrays (periods, groups, 4); zeros for groups that lack.

        The second is sum w h^3.  Groups of a period that are not watched do not count.
        """
        shape = (len(tallies), len(self.groups), len(KINDS))
        full, cubes = {name: np.zeros(shape) for name in SUMS}, np.zeros(shape)
        for period, tally in enumerate(tallies):
            first, last = (tally.grid.first_bin(end, "band") for end in band)
            inside = (tally.cells.bin >= first) & (tally.cells.bin < last)
            cells, cut = tally.cells.take(inside), tally.grid.first_bin(threshold, "threshold")
            sums = cells.kinds(len(tally.groups), cut)
            known = [i for i, group in enumerate(tally.groups) if group in self.groups]
            indices = [self.groups.index(tally.groups[i]) for i in known]
            for name, values in full.items():
                values[period, indices] = getattr(sums, name)[known]
            # Where people have several rows, evidence counts fewer.
            full["w2"][period, indices] *= design_effects(tally)[known, None]
            mean = cells.wh / cells.w
            cubed = replace(cells, wh=mean * (3.0 * cells.wh2 - 2.0 * mean * cells.wh))
            cubes[period, indices] = cubed.kinds(len(tally.groups), cut).wh[known]
        return Sums(**full), cubes

    def streams(self, claim: Claim) -> tuple[list[Stream], float]:
        """The rows that a claim is about, and the constant to add."""
        if claim.kind == "calibration":
            group = self.groups.index(claim.groups[0])
            sums, cubes = self.bands[claim.band or WHOLE]
            return [_stream(BIAS, sums.at(group), cubes[:, group])], BIAS.limits[0]
        if claim.kind == HANDED_OVER:
            # People handed over count 1 and the others 0.
            group = self.groups.index(claim.groups[0])
            decided, (_, w, w2) = self.all.at(group), self.handed[:, group].T
            total, squares = w + decided.w.sum(axis=-1), w2 + decided.w2.sum(axis=-1)
            return [Stream.of(1.0, total, squares, w, w, w)], -claim.promised
        if claim.is_floor:
            sums, cubes = self.all.pooled().at(0), self.cubes.sum(axis=1)
            if claim.groups:
                group = self.groups.index(claim.groups[0])
                sums, cubes = self.all.at(group), self.cubes[:, group]
            # How far the rate lies below its floor.
            return [_stream(MEASURES[claim.kind], sums, cubes, -1.0)], claim.limit
        one, other = (self._number(claim.kind, group) for group in claim.groups)
        return [*one, *(replace(stream, k=-stream.k) for stream in other)], 0.0

    def _number(self, kind: str, group: Group) -> list[Stream]:
        """A cost or rate of one group, up to a constant that all groups share."""
        index = self.groups.index(group)
        sums, cubes = self.all.at(index), self.cubes[:, index]
        if kind != "cost":
            return [_stream(MEASURES[kind], sums, cubes)]
        assert self.cost is not None
        fp, fn = self.cost.amounts(group)
        if self.cost.by_base_rate:
            return [_stream(cost_row(fp, fn), sums, cubes)]
        factors = {"generalized_fpr": fp, "generalized_fnr": fn}
        return [_stream(MEASURES[name], sums, cubes, k) for name, k in factors.items() if k > 0]


def _stream(measure: Measure, sums: Sums, cubes: Floats, k: float = 1.0) -> Stream:
    """The rows that a measure is the mean of, per period, moved from its limits to [0, 1]."""
    low, high = measure.limits
    w = w2 = wx = wx2 = wx3 = np.zeros(len(sums.w))
    for index, kind in enumerate(KINDS):
        if kind in measure.over:
            a, b, _ = measure.adds.get(kind, (0.0, 0.0, 0.0))
            a, b = (a - low) / (high - low), b / (high - low)
            own, wh, wh2 = (getattr(sums, name)[:, index] for name in ("w", "wh", "wh2"))
            w, w2 = w + own, w2 + sums.w2[:, index]
            wx = wx + a * own + b * wh
            wx2 = wx2 + a * a * own + 2.0 * a * b * wh + b * b * wh2
            wx3 = wx3 + a**3 * own + 3.0 * a * b * (a * wh + b * wh2) + b**3 * cubes[:, index]
    return Stream.of(k * (high - low), w, w2, wx, wx2, wx3)


def claims_of(
    groups: Sequence[Group],
    limits: Mapping[str, float],
    calibration_margin: float | None,
    error: float,
    floors: Mapping[str, float] | None = None,
    handed_over: Mapping[Group, tuple[float, float]] | None = None,
) -> list[Claim]:
    """All claims about what must be equal within limits, about floors, and about calibration.

    ``handed_over`` has the share of each group that was promised, and how far it may differ.

    The chance of a false alarm is divided among them (Bonferroni): three quarters go to what must
    be equal and to floors, an eighth each to calibration of all scores and by band.
    """
    pairs = [(kind, pair) for kind in limits for pair in combinations(groups, 2)]
    least = [
        (name.removeprefix(OVERALL), whose, limit)
        for name, limit in (floors or {}).items()
        for whose in ([()] if name.startswith(OVERALL) else [(group,) for group in groups])
    ]
    handed = [(group, x) for group, x in (handed_over or {}).items() if group in groups]
    count = max(len(pairs) + len(least) + len(handed), 1)
    share = error * (1.0 if calibration_margin is None else 0.75) / count
    claims = [Claim(kind, pair, None, limits[kind], share) for kind, pair in pairs]
    claims += [Claim(kind, whose, None, limit, share, True) for kind, whose, limit in least]
    claims += [
        Claim(HANDED_OVER, (group,), None, limit, share, promised=promised)
        for group, (promised, limit) in handed
    ]
    if calibration_margin is None:
        return claims
    share = error * (0.125 if claims else 0.5) / len(groups)
    bands = [(None, share), *((band, share / len(BANDS)) for band in BANDS)]
    return claims + [
        Claim("calibration", (group,), band, calibration_margin, own)
        for group in groups
        for band, own in bands
    ]


@dataclass(frozen=True)
class Period(Record):
    """The findings of one period.

    Attributes
    ----------
    difference, running : float
        The largest difference between two groups of what must be equal, in this period and in all
        periods so far; NaN where it is not known.
    interval : (low, high)
        Where the running difference lies, if it has been the same all the time.  The intervals
        of all periods and pairs hold together with the requested confidence.  If it is shown to
        have changed, it was at most ``low`` in one period and at least ``high`` in another.
    calibration : float
        The largest distance of a group's mean score from its share of positives in this period.
    broken : tuple of str
        What was shown to be violated, in this period or before: "cost", "calibration" ...
    measures : {name: float}
        The largest difference between two groups in each measure that was chosen, in this period;
        for information, never tested.
    handed_over : float
        The share of people without a score, because they were handed over; the rows are those of
        the others.
    """

    name: str
    rows: float
    difference: float
    running: float
    interval: Interval
    calibration: float
    broken: tuple[str, ...]
    measures: Mapping[str, float] = field(default_factory=dict)
    handed_over: float = 0.0


@dataclass(frozen=True)
class Alarm(Record):
    """A claim that was shown to be violated.

    Attributes
    ----------
    claim : Claim
        What was claimed; ``claim.groups`` has the group with the higher number first.
    period : str
        When it was shown.
    since : str
        When it most likely began.
    estimate : float
        By how much groups differed, or scores were off, from then to the last period; for
        calibration above 0 where labels are more often positive than scores say.
    at_least : float
        A bound that it was above in some period; it lies above the limit.  For a floor ``estimate``
        is the rate, and this a bound that it was below.
    """

    written = ("*claim", "period", "since", "estimate", "at_least")

    claim: Claim
    period: str
    since: str
    estimate: float
    at_least: float

    def __str__(self) -> str:
        claim, names = self.claim, list(names_of(self.claim.groups).values())
        bound = f"{abs(self.at_least):.4f} or more in some period; {claim.limit:.4g} is allowed"
        if claim.kind == "calibration":
            where = "" if claim.band is None else " from {:g} to {:g}".format(*claim.band)
            way = "too low" if self.estimate > 0 else "too high"
            what = f"The scores{where} of {names[0]} are {way}"
            size = f"by {abs(self.estimate):.4f} ({bound})"
        elif claim.kind == HANDED_OVER:
            way = "More" if self.estimate > 0 else "Fewer"
            what = f"{way} of {names[0]} are handed over than promised"
            now, promised = claim.promised + self.estimate, claim.promised
            size = f"{now:.2%} instead of {promised:.2%} (off by {bound})"
        elif claim.is_floor:
            whose = f" of {names[0]}" if names else " of everybody"
            what = f"The {MEASURES[claim.kind].title}{whose} is too low"
            size = (
                f"{self.estimate:.4f} ({self.at_least:.4f} or less in some period; at least "
                f"{claim.limit:.4g} is promised)"
            )
        else:
            title = "The costs" if claim.kind == "cost" else MEASURES[claim.kind].title
            what = f"{title} of {names[0]} and {names[1]} differ"
            size = f"by {self.estimate:.4f} ({bound})"
        return f"{what} since {self.since}: {size}. Shown in {self.period}."


@dataclass(frozen=True, repr=False)
class Watch(Result):
    """The result of :func:`watch`.

    Attributes
    ----------
    alarms : tuple of Alarm
        The violated claims, in the order they were detected.
    notes : tuple of str
        Periods with too little data, and how base rates and shares of groups have moved: for
        information, never an alarm.
    limits : {name: float}
        What the rule makes equal, and how far groups may differ in it; empty for a rule
        that promises nothing.
    calibration_margin : float
        How far scores may lie from labels; None if calibration is not watched.
    confidence : float
        The probability that there is never an alarm while everything holds, for sums close to
        normal; see :mod:`isocost.judging.watch` for a bound without that.
    floors : {name: float}
        What rates must at least be.
    handed_over : {group: float}
        The shares that the rule promised to hand over, if they are tested; all other numbers are
        about the people who are not handed over.
    """

    format = "isocost-watch"
    written = (
        "alarm", "first_alarm", "equal", "limit", "limits", "floors", "handed_over",
        "calibration_margin", "confidence", "periods", "alarms", "notes",
    )  # fmt: skip

    periods: tuple[Period, ...]
    alarms: tuple[Alarm, ...]
    notes: tuple[str, ...]
    limits: Mapping[str, float]
    calibration_margin: float | None
    confidence: float
    backend: str | None = None
    floors: Mapping[str, float] = field(default_factory=dict)
    handed_over: Mapping[Group, float] = field(default_factory=dict)

    @property
    def equal(self) -> tuple[str, ...]:
        """The numbers that the rule makes equal."""
        return tuple(self.limits)

    @property
    def limit(self) -> float:
        """The largest allowed difference of groups; NaN if there is none."""
        return max(self.limits.values(), default=math.nan)

    @property
    def alarm(self) -> bool:
        """True if any claim is violated."""
        return bool(self.alarms)

    @property
    def first_alarm(self) -> str | None:
        """The period in which the first alarm came; None without one."""
        return self.alarms[0].period if self.alarms else None

    def records(self) -> list[dict[str, Any]]:
        """A row for each period.

        As in :class:`Period`; ``low`` and ``high`` are the ends of its interval.
        """
        return [
            {
                "period": one.name,
                "rows": one.rows,
                "difference": one.difference,
                "running": one.running,
                "low": one.interval[0],
                "high": one.interval[1],
                "calibration": one.calibration,
                **({"handed_over": one.handed_over} if self.handed_over else {}),
                "broken": ", ".join(one.broken),
                **one.measures,
            }
            for one in self.periods
        ]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table."""
        header = ["period", "rows", "differ by", "so far", "interval", "mean score off"]
        header += [*(["handed over"] if self.handed_over else []), "alarm"]
        header += [f"{MEASURES[name].title} differs by" for name in self.periods[0].measures]
        rows = [
            [
                one.name,
                f"{one.rows:,.15g}",
                number_text(one.difference),
                number_text(one.running),
                f"[{one.interval[0]:.3f}, {one.interval[1]:.3f}]",
                number_text(one.calibration),
                *([f"{one.handed_over:.2%}"] if self.handed_over else []),
                ", ".join(one.broken),
                *map(number_text, one.measures.values()),
            ]
            for one in self.periods
        ]
        return header, rows

    def headline(self) -> str:
        """The claims that were watched, in a line."""
        margin = self.calibration_margin
        more = "" if margin is None else f", scores be off by {margin:g}"
        periods = f"{len(self.periods)} period{'s' if len(self.periods) != 1 else ''}"
        allowed = f"{' and '.join(self.equal)} may differ by {self.limit:.4g}"
        if not self.limits:
            allowed = "no limit on how far groups may differ"
        if len(set(self.limits.values())) > 1:
            each = [f"{name} by {limit:.4g}" for name, limit in self.limits.items()]
            allowed = f"groups may differ in {' and in '.join(each)}"
        for name, least in self.floors.items():
            more += f", {name} be no less than {least:.4g}"
        if self.handed_over:
            low, high = (f"{pick(self.handed_over.values()):.4g}" for pick in (min, max))
            more += f", and {low if low == high else f'{low} to {high}'} be handed over"
        return f"Watch over {periods} at {self.confidence:.4g}: {allowed}{more}"

    def summary(self) -> list[str]:
        """Alarms and notes, or the sentence that nothing was detected."""
        if not self.alarms and not self.limits and self.calibration_margin is None:
            return [*self.notes]
        if not self.alarms:
            return ["No violation was detected.", *self.notes]
        return [*map(str, self.alarms), *self.notes]


def watch(
    rule: Rule,
    tallies: Iterable[TallyLike] | Mapping[str, TallyLike],
    *,
    cost: CostLike | None = None,
    tolerance: float | None = None,
    threshold: float | None = None,
    calibration_margin: float | None = 0.02,
    confidence: float | None = None,
    measures: str | Iterable[str] | None = None,
    **reading: Unpack[DataOptions],
) -> Watch:
    """Test whether what a rule made equal is still equal, and scores still calibrated.

    Parameters
    ----------
    rule : Rule
        What was deployed.  Its promise says what must be equal, and how nearly.  For a rule that
        promises nothing, nothing is tested unless a tolerance is given.
    tallies : several tallies, or {name: tally}
        One per period, in order, of the repaired scores and the true labels; or data of each.  The
        columns of data are by default those the rule was made from; the scores are those of
        ``repaired_`` and the score column if the data have it.
    cost : Cost or str, optional
        What an error costs; by default that of the rule.
    tolerance : float, optional
        How far groups may differ; by default that of the rule, or what it reached with
        ``infeasible="closest"``.  New data are never exactly like those the rule was made from:
        allow more than the rule aimed at.  Rates may fall as far below the floors of the rule.
    threshold : float, optional
        For rates at a threshold; by default that of the rule.
    calibration_margin : float or None
        How far scores may lie from the share of positives, for all scores of a group and in each
        fifth of [0, 1]; None to leave calibration out.  Not tested for rules that give it up.
    confidence : float, optional
        The probability that there is no alarm in any period while everything holds; by default as
        in :class:`isocost.Question`.
    measures : str or names, optional
        Measures whose largest difference between groups is shown for each period, as for
        :func:`isocost.audit`; for information, not tested.

    Notes
    -----
    Claims are tested by evidence that may be checked after every period, for any number of
    periods; see :mod:`isocost.judging.watch`.  Rows must be independent: somebody who comes
    back in many periods counts too often.  Labels that are known only for some, such as loans that
    were granted, say nothing about the others.  With weights the evidence is approximate.

    No alarm does not prove that all is well: the interval says how much is known.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = ic.withhold(compas(), "fpr", tolerance=0.06)
    >>> repaired = rule.expected(compas())
    >>> result = ic.watch(rule, {"May": repaired, "June": repaired}, tolerance=0.08)
    >>> result.alarm, round(result.periods[1].running, 4)
    (False, 0.06)
    >>> print(ic.watch(rule, [compas()] * 2).alarms[0])
    The costs of African-American and Caucasian differ since period 1: by 0.0875 (0.0706 or more \
in some period; 0.06 is allowed). Shown in period 2.
    """
    check_rule(rule)
    names, periods, read = _periods(rule, tallies, reading, threshold)
    # The promise is about the groups as they were merged.
    rule, periods = merged(rule, *periods)
    _check_groups(rule, periods)
    promise = rule.promise
    limits = _limits(promise, tolerance, another_cost=cost is not None)
    chosen = as_cost(cost) if cost is not None else rule.cost
    if "cost" in limits and chosen is None:
        step = f"pass {setting('cost')}, such as {setting('cost', 'fnr')}"
        raise UsageError(Problem("cost", "must be known", f"none in a {rule.method} rule", step))
    usual = ("fpr", "fnr") if chosen is None else ("cost",)
    measured = limits or dict.fromkeys(usual, math.inf)
    margin = calibration_margin if promise.calibrated else None
    margin = None if margin is None else check_tolerance(margin, "calibration_margin")
    confidence = DEFAULT.level if confidence is None else check_confidence(confidence)
    groups = [group for group in rule.fitted if any(group in t.groups for t in periods)]
    if threshold is None:
        threshold = promise.threshold or DEFAULT.threshold
    shown = _shown(measures)
    history = History(periods, groups, check_threshold(threshold), chosen)
    watched = math.inf if promise.is_empty else margin
    floors = {
        name: max(least - (tolerance or 0.0), 0.0)
        for name, least in promise.floor.items()
        if name.removeprefix(OVERALL) in WATCHABLE
    }
    # Only tallies that know of people handed over can tell their share.
    known = any(tally.handed_over for tally in periods)
    promised = dict(promise.handed_over) if known else {}
    handed = {group: (share, tolerance or 0.0) for group, share in promised.items()}
    claims = claims_of(groups, measured, watched, 1.0 - confidence, floors, handed)
    tracks = [(claim, evidence(*history.streams(claim))) for claim in claims]
    limited = [pair for pair in tracks if math.isfinite(pair[0].limit)]
    alarms = sorted(
        (alarm for claim, track in limited for alarm in _alarms(claim, track, names)),
        key=itemgetter(0),
    )
    reported = _reported(names, periods, tracks, alarms)
    return Watch(
        periods=tuple(
            replace(one, measures=_differences(tally, groups, threshold, shown))
            for one, tally in zip(reported, periods, strict=True)
        ),
        alarms=tuple(alarm for _, alarm in alarms),
        notes=(
            *read,
            *_about_promise(rule, limits, bool(promised)),
            *_notes_on_data(rule, names, history),
            *([SENTENCES["watch_approximate"]] if any(t.persons for t in periods) else []),
        ),
        limits=limits,
        calibration_margin=margin,
        confidence=confidence,
        backend=periods[0].backend,
        floors=floors,
        handed_over=promised,
    )


def _shown(measures: Any) -> dict[str, Measure]:
    """The measures that were chosen; rows of the table only, which have titles."""
    if measures is None:
        return {}
    choice = chosen_measures(measures)
    if not choice.shown or not MEASURES.keys() >= set(choice.shown):
        rule, step = "must be names of measures", 'for example ["ppv", "auc"]'
        raise UsageError(Problem("measures", rule, short(measures), step))
    return {name: choice.rows[name] for name in choice.shown}


def _differences(
    tally: Tally, groups: Sequence[Group], threshold: float, measures: Mapping[str, Measure]
) -> dict[str, float]:
    """The largest difference between two groups of each measure."""
    watched = [group for group in tally.groups if group in groups]
    if not measures or not watched:
        return dict.fromkeys(measures, math.nan)
    tally = tally.select(watched)
    estimates = Estimates(tally, DEFAULT.but(threshold=threshold))
    return {
        name: disparity(tally.groups, estimates.column(measure)[:-1]).difference
        for name, measure in measures.items()
    }


def _limits(promise: Promise, tolerance: float | None, another_cost: bool) -> dict[str, float]:
    """The largest allowed difference of groups in each number that must be equal."""
    by_cost, promised = another_cost or promise.is_empty, promise.equal
    if tolerance is not None:
        limit = check_tolerance(tolerance)
        promised = {"cost": limit} if by_cost else dict.fromkeys(promised, limit)
    elif another_cost and not promise.is_empty:
        promised = {"cost": max(promised.values(), default=0.0)}
    return {name: limit for name, limit in promised.items() if name in WATCHABLE}


def _about_promise(rule: Rule, limits: Mapping[str, float], counted: bool) -> Iterator[str]:
    """Notes on promises that are missing, less than requested, or not watched."""
    promise = rule.promise
    if promise.is_empty:
        yield (
            f"This rule promises nothing (its method is {rule.method!r}): its numbers are "
            "measured, and only limits that you pass are tested."
        )
    else:
        for what, names in (("equal", promise.equal), ("a floor of", promise.floor)):
            unknown = [name for name in names if name.removeprefix(OVERALL) not in WATCHABLE]
            if unknown:
                yield f"The rule promises {what} {', '.join(unknown)}: not watched."
        for name, requested in promise.asked.items():
            if name in limits and limits[name] == promise.equal[name] > requested:
                yield (
                    f"The requested tolerance of {name} was {requested:g}, and the rule reached "
                    f"{limits[name]:.4g} on the data it was made from; it is held to that."
                )
    if promise.handed_over and not counted:
        yield (
            "The rule hands people over, and no period says how many: that share is not watched. "
            "Count them with isocost.tally(..., handed_over=True)."
        )


def deployed_columns(
    rule: Rule, names: Sequence[str], asked: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Options to read data with columns of these names after a rule was applied, and notes.

    The columns are those the rule was made from, with the column of repaired scores if there is
    one.  People without a score were handed over, if the rule hands anybody over.  What was
    ``asked`` for is left as it is.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.repairs.withhold import withhold
    >>> rule = withhold(compas(), cost="fpr", tolerance=0.07)
    >>> deployed_columns(rule, ["score", "repaired_score"], {})[0]["score"]
    'repaired_score'
    """
    stored = stored_columns(rule)
    score = stored.get("score", "score")
    repaired = repaired_column(score)
    used: dict[str, Any] = {
        role: stored[role] for role in ("label", "group", "weight", "person") if role in stored
    }
    if rule.reading.missing.name is not None:
        used["missing_group"] = rule.reading.missing_group
    used |= {"score": score, "handed_over": rule.defers}
    if repaired in names and "score" not in asked:
        if asked.get("scale", "probability") != "probability":
            must = f"must be left out: the repaired scores in {repaired!r} are probabilities"
            step = f"leave it out, or name another column with {setting('score')}"
            raise UsageError(Problem("scale", must, repr(asked["scale"]), step))
        used |= {"score": repaired, "scale": "probability"}
    used = {role: value for role, value in used.items() if role not in asked}
    if used.get("score") != repaired or score not in names:
        return used, []
    note = (
        f"The scores were read from the column {repaired!r}; the data also have {score!r}. To "
        f"watch that one, pass {setting('score', score)}."
    )
    return used, [note]


def _periods(
    deployed: Rule, tallies: Any, reading: Mapping[str, Any], threshold: float | None
) -> tuple[list[str], list[Tally], list[str]]:
    """The names of the periods, their tallies, and notes on how data were read."""
    rule = "must be tallies, at least one"
    step = "make one for each period: isocost.tally(data, score=..., label=..., group=...)"
    if isinstance(tallies, Mapping):
        names, periods = [str(name) for name in tallies], list(tallies.values())
    else:
        one = isinstance(tallies, Tally) or hasattr(tallies, "columns")
        periods = [tallies] if one else check_listed("tallies", tallies, rule, step)
        names = [f"period {number}" for number in range(1, len(periods) + 1)]
    if not periods:
        raise UsageError(Problem("tallies", rule, "none", step))
    edges = () if threshold is None else (check_threshold(threshold),)
    if all(isinstance(one, Tally) for one in periods):
        check_no_keywords(reading, "tally")
    counted, notes = [], dict[str, None]()
    for one in periods:
        used: dict[str, Any] = {}
        if not isinstance(one, Tally):
            used, noted = deployed_columns(deployed, column_names(one, reading), reading)
            used |= reading
            notes |= dict.fromkeys(noted)
        counted.append(as_tally(one, used, *edges, name="tallies"))
    return names, counted, list(notes)


def _check_groups(rule: Rule, tallies: Sequence[Tally]) -> None:
    seen = dict.fromkeys(group for tally in tallies for group in tally.groups)
    known = set(rule.groups)
    unknown = [group for group in seen if group not in known]
    if unknown:
        raise unknown_groups(unknown, rule.groups, counted=True)
    compared = [group for group in seen if group in rule.fitted]
    if len(compared) < 2:
        for tally in tallies:
            require_all_decided(tally)
        got, step = f"{len(compared)} group", "check the group column"
        must = "must have at least two groups that the rule was made from"
        raise DataError(Problem("tallies", must, got, step))


def _alarms(claim: Claim, track: Evidence, names: list[str]) -> Iterator[tuple[int, Alarm]]:
    """Alarms of a claim in each direction in which it can break, and when they come."""
    # Below a floor there is one direction; two have an equal part of the error each.
    allowed, signs = (0.0, (1.0,)) if claim.is_floor else (claim.limit, (1.0, -1.0))
    error = claim.error / len(signs)
    for sign in signs:
        loud = track.against(allowed, sign) >= alarm_at(error)
        if not loud.any():
            continue
        when = int(np.argmax(loud))
        since = track.beginning(allowed, sign, when)
        estimate, bound = track.mean_since(since), track.at_least(error, sign, when)
        shown = replace(claim, groups=claim.groups if sign > 0 else claim.groups[::-1])
        # The difference of two groups is stated as positive, the bias of scores with its sign.
        factor = sign if len(claim.groups) > 1 else 1.0
        numbers = (factor * estimate, factor * sign * bound)
        if claim.is_floor:
            numbers = (claim.limit - estimate, claim.limit - bound)
        yield when, Alarm(shown, names[when], names[since], *numbers)


def _reported(
    names: list[str],
    tallies: list[Tally],
    tracks: list[tuple[Claim, Evidence]],
    alarms: Sequence[tuple[int, Alarm]],
) -> Iterator[Period]:
    pairs = [(c, e) for c, e in tracks if len(c.groups) > 1]
    means = [e for c, e in tracks if c.kind == "calibration" and c.band is None]
    for now, (name, tally) in enumerate(zip(names, tallies, strict=True)):
        claim, widest = max(
            pairs, key=lambda pair: np.nan_to_num(abs(pair[1].running[now]), nan=-1)
        )
        low, high = widest.interval(claim.error, now)
        yield Period(
            name=name,
            rows=tally.n,
            difference=_largest(e.estimate[now] for _, e in pairs),
            running=abs(float(widest.running[now])),
            interval=(-high, -low) if widest.running[now] < 0 else (low, high),
            calibration=_largest(e.estimate[now] for e in means),
            broken=tuple(dict.fromkeys(alarm.claim.kind for when, alarm in alarms if when <= now)),
            handed_over=tally.share_handed_over,
        )


def _largest(values: Iterable[float]) -> float:
    known = [abs(float(value)) for value in values if not math.isnan(value)]
    return max(known, default=math.nan)


def _notes_on_data(rule: Rule, names: Sequence[str], history: History) -> list[str]:
    """Periods with too little data, groups that are missing, base rates and shares that moved."""
    shown, notes = names_of(rule.groups), []
    for name, counts in zip(names, history.all.by_label().n.tolist(), strict=True):
        few = [
            f"{int(count)} {label} of {shown[group]}"
            for group, own in zip(history.groups, counts, strict=True)
            for label, count in zip(("negatives", "positives"), own, strict=True)
            if count < DEFAULT.min_group
        ]
        if few:
            notes.append(f"Little data in {name}: {listing(few, MOST_LISTED)}.")
    if len(notes) > MOST_LISTED:
        notes[MOST_LISTED:] = [f"Little data in {len(notes) - MOST_LISTED} more periods."]
    absent = [shown[group] for group in rule.fitted if group not in history.groups]
    if absent:
        notes.append(f"Not in any period: {', '.join(absent)}.")
    others = [shown[group] for group in rule.groups if group not in rule.fitted]
    if others:
        notes.append(f"Not watched, because the rule was made without them: {listing(others)}.")
    weights, rows = history.all.by_label().w.sum(axis=0), history.all.n.sum(axis=(0, 2))
    made = _made_from(rule)
    before = sum(n for n, _ in made.values())
    for index, group in enumerate(history.groups):
        if group not in made:
            continue
        n, rate = made[group]
        numbers = (
            ("base rate", rate, weights[index, 1] / weights[index].sum()),
            ("share", n / before, rows[index] / rows.sum()),
        )
        notes += [
            f"The {what} of {shown[group]} was {old:.4f} when the rule was made, now {new:.4f}."
            for what, old, new in numbers
            # Smaller moves are not mentioned; who is handed over decides the base rate of others.
            if abs(new - old) >= 0.02 and (what == "share" or not rule.defers)
        ]
    return notes


def _made_from(rule: Rule) -> dict[Group, tuple[float, float]]:
    """Rows and base rate of each group when the rule was made, as far as the rule can be read."""
    listed: Any = rule.made_from.get("groups")
    known: dict[Group, tuple[float, float]] = {}
    for one in listed if isinstance(listed, list) else []:
        if not isinstance(one, dict):
            continue
        n, rate, group = as_number(one.get("n")), as_number(one.get("base_rate")), one.get("group")
        group = tuple(group) if isinstance(group, list) else group
        if math.isfinite(n) and math.isfinite(rate) and n > 0 and group in rule.fitted:
            known[as_group(group)] = (n, rate)
    return known
