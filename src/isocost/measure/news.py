"""What else has moved since a rule was made: for information, never an alarm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from isocost.groups import Group, as_group, names_of
from isocost.measure.claims import History
from isocost.rules import Rule

__all__ = ["news"]

FEW = 30
"""Fewer rows of a label than this say little about a period."""

MOVED = 0.02
"""Base rates and shares that moved by less are not mentioned."""

MOST_TOLD = 5


def news(rule: Rule, names: Sequence[str], history: History) -> list[str]:
    """Periods with too little data, groups that are missing, base rates and shares that moved."""
    shown = names_of(rule.groups)
    told = _thin(names, history, shown)
    absent = [shown[group] for group in rule.groups if group not in history.groups]
    if absent:
        told.append(f"In no period: {', '.join(absent)}.")
    weights, rows = history.all.by_label().w.sum(axis=0), history.all.n.sum(axis=(0, 2))
    made = _made_from(rule)
    before = sum(n for n, _ in made.values())
    for place, group in enumerate(history.groups):
        if group not in made:
            continue
        n, rate = made[group]
        numbers = (
            ("base rate", rate, weights[place, 1] / weights[place].sum()),
            ("share", n / before, rows[place] / rows.sum()),
        )
        told += [
            f"The {what} of {shown[group]} was {old:.4f} when the rule was made, now {new:.4f}."
            for what, old, new in numbers
            if abs(new - old) >= MOVED
        ]
    return told


def _thin(names: Sequence[str], history: History, shown: dict[Group, str]) -> list[str]:
    lines = []
    counts = history.all.by_label().n
    for period, name in enumerate(names):
        few = [
            f"{int(count)} {label} of {shown[group]}"
            for place, group in enumerate(history.groups)
            for label, count in zip(
                ("negatives", "positives"), counts[period, place].tolist(), strict=True
            )
            if count < FEW
        ]
        if few:
            more = f" and {len(few) - MOST_TOLD} more" if len(few) > MOST_TOLD else ""
            lines.append(f"Little data in {name}: {', '.join(few[:MOST_TOLD])}{more}.")
    if len(lines) > MOST_TOLD:
        lines[MOST_TOLD:] = [f"Little data in {len(lines) - MOST_TOLD} more periods."]
    return lines


def _made_from(rule: Rule) -> dict[Group, tuple[float, float]]:
    """Rows and base rate of each group when the rule was made, as far as the rule can be read."""
    listed: Any = rule.made_from.get("groups")
    found: dict[Group, tuple[float, float]] = {}
    for one in listed if isinstance(listed, list) else []:
        n: Any
        rate: Any
        one = one if isinstance(one, dict) else {}
        n, rate, group = one.get("n"), one.get("base_rate"), one.get("group")
        group = tuple(group) if isinstance(group, list) else group
        if _is_number(n) and _is_number(rate) and n > 0 and group in rule.groups:
            found[as_group(group)] = (float(n), float(rate))
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
