"""A real browser, and reports to open in it."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import isocost as ic
from isocost.examples import compas
from tests.conftest import DATA, sample

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"quoted' & {curly}",
    "אבגד ‏rtl‏",
    "🦊 emoji",
    "a very long name " * 12,
)

pytest.importorskip("vl_convert", reason='pip install "isocost[report]"')


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("install Chromium (Debian's package chromium) to drive the page")
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield found
        found.close()


def six_groups() -> ic.Tally:
    data = sample(rows=20_000, groups=6)
    names = np.array(["North", "South-East", "West", "Central district", "Islands", "Abroad"])
    return ic.tally({**data, "group": names[data["group"]]}, bins=128)


def hostile_groups() -> ic.Tally:
    data = sample(rows=3000, groups=len(HOSTILE))
    return ic.tally({**data, "group": np.array(HOSTILE)[data["group"]]}, bins=128)


MAKERS = {
    "compas": lambda: ic.audit(compas(), "fpr"),
    "health": lambda: ic.audit(ic.Tally.load(DATA / "health.json"), "weighted:1,3"),
    "six": lambda: ic.audit(six_groups(), "fnr"),
    "hostile": lambda: ic.audit(hostile_groups(), "fnr", replicates=200),
}


@pytest.fixture(scope="session")
def audits():
    """The audits behind the pages, made when first asked for."""
    found: dict[str, ic.Audit] = {}

    def get(name: str) -> ic.Audit:
        if name not in found:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ic.UncertainWarning)
                found[name] = MAKERS[name]()
        return found[name]

    return get


@pytest.fixture(scope="session")
def pages(audits, tmp_path_factory):
    """The path of a report, written when first asked for."""
    folder, found = tmp_path_factory.mktemp("reports"), {}

    def get(name: str) -> Path:
        if name not in found:
            found[name] = ic.report(audits(name), path=folder / f"{name}.html")
        return found[name]

    return get


@pytest.fixture(scope="session")
def tabs():
    """Pages that are open, and what went wrong in them; they end with the browser."""
    return {}


AS_OPENED = """async hash => {
    for (const one of document.querySelectorAll("details")) one.open = false;
    window.scrollTo(0, 0);
    document.activeElement.blur();
    if (location.hash.slice(1) !== hash) {
        location.hash = hash;
        await new Promise(done => window.addEventListener("hashchange", done, {once: true}));
    }
    await isocost.settled();
}"""
"""An address without settings sets everything back: so a test need not load the page again."""


@pytest.fixture
def visit(browser, pages, tabs):
    """A report as it opens; at the end nothing may have gone wrong or left the machine.

    A page is loaded once for each width and colours, unless it is to be ``fresh``.
    """
    visited = []

    def get(name: str, width: int = 1280, scheme: str = "light", hash: str = "", fresh=False):
        key = (name, width, scheme)
        if fresh or key not in tabs:
            old = tabs.pop(key, None)
            if old is not None:
                old[0].close()
            tabs[key] = opened(browser, pages(name), width, scheme, hash)
        page, wrong = tabs[key]
        visited.append(wrong)
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(AS_OPENED, hash.removeprefix("#"))
        return page

    yield get
    found = [list(wrong) for wrong in visited]
    for wrong in visited:
        wrong.clear()
    assert found == [[] for _ in visited]


@pytest.fixture
def reading(browser):
    """A function that opens a page of a file, drawn; the page is closed at the end."""
    pages = []

    def get(path: Path | str, script: str = "", **options):
        page = browser.new_page(**options)
        pages.append(page)
        if script:
            page.add_init_script(script)
        page.goto(path if isinstance(path, str) else path.as_uri())
        page.wait_for_selector("html[data-done]", timeout=60_000)
        return page

    yield get
    for page in pages:
        page.close()


def opened(browser, path: Path, width: int, scheme: str, hash: str):
    """A page in a tab of its own, and the list of what goes wrong in it."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(f"dialog {dialog.message}"))
    page.on("request", lambda r: r.url.startswith(("file:", "data:")) or wrong.append(r.url))
    page.goto(f"{path.as_uri()}{hash}")
    page.wait_for_selector("html[data-done]", timeout=60_000)
    return page, wrong


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory) -> Path:
    """Where screenshots are kept to be looked at."""
    given = os.environ.get("ISOCOST_ARTIFACTS")
    folder = Path(given) if given else tmp_path_factory.mktemp("artifacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
