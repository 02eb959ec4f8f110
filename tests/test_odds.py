"""Equalized odds from finished scores, against hand examples and two other formulations."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isocost as ic
from isocost.examples import compas
from isocost.measures.table import MEASURES
from isocost.repairs import odds
from isocost.repairs.odds import equalize_odds

JUST_ABOVE = float(np.nextafter(0.5, 1.0))
KINDS = ("generalized", "hard")


def rates_of(tally, threshold=0.5, kind="generalized"):
    """The two rates that are made equal, per group."""
    start = "generalized_" if kind == "generalized" else ""
    kinds = tally.kinds(threshold)
    return np.stack([MEASURES[f"{start}{name}"].of(kinds) for name in ("fpr", "fnr")], axis=-1)


def loss_of(tally, threshold=0.5):
    return float(rates_of(tally, threshold, "hard").sum())


def flips_of(rule):
    """{group: (p2n, n2p)}"""
    found = {group: [0.0, 0.0] for group in rule.groups}
    for row in rule.rows:
        assert row.action == "mirror"
        assert row.value is None
        found[row.group][row.lo == 0.0] = row.probability
    return {group: tuple(pair) for group, pair in found.items()}


def data_of(score, label, group, weight=None):
    data = {"score": np.array(score, dtype=float), "label": label, "group": group}
    return data if weight is None else {**data, "weight": np.array(weight, dtype=float)}


def tally_of(data, **options):
    return ic.tally(data, weight="weight" if "weight" in data else None, **options)


# Another way to solve it, straight from the rows


def outcomes(score, threshold, kind):
    return (score >= threshold).astype(float) if kind == "hard" else score


def row_program(data, threshold, kind):
    """The least loss, by a program with a keep-probability for every single row."""
    from scipy.optimize import linprog

    h, y, g = data["score"], np.array(data["label"]), np.array(data["group"])
    w = data.get("weight", np.ones(len(h)))
    side = h >= threshold
    groups = sorted(set(g.tolist()))

    def mean_outcome(group, label, kind):
        """Coefficients of the keep-probabilities, and what is left when nobody keeps."""
        share = np.where((g == group) & (y == label), w, 0.0)
        share /= share.sum()
        kept, turned = (outcomes(x, threshold, kind) for x in (h, 1.0 - h))
        return share * (kept - turned), float(share @ turned)

    equations, right = [], []
    for label in (0, 1):
        pairs = [mean_outcome(group, label, kind) for group in groups]
        for slope, level in pairs[1:]:
            equations.append(slope - pairs[0][0])
            right.append(pairs[0][1] - level)
    for group in groups:
        for where in (True, False):
            rows = np.flatnonzero((g == group) & (side == where))
            for first, second in pairwise(rows):
                same = np.zeros(len(h))
                same[first], same[second] = 1.0, -1.0
                equations.append(same)
                right.append(0.0)
    cost, constant = np.zeros(len(h)), 0.0
    for group in groups:
        for label, sign in ((0, 1.0), (1, -1.0)):
            slope, level = mean_outcome(group, label, "hard")
            cost += sign * slope
            constant += sign * level + (label == 1)
    solved = linprog(cost, A_eq=np.array(equations), b_eq=right, bounds=(0, 1), method="highs-ds")
    assert solved.status == 0
    return solved.fun + constant


@st.composite
def populations(draw, groups=(2, 3, 10), weights=True):
    """Scores in sixteenths: every level has its own bin, so a tally loses nothing."""
    count = draw(st.sampled_from(groups))
    score, label, group = [], [], []
    for name in range(count):
        size = draw(st.integers(4, 9))
        score += draw(st.lists(st.integers(0, 16), min_size=size, max_size=size))
        label += [0, 1, *draw(st.lists(st.integers(0, 1), min_size=size - 2, max_size=size - 2))]
        group += [name] * size
    weight = None
    if weights and draw(st.booleans()):
        weight = draw(st.lists(st.integers(1, 5), min_size=len(score), max_size=len(score)))
    return data_of(np.array(score) / 16, label, group, weight)


thresholds = st.sampled_from([0.5, 0.5, 0.25, 0.75])
kinds = st.sampled_from(KINDS)


@settings(max_examples=80, deadline=None)
@given(populations(), thresholds, kinds, st.booleans())
def test_rates_become_equal_and_the_loss_is_least(data, threshold, kind, informative):
    if informative:
        # Scores drawn towards the labels, so that the best is not a constant score.
        rng = np.random.default_rng(len(data["score"]))
        drawn = 0.25 + np.array(data["label"]) / 2 + rng.normal(0, 0.15, len(data["score"]))
        data["score"] = np.clip(np.round(16 * drawn), 0, 16) / 16
    tally = tally_of(data)
    rule = equalize_odds(tally, threshold, rates=kind)
    after = rule.expected(tally)
    assert np.ptp(rates_of(after, threshold, kind), axis=0).max() < 1e-12
    assert all(0 < row.probability <= 1 for row in rule.rows)
    least = row_program(data, threshold, kind)
    assert loss_of(after, threshold) == pytest.approx(least, abs=1e-6)


# Known numbers


def test_by_hand():
    # c_fp and c_fn: a 1/4 and 1/4, b 0 and 0.  Turning b's scores round with p makes both p.
    data = data_of(
        [0.25, 0.25, 0.75, 0.75, 0, 0, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1], ["a"] * 4 + ["b"] * 4
    )
    rule = equalize_odds(tally_of(data))
    assert flips_of(rule) == {"a": (0.0, 0.0), "b": (pytest.approx(0.25), pytest.approx(0.25))}
    assert [(row.lo, row.hi) for row in rule.rows] == [(0.5, 1.0), (0.0, 0.5)]


# Special scores


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("score", "label", "group"),
    [
        # Groups that are the same, and perfect scores.
        ([0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 3, [0, 0, 1, 0, 1, 1] * 3, np.repeat(np.arange(3), 6)),
        ([0, 1, 0, 0, 1, 0, 1, 1], [0, 1, 0, 0, 1, 0, 1, 1], list("aaabbccc")),
    ],
)
def test_where_nothing_is_to_do_scores_stay(kind, score, label, group):
    rule = equalize_odds(tally_of(data_of(score, label, group)), rates=kind)
    assert rule.rows == ()
    assert rule.notes == ()


@pytest.mark.parametrize("kind", KINDS)
def test_scores_that_are_the_wrong_way_round_are_all_turned(kind):
    data = data_of([0.875, 0.125] * 2, [0, 1] * 2, list("aabb"))
    tally = tally_of(data)
    rule = equalize_odds(tally, rates=kind)
    assert flips_of(rule) == {"a": (1.0, 1.0), "b": (1.0, 1.0)}
    assert not rule.needs_coin
    assert loss_of(rule.expected(tally)) == 0.0


def test_constant_scores_meet_with_the_fewest_flips_and_a_note():
    # Every common rate in [3/8, 5/8] is as good: only a has to move, from 1/4 to 3/8.
    data = data_of([0.25] * 4 + [0.375] * 4, [0, 1] * 4, ["a"] * 4 + ["b"] * 4)
    rule = equalize_odds(tally_of(data))
    assert flips_of(rule) == {"a": (0.0, pytest.approx(0.25)), "b": (0.0, 0.0)}
    assert rule.notes[1] == (
        "The two common rates add up to 1.0000: giving everybody one and the same score is no "
        "worse. Nothing is left of what the scores knew."
    )


@pytest.mark.parametrize("scores", [(0.25, 0.25, 0.75), (0.75, 0.25, 0.25), (0.375, 0.625, 0.625)])
def test_of_equally_good_flips_the_fewest_are_taken(scores):
    # Any common rate is as good.  One group differs, and it alone is flipped.
    data = data_of(np.repeat(scores, 4), [0, 1] * 6, np.repeat(list("abc"), 4))
    rule = equalize_odds(tally_of(data))
    (odd,) = [group for group, h in zip("abc", scores, strict=True) if scores.count(h) == 1]
    assert [(row.group, row.probability) for row in rule.rows] == [(odd, 1.0)]


def test_what_is_useless_depends_on_the_rates_that_were_asked_for():
    # The scores know something, the decisions at 1/2 nothing: everybody is negative.
    data = data_of([0.125, 0.375] * 2, [0, 1] * 2, list("aabb"))
    assert equalize_odds(tally_of(data)).notes == ()
    (note,) = equalize_odds(tally_of(data), rates="hard").notes
    assert "add up to 1.0000" in note


def test_one_uninformative_group_makes_the_rates_of_all_useless():
    good = ([0.0, 0.25, 0.75, 1.0], [0, 0, 1, 1])
    data = data_of(good[0] * 2 + [0.375] * 4, good[1] * 3, np.repeat(list("abc"), 4))
    tally = tally_of(data)
    rule = equalize_odds(tally)
    assert rates_of(rule.expected(tally)).sum(axis=1) == pytest.approx([1.0] * 3)
    assert any("add up to 1.0000" in note for note in rule.notes)
    without = equalize_odds(tally.drop(["c"]))
    assert without.notes == ()


def test_hard_rates_that_only_a_constant_decision_can_share():
    # At 3/4 a score of 1/2 cannot be made positive, so that b has FPR 0 and FNR 1 whatever is done.
    data = data_of([0.0, 0.25, 0.875, 1.0] + [0.5] * 4, [0, 0, 1, 1] * 2, ["a"] * 4 + ["b"] * 4)
    tally = tally_of(data)
    rule = equalize_odds(tally, 0.75, rates="hard")
    assert flips_of(rule) == {"a": (1.0, 0.0), "b": (0.0, 0.0)}
    assert rates_of(rule.expected(tally), 0.75, "hard").tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert any("add up to 1.0000" in note for note in rule.notes)


def test_weights_count_as_copies():
    score, label = [0.125, 0.25, 0.625, 0.875, 0.375, 0.5625, 0.75, 0.25], [0, 1, 0, 1] * 2
    group, weight = list("aaaabbbb"), [1, 2, 3, 4, 3, 1, 2, 2]
    copies = [np.repeat(np.array(x), weight) for x in (score, label, group)]
    weighted = equalize_odds(tally_of(data_of(score, label, group, weight)))
    repeated = equalize_odds(tally_of(data_of(*copies)))
    plain = equalize_odds(tally_of(data_of(score, label, group)))
    assert len(weighted.rows) == len(repeated.rows) >= 2
    for one, other in zip(weighted.rows, repeated.rows, strict=True):
        assert one == replace(other, probability=pytest.approx(other.probability, abs=1e-12))
    assert flips_of(weighted) != flips_of(plain)


# Scores of exactly one half


@pytest.mark.parametrize("edges", [(), (0.5, JUST_ABOVE)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_tie_turned_round_is_no_changed_decision(kind, edges):
    # b: everybody at 1/2.  Nothing can change for it, so it has no row.
    data = data_of([0.125, 0.25, 0.75, 0.875] + [0.5] * 4, [0, 0, 1, 1] * 2, ["a"] * 4 + ["b"] * 4)
    tally = tally_of(data, edges=edges)
    rule = equalize_odds(tally, rates=kind)
    flips = flips_of(rule)
    assert flips["b"] == (0.0, 0.0)
    after = rule.expected(tally)
    assert rates_of(after, kind="hard")[1].tolist() == [1.0, 0.0]
    # Only a half of each side brings a to (1/2, 1/2); only all of the low side to FPR 1, FNR 0.
    wanted = (0.5, 0.5) if kind == "generalized" else (0.0, 1.0)
    assert flips["a"] == pytest.approx(wanted)
    assert np.ptp(rates_of(after, kind=kind), axis=0).max() < 1e-12


def test_ties_with_a_bin_of_their_own_are_told_from_their_neighbours():
    # Half of a's upper side are ties, the others a hair above and in the same bin of 1/1024.
    hair = 0.5 + 2.0**-12
    score = [0.25, 0.5, hair, hair, 0.5, 0.5, 0.125, 0.25, 0.625, 0.875]
    label = [0, 0, 0, 0, 1, 1, 0, 0, 1, 1]
    data = data_of(score, label, ["a"] * 6 + ["b"] * 4)
    apart = tally_of(data, edges=(0.5, JUST_ABOVE))
    rule = equalize_odds(apart, rates="hard")
    after = rule.expected(apart)
    # Turning a's upper side round loses its two false positives above 1/2, and no true positive.
    assert flips_of(rule)["a"] == (pytest.approx(1.0), 0.0)
    assert rates_of(after, kind="hard")[0] == pytest.approx([0.25, 0.0])
    assert np.ptp(rates_of(after, kind="hard"), axis=0).max() < 1e-12
    assert loss_of(after) == pytest.approx(row_program(data, 0.5, "hard"), abs=1e-9)
    applied = ic.tally(rule.apply(data, seed=0), "repaired_score", edges=(0.5, JUST_ABOVE))
    assert rates_of(applied, kind="hard")[0] == pytest.approx([0.25, 0.0])
    together = tally_of(data)
    assert flips_of(equalize_odds(together, rates="hard")) != flips_of(rule)


@settings(max_examples=40, deadline=None)
@given(populations(groups=(2, 3)), kinds)
def test_many_ties(data, kind):
    rng = np.random.default_rng(0)
    data["score"] = np.where(rng.random(len(data["score"])) < 0.5, 0.5, data["score"])
    tally = tally_of(data, edges=(0.5, JUST_ABOVE))
    after = equalize_odds(tally, rates=kind).expected(tally)
    assert np.ptp(rates_of(after, kind=kind), axis=0).max() < 1e-12
    assert loss_of(after) == pytest.approx(row_program(data, 0.5, kind), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [1e-6, 1e-11])
def test_scores_that_hardly_differ_from_one_half(kind, spread):
    rng = np.random.default_rng(3)
    group, label = np.repeat(np.arange(5), 40), rng.integers(0, 2, 200)
    data = data_of(0.5 + spread * rng.normal(size=200), label, group)
    tally = tally_of(data, edges=(0.5, JUST_ABOVE))
    after = equalize_odds(tally, rates=kind).expected(tally)
    assert np.ptp(rates_of(after, kind=kind), axis=0).max() < 1e-12


# Other thresholds


@pytest.mark.parametrize("threshold", [0.7, 0.3, 0.9, 0.25, 0.37, 2 / 3])
def test_other_thresholds(threshold):
    rng = np.random.default_rng(1)
    group = np.repeat(["a", "b", "c"], 100)
    label = rng.integers(0, 2, 300)
    score = np.clip(0.3 + 0.4 * label + rng.normal(0, 0.25, 300), 0, 1)
    data = data_of(score, label, group)
    for kind in KINDS:
        tally = tally_of(data, edges=(threshold, 1 - threshold))
        rule = equalize_odds(tally, threshold, rates=kind)
        after = rule.expected(tally)
        assert {row.lo for row in rule.rows} <= {0.0, threshold}
        assert np.ptp(rates_of(after, threshold, kind), axis=0).max() < 1e-12
        least = row_program(data, threshold, kind)
        assert loss_of(after, threshold) == pytest.approx(least, abs=1e-7)


def test_a_threshold_whose_mirror_is_no_edge_says_which_edges_to_make():
    with pytest.raises(ic.UsageError) as caught:
        equalize_odds(compas(edges=(0.67,)), 0.67)
    assert str(caught.value) == (
        "threshold: and 1 - threshold must be edges of the tally, so that no bin lies on both "
        "sides before or after its scores are flipped\n"
        "  got:  0.67, and 0.33 inside a bin\n"
        "  next: make the tally with edges=(0.33, 0.67)"
    )
    tally = compas(edges=(0.33, 0.67))
    after = equalize_odds(tally, 0.67).expected(tally)
    assert np.ptp(rates_of(after), axis=0).max() < 1e-12


def test_a_threshold_that_is_no_edge_gets_all_edges_in_one_message():
    with pytest.raises(ic.UsageError) as caught:
        equalize_odds(compas(edges=(0.123,)), 0.67)
    assert "0.67, and 0.67 and 0.33 inside a bin" in str(caught.value)
    assert "edges=(0.123, 0.33, 0.67)" in str(caught.value)


# What the rule says about itself


def test_the_note_on_calibration_gives_the_distance_from_the_line():
    tally = compas()
    rule = equalize_odds(tally)
    assert rule.notes == (
        "Equalized odds gives up calibration. Distance from the calibrated line, "
        "|mu c_fn - (1 - mu) c_fp|: 0.0617 for Caucasian (before 0.0111), "
        "0.0487 for African-American (before 0.0074).",
    )
    mu = MEASURES["base_rate"].of(tally.totals)
    fp, fn = rates_of(rule.expected(tally)).T
    assert np.abs(mu * fn - (1 - mu) * fp) == pytest.approx([0.0487, 0.0617], abs=5e-5)


def test_the_note_on_calibration_names_ten_groups():
    best = ([0.0] * 2 + [1.0] * 2) * 13
    data = data_of([*best, 0.25, 0.25, 0.75, 0.75], [0, 0, 1, 1] * 14, np.repeat(range(14), 4))
    note = equalize_odds(tally_of(data)).notes[0]
    assert note.count(" for ") == 10
    assert note.endswith(" and 3 more.")


# What it refuses


def test_rates_must_be_one_of_two():
    said = "rates: must be .*next: use .generalized. for mean scores, as the paper does, or .hard."
    with pytest.raises(ic.UsageError, match=f"(?s){said}"):
        equalize_odds(compas(), rates="soft")


def test_a_solver_that_fails_is_an_error(monkeypatch):
    import scipy.optimize

    failed = scipy.optimize.OptimizeResult(status=2, message="The problem is infeasible.")
    monkeypatch.setattr(scipy.optimize, "linprog", lambda *_, **__: failed)
    with pytest.raises(
        ic.UsageError, match="has a solution, and the solver must find it"
    ) as caught:
        equalize_odds(compas())
    assert "tally.drop" in str(caught.value)


# The solver's answer, made exact


def test_a_solver_that_stops_early_is_made_good(monkeypatch):
    import scipy.optimize

    def rough(*args, **options):
        result = linprog(*args, **options)
        result.x = result.x + 1e-7 * np.array([1.0, 0.0, 0.0, -1.0, 1.0, 1.0])
        return result

    linprog = scipy.optimize.linprog
    exact = flips_of(equalize_odds(compas()))
    monkeypatch.setattr(scipy.optimize, "linprog", rough)
    rule = equalize_odds(compas())
    assert np.ptp(rates_of(rule.expected(compas())), axis=0).max() < 1e-12
    for group, pair in flips_of(rule).items():
        assert pair == pytest.approx(exact[group], abs=1e-12)


def test_an_exact_answer_outside_the_bounds_is_not_taken(monkeypatch):
    """The equation x + y = 0.1 cannot be met with x of at least 0.8: the answer is kept."""
    zero = SimpleNamespace(marginals=np.zeros(2))
    found = SimpleNamespace(x=np.array([0.9, -1e-10]), lower=zero, upper=zero)
    monkeypatch.setattr(odds, "minimize", lambda *_: found)
    system, bounds = (np.ones((1, 2)), np.array([0.1])), (np.array([0.8, 0.0]), np.ones(2))
    best, _ = odds._minimum(np.zeros(2), system, bounds, np.zeros(2))
    assert best.tolist() == [0.9, 0.0]


@pytest.mark.parametrize("threshold", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("kind", KINDS)
def test_the_constant_score_to_start_from_is_feasible(monkeypatch, threshold, kind):
    """The solver is asked for steps from it, and none is one of them."""
    asked, minimize = [], odds.minimize

    def spied(costs, equal, below, bounds):
        asked.append((np.abs(equal[1]).max(), bounds[0].max(), bounds[1].min()))
        return minimize(costs, equal, below, bounds)

    monkeypatch.setattr(odds, "minimize", spied)
    ties = data_of([0.125, 0.5, 0.5, 0.75] * 2, [0, 0, 1, 1] * 2, ["a"] * 4 + ["b"] * 4)
    for tally in (compas(), tally_of(ties)):
        equalize_odds(tally, threshold, rates=kind)
    assert len(asked) == 4
    assert all(miss < 1e-10 and low <= 0.0 <= high for miss, low, high in asked)


def test_scipy_is_loaded_only_when_needed():
    code = "import sys, isocost.repairs.odds; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
