"""Watching a rule after deployment: periods, alarms and notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from typing import Any, Unpack

import numpy as np

from isocost.checks import (
    as_number,
    check_confidence,
    check_listed,
    check_threshold,
    check_tolerance,
    short,
)
from isocost.costs import CostLike, as_cost
from isocost.errors import DataError, Problem, UsageError, listing, setting
from isocost.groups import Group, as_group, names_of
from isocost.judging.evidence import (
    HANDED_OVER,
    WATCHABLE,
    Claim,
    Evidence,
    History,
    claims_of,
    evidence,
)
from isocost.measures.intervals import Estimates, Interval
from isocost.measures.rates import disparity, require_all_decided
from isocost.measures.table import MEASURES, OVERALL, Measure, chosen_measures
from isocost.question import DEFAULT
from isocost.repairs.composition import merged
from isocost.result import Record, Result
from isocost.rules import Promise, Rule, check_rule, repaired_column, stored_columns, unknown_groups
from isocost.tables import number_text
from isocost.tallies import (
    DataOptions,
    Tally,
    TallyLike,
    as_tally,
    check_no_keywords,
    column_names,
)

MOST_LISTED = 5
"""The largest number of groups, and of periods, that a note lists."""


@dataclass(frozen=True)
class Period(Record):
    """The findings of one period.

    Attributes
    ----------
    name : str
        What the period is called.
    rows : float
        How many rows it has.
    difference, running : float
        The largest difference between two groups of what must be equal, in this period and in all
        periods so far; NaN where it is not known.
    interval : (low, high)
        Where the running difference lies, if it has been the same all the time.  The intervals
        of all periods and pairs hold together with the requested confidence.  If it is shown to
        have changed, it was at most ``low`` in one period and at least ``high`` in another.
    calibration : float
        The largest distance of a group's mean score from its share of positives in this period.
    broken : tuple of str
        What was shown to be violated, in this period or before: "cost", "calibration" ...
    measures : {name: float}
        The largest difference between two groups in each measure that was chosen, in this period;
        for information, never tested.
    handed_over : float
        The share of people without a score, because they were handed over; the rows are those of
        the others.
    """

    name: str
    rows: float
    difference: float
    running: float
    interval: Interval
    calibration: float
    broken: tuple[str, ...]
    measures: Mapping[str, float] = field(default_factory=dict)
    handed_over: float = 0.0


@dataclass(frozen=True)
class Alarm(Record):
    """A claim that was shown to be violated.

    Attributes
    ----------
    claim : Claim
        What was claimed; ``claim.groups`` has the group with the higher number first.
    period : str
        When it was shown.
    since : str
        When it most likely began.
    estimate : float
        By how much groups differed, or scores were off, from then to the last period; for
        calibration above 0 where labels are more often positive than scores say.
    at_least : float
        A bound that it was above in some period; it lies above the limit.  For a floor ``estimate``
        is the rate, and this a bound that it was below.
    """

    written = ("*claim", "period", "since", "estimate", "at_least")

    claim: Claim
    period: str
    since: str
    estimate: float
    at_least: float

    def __str__(self) -> str:
        names = list(names_of(self.claim.groups).values())
        allowed = f"{self.claim.limit:.4g} is allowed"
        bound = f"{abs(self.at_least):.4f} or more in some period"
        if self.claim.kind == "calibration":
            band = self.claim.band
            where = "" if band is None else f" from {band[0]:g} to {band[1]:g}"
            way = "too low" if self.estimate > 0 else "too high"
            return (
                f"The scores{where} of {names[0]} are {way} since {self.since}: by "
                f"{abs(self.estimate):.4f} ({bound}; {allowed}). Shown in {self.period}."
            )
        if self.claim.kind == HANDED_OVER:
            way = "More" if self.estimate > 0 else "Fewer"
            return (
                f"{way} of {names[0]} are handed over than promised since {self.since}: "
                f"{self.claim.promised + self.estimate:.2%} instead of {self.claim.promised:.2%} "
                f"(off by {bound}; {allowed}). Shown in {self.period}."
            )
        if self.claim.is_floor:
            whose = f" of {names[0]}" if names else " of everybody"
            return (
                f"The {MEASURES[self.claim.kind].title}{whose} is too low since {self.since}: "
                f"{self.estimate:.4f} ({self.at_least:.4f} or less in some period; at least "
                f"{self.claim.limit:.4g} is promised). Shown in {self.period}."
            )
        what = "The costs" if self.claim.kind == "cost" else MEASURES[self.claim.kind].title
        return (
            f"{what} of {names[0]} and {names[1]} differ since {self.since}: "
            f"by {self.estimate:.4f} ({bound}; {allowed}). Shown in {self.period}."
        )


@dataclass(frozen=True, repr=False)
class Watch(Result):
    """The result of :func:`watch`.

    Attributes
    ----------
    periods : tuple of Period
        In order.
    alarms : tuple of Alarm
        The violated claims, in the order they were detected.
    notes : tuple of str
        Periods with too little data, and how base rates and shares of groups have moved: for
        information, never an alarm.
    limits : {name: float}
        What the rule makes equal, and how far groups may differ in it; empty for a rule
        that promises nothing.
    calibration_margin : float
        How far scores may lie from labels; None if calibration is not watched.
    confidence : float
        The probability that there is never an alarm while everything holds.
    floors : {name: float}
        What rates must at least be.
    handed_over : {group: float}
        The shares that the rule promised to hand over, if they are tested; all other numbers are
        about the people who are not handed over.
    """

    format = "isocost-watch"
    written = (
        "alarm", "first_alarm", "equal", "limit", "limits", "floors", "handed_over",
        "calibration_margin", "confidence", "periods", "alarms", "notes",
    )  # fmt: skip

    periods: tuple[Period, ...]
    alarms: tuple[Alarm, ...]
    notes: tuple[str, ...]
    limits: Mapping[str, float]
    calibration_margin: float | None
    confidence: float
    backend: str | None = None
    floors: Mapping[str, float] = field(default_factory=dict)
    handed_over: Mapping[Group, float] = field(default_factory=dict)

    @property
    def equal(self) -> tuple[str, ...]:
        """The numbers that the rule makes equal."""
        return tuple(self.limits)

    @property
    def limit(self) -> float:
        """The largest allowed difference of groups; NaN if there is none."""
        return max(self.limits.values(), default=math.nan)

    @property
    def alarm(self) -> bool:
        """True if any claim is violated."""
        return bool(self.alarms)

    @property
    def first_alarm(self) -> str | None:
        """The period in which the first alarm came; None without one."""
        return self.alarms[0].period if self.alarms else None

    def records(self) -> list[dict[str, Any]]:
        """A row for each period.

        It has the name, rows, ``difference`` in the period and ``running`` in all so far with
        ``low`` and ``high``, ``calibration``, the claims that are ``broken``, and how far groups
        differ in each measure that was chosen.
        """
        return [
            {
                "period": one.name,
                "rows": one.rows,
                "difference": one.difference,
                "running": one.running,
                "low": one.interval[0],
                "high": one.interval[1],
                "calibration": one.calibration,
                **({"handed_over": one.handed_over} if self.handed_over else {}),
                "broken": ", ".join(one.broken),
                **one.measures,
            }
            for one in self.periods
        ]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table."""
        header = ["period", "rows", "differ by", "so far", "interval", "mean score off"]
        header += [*(["handed over"] if self.handed_over else []), "alarm"]
        header += [f"{MEASURES[name].title} differs by" for name in self.periods[0].measures]
        rows = [
            [
                one.name,
                f"{one.rows:,.15g}",
                number_text(one.difference),
                number_text(one.running),
                f"[{one.interval[0]:.3f}, {one.interval[1]:.3f}]",
                number_text(one.calibration),
                *([f"{one.handed_over:.2%}"] if self.handed_over else []),
                ", ".join(one.broken),
                *map(number_text, one.measures.values()),
            ]
            for one in self.periods
        ]
        return header, rows

    def headline(self) -> str:
        """The claims that were watched, in a line."""
        margin = self.calibration_margin
        more = "" if margin is None else f", scores be off by {margin:g}"
        periods = f"{len(self.periods)} period{'s' if len(self.periods) != 1 else ''}"
        allowed = f"{' and '.join(self.equal)} may differ by {self.limit:.4g}"
        if not self.limits:
            allowed = "no limit on how far groups may differ"
        if len(set(self.limits.values())) > 1:
            each = [f"{name} by {limit:.4g}" for name, limit in self.limits.items()]
            allowed = f"groups may differ in {' and in '.join(each)}"
        for name, least in self.floors.items():
            more += f", {name} be no less than {least:.4g}"
        if self.handed_over:
            low, high = (f"{pick(self.handed_over.values()):.4g}" for pick in (min, max))
            more += f", and {low if low == high else f'{low} to {high}'} be handed over"
        return f"Watch over {periods} at {self.confidence:.4g}: {allowed}{more}"

    def summary(self) -> list[str]:
        """Alarms and notes, or the sentence that nothing was detected."""
        if not self.alarms and not self.limits and self.calibration_margin is None:
            return [*self.notes]
        if not self.alarms:
            return ["No violation was detected.", *self.notes]
        return [*map(str, self.alarms), *self.notes]


