"""Audit: everything isocost measures about a tally, in one frozen result."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from isocost.checks import check_word
from isocost.costs import Cost
from isocost.errors import ReadingWarning, UncertainWarning, listing
from isocost.groups import (
    Group,
    as_group,
    columns_of,
    group_names,
    names_of,
    pairs_to_json,
    shown_names,
)
from isocost.measures.feasibility import (
    Feasibility,
    compared_groups,
    examined_groups,
    large_groups,
    reach_of,
)
from isocost.measures.intervals import (
    UNKNOWN,
    Estimates,
    Interval,
    Intervals,
    disparity_intervals,
    intervals_of,
)
from isocost.measures.rates import Columns, Disparity, Measures, disparity, wholly_handed_over
from isocost.measures.recalibrated import Recalibrated, recalibrated
from isocost.measures.table import Measure, chosen_measures
from isocost.question import Question, asks
from isocost.readings import Reading
from isocost.result import Record, Result
from isocost.tables import (
    LINE,
    frame_of,
    html_table,
    html_verdict,
    number_text,
    text_table,
    transposed,
    wrapped,
)
from isocost.tallies import Tally, TallyLike, as_tally, check_no_keywords
from isocost.verdict.judgement import CALIBRATED, Findings, Verdict, judge
from isocost.verdict.sentences import SENTENCES
from isocost.verdict.wording import reading_notes, statement

if TYPE_CHECKING:
    from isocost.judging.offers import Offers

Returned = TypeVar("Returned")

WIDEST = 3
"""With more groups than this, each group gets a line of its own."""


class Answer(Result):
    """The result of a question."""

    question: Question

    @property
    def cost(self) -> Cost:
        """The cost of errors."""
        return self.question.cost

    @property
    def threshold(self) -> float:
        """Scores at or above this are treated as positive."""
        return self.question.threshold


@dataclass(frozen=True)
class Examined(Record):
    """A group whose calibration is judged.

    ``gap_low`` is the calibration gap that it has at least, all examined groups together, and
    ``gap_high`` the largest that cannot be ruled out; NaN without intervals.
    """

    n: float
    mean_score: float
    base_rate: float
    gap: float
    gap_low: float
    gap_high: float

    @property
    def has_one_label(self) -> bool:
        """True if all labels of the group are the same."""
        return self.base_rate in (0.0, 1.0)


@dataclass(frozen=True)
class Others(Record):
    """The groups that the audit of a page does not hold: they have no cost, or are too small.

    ``examined`` are those whose calibration is judged all the same, ``bias`` is the interval for
    them and the groups held, and ``small`` has the number of people of the rest, if it may be told.
    """

    examined: dict[Group, Examined] = field(default_factory=dict)
    bias: tuple[float, float] = UNKNOWN
    small: dict[Group, float] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Others:
        """The reverse of :meth:`to_dict`."""
        # What is not known is null in JSON.
        nan = {None: math.nan}
        examined = {
            as_group(group): Examined(*(nan.get(value, value) for value in one.values()))
            for group, one in content["examined"]
        }
        low, high = (nan.get(end, end) for end in content["bias"])
        return cls(examined, (low, high), {as_group(g): nan.get(n, n) for g, n in content["small"]})


@dataclass(frozen=True, repr=False)
class Audit(Answer):
    """The numbers of the groups of a tally: their errors, costs and calibration.

    Attributes
    ----------
    question : Question
        The question that it answers; ``cost`` and ``threshold`` are those of the question.
    groups : {group: Measures}
        The numbers of each group.
    overall : Measures
        The numbers of everybody together.
    disparities : {name: Disparity}
        For each number, the largest difference between the groups compared.
    feasibility : Feasibility
        The verdict on calibrated scores that cost the groups compared the same.
    verdict, advised : Verdict
        The answers to :data:`isocost.verdict.judgement.QUESTIONS`, and whether to act; ``advised``
        also knows whether a repair is expected to help new people, as does everything printed.
    offers : Offers
        Every repair for this question, made when first looked at; as in :func:`isocost.compare`.
    compared : tuple
        The groups that are large enough to be compared; the others are measured and listed.
    tally : Tally
        What it was computed from.
    recalibrated : Recalibrated
        The costs if the scores of each group were calibrated, computed when first looked at.
    intervals : Intervals or None
        How far the numbers may be off by chance; see :class:`isocost.measures.intervals.Intervals`.
    measures : {name: Measure}
        What was measured.
    shown : tuple of str
        Which of them the printed table has.
    estimates : Estimates
        The numbers and their errors, as they were computed.
    others : Others
        The groups that the audit of a page does not hold.
    """

    format = "isocost-audit"
    written = (
        "question", "_reading", "_reading_notes", "groups", "overall", "disparity", "disparities",
        "generalized_equalized_odds_difference", "equalized_odds_difference", "four_fifths_ratio",
        "feasibility", "_verdict", "compared", "examined", "too_small", "_handed_over?",
        "intervals", "recalibrated", "advice",
    )  # fmt: skip

    question: Question
    groups: dict[Group, Measures]
    overall: Measures
    disparities: dict[str, Disparity]
    feasibility: Feasibility
    tally: Tally
    intervals: Intervals | None = None
    measures: Mapping[str, Measure] = field(default_factory=lambda: chosen_measures().rows)
    shown: tuple[str, ...] = field(default_factory=lambda: chosen_measures().shown)
    estimates: Estimates | None = field(default=None, compare=False)
    others: Others = field(default_factory=Others)

    @property
    def compared(self) -> tuple[Group, ...]:
        """The groups that are large enough to be compared."""
        return tuple(self.feasibility.costs)

    @cached_property
    def examined(self) -> dict[Group, Examined]:
        """The groups whose calibration is judged; see ``examined_groups``."""
        own = {}
        for group in examined_groups(self.tally, self.question.min_group):
            m = self.groups[group]
            _, high = m.intervals.get("calibration_gap", UNKNOWN)
            gaps = m.calibration_gap, self.gap_floor(group), high
            own[group] = Examined(m.n, m.mean_score, m.base_rate, *gaps)
        return own | self.others.examined

    @property
    def too_small(self) -> dict[Group, float]:
        """The groups that no test is about, and their numbers of people."""
        rest = self.groups.keys() - {*self.compared, *self.examined}
        return {g: m.n for g, m in self.groups.items() if g in rest} | self.others.small

    @cached_property
    def bias(self) -> Interval:
        """The interval of the largest difference in mean label less mean score."""
        if self.others.examined or self.intervals is None or self.estimates is None:
            return self.others.bias
        return disparity_intervals(self.estimates, ["bias"], tuple(self.examined))["bias"]

    @property
    def confidence(self) -> float | None:
        """The confidence of the intervals; None if there are none."""
        return None if self.intervals is None else self.intervals.confidence

    @property
    def differs(self) -> bool:
        """True if costs differ by more than the tolerance."""
        return self.verdict.differs

    @cached_property
    def offers(self) -> Offers:
        """Every repair for this question, by name."""
        from isocost.judging.offers import Offers

        return Offers(self.tally, self.question)

    @cached_property
    def verdict(self) -> Verdict:
        """The judgement of the numbers, in codes."""
        reach, difference = self.feasibility, self.disparity.difference
        short = reach.smallest_tolerance - reach.tolerance
        examined = self.examined.values()
        findings = Findings(
            groups=len(large_groups(self.tally, self.question.min_group)),
            gap=max(one.gap for one in examined),
            difference=difference,
            difference_low=difference,
            tolerance=reach.tolerance,
            excess=short,
            excess_low=short,
            excess_high=short,
            intervals=False,
        )
        if self.intervals is None:
            return judge(findings, (self.disparity.highest,))
        lows = {
            kind: max((one.gap_low for one in examined if one.has_one_label == kind), default=0.0)
            for kind in (False, True)
        }
        highs = [one.gap_high for one in examined if not math.isnan(one.gap_high)]
        excess_low, excess_high = self.intervals.excess
        findings = replace(
            findings,
            gap=math.nan,
            gap_low=lows[False],
            gap_high=max(highs, default=math.nan),
            labels_low=lows[True],
            bias_low=self.bias[0],
            bias_high=self.bias[1],
            change=self.recalibrated.shown,
            difference_low=self.intervals.disparities["cost"][0],
            difference_high=self.intervals.disparities["cost"][1],
            excess=reach.excess,
            excess_low=excess_low,
            excess_high=excess_high,
            intervals=True,
        )
        return judge(findings, self.intervals.highest)

    @cached_property
    def advised(self) -> Verdict:
        """The verdict, once it is known what withholding does to new people."""
        outlook = self.offers["withhold"].unseen if self.verdict.act else None
        if outlook is None:
            return self.verdict
        goal = outlook.goal
        findings = replace(
            self.verdict.findings, expected=goal.expected, unrepaired=goal.unrepaired
        )
        return judge(findings, self.verdict.highest)

    def gap_floor(self, group: Group) -> float:
        """The calibration gap that a group has at least; without intervals none is shown."""
        if self.intervals is None:
            return 0.0
        floor, numbers = self.intervals.gap_floors[group], self.groups[group]
        # Without replicates there is the closed form for the part of the gap that is bias.
        return numbers.intervals["calibration_gap_bound"][0] if math.isnan(floor) else floor

    @cached_property
    def miscalibrated(self) -> tuple[Group, ...]:
        """The groups that are shown to be miscalibrated, the worst first."""
        floors = {group: one.gap_low for group, one in self.examined.items()}
        off = [group for group in floors if floors[group] > CALIBRATED]
        return tuple(sorted(off, key=lambda group: -floors[group]))

    @cached_property
    def recalibrated(self) -> Recalibrated:
        """The costs if the scores of each group were calibrated."""
        estimates = self.estimates or Estimates(self.tally, self.question, self.compared)
        return recalibrated(estimates, self.feasibility)

    @property
    def disparity(self) -> Disparity:
        """The disparity of the cost."""
        return self.disparities["cost"]

    @property
    def cost_interval(self) -> Interval:
        """The interval of the difference in cost: of two groups signed, of more the largest."""
        if self.intervals is None:
            return (self.disparity.difference,) * 2
        two = len(self.compared) == 2
        return (self.intervals.differences if two else self.intervals.disparities)["cost"]

    @property
    def generalized_equalized_odds_difference(self) -> float:
        """The larger of the differences in generalized FPR and generalized FNR."""
        both = ("generalized_fpr", "generalized_fnr")
        return float(np.max([self.disparities[name].difference for name in both]))

    @property
    def equalized_odds_difference(self) -> float:
        """The larger of the differences in FPR and FNR at the threshold."""
        return float(np.max([self.disparities[name].difference for name in ("fpr", "fnr")]))

    @property
    def statistical_parity_difference(self) -> float:
        """The largest difference in selection rates."""
        return self.disparities["selection_rate"].difference

    @property
    def four_fifths_ratio(self) -> float:
        """The lowest selection rate over the highest; NaN when nobody is selected."""
        return self.disparities["selection_rate"].ratio

    @property
    def advice(self) -> str:
        """The meaning of the audit, in plain words, a sentence per line."""
        said = statement(self)
        return "\n".join([*said.lead, *map(str, said.notes)])

    def _reading(self) -> Reading:
        return self.tally.reading

    def _reading_notes(self) -> list[str]:
        return [str(one) for one in reading_notes(self.tally.reading, self.tally.groups)]

    def _verdict(self) -> Verdict:
        return self.advised

    def _handed_over(self) -> dict[str, Any]:
        if not self.tally.handed_over:
            return {}
        shares = pairs_to_json(self.tally.shares_handed_over)
        return {"groups": shares, "overall": self.tally.share_handed_over}

    def to_frame(self, what: str = "groups", *, backend: str | None = None) -> Any:
        """The numbers as a frame, in the library of the data.

        Parameters
        ----------
        what : {"groups", "disparities"}
            "groups": a row for each group and a last one for everybody, whose group is missing;
            columns ``group`` (or one for each group column, if there are several), ``n``,
            ``share``, and for each measure its number, with ``fpr_low`` and ``fpr_high`` beside
            ``fpr`` where there are intervals; last ``recalibrated_cost``, the cost if calibrated.
            If measures were chosen by name, only those.
            "disparities": a row for each measure, with the largest difference between two groups,
            its interval, the ratio, and the two groups.
        backend : str, optional
            "pandas", "polars", "pyarrow" ..., or "dict" for a dict of arrays.  By default the
            library of the data; for other data pandas or polars if one is installed.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> a = ic.audit(compas(), cost="fpr")
        >>> frame = a.to_frame(backend="dict")
        >>> frame["group"].tolist(), frame["fpr"].round(3).tolist()
        (['African-American', 'Caucasian', None], [0.343, 0.147, 0.254])
        """
        check_word("what", what, ("groups", "disparities"))
        if what == "disparities":
            return frame_of(self._disparity_columns(), backend or self.tally.backend)
        columns = self._columns([*self.groups.values(), self.overall])
        return self.tally.frame_by_group([*self.groups, None], columns, backend)

    @property
    def by_group(self) -> Any:
        """The numbers of the groups as a frame, as fairlearn's ``MetricFrame.by_group``.

        :meth:`to_frame` without the last row; in pandas, the groups are the index.  The numbers
        of everybody are in ``overall``.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas_rows
        >>> a = ic.audit(compas_rows(), cost="fpr", confidence=None)
        >>> a.by_group["fpr"].round(3).tolist(), round(a.overall["fpr"], 3)
        ([0.343, 0.147], 0.254)
        """
        columns = self._columns(list(self.groups.values()))
        frame = self.tally.frame_by_group(list(self.groups), columns)
        if not hasattr(frame, "set_index"):
            return frame
        names = [name for name in frame.columns if name not in columns]
        return frame.set_index(names if len(names) > 1 else names[0])

    def _columns(self, records: Sequence[Measures]) -> Columns:
        """The printed numbers with intervals, and more unless measures were chosen by name."""
        columns: Columns = {}
        usual = set(chosen_measures().shown)
        left_out = self.measures.keys() - set(self.shown)
        for name in self.overall.values:
            if name in left_out and not usual <= set(self.shown):
                continue
            columns[name] = np.array([one[name] for one in records])
            spans = [one.intervals.get(name) for one in records]
            if any(spans):
                ends = np.array([span or (math.nan, math.nan) for span in spans])
                columns[f"{name}_low"], columns[f"{name}_high"] = ends.T
        if usual <= set(self.shown):
            found, nobody = self.recalibrated, [(math.nan,) * 3] * (len(records) - len(self.groups))
            known = {} if found.intervals is None else found.intervals.cost
            own = [
                (found.cost.get(group, math.nan), *known.get(group, (math.nan, math.nan)))
                for group in self.groups
            ]
            number, low, high = np.array([*own, *nobody]).T
            columns["recalibrated_cost"] = number
            if known:
                columns |= {"recalibrated_cost_low": low, "recalibrated_cost_high": high}
        if self.tally.handed_over:
            columns["handed_over"] = np.array(self._shares_handed_over())
        return columns

    def _disparity_columns(self) -> Columns:
        spans = {} if self.intervals is None else self.intervals.disparities
        ends = np.array([spans.get(name, (math.nan, math.nan)) for name in self.disparities])
        disparities = list(self.disparities.values())
        names = names_of(self.groups)
        # An intersection is one value here, not one for each of its columns.
        shown = names if any(isinstance(group, tuple) for group in names) else None
        highest, lowest = (
            columns_of([shown[g] if shown else g for g in (getattr(d, end) for d in disparities)])
            for end in ("highest", "lowest")
        )
        return {
            "measure": list(self.disparities),
            "difference": np.array([d.difference for d in disparities]),
            "low": ends[:, 0],
            "high": ends[:, 1],
            "ratio": np.array([d.ratio for d in disparities]),
            "highest": highest["group"],
            "lowest": lowest["group"],
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The printed table, as header and rows; with many groups each has a row."""
        names = group_names(tuple(self.groups))
        names.append("all" if "all" not in names else "everybody")
        columns = [*self.groups.values(), self.overall]
        many = len(self.groups) > WIDEST
        # The verdict rests on two numbers; few measures have their intervals in any table too.
        wide = {"cost", "calibration_gap", *(self.shown if len(self.shown) <= 3 else ())}
        titles = {
            "n": "n",
            **{name: self.measures[name].title for name in self.shown},
            "cost": "cost",
            "trivial_cost": "trivial cost",
        }
        rows = [
            [title, *(_cell(name, m, not many or name in wide).rstrip() for m in columns)]
            for name, title in titles.items()
        ]
        if self.tally.handed_over:
            rows.insert(
                0, ["handed over", *(f"{share:.2%}" for share in self._shares_handed_over())]
            )
        header = ["", *names]
        return transposed(header, rows, "group") if many else (header, rows)

    def _shares_handed_over(self) -> list[float]:
        """The share of each group and of everybody that is handed over."""
        shares = self.tally.shares_handed_over
        return [*(shares[group] for group in self.groups), self.tally.share_handed_over]

    def headline(self) -> str:
        """A line that says what was audited."""
        level = f"; {self.confidence:.4g} intervals" if self.confidence else ""
        share = self.tally.share_handed_over
        persons = f" of {self.tally.persons}" if self.tally.persons else ""
        gone = names_of(wholly_handed_over(self.tally)).values()
        nobody = f"; nobody of {listing(gone)} is decided about" if gone else ""
        handed = (
            f" ({share:.2%} of people are handed over{nobody})" if self.tally.handed_over else ""
        )
        return (
            f"Audit of {self.tally.n:,.15g} rows{persons}{handed}; cost {self.cost}, "
            f"threshold {self.threshold:g}{level}"
        )

    def summary(self) -> list[str]:
        """The differences between groups, in a few lines."""
        names = shown_names(self.groups)
        d = self.disparity
        ratio = self.four_fifths_ratio
        generalized = self.generalized_equalized_odds_difference
        # With too little data the interval would say more than the verdict does.
        interval = self.intervals and self.verdict.enough and self.intervals.disparities["cost"]
        cost = "Cost is the same for every group."
        if math.isnan(d.difference):
            cost = "Cost cannot be compared: fewer than two groups have one."
        elif d.highest != d.lowest:
            cost = (
                f"Cost differs by {d.difference:.4f}{f' {_short(interval)}' if interval else ''}: "
                f"{names[d.highest]} highest, {names[d.lowest]} lowest."
            )
        adjusted = [name for name in self.shown if name.startswith("adjusted_")]
        thin = [
            name
            for group, name in names.items()
            if any(math.isnan(self.groups[group][each]) for each in adjusted)
        ]
        why = "too few of them where the others' scores are, or of the kind a rate is about"
        return [
            cost,
            f"Equalized odds difference: generalized {number_text(generalized)}, "
            f"at the threshold {number_text(self.equalized_odds_difference)}.",
            "Selection rates: nobody is selected."
            if math.isnan(ratio)
            else f"Selection rates: lowest over highest is {ratio:.3f} "
            "(EEOC 1978, a rule of thumb: 0.8).",
            *([f"No adjusted rates for {listing(thin)}: {why}."] if thin else []),
        ]

    def __repr__(self) -> str:
        said = statement(self)
        table = text_table(*self.table(), room=LINE)
        before = map(wrapped, said.lead)
        after = [wrapped(one) for one in (*self.summary(), *map(str, said.notes))]
        return "\n".join([*before, "", self.headline(), table, "", *after])

    def _repr_html_(self) -> str:
        from html import escape

        said = statement(self)
        verdict = html_verdict(said.lead[0], said.lead[1:])
        more = "".join(
            f"<p style='max-width:50em'>{escape(text)}</p>"
            for text in (*self.summary(), *map(str, said.notes))
        )
        return (
            f"{verdict}<div style='overflow:auto;max-height:32em'>"
            f"{html_table(*self.table(), caption=self.headline())}</div>"
            f"<details><summary>More; to_frame() has every number</summary>{more}</details>"
        )


