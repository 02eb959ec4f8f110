"""Rule: the one format of every repair, small enough to read, sign and keep; and its promise.

A rule is rows (group, lo, hi, action, value, probability).  A score of that group in [lo, hi),
the last hi included, becomes ``value`` ("set") or 1 - score ("mirror") with that
probability; what is left over keeps its score.  Rows on the same interval share one coin.
The rows of a third action, "line", have an ``end`` too: the score h becomes
value + (end - value) (h - lo) / (hi - lo).  Those of a fourth, "defer", hand people over: they get
no score, and somebody else decides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from isocost import __version__
from isocost.atomic import check_ending, read_text, write_text
from isocost.cells import Cells
from isocost.checks import (
    LONGEST_SALT,
    check_kind,
    check_path,
    check_salt,
    check_word,
    is_writable,
    parse_json,
    short,
)
from isocost.coin import SCHEME
from isocost.costs import Cost
from isocost.errors import IsocostError, Problem, RuleError, UsageError, listing, setting, spoken
from isocost.groups import Group, beside_groups, from_json, names_of, to_json
from isocost.promises import Promise, read_promise
from isocost.readings import Reading
from isocost.rows import (
    Portion,
    Row,
    Segment,
    bad_rule,
    check_rows,
    moved,
    moved_to,
    portions_of,
    reversals,
    segments_of,
    share_of,
)
from isocost.tables import frame_of, html_table, text_table
from isocost.tallies import Tally, added, check_tally

if TYPE_CHECKING:
    from isocost.repairs.review import HandedOver

DEFAULT_SALT = "isocost"

MOST_LISTED, HEAD = 12, 5
"""A rule with more rows than the first number is shown by what it does, and so many of its rows."""

FORMAT = "isocost-rule"
VERSION = 1

_FIELDS = {
    "format": str,
    "version": int,
    "made_by": str,
    "method": str,
    "cost": dict | None,
    "settings": dict,
    "coin": dict,
    "groups": list,
    "fitted": list,
    "rows": list,
    "notes": list,
    "made_from": dict,
    "promise": dict,
}

_ROW_FIELDS = {"group", "lo", "hi", "action", "value", "probability"}
"""Those of every row; one with the action "line" also has an end."""


@dataclass(frozen=True, repr=False)
class Rule:
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
        check_rows(self.groups, self.rows)
        self._check_fields()
        fitted = self.fitted
        if not isinstance(fitted, tuple) or any(group not in self.groups for group in fitted):
            raise bad_rule("rule fitted", "must be groups of the rule", short(fitted))
        object.__setattr__(self, "fitted", fitted or self.groups)
        self._check_promise()

    def _check_fields(self) -> None:
        salt, notes = self.salt, self.notes
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

    @cached_property
    def reading(self) -> Reading:
        """How the data that it was made from were read; the usual way if it does not say."""
        return Reading.from_dict(self.made_from.get("reading", {}))

    def _check_promise(self) -> None:
        if "cost" in self.promise.equal and self.cost is None:
            rule = "must name cost only if the rule has a cost"
            raise bad_rule("rule promise", rule, "equal cost, and the cost is null")
        if self.needs_coin and not self.promise.coin:
            rule = "must be true if a row has a probability between 0 and 1"
            raise bad_rule("rule promise coin", rule, "false")

    # What it does

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
        """Whether any outcome is decided by a coin, so that ids or a seed are needed."""
        return any(s.needs_coin for segments in self._segments.values() for s in segments)

    @property
    def defers(self) -> bool:
        """Whether it hands anybody over instead of giving a score."""
        return any(row.defers and row.probability > 0.0 for row in self.rows)

    @property
    def reversals(self) -> dict[Group, int]:
        """How often in each group a higher score may get a lower output than its neighbour.

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

    def segments(self, group: Group) -> list[Segment]:
        """The intervals of one group, from low to high."""
        return self._segments.get(group, [])

    @cached_property
    def _segments(self) -> dict[Group, list[Segment]]:
        return segments_of(self.rows)

    def expected(self, tally: Tally) -> Tally:
        """What the rule will do to these scores on average over the coin, in closed form.

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
        known = set(self.groups)
        unknown = [group for group in tally.groups if group not in known]
        if unknown:
            raise unknown_groups(unknown, self.groups, counted=True)
        cells = Cells.merge(list(self._moved(tally)))
        if not self.defers:
            # No cell leaves its group, so the groups stay as they are.
            return replace(tally, cells=cells)
        return self._decided(tally, cells)

    def _decided(self, tally: Tally, cells: Cells) -> Tally:
        """The tally of those who are not handed over, which says how many are."""
        if not len(cells):
            got, step = "everybody is handed over", "use a rule made from such people"
            raise UsageError(Problem("tally", "must have people whom the rule decides", got, step))
        gone = self.deferred(tally).handed(tally.groups)
        return tally.rebuilt(cells, handed=added([*tally.handed_over.items(), *gone.items()]))

    def deferred(self, tally: Tally) -> Cells:
        """The cells of those who are handed over, with the scores they had."""
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
            after = moved_to(cells.take(index), values, tally.grid)
            yield share_of(after, np.concatenate([portion.share for portion in sets]))
        yield share_of(cells, stay)

    def portions(self, tally: Tally, group: int) -> Iterator[Portion]:
        """The cells of one group of a tally, given by its index, divided among the rows."""
        segments = self.segments(tally.groups[group])
        return portions_of(tally.cells, group, tally.grid, segments)

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
        from isocost.engines.dispatch import apply_rule

        return apply_rule(
            self,
            data,
            score=score,
            group=group,
            id=id,
            output=output,
            seed=seed,
            unknown=unknown,
            missing_group=missing_group,
            changed=changed,
            scale=scale,
            handed_over=handed_over,
        )

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
        from isocost.repairs.registry import remade

        return remade(self, tally, heedful=True)

    def handed_over(self, tally: Tally, threshold: float | None = None) -> HandedOver:
        """Who is handed over; see :func:`isocost.handed_over`."""
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "made_by": f"isocost {__version__}",
            "method": self.method,
            "cost": None if self.cost is None else self.cost.to_dict(),
            "settings": dict(self.settings),
            "coin": {"scheme": SCHEME, "salt": self.salt},
            "groups": [to_json(group) for group in self.groups],
            "fitted": [to_json(group) for group in self.fitted],
            "rows": [_row_fields(row) for row in self.rows],
            "notes": list(self.notes),
            "made_from": dict(self.made_from),
            "promise": self.promise.to_dict(),
        }

    def to_json(self) -> str:
        """The rule as JSON text; :meth:`from_json` reads it back."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path, *, force: bool = True) -> None:
        """Write a .json file, whole or not at all; without ``force``, never replace one."""
        check_path(path)
        check_ending(path, ".json")
        write_text(path, self.to_json() + "\n", force=force)

    @classmethod
    def from_json(cls, text: str) -> Rule:
        """Read a rule from JSON text; everything is checked."""
        return cls(**_read_fields(text))

    @classmethod
    def load(cls, path: str | Path) -> Rule:
        """Read a rule that :meth:`save` wrote."""
        check_path(path)
        return cls.from_json(read_text(path))

    def with_salt(self, salt: str) -> Rule:
        """The same rule with other coins."""
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
        """What it does to each group, as header and rows: which scores change, and how often.

        How many people that are depends on their scores; :func:`isocost.compare` says it for those
        of a tally.
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
        """How the rule was made and whom it leaves alone, in a line."""
        cost = "" if self.cost is None else f", cost {self.cost}"
        touched = {row.group for row in self.rows}
        kept = [name for group, name in names_of(self.groups).items() if group not in touched]
        unchanged = f"; unchanged: {', '.join(kept)}" if kept else ""
        return f"Rule by {self.method}{cost}{unchanged}"

    @property
    def is_long(self) -> bool:
        """Whether the rule has too many rows to be listed."""
        return len(self.rows) > MOST_LISTED

    def __repr__(self) -> str:
        notes = [f"note: {note}" for note in self.notes]
        if not self.is_long:
            table = text_table(*self.table()) if self.rows else "no rows: every score stays"
            return "\n".join([self.headline(), table, *notes])
        header, rows = self.table()
        return "\n".join(
            [
                self.headline(),
                f"promise: {self.promise}",
                text_table(*self.summary()),
                *notes,
                f"\nThe first {HEAD} of {len(rows):,} rows; to_frame() has all:",
                text_table(header, rows[:HEAD]),
            ]
        )

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


def check_rule(rule: Any, name: str = "rule") -> None:
    """Raise unless the value is a rule."""
    makers = "withhold, coarsen, equalize_odds, reconcile, hand_over or recalibrate"
    must = f"must be a rule made by {makers}"
    step = "make one, or read one with isocost.Rule.load"
    check_kind(name, rule, Rule, must, step)


def stored_columns(rule: Rule) -> dict[str, Any]:
    """The columns a rule was made from, by role.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> from isocost.repairs.withhold import withhold
    >>> stored_columns(withhold(compas(), cost="fpr", tolerance=0.07))
    {'score': 'score', 'label': 'label', 'group': ['group']}
    """
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
    out = spoken("tally.drop", "--drop-group")
    way = (
        f"leave the others out ({out})"
        if counted
        else f"{setting('unknown', 'keep')} to leave the others as they are"
    )
    step = (
        f"use data with the groups of the rule, or {way}"
        if not by_type
        else f"give the column the type it had when the rule was made: {by_type[0]!r} is of type "
        f"{type(by_type[0]).__name__} here"
    )
    rule = f"must be one the rule knows: {listing(map(repr, known))}"
    return UsageError(Problem("group", rule, listing(map(repr, unknown), 10), step))


def _read_fields(text: str) -> dict[str, Any]:
    """The arguments of a Rule from its JSON text; raise a RuleError if it is invalid."""
    try:
        content = parse_json(text)
    except ValueError as error:
        raise bad_rule("rule file", "must be JSON text as isocost writes it", str(error)) from error
    _check_fields(content)
    try:
        return {
            "groups": tuple(from_json(group) for group in content["groups"]),
            "rows": tuple(_parse_row(row) for row in content["rows"]),
            "method": content["method"],
            "cost": None if content["cost"] is None else Cost.from_dict(content["cost"]),
            "settings": content["settings"],
            "notes": tuple(content["notes"]),
            "made_from": content["made_from"],
            "salt": content["coin"]["salt"],
            "promise": read_promise(content["promise"]),
            "fitted": tuple(from_json(group) for group in content["fitted"]),
        }
    except RuleError:
        raise
    except IsocostError as error:
        raise RuleError(error.problems) from error


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


def _row_fields(row: Row) -> dict[str, Any]:
    """A row for JSON; only a line has an end."""
    content = {**vars(row), "group": to_json(row.group)}
    if row.end is None:
        del content["end"]
    return content


def _parse_row(row: Any) -> Row:
    if not isinstance(row, dict) or row.keys() - {"end"} != _ROW_FIELDS:
        rule = f"must have the fields {', '.join(sorted(_ROW_FIELDS))}"
        raise bad_rule("rule row", rule, short(row))
    if ("end" in row) != (row["action"] == "line"):
        raise bad_rule("rule row", 'must have an end if the action is "line"', short(row))
    return Row(**{**row, "group": from_json(row["group"])})
