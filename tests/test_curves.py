"""Displays of what equality takes, what a threshold allows, and how many people a repair needs."""

from __future__ import annotations

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas, compas_rows
from tests.conftest import DATA

pytest.importorskip("matplotlib", reason='needs pip install "isocost[plot]"')
from isocost.plots import FrontierDisplay, ReconcilableDisplay
from tests.populations import drawn
from tests.test_plane import no_global_state  # noqa: F401


def test_lines_are_the_frontier():
    found = ic.frontier(compas(), "fpr", points=6)
    display = FrontierDisplay.from_frontier(found)
    rows = found.rows()
    for measure in ("changed", "mean_change", "decisions", "accuracy"):
        line = display.lines_[measure]["withhold"]
        assert line.get_xdata() == pytest.approx([row["tolerance"] for row in rows])
        assert line.get_ydata() == pytest.approx([row[measure] for row in rows], nan_ok=True)


def test_what_cannot_be_had_is_hatched():
    display = FrontierDisplay.from_tally(compas(), "fpr", points=6)
    smallest = ic.feasibility(compas(), "fpr").smallest_tolerance
    step = display.tolerance["withhold"][1]
    assert smallest - step < display.infeasible_to < smallest
    for span in display.hatched_.values():
        assert span.get_x() == 0
        assert span.get_width() == pytest.approx(display.infeasible_to)
        assert span.get_hatch()
    assert any("cannot" in text.get_text() for text in display.texts_)


def test_a_feasible_one_has_no_hatching():
    tally = ic.Tally.load(DATA / "income.json")
    display = FrontierDisplay.from_tally(tally, "fpr", points=3)
    assert np.isnan(display.infeasible_to)
    assert display.hatched_ == {}
    assert display.values["withhold"]["changed"][0] > 0


def test_methods_side_by_side_are_named():
    tally = ic.Tally.load(DATA / "income.json")
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
    assert display.axes_["decisions"].get_xlabel() == "tolerance: how far costs may differ"


def test_hatching_only_where_no_method_does_it():
    both = {
        "withhold": ic.frontier(compas(), "fpr", points=3),
        "reconcile": ic.frontier(compas(), "fpr", "reconcile", points=3),
    }
    display = FrontierDisplay(both).plot()
    assert np.isnan(display.infeasible_to)
    assert display.axes_["accuracy"].get_xlabel() == "tolerance"


def test_from_predictions_on_axes_of_a_user():
    from matplotlib.figure import Figure

    rows = compas_rows()
    ax = Figure().subplots()
    display = FrontierDisplay.from_predictions(
        rows["label"], rows["score"], rows["group"], "fpr", points=2, threshold=0.45, ax=ax
    )
    assert display.ax_ is ax
    assert display.frontiers["withhold"].threshold == 0.45


def test_from_estimator():
    from sklearn.linear_model import LogisticRegression

    random = np.random.default_rng(0)
    X = random.normal(size=(500, 2))
    y = (random.random(500) < 1 / (1 + np.exp(-X[:, 0] - X[:, 1]))).astype(int)
    display = FrontierDisplay.from_estimator(
        LogisticRegression().fit(X, y), X, y, "weighted:1,1", sensitive_features=X[:, 1] > 0,
        points=2,
    )  # fmt: skip
    assert display.tolerance["withhold"].shape == (2,)


def test_wrong_arguments():
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


def test_the_share_handed_over_against_what_is_left():
    found = ic.frontier(compas(), method="hand_over", points=4)
    display = FrontierDisplay.from_frontier(found)
    rows = found.rows()
    for measure in ("information", "accuracy", "fpr", "fnr", "ppv", "npv"):
        line = display.lines_[measure]["hand_over"]
        assert line.get_xdata() == pytest.approx([row["share"] for row in rows])
        assert line.get_ydata() == pytest.approx([row[measure] for row in rows])
    assert display.infeasible_to == pytest.approx(0.230985, abs=1e-6)
    assert display.axes_["npv"].get_xlabel() == "share of people handed over"
    with pytest.raises(ic.UsageError, match="measures: must be some of information"):
        FrontierDisplay.from_frontier(found, measures=("changed",))


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


def test_from_predictions_makes_the_edges_it_needs():
    rows = compas_rows()
    args = rows["label"], rows["score"], rows["group"]
    display = ReconcilableDisplay.from_predictions(*args, [0.37, 0.5])
    wanted = ic.reconcilable(compas(edges=(0.37,)), [0.37, 0.5])
    assert display.tolerance == pytest.approx([p.tolerance for p in wanted.points], nan_ok=True)


def test_many_groups_are_drawn_as_one():
    tally = drawn(1, [(2 + 0.1 * i, 3) for i in range(10)], [1000] * 10)
    display = ReconcilableDisplay.from_tally(tally, [0.5])
    assert list(display.lines_) == ["all people"]
    assert not np.isnan(display.tolerance).any()


def test_bad_arguments():
    with pytest.raises(ic.UsageError, match="must be a Reconcilable"):
        ReconcilableDisplay.from_reconcilable(3)
