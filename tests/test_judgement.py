"""The verdict: each question, the order of questions, and the same answers in the page."""

import json
import re
import shutil
import subprocess
from dataclasses import asdict, fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from isocost.judging.compare import AGAINST, choose
from isocost.page.view import JUDGEMENT
from isocost.repairs.coarsen import decision_limit
from isocost.verdict.judgement import REASONS, Findings, judge
from isocost.verdict.sentences import SENTENCES, Vocabulary, plain
from isocost.verdict.wording import DETAILS, statement
from tests.populations import drawn_rows

ANSWERED = (
    "enough", "calibrated", "recalibrate", "same", "differs", "established", "equal", "feasible",
    "helps", "act", "reason",
)  # fmt: skip
CLEAR = Findings(
    groups=2,
    gap_high=0.03,
    difference=0.1,
    difference_low=0.05,
    excess=-0.2,
    excess_low=-0.3,
    excess_high=-0.1,
)


def changed(**numbers):
    return judge(Findings(**{**asdict(CLEAR), **numbers}))


def offered(standing="fit", calibrated=True, accuracy=0.7, by_coin=0.3, handed_over=0.0):
    """An offer, as far as a choice looks at it."""
    changes = SimpleNamespace(by_coin=by_coin, changed=0.2, handed_over=handed_over)
    rule = SimpleNamespace(promise=SimpleNamespace(calibrated=calibrated))
    return SimpleNamespace(
        standing=standing,
        compared=SimpleNamespace(changes=changes),
        unseen=SimpleNamespace(accuracy=SimpleNamespace(expected=accuracy)),
        made=lambda: rule,
    )


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"by_coin": 0.0}, {"by_coin": 0.3, "accuracy": 0.709}),
        ({"by_coin": 0.3}, {"by_coin": 0.0, "accuracy": 0.68}),
        ({"by_coin": 0.3, "accuracy": 0.6}, {"by_coin": 0.0, "calibrated": False}),
        ({"by_coin": 0.3, "accuracy": 0.6}, {"by_coin": 0.0, "handed_over": 0.2}),
        *(({"by_coin": 0.3}, {"by_coin": 0.0, "standing": code}) for code in AGAINST),
    ],
)
def test_which_repair_to_take(better, worse):
    offers = {"worse": offered(**worse), "better": offered(**better)}
    assert choose(offers, changed()).method == "better"
    # Whatever there is, scores that do not mean the same are not repaired.
    assert choose(offers, changed(gap_low=0.03)).reason == "uncalibrated"
    alone = choose({"worse": offered(**worse)}, changed())
    assert alone.reason == worse.get("standing", "fit")
    assert (alone.method is None) == ("standing" in worse)


def test_every_reason_for_doing_nothing_is_a_sentence():
    kinds = {"unsound" if code == "uncalibrated" else code for code in AGAINST}
    assert {f"choice_{kind}" for kind in kinds} <= SENTENCES.keys()


