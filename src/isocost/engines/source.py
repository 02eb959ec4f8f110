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
from isocost.engines.encode import GroupEncoder
from isocost.engines.problems import Problems
from isocost.errors import DataError, FileError, Problem, UsageError, missing_column

__all__ = ["Progress", "Source", "encode_cells", "kind_of", "no_rows"]

Array = npt.NDArray[Any]

Progress = Callable[[float], None]
"""Called now and then with the share of the work that is done, from 0 to 1."""

_READERS = {
    ".csv": "read_csv({path}, header = true{types})",
    ".tsv": "read_csv({path}, header = true, delim = '\t'{types})",
    ".parquet": "read_parquet({path})",
}
# Dates stay texts: a group may be called 2026-01-01.
_GUESS = ", auto_type_candidates = ['BOOLEAN', 'BIGINT', 'DOUBLE', 'VARCHAR']"


class Source:
    """Files that DuckDB reads, with the names and types of their columns."""

    def __init__(self, path: str | Path, texts: Sequence[str] = ()) -> None:
        import duckdb

        self.path = str(path)
        self.kind = kind_of(self.path)
        # A file that is there is meant, even if its name looks like a glob.
        self.pattern = _escaped(self.path) if Path(self.path).is_file() else self.path
        self.connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        self.connection.execute("SET enable_progress_bar = true")
        self.connection.execute("SET enable_progress_bar_print = false")
        self.reader = self._reader(_GUESS)
        described = self.run(f"DESCRIBE SELECT * FROM {self.reader}").fetchall()
        self.types: dict[str, str] = {str(row[0]): str(row[1]) for row in described}
        self._as_texts([name for name in texts if name in self.types])

    def _reader(self, types: str) -> str:
        return _READERS[self.kind].format(path=sql.literal(self.pattern), types=types)

    @property
    def raw(self) -> str:
        """The reader that leaves every value of a CSV as it is written: 007 stays 007."""
        return self._reader(", all_varchar = true")

    def _as_texts(self, wanted: list[str]) -> None:
        """Read these columns of a CSV as texts where DuckDB would see booleans in yes and no."""
        if self.kind == ".parquet":
            return
        chosen = []
        for name in wanted:
            column = sql.name(name)
            query = (
                f"SELECT 1 FROM {self.raw} WHERE lower({column}) NOT IN ('true', 'false') LIMIT 1"
            )
            if self.types[name] == "BOOLEAN" and self.run(query).fetchone():
                chosen.append(name)
        if chosen:
            listed = ", ".join(f"{sql.literal(name)}: 'VARCHAR'" for name in chosen)
            self.reader = self._reader(f"{_GUESS}, types = {{{listed}}}")
            self.types.update(dict.fromkeys(chosen, "VARCHAR"))

    def run(self, query: str, progress: Progress | None = None) -> Any:
        """Run a query; a failure becomes an error that names the file."""
        import duckdb

        try:
            if progress is None:
                return self.connection.execute(query)
            return self._run_watched(query, progress)
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
        with ThreadPoolExecutor(max_workers=1) as pool:
            job = pool.submit(self.connection.execute, query)
            try:
                while True:
                    try:
                        return job.result(timeout=0.1)
                    except StillRunning:
                        progress(max(0.0, self.connection.query_progress() / 100.0))
            except BaseException:
                self.connection.interrupt()
                raise

    def _explained(self, error: Exception) -> FileError | DataError:
        first = " ".join(line.strip() for line in str(error).splitlines()[:4] if line.strip())[:300]
        if "No files found" in first:
            problem = Problem(
                "file",
                "must exist",
                f"nothing at {self.path!r}",
                "check the path; put a glob in quotes so that the shell leaves it alone",
            )
            return FileError(problem)
        if "onversion" in first or "CSV Error" in first:
            return DataError(
                Problem(
                    "file",
                    "must hold one kind of value per column",
                    first,
                    "correct the line, or pass the data as a frame with the types you want",
                )
            )
        kind = "Parquet" if self.kind == ".parquet" else "CSV"
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
        rows = self.run(f"SELECT file FROM glob({sql.literal(self.pattern)})").fetchall()
        return [str(row[0]) for row in rows]

    def column(self, role: str, wanted: str) -> str:
        """A column as SQL, or an error that lists those there are."""
        if wanted not in self.types:
            raise UsageError(missing_column(role, wanted, list(self.types)))
        return sql.name(wanted)

    def number(self, role: str, wanted: str) -> str:
        """A numeric column as SQL of type DOUBLE."""
        column = self.column(role, wanted)
        if not any(kind in self.types[wanted] for kind in sql.NUMBERS):
            found = self.run(
                f"SELECT count(*), min({column}::VARCHAR) FROM {self.reader} "
                f"WHERE {column} IS NOT NULL AND try_cast({column}::VARCHAR AS DOUBLE) IS NULL"
            ).fetchone()
            # None is wrong where all are null: that is counted with the rows.
            if found[0]:
                raise DataError(
                    Problem(
                        f"{role} (column {wanted!r})",
                        "must hold numbers",
                        f"{found[0]:,} values that are none, such as {found[1]!r} "
                        f"(column type {self.types[wanted]})",
                        "correct or drop those rows",
                    )
                )
        return f"CAST({column} AS DOUBLE)"


def _escaped(path: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def kind_of(path: str) -> str:
    """The kind of file, by its ending."""
    plain = path.lower().removesuffix(".gz")
    for ending in _READERS:
        if plain.endswith(ending) and not (ending == ".parquet" and plain != path.lower()):
            return ending
    raise FileError(
        Problem(
            "file",
            "must end in .csv, .tsv (also .gz) or .parquet",
            repr(path),
            "convert the file, or load it into a frame and pass that",
        )
    )


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
            null |= np.array([value is None or value != value for value in column.tolist()])
        problems.add("group", "null", int(n[null].sum()))
    return codes


def no_rows(path: object) -> DataError:
    """The error for data without rows."""
    step = "check the source of the data"
    return DataError(Problem("data", "must have at least one row", f"0 rows in {path}", step))
