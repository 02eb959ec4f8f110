"""What the page is put together from: scripts, styles, and the policy that allows no others."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from isocost.errors import MissingDependencyError, Problem

__all__ = [
    "APP",
    "MODEL",
    "bundle",
    "embedded_json",
    "joined",
    "page_file",
    "page_script",
    "policy",
    "vega_script",
]

MODEL = (
    "numbers",
    "groups",
    "tally",
    "costs",
    "measures",
    "feasibility",
    "judgement",
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
    return files("isocost.reports").joinpath("page", *path).read_text(encoding="utf-8")


def joined(folder: str, names: Iterable[str]) -> str:
    """Modules of a folder put together as one script, without import and export."""
    parts = (page_file(folder, f"{name}.js") for name in names)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", part)) for part in parts)


APP = (
    "say",
    "state",
    "repairs",
    "figures",
    "placing",
    "plane",
    "drawing",
    "tables",
    "alternatives",
    "verdicts",
    "controls",
    "copying",
    "main",
)
"""The files of the page's own script, after those of the model; each imports only from before."""


@cache
def page_script() -> str:
    """The model and the page's own script, as one module without imports."""
    return inert(f"{bundle()}\n{joined('app', APP)}")


@cache
def vega_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; it takes seconds, so it is made once."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingDependencyError(
            Problem(
                "vl-convert-python",
                "is needed to put the charts into the report",
                "no such package",
                'pip install "isocost[report]"',
            )
        ) from error
    return inert(str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")))


def inert(script: str) -> str:
    r"""A script whose texts cannot end the element that it stands in.

    Examples
    --------
    >>> inert("a = '</script>'")
    "a = '<\\/script>'"
    """
    return re.sub(r"<(/script|!--)", r"<\\\1", script, flags=re.IGNORECASE)


def embedded_json(content: Any) -> str:
    r"""JSON that is safe inside an HTML script element, whatever texts it holds.

    Examples
    --------
    >>> embedded_json({"name": "</script>&"})
    '{"name":"\\u003c/script\\u003e\\u0026"}'
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def policy(scripts: Iterable[str]) -> str:
    """A content security policy under which only these scripts run and nothing is fetched."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
