"""The command line; each command is one function of a module here."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        # Here, because importing takes a while, and Ctrl-C may come before it is done.
        from isocost.cli.app import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run(arguments)
