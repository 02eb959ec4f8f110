"""What a repair does to people not seen: the rule is made again from samples of a population.

A rule is exact for the people it was made from and for nobody else.  How far off it is for others
is found by doing the same where the truth is known: a population is made from the tally, samples of
the same size are drawn from it, and the rule is made from each sample and measured on that
population.

With F a number of the rule on the people it was made from, T the same number on the population, and
F_b, T_b these two in replicate b:

    expected = F + mean of (T_b - F_b)
    limit    = F + quantile of (T_b - F_b), a little above that of the confidence

Where a rule makes groups equal, F and F_b are both 0 and what is left are the T_b themselves.

The population is that of :mod:`isocost.repairs.population`.  ``docs/unseen.md`` checks all of this
by simulation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from isocost.cells import Sums
from isocost.checks import (
    check_confidence,
    check_kind,
    check_seed,
    check_threshold,
    check_whole,
)
from isocost.costs import Cost, CostLike
from isocost.errors import IsocostError, IsocostWarning, Problem, UncertainWarning, UsageError
from isocost.groups import Group
from isocost.measures.audit import Audit
from isocost.measures.calibration import Levels, gap_debiased, gap_equal_width, levels_of
from isocost.measures.feasibility import compared_groups, fitted_groups
from isocost.measures.rates import group_costs
from isocost.measures.table import MEASURES
from isocost.question import DEFAULT
from isocost.repairs.composition import cost_of_rules, edges_of
from isocost.repairs.counsel import not_advised, share_changed, summary_of, titles_of
from isocost.repairs.population import Population
from isocost.repairs.registry import REPAIRS, remade
from isocost.repairs.withhold import threshold_of
from isocost.result import Record, Result
from isocost.rules import Rule, check_rule
from isocost.tables import columns_from, frame_of
from isocost.tallies import DataOptions, Tally, TallyLike, as_tallies
from isocost.typing import Floats
from isocost.verdict.sentences import SENTENCES, number

NUMBERS = {
    "cost_difference": "costs differ by",
    "rate_difference": "FPR or FNR differ by",
    "calibration_gap": "largest calibration gap",
    "accuracy": "accuracy",
    "changed": "people changed",
    "handed_over": "handed over",
}
"""What is estimated, and how tables call it."""

GOAL = "goal"
"""The largest difference in what the rule makes equal."""

LEAST = 10
"""With fewer replicates than this there are no numbers."""

Report = Callable[[float, int | None], None]

Gap = Callable[[Levels], float]


@dataclass(frozen=True)
class Yardstick:
    """Groups, cost and threshold that a rule is measured by, and those of what it makes equal."""

    groups: tuple[Group, ...]
    cost: Cost
    threshold: float
    equal: tuple[str, ...]
    own_cost: Cost
    own_threshold: float

    @classmethod
    def of(
        cls,
        tally: Tally,
        rule: Rule,
        cost: CostLike | None = None,
        threshold: float | None = None,
    ) -> Yardstick:
        """The yardstick of a rule that was made from this tally.

        Its goal is always measured by the rule's own cost and threshold, which are also the
        defaults of the others.
        """
        own_threshold = threshold_of(rule)
        some = [group for group in tally.groups if group in rule.fitted] or tally.groups
        return cls(
            groups=compared_groups(tally.select(some), DEFAULT.min_group),
            cost=cost_of_rules(cost, {"rule": rule}),
            threshold=own_threshold if threshold is None else check_threshold(threshold),
            equal=tuple(rule.promise.equal),
            own_cost=cost_of_rules(None, {"rule": rule}),
            own_threshold=own_threshold,
        )

    def numbers(self, tally: Tally, rule: Rule | None, gap: Gap | None = gap_equal_width) -> Floats:
        """The numbers of a rule, or of the original scores.

        The last is the largest difference in what the rule is to make equal.
        """
        after = tally if rule is None else rule.expected(tally)
        own = [i for i, group in enumerate(after.groups) if group in self.groups]
        kinds = after.kinds(self.threshold)
        # What the rule makes equal is measured as the rule has it, whatever is asked besides.
        same = self.threshold == self.own_threshold
        own_kinds = kinds if same else after.kinds(self.own_threshold)

        def difference(name: str, cost: Cost, people: Sums) -> float:
            if name == "cost":
                values = group_costs(after.totals, after.groups, cost)
            else:
                values = MEASURES[name].of(people)
            return float(np.ptp(values[own]))

        goals = (difference(name, self.own_cost, own_kinds) for name in self.equal)
        return np.array(
            [
                difference("cost", self.cost, kinds),
                max(difference(name, self.cost, kinds) for name in ("fpr", "fnr")),
                max(gap(levels_of(after, index)) for index in own) if gap else math.nan,
                float(MEASURES["accuracy"].of(kinds.pooled())[0]),
                0.0 if rule is None else share_changed(tally, rule),
                after.share_handed_over,
                max(goals, default=math.nan),
            ]
        )


@dataclass(frozen=True)
class Outlook(Record):
    """One number of a rule.

    Attributes
    ----------
    fitted : float
        For the people it was made from.
    expected : float
        For new people.
    limit : float
        For new people it is at most this, with the confidence asked for; accuracy at least.
    unrepaired : float
        For new people, if the scores are left as they are.
    """

    fitted: float
    expected: float
    limit: float
    unrepaired: float


@dataclass(frozen=True, repr=False)
class Unseen(Result):
    """What :func:`unseen` found.

    Attributes
    ----------
    cost_difference, rate_difference : Outlook
        The largest difference in cost, and in FPR or FNR at the threshold, between two groups.
    calibration_gap : Outlook
        The largest calibration gap of a group (ten bins).
    accuracy : Outlook
        Its limit is a lower one.
    changed : Outlook
        The share of people whose score changes.
    handed_over : Outlook
        The share of people who are handed over; all other numbers are about those who are not.
    goal : Outlook
        The largest difference in what the rule makes equal; NaN if it promises nothing.
    rule : Rule
        The rule.
    people : float
        How many people it was made from.
    kept_apart : float or None
        How many people it was measured on, if they were kept apart.
    replicates, infeasible : int
        How often the rule was made again, and how often it could not be as asked.
    confidence : float
        Of the limits.
    """

    format = "isocost-unseen"
    also = ("method", "better")
    unwritten = ("rule", "backend")

    cost_difference: Outlook
    rate_difference: Outlook
    calibration_gap: Outlook
    accuracy: Outlook
    changed: Outlook
    handed_over: Outlook
    goal: Outlook
    rule: Rule
    people: float
    kept_apart: float | None
    replicates: int
    infeasible: int
    confidence: float
    backend: str | None = None

    @property
    def method(self) -> str:
        """The repair that made the rule."""
        return self.rule.method

    @property
    def better(self) -> bool:
        """Whether new people are expected to be treated more equally than without the rule."""
        known = not math.isnan(self.goal.expected + self.goal.unrepaired)
        return not known or self.goal.expected < self.goal.unrepaired or not self.rule.rows

    def judged(self, audit: Audit) -> Audit:
        """The audit, whose verdict now says whether this repair is expected to help new people.

        The rule must make the cost of the audit equal.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> audit = ic.audit(compas(), "fnr", tolerance=0.06)
        >>> result = ic.unseen(compas(), ic.withhold(compas(), "fnr", tolerance=0.06))
        >>> audit.verdict.helps, result.judged(audit).verdict.helps
        ('unknown', 'yes')
        """
        check_kind("audit", audit, Audit, "must be an Audit", "pass what isocost.audit returned")
        compared = audit.tally.select(list(audit.compared))
        # Small groups may have been left out of the rule.
        same = any(is_made_from(self.rule, tally) for tally in (audit.tally, compared))
        if self.rule.made_from and not same:
            got, step = f"one of {audit.tally.n:,.15g} rows", "audit the data the rule is made from"
            raise UsageError(Problem("audit", "must be of the same data as the rule", got, step))
        costs = (audit.cost, audit.feasibility.cost)
        if set(self.rule.promise.equal) != {"cost"} or self.rule.cost not in costs:
            got = f"a rule by {self.rule.method}, cost {self.rule.cost}"
            step = "ask about a rule by withhold or coarsen with this cost"
            must = f"must make the cost of the audit, {audit.cost}, equal"
            raise UsageError(Problem("rule", must, got, step))
        return replace(audit, outlook=(self.goal.expected, self.goal.unrepaired))

    def headline(self) -> str:
        """What the numbers are about, in a line."""
        if self.kept_apart is not None:
            how = f"measured on {self.kept_apart:,.0f} people kept apart"
        else:
            how = f"limits hold with confidence {self.confidence:.4g}"
        return f"For new people; fitted on {self.people:,.0f}; {how}"

    def notes(self) -> list[str]:
        """What a reader should know besides."""
        notes = []
        if self.infeasible:
            notes.append(
                SENTENCES["unseen_infeasible"].format(
                    infeasible=self.infeasible, replicates=self.replicates
                )
            )
        if not self.better:
            notes.append(doubt_unseen(self) + ".")
        return notes

    def to_frame(self, *, backend: str | None = None) -> Any:
        """A row for each number: unrepaired, fitted, expected and limit.

        In the library of the data; see :meth:`isocost.Audit.to_frame`.
        """
        rows = [{"number": name, **vars(getattr(self, name))} for name in (*NUMBERS, GOAL)]
        return frame_of(columns_from(rows), backend or self.backend)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table."""
        rows = []
        for name, title in NUMBERS.items():
            if name == "handed_over" and not self.rule.defers:
                continue
            one: Outlook = getattr(self, name)
            least = "at least " if name == "accuracy" else ""
            style = ".2%" if name in ("changed", "handed_over") else ".4f"
            shown = (one.unrepaired, one.fitted, one.expected, one.limit)
            texts = ["-" if math.isnan(value) else format(value, style) for value in shown]
            rows.append([title, *texts[:3], least + texts[3]])
        return ["", "no repair", "fitted", "expected", "at most"], rows


