"""How DuckDB reads files: what their text means, and within which limits it works."""

from __future__ import annotations

import math
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isocost.checks import check_kind
from isocost.engines.parsing import check_decimal
from isocost.engines.paths import check_codec
from isocost.errors import Problem, UsageError

_LEAST, _EACH = 1024, 256
"""The default limit in MiB: at least the first, and the second for each thread."""

_SIZE = re.compile(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([KMGT]i?B)\s*", re.IGNORECASE | re.ASCII)

_SMALLEST, _LARGEST = 1e6, 1e15
"""The range of limits that DuckDB accepts, in bytes."""


@dataclass(frozen=True)
class FileReading:
    """How files are read and written; what is left out is detected, or the usual way.

    Parameters
    ----------
    decimal : "." or ",", optional
        The decimal sign of numbers that are texts; by default a comma if every score fits.
    encoding : str, optional
        The encoding of text; by default UTF-8, what a byte order mark says, or Windows-1252.
    sheet : str, optional
        The sheet of a workbook; by default the only one that has rows.
    memory_limit : str, optional
        Memory that DuckDB may use, such as "512MB"; beyond it, DuckDB spills to disk.  By default
        1 GiB, or 256 MiB per thread if that is more, and all memory where that is not enough.
    threads : int, optional
        Number of threads (default: one per core).
    keep_order : bool
        Whether written rows keep their order.
    guessed : str, optional
        "encoding" if that was not asked for and is not named in the files.

    Examples
    --------
    >>> FileReading(memory_limit="512MB").memory_limit
    '512MB'
    """

    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    memory_limit: str | None = None
    threads: int | None = None
    keep_order: bool = True
    guessed: str | None = None

    def __post_init__(self) -> None:
        check_decimal(self.decimal)
        check_codec(self.encoding)
        if self.sheet is not None:
            step = "use the name on its tab"
            check_kind("sheet", self.sheet, str, "must be the name of a sheet", step)
        limit, threads = self.memory_limit, self.threads
        if limit is not None and not _is_limit(limit):
            rule = "must be a number with a unit (KB, MB, GB or TB), from 1MB to 1000TB"
            raise UsageError(Problem("memory_limit", rule, repr(limit)[:80], 'use "512MB"'))
        whole = isinstance(threads, int) and not isinstance(threads, bool)
        if threads is not None and not (whole and 1 <= threads <= 4096):
            rule = "must be a whole number from 1 to 4096"
            raise UsageError(Problem("threads", rule, repr(threads), "leave it out for all cores"))

    def connect(self) -> Any:
        """A connection to a database in memory, which spills to the temporary folder."""
        import duckdb

        # DuckDB's default is .tmp in the working directory.
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
        if self.memory_limit is None:
            # DuckDB's default is four fifths of the memory.
            usual = f"{max(_LEAST, _EACH * int(_setting(connection, 'threads')))} MiB"
            if _size(usual) < _size(_setting(connection, "memory_limit")):
                connection.execute(f"SET memory_limit = '{usual}'")
        return connection

    def relax(self, connection: Any) -> bool:
        """Raise the default limit to DuckDB's own; false if that changes nothing."""
        if self.memory_limit is not None:
            return False
        import duckdb

        before = _size(_setting(connection, "memory_limit"))
        # Not RESET, after which DuckDB 1.3 has no limit at all.
        with duckdb.connect() as fresh:
            most = min(_size(_setting(fresh, "memory_limit")), _memory())
        if before < most:
            connection.execute(f"SET memory_limit = '{most / 2**10:.0f} KiB'")
        return before < _size(_setting(connection, "memory_limit"))


def _is_limit(limit: object) -> bool:
    match = _SIZE.fullmatch(limit) if isinstance(limit, str) else None
    if match is None:
        return False
    base = 1024.0 if "i" in match[2].lower() else 1000.0
    size = float(match[1]) * base ** " KMGT".index(match[2][0].upper())
    return _SMALLEST <= size <= _LARGEST


def _setting(connection: Any, name: str) -> str:
    return str(connection.execute(f"SELECT current_setting('{name}')").fetchall()[0][0])


def _size(text: str) -> float:
    """A size as DuckDB prints it, in bytes.

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
