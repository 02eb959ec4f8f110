"""A rule and files to a new file through DuckDB: out of core, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from isocost.atomic import replacing
from isocost.engines import sql
from isocost.engines.encode import GroupEncoder
from isocost.engines.places import compression_of, kind_of
from isocost.engines.problems import Problems
from isocost.engines.settings import Settings
from isocost.engines.source import Progress, Source, encode_cells, no_rows
from isocost.errors import DataError, FileError, Problem, UsageError
from isocost.groups import Group
from isocost.rules import Rule, check_unknown, unknown_groups

__all__ = ["apply_file"]

_TEXTS = (".csv", ".tsv")
_WHOLE = {
    f"{sign}{size}"
    for sign in ("", "U")
    for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
}


def apply_file(
    rule: Rule,
    path: str | Path,
    output: str | Path,
    *,
    score: str = "score",
    group: str | Sequence[str] = "group",
    id: str | None = "id",
    column: str | None = None,
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
    check_unknown(unknown)
    groups = [group] if isinstance(group, str) else list(group)
    source = Source(path, groups, Settings(memory_limit, threads, keep_order))
    _check_output(source, Path(output), force)
    names = {"score": score, "group": ", ".join(groups), "id": id or ""}
    h = source.number("score", score)
    keys = [source.column("group", name) for name in groups]
    who = _id_text(source, id) if rule.needs_coin else None
    checked = 0.4 if source.is_text else 0.1
    found = _groups_in(
        source, h, keys, id if who else None, names, missing_group, _part(progress, 0.0, checked)
    )
    strangers = [g for g in found.groups if g not in rule.groups]
    if strangers and unknown == "error":
        raise unknown_groups(strangers, rule.groups)
    known = [g for g in rule.groups if g in found.groups]
    columns = [
        # A CSV is read as texts here, so the types have to be named.
        sql.Column(f"CAST({key} AS {kind})" if source.is_text else key, kind)
        for key, kind in zip(keys, (source.types[name] for name in groups), strict=True)
    ]
    new = sql.repaired(rule, known, h, columns, who, missing_group)
    selected = _selected(source, column or score, new, typed=kind_of(str(output)) not in _TEXTS)
    with replacing(output) as temporary:
        place = sql.literal(str(temporary))
        query = f"SELECT {selected} FROM {source.raw}"
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


def _selected(source: Source, target: str, new: str, typed: bool) -> str:
    """All columns, one of them new; numbers of a CSV become numbers elsewhere."""
    listed = []
    for column, kind in source.types.items():
        plain = sql.name(column)
        cast = typed and source.is_text and kind in ("BIGINT", "DOUBLE")
        listed.append(f"CAST({plain} AS {kind}) AS {plain}" if cast else plain)
    listed = [
        f"{new} AS {sql.name(target)}" if column == target else kept
        for column, kept in zip(source.types, listed, strict=True)
    ]
    if target not in source.types:
        listed.append(f"{new} AS {sql.name(target)}")
    return ", ".join(listed)


def _check_output(source: Source, output: Path, force: bool) -> None:
    kind_of(str(output))
    inputs = [Path(name).resolve() for name in source.files()]
    if output.resolve() in inputs:
        step = "choose another path for the output"
        raise FileError(Problem("output", "must not be the input", str(output), step))
    if output.exists() and not force:
        step = "choose another path, or pass force=True (--force) to replace it"
        raise FileError(Problem("output", "must not exist yet", str(output), step))
    if not output.resolve().parent.is_dir():
        step = "make the folder first"
        raise FileError(Problem("output", "must be in a folder that exists", str(output), step))


def _id_text(source: Source, id: str | None) -> str:
    if id is None:
        step = "name the column that says who a row is about (id=, --id)"
        raise UsageError(
            Problem("id", "must be given, because this rule throws a coin", "none", step)
        )
    column = source.column("id", id)
    kind = source.types[id]
    whole = kind == "VARCHAR" or kind in _WHOLE
    if kind == "DOUBLE" and source.is_text:
        # Whole numbers beyond 64 bits look like doubles to DuckDB; the text tells.
        query = f"SELECT 1 FROM {source.raw} WHERE NOT regexp_full_match({column}, '-?[0-9]+')"
        whole = source.run(f"{query} LIMIT 1").fetchone() is None
    if not whole:
        raise DataError(
            Problem(
                f"id (column {id!r})",
                "must be a whole number or a text in every row",
                f"values of type {kind}",
                "use another column, or write the ids without decimals",
            )
        )
    return f"CAST({column} AS VARCHAR)"


class _Found:
    """The groups of a file and how many rows it has."""

    def __init__(self, groups: list[Group], rows: int) -> None:
        self.groups = groups
        self.rows = rows


def _groups_in(
    source: Source,
    h: str,
    keys: Sequence[str],
    id: str | None,
    names: dict[str, str],
    missing: Group | None,
    progress: Progress | None,
) -> _Found:
    """Check the rows and list the groups, in one query."""
    null_id = "0" if id is None else f"count_if({sql.name(id)} IS NULL)"
    query = (
        f"SELECT {', '.join(f'{key} AS g{i}' for i, key in enumerate(keys))}, count(*) AS n, "
        f"count_if({h} IS NULL OR isnan({h})) AS missing_score, "
        f"count_if({h} < 0 OR ({h} > 1 AND NOT isnan({h}))) AS wrong_score, "
        f"{null_id} AS missing_id FROM {source.reader} GROUP BY ALL"
    )
    found = source.columns_of(query, progress)
    rows = int(found["n"].sum()) if len(found["n"]) else 0
    if rows == 0:
        raise no_rows(source.path)
    problems = Problems(names)
    problems.rows = rows
    raw = [found[f"g{i}"] for i in range(len(keys))]
    encoder = GroupEncoder(raw, missing)
    encode_cells(encoder, raw, found["n"], problems)
    problems.add("score", "null or NaN", int(found["missing_score"].sum()))
    problems.add("score", "outside [0, 1]", int(found["wrong_score"].sum()))
    problems.add("id", "null", int(found["missing_id"].sum()))
    problems.check()
    return _Found(encoder.groups, rows)
