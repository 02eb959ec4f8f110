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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal, Unpack

import numpy as np

from isocost.checks import check_salt, check_word
from isocost.costs import CostLike
from isocost.errors import (
    DeferralWarning,
    InfeasibleError,
    InfeasibleWarning,
    Problem,
    UsageError,
    setting,
)
from isocost.measures.rates import require_both_labels, require_two_groups
from isocost.measures.table import MEASURES, OVERALL
from isocost.promises import Promise
from isocost.repairs.counsel import heeding
from isocost.repairs.deferrability import (
    EVERYTHING,
    PROMISED,
    BranchAndBound,
    Deferral,
    DeferralRequest,
    check_request,
    directed,
    explain,
    is_curved,
)
from isocost.repairs.deferral import (
    FEWEST_DECIDED,
    MOST_OUTPUTS,
    DeferralProgram,
    Rate,
    Solved,
    parts_of,
    rows_of,
)
from isocost.repairs.levels import ScoreLevels, score_levels
from isocost.repairs.linear_program import just_below, unsolved
from isocost.repairs.reconcilability import HALF, Levels, direction_of, most_with_mean
from isocost.repairs.review import reviewed
from isocost.repairs.withhold import summary_of
from isocost.rows import Row
from isocost.rules import DEFAULT_SALT, Rule
from isocost.tallies import Reading, Tally, TallyLike, as_tally
from isocost.typing import Floats
from isocost.verdict.sentences import round_up

FINE = np.arange(1, 200) / 200.0
"""Outputs for rates that are about the scores themselves."""

FEWEST_PROGRAMS, MOST_PROGRAMS, VARIABLES = 30, 400, 60_000
"""How many programs a search may solve: as many as have so many variables in all."""


