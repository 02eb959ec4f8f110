"""Rules and tallies as SQL: run on DuckDB, parsed back everywhere, safe whatever the names are."""

import json
from dataclasses import replace
from decimal import Decimal

import duckdb
import jinja2
import pandas as pd
import polars as pl
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

import isocost as ic
from isocost.engines.dialects import DIALECTS, dialect_named
from isocost.engines.sql import cell_columns, dbt_macro
from isocost.rules import Row
from tests import warehouse

RULE = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.25, 0.5),), "by hand")


@pytest.fixture(scope="module")
def database():
    with duckdb.connect() as connection:
        connection.register("people", pd.DataFrame(warehouse.people()))
        yield connection


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_its_row_of_the_table_and_its_name_changes_nothing(name):
    odd = "it's \\ $\n"
    rule = ic.Rule((("a", odd), ("b", odd)), (Row(("a", odd), 0.0, 1.0, "set", 0.25, 0.5),), "test")
    columns = {"score": "group", "group": ["g", 'a"b`\\c']}
    dialect, other = DIALECTS[name], replace(DIALECTS[name], name="other")
    assert rule.to_sql(other, id="id", **columns) == rule.to_sql(dialect, id="id", **columns)
    assert ic.tally_sql(other, **columns, positive=odd) == ic.tally_sql(
        dialect, **columns, positive=odd
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_queries_are_parsed_back_with_every_value(dialect):
    rule = warehouse.custom()
    for options in ({}, {"changed": "moved"}, {"columns": ["id", "score"], "output": "score"}):
        query = rule.to_sql(dialect, "lake.people", id="id", **options)
        (tree,) = sqlglot.parse(query, read=dialect)
        assert isinstance(tree, exp.Select)
        texts = {text.replace("\\u0024", "$") for text in literals(tree)}
        # What is written with CHR(10) or CHR(92) is in parts; the databases themselves join them.
        split = "\n\\" if dialect == "redshift" else "\n" * (DIALECTS[dialect].strings == "plain")
        whole = {group for group in rule.groups if not set(split) & set(group)}
        assert whole <= texts
        assert dialect == "redshift" or "it's\\:" in texts


def literals(tree):
    return {
        node.this
        for node in tree.find_all(exp.Literal, exp.ByteString)
        if isinstance(node, exp.ByteString) or node.is_string
    }


EVIL = "x`\"]'; drop table y; -- \\"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_statement_whatever_the_names_are(dialect):
    names = {"score": EVIL, "group": EVIL + "g", "id": EVIL + "i", "output": EVIL + "o"}
    query = RULE.to_sql(dialect, ("lake", EVIL), **names)
    (tree,) = sqlglot.parse(query, read=dialect)
    assert tree.find(exp.Drop) is None
    assert set(names.values()) <= {node.name for node in tree.find_all(exp.Identifier)}


ODD = ("a\nb", "a\tb", "it's", 'say "x"', "x; y", "x -- y", "x /* y */ z", "\n  x", "a\r\nb")
"""Names that a layout must leave as they are."""


@pytest.mark.parametrize("odd", [*ODD, EVIL])
def test_odd_names_groups_and_salts_run_on_duckdb(database, odd):
    names = {"score": odd, "group": f"{odd}g", "id": f"{odd}i"}
    data = {odd: [0.25, 0.5, 0.75, 1.0], f"{odd}g": [odd, "b", odd, odd], f"{odd}i": [1, 2, 3, 4]}
    # Two intervals and two outcomes make cases inside cases.
    parts = [(0.0, 0.5, "set", 0.125, 0.5), (0.0, 0.5, "mirror", None, 0.25)]
    parts += [(0.5, 1.0, "set", 0.875, 0.5)]
    rule = ic.Rule((odd, "b"), tuple(Row(odd, *part) for part in parts), "test", salt=odd)
    wanted = rule.apply(data, output=f"{odd}o", changed=f"{odd}c", **names)
    database.register("plain", pd.DataFrame(data))
    table = DIALECTS["duckdb"].name_of(f"{odd} t")
    database.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM plain")
    options = {"output": f"{odd}o", "changed": f"{odd}c", **names}
    for columns in ("*", list(data)):
        query = rule.to_sql("duckdb", (f"{odd} t",), columns=columns, **options)
        found = database.execute(query).df().sort_values(f"{odd}i")
        assert {name: found[name].tolist() for name in found} == {
            name: list(values) for name, values in wanted.items()
        }


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_odd_names_are_parsed_back_everywhere(dialect, odd):
    names = {"score": odd, "group": f"{odd}g", "id": f"{odd}i", "output": f"{odd}o"}
    (tree,) = sqlglot.parse(RULE.to_sql(dialect, ("lake", odd), **names), read=dialect)
    found = {node.name for node in tree.find_all(exp.Identifier)}
    if dialect == "bigquery":
        # There a line break is written as an escape, which sqlglot leaves alone.
        found = {name.replace("\\n", "\n").replace("\\r", "\r") for name in found}
        found = {name.replace("\\t", "\t") for name in found}
    assert set(names.values()) <= found


def test_unknown_groups_may_keep_their_scores_and_nulls_may_have_a_name(database):
    data = {"id": [1, 2, 3, 4], "score": [0.5] * 4, "group": ["a", "c", None, "b"]}
    database.register("few", pd.DataFrame(data))
    rule = ic.Rule(("a", "b", "?"), (Row("?", 0.0, 1.0, "set", 0.25, 1.0),), "by hand")
    options = {"unknown": "keep", "missing_group": "?"}
    query = rule.to_sql(table="few", columns=["id"], output="score", **options)
    wanted = rule.apply(data, **options)["repaired_score"].tolist()
    assert [row[1] for row in sorted(database.execute(query).fetchall())] == wanted
    assert wanted == [0.5, 0.5, 0.25, 0.5]
    numbers = ic.Rule((1, 2, "?"), (Row("?", 0.0, 1.0, "set", 0.25, 1.0),), "by hand")
    source = '(SELECT 1 AS id, 0.5 AS score, NULL::INT AS "group")'
    query = numbers.to_sql(columns=[], missing_group="?", id="id").replace('"scores"', source)
    assert database.execute(query).fetchall() == [(0.25,)]


def test_no_coin_no_id(database):
    rule = ic.Rule(("a",), (Row("a", 0.0, 1.0, "mirror", None, 1.0),), "by hand")
    query = rule.to_sql(id=None, columns=[])
    assert "md5" not in query
    source = "(SELECT 0.3e0 AS score, 'a' AS \"group\")"
    assert database.execute(query.replace('"scores"', source)).fetchall() == [(0.7,)]


def test_a_comment_stays_a_comment():
    rule = ic.Rule(("a\n; drop table x", "b"), (), "by\nhand", notes=("x\u2028y ${z}",))
    head = [line for line in rule.to_sql(id="id").splitlines() if line.startswith("--")]
    assert head[0].startswith("-- Scores after a rule made by by\\nhand; isocost ")
    assert "-- Note: x\\u2028y $ {z}" in head
    assert "Unchanged: a\\n; drop table x, b." in " ".join(head)


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ("scores", '"scores"'),
        ("lake.daily.scores", '"lake"."daily"."scores"'),
        ('"a.b".c', '"a.b"."c"'),
        ('"say ""x""".c', '"say ""x"""."c"'),
        (("a.b", 'c"'), '"a.b"."c"""'),
    ],
)
def test_tables(table, wanted):
    assert DIALECTS["postgres"].table_of(table) == wanted


