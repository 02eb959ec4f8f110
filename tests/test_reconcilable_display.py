import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas, compas_rows

pytest.importorskip("matplotlib", reason='needs pip install "isocost[plot]"')
from isocost.plots import ReconcilableDisplay
from tests.populations import drawn
from tests.test_plane import no_global_state  # noqa: F401


def test_it_draws_what_was_found():
    found = ic.reconcilable(compas(), [0.3, 0.5, 0.8])
    display = ReconcilableDisplay.from_reconcilable(found).plot()
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
    display = ReconcilableDisplay.from_tally(tally, [0.5]).plot()
    assert list(display.lines_) == ["all people"]
    assert not np.isnan(display.tolerance).any()


def test_bad_arguments():
    with pytest.raises(ic.UsageError, match="must be a Reconcilable"):
        ReconcilableDisplay.from_reconcilable(3)
