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
from enum import EnumType
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from isocost.atomic import read_text
from isocost.cli.output import say
from isocost.errors import FileError, Problem, UsageError, listing

OWN, SHARED = "isocost.toml", "pyproject.toml"
"""The files that are found in the working directory by themselves; the first wins."""

NEVER = ("config", "output", "force", "anyway")
"""Options that are given on the command line or not at all."""


def options_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The options of a command that a file may hold, with the types of their values."""
    parameters = inspect.signature(function).parameters.values()
    return {
        parameter.name.rstrip("_"): _kind_of(parameter.annotation)
        for parameter in parameters
        if parameter.name not in NEVER and _is_option(parameter.annotation)
    }


def _is_option(hint: Any) -> bool:
    """Whether typer makes an option of it; the others are arguments such as the data."""
    return any(type(one).__name__ == "OptionInfo" for one in get_args(hint)[1:])


def _kind_of(hint: Any) -> Any:
    """The type of the values, without ``Annotated`` and without None."""
    if get_origin(hint) is Annotated:
        return _kind_of(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return next(_kind_of(one) for one in get_args(hint) if one is not type(None))
    return hint


def defaults_for(
    command: str, path: Path | None, known: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The options that a file has for a command.

    Parameters
    ----------
    command : str
        Its name.
    path : Path or None
        The file; by default one that is found in the working directory, which is then told.
    known : mapping
        The options of each command, as :func:`options_of` lists them.
    """
    file, table = (path, _table(path)) if path is not None else _found()
    if file is None:
        return {}
    _check_keys(file, table, known)
    chosen: dict[str, Any] = {}
    for name, value in _for_command(command, table, known):
        kind = known[command].get(name)
        if kind is not None:
            chosen[name] = _checked(file, name, value, kind)
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


def _check_keys(
    file: Path, table: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise for a key that no command knows; those of other commands are fine."""
    every = {name for options in known.values() for name in options}
    _check_known(file, (key for key in table if key not in known), every)
    for command, options in known.items():
        own = table.get(command, {})
        if command in table and not isinstance(own, dict) and command not in every:
            rule, step = "must be a table, as the name of a command", f"write [{command}] above it"
            raise UsageError(Problem(f"{file}: {command}", rule, repr(own), step))
        if isinstance(own, dict):
            _check_known(file, own, set(options), f"{command}.")


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
    command: str, table: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, Any]]:
    """The keys for all commands, and then those of this one, which win."""
    for key, value in table.items():
        # recalibrate is a command and an option.
        if key not in known or not isinstance(value, dict):
            yield key.replace("-", "_"), value
    own = table.get(command)
    if isinstance(own, dict):
        yield from ((key.replace("-", "_"), value) for key, value in own.items())


def _checked(file: Path, name: str, value: Any, kind: Any) -> Any:
    """The value as the command line takes it."""
    several = get_origin(kind) is list
    one = get_args(kind)[0] if several else kind
    values = value if several and isinstance(value, list) else [value]
    for each in values:
        if not _fits(each, one):
            rule = f"must be {_named(one)}{', or a list of such' if several else ''}"
            step = f"correct it in the file, or remove it and pass {_option(name)}"
            raise UsageError(Problem(f"{file}: {name}", rule, repr(each), step))
    texts = [str(each) if one is str else each for each in values]
    return texts if several else texts[0]


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, EnumType):
        return value in [member.value for member in kind]  # type: ignore[var-annotated]
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    # A label or a number of levels is a text on the command line.
    allowed = {float: (int, float), int: (int,), str: (str, int, float), Path: (str,)}
    return isinstance(value, allowed[kind])


def _named(kind: Any) -> str:
    if isinstance(kind, EnumType):
        return f"one of {', '.join(repr(member.value) for member in kind)}"  # type: ignore[var-annotated]
    names = {bool: "true or false", float: "a number", int: "a whole number", str: "a text"}
    return names.get(kind, "a path")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