def _cell(name: str, measures: Measures, with_interval: bool) -> str:
    value = measures[name]
    if name == "n":
        return f"{value:,.6g}" if value < 1e6 or not value.is_integer() else f"{value:,.0f}"
    if math.isnan(value):
        return "-"
    interval = measures.intervals.get(name)
    if not with_interval or not measures.intervals:
        return f"{value:.4f}"
    return f"{value:.4f} {_short(interval):12}" if interval else f"{value:.4f} {'':12}"


def _short(interval: Sequence[float]) -> str:
    """An interval in few letters: [.438, .457]."""
    if all(math.isinf(end) for end in interval):
        return "[any value]"
    low, high = (f"{end:.3f}".removeprefix("0").replace("-0.", "-.") for end in interval)
    return f"[{low}, {high}]"


@asks("cost", "threshold", "confidence", "replicates", "seed", with_unknown=True)
def audit(tally: Tally, question: Question, *, warn: bool = True) -> Audit:
    """Measure each group's errors and calibration, and decide what can be made equal.

    Parameters
    ----------
    tally : Tally, or data
        At least two groups.  A group with positives only, or negatives only, has NaN where a rate
        is undefined, and is not compared.
    cost, threshold, tolerance, confidence, replicates, seed, min_group, measures, reference
        What is asked: see :class:`isocost.Question`.  The threshold must be an edge of the tally.
        ``measures`` are those to print: "decisions", "scores", "calibration", "all", or names of
        :data:`isocost.MEASURES`; and measures of your own.  Plain measures and calibration gaps
        are always computed, the others when they are chosen.
    question : Question, optional
        All of that at once; a keyword beside it changes one field.
    warn : bool
        Whether to warn if a difference is not established; the verdict has it in any case.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Warns
    -----
    UncertainWarning
        If costs differ, but that is not established, or there is too little data.
    ReadingWarning
        If ids were counted, and some occur several times.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> a = ic.audit(compas(), cost="fpr")
    >>> white = a.groups["Caucasian"]
    >>> low, high = white.intervals["generalized_fpr"]
    >>> f"{white.generalized_fpr:.3f}, between {low:.3f} and {high:.3f}"
    '0.360, between 0.353 and 0.368'
    >>> a.verdict.established, a.verdict.feasible, a.verdict.act
    (True, 'no', False)
    """
    result = audited(tally, question)
    intervals = result.intervals
    for note in reading_notes(result.tally.reading, result.tally.groups) if warn else ():
        if note.key == "read_repeated":
            warnings.warn(str(note), ReadingWarning, stacklevel=3)
    if warn and intervals and result.differs and not result.verdict.established:
        low, high = result.cost_interval
        text = SENTENCES["headline_few"]
        if result.verdict.enough:
            beyond = f" by more than {question.tolerance:g}" if question.tolerance else ""
            text = (
                f"It is not established at {intervals.confidence:.0%} that costs differ{beyond}: "
                f"the largest difference is {result.disparity.difference:.4f}, with an interval "
                f"from {low:.4f} to {high:.4f}."
            )
        warnings.warn(text, UncertainWarning, stacklevel=3)
    return result


