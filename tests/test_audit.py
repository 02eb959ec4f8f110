import json
import math
import re

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from isocost.judging.audit import _short
from tests.conftest import DATA, measured, sample


def test_disparities():
    result = ic.audit(compas(), "fpr")
    d = result.disparity
    assert (d.highest, d.lowest) == ("African-American", "Caucasian")
    assert d.difference == pytest.approx(0.4475 - 0.3600, abs=1e-4)
    assert d.ratio == pytest.approx(0.3600 / 0.4475, abs=1e-3)
    assert result.generalized_equalized_odds_difference == pytest.approx(0.5263 - 0.4369, abs=1e-4)
    assert result.equalized_odds_difference == pytest.approx(0.5921 - 0.3724, abs=1e-4)
    assert result.statistical_parity_difference == pytest.approx(0.4894 - 0.2498, abs=1e-4)
    assert result.four_fifths_ratio == pytest.approx(0.2498 / 0.4894, abs=1e-3)


def test_nobody_selected_has_no_ratio():
    data = {"score": [0.1, 0.2] * 2, "label": [0, 1] * 2, "group": ["a", "a", "b", "b"]}
    result = measured(ic.tally(data))
    assert math.isnan(result.four_fifths_ratio)
    assert "nobody is selected" in repr(result)
    assert result.to_dict()["four_fifths_ratio"] is None
    assert "NaN" not in result.to_json()


def test_json_is_complete_and_plain():
    content = json.loads(ic.audit(compas(), "weighted:1,3").to_json())
    assert content["format"] == "isocost-audit"
    names = {pair[0] for pair in content["groups"]}
    assert names == {"African-American", "Caucasian"}
    numbers = dict(content["groups"][0][1])
    for name in ("base_rate", "generalized_fpr", "fnr", "brier", "trivial_cost"):
        assert isinstance(numbers[name], float)
    assert content["feasibility"]["feasible"] in (True, False)


def test_print_is_a_table_a_person_can_read():
    text = str(ic.audit(compas(), "fpr"))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(lines).startswith(
        "People who turned out negative were given an average score of 45\u00a0% if "
        "African-American, 36\u00a0% if Caucasian. No repair can close this gap and keep "
        "the scores calibrated. Improve the scores of African-American"
    )
    first = lines.index("Audit of 6,150 rows; cost fpr, threshold 0.5; 0.95 intervals")
    assert "generalized FPR  0.4475 [.440, .455]  0.3600 [.353, .368]  0.4078 [.402, .413]" in lines
    assert max(len(line) for line in lines[first : first + 17]) <= 80
    plain = str(measured(compas(), "fpr")).splitlines()
    assert "generalized FPR            0.4475     0.3600  0.4078" in plain


def test_many_groups_get_a_line_each():
    result = ic.audit(ic.tally(sample(5_000, groups=8)))
    header, rows = result.table()
    cost = header.index("cost")
    assert all("[" in row[cost] for row in rows)
    assert header[0] == "group"
    assert [row[0] for row in rows] == [*map(str, range(8)), "all"]
    table = repr(result).split("\n\n", 1)[1].split("Cost differs")[0]
    assert max(map(len, table.split("\n"))) <= 80
    assert table.count("[") >= 18


def test_html_has_the_verdict_first_and_folds_the_rest():
    result = ic.audit(compas(), "fpr")
    html = result._repr_html_()
    places = [html.index(text) for text in ("<strong>People who turned", "<table", "<details")]
    assert places == sorted(places)
    assert html.index("lowest over highest") > places[2]
    assert html.count("<div") == html.count("</div>") == 2


def test_html_escapes_group_names():
    data = {"score": [0.1, 0.9] * 2, "label": [0, 1] * 2, "group": ["<b>x</b>"] * 2 + ["y"] * 2}
    html = measured(ic.tally(data))._repr_html_()
    assert "<b>x" not in html
    assert "&lt;b&gt;x" in html


def test_a_cost_per_group_has_no_overall_value():
    cost = ic.Cost(fp={"African-American": 1, "Caucasian": 2}, fn=1)
    result = ic.audit(compas(), cost)
    assert math.isnan(result.overall.cost)
    assert result.to_dict()["overall"]["cost"] is None
    row = next(row for row in result.table()[1] if row[0] == "cost")
    assert row[-1] == "-"


def test_shares_add_up():
    result = measured(ic.tally(sample(1_000, groups=3, weighted=True), weight="weight"))
    assert np.isclose(sum(m.share for m in result.groups.values()), 1.0)
    assert result.overall.share == 1.0


