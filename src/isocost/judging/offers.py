"""Offers: every repair for one question, made when first looked at, and what it does to people.

An offer has its rule, or why there is none and what would make it possible.  Audits, comparisons,
the page, ``isocost fit`` and the estimators read the same offers, so that they cannot disagree.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import numpy as np

from isocost.errors import (
    DataError,
    DeferralWarning,
    InfeasibleError,
    IsocostError,
    IsocostWarning,
    NotAdvisedError,
    Problem,
    UsageError,
    command_text,
    spoken,
)
from isocost.groups import Group
from isocost.judging.audit import Audit, audit
from isocost.judging.unseen import REMAKES, Report, Unseen, unseen
from isocost.measures.feasibility import Feasibility, compared_groups, fitted_groups, reach_of
from isocost.measures.rates import base_rate, require_all_decided
from isocost.measures.table import MEASURES
from isocost.question import LEAST_REMAKES, Question
from isocost.repairs.base import SAME, doubt_of, doubt_text
from isocost.repairs.hand_over import Deferral
from isocost.repairs.lp import FEWEST_DECIDED
from isocost.repairs.reconcile import Reconcilability
from isocost.repairs.table import REPAIRS, Repair
from isocost.result import Record
from isocost.rules import Promise, Rule, moved_bins
from isocost.tables import round_up
from isocost.tallies import Tally
from isocost.typing import Floats
from isocost.verdict.judgement import SLACK
from isocost.verdict.sentences import SENTENCES, fill, plain

CLOSE = 0.005
"""Accuracies that are this close are the same, for whether a repair leaves anything."""

LEFT = 0.5
"""A group whose scores keep less than this share of what they tell is named."""

PAID_BY = ("fpr", "fnr", "selection_rate", "ppv", "accuracy", "brier")
"""The measures of a group before and after a repair that show who pays for it."""

MOST_PROGRAMS = 30
"""With more groups than this, linear programs are solved only for repairs asked for by name."""


@dataclass(frozen=True)
class Changes(Record):
    """Effects of a rule on people, on average over the coin.

    Attributes
    ----------
    changed : float
        Share of people whose score changes, without those who are handed over.
    mean_change, largest_change : float
        Mean and maximum of ``|new - old|``; the mean is over everybody, changed or not, and those
        who are handed over count as 0.
    by_coin : float
        Share of people whose score is randomized, or who are handed over by a coin.
    decisions : float
        Share of people whose decision at the threshold changes, as far as the score decides.
    gini : float
        Gini coefficient of ``|new - old|``: 0 if everybody is changed alike, near 1 if few bear
        it all.  NaN if nobody is changed.
    raised, lowered : float
        Share of people whose score rises, and falls.
    mean_rise, mean_fall : float
        Mean distance by which these scores rise, and fall; NaN if none does.
    handed_over : float
        Share of people who get no score, because somebody else decides.
    """

    changed: float
    mean_change: float
    largest_change: float
    by_coin: float
    decisions: float
    gini: float
    raised: float
    lowered: float
    mean_rise: float
    mean_fall: float
    handed_over: float = 0.0


def changes(tally: Tally, rule: Rule, threshold: float, group: int | None = None) -> Changes:
    """Measure what a rule does to everybody, or to one group of the tally.

    The old score is the mean of its bin, so distances are exact to a bin's width.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> result = changes(compas(), ic.withhold(compas(), "fpr", 0.07), 0.5, group=1)
    >>> round(result.changed, 4), round(result.largest_change, 4)
    (0.5194, 0.3835)
    """
    groups = range(len(tally.groups)) if group is None else [group]
    first, cells = tally.grid.first_bin(threshold), tally.cells
    scores, parts = cells.wh / cells.w, []
    for portion in (one for index in groups for one in rule.portions(tally, index)):
        mean, weight = scores[portion.cells], cells.w[portion.cells] * portion.share
        above = cells.bin[portion.cells] >= first
        if portion.row is None or portion.row.defers:
            after = above
        elif portion.row.action == "set":
            after = np.full(len(mean), portion.after(mean[:1]) >= threshold)
        else:
            after = moved_bins(cells.take(portion.cells), portion.row, tally.grid) >= first
        flipped = (after != above) & (weight > 0)
        # NaN for people who are handed over.
        parts.append((weight, portion.after(mean) - mean, portion.by_coin, flipped))
    weight, move, by_coin, flipped = map(np.concatenate, zip(*parts, strict=True))
    share = weight / weight.sum()
    handed = np.isnan(move)
    move = np.where(handed, 0.0, move)
    distance = np.abs(move)
    moved = (distance > SAME) & (weight > 0)
    up, down = (share * moved * (sign * move > 0) for sign in (1.0, -1.0))
    return Changes(
        changed=float(share[moved].sum()),
        mean_change=float(share @ distance),
        largest_change=float(distance[moved].max(initial=0.0)),
        by_coin=float(share[by_coin].sum()),
        decisions=float(share[flipped].sum()),
        gini=gini(distance, share),
        raised=float(up.sum()),
        lowered=float(down.sum()),
        mean_rise=float(up @ distance / up.sum()) if up.any() else math.nan,
        mean_fall=float(down @ distance / down.sum()) if down.any() else math.nan,
        handed_over=float(share[handed].sum()),
    )


def gini(values: Floats, weights: Floats) -> float:
    """The Gini coefficient of values with weights; NaN if all values are 0.

    Half the mean absolute difference of two people drawn at random, over the mean.

    Examples
    --------
    >>> gini(np.array([1.0, 1.0]), np.array([0.5, 0.5])), gini(np.array([0.0, 1.0]), np.ones(2))
    (0.0, 0.5)
    """
    order = np.argsort(values, kind="stable")
    x, w = values[order], weights[order] / weights.sum()
    mean = float(w @ x)
    if mean <= SAME:
        return math.nan
    # Twice the area between the line of equality and the Lorenz curve.
    lorenz = np.concatenate([[0.0], np.cumsum(w * x)]) / mean
    return max(0.0, 1.0 - float((w * (lorenz[1:] + lorenz[:-1])).sum()))


@dataclass(frozen=True)
class Compared(Record):
    """One rule, or the original scores, and the groups that the question compares.

    ``audit`` is about the scores after the rule, on average over the coin; ``changes`` is what it
    does to everybody, ``by_group`` to each group.  ``information`` is the share of what scores
    tell about outcomes that is left in each group: of the mean score of positives less that of
    negatives.
    """

    written = ("*_of_groups", "*_of_all", "changes", "by_group", "information", "as_good_as")

    audit: Audit
    changes: Changes
    by_group: dict[Group, Changes]
    information: dict[Group, float]

    @property
    def as_good_as(self) -> dict[str, list[Group]]:
        """The groups in which selecting nobody, or everybody, is right as often as the scores."""
        found: dict[str, list[Group]] = {}
        for group, one in self.audit.groups.items():
            if one.accuracy <= max(one.base_rate, 1.0 - one.base_rate) + SLACK:
                found.setdefault("nobody" if one.base_rate < 0.5 else "everybody", []).append(group)
        return found

    @property
    def drained(self) -> dict[Group, float]:
        """The groups whose scores lose most of what they tell, and the share that is lost."""
        return {group: 1.0 - left for group, left in self.information.items() if left < LEFT}

    def numbers(self) -> dict[str, float]:
        """Differences between groups and effects on people, by name.

        The calibration gap and ``largest_gini`` are the largest of a group.
        """
        ginis = [c.gini for c in self.by_group.values() if not math.isnan(c.gini)]
        return {
            "cost_difference": self.audit.disparity.difference,
            "equalized_odds_difference": self.audit.equalized_odds_difference,
            "calibration_gap": max(one.calibration_gap for one in self.audit.groups.values()),
            "accuracy": self.audit.overall.accuracy,
            **asdict(self.changes),
            "largest_gini": max(ginis, default=math.nan),
            "least_information": float(np.fmin.reduce(list(self.information.values()))),
        }

    def _of_groups(self) -> dict[str, dict[Group, float]]:
        names = {"costs": "cost", "selection_rates": "selection_rate"}
        names |= {name: name for name in PAID_BY if name not in names.values()}
        groups = self.audit.groups.items()
        return {key: {g: one[name] for g, one in groups} for key, name in names.items()}

    def _of_all(self) -> dict[str, float]:
        numbers = self.numbers()
        names = ("calibration_gap", "accuracy", "equalized_odds_difference")
        return {"disparity": numbers["cost_difference"], **{name: numbers[name] for name in names}}


@dataclass(frozen=True)
class Changed(Record):
    """The numbers of a group before and after a repair, as in an audit, and what it changes."""

    before: Mapping[str, float]
    after: Mapping[str, float]
    changes: Changes


def compared(tally: Tally, rule: Rule, question: Question) -> Compared:
    """The effect of a rule on the groups that the question compares, on average over the coin."""
    groups = fitted_groups(tally, question.min_group)
    tally, question = tally.select(groups), question.among(groups)
    after = rule.expected(tally)
    require_all_decided(after)
    before, left = (np.diff(one.totals.wh / one.totals.w, axis=1)[:, 0] for one in (tally, after))
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.where(before > 0.0, left / before, np.nan).tolist()
    return Compared(
        # These groups are compared, however few of their people are left to decide about.
        audit=audit(after, question=question.but(confidence=None, min_group=0)),
        changes=changes(tally, rule, question.threshold),
        by_group={
            group: changes(tally, rule, question.threshold, index)
            for index, group in enumerate(tally.groups)
        },
        information=dict(zip(tally.groups, information, strict=True)),
    )


def unrepaired(tally: Tally, question: Question) -> Compared:
    """The original scores, as :func:`compared` has them."""
    return compared(tally, Rule(groups=tally.groups, rows=(), method="none"), question)


NEVER = ("data", "no_share", "nobody_left", "refused", "unsolved")
"""Reasons why there is no rule that no setting takes away."""


class Attempt(NamedTuple):
    """A rule, or the error of the function that makes it."""

    rule: Rule | None
    error: IsocostError | None = None
    told: tuple[Warning | str, ...] = ()


@dataclass(frozen=True, eq=False)
class Offer(Record):
    """A repair for a question: its rule, or why there is none; made when first looked at.

    Parameters
    ----------
    name : str
        The repair, by its name in :data:`isocost.REPAIRS`.
    tally, question
        What the rule is made from, and for.
    options : {name: value}
        Options of the repair.  Without a share to hand over, the least whole percentage that is
        enough is taken.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> offers = ic.compare(compas(), cost="fpr").offers
    >>> offers["withhold"].rule, offers["withhold"].why_not, offers["withhold"].possible_with
    (None, 'tolerance', {'tolerance': 0.0539})
    >>> offers["reconcile"].needs_coin, offers["reconcile"].standing
    (True, 'fit')
    """

    also = ("why_not", "possible_with", "better_scores", "doubt", "standing", "needs_coin",
            "needs_group", "said")  # fmt: skip
    unwritten = ("name", "tally", "question", "options", "progress")

    name: str
    tally: Tally = field(repr=False)
    question: Question
    options: Mapping[str, Any] = field(default_factory=dict)
    progress: Report | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # Who is told of the progress stays here.
        return vars(self) | {"progress": None}

    @property
    def repair(self) -> Repair:
        """The row of the table of repairs."""
        return REPAIRS[self.name]

    @cached_property
    def _attempt(self) -> Attempt:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", IsocostWarning)
            try:
                rule = self._rule()
            except IsocostError as error:
                return Attempt(None, error)
        # Nothing can be measured of a group with less than one person of a label.
        if rule.defers and (rule.expected(self.tally.select(rule.fitted)).totals.n < 1.0).any():
            must, step = "must leave people of each outcome to decide about", "hand over fewer"
            problem = Problem("share", must, "hardly anybody in some group", step)
            return Attempt(None, DataError(problem))
        return Attempt(rule, told=tuple(one.message for one in told))

    def _rule(self, **options: Any) -> Rule:
        options = {**self.options, **options}
        if self.repair.defers and "share" not in options:
            least = Offer(self.name, self.tally, self.question, {**options, "share": 0.0})
            reach = getattr(least.error, "feasibility", None)
            options["share"] = 0.0
            if isinstance(reach, Deferral) and not math.isnan(reach.smallest_share):
                # With the very least nothing is left to choose; half a percent more tells more.
                share = math.ceil(100.0 * reach.smallest_share + 0.5) / 100.0
                options["share"] = min(share, 1.0 - FEWEST_DECIDED)
        return self.repair.rule(self.tally, self.question, **options)

    @property
    def rule(self) -> Rule | None:
        """The rule; None if it cannot be made, and it has no rows if there is nothing to change."""
        return self._attempt.rule

    @property
    def error(self) -> IsocostError | None:
        """The error of the function that makes the rule, if it cannot be made."""
        return self._attempt.error

    @property
    def why_not(self) -> str:
        """The reason why there is no rule, a key; "" if there is one.

        "tolerance": groups must be allowed to differ; "decisions": so, or decisions must be allowed
        to change; "nobody" or "everybody": only by selecting nobody, or everybody; "share": more
        people must be handed over; "no_share": no share is enough; "nobody_left": hardly anybody
        would be left to decide about; "data": too few groups can be compared; "refused": an
        argument is invalid; "unsolved": a solver failed.
        """
        error = self.error
        if error is None:
            return ""
        reach = getattr(error, "feasibility", None)
        if isinstance(reach, Deferral):
            return "no_share" if math.isnan(reach.smallest_share) else "share"
        if isinstance(reach, Reconcilability) and reach.corner is not None:
            return reach.corner.selected
        if isinstance(error, InfeasibleError):
            return "tolerance"
        name = error.problems[0].name
        if isinstance(error, UsageError):
            return "decisions" if name in ("decisions", "coarsen") else "refused"
        if isinstance(error, DataError):
            return "nobody_left" if name == "share" else "data"
        return "unsolved"

    @cached_property
    def possible_with(self) -> dict[str, float]:
        """The setting with which the repair can be made and changes something; {} if there is none.

        It was tried.
        """
        if self.why_not in ("", *NEVER):
            return {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IsocostWarning)
                closest = self._rule(infeasible="closest")
        except IsocostError:
            return {}
        if not closest.rows:
            return {}
        if self.why_not == "share":
            name, value = "share", max(closest.promise.handed_over.values(), default=math.nan)
        else:
            name, value = "tolerance", max(closest.promise.equal.values())
        value = float(round_up(value))
        trial = self.but(**{name: value})
        return {name: value} if trial.rule is not None and trial.rule.rows else {}

    def but(self, **changes: Any) -> Offer:
        """An offer of this repair with other options, or other fields of the question."""
        own = {option.name for option in self.repair.options}
        options = {name: value for name, value in changes.items() if name in own}
        others = {name: value for name, value in changes.items() if name not in own}
        question = self.question.but(**others)
        return Offer(self.name, self.tally, question, {**self.options, **options})

    @property
    def better_scores(self) -> dict[Group, float]:
        """The groups whose scores would have to cost less, and at most how much."""
        reach = getattr(self.error, "feasibility", None)
        if not isinstance(reach, Feasibility):
            return {}
        most = reach.required_cost + reach.tolerance
        return {group: most for group, cost in reach.costs.items() if cost > most}

    @property
    def said(self) -> str:
        """The reason why there is no rule, and what would make it possible; "" if there is one."""
        if not self.why_not:
            return ""
        problem = self.error.problems[0] if self.error is not None else None
        why = fill(
            SENTENCES[f"why_{self.why_not}"],
            title=self.repair.title,
            problem="" if problem is None else f"{problem.name} {problem.rule}",
            tolerance=f"{self.question.tolerance:g}",
            threshold=f"{self.question.threshold:g}",
        )
        hint = fill(SENTENCES["possible_with_none"])
        for name, value in self.possible_with.items():
            own = "_of_rates" if name == "tolerance" and self.repair.goal == "rates" else ""
            asked = {name: value} | self.question.changed("threshold", "min_group")
            words = ", ".join(f"{option}={setting:g}" for option, setting in asked.items())
            python = f"ic.{self.repair.function}(tally, {words})"
            shell = command_text("fit", "--method", self.name, "--tolerance", f"{value:g}")
            fields = {"value": f"{value:g}", "way": spoken(python, shell)}
            hint = fill(SENTENCES[f"possible_with_{name}{own}"], **fields)
        return plain([*why, *([] if self.why_not in NEVER else hint)])

    @property
    def needs_coin(self) -> bool:
        """True if a coin decides about somebody's score."""
        return self.rule is not None and self.rule.promise.coin

    @property
    def needs_group(self) -> bool:
        """True if the group must be known when a decision is made."""
        return True

    @cached_property
    def doubt(self) -> str:
        """The reason why the data do not support the repair, a key; "" if they do."""
        if self.rule is not None:
            fitted = self.rule.fitted if self.rule.rows else ()
        else:
            # What cannot be established is not called infeasible.
            known = self.repair.goal == "cost" and self.why_not != "data"
            fitted = fitted_groups(self.tally, self.question.min_group) if known else ()
        if not fitted:
            return ""
        return doubt_of(self.tally, fitted, self._promise, self.question)

    @property
    def _promise(self) -> Promise:
        """The promise of the rule; if it cannot be made, equal costs."""
        limit = {"cost": self.question.tolerance}
        return Promise(limit, limit, True, False) if self.rule is None else self.rule.promise

    @cached_property
    def compared(self) -> Compared:
        """The effect of the rule on the people it is made from."""
        return compared(self.tally, self.made(), self.question)

    @property
    def groups(self) -> dict[Group, Changed]:
        """Each group before and after; empty if there is no rule."""
        if self.rule is None:
            return {}
        before = unrepaired(self.tally, self.question).audit.groups
        after = self.compared
        return {
            group: Changed(before[group].values, after.audit.groups[group].values, changes)
            for group, changes in after.by_group.items()
        }

    @cached_property
    def unseen(self) -> Unseen | None:
        """The effect of the rule on people not seen; None without a rule that changes something."""
        if self.rule is None or not self.rule.rows:
            return None
        remakes = self.question.remakes
        if remakes is None:
            # Linear programs and many groups take long.
            most = REMAKES if self.rule.cost is not None else 30
            remakes = max(LEAST_REMAKES, min(most, 8 * most // len(self.rule.fitted)))
        asked = self.question.but(remakes=remakes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IsocostWarning)
            return unseen(self.tally, self.rule, question=asked, progress=self.progress)

    @cached_property
    def uninformative(self) -> bool:
        """True if the repair takes away what scores told.

        The same decision for everybody would be right more often; calibrated scores of a group cost
        as much as its base rate for everybody; or those who matter are handed over.
        """
        rule = self.rule
        if rule is None or not rule.rows:
            return False
        if any(isinstance(one, DeferralWarning) for one in self._attempt.told):
            return True
        now, question = self.tally.select(rule.fitted), self.question.among(rule.fitted)
        both = (now, rule.expected(now))
        pooled = (one.kinds(question.threshold).pooled() for one in both)
        before, after = (float(MEASURES["accuracy"].of(sums)[0]) for sums in pooled)
        positives = float(base_rate(now.totals.pooled())[0])
        if after < max(positives, 1.0 - positives) - CLOSE <= before:
            return True
        told, left = (reach_of(one, question).uninformative for one in both)
        return rule.promise.calibrated and not set(left) <= set(told)

    @property
    def standing(self) -> str:
        """The first thing that speaks against it, a key; "fit" if nothing does."""
        if self.rule is None:
            return self.doubt or "infeasible"
        outlook = self.unseen
        if outlook is None:
            return "equal"
        if self.doubt:
            return self.doubt
        if not outlook.goal.unrepaired > outlook.goal.expected + SLACK:
            return "unhelpful"
        return "uninformative" if self.uninformative else "fit"

    def made(self, warn: bool = False) -> Rule:
        """The rule; raises the error of the function that makes it, and repeats its warnings."""
        for one in self._attempt.told if warn else ():
            warnings.warn(one, stacklevel=2)
        if self._attempt.error is not None:
            raise self._attempt.error
        return cast("Rule", self._attempt.rule)

    def advised(self, warn: bool = False) -> Rule:
        """The rule, unless it is not supported by the data, or not expected to help new people.

        Raises :class:`isocost.NotAdvisedError`, or the error of the function that makes it.
        """
        if self.doubt:
            text = doubt_text(self.doubt, self._promise)
            raise not_advised("must be supported by the data", text, self.doubt)
        return self.made(warn)


def not_advised(rule: str, doubt: str, reason: str) -> NotAdvisedError:
    """The error for a repair that can be made but should not be."""
    step = plain(fill(SENTENCES[f"doubt_{reason}_next"]))
    step += spoken("", "; or pass --anyway")
    return NotAdvisedError(Problem("repair", rule, doubt, step))


class Offers(Mapping[str, Offer]):
    """Every repair for a question, by name.

    Any repair can be asked for by name.  The list leaves out those that take a linear program if
    there are more than :data:`MOST_PROGRAMS` groups.
    """

    def __init__(self, tally: Tally, question: Question, progress: Report | None = None) -> None:
        self.tally, self.question, self.progress = tally, question, progress
        many = len(compared_groups(tally, question.min_group)) > MOST_PROGRAMS
        self._listed = [n for n, one in REPAIRS.items() if one.goal == "cost" or not many]
        self._made: dict[str, Offer] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Who is told of the progress stays here.
        return vars(self) | {"progress": None}

    def __getitem__(self, name: str) -> Offer:
        if name not in self._made:
            if name not in REPAIRS:
                raise KeyError(name)
            report = None if self.progress is None else partial(self._report, name)
            self._made[name] = Offer(name, self.tally, self.question, progress=report)
        return self._made[name]

    def _report(self, name: str, share: float, rows: int | None) -> None:
        place = self._listed.index(name) if name in self._listed else 0
        if self.progress is not None:
            self.progress((place + share) / len(self), rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)