def audited(
    tally: Tally,
    question: Question,
    known: Estimates | None = None,
    others: Others = Others(),  # noqa: B008 - frozen
) -> Audit:
    """The audit of a tally, with the numbers that are ``known`` from one at the same threshold.

    It is about the people whose label and group are known; the reading counts the others.
    """
    tally = tally.known
    question.cost.check_groups(tally.groups)
    groups = compared_groups(tally, question.min_group)
    reach = reach_of(tally.select(groups), question.among(groups))
    choice = chosen_measures(question.measures)
    estimates = Estimates(tally, question, groups, None if known is None else known.people)
    columns = estimates.columns
    intervals = None
    spans: list[Mapping[str, Interval]] = [{}] * (len(tally.groups) + 1)
    if question.confidence is not None:
        intervals = intervals_of(estimates, reach, len(others.examined))
        spans = [*intervals.groups.values(), intervals.overall]
    *each, overall = (
        Measures({name: float(column[i]) for name, column in columns.items()}, own)
        for i, own in enumerate(spans)
    )
    compared = [tally.index_of(group) for group in groups]
    return Audit(
        question=question,
        groups=dict(zip(tally.groups, each, strict=True)),
        overall=overall,
        disparities={
            name: disparity(groups, column[compared])
            for name, column in columns.items()
            if name not in ("n", "share")
        },
        feasibility=reach,
        tally=tally,
        intervals=intervals,
        measures=choice.rows,
        shown=choice.shown,
        estimates=estimates,
        others=others,
    )


def audit_or_tally(
    subject: Audit | TallyLike, reading: Mapping[str, Any], *edges: float
) -> Audit | Tally:
    """An audit or a tally itself, or the tally of data; see :func:`isocost.tallies.as_tally`."""
    if isinstance(subject, Audit):
        check_no_keywords(reading, "audit")
        return subject
    return as_tally(subject, reading, *edges, name="audit", with_unknown=True)


def audits(*positional: str) -> Callable[[Callable[..., Returned]], Callable[..., Returned]]:
    """Make a public function of one whose first parameter is an audit; see :func:`asks`.

    A tally is audited first, and data are counted before that.
    """
    return asks(*positional, audited=(Audit, audit))
