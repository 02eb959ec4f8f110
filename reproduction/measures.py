"""The numbers that decide claims, made from the numbers of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from reproduction.numbers import Numbers

__all__ = [
    "GROUPS",
    "RATES",
    "Measure",
    "accuracy_lost",
    "after_improving",
    "apart",
    "degraded",
    "fact",
    "further_apart",
    "moved_off_line",
    "off_line",
    "relative_difference",
    "rises",
    "sag",
    "share_withheld",
]

Measure = Callable[[Numbers], float]

RATES = ("generalized_fpr", "generalized_fnr")
GROUPS = (1, 2)

IMPROVEMENT = 0.1
"""By what share the errors of a group are thought away to see what better scores would do."""


def fact(name: str) -> Measure:
    """A number as it is."""
    return lambda n: n[name]


def apart(stage: str, *names: str) -> Measure:
    """How far the groups are apart in a number; in the one where they are farthest, of several.

    Examples
    --------
    >>> apart("odds", "cost")({"odds cost 1": 0.25, "odds cost 2": 0.75})
    0.5
    """
    return lambda n: max(abs(n[f"{stage} {name} 1"] - n[f"{stage} {name} 2"]) for name in names)


def further_apart(stage: str, name: str) -> Measure:
    """By how much the groups are further apart than with the original scores."""
    return lambda n: apart(stage, name)(n) - apart("original", name)(n)


def off_line(stage: str, groups: Iterable[int] = GROUPS) -> Measure:
    """The largest ``|mean score - base rate|``: 0 on the line of calibrated scores."""
    return lambda n: max(n[f"{stage} off_line {group}"] for group in groups)


def moved_off_line(stage: str, before: str = "original", groups: Iterable[int] = GROUPS) -> Measure:
    """By how much that has grown."""
    return lambda n: off_line(stage, groups)(n) - off_line(before, groups)(n)


def rises(n: Numbers, stage: str, group: int) -> list[float]:
    """By how much each rate of a group has grown."""
    return [n[f"{stage} {rate} {group}"] - n[f"original {rate} {group}"] for rate in RATES]


def relative_difference(n: Numbers) -> float:
    """The difference in cost as a share of the higher cost."""
    costs = [n["original cost 1"], n["original cost 2"]]
    return (max(costs) - min(costs)) / max(costs)


def share_withheld(n: Numbers) -> float:
    """The share to withhold in the group that is changed; each model may change another."""
    return n["alpha"]


def accuracy_lost(n: Numbers) -> float:
    """What the group loses that withholding changes; below 0 if it gains."""
    return -n["changed accuracy"]


def degraded(n: Numbers) -> float:
    """The smaller of the rises of that group's two rates."""
    return min(n[f"changed {rate}"] for rate in RATES)


def after_improving(name: str) -> Measure:
    """How far apart the groups come if the one with the higher cost makes a tenth fewer errors.

    Scores a tenth of the way nearer to the labels are as calibrated as before, and both
    generalized rates of the group are a tenth lower.

    Examples
    --------
    >>> n = {"original cost 1": 0.5, "original cost 2": 0.25}
    >>> n |= {"original generalized_fnr 1": 0.5, "original generalized_fnr 2": 0.75}
    >>> round(after_improving("generalized_fnr")(n), 4)
    0.05
    """

    def change(n: Numbers) -> float:
        costly = 1 if n["original cost 1"] >= n["original cost 2"] else 2
        one, other = n[f"original {name} {costly}"], n[f"original {name} {3 - costly}"]
        return abs((1 - IMPROVEMENT) * one - other) - abs(one - other)

    return change


def sag(n: Numbers) -> float:
    """How far the level curve of cost 1:3 lies from its chord between the two groups' lines."""
    mu = np.array([n["original base_rate 1"], n["original base_rate 2"]])
    target = max(n["original cost 1"], n["original cost 2"])
    along = np.linspace(mu.min(), mu.max(), 101)
    # On the line of base rate mu a point is t (mu, 1 - mu), and costs 4 t mu (1 - mu).
    reach = target / (4 * along * (1 - along))
    points = reach[:, None] * np.column_stack([along, 1 - along])
    chord = points[-1] - points[0]
    offset = points - points[0]
    if not chord.any():
        return 0.0  # both groups are on the same line
    return float(np.max(np.abs(offset @ [-chord[1], chord[0]]) / np.hypot(*chord)))
