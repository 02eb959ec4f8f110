"""The page's model agrees with Python on every number, over a grid of settings."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import isocost as ic
from isocost.cells import (
    KEYS,
    SUMS,
)
from isocost.costs import Cost, as_cost
from isocost.examples import compas
from isocost.groups import to_json
from isocost.judging.offers import changes
from isocost.page.payload import held_tally, payload, safe_group
from isocost.page.view import compact, given_repairs
from isocost.repairs.base import summary_of
from isocost.rules import Row
from tests.conftest import DATA, measured, sample

ANSWERS = Path(__file__).parent / "js" / "answers.js"
CLOSE = {"rel": 1e-9, "abs": 1e-9}
COSTS = ("fpr", "fnr", "weighted:1,3", "weighted:2.5,0.5", "plain:1,3")
MEASURED = (
    "n", "share", "base_rate", "mean_score", "generalized_fpr", "generalized_fnr", "fpr", "fnr",
    "selection_rate", "accuracy", "brier", "calibration_gap", "cost", "trivial_cost",
)  # fmt: skip
SUMMED = (
    "n", "share", "base_rate", "mean_score", "generalized_fpr", "generalized_fnr", "brier", "cost",
    "trivial_cost",
)  # fmt: skip
CHANGED = ("changed", "by_coin", "decisions")


def cost_fields(cost):
    """A cost as the page's model takes it."""
    cost = as_cost(cost)

    def amount(value):
        pairs = value.items() if isinstance(value, dict) else None
        return value if pairs is None else [[safe_group(g), number] for g, number in pairs]

    named = str(cost) if str(cost) in ("fpr", "fnr") else None
    kind = named or ("weighted" if cost.by_base_rate else "plain")
    return {"kind": kind, "fp": amount(cost.fp), "fn": amount(cost.fn)}


def few(seed, groups, weighted):
    """A few dozen rows, many of them on edges; anything may be degenerate."""
    random = np.random.default_rng(seed)
    size = int(random.integers(8, 40))
    score = np.where(
        random.random((groups, size)) < 0.5,
        random.integers(0, 11, (groups, size)) / 10,
        random.random((groups, size)),
    )
    label = random.integers(0, 2, (groups, size))
    label[:, :2] = [0, 1]
    weight = random.gamma(2.0, 1.0, (groups, size)) + 0.05 if weighted else np.ones((groups, size))
    group = np.repeat(np.arange(groups), size)
    rows = {"score": score.ravel(), "label": label.ravel(), "group": group}
    return ic.tally({**rows, "weight": weight.ravel()}, weight="weight")


def tallies():
    found = {
        "compas": compas(),
        "income": ic.Tally.load(DATA / "income.json"),
        "health": ic.Tally.load(DATA / "health.json"),
        "four": ic.tally(sample(3000, 4, seed=1)),
        "weighted": ic.tally(sample(2000, 3, seed=2, weighted=True), weight="weight"),
    }
    for seed in range(20):
        found[f"few {seed}"] = few(seed, 2 + seed % 3, seed % 2 == 1)
    return found


def settings(name, tally):
    """The costs, tolerances and thresholds that a tally is asked about."""
    per_group = {group: 1.0 + place / 3 for place, group in enumerate(tally.groups)}
    costs = [*map(Cost.parse, COSTS), Cost(fp=per_group, fn=0.5, by_base_rate=True)]
    if name == "compas":
        return costs, (0.0, 0.01, 0.06), (0.5, 0.3)
    if name == "health":
        return costs, (0.0, 0.06), (0.5,)
    if not name.startswith("few"):
        return costs[1::2], (0.0, 0.06), (0.5,)
    seed = int(name.split()[1])
    return [costs[seed % len(costs)]], (0.0, 0.05), (0.3,) if seed % 5 == 0 else (0.5,)


