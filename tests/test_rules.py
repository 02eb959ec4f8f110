"""Rules: what they do to people and cells; and files, which may hold anything."""

import contextlib
import json
import pickle
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost.examples import compas
from isocost.measures import rates
from isocost.rules import Row, reversals
from tests.conftest import counted, populations, sample
from tests.hostile import population, survived, tampered, use_rule


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
                if row.end is not None:
                    value += (row.end - row.value) * (h - row.lo) / (row.hi - row.lo)
                for key, item in zip(out, (value, y, g, w * row.probability), strict=True):
                    out[key].append(item)
                left -= row.probability
        if left > 1e-12:
            for key, item in zip(out, (h, y, g, w * left), strict=True):
                out[key].append(item)
    return {key: np.array(items) for key, items in out.items()}


FEW_ROWS = {
    "score": np.array([0.0, 0.0, 0.0, 0.0625, 0.0, 0.0]),
    "label": np.array([0, 1, 0, 0, 0, 1]),
    "group": np.array(["a", "a", "a", "a", "b", "b"]),
    "weight": np.array([1.0, 0.5, 1.0, 1.0, 1.0, 1.0]),
}


@given(
    data=populations(groups=(2, 2)),
    p=st.floats(0, 0.5),
    q=st.floats(0, 0.5),
    value=st.floats(0, 1),
    end=st.floats(0, 1),
)
@example(data=FEW_ROWS, p=0.0, q=5e-324, value=0.0, end=0.0)
def test_expected_is_the_average_over_the_coin(data, p, q, value, end):
    rule = rule_of(
        Row("a", 0.0, 0.5, "set", value, p),
        Row("a", 0.0, 0.5, "mirror", None, q),
        Row("b", 0.5, 1.0, "mirror", None, 1.0),
        Row("b", 0.1, 0.3, "line", value, p, end),
        Row("b", 0.3, 0.5, "line", end, 1.0, value),
    )
    found = rule.expected(counted(data)).totals
    wanted = counted(simulated(data, rule)).totals
    for name in ("w", "wh", "wh2"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-9)


@given(
    data=populations(groups=(2, 2)),
    lo=st.integers(0, 7),
    value=st.floats(0, 1),
    end=st.floats(0, 1),
    bins=st.sampled_from([1, 8, 1024]),
)
@example(data=FEW_ROWS, lo=0, value=1.0, end=0.0, bins=8)
def test_a_steep_line_keeps_the_sums_and_makes_a_tally_that_can_be_saved(
    data, lo, value, end, bins
):
    rule = rule_of(Row("a", lo / 8, (lo + 1) / 8, "line", value, 1.0, end))
    tally = ic.tally(data, weight="weight", bins=bins, edges=[i / 8 for i in range(1, 8)])
    after = rule.expected(tally)
    assert ic.Tally.from_json(after.to_json()) == after
    wanted = ic.tally(simulated(data, rule), weight="weight", bins=bins).totals
    for name in ("n", "w"):
        np.testing.assert_allclose(getattr(after.totals, name), getattr(tally.totals, name))
    for name in ("wh", "wh2"):
        np.testing.assert_allclose(getattr(after.totals, name), getattr(wanted, name), atol=1e-9)


@pytest.mark.parametrize("ends", [(0.1, 1.0), (0.3, 1.0), (0.9, 0.0), (0.7, 0.0), (0.0, 1.0)])
def test_no_line_leaves_the_scores(ends):
    row = Row("a", 0.1, 0.7, "line", ends[0], 1.0, ends[1])
    score = np.append(np.linspace(0.1, 0.7, 999)[:-1], np.nextafter(0.7, 0.0))
    after = rule_of(row).apply(score=score, group=["a"] * len(score))
    assert after.min() >= 0.0
    assert after.max() <= 1.0
    wanted = ends[0] + (ends[1] - ends[0]) * (score - 0.1) / 0.6
    np.testing.assert_allclose(after, wanted, atol=1e-12)
    assert row.limit == ends[1]
    assert Row("a", 0.1, 0.7, "line", 0.3, 1.0, 0.6).limit is None


