"""Files are written whole or not at all."""

import os

import pytest

import isocost as ic
from isocost.atomic import read_text, replacing, write_text
from isocost.errors import FileError
from isocost.experiments import compas


def test_written_whole(tmp_path):
    write_text(tmp_path / "a.json", "new")
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert read_text(tmp_path / "a.json") == "new"


def test_saved_names_do_not_promise_something_else(tmp_path):
    rule = ic.withhold(compas(), "fpr", 0.07)
    for made in (rule, compas()):
        with pytest.raises(FileError, match=r"output: must end in \.json\n  got:  .*a\.parquet"):
            made.save(tmp_path / "a.parquet")
        made.save(tmp_path / "a")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_the_temporary_file_is_beside_it_with_its_ending(tmp_path):
    with replacing(tmp_path / "a.csv") as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".csv"
        assert temporary.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o600])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    (tmp_path / "a.json").touch(mode)
    write_text(tmp_path / "a.json", "new")
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, GeneratorExit])
def test_nothing_is_left_and_nothing_is_lost(tmp_path, error):
    write_text(tmp_path / "a.json", "old")

    def fail():
        with replacing(tmp_path / "a.json") as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert read_text(tmp_path / "a.json") == "old"


def test_ctrl_c_as_soon_as_the_file_is_there(tmp_path, monkeypatch):
    plain = os.open

    def interrupted(*given):
        os.close(plain(*given))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a.json"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("parent", ["nowhere", "a file"])
def test_a_place_that_cannot_be(tmp_path, parent):
    (tmp_path / "a file").touch()
    with pytest.raises(FileError, match="must be one that can be written") as caught:
        write_text(tmp_path / parent / "a.json", "new")
    assert "choose a folder that exists" in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["a file"]
