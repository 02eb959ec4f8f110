"""What can be asked of reconciling, and whether it can be had.

A request that cannot be met is answered with the nearest that can: the smallest tolerance, or the
largest floor.  Equal rates that can be had only if nobody, or everybody, is selected are a *corner*
and count as infeasible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from isocost.checks import (
    check_flag,
    check_threshold,
    check_tolerance,
    check_unit,
    check_whole,
    short,
)
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import Problem, UsageError, setting, spoken
from isocost.groups import Group, group_names
from isocost.measures.table import MEASURES, OVERALL
from isocost.repairs.levels import MOST_LEVELS, ScoreLevels
from isocost.repairs.linear_program import (
    Choices,
    EqualityProgram,
    Limits,
    just_below,
    least_excess,
    least_slack,
)
from isocost.result import Record
from isocost.tallies import Tally
from isocost.typing import Floats
from isocost.verdict.sentences import round_down, round_up

FIXED = ("base_rate", "mean_score")
"""Both are the share of positives if scores are calibrated, which no rule changes."""

RATES: tuple[str, ...] = (
    *(m.name for m in MEASURES.values() if m.over_labels and m.name not in FIXED),
    "cost",
)
"""What can be made equal: measures that are linear in who gets which score, and costs."""

FLOORS: tuple[str, ...] = tuple(
    prefix + name
    for prefix in ("", OVERALL)
    for name in RATES
    if name in MEASURES and MEASURES[name].better != "lower"
)
"""What can have a floor: of which more may be wanted."""

FEWEST_LEVELS = 2

ROUNDING = 1e-9
"""An excess up to here is the solver's rounding, not a reason to call something infeasible."""

HALF = 0.5
"""A tolerance selects people if every group can select this share of those it selected before.

Any tolerance above 0 selects somebody, but the fewer the smaller it is, so there is no smallest."""

FEW, NONE = 0.01, 1e-9
"""Up to this share of those selected before, and up to this share of a group, is next to nobody."""

SOME = {"nobody": "somebody selected", "everybody": "somebody not selected"}

Selected = Literal["nobody", "everybody"]

Levels: TypeAlias = int | Literal["auto"]


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`isocost.reconcile`, in one form.

    ``tolerances`` has a number for each rate that is to be equal.
    """

    threshold: float
    tolerances: dict[str, float]
    cost: Cost | None
    levels: Levels
    floor: dict[str, float]
    no_worse: bool
    monotone: bool

    @property
    def equal(self) -> tuple[str, ...]:
        """The rates that are to be equal."""
        return tuple(self.tolerances)

    @property
    def wide(self) -> bool:
        """Whether levels must be able to share more outputs than hard rates need."""
        return not all(
            name in MEASURES and MEASURES[name].counts_decisions
            for name in (*self.equal, *(name.removeprefix(OVERALL) for name in self.floor))
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a rule; one number if all tolerances are the same."""
        numbers = set(self.tolerances.values())
        return {
            "threshold": self.threshold,
            "equal": list(self.equal),
            "tolerance": numbers.pop() if len(numbers) == 1 else dict(self.tolerances),
            "levels": self.levels,
            "floor": dict(self.floor) or None,
            "no_worse": self.no_worse,
            "monotone": self.monotone,
        }


def check_request(
    threshold: float,
    equal: str | Sequence[str],
    tolerance: float | Mapping[str, float],
    cost: CostLike | None,
    levels: int | str,
    floor: Mapping[str, float] | None,
    no_worse: bool,
    monotone: bool,
) -> Request:
    """Bring the arguments into one form; raise if one of them is invalid."""
    names = _check_equal(equal)
    return Request(
        threshold=check_threshold(threshold),
        tolerances=check_tolerances(tolerance, names),
        cost=check_equal_cost(cost, names),
        levels=check_levels(levels),
        floor=check_floor(floor),
        no_worse=check_no_worse(no_worse, names),
        monotone=check_flag("monotone", monotone),
    )


def check_levels(levels: Any) -> Levels:
    """A number of levels, or "auto"; raise if it is neither."""
    if isinstance(levels, str) and levels == "auto":
        return "auto"
    step = f"use {setting('levels', 'auto')}, the default"
    return check_whole("levels", levels, FEWEST_LEVELS, MOST_LEVELS, step)


