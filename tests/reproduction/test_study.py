"""The numbers of a study, against the library's own measures and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas, compas_rows
from reproduction.people import People, Split, split_rows
from reproduction.study import RECIDIVISM, REPAIRS, Study, fit_rules, mean_values, measure_split
from tests.conftest import measured


def whole() -> People:
    rows = compas_rows()
    return People(rows["label"], rows["group"], {"COMPAS": rows["score"]})


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(RECIDIVISM, "counts", (Split(whole(), whole()),))


def test_numbers_are_those_of_an_audit_before_and_after_each_rule(study: Study) -> None:
    numbers = study.values
    stages = {"original": compas()}
    stages |= {n: r.expected(compas()) for n, r in fit_rules(compas(), RECIDIVISM).items()}
    assert set(stages) == {"original", *REPAIRS}
    for stage, tally in stages.items():
        for place, group in enumerate(RECIDIVISM.groups, start=1):
            found = measured(tally, cost="fpr").groups[group]
            for name in ("base_rate", "generalized_fpr", "generalized_fnr", "cost", "accuracy"):
                assert numbers[f"{stage} {name} {place}"] == pytest.approx(getattr(found, name))
            off_line = abs(found.base_rate - found.mean_score)
            assert numbers[f"{stage} off_line {place}"] == pytest.approx(off_line)


def test_numbers_of_reference(study: Study) -> None:
    numbers = study.values
    assert numbers["alpha 2"] == pytest.approx(2.6006, abs=5e-5)
    assert numbers["feasible"] == 0.0
    assert numbers["smallest_tolerance"] == pytest.approx(0.4475 - 0.3936, abs=1e-4)


def test_the_cost_that_refutes_any_constraint(study: Study) -> None:
    asked = measured(compas(), cost="plain:1,1").feasibility
    assert asked.feasible
    assert study.values["alpha of both rates"] == pytest.approx(max(asked.alpha.values()))
    assert study.values["alpha of both rates"] == pytest.approx(0.017, abs=5e-4)


def test_shares_of_the_group_and_of_everybody(study: Study) -> None:
    values = study.values
    assert values["withheld"] == 1.0  # not feasible: all of the group
    assert values["withheld of everybody"] == pytest.approx(2454 / 6150)
    lost = -values["changed accuracy"] * 2454 / 6150
    assert values["accuracy lost by everybody"] == pytest.approx(lost)
    everybody = measured(compas()).overall
    for rate in ("generalized_fpr", "generalized_fnr"):
        assert values[f"original {rate} of everybody"] == pytest.approx(getattr(everybody, rate))


def test_few_splits_have_no_interval_of_their_mean() -> None:
    parts = tuple(Split(whole(), whole()) for _ in range(5))
    assert Study(RECIDIVISM, "counts", parts[:4]).correction is None
    assert Study(RECIDIVISM, "counts", parts).correction == pytest.approx(1 / 5 + 1 / 8)
    assert Study(RECIDIVISM, "counts", (Split(part := whole(), part),) * 5).correction is None


def test_the_first_of_many_replicates_are_a_few_and_two_processes_change_nothing(
    study: Study,
) -> None:
    assert study.replicates(6)[:3] == study.replicates(3) == study.replicates(3, jobs=2)


def test_two_models_are_averaged() -> None:
    part = whole()
    other = 0.5 * part.scores["COMPAS"] + 0.25
    both = People(part.label, part.group, {"a": part.scores["COMPAS"], "b": other})
    alone = [
        measure_split(Split(one, one), RECIDIVISM)
        for one in (part, People(part.label, part.group, {"b": other}))
    ]
    found = measure_split(Split(both, both), RECIDIVISM)
    of_models = {name: found.pop(name) for name in list(found) if name.startswith("off_line of ")}
    assert found.pop("hardest alpha") == max(numbers["hardest alpha"] for numbers in alone)
    assert found == pytest.approx(mean_values([{n: one[n] for n in found} for one in alone]))
    for model, numbers in zip("ab", alone, strict=True):
        worst = max(numbers["original off_line 1"], numbers["original off_line 2"])
        assert of_models[f"off_line of {model}"] == pytest.approx(worst)


def test_the_share_is_of_the_group_that_each_model_changes() -> None:
    """One model changes one group, the other model the other: neither mean share is the share."""
    label = np.tile([0, 1], 200)
    group = np.repeat(RECIDIVISM.groups, 200)
    sharp, dull = np.where(label, 0.9, 0.1), np.where(label, 0.6, 0.4)
    first = group == RECIDIVISM.groups[0]
    scores = {"a": np.where(first, sharp, dull), "b": np.where(first, dull, sharp)}
    part = People(label, group, scores)
    found = measure_split(Split(part, part), RECIDIVISM)
    # From 0.1 up to 0.4 on the way to 0.5.
    assert found["alpha"] == found["hardest alpha"] == pytest.approx(0.75)
    assert found["alpha 1"] == found["alpha 2"] == pytest.approx(0.375)


def test_what_each_rate_alone_must_leave(study: Study) -> None:
    for rate in ("fpr", "fnr"):
        before = measured(compas(), cost=rate).feasibility
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            feasible = ic.audit(compas(), rate, tolerance=middle, confidence=None).feasibility
            low, high = (low, middle) if feasible.feasible else (middle, high)
        assert not before.feasible
        assert study.values[f"left {rate}"] == pytest.approx(high, abs=1e-9)


def test_what_the_changed_group_loses_may_be_negative() -> None:
    """On other people withholding may lower the rates of the group that it changes."""
    label, group = np.tile([0, 1], 200), np.repeat(RECIDIVISM.groups, 200)
    first = group == RECIDIVISM.groups[0]
    sharp, dull = np.where(label, 0.9, 0.1), np.where(label, 0.6, 0.4)
    fitting = People(label, group, {"m": np.where(first, sharp, dull)})
    # Worse than chance in the group that is changed: the base rate is better for it.
    evaluation = People(label, group, {"m": np.where(first, 1.0 - sharp, dull)})
    found = measure_split(Split(fitting, evaluation), RECIDIVISM)
    alpha = found["alpha 1"]
    assert 0 < alpha < 1
    assert found["alpha 2"] == 0
    assert found["changed generalized_fpr"] == pytest.approx(-0.4 * alpha)
    assert found["changed generalized_fnr"] == pytest.approx(-0.4 * alpha)
    assert found["changed accuracy"] > 0


def test_replicates_do_not_depend_on_trained_models(study: Study) -> None:
    part = People(whole().label, whole().group, {name: whole().scores["COMPAS"] for name in "ab"})
    more = Study(RECIDIVISM, "counts", study.splits, trained=(part,))
    for one, other in zip(study.replicates(5), more.replicates(5), strict=True):
        assert one == {name: other[name] for name in one}


def test_replicates_spread_as_the_library_s_intervals_do(study: Study) -> None:
    found = [n["original generalized_fpr 1"] for n in study.replicates(120, seed=1)]
    low, high = ic.audit(compas(), "fpr").groups["African-American"].intervals["generalized_fpr"]
    np.testing.assert_allclose(np.std(found), (high - low) / (2 * 1.96), rtol=0.25)


def test_replicates_without_a_label_are_left_out() -> None:
    label = np.array([0, 1, 0, 0, 0, 1, 0, 1])
    part = People(label, np.repeat(["African-American", "Caucasian"], 4), {"m": label * 0.5 + 0.2})
    found = Study(RECIDIVISM, "counts", (Split(part, part),)).replicates(50)
    assert 0 < len(found) < 50


def test_trained_models_are_the_loosest_and_the_tightest() -> None:
    part = whole()
    scores = {
        "loose": part.scores["COMPAS"],
        "middle": 0 * part.label + 0.9,
        "tight": 0 * part.label + 0.4,
    }
    trained = People(part.label, part.group, scores)
    study = Study(RECIDIVISM, "counts", (Split(part, part),), (trained,))
    assert study.values["untrained generalized_fpr 1"] == study.values["original generalized_fpr 1"]
    assert study.values["trained generalized_fnr 2"] == pytest.approx(0.6)


def test_every_division_of_trained_models_counts() -> None:
    """COMPAS's scores have one split, while models may be trained on several."""
    part = whole()
    trained = tuple(
        People(
            part.label, part.group, {"loose": part.scores["COMPAS"], "tight": 0 * part.label + t}
        )
        for t in (0.2, 0.4)
    )
    study = Study(RECIDIVISM, "counts", (Split(part, part),), trained, {"people": 6150.0})
    assert [n["trained generalized_fpr 1"] for n in study.by_split] == pytest.approx([0.2, 0.4])
    assert study.values["trained generalized_fpr 1"] == pytest.approx(0.3)
    assert study.values["people"] == 6150
    drawn = [numbers["trained generalized_fpr 1"] for numbers in study.replicates(4)]
    assert drawn == pytest.approx([0.2, 0.4, 0.2, 0.4])


