"""The page of measures and its pictures, from the table of measures."""

from __future__ import annotations

from pathlib import Path

from isocost.cells import KINDS
from isocost.measures.table import FAMILIES, MEASURES, Measure

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "measures.md"
PICTURES = ROOT / "docs" / "measures"

START, END = "<!-- measures -->", "<!-- end of measures -->"

HEADINGS = {
    "decisions": "Decisions at the threshold",
    "scores": "Scores",
    "calibration": "Calibration",
}
"""A heading for each family."""

SIDE, GAP = 34, 2
"""Of a square of the picture, and between two of them."""

FULL, PARTLY, COUNTED, OUTSIDE = "#0f5c8c", "#6fa8cc", "#d6e4ee", "#ffffff"
"""People who add 1, add something that depends on the score, add nothing, are not looked at."""


def colour(measure: Measure, kind: str) -> str:
    if kind not in measure.over:
        return OUTSIDE
    a, b, c = measure.adds.get(kind, (0.0, 0.0, 0.0))
    if b or c:
        return PARTLY
    return FULL if a else COUNTED


def picture(measure: Measure) -> str:
    """Four squares: negatives above positives, passed over left of selected."""
    squares = []
    for index, kind in enumerate(KINDS):
        row, column = divmod(index, 2)
        x, y = (1 + i * (SIDE + GAP) for i in (column, row))
        squares.append(
            f'<rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" '
            f'fill="{colour(measure, kind)}" stroke="#9aa7b1"/>'
            f'<text x="{x + SIDE / 2:g}" y="{y + SIDE / 2 + 4:g}" text-anchor="middle" '
            'font-family="sans-serif" font-size="11" '
            f'fill="{"#ffffff" if colour(measure, kind) == FULL else "#33424d"}">{kind}</text>'
        )
    size = 2 * SIDE + GAP + 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" '
        f'role="img" aria-label="{measure.title}: {measure.formula}">{"".join(squares)}</svg>\n'
    )


def section(measure: Measure) -> str:
    """What the page says of a measure."""
    shown = f"\n![{measure.formula}](measures/{measure.name}.svg)\n" if measure.is_plain else ""
    better = f" The {measure.better}, the better." if measure.better else ""
    return f"""### {measure.title}

`{measure.name}`. {measure.sentence}{better}
{shown}
- Formula: {measure.formula}.
- Who asks: {measure.asked_by}
- Caution: {measure.caution}
"""


def files() -> dict[Path, str]:
    """Everything that is made from the table: the page and a picture for each plain measure."""
    before, rest = PAGE.read_text().split(START)
    after = rest.split(END)[1]
    blocks = []
    for family in FAMILIES:
        blocks.append(f"## {HEADINGS[family]}\n")
        blocks += [section(row) for row in MEASURES.values() if row.family == family]
    page = f"{before}{START}\n\n{chr(10).join(blocks)}\n{END}{after}"
    pictures = {
        PICTURES / f"{name}.svg": picture(row) for name, row in MEASURES.items() if row.is_plain
    }
    return {PAGE: page, **pictures}
