"""Which columns are guessed to be what, from their names and from their values."""

import pandas as pd
import pytest

from isocost.engines.look import SAMPLE, SHOWN, preview
from isocost.errors import FileError
from isocost.examples import compas_rows
from tests.conftest import sample


def write(tmp_path, data, name="data.csv"):
    path = tmp_path / name
    frame = pd.DataFrame(data)
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["data.csv", "data.parquet", "data.csv.gz"])
def test_compas(tmp_path, name):
    found = preview(write(tmp_path, compas_rows(), name))
    assert [column.name for column in found.columns] == ["id", "group", "decile", "label", "score"]
    assert found.guess == {"score": "score", "label": "label", "group": "group", "weight": None}
    assert found.positive is None
    by_name = {column.name: column for column in found.columns}
    assert by_name["group"].values == ("African-American", "Caucasian")
    assert (by_name["decile"].low, by_name["decile"].high) == (1, 10)
    assert len(by_name["id"].values) == SHOWN
    assert by_name["id"].distinct == SAMPLE


def test_names_that_say_nothing(tmp_path):
    rows = sample(3000, weighted=True)
    columns = {"a": "group", "b": "score", "c": "label", "d": "weight"}
    data = {new: rows[old] for new, old in columns.items()}
    data["a"] = ["north" if code else "south" for code in data["a"]]
    found = preview(write(tmp_path, data))
    # A weight cannot be told from any other amount, so it is never guessed by values alone.
    assert found.guess == {"score": "b", "label": "c", "group": "a", "weight": None}


def test_names_before_values(tmp_path):
    rows = compas_rows()
    data = {"p_value": rows["score"], "smoker": rows["label"], "two_year_recid": rows["label"]}
    data |= {"sample_weight": rows["score"] + 1, "race": rows["group"], "risk": rows["score"]}
    found = preview(write(tmp_path, data))
    assert found.guess["label"] == "two_year_recid"
    assert found.guess["group"] == "race"
    assert found.guess["weight"] == "sample_weight"


@pytest.mark.parametrize(
    ("values", "positive"),
    [
        (["no", "yes"], "yes"),
        (["True", "False"], None),
        (["0", "1"], None),
        (["-1", "1"], "1"),
        (["lost", "won"], None),
        (["neg", "POS"], "POS"),
    ],
)
def test_the_positive_label_is_named_only_where_it_is_known(tmp_path, values, positive):
    rows = compas_rows()
    data = {"score": rows["score"], "group": rows["group"]}
    data["label"] = [values[i] for i in rows["label"]]
    found = preview(write(tmp_path, data))
    assert found.guess["label"] == "label"
    assert found.positive == positive


def test_scores_outside_the_unit_interval_are_not_guessed(tmp_path):
    rows = compas_rows()
    found = preview(write(tmp_path, {"score": rows["decile"], "y": rows["label"]}))
    assert found.guess["score"] is None


def test_a_file_sorted_by_group_shows_all_its_groups(tmp_path):
    groups = ["a"] * 20_000 + ["b"] * 20_000
    found = preview(write(tmp_path, {"group": groups}))
    assert found.columns[0].distinct == 2


def test_odd_columns_are_shown_and_not_guessed(tmp_path):
    data = {
        "list": [[1, 2], [3]],
        "empty": [None, None],
        "when": pd.to_datetime(["2026-01-01"] * 2),
    }
    found = preview(write(tmp_path, {**data, "long": ["x" * 500, "y"]}, "odd.parquet"))
    assert not found.columns[0].numeric
    assert max(len(value) for column in found.columns for value in column.values) <= 80
    assert found.guess["score"] is None


def test_nothing_there():
    with pytest.raises(FileError, match="must exist"):
        preview("nothing-here.csv")
