"""The same everywhere: each engine has the tallies, repaired scores and errors of the arrays."""

import datetime as dt
import re
from dataclasses import replace

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost.cli.app import main
from isocost.coin import coins
from isocost.engines.frames import as_frame
from isocost.engines.lazy import _NATIVE, Guard, _misplaced, guarded
from isocost.grid import Grid
from isocost.rules import Row
from tests.coin_vectors import NUMBERS, SALT, TEXTS, by_hashlib
from tests.conftest import populations, sample
from tests.engines import (
    EAGER,
    ENGINES,
    FILES,
    LAZY,
    QUICK,
    SPARK_AND_PANDAS,
    Engine,
    as_lazy,
    by_id,
    columns_of,
    session_of,
)

pytestmark = pytest.mark.filterwarnings(SPARK_AND_PANDAS)

IN_MEMORY = (*EAGER, *LAZY)
WITHOUT_SPARK = (*EAGER, *QUICK, *FILES, "sql")
# JSON has no infinity and no NaN.
WITH_INFINITY = [name for name in ENGINES if name != "jsonl"]


@pytest.fixture(params=ENGINES)
def engine(request, tmp_path):
    return Engine(request.param, tmp_path, session_of(request.param, request))


def engines(names):
    """Run a test with some of the engines."""
    return pytest.mark.parametrize("engine", names, indirect=True)


# Counting


@pytest.mark.parametrize("name", ["polars", "duckdb", "parquet"])
@settings(max_examples=25, phases=[Phase.explicit, Phase.generate])
@given(data=populations(), bins=st.sampled_from([1, 7, 10, 1000, 1024]), edge=st.floats(0.01, 0.99))
def test_any_population(tmp_path_factory, name, data, bins, edge):
    options = {"weight": "weight", "bins": bins, "edges": (edge, 0.55)}
    engine = Engine(name, tmp_path_factory.mktemp("d"))
    assert engine.tally(data, **options) == ic.tally(data, **options)


@engines(["polars", "duckdb", "ibis", "parquet", "sql"])
@pytest.mark.parametrize(
    ("bins", "edges"), [(1024, ()), (1000, (0.55, 1 / 3)), (3, (0.5,)), (1, ())]
)
def test_scores_on_and_beside_every_edge(engine, bins, edges):
    grid = Grid(bins, edges)
    tenths, cuts = np.arange(21) / 20, grid.cuts
    near = [f(x) for x in (cuts, tenths) for f in (np.copy, lambda x: np.nextafter(x, -1))]
    near += [np.nextafter(cuts, 2), np.nextafter(tenths, 2)]
    score = np.unique(np.clip(np.concatenate(near), 0, 1))
    data = {"score": score, "label": np.arange(len(score)) % 2, "group": np.ones(len(score), int)}
    found = engine.tally(data, bins=bins, edges=edges)
    assert found == ic.tally(data, bins=bins, edges=edges)
    for label in (0, 1):
        mine = found.cells.label == label
        wanted = np.unique(grid.index(score[data["label"] == label]), return_counts=True)
        np.testing.assert_array_equal(
            np.stack([found.cells.bin[mine], found.cells.n[mine]]), wanted
        )


@pytest.mark.parametrize("parts", [1, 3, 7, 10, 365, 1000, 1024, 65535])
def test_the_scores_whose_product_rounds_across_an_edge_are_all_known(parts):
    cuts = np.arange(1, parts + 1) / parts
    near = np.concatenate([cuts, np.nextafter(cuts, 0), np.nextafter(np.nextafter(cuts, 0), 0)])
    near = np.concatenate([near, np.minimum(np.nextafter(cuts, 2), 1.0)])
    too_high, too_low = _misplaced(parts)
    place = np.floor(near * parts) - np.isin(near, too_high) + np.isin(near, too_low)
    np.testing.assert_array_equal(place, np.searchsorted(cuts, near, side="right"))


def test_weights_edges_and_the_number_of_bins(engine):
    data = sample(3000, groups=3, weighted=True)
    data["group"] = np.array(["a", "it's", "ünï"])[data["group"]]
    for options in ({"weight": "weight", "edges": (0.333,)}, {"bins": 1000}):
        found, expected = engine.tally(data, **options), ic.tally(data, **options)
        assert found == expected
        assert found.columns == expected.columns
        np.testing.assert_array_equal(found.cells.n, expected.cells.n)


def test_columns_with_any_name_are_counted(engine):
    names = {"score": "model.score", "label": 'it`s "y"', "group": "the; group--"}
    named = {names.get(name, name): values for name, values in sample(60).items()}
    assert engine.tally(named, **names) == ic.tally(named, **names)


@pytest.mark.parametrize(
    "groups", [[1, 2, -3, 2], [True, False, True, False], [0.5, 1.5, 0.5, 1.5]], ids=str
)
def test_groups_keep_their_type(engine, groups):
    data = {"score": [0.1, 0.2, 0.3, 1.0], "label": [0, 1, 1, 0], "group": groups}
    found = engine.tally(data)
    assert found == ic.tally(data)
    assert {type(group) for group in found.groups} == {type(groups[0])}


