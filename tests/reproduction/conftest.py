"""What the tests of the reproduction share: its data, and one quick result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def assert_labels_apart(figure: Any, slack: float) -> None:
    """No label covers another, or leaves its panel by more than a few pixels."""
    figure.draw_without_rendering()
    for ax in figure.axes:
        frame = ax.get_window_extent()
        boxes = [text.get_window_extent() for text in ax.texts if text.get_text()]
        for place, box in enumerate(boxes):
            assert box.x0 >= frame.x0 - slack
            assert box.x1 <= frame.x1 + slack
            assert not any(box.overlaps(other) for other in boxes[:place])


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
