"""Ways to train with equal error rates, held out, on COMPAS and Adult.

    python -m benchmarks.trained [splits]

Writes the table of docs/scikit-learn.md.  Fetches the data if they are not there (see
reproduction/fetch.py).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from isocost.learn import EqualizedOddsLogisticRegression
from reproduction import zafar
from reproduction.datasets import adult, compas
from reproduction.models import (
    TESTED_ROWS,
    TRAINED_ROWS,
    Features,
    encode,
    errors_of,
    exponentiated_gradient,
    zafar_features,
)

PAGE = Path("docs/scikit-learn.md")
BEGIN, END = "<!-- made by python -m benchmarks.trained -->\n", "<!-- end of what was made -->\n"

FIRST_SEED = 100
"""Temperatures and the rule to stop were chosen on the splits of seeds 0 to 9: not used here."""

Way = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Decisions, or their probability, of everybody: a function of X, y, groups and training rows."""


def free(X: np.ndarray, y: np.ndarray, _: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return LogisticRegression(max_iter=2000).fit(X[rows], y[rows]).predict(X)


def baseline(X: np.ndarray, y: np.ndarray, group: np.ndarray, rows: np.ndarray) -> np.ndarray:
    program = zafar.program(X[rows], y[rows], group[rows], C=1.0)
    return (program.scores(zafar.train(program, restarts=1), X) > 0.5).astype(int)


def reduction(bound: float) -> Way:
    return lambda X, y, group, rows: exponentiated_gradient(X, y, group, rows, bound)


def ours(bound: float) -> Way:
    model = EqualizedOddsLogisticRegression(bound=bound)
    return lambda X, y, group, rows: model.fit(
        X[rows], y[rows], sensitive_features=group[rows]
    ).predict(X)


WAYS: dict[str, Way] = {
    "no constraint": free,
    "EO-Trained (Zafar et al.), covariances of 0": baseline,
    "`ExponentiatedGradient`, bound 0.02": reduction(0.02),
    "`ExponentiatedGradient`, bound 0.01": reduction(0.01),
    "`EqualizedOddsLogisticRegression`, bound 0.05": ours(0.05),
    "`EqualizedOddsLogisticRegression`, bound 0.02": ours(0.02),
}


def measured(study: Features, trained: int, tested: int, splits: int) -> dict[str, np.ndarray]:
    """Accuracy and the larger difference of FPR and FNR of each way, split by split."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    for split in range(splits):
        order = np.random.default_rng(FIRST_SEED + split).permutation(len(study.y))
        rows, held_out = order[:trained], order[trained : trained + tested]
        X = StandardScaler().fit(study.X[rows]).transform(study.X)
        for name, way in WAYS.items():
            answer = way(X, study.y, study.group, rows)[held_out]
            errors = errors_of(answer, study.y[held_out], study.group[held_out])
            worst = max(errors["FPR difference"], errors["FNR difference"])
            found[name].append((errors["accuracy"], worst))
        print(f"split {split + 1} of {splits}", flush=True)
    return {name: np.array(rows) for name, rows in found.items()}


def main() -> None:
    splits = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    recidivism, data = zafar_features(compas()), adult()
    income = Features(encode(data), data.label, data.table["sex"].to_numpy())
    half = len(recidivism.y) // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        columns = [
            measured(recidivism, half, half, splits),
            measured(income, TRAINED_ROWS, TESTED_ROWS, splits),
        ]
    titles = ["accuracy", "difference"]
    header = ["trained by", *(f"{name}: {what}" for name in ("COMPAS", "Adult") for what in titles)]
    lines = [header, ["---"] * len(header)]
    for name in WAYS:
        means = np.concatenate([column[name].mean(axis=0) for column in columns])
        lines.append([name, *(f"{mean:.4f}" for mean in means)])
        spread = [column[name].std(axis=0, ddof=1) / splits**0.5 for column in columns]
        print(name, np.round(means, 4), "standard errors", np.round(np.concatenate(spread), 4))
    note = (
        f"Means over {splits} splits. COMPAS: half of 5,278 defendants to train on, race as a "
        f"feature, judged on the others. Adult: {TRAINED_ROWS:,} people to train on, judged on "
        f"{TESTED_ROWS:,} others, between women and men.\nThe difference is the larger of those in "
        "FPR and FNR between the two groups, among people who were not trained on."
    )
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{note}\n\n{table}\n\n{END}{rest.split(END)[1]}")
    print(table)


if __name__ == "__main__":
    main()