def test_several_group_columns_and_null_groups(engine):
    data = {
        "score": [0.1, 0.2, 0.3, 1.0],
        "label": [True, False, True, False],
        "sex": ["F", None, "M", "M"],
        "region": ["n", "s", "s", None],
    }
    options = {"group": ["sex", "region"], "missing_group": "?"}
    found = engine.tally(data, **options)
    assert found.groups == (("?", "s"), ("F", "n"), ("M", "?"), ("M", "s"))
    assert found == ic.tally(data, **options)


def test_labels_that_are_texts_and_named_labels(engine):
    data = {"score": [0.1, 0.2, 0.3], "label": ["1", "0", "1"], "group": ["a", "a", "b"]}
    assert engine.tally(data) == ic.tally(data)
    data["label"] = ["yes", "no", "yes"]
    assert engine.tally(data, positive="yes") == ic.tally(data, positive="yes")


@engines(["polars", "duckdb", "parquet", "sql"])
def test_named_labels_of_every_type(engine):
    data = {"score": [0.1, 0.2, 0.3], "group": ["a", "a", "b"]}
    for label, positive in (([1, 2, 1], 2), ([True, False, True], False), ([1.5, 0.0, 0.0], 0)):
        data["label"] = label
        assert engine.tally(data, positive=positive) == ic.tally(data, positive=positive)
    data["label"] = [1.0, float("nan"), None]
    with pytest.raises(ic.DataError, match="2 null or NaN"):
        engine.tally(data, positive=1)


# What is wrong with rows


BAD = {
    "score": [0.1, None, float("inf"), 1.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
    "label": [0, 1, 0, 1, None, 7, 0, 1, 0, 1],
    "group": ["a", "a", "a", "b", "b", "b", None, None, "b", "b"],
    "weight": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, -2.0, float("inf"), 1e-200],
}  # fmt: skip
NAMED_BAD = {
    "my score": [float("nan"), 0.5, -0.25],
    'la"bel': ["0", "x", "1"],
    "the group": ["a", "b", None],
}


@engines([name for name in WITH_INFINITY if name != "reader"])
@pytest.mark.parametrize(
    ("data", "options"),
    [
        (BAD, {"weight": "weight"}),
        (NAMED_BAD, {"score": "my score", "label": 'la"bel', "group": "the group"}),
    ],
)
def test_bad_rows_are_told_together_and_alike(engine, data, options):
    def plain(error):
        """The error without the numbers of rows, which not all engines have."""
        text = re.sub(r" \(first: in row \d+\)", "", str(error.value).replace("least:", "first:"))
        text = re.sub(r" in row \d+", "", text).replace(", counted from 0", "").replace("7.0", "7")
        # A query brings no example back, and no other labels.
        text = re.sub(r" \(first:[^)]*\)", "", text) if engine.name == "sql" else text
        return re.sub("next: .*", "", text) if engine.name in ("sql", "csv") else text

    with pytest.raises(ic.DataError) as expected:
        ic.tally(data, **options)
    with pytest.raises(ic.DataError) as found:
        engine.tally(data, **options)
    assert plain(found) == plain(expected)


def test_positive_labels_that_are_not_there_or_one_of_three(engine):
    data = {"score": [0.1, 0.2, 0.3], "label": ["a", "b", "c"], "group": ["x", "x", "y"]}
    with pytest.raises(ic.DataError, match="label: must have two values") as error:
        engine.tally(data, positive="b")
    assert re.search(r"3 or more: ('a', 'b', 'c'|'b', 'a', 'c')", str(error.value))
    data["label"] = ["a", "c", "c"]
    with pytest.raises(ic.DataError, match="must hold the positive label 'q'") as error:
        engine.tally(data, positive="q")
    assert "only 'a', 'c'" in str(error.value)


@engines([name for name in ENGINES if name != "sql"])
def test_missing_columns_are_named_before_any_row_is_read(engine):
    data = {"scor": [0.1], "label": [0], "group": ["a"]}
    with pytest.raises(ic.UsageError, match='did you mean score="scor"') as error:
        engine.tally(data, weight="w")
    assert len(error.value.problems) == 2


@engines([name for name in ENGINES if name != "jsonl"])
def test_no_rows(engine):
    fields = {"score": pa.float64(), "label": pa.int64(), "group": pa.string()}
    with pytest.raises(ic.DataError, match="must have at least one row\n  got:  0 rows"):
        engine.tally(pa.schema(list(fields.items())).empty_table())


@engines(["polars", "duckdb"])
def test_types_of_columns(engine):
    data = {"score": ["high"], "label": [0], "group": ["a"]}
    with pytest.raises(ic.DataError, match="score: must hold numbers\n  got:  a column of type S"):
        engine.tally(data)
    data = {"score": [0.5], "label": [0], "group": [dt.date(2026, 1, 1)]}
    with pytest.raises(ic.DataError, match="group: values must be text, numbers or booleans"):
        engine.tally(data)
    table = pa.table(
        {
            "score": pa.array([0.25, 0.5, 1.0], pa.float32()),
            "label": pa.array([1, 0, 1], pa.uint8()),
            "group": pa.array(["x", "y", "x"]).dictionary_encode(),
        }
    )
    plain = {"score": [0.25, 0.5, 1.0], "label": [1, 0, 1], "group": ["x", "y", "x"]}
    assert engine.tally(table) == ic.tally(plain)
    booleans = {**plain, "score": [True, False, True]}
    assert engine.tally(booleans) == ic.tally(booleans)
    with pytest.raises(ic.DataError, match="3 null or NaN"):
        engine.tally(table.set_column(0, "score", pa.nulls(3)))
    with pytest.raises(ic.DataError, match="group: must be known"):
        engine.tally(table.set_column(2, "group", pa.nulls(3)))


