"""A local page that makes the report of a file: who may open it, the open file, and its reports.

Two files can be put side by side: what each audit says, and which numbers changed between them.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from isocost.engines.files import tally_files
from isocost.engines.kinds import FileReading, kind_of, sheet_names
from isocost.engines.look import FileLook, preview
from isocost.errors import (
    UNSET,
    DataError,
    FileError,
    IsocostError,
    Language,
    Problem,
    UsageError,
    require_package,
    speaking,
)
from isocost.grid import Grid, scale_named
from isocost.groups import Group, shown_names
from isocost.judging.audit import Audit, audited
from isocost.measures.feasibility import compared_groups
from isocost.measures.intervals import Interval, difference
from isocost.page.payload import Origin, page_file
from isocost.page.report import filled, report_html
from isocost.page.view import cost_words, row_titles, spoken_names
from isocost.question import DEFAULT, MOST_REPLICATES, Question
from isocost.readings import Missing
from isocost.tallies import Tally
from isocost.verdict.sentences import (
    NEUTRAL,
    SENTENCES,
    Figures,
    Name,
    Sentence,
    Vocabulary,
    fill,
    joined,
    number,
)
from isocost.verdict.wording import figures_of, statement

if TYPE_CHECKING:
    import asyncio

    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_SIZE = 200_000_000
"""The largest file that may be uploaded, in bytes."""

MAX_REPORTS = 8
"""Number of reports that are kept; the oldest is dropped first."""

DESCRIPTORS = Path("/proc/self/fd")
"""The folder in which every open file has a path, even one without a name."""

PREFIX = "isocost-serve-"
"""The beginning of the names of private folders."""

GONE = Problem(
    "file",
    "must be open when its report is made",
    "a file that was replaced, or deleted after its report was made",
    "choose the file again",
)


@cache
def labels() -> dict[str, str]:
    """The labels of the page's controls, by their ids."""
    pairs = re.findall(r'<label for="([\w-]+)">([^<(]+)', page_file("serve.html"))
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
"""The names of settings in messages on the page."""


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
    person: str | None = None
    positive: str | None = None
    missing_label: str = "refuse"
    missing_group: str | None = None
    cost: str = str(DEFAULT.cost)
    threshold: float = DEFAULT.threshold
    tolerance: float = DEFAULT.tolerance
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
        chosen: dict[str, Any] = {}
        for field in fields(cls):
            value = content.get(field.name, None if field.default is MISSING else field.default)
            rule, holds, kept = _KINDS[str(field.type)]
            if not holds(value):
                raise _invalid(field.name, rule, value)
            chosen[field.name] = kept(value)
        return cls(**chosen)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < 1e9


