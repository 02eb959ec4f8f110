"""Which repair serves people who decide at a threshold, on people that it was not fitted on.

    python -m benchmarks.decisions [halves]

writes docs/decisions.md.  Each data set is split in halves many times; what is fitted on the one is
measured on the other.  Numbers are averages over the coin, so no coin is thrown.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

import isocost as ic
from isocost.examples import compas_rows

Floats: TypeAlias = npt.NDArray[np.float64]

TARGET = Path(__file__).parents[1] / "docs" / "decisions.md"
HALVES = 40
LEVELS: tuple[int | str, ...] = ("auto", 4, 8, 16, 32, 64)
ROWS_OF_TRUTH = 200_000

TWO = ((0.8, 1.2), (0.7, 1.5))
SIX = ((0.35, 0.8), (0.25, 1.8), (0.3, 1.5), (0.25, 2.2), (0.4, 0.8), (0.3, 2.0))
POPULATIONS: dict[str, tuple[tuple[tuple[float, float], ...], tuple[int, ...]]] = {
    "Beta(.8, 1.2), Beta(.7, 1.5)": (TWO, (200, 200)),
    "the same": (TWO, (2_000, 2_000)),
    "the same, one small": (TWO, (2_000, 300)),
    "the same, many people": (TWO, (20_000, 20_000)),
    "Beta(3, 4), Beta(3, 5)": (((3.0, 4.0), (3.0, 5.0)), (2_000, 2_000)),
    "about 2 % positives": (((0.02, 1.2), (0.03, 1.5)), (20_000, 8_000)),
    "about 96 % positives": (((2.0, 0.1), (1.2, 0.05)), (6_000, 3_000)),
    "six unequal groups": (SIX, (5_000, 2_500, 800, 400, 300, 150)),
}
FITS = 20

TEXT = """# For decisions

Made by `python -m benchmarks.decisions`; do not edit. What is fitted on one half of the people is
measured on the other half: means of {halves} random halves, threshold 0.5, averaged over the coin.

If people are decided about at one threshold, two things count: how often decisions are right, and
how far groups differ in how often they are wrong. The odds difference is the larger one of the
differences in FPR and in FNR.

{decisions}

- *reconcile* keeps scores calibrated besides: `ic.reconcile(tally, infeasible="closest")`.
- *fairlearn* is its `ThresholdOptimizer` for equalized odds. It gives decisions, and no scores.
- `equalize_odds` is what the paper compares with. It flips decisions of a finished classifier, and
  of a score it knows only on which side of the threshold it lies. On the three larger data sets it
  keeps fewer decisions right than `reconcile`; its odds difference is smaller on COMPAS and larger
  on the other two.
- With a few dozen people in a group, as in health, nothing holds on new people, and `reconcile`
  is the worst of the four in accuracy.

## How many levels

`reconcile` pools the scores of a group into levels. `levels="auto"` makes (2 n)^(1/3) of them, for
n people. Odds difference, and below it accuracy: means of {halves} halves of income, and of {fits}
fits to people drawn from known distributions, measured on {truth:,} new people per group.

{levels}

Four levels cost accuracy nearly everywhere. Many levels cost equality on income, with six unequal
groups and where scores are smooth; with one small group, or next to no positives or negatives, the
number hardly matters and 64 is as good or better. Differences of a tenth between neighbouring
columns are within chance. The factor 2 was chosen among 0.7 to 3.4 on income, the six groups and
the small group, with draws that overlap these, so those three rows flatter it.
"""


class People(NamedTuple):
    """Scores, labels and groups, one per row."""

    score: Floats
    label: npt.NDArray[np.intp]
    group: npt.NDArray[Any]

    def take(self, rows: npt.NDArray[np.intp]) -> People:
        """Some of the rows."""
        return People(self.score[rows], self.label[rows], self.group[rows])

    @property
    def tally(self) -> ic.Tally:
        """Their tally."""
        return ic.tally(score=self.score, label=self.label, group=self.group)

    def halves(self, times: int) -> Iterator[tuple[People, People]]:
        """Random halves, so many times."""
        for seed in range(times):
            order = np.random.default_rng(seed).permutation(len(self.score))
            middle = len(order) // 2
            yield self.take(order[:middle]), self.take(order[middle:])


class Decided(NamedTuple):
    """What decisions are worth."""

    accuracy: float
    odds_difference: float


def compas() -> People:
    rows = compas_rows()
    return People(rows["score"], rows["label"].astype(np.intp), rows["group"])


def scored(name: str) -> People:
    from reproduction.datasets import scored as read

    data = read(name)
    return People(data["score"], data["label"].astype(np.intp), data["group"])


def adult() -> People:
    """The rows of adult.test, with scores of trees that were grown on adult.data."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    from reproduction.datasets import adult as read
    from reproduction.models import encode

    data = read()
    X, y, first = encode(data), data.label, 32_561
    model = HistGradientBoostingClassifier(random_state=0).fit(X[:first], y[:first])
    sex = data.table["sex"].to_numpy()
    return People(model.predict_proba(X[first:])[:, 1], y[first:], sex[first:])


