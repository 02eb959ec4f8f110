"""What the page draws: legends, places and tables, in a real browser."""

import numpy as np
import pytest

import isocost as ic
from isocost.page import view
from isocost.verdict.sentences import Figures
from tests.browser.conftest import opened
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


def test_a_place_far_away_leaves_the_picture_in_its_frame(reading, tmp_path):
    """A group that hardly tells anybody apart would have to move by many times its line."""
    few = {"score": [0.24] * 30 + [0.28] * 10, "label": [0] * 30 + [1] * 10, "group": ["a"] * 40}
    more = {"score": [0.6] * 20 + [0.9] * 40, "label": [0] * 20 + [1] * 40, "group": ["b"] * 60}
    tally = ic.tally({name: few[name] + more[name] for name in few})
    page = reading(ic.report(ic.audit(tally, "fpr", confidence=None), path=tmp_path / "r.html"))
    assert page.evaluate("Math.max(...isocost.results.f.alpha)") > 10
    frame = page.locator("#plane-chart svg").bounding_box()
    for mark in page.locator("#plane-chart .mark-symbol path").all():
        box = mark.bounding_box()
        assert frame["y"] <= box["y"] + box["height"] / 2 <= frame["y"] + frame["height"]


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


NAMES = (
    "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetzbeauftragtenstelle",
    "אזרחים ותיקים",
    "ذوو الاحتياجات الخاصة",
    "Native Hawaiian or other Pacific Islander, women",
    "White",
)

POPULATIONS = {
    "rare": ((0.01, 0.015), 4.0, None),
    "very-rare": ((0.0005, 0.0008), 4.0, None),
    "names": ((0.25, 0.28, 0.3, 0.33, 0.36), 4.0, NAMES),
    "frequent": (np.linspace(0.95, 0.98, 12), 4.0, None),
    "one-far-away": ((0.02, 0.03, 0.025, 0.028, 0.9), 4.0, None),
    "narrow": ((0.012, 0.018), 2000.0, None),
    "forty": (np.linspace(0.1, 0.4, 40) ** 1.2, 4.0, [f"County {i:02}" for i in range(40)]),
}
"""Base rates of the groups, how close scores are to them, and names."""

TICKS = """() => [...document.querySelectorAll("g.role-axis")].map(axis => {
    const lines = [...axis.querySelectorAll(".role-axis-tick line")];
    return [...axis.querySelectorAll(".role-axis-label text")]
        .map((label, i) => [label, lines[i].getBoundingClientRect()])
        .filter(([label]) => label.checkVisibility({opacityProperty: true}))
        .map(([label, box]) => [label.textContent, box.x, box.y]);
}).filter(axis => axis.length)"""
"""The labels of each axis as shown, and where their ticks are."""

WORDS = """() => [...document.querySelectorAll(
    "#picture svg.marks, #values-chart svg.marks")].map(svg => {
    const box = one => {
        const {x, y, width, height} = one.getBBox(), matrix = one.getScreenCTM();
        const start = new DOMPoint(x, y).matrixTransform(matrix);
        return [start.x, start.y, start.x + width, start.y + height];
    };
    const shown = path => [...svg.querySelectorAll(path)]
        .filter(one => one.checkVisibility({opacityProperty: true}) && one.getBBox().width)
        .map(one => ({text: one.textContent, box: box(one), of: one.__data__.datum}));
    const lines = layer => [...svg.querySelectorAll(`.${layer}_marks line`)].map(one => {
        const {x, y, width, height} = one.getBoundingClientRect();
        return {box: [x, y, x + width, y + height], of: one.__data__.datum};
    });
    return {
        rows: svg.parentElement.id === "costs-chart" || svg.closest(".pair") !== null,
        words: shown(".mark-text.role-mark text"),
        axes: shown(".role-axis text"),
        marks: shown(".mark-symbol path, .mark-rect.role-mark path").filter(one => one.of.name),
        ties: lines("ties"),
        beyond: lines("beyond"),
    };
})"""
"""The texts, marks and lines between them of each picture, where they are on the screen."""


def calibrated(rates, spread, names):
    rng, rows = np.random.default_rng(0), 40_000 // len(rates)
    scores = [rng.beta(spread * rate, spread * (1.0 - rate), rows) for rate in rates]
    score = np.concatenate(scores)
    group = np.repeat(names or [f"group {place}" for place in range(len(rates))], rows)
    label = rng.random(len(score)) < score
    return ic.tally({"score": score, "label": label, "group": group}, bins=64)


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


def gap(one, other):
    """How far two boxes are from each other; below zero if they overlap."""
    sides = (other[0] - one[2], one[0] - other[2], other[1] - one[3], one[1] - other[3])
    across, down = max(sides[:2]), max(sides[2:])
    return max(across, down) if min(across, down) < 0 else float(np.hypot(across, down))


def middle(box):
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return x, y, x, y