def test_plain_names_are_left_alone_in_snowflake():
    names = [DIALECTS["snowflake"].name_of(n) for n in ("score", "Score", "group", "a b", "_x1")]
    assert names == ["score", '"Score"', '"group"', '"a b"', "_x1"]


def test_numbers_are_exact_doubles():
    for dialect in DIALECTS.values():
        for value in (0.1, 1 / 3, 1e-17, 5e-324, 1.0):
            text = dialect.number(value)
            assert float(text.split("'")[1] if "'" in text else text) == value
            assert "e" in text or "::" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dialect": "oracle"}, "dialect: must be one of duckdb, postgres, bigquery, snowflake, "
         "spark, trino, redshift, mysql, clickhouse\n  got:  'oracle'\n  next: use the one"),
        ({"dialect": "sqlite"}, "dialect: must be able to do what the rule needs\n"
         "  got:  sqlite, which has no MD5 and so cannot throw the coin\n  next: open the file"),
        ({"table": "a..b"}, "table: must be a name, or names and dots\n  got:  'a..b'\n  next"),
        ({"table": ()}, "table: must be named\n  got:  ()\n  next: use table="),
        ({"score": ""}, "name: must be a text that is not empty\n  got:  ''\n  next: pass"),
        ({"unknown": "skip"}, 'unknown: must be "error" or "keep"\n  got:  \'skip\'\n  next: use'),
        ({"group": ["a", "b"]}, "group: must name as many columns as the groups of the rule have "
         "parts: 1\n  got:  2: 'a', 'b'\n  next: name the columns"),
        ({"output": "isocost_tmp_coin"}, "columns: must differ from each other and from the names "
         "the query uses itself\n  got:  'isocost_tmp_coin'\n  next: choose"),
        ({"changed": "x", "output": "x"}, "got:  'x'\n  next: choose another name"),
        ({"dialect": "spark", "score": "${x}"}, "name: must not contain ${, which spark replaces"),
        ({"dialect": None}, "dialect: must be one of duckdb, postgres"),
        ({"table": None}, "table: must be named\n  got:  None\n  next: use table="),
        ({"table": 3}, "table: must be named\n  got:  3\n  next: use table="),
        ({"table": ["a", 3]}, "name: must be a text that is not empty\n  got:  3\n  next"),
        ({"score": 3}, "score: must be the name of a column\n  got:  3\n  next: pass one text"),
        ({"score": "\ud800"}, "name: must be a text that is not empty\n  got:  '\\ud800'"),
        ({"group": []}, "group: must name at least one column\n  got:  none\n  next: name the"),
        ({"group": 3}, "group: must be the name of a column\n  got:  3\n  next: pass"),
        ({"id": None}, "id: must be given, because this rule throws a coin\n  got:  none\n  next: "
         "name the column that says who a row is about with id="),
        ({"columns": ["id", "repaired_score"]}, "output: must be named, because a column with the "
         "usual name exists\n  got:  a column 'repaired_score' in the data\n  next: pass "
         'output="repaired_score" to replace that column, or another name'),
        ({"group": ["a", 3]}, "group: must be the name of a column\n  got:  3\n  next: pass"),
        ({"id": 3}, "id: must be the name of a column\n  got:  3\n  next: pass one text"),
        ({"output": ["x"]}, "output: must be the name of a column\n  got:  ['x']\n  next: pass"),
        ({"output": ""}, "name: must be a text that is not empty\n  got:  ''\n  next: pass"),
        ({"changed": 3}, "changed: must be the name of a column\n  got:  3\n  next: pass"),
        ({"columns": "id"}, "columns: must be \"*\" or a list of names\n  got:  'id'\n  next"),
        ({"columns": None}, "columns: must be \"*\" or a list of names\n  got:  None\n  next"),
        ({"columns": [3]}, "columns: must be the name of a column\n  got:  3\n  next: pass"),
    ],
)  # fmt: skip
def test_errors_have_four_parts(options, message):
    with pytest.raises(ic.UsageError) as error:
        RULE.to_sql(**{"id": "id", **options})
    assert message in str(error.value)


