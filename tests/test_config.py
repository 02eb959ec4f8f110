"""Options from isocost.toml and pyproject.toml."""

import json

import pytest

from isocost.examples import compas_csv


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(compas_csv().replace("score", "risk", 1))
    return tmp_path


AUDIT = ("audit", "data.csv", "--replicates", "0", "--json")


def test_the_file_sets_options_and_the_command_line_wins(folder, command):
    (folder / "isocost.toml").write_text(
        'score = "risk"\ncost = "fpr"\nfail-above = 0.01\nsalt = "ours"\n'
        "[audit]\nthreshold = 0.3\n[fit]\nthreshold = 0.9\n"
    )
    code, out, err = command(*AUDIT)
    assert code == 1
    found = json.loads(out)
    assert (found["question"]["cost"]["fp"], found["question"]["cost"]["fn"]) == (1.0, 0.0)
    assert found["question"]["threshold"] == 0.3
    assert err.startswith("isocost.toml sets --score, --cost, --fail-above, --threshold.\n")
    code, out, err = command(*AUDIT, "--threshold", "0.4", "--fail-above", "0.5")
    assert code == 0
    assert json.loads(out)["question"]["threshold"] == 0.4


def test_a_named_file_and_the_table_of_a_project(folder, command):
    (folder / "mine.toml").write_text('score = "risk"\ngroup = ["group"]\nbins = 100\n')
    (folder / "pyproject.toml").write_text('[tool.isocost]\nscore = "risk"\n[tool.ruff]\na = 1\n')
    code, out, err = command("tally", "data.csv", "--config", "mine.toml")
    assert (code, err, json.loads(out)["bins"]) == (0, "", 100)
    code, out, err = command("tally", "data.csv")
    assert (code, json.loads(out)["bins"]) == (0, 1024)
    assert err == "pyproject.toml sets --score.\n"
    (folder / "isocost.toml").write_text('score = "decile"\n')
    assert "isocost.toml sets --score" in command("tally", "data.csv")[2]
    (folder / "isocost.toml").unlink()
    (folder / "pyproject.toml").write_text("this is = = not ours to judge")
    assert "toml" not in command("tally", "data.csv")[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('cots = "fpr"', "isocost.toml: cots: must be an option of a command"),
        ('cots = "fpr"', "did you mean cost?"),
        (
            'threshold = "half"',
            "isocost.toml: threshold: must be what --threshold takes\n  got:  'half': ",
        ),
        ("replicates = true", "replicates: must be what --replicates takes\n  got:  True: "),
        ("fail_above = [1]", "fail_above: must be what --fail-above takes\n  got:  [1]: "),
        ('selected = "middle"', "selected: must be what --selected takes\n  got:  'middle': "),
        ('full = "perhaps"', "full: must be what --full takes\n  got:  'perhaps': "),
        ("force = true", "isocost.toml: force: must be given on the command line"),
        ("[fit]\nfail_above = 1", "fit.fail_above: must be an option of isocost fit"),
        ("fit = 3", "isocost.toml: fit: must be a table, as the name of a command"),
        ("a b", "isocost.toml: must be TOML"),
    ],
)
def test_what_a_file_must_not_hold(text, message, folder, command):
    (folder / "isocost.toml").write_text(text)
    code, out, err = command(*AUDIT)
    assert (code, out) == (2, "")
    assert message in err
    assert "  next: " in err
