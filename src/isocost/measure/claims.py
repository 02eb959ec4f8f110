"""What a rule promises, as differences of means that the tallies of each period can test."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.cells import Sums
from isocost.costs import Cost
from isocost.groups import Group
from isocost.measure.evidence import Stream
from isocost.rules import Rule
from isocost.tallies import Tally

__all__ = ["Claim", "History", "Promise", "claims_of", "promised"]

Floats = npt.NDArray[np.float64]
Streams = tuple[list[Stream], float]

BANDS = ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0))
"""Scores are compared with labels in each of these, besides all together; tenths are edges."""

RATES = ("fpr", "fnr", "selection_rate", "generalized_fpr", "generalized_fnr")


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
    """The sums of all periods, per group and label: all scores, those in each band, those above."""

    def __init__(
        self, tallies: Sequence[Tally], groups: Sequence[Group], threshold: float, cost: Cost | None
    ) -> None:
        self.groups = list(groups)
        self.cost = cost
        self.all = self._stacked([tally.totals for tally in tallies], tallies)
        self.above = self._stacked([t.totals_above(threshold) for t in tallies], tallies)
        self.bands = {
            band: self._stacked([_within(tally, band) for tally in tallies], tallies)
            for band in BANDS
        }

    def _stacked(self, sums: list[Sums], tallies: Sequence[Tally]) -> Sums:
        """Sums as arrays (periods, groups, 2); groups that a period lacks have zeros."""
        full = {name: np.zeros((len(sums), len(self.groups), 2)) for name in Sums.__annotations__}
        for period, (one, tally) in enumerate(zip(sums, tallies, strict=True)):
            places = [self.groups.index(group) for group in tally.groups]
            for name, values in full.items():
                values[period, places] = getattr(one, name)
        return Sums(**full)

    def streams(self, claim: Claim) -> Streams:
        """The rows that a claim is about, and the constant to add."""
        places = [self.groups.index(group) for group in claim.groups]
        if claim.kind == "calibration":
            sums = self.all if claim.band is None else self.bands[claim.band]
            # y - h lies in [-1, 1]; (1 + y - h) / 2 in [0, 1].
            negative = _sums(sums, places[0], 0, 0.5, -0.5)
            positive = _sums(sums, places[0], 1, 1.0, -0.5)
            return [_joined(2.0, negative, positive)], -1.0
        one, other = (self._number(claim.kind, place) for place in places)
        return [*one, *(Stream(-s.k, s.n, s.total, s.square) for s in other)], 0.0

    def _number(self, kind: str, place: int) -> list[Stream]:
        """A cost or rate of one group."""
        if kind == "cost":
            return self._cost(place)
        if kind.startswith("generalized"):
            return [_mean(self.all, place, int(kind == "generalized_fnr"))]
        selected = [_selected(self.all, self.above, place, label) for label in (0, 1)]
        if kind == "selection_rate":
            return [_joined(1.0, *selected)]
        if kind == "fpr":
            return [Stream.of(1.0, *selected[0])]
        w, w2, above, _ = selected[1]
        return [Stream.of(1.0, w, w2, w - above, w - above)]

    def _cost(self, place: int) -> list[Stream]:
        assert self.cost is not None
        group = self.groups[place]
        fp, fn = self.cost.amounts(group)
        if self.cost.by_base_rate:
            top = max(fp, fn)
            negative = _sums(self.all, place, 0, 0.0, fp / top)
            positive = _sums(self.all, place, 1, fn / top, -fn / top)
            return [_joined(top, negative, positive)]
        factors = ((fp, 0), (fn, 1))
        return [_mean(self.all, place, label, k) for k, label in factors if k > 0]


def _within(tally: Tally, band: tuple[float, float]) -> Sums:
    first, last = (tally.grid.first_bin(end, "band") for end in band)
    inside = (tally.cells.bin >= first) & (tally.cells.bin < last)
    return tally.cells.totals(len(tally.groups), inside)


Four = tuple[Floats, Floats, Floats, Floats]


def _sums(sums: Sums, place: int, label: int, a: float, b: float) -> Four:
    """The sums of w, w^2, w x and w x^2 for x = a + b h."""
    w, w2, wh, wh2 = (getattr(sums, name)[:, place, label] for name in ("w", "w2", "wh", "wh2"))
    return w, w2, a * w + b * wh, a * a * w + 2.0 * a * b * wh + b * b * wh2


def _mean(sums: Sums, place: int, label: int, k: float = 1.0) -> Stream:
    """The mean score of the negatives, or one minus that of the positives."""
    return Stream.of(k, *_sums(sums, place, label, *((1.0, -1.0) if label else (0.0, 1.0))))


def _selected(sums: Sums, above: Sums, place: int, label: int) -> Four:
    """For x = 1 at or above the threshold, else 0."""
    w, high = sums.w[:, place, label], above.w[:, place, label]
    return w, sums.w2[:, place, label], high, high


def _joined(k: float, one: Four, other: Four) -> Stream:
    w, w2, wx, wx2 = (a + b for a, b in zip(one, other, strict=True))
    return Stream.of(k, w, w2, wx, wx2)


@dataclass(frozen=True)
class Promise:
    """What a rule is to be held to.

    Attributes
    ----------
    equal : tuple of str
        What it makes equal.
    calibrated : bool
        Whether it keeps calibration.
    threshold : float
        The threshold of its rates.
    asked, reached : {name: float}
        The tolerance that was asked for, and the one that the rule came to on the data it was
        made from: more, where ``infeasible="closest"`` let it stop short.
    """

    equal: tuple[str, ...]
    calibrated: bool
    threshold: float
    asked: Mapping[str, float]
    reached: Mapping[str, float]


def promised(rule: Rule) -> Promise:
    """What a rule promises.

    A rule file is not to be trusted: settings that make no sense count as not given.
    """
    equal = _made_equal(rule)
    asked = _tolerances(rule.settings.get("tolerance"), equal)
    reached = _tolerances(rule.settings.get("reached"), equal)
    return Promise(
        equal=equal,
        calibrated=rule.method != "odds",
        threshold=_number_or(rule.settings.get("threshold"), 0.5, lambda x: 0 < x < 1),
        asked=asked,
        reached={name: max(asked[name], reached[name]) for name in equal},
    )


def _made_equal(rule: Rule) -> tuple[str, ...]:
    if rule.method == "odds":
        return RATES[:2] if rule.settings.get("rates") == "hard" else RATES[3:]
    listed = rule.settings.get("equal")
    if rule.method == "reconcile" and isinstance(listed, list | tuple):
        known = (*RATES, *(() if rule.cost is None else ("cost",)))
        return tuple(name for name in known if name in listed) or ("cost",)
    return ("cost",)


def _tolerances(given: Any, equal: Sequence[str]) -> dict[str, float]:
    """One number for each name, from one number for all or a number for each."""
    by_name = given if isinstance(given, Mapping) else dict.fromkeys(equal, given)
    return {name: _number_or(by_name.get(name), 0.0, lambda x: x >= 0) for name in equal}


def _number_or(value: Any, default: float, fits: Callable[[float], bool]) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and math.isfinite(value) and fits(value) else default


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
