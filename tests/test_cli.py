"""The command line as a person or a pipeline uses it: a real process each time."""

import csv
import inspect
import io
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import isocost as ic
from isocost.cli import commands
from isocost.cli.options import expanded
from isocost.examples import compas, compas_rows
from tests import processes
from tests.processes import ISOCOST

FEW = ("--remakes", 10)
"""For rules that are to be made; what they do to new people is another test's subject."""


def run(*arguments, **options):
    done = processes.run(*arguments, **options)
    assert "Traceback" not in done.stderr or "--debug" in arguments
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    rows = pd.DataFrame(compas_rows())
    rows.to_csv(folder / "compas.csv", index=False)
    rows.to_parquet(folder / "compas.parquet")
    return folder


def test_results_in_other_formats(folder, tmp_path):
    options = ("audit", folder / "compas.csv", "--cost", "fpr")
    written = tmp_path / "audit.csv"
    done = run(*options, "--format", "csv", "--csv", written)
    assert (done.returncode, done.stderr) == (0, "")
    assert written.read_text() == done.stdout
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    audit = ic.audit(compas(), cost="fpr")
    assert [row["group"] for row in rows] == [*audit.groups, "all"]
    for row, numbers in zip(rows, [*audit.groups.values(), audit.overall], strict=True):
        assert float(row["fpr"]) == pytest.approx(numbers.fpr, abs=1e-12)
        high = pytest.approx(numbers.intervals["cost"][1], abs=1e-12)
        assert float(row["cost_high"]) == high
    plain, same = run(*options, "--json"), run(*options, "--format", "json")
    assert plain.stdout == same.stdout
    assert json.loads(plain.stdout)["format"] == "isocost-audit"
    shown = run(*options, "--format", "markdown").stdout
    assert shown.startswith("People who turned out negative were given an average score of 45")
    assert "| FPR | 0.3432 [.322, .365] | 0.1472 [.130, .166] |" in shown