@heeding
def hand_over(
    tally: TallyLike,
    share: float | Literal["least"] | None = 0.25,
    equal: str | Sequence[str] = EVERYTHING,
    tolerance: float | Mapping[str, float] = 0.0,
    *,
    threshold: float = 0.5,
    cost: CostLike | None = None,
    keep: Literal["information", "brier"] = "information",
    shares: Literal["equal", "least"] = "equal",
    levels: Levels = "auto",
    floor: Mapping[str, float] | None = None,
    no_worse: bool = False,
    infeasible: Literal["raise", "closest"] = "raise",
    salt: str = DEFAULT_SALT,
    **reading: Unpack[Reading],
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
        The share that is handed over; "least", or None, for the least that is enough.
    equal : "everything", or names
        "everything": one distribution of scores.  Less is asked, and fewer must be handed over, for
        example with ("fpr", "fnr") at the threshold, ("ppv", "npv"), or "cost".
    tolerance : float or {name: float}
        How far a rate may differ between groups.  For "everything": how far the share of the
        decided with a score of at least c, and of either label, may differ, for every c.
    threshold : float
        Outputs at or above it are positive; must be an edge of the tally.
    cost : Cost or str
        What an error costs, if "cost" is to be equal: "fpr", "fnr", or a weighted cost.
    keep : {"information", "brier"}
        What the scores of the decided should have most of: the highest E[q^2], or the lowest
        Brier score E[q (1 - q)].  Both are the same where base rates are given.  Here these follow
        from who is decided, and "information" prefers high ones, the more so the more are handed
        over: which label is called positive matters.  "brier" treats both labels alike.
    shares : {"equal", "least"}
        "equal": the same share of each group.  "least": as few people in all as possible,
        whichever group they are of; most often nearly all are of one group, and there is a warning.
        A ``share`` above the least then adds people of each group in proportion to those decided.
    levels : int or "auto"
        The most levels of a group, as for :func:`isocost.reconcile`.
    floor : {name: float}
        What "selection_rate" or "accuracy" must at least be among the decided, as for
        :func:`isocost.reconcile`.
    no_worse : bool
        Whether no rate of ``equal`` (with "everything": neither FPR nor FNR at the threshold) may
        be worse among the decided of a group than it is now in the group: equality upwards.
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

    With "everything" and equal shares the least share is a linear program, whose dual proves that
    no smaller one is enough; see :mod:`isocost.repairs.deferral`.  Common values of rates such as
    FPR, and shares that differ between groups, are searched for by branch and bound, which proves
    it too, up to 1e-6 (1e-4 for costs and other errors of the scores themselves).  A search that
    takes long is ended; a note of the rule, and ``bound`` and ``gap`` of :class:`Deferral`, say
    what is proven then.  For rates and costs an output below the threshold is at least 1/1024 below
    it, so that no rounding selects people, and the proof is about such outputs.  Nearer ones
    lowered the least share by up to 0.0022 where that was tried.

    Rates of nobody would be equal, too.  So for rates and costs the share selected and that not
    selected, and the share of positives and that of negatives, stay at least half of what they were
    in each group, where calibration allows.

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
    >>> rule = hand_over(compas(), share=0.25)
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
    request = check_request(
        share, equal, tolerance, threshold, cost, keep, shares, levels, floor, no_worse
    )
    check_word("infeasible", infeasible, ("raise", "closest"))
    require_two_groups(tally)
    require_both_labels(tally)
    search = DeferralSearch(tally, request)
    solved, verdict = search.solution()
    notes = []
    if solved is None or not verdict.feasible:
        if solved is None or infeasible == "raise":
            raise InfeasibleError(explain(request, verdict), verdict)
        notes.append(
            f"Handing over {request.share:.4g} is not enough for {request.goal}. This is the "
            f"closest: {round_up(verdict.smallest_share)} is handed over."
        )
        warnings.warn(notes[0], InfeasibleWarning, stacklevel=3)
    rows = tuple(rows_of(tally.groups, search.program, solved))
    rule = Rule(
        groups=tally.groups,
        rows=rows,
        method="hand_over",
        cost=request.cost,
        settings={**request.to_dict(), "infeasible": infeasible},
        made_from=summary_of(tally),
        salt=salt,
    )
    after = rule.expected(tally)
    gone = reviewed(rule, tally, request.threshold)
    loud = list(gone.warnings())
    for text in loud:
        warnings.warn(text, DeferralWarning, stacklevel=3)
    notes += [*loud, *gone.remarks()]
    if request.share is None:
        notes.append(verdict.certificate)
    return replace(
        rule,
        notes=tuple(notes),
        promise=_promise(rows, request, after),
    )


def _promise(rows: Sequence[Row], request: DeferralRequest, after: Tally) -> Promise:
    """What is promised about the decided, and how many are not."""
    reached = dict(request.tolerances)
    if request.is_everything:
        kinds = after.kinds(request.threshold)
        values = {name: MEASURES[name].of(kinds) for name in PROMISED}
        # A tolerance is about the distribution, which a rate may exceed.
        tolerance, exact = request.tolerances[EVERYTHING], 1e-9
        reached = {
            name: tolerance if (far := float(np.ptp(x))) <= tolerance + exact else far
            for name, x in values.items()
            if not np.isnan(x).any()
        }
    return Promise.of(
        rows,
        reached,
        threshold=request.threshold,
        floor=request.floor,
        handed_over=after.shares_handed_over,
    )


class DeferralSearch:
    """The program of a request, and its solutions."""

    def __init__(self, tally: Tally, request: DeferralRequest) -> None:
        self.tally, self.request = tally, request
        self.levels = [
            score_levels(tally, group, request.threshold, request.levels)
            for group in range(len(tally.groups))
        ]
        self.program = self._program(request)

    # The program

    def _program(self, request: DeferralRequest, slack: float = 0.0) -> DeferralProgram:
        everything, tolerance = request.is_everything, request.tolerances.get(EVERYTHING)
        outputs = self._shared if everything else self._own
        rates = {} if everything else {n: self._rate(n, outputs) for n in request.equal}
        return DeferralProgram(
            self.levels,
            outputs,
            common=everything and not tolerance,
            spread=tolerance or None,
            rates=rates,
            limits=self._limits(outputs, slack),
            keep=request.keep,
        )

    def _limits(self, outputs: Sequence[Floats], slack: float) -> list[dict[int, Floats]]:
        limits = [*self._floors(outputs, slack), *self._not_worse(outputs, slack)]
        return limits if self.request.is_everything else [*limits, *self._selecting(outputs)]

    @cached_property
    def _shared(self) -> list[Floats]:
        """The outputs that all groups share: the levels of all, and the threshold."""
        values = np.unique(np.concatenate([one.p for one in self.levels]))
        if len(values) >= MOST_OUTPUTS:
            places = np.linspace(0, len(values) - 1, MOST_OUTPUTS - 1)
            values = values[np.unique(places.round().astype(np.intp))]
        return [np.union1d(values, self.request.threshold)] * len(self.levels)

    @cached_property
    def _own(self) -> list[Floats]:
        """The outputs of each group: its levels, both sides of the threshold, and a few more.

        An output between two levels could be replaced by these, and rates of decisions at the
        threshold would not change, so that no others are needed, unless they are between the two
        at the threshold.  Errors of the scores themselves,
        such as a cost, would become less.  For these there are many outputs, and bounds allow for
        those between them.
        """
        threshold = self.request.threshold
        more = FINE if any(map(is_curved, self.request.equal)) else np.empty(0)
        near = np.concatenate([more, [threshold, just_below(threshold)]])
        return [np.unique(np.concatenate([one.p, near, [one.base_rate]])) for one in self.levels]

    def _rate(self, name: str, outputs: Sequence[Floats]) -> Rate:
        tolerance = self.request.tolerances.get(name, 0.0)
        pairs = [self._parts(name, t, q) for t, q in enumerate(outputs)]
        return Rate(
            [added for added, _ in pairs],
            [total for _, total in pairs],
            tolerance,
            [self._between(name, t, q) for t, q in enumerate(outputs)],
        )

    def _between(self, name: str, group: int, q: Floats) -> Floats:
        """What outputs in the middle between neighbours add more than these do on average."""
        if not is_curved(name):
            return np.zeros(len(q))
        added = self._parts(name, group, q)[0]
        middle = self._parts(name, group, (q[1:] + q[:-1]) / 2.0)[0]
        more = np.maximum(middle - (added[1:] + added[:-1]) / 2.0, 0.0)
        most: Floats = np.maximum(np.append(more, 0.0), np.insert(more, 0, 0.0))
        return most

    def _parts(self, name: str, group: int, q: Floats) -> tuple[Floats, Floats]:
        """What outputs add to a rate, or to the cost, of a group, and to how many people."""
        if name != "cost" or self.request.cost is None:
            return parts_of(MEASURES[name], q, self.request.threshold)
        fp, fn = self.request.cost.amounts(self.tally.groups[group])
        wrong = q * (1.0 - q)
        if self.request.cost.by_base_rate:
            return (fp + fn) * wrong, np.ones(len(q))
        if fp and fn:
            rule = "must count one kind of error, or weight errors by how common they are"
            generalized = setting("equal", ("generalized_fpr", "generalized_fnr"))
            step = (
                f"use {setting('cost', f'weighted:{fp:g},{fn:g}')}; or, which makes this cost and "
                f"every other equal, {generalized} or {setting('equal', EVERYTHING)}"
            )
            raise UsageError(Problem("cost", rule, str(self.request.cost), step))
        return (fp * wrong, 1.0 - q) if fp else (fn * wrong, q)

    def _floors(self, outputs: Sequence[Floats], slack: float) -> Iterator[dict[int, Floats]]:
        for name, least in self.request.floor.items():
            plain = name.removeprefix(OVERALL)
            rows = {}
            for t, q in enumerate(outputs):
                added, total = self._parts(plain, t, q)
                rows[t] = (least - slack) * total - added
            if name.startswith(OVERALL):
                yield {t: row * self.levels[t].share for t, row in rows.items()}
            else:
                yield from ({t: row} for t, row in rows.items())

    def _not_worse(self, outputs: Sequence[Floats], slack: float) -> Iterator[dict[int, Floats]]:
        for name in directed(self.request) if self.request.no_worse else ():
            sign = 1.0 if direction_of(name) == "lower" else -1.0
            for t, (one, q) in enumerate(zip(self.levels, outputs, strict=True)):
                now = self._now(name, t, one)
                if not math.isnan(now):
                    added, total = self._parts(name, t, q)
                    yield {t: sign * added - (sign * now + slack) * total}

    def _now(self, name: str, group: int, levels: ScoreLevels) -> float:
        """A rate of a group as it is, if its levels had the shares of positives as scores."""
        if name != "cost":
            kinds = self.tally.kinds(self.request.threshold)
            return float(MEASURES[name].of(kinds)[group])
        added, total = self._parts(name, group, levels.p)
        return float(levels.w @ added) / float(levels.w @ total)

    def _selecting(self, outputs: Sequence[Floats]) -> Iterator[dict[int, Floats]]:
        """At least half as many selected, and not selected, as before or as calibration allows.

        And the share of each label stays at least half of what it was.  Rates of nobody would be
        equal too.
        """
        threshold = self.request.threshold
        for t, (one, q) in enumerate(zip(self.levels, outputs, strict=True)):
            before = float(one.w[one.above].sum())
            can = most_with_mean(one.p, one.w, threshold)
            cannot = most_with_mean(1.0 - one.p, one.w, 1.0 - just_below(threshold))
            selected = (q >= threshold).astype(float)
            yield {t: HALF * min(before, can) - selected}
            yield {t: HALF * min(1.0 - before, cannot) - (1.0 - selected)}
            yield {t: HALF * one.base_rate - q}
            yield {t: HALF * (1.0 - one.base_rate) - (1.0 - q)}

    # Solutions

    def solution(self) -> tuple[Solved | None, Deferral]:
        """The solution with most information at the share asked for, or at the least one."""
        request, program = self.request, self.program
        # A share that is enough will do; that it is not takes the least one.
        enough = request.share if request.share is not None and program.searched else None
        least = self._least(program, enough, self.budget)
        if least.best is None:
            return None, self._verdict(False, least)
        smallest = least.best.value
        feasible = request.share is None or smallest <= request.share + 1e-9
        decided = least.best.decided
        if request.share is not None and feasible:
            decided = decided * (1.0 - request.share) / (1.0 - smallest)
        return self._informed(decided, least.best.common), self._verdict(feasible, least)

    @property
    def budget(self) -> int:
        """How many programs may be solved, so that large ones take no longer than seconds."""
        program = self.program
        size = sum(map(len, program.levels)) + sum(map(len, program.outputs))
        return min(max(VARIABLES // size, FEWEST_PROGRAMS), MOST_PROGRAMS)

    def _least(
        self, program: DeferralProgram, enough: float | None, budget: int, slack: float = 0.0
    ) -> BranchAndBound:
        """The fewest people handed over."""
        ones = np.ones(len(self.levels))
        search = BranchAndBound(program, self.request.shares, ones, ones / FEWEST_DECIDED)
        search.run(self._usual(slack), budget, enough)
        return search

    def _informed(self, decided: Floats, common: Mapping[str, float]) -> Solved:
        """The most information with these shares decided; fewer by rounding if need be."""
        for scale in (0.0, 1e-12, 1e-11, 1e-10, 1e-9):
            u = np.maximum(1.0 / (decided * (1.0 - scale)), 1.0)
            search = BranchAndBound(self.program, "scores", u, u)
            search.run([common], self.budget // 3)
            if search.best is not None:
                return search.best
        raise unsolved("no scores for those who can be decided")

    def _usual(self, slack: float) -> Iterator[dict[str, float]]:
        """Common values to begin with: those of one distribution; of all people; of a group."""
        searched = self.program.searched
        if not searched:
            return
        now = {n: [self._now(n, t, x) for t, x in enumerate(self.levels)] for n in searched}
        if not any(all(map(math.isnan, values)) for values in now.values()):
            yield {name: float(np.nanmean(values)) for name, values in now.items()}
            best = {n: np.nanmax if direction_of(n) == "higher" else np.nanmin for n in searched}
            ends = {name: float(best[name](values)) for name, values in now.items()}
            yield ends
            yield {name: max(end - searched[name].tolerance, 0.0) for name, end in ends.items()}
        # Within the limits: the fewest are often those of whom nobody is selected.
        limits = self._limits(self._shared, slack)
        program = DeferralProgram(self.levels, self._shared, common=True, limits=limits)
        ones = np.ones(len(self.levels))
        solved = program.solve(program.people(ones), {}, ones, ones / FEWEST_DECIDED, tied=True)
        if solved is not None:
            rates = {name: self._rate(name, self._shared) for name in searched}
            values = {name: rate.values(solved.weights)[0] for name, rate in rates.items()}
            yield {name: 0.5 if math.isnan(x) else float(x) for name, x in values.items()}

    def _verdict(self, feasible: bool, least: BranchAndBound) -> Deferral:
        verdict = Deferral.met(self.request)
        if least.best is None:
            verdict = replace(verdict, feasible=False, bound=least.bound, slack=math.nan)
            if least.stopped:
                return verdict
            tolerance = self._least_tolerance()
            return replace(verdict, slack=self._least_slack(), smallest_tolerance=tolerance)
        if least.reached:
            return verdict
        shares = map(float, 1.0 - least.best.decided)
        return replace(
            verdict,
            feasible=feasible,
            smallest_share=least.best.value,
            bound=least.bound,
            smallest_shares=dict(zip(self.tally.groups, shares, strict=True)),
        )

    def _least_slack(self) -> float:
        """How far floors must fall, and rates get worse, for some share to be enough."""
        if not self.request.floor and not self.request.no_worse:
            return math.nan
        return _least_of(self._is_possible)

    def _least_tolerance(self) -> float:
        """The least tolerance with which some share is enough."""

        def possible(tolerance: float) -> bool:
            wider = {name: max(x, tolerance) for name, x in self.request.tolerances.items()}
            other = DeferralSearch(self.tally, replace(self.request, tolerances=wider))
            return other._is_possible(0.0)

        return _least_of(possible)

    def _is_possible(self, slack: float) -> bool:
        program = self._program(self.request, slack) if slack else self.program
        return self._least(program, 1.0, FEWEST_PROGRAMS, slack).best is not None


def _least_of(possible: Callable[[float], bool]) -> float:
    """The least number up to 1 with which it is possible; NaN if there is none."""
    low, high = 0.0, 1.0
    if not possible(high):
        return math.nan
    while high - low > 1e-3:
        middle = (low + high) / 2.0
        low, high = (low, middle) if possible(middle) else (middle, high)
    return high
