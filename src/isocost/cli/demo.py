"""isocost demo: the whole story on COMPAS, from forty built-in counts."""

from __future__ import annotations

from isocost.cli.commands import show_audit, show_change
from isocost.cli.output import say
from isocost.errors import InfeasibleError
from isocost.experiments.compas import compas
from isocost.measure.audit import audit
from isocost.measure.feasibility import round_up
from isocost.repair.withhold import withhold

__all__ = ["demo"]

TOLERANCE = 0.06


def demo() -> None:
    """Audit and repair COMPAS, from counts that come with the package; needs no network."""
    tally = compas()
    say("COMPAS risk scores of 6,150 defendants: does a wrong score cost every group the same?\n")
    result = audit(tally, "fpr")
    show_audit(result)
    say("\n1. Can calibrated scores have equal generalized false-positive rates?\n")
    try:
        withhold(tally, "fpr")
    except InfeasibleError as error:
        needed = error.feasibility.smallest_tolerance
        say(f"No. {error}")
        say(
            f"\n2. What can be had: costs that differ by {TOLERANCE:g} instead of "
            f"{result.disparity.difference:.4f} (the least possible is {round_up(needed)}).\n"
        )
    show_change(tally, withhold(tally, "fpr", TOLERANCE), 0.5)
