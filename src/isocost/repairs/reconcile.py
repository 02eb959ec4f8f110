"""Reconciling: calibrated scores with equal error rates at a threshold; and at which thresholds.

A request that cannot be met is answered with the nearest that can: the smallest tolerance, or the
largest floor.  Equal rates that need nobody, or everybody, to be selected are a *corner* and count
as infeasible.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from isocost.checks import check_numbers
from isocost.errors import InfeasibleError, InfeasibleWarning, Problem, UsageError, listing, setting
from isocost.grid import TENTHS
from isocost.groups import Group, group_names, names_of
from isocost.measures.feasibility import fitted_groups
from isocost.measures.rates import base_rate, group_costs
from isocost.measures.table import MEASURES, OVERALL
from isocost.question import Question, asks
from isocost.repairs.base import closest_steps, repairs, thresholds_in
from isocost.repairs.lp import (
    FEWEST,
    Achievability,
    Choices,
    EqualityProgram,
    Levels,
    Limit,
    Request,
    ScoreLevels,
    check_request,
    direction_of,
    extremes,
    just_below,
    least_excess,
    least_slack,
    make_choices,
    score_levels,
    solve,
    unsolved,
)
from isocost.result import Record, Result
from isocost.rules import DEFAULT_SALT, Promise, Row, Rule, reversals
from isocost.tables import number_text, round_down, round_up
from isocost.tallies import Tally
from isocost.typing import Floats


@repairs("threshold", "equal", "tolerance")
def reconcile(
    tally: Tally,
    question: Question,
    *,
    equal: str | Sequence[str] = ("fpr", "fnr"),
    tolerance: float | Mapping[str, float] = 0.0,
    levels: Levels = "auto",
    floor: Mapping[str, float] | None = None,
    no_worse: bool = False,
    monotone: bool = False,
    infeasible: Literal["raise", "closest"] = "raise",
    salt: str = DEFAULT_SALT,
) -> Rule:
    """Make rates equal over all groups with scores that are calibrated in every group.

    Calibrated scores cannot have equal generalized rates of both kinds; decisions at a threshold
    can have equal rates.  In each group, levels with share of positives p_i and mass w_i get
    outputs q_j with mass m_ij >= 0:

        sum_j m_ij = w_i                    everyone gets an output
        sum_i m_ij (p_i - q_j) = 0          every output is calibrated
        highest - lowest <= tolerance       for each rate of ``equal``, over the groups

    Among these the one that keeps most information, the highest E[q^2], is chosen.

    Parameters
    ----------
    threshold, cost
        What is asked: see :class:`isocost.Question`.  The threshold must be an edge of the tally;
        the cost matters if "cost" is to be equal.
    equal : sequence of str
        From "fpr", "fnr", "selection_rate" (at the threshold), "generalized_fpr",
        "generalized_fnr" and "cost".
    tolerance : float or {name: float}
        How far a rate may differ between groups; a rate that is not named gets 0.
    levels : int or "auto"
        The most levels of a group.  They have about equal weight, and 20 rows or more.  "auto"
        takes (2 n)^(1/3) for n rows (4 to 64), which does well on people not seen; of 16 different
        scores or fewer each is a level, except that scores with under 20 rows are pooled.
    floor : {name: float}
        What "selection_rate" or "accuracy" must at least be, in every group; with
        "overall_selection_rate" or "overall_accuracy", among all people together.
    no_worse : bool
        Whether no rate of ``equal`` may get worse than it is now, in any group: equality upwards.
        A rate that is neither better high nor low, "selection_rate", is left free.
    monotone : bool
        Whether a higher score never gets a lower output within a group: with P(q >= c) the share
        of a level that gets an output of c or more, it must not fall from a level to the next
        higher one, for any c.  Then a person would not have got more for a lower score, whatever
        the coin.  Levels whose shares of positives fall are pooled first.
    infeasible : {"raise", "closest"}
        What to do when it is infeasible, or feasible only by selecting nobody or everybody: raise
        :class:`InfeasibleError`, whose ``feasibility`` is a :class:`Reconcilability`, or use the
        smallest tolerance, with a warning and a note.  If a floor, or ``no_worse``, cannot be met
        with any tolerance, it is relaxed as little as possible.
    tally, salt, **reading
        As for :func:`isocost.withhold`.

    Returns
    -------
    Rule
        Every score is set to a value that is the share of positives of those who get it.

    Notes
    -----
    All of it is exact on the tally it was made from, and holds up to chance on new data; there
    fewer levels hold better, because their shares of positives are better known.
    Decisions near the threshold change in both directions, some by a coin: the rule's notes
    say how many.  The best map may give some people less than others with a lower score; the
    notes and ``rule.reversals`` say how often, and ``monotone=True`` rules it out.
    :func:`isocost.reconcilable` says at which thresholds equal rates can be had.

    With ``levels="auto"``, where no level of a group of 20 rows or more has a share of positives at
    or above the threshold, though somebody scores so, the interval of these scores with most rows
    that has becomes a level.  Likewise below the threshold.

    If every base rate lies below the threshold, scores just below it for everybody are calibrated
    and have FPR 0 and FNR 1 in every group.  Where nothing else is possible though somebody is
    selected now, it counts as infeasible; likewise with base rates above the threshold.  A
    tolerance is then enough if every group can select half as many as now, and where decisions are
    to be equal, a rule that selects nobody in one group is no answer either.

    :func:`isocost.repairs.lp.make_choices` says which outputs a level may get.  For hard rates no
    others are needed; for generalized rates and costs the smallest tolerance is that of these.

    References
    ----------
    Reich, Vijaykumar: A Possibility in Algorithmic Fairness: Can Calibration and Equal Error
    Rates Be Reconciled?, FORC 2021.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = ic.reconcile(compas())
    >>> after = ic.audit(rule.expected(compas()))
    >>> for group, m in after.groups.items():
    ...     print(f"{group:16} {m.fpr:.4f} {m.fnr:.4f} {m.calibration_gap:.4f}")
    African-American 0.2490 0.4855 0.0000
    Caucasian        0.2490 0.4855 0.0000
    """
    request = check_request(
        question,
        tolerance,
        levels,
        equal=equal,
        floor=floor,
        no_worse=no_worse,
        monotone=monotone,
    )
    program, shares, nearest = solution_of(tally, request)
    notes, reached, lowered = [], {}, 0.0
    if nearest is not None and not nearest.verdict.feasible:
        notes.append(closest_note(nearest))
        # Where nothing comes nearer, the floors are met, by selecting nobody or everybody.
        lowered = 0.0 if math.isnan(nearest.slack) else nearest.slack
        if nearest.excess > 0.0:
            reached = {name: t + nearest.excess for name, t in request.tolerances.items()}
    rows = tuple(_rows(tally, program.choices, shares))
    rule = Rule(
        groups=tally.groups,
        rows=rows,
        method="reconcile",
        cost=request.cost,
        settings={
            "threshold": request.threshold,
            "equal": list(request.equal),
            "tolerance": request.raised(),
            "levels": request.levels,
            "floor": dict(request.floor) or None,
            "no_worse": request.no_worse,
            "monotone": request.monotone,
            "infeasible": infeasible,
        },
        notes=(*notes, *_notes(tally, request, program.choices, shares, rows)),
        salt=salt,
        promise=Promise.of(
            rows,
            request.tolerances,
            reached,
            threshold=request.threshold,
            floor={name: max(least - lowered, 0.0) for name, least in request.floor.items()},
        ),
    )
    if nearest is not None and not nearest.verdict.feasible:
        if infeasible == "raise":
            closest = closest_steps(rule, tally, not_reached(nearest))
            raise InfeasibleError(nearest.verdict.problem(closest), nearest.verdict)
        warnings.warn(notes[0], InfeasibleWarning, stacklevel=5)
    return rule


def solution_of(
    tally: Tally, request: Request
) -> tuple[EqualityProgram, Floats, Assessment | None]:
    """The program that was solved, the shares of its choices, and the nearest request.

    The last is set if the program that was asked for has no solution worth having.
    """
    program = plan = program_of(tally, request)
    shares, nearest, corners = solve(plan), None, dict[Selected, list[int]]()
    while shares is None or (found := corners_of(plan, shares)).keys() - corners.keys():
        if shares is not None:
            corners = found | corners
        elif nearest is not None:
            break
        nearer = assess(program, request, tally, corners)
        # Where no tolerance selects somebody, the nearest is the one that selects nobody.
        if nearest is not None and nearer.program is None:
            nearer = nearest._replace(verdict=nearer.verdict, program=None)
        nearest = nearer
        if nearest.program is None:
            break
        plan = nearest.program
        shares = solve(plan)
        if math.isnan(nearest.verdict.excess) or not _about_decisions(plan):
            break
    if shares is None:
        raise unsolved("reconcile", "a solution that does not meet the equations")
    return plan, shares, nearest


def program_of(tally: Tally, request: Request) -> EqualityProgram:
    """The linear program of a request."""
    from scipy.sparse import csr_array

    levels = [
        score_levels(
            tally,
            group,
            request.threshold,
            request.levels,
            request.monotone,
            request.levels == "auto",
        )
        for group in range(len(tally.groups))
    ]
    # Hard rates need no other outputs than the threshold and the point below it.
    rated = (*request.equal, *(name.removeprefix(OVERALL) for name in request.floor))
    hard = all(name in MEASURES and MEASURES[name].counts_decisions for name in rated)
    choices = make_choices(levels, request.threshold, not hard, request.monotone)
    mu = base_rate(tally.totals)
    rates = {
        name: choices.cost(*request.cost.coefficients(tally.groups, mu))
        if name == "cost" and request.cost is not None
        else choices.rate(name)
        for name in request.equal
    }
    limits = []
    for name, least in request.floor.items():
        overall = name.startswith(OVERALL)
        rate = choices.rate(name.removeprefix(OVERALL), overall=overall)
        rows = csr_array(rate[None, :]) if overall else choices.by_group(rate)
        limits.append(Limit(-rows, np.full(rows.shape[0], -least), soft=True))
    for name in request.equal if request.no_worse else ():
        if (direction := direction_of(name)) is not None:
            sign = 1.0 if direction == "lower" else -1.0
            if name == "cost" and request.cost is not None:
                now = group_costs(tally.totals, tally.groups, request.cost)
            else:
                now = MEASURES[name].of(tally.kinds(request.threshold))
            limits.append(Limit(sign * choices.by_group(rates[name]), sign * now, soft=True))
    if request.monotone:
        limits.append(Limit(choices.falls, np.zeros(choices.falls.shape[0])))
    return EqualityProgram(choices, rates, request.tolerances, limits)


def _rows(tally: Tally, choices: Choices, shares: Floats) -> Iterator[Row]:
    """One row per level and output that anybody gets, from low to high."""
    for k in np.lexsort((choices.value, choices.row)):
        if shares[k] > 0:
            group, level = choices.group[k], choices.level[k]
            lo, hi = choices.levels[group].lo[level], choices.levels[group].hi[level]
            value, share = float(choices.value[k]), float(shares[k])
            yield Row(tally.groups[group], float(lo), float(hi), "set", value, share)


def _notes(
    tally: Tally, request: Request, choices: Choices, shares: Floats, rows: Sequence[Row]
) -> Iterator[str]:
    """Sentences on what the rule does to people, and on where it knows little."""
    own = choices.people * choices.p**2
    most = float(own[choices.pool < 0].sum())
    lost = 1.0 - float((choices.people * choices.value**2) @ shares) / most
    changed = float((choices.people * choices.flipped) @ shares)
    by_coin = float((choices.people * (shares < 1.0)) @ shares)
    yield (
        f"{max(0.0, lost):.2%} of the information E[q^2] of the levels is lost; the decision at "
        f"{choices.threshold:g} changes for {changed:.2%} of people; for {by_coin:.2%} the score "
        "is randomized."
    )
    names = names_of(tally.groups).values()
    if request.levels == "auto":
        pairs = zip(names, choices.levels, strict=True)
        yield f"Levels: {listing((f'{len(each)} for {name}' for name, each in pairs), most=6)}."
    for name, levels in zip(names, choices.levels, strict=True):
        if levels.n.min() < FEWEST:
            few = f"{levels.n.min():.6g} rows"
            yield f"A level of {name} has {few}: its share of positives is uncertain."
        for side, where in ((True, "at or above"), (False, "below")):
            if not (levels.above == side).any():
                yield f"Nobody in {name} scores {where} {choices.threshold:g}: such scores stay."
    count = sum(reversals(rows).values())
    if count:
        places = "once" if count == 1 else f"at {count} places"
        yield (
            f"From a level to the next higher one of its group the score may fall, {places}; "
            f"{setting('monotone', True)} rules that out."
        )


NOBODY = 1e-6
"""A selection rate up to here is that of nobody."""


@dataclass(frozen=True)
class ReconcilableAt(Record):
    """The verdict at one threshold.

    Attributes
    ----------
    threshold : float
        The score from which people are positive.
    feasible : bool
        Whether the rates can be equal with somebody selected, and not everybody.
    tolerance : float
        The least tolerance with which they can: 0 if feasible, NaN if there is none.
    selected : {"nobody", "everybody"} or None
        Who must be selected for the rates to be equal.
    selection_rates : {group: float}
        The share of each group that :func:`isocost.reconcile` selects with that tolerance.
    selection_rate, accuracy : float
        The share of all people that it selects, and that it decides rightly.
    lowest, highest : float
        The lowest and the highest share of all people that any such scores select.
    """

    threshold: float
    feasible: bool
    tolerance: float
    selected: Selected | None
    selection_rates: Mapping[Group, float]
    selection_rate: float
    accuracy: float
    lowest: float
    highest: float

    @property
    def answer(self) -> str:
        """The verdict in a word or two."""
        if self.feasible:
            return "yes"
        return "no" if self.selected is None else f"only if {self.selected}"


@dataclass(frozen=True, repr=False)
class Reconcilable(Result):
    """The result of :func:`reconcilable`, threshold by threshold.

    Attributes
    ----------
    equal : tuple of str
        The rates to be equal.
    points : tuple of ReconcilableAt
        From the lowest threshold to the highest.
    """

    format = "isocost-reconcilable"

    equal: tuple[str, ...]
    points: tuple[ReconcilableAt, ...]

    @property
    def feasible(self) -> tuple[float, ...]:
        """The thresholds at which the rates can be equal."""
        return tuple(point.threshold for point in self.points if point.feasible)

    def headline(self) -> str:
        """The title of the table."""
        return f"Calibrated scores with equal {' and '.join(self.equal)}, by threshold"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table."""
        names = names_of(self.points[0].selection_rates)
        # Of many groups the table shows the lowest and the highest selection rate only.
        few = len(names) <= 4
        titles = [f"{name} selected" for name in names.values()]
        header = ["threshold", "equal rates", "least tolerance", "people selected", "possible"]
        header += [*(titles if few else ["least selected", "most selected"]), "accuracy"]
        rows = []
        for point in self.points:
            rates = list(point.selection_rates.values())
            shown = rates if few else [min(rates), max(rates)]
            possible = f"{point.lowest:.1%} to {point.highest:.1%}"
            rows.append(
                [
                    f"{point.threshold:g}",
                    point.answer,
                    number_text(point.tolerance),
                    number_text(point.selection_rate, ".1%"),
                    "-" if math.isnan(point.lowest) else possible,
                    *(number_text(rate, ".1%") for rate in shown),
                    number_text(point.accuracy),
                ]
            )
        return header, rows


