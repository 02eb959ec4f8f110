import numpy as np
import pytest
from hypothesis import given

import isocost as ic
from isocost.measures import rates
from tests.conftest import counted, measured, populations


def direct(data, group, threshold=0.5):
    """The definitions, one group, straight from the rows."""
    mine = data["group"] == group
    h, y, w = data["score"][mine], data["label"][mine], data["weight"][mine]
    hard = h >= threshold
    return {
        "base_rate": np.average(y, weights=w),
        "mean_score": np.average(h, weights=w),
        "generalized_fpr": np.average(h[y == 0], weights=w[y == 0]),
        "generalized_fnr": np.average(1 - h[y == 1], weights=w[y == 1]),
        "brier": np.average((h - y) ** 2, weights=w),
        "fpr": np.average(hard[y == 0], weights=w[y == 0]),
        "fnr": np.average(~hard[y == 1], weights=w[y == 1]),
        "accuracy": np.average(hard == y, weights=w),
        "selection_rate": np.average(hard, weights=w),
    }


@given(data=populations())
def test_every_rate_by_its_definition(data):
    result = measured(counted(data), threshold=0.5)
    for group, measures in result.groups.items():
        for name, value in direct(data, group).items():
            assert getattr(measures, name) == pytest.approx(value, abs=1e-12), name


@given(data=populations(groups=(2, 3)))
def test_overall_by_its_definition(data):
    everybody = {**data, "group": np.full(len(data["score"]), "all")}
    overall = measured(counted(data), threshold=0.3).overall
    for name, value in direct(everybody, "all", 0.3).items():
        assert getattr(overall, name) == pytest.approx(value, abs=1e-12), name


@given(data=populations(weighted=True))
def test_scaling_all_weights_changes_nothing(data):
    once = measured(counted(data), cost="weighted:1,3")
    twice = measured(counted({**data, "weight": data["weight"] * 7.5}), cost="weighted:1,3")
    for group in once.groups:
        for name in ("generalized_fpr", "fnr", "brier", "calibration_gap", "cost", "share"):
            wanted = getattr(once.groups[group], name)
            assert getattr(twice.groups[group], name) == pytest.approx(wanted, abs=1e-12)


def test_the_ratio_cancels_out_of_the_weighted_cost_when_calibrated():
    score = np.repeat([0.2, 0.8], 50)
    label = np.concatenate([np.repeat([1, 0], [10, 40]), np.repeat([1, 0], [40, 10])])
    tally = ic.tally({"score": score, "label": label, "group": np.tile(["a", "b"], 50)})
    for fp, fn in ((1, 3), (3, 1), (2, 2)):
        costs = rates.group_costs(tally.totals, tally.groups, ic.Cost.weighted(fp, fn))
        mu = rates.base_rate(tally.totals)
        np.testing.assert_allclose(costs, 4 * (mu - (0.2**2 + 0.8**2) / 2), atol=1e-12)


def test_groups_without_positives_or_negatives_are_named():
    data = {"score": [0.1, 0.9, 0.2, 0.3], "label": [0, 1, 0, 0], "group": ["a", "a", "b", "b"]}
    for ask in (ic.withhold, ic.feasibility):
        with pytest.raises(ic.DataError) as error:
            ask(ic.tally(data))
        assert str(error.value) == (
            "groups: at least two must have positives and negatives, to be compared\n"
            "  got:  only 'a'; 'b' has no positives\n"
            "  next: check the label and the group column, merge groups (tally.relabel), or gather "
            "more data"
        )


def test_a_wrong_group_column_does_not_flood_the_screen():
    data = {"score": [0.5] * 200, "label": [0, 1] * 100, "group": list(range(200))}
    with pytest.raises(ic.DataError) as error:
        ic.withhold(ic.tally(data))
    assert "4 has no positives and 195 more" in str(error.value)
    assert len(str(error.value)) < 500


def test_a_disparity_leaves_out_what_is_not_known_and_takes_the_first_of_equals():
    values = np.array([np.nan, 0.3, 0.1, 0.3, 0.1, np.nan])
    found = rates.disparity(list("abcdef"), values)
    assert (found.highest, found.lowest) == ("b", "c")
    assert (found.difference, found.ratio) == pytest.approx((0.2, 1 / 3))
    assert np.isnan(rates.disparity(list("ab"), values[:2]).difference)