def unseen(
    tally: TallyLike,
    rule: Rule,
    replicates: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    *,
    holdout: TallyLike | None = None,
    cost: CostLike | None = None,
    threshold: float | None = None,
    progress: Report | None = None,
    **reading: Unpack[DataOptions],
) -> Unseen:
    """Say what a rule does to people other than those it was made from.

    The rule is made again from samples of a population that looks like the tally, and measured on
    that population; see :mod:`isocost.repairs.unseen` for the formulas.

    Parameters
    ----------
    tally : Tally, or data
        What the rule was made from.
    rule : Rule
        Made by withhold, coarsen, equalize_odds, reconcile or hand_over.  What that makes equal is
        equal among the people it does not hand over.
    replicates : int
        How often the rule is made again.
    confidence : float
        How often the limits hold.
    seed : int
        Of the samples.
    holdout : Tally or data, optional
        Of people that were kept apart: the rule is measured on them, and not made again.  The
        limits then allow for their number.
    cost, threshold : optional
        For ``cost_difference``, ``rate_difference`` and ``accuracy``; by default those of the rule,
        or "fnr" and 0.5 if it has none.  ``goal`` is always measured by those of the rule.
    progress : callable, optional
        Called from time to time with the share done.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Returns
    -------
    Unseen
        ``cost_difference``, ``rate_difference``, ``calibration_gap``, ``accuracy``, ``changed`` and
        ``handed_over``, each with ``fitted``, ``expected``, ``limit`` and ``unrepaired``.

    Notes
    -----
    Where the rule cannot be made as asked in a replicate, because its goal is out of reach, it is
    made as close as possible: a population may well be one in which the goal is out of reach,
    though it was within reach for the people seen.  ``infeasible`` counts these replicates.
    Those in which it cannot be made at all are left out.

    Groups too small to be compared, with fewer than 30 people or 5 of a label, are repaired
    but not among the differences, as in an audit.  Neither are groups that the rule was made
    without, ``rule.groups`` that are not in ``rule.fitted``.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rule = ic.withhold(compas(), "fpr", tolerance=0.06)
    >>> u = ic.unseen(compas(), rule)
    >>> round(u.cost_difference.fitted, 3), round(u.cost_difference.expected, 2)
    (0.06, 0.06)
    >>> u.cost_difference.limit > 0.06
    True
    """
    check_rule(rule)
    given = [("tally", tally)] + ([] if holdout is None else [("holdout", holdout)])
    edges = () if threshold is None else (check_threshold(threshold),)
    tally, *kept_apart = as_tallies(given, reading, *edges_of([rule], *edges))
    holdout = next(iter(kept_apart), None)
    replicates = check_whole("replicates", replicates, LEAST, 1_000_000)
    confidence, seed = check_confidence(confidence), check_seed(seed)
    yardstick = Yardstick.of(tally, rule, cost, threshold)
    if holdout is None:
        remade(rule, tally)
        measured = tally
    else:
        measured = holdout
        known = fitted_groups(holdout.select(g for g in holdout.groups if g in yardstick.groups))
        yardstick = replace(yardstick, groups=known)
    population, random = Population(measured), np.random.default_rng(seed)
    fitted = yardstick.numbers(tally, rule)
    base = fitted if holdout is None else yardstick.numbers(holdout, rule)
    untouched = yardstick.numbers(measured, None)
    steps = Replicates(yardstick, population, rule, holdout is None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsocostWarning)
        for index in range(replicates):
            steps.add(population.draw(random), base)
            if progress is not None:
                progress((index + 1) / replicates, None)
    expected, limit = steps.summary(base, confidence)
    alone = steps.unrepaired(untouched)
    if holdout is not None:
        # Measured, and not estimated; only the gap is known to be too high.
        expected, alone = (yardstick.numbers(holdout, r, gap_debiased) for r in (rule, None))
        limit = np.where(_UPPER, np.maximum(limit, expected), np.minimum(limit, expected))
    estimates = {
        name: Outlook(*(float(values[i]) for values in (fitted, expected, limit, alone)))
        for i, name in enumerate((*NUMBERS, GOAL))
    }
    kept = None if holdout is None else holdout.n
    return Unseen(
        **estimates,
        rule=rule,
        people=tally.n,
        kept_apart=kept,
        replicates=replicates,
        infeasible=steps.infeasible,
        confidence=confidence,
        backend=tally.backend,
    )


