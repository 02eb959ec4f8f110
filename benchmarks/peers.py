"""What peers take for the same rows; runs in their own environment and prints JSON.

python benchmarks/peers.py DATA.npz
"""

import json
import logging
import sys
import time
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402


def best(call, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def fairlearn(data):
    from fairlearn.metrics import (
        MetricFrame,
        false_negative_rate,
        false_positive_rate,
        mean_prediction,
        selection_rate,
    )

    hard = (data["score"] >= 0.5).astype(int)
    metrics = {
        "fpr": false_positive_rate,
        "fnr": false_negative_rate,
        "selection_rate": selection_rate,
        "mean_prediction": mean_prediction,
    }

    def run():
        frame = MetricFrame(
            metrics=metrics, y_true=data["label"], y_pred=hard, sensitive_features=data["group"]
        )
        return frame.by_group

    return best(run, 2)


def aif360(data):
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import ClassificationMetric

    frame = pd.DataFrame(
        {"group": data["group"].astype(float), "label": data["label"].astype(float)}
    )
    truth = BinaryLabelDataset(df=frame, label_names=["label"], protected_attribute_names=["group"])
    guess = truth.copy()
    guess.scores = data["score"].reshape(-1, 1)
    guess.labels = (guess.scores >= 0.5).astype(float)

    def run():
        metric = ClassificationMetric(truth, guess, [{"group": 0}], [{"group": 1}])
        for privileged in (True, False):
            metric.base_rate(privileged=privileged)
            metric.generalized_false_positive_rate(privileged=privileged)
            metric.generalized_false_negative_rate(privileged=privileged)
            metric.false_positive_rate(privileged=privileged)
            metric.false_negative_rate(privileged=privileged)
            metric.accuracy(privileged=privileged)
            metric.selection_rate(privileged=privileged)

    return best(run, 3)


def pandas_by_hand(data):
    frame = pd.DataFrame({name: data[name] for name in ("score", "label", "group")})

    def run():
        made = frame.assign(hs=frame["score"] ** 2, bin=(frame["score"] * 1024).astype(int))
        return made.groupby(["group", "label", "bin"])[["score", "hs"]].agg(["count", "sum"])

    return best(run, 3)


def polars_by_hand(data):
    import polars as pl

    frame = pl.DataFrame({name: data[name] for name in ("score", "label", "group")})
    h = pl.col("score")

    def run():
        place = (h * 1024).floor().clip(upper_bound=1023).cast(pl.Int32).alias("bin")
        sums = (pl.len(), h.sum().alias("s"), (h * h).sum().alias("s2"))
        return frame.group_by("group", "label", place).agg(*sums)

    return best(run, 3)


def numba_kernel(data):
    """What a compiler would give: one loop over the rows, with the same checks."""
    import numba

    @numba.njit
    def count(score, label, group, bins, n, s, s2):
        bad = 0
        for i in range(score.size):
            h, y = score[i], label[i]
            if not (h >= 0.0 and h <= 1.0) or (y != 0 and y != 1):
                bad += 1
                continue
            cell = (group[i] * 2 + y) * bins + min(int(h * bins), bins - 1)
            n[cell] += 1
            s[cell] += h
            s2[cell] += h * h
        return bad

    def run():
        cells = np.zeros((3, int(data["group"].max() + 1) * 2 * 1024))
        return count(data["score"], data["label"], data["group"], 1024, *cells)

    run()  # compiles
    return best(run, 7)


PEERS = (fairlearn, aif360, pandas_by_hand, polars_by_hand, numba_kernel)


def main():
    data = dict(np.load(sys.argv[1]))
    print(json.dumps({peer.__name__: peer(data) for peer in PEERS}))


if __name__ == "__main__":
    main()
