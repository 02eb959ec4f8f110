import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from isocost.measures import rates
from isocost.rows import Row
from tests.conftest import counted, populations, sample


def rule_of(*rows, groups=("a", "b"), **more):
    return ic.Rule(groups=groups, rows=tuple(rows), method="test", **more)


def simulated(data, rule):
    """The mean of the sums over every coin, by splitting each row by hand."""
    out = {key: [] for key in ("score", "label", "group", "weight")}
    for h, y, g, w in zip(*(data[key] for key in out), strict=True):
        left = 1.0
        for row in rule.rows:
            inside = row.lo <= h and (h < row.hi or row.hi == 1.0)
            if row.group == g and inside and row.probability > 1e-12:
                value = 1.0 - h if row.value is None else row.value
                for key, item in zip(out, (value, y, g, w * row.probability), strict=True):
                    out[key].append(item)
                left -= row.probability
        if left > 1e-12:
            for key, item in zip(out, (h, y, g, w * left), strict=True):
                out[key].append(item)
    return {key: np.array(items) for key, items in out.items()}


@given(
    data=populations(groups=(2, 2)),
    p=st.floats(0, 0.5),
    q=st.floats(0, 0.5),
    value=st.floats(0, 1),
)
def test_expected_is_the_average_over_the_coin(data, p, q, value):
    rule = rule_of(
        Row("a", 0.0, 0.5, "set", value, p),
        Row("a", 0.0, 0.5, "mirror", None, q),
        Row("b", 0.5, 1.0, "mirror", None, 1.0),
    )
    found = rule.expected(counted(data)).totals
    wanted = counted(simulated(data, rule)).totals
    for name in ("w", "wh", "wh2"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-9)


def test_mirroring_one_half_stays_where_it_is():
    tally = ic.tally({"score": [0.5, 0.5], "label": [0, 1], "group": ["a", "b"]})
    rule = rule_of(Row("a", 0.5, 1.0, "mirror", None, 1.0), Row("b", 0.0, 0.5, "mirror", None, 1.0))
    assert rule.expected(tally) == tally


@pytest.mark.parametrize("score", [i / 10 for i in range(1, 10)])
def test_mirrored_tenths_land_in_the_bin_they_land_in_one_by_one(score):
    rule = rule_of(Row("a", 0.0, 1.0, "mirror", None, 1.0), groups=("a",))
    for count in range(1, 60):
        data = {"score": [score] * count, "label": [1] * count, "group": ["a"] * count}
        expected = rule.expected(ic.tally(data)).cells.bin.tolist()
        assert expected == ic.tally(rule.apply(data)).cells.bin.tolist()


@pytest.mark.parametrize("groups", [2, 5])
def test_apply_converges_to_expected_at_the_binomial_rate(groups):
    data = sample(60_000, groups=groups, seed=3)
    tally = ic.tally(data)
    rule = ic.Rule(
        groups=tally.groups,
        rows=(
            Row(0, 0.0, 1.0, "set", 0.4, 0.3),
            Row(1, 0.0, 0.5, "set", 0.2, 0.5),
            Row(1, 0.0, 0.5, "mirror", None, 0.25),
            Row(1, 0.5, 1.0, "set", 0.9, 1.0),
        ),
        method="test",
    )
    expected = rule.expected(tally).totals
    applied = ic.tally(rule.apply(data)).totals
    n = tally.totals.n
    # One row's score moves by at most 1: four standard errors of a binomial mean.
    error = np.abs(applied.wh - expected.wh) / n
    assert (error < 4 * 0.5 / np.sqrt(n)).all()
    assert error[:2].max() > 0


def test_same_person_same_outcome_in_any_order_and_company():
    data = sample(5_000, seed=1)
    rule = rule_of(Row(0, 0.0, 1.0, "set", 0.4, 0.5), groups=(0, 1))
    whole = rule.apply(data)["score"]
    order = np.random.default_rng(0).permutation(5_000)
    shuffled = rule.apply({name: values[order] for name, values in data.items()})["score"]
    np.testing.assert_array_equal(shuffled, whole[order])
    alone = rule.apply({name: values[17:18] for name, values in data.items()})["score"]
    assert alone[0] == whole[17]


def test_a_higher_probability_keeps_those_already_chosen():
    data = sample(5_000, seed=1)
    low = rule_of(Row(0, 0.0, 1.0, "set", 0.4, 0.3), groups=(0, 1)).apply(data, changed="c")["c"]
    high = rule_of(Row(0, 0.0, 1.0, "set", 0.4, 0.4), groups=(0, 1)).apply(data, changed="c")["c"]
    assert (high[low]).all()
    assert high.sum() > low.sum()


def test_apply_to_arrays_and_with_a_seed():
    data = sample(2_000)
    rule = rule_of(Row(0, 0.0, 1.0, "set", 0.4, 0.5), groups=(0, 1))
    by_name = rule.apply(data)["score"]
    direct = rule.apply(score=data["score"], group=data["group"], id=data["id"])
    np.testing.assert_array_equal(by_name, direct)
    once = rule.apply(score=data["score"], group=data["group"], seed=1)
    np.testing.assert_array_equal(
        once, rule.apply(score=data["score"], group=data["group"], seed=1)
    )
    assert (once != by_name).any()


