import csv
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import isocost as ic
from isocost.page.payload import payload
from isocost.page.report import MODEL, bundle
from isocost.page.view import page_commands
from tests.conftest import sample

FOLDER = files("isocost.page").joinpath("web", "model")


def run(script):
    """What a script prints under node, as a plain script: without modules."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    command = [node, "--input-type=commonjs", "-"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_file_is_in_the_bundle():
    assert {f"{name}.js" for name in MODEL} == {path.name for path in FOLDER.iterdir()}


@pytest.mark.parametrize("name", MODEL)
def test_a_file_imports_only_those_before_it_and_exports_declarations_only(name):
    lines = FOLDER.joinpath(f"{name}.js").read_text(encoding="utf-8").splitlines()
    for line in [line for line in lines if line.startswith("import")]:
        found = re.fullmatch(r'import \{ [\w, ]+ \} from "\./(\w+)\.js";', line)
        assert found, f"an import must stand on one line and rename nothing: {line}"
        assert MODEL.index(found[1]) < MODEL.index(name)
    exports = [line for line in lines if line.startswith("export")]
    assert exports
    for line in exports:
        assert re.match(r"export (function|const) \w", line), line


def test_nothing_can_end_the_script_or_ask_for_more():
    text = bundle()
    assert "</script" not in text.lower()
    assert "<!--" not in text
    assert not re.search(r"^(import|export)\b|https?://|\bfetch\(|\beval\(", text, re.MULTILINE)


def test_groups_keep_their_type_through_the_page():
    data = {"score": [0.2, 0.9, 0.4, 0.7], "label": [0, 1, 0, 1], "group": [0, 0, 1, 1]}
    tally = ic.tally(data).relabel({0: 2.0, 1: 2**53 + 1})
    text = bundle() + (
        f"\nconst tally = readTally({json.dumps(payload(tally))});"
        '\nconst text = jsonText(withhold(tally, { cost: { kind: "fnr" }, tolerance: 0.01 }));'
        "\nconsole.log(JSON.stringify(text));"
    )
    groups = ic.Rule.from_json(run(text)).groups
    assert groups == tally.groups
    assert [type(group) for group in groups] == [type(group) for group in tally.groups]


def test_the_command_line_makes_the_rule_that_the_page_shows(tmp_path):
    columns = {"score": "--ri'sk", "label": "$(touch x)", "group": ["a b;c"], "weight": None}
    data = sample(3000, 3, seed=8)
    names = np.array(["x", "-y", "`z`"])[data["group"]]
    rows = zip(data["score"].tolist(), data["label"].tolist(), names.tolist(), strict=True)
    with (tmp_path / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows([(columns["score"], columns["label"], "a b;c"), *rows])
    roles = {role: columns[role] for role in ("score", "label", "group")}
    tally = ic.tally(str(tmp_path / "data.csv"), **roles)
    kept = [place for place, group in enumerate(tally.groups) if group != "`z`"]
    off = tally.index_of("`z`")
    prepared = page_commands(ic.audit(tally, confidence=None), tally.groups, ["data.csv"])
    text = bundle() + (
        f"\nconst tally = subset(readTally({json.dumps(payload(tally))}), {kept});"
        '\nconst set = { cost: { kind: "plain", fp: 1, fn: 3 }, tolerance: 0.05 };'
        f'\nconst told = {{ command: "fit", method: "withhold", off: [{off}], ...set }};'
        f"\nconst line = commandLine(told, {json.dumps(prepared['posix'])});"
        "\nconsole.log(JSON.stringify([line, withhold(tally, set)]));"
    )
    line, shown = run(text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        # These groups differ by chance only, so fit would refuse.
        ["bash", "-c", f"{line} --anyway"], cwd=tmp_path, check=True, capture_output=True,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "rule.json"}
    made, rule = ic.Rule.load(tmp_path / "rule.json"), ic.Rule.from_json(json.dumps(shown))
    assert (made.groups, made.settings, made.cost) == (rule.groups, rule.settings, rule.cost)
    assert made.rows
    for mine, theirs in zip(rule.rows, made.rows, strict=True):
        assert (mine.group, mine.lo, mine.hi) == (theirs.group, theirs.lo, theirs.hi)
        assert mine.value == pytest.approx(theirs.value, abs=1e-9)
        assert mine.probability == pytest.approx(theirs.probability, abs=1e-9)
