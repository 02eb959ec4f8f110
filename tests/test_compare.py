import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from isocost.examples import compas
from isocost.judging.offers import changes, gini
from isocost.rules import Row
from tests.conftest import measured, sample
from tests.populations import drawn_rows

VALUES = st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 5)), min_size=1, max_size=20)


@given(pairs=VALUES)
def test_gini_by_its_definition(pairs):
    x, w = np.array(pairs).T
    w = w / w.sum()
    mean = w @ x
    if mean < 1e-6:
        return
    wanted = (w[:, None] * w[None, :] * np.abs(x[:, None] - x[None, :])).sum() / (2 * mean)
    assert gini(x, w) == pytest.approx(wanted, abs=1e-9)


def by_hand(data, rule, threshold):
    """Changes over people and coins, from a loop."""
    fates = []
    for h, g in zip(data["score"], data["group"], strict=True):
        rows = [r for r in rule.rows if r.group == g and r.lo <= h and (h < r.hi or r.hi == 1)]
        coin = any(0 < r.probability < 1 for r in rows)
        left = 1.0 - sum(r.probability for r in rows)
        for r in rows:
            new = 1 - h if r.value is None else r.value
            fates.append((r.probability, new - h, coin, (new >= threshold) != (h >= threshold)))
        fates.append((left, 0.0, coin, False))
    p, move, coin, turned = (np.array(column) for column in zip(*fates, strict=True))
    share, distance = p / p.sum(), abs(move)
    up, down = move > 1e-12, move < -1e-12
    moved = (distance > 1e-12) & (p > 0)
    return {
        "changed": share[moved].sum(),
        "mean_change": share @ distance,
        "largest_change": distance[moved].max(initial=0),
        "by_coin": share[coin].sum(),
        "raised": share[up].sum(),
        "lowered": share[down].sum(),
        "mean_rise": np.average(move[up], weights=share[up]),
        "mean_fall": -np.average(move[down], weights=share[down]),
        "decisions": share[turned & (p > 0)].sum(),
    }


RULE = ic.Rule(
    groups=(0, 1),
    rows=(
        Row(0, 0.0, 0.5, "set", 0.3, 0.25),
        Row(0, 0.0, 0.5, "mirror", None, 0.5),
        Row(1, 0.5, 1.0, "set", 0.4, 1.0),
    ),
    method="test",
)


@pytest.mark.parametrize("threshold", [0.5, 0.3])
def test_changes_by_a_loop(threshold):
    # Scores in the middle of bins, so that a bin's mean is the score.
    data = sample(2_000)
    data["score"] = (np.floor(data["score"] * 1024) + 0.5) / 1024
    found = changes(ic.tally(data), RULE, threshold)
    for name, value in by_hand(data, RULE, threshold).items():
        assert getattr(found, name) == pytest.approx(value, abs=1e-9), name


def test_a_value_that_is_the_score_already_is_no_change():
    tally = ic.tally({"score": [0.25, 0.25], "label": [0, 1], "group": ["a", "a"]})
    rule = ic.Rule(groups=("a",), rows=(Row("a", 0.0, 1.0, "set", 0.25, 1.0),), method="test")
    assert changes(tally, rule, 0.5).changed == 0
    assert changes(tally, rule, 0.5).to_dict()["gini"] is None


def test_compare_puts_the_original_first_and_numbers_twins():
    tally = compas()
    rules = [
        ic.withhold(tally, "fpr", 0.06),
        ic.withhold(tally, "fpr", 0.07),
        ic.equalize_odds(tally),
    ]
    found = ic.compare(tally, rules)
    assert list(found.rules) == ["original", "withhold", "withhold 2", "odds"]
    assert str(found.cost) == "fpr"
    original = found.rules["original"]
    assert original.changes.changed == 0
    assert original.audit.disparity.difference == measured(tally, "fpr").disparity.difference
    assert found.rules["withhold"].changes.by_coin == pytest.approx(2454 / 6150)
    gaps = {name: one.numbers()["calibration_gap"] for name, one in found.rules.items()}
    assert gaps["odds"] > gaps["withhold"]


def test_withholding_is_borne_by_few():
    # A share alpha of a group bears the whole change: its Gini coefficient is at least 1 - alpha.
    tally = compas()
    rule = ic.withhold(tally, "fpr", 0.07)
    result = ic.compare(tally, [rule], remakes=10)
    one = result.rules["withhold"]
    assert "\nWho pays: the groups that are changed, before and after\n" in str(result)
    assert one.by_group["Caucasian"].gini >= 1 - rule.alpha["Caucasian"] - 1e-12
    assert one.numbers()["largest_gini"] == one.by_group["Caucasian"].gini
    assert math.isnan(one.by_group["African-American"].gini)