def test_a_csv_file_beside_the_table(folder, tmp_path):
    written = tmp_path / "plan.csv"
    done = run("plan", folder / "compas.csv", "--csv", written)
    assert f"The numbers are in {written}." in done.stdout
    assert written.read_text().startswith(
        "group,rows,difference,calibration\nAfrican-American,3696,"
    )
    again = run("plan", folder / "compas.csv", "--csv", written, "--json")
    assert again.returncode == 2
    assert "output: must not exist yet" in again.stderr
    forced = run("plan", folder / "compas.csv", "--csv", written, "--json", "--force")
    assert json.loads(forced.stdout)["detect"] == 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--json", "--format", "csv"), "the other options\n  got:  --format csv"),
        (("--format", "markdown", "--plot"), "--plot: must agree with the other options"),
        (("--force",), "--force: must agree with the other options\n  got:  no --csv"),
        (("--csv", "numbers.xlsx"), "output: must end in .csv"),
    ],
)  # fmt: skip
def test_printing_options_that_contradict_each_other(folder, options, message):
    done = run("audit", folder / "compas.csv", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "\n  next: " in done.stderr


def test_comparisons_and_watches_in_other_formats(folder, tmp_path):
    data = folder / "compas.csv"
    ic.withhold(compas(), "fpr", 0.06).save(tmp_path / "mine.json")
    ic.withhold(compas(), "fpr", 0.06).expected(compas()).save(tmp_path / "may.json")
    shown = run("compare", data, tmp_path / "mine.json", "--remakes", 20, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    assert [row["rule"] for row in rows] == ["original", "mine"]
    assert float(rows[1]["cost_difference"]) == pytest.approx(0.06, abs=1e-9)
    shown = run("compare", data, tmp_path / "mine.json", "--remakes", 20, "--format", "markdown")
    assert shown.stdout.count("| :--- |") == 4
    watched = run(
        "watch", tmp_path / "mine.json", tmp_path / "may.json",
        "--tolerance", 0.08, "--format", "csv",
    )  # fmt: skip
    (row,) = csv.DictReader(io.StringIO(watched.stdout))
    assert (row["period"], row["rows"], row["broken"]) == ("may", "6150", "")
    assert float(row["difference"]) == pytest.approx(0.06, abs=1e-9)


def test_fit_says_what_a_long_rule_does(folder, tmp_path):
    written = tmp_path / "rule.json"
    done = run(
        "fit", folder / "compas.csv", "--method", "reconcile", "--remakes", 20, "-o", written
    )
    assert "Rule by reconcile; 25 rows, not listed here" in done.stdout
    found = ic.compare(compas(), [ic.Rule.load(written)]).rules["reconcile"].by_group["Caucasian"]
    assert found.raised + found.lowered == pytest.approx(1.0)
    lines = re.findall(r"Caucasian, reconcile .*%.*", done.stdout)
    assert any(f"{found.raised:.1%}  {found.mean_rise:>9.3f}" in line for line in lines)
    assert "promise: equal fpr within 0 and fnr within 0 at 0.5; scores stay" in done.stdout
    assert "0.262695" not in done.stdout


def test_audit_from_standard_input(folder):
    text = (folder / "compas.csv").read_text()
    done = run("audit", "-", "--cost", "fpr", stdin=text)
    assert done.returncode == 0
    other = run("audit", folder / "compas.csv", "--cost", "fpr").stdout
    said, beside = (" ".join(text.split()) for text in (done.stdout, other))
    assert said == beside.replace(str(folder / "compas.csv"), "-")
    empty = run("audit", "-", stdin="")
    assert empty.returncode == 2
    assert "standard input: must contain CSV" in empty.stderr


@pytest.mark.parametrize(
    ("command", "name", "rule"),
    [
        (["fit", "compas.csv", "--tolerance", 0.06], "rule.csv", "must end in .json"),
        (["tally", "compas.csv"], "tally.parquet", "must end in .json"),
        (["tally", "compas.csv"], "tally.json.gz", "must end in .json"),
        (["sql", "--tally"], "query.json", "must end in .sql or .txt"),
    ],
)
def test_the_ending_of_an_output_says_what_it_is(folder, tmp_path, command, name, rule):
    done = run(*command, "-o", tmp_path / name, "--force", cwd=folder)
    assert done.returncode == 2
    assert f"output: {rule}\n  got:  {tmp_path / name}\n  next: name it " in done.stderr
    assert list(tmp_path.iterdir()) == []
    for fine in (Path(name).stem.split(".")[0], "-"):
        assert run(*command, "-o", tmp_path / fine, cwd=folder).returncode == 0
        assert (tmp_path / fine).exists()


def test_audit_as_a_gate(folder):
    data = folder / "compas.csv"
    assert run("audit", data, "--cost", "fpr", "--fail-above", 0.1).returncode == 0
    failed = run("audit", data, "--cost", "fpr", "--fail-above", 0.05, "--json")
    assert failed.returncode == 1
    assert "costs differ by 0.0875, more than 0.05" in failed.stderr
    json.loads(failed.stdout)


def test_fit_and_apply(folder, tmp_path):
    rule, out = tmp_path / "rule.json", tmp_path / "out.parquet"
    done = run("fit", folder / "compas.csv", "--cost", "fpr", "--tolerance", 0.06, "-o", rule)
    assert done.returncode == 0
    assert "Caucasian    [0, 1]   0.3936            0.8167" in done.stdout
    # Another rule does not replace it, unless that is asked for.
    made, other = rule.read_bytes(), ("fit", folder / "compas.csv", "--cost", "fnr", "-o", rule)
    refused = run(*other, *FEW)
    assert refused.returncode == 2
    assert "output: must not exist yet" in refused.stderr
    assert rule.read_bytes() == made
    assert run(*other, "--tolerance", 0.09, *FEW, "--force").returncode == 0
    assert ic.Rule.load(rule).cost == ic.Cost.fnr()
    rule.write_bytes(made)
    command = ["apply", rule, folder / "compas.csv", "--id", "id", "-o", out]
    done = run(*command)
    assert done.returncode == 0
    told = f"6,150 rows are in {out}, with repaired scores in the column repaired_score."
    assert " ".join(done.stdout.split()) == told
    wanted = ic.Rule.load(rule).apply(compas_rows(), id="id")["repaired_score"]
    np.testing.assert_array_equal(pd.read_parquet(out)["repaired_score"], wanted)
    np.testing.assert_array_equal(pd.read_parquet(out)["score"], compas_rows()["score"])
    again = run(*command)
    assert again.returncode == 2
    assert "output: must not exist yet" in again.stderr
    assert run(*command, "--force").returncode == 0
    asked = run(*command[:3], "-o", tmp_path / "other.csv")
    assert asked.returncode == 2
    assert "next: name the column that says who a row is about with --id" in asked.stderr
    twice = ["apply", rule, out, "--id", "id", "-o", tmp_path / "twice.csv"]
    clash = run(*twice)
    assert clash.returncode == 2
    assert "output_column: must be named, because a column with the usual name" in clash.stderr
    step = re.search("next: pass (--output-column repaired_score) to replace", clash.stderr)[1]
    assert run(*twice, *step.split()).returncode == 0


@pytest.mark.parametrize(
    ("method", "options", "disparity"),
    [
        ("coarsen", ["--cost", "fpr", "--tolerance", 0.06, "--allow-decision-changes"], "cost"),
        ("odds", ["--threshold", 0.37], "generalized_fnr"),
        ("reconcile", [], "fpr"),
        ("reconcile", ["--equal", "selection_rate", "--levels", "8"], "selection_rate"),
        ("reconcile", ["--equal", "cost", "--cost", "fnr", "--tolerance", 0.06], "cost"),
    ],
)
def test_every_method_of_fit(folder, tmp_path, method, options, disparity):
    path = tmp_path / "rule.json"
    options = (*options, *FEW, "-o", path)
    done = run("fit", folder / "compas.csv", "--method", method, *options)
    assert done.returncode == 0, done.stderr
    rule = ic.Rule.load(path)
    assert rule.method == method
    tally = compas(edges=(0.37, 0.63))
    after = ic.audit(rule.expected(tally), rule.cost or "fpr", confidence=None)
    allowed = 0.06 if 0.06 in options else 0.0
    assert after.disparities[disparity].difference <= allowed + 1e-9
    applied = tmp_path / "out.csv"
    command = ["apply", path, folder / "compas.csv", "--id", "id", "-o", applied]
    assert run(*command).returncode == 0
    np.testing.assert_allclose(
        pd.read_csv(applied)["repaired_score"],
        rule.apply(compas_rows(), id="id")["repaired_score"],
        rtol=0,
        atol=1e-15,
    )


def test_fit_has_every_option_of_every_repair(folder):
    signature = inspect.signature(expanded(commands.fit)).parameters
    text = run("fit", "--help").stdout
    for repair in ic.REPAIRS.values():
        assert repair.name in text
        own = inspect.signature(repair.make).parameters
        for option in repair.options:
            # Of coarsening, the threshold of the question is the one that matters.
            if option.name == "thresholds":
                continue
            assert f"--{option.name.replace('_', '-')} " in text[: text.index("\nOther options")]
            # What is equal, and what share is handed over, differs by repair and by data.
            if option.name not in ("equal", "share", "tolerance"):
                assert signature[option.name].default == own[option.name].default
    data = folder / "compas.csv"
    done = run("fit", data, "--method", "odds", "--rates", "hard", *FEW)
    assert ic.Rule.from_json(done.stdout).settings == {"threshold": 0.5, "rates": "hard"}
    done = run("fit", data, "--method", "reconcile", "--levels", 8, *FEW)
    made = ic.Rule.from_json(done.stdout)
    assert made.settings == ic.reconcile(compas(), levels=8).settings
    limits = ("--floor", "selection_rate=.45", "--floor", "overall_accuracy=0.6", "--monotone")
    done = run("fit", data, "--method", "reconcile", "--levels", "auto", *limits, *FEW)
    floor = {"selection_rate": 0.45, "overall_accuracy": 0.6}
    wanted = ic.reconcile(compas(), floor=floor, monotone=True)
    assert ic.Rule.from_json(done.stdout).settings == wanted.settings
    only = ("fit", data, "--method", "reconcile", "--equal", "fnr", "--no-worse")
    assert ic.Rule.from_json(run(*only, *FEW).stdout).settings["no_worse"] is True


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ("reconcile --floor 0.3", "--floor: must be NAME=NUMBER", 2),
        ("reconcile --floor accuracy=much", "--floor: must be NAME=NUMBER", 2),
        ("reconcile --levels some", "levels: must be a whole number from 2 to 1024", 2),
        ("reconcile --no-worse", "accept --tolerance 0.2197 or more", 1),
    ],
)
def test_requests_that_repairs_refuse(folder, arguments, message, code):
    done = run("fit", folder / "compas.csv", "--method", *arguments.split())
    assert done.returncode == code
    assert message in " ".join(done.stderr.split())


