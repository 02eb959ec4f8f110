"""What a rule makes of scores on average over the coin, row by row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isocost.learn.sensitive import Groups
from isocost.rules import Rule

__all__ = ["averaged", "two_columns"]

Floats = npt.NDArray[np.float64]


def averaged(rule: Rule, scores: Floats, groups: Groups) -> Floats:
    """The sum over outcomes of probability times value; groups without rows keep their scores."""
    out: Floats = scores.copy()
    for code, group in enumerate(groups.names):
        mine = np.flatnonzero(groups.codes == code)
        h = scores[mine]
        for segment in rule.segments(group):
            inside = segment.holds(h)
            out[mine[inside]] = segment.mean(h[inside])
    return np.clip(out, 0.0, 1.0)


def two_columns(scores: Floats) -> Floats:
    """The probabilities of both classes, from that of the positive one."""
    return np.column_stack([1.0 - scores, scores])
