"""What the tests of the reproduction share: its data, and one quick result."""

from __future__ import annotations

from pathlib import Path

import pytest

from isocost.errors import FileError, Problem
from reproduction.claims import Finding
from reproduction.experiments import RunOptions
from reproduction.fetch import SOURCES, find
from reproduction.rerun import Reproduction, reproduce
from reproduction.study import RECIDIVISM


def need(*names: str) -> None:
    """Skip a test if the data are not on this machine."""
    for name in names:
        source = SOURCES[name]
        if any(find(source, file) is None for file in source.files):
            how = "run python -m reproduction data --fetch, or set ISOCOST_DATA"
            pytest.skip(f"no {name} data: {how}")


def findings_of(one: Reproduction, source: str) -> dict[str, Finding]:
    (result,) = (result for result in one.results if result.study.source == source)
    return {finding.claim.name: finding for finding in result.findings}


@pytest.fixture(scope="session")
def counts() -> Reproduction:
    """Recidivism from the built-in counts alone: no data, no network, and few samples."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reproduction.datasets.locate", _nowhere)
        patch.setattr("reproduction.beyond.HALVES", 3)
        return reproduce(RECIDIVISM, RunOptions(replicates=60, spreads=20, jobs=1))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of models, so that what several tests need is trained once."""
    return tmp_path_factory.mktemp("cache") / "trained"


def _nowhere(*_: object, **__: object) -> Path:
    raise FileError(Problem("file", "must be here", "nothing", "look elsewhere"))
