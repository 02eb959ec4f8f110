"""Files of any size, read by DuckDB: to a tally, or with a rule to a new file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from isocost.atomic import check_target, replacing
from isocost.checks import check_known, check_names, check_path, group_names_of
from isocost.coin import bound, hex_bound
from isocost.engines.connection import FileReading
from isocost.engines.dialects import DUCKDB, Case, repaired_group
from isocost.engines.parsing import WHOLE, json_values, read_as, typed
from isocost.engines.paths import (
    FORMATS,
    check_encoding,
    check_written_kind,
    compression_of,
    kind_of,
)
from isocost.engines.source import (
    DOUBT,
    WHOLE_TYPES,
    Progress,
    Source,
    as_number,
    is_number,
    literal,
    quoted,
    read_files,
)
from isocost.engines.values import (
    GroupEncoder,
    Problems,
    applied_columns,
    as_objects,
    missing_group_of,
    missing_id,
    no_rows,
    problem_of,
    scale_of,
    scored,
    written_column,
)
from isocost.errors import DataError, FileError, Problem, ReadingWarning
from isocost.grid import PROBABILITY, Grid, Scale
from isocost.groups import Group, Scalar, is_null, parts_of
from isocost.readings import Reading
from isocost.rules import Rule, check_rule, check_unknown, unknown_groups
from isocost.tallies import Tally
from isocost.verdict.sentences import plain
from isocost.verdict.wording import guess_note


@dataclass(frozen=True)
class Part:
    """Some of the rows: those that a coin keeps apart, or all others.

    The coin is that of the row's number, so that the parts are the same on every run.
    """

    share: float
    apart: bool

    def of(self, relation: Any) -> Any:
        """These rows of a relation of DuckDB."""
        digits = f"md5({literal('split:')} || CAST({_ROW} AS VARCHAR))"
        side = "<" if self.apart else ">="
        numbered = relation.project(f"*, row_number() OVER () AS {_ROW}")
        return numbered.filter(f"left({digits}, 13) {side} {literal(hex_bound(bound(self.share)))}")


_ROW = '"isocost row number"'

Guess = Callable[[Source, dict[str, Any], Any], tuple[dict[str, Any], Any]]
"""Gives the columns of a source and the positive label, from what was asked for."""


def tally_files(
    path: str | Path,
    columns: dict[str, Any],
    *,
    grid: Grid,
    positive: Any = None,
    missing_group: Group | None = None,
    progress: Progress | None = None,
    name: str | None = None,
    part: Part | None = None,
    scale: Scale = PROBABILITY,
    reading: FileReading | None = None,
    guess: Guess | None = None,
    handed_over: bool = False,
    drop_missing: bool = False,
) -> Tally:
    """Count the cells of files in one query; see :func:`isocost.tally`.

    ``name`` gives the ending of a file whose path has none; ``part`` counts some rows only;
    ``guess`` completes the columns and the positive label, once the columns of the files are known.
    """
    from isocost.engines.lazy import count_cells

    def count(reading: FileReading) -> Tally:
        used, named = columns, positive
        with Source(path, name, columns["group"], reading) as source:
            source.check_divided()
            if guess is not None:
                used, named = guess(source, used, named)
            source.check_names(used)
            rows = _FileRows(source, used, named, progress, part)
            options: dict[str, Any] = {"positive": named, "missing_group": missing_group}
            options |= {"handed_over": handed_over, "drop_missing": drop_missing}
            counted = scored(count_cells(rows, used, grid=grid, scale=scale, **options))
            return replace(counted, reading=replace(counted.reading, **source.read_as))

    return read_files(count, reading)


def warn_of_guess(reading: Reading, groups: Iterable[Group], stacklevel: int) -> None:
    """Warn if text was read in an encoding that was guessed, and names of groups may be wrong."""
    if doubt := guess_note(reading, groups):
        warnings.warn(plain(doubt), ReadingWarning, stacklevel=stacklevel + 1)


class _FileRows:
    """The rows of files; see :class:`isocost.engines.lazy.Rows`."""

    example: Literal["first", "least"] = "first"
    believes_statistics = True

    def __init__(
        self,
        source: Source,
        columns: dict[str, Any],
        positive: Any,
        progress: Progress | None,
        part: Part | None = None,
    ) -> None:
        self.source, self.columns, self.progress = source, columns, progress
        self.positive = positive
        self.origin = source.path
        picked = _picked(source, columns, positive)
        rows = source.relation if part is None else part.of(source.relation)
        self.relation = source.attempt(lambda: rows.project(picked))

    def pick(self, careful: bool) -> Any:
        """The frame to count; with care, DuckDB ignores the statistics of the files."""
        import narwhals as nw

        if careful:
            self.source.run(DOUBT)
        return nw.from_native(self.relation)

    def collect(self, frame: Any) -> dict[str, Any]:
        """The result as arrays; only the first query, which reads all rows, reports progress."""
        import narwhals as nw

        progress, self.progress = self.progress, None
        try:
            return self.source.columns_of(lambda: nw.to_native(frame).select("*"), progress)
        except DataError:
            named = {name: role for role in ("score", "weight") if (name := self.columns[role])}
            self.source.find_decimal(*named)
            # Decimal commas are wrong only because another column does not have them.
            for name in sorted(named, key=lambda name: self.source.text_numbers(name).fits_comma):
                self.source.check_number(named[name], name)
            raise

    def group_values(self, index: int, values: Any) -> Any:
        """The groups; texts of a CSV or of JSON get their types."""
        kind, texts = self.source.types[self.columns["group"][index]], values.tolist()
        if not (self.source.is_text or kind == "JSON"):
            return values
        meaning = json_values(texts) if kind == "JSON" else typed(texts)
        return as_objects([None if text is None else meaning[text] for text in texts])

    def label_value(self, value: Any) -> Any:
        """The label; a text of a CSV gets its type, unless a positive text is looked for."""
        is_typed = self.source.is_text and self.positive is None
        return typed([value])[value] if is_typed else value


def _picked(source: Source, columns: dict[str, Any], positive: Any) -> str:
    """The columns to count, each as the type it is counted in."""
    check_known(
        source.types, {role: columns[role] for role in ("score", "label", "group", "weight")}
    )
    for role, name in (("label", columns["label"]), *(("group", n) for n in columns["group"])):
        source.check_scalar(role, name)
    label = source.column("label", columns["label"])
    picked = {f"g{i}": source.column("group", name) for i, name in enumerate(columns["group"])}
    kind = source.types[columns["label"]]
    picked["y"] = _label(source, label, kind, positive)
    picked["l"] = label if positive is None else _shown_label(source, label)
    for role, key in (("score", "h"), ("weight", "w")):
        if (name := columns[role]) is not None:
            picked[key] = source.number(role, name)
            picked[f"shown_{key}"] = picked[key] if source.is_text else source.column(role, name)
    return ", ".join(f"{text} AS {key}" for key, text in picked.items())


def _label(source: Source, label: str, kind: str, positive: Any) -> str:
    """The label as 0 and 1; -1 for null, -2 for anything else."""
    null, is_csv = f"{label} IS NULL", source.is_text
    if is_csv:
        null += f" OR coalesce(isnan({as_number(label)}), FALSE)"
    elif kind in ("DOUBLE", "FLOAT"):
        null += f" OR isnan({DUCKDB.as_double(label)})"
    null = f"WHEN {null} THEN -1"
    if positive is not None:
        return f"CASE {null} WHEN {_is_label(source, label, kind, positive)} THEN 1 ELSE 0 END"
    zero, one = (_is_label(source, label, kind, value) for value in (0, 1))
    if is_csv:
        # The usual texts come first, because comparing them is quickest.
        null = f"WHEN {label} = '0' THEN 0 WHEN {label} = '1' THEN 1 {null}"
        zero, one = f"{zero} OR lower({label}) = 'false'", f"{one} OR lower({label}) = 'true'"
    return f"CASE {null} WHEN {zero} THEN 0 WHEN {one} THEN 1 ELSE -2 END"


def _is_label(source: Source, label: str, kind: str, value: Any) -> str:
    """The condition that a label has a value, by the type of the column.

    On the command line every value is a text, so "2" is also the number 2 and "True" the boolean.
    """
    text = str(value)
    if source.is_text:
        if text.lower() in ("true", "false"):
            return f"lower({label}) = {literal(text.lower())}"
        same = f"{label} = {literal(text)}"
        with suppress(TypeError, ValueError):
            same += f" OR {source.text_number(label)} = {literal(float(value))}"
        return same
    if kind == "BOOLEAN":
        known = {"true": "TRUE", "1": "TRUE", "false": "FALSE", "0": "FALSE"}
        return f"{label} = {known[text.lower()]}" if text.lower() in known else "FALSE"
    if is_number(kind):
        with suppress(TypeError, ValueError):
            # Whole numbers as such: DuckDB would round the column to compare it with a double.
            return f"{label} = {literal(int(text))}"
        try:
            return f"{label} = {literal(float(value))}"
        except (TypeError, ValueError):
            return "FALSE"
    return f"CAST({label} AS VARCHAR) = {literal(text)}"


def _shown_label(source: Source, label: str) -> str:
    """The label as text; 0 and 0.0 are the same number, however a CSV writes it."""
    if not source.is_text:
        return f"CAST({label} AS VARCHAR)"
    return f"coalesce(CAST({source.text_number(label)} AS VARCHAR), {label})"


def apply_file(
    rule: Rule,
    path: str | Path,
    output: str | Path,
    *,
    score: str | None = None,
    group: str | Sequence[str] | None = None,
    id: str | None = None,
    output_column: str | None = None,
    changed: str | None = None,
    handed_over: str | None = None,
    unknown: Literal["error", "keep"] = "error",
    missing_group: Group | None = None,
    force: bool = False,
    memory_limit: str | None = None,
    threads: int | None = None,
    keep_order: bool = True,
    progress: Progress | None = None,
    scale: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> int:
    """Copy files of any size into a new file, with a column of repaired scores.

    Parameters
    ----------
    rule : Rule
        The rule to apply.
    path : path, glob or directory
        The data, as for :func:`isocost.tally`; never changed.
    output : path
        Its ending says how it is written: .csv, .parquet or any other that can be read.  It is
        written whole or not at all.
    score, group, id : str, optional (``group`` also a list of str)
        The columns; by default those the rule was made from, then "score" and "group".  Ids are
        whole numbers or texts; a rule with a coin needs them.
    output_column : str, optional
        The column to write; an existing column of this name is replaced.  By default ``repaired_``
        and the name of the score column, which must then be a new column.
    changed : str, optional
        A boolean column to add: whether the score was changed.
    handed_over : str, optional
        A boolean column to add: whether the person is handed over, and so has no score.
    unknown, missing_group
        As in :meth:`isocost.Rule.apply`.
    force : bool
        Whether an existing output may be replaced.
    memory_limit, threads
        As for :func:`isocost.tally`.
    keep_order : bool
        Whether the rows keep their order.  Otherwise writing takes less memory.
    progress : callable, optional
        Called from time to time with the share done, and the number of rows where it is known.
    scale : str, optional
        What the scores are, as for :func:`isocost.tally`; by default as the rule was made.
    decimal, encoding, sheet
        As for :func:`isocost.tally`.  A CSV with decimal commas is written with them, and with
        semicolons; text is always written in UTF-8.

    Returns
    -------
    int
        The number of rows written.
    """
    check_rule(rule)
    check_path(path)
    check_path(output, "output")
    check_unknown(unknown)
    missing_group = missing_group_of(rule, missing_group)
    score, group, id = applied_columns(rule, score, group, id)
    groups = group_names_of(group)
    optional = {"id": id, "output_column": output_column}
    flags = {"changed": changed, "handed_over": handed_over}
    check_names(score=score, **optional, **flags, optional=(*optional, *flags))
    if rule.needs_coin and id is None:
        raise missing_id()
    reading = FileReading(decimal, encoding, sheet, memory_limit, threads, keep_order)
    repair = _FileRepair(
        rule=rule, score=score, groups=groups, id=id if rule.needs_coin else None,
        output_column=output_column, **flags, unknown=unknown, missing_group=missing_group,
        scale=scale_of(rule, scale),
    )  # fmt: skip

    def write(reading: FileReading) -> int:
        with Source(path, groups=groups, reading=reading) as source:
            return repair.write(source, Path(output), force, progress)

    return read_files(write, reading)


@dataclass(frozen=True)
class _FileRepair:
    """A rule, the columns of files that it reads, and those that it writes."""

    rule: Rule
    score: str
    groups: Sequence[str]
    id: str | None
    output_column: str | None
    changed: str | None
    handed_over: str | None
    unknown: str
    missing_group: Group | None
    scale: Scale

    def write(self, source: Source, output: Path, force: bool, progress: Progress | None) -> int:
        """Check the rows of files, and write them with their repaired scores; returns how many."""
        source.run(DOUBT)
        source.check_divided()
        role = "output_column"
        asked = self.score, self.output_column, self.scale, self.changed, self.handed_over
        target = written_column(source.types, *asked, role=role)
        used = {"score": self.score, "group": self.groups, "id": self.id, role: target}
        source.check_names(used)
        _check_output(source, output, force)
        if self.id is not None:
            _check_id(source, self.id)
        share = 0.4 if source.is_text else 0.1
        groups, columns, count = self._checked_rows(source, _step_of(progress, 0.0, share))
        warn_of_guess(Reading(**source.read_as), groups, stacklevel=5)
        others = [group for group in groups if group not in self.rule.groups]
        if others and self.unknown == "error":
            raise unknown_groups(others, self.rule.groups)
        h = self.scale.sql(source.number("score", self.score), literal)
        new = self._repaired(h, groups, columns)
        casts = _casts(source, kind_of(str(output)), dict(zip(self.groups, columns, strict=True)))
        selected = _selected(source, target, _as_read(source, new, output), casts)
        if self.changed is not None:
            selected += f", {new} IS DISTINCT FROM {h} AS {quoted(self.changed)}"
        if self.handed_over is not None:
            selected += f", {new} IS NULL AS {quoted(self.handed_over)}"
        query = f"SELECT {selected} FROM {source.reader}"
        _copy(source, query, output, force, _step_of(progress, share, 1.0, count))
        return count

    def _checked_rows(
        self, source: Source, progress: Progress | None
    ) -> tuple[list[Group], list[_Column], int]:
        """Check the rows in one query; their groups, the group columns, and the number of rows."""
        for name in self.groups:
            source.check_scalar("group", name)
        h = source.number("score", self.score)
        low, high = literal(self.scale.low), literal(self.scale.high)
        wrong = f"{h} < {low} OR ({h} > {high} AND NOT isnan({h}))"
        wrong += f" OR ({h} <> floor({h}) AND NOT isnan({h}))" if self.scale.is_rank else ""
        query = (
            f"SELECT {', '.join(f'{quoted(name)} AS g{i}' for i, name in enumerate(self.groups))}, "
            f"count(*) AS n, count_if({h} IS NULL OR isnan({h})) AS missing_score, "
            f"count_if({wrong}) AS wrong_score, "
            f"{_id_counts(source, self.id)} FROM {source.reader} GROUP BY ALL"
        )
        try:
            cells = source.columns_of(lambda: source.connection.execute(query), progress)
        except DataError:
            source.find_decimal(self.score)
            source.check_number("score", self.score)
            raise
        names = {"score": self.score, "group": ", ".join(self.groups), "id": self.id or ""}
        problems = Problems(names, scale=self.scale)
        problems.rows = int(cells["n"].sum()) if len(cells["n"]) else 0
        if problems.rows == 0:
            raise no_rows(source.path)
        raw, columns = self._group_columns(source, cells)
        encoder = GroupEncoder(raw, self.missing_group)
        encoder.encode_cells(raw, cells["n"], problems)
        problems.add("score", "null or NaN", int(cells["missing_score"].sum()))
        problems.add("score", "outside [0, 1]", int(cells["wrong_score"].sum()))
        problems.add("id", "null", int(cells["missing_id"].sum()))
        problems.check()
        fractions = int(cells["fraction_id"].sum())
        if self.id is not None and fractions and not cells["text_id"].any():
            raise _no_id(self.id, f"{fractions:,} numbers that are not whole")
        return encoder.groups, columns, problems.rows

    def _group_columns(
        self, source: Source, cells: dict[str, Any]
    ) -> tuple[list[Any], list[_Column]]:
        """The values of the group columns, and the columns; texts are read as the rule's groups."""
        raw, columns = [], []
        for i, name in enumerate(self.groups):
            values, listed = cells[f"g{i}"], cells[f"g{i}"].tolist()
            if source.is_text:
                known = map(parts_of, self.rule.groups)
                kinds = {type(parts[i]) for parts in known if len(parts) == len(self.groups)}
                meaning = read_as(listed, kinds)
            elif source.types[name] == "JSON":
                meaning = json_values(listed)
            else:
                meaning = {value: value for value in listed if not is_null(value)}
            if source.is_text or source.types[name] == "JSON":
                values = as_objects([meaning.get(text) for text in listed])
            literals: dict[Scalar, list[str]] = {}
            for value, meant in meaning.items():
                literals.setdefault(meant, []).append(literal(value))
            raw.append(values)
            columns.append(_Column(quoted(name), source.types[name], literals))
        return raw, columns

    def _repaired(self, score: str, groups: Sequence[Group], columns: Sequence[_Column]) -> str:
        """The score after the rule, as one CASE expression over the groups that occur.

        ``score`` is SQL for a double.
        """
        rule, missing = self.rule, self.missing_group
        coin = "" if self.id is None else DUCKDB.coin(rule.salt, quoted(self.id))
        whens = tuple(
            (_is_group(columns, group, missing), repaired_group(rule, group, score, coin, DUCKDB))
            for group in rule.groups
            if group in groups and rule.segments(group)
        )
        return str(Case(whens, score)) if whens else score


