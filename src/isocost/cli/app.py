"""The command line: the table of commands, options kept in a file, errors and exit codes.

Exit codes: 0 done; 1 infeasible, not advised, a disparity above --fail-above, or an alarm of
watch; 2 bad usage or bad data; 70 a defect of isocost itself; 130 interrupted by Ctrl-C, 143 by
SIGTERM.

A file, isocost.toml or the table [tool.isocost] of pyproject.toml, holds options of any command by
their names, such as ``cost = "fpr"`` or ``group = ["race", "sex"]``; a table with the name of a
command holds those of that command alone.  The command line wins over the file.  What replaces
files or overrides advice is not read from one.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import signal
import sys
import threading
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from isocost import __version__
from isocost.atomic import read_text
from isocost.cli import commands
from isocost.cli.doctor import doctor
from isocost.cli.options import expanded, other, parameter_of
from isocost.cli.output import complain, say, standard_streams, typed
from isocost.errors import (
    FileError,
    InfeasibleError,
    IsocostError,
    IsocostWarning,
    NotAdvisedError,
    Problem,
    UsageError,
    listing,
    speaking,
)
from isocost.readings import SHELL


@dataclass(frozen=True)
class Entry:
    """A command: its function, a line to try, and the page about it.

    If ``configured``, it reads data, and so a file of options.
    """

    function: Callable[..., Any]
    example: str
    page: str
    configured: bool = True


SECTIONS = {
    "Look and measure": (
        Entry(commands.look, "look data.csv", "docs/data.md"),
        Entry(commands.audit, "audit data.csv --cost fpr", "docs/measures.md"),
        Entry(commands.plan, "plan data.csv --detect 0.05", "docs/repairs.md"),
        Entry(commands.bounds, "bounds data.csv", "docs/measures.md"),
        Entry(commands.tally, "tally data.csv -o day1.json", "docs/files.md"),
    ),
    "Repair": (
        Entry(
            commands.recalibrate, "recalibrate data.csv -o calibrated.json", "docs/scikit-learn.md"
        ),
        Entry(
            commands.fit,
            "fit data.csv --cost fpr --tolerance 0.06 -o rule.json",
            "docs/repairs.md",
        ),
        Entry(commands.compare, "compare data.csv rule.json", "docs/repairs.md"),
        Entry(
            commands.apply, "apply rule.json data.csv --id id -o repaired.csv", "docs/repairs.md"
        ),
    ),
    "Deploy": (
        Entry(commands.sql, "sql rule.json --id id --dialect bigquery", "docs/sql.md"),
        Entry(commands.watch, "watch rule.json day1.json", "docs/monitoring.md"),
    ),
    "Show": (
        Entry(commands.report, "report data.csv -o report.html", "README.md"),
        Entry(commands.verify, "verify report.html", "README.md", configured=False),
        Entry(commands.serve, "serve data.csv", "README.md"),
    ),
    "About isocost": (
        Entry(commands.demo, "demo --data", "README.md", configured=False),
        Entry(doctor, "doctor", "docs/command-line.md", configured=False),
    ),
}
"""The list of commands."""

COMMANDS = {entry.function.__name__: entry for rows in SECTIONS.values() for entry in rows}


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
        del ctx
        for section, entries in SECTIONS.items():
            functions = [entry.function for entry in entries]
            texts = [inspect.cleandoc(f.__doc__ or "").split("\n\n")[0] for f in functions]
            # The same width in all sections, so that they line up.
            names = [f"{function.__name__:<11}" for function in functions]
            with formatter.section(section):
                formatter.write_dl(list(zip(names, texts, strict=True)))


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
        for title, text in (("Example", f"isocost {entry.example}"), ("More", entry.page)):
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


# Options kept in a file

OWN, SHARED = "isocost.toml", "pyproject.toml"
"""The files that are found in the working directory by themselves; the first wins."""

NEVER = ("config", "output", "force", "anyway")
"""Options that are given on the command line or not at all."""


@functools.cache
def _options() -> dict[str, set[str]]:
    """The options that a file may hold, by command."""
    return {
        name: {
            parameter.name
            for parameter in inspect.signature(expanded(entry.function)).parameters.values()
            # The others are arguments such as the data.
            if any(type(one).__name__ == "OptionInfo" for one in get_args(parameter.annotation))
            and parameter.name not in NEVER
        }
        for name, entry in COMMANDS.items()
        if entry.configured
    }


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take the options of a file as defaults, before the others are read."""
    if context.resilient_parsing:
        return path
    file, table = (path, _table(path)) if path is not None else _found()
    if file is None:
        return path
    known, command = _options(), context.info_name or ""
    _check_keys(file, table, known)
    # Keys of all commands, and then those of this one, which win; recalibrate is also an option.
    keys = {key: one for key, one in table.items() if key not in known or not isinstance(one, dict)}
    own = table.get(command)
    keys |= own if isinstance(own, dict) else {}
    context.default_map = {
        name: _checked(file, name, value, context)
        for key, value in keys.items()
        if (name := key.replace("-", "_")) in known[command]
    }
    if context.default_map and path is None:
        say(f"{file.name} sets {', '.join(map(_option, context.default_map))}.", error=True)
    return path


