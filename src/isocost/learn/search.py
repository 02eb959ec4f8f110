"""The curve of trained points: what a tighter bound costs, and what it buys.

Solving the program of equalized odds in training, and believing only what was checked.

The program is not convex, and a solver's "optimal" depends on where it started.  So it is solved
from several starts: convex-concave programs with several first penalties (dccp), and a smooth
solver from the unconstrained optimum, from random points around it, and from what the
convex-concave programs gave.  Loss and constraints of every answer are computed again, and the best
is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from isocost.errors import Problem, UsageError
from isocost.groups import Group, names_of
from isocost.learn.program import Program, convex_concave
from isocost.learn.sensitive import group_codes
from isocost.tables import text_table

if TYPE_CHECKING:
    from isocost.learn.trained import EqualizedOddsLogisticRegression

__all__ = ["ConstraintPath", "PathPoint", "Search", "Start", "settle", "trace", "unconstrained"]


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


Floats = npt.NDArray[np.float64]

MANY = 400
"""With more coefficients than this the smooth solver is slower than what it improves."""

SHIFTS = (-2.0, -1.0, 1.0, 2.0)
"""How far the boundary is moved for further starts, in mean distances."""

NOISE = 1e-8
"""Objectives that differ by less are equal."""

TIE = 1e-6
"""Cells nearer to the boundary than this, relative to the mean distance, lie on it."""


@dataclass(frozen=True, eq=False)
class Start:
    """What one start gave.

    Attributes
    ----------
    name : str
        "unconstrained", "tau=5.0" (a convex-concave program), "random 1" or "given"; with
        " + smooth" when the smooth solver went on from there.
    loss, objective, violation : float
        Computed from the coefficients; violation is how far the bound is exceeded.
    met : bool
        Whether the bound is met within the tolerance.
    iterations : int
        Of the smooth solver; 0 where it took no part.
    seconds : float
        How long it took.
    note : str
        What the solver said, if it was not content.
    """

    name: str
    loss: float
    objective: float
    violation: float
    met: bool
    iterations: int
    seconds: float
    note: str
    w: Floats


@dataclass(frozen=True, eq=False)
class Search:
    """A program, its bound, and how hard to look for a solution."""

    program: Program
    free: Floats
    bound: float
    tolerance: float
    max_iter: int
    taus: tuple[float, ...]
    restarts: int
    max_cells: int | None = None
    verbose: int = 0

    @cached_property
    def free_covariances(self) -> Floats:
        """The covariances at the unconstrained optimum."""
        found: Floats = self.program.covariances(self.free)
        return found

    def run(self, rng: np.random.Generator, given: Iterable[Floats]) -> list[Start]:
        """Every start, from the unconstrained coefficients on; only that if it meets the bound."""
        first = self.judge("unconstrained", self.free, 0, 0.0, "")
        if first.met:
            return [first]
        starts: list[Start] = [first]
        with progress(len(self.taus) + 1, self.verbose) as tell:
            part = self._part(rng)
            for tau in self.taus:
                raw = self.convex_concave(part, tau)
                starts += [raw, *self.smoothed(raw)]
                tell(starts[-1])
            places = [first, *(self.judge("given", w, 0, 0.0, "") for w in given)]
            places += [self.judge(name, w, 0, 0.0, "") for name, w in self._around(rng)]
            for place in places:
                starts += [place] * (place.name == "given") + self.smoothed(place)
            tell(starts[-1])
        return starts

    def _around(self, rng: np.random.Generator) -> Iterator[tuple[str, Floats]]:
        """Starts near the unconstrained optimum.

        With the boundary moved towards all or none positive the solver finds the optima that give
        most people one class; from the middle it may end in the worse of the two.
        """
        free = self.free
        if self.program.intercept:
            for shift in SHIFTS:
                moved = free.copy()
                moved[-1] += shift * self.program.distance(free)
                yield f"shifted {shift:+g}", moved
        spread = np.maximum(np.abs(free), free.std())
        for i in range(self.restarts):
            yield f"random {i + 1}", free + spread * rng.standard_normal(len(free))

    def best(self, starts: list[Start]) -> Start:
        """The lowest objective among those that meet the bound; else the smallest violation.

        Of objectives that are the same but for noise, the one that exceeds the bound least.
        """
        met = [start for start in starts if start.met]
        lowest = min((start.objective for start in met), default=np.inf)
        equal = [start for start in met if start.objective <= lowest + NOISE]
        return min(equal or starts, key=lambda start: start.violation)

    def judge(self, name: str, w: Floats, iterations: int, seconds: float, note: str) -> Start:
        """Compute what coefficients are worth, whatever a solver says about them."""
        violation = self.program.violation(w, self.bound)
        met = bool(violation <= self.tolerance)
        return Start(
            name,
            self.program.loss(w),
            self.program.objective(w),
            violation,
            met,
            iterations,
            seconds,
            note,
            w,
        )

    def _part(self, rng: np.random.Generator) -> Program:
        """The program, or one of as many cells as a cone solver can bear."""
        cells = len(self.program.weight)
        if self.max_cells is None or cells <= self.max_cells:
            return self.program
        return self.program.sample(np.sort(rng.choice(cells, self.max_cells, replace=False)))

    def convex_concave(self, program: Program, tau: float) -> Start:
        """A convex-concave program that starts with the penalty tau."""
        begun = time.perf_counter()
        w, note = convex_concave(
            program,
            self.free,
            self.bound,
            tau=tau,
            slack=self.tolerance / 10.0,
            max_iter=self.max_iter,
            verbose=self.verbose > 1,
        )
        return self.judge(f"tau={tau:g}", w, 0, time.perf_counter() - begun, note)

    def smoothed(self, start: Start) -> list[Start]:
        """What sequential quadratic programming makes of a start; nothing if it is too large.

        A single covariance need only be kept from passing the bound on the side where it is
        without a constraint: a local optimum lies on the bound, so the other side holds.  That
        leaves the solver more room.  With several it is tried both ways.
        """
        if len(start.w) > MANY:
            return []
        rows = self.program.binding(self.bound)
        found = [self._smooth(start, rows, one_sided=True)]
        if len(rows) > 1:
            found.append(self._smooth(start, rows, one_sided=False))
        return [min(found, key=lambda s: (not s.met, s.objective if s.met else s.violation))]

    def _smooth(self, start: Start, rows: npt.NDArray[np.intp], one_sided: bool) -> Start:
        from scipy.optimize import minimize

        program = self.program
        signs = np.sign(self.free_covariances[rows]) if one_sided else None
        begun = time.perf_counter()
        found = minimize(
            program.objective,
            start.w,
            jac=program.gradient,
            method="SLSQP",
            constraints=list(_limits(program, rows, self.bound, signs)),
            options={"maxiter": self.max_iter, "ftol": 1e-12},
        )
        spent = time.perf_counter() - begun
        w = found.x if np.isfinite(found.x).all() else start.w
        note = "" if found.success else str(found.message)
        name = f"{start.name} + smooth"
        return self.judge(name, w, int(found.nit), start.seconds + spent, note)


def _limits(
    program: Program, rows: npt.NDArray[np.intp], bound: float, signs: Floats | None
) -> Iterator[dict[str, Any]]:
    """The constraints as scipy wants them: equal to 0, or not below 0."""

    def value(w: Floats) -> Floats:
        found: Floats = program.covariances(w)[rows]
        return found

    def slope(w: Floats) -> Floats:
        found: Floats = program.jacobian(w)[rows]
        return found

    if signs is not None:
        yield {
            "type": "ineq",
            "fun": lambda w: bound - signs * value(w),
            "jac": lambda w: -signs[:, np.newaxis] * slope(w),
        }
    elif bound == 0.0:
        yield {"type": "eq", "fun": value, "jac": slope}
    else:
        yield {"type": "ineq", "fun": lambda w: bound - value(w), "jac": lambda w: -slope(w)}
        yield {"type": "ineq", "fun": lambda w: bound + value(w), "jac": slope}


def settle(search: Search, w: Floats) -> Floats:
    """Move the boundary off cells that lie on it, so that rounding decides nobody's answer.

    The optimum often lies where the boundary runs through a cell: its people are misclassified by a
    distance of 0.  Then the intercept moves by a few millionths, to the side where the
    groups' shares of errors differ less, unless that would break the bound.
    """
    program = search.program
    if not program.intercept or not np.any(near := _near(program, w)):
        return w
    step = 2.0 * TIE * program.distance(w)
    sides = [w + np.append(np.zeros(len(w) - 1), side) for side in (-step, step)]
    kept = [side for side in sides if search.judge("", side, 0, 0.0, "").met]
    if not kept or np.all(near):
        return w
    return min(kept, key=lambda side: rate_gap(program, side))


def _near(program: Program, w: Floats) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.abs(program.x @ w) <= TIE * program.distance(w)
    return found


def rate_gap(program: Program, w: Floats) -> float:
    """The largest covariance between a group and its errors counted, not measured by distance."""
    z = program.x @ w
    return float(np.abs(program.over @ (z > 0) + program.under @ (z <= 0)).max())


def unconstrained(program: Program) -> Floats:
    """The coefficients of the least objective, whatever the covariances."""
    from scipy.optimize import minimize

    start = np.zeros(program.x.shape[1])
    found = minimize(
        program.objective,
        start,
        jac=program.gradient,
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 0.0, "gtol": 1e-9},
    )
    w: Floats = found.x
    return _newton(program, w)


def _newton(program: Program, w: Floats) -> Floats:
    """The last digits, which line searches leave; nothing if the optimum is infinitely far."""
    from scipy.special import expit

    size = np.abs(program.gradient(w)).max()
    for _ in range(5):
        p = expit(program.x @ w)
        curve = (program.x.T * (program.weight * p * (1.0 - p))) @ program.x
        curve = curve / program.weight.sum() + np.diag(program.ridge)
        nearer = w - np.linalg.lstsq(curve, program.gradient(w), rcond=1e-10)[0]
        lower = np.abs(program.gradient(nearer)).max()
        if not lower < size or np.abs(nearer - w).max() > 0.01 * np.abs(w).max():
            break
        w, size = nearer, lower
    return w


@contextmanager
def progress(total: int, verbose: int) -> Iterator[Callable[[Start], None]]:
    """A bar on standard error that moves with each start; nothing if not verbose."""
    if not verbose:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("unconstrained", total=total)

        def tell(start: Start) -> None:
            state = "met" if start.met else f"exceeded by {start.violation:.2g}"
            bar.console.print(f"{start.name}: loss {start.loss:.6f}, bound {state}")
            bar.update(task, advance=1, description=start.name)

        yield tell
