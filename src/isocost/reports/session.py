"""What the local page works on: the open file, a preview of it, and the last reports."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import IO, Any

from isocost.checks import check_threshold
from isocost.engines.files import Progress, tally_files
from isocost.engines.kinds import FileReading, kind_of, sheet_names
from isocost.engines.look import FileLook, preview
from isocost.errors import UNSET, FileError, IsocostError, Language, Problem, UsageError, speaking
from isocost.grid import Grid, scale_named
from isocost.reports.beside import beside_html, compared
from isocost.reports.payload import Origin
from isocost.reports.report import report_html
from isocost.tallies import Tally
from isocost.verdict.sentences import Vocabulary

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


@cache
def labels() -> dict[str, str]:
    """What the page calls its controls, by their ids."""
    html = resources.files("isocost.reports").joinpath("page", "serve.html").read_text("utf-8")
    pairs = re.findall(r'<label for="([\w-]+)">([^<(]+)', html)
    return {id: text.strip() for id, text in pairs}


def control_of(name: str) -> str | None:
    """The id of the control of a setting, if it has one."""
    id = {"missing_group": "missing", "data": "file"}.get(name, name.replace("_", "-"))
    return id if id in labels() else None


def controls_of(problem: Problem) -> list[str]:
    """The ids of the controls that fix a problem: those its next step names, or its own.

    Examples
    --------
    >>> step = "set “Decimal sign” to ,"
    >>> controls_of(Problem("score (column 'p')", "must be a number", "0,5", step))
    ['decimal', 'score']
    """
    named = [id for id, label in labels().items() if f"“{label}”" in problem.next_step]
    own = control_of(problem.name.partition(" ")[0])
    return list(dict.fromkeys([*named, *([own] if own else [])]))


def _on_page(name: str, value: Any) -> str:
    """A setting as the label of its control; one without a control by its name."""
    id = control_of(name)
    label = f"“{labels()[id]}”" if id else name.replace("_", " ")
    return label if value is UNSET else f"{label}: {value}"


PAGE = Language("page", _on_page)
"""How messages name settings on the page."""


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
    handed_over: bool = False
    drop_missing: bool = False
    scale: str = "probability"
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    people: str | None = None
    outcome: str | None = None
    positive_means: str | None = None
    beside: str | None = None

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
        reading = ("decimal", "encoding", "sheet")
        optional = ("weight", "positive", "missing_group", *reading, *words, "beside")
        texts = ("file", "score", "label", "cost", "scale", *optional)
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
        flags = ("handed_over", "drop_missing")
        for name in flags:
            if not isinstance(values[name], bool):
                raise _invalid(name, "true or false", values[name])
        chosen = {name: values.get(name) for name in (*texts, *flags)}
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
        # Folders of other users cannot be opened.
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
    preview: FileLook
    upload: Upload | None


@dataclass(frozen=True)
class MadeReport:
    """A report, and what another file can be laid beside."""

    page: str
    name: str
    tally: Tally


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
        self.own: OpenFile | None = None  # named when starting: it stays, whatever is uploaded
        self.reports: dict[str, MadeReport] = {}
        self.sheets: list[str] = []
        # Two pages may be open; each request has a thread.
        self._lock = threading.Lock()
        self.closing: Callable[[], bool] = lambda: False

    def open(
        self,
        path: Path,
        name: str,
        upload: Upload | None = None,
        reading: FileReading | None = None,
    ) -> None:
        """Open a file in place of the last one, with a preview of it."""
        looked = self._looked(path, name, upload, reading)
        with self._lock:
            self._close_file()
            self.file = OpenFile(secrets.token_hex(8), path, name, looked, upload)
            self.own = self.own if upload else self.file

    def look_again(self, reading: FileReading) -> None:
        """Look at the open file again, read in another way."""
        with self._lock:
            file = self.own or self.file
            if file is None:
                raise FileError(GONE)
            looked = self._looked(file.path, file.name, file.upload, reading)
            self._close_file()
            self.file = replace(file, preview=looked)
            self.own = self.file

    def _looked(
        self, path: Path, name: str, upload: Upload | None, reading: FileReading | None
    ) -> FileLook:
        """A preview of a file; where a sheet must be named, its sheets are kept for the page."""
        try:
            with speaking(PAGE):
                return preview(path, name if upload else None, reading)
        except IsocostError as error:
            if error.problems[0].name == "sheet":
                self.sheets = sheet_names(path)
            raise _with_name(error, path, name) from error

    def _close_file(self) -> None:
        """Delete the open file if it was uploaded; a person's own file stays open."""
        if self.file and self.file.upload:
            self.file.upload.close()
            self.file = self.own

    def close(self) -> None:
        """Delete what was uploaded."""
        self._close_file()
        self.folder.close()

    def report(self, request: ReportRequest) -> str:
        """Make a report and return the key it is kept under; an upload is then deleted.

        ``request.beside`` is the key of an earlier report: the page then has both files.
        """
        with self._lock:
            earlier = self.reports.get(request.beside or "")
            file = next((f for f in (self.file, self.own) if f and f.id == request.file), None)
            if file is None or (request.beside and not earlier):
                raise FileError(GONE)
            try:
                with speaking(PAGE):
                    tally = _tally(file, request, self._tick)
                    page = (
                        _beside(earlier, tally, file, request)
                        if earlier
                        else _page(tally, file, request)
                    )
            except IsocostError as error:
                raise _with_name(error, file.path, file.name) from error
            self._close_file()
            key = secrets.token_hex(8)
            self.reports[key] = MadeReport(page, file.name, tally)
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
        shown = None
        if file is not None:
            looked = file.preview
            columns = [{**asdict(c), "scales": c.scales} for c in looked.columns]
            shown = {
                "id": file.id,
                "name": file.name,
                "columns": columns,
                "guess": looked.guess,
                "positive": looked.positive,
                "reading": looked.reading,
            }
        return {"max_size": self.max_size, "file": shown}


