"""The two entry points: from any data to a tally, and from a rule and any data to repaired data.

Dicts and eager frames become columns for the array kernel; lazy frames and files are counted where
they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isocost import coin
from isocost.checks import (
    check_columns,
    check_flag,
    check_known,
    check_names,
    check_numbers,
    check_single,
    short,
)
from isocost.engines.arrays import apply_arrays, same_length, tally_arrays
from isocost.engines.columns import (
    Encoded,
    applied_columns,
    check_decimal,
    column_array,
    missing_group_of,
    missing_id,
    scale_of,
    scored,
    written_column,
)
from isocost.engines.frames import (
    Lazy,
    apply_to_pyspark_pandas,
    apply_to_stream,
    as_frame,
    backend_of,
    is_pyspark_pandas,
    is_stream,
    schema_of,
    tally_stream,
)
from isocost.errors import Problem, UsageError
from isocost.grid import BINS, PROBABILITY, Grid, Scale, scale_named
from isocost.groups import Group, as_group, is_null
from isocost.rules import Rule, check_unknown
from isocost.tallies import Tally


def tally(
    data: Any = None,
    score: Any = "score",
    label: Any = "label",
    group: Any = "group",
    weight: Any = None,
    bins: int = BINS,
    edges: tuple[float, ...] = (),
    *,
    positive: Any = None,
    missing_group: Group | None = None,
    scale: str = "probability",
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    handed_over: bool = False,
    drop_missing: bool = False,
) -> Tally:
    """Count scores per group, label and score bin, in one pass over any data.

    Parameters
    ----------
    data : dict of arrays, any frame that narwhals knows, or a path
        Eager frames: pandas, polars, pyarrow.  Datasets and readers of pyarrow are counted batch
        by batch, which uses a reader up.  Lazy frames (polars LazyFrame, duckdb relations,
        ibis, dask, pyspark, pyspark.pandas) run one query, and only cells come back.
        A path, glob or directory of CSV, TSV, JSON lines or Parquet files is read by DuckDB, out
        of core; folders such as ``sex=F`` become a column.  An Excel workbook (.xlsx) needs the
        extra ``excel``.
        Leave it out to pass the columns themselves as arrays.
    score, label, weight : str
        The columns.  Scores lie in [0, 1], unless ``scale`` says what they are; labels are 0/1 or
        boolean, unless ``positive`` names the positive label; weights are positive.
    group : str or list of str
        The group column; with several, each combination that occurs is a group.
    bins : int
        Number of bins of equal width.
    edges : tuple of float
        Further bin edges, such as a decision threshold.
    positive : optional
        The positive label of a column with two values other than 0 and 1.
    missing_group : optional
        The group of rows whose group is null; without it they are an error.
    scale : {"probability", "percent", "logit", "rank"}
        What the scores are.  Percentages are divided by 100; log-odds x become
        1 / (1 + exp(-x)).  Ranks, such as deciles, are whole numbers r from low to high, the least
        and the greatest of the data unless named as in "rank:1-10", and become
        (r - low + 1/2) / (high - low + 1), which keeps their order and is no probability.
    decimal : {".", ","}, optional
        The decimal sign of scores and weights that are texts; by default a comma if every one of
        them has one, which ``reading`` of the tally then says.
    encoding : str, optional
        For text files: their encoding.  By default UTF-8, UTF-16 if a byte order mark says so, or
        Windows-1252 if every byte fits, which ``reading`` of the tally then says.  That is a guess:
        there is a warning if the name of a group is not all ASCII.
    sheet : str, optional
        For workbooks: the sheet; by default the only one that has rows.
    memory_limit : str, optional
        For files: the memory to use, such as "512MB".  By default 1 GiB, or 256 MiB per thread, and
        more only if needed.
    threads : int, optional
        For files: number of threads (default: one per core).
    handed_over : bool
        Whether a null score means that a rule handed this person over: such rows are counted
        apart, in ``tally.handed_over``, and their labels are not looked at.
    drop_missing : bool
        True to leave out rows without a score, label, group or weight; otherwise they are an
        error.  ``tally.reading`` counts them by column.  Rows without a group stay if
        ``missing_group`` names one, and rows without a score if ``handed_over``.

    Returns
    -------
    Tally

    Examples
    --------
    >>> import isocost as ic
    >>> ic.tally({"score": [0.2, 0.7, 0.4], "label": [0, 1, 1], "group": ["a", "a", "b"]})
    Tally of 3 rows in 2 groups; 1024 bins
    group  n  positives  base rate  mean score
    -----  -  ---------  ---------  ----------
    a      2          1     0.5000      0.4500
    b      1          1     1.0000      0.4000
    """
    grid = Grid(bins, check_numbers("edges", edges))
    missing_group = None if missing_group is None else as_group(missing_group)
    check_single("positive", positive)
    options = {"grid": grid, "positive": positive, "missing_group": missing_group}
    options |= {"scale": scale_named(scale), "handed_over": check_flag("handed_over", handed_over)}
    options["drop_missing"] = check_flag("drop_missing", drop_missing)
    check_decimal(decimal)
    if not isinstance(data, str | Path):
        _only_for_files(memory_limit=memory_limit, threads=threads, encoding=encoding, sheet=sheet)
    if data is None:
        groups = _group_arrays(group)
        _need_arrays(score=score, label=label, group=groups[0])
        return scored(_tally_arrays(score, label, groups, weight, decimal=decimal, **options))
    columns = check_columns(score, label, group, weight)
    if isinstance(data, str | Path):
        from isocost.engines.files import tally_files, warn_of_guess
        from isocost.engines.kinds import FileReading

        reading = FileReading(decimal, encoding, sheet, memory_limit, threads)
        counted = tally_files(data, columns, reading=reading, **options)
        warn_of_guess(counted.reading, counted.groups, stacklevel=2)
        return counted
    count: Callable[..., Tally] = partial(_tally_frame, columns=columns, decimal=decimal, **options)
    if is_stream(data):
        return scored(tally_stream(data, columns, count, positive, scale, drop_missing))
    return scored(count(data))


def column_names(data: Any, *, encoding: str | None, sheet: str | None) -> list[str]:
    """The names of the columns of data of a kind that :func:`tally` accepts; none for others."""
    if not is_data(data):
        return []
    if isinstance(data, str | Path):
        from isocost.engines.files import Source
        from isocost.engines.kinds import FileReading

        with Source(data, reading=FileReading(None, encoding, sheet)) as source:
            return list(source.types)
    return schema_of(data).names if is_stream(data) else as_frame(data).columns


def _tally_frame(data: Any, columns: dict[str, Any], decimal: str | None, **options: Any) -> Tally:
    """The tally of a frame or a dict of arrays."""
    source = as_frame(data)
    check_known(source.columns, columns)
    if isinstance(source, Lazy):
        from isocost.engines.lazy import LazyRows, count_cells

        rows = LazyRows(source, columns, options["positive"])
        return replace(count_cells(rows, columns, **options), backend=backend_of(source.frame))
    names = {role: name for role, name in columns.items() if isinstance(name, str)}
    names["group"] = ", ".join(columns["group"])
    weight = columns["weight"]
    counted = _tally_arrays(
        source.numbers(columns["score"], "score"),
        source.labels(columns["label"]),
        [source.groups(name) for name in columns["group"]],
        None if weight is None else column_array("weight", source.numbers(weight, "weight")),
        names=names,
        columns=columns,
        decimal=decimal,
        **options,
    )
    return replace(counted, backend=backend_of(getattr(source, "frame", None)))


def _tally_arrays(
    score: Any, label: Any, groups: Any, weight: Any, *, handed_over: bool, **options: Any
) -> Tally:
    """The tally of arrays; if some are handed over, those without a score are counted apart."""
    if not handed_over:
        return tally_arrays(score, label, groups, weight, **options)
    score = column_array("score", score)
    apart = np.array([is_null(value) for value in score.tolist()], dtype=bool)
    columns = {"label": label, **{f"group {i}": group for i, group in enumerate(groups)}}
    columns |= {} if weight is None else {"weight": weight}
    columns = {name: column_array(name, column) for name, column in columns.items()}
    same_length({"score": score, **columns})

    def part(rows: npt.NDArray[np.bool_], **given: Any) -> Tally:
        taken = {
            name: Encoded(column[rows], column.values)
            if isinstance(column, Encoded)
            else column[rows]
            for name, column in columns.items()
        }
        chosen = [taken.pop(f"group {i}") for i in range(len(groups))]
        return tally_arrays(groups=chosen, **{**options, "score": score[rows], **taken, **given})

    if not apart.any():
        decided = part(~apart)
        return replace(decided, reading=replace(decided.reading, handed_over=True))
    # Labels of people handed over may be unknown, and are not needed.
    zeros = np.zeros(int(apart.sum()))
    others = part(apart, score=zeros, label=zeros, positive=None, scale=PROBABILITY)
    handed = others.cells.handed(others.groups)
    if apart.all():
        decided = others.rebuilt(others.cells.take(slice(0, 0)))
    else:
        decided = part(~apart)
        reading = decided.reading.also_dropping(others.reading)
        decided = replace(decided, reading=reading)
    reading = replace(decided.reading, handed_over=True)
    return replace(decided, reading=reading, handed_over=handed)


def apply_rule(
    rule: Rule,
    data: Any,
    *,
    score: Any,
    group: Any,
    id: Any,
    output: str | None,
    seed: int | None,
    unknown: Literal["error", "keep"],
    missing_group: Group | None,
    changed: str | None,
    scale: str | None = None,
    handed_over: str | None = None,
) -> Any:
    """See :meth:`isocost.Rule.apply`."""
    check_unknown(unknown)
    flags: dict[str, Any] = {"changed": changed, "handed_over": handed_over}
    check_names(output=output, **flags, optional=("output", *flags))
    missing_group = missing_group_of(rule, missing_group)
    options: dict[str, Any] = {"unknown": unknown, "missing_group": missing_group}
    used_scale = scale_of(rule, scale)
    if data is None:
        columns = _group_arrays(group)
        _need_arrays(score=score, group=columns[0])
        score = column_array("score", score)
        thrown = partial(_coins, rule, lambda: id, seed, len(score))
        return apply_arrays(rule, score, columns, thrown, scale=used_scale, **options)[1]
    if isinstance(data, str | Path):
        must, got = "must be a dict of arrays or a frame", f"the path {str(data)!r}"
        step = "use isocost.apply_file(rule, path, output_path), or the command isocost apply"
        raise UsageError(Problem("data", must, got, step))
    score, group, id = applied_columns(rule, score, group, id)
    options |= {"score": score, "group": group, "id": id, "output": output, "seed": seed, **flags}
    if is_pyspark_pandas(data):
        return apply_to_pyspark_pandas(partial(apply_rule, rule, scale=scale, **options), data)
    if not is_stream(data):
        return _apply_to_frame(rule, data, scale=used_scale, **options)
    if seed is not None:
        must, step = "must be left out for a stream of batches", "pass ids, or a table"
        raise UsageError(Problem("seed", must, repr(seed), step))
    if rule.needs_coin and id is None:
        raise missing_id()
    names = schema_of(data).names
    output = written_column(names, score, output, used_scale, *flags.values(), by_case=True)
    new = {name: np.empty(0, dtype=bool) for name in flags.values() if name is not None}
    repair = partial(apply_rule, rule, scale=scale, **{**options, "output": output})
    return apply_to_stream(repair, data, {output: np.empty(0), **new})


def _apply_to_frame(
    rule: Rule,
    data: Any,
    *,
    score: str,
    group: Any,
    id: Any,
    output: str | None,
    seed: int | None,
    changed: str | None,
    handed_over: str | None,
    scale: Scale,
    **options: Any,
) -> Any:
    """The frame, or dict of arrays, with a column of repaired scores."""
    source = as_frame(data)
    groups = check_columns(score, "label", group)["group"]
    check_known(source.columns, {"score": score, "group": groups})
    is_lazy = isinstance(source, Lazy)
    if rule.needs_coin and seed is None:
        if id is None:
            raise missing_id() if is_lazy else missing_id(*_NO_IDS)
        check_names(id=id)
    flags = changed, handed_over
    output = written_column(source.columns, score, output, scale, *flags, by_case=not is_lazy)
    if isinstance(source, Lazy):
        from isocost.engines.lazy import apply_lazy

        names = {"score": score, "groups": groups, "id": id, "output": output}
        options |= {"changed": changed, "handed_over": handed_over, "scale": scale, "seed": seed}
        return apply_lazy(rule, source, **names, **options)
    before = column_array("score", source.numbers(score, "score"))
    thrown = partial(_coins, rule, lambda: source.ids(id), seed, len(before))
    columns = [source.groups(name) for name in groups]
    named = {"score": score, "group": ", ".join(groups)}
    before, after = apply_arrays(rule, before, columns, thrown, names=named, scale=scale, **options)
    new: dict[str, npt.NDArray[Any]] = {output: after}
    if changed is not None:
        new[changed] = after != before
    if handed_over is not None:
        new[handed_over] = np.isnan(after)
    return source.with_columns(new)


_NO_IDS = (
    "no ids and no seed",
    "pass id= so that a person's coin is always the same, or seed= for row order",
)
"""What came and the next step, where coins can also be thrown in row order."""


def _coins(rule: Rule, ids: Any, seed: int | None, rows: int) -> npt.NDArray[np.uint64]:
    if seed is not None:
        return coin.seeded_coins(rows, seed)
    column = ids()
    if column is None or isinstance(column, str):
        raise missing_id(*_NO_IDS)
    if not hasattr(column, "__len__") or getattr(column, "ndim", 1) == 0:
        must, step = "must be a column of whole numbers or texts", "pass one id per row"
        raise UsageError(Problem("id", must, short(column), step))
    column = column_array("id", column)
    if len(column) != rows:
        must, step = "must have one value per row", "pass the ids of the same rows"
        raise UsageError(Problem("id", must, f"{len(column)} ids for {rows} rows", step))
    return coin.coins(column, rule.salt)


def _only_for_files(**settings: Any) -> None:
    for name, value in settings.items():
        if value is not None:
            rule, step = "is a setting for files", "leave it out, or pass the path of a file"
            raise UsageError(Problem(name, rule, f"{value!r}, and data in memory", step))


def _group_arrays(group: Any) -> Sequence[Any]:
    """The group columns that were passed as arrays: one, or a list of several."""
    several = isinstance(group, list | tuple) and len(group) > 0
    if several and all(isinstance(column, np.ndarray | list | tuple) for column in group):
        return group  # type: ignore[no-any-return]
    return [group]


def _need_arrays(**columns: Any) -> None:
    for name, value in columns.items():
        if value is None or isinstance(value, str):
            rule, got = "must be given when the columns are named", f"no data, and {name}={value!r}"
            step = "pass the data first, or arrays as score=, label=, group="
            raise UsageError(Problem("data", rule, got, step))


def is_data(data: Any) -> bool:
    """True if data are of a kind that :func:`tally` takes."""
    import narwhals as nw

    if isinstance(data, str | Path | Mapping):
        return True
    if isinstance(data, np.ndarray):
        return data.dtype.names is not None
    if is_stream(data) or is_pyspark_pandas(data) or isinstance(data, nw.DataFrame | nw.LazyFrame):
        return True
    try:
        return nw.from_native(data, pass_through=True) is not data
    except nw.exceptions.DuplicateError:
        return True