def test_every_number_of_the_audit_has_an_interval_that_holds_it():
    result = ic.audit(compas(), "fpr")
    for m in result.groups.values():
        assert set(m.intervals) == {*result.measures, "cost", "trivial_cost", "share"}
        for name, (low, high) in m.intervals.items():
            assert low - 1e-12 <= getattr(m, name) <= high + 1e-12, name
    assert result.intervals.feasible_probability < 1e-3
    assert result.verdict.established
    content = json.loads(result.to_json())
    assert content["intervals"]["confidence"] == 0.95
    assert len(content["groups"][0][1]["intervals"]["cost"]) == 2


def test_a_difference_that_is_not_established_is_warned_of_and_said():
    tally = ic.Tally.load(DATA / "health.json")
    with pytest.warns(ic.UncertainWarning, match="not established at 95% that costs differ"):
        result = ic.audit(tally, "weighted:1,3")
    assert result.verdict.reason == "unestablished"
    headline, following, *_ = result.advice.split("\n")
    assert headline.endswith("It is not established that this is more than chance.")
    assert following.startswith("Leave everybody’s score as it is. About ")
    assert "times as many people would settle it, if costs differ as much as measured." in following
    assert re.search(r"too little data to rule out 1\d\.\d points for", result.advice)


def test_advice_when_infeasible_names_what_can_be_had():
    advice = ic.audit(compas(), "fpr").advice
    assert "No repair can close this gap" in advice.split("\n")[0]
    assert (
        "Improve the scores of African-American, or accept a difference of 5.39 points." in advice
    )
    assert "fall to 39.4\u00a0%, or with a tolerance of 0.0539" in advice
    assert "reconcile keeps scores calibrated" in advice
    assert "Withholding does that" not in advice


def test_advice_when_feasible_says_what_it_does_to_whom():
    result = ic.audit(ic.tally(graded(2, 0.12)), "fnr")
    share = f"{100 * result.feasibility.alpha[0]:.1f}\u00a0% of group 0"
    assert result.verdict.reason == "repair"
    assert "making scores worse for group 0" in result.advice
    assert f"a coin would replace the score of {share}" in result.advice
    low, high = (f"{100 * end:.1f}\u00a0%" for end in result.intervals.alpha[0])
    assert f"has a 95\u00a0% interval of {low} to {high}." in result.advice
    coarsens = result.offers["coarsen"].rule is not None
    assert ("leaves the decisions at 0.5 alone" in result.advice) == coarsens


def verdict_at(tolerance, tally=None):
    verdict = ic.audit(tally or compas(), "fpr", tolerance=tolerance, replicates=0).verdict
    return verdict.reason, verdict.established, verdict.equal


def test_the_tolerance_is_tested_on_either_side():
    low, high = ic.audit(compas(), "fpr").intervals.disparities["cost"]
    assert verdict_at(low - 1e-6) == ("repair", True, False)
    assert verdict_at(low + 1e-6) == ("unestablished", False, False)
    assert verdict_at(high - 1e-6) == ("unestablished", False, False)
    assert verdict_at(high + 1e-6) == ("equal", False, True)


@pytest.mark.filterwarnings("ignore::isocost.UncertainWarning")
@pytest.mark.parametrize("tolerance", [0.08, 0.093])
@pytest.mark.parametrize("many", [False, True])
def test_so_many_times_as_many_people_settle_it(tolerance, many):
    tally = compas()
    if many:
        # Ten copies of a group, so that intervals are stretched for all pairs.
        rows = tally.select(["Caucasian"])
        for number in range(9):
            tally = tally + rows.relabel({"Caucasian": f"copy {number}"})
    said = ic.audit(tally, "fpr", tolerance=tolerance, replicates=0).advice
    headline, following = said.split("\n")[:2]
    assert headline.endswith(
        f"Whether costs differ by more than {100 * tolerance:g} points is not established."
    )
    times = int(re.search(r"About (\d+) times as many people", following)[1])
    assert times >= 2
    for more, reason in ((times - 1, "unestablished"), (times, None)):
        larger = tally
        for _ in range(more - 1):
            larger = larger + tally
        settled = {None: ("equal", "repair", "uncertain")}.get(reason, (reason,))
        assert verdict_at(tolerance, larger)[0] in settled


