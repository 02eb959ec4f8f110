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
from isocost.repairs.lp import BELOW, FLOORS, score_levels
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
        # Where no tolerance selects somebody, it is the one that the rule promises.
        return rule, max(rule.promise.equal.values()) if math.isnan(smallest) else smallest


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


# Another formulation

T = 0.5


class Program:
    """The program on joint masses of levels and outputs, dense, straight from the counts.

    A group's outputs are the shares of positives of all runs of neighbouring scores, the threshold
    and the point below it, and others.  Variables: the masses, then a tolerance, then a slack.
    """

    def __init__(self, table, others=()):
        self.table, self.others = table, others
        everybody = sum(n for part in table.values() for _, n, _ in part)
        self.columns = []
        for name, part in table.items():
            total, positives = (sum(row[k] for row in part) for k in (1, 2))
            for i, (score, n, y) in enumerate(part):
                for q in self.outputs(part):
                    self.columns.append(
                        {
                            "group": name, "level": i, "q": q, "p": y / n, "w": n / total,
                            "mu": positives / total, "share": total / everybody, "score": score,
                        }
                    )  # fmt: skip
        self.size = len(self.columns)
        self.equal, self.right, self.less, self.bound = [], [], [], []
        for name, part in table.items():
            total = sum(n for _, n, _ in part)
            for i, (_, n, _) in enumerate(part):
                self.add_equal(lambda c, i=i, g=name: (c["group"], c["level"]) == (g, i), n / total)
            for q in self.outputs(part):
                self.add_equal(
                    lambda c, q=q, g=name: (c["p"] - q) * ((c["group"], c["q"]) == (g, q)), 0.0
                )

    def outputs(self, part):
        runs = [part[i:j] for i in range(len(part)) for j in range(i + 1, len(part) + 1)]
        means = {sum(r[2] for r in run) / sum(r[1] for r in run) for run in runs}
        return sorted({*means, T, T - BELOW, *self.others})

    def add_equal(self, value, right):
        self.equal.append([*(float(value(c)) for c in self.columns), 0.0, 0.0])
        self.right.append(right)

    def add_less(self, row, bound, tolerance=0.0, slack=0.0):
        self.less.append([*row, -tolerance, -slack])
        self.bound.append(bound)

    def rate(self, name, group=None):
        """What each mass adds to a rate of a group, or of everybody."""
        row = []
        mean = sum({c["group"]: c["share"] * c["mu"] for c in self.columns}.values())
        for c in self.columns:
            p, positive, mu = c["p"], c["q"] >= T, c["mu"] if group else mean
            value = {
                "fpr": positive * (1 - p) / (1 - mu),
                "fnr": (not positive) * p / mu,
                "tpr": positive * p / mu,
                "tnr": (not positive) * (1 - p) / (1 - mu),
                "selection_rate": float(positive),
                "accuracy": p if positive else 1 - p,
                "cost": (1 - p) * c["q"] + 3 * p * (1 - c["q"]),
            }[name]
            row.append(value * (c["group"] == group if group else c["share"]))
        return np.array(row)

    def now(self, name, group):
        sides = {"fpr": (0, 1), "fnr": (1, 0)}[name]
        counts = np.zeros((2, 2))
        for score, n, y in self.table[group]:
            counts[:, int(score >= T)] += (n - y, y)
        return counts[sides] / counts[sides[0]].sum()

    def ask(self, equal, floor=None, no_worse=False, monotone=False):
        for name in equal:
            for a in self.table:
                for b in self.table:
                    self.add_less(self.rate(name, a) - self.rate(name, b), 0.0, tolerance=1.0)
                if no_worse:
                    self.add_less(self.rate(name, a), self.now(name, a), slack=1.0)
        for name, least in (floor or {}).items():
            short = name.removeprefix("overall_")
            for group in [None] if short != name else self.table:
                self.add_less(-self.rate(short, group), -least, slack=1.0)
        if monotone:
            for group, part in self.table.items():
                for low in range(len(part)):
                    for high in range(low + 1, len(part)):
                        for cut in self.outputs(part):
                            self.add_less(self.fall(group, low, high, cut), 0.0)
        return self

    def fall(self, group, low, high, cut):
        """P(q >= cut) of one level, not necessarily the neighbour, less that of a higher one."""
        row = np.zeros(self.size)
        for k, c in enumerate(self.columns):
            if c["group"] == group and c["q"] >= cut:
                row[k] = ((c["level"] == low) - (c["level"] == high)) / c["w"]
        return row

    def solve(self, goal, tolerance=0.0, slack=0.0):
        """The most of something, or the least tolerance or slack; None if there is none."""
        worth = [
            -c["share"]
            * {"information": c["q"] ** 2, "everybody": c["q"] < T, "nobody": c["q"] >= T}.get(
                goal, 0.0
            )
            for c in self.columns
        ]
        objective = [*worth, float(goal == "tolerance"), float(goal == "slack")]
        bounds = [(0, None)] * self.size
        bounds.append((0, None) if goal == "tolerance" else (tolerance, tolerance))
        bounds.append((0, None) if goal == "slack" else (slack, slack))
        found = linprog(
            objective, np.array(self.less), self.bound, np.array(self.equal), self.right, bounds
        )
        return abs(found.fun) if found.status == 0 else None