def _found() -> tuple[Path | None, dict[str, Any]]:
    own, shared = Path(OWN), Path(SHARED)
    if own.is_file():
        return own, _table(own)
    # A project's file is not ours to complain about unless it speaks of isocost.
    if shared.is_file() and "tool.isocost" in read_text(shared):
        return shared, _table(shared)
    return None, {}


def _table(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        step = 'write lines such as cost = "fpr"'
        raise FileError(Problem(str(path), "must be TOML", str(error), step)) from error
    if path.name != SHARED:
        return content
    table: dict[str, Any] = content.get("tool", {}).get("isocost", {})
    return table


def _check_keys(file: Path, table: Mapping[str, Any], known: Mapping[str, set[str]]) -> None:
    """Raise for a key that no command knows; those of other commands are fine."""
    every = {name for options in known.values() for name in options}
    listed = [("", [key for key in table if key not in known], every)]
    for command, options in known.items():
        own = table.get(command)
        if isinstance(own, dict):
            listed.append((f"{command}.", list(own), options))
        elif command in table and command not in every:
            rule, step = "must be a table, as the name of a command", f"write [{command}] above it"
            raise UsageError(Problem(f"{file}: {command}", rule, repr(own), step))
    for prefix, keys, options in listed:
        for key in keys:
            name, where = key.replace("-", "_"), f"{file}: {prefix}{key}"
            if name in NEVER:
                step = f"remove it, and pass {_option(name)}"
                rule = "must be given on the command line"
                raise UsageError(Problem(where, rule, "in a file", step))
            if name not in options:
                step = f"use some of {listing(sorted(options))}"
                if near := difflib.get_close_matches(name, options, 1):
                    step = f"did you mean {near[0]}?"
                rule = f"must be an option of {f'isocost {prefix[:-1]}' if prefix else 'a command'}"
                raise UsageError(Problem(where, rule, "no such option", step))


def _checked(file: Path, name: str, value: Any, context: typer.Context) -> list[str] | str:
    """The value as it would be written on the command line, where click reads it."""
    option = next(one for one in context.command.params if one.name == name)
    several = bool(getattr(option, "multiple", False))
    given = value if several and isinstance(value, list) else [value]
    texts = [str(each).lower() if isinstance(each, bool) else str(each) for each in given]
    written = texts if several else texts[0]
    try:
        option.process_value(context, written)
    except typer.BadParameter as error:
        rule, got = f"must be what {_option(name)} takes", f"{value!r}: {error.message.rstrip('.')}"
        step = f"correct it in the file, or remove it and pass {_option(name)}"
        raise UsageError(Problem(f"{file}: {name}", rule, got, step)) from error
    return written


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


_CONFIG = parameter_of(
    "config",
    Path | None,
    other(
        None,
        "TOML file with options; default: isocost.toml here, or [tool.isocost] of pyproject.toml "
        "here.",
        callback=_read_config,
        is_eager=True,
    ),
)


@functools.cache
def _command(name: str) -> Any:
    """A command with its options."""
    entry = COMMANDS[name]
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    config = [_CONFIG] if entry.configured else []
    alone.command(name, cls=_Command)(expanded(entry.function, *config))
    return typer.main.get_command(alone)


# Running


def show_version(wanted: bool) -> None:
    """Print the version and end the command, if wanted."""
    if wanted:
        typer.echo(f"isocost {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
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
    typed.set(tuple(received))
    with speaking(SHELL), warnings.catch_warnings(), standard_streams() as lost:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", IsocostWarning)
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}", error=True)
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
    except (SystemExit, KeyboardInterrupt) as leave:
        code = leave.code if isinstance(leave, SystemExit) else INTERRUPTED
        if code == INTERRUPTED:
            return complain("interrupted; nothing was written", INTERRUPTED)
        return code if isinstance(code, int) else 0
    except Exception as error:
        if debug:
            traceback.print_exc()
        if isinstance(error, IsocostError):
            return complain(error, 1 if isinstance(error, InfeasibleError | NotAdvisedError) else 2)
        text = f"unexpected {type(error).__name__}: {error}"
        return complain(f"{text}\nThis is a defect of isocost; --debug shows where.", 70)
    return 0
