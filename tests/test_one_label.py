"""Groups with positives only, or negatives only: nothing stops, and their scores stay."""

import json
import math
import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import isocost as ic
from isocost.examples import compas
from isocost.learn import (
    CalibratedEqualizedOdds,
    EqualizedOdds,
    EqualizedOddsLogisticRegression,
    GroupCalibrator,
    HandOver,
    Reconciled,
)
from isocost.repairs.coarsen import decision_limit

pytestmark = pytest.mark.filterwarnings("ignore::isocost.IsocostWarning")

NOT_ENOUGH = "groups: at least two must have positives and negatives, to be compared"

REPAIRS = {
    "withhold": lambda t: ic.withhold(t, "fpr", infeasible="closest"),
    "coarsen": lambda t: ic.coarsen(t, "fpr", infeasible="closest"),
    "odds": ic.equalize_odds,
    "reconcile": lambda t: ic.reconcile(t, infeasible="closest"),
    "hand_over": lambda t: ic.hand_over(t, share="least"),
}


def rows_of(seed, weighted=False):
    """Two to four ordinary groups, and one or two of one label."""
    random = np.random.default_rng(seed)
    ordinary, alike = int(random.integers(2, 5)), int(random.integers(1, 3))
    group = random.integers(0, ordinary + alike, 500 * (ordinary + alike))
    score = random.beta(2.0, 2.0 + 0.4 * group)
    label = (random.random(len(group)) < score).astype(int)
    for each in range(alike):
        label[group == each] = random.integers(0, 2)
    rows = {"score": score, "label": label, "group": np.array(list("zyxwvu"))[group]}
    weights = {"weight": random.uniform(0.5, 2.0, len(group))} if weighted else {}
    return {**rows, **weights}, set("zyxwvu"[:alike])


@pytest.fixture(params=[1, 2, 3])
def sample(request):
    rows, alike = rows_of(request.param, weighted=request.param == 3)
    weight = {"weight": "weight"} if "weight" in rows else {}
    return rows, ic.tally(rows, **weight), alike


def plain(result):
    """The JSON of a result, which has no NaN."""
    return json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("cost", ["fpr", "fnr", "weighted:1,3"])
def test_measures_are_nan_where_a_rate_is_undefined(sample, cost):
    _, tally, alike = sample
    found = ic.audit(tally, cost, replicates=200)
    assert plain(found)
    for group in alike:
        numbers = found.groups[group]
        missing = "fpr" if numbers.base_rate == 1.0 else "fnr"
        assert math.isnan(numbers[missing])
        assert math.isnan(numbers[f"generalized_{missing}"])
        assert math.isnan(numbers.cost) == (cost == missing)
        assert not math.isnan(numbers.accuracy)
    assert set(found.compared) == set(tally.groups) - alike
    assert not math.isnan(found.disparity.difference)
    proven = ic.bounds(tally, cost, "fpr")
    assert plain(proven)
    assert "nan" not in repr(proven)
    assert all(math.isnan(proven.groups[group].at_cost.generalized_fpr[0]) for group in alike)
    assert plain(ic.plan(tally, cost))
    assert set(ic.feasibility(tally, cost).costs) == set(found.compared)
    limits = decision_limit(tally, cost)
    assert {group for group, limit in limits.items() if math.isnan(limit)} == alike
    assert set(ic.reconcilable(tally, [0.5]).points[0].selection_rates) == set(found.compared)


def test_numbers_of_the_others_are_as_without_them(sample):
    _, tally, alike = sample
    found, alone = ic.audit(tally, "fpr", confidence=None), ic.audit(tally.drop(alike), "fpr")
    assert found.disparity == alone.disparity
    assert found.feasibility == alone.feasibility
    for name, make in REPAIRS.items():
        assert make(tally).rows == make(tally.drop(alike)).rows, name


@pytest.mark.parametrize("name", REPAIRS)
def test_repairs_leave_them_out_and_keep_their_scores(sample, name):
    rows, tally, alike = sample
    rule = REPAIRS[name](tally)
    assert rule.groups == tally.groups
    assert set(rule.fitted) == set(tally.groups) - alike
    assert not {row.group for row in rule.rows} & alike
    (note,) = [note for note in rule.notes if note.startswith("Not compared, and left")]
    assert all(group in note for group in alike)
    people = {**rows, "id": np.arange(len(rows["score"]))}
    after = rule.apply(people, id="id")["repaired_score"]
    same = np.isin(rows["group"], list(alike))
    assert np.array_equal(after[same], rows["score"][same])
    assert not np.array_equal(after, rows["score"])
    assert ic.Rule.from_json(rule.to_json()) == rule
    assert rule.remake(tally).fitted == rule.fitted
    expected = ic.unseen(tally, rule, remakes=10)
    assert plain(expected)
    assert not math.isnan(expected.cost_difference.expected)
    watched = ic.watch(rule, [rule.expected(tally), tally], measures="decisions")
    assert plain(watched)
    assert not {group for alarm in watched.alarms for group in alarm.claim.groups} & alike
    assert any(note.startswith("Not watched") for note in watched.notes)


