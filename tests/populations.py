"""Populations that tests share: exact ones for the theorems, counts, and periods to watch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import isocost as ic

CLOSE = 1e-11


@dataclass(frozen=True)
class Population:
    """Masses of negatives and positives at each score; all masses add up to 1."""

    score: np.ndarray
    neg: np.ndarray
    pos: np.ndarray

    @classmethod
    def of(cls, levels):
        """From (score, negatives, positives), levels with the same score put together."""
        found: dict[float, list[float]] = {}
        for score, neg, pos in levels:
            mass = found.setdefault(score, [0.0, 0.0])
            mass[0] += neg
            mass[1] += pos
        score = np.array(list(found))
        neg, pos = np.array(list(found.values())).T
        total = neg.sum() + pos.sum()
        return cls(score, neg / total, pos / total)

    @property
    def mu(self):
        return float(self.pos.sum())

    @property
    def rates(self):
        c_fp = float((self.score * self.neg).sum() / self.neg.sum())
        return c_fp, float(((1 - self.score) * self.pos).sum() / self.pos.sum())

    @property
    def mean_score(self):
        return float((self.score * (self.neg + self.pos)).sum())

    @property
    def gap(self):
        return float(np.abs(self.pos - self.score * (self.neg + self.pos)).sum())

    def cost(self, a, b):
        return a * self.rates[0] + b * self.rates[1]


def placed(mu, c_fp, c_fn):
    """A population with these error rates and the smallest gap, |mu c_fn - (1-mu) c_fp|.

    A share s of the trivial score and the rest perfect is calibrated; then positives are moved
    from score 1 to score 0, or negatives from 0 to 1, which adds one error rate and as much gap.
    """
    r = mu * c_fn - (1 - mu) * c_fp
    up, down = max(r, 0.0), max(-r, 0.0)
    s = c_fp / mu if r >= 0 else c_fn / (1 - mu)
    levels = [
        (mu, s * (1 - mu), s * mu),
        (1.0, down, (1 - s) * mu - up),
        (0.0, (1 - s) * (1 - mu) - down, up),
    ]
    assert min(min(level[1:]) for level in levels) >= -CLOSE, "no room for this point"
    return Population.of([(h, max(n, 0.0), max(p, 0.0)) for h, n, p in levels])


def tally_of(populations):
    rows = [
        (p.score[i], label, group, mass[i])
        for group, p in populations.items()
        for label, mass in enumerate((p.neg, p.pos))
        for i in np.flatnonzero(mass > 0)
    ]
    names = ("score", "label", "group", "weight")
    return ic.tally(
        dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), weight="weight"
    )


base_rates = st.integers(2, 38).map(lambda i: i / 40)
amounts = st.integers(0, 5).map(float)


@st.composite
def populations(draw):
    """Scores on a grid of 32 with any masses: any miscalibration there is."""
    scores = draw(st.lists(st.integers(0, 32), min_size=1, max_size=6, unique=True))
    levels = [(s / 32, draw(st.integers(0, 40)), draw(st.integers(0, 40))) for s in scores]
    assume(sum(n for _, n, _ in levels) and sum(p for _, _, p in levels))
    return Population.of(levels)


@st.composite
def near_line(draw, mu):
    """A population whose gap is small and known, anywhere along the calibrated line."""
    s = draw(st.integers(0, 8)) / 10
    r = draw(st.integers(-10, 10)) / 100 * min(mu, 1 - mu)
    up, down = max(r, 0.0), max(-r, 0.0)
    return placed(mu, s * mu + down / (1 - mu), s * (1 - mu) + up / mu)


@st.composite
def costs(draw):
    """A cost and its coefficients as functions of the base rate."""
    fp, fn = draw(amounts), draw(amounts)
    assume(fp + fn > 0)
    if draw(st.booleans()):
        return ic.Cost.weighted(fp=fp, fn=fn), lambda mu: (fp * (1 - mu), fn * mu)
    return ic.Cost(fp=fp, fn=fn), lambda _: (fp, fn)


@st.composite
def populations_at(draw, mu):
    p = draw(populations())
    neg, pos = p.neg / p.neg.sum() * (1 - mu), p.pos / p.pos.sum() * mu
    return Population(p.score, neg, pos)


def two_scores(data, mu):
    first = data.draw(st.one_of(near_line(mu), populations_at(mu)))
    second = data.draw(st.one_of(near_line(mu), populations_at(mu)))
    return first, second


def drawn(seed, shapes, rows, flip=False):
    """Calibrated Beta scores; with ``flip`` score and label the other way round."""
    data = drawn_rows(seed, rows, shapes)
    if flip:
        data |= {"score": 1.0 - data["score"], "label": 1 - data["label"]}
    return ic.tally({**data, "group": [f"g{group}" for group in data["group"]]})


TWO = [(0.8, 1.2), (0.7, 1.5)]
"""Shapes of scores of two groups with unlike base rates."""


def drawn_rows(seed, sizes, shapes=TWO):
    """Rows with calibrated Beta scores and numbers for groups."""
    rng = np.random.default_rng(seed)
    score = np.concatenate([rng.beta(*shape, n) for shape, n in zip(shapes, sizes, strict=True)])
    label = (rng.random(len(score)) < score).astype(int)
    return {"score": score, "label": label, "group": np.repeat(np.arange(len(sizes)), sizes)}


INCOME = [(0.35, 0.8), (0.25, 1.8), (0.3, 1.5), (0.25, 2.2), (0.4, 0.8), (0.3, 2)]
"""Shapes of income scores in six groups, two of them sharp and with many positives."""

ROWS = [5000, 2500, 800, 400, 300, 150]


def from_counts(groups, edges=(), weight=None):
    """A tally from {group: [(score, rows, positives), ...]}."""
    score, label, group = [], [], []
    for name, table in groups.items():
        for value, rows, positives in table:
            score += [value] * rows
            label += [1] * positives + [0] * (rows - positives)
            group += [name] * rows
    data = {"score": score, "label": label, "group": group}
    if weight is not None:
        data["w"] = [weight[name] for name in group]
        return ic.tally(data, weight="w", edges=edges)
    return ic.tally(data, edges=edges)


@st.composite
def tables(draw, groups=(2, 3), scores=(1, 3), rows=(20, 60)):
    names = "abcdefghij"[: draw(st.integers(*groups))]
    table = {}
    for name in names:
        values = draw(
            st.lists(st.integers(0, 20), min_size=scores[0], max_size=scores[1], unique=True)
        )
        counts = [draw(st.integers(*rows)) for _ in values]
        positives = [draw(st.integers(0, n)) for n in counts]
        assume(0 < sum(positives) < sum(counts))
        table[name] = [
            (v / 20, n, y) for v, n, y in zip(sorted(values), counts, positives, strict=True)
        ]
    return table


SHAPES = {"a": (1.2, 1.8), "b": (1.0, 2.2)}


def period(random, rows, harm=0.0, pull=0.0, weighted=False):
    """Calibrated scores; ``harm`` raises those of negatives in a, ``pull`` bends labels."""
    score = np.concatenate([random.beta(*shape, rows) for shape in SHAPES.values()])
    group = np.repeat(list(SHAPES), rows)
    label = (random.random(2 * rows) < score + pull * (0.5 - score)).astype(int)
    score = np.where((group == "a") & (label == 0), np.minimum(score + harm, 1.0), score)
    data = {"score": score, "label": label, "group": group}
    if weighted:
        data["weight"] = random.gamma(4.0, 0.25, 2 * rows)
    return ic.tally(data, weight="weight" if weighted else None)
