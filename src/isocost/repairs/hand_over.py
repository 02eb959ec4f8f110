"""Handing over: a person decides about some people, so that all else is equal for the others.

The paper's impossibility is about scores that decide about everybody.  Two groups with different
base rates cannot have calibrated scores with the same rates of errors; but if some people of each
group are handed to somebody who decides without the score, the others can have the same base rate.

Theorem.  Calibrated scores of the decided that are not perfect have equal generalized FPR and FNR
in all groups only if base rates among the decided are equal, and then they can.  If scores have the
same distribution there, every rate and every cost is equal, at every threshold.

Proof.  A calibrated group lies on the line mu c_fn = (1 - mu) c_fp (see
:mod:`isocost.measures.rates`).  Lines of two groups meet only in (0, 0) unless mu is the same, and
then the score mu for everybody is calibrated.  With the same distribution s of calibrated scores q,
the share of people with score q and label 1 is s q in each group, and every rate is a function of
these.

The linear program.  A group has levels with shares of positives p_i and weights w_i, which add up
to 1.  The people who are decided have the weights v_i <= u w_i, which add up to 1 too, so that
1 / u of the group is decided and 1 - 1 / u handed over.  Their scores become outputs q_j with
weights s_j.  Each output is the mean of the levels that are pooled in it, so s must be a
mean-preserving contraction of v, and every contraction will do (Strassen 1965).  Contractions are
those below v in the convex order:

    sum_j s_j max(q_j - p_i, 0)  <=  sum_k v_k max(p_k - p_i, 0)    for each level i

with the same mean.  So who gets which output need not be known to find the best s: instead of a
variable per level and output there is one per level and one per output, and a program of 128 levels
and four groups takes a fifth of a second instead of half a minute.  :func:`assigned` then
says who gets which.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from isocost.errors import (
    DeferralWarning,
    InfeasibleError,
    InfeasibleWarning,
    Problem,
    setting,
)
from isocost.groups import Group
from isocost.measures.table import MEASURES
from isocost.question import Question
from isocost.repairs.base import repairs
from isocost.repairs.lp import (
    FEWEST_DECIDED,
    LEAST,
    Achievability,
    Levels,
    Request,
    ScoreLevels,
    SparseRows,
    System,
    check_request,
    minimize,
    score_levels,
    unsolved,
)
from isocost.repairs.review import reviewed
from isocost.rules import DEFAULT_SALT, Promise, Row, Rule
from isocost.tables import round_up
from isocost.tallies import Tally
from isocost.typing import Floats

EXACT = 1e-9
"""Largest difference between a program and its dual."""

GOAL = "one distribution of scores among the decided"


@repairs("share", "tolerance")
def hand_over(
    tally: Tally,
    question: Question,
    *,
    share: float | Literal["least"] | None = 0.25,
    tolerance: float = 0.0,
    keep: Literal["information", "brier"] = "information",
    levels: Levels = "auto",
    infeasible: Literal["raise", "closest"] = "raise",
    salt: str = DEFAULT_SALT,
) -> Rule:
    """Hand some people over, so that calibrated scores treat the others of all groups alike.

    Everybody gets a calibrated score or is handed over to somebody who decides without it.  In
    each group, levels with share of positives p_i and mass w_i get outputs q_j with mass m_ij >= 0:

        sum_j m_ij <= w_i                   the rest of a level is handed over
        sum_i m_ij (p_i - q_j) = 0          every output is calibrated
        sum_i m_ij = s_j in every group     one distribution of scores among the decided

    Then the base rate of the decided is the same in every group, and with it FPR, FNR, PPV, NPV,
    selection rate, AUC and every cost, at every threshold: what the paper shows to be impossible
    for scores that decide about everybody.

    Parameters
    ----------
    share : float, "least" or None
        The share of each group that is handed over; "least", or None, for the least that is enough.
    tolerance : float
        How far the share of the decided with a score of at least c, and of either label, may differ
        between groups, for every c.
    threshold : float
        As in :class:`isocost.Question`; must be an edge of the tally.
    keep : {"information", "brier"}
        What the scores of the decided should have most of: the highest E[q^2], or the lowest
        Brier score E[q (1 - q)].  Both are the same where base rates are given.  Here these follow
        from who is decided, and "information" prefers high ones, the more so the more are handed
        over: which label is called positive matters.  "brier" treats both labels alike.
    levels : int or "auto"
        The most levels of a group, as for :func:`isocost.reconcile`.
    infeasible : {"raise", "closest"}
        If the share is too small: raise :class:`InfeasibleError`, whose ``feasibility`` is a
        :class:`Deferral` that names the least, or hand over the least, with a warning and a note.
        Where no share is enough there is nothing closest, and it is raised.
    tally, salt, **reading
        As for :func:`isocost.withhold`.

    Returns
    -------
    Rule
        Its rows set scores, or have the action "defer".  ``rule.expected(tally)`` is the tally of
        the decided; :func:`isocost.handed_over` says who the others are.

    Notes
    -----
    Among the rules that meet the request, the one is made whose scores tell most about the decided.
    The least share alone would pick scores that tell little.

    The least share is a linear program, whose dual proves that no smaller one is enough; see
    :mod:`isocost.repairs.hand_over`.

    All of it is exact on the tally it was made from, and holds up to chance on new data.  Nothing
    is said about the people handed over: they are as well or badly off as whoever decides about
    them makes them.

    References
    ----------
    Canetti, Cohen, Dikkala, Ramnarayan, Scheffler, Smith: From Soft Classifiers to Hard Decisions:
    How fair can we be?, FAT* 2019.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = ic.hand_over(compas(), share=0.25)
    >>> after = rule.expected(compas())
    >>> {group: round(share, 9) for group, share in after.shares_handed_over.items()}
    {'African-American': 0.25, 'Caucasian': 0.25}
    >>> for group, m in ic.audit(after).groups.items():
    ...     print(f"{group:16} {m.fpr:.4f} {m.fnr:.4f} {m.ppv:.4f} {m.npv:.4f} {m.base_rate:.4f}")
    African-American 0.2191 0.5609 0.6263 0.6248 0.4554
    Caucasian        0.2191 0.5609 0.6263 0.6248 0.4554
    """
    request = check_request(question, tolerance, levels, share=share, keep=keep)
    program, solved, verdict = solution_of(tally, request)
    notes = []
    if solved is None or not verdict.feasible:
        if solved is None or infeasible == "raise":
            raise InfeasibleError(verdict.problem(), verdict)
        notes.append(
            f"Handing over {request.share:.4g} is not enough for {GOAL}. This is the "
            f"closest: {round_up(verdict.smallest_share)} is handed over."
        )
        warnings.warn(notes[0], InfeasibleWarning, stacklevel=5)
    rows = tuple(rows_of(tally.groups, program, solved))
    rule = Rule(
        groups=tally.groups,
        rows=rows,
        method="hand_over",
        settings={
            "share": request.share,
            "tolerance": request.raised(),
            "threshold": request.threshold,
            "keep": request.keep,
            "levels": request.levels,
            "infeasible": infeasible,
        },
        salt=salt,
    )
    after = rule.expected(tally)
    gone = reviewed(rule, tally, request.threshold)
    loud = list(gone.warnings())
    for text in loud:
        warnings.warn(text, DeferralWarning, stacklevel=5)
    notes += [*loud, *gone.remarks()]
    if request.share is None:
        proof = f"Linear programs prove that no share below {verdict.bound:.2%} is enough."
        nobody = "Nobody has to be handed over for this."
        notes.append(nobody if verdict.smallest_share <= EXACT else proof)
    kinds = after.kinds(request.threshold)
    # Rates that can be watched.
    names = ("fpr", "fnr", "ppv", "npv", "selection_rate")
    values = {name: MEASURES[name].of(kinds) for name in names}
    far = {name: float(np.ptp(x)) for name, x in values.items() if not np.isnan(x).any()}
    # A tolerance is about the distribution, which a rate may exceed.
    allowed = max(request.tolerances.values())
    reached = {name: allowed if x <= allowed + EXACT else x for name, x in far.items()}
    shares = after.shares_handed_over
    promise = Promise.of(rows, reached, threshold=request.threshold, handed_over=shares)
    return replace(rule, notes=tuple(notes), promise=promise)


@dataclass(frozen=True)
class Deferral(Achievability):
    """The verdict on a share to hand over, and the share that is enough.

    Attributes
    ----------
    request, feasible, excess, smallest_tolerance
        As in :class:`isocost.repairs.lp.Achievability`; the excess is 0 if some share is enough.
    smallest_share : float
        The least share of each group that is enough; NaN if none below 99 % is, or if it was not
        computed.
    bound : float
        A share below which none is enough, by the dual of the linear program: up to 1e-9 the least.
        Infinite if no share is enough.
    """

    written = ("feasible", "*_asked", "smallest_share", "bound", "smallest_tolerance")
    asked = ("share", "threshold")

    smallest_share: float = math.nan
    bound: float = math.nan

    def __str__(self) -> str:
        if math.isnan(self.smallest_share):
            return "Feasible." if self.feasible else "Not feasible, whatever share is handed over."
        least = f"{self.smallest_share:.2%} must be handed over."
        return f"Feasible: {least}" if self.feasible else f"Not feasible: at least {least}"

    def problem(self) -> Problem:
        """The error for a share that is not enough."""
        said = str(self).lower().rstrip(".")
        if math.isnan(self.smallest_share):
            rule = f"must allow {GOAL}, with some share handed over"
            got = f"{self.request.raised():g}; {said}"
            return Problem("tolerance", rule, got, f"use {self.enough()} or more")
        rule = f"must be at least {round_up(self.smallest_share)} for {GOAL}"
        step = f"hand over more, or use {setting('share', LEAST)}"
        step += f"; or ask for less with {setting('tolerance')}"
        return Problem("share", rule, f"{self.request.share:g}; {said}", step)


def solution_of(tally: Tally, request: Request) -> tuple[DeferralProgram, Solved | None, Deferral]:
    """The program, its best solution at the share asked for or at the least, and the verdict."""
    levels = [
        score_levels(tally, group, request.threshold, request.levels)
        for group in range(len(tally.groups))
    ]
    # The outputs are the levels of all groups, and the threshold.
    values = np.unique(np.concatenate([one.p for one in levels]))
    if len(values) >= MOST_OUTPUTS:
        places = np.linspace(0, len(values) - 1, MOST_OUTPUTS - 1)
        values = values[np.unique(places.round().astype(np.intp))]
    outputs = np.union1d(values, request.threshold)
    allowed = max(request.tolerances.values())
    program = DeferralProgram(levels, outputs, allowed, request.keep)
    fewest = program.fewest()
    if fewest is None:
        # With the tolerance 1 any share is enough.
        low, high = allowed, 1.0
        while high - low > 1e-3:
            middle = (low + high) / 2.0
            possible = replace(program, spread=middle).fewest() is not None
            low, high = (low, middle) if possible else (middle, high)
        return program, None, Deferral(request, False, high - allowed, bound=math.inf)
    smallest = 1.0 - fewest.decided
    bound = min(1.0 - 1.0 / max(fewest.bound, 1.0), smallest)
    feasible = request.share is None or smallest <= request.share + EXACT
    verdict = Deferral(request, feasible, smallest_share=smallest, bound=bound)
    share = request.share if request.share is not None and feasible else smallest
    # Fewer are decided by rounding if need be.
    for scale in (0.0, 1e-12, 1e-11, 1e-10, 1e-9):
        solved = program.informed((1.0 - share) * (1.0 - scale))
        if solved is not None:
            return program, solved, verdict
    raise unsolved("hand_over", "no scores for those who can be decided")


# The linear program

MOST_OUTPUTS = 128
"""The most outputs that all groups share."""

NOISE = 1e-12
"""A weight up to here is rounding."""

SOLVER = 1e-10
"""A weight up to here is the solver's tolerance."""


