"""What rules do: whose scores change, how far, by what chance; and rules side by side."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from isocost.checks import check_threshold, check_tolerance, check_whole, check_word, finite_or_none
from isocost.costs import Cost, CostLike, as_cost
from isocost.errors import DeferralWarning, InfeasibleError, IsocostError, UsageError
from isocost.groups import Group, names_of, to_json
from isocost.measures.audit import Audit, audit
from isocost.measures.rates import require_all_decided
from isocost.repairs.composition import ORIGINAL, cost_of_rules, edges_of, named_rules
from isocost.repairs.counsel import SAME, doubt_of, titles_of
from isocost.repairs.registry import REPAIRS
from isocost.repairs.unseen import LEAST, Report, Unseen, remakes_of, unseen
from isocost.repairs.unseen import NUMBERS as OUTLOOKS
from isocost.result import Record
from isocost.rows import moved_bins
from isocost.rules import Rule
from isocost.tables import (
    columns_from,
    frame_of,
    html_table,
    html_verdict,
    number_text,
    text_table,
    transposed,
)
from isocost.tallies import DataOptions, Tally, TallyLike, as_tally
from isocost.typing import Bools, Floats
from isocost.verdict.judgement import Candidate, RepairChoice, choose
from isocost.verdict.sentences import SENTENCES
from isocost.verdict.wording import chosen

COLUMNS: Mapping[str, Callable[[Compared], str]] = {
    "costs differ by": lambda one: number_text(one.audit.disparity.difference),
    "FPR or FNR differ by": lambda one: number_text(one.audit.equalized_odds_difference),
    "largest calibration gap": lambda one: f"{one.gap:.4f}",
    "accuracy": lambda one: f"{one.audit.overall.accuracy:.4f}",
    "handed over": lambda one: f"{one.changes.handed_over:.2%}",
    "people changed": lambda one: f"{one.changes.changed:.2%}",
    "mean change": lambda one: f"{one.changes.mean_change:.4f}",
    "largest change": lambda one: f"{one.changes.largest_change:.4f}",
    "decided by a coin": lambda one: f"{one.changes.by_coin:.2%}",
    "decisions changed": lambda one: f"{one.changes.decisions:.2%}",
    "Gini of the change": lambda one: number_text(one.largest_gini, ".3f"),
}
"""The columns of the printed table after those of each group, and how a rule fills them."""

CLOSE = 0.005
"""Accuracies that are this close are the same, for whether a repair leaves anything."""

BY_GROUP = {"cost": "cost", "selection rate": "selection_rate"}
"""What the printed table shows of each group, and what an audit calls it."""

MOST_GROUPS = 4
"""With more groups than this, the table shows the lowest and the highest number only."""

WIDEST = 6
"""With more rules than this, each rule gets a line of its own."""


@dataclass(frozen=True)
class Changes(Record):
    """What a rule does to people, on average over the coin.

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
    handed_over : float
        Share of people who get no score, because somebody else decides.
    """

    changed: float
    mean_change: float
    largest_change: float
    by_coin: float
    decisions: float
    gini: float
    handed_over: float = 0.0


def changes(tally: Tally, rule: Rule, threshold: float = 0.5, group: int | None = None) -> Changes:
    """Measure what a rule does to everybody, or to one group of the tally.

    The old score is the mean of its bin, so distances are exact to a bin's width.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> result = changes(compas(), ic.withhold(compas(), "fpr", 0.07), group=1)
    >>> round(result.changed, 4), round(result.largest_change, 4)
    (0.5194, 0.3835)
    """
    groups = range(len(tally.groups)) if group is None else [group]
    outcomes = [one for index in groups for one in _outcomes(tally, rule, threshold, index)]
    weight, distance, by_coin, flipped = map(np.concatenate, zip(*outcomes, strict=True))
    share = weight / weight.sum()
    handed = np.isnan(distance)
    distance = np.where(handed, 0.0, distance)
    moved = (distance > SAME) & (weight > 0)
    return Changes(
        changed=float(share[moved].sum()),
        mean_change=float(share @ distance),
        largest_change=float(distance[moved].max(initial=0.0)),
        by_coin=float(share[by_coin].sum()),
        decisions=float(share[flipped].sum()),
        gini=gini(distance, share),
        handed_over=float(share[handed].sum()),
    )


def _outcomes(
    tally: Tally, rule: Rule, threshold: float, group: int
) -> Iterator[tuple[Floats, Floats, Bools, Bools]]:
    """Weight, distance moved, whether by a coin, and whether decided otherwise, per cell.

    The distance is NaN for people who are handed over.
    """
    first, cells = tally.grid.first_bin(threshold), tally.cells
    scores = cells.wh / cells.w
    for portion in rule.portions(tally, group):
        mean, weight = scores[portion.cells], cells.w[portion.cells] * portion.share
        above = cells.bin[portion.cells] >= first
        if portion.row is None or portion.row.defers:
            after = above
        elif portion.row.action == "set":
            after = np.full(len(mean), portion.after(mean[:1]) >= threshold)
        else:
            after = moved_bins(cells.take(portion.cells), portion.row, tally.grid) >= first
        flipped = (after != above) & (weight > 0)
        yield weight, np.abs(portion.after(mean) - mean), portion.by_coin, flipped


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
class Compared:
    """One rule, or the original scores.

    Attributes
    ----------
    audit : Audit
        What holds after the rule, on average over the coin.
    changes : Changes
        What it does to everybody.
    by_group : {group: Changes}
        What it does to each group.
    """

    audit: Audit
    changes: Changes
    by_group: dict[Group, Changes]

    @property
    def gap(self) -> float:
        """The largest calibration gap of a group (ten bins)."""
        return max(m.calibration_gap for m in self.audit.groups.values())

    @property
    def largest_gini(self) -> float:
        """The largest Gini coefficient within a group; NaN if nobody is changed."""
        known = [c.gini for c in self.by_group.values() if not math.isnan(c.gini)]
        return max(known, default=math.nan)

    def numbers(self) -> dict[str, float]:
        """How far groups differ, and what is done to people, by name."""
        return {
            "cost_difference": self.audit.disparity.difference,
            "equalized_odds_difference": self.audit.equalized_odds_difference,
            "calibration_gap": self.gap,
            "accuracy": self.audit.overall.accuracy,
            **asdict(self.changes),
            "largest_gini": self.largest_gini,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "costs": [[to_json(g), finite_or_none(m.cost)] for g, m in self.audit.groups.items()],
            "selection_rates": [
                [to_json(g), m.selection_rate] for g, m in self.audit.groups.items()
            ],
            "disparity": finite_or_none(self.audit.disparity.difference),
            "calibration_gap": self.gap,
            "accuracy": self.audit.overall.accuracy,
            "equalized_odds_difference": finite_or_none(self.audit.equalized_odds_difference),
            "changes": self.changes.to_dict(),
            "by_group": [[to_json(g), c.to_dict()] for g, c in self.by_group.items()],
        }


@dataclass(frozen=True, repr=False)
class Comparison:
    """What :func:`compare` found.

    Attributes
    ----------
    rules : {name: Compared}
        The numbers of the original scores and of each rule.
    outlooks : {name: Unseen}
        What each rule does to people not seen, if the rules were made here.
    not_made : {method: str}
        Why a repair is not feasible, and what it would take.
    choice : RepairChoice or None
        Which repair to take, or none, in codes; ``said`` is the same in words.
    """

    cost: Cost
    threshold: float
    rules: dict[str, Compared]
    outlooks: dict[str, Unseen] = field(default_factory=dict)
    not_made: dict[str, str] = field(default_factory=dict)
    choice: RepairChoice | None = None
    said: str = ""

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table: rules across, or down when there are many."""
        names = names_of(next(iter(self.rules.values())).audit.groups).values()
        few = len(names) <= MOST_GROUPS
        header = ["rule"]
        for title in BY_GROUP:
            each = [f"{title} of {name}" for name in names]
            header += each if few else [f"lowest {title}", f"highest {title}"]
        rows = []
        for name, one in self.rules.items():
            row = [name]
            for measure in BY_GROUP.values():
                # Of many groups the extremes are those of the difference: of groups large enough.
                groups = one.audit.groups if few else one.audit.compared
                numbers = [getattr(one.audit.groups[group], measure) for group in groups]
                row += [number_text(x) for x in (numbers if few else (min(numbers), max(numbers)))]
            rows.append([*row, *(fill(one) for fill in COLUMNS.values())])
        header += COLUMNS
        return (header, rows) if len(self.rules) > WIDEST else transposed(header, rows)

    def to_frame(self, what: str = "rules", *, backend: str | None = None) -> Any:
        """The numbers as a frame, in the library of the data.

        Parameters
        ----------
        what : {"rules", "groups"}
            "rules": a row for each rule, the original scores first, with how far the groups differ
            then and what it does to people.  "groups": a row for each rule and group, with every
            number of the audit, and what the rule does to this group.
        backend : str, optional
            As for :meth:`isocost.Audit.to_frame`.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> result = ic.compare(compas(), [ic.withhold(compas(), "fpr", 0.06)])
        >>> frame = result.to_frame(backend="dict")
        >>> frame["rule"].tolist(), frame["cost_difference"].round(4).tolist()
        (['original', 'withhold'], [0.0875, 0.06])
        """
        check_word("what", what, ("rules", "groups"))
        tally = next(iter(self.rules.values())).audit.tally
        if what == "rules":
            rows = [{"rule": name, **one.numbers()} for name, one in self.rules.items()]
            return frame_of(columns_from(rows), backend or tally.backend)
        pairs = [(name, one, group) for name, one in self.rules.items() for group in one.by_group]
        rows = [
            {"rule": name, **one.audit.groups[group].values, **asdict(one.by_group[group])}
            for name, one, group in pairs
        ]
        return tally.frame_by_group([group for *_, group in pairs], columns_from(rows), backend)

    def headline(self) -> str:
        """What is compared, in a line."""
        return f"Rules compared; cost {self.cost}, threshold {self.threshold:g}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "format": "isocost-comparison",
            "version": 1,
            "cost": self.cost.to_dict(),
            "threshold": self.threshold,
            "rules": {name: one.to_dict() for name, one in self.rules.items()},
            **(self._choice_to_dict() if self.choice else {}),
        }

    def _choice_to_dict(self) -> dict[str, Any]:
        return {
            "unseen": {name: one.to_dict() for name, one in self.outlooks.items()},
            "not_made": self.not_made,
            "choice": asdict(self.choice) if self.choice else None,
            "said": self.said,
        }

    def tables(self) -> list[tuple[str, list[str], list[list[str]]]]:
        """Title, header and rows of every printed table: on these people, and on new ones."""
        return [(self.headline(), *self.table()), *outlook_tables(self.outlooks)]

    def lines(self) -> list[str]:
        """What is said below the tables: what is not feasible, and the choice."""
        return [*self.not_made.values(), *([self.said] if self.said else [])]

    def __repr__(self) -> str:
        tables = [f"{title}\n{text_table(header, rows)}" for title, header, rows in self.tables()]
        return "\n\n".join([*tables, *self.lines()])

    def _repr_html_(self) -> str:
        # What is chosen comes first.
        lines = [*([self.said] if self.said else []), *self.not_made.values()]
        (title, header, rows), *others = self.tables()
        tables = [("", header, rows), *others]
        shown = (html_table(header, rows, caption=title) for title, header, rows in tables)
        return html_verdict(title, lines) + "".join(shown)


