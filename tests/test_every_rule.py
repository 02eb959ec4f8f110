"""Every kind of rule does to people what it promises, on every engine there is."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import isocost as ic
from tests.conftest import measured, sample


def simulated(groups, weighted):
    data = sample(60_000, groups=groups, seed=11, weighted=weighted)
    data["name"] = np.array([f"group {g}" for g in range(groups)])[data["group"]]
    return data


def counted(data, weighted):
    return ic.tally(data, group="name", weight="weight" if weighted else None)


MAKERS = {
    "withhold": lambda t: ic.withhold(t, "fnr"),
    "coarsen": lambda t: ic.coarsen(t, "fnr", allow_decision_changes=True),
    "odds": ic.equalize_odds,
    "odds, hard": lambda t: ic.equalize_odds(t, rates="hard"),
    "reconcile": lambda t: ic.reconcile(t, tolerance=0.01),
    "reconcile, decisions": lambda t: ic.reconcile(t, tolerance=0.01, keep="decisions"),
}


@pytest.fixture(scope="module", params=[(2, False), (3, True), (10, False)], ids=str)
def population(request):
    groups, weighted = request.param
    data = simulated(groups, weighted)
    return data, counted(data, weighted), weighted


@pytest.mark.parametrize("name", MAKERS)
def test_people_get_what_was_expected(population, name):
    data, tally, weighted = population
    rule = MAKERS[name](tally)
    expected = measured(rule.expected(tally))
    applied = measured(counted(rule.apply(data, group="name"), weighted))
    for group in tally.groups:
        mine = tally.totals
        place = tally.groups.index(group)
        # The coin moves a mean of scores in [0, 1] by at most 1/2 standard deviation a row.
        rows = (mine.w[place] ** 2 / mine.w2[place]).min()
        noise = 4.5 * 0.5 / np.sqrt(rows)
        for number in ("generalized_fpr", "generalized_fnr", "fpr", "fnr", "mean_score"):
            found = getattr(applied.groups[group], number)
            assert abs(found - getattr(expected.groups[group], number)) < noise, number


@pytest.mark.parametrize("name", MAKERS)
def test_every_engine_gives_the_same_person_the_same_score(tmp_path, name):
    data = simulated(3, weighted=False)
    rule = MAKERS[name](counted(data, weighted=False))
    wanted = rule.apply(data, group="name")["score"]
    assert (wanted != data["score"]).any()
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        found = rule.apply(make(data), group="name")["score"].to_numpy()
        np.testing.assert_array_equal(found, wanted)
    pd.DataFrame(data).to_parquet(tmp_path / "data.parquet")
    ic.apply_file(rule, tmp_path / "data.parquet", tmp_path / "out.parquet", group="name")
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "out.parquet")["score"], wanted)


@pytest.mark.parametrize("name", MAKERS)
def test_rules_survive_json(name):
    tally = counted(simulated(3, weighted=False), weighted=False)
    rule = MAKERS[name](tally)
    assert ic.Rule.from_json(rule.to_json()) == rule


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_to_do_for_identical_groups(name):
    data = simulated(2, weighted=False)
    half = {key: values[data["group"] == 0] for key, values in data.items()}
    twice = {key: np.concatenate([values, values]) for key, values in half.items()}
    twice["name"] = np.repeat(["a", "b"], len(half["score"]))
    tally = ic.tally(twice, group="name")
    rule = MAKERS[name](tally)
    if not name.startswith("reconcile"):
        assert rule.rows == ()
    assert measured(rule.expected(tally)).disparity.difference < 1e-9