class Solved(NamedTuple):
    """A solution: weights of the outputs of each group, the share that is decided, and a bound.

    ``value`` is what the solution costs; by the dual, no solution costs less than ``bound``.
    """

    weights: list[Floats]
    decided: float
    value: float
    bound: float


@dataclass(frozen=True, eq=False)
class DeferralProgram:
    """The people decided, the same share of each group, and their scores.

    All groups share the outputs, from low to high.  The share of people with an output of at least
    c and a given label may differ by ``spread`` between groups, for each c; with 0 all groups have
    the same weights of the outputs.  ``keep`` names what is maximized: E[q^2], or E[q^2] - E[q].
    """

    levels: Sequence[ScoreLevels]
    outputs: Floats
    spread: float = 0.0
    keep: str = "information"

    @cached_property
    def _starts(self) -> dict[str, Any]:
        """The first column of v of each group, s of each group or of all, lowest shares, and u."""
        size = len(self.outputs)
        ends = np.cumsum([0, *map(len, self.levels)]).tolist()
        own = size if self.spread else 0
        low = ends[-1] + (size if not self.spread else size * len(self.levels))
        u = low + 2 * own
        s = [ends[-1] + own * t for t in range(len(self.levels))]
        return {"v": ends[:-1], "s": s, "low": low, "u": u, "width": u + 1}

    @cached_property
    def _system(self) -> tuple[System, System]:
        """The inequalities and equations."""
        at, q = self._starts, self.outputs
        below, equal = SparseRows(at["width"]), SparseRows(at["width"])
        for t, one in enumerate(self.levels):
            v, s, n = at["v"][t], at["s"][t], len(one)
            below.add_blocks({v: np.eye(n), at["u"]: -one.w[:, None]})
            over = np.maximum(q - one.p[:, None], 0.0)
            below.add_blocks({s: over, v: -np.maximum(one.p - one.p[:, None], 0.0)})
            equal.add_blocks({v: np.ones((1, n))}, 1.0)
            equal.add_blocks({v: one.p[None, :], s: -q[None, :]})
            if t == 0 or self.spread:
                equal.add_blocks({s: np.ones((1, len(q)))}, 1.0)
        above = np.triu(np.ones((len(q), len(q))))
        for label, share in enumerate((1.0 - q, q) if self.spread else ()):
            low = at["low"] + label * len(q)
            each = np.eye(len(q))
            for s in at["s"]:
                # Each share is at least the lowest, and no more than the tolerance above it.
                below.add_blocks({s: -above * share, low: each})
                below.add_blocks({s: above * share, low: -each}, self.spread)
        return below.system, equal.system

    def _solve(self, costs: Floats, least: float, most: float) -> Solved | None:
        """The best solution with ``least <= u <= most``; 1 / u of each group is decided."""
        at = self._starts
        lower, upper = np.zeros(at["width"]), np.ones(at["width"])
        lower[at["u"]], upper[at["u"]] = least, most
        below, equal = self._system
        found = minimize(costs, equal, below, (lower, upper))
        if found is None:
            return None
        # Weak duality: for prices z <= 0 of the inequalities and y of the equations, and reduced
        # costs r, costs @ x = r @ x + z @ A x + y @ B x >= the least r @ x + z @ a + y @ b.  It
        # holds for any prices, so the solver need not be trusted.
        z, y = np.minimum(found.ineqlin.marginals, 0.0), found.eqlin.marginals
        reduced = costs - below[0].T @ z - equal[0].T @ y
        least_reduced = reduced @ np.where(reduced > 0.0, lower, upper)
        bound = float(below[1] @ z + equal[1] @ y + least_reduced)
        weights = [found.x[s : s + len(self.outputs)] for s in at["s"]]
        return Solved(weights, 1.0 / float(found.x[at["u"]]), float(costs @ found.x), bound)

    def fewest(self) -> Solved | None:
        """The solution with the least u, that is, with the fewest people handed over."""
        costs = np.zeros(self._starts["width"])
        costs[self._starts["u"]] = 1.0
        return self._solve(costs, 1.0, 1.0 / FEWEST_DECIDED)

    def informed(self, decided: float) -> Solved | None:
        """The solution with most of what ``keep`` names if this share is decided."""
        q, costs = self.outputs, np.zeros(self._starts["width"])
        kept = q**2 if self.keep == "information" else q**2 - q
        for s, one in zip(self._starts["s"], self.levels, strict=True):
            costs[s : s + len(q)] -= one.share * kept
        u = max(1.0 / decided, 1.0)
        return self._solve(costs, u, u)


