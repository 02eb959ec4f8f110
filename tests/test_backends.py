"""A rule on each lazy engine: the same scores, still lazy, and no bad row kept in silence."""

from dataclasses import replace

import duckdb
import numpy as np
import pytest

import isocost as ic
from isocost.engines.lazy import _NATIVE, limit
from isocost.rules import Row
from tests.conftest import sample
from tests.lazy_frames import KINDS, SPARK_AND_PANDAS, as_lazy, by_id, columns_of, session_of

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings(SPARK_AND_PANDAS)

QUICK = ("polars", "duckdb", "ibis", "dask")

RULE = ic.Rule(
    groups=("a", "it's", "ünï", "untouched"),
    rows=(
        Row("a", 0.0, 0.5, "set", 0.25, 0.3),
        Row("a", 0.0, 0.5, "mirror", None, 0.3),
        Row("a", 0.5, 1.0, "set", 0.75, 0.0),
        Row("it's", 0.5, 1.0, "set", 0.1, 1.0),
        Row("it's", 0.0, 0.25, "line", 0.3, 0.5, 1.0),
        Row("it's", 0.0, 0.25, "line", 0.2, 0.25, 0.0),
        Row("it's", 0.3, 0.5, "line", 0.1, 1.0, 1 / 3),
        Row("ünï", 0.0, 1.0, "mirror", None, 0.5),
    ),
    method="test",
)

DEFERRING = replace(RULE, rows=(*RULE.rows, Row("ünï", 0.0, 1.0, "defer", None, 0.2)))


def rows(size=600):
    data = sample(size, groups=4)
    data["group"] = np.array(RULE.groups)[data["group"]]
    data["score"][:4], data["group"][:4] = (0.0, 0.5, 1.0, 1.0), ("a", "a", "it's", "ünï")
    return data


@pytest.fixture(params=KINDS)
def engine(request):
    """The name of an engine, and a function that makes its frames."""
    kind = request.param
    spark = session_of(kind, request)
    return kind, lambda data: as_lazy(kind, data, spark)


def test_the_same_scores_as_the_arrays_and_still_lazy(engine):
    kind, lazy = engine
    data = rows()
    frame = lazy(data)
    written = {"output": "repaired", "changed": "moved", "handed_over": "gone"}
    out = DEFERRING.apply(frame, id="id", **written)
    assert type(out) is type(frame)
    expected = DEFERRING.apply(data, id="id", **written)
    found = by_id(columns_of(kind, out))
    assert list(found) == list(expected)
    if kind != "dask":
        assert [x is None for x in found["repaired"]] == found["gone"], "null, and not NaN"
    found["repaired"] = np.array(found["repaired"], dtype=float).tolist()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
    assert 0.02 < np.mean(found["gone"]) < 0.1
    assert 0.2 < np.mean(found["moved"]) < 0.6
    # What came in is as it was.
    assert by_id(columns_of(kind, frame))["score"] == data["score"].tolist()


def test_the_score_column_is_replaced_where_it_stands(engine):
    kind, lazy = engine
    data = rows(60)
    found = columns_of(kind, RULE.apply(lazy(data), id="id", output="score"))
    assert list(found) == list(data)
    assert by_id(found)["score"] == RULE.apply(data, id="id")["repaired_score"].tolist()


def test_columns_with_any_name(engine):
    kind, lazy = engine
    names = {"score": "model.score", "id": 'it`s "who"', "group": "the; group--"}
    data = rows(60)
    named = {names.get(name, name): values for name, values in data.items()}
    named["c1"] = np.arange(60) / 8
    written = {"output": "new.score", "changed": "c2"}
    found = columns_of(kind, RULE.apply(lazy(named), **names, **written))
    assert list(found) == [*named, "new.score", "c2"]
    found = by_id({**found, "id": found[names["id"]]})
    expected = RULE.apply(data, output="new.score", changed="c2", id="id")
    assert found["new.score"] == expected["new.score"].tolist()
    assert found["c2"] == expected["c2"].tolist()
    assert found["c1"] == named["c1"].tolist()


