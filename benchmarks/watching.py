"""How often `isocost.watch` raises a false alarm, and how soon it finds a drift.

    python -m benchmarks.watching [draws]

prints two tables; results are kept in build/coverage, a file for each case, and not computed again.
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
from benchmarks.coverage import Beta, Floats, table
from isocost.judging.watch import EFFECTS, OVERSHOOT, SOON, STARTS

KEPT = Path("build", "coverage")
SHAPES = (Beta(1.2, 1.8), Beta(1.0, 2.2))


@dataclass(frozen=True)
class Case:
    """Groups whose costs (fpr) differ by exactly the tolerance, in so many periods.

    Scores are calibrated.  After the ``quiet`` periods the scores of negatives in the first group
    rise by ``drift`` standard errors that a period's difference between two groups has.
    """

    name: str
    rows: int
    groups: int = 2
    quiet: int = 60
    drift: float = 0.0
    calibration: float | None = 0.0
    weighted: bool = False
    share_of_draws: float = 0.2

    @property
    def shapes(self) -> tuple[Beta, ...]:
        """The scores of each group: one costs more, the others are alike."""
        return (SHAPES[0], *[SHAPES[1]] * (self.groups - 1))

    def error(self) -> float:
        """The standard error of the difference between two groups in one period."""
        squares = 0.0
        for shape in SHAPES:
            # Scores of negatives are Beta(a, b + 1).
            a, b, negatives = shape.a, shape.b + 1.0, self.rows * shape.b / (shape.a + shape.b)
            squares += a * b / ((a + b) ** 2 * (a + b + 1.0)) / negatives
        return math.sqrt(squares)

    def draw(self, rng: np.random.Generator, drifted: bool) -> ic.Tally:
        """One period."""
        score = np.concatenate([shape.draw(self.rows, rng) for shape in self.shapes])
        group = np.repeat(np.arange(self.groups), self.rows)
        label = (rng.random(len(score)) < score).astype(int)
        if drifted:
            moved = np.minimum(score + self.drift * self.error(), 1.0)
            score = np.where((group == 0) & (label == 0), moved, score)
        data = {"score": score, "label": label, "group": group}
        if not self.weighted:
            return ic.tally(data)
        return ic.tally({**data, "weight": rng.gamma(4.0, 0.25, len(score))}, weight="weight")

    def run(self, rng: np.random.Generator) -> int:
        """The period of the first alarm, counted from 1; 0 without one."""
        costs = [shape.a / (shape.a + shape.b + 1.0) for shape in SHAPES]
        limit = {"cost": costs[0] - costs[1]}
        groups = tuple(range(self.groups))
        promise = ic.Promise(limit, limit, calibrated=True, coin=False)
        rule = ic.Rule(
            groups=groups, rows=(), method="withhold", cost=ic.Cost.fpr(), promise=promise
        )
        looks = self.quiet + (30 if self.drift else 0)
        periods = [self.draw(rng, look >= self.quiet) for look in range(looks)]
        found = ic.watch(rule, periods, calibration_margin=self.calibration)
        first = found.first_alarm
        return 0 if first is None else 1 + [one.name for one in found.periods].index(first)


CASES = (
    Case("two groups, 500 rows", 500, share_of_draws=1.0),
    Case("two groups, 500 rows, costs only", 500, calibration=None),
    Case("two groups, 60 rows", 60),
    Case("two groups, 500 rows, weighted", 500, weighted=True),
    Case("ten groups, 100 rows", 100, groups=10, share_of_draws=0.1),
    Case("a drift after 52 periods, 1,000 rows", 1000, quiet=52, drift=1.3, share_of_draws=1.0),
    Case("a drift after 52 periods, 300 rows", 300, quiet=52, drift=1.3),
    Case("a drift after 52 periods, costs only", 500, quiet=52, drift=1.3, calibration=None),
    Case("a drift from the start", 500, quiet=0, drift=1.3),
    Case("a drift after 200 periods", 500, quiet=200, drift=1.3),
)


def alarms(case: Case, draws: int) -> list[int]:
    """The periods of first alarms in so many draws; kept in a file."""
    draws = math.ceil(draws * case.share_of_draws)
    path = KEPT / f"watching-{zlib.crc32(repr(case).encode()):08x}-{draws}.json"
    if not path.exists():
        rng = np.random.default_rng(zlib.crc32(case.name.encode()))
        found = [case.run(rng) for _ in range(draws)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found))
    return list(json.loads(path.read_text()))


def reached(looks: int = 600, draws: int = 60_000) -> list[list[str]]:
    """The chance that evidence of normal sums ever reaches 1 / a, as a share of a."""
    rng, starts = np.random.default_rng(0), np.arange(1.0, looks + 1.0)
    later = STARTS["later"] * (SOON + 1.0) / (starts * (starts + 1.0))
    weights = np.where(starts <= SOON, STARTS["soon"] / SOON, later)
    weights[0] += STARTS["first"]
    effects, parts = (np.array(list(x))[:, None] for x in (EFFECTS, EFFECTS.values()))
    most: list[Floats] = []
    for _ in range(draws // 5000):
        path, top = np.full((len(effects), 5000), -np.inf), np.zeros(5000)
        for weight in weights:
            path = np.logaddexp(path, math.log(weight))
            path += effects * rng.standard_normal(5000) - effects**2 / 2.0
            top = np.maximum(top, (parts * np.exp(path)).sum(axis=0))
        most.append(top)
    largest = np.concatenate(most)
    errors = (0.05, 0.0125, 0.002)
    return [[f"{a:g}", f"{(largest >= 1.0 / a).mean() / a:.3f}"] for a in errors]


def main(draws: int = 1000) -> None:
    share = f"evidence of normal sums reaches 1/a in 600 periods: chance / a, taken as {OVERSHOOT}"
    print(table(["a", share], reached()))
    print()
    rows = []
    for case in CASES:
        found = np.array(alarms(case, draws))
        false = (found > 0) & (found <= case.quiet)
        late = np.where(found > 0, found - case.quiet, np.inf)[~false]
        delay = [f"{np.median(late):.0f}", f"{(late <= 8).mean():.3f}"] if case.drift else ["", ""]
        rows.append([case.name, str(len(found)), f"{false.mean():.3f}", *delay])
        print(*rows[-1], sep=" | ", flush=True)
    header = ["", "draws", "false alarms", "periods until the alarm, median", "within 8"]
    print("\n" + table(header, rows))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