def assigned(levels: ScoreLevels, outputs: Floats, weights: Floats, decided: float) -> Floats:
    """The share of each level (rows) that gets each output (columns).

    From the lowest output to the highest, an output takes those who are nearest to it and still
    there: levels around it, without a gap, of which the two at the ends may be divided so that
    their weight and their mean are right.  If there is a solution at all, this is one: it is the
    left-curtain coupling (Beiglböck and Juillet, Annals of Probability 2016).

    ``weights`` are the shares of the outputs among the decided, and ``decided`` is the share of
    the group that is.
    """
    order = np.argsort(levels.p, kind="stable")
    p, w = levels.p[order], levels.w[order]
    # Fewer people may be decided, so that rounding does not make it impossible.  The solver meets
    # its inequalities to about 1e-10 only, so as a last resort means may be as far off.
    tries = ((scale, 0.0) for scale in (0.0, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9))
    for scale, off in (*tries, (0.0, EXACT)):
        left = w.copy()
        taken = np.zeros((len(p), len(outputs)))
        # Without an output the others are still possible.
        for j in np.flatnonzero(weights > SOLVER):
            wanted = weights[j] * decided * (1.0 - scale)
            own = _nearest(p, left, float(outputs[j]), wanted, off)
            if own is None:
                break
            taken[:, j] = own
            left = np.maximum(left - own, 0.0)
        else:
            shares = np.zeros_like(taken)
            shares[order] = taken / w[:, None]
            return shares
    raise unsolved("hand_over", "scores that nobody can get")


