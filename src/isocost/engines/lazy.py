"""Lazy frames and files: counted by one query of narwhals expressions, repaired lazily.

A tally is one query, and only cells come back.  Bad rows become cells of their own, so that the
checks need no second query; only an example of a bad value does.

A rule gives the same lazy frame with a column added or replaced; nothing is computed here.  What
the types of the columns show is reported at once.  Other problems, such as a null id or a group
that the rule does not know, stop the engine when it reaches the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import and_
from typing import Any, Literal, Protocol

import narwhals as nw
import numpy as np
import numpy.typing as npt

from isocost.cells import Cells
from isocost.engines.backends import (
    NO_ID,
    Guard,
    as_number,
    believes_statistics,
    collect,
    column,
    constant,
    guarded,
    limit,
    originally_named,
    plainly_named,
    writes_decimals,
)
from isocost.engines.frames import Lazy, is_wide
from isocost.engines.values import (
    MOST_LABELS,
    USUAL_WEIGHTS,
    WRONG,
    GroupEncoder,
    Problems,
    as_objects,
    count_bad,
    label_problems,
    missing_cells,
    no_rows,
    problem_of,
    title_of,
)
from isocost.errors import DataError, Problem, UsageError, missing_column
from isocost.grid import PROBABILITY, Grid, Scale
from isocost.groups import Group, Scalar, is_exact, parts_of
from isocost.rows import Row
from isocost.rules import Rule, unknown_groups
from isocost.tallies import Tally

Array = npt.NDArray[Any]

_SUMS = ("w", "w2", "wh", "wh2")

_LARGEST = float(np.finfo(np.float64).max)


class Rows(Protocol):
    """Rows that are counted where they are: those of a lazy frame, or of files.

    Attributes
    ----------
    example : "first" or "least"
        Which bad value an error shows; rows without an order have no first one.
    believes_statistics : bool
        Whether the engine may take NaN for a number between minimum and maximum.
    origin : str
        Where the rows come from, for errors.
    """

    example: Literal["first", "least"]
    believes_statistics: bool
    origin: str

    def pick(self, careful: bool) -> Any:
        """The frame to count: groups g0, g1 ..., score h, label y, the label to show l, weight w.

        Unless ``careful``, NaN may pass as any number: quicker, and NaN shows in the sums.
        """

    def collect(self, frame: Any) -> dict[str, Array]:
        """The columns of a small result; nulls are None or NaN."""

    def group_values(self, index: int, values: Array) -> Array:
        """The groups that the values of a group column stand for."""

    def label_value(self, value: Any) -> Any:
        """The label that a value of column l stands for."""


def count_cells(
    rows: Rows,
    columns: dict[str, Any],
    *,
    grid: Grid,
    positive: Any = None,
    missing_group: Group | None = None,
    scale: Scale = PROBABILITY,
    handed_over: bool = False,
    drop_missing: bool = False,
) -> Tally:
    """Count the cells of rows in one query, where they are; open ranks take one more.

    If some were ``handed_over``, cells without a score are kept apart, whatever their labels.
    Cells of rows with missing values are left out if ``drop_missing``.
    """
    if scale.is_open:
        scale = scale.within(*_span(rows, rows.pick(True))[:2])
    placed, cells = _cells(rows, grid, positive, scale)
    n = cells["n"].astype(np.float64)
    if not len(n):
        raise no_rows(rows.origin)
    names = {**columns, "group": ", ".join(columns["group"])}
    named = {role: name for role, name in names.items() if name}
    problems = Problems(named, example=rows.example, scale=scale, can_drop=True)
    problems.rows = int(n.sum())
    raw = [rows.group_values(i, cells[f"g{i}"]) for i in range(len(columns["group"]))]
    apart = (cells["b"] == _NO_SCORE) & handed_over
    if apart.any():
        placed = placed.filter(nw.col("b") != float(_NO_SCORE))
        cells |= {key: np.where(apart, 0, cells[key]) for key in ("y", "b")}
    codes_of = {role: cells[key] for role, (key, _) in _CODES.items() if key in cells}
    if drop_missing:
        lacking = missing_cells(codes_of, raw if missing_group is None else [], columns)
        kept = ~problems.drop(lacking, n)
        cells, codes_of = ({k: v[kept] for k, v in one.items()} for one in (cells, codes_of))
        n, apart, raw = n[kept], apart[kept], [values[kept] for values in raw]
        placed = _complete(placed, missing_group is None)
    encoder = GroupEncoder(raw, missing_group)
    codes = encoder.encode_cells(raw, n, problems)
    count_bad(codes_of, n, problems, partial(_example, rows, placed))
    if scale.is_plain and (cells["b"] == _OUTSIDE).any():
        problems.span = _span(rows, placed)
    # Beside 0 and 1, any other value would be a third label.
    if positive is None and _OTHER_LABEL in cells["y"] and not {0, 1} <= set(cells["y"]):
        problems.labels = _some_labels(rows, placed)
    seen = [cells[key][~apart] for key in ("least_l", "most_l") if key in cells]
    labels = cells["y"][~apart]
    problems.check(label_problems(labels, seen, positive, columns["label"], rows.label_value))
    sums = {name: cells[name].astype(float) if name in cells else n for name in _SUMS}
    counted = Cells(codes, cells["y"], grid.at_count(cells["b"]), n=n, **sums)
    ways = {"missing_group": missing_group, "handed_over": handed_over}
    return Tally.build(
        grid,
        encoder.groups,
        counted.take(~apart),
        problems.reading(columns, positive, drop_missing=drop_missing, **ways),
        handed_over=counted.take(apart).handed(encoder.groups),
    )


def _complete(placed: Any, of_known_group: bool) -> Any:
    """The rows without missing values."""
    schema = placed.collect_schema()
    codes = [nw.col(key) != -1.0 for key in ("b", "y", "v") if key in schema.names()]
    groups = [name for name in schema.names() if name.startswith("g")] if of_known_group else []
    return placed.filter(*codes, *(~is_null(nw.col(name), schema[name]) for name in groups))


_NO_SCORE = _NO_LABEL = -1
"""The code of a score or a label that is null or NaN."""

_OTHER_LABEL, _OUTSIDE = -2, -3
"""The code of a score that is on another scale."""


def _span(rows: Rows, frame: Any) -> tuple[float, float, bool]:
    """The least and the greatest finite score, and whether all are whole."""
    h = nw.col("h")
    flags = frame.filter(~status(h).is_in([-1.0, -2.0])).with_columns(
        fraction=as_number(frame, h != h.floor())
    )
    extremes = rows.collect(
        flags.select(low=h.min(), high=nw.col("h").max(), fraction=nw.col("fraction").max())
    )
    if not len(extremes["low"]) or extremes["low"][0] is None or np.isnan(extremes["low"][0]):
        return 0.0, 0.0, False
    return float(extremes["low"][0]), float(extremes["high"][0]), not extremes["fraction"][0]


def _cells(rows: Rows, grid: Grid, positive: Any, scale: Scale) -> tuple[Any, dict[str, Array]]:
    """The rows and their cells; counted again, with care, if NaN may be among the good rows."""
    for careful in (False, True):
        placed = _placed(rows.pick(careful), grid, scale)
        cells = rows.collect(_counted(placed, positive))
        # Rows without a score or a weight have nothing to sum.
        known = {"h": cells["b"] != _NO_SCORE, "w": cells.get("v", cells["b"]) != _NO_SCORE}
        sums = [
            cells[n].astype(float)[known["w"] & (known["h"] | ("h" not in n))]
            for n in _SUMS
            if n in cells
        ]
        if not rows.believes_statistics or all(np.isfinite(values).all() for values in sums):
            break
    return placed, cells


class LazyRows:
    """The rows of a lazy frame; see :class:`Rows`."""

    example: Literal["first", "least"] = "least"
    origin = ""

    def __init__(self, source: Lazy, columns: dict[str, Any], positive: Any) -> None:
        for name in columns["group"]:
            source.check(name, "group")
        source.check(columns["label"], "label")
        self.source = plainly_named(source.only_texts([*columns["group"], columns["label"]]))
        self.columns, self.positive = columns, positive
        self.believes_statistics = believes_statistics(source)

    def pick(self, careful: bool) -> Any:
        """The frame to count."""
        source, columns = self.source, self.columns
        picked = {f"g{i}": group_column(source, name) for i, name in enumerate(columns["group"])}
        picked["h"] = number(source, columns["score"], "score", careful)
        picked["l"], picked["y"] = _label(source, columns["label"], self.positive)
        if columns["weight"] is not None:
            picked["w"] = number(source, columns["weight"], "weight", careful)
        return source.frame.select(**picked)

    def collect(self, frame: Any) -> dict[str, Array]:
        """Numbers without nulls as they are, all else, and decimals, as objects."""
        return {
            name: series.to_numpy()
            if series.dtype.is_numeric() and series.dtype != nw.Decimal and not series.null_count()
            else as_objects(series.to_list())
            for name, series in collect(frame).items()
        }

    def group_values(self, index: int, values: Array) -> Array:
        """The values; whole numbers of 128 bits were cast to text."""
        if not is_wide(self.source.types[self.columns["group"][index]]):
            return values
        return as_objects([None if text is None else int(text) for text in values.tolist()])

    def label_value(self, value: Any) -> Any:
        """The label; booleans were cast to numbers."""
        return bool(value) if self.source.types[self.columns["label"]] == nw.Boolean else value


def _placed(picked: Any, grid: Grid, scale: Scale = PROBABILITY) -> Any:
    """The rows with their cells and the terms of the sums."""
    raw, w = nw.col("h"), nw.col("w")
    h = raw
    if not scale.is_plain:
        h = nw.col("p")
        picked = picked.with_columns(p=scale.probability(raw))
    good = scale.holds(raw)
    # A float, because casting it to a whole number takes time.
    added = {"b": nw.when(good).then(_count(picked, h, grid)).otherwise(status(raw))}
    sums = {"wh": h, "wh2": h * h}
    if "w" in picked.collect_schema().names():
        # The usual case first: engines stop at the first condition that holds.
        usual = (w >= USUAL_WEIGHTS[0]) & (w <= USUAL_WEIGHTS[1])
        added["v"] = nw.when(usual).then(nw.lit(0.0)).otherwise(status(w, w == 0.0, w < 0.0))
        sums = {"w": w, "w2": w * w, "wh": w * h, "wh2": w * h * h}
    added |= {f"sum_{name}": value for name, value in sums.items()}
    return picked.with_columns(**added)


def _counted(placed: Any, positive: Any) -> Any:
    """The query for the cells.  Only plain columns are summed, which some engines require."""
    names = placed.collect_schema().names()
    keys = [name for name in names if name in ("y", "b", "v") or name.startswith("g")]
    totals = {name.removeprefix("sum_"): nw.col(name).sum() for name in names if "sum_" in name}
    label = nw.col("l")
    seen = {} if positive is None else {"least_l": label.min(), "most_l": label.max()}
    return placed.group_by(*keys).agg(n=nw.len(), **totals, **seen)


def _count(frame: Any, h: nw.Expr, grid: Grid) -> nw.Expr:
    """The number of edges at or below a score in [0, 1], for :meth:`Grid.at_count`."""
    count = _part(frame, h, grid.bins) + _part(frame, h, 10)
    for edge in grid.edges:
        count = count + as_number(frame, h >= constant(frame, edge))
    return count


def _part(frame: Any, h: nw.Expr, parts: int) -> nw.Expr:
    """The number of edges i / parts, from i = 1, at or below a score.

    Nothing is divided: Polars multiplies by the reciprocal of a constant, and gets 3 / 10 wrong.
    """
    # floor, not a cast: DuckDB's cast rounds.
    part = (h * float(parts)).floor()
    flag = partial(as_number, frame)
    too_high, too_low = _misplaced(parts)
    if writes_decimals(frame) and (too_high or too_low):
        # Decimals would not equal the scores of the list, but dividing is exact here.
        above, below = h >= (part + 1.0) / float(parts), h < part / float(parts)
        return part + flag(above) - flag(below)
    part = part - flag(_is_one_of(h, too_high)) if too_high else part
    return part + flag(_is_one_of(h, too_low)) if too_low else part


def _is_one_of(h: nw.Expr, values: list[float]) -> nw.Expr:
    # For one value, as the tenths have, a comparison is quicker than DuckDB's lists.
    return h == values[0] if len(values) == 1 else h.is_in(values)


def _misplaced(parts: int) -> tuple[list[float], list[float]]:
    """The few scores whose product with ``parts`` rounds across an edge, upwards and downwards.

    Examples
    --------
    >>> _misplaced(1024), _misplaced(10)
    (([], []), ([0.8999999999999999], []))
    """
    whole = np.arange(1, parts + 1)
    below, above = np.nextafter(whole / parts, 0.0), whole / parts
    scores: tuple[list[float], list[float]] = [], []
    while (wrong := below * parts >= whole).any():
        scores[0].extend(below[wrong].tolist())
        below = np.where(wrong, np.nextafter(below, 0.0), below)
    while (wrong := above * parts < whole).any():
        scores[1].extend(above[wrong].tolist())
        above = np.where(wrong, np.nextafter(above, 1.0), above)
    return scores


def number(source: Lazy, name: str, role: str, careful: bool = True) -> nw.Expr:
    """A numeric column as Float64; another type is an error before any row is read."""
    source.check_name(name, role)
    kind = source.types[name]
    if kind == nw.Boolean:
        return column(source, name).cast(nw.Int64).cast(nw.Float64)
    if kind == nw.Unknown:
        source.check(name, role)
    elif kind == nw.Decimal:
        # Through text, because some engines miss the nearest double.
        return column(source, name).cast(nw.String).cast(nw.Float64)
    elif not kind.is_numeric():
        step = "cast the column to a number in the engine first"
        got = f"a column of type {kind}"
        raise DataError(Problem(title_of(role, name), "must hold numbers", got, step))
    return column(source, name, careful).cast(nw.Float64)


def is_null(values: nw.Expr, kind: Any) -> nw.Expr:
    """Whether a value is null or NaN."""
    return values.is_null() | values.is_nan() if kind.is_float() else values.is_null()


def status(values: nw.Expr, *others: nw.Expr) -> nw.Expr:
    """What is wrong with a number: a key of :data:`WRONG`, as a float.

    It is the place of the first test that holds: null, infinite, ``others``, or none of these.
    """
    null, infinite = values.is_null() | values.is_nan(), (values > _LARGEST) | (values < -_LARGEST)
    tests = (null, infinite, *others)
    whens = [nw.when(test).then(nw.lit(-1.0 - index)) for index, test in enumerate(tests)]
    return nw.coalesce(*whens, nw.lit(-1.0 - len(tests)))


def group_column(source: Lazy, name: str) -> nw.Expr:
    """A group column; categories and numbers of 128 bits become texts."""
    values, kind = column(source, name), source.types[name]
    as_text = kind in (nw.Categorical, nw.Enum) or is_wide(kind)
    return values.cast(nw.String) if as_text else values


def fits(kind: Any, value: Scalar) -> bool:
    """Whether a column of this type can have a value; as in Python, 1 is 1.0 and True."""
    if isinstance(value, str):
        return kind in (nw.String, nw.Categorical, nw.Enum, nw.Object)
    if kind == nw.Boolean:
        return value in (0, 1)
    if kind.is_integer():
        # The engine would round or reject a number beyond the range of the type.
        least, most = _range(kind)
        return value == int(value) and least <= value <= most
    return bool(kind.is_numeric()) and is_exact(value)


def _range(kind: Any) -> tuple[int, int]:
    """The smallest and the largest number of an integer type."""
    bits = int(str(kind).rpartition("t")[2])
    return (
        (0, 2**bits - 1) if str(kind).startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )


def equals(values: nw.Expr, kind: Any, value: Scalar) -> nw.Expr:
    """Whether a column has a value; never, if its type does not fit."""
    if not fits(kind, value):
        # Not a literal, which would have a single row.
        return values.is_null() & ~values.is_null()
    if kind == nw.Boolean:
        return values == bool(value)
    if is_wide(kind):
        return values == str(int(value))
    return values == (int(value) if isinstance(value, bool) or kind.is_integer() else value)


def _label(source: Lazy, name: str, positive: Any) -> tuple[nw.Expr, nw.Expr]:
    """The label to show, and the label as 0 and 1 with -1 for null and -2 for anything else."""
    kind, values = source.types[name], group_column(source, name)
    shown = values.cast(nw.Int64) if kind == nw.Boolean else values
    text = kind in (nw.String, nw.Categorical, nw.Enum, nw.Object)
    zero, one = ("0", "1") if text else (0, 1)
    # The usual case first: engines stop at the first condition that holds.
    other = nw.lit(-2 if positive is None else 0)
    otherwise = nw.when(is_null(values, kind)).then(nw.lit(-1)).otherwise(other)
    if positive is None:
        if kind.is_integer() and kind != nw.UInt64 and not is_wide(kind):
            # The quickest way, for the most common type.  Not for UInt64: Polars casts all of it to
            # the Int64 that also holds -1, and fails at values that we are about to refuse.
            return shown, nw.when(values.is_between(0, 1)).then(values).otherwise(otherwise)
        otherwise = nw.when(equals(values, kind, zero)).then(nw.lit(0)).otherwise(otherwise)
    is_one = equals(values, kind, one if positive is None else positive)
    return shown, nw.when(is_one).then(nw.lit(1)).otherwise(otherwise)


_CODES = {"score": ("b", "h"), "label": ("y", "l"), "weight": ("v", "w")}
"""The column with the codes of bad rows, and that with their values, by role."""


def _example(rows: Rows, placed: Any, role: str, code: int) -> Any:
    """A bad value of a role."""
    key, values = _CODES[role]
    bad = placed.filter(nw.col(key) == code)
    if rows.example == "first":
        shown = f"shown_{values}"
        names = bad.collect_schema().names()
        result = bad.select(example=nw.col(shown if shown in names else values)).head(1)
    else:
        # Grouped, because dask has no minimum of texts where a partition is empty.
        result = bad.group_by(key).agg(example=nw.col(values).min())
    value = rows.collect(result)["example"][0]
    return rows.label_value(value) if role == "label" else value


def _some_labels(rows: Rows, placed: Any) -> list[Any]:
    """Some of the labels, where not all are 0 and 1."""
    key, values = _CODES["label"]
    known = placed.filter(nw.col(key) != float(_NO_LABEL)).group_by(values).agg(n=nw.len())
    some = rows.collect(known.head(MOST_LABELS))[values].tolist()
    return list(map(rows.label_value, some))


_NO_GROUP, _OTHER_GROUP = 4, 5

NOBODY = -1.0
"""Stands for the score of people who are handed over: coalesce would pass over a null."""


def apply_lazy(
    rule: Rule,
    source: Lazy,
    *,
    score: str,
    groups: Sequence[str],
    id: str,
    output: str,
    seed: int | None = None,
    unknown: Literal["error", "keep"] = "error",
    missing_group: Group | None = None,
    changed: str | None = None,
    scale: Scale = PROBABILITY,
    handed_over: str | None = None,
) -> Any:
    """The native lazy frame with the repaired scores; see :meth:`isocost.Rule.apply`."""
    if seed is not None:
        must = "needs rows in a fixed order, which a lazy frame does not have"
        step = "pass id= instead, or collect the frame first"
        raise UsageError(Problem("seed", must, f"seed={seed!r}", step))
    source = plainly_named(source, output, *(x for x in (changed, handed_over) if x is not None))
    id_column = _checked_id(source, id) if rule.needs_coin else None
    for name in groups:
        source.check(name, "group")
    source = source.only_texts([*groups, *([] if id_column is None else [id_column])])
    known = _known(rule, [source.types[name] for name in groups], unknown, missing_group)
    names = {"score": score, "group": ", ".join(groups), "id": id}
    own = _free_names(source.columns, "score", "group", "fault", "checked", "coin", "new")
    frame = source.frame.with_columns(
        **{
            own["score"]: number(source, score, "score"),
            own["group"]: _group_code(source, groups, known, missing_group),
        }
    )
    fault = _fault(source, own, groups, id_column, unknown, missing_group, scale)
    guard = Guard(
        score=own["score"],
        fault=own["fault"],
        messages=_messages(names, rule, scale),
        id=None if id_column is None else source.inside(id_column),
        salt=rule.salt,
        checked=own["checked"],
        coin=own["coin"],
    )
    frame = guarded(frame.with_columns(**{own["fault"]: fault}), guard)
    if not scale.is_plain:
        frame = frame.with_columns(**{own["checked"]: scale.probability(nw.col(own["checked"]))})
    frame = frame.with_columns(**{own["new"]: _repaired(frame, rule, known, own)})
    new, checked = nw.col(own["new"]), nw.col(own["checked"])
    decided = new > constant(frame, NOBODY)
    written = {source.inside(output): nw.when(decided).then(new) if rule.defers else new}
    if changed is not None:
        written[source.inside(changed)] = new != checked
    if handed_over is not None:
        written[source.inside(handed_over)] = ~decided
    dropped = [name for role, name in own.items() if role != "coin" or id_column is not None]
    return originally_named(source, frame.with_columns(**written).drop(dropped))


def _checked_id(source: Lazy, id: Any) -> str:
    """The id column; an error if its type cannot be an id."""
    if id not in source.types:
        raise UsageError(missing_column("id", id, source.columns))
    source.check_name(id, "id")
    kind = source.types[id]
    texts = (nw.String, nw.Categorical, nw.Enum, nw.Object)
    if not (kind.is_integer() or kind in texts):
        step = "use whole numbers or texts as ids, for example by casting the column to text"
        raise DataError(problem_of("id", id, f"a column of type {kind}", step))
    return str(id)


def _known(rule: Rule, kinds: list[Any], unknown: str, missing: Group | None) -> list[Group]:
    """The groups of the rule that the types of the columns allow."""
    known = [
        group
        for group in rule.groups
        if len(parts := parts_of(group)) == len(kinds)
        and all(
            part == missing or fits(kind, part) for kind, part in zip(kinds, parts, strict=True)
        )
    ]
    if not known and unknown == "error":
        problem = unknown_groups([], rule.groups).problems[0]
        shown = ", ".join(map(str, kinds))
        got = f"{len(kinds)} group columns of type {shown}" if len(kinds) > 1 else f"type {shown}"
        step = "use group columns of the names and types that the rule was made with"
        raise UsageError(replace(problem, got=got, next_step=step))
    return known


def _free_names(taken: Sequence[str], *roles: str) -> dict[str, str]:
    """Names for our own columns that the data do not have, whatever the case."""
    lower, prefix = {name.lower() for name in taken}, "isocost_"
    while any(name.startswith(prefix) for name in lower):
        prefix += "_"
    return {role: prefix + role for role in roles}


def _group_code(
    source: Lazy, groups: Sequence[str], known: Sequence[Group], missing: Group | None
) -> nw.Expr:
    """The index of a row's group among the known ones; -1 for another group."""
    whens = []
    for code, group in enumerate(known):
        tests = []
        for name, part in zip(groups, parts_of(group), strict=True):
            kind, values = source.types[name], group_column(source, name)
            test = equals(values, kind, part)
            tests.append(test | is_null(values, kind) if part == missing else test)
        whens.append(nw.when(reduce(and_, tests)).then(nw.lit(code)))
    return nw.coalesce(*whens, nw.lit(-1)) if whens else nw.lit(-1)