def test_apply_leaves_its_input_alone():
    data = sample(100)
    before = data["score"].copy()
    out = rule_of(Row(0, 0.0, 1.0, "set", 0.4, 1.0), groups=(0, 1)).apply(data, output="repaired")
    np.testing.assert_array_equal(data["score"], before)
    assert "repaired" not in data
    assert set(out) == {*data, "repaired"}


def test_no_ids_are_needed_without_a_coin():
    rule = rule_of(Row("a", 0.0, 1.0, "set", 0.4, 1.0))
    assert rule.apply({"score": [0.1], "group": ["a"]})["score"].tolist() == [0.4]
    assert not rule.needs_coin


def test_a_coin_without_ids_is_refused():
    rule = rule_of(Row("a", 0.0, 1.0, "set", 0.4, 0.5))
    with pytest.raises(ic.UsageError, match="id: must name a column of the data"):
        rule.apply({"score": [0.1], "group": ["a"]})
    with pytest.raises(ic.UsageError, match="id: must be given, because this rule throws a coin"):
        rule.apply(score=[0.1], group=["a"])
    with pytest.raises(ic.UsageError, match="2 ids for 1 rows"):
        rule.apply(score=[0.1], group=["a"], id=[1, 2])
    for ids in ([None], [1.5]):
        with pytest.raises(ic.DataError, match="id: must be a whole number or a text"):
            rule.apply({"score": [0.1], "group": ["a"], "id": ids})


def test_unknown_groups():
    rule = rule_of(Row("a", 0.0, 1.0, "set", 0.4, 1.0))
    data = {"score": [0.1, 0.2], "group": ["a", "z"]}
    with pytest.raises(ic.UsageError, match="group: must be one the rule knows: 'a', 'b'"):
        rule.apply(data)
    assert rule.apply(data, unknown="keep")["score"].tolist() == [0.4, 0.2]
    typed = rule_of(Row("1", 0.0, 1.0, "set", 0.4, 1.0), groups=("1", "2"))
    with pytest.raises(ic.UsageError, match="1 is of type int here"):
        typed.apply({"score": [0.1], "group": [1]})
    with pytest.raises(ic.UsageError, match="must be one the rule knows"):
        rule.expected(ic.tally({"score": [0.1], "label": [1], "group": ["z"]}))


def test_bad_rows_at_apply():
    rule = rule_of(Row("a", 0.0, 1.0, "set", 0.4, 1.0))
    with pytest.raises(ic.DataError) as error:
        rule.apply({"score": [0.1, 1.5, None], "group": ["a", None, "b"]})
    text = str(error.value)
    assert "1 null or NaN (first: in row 2), 1 outside [0, 1] (first: 1.5 in row 1)" in text
    assert "group: must be known in every row" in text
    filled = rule.apply({"score": [0.1, 0.2], "group": [None, "b"]}, missing_group="a")
    assert filled["score"].tolist() == [0.4, 0.2]


def test_intervals_must_be_edges_of_the_tally():
    tally = ic.tally({"score": [0.1, 0.9], "label": [0, 1], "group": ["a", "b"]})
    rule = rule_of(Row("a", 0.0, 0.333, "set", 0.4, 1.0))
    with pytest.raises(ic.UsageError, match="rule interval: must be an edge of the tally"):
        rule.expected(tally)


def test_alpha_belongs_to_withholding():
    with pytest.raises(ic.UsageError, match="alpha: is what a rule made by withhold has"):
        _ = rule_of().alpha


def test_repr_pickle_and_salt():
    rule = rule_of(Row("a", 0.0, 0.5, "set", 0.4, 0.5), Row("b", 0.5, 1.0, "mirror", None, 1.0))
    assert "[0, 0.5)" in repr(rule)
    assert "1 - score" in repr(rule)
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert rule.with_salt("x").salt == "x"
    assert "every score stays" in repr(rule_of())
    assert rates.base_rate(
        rule_of()
        .expected(ic.tally({"score": [0.1, 0.9], "label": [0, 1], "group": ["a", "b"]}))
        .totals
    ).tolist() == [0, 1]


def test_parts_share_out_every_cell():
    tally = ic.tally(sample(3_000, groups=3, seed=4))
    rule = ic.Rule(
        tally.groups,
        (
            Row(0, 0.0, 0.5, "set", 0.2, 0.7),
            Row(0, 0.0, 0.5, "mirror", None, 0.3),
            Row(1, 0.5, 1.0, "set", 0.9, 0.25),
        ),
        "test",
    )
    left = np.ones(len(tally.cells))
    coin = np.zeros(len(tally.cells), dtype=bool)
    for place in range(3):
        *parts, stay = rule.portions(tally, place)
        assert [part.row for part in parts] == [row for row in rule.rows if row.group == place]
        for part in (*parts, stay):
            assert (tally.cells.group[part.cells] == place).all()
            left[part.cells] -= part.share
            coin[part.cells] |= part.by_coin
    np.testing.assert_allclose(left, 0.0, atol=1e-15)
    half = tally.grid.first_bin(0.5)
    low, group = tally.cells.bin < half, tally.cells.group
    np.testing.assert_array_equal(coin, ((group == 0) & low) | ((group == 1) & ~low))
