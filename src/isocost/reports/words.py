"""Every sentence of the report, in one place: the page's script fills in the same ones.

A name in braces is filled in, by Python for the audit's own settings and by the script for any
others.  ``{high}``, ``{low}`` and the like are groups; they are never part of the markup.
"""

from __future__ import annotations

from isocost.repairs.registry import REPAIRS
from isocost.verdict.sentences import SENTENCES

__all__ = ["COSTS", "GLOSSARY", "HEADS", "METHODS", "THRESHOLD_HEADS", "WORDS"]

WORDS = {
    **SENTENCES,
    "stale": (
        "You changed the settings. Intervals were computed for the audit’s own ({own}) and are "
        "left out where they no longer hold.{chance}"
    ),
    "stale_chance": " So whether this difference is more than chance is not known here.",
    "settings": (
        "{axis}. Allowed difference: {tolerance}. Decisions at a score of {threshold}.{off}"
    ),
    "off_groups": " Switched off: {groups}.",
    "why_equal": "Why it can be equal",
    "why_closer": "Why it can come that close",
    "why_not": "Why it cannot be equal",
    "why_not_measured": "As measured, it cannot be equal",
    "why_nothing": "Where the groups are",
    "geometry_axes": (
        "Each mark is a group. Further right, people who turned out negative had higher scores: "
        "false alarms. Further up, people who turned out positive had lower scores: misses. "
        "The corner at zero is perfect."
    ),
    "geometry_line": (
        "Scores that mean what they say can only lie on the group’s own line, whose slope is "
        "fixed by how many of the group turn out positive. It runs from perfect to the hollow "
        "mark, where everybody in the group gets the same score. Better scores move a group "
        "towards the corner; withholding information moves it outwards, never past the hollow "
        "mark. A mark beside its line has scores that are off."
    ),
    "geometry_infeasible": (
        "To cost as much as {high}{within}, {blocked} would have to move past the end of its line. "
        "No calibrated scores are there, whatever the method."
    ),
    "geometry_feasible": (
        "To cost as much as {high}{within}, {changed} must move outwards, towards the hollow mark. "
        "The place comes before the end: that share of the way is the share of people whose score "
        "is withheld."
    ),
    "within": ", give or take {tolerance}",
    "geometry_equal": "The costs are as close as you asked for, so nobody has to move.",
    "geometry_both": (
        "Lines of groups with different base rates meet only in the perfect corner. That is why "
        "imperfect scores cannot be calibrated and have both kinds of error equal."
    ),
    "key_difference": "difference in cost",
    "key_reach": "out of reach",
    "key_reach_note": "what remains after the most that calibrated repairs can do",
    "key_withheld": "would lose their score",
    "key_withheld_note": "of {group}, by a coin, to make costs equal",
    "key_closer_note": "of {group}, by a coin, to bring costs that close",
    "key_nothing": "to be changed",
    "key_nothing_note": "costs are within the tolerance",
    "key_gap": "largest calibration gap",
    "key_gap_note": "{group}; 0 means a score of 30\u00a0% comes true for 30\u00a0%",
    "key_people": "rows",
    "key_people_note": "in {count} groups",
    "interval": "{level} interval {low} to {high}",
    "not_feasible": "Not possible here: {why}.",
    "needs_tolerance": "it would take a tolerance of {smallest}",
    "needs_selecting": "{selected} would be selected; it would take a tolerance of {smallest}",
    "no_tolerance": "{selected} would be selected, and no tolerance helps",
    "needs_tolerance_decisions": (
        "not without changing decisions, unless with a tolerance of {smallest}"
    ),
    "after_repair": "cost after “{repair}”",
    "after_told": "After the repair “{repair}”: {after}.",
    "what_repair": "what the repair “{repair}” does",
    "given_at": "{name} at {used}",
    "given_nearest": (
        "Computed in advance for certain thresholds: this is for {used}, the nearest to yours, and "
        "decisions are counted there."
    ),
    "given_none": "Not computed: too few people are on one side of the thresholds.",
    "given_groups": (
        "Computed in advance for all groups only. For these groups, choose it and copy the "
        "command line."
    ),
    "given_settings": (
        "Computed in advance only for {costs}, with a tolerance of {tolerances}. For your "
        "settings, choose it and copy the command line."
    ),
    "holds": "counts and sums per group, outcome and score bin",
    "holds_single": (
        "In {count} of {all} cells there is a single person, whose score, outcome and group can be "
        "read from it. Before sharing the page, make it again with --min-count 10 (in Python "
        "min_count=10)."
    ),
    "copied": "{what} copied.",
    "copy_below": "{what} is below: copy it from there.",
    "command_path": " It reads {data}: put the path there if the file lies elsewhere.",
    "command_audit": " The repair is not possible here, so this is the command of the audit.",
    "command_fit": " It computes the repair for your settings.",
    "command_own": " You supplied this rule, so this is the command of the audit.",
}