def check_floor(floor: Any) -> dict[str, float]:
    """What rates must at least be, by name; raise if a rate cannot have a floor."""
    if floor is None:
        return {}
    unknown = [name for name in floor if name not in FLOORS] if isinstance(floor, Mapping) else [0]
    if unknown:
        mapping = spoken("must be a mapping from rates to numbers", "must name rates")
        rule = f"{mapping}; a floor can be of {', '.join(FLOORS)}"
        got = setting("floor", floor) if isinstance(floor, Mapping) else short(floor)
        step = f"use for example {setting('floor', {'selection_rate': 0.1})}"
        if any(name in RATES for name in unknown):
            step = f"{step}; to keep error rates from rising use {setting('no_worse', True)}"
        raise UsageError(Problem("floor", rule, spoken(short(floor), got), step))
    return {name: check_unit(f"floor of {name}", least) for name, least in floor.items()}


def direction_of(name: str) -> Literal["lower", "higher"] | None:
    """Which way a rate, or the cost, is better."""
    return "lower" if name == "cost" else MEASURES[name].better


def check_no_worse(no_worse: Any, names: tuple[str, ...]) -> bool:
    """Whether rates must not get worse; raise if none of those named can."""
    if check_flag("no_worse", no_worse) and not any(map(direction_of, names)):
        can = spoken("can be True", "can be given")
        rule = f"{can} only if {setting('equal')} has a rate that can get worse"
        floor = setting("floor", {"selection_rate": ...})
        step = f"use {floor}, or another rate in {setting('equal')}"
        raise UsageError(Problem("no_worse", rule, setting("equal", names), step))
    return bool(no_worse)


def _check_equal(equal: Any) -> tuple[str, ...]:
    listed = (equal,) if isinstance(equal, str) else equal if isinstance(equal, Sequence) else ()
    names = tuple(listed) if all(isinstance(name, str) for name in listed) else ()
    if not names or len(set(names)) != len(names) or not set(names) <= set(RATES):
        rule = f"must name rates to be equal, each once, from {', '.join(RATES)}"
        raise UsageError(
            Problem("equal", rule, short(equal), f"use {setting('equal', ('fpr', 'fnr'))}")
        )
    return names


def check_tolerances(tolerance: Any, names: tuple[str, ...]) -> dict[str, float]:
    """A tolerance for each name, from one number or from numbers by name."""
    if not isinstance(tolerance, Mapping):
        return dict.fromkeys(names, check_tolerance(tolerance))
    unknown = [name for name in tolerance if name not in names]
    if unknown:
        rule = f"must be a number, or name only rates that are to be equal: {', '.join(names)}"
        step = f"add them to {setting('equal')}, or leave them out; a rate that is not named gets 0"
        raise UsageError(Problem("tolerance", rule, ", ".join(map(repr, unknown)), step))
    return {name: check_tolerance(tolerance.get(name, 0.0)) for name in names}


def check_equal_cost(cost: CostLike | None, names: tuple[str, ...]) -> Cost | None:
    """The cost to be equal; raise if there is one and the names lack it, or the other way round."""
    if (cost is not None) != ("cost" in names):
        rule = f'must be passed if and only if {setting("equal")} has "cost"'
        both = setting("equal", ("fpr", "cost")), setting("cost", "weighted:1,3")
        got = setting("equal", names), "no cost" if cost is None else setting("cost", str(cost))
        step = f"use for example {spoken(', '.join(both), ' '.join(both))}"
        raise UsageError(Problem("cost", rule, " and ".join(got), step))
    return None if cost is None else as_cost(cost)


@dataclass(frozen=True)
class Corner:
    """Rates that can be equal only if nobody, or everybody, is selected.

    Attributes
    ----------
    selected : {"nobody", "everybody"}
        Who would be.
    tolerance : float
        The smallest tolerance with which every group can select half as many people as before, or
        as calibrated scores can select (or leave out half as many); NaN if there is none.
    groups : tuple
        The two groups that conflict, or the one that no tolerance helps.
    reason : str
        Why they conflict.
    """

    selected: Selected
    tolerance: float
    groups: tuple[Group, ...]
    reason: str


