"""What the page draws: legends, places and tables, in a real browser."""

import isocost as ic
from tests.browser.test_page import settled, text


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


def test_legends_tell_of_what_is_drawn(visit):
    page = visit("compas")
    assert page.is_visible("#legend-needed")
    assert page.is_hidden("#legend-arrow")
    settled(page, {"tolerance": 0.06})
    assert page.is_hidden("#legend-needed")
    assert text(page, "#legend-arrow") == "what the repair “Withhold” does"
    settled(page, {"tolerance": 0.2})
    assert page.is_hidden("#legend-target")