@asks("thresholds", "equal", edges=lambda others: thresholds_in({"thresholds": TENTHS, **others}))
def reconcilable(
    tally: Tally,
    question: Question,
    *,
    thresholds: float | Iterable[float] | None = None,
    equal: str | Sequence[str] = ("fpr", "fnr"),
    levels: Levels = "auto",
    floor: Mapping[str, float] | None = None,
    no_worse: bool = False,
    monotone: bool = False,
) -> Reconcilable:
    """Find the thresholds at which :func:`isocost.reconcile` can make rates equal.

    Parameters
    ----------
    thresholds : numbers, optional
        Edges of the tally; by default the nine tenths.
    tally, equal, cost, levels, floor, no_worse, monotone, **reading
        As for :func:`isocost.reconcile`.

    Returns
    -------
    Reconcilable
        Per threshold: whether equal rates can be had with somebody selected, and not everybody;
        the least tolerance if not; and how many people are selected then.

    Notes
    -----
    Where rates can be equal only if nobody, or everybody, is selected, the least tolerance lets
    every group select (or leave out) half as many people as before.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> result = ic.reconcilable(compas(), [0.3, 0.5, 0.7, 0.8])
    >>> result.feasible
    (0.5, 0.7)
    >>> [(round(point.tolerance, 4), point.selected) for point in result.points]
    [(0.0004, 'everybody'), (0.0, None), (0.0, None), (nan, 'nobody')]
    """
    chosen = sorted(set(check_numbers("thresholds", TENTHS if thresholds is None else thresholds)))
    if not chosen:
        step = f"leave out {setting('thresholds')} for the nine tenths"
        raise UsageError(Problem("thresholds", "must be at least one number", "none", step))
    groups = fitted_groups(tally, question.min_group)
    question = question.among(groups)
    conditions = {"equal": equal, "floor": floor, "no_worse": no_worse, "monotone": monotone}
    requests = [
        check_request(question.but(threshold=at), 0.0, levels, **conditions) for at in chosen
    ]
    points = tuple(_at(tally.select(groups), request) for request in requests)
    return Reconcilable(requests[0].equal, points)


