"""EO-Trained on ProPublica's COMPAS over ten splits, beside plain regression and one dccp run.

    python -m benchmarks.trained [splits]

Fetches the table if it is not there (see reproduction/fetch.py).
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

from isocost.learn.trained import EqualizedOddsLogisticRegression
from isocost.tables import text_table
from reproduction.datasets import compas
from reproduction.models import Features, zafar_features

HEADER = ("split", "model", "seconds", "train loss", "covariance", "accuracy", "FPR gap", "FNR gap")


def on_test(study: Features, test: np.ndarray, decision: np.ndarray) -> tuple[float, ...]:
    """Accuracy and the absolute gaps of FPR and FNR on the test half."""
    said, truth = decision > 0, study.y[test] == 1
    black = study.group[test] == "African-American"
    gaps = [
        abs((said != truth)[black & (truth == label)].mean()
            - (said != truth)[~black & (truth == label)].mean())
        for label in (False, True)
    ]  # fmt: skip
    return float((said == truth).mean()), *gaps


def split(study: Features, seed: int) -> list[tuple[object, ...]]:
    order = np.random.default_rng(seed).permutation(len(study.y))
    train, test = np.array_split(order, 2)
    X, y, group = study.X[train], study.y[train], study.group[train]
    rows: list[tuple[object, ...]] = []

    def add(name: str, seconds: float, model: object, loss: float, covariance: float) -> None:
        decision = model.decision_function(study.X[test])  # type: ignore[attr-defined]
        rows.append((seed, name, seconds, loss, covariance, *on_test(study, test, decision)))

    begun = time.perf_counter()
    model = EqualizedOddsLogisticRegression("fpr", C=None).fit(X, y, sensitive_features=group)
    spent = time.perf_counter() - begun
    starts = {start.name: start for start in model.starts_}
    free, single = starts["unconstrained"], starts["tau=5"]
    plain = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(X, y)
    add("unconstrained", 0.0, plain, free.loss, free.violation)
    add("trained", spent, model, model.loss_, max(map(abs, model.achieved_["fpr"].values())))
    rows.append((seed, "one dccp run", single.seconds, single.loss, single.violation))
    return rows


def main() -> None:
    splits = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    study = zafar_features(compas())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = [row for seed in range(splits) for row in split(study, seed)]
    for name in ("unconstrained", "trained", "one dccp run"):
        mine = [row[2:] for row in rows if row[1] == name]
        rows.append(("mean", name, *np.mean(np.array(mine, dtype=float), axis=0)))
    shown = [
        [str(row[0]), str(row[1]), *(f"{value:.5f}" for value in row[2:])]
        + [""] * (len(HEADER) - len(row))
        for row in rows
    ]
    print(text_table(HEADER, shown))


if __name__ == "__main__":
    main()