def table_of(tally):
    """{group: [(score, rows, positives), ...]} of a tally with few different scores."""
    table = {}
    for place, group in enumerate(tally.groups):
        cells = tally.cells.take(tally.cells.of_group(place))
        bins = [cells.take(cells.bin == bin_) for bin_ in np.unique(cells.bin)]
        table[group] = [(b.wh.sum() / b.w.sum(), b.n.sum(), b.n @ b.label) for b in bins]
    return table


SIDES = {"nobody": "everybody", "everybody": "nobody"}


def least_of_corner(program, table, word):
    """The least tolerance with which every group selects, or leaves out, half as many; or NaN.

    Half as many as before, or as calibrated scores of the group alone can.  Adds to the program.
    """
    for group, part in table.items():
        before = sum(n for score, n, _ in part if (score >= T) == (word == "nobody"))
        before /= sum(n for _, n, _ in part)
        most = Program({group: part}).ask(("fpr",)).solve(word)
        least = 0.5 * (min(before, most) if most > 1e-9 else before)
        rate = program.rate("selection_rate", group)
        if word == "nobody":
            program.add_less(-rate, -least)
        else:
            program.add_less(rate, 1.0 - least)
    found = program.solve("tolerance")
    return math.nan if found is None else found


EQUAL = st.sampled_from([("fpr", "fnr"), ("fpr",), ("fnr",), ("selection_rate",)])
REQUESTS = st.fixed_dictionaries(
    {"equal": EQUAL},
    optional={
        "floor": st.dictionaries(
            st.sampled_from(FLOORS), st.sampled_from([0.05, 0.3, 0.6, 0.8]), min_size=1, max_size=2
        ),
        "no_worse": st.just(True),
        "monotone": st.just(True),
    },
).filter(lambda request: "no_worse" not in request or request["equal"] != ("selection_rate",))


@given(tables(scores=(1, 4)), REQUESTS)
@settings(max_examples=60, deadline=None)
def test_it_is_the_optimum_of_a_program_written_another_way(table, request):
    tally, program = from_counts(table), Program(table)
    assume(not any(T - BELOW < column["q"] < T for column in program.columns))
    program.ask(**request)
    best = program.solve("information")
    try:
        rule = reconcile(tally, **request)
    except ic.InfeasibleError as error:
        verdict = error.feasibility
        if verdict.corner is not None:
            if len(request) == 1:
                least = least_of_corner(program, table, verdict.corner.selected)
                both = least_of_corner(program, table, SIDES[verdict.corner.selected])
                assert verdict.smallest_tolerance == pytest.approx(
                    least, abs=1e-7, nan_ok=True
                ) or (verdict.smallest_tolerance == pytest.approx(both, abs=1e-7, nan_ok=True))
            return
        # Rounding may call what is met to 1e-9 either.
        assert best is None or program.solve("tolerance") < 1e-8
        least = program.solve("tolerance")
        if least is None:
            assert math.isnan(verdict.smallest_tolerance)
        else:
            assert verdict.smallest_tolerance == pytest.approx(least, abs=1e-7)
        slack = program.solve("slack") if request.get("floor") or "no_worse" in request else 0.0
        assert (
            math.isnan(verdict.slack)
            if slack is None
            else (verdict.slack == pytest.approx(slack, abs=1e-7))
        )
        return
    assert best is not None
    assert information(rule, tally) == pytest.approx(best, abs=1e-7)


