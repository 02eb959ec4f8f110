"""The two entry points: from any data to a tally, and from a rule and any data to repaired data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, partialmethod
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isocost import coin
from isocost.checks import (
    check_columns,
    check_names,
    check_numbers,
    check_single,
    check_written,
    short,
)
from isocost.engines.arrays import apply_arrays, tally_arrays
from isocost.engines.frames import Lazy
from isocost.engines.values import column_array, missing_id
from isocost.errors import Problem, UsageError, missing_column
from isocost.grid import Grid
from isocost.groups import Group, as_group
from isocost.rules import Rule, check_unknown
from isocost.tallies import Tally


def tally(
    data: Any = None,
    score: Any = "score",
    label: Any = "label",
    group: Any = "group",
    weight: Any = None,
    bins: int = 1024,
    edges: tuple[float, ...] = (),
    *,
    positive: Any = None,
    missing_group: Group | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> Tally:
    """Count scores per group, label and score bin, in one pass over any data.

    Parameters
    ----------
    data : dict of arrays, any frame that narwhals knows, or a path
        Eager frames: pandas, polars, pyarrow.  Lazy frames (polars LazyFrame, duckdb relations,
        ibis, dask, pyspark) run one query, and only cells come back.
        A path, glob or directory of CSV, TSV, JSON lines or Parquet files is read by DuckDB, out
        of core; folders such as ``sex=F`` become a column.
        Leave it out to pass the columns themselves as arrays.
    score, label, weight : str
        The columns.  Scores lie in [0, 1]; labels are 0/1 or boolean, unless ``positive`` names the
        positive label; weights are positive.
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
    memory_limit : str, optional
        For files: the memory to use, such as "512MB".  By default 1 GiB, or 256 MiB per thread, and
        more only if needed.
    threads : int, optional
        For files: number of threads (default: one per core).

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
    if not isinstance(data, str | Path):
        _only_for_files(memory_limit=memory_limit, threads=threads)
    if data is None:
        group = group if isinstance(group, list | tuple) and _holds_arrays(group) else [group]
        _need_arrays(score=score, label=label, group=group[0])
        return tally_arrays(score, label, group, weight, **options)
    columns = check_columns(score, label, group, weight)
    if isinstance(data, str | Path):
        from isocost.engines.files import tally_files
        from isocost.engines.source import Settings

        return tally_files(data, columns, settings=Settings(memory_limit, threads), **options)
    source = _source(data)
    _need_columns(source, columns)
    if isinstance(source, Lazy):
        from isocost.engines.lazy import tally_lazy

        return tally_lazy(source, columns, **options)
    names = {role: name for role, name in columns.items() if isinstance(name, str)}
    names["group"] = ", ".join(columns["group"])
    return tally_arrays(
        source.numbers(columns["score"], "score"),
        source.labels(columns["label"]),
        [source.groups(name) for name in columns["group"]],
        None if weight is None else column_array("weight", source.numbers(weight, "weight")),
        names=names,
        columns=columns,
        **options,
    )