def questions(found, with_rules=True):
    asked, seen = [], set()
    for name, tally in found.items():
        subsets = [None, [0, 2]] if len(tally.groups) > 2 else [None]
        for cost, tolerance, threshold, groups in product(*settings(name, tally), subsets):
            question = {
                "tally": name,
                "groups": groups,
                "cost": cost,
                "threshold": threshold,
                "tolerance": tolerance,
                "rules": [],
                "cells": name != "income" or (name, threshold) not in seen,
            }
            # Python gives the page rules for all groups; once for what they depend on is enough.
            if with_rules and groups is None and (name, threshold, tolerance) not in seen:
                question["rules"] = with_tolerance(tally, cost, threshold, tolerance)
                if (name, threshold) not in seen:
                    question["rules"] += without_tolerance(tally, threshold)
            seen |= {(name, threshold), (name, threshold, tolerance)}
            asked.append(question)
    return asked


def with_tolerance(tally, cost, threshold, tolerance):
    """Rules of the methods that the page does not compute, and that may leave a difference."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ic.IsocostWarning)
        first = ic.recalibrate(tally, "beta")
        second = ic.withhold(first.expected(tally), cost, tolerance, "closest")
        return [
            first.then(second, tally),
            ic.coarsen(tally, cost, threshold, tolerance, "closest"),
            ic.coarsen(tally, cost, threshold, tolerance, "closest", allow_decision_changes=True),
        ]


def without_tolerance(tally, threshold):
    """Rules of the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ic.IsocostWarning)
        return [
            ic.recalibrate(tally, "sigmoid"),
            steep(tally),
            ic.equalize_odds(tally, threshold),
            ic.equalize_odds(tally, threshold, rates="hard"),
            ic.reconcile(tally, threshold, infeasible="closest"),
        ]


def steep(tally):
    """Lines that spread the people of a bin over several bins."""
    rows = [
        Row(group, lo, lo + 0.25, "line", lo / 2, 0.5, end)
        for group in tally.groups
        for lo, end in ((0.0, 1.0), (0.25, 0.0), (0.5, 0.95))
    ]
    return ic.Rule(tally.groups, tuple(rows), "steep", made_from=summary_of(tally))


class Case:
    """One question, the page's answer, and the tally it is about."""

    def __init__(self, tally, question, answer):
        groups = question["groups"]
        chosen = tally if groups is None else tally.select(tally.groups[i] for i in groups)
        self.tally, self.answer = chosen, answer
        self.rules = question["rules"]
        self.name = str({key: question[key] for key in ("tally", "groups", "cost", "tolerance")})
        self.threshold, self.tolerance = question["threshold"], question["tolerance"]
        self.cost = question["cost"]
        if isinstance(self.cost.fp, dict):
            amounts = {group: self.cost.fp[group] for group in chosen.groups}
            self.cost = Cost(amounts, self.cost.fn, self.cost.by_base_rate)

    def withheld(self):
        """The rule that Python makes, or None where it is not feasible."""
        try:
            asked = ic.Question(self.cost, tolerance=self.tolerance, min_group=0)
            return ic.REPAIRS["withhold"].rule(self.tally, asked)
        except ic.InfeasibleError:
            return None


