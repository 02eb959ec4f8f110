"""Displays of what equality takes, what a threshold allows, and whose scores change."""

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas, compas_rows
from isocost.judging.offers import changes
from isocost.measures import rates

pytest.importorskip("matplotlib", reason='needs pip install "isocost[plot]"')
from isocost.plots import ChangeDisplay, FrontierDisplay, ReconcilableDisplay
from isocost.plots.repairs import fates
from tests.populations import drawn
from tests.test_plane import income, no_global_state  # noqa: F401

HANDED = ("information", "accuracy", "fpr", "fnr", "ppv", "npv")
CHANGED = ("changed", "mean_change", "decisions", "accuracy")


@pytest.mark.parametrize(
    ("method", "along", "across", "measures"),
    [
        ("withhold", "tolerance", "tolerance: how far costs may differ", CHANGED),
        ("hand_over", "share", "share of people handed over", HANDED),
    ],
)
def test_lines_are_the_frontier(method, along, across, measures):
    found = ic.frontier(compas(), "fpr", method, points=4)
    display, rows = FrontierDisplay.from_frontier(found), found.rows()
    assert tuple(display.lines_) == measures
    assert display.axes_[measures[-1]].get_xlabel() == across
    for measure in measures:
        line = display.lines_[measure][method]
        assert line.get_xdata() == pytest.approx([row[along] for row in rows])
        assert line.get_ydata() == pytest.approx([row[measure] for row in rows], nan_ok=True)
    if method == "hand_over":
        assert display.infeasible_to == pytest.approx(0.230985, abs=1e-6)
        with pytest.raises(ic.UsageError, match="measures: must be some of information"):
            FrontierDisplay.from_frontier(found, measures=("changed",))


def test_what_is_impossible_is_hatched():
    display = FrontierDisplay.from_tally(compas(), "fpr", points=6)
    smallest = ic.feasibility(compas(), "fpr").smallest_tolerance
    step = display.tolerance["withhold"][1]
    assert smallest - step < display.infeasible_to < smallest
    for span in display.hatched_.values():
        assert span.get_x() == 0
        assert span.get_width() == pytest.approx(display.infeasible_to)
        assert span.get_hatch()
    assert display.texts_[-1].get_text() == "impossible"


def test_a_feasible_one_has_no_hatching():
    tally = income()
    display = FrontierDisplay.from_tally(tally, "fpr", points=3)
    assert np.isnan(display.infeasible_to)
    assert display.hatched_ == {}
    assert display.values["withhold"]["changed"][0] > 0


def test_methods_side_by_side_are_named():
    tally = income()
    display = FrontierDisplay.from_tally(
        tally, "fpr", methods=("withhold", "coarsen"), points=4, measures=("decisions",)
    )
    lines = display.lines_["decisions"]
    assert set(lines) == {"withhold", "coarsen"}
    assert lines["withhold"].get_color() != lines["coarsen"].get_color()
    assert [text.get_text() for text in display.texts_] == ["withhold", "coarsen"]
    # Coarsening leaves decisions alone, withholding does not.
    assert display.values["coarsen"]["decisions"] == pytest.approx([0.0] * 4)
    assert display.values["withhold"]["decisions"][0] > 0.01
    ticks = [tick.get_text() for tick in display.axes_["decisions"].get_yticklabels()]
    values = display.axes_["decisions"].get_yticks()
    assert [float(tick[:-1]) for tick in ticks] == pytest.approx(100 * values), "nothing rounded"


def test_hatching_only_where_no_method_does_it():
    both = {
        "withhold": ic.frontier(compas(), "fpr", points=3),
        "reconcile": ic.frontier(compas(), "fpr", "reconcile", points=3),
    }
    display = FrontierDisplay(both).plot()
    assert np.isnan(display.infeasible_to)
    assert display.axes_["accuracy"].get_xlabel() == "tolerance"


def test_wrong_frontiers():
    found = ic.frontier(compas(), "fpr", points=2)
    with pytest.raises(ic.UsageError, match="measures: must be some of disparity") as error:
        FrontierDisplay.from_frontier(found, measures=("joy",))
    assert "got:  'joy'" in str(error.value)
    with pytest.raises(ic.UsageError, match="frontiers: must hold at least one"):
        FrontierDisplay({})
    with pytest.raises(ic.UsageError, match='method: must be "withhold", "coarsen", "reconcile"'):
        FrontierDisplay.from_tally(compas(), methods="mix")
    with pytest.raises(ic.UsageError, match="frontiers: must all run along a tolerance"):
        FrontierDisplay.from_tally(compas(), methods=("withhold", "hand_over"), points=2)


def test_it_draws_what_was_found():
    found = ic.reconcilable(compas(), [0.3, 0.5, 0.8])
    display = ReconcilableDisplay.from_reconcilable(found)
    for group, line in display.lines_.items():
        rates = [point.selection_rates[group] for point in found.points]
        assert line.get_xdata() == pytest.approx([0.3, 0.5, 0.8])
        assert line.get_ydata() == pytest.approx(rates, nan_ok=True)
    bar = display.bars_["possible"].patches[1]
    point = found.points[1]
    assert bar.get_y() == pytest.approx(point.lowest)
    assert bar.get_y() + bar.get_height() == pytest.approx(point.highest)
    heights = [bar.get_height() for bar in display.bars_["tolerance"].patches]
    assert heights == pytest.approx(display.tolerance, nan_ok=True)
    assert len(display.hatched_) == 2
    assert all(span.get_x() < 0.8 < span.get_x() + span.get_width() for span in display.hatched_)
    assert "equal fpr and fnr" in display.axes_["selected"].get_title(loc="left")
    display.figure_.draw_without_rendering()
    legend, lowest = display.legend_.get_window_extent(), display.axes_["tolerance"]
    assert legend.y1 < lowest.get_window_extent().y0, "the legend hides no bar"