def test_groups_of_two_types_and_null_characters_are_refused():
    mixed = ic.Rule((1, "1"), (Row(1, 0.0, 1.0, "set", 0.5, 1.0),), "by hand")
    with pytest.raises(ic.UsageError, match="must have values of one type") as error:
        mixed.to_sql()
    assert "got:  int, str\n  next: make the rule again" in str(error.value)
    with pytest.raises(ic.UsageError, match="with a null character"):
        ic.Rule(("a\0",), (), "by hand").to_sql()


def test_replacing_a_column_in_a_star(database):
    query = RULE.to_sql(
        "duckdb", "people", score="score", output="score", unknown="keep", group="yes", id="id"
    )
    found = database.execute(query).df()
    assert sorted(found.columns) == sorted(warehouse.people())
    with pytest.raises(ic.UsageError, match="columns: must be listed to replace one of them"):
        RULE.to_sql("postgres", output="score", id="id")


def test_columns_of_a_table_that_look_like_ours():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT 1 AS id, 0.2 AS score, 'a' AS \"group\", 0.9 AS isocost_score, "
        "0.8 AS isocost_new, 'x' AS isocost_coin, 'y' AS isocost_group"
    )
    rule = ic.Rule(("a",), (Row("a", 0.0, 1.0, "set", 0.5, 1.0),), "test")
    found = connection.execute(rule.to_sql("duckdb", "t")).df()
    assert found["repaired_score"].tolist() == [0.5]
    assert found["isocost_score"].tolist() == [0.9]
    with pytest.raises(ic.UsageError, match="the query uses itself"):
        rule.to_sql("duckdb", "t", score="ISOCOST_TMP_SCORE")