def test_types_without_a_name_are_refused_unless_all_is_null():
    for value in ("'\"a\"'::JSON", "uuid()", "'101'::BIT", "MAP {1: 2}"):
        for role in ("score", "label", "group"):
            columns = {"score": "0.5e0", "label": "1", "group": "'a'"} | {role: value}
            listed = ", ".join(f'{text} AS "{name}"' for name, text in columns.items())
            with pytest.raises(ic.DataError, match=f"{role}: values must be text, numbers or b"):
                ic.tally(duckdb.sql(f"SELECT {listed}"))
    empty = duckdb.sql('SELECT 0.5e0 AS score, 1 AS label, NULL AS "group"')
    assert ic.tally(empty, missing_group="?").groups == ("?",)


@engines([*WITHOUT_SPARK[:-1]])
@pytest.mark.parametrize(
    ("labels", "step"),
    [
        (("no", "yes"), 'next: name the positive label: positive="yes"'),
        ((-1, 1), "name the positive label: positive=1"),
        ((1, 2), "say with positive= whether 1 or 2 is the positive label"),
        (("bad", "good"), "say with positive= whether 'bad' or 'good' is the positive label"),
        (("low", "middle", "high"), "positive= if the column has two other values"),
    ],
)
def test_labels_in_words_are_answered_with_these_words(engine, labels, step):
    data = {"score": [0.2, 0.4, 0.7] * 2, "group": ["a", "b"] * 3}
    data["label"] = [labels[i % len(labels)] for i in range(6)]
    with pytest.raises(ic.DataError, match=re.escape(step)):
        engine.tally(data)


@engines(["dict", "polars"])
@pytest.mark.parametrize(
    ("labels", "step"),
    [
        (
            ("no", None, "yes"),
            r'a label \(drop_missing=True drops them\), .*; name .*: positive="yes"',
        ),
        ((0, 1, 2), "next: drop rows without a label; .* if the column has two other values"),
        (
            (0.0, None, 1.0),
            r"a label \(drop_missing=True .*\), .*; name .* if the column has two other",
        ),
    ],
)
def test_labels_that_are_missing_or_more_than_two(engine, labels, step):
    rows = {"score": [0.2, 0.4, 0.7] * 2, "group": ["a", "b"] * 3, "label": labels * 2}
    with pytest.raises(ic.DataError, match=step):
        engine.tally(rows)


def test_one_pass_over_the_rows_and_one_more_for_an_example_of_a_bad_one():
    passes = []

    def watched(frame):
        passes.append(len(frame))
        return frame

    # Bad scores and labels take one more: for the scales that fit, and the two labels there are.
    for score, label, expected in ((0.5, 1, [2]), (0.5, 3, [2, 2, 2]), (1.5, 1, [2, 2, 2])):
        data = pl.DataFrame({"score": [0.1, score], "label": [0, label], "group": ["a", "b"]})
        frame = data.lazy().map_batches(
            watched, schema=data.schema, predicate_pushdown=False, projection_pushdown=False
        )
        try:
            ic.tally(frame)
        except ic.DataError:
            assert score > 1 or label > 1
        assert passes == expected
        passes.clear()


# Missing values: what is wrong in a row that is dropped anyway is not looked at.  Row 2 has a score
# above 1, row 5 a third label, row 8 no weight at all.  Row 11 lacks two values.
ROWS = [
    (0.10, "no", "F", "young", 1.0),
    (0.70, "yes", "F", "young", 2.0),
    (1.70, None, "F", "young", 1.0),
    (0.40, "no", "M", "old", 1.5),
    (0.90, "yes", "M", "old", 1.0),
    (0.50, "maybe", None, "old", 1.0),
    (0.30, "yes", "M", None, 1.0),
    (None, "yes", "M", "old", 1.0),
    (0.60, "no", "F", "young", None),
    (0.80, "yes", "F", "young", 0.5),
    (0.20, "no", "M", "old", 1.0),
    (None, "no", None, "old", 1.0),
    (None, "yes", "F", "young", 3.0),
]
NAMES = ("p", "y", "sex", "age", "w")
COLUMNS = {"score": "p", "label": "y", "group": ["sex", "age"], "weight": "w"}
LACKING = {name: [row[i] for row in ROWS] for i, name in enumerate(NAMES)}
KEPT = {name: [row[i] for row in ROWS if None not in row] for i, name in enumerate(NAMES)}


