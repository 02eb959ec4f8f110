"""Lazy frames and files: counted by one query of narwhals expressions, repaired lazily.

A tally is one query, and only cells come back.  Bad rows become cells of their own, so that the
checks need no second query; only an example of a bad value does.

A rule gives the same lazy frame with a column added or replaced; nothing is computed here.  What
the types of the columns show is reported at once.  Other problems, such as a null id or a group
that the rule does not know, stop the engine when it reaches the row.

One narwhals expression does for all engines, but for names (:func:`column`), and for two things
that narwhals does not have and each engine does in a native step, :func:`guarded`: the score read
through a test that fails where the row has a fault, so that there is no result without the test;
and the coin, 13 hexadecimal digits where the engine has MD5, otherwise their number.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import InvalidOperation
from functools import partial, reduce
from importlib import import_module
from operator import and_
from typing import Any, Literal, Protocol

import narwhals as nw
import numpy as np

from isocost.cells import SUMS, Cells
from isocost.checks import named_in
from isocost.coin import coins, hex_bound
from isocost.engines.columns import (
    CODES,
    MOST_LABELS,
    USUAL_WEIGHTS,
    WRONG,
    Array,
    Problems,
    as_objects,
    checked_cells,
    no_rows,
    null_rows,
    problem_of,
    rows_of,
    title_of,
)
from isocost.engines.dialects import DUCKDB, literal, quoted
from isocost.engines.frames import Frame, Lazy, is_wide
from isocost.errors import DataError, Problem, UsageError, missing_column, require_package
from isocost.grid import PROBABILITY, Grid, Scale
from isocost.groups import Group, Scalar, is_exact, parts_of
from isocost.persons import OF_SCORES, Persons, products_of, terms_of
from isocost.readings import REFUSE, Missing
from isocost.rules import Applied, Rule, unknown_groups
from isocost.tallies import Tally

NO_ID = 6
"""The fault of a row without an id."""


@dataclass(frozen=True)
class Guard:
    """The task of the native step: the columns it reads, and the two that it adds.

    ``fault`` names a column of codes, 0 where nothing is wrong; ``messages`` explains the others.
    Without ``id`` there is no coin.
    """

    score: str
    fault: str
    messages: dict[int, str]
    id: str | None
    salt: str
    checked: str
    coin: str


@atexit.register
def _forget_duckdb() -> None:
    """Clear a cache of narwhals that outlives DuckDB, which would report leaks at exit."""
    cached = getattr(sys.modules.get("narwhals._namespace"), "_builtin_namespace", None)
    clear = getattr(cached, "cache_clear", None)
    if clear is not None:
        clear()


def plainly_named(source: Lazy, *added: str) -> Lazy:
    """The source with plain column names, if the engine needs them.

    ``added`` are the names of columns to be added.  Before 2.0 DuckDB parses column names in
    expressions: a dot splits them, and a quote starts a quoted name.
    """
    names = list(dict.fromkeys([*source.types, *added]))
    plain = not any("." in name or '"' in name for name in names)
    if plain or not source.frame.implementation.is_duckdb():
        return source
    renamed = {name: f"c{i}" for i, name in enumerate(names)}
    columns = [f"{quoted(name)} AS {renamed[name]}" for name in source.types]
    frame = nw.from_native(nw.to_native(source.frame).project(", ".join(columns)))
    return Lazy(frame, source.types, renamed)


def column(source: Lazy, name: str, careful: bool = True) -> nw.Expr:
    """A column of the data, by its name.

    Unless ``careful``, NaN may pass as any number: quicker, where NaN shows in the result.
    """
    engine, values = source.frame.implementation, nw.col(source.inside(name))
    if engine.is_pyspark() or engine.is_pyspark_connect():
        return nw.col(_in_backticks(name))
    # With ibis floor returns whole numbers, and fails at NaN before it can show.
    careful = careful or engine.is_ibis()
    if careful and believes_statistics(source) and source.types[name].is_float():
        # The result of a condition has no statistics.
        return nw.when(~values.is_null()).then(values)
    return values


def believes_statistics(source: Lazy) -> bool:
    """True if the engine may take NaN for a number between minimum and maximum.

    The statistics of Parquet files ignore NaN, and DuckDB trusts them: NaN would lie in [0, 1].
    """
    engine = source.frame.implementation
    return bool(engine.is_duckdb() or engine.is_ibis())


def constant(frame: Any, value: float) -> nw.Expr:
    """A float that the engine reads exactly.

    ibis writes decimals, and before 2.0 DuckDB may miss the nearest double by one.
    """
    is_ibis = frame.implementation.is_ibis()
    return nw.lit(repr(value)).cast(nw.Float64) if is_ibis else nw.lit(value)


def as_number(frame: Any, condition: nw.Expr) -> nw.Expr:
    """1.0 where a condition holds, else 0.0."""
    if frame.implementation.is_duckdb():
        return condition.cast(nw.Float64)
    # Spark cannot cast a boolean to a float.
    return condition.cast(nw.Int64).cast(nw.Float64)


def _in_backticks(name: str) -> str:
    """A name for Spark, where a dot would access a field of a structure."""
    return "`" + name.replace("`", "``") + "`"


def guarded(frame: Any, guard: Guard) -> Any:
    """The narwhals frame with the two columns added; nothing is computed yet."""
    kind = frame.implementation.value
    if kind not in _NATIVE:
        rule = f"must be of an engine that has the coin: {', '.join(_NATIVE)}"
        step = "collect it first, or convert it to one of these"
        raise UsageError(Problem("data", rule, f"a lazy frame of {kind}", step))
    return nw.from_native(_NATIVE[kind](nw.to_native(frame), guard))


def _polars(native: Any, guard: Guard) -> Any:
    import polars as pl

    def check(rows: Any) -> Any:
        _stop_at(rows.struct.field(guard.fault).to_numpy(), guard)
        return rows.struct.field(guard.score)

    def throw(ids: Any) -> Any:
        if ids.null_count():
            raise ValueError(guard.messages[NO_ID])
        batch = Frame(nw.from_native(ids.alias("id").to_frame()))
        return pl.Series(_thrown(batch, "id", guard.salt))

    pair = pl.struct(guard.score, guard.fault)
    checked = pair.map_batches(check, return_dtype=pl.Float64, is_elementwise=True)
    added = [checked.alias(guard.checked)]
    if guard.id is not None:
        coin = pl.col(guard.id).map_batches(throw, return_dtype=pl.Int64, is_elementwise=True)
        added.append(coin.alias(guard.coin))
    return native.with_columns(added)


def _dask(native: Any, guard: Guard) -> Any:
    kinds = {guard.checked: np.float64} | ({} if guard.id is None else {guard.coin: np.int64})
    empty = native._meta.assign(**{name: np.array([], kind) for name, kind in kinds.items()})
    return native.map_partitions(_dask_part, guard, meta=empty)


def _dask_part(part: Any, guard: Guard) -> Any:
    _stop_at(part[guard.fault].to_numpy(), guard)
    added = {guard.checked: part[guard.score].to_numpy(np.float64)}
    if guard.id is not None:
        frame = Frame(nw.from_native(part, eager_only=True))
        added[guard.coin] = _thrown(frame, guard.id, guard.salt)
    return part.assign(**added)


def _thrown(frame: Frame, id: str, salt: str) -> Any:
    """The coins; a plain error, because Polars recreates it from its text."""
    try:
        return coins(frame.ids(id), salt).astype(np.int64)
    except ValueError as error:
        raise ValueError(str(error)) from None


def _stop_at(faults: Any, guard: Guard) -> None:
    """Raise at the first fault."""
    if len(faults) and faults.max() > 0:
        raise ValueError(guard.messages[int(faults[faults > 0][0])])


def _duckdb(native: Any, guard: Guard) -> Any:
    whens = (
        f"WHEN {quoted(guard.fault)} = {code} THEN error({literal(message)})"
        for code, message in guard.messages.items()
    )
    checked = f"CASE {' '.join(whens)} ELSE {quoted(guard.score)} END"
    added = f"*, {checked} AS {quoted(guard.checked)}"
    if guard.id is not None:
        added += f", {DUCKDB.coin(guard.salt, quoted(guard.id))} AS {quoted(guard.coin)}"
    return native.project(added)


def _ibis(native: Any, guard: Guard) -> Any:
    import ibis

    backend = native.get_backend().name
    if backend != "duckdb":
        step = "write the table with rule.to_sql(...), or collect it first"
        rule = "must be on DuckDB to be repaired through ibis"
        raise UsageError(Problem("data", rule, f"an ibis table on {backend}", step))

    @ibis.udf.scalar.builtin(name="error")  # type: ignore[untyped-decorator]
    def stop(message: str) -> str: ...  # type: ignore[empty-body]

    branches = [
        (native[guard.fault] == code, stop(message).cast("float64"))
        for code, message in guard.messages.items()
    ]
    added = {guard.checked: ibis.cases(*branches, else_=native[guard.score])}
    if guard.id is not None:
        text = ibis.literal(f"{guard.salt}:") + native[guard.id].cast("string")
        added[guard.coin] = text.hexdigest("md5").substr(0, 13)
    return native.mutate(**added)


def _spark(native: Any, guard: Guard, connect: bool = False) -> Any:
    f = import_module(f"pyspark.sql{'.connect' if connect else ''}.functions")
    checked = f.col(guard.score)
    for code, message in guard.messages.items():
        stop = f.raise_error(f.lit(message)).cast("double")
        checked = f.when(f.col(guard.fault) == code, stop).otherwise(checked)
    added = {guard.checked: checked}
    if guard.id is not None:
        id_text = f.col(_in_backticks(guard.id)).cast("string")
        text = f.concat(f.lit(f"{guard.salt}:"), id_text)
        added[guard.coin] = f.substring(f.md5(text.cast("binary")), 1, 13)
    return native.withColumns(added)


_NATIVE: dict[str, Callable[[Any, Guard], Any]] = {
    "polars": _polars,
    "duckdb": _duckdb,
    "ibis": _ibis,
    "dask": _dask,
    "pyspark": _spark,
    "pyspark[connect]": partial(_spark, connect=True),
}


_LARGEST = float(np.finfo(np.float64).max)


class Rows(Protocol):
    """Rows that are counted where they are: those of a lazy frame, or of files.

    ``example`` is the bad value that an error shows; rows without an order have no first one.  An
    engine that ``believes_statistics`` may take NaN for a number between minimum and maximum.
    ``origin`` says in errors where the rows come from.
    """

    example: Literal["first", "least"]
    believes_statistics: bool
    origin: str

    def pick(self, careful: bool) -> Any:
        """The frame to count: groups g0, g1 ..., score h, label y, the label to show l, weight w.

        Columns that say whose rows they are, are called person and id.
        Unless ``careful``, NaN may pass as any number: quicker, and NaN shows in the sums.
        """

    def collect(self, frame: Any) -> dict[str, Array]:
        """The columns of a small result; nulls are None or NaN."""

    def once(self, frame: Any) -> Any:
        """The frame, computed once for several queries."""

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
    missing: Missing = REFUSE,
    scale: Scale = PROBABILITY,
    handed_over: bool = False,
) -> Tally:
    """Count the cells of rows in one query, where they are; open ranks take one more.

    If some were ``handed_over``, cells without a score are kept apart, whatever their labels.
    """
    if scale.is_open:
        scale = scale.within(*_span(rows, rows.pick(True))[:2])
    placed, cells = _cells(rows, grid, positive, scale)
    if not len(cells["n"]):
        raise no_rows(rows.origin)
    names = {**columns, "group": ", ".join(columns["group"])}
    named = {role: name for role, name in names.items() if name}
    problems = Problems(named, example=rows.example, scale=scale, can_drop=True)
    keys = [f"g{i}" for i in range(len(columns["group"]))]
    cells |= {f"raw_{key}": cells[key] for key in keys}
    cells |= {key: rows.group_values(i, cells[key]) for i, key in enumerate(keys)}
    cells["apart"] = (cells["b"] == _NO_SCORE) & handed_over
    # Nothing else need be known of people who were handed over.
    cells |= {
        key: np.where(cells["apart"], 0, cells[key]) for key in ("y", "b", "u") if key in cells
    }

    def example(role: str, code: int) -> Any:
        """A bad value, and what else an error says about such values."""
        looked_at = _looked_at(placed, missing, handed_over)
        if (role, code) == ("score", _OUTSIDE) and scale.is_plain:
            problems.span = _span(rows, looked_at)
        # Beside 0 and 1, any other value would be a third label.
        if role == "label" and positive is None and not {0, 1} <= set(cells["y"]):
            labelled = looked_at.filter(nw.col("y") != float(_NO_LABEL)).group_by("l")
            some = rows.collect(labelled.agg(n=nw.len()).head(MOST_LABELS))["l"].tolist()
            problems.labels = list(map(rows.label_value, some))
        return _example(rows, looked_at, role, code)

    codes, groups = checked_cells(
        cells,
        columns,
        problems,
        positive=positive,
        missing=missing,
        label_value=rows.label_value,
        example=example,
    )
    apart, n = cells["apart"], cells["n"].astype(np.float64)
    sums = {name: cells[name].astype(float) if name in cells else n for name in SUMS}
    counted = Cells(codes, cells["y"], grid.at_count(cells["b"]), **sums)
    persons = None
    # If everything was dropped there are no persons to count, and the error comes below.
    if columns["person"] is not None and len(codes):
        kinds = placed.collect_schema()
        # People without a group may be counted in one that occurs, and share its persons.
        for key in keys if missing.name is not None else ():
            raw, null = as_objects(cells[f"raw_{key}"].tolist()), null_rows(cells[key])
            same = raw[~null][[one == missing.name for one in cells[key][~null].tolist()]]
            if len(same):
                cells[f"raw_{key}"] = np.where(null, same[0], raw)
                known = ~is_null(nw.col(key), kinds[key])
                filled = nw.when(known).then(nw.col(key)).otherwise(nw.lit(same[0]))
                placed = placed.with_columns(**{key: filled})
        raw_groups = rows_of(cells, [f"raw_{key}" for key in keys])
        code_of = dict(zip(raw_groups, codes.tolist(), strict=True))
        persons = _persons(rows, placed, grid, code_of, missing)
    ids = 0
    if "id" in columns and persons is None:
        one = nw.col("id")
        (values,), (nulls,) = rows.collect(
            placed.select(values=one.n_unique(), nulls=one.null_count())
        ).values()
        # Each row without an id is somebody else.
        ids = int(values) + max(int(nulls) - 1, 0)
    reading = problems.reading(columns, positive, missing, handed_over=handed_over, ids=ids)
    held = (grid, groups, counted.take(~apart), reading)
    handed = counted.take(apart).handed(groups)
    return Tally.build(*held, handed_over=handed, persons=persons)


_NO_SCORE = _NO_LABEL = -1
"""The code of a score or a label that is null or NaN."""

_OUTSIDE = -3
"""The code of a score that is on another scale."""


def _looked_at(placed: Any, missing: Missing, handed_over: bool) -> Any:
    """The rows that an error may be about: neither dropped nor of people handed over."""
    if handed_over:
        placed = placed.filter(nw.col("b") != float(_NO_SCORE))
    schema = placed.collect_schema()
    known = [
        nw.col(key) != -1.0
        for role, key in CODES.items()
        if key in schema.names() and missing.drops(role)
    ]
    for name in (name for name in schema.names() if name.startswith("g")):
        known += [~is_null(nw.col(name), schema[name])] if missing.drops("group") else []
    return placed.filter(*known) if known else placed


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
            for n in SUMS
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
        roles = ("group", "label", "person", "id")
        for role, name in named_in({role: columns.get(role) for role in roles}):
            source.check(name, role)
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
        if columns["person"] is not None:
            picked["person"] = group_column(source, columns["person"])
        if "id" in columns:
            picked["id"] = group_column(source, columns["id"])
        return source.frame.select(**picked)

    def once(self, frame: Any) -> Any:
        """The frame in memory, or in that of the cluster."""
        native, engine = nw.to_native(frame), frame.implementation
        if engine.is_dask():
            return nw.from_native(native.persist())
        if engine.is_pyspark() or engine.is_pyspark_connect():
            return nw.from_native(native.cache())
        if engine.is_polars():
            return frame.collect(engine="streaming").lazy()
        return frame.collect().lazy("duckdb")

    def collect(self, frame: Any) -> dict[str, Array]:
        """The few rows of a result; numbers without nulls as they are, all else as objects."""
        engine = frame.implementation
        if not (engine.is_polars() or engine.is_dask()):
            rule = "must be installed, because this engine returns its cells through it"
            require_package("pyarrow", "pyarrow", rule, "pip install pyarrow")
        # Without streaming Polars would hold all rows of a file at once.
        options = {"engine": "streaming"} if engine.is_polars() else {}
        try:
            result = frame.collect(**options)
        except InvalidOperation as error:
            # Before pandas 3, dask compares decimals to find missing ones; a signaling NaN raises.
            step = "replace these values, or drop their rows"
            got = "a decimal that cannot be compared, such as sNaN"
            raise DataError(Problem("data", "must hold numbers", got, step)) from error
        return {
            name: series.to_numpy()
            if series.dtype.is_numeric() and series.dtype != nw.Decimal and not series.null_count()
            else as_objects(series.to_list())
            for name, series in result.to_dict(as_series=True).items()
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
        sums = {"w": w, "w2": w * w, "w4": w * w * w * w, "wh": w * h, "wh2": w * h * h}
    added |= {f"sum_{name}": value for name, value in sums.items()}
    if "person" in (schema := picked.collect_schema()):
        nobody = is_null(nw.col("person"), schema["person"])
        added["u"] = nw.when(nobody).then(nw.lit(-1.0)).otherwise(nw.lit(0.0))
    return picked.with_columns(**added)


def _counted(placed: Any, positive: Any) -> Any:
    """The query for the cells.  Only plain columns are summed, which some engines require."""
    names = placed.collect_schema().names()
    keys = [name for name in names if name in CODES.values() or name.startswith("g")]
    totals = {name.removeprefix("sum_"): nw.col(name).sum() for name in names if "sum_" in name}
    label = nw.col("l")
    seen = {} if positive is None else {"least_l": label.min(), "most_l": label.max()}
    return placed.group_by(*keys).agg(n=nw.len(), **totals, **seen)


def _persons(
    rows: Rows, placed: Any, grid: Grid, codes: dict[tuple[Any, ...], int], missing: Missing
) -> Persons:
    """The persons of the rows that are counted; ``codes`` are those of values g0, g1 ..."""
    schema = placed.collect_schema()
    keys = [name for name in schema.names() if name.startswith("g")]
    good = [nw.col("y") >= 0, nw.col("b") >= 0.0, nw.col("u") == 0.0]
    good += [nw.col("v") == 0.0] if "v" in schema else []
    own = {name: nw.col(f"sum_{name}") for name in OF_SCORES if f"sum_{name}" in schema}
    w, h = own.setdefault("w", nw.lit(1.0)), nw.col("p" if "p" in schema else "h")
    one = nw.col("y").cast(nw.Float64)
    terms: dict[str, nw.Expr] = {}
    for label, term in terms_of(grid.thresholds):
        is_high = isinstance(term, float) and as_number(placed, h >= constant(placed, term))
        value = own[term] if isinstance(term, str) else w * is_high
        terms[f"t{len(terms)}"] = value * (one if label else 1.0 - one)
    summed = placed.filter(*good).with_columns(**terms).group_by(*keys, "person")
    persons = rows.once(summed.agg(**{name: nw.col(name).sum() for name in terms}))
    pairs = products_of(grid.thresholds).items()
    products = {name: nw.col(f"t{first}") * nw.col(f"t{second}") for name, (first, second) in pairs}
    totals = {name: nw.col(name).sum() for name in products}
    by_group = persons.with_columns(**products).group_by(*keys).agg(n=nw.len(), **totals)
    found = rows.collect(by_group)
    # People without a group are in none, unless it was given a name.
    known = [] if missing.name is not None else [~is_null(nw.col(k), schema[k]) for k in keys]
    groups_of = (persons.filter(*known) if known else persons).group_by("person").agg(n=nw.len())
    several = rows.collect(groups_of.filter(nw.col("n") > 1).select(n=nw.len()))["n"][0]
    new = [codes.get(key, -1) for key in rows_of(found, keys)]
    counted = Persons.counted(grid.thresholds, found, int(several))
    return counted.recoded(new, max(codes.values()) + 1)


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
    if frame.implementation.is_ibis() and (too_high or too_low):
        # Decimals would not equal the scores of the list, but dividing is exact here.
        above, below = h >= (part + 1.0) / float(parts), h < part / float(parts)
        return part + flag(above) - flag(below)
    for values, sign in ((too_high, -1.0), (too_low, 1.0)):
        if values:
            # For one value, as the tenths have, a comparison is quicker than DuckDB's lists.
            is_one_of = h == values[0] if len(values) == 1 else h.is_in(values)
            part = part + flag(is_one_of) * sign
    return part


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
    """True where a value is null or NaN."""
    return values.is_null() | values.is_nan() if kind.is_float() else values.is_null()


def status(values: nw.Expr, *others: nw.Expr) -> nw.Expr:
    """The fault of a number: a key of :data:`WRONG`, as a float.

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
    """True if a column of this type can have a value; as in Python, 1 is 1.0 and True."""
    if isinstance(value, str):
        return kind in (nw.String, nw.Categorical, nw.Enum, nw.Object)
    if kind == nw.Boolean:
        return value in (0, 1)
    if kind.is_integer():
        # The engine would round or reject a number beyond the range of the type.
        bits, is_signed = int(str(kind).rpartition("t")[2]), not str(kind).startswith("U")
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if is_signed else (0, 2**bits)
        return value == int(value) and least <= value < most
    return bool(kind.is_numeric()) and is_exact(value)


