"""Evidence that a difference of means is beyond a limit, to be looked at after every period.

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

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isocost.measures.margins import Interval
from isocost.typing import Floats

__all__ = ["Evidence", "Stream", "evidence"]

EFFECTS = 0.005 * 2.0 ** np.arange(7)
"""How far beyond the limit the truth may be; evidence grows fastest near the right one."""

BOLDEST = 0.5
"""The largest argument of psi; it has a pole at 1."""

_STEPS = 24
"""How often an interval is halved: to about 1e-7."""


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
        n, total, square = (_before(values) for values in (self.n, self.total, self.square))
        mean = (0.5 + total) / (1.0 + n)
        spread = square - 2.0 * mean * total + mean**2 * n
        return mean, (0.25 + np.maximum(spread, 0.0)) / (1.0 + n)


def _before(values: Floats) -> Floats:
    return np.cumsum(values) - values


@dataclass(frozen=True)
class Evidence:
    """What is known of D after each period.

    Attributes
    ----------
    streams, constant
        What D is made of.
    estimate, running : array (periods,)
        D in each period and in all periods so far; NaN where a stream has no rows.
    weight, price : array (periods, effects)
        L_t, and what is taken off for chance.
    limits : (low, high)
        What D can be at all.
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
        """Where D lies after period ``now``, if it has been the same in all periods.

        The intervals after all periods hold it together with a chance of at least 1 - error.  They
        are the test of :meth:`against` turned round, so there is an alarm where a limit is outside.
        """
        return self.at_least(error / 2.0, 1.0, now), -self.at_least(error / 2.0, -1.0, now)

    def at_least(self, error: float, sign: float, now: int) -> float:
        """A bound that sign D was above in some period up to ``now``."""
        so_far = self._until(now)
        low, high = sorted(sign * end for end in self.limits)
        for _ in range(_STEPS):
            middle = (low + high) / 2.0
            if so_far.against(middle, sign)[-1] >= -np.log(error):
                low = middle
            else:
                high = middle
        return low

    def _until(self, now: int) -> Evidence:
        known = ("estimate", "running", "weight", "price")
        return replace(self, **{name: getattr(self, name)[: now + 1] for name in known})

    def _gains(self, limit: float, sign: float) -> Floats:
        distance = np.nan_to_num(sign * self.estimate - limit)
        return self.weight * distance[:, None] - self.price


def evidence(streams: Sequence[Stream], constant: float = 0.0) -> Evidence:
    """The evidence about D = constant + sum_s k_s E[x_s].

    Examples
    --------
    >>> ones = np.ones(3)
    >>> coins = Stream(1.0, 1000 * ones, 600 * ones, 600 * ones)
    >>> found = evidence([coins], constant=-0.5)
    >>> found.against(0.0).round(1).tolist()
    [13.0, 29.0, 45.0]
    >>> low, high = found.interval(0.05, now=2)
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
        boldest = np.minimum(boldest, BOLDEST * n / abs(stream.k))
    weight = np.minimum(EFFECTS / variance[:, None], boldest[:, None]) * known[:, None]
    price = np.zeros_like(weight)
    for stream in streams:
        step = weight * abs(stream.k) / np.where(known, stream.n, 1.0)[:, None]
        mean, _ = stream.before()
        spread = stream.square - 2.0 * mean * stream.total + mean**2 * stream.n
        price += (-np.log1p(-step) - step) * np.maximum(spread, 0.0)[:, None]
    low = constant + sum(min(stream.k, 0.0) for stream in streams)
    high = constant + sum(max(stream.k, 0.0) for stream in streams)
    found = np.where(known, estimate, np.nan)
    return Evidence(tuple(streams), constant, found, running, weight, price, (low, high))


def _log_mean(values: Floats) -> Floats:
    """The logarithm of the mean of exp(values) over the last dimension."""
    top: Floats = values.max(axis=-1)
    mean: Floats = np.exp(values - top[..., None]).mean(axis=-1)
    return top + np.log(mean)
