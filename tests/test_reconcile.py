"""Reconciling: against a program written another way, closed forms, and what must always hold."""

from __future__ import annotations

import json
import math
import pickle
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import isocost as ic
from isocost.examples import compas
from isocost.repairs.lp import BELOW, score_levels
from isocost.repairs.reconcile import Reconcilability
from isocost.tables import round_up
from tests.conftest import measured
from tests.populations import INCOME, ROWS, drawn, from_counts, tables

feasibility, reconcile = (partial(one, min_group=0) for one in (ic.feasibility, ic.reconcile))
"""Tests have few people: no group is left out for its size."""

HARD = ("fpr", "fnr", "selection_rate")


def information(rule, tally):
    """E[q^2] over everybody after the rule."""
    cells = rule.expected(tally).cells
    return float(cells.wh2.sum() / cells.w.sum())


def decisions_changed(rule, tally):
    """The share of people that end on the other side of the threshold, from the rows alone."""
    threshold, cells = rule.settings["threshold"], tally.cells
    moved = 0.0
    for row in rule.rows:
        bins = tally.grid.cuts[cells.bin]
        inside = (cells.group == tally.index_of(row.group)) & (bins >= row.lo) & (bins < row.hi)
        if (row.lo >= threshold) != (row.value >= threshold):
            moved += cells.w[inside].sum() * row.probability
    return moved / cells.w.sum()


def mean_change(rule, tally):
    """E|q - h| with h the mean score of the level, from the rows alone."""
    cells = tally.cells
    low, total = tally.grid.cuts[cells.bin], 0.0
    for row in rule.rows:
        place = tally.index_of(row.group)
        inside = (cells.group == place) & (low >= row.lo) & (low < row.hi)
        people = cells.w[inside].sum()
        total += row.probability * abs(row.value * people - cells.wh[inside].sum())
    return total / cells.w.sum()


def nearest(tally, **arguments):
    """The rule, or the closest one, and the tolerance that it must meet."""
    try:
        return reconcile(tally, **arguments), arguments.get("tolerance", 0.0)
    except ic.InfeasibleError as error:
        with pytest.warns(ic.InfeasibleWarning):
            rule = reconcile(tally, **arguments, infeasible="closest")
        smallest = error.feasibility.smallest_tolerance
        return rule, arguments.get("tolerance", 0.0) if math.isnan(smallest) else smallest


def check_invariants(rule, tally):
    """Calibrated output by output; everybody somewhere; nobody lost."""
    cells = tally.cells
    low = tally.grid.cuts[cells.bin]
    for place, group in enumerate(tally.groups):
        given_out = {}
        for segment in rule.segments(group):
            total = math.fsum(row.probability for row in segment.rows)
            assert total == pytest.approx(1.0, abs=1e-12)
            assert all(0.0 < row.probability <= 1.0 for row in segment.rows)
            inside = (cells.group == place) & (low >= segment.lo) & (low < segment.hi)
            people, positives = cells.w[inside].sum(), cells.w[inside & (cells.label == 1)].sum()
            for row in segment.rows:
                pair = given_out.setdefault(row.value, [0.0, 0.0])
                pair[0] += row.probability * people
                pair[1] += row.probability * positives
        everybody = cells.w[cells.group == place].sum()
        assert sum(pair[0] for pair in given_out.values()) == pytest.approx(everybody, rel=1e-12)
        # Each output is the share of positives of those who get it, up to 1e-9 of the group.
        for value, (people, positives) in given_out.items():
            assert abs(positives - value * people) <= 1e-9 * everybody
    after = rule.expected(tally)
    assert after.cells.w.sum() == pytest.approx(cells.w.sum(), rel=1e-12)
    audit = measured(after, threshold=rule.settings["threshold"])
    assert all(m.calibration_gap <= 1e-9 for m in audit.groups.values())
    return audit


# COMPAS


def test_compas_numbers():
    tally = compas()
    before = measured(tally)
    rule = reconcile(tally)
    after = check_invariants(rule, tally)
    assert before.groups["Caucasian"].fpr == pytest.approx(0.147, abs=5e-4)
    assert before.groups["African-American"].fpr == pytest.approx(0.343, abs=5e-4)
    for measures in after.groups.values():
        assert measures.fpr == pytest.approx(0.249, abs=5e-4)
        assert measures.fnr == pytest.approx(0.486, abs=1e-3)
    assert after.disparities["fpr"].difference <= 1e-9
    assert after.disparities["fnr"].difference <= 1e-9
    levels = [score_levels(tally, i, 0.5, 64) for i in range(2)]
    most = sum(part.share * (part.w @ part.p**2) for part in levels)
    assert 0.0 < 1.0 - information(rule, tally) / most < 0.01


