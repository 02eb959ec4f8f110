"""Every sentence of a verdict, once: terminal, notebook, page and displays fill in the same ones.

A name in braces is filled in.  ``{high}``, ``{low}`` and the like are groups, kept apart from words
as :class:`Name`, so that whoever writes markup can tell them from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "SENTENCES",
    "Name",
    "Sentence",
    "fill",
    "joined",
    "number",
    "percent",
    "plain",
    "round_down",
    "round_up",
    "signed",
]

SENTENCES = {
    "headline_few": "There is too little data to compare the groups.",
    "headline_uncalibrated": "Scores of {off} do not mean what they say.",
    "headline_equal": "Errors cost every group the same.",
    "headline_within": "Errors cost every group the same, give or take {tolerance}.",
    "headline_unestablished": "It is not established whose errors cost more.",
    "headline_unestablished_many": (
        "It is not established that errors cost any group more than another."
    ),
    "headline_infeasible": (
        "Errors cost {high} more than {low}, and no calibrated repair can make it equal."
    ),
    "headline_infeasible_many": (
        "Errors cost {high} most, and no calibrated repair can make it equal for all."
    ),
    "headline_uncertain": (
        "Errors cost {high} more than {low}. Whether it can be made equal is not established."
    ),
    "headline_uncertain_many": (
        "Errors cost {high} most. Whether it can be made equal is not established."
    ),
    "headline_repair": (
        "Errors cost {high} more than {low}. It can be made equal, but only by making scores "
        "worse for {changed}."
    ),
    "headline_repair_many": (
        "Errors cost {high} most. It can be made equal, but only by making scores worse for "
        "{changed}."
    ),
    "headline_closer": (
        "Errors cost {high} more than {low}. The difference can be brought down to {tolerance}, "
        "but only by making scores worse for {changed}."
    ),
    "headline_closer_many": (
        "Errors cost {high} most. Differences can be brought down to {tolerance}, but only by "
        "making scores worse for {changed}."
    ),
    "as_measured": "As measured, {headline}",
    "or": " or ",
    "one_of": "one of {count} groups",
    "others": "{count} other groups",
    "few_groups": (
        "It takes two groups with at least {min_group} people each, {min_label} of each outcome; "
        "{large}."
    ),
    "few_none": "here none has them",
    "few_one": "here one has them",
    "few_next": (
        "Gather more data (isocost plan, or ic.plan, tells how much), or merge small groups "
        "(tally.relabel). The numbers are those of the people seen and say little about others."
    ),
    "off_group": (
        "The calibration gap of {group} is {gap}, beyond chance at least {floor}; on average its "
        "scores are too {way} by {bias}."
    ),
    "off_group_measured": (
        "The calibration gap of {group} is {gap}; on average its scores are too {way} by {bias}."
    ),
    "off_more": "So are those of {count} more groups.",
    "off_next": (
        "Recalibrate each group first, on other data than the scores were trained on: equal costs "
        "of scores that do not mean the same say little."
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
        "As measured, errors cost {high} {high_cost} and {low} {low_cost}. By chance alone the "
        "difference could be anything from {span_low} to {span_high}. {more_data} Until then, do "
        "not change anybody’s score because of it."
    ),
    "lede_unestablished_many": (
        "As measured, errors cost {high} most, {high_cost}, and {low} least, {low_cost}. By chance "
        "alone the largest difference between two groups could be anything from {span_low} to "
        "{span_high}. {more_data} Until then, do not change anybody’s score because of it."
    ),
    "more_data": (
        "If it is real, about {times} times as many rows would show it; isocost plan (ic.plan) "
        "tells how many of each group."
    ),
    "more_data_some": "More data may settle it.",
    "more_data_none": "If it is as small as it looks, no practical amount of data settles it.",
    "lede_difference": (
        "The difference is {difference}; by chance it could be anything from {span_low} to "
        "{span_high}."
    ),
    "lede_infeasible": (
        "Errors cost {high} {high_cost}. For {blocked} it is {blocked_cost} now, and as long as "
        "scores mean what they say it can never exceed {ceiling}: the cost of telling nobody "
        "apart. That leaves {short} out of reach."
    ),
    "lede_uncertain": (
        "It is feasible if the cost of {high} exceeds the highest that calibrated scores of "
        "{blocked} can have by no more than {tolerance}. As measured that excess is {excess}; by "
        "chance it could be anything from {excess_low} to {excess_high}."
    ),
    "lede_repair": (
        "Errors cost {high} {high_cost}, and {low} {low_cost}. They become equal, "
        "give or take {tolerance}, if a coin replaces the score of {shares} by the group’s "
        "average."
    ),
    "lede_repair_exact": (
        "Errors cost {high} {high_cost}, and {low} {low_cost}. They become equal if a coin "
        "replaces the score of {shares} by the group’s average."
    ),
    "nobody": "nobody",
    "share_of": "{share} of {group}",
    "share_of_more": "smaller shares of {count} more groups",
    "way_out": (
        "What would help: better scores for {high}, down to a cost of {required}, or accepting "
        "a difference of {smallest}."
    ),
    "advice_share": "By chance the share of {group} could be anything from {low} to {high}.",
    "advice_no_limit": "no limit",
    "advice_repair": (
        "Withholding does that by a coin; coarsening rounds scores instead, the same for equal "
        "scores, where the decisions at {threshold} allow it (isocost fit --method coarsen shows "
        "whether they do). Both make the changed groups’ scores worse, nobody’s better."
    ),
    "advice_reconcile": (
        "Another way: reconcile keeps scores calibrated and makes the rates of wrong decisions at "
        "{threshold} equal (isocost fit --method reconcile)."
    ),
    "advice_odds": (
        "Equal odds for both kinds of error can be had only by giving up calibration (isocost fit "
        "--method odds)."
    ),
    "doubt_few": (
        "There is too little data to compare the groups: what this rule does to other people is "
        "not known"
    ),
    "doubt_uncalibrated": (
        "The scores of at least one group do not mean what they say: recalibrate them before they "
        "are repaired"
    ),
    "doubt_unestablished": (
        "It is not established that groups differ in {what}: this rule may follow chance"
    ),
    "doubt_unseen": (
        "For new people this repair is expected to do no better than nothing: groups would differ "
        "in {what} by {expected} with it, and by {unrepaired} without"
    ),
    "doubt_few_next": "gather more data, or merge small groups",
    "doubt_uncalibrated_next": "recalibrate each group on other data, then fit again",
    "doubt_unestablished_next": "gather more data, and leave the scores as they are until then",
    "doubt_unseen_next": "gather more data (isocost plan --method tells how much)",
    "unseen_infeasible": (
        "In {infeasible} of {replicates} replicates the goal was out of reach, and the rule came "
        "as close as possible."
    ),
    "unseen_others": (
        "{rule} was made from other people than these: the numbers above are for people it has not "
        "seen."
    ),
    "note_uninformative": (
        "The scores of {groups} cost at least as much as giving everybody the base rate: they are "
        "worse than no scores. Recalibrate or replace them before anything else."
    ),
    "note_small": (
        "Too small to be compared, and listed only: {groups} (fewer than {min_group} people, or "
        "{min_label} of an outcome)."
    ),
    "note_weights": (
        "For calibrated scores the ratio of the weights of {cost} cancels out of equal cost; only "
        "miscalibration makes it matter."
    ),
}


@dataclass(frozen=True)
class Name:
    """The name of a group within a sentence."""

    text: str


Sentence = list[str | Name]

_FIELD = re.compile(r"\{(\w+)\}")


def fill(template: str, **values: str | Name | Sentence) -> Sentence:
    """A sentence with its fields filled.

    Examples
    --------
    >>> fill("Errors cost {high} {cost}.", high=Name("men"), cost="0.5")
    ['Errors cost ', Name(text='men'), ' 0.5.']
    """
    sentence: Sentence = []
    for index, piece in enumerate(_FIELD.split(template)):
        value = values[piece] if index % 2 else piece
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, str) and sentence and isinstance(sentence[-1], str):
                sentence[-1] += part
            elif part != "":
                sentence.append(part)
    return sentence


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
