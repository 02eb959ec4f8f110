"""What the local page works on: the open file, a preview of it, and the last reports."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any

from isocost.checks import check_threshold
from isocost.engines.files import tally_files
from isocost.engines.paths import kind_of
from isocost.engines.source import Progress, Source, is_number
from isocost.engines.values import typed
from isocost.errors import FileError, IsocostError, Problem, UsageError
from isocost.grid import Grid
from isocost.reports.payload import Origin
from isocost.reports.report import report_html

SAMPLE = 5000
"""Number of rows in the sample, drawn from all parts of the file."""

SHOWN = 12
"""The most values of a column that are shown."""

MOST_GROUPS = 40
"""A column with more values than this is not guessed to be the group."""

_NAMES = {
    "score": r"score|prob|risk|pred|yhat|y_hat|^p$|^p_",
    "label": r"label|target|outcome|truth|y_true|recid|default|event|class|^y$|is_",
    "group": r"group|race|sex|gender|ethnic|nation|age|region|site",
    "weight": r"weight|^wt$|^w$|wgt",
}

_POSITIVE = ("1", "1.0", "true", "yes", "y", "t", "positive", "pos", "event", "case")


@dataclass(frozen=True)
class Column:
    """A column of the file, as far as the sample shows it.

    Attributes
    ----------
    name : str
        Its name.
    numeric : bool
        Whether it contains numbers.
    values : tuple of str
        Some of its values, the most frequent first.
    distinct : int
        Number of distinct values in the sample.
    low, high : float or None
        The range of its numbers.
    """

    name: str
    numeric: bool
    values: tuple[str, ...]
    distinct: int
    low: float | None = None
    high: float | None = None

    def fits(self, role: str) -> bool:
        """Whether its values can be those of a role."""
        inside = self.low is not None and self.high is not None and self.low >= 0.0
        if role == "score":
            return inside and self.high is not None and self.high <= 1.0 and self.distinct > 2
        if role == "weight":
            return inside and self.low != 0.0 and self._named("weight")
        return self.distinct == 2 if role == "label" else 2 <= self.distinct <= MOST_GROUPS

    def _named(self, role: str) -> bool:
        return re.search(_NAMES[role], self.name.lower()) is not None

    def likelihood(self, role: str) -> tuple[bool, ...]:
        """How well it suits a role, for sorting: by its name, then by its values."""
        other = any(self._named(name) for name in _NAMES if name != role)
        has_positive = any(value.lower() in _POSITIVE for value in self.values)
        return self._named(role), not other, has_positive == (role == "label")


@dataclass(frozen=True)
class Preview:
    """The columns of a file and a guess at what they are for."""

    columns: tuple[Column, ...]
    guess: dict[str, str | None]
    positive: str | None


def preview(path: str | Path, name: str | None = None) -> Preview:
    r"""The columns of a file, some of their values, and a guess at what they are for.

    ``name`` gives the ending of a file whose path has none.

    Examples
    --------
    >>> import tempfile
    >>> text = "who,risk,sex,charged\nAnn,0.2,F,no\nBob,0.7,M,yes\nEve,0.4,F,no\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "data.csv")
    ...     _ = path.write_text(text)
    ...     looked = preview(path)
    >>> looked.guess
    {'score': 'risk', 'label': 'charged', 'group': 'sex', 'weight': None}
    >>> looked.positive
    'yes'
    """
    columns = _columns(path, name)
    guess = _guess(columns)
    label = next((c for c in columns if c.name == guess["label"]), None)
    return Preview(tuple(columns), guess, _positive(label.values) if label else None)


def _columns(path: str | Path, name: str | None) -> list[Column]:
    source = Source(path, name=name)
    try:
        query = f"SELECT * FROM {source.reader} USING SAMPLE reservoir({SAMPLE} ROWS)"
        rows = source.run(query).fetchall()
    finally:
        source.connection.close()
    columns = []
    for index, (column, kind) in enumerate(source.types.items()):
        values = [row[index] for row in rows]
        if source.is_text:
            values, kind = _typed_values(values)
        columns.append(_column(column, kind, values))
    return columns


def _typed_values(texts: Sequence[str | None]) -> tuple[list[Any], str]:
    """The values of a CSV with their types, and the type of the column for DuckDB."""
    meaning = typed(texts)
    kinds = {type(value) for value in meaning.values()}
    kind = "DOUBLE" if kinds and kinds <= {int, float} else "VARCHAR"
    return [None if text is None else meaning[text] for text in texts], kind


def _column(name: str, kind: str, values: Sequence[Any]) -> Column:
    counts: dict[str, int] = {}
    for value in values:
        if value is not None and value == value:
            text = _shown_text(value)
            counts[text] = counts.get(text, 0) + 1
    common = tuple(sorted(counts, key=lambda text: -counts[text])[:SHOWN])
    if not is_number(kind):
        return Column(name, False, common, len(counts))
    numbers = [float(v) for v in values if v is not None and math.isfinite(v)]
    ends = (min(numbers), max(numbers)) if numbers else (None, None)
    return Column(name, True, common, len(counts), *ends)


def _shown_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _guess(columns: Sequence[Column]) -> dict[str, str | None]:
    """The most likely column for each role; none is used twice."""
    free = list(columns)
    guess: dict[str, str | None] = {}
    for role in ("score", "weight", "label", "group"):
        fitting = [column for column in free if column.fits(role)]
        best = max(fitting, key=lambda column: column.likelihood(role), default=None)
        guess[role] = best.name if best else None
        free = [column for column in free if column is not best]
    return {role: guess[role] for role in _NAMES}


def _positive(values: Sequence[str]) -> str | None:
    """The positive label where it must be named: not for 0 and 1, nor for true and false."""
    known = {value.lower() for value in values}
    if known <= {"0", "1"} or known <= {"true", "false"}:
        return None
    return next((value for value in values if value.lower() in _POSITIVE), None)


MAX_SIZE = 200_000_000
"""The largest file that may be uploaded, in bytes."""

MAX_REPORTS = 8
"""Number of reports that are kept; the oldest is dropped first."""

DESCRIPTORS = Path("/proc/self/fd")
"""Where open files have a path, even those without a name."""

PREFIX = "isocost-serve-"
"""How the names of private folders begin."""

GONE = Problem(
    "file",
    "must be open when its report is made",
    "a file that was replaced, or deleted after its report was made",
    "choose the file again",
)

CLOSING = Problem("report", "needs a running server", "one that is closing", "start it again")


class TooLargeError(FileError):
    """A file is too large to be uploaded."""


@dataclass(frozen=True)
class ReportRequest:
    """A request for a report, as the page sends it."""

    file: str
    score: str
    label: str
    group: tuple[str, ...]
    weight: str | None = None
    positive: str | None = None
    missing_group: str | None = None
    cost: str = "fnr"
    threshold: float = 0.5
    tolerance: float = 0.0
    min_count: int = 0
    people: str | None = None
    outcome: str | None = None
    positive_means: str | None = None

    @classmethod
    def read(cls, body: bytes) -> ReportRequest:
        """A request from untrusted JSON.

        Examples
        --------
        >>> body = b'{"file": "1", "score": "s", "label": "y", "group": ["g"]}'
        >>> ReportRequest.read(body).threshold
        0.5
        """
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise _invalid("request", "a JSON object", "something else")
        words = ("people", "outcome", "positive_means")
        optional = ("weight", "positive", "missing_group", *words)
        texts = ("file", "score", "label", "cost", *optional)
        values = {f.name: f.default for f in fields(cls) if f.default is not MISSING} | content
        for name in texts:
            value = values.get(name)
            if not isinstance(value, str) and not (value is None and name in optional):
                raise _invalid(name, "a text", value)
        group = values.get("group")
        if not (isinstance(group, list) and group and all(isinstance(g, str) for g in group)):
            raise _invalid("group", "a list of columns", group)
        numbers = {name: _number(name, values[name]) for name in ("threshold", "tolerance")}
        count = int(_number("min_count", values["min_count"]))
        chosen = {name: values.get(name) for name in texts}
        return cls(**chosen, group=tuple(dict.fromkeys(group)), **numbers, min_count=count)  # type: ignore[arg-type]

    @property
    def columns(self) -> dict[str, Any]:
        """The columns by role."""
        names = {"score": self.score, "label": self.label, "weight": self.weight}
        return {**names, "group": list(self.group)}


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e9:
        raise _invalid(name, "a number", value)
    return float(value)


def _invalid(name: str, rule: str, value: object) -> UsageError:
    step = "fill in this field, and send the form again"
    return UsageError(Problem(name, f"must be {rule}", repr(value)[:80], step))


class Upload:
    """An uploaded file: its content, and a path where DuckDB can read it.

    Parameters
    ----------
    name : str
        Its name; only the ending matters.
    folder : callable
        Returns the private folder, where one is needed.
    """

    def __init__(self, name: str, folder: Callable[[], Path]) -> None:
        kind_of(name)
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it stays open
        self.path = DESCRIPTORS / str(self.file.fileno())
        self.is_named = not self.path.exists()
        if self.is_named:
            self.file.close()
            self.path = folder() / secrets.token_hex(8)
            self.file = self.path.open("wb")

    def finish(self) -> None:
        """Let others read what was written."""
        if self.is_named:
            self.file.close()
        else:
            self.file.flush()

    def close(self) -> None:
        """Delete it."""
        self.file.close()
        if self.is_named:
            self.path.unlink(missing_ok=True)


class PrivateFolder:
    """A folder that is created when first needed, and locked as long as its process lives."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self._lock: int | None = None

    def __call__(self) -> Path:
        """The folder."""
        if self.path is None:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
            self._lock = _locked(self.path)
        return self.path

    def close(self) -> None:
        """Delete it."""
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
        self.path = self._lock = None


