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
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np

from isocost.checks import (
    as_number,
    check_flag,
    check_salt,
    check_threshold,
    check_word,
    finite_or_none,
    short,
)
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import (
    DeferralWarning,
    InfeasibleError,
    InfeasibleWarning,
    Problem,
    UsageError,
)
from isocost.groups import Group, to_json
from isocost.measures.rates import require_both_labels, require_two_groups
from isocost.measures.table import MEASURES, OVERALL
from isocost.promises import Promise
from isocost.repairs.counsel import heeding
from isocost.repairs.deferral import (
    FEWEST_DECIDED,
    MOST_OUTPUTS,
    DeferralProgram,
    Rate,
    Solved,
    best_targets,
    parts_of,
    rows_of,
)
from isocost.repairs.levels import ScoreLevels, score_levels
from isocost.repairs.linear_program import just_below, unsolved
from isocost.repairs.reconcilability import (
    HALF,
    Levels,
    check_floor,
    check_levels,
    check_tolerances,
    direction_of,
    most_with_mean,
)
from isocost.repairs.review import deferral_notes, deferral_warnings
from isocost.repairs.withhold import summary_of
from isocost.rows import Row
from isocost.rules import (
    DEFAULT_SALT,
    Rule,
)
from isocost.tallies import Reading, Tally, TallyLike, as_tally
from isocost.typing import Floats
from isocost.verdict.sentences import round_up

EVERYTHING = "everything"

RATES: tuple[str, ...] = (
    *(m.name for m in MEASURES.values() if m.is_plain and m.name != "mean_score"),
    "cost",
)
"""What can be made equal among the decided, besides everything."""

PROMISED = ("fpr", "fnr", "ppv", "npv", "selection_rate")
"""What is promised if everything is equal: what can be watched."""

WORSE = ("fpr", "fnr")
"""What must not get worse if everything is to be equal, and ``no_worse``."""

SHARES: tuple[str, ...] = ("equal", "least")

LEAST = "least"

KEEPS: tuple[str, ...] = ("information", "brier")

GRID = 7
"""How many common values of a rate are tried where none of the usual ones can be had."""

IMPOSSIBLE = 1e6
"""The score of common values of rates that cannot be had; finite, as a search needs it."""