def test_compare_is_printed_and_json():
    tally = compas()
    found = ic.compare(tally, {"mine": ic.withhold(tally, "fpr", 0.06)}, cost="fnr", threshold=0.3)
    text = str(found)
    assert "Rules compared; cost fnr, threshold 0.3" in text
    assert "decisions changed" in text
    content = found.to_dict()
    assert content["rules"]["original"]["changes"]["gini"] is None
    assert content["rules"]["mine"]["costs"][0][0] == "African-American"
    assert "<table>" in found._repr_html_()
    many = ic.compare(tally, {str(i): ic.withhold(tally, "fpr", 0.06) for i in range(8)})
    assert many.table()[0][0] == "rule"


def test_compare_with_many_groups_shows_the_extremes():
    tally = ic.tally(sample(4_000, groups=6))
    header = [row[0] for row in ic.compare(tally, [ic.equalize_odds(tally)]).table()[1]]
    assert header[:4] == [
        "lowest cost",
        "highest cost",
        "lowest selection rate",
        "highest selection rate",
    ]


def test_compare_shows_who_is_selected():
    rule = ic.reconcile(compas())
    found = ic.compare(compas(), [rule])
    after = measured(rule.expected(compas()))
    rows = {row[0]: row[1:] for row in found.table()[1]}
    for group, m in after.groups.items():
        before = measured(compas()).groups[group].selection_rate
        shown = rows[f"selection rate of {group}"]
        assert shown == [f"{before:.4f}", f"{m.selection_rate:.4f}"]
    rates = found.to_dict()["rules"]["reconcile"]["selection_rates"]
    assert rates == [[group, m.selection_rate] for group, m in after.groups.items()]


def test_every_repair_and_a_choice():
    """Costs cannot be made equal, so reconcile: odds would give up calibration."""
    found = ic.compare(compas(), cost="fpr", remakes=10)
    assert list(found.rules) == ["original", "odds", "reconcile", "hand_over"]
    assert found.choice.standings == {
        "withhold": "infeasible", "coarsen": "infeasible", "odds": "fit", "reconcile": "fit",
        "hand_over": "fit",
    }  # fmt: skip
    assert found.choice.method == "reconcile"
    assert found.not_made["withhold"].endswith("It is possible if groups may differ by 0.0539.")
    assert ic.compare(compas(), cost="fpr", tolerance=0.0539).offers["withhold"].rule.rows
    # Coarsening would have to change decisions for any tolerance below the present difference.
    assert found.offers["coarsen"].possible_with == {}
    outlook = found.outlooks["reconcile"]
    assert outlook.goal.expected < outlook.goal.unrepaired
    after = ic.unseen(compas(), ic.reconcile(compas()), 10, cost="fpr")
    assert outlook.cost_difference == after.cost_difference
    text = str(found)
    assert found.said in text
    assert found.said.startswith("Take reconcile: among new people groups are expected to differ")
    assert f"accuracy is expected to be {outlook.accuracy.expected:.3f}" in found.said
    content = found.to_dict()
    assert content["choice"]["method"] == "reconcile"
    assert content["unseen"].keys() == {"odds", "reconcile", "hand_over"}


def test_the_table_has_the_numbers_without_a_repair_of_the_sentence():
    """Withhold, which comes first, is made again more often than reconcile, which is chosen."""
    found = ic.compare(compas(), cost="fpr", tolerance=0.06)
    first, outlook = found.outlooks["withhold"], found.outlooks["reconcile"]
    assert round(first.accuracy.unrepaired, 4) != round(outlook.accuracy.unrepaired, 4)
    assert found.choice.method == "reconcile"
    ((_, header, rows),) = [one for one in found.printed() if one[0] == "For new people, expected"]
    without = {row[0]: row[header.index("original")] for row in rows}
    assert without["costs differ by"] == f"{outlook.cost_difference.unrepaired:.4f}"
    assert without["accuracy"] == f"{outlook.accuracy.unrepaired:.4f}"


@pytest.mark.parametrize(
    ("data", "reason", "said"),
    [
        ({"n": 60, "seed": 0}, "few", "too little data"),
        ({"n": 4000, "seed": 1}, "unestablished", "not established"),
        ({"n": 4000, "seed": 0, "power": 1.6}, "uncalibrated", "Recalibrate first"),
    ],
)
def test_doing_nothing_may_be_better(data, reason, said):
    found = ic.compare(drawn(**data), remakes=10)
    assert found.choice.method is None
    assert found.choice.reason == reason
    assert said in found.said


def test_a_repair_that_leaves_nothing_is_not_taken():
    """At a base rate of 1 %, equal odds would be wrong about half of the people."""
    found = ic.compare(drawn(20_000, 0, base=0.01, apart=1.0), remakes=10)
    odds = found.outlooks["odds"].accuracy
    assert odds.expected < 0.6
    assert odds.unrepaired > 0.98
    assert found.choice.standings["odds"] == "uninformative"
    assert found.choice.method is None


