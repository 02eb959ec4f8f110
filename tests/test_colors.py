"""Without colours there are none: neither in tables nor in drawings, bars and sentences."""

import re

import pytest

from isocost.examples import compas, compas_csv
from isocost.repairs.withhold import withhold
from tests.terminals import on_terminal

STYLE = re.compile(r"\x1b\[([\d;]*)m")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("colors")
    (folder / "data.csv").write_text(compas_csv())
    withhold(compas(), "fpr", 0.06).save(folder / "rule.json")
    return folder


COMMANDS = {
    "audit": ["audit", "data.csv", "--cost", "fpr", "--replicates", "0"],
    "fit": ["fit", "data.csv", "--cost", "fpr", "--tolerance", "0.06", "-o", "out.json", "--force"],
    "apply": ["apply", "rule.json", "data.csv", "--id", "id", "-o", "out.csv", "--force"],
    "demo": ["demo", "--no-report"],
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
