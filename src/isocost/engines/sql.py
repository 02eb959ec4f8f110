"""The two queries that a warehouse runs: a rule applied to a table, and the cells of a tally.

The layout of a query is a list of lines, with one item per line.  A quoted name may contain a line
break, and what follows it must not be indented, so the text of a query is never split.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Literal, NamedTuple, TypeAlias

from isocost import __version__
from isocost.checks import (
    check_names,
    check_numbers,
    check_single,
    group_names_of,
    short,
)
from isocost.coin import BITS, hex_bound
from isocost.engines.arrays import has_named_label
from isocost.engines.columns import (
    USUAL_WEIGHTS,
    applied_columns,
    missing_group_of,
    missing_id,
    scale_of,
    written_column,
)
from isocost.engines.dialects import Dialect, dialect_named
from isocost.errors import Problem, UsageError, setting
from isocost.grid import BINS, Grid
from isocost.groups import Group, group_names, parts_of
from isocost.rules import Row, Rule, Segment, check_unknown

Lines: TypeAlias = list[str]

_WIDTH = 90
"""How long a line may be."""


def indented(lines: Sequence[str]) -> Lines:
    """The lines indented by two spaces."""
    return [f"  {line}" for line in lines]


def named(lines: Sequence[str], alias: str) -> Lines:
    """An expression AS its name."""
    return [*lines[:-1], f"{lines[-1]} AS {alias}"]


def select(items: Sequence[str | Lines]) -> Lines:
    """SELECT and its items, each on one or several lines."""
    query = ["SELECT"]
    for number, item in enumerate(items, 1):
        lines = indented([item] if isinstance(item, str) else item)
        query += [*lines[:-1], lines[-1] + ("," if number < len(items) else "")]
    return query


def steps_of(steps: Mapping[str, Lines]) -> Lines:
    """WITH and the named steps of a query."""
    query, start = [], "WITH "
    for name, lines in steps.items():
        query += [f"{start}{name} AS (", *indented(lines), "),"]
        start = ""
    return [*query[:-1], ")"]


def comment(text: str) -> str:
    r"""A comment that no text can break out of: characters that cannot be printed are escaped.

    Examples
    --------
    >>> print(comment("group x\nDROP TABLE y"))
    -- group x\nDROP TABLE y
    """
    visible = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
    # Where ${name} is replaced, it is so even here.
    visible = visible.replace("${", "$ {")
    lines = wrap(visible, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"-- {line}" for line in lines)


@dataclass(frozen=True)
class Case:
    """CASE WHEN ... THEN ... ELSE ... END, whose outcomes may be further cases.

    Examples
    --------
    >>> print(Case((("x < 1", "0"), ("x < 2", Case((("y", "1"),), "2"))), "3"))
    CASE
      WHEN x < 1 THEN 0
      WHEN x < 2 THEN
        CASE
          WHEN y THEN 1
          ELSE 2
        END
      ELSE 3
    END
    """

    whens: tuple[tuple[str, str | Case], ...]
    otherwise: str | Case | Lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Lines:
        """The lines of the expression, indented by two."""
        lines = ["CASE"]
        for condition, outcome in self.whens:
            lines += _branch(f"WHEN {condition} THEN", outcome)
        return [*lines, *_branch("ELSE", self.otherwise), "END"]


def _branch(word: str, outcome: str | Case | Lines) -> Lines:
    if isinstance(outcome, str):
        if len(word) + len(outcome) < _WIDTH:
            return indented([f"{word} {outcome}"])
        outcome = [outcome]
    lines = outcome.lines() if isinstance(outcome, Case) else outcome
    return indented([word, *indented(lines)])


def repaired_group(rule: Rule, group: Group, score: str, coin: str, dialect: Dialect) -> str | Case:
    """The score of one group after the rule; ``score`` is known to lie in [0, 1].

    Parameters
    ----------
    score, coin : str
        SQL for the score, a double, and for the coin, 13 hexadecimal digits.
    """
    segments = rule.segments(group)
    if len(segments) == 1 and (segments[0].lo, segments[0].hi) == (0.0, 1.0):
        return _outcome(segments[0], score, coin, dialect)
    whens = []
    for segment in segments:
        inside = f"{score} >= {dialect.number(segment.lo)}"
        # The last interval includes 1.
        inside += "" if segment.hi == 1.0 else f" AND {score} < {dialect.number(segment.hi)}"
        whens.append((inside, _outcome(segment, score, coin, dialect)))
    return Case(tuple(whens), score) if whens else score


def _outcome(segment: Segment, score: str, coin: str, dialect: Dialect) -> str | Case:
    """The score in an interval after the rule."""
    whens = []
    for row, low, high in segment.outcomes():
        if high > low:
            if low == 0 and high == 2**BITS:
                return _new(row, score, dialect)
            whens.append((f"{coin} < '{hex_bound(high)}'", _new(row, score, dialect)))
    return Case(tuple(whens), score) if whens else score


def _new(row: Row, score: str, dialect: Dialect) -> str:
    if row.defers:
        return "NULL"
    if row.value is None:
        return f"1 - {score}"
    if row.end is None:
        return dialect.number(row.value)
    # Only what Row.after adds and multiplies, in the same order, so that every digit is the same.
    way = score if row.lo == 0.0 else f"({score} - {dialect.number(row.lo)})"
    new = f"{dialect.number(row.value)} + {dialect.number(row.slope)} * {way}"
    if row.limit is None:
        return new
    return f"{'LEAST' if row.limit else 'GREATEST'}({new}, {dialect.number(row.limit)})"


def bin_of(score: str, grid: Grid, dialect: Dialect) -> list[str]:
    """The bin of a score in [0, 1] as terms to add: its equal part, and the edges below it.

    Floor, never a cast: some databases round when they cast.
    """
    whole, last = dialect.whole, grid.bins - 1
    part = f"LEAST(FLOOR({score} * {grid.bins}), {last})"
    if not grid.is_dyadic:
        # The product may round across an edge: compare with the edge itself.
        below = f"CAST({score} < {part} / {grid.bins} AS {whole})"
        above = f"CAST({score} >= ({part} + 1) / {grid.bins} AS {whole})"
        part = f"LEAST({part} - {below} + {above}, {last})"
    beyond = [f"CAST({score} >= {dialect.number(edge)} AS {whole})" for edge in grid.extra]
    return [f"CAST({part} AS {whole})", *beyond]


SCORE, COIN, NEW = "isocost_tmp_score", "isocost_tmp_coin", "isocost_tmp_new"
"""The query's own columns; the table must not have columns of these names."""