def equals(values: nw.Expr, kind: Any, value: Scalar) -> nw.Expr:
    """True where a column has a value; never, if its type does not fit."""
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


def _example(rows: Rows, placed: Any, role: str, code: int) -> Any:
    """A bad value of a role."""
    key, values = {"score": ("b", "h"), "label": ("y", "l"), "weight": ("v", "w")}[role]
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


_NO_GROUP, _OTHER_GROUP = 4, 5

NOBODY = -1.0
"""Stands for the score of people who are handed over: coalesce would pass over a null."""


def apply_lazy(
    rule: Rule, source: Lazy, asked: Applied, *, missing_group: Group | None, scale: Scale
) -> Any:
    """The native lazy frame with the repaired scores; see :meth:`isocost.Rule.apply`."""
    if asked.seed is not None:
        must = "needs rows in a fixed order, which a lazy frame does not have"
        step = "pass id= instead, or collect the frame first"
        raise UsageError(Problem("seed", must, f"seed={asked.seed!r}", step))
    score, groups, id, unknown = asked.score, asked.group, asked.id, asked.unknown
    output, changed, handed_over = str(asked.output), asked.changed, asked.handed_over
    source = plainly_named(source, output, *(x for x in (changed, handed_over) if x is not None))
    id_column = _checked_id(source, id) if rule.needs_coin else None
    for name in groups:
        source.check(name, "group")
    source = source.only_texts([*groups, *([] if id_column is None else [id_column])])
    known = _known(rule, [source.types[name] for name in groups], unknown, missing_group)
    # Names of our own that the data do not have, whatever the case.
    prefix = "isocost_"
    while any(name.lower().startswith(prefix) for name in source.columns):
        prefix += "_"
    roles = ("score", "group", "fault", "checked", "coin", "new")
    own = {role: prefix + role for role in roles}
    h, code = nw.col(own["score"]), nw.col(own["group"])
    # What may be wrong with a row, in this order, and how it is told.
    wrong = WRONG["score"] | {_OUTSIDE: scale.outside}
    told = {-code: problem_of("score", score, kind) for code, kind in wrong.items()}
    if not scale.is_plain:
        told = {code: replace(problem, rule=scale.rule) for code, problem in told.items()}
    is_bad = ~nw.coalesce(scale.holds(h), nw.lit(False))
    faults = [nw.when(is_bad).then((0 - status(h)).cast(nw.Int64))]
    if missing_group is None:
        told[_NO_GROUP] = problem_of("group", ", ".join(groups), "null")
        for name in groups:
            null = is_null(column(source, name), source.types[name])
            faults.append(nw.when(null).then(nw.lit(_NO_GROUP)))
    if unknown == "error":
        other = unknown_groups([], rule.groups).problems[0]
        told[_OTHER_GROUP] = replace(other, got="another group")
        faults.append(nw.when(code < 0).then(nw.lit(_OTHER_GROUP)))
    if id_column is not None:
        # Lazy frames have no seed to fall back on.
        told[NO_ID] = problem_of("id", id, "null", "give every row an id")
        faults.append(nw.when(column(source, id_column).is_null()).then(nw.lit(NO_ID)))
    guard = Guard(
        score=own["score"],
        fault=own["fault"],
        messages={code: str(problem) for code, problem in told.items()},
        id=None if id_column is None else source.inside(id_column),
        salt=rule.salt,
        checked=own["checked"],
        coin=own["coin"],
    )
    added = number(source, score, "score"), _group_code(source, groups, known, missing_group)
    frame = source.frame.with_columns(**dict(zip((own["score"], own["group"]), added, strict=True)))
    fault = nw.coalesce(*faults, nw.lit(0)).cast(nw.Int64)
    frame = guarded(frame.with_columns(**{own["fault"]: fault}), guard)
    checked, new = nw.col(own["checked"]), nw.col(own["new"])
    if not scale.is_plain:
        frame = frame.with_columns(**{own["checked"]: scale.probability(checked)})
    frame = frame.with_columns(**{own["new"]: _repaired(frame, rule, known, own)})
    decided = new > constant(frame, NOBODY)
    written = {source.inside(output): nw.when(decided).then(new) if rule.defers else new}
    if changed is not None:
        written[source.inside(changed)] = new != checked
    if handed_over is not None:
        written[source.inside(handed_over)] = ~decided
    dropped = [name for role, name in own.items() if role != "coin" or id_column is not None]
    native = nw.to_native(frame.with_columns(**written).drop(dropped))
    if not source.renamed:
        return native
    names = {inside: name for name, inside in source.renamed.items()}
    return native.project(", ".join(f"{c} AS {quoted(names[c])}" for c in native.columns))


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