def test_compas_rule_says_what_it_was_made_with():
    rule = reconcile(compas(), tolerance={"fpr": 0.01}, levels=8, salt="s")
    assert rule.method == "reconcile"
    assert rule.cost is None
    assert rule.salt == "s"
    assert rule.settings == {
        "threshold": 0.5,
        "equal": ["fpr", "fnr"],
        "tolerance": {"fpr": 0.01, "fnr": 0.0},
        "levels": 8,
        "floor": None,
        "no_worse": False,
        "monotone": False,
        "infeasible": "raise",
    }
    assert rule.made_from["n"] == 6150
    assert ic.Rule.from_json(rule.to_json()) == rule
    assert {row.action for row in rule.rows} == {"set"}


def test_the_note_tells_the_truth():
    tally = compas()
    rule = reconcile(tally)
    split = {
        (group, segment.lo)
        for group in rule.groups
        for segment in rule.segments(group)
        if segment.needs_coin
    }
    cells = tally.cells
    by_coin = 0.0
    for group, lo in split:
        hi = next(s.hi for s in rule.segments(group) if s.lo == lo)
        low = tally.grid.cuts[cells.bin]
        inside = (cells.group == tally.index_of(group)) & (low >= lo) & (low < hi)
        by_coin += cells.w[inside].sum() / cells.w.sum()
    note, levels, falls = rule.notes
    assert levels == "Levels: 10 for African-American, 10 for Caucasian."
    assert f"the score may fall, at {sum(rule.reversals.values())} places; " in falls
    assert note.startswith("0.42% of the information E[q^2] of the levels is lost; ")
    assert f"changes for {decisions_changed(rule, tally):.2%} of people" in note
    assert f"for {by_coin:.2%} the score is randomized." in note


def test_applied_to_people_it_does_what_was_expected():
    from isocost.examples import compas_rows

    rows = compas_rows()
    rule = reconcile(compas())
    new = rule.apply(rows, id="id")["repaired_score"]
    expected = measured(rule.expected(compas()))
    for group in rule.groups:
        inside = rows["group"] == group
        fpr = (new[inside & (rows["label"] == 0)] >= 0.5).mean()
        assert fpr == pytest.approx(expected.groups[group].fpr, abs=0.03)
    assert set(np.round(new, 12)) <= {round(row.value, 12) for row in rule.rows}


# Another formulation


def joint_program(parts, threshold, equal, extra=(), most_turned=1.0, selected=0.0):
    """The best E[q^2] by joint masses m_ij over a common grid of outputs, written out densely.

    Or the most people selected, or -selected, in place of E[q^2].
    """
    own = np.concatenate([part.p for part in parts])
    outputs = np.unique([*own, threshold, threshold - BELOW, *extra])
    blocks = [(t, i, q) for t, part in enumerate(parts) for i in range(len(part)) for q in outputs]
    rows, right = [], []
    for t, part in enumerate(parts):
        for i in range(len(part)):
            rows.append([float((t, i) == block[:2]) for block in blocks])
            right.append(part.w[i])
        for q in outputs:
            rows.append([part.p[b[1]] - q if (b[0], b[2]) == (t, q) else 0.0 for b in blocks])
            right.append(0.0)

    def rate(name, t, block):
        if block[0] != t:
            return 0.0
        p, q = parts[t].p[block[1]], block[2]
        mu = parts[t].w @ parts[t].p
        return {
            "fpr": (q >= threshold) * (1 - p) / (1 - mu),
            "fnr": (q < threshold) * p / mu,
            "selection_rate": float(q >= threshold),
            "cost": 1 * (1 - p) * q + 3 * p * (1 - q),
        }[name]

    for name in equal:
        for t in range(1, len(parts)):
            rows.append([rate(name, t, b) - rate(name, 0, b) for b in blocks])
            right.append(0.0)
    worth = [parts[t].share * q * q for t, _, q in blocks]
    if selected:
        worth = [selected * parts[t].share * (q >= threshold) for t, _, q in blocks]
    turned = [[parts[t].share * (parts[t].above[i] != (q >= threshold)) for t, i, q in blocks]]
    found = linprog(
        -np.array(worth), A_ub=turned, b_ub=[most_turned], A_eq=np.array(rows), b_eq=right
    )
    return -found.fun if found.status == 0 else None