def test_only_a_line_has_an_end():
    rule = rule_of(Row("a", 0.0, 0.5, "line", 0.25, 1.0, 0.75), Row("b", 0.0, 1.0, "set", 0.5, 1.0))
    line, plain = rule.to_dict()["rows"]
    assert (line["end"], "end" in plain) == (0.75, False)
    assert ic.Rule.from_json(rule.to_json()) == rule
    assert "0.2500 to 0.7500" in repr(rule)


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
        assert expected == ic.tally(rule.apply(data), "repaired_score").cells.bin.tolist()


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
    applied = ic.tally(rule.apply(data, id="id"), "repaired_score").totals
    n = tally.totals.n
    # One row's score moves by at most 1: four standard errors of a binomial mean.
    error = np.abs(applied.wh - expected.wh) / n
    assert (error < 4 * 0.5 / np.sqrt(n)).all()
    assert error[:2].max() > 0


def test_same_person_same_outcome_in_any_order_and_company():
    data = sample(5_000, seed=1)
    rule = rule_of(Row(0, 0.0, 1.0, "set", 0.4, 0.5), groups=(0, 1))
    whole = rule.apply(data, id="id")["repaired_score"]
    order = np.random.default_rng(0).permutation(5_000)
    for part in (order, slice(17, 18)):
        some = rule.apply({name: values[part] for name, values in data.items()}, id="id")
        np.testing.assert_array_equal(some["repaired_score"], whole[part])


def test_a_higher_probability_keeps_those_already_chosen():
    data = sample(5_000, seed=1)
    rules = [rule_of(Row(0, 0.0, 1.0, "set", 0.4, p), groups=(0, 1)) for p in (0.3, 0.4)]
    low, high = (rule.apply(data, changed="c", id="id")["c"] for rule in rules)
    assert (high[low]).all()
    assert high.sum() > low.sum()


def test_apply_to_arrays_and_with_a_seed():
    data = sample(2_000)
    rule = rule_of(Row(0, 0.0, 1.0, "set", 0.4, 0.5), groups=(0, 1))
    by_name = rule.apply(data, id="id")["repaired_score"]
    direct = rule.apply(score=data["score"], group=data["group"], id=data["id"])
    np.testing.assert_array_equal(by_name, direct)
    once = rule.apply(score=data["score"], group=data["group"], seed=1)
    np.testing.assert_array_equal(
        once, rule.apply(score=data["score"], group=data["group"], seed=1)
    )
    assert (once != by_name).any()


def test_no_ids_are_needed_without_a_coin():
    rule = rule_of(Row("a", 0.0, 1.0, "set", 0.4, 1.0))
    assert rule.apply({"score": [0.1], "group": ["a"]}, id="id")["repaired_score"].tolist() == [0.4]
    assert not rule.needs_coin


def test_a_coin_without_ids_is_refused():
    rule = rule_of(Row("a", 0.0, 1.0, "set", 0.4, 0.5))
    with pytest.raises(ic.UsageError, match="id: must name a column of the data"):
        rule.apply({"score": [0.1], "group": ["a"]}, id="id")
    with pytest.raises(ic.UsageError, match="id: must be given, because this rule throws a coin"):
        rule.apply(score=[0.1], group=["a"])
    with pytest.raises(ic.UsageError, match="2 ids for 1 rows"):
        rule.apply(score=[0.1], group=["a"], id=[1, 2])
    for ids in ([None], [1.5]):
        with pytest.raises(ic.DataError, match="id: must be a whole number or a text"):
            rule.apply({"score": [0.1], "group": ["a"], "id": ids}, id="id")


def test_unknown_groups():
    rule = rule_of(Row("a", 0.0, 1.0, "set", 0.4, 1.0))
    data = {"score": [0.1, 0.2], "group": ["a", "z"]}
    with pytest.raises(ic.UsageError, match="group: must be one the rule knows: 'a', 'b'"):
        rule.apply(data)
    assert rule.apply(data, unknown="keep")["repaired_score"].tolist() == [0.4, 0.2]
    typed = rule_of(Row("1", 0.0, 1.0, "set", 0.4, 1.0), groups=("1", "2"))
    with pytest.raises(ic.UsageError, match="1 is of type int here"):
        typed.apply({"score": [0.1], "group": [1]})
    with pytest.raises(ic.UsageError, match="must be one the rule knows"):
        rule.expected(ic.tally({"score": [0.1], "label": [1], "group": ["z"]}))
    lacking = ic.Rule(compas().groups, (), "test", cost=ic.Cost(fp={"Caucasian": 1.0}, fn=1.0))
    for ask in (lambda: ic.compare(compas(), [lacking]), lambda: ic.watch(lacking, [compas()])):
        with pytest.raises(ic.UsageError, match=r"got:  no.* for group 'African-American'"):
            ask()