def _tally(file: OpenFile, request: ReportRequest, progress: Progress) -> Tally:
    threshold = check_threshold(request.threshold)
    return tally_files(
        file.path,
        request.columns,
        grid=Grid(edges=(threshold, 1.0 - threshold)),
        positive=request.positive,
        missing_group=request.missing_group,
        handed_over=request.handed_over,
        drop_missing=request.drop_missing,
        progress=progress,
        name=file.name if file.upload else None,
        scale=scale_named(request.scale),
        reading=FileReading(request.decimal, request.encoding, request.sheet),
    )


def _page(tally: Tally, file: OpenFile, request: ReportRequest) -> str:
    """The report as ``isocost report`` makes it."""
    return report_html(
        tally,
        cost=request.cost,
        threshold=request.threshold,
        tolerance=request.tolerance,
        title=file.name,
        min_count=request.min_count,
        origin=Origin((file.name,)).with_files(file.path),
        people=request.people,
        outcome=request.outcome,
        positive_means=request.positive_means,
    )


def _beside(earlier: MadeReport, tally: Tally, file: OpenFile, request: ReportRequest) -> str:
    """The page of two files."""
    comparison = compared(
        earlier.tally,
        tally,
        cost=request.cost,
        threshold=request.threshold,
        tolerance=request.tolerance,
        min_count=request.min_count,
    )
    words = {name: getattr(request, name) for name in ("people", "outcome", "positive_means")}
    vocabulary = Vocabulary(**{name: word for name, word in words.items() if word is not None})
    return beside_html(comparison, (earlier.name, file.name), vocabulary)


def with_controls(step: str) -> str:
    """A next step in the words of somebody who sees the controls of the page.

    Examples
    --------
    >>> with_controls("pass “Decimal sign”: ,")
    'set “Decimal sign” to ,'
    >>> with_controls("leave out “Decimal sign”: ,: these numbers have a point")
    'set “Decimal sign” to “found by itself”: these numbers have a point'
    """
    step = re.sub(r"leave out (“[^”]+”)(: \S+?)?(?=[:; ]|$)", r"set \1 to “found by itself”", step)
    step = re.sub(r"\b(pass|or) (“[^”]+”):(?= )", r"\1 \2 to", step)
    return step.replace("pass “", "set “")


def _with_name(error: IsocostError, path: Path, name: str) -> IsocostError:
    """The error with the file's own name and the page's controls, and without DuckDB's query."""
    return FileError(
        Problem(
            p.name,
            p.rule,
            p.got.split(" LINE 1:")[0].replace(str(path), name),
            with_controls(p.next_step),
        )
        for p in error.problems
    )