def _is_columns(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


_KINDS: dict[str, tuple[str, Callable[[Any], bool], Callable[[Any], Any]]] = {
    "str": ("a text", lambda value: isinstance(value, str), str),
    "str | None": ("a text", lambda value: isinstance(value, str | None), lambda value: value),
    "tuple[str, ...]": ("a list of columns", _is_columns, lambda value: tuple({}.fromkeys(value))),
    "float": ("a number", _is_number, float),
    "int": ("a number", _is_number, int),
    "bool": ("true or false", lambda value: isinstance(value, bool), bool),
}
"""What a field of a request must be, by its type: in words, as a check, and as it is kept."""


def _invalid(name: str, rule: str, value: object) -> UsageError:
    step = "fill in this field, and send the form again"
    return UsageError(Problem(name, f"must be {rule}", repr(value)[:80], step))


class Upload:
    """An uploaded file: its content, and a path where DuckDB can read it.

    Only the ending of its name matters.  Where open files have no path of their own it is in a
    private folder, which is locked as long as this process lives.
    """

    def __init__(self, name: str) -> None:
        kind_of(name)
        self._opened = ExitStack()
        self.file: IO[bytes] = self._opened.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self.path = DESCRIPTORS / str(self.file.fileno())
        if not self.path.exists():
            folder = Path(tempfile.mkdtemp(prefix=PREFIX))
            lock = _locked(folder)
            if lock is not None:
                self._opened.callback(os.close, lock)
            self._opened.callback(shutil.rmtree, folder, ignore_errors=True)
            self.path = folder / "data"
            self.file = self._opened.enter_context(self.path.open("wb"))

    def close(self) -> None:
        """Delete it."""
        self._opened.close()


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
    """At most one open file, uploaded up to a size in bytes, and the last reports."""

    def __init__(self, max_size: int = MAX_SIZE) -> None:
        self.max_size = max_size
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
            self.close()
            self.file = OpenFile(secrets.token_hex(8), path, name, looked, upload)
            self.own = self.own if upload else self.file

    def look_again(self, reading: FileReading) -> None:
        """Look at the open file again, read in another way."""
        with self._lock:
            file = self.file
            if file is None:
                raise FileError(GONE)
            looked = self._looked(file.path, file.name, file.upload, reading)
            self.file = replace(file, preview=looked)
            self.own = self.own if file.upload else self.file

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

    def close(self) -> None:
        """Delete the open file if it was uploaded; a person's own file stays open."""
        if self.file and self.file.upload:
            self.file.upload.close()
            self.file = self.own

    def report(self, request: ReportRequest) -> str:
        """Make a report and return the key it is kept under; an upload is then deleted.

        ``request.beside`` is the key of an earlier report: the page then has both files.
        """
        with self._lock:
            earlier = self.reports.get(request.beside or "")
            file = next((f for f in (self.file, self.own) if f and f.id == request.file), None)
            if file is None or (request.beside and not earlier):
                raise FileError(GONE)
            words = {n: getattr(request, n) for n in ("people", "outcome", "positive_means")}
            columns = {n: getattr(request, n) for n in ("score", "label", "weight", "person")}
            try:
                with speaking(PAGE):
                    asked = Question(request.cost, request.threshold, request.tolerance)
                    tally = tally_files(
                        file.path,
                        {**columns, "group": list(request.group)},
                        grid=Grid(edges=asked.edges),
                        positive=request.positive,
                        missing=Missing.asked(
                            request.missing_label, request.missing_group, request.drop_missing
                        ),
                        handed_over=request.handed_over,
                        progress=self._tick,
                        name=file.name if file.upload else None,
                        scale=scale_named(request.scale),
                        reading=FileReading(request.decimal, request.encoding, request.sheet),
                    )
                    if earlier is None:
                        origin = Origin((file.name,)).with_files(file.path)
                        named = {"title": file.name, "origin": origin, **words}
                        page = report_html(
                            tally, question=asked, min_count=request.min_count, **named
                        )
                    else:
                        known = {name: word for name, word in words.items() if word is not None}
                        both = compared(earlier.tally, tally, asked, request.min_count)
                        page = beside_html(both, (earlier.name, file.name), Vocabulary(**known))
            except IsocostError as error:
                raise _with_name(error, file.path, file.name) from error
            self.close()
            key = secrets.token_hex(8)
            self.reports[key] = MadeReport(page, file.name, tally)
            for old in list(self.reports)[:-MAX_REPORTS]:
                del self.reports[old]
            return key

    def _tick(self, share: float, rows: int | None) -> None:
        """Stop a long query when the server closes; Ctrl-C would wait for it otherwise."""
        del share, rows
        if self.closing():
            got, step = "one that is closing", "start it again"
            raise FileError(Problem("report", "needs a running server", got, step))

    def state(self) -> dict[str, Any]:
        """The open file as the page shows it."""
        if self.file is None:
            return {"max_size": self.max_size, "file": None}
        looked = self.file.preview
        columns = [{**asdict(c), "scales": c.scales} for c in looked.columns]
        shown = {n: getattr(looked, n) for n in ("guess", "positive", "reading")}
        shown |= {"id": self.file.id, "name": self.file.name, "columns": columns}
        return {"max_size": self.max_size, "file": shown}


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


START_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The start page runs its own files and talks to its own server only."""

REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox allow-scripts allow-downloads allow-modals allow-popups"
)
"""The report contains its scripts.  It can reach nothing, not even the page around it."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": START_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


OPEN = "/open/"
"""The path at which codes are exchanged."""

COOKIE = "isocost"

ENOUGH = 64_000
"""Bytes of a body that must arrive before the timeout."""

FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>isocost</title>{head}
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
</head><body><h1>isocost</h1>{body}</body></html>
"""

USED = """
<p>This address has been used already, or is not valid. Each address works once.</p>
<p>The terminal in which <code>isocost serve</code> runs shows a new one.</p>
<p>If you have not used this address yourself, another user of this machine may have: stop
<code>isocost serve</code> with Ctrl-C, and start it again.</p>
"""


class Keys:
    """Codes that work once, and the secret that they are exchanged for.

    Examples
    --------
    >>> keys = Keys()
    >>> code = keys.new_code()
    >>> keys.redeem(code), keys.redeem(code)
    (True, False)
    """

    def __init__(self) -> None:
        self.path, self.cookie = secrets.token_urlsafe(18), secrets.token_urlsafe(18)
        self._codes: dict[str, Callable[[], None]] = {}

    def new_code(self, used: Callable[[], None] = lambda: None) -> str:
        """A new code; ``used`` is called when it is redeemed."""
        code = secrets.token_urlsafe(18)
        self._codes[code] = used
        return code

    def redeem(self, code: str) -> bool:
        """True if a code is valid; it works only once."""
        used = self._codes.pop(code, None)
        if used is not None:
            used()
        return used is not None

    def admit(self, path: str, headers: Headers) -> bool:
        """True if a request has both secrets: the path and the cookie."""
        folder = path.removeprefix("/").partition("/")[0]
        # Another server of this machine may have set a cookie of the same name.
        cookies = [part.strip() for line in headers.getlist("cookie") for part in line.split(";")]
        known = [_same(cookie, f"{COOKIE}={self.cookie}") for cookie in cookies]
        return _same(folder, self.path) and any(known)

    async def exchange(self, request: Request) -> Response:
        """Set the cookie in exchange for a code, and continue to the page."""
        from starlette.responses import HTMLResponse

        # HEAD, which programs send to see where a link leads, is not a visit.
        if request.method != "GET" or not self.redeem(request.path_params["code"]):
            return HTMLResponse(FRAME.format(head="", body=USED), 403)
        # Not a redirect: after a click on another site, browsers would not send the cookie.
        to = f"/{self.path}/"
        head = f'<meta http-equiv="refresh" content="0; url={to}">'
        response = HTMLResponse(FRAME.format(head=head, body=f'<p><a href="{to}">Continue</a></p>'))
        response.set_cookie(COOKIE, self.cookie, path=to, httponly=True, samesite="strict")
        return response


def _same(text: str, secret: str) -> bool:
    return secrets.compare_digest(text.encode(), secret.encode())


class HostGuard:
    """The application behind checks of host, origin and secrets; responses get strict headers."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], keys: Keys) -> None:
        self.app, self.hosts, self.keys = app, frozenset(hosts), keys
        self.origins = {f"http://{host}" for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        from starlette.datastructures import Headers, MutableHeaders
        from starlette.responses import PlainTextResponse

        async def send_sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app: ASGIApp = self.app
        if scope["type"] == "http":
            refusal = self._refusal(Headers(scope=scope), scope["path"])
            if refusal:
                app = PlainTextResponse(f"isocost: {refusal[1]}\n", refusal[0])
        await app(scope, receive, send_sealed)

    def _refusal(self, headers: Headers, path: str) -> tuple[int, str] | None:
        if any(len(headers.getlist(name)) > 1 for name in ("host", "origin")):
            return 400, "a request must have one Host and at most one Origin"
        if headers.get("host", "") not in self.hosts:
            return 421, "this page answers to the address that isocost serve printed, and no other"
        if headers.get("origin") not in {None, *self.origins}:
            return 403, "another page sent this request; only isocost's own page may"
        if not path.startswith(OPEN) and not self.keys.admit(path, headers):
            return 404, "this browser has no key; open the last address that isocost serve printed"
        return None


def impatient(seconds: float) -> Any:
    """The protocol of a server that closes slow connections.

    A request must be complete after so many seconds; of a large body, some must have arrived.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _received = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            before = self.conn.their_state
            is_first = before is h11.IDLE and not self._received
            super().data_received(data)
            if is_first or self.conn.their_state is not before:
                self._wait()
            self._received += len(data)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None

        def _wait(self) -> None:
            """Start the timer if the client has something to send."""
            self._stop()
            self._received = 0
            if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
                self._timer = self.loop.call_later(seconds, self._judge)

        def _judge(self) -> None:
            in_body = self.conn.their_state is h11.SEND_BODY
            is_read = in_body and not self.cycle.response_complete
            if is_read and (self._received >= ENOUGH or self.flow.read_paused):
                self._wait()
            else:
                self.transport.abort()

    return Impatient


LOOPBACK = "127.0.0.1"

TIMEOUT = 30.0
"""Seconds that a connection may be silent while it has something to send."""

MAX_REQUEST = 100_000
"""The largest request for a report, in bytes."""


def serve(
    data: str | None = None,
    *,
    port: int = 0,
    browser: bool = True,
    max_size: int = MAX_SIZE,
    timeout: float = TIMEOUT,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the page until Ctrl-C; the options are those of ``isocost serve``.

    ``say`` prints the address of the page, which works once; after that, another is printed.
    """
    rule, step = "needs the packages starlette and uvicorn", 'pip install "isocost[serve]"'
    for module in ("starlette", "uvicorn"):
        require_package(module, "isocost serve", rule, step)
    import uvicorn

    delete_leftovers()
    with closing(Session(max_size)) as session:
        if data is not None:
            session.open(Path(data), Path(data).name)
        with _listening(port) as listener:
            port, keys = listener.getsockname()[1], Keys()
            _invite(f"http://{LOOPBACK}:{port}{OPEN}", keys, browser, say)
            config = uvicorn.Config(
                application(session, port, keys),
                http=impatient(timeout),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=2,
            )
            # A connection that a browser leaves open is no error.
            logging.getLogger("uvicorn.error").addFilter(
                lambda record: "timeout graceful shutdown exceeded" not in record.getMessage()
            )
            server = uvicorn.Server(config)
            session.closing = lambda: server.should_exit
            with _hanging_up():
                server.run(sockets=[listener])


def _invite(url: str, keys: Keys, browser: bool, say: Callable[[str], None]) -> None:
    """Print an address that works once, and open another in the browser."""

    def again() -> None:
        say(f"To open it in another browser: {url}{keys.new_code(again)}")

    say(
        f"isocost is at {url}{keys.new_code(again)}\n"
        "The address works once; when it is used, another is shown here.\n"
        "Nothing leaves this machine. Ctrl-C closes it."
    )
    if browser:
        # Some browsers run in the terminal and would not give it back.
        address = f"{url}{keys.new_code()}"
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


@contextmanager
def _hanging_up() -> Iterator[None]:
    """Close as on Ctrl-C when the terminal is closed, or a private folder would stay behind."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGHUP"):
        yield
        return
    before = signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        step = "leave it out to take any that is free"
        got = f"{port}: {error}"
        raise UsageError(Problem("port", "must be free to listen on", got, step)) from error


def application(session: Session, port: int, keys: Keys) -> HostGuard:
    """The pages and what they request, behind the guard."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Mount, Route

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        del app
        yield
        # Here, because a signal that ends the process may leave no other chance.
        session.close()

    def reading(request: Request) -> FileReading:
        asked = request.query_params.get
        return FileReading(asked("decimal"), asked("encoding"), asked("sheet"))

    async def state(request: Request) -> Response:
        del request
        return JSONResponse(session.state())

    async def upload(request: Request) -> Response:
        name = request.query_params.get("name", "").replace("\\", "/").split("/")[-1][-200:]
        sent = Upload(name)
        try:
            await _receive(request, sent, session.max_size)
            await run_in_threadpool(session.open, sent.path, name, sent, reading(request))
        except BaseException:
            sent.close()
            raise
        return JSONResponse(session.state())

    async def look(request: Request) -> Response:
        await run_in_threadpool(session.look_again, reading(request))
        return JSONResponse(session.state())

    async def make_report(request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_REQUEST:
                step = "send the form of the page"
                raise TooLargeError(Problem("request", "must be small", "100 kB or more", step))
        key = await run_in_threadpool(session.report, ReportRequest.read(body))
        return JSONResponse({"report": f"report/{key}.html"})

    async def show_report(request: Request) -> Response:
        made = session.reports.get(request.path_params["key"])
        if made is None:
            raise FileError(GONE)
        headers = {"Content-Security-Policy": REPORT_POLICY}
        if "download" in request.query_params:
            headers["Content-Disposition"] = 'attachment; filename="report.html"'
        return HTMLResponse(made.page, headers=headers)

    async def failure(request: Request, error: Exception) -> Response:
        """An error in four parts, as the page shows it; one about the sheet names the sheets."""
        del request
        if isinstance(error, ClientDisconnect):
            # Nobody receives it: the client has disconnected, or was too slow.
            return Response(status_code=400)
        if isinstance(error, IsocostError):
            problems, code = error.problems, 413 if isinstance(error, TooLargeError) else 422
        else:
            got = f"{type(error).__name__}: {error}"[:300]
            step = "the terminal shows where; please report it"
            problems, code = (Problem("isocost", "must not fail", got, step),), 500
        told = [
            {
                **vars(problem),
                "controls": controls_of(problem),
                **({"choices": session.sheets} if problem.name == "sheet" else {}),
            }
            for problem in problems
        ]
        return JSONResponse({"problems": told}, code)

    def file(name: str, kind: str) -> Callable[[Request], Response]:
        return lambda _: Response(page_file(name), media_type=kind)

    kinds = {"": "text/html", "page.css": "text/css", "serve.css": "text/css"}
    kinds |= {"serve.js": "text/javascript"}
    routes = [
        *(Route(f"/{name}", file(name or "serve.html", kind)) for name, kind in kinds.items()),
        Route("/data", state),
        Route("/data", upload, methods=["POST"]),
        Route("/look", look, methods=["POST"]),
        Route("/report", make_report, methods=["POST"]),
        Route("/report/{key:str}.html", show_report),
    ]
    app = Starlette(
        routes=[Route(f"{OPEN}{{code}}", keys.exchange), Mount(f"/{keys.path}", routes=routes)],
        lifespan=lifespan,
        exception_handlers=dict.fromkeys((IsocostError, ClientDisconnect, Exception), failure),
    )
    return HostGuard(app, [f"{host}:{port}" for host in (LOOPBACK, "localhost")], keys)


async def _receive(request: Request, sent: Upload, limit: int) -> None:
    """Write the body to a file as it arrives, up to the limit."""

    def check(size: int) -> None:
        if size > limit:
            step = (
                "start isocost serve with a larger --max-size, or name the file when starting it: "
                "isocost serve FILE reads files of any size"
            )
            rule = f"must be at most {limit / 1e6:,.6g} MB here"
            raise TooLargeError(Problem("file", rule, f"{size / 1e6:,.6g} MB or more", step))

    announced = request.headers.get("content-length", "")
    check(int(announced) if announced.isdigit() else 0)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        check(size)
        sent.file.write(chunk)
    sent.file.flush()
    if size == 0:
        step = "choose a file that has rows"
        raise FileError(Problem("file", "must contain data", "0 bytes", step))


# Two files side by side

ERROR = 0.05
"""The chance that any interval in one table of changes misses."""


@dataclass(frozen=True)
class Change:
    """One number of a group, of all or of their largest difference, in two files.

    ``spans`` are intervals of the two numbers, each alone; ``interval`` is that of the change, for
    all changes of one measure at once.
    """

    name: str
    before: float
    after: float
    spans: tuple[Interval | None, Interval | None] = (None, None)
    interval: Interval | None = None
    is_group: bool = False

    @property
    def change(self) -> float:
        """By how much the number rose."""
        return self.after - self.before

    @property
    def is_established(self) -> bool:
        """True if the interval leaves out zero."""
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)


@dataclass(frozen=True)
class TwoAudits:
    """The audits of the groups that two tallies of different people can compare.

    ``audits`` have intervals for each number alone, ``strict`` so wide ones that those of the
    changes of one measure hold all at once.  Counts below ``min_count`` are not to be read off.
    """

    audits: tuple[Audit, Audit]
    strict: tuple[Audit, Audit]
    left_out: list[Group]
    min_count: int = 0

    def changes(self, key: str) -> list[Change]:
        """The changes of a number: for each group, for all people, and between groups.

        The interval of a change is that of a difference of two groups: MOVER, from the intervals
        of both at the level 1 - 0.05 / m for m changes (Bonferroni).
        """

        def change(name: str, of: Callable[[Audit], Any], is_group: bool = False) -> Change:
            """The change of a number, of which ``of`` gives the value and the interval."""
            every = (*self.audits, *self.strict)
            (a, of_a), (b, of_b), (_, wide_a), (_, wide_b) = map(of, every)
            interval = difference(b, wide_b, a, wide_a) if wide_a and wide_b else None
            return Change(name, a, b, (of_a, of_b), interval, is_group)

        def own(one: Audit, group: Group | None = None) -> tuple[float, Interval | None]:
            record = one.overall if group is None else one.groups[group]
            return record.values.get(key, math.nan), record.intervals.get(key)

        def spread(one: Audit) -> tuple[float, Interval | None]:
            if key not in one.disparities or one.intervals is None:
                return math.nan, None
            return one.disparities[key].difference, one.intervals.disparities.get(key)

        names = shown_names(self.audits[0].groups)
        lines = [change(name, partial(own, group=g), is_group=True) for g, name in names.items()]
        # If a count is hidden, the totals would reveal it.
        if not self.min_count:
            lines += [change("All", own), change("Highest minus lowest", spread)]
        return [line for line in lines if math.isfinite(line.change)]


def compared(first: Tally, second: Tally, question: Question, min_count: int = 0) -> TwoAudits:
    """Compare two tallies of different people, such as those of two periods.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> both = compared(compas(), compas(), Question("fpr"))
    >>> [line.change for line in both.changes("cost")]
    [0.0, 0.0, 0.0, 0.0]
    """
    least = max(question.min_group, min_count)
    enough = [compared_groups(tally, least) for tally in (first, second)]
    groups = [group for group in enough[0] if group in enough[1]]
    if len(groups) < 2:
        got = f"{len(groups)}: {list(first.groups)} and {list(second.groups)}"[:200]
        step = "choose files whose groups have the same names"
        raise DataError(Problem("both files", "must share at least two groups", got, step))

    def audits(confidence: float, replicates: int) -> tuple[Audit, Audit]:
        asked = question.but(confidence=confidence, replicates=replicates)
        a, b = (audited(tally.select(groups), asked) for tally in (first, second))
        return a, b

    lines = len(groups) + 2
    left_out = [g for g in dict.fromkeys([*first.groups, *second.groups]) if g not in groups]
    # As many draws as intervals at this level need.
    draws = max(2000, math.ceil(10.0 * lines / ERROR) + 1)
    strict = audits(1.0 - ERROR / lines, draws if draws <= MOST_REPLICATES else 0)
    return TwoAudits(audits(1.0 - ERROR, 2000), strict, left_out, min_count)


def beside_html(
    comparison: TwoAudits, names: Sequence[str], vocabulary: Vocabulary = NEUTRAL
) -> str:
    """A page with both audits side by side, and every number that changed."""
    audits = comparison.audits
    figures = max(map(figures_of, audits), key=lambda one: one.decimals)
    sides = [
        {
            "name": name,
            "rows": f"{one.tally.n:,.15g}",
            "said": statement(one, spoken_names(one.groups), vocabulary=vocabulary).headline,
        }
        for name, one in zip(names, audits, strict=True)
    ]
    return filled(
        "beside.html",
        (),
        sides=sides,
        headline=_headline(comparison, figures),
        axis=cost_words(audits[0], vocabulary)["axis"],
        tables=list(_tables(comparison, figures.decimals + 2)),
        left_out=[name.text for name in spoken_names(comparison.left_out).values()],
    )


def _headline(comparison: TwoAudits, figures: Figures) -> Sentence:
    lines = [line for line in comparison.changes("cost") if line.is_established]
    told = [
        fill(
            SENTENCES["beside_rose" if line.change > 0 else "beside_fell"],
            group=Name(line.name),
            by=figures.difference(abs(line.change)),
            low=figures.bare(min(map(abs, line.interval or ()))),
            high=figures.bare(max(map(abs, line.interval or ()))),
        )
        for line in lines
        if line.is_group
    ]
    if not told:
        return fill(SENTENCES["beside_same"])
    return fill(SENTENCES["beside_changed"], changes=joined(told))


def _tables(comparison: TwoAudits, decimals: int) -> list[Mapping[str, Any]]:
    """A table for each measure: the cost first, and open where a change is established."""
    first = comparison.audits[0]
    titles = {key: title for key, title in row_titles(first).items() if key != "n"}
    tables: list[Mapping[str, Any]] = []
    for key in ["cost", *(key for key in titles if key != "cost")]:
        hides = key in first.measures and first.measures[key].uses_threshold
        if hides and comparison.min_count:
            continue
        lines = comparison.changes(key)
        rows = []
        for line in lines:
            before, after = line.spans
            cells = [_cell(line.before, before, decimals), _cell(line.after, after, decimals)]
            cells.append(_cell(line.change, line.interval, decimals, "+"))
            rows.append({"name": line.name, "cells": cells, "is_established": line.is_established})
        count = sum(line.is_established for line in lines)
        label, hint = titles[key]
        tables.append({"label": label, "hint": hint, "rows": rows, "count": count, "key": key})
    return tables


def _cell(value: float, span: Interval | None, decimals: int, sign: str = "") -> tuple[str, str]:
    def text(one: float) -> str:
        return f"{sign if one > 0 else ''}{number(one, decimals)}"

    return text(value), f"{text(span[0])} to {text(span[1])}" if span else ""
