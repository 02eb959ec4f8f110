"""Floors, rates that get no worse, monotone maps, and thresholds at which rates can be equal.

The first three against a program written another way.
"""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import isocost as ic
from isocost.examples import compas
from isocost.repairs.lp import BELOW, FLOORS
from isocost.tables import round_up
from tests.conftest import measured
from tests.populations import INCOME, ROWS, drawn, from_counts, tables
from tests.test_reconcile import check_invariants, information, reconcile

T = 0.5


class Program:
    """The program on joint masses of levels and outputs, dense, straight from the counts.

    A group's outputs are the shares of positives of all runs of neighbouring scores, the threshold
    and the point below it.  Variables: the masses, then a tolerance, then a slack.
    """

    def __init__(self, table):
        self.table = table
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

    @staticmethod
    def outputs(part):
        runs = [part[i:j] for i in range(len(part)) for j in range(i + 1, len(part) + 1)]
        means = {sum(r[2] for r in run) / sum(r[1] for r in run) for run in runs}
        return sorted(means | {T, T - BELOW})

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
        """The most information, or the least tolerance or slack; None if there is none."""
        if goal == "information":
            worth = [-c["share"] * c["q"] ** 2 for c in self.columns]
        else:
            worth = [0.0] * self.size
        objective = [*worth, float(goal == "tolerance"), float(goal == "slack")]
        bounds = [(0, None)] * self.size
        bounds.append((0, None) if goal == "tolerance" else (tolerance, tolerance))
        bounds.append((0, None) if goal == "slack" else (slack, slack))
        found = linprog(
            objective, np.array(self.less), self.bound, np.array(self.equal), self.right, bounds
        )
        return abs(found.fun) if found.status == 0 else None


def clear_of_the_threshold(table):
    """Whether no output lies between the threshold and the point below it."""
    values = [q for part in table.values() for q in Program.outputs(part)]
    return not any(T - BELOW < q < T for q in values)


EQUAL = st.sampled_from([("fpr", "fnr"), ("fpr",), ("fnr",)])
REQUESTS = st.fixed_dictionaries(
    {"equal": EQUAL},
    optional={
        "floor": st.dictionaries(
            st.sampled_from(FLOORS), st.sampled_from([0.05, 0.3, 0.6, 0.8]), min_size=1, max_size=2
        ),
        "no_worse": st.just(True),
        "monotone": st.just(True),
    },
)


@given(tables(scores=(1, 4)), REQUESTS)
@settings(max_examples=40, deadline=None)
def test_it_is_the_optimum_of_a_program_written_another_way(table, request):
    assume(clear_of_the_threshold(table))
    tally, program = from_counts(table), Program(table).ask(**request)
    best = program.solve("information")
    try:
        rule = reconcile(tally, **request)
    except ic.InfeasibleError as error:
        verdict = error.feasibility
        if verdict.corner is not None:
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
        try:
            rule, tolerance = reconcile(tally, **request), 0.0
        except ic.InfeasibleError as error:
            tolerance = error.feasibility.smallest_tolerance
            with pytest.warns(ic.InfeasibleWarning):
                rule = reconcile(tally, **request, infeasible="closest")
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


@given(tables(), st.integers(2, 4))
@settings(max_examples=15, deadline=None)
def test_weights_count_as_rows_in_floors(table, times):
    first = next(iter(table))
    repeated = {
        name: [(v, n * times, y * times) for v, n, y in part] if name == first else part
        for name, part in table.items()
    }
    weight = {name: float(times) if name == first else 1.0 for name in table}
    options = {"floor": {"overall_accuracy": 0.7}, "monotone": True}
    found = []
    for tally in (from_counts(table, weight=weight), from_counts(repeated)):
        try:
            found.append(information(reconcile(tally, **options), tally))
        except ic.InfeasibleError as error:
            found.append(error.feasibility.slack)
    assert found[0] == pytest.approx(found[1], abs=1e-7, nan_ok=True)


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


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
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
        ({"levels": "many"}, 'use levels="auto", the default'),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ic.UsageError) as caught:
        reconcile(compas(), **arguments)
    assert message in str(caught.value)


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


def test_perfect_scores_can_be_reconciled_everywhere():
    tally = from_counts({g: [(0.0, n, 0), (1.0, 50, 50)] for g, n in (("a", 60), ("b", 90))})
    found = ic.reconcilable(tally)
    assert len(found.feasible) == 9


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


def test_one_group_is_not_enough():
    with pytest.raises(ic.DataError, match="at least two values"):
        ic.reconcilable(compas().select(["Caucasian"]))
