"""Reading: how data were read, and the command lines that read them in the same way.

The tally, rules and the page carry it; every command that is printed is made from it.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias

from isocost.checks import check_flag, is_writable, short
from isocost.errors import UNSET, DataError, Language, Problem, UsageError
from isocost.grid import BINS
from isocost.groups import Group, Scalar, as_group
from isocost.result import Record

ROLES = ("score", "label", "group", "weight", "person", "id")
"""The roles of columns."""

WAYS = ("scale", "decimal", "encoding", "sheet")
"""Fields of a reading that are options of commands under the same name."""

TREATMENTS = ("refuse", "drop", "keep")
"""Treatments of rows whose label or group is missing; "keep" counts them as unknown."""

KEEPING = ("audit", "report", "tally")
"""Commands that count rows whose label or group is unknown; others refuse them."""

System: TypeAlias = Literal["posix", "windows"]
"""The reader of a command line: a POSIX shell, or cmd of Windows."""


@dataclass(frozen=True)
class Missing:
    """The treatment of rows that lack a value.

    ``label`` is one of :data:`TREATMENTS`, and ``group`` too or the name of a group to count the
    rows in.  Rows without a score or a weight are dropped if ``rest``, and refused otherwise.

    Examples
    --------
    >>> Missing.asked("refuse", "?", drop_missing=True)
    Missing(label='drop', group='?', rest=True)
    """

    label: str = "refuse"
    group: Group = "refuse"
    rest: bool = False

    @classmethod
    def asked(cls, missing_label: Any, missing_group: Any, drop_missing: Any) -> Missing:
        """The treatment that three options ask for; ``drop_missing`` is about the other two too."""
        if not isinstance(missing_label, str) or missing_label not in TREATMENTS:
            rule, step = f"must be one of {', '.join(TREATMENTS)}", "leave it out to refuse them"
            raise UsageError(Problem("missing_label", rule, short(missing_label), step))
        group = as_group("refuse" if missing_group is None else missing_group)
        if not check_flag("drop_missing", drop_missing):
            return cls(missing_label, group)
        label, group = ("drop" if one == "refuse" else one for one in (missing_label, group))
        return cls(str(label), group, rest=True)

    @property
    def name(self) -> Group | None:
        """The group of rows without one; None if they are refused, dropped or unknown."""
        return None if self.group in TREATMENTS else self.group

    @property
    def options(self) -> dict[str, Any]:
        """The keywords that ask for it."""
        return {
            "missing_label": self.label,
            "missing_group": self.group,
            "drop_missing": self.rest,
        }

    def keeps(self, role: str) -> bool:
        """True if rows without a value of this role are counted as unknown."""
        return role in ("label", "group") and getattr(self, role) == "keep"

    def drops(self, role: str) -> bool:
        """True if rows without a value of this role are dropped."""
        return getattr(self, role) == "drop" if role in ("label", "group") else self.rest

    def treated(
        self, columns: Mapping[str, Mapping[str, Any]]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Of columns by role and name, those whose rows without a value are dropped, or kept."""
        named = [(role, name, x) for role, own in columns.items() for name, x in own.items()]
        dropped = {name: x for role, name, x in named if self.drops(role)}
        return dropped, {name: x for role, name, x in named if self.keeps(role)}


_ROWS, _ROWS_BY_COLUMN = (
    ("read_rows", "ids", "dropped_rows", "unknown_rows"),
    ("missing_values", "unknown_values"),
)
"""Fields of a reading that count rows, and those that count them by column."""

REFUSE = Missing()
"""Rows that lack a value are an error."""


