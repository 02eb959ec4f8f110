"""Files as DuckDB reads them: limits, columns, rows."""

from __future__ import annotations

import glob
import gzip
import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.engines import sql
from isocost.engines.groups import GroupEncoder
from isocost.engines.paths import compression_of, damage_of, find, nothing_at
from isocost.engines.problems import Problems, title_of
from isocost.errors import DataError, FileError, IsocostError, Problem, UsageError, missing_column
from isocost.groups import is_null

__all__ = ["DOUBT", "TRUST", "Progress", "Settings", "Source", "encode_cells", "no_rows"]

DOUBT = "SET disabled_optimizers = 'statistics_propagation'"
"""Parquet says nothing of NaN in its least and greatest values, and DuckDB would believe
that there is none: NaN would lie in [0, 1]."""

TRUST = "SET disabled_optimizers = ''"
"""Quicker, for queries in whose result NaN would show."""

_LEAST, _EACH = 1024, 256
"""The usual limit in MiB: at least so much, and so much for each thread."""

_SIZE = re.compile(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([KMGT]i?B)\s*", re.IGNORECASE | re.ASCII)

_SMALLEST, _LARGEST = 1e6, 1e15
"""Limits in bytes that DuckDB can start with."""


@dataclass(frozen=True)
class Settings:
    """Limits for the work on files.

    Parameters
    ----------
    memory_limit : str, optional
        How much memory DuckDB may use, such as "512MB"; beyond it, it goes to disk.  By default
        1 GiB, or 256 MiB a thread if that is more, and what the machine has where that is not
        enough.
    threads : int, optional
        How many threads; by default one a core.
    keep_order : bool
        Whether rows that are written keep their order.

    Examples
    --------
    >>> Settings(memory_limit="512MB").memory_limit
    '512MB'
    """

    memory_limit: str | None = None
    threads: int | None = None
    keep_order: bool = True

    def __post_init__(self) -> None:
        limit, threads = self.memory_limit, self.threads
        if limit is not None and not _is_limit(limit):
            rule = "must be a number with a unit (KB, MB, GB or TB), from 1MB to 1000TB"
            raise UsageError(Problem("memory_limit", rule, repr(limit)[:80], 'use "512MB"'))
        whole = isinstance(threads, int) and not isinstance(threads, bool)
        if threads is not None and not (whole and 1 <= threads <= 4096):
            rule = "must be a whole number from 1 to 4096"
            raise UsageError(Problem("threads", rule, repr(threads), "leave it out for all cores"))

    def connect(self) -> Any:
        """A connection to a database in memory; what does not fit goes to the temporary folder."""
        import duckdb

        # DuckDB's own choice is .tmp where the program was started.
        spill = Path(tempfile.gettempdir()) / f"isocost-{os.getpid()}-{os.urandom(4).hex()}"
        options: dict[str, Any] = {
            "autoinstall_known_extensions": "false",
            "temp_directory": str(spill),
            "preserve_insertion_order": "true" if self.keep_order else "false",
        }
        if self.memory_limit is not None:
            options["memory_limit"] = self.memory_limit.strip()
        if self.threads is not None:
            options["threads"] = str(self.threads)
        connection = duckdb.connect(config=options)
        connection.execute(DOUBT)
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")
        if self.memory_limit is None:
            # DuckDB would take four fifths of the memory, because nobody else wants it.
            usual = f"{max(_LEAST, _EACH * int(_setting(connection, 'threads')))} MiB"
            if _size(usual) < _size(_setting(connection, "memory_limit")):
                connection.execute(f"SET memory_limit = '{usual}'")
        return connection

    def relax(self, connection: Any) -> bool:
        """Let DuckDB have what the machine has, if nobody said otherwise; false if it has."""
        if self.memory_limit is not None:
            return False
        import duckdb

        before = _size(_setting(connection, "memory_limit"))
        # Not RESET: after it DuckDB 1.3 has no limit at all.
        with duckdb.connect() as fresh:
            most = min(_size(_setting(fresh, "memory_limit")), _memory())
        if before < most:
            connection.execute(f"SET memory_limit = '{most / 2**10:.0f} KiB'")
        return before < _size(_setting(connection, "memory_limit"))


def _is_limit(limit: object) -> bool:
    found = _SIZE.fullmatch(limit) if isinstance(limit, str) else None
    if found is None:
        return False
    base = 1024.0 if "i" in found[2].lower() else 1000.0
    size = float(found[1]) * base ** " KMGT".index(found[2][0].upper())
    return _SMALLEST <= size <= _LARGEST


def _setting(connection: Any, name: str) -> str:
    return str(connection.execute(f"SELECT current_setting('{name}')").fetchone()[0])


def _size(text: str) -> float:
    """A size as DuckDB shows it, in bytes.

    Examples
    --------
    >>> _size("1.5 GiB") / 2**20
    1536.0
    """
    number, unit = text.split()
    return float(number) * 1024.0 ** max(" KMGTPE".find(unit[0]), 0)


def _memory() -> float:
    """Four fifths of the machine's memory in bytes, or infinity where it cannot be asked.

    DuckDB takes as much by itself, but before 1.4 it takes petabytes in a container without a
    limit, and cannot read that number back.
    """
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return math.inf
    return 0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


Array = npt.NDArray[Any]

Progress = Callable[[float, int | None], None]
"""Called now and then with the share of the work that is done, from 0 to 1, and with the number
of rows in all where it is known."""

# Nothing is guessed but the delimiter: DuckDB would take # for a comment, skip lines that look odd,
# and overlook quotes that come late.
_PLAINLY = "header = true, comment = '', quote = '\"', escape = '\"', skip = 0, all_varchar = true"

_READERS = {
    ".csv": f"read_csv({{files}}, {_PLAINLY}{{options}})",
    ".tsv": f"read_csv({{files}}, delim = '\t', {_PLAINLY}{{options}})",
    ".jsonl": "read_json({files}, format = 'newline_delimited'{options})",
    ".parquet": "read_parquet({files}{options})",
}

_FORMATS = {".csv": "CSV", ".tsv": "CSV", ".jsonl": "JSON lines", ".parquet": "Parquet"}

# All lines of all files are looked at: a key that comes late would be lost, a type found late an
# error.
_LOOK = {".jsonl": ", sample_size = -1, maximum_sample_files = -1"}

_PLAIN = ("BOOLEAN", "BIGINT", "UBIGINT", "HUGEINT", "DOUBLE", "VARCHAR")


class Source:
    """Files that DuckDB reads, with the names and types of their columns.

    Every column of a CSV is a text here; what it means is decided by who reads it.  So is a
    column of JSON that makes groups, unless its values are all of one exact type: as a double,
    a large whole number would be rounded.
    """

    def __init__(
        self,
        path: str | Path,
        settings: Settings | None = None,
        name: str | None = None,
        groups: Sequence[str] = (),
    ) -> None:
        self.path = str(path)
        self.place = find(path, name)
        if Path(self.path).is_file() and Path(self.path).stat().st_size == 0:
            raise no_rows(self.path)
        self.kind = self.place.kind
        for file in self.place.files:
            if damage := damage_of(file, self.place.compression):
                raise self._unreadable(f"{file}: {damage}")
        self.is_text = self.place.is_text
        self.settings = settings or Settings()
        self.connection = self.settings.connect()
        self._hive = ", hive_partitioning = " + ("true" if self.place.partitions else "false")
        self.reader = self._reader(_LOOK.get(self.kind, ""))
        described = self.run(f"DESCRIBE SELECT * FROM {self.reader}").fetchall()
        self.types: dict[str, str] = {str(row[0]): str(row[1]) for row in described}
        self.found_types = dict(self.types)
        self._keep_dates(groups)

    def check_divided(self) -> None:
        """Refuse a CSV of one column: its lines could not be divided alike."""
        if self.is_text and len(self.types) == 1:
            rule = "must have a header, and as many values in every line as it has names"
            got = f"one column in {self.path}: {next(iter(self.types))!r}"
            step = "remove lines above the header, and mend lines with more or fewer values"
            raise FileError(Problem("file", rule, got, step))

    def _reader(self, options: str) -> str:
        files = ", ".join(map(sql.literal, self.place.patterns))
        if self.place.is_many and self.kind != ".jsonl":
            # Else the first file says which columns there are, and of what types.
            options += ", union_by_name = true"
        options += self._compressed + self._hive
        return _READERS[self.kind].format(files=f"[{files}]", options=options)

    @property
    def _compressed(self) -> str:
        """The option for a file whose path does not tell how it is compressed."""
        given = self.place.compression
        return f", compression = '{given}'" if given and self.kind != ".parquet" else ""

    def _keep_dates(self, groups: Sequence[str]) -> None:
        """Read as texts what DuckDB would make dates of; nested values of JSON stay as they are."""
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
        self.reader = self._reader(options)

    def _partitions(self) -> list[str]:
        """The columns that folders make; DuckDB does not tell apart upper and lower case."""
        keys = {key.lower() for key in self.place.partitions}
        return [name for name in self.types if name.lower() in keys]

    def types_of_all(self) -> dict[str, str]:
        """The types that the texts of a CSV have, from all rows; dates stay texts."""
        candidates = "auto_type_candidates = ['BOOLEAN', 'BIGINT', 'DOUBLE', 'VARCHAR']"
        look = f"{candidates}, sample_size = -1"
        reader = self.reader.replace("all_varchar = true", look)
        rows = self.run(f"DESCRIBE SELECT * FROM {reader}").fetchall()
        types = {str(row[0]): str(row[1]) for row in rows}
        numbers = [name for name, kind in types.items() if kind in ("BIGINT", "DOUBLE")]
        if numbers:
            tests = ", ".join(f"bool_or({_is_name(sql.name(name))})" for name in numbers)
            found = self.run(f"SELECT {tests} FROM {self.reader}").fetchone()
            types.update({n: "VARCHAR" for n, kept in zip(numbers, found, strict=True) if kept})
        return types

    def check_names(self, used: Mapping[str, str | Sequence[str] | None]) -> None:
        """Refuse a used name that stands for more than one column of a file, folders included.

        DuckDB itself takes the first, or the folder, and does not tell apart upper and lower case.
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
                keys = [f"{k}=" for k in self.place.partitions if k.lower() == wanted.lower()]
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
        """The names that DuckDB made of names which occur twice: score_1 of a second score."""
        stems = {name.lower() for names in own.values() for name in names}
        ends = {name: re.fullmatch(r"(.+?)(_\d+)+", name, re.DOTALL) for name in self.types}
        return {name for name, end in ends.items() if end and end[1].lower() in stems}

    def _own_names(self, used: set[str]) -> dict[str, list[str]]:
        """The names of the columns as the files have them, without those of folders."""
        if self.kind == ".parquet":
            return self._parquet_names()
        if self.is_text:
            return self._headers()
        if self._renamed({"": list(self.types)}):
            return self._keys()
        if used & {key.lower() for key in self.place.partitions}:
            files = ", ".join(map(sql.literal, self.place.patterns))
            options = f"{_LOOK[self.kind]}, hive_partitioning = false"
            reader = _READERS[self.kind].format(files=f"[{files}]", options=options)
            rows = self.run(f"DESCRIBE SELECT * FROM {reader}").fetchall()
            return {self.path: [str(row[0]) for row in rows]}
        return {}

    def _keys(self) -> dict[str, list[str]]:
        """All keys of JSON; two that differ only in case are refused, as DuckDB loses one."""
        files = ", ".join(map(sql.literal, self.place.patterns))
        objects = f"read_json_objects([{files}], format = 'newline_delimited')"
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
        """The header of each CSV; of those that begin alike, only one is read."""
        compression = self.place.compression
        files = {_first_line(file, compression): file for file in self.place.files}
        reader = _READERS[self.kind].replace("header = true", "header = false")
        found = {}
        for file in files.values():
            one = reader.format(
                files=f"[{sql.literal(glob.escape(file))}]", options=self._compressed
            )
            try:
                row = self.run(f"SELECT * FROM {one} LIMIT 1").fetchone()
            except IsocostError:
                continue
            found[file] = [str(name).strip() for name in row or () if name is not None]
        return found

    def _parquet_names(self) -> dict[str, list[str]]:
        """The top names of each Parquet file; what is inside a structure is passed over."""
        files = ", ".join(map(sql.literal, self.place.patterns))
        columns = "file_name, name, coalesce(num_children, 0)"
        rows = self.run(f"SELECT {columns} FROM parquet_schema([{files}])").fetchall()
        found: dict[str, list[str]] = {}
        inside = 0
        for file, name, children in rows:
            if file not in found:
                # The first row of a file is the root.
                found[file] = []
                continue
            if inside == 0:
                found[file].append(str(name))
            inside += children - (inside > 0)
        return found

    def count_rows(self) -> int | None:
        """How many rows there are, where the files say so themselves: in Parquet."""
        if self.kind != ".parquet":
            return None
        files = ", ".join(map(sql.literal, self.place.patterns))
        found = self.run(f"SELECT sum(num_rows) FROM parquet_file_metadata([{files}])").fetchone()
        return int(found[0])

    def run(self, query: str, progress: Progress | None = None) -> Any:
        """Run a query; a failure becomes an error that names the file."""
        import duckdb

        try:
            if progress is None:
                return self.connection.execute(query)
            return self._run_watched(query, progress)
        except duckdb.OutOfMemoryException as error:
            if self.settings.relax(self.connection):
                return self.run(query, progress)
            raise self._explained(error) from error
        except duckdb.Error as error:
            if "interrupted" in str(error).lower():
                raise KeyboardInterrupt from error
            raise self._explained(error) from error
        except RuntimeError as error:
            # DuckDB catches Ctrl-C itself and says so in its own way.
            if "interrupted" in str(error).lower():
                raise KeyboardInterrupt from error
            raise

    def _run_watched(self, query: str, progress: Progress) -> Any:
        rows = self.count_rows()
        asked = self.connection.query_progress
        with ThreadPoolExecutor(max_workers=1) as pool:
            job = pool.submit(self.connection.execute, query)
            try:
                while True:
                    try:
                        return job.result(timeout=0.1)
                    except StillRunning:
                        progress(min(max(asked() / 100.0, 0.0), 1.0), rows)
            except BaseException:
                self.connection.interrupt()
                raise

    def _explained(self, error: Exception) -> FileError | DataError | UsageError:
        first = " ".join(line.strip() for line in str(error).splitlines()[:4] if line.strip())[:300]
        if "No files found" in first:
            return nothing_at(self.path)
        if "Out of Memory" in first:
            return UsageError(
                Problem(
                    "memory_limit",
                    "must be enough for the work",
                    first,
                    "raise it, use fewer threads, or write without keeping the order of the rows",
                )
            )
        if "onversion" in first or "CSV Error" in first or "alformed JSON" in first:
            return DataError(
                Problem(
                    "file",
                    "must hold one kind of value per column",
                    first,
                    "correct the line, or pass the data as a frame with the types you want",
                )
            )
        return self._unreadable(f"{self.path}: {first}")

    def _unreadable(self, got: str) -> FileError:
        rule = f"must be readable as {_FORMATS[self.kind]}"
        step = "check that the file is what its ending says, and that it is whole"
        return FileError(Problem("file", rule, got, step))

    def columns_of(self, query: str, progress: Progress | None = None) -> dict[str, Array]:
        """The result of a query as arrays; nulls are None."""
        found = self.run(query, progress).fetchnumpy()
        return {name: _plain(values) for name, values in found.items()}

    def column(self, role: str, wanted: str) -> str:
        """A column as SQL, or an error that lists those there are."""
        if wanted not in self.types:
            raise UsageError(missing_column(role, wanted, list(self.types)))
        return sql.name(wanted)

    def number(self, role: str, wanted: str) -> str:
        """A numeric column as SQL of type DOUBLE."""
        column = self.column(role, wanted)
        kind = self.types[wanted]
        if self.is_text or kind == "VARCHAR":
            # No plain number: in a CSV True or False, or none, which is an error that says so.
            other = f"CAST(CASE WHEN {column} IS NOT NULL THEN 'no number' END AS DOUBLE)"
            if self.is_text:
                words = "WHEN 'true' THEN 1e0 WHEN 'false' THEN 0e0"
                other = f"CASE lower({column}) {words} ELSE {other} END"
            return f"coalesce({sql.as_number(column)}, {other})"
        if kind == "BOOLEAN":
            return f"CAST(CAST({column} AS INT) AS DOUBLE)"
        if not sql.is_number(kind):
            self.check_number(role, wanted)
            return "CAST(NULL AS DOUBLE)"
        if sql.is_decimal(kind):
            # DuckDB rounds twice where there are many digits.
            column = f"CAST({column} AS VARCHAR)"
        return f"CAST({column} AS DOUBLE)"

    def check_scalar(self, role: str, wanted: str) -> None:
        """Refuse a column of groups or labels whose type holds no text, number or boolean."""
        self.column(role, wanted)
        kind = self.types[wanted]
        plain = kind in ("BOOLEAN", "VARCHAR", "JSON", '"NULL"') or kind.startswith("ENUM(")
        if plain or (sql.is_number(kind) and not (role == "group" and sql.is_decimal(kind))):
            return
        rule, step = "values must be text, numbers or booleans", "turn the column into text first"
        raise DataError(Problem(role, rule, f"column {wanted!r} of type {kind}", step))

    def check_number(self, role: str, wanted: str) -> None:
        """Refuse a column that has values which are no numbers, with their count and one of them.

        None is wrong where all are null: that is counted with the rows.
        """
        text, kind = f"{sql.name(wanted)}::VARCHAR", self.types[wanted]
        if sql.is_number(kind) or kind == "BOOLEAN":
            return
        where, are = f"{text} IS NOT NULL", f"of type {kind}"
        if kind == "VARCHAR":
            where, are = f"{where} AND {sql.as_number(text)} IS NULL", "that are none"
        if self.is_text:
            where += f" AND lower({text}) NOT IN ('true', 'false')"
        query = f"SELECT count(*), min({text}) FROM {self.reader} WHERE {where}"
        count, least = self.run(query).fetchone()
        if count:
            got = f"{count:,} values {are}, such as {least!r}"
            step = "correct or drop those rows" if kind == "VARCHAR" else "turn them into numbers"
            raise DataError(Problem(f"{role} (column {wanted!r})", "must hold numbers", got, step))


def _struct(values: dict[str, str]) -> str:
    listed = ", ".join(
        f"{sql.literal(name)}: {sql.literal(value)}" for name, value in values.items()
    )
    return f"{{{listed}}}"


def _json_type(kind: str, is_group: bool) -> str:
    """How a column of JSON is read: numbers and booleans as such, other values as written."""
    nested = kind == "JSON" or kind.endswith("]") or kind.startswith(("STRUCT", "MAP"))
    if nested or (is_group and kind in ("DOUBLE", "HUGEINT")):
        return "JSON"
    return kind if kind in _PLAIN else "VARCHAR"


_ONE = "must name one column, and upper and lower case are the same in files"


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))


def _first_line(file: str, compression: str | None) -> object:
    """The first line of a file; its name where that line alone may not be the header."""
    compression = compression or compression_of(file)
    if compression == "zstd":
        return file
    with gzip.open(file) if compression == "gzip" else Path(file).open("rb") as lines:
        line = lines.readline(2**20)
    return file if line.count(b'"') % 2 or not line.endswith(b"\n") else line


def _is_name(text: str) -> str:
    """The condition that digits are a name: a double would round them, or DuckDB skip a part."""
    whole = f"try_cast({text} AS HUGEINT)"
    rounded = f"({whole} IS NULL OR abs({whole}) > {2**53})"
    too_long = f"(regexp_full_match({text}, '[-+]?[0-9]{{16,}}') AND {rounded})"
    return f"contains({text}, '_') OR {too_long}"


def _plain(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        plain: Array = np.asarray(values.data).astype(object)
        plain[np.ma.getmaskarray(values)] = None
        return plain
    return values


def encode_cells(
    encoder: GroupEncoder, raw: Sequence[npt.NDArray[Any]], n: npt.NDArray[Any], problems: Problems
) -> npt.NDArray[np.intp]:
    """The groups of cells as codes; nulls are counted in rows, n of them a cell."""
    counted = Problems(problems.names)
    codes = encoder.encode(raw, counted, 0)
    if counted.found:
        # The encoder counts cells; people want rows.
        null = np.zeros(len(n), dtype=bool)
        for column in raw:
            null |= np.array([is_null(value) for value in column.tolist()])
        problems.add("group", "null", int(n[null].sum()))
    return codes


def no_rows(path: object) -> DataError:
    """The error for data without rows."""
    step = "check the source of the data"
    return DataError(Problem("data", "must have at least one row", f"0 rows in {path}", step))
