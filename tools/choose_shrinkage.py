"""Choose isocost.learn's default shrinkage: simulate a small group beside a large one.

For each method, each kind of miscalibration and each size of the small group, the root mean squared
distance to the true probabilities is found for several values of the shrinkage.  Printed are
its mean over all cases and the worst regret: how far it is above the best value of a case.
"""

import math
import sys

import numpy as np

from isocost.repairs.recalibrate import BetaMap, fit_map

METHODS = ("sigmoid", "beta", "isotonic", "histogram")
VALUES = (0, 1, 2, 5, 10, 20, 30, 50, 75, 100, 200, 400, math.inf)
SIZES = (20, 50, 150, 500, 2000)
LARGE = 5000
COMMON = BetaMap(0.7, 0.7, 0.0)


def bent(scores):
    steps = -1.2 * (scores < 0.4) + 0.8 * (scores > 0.7)
    plain = BetaMap(0.4, 0.4, 0.0)(scores)
    return 1.0 / (1.0 + (1.0 / plain - 1.0) * np.exp(-steps))


KINDS = {
    "same": COMMON,
    "near": BetaMap(0.7, 0.7, 0.3),
    "shift": BetaMap(0.7, 0.7, 1.0),
    "slope": BetaMap(1.6, 1.6, 0.0),
    "bend": bent,
}


def people(random, rows, truth):
    scores = random.beta(1.5, 2.2, rows)
    chance = truth(scores)
    return scores, (random.random(rows) < chance).astype(float), chance


def errors(random, method, truth, rows, repeats):
    found = []
    while len(found) < repeats:
        small, large = people(random, rows, truth), people(random, LARGE, COMMON)
        if small[1].min() == small[1].max():
            continue
        own = fit_map(method, small[0], small[1], 1.0 - small[1])
        score, label = (np.concatenate([small[i], large[i]]) for i in (0, 1))
        pooled = fit_map(method, score, label, 1.0 - label)
        scores, _, chance = people(random, 2000, truth)
        rarer = min(small[1].sum(), rows - small[1].sum())
        shares = [rarer / (rarer + value) for value in VALUES]
        mixed = [share * own(scores) + (1 - share) * pooled(scores) for share in shares]
        found.append([np.mean((after - chance) ** 2) for after in mixed])
    return np.sqrt(np.mean(found, axis=0))


def main(repeats=40):
    random = np.random.default_rng(1)
    print(f"{'shrinkage':23}", *(f"{value:6g}" for value in VALUES))
    for method in METHODS:
        cases = [
            errors(random, method, truth, rows, repeats)
            for truth in KINDS.values()
            for rows in SIZES
        ]
        table = np.array(cases)
        regret = (table - table.min(axis=1, keepdims=True)).max(axis=0)
        print(f"{method + ', mean error':23}", *(f"{x:6.4f}" for x in table.mean(axis=0)))
        print(f"{method + ', worst regret':23}", *(f"{x:6.4f}" for x in regret))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
