"""Claims: what decides them, and what is said when chance may have decided."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isocost.examples import compas_rows
from reproduction import definitions, measures
from reproduction.claims import Claim, Finding, check
from reproduction.numbers import stage_numbers
from reproduction.parts import Part, Split
from reproduction.section5 import CLAIMS
from reproduction.studies import Study

CLAIM = Claim("c", "Small.", lambda n: n["x"], "x", below=0.1)


@pytest.mark.parametrize(
    ("value", "interval", "verdict"),
    [
        (0.05, (0.01, 0.09), "holds"),
        (0.05, (0.01, 0.11), "holds, not beyond chance"),
        (0.2, (0.15, 0.3), "does not hold"),
        (0.2, (0.05, 0.3), "does not hold, not beyond chance"),
        (0.1, None, "does not hold"),
        (math.inf, (0.5, math.inf), "does not hold"),
    ],
)
def test_verdicts(value: float, interval: tuple[float, float] | None, verdict: str) -> None:
    assert Finding(CLAIM, "s", value, interval, None).verdict == verdict


def test_infinity_is_null_in_json() -> None:
    found = Finding(CLAIM, "s", math.inf, (0.5, math.inf), None).to_dict()
    assert found["value"] is None
    assert found["interval"] == [0.5, None]


def test_names_are_unique_and_sentences_have_a_bar() -> None:
    claims = [claim for group in CLAIMS.values() for claim in group]
    assert len({claim.name for claim in claims}) == len(claims)
    assert all(claim.needs() for claim in claims)


def claim(name: str) -> Claim:
    return next(c for group in CLAIMS.values() for c in group if c.name == name)


def test_the_curve_of_the_weighted_cost_sags_as_geometry_says() -> None:
    numbers = {"original base_rate 1": 0.5, "original base_rate 2": 0.8, "original cost 1": 0.4}
    numbers["original cost 2"] = 0.3
    # On the line of mu a point t (mu, 1 - mu) costs 4 t mu (1 - mu): so it is 0.1 (1/(1-mu), 1/mu).
    mu = np.linspace(0.5, 0.8, 20_001)
    x, y = 0.1 / (1 - mu), 0.1 / mu
    (x0, x1), (y0, y1) = x[[0, -1]], y[[0, -1]]
    distance = np.abs((y1 - y0) * (x - x0) - (x1 - x0) * (y - y0)) / np.hypot(x1 - x0, y1 - y0)
    assert claim("health-curved").measure(numbers) == pytest.approx(distance.max(), rel=1e-3)


RATES = ("generalized_fpr", "generalized_fnr")
COLUMNS = (*RATES, "cost", "off_line", "accuracy", "base_rate", "mean_score", "trivial_cost")
Rows = tuple[tuple[float, ...], tuple[float, ...]]


def world(stages: dict[str, Rows], **more: float) -> dict[str, float]:
    """The numbers of a made-up study: for each stage a row for each group."""
    numbers = {name.replace("__", " "): v for name, v in more.items()}
    for stage, rows in stages.items():
        for group, values in enumerate(rows, start=1):
            numbers |= {f"{stage} {n} {group}": v for n, v in zip(COLUMNS, values, strict=False)}
    return numbers


INCOME = world(
    {
        "original": ((0.05, 0.50, 0.50, 0.01, 0.9), (0.15, 0.40, 0.40, 0.01, 0.8)),
        "withhold": ((0.05, 0.50, 0.50, 0.01, 0.9), (0.20, 0.50, 0.50, 0.01, 0.7)),
        "odds": ((0.16, 0.45, 0.45, 0.10), (0.16, 0.45, 0.45, 0.02)),
    },
    features=14,
    hardest__alpha=0.2,
    changed__accuracy=-0.1,
) | {"off_line of random forest": 0.01, "off_line of multi-layer perceptron": 0.01}
HEALTH = world(
    {
        "original": ((0.2, 0.3, 0.40, 0.01, 0.9, 0.4), (0.4, 0.2, 0.41, 0.01, 0.8, 0.6)),
        "withhold": ((0.21, 0.31, 0.41, 0.01, 0.89), (0.4, 0.15, 0.41, 0.01, 0.8)),
        "odds": ((0.3, 0.3, 0.4, 0.1), (0.3, 0.3, 0.4, 0.02)),
    },
    people=906,
    places=4,
    features=14,
    alpha=0.02,
    changed__accuracy=-0.01,
    changed__generalized_fpr=0.01,
    changed__generalized_fnr=0.01,
)
RECIDIVISM = world(
    {
        "original": (
            (0.45, 0.6, 0.45, 0.01, 0.6, 0.5, 0.51, 0.5),
            (0.36, 0.4, 0.36, 0.01, 0.6, 0.4, 0.39, 0.4),
        ),
        "odds": (
            (0.4, 0.5, 0.4, 0.06, 0.6, 0.5, 0.44, 0.5),
            (0.4, 0.5, 0.4, 0.06, 0.6, 0.4, 0.46, 0.4),
        ),
        "untrained": ((0.5, 0.4, 0.5, 0.01), (0.4, 0.5, 0.4, 0.01)),
        "trained": ((0.45, 0.45, 0.5, 0.06), (0.44, 0.46, 0.4, 0.05)),
    },
    alpha=2.6,
    out_of_reach=1.0,
    left__fpr=0.05,
    left__fnr=0.04,
)
BROKEN = {
    "income-features": {"features": 13},
    "income-naturally-calibrated": {"off_line of multi-layer perceptron": 0.04},
    "income-calibrated": {"original off_line 2": 0.05},
    "income-odds-match": {"odds generalized_fnr 2": 0.5},
    "income-odds-off-line": {"odds off_line 1": 0.02},
    "income-feasible": {"hardest alpha": 1.2},
    "income-same-level": {"withhold cost 2": 0.4},
    "income-still-calibrated": {"withhold off_line 2": 0.05},
    "income-someone-pays": {f"odds {rate} {group}": 0.01 for rate in RATES for group in (1, 2)},
    "income-fp-widens": {"withhold generalized_fpr 2": 0.12},
    "income-trade": {"withhold generalized_fnr 2": 0.3},
    "income-more-errors": {"withhold generalized_fnr 2": 0.39},
    "income-not-little-cost": {"changed accuracy": -0.01},
    "health-people": {"people": 920},
    "health-places": {"places": 3},
    "health-features": {"features": 13},
    "health-calibrated": {"original off_line 1": 0.05},
    "health-curved": {"original base_rate 2": 0.4},
    "health-same-level": {"original cost 1": 0.3},
    "health-little-change": {"alpha": 0.3},
    "health-equal-cost": {"withhold cost 1": 0.3},
    "health-still-calibrated": {"withhold off_line 2": 0.05},
    "health-little-cost": {"changed accuracy": -0.1},
    "health-degraded": {"changed generalized_fnr": -0.01},
    "health-other-disparity": {"withhold generalized_fnr 2": 0.25},
    "health-different-errors": {"withhold generalized_fnr 2": 0.3},
    "health-odds-match": {"odds generalized_fpr 1": 0.4},
    "health-odds-off-line": {"odds off_line 1": 0.02},
    "recidivism-calibrated": {"original off_line 2": 0.05},
    "recidivism-disproportionate": {"original generalized_fpr 2": 0.5},
    "recidivism-large-rates": {"original generalized_fnr 1": 0.2},
    "recidivism-odds-match": {"odds generalized_fpr 1": 0.5},
    "recidivism-odds-off-line": {"odds off_line 1": 0.02, "odds off_line 2": 0.02},
    "recidivism-odds-meaning": {"odds mean_score 1": 0.55},
    "recidivism-trained-match": {"trained generalized_fpr 1": 0.5},
    "recidivism-trained-nearer": {"trained generalized_fpr 1": 0.6},
    "recidivism-trained-off-line": {"trained off_line 1": 0.03, "trained off_line 2": 0.03},
    "recidivism-infeasible": {"alpha": 0.9},
    "recidivism-worse-than-trivial": {"original trivial_cost 2": 0.46},
    "recidivism-any-constraint": {"out_of_reach": 0.5},
    "recidivism-either-rate": {"left fnr": 0.0},
    "recidivism-improved": {"original cost 2": 0.45},
    "recidivism-improved-both": {"original generalized_fnr 2": 0.7},
}
WORLDS = {"income": INCOME, "health": HEALTH, "recidivism": RECIDIVISM}


@pytest.mark.parametrize("experiment", WORLDS)
def test_each_claim_turns_with_its_number(experiment: str) -> None:
    """A world in which every claim holds, and one change to break each."""
    numbers = WORLDS[experiment]
    for c in CLAIMS[experiment]:
        assert c.holds(c.measure(numbers)), c.name
        assert not c.holds(c.measure(numbers | BROKEN[c.name])), c.name


def test_every_claim_can_be_broken() -> None:
    assert set(BROKEN) == {c.name for claims in CLAIMS.values() for c in claims}


def test_a_count_is_shown_as_one() -> None:
    found = Finding(claim("health-people"), "retrained", 920.0, None, None)
    assert (found.shown, found.claim.needs(), found.verdict) == ("920", "906", "does not hold")


def test_divisions_do_not_cancel_and_their_spread_is_told() -> None:
    """Half of the divisions favour one group, half the other: the groups still differ."""
    label, group = np.tile([0, 1], 100), np.repeat(definitions.RECIDIVISM.groups, 100)
    first = group == definitions.RECIDIVISM.groups[0]
    sharp, dull = np.where(label, 0.9, 0.1), np.where(label, 0.7, 0.3)
    parts = [
        Part(label, group, {"m": np.where(first == better, sharp, dull)})
        for better in (True, False)
    ]
    splits = tuple(Split(part, part) for part in parts)
    study = Study(definitions.RECIDIVISM, "made up", splits)
    apart = Claim("c", "Apart.", measures.apart("original", "cost"), "difference", above=0.1)
    signed = Claim("s", "Signed.", lambda n: n["original cost 1"], "cost")
    calm = Claim("n", "Same.", measures.off_line("original"), "off", below=0.1)
    found = check(study, (apart, signed, calm), [])
    assert found[0].value == pytest.approx(0.2)
    assert found[1].spread == pytest.approx(np.std([0.1, 0.3], ddof=1))
    assert found[2].spread is None


def test_what_better_scores_would_do() -> None:
    """Scores moved a tenth of the way to the labels, and the rates measured again."""
    rows = compas_rows()
    one = rows["group"] == "African-American"
    nearer = np.where(one, 0.9 * rows["score"] + 0.1 * rows["label"], rows["score"])
    part, better = (Part(rows["label"], rows["group"], {"m": s}) for s in (rows["score"], nearer))
    before, after = (
        stage_numbers("original", p.tally("m"), definitions.RECIDIVISM) for p in (part, better)
    )
    for name in ("cost", *RATES):
        expected = measures.apart("original", name)(after) - measures.apart("original", name)(
            before
        )
        assert measures.after_improving(name)(before) == pytest.approx(expected)