def _fault(
    source: Lazy,
    ours: dict[str, str],
    groups: Sequence[str],
    id: str | None,
    unknown: str,
    missing: Group | None,
    scale: Scale,
) -> nw.Expr:
    """A code for what is wrong with a row; 0 if nothing is."""
    h = nw.col(ours["score"])
    good = scale.holds(h)
    faults = [nw.when(~nw.coalesce(good, nw.lit(False))).then((0 - status(h)).cast(nw.Int64))]
    if missing is None:
        for name in groups:
            null = is_null(column(source, name), source.types[name])
            faults.append(nw.when(null).then(nw.lit(_NO_GROUP)))
    if unknown == "error":
        faults.append(nw.when(nw.col(ours["group"]) < 0).then(nw.lit(_OTHER_GROUP)))
    if id is not None:
        faults.append(nw.when(column(source, id).is_null()).then(nw.lit(NO_ID)))
    return nw.coalesce(*faults, nw.lit(0)).cast(nw.Int64)


def _messages(names: dict[str, str], rule: Rule, scale: Scale) -> dict[int, str]:
    wrong = WRONG["score"] | {_OUTSIDE: scale.outside}
    problems = {-code: problem_of("score", names["score"], kind) for code, kind in wrong.items()}
    if not scale.is_plain:
        problems = {code: replace(one, rule=scale.rule) for code, one in problems.items()}
    problems[_NO_GROUP] = problem_of("group", names["group"], "null")
    other = unknown_groups([], rule.groups).problems[0]
    problems[_OTHER_GROUP] = replace(other, got="another group")
    # Lazy frames have no seed to fall back on.
    problems[NO_ID] = problem_of("id", names["id"], "null", "give every row an id")
    return {code: str(problem) for code, problem in problems.items()}


