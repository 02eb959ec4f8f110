"""isocost doctor says what is installed, and what is missing or broken."""

import json
import sys
import tomllib
import webbrowser
from importlib.metadata import version
from pathlib import Path

import pytest

from isocost.cli import doctor

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
FOR_DEVELOPERS = {"all", "reproduction", "dev", "docs"}


@pytest.fixture
def run(command):
    return lambda *arguments: command("doctor", *arguments)[:2]


def asking(monkeypatch, *lines):
    """Let the metadata of isocost ask for these."""
    monkeypatch.setattr(doctor, "requires", lambda _: list(lines))


def test_here_nothing_is_broken(run):
    code, out = run("--json")
    found = json.loads(out)
    assert (code, found["broken"]) == (0, [])
    versions = {one["name"]: one["version"] for one in found["required"]}
    assert versions["numpy"] == version("numpy")
    assert versions["scikit-learn"] == version("scikit-learn")
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert set(found["frames"]) == set(doctor.FRAMES)
    assert run()[1].endswith("Everything isocost needs is there.\n")


def test_every_extra_has_a_word():
    listed = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert set(doctor.GIVES) == set(listed) - FOR_DEVELOPERS


def test_a_missing_extra_has_its_pip_line(run, monkeypatch):
    asking(
        monkeypatch,
        "numpy>=2.0",
        'numpy>=2.0; extra == "plot"',
        "no-such-package[x]>=3; extra == 'report'",
        'isocost[report]; extra == "serve"',
        'numpy>=1000; extra == "dask"',
        'numpy; extra == "dev"',
    )
    code, out = run("--json")
    assert code == 0
    found = {one["name"]: one for one in json.loads(out)["extras"]}
    assert {name: one["missing"] for name, one in found.items()} == {
        "plot": [],
        "report": ["no-such-package"],
        "serve": ["no-such-package"],
        "dask": ["numpy"],
    }
    assert found["report"]["install"] == 'pip install "isocost[report]"'
    assert 'To add what is missing: pip install "isocost[report,serve,dask]"' in run()[1]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("no-such-package>=3", "missing"),
        ("numpy>=1000.1", "too old"),
        ("scikit-learn>=1.6", "ModuleNotFoundError: "),
    ],
)
def test_what_is_required_and_broken_is_an_exit_code(run, monkeypatch, line, problem):
    asking(monkeypatch, "scipy>=1.14", line)
    name = line.partition(">")[0]
    monkeypatch.setitem(sys.modules, "sklearn", None)
    code, out = run("--json")
    assert code == 2
    found = json.loads(out)
    assert found["broken"] == [name]
    good, bad = (one["problem"] for one in found["required"])
    assert good is None
    assert bad.startswith(problem)
    assert f"Broken: {name}." in run()[1]


@pytest.mark.parametrize(
    ("installed", "needs", "allowed"),
    [
        ("1.3.0", ">=1.3", True),
        ("1.3", ">=1.3.0", True),
        ("1.10", ">=1.9", True),
        ("1.2.9", ">=1.3", False),
        ("2024.12.0", ">=2024.12", True),
        ("2.0.0rc1", ">=2.0", True),
        ("1", "", True),
    ],
)
def test_versions_are_compared_by_their_numbers(monkeypatch, installed, needs, allowed):
    monkeypatch.setattr(doctor, "version", lambda _: installed)
    assert (doctor.examined(f"numpy{needs}").problem is None) == allowed


def test_no_java_and_no_browser(run, monkeypatch, tmp_path):
    def none():
        raise webbrowser.Error("none")

    monkeypatch.setattr(webbrowser, "get", none)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = json.loads(run("--json")[1])
    assert found["java"] == {"path": None, "version": None}
    assert found["browser"] is None


def test_java_of_java_home_comes_first(monkeypatch, tmp_path):
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"21.0.2\" 2024' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.java() == {"path": str(program), "version": "21.0.2"}
    program.write_text("not a program")
    assert doctor.java()["version"] is None
