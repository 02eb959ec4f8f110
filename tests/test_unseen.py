"""What a rule does to people not seen: against independent bootstraps, known truth, and rows."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost.examples import compas
from isocost.judging.unseen import NUMBERS, Population, Yardstick, chances
from isocost.repairs.table import REPAIRS
from tests.populations import TWO, drawn, drawn_rows
from tests.processes import run

pytestmark = pytest.mark.filterwarnings("ignore::isocost.IsocostWarning")


def written(path, data):
    lines = [f"{h:.17g},{y},g{g}" for h, y, g in zip(*data.values(), strict=True)]
    path.write_text("\n".join(["score,label,group", *lines]))
    return str(path)


def by_rows(scores, replicates, rng):
    """Algorithm 1 on rows, in NumPy: cost differences of its rules on the population.

    Scores are drawn with replacement and labels by their probabilities.
    """

    def fnr(h, p):
        return ((1 - h) * p).sum() / p.sum()

    differences = []
    for _ in range(replicates):
        mu, cost = [], []
        for h in scores:
            sample = rng.choice(h, len(h))
            label = rng.random(len(h)) < sample
            mu.append(label.mean())
            cost.append((1 - sample[label]).mean())
        low = int(np.argmin(cost))
        alpha = (max(cost) - cost[low]) / (1 - mu[low] - cost[low])
        after = [fnr(h, h) for h in scores]
        after[low] = (1 - alpha) * after[low] + alpha * (1 - mu[low])
        differences.append(abs(after[0] - after[1]))
    return np.array(differences)


@pytest.mark.parametrize("n", [300, 3000])
def test_withholding_agrees_with_a_bootstrap_of_rows(n):
    data = drawn_rows(1, [n, n])
    tally = ic.tally(data)
    rule = ic.withhold(tally, "fnr")
    found = ic.unseen(tally, rule, remakes=400)
    scores = [data["score"][data["group"] == g] for g in (0, 1)]
    reference = by_rows(scores, 2000, np.random.default_rng(2))
    assert found.infeasible == 0
    assert found.cost_difference.fitted == pytest.approx(0.0, abs=1e-12)
    # Four standard errors of 400 replicates.
    error = reference.std() / np.sqrt(400)
    assert found.cost_difference.expected == pytest.approx(reference.mean(), abs=4 * error)
    assert found.cost_difference.limit == pytest.approx(np.quantile(reference, 0.95), rel=0.2)
    # The share withheld does not depend on who the new people are, but for rounding.
    assert found.changed.expected == pytest.approx(found.changed.fitted, abs=1e-9)


def mean_expected(make, rows, sets, replicates):
    numbers = []
    for seed in range(sets):
        tally = drawn(seed, TWO, [rows, rows])
        found = ic.unseen(tally, make(tally), replicates, seed=seed)
        numbers.append([getattr(found, name).expected for name in NUMBERS])
    return dict(zip(NUMBERS, np.mean(numbers, axis=0), strict=True))


@pytest.mark.parametrize(("rows", "truth"), [(2000, 0.010), (200, 0.032)])
def test_withholding_tells_the_known_truth(rows, truth):
    found = mean_expected(lambda t: ic.withhold(t, "fnr", infeasible="closest"), rows, 12, 30)
    assert found["cost_difference"] == pytest.approx(truth, rel=0.25)


@pytest.mark.parametrize(("rows", "rate", "gap"), [(2000, 0.017, 0.027), (200, 0.069, 0.057)])
def test_reconciling_tells_the_known_truth(rows, rate, gap):
    found = mean_expected(lambda t: ic.reconcile(t, levels=64, infeasible="closest"), rows, 6, 15)
    # The truth was measured in 15 fits, whose mean has an error of about a tenth.
    assert found["rate_difference"] == pytest.approx(rate, rel=0.4)
    assert found["calibration_gap"] == pytest.approx(gap, rel=0.25)


def test_weights_that_are_all_alike_change_nothing():
    data = drawn_rows(4, [400, 400])
    heavy = ic.tally({**data, "w": np.full(800, 3.0)}, weight="w")
    plain = ic.tally(data)
    one, other = (ic.unseen(t, ic.withhold(t, "fnr"), 40) for t in (plain, heavy))
    for name in NUMBERS:
        assert getattr(one, name).expected == pytest.approx(getattr(other, name).expected)
        assert getattr(one, name).limit == pytest.approx(getattr(other, name).limit)


def test_a_tolerance_is_where_new_people_start_from():
    tally = drawn(0, TWO, [2000, 2000])
    found = ic.unseen(tally, ic.withhold(tally, "fnr", tolerance=0.03), 60).cost_difference
    assert found.fitted == pytest.approx(0.03)
    assert found.expected == pytest.approx(0.03, abs=0.01)
    assert found.limit > 0.03


def test_doing_nothing_is_measured_too():
    tally = drawn(0, TWO, [2000, 2000])
    rule = ic.withhold(tally, "fnr")
    found = ic.unseen(tally, rule, 40)
    now = Yardstick.of(tally, rule, ic.Question()).numbers(tally, None)
    assert found.cost_difference.unrepaired == pytest.approx(now[0], abs=0.02)
    assert found.goal == found.cost_difference
    assert found.better
    assert found.calibration_gap.unrepaired == pytest.approx(0.0, abs=1e-9)


def test_remakes_that_are_out_of_reach_are_counted_and_come_close():
    tally = drawn(1, [(2, 2), (2, 3.2)], [150, 150])
    # The least tolerance that is feasible is 0.0615.
    found = ic.unseen(tally, ic.withhold(tally, "fpr", tolerance=0.07), 60)
    assert 0 < found.infeasible < 60
    assert f"In {found.infeasible} of 60 remakes" in repr(found)
    assert found.cost_difference.limit > found.cost_difference.expected > 0.07


def test_a_holdout_is_measured_as_it_is():
    tally, other = drawn(0, TWO, [1000, 1000]), drawn(1, TWO, [600, 600])
    rule = ic.withhold(tally, "fnr")
    found = ic.unseen(tally, rule, 40, holdout=other)
    after = ic.audit(rule.expected(other), "fnr", confidence=None)
    assert found.cost_difference.expected == pytest.approx(after.disparity.difference)
    assert found.rate_difference.expected == pytest.approx(after.equalized_odds_difference)
    assert found.accuracy.expected == pytest.approx(after.overall.accuracy)
    assert found.accuracy.limit < found.accuracy.expected
    assert found.cost_difference.limit > found.cost_difference.expected
    before = ic.audit(other, "fnr", confidence=None)
    assert found.cost_difference.unrepaired == pytest.approx(before.disparity.difference)
    assert found.kept_apart == 1200
    assert "measured on 1,200 people kept apart" in found.headline()


def test_it_prints_and_becomes_json():
    found = ic.unseen(compas(), ic.reconcile(compas()), 10)
    content = json.loads(found.to_json())
    assert content["rate_difference"]["expected"] == found.rate_difference.expected
    assert content["remakes"] == 10
    assert "expected          at most" in repr(found)
    assert "at least 0." in repr(found)
    assert "<strong>For new people" in found._repr_html_()
    assert ic.unseen(compas(), ic.reconcile(compas()), 10) == found


def test_a_rule_made_by_hand_cannot_be_made_again():
    rule = replace(ic.withhold(compas(), "fpr", 0.07), method="mine")
    with pytest.raises(ic.UsageError, match="to be made again"):
        ic.unseen(compas(), rule)
    with pytest.raises(ic.UsageError, match="must promise"):
        ic.plan_repair(compas(), replace(ic.withhold(compas(), "fpr", 0.07), promise=ic.Promise()))
    with pytest.raises(ic.UsageError, match="must be one the rule knows"):
        ic.unseen(drawn(0, TWO, [50, 50]), ic.withhold(compas(), "fpr", 0.07))


SMALL = ([(0.6, 1.2), (0.7, 0.9), *[(0.65, 1.05)] * 5], [6000, 6000, 40, 40, 40, 40, 40])
"""Two large groups that differ a little, and small ones whose noise a repair follows."""


def test_fit_refuses_a_repair_that_does_not_help_new_people(tmp_path):
    shapes, sizes = SMALL
    path = written(tmp_path / "data.csv", drawn_rows(5, sizes, shapes))
    rule = tmp_path / "rule.json"
    options = ["--cost", "fnr", "--infeasible", "closest", "-o", str(rule)]
    fit = ["fit", path, *options]
    done = run(*fit)
    assert done.returncode == 1, done.stderr
    assert "expected to do no better than nothing" in done.stderr
    assert not rule.exists()
    done = run(*fit, "--anyway")
    assert done.returncode == 0
    assert "no better than nothing" in json.loads(rule.read_text())["notes"][-1]


def test_fit_measures_on_rows_kept_apart(tmp_path):
    path = written(tmp_path / "data.csv", drawn_rows(0, [3000, 3000]))

    def fit(*options):
        few = ("--remakes", "20", "--force")
        return run("fit", path, "-o", str(tmp_path / "r.json"), *few, *options)

    once, again = fit("--split", "0.5"), fit("--split", "0.5", "--threads", "1")
    assert once.returncode == 0, once.stderr
    assert once.stdout == again.stdout
    made = json.loads((tmp_path / "r.json").read_text())["made_from"]["n"]
    assert f"measured on {6000 - made:,.0f} people kept apart" in once.stdout
    assert made == pytest.approx(3000, abs=4 * np.sqrt(1500))
    other = written(tmp_path / "other.csv", drawn_rows(1, [2000, 2000]))
    assert "measured on 4,000 people kept apart" in fit("--holdout", other).stdout
    assert "fitted  expected" in fit().stdout
    # People whom the rule was made from are not kept apart.
    assert fit("--holdout", path).returncode == 2
    both = fit("--holdout", other, "--split", "0.5")
    assert both.returncode == 2
    assert "--split" in both.stderr
    assert fit("--split", "1.5").returncode == 2
    counted = tmp_path / "t.json"
    assert run("tally", path, "-o", counted).returncode == 0
    command = ["fit", str(counted), "--split", "0.5"]
    done = run(*command)
    assert done.returncode == 2
    assert "needs files with rows" in done.stderr


def test_compare_tells_new_people_from_those_seen(tmp_path):
    path = written(tmp_path / "data.csv", drawn_rows(0, [2000, 2000]))
    other = written(tmp_path / "other.csv", drawn_rows(1, [500, 500]))
    rule = str(tmp_path / "mine.json")
    assert run("fit", path, "-o", rule).returncode == 0

    def compare(data, *options):
        command = ["compare", data, rule, "--remakes", "20", *options]
        return run(*command).stdout

    assert "For new people, expected" in compare(path)
    assert "mine was made from other people than these" in compare(other)
    assert json.loads(compare(path, "--json"))["unseen"]["mine"]["remakes"] == 20


def test_the_plan_of_a_repair():
    tally = drawn(0, TWO, [1000, 1000])
    rule = ic.withhold(tally, "fnr")
    plan = ic.plan_repair(tally, rule, within=0.02, remakes=60)
    assert (np.diff(plan.limit) < 0).all()
    assert (plan.expected < plan.limit).all()
    # The difference falls with the square root of the number of people.
    now = ic.unseen(tally, rule, 200).cost_difference.limit
    assert plan.groups["g0"] == pytest.approx(1000 * (now / 0.02) ** 2, rel=0.5)
    assert plan.groups["g0"] == plan.groups["g1"]
    assert json.loads(plan.to_json())["groups"][0][1]["needed"] == plan.groups["g0"]
    never = ic.plan_repair(tally, ic.withhold(tally, "fnr", 0.05), within=0.02, remakes=10)
    assert never.groups["g0"] == np.inf
    assert "out of reach" in repr(never)


def test_a_repair_that_can_hardly_ever_be_made_is_out_of_reach(monkeypatch):
    monkeypatch.setattr("isocost.judging.plan.Replicates.add", lambda *_: None)
    plan = ic.plan_repair(compas(), ic.withhold(compas(), "fpr", tolerance=0.07), remakes=10)
    assert len(plan.times) == len(plan.expected) == len(plan.limit) == 0
    assert all(needed == np.inf for needed in plan.groups.values())
    assert "out of reach" in str(plan)


def test_a_recalibration_is_made_again_from_all_groups(monkeypatch):
    tally = drawn(2, [*TWO, (1, 2)], [4000, 4000, 20])
    first = ic.recalibrate(tally, "beta")
    rule = first.then(ic.equalize_odds(first.expected(tally)), tally)
    assert len(rule.fitted) == 2 < len(rule.groups)
    made_from = []

    def draw(self, *_):
        made_from.append(self.groups)
        return tally.select(self.groups)

    monkeypatch.setattr(Population, "draw", draw)
    result = ic.unseen(tally, rule, remakes=10)
    assert set(made_from) == {tally.groups}
    assert result.left_out == {tally.groups[2]: 20}
    assert ic.plan_repair(tally, rule, remakes=10).groups.keys() == set(rule.fitted)


def test_the_plan_is_drawn():
    pytest.importorskip("matplotlib")
    from isocost.plots import RepairPlanDisplay

    tally = drawn(0, TWO, [1000, 1000])
    plan = ic.plan_repair(tally, ic.withhold(tally, "fnr"), within=0.03, remakes=20)
    display = RepairPlanDisplay.from_plan(plan)
    assert f"asked for:\n{plan.within:g}" in [text.get_text() for text in display.ax_.texts]
    np.testing.assert_allclose(display.lines_["at most"].get_ydata(), plan.limit)
    np.testing.assert_allclose(display.lines_["expected"].get_xdata(), plan.times * 1000)


def test_the_command_plans_a_repair(tmp_path):
    path = written(tmp_path / "data.csv", drawn_rows(0, [1000, 1000]))
    command = ["plan", path, "--method", "withhold", "--within", "0.05"]
    done = run(*command)
    assert "People needed for withhold to hold cost within 0.05" in done.stdout
    wrong = run(*command[:-4], "--method", "mix")
    assert wrong.returncode == 2
    exact = run(*command[:-1], "0")
    assert exact.returncode == 2
    assert "--within: must be greater than 0" in exact.stderr
    with pytest.raises(ic.UsageError, match="within: must be greater than 0: new people differ"):
        ic.plan_repair(compas(), ic.reconcile(compas()), within=0.0)


def test_the_page_has_it():
    pytest.importorskip("jinja2")
    tally = drawn(0, TWO, [1000, 1000])
    rules = {"mine": ic.equalize_odds(tally), "other": ic.withhold(compas(), "fpr", 0.07)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = ic.report_html(tally, cost="fnr")
        given = ic.report_html(tally, {"mine": rules["mine"]}, cost="fnr")
    assert 'id="unseen"' in own
    assert "fitted / expected / at most" in own
    table = given[given.index('id="unseen"') :]
    assert "<bdi>mine</bdi>" in table


def learners_rows():
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], 2000)
    features = rng.normal(size=(2000, 2)) * np.where(group == "a", 2.0, 1.0)[:, None]
    return features, rng.random(2000) < 1 / (1 + np.exp(-features.sum(axis=1))), group


def test_estimators_have_it_at_the_threshold_of_their_audit():
    from isocost.learn import CalibratedEqualizedOdds

    features, y, group = learners_rows()
    model = CalibratedEqualizedOdds(cost="fnr", threshold=0.3)
    assert not hasattr(model, "unseen_")
    model.fit(features, y, sensitive_features=group)
    assert model.unseen_.cost_difference.expected > model.unseen_.cost_difference.fitted
    assert model.unseen_ is model.unseen_
    found = model.repaired_audit_.equalized_odds_difference
    assert model.unseen_.rate_difference.fitted == pytest.approx(found)


def test_estimators_remake_as_often_as_an_offer():
    from isocost.learn import CalibratedEqualizedOdds, EqualizedOdds

    features, y, group = learners_rows()
    model = EqualizedOdds().fit(features, y, sensitive_features=group)
    offer = ic.compare(model.tally_, question=model.audit_.question).offers["odds"]
    assert model.unseen_ == offer.unseen
    assert model.unseen_.remakes == 30
    unchanged = CalibratedEqualizedOdds(tolerance=1.0).fit(features, y, sensitive_features=group)
    assert not unchanged.rule_.rows
    assert unchanged.unseen_.changed.expected == 0.0


def test_the_advice_says_whether_new_people_gain(monkeypatch):
    tally = drawn(0, [(0.6, 1.2), (0.7, 0.9)], [3000, 3000])
    audit = ic.audit(tally, "fpr")
    found = ic.unseen(tally, ic.withhold(tally, "fpr"))
    assert (audit.verdict.helps, audit.advised.helps) == ("unknown", "yes")
    assert audit.advised.findings.expected == found.goal.expected
    points = f"{100 * found.goal.expected:.1f}"
    assert re.search(rf"expected to differ by {points} points? with withholding", audit.advice)
    useless = replace(found, goal=replace(found.goal, expected=found.goal.unrepaired + 0.01))
    monkeypatch.setattr("isocost.judging.offers.unseen", lambda *_, **__: useless)
    audit = ic.audit(tally, "fpr")
    assert (audit.verdict.act, audit.advised.act) == (True, False)
    assert (audit.advised.helps, audit.advised.reason) == ("no", "unhelpful")
    assert "For new people a repair is expected to do no better" in audit.advice.split("\n")[0]
    assert "Withholding does that by a coin" not in audit.advice
    assert audit.offers["withhold"].standing == "unhelpful"


def test_where_nothing_is_advised_nobody_asks(monkeypatch):
    monkeypatch.setattr("isocost.judging.offers.unseen", None)
    audit = ic.audit(compas(), "fpr")
    assert audit.advised is audit.verdict
    assert "accept a difference of 5.39 points" in audit.advice


def test_every_door_measures_the_cost_that_is_asked(tmp_path):
    """A rule of rates has no cost of its own: none must answer for fnr where fpr is asked."""
    rule = ic.reconcile(compas())
    one = ic.unseen(compas(), rule, 30, cost="fpr", threshold=0.5).cost_difference
    other = ic.unseen(compas(), rule, 30).cost_difference
    assert abs(one.expected - other.expected) > 0.002

    compared = ic.compare(compas(), cost="fpr")
    assert compared.outlooks["reconcile"].cost_difference == one
    assert compared.outlooks["odds"].remakes == 30

    page = ic.report(ic.audit(compas(), "fpr"), path=tmp_path / "page.html")
    text = page.read_text()
    cell = " / ".join(f"{value:.3f}" for value in (one.fitted, one.expected, one.limit))
    assert cell in text.split('id="outlooks-title"')[1]
    # A page with the numbers of the other cost is found out.
    wrong = " / ".join(f"{value:.3f}" for value in (other.fitted, other.expected, other.limit))
    assert wrong not in text
    page.write_text(text.replace(cell, wrong))
    assert any(wrong in change for change in ic.verify(page).changes)

    data = tmp_path / "tally.json"
    compas().save(data)
    made, few = tmp_path / "rule.json", ("--remakes", 30)
    done = run("fit", data, "--method", "reconcile", "--cost", "fpr", "-o", made, *few)
    tables = re.findall(r"^ *costs differ by +(.*)$", done.stdout, re.M)
    assert tables[-1].split()[1:] == [f"{x:.4f}" for x in (one.fitted, one.expected, one.limit)]
    # Fitted means the same in both tables of one command.
    assert tables[0].split()[-1] == tables[-1].split()[1]
    found = json.loads(run("compare", data, made, "--cost", "fpr", "--json", *few).stdout)
    assert found["unseen"]["rule"]["cost_difference"] == pytest.approx(one.to_dict())


def test_the_cost_that_is_asked_counts_and_the_goal_stays_that_of_the_rule():
    rule = ic.withhold(compas(), "fpr", tolerance=0.06)
    own, asked = ic.unseen(compas(), rule, 20), ic.unseen(compas(), rule, 20, cost="fnr")
    assert own.cost_difference == own.goal == asked.goal
    after = ic.audit(rule.expected(compas()), "fnr", confidence=None)
    assert asked.cost_difference.fitted == pytest.approx(after.disparity.difference)
    at = ic.unseen(compas(), ic.reconcile(compas()), 20, threshold=0.3)
    assert at.goal.fitted == pytest.approx(0.0, abs=1e-9)
    assert at.rate_difference.fitted > 0.01


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30, unique=True),
    st.integers(1, 50),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_chances_are_probabilities(scores, rows, random):
    score, w = np.sort(scores), np.full(len(scores), float(rows))
    wy = np.array([float(random.randint(0, rows)) for _ in scores])
    found = chances(score, w, wy, w)
    assert (found >= 0).all()
    assert (found <= 1).all()


def test_scores_count_as_calibrated_until_shown_otherwise():
    rng = np.random.default_rng(0)
    kept = 0
    for _ in range(200):
        h = np.sort(rng.beta(0.7, 1.5, 200))
        ones = np.ones(200)
        kept += np.array_equal(chances(h, ones, (rng.random(200) < h).astype(float), ones), h)
    assert kept >= 193
    h, ones = np.sort(rng.random(50_000)), np.ones(50_000)
    truth = h + 0.3 * (0.5 - h)
    found = chances(h, ones, (rng.random(50_000) < truth).astype(float), ones)
    assert np.abs(found - truth).mean() < 0.02


def test_the_population_has_the_scores_and_sizes_of_the_tally():
    tally = drawn(3, TWO, [500, 300])
    population = Population(tally)
    np.testing.assert_allclose(population.tally.totals.n.sum(axis=1), [500, 300])
    np.testing.assert_allclose(population.tally.totals.wh.sum(axis=1), tally.totals.wh.sum(axis=1))
    sample = population.draw(np.random.default_rng(0))
    assert sample.totals.n.sum(axis=1).tolist() == [500, 300]
    assert population.draw(np.random.default_rng(0), 2.0).n == 1600


def test_unequal_weights_count_as_fewer_rows():
    """The noise of a weighted mean: about that of (sum w)^2 / sum w^2 rows."""
    data = drawn_rows(4, [2000, 2000])
    data["w"] = np.random.default_rng(0).choice([0.1, 1.9], 4000)
    tally = ic.tally(data, weight="w")
    random = np.random.default_rng(1)
    rates = [
        t.totals.w[:, 1] / t.totals.weight
        for t in (Population(tally).draw(random) for _ in range(400))
    ]
    own = data["group"] == 0
    h, w = data["score"][own], data["w"][own]
    mean = (w * h).sum() / w.sum()
    error = np.sqrt((w**2 * (h * (1 - h) + (h - mean) ** 2)).sum()) / w.sum()
    assert np.std([rate[0] for rate in rates]) == pytest.approx(error, rel=0.12)


def undefined_by_hand(tally, rule, remakes, seed):
    """The number of remakes that select nobody, and their largest differences."""
    population, random, nobody = Population(tally), np.random.default_rng(seed), 0
    far = []
    for _ in range(remakes):
        made = rule.remake(population.draw(random))
        after = made.expected(population.tally).kinds(0.5)
        values = {name: ic.MEASURES[name].of(after) for name in ("fpr", "fnr", "ppv", "npv")}
        nobody += "ppv" not in made.promise.equal
        if made.promise.equal.keys() == rule.promise.equal.keys():
            names = [name for name in values if name in made.promise.equal]
            far.append(max(np.ptp(values[name]) for name in names))
    return nobody, far


@pytest.mark.parametrize("seed", [0, 1])
def test_a_rate_that_is_undefined_in_a_remake_is_counted_and_said(seed):
    tally = drawn(seed, ((0.35, 0.8), (0.3, 2.0)), [800, 150])
    rule = REPAIRS["hand_over"].rule(tally, ic.Question(), share="least")
    found = ic.unseen(tally, rule, 24, seed=5)
    count, far = undefined_by_hand(tally, rule, 24, 5)
    assert 0 < count < 24
    assert found.undefined == {"ppv": count}
    assert found.goal.expected == pytest.approx(np.mean(far), abs=1e-9)
    about = "as for this rule" if "ppv" not in rule.promise.equal else "the others"
    said = f"PPV was undefined in {count} of 24 remakes, because a group selects nobody"
    note = next(note for note in found.notes() if said in note)
    assert about in note
    assert note in str(found)
    assert found.to_dict()["undefined"] == {"ppv": count}
