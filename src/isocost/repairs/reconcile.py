"""Reconciling: calibrated scores whose error rates at a threshold are equal."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from isocost.checks import (
    check_salt,
    check_threshold,
    check_tolerance,
    check_whole,
    check_word,
    finite_or_none,
    short,
)
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import InfeasibleError, InfeasibleWarning, Problem, UsageError
from isocost.groups import Group, group_names, names_of, to_json
from isocost.measures.rates import base_rate, require_both_labels, require_two_groups
from isocost.measures.table import MEASURES
from isocost.repairs.counsel import heeding
from isocost.repairs.linear_program import (
    FEWEST,
    Choices,
    EqualityProgram,
    ScoreLevels,
    just_below,
    least_excess,
    make_choices,
    score_levels,
    solve,
    unsolved,
)
from isocost.repairs.withhold import summary_of
from isocost.rows import Row
from isocost.rules import DEFAULT_SALT, Promise, Rule
from isocost.tallies import Tally, check_tally
from isocost.typing import Floats
from isocost.verdict.sentences import round_up

__all__ = ["KEEPS", "RATES", "Corner", "Reconcilability", "Request", "check_request", "reconcile"]

FIXED = ("base_rate", "mean_score")
"""Both are the share of positives if scores are calibrated, which no rule changes."""

RATES: tuple[str, ...] = (
    *(m.name for m in MEASURES.values() if m.over_labels and m.name not in FIXED),
    "cost",
)
"""What can be made equal: measures that are linear in who gets which score, and costs."""

KEEPS: tuple[str, ...] = ("information", "decisions", "scores")

FEWEST_LEVELS, MOST_LEVELS = 2, 1024

ROUNDING = 1e-9
"""An excess up to here is the solver's rounding, not a reason to call something infeasible."""

HALF = 0.5
"""A tolerance selects people if every group can select this share of those it selected before.

Any tolerance above 0 selects somebody, but the fewer the smaller it is, so there is no smallest."""

FEW, NONE = 0.01, 1e-9
"""Up to this share of those selected before, and up to this share of a group, is next to nobody."""

SOME = {"nobody": "somebody selected", "everybody": "somebody not selected"}

Selected = Literal["nobody", "everybody"]


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`isocost.repairs.reconcile.reconcile`, in one form.

    ``tolerances`` has a number for each rate that is to be equal.
    """

    threshold: float
    tolerances: dict[str, float]
    cost: Cost | None
    keep: str
    levels: int

    @property
    def equal(self) -> tuple[str, ...]:
        """The rates that are to be equal."""
        return tuple(self.tolerances)

    @property
    def wide(self) -> bool:
        """Whether levels must be able to share more outputs than hard rates need."""
        return self.keep == "scores" or not all(
            name in MEASURES and MEASURES[name].counts_decisions for name in self.equal
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the settings of a rule; one number if all tolerances are the same."""
        numbers = set(self.tolerances.values())
        return {
            "threshold": self.threshold,
            "equal": list(self.equal),
            "tolerance": numbers.pop() if len(numbers) == 1 else dict(self.tolerances),
            "keep": self.keep,
            "levels": self.levels,
        }


def check_request(
    threshold: float,
    equal: str | Sequence[str],
    tolerance: float | Mapping[str, float],
    cost: CostLike | None,
    keep: str,
    levels: int,
) -> Request:
    """Bring the arguments into one form; raise if one of them is invalid."""
    names = _check_equal(equal)
    check_word("keep", keep, KEEPS)
    return Request(
        threshold=check_threshold(threshold),
        tolerances=_check_tolerances(tolerance, names),
        cost=_check_cost(cost, names),
        keep=keep,
        levels=check_whole(
            "levels", levels, FEWEST_LEVELS, MOST_LEVELS, "use levels=64, the default"
        ),
    )


def _check_equal(equal: Any) -> tuple[str, ...]:
    listed = (equal,) if isinstance(equal, str) else equal if isinstance(equal, Sequence) else ()
    names = tuple(listed) if all(isinstance(name, str) for name in listed) else ()
    if not names or len(set(names)) != len(names) or not set(names) <= set(RATES):
        rule = f"must name rates to be equal, each once, from {', '.join(RATES)}"
        raise UsageError(Problem("equal", rule, short(equal), 'use equal=("fpr", "fnr")'))
    return names


