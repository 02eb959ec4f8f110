"""The effect of a repair on people not seen: rules made again from samples of a population.

A rule is exact for the people it was made from and for nobody else.  How far off it is for others
is found by doing the same where the truth is known: a population is made from the tally, samples of
the same size are drawn from it, and the rule is made from each sample and measured on that
population.

With F a number of the rule on the people it was made from, T the same number on the population, and
F_b, T_b these two in replicate b:

    expected = F + mean of (T_b - F_b)
    limit    = F + quantile of (T_b - F_b), a little above that of the confidence

Where a rule makes groups equal, F and F_b are both 0 and what is left are the T_b themselves.

The population has the scores of the tally, but not its labels.  A score that occurs once has a
share of positives of 0 or 1 in the tally: samples would find patterns again that are there by
chance only, and every score would look miscalibrated.  So P(y = 1 | h) is the score h itself,
unless the data show that scores are miscalibrated; then it is h plus the mean residual y - h of
people with similar scores, shrunk as far as it may be chance.

``docs/unseen.md`` checks all of this by simulation.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from isocost.cells import Cells, Sums, add_up
from isocost.costs import Cost
from isocost.errors import IsocostError, IsocostWarning
from isocost.groups import Group
from isocost.measures.calibration import Levels, gap_debiased, gap_equal_width, levels_of
from isocost.measures.feasibility import compared_groups, fitted_groups
from isocost.measures.intervals import design_effects
from isocost.measures.rates import group_costs
from isocost.measures.table import MEASURES
from isocost.question import LEAST_REMAKES, Question, asks
from isocost.repairs.base import SAME, share_changed, summary_of, titles_of
from isocost.repairs.composition import edges_of, question_of
from isocost.repairs.table import RECALIBRATE, remade
from isocost.result import Record, Result
from isocost.rules import Rule, check_rule
from isocost.tables import number_text
from isocost.tallies import Tally, TallyLike
from isocost.typing import Floats, Ints
from isocost.verdict.sentences import SENTENCES, number
from isocost.verdict.wording import left_out_notes

NUMBERS = {
    "cost_difference": "costs differ by",
    "rate_difference": "FPR or FNR differ by",
    "calibration_gap": "largest calibration gap",
    "accuracy": "accuracy",
    "changed": "people changed",
    "handed_over": "handed over",
}
"""Estimated quantities and their table headings."""

GOAL = "goal"
"""The largest difference in what the rule makes equal."""

UNDEFINED = {"ppv": "selects nobody", "npv": "selects everybody"}
"""What a group does for which a rate is undefined."""

SELDOM = 0.05
"""Up to this share of remakes may be left out without saying that the numbers are about others."""

REMAKES = 200
"""Remakes of one rule, where nobody says how many."""

CHANCE = 0.01
"""Chance that scores of some group are taken for miscalibrated, though all are calibrated."""

Report = Callable[[float, int | None], None]

Gap = Callable[[Levels], float]


class Population:
    """The people that a tally speaks for: scores, and the chance of label 1 at each.

    Where people have several rows, rows count by the design effect in what is to be equal.
    """

    def __init__(self, tally: Tally, equal: Collection[str] = ()) -> None:
        self.grid, self.groups = tally.grid, tally.groups
        self._parts = [_Part.of(tally, *pair) for pair in enumerate(design_effects(tally, equal))]

    @cached_property
    def tally(self) -> Tally:
        """The population itself: each score has both labels, by their chances."""
        return self._tally([(part.rows, part.rows * part.chance) for part in self._parts])

    def draw(self, random: np.random.Generator, times: float = 1.0) -> Tally:
        """A sample in which each group is ``times`` as large as in the tally."""
        counts = []
        for part in self._parts:
            size = max(1, round(times * part.rows.sum()))
            rows = random.multinomial(size, part.rows / part.rows.sum())
            counts.append((rows.astype(float), random.binomial(rows, part.chance).astype(float)))
        return self._tally(counts)

    def _tally(self, counts: list[tuple[Floats, Floats]]) -> Tally:
        parts = zip(self._parts, counts, strict=True)
        # In the order of cells, so that they need not be merged.
        columns = [
            part.columns(index, label, rows - ones if label == 0 else ones)
            for index, (part, (rows, ones)) in enumerate(parts)
            for label in (0, 1)
        ]
        cells = Cells(*map(np.concatenate, zip(*columns, strict=True)))
        return Tally(self.grid, self.groups, cells)


@dataclass(frozen=True)
class _Part:
    """One group of a population, by bins.

    Rows with weights count as fewer equal ones, (sum w)^2 / sum w^2, each of weight
    sum w^2 / sum w: then a sum of weights varies as much as it does in truth.  So do rows of
    people with several, whose number is divided by the design effect.
    """

    bin: Ints
    rows: Floats
    weight: Floats
    score: Floats
    square: Floats
    chance: Floats

    @classmethod
    def of(cls, tally: Tally, group: int, effect: float) -> _Part:
        cells = tally.cells.take(tally.cells.of_group(group))
        bins, index = np.unique(cells.bin, return_inverse=True)
        w, wy, w2, wh, wh2 = (
            add_up(index, values, len(bins))
            for values in (cells.w, cells.w * cells.label, cells.w2 * effect, cells.wh, cells.wh2)
        )
        score = np.clip(wh / w, 0.0, 1.0)
        # All groups together are taken for miscalibrated by chance no more often than one alone.
        chance = chances(score, w, wy, w2, CHANCE / len(tally.groups))
        return cls(bins, w**2 / w2, w2 / w, score, wh2 / w, chance)

    def columns(self, group: int, label: int, rows: Floats) -> tuple[Any, ...]:
        """The columns of the cells with so many rows in each bin, without empty ones."""
        used = rows > 0
        rows, weight = rows[used], self.weight[used]
        w, ones = rows * weight, np.ones(len(rows), dtype=np.intp)
        powers = (w, w * weight, w * weight**3)
        sums = (rows, *powers, w * self.score[used], w * self.square[used])
        return (group * ones, label * ones, self.bin[used], *sums)


def chances(score: Floats, w: Floats, wy: Floats, w2: Floats, mistaken: float = CHANCE) -> Floats:
    """The chance of label 1 at each score of a group, from low scores to high.

    The group is cut into J parts.  If scores are calibrated, D = sum of w (y - h) over a part has
    variance V = sum of w^2 h (1 - h), about the same for each part, and the sum of D^2 / V is about
    chi-squared with J degrees of freedom.  If it is no larger than that allows, the chance is the
    score; by chance it is larger in a share ``mistaken`` of all cases.  Otherwise the chance is
    h + (1 - J / sum of D^2 / V) D / W, with W the weight of the part: the estimate of James and
    Stein.

    Examples
    --------
    >>> score, rows = np.array([0.2, 0.6]), np.array([100.0, 100.0])
    >>> chances(score, rows, np.array([22.0, 57.0]), rows)
    array([0.2, 0.6])
    >>> chances(score, rows, np.array([50.0, 85.0]), rows).round(2)
    array([0.49, 0.84])
    """
    from scipy.special import chdtri

    noise = w2 * np.maximum(score * (1.0 - score), 1e-6)
    positives = float((noise * (w / w2) ** 2).sum())
    # Fewer parts if the number of positives in one had a variance so small that it is not normal.
    parts = int(np.clip(positives / 4.0, 1, 10))
    middle = (np.cumsum(noise) - noise / 2.0) / noise.sum()
    block = np.minimum((middle * parts).astype(np.intp), parts - 1)
    total, off, noise = (add_up(block, values, parts) for values in (w, wy - w * score, noise))
    used = total > 0
    size, known = float((off[used] ** 2 / noise[used]).sum()), int(used.sum())
    if size <= chdtri(known, mistaken):
        return score
    mean = off[used] / total[used] * (1.0 - known / size)
    return np.asarray(np.clip(score + mean[(np.cumsum(used) - 1)[block]], 0.0, 1.0))


@dataclass(frozen=True)
class Yardstick:
    """Groups and question that a rule is measured by, and the question that it answers itself.

    The groups are those that the question compares, among those that the rule was made from.
    """

    groups: tuple[Group, ...]
    made_from: tuple[Group, ...]
    question: Question
    equal: tuple[str, ...]
    own: Question

    @classmethod
    def of(cls, tally: Tally, rule: Rule, question: Question) -> Yardstick:
        """The yardstick of a rule that was made from this tally."""
        some = tuple(group for group in tally.groups if group in rule.fitted) or tally.groups
        groups = compared_groups(tally.select(some), question.min_group)
        if rule.method.startswith(RECALIBRATE):
            # Its map is fitted on all groups, also on those that the repair leaves out.
            some = tuple(group for group in tally.groups if group in rule.groups)
        own = question.but(**question_of(rule))
        equal = tuple(rule.promise.equal)
        return cls(groups, some, question.among(groups), equal, own.among(groups))

    def numbers(
        self, tally: Tally, rule: Rule | None, gap: Gap | None = gap_equal_width, each: bool = False
    ) -> Floats:
        """The numbers of a rule, or of the original scores; NaN if undefined in some group.

        The last is the largest difference in what the rule is to make equal; after it come those of
        ``each``, in the order of ``equal``.
        """
        tally = tally.select(self.groups)
        after = tally if rule is None else rule.expected(tally)
        kinds = after.kinds(self.question.threshold)
        # What the rule makes equal is measured as the rule has it, whatever is asked besides.
        same = self.question.threshold == self.own.threshold
        own_kinds = kinds if same else after.kinds(self.own.threshold)

        def difference(name: str, cost: Cost, people: Sums) -> float:
            if name == "cost":
                values = group_costs(after.totals, after.groups, cost)
            else:
                values = MEASURES[name].of(people)
            return float(np.ptp(values))

        goals = [difference(name, self.own.cost, own_kinds) for name in self.equal]
        rates = [difference(name, self.question.cost, kinds) for name in ("fpr", "fnr")]
        gaps = [gap(levels_of(after, i)) if gap else math.nan for i in range(len(after.groups))]
        # The maximum of NumPy is NaN if a number is; that of Python may be another number.
        return np.array(
            [
                difference("cost", self.question.cost, kinds),
                np.max(rates),
                np.max(gaps),
                float(MEASURES["accuracy"].of(kinds.pooled())[0]),
                0.0 if rule is None else share_changed(tally, rule),
                after.share_handed_over,
                np.max(goals) if goals else math.nan,
                *(goals if each else ()),
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
    """The result of :func:`unseen`.

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
    people, kept_apart : float
        How many people of the groups compared it was made from, and measured on if others were
        kept apart.
    remakes, infeasible : int
        Number of times that the rule was made again, and that it could not be made as asked.
    confidence : float
        Of the limits.
    undefined : {name: int}
        Numbers, and rates that the rule makes equal, that were undefined in remakes, and in how
        many: a group that selects nobody has no PPV.  Expected numbers and limits are about the
        remakes in which the same numbers are undefined as for the rule.
    left_out : {group: float}
        The groups that are not compared and their numbers of people; no number is about them.
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
    remakes: int
    infeasible: int
    confidence: float
    undefined: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[Group, float] = field(default_factory=dict)
    backend: str | None = None

    @property
    def method(self) -> str:
        """The repair that made the rule."""
        return self.rule.method

    @property
    def better(self) -> bool:
        """True if new people are expected to be treated more equally than without the rule."""
        known = not math.isnan(self.goal.expected + self.goal.unrepaired)
        return not known or self.goal.expected < self.goal.unrepaired or not self.rule.rows

    def headline(self) -> str:
        """The people that the numbers are about, in a line."""
        if self.kept_apart is not None:
            how = f"measured on {self.kept_apart:,.0f} people kept apart"
        else:
            how = f"limits hold with confidence {self.confidence:.4g}"
        return f"For new people; fitted on {self.people:,.0f}; {how}"

    def notes(self) -> list[str]:
        """Sentences on groups left out, failed remakes, and a rule that is not expected to help."""
        failed = SENTENCES["unseen_infeasible"].format(**vars(self))
        return [
            *left_out_notes(self.left_out),
            *([failed] if self.infeasible else []),
            *(self._undefined(name, count) for name, count in self.undefined.items()),
            *([] if self.better else [f"{self.doubt}."]),
        ]

    def _undefined(self, name: str, count: int) -> str:
        """The sentence on a number that was undefined in some remakes."""
        known = name in NUMBERS or name in self.rule.promise.equal
        about = "others" if known else "these"
        seldom = known and count <= SELDOM * self.remakes
        return SENTENCES["unseen_undefined"].format(
            what=f'"{NUMBERS[name]}"' if name in NUMBERS else MEASURES[name].title,
            count=count,
            remakes=self.remakes,
            why=UNDEFINED.get(name, "has nobody it is about"),
            about="" if seldom else SENTENCES[f"unseen_defined_{about}"],
        )

    @property
    def doubt(self) -> str:
        """The sentence which says that new people are not expected to gain."""
        return SENTENCES["doubt_unseen"].format(
            what=titles_of(self.rule.promise),
            expected=number(self.goal.expected),
            unrepaired=number(self.goal.unrepaired),
        )

    def records(self) -> list[dict[str, Any]]:
        """A row for each number: unrepaired, fitted, expected and limit."""
        return [{"number": name, **vars(getattr(self, name))} for name in (*NUMBERS, GOAL)]

    def texts(self) -> dict[str, list[str]]:
        """The text of each number: unrepaired, fitted, expected and limit."""
        texts = {}
        for name in NUMBERS:
            if name == "handed_over" and not self.rule.defers:
                continue
            one: Outlook = getattr(self, name)
            style = ".2%" if name in ("changed", "handed_over") else ".4f"
            numbers = (one.unrepaired, one.fitted, one.expected, one.limit)
            texts[name] = [number_text(value, style) for value in numbers]
            if name == "calibration_gap" and self.kept_apart is None and one.unrepaired < SAME:
                # The population is calibrated by assumption: that is no finding.
                texts[name][0] = "-"
        return texts

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table."""
        rows = []
        for name, (*others, limit) in self.texts().items():
            least = "at least " if name == "accuracy" else ""
            rows.append([NUMBERS[name], *others, least + limit])
        return ["", "no repair", "fitted", "expected", "at most"], rows


ABOUT_RULE: Any = {
    "edges": lambda others: edges_of([check_rule(others["rule"])]),
    "defaults": lambda others: question_of(check_rule(others["rule"])),
}
"""Edges that a tally needs for a rule, and the question that the rule answers; see ``asks``."""


@asks("rule", "remakes", **ABOUT_RULE, also=("holdout",))
def unseen(
    tally: Tally,
    question: Question,
    rule: Rule,
    *,
    holdout: TallyLike | None = None,
    progress: Report | None = None,
) -> Unseen:
    """Say what a rule does to people other than those it was made from.

    The rule is made again from samples of a population that looks like the tally, and measured on
    that population; see :mod:`isocost.judging.unseen` for the formulas.

    Parameters
    ----------
    tally : Tally, or data
        What the rule was made from.
    rule : Rule
        Made by withhold, coarsen, equalize_odds, reconcile or hand_over.  What that makes equal is
        equal among the people it does not hand over.
    remakes, confidence, seed, min_group
        Fields of :class:`isocost.Question`: how often the rule is made again, how often the limits
        hold, the seed of the samples, and the least size of a group that is compared.
    cost, threshold
        For ``cost_difference``, ``rate_difference`` and ``accuracy``; by default those of the rule.
        ``goal`` is always measured by those of the rule.
    holdout : Tally or data, optional
        Of people that were kept apart: the rule is measured on them, and not made again.  The
        limits then allow for their number.
    progress : callable, optional
        Called from time to time with the share done.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Notes
    -----
    Where the rule cannot be made as asked in a replicate, because its goal is out of reach, it is
    made as close as possible: a population may well be one in which the goal is out of reach,
    though it was within reach for the people seen.  ``infeasible`` counts these replicates.
    Those in which it cannot be made at all are left out.  Where people have several rows, samples
    are of fewer rows, by the design effect of what the rule makes equal, and all numbers are
    approximate.

    All numbers are about the groups that the question compares, ``min_group`` people and five of
    each label, among those that the rule was made from (``rule.fitted``); ``left_out`` has the
    others.

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
    yardstick = Yardstick.of(tally, rule, question)
    left_out = left_out_of(tally, yardstick.groups)
    if holdout is None:
        remade(rule, tally)
        measured = tally.select(yardstick.made_from)
    else:
        apart = cast("Tally", holdout)
        known = fitted_groups(apart.select(g for g in apart.groups if g in yardstick.groups))
        yardstick, measured = replace(yardstick, groups=known), apart.select(known)
    fitted = yardstick.numbers(tally, rule)
    base = fitted if holdout is None else yardstick.numbers(measured, rule)
    remakes, random = question.remakes or REMAKES, np.random.default_rng(question.seed)
    replicates = Replicates(
        yardstick, Population(measured, rule.promise.equal), rule, remake=holdout is None
    )
    for index in range(remakes):
        replicates.add(random, base)
        if progress is not None:
            progress((index + 1) / remakes, None)
    expected, limit = replicates.summary(base, question.level)
    alone = replicates.unrepaired(yardstick.numbers(measured, None))
    if holdout is not None:
        # Measured, and not estimated; only the gap is known to be too high.
        expected, alone = (yardstick.numbers(measured, r, gap_debiased) for r in (rule, None))
        limit = np.where(_UPPER, np.maximum(limit, expected), np.minimum(limit, expected))
    estimates = {
        name: Outlook(*(float(values[i]) for values in (fitted, expected, limit, alone)))
        for i, name in enumerate((*NUMBERS, GOAL))
    }
    return Unseen(
        **estimates,
        rule=rule,
        people=tally.select(yardstick.groups).n,
        kept_apart=None if holdout is None else measured.n,
        remakes=remakes,
        infeasible=replicates.infeasible,
        undefined=replicates.undefined(),
        confidence=question.level,
        left_out=left_out,
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
        self, yardstick: Yardstick, population: Population, rule: Rule, remake: bool = True
    ) -> None:
        self.yardstick, self.population, self.remake = yardstick, population, remake
        self.rule = replace(rule, cost=rule.cost and rule.cost.among(population.groups))
        self.infeasible = 0
        self.seen: list[Floats] = []
        self.true: list[Floats] = []
        self.alone: list[Floats] = []
        self.unlike, self.made_unlike = Counter[str](), 0

    def add(self, random: np.random.Generator, base: Floats, times: float = 1.0) -> None:
        """Draw one more sample, ``times`` as large as the tally, and make the rule from it."""
        sample = self.population.draw(random, times)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IsocostWarning)
            try:
                rule, as_asked = self._made(sample) if self.remake else (self.rule, True)
                if rule is None:
                    return
                seen = self.yardstick.numbers(sample, rule, each=True)
                alone = self.yardstick.numbers(sample, None, gap=None)
            except IsocostError:
                return
        names = (*NUMBERS, GOAL, *self.yardstick.equal)
        known = np.append(~np.isnan(base), np.full(len(names) - len(base), not np.isnan(base[-1])))
        lost = {name for name, gone in zip(names, np.isnan(seen) & known, strict=True) if gone}
        # A rule that selects nobody in a group says little about one that selects somebody.
        if unlike := (lost - {GOAL}) | (set(rule.promise.equal) - set(self.yardstick.equal)):
            self.unlike.update(unlike)
            self.made_unlike += 1
            return
        # A rule that falls short is off by all that is measured, and not by more than it shows.
        self.seen.append(seen[: len(base)] if as_asked else base)
        self.true.append(self.yardstick.numbers(self.population.tally, rule))
        self.alone.append(alone)

    def _made(self, sample: Tally) -> tuple[Rule | None, bool]:
        """The rule from this sample, None if of other groups; and whether it is made as asked."""
        settings = self.rule.settings
        try:
            made = remade(self.rule, sample)
        except IsocostError:
            self.infeasible += 1
            if settings.get("infeasible") != "raise":
                raise
            closest = replace(self.rule, settings={**settings, "infeasible": "closest"})
            return remade(closest, sample), False
        # True if the rule comes as close as possible to what was asked, and no closer.
        short, own = (one.promise.equal != one.promise.asked for one in (made, self.rule))
        as_asked = made.fitted == self.rule.fitted and (own or not short)
        self.infeasible += not as_asked
        return (made if made.fitted == self.rule.fitted else None), as_asked

    def summary(self, base: Floats, confidence: float) -> tuple[Floats, Floats]:
        """The expected numbers and their limits."""
        if len(self.true) < LEAST_REMAKES:
            return np.full(len(base), np.nan), np.full(len(base), np.nan)
        true, off = np.array(self.true), np.array(self.true) - np.array(self.seen)
        expected = np.clip(base + off.mean(axis=0), 0.0, _MOST)
        # The gap is that on the population: on the people seen it is mostly chance.  What a rule
        # adds to the gap of the scores, or takes from it, is in proportion to the share of people
        # it changes, which is known for this rule.
        before = self.yardstick.numbers(self.population.tally, None)[_GAP]
        mean = true.mean(axis=0)
        ratio = base[_CHANGED] / mean[_CHANGED] if mean[_CHANGED] > 0 else 1.0
        expected[_GAP] = np.clip(before + (mean[_GAP] - before) * ratio, 0.0, 1.0)
        level = safe_level(confidence, len(true))
        low, high = (np.quantile(off, q, axis=0) for q in (1.0 - level, level))
        limit = np.clip(base + np.where(_UPPER, high, low), 0.0, _MOST)
        limit[_GAP] = max(limit[_GAP], float(np.quantile(true[:, _GAP], level)))
        return expected, np.where(_UPPER, np.maximum(limit, expected), limit)

    def undefined(self) -> dict[str, int]:
        """The number of remakes in which a number was undefined, by name."""
        made, known = len(self.true) + self.made_unlike, (*NUMBERS, *self.yardstick.equal)
        return {name: n if name in known else made - n for name, n in sorted(self.unlike.items())}

    def unrepaired(self, untouched: Floats) -> Floats:
        """The numbers of the original scores for new people."""
        if not self.alone:
            return np.full(len(untouched), np.nan)
        true = self.yardstick.numbers(self.population.tally, None)
        numbers = np.clip(untouched + true - np.mean(self.alone, axis=0), 0.0, _MOST)
        numbers[_GAP] = true[_GAP]
        return np.asarray(numbers)


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


def is_made_from(rule: Rule, tally: Tally) -> bool:
    """True if a rule was made from this tally, as far as its summary tells."""
    return bool(rule.made_from.get("groups") == summary_of(tally)["groups"])


def left_out_of(tally: Tally, groups: Collection[Group]) -> dict[Group, float]:
    """Numbers of people in all but these groups."""
    rows = zip(tally.groups, tally.totals.n.sum(axis=1), strict=True)
    return {group: float(n) for group, n in rows if group not in groups}
