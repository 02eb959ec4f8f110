"""Tables as frames of any library, as CSV and as Markdown: right values in right types."""

import csv
import io
import json
import math
import pickle
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import isocost as ic
import isocost.page
from isocost.tables import csv_text, frame_of
from tests.conftest import measured

ROWS = 600


def people(groups=("a", "b", "c"), seed=0):
    random = np.random.default_rng(seed)
    score = random.uniform(0.02, 0.98, ROWS)
    return {
        "score": score,
        "label": (random.random(ROWS) < score).astype(int),
        "group": np.array(groups)[random.integers(0, len(groups), ROWS)],
        "sex": random.choice(["F", "M"], ROWS),
    }


KINDS = {
    "pandas": (pd.DataFrame, pd.DataFrame),
    "polars": (pl.DataFrame, pl.DataFrame),
    "polars, lazy": (pl.LazyFrame, pl.DataFrame),
    "pyarrow": (pa.table, pa.Table),
    "duckdb": (lambda data: duckdb.from_arrow(pa.table(data)), pd.DataFrame),
    "dict": (dict, pd.DataFrame),
}


def plain(frame):
    """The columns of any frame as lists."""
    if isinstance(frame, pa.Table):
        return frame.to_pydict()
    if isinstance(frame, pl.DataFrame):
        return frame.to_dict(as_series=False)
    return {name: list(frame[name]) for name in frame}


@pytest.mark.parametrize("kind", KINDS)
def test_an_audit_comes_back_in_the_frame_of_the_data(kind):
    make, returned = KINDS[kind]
    audit = ic.audit(ic.tally(make(people())), warn=False)
    frame = audit.to_frame()
    assert type(frame) is returned
    columns = plain(frame)
    assert columns["group"][:3] == ["a", "b", "c"]
    (everybody,) = columns["group"][3:]
    # In pandas it is missing in its own way.
    assert everybody is None or (returned is pd.DataFrame and pd.isna(everybody))
    for i, numbers in enumerate([*audit.groups.values(), audit.overall]):
        for name, value in numbers.values.items():
            assert columns[name][i] == pytest.approx(value, abs=0, rel=0, nan_ok=True)
        for name, (low, high) in numbers.intervals.items():
            assert (columns[f"{name}_low"][i], columns[f"{name}_high"][i]) == (low, high)
    order = list(columns)
    assert order[:3] == ["group", "n", "share"]
    place = order.index("fpr")
    assert order[place : place + 3] == ["fpr", "fpr_low", "fpr_high"]


@pytest.mark.parametrize(
    ("groups", "pandas_type", "polars_type"),
    [
        ((3, 7), "Int64", pl.Int64),
        ((True, False), "boolean", pl.Boolean),
        ((0.5, 1.5), "float64", pl.Float64),
        (("x", "y"), "str", pl.String),
    ],
)
def test_groups_keep_their_type(groups, pandas_type, polars_type):
    audit = measured(ic.tally(people(groups)))
    frame = audit.to_frame(backend="pandas")
    assert str(frame["group"].dtype) in (pandas_type, "object" if pandas_type == "str" else "")
    assert frame["group"].dropna().tolist() == sorted(groups)
    assert (frame[frame["group"] == groups[0]]["n"] == audit.groups[groups[0]].n).all()
    frame = audit.to_frame(backend="polars")
    assert frame["group"].dtype == polars_type
    numbers = [frame[name].dtype for name in audit.overall.values]
    assert set(numbers) == {pl.Float64}
    assert audit.to_frame(backend="pyarrow").schema.field("fpr").type == pa.float64()


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", "dict"])
def test_a_rate_that_is_not_defined_is_nan(backend):
    data = people()
    data["label"][data["group"] == "c"] = 0
    frame = ic.audit(data, warn=False).to_frame(backend=backend)
    columns = plain(frame)
    for name in ("fnr", "fnr_low", "fnr_high", "generalized_fnr", "generalized_fnr_low"):
        assert [math.isnan(value) for value in columns[name]] == [False, False, True, False]
    assert not np.isnan(columns["fpr"]).any()
    if backend == "polars":
        assert frame["fnr"].null_count() == 0
    rows = list(csv.DictReader(io.StringIO(csv_text(columns))))
    assert [row["fnr"] == "" for row in rows] == [False, False, True, False]


def test_groups_of_several_types_become_texts():
    data = people()
    for names, shown in (({"a": "1"}, ["1", "'1'"]), ({"a": 2**70}, ["1", str(2**70)])):
        tally = ic.tally({**data, "group": [names.get(g, 1) for g in data["group"]]})
        for backend in ("pandas", "polars", "pyarrow", "dict"):
            assert plain(measured(tally).to_frame(backend=backend))["group"][:2] == shown


