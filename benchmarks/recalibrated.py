"""How often the intervals of costs if calibrated hold the truth, and wrong "recalibrate first".

    python -m benchmarks.recalibrated [draws]

Scores are Beta, and P(y = 1 | h) is known, so that the truth is a quadrature.  Each case is kept
under build/coverage and not drawn again.
"""

from __future__ import annotations

import json
import math
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, expit, logit

import isocost as ic
from isocost.measures.feasibility import mixing_rates, reach_of
from isocost.measures.intervals import Estimates
from isocost.measures.recalibrated import Recalibrated, recalibrated
from isocost.verdict.judgement import MOVED, SLACK

Floats = npt.NDArray[np.float64]

KEPT = Path(__file__).parents[1] / "build" / "coverage"
POINTS = 100_000

MAPS: dict[str, Callable[[Floats], Floats]] = {
    "calibrated": lambda h: h,
    "S-shape of .15": lambda h: h + 0.15 * np.sin(2.0 * math.pi * h),
    "S-shape of -.1": lambda h: h - 0.1 * np.sin(2.0 * math.pi * h),
    "logit times .6": lambda h: expit(0.6 * logit(h)),
    "logit plus .4": lambda h: expit(0.4 + logit(h)),
    "0.7 times the score": lambda h: 0.7 * h,
}


@dataclass(frozen=True)
class Case:
    """Groups with Beta scores, each with the same number of rows; the last may have its own map."""

    name: str
    groups: tuple[tuple[float, float], ...]
    rows: int
    cost: str = "fpr"
    maps: tuple[str, ...] = ("calibrated",)
    weighted: bool = False

    def map_of(self, group: int) -> Callable[[Floats], Floats]:
        """P(y = 1 | h) in a group."""
        return MAPS[self.maps[min(group, len(self.maps) - 1)]]

    def draw(self, rng: np.random.Generator) -> ic.Tally:
        """One data set, as a tally."""
        score = np.concatenate([rng.beta(*shape, self.rows) for shape in self.groups])
        score = np.clip(score, 1e-12, 1.0 - 1e-12)
        group = np.repeat(np.arange(len(self.groups)), self.rows)
        chance = np.concatenate([
            self.map_of(i)(score[group == i]) for i in range(len(self.groups))
        ])  # fmt: skip
        label = (rng.random(len(score)) < chance).astype(int)
        data = {"score": score, "label": label, "group": group}
        if not self.weighted:
            return ic.tally(data)
        data["weight"] = (0.5 + score) * rng.gamma(2.0, 0.5, len(score))
        return ic.tally(data, weight="weight")

    def truth(self) -> Floats:
        """The cost now, the cost if calibrated and the trivial cost of each group."""
        cost, rows = ic.Cost.parse(self.cost), []
        u = (np.arange(POINTS) + 0.5) / POINTS
        for index, shape in enumerate(self.groups):
            h = np.clip(betaincinv(*shape, u), 1e-12, 1.0 - 1e-12)
            p, w = self.map_of(index)(h), (0.5 + h if self.weighted else np.ones_like(h))
            mu = float(np.average(p, weights=w))
            fp, fn = (float(x[0]) for x in cost.coefficients([0], np.array([mu])))
            wrong, missed = fp / (1.0 - mu), fn / mu
            of = [
                float(np.average(wrong * x * (1.0 - p) + missed * (1.0 - x) * p, weights=w))
                for x in (h, p)
            ]
            rows.append([*of, fp * mu + fn * (1.0 - mu)])
        return np.array(rows)


def outcome(found: Recalibrated, truth: Floats) -> dict[str, float]:
    """The share of intervals that hold the truth, and whether recalibration would be first."""
    ends, (now, then, trivial) = found.intervals, truth.T
    assert ends is not None
    alpha, (s, t) = mixing_rates(then, trivial, 0.0), found.between
    change = float((then - now)[s] - (then - now)[t])

    def holds(interval: tuple[float, float], value: float) -> float:
        return float(interval[0] - SLACK <= value <= interval[1] + SLACK)

    return {
        "cost": float(np.mean([holds(ends.cost[g], then[g]) for g in found.cost])),
        "alpha": float(np.mean([holds(ends.alpha[g], alpha[g]) for g in found.cost])),
        "difference": holds(ends.difference, float(np.ptp(then))),
        "change": holds(ends.change, change),
        "first": float(found.shown > MOVED),
    }


def cases() -> list[Case]:
    """Two groups with each map, few rows, rare outcomes, weights, and many groups alike."""
    two, rare = ((0.6, 1.2), (0.7, 0.9)), ((1.0, 12.0), (1.0, 20.0))
    made = [
        Case(f"{name}, {cost}, {rows:,}", two, rows, cost, (name,))
        for name in MAPS
        for cost in ("fpr", "weighted:1,3")
        for rows in (300, 1000, 4000)
    ]
    made += [
        Case(f"one {name}, other calibrated, fnr, {rows:,}", two, rows, "fnr", (name, "calibrated"))
        for name in ("S-shape of .15", "logit plus .4")
        for rows in (300, 1000, 4000)
    ]
    made += [Case(f"calibrated, fnr, {rows}", two, rows, "fnr") for rows in (30, 60, 100)]
    made += [Case(f"calibrated, rare, fnr, {rows:,}", rare, rows, "fnr") for rows in (300, 1000)]
    made += [Case(f"weighted, calibrated, fpr, {r:,}", two, r, weighted=True) for r in (300, 2000)]
    made += [
        Case(f"{k} alike, calibrated, fpr, {rows}", ((2.0, 3.0),) * k, rows)
        for k, rows in ((5, 200), (15, 200), (30, 200))
    ]
    return made


def run(case: Case, draws: int) -> dict[str, float]:
    """The mean outcome of a case, drawn now or kept from before."""
    kept = KEPT / f"recalibrated-{zlib.crc32(repr(case).encode()):08x}-{draws}.json"
    if kept.exists():
        result: dict[str, float] = json.loads(kept.read_text())
        return result
    rng, truth, every = np.random.default_rng(zlib.crc32(case.name.encode())), case.truth(), []
    for seed in range(draws):
        tally = case.draw(rng)
        question = ic.Question(case.cost, seed=seed)
        reach = reach_of(tally, question)
        every.append(outcome(recalibrated(Estimates(tally, question), reach), truth))
    result = {name: float(np.nanmean([one[name] for one in every])) for name in every[0]}
    KEPT.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(result))
    return result


def main(draws: int = 2000) -> None:
    """Print a table."""
    for case in cases():
        # A third of the draws where each takes long.
        found = run(case, draws if len(case.groups) < 10 else draws // 4)
        print(f"{case.name:48}", "  ".join(f"{k} {v:.3f}" for k, v in found.items()), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