def _locked(folder: Path) -> int | None:
    """Lock a folder; None if another process holds the lock, or if there are no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def delete_leftovers() -> None:
    """Delete the private folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        # Those of other people cannot be opened.
        with suppress(OSError):
            lock = _locked(folder)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


@dataclass(frozen=True)
class OpenFile:
    """The open file; one that was uploaded is deleted when it is closed."""

    id: str
    path: Path
    name: str
    preview: Preview
    upload: Upload | None


class Session:
    """At most one open file, and the last reports.

    Parameters
    ----------
    max_size : int
        The largest file that may be uploaded, in bytes.
    """

    def __init__(self, max_size: int = MAX_SIZE) -> None:
        self.max_size = max_size
        self.folder = PrivateFolder()
        self.file: OpenFile | None = None
        self.reports: dict[str, str] = {}
        # Two pages may be open; each request has a thread.
        self._lock = threading.Lock()
        self.closing: Callable[[], bool] = lambda: False

    def open(self, path: Path, name: str, upload: Upload | None = None) -> None:
        """Open a file in place of the last one, with a preview of it."""
        try:
            looked = preview(path, name if upload else None)
        except IsocostError as error:
            raise _with_name(error, path, name) from error
        with self._lock:
            self._close_file()
            self.file = OpenFile(secrets.token_hex(8), path, name, looked, upload)

    def _close_file(self) -> None:
        """Delete the open file if it was uploaded; a person's own file stays open."""
        if self.file and self.file.upload:
            self.file.upload.close()
            self.file = None

    def close(self) -> None:
        """Delete what was uploaded."""
        self._close_file()
        self.folder.close()

    def report(self, request: ReportRequest) -> str:
        """Make a report and return the key it is kept under; an upload is then deleted."""
        with self._lock:
            file = self.file
            if file is None or file.id != request.file:
                raise FileError(GONE)
            try:
                page = _page(file, request, self._tick)
            except IsocostError as error:
                raise _with_name(error, file.path, file.name) from error
            self._close_file()
            key = secrets.token_hex(8)
            self.reports[key] = page
            for old in list(self.reports)[:-MAX_REPORTS]:
                del self.reports[old]
            return key

    def _tick(self, share: float, rows: int | None) -> None:
        """Stop a long query when the server closes; Ctrl-C would wait for it otherwise."""
        del share, rows
        if self.closing():
            raise FileError(CLOSING)

    def to_dict(self) -> dict[str, Any]:
        """What the page shows."""
        file = self.file
        shown = {"id": file.id, "name": file.name, **asdict(file.preview)} if file else None
        return {"max_size": self.max_size, "file": shown}


def _page(file: OpenFile, request: ReportRequest, progress: Progress) -> str:
    """The report as ``isocost report`` makes it."""
    threshold = check_threshold(request.threshold)
    tally = tally_files(
        file.path,
        request.columns,
        grid=Grid(edges=(threshold, 1.0 - threshold)),
        positive=request.positive,
        missing_group=request.missing_group,
        progress=progress,
        name=file.name if file.upload else None,
    )
    return report_html(
        tally,
        cost=request.cost,
        threshold=threshold,
        tolerance=request.tolerance,
        title=file.name,
        min_count=request.min_count,
        origin=Origin((file.name,), request.positive, request.missing_group).with_files(file.path),
        people=request.people,
        outcome=request.outcome,
        positive_means=request.positive_means,
    )


def _with_name(error: IsocostError, path: Path, name: str) -> IsocostError:
    """The error with the file's own name, and without DuckDB's query."""
    return FileError(
        Problem(p.name, p.rule, p.got.split(" LINE 1:")[0].replace(str(path), name), p.next_step)
        for p in error.problems
    )
