import json
import subprocess
import sys
from importlib.metadata import version

import pytest

import isocost as ic

HEAVY = {
    "altair", "dask", "duckdb", "jinja2", "matplotlib", "narwhals", "pandas", "polars", "pyarrow",
    "pyspark", "rich", "scipy", "sklearn", "typer",
}  # fmt: skip


def loaded_after(code):
    """The heavy packages that are loaded in a fresh interpreter after some code."""
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return HEAVY & {name.split(".")[0] for name in json.loads(out.stdout.splitlines()[-1])}


def test_import_is_light():
    assert loaded_after("import isocost") == set()


def test_so_is_work_on_arrays():
    code = (
        "import isocost as ic\n"
        "t = ic.tally({'score': [.1, .9] * 2, 'label': [0, 1] * 2, 'group': list('aabb')})\n"
        "ic.withhold(t).apply({'score': [.1], 'group': ['a'], 'id': [1]}); "
        "str(ic.audit(t, confidence=None))"
    )
    assert loaded_after(code) == set()


def test_every_public_name_is_there_and_listed():
    for name in ic.__all__:
        assert getattr(ic, name) is not None
    assert dir(ic) == sorted(ic.__all__)
    assert set(ic._HOME) == set(ic.__all__) - {"__version__"}


def test_unknown_names():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ic.nothing


def test_names_stay_functions_after_their_modules_are_loaded():

    assert callable(ic.tally)
    assert callable(ic.audit)


def test_version():
    assert version("isocost") == ic.__version__
