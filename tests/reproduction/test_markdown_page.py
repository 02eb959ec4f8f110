"""The page tells what was rerun."""

from __future__ import annotations

from reproduction.experiments import RunOptions
from reproduction.markdown_page import page
from reproduction.rerun import Reproduction
from tests.reproduction.conftest import findings_of


def test_the_page_tells_claims_and_figures(counts: Reproduction) -> None:
    text = page([counts], RunOptions(), "python -m reproduction recidivism --quick", "figures")
    for finding in findings_of(counts, "counts").values():
        assert f"| {finding.claim.sentence} | counts | {finding.shown} |" in text
    assert "(figures/figure-3c-recidivism-counts.png)" in text
    assert "python -m reproduction recidivism --quick" in text
    assert "look elsewhere" in text
    assert "## Discussion and conclusion (Section 6)" in text


def test_only_what_was_rerun_is_explained(counts: Reproduction) -> None:
    text = page([counts], RunOptions(), "isocost", "figures")
    assert "**Better scores.**" in text
    assert "**Health.**" not in text
    assert "**Grids.**" not in text