def test_bad_rows_at_apply():
    rule = rule_of(Row("a", 0.0, 1.0, "set", 0.4, 1.0))
    with pytest.raises(ic.DataError) as error:
        rule.apply({"score": [0.1, 1.5, None], "group": ["a", None, "b"]})
    text = str(error.value)
    assert "1 null or NaN (first: in row 2), 1 outside [0, 1] (first: 1.5 in row 1)" in text
    assert "group: must be known in every row" in text
    filled = rule.apply({"score": [0.1, 0.2], "group": [None, "b"]}, missing_group="a")
    assert filled["repaired_score"].tolist() == [0.4, 0.2]


def test_intervals_must_be_edges_of_the_tally():
    tally = ic.tally({"score": [0.1, 0.9], "label": [0, 1], "group": ["a", "b"]})
    rule = rule_of(Row("a", 0.0, 0.333, "set", 0.4, 1.0))
    with pytest.raises(ic.UsageError, match="rule interval: must be an edge of the tally"):
        rule.expected(tally)


def test_alpha_belongs_to_withholding():
    with pytest.raises(ic.UsageError, match="alpha: needs a rule made by withhold"):
        _ = rule_of().alpha


def test_a_long_rule_shows_its_head_and_what_it_does():
    cuts = np.linspace(0.0, 0.5, 1001)
    rows = [Row("a", lo, hi, "set", 0.25, 0.5 if lo < 0.1 else 0.75) for lo, hi in pairwise(cuts)]
    promise = ic.Promise({"fpr": 0.1}, {"fpr": 0.1}, True, True, 0.5)
    rule = rule_of(*rows, Row("b", 0.0, 0.2, "mirror", None, 1.0), promise=promise, notes=("<i>",))
    text, html = repr(rule), rule._repr_html_()
    assert len(text.splitlines()) < 20
    assert "promise: equal fpr within 0.1 at 0.5; scores stay calibrated; a coin decides" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["a", "1,000", "[0,", "0.5]", "0.5", "to", "0.75"] in lines
    assert ["b", "1", "[0,", "0.2]", "1"] in lines
    assert "The first 5 of 1,001 rows" in text
    assert "note: <i>" in text
    assert html.count("<tr>") == 2 + 1 + 5 + 1
    assert "&lt;i&gt;" in html
    assert "equal fpr within 0.1" in html


def test_scores_between_intervals_stay():
    rows = [Row("a", i / 40, (i + 1) / 40, "set", 0.5, 0.9) for i in range(0, 30, 2)]
    assert rule_of(*rows).summary()[1] == [
        ["a", "15", "[0, 0.725]", "0 to 0.9"],
        ["b", "0", "-", "0"],
    ]


def test_a_rule_is_a_frame_too():
    rule = rule_of(Row("a", 0.0, 0.5, "set", 0.4, 0.5), Row("b", 0.5, 1.0, "mirror", None, 1.0))
    frame = rule.to_frame(backend="polars")
    assert frame.columns == ["group", "lo", "hi", "action", "value", "probability", "end"]
    assert frame.row(0)[:6] == ("a", 0.0, 0.5, "set", 0.4, 0.5)
    assert frame["value"].is_nan().to_list() == [False, True]
    assert rule_of().to_frame(backend="dict")["group"].tolist() == []


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


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", 1, ("F", 2)]), st.sampled_from([0, 0.25, 0.5]), st.floats(0, 1)
    ),
    unique_by=lambda row: row[:2],
)


