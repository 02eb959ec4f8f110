"""ic.tally on dictionaries and arrays: kinds of columns, and everything that can be wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from isocost.engines import arrays
from tests.conftest import counted, populations, sample

GOOD = {"score": [0.2, 0.7, 0.4, 0.9], "label": [0, 1, 1, 0], "group": ["a", "a", "b", "b"]}


def brute_force(data, tally):
    """Cells from a loop over the rows."""
    cells = {}
    for g, y, h, w in zip(data["group"], data["label"], data["score"], data["weight"], strict=True):
        place = int(tally.grid.index(np.array([h]))[0])
        cell = cells.setdefault((tally.groups.index(g), int(y), place), np.zeros(5))
        cell += [1, w, w * w, w * h, w * h * h]
    return cells


@given(data=populations(), bins=st.sampled_from([1, 10, 1024]))
def test_cells_by_a_loop(data, bins):
    tally = counted(data, bins=bins, edges=(0.123,))
    cells = tally.cells
    wanted = brute_force(data, tally)
    keys = list(zip(cells.group.tolist(), cells.label.tolist(), cells.bin.tolist(), strict=True))
    assert keys == sorted(wanted)
    found = np.stack([cells.n, cells.w, cells.w2, cells.wh, cells.wh2], axis=1)
    np.testing.assert_allclose(found, [wanted[key] for key in keys], rtol=1e-12)


def test_chunks_do_not_matter(monkeypatch):
    data = sample(1_000, groups=7, weighted=True)
    whole = ic.tally(data, weight="weight")
    monkeypatch.setattr(arrays, "CHUNK", 13)
    assert ic.tally(data, weight="weight") == whole
    monkeypatch.setattr(arrays, "DENSE", 3)
    assert ic.tally(data, weight="weight") == whole
    monkeypatch.setattr(arrays, "DENSE", 20_000)
    assert ic.tally(data, weight="weight") == whole


@pytest.mark.parametrize(
    ("label", "positive"),
    [
        ([False, True, True, False], None),
        (np.array([0, 1, 1, 0], dtype=np.int8), None),
        (np.array([0, 1, 1, 0], dtype=np.uint64), None),
        (np.array([0.0, 1.0, 1.0, 0.0]), None),
        (np.array([0, 1, True, False], dtype=object), None),
        (["0", "1", "1", "0"], None),
        (["no", "yes", "yes", "no"], "yes"),
        ([-1, 1, 1, -1], 1),
        ([1, 2, 2, 1], 2),
        ([2.5, 0.5, 0.5, 2.5], 0.5),
        (np.array(["n", "y", "y", "n"], dtype=object), "y"),
        ([0, 1, 1, 0], 1),
    ],
)
def test_labels_of_any_kind(label, positive):
    assert ic.tally({**GOOD, "label": label}, positive=positive) == ic.tally(GOOD)


def test_groups_keep_their_type():
    def groups(values):
        return ic.tally({**GOOD, "group": values}).groups

    assert groups([1, 1, 2, 2]) == (1, 2)
    assert [type(g) for g in groups([1.0, 1.0, 2.5, 2.5])] == [float, float]
    assert [type(g) for g in groups([True, True, False, False])] == [bool, bool]
    assert groups(np.array([1, 1, "1", "1"], dtype=object)) == (1, "1")
    assert groups([1, 1, "1", "1"]) == (1, "1")
    assert groups([-(10**12), 10**12, 5, 5]) == (-(10**12), 5, 10**12)
    assert groups(np.array([0.5, 1e300, 0.5, 1.0])) == (0.5, 1.0, 1e300)
    with pytest.raises(ic.DataError, match="must stay different when compared"):
        groups(np.array([1, 1, True, True], dtype=object))


def test_many_integer_groups_found_as_they_come(monkeypatch):
    monkeypatch.setattr(arrays, "CHUNK", 10)
    group = np.concatenate([np.arange(50), np.arange(100_000, 100_050), np.arange(-50, 0)])
    data = {"score": np.full(150, 0.5), "label": np.zeros(150), "group": group}
    assert ic.tally(data).groups == tuple(sorted(group.tolist()))


def test_intersections():
    data = {**GOOD, "sex": ["F", "F", "M", "M"], "age": [30, 40, 30, 40]}
    tally = ic.tally(data, group=["sex", "age"])
    assert tally.groups == (("F", 30), ("F", 40), ("M", 30), ("M", 40))
    assert tally.columns["group"] == ["sex", "age"]
    direct = ic.tally(score=GOOD["score"], label=GOOD["label"], group=[data["sex"], data["age"]])
    assert direct == tally


def test_many_intersections(monkeypatch):
    random = np.random.default_rng(0)
    columns = {name: random.integers(0, 60, 3_000) for name in "xyz"}
    data = {"score": random.random(3_000), "label": random.integers(0, 2, 3_000), **columns}
    tally = ic.tally(data, group=["x", "y", "z"])
    wanted = set(zip(*(columns[name].tolist() for name in "xyz"), strict=True))
    assert set(tally.groups) == wanted
    monkeypatch.setattr(arrays, "CHUNK", 100)
    assert ic.tally(data, group=["x", "y", "z"]) == tally


def test_null_groups():
    data = {**GOOD, "group": ["a", None, "b", float("nan")]}
    with pytest.raises(ic.DataError, match=r"group: must be known in every row\n  got:  2 null"):
        ic.tally(data)
    assert ic.tally(data, missing_group="?").groups == ("?", "a", "b")
    numbers = {**GOOD, "group": [1.0, np.nan, 2.0, np.nan]}
    assert ic.tally(numbers, missing_group=-1.0).groups == (-1.0, 1.0, 2.0)
    two = {**GOOD, "sex": ["F", None, "M", "M"], "age": [1, 2, 1, 2]}
    assert ic.tally(two, group=["sex", "age"], missing_group="?").groups[0] == ("?", 2)
    with pytest.raises(ic.DataError, match="1 null"):
        ic.tally(two, group=["sex", "age"])


def test_a_structured_array():
    rows = np.array(
        [(0.2, 0, 1), (0.7, 1, 2)], dtype=[("score", float), ("label", int), ("group", int)]
    )
    assert ic.tally(rows) == ic.tally({"score": [0.2, 0.7], "label": [0, 1], "group": [1, 2]})


def test_all_problems_of_one_data_set_together():
    data = {
        "score": [0.2, np.nan, 1.5, -0.1, np.inf, None],
        "label": [0, 1, 2, np.nan, 1, 0],
        "group": ["a", None, "b", "b", "a", "a"],
        "weight": [1, 0, -1, np.nan, np.inf, 1],
    }
    with pytest.raises(ic.DataError) as error:
        ic.tally(data, weight="weight")
    assert str(error.value) == (
        "4 problems:\n"
        "score: must be a number in [0, 1] in every row\n"
        "  got:  2 null or NaN (first: in row 1), 1 infinite (first: inf in row 4), "
        "2 outside [0, 1] (first: 1.5 in row 2), of 6 rows, counted from 0\n"
        "  next: drop or fill rows without a score (drop_missing=True drops them); if a rule "
        "handed them over, count them with isocost.tally(..., handed_over=True); divide "
        "percentages by 100; convert decision values to probabilities\n"
        "label: must be 0/1 or boolean in every row\n"
        "  got:  1 null or NaN (first: in row 3), 1 other than 0 and 1 (first: 2.0 in row 2), "
        "of 6 rows, counted from 0\n"
        "  next: drop rows without a label (drop_missing=True drops them), which assumes that they "
        'are like the others; missing_label="keep" counts them as unknown; name the positive label '
        "with positive= if the column has two other values\n"
        "group: must be known in every row\n"
        "  got:  1 null (first: in row 1), of 6 rows, counted from 0\n"
        "  next: drop those rows (drop_missing=True drops them), which assumes that they are like "
        'the others; missing_group="keep" counts them as unknown; or count them as a group of '
        'their own with missing_group="unknown"\n'
        "weight: must be a positive, finite number in every row\n"
        "  got:  1 null or NaN (first: in row 3), 1 infinite (first: inf in row 4), "
        "1 zero (first: 0.0 in row 1), 1 negative (first: -1.0 in row 2), "
        "of 6 rows, counted from 0\n"
        "  next: drop rows with weight 0, and check the column for missing values "
        "(drop_missing=True drops them)"
    )
    assert isinstance(error.value, ValueError)
    assert len(error.value.problems) == 4


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"score": ["a", "b", "c", "d"]}, {}, "4 not a number (first: 'a' in row 0)"),
        ({"label": ["yes", "no", "yes", "no"]}, {}, "label: must be 0/1 or boolean"),
        ({"label": [-1, 1, 1, -1]}, {}, "2 other than 0 and 1 (first: -1 in row 0)"),
        ({"label": ["x", "y", "z", "x"]}, {"positive": "x"}, "label: must have two values"),
        ({"label": ["x", "y", "y", "x"]}, {"positive": "q"}, "must hold the positive label 'q'"),
        ({"label": [1, 2, 2, 1]}, {"positive": "2"}, "must hold the positive label '2'"),
        ({"label": ["x", None, "y", "x"]}, {"positive": "x"}, "1 null or NaN"),
        ({"score": [0.1, 0.2]}, {}, "columns must have the same length"),
        ({"score": [[0.1], [0.2], [0.3], [0.4]]}, {}, "score: must have one dimension"),
        ({"group": [b"a", b"a", b"b", b"b"]}, {}, "group: values must be text"),
    ],
)
def test_bad_columns(change, options, message):
    with pytest.raises(ic.DataError) as error:
        ic.tally({**GOOD, **change}, **options)
    assert message in str(error.value)


def test_wrong_names():
    with pytest.raises(ic.UsageError) as error:
        ic.tally(GOOD, score="scores")
    assert "the columns are 'score', 'label', 'group'" in str(error.value)
    assert 'did you mean score="score"?' in str(error.value)
    with pytest.raises(ic.UsageError, match="group: must name at least one column"):
        ic.tally(GOOD, group=[])
    with pytest.raises(ic.UsageError, match="data: must be given when the columns are named"):
        ic.tally(score="score")
    with pytest.raises(ic.UsageError, match="data: must be a dict of arrays, a frame"):
        ic.tally(42)
    with pytest.raises(ic.UsageError, match="the data have no columns"):
        ic.tally({})


def test_problems_of_objects_are_reported_with_the_rest():
    data = {**GOOD, "score": [0.2, "high", None, 10**400], "label": [0, 1, 7, {}]}
    with pytest.raises(ic.DataError) as error:
        ic.tally(data)
    assert "1 null or NaN (first: in row 2)" in str(error.value)
    assert "2 not a number (first: 'high' in row 1)" in str(error.value)
    assert "2 other than 0 and 1" in str(error.value)


def test_masked_values_are_null():
    def masked(values):
        return np.ma.array(values, mask=[0, 0, 0, 1])

    data = {name: masked(values) for name, values in GOOD.items()}
    with pytest.raises(ic.DataError, match="3 problems") as error:
        ic.tally(data)
    assert str(error.value).count("1 null") == 3
    with pytest.raises(ic.DataError, match="1 others, such as nan"):
        ic.generalized_fpr(GOOD["label"], masked(GOOD["score"]))


def test_weights_whose_squares_are_no_numbers():
    for weight in (1e-200, 1e200):
        with pytest.raises(ic.DataError, match="4 below 1e-70 or above 1e70"):
            ic.tally({**GOOD, "weight": [weight] * 4}, weight="weight")


def test_weights_that_add_up_to_the_count_are_still_weights():
    data = {"score": [0.5] * 4, "label": [0, 0, 1, 1], "group": ["a"] * 4}
    tally = ic.tally({**data, "weight": [0.5, 1.5, 0.5, 1.5]}, weight="weight")
    assert tally.is_weighted
    assert ic.Tally.from_json(tally.to_json()) == tally


def test_booleans_and_numbers_do_not_mix_in_silence():
    with pytest.raises(ic.DataError, match="must stay different when compared"):
        ic.tally({**GOOD, "group": [True, True, 1, 1]})
    numbers = ic.tally({**GOOD, "group": [1, 1, 2, 2]})
    with pytest.raises(ic.DataError, match="must stay different when compared"):
        numbers + ic.tally({**GOOD, "group": [True, True, False, False]})
    assert (numbers + ic.tally({**GOOD, "group": [1.0, 1.0, 2.0, 2.0]})).groups == (1, 2)


@pytest.mark.parametrize("first", [[None, "u"], ["u", None]])
def test_the_name_for_missing_groups_may_occur(monkeypatch, first):
    monkeypatch.setattr(arrays, "CHUNK", 1)
    data = {**GOOD, "group": [*first, "b", "b"]}
    assert ic.tally(data, missing_group="u").groups == ("b", "u")


def test_many_columns_of_many_values():
    random = np.random.default_rng(0)
    columns = {f"c{i}": random.integers(0, 2_000, 4_000) for i in range(6)}
    data = {"score": random.random(4_000), "label": random.integers(0, 2, 4_000), **columns}
    assert len(ic.tally(data, group=list(columns)).groups) == 4_000


def test_nothing_is_left():
    with pytest.raises(ic.UsageError, match="groups: at least one must remain"):
        ic.tally(GOOD).drop(["a", "b"])


@pytest.mark.parametrize(
    ("column", "value", "kind"),
    [
        ("score", 1.5, "1 outside [0, 1]"),
        ("score", -0.1, "1 outside [0, 1]"),
        ("score", np.nan, "1 null or NaN"),
        ("score", np.inf, "1 infinite"),
        ("score", -np.inf, "1 infinite"),
        ("weight", 0.0, "1 zero"),
        ("weight", -1.0, "1 negative"),
        ("weight", np.nan, "1 null or NaN"),
        ("weight", np.inf, "1 infinite"),
        ("label", 2, "1 other than 0 and 1"),
        ("label", -1, "1 other than 0 and 1"),
    ],
)
def test_one_bad_value_alone_is_seen(column, value, kind):
    data = {**GOOD, "weight": [1.0] * 4}
    data[column] = [*data[column][:3], value]
    with pytest.raises(ic.DataError) as error:
        ic.tally(data, weight="weight")
    assert kind in str(error.value)
    assert "in row 3" in str(error.value)


def of_groups(values):
    group = np.empty(len(values), dtype=object)
    group[:] = values
    return {"score": [0.5] * len(values), "label": np.arange(len(values)) % 2, "group": group}


@pytest.mark.parametrize(
    "values", [[1, None, 2, 1], ["a", "b", None, "a"], [True, None, False, True], [1, "1", None, 1]]
)
def test_groups_as_objects_keep_their_types(values):
    found = ic.tally(of_groups(values), missing_group="?")
    counts = {(type(g), g): found.select([g]).n for g in found.groups}
    assert counts == {(type(g), g): values.count(g) for g in values if g is not None} | {
        (str, "?"): 1
    }


def test_a_list_among_nulls_is_no_group():
    with pytest.raises(ic.DataError, match="values must be text, numbers or booleans"):
        ic.tally(of_groups([None, [1, [2]], None, None]))
