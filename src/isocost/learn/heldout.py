"""What recalibration changed, measured on rows that the maps were not fitted to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.groups import Group, group_names, to_json
from isocost.measure.functions import calibration_gap
from isocost.text import html_table, text_table

__all__ = ["HeldOut", "HeldOutGroup", "Quality", "mean_quality", "quality_of"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Quality:
    """How good scores are: two estimates of the calibration gap, and the Brier score.

    See :mod:`isocost.measure.calibration` for how ``equal_width`` and ``debiased`` differ.
    """

    gap: float
    gap_debiased: float
    brier: float


@dataclass(frozen=True)
class HeldOutGroup:
    """One group, or everybody together.

    Attributes
    ----------
    n, positives : int
        Rows, and those with the positive label.
    own_share : float or None
        The weight of the group's own map beside the pooled one; None for everybody.
    before : Quality or None
        Of the scores as they came; None if they are not probabilities.
    pooled, after : Quality
        Of one map for everybody, and of the maps per group.
    note : str
        What is special about the group; empty if nothing is.
    """

    n: int
    positives: int
    own_share: float | None
    before: Quality | None
    pooled: Quality
    after: Quality
    note: str = ""


@dataclass(frozen=True, repr=False)
class HeldOut:
    """The gap before and after recalibration, by cross-validation.

    Each fold is judged with maps fitted to the others, and the numbers are averaged over the
    folds.  So the gap after is what new rows can expect, not what the fit has made of its own
    rows.  Folds are small, and chance alone adds to a gap: compare ``gap`` before and
    after, or look at ``gap_debiased``.

    Attributes
    ----------
    method, shrinkage, folds : str, float, int
        What it was made with.
    groups : {group: HeldOutGroup}
        Each group.
    overall : HeldOutGroup
        Everybody together, where one group's gap can hide another's.
    """

    method: str
    shrinkage: float
    folds: int
    groups: dict[Group, HeldOutGroup]
    overall: HeldOutGroup

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; groups become [group, numbers] pairs, to keep their type."""
        return {
            "format": "isocost-recalibration",
            "version": 1,
            "method": self.method,
            "shrinkage": self.shrinkage if np.isfinite(self.shrinkage) else None,
            "folds": self.folds,
            "groups": [[to_json(g), asdict(numbers)] for g, numbers in self.groups.items()],
            "overall": asdict(self.overall),
        }

    def to_json(self) -> str:
        """The report as JSON text; an infinite shrinkage becomes null."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def headline(self) -> str:
        """What was measured, in a line."""
        return (
            f"Recalibration of {self.overall.n:,} rows per group: {self.method}, "
            f"shrinkage {self.shrinkage:g}; held out in {self.folds} folds"
        )

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The printed table, as header and rows."""
        titles = ["group", "n", "positives", "own share", "gap before", "pooled", "after"]
        titles += ["debiased before", "after", "Brier before", "after"]
        names = [*group_names(tuple(self.groups)), "all"]
        rows = [
            [name, f"{x.n:,}", f"{x.positives:,}", _number(x.own_share, 2), *_cells(x)]
            for name, x in zip(names, [*self.groups.values(), self.overall], strict=True)
        ]
        return titles, rows

    def notes(self) -> list[str]:
        """What is special about some groups, a line each."""
        names = group_names(tuple(self.groups))
        noted = [
            f"{name}: {x.note}."
            for name, x in zip(names, self.groups.values(), strict=True)
            if x.note
        ]
        if self.overall.before is None:
            noted.append("The scores are not probabilities, so before there is no gap.")
        return noted

    def __repr__(self) -> str:
        return "\n".join([self.headline(), text_table(*self.table()), *self.notes()])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in self.notes())
        return html_table(*self.table(), caption=self.headline()) + lines


def quality_of(y: Floats, scores: Floats, w: Floats) -> Quality:
    """The gaps and the Brier score of probabilities.

    Examples
    --------
    >>> found = quality_of(np.array([0.0, 0.0, 0.0, 1.0]), np.full(4, 0.5), np.ones(4))
    >>> found.gap, round(found.gap_debiased, 3), found.brier
    (0.25, 0.223, 0.25)
    """
    return Quality(
        gap=calibration_gap(y, scores, sample_weight=w),
        gap_debiased=calibration_gap(y, scores, sample_weight=w, method="debiased"),
        brier=float(np.average((scores - y) ** 2, weights=w)),
    )


def mean_quality(found: Sequence[Quality], weight: Sequence[float]) -> Quality:
    """The weighted mean of each number.

    Examples
    --------
    >>> mean_quality([Quality(0.1, 0.0, 0.2), Quality(0.3, 0.2, 0.4)], [1.0, 1.0])
    Quality(gap=0.2, gap_debiased=0.1, brier=0.30000000000000004)
    """
    table = np.array([astuple(quality) for quality in found])
    gap, gap_debiased, brier = np.average(table, axis=0, weights=weight).tolist()
    return Quality(gap, gap_debiased, brier)


def _cells(numbers: HeldOutGroup) -> list[str]:
    before, pooled, after = numbers.before, numbers.pooled, numbers.after
    shown = [("gap", before), ("gap", pooled), ("gap", after)]
    shown += [(name, kind) for name in ("gap_debiased", "brier") for kind in (before, after)]
    return [_number(None if kind is None else getattr(kind, name), 4) for name, kind in shown]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