def _copy(source: Source, query: str, output: Path, force: bool, progress: Progress | None) -> None:
    """Write the result of a query to a file, through a temporary one."""
    form = FORMATS[kind_of(str(output))]
    zipped = f"COMPRESSION {compression_of(str(output))}, " if form.is_compressible else ""
    # The temporary file is ours: one of DuckDB's own would stay behind after Ctrl-C.
    options = f"USE_TMP_FILE false, {zipped}{form.writer}"
    if source.decimal == "," and form.is_text and "DELIMITER" not in options:
        options += ", DELIMITER ';'"
    with replacing(output, force=force) as temporary:
        try:
            source.run(f"COPY ({query}) TO {literal(str(temporary))} ({options})", progress)
        except FileError as error:
            got = error.problems[0].got.replace(str(temporary), str(output))
            step = "check the input, the space on the disk and the permissions of the folder"
            rule = "must be written whole, and could not be"
            raise FileError(Problem("output", rule, got, step)) from error


def _as_read(source: Source, number: str, output: Path) -> str:
    """A number as it is written: with a decimal comma into a CSV if it came from there."""
    if source.decimal == "." or not FORMATS[kind_of(str(output))].is_text:
        return number
    return f"replace(CAST({number} AS VARCHAR), '.', ',')"


def _step_of(
    progress: Progress | None, start: float, stop: float, rows: int | None = None
) -> Progress | None:
    """Report the progress of one step as a part of the whole."""
    if progress is None:
        return None
    return lambda share, known: progress(start + share * (stop - start), rows or known)