# Dividing people, and drawing them again


def people(rows: int = 1000, seed: int = 0) -> People:
    random = np.random.default_rng(seed)
    score = random.random(rows)
    group = random.choice(["a", "b"], rows, p=[0.2, 0.8])
    label = (random.random(rows) < score).astype(int)
    return People(label, group, {"model": score}, {"row": np.arange(rows)})


def test_every_person_is_in_one_part_and_each_group_and_label_is_divided_alike() -> None:
    whole = people()
    parts = split_rows(whole.label, whole.group, seed=3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(1000))
    for group in "ab":
        for label in (0, 1):
            cell = (whole.group == group) & (whole.label == label)
            shares = [cell[rows].sum() / cell.sum() for rows in parts]
            np.testing.assert_allclose(shares, [0.8, 0.1, 0.1], atol=1 / cell.sum())


def test_the_seed_decides_the_division() -> None:
    whole = people()
    first, again, other = (split_rows(whole.label, whole.group, seed)[2] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert set(first) != set(other)


def test_a_part_tallies_as_its_columns_do() -> None:
    part = people()
    data = {"score": part.scores["model"], "label": part.label, "group": part.group}
    assert part.tally("model") == ic.tally(data)


def test_people_drawn_again_keep_their_row_together_and_groups_their_size() -> None:
    part = people()
    drawn = part.resample(np.random.default_rng(0))
    rows = drawn.extra["row"]
    assert np.array_equal(drawn.label, part.label[rows])
    assert np.array_equal(drawn.scores["model"], part.scores["model"][rows])
    assert [np.sum(drawn.group == g) for g in "ab"] == [np.sum(part.group == g) for g in "ab"]
    # With replacement about 1/e of the people are not drawn.
    assert 0.60 < len(np.unique(rows)) / 1000 < 0.67


def test_one_part_stays_one_and_two_are_drawn_apart() -> None:
    part, random = people(), np.random.default_rng(0)
    same = Split(part, part).resample(random)
    assert same.fitting is same.evaluation
    assert not same.held_out
    apart = Split(part, people(seed=1)).resample(random)
    assert apart.held_out
    assert not np.array_equal(apart.fitting.extra["row"], apart.evaluation.extra["row"])
