"""Draw the picture of the README: COMPAS in the plane, and what equalized odds would do."""

from __future__ import annotations

from pathlib import Path

import isocost as ic
from isocost.examples import compas
from isocost.plots import PlaneDisplay

TARGET = Path(__file__).parent.parent / "docs" / "plane.png"


def main() -> None:
    tally = compas()
    rules = {"equalize_odds": ic.equalize_odds(tally)}
    display = PlaneDisplay.from_tally(tally, rules, cost="fpr").plot(limits=(0.2, 0.7, 0.25, 0.75))
    display.figure_.savefig(TARGET, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
