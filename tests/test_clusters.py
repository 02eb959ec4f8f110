"""Several rows per person: variances from sums of products, checked against the rows."""

import numpy as np
import pytest

import isocost as ic
from isocost.judging.unseen import Population
from isocost.judging.watch import History
from isocost.measures.intervals import Estimates, design_effects
from isocost.measures.table import BIAS, MEASURES, cost_row

KINDS = ("tn", "fp", "fn", "tp")
PLAIN = [*(row for row in MEASURES.values() if row.is_plain), BIAS, cost_row(1.0, 3.0)]
AT_THRESHOLD = ("fpr", "fnr", "ppv", "npv", "selection_rate", "accuracy")


def rows_of(people=150, times=4, seed=5, weighted=True, shift=0.0):
    """People with about so many rows each, whose scores and labels are alike."""
    rng = np.random.default_rng(seed)
    person = rng.integers(people, size=people * times)
    risk, luck = rng.beta(2, 3, people), rng.random(people)
    score = np.clip(risk[person] + rng.normal(0.0, 0.03, len(person)), 0.0, 1.0)
    own = np.where(rng.random(len(person)) < 0.7, luck[person], rng.random(len(person)))
    group = person % 2
    label = (own < risk[person] + shift * group).astype(int)
    data = {"score": score, "label": label, "group": group, "person": person}
    return data | ({"weight": rng.gamma(2.0, 1.0, len(person))} if weighted else {})


def tally_of(data, **options):
    return ic.tally(data, weight="weight" if "weight" in data else None, **options)


def influences(data, row, group):
    """What each person moves a mean by, from the rows themselves."""
    own = data["group"] == group
    y, h, person = (data[name][own] for name in ("label", "score", "person"))
    w = data.get("weight", np.ones(len(own)))[own] if "weight" in data else np.ones(own.sum())
    kind = 2 * y + (h >= 0.5)
    a, b, c = row.coefficients[kind].T
    inside = np.isin(kind, [KINDS.index(name) for name in row.over])
    x, total = (a + b * h + c * h**2) * inside, (w * inside).sum()
    mean = (w * x).sum() / total
    return np.bincount(person, w * (x - mean * inside) / total)


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_those_of_the_sums_of_each_person(weighted):
    data = rows_of(weighted=weighted)
    estimates = Estimates(tally_of(data, person="person"), ic.Question())
    for row in PLAIN[:-1]:
        for group in (0, 1):
            u = influences(data, row, group)
            number = estimates.number(row, group)
            assert number.error**2 == pytest.approx((u**2).sum(), rel=1e-10), row.name


@pytest.mark.parametrize("cost", ["weighted:1,3", "plain:2,1", "fnr"])
def test_costs_covary_as_the_sums_of_persons_do(cost):
    data = rows_of(people=600, weighted=False)
    estimates = Estimates(ic.tally(data, person="person"), ic.Question(cost))
    fp, fn = estimates.question.cost.amounts(0)
    rates = [influences(data, MEASURES[f"generalized_{x}"], 0) for x in ("fpr", "fnr")]
    u = fp * rates[0] + fn * rates[1]
    mu = estimates.value("base_rate", 0)
    slope = fp - fn
    if cost.startswith("weighted"):
        u, slope = influences(data, cost_row(fp, fn), 0), (fp + fn) * (1.0 - 2.0 * mu)
    expected = slope * (u * influences(data, MEASURES["base_rate"], 0)).sum()
    assert estimates.covariance(0) == pytest.approx(expected, rel=1e-9)
    # With 300 people the interval is about as wide as a normal one.
    (low, high), _ = estimates.cost_interval(0)
    assert high - low == pytest.approx(2 * 1.97 * np.sqrt((u**2).sum()), rel=0.02)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_per_person_changes_nothing(weighted):
    data = rows_of(weighted=weighted)
    data["person"] = np.arange(len(data["score"]))
    without, single = tally_of(data), tally_of(data, person="person")
    plain, own = (
        ic.audit(t, "weighted:1,3", measures="all", warn=False) for t in (without, single)
    )
    assert own.intervals == plain.intervals
    assert own.groups == plain.groups
    assert own.intervals.approximate == ()
    # Nor does what is computed from sums of persons, for numbers that are straight lines in score.
    rows, persons = Estimates(without, ic.Question()), Estimates(single, ic.Question())
    for row in PLAIN[:-1]:
        if row.is_linear and (not weighted or row.counts_decisions):
            number = rows.number(row, 0)
            (variance, _), (_, square) = single.persons.covariances(0, persons.moves(row, 0))
            assert variance == pytest.approx(number.error**2, rel=1e-9), row.name
            assert 1.0 / square == pytest.approx(number.rows, rel=1e-9), row.name


def test_rows_that_are_copies_count_once():
    once = rows_of(times=1, weighted=False)
    once["person"] = np.arange(len(once["score"]))
    copied = {name: np.repeat(values, 4) for name, values in once.items()}
    single, copies = (
        Estimates(ic.tally(once), ic.Question()),
        Estimates(ic.tally(copied, person="person"), ic.Question()),
    )
    for row in MEASURES.values():
        if row.is_plain:
            one, number = single.number(row, 0), copies.number(row, 0)
            assert number.effect == pytest.approx(4.0, rel=0.01), row.name
            assert number.freedom == pytest.approx(one.rows - 1.0, rel=0.01), row.name
            for field in ("value", "error", "rows", "inflation", "skew"):
                values = getattr(number, field), getattr(one, field)
                assert values[0] == pytest.approx(values[1], rel=0.01, abs=0.002), (row.name, field)
    # So do approximate numbers, gaps and the shares of groups.
    for name in ("f1", "auc", "calibration_slope"):
        one, number = single.number(MEASURES[name], 0), copies.number(MEASURES[name], 0)
        assert number.error == pytest.approx(one.error, rel=0.05), name
    assert copies.levels(0).w2.sum() == pytest.approx(16 * single.levels(0).w2.sum(), rel=0.01)
    assert copies.share_interval(0) == pytest.approx(single.share_interval(0), rel=0.01)
    effects = design_effects(copies.tally)
    assert effects == pytest.approx([4.0, 4.0], rel=0.01)
    samples = [Population(t.tally).draw(np.random.default_rng(1)).n for t in (single, copies)]
    assert samples[1] == pytest.approx(samples[0], rel=0.02)


