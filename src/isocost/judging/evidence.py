"""Claims about differences of means that a rule promises, and the evidence against them.

The means are of independent rows with values x in [0, 1], of which each period brings n more.  For
D = sum_s k_s E[x_s] over streams s, and the claim that D is at most d in every period,

    E = exp( sum_t  L_t (D_t - d) - sum_s psi(L_t |k_s| / n_st) sum_i (x_i - m_s)^2 ),
    psi(l) = -log(1 - l) - l,

is at most 1 on average at any time at which one may choose to look (Fan, Grama and Liu 2015;
Waudby-Smith and Ramdas 2024), for any mean m_s and weight L_t known before the scores of the
period.  So E reaches 1/a with a chance of at most a, ever: no correction for looking often, no
normal approximation.  A claim is tested with the mean of many such E, for several sizes of an
effect and for every period j in which it may have begun (with weights 1 / (j (j + 1))), so that a
drift after a long quiet time is still found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from isocost.cells import KINDS, SUMS, Sums
from isocost.costs import Cost
from isocost.groups import Group
from isocost.measures.intervals import Interval
from isocost.measures.table import BIAS, MEASURES, OVERALL, Measure, cost_row
from isocost.result import Record
from isocost.tallies import Tally
from isocost.typing import Floats

EFFECTS = 0.005 * 2.0 ** np.arange(7)
"""Distances of the truth beyond the limit; evidence grows fastest near the right one."""

BANDS = ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0))
"""Scores are compared with labels in each of these, besides all together; tenths are edges."""

HANDED_OVER = "handed_over"
"""The kind of a claim about the share of people without a score."""

WATCHABLE = ("cost", *(name for name, measure in MEASURES.items() if measure.is_linear))
"""Numbers that a stream of rows can be made of: it needs squares of what a row adds."""


@dataclass(frozen=True)
class Stream:
    """Rows with values x in [0, 1], per period: how many, sum x, sum x^2; and their factor k.

    Weighted rows stand for their effective number (Kish), which makes the evidence approximate.
    """

    k: float
    n: Floats
    total: Floats
    square: Floats

    @classmethod
    def of(cls, k: float, w: Floats, w2: Floats, wx: Floats, wx2: Floats) -> Stream:
        """From the sums of w, w^2, w x and w x^2 of each period."""
        with np.errstate(invalid="ignore", divide="ignore"):
            # Without weights the quotient is exactly 1.
            shrink = np.where(w2 > 0, w / w2, 0.0)
        return cls(k, w * shrink, wx * shrink, wx2 * shrink)

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

    Attributes
    ----------
    estimate, running : array (periods,)
        D in each period and in all periods so far; NaN where a stream has no rows.
    weight, price : array (periods, effects)
        L_t, and the amount that is subtracted for chance.
    limits : (low, high)
        The smallest and largest possible D.
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
        path = np.cumsum(self._gains(limit, sign), axis=0)
        starts = np.arange(1.0, len(path) + 1.0)
        weights = -np.log(starts * (starts + 1.0))
        earlier = np.vstack([np.zeros((1, path.shape[1])), path[:-1]])
        begun = path + np.logaddexp.accumulate(weights[:, None] - earlier, axis=0)
        not_begun = -np.log(starts + 1.0)
        return np.logaddexp(_log_mean(begun), not_begun)

    def beginning(self, limit: float, sign: float, now: int) -> int:
        """The period with which the evidence after period ``now`` most likely began."""
        path = np.cumsum(self._gains(limit, sign), axis=0)
        earlier = np.vstack([np.zeros((1, path.shape[1])), path[:-1]])[: now + 1]
        return int(np.argmax(_log_mean(path[now] - earlier)))

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
            if so_far.against(middle, sign)[-1] >= -np.log(error):
                low = middle
            else:
                high = middle
        return low

    def _gains(self, limit: float, sign: float) -> Floats:
        distance = np.nan_to_num(sign * self.estimate - limit)
        return self.weight * distance[:, None] - self.price


def evidence(streams: Sequence[Stream], constant: float = 0.0) -> Evidence:
    """The evidence about D = constant + sum_s k_s E[x_s].

    Examples
    --------
    >>> ones = np.ones(3)
    >>> coins = Stream(1.0, 1000 * ones, 600 * ones, 600 * ones)
    >>> result = evidence([coins], constant=-0.5)
    >>> result.against(0.0).round(1).tolist()
    [13.0, 29.0, 45.0]
    >>> low, high = result.interval(0.05, now=2)
    >>> f"{low:.3f} to {high:.3f}"
    '0.067 to 0.133'
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
    weight = np.minimum(EFFECTS / variance[:, None], boldest[:, None]) * known[:, None]
    price = np.zeros_like(weight)
    for stream in streams:
        step = weight * abs(stream.k) / np.where(known, stream.n, 1.0)[:, None]
        mean, _ = stream.before()
        spread = stream.square - 2.0 * mean * stream.total + mean**2 * stream.n
        price += (-np.log1p(-step) - step) * np.maximum(spread, 0.0)[:, None]
    low = constant + sum(min(stream.k, 0.0) for stream in streams)
    high = constant + sum(max(stream.k, 0.0) for stream in streams)
    estimate = np.where(known, estimate, np.nan)
    return Evidence(tuple(streams), constant, estimate, running, weight, price, (low, high))


