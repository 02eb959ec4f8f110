"""A look into a file: its columns, what each could be, and what is wrong with it.

The local page, the commands and :func:`look` guess columns here, by their names and then by their
values.  The label is the column that the score predicts.  Whoever guesses tells it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from isocost.checks import check_path, named_in
from isocost.engines.columns import (
    POSITIVE,
    is_binary,
    no_rows,
    number_text,
    positive_among,
    text_numbers,
    typed,
)
from isocost.engines.dialects import literal, quoted
from isocost.engines.files import Source, is_number
from isocost.engines.kinds import PLAINLY, FileReading
from isocost.errors import Problem, UsageError, listing
from isocost.grid import fitting_scales
from isocost.readings import Reading, command_line
from isocost.result import Result
from isocost.typing import Bools, Floats

SAMPLE = 5000
"""Number of rows in the sample, drawn from all parts of the file."""

SHOWN = 12
"""The most values of a column that are shown."""

MOST_GROUPS = 40
"""A column with more values than this is not guessed to be the group."""

_NAMES = {
    "score": r"score|prob|risk|pred|yhat|y_hat|^p$|^p_",
    "label": r"label|target|outcome|truth|y_true|recid|default|event|class|^y$|is_",
    "group": r"group|race|sex|gender|ethnic|nation|age|region|site",
    "weight": r"weight|^wt$|^w$|wgt",
}

ROLES = (*_NAMES, "id")

NAMED, ALIKE, WORDS, BOOLEAN, OTHER = 0.2, 0.2, 0.1, 0.1, -0.2
"""What counts for a label beside 2 |AUC - 0.5|: its name; a name like that of the score; values
such as yes and 1; values true and false; and against it, a name that suits another role."""

CLOSE = 0.1
"""A column that is less likely than the first by no more than this could be the label as well."""

MANY = 30
"""Rows of each label from which it is no chance that a score separates them perfectly."""

_GENERAL = r"p|prob|proba|probability|score|scores|risk|pred|predicted|prediction|hat|yhat"


@dataclass(frozen=True)
class Column:
    """A column of a file, as far as a sample of its rows shows it.

    Attributes
    ----------
    name, numeric : str, bool
        Its name, and whether it contains numbers.
    values, distinct : tuple of str, int
        Some of its values, the most frequent first, and how many there are in the sample.
    low, high, whole, decimal : float or None, float or None, bool, str
        The range of its numbers, whether all are whole, and their decimal sign.
    unique : bool
        Whether no value occurs twice in the sample.
    missing : int
        Number of missing values in the sample, or among all rows.
    wrong : str
        What is wrong with its values; empty if nothing is.
    """

    name: str
    numeric: bool
    values: tuple[str, ...]
    distinct: int
    low: float | None = None
    high: float | None = None
    whole: bool = False
    unique: bool = False
    decimal: str = "."
    missing: int = 0
    wrong: str = ""

    @property
    def is_unit(self) -> bool:
        """True if its numbers lie in [0, 1]."""
        return self.low is not None and self.high is not None and 0 <= self.low <= self.high <= 1

    @property
    def scales(self) -> list[str]:
        """The scales that its numbers may have if they are scores outside [0, 1]."""
        if self.low is None or self.high is None or self.is_unit:
            return []
        return fitting_scales(self.low, self.high, self.whole)

    def fits(self, role: str) -> bool:
        """True if its values can be those of a role."""
        if role == "score":
            other = self._named("score") and bool(self.scales)
            return (self.is_unit or other) and self.distinct > 2
        if role == "weight":
            return self.low is not None and self.low > 0.0 and self._named("weight")
        if role == "id":
            is_text = not self.numeric and not self.wrong
            return self.unique and self.distinct > 2 and (is_text or self.whole)
        return self.distinct == 2 if role == "label" else 2 <= self.distinct <= MOST_GROUPS

    def _named(self, role: str) -> bool:
        return re.search(_NAMES[role], self.name.lower()) is not None

    def likelihood(self, role: str) -> tuple[bool, ...]:
        """Sort key for a role: by its name, then by its values."""
        suits = self.is_unit if role == "score" else not self.has_positive
        return self._named(role), not self.named_otherwise(role), suits

    @property
    def has_positive(self) -> bool:
        """True if one of its values means yes."""
        return any(value.lower() in POSITIVE for value in self.values)

    def named_otherwise(self, role: str) -> bool:
        """True if its name suits another role."""
        return any(self._named(name) for name in _NAMES if name != role)

    def range(self) -> str:
        """Its values in a few words."""
        if self.numeric and self.low is not None and self.distinct > 3:
            return f"{self.low:.6g} to {self.high:.6g}"
        shown = [value if len(value) <= 20 else f"{value[:19]}…" for value in self.values]
        return ", ".join(shown[:3]) + (" …" if self.distinct > 3 else "")


@dataclass(frozen=True)
class LabelCandidate:
    """A column that could be the label, and why.

    Attributes
    ----------
    name : str
        The column.
    auc : float or None
        How well the score predicts it, in a sample of the rows; None if that is unknown.
    reasons : tuple of str
        What speaks for it, and against it.
    merit : float
        How much does: 2 |AUC - 0.5| beyond chance, and what its name and values add.
    """

    name: str
    auc: float | None
    reasons: tuple[str, ...]
    merit: float

    @classmethod
    def of(
        cls, column: Column, score: Column | None, samples: Mapping[str, Sequence[Any]]
    ) -> LabelCandidate:
        """The merits of a column as the label, given the column of scores."""
        auc, beyond, reasons = None, 0.0, []
        if score is not None:
            y, h = _labelled(column, score, samples)
            n1, n0 = int(y.sum()), int((~y).sum())
            if n1 and n0:
                auc = _auc(y, h)
                auc = auc if column.has_positive else max(auc, 1.0 - auc)
                # Two standard errors of an AUC of 0.5 are chance.
                beyond = max(0.0, abs(2.0 * auc - 1.0) - 2.0 * math.sqrt((1 / n1 + 1 / n0) / 3.0))
                decided = auc in (0.0, 1.0) and min(n1, n0) >= MANY
                says = "predicts it" if beyond else "does not predict it"
                if decided:
                    beyond, says = 0.0, "separates it perfectly, as if it were decided by the score"
                is_part = len(samples[score.name]) >= SAMPLE
                rows = f" in a sample of {SAMPLE:,} rows" if is_part else ""
                reasons.append(f"the score {says} (AUC {auc:.2f}{rows})")
        is_boolean = {value.lower() for value in column.values} == {"true", "false"}
        alike = score is not None and _alike(column.name, score.name)
        counts = [
            (NAMED, column._named("label"), "its name suits a label"),
            (ALIKE, alike, f"its name is like {score.name!r}" if score is not None else ""),
            (BOOLEAN, is_boolean, "it is true or false"),
            (WORDS, column.has_positive, ""),
            (OTHER, column.named_otherwise("label"), "its name suits something else"),
        ]
        reasons += [reason for _, holds, reason in counts if holds and reason]
        merit = beyond + sum(weight for weight, holds, _ in counts if holds)
        return cls(column.name, auc, tuple(reasons), merit)

    def __str__(self) -> str:
        return f"{self.name!r}: {'; '.join(self.reasons)}" if self.reasons else repr(self.name)


@dataclass(frozen=True, repr=False)
class FileLook(Result):
    """Contents of a file, made by :func:`look`.

    Attributes
    ----------
    path : str
        The file.
    rows : int or None
        Number of rows; None if they were not counted.
    columns : tuple of Column
        Its columns.
    separator : str or None
        The sign that separates the values of a text file.
    reading : dict of str
        How it was read, where that is not the usual way: encoding, decimal, sheet; and what of
        that was ``guessed``.
    guess : dict
        The most likely column for each role; None where there is none.
    positive : str or None
        The positive label, where it must be named and is known.
    labels : tuple of LabelCandidate
        The column guessed to be the label; or those as likely, of which none is guessed.
    """

    format = "isocost-look"
    written = (
        "path", "rows", "separator", "_reading", "_columns", "guess", "labels", "positive",
        "obstacles", "command",
    )  # fmt: skip

    path: str
    rows: int | None
    columns: tuple[Column, ...]
    separator: str | None
    reading: dict[str, str]
    guess: dict[str, str | None]
    positive: str | None
    labels: tuple[LabelCandidate, ...] = ()

    def column(self, role: str) -> Column | None:
        """The column that was guessed for a role."""
        return next((c for c in self.columns if c.name == self.guess.get(role)), None)

    def could_be(self, column: Column) -> list[str]:
        """The roles that a column can have; the one it was guessed for comes first."""
        mine = [role for role, name in self.guess.items() if name == column.name]
        return mine + [role for role in ROLES if role not in mine and column.fits(role)]

    def notes(self, column: Column) -> list[str]:
        """Problems of a column in the roles that it can have."""
        roles, notes = self.could_be(column), [column.wrong] if column.wrong else []
        if column.missing and roles:
            notes.append(f"{column.missing:,} missing")
        if "score" in roles and column.scales:
            notes.append(f"outside [0, 1]: --scale {' or '.join(column.scales)}")
        if roles[:1] == ["label"] and self.positive is None and not is_binary(column.values):
            notes.append("--positive must say which value is positive")
        return notes

    @property
    def obstacles(self) -> list[str]:
        """Why there is no command line to go on with."""
        told = [
            f"no column could be the {role}: name it with --{role}"
            for role in ("score", "label", "group")
            if self.column(role) is None and (role != "label" or not self.labels)
        ]
        if len(self.labels) > 1:
            each = "; or ".join(map(str, self.labels))
            told.append(
                f"{len(self.labels)} columns could be the label, name one with --label: {each}"
            )
        for column in filter(None, map(self.column, ("score", "label", "weight"))):
            told += [f"column {column.name!r}: {column.wrong}"] if column.wrong else []
        label = self.column("label")
        if label is not None and self.positive is None and not is_binary(label.values):
            one = " or ".join(map(repr, label.values))
            told.append(f"--positive must be {one}: the outcome that a high score predicts")
        return told

    @property
    def command(self) -> str | None:
        """The command line to go on with; None while there are obstacles."""
        if self.obstacles:
            return None
        chosen = {role: self.column(role) for role in ("score", "label", "group", "weight")}
        names = {role: column.name for role, column in chosen.items() if column is not None}
        score, ways = chosen["score"], dict[str, Any](self.reading)
        reading = Reading(
            columns={**names, "group": [names["group"]]},
            positive=self.positive,
            scale=score.scales[0] if score and score.scales else "probability",
            missing_group="unknown" if self._missing("group") else "refuse",
            drop_missing=any(map(self._missing, ("score", "label", "weight"))),
            **ways,
        )
        return reading.command("audit", [self.path]).text

    def _missing(self, role: str) -> bool:
        column = self.column(role)
        return column is not None and column.missing > 0

    def headline(self) -> str:
        """The file in one line."""
        counted = "" if self.rows is None else f"{self.rows:,} rows and "
        ways = {"separator": self.separator, "encoding": "utf-8", "decimal": "."} | self.reading
        guess = ways.pop("guessed", None)
        told = (
            f"{name} {value!r}{' (a guess)' if name == guess else ''}"
            for name, value in ways.items()
            if value is not None
        )
        text = "" if self.separator is None and not self.reading else f"; {', '.join(told)}"
        return f"{self.path}: {counted}{len(self.columns)} columns{text}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the printed table."""
        header = ["column", "values", "distinct", "could be", "note"]
        rows = [
            [c.name, c.range(), f"{c.distinct:,}", ", ".join(self.could_be(c)) or "-",
             "; ".join(self.notes(c))]
            for c in self.columns
        ]  # fmt: skip
        for row, column in zip(rows, self.columns, strict=True):
            if (self.rows or 0) > SAMPLE and column.distinct > 2 * MOST_GROUPS:
                row[2] += " or more"
        return header, rows

    def summary(self) -> list[str]:
        """The next steps."""
        if self.command is not None:
            # The usual name needs no reason.
            why = [f"The label is {one}." for one in self.labels if one.name != "label"]
            lines = [*why, f"To go on: {self.command}"]
            lacking = [role for role in ("score", "label", "weight") if self._missing(role)]
            if lacking:
                without = " or ".join(lacking)
                lines.append(f"--drop-missing leaves out the rows that have no {without}.")
            score = self.column("score")
            if score is not None and len(score.scales) > 1:
                lines.append(
                    f"--scale {score.scales[0]} is a guess: use --scale {score.scales[1]} if the "
                    "scores are that."
                )
            return lines
        return ["Before you go on:", *(f"- {one}" for one in self.obstacles)]

    def _reading(self) -> dict[str, str]:
        return {"encoding": "utf-8", "decimal": "."} | self.reading

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {**asdict(c), "could_be": self.could_be(c), "notes": self.notes(c)}
            for c in self.columns
        ]

    def records(self) -> list[dict[str, Any]]:
        """A row for each column."""
        header, rows = self.table()
        return [
            {**dict(zip(header, row, strict=True)), "missing": column.missing}
            for row, column in zip(rows, self.columns, strict=True)
        ]