def ask(pages, asked):
    """The page's answers: node runs once for all questions."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    listed = [
        {
            **{key: question[key] for key in question if key != "rules"},
            "cost": cost_fields(question["cost"]),
            "given": question.get("given") or [shortened(rule) for rule in question["rules"]],
        }
        for question in asked
    ]
    done = subprocess.run(
        [node, str(ANSWERS)],
        input=json.dumps({"tallies": pages, "questions": listed}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def shortened(rule):
    """A rule as the page holds it."""
    return compact(rule.groups, rule)


@pytest.fixture(scope="module")
def cases():
    found = tallies()
    asked = questions(found)
    answers = ask({name: payload(tally) for name, tally in found.items()}, asked)
    return [Case(found[q["tally"]], q, a) for q, a in zip(asked, answers, strict=True)]


def same(page, python, where):
    """Whether two numbers agree; null stands for what is no finite number."""
    if page is None:
        assert not math.isfinite(python), where
    else:
        assert page == pytest.approx(python, **CLOSE), where


def same_measures(page, audit, where, names=MEASURED):
    for answer, group in zip(page["measures"], audit.groups, strict=True):
        assert answer["group"] == safe_group(group)
        for name in names:
            same(answer[name], getattr(audit.groups[group], name), (where, group, name))
    for name in names:
        same(page["overall"][name], getattr(audit.overall, name), (where, name))


def test_measures(cases):
    for case in cases:
        audit = measured(case.tally, case.cost, case.threshold)
        same_measures(case.answer, audit, case.name)


def test_feasibility(cases):
    for case in cases:
        found, page = ic.feasibility(case.tally, case.cost, case.tolerance), case.answer
        answer = page["feasibility"]
        assert answer["feasible"] == found.feasible
        assert case.tally.groups[answer["target"]] == found.target_group
        for name in ("target_cost", "smallest_tolerance", "required_cost"):
            same(answer[name], getattr(found, name), (case.name, name))
        for name in ("costs", "trivial_costs", "alpha"):
            for number, python in zip(answer[name], getattr(found, name).values(), strict=True):
                same(number, python, (case.name, name))
        for name in ("unreachable", "changed"):
            places = [case.tally.groups[place] for place in answer[name]]
            assert tuple(places) == getattr(found, name), (case.name, name)


def same_rows(loaded, made, where):
    assert len(loaded.rows) == len(made.rows), where
    for mine, theirs in zip(loaded.rows, made.rows, strict=True):
        assert (mine.group, mine.action) == (theirs.group, theirs.action), where
        for name in ("lo", "hi", "probability"):
            same(getattr(mine, name), getattr(theirs, name), (where, name))
        if theirs.value is None:
            assert mine.value is None
        else:
            same(mine.value, theirs.value, (where, "value"))
        assert mine.end == theirs.end, where


def same_rule(loaded, made, where):
    """All that a rule says besides its rows."""
    for name in ("groups", "method", "cost", "salt"):
        assert getattr(loaded, name) == getattr(made, name), (where, name)
    assert list(loaded.settings.items()) == list(made.settings.items()), where
    assert loaded.reading == made.reading
    assert loaded.made_from["n"] == made.made_from["n"]
    for mine, theirs in zip(loaded.made_from["groups"], made.made_from["groups"], strict=True):
        assert (mine["group"], mine["n"]) == (theirs["group"], theirs["n"]), where
        same(mine["base_rate"], theirs["base_rate"], where)


def test_withhold(cases):
    refused = 0
    for case in cases:
        answer, made = case.answer["withhold"], case.withheld()
        assert (answer is None) == (made is None), case.name
        if made is None:
            refused += 1
        else:
            check_rule(answer, made, case)
    assert 0 < refused < len(cases)


def test_given_rules(cases):
    actions, notes = set(), 0
    for case in cases:
        for answer, made in zip(case.answer["given"], case.rules, strict=True):
            check_rule(answer, made, case)
            actions |= {(made.method, row.action) for row in made.rows}
            notes += len(made.notes)
    assert len(actions) == 8
    assert notes


def check_rule(answer, made, case):
    """The rule that the page copies is Python's, and so is what it says of it."""
    loaded, where = ic.Rule.from_json(answer["text"]), (case.name, made.method)
    same_rule(loaded, made, where)
    same_rows(loaded, made, where)
    assert loaded.notes == made.notes, where
    check_effects(answer, made, case.tally, case, where)


