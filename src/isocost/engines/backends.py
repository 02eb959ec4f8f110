"""What differs between lazy engines; everything else is one narwhals expression for all.

:func:`column` names and reads columns as the engine needs it.  narwhals has no MD5, and no way to
stop at a bad row, so each engine does both in one native step, :func:`guarded`, which adds two
columns:

- the score itself, read through a test that fails where the row has a fault, so that there is no
  result without the test;
- the coin: 13 hexadecimal digits where the engine has MD5, otherwise their number.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import InvalidOperation
from functools import partial
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np

from isocost.coin import coins, hex_bound
from isocost.engines.frames import Frame, Lazy
from isocost.engines.source import quoted
from isocost.errors import DataError, Problem, UsageError, require_package

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


def collect(frame: Any) -> dict[str, Any]:
    """The few rows of a result as narwhals series; nulls are None or NaN."""
    if not (frame.implementation.is_polars() or frame.implementation.is_dask()):
        rule = "must be installed, because this engine returns its cells through it"
        require_package("pyarrow", "pyarrow", rule, "pip install pyarrow")
    # Without streaming Polars would hold all rows of a file at once.
    options = {"engine": "streaming"} if frame.implementation.is_polars() else {}
    try:
        return frame.collect(**options).to_dict(as_series=True)  # type: ignore[no-any-return]
    except InvalidOperation as error:
        # Before pandas 3, dask compares decimals to find missing ones, and a signaling NaN raises.
        step = "replace these values, or drop their rows"
        got = "a decimal that cannot be compared, such as sNaN"
        raise DataError(Problem("data", "must hold numbers", got, step)) from error


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


def originally_named(source: Lazy, frame: Any) -> Any:
    """The native frame, with the names that :func:`plainly_named` replaced."""
    native = nw.to_native(frame)
    if not source.renamed:
        return native
    names = {inside: name for name, inside in source.renamed.items()}
    return native.project(", ".join(f"{c} AS {quoted(names[c])}" for c in native.columns))


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
    """Whether the engine may take NaN for a number between minimum and maximum.

    The statistics of Parquet files ignore NaN, and DuckDB trusts them: NaN would lie in [0, 1].
    """
    engine = source.frame.implementation
    return bool(engine.is_duckdb() or engine.is_ibis())


def writes_decimals(frame: Any) -> bool:
    """Whether floats in an expression reach the engine as decimals.

    ibis writes decimals, and before 2.0 DuckDB may miss the nearest double by one.
    """
    return bool(frame.implementation.is_ibis())


def constant(frame: Any, value: float) -> nw.Expr:
    """A float that the engine reads exactly."""
    return nw.lit(repr(value)).cast(nw.Float64) if writes_decimals(frame) else nw.lit(value)


def as_number(frame: Any, condition: nw.Expr) -> nw.Expr:
    """1.0 where a condition holds, else 0.0."""
    if frame.implementation.is_duckdb():
        return condition.cast(nw.Float64)
    # Spark cannot cast a boolean to a float.
    return condition.cast(nw.Int64).cast(nw.Float64)


def _in_backticks(name: str) -> str:
    """A name for Spark, where a dot would access a field of a structure."""
    return "`" + name.replace("`", "``") + "`"


def limit(frame: Any, bound: int) -> str | int:
    """A bound in the form of the engine's coins."""
    has_digits = not (frame.implementation.is_polars() or frame.implementation.is_dask())
    return hex_bound(bound) if has_digits else bound


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
    try:
        return coins(frame.ids(id), salt).astype(np.int64)
    except ValueError as error:
        raise ValueError(str(error)) from None


def _stop_at(faults: Any, guard: Guard) -> None:
    """Raise at the first fault; a plain error, because Polars recreates it from its text."""
    if len(faults) and faults.max() > 0:
        raise ValueError(guard.messages[int(faults[faults > 0][0])])


def _duckdb(native: Any, guard: Guard) -> Any:
    import duckdb

    column, value = duckdb.ColumnExpression, duckdb.ConstantExpression
    call, case = duckdb.FunctionExpression, duckdb.CaseExpression
    fault = column(guard.fault)
    code, message = next(iter(guard.messages.items()))
    checked = case(fault == value(code), call("error", value(message)))
    for code, message in list(guard.messages.items())[1:]:
        checked = checked.when(fault == value(code), call("error", value(message)))
    added = [checked.otherwise(column(guard.score)).alias(guard.checked)]
    if guard.id is not None:
        text = call("concat", value(f"{guard.salt}:"), column(guard.id).cast("VARCHAR"))
        digits = call("substr", call("md5", text), value(1), value(13))
        added.append(digits.alias(guard.coin))
    return native.select(duckdb.StarExpression(), *added)


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
