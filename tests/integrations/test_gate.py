"""The GitHub action's script and the pre-commit hook, run as these run them."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from isocost.examples import compas_rows
from tests.integrations.conftest import ROOT

yaml = pytest.importorskip("yaml")

SCRIPT = ROOT / "tools" / "action.sh"
BIN = str(Path(sys.executable).parent)


def write(path, columns, separator=","):
    rows = zip(*(map(str, values) for values in columns.values()), strict=True)
    lines = [separator.join(columns), *(separator.join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path):
    data = {name: values.tolist() for name, values in compas_rows().items()}
    write(tmp_path / "data.csv", data)
    renamed = {"risk score": data["score"], "y": data["label"], "race": data["group"]}
    renamed["sex"] = ["MF"[number % 2] for number in data["id"]]
    write(tmp_path / "other file.csv", renamed)
    write(tmp_path / "bad.csv", data | {"score": [1.5, *data["score"][1:]]})
    return tmp_path


def run(command, folder, environment):
    given = {"PATH": f"{BIN}:{os.environ['PATH']}", **environment}
    return subprocess.run(
        command, cwd=folder, env=given, capture_output=True, text=True, check=False
    )


def run_action(folder, **inputs):
    """The exit code, what was printed, the outputs and the summary of the step."""
    environment = {
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        **{f"INPUT_{name.upper()}": value for name, value in inputs.items()},
    }
    done = run(["bash", str(SCRIPT)], folder, environment)
    paths = folder / "output", folder / "summary.md"
    output, summary = (path.read_text() if path.exists() else "" for path in paths)
    outputs = dict(line.split("=", 1) for line in output.splitlines())
    return done.returncode, done.stdout, outputs, summary


def test_it_reports(folder):
    code, out, outputs, summary = run_action(folder, data="data.csv", cost="fpr", fail_above="")
    assert code == 0
    assert "::error" not in out
    assert float(outputs["difference"]) == pytest.approx(0.0875, abs=1e-4)
    named = [outputs[name] for name in ("established", "feasible", "exit-code")]
    assert named == ["true", "no", "0"]
    assert "Caucasian" in summary
    assert "|" in summary


def test_it_passes_below_the_limit_and_fails_above(folder):
    assert run_action(folder, data="data.csv", cost="fpr", fail_above="0.09")[0] == 0
    code, out, outputs, summary = run_action(folder, data="data.csv", cost="fpr", fail_above="0.08")
    assert code == 1
    assert "::error title=isocost::isocost: costs differ by 0.0875, more than 0.08" in out
    assert outputs["exit-code"] == "1"
    assert "**Failed:** isocost: costs differ by 0.0875" in summary


def test_columns_with_spaces_intersections_and_a_report(folder):
    code, out, outputs, summary = run_action(
        folder,
        data="other file.csv\n",
        score="risk score",
        label="y",
        group="race\nsex",
        report="my report.html",
        arguments="--drop-group=Caucasian, F\n--min-group\n50",
    )
    assert code == 0, out
    assert outputs["report"] == "my report.html"
    assert (folder / "my report.html").read_text().startswith("<!doctype html>")
    assert "African-American, M" in summary
    assert not any(line.startswith("|") and "Caucasian, F" in line for line in summary.splitlines())


def test_bad_data_are_told_in_one_annotation(folder):
    code, out, outputs, summary = run_action(folder, data="bad.csv")
    assert code == 2
    (line,) = [line for line in out.splitlines() if line.startswith("::error")]
    assert "%0A  next: " in line
    assert "score" in line
    assert outputs == {"exit-code": "2"}
    assert "isocost could not audit the data" in summary
    assert "next: " in summary


@pytest.mark.parametrize("data", ["", "\n", "nowhere.csv"])
def test_no_data(folder, data):
    code, out, *_ = run_action(folder, data=data)
    assert code == 2
    assert "::error" in out


def test_inputs_are_never_run(folder):
    trap = "$(touch trapped); `touch trapped`; touch trapped #"
    for name in ("data", "score", "group", "cost", "fail_above", "arguments"):
        code, *_ = run_action(folder, **{"data": "data.csv", name: trap})
        assert code == 2
    assert not (folder / "trapped").exists()


def test_the_action_hands_on_every_input():
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    given = {value for step in action["runs"]["steps"] for value in step["env"].values()}
    assert given == {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}
    script = SCRIPT.read_text()
    audit = action["runs"]["steps"][-1]
    assert all(f"{name}:-" in script for name in audit["env"])
    for name, output in action["outputs"].items():
        assert output["value"] == f"${{{{ steps.audit.outputs.{name} }}}}"
        assert f"{name}=" in script or f"output {name} " in script
    assert SCRIPT.stat().st_mode & 0o111
    # Inputs must not be put into a script: they could be code.
    assert not any("inputs." in step["run"] for step in action["runs"]["steps"])


@pytest.fixture
def repository(folder):
    """A repository with a hook that runs the isocost of this environment."""
    if find_spec("pre_commit") is None:
        pytest.skip("pre-commit is not installed")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    hook |= {"language": "system", "files": r"^(data|bad)\.csv$"}
    hook["args"] = ["--cost", "fpr", "--fail-above", "0.08", "--no-plot"]
    config = {"repos": [{"repo": "local", "hooks": [hook]}]}
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    return folder


def pre_commit(folder, *arguments):
    command = [sys.executable, "-m", "pre_commit", *arguments]
    environment = {**os.environ, "PRE_COMMIT_HOME": str(folder / ".cache")}
    environment["PATH"] = f"{BIN}:{os.environ['PATH']}"
    return run(command, folder, environment)


def test_the_manifest_is_valid(folder):
    pytest.importorskip("pre_commit")
    done = pre_commit(folder, "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml"))
    assert done.returncode == 0


def test_the_hook_fails_above_the_limit_and_for_bad_data(repository):
    done = pre_commit(repository, "run", "--files", "data.csv")
    assert done.returncode == 1
    assert "costs differ by 0.0875, more than 0.08 (--fail-above)" in done.stdout
    done = pre_commit(repository, "run", "--files", "bad.csv")
    assert done.returncode == 1
    assert "exit code: 2" in done.stdout
    config = repository / ".pre-commit-config.yaml"
    config.write_text(config.read_text().replace("0.08", "0.09"))
    done = pre_commit(repository, "run", "--files", "data.csv")
    assert done.returncode == 0, done.stdout
    assert "Passed" in done.stdout