_UPPER = np.array([name != "accuracy" for name in (*NUMBERS, GOAL)])

_MOST = np.array(
    [np.inf if name in ("cost_difference", GOAL) else 1.0 for name in (*NUMBERS, GOAL)]
)

_GAP, _CHANGED = (list(NUMBERS).index(name) for name in ("calibration_gap", "changed"))


class Replicates:
    """The numbers of the rules made from samples, on the sample and on the population."""

    def __init__(
        self, yardstick: Yardstick, population: Population, rule: Rule, remake: bool
    ) -> None:
        self.yardstick, self.population = yardstick, population
        self.rule, self.remake = rule, remake
        self.infeasible = 0
        self.seen: list[Floats] = []
        self.true: list[Floats] = []
        self.alone: list[Floats] = []

    def add(self, sample: Tally, base: Floats) -> None:
        """One more sample."""
        rule, as_asked = self._made(sample)
        if rule is None:
            return
        try:
            seen = self.yardstick.numbers(sample, rule)
            alone = self.yardstick.numbers(sample, None, gap=None)
        except IsocostError:
            return
        # A rule that falls short is off by all that is measured, and not by more than it shows.
        self.seen.append(seen if as_asked else base)
        self.true.append(self.yardstick.numbers(self.population.tally, rule))
        self.alone.append(alone)

    def _made(self, sample: Tally) -> tuple[Rule | None, bool]:
        """The rule from this sample, and whether it could be made as asked."""
        if not self.remake:
            return self.rule, True
        try:
            made = remade(self.rule, sample)
        except IsocostError:
            self.infeasible += 1
        else:
            if made.fitted != self.rule.fitted:
                self.infeasible += 1
                return None, False
            short = _falls_short(made) and not _falls_short(self.rule)
            self.infeasible += short
            return made, not short
        closest = {**self.rule.settings, "infeasible": "closest"}
        if self.rule.settings.get("infeasible") != "raise":
            return None, False
        try:
            return remade(replace(self.rule, settings=closest), sample), False
        except IsocostError:
            return None, False

    def summary(self, base: Floats, confidence: float) -> tuple[Floats, Floats]:
        """The expected numbers and their limits."""
        if len(self.true) < LEAST:
            return np.full(len(base), np.nan), np.full(len(base), np.nan)
        true, off = np.array(self.true), np.array(self.true) - np.array(self.seen)
        expected = np.clip(base + off.mean(axis=0), 0.0, _MOST)
        expected[_GAP] = self._gap(base, true.mean(axis=0))
        level = safe_level(confidence, len(true))
        low, high = (np.quantile(off, q, axis=0) for q in (1.0 - level, level))
        limit = np.clip(base + np.where(_UPPER, high, low), 0.0, _MOST)
        limit[_GAP] = max(limit[_GAP], float(np.quantile(true[:, _GAP], level)))
        return expected, np.where(_UPPER, np.maximum(limit, expected), limit)

    def _gap(self, base: Floats, true: Floats) -> float:
        """The expected gap, by that on the population: on the people seen it is mostly chance.

        What a rule adds to the gap of the scores, or takes from it, is in proportion to the share
        of people it changes, which is known for this rule.
        """
        before = self.yardstick.numbers(self.population.tally, None)[_GAP]
        ratio = base[_CHANGED] / true[_CHANGED] if true[_CHANGED] > 0 else 1.0
        return float(np.clip(before + (true[_GAP] - before) * ratio, 0.0, 1.0))

    def unrepaired(self, untouched: Floats) -> Floats:
        """The numbers of the original scores for new people."""
        if not self.alone:
            return np.full(len(untouched), np.nan)
        true = self.yardstick.numbers(self.population.tally, None)
        numbers = np.clip(untouched + true - np.mean(self.alone, axis=0), 0.0, _MOST)
        numbers[_GAP] = true[_GAP]
        return np.asarray(numbers)