def _casts(source: Source, kind: str, groups: dict[str, _Column]) -> dict[str, str]:
    """The types of columns in the output, where they differ from those they are read as."""
    if FORMATS[kind].is_text:
        return {}
    if source.is_text:
        types = source.types_of_all().items()
        return {name: type for name, type in types if type in ("BIGINT", "DOUBLE")}
    if kind != ".parquet":
        return {}
    # Parquet has no whole numbers of 128 bits: DuckDB would write doubles.
    casts = {n: "DECIMAL(38,0)" for n, type in source.found_types.items() if type == "HUGEINT"}
    for name, column in groups.items():
        if source.found_types[name] == "DOUBLE" and all(type(v) is float for v in column.literals):
            casts[name] = "DOUBLE"
    return casts


def _selected(source: Source, target: str, new: str, casts: dict[str, str]) -> str:
    """All columns, one of them new; numbers of a CSV become numbers elsewhere."""
    listed = {column: quoted(column) for column in source.types}
    for column, kind in casts.items():
        is_text = source.is_text and kind == "DOUBLE"
        value = source.text_number(quoted(column)) if is_text else quoted(column)
        listed[column] = f"CAST({value} AS {kind}) AS {quoted(column)}"
    listed[target] = f"{new} AS {quoted(target)}"
    return ", ".join(listed.values())