def outlook_tables(outlooks: Mapping[str, Unseen]) -> Iterator[tuple[str, list[str], Any]]:
    """What rules do to people not seen, side by side; and what happens to them without."""
    if not outlooks:
        return
    tables = {
        name: {row[0]: row for row in outlook.table()[1]} for name, outlook in outlooks.items()
    }
    numbers = [title for title in OUTLOOKS.values() if any(title in t for t in tables.values())]

    def shown(column: int) -> list[list[str]]:
        return [
            [
                name,
                *(
                    table[n][column].removeprefix("at least ") if n in table else "-"
                    for n in numbers
                ),
            ]
            for name, table in tables.items()
        ]

    nothing = [ORIGINAL, *shown(1)[0][1:]]
    for title, column in (("expected", 3), ("at most (accuracy: at least)", 4)):
        first = [nothing] if column == 3 else []
        yield f"For new people, {title}", *transposed(["rule", *numbers], [*first, *shown(column)])


def compare(
    tally: TallyLike,
    rules: Mapping[str, Rule] | Iterable[Rule] | None = None,
    cost: CostLike | None = None,
    threshold: float = 0.5,
    *,
    tolerance: float = 0.0,
    replicates: int | None = None,
    progress: Report | None = None,
    **reading: Unpack[DataOptions],
) -> Comparison:
    """Put rules side by side, with the original scores first; without rules, every repair.

    Without rules, each repair of :data:`isocost.REPAIRS` is made from the tally.  The result then
    also says what each does to people not seen, what is not feasible and what it would take, and
    which repair to take, if any.

    Parameters
    ----------
    tally : Tally, or data
        What the rules would be applied to; data they were not made from say more.
    rules : {name: Rule} or several rules, optional
        Rules without names are called by their method.
    cost : Cost or str, optional
        What an error costs; by default the cost of the first rule that has one, else "fnr".
    threshold : float
        The score from which people are treated as positive.
    tolerance : float
        Without rules: how far the costs of groups may differ.
    replicates : int, optional
        Without rules: how often each is made again, for what it does to new people.  By default
        200 times, 30 if it takes a linear program, and less often with more than eight groups.
    progress : callable, optional
        Without rules: called from time to time with the share done.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Returns
    -------
    Comparison
        Per rule: cost and selection rate of each group, how far costs differ, how far FPR or FNR
        at the threshold differ, the largest calibration gap, accuracy, the share of people handed
        over (the numbers before it are about the others), the share of people changed, mean and
        largest change, the share whose score is randomized, the share of decisions
        changed, and the Gini coefficient of the change within a group, the paper's measure of who
        bears it.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> rules = [ic.withhold(compas(), "fpr", 0.06), ic.reconcile(compas())]
    >>> result = ic.compare(compas(), rules)
    >>> list(result.rules)
    ['original', 'withhold', 'reconcile']
    >>> round(result.rules["withhold"].audit.disparity.difference, 4)
    0.06
    >>> result = ic.compare(compas(), cost="fpr", replicates=10)
    >>> result.choice.method, result.choice.standings["withhold"]
    ('reconcile', 'infeasible')
    """
    threshold, tolerance = check_threshold(threshold), check_tolerance(tolerance)
    if replicates is not None:
        replicates = check_whole("replicates", replicates, LEAST, 1_000_000)
    if rules is None:
        settings = as_cost("fnr" if cost is None else cost), threshold, tolerance
        return _every_repair(tally, *settings, replicates, progress, reading)
    named = named_rules(rules)
    of_all = cost_of_rules(cost, named)
    tally = as_tally(tally, reading, *edges_of(named.values(), threshold))
    nothing = Rule(groups=tally.groups, rows=(), method="none")
    return Comparison(
        cost=of_all,
        threshold=threshold,
        rules={
            name: _compared(tally, rule, of_all, threshold)
            for name, rule in {ORIGINAL: nothing, **named}.items()
        },
    )


