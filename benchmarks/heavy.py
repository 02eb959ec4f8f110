"""How often intervals of alike groups are wrong with heavy weights, and with many small groups.

    python -m benchmarks.heavy [draws]

prints a table for each; what is known of a case is kept in build/coverage, and not drawn again.
"""

from __future__ import annotations

import json
import math
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import isocost as ic
from isocost.measures.intervals import Estimates, disparity_intervals, range_quantile

KEPT = Path(__file__).parents[1] / "build" / "coverage"

NUMBERS = ("cost", "selection_rate", "fpr")


@dataclass(frozen=True)
class Case:
    """Alike groups with Beta(2, 3) scores, cost fpr; with weights, or all of the same weight.

    Weights are lognormal(1), or 10 for a tenth of the rows.  With ``levels``, scores are the
    middles of tenths.  Labels are drawn with the score as their probability.
    """

    groups: int
    rows: int
    weights: str = ""
    levels: bool = False
    threshold: float = 0.5

    @property
    def name(self) -> str:
        """The name of the file that keeps the outcomes."""
        kind = "-levels" if self.levels else ""
        kind += f"-{self.threshold:g}" if self.threshold != 0.5 else ""
        return f"heavy-{self.weights or 'alike'}{kind}-{self.groups}-{self.rows}"

    def draw(self, rng: np.random.Generator) -> ic.Tally:
        """One data set, as a tally."""
        size = self.groups * self.rows
        score = rng.beta(2, 3, size)
        if self.levels:
            score = (np.floor(score * 10) + 0.5) / 10
        data = {"score": score, "label": (rng.random(size) < score).astype(int)}
        data["group"] = np.repeat(np.arange(self.groups), self.rows)
        if not self.weights:
            return ic.tally(data)
        weights = {
            "lognormal": lambda: rng.lognormal(0.0, 1.0, size),
            "tenth": lambda: np.where(rng.random(size) < 0.1, 10.0, 1.0),
        }
        return ic.tally(data | {"weight": weights[self.weights]()}, weight="weight")


def deviations(threshold: float) -> dict[str, tuple[float, float]]:
    """The standard deviation of each number over rows, and the share of rows that it is over."""
    h = np.random.default_rng(0).beta(2, 3, 1_000_000)
    negative = (1.0 - h).mean()
    mean = (h * (1.0 - h)).mean() / negative
    cost = math.sqrt((h**2 * (1.0 - h)).mean() / negative - mean**2)
    selected, wrong = (h >= threshold).mean(), ((h >= threshold) * (1.0 - h)).mean() / negative
    return {
        "cost": (cost, negative),
        "selection_rate": (math.sqrt(selected * (1.0 - selected)), 1.0),
        "fpr": (math.sqrt(wrong * (1.0 - wrong)), negative),
    }


def run(case: Case, draws: int) -> dict[str, float]:
    """The shares of data sets with each outcome, and mean widths.

    "NAME missed" is the share of data sets in which the interval of the largest difference does not
    hold the true one, 0; "NAME width" is the mean width of the interval, over that of Tukey's with
    known errors.  Of the intervals of alpha, from the first quarter of the data sets and with 15
    unweighted groups or more, "alpha missed" is the share that do not hold 0.
    """
    path = KEPT / f"{case.name}.json"
    if path.exists():
        known: dict[str, float] = json.loads(path.read_text())
        if known["draws"] >= draws:
            return known
    rng, sums = np.random.default_rng(zlib.crc32(case.name.encode())), dict[str, list[float]]()
    groups, question = range(case.groups), ic.Question("fpr", threshold=case.threshold)
    quantile, of_rows = float(range_quantile(0.95, case.groups)), deviations(case.threshold)
    for number in range(draws):
        tally = case.draw(rng)
        estimates = Estimates(tally, question)
        found = disparity_intervals(estimates, NUMBERS, tally.groups)
        for name, (low, high) in found.items():
            sums.setdefault(f"{name} missed", []).append(low > 0.0)
            deviation, share = of_rows[name]
            reach = quantile * deviation / math.sqrt(case.rows * share)
            seen = float(np.ptp([estimates.value(name, group) for group in groups]))
            sums.setdefault(f"{name} width", []).append(high - low)
            sums.setdefault(f"{name} known", []).append(seen + reach - max(0.0, seen - reach))
        if case.groups >= 15 and not case.weights and number < draws / 4:
            spans = ic.intervals(tally, "fpr", threshold=case.threshold, replicates=0).alpha
            missed = [low > 0.0 for low, _ in spans.values()]
            sums.setdefault("alpha missed", []).append(float(np.mean(missed)))
    result = {name: float(np.mean(values)) for name, values in sums.items()}
    for name in NUMBERS:
        result[f"{name} width"] /= result.pop(f"{name} known")
    result["draws"] = draws
    KEPT.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result))
    return result


def heavy() -> list[Case]:
    """Alike groups in which few rows weigh most."""
    lognormal = [
        Case(groups, rows, "lognormal", levels)
        for groups in (2, 5, 15, 30)
        for rows in (200, 1000)
        for levels in (False, True)
    ]
    return [*lognormal, Case(15, 500, "tenth"), Case(15, 500, "tenth", levels=True)]


def small() -> list[Case]:
    """Many small alike groups; in the last few, few are selected."""
    many = [Case(k, rows) for k in (2, 3, 5, 10, 20, 40) for rows in (50, 100, 300, 1000)]
    return [*many, Case(15, 200), Case(30, 200), *(Case(k, 300, threshold=0.8) for k in (5, 20))]


def main(draws: int = 2000) -> None:
    columns = [f"{name} {what}" for what in ("missed", "width") for name in NUMBERS]
    for cases, most in ((heavy(), draws), (small(), draws // 2)):
        print("| " + " | ".join(("", "draws", *columns, "alpha missed")) + " |")
        for case in cases:
            result = run(case, most)
            shown = [f"{result[name]:.3f}" for name in columns]
            alpha = f"{result['alpha missed']:.3f}" if "alpha missed" in result else ""
            cells = (case.name, f"{result['draws']:.0f}", *shown, alpha)
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
