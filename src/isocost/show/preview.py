"""What a file holds, and which of its columns are likely the score, the label and the group."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from isocost.engines import sql
from isocost.engines.source import Source
from isocost.engines.texts import typed

__all__ = ["Column", "Preview", "preview"]

SAMPLE = 5000
"""How many rows are looked at, drawn from all parts of the file."""

SHOWN = 12
"""How many values of a column are shown at most."""

MOST_GROUPS = 40
"""A column with more values than this is not guessed to be the group."""

_NAMES = {
    "score": r"score|prob|risk|pred|yhat|y_hat|^p$|^p_",
    "label": r"label|target|outcome|truth|y_true|recid|default|event|class|^y$|is_",
    "group": r"group|race|sex|gender|ethnic|nation|age|region|site",
    "weight": r"weight|^wt$|^w$|wgt",
}
_POSITIVE = ("1", "1.0", "true", "yes", "y", "t", "positive", "pos", "event", "case")


@dataclass(frozen=True)
class Column:
    """A column of the file, as far as the sample shows it.

    Attributes
    ----------
    name : str
        Its name.
    numeric : bool
        Whether it holds numbers.
    values : tuple of str
        Some of its values, the most frequent first.
    distinct : int
        How many values it has in the sample.
    low, high : float or None
        The range of its numbers.
    """

    name: str
    numeric: bool
    values: tuple[str, ...]
    distinct: int
    low: float | None = None
    high: float | None = None

    def fits(self, role: str) -> bool:
        """Whether its values can be those of a role."""
        inside = self.low is not None and self.high is not None and self.low >= 0.0
        if role == "score":
            return inside and self.high is not None and self.high <= 1.0 and self.distinct > 2
        if role == "weight":
            return inside and self.low != 0.0 and self._named("weight")
        return self.distinct == 2 if role == "label" else 2 <= self.distinct <= MOST_GROUPS

    def _named(self, role: str) -> bool:
        return re.search(_NAMES[role], self.name.lower()) is not None

    def likelihood(self, role: str) -> tuple[bool, ...]:
        """How well it suits a role among those that fit: by its name, then by its values."""
        other = any(self._named(name) for name in _NAMES if name != role)
        said = any(value.lower() in _POSITIVE for value in self.values)
        return self._named(role), not other, said if role == "label" else not said


@dataclass(frozen=True)
class Preview:
    """The columns of a file and a guess at what they are for."""

    columns: tuple[Column, ...]
    guess: dict[str, str | None]
    positive: str | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def preview(path: str | Path, name: str | None = None) -> Preview:
    r"""Look at a file: its columns, some values, and what the columns are likely to be.

    ``name`` says of what kind a file is whose path does not.

    Examples
    --------
    >>> import tempfile
    >>> text = "who,risk,sex,charged\nAnn,0.2,F,no\nBob,0.7,M,yes\nEve,0.4,F,no\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "data.csv")
    ...     _ = path.write_text(text)
    ...     found = preview(path)
    >>> found.guess
    {'score': 'risk', 'label': 'charged', 'group': 'sex', 'weight': None}
    >>> found.positive
    'yes'
    """
    columns = _columns(path, name)
    guess = _guess(columns)
    label = next((c for c in columns if c.name == guess["label"]), None)
    return Preview(tuple(columns), guess, _positive(label.values) if label else None)


def _columns(path: str | Path, name: str | None) -> list[Column]:
    source = Source(path, name=name)
    try:
        query = f"SELECT * FROM {source.reader} USING SAMPLE reservoir({SAMPLE} ROWS)"
        rows = source.run(query).fetchall()
    finally:
        source.connection.close()
    found = []
    for place, (column, kind) in enumerate(source.types.items()):
        values = [row[place] for row in rows]
        if source.is_text:
            values, kind = _meant(values)
        found.append(_column(column, kind, values))
    return found


def _meant(texts: Sequence[str | None]) -> tuple[list[Any], str]:
    """The values of a CSV as what they mean, and their type in DuckDB's words."""
    meaning = typed(texts)
    kinds = {type(value) for value in meaning.values()}
    kind = "DOUBLE" if kinds and kinds <= {int, float} else "VARCHAR"
    return [None if text is None else meaning[text] for text in texts], kind


def _column(name: str, kind: str, values: Sequence[Any]) -> Column:
    counts: dict[str, int] = {}
    for value in values:
        if value is not None and value == value:
            text = _written(value)
            counts[text] = counts.get(text, 0) + 1
    common = tuple(sorted(counts, key=lambda text: -counts[text])[:SHOWN])
    if not sql.is_number(kind):
        return Column(name, False, common, len(counts))
    numbers = [float(v) for v in values if v is not None and math.isfinite(v)]
    ends = (min(numbers), max(numbers)) if numbers else (None, None)
    return Column(name, True, common, len(counts), *ends)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _guess(columns: Sequence[Column]) -> dict[str, str | None]:
    """The likeliest column of each role; none is taken twice."""
    free = list(columns)
    found: dict[str, str | None] = {}
    for role in ("score", "weight", "label", "group"):
        fitting = [column for column in free if column.fits(role)]
        best = max(fitting, key=lambda column: column.likelihood(role), default=None)
        found[role] = best.name if best else None
        free = [column for column in free if column is not best]
    return {role: found[role] for role in _NAMES}


def _positive(values: Sequence[str]) -> str | None:
    """The positive label where it must be named: not for 0 and 1, nor for true and false."""
    known = {value.lower() for value in values}
    if known <= {"0", "1"} or known <= {"true", "false"}:
        return None
    return next((value for value in values if value.lower() in _POSITIVE), None)
