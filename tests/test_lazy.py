"""Lazy frames give the tally that the arrays give, and say the same about bad rows."""

import datetime as dt
import re

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost.engines.lazy import _misplaced
from isocost.grid import Grid
from tests.conftest import populations, sample
from tests.lazy_frames import KINDS, SPARK_AND_PANDAS, as_lazy, session_of

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings(SPARK_AND_PANDAS)

QUICK = ("polars", "duckdb")


@pytest.fixture(params=KINDS)
def lazy(request):
    """A function that makes a lazy frame of one engine."""
    kind = request.param
    spark = session_of(kind, request)
    return lambda data: as_lazy(kind, data, spark)


@pytest.mark.parametrize("kind", QUICK)
@settings(max_examples=25, phases=[Phase.explicit, Phase.generate])
@given(data=populations(), bins=st.sampled_from([1, 7, 10, 1000, 1024]), edge=st.floats(0.01, 0.99))
def test_any_population_gives_the_tally_of_the_arrays(kind, data, bins, edge):
    options = {"weight": "weight", "bins": bins, "edges": (edge, 0.55)}
    assert ic.tally(as_lazy(kind, data), **options) == ic.tally(data, **options)


@pytest.mark.parametrize("kind", [*QUICK, "ibis"])
@pytest.mark.parametrize("bins", [1024, 1000, 3])
def test_scores_on_and_beside_every_edge(kind, bins):
    cuts = Grid(bins, (0.55, 1 / 3)).cuts
    score = np.unique(np.clip([np.nextafter(cuts, -1), cuts, np.nextafter(cuts, 2)], 0, 1))
    data = {"score": score, "label": np.arange(len(score)) % 2, "group": np.ones(len(score), int)}
    options = {"bins": bins, "edges": (0.55, 1 / 3)}
    mine, expected = ic.tally(as_lazy(kind, data), **options), ic.tally(data, **options)
    assert mine == expected
    np.testing.assert_array_equal(mine.cells.bin, expected.cells.bin)


@pytest.mark.parametrize("parts", [1, 3, 7, 10, 365, 1000, 1024, 65535])
def test_the_scores_whose_product_rounds_across_an_edge_are_all_known(parts):
    cuts = np.arange(1, parts + 1) / parts
    near = np.concatenate([cuts, np.nextafter(cuts, 0), np.nextafter(np.nextafter(cuts, 0), 0)])
    near = np.concatenate([near, np.minimum(np.nextafter(cuts, 2), 1.0)])
    too_high, too_low = _misplaced(parts)
    place = np.floor(near * parts) - np.isin(near, too_high) + np.isin(near, too_low)
    np.testing.assert_array_equal(place, np.searchsorted(cuts, near, side="right"))


def test_weights_edges_and_the_number_of_bins(lazy):
    data = sample(3000, groups=3, weighted=True)
    data["group"] = np.array(["a", "it's", "ünï"])[data["group"]]
    for options in ({"weight": "weight", "edges": (0.333,)}, {"bins": 1000}):
        found, expected = ic.tally(lazy(data), **options), ic.tally(data, **options)
        assert found == expected
        assert found.columns == expected.columns
        np.testing.assert_array_equal(found.cells.n, expected.cells.n)


def test_columns_with_any_name(lazy):
    names = {"score": "model.score", "label": 'it`s "y"', "group": "the; group--"}
    data = sample(60)
    named = {names.get(name, name): values for name, values in data.items()}
    assert ic.tally(lazy(named), **names) == ic.tally(named, **names)


@pytest.mark.parametrize(
    "groups", [[1, 2, -3, 2], [True, False, True, False], [0.5, 1.5, 0.5, 1.5]], ids=str
)
def test_groups_keep_their_type(lazy, groups):
    data = {"score": [0.1, 0.2, 0.3, 1.0], "label": [0, 1, 1, 0], "group": groups}
    found = ic.tally(lazy(data))
    assert found == ic.tally(data)
    assert {type(group) for group in found.groups} == {type(groups[0])}


def test_several_group_columns_and_null_groups(lazy):
    data = {
        "score": [0.1, 0.2, 0.3, 1.0],
        "label": [True, False, True, False],
        "sex": ["F", None, "M", "M"],
        "region": ["n", "s", "s", None],
    }
    options = {"group": ["sex", "region"], "missing_group": "?"}
    found = ic.tally(lazy(data), **options)
    assert found.groups == (("?", "s"), ("F", "n"), ("M", "?"), ("M", "s"))
    assert found == ic.tally(data, **options)


def test_labels_that_are_texts_and_named_labels(lazy):
    data = {"score": [0.1, 0.2, 0.3], "label": ["1", "0", "1"], "group": ["a", "a", "b"]}
    assert ic.tally(lazy(data)) == ic.tally(data)
    data["label"] = ["yes", "no", "yes"]
    assert ic.tally(lazy(data), positive="yes") == ic.tally(data, positive="yes")


def without_rows(error):
    """An error of the arrays as a frame without row numbers would tell it."""
    text = re.sub(r" \(first: in row \d+\)", "", str(error))
    return (
        re.sub(r" in row \d+", "", text).replace("first:", "least:").replace(", counted from 0", "")
    )


BAD = {
    "score": [0.1, None, float("inf"), 1.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
    "label": [0, 1, 0, 1, None, 7, 0, 1, 0, 1],
    "group": ["a", "a", "a", "b", "b", "b", None, None, "b", "b"],
    "weight": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, -2.0, float("inf"), 1e-200],
}  # fmt: skip


