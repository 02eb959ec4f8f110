"""Reconciling: calibrated scores with equal error rates at a threshold; and at which thresholds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Unpack

import numpy as np

from isocost.checks import check_numbers, check_salt, check_word
from isocost.costs import Cost, CostLike
from isocost.errors import (
    InfeasibleError,
    InfeasibleWarning,
    Problem,
    UsageError,
    listing,
    setting,
)
from isocost.grid import TENTHS
from isocost.groups import Group, names_of
from isocost.measures.feasibility import fitted_groups
from isocost.measures.rates import base_rate, group_costs
from isocost.measures.table import MEASURES, OVERALL
from isocost.promises import Promise
from isocost.repairs.counsel import closest_steps, heeding
from isocost.repairs.levels import FEWEST, score_levels
from isocost.repairs.linear_program import (
    Choices,
    EqualityProgram,
    Limits,
    extremes,
    make_choices,
    solve,
    unsolved,
)
from isocost.repairs.reconcilability import (
    Assessment,
    Levels,
    Request,
    Selected,
    assess,
    check_request,
    closest_note,
    corner_of,
    direction_of,
    explain,
    not_reached,
)
from isocost.result import Record, Result
from isocost.rows import Row, reversals
from isocost.rules import DEFAULT_SALT, Rule
from isocost.tallies import DataOptions, Tally, TallyLike, as_tally
from isocost.typing import Floats


@heeding
def reconcile(
    tally: TallyLike,
    threshold: float = 0.5,
    equal: str | Sequence[str] = ("fpr", "fnr"),
    tolerance: float | Mapping[str, float] = 0.0,
    *,
    cost: CostLike | None = None,
    levels: Levels = "auto",
    floor: Mapping[str, float] | None = None,
    no_worse: bool = False,
    monotone: bool = False,
    infeasible: Literal["raise", "closest"] = "raise",
    salt: str = DEFAULT_SALT,
    **reading: Unpack[DataOptions],
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
    tally : Tally, or data
        Of a holdout part: not the data the scores were trained on.
    threshold : float
        Outputs at or above it are positive; must be an edge of the tally.
    equal : sequence of str
        From "fpr", "fnr", "selection_rate" (at the threshold), "generalized_fpr",
        "generalized_fnr" and "cost".
    tolerance : float or {name: float}
        How far a rate may differ between groups; a rate that is not named gets 0.
    cost : Cost or str
        What an error costs, if "cost" is to be equal.
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
    salt : str
        The coin's salt.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

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

    If every base rate lies below the threshold, scores just below it for everybody are calibrated
    and have FPR 0 and FNR 1 in every group.  Where nothing else is possible though somebody is
    selected now, it counts as infeasible; likewise with base rates above the threshold.

    An output is the level's own share of positives, the threshold, or 1/1024 less.  With hard
    rates alone no others would keep more information, apart from that 1/1024.  Generalized
    rates and costs may need coarser outputs: there the base rate and 32 evenly spaced values
    serve all levels of a group, and the smallest tolerance is that of these.

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
    tally = as_tally(tally, reading)
    check_salt(salt)
    request = check_request(threshold, equal, tolerance, cost, levels, floor, no_worse, monotone)
    check_word("infeasible", infeasible, ("raise", "closest"))
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
        settings={**request.settings, "infeasible": infeasible},
        notes=(*notes, *_notes(tally, request, program.choices, shares), *_reversed_note(rows)),
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
            raise InfeasibleError(explain(nearest.verdict, closest), nearest.verdict)
        warnings.warn(notes[0], InfeasibleWarning, stacklevel=4)
    return rule


class Solution(NamedTuple):
    """The program that was solved, and the shares of its choices.

    ``nearest`` is set if the program that was asked for has no solution worth having.
    """

    program: EqualityProgram
    shares: Floats
    nearest: Assessment | None


def solution_of(tally: Tally, request: Request) -> Solution:
    """The best that the request allows, or the nearest thing to it that can be had."""
    program = program_of(tally, request)
    shares, nearest = solve(program), None
    selected = None if shares is None else corner_of(program.choices, shares)
    if shares is None or selected:
        nearest = assess(program, request, tally, selected)
        if nearest.program is not None:
            program = nearest.program
            shares = solve(program)
    if shares is None:
        raise unsolved("a solution that does not meet the equations")
    return Solution(program, shares, nearest)


def program_of(tally: Tally, request: Request) -> EqualityProgram:
    """The linear program of a request."""
    levels = [
        score_levels(tally, group, request.threshold, request.levels, request.monotone)
        for group in range(len(tally.groups))
    ]
    choices = make_choices(levels, request.threshold, request.wide, request.monotone)
    rates = {name: _rate(tally, choices, name, request.cost) for name in request.equal}
    limits = choices.unlimited
    for name, least in request.floor.items():
        rate = choices.rate(name.removeprefix(OVERALL), overall=name.startswith(OVERALL))
        rows = rate[None, :] if name.startswith(OVERALL) else choices.by_group(rate)
        limits += Limits.of(-rows, -least, soft=True)
    for name in request.equal if request.no_worse else ():
        direction = direction_of(name)
        if direction is not None:
            sign = 1.0 if direction == "lower" else -1.0
            now = sign * _rates_now(tally, name, request)
            limits += Limits.of(sign * choices.by_group(rates[name]), now, soft=True)
    if request.monotone:
        limits += Limits.of(choices.falls, 0.0)
    return EqualityProgram(choices, rates, request.tolerances, limits)


def _rate(tally: Tally, choices: Choices, name: str, cost: Cost | None) -> Floats:
    """What each choice adds to a rate, or to the cost, of its group."""
    if name != "cost" or cost is None:
        return choices.rate(name)
    return choices.cost(*cost.coefficients(tally.groups, base_rate(tally.totals)))


def _rates_now(tally: Tally, name: str, request: Request) -> Floats:
    """A rate, or the cost, of each group before the repair."""
    if name == "cost" and request.cost is not None:
        return group_costs(tally.totals, tally.groups, request.cost)
    return MEASURES[name].of(tally.kinds(request.threshold))


def _rows(tally: Tally, choices: Choices, shares: Floats) -> Iterator[Row]:
    """One row per level and output that anybody gets, from low to high."""
    for k in np.lexsort((choices.value, choices.row)):
        if shares[k] > 0:
            group, level = choices.group[k], choices.level[k]
            lo, hi = choices.levels[group].lo[level], choices.levels[group].hi[level]
            value, share = float(choices.value[k]), float(shares[k])
            yield Row(tally.groups[group], float(lo), float(hi), "set", value, share)


def _reversed_note(rows: Sequence[Row]) -> Iterator[str]:
    """Where a higher score may get a lower output, if anywhere."""
    count = sum(reversals(rows).values())
    if count:
        places = "once" if count == 1 else f"at {count} places"
        yield (
            f"From a level to the next higher one of its group the score may fall, {places}; "
            f"{setting('monotone', True)} rules that out."
        )


def _notes(tally: Tally, request: Request, choices: Choices, shares: Floats) -> Iterator[str]:
    """What the rule does to people, and where it knows little."""
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
            rows = f"{levels.n.min():.6g} rows"
            yield f"A level of {name} has {rows}: its share of positives is uncertain."
        for side, where in ((True, "at or above"), (False, "below")):
            if not (levels.above == side).any():
                yield f"Nobody in {name} scores {where} {choices.threshold:g}: such scores stay."


NOBODY = 1e-6
"""A selection rate up to here is that of nobody."""

MOST_GROUPS = 4
"""With more groups than this, the table shows the lowest and the highest selection rate only."""


@dataclass(frozen=True)
class ReconcilableAt(Record):
    """What can be had at one threshold.

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
        """Whether the rates can be equal, in a word or two."""
        if self.feasible:
            return "yes"
        return "no" if self.selected is None else f"only if {self.selected}"