def _every_repair(
    tally: TallyLike,
    cost: Cost,
    threshold: float,
    tolerance: float,
    replicates: int | None,
    progress: Report | None,
    reading: Mapping[str, Any],
) -> Comparison:
    """Every repair made from a tally, and which of them to take."""
    tally = as_tally(tally, reading, threshold, 1.0 - threshold)
    now = audit(tally, cost, threshold, tolerance=tolerance, warn=False)
    rules: dict[str, Rule] = {}
    not_made: dict[str, str] = {}
    # Repairs that hand over those who matter.
    empty: set[str] = set()
    for name, repair in REPAIRS.items():
        goal: dict[str, Any] = {}
        if repair.goal == "cost":
            goal = {"cost": cost, "tolerance": tolerance}
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", DeferralWarning)
                rules[name] = repair.make_with(tally, threshold=threshold, **goal)
            if any(issubclass(one.category, DeferralWarning) for one in told):
                empty.add(name)
        except (InfeasibleError, UsageError) as error:
            not_made[name] = _why_not(name, error)
    working = [name for name, rule in rules.items() if rule.rows]
    outlooks = {}
    for index, name in enumerate(working):
        share = partial(_part_of, progress, index, len(working))
        options: dict[str, Any] = {"cost": cost, "threshold": threshold, "progress": share}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeferralWarning)
            remakes = remakes_of(rules[name]) if replicates is None else replicates
            outlooks[name] = unseen(tally, rules[name], remakes, **options)
    comparison = compare(tally, rules, cost, threshold)
    candidates = [
        _candidate(name, rules.get(name), comparison, outlooks.get(name), now) for name in REPAIRS
    ]
    candidates = [
        replace(one, uninformative=True) if one.method in empty else one for one in candidates
    ]
    choice = choose(candidates, now.verdict)
    what = {name: titles_of(rule.promise) for name, rule in rules.items()}
    said = chosen(choice, candidates, what, now)
    return replace(comparison, outlooks=outlooks, not_made=not_made, choice=choice, said=said)


