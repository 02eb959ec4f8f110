"""Monitoring: the evidence against brute force, false alarms and detection by simulation."""

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import isocost as ic
from isocost.examples import compas, compas_rows
from isocost.judging.watch import (
    BANDS,
    EFFECTS,
    OVERSHOOT,
    SOON,
    STARTS,
    WATCHABLE,
    Claim,
    History,
    Stream,
    alarm_at,
    claims_of,
    evidence,
)
from isocost.rules import Row
from tests.populations import SHAPES, period
from tests.processes import run


def fpr_of(shape):
    """The generalized FPR of calibrated Beta scores: E[h (1 - h)] / E[1 - h]."""
    a, b = shape
    return (a * b / ((a + b) * (a + b + 1))) / (b / (a + b))


TRUE = fpr_of(SHAPES["a"]) - fpr_of(SHAPES["b"])
RULE = ic.Rule(
    groups=("a", "b"),
    rows=(),
    method="withhold",
    cost=ic.Cost.fpr(),
    promise=ic.Promise({"cost": TRUE}, {"cost": TRUE}, calibrated=True, coin=False),
    made_from={"groups": [{"group": g, "n": 500, "base_rate": 0.4} for g in "ab"]},
)


def test_false_alarms_are_rare_at_the_very_limit():
    """The costs differ by exactly the tolerance and calibration has no margin, for 50 periods."""
    random = np.random.default_rng(4)
    alarms = sum(
        ic.watch(RULE, [period(random, 60) for _ in range(50)], calibration_margin=0.0).alarm
        for _ in range(25)
    )
    # At 0.05 a chance of 0.0003 to see more than 5 of 25.
    assert alarms <= 5


def test_intervals_hold_the_truth_at_all_times():
    random = np.random.default_rng(5)
    missed = 0
    for _ in range(25):
        found = ic.watch(RULE, [period(random, 100) for _ in range(20)], calibration_margin=None)
        missed += any(not (p.interval[0] <= TRUE <= p.interval[1]) for p in found.periods[3:])
    assert missed <= 5
    widths = [high - low for low, high in (p.interval for p in found.periods)]
    assert widths[-1] < widths[4] < widths[0]


