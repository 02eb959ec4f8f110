"""How often intervals hold the truth, and alike groups are called different, if people repeat.

    python -m benchmarks.repeated [data sets]

prints a table.  Each case is kept in build/coverage and not computed again.  A person has one risk,
Beta(2, 3), and several rows: scores are the risk and a little noise, and most labels of a person
are decided by the same luck.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import isocost as ic
from isocost.measures.intervals import Estimates, disparity_intervals
from isocost.measures.table import MEASURES as ROWS

KEPT = Path(__file__).parents[1] / "build" / "coverage"

MEASURES = ("base_rate", "generalized_fpr", "generalized_fnr", "fpr", "fnr", "ppv", "brier")

POPULATION = 2_000_000


@dataclass(frozen=True)
class Case:
    """Alike groups of so many people with so many rows each."""

    groups: int
    people: int
    rows: int
    weighted: bool = False
    cost: str = "fpr"

    @property
    def name(self) -> str:
        """The case in words."""
        weights = ", weighted" if self.weighted else ""
        return f"{self.groups} groups, {self.people} people, {self.rows} rows{weights}, {self.cost}"

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        """One data set."""
        size = self.groups * self.people
        risk, luck, person = rng.beta(2, 3, size), rng.random(size), np.arange(size)
        person = np.repeat(person, self.rows)
        score = np.clip(risk[person] + rng.normal(0.0, 0.03, len(person)), 0.0, 1.0)
        own = np.where(rng.random(len(person)) < 0.7, luck[person], rng.random(len(person)))
        label = (own < risk[person]).astype(int)
        data = {"score": score, "label": label, "group": person // self.people, "person": person}
        if self.weighted:
            weights = rng.lognormal(0.0, 0.5, size)[person] * rng.lognormal(0.0, 0.3, len(person))
            data["weight"] = weights
        return data

    def tally(self, rng: np.random.Generator) -> ic.Tally:
        """One data set, counted with persons."""
        return ic.tally(self.draw(rng), person="person", weight="weight" if self.weighted else None)


CASES = (
    Case(2, 100, 3),
    Case(2, 100, 10),
    Case(5, 100, 3),
    Case(2, 100, 5, weighted=True),
    Case(2, 100, 5, cost="plain:1,2"),
    Case(2, 100, 5, cost="weighted:1,3"),
    Case(2, 30, 10),
)


@lru_cache
def truth(cost: str) -> dict[str, float]:
    """The numbers of the population; weights are independent of all else."""
    data = Case(1, POPULATION, 1).draw(np.random.default_rng(0))
    both = {name: np.append(values, values[:1]) for name, values in data.items()}
    both["group"][-1] = 1
    return dict(ic.audit(ic.tally(both), cost, confidence=None, min_group=0).groups[0].values)


def outcome(case: Case, rng: np.random.Generator) -> dict[str, float]:
    """Wrong verdicts, without and with persons, and the share of intervals that hold the truth."""
    known = truth(case.cost)
    tally, result = case.tally(rng), {}
    for name, counted in (("without", replace(tally, persons=None)), ("established", tally)):
        estimates = Estimates(counted, ic.Question(case.cost))
        # What an audit calls established, from the few numbers that decide it.
        low, _ = disparity_intervals(estimates, ["cost"], tally.groups)["cost"]
        result[name] = float(low > 0.0)
    for name in (*MEASURES, "cost"):
        spans = [
            estimates.cost_interval(i)[0] if name == "cost" else estimates.interval(ROWS[name], i)
            for i in range(case.groups)
        ]
        result[name] = float(np.mean([low <= known[name] <= high for low, high in spans]))
    return result


def run(case: Case, sets: int) -> dict[str, float]:
    """The mean outcome, from the file of the case if there is one."""
    path = KEPT / f"repeated-{case.name.replace(' ', '-')}-{sets}.json"
    if path.exists():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    rng = np.random.default_rng(np.random.SeedSequence([17, *map(ord, case.name)]))
    every = [outcome(case, rng) for _ in range(sets)]
    result = {name: float(np.mean([one[name] for one in every])) for name in every[0]}
    KEPT.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**asdict(case), "sets": sets, **result}), encoding="utf-8")
    return result


def main(sets: int = 2000) -> None:
    columns = ("without", "established", *MEASURES, "cost")
    print("| case | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for case in CASES:
        found = run(case, sets)
        cells = " | ".join(f"{found[name]:.3f}" for name in columns)
        print(f"| {case.name} | {cells} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
