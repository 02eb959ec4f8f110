"""Decimal commas, and what else texts in files may be: each with its good case and its bad."""

import base64
from datetime import timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import isocost as ic
from isocost.engines.kinds import durations_of
from isocost.rules import Row

SCORES = [0.0, 0.25, 0.125, 1.0, 0.9, 3e-05, 0.5, 0.75]
DATA = {"score": SCORES, "label": [0, 1, 0, 1, 1, 0, 0, 1], "group": list("aabbaabb")}
WEIGHTS = [1.5, 2.0, 0.25, 1.0, 3.0, 1.0, 1.0, 12.5]
TALLY = ic.tally(DATA)


def comma(number):
    return str(number).replace(".", ",")


def written(tmp_path, columns, separator=";", name="d.csv"):
    lines = [separator.join(columns), *(separator.join(map(str, row)) for row in
             zip(*columns.values(), strict=True))]  # fmt: skip
    (tmp_path / name).write_text("\r\n".join(lines) + "\r\n", encoding="utf-8")
    return tmp_path / name


@pytest.mark.parametrize("options", [{}, {"decimal": ","}])
def test_decimal_commas(tmp_path, options):
    rows = {**DATA, "score": list(map(comma, SCORES)), "weight": list(map(comma, WEIGHTS))}
    path = written(tmp_path, rows)
    assert ic.tally(path, **options) == TALLY
    assert ic.tally(path, **options).reading.decimal == ","
    weighted = ic.tally({**DATA, "weight": WEIGHTS}, weight="weight")
    assert ic.tally(path, weight="weight", **options) == weighted
    # In a CSV with commas they are quoted; labels may be 1,0 too; frames hold texts.
    quoted = {**rows, "score": [f'"{text}"' for text in rows["score"]]}
    quoted["label"] = [f'"{label},0"' for label in DATA["label"]]
    quoted.pop("weight")
    assert ic.tally(written(tmp_path, quoted, ","), decimal=",") == TALLY
    for data in (rows, pd.DataFrame(rows)):
        assert ic.tally(data, **options) == TALLY
        assert ic.tally(data, **options).reading.decimal == ","


def test_a_file_with_commas_comes_back_with_commas(tmp_path):
    path = written(tmp_path, {**DATA, "score": map(comma, SCORES), "x": map(comma, WEIGHTS)})
    rule = ic.Rule(("a", "b"), (), "none")
    ic.apply_file(rule, path, tmp_path / "out.csv", id="id")
    text = (tmp_path / "out.csv").read_text()
    assert text.splitlines()[2] == "0,25;1;a;2,0;0,25"
    assert ic.tally(tmp_path / "out.csv", decimal=",") == TALLY
    ic.apply_file(rule, path, tmp_path / "out.parquet", id="id")
    assert pd.read_parquet(tmp_path / "out.parquet")["x"].tolist() == WEIGHTS


ODD = [
    (["0,5", "0.5", "0,25", "1"], {}, "must have one decimal sign in every row\n  got:  2 values "
     "with a comma, for example '0,25', and 1 with a point, for example '0.5'"),
    (["1,234.5", "0.5", "1", "0"], {}, "without thousands separators\n  got:  1 values such as "
     "'1,234.5'\n  next: write 1234.5 for 1,234.5"),
    (["1.234,5", "0,5", "1", "0"], {}, "without thousands separators\n  got:  1 values such as"),
    (["1,234", "2,345", "1", "0"], {}, 'or pass decimal="," if these are decimal'),
    (["0,5", "0,2", "1", "high"], {}, "1 values that are not"),
    (["0,5", "0,2", "1", "0"], {"decimal": "."}, 'next: pass decimal=","'),
    (["0.5", "0.2", "1", "0"], {"decimal": ","}, "these numbers have a point"),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "options", "message"), ODD)
