"""What goes beyond the paper, on populations whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas, compas_rows
from reproduction import beyond
from reproduction.people import People, Split
from reproduction.study import HEALTH, RECIDIVISM, Study, fit_rules


def part(rows: int, seed: int, groups: tuple[str, ...]) -> People:
    random = np.random.default_rng(seed)
    group = random.choice(groups, rows)
    sharp = 2.0 / (1 + np.array([groups.index(g) for g in group]))
    score = random.beta(sharp, sharp, rows)  # the first group's scores say least
    label = (random.random(rows) < score).astype(int)
    return People(label, group, {"model": score}, {"age": random.integers(30, 70, rows)})


def test_repairs_are_those_of_compare() -> None:
    rows = compas_rows()
    people = People(rows["label"], rows["group"], {"COMPAS": rows["score"]})
    found = beyond.compared(Study(RECIDIVISM, "counts", (Split(people, people),)))
    expected = ic.compare(compas(), fit_rules(compas(), RECIDIVISM), "fpr").rules
    assert [row.rule for row in found] == list(expected)
    for row in found:
        one = expected[row.rule]
        assert row.cost_difference == pytest.approx(one.audit.disparity.difference)
        assert row.calibration_gap == pytest.approx(one.numbers()["calibration_gap"])
        assert row.decisions == pytest.approx(one.changes.decisions)


def test_a_rule_is_exact_where_it_was_fitted_and_near_elsewhere() -> None:
    splits = (Split(part(4000, 1, HEALTH.groups), part(4000, 2, HEALTH.groups)),)
    found = {row.rule: row for row in beyond.held_out(Study(HEALTH, "retrained", splits))}
    assert found["original"].fitted > 0.1
    assert found["withhold"].fitted < 1e-9
    assert 1e-6 < found["withhold"].unseen < found["original"].unseen


def test_halves_are_used_where_parts_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reproduction.beyond.HALVES", 10)
    people = part(400, 3, HEALTH.groups)
    found = {
        row.rule: row
        for row in beyond.held_out(Study(HEALTH, "published", (Split(people, people),)))
    }
    assert found["withhold"].fitted < 1e-9
    assert found["withhold"].unseen > 1e-3


def test_many_groups_leaves_out_the_small_and_says_so() -> None:
    people = part(900, 4, ("a", "b", "c"))
    group = people.group.astype("U8")
    group[:20] = "tiny"
    found = beyond.many_groups(Split(people, people), RECIDIVISM, (group, group))
    assert found.left_out == {"tiny": 20}
    kept = people.tally("model", group).drop(["tiny"])
    asked = ic.audit(kept, "fpr", confidence=None).feasibility
    for name, (size, cost, trivial, alpha) in found.groups.items():
        assert size == np.sum(group == name)
        assert (cost, trivial, alpha) == pytest.approx(
            (asked.costs[name], asked.trivial_costs[name], asked.alpha[name])
        )


def test_age_cuts_move_people_between_the_groups() -> None:
    split = Split(part(2000, 5, HEALTH.groups), part(2000, 6, HEALTH.groups))
    found = beyond.age_cuts(Study(HEALTH, "retrained", (split,)))
    ages = np.concatenate([split.fitting.extra["age"], split.evaluation.extra["age"]])
    for cut in found:
        assert cut.seniors == pytest.approx(np.mean(ages >= cut.age))
        assert min(cut.alpha) == 0.0


def test_a_spread_is_that_of_the_splits() -> None:
    splits = tuple(
        Split(part(400, i, HEALTH.groups), part(400, i + 50, HEALTH.groups)) for i in (1, 2)
    )
    study = Study(HEALTH, "retrained", splits)
    alone = [beyond.compared(Study(HEALTH, "retrained", (split,)))[1] for split in splits]
    row = beyond.compared(study)[1]
    assert alone[0].spread == {}
    accuracy = [one.accuracy for one in alone]
    assert row.spread["accuracy"] == pytest.approx(np.std(accuracy, ddof=1))
    unseen = [beyond.held_out(Study(HEALTH, "retrained", (s,)))[1].unseen for s in splits]
    spread = beyond.held_out(study)[1].spread
    assert spread is not None
    assert spread[1] == pytest.approx(np.std(unseen, ddof=1))


def test_chance_cancels_in_the_mean_over_splits_and_a_difference_stays() -> None:
    """Calibrated scores of which one group's say less: what is off is chance, the cost is not."""
    splits = tuple(
        Split(part(150, i, HEALTH.groups), part(150, i + 50, HEALTH.groups)) for i in range(40)
    )
    assert beyond.small_part(Study(HEALTH, "retrained", splits[:2])) == []
    *off, cost = beyond.small_part(Study(HEALTH, "retrained", splits))
    for row in off:
        assert row.signed < 0.5 * row.mean
        assert row.by_chance == pytest.approx(row.mean, rel=0.2)
    assert cost.signed > 2 * cost.by_chance
