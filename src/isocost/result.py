"""Result: what every function of isocost that is not a tally or a rule returns.

A result is a frozen dataclass.  Its fields become JSON; its headline, tables and notes become text,
HTML and Markdown; its rows become CSV and a frame.  Each of these is written here once.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from isocost.atomic import check_ending, read_text, write_text
from isocost.checks import check_path, finite_or_none
from isocost.groups import to_json
from isocost.tables import (
    columns_from,
    escape_markdown,
    frame_of,
    html_table,
    html_verdict,
    markdown_table,
    text_table,
    wrapped,
)

Lines = tuple[list[str], list[list[str]]]
"""Header and rows of a printed table."""

Printed = tuple[str, list[str], list[list[str]]]
"""Title, header and rows of a printed table."""

_GROUP = re.compile(r"Group\b")

_MAPPING = re.compile(r"(?:dict|Mapping)\[(\w+), (.*)\]")


class Record:
    """A dataclass whose fields become JSON.

    A mapping by group becomes [group, value] pairs, which keep the type of the group; a number that
    is undefined or infinite becomes null.

    Attributes
    ----------
    format : str
        What its JSON calls itself, before everything else; "" within other JSON.
    written : tuple of str
        The names that JSON has, in their order: fields, properties, or methods without arguments.
        ``_groups`` is written as ``groups``, ``*values`` as the entries of ``values``, and
        ``choice?`` only if there is one.  By default the fields.
    also, unwritten : tuple of str
        By default, names that are written after the fields, and fields that are not.
    sparse : bool
        True if fields that have their default are left out.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Shares(Record):
    ...     highest: Group
    ...     shares: dict[Group, float]
    >>> Shares("a", {"a": 0.5, "b": float("nan")}).to_dict()
    {'highest': 'a', 'shares': [['a', 0.5], ['b', None]]}
    """

    format: ClassVar[str] = ""
    written: ClassVar[tuple[str, ...]] = ()
    also: ClassVar[tuple[str, ...]] = ()
    unwritten: ClassVar[tuple[str, ...]] = ()
    sparse: ClassVar[bool] = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        kinds = {one.name: str(one.type) for one in fields(self)}  # type: ignore[arg-type]
        usual = (name for name in kinds if name not in self.unwritten)
        if self.sparse:
            default = type(self)()
            usual = (name for name in kinds if getattr(self, name) != getattr(default, name))
        content: dict[str, Any] = {"format": self.format, "version": 1} if self.format else {}
        for word in self.written or (*usual, *self.also):
            name = word.strip("*?")
            value = getattr(self, name)
            if name not in kinds:
                member = getattr(type(self), name)
                getter = getattr(member, "fget", getattr(member, "func", member))
                kinds[name] = str(getattr(getter, "__annotations__", {}).get("return", ""))
            value = plain(value() if callable(value) else value, kinds[name])
            if value or not word.endswith("?"):
                content |= value if word.startswith("*") else {name.removeprefix("_"): value}
        return content

    def to_json(self) -> str:
        """The values of :meth:`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


class Saved(Record):
    """A record that is kept in a file, and read back with everything checked."""

    def save(self, path: str | Path, *, force: bool = True) -> None:
        """Write a .json file, whole or not at all; without ``force``, never replace one."""
        check_path(path)
        check_ending(path, ".json")
        write_text(path, self.to_json() + "\n", force=force)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The reverse of :meth:`to_json`."""
        raise NotImplementedError

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the file that :meth:`save` wrote."""
        check_path(path)
        return cls.from_json(read_text(path))


def plain(value: Any, kind: str = "") -> Any:
    """A value as JSON has it; ``kind`` is its type as the source writes it."""
    if _GROUP.match(kind):
        return to_json(value)
    if isinstance(value, str):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return finite_or_none(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name), str(one.type)) for one in fields(value)}
    if isinstance(value, Mapping):
        key, inner = match.groups() if (match := _MAPPING.search(kind)) else ("", "")
        if key == "Group":
            return [[to_json(group), plain(one, inner)] for group, one in value.items()]
        return {str(name): plain(one, inner) for name, one in value.items()}
    if isinstance(value, Sequence | np.ndarray):
        return [plain(one, kind.removeprefix("tuple[")) for one in value]
    return value


class Result(Record):
    """A record that people read too.

    Attributes
    ----------
    backend : str or None
        The library of the data, which :meth:`to_frame` uses.
    room : float
        The width of printed lines.
    """

    room: ClassVar[float] = math.inf
    backend: str | None = None

    # For people

    def headline(self) -> str:
        """A line that says what the numbers are about."""
        raise NotImplementedError

    def table(self) -> Lines:
        """Header and rows of the first printed table."""
        raise NotImplementedError

    def printed(self) -> Sequence[Printed]:
        """Title, header and rows of every printed table."""
        return [(self.headline(), *self.table())]

    def summary(self) -> Sequence[object]:
        """Sentences below the tables: the notes, which are a field or a method."""
        notes = getattr(self, "notes", ())
        return notes() if callable(notes) else notes

    def __repr__(self) -> str:
        parts = [] if self._is_titled() else [self.headline()]
        for title, header, rows in self.printed():
            parts.append(f"{title}\n{text_table(header, rows, self.room)}")
        lines = [str(line) for line in self.summary()]
        if math.isfinite(self.room):
            lines = [wrapped(line, int(self.room)) for line in lines]
        return "\n\n".join([*parts, *(["\n".join(lines)] if lines else [])])

    def _repr_html_(self) -> str:
        verdict = html_verdict(self.headline(), [*map(str, self.summary())])
        tables = [
            html_table(header, rows, caption="" if title == self.headline() else title)
            for title, header, rows in self.printed()
        ]
        return verdict + "".join(tables)

    def to_markdown(self) -> str:
        """Tables and notes in Markdown."""
        parts = [] if self._is_titled() else [escape_markdown(self.headline())]
        for title, header, rows in self.printed():
            parts.append(f"**{escape_markdown(title)}**\n\n{markdown_table(header, rows)}")
        return "\n\n".join([*parts, *(escape_markdown(str(line)) for line in self.summary())])

    def _is_titled(self) -> bool:
        """True if the headline is the title of the first table."""
        return self.printed()[0][0] == self.headline()

    # For programs

    def records(self) -> Sequence[Mapping[str, Any]]:
        """The numbers as flat records, all with the same names."""
        raise NotImplementedError

    def to_frame(self, *, backend: str | None = None) -> Any:
        """The numbers as a frame, in the library of the data.

        Parameters
        ----------
        backend : str, optional
            "pandas", "polars", "pyarrow" ..., or "dict" for a dict of arrays.  By default the
            library of the data; for other data pandas or polars if one is installed.
        """
        return frame_of(columns_from(self.records()), backend or self.backend)
