"""Verification of a report: the page is made again from what it holds.

Everything on a page follows from its tally and from how it was made, and both are embedded in it.
So a changed digit, word, style or script differs from the page made again, and so does all that
follows from a changed tally.  Somebody who makes the whole page again from other data is not found
out: compare the digest of the file that the page names.  Another version of isocost may word things
differently: of its pages only the numbers are checked.
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
from itertools import zip_longest
from pathlib import Path
from typing import Any

from isocost.atomic import read_text
from isocost.checks import check_path
from isocost.errors import FileError, IsocostError, Problem
from isocost.page.assets import embedded_json, versions
from isocost.page.payload import FORMAT, VERSION
from isocost.page.report import remade

EXACT = 1e-9
"""Computers may add in another order: numbers count as equal up to this, relatively."""

MOST_LISTED = 20

FEW_WORDS = 8
"""A cell with more words than this holds a sentence."""


@dataclass(frozen=True)
class Verification:
    """The differences between a report and the same report made again.

    Attributes
    ----------
    changes : tuple of str
        Places where the page differs, with both texts.
    numbers : int
        How many numbers were compared.
    made_with : dict
        The versions of the packages that made the page, by name.
    wording_checked : bool
        True if words, style and scripts were compared too: the page was made with the versions that
        are installed here.
    """

    changes: tuple[str, ...]
    numbers: int
    made_with: dict[str, str]
    wording_checked: bool

    @property
    def unchanged(self) -> bool:
        """True if nothing that was checked was changed."""
        return not self.changes

    def lines(self) -> list[str]:
        """The result in words."""
        if self.changes:
            places = "1 place is" if len(self.changes) == 1 else f"{len(self.changes):,} places are"
            first = f"Changed: {places} not as isocost writes the page."
        elif self.wording_checked:
            first = (
                f"Unchanged: {self.numbers:,} numbers and all words, style and scripts are as "
                "isocost writes them."
            )
        else:
            first = (
                f"Numbers unchanged: {self.numbers:,} are as isocost computes them. The wording "
                "was not checked."
            )
        listed = [f"  {change}" for change in self.changes[:MOST_LISTED]]
        if len(self.changes) > MOST_LISTED:
            listed.append(f"  and {len(self.changes) - MOST_LISTED:,} more")
        if not self.wording_checked:
            made, here = (
                ", ".join(f"{name} {version}" for name, version in one.items())
                for one in (self.made_with, versions())
            )
            listed.append(
                f"The page was made with {made}, and checked with {here}. Other versions may "
                "compute and word things differently, so words, style and scripts were not checked."
            )
        return [first, *listed]

    def __repr__(self) -> str:
        return "\n".join(self.lines())


def verify(path: str | Path) -> Verification:
    """Make a report again, and list every number and word of it that was changed.

    Parameters
    ----------
    path : str or Path
        A page that :func:`isocost.report` wrote.

    Returns
    -------
    Verification
        ``unchanged`` says whether all is as computed, ``changes`` where it is not, and
        ``wording_checked`` whether words were compared.

    Notes
    -----
    Embedded numbers are compared to a relative 1e-9, and everything else letter by letter: words,
    markup, style and scripts.  A page that was made with another version of isocost, or of the
    packages that draw its charts, may differ in these: only its embedded numbers, the cells of its
    tables and the numbers in its sentences are compared.

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
        made_with = {str(name): str(one) for name, one in data["made"]["versions"].items()}
        html = remade(data["tally"], data["made"])
    except (IsocostError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        got = error.problems[0].got if isinstance(error, IsocostError) else repr(error)[:200]
        raise _not_a_report(f"numbers that no page has: {got}") from error
    again, exact = _Page(html), made_with == versions()
    counter = _Counter(exact)
    changes = [
        *_different(data, json.loads(again.data), "data", counter),
        *_different_texts(shown.blocks, again.blocks, counter),
    ]
    digest = f"sha256:{hashlib.sha256(shown.data.encode()).hexdigest()}"
    if shown.digest != digest:
        changes.append("meta isocost:data: not the digest of the embedded numbers")
    if exact:
        changes += [
            f"{what}: not those of this version of isocost"
            for what in ("styles", "scripts")
            if getattr(shown, what) != getattr(again, what)
        ]
        # Around the numbers as they are embedded, every letter must be the same.
        expected = html.replace(again.data, shown.data).replace(again.digest, digest)
        if not changes and embedded_json(data) != shown.data:
            changes.append("data: not written as isocost writes it")
        elif not changes and text != expected:
            letters = enumerate(zip_longest(text, expected))
            start = next(i for i, (here, there) in letters if here != there)
            line = text.count("\n", 0, start) + 1
            here, there = (_short(one[start : start + 50]) for one in (text, expected))
            changes.append(f"markup in line {line:,}: {here} instead of {there}")
    return Verification(tuple(changes), counter.numbers, made_with, exact)


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
        self.styles: list[str] = []
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
        elif tag == "style":
            self.styles.append(data)
        else:
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
    """Numbers compared so far; ``exact`` is true if words are compared too."""

    exact: bool
    numbers: int = 0


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def _different(shown: Any, again: Any, path: str, counter: _Counter) -> Iterator[str]:
    """The places where embedded values differ; words and charts follow the version."""
    if path in ("data.words", "data.charts") and not counter.exact:
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
        is_told = not counter.exact and _TOLD.search(path) and isinstance(shown, str)
        is_told = is_told and isinstance(again, str)
        if not (_same_numbers(shown, again) if is_told else _same(shown, again)):
            yield f"{path}: {_short(shown)} instead of {_short(again)}"


_TOLD = re.compile(r"\.(why|notes\[\d+\])$")
"""Sentences among the numbers; other versions may word them differently."""


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
    """The places where texts differ; of another version, tables and numbers in sentences."""
    counter.numbers += sum(len(_NUMBER.findall(text)) for _, text in again)
    # A heading that was changed changes where what follows it stands, so only texts are matched.
    texts, others = ([text for _, text in one] for one in (shown, again))
    matcher = SequenceMatcher(None, texts, others, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        for i in range(max(b - a, d - c)):
            here = shown[a + i] if a + i < b else ("", "")
            there = again[c + i] if c + i < d else ("", "")
            location = here[0] or there[0]
            is_cell = location.startswith(("table", "meta")) and len(there[1].split()) <= FEW_WORDS
            if counter.exact or is_cell or not _same_numbers(here[1], there[1]):
                yield f"{location}: {_short(here[1])} instead of {_short(there[1])}"
