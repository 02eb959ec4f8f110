"""isocost serve: a page on this machine that makes a report of a file dropped on it.

It listens on the loopback address only.  An uploaded file is kept on disk, without a name, until
its report is made; reports are kept in memory.  Nothing else is written, and nothing is sent
anywhere.
"""

from __future__ import annotations

import signal
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isocost.errors import FileError, IsocostError, MissingDependencyError, Problem, UsageError
from isocost.show.desk import GONE, MAX_SIZE, Desk, TooLargeError, Upload, Wish, delete_leftovers
from isocost.show.guard import OPEN, REPORT_POLICY, Guard, Keys, impatient

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["application", "serve"]

LOOPBACK = "127.0.0.1"

TIMEOUT = 30.0
"""How many seconds a connection may be silent while it has something to send."""

MAX_WISH = 100_000
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
        A file, or a glob, that the page starts with.
    port : int
        Where to listen on the loopback address; 0 takes a port that is free.
    browser : bool
        Whether to open the page in the browser.
    max_size : int
        The largest file that is taken, in bytes.
    timeout : float
        How many seconds a connection may be silent while it has something to send.
    say : callable
        Told the address of the page; it works once, and when it is used, another is told.
    """
    need_server()
    import uvicorn

    delete_leftovers()
    with closing(Desk(max_size)) as desk:
        if data is not None:
            desk.take(Path(data), Path(data).name)
        with _listening(port) as door:
            port, keys = door.getsockname()[1], Keys()
            _invite(f"http://{LOOPBACK}:{port}{OPEN}", keys, browser, say)
            config = uvicorn.Config(
                application(desk, port, keys),
                http=impatient(timeout),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=2,
            )
            server = uvicorn.Server(config)
            desk.closing = lambda: server.should_exit
            with _hanging_up():
                server.run(sockets=[door])


def _invite(url: str, keys: Keys, browser: bool, say: Callable[[str], None]) -> None:
    """Tell an address that works once, and have the browser open another."""

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
    """Close as at Ctrl-C when the terminal is closed; else a private folder would stay behind."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGHUP"):
        yield
        return
    before = signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def need_server() -> None:
    """Say how to install the server, if it is not there."""
    try:
        import starlette
        import uvicorn
    except ImportError as error:
        raise MissingDependencyError(
            Problem(
                "isocost serve",
                "needs the packages starlette and uvicorn",
                str(error),
                'pip install "isocost[serve]"',
            )
        ) from error
    del starlette, uvicorn


def _listening(port: int) -> socket.socket:
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((LOOPBACK, port))
        door.listen()
    except (OSError, OverflowError) as error:
        door.close()
        step = "leave it out to take any that is free"
        got = f"{port}: {error}"
        raise UsageError(Problem("port", "must be free to listen on", got, step)) from error
    return door


def application(desk: Desk, port: int, keys: Keys) -> Guard:
    """The pages and what they ask for, behind their guard."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect
    from starlette.responses import HTMLResponse, JSONResponse
    from starlette.routing import Mount, Route

    async def state(request: Request) -> Response:
        del request
        return JSONResponse(desk.to_dict())

    async def upload(request: Request) -> Response:
        name = request.query_params.get("name", "").replace("\\", "/").split("/")[-1][-200:]
        sent = desk.upload(name)
        try:
            await _receive(request, sent, desk.max_size)
            await run_in_threadpool(desk.take, sent.path, name, sent)
        except BaseException:
            sent.close()
            raise
        return JSONResponse(desk.to_dict())

    async def make(request: Request) -> Response:
        wish = Wish.read(await _body(request))
        key = await run_in_threadpool(desk.report, wish)
        return JSONResponse({"report": f"report/{key}.html"})

    async def show(request: Request) -> Response:
        page = desk.reports.get(request.path_params["key"])
        if page is None:
            raise FileError(GONE)
        headers = {"Content-Security-Policy": REPORT_POLICY}
        if "download" in request.query_params:
            headers["Content-Disposition"] = 'attachment; filename="report.html"'
        return HTMLResponse(page, headers=headers)

    routes = [
        Route("/", _file("serve.html", "text/html")),
        Route("/page.css", _file("page.css", "text/css")),
        Route("/serve.css", _file("serve.css", "text/css")),
        Route("/serve.js", _file("serve.js", "text/javascript")),
        Route("/data", state),
        Route("/data", upload, methods=["POST"]),
        Route("/report", make, methods=["POST"]),
        Route("/report/{key:str}.html", show),
    ]
    app = Starlette(
        routes=[Route(f"{OPEN}{{code}}", keys.exchange), Mount(f"/{keys.place}", routes=routes)],
        lifespan=_lifespan(desk),
        exception_handlers={IsocostError: _told, ClientDisconnect: _unheard, Exception: _told},
    )
    return Guard(app, [f"{host}:{port}" for host in (LOOPBACK, "localhost")], keys)


def _lifespan(desk: Desk) -> Callable[[Any], Any]:
    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        del app
        yield
        # Here, because a signal that ends the process may leave no other occasion.
        desk.close()

    return lifespan


def _file(name: str, kind: str) -> Callable[[Request], Response]:
    """An answer with one of the files that come with isocost."""
    text = (resources.files("isocost.show") / "page" / name).read_text(encoding="utf-8")

    def answer(request: Request) -> Response:
        from starlette.responses import Response

        del request
        return Response(text, media_type=kind)

    return answer


async def _receive(request: Request, sent: Upload, limit: int) -> None:
    """Write the body to a file as it comes, and no more than the limit."""
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
        raise FileError(Problem("file", "must hold data", "nothing, 0 bytes", step))


def _too_large(size: int, limit: int) -> TooLargeError:
    return TooLargeError(
        Problem(
            "file",
            f"must be at most {limit / 1e6:,.6g} MB here",
            f"{size / 1e6:,.6g} MB or more",
            "start isocost serve with a larger --max-size, or name the file when starting it: "
            "isocost serve FILE reads files of any size",
        )
    )


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_WISH:
            step = "send the form of the page"
            raise TooLargeError(Problem("request", "must be small", "100 kB or more", step))
    return body


async def _unheard(request: Request, error: Exception) -> Response:
    """An answer that nobody gets: the sender has hung up, or was too slow."""
    from starlette.responses import Response

    del request, error
    return Response(status_code=400)


async def _told(request: Request, error: Exception) -> Response:
    """An error as the page shows it, in four parts."""
    from starlette.responses import JSONResponse

    del request
    if isinstance(error, IsocostError):
        problems, code = error.problems, 413 if isinstance(error, TooLargeError) else 422
    else:
        got = f"{type(error).__name__}: {error}"[:300]
        step = "the terminal shows where; please report it"
        problems, code = (Problem("isocost", "must not fail", got, step),), 500
    return JSONResponse({"problems": [vars(problem) for problem in problems]}, code)
