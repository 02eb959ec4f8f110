"""Which columns are guessed to be what, from their names and from their values."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

import isocost as ic
from isocost.engines.look import SAMPLE, SHOWN, preview
from isocost.examples import compas_rows
from tests.conftest import sample


def write(tmp_path, data, name="data.csv"):
    path = tmp_path / name
    frame = pd.DataFrame(data)
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["data.csv", "data.parquet", "data.csv.gz"])
def test_compas(tmp_path, name):
    found = preview(write(tmp_path, compas_rows(), name))
    assert [column.name for column in found.columns] == ["id", "group", "decile", "label", "score"]
    assert found.guess == {"score": "score", "label": "label", "group": "group", "weight": None}
    assert found.positive is None
    by_name = {column.name: column for column in found.columns}
    assert by_name["group"].values == ("African-American", "Caucasian")
    assert (by_name["decile"].low, by_name["decile"].high) == (1, 10)
    assert len(by_name["id"].values) == SHOWN
    assert by_name["id"].distinct == SAMPLE


def test_names_that_say_nothing(tmp_path):
    rows = sample(3000, weighted=True)
    columns = {"a": "group", "b": "score", "c": "label", "d": "weight"}
    data = {new: rows[old] for new, old in columns.items()}
    data["a"] = ["north" if code else "south" for code in data["a"]]
    found = preview(write(tmp_path, data))
    # A weight cannot be told from any other amount, so it is never guessed by values alone.
    assert found.guess == {"score": "b", "label": "c", "group": "a", "weight": None}


def test_names_before_values(tmp_path):
    rows = compas_rows()
    data = {"p_value": rows["score"], "smoker": rows["label"], "two_year_recid": rows["label"]}
    data |= {"sample_weight": rows["score"] + 1, "race": rows["group"], "risk": rows["score"]}
    found = preview(write(tmp_path, data))
    assert found.guess["label"] == "two_year_recid"
    assert found.guess["group"] == "race"
    assert found.guess["weight"] == "sample_weight"


@pytest.mark.parametrize(
    ("values", "positive"),
    [
        (["no", "yes"], "yes"),
        (["True", "False"], None),
        (["0", "1"], None),
        (["-1", "1"], "1"),
        (["lost", "won"], None),
        (["neg", "POS"], "POS"),
    ],
)
def test_the_positive_label_is_named_only_where_it_is_known(tmp_path, values, positive):
    rows = compas_rows()
    data = {"score": rows["score"], "group": rows["group"]}
    data["label"] = [values[i] for i in rows["label"]]
    found = preview(write(tmp_path, data))
    assert found.guess["label"] == "label"
    assert found.positive == positive


def test_scores_outside_the_unit_interval_are_guessed_by_their_name_only(tmp_path):
    rows = compas_rows()
    found = preview(write(tmp_path, {"years": rows["decile"], "y": rows["label"]}))
    assert found.guess["score"] is None
    found = preview(write(tmp_path, {"score": rows["decile"], "y": rows["label"]}))
    assert found.guess["score"] == "score"
    assert found.column("score").scales == ["rank", "percent"]
    both = {"risk_decile": rows["decile"], "risk": rows["score"], "y": rows["label"]}
    assert preview(write(tmp_path, both)).guess["score"] == "risk"


def test_a_file_sorted_by_group_shows_all_its_groups(tmp_path):
    groups = ["a"] * 20_000 + ["b"] * 20_000
    found = preview(write(tmp_path, {"group": groups}))
    assert found.columns[0].distinct == 2


def test_odd_columns_are_shown_and_not_guessed(tmp_path):
    data = {
        "list": [[1, 2], [3]],
        "empty": [None, None],
        "when": pd.to_datetime(["2026-01-01"] * 2),
    }
    found = preview(write(tmp_path, {**data, "long": ["x" * 500, "y"]}, "odd.parquet"))
    assert not found.columns[0].numeric
    assert max(len(value) for column in found.columns for value in column.values) <= 80
    assert found.guess["score"] is None


# As Excel writes it in many countries: Windows-1252, semicolons, decimal commas, CRLF, words.
def excel_rows(n=300):
    lines = ["Nummer;Risk score (%);Rückfall;Geschlecht"]
    for i in range(n):
        score, label = (37 * i) % 101, "ja" if (37 * i) % 101 > (53 * i) % 100 else "nein"
        lines.append(f"{i};{score},5;{label};{'männlich' if i % 3 else 'weiblich'}")
    return "\r\n".join(lines).replace("100,5", "99,5").encode("cp1252")


def test_look_gives_a_command_line_that_works(tmp_path, command):
    path = tmp_path / "my data.csv"
    path.write_bytes(excel_rows())
    code, out, _ = command("look", path, "--json")
    assert code == 0
    told = json.loads(out)
    assert told["rows"] == 300
    guess = {"encoding": "windows-1252", "guessed": "encoding"}
    assert told["reading"] == {**guess, "decimal": ","}
    assert told["separator"] == ";"
    assert told["positive"] == "ja"
    by_name = {column["name"]: column for column in told["columns"]}
    assert by_name["Nummer"]["could_be"] == ["id"]
    assert by_name["Risk score (%)"]["notes"] == ["outside [0, 1]: --scale percent"]
    words = shlex.split(told["command"])
    assert words[:3] == ["isocost", "audit", str(path)]
    code, out, err = command(*words[1:], "--no-plot", "--replicates", "0", "--json")
    # What was guessed is not in the command, so that it is told again.
    told_again = "note: Text was read as windows-1252; groups look like 'männlich'; if that is "
    assert (code, err) == (0, f"{told_again}wrong, pass --encoding.\n")
    columns = {"score": "Risk score (%)", "label": "Rückfall", "group": ["Geschlecht"]}
    assert json.loads(out)["reading"] == {
        "columns": {**columns, "weight": None, "person": None}, "positive": "ja",
        "scale": "percent", **guess, "decimal": ",", "read_rows": 300,
    }  # fmt: skip
    code, out, _ = command("look", path)
    assert told["command"] in out


def test_a_look_at_what_is_wrong(tmp_path):
    rows = "score;label;sex;amount\n0,5;won;F;1.234,5\n0.25;lost;;2\n0,75;won;M;3\n"
    path = tmp_path / "bad.csv"
    path.write_text(rows)
    looked = ic.look(path)
    notes = {column.name: looked.notes(column) for column in looked.columns}
    assert "must have one decimal sign in every row" in notes["score"]
    assert "must hold numbers without thousands separators" in notes["amount"]
    assert "--positive must say which value is positive" in notes["label"]
    assert "1 missing" in notes["sex"]
    assert looked.command is None
    assert "--positive must be 'won' or 'lost'" in str(looked)
    assert list(looked.to_frame(backend="dict")["column"]) == ["score", "label", "sex", "amount"]
    path.write_text(rows.replace("0.25", "0,25").replace("won", "yes"))
    assert "--positive=yes --missing-group=unknown --decimal=," in ic.look(path).command


def test_commands_guess_and_tell(tmp_path, command):
    path = tmp_path / "data.csv"
    path.write_bytes(excel_rows())
    code, out, err = command("audit", path, "--scale", "percent", "--no-plot")
    assert code == 0
    guessed = "score: 'Risk score (%)'\nlabel: 'Rückfall'\npositive: 'ja'\ngroup: 'Geschlecht'\n"
    assert err.startswith(guessed)
    assert (
        "groups look like 'männlich'; if that is wrong, pass --encoding.\nnote: Numbers were" in err
    )
    assert "Scores were read as percentages and divided by 100." in out
    # The guess is told before the error that follows from it.
    code, _, err = command("audit", path)
    assert code == 2
    assert err.startswith(guessed)
    assert "pass --scale percent if they are percentages" in err


def test_what_is_not_clear_is_not_guessed(tmp_path, command):
    rows = compas_rows()
    data = {"risk": rows["score"], "y": rows["label"], "race": rows["group"]}
    path = write(tmp_path, {**data, "sex": ["F", "M"] * (len(rows["label"]) // 2)})
    code, _, err = command("tally", path)
    assert code == 2
    assert "group: must name a column of the data" in err
    assert "2 columns that could be it: 'race', 'sex'" in err
    assert "next: name one, for example --group race" in err
    code, _, err = command("tally", path, "--group", "race")
    assert (code, err) == (0, "score: 'risk'\nlabel: 'y'\n")
    # A name that was asked for is never replaced.
    code, _, err = command("tally", path, "--group", "race", "--score", "rsk")
    assert "did you mean --score risk?" in err
    # In Python nothing is guessed.
    with pytest.raises(ic.UsageError, match="must name a column"):
        ic.tally(path)


def test_a_look_counts_all_rows(tmp_path):
    """A value that is in no sample still counts: here a third label, and a score that is a word."""
    lines = ["0.5,1,a\n", "0.25,0,b\n", "0.75,1,a\n"] * 6000
    path = tmp_path / "d.csv"
    path.write_text("score,label,group\n" + "".join(lines))
    looked = ic.look(path)
    assert (looked.rows, looked.command) == (18_000, shlex.join(["isocost", "audit", str(path)]))
    path.write_text("score,label,group\n" + "".join(lines) + "high,2,a\n")
    looked = ic.look(path)
    assert looked.columns[1].distinct == 3
    assert looked.columns[0].wrong == "1 values are not numbers" or not looked.columns[0].numeric
    assert looked.command is None


def loans(rows=6000, seed=0):
    """A boolean outcome, its score, and many columns of 0 and 1 that come before it."""
    random = np.random.default_rng(seed)
    score = random.beta(2, 5, rows)
    flags = {
        name: (random.random(rows) < 0.3).astype(int)
        for name in ("comdominiom", "self_employed", "single_family", "insured")
    }
    # A column that the score predicts a little.
    flags["insured"] = (random.random(rows) < 0.2 + 0.3 * score).astype(int)
    race = np.where(random.random(rows) < 0.4, "black", "white")
    return {**flags, "race": race, "denied": random.random(rows) < score, "p_deny": score}


@pytest.mark.parametrize("name", ["loans.parquet", "loans.csv"])
def test_the_label_is_what_the_score_predicts(tmp_path, command, name):
    path = write(tmp_path, loans(), name)
    looked = ic.look(path)
    assert looked.guess["label"] == "denied"
    assert (looked.guess["score"], looked.guess["group"]) == ("p_deny", "race")
    assert "--label=denied" in looked.command
    (why,) = looked.to_dict()["labels"]
    assert why["auc"] == pytest.approx(0.71, abs=0.02)
    said = str(looked)
    assert "The label is 'denied': the score predicts it (AUC 0.7" in said
    assert "in a sample of 5,000 rows); its name is like 'p_deny'; it is true or false." in said
    assert str(ic.look(path)) == said, "the same sample each time"
    # Commands guess the same.
    code, _, err = command("tally", path)
    assert (code, err) == (0, "score: 'p_deny'\nlabel: 'denied'\ngroup: 'race'\n")


def test_of_two_labels_as_likely_none_is_proposed(tmp_path, command):
    random = np.random.default_rng(1)
    score = loans(seed=1)["p_deny"]
    data = {**loans(seed=1), "late": random.random(len(score)) < score, "risk": score}
    del data["p_deny"]
    path = write(tmp_path, data)
    looked = ic.look(path)
    assert looked.guess["label"] is None
    assert {one.name for one in looked.labels} == {"denied", "late"}
    assert looked.command is None
    (obstacle,) = looked.obstacles
    assert obstacle.startswith("2 columns could be the label, name one with --label: '")
    assert obstacle.count("the score predicts it (AUC 0.7") == 2
    assert "isocost audit" not in str(looked)
    code, _, err = command("audit", path)
    assert code == 2
    assert "label: must name a column of the data" in err
    assert "2 columns that could be it: '" in err
    assert "'denied': the score predicts it" in err
    assert "'late': the score predicts it" in err
    # Neither of them is taken for the group.
    assert looked.guess["group"] == "race"


def test_a_decision_by_the_score_is_not_the_label(tmp_path):
    """It has an AUC of 1, and tells nothing about people."""
    data = loans()
    data = {"selected": data["p_deny"] >= 0.5, **data}
    looked = ic.look(write(tmp_path, data, "loans.parquet"))
    assert looked.guess["label"] == "denied"
    only = {"selected": data["selected"], "p_deny": data["p_deny"], "race": data["race"]}
    looked = ic.look(write(tmp_path, only, "only.parquet"))
    assert "separates it perfectly, as if it were decided by the score (AUC 1.00" in str(looked)


def test_a_column_called_label_is_the_label_whatever_the_score_predicts(tmp_path):
    """Commands take it without a guess, so the proposal is about it as well."""
    data = loans()
    looked = ic.look(write(tmp_path, {**data, "label": data["comdominiom"]}))
    assert looked.guess["label"] == "label"
    assert "--label" not in looked.command
