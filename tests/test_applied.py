"""One convention on every door: a rule adds ``repaired_<score>`` and keeps the other columns."""

import csv
from dataclasses import replace
from functools import partial

import duckdb
import numpy as np
import pytest

import isocost as ic
from isocost.cli.app import main
from isocost.rules import Row
from tests.lazy_frames import KINDS, SPARK_AND_PANDAS, as_lazy, columns_of, session_of

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
pytestmark = pytest.mark.filterwarnings(SPARK_AND_PANDAS)

DATA = {
    "who": [1, 2, 3, 4, 5, 6],
    "score": [0.5] * 6,
    "race": ["a", "a", "a", "b", "b", "b"],
    "p_deny": [0.125, 0.25, 0.5, 0.125, 0.25, 0.5],
}
STORED = {"score": "p_deny", "label": "denied", "group": ["race"], "weight": None}
RULE = ic.Rule(
    ("a", "b"),
    (Row("a", 0.0, 1.0, "set", 0.75, 0.5),),
    "test",
    made_from={"reading": {"columns": STORED}},
)
WITH_ID = replace(RULE, made_from={"reading": {"columns": {**STORED, "id": "who"}}})
REPAIRED = RULE.apply(score=DATA["p_deny"], group=DATA["race"], id=DATA["who"]).tolist()


def in_memory(make, read, rule, data, **options):
    return read(rule.apply(make(data), **options))


def batches(data):
    return pa.table(data).to_reader(max_chunksize=4)


EAGER = {
    "dict": (dict, lambda out: {name: np.asarray(values).tolist() for name, values in out.items()}),
    "pandas": (pd.DataFrame, lambda out: out.to_dict("list")),
    "polars eager": (pl.DataFrame, lambda out: out.to_dict(as_series=False)),
    "pyarrow": (pa.table, lambda out: out.to_pydict()),
    "stream": (batches, lambda out: out.read_all().to_pydict()),
}