FLOAT_ID = "isocost_tmp_float_id"


def to_sql(
    rule: Rule,
    dialect: str = "duckdb",
    table: str | Sequence[str] = "scores",
    *,
    score: str | None = None,
    group: str | Sequence[str] | None = None,
    id: str | None = None,
    output: str | None = None,
    changed: str | None = None,
    handed_over: str | None = None,
    unknown: Literal["error", "keep"] = "error",
    missing_group: Group | None = None,
    columns: Literal["*"] | Sequence[str] = "*",
) -> str:
    """A query that does to the rows of a table what :meth:`isocost.Rule.apply` does.

    Parameters
    ----------
    rule : Rule
        The rule to apply.
    dialect : str
        duckdb, postgres, bigquery, snowflake, spark, trino, redshift, mysql or clickhouse.
    table : str or sequence of str
        The table; dots separate database, schema and table, or they are passed as a sequence.
    score, group, id : str (``group`` also a list of str)
        The columns; by default those the rule was made from, then "score" and "group".  Ids are
        whole numbers or texts; a rule with a coin needs them.
    output : str, optional
        The column of repaired scores.  It replaces a column of this name that the query knows: one
        of ``columns``, or with "*" the score, group or id column.  By default ``repaired_`` and the
        name of the score column, which must then be a new column.
    changed : str, optional
        A boolean column to add: whether the score was changed.
    handed_over : str, optional
        A boolean column to add: whether the person is handed over, and so has no score.
    unknown, missing_group
        As in :meth:`isocost.Rule.apply`.
    columns : "*" or list of str
        The columns to keep.

    Notes
    -----
    A score that is null or outside [0, 1], a null id and an unknown group end the query with an
    error, as they do elsewhere.  A group of the rule that is a text is
    compared with the text of the column, so a column of whole numbers has the group "1".

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.rules import Row
    >>> rule = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.25, 0.5),), "withhold")
    >>> query = to_sql(rule, "postgres", id="id", columns=["id"], output="score")
    >>> print(query[query.index("SELECT") : query.index("CROSS")])
    SELECT
      t."id",
      isocost_tmp_new AS "score"
    FROM "scores" AS t
    """
    check_unknown(unknown)
    d = dialect_named(dialect)
    score, group, id = applied_columns(rule, score, group, id)
    names = group_names_of(group)
    optional = ("id", "output", "changed", "handed_over")
    flags = {"changed": changed, "handed_over": handed_over}
    check_names(score=score, id=id, output=output, **flags, optional=optional)
    if isinstance(columns, list | tuple):
        for name in columns:
            check_names(columns=name)
    elif columns != "*":
        got, step = repr(columns), 'pass a list of names, or columns="*"'
        raise UsageError(Problem("columns", 'must be "*" or a list of names', got, step))
    missing = missing_group_of(rule, missing_group)
    keys = _keys(rule, names, missing)
    if rule.needs_coin and id is None:
        raise missing_id()
    id_column = f"t.{d.name_of(id)}" if rule.needs_coin and id is not None else None
    number = d.as_double(f"t.{d.name_of(score)}")
    scale = scale_of(rule, None)
    helpers = [(SCORE, scale.sql(number, d.literal))]
    helpers += [(key.alias, d.comparable(f"t.{d.name_of(key.name)}", key.kind)) for key in keys]
    if id_column is not None:
        helpers.append((COIN, d.coin(rule.salt, id_column)))
    tests = _Tests(rule, d, keys, missing, unknown)
    # Ids of a floating type are recognized by the type, which the helpers do not keep.
    is_float = d.float_id.format(id_column) if id_column and d.float_id else None
    if is_float:
        helpers.append((FLOAT_ID, is_float))
    new = tests.case(id_column is not None, is_float is not None)
    inputs = [score, *names, *([] if id is None else [id])]
    # Case distinguishes names in some databases only.
    kept = inputs if columns == "*" else columns
    output = written_column(kept, score, output, scale, changed, handed_over, by_case=True)
    differs = f"{NEW} IS NULL OR {NEW} <> {SCORE}" if rule.defers else f"{NEW} <> {SCORE}"
    listed = _Listed(
        d, columns, inputs, output, [(changed, differs), (handed_over, f"{NEW} IS NULL")]
    )
    listed.check([alias for alias, _ in helpers])
    head = _head(rule, id_column is not None, unknown)
    body = _lateral if d.star == "lateral" else _stepwise
    return "\n".join([head, *body(d.table_of(table), helpers, new, listed), ""])


