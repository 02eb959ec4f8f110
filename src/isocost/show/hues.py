"""The colours of groups, in one place: the page and the displays draw the same group alike.

The hues are those of Okabe and Ito, which colour-blind people can tell apart, made darker or
lighter until they stand out from the page (3 : 1).  None is red: on the page red means out of
reach.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["HUES", "PALETTE", "Hue"]


class Hue(NamedTuple):
    """One hue: for marks on light paper, for text on it (4.5 : 1), and for marks on dark."""

    mark: str
    ink: str
    dark: str


HUES = (
    Hue("#0072b2", "#005c8f", "#5ab4f0"),
    Hue("#b37400", "#7a5400", "#f0b429"),
    Hue("#00805c", "#00664a", "#35c79c"),
    Hue("#b0558c", "#8f3f6c", "#e59acb"),
    Hue("#3285b8", "#1f6a94", "#9fd6f7"),
    Hue("#c75300", "#a94a00", "#f58b4c"),
    Hue("#7d7400", "#5c5500", "#e6dc6a"),
    Hue("#3c3c3c", "#333333", "#d5d7db"),
)
"""In the order of the groups."""

PALETTE = {"light": tuple(h.mark for h in HUES), "dark": tuple(h.dark for h in HUES)}
"""The marks of the page, by theme."""
