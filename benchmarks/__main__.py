"""Run the benchmarks and write docs/performance.md: python -m benchmarks."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np

from benchmarks import core, files, frames, learn

PAGE = Path("docs/performance.md")
HEADER = ("what", "took", "which is", "wanted")

TEXT = """# Speed

Made by `make bench`; do not edit. Times depend on the machine; the ratios are measured within
one run, each the best of several, and are what counts.

Machine: {cores} cores, {system}, Python {python}, NumPy {numpy}.

{table}

What the ratios mean:

- *NumPy by hand* is the same cells (n, sum h, sum h^2 per group, label and 1024 bins) written for
  exactly these columns, without checking anything. isocost also checks every score, label and
  group, has finer bins at the tenths, and audits; it is about as fast because it works in chunks
  that fit the cache.
- *One sum of the columns* is the limit for anything that reads the data once.
- *DuckDB by hand* is one query for exactly these columns that checks nothing: 1024 bins for the
  tally, the same coin in the same CASE for apply. Each run is a process of its own, whose peak
  memory is that of the whole process. `ISOCOST_BENCH_ROWS=1e7 make bench` takes fewer rows.
- *As installed* is with bytecode, which pip writes for all that it installs, NumPy too. *Compiled
  anew* is what a checkout takes whose bytecode nobody may write, beside a NumPy that has its own.
- *Compiled by numba* is what a compiler would give. isocost would take it as an extra if it were
  three times as fast; it is not, so there is one kernel, in NumPy.
- *Its own aggregation by hand* is the group-by of the frame's own library: 1024 bins, a count and
  two sums, no checks.
- Peers run in an environment of their own (`benchmarks/peers.txt`) on the same rows.
"""


def markdown(rows: list[tuple[str, ...]]) -> str:
    lines = [HEADER, tuple("---" for _ in HEADER), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    rows: list[tuple[str, ...]] = []
    parts = (
        core.in_memory,
        core.with_options,
        core.against_peers,
        core.applying,
        core.thinking,
        core.importing,
        learn.fitting,
        learn.predicting,
        frames.tallying,
        files.tallying,
        files.rewriting,
    )
    for part in parts:
        for row in part():
            rows.append(row)
            print("  ".join(row), flush=True)
    PAGE.write_text(
        TEXT.format(
            cores=os.cpu_count(),
            system=platform.machine(),
            python=platform.python_version(),
            numpy=np.__version__,
            table=markdown(rows),
        )
    )
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
