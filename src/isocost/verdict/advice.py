"""What an audit means, in plain words, built from its numbers.

Each function gives one paragraph or none; together they say whether the scores are calibrated,
whether costs differ, whether both can be had, which repair does what to whom, and what data would
change the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from isocost.costs import Cost
from isocost.groups import Group, names_of
from isocost.measures.audit import Disparity, Measures
from isocost.measures.feasibility import Feasibility
from isocost.measures.intervals import Intervals

__all__ = ["CALIBRATED", "advice_of"]

CALIBRATED = 0.02
"""A calibration gap up to here passes for calibrated: it is two points in a hundred."""

FEW = 3
"""Of how many groups the numbers are told; the table has those of all."""

UNKNOWN = 0.05
"""While a gap above this cannot be ruled out, calibration is not known."""


def advice_of(
    groups: Mapping[Group, Measures],
    cost: Cost,
    threshold: float,
    disparity: Disparity,
    feasibility: Feasibility,
    intervals: Intervals | None,
    names: Mapping[Group, str] | None = None,
) -> Iterator[str]:
    """The paragraphs of the advice, one after the other; groups may be given other names."""
    names = names_of(groups) if names is None else names
    yield from _calibration(groups, names)
    yield from _difference(names, disparity, feasibility, intervals)
    yield from _verdict(names, feasibility, intervals)
    yield from _repairs(names, threshold, feasibility, intervals)
    yield from _weights(cost)


def _calibration(groups: Mapping[Group, Measures], names: Mapping[Group, str]) -> Iterator[str]:
    """Whether scores mean what they say: the precondition of everything else."""
    off = {}
    worst, where = 0.0, ""
    for group, m in groups.items():
        low, high = m.intervals.get("calibration_gap", (m.calibration_gap_debiased, math.nan))
        if low > CALIBRATED:
            span = "" if math.isnan(high) else f", between {low:.3f} and {high:.3f}"
            way = "too low" if m.mean_score < m.base_rate else "too high"
            tilt = f"; on average {way} by {m.calibration_gap_bound:.3f}"
            off[f"{names[group]} (gap {m.calibration_gap:.3f}{span}{tilt})"] = m.calibration_gap
        if high > worst:
            worst, where = high, names[group]
    if off:
        yield (
            f"Not calibrated: {_few(off)}. A score does not mean the same for every group. "
            "Recalibrate each group first, on other data than the scores were trained on; equal "
            "costs of miscalibrated scores say little."
        )
    elif worst > UNKNOWN:
        yield (
            f"Calibration: no group is shown to be off by more than {CALIBRATED:g}, but there is "
            f"too little data to rule out a gap of {worst:.3f} for {where}."
        )
    else:
        yield (
            f"Calibration: no group is shown to be off by more than {CALIBRATED:g}, so a score "
            "means about the same for each."
        )


def _difference(
    names: Mapping[Group, str],
    disparity: Disparity,
    feasibility: Feasibility,
    intervals: Intervals | None,
) -> Iterator[str]:
    """Whether the difference is more than chance, and how much data would settle it."""
    if intervals is None or disparity.difference <= feasibility.tolerance:
        return
    low, high = intervals.differences["cost"]
    if intervals.direction_established:
        yield (
            f"The errors of {names[disparity.highest]} cost more, beyond chance: the difference "
            f"to {names[disparity.lowest]} is {disparity.difference:.4f}, between {low:.4f} and "
            f"{high:.4f}."
        )
        return
    chance = intervals.direction_share
    told = "" if chance is None else f" (it comes out so in {chance:.0%} of resamples)"
    yield (
        f"It is not established that the errors of {names[disparity.highest]} cost most{told}. "
        f"{_more_data(disparity.difference, low, high)} Until then, do not change anybody's "
        "scores because of this difference."
    )


def _more_data(difference: float, low: float, high: float) -> str:
    width = (high - low) / 2.0
    if width <= 0 or difference <= 0:
        return "More data may settle it."
    # An interval's width falls with the square root of the rows.
    times = max(2, math.ceil((width / difference) ** 2))
    if times > 1000:
        return "If the difference is as small as it looks, no practical amount of data settles it."
    return f"If the difference is real, about {times} times as many rows would show it."


def _verdict(
    names: Mapping[Group, str], feasibility: Feasibility, intervals: Intervals | None
) -> Iterator[str]:
    """Feasible or not, and how sure that is."""
    chance = None if intervals is None else intervals.feasible_probability
    sure = ""
    if chance is not None and 0.025 < chance < 0.975:
        sure = f" This is uncertain: it is feasible in {chance:.0%} of resamples."
    yield f"{feasibility.told(names, FEW)}{sure}"


def _repairs(
    names: Mapping[Group, str],
    threshold: float,
    feasibility: Feasibility,
    intervals: Intervals | None,
) -> Iterator[str]:
    """Which repair does what to whom."""
    if feasibility.uninformative:
        listed = ", ".join(names[group] for group in feasibility.uninformative)
        yield (
            f"The scores of {listed} cost at least as much as giving everybody the base rate: they "
            "are worse than no scores. Recalibrate or replace them before anything else."
        )
    if feasibility.feasible and not feasibility.changed:
        return
    if feasibility.feasible:
        shares = {
            f"{share:.1%} of {names[group]}{_alpha_span(group, intervals)}": share
            for group, share in feasibility.alpha.items()
            if group in feasibility.changed
        }
        yield (
            f"To do it: withhold gives {_few(shares)} the base rate instead of their score, by a "
            "coin; coarsen rounds scores instead, the same for equal scores, and reaches the same "
            f"costs where the decisions at {threshold:g} allow it: isocost fit --method coarsen "
            "tells. Both make the changed groups' scores worse, nobody's better."
        )
    yield (
        f"Instead: reconcile keeps scores calibrated and makes FPR and FNR at {threshold:g} equal, "
        "unless that would select nobody or everybody: isocost fit --method reconcile tells; "
        "equalize_odds makes both generalized rates equal and gives up calibration. Compare them "
        "with ic.compare or isocost compare before you choose."
    )


def _few(told: Mapping[str, float]) -> str:
    """The texts as a list; if they are many, those with the largest numbers."""
    if len(told) <= FEW:
        return ", ".join(told)
    largest = sorted(told, key=lambda text: -told[text])[:FEW]
    return f"{', '.join(largest)} and {len(told) - FEW} more"


def _alpha_span(group: Group, intervals: Intervals | None) -> str:
    if intervals is None or group not in intervals.alpha:
        return ""
    low, high = intervals.alpha[group]
    top = f"{high:.1%}" if high <= 1 else "more than all"
    return f" (between {low:.1%} and {top})"


def _weights(cost: Cost) -> Iterator[str]:
    """The ratio of a weighted cost does less than people think."""
    if cost.by_base_rate and not isinstance(cost.fp, Mapping) and cost.fp != cost.fn:
        yield (
            f"Note on {cost}: for calibrated scores the ratio of the weights cancels out of equal "
            "cost; only miscalibration makes it matter."
        )
