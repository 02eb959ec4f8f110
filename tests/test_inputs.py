"""Groups in every form that people have them in, and coins of rows without ids."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import isocost as ic
from isocost.coin import BITS, coins
from isocost.learn import EqualizedOdds
from isocost.learn.inputs import coins_of_rows, features_of, read_groups, row_hashes
from tests.test_postprocess import FAST, NEW_X, X, Y

ROWS = np.zeros((4, 2))
TEXTS = ["a", "b", "a", "c"]


def named(groups):
    return [groups.values[code] for code in groups.codes]


@pytest.mark.parametrize(
    "form",
    [
        TEXTS,
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        np.array(TEXTS)[:, None],
        pd.Series(TEXTS, index=[9, 8, 7, 6]),
        pd.Series(TEXTS, dtype="category"),
        pd.DataFrame({"g": TEXTS}),
        pl.Series(TEXTS),
        pl.DataFrame({"g": TEXTS}),
        pa.table({"g": TEXTS}),
    ],
    ids=lambda form: f"{type(form).__module__}.{type(form).__name__}",
)
def test_one_column(form):
    assert named(read_groups(ROWS, form)) == TEXTS


@pytest.mark.parametrize("values", [[1, 2, 1, 3], [True, False, True, True], [0.5, 1.0, 0.5, 2.0]])
def test_values_keep_their_type(values):
    for form in (values, np.array(values), pd.Series(values), pl.Series(values)):
        found = named(read_groups(ROWS, form))
        assert found == values
        assert {type(v) for v in found} == {type(values[0])}


def test_several_columns_make_combinations():
    wanted = [("a", 1), ("b", 1), ("a", 2), ("c", 2)]
    other = [1, 1, 2, 2]
    both = np.empty((4, 2), dtype=object)
    both[:, 0], both[:, 1] = TEXTS, other
    frame = pd.DataFrame({"g": TEXTS, "h": other})
    for form in (both, both.tolist(), frame, pl.DataFrame({"g": TEXTS, "h": other})):
        groups = read_groups(ROWS, form)
        assert named(groups) == wanted
        assert features_of(groups).tolist() == [list(pair) for pair in wanted]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_columns_of_x(kind):
    frame = kind({"x": [0.5, 1.0, 2.0, 3.0], "g": TEXTS, "h": [1, 1, 2, 2]})
    wanted = [("a", 1), ("b", 1), ("a", 2), ("c", 2)]
    assert named(read_groups(frame, "g")) == TEXTS
    assert named(read_groups(frame, ["g", "h"])) == wanted
    assert named(read_groups(frame, None, "g")) == TEXTS
    assert named(read_groups(frame, None, 1)) == TEXTS
    assert named(read_groups(frame, None, ["g", 2])) == wanted
    assert named(read_groups(frame, None, lambda X: X["h"])) == [1, 1, 2, 2]


def test_positions_in_arrays_and_sparse_matrices():
    array = np.array([[0.0, 1.0], [5.0, 2.0], [7.0, 1.0]])
    for form in (array, array.tolist(), sp.csr_matrix(array)):
        assert named(read_groups(form, None, -1)) == [1.0, 2.0, 1.0]


def test_groups_from_a_function_in_an_estimator():
    model = EqualizedOdds(FAST, groups_from=lambda X: X[:, 0] > 0, cv=2).fit(X, Y)
    assert model.rule_.groups == (False, True)
    assert model.predict(NEW_X).shape == (500,)
    passed = model.predict(NEW_X, sensitive_features=NEW_X[:, 0] > 0)
    assert np.array_equal(model.predict(NEW_X), passed)


FRAME = pd.DataFrame({"sex": ["f", "m"], "age": [20, 30]})


@pytest.mark.parametrize(
    ("X", "given", "setting", "text"),
    [
        (FRAME, "sexx", None, "sensitive_features: must name a column .* did you mean"),
        (FRAME, None, "sexx", "groups_from: must name a column of the data"),
        (FRAME, ["sex", "age"], None, "but could be both"),
        (FRAME, ["agee"], None, "sensitive_features: must name a column of the data"),
        (ROWS, "sex", None, "may name a column only if X is a frame"),
        (ROWS, None, 2, "groups_from: must be the position of a column.*got:  2, and X has 2"),
        (ROWS, ["a", None, "b", "b"], None, "must be known in every row\n  got:  1 null"),
        (ROWS, 3, None, "sensitive_features: must have one dimension"),
        (ROWS, np.zeros((4, 1, 1)), None, "sensitive_features: must have one dimension"),
        (ROWS, ["a", "b"], None, "must have one value per row\n  got:  2 values for 4 rows"),
        (ROWS, np.zeros((4, 0)), None, "must have one value per row\n  got:  0 values for 4 rows"),
    ],
)
def test_bad_groups(X, given, setting, text):
    with pytest.raises(ic.IsocostError, match=f"(?s){text}"):
        read_groups(X, given, setting)


# Coins of rows without ids


WIDE = np.random.default_rng(0).normal(size=(50_000, 3))


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
    assert row_hashes(WIDE.astype(np.float32)).tolist() == row_hashes(WIDE).tolist()
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
    near = WIDE * (1 + 1e-15)
    assert np.mean(row_hashes(near) == row_hashes(WIDE)) > 0.9999


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
    thrown = coins_of_rows(WIDE, None, "isocost", None) / 2**BITS
    counts = np.bincount((thrown * 20).astype(int), minlength=20)
    assert ((counts - 2500) ** 2 / 2500).sum() < 45  # chi-square with 19 degrees, p < 0.001
    assert np.abs(np.corrcoef(thrown, WIDE.T)[0, 1:]).max() < 0.02


def test_salt_and_ids():
    assert (coins_of_rows(WIDE, None, "a", None) != coins_of_rows(WIDE, None, "b", None)).all()
    ids = np.arange(len(WIDE))
    for form in (ids, pd.Series(ids), pl.Series(ids), ids.tolist()):
        assert np.array_equal(coins_of_rows(WIDE, form, "a", 3), coins(ids, "a"))


@pytest.mark.parametrize("seed", [-1, 2**32, 2**70, 0.5, "x"])
def test_a_random_state_that_numpy_does_not_take(seed):
    with pytest.raises(ic.UsageError) as raised:
        coins_of_rows(WIDE, None, "a", seed)
    rule = "random_state: must be a whole number from 0 to 4294967295, a NumPy RandomState or None"
    assert str(raised.value) == f"{rule}\n  got:  {seed!r}\n  next: use 0"


@pytest.mark.parametrize("seed", [0, 1, 2**31])
def test_random_state_counts_equal_rows(seed):
    rows = np.repeat(WIDE[:100], 50, axis=0)
    assert len(set(coins_of_rows(rows, None, "a", None).tolist())) == 100
    thrown = coins_of_rows(rows, None, "a", seed)
    assert len(set(thrown.tolist())) == 5000
    # Rows that differ keep their coins in any order; of equal rows the first keeps its own.
    order = np.random.default_rng(0).permutation(100)
    assert np.array_equal(coins_of_rows(WIDE[order], None, "a", seed), thrown[::50][order])
    assert not np.array_equal(coins_of_rows(rows, None, "a", seed + 1), thrown)