def test_each_group_column_is_a_column():
    audit = measured(ic.tally(pl.DataFrame(people((1, 2))), group=["sex", "group"]))
    frame = audit.to_frame()
    assert frame.columns[:3] == ["sex", "group", "n"]
    assert frame["sex"].to_list() == ["F", "F", "M", "M", None]
    assert frame["group"].to_list() == [1, 2, 1, 2, None]
    highest = audit.to_frame("disparities").row(by_predicate=pl.col("measure") == "fpr", named=True)
    assert highest["highest"] in ("F, 1", "F, 2", "M, 1", "M, 2")
    # A group column never hides a number.
    data = people()
    data["n"] = data.pop("group")
    frame = measured(ic.tally(pl.DataFrame(data), group=["sex", "n"])).to_frame()
    assert frame.columns[:3] == ["sex", "group_n", "n"]
    assert frame["n"][-1] == ROWS


def test_merged_intersections_are_texts():
    tally = ic.tally(pl.DataFrame(people()), group=["sex", "group"])
    merged = tally.relabel({("F", "a"): "few", ("M", "a"): "few"})
    found = measured(merged).to_frame()["group"].to_list()
    assert found == ["F, b", "F, c", "M, b", "M, c", "few", None]


def test_the_groups_alone_are_a_frame_with_the_groups_as_index_in_pandas():
    audit = ic.audit(pd.DataFrame(people()), confidence=None)
    assert audit.by_group.index.tolist() == ["a", "b", "c"]
    assert audit.by_group.loc["b", "fpr"] == audit.groups["b"].fpr
    both = ic.audit(pd.DataFrame(people((1, 2))), group=["sex", "group"], confidence=None)
    assert both.by_group.index.names == ["sex", "group"]
    assert both.by_group.loc[("M", 2), "n"] == both.groups["M", 2].n
    polars = ic.audit(pl.DataFrame(people()), measures=["fpr"], confidence=None).by_group
    assert polars.columns[:4] == ["group", "n", "share", "fpr"]
    assert polars.height == 3


def test_disparities():
    audit = ic.audit(ic.tally(pl.DataFrame(people((1, 2, 3)))), warn=False)
    frame = audit.to_frame("disparities")
    assert frame.columns == ["measure", "difference", "low", "high", "ratio", "highest", "lowest"]
    assert frame["highest"].dtype == pl.Int64
    for row in frame.iter_rows(named=True):
        found = audit.disparities[row["measure"]]
        assert row["difference"] == found.difference
        assert (row["highest"], row["lowest"]) == (found.highest, found.lowest)
        assert math.isnan(row["low"]) or row["low"] <= row["difference"] <= row["high"]
    cost = audit.intervals.disparities["cost"]
    assert frame.filter(pl.col("measure") == "cost")[["low", "high"]].row(0) == cost
    with pytest.raises(ic.UsageError, match='what: must be "groups" or "disparities"'):
        audit.to_frame("cells")


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", "dict"])
def test_a_tally_is_its_cells(backend):
    tally = ic.tally(people(), edges=(0.37,))
    cells = plain(tally.to_frame(backend=backend))
    assert sum(cells["n"]) == ROWS
    means = np.array(cells["wh"]) / np.array(cells["w"])
    assert (means >= np.array(cells["low"]) - 1e-12).all()
    assert (means <= np.array(cells["high"]) + 1e-12).all()
    assert 0.37 in tally.grid.cuts
    assert [tally.grid.cuts[b] for b in cells["bin"]] == cells["low"]
    positives = sum(n for n, y in zip(cells["n"], cells["label"], strict=True) if y == 1)
    assert positives == people()["label"].sum()


def test_a_tally_remembers_its_library_and_saves_it_not():
    tally = ic.tally(pl.DataFrame(people()))
    other = ic.tally(pl.DataFrame(people(seed=1)))
    kept = [tally.select(["a", "b"]), tally.drop(["a"]), tally.relabel({"a": "z"}), tally + other]
    kept += [pickle.loads(pickle.dumps(tally)), ic.withhold(tally, tolerance=1).expected(tally)]
    assert {one.backend for one in kept} == {"polars"}
    again = ic.Tally.from_json(tally.to_json())
    assert again == tally
    assert again.backend is None
    assert "polars" not in tally.to_json()


def test_comparisons():
    tally = ic.tally(pl.DataFrame(people()))
    found = ic.compare(tally, {"mine": ic.withhold(tally, infeasible="closest")})
    frame = found.to_frame()
    assert frame["rule"].to_list() == ["original", "mine"]
    mine = found.rules["mine"]
    row = frame.row(1, named=True)
    assert row["cost_difference"] == mine.audit.disparity.difference
    assert row["changed"] == mine.changes.changed
    assert math.isnan(frame["gini"][0])
    by_group = found.to_frame("groups")
    assert by_group.height == 6
    assert by_group.columns[:3] == ["group", "rule", "n"]
    last = by_group.row(5, named=True)
    assert (last["group"], last["rule"]) == ("c", "mine")
    assert last["cost"] == mine.audit.groups["c"].cost
    assert last["by_coin"] == mine.by_group["c"].by_coin


