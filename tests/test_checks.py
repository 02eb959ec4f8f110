"""The names of what a repair writes: none by which scores or columns would be lost."""

from functools import partial

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import isocost as ic
from isocost.rules import Row
from tests.conftest import sample

DATA = sample(200, groups=2)
RULE = ic.Rule((0, 1), (Row(0, 0.0, 1.0, "set", 0.5, 0.5),), "test")


def lazy(data):
    return duckdb.connect().from_df(pd.DataFrame(data))


DIFFER, NEW = "changed: must differ from the column of repaired", "changed: must be a new column"


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, lazy])
@pytest.mark.parametrize(
    ("names", "text"),
    [
        ({"changed": "repaired_score"}, DIFFER),
        ({"output": "new", "changed": "new"}, DIFFER),
        ({"changed": "label"}, NEW),
    ],
)
def test_nothing_is_overwritten(kind, names, text):
    with pytest.raises(ic.UsageError, match=text):
        RULE.apply(kind(DATA), id="id", **names)


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pl.LazyFrame, lazy, "file"])
@pytest.mark.parametrize(
    ("names", "name"),
    [
        ({"output": ["x"]}, "output"),
        ({"output": 3}, "output"),
        ({"output": b"x"}, "output"),
        ({"changed": 3}, "changed"),
        ({"changed": ["x"]}, "changed"),
        ({"id": ["id"]}, "id"),
        ({"id": 3}, "id"),
    ],
)
def test_names_are_texts(kind, names, name, tmp_path):
    apply, given = RULE.apply, names
    if kind == "file":
        pd.DataFrame(DATA).to_parquet(tmp_path / "d.parquet")
        data = tmp_path / "d.parquet"
        given = {"output_column" if key == "output" else key: value for key, value in names.items()}
        apply = partial(ic.apply_file, RULE, output=tmp_path / "o.parquet")
    else:
        data = kind(DATA)
    with pytest.raises(ic.UsageError) as error:
        apply(data, **{"id": "id", **given})
    (problem,) = error.value.problems
    assert problem.name == ("output_column" if kind == "file" and name == "output" else name)
    assert problem.rule == "must be the name of a column"
    assert problem.got == repr(names[name])
    assert problem.next_step.startswith("pass one text")


def test_names_are_texts_for_arrays_too():
    with pytest.raises(ic.UsageError, match="output: must be the name of a column"):
        RULE.apply(score=[0.1], group=[0], id=[1], output=["x"])


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ({"output": "SCORE"}, "output: must be spelled like the existing column, or be new"),
        ({"output": "new", "changed": "NEW"}, DIFFER),
        ({"output": "new", "changed": "Label"}, NEW),
    ],
)
def test_case_is_not_looked_at_where_the_engine_does_not(names, text):
    with pytest.raises(ic.UsageError, match=text):
        RULE.apply(lazy(DATA), id="id", **names)
    # In a frame these are two columns.
    found = RULE.apply(pd.DataFrame(DATA), id="id", **{"output": "new", **names})
    assert len(found.columns) == len(DATA) + len(names)


def test_files(tmp_path):
    path, out = tmp_path / "d.parquet", tmp_path / "o.parquet"
    pd.DataFrame(DATA).to_parquet(path)
    with pytest.raises(ic.UsageError, match="output_column: must be spelled like the existing"):
        ic.apply_file(RULE, path, out, output_column="SCORE", id="id")
    ic.apply_file(RULE, path, out, changed="new", id="id")
    found, wanted = pd.read_parquet(out), RULE.apply(DATA, changed="new", id="id")
    assert found["new"].tolist() == wanted["new"].tolist()
    assert 0 < np.mean(found["new"]) < 1
    assert list(found.columns) == [*DATA, "repaired_score", "new"]
