"""Who may speak to the local page: only pages that it served itself.

Any page of the web that is open in the same browser can send requests to this machine.  Three
things keep it out: the Host must be this machine (else a name that was pointed here afterwards
could read answers), the Origin must be this page, and the address holds a secret.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["REPORT_POLICY", "START_POLICY", "Guard"]

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


class Guard:
    """The application behind checks of host, origin and secret, with strict headers on answers."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], token: str) -> None:
        self.app, self.hosts, self.token = app, frozenset(hosts), token
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

    def _refusal(self, headers: Mapping[str, str], path: str) -> tuple[int, str] | None:
        if headers.get("host", "") not in self.hosts:
            return 421, "this page answers to the address that isocost serve printed, and no other"
        if headers.get("origin") not in {None, *self.origins}:
            return 403, "another page sent this request; only isocost's own page may"
        given = path.removeprefix("/").partition("/")[0].encode()
        if not secrets.compare_digest(given, self.token.encode()):
            return 404, "open the whole address that isocost serve printed, with its secret part"
        return None
