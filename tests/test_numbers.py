"""The numbers that a correct implementation reproduces, for the paper's own scores."""

import numpy as np
import pytest

import isocost as ic
from tests.conftest import DATA, measured

# n, base rate, mean score, c_fp, c_fn, accuracy, ten-bin gap
GROUPS = {
    "income": {
        0.0: (6554, 0.7006, 0.6939, 0.3980, 0.1796, 0.8158, 0.0126),
        1.0: (3214, 0.8920, 0.8681, 0.4337, 0.0793, 0.9287, 0.0247),
    },
    "health": {
        0.0: (49, 0.3469, 0.3507, 0.1960, 0.3581, 0.8776, 0.1224),
        1.0: (135, 0.6963, 0.6476, 0.3903, 0.2401, 0.8370, 0.0829),
    },
    "criminal_recidivism": {
        0.0: (2454, 0.3936, 0.4047, 0.3600, 0.5263, 0.6777, 0.0170),
        1.0: (3696, 0.5143, 0.5070, 0.4475, 0.4369, 0.6418, 0.0113),
    },
}
NAMES = ["n", "base_rate", "mean_score", "generalized_fpr", "generalized_fnr", "accuracy"]
NAMES += ["calibration_gap"]

# cost, costs, trivial costs, alpha of group 0 or 1, feasible, c_fp and c_fn after
ALGORITHM = [
    ("income", "fnr", (0.1796, 0.0793), (0.2994, 0.1080), 1.0, 3.4973, False, None),
    ("income", "fpr", (0.3980, 0.4337), (0.7006, 0.8920), 0.0, 0.1179, True, (0.4337, 0.1937)),
    (
        "health",
        "weighted:1,3",
        (0.5007, 0.6202),
        (0.9063, 0.8459),
        0.0,
        0.2945,
        True,
        (0.2405, 0.4450),
    ),
    ("criminal_recidivism", "fpr", (0.3600, 0.4475), (0.3936, 0.5143), 0.0, 2.6006, False, None),
]

CLOSE = {"abs": 5.01e-5}


def tally_named(name):
    return ic.Tally.load(DATA / f"{name}.json")


def check_groups(tally, name):
    result = measured(tally)
    for group, wanted in GROUPS[name].items():
        for field, value in zip(NAMES, wanted, strict=True):
            assert getattr(result.groups[group], field) == pytest.approx(value, **CLOSE), field


def test_each_group(scored, scored_name):
    check_groups(scored, scored_name)


@pytest.mark.parametrize(
    ("name", "cost", "costs", "trivial", "group", "alpha", "feasible", "after"), ALGORITHM
)
def test_algorithm_1(name, cost, costs, trivial, group, alpha, feasible, after):
    tally = tally_named(name)
    verdict = ic.feasibility(tally, cost)
    assert tuple(verdict.costs.values()) == pytest.approx(costs, **CLOSE)
    assert tuple(verdict.trivial_costs.values()) == pytest.approx(trivial, **CLOSE)
    assert verdict.alpha[group] == pytest.approx(alpha, **CLOSE)
    assert verdict.feasible is feasible
    if not feasible:
        with pytest.raises(ic.InfeasibleError):
            ic.withhold(tally, cost)
        return
    rule = ic.withhold(tally, cost)
    measures = measured(rule.expected(tally), cost).groups[group]
    found = (measures.generalized_fpr, measures.generalized_fnr)
    assert found == pytest.approx(after, **CLOSE)


COMPAS = "criminal_recidivism"

# p2n and n2p of groups 0 and 1, the common rates, accuracies
ODDS = [
    ("income", "generalized", (0, 0.1167), (0.0315, 0), (0.4093, 0.1786), (0.8122, 0.8330)),
    ("income", "hard", (0, 0.0739), (0, 0.0096), (0.3741, 0.1030), (0.8158, 0.8677)),
    ("health", "generalized", (0, 0.1718), (0.2690, 0), (0.3678, 0.3328), (0.7348, 0.7454)),
    ("health", "hard", (0, 0.0917), (0.2405, 0), (0.2880, 0.1787), (0.7499, 0.7881)),
    (COMPAS, "generalized", (0, 0.2635), (0.1940, 0), (0.4217, 0.4929), (0.6226, 0.6006)),
    (COMPAS, "hard", (0, 0.2148), (0.1434, 0), (0.2695, 0.5072), (0.6369, 0.6082)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "rates", "p2n", "n2p", "common", "accuracies"), ODDS)
def test_equalized_odds(name, rates, p2n, n2p, common, accuracies):
    """The income numbers are given; the others were found by two independent solvers."""
    tally = tally_named(name)
    rule = ic.equalize_odds(tally, rates=rates)
    flips = {(row.group, row.lo): row.probability for row in rule.rows}
    for place, group in enumerate(tally.groups):
        assert flips.get((group, 0.5), 0.0) == pytest.approx(p2n[place], **CLOSE)
        assert flips.get((group, 0.0), 0.0) == pytest.approx(n2p[place], **CLOSE)
    after = measured(rule.expected(tally))
    prefix = "generalized_" if rates == "generalized" else ""
    for m, accuracy in zip(after.groups.values(), accuracies, strict=True):
        assert getattr(m, f"{prefix}fpr") == pytest.approx(common[0], **CLOSE)
        assert getattr(m, f"{prefix}fnr") == pytest.approx(common[1], **CLOSE)
        assert m.accuracy == pytest.approx(accuracy, **CLOSE)
    assert after.disparities[f"{prefix}fpr"].difference < 1e-9
    assert after.disparities[f"{prefix}fnr"].difference < 1e-9


def test_the_same_from_the_files(scored_folder, scored_name, scored):
    tally = ic.tally(scored_folder / f"{scored_name}.csv", score="prediction")
    assert tally == scored
    check_groups(tally, scored_name)


def test_the_built_in_counts_are_the_recidivism_file():
    from isocost.examples import compas

    file = tally_named("criminal_recidivism")
    built_in = compas().relabel({"Caucasian": 0.0, "African-American": 1.0})
    assert built_in.groups == file.groups
    np.testing.assert_array_equal(built_in.cells.n, file.cells.n)
    # The file holds scores with twelve decimals.
    np.testing.assert_allclose(built_in.cells.wh, file.cells.wh, rtol=1e-10)
