"""Equal rates that nobody wants: those of selecting nobody, or everybody.

With every base rate below the threshold, a score just below it for everybody is calibrated and has
FPR 0 and FNR 1 in every group.  It is always there, and of no use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from isocost.groups import Group
from isocost.repair.levels import ScoreLevels
from isocost.repair.program import BELOW, Choices

__all__ = ["SOME", "Corner", "Selected", "bounds", "clash", "corner_of"]

Floats = npt.NDArray[np.float64]
Selected = Literal["nobody", "everybody"]

HALF = 0.5
"""A tolerance selects people if every group can select this share of those it selected before.

Any tolerance above 0 selects somebody, but the fewer the smaller it is, so there is no smallest."""

FEW, NONE = 0.01, 1e-9
"""Up to this share of those selected before, and up to this share of a group, is next to nobody."""

SOME = {"nobody": "somebody selected", "everybody": "somebody not selected"}


@dataclass(frozen=True)
class Corner:
    """Rates that can be equal only if nobody, or everybody, is selected.

    Attributes
    ----------
    selected : {"nobody", "everybody"}
        Who would be.
    tolerance : float
        The smallest tolerance with which every group can select half as many people as before, or
        as calibrated scores can select (or leave out half as many); NaN if there is none.
    groups : tuple
        The two groups that clash, or the one that no tolerance helps.
    reason : str
        Why they do.
    """

    selected: Selected
    tolerance: float
    groups: tuple[Group, ...]
    reason: str


def corner_of(choices: Choices, shares: Floats) -> Selected | None:
    """Whether in every group next to nobody is selected, or not selected, unlike before."""
    after = choices.rates_matrix({"": choices.rate("selection_rate")}) @ shares
    before = np.array([_selected(part) for part in choices.levels])
    if before.any() and (after <= FEW * before + NONE).all():
        return "nobody"
    if (before < 1.0).any() and (1.0 - after <= FEW * (1.0 - before) + NONE).all():
        return "everybody"
    return None


def _selected(part: ScoreLevels) -> float:
    """The share of a group that scores at or above the threshold."""
    return float(part.w[part.above].sum())


def bounds(choices: Choices, selected: Selected) -> tuple[Floats, Floats]:
    """Bounds of the selection rates: half as many people as before, or as calibration allows.

    A group can select those of its levels with the highest shares of positives, as many as have
    the threshold for their mean; and leave out in the same way.
    """
    flip = selected == "everybody"
    below = max(choices.threshold - BELOW, choices.threshold / 2.0)
    shares = []
    for part in choices.levels:
        before = _selected(part)
        p, least = (1.0 - part.p, 1.0 - below) if flip else (part.p, choices.threshold)
        most = _most(p, part.w, least)
        # Where calibrated scores can select nobody, no tolerance is to be enough.
        shares.append(min(1.0 - before if flip else before, most or 1.0))
    half = HALF * np.array(shares)
    return (np.zeros(len(half)), 1.0 - half) if flip else (half, np.ones(len(half)))


def _most(p: Floats, w: Floats, least: float) -> float:
    """The weight of the levels with the highest p, as many as have the mean ``least``."""
    order = np.argsort(-p)
    w, spare = w[order], (w * (p - least))[order]
    left = np.cumsum(spare)
    partly = np.flatnonzero(left < 0.0)[:1]
    share = 1.0 - left[partly] / spare[partly]
    return float(w[left >= 0.0].sum() + (w[partly] * share).sum())


def clash(
    levels: Sequence[ScoreLevels], threshold: float, selected: Selected
) -> tuple[list[int], str]:
    """The groups because of which equal FPR and FNR leave nobody, or everybody, selected; and why.

    A pool of people with the share of positives p has TPR / FPR = p / (1 - p) * (1 - mu) / mu, and
    a calibrated score at the threshold or above has p of at least the threshold.  So equal
    rates take a ratio that is no lower than that of the threshold in the group where it is highest,
    and no higher than that of the best level in the group where it is lowest.  For those who are
    not selected it is the same with labels and scores the other way round.

    Returns the places of the groups, and a text with a field for each name.
    """
    flip = selected == "everybody"
    best = [float((1.0 - part.p if flip else part.p).max()) for part in levels]
    rate = np.array([1.0 - part.base_rate if flip else part.base_rate for part in levels])
    least = 1.0 - threshold if flip else threshold
    if min(best) < least:
        short = int(np.argmin(best))
        edge = "over" if flip else "under"
        return [short], f"every share of positives in {{}} lies {edge} {threshold:g}"
    with np.errstate(divide="ignore"):
        can = np.array(best) / (1.0 - np.array(best)) * (1.0 - rate) / rate
    must = least / (1.0 - least) * (1.0 - rate) / rate
    high, low = int(np.argmax(must)), int(np.argmin(can))
    ratio = "TNR / FNR of those not selected" if flip else "TPR / FPR of those selected"
    reason = f"{ratio} is at least {must[high]:.4g} in {{}} and at most {can[low]:.4g} in {{}}"
    return [high, low], reason