def test_infeasible_is_exit_code_1_and_no_file(folder, tmp_path):
    rule = tmp_path / "rule.json"
    done = run("fit", folder / "compas.csv", "--cost", "fpr", "-o", rule)
    assert done.returncode == 1
    assert "Caucasian cannot" in done.stderr
    assert not rule.exists()
    closest = run(
        "fit", folder / "compas.csv", "--cost", "fpr", "--infeasible", "closest", "-o", rule
    )
    assert closest.returncode == 0
    assert "warning: Equal cost (fpr) within 0 is not feasible" in closest.stderr
    assert rule.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "no.csv"], "file: must exist"),
        (["audit", "compas.csv", "--threshold", "2"], "--threshold: must be a number strictly"),
        (["audit", "compas.csv", "--tolerance", "-1"], "tolerance: must be a number"),
        (["audit", "compas.csv", "--fail-above", "nan"], "--fail-above: must be a number that is"),
        (["audit", "compas.csv", "--drop-group", "Martian"], "--drop-group: must name a group"),
        (["audit", "compas.csv", "--drop-group", "Caucasian"], "must have at least two values"),
        (["audit", "compas.csv", "--merge-groups", "Martian=x"], "--merge-groups: must name a gr"),
        (["audit", "compas.csv", "--merge-groups", "Caucasian"], "must be names of groups, = and"),
        (
            ["audit", "compas.csv", *["--merge-groups", "Caucasian=x"] * 2],
            "must not put a group into two others",
        ),
        (["recalibrate", "compas.csv", "--method", "magic"], "magic"),
        (["recalibrate", "compas.csv", "--shrinkage", "-1"], "shrinkage: must be"),
        (["fit", "compas.csv", "--method", "magic"], "magic"),
        (["apply", "compas.csv", "compas.csv", "-o", "x.csv"], "rule file: must be JSON text"),
        (["audit"], "Missing argument"),
        (["nonsense"], "No such command"),
    ],
)
def test_bad_usage_and_bad_data_are_exit_code_2(folder, arguments, message):
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_debug_shows_the_traceback(folder):
    done = run("audit", "no.csv", "--debug", cwd=folder)
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "FileError" in done.stderr


