"""isocost tally, and tallies instead of data: in a real process, against the data themselves."""

import json

import pandas as pd
import pytest

import isocost as ic
from isocost.cli.options import Columns
from isocost.cli.reading import check_alike, read
from isocost.examples import compas_rows
from isocost.rules import Row
from tests import processes

ROWS = pd.DataFrame(compas_rows())
USUAL = Columns("score", "label", ["group"])


def run(*arguments, cwd):
    done = processes.run(*arguments, cwd=cwd)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tallies")
    ROWS.to_csv(folder / "all.csv", index=False)
    ROWS[::2].to_csv(folder / "even.csv", index=False)
    ROWS[1::2].to_parquet(folder / "odd.parquet")
    ic.tally(ROWS[::2]).save(folder / "day1.json")
    ic.tally(ROWS[1::2]).save(folder / "day2.json")
    return folder


def test_a_tally_is_written_and_says_what_is_in_it(folder, tmp_path):
    out = tmp_path / "t.json"
    done = run("tally", "even.csv", "odd.parquet", "-o", out, "--edge", 0.33, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Tally of 6,150 rows in 2 groups; 1024 bins, edges 0.33" in done.stdout
    assert ic.Tally.load(out) == ic.tally(ROWS, edges=(0.33,))
    assert run("tally", "even.csv", "-o", out, cwd=folder).returncode == 2
    printed = run("tally", "day1.json", "day2.json", cwd=folder)
    assert ic.Tally.from_json(printed.stdout) == ic.tally(ROWS)


def test_days_tallied_apart_are_audited_together(folder):
    together = run("audit", "all.csv", cwd=folder)
    apart = run("audit", "day1.json", "day2.json", cwd=folder)
    assert apart.returncode == 0, apart.stderr
    # Only the commands at the end differ, which name the files; and with them the ends of lines.
    said = " ".join(apart.stdout.split())
    assert said.count("fit day1.json day2.json") == 2
    assert said.replace("day1.json day2.json", "all.csv") == " ".join(together.stdout.split())
    globbed = run("audit", "day*.json", "--fail-above", 0.01, cwd=folder)
    assert globbed.returncode == 1


def test_reading_in_any_mixture(folder, monkeypatch):
    monkeypatch.chdir(folder)
    wanted = ic.tally(ROWS)
    for names in (["day1.json", "odd.parquet"], ["even.csv", "day2.json"], ["day*.json"]):
        assert read(names, USUAL, (0.5,)) == wanted
    assert read("all.csv", USUAL, (0.33,)).edges == (0.33,)
    # The tally knows its bins, and the data follow.
    ic.tally(ROWS[::2], bins=100, edges=(0.33,)).save(folder / "coarse.json")
    assert read(["coarse.json", "odd.parquet"], USUAL, (0.5,)) == ic.tally(
        ROWS, bins=100, edges=(0.33,)
    )
    dropped = Columns("score", "label", ["group"], drop_group=["Caucasian"])
    assert read(["day1.json"], dropped, ()).groups == ("African-American",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group": ["sex"]}, "--group: must be left out, or be what the tallies were made with"),
        ({"score": "risk"}, "'risk', and the tallies have 'score'"),
        ({"weight": "w"}, "'w', and the tallies have None"),
        ({"bins": 100}, "--bins: must be left out"),
        ({"positive": "yes"}, "--positive: must be left out"),
        ({"missing_group": "?"}, "--missing-group: must be left out"),
        ({"threads": 0}, "threads: must be a whole number from 1 to 4096"),
    ],
)
def test_options_that_would_say_nothing(folder, options, message):
    columns = {"score": "score", "label": "label", "group": ["group"], **options}
    with pytest.raises(ic.UsageError) as error:
        read([str(folder / "day1.json")], Columns(**columns), ())
    assert message in str(error.value)


def test_tallies_that_do_not_fit_together():
    first = ic.tally(ROWS)
    others = {
        "edges": ic.tally(ROWS, edges=(0.33,)),
        "bins": ic.tally(ROWS, bins=100),
        "group": ic.tally(ROWS, group="decile"),
        "score": ic.tally(ROWS.rename(columns={"score": "risk"}), score="risk"),
        "weight": ic.tally(ROWS.assign(w=1.0), weight="w"),
    }
    for what, other in others.items():
        with pytest.raises(ic.UsageError) as error:
            check_alike([("one.json", first), ("two.json", other)])
        assert f"one.json and two.json: must have the same {what} to be added" in str(error.value)
    arrays = ic.tally(**{name: ROWS[name].to_numpy() for name in ("score", "label", "group")})
    check_alike([("one.json", first), ("two.json", arrays)])


def test_json_that_is_no_tally(folder, tmp_path):
    ic.Rule(groups=("a",), rows=(Row("a", 0.0, 1.0, "set", 0.5, 1.0),), method="t").save(
        tmp_path / "rule.json"
    )
    (tmp_path / "other.json").write_text('{"format": "isocost-audit"}')
    (tmp_path / "rows.json").write_text('[{"score": 0.1}]')
    content = ic.tally(ROWS).to_dict()
    content["cells"]["n"][0] = -1
    (tmp_path / "broken.json").write_text(json.dumps(content))
    for name, message in (
        ("rule.json", "must be a tally, because it ends in .json\n  got:  a rule"),
        ("other.json", "got:  something else, format 'isocost-audit'"),
        ("rows.json", "data as JSON lines must end in .jsonl"),
        ("broken.json", "broken.json: must be what Tally.save writes"),
        ("no.json", "must be readable"),
        ("no*.json", "must exist"),
    ):
        with pytest.raises(ic.IsocostError) as error:
            read(str(tmp_path / name), USUAL, ())
        assert message in str(error.value)
    done = run("audit", folder / "day1.json", tmp_path / "rule.json", cwd=folder)
    assert done.returncode == 2
    assert "got:  a rule" in done.stderr


def test_limits_on_the_command_line(folder, tmp_path):
    limits = ("--memory-limit", "256MB", "--threads", "1")
    assert run("tally", "all.csv", *limits, "-o", tmp_path / "t.json", cwd=folder).returncode == 0
    bad = run("audit", "all.csv", "--memory-limit", "lots", cwd=folder)
    assert bad.returncode == 2
    assert "memory_limit: must be a number with a unit" in bad.stderr


@pytest.mark.parametrize(
    "files",
    [("day1.json", "./day1.json"), ("all.csv", "day2.json", "all.csv"), ("day*.json", "day2.json")],
)
def test_nobody_is_counted_twice(folder, files):
    done = run("audit", *files, cwd=folder)
    assert done.returncode == 2
    assert "files: must each be given once" in done.stderr
    assert f"got:  {files[-1]} again" in done.stderr
    assert "next: name each file once" in done.stderr