@given(rows=ROWS, salt=st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_json_round_trip(rows, salt):
    rule = ic.Rule(
        groups=("a", 1, ("F", 2)),
        rows=tuple(Row(g, lo, lo + 0.25, "set", p, p) for g, lo, p in rows),
        method="test",
        cost=ic.Cost(fp={"a": 1, 1: 2, ("F", 2): 3}, fn=1),
        salt=salt,
        notes=("a note",),
    )
    back = ic.Rule.from_json(rule.to_json())
    assert back == rule
    assert [type(g) for g in back.groups] == [type(g) for g in rule.groups]


NAMES = st.dictionaries(st.sampled_from(["cost", "fpr", "fnr"]), st.floats(0, 1))


@given(asked=NAMES, more=st.floats(0, 1), calibrated=st.booleans(), at=st.none() | st.just(0.3))
def test_json_round_trip_of_a_promise(asked, more, calibrated, at):
    equal = {name: limit + more for name, limit in asked.items()}
    promise = ic.Promise(equal, asked, calibrated, coin=False, threshold=at)
    rule = ic.Rule(("a",), (), "test", cost=ic.Cost.fpr(), promise=promise)
    back = ic.Rule.from_json(rule.to_json())
    assert back == rule
    assert back.promise == promise


def test_a_rule_made_by_hand_promises_nothing():
    rule = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.5, 0.5),), "test")
    assert rule.promise == ic.Promise()
    assert rule.promise.is_empty
    assert str(rule.promise) == "nothing"
    assert rule.to_dict()["promise"] == {
        "equal": {},
        "asked": {},
        "calibrated": False,
        "coin": True,
        "threshold": None,
        "floor": {},
        "handed_over": [],
    }
    assert ic.Rule.from_json(rule.to_json()) == rule
    assert not ic.Promise(calibrated=True).is_empty


def promise(**change):
    return lambda c: c["promise"].update(change)


def content():
    return ic.withhold(compas(), cost="fpr", tolerance=0.06).to_dict()


def reading(columns):
    return lambda c: c["made_from"].update(reading={"columns": columns})


def row(**change):
    return lambda c: c["rows"][0].update(change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format="x"), 'must say "format": "isocost-rule"'),
        (lambda c: c.update(version=2), "rule version: must be 1, the version this isocost reads"),
        (lambda c: c.pop("promise"), "no 'promise'"),
        (lambda c: c.pop("rows"), "no 'rows'"),
        (lambda c: c.update(code="import os"), "an unknown 'code'"),
        (lambda c: c.update(rows={}), "rule rows: must be of the right kind"),
        (lambda c: c.update(groups=[]), "rule groups: must be named, each once"),
        (lambda c: c.update(groups=["a", "a"]), "rule groups: must be named, each once"),
        (lambda c: c.update(groups=[None]), "group: values must be text"),
        (lambda c: c.update(notes=[1]), "rule notes: must be texts"),
        (lambda c: c.update(version=True), "rule version: must be of the right kind"),
        (
            lambda c: c.update(cost={"fp": [["a", 1], ["a", 2]], "fn": 1, "by_base_rate": False}),
            "cost: must be a Cost",
        ),
        (
            lambda c: c.update(cost={"fp": 1e300, "fn": 0, "by_base_rate": False}),
            "from 1e-100 to 1e+100",
        ),
        (lambda c: c.update(cost={"fp": -1, "fn": 0, "by_base_rate": False}), "at least 0"),
        *(
            (reading(columns), "rule made_from: must say how the data were read")
            for columns in ([1], None, {"group": 5}, {"score": ["a"]}, {"group": []})
        ),
        (lambda c: c["coin"].update(scheme="crc32"), "rule coin"),
        (lambda c: c["coin"].update(salt=1), "rule salt"),
        (lambda c: c["coin"].update(salt="x" * 2000), "rule salt"),
        (lambda c: c["coin"].update(salt="\ud800"), "text that is not valid Unicode: '\\ud800'"),
        (lambda c: c.update(rows=[[]]), "rule row: must have the fields"),
        (row(group="nobody"), "must be of a group the rule names"),
        (row(lo=0.5, hi=0.5), "rule interval: must have 0 <= lo < hi <= 1"),
        (row(lo=-1), "rule interval"),
        (row(hi="1"), "rule interval"),
        (row(probability=1.5), "rule probability: must be a number in [0, 1]"),
        (row(probability=True), "rule probability"),
        (row(action="exec"), "rule action"),
        (row(value=2), "rule value: must be a score in [0, 1]"),
        (row(value=None), "rule value: must be a score in [0, 1]"),
        (row(action="mirror"), "rule value: must be null"),
        (row(action="line"), 'rule row: must have an end if the action is "line"'),
        (row(end=0.5), 'rule row: must have an end if the action is "line"'),
        (row(end=None), 'rule row: must have an end if the action is "line"'),
        (row(action="line", end=None), "rule end: must be a score in [0, 1]"),
        (row(action="line", end=1.5), "rule end: must be a score in [0, 1]"),
        (row(action="line", end=0.5, value=None), "rule value: must be a score in [0, 1]"),
        (row(action="line", end=0.5, lo=0.0, hi=1e-13), "rule interval: must be at least 1e-12"),
        (lambda c: c.update(promise=None), "rule promise: must be of the right kind"),
        (lambda c: c["promise"].pop("coin"), "rule promise: must have the fields"),
        (lambda c: c["promise"].pop("floor"), "rule promise: must have the fields equal, asked"),
        (promise(code="x"), "rule promise: must have the fields"),
        (promise(equal=["cost"]), "rule promise equal: must be a finite number of at least 0"),
        (promise(equal={"cost": -1}), "rule promise equal: must be a finite number"),
        (promise(equal={"cost": True}), "rule promise equal: must be a finite number"),
        (promise(equal={"cost": 10**400}), "which is not a finite number"),
        (promise(asked={"cost": "0"}), "rule promise asked: must be a finite number"),
        (promise(asked={}), "rule promise: must have the same names in equal and asked"),
        (promise(asked={"cost": 0.5}), "rule promise: must not be stricter in equal than in asked"),
        (promise(calibrated=1), "rule promise calibrated: must be true or false"),
        (promise(coin=None), "rule promise coin: must be true or false"),
        (promise(coin=False), "rule promise coin: must be true if a row has a probability"),
        (promise(threshold=1), "rule promise threshold: must be null or a number strictly"),
        (promise(threshold="0.5"), "rule promise threshold: must be null or a number strictly"),
        (lambda c: c.update(cost=None), "rule promise: must name cost only if the rule has a cost"),
        (lambda c: c["rows"].append(dict(c["rows"][0])), "must add up to at most 1"),
        (
            lambda c: c["rows"].append({**c["rows"][0], "lo": 0.5}),
            "must be the same or not overlap",
        ),
    ],
)
def test_hostile_content(change, message):
    changed = content()
    change(changed)
    with pytest.raises(ic.RuleError) as error:
        ic.Rule.from_json(json.dumps(changed))
    assert message in str(error.value)
    assert "next:" in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '"rule"', "9" * 5000, None, 5])
