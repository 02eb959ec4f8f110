"""The table of measures, a row each, and how a caller chooses among them.

With a threshold there are four kinds of people: true negatives, false positives, false negatives
and true positives.  A plain measure is a weighted mean over some of these kinds,

    sum of w (a + b h + c h^2) / sum of w,

with weight w and score h.  ``over`` names the kinds the mean is taken over, and ``adds`` gives
(a, b, c) for each kind; a kind that is not listed adds 0.  Everything else follows from the row:
the number of a group, its standard error and interval, what reconciling can make equal, what
watching can test, the function for arrays, and the formula that the page evaluates.

A measure that is not a plain mean has a function instead: of sums (``of_sums``, such as F1), of a
group among everybody (``of_people``, such as the area under the curve), or of the levels of its
scores (``of_levels``, the calibration gaps).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from isocost.cells import KINDS, Sums
from isocost.checks import check_listed, short
from isocost.errors import Problem, UsageError, spoken
from isocost.measures import derived
from isocost.measures.calibration import (
    Levels,
    calibration_intercept,
    calibration_slope,
    gap_bound,
    gap_debiased,
    gap_equal_mass,
    gap_equal_width,
    gap_smooth,
    recalibration_intercept,
)
from isocost.measures.derived import Estimated, Formula, GroupedPeople
from isocost.typing import Floats

Coefficients = tuple[float, float, float]

NEGATIVES = ("tn", "fp")

POSITIVES = ("fn", "tp")

FAMILIES = ("decisions", "scores", "calibration")
"""Subjects of measures: decisions at the threshold, scores, or calibration."""


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
    family : "decisions", "scores" or "calibration"
        What it is about.
    printed : bool
        Whether the printed table has a row for it when nothing is chosen.
    of_sums, of_people, of_levels : callable, optional
        For a measure that is not a plain mean, one of these: from sums by kind (only those of
        weights, if it is about decisions), from a group among everybody (see
        :mod:`isocost.measures.derived`), from the :class:`Levels` of a group.
    between : (low, high)
        The smallest and largest value that such a measure can have.
    compares : bool
        Whether it compares the group with others, and so needs more than the group's own people.
    ideal : float, optional
        The value that it has if nothing is wrong, where there is one inside its limits.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> adds = {"fp": (0, 1, 0), "tp": (0, 1, 0)}
    >>> mine = ic.Measure("mine", "Mine", over=("fp", "tp"), adds=adds)
    >>> a = ic.audit(compas(), "fpr", measures=[mine])
    >>> round(a.groups["Caucasian"]["mine"], 4), round(a.disparities["mine"].difference, 4)
    (0.6405, 0.0197)
    """

    name: str
    title: str
    over: tuple[str, ...] = ()
    adds: Mapping[str, Coefficients] = field(default_factory=dict)
    label: str = ""
    sentence: str = ""
    better: Literal["lower", "higher"] | None = None
    family: Literal["decisions", "scores", "calibration"] = "decisions"
    printed: bool = True
    of_sums: Formula | None = None
    of_people: Callable[[GroupedPeople, int | None], Estimated] | None = None
    of_levels: Callable[[Levels], float] | None = None
    between: tuple[float, float] = (-math.inf, math.inf)
    compares: bool = False
    ideal: float | None = None

    def __post_init__(self) -> None:
        _check_measure(self)
        object.__setattr__(self, "over", tuple(self.over))
        object.__setattr__(self, "label", self.label or self.title)

    @property
    def is_plain(self) -> bool:
        """True if it is a mean over kinds of people."""
        return bool(self.over)

    @property
    def is_derived(self) -> bool:
        """True if it is a function of sums, or of a group among everybody."""
        return self.of_sums is not None or self.of_people is not None

    def estimated(self, population: GroupedPeople, group: int | None) -> Estimated:
        """The number of a group, or of everybody, with its standard error; if it is derived."""
        if self.of_sums is not None:
            return derived.of_sums(self.of_sums, self.family == "decisions", population, group)
        assert self.of_people is not None
        return self.of_people(population, group)

    @property
    def uses_threshold(self) -> bool:
        """True if the two sides of the threshold count differently."""
        if self.is_derived:
            return self.family == "decisions"
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

    @cached_property
    def counts_decisions(self) -> bool:
        """True if it depends on scores only through the side of the threshold."""
        return self.is_plain and not self.coefficients[:, 1:].any()

    @property
    def is_linear(self) -> bool:
        """True if it is a mean of a + b h, without squares."""
        return self.is_plain and not self.coefficients[:, 2].any()

    @cached_property
    def coefficients(self) -> Floats:
        """(a, b, c) for each of the four kinds, as an array (4, 3)."""
        return np.array([self.adds.get(kind, (0.0, 0.0, 0.0)) for kind in KINDS], dtype=float)

    @property
    def formula(self) -> str:
        """The row as a formula; of a measure that is not a plain mean, what its function says.

        Examples
        --------
        >>> from isocost.measures.table import MEASURES
        >>> MEASURES["generalized_fnr"].formula, MEASURES["fpr"].formula
        ('the mean over fn, tp of: 1 - h', 'the mean over tn, fp of: 1 for fp')
        """
        function = self.of_sums or self.of_people or self.of_levels
        if function is not None:
            return " ".join((function.__doc__ or "").split("\n\n")[0].split()).rstrip(".")
        terms: dict[str, list[str]] = {}
        for kind, coefficients in self.adds.items():
            terms.setdefault(_polynomial(coefficients), []).append(kind)
        whole = len(terms) == 1 and set(self.adds) == set(self.over)
        texts = [x if whole else f"{x} for {', '.join(kinds)}" for x, kinds in terms.items()]
        return f"the mean over {', '.join(self.over)} of: {'; '.join(texts) or '0'}"

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The smallest and largest value that the number can have."""
        if not self.is_plain:
            return self.between
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
    functions, known = (measure.of_sums, measure.of_people, measure.of_levels), set(KINDS)
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
    elif sum(map(bool, (measure.over, *functions))) != 1:
        rule = "must have one of over=, of_sums=, of_people= and of_levels="
        got = repr(measure.over)
    elif not all(one is None or callable(one) for one in functions):
        rule, got = "of_sums, of_people and of_levels must be functions", short(functions)
    elif measure.better not in (None, "lower", "higher"):
        rule, got = 'better must be "lower", "higher" or None', short(measure.better)
    elif measure.family not in FAMILIES:
        rule, got = f"family must be one of {', '.join(FAMILIES)}", short(measure.family)
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


EVERYBODY = KINDS

ONE: Coefficients = (1.0, 0.0, 0.0)

SCORE: Coefficients = (0.0, 1.0, 0.0)

ONE_LESS_SCORE: Coefficients = (1.0, -1.0, 0.0)

OVERALL = "overall_"
"""Prefix of the name of a measure that is about everybody, not each group."""

RESERVED = ("n", "share", "cost", "trivial_cost", "intervals")
"""Numbers of an audit besides measures."""

SHARE, CORRELATION, RATIO, AT_MOST_1 = (0.0, 1.0), (-1.0, 1.0), (0.0, math.inf), (-math.inf, 1.0)

MEASURES: Mapping[str, Measure] = {
    row.name: row
    for row in (
        Measure(
            "base_rate", "base rate", EVERYBODY, {"fn": ONE, "tp": ONE}, family="scores",
            label="Turned out positive", sentence="The share of people who turned out positive.",
        ),
        Measure(
            "mean_score", "mean score", EVERYBODY, dict.fromkeys(KINDS, SCORE), family="scores",
            label="Average score", sentence="The average score; if calibrated, the base rate.",
        ),
        Measure(
            "generalized_fpr", "generalized FPR", NEGATIVES, {"tn": SCORE, "fp": SCORE},
            label="False-alarm rate of scores", better="lower", family="scores",
            sentence="The average score of people who turned out negative.",
        ),
        Measure(
            "generalized_fnr", "generalized FNR", POSITIVES,
            {"fn": ONE_LESS_SCORE, "tp": ONE_LESS_SCORE}, label="Miss rate of scores",
            better="lower", family="scores",
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
            "tpr", "TPR", POSITIVES, {"tp": ONE}, label="Rightly selected", better="higher",
            printed=False, sentence="The share selected among people who turned out positive.",
        ),
        Measure(
            "tnr", "TNR", NEGATIVES, {"tn": ONE}, label="Rightly passed over", better="higher",
            printed=False, sentence="The share passed over among people who turned out negative.",
        ),
        Measure(
            "ppv", "PPV", ("fp", "tp"), {"tp": ONE}, label="Positive among the selected",
            better="higher", sentence="The share who turned out positive among people selected.",
        ),
        Measure(
            "npv", "NPV", ("tn", "fn"), {"tn": ONE}, label="Negative among the passed over",
            better="higher", sentence="The share who turned out negative among people passed over.",
        ),
        Measure(
            "false_discovery_rate", "FDR", ("fp", "tp"), {"fp": ONE},
            label="Negative among the selected", better="lower", printed=False,
            sentence="The share who turned out negative among people selected.",
        ),
        Measure(
            "false_omission_rate", "FOR", ("tn", "fn"), {"fn": ONE},
            label="Positive among the passed over", better="lower", printed=False,
            sentence="The share who turned out positive among people passed over.",
        ),
        Measure(
            "selection_rate", "selection rate", EVERYBODY, {"fp": ONE, "tp": ONE}, label="Selected",
            sentence="The share of people at or above the threshold.",
        ),
        Measure(
            "impact_ratio", "impact ratio", of_people=derived.impact_ratio, between=RATIO,
            compares=True, label="Selected, relative to the reference", printed=False, ideal=1.0,
            sentence="The selection rate over that of the reference group.",
        ),
        Measure(
            "accuracy", "accuracy", EVERYBODY, {"tn": ONE, "tp": ONE}, label="Right decisions",
            better="higher",
            sentence="The share of people whose decision fits how they turned out.",
        ),
        Measure(
            "balanced_accuracy", "balanced accuracy", of_sums=derived.balanced_accuracy,
            between=SHARE, better="higher", printed=False, label="Balanced accuracy",
            sentence="The average of the shares of positives and negatives decided rightly.",
        ),
        Measure(
            "f1", "F1", of_sums=derived.f1, between=SHARE, better="higher", printed=False,
            sentence="The harmonic mean of PPV and TPR.",
        ),
        Measure(
            "mcc", "Matthews corr.", of_sums=derived.mcc, between=CORRELATION, better="higher",
            printed=False, label="Matthews correlation",
            sentence="The correlation of decisions and outcomes.",
        ),
        Measure(
            "net_benefit", "net benefit", of_sums=derived.net_benefit, between=AT_MOST_1,
            better="higher", printed=False, label="Net benefit",
            sentence="True positives per person, less false ones at the odds of the threshold.",
        ),
        Measure(
            "adjusted_fpr", "adjusted FPR", of_people=derived.adjusted_fpr, between=SHARE,
            compares=True, label="Wrongly selected, at equal risks", better="lower", printed=False,
            sentence="FPR if the group's scores were distributed as everybody's are.",
        ),
        Measure(
            "adjusted_fnr", "adjusted FNR", of_people=derived.adjusted_fnr, between=SHARE,
            compares=True, label="Wrongly passed over, at equal risks", better="lower",
            printed=False,
            sentence="FNR if the group's scores were distributed as everybody's are.",
        ),
        Measure(
            "adjusted_ppv", "adjusted PPV", of_people=derived.adjusted_ppv, between=SHARE,
            compares=True, label="Positive among the selected, at equal risks", better="higher",
            printed=False,
            sentence="PPV if the group's scores were distributed as everybody's are.",
        ),
        Measure(
            "auc", "AUC", of_people=derived.auc, between=SHARE, better="higher", family="scores",
            printed=False, label="Ranking within the group",
            sentence="The chance that a positive of the group scores above a negative of it.",
        ),
        Measure(
            "cross_auc", "cross-AUC, positives", of_people=derived.cross_auc, between=SHARE,
            better="higher", family="scores", printed=False, compares=True,
            label="Ranking of its positives",
            sentence="The chance that a positive of the group scores above a negative of the "
            "others.",
        ),
        Measure(
            "cross_auc_negatives", "cross-AUC, negatives", between=SHARE,
            of_people=derived.cross_auc_negatives, better="higher", family="scores", compares=True,
            printed=False, label="Ranking of its negatives",
            sentence="The chance that a positive of the others scores above a negative of the "
            "group.",
        ),
        Measure(
            "scoring_rate", "scoring rate", of_people=derived.scoring_rate, between=SHARE,
            compares=True, family="scores", printed=False, label="Above the median",
            sentence="The share with a score above the median score of everybody.",
        ),
        Measure(
            "standardized_difference", "SMD", of_people=derived.standardized_difference,
            compares=True, family="scores", printed=False,
            label="Standardized difference of scores", ideal=0.0,
            sentence="The mean score less that of the reference group, in standard deviations.",
        ),
        Measure(
            "brier", "Brier score", EVERYBODY,
            {"tn": (0, 0, 1), "fp": (0, 0, 1), "fn": (1, -2, 1), "tp": (1, -2, 1)}, better="lower",
            family="scores", sentence="The mean squared distance of score and outcome.",
        ),
        Measure(
            "brier_skill", "Brier skill", of_sums=derived.brier_skill, between=AT_MOST_1,
            better="higher", family="scores", printed=False,
            sentence="How much lower the Brier score is than that of the base rate, as a share.",
        ),
        Measure(
            "observed_to_expected", "O:E", of_sums=derived.observed_to_expected, between=RATIO,
            family="calibration", printed=False, label="Observed to expected", ideal=1.0,
            sentence="The number of positives over the number that scores expect.",
        ),
        Measure(
            "calibration_slope", "calibration slope", of_people=calibration_slope,
            family="calibration", printed=False, label="Calibration slope", ideal=1.0,
            sentence="How fast the odds of a positive rise with the odds of the score; below 1, "
            "scores are too extreme.",
        ),
        Measure(
            "calibration_intercept", "calibration intercept", of_people=calibration_intercept,
            family="calibration", printed=False, label="Calibration intercept", ideal=0.0,
            sentence="What is to be added to the log-odds of scores so that as many positives are "
            "expected as seen.",
        ),
        Measure(
            "recalibration_intercept", "intercept beside slope", of_people=recalibration_intercept,
            family="calibration", printed=False, label="Intercept beside the slope", ideal=0.0,
            sentence="The intercept of the logistic recalibration that has the slope too.",
        ),
        Measure(
            "calibration_gap", "calibration gap", of_levels=gap_equal_width, between=SHARE,
            label="Calibration gap", better="lower", family="calibration",
            sentence="How far scores are from the share of positives among people who have them, "
            "in ten bins of equal width.",
        ),
        Measure(
            "calibration_gap_equal_mass", "gap, equal mass", of_levels=gap_equal_mass,
            better="lower", family="calibration", printed=False, between=SHARE,
            sentence="The calibration gap in ten bins that hold equally many people.",
        ),
        Measure(
            "calibration_gap_debiased", "gap, debiased", of_levels=gap_debiased, better="lower",
            family="calibration", between=SHARE,
            sentence="The calibration gap less what chance alone adds to it.",
        ),
        Measure(
            "calibration_gap_smooth", "gap, smooth", of_levels=gap_smooth, better="lower",
            family="calibration", printed=False, between=SHARE,
            sentence="The calibration gap with smoothed residuals in place of bins.",
        ),
        Measure(
            "calibration_gap_bound", "gap, at least", of_levels=gap_bound, better="lower",
            family="calibration", printed=False, between=SHARE,
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


Chosen: TypeAlias = "str | Iterable[str | Measure] | None"
"""A caller's choice of measures; see :func:`chosen_measures`."""


