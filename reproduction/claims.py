"""Claims that can be true or false, and how they are decided.

The thresholds were set before looking at the results: "approximately" is 0.03 on the scale of a
rate, "little" is one person in ten, "large" is a third.  Claims added later use the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction.study import Study, Values

Measure = Callable[[Values], float]

APPROXIMATELY = 0.03
LITTLE = 0.1
LARGE = 1 / 3


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
    certain : bool
        True if it follows from arithmetic alone and needs no interval.
    """

    name: str
    sentence: str
    measure: Measure
    measured: str
    above: float = -math.inf
    below: float = math.inf
    exactly: int | None = None
    certain: bool = False

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
        return " and ".join(ends)


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
        The 95 % bootstrap interval; None where nothing is random.
    spread : float or None
        The standard deviation over splits, if the number varies between them.
    """

    claim: PaperClaim
    source: str
    value: float
    interval: tuple[float, float] | None
    spread: float | None

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
        return word if self.established else f"{word}, not beyond chance"

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
    return [
        Finding(
            claim,
            study.source,
            # Per split first: differences of opposite sign must not cancel.
            float(np.mean([claim.measure(values) for values in study.by_split])),
            _interval(claim, replicates),
            _spread(claim, study.by_split),
        )
        for claim in claims
        if _has(claim, study.values)
    ]


def _has(claim: PaperClaim, values: Values) -> bool:
    try:
        claim.measure(values)
    except KeyError:
        return False
    return True


def _interval(claim: PaperClaim, replicates: list[Values]) -> tuple[float, float] | None:
    if claim.certain or not replicates:
        return None
    measured = [claim.measure(values) for values in replicates]
    # No interpolation, because some may be infinite.
    low, high = np.quantile(measured, [0.025, 0.975], method="nearest")
    return float(low), float(high)


def _spread(claim: PaperClaim, by_split: list[Values]) -> float | None:
    measured = [claim.measure(values) for values in by_split]
    if len(set(measured)) < 2 or not np.isfinite(measured).all():
        return None
    return float(np.std(measured, ddof=1))