def _at(tally: Tally, request: Request) -> ReconcilableAt:
    """The verdict at the threshold of a request."""
    program, shares, nearest = solution_of(tally, request)
    verdict = None if nearest is None else nearest.verdict
    choices = program.choices
    selection = choices.rate("selection_rate", overall=True)
    lowest, highest = extremes(program, selection)
    rates = choices.by_group(choices.rate("selection_rate")) @ shares
    selected: Selected | None = None
    if verdict is not None and verdict.corner is not None:
        selected = verdict.corner.selected
    elif highest <= NOBODY:
        selected = "nobody"
    elif lowest >= 1.0 - NOBODY:
        selected = "everybody"
    feasible = selected is None and (verdict is None or verdict.feasible)
    tolerance = 0.0 if verdict is None else verdict.smallest_tolerance
    possible = feasible or (math.isfinite(tolerance) and highest > NOBODY and lowest < 1.0 - NOBODY)
    numbers = [
        float(selection @ shares),
        float(choices.rate("accuracy", overall=True) @ shares),
        lowest,
        highest,
    ]
    if not possible:
        tolerance, numbers, rates = math.nan, [math.nan] * 4, np.full(len(rates), math.nan)
    by_group = dict(zip(tally.groups, rates.tolist(), strict=True))
    return ReconcilableAt(
        request.threshold, feasible, tolerance, selected, by_group, *map(float, numbers)
    )


