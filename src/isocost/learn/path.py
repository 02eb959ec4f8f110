"""The curve of trained points: what a tighter bound costs, and what it buys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from isocost.errors import Problem, UsageError
from isocost.groups import Group, names_of
from isocost.learn.program import Program
from isocost.learn.training import group_codes
from isocost.text import text_table

if TYPE_CHECKING:
    from isocost.learn.trained import EqualizedOddsLogisticRegression

__all__ = ["ConstraintPath", "PathPoint", "trace"]


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One bound, and the model that was trained with it.

    Attributes
    ----------
    bound : float
        What was asked for.
    model : EqualizedOddsLogisticRegression
        The fitted model.
    achieved : {kind: {group: float}}
        The covariances.
    met : bool
        Whether the bound is met.
    loss, accuracy : float
        On the training data.
    fpr, fnr : {group: float}
        On the training data; NaN for a group without such rows.
    """

    bound: float
    model: EqualizedOddsLogisticRegression
    achieved: dict[str, dict[Group, float]]
    met: bool
    loss: float
    accuracy: float
    fpr: dict[Group, float]
    fnr: dict[Group, float]


@dataclass(frozen=True, eq=False)
class ConstraintPath:
    """Trained points from the loosest bound to the tightest; iterates over them."""

    points: tuple[PathPoint, ...]

    def __iter__(self) -> Iterator[PathPoint]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, place: int) -> PathPoint:
        return self.points[place]

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of numbers, ready for a data frame; rates have one column per group."""
        names = names_of(self.points[0].fpr)
        table: dict[str, list[Any]] = {
            name: [getattr(point, name) for point in self]
            for name in ("bound", "met", "loss", "accuracy")
        }
        table["covariance"] = [
            max(abs(v) for found in point.achieved.values() for v in found.values())
            for point in self
        ]
        for rate in ("fpr", "fnr"):
            for group, name in names.items():
                table[f"{rate} {name}"] = [getattr(point, rate)[group] for point in self]
        return table

    def __str__(self) -> str:
        table = self.to_dict()
        rows = [
            [("yes" if v else "no") if isinstance(v, bool) else f"{v:.5g}" for v in row]
            for row in zip(*table.values(), strict=True)
        ]
        return text_table(list(table), rows)


def trace(
    model: EqualizedOddsLogisticRegression,
    X: Any,
    y: Any,
    bounds: Any,
    sensitive: Any,
    sample_weight: Any,
) -> ConstraintPath:
    """Train a copy of the model at each bound, from loose to tight and once back.

    What meets a tight bound meets a looser one.  So if the way down ended in a worse place than
    the next tighter bound did, the way back starts again from there: the loss never falls as the
    bound tightens.
    """
    copies = [_at(model, bound) for bound in _descending(bounds)]
    program: Program | None = None
    warm: tuple[Any, ...] = ()
    for copy in copies:
        # Each copy learns its own classes and features; the program is the same for all.
        program = copy._program(X, y, sensitive, sample_weight)
        copy._solve(program, warm)
        warm = (_scaled(program, copy),)
    for tight, loose in zip(copies[:0:-1], copies[-2::-1], strict=True):
        if program is not None and tight.met_ and not _as_good(program, loose, tight):
            loose._solve(program, (_scaled(program, tight),))
    codes, groups = group_codes(sensitive, X)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    return ConstraintPath(tuple(_point(copy, X, y, codes, groups, weight) for copy in copies))


def _descending(bounds: Any) -> list[float]:
    listed = sorted({float(bound) for bound in np.atleast_1d(bounds)}, reverse=True)
    if not listed or not np.isfinite(listed).all():
        raise UsageError(
            Problem(
                "bounds",
                "must be one or more finite numbers",
                repr(bounds),
                "pass for example [0.02, 0.01, 0.0]",
            )
        )
    return listed


def _at(model: EqualizedOddsLogisticRegression, bound: float) -> EqualizedOddsLogisticRegression:
    copy: EqualizedOddsLogisticRegression = clone(model).set_params(bound=bound)
    copy._check_parameters()
    return copy


def _scaled(program: Program, model: EqualizedOddsLogisticRegression) -> Any:
    return program.to_scaled(model.coef_[0], float(model.intercept_[0]))


def _as_good(program: Program, a: Any, b: Any) -> bool:
    # Less than a millionth is the solver's own noise.
    worth = [program.objective(_scaled(program, model)) for model in (a, b)]
    return bool(a.met_ and worth[0] <= worth[1] + 1e-6)


def _point(model: Any, X: Any, y: Any, codes: Any, groups: Any, weight: Any) -> PathPoint:
    """What a fitted model does on the rows it was trained on."""
    truth = np.asarray(y) == model.classes_[1]
    said = model.predict(X) == model.classes_[1]
    rates: dict[bool, dict[Group, float]] = {False: {}, True: {}}
    for code, group in enumerate(groups):
        for label in rates:
            rows = (codes == code) & (truth == label)
            total = weight[rows].sum()
            wrong = weight[rows & (said != truth)].sum()
            rates[label][group] = float(wrong / total) if total else float("nan")
    return PathPoint(
        bound=model.bound,
        model=model,
        achieved=model.achieved_,
        met=model.met_,
        loss=model.loss_,
        accuracy=float(weight[said == truth].sum() / weight.sum()),
        fpr=rates[False],
        fnr=rates[True],
    )
