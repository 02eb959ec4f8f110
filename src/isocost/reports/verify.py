"""Whether a report still says what was computed: the page is made again from what it holds.

Everything on a page follows from its tally and from how it was made, and both are embedded in it.
So a digit that was changed in a table, a sentence or the embedded numbers differs from the page
made again, and so does all that follows from a changed tally.  Somebody who makes the whole
page again from other data is not found out: compare the digest of the file that the page names.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from isocost import __version__
from isocost.atomic import read_text
from isocost.checks import check_path
from isocost.errors import FileError, IsocostError, Problem
from isocost.reports.assets import page_script
from isocost.reports.payload import FORMAT, VERSION
from isocost.reports.report import remade

EXACT = 1e-9
"""Computers may add in another order: numbers count as equal up to this, relatively."""

MOST_LISTED = 20

FEW_WORDS = 8
"""A cell with more words than this holds a sentence."""


@dataclass(frozen=True)
class Verification:
    """What was found when a report was made again.

    Attributes
    ----------
    changes : tuple of str
        Where the page differs from what was computed, with both texts.
    numbers : int
        How many numbers were compared.
    made_by : str
        The version of isocost that made the page.
    """

    changes: tuple[str, ...]
    numbers: int
    made_by: str

    @property
    def unchanged(self) -> bool:
        """Whether the page is as it was computed."""
        return not self.changes

    def lines(self) -> list[str]:
        """What was found, in words."""
        if self.unchanged:
            first = f"Unchanged: {self.numbers:,} numbers are as isocost computes them."
        else:
            first = (
                f"Changed: {len(self.changes):,} of {self.numbers:,} places are not as computed."
            )
        listed = [f"  {change}" for change in self.changes[:MOST_LISTED]]
        if len(self.changes) > MOST_LISTED:
            listed.append(f"  and {len(self.changes) - MOST_LISTED:,} more")
        if self.made_by != __version__:
            listed.append(
                f"The page was made by isocost {self.made_by}, and checked by {__version__}: other "
                "versions may compute or say things differently."
            )
        return [first, *listed]

    def __repr__(self) -> str:
        return "\n".join(self.lines())


def verify(path: str | Path) -> Verification:
    """Recompute every number of a report, and say which were changed.

    Parameters
    ----------
    path : str or Path
        A page that :func:`isocost.report` wrote.

    Returns
    -------
    Verification
        ``unchanged`` says whether all is as computed, ``changes`` where it is not.

    Notes
    -----
    Compared are the embedded numbers (to a relative 1e-9), the cells of all tables, the numbers in
    sentences, and the page's own script.  Vega, which draws the charts, is not compared.

    Examples
    --------
    >>> import isocost as ic, tempfile
    >>> from isocost.examples import compas
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = ic.report(ic.audit(compas(), "fpr", replicates=0), path=f"{folder}/report.html")
    ...     before = ic.verify(page).unchanged
    ...     _ = page.write_text(page.read_text().replace("0.447", "0.440"))
    ...     before, ic.verify(page).unchanged
    (True, False)
    """
    check_path(path)
    text = read_text(path)
    shown = _Page(text)
    data = _embedded(shown)
    try:
        again = _Page(remade(data["tally"], data["made"]))
    except (IsocostError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        got = error.problems[0].got if isinstance(error, IsocostError) else repr(error)[:200]
        raise _not_a_report(f"numbers that no page has: {got}") from error
    counter = _Counter()
    changes = [
        *_different(data, json.loads(again.data), "data", counter),
        *_different_texts(shown.blocks, again.blocks, counter),
    ]
    if shown.digest != f"sha256:{hashlib.sha256(shown.data.encode()).hexdigest()}":
        changes.append("meta isocost:data: not the digest of the embedded numbers")
    if shown.scripts[-1:] != [page_script()]:
        changes.append("the page's own script: not that of this version of isocost")
    return Verification(tuple(changes), counter.numbers, str(data["tally"]["isocost"]))


def _not_a_report(got: str) -> FileError:
    rule = "must be a report as isocost wrote it"
    step = "name an .html file of isocost report or ic.report, of this version of isocost"
    return FileError(Problem("report", rule, got, step))


def _embedded(page: _Page) -> dict[str, Any]:
    try:
        data = json.loads(page.data)
        kind = (data["tally"]["format"], data["tally"]["version"])
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise _not_a_report("a file without its numbers") from error
    if kind != (FORMAT, VERSION) or "made" not in data:
        raise _not_a_report(f"version {kind[1]} of the format {kind[0]}")
    own = data["made"].get("own_measures", [])
    functions = [one["name"] for one in own if "over" not in one]
    if functions:
        names = ", ".join(map(str, functions))
        raise _not_a_report(f"measures that are functions, which it does not hold: {names}"[:200])
    return dict(data)


_BLOCKS = {
    "td", "th", "p", "li", "dd", "dt", "h1", "h2", "h3", "summary", "span", "strong", "title"
}  # fmt: skip

_VOID = {"meta", "input", "br", "path", "circle", "img", "link"}


class _Page(HTMLParser):
    """The texts of a page, each with the table and the row that it stands in; data and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.data, self.digest = "", ""
        self.scripts: list[str] = []
        self.blocks: list[tuple[str, str]] = []
        self._table, self._row, self._column, self._section = "", "", 0, ""
        self._open: list[tuple[str, str]] = []
        self._said: list[str] = []
        self.feed(text)
        self._end_block()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "meta" and given.get("name") == "isocost:data":
            self.digest = given.get("content") or ""
        elif tag == "meta" and given.get("name"):
            self.blocks.append((f"meta {given['name']}", given.get("content") or ""))
        if tag in _BLOCKS:
            self._end_block()
        if tag == "table":
            self._table = given.get("id") or self._section
        elif tag == "tr":
            self._row, self._column = "", -1
        elif tag in ("td", "th"):
            self._column += 1
        if tag not in _VOID:
            self._open.append((tag, given.get("id") or ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self._end_block()
        if tag == "table":
            self._table = ""
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tag, name = self._open[-1] if self._open else ("", "")
        if tag == "script":
            if name == "data":
                self.data += data
            else:
                self.scripts.append(data)
        elif tag != "style":
            self._said.append(data)

    def _end_block(self) -> None:
        said = re.sub(r"\s+", " ", "".join(self._said)).strip()
        self._said = []
        if not said:
            return
        tag = self._open[-1][0] if self._open else ""
        if tag in ("h2", "h3"):
            self._section = said
        if self._table and self._column == 0 and not self._row:
            self._row = said
        cell = f"table {self._table}, {self._row}, column {self._column}" if self._table else ""
        self.blocks.append((cell or f"text under {self._section or 'the headline'}", said))


@dataclass
class _Counter:
    numbers: int = 0


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def _different(shown: Any, again: Any, path: str, counter: _Counter) -> Iterator[str]:
    """Where embedded values differ; words are not numbers, and follow the language."""
    if path == "data.words":
        return
    if isinstance(shown, dict) and isinstance(again, dict):
        for key in sorted({*shown, *again}):
            if key not in shown or key not in again:
                yield f"{path}.{key}: {'added' if key in shown else 'removed'}"
            else:
                yield from _different(shown[key], again[key], f"{path}.{key}", counter)
    elif isinstance(shown, list) and isinstance(again, list):
        if len(shown) != len(again):
            yield f"{path}: {len(shown)} values instead of {len(again)}"
        for i, (one, other) in enumerate(zip(shown, again, strict=False)):
            yield from _different(one, other, f"{path}[{i}]", counter)
    else:
        counter.numbers += isinstance(again, int | float)
        is_told = _TOLD.search(path) and isinstance(shown, str) and isinstance(again, str)
        if not (_same_numbers(shown, again) if is_told else _same(shown, again)):
            yield f"{path}: {_short(shown)} instead of {_short(again)}"


_TOLD = re.compile(r"\.(why|notes\[\d+\])$")
"""Sentences among the numbers; they name settings as a shell or as Python does."""


def _same_numbers(shown: str, again: str) -> bool:
    return _NUMBER.findall(shown) == _NUMBER.findall(again)


def _same(shown: Any, again: Any) -> bool:
    numbers = all(
        isinstance(one, int | float) and not isinstance(one, bool) for one in (shown, again)
    )
    if numbers:
        return math.isclose(shown, again, rel_tol=EXACT, abs_tol=1e-12)
    return type(shown) is type(again) and bool(shown == again)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _different_texts(
    shown: list[tuple[str, str]], again: list[tuple[str, str]], counter: _Counter
) -> Iterator[str]:
    """Where tables differ, or numbers in sentences."""
    counter.numbers += sum(len(_NUMBER.findall(text)) for _, text in again)
    matcher = SequenceMatcher(None, shown, again, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        for i in range(max(b - a, d - c)):
            here = shown[a + i] if a + i < b else ("", "")
            there = again[c + i] if c + i < d else ("", "")
            location = here[0] or there[0]
            is_cell = location.startswith(("table", "meta")) and len(there[1].split()) <= FEW_WORDS
            if is_cell or not _same_numbers(here[1], there[1]):
                yield f"{location}: {_short(here[1])} instead of {_short(there[1])}"
