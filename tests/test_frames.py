"""Every eager frame gives the tally that the arrays give, and gets its own kind back."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import isocost as ic
from isocost.rules import Row
from tests.conftest import sample

DATA = sample(3_000, groups=3, weighted=True)
DATA["name"] = np.array(["x", "y", "ß"])[DATA["group"]]
DATA["yes"] = np.where(DATA["label"] == 1, "yes", "no")
DATA["key"] = np.array([f"k{i}" for i in DATA["id"]])

FRAMES = {
    "pandas": pd.DataFrame,
    "pandas-index": lambda d: pd.DataFrame(d, index=np.arange(len(d["id"])) * 2 + 7),
    "pandas-pyarrow": lambda d: pd.DataFrame(d).convert_dtypes(dtype_backend="pyarrow"),
    "pandas-nullable": lambda d: pd.DataFrame(d).convert_dtypes(),
    "pandas-categorical": lambda d: pd.DataFrame(d).astype({"name": "category"}),
    "polars": pl.DataFrame,
    "polars-categorical": lambda d: pl.DataFrame(d).with_columns(
        pl.col("name").cast(pl.Categorical)
    ),
    "polars-enum": lambda d: pl.DataFrame(d).with_columns(
        pl.col("name").cast(pl.Enum(["y", "x", "ß"]))
    ),
    "pyarrow": pa.table,
    "pyarrow-chunked": lambda d: pa.concat_tables([pa.table(d).slice(0, 7), pa.table(d).slice(7)]),
    "pyarrow-view": lambda d: pa.table({**d, "name": pa.array(d["name"]).cast("string_view")}),
    "pyarrow-dictionary": lambda d: pa.table(
        {**d, "name": pa.array(d["name"]).dictionary_encode()}
    ),
}


@pytest.fixture(params=FRAMES)
def make(request):
    return FRAMES[request.param]


@pytest.mark.parametrize("group", ["group", "name", ["name", "group"]])
def test_tally_is_that_of_the_arrays(make, group):
    assert ic.tally(make(DATA), group=group, weight="weight") == ic.tally(
        DATA, group=group, weight="weight"
    )


def test_a_named_positive_label(make):
    assert ic.tally(make(DATA), label="yes", positive="yes") == ic.tally(DATA)


@pytest.mark.parametrize("who", ["id", "key"])
def test_apply_gives_the_same_coins_and_the_same_kind(make, who):
    rule = ic.Rule(
        groups=("x", "y", "ß"),
        rows=(Row("x", 0.0, 1.0, "set", 0.25, 0.5), Row("ß", 0.0, 0.5, "mirror", None, 0.25)),
        method="test",
    )
    frame = make(DATA)
    before = frame["score"].to_numpy().copy()
    out = rule.apply(frame, group="name", id=who, output="repaired", changed="touched")
    wanted = rule.apply(DATA, group="name", id=who)["repaired_score"]
    assert type(out) is type(frame)
    np.testing.assert_array_equal(out["repaired"].to_numpy(), wanted)
    np.testing.assert_array_equal(out["touched"].to_numpy(), wanted != DATA["score"])
    np.testing.assert_array_equal(frame["score"].to_numpy(), before)
    if isinstance(frame, pd.DataFrame):
        assert out.index.equals(frame.index)


def test_dictionaries_with_values_that_no_row_has():
    codes = pa.array([0, 1, 0, 1, None], pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["x", "y", "Martian"]))
    table = pa.table({"score": [0.1] * 5, "label": [0, 0, 1, 1, 1], "name": column})
    assert ic.tally(table, group="name", missing_group="?").groups == ("?", "x", "y")
    rule = ic.Rule(groups=("x", "y"), rows=(Row("x", 0.0, 1.0, "set", 0.5, 1.0),), method="test")
    out = rule.apply(table.slice(0, 4), group="name", id="id")["repaired_score"].to_pylist()
    assert out == [0.5, 0.1, 0.5, 0.1]


def test_a_dictionary_with_an_unused_value_and_one_that_only_the_last_row_has():
    rows = 2**16 + 3
    codes = np.zeros(rows, dtype=np.int32)
    codes[-1] = 2
    names = pa.DictionaryArray.from_arrays(
        pa.array(codes, mask=np.arange(rows) == 1), ["a", "unused", "late"]
    )
    columns = {"score": np.full(rows, 0.5), "label": codes % 2, "group": names}
    counted = ic.tally(pa.table(columns), missing_group="none")
    assert counted.groups == ("a", "late", "none")
    assert np.bincount(counted.cells.group, counted.cells.n).tolist() == [rows - 2, 1, 1]


def test_groups_that_are_all_null_or_null_and_nan():
    table = pa.table({"score": [0.1, 0.2], "label": [0, 1], "group": pa.nulls(2)})
    assert ic.tally(table, missing_group="?").groups == ("?",)
    frame = pl.DataFrame(
        {"score": [0.1] * 3, "label": [0, 1, 1], "group": [1.0, None, float("nan")]}
    )
    assert ic.tally(frame, missing_group=-1.0).groups == (-1.0, 1.0)


@pytest.mark.parametrize("kind", [pl.DataFrame, pa.table])
@pytest.mark.parametrize("late", ["new", None, "a"])
@pytest.mark.parametrize("few", [1, 40])
def test_texts_whose_values_the_first_rows_may_not_have(kind, late, few):
    # Few values in the first rows are looked up; one that comes later must not be lost.
    group = [f"{chr(97 + i % few)}" if few < 26 else f"v{i % few}" for i in range(5000)]
    group[4999] = late
    data = {"score": [0.25, 0.75] * 2500, "label": [0, 1] * 2500, "group": group}
    options = {"missing_group": "?"}
    found = ic.tally(kind(data), **options)
    assert found == ic.tally(data, **options)
    assert ("?" if late is None else late) in found.groups


def test_decimals_are_the_nearest_doubles():
    table = pa.table(
        {
            "score": pa.array(["0.7", "0.3"]).cast(pa.decimal128(3, 2)),
            "group": ["b", "b"],
            "id": [1, 2],
        }
    )
    rule = ic.Rule(groups=("b",), rows=(), method="test")
    for frame in (table, pl.from_arrow(table), table.to_pandas(types_mapper=pd.ArrowDtype)):
        assert list(rule.apply(frame, output="new", id="id")["new"].to_numpy()) == [0.7, 0.3]


def twice(kind):
    """Two rows with two columns called score."""
    columns = [[0.1, 0.6], [0, 1], ["a", "b"], [0.9, 0.9]]
    names = ["score", "label", "group", "score"]
    if kind == "pandas":
        return pd.DataFrame(dict(enumerate(columns))).set_axis(names, axis=1)
    if kind == "pyarrow":
        return pa.Table.from_arrays([pa.array(column) for column in columns], names=names)
    if kind == "dask":
        return pytest.importorskip("dask.dataframe").from_pandas(twice("pandas"), npartitions=1)
    rows = """VALUES (0.1, 0, 'a', 0.9), (0.6, 1, 'b', 0.9)"""
    return duckdb.sql(f'FROM ({rows}) AS t(score, label, "group", "score ")').project(
        'score, label, "group", "score " AS score'
    )


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "dask", "duckdb"])
def test_columns_of_one_name_are_refused(kind):
    rule = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.3, 1.0),), "test")
    for use in (ic.tally, rule.apply):
        with pytest.raises(
            ic.UsageError, match="data: must have columns with different names"
        ) as e:
            use(twice(kind))
        assert "'score'" in e.value.problems[0].got


def test_names_that_differ_in_case_are_two_columns_or_refused():
    data = {"score": [0.1, 0.6], "Score": [0.3, 0.4], "label": [0, 1], "group": ["a", "b"]}
    data |= {"x": [1, 2], "X": [3, 4]}
    wanted = {name: ic.tally(data, score=name) for name in ("score", "Score")}
    assert wanted["score"] != wanted["Score"]
    for make in (pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table):
        assert {name: ic.tally(make(data), score=name) for name in wanted} == wanted
    rule = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.3, 0.5),), "test")
    relation = duckdb.from_arrow(pa.table(data))
    # DuckDB itself renames one of those that come from Arrow.
    relation = relation.project('score, Score_1 AS "Score", label, "group", x, X_1 AS "X"')
    for name in wanted:
        with pytest.raises(ic.DataError, match="upper and lower case are the same in duckdb"):
            ic.tally(relation, score=name)
    with pytest.raises(ic.DataError, match="got:  'x' and 'X'"):
        rule.apply(relation.project('0.5e0 AS score, "group", x, X_1 AS "X"'), id="x")


# Streams of batches, an index of ids, and pandas on Spark


@pytest.fixture(scope="module")
def arrow_people():
    from isocost.examples import compas_rows

    pa = pytest.importorskip("pyarrow")
    return pa.table({name: column.tolist() for name, column in compas_rows().items()})


def test_datasets_and_readers(arrow_people, tmp_path, monkeypatch):
    """Counted and repaired batch by batch, with the same result as the table."""
    parquet = pytest.importorskip("pyarrow.parquet")
    dataset = pytest.importorskip("pyarrow.dataset")
    monkeypatch.setattr("isocost.engines.frames._ROWS_AT_ONCE", 2000)
    whole = ic.tally(arrow_people)
    rule = ic.withhold(whole, "fpr", 0.06)
    repaired = rule.apply(arrow_people, changed="moved", id="id")
    parquet.write_table(arrow_people, tmp_path / "people.parquet", row_group_size=1000)
    kept = dataset.dataset(tmp_path)
    for make in (lambda: arrow_people.to_reader(500), lambda: kept, kept.scanner):
        assert ic.tally(make()) == whole
        assert rule.apply(make(), changed="moved", id="id").read_all().equals(repaired)
    assert ic.audit(kept, cost="fpr", confidence=None).tally == whole
    with pytest.raises(ic.UsageError, match="'nobody', and the columns are"):
        ic.tally(kept, score="nobody")
    with pytest.raises(ic.UsageError, match="seed: must be left out for a stream"):
        rule.apply(kept, seed=1)
    with pytest.raises(ic.DataError, match="at least one row"):
        ic.tally(arrow_people.slice(0, 0).to_reader())
    assert len(rule.apply(arrow_people.slice(0, 0).to_reader(), id="id").read_all()) == 0


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (pa.array(DATA["yes"].tolist()).cast("string_view"), "yes"),
        (pa.array(DATA["yes"].tolist()).dictionary_encode(), "yes"),
        (pa.array(DATA["label"].astype(int)), True),
    ],
)
def test_a_stream_reads_labels_as_a_frame_does(labels, positive, monkeypatch):
    monkeypatch.setattr("isocost.engines.frames._ROWS_AT_ONCE", 500)
    table = pa.table({"score": DATA["score"], "label": labels, "group": DATA["group"]})
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=300))
    counted = ic.tally(stream, positive=positive)
    assert counted == ic.tally({**DATA, "weight": None}) == ic.tally(table, positive=positive)
    assert counted.reading.positive == positive


def test_unknown_labels_that_a_frame_encodes():
    """One wrong value among encoded ones is counted in rows, and null ones stay unknown."""
    texts = [None if i % 7 == 0 else text for i, text in enumerate(DATA["yes"].tolist())]
    table = pa.table({"score": DATA["score"], "label": texts, "group": DATA["group"]})
    known = {**DATA, "label": np.array(texts, dtype=object)}
    options = {"positive": "yes", "missing_label": "keep"}
    assert ic.tally(table, **options) == ic.tally({**known, "weight": None}, **options)
    with pytest.raises(ic.DataError, match=r"other than 0 and 1 \(first: '(yes|no)' in row 1\)"):
        ic.tally(table, missing_label="keep")


def test_labels_and_errors_of_a_stream(monkeypatch):
    pa = pytest.importorskip("pyarrow")
    monkeypatch.setattr("isocost.engines.frames._ROWS_AT_ONCE", 10)
    data = {"score": [0.5] * 40, "label": ["no"] * 30 + ["yes"] * 10, "group": ["a"] * 40}
    table = pa.table(data)
    # Most batches have one label only.
    assert ic.tally(table.to_reader(5), positive="yes") == ic.tally(table, positive="yes")
    with pytest.raises(ic.DataError, match="must hold the positive label 'maybe'"):
        ic.tally(table.to_reader(5), positive="maybe")
    data["label"][20] = "both"
    with pytest.raises(ic.DataError, match="label"):
        ic.tally(pa.table(data).to_reader(5), positive="yes")
    data |= {"label": [0, 1] * 20, "score": [0.5] * 39 + [2.0]}
    with pytest.raises(ic.DataError, match="among rows 30 to 39: 1 outside"):
        ic.tally(pa.table(data).to_reader(5))


def test_ids_in_the_index_of_pandas(arrow_people):
    frame = arrow_people.to_pandas()
    rule = ic.withhold(ic.tally(frame), "fpr", 0.06)
    wanted = rule.apply(frame, id="id")["repaired_score"].tolist()
    indexed = frame.rename(columns={"id": "person"}).set_index("person")
    assert rule.apply(indexed, id="person")["repaired_score"].tolist() == wanted
    for other in (indexed, indexed.reset_index(drop=True)):
        with pytest.raises(ic.UsageError, match="id: must name a column"):
            rule.apply(other, id="id")


def test_pandas_on_spark_goes_through_spark(arrow_people):
    """By the documented methods; pyspark.pandas itself does not load beside pandas 3."""
    frame = arrow_people.to_pandas()
    kind = type("DataFrame", (), {"__module__": "pyspark.pandas.frame"})
    given = kind()
    given.to_spark = lambda: frame
    assert ic.tally(given) == ic.tally(frame)
    assert ic.audit(given, confidence=None).tally.n == len(frame)


@pytest.mark.parametrize(
    ("labels", "step"),
    [
        ([0, 1, 1, 2], "if the column has two other values"),
        ([1, 2, 0, 1], "if the column has two other values"),
        ([1, 1, 2, 2], "if the column has two other values"),
        (["no", "no", "yes", "yes"], 'positive="yes"'),
        ([0, 1, None, 1], "if the column has two other values"),
        ([pd.Timestamp(2020, 1, 1), "no"] * 2, "if the column has two other values"),
    ],
)
def test_labels_are_looked_at_together(monkeypatch, labels, step):
    monkeypatch.setattr("isocost.engines.arrays.CHUNK", 2)
    rows = {"score": [0.2, 0.4] * 2, "group": ["a", "b"] * 2}
    with pytest.raises(ic.DataError, match=step):
        ic.tally({**rows, "label": np.array(labels, dtype=object if None in labels else None)})
