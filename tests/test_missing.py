"""Rows with missing values, dropped on request: every function and command takes it and says so."""

import html

import numpy as np
import pandas as pd
import pytest

import isocost as ic
from isocost.page.report import report_html
from isocost.plots import PlaneDisplay
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
