"""What reconciling is asked for, checked.

Reconciling: calibrated scores whose error rates at a threshold are equal.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isocost.checks import (
    check_salt,
    check_threshold,
    check_tolerance,
    check_whole,
    check_word,
    short,
)
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import InfeasibleError, InfeasibleWarning, Problem, UsageError
from isocost.groups import group_names, names_of, to_json
from isocost.measures.feasibility import round_up
from isocost.measures.rates import base_rate, require_both_labels, require_two_groups
from isocost.measures.table import MEASURES
from isocost.promises import Promise
from isocost.repairs.linear_program import (
    FEWEST,
    SOME,
    Choices,
    Corner,
    Plan,
    Selected,
    bounds,
    clash,
    corner_of,
    least_excess,
    make_choices,
    score_levels,
    solve,
    unsolved,
)
from isocost.repairs.withhold import summary_of
from isocost.rows import Row
from isocost.rules import DEFAULT_SALT, Rule
from isocost.tallies import Tally, check_tally

__all__ = ["KEEPS", "RATES", "Reconcilability", "Request", "check_request", "reconcile"]

FIXED = ("base_rate", "mean_score")
"""Of calibrated scores both are the share of positives, which no rule changes."""

RATES: tuple[str, ...] = (
    *(m.name for m in MEASURES.values() if m.over_labels and m.name not in FIXED),
    "cost",
)
"""What can be made equal: measures that are linear in who gets which score, and costs."""

KEEPS: tuple[str, ...] = ("information", "decisions", "scores")

FEWEST_LEVELS, MOST_LEVELS = 2, 1024


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
    """Put the arguments into one form, or say what is wrong with them."""
    names = _check_equal(equal)
    check_word("keep", keep, KEEPS)
    return Request(
        threshold=check_threshold(threshold),
        tolerances=_check_tolerances(tolerance, names),
        cost=_check_cost(cost, names),
        keep=keep,
        levels=_check_levels(levels),
    )


def _check_equal(equal: Any) -> tuple[str, ...]:
    names = (equal,) if isinstance(equal, str) else tuple(equal) if _is_listing(equal) else ()
    if not names or len(set(names)) != len(names) or not set(names) <= set(RATES):
        raise UsageError(
            Problem(
                "equal",
                f"must name rates to be equal, each once, from {', '.join(RATES)}",
                short(equal),
                'use equal=("fpr", "fnr")',
            )
        )
    return names


def _is_listing(value: Any) -> bool:
    return isinstance(value, Sequence) and all(isinstance(name, str) for name in value)


def _check_tolerances(tolerance: Any, names: tuple[str, ...]) -> dict[str, float]:
    if not isinstance(tolerance, Mapping):
        return dict.fromkeys(names, check_tolerance(tolerance))
    unknown = [name for name in tolerance if name not in names]
    if unknown:
        raise UsageError(
            Problem(
                "tolerance",
                f"must be a number, or name only rates that are to be equal: {', '.join(names)}",
                ", ".join(map(repr, unknown)),
                "add them to equal=, or leave them out; a rate that is not named gets 0",
            )
        )
    return {name: check_tolerance(tolerance.get(name, 0.0)) for name in names}


def _check_cost(cost: CostLike | None, names: tuple[str, ...]) -> Cost | None:
    if (cost is not None) != ("cost" in names):
        raise UsageError(
            Problem(
                "cost",
                'must be given exactly if equal= has "cost"',
                f"cost={cost!r}, equal={names!r}",
                'use for example equal=("fpr", "cost"), cost="weighted:1,3"',
            )
        )
    return None if cost is None else as_cost(cost)


def _check_levels(levels: Any) -> int:
    step = "use levels=64, the default"
    return check_whole("levels", levels, FEWEST_LEVELS, MOST_LEVELS, step)


Floats = npt.NDArray[np.float64]

ROUNDING = 1e-9
"""An excess up to here is the solver's rounding, not a reason to call a thing infeasible."""


