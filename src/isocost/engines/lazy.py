"""Lazy frames to a tally: one query of narwhals expressions; only cells come back.

Bad rows become cells of their own, so that the checks cost no second query; only an example of a
bad value does.

A rule on a lazy frame: the same lazy frame with one column more or replaced.

Nothing is computed here.  What an eager frame is told at once, such as a null id or a group that
the rule does not know, stops the engine when it comes to the row; what the types of the columns
tell is told at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from isocost.engines.arrays import raise_all
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
from isocost.engines.groups import GroupEncoder, as_objects, two_valued
from isocost.engines.problems import USUAL_WEIGHTS, WRONG, Problems, problem_of, title_of
from isocost.engines.source import encode_cells
from isocost.errors import DataError, Problem, UsageError, missing_column
from isocost.grid import Grid
from isocost.groups import Group, Scalar, is_exact
from isocost.rules import Rule, unknown_groups
from isocost.tallies import Cells, Tally

if TYPE_CHECKING:
    from narwhals import Expr

__all__ = [
    "apply_lazy",
    "equals",
    "fits",
    "group_column",
    "is_null",
    "number",
    "score_status",
    "tally_lazy",
]

_SUMS = ("w", "w2", "wh", "wh2")

_LARGEST = float(np.finfo(np.float64).max)


def tally_lazy(
    source: Lazy,
    columns: dict[str, Any],
    *,
    grid: Grid,
    positive: Any = None,
    missing_group: Group | None = None,
) -> Tally:
    """Count the cells of a lazy frame in one query; see :func:`isocost.tally`."""
    for name in columns["group"]:
        source.check(name, "group")
    source.check(columns["label"], "label")
    source = plainly_named(source.only_texts([*columns["group"], columns["label"]]))
    placed, found = _found(source, columns, grid, positive)
    n = found["n"].to_numpy().astype(np.float64)
    if not len(n):
        step = "check the source of the data"
        raise DataError(Problem("data", "must have at least one row", "0 rows", step))
    names = {**columns, "group": ", ".join(columns["group"])}
    problems = Problems({role: name for role, name in names.items() if name}, example="least")
    problems.rows = int(n.sum())
    raw = [_values(found[f"g{i}"], source.types[name]) for i, name in enumerate(columns["group"])]
    encoder = GroupEncoder(raw, missing_group)
    codes = encode_cells(encoder, raw, n, problems)
    keys = {key: found[key].to_numpy() for key in ("y", "b", "v") if key in found}
    _count_bad(placed, keys, n, problems)
    raise_all(problems, _label_problems(source, columns["label"], positive, found, keys["y"]))
    sums = {name: found[name].to_numpy() if name in found else n for name in _SUMS}
    cells = Cells(codes, keys["y"], grid.at_count(keys["b"]), n=n, **sums)
    return Tally.build(grid, encoder.groups, cells, columns)


def _found(source: Lazy, columns: dict[str, Any], grid: Grid, positive: Any) -> tuple[Any, Any]:
    """The rows and their cells; asked once more, and with care, if NaN may be among the good."""
    placed = _placed(source, columns, grid, positive, careful=False)
    found = collect(_counted(placed, positive))
    sums = [found[name].to_numpy() for name in _SUMS if name in found]
    if believes_statistics(source) and not all(np.isfinite(values).all() for values in sums):
        placed = _placed(source, columns, grid, positive, careful=True)
        found = collect(_counted(placed, positive))
    return placed, found


def _placed(
    source: Lazy, columns: dict[str, Any], grid: Grid, positive: Any, careful: bool = True
) -> Any:
    """The rows with their cells, and what is to be added up."""
    import narwhals as nw

    picked = {f"g{i}": group_column(source, name) for i, name in enumerate(columns["group"])}
    picked["h"] = number(source, columns["score"], "score", careful)
    picked["l"], picked["y"] = _label(source, columns["label"], positive)
    if columns["weight"] is not None:
        picked["w"] = number(source, columns["weight"], "weight", careful)
    h, w = nw.col("h"), nw.col("w")
    good = (h >= 0.0) & (h <= 1.0)
    # A float, as engines make it: turning it into a whole number takes time.
    added = {"b": nw.when(good).then(_count(source, h, grid)).otherwise(score_status(h))}
    sums = {"wh": h, "wh2": h * h}
    if "w" in picked:
        added["v"] = _weight_status(w)
        sums = {"w": w, "w2": w * w, "wh": w * h, "wh2": w * h * h}
    added |= {f"sum_{name}": value for name, value in sums.items()}
    return source.frame.select(**picked).with_columns(**added)


def _counted(placed: Any, positive: Any) -> Any:
    """The query that makes the cells.  Only plain columns are summed: some engines want that."""
    import narwhals as nw

    names = placed.collect_schema().names()
    keys = [name for name in names if name in ("y", "b", "v") or name.startswith("g")]
    totals = {name.removeprefix("sum_"): nw.col(name).sum() for name in names if "sum_" in name}
    label = nw.col("l")
    seen = {} if positive is None else {"least_l": label.min(), "most_l": label.max()}
    return placed.group_by(*keys).agg(n=nw.len(), **totals, **seen)


def _count(source: Lazy, h: Expr, grid: Grid) -> Expr:
    """How many edges lie at or below a score in [0, 1], for :meth:`Grid.at_count`."""
    count = _part(source, h, grid.bins) + _part(source, h, 10)
    for edge in grid.edges:
        count = count + as_number(source, h >= constant(source.frame, edge))
    return count


def _part(source: Lazy, h: Expr, parts: int) -> Expr:
    """How many of the edges i / parts, from i = 1, lie at or below a score.

    Nothing is divided: Polars does that by a constant's reciprocal, and gets 3 / 10 wrong.
    """
    # floor, not a cast: DuckDB's cast rounds.
    part = (h * float(parts)).floor()
    flag = partial(as_number, source)
    too_high, too_low = _misplaced(parts)
    if writes_decimals(source.frame) and (too_high or too_low):
        # It would not find the scores of a list, but can divide.
        above, below = h >= (part + 1.0) / float(parts), h < part / float(parts)
        return part + flag(above) - flag(below)
    part = part - flag(_is_one_of(h, too_high)) if too_high else part
    return part + flag(_is_one_of(h, too_low)) if too_low else part


def _is_one_of(h: Expr, values: list[float]) -> Expr:
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
    found: tuple[list[float], list[float]] = [], []
    while (wrong := below * parts >= whole).any():
        found[0].extend(below[wrong].tolist())
        below = np.where(wrong, np.nextafter(below, 0.0), below)
    while (wrong := above * parts < whole).any():
        found[1].extend(above[wrong].tolist())
        above = np.where(wrong, np.nextafter(above, 1.0), above)
    return found


def number(source: Lazy, name: str, role: str, careful: bool = True) -> Expr:
    """A numeric column as Float64; another type is refused before any row is read."""
    import narwhals as nw

    source.check_name(name, role)
    kind = source.types[name]
    if kind == nw.Boolean:
        return column(source, name).cast(nw.Int64).cast(nw.Float64)
    if kind == nw.Unknown:
        source.check(name, role)
    elif kind == nw.Decimal:
        # As a text first, or some engines miss the nearest double.
        return column(source, name).cast(nw.String).cast(nw.Float64)
    elif not kind.is_numeric():
        step = "cast the column to a number in the engine first"
        got = f"a column of type {kind}"
        raise DataError(Problem(title_of(role, name), "must hold numbers", got, step))
    return column(source, name, careful).cast(nw.Float64)


def is_null(values: Expr, kind: Any) -> Expr:
    """Whether a value is null or NaN."""
    return values.is_null() | values.is_nan() if kind.is_float() else values.is_null()


def score_status(h: Expr) -> Expr:
    """What is wrong with a score that is not in [0, 1]: a key of :data:`SCORES`, as a float."""
    import narwhals as nw

    return nw.coalesce(
        nw.when(h.is_null() | h.is_nan()).then(nw.lit(-1.0)),
        nw.when((h > _LARGEST) | (h < -_LARGEST)).then(nw.lit(-2.0)),
        nw.lit(-3.0),
    )


def _weight_status(w: Expr) -> Expr:
    import narwhals as nw

    return nw.coalesce(
        nw.when(w.is_null() | w.is_nan()).then(nw.lit(-1)),
        nw.when((w > _LARGEST) | (w < -_LARGEST)).then(nw.lit(-2)),
        nw.when(w == 0.0).then(nw.lit(-3)),
        nw.when(w < 0.0).then(nw.lit(-4)),
        nw.when((w < USUAL_WEIGHTS[0]) | (w > USUAL_WEIGHTS[1])).then(nw.lit(-5)),
        nw.lit(0),
    )


def group_column(source: Lazy, name: str) -> Expr:
    """A group column; categories become texts, and so do numbers of 128 bits."""
    import narwhals as nw

    values, kind = column(source, name), source.types[name]
    as_text = kind in (nw.Categorical, nw.Enum) or is_wide(kind)
    return values.cast(nw.String) if as_text else values


def fits(kind: Any, value: Scalar) -> bool:
    """Whether a column of this type can have a value, as Python compares: 1 is 1.0 and True."""
    import narwhals as nw

    if isinstance(value, str):
        return kind in (nw.String, nw.Categorical, nw.Enum, nw.Object)
    if kind == nw.Boolean:
        return value in (0, 1)
    if kind.is_integer():
        # Not every whole number is one of the type: the engine would round or refuse it.
        least, most = _range(kind)
        return value == int(value) and least <= value <= most
    return bool(kind.is_numeric()) and is_exact(value)


def _range(kind: Any) -> tuple[int, int]:
    """The least and the greatest number of a whole type."""
    bits = int(str(kind).rpartition("t")[2])
    return (
        (0, 2**bits - 1) if str(kind).startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )


def equals(values: Expr, kind: Any, value: Scalar) -> Expr:
    """Whether a column has a value; never, if its type does not fit."""
    import narwhals as nw

    if not fits(kind, value):
        # Not a literal: that would have one row where the column has many.
        return values.is_null() & ~values.is_null()
    if kind == nw.Boolean:
        return values == bool(value)
    if is_wide(kind):
        return values == str(int(value))
    return values == (int(value) if isinstance(value, bool) or kind.is_integer() else value)


def _label(source: Lazy, name: str, positive: Any) -> tuple[Expr, Expr]:
    """The label to show, and the label as 0 and 1 with -1 for null and -2 for anything else."""
    import narwhals as nw

    kind, values = source.types[name], group_column(source, name)
    shown = values.cast(nw.Int64) if kind == nw.Boolean else values
    text = kind in (nw.String, nw.Categorical, nw.Enum, nw.Object)
    zero, one = ("0", "1") if text else (0, 1)
    # What most rows have comes first: engines stop at the condition that holds.
    found = nw.when(is_null(values, kind)).then(nw.lit(-1)).otherwise(nw.lit(0))
    if positive is None:
        found = nw.when(is_null(values, kind)).then(nw.lit(-1)).otherwise(nw.lit(-2))
        if kind.is_integer() and kind != nw.UInt64 and not is_wide(kind):
            # The quickest of all, and the most usual.  Not for UInt64: Polars casts all of it to
            # the Int64 that also holds -1, and fails at values that we are about to refuse.
            return shown, nw.when(values.is_between(0, 1)).then(values).otherwise(found)
        found = nw.when(equals(values, kind, zero)).then(nw.lit(0)).otherwise(found)
    is_one = equals(values, kind, one if positive is None else positive)
    return shown, nw.when(is_one).then(nw.lit(1)).otherwise(found)


def _values(series: Any, kind: Any) -> Any:
    """A group column as an array; numbers as they are, all else as objects."""
    if is_wide(kind):
        return as_objects([None if text is None else int(text) for text in series.to_list()])
    if series.dtype.is_numeric() and not series.null_count():
        return series.to_numpy()
    return as_objects(series.to_list())


def _count_bad(placed: Any, keys: dict[str, Any], n: Any, to: Problems) -> None:
    """Count the rows of the cells that stand for bad data; each kind is asked for an example."""
    import narwhals as nw

    for role, key, values in (("score", "b", "h"), ("label", "y", "l"), ("weight", "v", "w")):
        for code, kind in WRONG[role].items() if key in keys else ():
            rows = int(n[keys[key] == code].sum())
            if rows and code != -1:
                # Grouped, because dask has no least text where a partition has none.
                bad = placed.filter(nw.col(key) == code)
                least = bad.group_by(key).agg(least=nw.col(values).min())
                to.add(role, kind, rows, collect(least)["least"].item())
            else:
                to.add(role, kind, rows)


def _label_problems(source: Lazy, name: str, positive: Any, found: Any, y: Any) -> list[Problem]:
    if positive is None:
        return []
    import narwhals as nw

    others = np.flatnonzero(y == 0)
    values = {found[key][row] for key in ("least_l", "most_l") for row in others.tolist()}
    seen = sorted(map(bool, values)) if source.types[name] == nw.Boolean else sorted(values)
    return two_valued(positive, [positive, *seen] if (y == 1).any() else seen, name)


_NO_GROUP, _OTHER_GROUP = 4, 5


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
) -> Any:
    """The native lazy frame with the repaired scores; see :meth:`isocost.Rule.apply`."""
    import narwhals as nw

    _check_seed(seed)
    source = plainly_named(source, output, *([] if changed is None else [changed]))
    who = _checked_id(source, id) if rule.needs_coin else None
    for name in groups:
        source.check(name, "group")
    source = source.only_texts([*groups, *([] if who is None else [who])])
    known = _known(rule, [source.types[name] for name in groups], unknown, missing_group)
    names = {"score": score, "group": ", ".join(groups), "id": id}
    ours = _free_names(source.columns, "score", "group", "fault", "checked", "coin", "new")
    place = _place(source, groups, known, missing_group)
    frame = source.frame.with_columns(
        **{ours["score"]: number(source, score, "score"), ours["group"]: place}
    )
    fault = _fault(source, ours, groups, who, unknown, missing_group)
    guard = Guard(
        score=ours["score"],
        fault=ours["fault"],
        messages=_messages(names, rule),
        id=None if who is None else source.inside(who),
        salt=rule.salt,
        checked=ours["checked"],
        coin=ours["coin"],
    )
    frame = guarded(frame.with_columns(**{ours["fault"]: fault}), guard)
    frame = frame.with_columns(**{ours["new"]: _repaired(frame, rule, known, ours)})
    new, checked = nw.col(ours["new"]), nw.col(ours["checked"])
    written = {source.inside(output): new}
    if changed is not None:
        written[source.inside(changed)] = new != checked
    spare = [name for role, name in ours.items() if role != "coin" or who is not None]
    return originally_named(source, frame.with_columns(**written).drop(spare))


def _check_seed(seed: int | None) -> None:
    if seed is not None:
        raise UsageError(
            Problem(
                "seed",
                "needs rows that have an order, and those of a lazy frame have none",
                f"seed={seed!r}",
                "pass id= instead, or collect the frame first",
            )
        )


def _checked_id(source: Lazy, id: Any) -> str:
    """The id column, or an error if its type cannot be one."""
    import narwhals as nw

    if id not in source.types:
        raise UsageError(missing_column("id", id, source.columns))
    source.check_name(id, "id")
    kind = source.types[id]
    texts = (nw.String, nw.Categorical, nw.Enum, nw.Object)
    if not (kind.is_integer() or kind in texts):
        title = "id" if id == "id" else f"id (column {id!r})"
        step = "use whole numbers or texts as ids, for example by casting the column to text"
        must = "must be a whole number or a text in every row"
        raise DataError(Problem(title, must, f"a column of type {kind}", step))
    return str(id)


def _known(rule: Rule, kinds: list[Any], unknown: str, missing: Group | None) -> list[Group]:
    """The groups of the rule that the columns can hold, by their types."""
    known = [
        group
        for group in rule.groups
        if len(parts := _parts(group)) == len(kinds)
        and all(
            part == missing or fits(kind, part) for kind, part in zip(kinds, parts, strict=True)
        )
    ]
    if not known and unknown == "error":
        problem = unknown_groups([], rule.groups).problems[0]
        shown = ", ".join(map(str, kinds))
        got = f"{len(kinds)} group columns of type {shown}" if len(kinds) > 1 else f"type {shown}"
        step = "name the group columns, and give them the types, that the rule was made with"
        raise UsageError(replace(problem, got=got, next_step=step))
    return known


def _parts(group: Group) -> tuple[Any, ...]:
    return group if isinstance(group, tuple) else (group,)


def _free_names(taken: Sequence[str], *roles: str) -> dict[str, str]:
    """Names for our own columns that no column of the data has, in any case of letters."""
    lower, prefix = {name.lower() for name in taken}, "isocost_"
    while any(name.startswith(prefix) for name in lower):
        prefix += "_"
    return {role: prefix + role for role in roles}


def _place(
    source: Lazy, groups: Sequence[str], known: Sequence[Group], missing: Group | None
) -> Expr:
    """The place of a row's group among those known; -1 for another group."""
    import narwhals as nw

    whens = []
    for code, group in enumerate(known):
        tests = []
        for name, part in zip(groups, _parts(group), strict=True):
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
) -> Expr:
    """A number that says what is wrong with a row; 0 if nothing is."""
    import narwhals as nw

    h = nw.col(ours["score"])
    good = (h >= 0.0) & (h <= 1.0)
    faults = [nw.when(~nw.coalesce(good, nw.lit(False))).then((0 - score_status(h)).cast(nw.Int64))]
    if missing is None:
        for name in groups:
            null = is_null(column(source, name), source.types[name])
            faults.append(nw.when(null).then(nw.lit(_NO_GROUP)))
    if unknown == "error":
        faults.append(nw.when(nw.col(ours["group"]) < 0).then(nw.lit(_OTHER_GROUP)))
    if id is not None:
        faults.append(nw.when(column(source, id).is_null()).then(nw.lit(NO_ID)))
    return nw.coalesce(*faults, nw.lit(0)).cast(nw.Int64)


def _messages(names: dict[str, str], rule: Rule) -> dict[int, str]:
    wrong = WRONG["score"].items()
    found = {-code: problem_of("score", names["score"], kind) for code, kind in wrong}
    found[_NO_GROUP] = problem_of("group", names["group"], "null")
    other = unknown_groups([], rule.groups).problems[0]
    found[_OTHER_GROUP] = replace(other, got="another group")
    # There is no seed here to fall back on.
    no_id = problem_of("id", names["id"], "null")
    found[NO_ID] = replace(no_id, next_step="give every row an id")
    return {code: str(problem) for code, problem in found.items()}


def _repaired(frame: Any, rule: Rule, known: Sequence[Group], ours: dict[str, str]) -> Expr:
    """The score after the rule: the first outcome whose condition holds, else the score."""
    import narwhals as nw

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
                new = 1.0 - h if row.value is None else exactly(float(row.value))
                outcomes.append(nw.when(chosen).then(new))
    return nw.coalesce(*outcomes, h) if outcomes else h
