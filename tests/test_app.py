"""The command line as a whole: help, examples, completion, and output that fits a screen."""

import inspect
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from isocost import __version__
from isocost.cli.app import COMMANDS, SECTIONS
from isocost.examples import compas_csv

ROOT = Path(__file__).parent.parent


@pytest.fixture
def run(command):
    """A function that gives the output of a command that succeeds."""

    def call(*arguments):
        code, out, _ = command(*arguments)
        assert code == 0
        return out

    return call


@pytest.fixture(autouse=True)
def narrow(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def test_summaries_are_whole_sentences_in_sections(run):
    text = run("--help")
    assert "..." not in text.replace("[ARGS]...", "")
    assert max(map(len, text.splitlines())) <= 80
    said = " ".join(text.split())
    for name, entry in COMMANDS.items():
        summary = " ".join(entry.function.__doc__.split("\n\n")[0].split())
        assert f"{name} {summary}" in said
        assert summary.endswith(".")
    assert all(f"\n{section}:\n" in text for section in SECTIONS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_groups_an_example_and_a_page(name, run):
    text = run(name, "--help")
    entry = COMMANDS[name]
    assert text.endswith(f"Example:\n  isocost {entry.example}\n\nMore:\n  {entry.page}\n")
    assert (ROOT / entry.page).exists()
    assert not re.search(r"^Options:$", text, re.MULTILINE)
    if "--output" in text:
        assert text.index("\nOutput:") < text.index("--output")
    if "--score" in text:
        assert text.index("\nData:") < text.index("--score")


def test_the_examples_of_the_help_run(run):
    Path("data.csv").write_text(compas_csv())
    # In an order in which each finds what it needs; serve would stay.
    first = ["fit", "tally"]
    for name in [*first, *(n for n in COMMANDS if n not in (*first, "serve", "demo", "doctor"))]:
        arguments = shlex.split(COMMANDS[name].example)
        assert arguments[0] == name
        quick = ["--remakes", "20"] if name in ("fit", "compare") else []
        run(*arguments, *quick)
    assert Path("repaired.csv").exists()


def test_a_two_group_audit_fits_a_screen(run):
    Path("data.csv").write_text(compas_csv())
    lines = run("audit", "data.csv", "--cost", "fpr").splitlines()
    assert len(lines) <= 28
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("People who turned out negative were given")
    assert lines[-1] == "--full shows 8 more numbers and every note."
    whole = run("audit", "data.csv", "--cost", "fpr", "--full")
    assert "generalized FPR" in whole
    assert "generalized FPR" not in "\n".join(lines)
    assert "Equalized odds difference" in whole


def test_completion_for_bash(monkeypatch, run):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    shown = run("--show-completion", "bash")
    assert "complete -o default -F _isocost_completion isocost" in shown
    monkeypatch.setenv("_ISOCOST_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "isocost au")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run().split() == ["audit"]
    monkeypatch.setenv("COMP_WORDS", "isocost audit --thresh")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert run().split() == ["--threshold"]


def test_python_runs_the_package(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["isocost", "--version"])
    with pytest.raises(SystemExit):
        runpy.run_module("isocost", run_name="__main__")
    assert capsys.readouterr().out == f"isocost {__version__}\n"


def test_a_wrong_command_is_named_with_one_like_it(command):
    code, _, told = command("audot")
    assert code == 2
    assert "No such command 'audot'" in told
    if "suggest_commands" in inspect.signature(typer.Typer).parameters:
        assert "Did you mean 'audit'?" in told


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        ("--help", ("measures", "repairs.table", "engines.files", "page", "plots", "learn")),
        ("audit data.csv", ("page", "judging.compare", "judging.watch", "engines.sql")),
        ("sql --tally", ("measures", "repairs", "judging", "engines.files", "page")),
    ],
)
def test_a_command_loads_only_what_it_uses(arguments, unused):
    Path("data.csv").write_text(compas_csv())
    program = (
        "import sys\nfrom isocost.cli.app import main\n"
        f"try:\n    main({arguments.split()})\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not {f"isocost.{name}" for name in unused} & {*done.stderr.split()}
