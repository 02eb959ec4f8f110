"""Recalibration per group: a pooled map, a map for each group, and a held-out report."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from isocost.checks import check_whole, check_word
from isocost.errors import DataError, IsocostWarning, Problem, UsageError, listing
from isocost.groups import Group, names_of
from isocost.learn.inputs import (
    check_random,
    groups_of,
    in_order,
    log_of,
    read_labels,
    real_scores,
    taken,
    weights_of,
)
from isocost.metrics import calibration_gap
from isocost.repairs.recalibrate import (
    METHODS,
    PROBABILITIES,
    CalibrationMap,
    GroupMaps,
    check_shrinkage,
    effective_number,
    fit_map,
    own_share,
)
from isocost.result import Result
from isocost.typing import Bools, Floats, Ints

# The report


@dataclass(frozen=True)
class Quality:
    """Quality of scores: two estimates of the calibration gap, and the Brier score.

    See :mod:`isocost.measures.calibration` for how ``equal_width`` and ``debiased`` differ.
    """

    gap: float
    gap_debiased: float
    brier: float


@dataclass(frozen=True)
class GroupQuality:
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
class RecalibrationReport(Result):
    """The gap before and after recalibration, by cross-validation.

    Each fold is judged with maps fitted to the others, and the numbers are averaged over the
    folds.  So the gap after is what to expect on new rows, not on the rows of the fit.  Folds are
    small, and chance alone adds to a gap: compare ``gap`` before and
    after, or look at ``gap_debiased``.

    Attributes
    ----------
    method, shrinkage, folds : str, float, int
        What it was made with.
    groups : {group: GroupQuality}
        Each group.
    overall : GroupQuality
        Everybody together, where one group's gap can hide another's.
    """

    format = "isocost-recalibration"

    method: str
    shrinkage: float
    folds: int
    groups: dict[Group, GroupQuality]
    overall: GroupQuality

    def headline(self) -> str:
        """The method and the measurement, in a line."""
        return (
            f"Recalibration of {self.overall.n:,} rows per group: {self.method}, "
            f"shrinkage {self.shrinkage:g}; held out in {self.folds} folds"
        )

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The printed table, as header and rows."""
        titles = ["group", "n", "positives", "own share", "gap before", "pooled", "after"]
        titles += ["debiased before", "after", "Brier before", "after"]
        names = names_of(self.groups)
        rows = []
        named = [(names[group], row) for group, row in self.groups.items()]
        for name, row in [*named, ("all", self.overall)]:
            both = (row.before, row.after)
            cells = [("gap", kind) for kind in (row.before, row.pooled, row.after)]
            cells += [(x, kind) for x in ("gap_debiased", "brier") for kind in both]
            numbers = [getattr(kind, x, None) for x, kind in cells]
            share = "-" if row.own_share is None else f"{row.own_share:.2f}"
            shown = ["-" if number is None else f"{number:.4f}" for number in numbers]
            rows.append([name, f"{row.n:,}", f"{row.positives:,}", share, *shown])
        return titles, rows

    def notes(self) -> list[str]:
        """Notes about some groups, a line each."""
        names = names_of(self.groups)
        noted = [f"{names[group]}: {x.note}." for group, x in self.groups.items() if x.note]
        if self.overall.before is None:
            noted.append("The scores are not probabilities, so they have no gap before.")
        return noted


# Maps


class _Rows(NamedTuple):
    """Checked rows: scores, labels 0 and 1, weights above 0, and codes into the sorted groups."""

    scores: Floats
    y: Floats
    w: Floats
    codes: Ints

    def take(self, chosen: Bools) -> _Rows:
        """Some of the rows; groups keep their codes even where none of their rows is left."""
        return _Rows(self.scores[chosen], self.y[chosen], self.w[chosen], self.codes[chosen])


def _is_constant(fitted: CalibrationMap, scores: Floats) -> bool:
    """True if different scores all get the same probability."""
    values = fitted(scores)
    return bool(scores.min() < scores.max() and values.min() == values.max())


