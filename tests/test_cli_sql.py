"""isocost sql: the queries of the library, from the command line."""

from dataclasses import replace

import duckdb
import pytest

import isocost as ic
from isocost.cli.app import main
from isocost.rules import Row

RULE = ic.Rule(
    ("a", "b"),
    (Row("a", 0.0, 1.0, "set", 0.25, 0.5),),
    "by hand",
    made_from={"reading": {"columns": {"score": "s", "group": ["g"]}}},
)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    RULE.save("rule.json")

    def call(*arguments):
        with pytest.raises(SystemExit) as leave:
            main(["sql", *arguments])
        printed = capsys.readouterr()
        return leave.value.code, printed.out, printed.err

    return call


def test_columns_come_from_the_rule(run):
    code, out, _ = run("rule.json", "--dialect", "bigquery", "--table", "lake.t", "--id", "who")
    assert code == 0
    assert out == RULE.to_sql("bigquery", "lake.t", score="s", group="g", id="who")
    assert "AS `repaired_s`" in out
    stored = {"reading": {"columns": {**RULE.reading.columns, "id": "who"}}}
    replace(RULE, made_from=stored).save("stored.json")
    assert run("stored.json", "--dialect", "bigquery", "--table", "lake.t")[1] == out


def test_a_rule_with_a_coin_asks_for_the_id(run):
    code, _, err = run("rule.json")
    assert code == 2
    assert "id: must be given, because this rule throws a coin" in err
    assert "next: name the column that says who a row is about with --id" in err


def test_a_column_is_replaced_only_if_it_is_kept(run):
    """A query does not see the table, so two columns would have the name."""
    said = " ".join(run("--help")[1].split())
    assert "in place of the score or of one that --keep lists" in said
    options = ("rule.json", "--id", "id", "--output-column", "old")
    kept = run(*options, "--keep", "id", "--keep", "old")[1]
    assert kept.count('"old"') == 1
    assert "*" in run(*options)[1].rsplit("SELECT", 1)[1]


def test_options_reach_the_query(run):
    options = ["--score", "x", "--group", "y", "--id", "z", "--output-column", "new"]
    options += ["--changed", "c", "--keep", "z", "--unknown", "keep", "--missing-group", "a"]
    code, out, _ = run("rule.json", *options)
    assert code == 0
    assert out == RULE.to_sql(
        score="x", group="y", id="z", output="new", changed="c", columns=["z"],
        unknown="keep", missing_group="a",)  # fmt: skip


def test_a_file_is_written_whole_and_not_twice(run, tmp_path):
    code, out, _ = run("rule.json", "--id", "id", "-o", "q.sql")
    assert (code, out) == (0, "The query is in q.sql.\n")
    assert (tmp_path / "q.sql").read_text() == RULE.to_sql(score="s", group="g", id="id")
    code, _, err = run("rule.json", "--id", "id", "-o", "q.sql")
    assert code == 2
    assert "output: must not exist yet" in err
    assert run("rule.json", "--id", "id", "-o", "q.sql", "--force")[0] == 0


def test_the_tally(run):
    options = ["--weight", "w", "--edge", "0.123", "--positive", "yes", "--label", "y"]
    code, out, _ = run("--tally", "--table", "t", "--dialect", "duckdb", *options)
    assert code == 0
    assert out == ic.tally_sql(
        table="t", group=["group"], label="y", weight="w", edges=(0.123,), positive="yes"
    )
    with duckdb.connect() as database:
        database.execute("CREATE TABLE t AS SELECT 0.5 score, 'yes' y, 'a' \"group\", 2.0 w")
        assert ic.tally_from_cells(database.execute(out).fetchall()).n == 1


@pytest.mark.parametrize("arguments", [[], ["rule.json", "--tally"]])
def test_one_of_the_two(run, arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert "sql: must be given a rule or --tally" in err


def test_an_unknown_dialect(run):
    code, _, err = run("rule.json", "--dialect", "oracle")
    assert code == 2
    assert "dialect: must be one of duckdb, postgres" in err
