"""Run the benchmarks and write docs/performance.md: python -m benchmarks."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np

from benchmarks import core, learn

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
- Peers run in an environment of their own (`benchmarks/peers.txt`) on the same rows.
"""


def markdown(rows: list[tuple[str, ...]]) -> str:
    lines = [HEADER, tuple("---" for _ in HEADER), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    rows: list[tuple[str, ...]] = []
    parts = (
        core.in_memory,
        core.against_peers,
        core.applying,
        core.thinking,
        core.importing,
        learn.fitting,
        learn.predicting,
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