def test_long_names_fit_into_the_legend():
    tally = drawn(1, [(2 + 0.1 * i, 3) for i in range(6)], [1000] * 6)
    names = {group: f"Native Hawaiian or Other Pacific Islander {group}" for group in tally.groups}
    tally = tally.relabel(names)
    display = ReconcilableDisplay.from_tally(tally, [0.5])
    display.figure_.draw_without_rendering()
    legend, paper = display.legend_.get_window_extent(), display.figure_.bbox
    assert paper.x0 <= legend.x0
    assert legend.x1 <= paper.x1
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert len(set(texts)) == 7


def test_many_groups_are_drawn_as_one():
    tally = drawn(1, [(2 + 0.1 * i, 3) for i in range(10)], [1000] * 10)
    display = ReconcilableDisplay.from_tally(tally, [0.5])
    assert list(display.lines_) == ["all people"]
    assert not np.isnan(display.tolerance).any()


# Changes of scores


def rules_of(tally):
    return [
        ic.withhold(tally, "fpr"), ic.coarsen(tally, "fpr"), ic.equalize_odds(tally),
        ic.reconcile(tally),
    ]  # fmt: skip


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("method", [0, 1, 2, 3])
def test_fates_against_changes_and_what_is_expected(method, place):
    tally = income()
    rule = rules_of(tally)[method]
    found, known = fates(tally, rule, place), changes(tally, rule, 0.5, place)
    distance = np.abs(found.new - found.old)
    assert found.share.sum() == pytest.approx(1.0)
    assert found.share[found.moved].sum() == pytest.approx(known.changed)
    assert found.share @ distance == pytest.approx(known.mean_change)
    assert distance.max() == pytest.approx(known.largest_change)
    after = rates.mean_score(rule.expected(tally).totals)[place]
    assert found.share @ found.new == pytest.approx(after)


def test_fates_against_the_coin():
    tally, rows = compas(), compas_rows()
    rule = ic.withhold(tally, "fpr", 0.07)
    new = rule.apply(rows, id="id")["repaired_score"]
    mine = rows["group"] == "Caucasian"
    found = fates(tally, rule, 1)
    for size in (0.0, 0.1, 0.2, 0.3):
        share = (np.abs(new - rows["score"])[mine] > size + 1e-12).mean()
        expected = found.share[np.abs(found.new - found.old) > size + 1e-12].sum()
        assert share == pytest.approx(expected, abs=0.03)


def test_gathering_keeps_people_and_means():
    tally = income()
    found = fates(tally, ic.coarsen(tally, "fpr"), 0)
    few = found.gathered()
    assert len(few.share) < len(found.share)
    assert few.share.sum() == pytest.approx(1.0)
    assert few.share @ few.new == pytest.approx(found.share @ found.new)
    assert few.share[few.moved].sum() == pytest.approx(found.share[found.moved].sum())


def test_what_is_drawn():
    tally = income()
    rules = rules_of(tally)
    display = ChangeDisplay.from_tally(tally, rules)
    assert display.shown == [0, 1]
    assert len(display.axes_) == 8
    mixed = np.asarray(display.moved_["withhold", "men"].get_offsets())
    mu = rates.base_rate(tally.totals)[0]
    assert mixed[:, 1] == pytest.approx(mu), "all that is withheld becomes the base rate"
    turned = np.asarray(display.moved_["odds", "women"].get_offsets())
    assert turned.sum(axis=1) == pytest.approx(1.0), "what is turned round lies across"
    kept = np.asarray(display.kept_["withhold", "men"].get_offsets())
    assert kept[:, 0] == pytest.approx(kept[:, 1])
    assert len(display.moved_["withhold", "women"].get_offsets()) == 0
    text = " ".join(t.get_text() for t in display.axes_["withhold", "men"].texts)
    found = changes(tally, rules[0], 0.5, 0)
    assert f"{found.changed:.1%} changed, by up to {found.largest_change:.2f}" in text
    assert f"{found.decisions:.1%} of decisions" in text
    still = display.axes_["withhold", "women"].texts[0].get_text()
    assert still.startswith("nobody is changed")


def test_areas_are_shares():
    tally = compas()
    display = ChangeDisplay.from_tally(tally, {"a rule": ic.withhold(tally, "fpr", 0.07)})
    assert list(display.axes_) == [("a rule", "Caucasian")], "only a group that changes is shown"
    drawn = display.moved_["a rule", "Caucasian"].get_sizes()
    few = display.fates["a rule"][1].gathered()
    share = few.share[few.moved]
    large = drawn > 2.0
    assert large.sum() > 5
    assert drawn[large] / drawn.max() == pytest.approx(share[large] / share.max())


def test_a_rule_that_changes_nobody():
    from matplotlib.figure import Figure

    nothing = ic.Rule(groups=compas().groups, rows=(), method="none")
    display = ChangeDisplay.from_tally(compas(), [nothing], ax=Figure().subplots())
    assert display.shown == []
    assert display.axes_ == {}
