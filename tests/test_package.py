import ast
import json
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import isocost as ic
import isocost.learn as ic_learn
import isocost.plots as ic_plots

HEAVY = {
    "altair", "dask", "duckdb", "jinja2", "matplotlib", "narwhals", "pandas", "polars", "pyarrow",
    "pyspark", "rich", "scipy", "sklearn", "typer",
}  # fmt: skip

# Parts of Python that take milliseconds, and few calls need: OpenSSL is one.
SLOW = {"_hashlib", "email", "logging", "secrets"}


def loaded_after(code, parts):
    """The heavy packages, and parts of others, that a fresh interpreter loads for some code."""
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    names = {*json.loads(out.stdout.splitlines()[-1])}
    return HEAVY & {name.split(".")[0] for name in names} | parts & names


COUNTING = (
    "import isocost as ic\n"
    "t = ic.tally({'score': [.1, .9] * 2, 'label': [0, 1] * 2, 'group': list('aabb')})\n"
    "ic.REPAIRS['withhold'].rule(t).apply({'score': [.1], 'group': ['a']}, seed=0)\n"
)


@pytest.mark.parametrize(
    ("code", "parts", "loaded"),
    [
        ("import isocost", SLOW | {"numpy"}, set()),
        ("import isocost as ic\nic.tally, ic.audit, ic.withhold, ic.Rule", SLOW, set()),
        (COUNTING, SLOW, set()),
        (f"{COUNTING}str(ic.audit(t))", {"scipy.stats"}, {"scipy"}),
        ("import isocost.cli.app", set(), {"rich", "typer"}),
    ],
    ids=["import", "touch", "count", "measure", "command line"],
)
def test_little_is_loaded(code, parts, loaded):
    assert loaded_after(code, parts) == loaded


FACADES = pytest.mark.parametrize("package", [ic, ic_learn, ic_plots], ids=lambda p: p.__name__)


def homes(package):
    """The module that the stub of a package names for each public name."""
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    return {
        alias.asname: ".".join(filter(None, (package.__name__, node.module)))
        for node in ast.walk(stub)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@FACADES
def test_the_stub_lists_every_public_name_and_where_it_is(package):
    listed = homes(package)
    assert set(listed) == set(package.__all__)
    for name, module in listed.items():
        assert getattr(package, name) is getattr(import_module(module), name)
    assert dir(package) == sorted(package.__all__)


@FACADES
def test_a_public_name_is_listed_where_it_is_defined(package):
    """A name that moves must not leave an alias behind."""
    for name, module in homes(package).items():
        value = getattr(package, name)
        assert getattr(value, "__module__", module) == module


@FACADES
def test_unknown_names(package):
    with pytest.raises(AttributeError, match=f"No {package.__name__} attribute nothing"):
        _ = package.nothing


def test_names_stay_functions_after_their_modules_are_loaded():
    assert callable(ic.tally)
    assert callable(ic.audit)


def test_version():
    assert version("isocost") == ic.__version__