def apply_rule(
    rule: Rule,
    data: Any,
    *,
    score: Any,
    group: Any,
    id: Any,
    output: str,
    seed: int | None,
    unknown: Literal["error", "keep"],
    missing_group: Group | None,
    changed: str | None,
) -> Any:
    """See :meth:`isocost.Rule.apply`."""
    check_unknown(unknown)
    check_names(output=output, changed=changed, optional=("changed",))
    missing_group = None if missing_group is None else as_group(missing_group)
    options: dict[str, Any] = {"unknown": unknown, "missing_group": missing_group}
    if data is None:
        group = group if isinstance(group, list | tuple) and _holds_arrays(group) else [group]
        _need_arrays(score=score, group=group[0])
        score = column_array("score", score)
        thrown = partial(_coins, rule, lambda: id, seed, len(score))
        return apply_arrays(rule, score, group, thrown, **options)
    if isinstance(data, str | Path):
        raise UsageError(
            Problem(
                "data",
                "must be a dict of arrays or a frame",
                f"the path {str(data)!r}",
                "use isocost.apply_file(rule, path, output_path), or the command isocost apply",
            )
        )
    source = _source(data)
    groups = check_columns(score, "label", group)["group"]
    _need_columns(source, {"score": score, "group": groups})
    if rule.needs_coin and seed is None:
        check_names(id=id, optional=("id",))
    check_written(source.columns, output, changed, by_case=not isinstance(source, Lazy))
    if isinstance(source, Lazy):
        from isocost.engines.lazy import apply_lazy

        written: dict[str, Any] = {"output": output, "changed": changed}
        return apply_lazy(
            rule, source, score=score, groups=groups, id=id, seed=seed, **written, **options
        )
    before = column_array("score", source.numbers(score, "score"))
    thrown = partial(_coins, rule, lambda: source.ids(id), seed, len(before))
    after = apply_arrays(
        rule,
        before,
        [source.groups(name) for name in groups],
        thrown,
        names={"score": score, "group": ", ".join(groups)},
        **options,
    )
    new: dict[str, npt.NDArray[Any]] = {output: after}
    if changed is not None:
        new[changed] = after != np.asarray(before, dtype=np.float64)
    return source.with_columns(new)


def _coins(rule: Rule, ids: Any, seed: int | None, rows: int) -> npt.NDArray[np.uint64]:
    if seed is not None:
        return coin.seeded_coins(rows, seed)
    column = ids()
    if isinstance(column, str):
        step = "pass id= so that a person's coin is always the same, or seed= for row order"
        raise missing_id("no ids and no seed", step)
    if not hasattr(column, "__len__") or getattr(column, "ndim", 1) == 0:
        must, step = "must be a column of whole numbers or texts", "pass one id per row"
        raise UsageError(Problem("id", must, short(column), step))
    column = column_array("id", column)
    if len(column) != rows:
        raise UsageError(
            Problem(
                "id",
                "must have one value per row",
                f"{len(column)} ids for {rows} rows",
                "pass the ids of the same rows",
            )
        )
    return coin.coins(column, rule.salt)


class _Columns:
    """A dict of arrays, with the methods of a frame."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data

    @property
    def columns(self) -> list[str]:
        return [str(name) for name in self.data]

    def numbers(self, name: str, role: str) -> Any:
        if name not in self.data:
            raise UsageError(missing_column(role, name, self.columns))
        return self.data[name]

    labels = partialmethod(numbers, role="label")
    groups = partialmethod(numbers, role="group")
    ids = partialmethod(numbers, role="id")

    def with_columns(self, columns: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
        return {**self.data, **columns}


def _source(data: Any) -> Any:
    if isinstance(data, Mapping):
        return _Columns(data)
    if isinstance(data, np.ndarray) and data.dtype.names:
        return _Columns({name: data[name] for name in data.dtype.names})
    from isocost.engines.frames import as_frame

    return as_frame(data)


def _need_columns(source: Any, wanted: Mapping[str, Any]) -> None:
    """Raise one error for all names that the data do not have."""
    columns = [str(name) for name in source.columns]
    named = [(k, n) for k, v in wanted.items() for n in (v if isinstance(v, list) else [v])]
    missing = [
        missing_column(role, n, columns) for role, n in named if n is not None and n not in columns
    ]
    if missing:
        raise UsageError(missing)


def _only_for_files(**settings: Any) -> None:
    for name, value in settings.items():
        if value is not None:
            rule, step = "is a setting for files", "leave it out, or pass the path of a file"
            raise UsageError(Problem(name, rule, f"{value!r}, and data in memory", step))


def _holds_arrays(group: Any) -> bool:
    return bool(group) and all(isinstance(g, np.ndarray | list | tuple) for g in group)


def _need_arrays(**columns: Any) -> None:
    for name, value in columns.items():
        if isinstance(value, str):
            rule, got = "must be given when the columns are named", f"no data, and {name}={value!r}"
            step = "pass the data first, or arrays as score=, label=, group="
            raise UsageError(Problem("data", rule, got, step))
