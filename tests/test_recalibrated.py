"""Costs if calibrated: the authors' files, known populations, and formulas checked another way."""

import json
import math

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import isocost as ic
from isocost.measures.feasibility import reach_of
from isocost.measures.intervals import Estimates
from isocost.measures.recalibrated import recalibrated
from tests.conftest import DATA, income_flipped


def population(rows=2000, seed=0, maps=(lambda h: h, lambda h: h), weights=None):
    random = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(maps)), rows)
    score = random.beta(1.2, 1.6, len(group))
    chance = np.concatenate([each(score[group == i]) for i, each in enumerate(maps)])
    data = {"score": score, "label": (random.random(len(group)) < chance) * 1, "group": group}
    if weights is not None:
        data["weight"] = weights * random.choice([1.0, 2.0, 3.0], len(group))
    return ic.tally(data, weight=None if weights is None else "weight")


@pytest.mark.parametrize(
    ("name", "cost", "costs", "alpha"),
    [
        ("income", "fnr", (0.412, 0.482), 0.244),
        ("health", "weighted:1,3", (0.447, 0.486), 0.085),
        ("criminal_recidivism", "fpr", (0.349, 0.457), 2.43),
    ],
)
def test_the_authors_files_if_calibrated(name, cost, costs, alpha):
    tally = income_flipped() if name == "income" else ic.Tally.load(DATA / f"{name}.json")
    # Of few people the folds decide more.
    room = 0.02 if name == "health" else 0.003
    found = ic.audit(tally, cost, warn=False).recalibrated
    assert list(found.cost.values()) == pytest.approx(costs, abs=room)
    assert max(found.alpha.values()) == pytest.approx(alpha, abs=2 * room + 0.004 * alpha)
    assert found.difference == pytest.approx(abs(costs[0] - costs[1]), abs=2 * room)


def test_folds_of_rows_give_the_same():
    data = population(400, maps=(lambda h: h**2, lambda h: 0.2 + 0.6 * h))
    cells = data.cells
    random, every = np.random.default_rng(1), []
    for index in range(2):
        own = cells.take(cells.of_group(index))
        rows = np.repeat(np.arange(len(own)), own.n.astype(int))
        x, y = own.bin[rows], own.label[rows]
        costs = []
        for _ in range(60):
            fold, calibrated = random.integers(0, 5, len(x)), np.empty(len(x))
            for one in range(5):
                model = IsotonicRegression(out_of_bounds="clip")
                model.fit(x[fold != one], y[fold != one])
                calibrated[fold == one] = model.predict(x[fold == one])
            costs.append(calibrated[y == 0].mean())
        every.append(np.mean(costs))
    found = ic.audit(data, "fpr", warn=False).recalibrated
    assert list(found.cost.values()) == pytest.approx(every, abs=0.003)


@pytest.mark.parametrize("cost", ["fpr", "fnr", "plain:2,1", "weighted:1,3"])
def test_errors_are_those_of_the_delta_method(cost):
    """With few levels the cost if calibrated is a smooth function of the cells."""
    levels, shares = np.array([0.125, 0.375, 0.625, 0.875]), np.array([0.3, 0.6, 0.2, 0.35])
    people = np.array([4000, 3000, 2000, 3000])
    ones = (people * np.array([0.2, 0.35, 0.5, 0.9])).astype(int)
    counts = np.stack([people - ones, ones])

    def rows(counts, group):
        label, level = (np.repeat(x.ravel(), counts.ravel()) for x in np.indices(counts.shape))
        return levels[level], label, np.full(len(label), group)

    both = [rows(counts, "a"), rows((counts * shares).astype(int), "b")]
    score, label, group = (np.concatenate(each) for each in zip(*both, strict=True))
    tally = ic.tally({"score": score, "label": label, "group": group})
    question = ic.Question(cost)
    found = recalibrated(Estimates(tally, question), reach_of(tally, question)).intervals

    def numbers(n):
        total, p = n.sum(), n[1] / n.sum(axis=0)
        mu = n[1].sum() / total
        fp, fn = (x[0] for x in ic.Cost.parse(cost).coefficients(["a"], np.array([mu])))

        def of(x):
            wrong, missed = (n[0] * x).sum() / n[0].sum(), (n[1] * (1 - x)).sum() / n[1].sum()
            return fp * wrong + fn * missed

        return np.array([of(p), of(p) - of(levels)])

    errors = []
    for n in (counts.astype(float), (counts * shares).astype(int).astype(float)):
        move = np.array([
            (numbers(n + 0.5 * unit) - numbers(n - 0.5 * unit)) for unit in
            np.eye(n.size).reshape(-1, *n.shape)
        ])  # fmt: skip
        errors.append(np.sqrt((n.ravel()[:, None] * move**2).sum(axis=0)))
    costs = [(high - low) / 2 / 1.96 for low, high in found.cost.values()]
    assert costs == pytest.approx([one for one, _ in errors], rel=0.02)
    low, high = found.change
    assert (high - low) / 2 / 1.96 == pytest.approx(math.hypot(*(e for _, e in errors)), rel=0.02)