def test_numbers_that_are_not(tmp_path, texts, options, message):
    rows = {"score": texts, "label": [0, 1, 0, 1], "group": list("aabb")}
    path = written(tmp_path, rows)
    for data in (path, rows):
        if "high" in texts or (data is rows and options == {"decimal": ","}):
            message = "must hold numbers" if data is path else "must "
        with pytest.raises(ic.DataError) as raised:
            ic.tally(data, **options)
        shown = str(raised.value).replace("'0,5'", "'0,25'")
        assert message in shown
        assert shown.startswith("score")


def test_weights_alone_do_not_make_a_comma_decimal(tmp_path):
    """1,234 may be a thousand and more; the scores have a point."""
    path = written(tmp_path, {**DATA, "weight": ["1,5"] * 8})
    with pytest.raises(ic.DataError, match=r"weight .*must hold numbers"):
        ic.tally(path, weight="weight")
    whole = {**DATA, "score": [0, 1] * 4, "weight": ["1,5"] * 8}
    assert ic.tally(written(tmp_path, whole), weight="weight").reading.decimal == ","
    with pytest.raises(ic.UsageError, match="decimal: must be"):
        ic.tally(path, decimal=";")


@pytest.mark.parametrize("role", ["score", "weight"])
def test_true_is_no_number(tmp_path, role):
    path = written(tmp_path, {**DATA, "weight": WEIGHTS, role: [*WEIGHTS[3:4] * 7, "True"]})
    rule = rf"{role} \(column '{role}'\): must hold numbers\n  got:  1 values .* example 'True'"
    with pytest.raises(ic.DataError, match=rule):
        ic.tally(path, weight="weight")
    if role == "score":
        with pytest.raises(ic.DataError, match=rule):
            ic.apply_file(ic.Rule(("a", "b"), (), "none"), path, tmp_path / "out.csv")


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("", "weight: must be a positive, finite number in every row\n  got:  8 null or NaN"),
        ("true", "weight (column 'weight'): must hold numbers\n  got:  8 values that are not"),
    ],
)
def test_decimal_commas_beside_weights_that_are_no_numbers(tmp_path, weight, message):
    path = written(tmp_path, {**DATA, "score": map(comma, SCORES), "weight": [weight] * 8})
    with pytest.raises(ic.DataError) as raised:
        ic.tally(path, weight="weight")
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("names", "groups", "first"),
    [
        ("true True TRUE false", ("TRUE", "True", "false", "true"), "TRUE"),
        ("1 1.0 2 3", ("1", "1.0", "2", "3"), "1"),
        ("0 -0 1 2", ("-0", "0", "1", "2"), "-0"),
        ("True False True False", (False, True), "False"),
        ("1 2 1 2", (1, 2), "1"),
        ("1 2.5 1 2.5", (1.0, 2.5), "1"),
    ],
)
def test_groups_that_are_written_differently_are_different(tmp_path, names, groups, first):
    path = written(tmp_path, {**DATA, "group": names.split() * 2})
    tally = ic.tally(path)
    assert tally.groups == groups
    assert list(map(type, tally.groups)) == list(map(type, groups))
    rows = tuple(Row(group, 0.0, 1.0, "set", 0.5, 1.0) for group in groups[:1])
    ic.apply_file(ic.Rule(groups, rows, "test"), path, tmp_path / "out.csv", changed="c")
    out = pd.read_csv(tmp_path / "out.csv", dtype=str)
    assert set(out["group"][out["c"] == "true"]) == {first}


def test_texts_that_a_rule_would_take_for_one_group_are_refused(tmp_path):
    path = written(tmp_path, {**DATA, "group": ["true", "TRUE", "false", "false"] * 2})
    with pytest.raises(
        ic.UsageError, match="must be one the rule knows: True, False\n  got:  'TRUE', 'true'"
    ):
        ic.apply_file(ic.Rule((True, False), (), "none"), path, tmp_path / "out.csv")