@pytest.mark.parametrize(
    ("numbers", "reason", "act"),
    [
        ({}, "repair", True),
        ({"groups": 1, "gap_low": 0.3, "excess_low": 0.1}, "few", False),
        ({"gap_low": 0.021, "difference": 0.0}, "uncalibrated", False),
        ({"labels_low": 0.021, "difference": 0.0}, "one_label", False),
        ({"labels_low": 0.6, "bias_low": 0.6}, "one_label", False),
        ({"labels_low": 0.6, "gap_low": 0.03}, "uncalibrated", False),
        ({"bias_low": 0.041}, "uncalibrated", False),
        ({"bias_low": 0.04}, "repair", True),
        # Scores that are off stop nothing unless that moves the difference in cost.
        ({"gap_low": 0.3, "bias_low": 0.3, "change": 0.0}, "repair", True),
        ({"change": 0.01}, "repair", True),
        ({"change": 0.011}, "uncalibrated", False),
        ({"change": 0.04, "tolerance": 0.04}, "repair", True),
        ({"change": 0.041, "tolerance": 0.04}, "uncalibrated", False),
        ({"labels_low": 0.6, "change": 0.0}, "one_label", False),
        ({"labels_low": 0.6, "change": 0.011}, "uncalibrated", False),
        ({"groups": 1, "change": 0.3}, "few", False),
        # Equality is never taken for granted: not without a tolerance, not without an interval.
        (
            {"difference": 0.0, "difference_low": 0.0, "difference_high": 0.0},
            "unestablished",
            False,
        ),
        ({"tolerance": 0.1}, "unestablished", False),
        ({"tolerance": 0.1, "difference_high": 0.11}, "unestablished", False),
        ({"tolerance": 0.1, "difference": 0.04, "difference_high": 0.1}, "equal", False),
        ({"tolerance": 0.05, "difference_high": 0.15}, "unestablished", False),
        ({"tolerance": 0.049, "difference_high": 0.15}, "repair", True),
        ({"difference_low": 0.0}, "unestablished", False),
        ({"excess": 0.2, "excess_low": 0.1, "excess_high": 0.3}, "infeasible", False),
        ({"excess": 0.2, "excess_low": -0.1, "excess_high": 0.3}, "unreachable", False),
        ({"excess": -0.2, "excess_low": -0.3, "excess_high": 0.3}, "uncertain", True),
        ({"expected": 0.03, "unrepaired": 0.1}, "repair", True),
        ({"expected": 0.11, "unrepaired": 0.1}, "unhelpful", False),
        ({"expected": 0.1, "unrepaired": 0.1, "excess_high": 0.3}, "unhelpful", False),
        ({"expected": 0.2, "unrepaired": 0.1, "excess_low": 0.1}, "infeasible", False),
        ({"gap_high": float("nan")}, "repair", True),
        ({"difference_low": 1e-10}, "unestablished", False),
    ],
)
def test_the_first_no_is_the_reason(numbers, reason, act):
    verdict = changed(**numbers)
    assert (verdict.reason, verdict.act) == (reason, act)


def test_with_too_little_data_nothing_else_is_answered():
    verdict = changed(groups=1, gap_low=0.3, excess=0.2, excess_low=0.1, excess_high=0.3)
    assert not verdict.enough
    assert not verdict.established
    assert (verdict.calibrated, verdict.feasible) == ("unknown", "unknown")
    # A group of twelve looks different by far, and the table must not say it is.
    with pytest.warns(ic.UncertainWarning, match="too little data to compare"):
        audit = ic.audit(population([(2, 3), (5, 2)], [250, 12]), "fpr")
    assert audit.verdict.reason == "few"
    assert re.search(r"Cost differs by \d\.\d+: group", repr(audit))


def test_calibration_may_be_unknown():
    assert changed(gap_high=0.06).calibrated == "unknown"
    assert changed(gap_high=0.05).calibrated == "yes"
    assert changed(gap_low=0.03).calibrated == "no"
    # Without intervals a gap may be chance, unless it is within the limit.
    assert changed(gap_high=float("nan"), gap=0.021, intervals=False).calibrated == "unknown"
    assert changed(gap_high=float("nan"), gap=0.02, intervals=False).calibrated == "yes"


def test_what_a_score_means_may_differ_between_groups():
    assert changed().same == "unknown"
    assert changed(bias_low=0.0, bias_high=0.02).same == "yes"
    assert changed(bias_low=0.0, bias_high=0.021).same == "unknown"
    assert changed(bias_low=0.02, bias_high=0.05).same == "unknown"
    assert (changed(bias_low=0.021).same, changed(bias_low=0.021).calibrated) == ("no", "yes")
    assert changed(bias_low=0.041).calibrated == "no"