def watch(
    rule: Rule,
    tallies: Iterable[TallyLike] | Mapping[str, TallyLike],
    *,
    cost: CostLike | None = None,
    tolerance: float | None = None,
    threshold: float | None = None,
    calibration_margin: float | None = 0.02,
    confidence: float | None = None,
    measures: str | Iterable[str] | None = None,
    **reading: Unpack[DataOptions],
) -> Watch:
    """Test whether what a rule made equal is still equal, and scores still calibrated.

    Parameters
    ----------
    rule : Rule
        What was deployed.  Its promise says what must be equal, and how nearly.  For a rule that
        promises nothing, nothing is tested unless a tolerance is given.
    tallies : several tallies, or {name: tally}
        One per period, in order, of the repaired scores and the true labels; or data of each.  The
        columns of data are by default those the rule was made from; the scores are those of
        ``repaired_`` and the score column if the data have it.
    cost : Cost or str, optional
        What an error costs; by default that of the rule.
    tolerance : float, optional
        How far groups may differ; by default that of the rule, or what it reached with
        ``infeasible="closest"``.  New data are never exactly like those the rule was made from:
        allow more than the rule aimed at.  Rates may fall as far below the floors of the rule.
    threshold : float, optional
        For rates at a threshold; by default that of the rule.
    calibration_margin : float or None
        How far scores may lie from the share of positives, for all scores of a group and in each
        fifth of [0, 1]; None to leave calibration out.  Not tested for rules that give it up.
    confidence : float, optional
        The probability that there is no alarm in any period while everything holds; by default as
        in :class:`isocost.Question`.
    measures : str or names, optional
        Measures whose largest difference between groups is shown for each period, as for
        :func:`isocost.audit`; for information, not tested.

    Returns
    -------
    Watch

    Notes
    -----
    Claims are tested by evidence that may be checked after every period, for any number of
    periods; see :mod:`isocost.judging.evidence`.  Rows must be independent: somebody who comes
    back in many periods counts too often.  Labels that are known only for some, such as loans that
    were granted, say nothing about the others.  With weights the evidence is approximate.

    No alarm does not prove that all is well: the interval says how much is known.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = ic.withhold(compas(), "fpr", tolerance=0.06)
    >>> repaired = rule.expected(compas())
    >>> result = ic.watch(rule, {"May": repaired, "June": repaired}, tolerance=0.08)
    >>> result.alarm, round(result.periods[1].running, 4)
    (False, 0.06)
    >>> print(ic.watch(rule, [compas()] * 2).alarms[0])
    The costs of African-American and Caucasian differ since period 1: by 0.0875 (0.0678 or more \
in some period; 0.06 is allowed). Shown in period 2.
    """
    check_rule(rule)
    names, periods, read = _periods(rule, tallies, reading, threshold)
    # The promise is about the groups as they were merged.
    rule, periods = merged(rule, *periods)
    _check_groups(rule, periods)
    promise = rule.promise
    limits = _limits(promise, tolerance, another_cost=cost is not None)
    chosen = as_cost(cost) if cost is not None else rule.cost
    if "cost" in limits and chosen is None:
        step = f"pass {setting('cost')}, such as {setting('cost', 'fnr')}"
        raise UsageError(Problem("cost", "must be known", f"none in a {rule.method} rule", step))
    usual = ("fpr", "fnr") if chosen is None else ("cost",)
    measured = limits or dict.fromkeys(usual, math.inf)
    margin = calibration_margin if promise.calibrated else None
    margin = None if margin is None else check_tolerance(margin, "calibration_margin")
    confidence = DEFAULT.level if confidence is None else check_confidence(confidence)
    groups = [group for group in rule.fitted if any(group in t.groups for t in periods)]
    if threshold is None:
        threshold = promise.threshold or DEFAULT.threshold
    shown = _shown(measures)
    history = History(periods, groups, check_threshold(threshold), chosen)
    watched = math.inf if promise.is_empty else margin
    floors = {
        name: max(least - (tolerance or 0.0), 0.0)
        for name, least in promise.floor.items()
        if name.removeprefix(OVERALL) in WATCHABLE
    }
    # Only tallies that know of people handed over can tell their share.
    known = any(tally.handed_over for tally in periods)
    promised = dict(promise.handed_over) if known else {}
    handed = {group: (share, tolerance or 0.0) for group, share in promised.items()}
    claims = claims_of(groups, measured, watched, 1.0 - confidence, floors, handed)
    tracks = [(claim, evidence(*history.streams(claim))) for claim in claims]
    limited = [pair for pair in tracks if math.isfinite(pair[0].limit)]
    alarms = sorted(
        chain.from_iterable(_alarms(claim, track, names) for claim, track in limited),
        key=itemgetter(0),
    )
    return Watch(
        periods=tuple(
            replace(one, measures=_differences(tally, groups, threshold, shown))
            for one, tally in zip(_reported(names, periods, tracks, alarms), periods, strict=True)
        ),
        alarms=tuple(alarm for _, alarm in alarms),
        notes=(
            *read,
            *_about_promise(rule, limits, bool(promised)),
            *_notes_on_data(rule, names, history),
        ),
        limits=limits,
        calibration_margin=margin,
        confidence=confidence,
        backend=periods[0].backend,
        floors=floors,
        handed_over=promised,
    )


