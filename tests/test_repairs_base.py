"""Whether the data support a repair: functions warn, rules carry a note, the command refuses."""

import json
import re
import warnings

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from isocost.judging.offers import Offer
from isocost.repairs.base import verdict_on
from isocost.rules import Promise
from isocost.verdict.judgement import Findings, judge
from tests.populations import drawn_rows
from tests.processes import run

FPR = ic.Question("fpr")


def population(shapes, sizes, shift=0.0, seed=0):
    """Calibrated scores, but for those of the second group, which are shifted."""
    return drawn_rows(seed, sizes, shapes, shift * np.repeat(np.arange(len(sizes)) == 1, sizes))


NOISE = population([(2, 3)] * 2, [25, 25])
ALIKE = population([(2, 3)] * 2, [300, 300])
OFF = population([(0.6, 1.2), (0.7, 0.9)], [3000, 3000], shift=0.08)
APART = population([(0.6, 1.2), (0.7, 0.9)], [3000, 3000])


@pytest.mark.parametrize(
    ("make", "data", "warning", "text"),
    [
        (ic.withhold, NOISE, ic.UncertainWarning, "too little data"),
        (ic.withhold, ALIKE, ic.UncertainWarning, "not established that groups differ in cost"),
        (ic.withhold, OFF, ic.UncalibratedWarning, "do not mean what they say"),
        (ic.coarsen, OFF, ic.UncalibratedWarning, "do not mean what they say"),
    ],
)
def test_functions_warn_and_write_a_note(make, data, warning, text):
    tally = ic.tally(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ic.InfeasibleWarning)
        with pytest.warns(warning, match=text) as caught:
            rule = make(tally, "fpr", infeasible="closest")
        assert caught[0].filename == __file__
        assert text in rule.notes[-1]
        with pytest.raises(ic.NotAdvisedError, match=text):
            Offer(rule.method, tally, FPR, {"infeasible": "closest"}).advised()


def test_a_group_of_four_keeps_its_scores():
    few = {"score": [0.3, 0.4, 0.5, 0.2], "label": [0, 1, 0, 1], "group": [9] * 4}
    both = {name: np.concatenate([APART[name], few[name]]) for name in few}
    tally = ic.tally(both)
    assert 'ic.withhold(tally, "fpr")' in ic.audit(tally, "fpr").advice
    rule = ic.withhold(tally, "fpr", tolerance=0.07)
    assert (rule.fitted, rule.groups) == ((0, 1), (0, 1, 9))
    assert rule.notes == (
        "Not compared, and left with the scores that they have: group 9 (too few).",
    )
    # The four alone would make it infeasible: with min_group=0 they take part.
    with pytest.raises(ic.InfeasibleError):
        ic.withhold(tally, "fpr", min_group=0)


@pytest.mark.filterwarnings("error::isocost.IsocostWarning")
def test_nothing_is_said_where_the_data_support_it():
    assert ic.withhold(ic.tally(APART), "fpr").notes == ()
    assert ic.reconcile(compas()).rows
    assert Offer("withhold", ic.tally(APART), FPR).advised().rows


@pytest.mark.filterwarnings("error::isocost.IsocostWarning")
def test_a_rule_that_gives_up_calibration_does_not_ask_for_it():
    data = population([(2, 2), (2, 4)], [3000, 3000], shift=0.08)
    assert ic.equalize_odds(ic.tally(data)).rows


def test_what_is_not_established_is_not_called_infeasible():
    with pytest.raises(ic.NotAdvisedError, match="too little data"):
        Offer("withhold", ic.tally(NOISE), FPR).advised()
    with pytest.raises(ic.InfeasibleError):
        Offer("withhold", compas(), FPR).advised()


def test_remaking_does_not_warn_and_keeps_the_doubt():
    with pytest.warns(ic.UncertainWarning):
        rule = ic.withhold(ic.tally(NOISE), "fpr", infeasible="closest")
    assert "too little data" in rule.notes[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ic.UncertainWarning)
        warnings.simplefilter("ignore", ic.InfeasibleWarning)
        assert rule.remake(ic.tally(NOISE)) == rule
        names = {0: "first"}
        merged = ic.REPAIRS["withhold"].rule(
            ic.tally(NOISE).relabel(names), FPR, infeasible="closest"
        )
        assert merged.unmerged(names).remake(ic.tally(NOISE)).notes == rule.notes


def test_the_command_refuses_unless_told_otherwise(tmp_path):
    path = tmp_path / "data.csv"
    rows = zip(*(ALIKE[name] for name in ("score", "label", "group")), strict=True)
    lines = [f"{h:.4f},{y},{g}" for h, y, g in rows]
    path.write_text("\n".join(["score,label,group", *lines]))
    rule = tmp_path / "rule.json"
    fit = ["fit", str(path), "--cost", "fpr", "-o", str(rule)]
    done = run(*fit)
    assert done.returncode == 1
    assert "not established that groups differ in cost" in done.stderr
    assert "--anyway" in done.stderr
    assert not rule.exists()
    done = run(*fit, "--anyway", "--remakes", "20")
    assert done.returncode == 0
    support, unseen = json.loads(rule.read_text())["notes"][-2:]
    assert "not established" in support
    assert "no better than nothing" in unseen