def test_the_same_rows_are_dropped_and_counted(engine):
    options = {**COLUMNS, "positive": "yes"}
    tally = engine.tally(LACKING, **options, drop_missing=True)
    assert tally == ic.tally(KEPT, **options)
    reading = tally.reading
    assert reading.dropped_rows == 7
    assert dict(reading.missing_values) == {"p": 3, "y": 1, "sex": 2, "age": 1, "w": 1}
    assert (reading.positive, reading.drop_missing) == ("yes", True)
    with pytest.raises(ic.DataError, match=r"drop_missing=True drops them"):
        engine.tally(LACKING, **options)
    if engine.name == "sql":
        return
    # People handed over need neither score nor label.
    both = engine.tally(LACKING, **options, drop_missing=True, handed_over=True)
    assert both == ic.tally(KEPT, **options).rebuilt(tally.cells, handed_over=both.handed_over)
    assert both.handed_over == {("F", "young"): (1.0, 3.0, 9.0), ("M", "old"): (1.0, 1.0, 1.0)}
    assert (both.reading.dropped_rows, both.reading.missing_values["sex"]) == (5, 2)
    assert "p" not in both.reading.missing_values
    assert both.reading.handed_over


CHOICES = [
    (label, group, rest)
    for label in ("refuse", "drop", "keep")
    for group in ("refuse", "drop", "keep", "?")
    for rest in (False, True)
]


@pytest.mark.parametrize(("label", "group", "rest"), CHOICES)
def test_every_treatment_of_missing_values_counts_the_same_rows(engine, label, group, rest):
    # A missing weight is one of the values that may be dropped.
    weight = "w" if rest else None
    rows = [row for row in ROWS if row[1] != "maybe" and row[0] != 1.7]
    rows += [
        (0.3, None, "F", "young", 2.0),
        (0.3, None, None, None, 1.0),
        (0.4, "no", None, "old", 1.0),
    ]
    rows = [row for row in rows if rest or (row[0] is not None and row[4] is not None)]
    data = {name: [row[i] for row in rows] for i, name in enumerate(NAMES)}
    asked = {"missing_label": label, "missing_group": group, "drop_missing": rest}
    options = {**COLUMNS, "weight": weight, "positive": "yes", **asked}
    if not rest and "refuse" in (label, group):
        with pytest.raises(ic.DataError, match='"keep" counts them as unknown'):
            engine.tally(data, **options)
        return
    # One row after the other, in plain Python.
    label, group = ("drop" if one == "refuse" else one for one in (label, group))
    cells, dropped, unknown = {}, 0, 0
    for score, outcome, sex, age, w in rows:
        lacks_group = None in (sex, age)
        if (score is None or (weight and w is None) or (outcome is None and label == "drop")
                or (lacks_group and group == "drop")):  # fmt: skip
            dropped += 1
            continue
        unknown += outcome is None or (lacks_group and group == "keep")
        named = tuple(group if part is None else part for part in (sex, age))
        key = (None if lacks_group and group == "keep" else named, outcome, score)
        sums = cells.setdefault(key, [0, 0.0])
        sums[0], sums[1] = sums[0] + 1, sums[1] + (w if weight else 1.0)
    tally = engine.tally(data, **options)
    found = {}
    for groups, part in ((tally.groups, tally.cells), (tally.unknown.groups, tally.unknown.cells)):
        columns = (part.group, part.label, part.wh / part.w, part.n, part.w)
        for g, y, h, n, w in zip(*(x.tolist() for x in columns), strict=True):
            outcome = ("no", "yes", None)[y]
            found[groups[g], outcome, round(h, 6)] = [n, pytest.approx(w)]
    assert found == cells
    reading = tally.reading
    assert (reading.dropped_rows, reading.unknown_rows) == (dropped, unknown)
    assert (reading.missing_label, reading.missing_group) == (label, group)
    assert ic.Tally.from_json(tally.to_json()) == tally


def rows_of_persons(count=240):
    """Rows of 40 persons, some of whom have rows in several groups, and some lack a value."""
    draw = np.random.default_rng(7)
    rows = []
    for index in range(count):
        person = int(draw.integers(40))
        score, group = float(draw.integers(1, 100)) / 100, "abc"[person % 3]
        group = None if index % 29 == 0 else "a" if index % 31 == 0 else group
        label = None if index % 17 == 0 else int(draw.random() < score)
        weight = None if index % 53 == 0 else float(draw.integers(1, 9)) / 4
        rows.append((score, label, group, weight, None if index % 41 == 0 else f"id {person}"))
    return rows


