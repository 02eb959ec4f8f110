"""Recalibration per group: scores that mean the same for everybody, before anything else."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from isocost.checks import check_word
from isocost.errors import DataError, IsocostWarning, Problem, UsageError
from isocost.groups import Group
from isocost.learn.grouped import GroupMaps, Recipe, fit_groups, held_out, is_level, read_rows
from isocost.learn.inputs import real_scores, weights_of
from isocost.learn.maps import METHODS, PROBABILITIES
from isocost.learn.sensitive import groups_of

__all__ = ["SHRINKAGE", "GroupCalibrator"]

Floats = npt.NDArray[np.float64]

SHRINKAGE = {"sigmoid": 10.0, "beta": 10.0, "isotonic": 30.0, "histogram": 75.0}
"""What ``shrinkage="auto"`` means: the least regret found by tools/choose_shrinkage.py."""


class GroupCalibrator(BaseEstimator):  # type: ignore[misc]
    """Turn scores into probabilities that hold within every group.

    Each group t has its own map, and all share a pooled one.  A score s of group t becomes

        lambda_t map_t(s) + (1 - lambda_t) pooled(s),    lambda_t = n_t / (n_t + shrinkage),

    where n_t is the group's effective number (Kish) of rows with its rarer label.  So a small
    group borrows from everybody.  A group with one label only uses the pooled map.

    Parameters
    ----------
    method : {"sigmoid", "isotonic", "histogram", "beta"}
        The map; see :mod:`isocost.learn.maps`.  Sigmoid and isotonic take any numbers, such as
        values of ``decision_function``; histogram and beta take scores in [0, 1].
    shrinkage : "auto" or float
        How many rows of the rarer label it takes for a group's own map to count half; 0 for
        the group's map alone, ``math.inf`` for the pooled map alone.
    unknown : {"error", "pooled"}
        What to do with groups that were not there in ``fit``.
    cv : int or None
        In how many folds the report is held out; None for no report, which is quicker.
    bins : int
        Of the histogram.
    random_state : int, RandomState or None
        Shuffles the rows before they are dealt to the folds; None is the same as 0, so that a
        report does not change from run to run.  Nothing but the report depends on it.

    Attributes
    ----------
    classes_ : array
        The two labels, sorted; probabilities are those of the second.
    groups_ : tuple
        The groups, sorted.
    maps_ : {group: map}
        Each group's own map, before shrinkage; the pooled one for groups with one label.
    pooled_ : map
        The map fitted to everybody.
    weights_ : {group: float}
        lambda_t.
    report_ : HeldOut or None
        The calibration gap and the Brier score before and after, on held-out rows.

    Notes
    -----
    Mixing with fixed weights keeps what both maps have: they stay between 0 and 1, and
    non-decreasing (all but the histogram).

    Weights count like repeated rows in the maps.  They do not in lambda: a weight of 2 on
    every row says no more about a group than 1 does.  Rows of weight 0 are left out.

    ``"auto"`` is 10 for sigmoid and beta, 30 for isotonic and 75 for histogram.  Of the values
    tried in a simulation (groups of 20 to 2000 rows beside 5000, five kinds of
    miscalibration) these have the smallest worst regret: the distance to the true probabilities
    beyond that of the best value for the case.

    Fit it on scores of rows the model was not trained on, or the maps will believe an
    overconfident model.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> score, group = random.random(20_000), random.choice(["a", "b"], 20_000)
    >>> label = random.random(20_000) < np.where(group == "a", score, score**2)
    >>> calibrator = GroupCalibrator("beta").fit(score, label, sensitive_features=group)
    >>> calibrator.predict([0.5, 0.5], sensitive_features=["a", "b"]).round(2)
    array([0.5 , 0.26])
    >>> held_out = calibrator.report_.groups["b"]
    >>> f"gap {held_out.before.gap:.3f}, then {held_out.after.gap:.3f}"
    'gap 0.164, then 0.025'
    """

    # scikit-learn takes every argument that is not called X or y for metadata.
    __metadata_request__fit: ClassVar = {"scores": UNUSED}
    __metadata_request__predict: ClassVar = {"scores": UNUSED}
    __metadata_request__predict_proba: ClassVar = {"scores": UNUSED}
    __metadata_request__score: ClassVar = {"scores": UNUSED}

    def __init__(
        self,
        method: str = "sigmoid",
        *,
        shrinkage: float | str = "auto",
        unknown: str = "error",
        cv: int | None = 5,
        bins: int = 10,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.shrinkage = shrinkage
        self.unknown = unknown
        self.cv = cv
        self.bins = bins
        self.random_state = random_state

    def fit(
        self, scores: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit the pooled map, each group's own, and the held-out report.

        Parameters
        ----------
        scores : array of shape (n,) or (n, 1)
            The scores to recalibrate.
        y : array of shape (n,)
            Labels of two values; the larger is the positive one.
        sensitive_features : array, series or frame with n rows
            The group of each row; several columns make a group of each combination.
        sample_weight : array of shape (n,), optional
            Weights, not negative.
        """
        self._check_parameters()
        rows = read_rows(scores, y, sensitive_features, sample_weight, self._range())
        shrinkage = SHRINKAGE[self.method] if self.shrinkage == "auto" else float(self.shrinkage)
        recipe = Recipe(self.method, shrinkage, int(self.bins))
        fitted = fit_groups(rows, recipe)
        self.classes_, self.groups_, self.pooled_ = rows.classes, rows.groups, fitted.pooled
        self.maps_ = {
            group: own or fitted.pooled for group, own in zip(rows.groups, fitted.own, strict=True)
        }
        self.weights_ = dict(zip(rows.groups, fitted.shares, strict=True))
        self.report_ = None
        if self.cv is not None:
            self.report_ = held_out(rows, fitted, recipe, int(self.cv), self.random_state)
        if is_level(fitted.pooled, rows.scores):
            warnings.warn(_LEVEL, IsocostWarning, stacklevel=2)
        return self

    def predict(self, scores: Any, *, sensitive_features: Any = None) -> Floats:
        """The calibrated probability of the positive label, one per row."""
        check_is_fitted(self)
        values = real_scores(scores, self._range())
        groups = groups_of(sensitive_features, len(values))
        strangers = [group for group in groups.names if group not in self.maps_]
        if strangers and self.unknown != "pooled":
            raise _unknown(strangers, self.groups_)
        place = {group: i for i, group in enumerate(self.groups_)}
        known = np.array([place.get(group, -1) for group in groups.names], dtype=np.intp)
        codes = known[groups.codes]
        maps = [self.maps_[group] for group in self.groups_]
        shares = [self.weights_[group] for group in self.groups_]
        return GroupMaps(self.pooled_, maps, shares)(values, codes)

    def predict_proba(self, scores: Any, *, sensitive_features: Any = None) -> Floats:
        """The probabilities of both labels, in the order of ``classes_``."""
        positive = self.predict(scores, sensitive_features=sensitive_features)
        return np.column_stack([1.0 - positive, positive])

    def score(
        self, scores: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> float:
        """Minus the Brier score, so that a grid search can choose the method; higher is better."""
        found = self.predict(scores, sensitive_features=sensitive_features)
        values, w = np.asarray(y), weights_of(sample_weight, len(found))
        strange = ~np.isin(values, self.classes_)
        if values.shape != found.shape or strange.any():
            rule = f"must have the labels {', '.join(map(repr, self.classes_.tolist()))}, one a row"
            got = f"an array of shape {values.shape}, {int(strange.sum())} of them others"
            raise DataError(Problem("y", rule, got, "pass labels of the kind that fit was given"))
        return -float(np.average((found - (values == self.classes_[1])) ** 2, weights=w))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.target_tags.required = True
        return tags

    def _range(self) -> str:
        return f'method="{self.method}"' if self.method in PROBABILITIES else ""

    def _check_parameters(self) -> None:
        check_word("method", self.method, METHODS)
        check_word("unknown", self.unknown, ("error", "pooled"))
        given: dict[str, Any] = {name: getattr(self, name) for name in _RULES}
        number = isinstance(given["shrinkage"], Real) and not isinstance(given["shrinkage"], bool)
        seed = isinstance(given["random_state"], Integral | np.random.RandomState)
        good = {
            "shrinkage": given["shrinkage"] >= 0 if number else given["shrinkage"] == "auto",
            "cv": given["cv"] is None or _is_whole(given["cv"], 2),
            "bins": _is_whole(given["bins"], 1),
            "random_state": given["random_state"] is None or seed,
        }
        problems = [
            Problem(name, rule, repr(given[name]), step)
            for name, (rule, step) in _RULES.items()
            if not good[name]
        ]
        if problems:
            raise UsageError(problems)


_RULES = {
    "shrinkage": ('must be "auto" or a number of at least 0', 'use "auto"'),
    "cv": ("must be a whole number of at least 2, or None", "use 5"),
    "bins": ("must be a whole number of at least 1", "use 10"),
    "random_state": ("must be a whole number, a NumPy RandomState or None", "use 0"),
}


def _is_whole(value: Any, least: int) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, Integral) and int(value) >= least


_LEVEL = (
    "The scores do not rise with the labels, so the pooled map gives everybody the same "
    "probability: check that higher scores mean the larger label."
)


def _unknown(strangers: Sequence[Group], known: Sequence[Group]) -> UsageError:
    """Say which groups were not there in fit, and whether it is a matter of type."""
    texts = {str(group) for group in known}
    by_type = [group for group in strangers if str(group) in texts]
    step = (
        f"give the column the type it had in fit: {by_type[0]!r} is of type "
        f"{type(by_type[0]).__name__} here"
        if by_type
        else 'fit again with rows of these groups, or use unknown="pooled" to give them the map of '
        "everybody"
    )
    shown = ", ".join(map(repr, strangers[:10])) + (" ..." if len(strangers) > 10 else "")
    rule = f"must be a group that fit has seen: {', '.join(map(repr, known[:30]))}"
    return UsageError(Problem("sensitive_features", rule, shown, step))
