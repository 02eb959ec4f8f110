"""Best of several runs, and the memory a call takes above its data."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np


def best(call: Callable[[], object], runs: int = 5) -> float:
    """The shortest of several runs, in seconds: the one least disturbed by others."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def in_turns(*calls: Callable[[], object], runs: int = 7) -> list[float]:
    """The shortest run of each, all in turns: what disturbs one disturbs the others too."""
    rounds = [[best(call, 1) for call in calls] for _ in range(runs)]
    return [min(times) for times in zip(*rounds, strict=True)]


def peak(call: Callable[[], object]) -> float:
    """The memory at its highest during a call, in MB above what there was before."""
    tracemalloc.start()
    call()
    _, top = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return top / 1e6


def sample(rows: int, groups: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Calibrated scores with labels, integer groups and ids."""
    random = np.random.default_rng(seed)
    group = random.integers(0, groups, rows)
    score = random.beta(1.5 + group / groups, 2.5, rows)
    label = (random.random(rows) < score).astype(np.int64)
    return {"id": np.arange(rows), "group": group, "score": score, "label": label}


def shown(seconds: float) -> str:
    """A time as people write it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