def person_sums(rows, thresholds):
    """Per group, by brute force: persons and the sum of T T'; and how many are in several."""
    sums = {}
    for score, label, group, weight, person in rows:
        terms = [1.0, score, score**2, *(float(score >= edge) for edge in thresholds)]
        own = sums.setdefault((group, person), np.zeros(2 * len(terms)))
        own[label * len(terms) :][: len(terms)] += weight * np.array(terms)
    found = {}
    for (group, _), own in sums.items():
        number, products = found.get(group, (0, 0.0))
        found[group] = (number + 1, products + np.outer(own, own))
    persons = [person for _, person in sums]
    return found, sum(persons.count(person) > 1 for person in set(persons))


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("missing", ["none", "drop", "keep", "?"])
def test_every_engine_counts_the_same_persons(engine, missing, weight):
    rows, edges = rows_of_persons(), (0.3, 0.412)
    names = ("score", "label", "group", "weight", "person")
    options = {"person": "person", "weight": weight, "edges": edges}
    if missing == "none":
        rows = [row for row in rows if None not in row]
    else:
        options |= {"drop_missing": True, "missing_group": missing, "missing_label": "keep"}
    tally = engine.tally({n: [row[i] for row in rows] for i, n in enumerate(names)}, **options)
    used = [
        (score, label, missing if group is None else group, w if weight else 1.0, person)
        for score, label, group, w, person in rows
        if label is not None and (w or not weight) and person is not None
        and (group is not None or missing == "?")
    ]  # fmt: skip
    expected, several = person_sums(used, edges)
    persons = tally.persons
    assert tally.groups == tuple(sorted(expected))
    assert persons.thresholds == edges
    assert persons.several == several > 0
    for index, group in enumerate(tally.groups):
        number, products = expected[group]
        assert persons.number[index] == number
        np.testing.assert_allclose(persons.products[index], products, rtol=1e-12)
    assert tally.reading.columns["person"] == "person"
    assert "--person=person" in tally.reading.options()
    again = ic.Tally.from_json(tally.to_json())
    assert again == tally
    assert again.fingerprint == tally.fingerprint


def test_every_engine_asks_for_persons(engine):
    rows = [row for row in rows_of_persons() if None not in row[:4]]
    data = {n: [r[i] for r in rows] for i, n in enumerate(("score", "label", "group", "_", "who"))}
    lacking = sum(row[4] is None for row in rows)
    message = rf"person .column 'who'.: must be known in every row\n  got:  {lacking} null"
    with pytest.raises(ic.DataError, match=message):
        engine.tally(data, person="who")
    with pytest.raises(ic.UsageError if engine.name != "sql" else Exception, match="whose"):
        engine.tally(data, person="whose")


@engines(WITHOUT_SPARK)
def test_a_named_group_keeps_its_rows(engine):
    data = {**LACKING, "y": ["no" if y == "maybe" else y for y in LACKING["y"]]}
    options = {**COLUMNS, "positive": "yes", "missing_group": "?"}
    tally = engine.tally(data, **options, drop_missing=True)
    assert dict(tally.reading.missing_values) == {"p": 3, "y": 1, "w": 1}
    assert {("?", "old"), ("M", "?")} <= set(tally.groups)


@engines(WITHOUT_SPARK)
def test_nothing_is_left(engine):
    data = {"score": [0.1, None], "label": [None, 1], "group": ["a", "b"]}
    message = r"must have a row without missing values\n  got:  2 rows, all dropped: 1 without"
    with pytest.raises(ic.DataError, match=message):
        engine.tally(data, drop_missing=True)
    with pytest.raises(ic.UsageError, match="drop_missing: must be"):
        engine.tally(data, drop_missing="yes")


@engines(["dict", "polars eager", "polars"])
def test_ranks_keep_the_range_of_all_rows(engine):
    data = {"score": [1, 5, 10, 3, 7], "label": [0, 1, None, 0, 1], "group": list("aabbb")}
    assert engine.tally(data, scale="rank", drop_missing=True).reading.scale == "rank:1-10"


# Applying rules

RULE = ic.Rule(
    groups=("a", "it's", "ünï", "untouched"),
    rows=(
        Row("a", 0.0, 0.5, "set", 0.25, 0.3),
        Row("a", 0.0, 0.5, "mirror", None, 0.3),
        Row("a", 0.5, 1.0, "set", 0.75, 0.0),
        Row("it's", 0.5, 1.0, "set", 0.1, 1.0),
        Row("it's", 0.0, 0.25, "line", 0.3, 0.5, 1.0),
        Row("it's", 0.0, 0.25, "line", 0.2, 0.25, 0.0),
        Row("it's", 0.3, 0.5, "line", 0.1, 1.0, 1 / 3),
        Row("ünï", 0.0, 1.0, "mirror", None, 0.5),
    ),
    method="test",
)
DEFERRING = replace(RULE, rows=(*RULE.rows, Row("ünï", 0.0, 1.0, "defer", None, 0.2)))
SMALL = {"score": [0.1, 0.9], "group": ["a", "untouched"], "id": ["x", "y"]}


def rows(size=600):
    data = sample(size, groups=4)
    data["group"] = np.array(RULE.groups)[data["group"]]
    data["score"][:4], data["group"][:4] = (0.0, 0.5, 1.0, 1.0), ("a", "a", "it's", "ünï")
    return data


def test_the_same_scores_as_the_arrays(engine):
    data = rows()
    written = {"output": "repaired", "changed": "moved", "handed_over": "gone"}
    expected = DEFERRING.apply(data, id="id", **written)
    found = by_id(engine.apply(DEFERRING, data, id="id", **written))
    assert list(found) == list(expected)
    if engine.name not in ("dict", "pandas", "pandas nullable", "dask"):
        assert [x is None for x in found["repaired"]] == found["gone"], "null, and not NaN"
    found["repaired"] = np.array(found["repaired"], dtype=float).tolist()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
    assert 0.02 < np.mean(found["gone"]) < 0.1
    assert 0.2 < np.mean(found["moved"]) < 0.6