# Verdicts

ROUNDING = 1e-9
"""An excess up to here is the solver's rounding, not a reason to call something infeasible."""

FEW, NONE = 0.01, 1e-9
"""Up to this share of those selected before, and up to this share of a group, is next to nobody."""

HALF = 0.5
"""A tolerance is enough if every group can select this share of those selected before."""

SOME = {"nobody": "somebody selected", "everybody": "somebody not selected"}

Selected = Literal["nobody", "everybody"]


@dataclass(frozen=True)
class Corner:
    """Rates that can be equal only if nobody, or everybody, is selected.

    ``tolerance`` is the smallest with which every group can select half as many people as before,
    or as calibrated scores can select (or leave out half as many); NaN if there is none.
    ``groups`` are the two that conflict for the ``reason``, or the one that no tolerance helps.
    ``who`` is selected: nobody, or everybody, and in which groups if not in all.
    """

    selected: Selected
    tolerance: float
    groups: tuple[Group, ...]
    reason: str
    who: str


@dataclass(frozen=True)
class Reconcilability(Achievability):
    """The verdict on rates that calibrated scores are to make equal, and the nearest possible.

    Attributes
    ----------
    request, feasible, excess, smallest_tolerance
        As in :class:`isocost.repairs.lp.Achievability`; selecting nobody or everybody does not
        count.  With a ``corner`` the tolerance is the ``selecting_tolerance``: a smaller one
        selects fewer people, the fewer the smaller it is.
    corner : Corner or None
        Set if the requested tolerances can be met only by selecting nobody, or everybody.
    slack : float
        With the tolerances requested, the least amount by which every floor must be lowered, and
        by which rates must get worse if ``no_worse``; 0 if feasible, NaN if none is enough.
    """

    written = (
        "feasible", "smallest_tolerance", "excess", "*_asked", "_selected", "selecting_tolerance",
        "_clash", "slack", "largest_floor",
    )  # fmt: skip
    asked = ("tolerances", "equal", "threshold", "floor", "no_worse", "monotone")

    corner: Corner | None = None
    slack: float = 0.0

    @property
    def largest_floor(self) -> dict[str, float]:
        """The floors that can be had with the tolerances requested; empty if there are none."""
        lowered = {name: least - self.slack for name, least in self.request.floor.items()}
        # NaN is not at least 0 either.
        return lowered if all(least >= 0.0 for least in lowered.values()) else {}

    @property
    def selecting_tolerance(self) -> float | None:
        """The tolerance with which some are selected, but not all; None without a corner."""
        return None if self.corner is None else self.corner.tolerance

    def _selected(self) -> str | None:
        return None if self.corner is None else self.corner.selected

    def _clash(self) -> tuple[Group, ...]:
        return () if self.corner is None else self.corner.groups

    @property
    def goal(self) -> str:
        """The request, such as "equal fpr and fnr at 0.5 with accuracy of at least 0.8"."""
        said = [
            f"{name.removeprefix(OVERALL)} of at least {least:g}"
            f"{' overall' if name.startswith(OVERALL) else ''}"
            for name, least in self.request.floor.items()
        ]
        said += ["no rate worse than now"] * self.request.no_worse
        said += ["no lower output for a higher score"] * self.request.monotone
        conditions = f" with {' and '.join(said)}" if said else ""
        return f"equal {' and '.join(self.request.equal)} at {self.request.threshold:g}{conditions}"

    def remedies(self) -> Iterator[tuple[str, str]]:
        """Arguments that would be possible instead, each with "or more" or "or less"."""
        if not math.isnan(self.excess):
            yield self.enough(), "or more"
        if self.largest_floor and not self.request.no_worse:
            floor = {n: float(round_down(least)) for n, least in self.largest_floor.items()}
            yield setting("floor", floor), "or less"

    def __str__(self) -> str:
        if self.feasible:
            return f"Feasible: calibrated scores can have {self.goal}."
        said = f"cannot have {self.goal}"
        if self.corner is not None:
            why = f": {self.corner.reason}" if self.corner.reason else ""
            said = f"have {self.goal} only if {self.corner.who} is selected{why}"
        takes = " or ".join(remedy for remedy, _ in self.remedies())
        instead = f"It would take {takes}." if takes else "No tolerance helps."
        return f"Not feasible: calibrated scores made from these {said}.\n{instead}"

    def problem(self, closest: list[str]) -> Problem:
        """The error for a request that cannot be met, with the steps that come closest to it."""
        name = f"equal {' and '.join(self.request.equal)} with calibration"
        rule = f"must be possible at the threshold {self.request.threshold:g}"
        steps = [f"accept {remedy} {end}" for remedy, end in self.remedies()]
        if self.request.no_worse:
            steps.append(f"leave out {setting('no_worse', True)}")
        elif self.request.floor and not self.largest_floor:
            steps.append("leave out the floor")
        if self.corner is not None:
            rule += f" with {SOME[self.corner.selected]}"
            if math.isnan(self.corner.tolerance):
                levels = f"use more {setting('levels')}"
                leave = f"leave that group out, as no tolerance helps; or {levels}"
                more = f"{levels}, as no tolerance helps"
                steps.append(leave if self.corner.groups else more)
            else:
                verb = "select" if self.corner.selected == "nobody" else "leave out"
                steps[0] += f", with which every group can {verb} half as many people as before"
        if not math.isnan(self.excess):
            steps.append(f"leave a rate out of {setting('equal')}")
        steps += ["choose another threshold", *closest]
        return Problem(name, rule, str(self).splitlines()[0], "; or ".join(steps))