@pytest.fixture
def off(tmp_path):
    """Three groups; the scores of b are too high by .068."""
    random = np.random.default_rng(0)
    lines = ["id,score,label,group"]
    for group, (a, b) in {"a": (2, 2), "b": (2, 3), "c": (2, 2.5)}.items():
        chance = random.beta(a, b, 4000)
        score = np.clip(chance + 0.068 * (group == "b"), 0.0, 1.0)
        label = (random.random(4000) < chance).astype(int)
        lines += [
            f"{group}{i},{h},{y},{group}" for i, (h, y) in enumerate(zip(score, label, strict=True))
        ]
    (tmp_path / "off.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_recalibrate(off):
    done = run("recalibrate", "off.csv", "--method", "beta", "-o", "rule.json", cwd=off)
    assert (done.returncode, done.stderr) == (0, "")
    line = next(line.split() for line in done.stdout.splitlines() if line.startswith("b "))
    before, after = float(line[4]), float(line[5])
    assert before > 0.06
    assert after < 0.02
    assert "not of others." in done.stdout
    rule = ic.Rule.load(off / "rule.json")
    assert (rule.method, rule.settings["method"]) == ("recalibrate", "beta")
    assert run("apply", "rule.json", "off.csv", "-o", "new.csv", cwd=off).returncode == 0
    done = run("audit", "new.csv", "--score", "repaired_score", "--json", cwd=off)
    assert json.loads(done.stdout)["verdict"]["reason"] != "uncalibrated"
    few = run("recalibrate", "off.csv", "--drop-group", "b", "--drop-group", "c", cwd=off)
    assert json.loads(few.stdout)["method"] == "recalibrate"


def test_recalibrating_a_few_people_is_warned_of(tmp_path):
    rows = [f"{i / 40},{i % 3 == 0:d},{'ab'[i % 2]}" for i in range(40)]
    (tmp_path / "few.csv").write_text("\n".join(["score,label,group", *rows]) + "\n")
    done = run("recalibrate", "few.csv", "-o", "rule.json", cwd=tmp_path)
    assert done.returncode == 0
    assert "warning: There are few people of a, b" in done.stderr
    assert ic.Rule.load(tmp_path / "rule.json").notes[0].startswith("There are few people of a, b")


def test_fit_refuses_what_is_not_calibrated_and_recalibrates_it(off):
    plain = run("fit", "off.csv", "-o", "rule.json", cwd=off)
    assert plain.returncode == 1
    assert "in the same rule: --recalibrate isotonic" in plain.stderr
    assert not (off / "rule.json").exists()
    both = run("fit", "off.csv", "--recalibrate", "isotonic", *FEW, "-o", "rule.json", cwd=off)
    assert (both.returncode, both.stderr) == (0, "")
    assert re.search(r"costs differ by +0\.\d{4} +0\.0000", both.stdout)
    assert "rows, not listed here" in both.stdout
    command = ["apply", "rule.json", "off.csv", "--id", "id", "-o", "new.csv"]
    assert run(*command, cwd=off).returncode == 0
    rule, tally = ic.Rule.load(off / "rule.json"), ic.tally(off / "off.csv")
    assert rule.method == "recalibrate+withhold"
    assert rule.remake(tally).rows == rule.rows
    applied = ic.audit(ic.tally(off / "new.csv", "repaired_score"), replicates=0, warn=False)
    expected = ic.audit(rule.expected(tally), replicates=0, warn=False)
    for group in "abc":
        assert applied.groups[group].cost == pytest.approx(expected.groups[group].cost, abs=0.02)
    query = run("sql", "rule.json", "--id", "id", "--dialect", "postgres", cwd=off)
    assert query.stdout.count("\nFROM ") == 1
    watched = ["tally", "new.csv", "--score", "repaired_score", "-o", "day.json"]
    assert run(*watched, cwd=off).returncode == 0
    assert run("watch", "rule.json", "day.json", "--tolerance", 0.05, cwd=off).returncode == 0


def test_merged_groups_are_one_in_the_audit_and_several_in_the_rule(off):
    done = run("audit", "off.csv", "--merge-groups", "b,c=rest", "--json", cwd=off)
    audited = json.loads(done.stdout)
    assert [group for group, _ in audited["groups"]] == ["a", "rest"]
    command = ["fit", "off.csv", "--merge-groups", "b,c=rest", "--recalibrate", "isotonic"]
    assert run(*command, *FEW, "-o", "rule.json", cwd=off).returncode == 0
    rule = ic.Rule.load(off / "rule.json")
    assert rule.groups == ("a", "b", "c")
    assert {(r.lo, r.hi, r.value) for r in rule.rows if r.group == "b"} == {
        (r.lo, r.hi, r.value) for r in rule.rows if r.group == "c"
    }
    command = ["apply", "rule.json", "off.csv", "--id", "id", "-o", "new.csv"]
    assert run(*command, cwd=off).returncode == 0
    into = run("audit", "off.csv", "--merge-groups", "c=b", "--drop-group", "b", cwd=off)
    assert "must have at least two values" in into.stderr


def test_names_with_commas_can_be_merged(folder):
    columns = ["--group", "group", "--group", "decile"]
    deciles = ",".join(f"Caucasian, {i}" for i in range(1, 11))
    done = run("tally", "compas.csv", *columns, "--merge-groups", f"{deciles}=others", cwd=folder)
    groups = json.loads(done.stdout)["groups"]
    assert "others" in groups
    assert len(groups) == 11


def test_demo_tells_the_story(tmp_path):
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    assert "No repair can close this gap" in said
    assert "accept a difference of 5.39 points" in said
    rates = r"^FPR or FNR differ by +0\.2197 +0\.5528 +0\.0606 +0\.0000$"
    assert re.search(rates, done.stdout, re.MULTILINE)
    assert "The report is in report.html" in done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) <= 29, "make prints a line of its own"
    assert max(map(len, lines)) <= 80