def _check_tolerances(tolerance: Any, names: tuple[str, ...]) -> dict[str, float]:
    if not isinstance(tolerance, Mapping):
        return dict.fromkeys(names, check_tolerance(tolerance))
    unknown = [name for name in tolerance if name not in names]
    if unknown:
        rule = f"must be a number, or name only rates that are to be equal: {', '.join(names)}"
        step = "add them to equal=, or leave them out; a rate that is not named gets 0"
        raise UsageError(Problem("tolerance", rule, ", ".join(map(repr, unknown)), step))
    return {name: check_tolerance(tolerance.get(name, 0.0)) for name in names}


def _check_cost(cost: CostLike | None, names: tuple[str, ...]) -> Cost | None:
    if (cost is not None) != ("cost" in names):
        rule = 'must be passed if and only if equal= has "cost"'
        step = 'use for example equal=("fpr", "cost"), cost="weighted:1,3"'
        raise UsageError(Problem("cost", rule, f"cost={cost!r}, equal={names!r}", step))
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
class Reconcilability:
    """Whether calibrated scores can make rates equal, and if not, how nearly.

    Attributes
    ----------
    feasible : bool
        Whether the requested tolerances can be met other than by selecting nobody or everybody.
    smallest_tolerance : float
        A tolerance that is enough for all the rates: the largest one requested plus ``excess``.
        If one number was requested, no smaller one will do.  With a ``corner`` it is the
        ``selecting_tolerance``: a smaller one selects fewer people, the fewer the smaller it is.
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
    """

    feasible: bool
    smallest_tolerance: float
    excess: float
    tolerances: Mapping[str, float]
    equal: tuple[str, ...]
    threshold: float
    corner: Corner | None = None

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

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        corner = self.corner
        return {
            "feasible": self.feasible,
            "smallest_tolerance": finite_or_none(self.smallest_tolerance),
            "excess": finite_or_none(self.excess),
            "tolerances": dict(self.tolerances),
            "equal": list(self.equal),
            "threshold": self.threshold,
            "selected": None if corner is None else corner.selected,
            "selecting_tolerance": finite_or_none(self.selecting_tolerance),
            "clash": [] if corner is None else [to_json(group) for group in corner.groups],
        }

    def __str__(self) -> str:
        rates = " and ".join(self.equal)
        if self.feasible:
            return f"Feasible: calibrated scores can have equal {rates} at {self.threshold:g}."
        if self.corner is not None:
            enough = math.isfinite(self.smallest_tolerance)
            return (
                f"Not feasible: calibrated scores made from these have equal {rates} at "
                f"{self.threshold:g} only if {self.corner.selected} is selected"
                f"{': ' if self.corner.reason else ''}{self.corner.reason}.\n"
                + (f"It would take tolerance={self.advice}." if enough else "No tolerance helps.")
            )
        return (
            f"Not feasible: calibrated scores made from these cannot have equal {rates} at "
            f"{self.threshold:g}.\nIt would take tolerance={self.advice}."
        )


