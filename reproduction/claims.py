"""The sentences of Section 5 that can be true or false, each with the number that decides it.

The bars were set before looking: "approximately" is 0.03 on the scale of a rate, "little" is
one person in ten, "large" is a third.  Claims that were added later use the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction.measures import Measure
from reproduction.numbers import Numbers
from reproduction.studies import Study

__all__ = ["APPROXIMATELY", "LARGE", "LITTLE", "Claim", "Finding", "check"]

APPROXIMATELY = 0.03
LITTLE = 0.1
LARGE = 1 / 3


@dataclass(frozen=True)
class Claim:
    """One sentence, and what decides it.

    Attributes
    ----------
    name : str
        A short name, stable across versions.
    sentence : str
        The claim, in our words.
    measure : callable
        From numbers to the one that decides.
    measured : str
        What that number is.
    above, below : float
        The claim holds if the number lies strictly between them.
    exactly : int or None
        What a count must be instead.
    certain : bool
        True for what follows from arithmetic alone: no interval is needed.
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
        """Whether a number is what the claim needs."""
        if self.exactly is not None:
            return value == self.exactly
        return self.above < value < self.below

    def needs(self) -> str:
        """The bar in words."""
        if self.exactly is not None:
            return f"{self.exactly:,}"
        ends = [f"above {self.above:.4g}"] if self.above > -math.inf else []
        ends += [f"below {self.below:.4g}"] if self.below < math.inf else []
        return " and ".join(ends)


@dataclass(frozen=True)
class Finding:
    """What became of a claim.

    Attributes
    ----------
    claim : Claim
        The sentence.
    source : str
        The scores it was checked on.
    value : float
        The number of the average over models, and its mean over splits.
    interval : (low, high) or None
        Where 95 % of replicates lie; None where nothing depends on chance.
    spread : float or None
        The standard deviation over splits, if the number depends on how people are divided.
    """

    claim: Claim
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
        """Whether the whole interval says the same."""
        return self.interval is None or all(
            self.claim.holds(end) == self.holds for end in self.interval
        )

    @property
    def verdict(self) -> str:
        """In words."""
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
        """Plain values for JSON; what is not finite becomes null."""

        def plain(number: float) -> float | None:
            return number if math.isfinite(number) else None

        return {
            "name": self.claim.name,
            "claim": self.claim.sentence,
            "measured": self.claim.measured,
            "needs": self.claim.needs(),
            "scores": self.source,
            "value": plain(self.value),
            "interval": None if self.interval is None else [plain(end) for end in self.interval],
            "spread": self.spread,
            "verdict": self.verdict,
        }


def check(study: Study, claims: tuple[Claim, ...], replicates: list[Numbers]) -> list[Finding]:
    """Decide each claim on a study; claims whose numbers the study lacks are left out."""
    return [
        Finding(
            claim,
            study.source,
            # Of each split first: differences of opposite sign must not cancel.
            float(np.mean([claim.measure(numbers) for numbers in study.by_split])),
            _interval(claim, replicates),
            _spread(claim, study.by_split),
        )
        for claim in claims
        if _has(claim, study.numbers)
    ]


def _has(claim: Claim, numbers: Numbers) -> bool:
    try:
        claim.measure(numbers)
    except KeyError:
        return False
    return True


def _interval(claim: Claim, replicates: list[Numbers]) -> tuple[float, float] | None:
    if claim.certain or not replicates:
        return None
    values = [claim.measure(numbers) for numbers in replicates]
    # The nearest values rather than points between them: some may be infinite.
    low, high = np.quantile(values, [0.025, 0.975], method="nearest")
    return float(low), float(high)


def _spread(claim: Claim, by_split: list[Numbers]) -> float | None:
    values = [claim.measure(numbers) for numbers in by_split]
    if len(set(values)) < 2 or not np.isfinite(values).all():
        return None
    return float(np.std(values, ddof=1))