@dataclass(frozen=True)
class Reading(Record):
    """Settings with which data were read, and rows and groups that were left out.

    Attributes
    ----------
    columns : mapping
        The names of the columns by role; ``group`` is a list.  Empty for arrays.
    positive : optional
        The positive label, if one was named or guessed.
    scale, decimal, encoding, sheet : str
        The kind of scores, the decimal sign, the encoding of texts, and the sheet of a workbook;
        see :func:`isocost.tally`.
    guessed : str or None
        "encoding" if that was not asked for, and nothing in the data names it.
    handed_over : bool
        True if rows without a score were counted apart.
    missing_label, missing_group, drop_missing
        The treatment of rows that lack a value; see :class:`Missing`.
    read_rows, ids : int
        Number of rows read, and of different ids in them; 0 if they were not counted.
    dropped_rows, missing_values : int, {column: rows}
        Number of rows dropped for that reason, and of those without a value in each column.
    unknown_rows, unknown_values : int, {column: rows}
        Number of rows whose label or group is unknown, and of those without one in each column.
    dropped_groups : tuple of str
        Names of the groups left out.
    merged_groups : {name: names}
        Groups counted as one: its name, and the names they have in the data.

    Examples
    --------
    >>> reading = Reading({"score": "risk (%)", "label": "label"}, positive="yes", scale="percent")
    >>> reading.to_dict()["positive"], Reading.from_dict(reading.to_dict()) == reading
    ('yes', True)
    >>> print(reading.command("audit", ["my data.csv"], "--cost", "fpr").posix)
    isocost audit 'my data.csv' --score='risk (%)' --positive=yes --scale=percent --cost fpr
    """

    sparse: ClassVar[bool] = True

    columns: Mapping[str, Any] = field(default_factory=dict)
    positive: Scalar | None = None
    scale: str = "probability"
    decimal: str = "."
    encoding: str = "utf-8"
    guessed: str | None = None
    sheet: str | None = None
    missing_label: str = "refuse"
    missing_group: Group = "refuse"
    handed_over: bool = False
    drop_missing: bool = False
    read_rows: int = 0
    ids: int = 0
    dropped_rows: int = 0
    missing_values: Mapping[str, int] = field(default_factory=dict)
    unknown_rows: int = 0
    unknown_values: Mapping[str, int] = field(default_factory=dict)
    dropped_groups: tuple[str, ...] = ()
    merged_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def missing(self) -> Missing:
        """The treatment of rows that lack a value."""
        return Missing(self.missing_label, self.missing_group, self.drop_missing)

    # New readings from old ones

    def without_groups(self, names: Iterable[str]) -> Reading:
        """The reading of data of which these groups were left out."""
        return replace(self, dropped_groups=tuple(dict.fromkeys([*self.dropped_groups, *names])))

    def renamed(self, names: Mapping[str, str]) -> Reading:
        """The reading of data whose groups were given other names, from {old: new}."""
        # Groups that were merged, and left out afterwards, stay as they are.
        merged = {new: old for new, old in self.merged_groups.items() if new not in names}
        for old, new in names.items():
            parts = (*merged.get(new, ()), *self.merged_groups.get(old, (old,)))
            merged[new] = tuple(sorted(parts))
        own = {new: old for new, old in merged.items() if old != (new,)}
        return self if own == self.merged_groups else replace(self, merged_groups=own)

    def counting(self, other: Reading) -> Reading:
        """The reading with the rows that another counts added to its own."""
        added: dict[str, Any] = {n: getattr(self, n) + getattr(other, n) for n in _ROWS}
        for name in _ROWS_BY_COLUMN:
            added[name] = dict(Counter(getattr(self, name)) + Counter(getattr(other, name)))
        return replace(self, **added)

    def __add__(self, other: Reading) -> Reading:
        """The reading of both data; where they were read in different ways, both are named."""
        ways: dict[str, Any] = {
            name: " and ".join(dict.fromkeys(str(one or "none") for one in pair))
            for name in WAYS
            if (pair := (getattr(self, name), getattr(other, name)))[0] != pair[1]
        }
        return replace(
            self.without_groups(other.dropped_groups).counting(other),
            **ways,
            columns=self.columns or other.columns,
            guessed=self.guessed or other.guessed,
            positive=other.positive if self.positive is None else self.positive,
            missing_label=_stronger(self.missing_label, other.missing_label),
            missing_group=_stronger(self.missing_group, other.missing_group),
            handed_over=self.handed_over or other.handed_over,
            drop_missing=self.drop_missing or other.drop_missing,
            merged_groups={**other.merged_groups, **self.merged_groups},
        )

    # Commands

    def options(self, bins: int = BINS) -> list[str]:
        """The options of a command that reads data in this way; usual ones are left out."""
        usual = Reading({"score": "score", "label": "label", "group": ["group"]})
        given: dict[str, Any] = {}
        for role in ROLES:
            if (name := self.columns.get(role)) != usual.columns.get(role):
                given[role] = name
        given["positive"] = self.positive
        # What --drop-missing implies need not be said.
        implied = "drop" if self.drop_missing else "refuse"
        for name in ("missing_label", "missing_group"):
            if (treatment := getattr(self, name)) not in ("refuse", implied):
                given[name.replace("_", "-")] = treatment
        for name in WAYS:
            way = getattr(self, name)
            # Files that were read in several ways, or by a guess, are so again without an option.
            if way != getattr(usual, name) and " and " not in str(way) and name != self.guessed:
                given[name] = way
        given["merge-groups"] = [merging(new, old) for new, old in self.merged_groups.items()]
        given |= {"drop-group": self.dropped_groups, "bins": None if bins == BINS else bins}
        words = []
        for name, value in given.items():
            several = value if isinstance(value, list | tuple) else [value]
            words += [f"--{name}={one}" for one in several if one is not None]
        flags = {"handed-over": self.handed_over, "drop-missing": self.drop_missing}
        return words + [f"--{name}" for name, asked in flags.items() if asked]

    def command(self, name: str, files: Sequence[str], *more: str, bins: int = BINS) -> Command:
        """A command of isocost about files that are read in this way; ``more`` are its options.

        Rows that the command would refuse are dropped, as those before it left them out.
        """
        if name not in KEEPING:
            kept = [x for x in ("missing_label", "missing_group") if getattr(self, x) == "keep"]
            if kept:
                dropping: Any = dict.fromkeys(kept, "drop")
                return replace(self, **dropping).command(name, files, *more, bins=bins)
        paths = (f"./{path}" if path.startswith("-") and path != "-" else path for path in files)
        return Command(("isocost", name, *paths, *self.options(bins), *more))

    @classmethod
    def from_dict(cls, content: Any) -> Reading:
        """The reverse of :meth:`to_dict`; a ValueError says what is wrong."""
        if not isinstance(content, dict) or not content.keys() <= _CHECKS.keys():
            names = ", ".join(sorted(_CHECKS))
            raise ValueError(f"a reading that is not values by name ({names})")
        for name, value in content.items():
            if not _CHECKS[name](value):
                raise ValueError(f"a reading with {name} {short(value)}")
        given = dict(content)
        if "missing_group" in given:
            given["missing_group"] = as_group(given["missing_group"])
        if "dropped_groups" in given:
            given["dropped_groups"] = tuple(given["dropped_groups"])
        if "merged_groups" in given:
            merged = given["merged_groups"].items()
            given["merged_groups"] = {new: tuple(old) for new, old in merged}
        return cls(**given)