class Assessment(NamedTuple):
    """A verdict, and the nearest program that can be solved; None if there is none."""

    verdict: Reconcilability
    program: EqualityProgram | None
    excess: float
    slack: float


def assess(
    plan: EqualityProgram, request: Request, tally: Tally, corners: Mapping[Selected, list[int]]
) -> Assessment:
    """The verdict on a request, and the nearest program that can be solved.

    Tolerances are raised first.  Only if no tolerance is enough are floors lowered, as little as
    possible, and then tolerances raised.
    """
    for word in corners:
        plan = replace(plan, limits=[*plan.limits, *_selecting(plan.choices, word)])
    excess = least_excess(plan)
    feasible = excess <= ROUNDING
    excess = 0.0 if feasible else excess
    soft = any(limit.soft for limit in plan.limits)
    slack = least_slack(plan) if soft and not feasible else 0.0
    smallest = max(request.tolerances.values()) + excess
    corner = None
    if corners and not feasible:
        selected, where = next(iter(corners.items()))
        names = group_names(tally.groups)
        # The criterion is about both rates alone; it also says which group no tolerance helps.
        alone = not (request.floor or request.no_worse or request.monotone)
        groups, reason = _clash(plan.choices.levels, request.threshold, selected)
        if len(groups) > 1 and not (alone and {"fpr", "fnr"} <= set(request.equal)):
            groups, reason = [], ""
        reason = reason.format(*(names[index] for index in groups))
        who: str = selected
        if len(where) < len(names):
            who = f"{selected} in {listing((names[index] for index in where), most=6)}"
        corner = Corner(selected, smallest, tuple(tally.groups[i] for i in groups), reason, who)
    verdict = Reconcilability(request, feasible, excess, corner, slack)
    if not math.isnan(excess):
        return Assessment(verdict, plan.relaxed(excess + ROUNDING), excess, 0.0)
    anything = dict.fromkeys(plan.tolerances, math.inf)
    lowered = least_slack(replace(plan, tolerances=anything))
    if math.isnan(lowered):
        return Assessment(verdict, None, excess, lowered)
    plan = plan.relaxed(slack=lowered + ROUNDING)
    excess = least_excess(plan)
    return Assessment(verdict, plan.relaxed(excess + ROUNDING), excess, lowered)