def test_calibrated_scores_are_not_shown_to_move():
    found = ic.audit(population(4000), "fpr", warn=False).recalibrated
    low, high = found.intervals.change
    assert low < 0 < high
    assert abs(found.change) < 0.02


def test_the_change_has_the_sign_of_the_difference_as_measured():
    # Group 1 is costlier as measured; its scores are too high, so that calibration lowers its cost.
    tally = population(4000, maps=(lambda h: h, lambda h: 0.6 * h))
    found = {cost: ic.audit(tally, cost, warn=False) for cost in ("fpr", "fnr")}
    for audit in found.values():
        now, then, (s, t) = audit.groups, audit.recalibrated.cost, audit.recalibrated.between
        assert now[s].cost > now[t].cost
        difference = now[s].cost - now[t].cost
        assert audit.recalibrated.change == pytest.approx(then[s] - then[t] - difference)
        low, high = audit.recalibrated.intervals.change
        assert low < audit.recalibrated.change < high
        assert max(low, -high) > 0


def test_of_many_groups_the_pair_that_moves_most():
    maps = (lambda h: h, lambda h: 0.6 * h, lambda h: h, lambda h: h)
    found = ic.audit(population(3000, maps=maps), "fnr", warn=False).recalibrated
    assert 1 in found.between
    alike = ic.audit(population(300, maps=maps[:1] * 4, seed=1), "fnr", warn=False)
    d, found = alike.disparity, alike.recalibrated
    assert found.intervals.change[0] < 0 < found.intervals.change[1]
    assert found.between == (d.highest, d.lowest)


def test_a_group_with_one_label_has_no_cost():
    data = {"score": [0.2, 0.7, 0.4, 0.9, 0.3, 0.6], "label": [0, 1, 0, 1, 1, 1]}
    tally = ic.tally(data | {"group": list("aabbcc")})
    found = ic.audit(tally, "fpr", warn=False, min_group=0).recalibrated
    assert list(found.cost) == ["a", "b"]
    alone = ic.audit(tally.drop(["a"]), "fpr", warn=False).recalibrated
    assert all(map(math.isnan, [*alone.cost.values(), alone.difference, alone.change]))


def test_no_intervals_unless_asked():
    tally = population(500, maps=(lambda h: h, lambda h: 0.6 * h))
    found = [ic.audit(tally, "fpr", warn=False, confidence=c).recalibrated for c in (None, 0.9)]
    assert found[0].intervals is None
    assert found[0].cost == found[1].cost
    assert found[0].change == found[1].change


def test_the_unit_of_weights_does_not_matter():
    tallies = [population(500, weights=unit) for unit in (1.0, 1e-30)]
    found = [ic.audit(t, "weighted:1,3", warn=False).recalibrated for t in tallies]
    for name in ("cost", "alpha"):
        one, other = ([*getattr(each, name).values()] for each in found)
        assert one == pytest.approx(other, rel=1e-9)
    assert found[0].intervals.change == pytest.approx(found[1].intervals.change, rel=1e-9)


