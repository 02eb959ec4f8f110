"""Measure: a row of the table of measures.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from isocost.cells import KINDS, Sums
from isocost.checks import short
from isocost.errors import Problem, UsageError
from isocost.measures.calibration import Levels
from isocost.measures.derived import Estimated, Formula, GroupedPeople, of_sums
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
    asked_by, caution : str
        Who asks for it, and when it misleads; for the documentation.

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
    asked_by: str = ""
    caution: str = ""

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
        compute = self.of_people
        if self.of_sums is not None:
            compute = partial(of_sums, self.of_sums, self.family == "decisions")
        assert compute is not None
        number: Estimated = population.once((self.name, group), lambda: compute(population, group))
        return number

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

    @property
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

    def is_complement(self, other: Measure) -> bool:
        """True if both are means over the same people to whom they add 1 together."""
        if self.over != other.over or not self.counts_decisions or not other.counts_decisions:
            return False
        inside = [kind in self.over for kind in KINDS]
        sums = (self.coefficients + other.coefficients)[inside, 0]
        return bool((sums == 1.0).all())

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