def drawn(n, seed, base=0.4, apart=0.0, power=1.0):
    """Scores from beta distributions; those of group 1 are true only if the power is 1."""
    random = np.random.default_rng(seed)
    group = random.integers(0, 2, n)
    score = random.beta(base * 6 * (1 + apart * (group - 0.5)), 6 * (1 - base))
    chance = score ** np.where(group, power, 1.0)
    return {"score": score, "label": random.random(n) < chance, "group": group}


def test_costs_that_are_equal_are_left_alone():
    half = {"score": [0.2, 0.8] * 200, "label": [0, 0, 0, 0, 1, 1, 1, 1, 0, 1] * 40}
    same = ic.compare({**half, "group": ["a"] * 200 + ["b"] * 200}, remakes=10)
    assert same.choice.method is None


def test_groups_that_are_not_compared_are_left_out_of_every_number():
    shapes = [(2, 3), (2, 4), (3, 3), (2, 2), (3, 4), (9, 1)]
    tally = ic.tally(drawn_rows(8, [400] * 5 + [12], shapes)).relabel(dict(enumerate("abcdef")))
    alone, cost = tally.drop(["f"]), ic.Cost(fp=dict.fromkeys("abcdef", 1.0), fn=0.5)
    found = ic.compare(tally, cost=cost, remakes=10)
    without = ic.compare(alone, cost=cost.among("abcde"), remakes=10)
    one, other = found.to_dict(), without.to_dict()
    for content, left_out in ((one, [["f", 12.0]]), (other, [])):
        assert content["left_out"] == left_out
        assert all(each.pop("left_out") == left_out for each in content["unseen"].values())
    assert [one[name] for name in ("rules", "unseen", "offers", "choice")] == [
        other[name] for name in ("rules", "unseen", "offers", "choice")
    ]
    note = "Not compared, and not counted in these numbers: group f (12 people)."
    assert note in found.notes()
    assert found.table() == without.table()
    rule = ic.equalize_odds(tally)
    assert note in repr(ic.unseen(tally, rule, 10))
    assert set(ic.plan_repair(tally, rule, 0.2, remakes=10).groups) == set("abcde")
    points = [ic.frontier(one, points=2).points for one in (tally, alone)]
    assert points[0][1] == points[1][1]


def test_a_comparison_tells_who_pays():
    tally = compas()
    with pytest.warns(ic.InfeasibleWarning):
        rule = ic.withhold(tally, "fpr", infeasible="closest")
    result = ic.compare(tally, [rule])
    title, header, rows = result.by_group()
    # Only one group is changed: its numbers stand below each other.
    assert (title[:8], header[1:]) == ("Who pays", ["Caucasian, original", "Caucasian, withhold"])
    table = {row[0]: row[1:] for row in rows}
    before = ic.audit(tally, "fpr").groups["Caucasian"]
    assert table["FNR"] == [f"{before.fnr:.4f}", "1.0000"]
    assert table["PPV"] == [f"{before.ppv:.4f}", "-"]
    done = result.rules["withhold"].by_group["Caucasian"]
    assert table["raised"] == ["-", f"{done.raised:.1%}"]
    assert done.raised + done.lowered == pytest.approx(done.changed)
    assert done.raised * done.mean_rise + done.lowered * done.mean_fall == pytest.approx(
        done.mean_change
    )
    # Everybody in the group has one score: nothing is left of what scores told.
    assert result.rules["withhold"].information["Caucasian"] == pytest.approx(0.0, abs=1e-12)
    assert list(result.harms()) == [
        "With withhold decisions about Caucasian are right no more often than if nobody there were "
        "selected.",
        "withhold takes up to 100 % of what the scores tell from the scores of Caucasian.".replace(
            "0 %", "0\u00a0%"
        ),
    ]
    assert result.rules["withhold"].to_dict()["as_good_as"] == {"nobody": ["Caucasian"]}


def test_withholding_a_share_takes_that_share_of_what_scores_tell():
    tally = compas()
    rule = ic.withhold(tally, "fpr", 0.06)
    result = ic.compare(tally, [rule], remakes=10)
    one = result.rules["withhold"]
    assert "\nWho pays: the groups that are changed, before and after\n" in str(result)
    assert one.information["Caucasian"] == pytest.approx(1.0 - rule.alpha["Caucasian"])
    assert one.information["African-American"] == 1.0
    assert one.numbers()["least_information"] == one.information["Caucasian"]


def test_with_many_groups_the_table_is_about_one_rule():
    random = np.random.default_rng(4)
    group = random.integers(0, 20, 20_000)
    score = random.beta(1.0 + group / 20, 2.0)
    tally = ic.tally({"score": score, "label": random.random(20_000) < score, "group": group})
    rules = [ic.withhold(tally, "fpr", 0.1), ic.equalize_odds(tally)]
    _, _, rows = ic.compare(tally, rules, remakes=10).by_group()
    assert {row[0].split(", ")[1] for row in rows} == {"original", "withhold"}