def test_finer_outputs_would_not_keep_more_information():
    table, finer = table_of(compas()), (*np.linspace(0.01, 0.49, 25), *np.linspace(0.51, 0.99, 25))
    plain, more = (Program(table, others).ask(("fpr", "fnr")) for others in ((), finer))
    assert more.solve("information") == pytest.approx(plain.solve("information"), abs=1e-8)


@pytest.mark.parametrize(
    ("equal", "others", "least", "most"),
    [
        # The point below the threshold costs little.
        (("fpr", "fnr"), (0.5 - 1e-9,), 1e-12, BELOW / 10),
        (("fpr", "fnr", "cost"), np.delete(np.linspace(0.2, 0.8, 121), 60), -1e-9, 5e-5),
    ],
)
def test_other_outputs_would_keep_little_more_information(equal, others, least, most):
    tally = compas()
    rule = reconcile(tally, equal=equal, cost="weighted:1,3")
    check_invariants(rule, tally)
    after = measured(rule.expected(tally), cost="weighted:1,3")
    assert all(after.disparities[name].difference <= 1e-9 for name in equal)
    assert rule.cost == (ic.Cost.weighted(fp=1, fn=3) if "cost" in equal else None)
    best = Program(table_of(tally), others).ask(equal).solve("information")
    assert least < best - information(rule, tally) < most


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
        if error.feasibility.corner is not None:
            return
    else:
        return
    reconcile(tally, tolerance=smallest + 1e-7)
    if smallest > 1e-5:
        with pytest.raises(ic.InfeasibleError):
            reconcile(tally, tolerance=smallest - 1e-6)


@given(
    tables(),
    st.integers(2, 5),
    st.sampled_from([{}, {"floor": {"overall_accuracy": 0.7}, "monotone": True}]),
)
@settings(max_examples=30, deadline=None)
def test_a_weight_counts_as_so_many_rows(table, times, request):
    first = next(iter(table))
    repeated = {
        name: [(v, n * times, y * times) for v, n, y in part] if name == first else part
        for name, part in table.items()
    }
    weight = {name: float(times) if name == first else 1.0 for name in table}
    weighted, copied = from_counts(table, weight=weight), from_counts(repeated)
    assert (weighted.is_weighted, copied.is_weighted) == (True, False)
    (a, wide), (b, wide_too) = (nearest(t, **request) for t in (weighted, copied))
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


def test_a_group_of_which_nobody_can_be_selected_is_named_at_any_tolerance():
    """Others can be selected, so that a rule within the tolerance exists; but nobody of a."""
    a = [(0.2, 200, 40), (0.7, 100, 45)]
    b = [(0.2, 200, 40), (0.7, 100, 70)]
    tally = from_counts({"a": a, "b": b})
    for tolerance in (0.01, 0.9):
        with pytest.raises(
            ic.InfeasibleError, match="every share of positives in a lies"
        ) as caught:
            reconcile(tally, tolerance=tolerance)
        assert caught.value.feasibility.corner.groups == ("a",)
    assert "only if nobody in a is selected: every" in str(caught.value)
    with pytest.warns(ic.InfeasibleWarning, match="only if nobody in a is selected, as here"):
        rule = reconcile(tally, tolerance=0.9, infeasible="closest")
    assert selection(tally, rule)[0] == 0.0
    assert rule.promise.equal == {"fpr": 0.9, "fnr": 0.9}


