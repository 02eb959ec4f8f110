"""Every public function refuses what it cannot use, with an error that has four parts."""

import inspect
import math

import duckdb
import pytest

import isocost as ic
from isocost import plots
from isocost.examples import compas
from isocost.tallies import DataOptions

pandas = pytest.importorskip("pandas")

NAN = math.nan
ROWS = {
    "id": [1, 2, 3, 4],
    "score": [0.2, 0.7, 0.4, 0.9],
    "label": [0, 1, 0, 1],
    "group": ["a", "a", "b", "b"],
}
FRAME = pandas.DataFrame(ROWS)
TALLY = compas()
AUDIT = ic.audit(TALLY, confidence=None)
RULE = ic.withhold(TALLY, "fpr", 0.07)
FRONTIER = ic.frontier(TALLY, points=2)

# What each argument must not be, wherever it occurs; a function may add to it or take away.
NUMBERS = ["x", NAN, True, None, [], {}, FRAME, 10**400]
WORDS = ["foo", "", 3, None, ["raise"], FRAME]
TALLIES = [None, 3, [TALLY], RULE, AUDIT, pandas.Series([0.5]), "no such file.csv", {}]
RULES = [None, 3, "rule.json", {}, FRAME, TALLY, AUDIT, [RULE]]
PATHS = [None, 3, [], FRAME, True]
NAMED = [3, "", " ", "a\nb", "x" * 81, ["x"], FRAME]
CELLS = duckdb.sql(ic.tally_sql("duckdb", table="FRAME")).df()