class _Key(NamedTuple):
    """A group column: its name, the kind of its values, and the name of its helper."""

    name: str
    kind: type
    alias: str


def _keys(rule: Rule, names: Sequence[str], missing: Group | None) -> list[_Key]:
    groups = [parts_of(group) for group in rule.groups]
    sizes = set(map(len, groups))
    if sizes != {len(names)}:
        must = f"must name as many columns as the groups of the rule have parts: {max(sizes)}"
        got = f"{len(names)}: {', '.join(map(repr, names))}"
        step = "name the columns the rule was made with, in the same order"
        raise UsageError(Problem("group", must, got, step))
    keys = []
    for place, name in enumerate(names):
        values = [parts[place] for parts in groups]
        kinds = {type(value) for value in values if value != missing} or {type(values[0])}
        if len(kinds) > 1 and kinds != {int, float}:
            must = "must have values of one type, as a column in a database has"
            got = ", ".join(sorted(kind.__name__ for kind in kinds))
            step = "make the rule again with the column converted to text"
            raise UsageError(Problem(f"group (column {name!r})", must, got, step))
        kind = float if len(kinds) > 1 else kinds.pop()
        alias = f"isocost_tmp_group_{place + 1}" if len(names) > 1 else "isocost_tmp_group"
        keys.append(_Key(name, kind, alias))
    return keys


