"""Whether ``isocost.unseen`` tells the truth about people not seen, where the truth is known.

    python -m benchmarks.unseen [data sets] [replicates]

writes docs/unseen.md.
"""

from __future__ import annotations

import sys
import time
import warnings
import zlib
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import isocost as ic
from benchmarks.coverage import Beta, Floats, table
from isocost.repairs.registry import REPAIRS
from isocost.repairs.unseen import NUMBERS, Yardstick

TARGET = Path(__file__).parents[1] / "docs" / "unseen.md"
POINTS = 20_000


@dataclass(frozen=True)
class Case:
    """Groups with known scores, and how a rule is made from a sample of them."""

    name: str
    shapes: tuple[Beta, ...]
    sizes: tuple[int, ...]
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    pull: float = 0.0

    def chance(self, h: Floats) -> Floats:
        """The probability of label 1 at each score."""
        return h + self.pull * (0.5 - h)

    def draw(self, rng: np.random.Generator) -> ic.Tally:
        """One data set, as a tally."""
        pairs = zip(self.shapes, self.sizes, strict=True)
        score = np.concatenate([shape.draw(rows, rng) for shape, rows in pairs])
        label = (rng.random(len(score)) < self.chance(score)).astype(int)
        group = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return ic.tally({"score": score, "label": label, "group": group})

    def population(self) -> ic.Tally:
        """Everybody: each score with both labels, weighted by their probabilities."""
        from scipy.special import betaincinv

        columns: dict[str, list[Floats]] = {"score": [], "label": [], "group": [], "weight": []}
        u = (np.arange(POINTS) + 0.5) / POINTS
        for group, (shape, rows) in enumerate(zip(self.shapes, self.sizes, strict=True)):
            h = np.clip(betaincinv(shape.a, shape.b, u), 1e-12, 1.0 - 1e-12)
            p = self.chance(h)
            for label, share in ((0, 1.0 - p), (1, p)):
                columns["score"].append(h)
                columns["label"].append(np.full(POINTS, label))
                columns["group"].append(np.full(POINTS, group))
                columns["weight"].append(share * rows / POINTS)
        joined = {name: np.concatenate(parts) for name, parts in columns.items()}
        return ic.tally(joined, weight="weight")


TWO = (Beta(0.8, 1.2), Beta(0.7, 1.5))
SIX = tuple(
    Beta(*shape)
    for shape in ((0.35, 0.8), (0.25, 1.8), (0.3, 1.5), (0.25, 2.2), (0.4, 0.8), (0.3, 2))
)
SIZES = {
    "2 x 200": (TWO, (200, 200)),
    "2 x 2,000": (TWO, (2000, 2000)),
    "5,000 to 150": (SIX, (5000, 2500, 800, 400, 300, 150)),
}
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "withhold": {"cost": "fnr", "infeasible": "closest"},
    "coarsen": {"cost": "fnr", "infeasible": "closest", "allow_decision_changes": True},
    "odds": {},
    "reconcile": {"infeasible": "closest"},
}


def cases() -> list[Case]:
    """Every method on every population, and on scores that are not calibrated."""
    calibrated = [
        Case(size, shapes, sizes, method, settings)
        for method, settings in SETTINGS.items()
        for size, (shapes, sizes) in SIZES.items()
    ]
    off = [
        Case(f"{rows:,} rows, gap .08", TWO, (rows, rows), method, SETTINGS[method], pull=0.25)
        for method in ("withhold", "reconcile")
        for rows in (200, 2000)
    ]
    return calibrated + off


Job: TypeAlias = tuple[Case, int, int]


def run(job: Job) -> dict[str, Floats]:
    """Fitted, expected, limit and truth of each data set, arrays (data sets, numbers)."""
    case, sets, replicates = job
    rng = np.random.default_rng(zlib.crc32(f"{case.name} {case.method}".encode()))
    population = case.population()
    every: dict[str, list[Any]] = {"fitted": [], "expected": [], "limit": [], "truth": []}
    while len(every["truth"]) < sets:
        tally = case.draw(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rule = REPAIRS[case.method].make_with(tally, **case.settings)
            found = ic.unseen(tally, rule, replicates, seed=len(every["truth"]))
        for name in ("fitted", "expected", "limit"):
            every[name].append([getattr(getattr(found, number), name) for number in NUMBERS])
        truth = Yardstick.of(tally, rule).numbers(population, rule)
        every["truth"].append(truth[: len(NUMBERS)])
    print(case.name, case.method, flush=True)
    return {name: np.array(values) for name, values in every.items()}


def rows_of(case: Case, result: dict[str, Floats]) -> list[list[str]]:
    """A line of the table for each number."""
    rows = []
    for index, (name, title) in enumerate(NUMBERS.items()):
        fitted, expected, limit, truth = (
            result[kind][:, index] for kind in ("fitted", "expected", "limit", "truth")
        )
        held = limit <= truth + 1e-9 if name == "accuracy" else limit >= truth - 1e-9
        means = [f"{values.mean():.4f}" for values in (truth, fitted, expected, limit)]
        off = expected.mean() / truth.mean() - 1.0
        rows.append([case.method, case.name, title, *means, f"{off:+.0%}", f"{held.mean():.3f}"])
    return rows


def main(sets: int = 40, replicates: int = 100) -> None:
    start = time.perf_counter()
    jobs = [(case, sets, replicates) for case in cases()]
    with ProcessPoolExecutor(2) as pool:
        results = list(pool.map(run, jobs))
    header = ["method", "people", "", "truth", "fitted", "expected", "limit", "off by", "holds"]
    rows = [
        row
        for (case, _, _), result in zip(jobs, results, strict=True)
        for row in rows_of(case, result)
    ]
    text = TEXT.format(sets=sets, replicates=replicates, table=table(header, rows))
    TARGET.write_text(text, encoding="utf-8")
    print(text)
    print(f"{time.perf_counter() - start:.0f} s")


TEXT = """# Whether what is said about people not seen is true

Made by `python -m benchmarks.unseen {sets} {replicates}`: {sets} data sets a line, {replicates}
replicates each.

{table}
"""


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