@pytest.mark.parametrize("kind", QUICK)
def test_bounds_and_values_of_a_rule_are_exact(kind):
    # As decimals, these are not the nearest doubles under ibis and DuckDB before 2.0.
    low, high, value = 0.18999999999999997, 0.44899999999999995, 0.37899999999999995
    rows = (Row("a", low, high, "set", value, 1.0),)
    rule = ic.Rule(groups=("a",), rows=rows, method="test")
    near = [np.nextafter([low, high], 0), [low, high], np.nextafter([low, high], 1)]
    data = {"score": np.concatenate(near), "group": ["a"] * 6}
    expected = rule.apply(data)["repaired_score"].tolist()
    assert expected.count(value) == 3
    assert columns_of(kind, rule.apply(as_lazy(kind, data)))["repaired_score"] == expected


@pytest.mark.parametrize("kind", QUICK)
def test_several_group_columns_with_nulls_and_unknown_groups(kind):
    data = {
        "score": [0.2, 0.4, 0.6, 0.8],
        "sex": ["F", "M", None, "X"],
        "age": [30, 40, 30, 50],
        "isocost_score": [1, 2, 3, 4],
        "id": ["p", "q", "r", "s"],
    }
    rule = ic.Rule(
        groups=(("F", 30), ("M", 40), ("?", 30)),
        rows=(
            Row(("F", 30), 0.0, 1.0, "set", 0.5, 1.0),
            Row(("?", 30), 0.0, 1.0, "mirror", None, 1.0),
        ),
        method="test",
    )
    options = {"group": ["sex", "age"], "missing_group": "?", "unknown": "keep"}
    found = columns_of(kind, rule.apply(as_lazy(kind, data), **options))
    assert found["repaired_score"] == [0.5, 0.4, 1.0 - 0.6, 0.8]
    assert list(found) == [*data, "repaired_score"]
    with pytest.raises(Exception, match="group: must be one the rule knows"):
        columns_of(kind, rule.apply(as_lazy(kind, data), **(options | {"unknown": "error"})))
    with pytest.raises(Exception, match=r"group \(column 'sex, age'\): must be known in every row"):
        columns_of(kind, rule.apply(as_lazy(kind, data), **(options | {"missing_group": None})))


@pytest.mark.parametrize("kind", QUICK)
@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("score", None, "score: must be a number in .0, 1. in every row\n  got:  null or NaN"),
        ("score", float("nan"), "score: must be a number in .0, 1. in every row\n  got:  null"),
        ("score", float("inf"), "got:  infinite"),
        ("score", 1.0000001, "got:  outside .0, 1."),
        ("group", None, "group: must be known in every row\n  got:  null"),
        ("group", "b", "group: must be one the rule knows: 'a', .*\n  got:  another group"),
        ("id", None, "id: must be a whole number or a text in every row\n  got: .* ?null"),
    ],
)
def test_a_bad_row_stops_the_engine_when_it_comes_to_it(kind, column, value, text):
    data = {"score": [0.1, 0.9], "group": ["a", "untouched"], "id": ["x", "y"]}
    data[column] = [data[column][0], value]
    out = RULE.apply(as_lazy(kind, data), id="id")  # nothing is read yet
    with pytest.raises(Exception, match=text):
        columns_of(kind, out)


@pytest.mark.parametrize("kind", QUICK)
def test_who_asks_only_for_the_new_score_is_told_too(kind):
    data = {"score": [0.1, 0.9], "group": ["a", None], "id": ["x", "y"]}
    frame = RULE.apply(as_lazy(kind, data), output="new", id="id")
    only = frame[["new"]] if kind == "dask" else frame.select("new")
    with pytest.raises(Exception, match="group: must be known in every row"):
        columns_of(kind, only)


def test_types_are_told_at_once(engine):
    _, lazy = engine
    data = {"score": [0.1], "group": ["a"], "id": [1.5]}
    with pytest.raises(ic.DataError, match="got:  a column of type Float64"):
        RULE.apply(lazy(data), id="id")
    data = {"score": [0.1], "group": [3], "id": [1]}
    with pytest.raises(ic.UsageError, match="group: must be one the rule knows") as error:
        RULE.apply(lazy(data), id="id")
    assert "got:  type Int64" in str(error.value)
    assert "of the names and types" in str(error.value)