def test_frontiers_watches_plans_and_what_is_unseen():
    tally = ic.tally(pl.DataFrame(people()))
    rule = ic.withhold(tally, infeasible="closest")
    frontier = ic.frontier(tally, points=3).to_frame()
    assert frontier["feasible"].dtype == pl.Boolean
    assert frontier["tolerance"][0] == 0.0
    watch = ic.watch(rule, {"May": rule.expected(tally)}, tolerance=0.2)
    frame = watch.to_frame()
    assert frame.row(0, named=True)["period"] == "May"
    assert (frame["low"][0], frame["high"][0]) == watch.periods[0].interval
    unseen = ic.unseen(tally, rule, remakes=20)
    frame = unseen.to_frame()
    assert frame["number"].to_list()[:2] == ["cost_difference", "rate_difference"]
    assert frame["limit"][0] == unseen.cost_difference.limit
    plan = ic.plan(tally)
    assert plan.to_frame()["difference"].to_list() == [g.difference for g in plan.groups.values()]
    repair = ic.plan_repair(tally, rule, within=0.5, remakes=10)
    assert repair.to_frame()["needed"].dtype == pl.Float64
    for one in (frontier, frame, plan.to_frame(), repair.to_frame()):
        assert isinstance(one, pl.DataFrame)


def test_the_library_that_is_installed(monkeypatch):
    columns, missing = {"group": ["a", None], "n": np.array([1.0, 2.0])}, ["pandas"]
    there = lambda name: None if name in missing else find_spec(name)  # noqa: E731
    monkeypatch.setattr("isocost.tables.find_spec", there)
    assert isinstance(frame_of(columns), pl.DataFrame)
    # A tally may come from a machine that has another library.
    assert isinstance(frame_of(columns, "pandas"), pl.DataFrame)
    missing.append("polars")
    found = frame_of(columns)
    assert found["group"].tolist() == ["a", None]
    assert found["n"].dtype == np.float64
    with pytest.raises(ic.UsageError, match='backend: must be "pandas"'):
        frame_of(columns, "excel")


def test_csv_reads_back_the_same_numbers():
    audit = ic.audit(ic.tally(people(("a", 'x,"y"', "z"))), warn=False)
    columns = audit.to_frame(backend="dict")
    rows = list(csv.DictReader(io.StringIO(csv_text(columns))))
    assert [row["group"] for row in rows] == ["a", 'x,"y"', "z", "all"]
    for row, numbers in zip(rows, [*audit.groups.values(), audit.overall], strict=True):
        assert {name: float(row[name]) for name in numbers.values} == dict(numbers.values)
    taken = csv_text({"group": ["all", None], "n": [1.0, math.inf]})
    assert taken.splitlines() == ["group,n", "all,1", "everybody,inf"]


HOSTILE = {
    "=1+1": "'=1+1",
    "+1": "'+1",
    "-2": "'-2",
    "@SUM(A1)": "'@SUM(A1)",
    " =1": "' =1",
    "＝1": "'＝1",
    "\t=1": r"\t=1",
    "\r\n=1": r"\r\n=1",
    "a\x00b\x08c\x1bd\x9fe": r"a\x00b\x08c\x1bd\x9fe",
    "a\tb": r"a\tb",
    'a "b", c=1': 'a "b", c=1',
    "−1 %": "−1 %",
}
"""Texts, and what they are in a CSV file that a spreadsheet may open."""


def test_no_text_of_a_csv_is_a_formula():
    columns = {"group": list(HOSTILE), "=n": [-1.5, *range(1, len(HOSTILE))]}
    header, *rows = csv.reader(io.StringIO(csv_text(columns)))
    assert header == ["group", "'=n"]
    assert [row[0] for row in rows] == list(HOSTILE.values())
    assert rows[0][1] == "-1.5"
    assert csv_text({"group": [-2, np.int64(-3), -4.5]}).splitlines()[1:] == ["-2", "-3", "-4.5"]


def test_no_group_of_a_csv_of_the_shell_is_a_formula(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    rows = people(("=cmd()", "-1\n"))
    with Path("data.csv").open("w", newline="") as file:
        csv.writer(file).writerows([rows, *zip(*rows.values(), strict=True)])
    _, out, _ = command("audit", "data.csv", "--format", "csv", "--csv", "audit.csv")
    for text in (out, Path("audit.csv").read_text()):
        groups = [row["group"] for row in csv.DictReader(io.StringIO(text))]
        assert groups == [r"'-1\n", "'=cmd()", "all"]


def test_the_page_writes_texts_of_a_csv_alike():
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    module = Path(isocost.page.__file__).parent.joinpath("web/app/copying.js").as_uri()
    rows = json.dumps([[text, -1.5] for text in HOSTILE])
    script = f"import {{ csvText }} from {module!r}; process.stdout.write(csvText({rows}));"
    command = ["node", "--input-type=module", "-e", script]
    done = subprocess.run(command, capture_output=True, check=True)
    found = list(csv.reader(io.StringIO(done.stdout.decode(), newline="")))
    assert found == [[text, "-1.5"] for text in HOSTILE.values()]