def _shown(measures: Any) -> dict[str, Measure]:
    """The measures that were chosen; rows of the table only, which have titles."""
    if measures is None:
        return {}
    choice = chosen_measures(measures)
    if not choice.shown or not MEASURES.keys() >= set(choice.shown):
        rule, step = "must be names of measures", 'for example ["ppv", "auc"]'
        raise UsageError(Problem("measures", rule, short(measures), step))
    return {name: choice.rows[name] for name in choice.shown}


def _differences(
    tally: Tally, groups: Sequence[Group], threshold: float, measures: Mapping[str, Measure]
) -> dict[str, float]:
    """The largest difference between two groups of each measure."""
    watched = [group for group in tally.groups if group in groups]
    if not measures or not watched:
        return dict.fromkeys(measures, math.nan)
    tally = tally.select(watched)
    estimates = Estimates(tally, DEFAULT.but(threshold=threshold))
    return {
        name: disparity(tally.groups, estimates.column(measure)[:-1]).difference
        for name, measure in measures.items()
    }


def _limits(promise: Promise, tolerance: float | None, another_cost: bool) -> dict[str, float]:
    """The largest allowed difference of groups in each number that must be equal."""
    by_cost, promised = another_cost or promise.is_empty, promise.equal
    if tolerance is not None:
        limit = check_tolerance(tolerance)
        promised = {"cost": limit} if by_cost else dict.fromkeys(promised, limit)
    elif another_cost and not promise.is_empty:
        promised = {"cost": max(promised.values(), default=0.0)}
    return {name: limit for name, limit in promised.items() if name in WATCHABLE}


