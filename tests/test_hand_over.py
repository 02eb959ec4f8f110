"""Handing over: everything equal for the decided, the least share proven, everything rules have."""

import json
import math
import warnings
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array

import isocost as ic
from isocost.errors import speaking
from isocost.examples import compas
from isocost.readings import SHELL
from isocost.repairs.hand_over import DeferralProgram, assigned
from isocost.repairs.lp import ScoreLevels, score_levels
from isocost.repairs.review import explained
from isocost.rules import Row
from isocost.tables import round_up
from tests.conftest import measured, sample
from tests.populations import from_counts


def make(tally, share=0.25, **options):
    """Without asking whether the data support it, which takes longer than the rule."""
    return ic.REPAIRS["hand_over"].rule(tally, ic.Question(min_group=0), share=share, **options)


RATES = ("fpr", "fnr", "ppv", "npv", "selection_rate", "accuracy", "base_rate", "brier")


def plain_program(groups, outputs, share=None):
    """The program as it is written down, with a variable per level and output: (shares, value).

    Without a share the least one is looked for.
    """
    entries, right, upper, at, row, most = [], [], [], 0, 0, []
    count = len(outputs)
    masses = sum(len(w) for w, _ in groups) * count
    for w, p in groups:
        level, output = np.divmod(np.arange(len(w) * count), count)
        column = at + np.arange(len(level))
        upper.append((len(most) + level, column))
        most += list(w)
        entries.append((row + output, column, p[level] - outputs[output]))
        entries.append((row + count + output, column, np.ones(len(level))))
        entries.append((row + count + np.arange(count), masses + np.arange(count), -np.ones(count)))
        at, row = at + len(level), row + 2 * count
    right = np.zeros(row)
    if share is not None:
        entries.append((np.full(count, row), masses + np.arange(count), np.ones(count)))
        right = np.append(right, 1.0 - share)
    i, j, x = (np.concatenate(each) for each in zip(*entries, strict=True))
    k, column = (np.concatenate(each) for each in zip(*upper, strict=True))
    width = masses + count
    costs = np.zeros(width)
    costs[masses:] = -1.0 if share is None else -(outputs**2)
    found = linprog(
        costs,
        A_ub=coo_array((np.ones(len(k)), (k, column)), shape=(len(most), width)).tocsr(),
        b_ub=most,
        A_eq=coo_array((x, (i, j)), shape=(len(right), width)).tocsr(),
        b_eq=right,
    )
    assert found.status == 0
    return found.x[masses:], -found.fun


def levels_of(w, p, share=0.5):
    edges = np.linspace(0.0, 1.0, len(p) + 1)
    n = np.full(len(p), 100.0)
    return ScoreLevels(edges[:-1], edges[1:], p >= 0.5, n, w, p, share, float(w @ p))


@pytest.fixture(scope="module")
def compas_rule():
    return ic.hand_over(compas(), share=0.25)


def spread(tally, name, threshold=0.5):
    return float(np.ptp(ic.MEASURES[name].of(tally.kinds(threshold))))


# What it promises


def test_compas_as_the_prototype_found_it(compas_rule):
    after = compas_rule.expected(compas())
    for group, m in ic.audit(after, confidence=None).groups.items():
        found = [m.fpr, m.fnr, m.ppv, m.npv, m.base_rate]
        wanted = [0.21908, 0.56091, 0.62625, 0.62480, 0.45535]
        np.testing.assert_allclose(found, wanted, atol=1e-5, err_msg=group)
        assert m.calibration_gap < 1e-9
    assert after.shares_handed_over == pytest.approx(dict.fromkeys(compas().groups, 0.25), abs=1e-9)
    least = ic.hand_over(compas(), "least").expected(compas())
    assert least.share_handed_over == pytest.approx(0.230985, abs=1e-6)
    # As much is lost of what the scores say, and the note says so.
    assert explained(after) < explained(compas())
    assert "25.00% of people are handed over" in compas_rule.notes[0]
    assert "51.1% of African-American" in compas_rule.notes[1]


