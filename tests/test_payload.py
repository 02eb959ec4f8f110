import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import isocost as ic
from isocost.costs import Cost
from isocost.examples import compas
from isocost.page.payload import (
    MOST_CELLS,
    held_tally,
    payload,
    safe_group,
    snapped,
    undecided,
)  # fmt: skip
from isocost.page.view import compact
from tests.conftest import DATA, measured, sample


def rebuilt(page):
    """The sums per group and label that a page's cells add up to."""
    cells = page["cells"]
    place = np.array(cells["group"]) * 2 + np.array(cells["label"])
    names = ("n", *(["w", "w2"] if "w" in cells else []), "wh", "wh2")
    return {name: np.bincount(place, cells[name]).reshape(-1, 2) for name in names}


def test_everything_is_there_with_all_digits(scored):
    page = json.loads(json.dumps(payload(scored)))
    assert page["cells"] == scored.to_dict()["cells"]
    assert (page["bins"], page["edges"]) == (scored.bins, list(scored.edges))
    assert (page["isocost"], page["merged"], page["left_out"]) == (ic.__version__, False, [])
    assert page["cells"]["wh"] == scored.cells.wh.tolist()


def test_the_table_of_measures_that_the_script_is_tested_with_is_the_one_of_the_page():
    kept = Path(__file__).parent / "js" / "measures.json"
    assert json.loads(kept.read_text()) == payload(compas())["measures"]


@pytest.mark.parametrize("least", [1, 5, 20, 100, 400])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_cell_is_small_and_the_sums_stay(least, weighted):
    data = sample(4000, 3, seed=least, weighted=weighted)
    tally = ic.tally(data, weight="weight" if weighted else None)
    page = payload(tally, least)
    assert min(page["cells"]["n"]) >= least
    assert page["merged"] == (least > 1)
    for name, sums in rebuilt(page).items():
        assert sums == pytest.approx(getattr(tally.totals, name), rel=1e-12)
    assert sum(page["cells"]["n"]) == tally.n


def runs(page, group):
    cells = page["cells"]
    columns = (cells["group"], cells["first"], cells["end"], cells["bin"])
    return sorted({(a, b, c) for g, a, b, c in zip(*columns, strict=True) if g == group})


def test_merged_bins_hold_both_labels_and_do_not_overlap():
    tally = ic.tally(sample(4000, 2, seed=3))
    page = payload(tally, 30)
    for group in (0, 1):
        found = runs(page, group)
        # One bin per run, whatever the label.
        assert len({(first, end) for first, end, _ in found}) == len(found)
        for (_, end, _), (first, _, _) in pairwise(found):
            assert end <= first
        assert all(first <= place < end for first, end, place in found)


def test_merging_keeps_to_tenths_and_thresholds_where_it_can():
    tally = ic.tally(sample(40_000, 2, seed=4), edges=(0.33, 0.67))
    page = payload(tally, 25, threshold=0.33)
    cuts = tally.grid.cuts
    # Also the mirror of the threshold, because scores may be turned round.
    for wall in (*[i / 10 for i in range(2, 8)], 0.33, 0.67):
        place = int(np.searchsorted(cuts, wall))
        for group in (0, 1):
            assert not any(first < place < end for first, end, _ in runs(page, group)), wall


def test_where_a_side_is_too_small_the_threshold_is_crossed():
    # Only three people of "a" are above 1/2.
    scores = [0.1] * 20 + [0.2] * 20 + [0.9] * 3
    labels = [0] * 18 + [1, 1] + [0, 1] * 10 + [1] * 3
    data = {"score": scores * 2, "label": labels * 2, "group": ["a"] * 43 + ["b"] * 43}
    page = payload(ic.tally(data), 10)
    assert len(runs(page, 0)) == 1
    assert page["cells"]["n"] == [28, 15] * 2


def test_small_groups_are_left_out_and_named():
    data = sample(2000, 2, seed=5)
    for label in (0, 1, 1):
        for name, value in (("group", 7), ("score", 0.4), ("label", label), ("id", 9)):
            data[name] = np.append(data[name], value)
    page = payload(ic.tally(data), 2)
    assert (page["left_out"], page["names"]) == (["7"], ["0", "1"])
    assert set(page["cells"]["group"]) == {0, 1}
    assert sum(page["cells"]["n"]) == 2000


@pytest.mark.parametrize("count", [-1, 2.5, True, "3", None])
def test_min_count_is_checked(count):
    with pytest.raises(ic.UsageError, match="min_count: must be a whole number"):
        payload(compas(), count)


