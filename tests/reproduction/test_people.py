"""Dividing people, and drawing them again."""

from __future__ import annotations

import numpy as np

import isocost as ic
from reproduction.people import People, Split, split_rows


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