def random_tally(seed, groups, rows, weighted):
    random = np.random.default_rng(seed)
    group = random.integers(0, groups, rows)
    truth = np.clip(random.beta(1.5 + 0.4 * group, 3.0), 0.01, 0.99)
    data = {"label": (random.random(rows) < truth).astype(int), "group": group}
    # Scores of few values, and not calibrated.
    data["score"] = np.round(truth**1.3 * 12) / 12
    data["weight"] = random.gamma(3.0, 1.0, rows) + 0.1
    return ic.tally(data, weight="weight" if weighted else None)


@given(st.integers(0, 10**6), st.integers(2, 5), st.booleans())
@settings(max_examples=10, deadline=None)
def test_everything_is_equal_at_every_threshold(seed, groups, weighted):
    """The theorem: one base rate of the decided, and calibration and equal rates agree."""
    tally = random_tally(seed, groups, 2_000, weighted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ic.IsocostWarning)
        least = make(tally, share="least")
        smallest = least.expected(tally).share_handed_over
        rule = make(tally, share=min(smallest + 0.1, 0.98))
    for made in (least, rule):
        after = made.expected(tally)
        assert np.ptp(list(after.shares_handed_over.values())) < 1e-9
        outputs = {row.value for row in made.rows if row.value is not None}
        for threshold in (0.25, 0.5, 0.7):
            for name in RATES:
                values = ic.MEASURES[name].of(after.kinds(threshold))
                assert np.isnan(values).all() or np.ptp(values) < 1e-9, (name, threshold)
        for index in range(groups):
            cells = after.cells.take(after.cells.of_group(index))
            for bin_ in np.unique(cells.bin):
                mine = cells.take(cells.bin == bin_)
                positive = (mine.w * mine.label).sum()
                assert abs(positive - mine.wh.sum()) < 1e-9 * after.cells.w.sum()
        assert len(outputs) <= 129
    if smallest > 0.02:
        with pytest.raises(ic.InfeasibleError) as error:
            make(tally, share=smallest - 0.01)
        found = error.value.feasibility
        assert found.smallest_share == pytest.approx(smallest, abs=1e-9)
        # The dual proves it: no smaller share is enough.
        assert found.bound == pytest.approx(found.smallest_share, abs=1e-9)
        assert found.to_dict()["smallest_share"] == found.smallest_share


@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(2, 6))
@settings(max_examples=20, deadline=None)
def test_the_convex_order_is_the_plain_program(seed, groups, size):
    random = np.random.default_rng(seed)
    people = [
        (random.dirichlet(np.ones(size)), np.sort(random.random(size))) for _ in range(groups)
    ]
    outputs = np.unique(np.concatenate([p for _, p in people]))
    levels = [levels_of(w, p, 1.0 / groups) for w, p in people]
    program = DeferralProgram(levels, outputs)
    _, decided = plain_program(people, outputs)
    found = program.fewest()
    if found is None:
        assert decided < 0.01 + 1e-9
        return
    assert found.decided == pytest.approx(decided, abs=1e-8)
    share = 1.0 - decided * 0.9
    best = program.informed(1.0 - share)
    _, information = plain_program(people, outputs, share)
    assert -best.value * (1.0 - share) == pytest.approx(information, abs=1e-8)
    assert best.value == pytest.approx(best.bound, abs=1e-9)
    for (w, p), one in zip(people, levels, strict=True):
        given_ = assigned(one, outputs, best.weights[0], 1.0 - share)
        mass = given_ * w[:, None]
        assert given_.min() >= 0.0
        assert given_.sum(axis=1).max() <= 1.0 + 1e-9
        np.testing.assert_allclose(mass.sum(axis=0), best.weights[0] * (1 - share), atol=1e-9)
        np.testing.assert_allclose(p @ mass, outputs * mass.sum(axis=0), atol=1e-12)


