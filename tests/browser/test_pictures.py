"""What the page draws: legends, places and tables, in a real browser."""

import numpy as np
import pytest

import isocost as ic
from tests.browser.test_page import settled, text
from tests.conftest import measured


def test_costs_after_the_repair_are_drawn(visit):
    page = visit("compas", hash="#tolerance=0.06")
    assert text(page, "#legend-after") == "cost after “Withhold”"
    assert "After the repair “Withhold”: " in page.locator("#plane-text").text_content()
    assert page.is_visible("#legend-target")
    settled(page, {"method": "equalize_odds", "tolerance": 0})
    assert text(page, "#legend-after") == "cost after “Equalize odds”"
    assert page.is_hidden("#legend-target")
    assert page.is_hidden("#legend-gap")
    settled(page, {"method": "none"})
    assert page.is_hidden("#legend-after")


def test_names_of_rows_stay_in_sight_when_the_table_scrolls(visit):
    page = visit("six", width=390)
    place = "document.querySelector('#numbers tbody th').getBoundingClientRect().left"
    before = page.evaluate(place)
    page.evaluate("document.querySelector('#numbers').parentElement.scrollLeft = 200")
    assert page.evaluate("document.querySelector('#numbers').parentElement.scrollLeft") == 200
    assert page.evaluate(place) == before
    heads = "[...document.querySelectorAll('#numbers thead th')].map(h => {const r = document."
    heads += "createRange(); r.selectNodeContents(h.querySelector('bdi') ?? h);"
    heads += "return Math.round(r.getBoundingClientRect().bottom)})"
    assert len(set(page.evaluate(heads))) == 1


def test_a_place_far_away_leaves_the_picture_in_its_frame(browser, tmp_path):
    """A group that hardly tells anybody apart would have to move by many times its line."""
    few = {"score": [0.24] * 30 + [0.28] * 10, "label": [0] * 30 + [1] * 10, "group": ["a"] * 40}
    more = {"score": [0.6] * 20 + [0.9] * 40, "label": [0] * 20 + [1] * 40, "group": ["b"] * 60}
    tally = ic.tally({name: few[name] + more[name] for name in few})
    path = ic.report(ic.audit(tally, "fpr", confidence=None), path=tmp_path / "r.html")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-done]", timeout=60_000)
    assert page.evaluate("Math.max(...isocost.found.f.alpha)") > 10
    frame = page.locator("#plane-chart svg").bounding_box()
    for mark in page.locator("#plane-chart .mark-symbol path").all():
        box = mark.bounding_box()
        assert frame["y"] <= box["y"] + box["height"] / 2 <= frame["y"] + frame["height"]
    page.close()


def test_predictive_values_follow_the_threshold(visit):
    page = visit("compas")
    told = page.locator("#values-text").text_content()
    assert "African-American: positive among the selected 0.659, scores predict 0.660" in told
    marks = page.locator("#values-chart .mark-symbol path")
    before = [mark.bounding_box() for mark in marks.all()]
    assert len(before) == 4, "two groups, observed and predicted"
    settled(page, {"threshold": 0.4})
    assert page.locator("#values-text").text_content() != told
    after = [mark.bounding_box() for mark in marks.all()]
    assert after != before
    frame = page.locator("#values-chart svg").bounding_box()
    for box in after:
        assert frame["x"] <= box["x"] <= frame["x"] + frame["width"]
        assert frame["y"] <= box["y"] <= frame["y"] + frame["height"]
    assert page.is_hidden("#values-none")
    settled(page, {"threshold": 0.9})
    assert page.is_visible("#values-none")


def test_legends_tell_of_what_is_drawn(visit):
    page = visit("compas")
    assert page.is_visible("#legend-needed")
    assert page.is_hidden("#legend-arrow")
    settled(page, {"tolerance": 0.06})
    assert page.is_hidden("#legend-needed")
    assert text(page, "#legend-arrow") == "what the repair “Withhold” does"
    settled(page, {"tolerance": 0.2})
    assert page.is_hidden("#legend-target")


POPULATIONS = {
    "rare": ((0.01, 0.015), 4.0),
    "very-rare": ((0.0005, 0.0008), 4.0),
    "usual": ((0.3, 0.33), 4.0),
    "frequent": ((0.97, 0.96), 4.0),
    "one-far-away": ((0.02, 0.03, 0.9), 4.0),
    "narrow": ((0.012, 0.018), 2000.0),
}
"""Base rates of the groups, and how close scores are to them."""

TICKS = """() => [...document.querySelectorAll("g.role-axis")].map(axis => {
    const lines = [...axis.querySelectorAll(".role-axis-tick line")];
    return [...axis.querySelectorAll(".role-axis-label text")]
        .map((label, i) => [label, lines[i].getBoundingClientRect()])
        .filter(([label]) => label.checkVisibility({opacityProperty: true}))
        .map(([label, box]) => [label.textContent, box.x, box.y]);
}).filter(axis => axis.length)"""
"""The labels of each axis as shown, and where their ticks are."""


def calibrated(rates, spread):
    rng, rows = np.random.default_rng(0), 20_000
    scores = [rng.beta(spread * rate, spread * (1.0 - rate), rows) for rate in rates]
    score = np.concatenate(scores)
    group = np.repeat([f"group {place}" for place in range(len(rates))], rows)
    return ic.tally({"score": score, "label": rng.random(len(score)) < score, "group": group})


def check_ticks(axes):
    """Every axis has several labels, all different, each true of its tick."""
    for axis in axes:
        texts = [label for label, _, _ in axis]
        assert len(texts) >= 3, texts
        assert len(set(texts)) == len(texts), texts
        values, x, y = (np.array(part, dtype=float) for part in zip(*axis, strict=True))
        place = x if np.ptp(x) > np.ptp(y) else y
        fitted = np.polyval(np.polyfit(values, place, 1), values)
        assert np.abs(fitted - place).max() < 1.0, texts


@pytest.mark.parametrize("name", POPULATIONS)
def test_labels_of_axes_are_distinct_and_exact(browser, tmp_path, artifacts, name):
    tally = calibrated(*POPULATIONS[name])
    path = ic.report(measured(tally, "fpr", replicates=0), path=tmp_path / "r.html")
    for width in (1280, 390):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-done]", timeout=60_000)
        page.screenshot(path=artifacts / f"ticks-{name}-{width}.png", full_page=True)
        axes = page.evaluate(TICKS)
        assert len(axes) == 5 + 2 * len(tally.groups)
        check_ticks(axes)
        for cost in ({"kind": "fnr"}, {"kind": "weighted", "fp": 1, "fn": 1000}):
            settled(page, {"cost": cost, "tolerance": 0.001})
            check_ticks(page.evaluate(TICKS))
        page.close()
