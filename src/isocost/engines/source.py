"""Files as DuckDB reads them: SQL, columns and rows."""

from __future__ import annotations

import base64
import glob
import gzip
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy.typing as npt

from isocost.engines.connection import FileReading
from isocost.engines.dialects import DUCKDB
from isocost.engines.parsing import COMMA, THOUSANDS, TextNumbers
from isocost.engines.paths import (
    FORMATS,
    compression_of,
    converted,
    damage_of,
    encoding_of,
    find_files,
    is_utf8,
    nothing_at,
)
from isocost.engines.values import no_rows, title_of, unmasked
from isocost.errors import (
    DataError,
    FileError,
    IsocostError,
    Problem,
    UsageError,
    missing_column,
    setting,
)
from isocost.groups import Scalar
from isocost.typing import is_masked

DOUBT = "SET disabled_optimizers = 'statistics_propagation'"
"""The statistics of Parquet files ignore NaN, and DuckDB trusts them: NaN would lie in [0, 1].
Without them queries are slower, so they are switched off only where NaN would not show."""


_SIZES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
WHOLE_TYPES = (*_SIZES, *(f"U{size}" for size in _SIZES))
"""The types of whole numbers."""


def is_decimal(kind: str) -> bool:
    """Whether a type is DECIMAL; a list of decimals is not."""
    return kind.startswith("DECIMAL(") and kind.endswith(")")


def is_number(kind: str) -> bool:
    """Whether a type holds numbers.

    Examples
    --------
    >>> [is_number(kind) for kind in ("BIGINT", "DECIMAL(3,1)", "INTERVAL", "INTEGER[]")]
    [True, True, False, False]
    """
    return kind in WHOLE_TYPES or kind in ("DOUBLE", "FLOAT") or is_decimal(kind)


def as_number(text: str) -> str:
    """A text as a double, null if it is not a number; DuckDB alone would read 0_1 as 1."""
    return f"try_cast(CASE WHEN contains({text}, '_') THEN NULL ELSE {text} END AS DOUBLE)"


class _ReadAgainError(Exception):
    """Files must be read in another way, which their content has shown."""

    def __init__(self, **ways: Any) -> None:
        super().__init__(ways)
        self.ways = ways


def read_files(
    work: Callable[[FileReading], _Result], reading: FileReading | None = None
) -> _Result:
    """Do some work with files, and repeat it once their encoding or decimal sign is detected."""
    reading = reading or FileReading()
    while True:
        try:
            return work(reading)
        except _ReadAgainError as again:
            reading = replace(reading, **again.ways)


def quoted(column: str) -> str:
    """A column name in double quotes; quotes inside it are doubled."""
    return '"' + column.replace('"', '""') + '"'


def literal(value: Scalar) -> str:
    """A value as SQL; floats with an exponent, so that they are doubles and not decimals.

    Examples
    --------
    >>> literal("it's"), literal(0.1), literal(3), literal(True)
    ("'it''s'", '0.1e0', '3', 'TRUE')
    """
    if isinstance(value, str):
        # Also a path, which must be one literal whatever it contains.
        return "'" + value.replace("'", "''") + "'"
    return DUCKDB.literal(value)


Array = npt.NDArray[Any]

_Result = TypeVar("_Result")

Progress = Callable[[float, int | None], None]
"""Called from time to time with the share of the work that is done, from 0 to 1, and the total
number of rows where it is known."""

MOST_COLUMNS = 20_000
"""The most columns of a file: the time that DuckDB takes grows with the square."""