def closest_note(assessment: Assessment) -> str:
    """The note of a rule that does not meet the request."""
    verdict, corner = assessment.verdict, assessment.verdict.corner
    what = f"{verdict.goal[0].upper()}{verdict.goal[1:]} is"
    if corner is not None:
        what = f"{what} feasible only if {corner.who} is selected"
        if assessment.program is None:
            return f"{what}, as here{': ' if corner.reason else ''}{corner.reason}."
        what = f"{what}. This is the closest with {SOME[corner.selected]}"
    else:
        what = f"{what} not feasible. This is the closest"
    if not math.isnan(verdict.excess):
        raised = verdict.request.raised(verdict.excess)
        if isinstance(raised, float):
            return f"{what}: the tolerance is {round_up(raised)}."
        named = ", ".join(f'"{name}": {round_up(limit)}' for name, limit in raised.items())
        return f"{what}: the tolerance is {{{named}}}."
    reached = round_up(max(verdict.request.tolerances.values()) + assessment.excess)
    return f"{what}: {_lowered(assessment)}, and the tolerance is {reached}."


def _lowered(assessment: Assessment) -> str:
    verdict, slack = assessment.verdict, round_up(assessment.slack)
    lowered = [f"floors are {slack} lower"] if verdict.request.floor else []
    lowered += [f"rates get worse by up to {slack}"] if verdict.request.no_worse else []
    return " and ".join(lowered)