def _about_promise(rule: Rule, limits: Mapping[str, float], counted: bool) -> Iterator[str]:
    """Notes on promises that are missing, less than requested, or not watched."""
    promise = rule.promise
    if promise.is_empty:
        yield (
            f"This rule promises nothing (its method is {rule.method!r}): its numbers are "
            "measured, and only limits that you pass are tested."
        )
    else:
        for what, names in (("equal", promise.equal), ("a floor of", promise.floor)):
            unknown = [name for name in names if name.removeprefix(OVERALL) not in WATCHABLE]
            if unknown:
                yield f"The rule promises {what} {', '.join(unknown)}: not watched."
        for name, requested in promise.asked.items():
            if name in limits and limits[name] == promise.equal[name] > requested:
                yield (
                    f"The requested tolerance of {name} was {requested:g}, and the rule reached "
                    f"{limits[name]:.4g} on the data it was made from; it is held to that."
                )
    if promise.handed_over and not counted:
        yield (
            "The rule hands people over, and no period says how many: that share is not watched. "
            "Count them with isocost.tally(..., handed_over=True)."
        )


def deployed_columns(
    rule: Rule, names: Sequence[str], asked: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Options to read data with columns of these names after a rule was applied, and notes.

    The columns are those the rule was made from, with the column of repaired scores if there is
    one.  People without a score were handed over, if the rule hands anybody over.  What was
    ``asked`` for is left as it is.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.repairs.withhold import withhold
    >>> rule = withhold(compas(), cost="fpr", tolerance=0.07)
    >>> deployed_columns(rule, ["score", "repaired_score"], {})[0]["score"]
    'repaired_score'
    """
    stored = stored_columns(rule)
    score = stored.get("score", "score")
    repaired = repaired_column(score)
    used: dict[str, Any] = {
        role: stored[role] for role in ("label", "group", "weight") if role in stored
    }
    if rule.reading.missing_group is not None:
        used["missing_group"] = rule.reading.missing_group
    used |= {"score": score, "handed_over": rule.defers}
    if repaired in names and "score" not in asked:
        if asked.get("scale", "probability") != "probability":
            must = f"must be left out: the repaired scores in {repaired!r} are probabilities"
            step = f"leave it out, or name another column with {setting('score')}"
            raise UsageError(Problem("scale", must, repr(asked["scale"]), step))
        used |= {"score": repaired, "scale": "probability"}
    used = {role: value for role, value in used.items() if role not in asked}
    if used.get("score") != repaired or score not in names:
        return used, []
    note = (
        f"The scores were read from the column {repaired!r}; the data also have {score!r}. To "
        f"watch that one, pass {setting('score', score)}."
    )
    return used, [note]


def _periods(
    deployed: Rule, tallies: Any, reading: Mapping[str, Any], threshold: float | None
) -> tuple[list[str], list[Tally], list[str]]:
    """The names of the periods, their tallies, and notes on how data were read."""
    rule = "must be tallies, at least one"
    step = "make one for each period: isocost.tally(data, score=..., label=..., group=...)"
    if isinstance(tallies, Mapping):
        names, periods = [str(name) for name in tallies], list(tallies.values())
    else:
        one = isinstance(tallies, Tally) or hasattr(tallies, "columns")
        periods = [tallies] if one else check_listed("tallies", tallies, rule, step)
        names = [f"period {number}" for number in range(1, len(periods) + 1)]
    if not periods:
        raise UsageError(Problem("tallies", rule, "none", step))
    edges = () if threshold is None else (check_threshold(threshold),)
    if all(isinstance(one, Tally) for one in periods):
        check_no_keywords(reading, "tally")
    counted, notes = [], dict[str, None]()
    for one in periods:
        used: dict[str, Any] = {}
        if not isinstance(one, Tally):
            used, noted = deployed_columns(deployed, column_names(one, reading), reading)
            used |= reading
            notes |= dict.fromkeys(noted)
        counted.append(as_tally(one, used, *edges, name="tallies"))
    return names, counted, list(notes)


def _check_groups(rule: Rule, tallies: Sequence[Tally]) -> None:
    seen = dict.fromkeys(group for tally in tallies for group in tally.groups)
    known = set(rule.groups)
    unknown = [group for group in seen if group not in known]
    if unknown:
        raise unknown_groups(unknown, rule.groups, counted=True)
    compared = [group for group in seen if group in rule.fitted]
    if len(compared) < 2:
        for tally in tallies:
            require_all_decided(tally)
        got, step = f"{len(compared)} group", "check the group column"
        must = "must have at least two groups that the rule was made from"
        raise DataError(Problem("tallies", must, got, step))


def _alarms(claim: Claim, track: Evidence, names: list[str]) -> list[tuple[int, Alarm]]:
    """When a claim breaks, in each direction in which it can."""
    alarms = []
    error = claim.error / len(claim.signs)
    for sign in claim.signs:
        loud = track.against(claim.allowed, sign) >= -math.log(error)
        if not loud.any():
            continue
        when = int(np.argmax(loud))
        since = track.beginning(claim.allowed, sign, when)
        bound = track.at_least(error, sign, when)
        estimate = track.mean_since(since)
        if claim.is_floor:
            rates = (claim.limit - estimate, claim.limit - bound)
            alarms.append((when, Alarm(claim, names[when], names[since], *rates)))
            continue
        shown = replace(claim, groups=claim.groups if sign > 0 else claim.groups[::-1])
        # The difference of two groups is stated as positive, the bias of scores with its sign.
        factor = sign if len(claim.groups) > 1 else 1.0
        alarm = Alarm(shown, names[when], names[since], factor * estimate, factor * sign * bound)
        alarms.append((when, alarm))
    return alarms


def _reported(
    names: list[str],
    tallies: list[Tally],
    tracks: list[tuple[Claim, Evidence]],
    alarms: Sequence[tuple[int, Alarm]],
) -> tuple[Period, ...]:
    pairs = [(c, e) for c, e in tracks if len(c.groups) > 1]
    means = [e for c, e in tracks if c.kind == "calibration" and c.band is None]
    periods = []
    for now, (name, tally) in enumerate(zip(names, tallies, strict=True)):
        claim, widest = max(
            pairs, key=lambda pair: np.nan_to_num(abs(pair[1].running[now]), nan=-1)
        )
        low, high = widest.interval(claim.error, now)
        if widest.running[now] < 0:
            low, high = -high, -low
        broken = dict.fromkeys(alarm.claim.kind for when, alarm in alarms if when <= now)
        periods.append(
            Period(
                name=name,
                rows=tally.n,
                difference=_largest(e.estimate[now] for _, e in pairs),
                running=abs(float(widest.running[now])),
                interval=(low, high),
                calibration=_largest(e.estimate[now] for e in means),
                broken=tuple(broken),
                handed_over=tally.share_handed_over,
            )
        )
    return tuple(periods)


def _largest(values: Iterable[float]) -> float:
    known = [abs(float(value)) for value in values if not math.isnan(value)]
    return max(known, default=math.nan)


def _notes_on_data(rule: Rule, names: Sequence[str], history: History) -> list[str]:
    """Periods with too little data, groups that are missing, base rates and shares that moved."""
    shown, notes = names_of(rule.groups), []
    for name, counts in zip(names, history.all.by_label().n.tolist(), strict=True):
        few = [
            f"{int(count)} {label} of {shown[group]}"
            for group, own in zip(history.groups, counts, strict=True)
            for label, count in zip(("negatives", "positives"), own, strict=True)
            if count < DEFAULT.min_group
        ]
        if few:
            notes.append(f"Little data in {name}: {listing(few, MOST_LISTED)}.")
    if len(notes) > MOST_LISTED:
        notes[MOST_LISTED:] = [f"Little data in {len(notes) - MOST_LISTED} more periods."]
    absent = [shown[group] for group in rule.fitted if group not in history.groups]
    if absent:
        notes.append(f"Not in any period: {', '.join(absent)}.")
    others = [shown[group] for group in rule.groups if group not in rule.fitted]
    if others:
        notes.append(f"Not watched, because the rule was made without them: {listing(others)}.")
    weights, rows = history.all.by_label().w.sum(axis=0), history.all.n.sum(axis=(0, 2))
    made = _made_from(rule)
    before = sum(n for n, _ in made.values())
    for index, group in enumerate(history.groups):
        if group not in made:
            continue
        n, rate = made[group]
        numbers = (
            ("base rate", rate, weights[index, 1] / weights[index].sum()),
            ("share", n / before, rows[index] / rows.sum()),
        )
        notes += [
            f"The {what} of {shown[group]} was {old:.4f} when the rule was made, now {new:.4f}."
            for what, old, new in numbers
            # Smaller moves are not mentioned; who is handed over decides the base rate of others.
            if abs(new - old) >= 0.02 and (what == "share" or not rule.defers)
        ]
    return notes


def _made_from(rule: Rule) -> dict[Group, tuple[float, float]]:
    """Rows and base rate of each group when the rule was made, as far as the rule can be read."""
    listed: Any = rule.made_from.get("groups")
    known: dict[Group, tuple[float, float]] = {}
    for one in listed if isinstance(listed, list) else []:
        if not isinstance(one, dict):
            continue
        n, rate, group = as_number(one.get("n")), as_number(one.get("base_rate")), one.get("group")
        group = tuple(group) if isinstance(group, list) else group
        if math.isfinite(n) and math.isfinite(rate) and n > 0 and group in rule.fitted:
            known[as_group(group)] = (n, rate)
    return known