def test_nothing_left_is_an_error():
    with pytest.raises(ic.DataError) as caught:
        payload(compas(), 10_000)
    assert str(caught.value) == (
        "min_count: must leave at least one group to show\n"
        "  got:  10000, and no group has as many rows of each label\n"
        "  next: use a smaller number, or pool groups with tally.relabel"
    )


def test_a_threshold_must_be_an_edge():
    with pytest.raises(ic.UsageError, match="must be an edge of the tally"):
        payload(compas(), 10, threshold=0.123)


def test_groups_survive_javascript():
    assert safe_group(1) == 1
    assert safe_group("1.0") == "1.0"
    assert safe_group(True) is True
    assert safe_group(0.5) == 0.5
    assert safe_group((1.0, "x", 2**53 + 1)) == [
        {"exact": "1.0"}, "x", {"exact": "9007199254740993"},
    ]  # fmt: skip


def test_names_tell_groups_apart():
    data = {"score": [0.2, 0.8] * 2, "label": [0, 1] * 2, "group": ["1", "1", "<b>", "<b>"]}
    assert payload(ic.tally(data))["names"] == ["1", "<b>"]
    mixed = ic.tally({**data, "group": ["1"] * 4}) + ic.tally({**data, "group": [1] * 4})
    assert payload(mixed)["names"] == ["1", "'1'"]


def test_costs_and_rules_have_the_same_groups():
    tally = ic.tally(sample(500, 2, seed=6)).relabel({0: 2.0, 1: 3.0})
    cost = Cost(fp={2.0: 1.0, 3.0: 2.0}, fn=1.0, by_base_rate=True)
    assert payload(tally)["groups"] == [{"exact": "2.0"}, {"exact": "3.0"}]
    rule = ic.withhold(tally, cost, tolerance=0.2)
    page = compact(tally.groups, rule)
    assert page["cost"] == {
        "fp": [[{"exact": "2.0"}, 1.0], [{"exact": "3.0"}, 2.0]],
        "fn": 1.0,
        "by_base_rate": True,
    }
    assert [tally.groups[row[0]] for row in page["rows"]] == [row.group for row in rule.rows]


def test_it_is_small():
    tally = ic.Tally.load(DATA / "income.json")
    whole, merged = (len(json.dumps(payload(tally, least))) for least in (0, 10))
    assert whole < 150_000
    assert merged < whole / 4


# Bins put together: exact sums, few cells, nothing told of few people


@pytest.fixture(scope="module")
def many():
    return ic.tally(sample(60_000, 20, seed=3), edges=(0.503,))


def test_many_cells_are_merged_and_sums_stay(many):
    held = payload(many, threshold=0.3330078125)
    assert len(many.cells) > MOST_CELLS >= len(held["cells"]["n"])
    tally = held_tally(held, many.groups)
    for name in ("n", "w", "wh", "wh2"):
        sums = [getattr(t.totals, name) for t in (many, tally)]
        np.testing.assert_allclose(*sums, rtol=1e-12)
    # No run lies across a tenth, an edge of the tally, or the threshold asked for.
    for cut in (0.1, 0.5, 0.9, 0.503, 0.3330078125):
        assert undecided(held, many.grid, cut) == []
    assert undecided(held, many.grid, 0.2509765625) == list(range(20))


def test_measures_at_the_tenths_stay(many):
    tally = held_tally(payload(many), many.groups)
    for wanted, found in zip(
        measured(many, "fnr", 0.4).groups.values(),
        measured(tally, "fnr", 0.4).groups.values(),
        strict=True,
    ):
        for name in ("cost", "fpr", "fnr", "calibration_gap", "brier"):
            assert getattr(found, name) == pytest.approx(getattr(wanted, name), abs=1e-9), name


@pytest.mark.parametrize("least", [10, 25])
def test_no_interval_of_reconcile_rests_on_few_people(least):
    tally = ic.tally(sample(1500, 3, seed=9))
    held = payload(tally, least)
    seen = held_tally(held, tally.groups)
    rule = snapped(ic.reconcile(seen), seen, held)
    cells, cuts = tally.cells, tally.grid.cuts
    for row in rule.rows:
        low, high = np.searchsorted(cuts, [row.lo, row.hi])
        mine = (cells.group == tally.groups.index(row.group)) & (cells.bin >= low)
        mine &= cells.bin < high
        for label in (0, 1):
            rows = cells.n[mine & (cells.label == label)].sum()
            assert rows == 0 or rows >= least
    # Applied to everybody it does what it was made for.
    after = measured(rule.expected(tally), "fnr")
    assert after.equalized_odds_difference == pytest.approx(0.0, abs=1e-9)