def _stronger(mine: Any, other: Any) -> Any:
    return other if mine == "refuse" else mine


def merging(new: str, old: Iterable[str]) -> str:
    """Groups to count as one, as the option --merge-groups takes them."""
    return f"{','.join(old)}={new}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and is_writable(value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= 2**53


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_count, value.values()))


def _are_columns(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() <= set(ROLES)
        and _are_texts(value.get("group", ["group"]))
        and all(name is None or role == "group" or _is_text(name) for role, name in value.items())
    )


def _is_group(value: Any) -> bool:
    try:
        as_group(value)
    except DataError:
        return False
    return True


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "columns": _are_columns,
    "positive": lambda value: _is_group(value) and not isinstance(value, list),
    **dict.fromkeys(WAYS, lambda value: _is_text(value) and len(value) <= 200),
    "guessed": lambda value: value == "encoding",
    "missing_label": lambda value: value in TREATMENTS,
    "missing_group": _is_group,
    **dict.fromkeys(("handed_over", "drop_missing"), lambda value: isinstance(value, bool)),
    **dict.fromkeys(_ROWS, _is_count),
    **dict.fromkeys(_ROWS_BY_COLUMN, _are_counts),
    "dropped_groups": _are_texts,
    "merged_groups": lambda value: isinstance(value, dict) and all(map(_are_texts, value.values())),
}


@dataclass(frozen=True)
class Command:
    """A command line, word by word, so that it can be written for any shell."""

    words: tuple[str, ...]

    @property
    def posix(self) -> str:
        """The line for a POSIX shell."""
        return command_line(self.words, "posix")

    @property
    def windows(self) -> str:
        """The line for cmd."""
        return command_line(self.words, "windows")

    @property
    def text(self) -> str:
        """The line for the system that this runs on."""
        return command_line(self.words)

    def __str__(self) -> str:
        return self.text


def command_line(words: Iterable[str], system: System | None = None) -> str:
    r"""Words as one line that a shell reads as these words; by default the shell of this system.

    Examples
    --------
    >>> words = ["isocost", "audit", "my data.csv", "--group=it's"]
    >>> print(command_line(words, "posix"))
    isocost audit 'my data.csv' --group='it'\''s'
    >>> print(command_line(words, "windows"))
    isocost audit "my data.csv" --group="it's"
    """
    system = system or ("windows" if sys.platform == "win32" else "posix")
    quoted = {"posix": _for_posix, "windows": _for_windows}[system]

    def written(word: str) -> str:
        option, equals, value = word.partition("=")
        bound = equals and re.fullmatch(r"--[a-z-]+", option)
        return f"{option}={quoted(value)}" if bound else quoted(word)

    return " ".join(map(written, words))


_PLAIN = re.compile(r"[\w@%+:,./-][\w@%+:,./=-]*", re.ASCII)


def _for_posix(word: str) -> str:
    """A text as one word; what cannot be printed is spelled out, so that pasting it is safe."""
    if _PLAIN.fullmatch(word):
        return word
    if word.isprintable():
        return "'" + word.replace("'", "'\\''") + "'"
    escaped = re.sub(r"['\\]", r"\\\g<0>", word)
    spelled = (x if x.isprintable() else f"\\U{ord(x):08x}" for x in escaped)
    return f"$'{''.join(spelled)}'"


def _for_windows(word: str) -> str:
    """A text as one word of cmd."""
    if _PLAIN.fullmatch(word) and "%" not in word:
        return word
    # After a quote with a backslash, cmd would take the rest for commands.
    doubled = re.sub(r'(\\*)("|$)', lambda found: 2 * found[1] + 2 * found[2], word)
    return f'"{doubled}"'


def _in_shell(name: str, value: Any) -> str:
    """A setting as an option, repeated for several values."""
    other_names = {"edges": "edge", "columns": "keep", "output": "output-column"}
    option = f"--{other_names.get(name, name).replace('_', '-')}"
    if value is UNSET or value is True:
        return option
    if isinstance(value, Mapping):
        value = [f"{key}={'...' if one is ... else one}" for key, one in value.items()]
    several = value if isinstance(value, list | tuple) else [value]
    return " ".join(f"{option} {command_line([str(one)])}" for one in several)


SHELL = Language("shell", _in_shell)
"""Settings as messages name them on the command line."""
