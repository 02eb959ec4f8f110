import json
import time
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost.tallies import read_fields
from tests.conftest import counted, populations
from tests.hostile import extreme, population, survived, tampered, use_tally


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


TWO = {"score": [0.1, 0.9], "label": [0, 1], "group": ["a", "b"]}
"""Two people."""


def test_sums_of_tallies():
    assert sum([ic.tally(TWO)] * 3).n == 6
    # Groups keep their types.
    assert (ic.tally(TWO) + ic.tally({**TWO, "group": [1, "1"]})).groups == (1, "1", "a", "b")
    with pytest.raises(ic.UsageError, match="both must have the same bins and edges"):
        ic.tally(TWO) + ic.tally(TWO, bins=8)
    with pytest.raises(ic.UsageError, match=r"the edges \(0.33,\)"):
        ic.tally(TWO) + ic.tally(TWO, edges=(0.33,))


def test_not_equal():
    for other in ({"score": [0.1, 0.8]}, {"label": [1, 1]}, {"group": ["a", "c"]}):
        assert ic.tally(TWO) != ic.tally({**TWO, **other})
    assert ic.tally(TWO) != ic.tally(TWO, bins=8)
    assert ic.tally(TWO) != ic.tally({**TWO, "weight": [1, 2]}, weight="weight")
    handed = [
        ic.tally({name: [*TWO[name], *more] for name, more in rows.items()}, handed_over=True)
        for rows in (
            {"score": [None], "label": [0], "group": ["a"]},
            {"score": [None], "label": [0], "group": ["b"]},
            {"score": [None] * 2, "label": [0, 1], "group": ["a"] * 2},
        )
    ]
    for one, other in permutations([ic.tally(TWO), *handed], 2):
        assert one != other
    assert ic.tally(TWO) != "tally"


def test_select_drop_relabel():
    data = {"score": [0.1, 0.9, 0.4], "label": [0, 1, 1], "group": ["a", "b", "c"]}
    tally = ic.tally(data)
    assert tally.select(["a", "c"]) == tally.drop(["b"])
    # All of "c" are handed over: it is no group of this tally, and none that was chosen.
    without = ic.tally({**data, "score": [0.1, 0.9, np.nan]}, handed_over=True)
    assert without.handed_over.keys() == {"c"}
    assert not without.select(without.groups).handed_over
    pooled = tally.relabel({"b": "rest", "c": "rest"})
    assert pooled.groups == ("a", "rest")
    assert pooled == ic.tally({**data, "group": ["a", "rest", "rest"]})
    with pytest.raises(ic.UsageError, match="must be one of the groups of the tally"):
        tally.drop(["z"])


def test_repr_is_a_table():
    tally = ic.tally({**TWO, "group": ["a", "<script>"]}, edges=(0.33,))
    assert "Tally of 2 rows in 2 groups; 1024 bins, edges 0.33" in repr(tally)
    assert "<script>" not in tally._repr_html_()


def top(**changes):
    return lambda content: content.update(changes)


def cells(**changes):
    return lambda content: content["cells"].update(changes)


def twice(content):
    for values in content["cells"].values():
        values.append(values[0])


def many(content, rows):
    cells = content["cells"]
    for name in ("n", "wh", "wh2"):
        cells[name] = [rows * value for value in cells[name]]


