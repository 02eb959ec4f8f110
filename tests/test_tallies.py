import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from tests.conftest import counted, populations


@given(data=populations(), cut=st.integers(1, 20), bins=st.sampled_from([8, 10, 1024]))
def test_merge_is_union(data, cut, bins):
    first = {name: values[:cut] for name, values in data.items()}
    second = {name: values[cut:] for name, values in data.items()}
    if len(second["score"]) == 0:
        return
    merged = counted(first, bins=bins) + counted(second, bins=bins)
    assert merged == counted(data, bins=bins)


@given(data=populations(), seed=st.integers(0, 99))
def test_row_order_does_not_matter(data, seed):
    order = np.random.default_rng(seed).permutation(len(data["score"]))
    assert counted({name: values[order] for name, values in data.items()}) == counted(data)


@given(data=populations(weighted=False), times=st.integers(1, 4))
def test_integer_weights_are_repeated_rows(data, times):
    heavy = counted({**data, "weight": data["weight"] * times})
    repeated = ic.tally({name: np.repeat(values, times) for name, values in data.items()})
    for name in ("w", "wh", "wh2"):
        np.testing.assert_allclose(getattr(heavy.totals, name), getattr(repeated.totals, name))


@given(data=populations())
def test_json_round_trip(data):
    tally = counted(data, edges=(0.33,))
    back = ic.Tally.from_json(tally.to_json())
    assert back == tally
    assert back.groups == tally.groups
    for name in ("n", "w", "w2", "wh", "wh2"):
        np.testing.assert_array_equal(getattr(back.cells, name), getattr(tally.cells, name))


@given(data=populations(groups=(2, 2), rows=(2, 8)))
def test_sums_are_exact_whatever_the_bins(data):
    tally = counted(data, bins=1)
    for place, group in enumerate(tally.groups):
        for label in (0, 1):
            rows = (data["group"] == group) & (data["label"] == label)
            pairs = zip(data["weight"][rows], data["score"][rows], strict=True)
            exact = sum((Fraction(w) * Fraction(h) for w, h in pairs), Fraction(0))
            assert tally.totals.wh[place, label] == pytest.approx(float(exact), rel=1e-14)


def test_sum_of_tallies():
    data = {"score": [0.1, 0.9], "label": [0, 1], "group": ["a", "b"]}
    tally = ic.tally(data)
    assert sum([tally, tally, tally]).n == 6


def test_unequal_bins_refuse_to_merge():
    data = {"score": [0.1, 0.9], "label": [0, 1], "group": ["a", "b"]}
    with pytest.raises(ic.UsageError, match="both must have the same bins and edges"):
        ic.tally(data) + ic.tally(data, bins=8)
    with pytest.raises(ic.UsageError, match=r"edges=\(0.33,\)"):
        ic.tally(data) + ic.tally(data, edges=(0.33,))


def test_merge_with_new_groups_keeps_their_types():
    a = ic.tally({"score": [0.5], "label": [1], "group": [1]})
    b = ic.tally({"score": [0.5], "label": [1], "group": ["1"]})
    assert (a + b).groups == (1, "1")


def test_not_equal():
    data = {"score": [0.1, 0.9], "label": [0, 1], "group": ["a", "b"]}
    assert ic.tally(data) != ic.tally({**data, "score": [0.1, 0.8]})
    assert ic.tally(data) != ic.tally({**data, "label": [1, 1]})
    assert ic.tally(data) != "tally"


def test_select_drop_relabel():
    data = {"score": [0.1, 0.9, 0.4], "label": [0, 1, 1], "group": ["a", "b", "c"]}
    tally = ic.tally(data)
    assert tally.select(["a", "c"]) == tally.drop(["b"])
    pooled = tally.relabel({"b": "rest", "c": "rest"})
    assert pooled.groups == ("a", "rest")
    assert pooled == ic.tally({**data, "group": ["a", "rest", "rest"]})
    with pytest.raises(ic.UsageError, match="must be one of the groups of the tally"):
        tally.drop(["z"])


def test_repr_is_a_table():
    tally = ic.tally({"score": [0.1, 0.9], "label": [0, 1], "group": ["a", "b"]}, edges=(0.33,))
    assert "Tally of 2 rows in 2 groups; 1024 bins, edges 0.33" in repr(tally)
    assert (
        "<script>"
        not in ic.tally({"score": [0.1], "label": [0], "group": ["<script>"]})._repr_html_()
    )


def _content():
    data = {"score": [0.1, 0.9], "label": [0, 1], "group": ["a", "b"]}
    return ic.tally(data).to_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format="x"), "something else"),
        (lambda c: c.update(version=2), "version 2"),
        (lambda c: c["cells"].update(group=[0]), "differ in length"),
        (lambda c: c["cells"].update(group=[0, 5]), "a group in the cells"),
        (lambda c: c["cells"].update(label=[0, 2]), "a label in the cells"),
        (lambda c: c["cells"].update(bin=[0, 10**6]), "a bin in the cells"),
        (lambda c: c["cells"].update(n=[1, -1]), "no rows or no weight"),
        (lambda c: c["cells"].update(wh=[1, "x"]), "a value of wh"),
        (lambda c: c["cells"].update(wh=[0.1, 0.2]), "mean score lies outside its bin"),
        (lambda c: c["cells"].update(wh2=[0.5, 0.81]), "squared scores do not fit"),
        (lambda c: c.pop("cells"), "no field 'cells'"),
    ],
)
def test_corrupt_json(change, message):
    content = _content()
    change(content)
    with pytest.raises(ic.DataError, match="tally file: must be what Tally") as error:
        ic.Tally.from_json(json.dumps(content))
    assert message in str(error.value)


def test_not_json():
    with pytest.raises(ic.DataError, match="text that is not JSON"):
        ic.Tally.from_json("{")
    with pytest.raises(ic.DataError):
        ic.Tally.from_json("[" * 100_000)


def test_save_and_load(tmp_path):
    tally = ic.tally({"score": [0.1, 0.9], "label": [0, 1], "group": ["a", "b"]})
    tally.save(tmp_path / "t.json")
    assert ic.Tally.load(tmp_path / "t.json") == tally
    with pytest.raises(ic.FileError, match="No such file"):
        ic.Tally.load(tmp_path / "no.json")
