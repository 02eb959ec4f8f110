"""Rule: the one format of every repair, small enough to read, sign and keep; and its promise.

A rule is rows (group, lo, hi, action, value, probability).  A score of that group in [lo, hi),
the last hi included, becomes ``value`` ("set") or 1 - score ("mirror") with that
probability; what is left over keeps its score.  Rows on the same interval share one coin.
The rows of a third action, "line", have an ``end`` too: the score h becomes
value + (end - value) (h - lo) / (hi - lo).  Those of a fourth, "defer", hand people over: they get
no score, and somebody else decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from isocost import __version__
from isocost.cells import SUMS, Cells
from isocost.checks import (
    LONGEST_SALT,
    as_number,
    check_kind,
    check_salt,
    check_word,
    is_writable,
    parse_json,
    short,
)
from isocost.coin import SCHEME, bounds
from isocost.costs import Cost
from isocost.errors import (
    DataError,
    IsocostError,
    Problem,
    RuleError,
    UsageError,
    listing,
    setting,
    spoken,
)
from isocost.grid import Grid
from isocost.groups import Group, as_group, beside_groups, names_of, to_json
from isocost.readings import Reading
from isocost.result import Record, Saved
from isocost.tables import frame_of, html_table, text_table
from isocost.tallies import Tally, added, check_all_known, check_tally
from isocost.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from isocost.repairs.review import HandedOver

DEFAULT_SALT = "isocost"

MOST_LISTED, HEAD = 12, 5
"""Most rows that are printed in full; of a longer rule, a summary and this many rows are."""

FORMAT, VERSION = "isocost-rule", 1

_FIELDS = {
    "version": int,
    "cost": dict | None,
    **dict.fromkeys(("format", "made_by", "method"), str),
    **dict.fromkeys(("settings", "coin", "made_from", "promise"), dict),
    **dict.fromkeys(("groups", "fitted", "rows", "notes"), list),
}
"""The fields of a rule in JSON, and their kinds."""

Action = Literal["set", "mirror", "line", "defer"]

SLACK = 1e-9
"""Rounding error allowed in the sum of the probabilities of an interval."""

ROUNDING = 1e-15
"""A share below this is rounding: nobody keeps the score."""

NARROWEST = 1e-12
"""The least width of an interval with a line: on a narrower one, rounding decides the score."""


@dataclass(frozen=True)
class Row:
    """One line of a rule: what may happen to the scores of a group in [lo, hi)."""

    group: Group
    lo: float
    hi: float
    action: Action
    value: float | None
    probability: float
    end: float | None = None

    @classmethod
    def leading(
        cls, group: Group, lo: float, hi: float, ends: tuple[float, float], probability: float = 1.0
    ) -> Row:
        """A row that leads from one score at lo to another at hi; "set" if they are the same."""
        value, end = ends
        if value == end or hi - lo < NARROWEST:
            return cls(group, lo, hi, "set", value, probability)
        return cls(group, lo, hi, "line", value, probability, end)

    @property
    def defers(self) -> bool:
        """True if it hands people over instead of giving them a score."""
        return self.action == "defer"

    @property
    def slope(self) -> float:
        """The slope of the line."""
        if self.value is None or self.end is None:
            raise AssertionError(f"the action {self.action} has no slope")
        return (self.end - self.value) / (self.hi - self.lo)

    @property
    def limit(self) -> float | None:
        """0 or 1 if rounding could carry the line beyond it, else None."""
        if self.value is None or self.end is None:
            return None
        # A line cannot pass its beginning: a product with h - lo keeps the sign of the slope.
        limit = float(self.end > self.value)
        return limit if abs(self.end - limit) < SLACK else None

    def after(self, scores: Floats) -> Floats:
        """The scores of people it is applied to; NaN for those who are handed over."""
        if self.defers:
            return np.full_like(scores, np.nan)
        if self.value is None:
            return 1.0 - scores
        if self.end is None:
            return np.full_like(scores, self.value)
        return np.clip(self.value + self.slope * (scores - self.lo), 0.0, 1.0)


@dataclass(frozen=True)
class Segment:
    """All rows of one interval of one group, which share a coin."""

    lo: float
    hi: float
    rows: tuple[Row, ...]

    @cached_property
    def bounds(self) -> list[int]:
        """Row i is chosen when the coin lies between bound i - 1 and bound i."""
        return bounds([row.probability for row in self.rows])

    def holds(self, scores: Floats) -> Bools:
        """True for scores in the interval; an interval that ends at 1 includes it."""
        return (scores >= self.lo) & ((scores < self.hi) | (self.hi == 1.0))

    def mean(self, scores: Floats) -> Floats:
        """Mean new scores of people in the interval who are not handed over; NaN if all are."""
        left = max(1.0 - sum(row.probability for row in self.rows), 0.0)
        decided = [row for row in self.rows if not row.defers]
        share = left + sum(row.probability for row in decided)
        if share < ROUNDING:
            return np.full(len(scores), np.nan)
        moved = sum((row.probability * row.after(scores) for row in decided), left * scores)
        return moved / share if len(decided) < len(self.rows) else moved

    def outputs(self) -> list[list[tuple[float, float]]]:
        """New scores and their shares at the lower and the upper end, of people not handed over."""
        ends = np.array([self.lo, self.hi])
        left = 1.0 - math.fsum(row.probability for row in self.rows)
        moved = [(row.after(ends), row.probability) for row in self.rows if not row.defers]
        moved += [(ends, left)] if left > SLACK else []
        total = math.fsum(share for _, share in moved) or 1.0
        return [[(float(after[i]), share / total) for after, share in moved] for i in (0, 1)]

    def outcomes(self) -> Iterator[tuple[Row, int, int]]:
        """Each row, and the coins for which it is chosen: from the first up to the second."""
        lows = [0, *self.bounds[:-1]]
        return zip(self.rows, lows, self.bounds, strict=True)

    @property
    def needs_coin(self) -> bool:
        """True if a coin decides in this interval."""
        return by_coin(self.rows)


def by_coin(rows: Iterable[Row]) -> bool:
    """True if a coin decides: some row has a probability strictly between 0 and 1."""
    return any(0.0 < row.probability < 1.0 for row in rows)


def segments_of(rows: Iterable[Row]) -> dict[Group, list[Segment]]:
    """The intervals of each group that has rows, from low to high."""
    intervals: dict[Group, dict[tuple[float, float], list[Row]]] = {}
    for row in rows:
        intervals.setdefault(row.group, {}).setdefault((row.lo, row.hi), []).append(row)
    return {
        group: [Segment(lo, hi, tuple(own)) for (lo, hi), own in sorted(by_interval.items())]
        for group, by_interval in intervals.items()
    }


def reversals(rows: Iterable[Row]) -> dict[Group, int]:
    """Count, in each group with rows, where a higher score may get a lower output.

    Counted between neighbouring intervals, and from the lower to the upper end of an interval.
    With one coin for both, a score gets the lower output for some coin exactly if its
    P(output >= c) is the smaller one for some c.
    """
    counts = {}
    for group, segments in segments_of(rows).items():
        ends = [outputs for segment in segments for outputs in segment.outputs()]
        counts[group] = 0
        for low, high in pairwise(ends):
            shares = [
                [math.fsum(share for output, share in side if output >= value) for value, _ in low]
                for side in (low, high)
            ]
            counts[group] += any(a > b + SLACK for a, b in zip(*shares, strict=True))
    return counts


def _check_rows(groups: Any, rows: Any) -> None:
    """Raise unless types, ranges, intervals and probabilities are valid."""
    try:
        named = list(map(as_group, groups)) if isinstance(groups, list | tuple) else []
    except DataError as error:
        raise RuleError(error.problems) from error
    known = set(named)
    if not named or len(known) != len(named):
        raise bad_rule("rule groups", "must be named, each once", short(groups))
    if not isinstance(rows, Sequence) or not all(isinstance(row, Row) for row in rows):
        raise bad_rule("rule rows", "must be a sequence of Row", short(rows))
    for row in rows:
        _check_row(row, known)
    for group, segments in segments_of(rows).items():
        for low, high in pairwise(segments):
            if high.lo < low.hi:
                rule = "of one group must be the same or not overlap"
                got = f"[{low.lo}, {low.hi}) and [{high.lo}, {high.hi}) for group {group!r}"
                raise bad_rule("rule intervals", rule, got)
        for segment in segments:
            total = math.fsum(row.probability for row in segment.rows)
            if total > 1.0 + SLACK:
                rule = "must add up to at most 1 over the rows of an interval"
                got = f"{total!r} for group {group!r} in [{segment.lo}, {segment.hi})"
                raise bad_rule("rule probability", rule, got)


def _check_row(row: Row, groups: set[Group]) -> None:
    try:
        known = row.group in groups
    except TypeError:
        known = False
    if not known:
        raise bad_rule("rule row", "must be of a group the rule names", short(row.group))
    if not (_in_unit(row.lo) and _in_unit(row.hi) and row.lo < row.hi):
        raise bad_rule("rule interval", "must have 0 <= lo < hi <= 1", f"{row.lo!r}, {row.hi!r}")
    if not _in_unit(row.probability):
        raise bad_rule("rule probability", "must be a number in [0, 1]", short(row.probability))
    if not isinstance(row.action, str) or row.action not in get_args(Action):
        must = 'must be "set", "mirror", "line" or "defer"'
        raise bad_rule("rule action", must, short(row.action))
    valued = row.action not in ("mirror", "defer")
    if valued and not _in_unit(row.value):
        raise bad_rule("rule value", "must be a score in [0, 1]", short(row.value))
    if not valued and row.value is not None:
        raise bad_rule("rule value", f"must be null for the action {row.action}", short(row.value))
    if row.action != "line" and row.end is not None:
        raise bad_rule("rule end", "must be left out unless the action is line", short(row.end))
    if row.action == "line" and not _in_unit(row.end):
        raise bad_rule("rule end", "must be a score in [0, 1]", short(row.end))
    if row.action == "line" and not row.hi - row.lo >= NARROWEST:
        rule = f"must be at least {NARROWEST:g} wide for the action line"
        raise bad_rule("rule interval", rule, f"{row.lo!r}, {row.hi!r}")


def _in_unit(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def bad_rule(
    name: str,
    rule: str,
    got: str,
    step: str = "make the rule again with isocost, and do not edit it",
) -> RuleError:
    """An error about a rule."""
    return RuleError(Problem(name, rule, got, step))


@dataclass(frozen=True, eq=False)
class Portion:
    """Shares of some cells of one group, given by index, to which the same row is applied.

    Without a row they keep their scores.  The shares of a cell add up to 1 over all portions.
    """

    cells: Ints
    row: Row | None
    share: Floats

    @property
    def by_coin(self) -> Bools:
        """True for cells in which a coin decides who belongs to this portion."""
        return (self.share > 0.0) & (self.share < 1.0)

    def after(self, scores: Floats) -> Floats:
        """The scores of this portion after the rule."""
        return scores if self.row is None else self.row.after(scores)


def share_of(cells: Cells, share: Any) -> Cells:
    """The cells with all sums multiplied by a share, one for all or one for each."""
    scaled = {name: getattr(cells, name) * share for name in SUMS}
    return Cells(cells.group, cells.label, cells.bin, **scaled)


def moved_bins(cells: Cells, row: Row, grid: Grid) -> Ints:
    """The bins that cells come to when a row is applied to all of them.

    The bin of the moved mean, not that of the moved bin: 0.5 mirrored stays in its bin.
    """
    return grid.index(row.after(_means(cells, grid)))


def _means(cells: Cells, grid: Grid) -> Floats:
    """The mean score of each cell, inside its bin whatever the rounding."""
    low = grid.cuts[cells.bin]
    mean = np.clip(cells.wh / cells.w, low, np.nextafter(grid.cuts[cells.bin + 1], 0.0))
    # A sum of equal scores may round: 0.3 three times is not 0.9.
    return np.where(mean - low < 1e-12, low, mean)


def moved(cells: Cells, row: Row, grid: Grid) -> Cells:
    """The cells after a row that mirrors scores or moves them along a line; the sums are exact."""
    if row.end is not None:
        return _along(cells, row, grid)
    wh, wh2 = cells.w - cells.wh, cells.w - 2.0 * cells.wh + cells.wh2
    bins = moved_bins(cells, row, grid)
    return replace(cells, bin=bins, wh=wh, wh2=wh2)


def _along(cells: Cells, row: Row, grid: Grid) -> Cells:
    """The cells after a line was applied to them.

    A steep line spreads the scores of a bin over several bins.  Then two scores stand for them that
    have the same mean m and variance v: m - sqrt(v) and m + sqrt(v).  If one of them is outside
    [0, 1], it becomes that end x, and the other m + v / (m - x).
    """
    mean = row.after(_means(cells, grid))
    variance = row.slope**2 * (cells.wh2 / cells.w - (cells.wh / cells.w) ** 2)
    variance = np.clip(variance, 0.0, mean * (1.0 - mean))
    bins = grid.index(mean)
    # As much as the bin of the mean can hold; see the checks of a tally.
    most = (mean - grid.cuts[bins]) * (grid.cuts[bins + 1] - mean) + 1.0 / grid.bins**2
    wide = variance > most
    if not wide.any():
        return _placed(cells, bins, mean, variance)
    m, v = mean[wide], variance[wide]
    deviation = np.sqrt(v)
    low = np.where(m + deviation > 1.0, m - v / (1.0 - m), np.maximum(m - deviation, 0.0))
    high = np.minimum(m + v / (m - low), 1.0)
    share = (high - m) / (high - low)
    spread = cells.take(wide)
    return Cells.merge(
        [
            _placed(cells.take(~wide), bins[~wide], mean[~wide], variance[~wide]),
            _placed(share_of(spread, share), grid.index(low), low),
            _placed(share_of(spread, 1.0 - share), grid.index(high), high),
        ]
    )


def _placed(cells: Cells, bins: Ints, mean: Floats, variance: Floats | float = 0.0) -> Cells:
    """The cells in other bins, with scores of another mean and variance."""
    wh, wh2 = cells.w * mean, cells.w * (mean**2 + variance)
    return replace(cells, bin=bins, wh=wh, wh2=wh2)


@dataclass(frozen=True)
class Promise(Record):
    """Properties of the repaired scores that a rule stands for.

    Parameters
    ----------
    equal : {name: float}
        What becomes equal over the groups, and within which tolerance: "cost", or measures by
        their names in ``isocost.MEASURES``.
    asked : {name: float}
        The tolerance that was requested.  It is smaller than that of ``equal`` where the rule
        could not reach it and ``infeasible="closest"`` was passed.
    calibrated : bool
        Whether the repaired scores are calibrated if the scores were.
    coin : bool
        Whether a coin may decide for anybody.
    threshold : float or None
        The threshold of rates that need one.
    floor : {name: float}
        What measures of every group are at least; with ``overall_`` before the name, of everybody
        together.
    handed_over : {group: float}
        The share of each group that the rule hands over; what it makes equal is equal among the
        others.  Empty if it hands over nobody.

    Without arguments it promises nothing.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> promise = ic.withhold(compas(), "fpr", tolerance=0.06).promise
    >>> promise.equal, promise.calibrated, promise.coin
    ({'cost': 0.06}, True, True)
    >>> ic.reconcile(compas(), floor={"selection_rate": 0.3}).promise.floor
    {'selection_rate': 0.3}
    """

    equal: Mapping[str, float] = field(default_factory=dict)
    asked: Mapping[str, float] = field(default_factory=dict)
    calibrated: bool = False
    coin: bool = True
    threshold: float | None = None
    floor: Mapping[str, float] = field(default_factory=dict)
    handed_over: Mapping[Group, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.handed_over, Mapping) or not all(
            0.0 <= as_number(share) <= 1.0 for share in self.handed_over.values()
        ):
            raise bad_rule("rule promise handed_over", _SHARES, short(self.handed_over))
        for name in ("equal", "asked", "floor"):
            limits = getattr(self, name)
            if not isinstance(limits, Mapping) or not all(
                isinstance(key, str) and 0.0 <= as_number(value) < math.inf
                for key, value in limits.items()
            ):
                rule = "must be a finite number of at least 0 for each name"
                raise bad_rule(f"rule promise {name}", rule, short(limits))
            limits = {key: float(value) for key, value in limits.items()}
            object.__setattr__(self, name, limits)
        if self.equal.keys() != self.asked.keys():
            got = f"{short(sorted(self.equal))} and {short(sorted(self.asked))}"
            raise bad_rule("rule promise", "must have the same names in equal and asked", got)
        for name, limit in self.equal.items():
            if limit < self.asked[name]:
                got = f"{short(name)}: {limit!r} < {self.asked[name]!r}"
                raise bad_rule("rule promise", "must not be stricter in equal than in asked", got)
        for name in ("calibrated", "coin"):
            if not isinstance(getattr(self, name), bool):
                got = short(getattr(self, name))
                raise bad_rule(f"rule promise {name}", "must be true or false", got)
        if self.threshold is not None and not 0.0 < as_number(self.threshold) < 1.0:
            rule = "must be null or a number strictly between 0 and 1"
            raise bad_rule("rule promise threshold", rule, short(self.threshold))

    @classmethod
    def of(
        cls,
        rows: Iterable[Row],
        asked: Mapping[str, float],
        reached: Mapping[str, float] | None = None,
        *,
        calibrated: bool = True,
        threshold: float | None = None,
        floor: Mapping[str, float] | None = None,
        handed_over: Mapping[Group, float] | None = None,
    ) -> Promise:
        """The promise of a rule with these rows; by default ``reached`` is what was requested."""
        # A smaller tolerance than the requested one is met by chance, not promised.
        equal = {name: max(x, (reached or {}).get(name, x)) for name, x in asked.items()}
        coin = by_coin(rows)
        return cls(equal, asked, calibrated, coin, threshold, floor or {}, handed_over or {})

    @property
    def is_empty(self) -> bool:
        """True if nothing is promised, so that there is nothing to test."""
        return not (self.equal or self.calibrated or self.floor or self.handed_over)

    def __str__(self) -> str:
        if self.is_empty:
            return "nothing"
        equal = [f"{name} within {limit:.4g}" for name, limit in self.equal.items()]
        at = "" if self.threshold is None else f" at {self.threshold:g}"
        shares = [f"{share:.2%}" for share in sorted(self.handed_over.values())]
        span = " to ".join(dict.fromkeys((*shares[:1], *shares[-1:])))
        return "; ".join(
            [
                f"equal {' and '.join(equal)}{at}" if equal else "nothing becomes equal",
                "scores stay calibrated" if self.calibrated else "scores do not stay calibrated",
                "a coin decides for some" if self.coin else "no coin",
                *([f"{span} of each group is handed over"] if self.handed_over else []),
            ]
        )


_SHARES = "must be a share between 0 and 1 for each group"


def _read_promise(content: Any) -> Promise:
    names = [field.name for field in fields(Promise)]
    if not isinstance(content, dict) or content.keys() != set(names):
        raise bad_rule("rule promise", f"must have the fields {', '.join(names)}", short(content))
    handed = content["handed_over"]
    if not isinstance(handed, list) or not all(isinstance(x, list) and len(x) == 2 for x in handed):
        raise bad_rule("rule promise handed_over", _SHARES, short(handed))
    return Promise(**{**content, "handed_over": {as_group(group): x for group, x in handed}})


@dataclass(frozen=True)
class Applied:
    """The arguments of :meth:`Rule.apply` beside the data."""

    score: Any
    group: Any
    id: Any
    output: str | None
    seed: int | None
    unknown: Literal["error", "keep"]
    missing_group: Group | None
    changed: str | None
    scale: str | None
    handed_over: str | None


@dataclass(frozen=True, repr=False)
class Rule(Saved):
    """A repair of scores that any engine can apply.

    Parameters
    ----------
    groups : tuple
        Every group the rule knows; those without rows keep their scores.
    rows : tuple of Row
        What happens to whom.
    method : str
        What made it, such as "withhold".
    cost : Cost or None
        The cost that it makes equal.
    settings : mapping
        The arguments it was made with.
    notes : tuple of str
        What a reader should know, such as that the goal could not be reached.
    made_from : mapping
        A summary of the tally it was made from.
    salt : str
        The coin's salt; see :mod:`isocost.coin`.
    promise : Promise
        What :func:`isocost.watch` tests; by default nothing.
    fitted : tuple
        The groups that were compared, by default all: the promise is about them.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> r = ic.withhold(compas(), cost="fpr", tolerance=0.07)
    >>> r.rows[0].group, r.rows[0].action
    ('Caucasian', 'set')
    >>> ic.Rule.from_json(r.to_json()) == r
    True
    """

    format = FORMAT
    written = (
        "_made_by", "method", "cost", "settings", "_coin", "groups", "fitted", "_rows", "notes",
        "made_from", "promise",
    )  # fmt: skip

    groups: tuple[Group, ...]
    rows: tuple[Row, ...]
    method: str
    cost: Cost | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    made_from: Mapping[str, Any] = field(default_factory=dict)
    salt: str = DEFAULT_SALT
    promise: Promise = field(default_factory=Promise)
    fitted: tuple[Group, ...] = ()

    def __post_init__(self) -> None:
        _check_rows(self.groups, self.rows)
        salt, notes, fitted = self.salt, self.notes, self.fitted
        if not isinstance(salt, str) or len(salt) > LONGEST_SALT or not is_writable(salt):
            must = f"must be a text of at most {LONGEST_SALT} characters"
            raise bad_rule("rule salt", must, short(salt))
        if not isinstance(notes, tuple) or not all(isinstance(note, str) for note in notes):
            raise bad_rule("rule notes", "must be texts", short(notes))
        for name, kind, must in (
            ("method", str, "must be a text"),
            ("cost", Cost | None, "must be a Cost or None"),
            ("settings", Mapping, "must be a mapping"),
            ("made_from", Mapping, "must be a mapping"),
            ("promise", Promise, "must be a Promise"),
        ):
            if not isinstance(getattr(self, name), kind):
                raise bad_rule(f"rule {name}", must, short(getattr(self, name)))
        try:
            _ = self.reading
        except ValueError as error:
            must = "must say how the data were read, as Rule.save writes it"
            raise bad_rule("rule made_from", must, str(error)) from error
        if not isinstance(fitted, tuple) or any(group not in self.groups for group in fitted):
            raise bad_rule("rule fitted", "must be groups of the rule", short(fitted))
        object.__setattr__(self, "fitted", fitted or self.groups)
        if "cost" in self.promise.equal and self.cost is None:
            rule = "must name cost only if the rule has a cost"
            raise bad_rule("rule promise", rule, "equal cost, and the cost is null")
        if self.needs_coin and not self.promise.coin:
            rule = "must be true if a row has a probability between 0 and 1"
            raise bad_rule("rule promise coin", rule, "false")

    # What it does

    @cached_property
    def reading(self) -> Reading:
        """The reading of the data it was made from; the usual one if it does not say."""
        return Reading.from_dict(self.made_from.get("reading", {}))

    @property
    def alpha(self) -> dict[Group, float]:
        """The share of each group whose score is withheld; 0 where the group is unchanged."""
        if self.method != "withhold":
            step = "use rule.rows, or rule.expected(tally) to see what the rule does"
            got = f"a rule made by {self.method}"
            raise UsageError(Problem("alpha", "needs a rule made by withhold", got, step))
        shares = dict.fromkeys(self.groups, 0.0)
        shares.update({row.group: row.probability for row in self.rows})
        return shares

    @property
    def needs_coin(self) -> bool:
        """True if any outcome is decided by a coin, so that ids or a seed are needed."""
        return by_coin(self.rows)

    @property
    def defers(self) -> bool:
        """True if it hands anybody over instead of giving a score."""
        return any(row.defers and row.probability > 0.0 for row in self.rows)

    @property
    def reversals(self) -> dict[Group, int]:
        """Counts, by group, of places where a higher score may get a lower output.

        With the same coin for both; 0 for a rule that never turns the order of scores around.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> sum(ic.reconcile(compas()).reversals.values()) > 0
        True
        >>> ic.reconcile(compas(), monotone=True).reversals
        {'African-American': 0, 'Caucasian': 0}
        """
        return {**dict.fromkeys(self.groups, 0), **reversals(self.rows)}

    @cached_property
    def _segments(self) -> dict[Group, list[Segment]]:
        return segments_of(self.rows)

    def segments(self, group: Group) -> list[Segment]:
        """The intervals of one group, from low to high."""
        return self._segments.get(group, [])

    def expected(self, tally: Tally) -> Tally:
        """The tally after the rule, on average over the coin, in closed form.

        A share p of the rows in [lo, hi) moves to the bin of ``value``, or to that of their moved
        mean if they are mirrored or follow a line; the share left over stays.  The sums of the
        result are exact.  People who are handed over have no score: the result is the tally of the
        others, and its ``handed_over`` says how many are missing of each group.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> t = compas()
        >>> r = ic.withhold(t, cost="fpr", tolerance=0.07)
        >>> round(ic.audit(r.expected(t), cost="fpr").disparity.difference, 9)
        0.07
        """
        check_tally(tally)
        check_all_known(tally)
        known = set(self.groups)
        unknown = [group for group in tally.groups if group not in known]
        if unknown:
            raise unknown_groups(unknown, self.groups, counted=True)
        cells = Cells.merge(list(self._moved(tally)))
        if not self.defers:
            # No cell leaves its group, so the groups stay as they are.
            return replace(tally, cells=cells, persons=None)
        if not len(cells):
            got, step = "everybody is handed over", "use a rule made from such people"
            raise UsageError(Problem("tally", "must have people whom the rule decides", got, step))
        gone = self.deferred(tally).handed(tally.groups)
        return tally.rebuilt(cells, handed_over=added([*tally.handed_over.items(), *gone.items()]))

    def deferred(self, tally: Tally) -> Cells:
        """The cells of the people who are handed over, with the scores they had."""
        parts = [
            share_of(tally.cells.take(portion.cells), portion.row.probability)
            for index in range(len(tally.groups))
            for portion in self.portions(tally, index)
            if portion.row is not None and portion.row.defers and len(portion.cells)
        ]
        return Cells.merge(parts) if parts else tally.cells.take(slice(0, 0))

    def _moved(self, tally: Tally) -> Iterator[Cells]:
        """The cells that each row makes, and the shares that stay."""
        cells, stay = tally.cells, np.ones(len(tally.cells))
        touched = [index for index, group in enumerate(tally.groups) if self.segments(group)]
        sets: list[Portion] = []
        for portion in (p for index in touched for p in self.portions(tally, index)):
            if portion.row is None:
                stay[portion.cells] = portion.share
            elif portion.row.defers:
                continue
            elif portion.row.action == "set":
                sets.append(portion)
            elif portion.row.probability > 0.0 and len(portion.cells):
                after = moved(cells.take(portion.cells), portion.row, tally.grid)
                yield share_of(after, portion.row.probability)
        if sets:
            # All at once: a rule may have hundreds of rows.
            index = np.concatenate([portion.cells for portion in sets])
            sizes = [len(portion.cells) for portion in sets]
            values = np.repeat([portion.after(np.zeros(1))[0] for portion in sets], sizes)
            after = _placed(cells.take(index), tally.grid.index(values), values)
            yield share_of(after, np.concatenate([portion.share for portion in sets]))
        yield share_of(cells, stay)

    def portions(self, tally: Tally, group: int) -> Iterator[Portion]:
        """The cells of one group of a tally, given by its index, divided among the rows.

        The last portion keeps its scores.
        """
        segments, grid = self.segments(tally.groups[group]), tally.grid
        mine = tally.cells.of_group(group)
        bins = tally.cells.bin[mine]
        stay = np.ones(len(bins))
        ends = [
            grid.first_bin(end, "rule interval") for one in segments for end in (one.lo, one.hi)
        ]
        # All at once: even positions are inside an interval, odd ones behind it.
        position = np.searchsorted(ends, bins, side="right") - 1
        order = np.argsort(position, kind="stable")
        starts = np.searchsorted(position, np.arange(len(ends) + 1), sorter=order)
        for index, segment in enumerate(segments):
            inside = order[starts[2 * index] : starts[2 * index + 1]]
            for row in segment.rows:
                stay[inside] -= row.probability
                yield Portion(mine.start + inside, row, np.full(len(inside), row.probability))
        stay[stay < ROUNDING] = 0.0
        yield Portion(np.arange(mine.start, mine.stop), None, stay)

    def apply(
        self,
        data: Any = None,
        score: Any = None,
        group: Any = None,
        id: Any = None,
        output: str | None = None,
        *,
        seed: int | None = None,
        unknown: Literal["error", "keep"] = "error",
        missing_group: Group | None = None,
        changed: str | None = None,
        scale: str | None = None,
        handed_over: str | None = None,
    ) -> Any:
        """Add a column of repaired scores to data; the same kind of data comes back.

        The repaired score of people who are handed over is null, or NaN in arrays and pandas.

        Parameters
        ----------
        data : dict of arrays, or any frame that narwhals knows
            Never changed in place.  A lazy frame (polars, duckdb, ibis, dask, pyspark) stays lazy:
            a bad row, such as one with a null id, stops the engine when it comes to it.
        score, group, id : str (``group`` also a list of str)
            The columns; by default those the rule was made from, then "score" and "group".  An id
            is a whole number or a text; it decides the person's coin.  A rule with a coin needs it,
            unless a seed is given.
            Without ``data`` these are the arrays themselves, and an array comes back.
        output : str, optional
            The column to write; an existing column of this name is replaced.  By default
            ``repaired_`` and the name of the score column, which must then be a new column.
        seed : int, optional
            Throw coins in row order instead of by id.  Use it only when there are no ids: a
            person's coin then changes with the order of the rows.
        unknown : {"error", "keep"}
            What to do with groups that the rule does not know.
        missing_group : optional
            The group of rows whose group is null; by default as the rule was made.  Without it they
            are an error.
        changed : str, optional
            A boolean column to add that says whether the score was changed.
        scale : str, optional
            What the scores are, as for :func:`isocost.tally`; by default as the rule was made.
            Repaired scores are always probabilities, so they never replace scores on another scale.
        handed_over : str, optional
            A boolean column to add that says whether the person is handed over.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> rule = ic.withhold(compas(), cost="fpr", tolerance=0.07)
        >>> data = {"score": [0.2, 0.2, 0.9], "id": [4, 5, 6],
        ...         "group": ["Caucasian", "Caucasian", "African-American"]}
        >>> rule.apply(data, id="id")["repaired_score"].round(3).tolist()
        [0.2, 0.394, 0.9]
        """
        from isocost.engines.frames import apply_rule

        treated = (unknown, missing_group, changed, scale, handed_over)
        return apply_rule(self, data, Applied(score, group, id, output, seed, *treated))

    def to_sql(
        self,
        dialect: str = "duckdb",
        table: str | Sequence[str] = "scores",
        *,
        score: str | None = None,
        group: str | Sequence[str] | None = None,
        id: str | None = None,
        **options: Any,
    ) -> str:
        """A query that does in a warehouse what :meth:`apply` does here, row by row.

        ``options`` are output, changed, handed_over, unknown, missing_group and columns, which
        :func:`isocost.engines.sql.to_sql` describes.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> rule = ic.withhold(compas(), cost="fpr", tolerance=0.07)
        >>> print(rule.to_sql("bigquery", "lake.scores", id="person").splitlines()[0])
        -- Scores after a rule made by withhold, cost fpr; isocost 0.1.0.
        """
        from isocost.engines.sql import to_sql

        return to_sql(self, dialect, table, score=score, group=group, id=id, **options)

    def then(self, second: Rule, tally: Tally | None = None) -> Rule:
        """One rule that does what this rule and then another do: one apply, one query.

        It promises what the second rule promises, and throws the coins of the second.

        Parameters
        ----------
        second : Rule
            Made from ``self.expected(tally)``.  This rule itself must throw no coin, as those of
            :func:`isocost.recalibrate`.
        tally : Tally, optional
            What both were made from.  The new rule then has intervals that end at bin edges, as
            :meth:`expected` needs: a bin belongs to the interval its mean score comes to.  Without
            a tally, intervals end wherever a line of this rule enters another interval.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> t = compas()
        >>> first = ic.recalibrate(t, "isotonic")
        >>> rule = first.then(ic.withhold(first.expected(t), "fpr", tolerance=0.07), t)
        >>> rule.method, rule.promise.calibrated
        ('recalibrate+withhold', True)
        >>> round(ic.audit(rule.expected(t), cost="fpr").disparity.difference, 9)
        0.07
        """
        from isocost.repairs.composition import composed

        return composed(self, second, tally)

    def remake(self, tally: Tally) -> Rule:
        """Make the rule again from another tally, by the same method, settings and salt.

        The rule has a note if the data do not support it; there is no warning.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> rule = ic.withhold(compas(), cost="fpr", tolerance=0.07)
        >>> rule.remake(compas()) == rule
        True
        """
        from isocost.repairs.table import remade

        check_tally(tally)
        return remade(self, tally, advised=True)

    def handed_over(self, tally: Tally, threshold: float | None = None) -> HandedOver:
        """The people who are handed over; see :func:`isocost.handed_over`."""
        from isocost.repairs.review import handed_over

        return handed_over(self, tally, threshold)

    def unmerged(self, names: Mapping[Group, Group]) -> Rule:
        """A rule made from merged groups, for data with the groups as they were.

        Parameters
        ----------
        names : {group: group}
            What :meth:`isocost.Tally.relabel` was given.  A group of the data that others were
            merged into must be among them: {"b": "a", "a": "a"}.

        Examples
        --------
        >>> import isocost as ic
        >>> from isocost.examples import compas
        >>> names = {"Caucasian": "all others"}
        >>> rule = ic.withhold(compas().relabel(names), "fpr", tolerance=0.07).unmerged(names)
        >>> rule.groups, rule.rows[0].group
        (('African-American', 'Caucasian'), 'Caucasian')
        """
        from isocost.repairs.composition import unmerged

        return unmerged(self, names)

    # JSON

    def _made_by(self) -> str:
        return f"isocost {__version__}"

    def _coin(self) -> dict[str, str]:
        return {"scheme": SCHEME, "salt": self.salt}

    def _rows(self) -> list[dict[str, Any]]:
        rows = ({**vars(row), "group": to_json(row.group)} for row in self.rows)
        # Only a line has an end.
        return [{k: x for k, x in row.items() if k != "end" or x is not None} for row in rows]

    @classmethod
    def from_json(cls, text: str) -> Rule:
        """Read a rule from JSON text; everything is checked."""
        try:
            content = parse_json(text)
        except ValueError as error:
            must = "must be JSON text as isocost writes it"
            raise bad_rule("rule file", must, str(error)) from error
        _check_fields(content)
        cost, groups, fitted = content["cost"], content["groups"], content["fitted"]
        try:
            return cls(
                groups=tuple(map(as_group, groups)),
                rows=tuple(map(_read_row, content["rows"])),
                method=content["method"],
                cost=None if cost is None else Cost.from_dict(cost),
                settings=content["settings"],
                notes=tuple(content["notes"]),
                made_from=content["made_from"],
                salt=content["coin"]["salt"],
                promise=_read_promise(content["promise"]),
                fitted=tuple(map(as_group, fitted)),
            )
        except RuleError:
            raise
        except IsocostError as error:
            raise RuleError(error.problems) from error

    def with_salt(self, salt: str) -> Rule:
        """Return the rule with another salt, and so with other coins."""
        return replace(self, salt=check_salt(salt))

    # For people

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table."""
        names = names_of(self.groups)
        rows = []
        for row in self.rows:
            close = "]" if row.hi == 1.0 else ")"
            nothing = "handed over" if row.defers else "1 - score"
            new = nothing if row.value is None else f"{row.value:.4f}"
            new += "" if row.end is None else f" to {row.end:.4f}"
            interval = f"[{row.lo:g}, {row.hi:g}{close}"
            rows.append([names[row.group], interval, new, f"{row.probability:.4f}"])
        return ["group", "score in", "becomes", "with probability"], rows

    def summary(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of a table of its groups: which scores change, and how often.

        The number of people depends on their scores; :func:`isocost.compare` counts those of a
        tally.
        """
        rows = []
        for group, name in names_of(self.groups).items():
            own = self.segments(group)
            chances = [sum(row.probability for row in segment.rows) for segment in own]
            if not own or any(one.hi < other.lo for one, other in pairwise(own)):
                chances.append(0.0)
            low, high = f"{min(chances):.4g}", f"{max(chances):.4g}"
            between = f"[{own[0].lo:g}, {own[-1].hi:g}]" if own else "-"
            chance = low if low == high else f"{low} to {high}"
            rows.append([name, f"{sum(len(one.rows) for one in own):,}", between, chance])
        return ["group", "rows", "scores in", "change with probability"], rows

    def to_frame(self, *, backend: str | None = None) -> Any:
        """The rows as a frame; see :meth:`isocost.Audit.to_frame`."""
        columns = {
            one.name: [getattr(row, one.name) for row in self.rows]
            for one in fields(Row)
            if one.name != "group"
        }
        # A row that mirrors scores has no value, and only a line has an end.
        for name in ("value", "end"):
            columns[name] = [math.nan if number is None else number for number in columns[name]]
        groups = [row.group for row in self.rows]
        return frame_of(beside_groups(groups, columns, stored_columns(self).get("group")), backend)

    def headline(self) -> str:
        """A line with the method, the cost, and the groups that stay unchanged."""
        cost = "" if self.cost is None else f", cost {self.cost}"
        touched = {row.group for row in self.rows}
        kept = [name for group, name in names_of(self.groups).items() if group not in touched]
        unchanged = f"; unchanged: {', '.join(kept)}" if kept else ""
        return f"Rule by {self.method}{cost}{unchanged}"

    @property
    def is_long(self) -> bool:
        """True if the rule has too many rows to be listed."""
        return len(self.rows) > MOST_LISTED

    def __repr__(self) -> str:
        notes = [f"note: {note}" for note in self.notes]
        if not self.is_long:
            table = text_table(*self.table()) if self.rows else "no rows: every score stays"
            return "\n".join([self.headline(), table, *notes])
        header, rows = self.table()
        head = f"\nThe first {HEAD} of {len(rows):,} rows; to_frame() has all:"
        said = [f"promise: {self.promise}", text_table(*self.summary()), *notes, head]
        return "\n".join([self.headline(), *said, text_table(header, rows[:HEAD])])

    def _repr_html_(self) -> str:
        if not self.is_long:
            return html_table(*self.table(), caption=". ".join([self.headline(), *self.notes]))
        notes = [f"promise: {self.promise}", *self.notes]
        header, rows = self.table()
        head = f"The first {HEAD} of {len(rows):,} rows; to_frame() has all"
        return (
            html_table(*self.summary(), caption=self.headline())
            + "".join(f"<p>{escape(note)}</p>" for note in notes)
            + f"<details><summary>{head}</summary>{html_table(header, rows[:HEAD])}</details>"
        )


def check_rule(rule: Any, name: str = "rule") -> Rule:
    """The rule itself; raise if it is something else."""
    makers = "withhold, coarsen, equalize_odds, reconcile, hand_over or recalibrate"
    step = "make one, or read one with isocost.Rule.load"
    checked: Rule = check_kind(name, rule, Rule, f"must be a rule made by {makers}", step)
    return checked


def stored_columns(rule: Rule) -> dict[str, Any]:
    """The columns a rule was made from, by role."""
    return {role: name for role, name in rule.reading.columns.items() if name is not None}


def repaired_column(score: str) -> str:
    """The column that repaired scores are written to by default."""
    return f"repaired_{score}"


def check_unknown(unknown: object) -> None:
    """Raise unless the value is one of the two ways to treat unknown groups."""
    check_word("unknown", unknown, ("error", "keep"))


def unknown_groups(
    unknown: list[Any], known: tuple[Group, ...], *, counted: bool = False
) -> UsageError:
    """The groups that a rule does not know, and whether only their type differs.

    In data that are ``counted`` they can be left out; where a rule is applied, every row stays.
    """
    texts = {str(group) for group in known}
    by_type = [group for group in unknown if str(group) in texts]
    way = f"{setting('unknown', 'keep')} to leave the others as they are"
    if counted:
        way = f"leave the others out ({spoken('tally.drop', '--drop-group')})"
    step = f"use data with the groups of the rule, or {way}"
    if by_type:
        is_now = f"{by_type[0]!r} is of type {type(by_type[0]).__name__} here"
        step = f"give the column the type it had when the rule was made: {is_now}"
    rule = f"must be one the rule knows: {listing(map(repr, known))}"
    return UsageError(Problem("group", rule, listing(map(repr, unknown), 10), step))


def _check_fields(content: Any) -> None:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise bad_rule("rule file", f'must say "format": "{FORMAT}"', short(content))
    if content.get("version") != VERSION:
        rule = f"must be {VERSION}, the version this isocost reads"
        step = "update isocost, or make the rule again"
        raise bad_rule("rule version", rule, short(content.get("version")), step)
    missing = _FIELDS.keys() - content.keys()
    extra = content.keys() - _FIELDS.keys()
    if missing or extra:
        got = [f"no {name!r}" for name in sorted(missing)]
        got += [f"an unknown {short(name)}" for name in sorted(extra)[:5]]
        rule = "must have the fields of the format and no other"
        raise bad_rule("rule file", rule, ", ".join(got))
    for name, kind in _FIELDS.items():
        if not isinstance(content[name], kind) or isinstance(content[name], bool):
            raise bad_rule(f"rule {name}", "must be of the right kind", short(content[name]))
    coin = content["coin"]
    if coin.keys() != {"scheme", "salt"} or coin["scheme"] != SCHEME:
        raise bad_rule("rule coin", f'must be {{"scheme": "{SCHEME}", "salt": ...}}', short(coin))


def _read_row(row: Any) -> Row:
    names = {one.name for one in fields(Row)} - {"end"}
    if not isinstance(row, dict) or row.keys() - {"end"} != names:
        raise bad_rule("rule row", f"must have the fields {', '.join(sorted(names))}", short(row))
    if ("end" in row) != (row["action"] == "line"):
        raise bad_rule("rule row", 'must have an end if the action is "line"', short(row))
    return Row(**{**row, "group": as_group(row["group"])})