def test_the_least_share_of_two_levels_by_hand():
    # Scores 0 and 1 are certain; half of one group and 0.8 of the other are positive.  Among the
    # decided the base rate m must be the same: 0.5 / S positives at most, 0.2 / S negatives.
    w = [np.array([0.5, 0.5]), np.array([0.2, 0.8])]
    p = np.array([0.0, 1.0])
    found = DeferralProgram([levels_of(each, p) for each in w], p).fewest()
    assert found.decided == pytest.approx(0.7)
    assert 1.0 / found.bound == pytest.approx(0.7)


def small_tally(seed, groups):
    random = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), 300)
    rates = random.uniform(0.2, 0.8, groups)[group]
    truth = random.beta(4.0 * rates, 4.0 * (1.0 - rates))
    data = {"label": (random.random(len(group)) < truth).astype(int), "group": group}
    return ic.tally({**data, "score": np.clip(np.round(truth * 5) / 5, 0.1, 0.9)})


def test_a_tolerance_hands_over_fewer():
    rule = make(compas(), "least", tolerance=0.02)
    assert rule.expected(compas()).share_handed_over < 0.22
    assert rule.promise.equal["selection_rate"] <= 0.04


def test_no_share_is_enough_for_groups_that_have_no_score_in_common():
    rows = {"score": [0.1, 0.9], "group": ["a", "b"], "label": [0, 1]}
    repeated = {name: np.repeat(values, 200) for name, values in rows.items()}
    # A few of each group are the other label, so that both have one.
    repeated["label"] = np.where(np.arange(400) % 200 < 4, 1 - repeated["label"], repeated["label"])
    tally = ic.tally(repeated)
    with pytest.raises(ic.InfeasibleError, match="whatever share is handed over") as error:
        make(tally, "least")
    found = error.value.feasibility
    assert (found.feasible, found.bound) == (False, math.inf)
    assert math.isnan(found.smallest_share)
    assert found.to_dict()["bound"] is None
    # The tolerance that it names is enough, and a smaller one is not.
    least = found.smallest_tolerance
    assert f"use tolerance={round_up(least).rstrip('0')} or more" in str(error.value)
    assert make(tally, "least", tolerance=least).rows
    with pytest.raises(ic.InfeasibleError):
        make(tally, "least", tolerance=least - 0.002)


def test_the_least_share_is_certified():
    rule = make(compas(), "least")
    wanted = "Linear programs prove that no share below 23.10% is enough."
    assert rule.notes[-1] == wanted
    same = make(compas(), "least", tolerance=1.0)
    assert same.notes[-1] == "Nobody has to be handed over for this."


def test_the_closest_where_the_share_is_too_small():
    with pytest.warns(ic.InfeasibleWarning, match="Handing over 0.1 is not enough"):
        rule = ic.hand_over(compas(), 0.1, infeasible="closest")
    assert rule.expected(compas()).share_handed_over == pytest.approx(0.230985, abs=1e-6)
    # The least is 0.230985, and a little less is not enough.
    with pytest.raises(ic.InfeasibleError, match=r"at least 23\.10%"):
        make(compas(), 0.2309)
    with pytest.raises(ic.InfeasibleError) as error:
        ic.hand_over(compas(), 0.1)
    assert str(error.value) == (
        "share: must be at least 0.2310 for one distribution of scores among the decided\n"
        "  got:  0.1; not feasible: at least 23.10% must be handed over\n"
        '  next: hand over more, or use share="least"; or ask for less with tolerance='
    )
    with speaking(SHELL), pytest.raises(ic.InfeasibleError) as error:
        ic.hand_over(compas(), 0.1)
    assert str(error.value).endswith(
        "hand over more, or use --share least; or ask for less with --tolerance"
    )


