"""How often the verdict on a tolerance, and on what a score means between groups, is wrong.

    python -m benchmarks.verdicts [draws] [case ...]

prints a table; each case is kept in build/coverage, so that a run can be continued.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import isocost as ic
from isocost.judging.audit import audited
from isocost.question import Question
from isocost.verdict.judgement import Verdict

KEPT = Path(__file__).parents[1] / "build" / "coverage"


@dataclass(frozen=True)
class Case:
    """Groups drawn again and again, and answers that are counted.

    A group is (a, b, shift): its scores are Beta(a, b) between 0.05 and 0.95, and P(y = 1 | h) is
    h + shift.  ``odd`` adds so many people with one label, whose scores are Beta(2, 4).
    """

    groups: tuple[tuple[float, float, float], ...]
    rows: int
    counts: dict[str, Callable[[Verdict], bool]]
    wanted: str
    tolerance: float = 0.0
    odd: int = 0

    def draw(self, rng: np.random.Generator) -> ic.Tally:
        """One data set."""
        score = np.concatenate([rng.beta(a, b, self.rows) for a, b, _ in self.groups])
        score = np.clip(score, 0.05, 0.95)
        shift = np.repeat([shift for *_, shift in self.groups], self.rows)
        label = rng.random(len(score)) < score + shift
        group = np.repeat(np.arange(len(self.groups)), self.rows)
        if self.odd:
            score = np.append(score, rng.beta(2, 4, self.odd))
            label = np.append(label, np.ones(self.odd, dtype=bool))
            group = np.append(group, np.full(self.odd, len(self.groups)))
        return ic.tally({"score": score, "label": label.astype(int), "group": group}, bins=128)


@cache
def apart(difference: float) -> tuple[tuple[float, float, float], ...]:
    """Two calibrated groups whose average scores of negatives differ by this much."""
    from scipy.optimize import brentq
    from scipy.stats import beta

    u = (np.arange(4000) + 0.5) / 4000

    def cost(b: float) -> float:
        h = np.clip(beta.ppf(u, 2.0, b), 0.05, 0.95)
        return float((h * (1.0 - h)).mean() / (1.0 - h).mean())

    b = brentq(lambda b: cost(b) - cost(3.0) + difference, 3.0, 8.0, xtol=1e-4)
    return ((2.0, 3.0, 0.0), (2.0, float(b), 0.0))


ESTABLISHED = {"beyond": lambda v: v.established, "within": lambda v: v.equal}
SAME = {
    "same": lambda v: v.same == "yes",
    "not same": lambda v: v.same == "no",
    "uncalibrated": lambda v: v.calibrated == "no",
}


def cases() -> dict[str, Case]:
    """Each case by its name."""
    made = {}
    for rows in (500, 2000, 8000):
        for difference, wanted in (
            (0.03, "within"),
            (0.045, "beyond <= .05"),
            (0.05, "each <= .05"),
            (0.055, "within <= .05"),
            (0.07, "beyond"),
        ):
            name = f"tolerance .05, true {difference:g}, {rows:,} rows a group"
            made[name] = Case(apart(difference), rows, ESTABLISHED, wanted, 0.05)
    for d in (0.0, 0.005, 0.01, 0.02, 0.025, 0.03, 0.035):
        wanted = "same" if d == 0 else "same <= .05" if d >= 0.01 else ""
        groups = ((5.0, 5.0, d), (5.0, 5.0, -d))
        made[f"offsets of {d:g}, 8,000 rows a group"] = Case(groups, 8000, SAME, wanted)
        if d <= 0.01:
            made[f"offsets of {d:g}, 40,000 rows a group"] = Case(groups, 40_000, SAME, wanted)
    alike = ((2.0, 3.0, 0.0),) * 2
    of_labels = {"one label": lambda v: v.reason == "one_label"}
    made["2,049 people with one label"] = Case(alike, 2000, of_labels, "one label", odd=2049)
    return made


def share_of(name: str, case: Case, draws: int) -> dict[str, float]:
    """The share of draws with each answer that is counted; from build/coverage if it is there."""
    path = KEPT / f"verdicts-{zlib.crc32(f'{name} {case.groups} {draws}'.encode()):08x}.json"
    if path.exists():
        return dict(json.loads(path.read_text()))
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    question = Question("fpr", tolerance=case.tolerance, replicates=0)
    found = dict.fromkeys(case.counts, 0)
    for _ in range(draws):
        verdict = audited(case.draw(rng), question).verdict
        for answer, holds in case.counts.items():
            found[answer] += holds(verdict)
    shares = {answer: count / draws for answer, count in found.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(shares))
    return shares


def main(draws: int = 1000, *parts: str) -> None:
    """Print the table of the cases whose name has one of some parts, or of all."""
    print(f"| case, {draws:,} draws | share of draws | wanted |\n| --- | --- | --- |")
    for name, case in cases().items():
        if not parts or any(part in name for part in parts):
            shares = share_of(name, case, draws)
            told = ", ".join(f"{answer} {share:.3f}" for answer, share in shares.items())
            print(f"| {name} | {told} | {case.wanted} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
