"""The commands, and what they have in common: errors and exit codes.

Exit codes: 0 done; 1 infeasible, not advised, a disparity above --fail-above, or an alarm of
watch; 2 bad usage or bad data; 70 a defect of isocost itself; 130 interrupted by Ctrl-C, 143 by
SIGTERM.
"""

from __future__ import annotations

import functools
import inspect
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from isocost import __version__
from isocost.cli.commands import (
    apply,
    audit,
    bounds,
    compare,
    fit,
    look,
    plan,
    recalibrate,
    sql,
    tally,
    watch,
)
from isocost.cli.config import defaults_for, options_of
from isocost.cli.doctor import doctor
from isocost.cli.options import expanded
from isocost.cli.output import complain, remember_typed, standard_streams
from isocost.cli.page_commands import demo, report, serve, verify
from isocost.errors import (
    InfeasibleError,
    IsocostError,
    IsocostWarning,
    NotAdvisedError,
    Problem,
    speaking,
)
from isocost.readings import SHELL


class _Group(TyperGroup):
    """The list of commands, by section, each with its whole sentence; made when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        del ctx
        # Typer suggests the names that it finds here.
        names: Any = dict.fromkeys(COMMANDS)
        self.commands = names
        return _command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            text = inspect.cleandoc(COMMANDS[name].function.__doc__ or "").split("\n\n")[0]
            # The same width in all sections, so that they line up.
            sections.setdefault(COMMANDS[name].section, []).append((f"{name:<11}", text))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)


class _Command(TyperCommand):
    """A command whose options stand in groups, with an example and a page after them."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                usual = "Arguments" if parameter.param_type_name == "argument" else "Other options"
                panel = getattr(parameter, "rich_help_panel", None) or usual
                panels.setdefault(panel, []).append(record)
        others = panels.pop("Other options", [])
        for panel, rows in [*panels.items(), ("Other options", others)]:
            if rows:
                with formatter.section(panel):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        del ctx
        entry = COMMANDS[self.name or ""]
        for title, text in (("Example", entry.example), ("More", entry.page)):
            with formatter.section(title):
                # Not wrapped, so that the line can be copied.
                formatter.write(f"{'':>{formatter.current_indent}}{text}\n")


app = typer.Typer(
    name="isocost",
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
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


@dataclass(frozen=True)
class Entry:
    """A command: where it stands in the list, a line to try, and the page about it."""

    function: Callable[..., Any]
    section: str
    example: str
    page: str


_MEASURE, _REPAIR, _DEPLOY = "Look and measure", "Repair", "Deploy"
_SHOW, _ABOUT = "Show", "About isocost"

COMMANDS = {
    entry.function.__name__: entry
    for entry in (
        Entry(look, _MEASURE, "isocost look data.csv", "docs/data.md"),
        Entry(audit, _MEASURE, "isocost audit data.csv --cost fpr", "docs/measures.md"),
        Entry(plan, _MEASURE, "isocost plan data.csv --detect 0.05", "docs/repairs.md"),
        Entry(bounds, _MEASURE, "isocost bounds data.csv", "docs/measures.md"),
        Entry(tally, _MEASURE, "isocost tally data.csv -o day1.json", "docs/files.md"),
        Entry(
            recalibrate,
            _REPAIR,
            "isocost recalibrate data.csv -o calibrated.json",
            "docs/scikit-learn.md",
        ),
        Entry(
            fit,
            _REPAIR,
            "isocost fit data.csv --cost fpr --tolerance 0.06 -o rule.json",
            "docs/repairs.md",
        ),
        Entry(compare, _REPAIR, "isocost compare data.csv rule.json", "docs/repairs.md"),
        Entry(
            apply,
            _REPAIR,
            "isocost apply rule.json data.csv --id id -o repaired.csv",
            "docs/repairs.md",
        ),
        Entry(sql, _DEPLOY, "isocost sql rule.json --id id --dialect bigquery", "docs/sql.md"),
        Entry(watch, _DEPLOY, "isocost watch rule.json day1.json", "docs/monitoring.md"),
        Entry(report, _SHOW, "isocost report data.csv -o report.html", "README.md"),
        Entry(verify, _SHOW, "isocost verify report.html", "README.md"),
        Entry(serve, _SHOW, "isocost serve data.csv", "README.md"),
        Entry(demo, _ABOUT, "isocost demo --data", "README.md"),
        Entry(doctor, _ABOUT, "isocost doctor", "docs/command-line.md"),
    )
}
"""Every command, in the order of the list."""

_WITHOUT_FILE = ("demo", "doctor", "verify")
"""Commands that read no data, and so no file of options."""


@functools.cache
def _options() -> dict[str, set[str]]:
    """The options that a file may hold, by command."""
    return {
        name: options_of(expanded(entry.function))
        for name, entry in COMMANDS.items()
        if name not in _WITHOUT_FILE
    }


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take the options of a file as defaults, before the others are read."""
    if not context.resilient_parsing:
        context.default_map = defaults_for(context, path, _options)
    return path


_CONFIG = inspect.Parameter(
    "config",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        Path | None,
        typer.Option(
            "--config",
            callback=_read_config,
            is_eager=True,
            help="TOML file with options; default: isocost.toml here, or [tool.isocost] of "
            "pyproject.toml here.",
        ),
    ],
)


@functools.cache
def _command(name: str) -> Any:
    """A command with its options."""
    run = expanded(COMMANDS[name].function)

    @functools.wraps(run)
    def guarded(**options: Any) -> Any:
        options.pop("config", None)
        try:
            return run(**options)
        except KeyboardInterrupt as error:
            raise _InterruptedError from error

    if name not in _WITHOUT_FILE:
        signature = inspect.signature(run)
        signature = signature.replace(parameters=[*signature.parameters.values(), _CONFIG])
        guarded.__signature__ = signature  # type: ignore[attr-defined]
        guarded.__annotations__ = {**run.__annotations__, "config": _CONFIG.annotation}
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    alone.command(name, cls=_Command)(guarded)
    return typer.main.get_command(alone)


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
    remember_typed(received)
    with speaking(SHELL), warnings.catch_warnings(), standard_streams() as lost:
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


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    complain(f"warning: {message}", 0)
