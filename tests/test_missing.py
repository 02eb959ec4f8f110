"""Rows with missing values, dropped on request: every function and command takes it and says so."""

import html

import numpy as np
import pandas as pd
import pytest

import isocost as ic
from isocost.page.report import report_html
from isocost.plots import PlaneDisplay
from isocost.verdict.wording import commands
from tests import processes


def test_row_numbers_of_other_problems_are_those_of_the_data():
    data = {"score": [None, 0.5, None, 7.0], "label": [0, 1, 0, 1], "group": list("abab")}
    with pytest.raises(ic.DataError, match=r"7\.0 in row 3"):
        ic.tally(data, drop_missing=True)


@pytest.fixture(scope="module")
def people():
    """Two groups, and a tenth of the rows without a score or a label."""
    rng = np.random.default_rng(3)
    score = rng.beta(2, 3, 2000)
    data = pd.DataFrame({"score": score, "label": (rng.random(2000) < score).astype(float)})
    data["group"] = np.where(rng.random(2000) < 0.5, "a", "b")
    data.loc[:99, "score"] = np.nan
    data.loc[50:199, "label"] = np.nan
    return data


SAID = "Rows with missing values were dropped: 200 in all, 100 without 'score' and 150 without"


def test_every_function_takes_it_and_an_audit_says_it(people):
    audit = ic.audit(people, drop_missing=True)
    assert SAID in " ".join(str(audit).split())
    reading = audit.to_dict()["reading"]
    assert (reading["dropped_rows"], reading["missing_values"]) == (
        200, {"score": 100, "label": 150},
    )  # fmt: skip
    assert ic.plan(people, drop_missing=True).groups
    assert ic.equalize_odds(people, drop_missing=True).reading.dropped_rows == 200
    assert ic.recalibrate(people, drop_missing=True).reading.drop_missing
    assert len(PlaneDisplay.from_tally(people, drop_missing=True).groups) == 2
    assert SAID in html.unescape(report_html(people, drop_missing=True))