_PAUSE = 0.1
"""Seconds between two reports of progress."""

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
        for file in self.file_set.files:
            if damage := damage_of(file, self.file_set.compression):
                raise self._unreadable(f"{file}: {damage}")
        self.is_text = self.format.is_text
        self.decimal = self.reading.decimal or "."
        # The copies are deleted with this object.
        self.copies = converted(self.file_set, self.reading.encoding, self.reading.sheet)
        self.file_set = self.copies.file_set
        self.connection = self.reading.connect()
        self._hive = ", hive_partitioning = " + ("true" if self.file_set.partitions else "false")
        self._lines = ""
        self._open_text() if self.is_text else self._open(self._reader(self.format.look))
        self.types = {
            str(name): str(kind)
            for name, kind in zip(self.relation.columns, self.relation.types, strict=True)
        }
        self.found_types = dict(self.types)
        self._keep_dates(groups)
        if self.kind == ".parquet" and "BIGINT" in self.types.values():
            self._find_durations()

    @property
    def read_as(self) -> dict[str, Any]:
        """How the files were read, where that is not the usual way."""
        ways = {"encoding": self.copies.encoding, "sheet": self.copies.sheet}
        ways |= {"decimal": "," if self.decimal == "," else None, "guessed": self.reading.guessed}
        return {name: way for name, way in ways.items() if way is not None}

    def close(self) -> None:
        """Close the connection and delete temporary copies."""
        self.connection.close()
        if self.copies.folder is not None:
            self.copies.folder.cleanup()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check_divided(self) -> None:
        """Raise if a CSV has one column, because its lines could not be split consistently."""
        if self.is_text and len(self.types) == 1:
            rule = "must have a header, and as many values in every line as it has names"
            got = f"one column in {self.path}: {next(iter(self.types))!r}"
            step = "remove lines above the header, and correct lines with more or fewer values"
            raise FileError(Problem("file", rule, got, step))

    def _open_text(self) -> None:
        """Open delimited text; as Excel writes it, a name may contain another end of line."""
        for file in self.file_set.files:
            line = _first_line(file, self.file_set.compression)
            self._check_width(1 + max(line.count(mark) for mark in (b",", b";", b"\t", b"|")))
        try:
            self._open(self._reader(""))
        except FileError:
            self._lines = r", new_line = '\r\n'"
            with suppress(FileError, DataError):
                self._open(self._reader(""))
                return
            raise

    def _open(self, reader: str) -> None:
        """Open the files with this reader; only headers and metadata are read."""
        self.reader = reader
        self.relation = self.attempt(lambda: self.connection.sql(f"SELECT * FROM {reader}"))
        self._check_width(len(self.relation.columns))

    def _check_width(self, columns: int) -> None:
        """Raise for more columns than DuckDB reads in a reasonable time."""
        if columns > MOST_COLUMNS:
            rule, got = f"must have at most {MOST_COLUMNS:,} columns", f"{columns:,} in {self.path}"
            step = "keep the columns of score, label, group, weight and id"
            raise DataError(Problem("file", rule, got, step))

    def _reader(self, options: str) -> str:
        if self.file_set.is_many and self.kind != ".jsonl":
            # Otherwise the first file determines the columns and their types.
            options += ", union_by_name = true"
        options += self._lines + self._compressed + self._hive
        return self.format.reader.format(files=self._files, options=options)

    @property
    def _files(self) -> str:
        """The files as a list in SQL."""
        return f"[{', '.join(map(literal, self.file_set.patterns))}]"

    @property
    def _compressed(self) -> str:
        """The option for a file whose path does not show its compression."""
        compression = self.file_set.compression
        return (
            f", compression = '{compression}'"
            if compression and self.format.is_compressible
            else ""
        )

    def _keep_dates(self, groups: Sequence[str]) -> None:
        """Read as text what DuckDB would turn into dates; nested values of JSON stay JSON."""
        keys = self._partitions()
        texts = [key for key in keys if self.is_text or self.types[key] not in _PLAIN]
        if texts:
            self._hive += f", hive_types = {_struct(dict.fromkeys(texts, 'VARCHAR'))}"
            self.types.update(dict.fromkeys(texts, "VARCHAR"))
        options = ""
        if self.kind == ".jsonl":
            mine = {name: kind for name, kind in self.types.items() if name not in keys}
            self.types.update({n: _json_type(kind, n in groups) for n, kind in mine.items()})
            options = f", columns = {_struct({name: self.types[name] for name in mine})}"
        if texts or options:
            self._open(self._reader(options))

    def _find_durations(self) -> None:
        """Note which whole numbers of Parquet are time spans, as only Arrow's schema tells."""
        query = f"SELECT DISTINCT value FROM parquet_kv_metadata({self._files}) WHERE key = ?"
        found = self.attempt(lambda: self.connection.execute(query, [_ARROW]).fetchall())
        spans = {name for (schema,) in found for name in durations_of(schema)}
        self.types.update({name: "DURATION" for name in spans if self.types.get(name) == "BIGINT"})

    def _partitions(self) -> list[str]:
        """The columns that come from folders; DuckDB ignores case."""
        keys = {key.lower() for key in self.file_set.partitions}
        return [name for name in self.types if name.lower() in keys]

    def types_of_all(self) -> dict[str, str]:
        """The types of the columns of a CSV, from all rows; dates stay texts."""
        candidates = "auto_type_candidates = ['BOOLEAN', 'BIGINT', 'DOUBLE', 'VARCHAR']"
        look = f"{candidates}, sample_size = -1, decimal_separator = {literal(self.decimal)}"
        reader = self.reader.replace("all_varchar = true", look)
        rows = self.run(f"DESCRIBE SELECT * FROM {reader}").fetchall()
        types = {str(row[0]): str(row[1]) for row in rows}
        numbers = [name for name, kind in types.items() if kind in ("BIGINT", "DOUBLE")]
        if numbers:
            tests = ", ".join(f"bool_or({_is_name(quoted(name))})" for name in numbers)
            (flags,) = self.run(f"SELECT {tests} FROM {self.reader}").fetchall()
            types.update(
                {n: "VARCHAR" for n, is_name in zip(numbers, flags, strict=True) if is_name}
            )
        return types

    def check_names(self, used: Mapping[str, str | Sequence[str] | None]) -> None:
        """Raise if a name stands for more than one column of a file, folders included.

        DuckDB itself takes the first, or the folder, and ignores case.
        """
        named = [
            (r, n) for r, ns in used.items() for n in ([ns] if isinstance(ns, str) else ns or ())
        ]
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
        """The names of the columns in the files, without those of folders."""
        if self.kind == ".parquet":
            return self._parquet_names()
        if self.is_text:
            return self._headers()
        if self._renamed({"": list(self.types)}):
            return self._keys()
        if used & {key.lower() for key in self.file_set.partitions}:
            options = f"{self.format.look}, hive_partitioning = false"
            reader = self.format.reader.format(files=self._files, options=options)
            rows = self.run(f"DESCRIBE SELECT * FROM {reader}").fetchall()
            return {self.path: [str(row[0]) for row in rows]}
        return {}

    def _keys(self) -> dict[str, list[str]]:
        """All keys of JSON; DuckDB would lose one of two that differ only in case."""
        objects = f"read_json_objects({self._files}, format = 'newline_delimited')"
        rows = self.run(f"SELECT DISTINCT unnest(json_keys(json)) FROM {objects}").fetchall()
        keys = sorted(str(row[0]) for row in rows)
        lower = [key.lower() for key in keys]
        twins = [key for key in keys if lower.count(key.lower()) > 1]
        if twins:
            rule = "keys must differ in more than upper and lower case"
            got = f"{_quoted(twins)} in {self.path}"
            raise DataError(Problem("file", rule, got, "rename or drop all but one of them"))
        return {self.path: keys}

    def _headers(self) -> dict[str, list[str]]:
        """The header of each CSV; files with the same first line are read once."""
        compression = self.file_set.compression
        files: dict[bytes | str, str] = {}
        for file in self.file_set.files:
            line = _first_line(file, compression)
            # It may not be the whole header.
            is_whole = line.endswith(b"\n") and line.count(b'"') % 2 == 0
            files[line if is_whole else file] = file
        reader = self.format.reader.replace("header = true", "header = false")
        headers = {}
        for file in files.values():
            options = self._lines + self._compressed
            one = reader.format(files=f"[{literal(glob.escape(file))}]", options=options)
            try:
                rows = self.run(f"SELECT * FROM {one} LIMIT 1").fetchall()
            except IsocostError:
                continue
            shown = self.copies.names.get(file, file)
            headers[shown] = [str(name).strip() for row in rows for name in row if name is not None]
        return headers

    def _parquet_names(self) -> dict[str, list[str]]:
        """The top-level columns of each Parquet file, without the fields of structures."""
        columns = "file_name, name, coalesce(num_children, 0)"
        rows = self.run(f"SELECT {columns} FROM parquet_schema({self._files})").fetchall()
        names: dict[str, list[str]] = {}
        inside = 0
        for file, column, children in rows:
            if file not in names:
                # The first row of a file is the root.
                names[file] = []
                continue
            if inside == 0:
                names[file].append(str(column))
            inside += children - (inside > 0)
        return names

    def count_rows(self) -> int | None:
        """The number of rows, if the files contain it, as Parquet does."""
        if self.kind != ".parquet":
            return None
        query = f"SELECT sum(num_rows) FROM parquet_file_metadata({self._files})"
        return int(self.run(query).fetchall()[0][0])

    def run(self, query: str, progress: Progress | None = None) -> Any:
        """Run a query; a failure becomes an error that names the file."""
        return self.attempt(lambda: self.connection.execute(query), progress)

    def attempt(self, work: Callable[[], Any], progress: Progress | None = None) -> Any:
        """Do some work with the connection; a failure becomes an error that names the file."""
        import duckdb

        try:
            return work() if progress is None else self._watched(work, progress)
        except duckdb.OutOfMemoryException as error:
            if self.reading.relax(self.connection):
                return self.attempt(work, progress)
            raise self._explained(error) from error
        except duckdb.Error as error:
            if "interrupted" in str(error).lower():
                raise KeyboardInterrupt from error
            raise self._explained(error) from error
        except RuntimeError as error:
            # DuckDB catches Ctrl-C itself and raises an error of its own.
            if "interrupted" in str(error).lower():
                raise KeyboardInterrupt from error
            raise

    def _watched(self, work: Callable[[], Any], progress: Progress) -> Any:
        rows = self.count_rows()
        self.connection.execute("SET enable_progress_bar = true")
        self.connection.execute("SET enable_progress_bar_print = false")
        percentage = self.connection.query_progress
        with ThreadPoolExecutor(max_workers=1) as pool:
            job = pool.submit(work)
            try:
                while True:
                    try:
                        return job.result(timeout=_PAUSE)
                    except StillRunning:
                        progress(min(max(percentage() / 100.0, 0.0), 1.0), rows)
            except BaseException:
                self.connection.interrupt()
                raise

    def _explained(self, error: Exception) -> FileError | DataError | UsageError:
        message = str(error)
        if re.search("not utf-8|invalid unicode|invalid utf-?8|unicode", message, re.IGNORECASE):
            self._find_encoding()
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
        return self._unreadable(f"{self.path}: {first}")

    def _find_encoding(self) -> None:
        """Raise, so that the files are read again in their encoding, if it can be detected."""
        asked = self.reading.encoding
        if asked is not None or not self.file_set.files:
            if asked is not None and is_utf8(asked):
                rule = "must be text in UTF-8"
                step = f"leave out {setting('encoding')} to have it found"
                raise FileError(Problem("file", rule, f"{self.path}, which is not", step))
            return
        raise _ReadAgainError(encoding=encoding_of(self.file_set), guessed="encoding")

    def _unreadable(self, got: str) -> FileError:
        rule = f"must be readable as {self.format.name}"
        step = "check that the file has the right ending and is complete"
        return FileError(Problem("file", rule, got, step))

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
        """How the texts of a column might be read as numbers."""
        text = f"trim({quoted(wanted)}::VARCHAR)"
        comma, point = _like(text, COMMA), f"({as_number(text)} IS NOT NULL)"
        separated = f"{_like(text, THOUSANDS)} AND NOT {point}"
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
        """Raise, so that the files are read again with a decimal comma, if every number fits."""
        if self.reading.decimal is not None:
            return
        texts = [name for name in wanted if self.types.get(name) == "VARCHAR"]
        numbers = [self.text_numbers(name) for name in texts]
        fits = [column.fits_comma for column in numbers]
        either = [not column.odd and not column.points for column in numbers]
        if any(fits) and all(a or b for a, b in zip(fits, either, strict=True)):
            raise _ReadAgainError(decimal=",")


