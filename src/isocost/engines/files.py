"""Files of any size, read by DuckDB: to a tally, or with a rule to a new file."""

from __future__ import annotations

import glob
import gzip
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from isocost.atomic import check_target, replacing
from isocost.checks import check_known, check_names, check_path, group_names_of, named_in
from isocost.coin import bound, hex_bound
from isocost.engines.columns import (
    COMMA,
    THOUSANDS,
    WHOLE,
    Array,
    GroupEncoder,
    Problems,
    TextNumbers,
    applied_columns,
    as_objects,
    json_values,
    missing_group_of,
    missing_id,
    no_rows,
    problem_of,
    read_as,
    scale_of,
    scored,
    text_numbers,
    title_of,
    typed,
    unmasked,
    written_column,
)
from isocost.engines.dialects import DUCKDB, literal, quoted
from isocost.engines.kinds import (
    ARROW_SCHEMA,
    FORMATS,
    FileReading,
    check_encoding,
    compression_of,
    converted,
    durations_of,
    find_files,
    kind_of,
    nothing_at,
    unreadable,
)
from isocost.errors import (
    DataError,
    FileError,
    IsocostError,
    Problem,
    ReadingWarning,
    UsageError,
    missing_column,
)
from isocost.grid import PROBABILITY, Grid, Scale
from isocost.groups import Group, Scalar, is_null, parts_of
from isocost.readings import REFUSE, Missing, Reading
from isocost.rules import Rule, check_rule, check_unknown, unknown_groups
from isocost.tallies import Tally
from isocost.typing import is_masked
from isocost.verdict.wording import guess_note

DOUBT = "SET disabled_optimizers = 'statistics_propagation'"
"""The statistics of Parquet files ignore NaN, and DuckDB trusts them: NaN would lie in [0, 1].
Without them queries are slower, so they are switched off only where NaN would not show."""


_SIZES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
WHOLE_TYPES = (*_SIZES, *(f"U{size}" for size in _SIZES))
"""The types of whole numbers."""


def is_decimal(kind: str) -> bool:
    """True if a type is DECIMAL; a list of decimals is not."""
    return kind.startswith("DECIMAL(") and kind.endswith(")")


def is_number(kind: str) -> bool:
    """True if a type holds numbers.

    Examples
    --------
    >>> [is_number(kind) for kind in ("BIGINT", "DECIMAL(3,1)", "INTERVAL", "INTEGER[]")]
    [True, True, False, False]
    """
    return kind in WHOLE_TYPES or kind in ("DOUBLE", "FLOAT") or is_decimal(kind)


def as_number(text: str) -> str:
    """A text as a double, null if it is not a number; DuckDB alone would read 0_1 as 1."""
    return f"try_cast(CASE WHEN contains({text}, '_') THEN NULL ELSE {text} END AS DOUBLE)"


Progress = Callable[[float, int | None], None]
"""Called from time to time with the share of the work that is done, from 0 to 1, and the total
number of rows where it is known."""

MOST_COLUMNS = 20_000
"""The most columns of a file: the time that DuckDB takes grows with the square."""

_PAUSE = 0.1
"""Seconds between two reports of progress."""

_NOT_UTF8 = "(?i)not utf-8|invalid utf-?8|unicode"

_FIRST = 50
"""Lines at the beginning of a CSV that show its names and its decimal sign."""

_PLAIN = ("BOOLEAN", "BIGINT", "UBIGINT", "HUGEINT", "DOUBLE", "VARCHAR")


