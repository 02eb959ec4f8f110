"""The two queries that a warehouse runs: a rule applied to a table, and the cells of a tally.

The cells come back to :func:`tally_from_cells`.  The layout of a query is a list of lines, with one
item per line.  A quoted name may contain a line break, and what follows it must not be indented, so
the text of a query is never split.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from textwrap import wrap
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from isocost import __version__
from isocost.cells import UNLABELLED
from isocost.checks import (
    check_columns,
    check_names,
    check_numbers,
    check_single,
    group_names_of,
    short,
)
from isocost.coin import BITS, hex_bound
from isocost.engines.columns import (
    USUAL_WEIGHTS,
    Array,
    Problems,
    applied_columns,
    as_objects,
    checked_cells,
    missing_group_of,
    missing_id,
    nothing_left,
    rows_of,
    scale_of,
    written_column,
)
from isocost.engines.dialects import Dialect, dialect_named
from isocost.errors import DataError, IsocostError, Problem, UsageError, setting
from isocost.grid import BINS, Grid
from isocost.groups import Group, group_names, is_known, is_null, parts_of, to_json
from isocost.persons import Persons, products_of, terms_of
from isocost.readings import Missing
from isocost.rules import Row, Rule, Segment, check_unknown
from isocost.tallies import FORMAT, VERSION, Tally, read_fields

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
    """The score of one group after the rule, given SQL for the score in [0, 1] and the coin."""
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
    score, group, id, changed, handed_over, unknown, missing_group
        As in :meth:`isocost.Rule.apply`.
    output : str, optional
        The column of repaired scores.  It replaces a column of this name that the query knows: one
        of ``columns``, or with "*" the score, group or id column.  By default ``repaired_`` and the
        name of the score column, which must then be a new column.
    columns : "*" or list of str
        The columns to keep.

    Notes
    -----
    A score that is null or outside [0, 1], a null id and an unknown group end the query with an
    error.  A group of the rule that is a text is compared with the text of the column, so a column
    of whole numbers has the group "1".

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
    flags = {"changed": changed, "handed_over": handed_over}
    check_names(score=score, id=id, output=output, **flags, optional=("id", "output", *flags))
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
    scale = scale_of(rule, None)
    helpers = {SCORE: scale.sql(d.as_double(f"t.{d.name_of(score)}"), d.literal)}
    helpers |= {key.alias: d.comparable(f"t.{d.name_of(key.name)}", key.kind) for key in keys}
    if rule.needs_coin:
        id_column = f"t.{d.name_of(id)}"
        helpers[COIN] = d.coin(rule.salt, id_column)
        if d.float_id is not None:
            # Ids of a floating type are recognized by the type, which the helpers do not keep.
            helpers[FLOAT_ID] = d.float_id.format(id_column)
    prepared = [f"{text} AS {alias}" for alias, text in helpers.items()]
    new = named(_checked_case(rule, d, keys, missing, unknown, helpers).lines(), NEW)
    inputs = [score, *names, *([] if id is None else [id])]
    # Case distinguishes names in some databases only.
    kept = inputs if columns == "*" else columns
    output = written_column(kept, score, output, scale, changed, handed_over, by_case=True)
    differs = f"{NEW} IS NULL OR {NEW} <> {SCORE}" if rule.defers else f"{NEW} <> {SCORE}"
    tests = {changed: differs, handed_over: f"{NEW} IS NULL"}
    added = {name: test for name, test in tests.items() if name is not None}
    listed = [] if columns == "*" else list(columns)
    named_columns = [*listed, *inputs, output, *added]
    wrong = [name for name in named_columns if name.lower() in (*helpers, NEW)]
    wrong += [name for name in listed if listed.count(name) > 1]
    if wrong:
        must = "must differ from each other and from the names the query uses itself"
        step = "choose another name for that column"
        raise UsageError(Problem("columns", must, repr(wrong[0]), step))
    if columns == "*" and output in inputs and d.star not in ("EXCLUDE", "EXCEPT"):
        must = "must be listed to replace one of them, because a star cannot leave one out here"
        got = f"all columns, and the output {output!r}, for {d.name}"
        step = f"list the columns with {setting('columns')}, or give the output another name"
        raise UsageError(Problem("columns", must, got, step))
    # The new column stands at its position or at the end.
    prefix = "t." if d.star == "lateral" else ""
    items = [
        f"{NEW} AS {d.name_of(name)}" if name == output else f"{prefix}{d.name_of(name)}"
        for name in (listed if output in listed else [*listed, output])
    ]
    items += [f"{test} AS {d.name_of(name)}" for name, test in added.items()]
    source, head = f"FROM {d.table_of(table)} AS t", _head(rule, unknown)
    if d.star == "lateral":
        # With helpers beside the table, a star is the table's own.
        query = [
            *select([*(["t.*"] if columns == "*" else []), *items]),
            source,
            "CROSS JOIN LATERAL (",
            *indented(select(prepared)),
            ") AS isocost_prepared",
            "CROSS JOIN LATERAL (",
            *indented(select([new])),
            ") AS isocost_repaired",
        ]
        return "\n".join([head, *query, ""])
    # In named steps; a star leaves out the columns that the steps add.
    steps = {
        "isocost_prepared": [*select(["t.*", *prepared]), source],
        "isocost_repaired": [*select(["*", new]), "FROM isocost_prepared"],
    }
    own = ", ".join([*helpers, NEW, *([d.name_of(output)] if output in inputs else [])])
    if columns != "*":
        last = [*select(items), "FROM isocost_repaired"]
    elif d.star == "EXCLUDE last":
        steps["isocost_named"] = [*select(["*", *items]), "FROM isocost_repaired"]
        last = [f"SELECT * EXCLUDE ({own})", "FROM isocost_named"]
    else:
        last = [*select([f"* {d.star} ({own})", *items]), "FROM isocost_repaired"]
    return "\n".join([head, *steps_of(steps), *last, ""])


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


def _checked_case(
    rule: Rule,
    d: Dialect,
    keys: Sequence[_Key],
    missing: Group | None,
    unknown: str,
    helpers: Mapping[str, str],
) -> Case:
    """The score after the rule, or an error if something is wrong with the row."""
    shown = d.as_text.format(SCORE)
    range_test = f"{SCORE} IS NULL OR NOT ({SCORE} BETWEEN 0 AND 1)"
    whens: list[tuple[str, str | Case]] = [(range_test, d.fail("score outside [0, 1]", shown))]

    def is_missing(key: _Key) -> str:
        null, nan = f"{key.alias} IS NULL", d.is_nan if key.kind is float else None
        return f"({null} OR {nan.format(key.alias)})" if nan else null

    def is_in(group: Group) -> str:
        tests = []
        for key, part in zip(keys, parts_of(group), strict=True):
            fits = type(part) is key.kind or (key.kind is float and type(part) is int)
            test = d.same(key.alias, part) if fits else ""
            if missing is not None and part == missing:
                test = f"({test} OR {is_missing(key)})" if test else is_missing(key)
            tests.append(test)
        return " AND ".join(tests)

    if missing is None:
        nulls = " OR ".join(map(is_missing, keys))
        whens.append((nulls, d.fail("null group, where the score is", shown)))
    if COIN in helpers:
        what, null = "null id, where the score is", f"{COIN} IS NULL"
        if FLOAT_ID in helpers:
            what, null = "null or float id, where the score is", f"{null} OR {FLOAT_ID}"
        whens.append((null, d.fail(what, shown)))
    changed = [group for group in rule.groups if rule.segments(group)]
    whens += [(is_in(group), repaired_group(rule, group, SCORE, COIN, d)) for group in changed]
    if unknown == "keep":
        return Case(tuple(whens), SCORE)
    whens += [(is_in(group), SCORE) for group in rule.groups if group not in changed]
    first, *others = (d.as_text.format(key.alias) for key in keys)
    shown = f"COALESCE({first}, 'null')" if others else first
    for text in others:
        shown = d.joined.format(d.joined.format(shown, "', '"), f"COALESCE({text}, 'null')")
    return Case(tuple(whens), d.fail("group that the rule does not know", shown))


def _head(rule: Rule, unknown: str) -> str:
    """The comments above the query of a rule."""
    cost = "" if rule.cost is None else f", cost {rule.cost}"
    names = dict(zip(rule.groups, group_names(rule.groups), strict=True))
    changed = ", ".join(names[group] for group in rule.groups if rule.segments(group))
    unchanged = ", ".join(names[group] for group in rule.groups if not rule.segments(group))
    lines = [f"Scores after a rule made by {rule.method}{cost}; isocost {__version__}."]
    lines += [f"Note: {note}" for note in rule.notes]
    lines.append(f"Changed: {changed or 'nobody'}.  Unchanged: {unchanged or 'nobody'}.")
    if rule.defers:
        lines.append("NULL: this person is handed over, and somebody else decides.")
    if rule.needs_coin:
        lines.append(
            f"The coin is the first 13 hexadecimal digits of md5('{rule.salt}:' || id), so the "
            "same person has the same coin everywhere; 'g' is above every digit."
        )
    ending = " and an unknown group end" if unknown == "error" else " end"
    lines.append(f"A bad score, a null id or group{ending} the query.")
    return "\n".join(map(comment, lines))


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
    person: str | None = None,
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
    score, label, group, weight, person, bins, edges, positive
        As in :func:`isocost.tally`.

    Notes
    -----
    Rows whose score, label, weight or person is invalid become cells of their own with a negative
    ``bin``, ``label``, ``weight_problem`` or ``person_problem``, so one pass also counts them.  A
    label is read by its text: 0, 1, true and false, or the value of ``positive``.  In PostgreSQL
    and Redshift products that are too small are an error, so there scores below 1e-200 add nothing
    to weighted sums.

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
    named_columns = check_columns(score, label, group, weight, person)
    groups, positive = named_columns["group"], _plain(positive)
    made_with = {
        "bins": grid.bins,
        "edges": list(grid.edges),
        "thresholds": list(grid.thresholds),
        "columns": named_columns,
        "positive": positive,
    }
    # The columns as the types they are counted in.
    keys, y = [f"group_{i + 1}" for i in range(len(groups))], f"t.{d.name_of(label)}"
    by_bytes = [] if d.group_key is None else [f"{key}_bytes" for key in keys]
    columns = [f"t.{d.name_of(name)}" for name in groups]
    picked: list[str | Lines] = [f"{c} AS {key}" for c, key in zip(columns, keys, strict=True)]
    picked += [
        f"{str(d.group_key).format(column)} AS {key}"
        for column, key in zip(columns, by_bytes, strict=False)
    ]
    picked.append(f"{d.as_double(f't.{d.name_of(score)}')} AS h")
    picked.append(named(_label(d, y, positive).lines(), "label"))
    if weight is not None:
        picked.append(f"{d.as_double(f't.{d.name_of(weight)}')} AS weight")
    if person is not None:
        who = f"t.{d.name_of(person)}"
        nobody = f"{d.as_text.format(who)} IN ({', '.join(map(d.text, _NANS))})"
        key = (d.group_key or "{}").format(who)
        picked.append(f"CASE WHEN NOT ({nobody}) THEN {key} END AS person")
    if has_named_label(positive):
        picked.append(f"{d.as_text.format(y)} AS label_text")

    # The cell of each row, and the numbers to add where they are valid.
    def bad(column: str) -> list[tuple[str, str]]:
        null = f"{column} IS NULL"
        null = null if d.is_nan is None else f"{null} OR {d.is_nan.format(column)}"
        return [(null, "-1"), (f"ABS({column}) > {d.number(1.7976931348623157e308)}", "-2")]

    first, *others = bin_of("h", grid, d)
    terms = [first, *(f"    + {term}" for term in others)] if others else first
    bin_case = Case((*bad("h"), ("h < 0 OR h > 1", "-3")), terms)
    placed: list[str | Lines] = [*keys, *by_bytes, "label", named(bin_case.lines(), "bin")]
    placed.append("CASE WHEN h BETWEEN 0 AND 1 THEN h END AS score")
    by = [*(by_bytes or keys), "label", "bin"]
    if weight is not None:
        low, high = (d.number(end) for end in USUAL_WEIGHTS)
        usual = f"weight BETWEEN {low} AND {high}"
        signs = ("weight = 0", "-3"), ("weight < 0", "-4"), (f"NOT ({usual})", "-5")
        placed.append(named(Case((*bad("weight"), *signs), "0").lines(), "weight_problem"))
        placed.append(f"CASE WHEN {usual} THEN weight END AS good_weight")
        by.append("weight_problem")
    if person is not None:
        placed += ["person", "CASE WHEN person IS NULL THEN -1 ELSE 0 END AS person_problem"]
        by.append("person_problem")
    if has_named_label(positive):
        placed.append("label_text")

    # The sums of each cell.
    sums = {
        "made_with": d.text(json.dumps(made_with, ensure_ascii=False, allow_nan=False)),
        # Grouped by bytes, letters that are equal under a collation stay apart.
        **{key: f"ANY_VALUE({key})" for key in keys if by_bytes},
        "n": "COUNT(*)",
        "least_label": "MIN(label_text)",
        "most_label": "MAX(label_text)",
    }
    products = {}
    for name, (product, least) in _products(weight is not None).items():
        if least and d.underflow_fails:
            product = f"CASE WHEN score > {d.number(least)} THEN {product} ELSE 0 END"
        products[name] = product
        sums[name] = f"SUM({product})"
    if person is not None:
        pairs = products_of(grid.thresholds)
        sums |= {"several": "0", "several_all": "0"} | dict.fromkeys(pairs, d.as_double("NULL"))
    counted = [f"{sums[n]} AS {n}" if n in sums else n for n in cell_columns(made_with)]
    head = [
        f"Cells of a tally: rows per group, label and score bin; isocost {__version__}.",
        "Give the rows to isocost.tally_from_cells. Negative labels, bins and weight problems "
        "count rows that cannot be used.",
    ]
    steps = {
        "isocost_picked": [*select(picked), f"FROM {d.table_of(table)} AS t"],
        "isocost_placed": [*select(placed), "FROM isocost_picked"],
    }
    body = [*select(counted), "FROM isocost_placed", f"GROUP BY {', '.join(by)}"]
    if person is not None:
        head.append(f"Rows whose label is {_PERSONS} are persons and the products of their sums.")
        steps["isocost_persons"] = _person_sums(d, keys, by_bytes, products, grid.thresholds)
        alike = {"made_with": sums["made_with"], "label": str(_PERSONS), "n": "COUNT(*)"}
        alike |= {key: sums.get(key, key) for key in keys}
        alike |= dict.fromkeys(("bin", "weight_problem", "person_problem"), "0")
        alike |= dict.fromkeys(("least_label", "most_label"), d.as_text.format("NULL"))
        alike |= dict.fromkeys(products, d.as_double("NULL"))
        tiny, product = d.number(1e-150), "t{i} * t{j}"
        if d.underflow_fails:
            product = f"CASE WHEN t{{i}} > {tiny} AND t{{j}} > {tiny} THEN {product} ELSE 0 END"
        alike |= {n: f"SUM({product.format(i=i, j=j)})" for n, (i, j) in pairs.items()}
        known = f" WHERE {' AND '.join(f'{key} IS NOT NULL' for key in keys)}"
        for name, where in (("several", known), ("several_all", "")):
            shared = f"SELECT person FROM isocost_persons{where} GROUP BY person"
            alike[name] = f"(SELECT COUNT(*) FROM ({shared} HAVING COUNT(*) > 1) AS s)"
        body += ["UNION ALL", *select([f"{alike[n]} AS {n}" for n in cell_columns(made_with)])]
        body += ["FROM isocost_persons", f"GROUP BY {', '.join(by_bytes or keys)}"]
    return "\n".join([*map(comment, head), *steps_of(steps), *body, ""])


_PERSONS = 9
"""Stands in the column of labels for rows about persons."""


def _person_sums(
    d: Dialect,
    keys: Sequence[str],
    by_bytes: Sequence[str],
    products: Mapping[str, str],
    thresholds: Sequence[float],
) -> Lines:
    """The sums of each person over the rows of a group that can be used."""
    weight = products.get("w", d.number(1.0))
    listed: list[str | Lines] = [f"ANY_VALUE({key}) AS {key}" for key in keys if by_bytes]
    listed += [*(by_bytes or keys), "person"]
    for i, (label, term) in enumerate(terms_of(thresholds)):
        tests, value = [f"label = {label}"], products.get(str(term), weight)
        if isinstance(term, float):
            tests.append(f"score >= {d.number(term)}")
        listed.append(f"SUM(CASE WHEN {' AND '.join(tests)} THEN {value} ELSE 0 END) AS t{i}")
    good = ["label >= 0", "bin >= 0", "person IS NOT NULL"]
    good += ["weight_problem = 0"] if "w" in products else []
    by = f"GROUP BY {', '.join([*(by_bytes or keys), 'person'])}"
    return [*select(listed), "FROM isocost_placed", f"WHERE {' AND '.join(good)}", by]


def _label(d: Dialect, y: str, positive: Any) -> Case:
    """The label as 0 and 1; -1 for null, -2 for anything else."""
    text, nan = d.as_text.format(y), ", ".join(map(d.text, _NANS))
    if positive is not None:
        same = d.same(d.comparable(y, type(positive)), positive)
        # A text may be "nan"; a number that is NaN has no label.
        is_number = not isinstance(positive, str | bool)
        null = f"{y} IS NULL" + (f" OR {text} IN ({nan})" if is_number else "")
        return Case(((null, "-1"), (same, "1")), "0")
    zero, one = (", ".join(map(d.text, texts)) for texts in (_ZEROS, _ONES))
    null = f"{y} IS NULL OR {text} IN ({nan})"
    whens = (null, "-1"), (f"{text} IN ({zero})", "0"), (f"{text} IN ({one})", "1")
    return Case(whens, "-2")


def _plain(positive: Any) -> Any:
    """The positive label as a value for JSON."""
    check_single("positive", positive)
    value = positive.item() if getattr(positive, "ndim", None) == 0 else positive
    good = not isinstance(value, float) or math.isfinite(value)
    if value is None or (isinstance(value, str | int | float) and good):
        return value
    step = "use a text, a number or a boolean"
    raise UsageError(Problem("positive", "must be a single value", short(positive), step))


def _products(weighted: bool) -> dict[str, tuple[str, float]]:
    """The sums of a cell: what is added up, and the score below which the product may underflow."""
    if not weighted:
        return {"wh": ("score", 0.0), "wh2": ("score * score", 1e-160)}
    w = "good_weight"
    weights = {"w": w, "w2": f"{w} * {w}", "w4": f"{w} * {w} * {w} * {w}"}
    sums = {name: (power, 0.0) for name, power in weights.items()}
    return sums | {"wh": (f"{w} * score", 1e-200), "wh2": (f"{w} * score * score", 1e-100)}


def has_named_label(positive: Any) -> bool:
    """True if labels must be checked for a third value, which booleans do not have."""
    return positive is not None and not isinstance(positive, bool)


def cell_columns(made_with: Mapping[str, Any]) -> list[str]:
    """The columns that the query returns, in order."""
    names = made_with["columns"]
    weighted = names["weight"] is not None
    keys = [f"group_{i + 1}" for i in range(len(names["group"]))]
    seen = ["least_label", "most_label"] if has_named_label(made_with["positive"]) else []
    status = ["weight_problem"] if weighted else []
    persons = []
    if names["person"] is not None:
        status.append("person_problem")
        persons = ["several", "several_all", *products_of(made_with["thresholds"])]
    sums = [*_products(weighted), *seen, *persons]
    return ["made_with", *keys, "label", "bin", *status, "n", *sums]


_KEYS = {
    "label": "y",
    "bin": "b",
    "weight_problem": "v",
    "person_problem": "u",
    "least_label": "least_l",
    "most_label": "most_l",
}
"""The names that :func:`checked_cells` has for columns of the query."""


def tally_from_cells(
    cells: Any,
    *,
    missing_label: str = "refuse",
    missing_group: Group = "refuse",
    drop_missing: bool = False,
) -> Tally:
    """The tally of the cells that :func:`isocost.tally_sql` had a warehouse count.

    Parameters
    ----------
    cells : list of rows, dict of columns, or any eager frame that narwhals knows
        What the query returned; a row is a tuple or a mapping.  The rows of several runs of the
        same query may be put together.
    missing_label, missing_group, drop_missing
        The treatment of rows without a value, as in :func:`isocost.tally`.

    Returns
    -------
    Tally

    Notes
    -----
    The errors are those of :func:`isocost.tally`.  Bins, edges and the names of the columns come
    back with the rows, so they need not be passed again.
    """
    columns = _columns_of(cells)
    made_with = _made_with(columns)
    names: dict[str, Any] = made_with["columns"]
    needed = cell_columns(made_with)[1:]
    missing = [name for name in needed if name not in columns]
    if missing:
        raise _foreign(f"no column {missing[0]!r}")
    found: dict[str, Array] = {}
    whole = ("label", "bin", "weight_problem", "person_problem", "n", "several", "several_all")
    for name in needed:
        is_whole = name in whole
        key = f"g{int(name[6:]) - 1}" if name.startswith("group_") else _KEYS.get(name, name)
        found[key] = _whole(columns[name], name) if is_whole else as_objects(columns[name])
    problems = Problems({k: v for k, v in names.items() if isinstance(v, str)}, can_drop=True)
    problems.names["group"] = ", ".join(names["group"])
    positive = made_with["positive"]
    treatment = Missing.asked(missing_label, missing_group, drop_missing)
    about = found["y"] == _PERSONS
    of_persons = {key: values[about] for key, values in found.items()}
    if names["person"] is not None:
        found = {key: values[~about] for key, values in found.items()}
    codes, groups = checked_cells(found, names, problems, positive=positive, missing=treatment)
    counted = {"group": codes, "label": found["y"], "bin": found["b"], "n": found["n"]}
    for name in _products(names["weight"] is not None):
        try:
            counted[name] = found[name].astype(np.float64)
        except (TypeError, ValueError) as error:
            raise _foreign(f"a value of {name} that is not a number") from error
    # People without a group are of one group, whichever of its parts are missing.
    listed = [to_json(group) if is_known(group) else None for group in groups]
    without = np.array([group is None for group in listed], dtype=bool)
    unknown = (found["y"] == UNLABELLED) | without[codes]
    reading = problems.reading(names, positive, treatment)
    if unknown.all():
        raise nothing_left(reading)
    known = [group for group in listed if group is not None]
    counted["group"] = np.where(without, len(known), np.cumsum(~without) - 1)[codes]
    content = {
        "format": FORMAT,
        "version": VERSION,
        "bins": made_with["bins"],
        "edges": made_with["edges"],
        "reading": reading.to_dict(),
        "groups": known,
        "cells": {name: values[~unknown] for name, values in counted.items()},
    }
    if unknown.any():
        apart = {name: values[unknown] for name, values in counted.items()}
        content["unknown"] = {"groups": [*known, None], "cells": apart}
    if names["person"] is not None:
        keys = [f"g{i}" for i in range(len(names["group"]))]
        code_of = dict(zip(rows_of(found, keys), counted["group"].tolist(), strict=True))
        raw = rows_of(of_persons, keys)
        place = {key: index for index, key in enumerate(dict.fromkeys(raw))}
        # Rows of several runs of the query are those of other persons.
        runs = max(Counter(raw).values(), default=0)
        try:
            persons = Persons.counted(made_with["thresholds"], of_persons)
        except (TypeError, ValueError) as error:
            raise _foreign("a product that is not a number") from error
        several = of_persons["several" if treatment.name is None else "several_all"]
        several = int(several.max(initial=0)) * runs
        persons = persons.recoded([place[key] for key in raw], len(place))
        persons = replace(persons, several=several, added=runs > 1)
        # The missing group may be one that the data have too.
        codes_known = [code_of.get(key, -1) for key in place]
        new = [-1 if code == len(known) else code for code in codes_known]
        content["persons"] = persons.recoded(new, len(known)).to_dict()
    try:
        return Tally.build(**read_fields(content, repeated=True))
    except IsocostError as error:
        raise _foreign(error.problems[0].got) from error


def _foreign(got: str) -> DataError:
    rule = "must be what the query of tally_sql returns"
    step = "run the query as it is, and pass all its rows and columns"
    return DataError(Problem("cells", rule, got, step))


def _columns_of(cells: Any) -> dict[str, list[Any]]:
    """The columns of rows, of a dict or of a frame, by their names in lower case."""
    if isinstance(cells, Mapping):
        columns = {str(name): list(values) for name, values in cells.items()}
    elif isinstance(cells, list | tuple):
        columns = _from_rows(list(cells))
    else:
        import narwhals as nw

        try:
            frame = nw.from_native(cells, eager_only=True)
        except TypeError as error:
            kind = f"an object of type {type(cells).__name__}"
            raise _foreign(f"{kind}, which is neither rows nor an eager frame") from error
        columns = {name: frame[name].to_list() for name in frame.columns}
    if not columns or not all(columns.values()):
        step = "check the table of the query"
        raise DataError(Problem("cells", "must have at least one row", "0 rows", step))
    return {name.lower(): [_value(v) for v in values] for name, values in columns.items()}


def _from_rows(rows: list[Any]) -> dict[str, list[Any]]:
    if not rows:
        return {}
    # A row of BigQuery or Spark has keys, and is not a mapping.
    if isinstance(rows[0], Mapping) or (
        hasattr(rows[0], "keys") and not isinstance(rows[0], tuple)
    ):
        return {str(name): [row[name] for row in rows] for name in rows[0].keys()}  # noqa: SIM118
    wrong = [row for row in rows if not hasattr(row, "__getitem__") or not hasattr(row, "__len__")]
    if wrong or not len(rows[0]):
        raise _foreign(f"{short(wrong[0]) if wrong else 'nothing'} as a row")
    order = cell_columns(_made_with({"made_with": [row[0] for row in rows if len(row)]}))
    if any(len(row) != len(order) for row in rows):
        raise _foreign(f"rows that have not {len(order)} values: {', '.join(order)}")
    return {name: [row[i] for row in rows] for i, name in enumerate(order)}


def _value(value: Any) -> Any:
    """A value of any driver as a plain Python value."""
    if is_null(value):
        return None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode()
    return value.item() if isinstance(value, np.generic) else value


def _made_with(columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    """The settings of the query, according to the rows; they are checked, not trusted."""
    texts = set(columns.get("made_with", ()))
    if len(texts) != 1:
        got = "no column 'made_with'" if not texts else "rows of queries that differ"
        raise _foreign(got)
    try:
        content = json.loads(texts.pop())
        names = content["columns"]
        plain = [names["score"], names["label"], *names["group"], names["weight"] or ""]
        good = names["group"] and all(isinstance(name, str) for name in plain)
        good = good and isinstance(content["bins"], int) and isinstance(content["edges"], list)
        good = good and isinstance(names["person"] or "", str)
        check_numbers("thresholds", content["thresholds"])
    except (TypeError, ValueError, KeyError, IsocostError) as error:
        raise _foreign("a column 'made_with' that is not ours") from error
    if not good or "positive" not in content:
        raise _foreign("a column 'made_with' that is not ours")
    return dict(content)


def _whole(values: list[Any], name: str) -> Array:
    try:
        array = np.array([int(value) for value in values], dtype=np.int64)
        if [float(value) for value in values] == array.tolist():
            return array
    except (TypeError, ValueError, OverflowError):
        pass
    raise _foreign(f"a value of {name} that is not a whole number")


def dbt_macro(name: str, dialect: str, query: Callable[[str], str]) -> str:
    """The text of a macro, ``{{ name(ref('scores')) }}``, that dbt expands to a query.

    ``query`` gives the query for the name of a table.

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
    # Jinja must find nothing to expand in the query itself.
    pieces = query(table).rstrip("\n").split(quoted)
    pieces = [re.sub(r"\{(?=[{%#])", "{{ '{' }}", piece) for piece in pieces]
    body = "{{ relation }}".join(pieces)
    return f"{{% macro {name}(relation) -%}}\n{body}\n{{%- endmacro %}}\n"
