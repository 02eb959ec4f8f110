"""Arrows point one way: a module imports only what stands above it."""

import ast
from pathlib import Path

import pytest

import isocost

ROOT = Path(isocost.__file__).parent
LAYERS = [
    {"errors", "typing"},
    {"checks"},
    {"tables", "atomic", "grid", "groups"},
    {"result"},
    {"costs", "coin", "readings"},
    {"cells", "persons"},
    {"tallies"},
    {"question"},
    {"rules"},
    {"measures"},
    {"metrics"},
    {"verdict"},
    {"repairs"},
    {"judging"},
    {"engines"},
    {"examples"},
    {"learn"},
    {"plots"},
    {"page"},
    {"mlflow"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# The order inside each package: a module imports only those of its package that stand before it.
ORDERS = {
    "verdict": ["judgement", "sentences", "wording"],
    "measures": [
        "derived", "calibration", "table", "rates", "feasibility", "intervals",
        "recalibrated", "bounds",
    ],
    "repairs": [
        "base", "withhold", "recalibrate", "composition", "coarsen", "lp", "odds",
        "reconcile", "review", "hand_over", "table",
    ],
    "judging": [
        "audit", "unseen", "offers", "compare", "frontier", "plan", "watch",
    ],
    "engines": [
        "columns", "repeated", "arrays", "frames", "dialects", "sql", "kinds", "files", "look",
        "lazy",
    ],
    "learn": [
        "inputs", "calibrator", "postprocess", "scorers", "trained",
    ],
    "plots": ["display", "measures", "plane", "repairs"],
    "page": [
        "payload", "layouts", "charts", "view", "report", "terminal", "server",
    ],
    "cli": ["options", "output", "reading", "commands", "doctor", "app"],
}  # fmt: skip

# Where a method must reach down, it does so inside a function, and is named here.
DOORS = {
    ("rules", "engines"),
    ("rules", "repairs"),
    ("tallies", "engines"),
}


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def named(tree: ast.Module):
    """Each node that imports, with the full names of what it imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)


def imported(path: Path):
    """Each module of isocost that a module imports, and whether inside a function."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.dump(branch.test)
        for node in ast.walk(branch)
    }
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
    }
    for node, name in named(tree):
        if id(node) not in for_types and name.startswith("isocost.") and "__version__" not in name:
            yield tuple(name.split(".")[1:]), id(node) in inside


def imports(path: Path):
    """Each layer of isocost that a module imports, and whether inside a function."""
    return {(name[0], in_function) for name, in_function in imported(path)}


def siblings(path: Path, package: str):
    """The modules of its own package that a module imports at the top level."""
    parts = tuple(package.split("/"))
    return {
        name[len(parts)]
        for name, in_function in imported(path)
        if not in_function and name[: len(parts)] == parts and len(name) > len(parts)
    }


def packages(path: Path) -> set[str]:
    """The top-level packages that a module imports anywhere."""
    return {name.partition(".")[0] for _, name in named(ast.parse(path.read_text()))}


MODULES = sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_up(path):
    mine = layer_of(path)
    assert mine in RANK, f"{mine} has no layer: give it one"
    for other, in_function in imports(path):
        if (mine, other) in DOORS:
            assert in_function, f"{mine} may import {other} only inside a function"
        elif mine != other:
            assert RANK[other] < RANK[mine], f"{mine} imports {other}, which is not above it"


def test_every_package_has_an_order():
    inside = {str(path.parent.relative_to(ROOT)) for path in MODULES if path.parent != ROOT}
    assert inside == ORDERS.keys()


@pytest.mark.parametrize("package", ORDERS)
def test_modules_import_what_stands_before_them(package):
    order, folder = ORDERS[package], ROOT / package
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    modules |= {path.parent.name for path in folder.glob("*/__init__.py")}
    assert sorted(order) == sorted(modules), f"{package} must list each module once"
    for place, name in enumerate(order):
        # A package within a package is ordered by itself, and stands here as a whole.
        paths = sorted((folder / name).rglob("*.py")) or [folder / f"{name}.py"]
        for path in paths:
            others = siblings(path, package) & modules - {name}
            assert others <= {*order[:place]}, f"{path.name} imports {others - {*order[:place]}}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_library_never_imports_the_reproduction(path):
    assert "reproduction" not in packages(path)


SHARED = {"table"}
"""Names that two modules or classes share: measures and repairs have a table each."""


def names(paths):
    """The names of modules and of public classes, with the modules where they are."""
    homes: dict[str, list[str]] = {}
    for path in paths:
        homes.setdefault(path.stem, []).append(str(path))
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path))
    return homes


def test_no_two_modules_or_public_classes_have_one_name():
    paths = [path for path in MODULES if path.name != "__init__.py"]
    assert {name: homes for name, homes in names(paths).items() if len(homes) > 1}.keys() <= SHARED


def test_the_checks_see_what_is_wrong(tmp_path):
    bad, other = tmp_path / "bad.py", tmp_path / "other.py"
    bad.write_text(
        "from isocost.measures import rates\nfrom isocost.measures.intervals import interval\n"
        "import isocost.cli.app\n"
        "def f():\n    from isocost.measures import bounds\n"
        "    from reproduction.study import Study\n"
        "class Both:\n    pass\nclass _Hidden:\n    pass\n"
    )
    other.write_text("class Both:\n    pass\nclass _Hidden:\n    pass\n")
    assert sorted(imports(bad)) == [("cli", False), ("measures", False), ("measures", True)]
    assert siblings(bad, "measures") == {"rates", "intervals"}
    assert packages(bad) == {"isocost", "reproduction"}
    homes = {name: len(found) for name, found in names([bad, other]).items()}
    assert homes == {"bad": 1, "other": 1, "Both": 2}
