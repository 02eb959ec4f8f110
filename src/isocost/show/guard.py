"""Who may speak to the local page: only pages that it served itself, in a browser let in by a code.

Any page of the web that is open in the same browser can send requests to this machine.  Three
things keep it out: the Host must be this machine (else a name that was pointed here afterwards
could read answers), the Origin must be this page, and there is a secret.

The secret is in no address that others can see.  Other users of the machine can read the command
line that starts the browser, so the address in it holds a code that works once.  It is exchanged
for a cookie, and for a path that keeps the cookie from servers at other ports, to which browsers
would send it too.

A connection that stops sending is closed, so that it holds nothing forever.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["OPEN", "REPORT_POLICY", "START_POLICY", "Guard", "Keys", "impatient"]

START_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The start page runs its own files and speaks to its own server, no more."""

REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox allow-scripts allow-downloads allow-modals allow-popups"
)
"""The report holds its own scripts.  It can reach nothing, not even the page around it."""

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
"""How many bytes of a body must come before patience ends."""

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
        self.place, self.cookie = secrets.token_urlsafe(18), secrets.token_urlsafe(18)
        self._codes: dict[str, Callable[[], None]] = {}

    def new_code(self, used: Callable[[], None] = lambda: None) -> str:
        """A code, and what to do when it is used."""
        code = secrets.token_urlsafe(18)
        self._codes[code] = used
        return code

    def redeem(self, code: str) -> bool:
        """Whether a code is valid; from now on it is not."""
        used = self._codes.pop(code, None)
        if used is not None:
            used()
        return used is not None

    def fit(self, path: str, headers: Headers) -> bool:
        """Whether a request has the secret: the path, and the cookie."""
        place = path.removeprefix("/").partition("/")[0]
        # Another server of this machine may have set a cookie of the same name.
        given = [part.strip() for line in headers.getlist("cookie") for part in line.split(";")]
        known = [_same(one, f"{COOKIE}={self.cookie}") for one in given]
        return _same(place, self.place) and any(known)

    async def exchange(self, request: Request) -> Response:
        """Give the cookie for a code, and go on to the page."""
        from starlette.responses import HTMLResponse

        # HEAD, as programs send that look where a link leads, is no visit.
        if request.method != "GET" or not self.redeem(request.path_params["code"]):
            return HTMLResponse(PAGE.format(head="", body=USED), 403)
        # Not a redirect: after a click in a page of the web, browsers would keep the cookie back.
        to = f"/{self.place}/"
        head = f'<meta http-equiv="refresh" content="0; url={to}">'
        answer = HTMLResponse(PAGE.format(head=head, body=f'<p><a href="{to}">Go on</a></p>'))
        answer.set_cookie(COOKIE, self.cookie, path=to, httponly=True, samesite="strict")
        return answer


def _same(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode(), secret.encode())


class Guard:
    """The application behind checks of host, origin and secret, with strict headers on answers."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], keys: Keys) -> None:
        self.app, self.hosts, self.keys = app, frozenset(hosts), keys
        self.origins = {f"http://{host}" for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        from starlette.datastructures import Headers, MutableHeaders
        from starlette.responses import PlainTextResponse

        async def sealed(message: Message) -> None:
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
        await app(scope, receive, sealed)

    def _refusal(self, headers: Headers, path: str) -> tuple[int, str] | None:
        if any(len(headers.getlist(name)) > 1 for name in ("host", "origin")):
            return 400, "a request must have one Host and at most one Origin"
        if headers.get("host", "") not in self.hosts:
            return 421, "this page answers to the address that isocost serve printed, and no other"
        if headers.get("origin") not in {None, *self.origins}:
            return 403, "another page sent this request; only isocost's own page may"
        if not path.startswith(OPEN) and not self.keys.fit(path, headers):
            return 404, "this browser has no key; open the last address that isocost serve printed"
        return None


def impatient(seconds: float) -> Any:
    """The protocol of a server that closes connections on which too little comes.

    A request must be whole after so many seconds; of a large body, some must have come.
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
            """Give time for what has to come, if anything has."""
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
