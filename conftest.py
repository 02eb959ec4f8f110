"""Examples of public functions and classes run as readers paste them: nothing is imported yet."""

import re
from functools import cache
from pathlib import Path

import pytest


@cache
def _public() -> tuple[str, ...]:
    """Return the modules and the names, with their modules, that readers are shown."""
    names = ["isocost.errors", "isocost.examples", "isocost.mlflow"]
    for stub in Path(__file__).parent.glob("src/**/__init__.pyi"):
        package = ".".join(stub.parent.relative_to(Path(__file__).parent / "src").parts)
        for module, name in re.findall(r"^from (\.[\w.]*) import (\w+)", stub.read_text(), re.M):
            names.append(f"{package}{module.rstrip('.')}.{name}")
    return tuple(names)


@pytest.fixture(autouse=True)
def _nothing_imported(request: pytest.FixtureRequest) -> None:
    item = request.node
    if (
        isinstance(item, pytest.DoctestItem)
        and "._" not in item.name
        and any(f"{item.name}.".startswith(f"{name}.") for name in _public())
    ):
        item.dtest.globs.clear()