def _part_of(
    progress: Report | None, index: int, count: int, share: float, rows: int | None
) -> None:
    """Report the share of one of several tasks as that of all of them."""
    if progress is not None:
        progress((index + share) / count, rows)


def _why_not(name: str, error: IsocostError) -> str:
    """Why a repair cannot be made, and what it would take."""
    steps = error.problems[0].next_step.split("; or ")
    # Coming as close as possible is an option of the repairs, and not of the comparison.
    asked = [step for step in steps if "closest" not in step]
    return SENTENCES["not_made"].format(method=name, steps="; or ".join(asked or steps))


def _candidate(
    name: str, rule: Rule | None, comparison: Comparison, outlook: Unseen | None, now: Audit
) -> Candidate:
    """A repair as the verdict looks at it."""
    if rule is None:
        return Candidate(name)
    if outlook is None:
        return Candidate(name, made=True, idle=True)
    one = comparison.rules[name]
    return Candidate(
        name,
        made=True,
        doubt=doubt_of(now.tally.select(rule.fitted), rule.promise, rule.cost)[0],
        expected=outlook.goal.expected,
        unrepaired=outlook.goal.unrepaired,
        cost_expected=outlook.cost_difference.expected,
        cost_unrepaired=outlook.cost_difference.unrepaired,
        uninformative=_loses_all(one.audit, now, outlook, rule.promise.calibrated),
        calibrated=rule.promise.calibrated,
        accuracy=outlook.accuracy.expected,
        unrepaired_accuracy=outlook.accuracy.unrepaired,
        by_coin=one.changes.by_coin,
        changed=one.changes.changed,
        handed_over=one.changes.handed_over,
    )


def _loses_all(after: Audit, now: Audit, outlook: Unseen, calibrated: bool) -> bool:
    """Whether a repair takes away what scores told.

    The same decision for everybody would be right more often; or calibrated scores of a group cost
    as much as its base rate for everybody.
    """
    base_rate = now.overall.base_rate
    same_for_all = max(base_rate, 1.0 - base_rate) - CLOSE
    if outlook.accuracy.expected < same_for_all <= outlook.accuracy.unrepaired:
        return True
    lost = set(after.feasibility.uninformative) - set(now.feasibility.uninformative)
    return calibrated and bool(lost)


def _compared(tally: Tally, rule: Rule, cost: Cost, threshold: float) -> Compared:
    after = rule.expected(tally)
    require_all_decided(after)
    return Compared(
        audit=audit(after, cost, threshold, confidence=None),
        changes=changes(tally, rule, threshold),
        by_group={
            group: changes(tally, rule, threshold, index)
            for index, group in enumerate(tally.groups)
        },
    )
