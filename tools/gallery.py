"""Screenshots of the report: python tools/gallery.py [NAME ...], or make gallery.

Five data sets at 1280 and 390 pixels, light and dark, and on paper, into build/gallery.  Those in
SHOWN are also made small and put into docs/gallery, for the page of pictures.  Data that are not
there are skipped: Adult and German credit are read as for the reproduction.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import isocost as ic
from isocost.examples import compas

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

VIEWS = {
    "1280-light": (1280, "light", "screen"),
    "1280-dark": (1280, "dark", "screen"),
    "390-light": (390, "light", "screen"),
    "390-dark": (390, "dark", "screen"),
    "print": (718, "light", "print"),
}
"""Width, colours and medium; 718 pixels are the width of A4 within its margins."""

SHOWN = {
    ("compas", "1280-light"): (0, 1500),
    ("compas", "390-dark"): (0, 1900),
    ("adult", "1280-dark"): (560, 1500),
    ("rare", "1280-light"): (560, 1350),
    ("forty", "1280-light"): (560, 1750),
    ("forty", "390-light"): (900, 1900),
    ("compas", "print"): (0, 1050),
}
"""What the docs show: from which pixel, and how many."""


def _scored(table: Any, label: Any, group: Any) -> ic.Tally:
    """Scores of a logistic regression for the half of the rows that it has not seen."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features = pd.get_dummies(table, dtype=float).to_numpy()
    half = np.random.default_rng(0).permutation(len(label))
    seen, new = np.split(half, [len(label) // 2])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    scores = model.fit(features[seen], label[seen]).predict_proba(features[new])[:, 1]
    return ic.tally({"score": scores, "label": label[new], "group": np.asarray(group)[new]})


def adult() -> ic.Tally:
    """Who earns above $50K, by race and sex."""
    from reproduction.datasets import adult as read

    data = read()
    return _scored(data.table, data.label, data.table["race"] + ", " + data.table["sex"])


def german() -> ic.Tally:
    """Who is a bad credit risk, by sex and whether older than 25."""
    from reproduction.datasets import german as read

    data = read()
    sex = np.where(data.table["sex"] == 1, "men", "women")
    age = np.where(data.table["age"] == 1, "over 25", "up to 25")
    return _scored(data.table, data.label, [f"{s}, {a}" for s, a in zip(sex, age, strict=True)])


def _calibrated(rates: Any, sizes: Any, name: str) -> ic.Tally:
    random = np.random.default_rng(0)
    scores = [random.beta(4 * r, 4 * (1 - r), n) for r, n in zip(rates, sizes, strict=True)]
    group = np.repeat([f"{name} {i + 1}" for i in range(len(sizes))], sizes)
    score = np.concatenate(scores)
    return ic.tally({"score": score, "label": random.random(len(score)) < score, "group": group})


def rare() -> ic.Tally:
    """One person in a hundred is positive."""
    return _calibrated((0.008, 0.01, 0.013), (40_000, 20_000, 8_000), "Site")


def forty() -> ic.Tally:
    """Forty groups, some small."""
    rates = 0.1 + 0.3 * np.random.default_rng(3).random(40)
    return _calibrated(rates, [300 + 200 * (i % 9) for i in range(40)], "County")


DATA: dict[str, Callable[[], ic.Tally]] = {
    "compas": compas, "adult": adult, "german": german, "rare": rare, "forty": forty,
}  # fmt: skip


def shoot(browser: Any, path: Path, folder: Path) -> None:
    """All views of one report."""
    for view, (width, scheme, medium) in VIEWS.items():
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.emulate_media(media=medium, color_scheme=scheme)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-done]", timeout=60_000)
        page.screenshot(path=folder / f"{path.stem}-{view}.png", full_page=True)
        page.close()


def show(folder: Path, docs: Path) -> None:
    """Put what is shown into the docs, small: 96 colours, and at most 760 pixels wide."""
    docs.mkdir(exist_ok=True)
    for (name, view), (top, high) in SHOWN.items():
        path = folder / f"{name}-{view}.png"
        if path.exists():
            whole = Image.open(path).convert("RGB")
            part = whole.crop((0, top, whole.width, min(top + high, whole.height)))
            if part.width > 760:
                part = part.resize((760, round(part.height * 760 / part.width)))
            part.quantize(96, Image.Quantize.MAXCOVERAGE).save(docs / path.name, optimize=True)


def main() -> int:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        print("gallery: install Chromium (Debian's package chromium)", file=sys.stderr)
        return 1
    folder = ROOT / "build" / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in sys.argv[1:] or DATA:
            try:
                tally = DATA[name]()
            except (ic.IsocostError, OSError) as error:
                print(f"skipped {name}: {str(error).splitlines()[0]}")
                continue
            audit = ic.audit(tally, "fpr", warn=False)
            shoot(browser, ic.report(audit, path=folder / f"{name}.html"), folder)
            print(f"made {name}")
        browser.close()
    show(folder, ROOT / "docs" / "gallery")
    return 0


if __name__ == "__main__":
    sys.exit(main())
