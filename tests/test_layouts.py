"""Layouts: numbers against counting by hand, who is left out, and what each says about itself."""

import json
import math
from datetime import date

import numpy as np
import pytest

import isocost as ic
from isocost.cli.app import main
from isocost.cli.options import LayoutOptions
from isocost.examples import compas
from isocost.page.layouts import SIDES, page_layouts
from isocost.page.payload import payload, undecided

SEXES, RACES = ("female", "male", "?"), ("Black", "White", "Other")


def applicants(rows=4000, seed=3):
    """Rows with two columns of groups; a few people of a small category and of unknown sex."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(SEXES, rows, p=[0.5, 0.45, 0.05])
    race = rng.choice(RACES, rows, p=[0.4, 0.59, 0.01])
    score = np.round(rng.beta(2, 2, rows) * np.where(sex == "male", 1.0, 0.9), 2)
    return {"score": score, "label": (rng.random(rows) < score) * 1, "sex": sex, "race": race}


ROWS = applicants()
TWO = ic.tally(ROWS, group=["sex", "race"])


def by_name(table):
    return {row["name"]: row for row in table.rows}


def test_categories_are_counted_as_by_hand():
    found = ic.layout(TWO, "ll144", unknown="?")
    sex = by_name(found.tables[0])
    known = ROWS["sex"] != "?"
    median = np.median(ROWS["score"][known])
    selected, above = ROWS["score"] >= 0.5, ROWS["score"] > median
    rates = {name: selected[ROWS["sex"] == name].mean() for name in SEXES[:2]}
    scoring = {name: above[ROWS["sex"] == name].mean() for name in SEXES[:2]}
    for name in SEXES[:2]:
        assert sex[name]["n"] == (ROWS["sex"] == name).sum()
        assert sex[name]["selection_rate"] == pytest.approx(rates[name], abs=1e-12)
        assert sex[name]["impact_ratio"] == pytest.approx(rates[name] / max(rates.values()))
        assert sex[name]["scoring_rate"] == pytest.approx(scoring[name], abs=1e-12)
        ratio = scoring[name] / max(scoring.values())
        assert sex[name]["scoring_impact_ratio"] == pytest.approx(ratio)
    assert sex["(unknown)"]["n"] == (~known).sum()
    assert sex["(unknown)"]["impact_ratio"] is None
    assert "?" not in sex
    assert [table.title for table in found.tables] == [
        "By sex", "By race", "Intersections of sex and race",
    ]  # fmt: skip


def test_intersections_are_rows_of_their_own():
    found = ic.layout(TWO, "ll144", unknown="?").tables[2]
    rows = {row["group"]: row for row in found.rows}
    rates = {}
    for sex in SEXES[:2]:
        for race in RACES:
            mine = (ROWS["sex"] == sex) & (ROWS["race"] == race)
            rates[sex, race] = (ROWS["score"][mine] >= 0.5).mean()
            assert rows[sex, race]["n"] == mine.sum()
            assert rows[sex, race]["selection_rate"] == pytest.approx(rates[sex, race])
    large = [pair for pair in rates if pair[1] != "Other"]
    for pair in rates:
        ratio = rows[pair]["impact_ratio"]
        if pair in large:
            assert ratio == pytest.approx(rates[pair] / max(rates[one] for one in large))
        else:
            assert ratio is None
            assert rows[pair]["left_out"]
    assert rows[None]["n"] == (ROWS["sex"] == "?").sum()


@pytest.mark.parametrize(("small", "left_out"), [(19, True), (20, False), (21, False)])
def test_two_percent_of_the_data_decide(small, left_out):
    """A small category is no reference either, though all of it are selected."""
    sizes = {"a": 500, "b": 1000 - 500 - small, "c": small}
    group = np.repeat(list(sizes), list(sizes.values()))
    score = np.where(group == "c", 0.9, np.where(np.arange(1000) % 2, 0.7, 0.2))
    tally = ic.tally({"score": score, "label": np.arange(1000) % 2, "group": group})
    rows = by_name(ic.layout(tally, "ll144").tables[0])
    assert rows["c"]["left_out"] == left_out
    assert rows["c"]["selection_rate"] == 1.0
    assert rows["c"]["impact_ratio"] == (None if left_out else 1.0)
    assert rows["a"]["impact_ratio"] == pytest.approx(1.0 if left_out else 0.5, abs=0.01)


def test_selection_needs_no_labels_and_no_second_group():
    tally = ic.tally({"score": [0.2, 0.7], "label": [0, 0], "group": ["a", "a"]})
    rows = by_name(ic.layout(tally, "ll144").tables[0])
    assert (rows["a"]["selection_rate"], rows["a"]["impact_ratio"]) == (0.5, 1.0)
    with pytest.raises(ic.DataError):
        ic.layout(tally, "tripod")


def test_nobody_selected_has_no_ratio():
    tally = ic.tally({"score": [0.2, 0.3], "label": [0, 1], "group": ["a", "b"]})
    found = ic.layout(tally, "ll144")
    rows = by_name(found.tables[0])
    assert math.isnan(rows["a"]["impact_ratio"])
    content = json.loads(found.to_json())
    assert content["tables"][0]["rows"][0]["impact_ratio"] is None
    assert "nan" not in repr(found)


def test_everybody_unknown_leaves_one_row():
    tally = ic.tally({"score": [0.2, 0.7], "label": [0, 1], "group": ["?", "?"]})
    assert [row["name"] for row in ic.layout(tally, "ll144", unknown="?").tables[0].rows] == [
        "(unknown)"
    ]


def test_selected_below_is_selection_by_the_complement():
    above = ic.layout(compas(), "ll144")
    below = ic.layout(compas(), "ll144", selected="below")
    for one, other in zip(above.tables[0].rows[:2], below.tables[0].rows[:2], strict=True):
        assert one["selection_rate"] + other["selection_rate"] == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    score, group = rng.integers(0, 100, 500) / 100 + 0.005, rng.choice(["a", "b", "c"], 500)
    label = rng.integers(0, 2, 500)
    left = ic.tally({"score": score, "label": label, "group": group}, edges=(0.3,))
    right = ic.tally({"score": 1 - score, "label": label, "group": group}, edges=(0.7,))
    one = ic.layout(left, "ll144", threshold=0.3, selected="below")
    other = ic.layout(right, "ll144", threshold=0.7)
    for mine, theirs in zip(one.tables[0].rows[:3], other.tables[0].rows[:3], strict=True):
        for key in ("impact_ratio", "scoring_rate"):
            assert mine[key] == pytest.approx(theirs[key])


def test_performance_is_that_of_the_audit():
    found = ic.layout(compas(), "tripod").tables[0]
    audit = ic.audit(compas(), measures="all")
    rows = {row["group"]: row for row in found.rows}
    assert [rows[group]["events"] for group in (*audit.groups, None)] == [1901, 966, 2867]
    for group, numbers in {**audit.groups, None: audit.overall}.items():
        for name in ic.LAYOUTS["tripod"].measures:
            assert rows[group][name] == numbers[name]
            ends = rows[group][f"{name}_low"], rows[group][f"{name}_high"]
            assert ends == numbers.intervals[name]
            assert ends[0] <= numbers[name] <= ends[1]
    assert ic.layout(audit, "tripod").tables[0] == found


def test_performance_without_intervals_and_with_undefined_numbers():
    audit = ic.audit(compas(), confidence=None)
    assert "auc_low" not in ic.layout(audit, "tripod").tables[0].rows[0]
    rows = {"score": [0.2, 0.7, 0.4, 0.9, 0.5], "label": [0, 1, 1, 0, 0], "group": list("aabbc")}
    found = ic.layout(ic.tally(rows), "tripod")
    assert math.isnan(by_name(found.tables[0])["c"]["auc"])
    assert json.loads(found.to_json())["tables"][0]["rows"][2]["auc"] is None
    assert "nan" not in repr(found)


@pytest.mark.parametrize("name", ic.LAYOUTS)
def test_each_says_what_it_follows_and_judges_nothing(name):
    found = ic.layout(compas(), name)
    text = repr(found)
    assert found.follows.split()[0] in text
    assert f"({found.since}; text as of {found.as_of})" in text.replace("\n", " ")
    assert "Does not cover: " in text
    assert not {"illegal", "legal", "compliant", "complies", "violates"} & set(text.split())
    assert ("The law names no threshold for the ratio." in found.notes) == (name == "ll144")
    assert max(map(len, text.splitlines())) <= 80
    content = json.loads(found.to_json())
    assert content["covers_not"]
    assert content["layout"] == name
    assert content["as_of"] == found.as_of == date.fromisoformat(found.as_of).isoformat()
    assert found._repr_html_().count("<table>") == len(found.tables)


def test_wrong_options_are_named():
    for name, options, message in (
        ("l144", {}, "did you mean 'll144'"),
        ("tripod", {"selected": "below"}, "must be left out of the layout 'tripod'"),
        ("tripod", {"unknown": "Caucasian"}, 'it is for "ll144"'),
        ("ll144", {"unknown": "nobody"}, "must be a category of the data"),
        ("ll144", {"threshold": 0.12345}, "must be an edge of the tally"),
        ("lending", {}, 'must be "ll144" or "tripod"'),
    ):
        with pytest.raises(ic.UsageError, match=message):
            ic.layout(compas(), name, **options)
    with pytest.raises(ic.UsageError, match="threshold: belongs to the audit already"):
        ic.layout(ic.audit(compas(), confidence=None), "tripod", threshold=0.3)


def test_the_page_hides_what_it_hides():
    audit = ic.audit(compas(), replicates=0)
    whole = page_layouts(audit, payload(audit.tally))
    assert [one.layout for one in whole] == list(ic.LAYOUTS)
    rng = np.random.default_rng(0)
    score = np.where(np.arange(200) < 3, 0.9, rng.random(200) / 2)
    rows = {"score": score, "label": np.arange(200) % 2, "group": np.arange(200) % 3 > 0}
    few = ic.tally(rows)
    held = payload(few, 5, 0.7)
    assert undecided(held, few.grid, 0.7)
    audit = ic.audit(few, threshold=0.7, replicates=0, warn=False)
    assert page_layouts(audit, held) == []


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("layouts") / "data.csv"
    columns = {name: values.tolist() for name, values in ROWS.items()}
    columns["sex"] = ["" if sex == "?" else sex for sex in columns["sex"]]
    lines = [",".join(columns)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as leave:
            main(list(arguments))
        printed = capsys.readouterr()
        return leave.value.code, printed.out, printed.err

    return call


def test_the_command_line_prints_a_layout(data, run):
    groups = ("--group", "sex", "--group", "race", "--missing-group", "none")
    code, out, _ = run("audit", data, *groups, "--layout", "ll144", "--json")
    assert code == 0
    expected = ic.layout(TWO, "ll144", unknown="?").to_dict()
    content = json.loads(out)
    for mine, theirs in zip(content["tables"], expected["tables"], strict=True):
        assert mine["rows"] == theirs["rows"]
    options = ("--layout", "ll144", "--selected", "below", "--threshold", "0.35")
    code, out, _ = run("audit", data, "--group", "race", *options)
    assert code == 0
    assert "Selected means a score below 0.35." in out.replace("\n", " ")
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--layout", "tripdo"), "did you mean 'tripod'?"),
        (("--layout", "ll144", "--reference", "White"), "must be left out of the layout 'll144'"),
        (("--layout", "tripod", "--measures", "auc"), "must be given without --layout"),
        (("--layout", "tripod", "--fail-above", "0.1"), "must be given without --layout"),
        (("--unknown", "x"), "must be given with --layout"),
        (("--selected", "below"), "must be given with --layout"),
        (("--measures", "pvp"), "did you mean 'ppv'?"),
        (("--reference", "nobody"), "must name a group of the data"),
    ],
)
def test_the_command_line_refuses(data, run, options, message):
    code, out, err = run("audit", data, "--group", "race", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert "next: " in err


def test_the_command_line_chooses_measures(data, run):
    options = ("--group", "race", "--measures", "impact_ratio,auc", "--reference", "White")
    code, out, _ = run("audit", data, *options, "--json")
    assert code == 0
    groups = dict(json.loads(out)["groups"])
    audit = ic.audit(ic.tally({**ROWS, "group": ROWS["race"]}), measures="all", reference="White")
    for name in ("impact_ratio", "auc"):
        assert groups["Black"][name] == pytest.approx(audit.groups["Black"][name])
    code, out, _ = run("audit", data, *options)
    assert "impact ratio" in out
    assert "Brier" not in out


def test_the_options_list_layouts_and_sides_without_loading_them(run):
    option = LayoutOptions.__dataclass_fields__["selected"]
    assert option.metadata["choices"] == tuple(SIDES)
    _, out, _ = run("audit", "--help")
    assert f"asks for instead: {', '.join(ic.LAYOUTS)}." in " ".join(out.split())
