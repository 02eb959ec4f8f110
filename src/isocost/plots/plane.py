"""PlaneDisplay: groups in the plane of generalized false-positive and false-negative rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from isocost.costs import CostLike, as_cost
from isocost.errors import Problem, UsageError
from isocost.groups import Group, group_names, shown_names
from isocost.measures import rates
from isocost.plots import geometry
from isocost.plots.display import Display
from isocost.plots.geometry import Level, level_lines
from isocost.plots.plane_marks import Limits, draw
from isocost.plots.style import axes_for
from isocost.repairs.compare import cost_of_rules, named_rules
from isocost.rules import Rule
from isocost.tallies import Tally, check_tally
from isocost.typing import Floats
from isocost.verdict.judgement import Findings, judge
from isocost.verdict.sentences import Name, plain
from isocost.verdict.wording import changed_groups, headline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PlaneDisplay", "Rules"]

Rules: TypeAlias = Mapping[str, Rule] | Iterable[Rule]

SLACK = 1e-9
"""Costs that differ by no more than this are equal."""


@dataclass
class PlaneDisplay(Display):
    """Where groups are in the plane, what they can reach, and what rules do to them.

    Parameters
    ----------
    groups : sequence
        The groups; :func:`isocost.groups.group_names` names them.
    generalized_fpr, generalized_fnr, base_rates : arrays
        A number per group.
    cost : Cost or str
        What an error costs.
    after : {name: array of shape (groups, 2)}
        Where rules put the groups, as rows (c_fp, c_fn).
    variances : array of shape (groups, 2), optional
        The variances of the two rates, for ellipses.
    levels : sequence of numbers or (cost, number) pairs, optional
        Levels of cost to draw; by default the highest cost of a group.
    confidence : float
        Of the ellipses.
    spreads : {name: array of shape (groups, 2, 2)}, optional
        The covariances of where rules put the groups, for outlines around these.

    Attributes
    ----------
    names : list of str
        The names of the groups.
    points : array of shape (groups, 2)
        The groups, as rows (c_fp, c_fn).
    costs, trivial_costs : arrays
        What the groups cost, and the most that calibrated scores of theirs can cost.
    target_cost : float
        The highest cost of a group, which the others are raised to.
    unreachable : array of bool
        Which groups cannot reach it.
    ellipse_axes : array of shape (groups, 2) or None
        Half the width and height of the ellipses.
    level_lines : list of LevelLine
        The levels as curves.
    outlines : {rule: list of arrays}
        The outlines around where rules put the groups, as curves.
    ax_, figure_, diagonal_
        What :meth:`plot` drew on, and the diagonal of trivial scores.
    circles_, lines_, trivials_, ellipses_, levels_, beyond_, texts_ : lists of artists
        The groups, their calibrated lines, the ends of these, the ellipses; the levels of cost,
        the ways past the end of a line to a level out of reach; all text.
    diamonds_, arrows_, outlines_ : {rule: list of artists}
        Where rules put the groups that they move, the arrows to there, the outlines around it.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> display = PlaneDisplay.from_tally(compas(), cost="fpr")
    >>> display.names, display.unreachable.tolist()
    (['African-American', 'Caucasian'], [False, True])
    >>> print(display.verdict)
    Errors are more costly for African-American than for Caucasian, and no calibrated repair can \
