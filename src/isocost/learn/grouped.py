"""Maps per group with a pooled one behind them: fitting, applying, and judging them held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from isocost.errors import DataError, Problem
from isocost.groups import Group, sort_groups
from isocost.learn.heldout import HeldOut, HeldOutGroup, Quality, mean_quality, quality_of
from isocost.learn.inputs import read_all, real_scores, two_labels, weights_of
from isocost.learn.maps import CalibrationMap, effective_number, fit_map
from isocost.learn.sensitive import groups_of

__all__ = ["GroupMaps", "Recipe", "Rows", "fit_groups", "held_out", "is_level", "read_rows"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Judged = tuple[float, list[Quality]]
"""The weight of the rows that were judged, and the quality of each kind of score."""


@dataclass(frozen=True)
class Recipe:
    """How maps are fitted: which kind, how much of the pooled one, how many bins."""

    method: str
    shrinkage: float
    bins: int = 10


@dataclass(frozen=True)
class Rows:
    """Checked rows: scores, labels 0 and 1, weights above 0, and codes into the sorted groups."""

    scores: Floats
    y: Floats
    w: Floats
    codes: Ints
    groups: tuple[Group, ...]
    classes: npt.NDArray[Any]

    def take(self, kept: npt.NDArray[np.bool_]) -> Rows:
        """Some of the rows; groups keep their codes even where none of their rows is left."""
        codes = self.codes[kept]
        return replace(self, scores=self.scores[kept], y=self.y[kept], w=self.w[kept], codes=codes)


def read_rows(scores: Any, y: Any, groups: Any, weight: Any, probabilities: str = "") -> Rows:
    """Check everything that a calibrator is fitted to; rows of weight 0 are left out."""
    values = real_scores(scores, probabilities)
    (classes, labels), found, w = read_all(
        partial(two_labels, y, len(values)),
        partial(groups_of, groups, len(values)),
        partial(weights_of, weight, len(values)),
    )
    present, codes = found.names, found.codes
    kept = w > 0
    if not kept.all():
        values, w, codes = values[kept], w[kept], codes[kept]
        classes, labels = two_labels(classes[labels.astype(int)][kept], len(values))
    used = np.unique(codes)
    ordered = sort_groups(present[code] for code in used)
    place = {group: i for i, group in enumerate(ordered)}
    rank = np.array([place.get(group, -1) for group in present], dtype=np.intp)
    return Rows(values, labels, w, rank[codes], tuple(ordered), classes)


@dataclass(frozen=True)
class GroupMaps:
    """A pooled map, each group's own (None where it has one label), and the share of its own.

    Called with scores and codes it gives probabilities; code -1 means the pooled map.
    """

    pooled: CalibrationMap
    own: Sequence[CalibrationMap | None]
    shares: Sequence[float]

    def __call__(self, scores: Floats, codes: Ints) -> Floats:
        """The probability of each row."""
        out = self.pooled(scores)
        for place, (own, share) in enumerate(zip(self.own, self.shares, strict=True)):
            if own is not None and share > 0:
                mine = np.flatnonzero(codes == place)
                out[mine] = share * own(scores[mine]) + (1.0 - share) * out[mine]
        return np.clip(out, 0.0, 1.0)


def fit_groups(rows: Rows, recipe: Recipe) -> GroupMaps:
    """Fit the pooled map and each group's own.

    The share of a group's own map is n / (n + shrinkage), where n is the effective number of rows
    with its rarer label, and 0 for a group with one label.
    """
    pooled = fit_map(recipe.method, rows.scores, rows.y, rows.w, recipe.bins)
    own: list[CalibrationMap | None] = []
    shares = []
    for place in range(len(rows.groups)):
        part = rows.take(rows.codes == place)
        rarer = min(effective_number(part.w[part.y == label]) for label in (0, 1))
        own.append(
            fit_map(recipe.method, part.scores, part.y, part.w, recipe.bins) if rarer else None
        )
        shares.append(rarer / (rarer + recipe.shrinkage) if rarer else 0.0)
    return GroupMaps(pooled, own, shares)


def is_level(fitted: CalibrationMap, scores: Floats) -> bool:
    """Whether different scores all get the same probability."""
    found = fitted(scores)
    return bool(scores.min() < scores.max() and found.min() == found.max())


def held_out(rows: Rows, fitted: GroupMaps, recipe: Recipe, cv: int, random_state: Any) -> HeldOut:
    """Fit to all folds but one, measure on that one, and average over the folds.

    Measuring all folds together would not do: what a fold has too many of, the others have too
    few of, and bin by bin such errors cancel out.
    """
    folds = _folds(rows, cv, random_state)
    count = int(folds.max()) + 1
    whole = rows.scores.min() >= 0 and rows.scores.max() <= 1
    found: list[list[Judged]] = [[] for _ in range(len(rows.groups) + 1)]
    lacking = np.zeros(len(rows.groups), dtype=int)
    for fold in range(count):
        part = fit_groups(_training_part(rows, folds, fold, count), recipe)
        lacking += np.array([own is None for own in part.own])
        test = rows.take(folds == fold)
        kinds = [test.scores] if whole else []
        kinds += [part.pooled(test.scores), part(test.scores, test.codes)]
        for place in range(-1, len(rows.groups)):
            mine = test.codes == place if place >= 0 else np.ones(len(test.y), dtype=bool)
            if mine.any():
                judged = [quality_of(test.y[mine], kind[mine], test.w[mine]) for kind in kinds]
                found[place].append((float(test.w[mine].sum()), judged))
    results = {}
    for place, group in enumerate(rows.groups):
        note = _note(rows, fitted.own[place], place, f"{lacking[place]} of {count}")
        labels = rows.y[rows.codes == place]
        results[group] = _averaged(found[place], labels, fitted.shares[place], note)
    overall = _averaged(found[-1], rows.y, None, "")
    return HeldOut(recipe.method, recipe.shrinkage, count, results, overall)


def _averaged(found: list[Judged], y: Floats, share: float | None, note: str) -> HeldOutGroup:
    """The mean over folds, each as heavy as its rows."""
    weight = [w for w, _ in found]
    kinds = zip(*(judged for _, judged in found), strict=True)
    *before, pooled, after = (mean_quality(kind, weight) for kind in kinds)
    first = before[0] if before else None
    return HeldOutGroup(len(y), int(y.sum()), share, first, pooled, after, note)


def _note(rows: Rows, own: CalibrationMap | None, place: int, lacking: str) -> str:
    mine = rows.codes == place
    if own is None:
        kind = "positives" if rows.y[mine].any() else "negatives"
        return f"only {kind}, so it uses the pooled map"
    if not lacking.startswith("0 "):
        return f"not both labels in {lacking} training parts, which used the pooled map"
    if is_level(own, rows.scores[mine]):
        return "scores do not rise with the labels, so its own map is level"
    return ""


def _folds(rows: Rows, cv: int, random_state: Any) -> Ints:
    """The fold of each row: the rows of a group are shuffled and dealt in turn, as cards are.

    Labels play no part in it: folds with the same share of positives would hide how far off a
    map's share of positives is.
    """
    mixed = check_random_state(0 if random_state is None else random_state).permutation(len(rows.y))
    order = mixed[np.argsort(rows.codes[mixed], kind="stable")]
    folds = np.empty(len(order), dtype=np.intp)
    folds[order] = np.arange(len(order)) % cv
    return folds


def _training_part(rows: Rows, folds: Ints, fold: int, count: int) -> Rows:
    part = rows.take(folds != fold)
    if count < 2 or part.y.min() == part.y.max():
        raise DataError(
            Problem(
                "y",
                "must have both labels in every training part of the held-out report",
                f"{len(rows.y):,} rows, {int(rows.y.sum()):,} of them positive, and outside of "
                f"fold {fold + 1} of {count} only one label",
                "pass more rows, fewer or more folds with cv=, or cv=None for no report",
            )
        )
    return part
