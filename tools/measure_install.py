"""Measure what an installation brings: python tools/measure_install.py [PYTHON].

Installs isocost into an environment of its own and prints, as Markdown, the megabytes and packages
of each part, and how long installing and starting take.  Sizes are those of the files as installed,
without the compiled bytecode.  Of the parts, each counts what the rows above have not brought.
docs/architecture.md has the result and what follows from it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent

PARTS = {
    "core": ("numpy", "scipy", "narwhals", "lazy-loader"),
    "files": ("duckdb",),
    "learn": ("scikit-learn",),
    "cli": ("typer", "rich"),
}
"""The parts that the requirements could be divided into."""

SIZES = """
import importlib.metadata as m, json, re
sizes, needs = {}, {}
for one in m.distributions():
    name = re.sub(r"[-_.]+", "-", one.name).lower()
    files = [f for f in one.files or () if "__pycache__" not in str(f)]
    sizes[name] = sum(p.stat().st_size for p in map(one.locate_file, files) if p.is_file())
    plain = (r for r in one.requires or () if "extra ==" not in r)
    needs[name] = [re.sub(r"[-_.]+", "-", re.match(r"[\\w.-]+", r)[0]).lower() for r in plain]
print(json.dumps([sizes, needs]))
"""


def seconds_of(*command: str | Path, repeats: int = 1) -> float:
    """The fastest of several runs of a command."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


def install(python: str, folder: Path, *what: str) -> tuple[Path, float]:
    """A new environment with some packages, and the seconds that pip took."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    new = folder / "bin" / "python"
    pip = (new, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    return new, seconds_of(*pip, "--no-cache-dir", *what)


def closure(names: tuple[str, ...], needs: dict[str, list[str]]) -> set[str]:
    """The packages, and all that they need and that is installed."""
    known: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in needs and name not in known:
            known.add(name)
            waiting += needs[name]
    return known


def main() -> None:
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        whole, whole_seconds = install(python, folder / "whole", str(ROOT))
        _, core_seconds = install(python, folder / "core", *PARTS["core"])
        made = subprocess.run([whole, "-c", SIZES], check=True, capture_output=True, text=True)
        sizes, needs = json.loads(made.stdout)
        show_parts(sizes, needs)
        print(f"\n`pip install .` took {whole_seconds:.0f} s, the core {core_seconds:.0f} s.\n")
        show_times(whole, folder)


def show_parts(sizes: dict[str, int], needs: dict[str, list[str]]) -> None:
    before: set[str] = set()
    print("| part | packages | MB | the largest |\n|---|---|---|---|")
    for part, names in {**PARTS, "isocost itself": ("isocost",)}.items():
        new = closure(names, needs) - before
        before |= new
        largest = sorted(new, key=lambda name: -sizes[name])[:3]
        shown = ", ".join(f"{name} {sizes[name] / 1e6:.1f}" for name in largest)
        print(f"| {part} | {len(new)} | {sum(sizes[name] for name in new) / 1e6:.1f} | {shown} |")
    total = sum(sizes[name] for name in before) / 1e6
    print(f"| **together** | {len(before)} | {total:.1f} | |")


def show_times(python: Path, folder: Path) -> None:
    isocost = python.with_name("isocost")
    nothing = seconds_of(python, "-c", "pass", repeats=5)
    runs = {
        "python -c 'import isocost'": (python, "-c", "import isocost"),
        "python -c 'import isocost; isocost.audit'": (
            python,
            "-c",
            "import isocost; isocost.audit",
        ),
        "isocost --version": (isocost, "--version"),
        "isocost --help": (isocost, "--help"),
        "isocost audit data.csv": (isocost, "audit", folder / "data.csv"),
    }
    demo = (isocost, "demo", "--data", "-o", folder / "data.csv")
    subprocess.run([*map(str, demo)], check=True, stdout=subprocess.DEVNULL)
    print(f"| command | seconds, of which Python itself {nothing:.2f} |\n|---|---|")
    for name, command in runs.items():
        print(f"| `{name}` | {seconds_of(*command, repeats=3):.2f} |")


if __name__ == "__main__":
    main()
