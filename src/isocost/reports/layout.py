"""A layout: the tables that a text asks for, as a result that prints itself.

The layouts there are, and how they are filled, stand in :mod:`isocost.reports.layouts`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import Any

from isocost.checks import finite_or_none
from isocost.groups import to_json
from isocost.result import Record
from isocost.tables import LINE, frame_of, html_table, text_table, transposed

FEW = 4
"""A table of no more rows than this is printed with its columns down."""

COUNTS = ("n", "events")
"""Columns that count people."""

Row = dict[str, Any]


@dataclass(frozen=True)
class LayoutTable:
    """One table of a layout.

    Attributes
    ----------
    title : str
        What it is about.
    columns : {name: str}
        The columns that are printed, and what they are called there.
    rows : tuple of dict
        By the names of columns.  ``group`` is the group itself, None for others than a group.  An
        interval of ``auc`` is ``auc_low`` to ``auc_high``.  A number that is left out on purpose
        is None, one that is not defined NaN.
    """

    title: str
    columns: Mapping[str, str]
    rows: tuple[Row, ...]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows as printed."""
        header = list(self.columns.values())
        rows = [[_shown(row, name) for name in self.columns] for row in self.rows]
        if len(rows) <= FEW < len(header):
            return transposed(header, rows)
        return header, rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        rows = [{name: _plain(value) for name, value in row.items()} for row in self.rows]
        return {"title": self.title, "columns": dict(self.columns), "rows": rows}


def _shown(row: Row, name: str) -> str:
    value = row[name]
    if value is None:
        return "left out"
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "-"
    if name in COUNTS:
        return f"{value:,.0f}" if value >= 1e6 else f"{value:,.6g}"
    if name == "share":
        return f"{100.0 * value:.1f} %"
    low, high = row.get(f"{name}_low", math.nan), row.get(f"{name}_high", math.nan)
    interval = f" [{low:.3f}, {high:.3f}]" if low < high else ""
    return f"{value:.3f}{interval}"


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return finite_or_none(value)
    return to_json(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, repr=False)
class Layout(Record):
    """The tables of a layout, with what they follow and what they leave out.

    Attributes
    ----------
    name, title : str
        What :func:`layout` calls it, and what stands on top.
    follows, since : str
        The text it follows, and from when that is.
    covers_not : tuple of str
        What the text asks for besides, or what the numbers cannot say.
    settings : dict
        What it was made with.
    tables : tuple of LayoutTable
        The numbers.
    notes : tuple of str
        How they were computed.
    """

    name: str
    title: str
    follows: str
    since: str
    covers_not: tuple[str, ...]
    settings: Mapping[str, Any]
    tables: tuple[LayoutTable, ...]
    notes: tuple[str, ...]
    backend: str | None = None

    def lines(self) -> list[str]:
        """What is said below the tables, a sentence or two each."""
        return [
            *self.notes,
            f"Follows {self.follows} ({self.since}).",
            f"Does not cover: {'; '.join(self.covers_not)}.",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "format": "isocost-layout",
            "version": 1,
            "layout": self.name,
            "title": self.title,
            "follows": self.follows,
            "since": self.since,
            "covers_not": list(self.covers_not),
            "settings": {name: _plain(value) for name, value in self.settings.items()},
            "tables": [table.to_dict() for table in self.tables],
            "notes": list(self.notes),
        }

    def to_frame(self, *, backend: str | None = None) -> Any:
        """The rows of all tables, in a frame of pandas, polars or another library.

        Numbers that are left out on purpose, or that a table does not have, are NaN.
        """
        rows = [{"table": one.title, **row} for one in self.tables for row in one.rows]
        names = dict.fromkeys(name for row in rows for name in row if name != "group")
        texts = {name for row in rows for name, value in row.items() if isinstance(value, str)}
        columns = {
            name: [
                (("" if name in texts else math.nan) if value is None else value)
                for value in (row.get(name) for row in rows)
            ]
            for name in names
        }
        return frame_of(columns, backend or self.backend)

    def __repr__(self) -> str:
        tables = [f"{one.title}\n{text_table(*one.table(), room=LINE)}" for one in self.tables]
        lines = "\n".join(fill(line, LINE) for line in self.lines())
        return "\n\n".join([self.title, *tables, lines])

    def _repr_html_(self) -> str:
        tables = "".join(html_table(*one.table(), caption=one.title) for one in self.tables)
        lines = "".join(f"<p>{escape(line)}</p>" for line in self.lines())
        return f"<p><strong>{escape(self.title)}</strong></p>{tables}{lines}"