@dataclass(frozen=True)
class Reconcilability:
    """Whether calibrated scores can make rates equal, and if not, how nearly.

    Attributes
    ----------
    feasible : bool
        Whether the tolerances asked for can be met other than by selecting nobody or everybody.
    smallest_tolerance : float
        A tolerance that is enough for all the rates: the largest one asked for plus ``excess``.
        If one number was asked for, no smaller one will do.  With a ``corner`` it is the
        ``selecting_tolerance``: a smaller one selects fewer people, the fewer the smaller it is.
    excess : float
        The least amount by which every tolerance must be raised; 0 if feasible.
    tolerances : {name: float}
        What was asked for.
    equal : tuple of str
        The rates to be equal.
    threshold : float
        The score from which people are positive.
    corner : Corner or None
        Set if the tolerances asked for can be met only by selecting nobody, or everybody.
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
        """The tolerance of the corner: with it some are selected, and not all; None without one."""
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

        def plain(value: float | None) -> float | None:
            return None if value is None or math.isnan(value) else value

        corner = self.corner
        return {
            "feasible": self.feasible,
            "smallest_tolerance": plain(self.smallest_tolerance),
            "excess": plain(self.excess),
            "tolerances": dict(self.tolerances),
            "equal": list(self.equal),
            "threshold": self.threshold,
            "selected": None if corner is None else corner.selected,
            "selecting_tolerance": plain(self.selecting_tolerance),
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

        sum_j m_ij = w_i                    everyone is somewhere
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
        What to do when it cannot be had, or only by selecting nobody or everybody: raise
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
    and have FPR 0 and FNR 1 in every group.  Where that is all that can be had though somebody is
    selected now, it counts as infeasible; likewise with base rates above the threshold.

    An output is the level's own share of positives, the threshold, or 1/1024 less.  With hard
    rates alone no others would keep more information, but for that 1/1024.  Generalized
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
    harms = _harms(plan.choices, request.keep)
    shares, notes = solve(plan, harms), []
    reached: dict[str, float] = {}
    selected = None if shares is None else corner_of(plan.choices, shares)
    if shares is None or selected:
        asked, relaxed = _reconcilability(plan, request, tally, selected)
        if not asked.feasible and infeasible == "raise":
            raise InfeasibleError(_explain(asked), asked)
        if not asked.feasible:
            notes.append(_closest_note(asked))
            warnings.warn(notes[0], InfeasibleWarning, stacklevel=2)
        if asked.excess > 0.0:
            reached = {name: t + asked.excess for name, t in request.tolerances.items()}
        shares = shares if math.isnan(asked.excess) else solve(relaxed, harms)
    if shares is None:
        raise unsolved("a solution that does not meet the equations")
    rows = tuple(_rows(tally, plan.choices, shares))
    short = {"reached": reached} if reached else {}
    return Rule(
        groups=tally.groups,
        rows=rows,
        method="reconcile",
        cost=request.cost,
        settings={**request.to_dict(), "infeasible": infeasible, **short},
        notes=(*notes, *_notes(tally, plan.choices, shares)),
        made_from=summary_of(tally),
        salt=salt,
        promise=Promise.of(rows, request.tolerances, reached, threshold=request.threshold),
    )


def _plan(tally: Tally, request: Request) -> Plan:
    groups = range(len(tally.groups))
    parts = [score_levels(tally, i, request.threshold, request.levels) for i in groups]
    choices = make_choices(parts, request.threshold, request.wide)
    rates = {name: choices.rate(name) for name in request.equal if name != "cost"}
    if request.cost is not None:
        a, b = request.cost.coefficients(tally.groups, base_rate(tally.totals))
        rates["cost"] = choices.cost(a, b)
    rates = {name: rates[name] for name in request.equal}
    return Plan(choices, rates, request.tolerances)


def _harms(choices: Choices, keep: str) -> list[Floats]:
    """What is made small, in order: ties go to information."""
    return [choices.harm(name) for name in dict.fromkeys((keep, "information"))]


def _reconcilability(
    plan: Plan, request: Request, tally: Tally, selected: Selected | None
) -> tuple[Reconcilability, Plan]:
    """Whether the rates can be equal, and the plan with tolerances that are enough."""
    if selected:
        plan = replace(plan, selection=bounds(plan.choices, selected))
    excess = least_excess(plan)
    feasible = excess <= ROUNDING
    excess = 0.0 if feasible else excess
    smallest = max(request.tolerances.values()) + excess
    corner = None
    if selected and not feasible:
        both = {"fpr", "fnr"} <= set(request.equal)
        groups, reason = clash(plan.choices.levels, request.threshold, selected)
        known = math.isnan(excess) or both
        names = [group_names(tally.groups)[place] for place in groups]
        corner = Corner(
            selected,
            smallest,
            tuple(tally.groups[place] for place in groups) if known else (),
            reason.format(*names) if known else "",
        )
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


def _explain(asked: Reconcilability) -> Problem:
    verdict = str(asked).splitlines()[0]
    name = f"equal {' and '.join(asked.equal)} with calibration"
    rule = f"must be possible at the threshold {asked.threshold:g}"
    others = 'or choose another threshold; or pass infeasible="closest"'
    if asked.corner is None:
        step = f"accept tolerance={asked.advice} or more; or leave a rate out of equal=; {others}"
        return Problem(name, rule, verdict, step)
    rule += f" with {SOME[asked.corner.selected]}"
    if math.isnan(asked.corner.tolerance):
        step = f"leave that group out, as no tolerance helps; or use more levels=; {others}"
    else:
        kept = "select" if asked.corner.selected == "nobody" else "leave out"
        step = (
            f"accept tolerance={asked.advice} or more, with which every group can {kept} half as "
            f"many people as before; or leave a rate out of equal=; {others}"
        )
    return Problem(name, rule, verdict, step)


def _closest_note(asked: Reconcilability) -> str:
    what = f"Equal {' and '.join(asked.equal)} at {asked.threshold:g} is"
    if asked.corner is None:
        return f"{what} not feasible. This is the closest: the tolerance is {asked.advice}."
    what = f"{what} feasible only if {asked.corner.selected} is selected"
    if math.isnan(asked.excess):
        return f"{what}, as here: {asked.corner.reason}."
    some = SOME[asked.corner.selected]
    return f"{what}. This is the closest with {some}: the tolerance is {asked.advice}."


def _rows(tally: Tally, choices: Choices, shares: Floats) -> Iterator[Row]:
    """One row per level and output that anybody gets, from low to high."""
    for k in np.lexsort((choices.value, choices.row)):
        if shares[k] > 0:
            part, level = choices.levels[choices.group[k]], choices.level[k]
            yield Row(
                tally.groups[choices.group[k]],
                float(part.lo[level]),
                float(part.hi[level]),
                "set",
                float(choices.value[k]),
                float(shares[k]),
            )


def _notes(tally: Tally, choices: Choices, shares: Floats) -> Iterator[str]:
    """What the rule does to people, and where it knows little."""
    own = choices.people * choices.p**2
    most = float(own[choices.pool < 0].sum())
    lost = 1.0 - float((choices.people * choices.value**2) @ shares) / most
    turned = float((choices.people * choices.turned) @ shares)
    by_coin = float((choices.people * (shares < 1.0)) @ shares)
    yield (
        f"{max(0.0, lost):.2%} of the information E[q^2] of the levels is lost; the decision at "
        f"{choices.threshold:g} changes for {turned:.2%} of people; for {by_coin:.2%} the output "
        "hangs on the coin."
    )
    for name, part in zip(names_of(tally.groups).values(), choices.levels, strict=True):
        if part.n.min() < FEWEST:
            yield (
                f"A level of {name} has {part.n.min():.6g} rows: its share of positives is "
                "uncertain."
            )
        for side, where in ((True, "at or above"), (False, "below")):
            if not (part.above == side).any():
                yield f"Nobody in {name} scores {where} {choices.threshold:g}: such scores stay."