COUNTED = {"few", "uncalibrated", "equal", "unestablished"}


def mixed(seed):
    """People whose groups are large and small, calibrated and not, with weights or without."""
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(2, 5))
    sizes = rng.choice([12, 60, 400, 2500], groups)
    shapes = [(rng.uniform(0.5, 4), rng.uniform(0.5, 4)) for _ in range(groups)]
    data = population(shapes, sizes, shift=rng.choice([0.0, 0.03, 0.1]), seed=seed)
    if seed % 3 == 0:
        data["weight"] = rng.uniform(0.2, 3.0, len(data["score"]))
    return ic.tally(data, weight="weight" if "weight" in data else None)


@pytest.mark.filterwarnings("ignore::isocost.IsocostWarning")
def test_the_reason_is_that_of_an_audit():
    promises = [
        (("cost",), True, "fpr"),
        (("cost",), True, "weighted:1,3"),
        (("cost",), True, {"fp": 2.0, "fn": 1.0}),
        (("fpr", "fnr"), True, None),
        (("generalized_fpr", "generalized_fnr"), False, None),
        (("selection_rate",), False, None),
    ]
    seen = set()
    for seed in range(40):
        tally = mixed(seed)
        if (tally.totals.n == 0).any():
            continue
        equal, calibrated, cost = promises[seed % len(promises)]
        cost = ic.Cost(**cost) if isinstance(cost, dict) else cost
        limits = dict.fromkeys(equal, (0.0, 0.05, 0.3)[seed // 6 % 3])
        threshold = (0.5, 0.3)[seed % 2]
        promise = Promise(limits, limits, calibrated, False, threshold)
        audit = ic.audit(tally, cost or "fnr", threshold, tolerance=max(limits.values()))
        lows, highs = zip(*(audit.intervals.disparities[name] for name in equal), strict=True)
        findings = Findings(
            groups=audit.verdict.findings.groups,
            change=audit.recalibrated.shown if calibrated else 0.0,
            difference=max(audit.disparities[name].difference for name in equal),
            difference_low=max(lows),
            difference_high=max(highs),
            tolerance=max(limits.values()),
        )
        expected = judge(findings).reason
        reason = verdict_on(tally, audit.compared, promise, audit.question).reason
        assert reason == expected or COUNTED.isdisjoint({reason, expected}), seed
        seen.add(reason)
    assert seen >= COUNTED | {"repair"}


def test_each_rate_is_computed_once(monkeypatch):
    promise, of, computed = ic.reconcile(compas()).promise, ic.Measure.of, []

    def counted(self, sums):
        computed.append(self.name)
        return of(self, sums)

    monkeypatch.setattr(ic.Measure, "of", counted)
    assert verdict_on(compas(), compas().groups, promise, ic.Question()).reason == "repair"
    assert computed == ["fpr", "fnr", "base_rate"]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "make",
    [
        lambda t, **more: ic.withhold(t, "fpr", **more),
        lambda t, **more: ic.coarsen(t, "fpr", thresholds=(), **more),
        lambda t, **more: ic.reconcile(t, equal=("generalized_fpr", "generalized_fnr"), **more),
    ],
)
@pytest.mark.filterwarnings("ignore::isocost.IsocostWarning")
def test_the_closest_is_offered_with_what_it_does(make, seed):
    random = np.random.default_rng(seed)
    score = np.concatenate([random.beta(1, 12, 400), random.beta(5, 2, 500)])
    label = random.random(900) < score
    tally = ic.tally({"score": score, "label": label, "group": ["low"] * 400 + ["high"] * 500})
    with pytest.raises(ic.InfeasibleError) as error:
        make(tally)
    said = str(error.value).rpartition('; or pass infeasible="closest": ')[2]
    rule = make(tally, infeasible="closest")
    after = ic.audit(rule.expected(tally), "fpr", confidence=None)
    (left,) = re.findall(r"and a difference of ([\d.]+) remains$", said)
    measured = [after.disparities[name].difference for name in rule.promise.equal]
    assert float(left) == pytest.approx(max(measured), abs=1e-4)
    compared = ic.compare(tally, [rule]).rules[rule.method].by_group
    for name, changes in compared.items():
        whole, people = f" scores in group {name}", tally.select([name]).n
        if changes.changed > 1 - 1e-9:
            assert f"every one of {people:g}{whole}" in said
        elif changes.changed > 0:
            assert f"{people * changes.changed:.0f} of {people:g}{whole} change" in said
        else:
            assert whole not in said
    constant = re.findall(r"scores in group (\w+) becomes ([\d.]+)", said)
    for name, value in constant:
        (own,) = {row.value for row in rule.rows if row.group == name}
        assert own == pytest.approx(float(value), abs=1e-4)
    assert constant or rule.method != "withhold"


def test_a_closest_that_changes_nothing_is_not_offered():
    with pytest.raises(ic.InfeasibleError) as error:
        ic.coarsen(compas(), "fpr")
    assert "closest" not in str(error.value)
    with pytest.warns(ic.InfeasibleWarning):
        assert not ic.coarsen(compas(), "fpr", infeasible="closest").rows
