"""Claims that can be true or false, and how they are decided.

The thresholds were set before looking at the results: "approximately" is 0.03 on the scale of a
rate, "little" is one person in ten, "large" is a third.  Claims added later use the same.

A claim that holds by arithmetic, such as equal costs on the people that a rule was fitted on, says
nothing about the data: its verdict is "by construction".  One whose interval includes its threshold
is "undecided", on whichever side the number is: another split or sample might put it on the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from reproduction.study import Study, Values

Measure = Callable[[Values], float]

APPROXIMATELY = 0.03
LITTLE = 0.1
LARGE = 1 / 3

RATE = "scale of a rate"
"""The unit of most numbers: 0 to 1."""

UNDECIDED = "undecided"
"""The verdict where chance may have decided."""

OFTEN = "share of models and splits"
"""The unit of how often something is so, which is never below 0 or above 1."""


@dataclass(frozen=True)
class PaperClaim:
    """A claim of the paper and the criterion that decides it.

    Attributes
    ----------
    name : str
        A short name, stable across versions.
    sentence : str
        The claim, in our words.
    measure : callable
        Derives the deciding number from a study's values.
    measured : str
        What that number is.
    above, below : float
        The claim holds if the number lies strictly between them.
    exactly : int or None
        What a count must be instead.
    unit : str
        What the number and its bar count.
    constructed : str
        When it holds by arithmetic alone: "always", or "fitted" on the people that rules were
        fitted on; empty if never.
    note : str
        Under which reading it holds, or what it is equivalent to.
    """

    name: str
    sentence: str
    measure: Measure
    measured: str
    above: float = -math.inf
    below: float = math.inf
    exactly: int | None = None
    unit: str = RATE
    constructed: str = ""
    note: str = ""

    def holds(self, value: float) -> bool:
        """Whether a number satisfies the claim."""
        if self.exactly is not None:
            return value == self.exactly
        return self.above < value < self.below

    def needs(self) -> str:
        """The criterion in words."""
        if self.exactly is not None:
            return f"{self.exactly:,}"
        ends = [f"above {self.above:.4g}"] if self.above > -math.inf else []
        ends += [f"below {self.below:.4g}"] if self.below < math.inf else []
        return f"{' and '.join(ends)} ({self.unit})"


@dataclass(frozen=True)
class Finding:
    """The result for a claim.

    Attributes
    ----------
    claim : PaperClaim
        The sentence.
    source : str
        The scores it was checked on.
    value : float
        The deciding number: mean over models and splits.
    interval : (low, high) or None
        The 95 % interval; None where nothing is random.
    spread : float or None
        The standard deviation over splits, if the number varies between them.
    constructed : bool
        Whether these scores satisfy it by arithmetic alone.
    """

    claim: PaperClaim
    source: str
    value: float
    interval: tuple[float, float] | None
    spread: float | None
    constructed: bool = False

    @property
    def holds(self) -> bool:
        """Whether it holds on these data."""
        return self.claim.holds(self.value)

    @property
    def established(self) -> bool:
        """Whether the whole interval agrees."""
        return self.interval is None or all(
            self.claim.holds(end) == self.holds for end in self.interval
        )

    @property
    def verdict(self) -> str:
        """The result in words."""
        word = "holds" if self.holds else "does not hold"
        if not self.established:
            word = UNDECIDED
        elif self.holds and self.constructed:
            word = "by construction"
        return word + (f", {self.claim.note}" if self.claim.note else "")

    @property
    def shown(self) -> str:
        """The number with its interval."""
        if self.claim.exactly is not None:
            return f"{self.value:,.10g}"
        if self.interval is None:
            return f"{self.value:.4f}"
        low, high = self.interval
        return f"{self.value:.4f} [{low:.4f}, {high:.4f}]"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.claim.name,
            "claim": self.claim.sentence,
            "measured": self.claim.measured,
            "needs": self.claim.needs(),
            "scores": self.source,
            "value": self.value,
            "interval": self.interval,
            "spread": self.spread,
            "verdict": self.verdict,
        }


def check(study: Study, claims: tuple[PaperClaim, ...], replicates: list[Values]) -> list[Finding]:
    """Decide each claim on a study; claims whose values the study lacks are left out."""
    findings = []
    for claim in claims:
        if not _has(claim, study.values):
            continue
        # Per split first: differences of opposite sign must not cancel.
        by_split = [claim.measure(values) for values in study.by_split]
        constructed = claim.constructed == "always" or (
            claim.constructed == "fitted" and not study.held_out
        )
        certain = constructed or claim.exactly is not None
        interval = None if certain else _interval(claim, study, by_split, replicates)
        mean = float(np.mean(by_split))
        spread = _spread(by_split)
        findings.append(Finding(claim, study.source, mean, interval, spread, constructed))
    return findings


def _has(claim: PaperClaim, values: Values) -> bool:
    try:
        claim.measure(values)
    except KeyError:
        return False
    return True


def _interval(
    claim: PaperClaim, study: Study, by_split: list[float], replicates: list[Values]
) -> tuple[float, float] | None:
    """Of the mean over many splits, Student's; over few, the quantiles of bootstrap samples."""
    if study.correction is not None and np.isfinite(by_split).all():
        error = float(np.std(by_split, ddof=1)) * math.sqrt(study.correction)
        half = float(student.ppf(0.975, len(by_split) - 1)) * error
        low, high = float(np.mean(by_split)) - half, float(np.mean(by_split)) + half
        return (max(0.0, low), min(1.0, high)) if claim.unit == OFTEN else (low, high)
    measured = [claim.measure(values) for values in replicates] or by_split
    if len(measured) < 2:
        return None
    # No interpolation, because some may be infinite.
    low, high = np.quantile(measured, [0.025, 0.975], method="nearest")
    return float(low), float(high)


def _spread(by_split: list[float]) -> float | None:
    if len(set(by_split)) < 2 or not np.isfinite(by_split).all():
        return None
    return float(np.std(by_split, ddof=1))