@dataclass(frozen=True)
class _Tests:
    """The conditions of the CASE: what is wrong with a row, and which group it is in."""

    rule: Rule
    dialect: Dialect
    keys: Sequence[_Key]
    missing: Group | None
    unknown: str

    def case(self, coin: bool, typed: bool) -> Case:
        """The score after the rule, or an error."""
        d = self.dialect
        shown = d.as_text.format(SCORE)
        range_test = f"{SCORE} IS NULL OR NOT ({SCORE} BETWEEN 0 AND 1)"
        whens: list[tuple[str, str | Case]] = [(range_test, d.fail("score outside [0, 1]", shown))]
        if self.missing is None:
            nulls = " OR ".join(self._is_missing(key) for key in self.keys)
            whens.append((nulls, d.fail("null group, where the score is", shown)))
        if coin:
            what = (
                "null or float id, where the score is" if typed else "null id, where the score is"
            )
            null = f"{COIN} IS NULL" + (f" OR {FLOAT_ID}" if typed else "")
            whens.append((null, d.fail(what, shown)))
        unchanged = []
        for group in self.rule.groups:
            if self.rule.segments(group):
                repaired = repaired_group(self.rule, group, SCORE, COIN, d)
                whens.append((self._is(group), repaired))
            else:
                unchanged.append(self._is(group))
        if self.unknown == "keep":
            return Case(tuple(whens), SCORE)
        whens += [(condition, SCORE) for condition in unchanged]
        return Case(tuple(whens), d.fail("group that the rule does not know", self._shown()))

    def _is(self, group: Group) -> str:
        tests = []
        for key, part in zip(self.keys, parts_of(group), strict=True):
            fits = type(part) is key.kind or (key.kind is float and type(part) is int)
            test = self.dialect.same(key.alias, part) if fits else ""
            if self.missing is not None and part == self.missing:
                null = self._is_missing(key)
                test = f"({test} OR {null})" if test else null
            tests.append(test)
        return " AND ".join(tests)

    def _is_missing(self, key: _Key) -> str:
        nan = self.dialect.is_nan if key.kind is float else None
        null = f"{key.alias} IS NULL"
        return f"({null} OR {nan.format(key.alias)})" if nan else null

    def _shown(self) -> str:
        d = self.dialect
        texts = [d.as_text.format(key.alias) for key in self.keys]
        shown = f"COALESCE({texts[0]}, 'null')" if len(texts) > 1 else texts[0]
        for text in texts[1:]:
            shown = d.joined.format(d.joined.format(shown, "', '"), f"COALESCE({text}, 'null')")
        return shown


@dataclass(frozen=True)
class _Listed:
    """The columns of the result."""

    dialect: Dialect
    columns: Literal["*"] | Sequence[str]
    inputs: Sequence[str]
    output: str
    flags: Sequence[tuple[str | None, str]]

    def _added(self) -> list[tuple[str, str]]:
        return [(name, test) for name, test in self.flags if name is not None]

    def check(self, helpers: Sequence[str]) -> None:
        """Raise for names that the query itself uses, or that would occur twice."""
        listed = [] if self.columns == "*" else list(self.columns)
        added = [name for name, _ in self._added()]
        named = [*listed, *self.inputs, self.output, *added]
        own = [name for name in named if name.lower() in (*helpers, NEW)]
        twice = [name for name in listed if listed.count(name) > 1]
        if own or twice:
            rule = "must differ from each other and from the names the query uses itself"
            step = "choose another name for that column"
            raise UsageError(Problem("columns", rule, repr((own + twice)[0]), step))
        replaces = self.columns == "*" and self.output in self.inputs
        if replaces and self.dialect.star not in ("EXCLUDE", "EXCEPT"):
            rule = "must be listed to replace one of them, because a star cannot leave one out here"
            got = f"all columns, and the output {self.output!r}, for {self.dialect.name}"
            keep = setting("columns")
            step = f"list the columns with {keep}, or give the output another name"
            raise UsageError(Problem("columns", rule, got, step))

    def items(self, prefix: str) -> list[str]:
        """The columns by name, with the new one at its position or at the end."""
        d = self.dialect
        new = f"{NEW} AS {d.name_of(self.output)}"
        listed = [
            new if name == self.output else f"{prefix}{d.name_of(name)}"
            for name in (() if self.columns == "*" else self.columns)
        ]
        if self.columns == "*" or self.output not in self.columns:
            listed.append(new)
        listed += [f"{test} AS {d.name_of(name)}" for name, test in self._added()]
        return listed


def _lateral(table: str, helpers: Sequence[tuple[str, str]], new: Case, listed: _Listed) -> Lines:
    """The query with its helpers beside the table, so that a star is the table's own."""
    star = ["t.*"] if listed.columns == "*" else []
    return [
        *select([*star, *listed.items("t.")]),
        f"FROM {table} AS t",
        "CROSS JOIN LATERAL (",
        *indented(select([f"{text} AS {alias}" for alias, text in helpers])),
        ") AS isocost_prepared",
        "CROSS JOIN LATERAL (",
        *indented(select([named(new.lines(), NEW)])),
        ") AS isocost_repaired",
    ]