@dataclass(frozen=True)
class DeferralRequest:
    """The arguments of :func:`hand_over`, in one form; ``share`` is None for the least."""

    share: float | None
    tolerances: dict[str, float]
    threshold: float
    cost: Cost | None
    keep: str
    shares: str
    levels: Levels
    floor: dict[str, float]
    no_worse: bool

    @property
    def equal(self) -> tuple[str, ...]:
        """What is to be equal."""
        return tuple(self.tolerances)

    @property
    def is_everything(self) -> bool:
        """Whether the decided are to have one distribution of scores."""
        return self.equal == (EVERYTHING,)

    @property
    def goal(self) -> str:
        """What was asked for, such as "equal fpr and fnr at 0.5 among the decided"."""
        what = f"equal {' and '.join(self.equal)} at {self.threshold:g}"
        said = [
            f"{name.removeprefix(OVERALL)} of at least {least:g}"
            for name, least in self.floor.items()
        ]
        said += ["no rate worse than now"] * self.no_worse
        what = "one distribution of scores" if self.is_everything else what
        return f"{what} among the decided" + (f" with {' and '.join(said)}" if said else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the settings of a rule."""
        numbers = set(self.tolerances.values())
        return {
            "share": self.share,
            "equal": EVERYTHING if self.is_everything else list(self.equal),
            "threshold": self.threshold,
            "tolerance": numbers.pop() if len(numbers) == 1 else dict(self.tolerances),
            "keep": self.keep,
            "shares": self.shares,
            "levels": self.levels,
            "floor": dict(self.floor) or None,
            "no_worse": self.no_worse,
        }


@dataclass(frozen=True)
class Deferral:
    """Whether a share is enough, and which one would be.

    Attributes
    ----------
    feasible : bool
        Whether the share asked for is enough.
    share : float or None
        The share asked for; None for the least.
    smallest_share : float
        The least share of people that must be handed over; NaN if none below 99 % is enough.
    bound : float
        What no share is below, by the dual of the linear program; it agrees with
        ``smallest_share`` to 1e-9 where rates that are ratios are not searched for.
    smallest_shares : {group: float}
        The share of each group then.
    equal, threshold, floor, no_worse
        What was asked for.
    slack : float
        If no share is enough, the least amount by which floors must be lowered, and rates may get
        worse; 0 otherwise, NaN if no amount is enough.
    """

    feasible: bool
    share: float | None
    smallest_share: float
    bound: float
    smallest_shares: Mapping[Group, float]
    equal: tuple[str, ...]
    threshold: float
    floor: Mapping[str, float]
    no_worse: bool
    slack: float = 0.0

    @classmethod
    def met(cls, request: DeferralRequest, groups: Sequence[Group]) -> Deferral:
        """That a share is enough; the least one is not known."""
        unknown = dict.fromkeys(groups, math.nan)
        asked = (request.equal, request.threshold, request.floor, request.no_worse)
        return cls(True, request.share, math.nan, math.nan, unknown, *asked)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        numbers = ("smallest_share", "bound", "slack")
        return {
            "feasible": self.feasible,
            "share": self.share,
            **{name: finite_or_none(getattr(self, name)) for name in numbers},
            "smallest_shares": [
                [to_json(g), finite_or_none(x)] for g, x in self.smallest_shares.items()
            ],
            "equal": list(self.equal),
            "threshold": self.threshold,
            "floor": dict(self.floor),
            "no_worse": self.no_worse,
        }

    def __str__(self) -> str:
        if math.isnan(self.smallest_share) and self.feasible:
            return "Feasible."
        if math.isnan(self.smallest_share):
            return "Not feasible, whatever share is handed over."
        least = f"{self.smallest_share:.2%} must be handed over."
        return f"Feasible: {least}" if self.feasible else f"Not feasible: at least {least}"


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
        Brier score E[q (1 - q)].  Both are the same where base rates are given; here they follow
        from who is decided, and "information" prefers high ones, the more so the more are handed
        over.
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

    The least share is a linear program, whose dual proves that no smaller one is enough; see
    :mod:`isocost.repairs.deferral`.  With ``shares="least"`` it is found by branch and bound.
    Rates that are means over some of the decided, such as FPR, need a search for their common
    value, which may miss the best; with "everything" there is nothing to search.  For these the
    share selected, and that not selected, stays at least half of what it was in each group.

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
    found, verdict = search.solution()
    notes = []
    if found is None or not verdict.feasible:
        if found is None or infeasible == "raise":
            raise InfeasibleError(_explain(request, verdict), verdict)
        notes.append(
            f"Handing over {request.share:.4g} is not enough for {request.goal}. This is the "
            f"closest: {round_up(verdict.smallest_share)} is handed over."
        )
        warnings.warn(notes[0], InfeasibleWarning, stacklevel=3)
    rows = tuple(rows_of(tally.groups, search.program, found.solved))
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
    gone = rule.deferred(tally)
    loud = list(deferral_warnings(tally, gone, request.threshold))
    for text in loud:
        warnings.warn(text, DeferralWarning, stacklevel=3)
    return replace(
        rule,
        notes=(*notes, *loud, *deferral_notes(tally, after, gone, request.threshold)),
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


def check_request(
    share: Any,
    equal: Any,
    tolerance: Any,
    threshold: Any,
    cost: CostLike | None,
    keep: str,
    shares: str,
    levels: Any,
    floor: Any,
    no_worse: Any,
) -> DeferralRequest:
    """Bring the arguments into one form; raise if one of them is invalid."""
    listed = (equal,) if isinstance(equal, str) else equal if isinstance(equal, Sequence) else ()
    names = tuple(listed) if all(isinstance(name, str) for name in listed) else ()
    if names != (EVERYTHING,) and (
        not names or len(set(names)) != len(names) or not set(names) <= set(RATES)
    ):
        rule = f'must be "{EVERYTHING}", or name rates, each once, from {", ".join(RATES)}'
        raise UsageError(Problem("equal", rule, short(equal), 'use equal="everything"'))
    check_word("keep", keep, KEEPS)
    check_word("shares", shares, SHARES)
    levels = check_levels(levels)
    if levels == "unseen":
        raise UsageError(Problem("levels", 'must be a number or "auto"', "'unseen'", "use 'auto'"))
    request = DeferralRequest(
        share=_check_share(share),
        tolerances=check_tolerances(tolerance, names),
        threshold=check_threshold(threshold),
        cost=_check_cost(cost, names),
        keep=keep,
        shares=shares,
        levels=levels,
        floor=check_floor(floor),
        no_worse=check_flag("no_worse", no_worse),
    )
    if request.no_worse and not _directed(request):
        rule = "can be True only if equal= has a rate that can get worse"
        step = 'use floor={"selection_rate": ...}, or another rate in equal='
        raise UsageError(Problem("no_worse", rule, f"equal={names!r}", step))
    return request


def _check_share(share: Any) -> float | None:
    if share is None or (isinstance(share, str) and share == LEAST):
        return None
    number = as_number(share)
    if not 0.0 <= number <= 1.0 - FEWEST_DECIDED:
        rule = f'must be a share from 0 to {1.0 - FEWEST_DECIDED:g}, or "{LEAST}"'
        step = "use 0.25 to hand over a quarter of each group"
        raise UsageError(Problem("share", rule, short(share), step))
    return number


def _check_cost(cost: CostLike | None, names: tuple[str, ...]) -> Cost | None:
    if (cost is not None) != ("cost" in names):
        rule = 'must be passed if and only if equal= has "cost"'
        step = 'use for example equal="cost", cost="weighted:1,3"'
        raise UsageError(Problem("cost", rule, f"cost={cost!r}, equal={names!r}", step))
    return None if cost is None else as_cost(cost)


def _directed(request: DeferralRequest) -> tuple[str, ...]:
    """The rates that must not get worse."""
    names = WORSE if request.is_everything else request.equal
    return tuple(name for name in names if direction_of(name))


class Found(NamedTuple):
    """A solution, and the common values of rates that it was found with."""

    solved: Solved
    targets: Mapping[str, float]


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
        limits = [*self._floors(outputs, slack), *self._not_worse(outputs, slack)]
        if not everything:
            limits += self._selecting(outputs)
        return DeferralProgram(
            self.levels,
            outputs,
            common=everything and not tolerance,
            spread=tolerance or None,
            rates=rates,
            limits=limits,
            keep=request.keep,
        )

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
        """The outputs of each group: its levels, both sides of the threshold, and a few more."""
        threshold = self.request.threshold
        near = [threshold, just_below(threshold)]
        return [np.unique(np.concatenate([one.p, near, [one.base_rate]])) for one in self.levels]

    def _rate(self, name: str, outputs: Sequence[Floats]) -> Rate:
        tolerance = self.request.tolerances.get(name, 0.0)
        pairs = [self._parts(name, t, q) for t, q in enumerate(outputs)]
        return Rate([a for a, _ in pairs], [b for _, b in pairs], tolerance)

    def _parts(self, name: str, group: int, q: Floats) -> tuple[Floats, Floats]:
        """What outputs add to a rate, or to the cost, of a group, and to how many people."""
        if name != "cost" or self.request.cost is None:
            return parts_of(MEASURES[name], q, self.request.threshold)
        fp, fn = self.request.cost.amounts(self.tally.groups[group])
        wrong = q * (1.0 - q)
        if self.request.cost.by_base_rate:
            return (fp + fn) * wrong, np.ones(len(q))
        if fp and fn:
            rule = "must count one kind of error, or be weighted by the base rates"
            step = 'use cost="fpr", "fnr" or "weighted:1,3"'
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
        for name in _directed(self.request) if self.request.no_worse else ():
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

        Rates of nobody would be equal too.
        """
        threshold = self.request.threshold
        for t, (one, q) in enumerate(zip(self.levels, outputs, strict=True)):
            before = float(one.w[one.above].sum())
            can = most_with_mean(one.p, one.w, threshold)
            cannot = most_with_mean(1.0 - one.p, one.w, 1.0 - just_below(threshold))
            selected = (q >= threshold).astype(float)
            yield {t: HALF * min(before, can) - selected}
            yield {t: HALF * min(1.0 - before, cannot) - (1.0 - selected)}

    # Solutions

    def solution(self) -> tuple[Found | None, Deferral]:
        """The solution with most information at the share asked for, or at the least one."""
        request = self.request
        if request.shares == "equal" and request.share is not None:
            found = self._at_share(request.share)
            if found is not None:
                return found, self._verdict(True, None)
        least = self._least()
        if least is None:
            return None, self._verdict(False, None)
        smallest = self._handed(least.solved.decided)
        feasible = request.share is None or smallest <= request.share + 1e-9
        decided = least.solved.decided
        if request.share is not None and feasible:
            decided = decided * (1.0 - request.share) / (1.0 - smallest)
        solved = self._informed(decided, least.targets)
        return Found(solved, least.targets), self._verdict(feasible, least)

    def _handed(self, decided: Floats) -> float:
        """The share of everybody that is handed over."""
        return 1.0 - float(decided @ [one.share for one in self.levels])

    def _informed(self, decided: Floats, targets: Mapping[str, float]) -> Solved:
        """The most information with these shares decided; fewer by rounding if need be."""
        for scale in (0.0, 1e-12, 1e-11, 1e-10, 1e-9):
            u = np.maximum(1.0 / (decided * (1.0 - scale)), 1.0)
            solved = self.program.solve("scores", targets, u, u)
            if solved is not None:
                return solved
        raise unsolved("no scores for those who can be decided")

    def _at_share(self, share: float) -> Found | None:
        """The solution with this share of each group handed over; None if it is too small."""
        u = np.full(len(self.levels), 1.0 / (1.0 - share))
        most = np.full(len(u), 1.0 / FEWEST_DECIDED)

        def score(targets: Mapping[str, float]) -> float:
            found = self.program.solve("both", targets, u, most, tied=True)
            return IMPOSSIBLE if found is None else found.value

        targets = self._searched(score)
        solved = self.program.solve("scores", targets, u, u)
        return None if solved is None else Found(solved, targets)

    def _least(self) -> Found | None:
        """The solution with the fewest people handed over."""

        def score(targets: Mapping[str, float]) -> float:
            found = self.program.fewest(targets)
            return IMPOSSIBLE if found is None else found.value

        targets = self._searched(score)
        found = (
            self.program.fewest_in_all(targets)
            if self.request.shares == LEAST
            else self.program.fewest(targets)
        )
        return None if found is None else Found(found, targets)

    def _searched(self, score: Callable[[Mapping[str, float]], float]) -> dict[str, float]:
        starts = self._starts
        if len(starts) > 1 and min(map(score, starts)) >= IMPOSSIBLE:
            starts = list(self._grid())
        return best_targets(score, starts)

    @cached_property
    def _starts(self) -> list[dict[str, float]]:
        """Common values to begin with; nothing to search for is one of them."""
        ratios = self.program.ratios
        return list(self._usual(ratios)) if ratios else [{}]

    def _grid(self) -> Iterator[dict[str, float]]:
        """Common values all over the place, where none of the usual can be had."""
        names = list(self.program.ratios)
        values = np.linspace(0.02, 0.98, GRID if len(names) < 3 else 4).tolist()
        return (dict(zip(names, x, strict=True)) for x in product(values, repeat=len(names)))

    def _usual(self, ratios: Mapping[str, Rate]) -> Iterator[dict[str, float]]:
        """Common values of one distribution; those of all people; the best of a group."""
        one = DeferralProgram(self.levels, self._shared, common=True).fewest({})
        kinds = self.tally.kinds(self.request.threshold)
        if one is not None:
            rates = {name: self._rate(name, self._shared) for name in ratios}
            values = {name: rate.values(one.weights)[0] for name, rate in rates.items()}
            yield {name: 0.5 if math.isnan(x) else float(x) for name, x in values.items()}
        now = {n: [self._now(n, t, x) for t, x in enumerate(self.levels)] for n in ratios}
        now = {name: values for name, values in now.items() if not all(map(math.isnan, values))}
        if now.keys() == ratios.keys():
            yield {name: float(np.nanmean(values)) for name, values in now.items()}
            best = {n: np.nanmax if direction_of(n) == "higher" else np.nanmin for n in ratios}
            ends = {name: float(best[name](values)) for name, values in now.items()}
            yield ends
            yield {name: max(end - ratios[name].tolerance, 0.0) for name, end in ends.items()}
        plain = {n: MEASURES[n].of(kinds.pooled())[0] if n in MEASURES else 0.5 for n in ratios}
        yield {name: 0.5 if math.isnan(x) else float(x) for name, x in plain.items()}

    def _verdict(self, feasible: bool, least: Found | None) -> Deferral:
        verdict = Deferral.met(self.request, self.tally.groups)
        if least is None:
            slack = 0.0 if feasible else self._least_slack()
            return replace(verdict, feasible=feasible, slack=slack)
        bound = least.solved.bound
        if self.request.shares == "equal":
            # The value of the program is u, the same for all groups.
            bound = 1.0 - 1.0 / bound
        shares = map(float, 1.0 - least.solved.decided)
        return replace(
            verdict,
            feasible=feasible,
            smallest_share=self._handed(least.solved.decided),
            bound=bound,
            smallest_shares=dict(zip(self.tally.groups, shares, strict=True)),
        )

    def _least_slack(self) -> float:
        """How far floors must fall, and rates get worse, for some share to be enough."""
        if not self.request.floor and not self.request.no_worse:
            return math.nan

        def possible(slack: float) -> bool:
            program = self._program(self.request, slack)
            tried = chain(self._starts, self._grid() if self.program.ratios else ())
            return any(program.fewest(targets) is not None for targets in tried)

        low, high = 0.0, 1.0
        if not possible(high):
            return math.nan
        while high - low > 1e-4:
            middle = (low + high) / 2.0
            low, high = (low, middle) if possible(middle) else (middle, high)
        return high


def _explain(request: DeferralRequest, verdict: Deferral) -> Problem:
    """The error for a share that is not enough."""
    name = "share" if not math.isnan(verdict.smallest_share) else "equal"
    ask_less = "ask for less with equal= or tolerance="
    asked = "the least" if request.share is None else f"{request.share:g}"
    if name == "share":
        rule = f"must be at least {round_up(verdict.smallest_share)} for {request.goal}"
        steps = [
            f'hand over more, or use share="{LEAST}"',
            ask_less,
        ]
    else:
        rule = f"must be possible with some share handed over: {request.goal}"
        steps = [ask_less]
        if request.floor or request.no_worse:
            far = "" if math.isnan(verdict.slack) else f" by {round_up(verdict.slack)}"
            kinds = ["lower the floor"] * bool(request.floor)
            kinds += ["let rates get worse"] * request.no_worse
            steps.insert(0, " and ".join(kinds) + far)
    return Problem(name, rule, f"{asked}; {str(verdict).lower()}".rstrip("."), "; or ".join(steps))