def few_above():
    """Three groups: of the few in c at or above the threshold a part is mostly positive."""
    rng, table = np.random.default_rng(1), {}
    for group, (rows, low) in {"a": (600, 2.0), "b": (600, 3.0)}.items():
        scores = np.unique(rng.beta(1.5, low, rows).round(3))
        table[group] = [(float(h), 3, int(rng.binomial(3, h))) for h in scores]
    c = [(0.05 + 0.004 * k, 1, int(k % 6 == 0)) for k in range(85)]
    table["c"] = [*c, (0.52, 2, 1), (0.55, 2, 1), (0.9, 1, 0)]
    return from_counts(table)


def test_a_level_is_cut_out_for_a_group_of_which_nobody_could_be_selected():
    tally = few_above()
    plain, cut = (score_levels(tally, 2, 0.5, selecting=one) for one in (False, True))
    assert plain.p[plain.above].tolist() == [0.4]
    assert list(zip(cut.n[cut.above], cut.p[cut.above], strict=True)) == [(4.0, 0.5), (1.0, 0.0)]
    assert (plain.n[~plain.above] == cut.n[~cut.above]).all()
    rule, _ = nearest(tally)
    assert (selection(tally, rule) > 0.0).all()
    assert "A level of c has 1 rows: its share of positives is uncertain." in rule.notes


@pytest.mark.parametrize("make", [few_above, lambda: drawn(6, INCOME, ROWS)])
def test_the_tolerance_that_is_named_works_and_less_does_not(make):
    tally = make()
    with pytest.raises(ic.InfeasibleError) as caught:
        reconcile(tally)
    least = caught.value.feasibility.smallest_tolerance
    assert (selection(tally, reconcile(tally, tolerance=float(round_up(least)))) > 0.0).all()
    for less in (0.98 * least, 0.5 * least):
        with pytest.raises(ic.InfeasibleError) as caught:
            reconcile(tally, tolerance=less)
        assert caught.value.feasibility.smallest_tolerance == pytest.approx(least, abs=1e-8)


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
        parts = [score_levels(tally, i, at, selecting=True) for i in range(groups)]
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


# Closed forms and edges


APART = from_counts({"a": [(0.2, 100, 20)], "b": [(0.1, 300, 0), (0.9, 700, 700)]})
SMALLEST = 1.0 - 300 * 511 / 513 / 700
"""Nobody in a can be positive; in b at most 511 positives can hide with 513 negatives."""


def test_infeasible_says_the_smallest_tolerance_in_closed_form():
    with pytest.raises(ic.InfeasibleError) as caught:
        reconcile(APART)
    verdict = caught.value.feasibility
    assert isinstance(verdict, Reconcilability)
    assert not verdict.feasible
    assert verdict.smallest_tolerance == pytest.approx(SMALLEST, abs=1e-8)
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
    with pytest.warns(ic.InfeasibleWarning, match=r"closest: the tolerance is 0\.5731\.$") as seen:
        rule = reconcile(APART, infeasible="closest")
    assert seen[0].filename == __file__
    assert rule.notes[0] == str(seen[0].message)
    after = check_invariants(rule, APART)
    assert after.disparities["fnr"].difference == pytest.approx(SMALLEST, abs=1e-8)


def test_a_tolerance_per_rate_is_raised_for_each():
    raised = re.escape('tolerance={"fpr": 0.4731, "fnr": 0.5731} or more')
    with pytest.raises(ic.InfeasibleError, match=raised) as e:
        reconcile(APART, tolerance={"fnr": 0.1})
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
    assert len(ic.reconcilable(tally).feasible) == 9


FOUR = [(0.1, 100, 12), (0.4, 90, 30), (0.6, 80, 52), (0.9, 70, 60)]


