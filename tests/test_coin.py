import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from isocost.coin import bound, bounds, coins, hex_bound, seeded_coins
from tests.coin_vectors import by_hashlib


@given(ids=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), salt=st.text(max_size=80))
def test_whole_numbers_are_bit_identical_to_hashlib(ids, salt):
    if any(0xD800 <= ord(c) < 0xE000 for c in salt):
        return
    assert coins(np.array(ids), salt).tolist() == [by_hashlib(i, salt) for i in ids]


@given(ids=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=150), min_size=1))
def test_texts_are_bit_identical_to_hashlib(ids):
    assert coins(ids, "salt").tolist() == [by_hashlib(i, "salt") for i in ids]


@pytest.mark.parametrize("length", [0, 1, 47, 48, 55, 56, 63, 64, 119, 120, 201, 500])
def test_every_block_length(length):
    assert coins(["x" * length], "seven77").tolist() == [by_hashlib("x" * length, "seven77")]


@pytest.mark.parametrize(
    "ids",
    [
        np.array([2**64 - 1, 2**63, 0], dtype=np.uint64),
        np.array([-128, 0, 127], dtype=np.int8),
        [10**30, -(10**25)],
        ["0", "-5", "123456789012"],
        [1, "b"],
        np.ma.masked_array([1, 2]),
    ],
)
def test_extremes_and_kinds_of_ids(ids):
    assert coins(ids, "s").tolist() == [by_hashlib(i, "s") for i in ids]


def test_more_ids_than_a_chunk_and_any_order():
    ids = np.arange(100_000)
    thrown = coins(ids, "s")
    order = np.random.default_rng(0).permutation(len(ids))
    np.testing.assert_array_equal(coins(ids[order], "s"), thrown[order])
    assert thrown[77_777] == by_hashlib(77_777, "s")


@pytest.mark.parametrize(
    "ids", [np.arange(200_000), np.array([f"person-{i}" for i in range(200_000)])]
)
def test_uniform(ids):
    share = np.sort(coins(ids, "isocost") / 2**52)
    steps = np.arange(1, len(share) + 1) / len(share)
    # Kolmogorov-Smirnov: the 99.9 % point is 1.95 / sqrt(n).
    assert np.abs(share - steps).max() < 1.95 / np.sqrt(len(share))


def test_neighbouring_ids_and_other_salts_are_independent():
    a = coins(np.arange(200_000), "one") / 2**52
    b = coins(np.arange(200_000), "two") / 2**52
    noise = 4 / np.sqrt(len(a))
    assert abs(np.corrcoef(a[:-1], a[1:])[0, 1]) < noise
    assert abs(np.corrcoef(a, b)[0, 1]) < noise


@given(p=st.floats(0, 1), coin=st.integers(0, 2**52 - 1))
def test_text_comparison_is_number_comparison(p, coin):
    assert (f"{coin:013x}" < hex_bound(bound(p))) == (coin < bound(p))


def test_bounds():
    # Of outcomes that share a coin.
    assert bounds([0.25, 0.25, 0.5]) == [2**50, 2**51, 2**52]
    assert bounds([0.1] * 10)[-1] == 2**52
    # Rounded up: the least coin, 0, shows heads for any probability that is not 0.
    assert bound(2.0**-60) == 1
    assert bound(0.1) == int(0.1 * 2**52) + 1


@pytest.mark.parametrize(
    ("ids", "got"),
    [
        ([1, None], "1 null values"),
        ([1.0, 2.0], "values of type float"),
        (np.array([1.0, 2.0]), "values of type float64"),
        (np.array([1.0, np.nan]), "1 null values among floats"),
        ([True, False], "values of type bool"),
        (np.array([True]), "values of type bool"),
        ([b"x"], "values of type bytes"),
        ([float("nan"), "a"], "1 null values"),
        (np.ma.masked_array([1, 2], [False, True]), "1 masked values"),
        (np.array([[1]]), "an array of shape (1, 1)"),
        (["a" * 300, "\ud800"], "a text that UTF-8 cannot encode"),
    ],
)
def test_ids_that_are_refused(ids, got):
    rule = "id: must be a whole number or a text in every row"
    with pytest.raises(ic.DataError, match=rf"{rule}\n  got:  {re.escape(got)}"):
        coins(ids, "s")


def test_seeded_coins_are_reproducible():
    np.testing.assert_array_equal(seeded_coins(5, 1), seeded_coins(5, 1))
    assert (seeded_coins(1000, 1) < 2**52).all()
    assert (seeded_coins(5, 1) != seeded_coins(5, 2)).any()