def test_it_says_when_the_decided_are_not_those_who_matter():
    random = np.random.default_rng(3)
    n = 4_000
    group = np.repeat(["a", "b"], n // 2)
    truth = np.where(random.random(n) < np.where(group == "a", 0.3, 0.02), 0.9, 0.1)
    data = {"score": truth, "label": random.random(n) < truth, "group": group}
    with pytest.warns(
        ic.DeferralWarning, match="the group a, .* of those selected so far are handed"
    ):
        rule = ic.hand_over(ic.tally(data), share=0.3)
    assert "says little about them" in rule.notes[0]
    assert any(
        "says little about them" in note for note in rule.handed_over(ic.tally(data)).notes()
    )


def test_many_levels_and_groups_in_time():
    data = sample(200_000, groups=4, seed=2)
    tally = ic.tally(data)
    for share in ("least", 0.4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ic.IsocostWarning)
            rule = make(tally, share, levels=128)
        assert min(row.probability for row in rule.rows) > 1e-12
        after = rule.expected(tally)
        assert max(spread(after, name) for name in RATES) < 1e-9
    assert len(score_levels(tally, 0, 0.5, 128)) > 100


# Everything that rules have


def test_who_is_handed_over_is_marked(compas_rule):
    rows = sample(3_000, groups=2, seed=4)
    rows["group"] = np.array(compas().groups)[rows["group"]]
    wanted = compas_rule.apply(rows, handed_over="gone", changed="new", id="id")
    gone = np.isnan(wanted["repaired_score"])
    np.testing.assert_array_equal(gone, wanted["gone"])
    assert wanted["new"][gone].all()
    assert 0.05 < gone.mean() < 0.6
    assert "NULL: this person is handed over" in compas_rule.to_sql(id="id")
    with pytest.raises(ic.UsageError, match="handed_over: must differ from the column"):
        compas_rule.apply(rows, handed_over="repaired_score", id="id")


def test_who_was_handed_over_is_counted(compas_rule, tmp_path, monkeypatch):
    rows = sample(3_000, groups=2, seed=4, weighted=True)
    rows["group"] = np.array(compas().groups)[rows["group"]]
    out = compas_rule.apply(rows, id="id", output="score")
    counted = ic.tally(out, weight="weight", handed_over=True)
    assert counted.n + sum(n for n, _, _ in counted.handed_over.values()) == 3_000
    gone = np.isnan(out["score"])
    for group, (n, w, w2) in counted.handed_over.items():
        mine = rows["weight"][gone & (rows["group"] == group)]
        assert (n, w, w2) == pytest.approx((len(mine), mine.sum(), (mine**2).sum()))
    lazy = pl.DataFrame({**out, "score": pl.Series(out["score"]).fill_nan(None)}).lazy()
    for data in (pd.DataFrame(out), lazy, lazy.collect(), duckdb.from_arrow(lazy.collect())):
        assert ic.tally(data, weight="weight", handed_over=True) == counted
    arrays = {name: out[name] for name in ("score", "label", "group", "weight")}
    assert ic.tally(**arrays, handed_over=True) == counted
    assert counted.handed_over.keys() == set(compas().groups)
    # It goes along wherever a tally goes.
    assert ic.Tally.from_json(counted.to_json()) == counted
    twice = counted + counted
    assert twice.share_handed_over == pytest.approx(counted.share_handed_over)
    assert counted.select(["Caucasian"]).handed_over.keys() == {"Caucasian"}
    one = counted.relabel({"Caucasian": "x", "African-American": "x"})
    assert one.share_handed_over == pytest.approx(counted.share_handed_over)
    expected = compas_rule.expected(ic.tally(rows, weight="weight"))
    assert expected.share_handed_over == pytest.approx(counted.share_handed_over, abs=0.03)
    assert ic.Tally.from_json(expected.to_json()) == expected
    assert "handed over" in repr(expected)
    assert "handed over" in repr(ic.audit(expected, confidence=None))
    assert ic.audit(expected, confidence=None).to_dict()["handed_over"]["overall"] > 0
    # Files too, whatever the labels of people handed over, and batches that are all without scores.
    frame = pd.DataFrame(out).astype({"label": object})
    frame.loc[gone, "label"] = None
    frame.to_csv(tmp_path / "out.csv", index=False)
    frame.astype({"label": float}).to_parquet(tmp_path / "out.parquet")
    for name in ("out.csv", "out.parquet"):
        assert ic.tally(tmp_path / name, weight="weight", handed_over=True) == counted
    for data in (tmp_path / "out.csv", out, lazy):
        with pytest.raises(ic.DataError, match=r"count them with .*handed_over=True"):
            ic.tally(data, weight="weight")
    table = pa.Table.from_pandas(frame.sort_values("score")).drop(["id"])
    monkeypatch.setattr("isocost.engines.frames._ROWS_AT_ONCE", 100)
    assert ic.tally(table.to_reader(50), weight="weight", handed_over=True) == counted
    nobody = table.filter(pa.compute.is_null(table["score"]))
    pd.DataFrame(out)[gone].to_csv(tmp_path / "nobody.csv", index=False)
    for nothing in (nobody, nobody.to_reader(50), pl.from_arrow(nobody).lazy(), "nobody.csv"):
        data = tmp_path / nothing if isinstance(nothing, str) else nothing
        with pytest.raises(ic.DataError, match="rows, all without one"):
            ic.tally(data, handed_over=True)
    # A positive label that is named is looked for among the others.
    named = pd.DataFrame(out).assign(label=np.where(gone, "?", np.where(out["label"], "y", "n")))
    named.to_csv(tmp_path / "named.csv", index=False)
    for data in (named, tmp_path / "named.csv", pl.from_pandas(named).lazy()):
        found = ic.tally(data, weight="weight", handed_over=True, positive="y")
        assert found == counted


@pytest.mark.parametrize(
    "wrong", [[["a", 1]], 3, [["a", 1, 1, 0]], [["a", 1, 9, 1]], [["a", 2, 2, 2]] * 2]
)
def test_a_tally_that_says_nonsense_about_the_handed_over(wrong):
    content = {**compas().to_dict(), "handed_over": wrong}
    with pytest.raises(ic.DataError, match="handed over"):
        ic.Tally.from_dict(content)


def test_json_and_its_version(compas_rule):
    content = compas_rule.to_dict()
    assert content["version"] == 1
    assert ic.Rule.from_json(compas_rule.to_json()) == compas_rule
    assert compas_rule.promise.handed_over == pytest.approx(dict.fromkeys(compas().groups, 0.25))
    content["promise"]["handed_over"] = [["Caucasian", 2]]
    with pytest.raises(ic.RuleError, match="rule promise handed_over"):
        ic.Rule.from_json(json.dumps(content))
    with pytest.raises(ic.RuleError, match="must be null for the action defer"):
        ic.Rule(("a",), (Row("a", 0.0, 1.0, "defer", 0.5, 1.0),), "by hand")


def test_rules_in_one(compas_rule):
    tally = compas()
    first = ic.recalibrate(tally, "isotonic")
    second = ic.hand_over(first.expected(tally), share=0.3)
    both = first.then(second, tally)
    assert both.expected(tally).shares_handed_over == pytest.approx(
        dict.fromkeys(tally.groups, 0.3), abs=1e-9
    )
    assert max(spread(both.expected(tally), name) for name in ("fpr", "fnr", "ppv")) < 1e-9
    names = {"African-American": "all", "Caucasian": "all"}
    assert compas_rule.expected(tally).relabel(names).share_handed_over == pytest.approx(0.25)
    nobody = ic.Rule(tally.groups, tuple(Row(g, 0.0, 1.0, "defer", None, 1.0)
        for g in tally.groups), "nobody")  # fmt: skip
    with pytest.raises(ic.UsageError, match="everybody is handed over"):
        nobody.expected(tally)
    # One group may be gone as a whole.
    half = ic.Rule(tally.groups, nobody.rows[:1], "half").expected(tally)
    assert half.groups == ("Caucasian",)
    assert half.shares_handed_over == {"Caucasian": 0.0, "African-American": 1.0}


def test_a_group_that_nobody_is_decided_about():
    tally = small_tally(0, 3)
    gone = (Row(2, 0.0, 1.0, "defer", None, 1.0),)
    rule = ic.Rule(tally.groups, gone, "by hand")
    after = rule.expected(tally)
    said = "nobody of 2 is decided about"
    assert said in ic.audit(after, confidence=None).headline()
    two = tally.select([1, 2])
    alone = ic.Rule(two.groups, gone, "by hand")
    for refused in (
        lambda: ic.compare(tally, [rule]),
        lambda: ic.compare(two, [alone]),
        lambda: ic.audit(alone.expected(two)),
        lambda: ic.watch(alone, [alone.expected(two)]),
        lambda: ic.report_html(ic.audit(tally, confidence=None), rules={"mine": rule}),
    ):
        with pytest.raises(ic.DataError, match="got:  nobody of 2: all are handed over"):
            refused()


def test_compared_planned_watched_and_unseen(compas_rule):
    compared = ic.compare(compas(), [compas_rule, ic.reconcile(compas())])
    handed = [one.changes.handed_over for one in compared.rules.values()]
    assert handed == pytest.approx([0.0, 0.25, 0.0])
    assert "handed over" in repr(compared)
    after = compas_rule.expected(compas())
    quiet = ic.watch(compas_rule, [after] * 3, tolerance=0.02)
    assert not quiet.alarm
    assert quiet.periods[0].handed_over == pytest.approx(0.25)
    twice = {g: (2 * n, 2 * w, 2 * w2) for g, (n, w, w2) in after.handed_over.items()}
    more = replace(after, handed_over=twice)
    loud = ic.watch(compas_rule, [after, more, more], tolerance=0.02)
    assert {alarm.claim.kind for alarm in loud.alarms} == {"handed_over"}
    assert loud.first_alarm == "period 2"
    assert "are handed over than promised since period 2: 40.00% instead of 25.00%" in str(
        loud.alarms[0]
    )
    unknown = ic.Tally(after.grid, after.groups, after.cells)
    assert "not watched" in " ".join(ic.watch(compas_rule, [unknown]).notes)
    found = ic.unseen(compas(), compas_rule, remakes=10)
    assert found.rate_difference.fitted < 1e-9 < found.rate_difference.expected < 0.06
    assert found.handed_over.fitted == pytest.approx(0.25)
    assert "handed over" in repr(found)


def test_frontier_along_the_share():
    found = ic.frontier(compas(), method="hand_over", points=3)
    shares = [point.share for point in found.points]
    assert shares[0] == pytest.approx(0.230985, abs=1e-6)
    assert shares == sorted(shares)
    frame = found.to_frame(backend="dict")
    assert {"share", "information", "accuracy", "fpr", "fnr", "ppv", "npv"} <= set(frame)
    assert found.to_dict()["points"][0]["share"] == shares[0]


# The people handed over


def test_the_handed_over_are_people_too(compas_rule):
    found = ic.handed_over(compas_rule, compas())
    whole = compas().totals.w
    after = compas_rule.expected(compas())
    gone = compas_rule.deferred(compas())
    for index, (group, one) in enumerate(found.groups.items()):
        mine = gone.take(gone.of_group(index))
        assert one.base_rate == pytest.approx((mine.w * mine.label).sum() / mine.w.sum())
        # Decided and handed over make up the group.
        parts = after.totals.w[index] + [mine.w[mine.label == y].sum() for y in (0, 1)]
        np.testing.assert_allclose(parts, whole[index])
        assert one.of_positives == pytest.approx(1 - after.totals.w[index, 1] / whole[index, 1])
        # A reviewer with these rates makes the whole what the target says.
        for label, rate in enumerate(found.target):
            decided = after.totals.w[index, label]
            got = (
                decided * one.decided[label]
                + (whole[index, label] - decided) * one.must_reach[label]
            )
            assert got / whole[index, label] == pytest.approx(rate, abs=1e-9)
            assert one.low[label] <= rate <= one.high[label]
        assert 0.2 < np.nanmax(one.scores) <= 1.0
        assert ic.MEASURES["fpr"].of(compas().kinds(0.5))[index] == found.before[group][0]
    assert found.possible == (True, True)
    assert found.differences("score")[0] > 0.15 > found.differences("perfect")[1]
    assert json.loads(found.to_json())["share"] == pytest.approx(0.25)
    assert len(found.to_frame(backend="pandas")) == 2
    assert "handed over" in repr(found)
    with pytest.raises(ic.UsageError, match="must hand people over"):
        ic.handed_over(ic.withhold(compas(), "fpr", 0.07), compas())


def test_a_reviewer_with_the_score_applied_to_rows():
    """Rates of whole groups, counted from rows, if the old score decides about the others."""
    rows = sample(4_000, groups=2, seed=9)
    tally = ic.tally(rows)
    rule = ic.Rule((0, 1), (
        Row(0, 0.0, 0.5, "defer", None, 0.5), Row(0, 0.0, 0.5, "set", 0.2, 0.5),
        Row(1, 0.5, 1.0, "defer", None, 1.0),
    ), "by hand")  # fmt: skip
    found = ic.handed_over(rule, tally)
    for group in (0, 1):
        mine = rows["group"] == group
        negative = mine & (rows["label"] == 0)
        # Nobody changes sides here: the whole with the score is the score itself.
        assert found.whole["score"][group][0] == pytest.approx(
            (rows["score"][negative] >= 0.5).mean()
        )
    (unequal,) = (note for note in found.warnings() if "unequally" in note)
    assert unequal.startswith(f"Groups bear it unequally: {found.share:.1%} of all people are")
    # All of group 1 at or above 0.5 are handed over, so that somebody must decide about them.
    assert found.groups[1].of_selected == 1.0
    assert found.groups[1].decided == (0.0, 1.0)
    assert any("says little" in note for note in found.notes())


# Levels of 4,000 people for whom the solver's weights were 2.6e-11 off: (score, people, positives).
BRINK = {
    "a": [
        (0.017, 126, 1), (0.053, 127, 6), (0.094, 126, 14), (0.143, 126, 21), (0.194, 128, 22),
        (0.242, 125, 30), (0.296, 125, 34), (0.354, 127, 44), (0.442, 225, 108), (0.532, 126, 62),
        (0.603, 125, 76), (0.672, 125, 77), (0.742, 125, 81), (0.824, 125, 114), (0.934, 139, 129),
    ],
    "b": [
        (0.006, 128, 0), (0.022, 127, 1), (0.047, 125, 6), (0.08, 125, 11), (0.113, 127, 16),
        (0.145, 126, 13), (0.185, 126, 31), (0.233, 126, 35), (0.281, 126, 29), (0.335, 125, 39),
        (0.433, 245, 112), (0.542, 126, 60), (0.632, 125, 71), (0.84, 243, 204),
    ],
}  # fmt: skip


@pytest.mark.parametrize("infeasible", ["raise", "closest"])
def test_weights_that_the_solver_leaves_a_little_off_still_make_a_rule(infeasible):
    tally = from_counts(BRINK)
    rule = make(tally, "least", infeasible=infeasible)
    after = measured(rule.expected(tally))
    for name in RATES:
        values = [getattr(m, name) for m in after.groups.values()]
        assert np.ptp(values) <= 1e-9, name
    assert max(m.calibration_gap for m in after.groups.values()) <= 1e-9
    shares = list(rule.expected(tally).shares_handed_over.values())
    assert shares == pytest.approx([0.103835, 0.103835], abs=1e-6)


def test_an_error_of_the_solver_names_the_repair():
    one = score_levels(from_counts(BRINK), 0, 0.5)
    with pytest.raises(ic.IsocostError, match=r"^hand_over: .*\n.*scores that nobody can get"):
        assigned(one, np.array([0.99]), np.array([1.0]), 0.9)
