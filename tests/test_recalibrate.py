"""Recalibration as a rule, and rules made from rules: one after another, and of merged groups."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

import isocost as ic
from isocost.learn import GroupCalibrator
from isocost.repairs.recalibrate import ERROR, SHRINKAGE, _fit_maps, bin_scores
from isocost.rules import Row
from tests.conftest import counted, populations

METHODS = ("isotonic", "beta", "sigmoid", "histogram")
SECOND = ("withhold", "coarsen", "odds", "reconcile")

pytestmark = pytest.mark.filterwarnings("ignore::isocost.IsocostWarning")


def people(sizes, seed=0, beta=(2.0, 3.0), power=(1.0, 1.6, 0.7)):
    """Groups whose true probabilities are powers of their scores."""
    random = np.random.default_rng(seed)
    columns = {"score": [], "label": [], "group": []}
    for place, (group, size) in enumerate(sizes.items()):
        score = random.beta(*beta, size)
        columns["score"].append(score)
        columns["label"].append(random.random(size) < score ** power[place % len(power)])
        columns["group"].append(np.full(size, group))
    data = {name: np.concatenate(values) for name, values in columns.items()}
    return {**data, "id": np.arange(len(data["score"]))}


def made(tally, method):
    """A repair of a tally, as far as it can go."""
    if method == "odds":
        return ic.equalize_odds(tally)
    options = {"tolerance": 0.05, "infeasible": "closest"}
    return getattr(ic, method)(tally, **options)


def gaps(tally):
    measured = ic.audit(tally, replicates=0, warn=False)
    return np.array([one.calibration_gap for one in measured.groups.values()])


# The maps


def test_isotonic_is_that_of_scikit_learn():
    data = people({"a": 3000}, power=(1.5,))
    tally = ic.tally(data)
    bins, score = tally.grid.index(data["score"]), bin_scores(tally)
    rule = ic.recalibrate(tally, "isotonic", shrinkage=0)
    found = rule.apply(score=data["score"], group=data["group"])
    fitted = IsotonicRegression(out_of_bounds="clip").fit(score[bins], data["label"])
    np.testing.assert_allclose(found, fitted.predict(score[bins]), atol=ERROR)
    # Steps further apart than the error are exact.
    levels = np.unique(fitted.predict(score[bins]))
    assert np.diff(levels).min() > ERROR
    np.testing.assert_allclose(found, fitted.predict(score[bins]), atol=1e-12)


@pytest.mark.parametrize("method", ["sigmoid", "beta"])
def test_curves_are_the_maximum_of_the_likelihood(method):
    data = people({"a": 4000}, power=(1.5,))
    rule = ic.recalibrate(ic.tally(data, bins=4096), method, shrinkage=0)
    score = np.clip(data["score"], 1e-6, 1 - 1e-6)
    columns = [np.log(score), -np.log1p(-score)] if method == "beta" else [score]
    features = np.column_stack([*columns, np.ones_like(score)])
    ones, zeros = data["label"].sum(), (~data["label"]).sum()
    target = np.where(data["label"], (ones + 1) / (ones + 2), 1 / (zeros + 2))

    def loss(x):
        raw = features @ x
        return np.mean(np.logaddexp(0.0, raw) - target * raw)

    best = minimize(loss, np.zeros(features.shape[1]), method="BFGS", options={"gtol": 1e-9}).x
    found = rule.apply(score=data["score"], group=data["group"])
    # The map is fitted to the means of 4096 bins.
    np.testing.assert_allclose(found, expit(features @ best), atol=5e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("beta", [(1.0, 99.0), (30.0, 1.0), (2.0, 2.0)])
def test_the_rule_is_the_map_within_its_error(method, beta):
    data = people({"a": 9000, "b": 900, "c": 40}, beta=beta)
    tally = ic.tally(data)
    rule = ic.recalibrate(tally, method)
    maps = _fit_maps(tally, method, SHRINKAGE[method], 10)
    random = np.random.default_rng(0)
    score = np.concatenate([random.random(5000), random.beta(*beta, 5000)])
    for code, group in enumerate(tally.groups):
        found = rule.apply(score=score, group=[group] * len(score))
        at = tally.grid.index(score)
        if method in ("isotonic", "histogram"):
            wanted = maps.of_group(code, bin_scores(tally), stepwise=True)[at]
            np.testing.assert_allclose(found, wanted, atol=ERROR)
            continue
        lines = np.array([s.rows[0].action == "line" for s in rule.segments(group)])
        starts = np.array([segment.lo for segment in rule.segments(group)])
        along = lines[np.searchsorted(starts, score, side="right") - 1]
        wanted = maps.of_group(code, score)
        np.testing.assert_allclose(found[along], wanted[along], atol=ERROR)
        # A bin in which the curve bends has one score, the map's for the mean.
        alone = maps.of_group(code, bin_scores(tally, code))[at]
        np.testing.assert_allclose(found[~along], alone[~along], atol=ERROR)
        assert len(rule.segments(group)) <= 120


@pytest.mark.parametrize("method", METHODS)
def test_small_groups_borrow_and_large_ones_do_not(method):
    data = people({"large": 40_000, "small": 12}, power=(1.0, 3.0))
    tally = ic.tally(data)
    everybody = {**data, "group": np.full(len(data["id"]), "all")}
    pooled = ic.recalibrate(ic.tally(everybody), method)
    alone = ic.recalibrate(tally.select(["large"]), method, shrinkage=0)
    rule = ic.recalibrate(tally, method)
    score = data["score"][-300:]

    def after(one, group):
        return one.apply(score=score, group=[group] * len(score))

    np.testing.assert_allclose(after(rule, "large"), after(alone, "large"), atol=0.01)
    shrunk = ic.recalibrate(tally, method, shrinkage=1e9)
    np.testing.assert_allclose(after(shrunk, "small"), after(pooled, "all"), atol=2.1 * ERROR)
    own = ic.recalibrate(tally.select(["small"]), method, shrinkage=0)
    mine = ic.recalibrate(tally, method, shrinkage=0)
    score = data["score"][-12:]
    np.testing.assert_allclose(after(mine, "small"), after(own, "small"), atol=2 * ERROR)


@pytest.mark.parametrize("method", METHODS)
def test_a_tally_gives_what_the_estimator_gives_from_rows(method):
    random = np.random.default_rng(3)
    score = random.integers(1, 16, 6000) / 16
    group = random.choice(["a", "b"], 6000, p=[0.97, 0.03])
    label = random.random(6000) < np.where(group == "a", score, score**2)
    weight = random.uniform(0.5, 2.0, 6000)
    tally = ic.tally({"score": score, "label": label, "group": group, "w": weight}, weight="w")
    rule = ic.recalibrate(tally, method)
    estimator = GroupCalibrator(method, cv=None)
    estimator.fit(score, label, sensitive_features=group, sample_weight=weight)
    wanted = estimator.predict(score, sensitive_features=group)
    np.testing.assert_allclose(rule.apply(score=score, group=group), wanted, atol=2 * ERROR)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("beta", [(1.0, 99.0), (33.0, 1.0), (2.0, 3.0)])
def test_the_gap_of_new_people_falls(method, beta):
    sizes = dict.fromkeys("abc", 80_000 if beta[0] == 1 else 20_000)
    power = (1.0, 1.4, 0.7) if beta[0] < 30 else (1.0, 2.0, 0.5)
    rule = ic.recalibrate(ic.tally(people(sizes, 1, beta, power)), method)
    new = ic.tally(people(sizes, 2, beta, power))
    before, after = gaps(new)[1:], gaps(rule.expected(new))[1:]
    assert (before > 0.003).all()
    assert (after < 0.8 * before).all()


def test_forty_groups_and_groups_of_one_label():
    random = np.random.default_rng(0)
    sizes = {f"g{i:02}": int(size) for i, size in enumerate(random.integers(30, 900, 40))}
    data = people(sizes)
    data["label"][data["group"] == "g07"] = False
    tally = ic.tally(data)
    with pytest.warns(ic.UncertainWarning, match="negatives only: g07") as caught:
        rule = ic.recalibrate(tally, "beta")
    assert rule.notes == tuple(str(one.message) for one in caught)
    assert {row.group for row in rule.rows} == set(sizes)
    pooled = ic.recalibrate(tally, "beta", shrinkage=1e9)
    score = np.linspace(0.1, 0.9, 50)
    np.testing.assert_allclose(
        rule.apply(score=score, group=["g07"] * 50),
        pooled.apply(score=score, group=["g07"] * 50),
        atol=2 * ERROR,
    )


def test_what_it_promises_and_what_is_watched():
    tally = ic.tally(people({"a": 9000, "b": 9000}))
    rule = ic.recalibrate(tally)
    assert rule.promise == ic.Promise({}, {}, calibrated=True, coin=False)
    assert not rule.needs_coin
    after = rule.expected(tally)
    found = ic.watch(rule, {"May": after, "June": after})
    assert (found.alarm, found.limits) == (False, {})
    assert found.summary()[0] == "No violation was detected."
    broken = ic.watch(rule, {"May": tally, "June": tally})
    assert {alarm.claim.kind for alarm in broken.alarms} == {"calibration"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "platt"}, 'method: must be "sigmoid"'),
        ({"shrinkage": -1}, 'shrinkage: must be "auto" or a number'),
        ({"shrinkage": np.inf}, "shrinkage: must be finite in a rule"),
        ({"bins": 0}, "bins: must be"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ic.UsageError, match=message):
        ic.recalibrate(ic.tally(people({"a": 50, "b": 50})), **options)


def test_one_label_in_all():
    tally = ic.tally({"score": [0.1, 0.2], "label": [1, 1], "group": ["a", "b"]})
    with pytest.raises(ic.DataError, match="must have positives and negatives") as error:
        ic.recalibrate(tally)
    assert "no negatives" in str(error.value)


# One rule after another


@given(
    data=populations(groups=(2, 3), rows=(6, 25)),
    method=st.sampled_from(["isotonic", "histogram"]),
    second=st.sampled_from(SECOND),
)
def test_steps_and_a_repair_are_exactly_one_after_the_other(data, method, second):
    tally = counted(data)
    first = ic.recalibrate(tally, method)
    basis = first.expected(tally)
    try:
        repair = made(basis, second)
    except ic.IsocostError:
        return
    same_tally(first.then(repair, tally).expected(tally), repair.expected(basis))
    same_tally(first.then(repair).expected(tally), repair.expected(basis))


def same_tally(found, wanted):
    np.testing.assert_array_equal(found.cells.bin, wanted.cells.bin)
    for name in ("n", "w", "w2", "wh", "wh2"):
        mine, theirs = getattr(found.cells, name), getattr(wanted.cells, name)
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


@given(
    places=st.lists(st.integers(0, 1023), min_size=8, max_size=30),
    ends=st.lists(st.floats(0, 1), min_size=4, max_size=4),
    cut=st.integers(1, 1023).map(lambda i: i / 1024),
    p=st.floats(0, 0.5),
    q=st.floats(0, 0.5),
)
def test_lines_and_any_rule_are_exactly_one_after_the_other(places, ends, cut, p, q):
    """Everybody of a bin has the same score, so that no bin falls on both sides of a cut."""
    score = np.repeat((np.array(places) + 0.37) / 1024, 2)
    group = np.where(np.arange(len(score)) % 4 < 2, "a", "b")
    tally = ic.tally({"score": score, "label": np.arange(len(score)) % 2, "group": group})
    low, middle, high, last = sorted(ends)
    first = ic.Rule(
        ("a", "b"),
        (
            Row.leading("a", 0.0, 0.25, (low, middle)),
            Row.leading("a", 0.25, 0.75, (middle, high)),
            Row.leading("b", 0.5, 1.0, (low, last)),
        ),
        "test",
    )
    second = ic.Rule(
        ("a", "b"),
        (
            Row("a", 0.0, cut, "set", low, p),
            Row("a", 0.0, cut, "mirror", None, q),
            Row("a", cut, 1.0, "line", high, p, 0.1),
            Row("b", cut, 1.0, "mirror", None, 1.0),
        ),
        "test",
    )
    both = first.then(second, tally)
    found, wanted = both.expected(tally), second.expected(first.expected(tally))
    for name in ("n", "w", "wh", "wh2"):
        mine, theirs = getattr(found.totals, name), getattr(wanted.totals, name)
        np.testing.assert_allclose(mine, theirs, atol=1e-9)
    apart = first.then(second)
    ids = np.arange(len(score))
    found = apart.apply(score=score, group=group, id=ids)
    step = first.apply(score=score, group=group)
    near = np.abs(step - cut) < 1e-12
    wanted = second.apply(score=step, group=group, id=ids)
    np.testing.assert_allclose(found[~near], wanted[~near], atol=1e-9)


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("method", METHODS)
def test_curves_and_a_repair(method, second):
    data = people({"a": 8000, "b": 8000, "c": 2000})
    tally = ic.tally(data)
    first = ic.recalibrate(tally, method)
    basis = first.expected(tally)
    repair = made(basis, second)
    both = first.then(repair, tally)
    found, wanted = both.expected(tally), repair.expected(basis)
    # Only where a cut falls inside a bin may the two labels of the bin go to different sides.
    bound = 1e-9 if method in ("isotonic", "histogram") or second == "withhold" else 5e-4
    for name in ("w", "wh", "wh2"):
        away = np.abs(getattr(found.totals, name) - getattr(wanted.totals, name)).max()
        assert away / tally.n < bound
    assert both.promise.calibrated == repair.promise.calibrated
    assert both.promise.equal == repair.promise.equal
    assert both.remake(tally) == both
    assert ic.Rule.from_json(both.to_json()) == both
    assert ic.Rule.from_json(both.to_json()).remake(tally) == both
    # Cut where lines cross, it is the two rules row by row, with the same coins.
    rows = {name: data[name] for name in ("score", "group", "id")}
    one = first.then(repair).apply(rows, id="id")["repaired_score"]
    two = repair.apply(first.apply(rows, output="score"), id="id")["repaired_score"]
    np.testing.assert_allclose(one, two, atol=1e-12)


def test_recalibrated_data_that_fit_refuses_plainly():
    power = (1.0, 1.3)
    tally = ic.tally(people({"a": 12_000, "b": 12_000}, power=power))
    with pytest.warns(ic.UncalibratedWarning):
        ic.withhold(tally, "fnr")
    first = ic.recalibrate(tally)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rule = first.then(ic.withhold(first.expected(tally), "fnr"), tally)
    assert ic.audit(rule.expected(tally), "fnr", replicates=0).disparity.difference < 1e-9
    new = ic.tally(people({"a": 60_000, "b": 60_000}, 5, power=power))
    assert ic.audit(rule.expected(new), "fnr", replicates=0).disparity.difference < 0.02
    assert gaps(rule.expected(new)).max() < 0.02


def test_what_cannot_come_first():
    tally = ic.tally(people({"a": 500, "b": 500}))
    first = ic.recalibrate(tally)
    coin = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.5, 0.5),), "coin")
    falling = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "mirror", None, 1.0),), "falling")
    for rule, got in ((coin, "a coin"), (falling, "a falling line")):
        with pytest.raises(ic.UsageError, match="first rule: must throw no coin") as error:
            rule.then(first)
        assert got in str(error.value)
    with pytest.raises(ic.UsageError, match="must be for the same groups"):
        first.then(ic.Rule(("a",), (), "other"))
    with pytest.raises(ic.UsageError, match="second rule: must be a rule"):
        first.then("rule")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["settings"].pop("recalibrate"), "settings: must be the arguments of recal"),
        (lambda c: c["settings"].update(withhold=5), "settings: must be the arguments of withhold"),
        (lambda c: c["settings"]["recalibrate"].update(method="x"), 'method: must be "sigmoid"'),
        (lambda c: c.update(method="recalibrate+"), "settings: must be the arguments of recal"),
        (lambda c: c.update(method="recalibrate+x"), "to be made again"),
        (lambda c: c.update(method="recalibrate+withhold+odds"), "to be made again"),
    ],
)
def test_settings_that_somebody_changed(change, message):
    tally = ic.tally(people({"a": 500, "b": 500}))
    first = ic.recalibrate(tally)
    content = first.then(made(first.expected(tally), "withhold"), tally).to_dict()
    change(content)
    rule = ic.Rule.from_json(json.dumps(content))
    with pytest.raises(ic.UsageError, match=message):
        rule.remake(tally)


# Merged groups


def test_a_rule_of_merged_groups_knows_them_all():
    data = people({"a": 4000, "b": 300, "c": 200, "d": 4000}, power=(1.0,))
    tally, names = ic.tally(data), {"b": "rest", "c": "rest"}
    with pytest.warns(ic.UncertainWarning):
        rule = ic.withhold(tally.relabel(names), "fpr", 0.01)
    split = rule.unmerged(names)
    assert split.groups == ("a", "b", "c", "d")
    relabelled = np.where(np.isin(data["group"], ["b", "c"]), "rest", data["group"])
    np.testing.assert_array_equal(
        split.apply(data, id="id")["repaired_score"],
        rule.apply({**data, "group": relabelled}, id="id")["repaired_score"],
    )
    assert split.expected(tally).relabel(names) == rule.expected(tally.relabel(names))
    back = ic.Rule.from_json(split.to_json())
    assert back == split
    assert back.remake(tally) == split
    assert back.remake(tally.relabel(names)) == split
    after = split.expected(tally)
    watched = ic.watch(split, [after] * 3, tolerance=0.05)
    assert watched.to_dict() == ic.watch(rule, [after.relabel(names)] * 3, tolerance=0.05).to_dict()


def test_bad_names_of_merged_groups():
    rule = ic.Rule(("a", "rest"), (), "test")
    with pytest.raises(ic.UsageError, match="names: must lead to groups of the rule"):
        rule.unmerged({"b": "other"})
    once = rule.unmerged({"b": "rest", "c": "rest"})
    with pytest.raises(ic.UsageError, match="unmerged before"):
        once.unmerged({"d": "b"})
    with pytest.raises(ic.UsageError, match="names: must be"):
        rule.unmerged(["b"])
    assert rule.unmerged({}) == rule