def weights(content, squared, weight, fourth=1.0):
    """Let both rows have a weight, and its powers other ones."""
    cells = content["cells"]
    for name in ("wh", "wh2"):
        cells[name] = [weight * value for value in cells[name]]
    cells.update(w=[weight] * 2, w2=[squared] * 2, w4=[fourth] * 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (top(format="x"), "something else"),
        (top(version=2), "version 2"),
        (cells(group=[0]), "differ in length"),
        (cells(group=[0, 5]), "a group in the cells"),
        (cells(label=[0, 2]), "a label in the cells"),
        (cells(bin=[0, 10**6]), "a bin in the cells"),
        (cells(n=[1, -1]), "no rows or no weight"),
        (cells(wh=[1, "x"]), "a value of wh"),
        (cells(wh=[0.1, 0.2]), "mean score lies outside its bin"),
        (cells(wh2=[0.5, 0.81]), "squared scores do not fit"),
        (lambda c: c.pop("cells"), "no field 'cells'"),
        (top(version=True), "version True"),
        (top(note="x"), "an unknown field 'note'"),
        (top(edges=0.5), "edges or groups that are not a list"),
        (top(edges=["a"]), "'a', but edges must be a number strictly between"),
        (top(bins=0), "0, but bins must be a whole number from 1 to 65536"),
        (top(groups=["a", None]), "None of type NoneType, but group values must be"),
        (top(groups=["a", "a"]), "'a', 'a', which are equal in Python"),
        (top(reading=[]), "a reading that is not values by name"),
        (top(reading={"colour": "red"}), "a reading that is not values by name"),
        (top(reading={"columns": []}), "a reading with columns []"),
        (top(reading={"columns": {"age": "x"}}), "a reading with columns"),
        (top(reading={"columns": {"score": 3}}), "a reading with columns"),
        (top(reading={"columns": {"group": []}}), "a reading with columns"),
        (top(reading={"dropped_rows": -1}), "a reading with dropped_rows -1"),
        (top(reading={"positive": [1]}), "a reading with positive"),
        (top(cells=[]), "cells that are not columns by name"),
        (cells(w=[1, 1]), "no column of cells 'w2'"),
        (cells(x=[1, 1]), "an unknown column of cells 'x'"),
        (cells(n=[[1], [1]]), "a value of n that is not a finite number"),
        (cells(n=[1, [1]]), "a value of n that is not a finite number"),
        (cells(n=[1, 10**30]), "a value of n that is not a finite number"),
        (cells(n=[1, None]), "a value of n that is not a finite number"),
        (cells(bin=[0.5, 1]), "a value of bin that is not a whole number"),
        (lambda c: many(c, 1.5), "numbers of rows n that do not add up to a whole number"),
        (lambda c: twice(c), "group 0, label 0 and bin 103 in more than one cell"),
        (lambda c: weights(c, 5, 2, 25), "cells whose powers of weights do not fit their weights"),
        (lambda c: weights(c, 0.5, 1), "a cell whose squared weights do not fit its weights"),
        (lambda c: weights(c, 4, 2, 15), "a cell whose fourth powers of weights do not fit"),
        (lambda c: weights(c, 4, 2, 17), "cells whose powers of weights do not fit their weights"),
        (lambda c: weights(c, 1e-200, 1e-200), "weights do not lie between 1e-75 and 1e+90"),
        (lambda c: weights(c, 1e200, 1e200), "weights do not lie between 1e-75 and 1e+90"),
        (lambda c: many(c, 2**53), "1.80144e+16 rows, more than can be counted"),
        (cells(wh2=[0.0109, 0.81]), "squared scores do not fit"),
    ],
)
def test_corrupt_json(change, message):
    content = ic.tally(TWO).to_dict()
    change(content)
    with pytest.raises(ic.DataError, match="tally file: must be what Tally") as error:
        ic.Tally.from_json(json.dumps(content))
    assert message in str(error.value)


def test_save_and_load(tmp_path):
    ic.tally(TWO).save(tmp_path / "t.json")
    assert ic.Tally.load(tmp_path / "t.json") == ic.tally(TWO)
    with pytest.raises(ic.FileError, match="No such file"):
        ic.Tally.load(tmp_path / "no.json")


PEOPLE = population(0)
PLAIN, WEIGHTED = ic.tally(PEOPLE, bins=8), ic.tally(PEOPLE, weight="weight", bins=8)
MADE = [PLAIN, WEIGHTED, ic.equalize_odds(WEIGHTED).expected(WEIGHTED)]


def forged(text):
    """The tally of a text whose fingerprint fits: who changes a file may write that too."""
    try:
        return ic.Tally.from_json(text)
    except ic.DataError as error:
        if "fingerprint" not in str(error):
            raise
    content = json.loads(text)
    content["fingerprint"] = ic.Tally.build(**read_fields(content)).fingerprint
    return ic.Tally.from_dict(content)


def refused_or_good(text):
    tally = survived(lambda: forged(text))
    if tally is not None:
        use_tally(tally)


@settings(max_examples=100, phases=[Phase.generate])
@given(text=tampered([json.loads(tally.to_json()) for tally in MADE]))
def test_a_tally_that_was_tampered_with_is_refused_or_good(text):
    refused_or_good(text)


@settings(max_examples=15, phases=[Phase.generate])
@given(text=extreme())
def test_an_uneven_tally_is_refused_or_good(text):
    refused_or_good(text)


def test_many_groups_take_time_in_proportion():
    """Looking through all groups for each would take minutes."""
    many = 40_000
    cells = {"group": list(range(many)), "label": [0, 1] * (many // 2), "bin": [0] * many}
    cells |= {name: [1] * many if name == "n" else [0] * many for name in ("n", "wh", "wh2")}
    content = {**ic.tally(TWO).to_dict(), "groups": [f"g{i}" for i in range(many)], "cells": cells}
    start = time.perf_counter()
    tally = forged(json.dumps(content))
    assert len((tally + tally).drop(tally.groups[:10]).groups) == many - 10
    with pytest.raises(ic.DataError, match="which are equal in Python"):
        ic.Tally.from_dict({**content, "groups": [*content["groups"][:-1], "g39998"]})
    assert time.perf_counter() - start < 10
