"""Tally, audit and apply in memory; importing; each beside its limit."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import isocost as ic
from benchmarks.timing import best, in_turns, peak, sample, shown
from isocost.examples import compas
from isocost.rules import Row

PEERS = Path(".venv-peers/bin/python")


def by_hand(data: dict[str, np.ndarray], groups: int) -> object:
    """The same cells, as one would write them in NumPy for these columns and no others."""
    bins = np.minimum((data["score"] * 1024).astype(np.int64), 1023)
    cell = (data["group"] * 2 + data["label"]) * 1024 + bins
    size = groups * 2 * 1024
    score = data["score"]
    return (
        np.bincount(cell, minlength=size),
        np.bincount(cell, score, size),
        np.bincount(cell, score * score, size),
    )


def audited(data: dict[str, np.ndarray]) -> object:
    """Tally and audit; intervals are timed on their own, since they do not depend on the rows."""
    return ic.audit(ic.tally(data), confidence=None)


def in_memory(rows: int = 10_000_000, groups: int = 10) -> list[tuple[str, str, str, str]]:
    """Tally and audit of ten million rows in ten groups."""
    data = sample(rows, groups)
    ours = best(lambda: audited(data), 7)
    hand = best(lambda: by_hand(data, groups), 5)
    read = best(lambda: [data[name].sum() for name in ("score", "label", "group")], 7)
    memory = peak(lambda: audited(data))
    size = f"tally + audit, {rows:.0e} rows, {groups} groups"
    return [
        (
            size,
            shown(ours),
            f"{ours / hand:.2f} times NumPy bincount by hand ({shown(hand)})",
            "<= 1.3",
        ),
        (
            size,
            shown(ours),
            f"{ours / read:.1f} times one sum of the columns ({shown(read)})",
            "<= 15",
        ),
        (size, f"{memory:.0f} MB", "peak memory above the data", "<= 300 MB"),
    ]


def with_options(rows: int = 10_000_000) -> list[tuple[str, str, str, str]]:
    """The same tally with unknown labels, and with persons of 1,000, 100 and 10 rows each."""
    data = sample(rows, 10)
    label = data["label"].astype(np.float64)
    data["label"] = label.copy()
    label[::10] = np.nan
    unlabelled = {**data, "label": label}
    plain, kept = in_turns(
        lambda: ic.tally(data), lambda: ic.tally(unlabelled, missing_label="keep"), runs=5
    )
    size = f"tally, {rows:.0e} rows, 10 groups"
    told = f"times the tally without ({shown(plain)})"
    found = [
        (f"{size}, a tenth without label", shown(kept), f"{kept / plain:.2f} {told}", "<= 1.15")
    ]
    draw = np.random.default_rng(0)
    for each, bound in ((1000, "<= 3"), (100, "<= 3.7"), (10, "<= 6.5")):
        person = draw.permutation(np.arange(rows) // each)
        repeated = {**data, "person": person, "group": person % 10}
        index = person * 2 + data["label"].astype(np.intp)
        above = (data["score"] >= 0.5).astype(float)
        terms = (None, data["score"], data["score"] ** 2, above)
        counted, hand = in_turns(
            lambda: ic.tally(repeated, person="person"),  # noqa: B023
            lambda: [np.bincount(index, term) for term in terms],  # noqa: B023
            runs=3,
        )
        what = f"{size}, persons of {each:,} rows"
        ratio = f"{counted / plain:.2f} {told}; sums of persons by hand {hand / plain:.2f} more"
        found.append((what, shown(counted), ratio, bound))
    return found


def against_peers(rows: int = 1_000_000) -> list[tuple[str, str, str, str]]:
    """The same measures from AIF360, fairlearn and pandas, two groups."""
    if not PEERS.exists():
        return [("peers", "-", "not installed: run make bench", "-")]
    data = sample(rows, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, **data)
        command = [str(PEERS), "benchmarks/peers.py", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    ours = best(lambda: audited(data), 7)
    cells = best(lambda: ic.tally(data), 7)
    wanted = {"fairlearn": ">= 500", "aif360": ">= 10"}
    names = {
        "fairlearn": "fairlearn MetricFrame, 4 metrics",
        "aif360": "AIF360 ClassificationMetric, 7 rates, its data set made before",
        "pandas_by_hand": "pandas groupby",
        "polars_by_hand": "polars group_by, both cores",
        "numba_kernel": "a loop compiled by numba",
    }
    only_cells = ("pandas_by_hand", "polars_by_hand", "numba_kernel")
    took = {name: cells if name in only_cells else ours for name in names}
    return [
        (
            f"tally{'' if name in only_cells else ' + audit'}, {rows:.0e} rows, 2 groups",
            shown(took[name]),
            f"{_times(theirs / took[name])} times as fast as {names[name]} ({shown(theirs)})",
            wanted.get(name, "-"),
        )
        for name, theirs in json.loads(done.stdout.splitlines()[-1]).items()
    ]


def _times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}"


def applying(rows: int = 2_000_000) -> list[tuple[str, str, str, str]]:
    """Apply with ids against a loop over hashlib that throws the same coins."""
    data = sample(rows, 2)
    groups = ic.tally(data).groups
    rule = ic.Rule(
        groups=groups,
        rows=tuple(Row(group, 0.0, 1.0, "set", 0.4, 0.5) for group in groups),
        method="benchmark",
    )
    few = 200_000

    def loop() -> list[bool]:
        half = 2**51
        return [int(hashlib.md5(b"isocost:%d" % i).hexdigest()[:13], 16) < half for i in range(few)]

    ours = best(lambda: rule.apply(data, id="id"), 5)
    theirs = best(loop, 5) * rows / few
    return [
        (
            f"apply with whole-number ids, {rows:.0e} rows",
            f"{rows / ours / 1e6:.1f} million rows/s",
            f"{theirs / ours:.1f} times as fast as a hashlib loop "
            f"({rows / theirs / 1e6:.2f} million/s)",
            ">= 4",
        )
    ]


def thinking(groups: int = 10) -> list[tuple[str, str, str, str]]:
    """What is computed from the tally alone, whatever the number of rows."""
    tally = ic.tally(sample(2_000_000, groups))
    four = tally.select(tally.groups[:4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ic.IsocostWarning)
        resampled = best(lambda: ic.intervals(tally), 5)
        programs = {
            "reconcile, 10 COMPAS levels, 2 groups": (lambda: ic.reconcile(compas()), "< 1 s"),
            "reconcile, 128 levels, 4 groups": (
                lambda: ic.reconcile(four, levels=128, infeasible="closest"),
                "< 10 s",
            ),
            "equalize_odds, 10 groups": (lambda: ic.equalize_odds(tally), "-"),
            "coarsen, 10 groups": (
                lambda: ic.coarsen(tally, "fnr", allow_decision_changes=True),
                "-",
            ),
        }
        times = {name: (best(call, 3), wanted) for name, (call, wanted) in programs.items()}
    cells = f"from {len(tally.cells):,} cells"
    return [
        ("intervals, 2000 replicates, 10 groups", shown(resampled), cells, "< 1 s"),
        *((name, shown(took), "from the tally", wanted) for name, (took, wanted) in times.items()),
    ]


def importing() -> list[tuple[str, str, str, str]]:
    """Import isocost and touch what an audit of arrays needs, against importing NumPy."""
    touching = "import isocost as ic; ic.tally; ic.audit; ic.withhold; ic.Rule"
    codes = ("import numpy", "import isocost", touching)

    def once(code: str, environment: dict[str, str]) -> float:
        script = f"import time; s = time.perf_counter(); {code}; print(time.perf_counter() - s)"
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, check=True, env=environment)
        return float(done.stdout)

    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        # The first round writes the bytecode; the shortest counts.
        rounds = [[once(code, environment) for code in codes] for _ in range(10)]
    numpy, plain, used = map(min, zip(*rounds, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        source = shutil.copytree(Path(ic.__file__).parent, Path(folder) / "isocost")
        for cache in source.rglob("__pycache__"):
            shutil.rmtree(cache)
        uncompiled = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        anew = min(once(touching, uncompiled) for _ in range(9))
    what = "import, and touch tally, audit, withhold, Rule"
    beside = f"times import numpy ({shown(numpy)})"
    return [
        ("import isocost", shown(plain), f"{plain / numpy:.2f} times import numpy", "<= 2.5"),
        (f"{what}: as installed", shown(used), f"{used / numpy:.2f} {beside}", "<= 2.5"),
        (f"{what}: compiled anew", shown(anew), f"{anew / numpy:.2f} {beside}", "-"),
    ]
