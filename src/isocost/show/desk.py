"""What the local page works with: the file at hand, what is wished for, and the reports made."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isocost.checks import check_threshold
from isocost.engines.files import tally_files
from isocost.engines.places import compression_of, kind_of
from isocost.engines.source import Progress
from isocost.errors import FileError, IsocostError, Problem, UsageError
from isocost.grid import Grid
from isocost.show.payload import Origin
from isocost.show.preview import Preview, preview
from isocost.show.report import report_html

__all__ = ["Desk", "TooLargeError", "Wish"]

MAX_SIZE = 200_000_000
"""The largest file that is taken, in bytes."""

MAX_REPORTS = 8
"""How many reports are kept; the oldest goes first."""

GONE = Problem(
    "file",
    "must be at hand when its report is made",
    "a file that was replaced, or is deleted because its report was made",
    "choose the file again",
)

CLOSING = Problem("report", "needs a server that runs", "one that is closing", "start it again")


class TooLargeError(FileError):
    """A file is larger than is taken."""


@dataclass(frozen=True)
class Wish:
    """The report that a person wishes for, as the page sends it."""

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

    @classmethod
    def read(cls, body: bytes) -> Wish:
        """A wish from JSON that nobody vouches for.

        Examples
        --------
        >>> Wish.read(b'{"file": "1", "score": "s", "label": "y", "group": ["g"]}').threshold
        0.5
        """
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise _unusable("request", "a JSON object", "something else")
        texts = ("file", "score", "label", "weight", "positive", "missing_group", "cost")
        optional = ("weight", "positive", "missing_group")
        known: dict[str, Any] = {"cost": "fnr", "threshold": 0.5, "tolerance": 0.0, "min_count": 0}
        known |= content
        for name in texts:
            value = known.get(name)
            if not isinstance(value, str) and not (value is None and name in optional):
                raise _unusable(name, "a text", value)
        group = known.get("group")
        if not (isinstance(group, list) and group and all(isinstance(g, str) for g in group)):
            raise _unusable("group", "a list of columns", group)
        numbers = {name: _number(name, known[name]) for name in ("threshold", "tolerance")}
        count = int(_number("min_count", known["min_count"]))
        chosen = {name: known.get(name) for name in texts}
        return cls(**chosen, group=tuple(dict.fromkeys(group)), **numbers, min_count=count)  # type: ignore[arg-type]

    @property
    def columns(self) -> dict[str, Any]:
        """The columns by role."""
        names = {"score": self.score, "label": self.label, "weight": self.weight}
        return {**names, "group": list(self.group)}


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e9:
        raise _unusable(name, "a number", value)
    return float(value)


def _unusable(name: str, rule: str, value: object) -> UsageError:
    step = "fill in this field, and send the form again"
    return UsageError(Problem(name, f"must be {rule}", repr(value)[:80], step))


@dataclass(frozen=True)
class Held:
    """The file at hand; ``ours`` if it is a copy that we made."""

    id: str
    path: Path
    name: str
    found: Preview
    ours: bool


class Desk:
    """One file at most, and the last reports.

    Parameters
    ----------
    folder : Path
        Where uploaded files are kept until their report is made.
    max_size : int
        The largest file that is taken, in bytes.
    """

    def __init__(self, folder: Path, max_size: int = MAX_SIZE) -> None:
        self.folder, self.max_size = folder, max_size
        self.held: Held | None = None
        self.reports: dict[str, str] = {}
        # Two pages may be open; each request has a thread.
        self._lock = threading.Lock()
        self.closing: Callable[[], bool] = lambda: False

    def new_path(self, name: str) -> Path:
        """Where to put a file; of the name that it has, only the ending counts."""
        last = Path(name).suffix.lower()
        ending = kind_of(name) + ("" if compression_of(name) == "none" else last)
        return self.folder / f"{secrets.token_hex(8)}{ending}"

    def take(self, path: Path, name: str, *, ours: bool) -> None:
        """Look at a file and have it at hand, instead of the last one."""
        try:
            found = preview(path)
        except IsocostError as error:
            raise _with_name(error, path, name) from error
        with self._lock:
            self._drop()
            self.held = Held(secrets.token_hex(8), path, name, found, ours)

    def _drop(self) -> None:
        """Delete the file at hand if it is a copy of ours; a person's own file stays."""
        if self.held and self.held.ours:
            self.held.path.unlink(missing_ok=True)
            self.held = None

    def report(self, wish: Wish) -> str:
        """Make a report and say under which key it is kept; a copy of ours is then deleted."""
        with self._lock:
            held = self.held
            if held is None or held.id != wish.file:
                raise FileError(GONE)
            try:
                page = _page(held, wish, self._tick)
            except IsocostError as error:
                raise _with_name(error, held.path, held.name) from error
            self._drop()
            key = secrets.token_hex(8)
            self.reports[key] = page
            for old in list(self.reports)[:-MAX_REPORTS]:
                del self.reports[old]
            return key

    def _tick(self, share: float, rows: int | None) -> None:
        """Stop a long query when the server closes; otherwise Ctrl-C would wait for it."""
        del share, rows
        if self.closing():
            raise FileError(CLOSING)

    def to_dict(self) -> dict[str, Any]:
        """What the page shows."""
        held = self.held
        file = {"id": held.id, "name": held.name, **held.found.to_dict()} if held else None
        return {"max_size": self.max_size, "file": file}


def _page(held: Held, wish: Wish, progress: Progress) -> str:
    """The report as ``isocost report`` makes it."""
    threshold = check_threshold(wish.threshold)
    tally = tally_files(
        held.path,
        wish.columns,
        grid=Grid(edges=(threshold, 1.0 - threshold)),
        positive=wish.positive,
        missing_group=wish.missing_group,
        progress=progress,
    )
    return report_html(
        tally,
        cost=wish.cost,
        threshold=threshold,
        tolerance=wish.tolerance,
        title=held.name,
        min_count=wish.min_count,
        origin=Origin((held.name,), wish.positive, wish.missing_group),
    )


def _with_name(error: IsocostError, path: Path, name: str) -> IsocostError:
    """The error with the name that a person knows the file by, and without DuckDB's query."""
    return FileError(
        Problem(p.name, p.rule, p.got.split(" LINE 1:")[0].replace(str(path), name), p.next_step)
        for p in error.problems
    )