def test_the_tables_that_scripts_are_tested_with_are_those_of_the_page():
    path = Path(__file__).parent / "js" / "judgement.json"
    assert json.loads(path.read_text()) == json.loads(json.dumps(JUDGEMENT))


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_page_judges_as_python_does():
    rng = np.random.default_rng(0)
    states = []
    for _ in range(1000):
        # Values from a short list meet each bound exactly, too.
        values = rng.choice([-0.05, 0.0, 1e-10, 0.02, 0.021, 0.05, 0.06, 0.3], 14).tolist()
        for place, chance in ((1, 0.1), (3, 0.5), (4, 0.2), (5, 0.8), (6, 0.5)):
            if rng.random() < chance:
                values[place] = float("nan")
        asked = rng.choice([0.05, 0.06, float("nan")], 2).tolist()
        drawn = [int(rng.integers(1, 4)), *values, bool(rng.random() < 0.5), *asked]
        names = (field.name for field in fields(Findings))
        states.append(Findings(**dict(zip(names, drawn, strict=True))))
    plain_states = [
        {k: None if v != v else v for k, v in asdict(state).items()} for state in states
    ]
    script = (
        'import { judge } from "./src/isocost/page/web/app/verdicts.js";'
        "const { tables, states } = JSON.parse(require_stdin);"
        "console.log(JSON.stringify(states.map((one) => judge(tables, one))));"
    ).replace("require_stdin", '(await import("node:fs")).readFileSync(0, "utf8")')
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        input=json.dumps({"tables": JUDGEMENT, "states": plain_states}),
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    seen = set()
    for state, there in zip(states, json.loads(done.stdout), strict=True):
        here = judge(state)
        seen.add(here.reason)
        for name in ANSWERED:
            assert getattr(here, name) == there[name], state
    assert seen == {reason for reason, _, _ in REASONS}


def test_a_headline_for_each_reason():
    kinds = {"equal": "equal", "unreachable": "uncertain", "one_label": "uncalibrated"}
    for reason, _, _ in REASONS:
        assert f"headline_{kinds.get(reason, reason)}" in SENTENCES
        assert f"next_{reason}" in SENTENCES
        assert reason in DETAILS


def population(shapes, sizes, seed=0, shift=0.0):
    return ic.tally(drawn_rows(seed, sizes, shapes, shift))


SECOND = 0.08 * np.repeat([0, 1], 3000)
"""Scores of the second of two groups are too low."""


@pytest.mark.parametrize(
    ("tally", "cost", "reason"),
    [
        (compas(), "fpr", "infeasible"),
        (population([(2, 3)] * 2, [12, 13]), "fpr", "few"),
        (population([(2, 3)] * 2, [3000, 3000], shift=SECOND), "fpr", "uncalibrated"),
        # Both are off alike.
        (population([(2, 3)] * 2, [3000, 3000], shift=0.08), "fpr", "unestablished"),
        (population([(2, 3)] * 4, [300] * 4), "fpr", "unestablished"),
        (population([(0.6, 1.2), (0.7, 0.9)], [3000, 3000]), "fpr", "repair"),
    ],
)
@pytest.mark.filterwarnings("ignore::isocost.UncertainWarning")
def test_what_follows_does_not_contradict_the_headline(tally, cost, reason):
    audit = ic.audit(tally, cost)
    assert audit.verdict.reason == reason
    said = statement(audit)
    after = " ".join(
        plain(one) for one in (said.next, *said.details, *(n.sentence for n in said.notes))
    )
    assert ("Withholding does that" in after) == audit.verdict.act
    assert ("Leave everybody’s score as it is" in after) == (reason == "unestablished")
    assert ("Recalibrate the scores of each group first" in after) == (reason == "uncalibrated")


@pytest.mark.filterwarnings("ignore::isocost.UncertainWarning")
def test_every_seed_gives_the_same_verdict():
    tally = population([(2, 2), (2, 2.2), (2, 2.4)], [400] * 3)
    verdicts = {ic.audit(tally, "fpr", seed=seed).verdict.reason for seed in range(8)}
    assert len(verdicts) == 1