def look(
    path: str | Path,
    *,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> FileLook:
    r"""Look into a file: which columns could be what, what is wrong, and how to go on.

    Parameters
    ----------
    path : path, glob or directory
        The data, as for :func:`isocost.tally`.
    decimal, encoding, sheet
        As for :func:`isocost.tally`.

    Returns
    -------
    FileLook

    Examples
    --------
    >>> import isocost as ic, tempfile
    >>> from pathlib import Path
    >>> text = "who;risk;sex;charged\nAnn;0,2;F;no\nBob;0,7;M;yes\nEve;0,4;F;no\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "data.csv")
    ...     _ = path.write_text(text)
    ...     looked = ic.look(path)
    >>> looked.guess
    {'score': 'risk', 'label': 'charged', 'group': 'sex', 'weight': None}
    >>> looked.positive, looked.reading
    ('yes', {'decimal': ','})
    """
    check_path(path)
    return preview(path, None, FileReading(decimal, encoding, sheet), counted=True)


def preview(
    path: str | Path,
    name: str | None = None,
    reading: FileReading | None = None,
    counted: bool = False,
) -> FileLook:
    """Look at a sample of a file, and count its rows if asked.

    ``name`` gives the ending of a file whose path has none.
    """
    with Source(path, name=name, reading=reading) as source:
        columns, samples = sampled(source)
        if not any(column.distinct or column.missing for column in columns):
            raise no_rows(path)
        rows = None
        if counted:
            source.check_divided()
            rows, columns = _counted(source, columns)
        separator, how = _separator(source), source.read_as
    guess, labels = guessed(columns, samples)
    commas = [c for c in columns if c.decimal == "," and c.name in guess.values()]
    how |= {"decimal": ","} if commas else {}
    label = next((c for c in columns if c.name == guess["label"]), None)
    positive = positive_among(label.values) if label else None
    return FileLook(str(path), rows, tuple(columns), separator, how, guess, positive, labels)


def sampled(source: Source) -> tuple[list[Column], dict[str, list[Any]]]:
    """The columns of a source, and their values, from a sample of its rows."""
    # The same sample each time, so that the same columns are guessed.
    query = f"SELECT * FROM {source.reader} USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE (0)"
    rows = source.run(query).fetchall()
    columns = []
    samples = {name: [row[index] for row in rows] for index, name in enumerate(source.types)}
    for name, kind in source.types.items():
        values = samples[name]
        if source.is_text:
            columns.append(_text_column(name, values, source.reading.decimal))
        else:
            columns.append(_column(name, kind, values))
    return columns, samples


def _text_column(name: str, texts: Sequence[str | None], asked: str | None) -> Column:
    """A column of texts, with the types that they have."""
    present = [text for text in texts if text is not None]
    has_commas = asked != "." and any("," in text for text in present)
    written = text_numbers(present, asked or ".") if has_commas else None
    if written is not None and (written.fits_comma or (asked == "," and not written.odd)):
        numbers = [None if text is None else float(number_text(text, ",") or "") for text in texts]
        return replace(_column(name, "DOUBLE", numbers), values=_common(present), decimal=",")
    meaning = typed(texts)
    kinds = {type(value) for value in meaning.values()}
    kind = "DOUBLE" if kinds and kinds <= {int, float} else "VARCHAR"
    column = _column(name, kind, [None if text is None else meaning[text] for text in texts])
    if written is not None and written.commas + written.thousands and column.distinct > 2:
        numeric = written.commas + written.points + written.thousands + written.whole
        if numeric == written.total:
            return replace(column, wrong=written.problem(name, asked).rule)
    return column


def _column(name: str, kind: str, values: Sequence[Any]) -> Column:
    texts = [_shown_text(value) for value in values if value is not None and value == value]
    common, distinct = _common(texts), len(set(texts))
    is_unique = distinct == len(texts)
    missing = len(values) - len(texts)
    if not is_number(kind):
        return Column(name, False, common, distinct, unique=is_unique, missing=missing)
    numbers = [float(v) for v in values if v is not None and math.isfinite(v)]
    low, high = (min(numbers), max(numbers)) if numbers else (None, None)
    whole = bool(numbers) and all(number.is_integer() for number in numbers)
    return Column(name, True, common, distinct, low, high, whole, unique=is_unique, missing=missing)


def _common(texts: Sequence[str]) -> tuple[str, ...]:
    """The most frequent texts."""
    return tuple(text for text, _ in Counter(texts).most_common(SHOWN))


def _shown_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _counted(source: Source, columns: Sequence[Column]) -> tuple[int, list[Column]]:
    """The number of rows, and the columns with what only all rows can tell."""
    asked = []
    for column in columns:
        name = quoted(column.name)
        number = f"CAST({name} AS DOUBLE)" if column.numeric else "NULL::DOUBLE"
        if column.numeric and source.is_text:
            text = f"replace({name}, ',', '.')" if column.decimal == "," else name
            number = f"try_cast({text} AS DOUBLE)"
        finite = f"CASE WHEN isfinite({number}) THEN {number} END"
        # A rare value may be missing in the sample; many distinct ones are not worth the memory.
        distinct = f"count(DISTINCT {name})" if column.distinct <= 2 * MOST_GROUPS else "NULL"
        asked += [f"count({name})", f"count({number})", f"min({finite})", f"max({finite})"]
        asked.append(distinct)
    query = f"SELECT count(*), {', '.join(asked)} FROM {source.reader}"
    ((rows, *counts),) = source.run(query).fetchall()
    counted = []
    for index, column in enumerate(columns):
        present, numbers, low, high, distinct = counts[5 * index : 5 * index + 5]
        odd = present - numbers if column.numeric else 0
        wrong = f"{odd:,} values are not numbers" if odd else column.wrong
        known = column.distinct if distinct is None else distinct
        found = {"missing": rows - present, "low": low, "high": high, "distinct": known}
        counted.append(replace(column, wrong=wrong, **found))
    return rows, counted


def _separator(source: Source) -> str | None:
    """What separates the values of a text file."""
    if not source.is_text or source.copies.sheet is not None or not source.file_set.files:
        return None
    sniffed = f"sniff_csv({literal(source.file_set.files[0])}, {PLAINLY})"
    try:
        rows = source.connection.execute(f"SELECT Delimiter FROM {sniffed}").fetchall()
    except Exception:
        # Older releases do not take every option; the separator is only shown.
        return None
    return str(rows[0][0]) if rows else None


def guessed(
    columns: Sequence[Column], samples: Mapping[str, Sequence[Any]]
) -> tuple[dict[str, str | None], tuple[LabelCandidate, ...]]:
    """The most likely column for each role, and what could be the label; none is used twice."""
    free = list(columns)
    guess: dict[str, str | None] = {}
    labels: tuple[LabelCandidate, ...] = ()
    for role in ("score", "weight", "label", "group"):
        if role == "label":
            score = next((column for column in columns if column.name == guess["score"]), None)
            labels = likely_labels(free, score, samples)
            names = [one.name for one in labels]
            guess[role] = names[0] if len(names) == 1 else None
        else:
            names = [column.name for column in ranked(free, role)[:1]]
            guess[role] = names[0] if names else None
        free = [column for column in free if column.name not in names]
    return {role: guess[role] for role in _NAMES}, labels


def ranked(columns: Sequence[Column], role: str) -> list[Column]:
    """The columns that fit a role, the most likely first."""
    fitting = [column for column in columns if column.fits(role)]
    return sorted(fitting, key=lambda column: column.likelihood(role), reverse=True)


def likely_labels(
    columns: Sequence[Column], score: Column | None, samples: Mapping[str, Sequence[Any]]
) -> tuple[LabelCandidate, ...]:
    """The most likely label and those as likely: one, unless it cannot be told; or none."""
    fitting = [column for column in columns if column.fits("label")]
    # Commands take this name without a guess.
    fitting = [column for column in fitting if column.name == "label"] or fitting
    candidates = [LabelCandidate.of(column, score, samples) for column in fitting]
    candidates.sort(key=lambda one: one.merit, reverse=True)
    return tuple(one for one in candidates if one.merit >= candidates[0].merit - CLOSE)


def _labelled(
    column: Column, score: Column, samples: Mapping[str, Sequence[Any]]
) -> tuple[Bools, Floats]:
    """The labels and scores of the sample's rows that have both; a label is true or false."""
    numbers, labels = [], []
    for value, label in zip(samples[score.name], samples[column.name], strict=True):
        text = number_text(value, score.decimal) if isinstance(value, str) else value
        if text is not None and label is not None and label == label and math.isfinite(float(text)):
            numbers.append(float(text))
            labels.append(_shown_text(label).strip().lower())
    known = sorted(set(labels))
    positive = next((label for label in known if label in POSITIVE), known[-1] if known else "")
    return np.array([label == positive for label in labels], dtype=bool), np.array(numbers)


def _auc(y: Bools, h: Floats) -> float:
    """The chance that a positive has a higher score than a negative; ties count half.

    Examples
    --------
    >>> _auc(np.array([False, True, True]), np.array([0.5, 0.5, 0.9]))
    0.75
    """
    _, level = np.unique(h, return_inverse=True)
    positives, negatives = np.bincount(level, y), np.bincount(level, ~y)
    below = np.cumsum(negatives) - negatives / 2.0
    return float(positives @ below / (positives.sum() * negatives.sum()))


def _alike(one: str, other: str) -> bool:
    """True if two names share the beginning of a word that says more than "score" does.

    Examples
    --------
    >>> _alike("denied", "p_deny"), _alike("Readmitted", "readmission risk"), _alike("a", "risk_a")
    (True, True, False)
    """
    mine, theirs = (
        [
            word
            for word in re.findall(r"[^\W\d_]+", re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower())
            if not re.fullmatch(_GENERAL, word)
        ]
        for name in (one, other)
    )
    pairs = ((a, b, min(len(a), len(b))) for a in mine for b in theirs)
    lengths = ((a, b, max(3, math.ceil(0.6 * short))) for a, b, short in pairs if short >= 3)
    return any(a[:length] == b[:length] for a, b, length in lengths)


def completed(
    source: Source, asked: Mapping[str, Any], positive: Any, tell: Callable[[str], None]
) -> tuple[dict[str, Any], Any]:
    """The columns of a source, guessed where the usual names were asked for and are not there.

    ``tell`` is told each guess.  Where two columns are as likely, an error lists them.
    """
    usual = {"score": "score", "label": "label", "group": ["group"]}
    open_roles = [
        role
        for role, name in usual.items()
        if asked[role] == name and (name[0] if role == "group" else name) not in source.types
    ]
    if not open_roles:
        return dict(asked), positive
    columns, samples = sampled(source)
    names = [column.name for column in columns]
    taken = {name for _, name in named_in(asked)}
    free = [column for column in columns if column.name not in taken]
    chosen = dict(asked)
    for role in open_roles:
        if role == "label":
            score = next((column for column in columns if column.name == chosen["score"]), None)
            likely = {one.name: str(one) for one in likely_labels(free, score, samples)}
        else:
            first = ranked(free, role)
            same = [c for c in first if c.likelihood(role) == first[0].likelihood(role)]
            likely = {column.name: repr(column.name) for column in same}
        if len(likely) != 1:
            got = f"{len(likely)} columns that could be it: {listing(likely.values(), 8)}"
            step = f"name one, for example --{role} {command_line(list(likely)[:1])}"
            if not likely:
                got = f"no column that could be it among {listing(map(repr, names), 30)}"
                step = f"name it with --{role}; isocost look FILE says what is in there"
            raise UsageError(Problem(role, "must name a column of the data", got, step))
        best = columns[names.index(next(iter(likely)))]
        chosen[role] = [best.name] if role == "group" else best.name
        tell(f"{role}: {best.name!r}")
        free = [column for column in free if column is not best]
        if role == "label" and positive is None:
            positive = positive_among(best.values)
            if positive is not None:
                tell(f"positive: {positive!r}")
    return chosen, positive