@dataclass(frozen=True)
class Choice:
    """The measures that are computed, and those that are printed.

    Plain measures and calibration gaps are always computed, the others when they were chosen.
    """

    rows: Mapping[str, Measure]
    shown: tuple[str, ...]


def chosen_measures(chosen: Any = None, argument: str = "measures") -> Choice:
    """The measures of an audit: a family, "all", names, or measures of the caller's own.

    Names say what is printed; measures of one's own are printed besides, or after the usual ones.

    Examples
    --------
    >>> chosen_measures("calibration").shown[:3]
    ('observed_to_expected', 'calibration_slope', 'calibration_intercept')
    >>> chosen_measures(["auc", "ppv"]).shown
    ('ppv', 'auc')
    """
    if chosen is None or isinstance(chosen, str):
        listed: list[Any] = [] if chosen is None else chosen.split(",")
    else:
        listed = check_listed(argument, chosen, _CHOICES, _example())
    own = [one for one in listed if isinstance(one, Measure)]
    counts = Counter(measure.name for measure in own)
    for one in own:
        name = one.name
        if counts[name] > 1 or name in RESERVED or MEASURES.get(name, one) != one:
            rule, step = "must have names of their own", "choose another name"
            raise UsageError(Problem("measures", rule, repr(name), step))
    names = {
        name for one in listed if not isinstance(one, Measure) for name in _named(one, argument)
    }
    if not names:
        names = {name for name, row in MEASURES.items() if row.printed}
    added = {measure.name: measure for measure in own}
    shown = tuple(name for name in (*MEASURES, *added) if name in names or name in added)
    rows = {name: row for name, row in MEASURES.items() if not row.is_derived or name in shown}
    return Choice({**rows, **added}, tuple(dict.fromkeys(shown)))


_CHOICES = f"must be {', '.join(FAMILIES)} or all, names of measures, or Measures"


def _example() -> str:
    return spoken(
        'for example measures="all", ["ppv", "auc"] or [ic.Measure("mine", "Mine", over=...)]',
        "for example --measures all, or --measures ppv,auc",
    )


def _named(word: Any, argument: str) -> tuple[str, ...]:
    """The measures that a word stands for."""
    word = word.strip().lower() if isinstance(word, str) else word
    if word == "all":
        return tuple(MEASURES)
    if word in FAMILIES:
        return tuple(name for name, row in MEASURES.items() if row.family == word)
    if not isinstance(word, str) or word not in MEASURES:
        close = get_close_matches(word, MEASURES, 1) if isinstance(word, str) else []
        step = f"did you mean {close[0]!r}?" if close else _example()
        raise UsageError(Problem(argument, _CHOICES, short(word), step))
    return (word,)