WRONG = {
    "tally": TALLIES,
    "audit": [None, 3, "no such file.csv", {}, [TALLY], RULE],
    "rule": RULES,
    "holdout": TALLIES[1:],
    "within": [*NUMBERS, -1],
    "rules": [3, "withhold", ["withhold"], {"a": None}, [TALLY], {"original": RULE}, FRAME],
    "tallies": [None, 3, "day1.csv", [], {}, {"May": 3}, [AUDIT], [TALLY, None], RULE],
    "frontiers": [None, 3, {}, {"a": 3}, TALLY],
    "answer": [None, 3, {}, TALLY],
    "path": PATHS,
    "cost": [3, "foo", "", "weighted:1", "weighted:a,b", "weighted:-1,2", {}, [], FRAME, True],
    "other": [3, "foo", {}, FRAME],
    "threshold": [*NUMBERS, 0, 1, -0.5, 2],
    "thresholds": ["a", [2], ["a"], [None], None, {}, {"a": 1}, [NAN], [[0.5]], 1.0, FRAME],
    "tolerance": [*NUMBERS, -1, math.inf],
    "calibration_margin": ["x", NAN, True, -1, [], FRAME],
    "cost_difference": [*NUMBERS, -1],
    "gap": ["x", NAN, True, -1, [], FRAME],
    "confidence": [*NUMBERS, 0, 1, 2, -1],
    "replicates": [-1, 1, 1.5, "a", True, None, 10**12, FRAME],
    "min_group": ["x", -1, 1.5, True, [], FRAME],
    "reference": [3, "nobody", [], {}, TALLY, FRAME],
    "warn": [],
    "seed": ["x", -1, 1.5, True, [], FRAME],
    "shrinkage": [-1, "a", True, None, float("nan"), float("inf"), FRAME],
    "bins": [0, -1, 1.5, "a", True, None, 10**12, FRAME],
    "edges": [["a"], [2], [NAN], 3, "x", None, {}, {"a": 1}, [[0.5]], FRAME],
    "points": [0, 1, 2.5, "a", True, None, 10**12, FRAME],
    "levels": [1, 2.5, "a", True, None, 10**12, FRAME],
    "equal": [("foo",), (), "foo", 3, None, ["fpr", "fpr"], [3], FRAME],
    "floor": [3, "accuracy", ["accuracy"], {"foo": 0.1}, {"accuracy": 2}, {"accuracy": NAN}, FRAME],
    "salt": [3, None, b"salt", "x" * 2000, "\ud800", FRAME],
    "min_count": [-1, 1.5, "a", True, None],
    "height": [0, 1.5, "a", None],
    "origin": [3, "x", {}],
    "title": [3, ["x"], "\ud800"],
    "base_rates": [3, None, "ab", [], {}, [0.5], [0.5, 2], ["a", "b"], {"a": 0.5, "b": NAN}, FRAME],
    "score": [3, None, "nobody", ["score"], FRAME],
    "label": [3, None, "nobody", ["label"], FRAME],
    "group": [[], 3, None, "nobody", ["group", "group"], ["group", 3], [["group"]], FRAME],
    "weight": [3, "nobody", ["weight"], FRAME],
    "person": [3, "nobody", ["id"], FRAME],
    "scale": [3, "deciles", "rank:9-1", [], FRAME],
    "decimal": [3, ";", [], FRAME],
    "encoding": [3, "klingon", [], FRAME],
    "sheet": [3, [], FRAME],
    "output": [3, None, [], FRAME],
    "changed": [3, [], "score", FRAME],
    "handed_over": [3, [], "score", FRAME],
    "favourable": [3, None, "yes", [], FRAME],
    "question": [3, "fpr", {}, [], TALLY, FRAME],
    "remakes": [-1, 1, 1.5, "a", True, 10**12, FRAME],
    "missing_label": [3, None, [], "maybe", True, FRAME],
    "drop_missing": [3, None, [], "score", FRAME],
    "share": [-0.1, 1, 1.5, "a", True, NAN, [], FRAME],
    "groups": [3, None, "a", ["nobody"], [[]], FRAME],
    "names": [3, None, "a", {"nobody": "x"}, {"Caucasian": None}],
    "text": [None, 3, "", "{", "[]", [], FRAME],
    "content": [None, 3, "", [], {}, FRAME],
    "cells": [None, 3, "", [], {}, FRAME, [(1, 2)], [3]],
    "y_true": [None, 3, "a", [2], [[0, 1]], ["a", "b"], {}, [0, 1, 1]],
    "y_score": [None, 3, "a", [2], [[0, 1]], ["a", "b"], {}, [NAN, 0.5]],
    "sample_weight": [3, "a", [0, 1], [NAN, 1], {}],
    "data": [3, [], "no such file.csv", 0.5, RULE],
    "dialect": ["foo", 3, None, [], FRAME],
    "table": [3, None, "", [], FRAME],
    "positive": [[], {}, FRAME],
    "fitted": [3, None, "a", ["a"], ("nobody",), FRAME],
    "promise": [3, "x", {}, [], FRAME],
    "metric": [None, 3, "foo", [], FRAME],
    "response_method": [None, 3, "decision_function", [], FRAME],
    "greater_is_better": ["yes", 3, [], FRAME],
}
for names, values in {
    "method strategy infeasible keep minimize rates unknown name selected": WORDS,
    "no_worse monotone allow_decision_changes by_base_rate": ["yes", 1, None],
    "people outcome positive_means": NAMED,
    "detect limit power": ["x", 0, 1, -0.1, True, [], FRAME],
    "fp fn": ["a", None, -1, NAN, {}, {"a": -1}, {"a": "x"}, 1e300, True, FRAME],
    "settings made_from": [3, None, "a"],
    "measures methods": [["foo"], "foo", 3, None, []],
    "rows notes": [3, None, [3], FRAME],
}.items():
    WRONG |= dict.fromkeys(names.split(), values)

