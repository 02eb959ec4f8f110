"""Files as DuckDB sees them: columns, types, and queries that can be watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.engines import sql
from isocost.engines.encode import GroupEncoder, is_null
from isocost.engines.places import find
from isocost.engines.problems import Problems
from isocost.engines.settings import Settings
from isocost.errors import DataError, FileError, Problem, UsageError, missing_column

__all__ = ["Progress", "Source", "encode_cells", "no_rows"]

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

    Every column of a CSV is a text here; what it means is decided by who reads it.
    """

    def __init__(self, path: str | Path, settings: Settings | None = None) -> None:
        self.path = str(path)
        self.place = find(path)
        if Path(self.path).is_file() and Path(self.path).stat().st_size == 0:
            raise no_rows(self.path)
        self.kind = self.place.kind
        self.is_text = self.place.is_text
        self.settings = settings or Settings()
        self.connection = self.settings.connect()
        self._hive = ", hive_partitioning = " + ("true" if self.place.partitions else "false")
        self.reader = self._reader(_LOOK.get(self.kind, ""))
        described = self.run(f"DESCRIBE SELECT * FROM {self.reader}").fetchall()
        self.types: dict[str, str] = {str(row[0]): str(row[1]) for row in described}
        self._keep_dates()

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
        return _READERS[self.kind].format(files=f"[{files}]", options=options + self._hive)

    def _keep_dates(self) -> None:
        """Read as texts what DuckDB would make dates of; nested values of JSON stay as they are."""
        keys = self._partitions()
        texts = [key for key in keys if self.is_text or self.types[key] not in _PLAIN]
        if texts:
            self._hive += f", hive_types = {_struct(dict.fromkeys(texts, 'VARCHAR'))}"
            self.types.update(dict.fromkeys(texts, "VARCHAR"))
        options = ""
        if self.kind == ".jsonl":
            mine = {name: kind for name, kind in self.types.items() if name not in keys}
            self.types.update({name: _json_type(kind) for name, kind in mine.items()})
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
        return {str(row[0]): str(row[1]) for row in rows}

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
        # Before 1.3 DuckDB does not say how far it is; the caller may still stop it.
        asked = getattr(self.connection, "query_progress", lambda: 0.0)
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
            problem = Problem(
                "file",
                "must exist",
                f"nothing at {self.path!r}",
                "check the path; put a glob in quotes so that the shell leaves it alone",
            )
            return FileError(problem)
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
        kind = _FORMATS[self.kind]
        step = "check that the file is what its ending says, and that it is whole"
        return FileError(
            Problem("file", f"must be readable as {kind}", f"{self.path}: {first}", step)
        )

    def columns_of(self, query: str, progress: Progress | None = None) -> dict[str, Array]:
        """The result of a query as arrays; nulls are None."""
        found = self.run(query, progress).fetchnumpy()
        return {name: _plain(values) for name, values in found.items()}

    def files(self) -> list[str]:
        """The files that are read."""
        globs = (
            self.run(f"SELECT file FROM glob({sql.literal(pattern)})").fetchall()
            for pattern in self.place.patterns
        )
        return [str(row[0]) for rows in globs for row in rows]

    def column(self, role: str, wanted: str) -> str:
        """A column as SQL, or an error that lists those there are."""
        if wanted not in self.types:
            raise UsageError(missing_column(role, wanted, list(self.types)))
        return sql.name(wanted)

    def number(self, role: str, wanted: str) -> str:
        """A numeric column as SQL of type DOUBLE."""
        column = self.column(role, wanted)
        if self.is_text:
            # No plain number: True or False, or none, which is an error that says so.
            other = f"CASE lower({column}) WHEN 'true' THEN 1e0 WHEN 'false' THEN 0e0"
            wrong = f"CAST({column} AS DOUBLE)"
            return f"coalesce(try_cast({column} AS DOUBLE), {other} ELSE {wrong} END)"
        if self.types[wanted] == "BOOLEAN":
            return f"CAST(CAST({column} AS INT) AS DOUBLE)"
        if not any(kind in self.types[wanted] for kind in sql.NUMBERS):
            self.check_number(role, wanted)
        return f"CAST({column} AS DOUBLE)"

    def check_number(self, role: str, wanted: str) -> None:
        """Refuse a column that has values which are no numbers, with their count and one of them.

        None is wrong where all are null: that is counted with the rows.
        """
        text = f"{sql.name(wanted)}::VARCHAR"
        found = self.run(
            f"SELECT count(*), min({text}) FROM {self.reader} WHERE {text} IS NOT NULL "
            f"AND try_cast({text} AS DOUBLE) IS NULL AND lower({text}) NOT IN ('true', 'false')"
        ).fetchone()
        if found[0]:
            raise DataError(
                Problem(
                    f"{role} (column {wanted!r})",
                    "must hold numbers",
                    f"{found[0]:,} values that are none, such as {found[1]!r}",
                    "correct or drop those rows",
                )
            )


def _struct(values: dict[str, str]) -> str:
    listed = ", ".join(
        f"{sql.literal(name)}: {sql.literal(value)}" for name, value in values.items()
    )
    return f"{{{listed}}}"


def _json_type(kind: str) -> str:
    """How a column of JSON is read: numbers and booleans as such, other values as written."""
    nested = kind == "JSON" or kind.endswith("]") or kind.startswith(("STRUCT", "MAP"))
    return "JSON" if nested else kind if kind in _PLAIN else "VARCHAR"


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