def in_shell(folder, rule, data, **options):
    rule.save(folder / "rule.json")
    pd.DataFrame(data).to_csv(folder / "data.csv", index=False)
    names = {"output": "output-column"}
    line = [f"--{names.get(name, name)}={value}" for name, value in options.items()]
    rule_file, source, target = (
        str(folder / name) for name in ("rule.json", "data.csv", "out.csv")
    )
    with pytest.raises(SystemExit) as left:
        main(["apply", rule_file, source, "-o", target, "--force", *line])
    if left.value.code:
        raise ic.UsageError(())
    with (folder / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    texts = {name: [row[name] for row in rows] for name in rows[0]}
    return {
        name: values if name == "race" else [*map(float, values)] for name, values in texts.items()
    }


def in_file(folder, rule, data, output=None, **options):
    pd.DataFrame(data).to_parquet(folder / "data.parquet")
    files = folder / "data.parquet", folder / "out.parquet"
    ic.apply_file(rule, *files, output_column=output, force=True, **options)
    return pd.read_parquet(folder / "out.parquet").to_dict("list")


def in_sql(rule, data, **options):
    database = duckdb.connect()
    database.register("scores", pa.table(data))
    # A query knows only the columns that it is told of.
    return database.sql(rule.to_sql(columns=list(data), **options)).to_arrow_table().to_pydict()


@pytest.fixture(params=[*EAGER, *KINDS, "shell", "file", "sql"])
def door(request, tmp_path):
    """A function that applies a rule to a dict of lists, and gives one back."""
    kind = request.param
    if kind in EAGER:
        return partial(in_memory, *EAGER[kind])
    if kind in KINDS:
        make = partial(as_lazy, kind, spark=session_of(kind, request))
        return partial(in_memory, make, partial(columns_of, kind))
    return (
        in_sql if kind == "sql" else partial({"shell": in_shell, "file": in_file}[kind], tmp_path)
    )


def by_who(columns):
    order = np.argsort(columns["who"])
    return {name: [values[i] for i in order] for name, values in columns.items()}


@pytest.mark.parametrize("given", [{}, {"score": "p_deny"}])
def test_a_column_is_added_and_none_is_touched(door, given):
    found = by_who(door(RULE, DATA, id="who", **given))
    assert found == {**DATA, "repaired_p_deny": REPAIRED}
    assert list(found) == [*DATA, "repaired_p_deny"]
    assert by_who(door(WITH_ID, DATA, **given)) == found


def test_other_columns_than_those_stored(door):
    data = {name: values for name, values in DATA.items() if name != "score"}
    data["risk"] = data.pop("p_deny")
    assert by_who(door(RULE, data, id="who", score="risk"))["repaired_risk"] == REPAIRED


@pytest.mark.parametrize("output", ["p_deny", "score", "new"])
def test_a_column_is_replaced_if_it_is_named(door, output):
    found = by_who(door(RULE, DATA, id="who", output=output))
    assert found == {**DATA, output: REPAIRED}
    assert list(found) == list({**DATA, output: None})


def test_a_clash_is_an_error_with_a_way_out(door):
    data = {**DATA, "repaired_p_deny": [0.0] * 6}
    with pytest.raises(ic.UsageError) as error:
        door(RULE, data, id="who")
    for problem in error.value.problems:
        assert problem.name in ("output", "output_column")
        assert problem.rule == "must be named, because a column with the usual name exists"
        assert problem.got == "a column 'repaired_p_deny' in the data"
        named = f'pass {problem.name}="repaired_p_deny" to replace that column, or another name'
        assert problem.next_step == named
    found = by_who(door(RULE, data, id="who", output="repaired_p_deny"))
    assert found == {**DATA, "repaired_p_deny": REPAIRED}


def test_a_coin_asks_for_the_id(door):
    data = {**DATA, "id": DATA["who"]}
    with pytest.raises(ic.UsageError) as error:
        door(RULE, data)
    for problem in error.value.problems:
        assert problem.name == "id"
        assert problem.rule == "must be given, because this rule throws a coin"
    certain = replace(RULE, rows=(Row("a", 0.0, 1.0, "set", 0.75, 1.0),))
    assert by_who(door(certain, data))["repaired_p_deny"][:3] == [0.75] * 3


def test_rows_without_a_group_are_those_of_the_rule(door):
    rule = replace(RULE, made_from={"reading": {"columns": STORED, "missing_group": "a"}})
    data = {**DATA, "race": [None, "a", "a", "b", "b", "b"]}
    assert by_who(door(rule, data, id="who"))["repaired_p_deny"] == REPAIRED


def test_a_name_that_differs_by_case_is_taken_where_case_is_ignored():
    data = {**DATA, "Repaired_P_deny": [0.0] * 6}
    with pytest.raises(ic.UsageError, match='pass output="Repaired_P_deny" to replace'):
        RULE.apply(as_lazy("duckdb", data), id="who")
    assert list(RULE.apply(data, id="who")) == [*data, "repaired_p_deny"]


def test_two_rules_in_one_write_the_name_of_the_first_score():
    generator = np.random.default_rng(1)
    people = {"p_deny": generator.random(4000), "race": np.repeat(["a", "b"], 2000)}
    people["denied"] = (generator.random(4000) < people["p_deny"]).astype(int)
    tally = ic.tally(people, "p_deny", "denied", "race")
    first = ic.recalibrate(tally, "isotonic")
    step = first.apply(people)
    assert list(step) == [*people, "repaired_p_deny"]
    second = ic.equalize_odds(ic.tally(step, "repaired_p_deny", "denied", "race"))
    assert list(first.then(second).apply(people, seed=0)) == [*people, "repaired_p_deny"]


def test_a_stream_without_rows_has_the_column_too():
    empty = pa.table(DATA).slice(0, 0).to_reader()
    out = RULE.apply(empty, id="who", changed="moved").read_all()
    assert out.column_names == [*DATA, "repaired_p_deny", "moved"]
    assert out.schema.field("repaired_p_deny").type == pa.float64()