make the costs equal.
    """

    groups: Sequence[Group]
    generalized_fpr: npt.ArrayLike
    generalized_fnr: npt.ArrayLike
    base_rates: npt.ArrayLike
    cost: CostLike = "fnr"
    after: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    variances: npt.ArrayLike | None = None
    levels: Sequence[Level] | None = None
    confidence: float = 0.95
    spreads: Mapping[str, npt.ArrayLike] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cost = as_cost(self.cost)
        self.groups = tuple(self.groups)
        self.names = group_names(self.groups)
        count = len(self.groups)
        self.base_rates = _numbers("base_rates", self.base_rates, (count,))
        self.generalized_fpr = _numbers("generalized_fpr", self.generalized_fpr, (count,))
        self.generalized_fnr = _numbers("generalized_fnr", self.generalized_fnr, (count,))
        self.points = np.column_stack([self.generalized_fpr, self.generalized_fnr])
        self.after = {
            str(name): _numbers(f"after {name!r}", points, (count, 2))
            for name, points in self.after.items()
        }
        a, b = self.cost.coefficients(self.groups, self.base_rates)
        self.costs: Floats = a * self.points[:, 0] + b * self.points[:, 1]
        self.trivial_costs: Floats = a * self.base_rates + b * (1.0 - self.base_rates)
        self.target_cost = float(self.costs.max())
        ceiling = np.maximum(self.costs, self.trivial_costs)
        self.unreachable = self.target_cost > ceiling + SLACK * ceiling.max()
        self.ellipse_axes = (
            None
            if self.variances is None
            else geometry.ellipse_axes(
                _numbers("variances", self.variances, (count, 2), nan=True), self.confidence
            )
        )
        levels = [self.target_cost] if self.levels is None else self.levels
        self.level_lines = level_lines(levels, self.cost, self.groups, self.base_rates)
        self.outlines = {name: self._outlines(name) for name in self.spreads}

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        rules: Rules = (),
        *,
        cost: CostLike | None = None,
        levels: Sequence[Level] | None = None,
        confidence: float | None = 0.95,
        ax: Axes | None = None,
    ) -> Self:
        """The plane of a tally, and what rules would do to it.

        Parameters
        ----------
        tally : Tally
            Every group with positives and negatives.
        rules : {name: Rule} or several rules
            Rules without a name are named after their method.
        cost : Cost or str, optional
            What an error costs; by default that of the first rule that has one, else "fnr".
        levels : optional
            As for the class.
        confidence : float or None
            Of the ellipses; None for no ellipses.
        ax : Axes, optional
            Axes to draw on; by default nothing is drawn until :meth:`plot` is called.
        """
        check_tally(tally)
        rates.require_both_labels(tally)
        named = named_rules(rules)
        after = {name: _points(rule.expected(tally)) for name, rule in named.items()}
        now = _points(tally)
        display = cls(
            tally.groups,
            now[:, 0],
            now[:, 1],
            rates.base_rate(tally.totals),
            cost_of_rules(cost, named),
            after,
            None if confidence is None else geometry.rate_variances(tally),
            levels,
            0.95 if confidence is None else confidence,
        )
        return display._drawn_on(ax)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        labels: bool | str = True,
        level: bool = True,
        ellipses: bool = True,
        lines: bool = True,
        arrows: bool = True,
        circles: bool = True,
        limits: Limits = None,
        title: str | None = None,
    ) -> Self:
        """Draw the plane.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; by default those of a new figure, ``figure_``.
        labels : bool or "groups"
            Whether to write beside the marks; "groups" leaves out all but the groups' names.
        level, ellipses, lines, arrows, circles : bool
            Whether to draw levels of cost, interval ellipses, calibrated lines, arrows from
            before to after, and the groups themselves.
        limits : (left, right, bottom, top), "tight" or None
            Which part to show; None is the whole plane, "tight" the part where the groups are.
        title : str, optional
            By default the verdict; "" for none.
        """
        self.ax_, self.figure_ = axes_for(ax, (5.4, 5.6))
        self.circles_: list[Any] = []
        self.lines_: list[Any] = []
        self.trivials_: list[Any] = []
        self.levels_: list[Any] = []
        self.beyond_: list[Any] = []
        self.ellipses_: list[Any] = []
        self.texts_: list[Any] = []
        self.diamonds_: dict[str, list[Any]] = {}
        self.arrows_: dict[str, list[Any]] = {}
        self.outlines_: dict[str, list[Any]] = {}
        self.diagonal_: Any = None
        draw(
            self,
            labels=labels,
            level=level,
            ellipses=ellipses,
            lines=lines,
            arrows=arrows,
            circles=circles,
            limits=limits,
            title=title,
        )
        return self

    @property
    def verdict(self) -> str:
        """Whether the costs can be made equal, in a sentence for people."""
        if len(self.names) < 2:
            return ""
        names = [Name(name) for name in shown_names(self.groups).values()]
        top, lowest = int(np.argmax(self.costs)), int(np.argmin(self.costs))
        difference = float(self.target_cost - self.costs[lowest])
        below = [i for i, cost in enumerate(self.costs) if cost < self.target_cost - SLACK]
        excess = 1.0 if self.unreachable.any() else -1.0
        # What is drawn are the numbers as measured: the verdict of an audit has the intervals.
        findings = Findings(
            len(names), 0.0, 0.0, difference, difference, 0.0, excess, excess, excess, False
        )
        return plain(
            headline(
                judge(findings).reason,
                [names[top]],
                names[lowest],
                len(names),
                0.0,
                changed=changed_groups(below, dict(enumerate(names))),
            )
        )

    def _outlines(self, name: str) -> list[Floats]:
        shape = (len(self.groups), 2, 2)
        covariances = np.asarray(self.spreads[name], dtype=np.float64)
        if name not in self.after or covariances.shape != shape:
            rule = f"must have a rule of after each, with an array of shape {shape}"
            got, step = f"{name!r} of shape {covariances.shape}", "pass a covariance per group"
            raise UsageError(Problem("spreads", rule, got, step))
        return [
            geometry.tilted_ellipse(point, covariance, self.confidence)
            for point, covariance in zip(np.asarray(self.after[name]), covariances, strict=True)
        ]


def _points(tally: Tally) -> Floats:
    sums = tally.totals
    return np.column_stack([rates.generalized_fpr(sums), rates.generalized_fnr(sums)])


def _numbers(name: str, values: Any, shape: tuple[int, ...], nan: bool = False) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    known = array[~np.isnan(array)] if nan else array
    if array.shape != shape or not ((known >= 0.0) & (known <= 1.0)).all() or not array.size:
        many = " by ".join(map(str, shape))
        got = f"shape {array.shape}" if array.shape != shape else repr(array.tolist())
        rule = f"must be {many} numbers in [0, 1], a row per group"
        raise UsageError(Problem(name, rule, got, "pass rates in the order of groups"))
    return array
