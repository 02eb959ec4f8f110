"""Whether the promises of a rule still hold after deployment, period by period."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from isocost.checks import check_confidence, check_listed, check_threshold, check_tolerance, short
from isocost.costs import CostLike, as_cost
from isocost.errors import DataError, Problem, UsageError
from isocost.measure.claims import WATCHABLE, Claim, History, claims_of
from isocost.measure.evidence import Evidence, evidence
from isocost.measure.news import news
from isocost.measure.watched import Alarm, Period, Watch
from isocost.promises import Promise
from isocost.rules import Rule, check_rule, unknown_groups
from isocost.tallies import Tally

__all__ = ["watch"]

_TALLIES = (
    "must be tallies, at least one",
    "make one for each period: isocost.tally(data, score=..., label=..., group=...)",
)
"""What the periods must be, and the next step."""


def watch(
    rule: Rule,
    tallies: Iterable[Tally] | Mapping[str, Tally],
    *,
    cost: CostLike | None = None,
    tolerance: float | None = None,
    threshold: float | None = None,
    calibration_margin: float | None = 0.02,
    confidence: float = 0.95,
) -> Watch:
    """Say whether what a rule made equal is still equal, and scores still calibrated.

    Parameters
    ----------
    rule : Rule
        What was deployed.  Its promise says what must be equal, and how nearly.  A rule without a
        promise is measured, and held to nothing unless a tolerance is given.
    tallies : several tallies, or {name: tally}
        One a period, in order, of the scores as repaired and the labels that came true.
    cost : Cost or str, optional
        What an error costs; by default that of the rule.
    tolerance : float, optional
        How far groups may differ; by default that of the rule, or what the rule came to where
        ``infeasible="closest"`` let it stop short.  Data are never exactly as those the rule was
        made from: allow more than the rule aimed at.
    threshold : float, optional
        For rates at a threshold; by default that of the rule.
    calibration_margin : float or None
        How far scores may lie from the share of positives, for all scores of a group and in each
        fifth of [0, 1]; None to leave calibration out.  Rules that give it up are not asked for it.
    confidence : float
        The chance that there is no alarm in any period while everything holds.

    Returns
    -------
    Watch

    Notes
    -----
    Claims are tested by evidence that may be looked at after every period and for as long as one
    likes; see :mod:`isocost.measure.evidence`.  Rows must be independent: somebody who comes
    back in many periods counts too often.  Labels that are known only for some, such as loans that
    were granted, say nothing about the others.  With weights the evidence is approximate.

    No alarm means that nothing is shown, not that all is well: the interval says how much is known.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = ic.withhold(compas(), "fpr", tolerance=0.06)
    >>> repaired = rule.expected(compas())
    >>> found = ic.watch(rule, {"May": repaired, "June": repaired}, tolerance=0.08)
    >>> found.alarm, round(found.periods[1].running, 4)
    (False, 0.06)
    >>> print(ic.watch(rule, [compas()] * 2).alarms[0])
    The costs of African-American and Caucasian differ since period 1: by 0.0875 (0.0678 or more \
in some period; 0.06 is allowed). Shown in period 2.
    """
    check_rule(rule)
    names, given = _periods(tallies)
    _check(rule, given)
    promise = rule.promise
    chosen = as_cost(cost) if cost is not None else rule.cost
    limits = _limits(promise, tolerance, another_cost=cost is not None)
    usual = ("fpr", "fnr") if chosen is None else ("cost",)
    measured = limits or dict.fromkeys(usual, math.inf)
    if "cost" in limits and chosen is None:
        step = 'pass cost=, such as cost="fnr"'
        raise UsageError(Problem("cost", "must be known", f"none in a {rule.method} rule", step))
    margin = calibration_margin if promise is not None and promise.calibrated else None
    margin = None if margin is None else check_tolerance(margin, "calibration_margin")
    confidence = check_confidence(confidence)
    groups = [group for group in rule.groups if any(group in t.groups for t in given)]
    threshold = _threshold(promise) if threshold is None else check_threshold(threshold)
    history = History(given, groups, threshold, chosen)
    watched = math.inf if promise is None else margin
    claims = claims_of(groups, measured, watched, 1.0 - confidence)
    tracks = [(claim, evidence(*history.streams(claim))) for claim in claims]
    alarms = sorted(
        (
            alarm
            for claim, found in tracks
            if math.isfinite(claim.limit)
            for alarm in _alarms(claim, found, names)
        ),
        key=lambda pair: pair[0],
    )
    return Watch(
        periods=_reported(names, given, tracks, alarms),
        alarms=tuple(alarm for _, alarm in alarms),
        notes=(
            *_no_promise(rule),
            *_stopped_short(promise, limits),
            *news(rule, names, history),
        ),
        limits=limits,
        calibration_margin=margin,
        confidence=confidence,
    )


def _limits(
    promise: Promise | None, tolerance: float | None, another_cost: bool
) -> dict[str, float]:
    """How far groups may differ, for each thing that must be equal."""
    by_cost = another_cost or promise is None
    promised = {} if promise is None else promise.equal
    if tolerance is not None:
        limit = check_tolerance(tolerance)
        promised = {"cost": limit} if by_cost else dict.fromkeys(promised, limit)
    elif another_cost and promise is not None:
        promised = {"cost": max(promised.values(), default=0.0)}
    return {name: limit for name, limit in promised.items() if name in WATCHABLE}


def _threshold(promise: Promise | None) -> float:
    return 0.5 if promise is None or promise.threshold is None else promise.threshold


def _no_promise(rule: Rule) -> list[str]:
    """Say that nothing is promised, or what of it cannot be watched."""
    if rule.promise is None:
        return [
            f"This rule carries no promise (its method is {rule.method!r}): it is measured, and "
            "held to nothing that was not asked for."
        ]
    unknown = [name for name in rule.promise.equal if name not in WATCHABLE]
    return [f"The rule promises equal {', '.join(unknown)}: not watched."] if unknown else []


def _stopped_short(promise: Promise | None, limits: Mapping[str, float]) -> list[str]:
    """Say where a rule is held to less than was asked of it."""
    return [
        f"The rule was asked for {asked:g} in {name} and came to {limits[name]:.4g} on the data it "
        "was made from; it is held to that."
        for name, asked in ({} if promise is None else promise.asked).items()
        if promise is not None and name in limits and limits[name] == promise.equal[name] > asked
    ]


def _periods(tallies: Iterable[Tally] | Mapping[str, Tally]) -> tuple[list[str], list[Tally]]:
    if isinstance(tallies, Tally):
        tallies = [tallies]
    if isinstance(tallies, Mapping):
        names, given = [str(name) for name in tallies], list(tallies.values())
    else:
        given = check_listed("tallies", tallies, *_TALLIES)
        names = [f"period {place}" for place in range(1, len(given) + 1)]
    wrong = [one for one in given if not isinstance(one, Tally)]
    if wrong or not given:
        rule, step = _TALLIES
        raise UsageError(Problem("tallies", rule, short(wrong[0]) if wrong else "none", step))
    return names, given


def _check(rule: Rule, tallies: Sequence[Tally]) -> None:
    seen = dict.fromkeys(group for tally in tallies for group in tally.groups)
    known = set(rule.groups)
    unknown = [group for group in seen if group not in known]
    if unknown:
        raise unknown_groups(unknown, rule.groups)
    if len(seen) < 2:
        got, step = f"{len(seen)} group", "check the group column"
        raise DataError(Problem("tallies", "must have at least two groups of the rule", got, step))


def _alarms(claim: Claim, found: Evidence, names: list[str]) -> list[tuple[int, Alarm]]:
    """When a claim breaks, in either direction; each has half of the claim's error."""
    result = []
    for sign in (1.0, -1.0):
        loud = found.against(claim.limit, sign) >= math.log(2.0 / claim.error)
        if not loud.any():
            continue
        when = int(np.argmax(loud))
        since = found.beginning(claim.limit, sign, when)
        bound = found.at_least(claim.error / 2.0, sign, when)
        estimate = found.mean_since(since)
        one_sided = claim.kind == "calibration"
        groups = claim.groups if sign > 0 else claim.groups[::-1]
        shown = Claim(claim.kind, groups, claim.band, claim.limit, claim.error)
        factor = 1.0 if one_sided else sign
        alarm = Alarm(shown, names[when], names[since], factor * estimate, factor * sign * bound)
        result.append((when, alarm))
    return result


