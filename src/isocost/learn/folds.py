"""What a rule makes of scores on average over the coin, row by row.

Scores that the model had not seen: folds, and what must be in each of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, check_cv

from isocost.errors import DataError, Problem, UsageError
from isocost.learn.sensitive import Groups
from isocost.rules import Rule

__all__ = ["HeldOut", "averaged", "cross_calibrated", "folds_of", "held_out_scores", "two_columns"]

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


Ints = npt.NDArray[np.intp]

Fold = tuple[Ints, Ints]

CALIBRATION_FOLDS = 5
"""Into how many parts one holdout is cut when scores must be recalibrated."""


@dataclass(frozen=True)
class HeldOut:
    """Scores of rows by a model that was trained without them.

    ``fold`` says which model that was.
    """

    rows: Ints
    fold: Ints
    scores: Floats


def folds_of(
    X: Any, y: Ints, groups: Groups, cv: Any, split_params: Mapping[str, Any]
) -> list[Fold]:
    """The training and test rows of each fold, checked.

    A whole number means so many folds, in each of which every group and label has its share.
    """
    if isinstance(cv, str):
        raise UsageError(
            Problem(
                "cv",
                'must be a whole number, "prefit", or a splitter of scikit-learn',
                repr(cv),
                "use cv=5",
            )
        )
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        folds = _stratified(y, groups, int(cv))
    else:
        folds = list(check_cv(cv, y, classifier=True).split(X, y, **split_params))
    for place, (train, _) in enumerate(folds):
        _check_training(place, len(folds), y[train], groups.take(train))
    return folds


def _stratified(y: Ints, groups: Groups, count: int) -> list[Fold]:
    cell = groups.codes * 2 + y
    largest = int(np.bincount(cell).max())
    if not 2 <= count <= largest:
        raise UsageError(
            Problem(
                "cv",
                "must be at least 2, and no more than a group has rows of a label",
                f"{count}, and the largest group has {largest} rows of its commoner label",
                'use fewer folds, or cv="prefit" with an estimator fitted on other data',
            )
        )
    with warnings.catch_warnings():
        # Small groups are checked below, where it matters: in the training parts.
        warnings.filterwarnings("ignore", message="The least populated class")
        return list(StratifiedKFold(count).split(np.zeros(len(y)), cell))


def _check_training(place: int, count: int, y: Ints, groups: Groups) -> None:
    """Refuse a fold whose model would never see a group, or one label of it."""
    counts = np.bincount(groups.codes * 2 + y, minlength=2 * len(groups.names)).reshape(-1, 2)
    for name, (negatives, positives) in zip(groups.names, counts.tolist(), strict=True):
        if negatives and positives:
            continue
        lacks = "rows" if not negatives + positives else "negatives" if positives else "positives"
        raise DataError(
            Problem(
                "cv",
                "the training part of every fold must have positives and negatives of every group",
                f"no {lacks} of group {name!r} in the training part of fold {place + 1} of {count}",
                "join the group with another or leave it out; use cv=5, whose folds are "
                'stratified by group and label; or cv="prefit" with an estimator fitted on other '
                "data",
            )
        )


def held_out_scores(folds: list[Fold], score: Callable[[Ints, Ints], Floats], n: int) -> HeldOut:
    """Score the test rows of each fold with a model of its training rows.

    Rows may be left out, as a single holdout does, but none may come twice.
    """
    tested = np.concatenate([np.asarray(test) for _, test in folds])
    if len(tested) == 0 or np.bincount(tested, minlength=n).max() > 1:
        raise UsageError(
            Problem(
                "cv",
                "must test each row once at most",
                "a splitter that tests rows several times, or none",
                "use cv=5, a KFold, or a ShuffleSplit with n_splits=1 for a single holdout",
            )
        )
    parts = [score(train, test) for train, test in folds]
    fold = np.repeat(np.arange(len(folds)), [len(test) for _, test in folds])
    order = np.argsort(tested)
    return HeldOut(tested[order], fold[order], np.concatenate(parts)[order])


def cross_calibrated(
    make: Callable[[], Any],
    held: HeldOut,
    y: Ints,
    groups: Groups,
    weight: Floats | None,
) -> Floats:
    """Calibrated scores, each by a calibrator that was fitted without the row's fold.

    So the rule is not made from scores that were calibrated on their own labels.
    """
    fold = held.fold if held.fold.max() > 0 else _parts(y, groups)
    out = np.empty(len(y))
    for place in range(int(fold.max()) + 1):
        mine = fold == place
        rest, inside = groups.take(~mine), groups.take(mine)
        _check_training(place, int(fold.max()) + 1, y[~mine], rest)
        calibrator = make().fit(
            held.scores[~mine],
            y[~mine],
            sensitive_features=rest.features,
            sample_weight=None if weight is None else weight[~mine],
        )
        out[mine] = calibrator.predict(held.scores[mine], sensitive_features=inside.features)
    return out


def _parts(y: Ints, groups: Groups) -> Ints:
    parts = np.empty(len(y), dtype=np.intp)
    for place, (_, test) in enumerate(_stratified(y, groups, CALIBRATION_FOLDS)):
        parts[test] = place
    return parts
