"""A rule and files to a new file through DuckDB: out of core, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from isocost.atomic import check_target, replacing
from isocost.checks import check_path
from isocost.engines import sql
from isocost.engines.encode import GroupEncoder, as_objects
from isocost.engines.places import check_encoding, compression_of, kind_of
from isocost.engines.problems import Problems
from isocost.engines.settings import Settings
from isocost.engines.source import Progress, Source, encode_cells, no_rows
from isocost.engines.texts import WHOLE, json_values, read_as
from isocost.engines.written import check_names, check_written, group_names_of
from isocost.errors import DataError, FileError, Problem, UsageError
from isocost.groups import Group, as_group
from isocost.rules import Rule, check_rule, check_unknown, unknown_groups

__all__ = ["apply_file"]

_TEXTS = (".csv", ".tsv")
_OPTIONAL = ("id", "column", "changed")


def apply_file(
    rule: Rule,
    path: str | Path,
    output: str | Path,
    *,
    score: str = "score",
    group: str | Sequence[str] = "group",
    id: str | None = "id",
    column: str | None = None,
    changed: str | None = None,
    unknown: Literal["error", "keep"] = "error",
    missing_group: Group | None = None,
    force: bool = False,
    memory_limit: str | None = None,
    threads: int | None = None,
    keep_order: bool = True,
    progress: Progress | None = None,
) -> int:
    """Repair the scores of files of any size into a new file.

    Parameters
    ----------
    rule : Rule
        What to apply.
    path : path, glob or directory
        The data, as for :func:`isocost.tally`; never changed.
    output : path
        A file that ends in .csv, .tsv, .jsonl or .ndjson (also .gz and .zst), or .parquet; written
        whole or not at all.
    score, group, id : str
        The columns.  Ids may be whole numbers or texts; not needed if the rule throws no coin.
    column : str, optional
        The column to write; by default the score column.
    changed : str, optional
        A boolean column to add that says whether the score was changed.
    unknown, missing_group
        As in :meth:`isocost.Rule.apply`.
    force : bool
        Whether an existing output may be replaced.
    memory_limit, threads
        As for :func:`isocost.tally`.
    keep_order : bool
        Whether the rows keep their order.  Otherwise writing takes less memory.
    progress : callable, optional
        Called now and then with the share done, and with the number of rows where it is known.

    Returns
    -------
    int
        How many rows were written.
    """
    check_rule(rule)
    check_path(path)
    check_path(output, "output")
    check_unknown(unknown)
    missing_group = None if missing_group is None else as_group(missing_group)
    groups = group_names_of(group)
    check_names(score=score, id=id, column=column, changed=changed, optional=_OPTIONAL)
    target = score if column is None else column
    source = Source(path, Settings(memory_limit, threads, keep_order), groups=groups)
    source.check_divided()
    who = id if rule.needs_coin else None
    source.check_names({"score": score, "group": groups, "id": who, "output": target})
    _check_output(source, Path(output), force)
    check_written(source.types, target, changed)
    names = {"score": score, "group": ", ".join(groups), "id": id or ""}
    h = source.number("score", score)
    who = _id_text(source, id) if rule.needs_coin else None
    checked = 0.4 if source.is_text else 0.1
    found = _groups_in(
        source, rule, h, groups, id if who else None, names, missing_group,
        _part(progress, 0.0, checked),
    )  # fmt: skip
    strangers = [g for g in found.groups if g not in rule.groups]
    if strangers and unknown == "error":
        raise unknown_groups(strangers, rule.groups)
    known = [g for g in rule.groups if g in found.groups]
    new = sql.repaired(rule, known, h, found.columns, who, missing_group)
    meant = dict(zip(groups, found.columns, strict=True))
    selected = _selected(source, target, new, _casts(source, kind_of(str(output)), meant))
    if changed is not None:
        selected += f", {new} <> {h} AS {sql.name(changed)}"
    with replacing(output, force=force) as temporary:
        place = sql.literal(str(temporary))
        query = f"SELECT {selected} FROM {source.reader}"
        try:
            copy = f"COPY ({query}) TO {place} ({_options(str(output))})"
            source.run(copy, _part(progress, checked, 1.0, found.rows))
        except FileError as error:
            got = error.problems[0].got.replace(str(temporary), str(output))
            step = "check the input, the space on the disk and the permissions of the folder"
            rule_text = "must be written whole, and could not be"
            raise FileError(Problem("output", rule_text, got, step)) from error
    return found.rows


def _options(output: str) -> str:
    """How DuckDB shall write the file."""
    # The temporary file is ours: one of DuckDB's own would stay behind after Ctrl-C.
    kind, plain = kind_of(output), "USE_TMP_FILE false, "
    if kind == ".parquet":
        return f"{plain}FORMAT parquet"
    plain += f"COMPRESSION {compression_of(output)}, "
    if kind == ".jsonl":
        return f"{plain}FORMAT json"
    return f"{plain}FORMAT csv, HEADER" + (", DELIMITER '\t'" if kind == ".tsv" else "")


def _part(
    progress: Progress | None, start: float, stop: float, rows: int | None = None
) -> Progress | None:
    """Report one of several steps as its part of the whole."""
    if progress is None:
        return None
    return lambda share, known: progress(start + share * (stop - start), rows or known)


def _casts(source: Source, kind: str, groups: dict[str, sql.Column]) -> dict[str, str]:
    """The types that columns have in the output, where not those they are read as."""
    if kind in _TEXTS:
        return {}
    if source.is_text:
        types = source.types_of_all().items()
        return {name: type for name, type in types if type in ("BIGINT", "DOUBLE")}
    if kind != ".parquet":
        return {}
    # Parquet has no such whole numbers: DuckDB would write doubles.
    casts = {n: "DECIMAL(38,0)" for n, type in source.found_types.items() if type == "HUGEINT"}
    for name, column in groups.items():
        values = (column.meaning or {}).values()
        if source.found_types[name] == "DOUBLE" and all(type(value) is float for value in values):
            casts[name] = "DOUBLE"
    return casts


def _selected(source: Source, target: str, new: str, casts: dict[str, str]) -> str:
    """All columns, one of them new; numbers of a CSV become numbers elsewhere."""
    listed = []
    for column in source.types:
        plain, kind = sql.name(column), casts.get(column)
        listed.append(f"CAST({plain} AS {kind}) AS {plain}" if kind else plain)
    listed = [
        f"{new} AS {sql.name(target)}" if column == target else kept
        for column, kept in zip(source.types, listed, strict=True)
    ]
    if target not in source.types:
        listed.append(f"{new} AS {sql.name(target)}")
    return ", ".join(listed)


def _check_output(source: Source, output: Path, force: bool) -> None:
    check_encoding(str(output))
    kind_of(str(output))
    inputs = [Path(name).resolve() for name in source.place.files]
    if output.resolve() in inputs:
        step = "choose another path for the output"
        raise FileError(Problem("output", "must not be the input", str(output), step))
    check_target(output, force)
    if not output.resolve().parent.is_dir():
        step = "make the folder first"
        raise FileError(Problem("output", "must be in a folder that exists", str(output), step))


def _id_text(source: Source, id: str | None) -> str:
    if id is None:
        step = "name the column that says who a row is about (id=, --id)"
        raise UsageError(
            Problem("id", "must be given, because this rule throws a coin", "none", step)
        )
    column, kind = source.column("id", id), source.types[id]
    if kind != "VARCHAR" and kind not in sql.WHOLE:
        raise _no_id(id, f"values of type {kind}")
    return f"CAST({column} AS VARCHAR)"


def _no_id(id: str, got: str) -> DataError:
    rule = "must be a whole number or a text in every row"
    step = "use another column, or write the ids without decimals"
    return DataError(Problem(f"id (column {id!r})", rule, got, step))


@dataclass(frozen=True)
class _Found:
    """The groups of a file, the columns they are in, and how many rows it has."""

    groups: list[Group]
    columns: list[sql.Column]
    rows: int


def _groups_in(
    source: Source,
    rule: Rule,
    h: str,
    groups: Sequence[str],
    id: str | None,
    names: dict[str, str],
    missing: Group | None,
    progress: Progress | None,
) -> _Found:
    """Check the rows and list the groups, in one query."""
    for name in groups:
        source.check_scalar("group", name)
    keys = [source.column("group", name) for name in groups]
    query = (
        f"SELECT {', '.join(f'{key} AS g{i}' for i, key in enumerate(keys))}, count(*) AS n, "
        f"count_if({h} IS NULL OR isnan({h})) AS missing_score, "
        f"count_if({h} < 0 OR ({h} > 1 AND NOT isnan({h}))) AS wrong_score, "
        f"{_id_counts(source, id)} FROM {source.reader} GROUP BY ALL"
    )
    try:
        found = source.columns_of(query, progress)
    except DataError:
        source.check_number("score", names["score"])
        raise
    rows = int(found["n"].sum()) if len(found["n"]) else 0
    if rows == 0:
        raise no_rows(source.path)
    problems = Problems(names)
    problems.rows = rows
    raw, columns = _group_columns(source, rule, groups, keys, found)
    encoder = GroupEncoder(raw, missing)
    encode_cells(encoder, raw, found["n"], problems)
    problems.add("score", "null or NaN", int(found["missing_score"].sum()))
    problems.add("score", "outside [0, 1]", int(found["wrong_score"].sum()))
    problems.add("id", "null", int(found["missing_id"].sum()))
    problems.check()
    fractions = int(found["fraction_id"].sum())
    if id is not None and fractions and not found["text_id"].any():
        raise _no_id(id, f"{fractions:,} numbers that are not whole")
    return _Found(encoder.groups, columns, rows)


def _id_counts(source: Source, id: str | None) -> str:
    """How many ids are null; of a CSV, how many are no whole numbers, and how many no numbers."""
    if id is None:
        return "0 AS missing_id, 0 AS fraction_id, FALSE AS text_id"
    column = sql.name(id)
    missing = f"count_if({column} IS NULL) AS missing_id"
    if not source.is_text:
        return f"{missing}, 0 AS fraction_id, FALSE AS text_id"
    odd = f"NOT regexp_full_match({column}, {sql.literal(WHOLE)})"
    text = f"coalesce(bool_or({odd} AND {sql.as_number(column)} IS NULL), FALSE)"
    return f"{missing}, count_if({odd}) AS fraction_id, {text} AS text_id"


def _group_columns(
    source: Source, rule: Rule, names: Sequence[str], keys: Sequence[str], found: dict[str, Any]
) -> tuple[list[Any], list[sql.Column]]:
    """The values of the group columns, and how to ask for them; texts as the rule's groups are."""
    raw, columns = [], []
    for place, (name, key) in enumerate(zip(names, keys, strict=True)):
        values, meaning = found[f"g{place}"], None
        if source.is_text:
            parts = (g if isinstance(g, tuple) else (g,) for g in rule.groups)
            kinds = {type(part[place]) for part in parts if len(part) == len(names)}
            texts = values.tolist()
            meaning = {text: read_as(text, kinds) for text in texts if text is not None}
        elif source.types[name] == "JSON":
            meaning = json_values(values.tolist())
        if meaning is not None:
            values = as_objects([meaning.get(text) for text in values.tolist()])
        raw.append(values)
        columns.append(sql.Column(key, source.types[name], meaning))
    return raw, columns
