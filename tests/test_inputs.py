"""Groups in every form that people have them in."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import isocost as ic
from isocost.learn import EqualizedOdds
from isocost.learn.inputs import read_groups
from tests.test_postprocess import FAST, GROUP, NEW_GROUP, NEW_X, X, Y

ROWS = np.zeros((4, 2))
TEXTS = ["a", "b", "a", "c"]


def named(groups):
    return groups.values.tolist()


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
        assert groups.features.tolist() == [list(pair) for pair in wanted]


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


def test_intersections_in_an_estimator():
    both = pd.DataFrame({"g": GROUP, "h": np.arange(3000) % 2})
    model = EqualizedOdds(FAST, cv=2).fit(X, Y, sensitive_features=both)
    assert model.rule_.groups == (("a", 0), ("a", 1), ("b", 0), ("b", 1))
    new = pl.DataFrame({"g": NEW_GROUP, "h": np.arange(500) % 2})
    assert model.predict(NEW_X, sensitive_features=new).shape == (500,)


FRAME = pd.DataFrame({"sex": ["f", "m"], "age": [20, 30]})


@pytest.mark.parametrize(
    ("X", "given", "setting", "text"),
    [
        (FRAME, "sexx", None, "sensitive_features: must name a column .* did you mean"),
        (FRAME, None, "sexx", "groups_from: must name a column of the data"),
        (FRAME, ["sex", "age"], None, "but could be both"),
        (FRAME, ["agee"], None, "sensitive_features: must name a column of the data"),
        (ROWS, "sex", None, "may name a column only if X is a frame"),
        (
            ROWS,
            None,
            2,
            "groups_from: must be the position of a column of X\n  got:  2, and X has 2",
        ),
        (ROWS, ["a", None, "b", "b"], None, "must be known in every row\n  got:  1 null"),
        (ROWS, 3, None, "sensitive_features: must have one dimension"),
        (ROWS, np.zeros((4, 1, 1)), None, "sensitive_features: must have one dimension"),
        (ROWS, ["a", "b"], None, "must have one value per row\n  got:  2 values for 4 rows"),
        (
            ROWS,
            np.zeros((4, 0)),
            None,
            "must have one value per row\n  got:  no values for 4 rows",
        ),
    ],
)
def test_bad_groups(X, given, setting, text):
    with pytest.raises(ic.IsocostError, match=f"(?s){text}"):
        read_groups(X, given, setting)