@given(tables(), st.sampled_from([("fpr", "fnr"), ("fpr",), ("selection_rate",)]))
@settings(max_examples=40, deadline=None)
def test_it_is_the_optimum_of_the_joint_program(table, equal):
    tally = from_counts(table)
    parts = [score_levels(tally, i, 0.5, 64) for i in range(len(tally.groups))]
    assume(not any(((part.p > 0.5 - BELOW) & (part.p < 0.5)).any() for part in parts))
    assume(not any(0.5 - BELOW < part.base_rate < 0.5 for part in parts))
    best = joint_program(parts, 0.5, equal)
    if best is None:
        with pytest.raises(ic.InfeasibleError):
            reconcile(tally, equal=equal)
        return
    try:
        rule = reconcile(tally, equal=equal)
    except ic.InfeasibleError as error:
        # Equal rates can be had, but then nobody can be selected, or everybody must be.
        sign = {"nobody": 1.0, "everybody": -1.0}[error.feasibility.corner.selected]
        most = joint_program(parts, 0.5, equal, selected=sign)
        assert most == pytest.approx(0.0 if sign > 0 else -1.0, abs=1e-9)
    else:
        assert information(rule, tally) == pytest.approx(best, abs=1e-7)


def test_more_outputs_would_not_keep_more_information():
    tally = compas()
    parts = [score_levels(tally, i, 0.5, 64) for i in range(2)]
    found = information(reconcile(tally), tally)
    finer = [*np.linspace(0.01, 0.49, 25), *np.linspace(0.51, 0.99, 25)]
    assert joint_program(parts, 0.5, ("fpr", "fnr"), finer) == pytest.approx(found, abs=1e-8)


def test_the_point_below_the_threshold_costs_little():
    tally = compas()
    parts = [score_levels(tally, i, 0.5, 64) for i in range(2)]
    nearly = joint_program(parts, 0.5, ("fpr", "fnr"), [0.5 - 1e-9])
    found = information(reconcile(tally), tally)
    assert found < nearly < found + BELOW / 10


def test_equal_costs_reach_the_optimum_of_the_joint_program():
    tally = compas()
    parts = [score_levels(tally, i, 0.5, 64) for i in range(2)]
    equal = ("fpr", "fnr", "cost")
    rule = reconcile(tally, equal=equal, cost="weighted:1,3")
    check_invariants(rule, tally)
    after = measured(rule.expected(tally), cost="weighted:1,3")
    assert all(after.disparities[name].difference <= 1e-9 for name in equal)
    assert rule.cost == ic.Cost.weighted(fp=1, fn=3)
    best = joint_program(parts, 0.5, equal, np.delete(np.linspace(0.2, 0.8, 121), 60))
    assert best - 5e-5 < information(rule, tally) <= best + 1e-9


# What must always hold


@given(
    tables(groups=(2, 4), scores=(1, 5)),
    st.lists(st.sampled_from(HARD), min_size=1, unique=True),
    st.sampled_from([0.0, 0.01, 0.2]),
    st.sampled_from([0.1, 0.5, 0.75]),
)
@settings(max_examples=40, deadline=None)
def test_calibrated_and_equal_within_the_tolerance(table, equal, tolerance, threshold):
    tally = from_counts(table)
    rule, allowed = nearest(tally, threshold=threshold, equal=equal, tolerance=tolerance)
    after = check_invariants(rule, tally)
    for name in equal:
        assert after.disparities[name].difference <= allowed + 2e-9


@given(
    tables(groups=(2, 3), scores=(1, 4)),
    st.sampled_from(
        [("generalized_fpr",), ("generalized_fnr",), ("cost",), ("fpr", "cost"), ("fnr", "cost")]
    ),
)
@settings(max_examples=15, deadline=None)
def test_generalized_rates_and_costs(table, equal):
    tally = from_counts(table)
    rule, allowed = nearest(tally, equal=equal, cost="weighted:1,3")
    check_invariants(rule, tally)
    after = measured(rule.expected(tally), cost="weighted:1,3")
    for name in equal:
        assert after.disparities[name].difference <= allowed + 2e-9