# Functions with arguments that work; each is then replaced by every wrong value.
TALLY_AND = {"tally": TALLY}
DOORS = {
    "audit": (ic.audit, TALLY_AND | {"replicates": 0}),
    "bounds": (ic.bounds, TALLY_AND | {"other": "fpr"}),
    "calibration_gap": (ic.calibration_gap, {"y_true": [0, 1], "y_score": [0.2, 0.7]}),
    "coarsen": (ic.coarsen, TALLY_AND | {"tolerance": 0.1}),
    "compare": (ic.compare, TALLY_AND | {"rules": [RULE]}),
    "decision_limit": (ic.decision_limit, TALLY_AND),
    "distinct": (ic.distinct, {"cost": "fpr", "other": "fnr", "base_rates": [0.2, 0.5]}),
    "equalize_odds": (ic.equalize_odds, TALLY_AND),
    "feasibility": (ic.feasibility, TALLY_AND),
    "frontier": (ic.frontier, TALLY_AND | {"points": 2}),
    "generalized_fnr": (ic.generalized_fnr, {"y_true": [0, 1], "y_score": [0.2, 0.7]}),
    "generalized_fpr": (ic.generalized_fpr, {"y_true": [0, 1], "y_score": [0.2, 0.7]}),
    "hand_over": (ic.hand_over, TALLY_AND | {"share": 0.5}),
    "handed_over": (ic.handed_over, TALLY_AND | {"rule": ic.hand_over(TALLY, 0.5)}),
    "intervals": (ic.intervals, TALLY_AND | {"replicates": 0}),
    "look": (ic.look, {"path": "scores.csv"}),
    "layout": (ic.layout, {"audit": TALLY, "name": "ll144"}),
    "plan": (ic.plan, TALLY_AND),
    "plan_repair": (ic.plan_repair, TALLY_AND | {"rule": RULE, "within": 0.5, "remakes": 10}),
    "recalibrate": (ic.recalibrate, TALLY_AND),
    "reconcilable": (ic.reconcilable, TALLY_AND | {"thresholds": 0.5}),
    "reconcile": (ic.reconcile, TALLY_AND),
    "report": (ic.report, {"audit": TALLY}),
    "report_html": (ic.report_html, {"audit": TALLY}),
    "scorer": (ic.scorer, {"metric": "fpr"}),
    "show_report": (ic.show_report, {"audit": AUDIT}),
    "tally": (ic.tally, {"data": ROWS}),
    "tally_from_cells": (ic.tally_from_cells, {"cells": CELLS}),
    "Question": (ic.Question, {}),
    "tally_sql": (ic.tally_sql, {}),
    "unseen": (ic.unseen, TALLY_AND | {"rule": RULE, "remakes": 10}),
    "verify": (ic.verify, {}),
    "watch": (ic.watch, {"rule": RULE, "tallies": [TALLY]}),
    "withhold": (ic.withhold, TALLY_AND | {"tolerance": 0.1}),
    "apply_file": (ic.apply_file, {"rule": RULE, "path": "scores.csv", "output": "new.csv"}),
    "Cost": (ic.Cost, {"fp": 1, "fn": 2}),
    "Cost.weighted": (ic.Cost.weighted, {}),
    "Cost.parse": (ic.Cost.parse, {"text": "fpr"}),
    "Rule": (ic.Rule, {"groups": ("a",), "rows": (), "method": "none"}),
    "Rule.expected": (RULE.expected, TALLY_AND),
    "Rule.apply": (RULE.apply, {"data": ROWS, "id": "id", "unknown": "keep"}),
    "Rule.load": (ic.Rule.load, {}),
    "Rule.save": (RULE.save, {}),
    "Rule.from_json": (ic.Rule.from_json, {}),
    "Rule.with_salt": (RULE.with_salt, {}),
    "Tally.load": (ic.Tally.load, {}),
    "Tally.save": (TALLY.save, {}),
    "Tally.from_json": (ic.Tally.from_json, {}),
    "Tally.from_dict": (ic.Tally.from_dict, {}),
    "Tally.select": (TALLY.select, {}),
    "Tally.drop": (TALLY.drop, {}),
    "Tally.relabel": (TALLY.relabel, {}),
    "Tally.kinds": (TALLY.kinds, {}),
    "FrontierDisplay.from_frontier": (plots.FrontierDisplay.from_frontier, {"frontiers": FRONTIER}),
    "ReconcilableDisplay.from_reconcilable": (
        plots.ReconcilableDisplay.from_reconcilable, {"answer": ic.reconcilable(TALLY, 0.5)},
    ),
}  # fmt: skip
OF_DISPLAYS = {
    "ChangeDisplay": {"rules": [RULE]},
    "FrontierDisplay": {"points": 2},
    "RepairPlanDisplay": {"method": "withhold", "cost": "weighted:1,1", "within": 0.5},
    "ReconcilableDisplay": {"thresholds": 0.5},
    "ReliabilityDisplay": {"replicates": 0},
}
for name in plots.__all__:
    display = getattr(plots, name)
    DOORS[f"{name}.from_tally"] = (display.from_tally, TALLY_AND | OF_DISPLAYS.get(name, {}))
    if hasattr(display, "from_audit"):
        DOORS[f"{name}.from_audit"] = (display.from_audit, {"audit": AUDIT})


def signature_of(function):
    return inspect.signature(function).parameters


# A question, and the functions that are asked one.
ASKING = ["Question", *(n for n, (f, _) in DOORS.items() if "question" in signature_of(f))]