@pytest.mark.parametrize(
    ("table", "values"),
    [
        # Groups that are the same keep their levels.
        ({"a": FOUR, "b": FOUR}, [0.12, 30 / 90, 0.65, 60 / 70] * 2),
        # All of b must be negative, and the mean of b lies between 0.499 and 0.5.
        (
            {"a": [(0.2, 100, 20)], "b": [(0.1, 2500, 0), (0.4, 2500, 2499)]},
            [0.2, 2499 / 5000, 2499 / 5000],
        ),
        # A share that is the threshold is positive.
        ({g: [(0.2, 60, 10), (0.7, 70, 35)] for g in "ab"}, [10 / 60, 0.5] * 2),
    ],
)
def test_levels_whose_scores_are_certain(table, values):
    rule = reconcile(from_counts(table))
    assert not rule.needs_coin
    assert [row.value for row in rule.rows] == values


def test_constant_scores_become_the_base_rates():
    tally = from_counts({"a": [(0.3, 100, 20)], "b": [(0.3, 100, 40)]})
    rule = reconcile(tally)
    assert [row.value for row in rule.rows] == [0.2, 0.4]
    assert [(row.lo, row.hi) for row in rule.rows] == [(0.0, 0.5)] * 2
    assert "Nobody in a scores at or above 0.5: such scores stay." in rule.notes


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


# Floors, rates that get no worse, and monotone maps


def check_request_is_met(rule, tally, tolerance, equal, floor=None, no_worse=False, monotone=False):
    before, after = measured(tally), check_invariants(rule, tally)
    for name in equal:
        assert after.disparities[name].difference <= tolerance + 2e-9
        for group, m in after.groups.items():
            assert not no_worse or m[name] <= before.groups[group][name] + 2e-9
    for name, least in (floor or {}).items():
        short = name.removeprefix("overall_")
        numbers = [after.overall] if short != name else after.groups.values()
        assert all(m[short] >= least - 2e-9 for m in numbers)
    if monotone:
        assert not any(rule.reversals.values())


@given(tables(groups=(2, 6), scores=(1, 6)), REQUESTS)
@settings(max_examples=30, deadline=None)
def test_what_was_asked_for_holds(table, request):
    tally = from_counts(table)
    try:
        rule, tolerance = reconcile(tally, **request), 0.0
    except ic.InfeasibleError as error:
        tolerance = error.feasibility.smallest_tolerance
        assume(not math.isnan(tolerance))
        with pytest.warns(ic.InfeasibleWarning):
            rule = reconcile(tally, **request, infeasible="closest")
        assert rule.promise.equal == pytest.approx(dict.fromkeys(request["equal"], tolerance))
    check_request_is_met(rule, tally, tolerance, **request)


@given(tables(groups=(2, 3), scores=(1, 4)), REQUESTS)
@settings(max_examples=20, deadline=None)
def test_the_largest_floor_and_the_smallest_tolerance_can_be_had(table, request):
    tally = from_counts(table)
    try:
        reconcile(tally, **request)
    except ic.InfeasibleError as error:
        verdict = error.feasibility
    else:
        assume(False)
    assume(verdict.corner is None)
    if not math.isnan(verdict.smallest_tolerance):
        assert solvable(tally, **request, tolerance=verdict.smallest_tolerance + 1e-7)
    if verdict.largest_floor and not verdict.request.no_worse:
        lower = {name: max(0.0, least - 1e-7) for name, least in verdict.largest_floor.items()}
        assert solvable(tally, **{**request, "floor": lower})
        higher = {name: min(1.0, least + 1e-5) for name, least in verdict.largest_floor.items()}
        assert not solvable(tally, **{**request, "floor": higher})


def solvable(tally, **request):
    """Whether there is a solution, be it that nobody or everybody is selected."""
    try:
        reconcile(tally, **request)
    except ic.InfeasibleError as error:
        return error.feasibility.corner is not None
    return True


# What it says


