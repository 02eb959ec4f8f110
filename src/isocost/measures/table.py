"""The table of measures, a row each.

With a threshold there are four kinds of people: true negatives, false positives, false negatives
and true positives.  A plain measure is a weighted mean over some of these kinds,

    sum of w (a + b h + c h^2) / sum of w,

with weight w and score h.  ``over`` names the kinds the mean is taken over, and ``adds`` gives
(a, b, c) for each kind; a kind that is not listed adds 0.  Everything else follows from the row:
the number of a group, its standard error and interval, what reconciling can make equal, what
watching can test, the function for arrays, and the formula that the page evaluates.

A measure that is not a plain mean, such as the calibration gap, has a function instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from isocost.checks import check_listed, short
from isocost.errors import Problem, UsageError
from isocost.measures.calibration import (
    Levels,
    gap_bound,
    gap_debiased,
    gap_equal_mass,
    gap_equal_width,
    gap_smooth,
)
from isocost.tallies import KINDS, Sums
from isocost.typing import Floats

Coefficients = tuple[float, float, float]

EVERYBODY = KINDS

NEGATIVES = ("tn", "fp")

POSITIVES = ("fn", "tp")

ONE: Coefficients = (1.0, 0.0, 0.0)

SCORE: Coefficients = (0.0, 1.0, 0.0)

RESERVED = ("n", "share", "cost", "trivial_cost", "intervals")
"""What an audit has besides measures."""

ONE_LESS_SCORE: Coefficients = (1.0, -1.0, 0.0)


@dataclass(frozen=True)
class Measure:
    """One number that an audit gives for each group.

    Parameters
    ----------
    name : str
        What the number is called in Python and JSON.
    title : str
        What it is called in printed tables.
    over : tuple of str
        The kinds of people the mean is taken over, from "tn", "fp", "fn" and "tp".
    adds : {kind: (a, b, c)}
        What a person of a kind adds, a + b h + c h^2 for score h; nothing if it is not listed.
    label : str
        The same title for readers without statistics; the page shows it.
    sentence : str
        What it means, in one plain sentence.
    better : "lower", "higher" or None
        Which way is better, where there is one.
    printed : bool
        Whether the printed table has a row for it.
    of_levels : callable, optional
        For a measure that is not a plain mean: from the :class:`Levels` of a group to the number.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> ppv = Measure("ppv", "PPV", over=("fp", "tp"), adds={"tp": (1, 0, 0)})
    >>> a = ic.audit(compas(), "fpr", measures=[ppv])
    >>> round(a.groups["Caucasian"]["ppv"], 4), round(a.disparities["ppv"].difference, 4)
    (0.6427, 0.0167)
    """

    name: str
    title: str
    over: tuple[str, ...] = ()
    adds: Mapping[str, Coefficients] = field(default_factory=dict)
    label: str = ""
    sentence: str = ""
    better: Literal["lower", "higher"] | None = None
    printed: bool = True
    of_levels: Callable[[Levels], float] | None = None

    def __post_init__(self) -> None:
        _check_measure(self)
        object.__setattr__(self, "over", tuple(self.over))
        object.__setattr__(self, "label", self.label or self.title)

    @property
    def is_plain(self) -> bool:
        """Whether it is a mean over kinds of people."""
        return bool(self.over)

    @property
    def uses_threshold(self) -> bool:
        """Whether the two sides of the threshold count differently."""
        return any(
            (low in self.over) != (high in self.over)
            or tuple(self.adds.get(low, (0, 0, 0))) != tuple(self.adds.get(high, (0, 0, 0)))
            for low, high in (NEGATIVES, POSITIVES)
        )

    @property
    def over_labels(self) -> tuple[int, ...] | None:
        """The labels it is a mean over; None if decisions also determine who is included."""
        labels = tuple(
            label for label, kinds in enumerate((NEGATIVES, POSITIVES)) if kinds[0] in self.over
        )
        whole = {kind for label in labels for kind in (NEGATIVES, POSITIVES)[label]}
        return labels if whole == set(self.over) else None

    @property
    def counts_decisions(self) -> bool:
        """Whether it depends on scores only through the side of the threshold."""
        return self.is_plain and not self.coefficients[:, 1:].any()

    @property
    def is_linear(self) -> bool:
        """Whether it is a mean of a + b h, without squares."""
        return self.is_plain and not self.coefficients[:, 2].any()

    @cached_property
    def coefficients(self) -> Floats:
        """(a, b, c) for each of the four kinds, as an array (4, 3)."""
        return np.array([self.adds.get(kind, (0.0, 0.0, 0.0)) for kind in KINDS], dtype=float)

    @property
    def formula(self) -> str:
        """The row as a formula.

        Examples
        --------
        >>> MEASURES["generalized_fnr"].formula, MEASURES["fpr"].formula
        ('the mean over fn, tp of: 1 - h', 'the mean over tn, fp of: 1 for fp')
        """
        terms: dict[str, list[str]] = {}
        for kind, coefficients in self.adds.items():
            terms.setdefault(_polynomial(coefficients), []).append(kind)
        whole = len(terms) == 1 and set(self.adds) == set(self.over)
        texts = [x if whole else f"{x} for {', '.join(kinds)}" for x, kinds in terms.items()]
        return f"the mean over {', '.join(self.over)} of: {'; '.join(texts) or '0'}"

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The smallest and largest value that the mean can have."""
        ends = []
        for kind in self.over:
            a, b, c = self.adds.get(kind, (0.0, 0.0, 0.0))
            turning = -b / (2.0 * c) if c else 0.0
            scores = (0.0, 1.0, min(max(turning, 0.0), 1.0))
            ends += [a + b * h + c * h * h for h in scores]
        return min(ends), max(ends)

    def of(self, sums: Sums) -> Floats:
        """The number of each group; NaN where nobody is of a kind it is a mean over.

        ``sums`` are by kind, or by label if the threshold does not matter to this measure.
        """
        kinds = KINDS if sums.w.shape[-1] == len(KINDS) else ("tn", "fn")
        added = total = np.zeros(())
        for index, kind in enumerate(kinds):
            a, b, c = self.adds.get(kind, (0.0, 0.0, 0.0))
            if a or b or c:
                w, wh, wh2 = (getattr(sums, name)[..., index] for name in ("w", "wh", "wh2"))
                added = added + a * w + b * wh + c * wh2
            if kind in self.over:
                total = total + sums.w[..., index]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(total > 0, added / total, np.nan), dtype=np.float64)