def test_hostile_text(text):
    with pytest.raises(ic.RuleError):
        ic.Rule.from_json(text)


@given(text=st.text(max_size=50), place=st.integers(0, 2000))
def test_damaged_text(text, place):
    whole = json.dumps(content())
    damaged = whole[:place] + text + whole[place + len(text) :]
    with contextlib.suppress(ic.RuleError):
        ic.Rule.from_json(damaged)


def test_save_is_whole_or_not_at_all(tmp_path, monkeypatch):
    rule = ic.withhold(compas(), cost="fpr", tolerance=0.06)
    path = tmp_path / "rule.json"
    rule.save(path)
    assert ic.Rule.load(path) == rule

    def fail(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", fail)
    with pytest.raises(ic.FileError, match="No space left on device"):
        rule.with_salt("other").save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["rule.json"]
    assert ic.Rule.load(path) == rule


def test_missing_and_binary_files(tmp_path):
    with pytest.raises(ic.FileError, match="must be readable"):
        ic.Rule.load(tmp_path / "no.json")
    with pytest.raises(ic.FileError, match="must be writable"):
        ic.withhold(compas(), cost="fpr", tolerance=0.06).save(tmp_path / "no" / "rule.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ic.FileError, match="must be UTF-8 text"):
        ic.Rule.load(tmp_path / "b.json")


PEOPLE = population(0)
TALLY = ic.tally(PEOPLE, bins=8, edges=(0.33, 0.67))
COSTS = ic.Cost.weighted(fp={"a": 1, "b": 2}, fn=3)


def recalibrated_and_merged():
    first = ic.recalibrate(TALLY, "histogram", bins=3)
    rule = first.then(ic.withhold(first.expected(TALLY), infeasible="closest"), TALLY)
    return rule.unmerged({"x": TALLY.groups[0], "y": TALLY.groups[0]})


MAKERS = (
    lambda: ic.withhold(TALLY, tolerance=0.05, infeasible="closest"),
    lambda: ic.coarsen(TALLY, COSTS, infeasible="closest", allow_decision_changes=True),
    lambda: ic.equalize_odds(TALLY, rates="hard"),
    lambda: ic.reconcile(TALLY, 0.5, ("fpr", "cost"), cost="fpr", levels=3, infeasible="closest"),
    lambda: ic.reconcile(TALLY, tolerance={"fpr": 0.1}, levels=3, infeasible="closest"),
    lambda: ic.recalibrate(TALLY, "beta"),
    lambda: recalibrated_and_merged(),
)
MADE = [survived(make) for make in MAKERS]


@settings(max_examples=100, phases=[Phase.generate])
@given(text=tampered([json.loads(rule.to_json()) for rule in MADE]))
def test_a_rule_that_was_tampered_with_is_refused_or_good(text):
    rule = survived(lambda: ic.Rule.from_json(text))
    if rule is not None:
        use_rule(rule, TALLY, PEOPLE)


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def test_loading_takes_time_in_proportion():
    """Looking through all names for each took 69 s for 40,000 of them."""
    names = ", ".join(f'"k{i}": 1' for i in range(40_000))

    def repeated():
        with pytest.raises(ic.RuleError, match="the name 'k39999' twice in one object"):
            ic.Rule.from_json(f'{{{names}, "k39999": 2}}')

    assert seconds(repeated) < 5
    many = tuple(f"g{i}" for i in range(20_000))
    each = tuple(Row(group, 0.0, 1.0, "set", 0.5, 0.5) for group in many)
    text = ic.Rule(groups=many, rows=each, method="test").to_json()
    # Looking through all rows for each group would take minutes.
    assert ic.Rule.from_json(text).groups == many
    amounts = dict.fromkeys(many, 1.0)
    rows = tuple(Row("a", 0.0, 1.0, "set", 0.5, 1e-6) for _ in range(20_000))
    assert seconds(lambda: ic.Cost(fp=amounts, fn=amounts)) < 5
    # Rows of one interval share a coin, so each bound is a sum over the rows before it.
    assert (
        seconds(lambda: ic.Rule(groups=("a",), rows=rows, method="x").segments("a")[0].bounds) < 5
    )


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ('{"a": 1, "a": 2}', "the name 'a' twice in one object"),
        ('{"a": NaN}', "nan, which is not a finite number"),
        ('{"a": -1e999}', "-inf, which is not a finite number"),
        (f'{{"a": {"9" * 309}}}', "9..., which is not a finite number"),
        ('{"a": "\\ud800"}', "text that is not valid Unicode: '\\ud800'"),
        ('{"\\udfff": 1}', "text that is not valid Unicode: '\\udfff'"),
        ("[" * 65 + "]" * 65, "values nested more than 64 deep"),
        ("[" * 100_000, "values nested too deeply"),
        ("{'a': 1}", "Expecting property name enclosed in double quotes"),
    ],
)
def test_both_kinds_of_files_are_strict(text, got):
    for load, kind in ((ic.Rule.from_json, ic.RuleError), (ic.Tally.from_json, ic.DataError)):
        with pytest.raises(kind) as error:
            load(text)
        assert got in str(error.value)
        assert "next:" in str(error.value)


@pytest.mark.parametrize(
    ("lower", "upper", "count"),
    [
        ([("set", 0.8, 1.0)], [("defer", None, 1.0)], 1),
        ([("defer", None, 1.0)], [("set", 0.8, 1.0)], 0),
        # Of those who are decided, half have each score, below and above.
        ([("set", 0.2, 0.5), ("set", 0.6, 0.5)],
         [("set", 0.2, 0.25), ("set", 0.6, 0.25), ("defer", None, 0.5)], 0),
        ([("set", 0.6, 1.0)], [("set", 0.2, 0.5), ("set", 0.6, 0.5)], 1),
    ],
)  # fmt: skip
def test_reversals_are_about_people_who_are_decided(lower, upper, count):
    rows = [Row("a", 0.0, 0.5, *each) for each in lower]
    rows += [Row("a", 0.5, 1.0, *each) for each in upper]
    assert reversals(rows) == {"a": count}


@pytest.mark.parametrize("tally", [None, 3, "data.csv"])
def test_a_rule_is_made_again_from_a_tally_only(tally):
    with pytest.raises(ic.UsageError, match="tally: must be"):
        ic.withhold(compas(), "fpr", 0.06).remake(tally)
