"""What a rule promises, as differences of means that the tallies of each period can test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from isocost.costs import Cost
from isocost.groups import Group
from isocost.measures.table import BIAS, MEASURES, Measure, cost_row
from isocost.monitor.evidence import Stream
from isocost.tallies import KINDS, Sums, Tally

__all__ = ["WATCHABLE", "Claim", "History", "claims_of"]

Streams = tuple[list[Stream], float]

BANDS = ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0))
"""Scores are compared with labels in each of these, besides all together; tenths are edges."""

WATCHABLE = ("cost", *(name for name, measure in MEASURES.items() if measure.is_linear))
"""What a stream of rows can be made of: it needs squares of what a row adds."""


@dataclass(frozen=True)
class Claim:
    """One thing that is to hold in every period.

    Attributes
    ----------
    kind : str
        "cost", the name of a rate, or "calibration".
    groups : tuple
        Two groups whose numbers must not differ by more than the limit, or, for calibration, one
        whose scores must not lie further from the share of positives.
    band : (low, high) or None
        The scores that calibration is about; None for all.
    limit : float
        How far is still allowed.
    error : float
        The chance of a false alarm that this claim may use up.
    """

    kind: str
    groups: tuple[Group, ...]
    band: tuple[float, float] | None
    limit: float
    error: float


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

    def _stacked(self, sums: list[Sums], tallies: Sequence[Tally]) -> Sums:
        """Sums as arrays (periods, groups, 4); groups that a period lacks have zeros."""
        shape = (len(sums), len(self.groups), len(KINDS))
        full = {name: np.zeros(shape) for name in Sums.__annotations__}
        for period, (one, tally) in enumerate(zip(sums, tallies, strict=True)):
            places = [self.groups.index(group) for group in tally.groups]
            for name, values in full.items():
                values[period, places] = getattr(one, name)
        return Sums(**full)

    def streams(self, claim: Claim) -> Streams:
        """The rows that a claim is about, and the constant to add."""
        if claim.kind == "calibration":
            sums = self.all if claim.band is None else self.bands[claim.band]
            place = self.groups.index(claim.groups[0])
            return [_stream(BIAS, sums.at(place))], BIAS.limits[0]
        one, other = (self._number(claim.kind, group) for group in claim.groups)
        return [*one, *(Stream(-s.k, s.n, s.total, s.square) for s in other)], 0.0

    def _number(self, kind: str, group: Group) -> list[Stream]:
        """A cost or rate of one group, but for a constant that all groups share."""
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
    for place, kind in enumerate(KINDS):
        if kind in measure.over:
            a, b, _ = measure.adds.get(kind, (0.0, 0.0, 0.0))
            a, b = (a - low) / (high - low), b / (high - low)
            own, wh, wh2 = (getattr(sums, name)[:, place] for name in ("w", "wh", "wh2"))
            w, w2 = w + own, w2 + sums.w2[:, place]
            wx = wx + a * own + b * wh
            wx2 = wx2 + a * a * own + 2.0 * a * b * wh + b * b * wh2
    return Stream.of(k * (high - low), w, w2, wx, wx2)


def claims_of(
    groups: Sequence[Group],
    limits: Mapping[str, float],
    calibration_margin: float | None,
    error: float,
) -> list[Claim]:
    """All claims about what must be equal within limits, and about calibration.

    The chance of a false alarm is shared out among them (Bonferroni).

    Half goes to what must be equal, a quarter each to calibration of all scores and by band.
    """
    pairs = [(kind, pair) for kind in limits for pair in combinations(groups, 2)]
    share = error * (1.0 if calibration_margin is None else 0.5) / max(len(pairs), 1)
    found = [Claim(kind, pair, None, limits[kind], share) for kind, pair in pairs]
    if calibration_margin is None:
        return found
    share = error * (0.25 if found else 0.5) / len(groups)
    for group in groups:
        found.append(Claim("calibration", (group,), None, calibration_margin, share))
        found += [
            Claim("calibration", (group,), band, calibration_margin, share / len(BANDS))
            for band in BANDS
        ]
    return found