@given(tables())
@settings(max_examples=15, deadline=None)
def test_the_smallest_tolerance_is_the_smallest(table):
    tally = from_counts(table)
    try:
        reconcile(tally)
    except ic.InfeasibleError as error:
        smallest = error.feasibility.smallest_tolerance
        assume(error.feasibility.corner is None)
    else:
        assume(False)
    reconcile(tally, tolerance=smallest + 1e-7)
    if smallest > 1e-5:
        with pytest.raises(ic.InfeasibleError):
            reconcile(tally, tolerance=smallest - 1e-6)


@given(tables(), st.integers(2, 5))
@settings(max_examples=15, deadline=None)
def test_a_weight_counts_as_so_many_rows(table, times):
    once = from_counts(table)
    first = next(iter(table))
    repeated = {
        name: [(v, n * times, y * times) for v, n, y in part] if name == first else part
        for name, part in table.items()
    }
    weight = {name: float(times) if name == first else 1.0 for name in table}
    weighted, copied = from_counts(table, weight=weight), from_counts(repeated)
    assert weighted.is_weighted
    assert not once.is_weighted
    (a, wide), (b, wide_too) = (nearest(t) for t in (weighted, copied))
    assert wide == pytest.approx(wide_too, abs=1e-8)
    assert information(a, weighted) == pytest.approx(information(b, copied), abs=1e-8)
    check_invariants(a, weighted)


@pytest.mark.parametrize("groups", [2, 3, 10])
def test_many_groups(groups):
    rng = np.random.default_rng(groups)
    group = np.arange(4000 * groups) % groups
    risk = rng.beta(2 + 0.1 * group, 3)
    label = rng.random(len(risk)) < risk
    score = np.clip(risk + rng.normal(0, 0.1, len(risk)), 0, 1)
    tally = ic.tally({"score": score, "label": label, "group": group})
    rule = reconcile(tally, levels=32)
    after = check_invariants(rule, tally)
    assert after.disparities["fpr"].difference <= 1e-9
    assert after.disparities["fnr"].difference <= 1e-9
    assert all(len(rule.segments(g)) <= 32 for g in rule.groups)


# Nobody selected, or everybody


def selection(tally, rule=None, threshold=0.5):
    audit = measured(tally if rule is None else rule.expected(tally), threshold=threshold)
    return np.array([m.selection_rate for m in audit.groups.values()])


@pytest.mark.parametrize("flip", [False, True])
def test_selecting_nobody_is_infeasible_and_says_which_tolerance_selects(flip):
    met = 0
    for seed in (6, 9, 13, 17, 24):
        tally = drawn(seed, INCOME, ROWS, flip)
        before = selection(tally)
        with pytest.raises(ic.InfeasibleError) as caught:
            reconcile(tally)
        verdict = caught.value.feasibility
        word = "everybody" if flip else "nobody"
        assert not verdict.feasible
        assert verdict.corner.selected == word
        assert f"at 0.5 only if {word} is selected: " in str(caught.value)
        least = float(round_up(verdict.smallest_tolerance))
        assert f"accept tolerance={least:g} or more" in str(caught.value)
        assert all(name in str(caught.value) for name in verdict.corner.groups)
        assert 0.0 < verdict.selecting_tolerance == verdict.smallest_tolerance < 0.1
        # With that tolerance people are selected, and the closest rule keeps half of them.
        rule = reconcile(tally, tolerance=least)
        check_invariants(rule, tally)
        after = selection(tally, rule)
        assert (abs(after - flip) > 0.2 * abs(before - flip)).all()
        with pytest.warns(ic.InfeasibleWarning, match=f"only if {word} is selected. This is"):
            near = reconcile(tally, infeasible="closest")
        check_invariants(near, tally)
        assert (abs(selection(tally, near) - flip) > 0.5 * abs(before - flip) - 1e-6).all()
        assert near.promise.equal["fnr"] == verdict.selecting_tolerance
        odds = measured(near.expected(tally)).equalized_odds_difference
        assert odds == pytest.approx(verdict.selecting_tolerance, abs=2e-9)
        plain = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))
        assert plain["selecting_tolerance"] == verdict.selecting_tolerance
        assert plain["clash"] == list(verdict.corner.groups)
        met += 1
    assert met == 5