def _check_measure(measure: Any) -> None:
    known = set(KINDS)
    rule = got = None
    if not (isinstance(measure.name, str) and measure.name.isidentifier()):
        rule, got = "name must be a name such as 'ppv'", repr(measure.name)
    elif not isinstance(measure.title, str) or not measure.title:
        rule, got = "title must be a text", repr(measure.title)
    elif not isinstance(measure.over, tuple | list) or not isinstance(measure.adds, Mapping):
        rule = "over must be a tuple of kinds, and adds a mapping from kinds to numbers"
        got = f"{short(measure.over)} and {short(measure.adds)}"
    elif not all(isinstance(text, str) for text in (measure.label, measure.sentence)):
        rule, got = "label and sentence must be texts", short((measure.label, measure.sentence))
    elif (not measure.over) == (measure.of_levels is None):
        rule, got = "must have either over= or of_levels=", repr(measure.over)
    elif not set(map(str, measure.over)) <= known or len(set(measure.over)) != len(measure.over):
        rule, got = f"over must name some of {', '.join(KINDS)}, each once", repr(measure.over)
    elif not set(measure.adds) <= set(measure.over):
        rule, got = "adds must name kinds that over names too", repr(dict(measure.adds))
    elif not all(map(_is_triple, measure.adds.values())):
        rule, got = "adds must hold three finite numbers per kind", repr(dict(measure.adds))
    if rule is not None:
        step = 'for example Measure("ppv", "PPV", over=("fp", "tp"), adds={"tp": (1, 0, 0)})'
        raise UsageError(Problem("measure", rule, str(got), step))


def _polynomial(coefficients: Coefficients) -> str:
    """The usual notation of a + b h + c h^2."""
    text = ""
    for number, power in zip(coefficients, ("", "h", "h^2"), strict=True):
        if number:
            size = f"{abs(number):g}" if abs(number) != 1 or not power else ""
            sign = ("-" if number < 0 else "") if not text else (" - " if number < 0 else " + ")
            text += f"{sign}{size}{' ' if size and power else ''}{power}"
    return text or "0"


def _is_triple(values: Any) -> bool:
    try:
        return len(values) == 3 and bool(np.isfinite(np.asarray(values, dtype=float)).all())
    except (TypeError, ValueError):
        return False


