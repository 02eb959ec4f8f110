"""What the page lets one copy: it works where it is pasted, and agrees with the page."""

import json
import shlex
from dataclasses import replace

import pytest

import isocost as ic
from isocost.examples import compas, compas_rows
from tests.browser.test_page import copied, settled
from tests.test_report import ran


@pytest.fixture
def asked(reading, tmp_path, monkeypatch):
    """A page of a file that takes options to be read, and the folder it lies in."""
    rows = compas_rows()
    known = {"African-American": "a", "Caucasian": ""}
    lines = [
        f"{s},{'yes' if y else 'no'},{known[g]}"
        for s, y, g in zip(rows["score"], rows["label"], rows["group"], strict=True)
    ]
    few = [f"0.{place},{'yes' if place % 2 else 'no'},few" for place in range(1, 9)]
    tiny = [line.replace("few", "tiny") for line in few[:5]]
    text = "\n".join(["score,label,group", *lines, *few, *tiny])
    (tmp_path / "it's mine.csv").write_text(text)
    monkeypatch.chdir(tmp_path)
    given = ("--positive=yes", "--missing-group=not told", "--drop-group=few", "--cost=fpr")
    path = tmp_path / "it's mine.csv"
    assert ran("report", str(path), *given, "--replicates=200", "-o", "r.html") == 0
    return reading(tmp_path / "r.html")


def test_the_command_line_works_where_it_is_pasted(asked, tmp_path, capsys):
    settled(asked, {"tolerance": 0.06})
    rule = ic.Rule.from_json(copied(asked, "#copy-rule"))
    line = copied(asked, "#copy-command")
    assert "It reads it's mine.csv: put the path there" in asked.inner_text("#told")
    program, *arguments = shlex.split(line)
    assert program == "isocost"
    assert ran(*arguments) == 0, capsys.readouterr().err
    made = ic.Rule.load(tmp_path / "rule.json")
    assert made.groups == rule.groups == ("a", "not told", "tiny")
    assert made.fitted == rule.fitted == ("a", "not told")
    assert made.rows[0].probability == pytest.approx(rule.rows[0].probability, abs=1e-9)
    # Both say of the group that is too small to compare what every rule says of it.
    assert set(rule.notes) <= set(made.notes)
    assert any("tiny (too few)" in note for note in rule.notes)
    assert rule.made_from == made.made_from
    rows = {"score": [0.3, 0.3], "group": ["tiny", "a"], "id": [1, 2]}
    assert rule.apply(rows, id="id")["repaired_score"][0] == 0.3
    settled(asked, {"method": "reconcile"})
    given = ic.Rule.from_json(copied(asked, "#copy-rule"))
    assert (given.groups, given.fitted, given.notes[-1:]) == (rule.groups, rule.fitted, rule.notes)


def test_a_rule_that_was_supplied_is_copied_as_it_is(reading, tmp_path):
    tally = compas()
    rule = ic.withhold(tally, "fpr", 0.07)
    more = replace(rule, groups=(*rule.groups, "elsewhere"), fitted=rule.fitted)
    path = ic.report(ic.audit(tally, "fpr", replicates=0), {"mine": more}, tmp_path / "r.html")
    assert copied(reading(path), "#copy-rule") == f"{more.to_json()}\n"


def test_on_windows_commands_are_quoted_for_cmd(asked, reading):
    how = asked.text_content("section:has(#next-title) .advice")
    assert "'it'\\''s mine.csv' --positive=yes --missing-group='not told'" in how
    windows = (
        "Object.defineProperty(navigator, 'platform', { get: () => 'Win32' });"
        "Object.defineProperty(navigator, 'userAgentData', { get: () => undefined });"
    )
    page = reading(asked.url, windows)
    wanted = '"it\'s mine.csv" --positive=yes --missing-group="not told" --drop-group=few'
    assert wanted in page.text_content("section:has(#next-title) .advice")
    assert wanted in copied(page, "#copy-command")


def test_a_repair_that_is_not_possible_is_said_to_be_left_out(asked, capsys):
    line = copied(asked, "#copy-command")
    assert line.startswith("isocost audit ")
    assert "not possible here, so this is the command of the audit" in asked.inner_text("#told")
    assert ran(*shlex.split(line)[1:]) == 0, capsys.readouterr().err
    settled(asked, {"method": "none"})
    copied(asked, "#copy-command")
    assert "not possible" not in asked.inner_text("#told")


def test_reconcile_away_from_its_thresholds_speaks_of_its_own(visit):
    page = visit("compas", hash="#method=reconcile")
    settled(page, {"threshold": 0.59375})
    rule = json.loads(copied(page, "#copy-rule"))
    assert rule["settings"]["threshold"] == 0.6
    assert "--threshold=0.6 " in copied(page, "#copy-command")
    row = page.inner_text("#repairs tr[data-repair=reconcile]")
    assert row.startswith("Reconcile at 0.6")
    assert page.evaluate("isocost.results.chosen.odds") == pytest.approx(0, abs=1e-9)
    settled(page, {"threshold": 0.5})
    assert page.inner_text("#repairs tr[data-repair=reconcile] bdi >> nth=0") == "Reconcile"