def test_demo_writes_its_data(tmp_path):
    done = run("demo", "--data", cwd=tmp_path)
    assert done.stdout == "6,150 rows are in data.csv. Next: isocost audit data.csv --cost fpr\n"
    assert ic.tally(str(tmp_path / "data.csv")) == compas()
    (tmp_path / "data.csv").write_text("precious")
    assert run("demo", "--data", cwd=tmp_path).returncode == 2
    assert (tmp_path / "data.csv").read_text() == "precious"
    assert run("demo", "--data", "--force", cwd=tmp_path).returncode == 0
    assert ic.tally(str(tmp_path / "data.csv")) == compas()


def shell(script, cwd):
    """Run a script in which $ISOCOST is the command; the exit code is that of the first process."""
    command = ["bash", "-c", f"{script}; exit ${{PIPESTATUS[0]}}"]
    env = {**os.environ, "ISOCOST": ISOCOST}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, env=env)


PRINTING = ["audit compas.csv --cost fpr --plot", "audit compas.csv --json", "tally compas.csv"]
PRINTING += ["--help"]


@pytest.mark.parametrize("command", PRINTING)
def test_output_that_nobody_takes(folder, command):
    for reader in ("true", "head -1 > /dev/null"):
        done = shell(f"$ISOCOST {command} | {reader}", folder)
        assert (done.returncode, done.stderr) == (0, "")
    for lost, why in (("> /dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
        done = shell(f"$ISOCOST {command} {lost}", folder)
        assert done.returncode == 2
        assert done.stderr.startswith(f"isocost: standard output: must be writable\n  got:  {why}")
        assert done.stderr.count("\n") == 3
    for lost in ("2> /dev/full", "2>&-"):
        done = shell(f"$ISOCOST {command} {lost}", folder)
        assert done.returncode == 0
        assert done.stdout


def test_lost_output_does_not_change_the_verdict(folder):
    script = "$ISOCOST audit compas.csv --cost fpr --json --fail-above 0.01"
    for lost in ("| true", "> /dev/full"):
        assert shell(f"{script} {lost}", folder).returncode == 1
    assert shell("$ISOCOST audit no.csv 2> /dev/full", folder).returncode == 2


def test_standard_input_that_cannot_be_read(folder):
    closed = shell("$ISOCOST audit - <&-", folder)
    assert closed.returncode == 2
    assert "standard input: must contain CSV" in closed.stderr
    # As on a full disk: no file may be larger than this.
    full = shell("ulimit -f 4; $ISOCOST audit - < compas.csv", folder)
    assert full.returncode == 2
    assert "standard input: must be readable, and fit into the temporary folder" in full.stderr


def test_pipes_and_devices_are_neither_waited_for_nor_replaced(folder, tmp_path):
    ic.withhold(compas(), "fpr", 0.06).save(tmp_path / "r.json")
    for name in ("pipe", "pipe.csv", "pipe.json"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "to-device.csv").symlink_to("/dev/null")
    data, before = folder / "compas.csv", sorted(tmp_path.iterdir())
    for arguments in (
        ["audit", "pipe.csv"],
        ["audit", "pipe.json"],
        ["audit", "*.csv"],
        ["apply", "pipe", data, "-o", "o.csv"],
        ["compare", data, "pipe.json"],
        ["sql", "pipe"],
        ["apply", "r.json", data, "--id", "id", "-o", "to-device.csv", "--force"],
        ["apply", "r.json", data, "--id", "id", "-o", "pipe.csv", "--force"],
        ["fit", data, "--cost", "fpr", "--tolerance", 0.06, "-o", "pipe", "--force"],
        ["tally", data, "-o", "pipe.json", "--force"],
        ["sql", "r.json", "-o", "pipe", "--force"],
        ["report", data, "-o", "pipe", "--force"],
        ["demo", "-o", "pipe"],
    ):
        done = run(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert "must be a regular file\n  got:  " in done.stderr
        assert "\n  next: " in done.stderr
    assert sorted(tmp_path.iterdir()) == before
    assert all((tmp_path / name).is_fifo() for name in ("pipe", "pipe.csv", "pipe.json"))


def test_letters_that_the_terminal_cannot_write(tmp_path):
    (tmp_path / "d.csv").write_text("score,label,group\n0.1,0,é\n0.9,1,é\n0.2,0,b\n0.7,1,b\n")
    done = shell("PYTHONIOENCODING=ascii $ISOCOST audit d.csv", tmp_path)
    assert done.returncode == 0
    assert "\\xe9" in done.stdout


def test_ctrl_c_while_modules_are_loaded_is_quiet(tmp_path):
    # A module that takes long to load, and says when that begins.
    (tmp_path / "typer.py").write_text(
        "import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(60)\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    job = subprocess.Popen(
        [ISOCOST, "audit", "data.csv"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "loading").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    job.send_signal(signal.SIGINT)
    _, errors = job.communicate(timeout=60)
    assert (job.returncode, errors) == (130, "")


def test_bounds_say_what_cannot_both_be_equal(folder):
    done = run("bounds", folder / "compas.csv", "--cost", "fpr")
    assert done.returncode == 0, done.stderr
    assert "fpr and fnr           impossible                   0.0886" in done.stdout
    assert "at least 1.307" in done.stdout
    found = json.loads(run("bounds", folder / "compas.csv", "--json").stdout)
    assert found["format"] == "isocost-bounds"
    assert len(found["pairs"]) == 3
    assert found["ratio"]["lower"] == "Caucasian"