@dataclass(frozen=True)
class Reconcilability(Record):
    """Whether calibrated scores can make rates equal, and if not, how nearly.

    Attributes
    ----------
    feasible : bool
        Whether the requested tolerances can be met other than by selecting nobody or everybody.
    smallest_tolerance : float
        A tolerance that is enough for all the rates: the largest one requested plus ``excess``.
        If one number was requested, no smaller one will do.  With a ``corner`` it is the
        ``selecting_tolerance``: a smaller one selects fewer people, the fewer the smaller it is.
        NaN if no tolerance is enough, because of a floor or ``no_worse``.
    excess : float
        The least amount by which every tolerance must be raised; 0 if feasible.
    tolerances : {name: float}
        What was requested.
    equal : tuple of str
        The rates to be equal.
    threshold : float
        The score from which people are positive.
    corner : Corner or None
        Set if the requested tolerances can be met only by selecting nobody, or everybody.
    floor : {name: float}
        The floors requested.
    no_worse, monotone : bool
        Whether no rate was to get worse, and whether no higher score was to get a lower output.
    slack : float
        With the tolerances requested, the least amount by which every floor must be lowered, and
        by which rates must get worse if ``no_worse``; 0 if feasible, NaN if none is enough.
    """

    written = (
        "feasible", "smallest_tolerance", "excess", "tolerances", "equal", "threshold", "_selected",
        "selecting_tolerance", "_clash", "floor", "no_worse", "monotone", "slack", "largest_floor",
    )  # fmt: skip

    feasible: bool
    smallest_tolerance: float
    excess: float
    tolerances: Mapping[str, float]
    equal: tuple[str, ...]
    threshold: float
    corner: Corner | None = None
    floor: Mapping[str, float] = field(default_factory=dict)
    no_worse: bool = False
    monotone: bool = False
    slack: float = 0.0

    @classmethod
    def met(cls, request: Request) -> Reconcilability:
        """The verdict on a request that can be met."""
        return cls(
            feasible=True,
            smallest_tolerance=max(request.tolerances.values()),
            excess=0.0,
            tolerances=request.tolerances,
            equal=request.equal,
            threshold=request.threshold,
            floor=request.floor,
            no_worse=request.no_worse,
            monotone=request.monotone,
        )

    @property
    def largest_floor(self) -> dict[str, float]:
        """The floors that can be had with the tolerances requested; empty if there are none."""
        lowered = {name: least - self.slack for name, least in self.floor.items()}
        # NaN is not at least 0 either.
        return lowered if all(least >= 0.0 for least in lowered.values()) else {}

    @property
    def selecting_tolerance(self) -> float | None:
        """The tolerance with which some are selected, but not all; None without a corner."""
        return None if self.corner is None else self.corner.tolerance

    @property
    def advice(self) -> str:
        """The smallest tolerances as one would pass them, rounded up; "none" if there are none."""
        if math.isnan(self.excess):
            return "none"
        if len(set(self.tolerances.values())) == 1:
            return round_up(self.smallest_tolerance)
        raised = (f'"{n}": {round_up(t + self.excess)}' for n, t in self.tolerances.items())
        return f"{{{', '.join(raised)}}}"

    def _selected(self) -> str | None:
        return None if self.corner is None else self.corner.selected

    def _clash(self) -> tuple[Group, ...]:
        return () if self.corner is None else self.corner.groups

    @property
    def goal(self) -> str:
        """What was requested, such as "equal fpr and fnr at 0.5 with accuracy of at least 0.8"."""
        return f"equal {' and '.join(self.equal)} at {self.threshold:g}{self._conditions()}"

    def _conditions(self) -> str:
        said = [
            f"{name.removeprefix(OVERALL)} of at least {least:g}"
            f"{' overall' if name.startswith(OVERALL) else ''}"
            for name, least in self.floor.items()
        ]
        said += ["no rate worse than now"] * self.no_worse
        said += ["no lower output for a higher score"] * self.monotone
        return f" with {' and '.join(said)}" if said else ""

    def remedies(self) -> Iterator[str]:
        """What would be possible instead, as arguments."""
        if not math.isnan(self.excess):
            raised = {n: float(round_up(t + self.excess)) for n, t in self.tolerances.items()}
            one = len(set(self.tolerances.values())) == 1
            least = float(round_up(self.smallest_tolerance))
            yield setting("tolerance", least if one else raised)
        if self.largest_floor and not self.no_worse:
            floor = {n: float(round_down(least)) for n, least in self.largest_floor.items()}
            yield setting("floor", floor)

    def __str__(self) -> str:
        if self.feasible:
            return f"Feasible: calibrated scores can have {self.goal}."
        takes = " or ".join(self.remedies())
        instead = f"It would take {takes}." if takes else "No tolerance helps."
        if self.corner is not None:
            return (
                f"Not feasible: calibrated scores made from these have {self.goal} only if "
                f"{self.corner.selected} is selected"
                f"{': ' if self.corner.reason else ''}{self.corner.reason}.\n{instead}"
            )
        return (
            f"Not feasible: calibrated scores made from these cannot have {self.goal}.\n{instead}"
        )


