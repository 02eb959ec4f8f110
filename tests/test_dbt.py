"""A macro for dbt expands to the query that it was made from."""

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from isocost.cli.app import main
from isocost.engines.dialects import DIALECTS
from isocost.engines.sql import dbt_macro
from isocost.rules import Row

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
def test_a_macro_of_a_rule_is_its_query(dialect):
    rule = rule_for(TRAPS)
    macro = dbt_macro("m", dialect, lambda table: rule.to_sql(dialect, [table], id="id"))
    quoted = DIALECTS[dialect].table_of(["other table"])
    expected = rule.to_sql(dialect, ["other table"], id="id").rstrip("\n")
    assert expanded(macro, relation=quoted) == expected


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_macro_of_a_tally_is_its_query(dialect):
    def query(table):
        return ic.tally_sql(dialect, table, score="{{ s }}", weight="w", positive="{% if %}")

    quoted = DIALECTS[dialect].table_of(["other table"])
    macro = dbt_macro("m", dialect, query)
    assert expanded(macro, relation=quoted) == query("other table").rstrip("\n")


@given(st.lists(st.sampled_from([*"{}%#'\" -ab\n", "{{", "}}", "isocost relation"]), max_size=12))
def test_any_text_survives(parts):
    text = "".join(parts)
    macro = dbt_macro("m", "duckdb", lambda table: f'SELECT [{text}] FROM "{table}"')
    assert expanded(macro) == f'SELECT [{text}] FROM "db"."scores"'


@pytest.mark.parametrize("name", ["", "a b", "1a", "a-b", "a(b)", None, 3])
def test_the_name_must_be_one(name):
    with pytest.raises(ic.UsageError, match="--dbt: must be a name of letters"):
        dbt_macro(name, "duckdb", str)


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rule = rule_for(["a"])
    rule.save("rule.json")
    command = ["sql", "rule.json", "--dialect", "bigquery", "--id", "id", "--dbt", "repair"]
    with pytest.raises(SystemExit) as leave:
        main([*command, "-o", "repair.sql"])
    assert leave.value.code == 0
    assert capsys.readouterr().out == "The macro is in repair.sql.\n"
    found = expanded((tmp_path / "repair.sql").read_text(), "repair", "`db`.`scores`")
    assert found == rule.to_sql("bigquery", "db.scores", id="id").rstrip("\n")
    with pytest.raises(SystemExit) as leave:
        main(["sql", "--tally", "--dbt", "not a name"])
    assert leave.value.code == 2
    assert "--dbt: must be a name" in capsys.readouterr().err