# Values that are wrong elsewhere and right here.
NONE_IS_FINE = {
    "thresholds": "coarsen decision_limit reconcilable ReconcilableDisplay.from_tally "
    "NetBenefitDisplay.from_tally",
    "threshold": "watch layout handed_over report report_html",
    "tolerance": "watch report report_html",
    "confidence": "watch PlaneDisplay.from_tally MeasuresDisplay.from_tally "
    "NetBenefitDisplay.from_tally PredictiveValuesDisplay.from_tally ReliabilityDisplay.from_tally",
    "levels": "PlaneDisplay.from_tally",
    "unknown": "layout",
    "measures": "FrontierDisplay.from_tally FrontierDisplay.from_frontier",
    "score": "Rule.apply",
    "group": "Rule.apply",
    "output": "Rule.apply",
}
FINE = {(door, name): [None] for name, doors in NONE_IS_FINE.items() for door in doors.split()}
FINE |= {(door, "confidence"): [None] for door in ASKING}
COLUMN_ROLES = ("score", "label", "group", "weight", "person")
FINE |= {("tally_sql", name): ["nobody"] for name in COLUMN_ROLES}
FINE |= {
    (door, "measures"): [None, []]
    for door in ("audit", "intervals", "watch", "MeasuresDisplay.from_tally",
                 "MeasuresDisplay.from_audit")
}  # fmt: skip
FINE |= {
    ("reconcile", "tolerance"): [{}],
    ("Rule", "groups"): [["nobody"]],
    ("Rule", "method"): ["foo", ""],
    ("Tally.kinds", "threshold"): [0, 1],
    ("ReliabilityDisplay.from_tally", "replicates"): [1],
}

# Arguments that may be anything, or that other tests are about.
FREE = {
    "args", "asked", "ax", "force", "groups_from", "id", "keep_order", "kwargs", "memory_limit",
    "output_column", "missing_group", "options", "progress", "reading", "table", "threads",
}  # fmt: skip

# What is wrong with these is wrong with data, a file or a rule.
ABOUT_DATA = {
    "cells", "content", "data", "names", "positive", "sample_weight", "text", "y_score", "y_true",
}  # fmt: skip


# Fields of a question that are checked where they are used, which is not here.
UNUSED = {
    (door, field)
    for door in ASKING
    for field in ("measures", "reference")
    if door not in ("audit", "intervals")
}

CASES = [
    (door, argument)
    for door, (function, _) in DOORS.items()
    for argument in inspect.signature(function).parameters
    if argument not in FREE and (door, argument) not in UNUSED
]


def is_fine(door, argument, value):
    plain = isinstance(value, str | int | float | dict | list | None)
    return plain and value in FINE.get((door, argument), [])