_ARROW, _DURATION = b"ARROW:schema", 18
"""Where Parquet files keep Arrow's schema, and Arrow's number for the type of time spans."""


def durations_of(schema: bytes) -> list[str]:
    """Columns that are time spans in a schema of Arrow; none if the schema cannot be read.

    The schema is a flatbuffer (arrow/format/Schema.fbs), in base64.  A table starts with the way
    back to the places of its slots; a slot holds a value, or the way to one.
    """

    def number(form: str, at: int) -> int:
        return int(struct.unpack_from(f"<{form}", data, at)[0])

    def slot(table: int, index: int) -> int:
        places = table - number("i", table)
        step = number("H", places + 4 + 2 * index) if 4 + 2 * index < number("H", places) else 0
        if not step:
            raise IndexError(f"no slot {index}")
        return table + step

    def there(at: int) -> int:
        return at + number("I", at)

    try:
        data = base64.b64decode(schema)
        data = data[8 if data.startswith(b"\xff" * 4) else 4 :]
        columns = there(slot(there(slot(there(0), 2)), 1))
        names = []
        for index in range(number("I", columns)):
            column = there(columns + 4 + 4 * index)
            if data[slot(column, 2)] == _DURATION:
                name = there(slot(column, 0))
                names.append(data[name + 4 : name + 4 + number("I", name)].decode())
    except (ValueError, IndexError, struct.error):
        return []
    return names