@pytest.mark.parametrize(
    "command",
    ["audit", "plan", "bounds", "tally", "compare", "recalibrate", "fit", "report"],
)
def test_every_command_that_counts_takes_it(people, tmp_path, command):
    people.to_csv(tmp_path / "d.csv", index=False)
    refused = processes.run(command, "d.csv", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--drop-missing drops them" in refused.stderr
    more = {"fit": ["--anyway", "--method", "odds", "--remakes", "10"]}.get(command, [])
    more += ["--remakes", "10"] if command == "compare" else []
    done = processes.run(command, "d.csv", "--drop-missing", *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert SAID in done.stderr
    if command == "audit":
        assert SAID in " ".join(done.stdout.split())
    if command == "report":
        assert SAID in html.unescape((tmp_path / "report.html").read_text())


def test_look_offers_it(people, tmp_path):
    people.to_csv(tmp_path / "d.csv", index=False)
    looked = ic.look(tmp_path / "d.csv")
    assert looked.command.endswith("--drop-missing")
    assert "--drop-missing leaves out the rows that have no score or label." in str(looked)


def test_tallies_with_unknown_people_add_up_and_can_be_saved(people):
    kept = people.dropna(subset="score").copy()
    kept.loc[kept.index[::7], "group"] = None
    options = {"missing_label": "keep", "missing_group": "keep"}
    whole = ic.tally(kept, **options)
    halves = [ic.tally(part, **options) for part in (kept[:900], kept[900:])]
    assert sum(halves) == whole
    assert sum(halves).reading == whole.reading
    assert ic.Tally.from_json(whole.to_json()) == whole
    assert whole.n + whole.unknown.cells.n.sum() == len(kept)
    assert whole.unknown.groups == ("a", "b", None)
    assert whole.known == ic.tally(kept.dropna())
    assert whole != whole.known
    # A group takes its people without a label along; the people without a group stay.
    assert whole.drop(["b"]).unknown.groups == ("a", None)
    one = whole.relabel({"b": "a"})
    assert one.unknown.groups == ("a", None)
    assert one.unknown.cells.n.sum() == whole.unknown.cells.n.sum()


def a_cell(label):
    return {"group": [0], "label": [label], "bin": [3], "n": [1], "wh": [0.003], "wh2": [9e-6]}


@pytest.mark.parametrize(
    ("change", "got"),
    [
        ({"groups": ["a", None, None]}, "listed twice"),
        ({"groups": "a"}, "not groups and cells"),
        ({"groups": [[[]]]}, "of a group that is none"),
        ({"more": 1}, "unknown field of unknown people 'more'"),
        ({"cells": a_cell(label=1)}, "who have a label and a group"),
        ({"cells": a_cell(label=3)}, "a label in the cells that is not a whole number below 3"),
    ],
)
def test_files_with_impossible_unknown_people_are_refused(change, got):
    data = {"score": [0.2, 0.7, 0.4], "label": [0, 1, None], "group": ["a", "b", "a"]}
    content = ic.tally(data, missing_label="keep").to_dict()
    with pytest.raises(ic.DataError, match=got):
        ic.Tally.from_dict({**content, "unknown": {**content["unknown"], **change}})


def test_an_audit_counts_the_unknown_people_and_repairs_refuse_them(people):
    tally = ic.tally(people.dropna(subset="score"), missing_label="keep")
    said = "Rows whose outcome or group is unknown were left out: 100 in all, 100 without 'label'."
    audit = ic.audit(tally)
    assert said in " ".join(str(audit).split())
    assert said in html.unescape(report_html(tally))
    assert audit.groups["a"].cost == ic.audit(tally.known).groups["a"].cost
    rule = ic.equalize_odds(tally.known)
    for refuse in (ic.withhold, ic.compare, ic.plan, ic.recalibrate, rule.expected):
        with pytest.raises(ic.UsageError, match=r'100 people .*\n.*missing_label="drop"'):
            refuse(tally)


def test_nobody_known_is_an_error(tmp_path):
    data = {"score": [0.2, 0.7], "label": [0, None], "group": [None, "a"]}
    with pytest.raises(ic.DataError, match="2 rows, all dropped or unknown"):
        ic.tally(data, missing_label="keep", missing_group="keep")
    with pytest.raises(ic.UsageError, match="must be known, dropped or named"):
        ic.tally(data, missing_group="keep", handed_over=True)


def test_commands_keep_unknown_people(people, tmp_path):
    people.dropna(subset="score").to_csv(tmp_path / "d.csv", index=False)
    done = processes.run("audit", "d.csv", "--missing-label", "keep", cwd=tmp_path)
    assert "100 in all, 100 without 'label'" in " ".join(done.stdout.split())
    refused = processes.run("fit", "d.csv", "--missing-label=keep", "-o", "r.json", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--missing-label drop" in refused.stderr
    reading = ic.tally(tmp_path / "d.csv", missing_label="keep").reading
    assert reading.options() == ["--missing-label=keep"]
    # A saved tally has them too, and the way out that the refusal names works.
    counted = ["tally", "d.csv", "--missing-label=keep", "-o", "t.json"]
    assert "left out" not in processes.run(*counted, cwd=tmp_path).stderr
    refused = processes.run("bounds", "t.json", cwd=tmp_path)
    assert (refused.returncode, "--missing-label drop" in refused.stderr) == (2, True)
    whole = processes.run("bounds", "t.json", "--missing-label", "drop", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr


def test_a_rule_never_drops_a_row():
    rule = ic.Rule(("a", "b"), (), "none")
    with pytest.raises(ic.UsageError, match="no row is dropped where a rule is applied"):
        rule.apply({"score": [0.5], "group": ["a"]}, missing_group="drop")


def test_commands_that_are_advised_accept_the_people(people, tmp_path):
    people.dropna(subset="score").to_csv(tmp_path / "d.csv", index=False)
    tally = ic.tally(tmp_path / "d.csv", missing_label="keep")
    advised = commands(ic.audit(tally), ["d.csv"])
    assert all("--missing-label=drop" in command.words for command in advised.values())
    followed = processes.run(*advised["plan"].words[1:], cwd=tmp_path)
    assert followed.returncode == 0, followed.stderr
    assert commands(ic.audit(tally))["odds"] == "ic.equalize_odds(tally.known)"
    assert tally.reading.command("report", ["d.csv"]).words[3] == "--missing-label=keep"