def not_reached(assessment: Assessment) -> str:
    """The part of the request besides equality that a rule does not meet; "" if there is none."""
    verdict = assessment.verdict
    if verdict.corner is not None and assessment.program is None:
        return f"{verdict.corner.who} is selected"
    if not math.isnan(verdict.excess):
        return ""
    reached = max(verdict.request.tolerances.values()) + assessment.excess
    more = f", and a difference of {round_up(reached)} remains" if reached > ROUNDING else ""
    return _lowered(assessment) + more


# Corners: equal rates that nobody wants


def corners_of(plan: EqualityProgram, shares: Floats) -> dict[Selected, list[int]]:
    """The corner that shares are in, if any, and the groups of which next to nobody is selected.

    In a corner next to nobody, or everybody, of every group is selected; if decisions are to be
    equal, it is enough that nobody is in one group.  With a tolerance, however small, some can be
    selected where equal rates select nobody.  If these are fewer than half as many as before, it
    counts what equal rates would do.
    """
    if found := _few(plan, shares, FEW):
        return found
    equal = replace(plan, tolerances=dict.fromkeys(plan.tolerances, 0.0))
    if equal.tolerances == plan.tolerances or not _few(plan, shares, HALF, some=True):
        return {}
    without = solve(equal)
    return {} if without is None else _few(plan, without, FEW)