def test_other_names_of_dialects():
    assert dialect_named("PostgreSQL").name == "postgres"
    assert dialect_named("databricks").name == "spark"


# Tallies counted by a database


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tallies_are_parsed_back(dialect):
    for options in warehouse.TALLIES.values():
        (tree,) = sqlglot.parse(ic.tally_sql(dialect, "lake.people", **options), read=dialect)
        groups = options.get("group", "group")
        names = {role: options.get(role) for role in ("weight", "person")}
        names["group"] = [groups] if isinstance(groups, str) else groups
        made_with = {"columns": names, "positive": options.get("positive")}
        wanted = cell_columns({**made_with, "thresholds": options.get("edges", (0.5,))})
        assert [column.alias_or_name for column in tree.selects] == wanted
        named = options.get("positive") in ("yes", 1) and options["positive"] is not True
        assert ("least_label" in wanted) == named


@pytest.mark.parametrize("odd", ODD)
def test_odd_names_and_groups_are_counted_on_duckdb(database, odd):
    names = {"score": odd, "label": f"{odd}l", "group": f"{odd}g", "weight": f"{odd}w"}
    data = {odd: [0.2, 0.7, 0.4], f"{odd}l": [odd, "b", odd], f"{odd}g": [odd, "b", "c"]}
    data[f"{odd}w"] = [1.0, 2.0, 0.5]
    database.register("plain", pd.DataFrame(data))
    table = DIALECTS["duckdb"].name_of(f"{odd} t")
    database.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM plain")
    query = ic.tally_sql("duckdb", (f"{odd} t",), positive=odd, **names)
    found = ic.tally_from_cells(database.execute(query).fetchall())
    assert found == ic.tally(data, positive=odd, **names)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"dialect": None}, "dialect"),
        ({"table": None}, "table"),
        ({"score": 3}, "score"),
        ({"label": None}, "label"),
        ({"group": []}, "group"),
        ({"group": 3}, "group"),
        ({"group": ["a", None]}, "group"),
        ({"weight": ["w"]}, "weight"),
        ({"positive": ["a"]}, "positive"),
        ({"positive": float("nan")}, "positive"),
        ({"positive": Decimal(1)}, "positive"),
        ({"bins": 0}, "bins"),
        ({"dialect": "oracle"}, "dialect"),
    ],
)
def test_arguments_that_cannot_be_meant(options, name):
    with pytest.raises(ic.UsageError) as error:
        ic.tally_sql(**options)
    (problem,) = error.value.problems
    assert problem.name == name
    assert all((problem.rule, problem.got, problem.next_step))


def test_mysql_groups_by_bytes():
    query = ic.tally_sql("mysql")
    assert "CAST(CONVERT(t.`group` USING utf8mb4) AS BINARY) AS group_1_bytes" in query
    assert "ANY_VALUE(group_1) AS group_1" in query
    assert query.endswith("GROUP BY group_1_bytes, label, bin\n")


