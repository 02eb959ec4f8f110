"""Draw the pictures of the pages, all of COMPAS: python tools/make_pictures.py."""

from __future__ import annotations

from pathlib import Path

import isocost as ic
from isocost.examples import compas
from isocost.plots import (
    MeasuresDisplay,
    NetBenefitDisplay,
    PlaneDisplay,
    PredictiveValuesDisplay,
)

DOCS = Path(__file__).parent.parent / "docs"


def main() -> None:
    tally = compas()
    rules = {"equalize_odds": ic.equalize_odds(tally)}
    limits = (0.2, 0.7, 0.25, 0.75)
    measures = ["auc", "cross_auc", "cross_auc_negatives", "calibration_slope"]
    pictures = {
        "plane": PlaneDisplay.from_tally(tally, rules, cost="fpr", limits=limits),
        "predictive-values": PredictiveValuesDisplay.from_tally(tally),
        "net-benefit": NetBenefitDisplay.from_tally(tally),
        "measures": MeasuresDisplay.from_tally(tally, measures),
    }
    for name, display in pictures.items():
        display.figure_.savefig(DOCS / f"{name}.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