def _log_mean(values: Floats) -> Floats:
    """The logarithm of the mean of exp(values) over the last dimension."""
    top: Floats = values.max(axis=-1)
    mean: Floats = np.exp(values - top[..., None]).mean(axis=-1)
    return top + np.log(mean)


@dataclass(frozen=True)
class Claim(Record):
    """A statement that must hold in every period.

    Attributes
    ----------
    kind : str
        "cost", the name of a rate, "calibration", or "handed_over".
    groups : tuple
        Two groups whose numbers must not differ by more than the limit, or, for calibration, one
        whose scores must not lie further from the share of positives.  For a floor the group whose
        rate it is; none for that of everybody.  For "handed_over" the group whose share it is.
    band : (low, high) or None
        The scores that calibration is about; None for all.
    limit : float
        The largest difference that is allowed, or the floor.
    error : float
        The probability of a false alarm that this claim may use.
    is_floor : bool
        True if the rate must be at least the limit.
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

    @property
    def allowed(self) -> float:
        """The largest difference of rates, or fall below a floor, that evidence is against."""
        return 0.0 if self.is_floor else self.limit

    @property
    def signs(self) -> tuple[float, ...]:
        """The directions in which it may be violated; each has an equal part of the error."""
        return (1.0,) if self.is_floor else (1.0, -1.0)


class History:
    """The sums of all periods, per group and kind of people: of all scores, and of each band."""

    def __init__(
        self, tallies: Sequence[Tally], groups: Sequence[Group], threshold: float, cost: Cost | None
    ) -> None:
        self.groups = list(groups)
        self.cost = cost
        self.all = self._stacked([tally.kinds(threshold) for tally in tallies], tallies)
        self.bands = {
            band: self._stacked([_within(tally, band, threshold) for tally in tallies], tallies)
            for band in BANDS
        }
        # Rows, sum w and sum w^2 of people handed over, per period and group.
        self.handed = np.array(
            [[tally.handed_over.get(g, (0.0,) * 3) for g in self.groups] for tally in tallies]
        )

    def _stacked(self, sums: list[Sums], tallies: Sequence[Tally]) -> Sums:
        """Sums as arrays (periods, groups, 4); groups that a period lacks have zeros.

        Groups of a period that are not watched do not count.
        """
        shape = (len(sums), len(self.groups), len(KINDS))
        full = {name: np.zeros(shape) for name in SUMS}
        for period, (one, tally) in enumerate(zip(sums, tallies, strict=True)):
            known = [i for i, group in enumerate(tally.groups) if group in self.groups]
            indices = [self.groups.index(tally.groups[i]) for i in known]
            for name, values in full.items():
                values[period, indices] = getattr(one, name)[known]
        return Sums(**full)

    def streams(self, claim: Claim) -> tuple[list[Stream], float]:
        """The rows that a claim is about, and the constant to add."""
        if claim.kind == "calibration":
            sums = self.all if claim.band is None else self.bands[claim.band]
            group = self.groups.index(claim.groups[0])
            return [_stream(BIAS, sums.at(group))], BIAS.limits[0]
        if claim.kind == HANDED_OVER:
            # People handed over count 1 and the others 0.
            group = self.groups.index(claim.groups[0])
            decided, (_, w, w2) = self.all.at(group), self.handed[:, group].T
            total, squares = w + decided.w.sum(axis=-1), w2 + decided.w2.sum(axis=-1)
            return [Stream.of(1.0, total, squares, w, w)], -claim.promised
        if claim.is_floor:
            index = None if not claim.groups else self.groups.index(claim.groups[0])
            sums = self.all.pooled().at(0) if index is None else self.all.at(index)
            # How far the rate lies below its floor.
            return [_stream(MEASURES[claim.kind], sums, -1.0)], claim.limit
        one, other = (self._number(claim.kind, group) for group in claim.groups)
        return [*one, *(Stream(-s.k, s.n, s.total, s.square) for s in other)], 0.0

    def _number(self, kind: str, group: Group) -> list[Stream]:
        """A cost or rate of one group, up to a constant that all groups share."""
        sums = self.all.at(self.groups.index(group))
        if kind != "cost":
            return [_stream(MEASURES[kind], sums)]
        assert self.cost is not None
        fp, fn = self.cost.amounts(group)
        if self.cost.by_base_rate:
            return [_stream(cost_row(fp, fn), sums)]
        factors = {"generalized_fpr": fp, "generalized_fnr": fn}
        return [_stream(MEASURES[name], sums, k) for name, k in factors.items() if k > 0]


def _within(tally: Tally, band: tuple[float, float], threshold: float) -> Sums:
    first, last = (tally.grid.first_bin(end, "band") for end in band)
    inside = (tally.cells.bin >= first) & (tally.cells.bin < last)
    return tally.cells.take(inside).kinds(len(tally.groups), tally.grid.first_bin(threshold))


def _stream(measure: Measure, sums: Sums, k: float = 1.0) -> Stream:
    """The rows that a measure is the mean of, per period, moved from its limits to [0, 1]."""
    low, high = measure.limits
    w = w2 = wx = wx2 = np.zeros(len(sums.w))
    for index, kind in enumerate(KINDS):
        if kind in measure.over:
            a, b, _ = measure.adds.get(kind, (0.0, 0.0, 0.0))
            a, b = (a - low) / (high - low), b / (high - low)
            own, wh, wh2 = (getattr(sums, name)[:, index] for name in ("w", "wh", "wh2"))
            w, w2 = w + own, w2 + sums.w2[:, index]
            wx = wx + a * own + b * wh
            wx2 = wx2 + a * a * own + 2.0 * a * b * wh + b * b * wh2
    return Stream.of(k * (high - low), w, w2, wx, wx2)


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

    The chance of a false alarm is divided among them (Bonferroni): half goes to what must be
    equal and to floors, a quarter each to calibration of all scores and by band.
    """
    pairs = [(kind, pair) for kind in limits for pair in combinations(groups, 2)]
    least = [
        (name.removeprefix(OVERALL), whose, limit)
        for name, limit in (floors or {}).items()
        for whose in ([()] if name.startswith(OVERALL) else [(group,) for group in groups])
    ]
    handed = [(group, x) for group, x in (handed_over or {}).items() if group in groups]
    count = max(len(pairs) + len(least) + len(handed), 1)
    share = error * (1.0 if calibration_margin is None else 0.5) / count
    claims = [Claim(kind, pair, None, limits[kind], share) for kind, pair in pairs]
    claims += [Claim(kind, whose, None, limit, share, True) for kind, whose, limit in least]
    claims += [
        Claim(HANDED_OVER, (group,), None, limit, share, promised=promised)
        for group, (promised, limit) in handed
    ]
    if calibration_margin is None:
        return claims
    share = error * (0.25 if claims else 0.5) / len(groups)
    bands = [(None, share), *((band, share / len(BANDS)) for band in BANDS)]
    return claims + [
        Claim("calibration", (group,), band, calibration_margin, own)
        for group in groups
        for band, own in bands
    ]
