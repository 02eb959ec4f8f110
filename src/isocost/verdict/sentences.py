"""Every sentence of a verdict, once: terminal, notebook, page and displays fill in the same ones.

A name in braces is filled in.  ``{high}``, ``{low}`` and the like are groups, kept apart from words
as :class:`Name`, so that whoever writes markup can tell them from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from isocost.errors import spoken

SENTENCES = {
    "costlier": "Errors are more costly for {high} than for {low}",
    "costliest": "Errors are most costly for {high}",
    "costlier_some": "Errors are more costly for some groups than for others",
    "headline_few": "There is too little data to compare the groups.",
    "headline_uncalibrated": "The scores of {off} do not mean what they say.",
    "headline_equal": "Errors are equally costly for every group.",
    "headline_within": "Errors are equally costly for every group, to within {tolerance}.",
    "headline_unestablished": (
        "It is not established that errors are more costly for one group than for the other."
    ),
    "headline_unestablished_many": (
        "It is not established that errors are more costly for any group than for another."
    ),
    "headline_infeasible": "{costlier}, and no calibrated repair can make the costs equal.",
    "headline_unhelpful": (
        "{costlier}. For new people a repair is expected to do no better than nothing."
    ),
    "headline_uncertain": ("{costlier}. Whether the costs can be made equal is not established."),
    "headline_repair": (
        "{costlier}. The costs can be made equal, but only by making scores worse for {changed}."
    ),
    "headline_closer": (
        "{costlier}. The costs can be brought within {tolerance} of each other, but only by making "
        "scores worse for {changed}."
    ),
    "as_measured": "As measured, {headline}",
    "or": " or ",
    "several": "{count} groups",
    "others": "{count} other groups",
    "few_groups": (
        "A comparison takes two groups of at least {min_group} people, with {min_label} of each "
        "outcome; {large}."
    ),
    "few_none": "here no group is large enough",
    "few_one": "here only one group is large enough",
    "few_next": (
        "Gather more data ({plan} tells how much), or merge small groups ({merge}). The "
        "numbers are those of the people seen and say little about others."
    ),
    "off_group": (
        "The calibration gap of {group} is {gap}, beyond chance at least {floor}; on average its "
        "scores are too {way} by {bias}."
    ),
    "off_group_measured": (
        "The calibration gap of {group} is {gap}; on average its scores are too {way} by {bias}."
    ),
    "off_more": "The scores of {count} more groups are off, too.",
    "off_next": (
        "Recalibrate each group first ({recalibrate}), on other data than "
        "the scores were trained on: equal costs of scores that do not mean the same say little."
    ),
    "too_low": "low",
    "too_high": "high",
    "calibrated_unknown": (
        "No group is shown to be off by more than 0.02, but there is too little data to rule out a "
        "calibration gap of {gap} for {group}."
    ),
    "calibrated_yes": (
        "No group is shown to be off by more than 0.02, so a score means about the same for each."
    ),
    "lede_equal": "The costs of all groups lie between {low_cost} and {high_cost}.",
    "lede_unestablished": (
        "As measured, the cost is {high_cost} for {high} and {low_cost} for {low}. The true "
        "difference could be anything from {span_low} to {span_high}. {more_data} Do not change "
        "anybody’s score because of it."
    ),
    "lede_unestablished_many": (
        "As measured, the cost is highest for {high}, {high_cost}, and lowest for {low}, "
        "{low_cost}. The true difference between the highest and the lowest could be anything from "
        "{span_low} to {span_high}. {more_data} Do not change anybody’s score because of it."
    ),
    "more_data": (
        "If the difference is real, about {times} times as many rows would show it; {plan} tells "
        "how many of each group."
    ),
    "more_data_some": "More data may settle it.",
    "more_data_none": "If it is as small as it looks, no practical amount of data settles it.",
    "lede_difference": (
        "The difference is {difference}; the true difference could be anything from {span_low} to "
        "{span_high}."
    ),
    "lede_difference_many": (
        "The largest difference between two groups is {difference}; the true one could be anything "
        "from {span_low} to {span_high}."
    ),
    "lede_infeasible": (
        "The cost is {high_cost} for {high}. For {blocked} it is {blocked_cost} now, and as long "
        "as scores mean what they say it can never exceed {ceiling}: the cost of telling nobody "
        "apart. That leaves {short} out of reach."
    ),
    "lede_uncertain": (
        "It is feasible if the cost of {high} exceeds the highest that calibrated scores of "
        "{blocked} can have by no more than {tolerance}. As measured that excess is {excess}; the "
        "true one could be anything from {excess_low} to {excess_high}."
    ),
    "lede_repair": (
        "The cost is {high_cost} for {high} and {low_cost} for {low}. On these data the costs "
        "become equal, to within {tolerance}, if a coin replaces the score of {shares} by the "
        "group’s average."
    ),
    "lede_repair_exact": (
        "The cost is {high_cost} for {high} and {low_cost} for {low}. On these data the costs "
        "become equal if a coin replaces the score of {shares} by the group’s average."
    ),
    "lede_unhelpful": (
        "Among new people the costs are expected to differ by {expected} with a repair, and by "
        "{unrepaired} without one. Gather more data first; {plan_repair} tells how much."
    ),
    "helps_yes": (
        "Among new people the costs are expected to differ by {expected} with withholding, and by "
        "{unrepaired} without."
    ),
    "helps_unknown": (
        "What a repair does to new people takes a moment to find out: {unseen} tells."
    ),
    "nobody": "nobody",
    "share_of": "{share} of {group}",
    "share_of_more": "smaller shares of {count} more groups",
    "way_out": (
        "What would help: better scores for {high}, down to a cost of {required}, or a "
        "tolerance of {smallest}."
    ),
    "advice_share": (
        "For {group} the share that is truly needed could be anything from {low} to {high}."
    ),
    "advice_share_open": (
        "For {group} the share that is truly needed could be {low} or more; it is not established "
        "that any share is enough."
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
    "advice_reconcile": (
        "For decisions there is another way: reconcile keeps scores calibrated and makes the rates "
        "of wrong decisions at {threshold} equal ({reconcile})."
    ),
    "advice_odds": (
        "Both error rates of the scores can be made equal only by giving up calibration ({odds})."
    ),
    "doubt_few": (
        "There is too little data to compare the groups: what this rule does to other people is "
        "not known"
    ),
    "doubt_small": (
        "Too few people to make a rule from: {groups} (fewer than {min_group}, or {min_label} of "
        "an outcome)"
    ),
    "doubt_uncalibrated": (
        "The scores of at least one group do not mean what they say: recalibrate them before they "
        "are repaired"
    ),
    "doubt_unestablished": (
        "It is not established that groups differ in {what}: this rule may only follow chance"
    ),
    "doubt_few_next": (
        "gather more data ({planning} tells how much), or merge small groups ({merge})"
    ),
    "doubt_small_next": ("leave them out ({drop}), or merge them with others ({merge})"),
    "doubt_uncalibrated_next": (
        "recalibrate each group first, in the same rule: {recalibrate_first}"
    ),
    "doubt_unestablished_next": (
        "gather more data ({planning} tells how much), and leave the scores as they are until then"
    ),
    "doubt_unseen": (
        "For new people this repair is expected to do no better than nothing: groups would differ "
        "in {what} by {expected} with it, and by {unrepaired} without"
    ),
    "doubt_unseen_next": "gather more data ({plan_repair} tells how much)",
    "unseen_infeasible": (
        "In {infeasible} of {replicates} replicates the goal was out of reach, and the rule came "
        "as close as possible."
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
    "choice_only": "No other repair is feasible, supported by the data and helps. It",
    "choice_best": "Of the repairs that are feasible, supported by the data and help, it",
    "choice_calibrated": "keeps scores calibrated",
    "choice_uncalibrated": "gives up calibration",
    "choice_coin": "{share} by a coin",
    "choice_no_coin": "nobody by a coin",
    "choice_few": (
        "Do nothing yet: there is too little data to compare the groups. Gather more (isocost "
        "plan, or ic.plan, tells how much), or merge small groups (--merge-groups, or "
        "tally.relabel)."
    ),
    "choice_small": (
        "Do nothing yet: some groups are too small to make a rule from. Leave them out "
        "(--drop-group, or tally.drop), or merge them with others (--merge-groups, or "
        "tally.relabel)."
    ),
    "choice_unsound": (
        "Recalibrate first (isocost recalibrate, or ic.recalibrate): the scores of {off} do not "
        "mean what they say, and no repair is judged by such scores."
    ),
    "choice_unestablished": (
        "Do nothing: it is not established that groups differ, and a repair may only follow "
        "chance. Gather more data (isocost plan, or ic.plan, tells how much)."
    ),
    "choice_unhelpful": (
        "Do nothing: among new people, groups are expected to differ no less with {methods} than "
        "without. Gather more data first (isocost plan --method, or ic.plan_repair, tells how "
        "much)."
    ),
    "choice_uninformative": (
        "Do nothing: what {methods} would leave of the scores tells nothing. Better scores would "
        "help more than a repair."
    ),
    "choice_infeasible": (
        "Do nothing, or allow groups to differ by a tolerance: no repair can reach the goal here."
    ),
    "choice_equal": "Do nothing: there is no difference to repair.",
    "choice_costs": "Costs are then expected to differ by {cost_expected}, and by "
    "{cost_unrepaired} without.",
    "not_made": "{method} is not feasible. Next: {steps}.",
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
    "read_sheet": "Rows were read from sheet {value}.",
    "note_small": (
        "Too small to be compared, and listed only: {groups} (fewer than {min_group} people, or "
        "{min_label} of an outcome)."
    ),
    "note_weights": (
        "For calibrated scores the ratio of the weights of {cost} cancels out of equal cost; only "
        "miscalibration makes it matter."
    ),
}


WAYS = {
    "planning": ("ic.plan", "isocost plan"),
    "plan_repair": ("ic.plan_repair", "isocost plan --method withhold"),
    "recalibrate": ("ic.recalibrate", "isocost recalibrate"),
    "recalibrate_first": ("ic.recalibrate and rule.then", "--recalibrate isotonic"),
    "merge": ("tally.relabel", "--merge-groups"),
    "drop": ("tally.drop", "--drop-group"),
}
"""What sentences point to, in Python and in a shell."""


@dataclass(frozen=True)
class Name:
    """The name of a group within a sentence."""

    text: str


Sentence = list[str | Name]

_FIELD = re.compile(r"\{(\w+)\}")


def fill(template: str, **values: str | Name | Sentence) -> Sentence:
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


def way(name: str) -> str:
    """What a sentence points to, as it is called where the sentence is read."""
    return spoken(*WAYS[name])


def with_ways(template: str) -> str:
    """A template in which only the fields of :data:`WAYS` are filled."""
    return _FIELD.sub(lambda field: way(field[1]) if field[1] in WAYS else field[0], template)


def plain(sentence: Sentence) -> str:
    """A sentence as plain text."""
    return "".join(part.text if isinstance(part, Name) else part for part in sentence)


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


def number(value: float) -> str:
    """Three decimals: more than anybody compares by eye."""
    return f"{value:.3f}"


def signed(value: float) -> str:
    """A number with a real minus sign."""
    return number(value).replace("-", "−")


def percent(value: float) -> str:
    """A share in percent, with one decimal."""
    return f"{100 * value:.1f}\u00a0%"


def round_up(value: float) -> str:
    """Four decimals, rounded up, so that the number as printed is enough."""
    return f"{math.ceil(value * 1e4 - 1e-9) / 1e4:.4f}"


def round_down(value: float) -> str:
    """Four decimals, rounded down."""
    return f"{math.floor(value * 1e4 + 1e-9) / 1e4:.4f}"
