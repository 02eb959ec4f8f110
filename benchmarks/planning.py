"""How often samples of the sizes that `isocost.plan` gives establish a difference that is there.

    python -m benchmarks.planning [draws] [first samples]

prints a table; results are kept in build/coverage, a file for each case, and not computed again.
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
from benchmarks.coverage import Beta, table

KEPT = Path("build", "coverage")


@dataclass(frozen=True)
class Case:
    """Groups with calibrated Beta scores, of which the costliest and the cheapest are planned for.

    ``rows`` is the size of a first sample's group; a power of 0.8 is asked for.
    """

    name: str
    cost: str
    shapes: tuple[Beta, ...]
    rows: int = 1000
    tolerance: float = 0.0
    weighted: bool = False

    def draw(self, sizes: tuple[int, ...], rng: np.random.Generator) -> ic.Tally:
        """A sample with so many rows of each group."""
        pairs = zip(self.shapes, sizes, strict=True)
        score = np.concatenate([shape.draw(rows, rng) for shape, rows in pairs])
        label = (rng.random(len(score)) < score).astype(int)
        data = {"score": score, "label": label, "group": np.repeat(np.arange(len(sizes)), sizes)}
        if not self.weighted:
            return ic.tally(data)
        return ic.tally({**data, "weight": rng.gamma(2.0, 0.5, len(score))}, weight="weight")

    def difference(self) -> float:
        """The true difference between the costliest and the cheapest group."""
        cost, costs = ic.Cost.parse(self.cost), []
        for shape in self.shapes:
            mean, size = shape.a / (shape.a + shape.b), shape.a + shape.b
            unsure = mean * (1.0 - mean) * size / (size + 1.0)
            fp, fn = cost.amounts(None)
            parts = (1.0, 1.0) if cost.by_base_rate else (1.0 / (1.0 - mean), 1.0 / mean)
            costs.append(unsure * (fp * parts[0] + fn * parts[1]))
        return max(costs) - min(costs)

    def run(self, draws: int, firsts: int, rng: np.random.Generator) -> list[tuple[list[int], int]]:
        """For each first sample the planned sizes, and how many new ones establish it."""
        asked = ic.Question(self.cost, tolerance=self.tolerance, replicates=0)
        found = []
        for seed in range(firsts):
            first = self.draw((self.rows,) * len(self.shapes), rng)
            plan = ic.plan(first, question=asked, detect=self.difference(), seed=seed)
            sizes = [int(one.difference) for one in plan.groups.values()]
            done = 0
            for _ in range(math.ceil(draws / firsts)):
                audit = ic.audit(self.draw(tuple(sizes), rng), question=asked, warn=False)
                low = audit.intervals.disparities["cost"][0]
                done += audit.verdict.enough and low > self.tolerance
            found.append((sizes, done))
        return found


def beta(base_rate: float, size: float) -> Beta:
    """Calibrated scores with this base rate; larger sizes lie closer together."""
    return Beta(base_rate * size, (1.0 - base_rate) * size)


def groups(kind: str, count: int) -> tuple[Beta, ...]:
    """Base rates from 0.4 to 0.5: all between, all but one at 0.4, or all but two at 0.45."""
    rates = {
        "spread": np.linspace(0.4, 0.5, count),
        "one high": np.array([0.5, *[0.4] * (count - 1)]),
        "two apart": np.array([0.4, 0.5, *[0.45] * (count - 2)]),
    }[kind]
    return tuple(beta(float(rate), 3.0) for rate in rates)


RARE = {
    "0.05 and 0.16": (beta(0.05, 8.0), beta(0.16, 2.0)),
    "0.033 and 0.208": (beta(0.033, 8.0), beta(0.208, 2.0)),
    "0.05 and 0.17": (beta(0.05, 8.0), beta(0.17, 3.0)),
}
CASES = (
    *(Case(f"base rates {name}", "fnr", shapes, 1000) for name, shapes in RARE.items()),
    Case("base rates 0.033 and 0.208, 5,000 rows", "fnr", RARE["0.033 and 0.208"], 5000),
    *(Case(f"2 groups, {cost}", cost, groups("spread", 2)) for cost in ("fpr", "fnr")),
    Case("2 groups, weighted", "weighted:1,3", groups("spread", 2)),
    Case("2 groups, plain", "plain:1,2", groups("spread", 2)),
    Case("2 groups, tolerance 0.03", "fpr", groups("spread", 2), tolerance=0.03),
    Case("2 groups, weighted rows", "fpr", groups("spread", 2), weighted=True),
    *(
        Case(f"{count} groups, {kind}", "fpr", groups(kind, count))
        for count in (3, 5, 10)
        for kind in ("spread", "one high", "two apart")
    ),
)


def planned(case: Case, draws: int, firsts: int) -> list[tuple[list[int], int]]:
    """The outcomes of a case; kept in a file."""
    path = KEPT / f"planning-{zlib.crc32(repr(case).encode()):08x}-{draws}-{firsts}.json"
    if not path.exists():
        found = case.run(draws, firsts, np.random.default_rng(zlib.crc32(case.name.encode())))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found))
    return [(sizes, done) for sizes, done in json.loads(path.read_text())]


def main(draws: int = 1000, firsts: int = 10) -> None:
    rows = []
    for case in CASES:
        found = planned(case, draws, firsts)
        each = math.ceil(draws / firsts)
        power = np.array([done / each for _, done in found])
        sizes = np.median([sizes for sizes, _ in found], axis=0)
        shown = ", ".join(f"{size:,.0f}" for size in sizes[:3]) + (
            ", ..." if len(sizes) > 3 else ""
        )
        ends = f"{power.min():.2f} to {power.max():.2f}"
        rows.append([case.name, f"{case.difference():.3f}", shown, f"{power.mean():.3f}", ends])
        print(*rows[-1], sep=" | ", flush=True)
    header = ["", "difference", "rows planned", "power", "by first sample"]
    print("\n" + table(header, rows))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