def test_rules_side_by_side(sample):
    _, tally, alike = sample
    rules = {name: make(tally) for name, make in REPAIRS.items()}
    found = ic.compare(tally, rules, "fpr")
    assert plain(found)
    assert "nan" not in repr(found)
    assert set(found.left_out) == alike
    for one in found.rules.values():
        assert set(one.by_group) == set(tally.groups) - alike
    for method in ("withhold", "coarsen", "reconcile", "hand_over"):
        assert plain(ic.frontier(tally, "fpr", method, points=2))


def test_every_repair_of_a_comparison_is_tried():
    tally = ic.tally(rows_of(2)[0])
    found = ic.compare(tally, cost="fnr", remakes=10)
    assert plain(found)
    assert {*found.rules, *found.not_made} == {"original", *ic.REPAIRS}


def test_a_rule_after_a_recalibration(sample):
    _, tally, alike = sample
    first = ic.recalibrate(tally)
    rule = first.then(ic.withhold(first.expected(tally), "fpr", infeasible="closest"), tally)
    assert set(rule.fitted) == set(tally.groups) - alike
    assert rule.remake(tally).fitted == rule.fitted


def test_a_cost_per_group():
    tally = ic.tally(rows_of(1)[0])
    cost = ic.Cost(fp={group: 1.0 + i for i, group in enumerate(tally.groups)}, fn=1.0)
    rule = ic.withhold(tally, cost, infeasible="closest")
    assert rule.cost == cost
    assert rule.remake(tally).rows == rule.rows
    assert plain(ic.compare(tally, [rule]))
    assert plain(ic.bounds(tally, cost, cost))
    assert plain(ic.unseen(tally, rule, remakes=10))
    with pytest.raises(ic.UsageError, match="a cost per group must name each group"):
        ic.withhold(tally, cost.among(rule.fitted))


def test_a_group_that_was_left_out_stays_out_when_a_rule_is_made_again():
    rows, alike = rows_of(1)
    rule = ic.withhold(ic.tally(rows), "fpr", infeasible="closest")
    mixed = {**rows, "label": np.where(np.arange(len(rows["label"])) % 2, 0, rows["label"])}
    mixed["label"][:5] = 1
    again = rule.remake(ic.tally({**mixed, "label": 1 - mixed["label"]}))
    assert again.fitted == rule.fitted
    assert set(again.groups) - set(again.fitted) == alike


def test_merged_groups_are_fitted_or_not_as_one():
    tally = ic.tally(rows_of(1)[0])
    parts = ic.withhold(tally, "fpr", infeasible="closest").fitted
    names = {parts[0]: "both", parts[1]: "both"}
    rule = ic.withhold(tally.relabel(names), "fpr", infeasible="closest")
    assert set(rule.unmerged(names).fitted) == {*rule.fitted, *parts[:2]} - {"both"}
    assert rule.unmerged(names).remake(tally).fitted == rule.unmerged(names).fitted


def rows_with_a_gap(n=2049, base=1.0):
    """Two ordinary groups, and one with (nearly) all labels the same and a gap of 67 points."""
    random = np.random.default_rng(0)
    score = random.beta(2, 3, 4000)
    label = (random.random(4000) < score).astype(int)
    odd = np.ones(n, dtype=int)
    odd[: round(n * (1 - base))] = 0
    return {
        "score": np.concatenate([score, random.beta(2, 4, n)]),
        "label": np.concatenate([label, odd]),
        "group": np.array(["a", "b"] * 2000 + ["c"] * n),
    }