def test_weights_count_like_shares_of_people():
    tally = population(3000, weights=1.0, maps=(lambda h: h**2, lambda h: h))
    cells, found = tally.cells, ic.audit(tally, "fpr", warn=False).recalibrated
    for index in range(2):
        own = cells.take(cells.of_group(index))
        model = IsotonicRegression().fit(own.bin, own.label, own.w)
        q, negative = model.predict(own.bin), own.label == 0
        in_sample = np.average(q[negative], weights=own.w[negative])
        # In sample it is too good, by little with so many people.
        assert 0 < found.cost[index] - in_sample < 0.02


def test_the_same_seed_gives_the_same_and_another_nearly():
    tally = population(300)
    a, b, c = (ic.audit(tally, "fpr", warn=False, seed=s).recalibrated for s in (0, 0, 1))
    assert a == b
    assert a != c
    assert list(a.cost.values()) == pytest.approx([*c.cost.values()], abs=0.01)


def test_shares_of_rows_stay_whole():
    tally = population(500, maps=(lambda h: h, lambda h: 0.4 + 0.5 * h))
    mixed = ic.withhold(tally, "fpr", infeasible="closest").expected(tally)
    assert (mixed.cells.n != np.rint(mixed.cells.n)).any()
    assert all(map(math.isfinite, ic.audit(mixed, "fpr", warn=False).recalibrated.cost.values()))


def test_json_and_frame_have_it():
    audit = ic.audit(population(500), "fpr", warn=False)
    found = json.loads(audit.to_json())["recalibrated"]
    assert found["cost"] == [
        [g, pytest.approx(value)] for g, value in audit.recalibrated.cost.items()
    ]
    assert found["intervals"]["change"] == list(audit.recalibrated.intervals.change)
    frame = audit.to_frame(backend="dict")
    assert frame["recalibrated_cost"][:2].tolist() == list(audit.recalibrated.cost.values())
    assert math.isnan(frame["recalibrated_cost"][2])
    ends = [frame[f"recalibrated_cost_{end}"][0] for end in ("low", "high")]
    assert tuple(ends) == audit.recalibrated.intervals.cost[0]


def test_scores_that_differ_inside_a_bin_count():
    """Labels that scores separate leave only the noise of the scores as they are."""
    random = np.random.default_rng(0)
    label, group = random.integers(0, 2, 4000), np.repeat([0, 1], 2000)
    score = np.where(label == 1, 0.8, 0.1) + 0.1 * random.random(4000) * (1 - 1e-9)
    tally = ic.tally({"score": score, "label": label, "group": group}, bins=2)
    found = ic.audit(tally, "fpr", warn=False).recalibrated
    assert list(found.cost.values()) == [0.0, 0.0]
    low, high = found.intervals.change
    own = [score[(group == g) & (label == 0)] for g in (0, 1)]
    error = math.hypot(*(one.std() / math.sqrt(len(one)) for one in own))
    assert (high - low) / 2 / 1.96 == pytest.approx(error, rel=0.02)


def test_the_pair_is_the_one_that_is_known_best():
    """A tiny group seems to move furthest; the others are known to move."""
    random = np.random.default_rng(5)
    site = random.choice(["North", "South", "East", "Tiny"], 6000, p=[0.4, 0.35, 0.245, 0.005])
    score = random.beta(np.where(site == "North", 1.6, 1.1), 3)
    chance = np.where(site == "South", score + 0.1 * np.sin(2 * np.pi * score), score)
    label = random.random(6000) < chance
    audit = ic.audit({"score": score, "label": label, "group": site}, "fpr")
    found = audit.recalibrated
    moves = {g: found.cost[g] - audit.groups[g].cost for g in found.cost}
    assert min(moves, key=lambda group: moves[group]) == "Tiny"
    assert audit.verdict.reason == "uncalibrated"
    assert "Tiny" not in found.between
    low, high = found.intervals.change
    assert low > 0.0
    assert high - low < 0.1
