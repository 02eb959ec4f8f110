"""The page of isocost serve in a real browser: by mouse, by keyboard, with hostile files."""

import os
import re
from pathlib import Path

import pytest

from tests.serving import compas_csv, served

pytest.importorskip("uvicorn", reason="isocost serve needs the extra serve")
pytest.importorskip("starlette", reason="isocost serve needs the extra serve")

SCRIPT = "<script>alert(1)</script>"
SHOTS = os.environ.get("ISOCOST_ARTIFACTS")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with served(tmp_path_factory.mktemp("temporary"), "--max-size", "1MB") as one:
        yield one


@pytest.fixture
def page(browser, running):
    """The start page; at the end nothing may have been asked elsewhere, nothing complained of."""
    yield from opened(browser, running)


@pytest.fixture
def phone(browser, running):
    yield from opened(browser, running, viewport={"width": 390, "height": 844}, color_scheme="dark")


def opened(browser, running, **options):
    page = browser.new_page(**options)
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: message.type == "error" and said.append(message.text))
    page.on("pageerror", lambda error: said.append(f"uncaught: {error}"))
    page.on("dialog", lambda dialog: (said.append("a dialog"), dialog.dismiss()))
    address = enter(page, running)
    yield page
    known = (running.url, address, "data:", "blob:")
    strange = [url for url in asked if not url.startswith(known)]
    page.close()
    assert strange == []
    # Refusals are logged by the browser itself, though the page deals with them.
    assert [line for line in said if "status of 4" not in line] == []


def enter(page, running):
    """Open the page by an address of its own, as it was printed."""
    address = running.new_address()
    page.goto(address)
    page.wait_for_url(running.url)
    return address


def shot(page, name):
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS, f"serve-{name}.png")), full_page=True)