@pytest.mark.parametrize("min_count", [0, 10])
def test_the_page_judges_the_groups_that_it_does_not_hold(tmp_path, min_count):
    rows = rows_with_a_gap()
    audit = ic.audit(rows, "fpr", replicates=500)
    page = ic.report(audit, path=tmp_path / "r.html", min_count=min_count)
    assert ic.verify(page).unchanged
    text = page.read_text()
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert data["tally"]["names"] == ["a", "b"]
    findings = data["own"]["evidence"]["fpr"]["findings"]
    own = json.loads(audit.to_json())["verdict"]["findings"]
    for name in ("gap_low", "labels_low", "bias_low", "bias_high"):
        assert findings[name] == pytest.approx(own[name], abs=0.002 if min_count else 1e-12), name
    assert [one["name"] for one in data["own"]["examined"]] == ["group a", "group b", "group c"]
    words = " ".join(re.sub(r"<[^>]*>", "", text.split("<main>")[1]).split())
    assert words.startswith("The scores of group c do not mean what they say")
    for said in (audit.advice.split("\n")[1], LEFT_OUT):
        assert said.replace("\u00a0", " ") in words.replace("\u00a0", " ")[:2500]


def test_a_page_that_hides_few_people_does_not_tell_of_them(tmp_path):
    rows = rows_with_a_gap(base=0.999)
    assert (rows["label"][4000:] == 0).sum() == 2
    page = ic.report(ic.audit(rows, "fpr", replicates=0), path=tmp_path / "r.html", min_count=10)
    assert "no cell may have fewer than 10 people: c." in page.read_text()
    assert "2,049" not in page.read_text()
    assert ic.verify(page).unchanged


def test_a_calibration_gap_is_asked_about_like_any_other():
    rows = rows_with_a_gap()
    found = ic.audit(rows, "fpr")
    assert (found.verdict.calibrated, found.verdict.reason) == ("no", "one_label")
    assert found.verdict.findings.labels_low > 0.6
    assert found.compared == ("a", "b")
    said = found.advice
    assert said.startswith("The scores of group c do not mean what they say: 32.97")
    assert said.split("\n")[1].startswith("Check the labels of group c: all are the same")
    assert LEFT_OUT in said.split("\n")[:5]
    assert "ecalibrate" not in said.replace("Recalibration learns nothing from one label.", "")
    fair = {**rows, "score": np.where(rows["group"] == "c", 0.999, rows["score"])}
    assert ic.audit(fair, "fpr").verdict.calibrated == "yes"
    examined = dict(json.loads(found.to_json())["examined"])
    assert examined["c"]["n"] == 2049
    assert examined["c"]["gap_low"] == pytest.approx(found.verdict.findings.labels_low)
    # Neither does a repair of the others pass over it.
    made = ic.compare(rows, cost="fpr")
    assert made.choice.reason == "one_label"
    assert made.offers["withhold"].doubt == "one_label"
    with pytest.raises(ic.NotAdvisedError, match="check the labels, or leave the group out"):
        made.offers["withhold"].advised()
    with pytest.warns(ic.UncalibratedWarning, match="All labels of at least one group"):
        ic.withhold(rows, "fpr", infeasible="closest")


LEFT_OUT = (
    "Left out of the comparison of costs, with fewer than 5 people of an outcome: group c (2,049 "
    "people). Whether their scores are calibrated was tested."
)


AEQUITAS = {
    "5": ([1, 0, 0, 1, 1, 1, 0, 0, 1, 1], [1] * 10, ["High", "Low"] * 5),
    "6": ([1, 0, 0, 1, 1, 1, 0, 0, 1, 1], [0] * 10, ["High", "Low"] * 5),
    "10": (
        [1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1],
        [1] * 5 + [0] * 5 + [1] * 4,
        ["High"] * 10 + ["Low"] * 4,
    ),
}
"""Scores, labels and groups of small inputs in the way of Aequitas' tests 5, 6 and 10."""


@pytest.mark.parametrize("confidence", [0.95, None])
@pytest.mark.parametrize("cost", ["fpr", "fnr", "weighted:1,1"])
@pytest.mark.parametrize("name", AEQUITAS)
def test_fewer_than_two_groups_to_compare_are_measured_all_the_same(name, cost, confidence):
    score, label, group = AEQUITAS[name]
    rows = {"score": score, "label": label, "group": group}
    found = ic.audit(rows, cost, confidence=confidence)
    assert found.verdict.reason == "few"
    assert found.groups["Low"].accuracy == pytest.approx({"5": 0.6, "6": 0.4, "10": 0.5}[name])
    missing = {"5": "fpr", "6": "fnr", "10": "fpr"}[name]
    assert math.isnan(found.groups["Low"][missing])
    assert math.isnan(found.disparities[missing].difference)
    assert plain(found)
    assert "nan" not in repr(found) + found._repr_html_() + str(found.feasibility)
    assert len(found.to_frame(backend="dict")["fpr"]) == 3


