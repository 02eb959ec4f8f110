"""Tables: printed as text, HTML, Markdown and CSV, and as frames."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.util import find_spec
from numbers import Number
from textwrap import fill
from typing import Any
from unicodedata import east_asian_width

import numpy as np

from isocost.checks import check_word

BACKENDS = ("pandas", "polars", "pyarrow", "modin", "cudf", "dict")
"""The kinds of frames, as narwhals calls them, and a dict of arrays."""

LINE = 80
"""The width of printed tables and sentences."""


def number_text(value: float, style: str = ".4f") -> str:
    """A number as tables print it; a dash if it is not defined."""
    return "-" if math.isnan(value) else format(value, style)


def round_up(value: float) -> str:
    """Four decimals, rounded up, so that the number as printed is enough."""
    return "unknown" if math.isnan(value) else f"{math.ceil(value * 1e4 - 1e-9) / 1e4:.4f}"


def round_down(value: float) -> str:
    """Four decimals, rounded down."""
    return "unknown" if math.isnan(value) else f"{math.floor(value * 1e4 + 1e-9) / 1e4:.4f}"


def width(text: str) -> int:
    """The width of a text in columns of a terminal."""
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def wrapped(text: str, room: int = LINE) -> str:
    r"""Sentences in lines that are no wider than ``room``; words stay whole.

    Examples
    --------
    >>> print(wrapped("One two three.\nFour.", 9))
    One two
    three.
    Four.
    """
    return "\n".join(
        fill(paragraph, max(1, room), break_long_words=False, break_on_hyphens=False)
        for paragraph in text.split("\n")
    )


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], room: float = math.inf) -> str:
    """A table in aligned columns: the first to the left, the others to the right.

    A table that is wider than ``room`` is printed in several parts, each with the first column.

    Examples
    --------
    >>> print(text_table(["group", "n"], [["a", "10"], ["bb", "5"]]))
    group   n
    -----  --
    a      10
    bb      5
    """
    widths = [max(width(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [header, ["-" * w for w in widths], *rows]
    parts: list[list[int]] = [[]]
    for i in range(1, len(widths)):
        if parts[-1] and widths[0] + sum(2 + widths[j] for j in (*parts[-1], i)) > room:
            parts.append([])
        parts[-1].append(i)

    def padded(text: str, column: int) -> str:
        space = " " * (widths[column] - width(text))
        return space + text if column else text + space

    return "\n\n".join(
        "\n".join("  ".join(padded(line[i], i) for i in (0, *part)).rstrip() for line in lines)
        for part in parts
    )


def transposed(
    header: Sequence[str], rows: Sequence[Sequence[str]], corner: str = ""
) -> tuple[list[str], list[list[str]]]:
    """The table with rows and columns exchanged; ``corner`` names the new first column.

    Examples
    --------
    >>> transposed(["", "a", "b"], [["n", "1", "2"]], "group")
    (['group', 'n'], [['a', '1'], ['b', '2']])
    """
    first, *rest = (list(line) for line in zip(header, *rows, strict=True))
    return [corner, *first[1:]], rest


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table as HTML, with every text escaped."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = ""
    for first, *others in rows:
        cells = "".join(f'<td style="text-align:right">{escape(cell)}</td>' for cell in others)
        body += f'<tr><th scope="row" style="text-align:left">{escape(first)}</th>{cells}</tr>'
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_verdict(headline: str, details: Sequence[str] = ()) -> str:
    """The first lines of a result, as HTML beside a bar; its table follows."""
    lines = "".join(f"<p style='margin:.2em 0;max-width:50em'>{escape(one)}</p>" for one in details)
    return (
        "<div style='border-left:4px solid #888;padding-left:.8em'>"
        f"<p style='margin:.2em 0'><strong>{escape(headline)}</strong></p>{lines}</div>"
    )


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""A table in Markdown, with every text escaped.

    Examples
    --------
    >>> print(markdown_table(["group", "n"], [["a|b", "10"]]))
    | group | n |
    | :--- | ---: |
    | a\|b | 10 |
    """
    marks = [":---", *["---:"] * (len(header) - 1)]
    lines = [map(escape_markdown, header), marks, *(map(escape_markdown, row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escape_markdown(text: str) -> str:
    r"""A text that Markdown shows as it is.

    Examples
    --------
    >>> print(escape_markdown("_a_ <b> base_rate *"))
    \_a\_ \<b> base_rate \*
    """
    return re.sub(r"[\\`*<|]|(?<!\w)_|_(?!\w)", r"\\\g<0>", text).replace("\n", " ")


def csv_text(columns: Mapping[str, Sequence[Any]]) -> str:
    """Columns as CSV; NaN becomes an empty field, and None, in place of a group, "all".

    Notes
    -----
    A spreadsheet would compute a text that begins like a formula: an apostrophe stands before it.
    Control characters are escaped.  ``csvText`` in ``page/web/app/copying.js`` does the same.

    Examples
    --------
    >>> print(csv_text({"group": ["a", "=1+1", None], "n": [10.0, -1, math.nan]}))
    group,n
    a,10
    '=1+1,-1
    all,
    """
    whole = {name: "everybody" if "all" in map(str, v) else "all" for name, v in columns.items()}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_inert, columns))
    cells = ([_field(value, whole[name]) for value in v] for name, v in columns.items())
    writer.writerows(zip(*cells, strict=True))
    return text.getvalue().removesuffix("\n")


def _field(value: Any, everybody: str) -> str:
    if value is None:
        return everybody
    if not isinstance(value, Number):
        return _inert(str(value))
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return ""
    # The shortest text that is read back as the same number.
    return repr(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(float(value))


def _inert(text: str) -> str:
    """A text that no spreadsheet takes for a formula, without control characters."""
    control = r"[\x00-\x1f\x7f-\x9f]"
    plain = re.sub(control, lambda found: found[0].encode("unicode_escape").decode(), text)
    return f"'{plain}" if re.match(r"\s*[=+\-@＝＋－＠]", plain) else plain


def columns_from(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows with the same names as columns: {name: values}."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def frame_of(columns: Mapping[str, Sequence[Any]], backend: str | None = None) -> Any:
    """Columns, arrays or lists of values of one type and None, as a frame of a library.

    Without a backend, one of :data:`BACKENDS`, or if it is not installed any more: pandas or polars
    if one is, else a dict of arrays.

    Examples
    --------
    >>> frame_of({"group": ["a", "b"], "n": [1.0, 2.0]}, "dict")
    {'group': array(['a', 'b'], dtype=object), 'n': array([1., 2.])}
    """
    if backend is not None:
        check_word("backend", backend, BACKENDS)
    wanted = (backend, "pandas", "polars")
    known: Any = next((one for one in wanted if one and (one == "dict" or find_spec(one))), "dict")
    if known == "dict":
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        return {
            name: array if array.dtype.kind in "biuf" else np.array(columns[name], dtype=object)
            for name, array in arrays.items()
        }
    import narwhals as nw

    if known == "pandas":
        columns = {name: _for_pandas(values) for name, values in columns.items()}
    return nw.from_dict(dict(columns), backend=known).to_native()


def _for_pandas(values: Sequence[Any]) -> Any:
    """With a missing value whole numbers would become floats, unless their type allows for it."""
    kinds = {*map(type, values)} - {type(None)} if isinstance(values, list) else set()
    if None not in (values if kinds else ()) or not kinds <= {int, bool}:
        return values
    import pandas as pd

    return pd.Series(values, dtype="boolean" if bool in kinds else "Int64")