def _struct(values: dict[str, str]) -> str:
    listed = ", ".join(f"{literal(name)}: {literal(value)}" for name, value in values.items())
    return f"{{{listed}}}"


def _json_type(kind: str, is_group: bool) -> str:
    """The type to read a column of JSON as: numbers and booleans as such, others as written."""
    nested = kind == "JSON" or kind.endswith("]") or kind.startswith(("STRUCT", "MAP"))
    if nested or (is_group and kind in ("DOUBLE", "HUGEINT")):
        return "JSON"
    return kind if kind in _PLAIN else "VARCHAR"


_ONE = "must name one column, and upper and lower case are the same in files"


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))


def _first_line(file: str, compression: str | None) -> bytes:
    """The first line of a file, at most a MiB; nothing if Zstandard compresses it."""
    compression = compression or compression_of(file)
    if compression == "zstd":
        return b""
    with gzip.open(file) if compression == "gzip" else Path(file).open("rb") as lines:
        return bytes(lines.readline(2**20))


def _like(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, {literal(pattern)})"


def _is_name(text: str) -> str:
    """The condition that digits are a name: a double would round them, or DuckDB ignore a part."""
    whole = f"try_cast({text} AS HUGEINT)"
    rounded = f"({whole} IS NULL OR abs({whole}) > {2**53})"
    too_long = f"(regexp_full_match({text}, '[-+]?[0-9]{{16,}}') AND {rounded})"
    return f"contains({text}, '_') OR {too_long}"