def _repaired(frame: Any, rule: Rule, known: Sequence[Group], ours: dict[str, str]) -> nw.Expr:
    """The score after the rule: the first outcome whose condition holds, else the score."""
    h, coin, outcomes = nw.col(ours["checked"]), nw.col(ours["coin"]), []
    exactly = partial(constant, frame)
    engine = frame.implementation
    has_digits = not (engine.is_polars() or engine.is_dask())
    for code, group in enumerate(known):
        mine = nw.col(ours["group"]) == code
        for segment in rule.segments(group):
            inside = mine & (h >= exactly(segment.lo))
            inside = inside if segment.hi == 1.0 else inside & (h < exactly(segment.hi))
            for row, bound in zip(segment.rows, segment.bounds, strict=True):
                if not (segment.needs_coin or bound > 0):
                    continue
                chosen = inside
                if segment.needs_coin:
                    chosen = inside & (coin < (hex_bound(bound) if has_digits else bound))
                if row.defers:
                    new = exactly(NOBODY)
                elif row.value is None:
                    new = 1.0 - h
                elif row.end is None:
                    new = exactly(float(row.value))
                else:
                    # Only what Row.after adds and multiplies, in the same order, so that every
                    # digit is the same.  A line may pass the row's limit by a rounding error.
                    way = h - exactly(float(row.lo))
                    new = exactly(float(row.value)) + exactly(row.slope) * way
                if row.limit is not None:
                    most = exactly(row.limit)
                    beyond = new > most if row.limit else new < most
                    outcomes.append(nw.when(chosen & beyond).then(most))
                outcomes.append(nw.when(chosen).then(new))
    return nw.coalesce(*outcomes, h) if outcomes else h