@pytest.mark.parametrize(("door", "argument"), CASES)
def test_wrong_arguments_are_refused(door, argument, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, good = DOORS[door]
    for value in WRONG[argument]:
        if is_fine(door, argument, value):
            continue
        with pytest.raises(ic.IsocostError) as raised:
            function(**{**good, argument: value})
        error = raised.value
        if argument not in ABOUT_DATA and door not in ("Rule", "apply_file"):
            # Where data may be given, a path that leads nowhere is an error of its own.
            kinds = ic.UsageError | (ic.FileError if isinstance(value, str) else ic.UsageError)
            assert isinstance(error, kinds), value
        for problem in error.problems:
            parts = (problem.name, problem.rule, problem.got, problem.next_step)
            assert all(isinstance(part, str) and part for part in parts)
            assert max(map(len, parts)) < 1000
            "".join(parts).encode()
        if argument == "tally" and not isinstance(value, str | dict):
            assert problem.name == "tally"
            assert "a frame, a dict of arrays, or a path" in problem.rule
            assert "isocost.tally(data, score=..., label=..., group=...)" in problem.next_step
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("door", DOORS)
def test_right_arguments_are_not(door, tmp_path, monkeypatch):
    """Otherwise the test above would hold for any reason."""
    function, good = DOORS[door]
    needed = {k for k, v in inspect.signature(function).parameters.items() if v.default is v.empty}
    if not needed <= set(good) | {"options"} or door in ("apply_file", "look"):
        return
    monkeypatch.chdir(tmp_path)
    function(**good)


PEOPLE = pandas.DataFrame(
    [
        {"risk": cell.wh / cell.n, "came true": bool(cell.label), "race": cell.group}
        for cell in TALLY.to_frame(backend="pandas").itertuples()
        for _ in range(int(cell.n))
    ]
)
COLUMN_NAMES = {"score": "risk", "label": "came true", "group": "race"}
OF_TALLY = [
    (door, argument)
    for door, (_, good) in DOORS.items()
    for argument in ("tally", "audit", "tallies")
    if isinstance(good.get(argument), ic.Tally | list) and door not in ("Rule.expected", "report")
]


@pytest.mark.parametrize(("door", "argument"), OF_TALLY)
def test_data_may_take_the_place_of_a_tally(door, argument, tmp_path, monkeypatch):
    """With the keywords of isocost.tally; and thresholds become edges."""
    monkeypatch.chdir(tmp_path)
    # The page says when it was made.
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    function, good = DOORS[door]
    asked = set(inspect.signature(function).parameters)
    if "asked" in asked:
        asked |= {"threshold"}
    for name, value in (("threshold", 0.37), ("thresholds", [0.37, 0.5])):
        if name in asked and door not in ("layout", "RepairPlanDisplay.from_tally"):
            good = {**good, name: value}
    counted = ic.tally(PEOPLE, **COLUMN_NAMES, edges=(0.37, 0.63))
    several = [counted] if argument == "tallies" else counted
    rows = [PEOPLE] if argument == "tallies" else PEOPLE
    of_tally = shown(function(**{**good, argument: several}))
    assert shown(function(**{**good, argument: rows}, **COLUMN_NAMES)) == of_tally
    with pytest.raises(ic.UsageError, match="score: must be left out with this tally"):
        function(**{**good, argument: several}, score="risk")


def shown(result):
    """What a function returned, as text; of a display its numbers, and that it is drawn."""
    if isinstance(result, ic.Rule):
        return [result.rows, result.promise, result.notes]
    if hasattr(result, "figure_"):
        assert result.figure_.axes
        return [repr(value) for name, value in vars(result).items() if not name.endswith("_")]
    return repr(result)


def test_the_keywords_are_those_of_tally():
    """A new keyword of isocost.tally is one more line in isocost.tallies.ColumnOptions."""
    of_tally = inspect.signature(ic.tally).parameters.keys() - {"data"}
    assert DataOptions.__annotations__.keys() == of_tally


COLUMNS = [3, None, "x", [], {}, FRAME, [[1, 2]], object(), TALLY, ["a"], [None] * 4, iter([1])]


@pytest.mark.parametrize("role", COLUMN_ROLES)
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: type(column).__name__)
def test_wrong_columns_are_refused(role, column):
    arrays = {name: ROWS[name] for name in ("score", "label", "group")}
    if role not in ("weight", "person") or column is not None:
        with pytest.raises(ic.IsocostError, match="next: "):
            ic.tally(**{**arrays, role: column})
    ones = {"weight": [1, 1, 1, 1], "person": [1, 1, 1, 1]}
    with pytest.raises(ic.IsocostError, match="next: "):
        ic.tally({**arrays, **ones, role: column}, weight="weight", person="person")


@pytest.mark.parametrize("role", ["score", "group", "id"])
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: type(column).__name__)
def test_a_rule_refuses_wrong_columns(role, column):
    arrays = {"score": ROWS["score"], "group": ["Caucasian"] * 4, "id": ROWS["id"]}
    with pytest.raises(ic.IsocostError, match="next: "):
        RULE.apply(**{**arrays, role: column})
    with pytest.raises(ic.IsocostError, match="next: "):
        RULE.apply({**arrays, role: column}, id="id")


RESULTS = {
    "Audit", "LAYOUTS", "MEASURES", "Measure", "Promise", "REPAIRS", "Repair",
    "Verdict", "metrics",
}  # fmt: skip


def test_every_public_name_is_a_door():
    """A new public function must be added to the table above, a new result to the names."""
    doors = {name.partition(".")[0] for name in DOORS}
    public = {name for name in ic.__all__ if not name.startswith("__")}
    other = {
        name
        for name in public
        if isinstance(found := getattr(ic, name), type) and issubclass(found, Exception)
    }
    assert public - other - RESULTS <= doors
    assert set(plots.__all__) <= doors


def test_every_argument_has_wrong_values():
    assert {argument for _, argument in CASES} <= set(WRONG)