def file_of(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def report_of(page):
    """The frame of the report, once it tells its verdict."""
    page.wait_for_selector("#result:not([hidden])", timeout=30_000)
    frame = page.frame_locator("#report")
    frame.locator("#verdict").wait_for(timeout=30_000)
    return frame


def test_the_browser_that_was_let_in_stays_in_and_no_other_comes(browser, running):
    context = browser.new_context()
    page, second = context.new_page(), context.new_page()
    enter(page, running)
    page.reload()
    page.wait_for_selector("#limit:not(:empty)")
    second.goto(running.url)
    second.wait_for_selector("#limit:not(:empty)")
    # Scripts cannot read the key, and going back does not lead to the address that was used.
    assert page.evaluate("document.cookie") == ""
    page.go_back()
    assert page.url == "about:blank"
    context.close()
    stranger = browser.new_page()
    assert stranger.goto(running.url).status == 404
    assert "open the last address" in stranger.inner_text("body")
    assert stranger.goto(running.used).status == 403
    shot(stranger, "used")
    assert "runs shows a new one" in stranger.inner_text("body")
    stranger.close()


def test_an_address_may_be_clicked_in_another_page(browser, running):
    """As in a terminal that is a page itself: browsers are strict with cookies after that."""
    page = browser.new_page()
    page.set_content(f'<a href="{running.new_address()}">open</a>')
    page.click("a")
    page.wait_for_url(running.url)
    page.wait_for_selector("#limit:not(:empty)")
    page.close()


def test_choose_a_file_and_get_the_report(page, running, tmp_path):
    shot(page, "start")
    page.set_input_files("#file", file_of(tmp_path, "compas.csv", compas_csv()))
    page.wait_for_selector("#form:not([hidden])")
    chosen = {role: page.input_value(f"#{role}") for role in ("score", "label", "group", "weight")}
    assert chosen == {"score": "score", "label": "label", "group": "group", "weight": ""}
    assert page.inner_text("#group-hint") == "For example African-American, Caucasian"
    assert not page.is_visible("#positive")
    page.check("input[value=fpr]")
    shot(page, "columns")
    page.click("#make")
    frame = report_of(page)
    assert "Caucasian" in frame.locator("body").inner_text()
    assert frame.locator("svg").first.is_visible()
    # The report may write to the clipboard.
    asked = "() => document.featurePolicy.allowsFeature('clipboard-write')"
    assert frame.locator("body").evaluate(asked)
    shot(page, "report")
    assert running.held() == 0
    assert running.left() == []
    with page.expect_download() as download:
        page.click("#download")
    assert download.value.suggested_filename == "report.html"
    saved = Path(download.value.path()).read_text()
    assert saved.rstrip().endswith("</html>")
    assert "Caucasian" in saved
    with page.expect_popup() as popup:
        page.click("#open")
    popup.value.wait_for_selector("#verdict")
    popup.value.close()
    # Another report of the same file: the page sends it again by itself.
    page.click("#again")
    page.check("input[value=weighted]")
    page.fill("#fn", "3")
    first = page.get_attribute("#report", "src")
    page.click("#make")
    page.wait_for_function(
        "old => document.querySelector('#report').getAttribute('src') !== old", arg=first
    )
    assert page.is_hidden("#problems")


def test_drop_a_file(page):
    page.evaluate(
        """text => {
            const moved = new DataTransfer();
            moved.items.add(new File([text], "dropped.csv"));
            const how = {dataTransfer: moved, bubbles: true, cancelable: true};
            document.getElementById("drop").dispatchEvent(new DragEvent("drop", how));
        }""",
        compas_csv(),
    )
    page.wait_for_selector("#form:not([hidden])")
    assert page.inner_text("#status").startswith("dropped.csv: 5 columns.")


def test_keyboard_only(page, tmp_path):
    # Listened for from the start: on a busy machine the browser may else open a chooser of its own.
    choosers = []
    page.on("filechooser", lambda chooser: choosers.append(chooser))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "file"
    for attempt in range(100):
        if not choosers and attempt % 50 == 0:
            page.keyboard.press("Space")
        if not choosers:
            page.wait_for_timeout(200)
    choosers[0].set_files(file_of(tmp_path, "compas.csv", compas_csv()))
    page.wait_for_selector("#form:not([hidden])")
    seen = []
    while seen[-1:] != ["make"]:
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.name"))
        assert len(seen) < 20, seen
        if seen[-1] == "cost":
            page.keyboard.press("ArrowDown")
    # The first is the summary of how the file is read.
    columns = ["score", "scale", "label", "group", "second"]
    assert seen[1:10] == [*columns, "missing", "missing-label", "handed-over", "drop-missing"]
    assert page.is_checked("input[value=fpr]")
    page.keyboard.press("Enter")
    report_of(page)
    assert page.evaluate("document.activeElement.id") == "result-title"


def test_everything_has_a_name_for_a_screen_reader(page, tmp_path):
    page.set_input_files("#file", file_of(tmp_path, "compas.csv", compas_csv()))
    page.wait_for_selector("#form:not([hidden])")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, select")]
            .filter(one => !one.labels.length || !one.labels[0].textContent.trim())
            .map(one => one.outerHTML)"""
    )
    assert nameless == []
    described = page.locator("#score").get_attribute("aria-describedby")
    assert page.inner_text(f"#{described}").startswith("For example 0.")
    assert page.locator("[role=status]").count() == 1
    assert page.locator("[role=alert]").count() == 1


def test_hostile_names_are_text(page, tmp_path):
    names = ("id", SCRIPT, "decile", '"><img src=x onerror=alert(1)>', "score")
    text = compas_csv(names).replace("Caucasian", SCRIPT)
    page.set_input_files("#file", file_of(tmp_path, "<img src=x onerror=alert(2)>.csv", text))
    page.wait_for_selector("#form:not([hidden])")
    page.select_option("#group", SCRIPT)
    page.select_option("#label", names[3])
    page.select_option("#score", "score")
    assert SCRIPT in page.inner_text("#group-hint")
    assert page.locator("img").count() == 0
    shot(page, "hostile")
    page.click("#make")
    frame = report_of(page)
    assert SCRIPT in frame.locator("body").inner_text()
    assert frame.locator("img[src=x]").count() == 0


def test_a_broken_file_is_told_and_another_can_be_chosen(page, tmp_path):
    page.set_input_files("#file", file_of(tmp_path, "broken.parquet", b"PAR1 nothing PAR1"))
    page.wait_for_selector("#problems:not([hidden])")
    told = page.inner_text("#problems")
    assert "file: must be readable as Parquet" in told
    assert "broken.parquet" in told
    assert "check that the file has the right ending" in told
    assert page.is_hidden("#form")
    shot(page, "broken")
    page.set_input_files("#file", file_of(tmp_path, "good.csv", compas_csv()))
    page.wait_for_selector("#form:not([hidden])")
    assert page.is_hidden("#problems")


def test_a_file_that_is_too_large(page, tmp_path):
    page.set_input_files("#file", file_of(tmp_path, "large.csv", b"a,b\n" + b"1,2\n" * 300_000))
    page.wait_for_selector("#problems:not([hidden])")
    assert "must be at most 1 MB here" in page.inner_text("#problems")
    assert "--max-size" in page.inner_text("#problems")


def test_a_wrong_column_is_told(page, tmp_path):
    page.set_input_files("#file", file_of(tmp_path, "compas.csv", compas_csv()))
    page.select_option("#score", "decile")
    assert page.input_value("#scale") == "", "nothing is guessed about deciles"
    page.select_option("#scale", "probability")
    page.click("#make")
    page.wait_for_selector("#problems:not([hidden])")
    assert "set “What the scores are” to rank" in page.inner_text("#problems")
    assert "score (column 'decile'): must be a number in [0, 1]" in page.inner_text("#problems")
    # The control that mends it has the focus, and the message stands beside it.
    assert page.evaluate("document.activeElement.id") == "scale"
    assert page.locator(".field:has(#scale) + #problems").count() == 1
    page.get_by_role("button", name="Go to “Score”").click()
    assert page.evaluate("document.activeElement.id") == "score"
    page.select_option("#score", "score")
    page.click("#make")
    report_of(page)


def test_outcomes_in_words_must_be_named(page, tmp_path):
    words = re.sub(r",([01]),(0\.\d+)$", lambda m: f",{'won' if m[1] == '1' else 'lost'},{m[2]}",
                   compas_csv(), flags=re.MULTILINE)  # fmt: skip
    page.set_input_files("#file", file_of(tmp_path, "words.csv", words))
    page.wait_for_selector("#positive-field:not([hidden])")
    page.click("#make")
    # The browser holds the form back, as nothing is chosen.
    assert page.evaluate("document.querySelector('#positive').matches(':invalid')")
    assert page.is_hidden("#result")
    page.select_option("#positive", "won")
    page.click("#make")
    assert "Caucasian" in report_of(page).locator("body").inner_text()


def test_a_closed_control_is_opened_and_mends_the_error(page, tmp_path):
    names = ["Köln", "Bonn"]
    rows = [f"{(i % 10) / 10};{i % 3 % 2};{names[i % 2]}" for i in range(400)]
    text = "\n".join(["score;label;group", *rows]).encode("windows-1252")
    path = file_of(tmp_path, "towns.csv", text)
    page.set_input_files("#file", path)
    page.wait_for_selector("#form:not([hidden])")
    assert page.inner_text("#encoding-hint") == "Read as “windows-1252”"
    page.evaluate("document.querySelector('#reading').open = false")
    choose = "one => { one.value = 'utf-8'; one.dispatchEvent(new Event('change')); }"
    page.locator("#encoding").evaluate(choose)
    page.wait_for_selector("#problems:not([hidden])")
    assert "set “Encoding” to “found by itself”" in page.inner_text("#problems")
    assert page.evaluate("document.activeElement.id") == "encoding"
    assert page.evaluate("document.querySelector('#reading').open")
    page.select_option("#encoding", "")
    page.wait_for_selector("#form:not([hidden])")
    assert page.is_hidden("#problems")
    assert page.locator("[aria-invalid]").count() == 0


def test_another_file_is_laid_beside_the_report(page, tmp_path):
    before = compas_csv()
    # Everybody of one group gets a lower score than in the first file.
    after = re.sub(r"(Caucasian,.*),0\.(\d+)$", r"\1,0.0\2", before, flags=re.MULTILINE)
    page.set_input_files("#file", file_of(tmp_path, "before.csv", before))
    page.wait_for_selector("#form:not([hidden])")
    page.check("input[value=fpr]")
    page.click("#make")
    report_of(page)
    first = page.get_attribute("#report", "src")
    page.set_input_files("#beside", file_of(tmp_path, "after.csv", after))
    page.wait_for_function(
        "old => document.querySelector('#report').getAttribute('src') !== old", arg=first
    )
    frame = report_of(page)
    assert "fell for Caucasian by" in frame.locator("#verdict").inner_text()
    assert frame.locator("#cost .changed th").all_inner_texts()[0] == "Caucasian"
    assert frame.locator("#cost tr:has-text('African-American')").get_attribute("class") is None
    shot(page, "beside")
    with page.expect_download() as download:
        page.click("#download")
    saved = Path(download.value.path()).read_text()
    assert saved.rstrip().endswith("</html>")
    assert saved.count("before.csv") > 2 < saved.count("after.csv")
    # Other columns are told, and the first file is at hand for another report.
    page.set_input_files("#beside", file_of(tmp_path, "c.csv", "a,b,c\n0.5,1,x\n"))
    page.wait_for_selector("#problems:not([hidden])")
    assert page.evaluate("document.activeElement.id") == "score"
    page.click("#make")
    report_of(page)
    assert page.is_hidden("#problems")


def test_a_phone_needs_no_sideways_scrolling(phone, tmp_path):
    def overflow():
        return phone.evaluate("document.documentElement.scrollWidth - window.innerWidth")

    assert overflow() <= 0
    names = ("id", "g" * 200, "decile", "label", "score")
    phone.set_input_files("#file", file_of(tmp_path, f"{'long' * 40}.csv", compas_csv(names)))
    phone.wait_for_selector("#form:not([hidden])")
    assert overflow() <= 0
    shot(phone, "phone")
    phone.select_option("#score", "decile")
    phone.select_option("#scale", "probability")
    phone.click("#make")
    phone.wait_for_selector("#problems:not([hidden])")
    assert overflow() <= 0
    shot(phone, "phone-problem")
    phone.select_option("#score", "score")
    phone.click("#make")
    report_of(phone)
    assert overflow() <= 0


def test_a_server_that_is_gone_is_told(browser, tmp_path):
    with served(tmp_path) as one:
        page = browser.new_page()
        enter(page, one)
        page.wait_for_selector("#limit:not(:empty)")
        one.stop()
        page.set_input_files("#file", file_of(tmp_path, "compas.csv", compas_csv()))
        page.wait_for_selector("#problems:not([hidden])")
        assert "isocost serve: must be running" in page.inner_text("#problems")
        page.close()


def test_a_file_from_the_command_line_is_there_at_once(browser, tmp_path):
    path = file_of(tmp_path, "mine.csv", compas_csv())
    with served(tmp_path, path) as one:
        page = browser.new_page()
        enter(page, one)
        page.wait_for_selector("#form:not([hidden])")
        assert page.inner_text("#status").startswith("mine.csv: 5 columns.")
        page.close()