def test_whatever_a_driver_returns(database):
    options = {"weight": "weight", "edges": (0.123,)}
    query = ic.tally_sql(table="people", **options)
    wanted = ic.tally(warehouse.people(), **options)
    frame = database.execute(query).df()
    rows = database.execute(query).fetchall()
    upper = [dict(zip(map(str.upper, frame.columns), row, strict=True)) for row in rows]
    exact = [tuple(Decimal(v) if isinstance(v, int) else v for v in row) for row in rows]
    for cells in (frame, pl.from_pandas(frame), rows, upper, exact, frame.to_dict("list")):
        assert ic.tally_from_cells(cells) == wanted


def test_cells_of_several_days_add_up(database):
    data = warehouse.people()
    rows = []
    for day in (0, 1):
        source = f"(SELECT * FROM people WHERE row % 2 = {day})"
        rows += database.execute(ic.tally_sql().replace('"scores"', source)).fetchall()
    assert ic.tally_from_cells(rows) == ic.tally(data)


def spoiled(**changes):
    cells = {"made_with": None, "group_1": "a", "label": 0, "bin": 0, "n": 1, "wh": 0.0, "wh2": 0.0}
    made = {
        "bins": 4, "edges": [], "thresholds": [0.5], "positive": None,
        "columns": {"score": "s", "label": "y", "weight": None, "person": None, "group": ["g"]},
    }  # fmt: skip
    return [{**cells, "made_with": json.dumps(made), **changes}]


def test_cells_that_are_ours():
    assert ic.tally_from_cells(spoiled()).n == 1


@pytest.mark.parametrize(
    ("cells", "got"),
    [
        (spoiled(made_with="{}"), "a column 'made_with' that is not ours"),
        (spoiled(made_with='{"columns": 1}'), "a column 'made_with' that is not ours"),
        (spoiled(made_with="nothing"), "a column 'made_with' that is not ours"),
        (spoiled(bin=99), "a bin in the cells that is not a whole number below 12"),
        (spoiled(bin=0.5), "a value of bin that is not a whole number"),
        (spoiled(n="x"), "a value of n that is not a whole number"),
        (spoiled(n=0), "a cell with no rows or no weight"),
        (spoiled(wh=None), "a value of wh that is not a finite number"),
        (spoiled(wh="x"), "a value of wh that is not a number"),
        (spoiled(wh=0.9), "a cell whose mean score lies outside its bin"),
        ([(1, 2, 3)], "a column 'made_with' that is not ours"),
        ([{"a": 1}], "no column 'made_with'"),
        ([(spoiled()[0]["made_with"], 2)], "rows that have not 7 values"),
        (3, "an object of type int, which is neither rows nor an eager frame"),
    ],
)
def test_other_cells_are_refused(cells, got):
    with pytest.raises(ic.DataError) as error:
        ic.tally_from_cells(cells)
    text = str(error.value)
    assert text.startswith("cells: must be what the query of tally_sql returns\n  got:  ")
    assert got in text
    assert text.endswith("next: run the query as it is, and pass all its rows and columns")


def test_no_rows_and_rows_that_differ():
    for nothing in ([], {}, {"n": []}):
        with pytest.raises(ic.DataError, match="must have at least one row"):
            ic.tally_from_cells(nothing)
    other = spoiled()[0]["made_with"].replace("4", "8")
    with pytest.raises(ic.DataError, match="rows of queries that differ"):
        ic.tally_from_cells(spoiled() + spoiled(made_with=other))


def test_nan_is_not_the_other_of_two_labels():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT 0.5 AS score, 'a' AS \"group\", "
        "CASE WHEN i % 7 = 0 THEN 'nan' ELSE '2' END::DOUBLE AS label FROM range(70) AS r(i)"
    )
    cells = connection.execute(ic.tally_sql("duckdb", "t", positive=2)).fetchall()
    with pytest.raises(ic.DataError, match="10 null or NaN"):
        ic.tally_from_cells(cells)


# isocost sql: the queries of the library, from the command line

STORED = replace(RULE, made_from={"reading": {"columns": {"score": "s", "group": ["g"]}}})