def _stepwise(table: str, helpers: Sequence[tuple[str, str]], new: Case, listed: _Listed) -> Lines:
    """The query in named steps; a star leaves out the columns that the steps add."""
    d = listed.dialect
    prepared = select(["t.*", *(f"{text} AS {alias}" for alias, text in helpers)])
    repaired = select(["*", named(new.lines(), NEW)])
    steps = {
        "isocost_prepared": [*prepared, f"FROM {table} AS t"],
        "isocost_repaired": [*repaired, "FROM isocost_prepared"],
    }
    left_out = [*(alias for alias, _ in helpers), NEW]
    if listed.output in listed.inputs:
        left_out.append(d.name_of(listed.output))
    own = ", ".join(left_out)
    if listed.columns != "*":
        last = [*select(listed.items("")), "FROM isocost_repaired"]
    elif d.star == "EXCLUDE last":
        steps["isocost_named"] = [*select(["*", *listed.items("")]), "FROM isocost_repaired"]
        last = [f"SELECT * EXCLUDE ({own})", "FROM isocost_named"]
    else:
        last = [*select([f"* {d.star} ({own})", *listed.items("")]), "FROM isocost_repaired"]
    return [*steps_of(steps), *last]


def _head(rule: Rule, coin: bool, unknown: str) -> str:
    cost = "" if rule.cost is None else f", cost {rule.cost}"
    touched = [group for group in rule.groups if rule.segments(group)]
    names = dict(zip(rule.groups, group_names(rule.groups), strict=True))
    unchanged = ", ".join(names[group] for group in rule.groups if group not in touched)
    changed = ", ".join(names[group] for group in touched)
    lines = [f"Scores after a rule made by {rule.method}{cost}; isocost {__version__}."]
    lines += [f"Note: {note}" for note in rule.notes]
    lines.append(f"Changed: {changed or 'nobody'}.  Unchanged: {unchanged or 'nobody'}.")
    if rule.defers:
        lines.append("NULL: this person is handed over, and somebody else decides.")
    if coin:
        lines.append(
            f"The coin is the first 13 hexadecimal digits of md5('{rule.salt}:' || id), so the "
            "same person has the same coin everywhere; 'g' is above every digit."
        )
    ending = " and an unknown group end" if unknown == "error" else " end"
    lines.append(f"A bad score, a null id or group{ending} the query.")
    return "\n".join(comment(line) for line in lines)


_ZEROS = ("0", "false", "0.0", "0.0E0")

_ONES = ("1", "true", "1.0", "1.0E0")

_NANS = ("NaN", "nan")


def tally_sql(
    dialect: str = "duckdb",
    table: str | Sequence[str] = "scores",
    *,
    score: str = "score",
    label: str = "label",
    group: str | Sequence[str] = "group",
    weight: str | None = None,
    bins: int = BINS,
    edges: Sequence[float] = (),
    positive: Any = None,
) -> str:
    """The query that counts the cells of a tally where the data are.

    Run it, and pass the result to :func:`isocost.tally_from_cells`: a few thousand rows, however
    many the table has.

    Parameters
    ----------
    dialect, table
        As in :meth:`isocost.Rule.to_sql`.
    score, label, group, weight, bins, edges, positive
        As in :func:`isocost.tally`.

    Notes
    -----
    Rows whose score, label or weight is invalid become cells of their own with a negative
    ``bin``, ``label`` or ``weight_problem``, so one pass also counts them.  A label is read by its
    text: 0, 1, true and false, or the value of ``positive``.  In PostgreSQL and Redshift products
    that are too small are an error, so there scores below 1e-200 add nothing to weighted sums.

    Examples
    --------
    >>> import duckdb
    >>> import isocost as ic
    >>> database = duckdb.connect()
    >>> rows = "(0.2, 0, 'a'), (0.7, 1, 'a'), (0.4, 1, 'b')"
    >>> names = 'scores (score, label, "group")'
    >>> _ = database.execute(f"CREATE VIEW {names} AS SELECT * FROM (VALUES {rows})")
    >>> ic.tally_from_cells(database.execute(ic.tally_sql()).fetchall())
    Tally of 3 rows in 2 groups; 1024 bins
    group  n  positives  base rate  mean score
    -----  -  ---------  ---------  ----------
    a      2          1     0.5000      0.4500
    b      1          1     1.0000      0.4000
    """
    d = dialect_named(dialect)
    grid = Grid(bins, check_numbers("edges", edges))
    check_names(score=score, label=label, weight=weight, optional=("weight",))
    groups = group_names_of(group)
    made_with = {
        "bins": grid.bins,
        "edges": list(grid.edges),
        "columns": {"score": score, "label": label, "weight": weight, "group": groups},
        "positive": _plain(positive),
    }
    query = _Query(d, grid, groups, weight is not None, positive)
    steps = {
        "isocost_picked": query.picked(d.table_of(table), score, label, weight),
        "isocost_placed": query.placed(),
    }
    head = [
        f"Cells of a tally: rows per group, label and score bin; isocost {__version__}.",
        "Give the rows to isocost.tally_from_cells. Negative labels, bins and weight problems "
        "count rows that cannot be used.",
    ]
    written = d.text(json.dumps(made_with, ensure_ascii=False, allow_nan=False))
    body = [*steps_of(steps), *query.counted(written)]
    return "\n".join([*(comment(line) for line in head), *body, ""])


