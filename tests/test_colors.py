"""Without colours there are none: neither in tables nor in drawings, bars and sentences."""

import re

import pytest

from isocost.cli import output
from isocost.cli.reproduce import _bar
from isocost.experiments import fetching
from isocost.experiments.compas import compas, compas_rows
from isocost.repair.withhold import withhold

from .terminals import on_terminal

STYLE = re.compile(r"\x1b\[([\d;]*)m")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("colors")
    rows = {**compas_rows(), "id": range(6150)}
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    (folder / "data.csv").write_text("\n".join(lines))
    withhold(compas(), "fpr", 0.06).save(folder / "rule.json")
    return folder


COMMANDS = {
    "audit": ["audit", "data.csv", "--cost", "fpr", "--replicates", "0"],
    "fit": ["fit", "data.csv", "--cost", "fpr", "--tolerance", "0.06", "-o", "out.json", "--force"],
    "apply": ["apply", "rule.json", "data.csv", "-o", "out.csv", "--force"],
    "demo": ["demo", "--no-report"],
    "datasets": ["datasets"],
}


def codes(text):
    return {code for one in STYLE.findall(text) for code in one.split(";")}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_style_is_left_anywhere(folder, name):
    command = COMMANDS[name]
    for place in (0, len(command)):
        line = [*command[:place], "--no-color", *command[place:]]
        assert STYLE.search(on_terminal(*line, cwd=folder)) is None
    # With colours there is something to leave out.
    assert STYLE.search(on_terminal(*command, cwd=folder))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_usual_variable_leaves_bold_and_dim(folder, name):
    assert codes(on_terminal(*COMMANDS[name], cwd=folder, NO_COLOR="1")) <= {"", "0", "1", "2"}


def test_bars_of_reproduce_and_of_downloads(monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    # Set and taken away, so that it is put back as it was: use_color sets it.
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr(output, "_colored", True)

    def drawn():
        with _bar(2) as report:
            report("training")
        with fetching._bar("fetching"):
            pass
        return codes(capsys.readouterr().err)

    assert not drawn() <= {"", "0", "1", "2"}
    output.use_color(False)
    assert drawn() <= {"", "0", "1", "2"}
