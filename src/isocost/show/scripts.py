"""The page's own script: files that are modules under node, put together for one HTML file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files

__all__ = ["MODEL", "bundle", "joined", "page_file"]

MODEL = (
    "numbers",
    "groups",
    "tally",
    "costs",
    "measures",
    "feasibility",
    "rules",
    "withhold",
    "changes",
    "views",
    "command",
)
"""The files of the model; each imports only those before it."""

_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def bundle() -> str:
    """The model as one script: the same functions, without import and export.

    Notes
    -----
    No name is used by two of the files, and imports stand on one line each; the tests see to it.

    Examples
    --------
    >>> script = bundle()
    >>> "function withhold(" in script, "export " in script
    (True, False)
    """
    return joined("model", MODEL)


def page_file(*path: str) -> str:
    """A file of the page as text."""
    return files("isocost.show").joinpath("page", *path).read_text(encoding="utf-8")


def joined(folder: str, names: Iterable[str]) -> str:
    """Modules of a folder put together as one script, without import and export."""
    parts = (page_file(folder, f"{name}.js") for name in names)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", part)) for part in parts)