class Assessment(NamedTuple):
    """A verdict, and the nearest program that can be solved; None if there is none."""

    verdict: Reconcilability
    program: EqualityProgram | None
    excess: float
    slack: float


def assess(
    plan: EqualityProgram, request: Request, tally: Tally, selected: Selected | None
) -> Assessment:
    """Whether the request can be met, and what can be had instead.

    Tolerances are raised first.  Only if no tolerance is enough are floors lowered, as little as
    possible, and then tolerances raised.
    """
    if selected:
        plan = plan.limited(_selecting(plan.choices, selected))
    excess = least_excess(plan)
    feasible = excess <= ROUNDING
    excess = 0.0 if feasible else excess
    slack = 0.0 if feasible or not plan.limits.soft.any() else least_slack(plan)
    smallest = max(request.tolerances.values()) + excess
    verdict = replace(
        Reconcilability.met(request),
        feasible=feasible,
        smallest_tolerance=smallest,
        excess=excess,
        corner=None if feasible else _corner(plan, request, tally, selected, smallest),
        slack=slack,
    )
    if not math.isnan(excess):
        return Assessment(verdict, plan.relaxed(excess + ROUNDING), excess, 0.0)
    anything = dict.fromkeys(plan.tolerances, math.inf)
    lowered = least_slack(replace(plan, tolerances=anything))
    if math.isnan(lowered):
        return Assessment(verdict, None, excess, lowered)
    plan = plan.relaxed(slack=lowered + ROUNDING)
    excess = least_excess(plan)
    return Assessment(verdict, plan.relaxed(excess + ROUNDING), excess, lowered)


def _corner(
    plan: EqualityProgram, request: Request, tally: Tally, selected: Selected | None, least: float
) -> Corner | None:
    if selected is None:
        return None
    groups, reason = _clash(plan.choices.levels, request.threshold, selected)
    # The criterion is about both rates alone; it also says which group no tolerance helps.
    of_both = math.isnan(least) or {"fpr", "fnr"} <= set(request.equal)
    if not of_both or request.floor or request.no_worse or request.monotone:
        groups, reason = [], ""
    names = group_names(tally.groups)
    reason = reason.format(*(names[index] for index in groups))
    return Corner(selected, least, tuple(tally.groups[i] for i in groups), reason)


def explain(verdict: Reconcilability, closest: list[str]) -> Problem:
    """The error for a request that cannot be met; ``closest`` is the step that comes near it."""
    got = str(verdict).splitlines()[0]
    name = f"equal {' and '.join(verdict.equal)} with calibration"
    rule = f"must be possible at the threshold {verdict.threshold:g}"
    ends = {True: "or less", False: "or more"}
    steps = [f"accept {remedy} {ends['floor' in remedy]}" for remedy in verdict.remedies()]
    if verdict.no_worse:
        steps.append(f"leave out {setting('no_worse', True)}")
    elif verdict.floor and not verdict.largest_floor:
        steps.append("leave out the floor")
    if verdict.corner is not None:
        rule += f" with {SOME[verdict.corner.selected]}"
        if math.isnan(verdict.corner.tolerance):
            levels = f"use more {setting('levels')}"
            leave = f"leave that group out, as no tolerance helps; or {levels}"
            more = f"{levels}, as no tolerance helps"
            steps.append(leave if verdict.corner.groups else more)
        else:
            verb = "select" if verdict.corner.selected == "nobody" else "leave out"
            steps[0] += f", with which every group can {verb} half as many people as before"
    if not math.isnan(verdict.excess):
        steps.append(f"leave a rate out of {setting('equal')}")
    steps += ["choose another threshold", *closest]
    return Problem(name, rule, got, "; or ".join(steps))


def closest_note(assessment: Assessment) -> str:
    """What a rule is that does not meet the request."""
    verdict, corner = assessment.verdict, assessment.verdict.corner
    what = f"{verdict.goal[0].upper()}{verdict.goal[1:]} is"
    if corner is not None:
        what = f"{what} feasible only if {corner.selected} is selected"
        if assessment.program is None:
            return f"{what}, as here{': ' if corner.reason else ''}{corner.reason}."
        what = f"{what}. This is the closest with {SOME[corner.selected]}"
    else:
        what = f"{what} not feasible. This is the closest"
    if not math.isnan(verdict.excess):
        return f"{what}: the tolerance is {verdict.advice}."
    reached = round_up(max(verdict.tolerances.values()) + assessment.excess)
    return f"{what}: {_lowered(assessment)}, and the tolerance is {reached}."


