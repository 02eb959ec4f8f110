"""isocost serve: the report from a page on this machine."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from isocost.cli.output import say
from isocost.errors import Problem, UsageError

__all__ = ["bytes_of", "serve"]

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def serve(
    data: Annotated[
        str | None, typer.Argument(help="A file, a glob or a folder to start with.")
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open the page in the browser.")
    ] = False,
    max_size: Annotated[
        str, typer.Option("--max-size", help="The largest file that may be dropped on the page.")
    ] = "200MB",
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0.1, help="Seconds until a silent connection is closed."),
    ] = 30.0,
) -> None:
    """Open a page on this machine that makes a report of a file; nothing leaves the machine."""
    from isocost.show.server import serve as run

    try:
        size, browser = bytes_of(max_size), not no_browser
        run(data, port=port, browser=browser, max_size=size, timeout=timeout, say=say)
    except KeyboardInterrupt:
        # Ctrl-C is how this command ends, so it is no failure.
        say("\nClosed; nothing was kept.")


def bytes_of(size: str) -> int:
    """A size as people write it, in bytes.

    Examples
    --------
    >>> bytes_of("200MB"), bytes_of("1.5 gb"), bytes_of("4096")
    (200000000, 1500000000, 4096)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?)B?\s*", size, re.IGNORECASE | re.ASCII)
    number = round(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if number < 1:
        step = "for example --max-size 500MB"
        raise UsageError(Problem("--max-size", "must be a size such as 200MB", repr(size), step))
    return number