@pytest.mark.parametrize("kind", QUICK)
def test_what_cannot_be_meant_is_refused(kind):
    data = {"score": [0.1], "group": ["a"], "id": [1]}
    frame = as_lazy(kind, data)
    with pytest.raises(ic.UsageError, match="seed: needs rows in a fixed order"):
        RULE.apply(frame, seed=0)
    with pytest.raises(ic.UsageError, match="who a row is about with id="):
        RULE.apply(frame)
    with pytest.raises(ic.UsageError, match='did you mean id="id"'):
        RULE.apply(frame, id="idd")
    with pytest.raises(ic.UsageError, match="must name a column of the data"):
        RULE.apply(frame, score="h", id="id")
    for ids in ([True], [None]):
        with pytest.raises((ValueError, duckdb.Error), match="id: must be a whole number or a"):
            columns_of(kind, RULE.apply(as_lazy(kind, {**data, "id": ids}), id="id"))
    with pytest.raises(ic.UsageError, match="2 group columns of type String, Int64"):
        RULE.apply(frame, group=["group", "id"], id="id")


@pytest.mark.parametrize("kind", QUICK)
def test_no_id_is_needed_where_no_coin_is_thrown(kind):
    rule = ic.Rule(groups=(1, 2), rows=(Row(1, 0.0, 1.0, "set", 0.5, 1.0),), method="test")
    data = {"score": [0.1, 0.9], "group": [1.0, 2.0]}
    assert columns_of(kind, rule.apply(as_lazy(kind, data)))["repaired_score"] == [0.5, 0.9]
    data["group"] = [True, False]  # True is 1 in Python; False is not 2
    kept = columns_of(kind, rule.apply(as_lazy(kind, data), unknown="keep"))
    assert kept["repaired_score"] == [0.5, 0.9]
    assert rule.apply(data, unknown="keep")["repaired_score"].tolist() == [0.5, 0.9]
    data["group"] = ["1", "2"]
    kept = columns_of(kind, rule.apply(as_lazy(kind, data), unknown="keep", changed="c"))
    assert kept["repaired_score"] == [0.1, 0.9]
    assert kept["c"] == [False, False]


def test_one_pass_over_the_rows_and_one_more_for_an_example_of_a_bad_one():
    pl = pytest.importorskip("polars")
    passes = []

    def watched(frame):
        passes.append(len(frame))
        return frame

    # Bad scores and labels take one more: for the scales that fit, and the two labels there are.
    for score, label, expected in ((0.5, 1, [2]), (0.5, 3, [2, 2, 2]), (1.5, 1, [2, 2, 2])):
        data = pl.DataFrame({"score": [0.1, score], "label": [0, label], "group": ["a", "b"]})
        frame = data.lazy().map_batches(
            watched, schema=data.schema, predicate_pushdown=False, projection_pushdown=False
        )
        try:
            ic.tally(frame)
        except ic.DataError:
            assert score > 1 or label > 1
        assert passes == expected
        passes.clear()


def test_engines_without_a_coin_are_named(monkeypatch):
    pytest.importorskip("polars")
    monkeypatch.delitem(_NATIVE, "polars")
    with pytest.raises(ic.UsageError, match="must be of an engine that has the coin: duckdb, ibis"):
        RULE.apply(as_lazy("polars", {"score": [0.1], "group": ["a"], "id": [1]}), id="id")


def test_ibis_tables_elsewhere_are_refused():
    ibis, pl = pytest.importorskip("ibis"), pytest.importorskip("polars")
    data = pl.DataFrame({"score": [0.1], "group": ["a"], "id": [1]})
    table = ibis.polars.connect({"t": data}).table("t")
    with pytest.raises(ic.UsageError, match="must be on DuckDB to be repaired through ibis"):
        RULE.apply(table, id="id")


def test_bounds_have_the_form_of_the_coins():
    import narwhals as nw

    data = {"x": [1]}
    digits = nw.from_native(as_lazy("duckdb", data))
    numbers = nw.from_native(as_lazy("polars", data))
    assert limit(digits, 2**51) == "8000000000000"
    assert limit(digits, 2**52) == "g"
    assert limit(numbers, 2**51) == 2**51