Track = tuple[Claim, Evidence]


def _reported(
    names: list[str],
    tallies: list[Tally],
    tracks: list[Track],
    alarms: Sequence[tuple[int, Alarm]],
) -> tuple[Period, ...]:
    pairs = [(c, e) for c, e in tracks if c.kind != "calibration"]
    means = [e for c, e in tracks if c.kind == "calibration" and c.band is None]
    result = []
    for place, (name, tally) in enumerate(zip(names, tallies, strict=True)):
        widest = max(pairs, key=lambda track: _size(track[1].running[place]))
        low, high = widest[1].interval(widest[0].error, place)
        if widest[1].running[place] < 0:
            low, high = -high, -low
        broken = dict.fromkeys(alarm.claim.kind for when, alarm in alarms if when <= place)
        result.append(
            Period(
                name=name,
                rows=tally.n,
                difference=_largest(e.estimate[place] for _, e in pairs),
                running=abs(float(widest[1].running[place])),
                interval=(low, high),
                calibration=_largest(e.estimate[place] for e in means),
                broken=tuple(broken),
            )
        )
    return tuple(result)


def _size(value: float) -> float:
    return -1.0 if math.isnan(value) else abs(value)


def _largest(values: Iterable[float]) -> float:
    known = [abs(float(value)) for value in values if not math.isnan(value)]
    return max(known, default=math.nan)
