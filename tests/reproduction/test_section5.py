"""The claims of Section 5: each can hold and can fail."""

from __future__ import annotations

import numpy as np
import pytest

from isocost.examples import compas_rows
from reproduction import section5
from reproduction.claims import PaperClaim
from reproduction.people import People
from reproduction.section5 import CLAIMS
from reproduction.study import RATES, RECIDIVISM, stage_values


def test_names_are_unique_and_sentences_have_a_bar() -> None:
    claims = [claim for group in CLAIMS.values() for claim in group]
    assert len({claim.name for claim in claims}) == len(claims)
    assert all(claim.needs() and claim.unit for claim in claims)


def claim(name: str) -> PaperClaim:
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
    accuracy__lost__by__everybody=0.05,
) | {"off_line of random forest": 0.01, "off_line of multi-layer perceptron": 0.01}
INCOME |= {f"original {rate} of everybody": 0.1 for rate in RATES}
INCOME |= {f"withhold {rate} of everybody": 0.2 for rate in RATES}
HEALTH = world(
    {
        "original": ((0.2, 0.3, 0.40, 0.01, 0.9, 0.4), (0.4, 0.2, 0.41, 0.01, 0.8, 0.6)),
        "withhold": ((0.21, 0.31, 0.41, 0.01, 0.89), (0.4, 0.15, 0.41, 0.01, 0.8)),
        "odds": ((0.3, 0.3, 0.4, 0.1), (0.3, 0.3, 0.4, 0.02)),
    },
    people=906,
    places=4,
    features__and__the__label=14,
    withheld=0.02,
    withheld__of__everybody=0.01,
    changed__accuracy=-0.01,
    accuracy__lost__by__everybody=0.005,
    changed__generalized_fpr=0.01,
    changed__generalized_fnr=0.01,
)
PEOPLE_CHARGED = world(
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
    alpha__of__both__rates=1.5,
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
    "income-more-errors": {"withhold generalized_fnr of everybody": 0.09},
    "income-not-little-cost": {"changed accuracy": -0.01},
    "income-not-little-cost-everybody": {"accuracy lost by everybody": 0.02},
    "health-people": {"people": 920},
    "health-places": {"places": 3},
    "health-features": {"features and the label": 13},
    "health-calibrated": {"original off_line 1": 0.05},
    "health-curved": {"original base_rate 2": 0.4},
    "health-same-level": {"original cost 1": 0.2},
    "health-little-change": {"withheld": 0.3},
    "health-little-change-everybody": {"withheld of everybody": 0.2},
    "health-equal-cost": {"withhold cost 1": 0.2},
    "health-nearer": {"withhold cost 1": 0.3},
    "health-still-calibrated": {"withhold off_line 2": 0.05},
    "health-little-cost": {"changed accuracy": -0.1},
    "health-little-cost-everybody": {"accuracy lost by everybody": 0.04},
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
    "recidivism-any-constraint": {"alpha of both rates": 0.02},
    "recidivism-either-rate": {"left fnr": 0.0},
    "recidivism-improved": {"original cost 2": 0.45},
    "recidivism-improved-both": {"original generalized_fnr 2": 0.7},
}
ELSEWHERE = HEALTH | {"feasible": 0.2}
BROKEN_ELSEWHERE = {
    "calibrated": {"original off_line 1": 0.05},
    "odds-match": {"odds generalized_fpr 1": 0.4},
    "odds-off-line": {"odds off_line 1": 0.02},
    "often-infeasible": {"feasible": 0.8},
    "equal-cost": {"withhold cost 1": 0.3},
    "degraded": {"changed generalized_fnr": -0.01},
    "other-disparity": {"withhold generalized_fnr 2": 0.25},
}
BROKEN |= {
    f"{name}-{claim}": change
    for name in ("german", "law", "taiwan")
    for claim, change in BROKEN_ELSEWHERE.items()
}
WORLDS = {"income": INCOME, "health": HEALTH, "recidivism": PEOPLE_CHARGED}
WORLDS |= dict.fromkeys(("german", "law", "taiwan"), ELSEWHERE)


@pytest.mark.parametrize("experiment", WORLDS)
def test_each_claim_turns_with_its_number(experiment: str) -> None:
    """A world in which every claim holds, and one change to break each."""
    numbers = WORLDS[experiment]
    for c in CLAIMS[experiment]:
        assert c.holds(c.measure(numbers)), c.name
        assert not c.holds(c.measure(numbers | BROKEN[c.name])), c.name


def test_every_claim_can_be_broken() -> None:
    assert set(BROKEN) == {c.name for claims in CLAIMS.values() for c in claims}


def test_what_better_scores_would_do() -> None:
    """Scores moved a tenth of the way to the labels, and the rates measured again."""
    rows = compas_rows()
    one = rows["group"] == "African-American"
    nearer = np.where(one, 0.9 * rows["score"] + 0.1 * rows["label"], rows["score"])
    part, better = (People(rows["label"], rows["group"], {"m": s}) for s in (rows["score"], nearer))
    before, after = (stage_values("original", p.tally("m"), RECIDIVISM) for p in (part, better))
    for name in ("cost", *RATES):
        expected = section5.apart("original", name)(after) - section5.apart("original", name)(
            before
        )
        assert section5.after_improving(name)(before) == pytest.approx(expected)