@pytest.mark.parametrize("role", ["score", "label", "weight"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_time_spans_of_parquet_are_no_numbers(tmp_path, library, role):
    spans = [timedelta(microseconds=i % 2) for i in range(8)]
    data, path = {**DATA, "weight": WEIGHTS, role: spans, "span": spans}, tmp_path / "d.parquet"
    if library == "pandas":
        pd.DataFrame(data).to_parquet(path)
    else:
        pl.DataFrame(data).write_parquet(path)
    with pytest.raises(ic.DataError, match=rf"{role}.*: .*must .*\n  got:  .* of type DURATION"):
        ic.tally(path, weight="weight")
    assert {c.name for c in ic.look(path).columns if not c.numeric} >= {role, "span"}


def test_a_schema_of_arrow_that_nobody_vouches_for():
    schema = pa.schema([("a", pa.int64()), ("ü b", pa.duration("s")), ("c", pa.float64())])
    whole = schema.serialize().to_pybytes()
    assert durations_of(base64.b64encode(whole)) == ["ü b"]
    random = np.random.default_rng(0)
    for _ in range(2000):
        damaged = np.frombuffer(whole, dtype=np.uint8).copy()
        damaged[random.integers(len(whole), size=3)] = random.integers(256, size=3)
        durations_of(base64.b64encode(damaged.tobytes()[: random.integers(len(whole))]))
    assert durations_of(b"not base64") == durations_of(b"") == []


@pytest.mark.parametrize(
    ("labels", "positive"),
    [("no yes", "yes"), ("nein ja", "ja"), ("0.0 1.0", None), ("FALSE TRUE", None),
     ("False true", None), ("FALSE TRUE", "true"), ("0.0 1.0", "1"), ("bad good", "good")],
)  # fmt: skip
def test_labels_of_all_kinds(tmp_path, labels, positive):
    words = labels.split()
    path = written(tmp_path, {**DATA, "label": [words[label] for label in DATA["label"]]})
    assert ic.tally(path, positive=positive) == TALLY


def test_a_line_that_is_too_long(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("score,label,group\n0.5,1,a\n0.5,0," + "x" * 3_000_000 + "\n")
    with pytest.raises(ic.DataError, match="file: must have lines of at most 2,000,000 bytes\n"):
        ic.tally(path)


@pytest.mark.parametrize("name", ["n" * 300_000, "n " * 150_000], ids=["long", "words"])
def test_a_long_name_makes_no_long_error(tmp_path, name):
    path = written(tmp_path, {"score": ["x", "y"], "label": [0, 1], name.strip(): ["a", "b"]})
    for options in ({}, {"score": "x"}, {"score": name.strip(), "group": "label"}):
        with pytest.raises(ic.IsocostError) as raised:
            ic.tally(path, **options)
        assert len(str(raised.value)) < 16_000
        assert "next: " in str(raised.value)


def test_names_and_values_as_people_write_them(tmp_path):
    text = '\ufeff" Punktzahl ";"Rückfall, später";"Straße\nund Ort"\r\n'
    rows = zip(SCORES, DATA["label"], DATA["group"], strict=True)
    text += "".join(f'{h};{y};"{g}\r\nB"\r\n' for h, y, g in rows)
    (tmp_path / "d.csv").write_bytes(text.encode())
    names = {"score": "Punktzahl", "label": "Rückfall, später", "group": "Straße\nund Ort"}
    tally = ic.tally(tmp_path / "d.csv", **names)
    assert tally.relabel({"a\r\nB": "a", "b\r\nB": "b"}) == TALLY


def test_empty_texts_are_missing(tmp_path):
    groups = ["a", "", '""', *list("aabbb")]
    path = written(tmp_path, {**DATA, "group": groups})
    with pytest.raises(ic.DataError, match=r"2 null"):
        ic.tally(path)
    assert ic.tally(path, missing_group="?").groups == ("?", "a", "b")
    with pytest.raises(ic.DataError, match=r"score: .*\n.*1 null or NaN"):
        ic.tally(written(tmp_path, {**DATA, "score": ["", *SCORES[1:]]}))