class Source:
    """Files that DuckDB reads, with the names and types of their columns.

    Every column of a CSV is read as text, and its values get their types later.  So is a group
    column of JSON, unless all its values have one exact type: as a double, a large whole number
    would be rounded.
    """

    def __init__(
        self,
        path: str | Path,
        name: str | None = None,
        groups: Sequence[str] = (),
        reading: FileReading | None = None,
    ) -> None:
        self.path = str(path)
        self.reading = reading or FileReading()
        self.file_set = find_files(path, name)
        self.inputs = self.file_set.files
        if Path(self.path).is_file() and Path(self.path).stat().st_size == 0:
            raise no_rows(self.path)
        self.kind = self.file_set.kind
        self.format = FORMATS[self.kind]
        self.is_text = self.format.is_text
        self.decimal = self.reading.decimal or "."
        # The copies are deleted with this object.
        self.copies = converted(self.file_set, self.reading.encoding, self.reading.sheet)
        self.file_set = self.copies.file_set
        self.connection = self.reading.connect()
        self._files = f"[{', '.join(map(literal, self.file_set.patterns))}]"
        # Options of the reader that hold whatever the types of the columns are.
        self._usual = ""
        self._hive = ", hive_partitioning = " + ("true" if self.file_set.partitions else "false")
        self.headers = {file: self._header(file) for file in self.file_set.files if self.is_text}
        for header in self.headers.values():
            self._check_width(1 + max(header.count(mark) for mark in (b",", b";", b"\t", b"|")))
        if any(h.endswith(b"\r\n") and re.search(rb"(?<!\r)\n", h) for h in self.headers.values()):
            # As Excel writes it: a name may contain another end of line.
            self._usual += r", new_line = '\r\n'"
        if self.file_set.compression and self.format.is_compressible:
            self._usual += f", compression = '{self.file_set.compression}'"
        self.first_rows: dict[str, list[str]] = {}
        self._open(self.format.look)
        self.types = {
            str(name): str(kind)
            for name, kind in zip(self.relation.columns, self.relation.types, strict=True)
        }
        self.found_types = dict(self.types)
        self._keep_dates(groups)
        if self.kind == ".parquet" and "BIGINT" in self.types.values():
            # Some may be time spans, as only Arrow's schema tells.
            query = f"SELECT DISTINCT value FROM parquet_kv_metadata({self._files}) WHERE key = ?"
            found = self.attempt(lambda: self.connection.execute(query, [ARROW_SCHEMA]).fetchall())
            spans = {name for (schema,) in found for name in durations_of(schema)}
            whole = [name for name in spans if self.types.get(name) == "BIGINT"]
            self.types.update(dict.fromkeys(whole, "DURATION"))

    @property
    def read_as(self) -> dict[str, Any]:
        """The ways in which the files were read, where that is not the usual way."""
        ways = {"encoding": self.copies.encoding, "sheet": self.copies.sheet}
        ways |= {"decimal": "," if self.decimal == "," else None, "guessed": self.copies.guessed}
        return {name: way for name, way in ways.items() if way is not None}

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection and delete temporary copies."""
        self.connection.close()
        if self.copies.folder is not None:
            self.copies.folder.cleanup()

    def check_divided(self) -> None:
        """Raise if a CSV has one column, because its lines could not be split consistently."""
        if self.is_text and len(self.types) == 1:
            rule = "must have a header, and as many values in every line as it has names"
            got = f"one column in {self.path}: {next(iter(self.types))!r}"
            step = "remove lines above the header, and correct lines with more or fewer values"
            raise FileError(Problem("file", rule, got, step))

    def _header(self, file: str) -> bytes:
        """The first record of a CSV, at most a MiB; nothing if Zstandard compresses it."""
        compression = self.file_set.compression_of(file)
        if compression == "zstd":
            return b""
        with gzip.open(file) if compression == "gzip" else Path(file).open("rb") as lines:
            header = bytes(lines.readline(2**20))
            # A quoted name may have several lines.
            while header.count(b'"') % 2 and (line := lines.readline(2**20 - len(header))):
                header += line
        return header

    def _open(self, options: str) -> None:
        """Open the files with these options; only headers and metadata are read."""
        if self.file_set.is_many and self.kind != ".jsonl":
            # Otherwise the first file determines the columns and their types.
            options += ", union_by_name = true"
        options += self._usual + self._hive
        self.reader = self.format.reader.format(files=self._files, options=options)
        self.relation = self.attempt(lambda: self.connection.sql(f"SELECT * FROM {self.reader}"))
        self._check_width(len(self.relation.columns))

    def _check_width(self, columns: int) -> None:
        """Raise for more columns than DuckDB reads in a reasonable time."""
        if columns > MOST_COLUMNS:
            rule, got = f"must have at most {MOST_COLUMNS:,} columns", f"{columns:,} in {self.path}"
            step = "keep the columns of score, label, group, weight and id"
            raise DataError(Problem("file", rule, got, step))

    def _keep_dates(self, groups: Sequence[str]) -> None:
        """Read as text what DuckDB would turn into dates; nested values of JSON stay JSON."""

        def struct(types: dict[str, str]) -> str:
            listed = (f"{literal(name)}: {literal(kind)}" for name, kind in types.items())
            return f"{{{', '.join(listed)}}}"

        # DuckDB ignores case.
        folders = {key.lower() for key in self.file_set.partitions}
        keys = [name for name in self.types if name.lower() in folders]
        texts = [key for key in keys if self.is_text or self.types[key] not in _PLAIN]
        if texts:
            self._hive += f", hive_types = {struct(dict.fromkeys(texts, 'VARCHAR'))}"
            self.types.update(dict.fromkeys(texts, "VARCHAR"))
        options = ""
        if self.kind == ".jsonl":
            mine = {name: kind for name, kind in self.types.items() if name not in keys}
            for name, kind in mine.items():
                # Numbers and booleans as such, others as written.
                nested = kind == "JSON" or kind.endswith("]") or kind.startswith(("STRUCT", "MAP"))
                nested |= name in groups and kind in ("DOUBLE", "HUGEINT")
                self.types[name] = "JSON" if nested else kind if kind in _PLAIN else "VARCHAR"
            options = f", columns = {struct({name: self.types[name] for name in mine})}"
        if texts or options:
            self._open(options)

    def types_of_all(self) -> dict[str, str]:
        """The types of the columns of a CSV, from all rows; dates stay texts."""
        candidates = "auto_type_candidates = ['BOOLEAN', 'BIGINT', 'DOUBLE', 'VARCHAR']"
        look = f"{candidates}, sample_size = -1, decimal_separator = {literal(self.decimal)}"
        reader = self.reader.replace("all_varchar = true", look)
        rows = self.run(f"DESCRIBE SELECT * FROM {reader}").fetchall()
        types = {str(row[0]): str(row[1]) for row in rows}
        numbers = [name for name, kind in types.items() if kind in ("BIGINT", "DOUBLE")]
        if numbers:
            tests = []
            for text in map(quoted, numbers):
                # Digits are a name where a double would round them, or DuckDB ignore a part.
                whole = f"try_cast({text} AS HUGEINT)"
                rounded = f"({whole} IS NULL OR abs({whole}) > {2**53})"
                too_long = f"regexp_full_match({text}, '[-+]?[0-9]{{16,}}') AND {rounded}"
                tests.append(f"bool_or(contains({text}, '_') OR ({too_long}))")
            (flags,) = self.run(f"SELECT {', '.join(tests)} FROM {self.reader}").fetchall()
            types.update(
                {n: "VARCHAR" for n, is_name in zip(numbers, flags, strict=True) if is_name}
            )
        return types

    def check_names(self, used: Mapping[str, str | Sequence[str] | None]) -> None:
        """Raise if a name stands for more than one column of a file, folders included.

        DuckDB itself takes the first, or the folder, and ignores case.
        """
        named = named_in(used)
        own = self._own_names({name.lower() for _, name in named})
        for role, wanted in named:
            title, alike = title_of(role, wanted), set()
            for file, names in own.items():
                same = [name for name in names if name.lower() == wanted.lower()]
                alike.update(same)
                keys = [f"{k}=" for k in self.file_set.partitions if k.lower() == wanted.lower()]
                if same and keys:
                    step = "rename or drop the column, or move the file out of the folder"
                    got = f"a folder {keys[0]!r} and a column {same[0]!r} in {file}"
                    raise DataError(Problem(title, _ONE, got, step))
                if len(same) > 1:
                    got = f"{len(same)} columns {_quoted(same)} in {file}"
                    raise DataError(Problem(title, _ONE, got, "rename or drop all but one of them"))
            if len(alike) > 1:
                got = f"{_quoted(sorted(alike))} in different files"
                raise DataError(Problem(title, _ONE, got, "give the column one name in all files"))
            if not alike and wanted in self._renamed(own):
                listed = dict.fromkeys(name for names in own.values() for name in names)
                raise UsageError(missing_column(role, wanted, list(listed)))

    def _renamed(self, own: Mapping[str, Sequence[str]]) -> set[str]:
        """The names that DuckDB gave to repeated columns: score_1 for a second score."""
        stems = {name.lower() for names in own.values() for name in names}
        ends = {name: re.fullmatch(r"(.+?)(_\d+)+", name, re.DOTALL) for name in self.types}
        return {name for name, end in ends.items() if end and end[1].lower() in stems}

    def _own_names(self, used: set[str]) -> dict[str, list[str]]:
        """The names of the columns in each file, without those of folders."""
        if self.is_text:
            return self._names_of_headers()
        names: dict[str, list[str]] = {}
        if self.kind == ".parquet":
            # The top level alone, without the fields of structures.
            columns = "file_name, name, coalesce(num_children, 0)"
            inside = 0
            for file, column, children in self.run(
                f"SELECT {columns} FROM parquet_schema({self._files})"
            ).fetchall():
                if file not in names:
                    # The first row of a file is the root.
                    names[file] = []
                    continue
                if inside == 0:
                    names[file].append(str(column))
                inside += children - (inside > 0)
        elif self._renamed({"": list(self.types)}):
            # DuckDB would lose one of two keys that differ only in case.
            objects = f"read_json_objects({self._files}, format = 'newline_delimited')"
            rows = self.run(f"SELECT DISTINCT unnest(json_keys(json)) FROM {objects}").fetchall()
            names[self.path] = sorted(str(row[0]) for row in rows)
            lower = [key.lower() for key in names[self.path]]
            twins = [key for key in names[self.path] if lower.count(key.lower()) > 1]
            if twins:
                rule = "keys must differ in more than upper and lower case"
                got = f"{_quoted(twins)} in {self.path}"
                raise DataError(Problem("file", rule, got, "rename or drop all but one of them"))
        elif used & {key.lower() for key in self.file_set.partitions}:
            options = f"{self.format.look}, hive_partitioning = false"
            reader = self.format.reader.format(files=self._files, options=options)
            rows = self.run(f"DESCRIBE SELECT * FROM {reader}").fetchall()
            names[self.path] = [str(row[0]) for row in rows]
        return names

    def _names_of_headers(self) -> dict[str, list[str]]:
        """The names in the header of each CSV; of files with the same header, one is read."""
        files = {h if h.endswith(b"\n") else file: file for file, h in self.headers.items()}
        reader = self.format.reader.replace("header = true", "header = false")
        names = {}
        for file in files.values():
            one = reader.format(files=f"[{literal(glob.escape(file))}]", options=self._usual)
            try:
                rows = self.run(f"SELECT * FROM {one} LIMIT {_FIRST}").fetchall()
            except IsocostError:
                continue
            columns = [column for column in zip(*rows, strict=True) if column[0] is not None]
            listed = [str(name).strip() for name, *_ in columns]
            names[self.copies.names.get(file, file)] = listed
            for name, (_, *values) in zip(listed, columns, strict=True):
                self.first_rows[name] = [text for text in values if text is not None]
        return names

    def run(self, query: str, progress: Progress | None = None) -> Any:
        """Run a query; a failure becomes an error that names the file."""
        return self.attempt(lambda: self.connection.execute(query), progress)

    def attempt(self, work: Callable[[], Any], progress: Progress | None = None) -> Any:
        """Do some work with the connection; a failure becomes an error that names the file."""
        import duckdb

        try:
            return work() if progress is None else self._watched(work, progress)
        except (duckdb.Error, RuntimeError) as error:
            # DuckDB catches Ctrl-C itself and raises an error of its own.
            if "interrupted" in str(error).lower():
                raise KeyboardInterrupt from error
            if not isinstance(error, duckdb.Error):
                raise
            is_full = isinstance(error, duckdb.OutOfMemoryException)
            if is_full and self.reading.relax(self.connection):
                return self.attempt(work, progress)
            raise self._explained(error) from error

    def _watched(self, work: Callable[[], Any], progress: Progress) -> Any:
        rows = None
        if self.kind == ".parquet":
            query = f"SELECT sum(num_rows) FROM parquet_file_metadata({self._files})"
            rows = int(self.run(query).fetchall()[0][0])
        self.connection.execute("SET enable_progress_bar = true")
        self.connection.execute("SET enable_progress_bar_print = false")
        percentage = self.connection.query_progress
        with ThreadPoolExecutor(max_workers=1) as pool:
            job = pool.submit(work)
            try:
                while True:
                    try:
                        result = job.result(timeout=_PAUSE)
                    except StillRunning:
                        progress(min(max(percentage() / 100.0, 0.0), 1.0), rows)
                    else:
                        # Also where the work ends before anybody asks.
                        progress(1.0, rows)
                        return result
            except BaseException:
                self.connection.interrupt()
                raise

    def _explained(self, error: Exception) -> FileError | DataError | UsageError:
        message = str(error)
        if self.copies.doubt is not None and re.search(_NOT_UTF8, message):
            return FileError(self.copies.doubt)
        for copy, name in self.copies.names.items():
            message = message.replace(copy, name)
        first = " ".join(line.strip() for line in message.splitlines()[:4] if line.strip())[:300]
        if "No files found" in first:
            return nothing_at(self.path)
        if "Out of Memory" in first:
            rule = "must be enough for the work"
            step = "raise it, use fewer threads, or write without keeping the order of the rows"
            return UsageError(Problem("memory_limit", rule, first, step))
        if longest := re.search(r"Maximum line size of (\d+) bytes", message):
            rule = f"must have lines of at most {int(longest[1]):,} bytes"
            step = "look for a quotation mark that is never closed, or convert the file to Parquet"
            return DataError(Problem("file", rule, f"a longer line in {self.path}", step))
        if "onversion" in first or "CSV Error" in first or "alformed JSON" in first:
            rule = "must hold one kind of value per column"
            step = "correct the line, or pass the data as a frame with the types you want"
            return DataError(Problem("file", rule, first, step))
        return unreadable(self.kind, f"{self.path}: {first}")

    def columns_of(
        self, query: Callable[[], Any], progress: Progress | None = None
    ) -> dict[str, Array]:
        """A result as arrays; nulls are None.  The query runs again if it gets more memory."""
        columns = self.attempt(lambda: query().fetchnumpy(), progress)
        return {
            name: unmasked(values) if is_masked(values) else values
            for name, values in columns.items()
        }

    def column(self, role: str, wanted: str) -> str:
        """A column as SQL, or an error that lists the columns."""
        if wanted not in self.types:
            raise UsageError(missing_column(role, wanted, list(self.types)))
        return quoted(wanted)

    def number(self, role: str, wanted: str) -> str:
        """A numeric column as SQL of type DOUBLE."""
        column = self.column(role, wanted)
        kind = self.types[wanted]
        if self.is_text or kind == "VARCHAR":
            # Not a number, also true: an error.
            other = f"CAST(CASE WHEN {column} IS NOT NULL THEN 'no number' END AS DOUBLE)"
            return f"coalesce({self.text_number(column)}, {other})"
        if kind == "BOOLEAN":
            return f"CAST(CAST({column} AS INT) AS DOUBLE)"
        if not is_number(kind):
            self.check_number(role, wanted)
            return "CAST(NULL AS DOUBLE)"
        if is_decimal(kind):
            # DuckDB rounds twice where there are many digits.
            column = f"CAST({column} AS VARCHAR)"
        return f"CAST({column} AS DOUBLE)"

    def text_number(self, text: str) -> str:
        """A text as a double, null if it is not a number with the decimal sign of the files."""
        if self.decimal == ".":
            return as_number(text)
        point = f"replace(CASE WHEN contains({text}, '.') THEN NULL ELSE {text} END, ',', '.')"
        return as_number(point)

    def check_scalar(self, role: str, wanted: str) -> None:
        """Raise if the values of groups or labels are not texts, numbers or booleans."""
        self.column(role, wanted)
        kind = self.types[wanted]
        plain = kind in ("BOOLEAN", "VARCHAR", "JSON", '"NULL"') or kind.startswith("ENUM(")
        if plain or (is_number(kind) and not (role == "group" and is_decimal(kind))):
            return
        rule, step = "values must be text, numbers or booleans", "convert the column to text first"
        raise DataError(Problem(role, rule, f"column {wanted!r} of type {kind}", step))

    def check_number(self, role: str, wanted: str) -> None:
        """Raise if a column has values that are not numbers, with their count and an example.

        Nulls are counted with the rows.
        """
        text, kind = f"{quoted(wanted)}::VARCHAR", self.types[wanted]
        if is_number(kind) or kind == "BOOLEAN":
            return
        title = f"{role} (column {wanted!r})"
        if kind != "VARCHAR":
            query = f"SELECT count(*), min({text}) FROM {self.reader} WHERE {text} IS NOT NULL"
            ((count, least),) = self.run(query).fetchall()
            if count:
                got = f"{count:,} values of type {kind}, for example {least!r}"
                step = "convert them to numbers"
                raise DataError(Problem(title, "must hold numbers", got, step))
            return
        numbers = self.text_numbers(wanted)
        if numbers.odd:
            raise DataError(numbers.problem(title, self.reading.decimal))

    def text_numbers(self, wanted: str) -> TextNumbers:
        """Counts of the ways in which the texts of a column might be read as numbers."""
        text = f"trim({quoted(wanted)}::VARCHAR)"
        comma = f"regexp_full_match({text}, {literal(COMMA)})"
        point = f"({as_number(text)} IS NOT NULL)"
        separated = f"regexp_full_match({text}, {literal(THOUSANDS)}) AND NOT {point}"
        tests = {
            "odd": f"{self.text_number(text)} IS NULL",
            "commas": f"{comma} AND NOT {point}",
            "points": f"{point} AND NOT {comma}",
            "thousands": f"{separated} AND NOT {comma}",
            "unclear": f"{separated} AND {comma}",
            "whole": f"{point} AND {comma}",
        }
        # Not count_if, which is null where there are no rows.
        counts = ", ".join(f"count(*) FILTER ({test})" for test in tests.values())
        least = ", ".join(f"min({text}) FILTER ({test})" for test in tests.values())
        query = f"SELECT count(*), {counts}, {least} FROM {self.reader} WHERE {text} IS NOT NULL"
        ((total, *numbers),) = self.run(query).fetchall()
        examples = dict(zip(tests, numbers[len(tests) :], strict=True))
        return TextNumbers(
            **dict(zip(tests, numbers, strict=False)),
            total=total,
            examples={kind: text for kind, text in examples.items() if text is not None},
        )

    def find_decimal(self, *wanted: str) -> None:
        """Set the decimal sign of some columns: a comma if every number fits."""
        texts = [name for name in wanted if self.types.get(name) == "VARCHAR"]
        if self.reading.decimal is not None or not texts:
            return
        # One number with a point settles it, and most files have one in the first rows.
        if any(text_numbers(self.first_rows.get(name, ()), ".").points for name in texts):
            return
        commas = ", ".join(f"bool_or(contains({quoted(name)}, ','))" for name in texts)
        if not any(self.run(f"SELECT {commas} FROM {self.reader}").fetchall()[0]):
            return
        numbers = [self.text_numbers(name) for name in texts]
        fits = [column.fits_comma for column in numbers]
        either = [not column.odd and not column.points for column in numbers]
        if any(fits) and all(a or b for a, b in zip(fits, either, strict=True)):
            self.decimal = ","


_ONE = "must name one column, and upper and lower case are the same in files"


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))


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
    missing: Missing = REFUSE,
    progress: Progress | None = None,
    name: str | None = None,
    part: Part | None = None,
    scale: Scale = PROBABILITY,
    reading: FileReading | None = None,
    guess: Guess | None = None,
    handed_over: bool = False,
) -> Tally:
    """Count the cells of files in one query; see :func:`isocost.tally`.

    ``name`` gives the ending of a file whose path has none; ``part`` counts some rows only;
    ``guess`` completes the columns and the positive label, once the columns of the files are known.
    """
    from isocost.engines.lazy import count_cells

    with Source(path, name, columns["group"], reading) as source:
        source.check_divided()
        if guess is not None:
            columns, positive = guess(source, columns, positive)
        source.check_names(columns)
        rows = _FileRows(source, columns, positive, progress, part)
        options: dict[str, Any] = {"positive": positive, "missing": missing}
        options["handed_over"] = handed_over
        counted = scored(count_cells(rows, columns, grid=grid, scale=scale, **options))
        return replace(counted, reading=replace(counted.reading, **source.read_as))


def warn_of_guess(reading: Reading, groups: Iterable[Group], stacklevel: int) -> None:
    """Warn if text was read in an encoding that was guessed, and names of groups may be wrong."""
    if doubt := guess_note(reading, groups):
        warnings.warn(str(doubt), ReadingWarning, stacklevel=stacklevel + 1)


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
        check_known(source.types, columns)
        source.find_decimal(*(columns[role] for role in ("score", "weight") if columns[role]))
        groups, named = columns["group"], columns["label"]
        roles = ("label", "group", "person", "id")
        for role, name in named_in({role: columns.get(role) for role in roles}):
            source.check_scalar(role, name)
        label = quoted(named)
        picked = {f"g{i}": quoted(name) for i, name in enumerate(groups)}
        picked["y"] = _label(source, label, source.types[named], positive)
        picked["l"] = label
        if positive is not None and source.is_text:
            # 0 and 0.0 are the same number, however a CSV writes it.
            picked["l"] = f"coalesce(CAST({source.text_number(label)} AS VARCHAR), {label})"
        elif positive is not None:
            picked["l"] = f"CAST({label} AS VARCHAR)"
        for role, key in (("score", "h"), ("weight", "w")):
            if (name := columns[role]) is not None:
                picked[key] = source.number(role, name)
                picked[f"shown_{key}"] = picked[key] if source.is_text else quoted(name)
        if (person := columns["person"]) is not None:
            # The result of a condition has no statistics, which would hide NaN.
            picked["person"] = f"CASE WHEN {quoted(person)} IS NOT NULL THEN {quoted(person)} END"
        if (id := columns.get("id")) is not None:
            picked["id"] = quoted(id)
        rows = source.relation if part is None else part.of(source.relation)
        listed = ", ".join(f"{text} AS {key}" for key, text in picked.items())
        self.relation = source.attempt(lambda: rows.project(listed))

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
            # Decimal commas are wrong only because another column does not have them.
            for name in sorted(named, key=lambda name: self.source.text_numbers(name).fits_comma):
                self.source.check_number(named[name], name)
            raise

    def once(self, frame: Any) -> Any:
        """The frame as a table, which DuckDB moves to disk where memory is short."""
        import narwhals as nw

        self.source.attempt(lambda: nw.to_native(frame).create("isocost_once"))
        return nw.from_native(self.source.connection.table("isocost_once"))

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
    score, group, id, output_column, changed, handed_over, unknown, missing_group, scale
        As in :meth:`isocost.Rule.apply`, where ``output_column`` is called ``output``.
    force : bool
        Whether an existing output may be replaced.
    memory_limit, threads
        As for :func:`isocost.tally`.
    keep_order : bool
        Whether the rows keep their order.  Otherwise writing takes less memory.
    progress : callable, optional
        Called from time to time with the share done, and the number of rows where it is known.
    decimal, encoding, sheet
        As for :func:`isocost.tally`.  A CSV with decimal commas is written with them, and with
        semicolons; text is always written in UTF-8.

    Returns
    -------
    int
        The number of rows written.
    """
    from isocost.engines.sql import Case, repaired_group

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
    id = id if rule.needs_coin else None
    reading = FileReading(decimal, encoding, sheet, memory_limit, threads, keep_order)
    used_scale = scale_of(rule, scale)
    with Source(path, groups=groups, reading=reading) as source:
        source.run(DOUBT)
        source.check_divided()
        role = "output_column"
        asked = score, output_column, used_scale, changed, handed_over
        target = written_column(source.types, *asked, role=role)
        source.check_names({"score": score, "group": groups, "id": id, role: target})
        written_to = Path(output)
        _check_output(source, written_to, force)
        share = 0.4 if source.is_text else 0.1
        checking = _step_of(progress, 0.0, share)
        columns = {"score": score, "group": groups, "id": id}
        found, literals, count = _checked_rows(
            source, rule, columns, missing_group, used_scale, checking
        )
        warn_of_guess(Reading(**source.read_as), found, stacklevel=2)
        others = [group for group in found if group not in rule.groups]
        if others and unknown == "error":
            raise unknown_groups(others, rule.groups)
        h = used_scale.sql(source.number("score", score), literal)
        coin = "" if id is None else DUCKDB.coin(rule.salt, quoted(id))
        whens = []
        for one in (one for one in rule.groups if one in found and rule.segments(one)):
            condition = _is_group(source, literals, one, missing_group)
            whens.append((condition, repaired_group(rule, one, h, coin, DUCKDB)))
        new = str(Case(tuple(whens), h)) if whens else h
        form = FORMATS[kind_of(str(output))]
        # With a decimal comma into a CSV if the numbers came from there.
        with_comma = source.decimal == "," and form.is_text
        listed = {name: quoted(name) for name in source.types}
        listed |= _casts(source, kind_of(str(output)), literals)
        listed[target] = f"replace(CAST({new} AS VARCHAR), '.', ',')" if with_comma else new
        if changed is not None:
            listed[changed] = f"{new} IS DISTINCT FROM {h}"
        if handed_over is not None:
            listed[handed_over] = f"{new} IS NULL"
        selected = ", ".join(f"{text} AS {quoted(name)}" for name, text in listed.items())
        query = f"SELECT {selected} FROM {source.reader}"
        _copy(source, query, written_to, force, _step_of(progress, share, 1.0, count))
        return count