def test_no_tolerance_selects_where_no_share_of_positives_reaches_the_threshold():
    a = [(0.2, 200, 40), (0.7, 100, 45)]
    b = [(0.2, 200, 40), (0.7, 100, 70)]
    tally = from_counts({"a": a, "b": b})
    with pytest.raises(ic.InfeasibleError) as caught:
        reconcile(tally)
    assert str(caught.value) == (
        "equal fpr and fnr with calibration: must be possible at the threshold 0.5 with somebody "
        "selected\n"
        "  got:  Not feasible: calibrated scores made from these have equal fpr and fnr at 0.5 "
        "only if nobody is selected: every share of positives in a lies under 0.5.\n"
        "  next: leave that group out, as no tolerance helps; or use more levels=; or choose "
        'another threshold; or pass infeasible="closest": 100 of 300 scores in group a change, 167 '
        "of 300 scores in group b change, and nobody is selected"
    )
    verdict = caught.value.feasibility
    assert math.isnan(verdict.selecting_tolerance)
    assert verdict.corner.groups == ("a",)
    assert verdict.to_dict()["selecting_tolerance"] is None
    assert str(verdict).endswith("No tolerance helps.")
    assert pickle.loads(pickle.dumps(caught.value)).feasibility.corner.groups == ("a",)
    with pytest.warns(ic.InfeasibleWarning, match="only if nobody is selected, as here: every"):
        rule = reconcile(tally, infeasible="closest")
    assert selection(tally, rule).tolist() == [0.0, 0.0]


def test_where_nobody_was_selected_before_nobody_need_be():
    table = {"a": [(0.1, 100, 10), (0.4, 100, 30)], "b": [(0.2, 100, 25), (0.45, 100, 44)]}
    tally = from_counts(table)
    assert selection(tally, reconcile(tally)).tolist() == [0.0, 0.0]
    up = from_counts({g: [(1 - s, n, n - y) for s, n, y in part] for g, part in table.items()})
    assert selection(up, reconcile(up)).tolist() == [1.0, 1.0]


def ratios(parts, threshold):
    """max over groups of the least TPR / FPR, and min over groups of the highest."""
    must = max(threshold / (1 - threshold) * (1 - g.base_rate) / g.base_rate for g in parts)
    best = [float(g.p.max()) for g in parts]
    can = min(
        math.inf if p == 1 else p / (1 - p) * (1 - g.base_rate) / g.base_rate
        for p, g in zip(best, parts, strict=True)
    )
    return must, can


@pytest.mark.parametrize("flip", [False, True])
def test_the_criterion_agrees_with_the_program(flip):
    """Somebody can be selected exactly if a common ratio TPR / FPR can be had."""
    rng = np.random.default_rng(8)
    corners, asked = 0, 0
    while asked < 30:
        rate, groups = rng.choice([0.01, 0.05, 0.1, 0.25, 0.4]), int(rng.integers(2, 5))
        shapes = [(rate * k, (1 - rate) * k) for k in rng.uniform(0.5, 4.0, groups)]
        threshold = float(rng.choice([0.3, 0.5, 0.7]))
        at = round(1 - threshold, 1) if flip else threshold
        try:
            tally = drawn(int(rng.integers(10**6)), shapes, [1500] * groups, flip)
            before = selection(tally, threshold=at)
        except ic.DataError:
            continue
        parts = [score_levels(tally, i, at) for i in range(groups)]
        if flip:
            parts = [replace(g, p=1 - g.p, base_rate=1 - g.base_rate) for g in parts]
        if max(g.base_rate for g in parts) >= threshold or (before == flip).all():
            continue
        asked += 1
        must, can = ratios(parts, threshold)
        # What pools below the threshold lack of it blurs the other side.
        if flip and abs(can / must - 1) < 0.02:
            continue
        if can > must:
            reconcile(tally, threshold=at)
            continue
        corners += 1
        with pytest.raises(ic.InfeasibleError) as caught:
            reconcile(tally, threshold=at)
        assert caught.value.feasibility.corner.selected == ("everybody" if flip else "nobody")
    assert 5 < corners < 27


def test_97_percent_positives():
    tally = drawn(3, [(0.97, 0.03), (9.7, 0.3)], [4000, 4000])
    with pytest.raises(ic.InfeasibleError) as caught:
        reconcile(tally)
    assert caught.value.feasibility.corner.selected == "everybody"
    tally = drawn(3, [(0.97, 0.03), (0.95, 0.05)], [4000, 4000])
    assert (selection(tally, reconcile(tally)) < 0.999).all()


# Closed forms and edges