def test_a_floor_that_cannot_be_had():
    with pytest.raises(ic.InfeasibleError) as caught:
        reconcile(compas(), floor={"accuracy": 0.65})
    verdict = caught.value.feasibility
    assert math.isnan(verdict.smallest_tolerance)
    # Nobody can do better than deciding every level by its share of positives, which they do now.
    best = measured(compas()).groups["African-American"].accuracy
    assert verdict.largest_floor == {"accuracy": pytest.approx(best, abs=1e-9)}
    assert str(caught.value) == (
        "equal fpr and fnr with calibration: must be possible at the threshold 0.5\n"
        "  got:  Not feasible: calibrated scores made from these cannot have equal fpr and fnr at "
        "0.5 with accuracy of at least 0.65.\n"
        '  next: accept floor={"accuracy": 0.6417} or less; or choose another threshold; or pass '
        'infeasible="closest": every one of 3,696 scores in group African-American changes, every '
        "one of 2,454 scores in group Caucasian changes, and floors are 0.0083 lower"
    )
    assert str(verdict).endswith('It would take floor={"accuracy": 0.6417}.')
    assert json.loads(json.dumps(verdict.to_dict(), allow_nan=False))["floor"] == {"accuracy": 0.65}
    assert pickle.loads(pickle.dumps(caught.value)).feasibility.slack == verdict.slack
    note = "This is the closest: floors are 0.0083 lower, and the tolerance is 0.0000."
    with pytest.warns(ic.InfeasibleWarning, match=note):
        rule = reconcile(compas(), floor={"accuracy": 0.65}, infeasible="closest")
    check_request_is_met(rule, compas(), 1e-8, ("fpr", "fnr"), {"accuracy": best - 1e-8})


def test_a_floor_that_takes_a_tolerance():
    floor = {"overall_accuracy": 0.65}
    with pytest.raises(ic.InfeasibleError) as caught:
        reconcile(compas(), floor=floor)
    verdict = caught.value.feasibility
    assert 0.0 < verdict.smallest_tolerance < 0.2
    assert 0.64 < verdict.largest_floor["overall_accuracy"] < 0.65
    assert (
        f"accept tolerance={round_up(verdict.smallest_tolerance)} or more; or accept floor="
        in str(caught.value)
    )
    assert "with accuracy of at least 0.65 overall." in str(caught.value)
    rule = reconcile(compas(), floor=floor, tolerance=float(round_up(verdict.smallest_tolerance)))
    check_request_is_met(
        rule, compas(), float(round_up(verdict.smallest_tolerance)), ("fpr", "fnr"), floor
    )


def test_no_rate_worse_on_compas():
    """Both rates cannot fall in both groups at once: each is on its own best curve."""
    with pytest.raises(ic.InfeasibleError, match="with no rate worse than now") as caught:
        reconcile(compas(), no_worse=True)
    now = measured(compas())
    assert caught.value.feasibility.smallest_tolerance == pytest.approx(
        now.equalized_odds_difference, abs=1e-8
    )
    assert "or leave out no_worse=True" in str(caught.value)
    rule = reconcile(compas(), equal="fnr", no_worse=True)
    after = measured(rule.expected(compas()))
    lowest = min(m.fnr for m in now.groups.values())
    assert [m.fnr for m in after.groups.values()] == pytest.approx([lowest, lowest], abs=1e-9)


def test_scores_that_are_not_calibrated_cannot_keep_their_selection():
    """Nobody of a is above the threshold in truth, so its FNR becomes 1 whatever the tolerance."""
    tally = from_counts({"a": [(0.2, 100, 10), (0.7, 100, 40)], "b": [(0.2, 90, 9), (0.7, 80, 60)]})
    with pytest.raises(ic.InfeasibleError) as caught:
        reconcile(tally, no_worse=True, equal="fnr")
    verdict = caught.value.feasibility
    assert math.isnan(verdict.smallest_tolerance)
    assert verdict.largest_floor == {}
    assert str(verdict).endswith("No tolerance helps.")
    with pytest.warns(ic.InfeasibleWarning, match=r"rates get worse by up to 0\.8000, and the"):
        reconcile(tally, no_worse=True, equal="fnr", infeasible="closest")


@pytest.mark.parametrize("shapes", [[(0.02, 1.2), (0.03, 1.5)], [(2.0, 0.06), (1.2, 0.04)]])
def test_one_percent_and_97_percent_positives(shapes):
    tally = drawn(5, shapes, [20_000, 9_000])
    for request in ({"monotone": True}, {"floor": {"accuracy": 0.9}}):
        rule, tolerance = nearest(tally, **request)
        check_request_is_met(rule, tally, tolerance, ("fpr", "fnr"), **request)


