import numpy as np
import pytest

import isocost as ic
from isocost.plots.plane import trivial_point
from tests.populations import placed, tally_of

pytest.importorskip("matplotlib", reason='needs pip install "isocost[plot]"')
from reproduction.geometry_figures import (
    BASE_RATES,
    figure_1,
    figure_2,
    panels_1,
    panels_2,
)
from tests.reproduction.conftest import assert_labels_apart
from tests.test_plane import no_global_state  # noqa: F401


def cost_of(panel, group, point):
    a, b = panel.cost.coefficients([0], np.array([BASE_RATES[group]]))
    return float(a[0] * point[0] + b[0] * point[1])


def on_line(group, point):
    mu = BASE_RATES[group]
    return mu * point[1] == pytest.approx((1 - mu) * point[0])


def test_figure_1_has_both_groups_on_their_lines_and_on_one_level():
    lines, *equal = panels_1()
    assert [point for _, point in lines.marks[:2]] == [trivial_point(mu) for mu in BASE_RATES]
    for panel in equal:
        for group, point in enumerate(panel.groups):
            assert on_line(group, point)
            assert sum(point) <= 1
            assert cost_of(panel, group, point) == pytest.approx(panel.levels[0])
    vertical, horizontal, _ = equal
    assert vertical.groups[0][0] == pytest.approx(vertical.groups[1][0])
    assert horizontal.groups[0][1] == pytest.approx(horizontal.groups[1][1])


def test_figure_2_says_what_the_library_finds():
    _, feasible, infeasible, mixture = panels_2()
    for panel in (feasible, infeasible):
        people = {
            name: placed(mu, *point)
            for name, mu, point in zip("ab", BASE_RATES, panel.groups, strict=True)
        }
        found = ic.feasibility(tally_of(people), panel.cost)
        assert found.target_group == "a"
        assert found.target_cost == pytest.approx(panel.levels[0])
        assert found.feasible == (panel is feasible)
        if panel.alpha is not None:
            assert found.alpha["b"] == pytest.approx(panel.alpha)
    h_2, end = mixture.segment
    mixed = (1 - mixture.alpha) * np.array(h_2) + mixture.alpha * np.array(end)
    assert mixture.repaired == pytest.approx(mixed)
    assert mixture.repaired == feasible.repaired
    assert end == trivial_point(BASE_RATES[1])
    assert cost_of(mixture, 1, mixture.repaired) == pytest.approx(
        cost_of(mixture, 0, mixture.groups[0])
    )


@pytest.mark.parametrize(("make", "panels"), [(figure_1, panels_1), (figure_2, panels_2)])
def test_what_is_drawn_are_these_numbers(make, panels):
    figure = make()
    assert len(figure.axes) == 4
    for ax, panel in zip(figure.axes, panels(), strict=True):
        assert panel.title.split()[0] in ax.get_title(loc="left")
        lines = [line.get_xydata() for line in ax.lines]
        for mu in BASE_RATES:
            wanted = np.array([[0, 0], [mu, 1 - mu]])
            assert any(xy.shape == (2, 2) and np.allclose(xy, wanted) for xy in lines)
        dashed = [line for line in ax.lines if len(line.get_xydata()) > 100]
        assert len(dashed) == len(panel.levels)
        drawn = [np.asarray(c.get_offsets()[0]) for c in ax.collections if len(c.get_offsets())]
        for point in panel.groups or ():
            assert any(np.allclose(point, other) for other in drawn)
        if panel.repaired:
            assert any(np.allclose(panel.repaired, other) for other in drawn)


@pytest.mark.parametrize("make", [figure_1, figure_2])
def test_labels_are_apart_and_inside(make):
    assert_labels_apart(make(), 2)