def _repaired(frame: Any, rule: Rule, known: Sequence[Group], ours: dict[str, str]) -> nw.Expr:
    """The score after the rule: the first outcome whose condition holds, else the score."""
    h, coin, outcomes = nw.col(ours["checked"]), nw.col(ours["coin"]), []
    exactly = partial(constant, frame)
    for code, group in enumerate(known):
        mine = nw.col(ours["group"]) == code
        for segment in rule.segments(group):
            inside = mine & (h >= exactly(segment.lo))
            inside = inside if segment.hi == 1.0 else inside & (h < exactly(segment.hi))
            for row, bound in zip(segment.rows, segment.bounds, strict=True):
                if segment.needs_coin:
                    chosen = inside & (coin < limit(frame, bound))
                elif bound > 0:
                    chosen = inside
                else:
                    continue
                new = _new(row, h, exactly)
                if row.limit is not None:
                    most = exactly(row.limit)
                    beyond = new > most if row.limit else new < most
                    outcomes.append(nw.when(chosen & beyond).then(most))
                outcomes.append(nw.when(chosen).then(new))
    return nw.coalesce(*outcomes, h) if outcomes else h


def _new(row: Row, h: nw.Expr, exactly: Callable[[float], nw.Expr]) -> nw.Expr:
    """The score after a row; a line may pass the row's limit by a rounding error."""
    if row.defers:
        return exactly(NOBODY)
    if row.value is None:
        return 1.0 - h
    if row.end is None:
        return exactly(float(row.value))
    # Only what Row.after adds and multiplies, in the same order, so that every digit is the same.
    return exactly(float(row.value)) + exactly(row.slope) * (h - exactly(float(row.lo)))
