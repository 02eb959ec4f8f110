"""One question, one answer: Python, shell, printed table and page agree, and advice works.

Random data sets and questions: tiny groups, groups of one label, weights, scores that are off.
ISOCOST_OFFERS is how many of them are tried; ``make test-offers`` tries 40.
"""

import json
import os
import pickle
import re
import shlex
import warnings
from contextvars import copy_context
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import isocost as ic
from isocost.cli.app import app
from isocost.errors import speaking
from isocost.examples import compas
from isocost.judging.offers import MOST_PROGRAMS, Offer, changes
from isocost.page.payload import held_tally
from isocost.readings import SHELL
from isocost.rules import Row
from isocost.tables import number_text
from isocost.verdict.wording import commands, figures_of
from tests.populations import drawn_rows

COUNT = int(os.environ.get("ISOCOST_OFFERS", "8"))

EMBEDDED = re.compile(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', re.DOTALL)


def people(seed):
    """Columns of people, and the question that is asked about them."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 10))
    sizes = rng.choice([300, 800, 2000], count)
    kinds = rng.choice(["plain", "off", "tiny", "one label"], count, p=[0.6, 0.15, 0.15, 0.1])
    kinds[:2] = "plain"
    columns = {name: [] for name in ("score", "label", "group", "weight")}
    for index, (size, kind) in enumerate(zip(sizes, kinds, strict=True)):
        n = 9 if kind == "tiny" else int(size)
        score = rng.beta(*rng.uniform(0.6, 3.0, 2), n)
        chance = np.clip(score + (0.12 if kind == "off" else 0.0), 0, 1)
        label = np.ones(n) if kind == "one label" else rng.random(n) < chance
        values = (score.round(6), label.astype(int), [f"site {index}"] * n)
        for name, column in zip(columns, values, strict=False):
            columns[name].extend(column)
        columns["weight"].extend(rng.lognormal(0, 0.3, n).round(3))
    if seed % 3:
        del columns["weight"]
    question = ic.Question(
        str(rng.choice(["fpr", "fnr", "weighted:1,3", "plain:1,1"])),
        threshold=float(rng.choice([0.5, 0.3])),
        tolerance=float(rng.choice([0.0, 0.02])),
        remakes=10,
        replicates=200,
        confidence=0.9,
    )
    return columns, question


def options_of(question):
    """The question as options of a command."""
    names = ["cost", "threshold", "tolerance", "replicates", "remakes", "seed", "min_group"]
    names += ["confidence"]
    return [f"--{name.replace('_', '-')}={getattr(question, name)}" for name in names]


def ran(*words):
    """The output of a command that succeeds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # In a context of its own: a command sets the language of messages for all that follows.
        run = copy_context().run
        result = run(CliRunner().invoke, app, [str(word) for word in words])
    assert result.exit_code == 0, f"{shlex.join(map(str, words))}\n{result.output}"
    return result.output


@pytest.fixture(params=range(COUNT))
def case(request, tmp_path, monkeypatch):
    """A file of people in the current folder, its reading options, its tally and a question."""
    monkeypatch.chdir(tmp_path)
    columns, question = people(request.param)
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    Path("data.csv").write_text("\n".join(lines) + "\n")
    reading = ["data.csv", "--bins=64", *(["--weight=weight"] if "weight" in columns else [])]
    weight = "weight" if "weight" in columns else None
    edges = (question.threshold, 1 - question.threshold)
    return reading, ic.tally("data.csv", weight=weight, bins=64, edges=edges), question


pytestmark = pytest.mark.filterwarnings("ignore::isocost.IsocostWarning")


def close(first, second):
    """True if two JSON values agree, numbers to 1e-12; texts are said to different readers."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            key in ("said", "advice") or close(first[key], second[key]) for key in first
        )
    if isinstance(first, list):
        return len(first) == len(second) and all(map(close, first, second))
    if isinstance(first, float) and isinstance(second, int | float):
        return abs(first - second) <= 1e-12
    return first == second


def rule_of(shown, groups):
    """A rule as the page holds it."""
    rows = []
    for index, lo, hi, value, probability, *end in shown["rows"]:
        action = {"defer": "defer", None: "mirror"}.get(value, "line" if end else "set")
        value = None if action == "defer" else value
        rows.append(Row(groups[index], lo, hi, action, value, probability, *end))
    return ic.Rule(groups=groups, rows=tuple(rows), method="shown")


def check_the_page(tally, question, comparison):
    page = ic.report_html(tally, question=question)
    data = json.loads(EMBEDDED.search(page)[1])
    held = held_tally(data["tally"], data["made"]["groups"])
    assert [group for group, _ in comparison.to_dict()["left_out"]] == data["tally"]["left_out"]
    given = {
        one["method"]: one
        for one in data["given"]
        if one["threshold"] in (None, question.threshold)
        and one["cost"] in (None, str(question.cost))
        and one["tolerance"] in (None, question.tolerance)
    }
    rules = {"original": ic.Rule(groups=held.groups, rows=(), method="none")}
    for name, offer in comparison.offers.items():
        shown = given.get(offer.repair.function)
        if offer.rule is None and shown is not None:
            with speaking(SHELL):
                assert shown["why"] == offer.said
        elif offer.rule is not None:
            # The page computes withholding by itself.
            rules[name] = rule_of(shown["rule"], held.groups) if shown else offer.rule
            assert rules[name].rows == offer.rule.rows, name
    written = json.loads(comparison.to_json())["rules"]
    assert written.keys() == rules.keys()
    for name, rule in rules.items():
        after = ic.audit(rule.expected(held), question=question, confidence=None, warn=False)
        done = changes(held, rule, question.threshold)
        shown, found = [after.overall.accuracy, done.changed, done.decisions], written[name]
        told = [found["accuracy"], *(found["changes"][n] for n in ("changed", "decisions"))]
        assert told == pytest.approx(shown, abs=1e-9), name
    accuracy = figures_of(comparison.audit).percent(written["original"]["accuracy"])
    assert accuracy in page[page.index("As it is") :][:1000]
    titles = {repair.title: name for name, repair in ic.REPAIRS.items()}
    for label, expected in data["outlooks"].items():
        assert expected == comparison.outlooks[titles[label]].cost_difference.expected
    return data


def test_every_door_gives_the_same_answer(case):
    reading, tally, question = case
    asked = options_of(question)
    audit = ic.audit(tally, question=question, warn=False)
    comparison = ic.compare(tally, question=question)

    shell = json.loads(ran("audit", *reading, *asked, "--json"))
    python = json.loads(audit.to_json())
    assert close(python["verdict"], shell["verdict"])
    assert close(python["disparities"], shell["disparities"])
    assert close(python["feasibility"], shell["feasibility"])
    first = python["advice"].splitlines()[0]
    assert first == shell["advice"].splitlines()[0]

    shell = json.loads(ran("compare", *reading, *asked, "--json"))
    python = json.loads(comparison.to_json())
    for name in ("rules", "unseen", "offers", "choice"):
        assert close(python[name], shell[name]), name
    printed = ran("compare", *reading, *asked)
    for one in comparison.rules.values():
        assert number_text(one.audit.disparity.difference) in printed

    data = check_the_page(tally, question, comparison)
    evidence = data["own"]["evidence"][str(question.cost)]["findings"]
    assert close(evidence, json.loads(audit.to_json())["verdict"]["findings"])


def test_following_advice_works(case):
    reading, tally, question = case
    asked = options_of(question)
    comparison = ic.compare(tally, question=question)
    for name, offer in comparison.offers.items():
        for setting, value in offer.possible_with.items():
            better = offer.but(**{setting: value})
            assert better.rule is not None, name
            assert better.rule.rows, name
            if not better.doubt:
                words = [w for w in asked if not w.startswith(f"--{setting}=")]
                command = ["fit", *reading, *words, f"--{setting}={value}", "--method", name]
                ran(*command, "--anyway", "-o", f"{name}-possible.json")
        if offer.standing == "fit":
            # The tolerance of the question is about costs; a repair of rates has its own.
            words = [w for w in asked if offer.repair.goal == "cost" or "tolerance" not in w]
            ran("fit", *reading, *words, "--method", name, "-o", f"{name}-fit.json")
            assert ic.Rule.load(f"{name}-fit.json").rows == offer.rule.rows

    said = ran("audit", *reading, *asked, "--full")
    said += ran("compare", *reading, *asked)
    commands = re.findall(
        r"\bisocost (?:fit|plan|recalibrate) [^()]*?(?=\)|; | tells| makes|\.\s|$)",
        " ".join(said.split()),
    )
    for index, command in enumerate(dict.fromkeys(commands)):
        words = shlex.split(command)[1:]
        if "-o" in words:
            words[words.index("-o") + 1] = f"followed-{index}.json"
        if words[0] == "fit":
            words += ["--remakes=10"]
        ran(*words)


def test_a_share_is_searched_and_a_tolerance_is_that_of_the_repair():
    offers = ic.compare(compas(), cost="fpr").offers
    assert max(offers["hand_over"].rule.promise.handed_over.values()) == pytest.approx(0.24)
    few = Offer("hand_over", compas(), ic.Question(), {"share": 0.1})
    assert (few.why_not, few.possible_with) == ("share", {"share": 0.231})
    assert offers["withhold"].better_scores == pytest.approx({"African-American": 0.3936}, abs=1e-4)
    assert offers["coarsen"].why_not == "tolerance"
    assert all(offer.needs_group for offer in offers.values())


def test_rules_may_come_from_a_generator():
    rule = ic.withhold(compas(), "fnr", tolerance=0.06)
    assert list(ic.compare(compas(), (one for one in [rule])).rules) == ["original", "withhold"]


def test_a_threshold_without_an_edge_is_refused_at_once():
    with pytest.raises(ic.UsageError, match="threshold: must be an edge of the tally"):
        ic.compare(compas(), threshold=0.37)
    # Mirrored scores need an edge at 1 - threshold too.
    data = drawn_rows(0, [400, 400], [(2, 3)] * 2)
    offer = ic.compare(ic.tally(data, edges=(0.37,)), threshold=0.37).offers["odds"]
    assert (offer.why_not, offer.possible_with) == ("refused", {})
    assert "threshold and 1 - threshold must be edges" in offer.said


def test_commands_carry_the_question(tmp_path, monkeypatch):
    """Otherwise what is established in the audit may not be when its command is pasted."""
    monkeypatch.chdir(tmp_path)
    audit = ic.audit(compas(), "fnr", 0.4, tolerance=0.06, confidence=0.9, seed=3, min_group=50)
    made = commands(audit, ["data.csv"])
    options = "--tolerance 0.06 --threshold 0.4 --confidence 0.9 --seed 3 --min-group 50"
    assert f"--method withhold --cost fnr {options} -o withhold.json" in str(made["withhold"])
    assert "tolerance" not in str(made["reconcile"])
    rule = eval(commands(audit)["withhold"], {"ic": ic, "tally": compas()})
    assert rule.rows == audit.offers["withhold"].rule.rows


def test_a_new_group_does_not_bring_back_those_left_out():
    tally = ic.tally(drawn_rows(1, [900, 800, 200, 100], [(2, 3)] * 4))
    rule = ic.equalize_odds(tally.select([0, 1, 2]), min_group=300)
    assert rule.fitted == (0, 1)
    assert rule.remake(tally).fitted == (0, 1, 3)


def test_groups_before_and_after():
    offer = ic.compare(compas(), cost="fnr", tolerance=0.06).offers["withhold"]
    after = ic.audit(offer.rule.expected(compas()), "fnr", confidence=None)
    for group, one in offer.groups.items():
        assert one.after["cost"] == after.groups[group].cost
        assert one.before["fpr"] == ic.audit(compas(), confidence=None).groups[group].fpr
        assert (one.changes.changed > 0) == (group in {row.group for row in offer.rule.rows})


def test_linear_programs_of_many_groups_are_made_only_by_name():
    many = MOST_PROGRAMS + 1
    offers = ic.compare(ic.tally(drawn_rows(0, [40] * many, [(2, 3)] * many))).offers
    assert list(offers) == ["withhold", "coarsen"]
    assert offers["odds"].rule.rows
    with pytest.raises(KeyError):
        offers["blind"]


def test_offers_that_were_looked_at_can_be_pickled():
    audit = ic.audit(compas(), "fpr", replicates=0)
    assert audit.advice
    assert pickle.loads(pickle.dumps(audit)).advice == audit.advice
    told = []
    comparison = ic.compare(
        compas(),
        cost="fpr",
        tolerance=0.06,
        remakes=10,
        progress=lambda *so_far: told.append(so_far),
    )
    known = comparison.offers["withhold"].unseen
    again = pickle.loads(pickle.dumps(comparison)).offers
    assert told
    assert again["withhold"].unseen == known
    assert again["coarsen"].rule == comparison.offers["coarsen"].rule


def speaking_shell(words):
    """Run a command that fails, and raise its error."""
    with speaking(SHELL):
        CliRunner().invoke(app, words, catch_exceptions=False, standalone_mode=False)


def test_commands_in_messages_run(tmp_path, monkeypatch):
    """They name the data, the settings, and the repair that was asked for."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    shape = {"x": (0.4, 39.6), "y": (0.9, 39.0)}
    rows = [(s, int(rng.random() < s), g) for g, p in shape.items() for s in rng.beta(*p, 4000)]
    lines = [f"{score:.4f},{label},{group}" for score, label, group in rows]
    Path("rare.csv").write_text("\n".join(["score,label,group", *lines]))
    asked = ["--cost", "fpr", "--threshold", "0.4", "--confidence", "0.9", "--remakes", "10"]
    words = ["fit", "rare.csv", "--method", "reconcile", *asked, "-o", "rule.json"]
    with pytest.raises(ic.NotAdvisedError) as refused:
        copy_context().run(speaking_shell, words)
    command = re.search(r"\((isocost plan .*?) tells how much\)", str(refused.value))[1]
    assert "--method reconcile" in command
    assert "--threshold 0.4 --confidence 0.9" in command
    ran(*shlex.split(command)[1:])


def test_a_tolerance_of_rates_is_hinted_at_with_the_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = drawn_rows(2, [3000, 3000], [(8, 2), (1, 9)])
    lines = [",".join(map(str, row)) for row in zip(*data.values(), strict=True)]
    Path("apart.csv").write_text("\n".join([",".join(data), *lines]))
    with speaking(SHELL):
        shown = ran("compare", "apart.csv", "--remakes", "10", "--threshold", "0.4")
    command = re.search(r"\((isocost fit .*--method reconcile .*)\)", shown)[1]
    assert "apart.csv" in command
    assert "--threshold 0.4" in command
    ran(*shlex.split(command)[1:], "--anyway", "-o", "rule.json")
