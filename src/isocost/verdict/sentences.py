"""Every sentence of a verdict, once: terminal, notebook, page and displays fill in the same ones.

A name in braces is filled in.  ``{high}``, ``{low}`` and the like are groups, kept apart from words
as :class:`Name`, so that whoever writes markup can tell them from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isocost.checks import short
from isocost.errors import Problem, UsageError, command_text, spoken
from isocost.readings import Command
from isocost.tables import round_up

SENTENCES = {
    "gap_fpr": (
        "{People} who {negative} were given an average {score} of {high_value} if {high}, "
        "{low_value} if {low}"
    ),
    "gap_fnr": (
        "{People} who {positive} were given an average {score} of only {high_value} if {high}, "
        "{low_value} if {low}"
    ),
    "gap_weighted": "Errors cost {high_value} per person if {high}, {low_value} if {low}",
    "gap_plain": "Errors cost {high_value} if {high}, {low_value} if {low}",
    "of_many": "{gap}, the two extremes of {count} groups",
    "alike_fpr": "{People} who {negative} were given the same average {score} in every group",
    "alike_fnr": "{People} who {positive} were given the same average {score} in every group",
    "alike_weighted": "Errors cost the same per person in every group",
    "alike_plain": "Errors cost the same in every group",
    "headline_few": "There is too little data to compare the groups.",
    "headline_uncalibrated": "The scores of {off} do not mean what they say.",
    "headline_uncalibrated_one": (
        "The scores of {off} do not mean what they say: {mean_score} on average, when {base_rate} "
        "{positive}."
    ),
    "headline_moved": (
        "The costs of {one} and {other} differ by {now}, but by {then} if scores meant what they "
        "say."
    ),
    "headline_turned": (
        "The cost of {one} is {now} higher than that of {other}, but {then} lower if scores meant "
        "what they say."
    ),
    "headline_uncalibrated_between": (
        "On average, a score does not mean the same for {under} as for {over}."
    ),
    "headline_equal": "{alike}, to within {tolerance}.",
    "headline_unestablished": "{gap}. It is not established that this is more than chance.",
    "headline_unsettled": (
        "{gap}. Whether costs differ by more than {tolerance} is not established."
    ),
    "headline_same": "{alike}, as measured.",
    "headline_infeasible": ("{gap}. No repair can close this gap and keep the scores calibrated."),
    "headline_unhelpful": (
        "{gap}. For new people a repair is expected to do no better than nothing."
    ),
    "headline_uncertain": "{gap}. Whether that can be made equal is not established.",
    "headline_repair": (
        "{gap}. That can be made equal, but only by making scores worse for {changed}."
    ),
    "headline_closer": (
        "{gap}. That can be brought down to {tolerance}, but only by making scores worse for "
        "{changed}."
    ),
    "next_few": "Gather more data, or merge small groups, before anything is compared.",
    "next_uncalibrated": (
        "Recalibrate the scores of each group first, on other people than they were trained on. "
        "Until a score means the same for everybody, comparing errors says little."
    ),
    "next_one_label": (
        "Check the labels of {off}: all are the same, and the scores do not say so. Recalibration "
        "learns nothing from one label. Comparing errors can wait until labels and scores agree."
    ),
    "next_equal": "Nothing needs to be changed. Audit again when new data arrive.",
    "next_unestablished": "Leave everybody’s score as it is. {more_data}",
    "next_infeasible": (
        "Improve the scores of {costly}, or accept a difference of {smallest}.{decisions}"
    ),
    "next_unreachable": (
        "Gather more data, improve the scores of {costly}, or accept a difference of "
        "{smallest}.{decisions}"
    ),
    "next_unhelpful": "Leave everybody’s score as it is, and gather more data first.",
    "next_uncertain": (
        "Gather more data to be sure. With these data a coin would have to replace the score of "
        "{shares} by the group’s average."
    ),
    "next_repair": (
        "Decide whether equal errors are worth it: a coin would replace the score of {shares} by "
        "the group’s average. Other repairs do without the coin, or look at decisions only."
    ),
    "next_decisions": (
        " The error rates of decisions at a cut-off of {threshold} can still be made equal."
    ),
    "or": " or ",
    "several": "{count} groups",
    "any_of": "any of {count} groups",
    "others": "{count} other groups",
    "few_groups": (
        "A comparison takes two groups of at least {min_group} people, with {min_label} of each "
        "outcome; {large}."
    ),
    "few_none": "here no group is large enough",
    "few_one": "here only one group is large enough",
    "few_how": "{plan} tells how much data it takes; {merge} merges groups.",
    "off_group": (
        "{group}: scores are {mean_score} on average, and {base_rate} {positive}. At a given score "
        "they are off by {gap} on average, and beyond chance by at least {floor}."
    ),
    "off_more": "The scores of {count} more groups are off, too.",
    "off_how": "{recalibrate} makes scores mean the same in every group.",
    "recalibrated": (
        "Calibration moves the difference by {by} ({level} interval {by_low} to {by_high}). Shares "
        "to withhold for equal costs: {shares} as measured, {shares_then} if calibrated."
    ),
    "calibrated_no": (
        "Calibration moves the difference in cost between {one} and {other} by {by} ({level} "
        "interval {by_low} to {by_high}): too little, or too uncertain, to recalibrate first. What "
        "is said about equal costs assumes calibrated scores."
    ),
    "calibrated_unknown": (
        "No group’s scores were found to be miscalibrated by more than {limit}, but there is too "
        "little data to rule out {gap} for {group}."
    ),
    "calibrated_measured": (
        "At a given score, the scores of {group} are off by {gap} on average; without intervals it "
        "is not known whether that is more than chance."
    ),
    "calibrated_yes": ("No group’s scores were found to be miscalibrated by more than {limit}."),
    "same_yes": "On average, a score means the same in each group to within {limit}.",
    "same_no": (
        "On average, a score does not mean the same in each group: for {under} it is "
        "{under_score}, and {under_rate} {positive}; for {over} it is {over_score}, and "
        "{over_rate} {positive}. The difference between groups is {bias_low} to {bias_high} points "
        "({level} interval)."
    ),
    "range": "The costs of all groups lie between {lowest_cost} and {highest_cost}.",
    "difference": ("The difference is {difference} ({level} interval {span_low} to {span_high})."),
    "difference_many": (
        "The largest difference between two groups is {difference} ({level} interval {span_low} to "
        "{span_high})."
    ),
    "difference_measured": "The difference is {difference}.",
    "highest": "Which group’s errors cost most is not established: it could be {candidates}.",
    "more_data": (
        "About {times} times as many people would settle it, if costs differ as much as measured."
    ),
    "more_data_some": "More data may settle it.",
    "more_data_none": (
        "If costs differ as much as measured, no practical number of people settles it."
    ),
    "more_data_same": (
        "No number of people can show that costs are exactly equal, only that they are equal to "
        "within a tolerance."
    ),
    "more_data_how": "{plan} tells how many people of each group would settle it.",
    "limit": (
        "While scores mean what they say, the cost of {blocked}, now {blocked_cost}, can never "
        "exceed {ceiling}, the cost of giving everyone the same score. That leaves {short} out of "
        "reach."
    ),
    "excess": (
        "Equal costs need the cost of {high} to exceed what calibrated scores of {blocked} can "
        "have by no more than {tolerance}. As measured it does by {excess} ({level} interval "
        "{excess_low} to {excess_high})."
    ),
    "unhelpful": (
        "Among new people the costs are expected to differ by {expected} with a repair, and by "
        "{unrepaired} without one."
    ),
    "unhelpful_how": "{plan_repair} tells how much data a repair takes.",
    "helps_yes": (
        "Among new people the costs are expected to differ by {expected} with withholding, and by "
        "{unrepaired} without."
    ),
    "nobody": "nobody",
    "no_share": "no share is enough",
    "share_of": "{share} of {group}",
    "share_of_more": "smaller shares of {count} more groups",
    "way_out_scores": "Costs become equal if those of {costly} fall to {required}.",
    "way_out": (
        "Costs become equal if those of {costly} fall to {required}, or with a tolerance of "
        "{exactly}."
    ),
    "advice_share": (
        "For {group} the share that is needed has a {level} interval of {low} to {high}."
    ),
    "advice_share_open": (
        "For {group} the share that is needed is at least {low} ({level} interval); it is not "
        "established that any share is enough."
    ),
    "advice_repair": (
        "Withholding does that by a coin ({withhold}); coarsening rounds scores instead, equal "
        "scores to equal values, and leaves the decisions at {threshold} alone ({coarsen}). "
        "Both make the changed groups’ scores worse and nobody’s better."
    ),
    "advice_repair_decisions": (
        "Withholding does that by a coin ({withhold}); coarsening rounds scores instead, equal "
        "scores to equal values, but changes decisions at {threshold} ({coarsen_decisions}). Both "
        "make the changed groups’ scores worse and nobody’s better."
    ),
    "advice_withhold": (
        "Withholding does that by a coin ({withhold}); it makes the changed groups’ scores worse "
        "and nobody’s better."
    ),
    "advice_reconcile": (
        "For decisions there is another way: reconcile keeps scores calibrated and makes the rates "
        "of wrong decisions at {threshold} equal ({reconcile})."
    ),
    "advice_odds": (
        "Both error rates of the scores can be made equal only by giving up calibration ({odds})."
    ),
    "rule_left_out": "Not compared, and left with the scores that they have: {groups}.",
    "doubt_few": (
        "There is too little data to compare the groups: what this rule does to other people is "
        "not known"
    ),
    "doubt_uncalibrated": (
        "The scores of at least one group do not mean what they say: recalibrate them before they "
        "are repaired"
    ),
    "doubt_one_label": (
        "All labels of at least one group are the same, and its scores do not say so: check them "
        "before scores are repaired"
    ),
    "doubt_unestablished": (
        "It is not established that groups differ in {what} by more than the tolerance: this rule "
        "may only follow chance"
    ),
    "doubt_few_next": (
        "gather more data ({planning} tells how much), or merge small groups ({merge})"
    ),
    "doubt_uncalibrated_next": (
        "recalibrate each group first, in the same rule: {recalibrate_first}"
    ),
    "doubt_one_label_next": "check the labels, or leave the group out ({drop})",
    "doubt_unestablished_next": (
        "gather more data ({planning} tells how much), and leave the scores as they are until then"
    ),
    "doubt_unseen": (
        "For new people this repair is expected to do no better than nothing: groups would differ "
        "in {what} by {expected} with it, and by {unrepaired} without"
    ),
    "doubt_unseen_next": "gather more data ({plan_repair} tells how much)",
    "left_out": "Not compared, and not counted in these numbers: {groups}.",
    "unseen_infeasible": (
        "In {infeasible} of {remakes} remakes the goal was out of reach, and the rule came as "
        "close as possible."
    ),
    "unseen_undefined": (
        "{what} was undefined in {count} of {remakes} remakes, because a group {why}{about}."
    ),
    "unseen_defined_others": "; expected numbers and limits are about the others",
    "unseen_defined_these": ", as for this rule; expected numbers and limits are about these",
    "watch_approximate": (
        "Some people have several rows: each period counts as fewer rows, by its design effect. So "
        "the chance of a false alarm is approximate; it is higher if people occur in many periods."
    ),
    "unseen_others": (
        "{rule} was made from other people than these: the numbers above are for people it has not "
        "seen."
    ),
    "choice_fit": (
        "Take {method}: among new people groups are expected to differ in {what} by {expected} "
        "with it, and by {unrepaired} without. {among} {calibration}; accuracy is expected to be "
        "{accuracy}, without a repair {unrepaired_accuracy}; {changed} of people get another "
        "score, {coin}."
    ),
    "choice_only": "No other repair is feasible, supported by the data and helpful. It",
    "choice_best": "Of the repairs that are feasible, supported by the data and helpful, it",
    "choice_calibrated": "keeps scores calibrated",
    "choice_uncalibrated": "gives up calibration",
    "choice_coin": "{share} by a coin",
    "choice_no_coin": "nobody by a coin",
    "choice_few": (
        "Do nothing yet: there is too little data to compare the groups. Gather more ({planning} "
        "tells how much), or merge small groups ({merge})."
    ),
    "choice_unsound": (
        "Recalibrate first ({recalibrate}): the scores of {off} do not mean what they say, and no "
        "repair is judged by such scores."
    ),
    "choice_one_label": (
        "Check the labels of {off} first: all are the same, and the scores do not say so. No "
        "repair is judged by such scores."
    ),
    "choice_unestablished": (
        "Do nothing: it is not established that groups differ by more than the tolerance, and a "
        "repair may only follow chance. Gather more data ({planning} tells how much)."
    ),
    "choice_unhelpful": (
        "Do nothing: among new people, groups are expected to differ no less with {methods} than "
        "without. Gather more data first ({plan_repair} tells how much)."
    ),
    "choice_uninformative": (
        "Do nothing: what {methods} would leave of the scores tells nothing. Better scores would "
        "help more than a repair."
    ),
    "choice_infeasible": (
        "Do nothing, or allow groups to differ by a tolerance: no repair that was tried can reach "
        "the goal here."
    ),
    "untried": (
        "Not tried, because they take long for more than {most} groups: {methods}. Each is made if "
        "it is asked for by name."
    ),
    "choice_equal": "Do nothing: as measured, there is no difference to repair.",
    "choice_handed_over": (
        "These numbers are of the people it decides about: {share} are handed to a person."
    ),
    "choice_costs": "Costs are then expected to differ by {cost_expected}, and by "
    "{cost_unrepaired} without.",
    "beside_changed": "Between the two files the cost of errors {changes}.",
    "beside_same": "It is not established that the cost of errors changed for any group.",
    "beside_rose": "rose for {group} by {by} ({low} to {high})",
    "beside_fell": "fell for {group} by {by} ({low} to {high})",
    "pays_decisions": (
        "With {rule} decisions are right for {share} of people, no more than if {selected} were "
        "selected."
    ),
    "pays_decisions_of": (
        "With {rule} decisions about {groups} are right no more often than if {selected} there "
        "were selected."
    ),
    "pays_information": (
        "{rule} takes up to {share} of what the scores tell from the scores of {groups}."
    ),
    "why_tolerance": "{title}: impossible if groups may differ by no more than {tolerance}.",
    "why_decisions": (
        "{title}: impossible within {tolerance} without changing decisions at {threshold}."
    ),
    "why_nobody": "{title}: impossible at {threshold}, unless nobody is selected.",
    "why_everybody": "{title}: impossible at {threshold}, unless everybody is selected.",
    "why_share": "{title}: impossible if no more people may be handed over.",
    "why_no_share": "{title}: impossible, whatever share of people is handed over.",
    "why_nobody_left": "{title}: impossible, because hardly anybody of some group would be left.",
    "why_refused": "{title}: {problem}.",
    "why_data": "{title}: fewer than two groups have positives and negatives.",
    "why_unsolved": "{title}: no solution was found.",
    "possible_with_tolerance": " It is possible if groups may differ by {value}.",
    "possible_with_tolerance_of_rates": (
        " It is possible if its rates may differ by {value}: a tolerance of its own ({way})."
    ),
    "possible_with_share": " It is possible if a share of {value} is handed over.",
    "possible_with_none": " No tolerance changes that.",
    "note_uninformative": (
        "As measured, the scores of {groups} cost at least as much as the base rate for everybody "
        "would: they tell nothing. Better scores would help more than any repair."
    ),
    "read_percent": "Scores were read as percentages and divided by 100.",
    "read_logit": "Scores were read as log-odds x and became 1 / (1 + exp(-x)).",
    "read_rank": (
        "Scores were read as ranks: rank r of {low} to {high} became (r - {low} + 1/2) / {size}. A "
        "rank is not a probability: recalibrate before you compare costs."
    ),
    "read_scale": "Scores of several scales were added: {value}.",
    "read_decimal": "Numbers were read with a decimal comma.",
    "read_encoding": "Text was read as {value}.",
    "read_guessed": (
        "Text was read as {value}; groups look like {groups}; if that is wrong, pass {encoding}."
    ),
    "read_sheet": "Rows were read from sheet {value}.",
    "read_dropped": "Rows with missing values were dropped: {rows} in all, {columns}.",
    "read_unknown": (
        "Rows whose outcome or group is unknown were left out: {rows} in all, {columns}."
    ),
    "note_approximate": (
        "Some people have several rows, and intervals allow for it; those of {measures} only "
        "approximately."
    ),
    "note_several_groups": (
        "{count} people have rows in several groups. Intervals of differences take groups as "
        "independent, and are approximate."
    ),
    "read_repeated": (
        "{rows} rows have {ids} different ids, {times} rows each on average, and intervals take "
        "rows as independent. Say whose row it is: {person}."
    ),
    "read_without": "{count} without {column}",
    "note_recalibrated": (
        "If the scores of each group were calibrated, costs would differ by {if_calibrated} "
        "({level} interval {if_low} to {if_high}). Shares to withhold for equal costs: {shares} as "
        "measured, {shares_then} if calibrated."
    ),
    "no_cost": (
        "Left out of the comparison of costs, with fewer than {min_label} people of an outcome: "
        "{groups}. Whether their scores are calibrated was tested."
    ),
    "too_small": "Left out of every test, with fewer than {min_group} people: {groups}.",
    "with_people": "{group} ({count})",
    "note_weights": (
        "For calibrated scores the ratio of the weights of {cost} cancels out of equal cost; only "
        "miscalibration makes it matter."
    ),
}


WAYS = {
    "planning": ("ic.plan", ("plan",)),
    "plan_repair": ("ic.plan_repair", ("plan", "--method", "withhold")),
    "recalibrate": ("ic.recalibrate", ("recalibrate",)),
    "recalibrate_first": ("ic.recalibrate and rule.then", "--recalibrate isotonic"),
    "merge": ("tally.relabel", "--merge-groups"),
    "drop": ("tally.drop", "--drop-group"),
    "encoding": ("encoding=", "--encoding"),
}
"""What sentences point to, in Python and in a shell: an option, or the words of a command."""


@dataclass(frozen=True)
class Name:
    """The name of a group within a sentence."""

    text: str


Sentence = list[str | Name | Command]

_FIELD = re.compile(r"\{(\w+)\}")


def fill(template: str, **values: str | Name | Command | Sentence) -> Sentence:
    """A sentence with its fields filled; those of :data:`WAYS` fill themselves.

    Examples
    --------
    >>> fill("The cost of {high} is {cost}.", high=Name("men"), cost="0.5")
    ['The cost of ', Name(text='men'), ' is 0.5.']
    """
    sentence: Sentence = []
    for index, piece in enumerate(_FIELD.split(template)):
        value = piece if index % 2 == 0 else values[piece] if piece in values else way(piece)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, str) and sentence and isinstance(sentence[-1], str):
                sentence[-1] += part
            elif part != "":
                sentence.append(part)
    return sentence


@dataclass(frozen=True)
class Note:
    """A sentence that is selected by its key; its text is made when it is shown."""

    key: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_caution(self) -> bool:
        """True if it is printed even where there is room for few."""
        return self.key in CAUTIONS

    @property
    def sentence(self) -> Sentence:
        """The sentence with its fields filled."""
        return fill(SENTENCES[self.key], **self.fields)

    @property
    def commands(self) -> list[str]:
        """The commands that it names."""
        return [part.text for part in self.sentence if isinstance(part, Command)]

    def __str__(self) -> str:
        return plain(self.sentence)


CAUTIONS = (
    "note_uninformative", "read_percent", "read_logit", "read_rank", "read_scale", "read_dropped",
    "read_unknown", "read_repeated", "note_approximate", "note_several_groups",
)  # fmt: skip
"""Notes that are printed even where there is room for few."""


def way(name: str) -> str:
    """A function or command that a sentence points to, as the reader calls it."""
    python, shell = WAYS[name]
    return spoken(python, shell if isinstance(shell, str) else command_text(*shell))


def commands_named() -> list[str]:
    """The commands that sentences may name in a shell."""
    return [command_text(*shell) for _, shell in WAYS.values() if not isinstance(shell, str)]


def with_ways(template: str) -> str:
    """A template in which only the fields of :data:`WAYS` are filled."""
    return _FIELD.sub(lambda field: way(field[1]) if field[1] in WAYS else field[0], template)


def plain(sentence: Sentence) -> str:
    """A sentence as plain text."""
    return "".join(part if isinstance(part, str) else part.text for part in sentence)


def joined(sentences: Sequence[str | Name | Sentence], last: str = " and ") -> Sentence:
    """Several joined by commas, and the last by another word.

    Examples
    --------
    >>> plain(joined([Name("a"), Name("b"), Name("c")], " or "))
    'a, b or c'
    """
    template = "".join(
        f"{', ' if 0 < i < len(sentences) - 1 else last if i else ''}{{s{i}}}"
        for i in range(len(sentences))
    )
    return fill(template, **{f"s{i}": one for i, one in enumerate(sentences)})


def number(value: float, decimals: int = 3) -> str:
    """Three decimals, unless more are needed, with a real minus sign."""
    return f"{value:.{decimals}f}".replace("-", "−")


def percent(value: float, decimals: int = 1) -> str:
    """A share in percent, with one decimal unless more are needed."""
    return f"{number(100 * value, decimals)}\u00a0%"


CLEAR = 0.03
"""Groups that differ by this much still differ in whole percents, as a headline gives them."""


@dataclass(frozen=True)
class Figures:
    """The form in which numbers of an audit are written, so that groups differ in it.

    Attributes
    ----------
    decimals : int
        Of percents; plain numbers have two more.
    of_scores : bool
        Whether a cost is an average score, and so a percentage.
    """

    decimals: int = 1
    of_scores: bool = True

    @classmethod
    def of(cls, costs: Iterable[float], kind: str) -> Figures:
        """For groups with these costs.

        Examples
        --------
        >>> Figures.of([0.447, 0.360], "fpr").decimals, Figures.of([0.0105, 0.0093], "fpr").decimals
        (1, 2)
        >>> Figures.of([0.2014, 0.2011], "fpr").decimals
        2
        """
        low, high = min(costs := list(costs)), max(costs)
        decimals = 1
        while decimals < MOST_DECIMALS and (
            100 * high * 10**decimals < 100 or 0 < 100 * (high - low) * 10**decimals < 2
        ):
            decimals += 1
        return cls(decimals, kind in ("fpr", "fnr"))

    def percent(self, value: float) -> str:
        """A score or a share, in percent."""
        return percent(value, self.decimals)

    def plain(self, value: float) -> str:
        """A score or a share, as a plain number."""
        return number(value, self.decimals + 2)

    def cost(self, value: float) -> str:
        """A cost: in percent if it is an average score."""
        return self.percent(value) if self.of_scores else self.plain(value)

    def points(self, value: float) -> str:
        """The difference between two percentages, without its unit."""
        return number(100 * value, self.decimals)

    def difference(self, value: float) -> str:
        """The difference between two costs."""
        return f"{self.points(value)} points" if self.of_scores else self.cost(value)

    def bare(self, value: float) -> str:
        """A difference without its unit, which follows with another number."""
        return self.points(value) if self.of_scores else self.cost(value)

    def tolerance(self, value: float) -> str:
        """A difference that somebody chose, as it was chosen."""
        return f"{100 * value:.10g} points" if self.of_scores else f"{value:g}"

    def enough(self, value: float) -> str:
        """A tolerance, rounded up so that it is enough."""
        exact = round_up(value)
        known = self.of_scores and not math.isnan(value)
        return f"{100 * float(exact):.2f} points" if known else exact


MOST_DECIMALS = 3
"""More decimals of a percent than this nobody reads."""


@dataclass(frozen=True)
class Vocabulary:
    """Words for people, outcome and score in sentences.

    Parameters
    ----------
    people : str
        Whom the rows are about, such as "defendants".
    outcome : str, optional
        Words that complete "people who ..." for positive people, in the past tense: "were denied",
        "reoffended".  The words for the others are derived if these begin with an auxiliary verb
        or with a verb in -ed; otherwise they follow a slash: "repaid / did not repay".
    positive_means : str
        What a high score speaks of, such as "risk" or "chance".

    Examples
    --------
    >>> Vocabulary("defendants", "reoffended", "risk").fields()["negative"]
    'did not reoffend'
    >>> [Vocabulary(outcome=o).fields()["negative"] for o in ("were hired", "relapsed", "a / b")]
    ['were not hired', 'have not relapsed', 'b']
    >>> Vocabulary(outcome="denied").fields()["positive"]
    'were denied'
    """

    people: str = "people"
    outcome: str | None = None
    positive_means: str = "score"

    def __post_init__(self) -> None:
        for name in ("people", "outcome", "positive_means"):
            if getattr(self, name) is not None:
                _check_word(name, getattr(self, name))
        if self.outcome is not None:
            _outcomes(self.outcome)

    def fields(self) -> dict[str, str]:
        """The words that sentences are filled with."""
        people = self.people.strip()
        positive, negative = _outcomes(self.outcome or OUTCOME)
        return {
            "people": people,
            "People": people[:1].upper() + people[1:],
            "positive": positive,
            "negative": negative,
            "score": self.positive_means.strip(),
        }


OUTCOME = "turned out positive / turned out negative"
"""Default wording when no outcome is named."""

_AUXILIARY = r"(was|were|are|is|had|have|has|will|would|can|could|did|do)"

_OWNED = r"(?!not\b|been\b|\w+e[dn]\b)(.+)"

_NEGATIONS = (
    (rf"{_AUXILIARY} not (.+)", r"\1 \2"),
    (rf"had {_OWNED}", r"did not have \1"),
    (rf"have {_OWNED}", r"do not have \1"),
    (rf"{_AUXILIARY} (.+)", r"\1 not \2"),
    # Verbs whose past tense is surely the verb with "ed"; of "relapsed" one cannot tell.
    (r"(\w+(?:nd|ct|lt|rt|rn|nt|pt|ss|ck|rd|ld|ft))ed\b(.*)", r"did not \1\2"),
    (r"(\w+(?<!e)ed\b.*)", r"have not \1"),
)
"""Forms of an outcome, the first that matches, and the words for people without it."""

_DONE_TO_PEOPLE = {
    "accepted", "admitted", "approved", "arrested", "charged", "convicted", "denied", "detained",
    "diagnosed", "dismissed", "evicted", "expelled", "fired", "hired", "hospitalized", "infected",
    "injured", "insured", "promoted", "readmitted", "rearrested", "rejected", "released",
    "selected", "sentenced", "treated",
}  # fmt: skip
"""Verbs that need an object: alone they are meant as "were ..."."""


def _outcomes(words: str) -> tuple[str, str]:
    """The words that complete "people who ..." for positive people and for the others."""
    positive, _, negative = (part.strip() for part in words.partition("/"))
    positive = f"were {positive}" if positive in _DONE_TO_PEOPLE else positive
    if positive and negative:
        return positive, negative
    for form, negated in _NEGATIONS:
        if match := re.fullmatch(form, positive):
            return positive, match.expand(negated)
    rule = "must complete “people who ...”, for example “were denied” or “reoffended”"
    step = (
        "begin with were, had or did, or with a verb in -ed; with another verb, add the words for "
        "the others after a slash: “repaid / did not repay”"
    )
    raise UsageError(Problem("outcome", rule, short(words), step))


LONGEST_WORD = 80
"""Letters of what people, outcome or score are called."""


def _check_word(name: str, text: object) -> None:
    if isinstance(text, str) and text.strip() and len(text) <= LONGEST_WORD and text.isprintable():
        return
    rule = f"must be a few words, at most {LONGEST_WORD} letters on one line"
    step = f"for example {EXAMPLES[name]!r}, or leave it out"
    raise UsageError(Problem(name, rule, short(text), step))


EXAMPLES = {"people": "defendants", "outcome": "reoffended", "positive_means": "risk"}

NEUTRAL = Vocabulary()
"""The words as long as nobody chooses others."""