@engines([name for name in IN_MEMORY if name != "reader"])
def test_the_same_kind_comes_back_and_what_came_in_is_as_it_was(engine):
    data = rows(60)
    frame = engine.hold({**data})
    for output in ("new", "score"):
        assert type(RULE.apply(frame, id="id", output=output)) is type(frame)
    found = by_id(engine.read(frame))
    assert (list(found), found["score"]) == (list(data), data["score"].tolist())


def test_the_score_column_is_replaced_where_it_stands(engine):
    data = rows(60)
    found = engine.apply(RULE, data, id="id", output="score")
    assert list(found) == list(data)
    assert by_id(found)["score"] == RULE.apply(data, id="id")["repaired_score"].tolist()


def test_columns_with_any_name_are_repaired(engine):
    names = {"score": "model.score", "id": 'it`s "who"', "group": "the; group--"}
    data = rows(60)
    named = {names.get(name, name): values for name, values in data.items()}
    named["c1"] = np.arange(60) / 8
    written = {"output": "new.score", "changed": "c2"}
    found = engine.apply(RULE, named, **names, **written)
    assert list(found) == [*named, "new.score", "c2"]
    found, expected = by_id(found, names["id"]), RULE.apply(data, **written, id="id")
    for name, values in (("c1", named["c1"]), *((n, expected[n]) for n in written.values())):
        assert found[name] == values.tolist()


@engines(WITHOUT_SPARK)
def test_bounds_and_values_of_a_rule_are_exact(engine):
    # As decimals, these are not the nearest doubles under ibis and DuckDB before 2.0.
    low, high, value = 0.18999999999999997, 0.44899999999999995, 0.37899999999999995
    rule = ic.Rule(("a",), (Row("a", low, high, "set", value, 1.0),), "test")
    near = [np.nextafter([low, high], 0), [low, high], np.nextafter([low, high], 1)]
    data = {"score": np.concatenate(near), "group": ["a"] * 6}
    expected = rule.apply(data)["repaired_score"].tolist()
    assert expected.count(value) == 3
    assert engine.apply(rule, data)["repaired_score"] == expected


@engines(WITHOUT_SPARK)
def test_several_group_columns_with_nulls_and_unknown_groups(engine):
    data = {
        "score": [0.2, 0.4, 0.6, 0.8],
        "sex": ["F", "M", None, "X"],
        "age": [30, 40, 30, 50],
        "isocost_score": [1, 2, 3, 4],
        "id": ["p", "q", "r", "s"],
    }
    first, second = (
        Row(("F", 30), 0.0, 1.0, "set", 0.5, 1.0),
        Row(("?", 30), 0, 1, "mirror", None, 1),
    )
    rule = ic.Rule((("F", 30), ("M", 40), ("?", 30)), (first, second), "test")
    options = {"group": ["sex", "age"], "missing_group": "?", "unknown": "keep"}
    found = engine.apply(rule, data, **options)
    assert found["repaired_score"] == [0.5, 0.4, 1.0 - 0.6, 0.8]
    assert list(found) == [*data, "repaired_score"]
    told = "group that the rule does not know" if engine.name == "sql" else "must be one the rule"
    with pytest.raises(Exception, match=told):
        engine.apply(rule, data, **(options | {"unknown": "error"}))
    told = "null group" if engine.name == "sql" else r"\(column 'sex, age'\): must be known in ev"
    with pytest.raises(Exception, match=told):
        engine.apply(rule, data, **(options | {"missing_group": None}))


@engines((*EAGER, *QUICK, "csv", "parquet"))
@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        (
            "score",
            None,
            r"score: must be a number in .0, 1. in every row\n  got:  (1 )?null or NaN",
        ),
        (
            "score",
            float("nan"),
            r"score: must be a number in .0, 1. in every row\n  got:  (1 )?null",
        ),
        ("score", float("inf"), "got:  (1 )?(infinite|outside)"),
        ("score", 1.0000001, "got:  (1 )?outside .0, 1."),
        ("group", None, "group: must be known in every row\n  got:  (1 )?null"),
        ("group", "b", "group: must be one the rule knows: 'a', .*\n  got:  (another group|'b')"),
        ("id", None, "id: must be a whole number or a text in every row\n  got: .* ?null"),
    ],
)
def test_a_bad_row_is_refused_by_lazy_engines_when_they_come_to_it(engine, column, value, text):
    data = {**SMALL, column: [SMALL[column][0], value]}
    if not engine.is_lazy:
        with pytest.raises(ic.IsocostError, match=text):
            engine.apply(RULE, data, id="id")
        return
    out = RULE.apply(engine.hold(data), id="id")  # nothing is read yet
    with pytest.raises(Exception, match=text):
        engine.read(out)
    out = RULE.apply(engine.hold(data), id="id", output="new")
    with pytest.raises(Exception, match=text):
        engine.read(out[["new"]] if engine.name == "dask" else out.select("new"))