def _nearest(p: Floats, left: Floats, q: float, wanted: float, off: float) -> Floats | None:
    """The weight to take of each level for ``wanted`` in all with the mean q; None if impossible.

    The sum of what is taken may miss wanted * q by ``off``.

    The levels are sorted.  What is taken is a part of the weight left from x to x + wanted, counted
    from below; its mean rises with x, so that x is found by bisection between levels and then from
    a linear equation.
    """
    ends = np.concatenate([[0.0], np.cumsum(left)])
    spare = ends[-1] - wanted
    if spare < -NOISE:
        return None
    sums = np.concatenate([[0.0], np.cumsum(left * (p - q))])
    # Where x or x + wanted is the end of a level the excess has its kinks.
    kinks = np.concatenate([ends, ends - wanted, [0.0, spare]])
    kinks = np.unique(kinks[(kinks >= 0.0) & (kinks <= max(spare, 0.0))])
    values = np.interp(kinks + wanted, ends, sums) - np.interp(kinks, ends, sums)
    rounding = max(off, 1e-13 * wanted)
    if not len(kinks) or values[0] > rounding or values[-1] < -rounding:
        return None
    k = int(np.clip(np.searchsorted(values, 0.0), 1, max(len(kinks) - 1, 1)))
    x = float(kinks[0])
    if len(kinks) > 1:
        (x0, x1), (y0, y1) = kinks[k - 1 : k + 1], values[k - 1 : k + 1]
        x = float(x0 if y1 == y0 else np.clip(x0 - y0 * (x1 - x0) / (y1 - y0), x0, x1))
    inside = np.minimum(ends[1:], x + wanted) - np.maximum(ends[:-1], x)
    return _exact(p, left, np.clip(inside, 0.0, left), q, wanted)