def test_six_unequal_groups_with_a_floor_select_somebody():
    for seed in (6, 9):
        tally = drawn(seed, INCOME, ROWS)
        floor = {"selection_rate": 0.02}
        with pytest.raises(ic.InfeasibleError) as caught:
            reconcile(tally, floor=floor)
        tolerance = caught.value.feasibility.smallest_tolerance
        assert caught.value.feasibility.corner is None
        assert 0.0 < tolerance < 0.1
        with pytest.warns(ic.InfeasibleWarning):
            rule = reconcile(tally, floor=floor, monotone=True, infeasible="closest")
        check_request_is_met(rule, tally, 1.0, ("fpr", "fnr"), floor, monotone=True)
        rule = reconcile(tally, floor=floor, tolerance=tolerance + 1e-7)
        check_request_is_met(rule, tally, tolerance + 1e-7, ("fpr", "fnr"), floor)


# Monotone maps


def test_maps_that_turn_the_order_around_are_counted():
    """Shares of positives fall from 0.6 to 0.55 above the threshold: one reversal each."""
    part = [(0.1, 100, 12), (0.6, 100, 60), (0.8, 100, 55)]
    tally = from_counts({"a": part, "b": part})
    rule = reconcile(tally)
    assert rule.reversals == {"a": 1, "b": 1}
    assert rule.notes[-1] == (
        "From a level to the next higher one of its group the score may fall, at 2 places; "
        "monotone=True rules that out."
    )
    rule = reconcile(tally, monotone=True)
    assert rule.reversals == {"a": 0, "b": 0}
    assert not any("may fall" in note for note in rule.notes)
    assert [row.value for row in rule.rows[:2]] == [0.12, 0.575]


def test_shares_that_fall_across_the_threshold_are_pooled():
    """People below the threshold come true more often, so both sides get one score."""
    part = [(0.2, 100, 10), (0.4, 100, 70), (0.6, 100, 50)]
    rule = reconcile(from_counts({"a": part, "b": part}), monotone=True)
    assert [row.value for row in rule.rows[:3]] == [0.1, pytest.approx(0.6), pytest.approx(0.6)]


def test_pooling_may_leave_nobody_out():
    part = [(0.4, 100, 70), (0.6, 100, 50)]
    tally = from_counts({"a": part, "b": part})
    with pytest.raises(ic.InfeasibleError) as caught:
        reconcile(tally, monotone=True)
    assert "with no lower output for a higher score only if everybody is selected." in str(
        caught.value
    )
    assert "  next: use more levels=, as no tolerance helps; or choose another" in str(caught.value)


def test_the_same_coin_never_gives_less_for_more():
    tally = compas()
    rule = reconcile(tally, monotone=True)
    scores = np.linspace(0.0, 1.0, 201)
    for group in tally.groups:
        for person in range(40):
            ids = np.full(len(scores), person)
            data = {"score": scores, "group": np.full(len(scores), group), "id": ids}
            assert (np.diff(rule.apply(data, id="id")["repaired_score"]) >= 0.0).all()


# At which thresholds rates can be equal


@pytest.fixture(scope="module")
def found():
    return ic.reconcilable(compas())


def test_it_says_what_reconcile_does(found):
    tally = compas()
    for point in found.points:
        try:
            rule = ic.reconcile(tally, point.threshold)
        except ic.InfeasibleError as error:
            assert not point.feasible
            verdict = error.feasibility
            assert point.selected == verdict.corner.selected
            assert point.tolerance == pytest.approx(verdict.smallest_tolerance, nan_ok=True)
            continue
        after = measured(rule.expected(tally), threshold=point.threshold)
        if not point.feasible:
            # Nobody, or everybody, is selected now, and there is no other way.
            assert after.overall.selection_rate in (0.0, 1.0)
            continue
        assert point.tolerance == 0.0
        rates = {group: m.selection_rate for group, m in after.groups.items()}
        assert point.selection_rates == pytest.approx(rates, abs=1e-9)
        assert point.accuracy == pytest.approx(after.overall.accuracy, abs=1e-9)
        assert point.lowest - 1e-9 <= point.selection_rate <= point.highest + 1e-9