DATA: dict[str, Callable[[], People]] = {
    "COMPAS, by race": compas,
    "income, by sex": lambda: scored("income"),
    "health": lambda: scored("health"),
    "Adult, by sex": adult,
}


def measured(tally: ic.Tally) -> Decided:
    audit = ic.audit(tally, confidence=None)
    return Decided(audit.overall.accuracy, audit.equalized_odds_difference)


def nothing(fitted: People, new: People) -> Decided:
    del fitted
    return measured(new.tally)


def equalize_odds(fitted: People, new: People) -> Decided:
    return measured(ic.equalize_odds(fitted.tally, rates="hard").expected(new.tally))


def reconcile(fitted: People, new: People, levels: Any = "auto") -> Decided:
    rule = ic.reconcile(fitted.tally, levels=levels, infeasible="closest")
    return measured(rule.expected(new.tally))


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose features are its scores."""

    def fit(self, X: Any, y: Any) -> Given:
        """Nothing to learn."""
        del X
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """The scores."""
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


def fairlearn(fitted: People, new: People) -> Decided:
    from fairlearn.postprocessing import ThresholdOptimizer

    optimizer = ThresholdOptimizer(
        estimator=Given().fit(fitted.score, fitted.label),
        constraints="equalized_odds",
        objective="accuracy_score",
        prefit=True,
        predict_method="predict_proba",
    )
    optimizer.fit(fitted.score[:, None], fitted.label, sensitive_features=fitted.group)
    # The chance of a positive decision, so that no coin is needed.
    positive = optimizer._pmf_predict(new.score[:, None], sensitive_features=new.group)[:, 1]
    right = np.where(new.label == 1, positive, 1.0 - positive)
    rates = [
        [positive[(new.group == group) & (new.label == label)].mean() for label in (0, 1)]
        for group in np.unique(new.group)
    ]
    return Decided(float(right.mean()), float(np.ptp(rates, axis=0).max()))


METHODS: dict[str, Callable[[People, People], Decided]] = {
    "nothing": nothing,
    'equalize_odds(rates="hard")': equalize_odds,
    "reconcile": reconcile,
    "fairlearn": fairlearn,
}


def decisions(halves: int) -> str:
    """The table of methods on data sets."""
    lines = [["data, people", "", *METHODS], ["---"] * (len(METHODS) + 2)]
    for name, read in DATA.items():
        people = read()
        pairs = list(people.halves(halves))
        means = {
            title: np.mean([method(*pair) for pair in pairs], axis=0)
            for title, method in METHODS.items()
        }
        for index, number in enumerate(("accuracy", "odds difference")):
            head = f"{name}, {len(people.score):,}" if index == 0 else ""
            lines.append([head, number, *(f"{mean[index]:.3f}" for mean in means.values())])
        print(name, means, flush=True)
    return markdown(lines)


def drawn(shapes: tuple[tuple[float, float], ...], rows: tuple[int, ...], seed: int) -> People:
    """People whose scores are calibrated, from a Beta distribution per group."""
    random = np.random.default_rng(seed)
    score = np.concatenate([random.beta(a, b, n) for (a, b), n in zip(shapes, rows, strict=True)])
    label = (random.random(len(score)) < score).astype(np.intp)
    return People(score, label, np.repeat(np.arange(len(rows)), rows))


def levels(halves: int) -> str:
    """The table of numbers of levels on populations."""
    lines = [["people", "rows", *map(str, LEVELS)], ["---"] * (len(LEVELS) + 2)]

    def add(name: str, rows: str, pairs: list[tuple[ic.Tally, ic.Tally]]) -> None:
        means = []
        for number in LEVELS:
            rules = [ic.reconcile(t, levels=number, infeasible="closest") for t, _ in pairs]  # type: ignore[arg-type]
            found = [measured(r.expected(new)) for r, (_, new) in zip(rules, pairs, strict=True)]
            means.append(np.mean(found, axis=0))
        lines.append([name, rows, *(f"{mean[1]:.4f}" for mean in means)])
        lines.append(["", "", *(f"{mean[0]:.4f}" for mean in means)])
        print(name, rows, means, flush=True)

    income = scored("income")
    tallies = [(fitted.tally, new.tally) for fitted, new in income.halves(halves)]
    add("income, halves", f"{len(income.score) // 2:,}", tallies)
    for name, (shapes, rows) in POPULATIONS.items():
        truth = drawn(shapes, (ROWS_OF_TRUTH,) * len(shapes), 12345).tally
        fitted = [drawn(shapes, rows, seed).tally for seed in range(FITS)]
        add(name, ", ".join(f"{n:,}" for n in rows), [(tally, truth) for tally in fitted])
    return markdown(lines)


def markdown(lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    halves = int(sys.argv[1]) if len(sys.argv) > 1 else HALVES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ic.IsocostWarning)
        text = TEXT.format(
            halves=halves,
            fits=FITS,
            truth=ROWS_OF_TRUTH,
            decisions=decisions(halves),
            levels=levels(halves),
        )
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