COSTS = {
    "fpr": {
        "label": "False alarms",
        "hint": "scores too high for people who turned out negative",
        "meaning": "Cost is the average score of people who turned out negative.",
        "axis": "Cost of errors: false alarms",
    },
    "fnr": {
        "label": "Misses",
        "hint": "scores too low for people who turned out positive",
        "meaning": (
            "Cost is how far scores of people who turned out positive fall short of 1, on average."
        ),
        "axis": "Cost of errors: misses",
    },
    "weighted": {
        "label": "Both, weighted",
        "hint": "average harm per person",
        "meaning": (
            "Cost is the average harm per person when a false alarm counts {fp} and a miss "
            "counts {fn}."
        ),
        "axis": "Cost of errors: false alarms × {fp}, misses × {fn}, per person",
    },
    "plain": {
        "label": "Both, added up",
        "hint": "as in the audit",
        "meaning": "Cost is {fp} times the false-alarm rate plus {fn} times the miss rate.",
        "axis": "Cost of errors: {fp} × false-alarm rate + {fn} × miss rate",
    },
}

METHODS = {
    repair.function: {
        "name": repair.name,
        "goal": repair.goal,
        "label": repair.title,
        "does": repair.sentence,
        "keeps": repair.keeps,
    }
    for repair in REPAIRS.values()
}

HEADS = (
    "Costs differ by",
    "Wrong decisions differ by",
    "Calibration gap",
    "Right decisions",
    "Whose scores change",
    "Depends on a coin",
    "Decisions changed",
)
"""The columns of the table of repairs."""

THRESHOLD_HEADS = (
    "Decided at",
    "Equal rates",
    "Least tolerance",
    "Right decisions",
    "Selected",
    "Can be selected",
)
"""The columns of the table of thresholds, before those of the groups."""

GLOSSARY = (
    ("Score", "A number from 0 to 1 that says how likely something is for a person."),
    ("Positive, negative", "What turned out: it happened (positive) or it did not (negative)."),
    (
        "Calibrated",
        "A score means what it says: of people with a score of 0.3, three in ten turn out "
        "positive, in every group.",
    ),
    (
        "Calibration gap",
        "How far scores are from that, on average. 0 is calibrated; 0.02 is two points in a "
        "hundred.",
    ),
    (
        "False-alarm rate of scores",
        "The average score of people who turned out negative (generalized false-positive rate). "
        "It needs no threshold.",
    ),
    (
        "Miss rate of scores",
        "One minus the average score of people who turned out positive (generalized "
        "false-negative rate).",
    ),
    ("Threshold", "The score from which people are treated as positive, or selected."),
    (
        "Wrongly selected, wrongly passed over",
        "The usual false-positive and false-negative rates (FPR, FNR), at the threshold.",
    ),
    ("Cost", "What you chose to make equal: false alarms, misses, or both with weights."),
    (
        "Highest possible cost",
        "What errors cost when everybody in a group gets the same score, the group’s average "
        "(trivial cost). Calibrated scores never cost more.",
    ),
    ("Tolerance", "How far costs may differ and still count as equal."),
    (
        "Coin",
        "Chance decides. It is the same coin for the same person every time, but it is chance.",
    ),
    (
        "Interval",
        "The range of values that the data do not rule out. It covers chance, not wrong labels or "
        "people who are missing from the data.",
    ),
)
