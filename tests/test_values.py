"""What a value may be: each kind in each role on each engine, as the arrays read it or refused.

A kind is accepted with the result of the arrays, or refused with an error in four parts; no engine
raises an error of its own, and none makes a number of what is not one.
"""

import csv
import datetime as dt
import json
import uuid
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isocost as ic
from isocost.engines.columns import typed
from isocost.rules import Row
from tests.engines import SPARK_AND_PANDAS, as_lazy, columns_of

pytestmark = pytest.mark.filterwarnings(SPARK_AND_PANDAS)

BIG = 2**63
NUMBERS, NAMES = ("score", "weight"), ("group", "id")
DAY, NOON = dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, 12)

KINDS = {
    # Accepted somewhere: the values, and the roles that they can have.
    "whole": ([0, 1, 1, 0], ("score", "label", "group", "id")),
    "fraction": ([0.25, 0.5, 1.0, 0.5], ("score", "weight", "group")),
    "boolean": ([True, False, True, False], ("score", "label", "group")),
    "text": (["a", "b", "c", "a"], NAMES),
    "digits": (["0", "1", "1", "0"], ("score", "label", *NAMES)),
    "underscored": (["0_1", "0_0", "0_1", "0_0"], NAMES),
    "decimal": ([Decimal("0.7"), Decimal("0.25"), Decimal("1"), Decimal("0.1")], NUMBERS),
    "decimal label": ([Decimal(0), Decimal(1), Decimal(1), Decimal(0)], ("score", "label")),
    "beyond 2^53": ([2**53, 2**53 + 1, 2**53 + 2, 2**53], ("weight", *NAMES)),
    "beyond 2^63": ([BIG, BIG + 1, BIG + 2, BIG], ("weight", *NAMES)),
    "beyond 2^63 and below 0": ([BIG, BIG + 1, -1, -1], NAMES),
    "beyond 2^64": ([2**64, 2**64 + 1, 1, 1], ("weight", *NAMES)),
    "mixed": ([1, "1", 2, "x"], NAMES),
    "large and a fraction": ([2**53, 2**53 + 1, 0.5, 0.5], ("weight", "group")),
    "beyond 2^63 and a fraction": ([BIG, BIG + 1, 0.5, 0.5], ("weight", "group")),
    "number texts": (["0.5", "2.5e-1", " .5", "1."], (*NUMBERS, *NAMES)),
    "words": (["nan", "inf", "1e", "0x1"], NAMES),
    "ratio": ([Fraction(1, 2), Fraction(1, 4), Fraction(1), Fraction(1, 3)], NUMBERS),
    # Refused everywhere.
    "date": ([DAY, DAY, dt.date(2026, 1, 2), DAY], ()),
    "datetime": ([NOON, NOON, dt.datetime(2026, 1, 2), NOON], ()),
    "time": ([dt.time(1), dt.time(2), dt.time(1), dt.time(2)], ()),
    "duration": ([dt.timedelta(0), dt.timedelta(microseconds=1)] * 2, ()),
    "nanoseconds": ([np.timedelta64(0, "ns"), np.timedelta64(1, "ns")] * 2, ()),
    "instant": ([np.datetime64(0, "ns"), np.datetime64(1, "ns")] * 2, ()),
    "complex": ([0j, 1 + 0j, 1 + 0j, 0j], ()),
    "complex of numpy": ([np.complex128(0), np.complex128(1), np.complex128(0.5)] * 2, ()),
    "bytes": ([b"0", b"1", b"1", b"0"], ()),
    "not a number": ([Decimal("NaN")] * 4, ()),
    "signaling": ([Decimal("sNaN"), Decimal("sNaN"), Decimal("1"), Decimal("0")], ()),
    "infinite": ([Decimal("Infinity"), Decimal("-Infinity"), Decimal("1"), Decimal("0")], ()),
    "list": ([[0], [1], [1], [0]], ()),
    "pair": ([(0, 1), (1, 1), (1, 1), (0, 1)], ()),
    "structure": ([{"a": 0}, {"a": 1}, {"a": 1}, {"a": 0}], ()),
    "set": ([frozenset("a"), frozenset("b")] * 2, ()),
    "uuid": ([uuid.UUID(int=1), uuid.UUID(int=2)] * 2, ()),
    "object": ([object(), object(), object(), object()], ()),
}
ROLES = ("score", "weight", "label", "group", "id")


PLAIN = (bool, int, float, str)


def data_with(kind, role):
    values = KINDS[kind][0][:4]
    data = {
        "score": [0.1, 0.6, 0.4, 0.9],
        "label": [0, 1, 1, 0],
        "group": ["a", "b", "a", "b"],
        "weight": [1.0, 2.0, 0.5, 1.0],
        "id": [1, 2, 3, 4],
    }
    return {**data, role: values}


