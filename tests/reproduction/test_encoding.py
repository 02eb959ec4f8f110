import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder

from isocost.errors import DataError
from reproduction.encoding import one_hot

TABLE = {
    "age": np.array([30, 41, 22]),
    "pay": np.array([1.5, np.nan, 0.0]),
    "job": np.array(["?", "clerk", "?"]),
    "sex": np.array(["f", "m", "f"]),
}


def test_numbers_first_then_a_column_per_category():
    X, names = one_hot(TABLE, categorical=["job", "sex"], numeric=["pay", "age"])
    assert names == ("pay", "age", "job=?", "job=clerk", "sex=f", "sex=m")
    want = [[1.5, 30, 1, 0, 1, 0], [np.nan, 41, 0, 1, 0, 1], [0, 22, 1, 0, 1, 0]]
    np.testing.assert_array_equal(X, want)
    assert X.dtype == np.float64


@given(
    st.lists(st.tuples(st.sampled_from("abc?"), st.sampled_from(["x", "yy"])), min_size=1),
    st.randoms(use_true_random=False),
)
def test_like_scikit_learns_and_whatever_the_order_of_rows(rows, random):
    texts = np.array(rows)
    table = {"one": texts[:, 0], "two": texts[:, 1]}
    X, names = one_hot(table, categorical=["one", "two"])
    encoder = OneHotEncoder(sparse_output=False).fit(texts)
    np.testing.assert_array_equal(X, encoder.transform(texts))
    assert list(names) == [
        n.replace("_", "=") for n in encoder.get_feature_names_out(["one", "two"])
    ]
    order = np.array(random.sample(range(len(rows)), len(rows)))
    shuffled = {name: values[order] for name, values in table.items()}
    again, same_names = one_hot(shuffled, categorical=["one", "two"])
    assert same_names == names
    np.testing.assert_array_equal(again, X[order])


def test_everything_wrong_is_told():
    short = TABLE | {"age": np.array([1])}
    with pytest.raises(DataError) as caught:
        one_hot(short, categorical=["job", "sexx", "job"], numeric=["age"])
    text = str(caught.value)
    assert text.startswith("3 problems")
    assert "next: did you mean categorical= or numeric='sex'?" in text
    assert "features: must be different columns\n  got:  'job'" in text
    assert "got:  age with 1, job with 3" in text


def test_nothing_to_encode():
    with pytest.raises(DataError, match="features: must be at least one column"):
        one_hot(TABLE)


def test_texts_are_no_numbers():
    with pytest.raises(DataError, match="job: must hold numbers to be numeric") as caught:
        one_hot(TABLE, numeric=["job"])
    assert "put 'job' among the categorical columns" in str(caught.value)


def test_a_missing_number_is_no_category():
    with pytest.raises(DataError, match="pay: must hold categories") as caught:
        one_hot(TABLE, categorical=["pay"])
    assert "1 values that are NaN" in str(caught.value)
