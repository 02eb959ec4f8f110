"""Measure how much the tests notice: break the package in 200 fixed places, one at a time.

    python tools/mutants.py              # branch coverage, then the mutations; about an hour
    python tools/mutants.py --reuse      # the mutations alone, with the coverage of the last run
    python tools/mutants.py --list       # print the places and stop

The whole suite runs once, with branch coverage that remembers which test reached which line.  A
mutation then runs only the tests that reach its line, those of the module's own test file first.
It is killed if one of them fails, survives if none does, and is counted apart if the tests take
longer than the limit or if no test reaches the line.  The sample depends on the source alone, so
two versions of the package are compared by their shares.
"""

from __future__ import annotations

import argparse
import ast
import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = Path("src/isocost")
FOLDER = ROOT / "build" / "mutants"
DATA = FOLDER / "coverage"

COUNT, SEED = 200, 2017
MOST_TESTS, LIMIT = 40, 180
"""Most tests and seconds for one mutation."""

SLOW = (
    "browser/",
    "test_spark",
    "test_estimator_checks",
    "test_docs",
    "reproduction",
    "test_serve",
)
"""Tests that are run last."""

SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}

CONFIG = """
[run]
branch = True
source = isocost
parallel = True
sigterm = True
patch = subprocess, _exit
concurrency = multiprocessing, thread
data_file = {data}
"""


@dataclass(frozen=True)
class Place:
    """A node of the source that can be broken, by its number in its file."""

    file: Path
    index: int
    line: int
    kind: str


class Breaker(ast.NodeTransformer):
    """Numbers the nodes that can be broken, and breaks the one with the wanted number."""

    def __init__(self, wanted: int | None = None) -> None:
        self.wanted = wanted
        self.places: list[tuple[int, str]] = []

    def _here(self, node: ast.expr | ast.stmt, kind: str) -> bool:
        self.places.append((node.lineno, kind))
        return len(self.places) - 1 == self.wanted

    def visit_If(self, node: ast.If) -> ast.AST:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return node
        self.generic_visit(node)
        if self._here(node.test, "if not"):
            node.test = ast.UnaryOp(ast.Not(), node.test)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        for i, operator in enumerate(node.ops):
            if type(operator) in SWAPS and self._here(node, type(operator).__name__):
                node.ops[i] = SWAPS[type(operator)]()
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) in SWAPS and self._here(node, type(node.op).__name__):
            node.op = SWAPS[type(node.op)]()
        return node

    visit_BoolOp = visit_BinOp  # type: ignore[assignment]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and self._here(node, "Not"):
            return node.operand
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool):
            if self._here(node, str(node.value)):
                return ast.copy_location(ast.Constant(not node.value), node)
        elif isinstance(node.value, int | float) and self._here(node, "number"):
            return ast.copy_location(ast.Constant(node.value + 1), node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node


def places() -> list[Place]:
    """The sample: the same for the same source."""
    found = []
    for file in sorted((ROOT / PACKAGE).rglob("*.py")):
        breaker = Breaker()
        breaker.visit(ast.parse(file.read_text(encoding="utf-8")))
        name = file.relative_to(ROOT)
        found += [Place(name, i, line, kind) for i, (line, kind) in enumerate(breaker.places)]
    return sorted(
        random.Random(SEED).sample(found, COUNT), key=lambda place: (place.file, place.index)
    )


def broken(place: Place) -> str:
    """The source of the file with one place broken."""
    breaker = Breaker(place.index)
    tree = breaker.visit(ast.parse((ROOT / place.file).read_text(encoding="utf-8")))
    return ast.unparse(ast.fix_missing_locations(tree))


def cover() -> None:
    """Run the suite once, and remember which test reached which line."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    # Not coverage.ini: erasing old data removes every file called coverage.*.
    config = FOLDER / "settings.ini"
    config.write_text(CONFIG.format(data=DATA))
    words = ["--numprocesses", "auto", "--dist", "loadscope", "--no-loadscope-reorder", "--quiet"]
    words += ["--cov=isocost", "--cov-branch", "--cov-context=test", f"--cov-config={config}"]
    subprocess.run([sys.executable, "-m", "pytest", *words, "--cov-report="], cwd=ROOT, check=False)


def branch_coverage() -> str:
    """The total of the coverage report."""
    words = [sys.executable, "-m", "coverage", "report", f"--data-file={DATA}", "--format=total"]
    # Some tests run copies of the package, which are not what is measured.
    words += ["--precision=2", f"--include={ROOT / PACKAGE}/*"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def tests_by_place(chosen: list[Place]) -> dict[Place, list[str]]:
    """The tests that reach each place, those worth running first in front."""
    from coverage import CoverageData

    data = CoverageData(str(DATA))
    data.read()
    measured = set(data.measured_files())
    reached: dict[Path, dict[int, list[str]]] = {}
    result = {}
    for place in chosen:
        if place.file not in reached:
            file = str(ROOT / place.file)
            reached[place.file] = data.contexts_by_lineno(file) if file in measured else {}
        contexts = reached[place.file].get(place.line, [])
        tests = {context.split("|")[0] for context in contexts if context}
        own = f"test_{place.file.stem}.py"
        if not tests:
            # Reached while importing, or in a process of its own.
            named = {own, "test_cli.py", "test_package.py"}
            tests = {f"tests/{name}" for name in named if (ROOT / "tests" / name).exists()}

        def order(test: str, own: str = own) -> tuple[bool, bool, str]:
            # Neither the alphabet nor the clock decides which of many tests run.
            return any(s in test for s in SLOW), own not in test, str(hash_of(test))

        result[place] = sorted(tests, key=order)[:MOST_TESTS]
    return result


def hash_of(text: str) -> int:
    """A number that is the same in every process."""
    return random.Random(text).getrandbits(32)


def outcome(place: Place, tests: list[str]) -> str:
    """Killed, survived, timeout or unreached."""
    if not tests:
        return "unreached"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for entry in ROOT.iterdir():
            if entry.name not in ("src", "tests", "build", ".git"):
                (copy / entry.name).symlink_to(entry)
        for name in ("src", "tests"):
            leave = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, copy / name, ignore=leave)
        (copy / place.file).write_text(broken(place), encoding="utf-8")
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider"]
        environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                [*words, *tests], cwd=copy, env=environment, timeout=LIMIT, capture_output=True
            )
        except subprocess.TimeoutExpired:
            return "timeout"
    return "survived" if done.returncode == 0 else "killed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reuse", action="store_true", help="do not measure coverage again")
    parser.add_argument("--list", action="store_true", help="print the places and stop")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    chosen = places()
    if asked.list:
        print(*(f"{p.file}:{p.line} {p.kind}" for p in chosen), sep="\n")
        return
    if not asked.reuse:
        cover()
    print(f"branch coverage: {branch_coverage()} %", flush=True)
    tests = tests_by_place(chosen)
    counted: collections.Counter[str] = collections.Counter()
    with ThreadPoolExecutor(asked.workers) as pool:
        outcomes = pool.map(lambda place: outcome(place, tests[place]), chosen)
        for place, how in zip(chosen, outcomes, strict=True):
            counted[how] += 1
            if how != "killed":
                print(f"{how}: {place.file}:{place.line} {place.kind}", flush=True)
    print(", ".join(f"{counted[how]} {how}" for how in sorted(counted)), f"of {COUNT}")


if __name__ == "__main__":
    main()
