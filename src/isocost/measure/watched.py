"""What a watch over a rule found: periods, alarms, and how they are told."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isocost.groups import names_of, to_json
from isocost.measure.claims import Claim
from isocost.measure.margins import Interval
from isocost.measure.table import MEASURES
from isocost.text import html_table, text_table

__all__ = ["Alarm", "Period", "Watch"]


@dataclass(frozen=True)
class Period:
    """What was found after one period.

    Attributes
    ----------
    name : str
        What the period is called.
    rows : float
        How many rows it has.
    difference, running : float
        The largest difference between two groups of what must be equal, in this period and in all
        periods so far; NaN where it is not known.
    interval : (low, high)
        Where the running difference lies, if it has been the same all the time.  The intervals
        of all periods and pairs hold together with the confidence that was asked for.
    calibration : float
        The largest distance of a group's mean score from its share of positives in this period.
    broken : tuple of str
        What is shown not to hold, from this period or an earlier one: "cost", "calibration" ...
    """

    name: str
    rows: float
    difference: float
    running: float
    interval: Interval
    calibration: float
    broken: tuple[str, ...]


@dataclass(frozen=True)
class Alarm:
    """A claim that is shown not to hold.

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
        A bound that it was above in some period; it lies above the limit.
    """

    claim: Claim
    period: str
    since: str
    estimate: float
    at_least: float

    def __str__(self) -> str:
        names = list(names_of(self.claim.groups).values())
        allowed = f"{self.claim.limit:.4g} is allowed"
        bound = f"{abs(self.at_least):.4f} or more in some period"
        if self.claim.kind == "calibration":
            where = "" if self.claim.band is None else _band(self.claim.band)
            way = "too low" if self.estimate > 0 else "too high"
            return (
                f"The scores{where} of {names[0]} are {way} since {self.since}: by "
                f"{abs(self.estimate):.4f} ({bound}; {allowed}). Shown in {self.period}."
            )
        what = "The costs" if self.claim.kind == "cost" else MEASURES[self.claim.kind].title
        return (
            f"{what} of {names[0]} and {names[1]} differ since {self.since}: "
            f"by {self.estimate:.4f} ({bound}; {allowed}). Shown in {self.period}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "kind": self.claim.kind,
            "groups": [to_json(group) for group in self.claim.groups],
            "band": None if self.claim.band is None else list(self.claim.band),
            "limit": self.claim.limit,
            "period": self.period,
            "since": self.since,
            "estimate": self.estimate,
            "at_least": self.at_least,
        }


def _band(band: tuple[float, float]) -> str:
    return f" from {band[0]:g} to {band[1]:g}"


@dataclass(frozen=True, repr=False)
class Watch:
    """What :func:`watch` found.

    Attributes
    ----------
    periods : tuple of Period
        In the order they were given.
    alarms : tuple of Alarm
        The claims that are shown not to hold, in the order this was shown.
    notes : tuple of str
        Periods with too little data, and how base rates and shares of groups have moved: for
        information, never an alarm.
    limits : {name: float}
        What the rule makes equal, and how far groups may differ in it; empty for a rule
        without a promise.
    calibration_margin : float
        How far scores may lie from labels; None if calibration is not watched.
    confidence : float
        The chance that there is no alarm, ever, while everything holds.
    """

    periods: tuple[Period, ...]
    alarms: tuple[Alarm, ...]
    notes: tuple[str, ...]
    limits: Mapping[str, float]
    calibration_margin: float | None
    confidence: float

    @property
    def equal(self) -> tuple[str, ...]:
        """What the rule makes equal."""
        return tuple(self.limits)

    @property
    def limit(self) -> float:
        """How far groups may differ: the largest of the limits; NaN if there are none."""
        return max(self.limits.values(), default=math.nan)

    @property
    def alarm(self) -> bool:
        """Whether anything is shown not to hold."""
        return bool(self.alarms)

    @property
    def first_alarm(self) -> str | None:
        """The period in which the first alarm came; None without one."""
        return self.alarms[0].period if self.alarms else None

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table."""
        header = ["period", "rows", "differ by", "so far", "interval", "mean score off", "alarm"]
        rows = [
            [
                one.name,
                f"{one.rows:,.15g}",
                _number(one.difference),
                _number(one.running),
                f"[{one.interval[0]:.3f}, {one.interval[1]:.3f}]",
                _number(one.calibration),
                ", ".join(one.broken),
            ]
            for one in self.periods
        ]
        return header, rows

    def headline(self) -> str:
        """What was watched, in a line."""
        margin = self.calibration_margin
        more = "" if margin is None else f", scores be off by {margin:g}"
        periods = f"{len(self.periods)} period{'s' if len(self.periods) != 1 else ''}"
        allowed = f"{' and '.join(self.equal)} may differ by {self.limit:.4g}"
        if not self.limits:
            allowed = "no limit on how far groups may differ"
        if len(set(self.limits.values())) > 1:
            each = [f"{name} by {limit:.4g}" for name, limit in self.limits.items()]
            allowed = f"groups may differ in {' and in '.join(each)}"
        return f"Watch over {periods} at {self.confidence:.4g}: {allowed}{more}"

    def summary(self) -> list[str]:
        """What it means, in a few lines."""
        if not self.alarms and not self.limits:
            return [*self.notes]
        if not self.alarms:
            return ["Nothing is shown to be broken.", *self.notes]
        return [*map(str, self.alarms), *self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; unknown numbers become null."""

        def plain(one: Period) -> dict[str, Any]:
            numbers = {
                name: getattr(one, name) for name in ("difference", "running", "calibration")
            }
            return {
                "name": one.name,
                "rows": one.rows,
                **{k: None if math.isnan(v) else v for k, v in numbers.items()},
                "interval": list(one.interval),
                "broken": list(one.broken),
            }

        return {
            "format": "isocost-watch",
            "version": 1,
            "alarm": self.alarm,
            "first_alarm": self.first_alarm,
            "equal": list(self.equal),
            "limit": self.limit if self.limits else None,
            "limits": dict(self.limits),
            "calibration_margin": self.calibration_margin,
            "confidence": self.confidence,
            "periods": [plain(one) for one in self.periods],
            "alarms": [one.to_dict() for one in self.alarms],
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        return "\n".join([self.headline(), text_table(*self.table()), "", *self.summary()])

    def _repr_html_(self) -> str:
        from html import escape

        lines = "".join(f"<p>{escape(line)}</p>" for line in self.summary())
        return html_table(*self.table(), caption=self.headline()) + lines


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