def remakes_of(rule: Rule) -> int:
    """Number of times a rule of a list is made again: fewer for linear programs and many groups."""
    most = 30 if rule.cost is None else 200
    return max(LEAST, min(most, 8 * most // len(rule.groups)))


def foreseen(audit: Audit, progress: Report | None = None) -> Audit:
    """The audit, whose verdict says whether withholding is expected to help new people.

    Where no repair is advised anyway, and where somebody has asked, there is nothing to ask.
    """
    if not audit.verdict.act or audit.verdict.helps != "unknown":
        return audit
    tally, tolerance = audit.tally.select(audit.compared), audit.feasibility.tolerance
    rule = REPAIRS["withhold"].make_with(tally, cost=audit.feasibility.cost, tolerance=tolerance)
    return unseen(tally, rule, remakes_of(rule), progress=progress).judged(audit)


def safe_level(confidence: float, replicates: int) -> float:
    """The level at which a quantile of replicates is rarely below the true quantile.

    Above a true quantile lie B (1 - c) of B replicates on average, give or take sqrt(B c (1 - c)).
    The level is higher than c by 1.28 times that, so that the quantile is too low in one case of
    ten: a tolerance limit.

    Examples
    --------
    >>> round(safe_level(0.95, 200), 4), round(safe_level(0.95, 10_000), 4)
    (0.9697, 0.9528)
    """
    return min(1.0, confidence + 1.28 * math.sqrt(confidence * (1.0 - confidence) / replicates))


def _falls_short(rule: Rule) -> bool:
    """Whether the rule comes as close as possible to what was asked, and no closer."""
    return rule.promise.equal != rule.promise.asked


def doubt_unseen(outlook: Unseen) -> str:
    """The doubt that a repair helps new people, in a sentence."""
    return SENTENCES["doubt_unseen"].format(
        what=titles_of(outlook.rule.promise),
        expected=number(outlook.goal.expected),
        unrepaired=number(outlook.goal.unrepaired),
    )


def noted(rule: Rule, outlook: Unseen) -> Rule:
    """The rule, with a note and a warning if new people are not expected to gain."""
    if outlook.better:
        return rule
    doubt = doubt_unseen(outlook)
    warnings.warn(doubt, UncertainWarning, stacklevel=2)
    return replace(rule, notes=(*rule.notes, doubt))


def is_made_from(rule: Rule, tally: Tally) -> bool:
    """Whether a rule was made from this tally, as far as its summary tells."""
    return bool(rule.made_from.get("groups") == summary_of(tally)["groups"])


def require_better(outlook: Unseen) -> None:
    """Raise :class:`isocost.NotAdvisedError` if new people are not expected to gain."""
    if not outlook.better:
        raise not_advised("must help people not seen", doubt_unseen(outlook), "unseen")