def test_bad_rows_are_told_together_as_the_arrays_tell_them(lazy):
    with pytest.raises(ic.DataError) as expected:
        ic.tally(BAD, weight="weight")
    with pytest.raises(ic.DataError) as found:
        ic.tally(lazy(BAD), weight="weight")
    # Where an engine turns whole numbers with nulls into floats, 7 is shown as 7.0.
    assert str(found.value).replace("7.0", "7") == without_rows(expected.value)
    assert len(found.value.problems) == 4


def test_columns_with_other_names_and_nan(lazy):
    data = {
        "my score": [float("nan"), 0.5, -0.25],
        'la"bel': ["0", "x", "1"],
        "the group": ["a", "b", None],
    }
    names = {"score": "my score", "label": 'la"bel', "group": "the group"}
    with pytest.raises(ic.DataError) as expected:
        ic.tally(data, **names)
    with pytest.raises(ic.DataError) as found:
        ic.tally(lazy(data), **names)
    assert str(found.value) == without_rows(expected.value)


def test_positive_labels_that_are_not_there_or_one_of_three(lazy):
    data = {"score": [0.1, 0.2, 0.3], "label": ["a", "b", "c"], "group": ["x", "x", "y"]}
    with pytest.raises(ic.DataError, match="label: must have two values") as error:
        ic.tally(lazy(data), positive="b")
    assert "3 or more: 'b', 'a', 'c'" in str(error.value)
    data["label"] = ["a", "c", "c"]
    with pytest.raises(ic.DataError, match="must hold the positive label 1") as error:
        ic.tally(lazy(data), positive=1)
    assert "only 'a', 'c'" in str(error.value)


@pytest.mark.parametrize("kind", QUICK)
def test_named_labels_of_every_type(kind):
    data = {"score": [0.1, 0.2, 0.3], "group": ["a", "a", "b"]}
    for label, positive in (([1, 2, 1], 2), ([True, False, True], False), ([1.5, 0.0, 0.0], 0)):
        data["label"] = label
        found = ic.tally(as_lazy(kind, data), positive=positive)
        assert found == ic.tally(data, positive=positive)
    data["label"] = [True, True, True]
    with pytest.raises(ic.DataError, match="only True"):
        ic.tally(as_lazy(kind, data), positive=False)
    data["label"] = [1.0, float("nan"), None]
    with pytest.raises(ic.DataError, match="2 null or NaN"):
        ic.tally(as_lazy(kind, data), positive=1)


def test_missing_columns_are_named_before_any_row_is_read(lazy):
    data = {"scor": [0.1], "label": [0], "group": ["a"]}
    with pytest.raises(ic.UsageError, match='did you mean score="scor"') as error:
        ic.tally(lazy(data), weight="w")
    assert len(error.value.problems) == 2


@pytest.mark.parametrize("kind", QUICK)
def test_columns_of_the_wrong_type(kind):
    data = {"score": ["high"], "label": [0], "group": ["a"]}
    with pytest.raises(ic.DataError, match="score: must hold numbers\n  got:  a column of type S"):
        ic.tally(as_lazy(kind, data))
    data = {"score": [0.5], "label": [0], "group": [dt.date(2026, 1, 1)]}
    with pytest.raises(ic.DataError, match="group: values must be text, numbers or booleans"):
        ic.tally(as_lazy(kind, data))


def test_types_without_a_name_are_refused_unless_all_is_null():
    duckdb = pytest.importorskip("duckdb")
    for value in ("'\"a\"'::JSON", "uuid()", "'101'::BIT", "MAP {1: 2}"):
        for role in ("score", "label", "group"):
            columns = {"score": "0.5e0", "label": "1", "group": "'a'"} | {role: value}
            listed = ", ".join(f'{text} AS "{name}"' for name, text in columns.items())
            with pytest.raises(ic.DataError, match=f"{role}: values must be text, numbers or b"):
                ic.tally(duckdb.sql(f"SELECT {listed}"))
    empty = duckdb.sql('SELECT 0.5e0 AS score, 1 AS label, NULL AS "group"')
    assert ic.tally(empty, missing_group="?").groups == ("?",)


def test_no_rows(lazy):
    import pyarrow as pa

    fields = {"score": pa.float64(), "label": pa.int64(), "group": pa.string()}
    empty = pa.schema(list(fields.items())).empty_table()
    with pytest.raises(ic.DataError, match="data: must have at least one row\n  got:  0 rows"):
        ic.tally(lazy(empty))


@pytest.mark.parametrize("kind", QUICK)
def test_other_types_of_numbers_and_categories(kind):
    import pyarrow as pa

    table = pa.table(
        {
            "score": pa.array([0.25, 0.5, 1.0], pa.float32()),
            "label": pa.array([1, 0, 1], pa.uint8()),
            "group": pa.array(["x", "y", "x"]).dictionary_encode(),
        }
    )
    plain = {"score": [0.25, 0.5, 1.0], "label": [1, 0, 1], "group": ["x", "y", "x"]}
    assert ic.tally(as_lazy(kind, table)) == ic.tally(plain)
    booleans = {**plain, "score": [True, False, True]}
    assert ic.tally(as_lazy(kind, booleans)) == ic.tally(booleans)
    nulls = table.set_column(0, "score", pa.nulls(3))
    with pytest.raises(ic.DataError, match="3 null or NaN"):
        ic.tally(as_lazy(kind, nulls))
    with pytest.raises(ic.DataError, match="group: must be known"):
        ic.tally(as_lazy(kind, table.set_column(2, "group", pa.nulls(3))))