@pytest.mark.parametrize("harm", [0.0, 0.06, 0.1])
def test_an_interval_beyond_the_limit_is_an_alarm_and_the_other_way_round(harm):
    random = np.random.default_rng(12)
    tallies = [period(random, 400, harm=harm if i >= 3 else 0.0) for i in range(10)]
    found = ic.watch(RULE, tallies, calibration_margin=None)
    beyond = [one.name for one in found.periods if one.interval[0] > found.limit]
    assert (beyond[0] if beyond else None) == found.first_alarm
    assert found.alarm == (harm > 0.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_drift_after_a_quiet_time_is_found(weighted):
    random = np.random.default_rng(6)
    quiet = [period(random, 800, weighted=weighted) for _ in range(12)]
    loud = [period(random, 800, harm=0.08, weighted=weighted) for _ in range(6)]
    options = {"tolerance": TRUE + 0.01, "calibration_margin": None}
    assert not ic.watch(RULE, quiet, **options).alarm
    found = ic.watch(RULE, quiet + loud, **options)
    assert found.first_alarm in {f"period {i}" for i in range(13, 17)}
    alarm = found.alarms[0]
    assert alarm.claim.kind == "cost"
    assert alarm.claim.groups == ("a", "b")
    assert alarm.since in {f"period {i}" for i in range(11, 16)}
    assert TRUE + 0.01 < alarm.at_least < TRUE + 0.08 + 0.03
    assert alarm.estimate == pytest.approx(TRUE + 0.078, abs=0.02)
    assert found.periods[11].broken == ()
    assert found.periods[-1].broken == ("cost",)


def test_labels_that_drift_break_calibration_not_at_once_the_costs():
    random = np.random.default_rng(7)
    tallies = [period(random, 1500, pull=0.5 if i >= 4 else 0.0) for i in range(12)]
    found = ic.watch(RULE, tallies, tolerance=0.2)
    assert {alarm.claim.kind for alarm in found.alarms} == {"calibration"}
    text = str(found.alarms[0])
    assert "too low" in text or "too high" in text
    low = [a for a in found.alarms if a.claim.band == (0.0, 0.2)]
    assert low
    when = [int(alarm.period.removeprefix("period ")) for alarm in found.alarms]
    assert when == sorted(when)
    assert len(set(when)) > 1
    assert all(a.estimate > 0 and "from 0 to 0.2" in str(a) and "too low" in str(a) for a in low)
    assert not ic.watch(RULE, tallies, tolerance=0.2, calibration_margin=None).alarm


def test_what_each_method_promises():
    tally = compas()
    assert ic.watch(ic.withhold(tally, "fpr", 0.06), [tally]).equal == ("cost",)
    assert ic.watch(ic.withhold(tally, "fpr", 0.06), [tally]).limit == 0.06
    odds = ic.watch(ic.equalize_odds(tally), [tally])
    assert odds.equal == ("generalized_fpr", "generalized_fnr")
    assert odds.calibration_margin is None
    reconciled = ic.reconcile(tally)
    found = ic.watch(reconciled, [reconciled.expected(tally)] * 8, tolerance=0.05)
    assert found.equal == ("fpr", "fnr")
    assert not found.alarm
    assert found.periods[0].difference == pytest.approx(0.0, abs=1e-9)
    assert ic.watch(reconciled, [tally] * 8, tolerance=0.05).alarm
    assert ic.watch(reconciled, [tally], cost="fnr").equal == ("cost",)


def test_a_rule_that_stopped_short_is_held_to_what_it_came_to():
    tally = compas()
    with pytest.warns(ic.InfeasibleWarning):
        rule = ic.withhold(tally, "fpr", 0.0, infeasible="closest")
    after = rule.expected(tally)
    differ = ic.audit(after, "fpr").disparity.difference
    found = ic.watch(ic.Rule.from_json(rule.to_json()), [after] * 20)
    assert found.limit == pytest.approx(differ)
    assert found.limit > 0.01
    assert not found.alarm
    wanted = "The requested tolerance of cost was 0, and the rule reached 0.0"
    assert found.notes[0].startswith(wanted)
    # Who asks for more is told the truth.
    strict = ic.watch(rule, [after] * 20, tolerance=0.0)
    assert strict.alarm
    assert not strict.notes
    with pytest.warns(ic.InfeasibleWarning):
        pools = ic.coarsen(tally, "fpr", tolerance=0.0, infeasible="closest")
    assert not ic.watch(pools, [pools.expected(tally)] * 20).alarm


def test_promises_say_what_was_asked_for_and_what_was_reached():
    tally = compas()
    cost = ic.withhold(tally, "fpr", 0.06).promise
    assert cost == ic.Promise({"cost": 0.06}, {"cost": 0.06}, calibrated=True, coin=True)
    assert ic.coarsen(tally, "fnr", tolerance=0.08).promise.equal == {"cost": 0.08}
    hard = ic.equalize_odds(tally, 0.3, rates="hard").promise
    none = {"fpr": 0.0, "fnr": 0.0}
    assert hard == ic.Promise(none, none, calibrated=False, coin=True, threshold=0.3)
    alone = ic.withhold(tally, "fpr", 1.0).promise
    assert (alone.equal, alone.coin) == ({"cost": 1.0}, False)
    with pytest.warns(ic.InfeasibleWarning):
        short = ic.withhold(tally, "fpr", 0.01, infeasible="closest")
    differ = ic.audit(short.expected(tally), "fpr").disparity.difference
    assert short.promise.asked == {"cost": 0.01}
    assert short.promise.equal == {"cost": pytest.approx(differ)}
    rule = ic.reconcile(tally, 0.4, ["fpr", "cost"], {"fpr": 0.02, "cost": 0.2}, cost="fnr")
    within = {"fpr": 0.02, "cost": 0.2}
    assert rule.promise == ic.Promise(within, within, True, rule.needs_coin, 0.4)


def test_a_promise_that_cannot_be_watched_is_named():
    tally = compas()
    promise = ic.Promise({"brier": 0.1, "cost": 0.2}, {"brier": 0.1, "cost": 0.2}, True, False)
    rule = ic.Rule(tally.groups, (), "mine", cost=ic.Cost.fpr(), promise=promise)
    found = ic.watch(rule, [tally])
    assert found.limits == {"cost": 0.2}
    assert found.notes[0] == "The rule promises equal brier: not watched."
    nothing = ic.Promise({}, {}, calibrated=True, coin=False)
    found = ic.watch(ic.Rule(tally.groups, (), "mine", promise=nothing), [tally])
    assert (found.limits, found.calibration_margin) == ({}, 0.02)


@pytest.mark.parametrize("method", ["mine", "withhold"])
@pytest.mark.parametrize("cost", [ic.Cost.fpr(), None])
def test_a_rule_that_promises_nothing_is_held_to_nothing(cost, method):
    tally = compas()
    rule = ic.Rule(tally.groups, (), method, cost=cost, settings={"tolerance": 0.0})
    found = ic.watch(rule, [tally] * 20)
    assert not found.alarm
    assert found.limits == {}
    assert math.isnan(found.limit)
    assert found.calibration_margin is None
    assert found.notes[0] == (
        f"This rule promises nothing (its method is '{method}'): its numbers are measured, "
        "and only limits that you pass are tested."
    )
    assert found.summary()[0] == found.notes[0]
    assert (
        found.headline() == "Watch over 20 periods at 0.95: no limit on how far groups may differ"
    )
    # It is measured all the same.
    audit = ic.audit(tally, "fpr", confidence=None)
    differ = audit.disparity.difference if cost else audit.equalized_odds_difference
    assert found.periods[0].difference == pytest.approx(differ)
    off = max(abs(m.mean_score - m.base_rate) for m in audit.groups.values())
    assert found.periods[0].calibration == pytest.approx(off)
    plain = json.loads(found.to_json())
    assert (plain["limit"], plain["limits"], plain["alarm"]) == (None, {}, False)
    assert "No violation was detected" not in repr(found)


def test_a_rule_that_promises_nothing_is_held_to_what_is_asked_for():
    tally = compas()
    rule = ic.Rule(groups=tally.groups, rows=(), method="mine", cost=ic.Cost.fpr())
    found = ic.watch(rule, [tally] * 20, tolerance=0.01)
    assert found.limits == {"cost": 0.01}
    assert {alarm.claim.kind for alarm in found.alarms} == {"cost"}
    other = ic.watch(rule, [tally] * 20, cost="fnr")
    assert (other.limits, other.alarm) == ({}, False)
    nothing = ic.Rule(groups=tally.groups, rows=(), method="mine")
    with pytest.raises(ic.UsageError, match="cost: must be known"):
        ic.watch(nothing, [tally], tolerance=0.01)
    assert ic.watch(nothing, tally, cost="fnr", tolerance=0.5).equal == ("cost",)


def test_each_rate_has_its_own_tolerance():
    tally = compas()
    rule = ic.reconcile(tally, tolerance={"fpr": 0.02, "fnr": 0.05})
    found = ic.watch(rule, [rule.expected(tally)] * 4)
    assert found.limits == {"fpr": 0.02, "fnr": 0.05}
    assert (found.limit, found.equal) == (0.05, ("fpr", "fnr"))
    assert "groups may differ in fpr by 0.02 and in fnr by 0.05" in found.headline()
    assert json.loads(found.to_json())["limits"] == {"fpr": 0.02, "fnr": 0.05}
    assert not found.alarm


def test_news_are_no_alarms():
    random = np.random.default_rng(8)
    made = {"groups": [{"group": "a", "n": 900, "base_rate": 0.9}, {"group": "b"}, 7, None]}
    rule = ic.Rule(
        groups=("a", "b", "c"), rows=(), method="withhold", cost=ic.Cost.fpr(), made_from=made
    )
    data = {"score": [0.1] * 4, "label": [0, 1, 0, 1], "group": list("aabb")}
    found = ic.watch(rule, {"May": period(random, 300), "June": ic.tally(data)}, tolerance=0.3)
    assert not found.alarm
    text = "\n".join(found.notes)
    assert "Little data in June: 1 negatives of a, 1 positives of a" in text
    assert "Not in any period: c." in text
    assert "The base rate of a was 0.9000 when the rule was made, now 0.3" in text
    assert "The share of a was 1.0000 when the rule was made, now 0.5000." in text


def test_a_period_without_a_group_tells_nothing_about_it():
    random = np.random.default_rng(9)
    first, last = period(random, 500), period(random, 500)
    found = ic.watch(RULE, [first, last.select(["a"]), last])
    assert math.isnan(found.periods[1].difference)
    assert found.periods[1].running == pytest.approx(found.periods[0].running, abs=0.02)
    assert found.table()[1][1][2] == "-"
    assert json.loads(found.to_json())["periods"][1]["difference"] is None


@pytest.mark.parametrize(
    ("tallies", "options", "message"),
    [
        ([], {}, "tallies: must be tallies, at least one\n  got:  none"),
        ([1], {}, "got:  1\n"),
        ("both", {"threshold": 0.123456}, "must be an edge of the tally"),
        ("one", {}, "must have at least two groups that the rule was made from"),
        ("other", {}, "group: must be one the rule knows"),
    ],
)
def test_bad_usage(tallies, options, message):
    both = period(np.random.default_rng(0), 50)
    cases = {"both": [both], "one": [both.select(["a"])], "other": [both.relabel({"a": "x"})]}
    given = cases[tallies] if isinstance(tallies, str) else tallies
    with pytest.raises(ic.IsocostError) as error:
        ic.watch(RULE, given, **options)
    assert message in str(error.value)


def test_it_is_shown_as_text_html_and_json():
    found = ic.watch(ic.withhold(compas(), "fpr", 0.06), {"<May>": compas(), "June": compas()})
    text = repr(found)
    assert text.startswith(
        "Watch over 2 periods at 0.95: cost may differ by 0.06, scores be off by 0.02"
    )
    assert "0.0875" in text
    assert "The costs of African-American and Caucasian differ since <May>" in text
    html = found._repr_html_()
    assert "&lt;May&gt;" in html
    assert "<May>" not in html
    content = json.loads(found.to_json())
    assert content["alarm"] is True
    assert content["first_alarm"] == "June"
    assert content["alarms"][0]["groups"] == ["African-American", "Caucasian"]


def test_the_command(tmp_path):
    rule = ic.withhold(compas(), "fpr", 0.06)
    rule.save(tmp_path / "rule.json")
    for day in (1, 2, 10):
        rule.expected(compas()).save(tmp_path / f"good-{day}.json")
        compas().save(tmp_path / f"bad-{day}.json")
    good = run("watch", "rule.json", "good-*.json", "--tolerance", 0.07, cwd=tmp_path)
    assert good.returncode == 0, good.stderr
    assert "No violation was detected." in good.stdout
    assert good.stdout.index("good-2") < good.stdout.index("good-10")
    bad = run("watch", "rule.json", "bad-*.json", "--json", cwd=tmp_path)
    assert bad.returncode == 1, bad.stderr
    assert json.loads(bad.stdout)["first_alarm"] == "bad-2"
    order = ["watch", "rule.json", "bad-2.json", "bad-1.json", "--json"]
    assert json.loads(run(*order, cwd=tmp_path).stdout)["periods"][0]["name"] == "bad-2"
    for arguments, message in (
        (["rule.json", "data.csv"], "nothing at 'data.csv'"),
        (["rule.json", "bad-1.json", "--score", "risk"], "--score: must be left out"),
        (["rule.json", "rule.json"], "got:  a rule"),
        (["rule.json", "bad-1.json", "bad-1.json"], "files: must each be given once"),
        (["bad-1.json", "bad-1.json"], "rule file"),
    ):
        done = run("watch", *arguments, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr


def test_the_command_on_files_that_a_rule_wrote(tmp_path):
    """Columns are those of the rule, and people without a score were handed over."""
    rows = {f"the {name}": column for name, column in compas_rows().items()}
    frame = pd.DataFrame(rows)
    names = {"score": "the score", "label": "the label", "group": "the group"}
    rule = ic.hand_over(ic.tally(frame, **names), share=0.25)
    rule.save(tmp_path / "rule.json")
    frame.to_csv(tmp_path / "data.csv", index=False)
    given = {"score": "the score", "group": "the group", "id": "the id"}
    ic.apply_file(rule, tmp_path / "data.csv", tmp_path / "may.csv", **given)
    names["score"] = "repaired_the score"
    ic.tally(tmp_path / "may.csv", **names, edges=(0.5,), handed_over=True).save(
        tmp_path / "june.json"
    )
    done = run("watch", "rule.json", "may.csv", "june.json", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    may, june = json.loads(done.stdout)["periods"]
    assert may["handed_over"] == june["handed_over"] == pytest.approx(0.25, abs=0.02)
    assert (may["name"], may["rows"]) == ("may", june["rows"])


def test_the_repaired_column_is_read_and_told_of_beside_the_other(tmp_path):
    names = {"score": "p", "label": "denied", "group": "race"}
    old = {"p": "score", "denied": "label", "race": "group", "who": "id"}
    people = {new: compas_rows()[name] for new, name in old.items()}
    rule = ic.withhold(ic.tally(people, **names), cost="fpr", tolerance=0.06)
    repaired = rule.apply(people, id="who")
    alone = {name: values for name, values in repaired.items() if name != "p"}
    in_place = rule.apply(people, id="who", output="p")
    wanted = ic.tally(repaired, **{**names, "score": "repaired_p"})
    note = "The scores were read from the column 'repaired_p'; the data also have 'p'. To watch "
    rule.save(tmp_path / "rule.json")

    def shown(periods):
        return [one.difference for one in periods] + [one.rows for one in periods]

    told = [note + 'that one, pass score="p".']
    expected = ic.watch(rule, {"may": wanted}, tolerance=0.08)
    for data, notes in ((repaired, told), (alone, []), (in_place, [])):
        path = tmp_path / "may.csv"
        frame = pd.DataFrame(data)
        frame.to_csv(path, index=False)
        for given in (data, frame, pl.LazyFrame(data), path, pa.table(data).to_reader()):
            result = ic.watch(rule, {"may": given}, tolerance=0.08)
            assert shown(result.periods) == pytest.approx(shown(expected.periods))
            assert list(result.notes) == notes + list(expected.notes)
        done = run("watch", "rule.json", "may.csv", "--tolerance", 0.08, "--json", cwd=tmp_path)
        found = json.loads(done.stdout)
        assert found["periods"][0]["difference"] == pytest.approx(expected.periods[0].difference)
        in_shell = [one.replace('score="p"', "--score p") for one in notes]
        assert found["notes"] == in_shell + list(expected.notes)
    raw = ic.watch(rule, {"may": repaired}, tolerance=0.08, score="p")
    assert raw.periods == ic.watch(rule, {"may": ic.tally(people, **names)}, tolerance=0.08).periods
    assert not any("repaired_p" in one for one in raw.notes)


def test_the_score_column_is_read_if_it_is_asked_for_by_its_usual_name(tmp_path):
    rule = ic.withhold(compas(), cost="fpr", tolerance=0.06)
    rule.save(tmp_path / "rule.json")
    repaired = rule.apply(compas_rows(), id="id")
    pd.DataFrame(repaired).to_csv(tmp_path / "may.csv", index=False)
    usual, asked = (
        json.loads(run("watch", "rule.json", "may.csv", *more, "--json", cwd=tmp_path).stdout)
        for more in ([], ["--score", "score"])
    )
    assert usual["periods"][0]["difference"] == pytest.approx(0.06, abs=0.01)
    assert asked["periods"][0]["difference"] == pytest.approx(0.0875, abs=0.001)


FLOOR = {"selection_rate": 0.35, "overall_accuracy": 0.6}


def test_floors_are_promised_and_kept_in_files():
    rule = ic.reconcile(compas(), tolerance=0.05, floor=FLOOR)
    assert rule.promise.floor == FLOOR
    assert ic.Rule.from_json(rule.to_json()) == rule
    without = ic.reconcile(compas())
    assert json.loads(without.to_json())["promise"]["floor"] == {}
    assert without.promise.floor == {}
    with pytest.warns(ic.InfeasibleWarning):
        lowered = ic.reconcile(compas(), floor={"accuracy": 0.9}, infeasible="closest")
    after = ic.audit(lowered.expected(compas()), confidence=None)
    least = min(group.accuracy for group in after.groups.values())
    assert lowered.promise.floor["accuracy"] == pytest.approx(least, abs=1e-6)
    broken = json.loads(rule.to_json())
    broken["promise"]["floor"] = {"accuracy": -1}
    with pytest.raises(ic.RuleError, match="rule promise floor: must be a finite number"):
        ic.Rule.from_json(json.dumps(broken))


def test_floors_are_watched():
    rule = ic.reconcile(compas(), tolerance=0.05, floor=FLOOR)
    after = rule.expected(compas())
    kept = ic.watch(rule, [after] * 6)
    assert not [alarm for alarm in kept.alarms if alarm.claim.is_floor]
    assert "selection_rate be no less than 0.35, overall_accuracy be no less" in kept.headline()
    # Half of those selected in one group are not selected any more.
    fewer = ic.Rule(
        compas().groups, (Row("Caucasian", 0.5, 1.0, "set", 0.4, 0.5),), "mine"
    ).expected(after)
    found = ic.watch(rule, [after, fewer, fewer, fewer], calibration_margin=None)
    alarm = next(alarm for alarm in found.alarms if alarm.claim.is_floor)
    rate = ic.audit(fewer, confidence=None).groups["Caucasian"].selection_rate
    assert (alarm.claim.groups, alarm.since) == (("Caucasian",), "period 2")
    assert alarm.estimate == pytest.approx(rate)
    assert rate < alarm.at_least < 0.35
    assert str(alarm).startswith("The selection rate of Caucasian is too low since period 2: 0.")
    assert alarm.to_dict()["limit"] == 0.35
    assert found.periods[-1].broken.count("selection_rate") == 1
    assert json.loads(found.to_json())["floors"] == FLOOR
    # What is asked of groups may be relaxed, and floors with it.
    lenient = ic.watch(rule, [fewer] * 3, tolerance=0.35, calibration_margin=None)
    assert not lenient.alarm
    wrong = ic.Rule(
        compas().groups,
        tuple(Row(group, 0.0, 1.0, "mirror", None, 0.7) for group in compas().groups),
        "mine",
    ).expected(after)
    everybody = ic.watch(rule, [wrong] * 4, tolerance=0.1, calibration_margin=None)
    assert any(str(alarm).startswith("The accuracy of everybody") for alarm in everybody.alarms)


def test_a_floor_that_holds_exactly_raises_few_alarms():
    rng = np.random.default_rng(0)
    claim = Claim("selection_rate", ("a",), None, 0.3, 0.05, is_floor=True)
    alarms = 0
    for _ in range(300):
        periods = []
        for _ in range(8):
            selected = rng.random(400) < 0.3
            data = {"score": np.where(selected, 0.8, 0.2), "label": rng.random(400) < 0.5}
            periods.append(ic.tally({**data, "group": np.repeat(["a"], 400)}))
        history = History(periods, ["a"], 0.5, None)
        track = evidence(*history.streams(claim))
        alarms += bool((track.against(0.0) >= alarm_at(0.05)).any())
    assert alarms <= 15


def test_other_measures_are_shown_for_each_period():
    rule = ic.withhold(compas(), "fpr", tolerance=0.06)
    found = ic.watch(rule, [compas(), rule.expected(compas())], measures=["ppv", "auc"])
    audit = ic.audit(compas(), "fpr", measures=["ppv", "auc"], confidence=None)
    for name in ("ppv", "auc"):
        wanted = audit.disparities[name].difference
        assert found.periods[0].measures[name] == pytest.approx(wanted, abs=1e-12)
    assert found.to_dict()["periods"][1]["measures"].keys() == {"ppv", "auc"}
    assert "AUC differs by" in str(found)
    assert ic.watch(rule, [compas()]).periods[0].measures == {}
    with pytest.raises(ic.UsageError, match="measures: must"):
        ic.watch(rule, [compas()], measures="nothing")


def test_a_glob_in_quotes_is_one_period_per_file_as_without_quotes(tmp_path):
    """Twelve days, with a drift in the last two; day 10 comes after day 9."""
    random = np.random.default_rng(7)
    RULE.save(tmp_path / "rule.json")
    for day in range(1, 13):
        score = np.concatenate([random.beta(*shape, 800) for shape in SHAPES.values()])
        group, label = np.repeat(list(SHAPES), 800), random.random(1600) < score
        moved = (group == "a") & ~label & (day >= 11)
        score = np.where(moved, np.minimum(score + 0.2, 1.0), score)
        frame = pd.DataFrame({"score": score, "label": label, "group": group})
        frame.to_parquet(tmp_path / f"day-{day}.parquet")
    names = [f"day-{day}" for day in range(1, 13)]
    options = ("--tolerance", TRUE + 0.02, "--no-calibration")
    quoted = run("watch", "rule.json", "day-*.parquet", *options, "--json", cwd=tmp_path)
    listed = [f"{name}.parquet" for name in names]
    plain = run("watch", "rule.json", *listed, *options, "--json", cwd=tmp_path)
    assert quoted.returncode == plain.returncode == 1
    assert quoted.stdout == plain.stdout
    found = json.loads(quoted.stdout)
    assert [one["name"] for one in found["periods"]] == names
    assert found["first_alarm"] in ("day-11", "day-12")
    folder = tmp_path / "months" / "may"
    folder.mkdir(parents=True)
    for name in listed[:6]:
        (tmp_path / name).rename(folder / name)
    # A folder is one period, and ** does not count its files twice.
    whole = run("watch", "rule.json", "months/*", *options, "--json", cwd=tmp_path)
    assert [one["name"] for one in json.loads(whole.stdout)["periods"]] == ["may"]
    deep = run("watch", "rule.json", "months/**", *options, "--json", cwd=tmp_path)
    assert [one["name"] for one in json.loads(deep.stdout)["periods"]] == names[:6]
    none = run("watch", "rule.json", "night-*.parquet", cwd=tmp_path)
    assert none.returncode == 2
    assert "nothing at 'night-*.parquet'" in none.stderr


def test_intervals_are_the_right_way_up_when_the_difference_has_changed():
    """The bounds of a test cross where no single difference fits all periods."""
    random = np.random.default_rng(9)
    tallies = [period(random, 2000, harm=0.0 if i < 8 else 0.3) for i in range(12)]
    found = ic.watch(RULE, tallies, tolerance=TRUE + 0.02, calibration_margin=None)
    assert found.first_alarm == "period 9"
    assert all(low < high for low, high in (one.interval for one in found.periods))
    # The upper bound is the one that the alarm names.
    assert found.periods[8].interval[1] == pytest.approx(found.alarms[0].at_least)


def test_repaired_scores_are_probabilities_whatever_the_others_were(tmp_path):
    """Options kept in a file name the scores that the rule was made from."""
    names = {"score": "p", "label": "label", "group": "group"}
    people = {**compas_rows(), "p": 100 * compas_rows()["score"]}
    rule = ic.withhold(ic.tally(people, **names, scale="percent"), cost="fpr", tolerance=0.06)
    rule.save(tmp_path / "rule.json")
    pd.DataFrame(rule.apply(people, id="id")).to_csv(tmp_path / "may.csv", index=False)
    watched = ("watch", "rule.json", "may.csv", "--tolerance", 0.08, "--json")
    wanted = json.loads(run(*watched, cwd=tmp_path).stdout)["periods"]
    message = "scale: must be left out: the repaired scores in 'repaired_p' are probabilities"
    asked = run(*watched, "--scale", "percent", cwd=tmp_path)
    assert asked.returncode == 2
    assert message in asked.stderr
    with pytest.raises(ic.UsageError, match=message):
        ic.watch(rule, [tmp_path / "may.csv"], scale="percent")
    (tmp_path / "isocost.toml").write_text('score = "p"\nscale = "percent"\n')
    assert json.loads(run(*watched, cwd=tmp_path).stdout)["periods"] == wanted
    raw = json.loads(run(*watched, "--score", "p", cwd=tmp_path).stdout)["periods"]
    assert raw[0]["difference"] > wanted[0]["difference"]


def test_rows_without_a_group_are_those_of_the_rule():
    people = {**compas_rows(), "group": [g or None for g in compas_rows()["group"]]}
    people["group"][:500] = [None] * 500
    tally = ic.tally(people, missing_group="other")
    rule = ic.withhold(tally, cost="fpr", tolerance=0.1)
    result = ic.watch(rule, [people])
    assert result.periods[0].difference == pytest.approx(
        ic.watch(rule, [tally]).periods[0].difference
    )


def test_a_group_that_the_rule_does_not_know_can_be_left_out(tmp_path):
    RULE.save(tmp_path / "rule.json")
    both = period(np.random.default_rng(0), 50)
    other = both.relabel({"b": "x"}) + both
    other.save(tmp_path / "may.json")
    for call in (lambda: ic.watch(RULE, [other]), lambda: RULE.expected(other)):
        with pytest.raises(ic.UsageError, match=r"or leave the others out \(tally.drop\)"):
            call()
    done = run("watch", "rule.json", "may.json", cwd=tmp_path)
    assert "or leave the others out (--drop-group)" in done.stderr
    assert ic.watch(RULE, [other.drop(["x"])]).periods


def part_of_starts(period):
    """The weight of a drift that began in a period, counted from 1."""
    weight = STARTS["soon"] / SOON if period <= SOON else 0.0
    weight += STARTS["first"] if period == 1 else 0.0
    return weight or STARTS["later"] * (SOON + 1) / (period * (period + 1))


def test_starts_and_effects_have_weights_that_add_up_to_one():
    assert sum(EFFECTS.values()) == pytest.approx(1.0)
    # Beyond n the weights are a telescoping sum.
    n = 5000
    rest = STARTS["later"] * (SOON + 1) / (n + 1)
    assert sum(map(part_of_starts, range(1, n + 1))) + rest == pytest.approx(1.0)


def brute_force(rows, k, constant, limit, sign):
    """The evidence as the docstring writes it, row by row, period by period, start by start."""
    periods = len(rows[0])
    total = []
    for last in range(periods):
        value = 1.0 - sum(part_of_starts(start + 1) for start in range(last + 1))
        for start in range(last + 1):
            for effect, part in EFFECTS.items():
                log_e = 0.0
                for t in range(start, last + 1):
                    before = [np.concatenate([[], *stream[:t]]) for stream in rows]
                    means = [(0.5 + past.sum()) / (1 + len(past)) for past in before]
                    spreads = [
                        (0.25 + ((past - mean) ** 2).sum()) / (1 + len(past))
                        for past, mean in zip(before, means, strict=True)
                    ]
                    n = [len(stream[t]) for stream in rows]
                    variance = sum(
                        f**2 * s / size for f, s, size in zip(k, spreads, n, strict=True)
                    )
                    bold = min(0.5 * size / abs(f) for f, size in zip(k, n, strict=True))
                    weight = min(effect / math.sqrt(variance), bold)
                    found = constant + sum(f * s[t].mean() for f, s in zip(k, rows, strict=True))
                    log_e += weight * (sign * found - limit)
                    for f, stream, mean, size in zip(k, rows, means, n, strict=True):
                        u = weight * sign * f * (stream[t] - mean) / size
                        ends = [weight * sign * f * (x - mean) / size for x in (0.0, 1.0)]
                        rest = max((e - e**2 / 2 + e**3 / 3 - math.log1p(e)) / e**2 for e in ends)
                        log_e -= ((0.5 + rest) * u**2 - u**3 / 3).sum()
                value += math.exp(log_e) * part * part_of_starts(start + 1)
        total.append(math.log(value))
    return total


def test_evidence_is_its_formula():
    random = np.random.default_rng(1)
    sizes = ((40, 3, 25), (10, 60, 7))
    rows = [[random.random(n) for n in stream] for stream in sizes]
    k, constant = (1.0, -0.7), 0.1
    streams = [
        Stream(
            factor,
            np.array([float(len(part)) for part in stream]),
            np.array([part.sum() for part in stream]),
            np.array([(part**2).sum() for part in stream]),
            np.array([(part**3).sum() for part in stream]),
        )
        for factor, stream in zip(k, rows, strict=True)
    ]
    found = evidence(streams, constant)
    for limit, sign in ((0.0, 1.0), (0.2, -1.0), (0.05, 1.0)):
        wanted = brute_force(rows, k, constant, limit, sign)
        np.testing.assert_allclose(found.against(limit, sign), wanted, rtol=1e-9)
    everything = [np.concatenate(stream).mean() for stream in rows]
    assert found.running[-1] == pytest.approx(constant + everything[0] - 0.7 * everything[1])
    assert found.limits == pytest.approx((-0.6, 1.1))
    low = found.at_least(0.3, 1.0, 2)
    assert found.against(low, 1.0)[2] == pytest.approx(alarm_at(0.3), abs=1e-6)


def test_a_period_of_one_row_never_gains_on_average():
    """E[exp(gain)] <= 1 at the limit, which is what everything rests on, for rare rows too."""
    past = np.array([7.0, 0.0])
    for mu in (0.01, 0.2, 0.5, 0.8, 0.99):
        for m in (0.01, 0.3, 0.9):
            for low, high in ((0.0, 1.0), (mu / 2, (1 + mu) / 2), (0.0, (1 + mu) / 2)):
                p = (mu - low) / (high - low)
                for sign in (1.0, -1.0):
                    mean = np.zeros(len(EFFECTS))
                    for x, chance in ((low, 1 - p), (high, p)):
                        # Seven rows come before, then one.
                        powers = [past * m**i + np.array([0.0, x**i]) for i in (1, 2, 3)]
                        one = evidence([Stream(1.0, past + np.array([0.0, 1.0]), *powers)])
                        gains = one.weight * (sign * (one.estimate - mu))[:, None]
                        gains -= one.price[..., int(sign < 0)]
                        mean += chance * np.exp(gains[1])
                    assert (mean <= 1 + 1e-12).all()


def test_estimates_are_those_of_the_audit():
    random = np.random.default_rng(2)
    tallies = [period(random, 400, weighted=weighted) for weighted in (False, True)]
    for tally in tallies:
        for cost in ("fpr", "fnr", "weighted:1,3", "plain:2,1"):
            history = History([tally], ["a", "b"], 0.5, ic.Cost.parse(cost))
            audit = ic.audit(tally, cost, confidence=None)
            for name in WATCHABLE:
                found = evidence(*history.streams(Claim(name, ("a", "b"), None, 0.0, 0.1)))
                a, b = (getattr(audit.groups[g], name) for g in "ab")
                assert found.estimate[0] == pytest.approx(a - b, abs=1e-12), (cost, name)
            claim = Claim("calibration", ("b",), None, 0.0, 0.1)
            b = audit.groups["b"]
            offset = evidence(*history.streams(claim)).estimate[0]
            assert offset == pytest.approx(b.base_rate - b.mean_score, abs=1e-12)


def test_bands_add_up_to_everybody():
    tally = period(np.random.default_rng(3), 500)
    history = History([tally], ["a", "b"], 0.5, None)
    parts = [history.streams(Claim("calibration", ("a",), b, 0, 0.1))[0][0] for b in BANDS]
    (whole,), _ = history.streams(Claim("calibration", ("a",), None, 0, 0.1))
    for name in ("n", "total", "square", "cube"):
        assert sum(getattr(p, name)[0] for p in parts) == pytest.approx(getattr(whole, name)[0])


def test_third_powers_are_those_of_the_rows():
    random = np.random.default_rng(8)
    score, weight = random.beta(1.2, 1.8, 600), random.gamma(4.0, 0.25, 600)
    data = {"score": score, "label": [0] * 600, "group": ["a"] * 600, "weight": weight}
    for name in (None, "weight"):
        tally = ic.tally(data, weight=name)
        history = History([tally, tally], ["a"], 0.5, ic.Cost.fpr())
        (stream,) = history._number("cost", "a")
        w = weight if name else np.ones(600)
        wanted = w.sum() / (w**2).sum() * (w * score**3).sum()
        assert stream.cube[0] == pytest.approx(wanted, rel=1e-7)
        (floor,), _ = history.streams(Claim("generalized_fpr", (), None, 0.1, 0.1, is_floor=True))
        assert floor.cube[1] == pytest.approx(wanted, rel=1e-7)


def test_chances_of_false_alarms_add_up():
    claims = claims_of(["a", "b", "c"], {"fpr": 0.01, "fnr": 0.01}, 0.02, 0.05)
    assert sum(claim.error for claim in claims) == pytest.approx(0.05)
    assert sum(c.error for c in claims_of(["a", "b"], {"cost": 0.0}, None, 0.1)) == 0.1


def alarmed(rates, rows, random, error):
    """The periods of first alarms, 0 without one, for two groups with one-sided evidence."""
    counts = [random.binomial(rows, rate, len(rates)).astype(float) for rate in (rates, rates[0])]
    n = np.full(len(rates), float(rows))
    streams = [Stream(k, n, c, c, c) for k, c in zip((1.0, -1.0), counts, strict=True)]
    loud = evidence(streams).against(0.0) >= alarm_at(error)
    return int(np.argmax(loud)) + 1 if loud.any() else 0


def test_a_drift_of_some_standard_errors_is_found_after_eight_periods_at_the_median():
    """As docs/monitoring.md says: two groups, 52 quiet periods before, the usual confidence."""
    random = np.random.default_rng(0)
    rows, quiet, drift = 1000, 52, 1.3 * math.sqrt(2 * 0.25 / 1000)
    rates = np.where(np.arange(quiet + 60) < quiet, 0.5, 0.5 + drift)
    (claim,) = claims_of(["a", "b"], {"cost": 0.0}, 0.02, 0.05)[:1]
    found = [alarmed(rates, rows, random, claim.error / 2) for _ in range(400)]
    delays = [when - quiet if when else len(rates) for when in found if not 0 < when <= quiet]
    assert len(delays) > 385
    assert 6 <= np.median(delays) <= 8


@pytest.mark.parametrize(("rate", "rows"), [(0.5, 500), (0.04, 50), (0.96, 50)])
def test_false_alarms_over_sixty_looks_are_rare_for_rare_events_too(rate, rows):
    random = np.random.default_rng(1)
    found = sum(alarmed(np.full(60, rate), rows, random, 0.05) > 0 for _ in range(300))
    # At 0.05 there is a chance of 0.001 to see more than 28.
    assert 0 < found <= 28


def test_evidence_of_normal_sums_overshoots_by_the_constant():
    """The chance to reach A is close to OVERSHOOT / A, where at most 1 / A is certain."""
    random, looks, draws = np.random.default_rng(2), 300, 4000
    path = np.full((len(EFFECTS), draws), -np.inf)
    effects, parts = (np.array(list(x))[:, None] for x in (EFFECTS, EFFECTS.values()))
    most = np.zeros(draws)
    for look in range(1, looks + 1):
        path = np.logaddexp(path, math.log(part_of_starts(look)))
        path += effects * random.standard_normal(draws) - effects**2 / 2
        most = np.maximum(most, (parts * np.exp(path)).sum(axis=0))
    reached = np.mean(most >= 20.0) * 20.0
    assert 0.6 * OVERSHOOT < reached <= OVERSHOOT
