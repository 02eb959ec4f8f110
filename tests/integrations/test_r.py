"""integrations/r/isocost.R does what Rule.apply does, for the same people."""

import json
import math
import os
import random
import subprocess

import pytest

import isocost as ic
from isocost.examples import compas
from isocost.rules import Row
from tests.coin_vectors import NUMBERS, SALT, TEXTS, by_hashlib
from tests.integrations.conftest import ROOT

COINS = """
d <- isocost_json(paste(readLines("in.json", encoding = "UTF-8"), collapse = "\n"))
writeLines(sprintf("%.0f", isocost_coins(unlist(d$texts), d$salt)), "texts")
writeLines(sprintf("%.0f", isocost_coins(as.integer(unlist(d$whole)), d$salt)), "whole")
writeLines(sprintf("%.0f", isocost_coins(as.double(unlist(d$whole)), d$salt)), "double")
writeLines(sprintf("%.0f", isocost_coins(factor(unlist(d$texts)), d$salt)), "factor")
"""

APPLY = """
d <- isocost_json(paste(readLines("in.json", encoding = "UTF-8"), collapse = "\n"))
out <- lapply(seq_along(d$cases), function(i) {
  case <- d$cases[[i]]
  columns <- lapply(case$group, unlist)
  group <- if (length(columns) == 1) columns[[1]] else columns
  rule <- isocost_read(sprintf("rule%d.json", i))
  sprintf("%.17g", isocost_apply(rule, unlist(case$score), group, unlist(case$id)))
})
writeLines(unlist(out), "scores")
"""