@dataclass(frozen=True, repr=False)
class Reconcilable(Result):
    """What :func:`reconcilable` found, threshold by threshold.

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
        """What the table shows, in a line."""
        return f"Calibrated scores with equal {' and '.join(self.equal)}, by threshold"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table."""
        names = names_of(self.points[0].selection_rates)
        few = len(names) <= MOST_GROUPS
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
                    "-" if math.isnan(point.tolerance) else f"{point.tolerance:.4f}",
                    _share(point.selection_rate),
                    "-" if math.isnan(point.lowest) else possible,
                    *map(_share, shown),
                    "-" if math.isnan(point.accuracy) else f"{point.accuracy:.4f}",
                ]
            )
        return header, rows


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1%}"


def reconcilable(
    tally: TallyLike,
    thresholds: float | Iterable[float] | None = None,
    equal: str | Sequence[str] = ("fpr", "fnr"),
    *,
    cost: CostLike | None = None,
    levels: Levels = "auto",
    floor: Mapping[str, float] | None = None,
    no_worse: bool = False,
    monotone: bool = False,
    **reading: Unpack[DataOptions],
) -> Reconcilable:
    """Whether :func:`isocost.reconcile` can make rates equal, threshold by threshold.

    Parameters
    ----------
    tally : Tally, or data
        Of a holdout part: not the data the scores were trained on.
    thresholds : numbers, optional
        Edges of the tally; by default the nine tenths.
    equal, cost, levels, floor, no_worse, monotone
        As in :func:`isocost.reconcile`.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Returns
    -------
    Reconcilable
        Per threshold: whether equal rates can be had with somebody selected, and not everybody;
        the least tolerance if not; and how many people are selected then.

    Notes
    -----
    Equal rates of calibrated scores that select nobody, or everybody, exist nearly always, and
    count as infeasible.  The least tolerance then lets every group select (or leave out) half as
    many people as before.

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
    tally = as_tally(tally, reading, *chosen)
    if not chosen:
        step = f"leave out {setting('thresholds')} for the nine tenths"
        raise UsageError(Problem("thresholds", "must be at least one number", "none", step))
    requests = [
        check_request(t, equal, 0.0, cost, levels, floor, no_worse, monotone) for t in chosen
    ]
    groups = fitted_groups(tally)
    if requests[0].cost is not None:
        paid = requests[0].cost.among(groups)
        requests = [replace(request, cost=paid) for request in requests]
    points = tuple(_at(tally.select(groups), request) for request in requests)
    return Reconcilable(requests[0].equal, points)


def _at(tally: Tally, request: Request) -> ReconcilableAt:
    """What can be had at the threshold of a request."""
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
