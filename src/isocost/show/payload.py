"""What the page holds of a tally: aggregates as plain values, and no cell with few people.

The page computes from these sums what Python computes from the tally, so they are written with all
their digits.  Where small cells are to be hidden, or there are too many, bins are merged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isocost import __version__
from isocost.checks import check_whole
from isocost.costs import CostLike, as_cost
from isocost.errors import DataError, Problem
from isocost.groups import Group, Scalar, group_names
from isocost.measure.table import MEASURES, Measure
from isocost.rules import Rule
from isocost.show.merging import merged
from isocost.show.words import WORDS
from isocost.tallies import Tally

__all__ = ["Origin", "cost_fields", "payload", "rule_fields", "safe_group", "single_text"]

FORMAT = "isocost-page"
VERSION = 1
SAFE = 2**53
"""From here on JavaScript does not know one whole number from the next."""


@dataclass(frozen=True)
class Origin:
    """How the data of a page were read, so that its command lines can say it again.

    Attributes
    ----------
    data : tuple of str
        The paths that were read.
    positive, missing_group : str or None
        As the command line takes them.
    drop_group : tuple of str
        Names of the groups that were left out before the page was made.
    """

    data: tuple[str, ...] = ()
    positive: str | None = None
    missing_group: str | None = None
    drop_group: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON: files by their last name only, as folders are nobody else's business.

        Examples
        --------
        >>> Origin(("/home/ann/scores.csv", "-"), positive="yes").to_dict()["data"]
        ['scores.csv', 'data.csv']
        """
        # Standard input and the present folder have no name of their own.
        names = [Path(name).name for name in self.data]
        return {
            "data": [name if name not in ("", "-", "..") else "data.csv" for name in names],
            "positive": self.positive,
            "missing_group": self.missing_group,
            "drop_group": list(self.drop_group),
        }


def payload(
    tally: Tally,
    min_count: int = 0,
    thresholds: Iterable[float] = (0.5,),
    measures: Mapping[str, Measure] = MEASURES,
) -> dict[str, Any]:
    """A tally as the plain values that the page embeds.

    Parameters
    ----------
    tally : Tally
        What the page is about.
    min_count : int
        No cell (group, label, range of scores) of the page holds fewer rows, unless it is
        empty.  Groups that have fewer rows of a label in all are left out.
    thresholds : iterable of float
        Edges of the tally at which something is decided.  Bins are merged across them only where
        a side has too few rows; the page then does not show the group's rates at that threshold.
    measures : {name: Measure}
        The table of measures that the page evaluates.

    Returns
    -------
    dict
        For JSON.  Columns of ``cells`` run side by side.  ``first`` and ``end`` are there only if
        bins were merged, because of ``min_count`` or because there are more cells than a page
        can hold: a cell's rows lie in the bins from first up to, not including, end.
        ``left_out`` names the groups that are too small to be shown.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> page = payload(compas(), min_count=40)
    >>> min(page["cells"]["n"]), page["left_out"], page["merged"]
    (55, [], True)
    """
    least = _check_count(min_count)
    names = group_names(tally.groups)
    kept, left_out = _large_enough(tally, least)
    shown = tally.select(tally.groups[i] for i in kept)
    cells = merged(shown, least, thresholds) or shown.to_dict()["cells"]
    return {
        "format": FORMAT,
        "version": VERSION,
        "isocost": __version__,
        "bins": tally.bins,
        "edges": list(tally.edges),
        "columns": dict(tally.columns),
        "groups": [safe_group(tally.groups[i]) for i in kept],
        "names": [names[i] for i in kept],
        "cells": cells,
        "measures": {
            name: {
                "over": list(row.over),
                "adds": {kind: list(given) for kind, given in row.adds.items()},
                "uses_threshold": row.uses_threshold,
            }
            for name, row in measures.items()
            if row.is_plain
        },
        "min_count": least,
        "merged": len(cells["n"]) < len(shown.cells),
        "left_out": [names[i] for i in left_out],
    }


def single_text(held: Mapping[str, Any]) -> str:
    """How many cells of a page tell of one person alone, and what to do; nothing if none does.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> single_text(payload(compas()))
    ''
    """
    counts = held["cells"]["n"]
    alone = sum(count == 1 for count in counts)
    told = {"count": f"{alone:,}", "all": f"{len(counts):,}"}
    return WORDS["holds_single"].format(**told) if alone else ""


def cost_fields(cost: CostLike) -> dict[str, Any]:
    """A cost as the page's model takes it.

    Examples
    --------
    >>> cost_fields("weighted:1,3")
    {'kind': 'weighted', 'fp': 1.0, 'fn': 3.0}
    >>> cost_fields("fnr")
    {'kind': 'fnr', 'fp': 0.0, 'fn': 1.0}
    """
    found = as_cost(cost)
    named = str(found) if str(found) in ("fpr", "fnr") else None
    kind = named or ("weighted" if found.by_base_rate else "plain")
    return {"kind": kind, "fp": _safe_amount(found.fp), "fn": _safe_amount(found.fn)}


def rule_fields(rule: Rule) -> dict[str, Any]:
    """A rule as the page's model takes it: its JSON, with groups that JavaScript does not change.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = ic.withhold(compas(), "fpr", 0.06)
    >>> rule_fields(rule) == rule.to_dict()
    True
    """
    content = rule.to_dict()
    content["groups"] = [safe_group(group) for group in rule.groups]
    for row, fields in zip(rule.rows, content["rows"], strict=True):
        fields["group"] = safe_group(row.group)
    if rule.cost is not None:
        amounts = {"fp": _safe_amount(rule.cost.fp), "fn": _safe_amount(rule.cost.fn)}
        content["cost"] = {**content["cost"], **amounts}
    return content


def _safe_amount(amount: float | Mapping[Group, float]) -> Any:
    if isinstance(amount, Mapping):
        return [[safe_group(group), number] for group, number in amount.items()]
    return amount


def _check_count(count: object) -> int:
    step = "use 0 to show every cell, or the fewest rows that may be shown, such as 10"
    return check_whole("min_count", count, 0, step=step)


def _large_enough(tally: Tally, least: int) -> tuple[list[int], list[int]]:
    """The places of the groups with enough rows of each label, and of the others."""
    enough = (tally.totals.n >= least).all(axis=1)
    if not enough.any():
        raise DataError(
            Problem(
                "min_count",
                "must leave a group that can be shown",
                f"{least}, and no group has as many rows of each label",
                "use a smaller number, or pool groups with tally.relabel",
            )
        )
    return np.flatnonzero(enough).tolist(), np.flatnonzero(~enough).tolist()


def safe_group(group: Group) -> Any:
    """A group as JSON that JavaScript reads and writes without a change."""
    return [_safe(part) for part in group] if isinstance(group, tuple) else _safe(group)


def _safe(part: Scalar) -> Any:
    """A number that JavaScript would write in another way, such as 1.0, as its own text."""
    if isinstance(part, bool | str):
        return part
    whole = isinstance(part, float) and part.is_integer()
    return {"exact": json.dumps(part)} if whole or abs(part) >= SAFE else part