def objects(values):
    return np.fromiter(values, dtype=object, count=len(values))


def with_column(data, role, column):
    return {**data, role: column}


def as_table(data):
    return pa.table({name: pa.array(values) for name, values in data.items()})


def in_pandas(make):
    return lambda data, role, _: pd.DataFrame(data).assign(**{role: make(data[role])})


def in_polars(**options):
    def made(data, role, _):
        return pl.DataFrame(data).with_columns(pl.Series(role, data[role], **options))

    return made


def lazily(make):
    return lambda *arguments: make(*arguments).lazy()


def through_arrow(kind):
    return lambda data, *_: as_lazy(kind, as_table(data))


def in_dask(data, role, _):
    import dask
    import dask.dataframe as dd

    # Otherwise dask itself turns objects into texts.
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(in_pandas(objects)(data, role, _), npartitions=2)


def written_parquet(data, _, folder):
    pq.write_table(as_table(data), folder / "d.parquet")
    return folder / "d.parquet"


def written_json(data, _, folder):
    rows = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
    (folder / "d.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return folder / "d.jsonl"


def written_csv(data, _, folder):
    with (folder / "d.csv").open("w", newline="") as file:
        csv.writer(file).writerows([data, *zip(*data.values(), strict=True)])
    return folder / "d.csv"


ENGINES = {
    "lists": lambda data, *_: data,
    "objects": lambda data, role, _: with_column(data, role, objects(data[role])),
    "array": lambda data, role, _: with_column(data, role, np.array(data[role])),
    "pandas series": lambda data, role, _: with_column(data, role, pd.Series(data[role])),
    "polars series": lambda data, role, _: with_column(data, role, pl.Series(data[role])),
    "pyarrow array": lambda data, role, _: with_column(data, role, pa.array(data[role])),
    "pandas": in_pandas(pd.Series),
    "pandas objects": in_pandas(objects),
    "pandas nullable": in_pandas(lambda values: pd.Series(values).convert_dtypes()),
    "pandas category": in_pandas(pd.Categorical),
    "pandas pyarrow": lambda data, *_: as_table(data).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": in_polars(),
    "polars object": in_polars(dtype=pl.Object),
    "polars wide": in_polars(dtype=pl.Int128),
    "polars unsigned": in_polars(dtype=pl.UInt64),
    "pyarrow": lambda data, *_: as_table(data),
    "polars lazy": lazily(in_polars()),
    "polars lazy object": lazily(in_polars(dtype=pl.Object)),
    "polars lazy wide": lazily(in_polars(dtype=pl.Int128)),
    "polars lazy unsigned": lazily(in_polars(dtype=pl.UInt64)),
    "polars lazy arrow": through_arrow("polars"),
    "duckdb": through_arrow("duckdb"),
    "ibis": through_arrow("ibis"),
    "dask": in_dask,
    "parquet": written_parquet,
    "json lines": written_json,
    "csv": written_csv,
}

LAZY = ("polars lazy", "duckdb", "ibis", "dask", "pyspark")
RULE = ic.Rule(
    groups=("a", "b"),
    rows=(Row("a", 0.0, 1.0, "set", 0.25, 0.5), Row("b", 0.0, 1.0, "set", 0.75, 0.5)),
    method="test",
)


def held(engine, kind, role, folder):
    """The data as an engine has them, or None if it cannot hold these values or changes them."""
    data = data_with(kind, role)
    if "polars" in engine and isinstance(data[role][0], Decimal) and not data[role][0].is_finite():
        return None  # polars panics
    if engine == "parquet" and kind in ("duration", "nanoseconds"):
        return None  # Parquet has no such type: the file holds whole numbers
    try:
        made = ENGINES[engine](data, role, folder)
    except Exception:
        return None
    if engine in ("csv", "json lines", "parquet") or engine.startswith(LAZY[1:]):
        return made
    column = made.collect()[role] if "lazy" in engine else made[role]
    listed = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    return made if all(map(is_kept, listed, data[role])) else None


def is_kept(found, value):
    """Whether a library has not turned a value into another text, number or boolean."""
    if isinstance(found, np.generic) and found.dtype.kind in "biufU":
        found = found.item()
    if type(found) not in PLAIN:
        return True
    same = type(value) in PLAIN and found == value
    return same and (type(found) is bool) == (type(value) is bool)


def counted(data, role):
    return ic.tally(data, weight="weight" if role == "weight" else None)


def repaired(rule, engine, data, folder, **options):
    """The repaired scores of any kind of data, as a list."""
    options["id"] = "id"
    if isinstance(data, Path):
        ic.apply_file(rule, data, folder / "out.csv", force=True, **options)
        with (folder / "out.csv").open(newline="") as file:
            return [float(row["repaired_score"]) for row in csv.DictReader(file)]
    out = rule.apply(data, **options)
    if engine.startswith(LAZY):
        return columns_of(engine.split()[0], out)["repaired_score"]
    return np.asarray(out["repaired_score"]).tolist()


def outcome(engine, data, role, folder):
    """What comes of a column in its role, or the error in four parts; no other error is one."""
    try:
        if role == "id":
            return repaired(RULE, engine, data, folder)
        return counted(data, role)
    except Exception as error:
        if not is_refusal(error) and not (role == "id" and engine.startswith(LAZY)):
            raise
        # An engine that comes to a bad row tells our error in its own.
        if not all(part in str(error) for part in ("must", "got:", "next:")):
            raise
        return error


def is_refusal(error):
    parts = [(p.name, p.rule, p.got, p.next_step) for p in getattr(error, "problems", ())]
    return isinstance(error, ic.IsocostError) and bool(parts) and all(map(all, parts))


def in_csv(data, role):
    """What a CSV says, where all values are texts; and whether it can have the role."""
    texts = [str(value) for value in data[role]]
    if role == "id":
        return {**data, role: texts}
    if role == "group":
        return {**data, role: [typed(texts)[text] for text in texts]}
    try:
        numbers = [float("x" if "_" in text else text) for text in texts]
    except ValueError:
        numbers = data[role]
    return {**data, role: numbers}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning", "ignore::FutureWarning")
def test_a_kind_of_value_is_read_as_arrays_read_it_or_refused(engine, kind, tmp_path):
    for role in ROLES:
        made = held(engine, kind, role, tmp_path)
        if made is None:
            assert engine != "lists"
            continue
        data, accepted = data_with(kind, role), role in KINDS[kind][1]
        if engine == "csv":
            data = in_csv(data, role)
            accepted = not isinstance(outcome("lists", data, role, tmp_path), Exception)
        found = outcome(engine, made, role, tmp_path)
        if not isinstance(found, Exception):
            assert accepted, role
            assert found == outcome("lists", data, role, tmp_path), role
        assert not (accepted and isinstance(found, Exception) and engine in ("lists", "objects"))


LARGE = [kind for kind in KINDS if kind.startswith(("beyond", "large"))] + ["mixed", "fraction"]


# In a CSV digits beyond 64 bits are texts, and so are other groups than those of these rules.
@pytest.mark.parametrize("kind", LARGE)
def test_a_rule_tells_large_groups_apart(kind, tmp_path):
    values = KINDS[kind][0]
    rows = (Row(values[0], 0.0, 1.0, "set", 0.25, 1.0), Row(values[2], 0.0, 1.0, "set", 0.75, 1.0))
    rule = ic.Rule(tuple(dict.fromkeys(values)), rows, "test")
    wanted = rule.apply(data_with(kind, "group"), id="id")["repaired_score"].tolist()
    assert wanted[1] == 0.6
    able = set()
    for engine in (engine for engine in ENGINES if engine != "csv"):
        made = held(engine, kind, "group", tmp_path)
        if made is None or isinstance(outcome(engine, made, "group", tmp_path), Exception):
            continue
        able.add(engine)
        assert repaired(rule, engine, made, tmp_path) == wanted, engine
    assert {"lists", "objects"} <= able


ON_SPARK = ["decimal", "decimal label", "beyond 2^53", "underscored", "digits", "date", "datetime"]
ON_SPARK += ["duration", "bytes", "list", "structure"]


@pytest.mark.parametrize("kind", ON_SPARK)
def test_spark_reads_values_as_arrays_do_or_refuses_them(spark, kind, tmp_path):
    for role in ROLES:
        data, accepted = data_with(kind, role), role in KINDS[kind][1]
        made = as_lazy("pyspark", as_table(data), spark)
        found = outcome("pyspark", made, role, tmp_path)
        if not isinstance(found, Exception):
            assert accepted, role
            assert found == outcome("lists", data, role, tmp_path), role


def test_spark_refuses_columns_that_are_alike(spark):
    data = {"score": [0.1, 0.6], "label": [0, 1], "group": ["a", "b"], "other": [0.3, 0.4]}
    frame = as_lazy("pyspark", data, spark)
    with pytest.raises(ic.UsageError, match="data: must have columns with different names"):
        ic.tally(frame.withColumnRenamed("other", "score"))
    for name in ("score", "Score"):
        with pytest.raises(ic.DataError, match="upper and lower case are the same in pyspark"):
            ic.tally(frame.toDF("score", "label", "group", "Score"), score=name)
