"""Tally and apply of Parquet files, beside the same query written by hand for DuckDB.

    python -m benchmarks.files [rows]

Each run is a process of its own, so that peak memory is its own and caches do not help.  The best
of several counts, ours and the other in turns.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.timing import shown

ROWS = int(float(os.environ.get("ISOCOST_BENCH_ROWS", "1e8")))
GROUPS = 10
LIMIT = "512MB"

BY_HAND = """
    SELECT "group", label, least(floor(score * 1024), 1023)::INT AS bin,
           count(*), sum(score), sum(score * score)
    FROM read_parquet('data.parquet') GROUP BY ALL
"""


def make(path: Path, rows: int) -> None:
    """A file of ids, roughly calibrated scores, labels and ten groups, larger ones in pieces."""
    import duckdb

    query = f"""
        SELECT range AS id, score, (random() < score)::TINYINT AS label,
               'group ' || hash(range) % {GROUPS} AS "group"
        FROM (SELECT range, pow(random(), 1.5) AS score FROM range({rows}))
    """
    connection = duckdb.connect(config={"preserve_insertion_order": "false"})
    connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def rule() -> object:
    """Half of the groups are withheld in part."""
    import isocost as ic
    from isocost.rules import Row

    names = tuple(f"group {i}" for i in range(GROUPS))
    rows = tuple(
        Row(name, 0.0, 1.0, "set", 0.4, 0.1 + 0.15 * i) for i, name in enumerate(names[:5])
    )
    return ic.Rule(groups=names, rows=rows, method="benchmark")


def apply_by_hand() -> str:
    """The same coin, as one would write it for this rule and these columns."""
    from isocost.coin import hex_bound

    whens = " ".join(
        f"""WHEN "group" = 'group {i}' THEN CASE WHEN substr(md5('isocost:' || id), 1, 13)
            < '{hex_bound(int((0.1 + 0.15 * i) * 2**52))}' THEN 0.4 ELSE score END"""
        for i in range(5)
    )
    new = f"CASE {whens} ELSE score END AS score"
    return f"""COPY (SELECT id, {new}, label, "group" FROM read_parquet('data.parquet'))
               TO 'hand.parquet' (FORMAT parquet)"""


def run_one(what: str) -> None:
    """One run in this process: prints seconds and peak memory in MB."""
    import duckdb

    import isocost as ic

    limits = {"memory_limit": LIMIT}
    calls = {
        "tally": lambda: ic.tally("data.parquet", memory_limit=LIMIT),
        "tally by hand": lambda: duckdb.connect(config=limits).execute(BY_HAND).fetchnumpy(),
        "apply": lambda: ic.apply_file(
            rule(),
            "data.parquet",
            "out.parquet",
            id="id",
            output_column="score",
            force=True,
            memory_limit=LIMIT,
        ),
        "apply by hand": lambda: duckdb.connect(config=limits).execute(apply_by_hand()),
    }
    _ = ic.tally, ic.apply_file
    start = time.perf_counter()
    calls[what]()
    took = time.perf_counter() - start
    print(took, peak_memory())


def peak_memory() -> float:
    """The most memory that this process has had, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # What getrusage tells begins with the parent's memory at the time of the fork.
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(folder: Path, whats: tuple[str, ...], runs: int) -> dict[str, tuple[float, float]]:
    """The shortest time and the highest peak of each, in turns."""
    found: dict[str, list[tuple[float, float]]] = {what: [] for what in whats}
    root = Path(__file__).parents[1]
    path = os.pathsep.join([str(root), str(root / "src")])
    for _ in range(runs):
        for what in whats:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.files", "run", what],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path},
                capture_output=True,
                text=True,
                check=True,
            )
            took, memory = map(float, done.stdout.split())
            found[what].append((took, memory))
    return {w: (min(t for t, _ in all_), max(m for _, m in all_)) for w, all_ in found.items()}


def tallying(rows: int = ROWS, runs: int = 3) -> list[tuple[str, str, str, str]]:
    """Tally, its memory, and how the time grows with the rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few = max(rows // 10, 100_000)
        make(folder / "data.parquet", few)
        small = measured(folder, ("tally",), runs)["tally"][0]
        make(folder / "data.parquet", rows)
        found = measured(folder, ("tally", "tally by hand"), runs)
    (ours, memory), (hand, _) = found.values()
    what, growth = f"tally of Parquet, {rows:.0e} rows", ours / small / (rows / few)
    return [
        (what, shown(ours), f"{ours / hand:.2f} times DuckDB by hand ({shown(hand)})", "<= 1.25"),
        (what, f"{memory:.0f} MB", f"peak memory of the process, limit {LIMIT}", "< 600 MB"),
        (what, f"{growth:.2f}", f"times as long a row as for {few:.0e} rows", "<= 1.3"),
    ]


def rewriting(rows: int = ROWS, runs: int = 2) -> list[tuple[str, str, str, str]]:
    """Apply with the coin and write Parquet, rows in their order."""
    with tempfile.TemporaryDirectory() as name:
        make(Path(name) / "data.parquet", rows)
        found = measured(Path(name), ("apply", "apply by hand"), runs)
    (ours, memory), (hand, _) = found.values()
    what = f"apply and write Parquet, {rows:.0e} rows"
    return [
        (what, shown(ours), f"{ours / hand:.2f} times DuckDB by hand ({shown(hand)})", "<= 1.3"),
        (what, f"{memory:.0f} MB", f"peak memory of the process, limit {LIMIT}", "-"),
    ]


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["run"]:
        run_one(arguments[1])
        return
    rows = int(float(arguments[0])) if arguments else ROWS
    for part in (tallying, rewriting):
        for row in part(rows):
            print("  ".join(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