def _exact(p: Floats, left: Floats, taken: Floats, q: float, wanted: float) -> Floats:
    """The weights taken, with rounding errors of weight and mean moved to the two ends."""
    used = np.flatnonzero(taken > 0.0)
    if len(used) < 2 or p[used[-1]] == p[used[0]]:
        return taken
    first, last = used[0], used[-1]
    missing, off = wanted - taken.sum(), q * wanted - float(p @ taken)
    upper = (off - missing * p[first]) / (p[last] - p[first])
    exact = taken.copy()
    exact[last] += upper
    exact[first] += missing - upper
    return np.clip(exact, 0.0, left)


def rows_of(groups: Sequence[Group], program: DeferralProgram, solved: Solved) -> Iterator[Row]:
    """For each level those who are handed over first, then outputs from low to high.

    First, so that a person who is handed over still is if the rule is made again with a larger
    share: the coins below a bound stay below a higher one.
    """
    for t, group in enumerate(groups):
        levels, outputs = program.levels[t], program.outputs
        given = assigned(levels, outputs, solved.weights[t], solved.decided)
        first, last = float(levels.lo[0]), float(levels.hi[-1])
        if first > 0.0:
            # Nobody had such a score: somebody else must decide.
            yield Row(group, 0.0, first, "defer", None, 1.0)
        for level, shares in enumerate(given):
            lo, hi = float(levels.lo[level]), float(levels.hi[level])
            # A share that only rounding leaves is nobody.
            shares[shares <= NOISE] = 0.0
            rest = 1.0 - math.fsum(shares)
            if rest > NOISE:
                yield Row(group, lo, hi, "defer", None, min(rest, 1.0))
            else:
                # What rounding leaves over would keep a score that nobody else has.
                shares[np.argmax(shares)] += rest
            for j in np.flatnonzero(shares > 0.0):
                yield Row(group, lo, hi, "set", float(outputs[j]), min(float(shares[j]), 1.0))
        if last < 1.0:
            yield Row(group, last, 1.0, "defer", None, 1.0)