def test_infeasible_says_the_smallest_tolerance_in_closed_form():
    """Nobody in a can be positive; in b at most 511 positives can hide with 513 negatives."""
    tally = from_counts({"a": [(0.2, 100, 20)], "b": [(0.1, 300, 0), (0.9, 700, 700)]})
    smallest = 1.0 - 300 * 511 / 513 / 700
    with pytest.raises(ic.InfeasibleError) as caught:
        reconcile(tally)
    verdict = caught.value.feasibility
    assert isinstance(verdict, Reconcilability)
    assert not verdict.feasible
    assert verdict.smallest_tolerance == pytest.approx(smallest, abs=1e-8)
    assert str(caught.value) == (
        "equal fpr and fnr with calibration: must be possible at the threshold 0.5\n"
        "  got:  Not feasible: calibrated scores made from these cannot have equal fpr and fnr "
        "at 0.5.\n"
        "  next: accept tolerance=0.5731 or more; or leave a rate out of equal=; or choose "
        'another threshold; or pass infeasible="closest": every one of 1,000 scores in group b '
        "changes, and a difference of 0.5731 remains"
    )
    assert json.loads(json.dumps(verdict.to_dict()))["equal"] == ["fpr", "fnr"]
    assert str(verdict).endswith("It would take tolerance=0.5731.")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.feasibility == verdict


def test_the_closest_warns_notes_and_is_the_closest():
    tally = from_counts({"a": [(0.2, 100, 20)], "b": [(0.1, 300, 0), (0.9, 700, 700)]})
    with pytest.warns(ic.InfeasibleWarning, match=r"closest: the tolerance is 0\.5731\.$") as seen:
        rule = reconcile(tally, infeasible="closest")
    assert seen[0].filename == __file__
    assert rule.notes[0] == str(seen[0].message)
    after = check_invariants(rule, tally)
    smallest = 1.0 - 300 * 511 / 513 / 700
    assert after.disparities["fnr"].difference == pytest.approx(smallest, abs=1e-8)


def test_a_tolerance_per_rate_is_raised_for_each():
    tally = from_counts({"a": [(0.2, 100, 20)], "b": [(0.1, 300, 0), (0.9, 700, 700)]})
    raised = re.escape('tolerance={"fpr": 0.4731, "fnr": 0.5731} or more')
    with pytest.raises(ic.InfeasibleError, match=raised) as e:
        reconcile(tally, tolerance={"fnr": 0.1})
    assert e.value.feasibility.excess == pytest.approx(0.4731, abs=1e-3)


def test_generalized_fpr_fails_by_what_the_theory_says():
    """The lowest cost of the one group against the trivial cost of the other."""
    tally = compas()
    own = reconcile(tally, tolerance=1.0).expected(tally)
    with pytest.raises(ic.InfeasibleError) as caught:
        reconcile(tally, equal="generalized_fpr")
    smallest = feasibility(own, "fpr").smallest_tolerance
    assert caught.value.feasibility.smallest_tolerance == pytest.approx(smallest, abs=1e-8)


def test_a_wide_tolerance_leaves_every_level_its_own_value():
    tally = compas()
    rule = reconcile(tally, tolerance=1.0)
    assert not rule.needs_coin
    for place, group in enumerate(tally.groups):
        values = [segment.rows[0].value for segment in rule.segments(group)]
        assert values == pytest.approx(score_levels(tally, place, 0.5, 64).p.tolist())


def test_tolerance_by_name():
    tally = compas()
    rule = reconcile(tally, tolerance={"fpr": 0.05})
    after = check_invariants(rule, tally)
    assert after.disparities["fnr"].difference <= 1e-9
    assert 1e-3 < after.disparities["fpr"].difference <= 0.05 + 1e-9
    assert information(rule, tally) > information(reconcile(tally), tally)


def test_perfect_scores_stay():
    tally = from_counts({g: [(0.0, n, 0), (1.0, 50, 50)] for g, n in (("a", 60), ("b", 90))})
    rule = reconcile(tally)
    assert not rule.needs_coin
    assert sorted({row.value for row in rule.rows}) == [0.0, 1.0]


def test_identical_groups_keep_their_levels():
    part = [(0.1, 100, 12), (0.4, 90, 30), (0.6, 80, 52), (0.9, 70, 60)]
    rule = reconcile(from_counts({"a": part, "b": part}))
    assert not rule.needs_coin
    assert [row.value for row in rule.rows[:4]] == [0.12, 30 / 90, 0.65, 60 / 70]


