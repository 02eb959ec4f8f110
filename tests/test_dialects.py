"""Rules as SQL: run on DuckDB, parsed back everywhere, and safe whatever the names are."""

from dataclasses import replace

import duckdb
import pandas as pd
import pytest
import sqlglot
from sqlglot import exp

import isocost as ic
from isocost.engines.dialects import DIALECTS, dialect_named
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
    with pytest.raises(ic.UsageError, match=r"id: must be given, because this rule throws a coin"):
        RULE.to_sql(id=None)


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