def _checked_rows(
    source: Source,
    rule: Rule,
    columns: Mapping[str, Any],
    missing_group: Group | None,
    scale: Scale,
    progress: Progress | None,
) -> tuple[list[Group], dict[str, dict[Scalar, list[str]]], int]:
    """Check the rows in one query.

    Returns their groups, the literals of each group column by what they stand for, and the number
    of rows.
    """
    score, groups, id = columns["score"], columns["group"], columns["id"]
    missing_id, fraction_id, text_id = "0", "0", "FALSE"
    if id is not None:
        column, kind = source.column("id", id), source.types[id]
        if kind != "VARCHAR" and kind not in WHOLE_TYPES:
            raise _no_id(id, f"values of type {kind}")
        missing_id = f"count(*) FILTER ({column} IS NULL)"
        if source.is_text:
            odd = f"NOT regexp_full_match({column}, {literal(WHOLE)})"
            fraction_id = f"count(*) FILTER ({odd})"
            text_id = f"coalesce(bool_or({odd} AND {as_number(column)} IS NULL), FALSE)"
    for name in groups:
        source.check_scalar("group", name)
    source.find_decimal(score)
    h = source.number("score", score)
    low, high = literal(scale.low), literal(scale.high)
    wrong = f"{h} < {low} OR ({h} > {high} AND NOT isnan({h}))"
    wrong += f" OR ({h} <> floor({h}) AND NOT isnan({h}))" if scale.is_rank else ""
    # Not count_if, which is null where all scores of a group are.
    query = (
        f"SELECT {', '.join(f'{quoted(name)} AS g{i}' for i, name in enumerate(groups))}, "
        f"count(*) AS n, count(*) FILTER ({h} IS NULL OR isnan({h})) AS missing_score, "
        f"count(*) FILTER ({wrong}) AS wrong_score, {missing_id} AS missing_id, "
        f"{fraction_id} AS fraction_id, {text_id} AS text_id "
        f"FROM {source.reader} GROUP BY ALL ORDER BY ALL"
    )
    try:
        cells = source.columns_of(lambda: source.connection.execute(query), progress)
    except DataError:
        source.check_number("score", score)
        raise
    problems = Problems({"score": score, "group": ", ".join(groups), "id": id or ""}, scale=scale)
    problems.rows = int(cells["n"].sum()) if len(cells["n"]) else 0
    if problems.rows == 0:
        raise no_rows(source.path)
    raw, literals = [], {}
    for i, name in enumerate(groups):
        values, listed = cells[f"g{i}"], cells[f"g{i}"].tolist()
        if source.is_text:
            # A CSV has no types: its groups are read as those of the rule are.
            known = map(parts_of, rule.groups)
            meaning = read_as(listed, {type(p[i]) for p in known if len(p) == len(groups)})
        elif source.types[name] == "JSON":
            meaning = json_values(listed)
        else:
            meaning = {value: value for value in listed if not is_null(value)}
        if source.is_text or source.types[name] == "JSON":
            values = as_objects([meaning.get(text) for text in listed])
        raw.append(values)
        literals[name] = dict[Scalar, list[str]]()
        for value, meant in meaning.items():
            literals[name].setdefault(meant, []).append(literal(value))
    encoder = GroupEncoder(raw, missing_group)
    encoder.encode_cells(raw, cells["n"], problems)
    problems.add("score", "null or NaN", int(cells["missing_score"].sum()))
    problems.add("score", "outside [0, 1]", int(cells["wrong_score"].sum()))
    problems.add("id", "null", int(cells["missing_id"].sum()))
    problems.check()
    fractions = int(cells["fraction_id"].sum())
    if id is not None and fractions and not cells["text_id"].any():
        raise _no_id(id, f"{fractions:,} numbers that are not whole")
    return encoder.groups, literals, problems.rows


