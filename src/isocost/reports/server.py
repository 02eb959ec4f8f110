"""A local page that makes the report of a file, and who may open it."""

from __future__ import annotations

import logging
import secrets
import signal
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isocost.engines.kinds import FileReading
from isocost.errors import FileError, IsocostError, Problem, UsageError, require_package
from isocost.reports.session import (
    GONE,
    MAX_SIZE,
    ReportRequest,
    Session,
    TooLargeError,
    Upload,
    controls_of,
    delete_leftovers,
)

if TYPE_CHECKING:
    import asyncio

    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
"""Where codes are exchanged."""

COOKIE = "isocost"

ENOUGH = 64_000
"""Bytes of a body that must arrive before the timeout."""

PAGE = """<!doctype html>
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
        """Whether a code is valid; it works only once."""
        used = self._codes.pop(code, None)
        if used is not None:
            used()
        return used is not None

    def admit(self, path: str, headers: Headers) -> bool:
        """Whether a request has both secrets: the path and the cookie."""
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
            return HTMLResponse(PAGE.format(head="", body=USED), 403)
        # Not a redirect: after a click on another site, browsers would not send the cookie.
        to = f"/{self.path}/"
        head = f'<meta http-equiv="refresh" content="0; url={to}">'
        response = HTMLResponse(PAGE.format(head=head, body=f'<p><a href="{to}">Continue</a></p>'))
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
    """Serve the page until Ctrl-C.

    Parameters
    ----------
    data : str, optional
        A file or a glob to open first.
    port : int
        Port on the loopback address; 0 for any free one.
    browser : bool
        Whether to open the page in the browser.
    max_size : int
        The largest file that may be uploaded, in bytes.
    timeout : float
        Seconds that a connection may be silent while it has something to send.
    say : callable
        Prints the address of the page.  An address works once; after that, another is printed.
    """
    need_server()
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


def need_server() -> None:
    """Raise if the server is not installed."""
    rule, step = "needs the packages starlette and uvicorn", 'pip install "isocost[serve]"'
    for module in ("starlette", "uvicorn"):
        require_package(module, "isocost serve", rule, step)


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        step = "leave it out to take any that is free"
        got = f"{port}: {error}"
        raise UsageError(Problem("port", "must be free to listen on", got, step)) from error
    return listener


def application(session: Session, port: int, keys: Keys) -> HostGuard:
    """The pages and what they request, behind the guard."""
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect
    from starlette.routing import Mount, Route

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        del app
        yield
        # Here, because a signal that ends the process may leave no other chance.
        session.close()

    answers = Answers(session)
    routes = [
        Route("/", _file("serve.html", "text/html")),
        Route("/page.css", _file("page.css", "text/css")),
        Route("/serve.css", _file("serve.css", "text/css")),
        Route("/serve.js", _file("serve.js", "text/javascript")),
        Route("/data", answers.state),
        Route("/data", answers.upload, methods=["POST"]),
        Route("/look", answers.look, methods=["POST"]),
        Route("/report", answers.make_report, methods=["POST"]),
        Route("/report/{key:str}.html", answers.show_report),
    ]
    failures = {IsocostError: answers.failure, Exception: answers.failure}
    app = Starlette(
        routes=[Route(f"{OPEN}{{code}}", keys.exchange), Mount(f"/{keys.path}", routes=routes)],
        lifespan=lifespan,
        exception_handlers={**failures, ClientDisconnect: _disconnected},
    )
    return HostGuard(app, [f"{host}:{port}" for host in (LOOPBACK, "localhost")], keys)


class Answers:
    """The answers to what the page requests; each method handles one kind of request."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def state(self, request: Request) -> Response:
        """What the page shows."""
        del request
        return _json(self.session.to_dict())

    async def upload(self, request: Request) -> Response:
        """Open a file that is sent."""
        from starlette.concurrency import run_in_threadpool

        name = request.query_params.get("name", "").replace("\\", "/").split("/")[-1][-200:]
        reading = _reading(request)
        sent = Upload(name, self.session.folder)
        try:
            await _receive(request, sent, self.session.max_size)
            await run_in_threadpool(self.session.open, sent.path, name, sent, reading)
        except BaseException:
            sent.close()
            raise
        return _json(self.session.to_dict())

    async def look(self, request: Request) -> Response:
        """Look at the open file again, read in another way."""
        from starlette.concurrency import run_in_threadpool

        await run_in_threadpool(self.session.look_again, _reading(request))
        return _json(self.session.to_dict())

    async def make_report(self, request: Request) -> Response:
        """Make a report, and answer with its address."""
        from starlette.concurrency import run_in_threadpool

        wanted = ReportRequest.read(await _body(request))
        key = await run_in_threadpool(self.session.report, wanted)
        return _json({"report": f"report/{key}.html"})

    async def show_report(self, request: Request) -> Response:
        """A report that was made, to show or to download."""
        from starlette.responses import HTMLResponse

        made = self.session.reports.get(request.path_params["key"])
        if made is None:
            raise FileError(GONE)
        headers = {"Content-Security-Policy": REPORT_POLICY}
        if "download" in request.query_params:
            headers["Content-Disposition"] = 'attachment; filename="report.html"'
        return HTMLResponse(made.page, headers=headers)

    async def failure(self, request: Request, error: Exception) -> Response:
        """An error in four parts, as the page shows it; one about the sheet names the sheets."""
        del request
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
                **({"choices": self.session.sheets} if problem.name == "sheet" else {}),
            }
            for problem in problems
        ]
        return _json({"problems": told}, code)


def _json(content: dict[str, Any], code: int = 200) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(content, code)


def _reading(request: Request) -> FileReading:
    """How the page asks for a file to be read."""
    asked = request.query_params.get
    return FileReading(asked("decimal"), asked("encoding"), asked("sheet"))


def _file(name: str, kind: str) -> Callable[[Request], Response]:
    """A response with one of the files that come with isocost."""
    text = (resources.files("isocost.reports") / "page" / name).read_text(encoding="utf-8")

    def answer(request: Request) -> Response:
        from starlette.responses import Response

        del request
        return Response(text, media_type=kind)

    return answer


async def _receive(request: Request, sent: Upload, limit: int) -> None:
    """Write the body to a file as it arrives, up to the limit."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(int(announced), limit)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _too_large(size, limit)
        sent.file.write(chunk)
    sent.finish()
    if size == 0:
        step = "choose a file that has rows"
        raise FileError(Problem("file", "must contain data", "0 bytes", step))


def _too_large(size: int, limit: int) -> TooLargeError:
    rule, got = f"must be at most {limit / 1e6:,.6g} MB here", f"{size / 1e6:,.6g} MB or more"
    step = (
        "start isocost serve with a larger --max-size, or name the file when starting it: "
        "isocost serve FILE reads files of any size"
    )
    return TooLargeError(Problem("file", rule, got, step))


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_REQUEST:
            step = "send the form of the page"
            raise TooLargeError(Problem("request", "must be small", "100 kB or more", step))
    return body


async def _disconnected(request: Request, error: Exception) -> Response:
    """A response that nobody receives: the client has disconnected, or was too slow."""
    from starlette.responses import Response

    del request, error
    return Response(status_code=400)
