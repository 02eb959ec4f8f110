"""Claims: what decides them, and the verdict when chance may have decided."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reproduction.claims import UNDECIDED, Finding, PaperClaim, check
from reproduction.people import People, Split
from reproduction.rerun import Reproduction
from reproduction.section5 import CLAIMS, apart, off_line
from reproduction.study import RECIDIVISM, Study

CLAIM = PaperClaim("c", "Small.", lambda n: n["x"], "x", below=0.1)


@pytest.mark.parametrize(
    ("value", "interval", "verdict"),
    [
        (0.05, (0.01, 0.09), "holds"),
        (0.05, (0.01, 0.11), "undecided"),
        (0.2, (0.15, 0.3), "does not hold"),
        (0.2, (0.05, 0.3), "undecided"),
        (0.1, None, "does not hold"),
        (math.inf, (0.5, math.inf), "does not hold"),
    ],
)
def test_verdicts(value: float, interval: tuple[float, float] | None, verdict: str) -> None:
    assert Finding(CLAIM, "s", value, interval, None).verdict == verdict


def test_what_holds_by_arithmetic_is_not_told_as_a_result() -> None:
    assert Finding(CLAIM, "s", 0.0, None, None, constructed=True).verdict == "by construction"
    assert Finding(CLAIM, "s", 0.2, None, None, constructed=True).verdict == "does not hold"
    noted = replace(CLAIM, note="if counted so")
    assert Finding(noted, "s", 0.05, None, None).verdict == "holds, if counted so"


def test_a_count_is_shown_as_one() -> None:
    counted = PaperClaim("people", "906 adults.", lambda n: n["people"], "people", exactly=906)
    found = Finding(counted, "retrained", 920.0, None, None)
    assert (found.shown, found.claim.needs(), found.verdict) == ("920", "906", "does not hold")


def test_divisions_do_not_cancel_and_their_spread_is_told() -> None:
    """Half of the divisions favour one group, half the other: the groups still differ."""
    label, group = np.tile([0, 1], 100), np.repeat(RECIDIVISM.groups, 100)
    first = group == RECIDIVISM.groups[0]
    sharp, dull = np.where(label, 0.9, 0.1), np.where(label, 0.7, 0.3)
    parts = [
        People(label, group, {"m": np.where(first == better, sharp, dull)})
        for better in (True, False)
    ]
    splits = tuple(Split(part, part) for part in parts)
    study = Study(RECIDIVISM, "made up", splits)
    distance = PaperClaim("c", "Apart.", apart("original", "cost"), "difference", above=0.1)
    signed = PaperClaim("s", "Signed.", lambda n: n["original cost 1"], "cost")
    calm = PaperClaim("n", "Same.", off_line("original"), "off", below=0.1)
    found = check(study, (distance, signed, calm), [])
    assert found[0].value == pytest.approx(0.2)
    assert found[1].spread == pytest.approx(np.std([0.1, 0.3], ddof=1))
    assert found[2].spread is None


def test_the_interval_of_a_mean_over_splits() -> None:
    """Student's, with the variance of Nadeau and Bengio; on fitted people arithmetic alone."""
    label, group = np.tile([0, 1], 100), np.repeat(RECIDIVISM.groups, 100)
    first = group == RECIDIVISM.groups[0]
    costs = np.linspace(0.1, 0.3, 6)
    parts = [
        People(label, group, {"m": np.where(label == first, 1 - c, c)}) for c in costs.tolist()
    ]
    claim = PaperClaim("c", "Costs.", lambda n: n["original cost 2"], "cost", constructed="fitted")
    splits = [Split(part, People(label, group, part.scores)) for part in parts]
    (found,) = check(Study(RECIDIVISM, "made up", tuple(splits)), (claim,), [])
    half = 2.5706 * np.std(costs, ddof=1) * np.sqrt(1 / 6 + 1 / 8)
    assert found.interval == pytest.approx((0.2 - half, 0.2 + half), abs=1e-4) or (
        found.interval == pytest.approx((0.8 - half, 0.8 + half), abs=1e-4)
    )
    fitted = tuple(Split(part, part) for part in parts)
    (found,) = check(Study(RECIDIVISM, "made up", fitted), (claim,), [])
    assert (found.interval, found.verdict) == (None, "by construction")


FULL = Path(__file__).parents[2] / "docs" / "reproduction" / "results.json"
QUICK = Path(__file__).with_name("quick.json")
"""The results of a full run, as documented, and the claims in those of ``--quick``."""


def stored(path: Path) -> dict[tuple[str, str], Finding]:
    """The findings of a run, judged anew from their numbers."""
    by_name = {claim.name: claim for claims in CLAIMS.values() for claim in claims}
    findings = {}
    for experiment in json.loads(path.read_text())["experiments"].values():
        for study in experiment["studies"]:
            for one in study["claims"]:
                value = math.inf if one["value"] is None else one["value"]
                ends = one["interval"] and [math.inf if e is None else e for e in one["interval"]]
                interval = (ends[0], ends[1]) if ends else None
                constructed = one["verdict"].startswith("by construction")
                findings[one["name"], one["scores"]] = Finding(
                    by_name[one["name"]], one["scores"], value, interval, None, constructed
                )
    return findings


def contradictions(
    some: dict[tuple[str, str], Finding], others: dict[tuple[str, str], Finding]
) -> list[tuple[str, str]]:
    return [
        key
        for key in some.keys() & others.keys()
        if UNDECIDED not in some[key].verdict + others[key].verdict
        and some[key].verdict != others[key].verdict
    ]


def test_a_quick_run_contradicts_no_verdict_of_a_full_one() -> None:
    quick, full = stored(QUICK), stored(FULL)
    assert quick.keys() == full.keys()
    assert contradictions(quick, full) == []
    calibrated = "recidivism-calibrated", "counts"
    # 0.0291 is below its bar of 0.03, but the interval is not.
    assert quick[calibrated].verdict == full[calibrated].verdict == UNDECIDED
    # What is told apart by chance alone would be a contradiction without the third verdict.
    assert any(quick[key].holds != full[key].holds for key in full)


def test_few_samples_contradict_no_verdict_of_many(counts: Reproduction) -> None:
    (result,) = counts.results
    few = {(f.claim.name, f.source): f for f in result.findings}
    assert contradictions(few, stored(FULL)) == []