def _check_output(source: Source, output: Path, force: bool) -> None:
    check_encoding(str(output))
    check_written_kind(str(output))
    inputs = [Path(name).resolve() for name in source.inputs]
    if output.resolve() in inputs:
        step = "choose another path for the output"
        raise FileError(Problem("output", "must not be the input", str(output), step))
    check_target(output, force)
    if not output.resolve().parent.is_dir():
        step = "make the folder first"
        raise FileError(Problem("output", "must be in a folder that exists", str(output), step))


def _check_id(source: Source, id: str) -> None:
    source.column("id", id)
    kind = source.types[id]
    if kind != "VARCHAR" and kind not in WHOLE_TYPES:
        raise _no_id(id, f"values of type {kind}")


def _no_id(id: str, got: str) -> DataError:
    step = "use another column, or write the ids without decimals"
    return DataError(problem_of("id", id, got, step))


@dataclass(frozen=True)
class _Column:
    """A group column as SQL, its type, and the literals of its values by what they stand for."""

    text: str
    kind: str
    literals: Mapping[Scalar, Sequence[str]]

    def test(self, value: Scalar) -> str:
        """The condition that it has a value; as in Python, 1 is 1.0 and True."""
        same = self.literals.get(value)
        return f"{self.text} IN ({', '.join(same)})" if same else "FALSE"

    def is_missing(self) -> str:
        """The condition that it is null or NaN."""
        nan = f" OR isnan({self.text})" if self.kind in ("DOUBLE", "FLOAT") else ""
        return f"{self.text} IS NULL{nan}"


def _id_counts(source: Source, id: str | None) -> str:
    """Counts of null ids and, in a CSV, of ids that are not whole; whether some are not numbers."""
    if id is None:
        return "0 AS missing_id, 0 AS fraction_id, FALSE AS text_id"
    column = quoted(id)
    missing = f"count_if({column} IS NULL) AS missing_id"
    if not source.is_text:
        return f"{missing}, 0 AS fraction_id, FALSE AS text_id"
    odd = f"NOT regexp_full_match({column}, {literal(WHOLE)})"
    text = f"coalesce(bool_or({odd} AND {as_number(column)} IS NULL), FALSE)"
    return f"{missing}, count_if({odd}) AS fraction_id, {text} AS text_id"


def _is_group(columns: Sequence[_Column], group: Group, missing: Group | None) -> str:
    """The condition that a row is in a group; nulls are in the group ``missing``."""
    tests = []
    for column, part in zip(columns, parts_of(group), strict=True):
        test = column.test(part)
        tests.append(f"({test} OR {column.is_missing()})" if part == missing else test)
    return " AND ".join(tests)
