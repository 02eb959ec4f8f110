import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from isocost.costs import as_cost


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("fpr", ic.Cost.fpr()),
        ("FNR", ic.Cost.fnr()),
        ("weighted:1,3", ic.Cost.weighted(fp=1, fn=3)),
        ("plain:1,0.5", ic.Cost(fp=1, fn=0.5)),
    ],
)
def test_texts(text, cost):
    assert as_cost(text) == cost
    assert as_cost(str(cost)) == cost


AMOUNTS = st.just(0.0) | st.floats(1e-100, 1e6)


@given(fp=AMOUNTS, fn=st.floats(0.001, 1e6), by=st.booleans(), each=st.booleans())
def test_json_round_trip(fp, fn, by, each):
    cost = ic.Cost({"a": fp, ("F", 2): fn} if each else fp, fn, by)
    assert ic.Cost.from_dict(cost.to_dict()) == cost


def test_coefficients():
    mu = np.array([0.2, 0.5])
    a, b = ic.Cost.weighted(fp=1, fn=3).coefficients(("x", "y"), mu)
    np.testing.assert_allclose(a, [0.8, 0.5])
    np.testing.assert_allclose(b, [0.6, 1.5])
    a, b = ic.Cost(fp={"x": 2, "y": 0}, fn=1).coefficients(("x", "y"), mu)
    np.testing.assert_allclose(a, [2, 0])
    np.testing.assert_allclose(b, [1, 1])


@pytest.mark.parametrize("text", ["", "tpr", "weighted", "weighted:1", "weighted:a,b", "fpr:1", 3])
def test_not_a_cost(text):
    with pytest.raises(ic.UsageError, match="cost: must be a Cost, or one of"):
        as_cost(text)


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "1", None, True, 1e-101, 1e101])
def test_bad_numbers(value):
    with pytest.raises(ic.UsageError, match="fp must be a number that is at least 0"):
        ic.Cost(fp=value, fn=1)


def test_both_zero():
    with pytest.raises(ic.UsageError, match="fp and fn must not both be 0"):
        ic.Cost(fp=0, fn=0)
    with pytest.raises(ic.UsageError, match="for group 'a'"):
        ic.Cost(fp={"a": 0, "b": 1}, fn=0)


def test_unknown_and_lacking_groups():
    with pytest.raises(ic.UsageError, match="unknown group 'z', no number for group 'y'"):
        ic.Cost(fp={"x": 1, "z": 1}, fn=1).coefficients(("x", "y"), np.array([0.5, 0.5]))
    with pytest.raises(ic.UsageError, match="no number for group 'b'"):
        ic.Cost(fp={"a": 1, "b": 1}, fn={"a": 1})


PAIRS = [["a", 1], ["a", 2]]


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"fp": 1, "fn": 1},
        *({"fp": fp, "fn": 1, "by_base_rate": False} for fp in ([1], PAIRS, [["a"]], [], {})),
        {"fp": 1, "fn": 1, "by_base_rate": 1},
    ],
)
def test_from_untrusted_json(content):
    with pytest.raises(ic.UsageError):
        ic.Cost.from_dict(content)
