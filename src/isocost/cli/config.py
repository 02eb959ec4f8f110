"""Options kept in a file: isocost.toml, or the table [tool.isocost] of pyproject.toml.

A file holds options of any command by their names, such as ``cost = "fpr"`` or
``group = ["race", "sex"]``; a table with the name of a command holds those of that command alone.
The command line wins over the file.  What replaces files or overrides advice is not read from one.
"""

from __future__ import annotations

import difflib
import inspect
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import typer

from isocost.atomic import read_text
from isocost.cli.output import say
from isocost.errors import FileError, Problem, UsageError, listing

OWN, SHARED = "isocost.toml", "pyproject.toml"
"""The files that are found in the working directory by themselves; the first wins."""

NEVER = ("config", "output", "force", "anyway")
"""Options that are given on the command line or not at all."""


def options_of(function: Callable[..., Any]) -> set[str]:
    """The options of a command that a file may hold."""
    parameters = inspect.signature(function).parameters.values()
    return {
        parameter.name.rstrip("_")
        for parameter in parameters
        if parameter.name not in NEVER and _is_option(parameter.annotation)
    }


def _is_option(hint: Any) -> bool:
    """True if typer makes an option of it; the others are arguments such as the data."""
    return any(type(one).__name__ == "OptionInfo" for one in get_args(hint)[1:])


def defaults_for(
    context: typer.Context, path: Path | None, options: Callable[[], Mapping[str, set[str]]]
) -> dict[str, Any]:
    """The options that a file has for a command.

    Parameters
    ----------
    context : Context
        That of the command.
    path : Path or None
        The file; by default one that is found in the working directory, which is then told.
    options : callable
        Returns the options of each command, as :func:`options_of` lists them.
    """
    file, table = (path, _table(path)) if path is not None else _found()
    if file is None:
        return {}
    known = options()
    _check_keys(file, table, known)
    command = context.info_name or ""
    chosen = {
        name: _checked(file, name, value, context)
        for name, value in _for_command(command, table, known)
        if name in known[command]
    }
    if chosen and path is None:
        say(f"{file.name} sets {', '.join(map(_option, chosen))}.", error=True)
    return chosen


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
    tool = content.get("tool", {})
    table = tool.get("isocost", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        rule, step = "must have a table", "begin it with the line [tool.isocost]"
        raise UsageError(Problem(f"{path}: tool.isocost", rule, repr(table), step))
    return table


def _check_keys(file: Path, table: Mapping[str, Any], known: Mapping[str, set[str]]) -> None:
    """Raise for a key that no command knows; those of other commands are fine."""
    every = {name for options in known.values() for name in options}
    _check_known(file, (key for key in table if key not in known), every)
    for command, options in known.items():
        own = table.get(command, {})
        if command in table and not isinstance(own, dict) and command not in every:
            rule, step = "must be a table, as the name of a command", f"write [{command}] above it"
            raise UsageError(Problem(f"{file}: {command}", rule, repr(own), step))
        if isinstance(own, dict):
            _check_known(file, own, options, f"{command}.")


def _check_known(file: Path, keys: Iterable[str], known: set[str], prefix: str = "") -> None:
    for key in keys:
        name = key.replace("-", "_")
        if name in NEVER:
            rule, step = "must be given on the command line", f"remove it, and pass {_option(name)}"
            raise UsageError(Problem(f"{file}: {prefix}{key}", rule, "in a file", step))
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            step = f"did you mean {near[0]}?" if near else f"use some of {listing(sorted(known))}"
            rule = "must be an option of " + (f"isocost {prefix[:-1]}" if prefix else "a command")
            raise UsageError(Problem(f"{file}: {prefix}{key}", rule, "no such option", step))


def _for_command(
    command: str, table: Mapping[str, Any], known: Mapping[str, set[str]]
) -> Iterator[tuple[str, Any]]:
    """The keys for all commands, and then those of this one, which win."""
    for key, value in table.items():
        # recalibrate is a command and an option.
        if key not in known or not isinstance(value, dict):
            yield key.replace("-", "_"), value
    own = table.get(command)
    if isinstance(own, dict):
        yield from ((key.replace("-", "_"), value) for key, value in own.items())


def _checked(file: Path, name: str, value: Any, context: typer.Context) -> list[str] | str:
    """The value as it would be written on the command line, where click reads it."""
    option = next(one for one in context.command.params if (one.name or "").rstrip("_") == name)
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