def test_small_groups_are_listed_and_decide_nothing():
    tally = population([(0.6, 1.2), (0.7, 0.9), (8, 1)], [3000, 3000, 4], seed=1)
    small = ic.tally({"score": [0.2, 0.3], "label": [0, 0], "group": [9, 9]})
    audit = ic.audit(tally + small, "fpr")
    without = ic.audit(tally.drop([2]), "fpr")
    assert audit.compared == (0, 1)
    assert audit.verdict == without.verdict
    assert audit.disparity == without.disparity
    assert np.isnan(audit.groups[9].fnr)
    small = "group 2 (4 people) and group 9 (2 people)."
    said = audit.advice.split("\n")[:8]
    assert f"Left out of every test, with fewer than 30 people: {small}" in said
    assert all(str(group) in repr(audit) for group in (2, 9))
    mixed = ic.tally({"score": [0.2, 0.3], "label": [0, 1], "group": [7, 7]})
    everybody = ic.audit(tally + mixed, "fpr", min_group=0, confidence=None)
    assert everybody.compared == (0, 1, 7)


@pytest.mark.filterwarnings("ignore::isocost.IsocostWarning")
def test_coarsening_is_said_to_leave_decisions_alone_where_it_does():
    rng = np.random.default_rng(0)
    seen = set()
    for seed in range(30):
        shapes = [tuple(rng.uniform(0.4, 2.5, 2)) for _ in range(2)]
        audit = ic.audit(population(shapes, [400, 500], seed), "fpr", confidence=None)
        if not audit.feasibility.feasible:
            continue
        limits = decision_limit(audit.tally, "fpr")
        reach = audit.feasibility
        works = all(limits[group] >= reach.target_cost - 1e-9 for group in reach.changed)
        assert (audit.offers["coarsen"].rule is not None) == works, seed
        seen.add(works)
    assert seen == {True, False}


def test_better_scores_are_asked_for_every_group_above_the_limit():
    audit = ic.audit(population([(2, 2), (2, 2), (1, 4)], [5000] * 3), "fpr")
    assert audit.verdict.highest == (0, 1)
    assert "Improve the scores of group 0 and group 1, or accept" in audit.advice
    assert "Which group’s errors cost most is not established: it could be group 0 or group 1." in (
        audit.advice
    )


def test_of_many_groups_that_may_cost_most_the_number_is_told():
    audit = ic.audit(population([(2, 2)] * 6 + [(1, 4)], [3000] * 7), "fpr")
    assert f"it could be any of {len(audit.verdict.highest)} groups." in audit.advice


def test_reconcile_is_advised_where_it_can_work():
    assert "ic.reconcile(tally)" in ic.audit(compas(), "fpr").advice
    far = ic.audit(population([(8, 2), (1, 9)], [5000, 5000]), "fpr")
    assert "reconcile" not in far.advice


@pytest.mark.parametrize(
    ("outcome", "positive", "negative"),
    [
        ("were denied", "were denied", "were not denied"),
        ("denied", "were denied", "were not denied"),
        ("denied the charge", "denied the charge", "have not denied the charge"),
        ("reoffended", "reoffended", "did not reoffend"),
        ("defaulted on a loan", "defaulted on a loan", "did not default on a loan"),
        ("relapsed", "relapsed", "have not relapsed"),
        ("had a stroke", "had a stroke", "did not have a stroke"),
        ("had defaulted", "had defaulted", "had not defaulted"),
        ("were not hired", "were not hired", "were hired"),
        ("did not repay", "did not repay", "did repay"),
        ("went bankrupt / stayed solvent", "went bankrupt", "stayed solvent"),
    ],
)
def test_an_outcome_completes_people_who(outcome, positive, negative):
    for cost, who in (("fpr", negative), ("fnr", positive)):
        said = statement(ic.audit(compas(), cost), vocabulary=Vocabulary("persons", outcome))
        assert f"persons who {who} " in plain(said.headline).lower()


@pytest.mark.parametrize("outcome", ["default", "denial", "went bankrupt", "succeed", "/ repaid"])
def test_an_outcome_that_completes_nothing_is_refused(outcome):
    with pytest.raises(ic.UsageError, match=r"outcome: must complete “people who") as caught:
        Vocabulary(outcome=outcome)
    assert "“repaid / did not repay”" in str(caught.value)