def check_effects(answer, rule, tally, case, where, names=MEASURED, told_of=CHANGED):
    after = rule.expected(tally)
    page = {"measures": answer["after"], "overall": answer["overall"]}
    same_measures(page, measured(after, case.cost, case.threshold), where, names)
    for place in (None, *range(len(tally.groups))):
        found = changes(tally, rule, case.threshold, place)
        told = answer["changes"]["overall" if place is None else "groups"]
        told = told if place is None else told[place]
        for number in told_of:
            same(told[number], getattr(found, number), (where, place, number))
    if answer["cells"] is not None:
        same_cells(answer["cells"], after, where)


def same_cells(page, tally, where):
    # Fourth powers of weights are for intervals, which the page does not compute.
    for name in (name for name in (*KEYS, *SUMS) if name != "w4"):
        mine = np.array([cell[name] for cell in page], dtype=float)
        theirs = getattr(tally.cells, name).astype(float)
        assert mine.shape == theirs.shape, where
        assert np.allclose(mine, theirs, rtol=1e-9, atol=1e-9), (where, name)


def test_with_small_cells_hidden_the_costs_stay():
    found = {
        "compas": compas(),
        "weighted": ic.tally(sample(3000, 3, seed=7, weighted=True), weight="weight"),
    }
    asked = [
        {**question, "cells": False}
        for question in questions(found, with_rules=False)
        if question["threshold"] == 0.5
    ]
    answers = ask({name: payload(tally, 30) for name, tally in found.items()}, asked)
    for question, answer in zip(asked, answers, strict=True):
        case = Case(found[question["tally"]], question, answer)
        # The tenths and the threshold have enough people on either side in these data, but for
        # the outer tenths: so all but the gap is known, and that is no larger.
        audit = measured(case.tally, case.cost, case.threshold)
        for mine, theirs in zip(answer["measures"], audit.groups.values(), strict=True):
            for name in MEASURED:
                if name != "calibration_gap":
                    same(mine[name], getattr(theirs, name), (case.name, name))
            assert mine["calibration_gap"] <= theirs.calibration_gap + 1e-12
        feasible = ic.feasibility(case.tally, case.cost, case.tolerance).feasible
        assert answer["feasibility"]["feasible"] == feasible
        made = case.withheld()
        assert (answer["withhold"] is None) == (made is None)
        if made is not None:
            same_rows(ic.Rule.from_json(answer["withhold"]["text"]), made, case.name)
            after = measured(made.expected(case.tally), case.cost, case.threshold)
            for mine, theirs in zip(
                answer["withhold"]["after"], after.groups.values(), strict=True
            ):
                same(mine["cost"], theirs.cost, case.name)


@pytest.mark.parametrize("least", [0, 30])
def test_the_rules_of_a_page_do_what_python_says(least):
    tally = ic.tally(sample(3000, 3, seed=7), bins=128)
    held = payload(tally, least, 0.4)
    shown = held_tally(held, [to_json(group) for group in tally.groups])
    audit = ic.audit(shown, "weighted:1,3", 0.4, tolerance=0.05, confidence=None)
    given = given_repairs(audit, held)
    assert {(one["method"], one["rule"] is None) for one in given} >= {
        ("coarsen", False), ("equalize_odds", False), ("hand_over", False), ("reconcile", False),
    }  # fmt: skip
    asked = [
        {
            "tally": "page", "groups": None, "cost": audit.cost, "tolerance": 0.0,
            "cells": False, "rules": [], "threshold": one["threshold"] or 0.4,
            "given": [one["rule"]],
        }
        for one in given
        if one["rule"]
    ]  # fmt: skip
    for question, answer in zip(asked, ask({"page": held}, asked), strict=True):
        (told,) = answer["given"]
        rule, where = ic.Rule.from_json(told["text"]), (least, question["threshold"])
        case = Case(shown, question, answer)
        # The page knows how far merged bins reach, so where they lie after a flip may be open.
        is_open = held["merged"] and rule.method == "odds"
        names, told_of = (SUMMED, CHANGED[:2]) if is_open else (MEASURED, CHANGED)
        check_effects(told, rule, shown, case, (where, rule.method), names, told_of)