@dataclass(eq=False, repr=False)
class GroupCalibrator(BaseEstimator):  # type: ignore[misc]
    """Turn scores into probabilities that hold within every group.

    Each group t has its own map, and all share a pooled one.  A score s of group t becomes

        lambda_t map_t(s) + (1 - lambda_t) pooled(s),    lambda_t = n_t / (n_t + shrinkage),

    where n_t is the group's effective number (Kish) of rows with its rarer label.  So a small
    group borrows from everybody.  A group with one label only uses the pooled map.

    Parameters
    ----------
    method : {"sigmoid", "isotonic", "histogram", "beta"}
        The map; see :mod:`isocost.repairs.recalibrate`.  Sigmoid and isotonic take any numbers,
        such as values of ``decision_function``; histogram and beta take scores in [0, 1].
    shrinkage : "auto" or float
        The number of rows of the rarer label at which a group's own map counts half; 0 for
        the group's map alone, ``math.inf`` for the pooled map alone.
    unknown : {"error", "pooled"}
        What to do with groups that ``fit`` has not seen.
    cv : int or None
        Number of folds of the held-out report; None for no report, which is faster.
    bins : int
        Number of bins of the histogram.
    random_state : int, RandomState or None
        Shuffles the rows before they are dealt to the folds; None is the same as 0, so that a
        report does not change from run to run.  Only the report depends on it.
    pos_label : optional
        The positive label; by default the last in sorted order, which a warning says unless labels
        are 0 and 1, -1 and 1, or boolean.

    Attributes
    ----------
    classes_ : array
        The two labels, sorted, as the columns of ``predict_proba``.
    pos_label_ : object
        The positive one, whose probability ``predict`` returns.
    groups_ : tuple
        The groups, sorted.
    maps_ : {group: map}
        Each group's own map, before shrinkage; the pooled one for groups with one label.
    pooled_ : map
        The map fitted to everybody.
    weights_ : {group: float}
        lambda_t.
    report_ : RecalibrationReport or None
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
    >>> import numpy as np
    >>> from isocost.learn import GroupCalibrator
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
    __metadata_request__predict_log_proba: ClassVar = {"scores": UNUSED}
    __metadata_request__score: ClassVar = {"scores": UNUSED}

    method: str = "sigmoid"
    _: KW_ONLY
    shrinkage: float | str = "auto"
    unknown: str = "error"
    cv: int | None = 5
    bins: int = 10
    random_state: Any = None
    pos_label: Any = None

    def fit(
        self, scores: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit the pooled map, each group's own, and the held-out report.

        Parameters
        ----------
        scores : array of shape (n,) or (n, 1)
            The scores to recalibrate.
        y : array of shape (n,)
            Labels of two values; ``pos_label`` says which is positive.
        sensitive_features : array, series, frame or dict of columns with n rows
            The group of each row; several columns make a group of each combination.
        sample_weight : array of shape (n,), optional
            Weights, not negative.
        """
        check_word("method", self.method, METHODS)
        check_word("unknown", self.unknown, ("error", "pooled"))
        check_shrinkage("sigmoid", self.shrinkage)
        if self.cv is not None:
            check_whole("cv", self.cv, 2, step="use 5, or None for no report")
        check_whole("bins", self.bins, 1, step="use 10")
        check_random(self.random_state)
        values = real_scores(scores, self._range())
        weight = weights_of(sample_weight, len(values))
        labels, counted = read_labels(self, y, weight), weight > 0
        groups = taken(groups_of(sensitive_features, len(values)), counted)
        columns = (values[counted], labels[counted].astype(np.float64), weight[counted])
        rows = _Rows(*columns, groups.codes)
        self.groups_ = tuple(groups.values)
        fitted = self._fit_maps(rows)
        self.pooled_ = fitted.pooled
        both = zip(self.groups_, fitted.own, strict=True)
        self.maps_ = {group: own or fitted.pooled for group, own in both}
        self.weights_ = dict(zip(self.groups_, fitted.shares, strict=True))
        self.report_ = None if self.cv is None else self._report(rows, fitted)
        if _is_constant(fitted.pooled, rows.scores):
            text = (
                "The scores do not rise with the labels, so the pooled map gives everybody the "
                "same probability: check that higher scores mean the larger label."
            )
            warnings.warn(text, IsocostWarning, stacklevel=2)
        return self

    def predict(self, scores: Any, *, sensitive_features: Any = None) -> Floats:
        """The calibrated probability of the positive label, one per row."""
        check_is_fitted(self)
        values = real_scores(scores, self._range())
        groups = groups_of(sensitive_features, len(values))
        unknown = [group for group in groups.values if group not in self.maps_]
        if unknown and self.unknown != "pooled":
            texts = {str(group) for group in self.groups_}
            by_type = [group for group in unknown if str(group) in texts]
            step = 'fit again with rows of these groups, or use unknown="pooled" to give them the '
            step += "pooled map"
            if by_type:
                step = f"give the column the type it had in fit: {by_type[0]!r} is of type "
                step += f"{type(by_type[0]).__name__} here"
            rule = f"must be a group that fit has seen: {listing(map(repr, self.groups_))}"
            shown = listing(map(repr, unknown), 10)
            raise UsageError(Problem("sensitive_features", rule, shown, step))
        index = {group: i for i, group in enumerate(self.groups_)}
        known = np.array([index.get(group, -1) for group in groups.values], dtype=np.intp)
        maps = GroupMaps(self.pooled_, [*self.maps_.values()], [*self.weights_.values()])
        return maps(values, known[groups.codes])

    def predict_proba(self, scores: Any, *, sensitive_features: Any = None) -> Floats:
        """The probabilities of both labels, in the order of ``classes_``."""
        positive = self.predict(scores, sensitive_features=sensitive_features)
        return in_order(positive, self.classes_, self.pos_label_)

    def predict_log_proba(self, scores: Any, *, sensitive_features: Any = None) -> Floats:
        """The logarithm of :meth:`predict_proba`."""
        return log_of(self.predict_proba(scores, sensitive_features=sensitive_features))

    def score(
        self, scores: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> float:
        """Minus the Brier score, so that a grid search can choose the method; higher is better."""
        predicted = self.predict(scores, sensitive_features=sensitive_features)
        values, w = np.asarray(y), weights_of(sample_weight, len(predicted))
        others = int((~np.isin(values, self.classes_)).sum())
        if values.shape != predicted.shape or others:
            labels = ", ".join(map(repr, self.classes_.tolist()))
            rule = f"must be one of the labels {labels} in each row"
            got = f"an array of shape {values.shape}, {others} of them other values"
            raise DataError(Problem("y", rule, got, "pass labels of the kind that fit was given"))
        return -float(np.average((predicted - (values == self.pos_label_)) ** 2, weights=w))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.target_tags.required = True
        return tags

    def _range(self) -> str:
        return f'method="{self.method}"' if self.method in PROBABILITIES else ""

    def _fit_maps(self, rows: _Rows) -> GroupMaps:
        """Fit the pooled map and each group's own."""

        def fit(part: _Rows) -> CalibrationMap:
            positives, negatives = part.w * part.y, part.w * (1.0 - part.y)
            return fit_map(self.method, part.scores, positives, negatives, bins=int(self.bins))

        own: list[CalibrationMap | None] = []
        shares = []
        for code in range(len(self.groups_)):
            part = rows.take(rows.codes == code)
            rarer = min(effective_number(part.w[part.y == label]) for label in (0, 1))
            own.append(fit(part) if rarer else None)
            shares.append(own_share(rarer, check_shrinkage(self.method, self.shrinkage)))
        return GroupMaps(fit(rows), own, shares)

    def _report(self, rows: _Rows, fitted: GroupMaps) -> RecalibrationReport:
        """Fit to all folds but one, measure on that one, and average over the folds.

        Measuring all folds together would not do: what a fold has too many of, the others have
        too few of, and bin by bin such errors cancel out.
        """
        # The rows of a group are shuffled and dealt in turn, as cards are.  Labels play no part in
        # it: folds with the same share of positives would hide how far off a map's share is.
        random = check_random_state(0 if self.random_state is None else self.random_state)
        mixed = random.permutation(len(rows.y))
        order = mixed[np.argsort(rows.codes[mixed], kind="stable")]
        fold_of_row = np.empty(len(order), dtype=np.intp)
        fold_of_row[order] = np.arange(len(order)) % int(self.cv or 0)
        count = int(fold_of_row.max()) + 1
        are_probabilities = rows.scores.min() >= 0 and rows.scores.max() <= 1
        # By group, with everybody last: the weight of each fold, and the quality of its scores.
        measured: list[list[tuple[float, list[list[float]]]]] = [[] for _ in [*self.groups_, None]]
        pooled_only = np.zeros(len(self.groups_), dtype=int)
        for fold in range(count):
            part, test = rows.take(fold_of_row != fold), rows.take(fold_of_row == fold)
            if count < 2 or part.y.min() == part.y.max():
                rule = "must have both labels in every training part of the held-out report"
                got = f"{len(rows.y):,} rows, {int(rows.y.sum()):,} of them positive, and outside "
                got += f"of fold {fold + 1} of {count} only one label"
                step = "pass more rows, fewer or more folds with cv=, or cv=None for no report"
                raise DataError(Problem("y", rule, got, step))
            maps = self._fit_maps(part)
            pooled_only += np.array([own is None for own in maps.own])
            kinds = [test.scores] if are_probabilities else []
            kinds += [maps.pooled(test.scores), maps(test.scores, test.codes)]
            for code in range(-1, len(self.groups_)):
                mine = test.codes == code if code >= 0 else np.ones(len(test.y), dtype=bool)
                if mine.any():
                    y, w = test.y[mine], test.w[mine]
                    numbers = [
                        [
                            calibration_gap(y, kind[mine], sample_weight=w),
                            calibration_gap(y, kind[mine], sample_weight=w, method="debiased"),
                            float(np.average((kind[mine] - y) ** 2, weights=w)),
                        ]
                        for kind in kinds
                    ]
                    measured[code].append((float(w.sum()), numbers))

        def averaged(code: int, y: Floats, share: float | None, note: str) -> GroupQuality:
            weights, numbers = zip(*measured[code], strict=True)
            means = np.average(numbers, axis=0, weights=weights).tolist()
            *before, pooled, after = [Quality(*mean) for mean in means]
            first = before[0] if before else None
            return GroupQuality(len(y), int(y.sum()), share, first, pooled, after, note)

        groups = {}
        for code, group in enumerate(self.groups_):
            part, own, note = rows.take(rows.codes == code), fitted.own[code], ""
            if own is None:
                kind = "positives" if part.y.any() else "negatives"
                note = f"only {kind}, so it uses the pooled map"
            elif pooled_only[code]:
                note = f"not both labels in {pooled_only[code]} of {count} training parts, which "
                note += "used the pooled map"
            elif _is_constant(own, part.scores):
                note = "scores do not rise with the labels, so its own map is constant"
            groups[group] = averaged(code, part.y, fitted.shares[code], note)
        overall = averaged(-1, rows.y, None, "")
        shrinkage = check_shrinkage(self.method, self.shrinkage)
        return RecalibrationReport(self.method, shrinkage, count, groups, overall)