MEASURES: Mapping[str, Measure] = {
    row.name: row
    for row in (
        Measure(
            "base_rate", "base rate", EVERYBODY, {"fn": ONE, "tp": ONE},
            label="Turned out positive", sentence="The share of people who turned out positive.",
        ),
        Measure(
            "mean_score", "mean score", EVERYBODY, dict.fromkeys(KINDS, SCORE),
            label="Average score", sentence="The average score; if calibrated, the base rate.",
        ),
        Measure(
            "generalized_fpr", "generalized FPR", NEGATIVES, {"tn": SCORE, "fp": SCORE},
            label="False-alarm rate of scores", better="lower",
            sentence="The average score of people who turned out negative.",
        ),
        Measure(
            "generalized_fnr", "generalized FNR", POSITIVES,
            {"fn": ONE_LESS_SCORE, "tp": ONE_LESS_SCORE},
            label="Miss rate of scores", better="lower",
            sentence="How far scores of people who turned out positive fall short of 1.",
        ),
        Measure(
            "fpr", "FPR", NEGATIVES, {"fp": ONE}, label="Wrongly selected", better="lower",
            sentence="The share selected among people who turned out negative.",
        ),
        Measure(
            "fnr", "FNR", POSITIVES, {"fn": ONE}, label="Wrongly passed over", better="lower",
            sentence="The share passed over among people who turned out positive.",
        ),
        Measure(
            "selection_rate", "selection rate", EVERYBODY, {"fp": ONE, "tp": ONE},
            label="Selected", sentence="The share of people at or above the threshold.",
        ),
        Measure(
            "accuracy", "accuracy", EVERYBODY, {"tn": ONE, "tp": ONE},
            label="Right decisions", better="higher",
            sentence="The share of people whose decision fits how they turned out.",
        ),
        Measure(
            "brier", "Brier score", EVERYBODY,
            {"tn": (0, 0, 1), "fp": (0, 0, 1), "fn": (1, -2, 1), "tp": (1, -2, 1)},
            better="lower", sentence="The mean squared distance of score and outcome.",
        ),
        Measure(
            "calibration_gap", "calibration gap", of_levels=gap_equal_width,
            label="Calibration gap", better="lower",
            sentence="How far scores are from the share of positives among people who have them, "
            "in ten bins of equal width.",
        ),
        Measure(
            "calibration_gap_equal_mass", "gap, equal mass", of_levels=gap_equal_mass,
            better="lower", printed=False,
            sentence="The calibration gap in ten bins that hold equally many people.",
        ),
        Measure(
            "calibration_gap_debiased", "gap, debiased", of_levels=gap_debiased, better="lower",
            sentence="The calibration gap less what chance alone adds to it.",
        ),
        Measure(
            "calibration_gap_smooth", "gap, smooth", of_levels=gap_smooth,
            better="lower", printed=False,
            sentence="The calibration gap with smoothed residuals in place of bins.",
        ),
        Measure(
            "calibration_gap_bound", "gap, at least", of_levels=gap_bound,
            better="lower", printed=False,
            sentence="The distance of average score and base rate; the gap is never below it.",
        ),
    )
}  # fmt: skip
"""Every measure of an audit, by name; a new measure is a new row here."""


BIAS = Measure(
    "bias",
    "labels less scores",
    EVERYBODY,
    {"tn": (0, -1, 0), "fp": (0, -1, 0), "fn": (1, -1, 0), "tp": (1, -1, 0)},
)
"""The mean of y - h, whose size is the certified bound of the calibration gap."""


def cost_row(fp: float, fn: float) -> Measure:
    """The expected cost per person as a mean: fp h for negatives, fn (1 - h) for positives."""
    negative, positive = (0.0, fp, 0.0), (fn, -fn, 0.0)
    adds = {"tn": negative, "fp": negative, "fn": positive, "tp": positive}
    return Measure("cost", "cost", EVERYBODY, adds)


def chosen_measures(more: Any = None) -> dict[str, Measure]:
    """The table, and the caller's own measures after it."""
    rule, step = "must be Measures", 'for example [ic.Measure("ppv", "PPV", over=..., adds=...)]'
    added = [] if more is None else check_listed("measures", more, rule, step)
    for measure in added:
        if not isinstance(measure, Measure):
            raise UsageError(Problem("measures", rule, short(measure), step))
    counts = Counter(measure.name for measure in added)
    for measure in added:
        name = measure.name
        if counts[name] > 1 or name in RESERVED or MEASURES.get(name, measure) != measure:
            rule, step = "must have names of their own", "choose another name"
            raise UsageError(Problem("measures", rule, repr(name), step))
    return {**MEASURES, **{measure.name: measure for measure in added}}