def about(word, picture):
    """The middles of the marks that a text is about, and of the others."""
    own, others = [], []
    for mark in picture["marks"]:
        same = mark["of"]["name"] == word["of"]["name"]
        (own if same else others).append(middle(mark["box"]))
    if word["text"] == "out of reach":
        own += [line["box"] for line in picture["beyond"]]
    return own, others


def is_tied(word, picture, own):
    """Whether a line goes from a text to what it is about."""
    name = word["of"]["name"]
    ties = [tie["box"] for tie in picture["ties"] if tie["of"]["name"] == name]
    touching = [tie for tie in ties if gap(tie, word["box"]) < 3]
    return any(gap(tie, mark) < 3 for tie in touching for mark in own)


def check_words(picture, decimals):
    """No two texts overlap; each is nearest to what it is about, or has a line to it."""
    texts = picture["words"] + picture["axes"]
    for place, one in enumerate(texts):
        for other in texts[place + 1 :]:
            assert gap(one["box"], other["box"]) > -1.5, (one["text"], other["text"])
    for word in picture["words"]:
        if picture["rows"]:
            check_row(word, picture, decimals)
        elif word["of"].get("name") is not None:
            own, others = about(word, picture)
            nearest = min(gap(word["box"], box) for box in own) <= min(
                (gap(word["box"], box) for box in others), default=np.inf
            )
            assert nearest or is_tied(word, picture, own), word["text"]


def check_row(word, picture, decimals):
    """A number is that of the mark it is nearest to, a name that of the nearest row."""
    text, box = word["text"], middle(word["box"])
    if text.replace(".", "").isdigit():
        away = [
            (gap(word["box"], middle(mark["box"])), mark["of"]["x"]) for mark in picture["marks"]
        ]
        assert text in {f"{x:.{decimals}f}" for far, x in away if far <= min(away)[0] + 1}
    elif "reach" not in text and "match" not in text and text != "threshold":
        row = min(picture["marks"], key=lambda mark: abs(middle(mark["box"])[1] - box[1]))
        assert is_name(text, row["of"]["name"]), text


def is_name(text, name):
    return text == name or (text.endswith("…") and name.startswith(text[:-1]))


def check_names(pictures, groups):
    """Every group is named: in the plane by name, or in a row of its own."""
    assert len({mark["of"]["name"] for mark in pictures[0]["marks"]}) == len(groups)
    # The second of a pair has the rows of the first.
    named = [pictures[i] for i in (0, 1, 3)] if len(pictures) == 5 else pictures
    for picture in named:
        texts = [word["text"] for word in picture["words"]]
        for name in {mark["of"]["name"] for mark in picture["marks"]}:
            assert any(is_name(text, name) for text in texts), name


@pytest.mark.parametrize("name", POPULATIONS)
def test_pictures_are_right_on_any_data(browser, tmp_path, monkeypatch, name):
    """Of axes and of words, as they are on the screen; not of repairs, which take long to make."""
    monkeypatch.setattr(view, "given_repairs", lambda *_: [])
    monkeypatch.setattr(view, "bounds_table", lambda *_: None)
    tally = calibrated(*POPULATIONS[name])
    path = ic.report(measured(tally, "fpr", replicates=0), path=tmp_path / "r.html")
    count = len(tally.groups)
    page, wrong = opened(browser, path, 1280, "light", "")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("new Promise(requestAnimationFrame).then(isocost.settled)")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert len(page.evaluate(TICKS)) == 5 + 2 * min(count, 6)
        for cost in (None, {"kind": "fnr"}, {"kind": "weighted", "fp": 1, "fn": 1000}):
            settled(page, {"cost": cost, "tolerance": 0.001} if cost else {})
            check_ticks(page.evaluate(TICKS))
            pictures = page.evaluate(WORDS)
            assert len(pictures) == (3 if count <= 8 else 5)
            # As many as the headline has, which tells groups apart.
            f = page.evaluate("isocost.results.f")
            decimals = Figures.of(f["costs"], f["cost"]["kind"]).decimals + 2
            for picture in pictures:
                check_words(picture, decimals)
            check_names(pictures, tally.groups)
    page.close()
    assert wrong == []


def test_pictures_are_drawn_for_the_width_they_have(visit):
    page = visit("six")
    page.set_viewport_size({"width": 700, "height": 900})
    page.evaluate("new Promise(requestAnimationFrame).then(isocost.settled)")
    for picture in page.evaluate(WORDS):
        check_words(picture, 3)
    drawn = "[...document.querySelectorAll('#costs-chart svg, #plane-chart svg')]"
    widths = page.evaluate(f"{drawn}.map(svg => svg.clientWidth)")
    assert all(abs(width - 636) < 30 for width in widths)


def test_a_phone_folds_long_parts_away(visit):
    page = visit("six", width=390)
    assert page.locator("details.fold > .glossary").is_hidden()
    assert page.evaluate("document.documentElement.scrollHeight") < 13_000
    page.click("details.fold:has(.glossary) > summary")
    assert page.locator(".glossary").is_visible()