def _no_id(id: str, got: str) -> DataError:
    step = "use another column, or write the ids without decimals"
    return DataError(problem_of("id", id, got, step))


def _is_group(
    source: Source,
    literals: Mapping[str, Mapping[Scalar, Sequence[str]]],
    group: Group,
    missing: Group | None,
) -> str:
    """The condition that a row is in a group; nulls and NaN are in the group ``missing``."""
    tests = []
    for (name, values), part in zip(literals.items(), parts_of(group), strict=True):
        column, same = quoted(name), values.get(part)
        test = f"{column} IN ({', '.join(same)})" if same else "FALSE"
        if part == missing:
            nan = f" OR isnan({column})" if source.types[name] in ("DOUBLE", "FLOAT") else ""
            test = f"({test} OR {column} IS NULL{nan})"
        tests.append(test)
    return " AND ".join(tests)


def _check_output(source: Source, output: Path, force: bool) -> None:
    check_encoding(str(output))
    if not FORMATS[kind_of(str(output))].writer:
        step = "write .csv, which Excel opens, or .parquet"
        raise FileError(
            Problem("output", "must be of a kind that is written", repr(str(output)), step)
        )
    inputs = [Path(name).resolve() for name in source.inputs]
    if output.resolve() in inputs:
        step = "choose another path for the output"
        raise FileError(Problem("output", "must not be the input", str(output), step))
    check_target(output, force)
    if not output.resolve().parent.is_dir():
        step = "make the folder first"
        raise FileError(Problem("output", "must be in a folder that exists", str(output), step))