@engines(LAZY)
def test_types_are_told_at_once(engine):
    data = {"score": [0.1], "group": ["a"], "id": [1.5]}
    with pytest.raises(ic.DataError, match="got:  a column of type Float64"):
        RULE.apply(engine.hold(data), id="id")
    data = {"score": [0.1], "group": [3], "id": [1]}
    with pytest.raises(ic.UsageError, match="group: must be one the rule knows") as error:
        RULE.apply(engine.hold(data), id="id")
    assert "got:  type Int64" in str(error.value)
    assert "of the names and types" in str(error.value)


@engines(QUICK)
def test_what_cannot_be_meant_is_refused(engine):
    data = {"score": [0.1], "group": ["a"], "id": [1]}
    frame = engine.hold(data)
    for options, message in (
        ({"seed": 0}, "seed: needs rows in a fixed order"),
        ({"id": "idd"}, 'did you mean id="id"'),
        ({"score": "h", "id": "id"}, "must name a column of the data"),
        ({"group": ["group", "id"], "id": "id"}, "2 group columns of type String, Int64"),
    ):
        with pytest.raises(ic.UsageError, match=message):
            RULE.apply(frame, **options)
    for ids in ([True], [None]):
        with pytest.raises((ValueError, duckdb.Error), match="id: must be a whole number or a"):
            engine.apply(RULE, {**data, "id": ids}, id="id")


@engines([name for name in WITHOUT_SPARK if name not in ("csv", "sql")])
def test_groups_are_compared_as_python_does(engine):
    rule = ic.Rule(groups=(1, 2), rows=(Row(1, 0.0, 1.0, "set", 0.5, 1.0),), method="test")
    data = {"score": [0.1, 0.9], "group": [1.0, 2.0]}
    assert engine.apply(rule, data)["repaired_score"] == [0.5, 0.9]
    data["group"] = [True, False]  # True is 1 in Python; False is not 2
    assert engine.apply(rule, data, unknown="keep")["repaired_score"] == [0.5, 0.9]
    data["group"] = ["1", "2"]
    kept = engine.apply(rule, data, unknown="keep", changed="c")
    assert kept["repaired_score"] == [0.1, 0.9]
    assert kept["c"] == [False, False]


def test_engines_without_a_coin_are_named(monkeypatch):
    monkeypatch.delitem(_NATIVE, "polars")
    with pytest.raises(ic.UsageError, match="must be of an engine that has the coin: duckdb, ibis"):
        RULE.apply(as_lazy("polars", SMALL), id="id")


def test_ibis_tables_elsewhere_are_refused():
    ibis = pytest.importorskip("ibis")
    table = ibis.polars.connect({"t": pl.DataFrame(SMALL)}).table("t")
    with pytest.raises(ic.UsageError, match="must be on DuckDB to be repaired through ibis"):
        RULE.apply(table, id="id")


# Coins


@pytest.mark.parametrize("ids", [NUMBERS, TEXTS], ids=["numbers", "texts"])
@engines(IN_MEMORY)
def test_coins_bit_for_bit(engine, ids):
    """The same ids throw the same coins on every engine, to the last of their 52 bits."""
    import narwhals as nw

    expected = [by_hashlib(value) for value in ids]
    data = {"id": ids, "h": [0.5] * len(ids), "fault": [0] * len(ids)}
    if not engine.is_lazy:
        held = engine.hold(data)
        held = held.read_all() if engine.name == "reader" else held
        column = np.array(ids) if engine.name == "dict" else as_frame(held).ids("id")
        assert coins(column, SALT).tolist() == expected
        return
    guard = Guard("h", "fault", {1: "no"}, "id", SALT, "checked", "coin")
    found = columns_of(engine.name, nw.to_native(guarded(nw.from_native(engine.hold(data)), guard)))
    thrown = [int(c, 16) if isinstance(c, str) else c for c in found["coin"]]
    # By id, because some engines keep no order.
    wanted = dict(zip(ids, expected, strict=True))
    assert dict(zip(found["id"], thrown, strict=True)) == wanted


def test_the_vectors_tell_engines_apart_that_would_normalise_or_round():
    # A lower-casing, NFC-normalising, or float engine would map two of these to one.
    assert len(set(map(by_hashlib, NUMBERS + TEXTS))) == len(NUMBERS + TEXTS)
    assert float(2**53 + 1) == float(2**53)


@pytest.mark.parametrize("ids", [[1.5, 2.0], ["x", None], [7, None]], ids=str)
def test_null_and_float_ids_are_refused(engine, ids):
    rule = ic.Rule(("a",), (Row("a", 0.0, 1.0, "set", 0.5, 0.5),), "test")
    told = "null or float id" if engine.name == "sql" else "id: must be a whole number or a text in"
    with pytest.raises(Exception, match=told) as error:
        engine.apply(rule, {"score": [0.1, 0.2], "group": ["a", "a"], "id": ids}, id="id")
    # A lazy engine stops when it comes to a row; the type of a column is told at once.
    if engine.name != "sql" and not (engine.is_lazy and None in ids):
        assert isinstance(error.value, ic.DataError)


# Columns of the rule: one convention on every engine, and in the shell

