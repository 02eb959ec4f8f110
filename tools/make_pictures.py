"""Draw the pictures of the pages, all of COMPAS: python tools/make_pictures.py."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

import isocost as ic
from isocost.examples import compas
from isocost.plots import (
    ChangeDisplay,
    FrontierDisplay,
    MeasuresDisplay,
    NetBenefitDisplay,
    PlaneDisplay,
    PredictiveValuesDisplay,
    ReconcilableDisplay,
    ReliabilityDisplay,
    RepairPlanDisplay,
)

DOCS = Path(__file__).parent.parent / "docs"
MAXCOVERAGE = Image.Quantize.MAXCOVERAGE


def main() -> None:
    tally = compas()
    odds = {"equalize_odds": ic.equalize_odds(tally)}
    limits = (0.2, 0.7, 0.25, 0.75)
    measures = ["auc", "cross_auc", "cross_auc_negatives", "calibration_slope"]
    methods = ("withhold", "coarsen")
    pictures = {
        "plane": PlaneDisplay.from_tally(tally, odds, cost="fpr", limits=limits),
        "reliability": ReliabilityDisplay.from_tally(tally),
        "predictive-values": PredictiveValuesDisplay.from_tally(tally),
        "net-benefit": NetBenefitDisplay.from_tally(tally),
        "measures": MeasuresDisplay.from_tally(tally, measures),
        "frontier": FrontierDisplay.from_tally(tally, "fpr", methods=methods, points=9),
        "change": ChangeDisplay.from_tally(tally, odds),
        "reconcilable": ReconcilableDisplay.from_tally(tally),
        "repair-plan": RepairPlanDisplay.from_tally(tally, "reconcile", within=0.05),
    }
    for name, display in pictures.items():
        path = DOCS / f"{name}.png"
        display.figure_.savefig(path, dpi=110, metadata={"Software": None})
        # Few colours are enough, and a third of the size.
        Image.open(path).convert("RGB").quantize(128, MAXCOVERAGE).save(path, optimize=True)


if __name__ == "__main__":
    main()