def _step_of(
    progress: Progress | None, start: float, stop: float, rows: int | None = None
) -> Progress | None:
    """Report the progress of one step as a part of the whole."""
    if progress is None:
        return None
    return lambda share, known: progress(start + share * (stop - start), rows or known)


def _casts(
    source: Source, kind: str, groups: Mapping[str, Mapping[Scalar, Sequence[str]]]
) -> dict[str, str]:
    """SQL of the columns whose types in the output differ from those they are read as."""
    types: dict[str, str] = {}
    if source.is_text and not FORMATS[kind].is_text:
        all_types = source.types_of_all()
        types = {n: found for n, found in all_types.items() if found in ("BIGINT", "DOUBLE")}
    elif kind == ".parquet":
        # Parquet has no whole numbers of 128 bits: DuckDB would write doubles.
        wide = [name for name, found in source.found_types.items() if found == "HUGEINT"]
        types = dict.fromkeys(wide, "DECIMAL(38,0)")
        for name, literals in groups.items():
            is_float = all(type(value) is float for value in literals)
            if source.found_types[name] == "DOUBLE" and is_float:
                types[name] = "DOUBLE"
    casts = {}
    for name, new_type in types.items():
        is_text = source.is_text and new_type == "DOUBLE"
        value = source.text_number(quoted(name)) if is_text else quoted(name)
        casts[name] = f"CAST({value} AS {new_type})"
    return casts


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