@pytest.fixture
def run(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    STORED.save("rule.json")

    return lambda *arguments: command("sql", *arguments)


def test_columns_come_from_the_rule(run):
    code, out, _ = run("rule.json", "--dialect", "bigquery", "--table", "lake.t", "--id", "who")
    assert code == 0
    assert out == STORED.to_sql("bigquery", "lake.t", score="s", group="g", id="who")
    assert "AS `repaired_s`" in out
    kept = {"reading": {"columns": {**STORED.reading.columns, "id": "who"}}}
    replace(STORED, made_from=kept).save("stored.json")
    assert run("stored.json", "--dialect", "bigquery", "--table", "lake.t")[1] == out


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
    assert out == STORED.to_sql(
        score="x", group="y", id="z", output="new", changed="c", columns=["z"],
        unknown="keep", missing_group="a",)  # fmt: skip


def test_a_file_is_written_whole_and_not_twice(run, tmp_path):
    code, out, _ = run("rule.json", "--id", "id", "-o", "q.sql")
    assert (code, out) == (0, "The query is in q.sql.\n")
    assert (tmp_path / "q.sql").read_text() == STORED.to_sql(score="s", group="g", id="id")
    code, _, err = run("rule.json", "--id", "id", "-o", "q.sql")
    assert code == 2
    assert "output: must not exist yet" in err
    assert run("rule.json", "--id", "id", "-o", "q.sql", "--force")[0] == 0


def test_the_query_of_a_tally(run):
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


# A macro for dbt expands to the query that it was made from

TRAPS = ["{{ x }}", "{% endmacro %}", "{# x #}", "{{{", "}}", '"isocost relation"', "a{", "it's {%"]


def expanded(macro, name="m", relation='"db"."scores"'):
    """What Jinja makes of a macro, as dbt calls it."""
    text = f"{macro}{{{{ {name}(relation) }}}}"
    return jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(
        relation=relation
    ).strip("\n")  # fmt: skip


def rule_for(groups):
    rows = tuple(Row(group, 0.0, 1.0, "set", 0.25, 0.5) for group in groups)
    return ic.Rule(tuple(groups), rows, "test", salt="{{ salt }} {%")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "query",
    [
        lambda *place: rule_for(TRAPS).to_sql(*place, id="id"),
        lambda *place: ic.tally_sql(*place, score="{{ s }}", weight="w", positive="{% if %}"),
    ],
)
def test_a_macro_is_its_query(dialect, query):
    macro = dbt_macro("m", dialect, lambda table: query(dialect, [table]))
    quoted = DIALECTS[dialect].table_of(["other table"])
    assert expanded(macro, relation=quoted) == query(dialect, ["other table"]).rstrip("\n")


@given(st.lists(st.sampled_from([*"{}%#'\" -ab\n", "{{", "}}", "isocost relation"]), max_size=12))
def test_any_text_survives(parts):
    text = "".join(parts)
    macro = dbt_macro("m", "duckdb", lambda table: f'SELECT [{text}] FROM "{table}"')
    assert expanded(macro) == f'SELECT [{text}] FROM "db"."scores"'


@pytest.mark.parametrize("name", ["", "a b", "1a", "a-b", "a(b)", None, 3])
def test_the_name_must_be_one(name):
    with pytest.raises(ic.UsageError, match="--dbt: must be a name of letters"):
        dbt_macro(name, "duckdb", str)


def test_the_command_writes_a_macro(tmp_path, run):
    rule = rule_for(["a"])
    rule.save("rule.json")
    macro = ("rule.json", "--dialect", "bigquery", "--id", "id", "--dbt", "repair")
    assert run(*macro, "-o", "repair.sql") == (0, "The macro is in repair.sql.\n", "")
    found = expanded((tmp_path / "repair.sql").read_text(), "repair", "`db`.`scores`")
    assert found == rule.to_sql("bigquery", "db.scores", id="id").rstrip("\n")
    code, _, err = run("--tally", "--dbt", "not a name")
    assert code == 2
    assert "--dbt: must be a name" in err
