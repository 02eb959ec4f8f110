import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isocost as ic
from isocost.examples import compas
from isocost.measures import rates
from isocost.plots.plane import (
    PlaneDisplay,
    crossing,
    ellipse,
    ellipse_axes,
    level_curve,
    rate_variances,
    trivial_point,
)
from tests.conftest import DATA, sample
from tests.populations import base_rates, costs

matplotlib = pytest.importorskip("matplotlib", reason='needs pip install "isocost[plot]"')

NAMES = [
    "African-American", "Asian", "Caucasian", "Hispanic", "Other $x_1$ <script>",
    "Native American or Alaska Native, alone or in any combination, of any ancestry",
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_global_state():
    """Whatever is drawn, matplotlib is left as it was."""
    import matplotlib.pyplot as plt

    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before
    assert plt.get_fignums() == []


def income():
    tally = ic.Tally.load(DATA / "income.json")
    return tally.relabel({0.0: "men", 1.0: "women"})


def six(seed=3):
    random = np.random.default_rng(seed)
    group = random.integers(0, 6, 3000)
    mu = np.array([0.52, 0.42, 0.40, 0.38, 0.36, 0.46])[group]
    score = random.beta(3 * mu, 3 * (1 - mu))
    return (random.random(3000) < score).astype(int), score, np.array(NAMES)[group]


def boxes(texts):
    return [text.get_window_extent() for text in texts]


def check_labels(display, but=0):
    """No two labels overlap, none leaves the axes; ``but`` texts are written along a line."""
    display.figure_.draw_without_rendering()
    frame = display.ax_.get_window_extent()
    found = boxes(display.texts_[but:])
    for place, box in enumerate(found):
        assert box.x0 >= frame.x0 - 1, display.texts_[but + place].get_text()
        assert box.x1 <= frame.x1 + 1, display.texts_[but + place].get_text()
        assert box.y0 >= frame.y0 - 1
        assert box.y1 <= frame.y1 + 1
        for other in found[:place]:
            assert not box.overlaps(other)


def test_what_is_drawn_for_compas():
    tally = compas()
    display = PlaneDisplay.from_tally(tally, cost="fpr")
    found = ic.feasibility(tally, "fpr")
    assert display.costs.tolist() == pytest.approx(list(found.costs.values()))
    assert display.trivial_costs.tolist() == pytest.approx(list(found.trivial_costs.values()))
    assert display.target_cost == found.target_cost
    for group, mu, far in zip(tally.groups, display.base_rates, display.unreachable, strict=True):
        assert crossing(float(mu), "fpr", found.target_cost).reachable == (not far)
        assert far == (group in found.unreachable)
    sums = tally.totals
    assert trivial_point(0.25) == (0.25, 0.75)
    for place, mu in enumerate(rates.base_rate(sums)):
        circle = np.asarray(display.circles_[place].get_offsets()[0])
        assert circle == pytest.approx(
            [rates.generalized_fpr(sums)[place], rates.generalized_fnr(sums)[place]]
        )
        assert display.lines_[place].get_xydata() == pytest.approx(np.array([[0, 0], [mu, 1 - mu]]))
        assert display.trivials_[place].get_xydata()[0] == pytest.approx([mu, 1 - mu])
    assert display.diagonal_.get_xydata().sum(axis=1) == pytest.approx(1.0)
    (level,) = display.levels_
    assert level.get_xdata() == pytest.approx(display.target_cost)
    assert level.get_linestyle() == "--"
    # What is out of reach is drawn past the end of its line.
    (beyond,) = display.beyond_
    start, end = beyond.get_xydata()
    assert start == pytest.approx(display.trivials_[1].get_xydata()[0])
    assert end == pytest.approx(crossing(start[0], "fpr", display.target_cost).point)
    assert end.sum() > 1
    assert level.get_ydata().max() > end[1], "the level is drawn as far as the cross"
    assert display.ax_.get_aspect() == 1.0
    texts = " ".join(text.get_text() for text in display.texts_)
    assert "African-American\ncosts 0.447" in texts
    assert "Caucasian\ncosts 0.360" in texts
    assert "Caucasian:\nat most 0.394" in texts
    title = display.ax_.get_title(loc="left").replace("\n", " ")
    assert title.startswith(
        "People who turned out negative were given an average score of 45\u00a0%"
    )
    check_labels(display, but=1)


def test_arrows_lead_from_before_to_after():
    tally = income()
    rules = {"one": ic.withhold(tally, "fpr"), "two": ic.equalize_odds(tally)}
    display = PlaneDisplay.from_tally(tally, rules, limits=(0.3, 0.6, 0.0, 0.3))
    assert display.cost == ic.Cost.fpr()
    for name, rule in rules.items():
        sums = rule.expected(tally).totals
        expected = np.column_stack([rates.generalized_fpr(sums), rates.generalized_fnr(sums)])
        moved = np.abs(expected - display.points).max(axis=1) > 1e-9
        drawn = np.vstack([np.asarray(m.get_offsets()) for m in display.diamonds_[name]])
        assert drawn == pytest.approx(expected[moved])
    assert len(display.diamonds_["one"]) == 1
    assert len(display.diamonds_["two"]) == 2
    (arrow,) = display.arrows_["one"]
    assert arrow.xyann == pytest.approx(display.points[0])
    assert arrow.xy == pytest.approx(np.asarray(display.diamonds_["one"][0].get_offsets()[0]))
    check_labels(display)


def test_rules_at_the_same_place_share_a_label():
    tally = income()
    rules = [ic.withhold(tally, "fpr"), ic.coarsen(tally, "fpr")]
    display = PlaneDisplay.from_tally(tally, rules)
    assert "withhold, coarsen" in [text.get_text() for text in display.texts_]


def test_six_groups_with_long_and_hostile_names():
    display = PlaneDisplay.from_predictions(*six())
    texts = [text.get_text() for text in display.texts_]
    assert sum("costs 0." in text for text in texts) == 6
    assert any("Other $x_1$ <script>" in text for text in texts)
    assert any("Native American or Alaska" in text and "..." in text for text in texts)
    assert len({line.get_color() for line in display.lines_}) == 6
    check_labels(display, but=1)


def test_points_that_nearly_coincide_have_labels_apart():
    display = PlaneDisplay(
        ["a", "b", "c", "d"], [0.3, 0.301, 0.3, 0.299], [0.3, 0.3, 0.301, 0.3], [0.5] * 4
    ).plot()
    check_labels(display, but=1)


def test_from_points_alone_as_a_panel():
    from matplotlib.figure import Figure

    left, right = Figure(figsize=(8, 4)).subplots(1, 2)
    display = PlaneDisplay(
        ("men", "women"), [0.1, 0.05], [0.4, 0.45], [0.3, 0.1], "fnr",
        after={"mixed": [[0.12, 0.45], [0.05, 0.45]]},
    )  # fmt: skip
    assert display.ellipse_axes is None
    for ax in (left, right):
        display.plot(ax, labels=False, title="calibrated", limits=(0, 0.5, 0.2, 0.7))
        assert display.ax_ is ax
        assert display.figure_ is ax.figure
        assert ax.get_xlim() == (0, 0.5)
        assert ax.get_ylim() == (0.2, 0.7)
        assert ax.get_title(loc="left") == "calibrated"
        assert display.texts_ == []
    assert len(display.diamonds_["mixed"]) == 1


def test_every_part_can_be_left_out():
    display = PlaneDisplay.from_tally(
        income(),
        [ic.equalize_odds(income())],
        level=False, ellipses=False, arrows=False, circles=False, title="",
        labels="groups",
    )  # fmt: skip
    assert display.levels_ == display.ellipses_ == display.circles_ == []
    assert display.arrows_ == {"odds": []}
    assert display.ax_.get_title(loc="left") == ""
    assert len(display.texts_) == 2


def test_ellipses_are_as_wide_as_the_intervals():
    display = PlaneDisplay.from_tally(compas())
    for patch, centre, axes in zip(
        display.ellipses_, display.points, display.ellipse_axes, strict=True
    ):
        xy = patch.get_xy()
        assert xy.max(axis=0) == pytest.approx(centre + axes)
        assert xy.min(axis=0) == pytest.approx(centre - axes)
    for place, found in enumerate(ic.audit(compas(), replicates=0).groups.values()):
        low, high = found.intervals["generalized_fnr"]
        # One rate alone needs 1.96 standard errors, two together 2.45.
        width = (high - low) / 2 * 2.4477 / 1.96
        assert display.ellipse_axes[place, 1] == pytest.approx(width, rel=0.01)


def test_levels_of_any_cost():
    display = PlaneDisplay.from_tally(compas(), cost="fpr", levels=[0.2, ("weighted:1,1", 0.3)])
    display.plot()
    first, second = display.levels_
    assert first.get_xdata() == pytest.approx(0.2)
    x, y = second.get_xydata().T
    assert 1 / x + 1 / y == pytest.approx(2 / 0.3)


def test_a_cost_per_group_has_a_level_per_group():
    cost = ic.Cost(fp={"African-American": 1.0, "Caucasian": 2.0}, fn=0.0)
    display = PlaneDisplay.from_tally(compas(), cost=cost)
    ours = [line.get_xdata()[0] for line in display.levels_]
    assert ours == pytest.approx([display.target_cost, display.target_cost / 2])
    assert display.levels_[1].get_color() == display.lines_[1].get_color()


def test_the_title_is_the_headline_of_the_audit():
    rng = np.random.default_rng(0)
    score = rng.beta(2, 3, 120)
    data = {"score": score, "label": rng.random(120) < score, "group": np.arange(120) % 2}
    display = PlaneDisplay.from_tally(ic.tally(data), cost="fpr")
    assert display.verdict.endswith("It is not established that this is more than chance.")
    bare = PlaneDisplay.from_tally(ic.tally(data), cost="fpr", confidence=None)
    assert "average score of 34.82\u00a0% if group 1, 34.72\u00a0% if group 0." in bare.verdict
    assert PlaneDisplay.from_tally(ic.tally(data), cost="fpr", confidence=0.9999).verdict


def test_verdicts():
    same = PlaneDisplay(["a", "b"], [0.2, 0.3], [0.3, 0.3], [0.6, 0.5])
    assert (
        same.verdict
        == "People who turned out positive were given the same average score in every group, as "
        "measured."
    )
    possible = PlaneDisplay(["a", "b"], [0.2, 0.3], [0.2, 0.3], [0.5, 0.5])
    assert possible.verdict == (
        "People who turned out positive were given an average score of only 70\u00a0% if group b, "
        "80\u00a0% if group a. That can be made equal, but only by making scores worse for group a."
    )
    assert PlaneDisplay(["a"], [0.2], [0.2], [0.5]).verdict == ""


def test_wrong_numbers_are_refused():
    with pytest.raises(ic.UsageError) as error:
        PlaneDisplay(["a", "b"], [0.2], [0.3, 0.3], [0.6, 0.5])
    assert str(error.value) == (
        "generalized_fpr: must be 2 numbers in [0, 1], a row per group\n"
        "  got:  shape (1,)\n"
        "  next: pass rates in the order of groups"
    )
    with pytest.raises(ic.UsageError, match="base_rates: must be 1 numbers"):
        PlaneDisplay(["a"], [0.2], [0.3], [1.6])


POPULATIONS = {
    "two-rare": ((0.01, 0.015), None),
    "five": ((0.25, 0.28, 0.3, 0.33, 0.36), ("Donaudampfschifffahrtsgesellschaft", *NAMES[:4])),
    "five-frequent": ((0.97, 0.965, 0.96, 0.975, 0.955), None),
    "one-far-away": ((0.02, 0.03, 0.025, 0.028, 0.9), None),
    "eight": (np.linspace(0.25, 0.36, 8), None),
    "twelve": (np.linspace(0.95, 0.98, 12), None),
    "forty": (np.linspace(0.1, 0.4, 40), None),
}


def population(rates_of, names):
    random = np.random.default_rng(0)
    score = np.concatenate([random.beta(4 * mu, 4 * (1 - mu), 2000) for mu in rates_of])
    group = np.repeat(names or [f"group {place}" for place in range(len(rates_of))], 2000)
    return ic.tally({"score": score, "label": random.random(len(score)) < score, "group": group})


def far(box, point):
    """How far a point is from a box, in pixels."""
    x, y = point
    return np.hypot(max(box.x0 - x, 0, x - box.x1), max(box.y0 - y, 0, y - box.y1))


@pytest.mark.parametrize("name", POPULATIONS)
def test_groups_are_named_beside_their_marks_or_tied_to_them(name):
    tally = population(*POPULATIONS[name])
    display = PlaneDisplay.from_tally(tally, cost="fpr", confidence=None).plot()
    if len(tally.groups) > 8:
        check_rows(display)
        return
    check_labels(display, but=1)
    marks = display.ax_.transData.transform(display.points)
    ties = {note.xy for note in display.ax_.texts if note.get_text() == "" and note.arrow_patch}
    named = {note.xy: note for note in display.texts_[1:] if "\ncosts " in note.get_text()}
    for place, point in enumerate(map(tuple, display.points)):
        away = [far(named[point].get_window_extent(), mark) for mark in marks]
        assert away[place] == min(away) or point in ties


def check_rows(display):
    """Every group has a row with its name, in each of both diagrams; no two names overlap."""
    display.figure_.draw_without_rendering()
    for measure, panel in display.rows_.axes_.items():
        shown = [label.get_text() for label in panel.get_yticklabels()]
        assert sorted(shown) == sorted(display.names)
        found = boxes(panel.get_yticklabels())
        assert all(above.y0 >= below.y1 - 1 for above, below in pairwise(found))
        side = 0 if measure == "generalized_fpr" else 1
        values = display.points[[display.names.index(text) for text in shown], side]
        assert (np.diff(values) <= 0).all()
        ticks = [t.get_text() for t in panel.get_xticklabels()]
        assert len(set(ticks)) == len(ticks)
    assert len(display.trivials_) == 2 * len(display.groups)


def test_rows_and_plane_can_be_asked_for():
    tally = compas()
    rules = {"odds": ic.equalize_odds(tally)}
    display = PlaneDisplay.from_tally(tally, rules, cost="fpr").plot(rows=True)
    moved = [line.get_xdata()[0] for line in display.diamonds_["odds"]]
    assert sorted(moved) == pytest.approx(sorted(display.after["odds"].ravel()))
    deviation = np.sqrt(display.variances[0, 0])
    bar = display.rows_.bars_["generalized_fpr"]["African-American"].get_xdata()
    assert np.ptp(bar) == pytest.approx(2 * 1.959964 * deviation)
    assert not hasattr(PlaneDisplay.from_tally(tally, cost="fpr").plot(rows=False), "rows_")


# Geometry

COSTS = ["fpr", "fnr", "plain:1,3", "plain:2,2", "weighted:1,1", "weighted:1,3", "weighted:0,1"]


def price(cost, mu, points):
    a, b = ic.Cost.parse(cost).coefficients([0], np.asarray(mu, dtype=float)[..., None])
    return a[..., 0] * points[..., 0] + b[..., 0] * points[..., 1]


@given(mu=base_rates, made=costs(), share=st.floats(0.01, 1.5))
def test_crossing_costs_what_was_asked_and_lies_on_the_line(mu, made, share):
    cost, coefficients = made
    a, b = coefficients(mu)
    value = share * (a * mu + b * (1 - mu))
    found = crossing(mu, cost, value)
    x, y = found.point
    assert a * x + b * y == pytest.approx(value)
    assert mu * y == pytest.approx((1 - mu) * x)
    assert found.share == pytest.approx(share)
    assert found.reachable == (found.share <= 1 + 1e-12)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("value", [0.05, 0.2])
def test_level_curve_against_a_search_along_each_line(cost, value):
    curve = level_curve(cost, value)
    mu = curve[:, 0] / curve.sum(axis=1)
    assert price(cost, mu, curve) == pytest.approx(value)
    assert (curve.sum(axis=1) <= 1 + 1e-9).all()
    # A search over all base rates finds a calibrated point of this cost exactly within the ends.
    rates_tried = np.linspace(0.001, 0.999, 999)
    trivial = np.column_stack([rates_tried, 1 - rates_tried])
    prices = price(cost, rates_tried, trivial)
    clear = np.abs(prices - value) > 1e-9
    inside = (rates_tried >= mu.min()) & (rates_tried <= mu.max())
    assert np.array_equal((prices >= value)[clear], inside[clear])


def test_shapes_of_level_curves():
    assert np.ptp(level_curve("fpr", 0.3)[:, 0]) < 1e-12
    assert np.ptp(level_curve("fnr", 0.3)[:, 1]) < 1e-12
    x, y = level_curve("weighted:1,3", 0.5).T
    assert 1 / x + 1 / y == pytest.approx(4 / 0.5)
    slope = np.diff(y) / np.diff(x)
    assert (slope < 0).all()
    assert (np.diff(slope) > 0).all(), "the curve bends towards the origin"
    # The ratio of the two costs does not matter on calibrated lines.
    assert level_curve("weighted:1,3", 0.4) == pytest.approx(level_curve("weighted:2,2", 0.4))


def test_out_of_reach_of_every_line_there_is_no_curve():
    assert level_curve("weighted:1,1", 0.6).shape == (0, 2)
    assert level_curve("plain:1,1", 1.5).shape == (0, 2)
    assert len(level_curve("weighted:1,1", 0.6, stretch=1.5)) > 0
    assert level_curve("fpr", 0.0).tolist() == [[0, 0]]


def test_costs_that_differ_by_group_need_one():
    cost = ic.Cost(fp={"a": 1.0, "b": 2.0}, fn=0.0)
    assert crossing(0.5, cost, 0.2, "b").point == pytest.approx((0.1, 0.1))
    with pytest.raises(ic.UsageError, match="must have a number for each group") as error:
        level_curve(cost, 0.2)
    assert str(error.value).splitlines()[-1] == "  next: add the group, or use one number for all"


@pytest.mark.parametrize(("weighted", "close"), [(False, 1e-9), (True, 0.01)])
def test_variances_are_those_of_means(weighted, close):
    data = sample(4000, groups=3, weighted=weighted)
    found = rate_variances(ic.tally(data, weight="weight" if weighted else None))
    for group in range(3):
        for label in (0, 1):
            inside = (data["group"] == group) & (data["label"] == label)
            h = data["score"][inside]
            w = data["weight"][inside] if weighted else np.ones(len(h))
            off, n = w * (h - np.average(h, weights=w)), w.sum() ** 2 / (w**2).sum()
            variance = (off**2).sum() / w.sum() ** 2 * n / (n - 1)
            assert found[group, label] == pytest.approx(variance, rel=close)


def test_ellipses_hold_the_truth_as_often_as_they_say():
    random = np.random.default_rng(1)
    rows, trials, held = 300, 300, 0
    # Scores uniform, labels drawn by them: E[h | y=0] = 1/3, E[1-h | y=1] = 1/3.
    for _ in range(trials):
        h = random.random(rows)
        y = random.random(rows) < h
        tally = ic.tally(score=h, label=y, group=np.zeros(rows, dtype=int))
        sums = tally.totals
        centre = np.array([rates.generalized_fpr(sums)[0], rates.generalized_fnr(sums)[0]])
        axes = ellipse_axes(rate_variances(tally), 0.9)[0]
        held += (((centre - 1 / 3) / axes) ** 2).sum() <= 1.0
    assert abs(held / trials - 0.9) < 4 * math.sqrt(0.9 * 0.1 / trials)


def test_the_outline_of_an_ellipse():
    from scipy.special import chdtri

    assert ellipse_axes([1.0], 0.99)[0] ** 2 == pytest.approx(chdtri(2, 0.01))
    variances = np.array([0.0004, 0.0001])
    outline = ellipse([0.2, 0.3], np.diag(variances), 0.9)
    away = (outline - [0.2, 0.3]) / ellipse_axes(variances, 0.9)
    assert (away**2).sum(axis=1) == pytest.approx(1.0)
    assert outline[0] == pytest.approx(outline[-1])


@pytest.mark.parametrize("limits", ["loose", (0, 1), (0, 1, "a", 2), 3])
def test_limits_are_four_numbers(limits):
    with pytest.raises(ic.UsageError, match="limits: must be left, right, bottom and top"):
        ic.plots.PlaneDisplay.from_tally(compas()).plot(limits=limits)
