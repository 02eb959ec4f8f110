"""Tests of what stands outside the package: `make test-integrations` installs what they need."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def _has_digest() -> bool:
    if shutil.which("Rscript") is None:
        return False
    probe = ["Rscript", "-e", 'quit(status = !requireNamespace("digest", quietly = TRUE))']
    return subprocess.run(probe, check=False).returncode == 0


NEEDED = {
    "test_mlflow": (lambda: find_spec("mlflow"), "mlflow-skinny is not installed"),
    "test_dbt_project": (lambda: find_spec("dbt.adapters.duckdb"), "dbt-duckdb is not installed"),
    "test_r": (_has_digest, "R and its package digest are not installed"),
    "test_gate": (lambda: shutil.which("bash"), "there is no bash"),
}
"""What each module of tests needs, and why it is skipped without it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing: dict[str, str] = {}
    for item in items:
        name = item.path.stem
        if name in NEEDED and name not in missing:
            is_there, reason = NEEDED[name]
            try:
                missing[name] = "" if is_there() else reason
            except ModuleNotFoundError:
                missing[name] = reason
        if missing.get(name):
            item.add_marker(pytest.mark.skip(reason=missing[name]))
