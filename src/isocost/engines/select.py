"""A rule as one CASE expression in any dialect, and as a SELECT that a warehouse can run.

The layout of a query is a list of lines, with one item per line.  A quoted name may contain a line
break, and what follows it must not be indented, so the text of a query is never split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Literal, TypeAlias

from isocost import __version__
from isocost.checks import check_names, group_names_of
from isocost.coin import BITS, hex_bound
from isocost.engines.dialects import Dialect, dialect_named
from isocost.engines.values import missing_id
from isocost.errors import Problem, UsageError
from isocost.grid import Grid
from isocost.groups import Group, Scalar, as_group, group_names, parts_of
from isocost.rows import Row, Segment
from isocost.rules import Rule, check_unknown

Lines: TypeAlias = list[str]

_WIDTH = 90


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


_LONG = 90


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
        if len(word) + len(outcome) < _LONG:
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
    last = grid.bins - 1
    part = f"LEAST(FLOOR({score} * {grid.bins}), {last})"
    if not grid.is_dyadic:
        # The product may round across an edge: compare with the edge itself.
        below = _flag(f"{score} < {part} / {grid.bins}", dialect)
        above = _flag(f"{score} >= ({part} + 1) / {grid.bins}", dialect)
        part = f"LEAST({part} - {below} + {above}, {last})"
    beyond = [_flag(f"{score} >= {dialect.number(edge)}", dialect) for edge in grid.extra]
    return [f"CAST({part} AS {dialect.whole})", *beyond]


def _flag(condition: str, dialect: Dialect) -> str:
    return f"CAST({condition} AS {dialect.whole})"


SCORE, COIN, NEW = "isocost_tmp_score", "isocost_tmp_coin", "isocost_tmp_new"
"""The query's own columns; the table must not have columns of these names."""

FLOAT_ID = "isocost_tmp_float_id"


def to_sql(
    rule: Rule,
    dialect: str = "duckdb",
    table: str | Sequence[str] = "scores",
    *,
    score: str = "score",
    group: str | Sequence[str] = "group",
    id: str | None = "id",
    output: str | None = None,
    changed: str | None = None,
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
        The columns.  Ids are whole numbers or texts; they are not used if the rule has no coin.
    output : str, optional
        The column of repaired scores; by default ``repaired_`` and the name of the score column.
        It may be one of ``columns``, which it then replaces.
    changed : str, optional
        A boolean column to add: whether the score was changed.
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
    >>> from isocost.rows import Row
    >>> rule = ic.Rule(("a", "b"), (Row("a", 0.0, 1.0, "set", 0.25, 0.5),), "withhold")
    >>> query = to_sql(rule, "postgres", columns=["id"], output="score")
    >>> print(query[query.index("SELECT") : query.index("CROSS")])
    SELECT
      t."id",
      isocost_tmp_new AS "score"
    FROM "scores" AS t
    """
    check_unknown(unknown)
    d = dialect_named(dialect)
    names = group_names_of(group)
    optional = ("id", "output", "changed")
    check_names(score=score, id=id, output=output, changed=changed, optional=optional)
    _check_columns(columns)
    missing = None if missing_group is None else as_group(missing_group)
    keys = _keys(rule, names, missing)
    if rule.needs_coin and id is None:
        raise missing_id()
    id_column = f"t.{d.name_of(id)}" if rule.needs_coin and id is not None else None
    helpers = [(SCORE, d.as_double(f"t.{d.name_of(score)}"))]
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
    output = f"repaired_{score}" if output is None else output
    listed = _Listed(d, columns, inputs, output, changed)
    listed.check([alias for alias, _ in helpers])
    head = _head(rule, id_column is not None, unknown)
    body = _lateral if d.star == "lateral" else _stepwise
    return "\n".join([head, *body(d.table_of(table), helpers, new, listed), ""])


def _check_columns(columns: object) -> None:
    if isinstance(columns, list | tuple):
        for name in columns:
            check_names(columns=name)
    elif columns != "*":
        got, step = repr(columns), 'pass a list of names, or columns="*"'
        raise UsageError(Problem("columns", 'must be "*" or a list of names', got, step))


@dataclass(frozen=True)
class _Key:
    """A group column: its name, the kind of its values, and the name of its helper."""

    name: str
    kind: type
    alias: str


def _keys(rule: Rule, names: Sequence[str], missing: Group | None) -> list[_Key]:
    groups = [parts_of(group) for group in rule.groups]
    sizes = {len(parts) for parts in groups}
    if sizes != {len(names)}:
        raise UsageError(
            Problem(
                "group",
                f"must name as many columns as the groups of the rule have parts: {max(sizes)}",
                f"{len(names)}: {', '.join(map(repr, names))}",
                "name the columns the rule was made with, in the same order",
            )
        )
    aliases = [f"isocost_tmp_group_{i + 1}" for i in range(len(names))]
    if len(names) == 1:
        aliases = ["isocost_tmp_group"]
    values = [[parts[i] for parts in groups] for i in range(len(names))]
    kinds = [_kind(name, column, missing) for name, column in zip(names, values, strict=True)]
    return [_Key(*parts) for parts in zip(names, kinds, aliases, strict=True)]


def _kind(name: str, values: Iterable[Scalar], missing: Group | None) -> type:
    """The type of the values of a group column, of which a column in a database has one."""
    listed = list(values)
    kinds = {type(value) for value in listed if value != missing} or {type(listed[0])}
    if kinds == {int, float}:
        return float
    if len(kinds) > 1:
        raise UsageError(
            Problem(
                f"group (column {name!r})",
                "must have values of one type, as a column in a database has",
                ", ".join(sorted(kind.__name__ for kind in kinds)),
                "make the rule again with the column converted to text",
            )
        )
    return kinds.pop()


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
    changed: str | None

    def check(self, helpers: Sequence[str]) -> None:
        """Raise for names that the query itself uses, or that would occur twice."""
        listed = [] if self.columns == "*" else list(self.columns)
        named = [*listed, *self.inputs, self.output, *([self.changed] if self.changed else [])]
        own = [name for name in named if name.lower() in (*helpers, NEW)]
        twice = [name for name in listed if listed.count(name) > 1]
        if self.changed is not None and self.changed in (*listed, self.output):
            twice.append(self.changed)
        if own or twice:
            rule = "must differ from each other and from the names the query uses itself"
            step = "choose another name for that column"
            raise UsageError(Problem("columns", rule, repr((own + twice)[0]), step))
        if self.columns == "*" and self.output in self.inputs:
            self._check_star()

    def _check_star(self) -> None:
        """Raise if a column of a star is to be replaced, and a star cannot leave one out."""
        if self.dialect.star in ("EXCLUDE", "EXCEPT"):
            return
        raise UsageError(
            Problem(
                "columns",
                "must be listed to replace one of them, because a star cannot leave one out here",
                f"columns='*' and output={self.output!r} for {self.dialect.name}",
                "list the columns, or give the output another name",
            )
        )

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
        if self.changed is not None:
            listed.append(f"{NEW} <> {SCORE} AS {d.name_of(self.changed)}")
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
    if coin:
        lines.append(
            f"The coin is the first 13 hexadecimal digits of md5('{rule.salt}:' || id), so the "
            "same person has the same coin everywhere; 'g' is above every digit."
        )
    ending = " and an unknown group end" if unknown == "error" else " end"
    lines.append(f"A bad score, a null id or group{ending} the query.")
    return "\n".join(comment(line) for line in lines)