@heeding
def reconcile(
    tally: Tally,
    threshold: float = 0.5,
    equal: str | Sequence[str] = ("fpr", "fnr"),
    tolerance: float | Mapping[str, float] = 0.0,
    *,
    cost: CostLike | None = None,
    keep: Literal["information", "decisions", "scores"] = "information",
    levels: int = 64,
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

    Among these the one that keeps most of what ``keep`` names is chosen.

    Parameters
    ----------
    tally : Tally
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
    keep : {"information", "decisions", "scores"}
        The highest E[q^2]; the fewest decisions that change; or the least E|q - h| with h the
        level's mean score.  Ties go to information.
    levels : int
        The most levels of a group.  They have about equal weight, and 20 rows or more.
    infeasible : {"raise", "closest"}
        What to do when it is infeasible, or feasible only by selecting nobody or everybody: raise
        :class:`InfeasibleError`, whose ``feasibility`` is a :class:`Reconcilability`, or use the
        smallest tolerance, with a warning and a note.
    salt : str
        The coin's salt.

    Returns
    -------
    Rule
        Every score is set to a value that is the share of positives of those who get it.

    Notes
    -----
    All of it is exact on the tally it was made from, and holds up to chance on new data; there
    fewer levels hold better, because their shares of positives are better known.
    Decisions near the threshold change in both directions, some by a coin: the rule's notes
    say how many.

    If every base rate lies below the threshold, scores just below it for everybody are calibrated
    and have FPR 0 and FNR 1 in every group.  Where nothing else is possible though somebody is
    selected now, it counts as infeasible; likewise with base rates above the threshold.

    An output is the level's own share of positives, the threshold, or 1/1024 less.  With hard
    rates alone no others would keep more information, apart from that 1/1024.  Generalized
    rates, costs and ``keep="scores"`` may need coarser outputs: there the base rate and 32 evenly
    spaced values serve all levels of a group, and the smallest tolerance is that of these.

    References
    ----------
    Reich, Vijaykumar: A Possibility in Algorithmic Fairness: Can Calibration and Equal Error
    Rates Be Reconciled?, FORC 2021.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = reconcile(compas())
    >>> after = ic.audit(rule.expected(compas()))
    >>> for group, m in after.groups.items():
    ...     print(f"{group:16} {m.fpr:.4f} {m.fnr:.4f} {m.calibration_gap:.4f}")
    African-American 0.2490 0.4855 0.0000
    Caucasian        0.2490 0.4855 0.0000
    """
    check_tally(tally)
    check_salt(salt)
    request = check_request(threshold, equal, tolerance, cost, keep, levels)
    check_word("infeasible", infeasible, ("raise", "closest"))
    require_two_groups(tally)
    require_both_labels(tally)
    plan = _plan(tally, request)
    # Ties go to information.
    harms = [plan.choices.harm(name) for name in dict.fromkeys((keep, "information"))]
    shares, notes = solve(plan, harms), []
    reached: dict[str, float] = {}
    selected = None if shares is None else corner_of(plan.choices, shares)
    if shares is None or selected:
        verdict, relaxed = _reconcilability(plan, request, tally, selected)
        if not verdict.feasible and infeasible == "raise":
            raise InfeasibleError(_explain(verdict), verdict)
        if not verdict.feasible:
            notes.append(_closest_note(verdict))
            warnings.warn(notes[0], InfeasibleWarning, stacklevel=3)
        if verdict.excess > 0.0:
            reached = {name: t + verdict.excess for name, t in request.tolerances.items()}
        shares = shares if math.isnan(verdict.excess) else solve(relaxed, harms)
    if shares is None:
        raise unsolved("a solution that does not meet the equations")
    rows = tuple(_rows(tally, plan.choices, shares))
    return Rule(
        groups=tally.groups,
        rows=rows,
        method="reconcile",
        cost=request.cost,
        settings={**request.to_dict(), "infeasible": infeasible},
        notes=(*notes, *_notes(tally, plan.choices, shares)),
        made_from=summary_of(tally),
        salt=salt,
        promise=Promise.of(rows, request.tolerances, reached, threshold=request.threshold),
    )


def _plan(tally: Tally, request: Request) -> EqualityProgram:
    groups = range(len(tally.groups))
    levels = [score_levels(tally, i, request.threshold, request.levels) for i in groups]
    choices = make_choices(levels, request.threshold, request.wide)
    rates = {}
    for name in request.equal:
        if name == "cost" and request.cost is not None:
            a, b = request.cost.coefficients(tally.groups, base_rate(tally.totals))
            rates[name] = choices.cost(a, b)
        else:
            rates[name] = choices.rate(name)
    return EqualityProgram(choices, rates, request.tolerances)


def _reconcilability(
    plan: EqualityProgram, request: Request, tally: Tally, selected: Selected | None
) -> tuple[Reconcilability, EqualityProgram]:
    """Whether the rates can be equal, and the plan with tolerances that are enough."""
    if selected:
        plan = replace(plan, limits=_selecting(plan.choices, selected))
    excess = least_excess(plan)
    feasible = excess <= ROUNDING
    excess = 0.0 if feasible else excess
    smallest = max(request.tolerances.values()) + excess
    corner = None
    if selected and not feasible:
        groups, reason = _clash(plan.choices.levels, request.threshold, selected)
        # The criterion is about both rates; it also says which group no tolerance helps.
        if not math.isnan(excess) and not {"fpr", "fnr"} <= set(request.equal):
            groups, reason = [], ""
        names = group_names(tally.groups)
        reason = reason.format(*(names[index] for index in groups))
        corner = Corner(selected, smallest, tuple(tally.groups[i] for i in groups), reason)
    verdict = Reconcilability(
        feasible=feasible,
        smallest_tolerance=smallest,
        excess=excess,
        tolerances=request.tolerances,
        equal=request.equal,
        threshold=request.threshold,
        corner=corner,
    )
    return verdict, plan.relaxed(excess + ROUNDING)


def _explain(verdict: Reconcilability) -> Problem:
    got = str(verdict).splitlines()[0]
    name = f"equal {' and '.join(verdict.equal)} with calibration"
    rule = f"must be possible at the threshold {verdict.threshold:g}"
    others = 'or choose another threshold; or pass infeasible="closest"'
    if verdict.corner is None:
        step = f"accept tolerance={verdict.advice} or more; or leave a rate out of equal=; {others}"
        return Problem(name, rule, got, step)
    rule += f" with {SOME[verdict.corner.selected]}"
    if math.isnan(verdict.corner.tolerance):
        step = f"leave that group out, as no tolerance helps; or use more levels=; {others}"
    else:
        verb = "select" if verdict.corner.selected == "nobody" else "leave out"
        step = (
            f"accept tolerance={verdict.advice} or more, with which every group can {verb} half as "
            f"many people as before; or leave a rate out of equal=; {others}"
        )
    return Problem(name, rule, got, step)


def _closest_note(verdict: Reconcilability) -> str:
    what = f"Equal {' and '.join(verdict.equal)} at {verdict.threshold:g} is"
    if verdict.corner is None:
        return f"{what} not feasible. This is the closest: the tolerance is {verdict.advice}."
    what = f"{what} feasible only if {verdict.corner.selected} is selected"
    if math.isnan(verdict.excess):
        return f"{what}, as here: {verdict.corner.reason}."
    some = SOME[verdict.corner.selected]
    return f"{what}. This is the closest with {some}: the tolerance is {verdict.advice}."


def _rows(tally: Tally, choices: Choices, shares: Floats) -> Iterator[Row]:
    """One row per level and output that anybody gets, from low to high."""
    for k in np.lexsort((choices.value, choices.row)):
        if shares[k] > 0:
            group, level = choices.group[k], choices.level[k]
            lo, hi = choices.levels[group].lo[level], choices.levels[group].hi[level]
            value, share = float(choices.value[k]), float(shares[k])
            yield Row(tally.groups[group], float(lo), float(hi), "set", value, share)


def _notes(tally: Tally, choices: Choices, shares: Floats) -> Iterator[str]:
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
    for name, levels in zip(names_of(tally.groups).values(), choices.levels, strict=True):
        if levels.n.min() < FEWEST:
            rows = f"{levels.n.min():.6g} rows"
            yield f"A level of {name} has {rows}: its share of positives is uncertain."
        for side, where in ((True, "at or above"), (False, "below")):
            if not (levels.above == side).any():
                yield f"Nobody in {name} scores {where} {choices.threshold:g}: such scores stay."


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


def _selecting(choices: Choices, selected: Selected) -> tuple[Any, Floats]:
    """Limits of the selection rates: half as many people as before, or as calibration allows.

    A group can select those of its levels with the highest shares of positives, as many as have
    the threshold for their mean; and leave out in the same way.
    """
    from scipy.sparse import vstack

    flip = selected == "everybody"
    shares = []
    for levels in choices.levels:
        before, p, least = _selected(levels), levels.p, choices.threshold
        if flip:
            before, p, least = 1.0 - before, 1.0 - p, 1.0 - just_below(choices.threshold)
        # Where calibrated scores can select nobody, no tolerance is to be enough.
        shares.append(min(before, _most(p, levels.w, least) or 1.0))
    half = HALF * np.array(shares)
    rates = choices.by_group(choices.rate("selection_rate"))
    lowest, highest = (0.0 * half, 1.0 - half) if flip else (half, np.ones(len(half)))
    return vstack([rates, -rates]).tocsr(), np.append(highest, -lowest)


def _most(p: Floats, w: Floats, least: float) -> float:
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