def _about_decisions(plan: EqualityProgram) -> bool:
    """True if a rate that is to be equal depends on who is selected."""
    return any(name in MEASURES and MEASURES[name].counts_decisions for name in plan.rates)


def _few(
    plan: EqualityProgram, shares: Floats, few: float, some: bool = False
) -> dict[Selected, list[int]]:
    """The groups of which up to ``few`` times as many as before are selected, or are not."""
    choices, found = plan.choices, dict[Selected, list[int]]()
    after = choices.by_group(choices.rate("selection_rate")) @ shares
    before = np.array([_selected(levels) for levels in choices.levels])
    sides: tuple[tuple[Selected, Floats, Floats, bool], ...] = (
        ("nobody", before, after, some or _about_decisions(plan)),
        ("everybody", 1.0 - before, 1.0 - after, some),
    )
    for word, was, now, one in sides:
        low = now <= few * was + NONE
        if (low & (was > 0.0)).any() and (one or low.all()):
            found[word] = np.flatnonzero(low).tolist()
    return found


def _selected(levels: ScoreLevels) -> float:
    """The share of a group that scores at or above the threshold."""
    return float(levels.w[levels.above].sum())


def _selecting(choices: Choices, selected: Selected) -> list[Limit]:
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
        # The weight of the levels with the highest p, as many as have the mean ``least``.
        order = np.argsort(-p)
        w, spare = levels.w[order], (levels.w * (p - least))[order]
        left = np.cumsum(spare)
        partly = np.flatnonzero(left < 0.0)[:1]
        share = 1.0 - left[partly] / spare[partly]
        most = float(w[left >= 0.0].sum() + (w[partly] * share).sum())
        # Where calibrated scores can select nobody, no tolerance is to be enough.
        shares.append(min(before, most or 1.0))
    # Any tolerance above 0 selects somebody, but the fewer the smaller it is: there is no smallest.
    half = HALF * np.array(shares)
    rates = choices.by_group(choices.rate("selection_rate"))
    lowest, highest = (0.0 * half, 1.0 - half) if flip else (half, np.ones(len(half)))
    return [Limit(rates, highest), Limit(-rates, -lowest)]


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