def test_people_who_tell_nothing_about_themselves():
    data = rows_of(people=40, times=10, weighted=False)
    data["label"][:] = np.arange(400) % 2
    data["person"] = np.arange(400) // 2
    data["group"] = (data["person"] % 2 == 0).astype(int)
    # Each person has one row of each label, so the base rate has no variance between people.
    tally = ic.tally(data, person="person")
    rows, estimates = (Estimates(t, ic.Question()) for t in (ic.tally(data), tally))
    base_rate = MEASURES["base_rate"]
    low, high = rows.interval(base_rate, 0)
    assert estimates.interval(base_rate, 0) == pytest.approx((low, high), abs=0.002)
    # A rate of 0 is that of as many rows as there are people.
    data["score"][:] = 0.1
    estimates = Estimates(ic.tally(data, person="person"), ic.Question())
    assert estimates.interval(MEASURES["selection_rate"], 0)[1] == pytest.approx(
        3.84 / (100 + 3.84), rel=0.05
    )
    # One person alone tells nothing.
    data["person"] = np.where(data["group"] == 0, 0, data["person"])
    one = Estimates(ic.tally(data, person="person"), ic.Question())
    assert one.number(base_rate, 0).rows == pytest.approx(1.0)
    low, high = one.interval(base_rate, 0)
    assert (low, high) == pytest.approx((0.05, 0.95), abs=0.06)


def test_what_is_approximate_is_said():
    data = rows_of()
    tally = tally_of(data, person="person", edges=(0.3, 0.5))
    gaps = {f"calibration_gap{x}" for x in ("", "_equal_mass", "_debiased", "_smooth")}
    audit = ic.audit(tally, "fpr", replicates=200, warn=False)
    assert set(audit.intervals.approximate) == gaps
    assert set(audit.to_dict()["intervals"]["approximate"]) == gaps
    assert "only approximately" in audit.advice
    assert "rows of 148 persons" in audit.headline()
    assert "approximate" not in ic.audit(tally_of(data), "fpr", warn=False).to_dict()["intervals"]
    # At a threshold that was not known when rows were counted, rates are approximate too.
    with_f1 = ic.audit(tally, "fpr", 0.4, replicates=0, measures="all", warn=False)
    rough = with_f1.intervals.approximate
    assert {*AT_THRESHOLD, "f1", "auc", *gaps} <= set(rough)
    assert not {"generalized_fpr", "base_rate", "brier"} & set(rough)
    estimates = with_f1.estimates
    effect, single = estimates.effect(0), Estimates(tally_of(data), with_f1.question)
    for name in ("fpr", "auc"):
        row = MEASURES[name]
        ratio = estimates.number(row, 0).error / single.number(row, 0).error
        assert ratio**2 == pytest.approx(effect)
    known = ("base_rate", "mean_score", "generalized_fpr", "generalized_fnr", "brier")
    assert effect == max(estimates.number(MEASURES[name], 0).effect for name in known)


def test_people_in_several_groups_are_counted_and_said():
    data = rows_of()
    data["group"] = np.arange(len(data["person"])) % 2
    tally = tally_of(data, person="person")
    advice = ic.audit(tally, "fpr", replicates=0, warn=False).advice
    assert f"{tally.persons.several} people have rows in several groups." in advice


def test_unseen_and_watch_allow_for_people_with_several_rows():
    data = rows_of(people=800, shift=0.3, weighted=False)
    tallies = [ic.tally(data), ic.tally(data, person="person")]
    with pytest.warns(ic.UncalibratedWarning):
        rule = ic.withhold(tallies[0], "fpr", tolerance=0.02)
    numbers = [ic.unseen(tally, rule, remakes=60, seed=1) for tally in tallies]
    spread = [one.goal.limit - one.goal.fitted for one in numbers]
    assert spread[1] > 1.5 * spread[0]
    watched = [ic.watch(rule, {"day": tally}, tolerance=0.0) for tally in tallies]
    assert any("several rows" in note for note in watched[1].notes)
    assert not any("several rows" in note for note in watched[0].notes)
    squares = [History([tally], tally.groups, 0.5, None).all.w2[0] for tally in tallies]
    assert np.allclose(squares[1], squares[0] * design_effects(tallies[1])[:, None])


def test_a_plan_counts_rows_of_people_with_several():
    once = rows_of(people=400, times=1, weighted=False)
    copied = {name: np.repeat(values, 3) for name, values in once.items()}
    copied["person"] = np.repeat(np.arange(400), 3)
    tallies = ic.tally(once), ic.tally(copied, person="person")
    one, three = (ic.plan(tally, "fpr", detect=0.1, replicates=200) for tally in tallies)
    for group in (0, 1):
        for name in ("difference", "calibration"):
            ratio = getattr(three.groups[group], name) / getattr(one.groups[group], name)
            assert ratio == pytest.approx(3.0, rel=0.12), (group, name)
