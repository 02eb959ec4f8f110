"""How DuckDB may work: how much memory, how many threads; and a connection that does so."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isocost.errors import Problem, UsageError

__all__ = ["DOUBT", "TRUST", "Settings"]

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

        before = _setting(connection, "memory_limit")
        # Not RESET: DuckDB 1.2 keeps the old limit after it, and 1.3 then has none at all.
        with duckdb.connect() as fresh:
            machine = _setting(fresh, "memory_limit")
        connection.execute(f"SET memory_limit = '{machine}'")
        return _size(before) < _size(_setting(connection, "memory_limit"))


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