def test_constant_scores_become_the_base_rates():
    tally = from_counts({"a": [(0.3, 100, 20)], "b": [(0.3, 100, 40)]})
    rule = reconcile(tally)
    assert [row.value for row in rule.rows] == [0.2, 0.4]
    assert [(row.lo, row.hi) for row in rule.rows] == [(0.0, 0.5)] * 2
    assert "Nobody in a scores at or above 0.5: such scores stay." in rule.notes


def test_a_base_rate_just_below_the_threshold_is_an_output():
    """All of b must be negative, and the mean of b lies between 0.499 and 0.5."""
    tally = from_counts({"a": [(0.2, 100, 20)], "b": [(0.1, 2500, 0), (0.4, 2500, 2499)]})
    rule = reconcile(tally)
    assert [row.value for row in rule.rows if row.group == "b"] == [2499 / 5000] * 2


def test_a_share_that_is_the_threshold_is_positive():
    tally = from_counts({g: [(0.2, 60, 10), (0.7, 70, 35)] for g in "ab"})
    rule = reconcile(tally)
    assert [row.value for row in rule.rows[:2]] == [10 / 60, 0.5]


def test_tiny_groups_do_not_hand_out_labels():
    scores = np.linspace(0.05, 0.95, 18)
    table = [(float(s), 1, int(k % 3 == 0)) for k, s in enumerate(scores)]
    tally = from_counts({"a": table, "b": table})
    with pytest.warns(ic.InfeasibleWarning, match="every share of positives in a lies under 0.5"):
        rule = reconcile(tally, infeasible="closest")
    assert [row.value for row in rule.rows] == [1 / 3] * 4
    assert "A level of a has 9 rows: its share of positives is uncertain." in rule.notes


def test_another_threshold_must_be_an_edge():
    with pytest.raises(ic.UsageError, match="must be an edge of the tally"):
        reconcile(compas(), threshold=0.37)
    tally = compas(edges=(0.37,))
    after = check_invariants(reconcile(tally, threshold=0.37), tally)
    assert after.disparities["fpr"].difference <= 1e-9


def test_a_threshold_near_zero():
    table = {"a": [(0.0001, 4000, 1), (0.3, 100, 30)], "b": [(0.0001, 3000, 2), (0.3, 100, 20)]}
    tally = from_counts(table, edges=(0.0005,))
    rule, _ = nearest(tally, threshold=0.0005)
    check_invariants(rule, tally)


def test_no_output_lies_a_hair_below_the_threshold():
    tally = compas()
    for threshold in (0.3, 0.4, 0.5, 0.6):
        rule, _ = nearest(tally, threshold=threshold, equal="generalized_fpr")
        near = [row.value for row in rule.rows if abs(row.value - threshold) < BELOW / 2]
        assert set(near) <= {threshold}


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 1.0}, "threshold: must be a number strictly between 0 and 1"),
        ({"equal": ()}, "equal: must name rates to be equal, each once, from generalized_fpr"),
        ({"equal": ("fpr", "fpr")}, "equal: must name rates to be equal, each once"),
        ({"equal": ("auc",)}, "  got:  ('auc',)"),
        ({"equal": 3}, "  got:  3"),
        ({"tolerance": -0.1}, "tolerance: must be a number that is at least 0"),
        ({"tolerance": {"fpr": math.nan}}, "tolerance: must be a number that is at least 0"),
        ({"tolerance": {"cost": 0.1}}, "tolerance: must be a number, or name only rates that are"),
        ({"levels": "unseen"}, 'next: use levels="auto", the default'),
        ({"infeasible": "ignore"}, 'infeasible: must be "raise" or "closest"'),
        ({"levels": 1}, "levels: must be a whole number from 2 to 1024"),
        ({"levels": True}, "levels: must be a whole number from 2 to 1024"),
        ({"equal": ("cost",), "cost": "tpr"}, "cost: must be a Cost, or one of"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ic.UsageError) as caught:
        reconcile(compas(), **arguments)
    assert message in str(caught.value)


def test_bad_tallies():
    with pytest.raises(ic.DataError, match="at least two values"):
        reconcile(compas().select(["Caucasian"]))
    with pytest.raises(ic.DataError, match="only 'b'; 'a' has no positives"):
        reconcile(from_counts({"a": [(0.2, 10, 0)], "b": [(0.2, 10, 5)]}))
