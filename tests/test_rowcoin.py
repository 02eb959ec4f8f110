"""Coins of rows without ids."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isocost.coin import BITS, coins
from isocost.learn.inputs import coins_of_rows, row_hashes

X = np.random.default_rng(0).normal(size=(50_000, 3))


def test_the_same_row_in_any_container():
    rows = np.array([[1.0, -0.0, 2.5], [0.0, np.nan, -3.0], [1e300, 7.0, 0.0]])
    wanted = row_hashes(rows).tolist()
    for form in (
        rows.tolist(),
        rows.astype(object),
        np.asfortranarray(rows),
        pd.DataFrame(rows),
        pl.DataFrame(rows),
        sp.csr_matrix(rows),
        sp.coo_array(rows),
    ):
        assert row_hashes(form).tolist() == wanted
    assert row_hashes(X.astype(np.float32)).tolist() == row_hashes(X).tolist()
    whole = np.array([[1, 0], [3, 4]])
    assert row_hashes(whole).tolist() == row_hashes(whole.astype(float)).tolist()


def test_texts_and_nulls():
    columns = {"a": [1, 2, None], "b": ["x", "ü", None], "c": [True, False, True]}
    rows = np.array(list(zip(*columns.values(), strict=True)), dtype=object)
    wanted = row_hashes(pd.DataFrame(columns)).tolist()
    assert row_hashes(pl.DataFrame(columns)).tolist() == wanted
    assert row_hashes(rows).tolist() == wanted
    category = pd.DataFrame(columns).astype({"b": "category"})
    assert row_hashes(category).tolist() == wanted
    assert row_hashes(np.array([["1"]])) != row_hashes(np.array([[1]]))


def test_rounding_in_the_last_digits_does_not_matter():
    near = X * (1 + 1e-15)
    assert np.mean(row_hashes(near) == row_hashes(X)) > 0.9999


@given(hnp.arrays(np.float64, (3, 4), elements=st.floats(-10, 10, width=32)))
def test_rows_differ_exactly_when_their_hashes_do(rows):
    hashes = row_hashes(rows)
    for i in range(3):
        for j in range(3):
            assert (hashes[i] == hashes[j]) == np.array_equal(rows[i], rows[j])


def test_places_count():
    assert len(set(row_hashes(np.eye(20)).tolist())) == 20
    assert row_hashes(np.zeros((2, 3))).tolist() == [0, 0]


def test_coins_are_even_and_do_not_follow_the_values():
    thrown = coins_of_rows(X, None, "isocost", None) / 2**BITS
    counts = np.bincount((thrown * 20).astype(int), minlength=20)
    assert ((counts - 2500) ** 2 / 2500).sum() < 45  # chi-square with 19 degrees, p < 0.001
    assert np.abs(np.corrcoef(thrown, X.T)[0, 1:]).max() < 0.02


def test_salt_and_ids():
    assert (coins_of_rows(X, None, "a", None) != coins_of_rows(X, None, "b", None)).all()
    ids = np.arange(len(X))
    for form in (ids, pd.Series(ids), pl.Series(ids), ids.tolist()):
        assert np.array_equal(coins_of_rows(X, form, "a", 3), coins(ids, "a"))


@pytest.mark.parametrize("seed", [0, 1, 2**31])
def test_random_state_counts_equal_rows(seed):
    rows = np.repeat(X[:100], 50, axis=0)
    assert len(set(coins_of_rows(rows, None, "a", None).tolist())) == 100
    thrown = coins_of_rows(rows, None, "a", seed)
    assert len(set(thrown.tolist())) == 5000
    # Rows that differ keep their coins in any order; of equal rows the first keeps its own.
    order = np.random.default_rng(0).permutation(100)
    assert np.array_equal(coins_of_rows(X[order], None, "a", seed), thrown[::50][order])
    assert not np.array_equal(coins_of_rows(rows, None, "a", seed + 1), thrown)