def _lowered(assessment: Assessment) -> str:
    verdict, slack = assessment.verdict, round_up(assessment.slack)
    lowered = [f"floors are {slack} lower"] if verdict.floor else []
    lowered += [f"rates get worse by up to {slack}"] if verdict.no_worse else []
    return " and ".join(lowered)


def not_reached(assessment: Assessment) -> str:
    """What a rule that does not meet the request lacks besides equality; "" if nothing."""
    verdict = assessment.verdict
    if verdict.corner is not None and assessment.program is None:
        return f"{verdict.corner.selected} is selected"
    if not math.isnan(verdict.excess):
        return ""
    reached = max(verdict.tolerances.values()) + assessment.excess
    more = f", and a difference of {round_up(reached)} remains" if reached > ROUNDING else ""
    return _lowered(assessment) + more


# Equal rates that nobody wants.  With every base rate below the threshold, a score just below it
# for everybody is calibrated and has FPR 0 and FNR 1 in every group: always feasible, and useless.


def corner_of(choices: Choices, shares: Floats) -> Selected | None:
    """Who is selected if it is next to nobody, or everybody, in every group, unlike before."""
    after = choices.by_group(choices.rate("selection_rate")) @ shares
    before = np.array([_selected(levels) for levels in choices.levels])
    if before.any() and (after <= FEW * before + NONE).all():
        return "nobody"
    if (before < 1.0).any() and (1.0 - after <= FEW * (1.0 - before) + NONE).all():
        return "everybody"
    return None


def _selected(levels: ScoreLevels) -> float:
    """The share of a group that scores at or above the threshold."""
    return float(levels.w[levels.above].sum())


def _selecting(choices: Choices, selected: Selected) -> Limits:
    """Limits of the selection rates: half as many people as before, or as calibration allows.

    A group can select those of its levels with the highest shares of positives, as many as have
    the threshold for their mean; and leave out in the same way.
    """
    flip = selected == "everybody"
    shares = []
    for levels in choices.levels:
        before, p, least = _selected(levels), levels.p, choices.threshold
        if flip:
            before, p, least = 1.0 - before, 1.0 - p, 1.0 - just_below(choices.threshold)
        # Where calibrated scores can select nobody, no tolerance is to be enough.
        shares.append(min(before, most_with_mean(p, levels.w, least) or 1.0))
    half = HALF * np.array(shares)
    rates = choices.by_group(choices.rate("selection_rate"))
    lowest, highest = (0.0 * half, 1.0 - half) if flip else (half, np.ones(len(half)))
    return Limits.of(rates, highest) + Limits.of(-rates, -lowest)


def most_with_mean(p: Floats, w: Floats, least: float) -> float:
    """The weight of the levels with the highest p, as many as have the mean ``least``."""
    order = np.argsort(-p)
    w, spare = w[order], (w * (p - least))[order]
    left = np.cumsum(spare)
    partly = np.flatnonzero(left < 0.0)[:1]
    share = 1.0 - left[partly] / spare[partly]
    return float(w[left >= 0.0].sum() + (w[partly] * share).sum())


def _clash(
    levels: Sequence[ScoreLevels], threshold: float, selected: Selected
) -> tuple[list[int], str]:
    """The groups that make equal FPR and FNR select nobody, or everybody, and the reason.

    A pool of people with the share of positives p has TPR / FPR = p / (1 - p) * (1 - mu) / mu, and
    a calibrated score at the threshold or above has p of at least the threshold.  So equal
    rates need a ratio that is no lower than that of the threshold in the group where it is highest,
    and no higher than that of the best level in the group where it is lowest.  The same holds for
    those who are not selected, with labels and scores reversed.

    Returns the indices of the groups, and a text with a field for each name.
    """
    flip = selected == "everybody"
    best = [float((1.0 - each.p if flip else each.p).max()) for each in levels]
    rate = np.array([1.0 - each.base_rate if flip else each.base_rate for each in levels])
    least = 1.0 - threshold if flip else threshold
    if min(best) < least:
        short = int(np.argmin(best))
        edge = "over" if flip else "under"
        return [short], f"every share of positives in {{}} lies {edge} {threshold:g}"
    with np.errstate(divide="ignore"):
        can = np.array(best) / (1.0 - np.array(best)) * (1.0 - rate) / rate
    must = least / (1.0 - least) * (1.0 - rate) / rate
    high, low = int(np.argmax(must)), int(np.argmin(can))
    ratio = "TNR / FNR of those not selected" if flip else "TPR / FPR of those selected"
    reason = f"{ratio} is at least {must[high]:.4g} in {{}} and at most {can[low]:.4g} in {{}}"
    return [high, low], reason
