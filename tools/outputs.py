"""Keep what every command answers on twenty data sets, and compare two versions of the package.

    python tools/outputs.py keep before            # into build/outputs/before.json, some minutes
    python tools/outputs.py keep after
    python tools/outputs.py compare before after   # every difference; numbers to 1e-12

Use it around a change that should alter no answer: tests look at parts of an output, this at all.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests import processes  # noqa: E402

FOLDER = ROOT / "build" / "outputs"
CLOSE = 1e-12
KEYS = ("group", "method", "rule", "name", "number", "measure", "label", "threshold")
"""Records in a list are compared by the first of these that all of them have."""

METHODS = ("withhold", "coarsen", "odds", "reconcile", "hand_over")

EMBEDDED = re.compile(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', re.DOTALL)

POPULATIONS: dict[str, list[tuple[str, int, float, float]]] = {
    "two": [("a", 3000, 2, 3), ("b", 2000, 1, 3)],
    "alike": [("a", 1000, 2, 3), ("b", 1000, 2, 3)],
    "three": [("a", 2000, 2, 2), ("b", 2000, 2, 2), ("c", 2000, 1, 4)],
    "five": [(name, 800, 1 + i / 3, 3.0) for i, name in enumerate("abcde")],
    "nine": [(f"site {i}", 400, 1 + i / 6, 2.0) for i in range(9)],
    "tiny": [("a", 3000, 2, 3), ("b", 2500, 1, 3), ("c", 12, 1, 1), ("d", 7, 1, 1)],
    "rare": [("a", 6000, 0.3, 12), ("b", 5000, 0.3, 20)],
    "common": [("a", 3000, 12, 0.5), ("b", 3000, 9, 0.5)],
    "far": [("a", 3000, 8, 2), ("b", 3000, 1, 9)],
    "few": [("a", 25, 2, 3), ("b", 25, 2, 3)],
}
"""Groups as (name, people, parameters of the beta distribution of their calibrated scores)."""

OPTIONS: dict[str, list[str]] = {
    "": [],
    "weighted": ["--weight", "weight"],
}


def write(path: Path, groups: list[tuple[str, int, float, float]], twist: str) -> None:
    """A file of people; the second ten data sets have weights, and scores that are off."""
    random = np.random.default_rng(len(path.stem) * 1000 + len(groups))
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "score", "label", "group", "weight"])
        number = 0
        for name, people, a, b in groups:
            scores = random.beta(a, b, people)
            labels = random.random(people) < (scores**1.3 if twist else scores)
            weights = random.lognormal(0, 0.5, people) if twist else np.ones(people)
            for score, label, weight in zip(scores.tolist(), labels, weights, strict=True):
                number += 1
                rows.writerow([number, f"{score:.6f}", int(label), name, f"{weight:.4f}"])


def commands(weight: list[str], cost: str) -> Iterator[list[str]]:
    """The commands, in an order in which each finds its files."""
    read = ["data.csv", *weight]
    asked = [*read, "--cost", cost]
    yield ["look", "data.csv", "--format", "json"]
    yield ["audit", *asked, "--measures", "all", "--format", "json"]
    yield ["audit", *asked, "--tolerance", "0.02", "--threshold", "0.4", "--no-plot"]
    yield ["plan", *asked, "--format", "json"]
    yield ["bounds", *asked, "--format", "json"]
    yield ["tally", *read, "-o", "tally.json"]
    yield ["recalibrate", *read, "-o", "recalibrate.json"]
    for method in METHODS:
        options = ["--method", method, "--anyway", "-o", f"{method}.json"]
        if method in ("withhold", "coarsen"):
            options += ["--cost", cost]
        if method == "hand_over":
            options += ["--share", "least"]
        elif method != "odds":
            options += ["--infeasible", "closest"]
        yield ["fit", *read, *options]
    yield ["compare", *asked, "--format", "json"]
    yield ["watch", "withhold.json", "tally.json", "--format", "json"]
    yield ["sql", "reconcile.json", "--id", "id"]
    yield ["report", *asked, "-o", "report.html"]


def answers(folder: Path, weight: list[str], cost: str) -> dict[str, Any]:
    """What each command prints and writes, JSON as values."""
    kept: dict[str, Any] = {}
    for words in commands(weight, cost):
        before = {path.name for path in folder.iterdir()}
        done = processes.run(*words, cwd=folder, timeout=600)
        written = {}
        for path in sorted(folder.iterdir()):
            if path.name not in before and path.suffix == ".html":
                written[path.name] = [json.loads(x) for x in EMBEDDED.findall(path.read_text())]
            elif path.name not in before:
                written[path.name] = plain(path.read_text())
        kept[" ".join(words)] = {
            "code": done.returncode,
            "out": plain(done.stdout),
            "err": done.stderr.splitlines(),
            "files": written,
        }
    return kept


def plain(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.splitlines()


def keep(name: str) -> None:
    def work(case: tuple[str, str]) -> tuple[str, Any]:
        population, twist = case
        cost = "fpr" if len(population) % 2 else "fnr"
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / "data.csv", POPULATIONS[population], twist)
            return f"{population} {twist}", answers(Path(folder), OPTIONS[twist], cost)

    cases = [(population, twist) for population in POPULATIONS for twist in OPTIONS]
    with ThreadPoolExecutor(2) as pool:
        kept = dict(pool.map(work, cases))
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(kept, indent=1))


def differences(path: str, one: Any, other: Any) -> Iterator[str]:
    """Every place where two values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if key not in one or key not in other:
                yield f"{path}/{key}: only {'after' if key in other else 'before'}"
            else:
                yield from differences(f"{path}/{key}", one[key], other[key])
    elif isinstance(one, list) and isinstance(other, list):
        both = [*one, *other]
        shared = [k for k in KEYS if both and all(isinstance(x, dict) and k in x for x in both)]
        if shared:
            by_key = [{json.dumps(x[shared[0]]): x for x in each} for each in (one, other)]
            yield from differences(path, *by_key)
        elif len(one) != len(other):
            yield f"{path}: {len(one)} entries, then {len(other)}"
        else:
            for index, pair in enumerate(zip(one, other, strict=True)):
                yield from differences(f"{path}/{index}", *pair)
    elif type(one) in (int, float) and type(other) in (int, float):
        if not math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE):
            yield f"{path}: {one!r}, then {other!r}"
    elif one != other:
        yield f"{path}: {one!r}, then {other!r}"


def main() -> None:
    match sys.argv[1:]:
        case ["keep", name]:
            keep(name)
        case ["compare", before, after]:
            texts = [(FOLDER / f"{name}.json").read_text() for name in (before, after)]
            found = list(differences("", *map(json.loads, texts)))
            print(*found, f"{len(found):,} differences", sep="\n")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