def test_the_ends_of_what_is_possible_can_be_had(found):
    point = next(point for point in found.points if point.threshold == 0.5)
    highest = ic.reconcile(compas(), floor={"overall_selection_rate": point.highest - 1e-6})
    rate = measured(highest.expected(compas())).overall.selection_rate
    assert rate == pytest.approx(point.highest, abs=2e-6)
    with pytest.raises(ic.InfeasibleError):
        ic.reconcile(compas(), floor={"overall_selection_rate": point.highest + 1e-4})


def test_compas(found):
    assert found.feasible == (0.4, 0.5, 0.6, 0.7)
    by_threshold = {point.threshold: point for point in found.points}
    assert by_threshold[0.3].selected == "everybody"
    assert 0.0 < by_threshold[0.3].tolerance < 0.001
    assert by_threshold[0.9].selected == "nobody"
    assert math.isnan(by_threshold[0.9].tolerance)
    header, rows = found.table()
    assert header[:3] == ["threshold", "equal rates", "least tolerance"]
    assert [row[1] for row in rows][3:5] == ["yes", "yes"]
    assert rows[-1][1:4] == ["only if nobody", "-", "-"]
    assert repr(found).startswith("Calibrated scores with equal fpr and fnr, by threshold\n")
    assert "<table" in found._repr_html_()
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["points"][-1]["tolerance"] is None
    assert plain["points"][4]["selection_rates"][1][0] == "Caucasian"


def test_more_groups_and_limits():
    tally = drawn(6, INCOME, ROWS)
    free, bound = (
        ic.reconcilable(tally, [0.3, 0.5], floor=floor) for floor in (None, {"accuracy": 0.7})
    )
    header, _ = free.table()
    assert header[-3:] == ["least selected", "most selected", "accuracy"]
    for a, b in zip(free.points, bound.points, strict=True):
        assert not b.tolerance < a.tolerance - 1e-9 or a.selected
    assert not free.points[1].feasible
    assert free.points[1].selected == "nobody"
    assert free.points[1].tolerance > 0.0
    assert min(free.points[1].selection_rates.values()) > 0.0


def test_a_floor_that_no_tolerance_meets_is_no():
    point = ic.reconcilable(compas(), 0.5, floor={"accuracy": 0.9}).points[0]
    assert (point.feasible, point.selected, point.answer) == (False, None, "no")
    assert math.isnan(point.tolerance)
    assert np.isnan(list(point.selection_rates.values())).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"thresholds": []}, "thresholds: must be at least one number"),
        ({"thresholds": [0.0]}, "thresholds: must be a number strictly between 0 and 1"),
        ({"thresholds": [0.123]}, "must be an edge of the tally"),
        ({"equal": "auc"}, "equal: must name rates"),
    ],
)
def test_bad_arguments_of_reconcilable(arguments, message):
    with pytest.raises(ic.UsageError, match=message):
        ic.reconcilable(compas(), **arguments)


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
        (
            {"floor": 0.1},
            "floor: must be a mapping from rates to numbers; a floor can be of tpr, tnr, sel",
        ),
        ({"floor": {"ppv": 0.1}}, "  got:  {'ppv': 0.1}"),
        ({"floor": {"fpr": 0.1}}, "to keep error rates from rising use no_worse=True"),
        ({"floor": {"accuracy": 1.5}}, "floor of accuracy: must be a number in [0, 1]"),
        ({"floor": {"accuracy": "0.5"}}, "floor of accuracy: must be a number in [0, 1]"),
        ({"no_worse": 1}, "no_worse: must be True or False"),
        (
            {"no_worse": True, "equal": "selection_rate"},
            "no_worse: can be True only if equal= has a rate that can get worse",
        ),
        ({"monotone": "yes"}, "monotone: must be True or False"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ic.UsageError) as caught:
        reconcile(compas(), **arguments)
    assert message in str(caught.value)
