"""Handing over: what a person decides, so that all else can be equal for the others.

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
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

import numpy as np

from isocost.checks import (
    as_number,
    check_salt,
    check_threshold,
    check_tolerance,
    check_word,
    short,
)
from isocost.errors import (
    DeferralWarning,
    InfeasibleError,
    InfeasibleWarning,
    Problem,
    UsageError,
    setting,
)
from isocost.measures.table import MEASURES
from isocost.promises import Promise
from isocost.repairs.counsel import heeding
from isocost.repairs.deferral import (
    FEWEST_DECIDED,
    MOST_OUTPUTS,
    DeferralProgram,
    Solved,
    rows_of,
)
from isocost.repairs.levels import score_levels
from isocost.repairs.linear_program import unsolved
from isocost.repairs.reconcilability import Levels, check_levels
from isocost.repairs.review import reviewed
from isocost.result import Record
from isocost.rows import Row
from isocost.rules import DEFAULT_SALT, Rule
from isocost.tallies import DataOptions, Tally, TallyLike, as_tally
from isocost.verdict.sentences import round_up

PROMISED = ("fpr", "fnr", "ppv", "npv", "selection_rate")
"""Equal rates that are promised: those that can be watched."""

LEAST = "least"

KEEPS: tuple[str, ...] = ("information", "brier")

EXACT = 1e-9
"""How exactly a program and its dual must agree."""

GOAL = "one distribution of scores among the decided"


@heeding
def hand_over(
    tally: TallyLike,
    share: float | Literal["least"] | None = 0.25,
    tolerance: float = 0.0,
    *,
    threshold: float = 0.5,
    keep: Literal["information", "brier"] = "information",
    levels: Levels = "auto",
    infeasible: Literal["raise", "closest"] = "raise",
    salt: str = DEFAULT_SALT,
    **reading: Unpack[DataOptions],
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
    tally : Tally, or data
        Of a holdout part: not the data the scores were trained on.
    share : float, "least" or None
        The share of each group that is handed over; "least", or None, for the least that is enough.
    tolerance : float
        How far the share of the decided with a score of at least c, and of either label, may differ
        between groups, for every c.
    threshold : float
        Outputs at or above it are positive; must be an edge of the tally.
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
    salt : str
        The coin's salt.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

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
    :mod:`isocost.repairs.deferral`.

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
    tally = as_tally(tally, reading)
    check_salt(salt)
    request = check_request(share, tolerance, threshold, keep, levels)
    check_word("infeasible", infeasible, ("raise", "closest"))
    search = DeferralSearch(tally, request)
    solved, verdict = search.solution()
    notes = []
    if solved is None or not verdict.feasible:
        if solved is None or infeasible == "raise":
            raise InfeasibleError(explain(request, verdict), verdict)
        notes.append(
            f"Handing over {request.share:.4g} is not enough for {GOAL}. This is the "
            f"closest: {round_up(verdict.smallest_share)} is handed over."
        )
        warnings.warn(notes[0], InfeasibleWarning, stacklevel=4)
    rows = tuple(rows_of(tally.groups, search.program, solved))
    rule = Rule(
        groups=tally.groups,
        rows=rows,
        method="hand_over",
        settings={**vars(request), "infeasible": infeasible},
        salt=salt,
    )
    after = rule.expected(tally)
    gone = reviewed(rule, tally, request.threshold)
    loud = list(gone.warnings())
    for text in loud:
        warnings.warn(text, DeferralWarning, stacklevel=4)
    notes += [*loud, *gone.remarks()]
    if request.share is None:
        notes.append(verdict.certificate)
    return replace(rule, notes=tuple(notes), promise=_promise(rows, request, after))


def _promise(rows: tuple[Row, ...], request: DeferralRequest, after: Tally) -> Promise:
    """The rates that are equal among the decided, and the shares handed over."""
    kinds = after.kinds(request.threshold)
    values = {name: MEASURES[name].of(kinds) for name in PROMISED}
    # A tolerance is about the distribution, which a rate may exceed.
    reached = {
        name: request.tolerance if (far := float(np.ptp(x))) <= request.tolerance + EXACT else far
        for name, x in values.items()
        if not np.isnan(x).any()
    }
    shares = after.shares_handed_over
    return Promise.of(rows, reached, threshold=request.threshold, handed_over=shares)


@dataclass(frozen=True)
class DeferralRequest:
    """The arguments of :func:`hand_over`, checked; ``share`` is None for the least."""

    share: float | None
    tolerance: float
    threshold: float
    keep: str
    levels: Levels


def check_request(
    share: Any, tolerance: Any, threshold: Any, keep: str, levels: Any
) -> DeferralRequest:
    """Bring the arguments into one form; raise if one of them is invalid."""
    check_word("keep", keep, KEEPS)
    if isinstance(share, str) and share == LEAST:
        share = None
    if share is not None and not 0.0 <= as_number(share) <= 1.0 - FEWEST_DECIDED:
        rule = f'must be a share from 0 to {1.0 - FEWEST_DECIDED:g}, or "{LEAST}"'
        step = "use 0.25 to hand over a quarter of each group"
        raise UsageError(Problem("share", rule, short(share), step))
    return DeferralRequest(
        share=None if share is None else as_number(share),
        tolerance=check_tolerance(tolerance),
        threshold=check_threshold(threshold),
        keep=keep,
        levels=check_levels(levels),
    )


@dataclass(frozen=True)
class Deferral(Record):
    """Whether a share is enough, and which one would be.

    Attributes
    ----------
    feasible : bool
        Whether the share asked for is enough.
    share : float or None
        The share asked for; None for the least.
    smallest_share : float
        The least share of each group that is enough; NaN if none below 99 % is, or if it was not
        computed.
    bound : float
        A share below which none is enough, by the dual of the linear program: up to 1e-9 the least.
        Infinite if no share is enough.
    threshold : float
        The threshold asked for.
    smallest_tolerance : float
        If no share is enough, the least tolerance with which one is; 0 otherwise.
    """

    feasible: bool
    share: float | None
    threshold: float
    smallest_share: float = math.nan
    bound: float = math.nan
    smallest_tolerance: float = 0.0

    @property
    def certificate(self) -> str:
        """The proof of the least share, in a sentence."""
        if self.smallest_share <= EXACT:
            return "Nobody has to be handed over for this."
        return f"Linear programs prove that no share below {self.bound:.2%} is enough."

    def __str__(self) -> str:
        if math.isnan(self.smallest_share):
            return "Feasible." if self.feasible else "Not feasible, whatever share is handed over."
        least = f"{self.smallest_share:.2%} must be handed over."
        return f"Feasible: {least}" if self.feasible else f"Not feasible: at least {least}"


def explain(request: DeferralRequest, verdict: Deferral) -> Problem:
    """The error for a share that is not enough."""
    said = str(verdict).lower().rstrip(".")
    if math.isnan(verdict.smallest_share):
        rule = f"must allow {GOAL}, with some share handed over"
        least = setting("tolerance", float(round_up(verdict.smallest_tolerance)))
        return Problem("tolerance", rule, f"{request.tolerance:g}; {said}", f"use {least} or more")
    rule = f"must be at least {round_up(verdict.smallest_share)} for {GOAL}"
    step = f"hand over more, or use {setting('share', LEAST)}"
    step += f"; or ask for less with {setting('tolerance')}"
    return Problem("share", rule, f"{request.share:g}; {said}", step)


class DeferralSearch:
    """The program of a request, and its solutions."""

    def __init__(self, tally: Tally, request: DeferralRequest) -> None:
        self.request = request
        self.levels = [
            score_levels(tally, group, request.threshold, request.levels)
            for group in range(len(tally.groups))
        ]
        self.program = self._program(request.tolerance)

    def _program(self, tolerance: float) -> DeferralProgram:
        """The program with the levels of all groups as outputs, and the threshold."""
        values = np.unique(np.concatenate([one.p for one in self.levels]))
        if len(values) >= MOST_OUTPUTS:
            places = np.linspace(0, len(values) - 1, MOST_OUTPUTS - 1)
            values = values[np.unique(places.round().astype(np.intp))]
        outputs = np.union1d(values, self.request.threshold)
        return DeferralProgram(self.levels, outputs, tolerance, self.request.keep)

    def solution(self) -> tuple[Solved | None, Deferral]:
        """The solution with most information at the share asked for, or at the least one."""
        request = self.request
        verdict = Deferral(True, request.share, request.threshold)
        fewest = self.program.fewest()
        if fewest is None:
            tolerance = self._least_tolerance()
            none = replace(verdict, feasible=False, bound=math.inf, smallest_tolerance=tolerance)
            return None, none
        smallest = 1.0 - fewest.decided
        bound = min(1.0 - 1.0 / max(fewest.bound, 1.0), smallest)
        feasible = request.share is None or smallest <= request.share + EXACT
        verdict = replace(verdict, feasible=feasible, smallest_share=smallest, bound=bound)
        share = request.share if request.share is not None and feasible else smallest
        return self._informed(1.0 - share), verdict

    def _informed(self, decided: float) -> Solved:
        """The most information with this share decided; fewer by rounding if need be."""
        for scale in (0.0, 1e-12, 1e-11, 1e-10, 1e-9):
            solved = self.program.informed(decided * (1.0 - scale))
            if solved is not None:
                return solved
        raise unsolved("no scores for those who can be decided")

    def _least_tolerance(self) -> float:
        """The least tolerance with which some share is enough, up to 0.001; with 1 any is."""
        low, high = self.request.tolerance, 1.0
        while high - low > 1e-3:
            middle = (low + high) / 2.0
            possible = self._program(middle).fewest() is not None
            low, high = (low, middle) if possible else (middle, high)
        return high
