"""What can be asked of handing over, and what can be had: request, search and proof, verdict."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from isocost.checks import as_number, check_threshold, check_word, finite_or_none, short
from isocost.costs import Cost, CostLike
from isocost.errors import Problem, UsageError, setting
from isocost.groups import Group, to_json
from isocost.measures.table import MEASURES, OVERALL
from isocost.repairs.deferral import EXACT, FEWEST_DECIDED, NOISE, DeferralProgram, Ranges, Solved
from isocost.repairs.reconcilability import (
    Levels,
    check_equal_cost,
    check_floor,
    check_levels,
    check_no_worse,
    check_tolerances,
    direction_of,
)
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

PROVEN = 2e-4
"""A share that is proven to be the least up to this is called the least."""

KEEPS: tuple[str, ...] = ("information", "brier")

GAP, CURVED_GAP, SCORES_GAP = 1e-6, 1e-4, 1e-5
"""How close a search comes to the least share; with such rates; and to the best scores."""

MARGIN = 0.1
"""A box is cut no nearer to its ends than this part of it."""


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
        The least share of people that was found to be enough; NaN if none below 99 % was.
    bound : float
        What no share that is enough is below, by the duals of linear programs.
    gap : float
        ``smallest_share - bound``: up to 1e-9 for "everything" with equal shares, up to 1e-4 for
        costs and other errors of the scores themselves, and up to 1e-6 otherwise; more if the
        search would have taken long and was ended.  NaN if no share was found; then none is
        enough if ``bound`` is infinite, and it is not known otherwise.
    smallest_shares : {group: float}
        The share of each group then; empty if that is not known.
    equal, threshold, floor, no_worse
        What was asked for.
    slack : float
        If no share is enough, the least amount by which floors must be lowered, and rates may get
        worse; 0 otherwise, NaN if no amount is enough.
    smallest_tolerance : float
        If no share is enough, the least tolerance with which one is; 0 otherwise, NaN if none is.
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
    smallest_tolerance: float = 0.0

    @classmethod
    def met(cls, request: DeferralRequest) -> Deferral:
        """That a share is enough; the least one is not known."""
        asked = (request.equal, request.threshold, request.floor, request.no_worse)
        return cls(True, request.share, math.nan, math.nan, {}, *asked)

    @property
    def gap(self) -> float:
        """How far the least share may be below the one that was found."""
        return max(self.smallest_share - self.bound, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        numbers = ("smallest_share", "bound", "gap", "slack", "smallest_tolerance")
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

    @property
    def certificate(self) -> str:
        """What is proven about the least share, in a sentence."""
        if self.smallest_share <= EXACT:
            return "Nobody has to be handed over for this."
        proven = f"Linear programs prove that no share below {self.bound:.2%} is enough"
        if self.equal != (EVERYTHING,):
            proven += " if new scores below the threshold are at least 1/1024 below it"
        proven += "."
        if self.gap <= PROVEN:
            return proven
        return f"{proven} The search ended early: a share between that and this may be enough."

    def __str__(self) -> str:
        if math.isnan(self.smallest_share) and self.feasible:
            return "Feasible."
        if math.isnan(self.smallest_share) and math.isfinite(self.bound):
            return f"Nothing found; certainly not feasible below {self.bound:.2%} handed over."
        if math.isnan(self.smallest_share):
            return "Not feasible, whatever share is handed over."
        least = f"{self.smallest_share:.2%} must be handed over."
        if not self.feasible and self.gap > PROVEN:
            return f"Not feasible, as far as was searched: {least} None below {self.bound:.2%} is."
        return f"Feasible: {least}" if self.feasible else f"Not feasible: at least {least}"


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
        raise UsageError(
            Problem("equal", rule, short(equal), f"use {setting('equal', EVERYTHING)}")
        )
    check_word("keep", keep, KEEPS)
    check_word("shares", shares, SHARES)
    levels = check_levels(levels)
    if levels == "unseen":
        step = f"use {setting('levels', 'auto')}"
        raise UsageError(Problem("levels", 'must be a number or "auto"', "'unseen'", step))
    return DeferralRequest(
        share=_check_share(share),
        tolerances=check_tolerances(tolerance, names),
        threshold=check_threshold(threshold),
        cost=check_equal_cost(cost, names),
        keep=keep,
        shares=shares,
        levels=levels,
        floor=check_floor(floor),
        no_worse=check_no_worse(no_worse, WORSE if names == (EVERYTHING,) else names),
    )


def _check_share(share: Any) -> float | None:
    if share is None or (isinstance(share, str) and share == LEAST):
        return None
    number = as_number(share)
    if not 0.0 <= number <= 1.0 - FEWEST_DECIDED:
        rule = f'must be a share from 0 to {1.0 - FEWEST_DECIDED:g}, or "{LEAST}"'
        step = "use 0.25 to hand over a quarter of each group"
        raise UsageError(Problem("share", rule, short(share), step))
    return number


def is_curved(name: str) -> bool:
    """Whether a rate is about the scores themselves, not only about decisions at the threshold."""
    return name == "cost" or bool(np.any(np.asarray(MEASURES[name].coefficients)[:, 1:]))


def directed(request: DeferralRequest) -> tuple[str, ...]:
    """The rates that must not get worse."""
    names = WORSE if request.is_everything else request.equal
    return tuple(name for name in names if direction_of(name))


def explain(request: DeferralRequest, verdict: Deferral) -> Problem:
    """The error for a share that is not enough."""
    name = "share" if not math.isnan(verdict.smallest_share) else "equal"
    equal = setting("equal")
    ask_less = f"ask for less with {equal} or {setting('tolerance')}"
    asked = "the least" if request.share is None else f"{request.share:g}"
    if name == "share":
        rule = f"must be at least {round_up(verdict.smallest_share)} for {request.goal}"
        steps = [f"hand over more, or use {setting('share', LEAST)}", ask_less]
    else:
        rule = f"must be possible with some share handed over: {request.goal}"
        steps = [ask_less]
        if verdict.smallest_tolerance > 0.0:
            least = setting("tolerance", float(round_up(verdict.smallest_tolerance)))
            steps = [f"use {least} or more, or ask for less with {equal}"]
        if request.floor or request.no_worse:
            far = "" if math.isnan(verdict.slack) else f" by {round_up(verdict.slack)}"
            kinds = ["lower the floor"] * bool(request.floor)
            kinds += ["let rates get worse"] * request.no_worse
            steps.insert(0, " and ".join(kinds) + far)
    return Problem(name, rule, f"{asked}; {str(verdict).lower()}".rstrip("."), "; or ".join(steps))


# The search for the least share, and its proof


class Box(NamedTuple):
    """Where u of each group and common values of rates may be, and what no value there is below."""

    bound: float
    low: Floats
    high: Floats
    ranges: Ranges


class BranchAndBound:
    """The best of a program whose common values, or shares of groups, make it not linear.

    On a box of common values and of u the program has a linear relaxation, whose dual is a bound.
    A box whose bound is no better than the best solution is done with; others are cut in two
    where the relaxation is furthest off.

    - Common values c of rates: see :meth:`isocost.repairs.deferral.DeferralProgram.solve`.
    - The people decided are sum_t share_t / u_t, which is convex in u.  Between low and high,
      1 / u lies below its chord (low + high - u) / (low high).

    Parameters
    ----------
    program : DeferralProgram
        What is asked.
    aim : {"equal", "least", "scores"}
        The fewest people handed over with the same share of each group; in all; or the best scores.
    low, high : arrays
        Bounds of u.

    Attributes
    ----------
    best : Solved or None
        The best solution; its value is a share for the first two aims.
    bound : float
        What no solution is below.
    programs : int
        How many programs were solved.
    stopped : bool
        Whether it ended because no more programs may be solved.
    reached : bool
        Whether it ended because what is enough was reached.
    """

    def __init__(self, program: DeferralProgram, aim: str, low: Floats, high: Floats) -> None:
        self.program, self.aim, self.low, self.high = program, aim, low, high
        self.reach = program.reach
        self.best: Solved | None = None
        self.bound = -math.inf if aim == "scores" else 0.0
        self.programs, self.stopped, self.reached = 0, False, False
        self.gap = CURVED_GAP if program.is_curved else GAP
        if aim == "scores":
            self.gap = max(self.gap, SCORES_GAP)

    @property
    def value(self) -> float:
        """What the best solution has."""
        return math.inf if self.best is None else self.best.value

    def run(
        self, starts: Iterable[Mapping[str, float]], budget: int, enough: float | None = None
    ) -> None:
        """Search, from solutions with these common values."""
        for common in starts:
            self._try(common, self.low, self.high)
            if self._is_done(enough):
                return
        self._narrow()
        order = count()
        root = Box(self.bound, self.low, self.high, self.program.widest)
        boxes = [(root.bound, next(order), root)]
        closed = math.inf
        while boxes and boxes[0][0] < self.value - self.gap:
            if self.programs >= budget:
                self.stopped = True
                break
            box = heapq.heappop(boxes)[2]
            solved = self._solve(box.ranges, box.low, box.high)
            if solved is None:
                continue
            bound = max(solved.bound, box.bound)
            halves = self._halves(box._replace(bound=bound), solved)
            if bound < self.value - self.gap:
                if not halves:
                    self._take(solved)
                else:
                    self._try(solved.common, box.low, box.high)
            if self._is_done(enough):
                return
            if not halves or bound >= self.value - self.gap:
                closed = min(closed, bound)
                continue
            for half in halves:
                heapq.heappush(boxes, (bound, next(order), half))
        self.bound = min([closed, self.value, *(box[0] for box in boxes)])

    def _is_done(self, enough: float | None) -> bool:
        self.reached = enough is not None and self.value <= enough + NOISE
        return self.reached or self.value <= self.bound + NOISE

    def _solve(self, ranges: Ranges, low: Floats, high: Floats) -> Solved | None:
        """The relaxation on a box; its bound and value are those of the aim."""
        self.programs += 1
        program, shares = self.program, self.program.shares
        if self.aim == "scores":
            return program.solve(program.uninformed, ranges, low, high, reach=self.reach)
        chords = 1.0 / (low * high) if self.aim == LEAST else np.ones(len(shares))
        costs = program.people(shares * chords)
        solved = program.solve(costs, ranges, low, high, self.aim != LEAST, self.reach)
        if solved is None:
            return None
        if self.aim == LEAST:
            bound = 1.0 - float(shares @ ((low + high) * chords)) + solved.bound
        else:
            bound = 1.0 - 1.0 / max(solved.bound, 1.0)
        return solved._replace(value=1.0 - float(shares @ solved.decided), bound=bound)

    def _take(self, solved: Solved | None) -> None:
        if solved is not None and solved.value < self.value:
            self.best = solved

    def _try(self, common: Mapping[str, float], low: Floats, high: Floats) -> None:
        self._take(self._solve({name: (x, x) for name, x in common.items()}, low, high))

    def _narrow(self) -> None:
        """Leave out u that are worse than the best so far, and what cannot be reached then."""
        if self.best is not None and self.aim != "scores":
            # If the others are all decided, at least this share of a group must be.
            all_ = self.program.shares if self.aim == LEAST else np.ones(len(self.high))
            fewest = np.maximum(1.0 - self.value / all_, FEWEST_DECIDED)
            self.high = np.minimum(self.high, 1.0 / fewest)
        self.reach = self.program.reach_within(self.high)

    def _halves(self, box: Box, solved: Solved) -> list[Box]:
        """The box cut in two where the relaxation is furthest off; nothing where it is not."""
        low, high, u = box.low, box.high, 1.0 / solved.decided
        chords = np.zeros(len(u))
        if self.aim == LEAST:
            chords = self.program.shares * ((low + high - u) / (low * high) - solved.decided)
        rates = self.program.searched
        off = {n: rate.off(solved.weights, solved.common[n]) for n, rate in rates.items()}
        t, name = int(np.argmax(chords)), max(off, key=lambda n: off[n], default="")
        if max(chords[t], off.get(name, 0.0)) <= NOISE:
            return []
        if chords[t] >= off.get(name, 0.0):
            left, right = high.copy(), low.copy()
            left[t] = right[t] = _inside(u[t], low[t], high[t])
            return [box._replace(high=left), box._replace(low=right)]
        ends = box.ranges[name]
        cut = _inside(solved.common[name], *ends)
        halves = ((ends[0], cut), (cut, ends[1]))
        return [box._replace(ranges={**box.ranges, name: half}) for half in halves]


def _inside(x: float, low: float, high: float) -> float:
    """A place to cut near x, not at the ends."""
    margin = MARGIN * (high - low)
    return min(max(x, low + margin), high - margin)