def run_r(script, folder, content=None, locale="C.UTF-8"):
    """Run lines of R after isocost.R; what they complain about comes back."""
    if content is not None:
        (folder / "in.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    source = f'source("{ROOT / "integrations" / "r" / "isocost.R"}")\n'
    (folder / "script.R").write_text(source + script, encoding="utf-8")
    return subprocess.run(
        ["Rscript", "--vanilla", "script.R"],
        cwd=folder,
        env={**os.environ, "LC_ALL": locale},
        capture_output=True,
        text=True,
        check=False,
    )


def lines_of(path):
    return path.read_text().split()


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_the_coins_of_every_engine(tmp_path, locale):
    whole = [number for number in NUMBERS if abs(number) < 2**31]
    # R has no exact number beyond 2^53, so there ids are texts, which throw the same coin.
    texts = [*TEXTS, *map(str, NUMBERS)]
    done = run_r(COINS, tmp_path, {"salt": SALT, "texts": texts, "whole": whole}, locale)
    assert done.returncode == 0, done.stderr
    expected = [str(by_hashlib(text)) for text in texts]
    assert lines_of(tmp_path / "texts") == expected
    assert lines_of(tmp_path / "factor") == expected
    for kind in ("whole", "double"):
        assert lines_of(tmp_path / kind) == [str(by_hashlib(number)) for number in whole]


KINDS = {
    "texts": ["a", 'b "quoted" \\', "żółć 🙂"],
    "numbers": [1, 2, 30],
    "floats": [0.5, 1.25],
    "logicals": [True, False],
    "intersections": [("F", 30), ("F", 40), ("é", 30)],
}


def random_rule(generator, groups):
    """Rows of every kind on intervals that do not overlap, some of which share a coin."""
    rows = []
    for group in groups[:-1] or groups:
        ends = sorted(generator.sample(range(1025), 6))
        for low, high in [*zip(ends[::2], ends[1::2], strict=True)]:
            left = 10_000
            for _ in range(generator.randint(1, 3)):
                chance = generator.choice([left, 0, generator.randint(0, left)])
                left -= chance
                action = generator.choice(["set", "mirror", "line", "defer"])
                valued = action in ("set", "line")
                value = generator.randint(0, 1000) / 1000 if valued else None
                end = generator.randint(0, 1000) / 1000 if action == "line" else None
                span = (group, low / 1024, high / 1024)
                rows.append(Row(*span, action, value, chance / 10_000, end))
    return ic.Rule(tuple(groups), tuple(rows), "test", salt=SALT)


def people(generator, groups, rows=300):
    return {
        "score": [
            generator.choice([0.0, 1.0, 0.5, generator.randint(0, 1024) / 1024])
            for _ in range(rows)
        ],
        "group": [generator.choice(groups) for _ in range(rows)],
        "id": [f"{generator.choice(TEXTS)}{number}" for number in range(rows)],
    }


def test_every_action_and_kind_of_group_bit_by_bit(tmp_path):
    generator = random.Random(7)
    rules = [
        (random_rule(generator, groups), groups) for groups in KINDS.values() for _ in range(8)
    ]
    known = list(compas().groups)
    rules += [
        (rule, known)
        for rule in (
            ic.withhold(compas(), "fpr", 0.07),
            ic.reconcile(compas()),
            ic.recalibrate(compas(), "isotonic"),
            ic.equalize_odds(compas()),
            ic.hand_over(compas()),
        )
    ]
    cases, expected = [], []
    for number, (rule, groups) in enumerate(rules, 1):
        rule.save(tmp_path / f"rule{number}.json")
        data = people(generator, groups)
        parts = [g if isinstance(g, tuple) else (g,) for g in data["group"]]
        columns = [list(column) for column in zip(*parts, strict=True)]
        cases.append({"score": data["score"], "group": columns, "id": data["id"]})
        names = [f"group{i}" for i in range(len(columns))]
        frame = {**data, **dict(zip(names, columns, strict=True))}
        del frame["group"]
        group = names if len(names) > 1 else names[0]
        expected += rule.apply(frame, score="score", group=group, id="id")[
            "repaired_score"
        ].tolist()
    done = run_r(APPLY, tmp_path, {"cases": cases})
    assert done.returncode == 0, done.stderr
    lines = lines_of(tmp_path / "scores")
    assert len(lines) == len(expected)
    # Whoever is handed over has NA.
    assert [line == "NA" for line in lines] == [math.isnan(one) for one in expected]
    found = [float(line) for line in lines if line != "NA"]
    expected = [one for one in expected if not math.isnan(one)]
    # as.numeric() of R is off by the last bit for one number of a rule in ten thousand.
    assert max(abs(a - b) for a, b in zip(found, expected, strict=True)) <= 2.3e-16
    same = sum(a == b for a, b in zip(found, expected, strict=True))
    assert same / len(expected) > 0.99


def test_a_rule_is_read_as_r_would_be_used(tmp_path):
    ic.withhold(compas(), "fpr", 0.07).save(tmp_path / "rule.json")
    script = """
    rule <- isocost_read("rule.json")
    people <- data.frame(id = 4:6, score = c(0.2, 0.2, 0.9),
                         group = factor(c("Caucasian", "Caucasian", "African-American")))
    cat(round(isocost_apply(rule, people$score, people$group, people$id), 3), "\n")
    cat(isocost_apply(rule, c(0.2, 0.4), c("Martian", "Caucasian"), 1:2, unknown = "keep")[1], "\n")
    cat(isocost_apply(rule, 0.9, NA_character_, 1, missing_group = "African-American"), "\n")
    cat(length(isocost_apply(rule, numeric(), character(), integer())), "\n")
    """
    done = run_r(script, tmp_path)
    assert done.stdout.split() == ["0.2", "0.394", "0.9", "0.2", "0.9", "0"], done.stderr


def test_a_data_frame_gets_the_column_of_repaired_scores(tmp_path):
    rows = (Row("a", 0.0, 1.0, "set", 0.75, 0.5),)
    stored = {"columns": {"score": "p_deny", "group": ["race"]}}
    rule = ic.Rule(("a", "b"), rows, "test", made_from=stored)
    rule.save(tmp_path / "rule.json")
    data = {"who": [1, 2, 3, 4], "score": [0.5] * 4, "race": list("aaab")}
    data["p_deny"] = [0.125, 0.25, 0.5, 0.125]
    script = """
    rule <- isocost_read("rule.json")
    people <- data.frame(who = 1:4, score = 0.5, race = c("a", "a", "a", "b"),
                         p_deny = c(0.125, 0.25, 0.5, 0.125))
    show <- function(frame) cat(names(frame), unlist(frame[ncol(frame)]), frame$score, "\n")
    said <- function(...) cat(tryCatch(isocost_repair(...), error = conditionMessage), "\n")
    out <- isocost_repair(rule, people, id = "who")
    show(out)
    show(isocost_repair(rule, people, id = "who", output = "p_deny"))
    show(isocost_repair(rule, out, id = "who", output = "repaired_p_deny"))
    said(rule, out, id = "who")
    said(rule, people)
    said(rule, people, id = "idd")
    said(rule, 1:3)
    """
    done = run_r(script, tmp_path)
    wanted = " ".join(f"{one:g}" for one in rule.apply(data, id="who")["repaired_p_deny"])
    kept = "0.5 0.5 0.5 0.5"
    names = "who score race p_deny"
    said = [line.strip() for line in done.stdout.splitlines()]
    assert said[0] == f"{names} repaired_p_deny {wanted} {kept}", done.stderr
    assert said[1] == f"{names} {wanted} {kept}"
    assert said[2] == said[0]
    assert "output: must be named, because a column with the usual name exists" in said
    assert 'next: pass output = "repaired_p_deny" to replace that column, or another name' in said
    assert "id: is needed by a rule with a coin" in said
    assert "id: must name a column of the data" in said
    assert "data: must be a data frame" in said


BAD_CALLS = {
    'rule, 0.5, "Martian", 1': "group: must be one the rule knows: African-American; Caucasian",
    "rule, 0.5, 1, 1": "group: must be one the rule knows",
    "rule, 0.5, NA_character_, 1": "group: must be given in every row",
    "rule, 0.5, as.Date('2020-01-01'), 1": "group: must be texts, numbers or logicals",
    'rule, 1.5, "Caucasian", 1': "score: must be numbers in [0, 1]\n  got:  1 values",
    'rule, NA_real_, "Caucasian", 1': "score: must be numbers in [0, 1]",
    'rule, "0.5", "Caucasian", 1': "score: must be numbers in [0, 1]\n  got:  character",
    'rule, c(0.5, 0.5), "Caucasian", 1:2': "group: must have 2 values",
    'rule, c(0.5, 0.5), rep("Caucasian", 2), 1': "id: must have 2 values",
    'rule, 0.5, "Caucasian"': "id: is needed by a rule with a coin",
    'rule, 0.5, "Caucasian", NA': "id: must be a whole number or a text in every row",
    'rule, 0.5, "Caucasian", 1.5': "id: must be a whole number or a text in every row",
    'rule, 0.5, "Caucasian", 2^53': "id: must be a whole number or a text in every row",
    'rule, 0.5, "Caucasian", TRUE': "id: must be a whole number or a text in every row",
}


def test_bad_arguments_are_errors_of_four_parts(tmp_path):
    ic.withhold(compas(), "fpr", 0.07).save(tmp_path / "rule.json")
    calls = "\n".join(
        f"cat(tryCatch(isocost_apply({call}), error = conditionMessage), '\\n====\\n')"
        for call in BAD_CALLS
    )
    done = run_r(f'rule <- isocost_read("rule.json")\n{calls}', tmp_path)
    said = done.stdout.split("\n====\n")
    assert len(said) == len(BAD_CALLS) + 1, done.stderr
    for message, start in zip(said, BAD_CALLS.values(), strict=False):
        assert message.startswith(start)
        assert "\n  got:  " in message
        assert "\n  next: " in message


def altered(**changes):
    return json.dumps(ic.withhold(compas(), "fpr", 0.07).to_dict() | changes)


ROW = {"group": "Caucasian", "lo": 0, "hi": 1, "action": "set", "value": 0.4, "probability": 0.6}
BAD_FILES = {
    "{": "rule file: must be JSON text",
    "[1, 2": "rule file: must be JSON text",
    "[1, 2,]": "rule file: must be JSON text",
    '{"format": "isocost-rule", "format": "x"}': "rule file: must be JSON text",
    "nonsense": "rule file: must be JSON text",
    "{} {}": "rule file: must be JSON text",
    "{}": 'rule file: must say "format": "isocost-rule"',
    altered(version=2): "rule version: must be 1",
    altered(coin={"scheme": "sha", "salt": ""}): "rule coin: must have the scheme",
    altered(rows=[ROW | {"action": "double"}]): "rule action: must be",
    altered(rows=[ROW | {"group": "Martian"}]): "rule row: must be of a group the rule names",
    altered(rows=[ROW | {"lo": 1}]): "rule interval: must have 0 <= lo < hi <= 1",
    altered(rows=[ROW | {"value": None}]): "rule value: must be a number in [0, 1]",
    altered(rows=[ROW | {"action": "line"}]): "rule end: must be a number in [0, 1]",
    altered(rows=[ROW | {"probability": "1"}]): "rule probability: must be a number in [0, 1]",
    altered(rows=[ROW, ROW]): "rule probability: must add up to at most 1",
}


def test_bad_files_are_refused(tmp_path):
    script = ""
    for number, text in enumerate(BAD_FILES):
        (tmp_path / f"bad{number}.json").write_text(text)
        read = f'isocost_read("bad{number}.json")'
        script += f"cat(tryCatch({{{read}; 'read'}}, error = conditionMessage), '\\n====\\n')\n"
    done = run_r(script, tmp_path)
    said = done.stdout.split("\n====\n")
    assert len(said) == len(BAD_FILES) + 1, done.stderr
    for message, start in zip(said, BAD_FILES.values(), strict=False):
        assert message.startswith(start)
        assert "\n  next: " in message