@pytest.mark.parametrize("name", AEQUITAS)
def test_nothing_can_be_repaired_with_fewer_than_two_groups_to_compare(name):
    tally = ic.tally(dict(zip(("score", "label", "group"), AEQUITAS[name], strict=True)))
    asks = (*REPAIRS.values(), ic.feasibility, ic.bounds, ic.compare, ic.frontier, ic.report)
    for ask in asks:
        with pytest.raises(ic.DataError) as error:
            ask(tally)
        assert str(error.value).startswith(NOT_ENOUGH)
    for ask in (*asks, ic.audit):
        with pytest.raises(ic.DataError, match="group: must have at least two values"):
            ask(compas().select(["Caucasian"]))


@pytest.mark.parametrize(("label", "kind"), [(0, "positives"), (1, "negatives")])
def test_a_plan_needs_both_labels_somewhere(label, kind):
    rows = {"score": [0.2, 0.4, 0.6, 0.8], "label": [label] * 4, "group": list("aabb")}
    with pytest.raises(ic.DataError) as error:
        ic.plan(rows)
    assert str(error.value) == (
        "label: must have positives and negatives, to see how much costs vary\n"
        f"  got:  4 rows, no {kind}\n"
        "  next: check the label column, or count more people first"
    )


def test_a_page_names_them(tmp_path):
    rows, alike = rows_of(2)
    path = ic.report(ic.tally(rows), path=tmp_path / "r.html", cost="fpr")
    named = ", ".join(sorted(alike))
    text = path.read_text()
    assert all(f"group {group}</bdi> (" in text for group in alike), named
    assert "with fewer than 5 people of an outcome: " in text
    assert ic.verify(path).unchanged


def training_rows():
    random = np.random.default_rng(0)
    group = random.choice(list("abcd"), 1500, p=[0.45, 0.45, 0.098, 0.002])
    X = random.normal(size=(1500, 2)) * np.where(group == "a", 1.5, 1.0)[:, None]
    y = (random.random(1500) < 1 / (1 + np.exp(-X.sum(axis=1)))).astype(int)
    y[group == "c"], y[group == "d"] = 1, 0
    return X, y, group


@pytest.mark.parametrize("recalibrate", [None, "isotonic"])
@pytest.mark.parametrize("cv", [5, "prefit"])
@pytest.mark.parametrize(
    "kind",
    [
        lambda **more: CalibratedEqualizedOdds(infeasible="closest", **more),
        lambda **more: CalibratedEqualizedOdds(method="coarsen", infeasible="closest", **more),
        EqualizedOdds,
        lambda **more: Reconciled(infeasible="closest", **more),
        lambda **more: HandOver(share="least", **more),
    ],
)
def test_estimators(kind, cv, recalibrate):
    X, y, group = training_rows()
    base = LogisticRegression().fit(X, y)
    model = kind(estimator=base, cv=cv, recalibrate=recalibrate)
    model.fit(X, y, sensitive_features=group)
    assert model.rule_.fitted == ("a", "b")
    assert model.rule_.groups == tuple("abcd")
    alike = np.isin(group, ["c", "d"])
    repaired = model.predict_proba(X[alike], sensitive_features=group[alike])
    if recalibrate is None:
        assert np.array_equal(repaired, model.estimator_.predict_proba(X[alike]))
    assert not np.isnan(repaired).any()
    assert math.isnan(model.audit_.groups["c"].fpr)


@pytest.mark.parametrize(("constraint", "others"), [("fpr", "c"), ("fnr", "d"), ("both", "c, d")])
def test_training_under_a_constraint(constraint, others):
    X, y, group = training_rows()
    model = EqualizedOddsLogisticRegression(constraint, 0.5)
    with pytest.warns(ic.IsocostWarning, match=f"rows of a group: {others}.$"):
        model.fit(X, y, sensitive_features=group)
    assert model.met_
    with pytest.raises(ic.DataError, match="rows in at least two groups"):
        model.set_params(constraint="both").fit(X, y, sensitive_features=np.where(y, "a", "b"))


def test_a_calibrator():
    X, y, group = training_rows()
    scores = LogisticRegression().fit(X, y).predict_proba(X)[:, 1]
    model = GroupCalibrator("isotonic").fit(scores, y, sensitive_features=group)
    assert model.maps_["c"] is model.pooled_
