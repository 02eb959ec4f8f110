"""The commands, and what they have in common: errors and exit codes.

Exit codes: 0 done; 1 infeasible, not advised, a disparity above --fail-above, or an alarm of
watch; 2 bad usage or bad data; 70 a defect of isocost itself; 130 interrupted by Ctrl-C, 143 by
SIGTERM.
"""

from __future__ import annotations

import functools
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from isocost import __version__
from isocost.cli.commands import (
    apply,
    audit,
    compare,
    fit,
    plan,
    recalibrate,
    sql,
    tally,
    watch,
)
from isocost.cli.doctor import doctor
from isocost.cli.options import expanded
from isocost.cli.output import complain, remember_typed, standard_streams, use_color
from isocost.cli.page_commands import demo, report, serve, verify
from isocost.errors import (
    InfeasibleError,
    IsocostError,
    IsocostWarning,
    NotAdvisedError,
    Problem,
)

app = typer.Typer(
    name="isocost",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Keep risk scores calibrated and make their errors cost every group the same.",
    epilog="Exit codes: 0 done; 1 infeasible, not advised, above --fail-above, or an alarm; 2 bad "
    "usage or bad data.",
)


ANYWHERE = ("--debug", "--no-color")
"""Options of every command, which may appear anywhere in the line."""


INTERRUPTED = 128 + signal.SIGINT


class _InterruptedError(Exception):
    """Ctrl-C or SIGTERM, under a name that typer does not turn into exit code 1."""


def _command(function: Callable[..., Any]) -> None:
    run = expanded(function)

    @functools.wraps(run)
    def guarded(**options: Any) -> Any:
        try:
            return run(**options)
        except KeyboardInterrupt as error:
            raise _InterruptedError from error

    app.command()(guarded)


_COMMANDS = (
    audit, plan, recalibrate, fit, compare, apply, sql, tally, watch, report, verify,
    serve, demo, doctor,
)  # fmt: skip
for _function in _COMMANDS:
    _command(_function)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"isocost {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (anywhere in the line).")
    ] = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", help="Print without colours (anywhere in the line).")
    ] = False,
) -> None:
    # These options are handled before a command runs.
    del version, debug, no_color


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    received = list(sys.argv[1:] if arguments is None else arguments)
    rest = [argument for argument in received if argument not in ANYWHERE]
    use_color("--no-color" not in received)
    remember_typed(received)
    with warnings.catch_warnings(), standard_streams() as lost:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", IsocostWarning)
        warnings.showwarning = _show_warning
        with _terminable() as ended:
            code = _run(rest, debug="--debug" in received)
        if ended and code == INTERRUPTED:
            code = 128 + signal.SIGTERM
        if why := lost():
            step = "free space, or redirect the output to another file"
            problem = Problem("standard output", "must be writable", why, step)
            code = complain(problem, code or 2)
    sys.exit(code)


@contextmanager
def _terminable() -> Iterator[list[int]]:
    """Let SIGTERM end the command as Ctrl-C does; the list shows whether it was received."""
    ended: list[int] = []

    def stop(number: int, frame: object) -> None:
        del frame
        # Once: a second one must not interrupt the cleanup.
        if not ended:
            ended.append(number)
            raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        # The caller handles it.
        yield ended
        return
    signal.signal(signal.SIGTERM, stop)
    try:
        yield ended
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(arguments: list[str], debug: bool) -> int:
    try:
        app(arguments, prog_name="isocost")
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else 0
    except (_InterruptedError, KeyboardInterrupt):
        return complain("interrupted; nothing was written", INTERRUPTED)
    except Exception as error:
        if debug:
            traceback.print_exc()
        if isinstance(error, IsocostError):
            return complain(error, 1 if isinstance(error, InfeasibleError | NotAdvisedError) else 2)
        text = f"unexpected {type(error).__name__}: {error}"
        return complain(f"{text}\nThis is a defect of isocost; --debug shows where.", 70)
    return 0


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    del category, filename, lineno, file, line
    complain(f"warning: {message}", 0)
