"""What can be asked of handing over, and what can be had: the request, its checks, the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isocost.checks import (
    as_number,
    check_flag,
    check_threshold,
    check_word,
    finite_or_none,
    short,
)
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import Problem, UsageError, setting
from isocost.groups import Group, to_json
from isocost.measures.table import MEASURES, OVERALL
from isocost.repairs.deferral import EXACT, FEWEST_DECIDED
from isocost.repairs.reconcilability import (
    Levels,
    check_floor,
    check_levels,
    check_tolerances,
    direction_of,
)
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
        proven = f"Linear programs prove that no share below {self.bound:.2%} is enough."
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
    if request.no_worse and not directed(request):
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
        if verdict.smallest_tolerance > 0.0:
            least = setting("tolerance", float(round_up(verdict.smallest_tolerance)))
            steps = [f"use {least} or more, or ask for less with equal="]
        if request.floor or request.no_worse:
            far = "" if math.isnan(verdict.slack) else f" by {round_up(verdict.slack)}"
            kinds = ["lower the floor"] * bool(request.floor)
            kinds += ["let rates get worse"] * request.no_worse
            steps.insert(0, " and ".join(kinds) + far)
    return Problem(name, rule, f"{asked}; {str(verdict).lower()}".rstrip("."), "; or ".join(steps))