def test_at_the_tolerance_itself_no_number_of_people_settles_it():
    difference = ic.audit(compas(), "fpr", confidence=None).disparity.difference
    said = ic.audit(compas(), "fpr", tolerance=difference).advice
    assert "no practical number of people settles it" in said
    assert "ic.plan" not in said
    same = {"score": [0.2, 0.4, 0.6, 0.8] * 100, "label": [0, 0, 1, 1] * 100}
    same["group"] = ["a"] * 200 + ["b"] * 200
    audit = ic.audit(same, "fpr", replicates=0)
    assert audit.disparity.difference == 0
    assert (audit.verdict.reason, audit.verdict.equal) == ("unestablished", False)
    assert "the same average score in every group, as measured." in audit.advice
    assert "No number of people can show that costs are exactly equal" in audit.advice
    near = ic.audit(same, "fpr", tolerance=0.1, replicates=0)
    assert near.verdict.reason == "equal"
    assert "in every group, to within 10 points." in near.advice
    unknown = ic.audit(same, "fpr", tolerance=0.1, confidence=None)
    assert unknown.verdict.reason == "unestablished"


def offset_rows(offset, n):
    """Scores of 0.3, 0.5 and 0.7 that are so much too low in group a, and too high in group b."""
    score = np.repeat([0.3, 0.5, 0.7], n)
    columns = {"score": np.tile(score, 2), "group": np.repeat(["a", "b"], 3 * n)}
    labels = [np.arange(n) < round(n * (h + d)) for d in (offset, -offset) for h in (0.3, 0.5, 0.7)]
    return columns | {"label": np.concatenate(labels).astype(int)}


def test_what_a_score_means_between_groups_is_tested():
    n, offsets = 3000, (0.0, 0.005, 0.02, 0.029)
    found = {d: ic.audit(offset_rows(d, n), "fpr", replicates=0) for d in offsets}
    for offset, audit in found.items():
        rates = np.array([0.3, 0.5, 0.7])[:, None] + [offset, -offset]
        error = math.sqrt((rates * (1 - rates)).mean(axis=0).sum() / (3 * n))
        ends = 2 * offset - 1.96 * error, 2 * offset + 1.96 * error
        assert audit.bias == pytest.approx((max(0, ends[0]), ends[1]), abs=1e-4)
        assert not audit.miscalibrated
    verdicts = {offset: audit.verdict for offset, audit in found.items()}
    assert [one.same for one in verdicts.values()] == ["yes", "unknown", "no", "no"]
    assert [one.calibrated for one in verdicts.values()] == ["yes", "yes", "yes", "no"]
    told = [audit.advice.split("\n") for audit in found.values()]
    same = "On average, a score means the same in each group to within 2 points."
    assert [same in lines for lines in told] == [True, False, False, False]
    assert "No group’s scores were found to be miscalibrated by more than 2 points." in told[1]
    between = [any("does not mean the same in each" in one for one in lines) for lines in told]
    assert between == [False, False, True, True]
    assert verdicts[0.029].reason == "uncalibrated"
    # Calibration moves the costs so far that this is said first.
    assert told[3][0].startswith(
        "The cost of group b is 0.6 points higher than that of group a, but"
    )
    assert told[3][1].startswith("Recalibrate the scores of each group first")


def graded(many, shrink=0.1):
    """Calibrated scores that say less for each group than for the one before."""
    rng = np.random.default_rng(1)
    which = rng.integers(0, many, 20_000 * many)
    score = 0.5 + (rng.random(len(which)) - 0.5) * (1.0 - shrink * which)
    return {"score": score, "label": rng.random(len(which)) < score, "group": which}


def test_advice_names_the_few_groups_that_matter():
    result = ic.audit(ic.tally(graded(7, 0.12)), "fnr", replicates=0)
    alpha = result.feasibility.alpha
    assert len(result.feasibility.changed) == 6
    lede = result.advice.split("\n")[1]
    assert "and smaller shares of 3 more groups by" in lede
    largest = sorted(alpha.values(), reverse=True)
    shares = re.findall("([\\d.]+)\u00a0% of", lede)
    assert shares == [f"{100 * share:.1f}" for share in largest[:3]]
    # Elsewhere every share is told.
    assert all(f"{alpha[group]:.2%} of" in str(result.feasibility) for group in range(6))
    few = ic.audit(ic.tally(graded(4)), "fnr", replicates=0)
    assert len(few.feasibility.changed) == 3
    assert "smaller shares" not in few.advice
    assert all(f"% of group {group}" in few.advice for group in range(3))


