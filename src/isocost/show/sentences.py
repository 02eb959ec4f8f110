"""Sentences of the report: words, numbers, and the names of groups kept apart from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from isocost.groups import Group, group_names, names_of

__all__ = [
    "Name",
    "Sentence",
    "fill",
    "number",
    "percent",
    "shown_names",
    "signed",
    "spoken_names",
]


@dataclass(frozen=True)
class Name:
    """The name of a group within a sentence."""

    text: str


Sentence = list[str | Name]

LONGEST = 60
"""Letters of a name within a sentence."""

_PLACE = re.compile(r"\{(\w+)\}")


def fill(template: str, **values: str | Name | Sentence) -> Sentence:
    """A sentence with its places filled.

    Examples
    --------
    >>> fill("Errors cost {high} {cost}.", high=Name("men"), cost="0.5")
    ['Errors cost ', Name(text='men'), ' 0.5.']
    """
    found: Sentence = []
    for place, part in enumerate(_PLACE.split(template)):
        value = values[part] if place % 2 else part
        for piece in value if isinstance(value, list) else [value]:
            if isinstance(piece, str) and found and isinstance(found[-1], str):
                found[-1] += piece
            elif piece != "":
                found.append(piece)
    return found


def shown_names(groups: Iterable[Group]) -> dict[Group, str]:
    """What the page calls each group: a bare number or truth value reads better as "group 0".

    The parts of an intersection have a dot between them: a comma would be one of the sentence's.

    Examples
    --------
    >>> list(shown_names(["women", 1.0, ("F", 30)]).values())
    ['women', 'group 1', 'F · 30']
    """
    plain = names_of(groups)
    shown = {
        group: " · ".join(group_names([part])[0] for part in group)
        if isinstance(group, tuple) and len(group) > 1
        else _called(name)
        for group, name in plain.items()
    }
    return shown if len(set(shown.values())) == len(shown) else plain


def _called(name: str) -> str:
    bare = re.fullmatch(r"-?\d+(\.\d+)?|True|False|.", name) is not None
    return f"group {name.removesuffix('.0')}" if bare else name


def spoken_names(groups: Iterable[Group]) -> dict[Group, Name]:
    """The same names within sentences: cut where they would drown them.

    Examples
    --------
    >>> [len(name.text) for name in spoken_names(["women", "long " * 20]).values()]
    [5, 60]
    """
    whole = shown_names(groups)
    short = {group: _shortened(name) for group, name in whole.items()}
    names = short if len(set(short.values())) == len(short) else whole
    return {group: Name(name) for group, name in names.items()}


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1].rstrip()}…"


def number(value: float) -> str:
    """Three decimals: more than anybody compares by eye."""
    return f"{value:.3f}"


def percent(value: float) -> str:
    """A share in percent, with one decimal."""
    return f"{100 * value:.1f}\u00a0%"


def signed(value: float) -> str:
    """A number with a real minus sign."""
    return number(value).replace("-", "−")