STORED = {"score": "p_deny", "label": "denied", "group": ["race"], "weight": None}
CONVENTION = ic.Rule(
    ("a", "b"),
    (Row("a", 0.0, 1.0, "set", 0.75, 0.5),),
    "test",
    made_from={"reading": {"columns": STORED}},
)
WITH_ID = replace(CONVENTION, made_from={"reading": {"columns": {**STORED, "id": "who"}}})
PEOPLE = {
    "who": [1, 2, 3, 4, 5, 6],
    "score": [0.5] * 6,
    "race": ["a", "a", "a", "b", "b", "b"],
    "p_deny": [0.125, 0.25, 0.5, 0.125, 0.25, 0.5],
}
REPAIRED = CONVENTION.apply(score=PEOPLE["p_deny"], group=PEOPLE["race"], id=PEOPLE["who"]).tolist()


class Shell(Engine):
    """The command line, on a CSV."""

    def apply(self, rule, data, **options):
        source, target = self.hold(data), self.folder / "out.csv"
        rule.save(self.folder / "rule.json")
        names = {"output": "output-column"}
        line = [f"--{names.get(name, name)}={value}" for name, value in options.items()]
        words = ["apply", self.folder / "rule.json", source, "-o", target, "--force", *line]
        with pytest.raises(SystemExit) as left:
            main(list(map(str, words)))
        if left.value.code:
            raise ic.UsageError(())
        return self.read(target)


@pytest.fixture(params=[*ENGINES, "shell"])
def door(request, tmp_path):
    """A function that applies a rule to a dict of lists, and gives one back in order."""
    kind, spark = request.param, session_of(request.param, request)
    engine = Shell("csv", tmp_path) if kind == "shell" else Engine(kind, tmp_path, spark)
    return lambda rule, data, **options: by_id(engine.apply(rule, data, **options), "who")


@pytest.mark.parametrize("given", [{}, {"score": "p_deny"}])
def test_a_column_is_added_and_none_is_touched(door, given):
    found = door(CONVENTION, PEOPLE, id="who", **given)
    assert found == {**PEOPLE, "repaired_p_deny": REPAIRED}
    assert list(found) == [*PEOPLE, "repaired_p_deny"]
    assert door(WITH_ID, PEOPLE, **given) == found


def test_other_columns_than_those_stored(door):
    data = {name: values for name, values in PEOPLE.items() if name != "score"}
    data["risk"] = data.pop("p_deny")
    assert door(CONVENTION, data, id="who", score="risk")["repaired_risk"] == REPAIRED


@pytest.mark.parametrize("output", ["p_deny", "score", "new"])
def test_a_column_is_replaced_if_it_is_named(door, output):
    found = door(CONVENTION, PEOPLE, id="who", output=output)
    assert found == {**PEOPLE, output: REPAIRED}
    assert list(found) == list({**PEOPLE, output: None})


def test_a_clash_is_an_error_with_a_way_out(door):
    data = {**PEOPLE, "repaired_p_deny": [0.0] * 6}
    with pytest.raises(ic.UsageError) as error:
        door(CONVENTION, data, id="who")
    for problem in error.value.problems:
        assert problem.name in ("output", "output_column")
        assert problem.rule == "must be named, because a column with the usual name exists"
        assert problem.got == "a column 'repaired_p_deny' in the data"
        named = f'pass {problem.name}="repaired_p_deny" to replace that column, or another name'
        assert problem.next_step == named
    found = door(CONVENTION, data, id="who", output="repaired_p_deny")
    assert found == {**PEOPLE, "repaired_p_deny": REPAIRED}


def test_a_coin_asks_for_the_id(door):
    data = {**PEOPLE, "id": PEOPLE["who"]}
    with pytest.raises(ic.UsageError) as error:
        door(CONVENTION, data)
    for problem in error.value.problems:
        assert problem.name == "id"
        assert problem.rule == "must be given, because this rule throws a coin"
    certain = replace(CONVENTION, rows=(Row("a", 0.0, 1.0, "set", 0.75, 1.0),))
    assert door(certain, data)["repaired_p_deny"][:3] == [0.75] * 3


def test_rows_without_a_group_are_those_of_the_rule(door):
    rule = replace(CONVENTION, made_from={"reading": {"columns": STORED, "missing_group": "a"}})
    data = {**PEOPLE, "race": [None, "a", "a", "b", "b", "b"]}
    assert door(rule, data, id="who")["repaired_p_deny"] == REPAIRED


def test_a_name_that_differs_by_case_is_taken_where_case_is_ignored():
    data = {**PEOPLE, "Repaired_P_deny": [0.0] * 6}
    with pytest.raises(ic.UsageError, match='pass output="Repaired_P_deny" to replace'):
        CONVENTION.apply(as_lazy("duckdb", data), id="who")
    assert list(CONVENTION.apply(data, id="who")) == [*data, "repaired_p_deny"]


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
    empty = pa.table(PEOPLE).slice(0, 0).to_reader()
    out = CONVENTION.apply(empty, id="who", changed="moved").read_all()
    assert out.column_names == [*PEOPLE, "repaired_p_deny", "moved"]
    assert out.schema.field("repaired_p_deny").type == pa.float64()