def test_advice_names_the_groups_that_are_most_off():
    data = graded(5)
    data["score"] = data["score"] * (1.0 - 0.05 * (data["group"] + 2))
    result = ic.audit(ic.tally(data), "fnr", replicates=0)
    first, *others = result.advice.split("\n")
    gaps = sorted((m.calibration_gap for m in result.groups.values()), reverse=True)
    assert first.startswith("The costs of group 4 and group 0 differ by 20.7 points, but by 11.")
    told = re.findall(r"they are off by ([\d.]+) points on average,", "\n".join(others))
    assert told == [f"{100 * gap:.1f}" for gap in gaps[:3]]
    assert "The scores of 2 more groups are off, too." in others


def test_advice_when_not_calibrated_is_to_recalibrate_first():
    data = sample(20_000)
    data["score"] = data["score"] * 0.6
    result = ic.audit(ic.tally(data), "fnr")
    assert (result.verdict.calibrated, result.verdict.act) == ("no", False)
    assert result.advice.startswith("The costs of group 0 and group 1 differ by 2.4 points, but by")
    low = result.groups[1]
    means = (
        f"{100 * low.mean_score:.1f}\u00a0% on average, and {100 * low.base_rate:.1f}\u00a0% turned"
    )
    assert f"group 1: scores are {means} out positive." in result.advice
    assert "Recalibrate the scores of each group first" in result.advice
    assert "Withholding does that" not in result.advice


def test_advice_on_scores_that_are_worse_than_none():
    data = sample(20_000)
    data["score"] = 1 - data["score"]
    assert "they tell nothing" in measured(ic.tally(data), "fpr").advice


def test_advice_on_an_uncertain_verdict():
    # A trivial cost just above the target: other people might have made it infeasible.
    groups = {"African-American": 1.0, "Caucasian": 1.137}
    result = ic.audit(compas(), ic.Cost(fp=groups, fn=0))
    assert result.verdict.feasible == "unknown"
    assert 0.025 < result.intervals.feasible_probability < 0.975
    assert "Whether that can be made equal is not established." in result.advice


def test_advice_on_weights():
    assert (
        "the ratio of the weights of weighted:1,3 cancels"
        in measured(compas(), "weighted:1,3").advice
    )
    assert "the ratio" not in measured(compas(), "weighted:2,2").advice


def test_options_of_the_intervals():
    wide = ic.audit(compas(), "fpr", confidence=0.99).groups["Caucasian"].intervals["cost"]
    narrow = ic.audit(compas(), "fpr", confidence=0.8).groups["Caucasian"].intervals["cost"]
    assert np.ptp(wide) > np.ptp(narrow)
    again = ic.audit(compas(), "fpr", seed=1).groups["Caucasian"].intervals
    other = ic.audit(compas(), "fpr", seed=2).groups["Caucasian"].intervals
    assert again["cost"] == other["cost"]
    assert again["calibration_gap"] != other["calibration_gap"]
    closed = ic.audit(compas(), "fpr", replicates=0)
    assert closed.intervals.method == "analytic"
    assert closed.groups["Caucasian"].intervals["cost"] == pytest.approx(narrow, abs=0.01)
    with pytest.raises(ic.UsageError, match="confidence: must be a number"):
        ic.audit(compas(), confidence=95)


def test_an_interval_without_bounds_is_told_in_words():
    assert _short((-np.inf, np.inf)) == "[any value]"
    assert _short((0.5, np.inf)) == "[.500, inf]"


def test_a_cost_per_group_and_a_group_that_is_too_small():
    data = sample(3_000, groups=3, seed=2)
    few = np.flatnonzero(data["group"] == 2)[20:]
    tally = ic.tally({name: np.delete(column, few) for name, column in data.items()})
    amounts = {0: 1.0, 1: 1.5, 2: 2.0}
    audit = ic.audit(tally, ic.Cost(fp=amounts, fn=1.0), warn=False)
    assert audit.compared == (0, 1)
    assert audit.feasibility.cost.fp == {0: 1.0, 1: 1.5}
    two = ic.audit(tally.select([0, 1]), ic.Cost(fp={0: 1.0, 1: 1.5}, fn=1.0), warn=False)
    assert audit.feasibility == two.feasibility
    assert audit.groups[2].cost == pytest.approx(
        2.0 * audit.groups[2].generalized_fpr + audit.groups[2].generalized_fnr
    )
    assert ic.intervals(tally, audit.cost).excess == audit.intervals.excess
    # Names are checked against all groups.
    for wrong in ({**amounts, 3: 1.0}, {0: 1.0, 2: 2.0}):
        with pytest.raises(ic.UsageError, match="use exactly the groups 0, 1, 2"):
            ic.audit(tally, ic.Cost(fp=wrong, fn=1.0))