def _plain(positive: Any) -> Any:
    """The positive label as a value for JSON."""
    check_single("positive", positive)
    value = positive.item() if getattr(positive, "ndim", None) == 0 else positive
    good = not isinstance(value, float) or math.isfinite(value)
    if value is None or (isinstance(value, str | int | float) and good):
        return value
    step = "use a text, a number or a boolean"
    raise UsageError(Problem("positive", "must be a single value", short(positive), step))


class _Query:
    """The three steps: pick the columns, place each row in its cell, count."""

    def __init__(
        self, d: Dialect, grid: Grid, groups: Sequence[str], weighted: bool, positive: Any
    ) -> None:
        self.d = d
        self.grid = grid
        self.names = list(groups)
        self.keys = [f"group_{i + 1}" for i in range(len(groups))]
        self.weighted = weighted
        self.positive = _plain(positive)
        self.named = has_named_label(self.positive)

    def picked(self, table: str, score: str, label: str, weight: str | None) -> Lines:
        """The columns as the types they are counted in."""
        d = self.d
        columns = [f"t.{d.name_of(name)}" for name in self.names]
        items: list[str | Lines] = [
            f"{column} AS {key}" for column, key in zip(columns, self.keys, strict=True)
        ]
        if d.group_key is not None:
            items += [
                f"{d.group_key.format(column)} AS {key}_bytes"
                for column, key in zip(columns, self.keys, strict=True)
            ]
        y = f"t.{d.name_of(label)}"
        items.append(f"{d.as_double(f't.{d.name_of(score)}')} AS h")
        items.append(named(self._label(y).lines(), "label"))
        if weight is not None:
            items.append(f"{d.as_double(f't.{d.name_of(weight)}')} AS weight")
        if self.named:
            items.append(f"{d.as_text.format(y)} AS label_text")
        return [*select(items), f"FROM {table} AS t"]

    def _label(self, y: str) -> Case:
        d = self.d
        text, nan = d.as_text.format(y), ", ".join(map(d.text, _NANS))
        if self.positive is not None:
            same = d.same(d.comparable(y, type(self.positive)), self.positive)
            # A text may be "nan"; a number that is NaN has no label.
            number = not isinstance(self.positive, str | bool)
            null = f"{y} IS NULL" + (f" OR {text} IN ({nan})" if number else "")
            return Case(((null, "-1"), (same, "1")), "0")
        zero, one = (", ".join(map(d.text, texts)) for texts in (_ZEROS, _ONES))
        return Case(
            (
                (f"{y} IS NULL OR {text} IN ({nan})", "-1"),
                (f"{text} IN ({zero})", "0"),
                (f"{text} IN ({one})", "1"),
            ),
            "-2",
        )

    def placed(self) -> Lines:
        """The cell of each row, and the numbers to add where they are valid."""
        nan, infinite = self._is_nan("h"), self._is_infinite("h")
        first, *others = bin_of("h", self.grid, self.d)
        terms = [first, *(f"    + {term}" for term in others)] if others else first
        bin_case = Case(((nan, "-1"), (infinite, "-2"), ("h < 0 OR h > 1", "-3")), terms)
        keys = list(self.keys)
        if self.d.group_key is not None:
            keys += [f"{key}_bytes" for key in self.keys]
        items: list[str | Lines] = [
            *keys,
            "label",
            named(bin_case.lines(), "bin"),
            "CASE WHEN h BETWEEN 0 AND 1 THEN h END AS score",
        ]
        if self.weighted:
            low, high = (self.d.number(end) for end in USUAL_WEIGHTS)
            usual = f"weight BETWEEN {low} AND {high}"
            status = Case(
                (
                    (self._is_nan("weight"), "-1"),
                    (self._is_infinite("weight"), "-2"),
                    ("weight = 0", "-3"),
                    ("weight < 0", "-4"),
                    (f"NOT ({usual})", "-5"),
                ),
                "0",
            )
            items += [
                named(status.lines(), "weight_problem"),
                f"CASE WHEN {usual} THEN weight END AS good_weight",
            ]
        if self.named:
            items.append("label_text")
        return [*select(items), "FROM isocost_picked"]

    def _is_nan(self, column: str) -> str:
        test = f"{column} IS NULL"
        return test if self.d.is_nan is None else f"{test} OR {self.d.is_nan.format(column)}"

    def _is_infinite(self, column: str) -> str:
        return f"ABS({column}) > {self.d.number(1.7976931348623157e308)}"

    def counted(self, made_with: str) -> Lines:
        """The sums of each cell."""
        by = [*self.keys, "label", "bin"]
        by += ["weight_problem"] if self.weighted else []
        items = [f"{made_with} AS made_with", *by, "COUNT(*) AS n"]
        if self.weighted:
            w = "good_weight"
            items += [f"SUM({w}) AS w", f"SUM({w} * {w}) AS w2"]
            items += [self._sum(f"{w} * score", 1e-200, "wh")]
            items += [self._sum(f"{w} * score * score", 1e-100, "wh2")]
        else:
            items += ["SUM(score) AS wh", self._sum("score * score", 1e-160, "wh2")]
        if self.named:
            items += ["MIN(label_text) AS least_label", "MAX(label_text) AS most_label"]
        if self.d.group_key is not None:
            # The keys are bytes here: letters that are equal under a collation stay apart.
            items = [f"ANY_VALUE({i}) AS {i}" if i in self.keys else i for i in items]
            by = [f"{key}_bytes" if key in self.keys else key for key in by]
        return [*select(items), "FROM isocost_placed", f"GROUP BY {', '.join(by)}"]

    def _sum(self, product: str, least: float, name: str) -> str:
        """The sum of a product; 0 for scores so small that multiplying them is an error."""
        if self.d.underflow_fails:
            product = f"CASE WHEN score > {self.d.number(least)} THEN {product} ELSE 0 END"
        return f"SUM({product}) AS {name}"


