"""Figure 3: what is drawn are the numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from isocost.plots import PlaneDisplay
from reproduction.experiments import RunOptions, prepare, published_study
from reproduction.figures import figure_3, panels
from reproduction.rerun import Reproduction
from reproduction.study import HEALTH, INCOME, RECIDIVISM, REPAIRS
from tests.reproduction.conftest import assert_labels_apart, need


def test_figures_show_the_numbers(counts: Reproduction) -> None:
    (result,) = counts.results
    shown = panels(result.study)
    assert list(shown) == ["EO-Derived", "Calibrated", "Ours"]
    before = ic.audit(compas(), "fpr", confidence=None).groups
    after = ic.audit(ic.equalize_odds(compas()).expected(compas()), "fpr", confidence=None).groups
    for place, group in enumerate(RECIDIVISM.groups):
        for points, groups in (
            (shown["EO-Derived"].points, before),
            (shown["EO-Derived"].after["EO-Derived"], after),
        ):
            expected = [groups[group].generalized_fpr, groups[group].generalized_fnr]
            np.testing.assert_allclose(points[place], expected)
    # Infeasible: nothing withheld is drawn, and the level is beyond Caucasian's line.
    assert not shown["Calibrated"].after
    assert shown["Calibrated"].unreachable.tolist() == [False, True]
    assert shown["Calibrated"].target_cost == pytest.approx(0.4475, abs=5e-5)
    assert list(shown["Ours"].after) == ["reconcile"]


def test_figures_draw_the_numbers(counts: Reproduction) -> None:
    (result,) = counts.results
    shown = panels(result.study, result.spread)
    figure = figure_3(result.study, result.spread)
    assert [ax.get_title(loc="left") for ax in figure.axes[:3]] == [
        "Equalized odds, derived",
        "Calibrated, equal cost: not feasible",
        "Ours: reconciled (coarsening is not feasible either)",
    ]
    for ax, display in zip(figure.axes, shown.values(), strict=False):
        marks = np.concatenate([d.get_offsets() for d in ax.collections if len(d.get_offsets())])
        for points in (display.points, *display.after.values()):
            for point in points:
                assert np.isclose(marks, point, atol=1e-9).all(axis=1).any()
    _, calibrated, ours, _ = figure.axes
    cross = PlaneDisplay.from_tally(compas(), cost="fpr").target_cost
    (mu,) = (
        r for g, r in zip(RECIDIVISM.groups, shown["Ours"].base_rates, strict=True) if g[0] == "C"
    )
    goal = np.array([cross, cross * (1 - mu) / mu])
    for ax in (calibrated, ours):
        assert any(np.isclose(line.get_xydata(), goal).all(axis=1).any() for line in ax.lines)
        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        assert left < goal[0] < right
        assert bottom < goal[1] < top
    for outline in shown["Ours"].outlines["reconcile"]:
        assert any(np.array_equal(line.get_xydata(), outline) for line in ours.lines)


@pytest.mark.parametrize("source", ["counts", "published"])
def test_labels_are_apart_and_inside(counts: Reproduction, source: str) -> None:
    if source == "counts":
        studies = [(counts.results[0].study, counts.results[0].spread)]
    else:
        need("scored")
        found = [published_study(experiment) for experiment in (INCOME, HEALTH)]
        studies = [(study, study.replicates(10, 0, REPAIRS)) for study in found]
    for study, spread in studies:
        assert_labels_apart(figure_3(study, spread), 3)


def test_ellipses_are_as_wide_as_the_replicates(counts: Reproduction) -> None:
    (result,) = counts.results
    ours = panels(result.study, result.spread)["Ours"]
    drawn = np.array(
        [
            [[n[f"reconcile {rate} {g}"] for rate in ("generalized_fpr", "generalized_fnr")]
             for g in (1, 2)]
            for n in result.spread
        ]
    )  # fmt: skip
    for place, outline in enumerate(ours.outlines["reconcile"]):
        offset = drawn[:, place] - drawn[:, place].mean(axis=0)
        size = np.sqrt(-2 * np.log(0.05) * (offset**2).sum(axis=0) / (len(offset) - 1))
        np.testing.assert_allclose(np.ptp(outline, axis=0) / 2, size, rtol=0.02)


def test_models_trained_under_bounds_have_a_panel(trained: Path) -> None:
    need("compas")
    (study,) = prepare(RECIDIVISM, RunOptions(cache=trained, jobs=1)).studies
    shown = panels(study)["EO-Trained"]
    steps = np.stack([shown.points, *shown.after.values()])
    apart = np.abs(steps[:, 0] - steps[:, 1]).max(axis=1)
    assert apart[-1] < 0.6 * apart[0]
    assert (np.diff(apart) < 0.005).all()


def test_the_key_lists_what_is_drawn(counts: Reproduction) -> None:
    """The diamond in two colours only if groups meet, and the cross only if it is in sight."""
    (result,) = counts.results
    (legend,) = (ax.get_legend() for ax in figure_3(result.study).axes if ax.get_legend())
    told = [text.get_text() for text in legend.get_texts()]
    assert "both groups at this point after it" in told
    assert "where a group would have to be, but cannot" in told
    assert not any("interval" in text for text in told)  # without samples there is no ellipse
    values = result.study.values
    apart = {name: value + 0.1 for name, value in values.items() if name.startswith("odds gen")}
    apart = {name: value for name, value in apart.items() if name.endswith(" 1")}
    result.study.__dict__["values"] = values | apart | {"original generalized_fpr 1": 0.37}
    try:
        figure = figure_3(result.study)
    finally:
        result.study.__dict__["values"] = values
    (legend,) = (ax.get_legend() for ax in figure.axes if ax.get_legend())
    told = [text.get_text() for text in legend.get_texts()]
    assert "both groups at this point after it" not in told
    assert "where a group would have to be, but cannot" not in told


def test_the_name_of_the_diagonal_touches_nothing(counts: Reproduction) -> None:
    (result,) = counts.results
    figure = figure_3(result.study, result.spread)
    figure.draw_without_rendering()
    for ax in figure.axes[:3]:
        (name,) = (text for text in ax.texts if text.get_text() == "one score for everybody")
        box = name.get_window_extent()
        x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
        for line in ax.lines:
            data = np.asarray(line.get_xydata())
            if np.array_equal(data, [[0, 1], [1, 0]]):
                continue
            points = ax.transData.transform(data) - [x, y]
            along, across = (points @ [[1, 1], [-1, 1]]).T / np.sqrt(2)
            touched = (np.abs(along) < box.width / np.sqrt(2) - 8) & (np.abs(across) < 5)
            assert not touched.any()