def dbt_macro(name: str, dialect: str, query: Callable[[str], str]) -> str:
    """The text of a macro that dbt expands to a query.

    Parameters
    ----------
    name : str
        The macro's name; ``{{ name(ref('scores')) }}`` is then the query.
    dialect : str
        That of the query.
    query : callable
        Gives the query for the name of a table.

    Examples
    --------
    >>> print(dbt_macro("people", "duckdb", lambda table: f'SELECT 1 FROM "{table}" AS t'))
    {% macro people(relation) -%}
    SELECT 1 FROM {{ relation }} AS t
    {%- endmacro %}
    <BLANKLINE>
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        step = "for example --dbt isocost_repair"
        rule = "must be a name of letters, digits and underscores for the macro"
        raise UsageError(Problem("--dbt", rule, short(name), step))
    # A table that occurs nowhere else in the query; with a space no dialect leaves out the quotes.
    table, other = "isocost relation", query("isocost other")
    while (quoted := dialect_named(dialect).table_of([table])) in other:
        table += " "
    pieces = [_literal(piece) for piece in query(table).rstrip("\n").split(quoted)]
    body = "{{ relation }}".join(pieces)
    return f"{{% macro {name}(relation) -%}}\n{body}\n{{%- endmacro %}}\n"


def _literal(text: str) -> str:
    """A text in which Jinja finds nothing to expand.

    Examples
    --------
    >>> _literal("a group '{{ x }}'")
    "a group '{{ '{' }}{ x }}'"
    """
    return re.sub(r"\{(?=[{%#])", "{{ '{' }}", text)
