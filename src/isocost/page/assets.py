"""The parts of every page, whatever its data: templates, scripts and charts.

Scripts and styles are in ``page/``, and a content security policy allows no others.  The charts
are Vega-Lite specifications whose data the script fills in.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache, partial
from importlib.resources import files
from typing import Any

from isocost import __version__
from isocost.errors import require_package

MODEL = (
    "numbers", "groups", "tally", "costs", "measures", "feasibility", "judgement", "rules",
    "withhold", "changes", "views", "command",
)  # fmt: skip
"""The files of the model; each imports only those before it."""

INSTALL = 'pip install "isocost[report]"'

_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)

_EXPORT = re.compile(r"^export ", re.MULTILINE)

_COMMENT = re.compile(r"^ */\*\*(?:(?!\*/).)*\*/\n", re.MULTILINE | re.DOTALL)
"""Comments that fill their lines: a fifth of the script, and of no use in the page."""


def bundle() -> str:
    """The model as one script: the same functions, without import, export and comments.

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
    return files("isocost.page").joinpath("web", *path).read_text(encoding="utf-8")


def filled(template: str, **values: Any) -> str:
    """A template of the page with its values; templates may import from each other."""
    return str(_environment().get_template(template).render({"version": __version__, **values}))


@cache
def _environment() -> Any:
    jinja2 = require_package("jinja2", "jinja2", "is needed to write the report", INSTALL)
    return jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, loader=jinja2.FunctionLoader(page_file)
    )


def joined(folder: str, names: Iterable[str]) -> str:
    """The modules of a folder as one script, without import, export and comments."""
    modules = (_COMMENT.sub("", page_file(folder, f"{name}.js")) for name in names)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", module)) for module in modules)


APP = (
    "say", "state", "repairs", "placing", "drawing", "tables", "figures", "plane", "alternatives",
    "verdicts", "copying", "pictures", "controls", "main",
)  # fmt: skip
"""The files of the page's own script, after those of the model; each imports only from before."""


@cache
def page_script() -> str:
    """The model and the page's own script, as one module without imports."""
    return inert(f"{bundle()}\n{joined('app', APP)}")


@cache
def vega_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; it takes seconds, so it is made once."""
    return inert(str(_vl_convert().javascript_bundle("window.vegaEmbed = vegaEmbed;")))


def _vl_convert() -> Any:
    rule = "is needed to put the charts into the report"
    return require_package("vl_convert", "vl-convert-python", rule, INSTALL)


def _altair() -> Any:
    return require_package("altair", "altair", "is needed to draw the report", INSTALL)


def versions() -> dict[str, str]:
    """Versions of the packages that the words, style and scripts of a page come from."""
    drawing = {"altair": _altair(), "vl-convert-python": _vl_convert()}
    return {"isocost": __version__, **{name: one.__version__ for name, one in drawing.items()}}


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


@cache
def charts() -> dict[str, dict[str, Any]]:
    """The specifications, by name: "costs", "plane", "reliability" and "values".

    Examples
    --------
    >>> sorted(charts())
    ['costs', 'plane', 'reliability', 'values']
    """
    makers = {"costs": _costs, "plane": _plane, "reliability": _reliability, "values": _values}
    alt = _altair()
    return {name: make(alt).to_dict() for name, make in makers.items()}


def _layer(alt: Any, data: str, **encodings: Any) -> Any:
    """A chart of one of the data sets that the script fills; colours are taken as they come."""
    color = alt.Color("color:N", scale=None, legend=None)
    return alt.Chart(alt.NamedData(name=data)).encode(color=color, **encodings)


def _tip(alt: Any, field: str, title: str, format: str = ".3r") -> Any:
    return alt.Tooltip(f"{field}:Q", title=title, format=format)


def _name(alt: Any) -> Any:
    return alt.Tooltip("name:N", title="group")


def _costs(alt: Any) -> Any:
    """A chart of each group's cost, how far it can be raised, and the line it has to reach.

    Axes have no fixed format: Vega then writes as many digits as their ticks need.
    """
    wide = alt.Scale(domain=[alt.ExprRef("left"), alt.ExprRef("right")], nice=False, zero=False)
    axis = alt.Axis(tickCount=5, labelSeparation=6, grid=False)
    tall = alt.Scale(domain=[alt.ExprRef("low"), alt.ExprRef("high")], nice=False)
    x = alt.X("x:Q", title=None, scale=wide, axis=axis)
    y = alt.Y("y:Q", axis=None, scale=tall)
    ends = _layer(alt, "ends", x=x, y=y, tooltip=[_name(alt), _tip(alt, "x", "highest possible")])
    layers = alt.layer(
        _layer(alt, "target", x=x, tooltip="tip:N").mark_rule(strokeWidth=2, strokeDash=[2, 3]),
        _spans(alt, x, y).mark_rule(strokeCap="butt"),
        _layer(alt, "whiskers", x=x, x2="x2:Q", y=y).mark_rule(strokeWidth=1.5, clip=True),
        ends.mark_tick(thickness=3, size=alt.ExprRef("datum.long"), orient="vertical"),
        _after(alt, x, y).mark_point(strokeWidth=2.5, opacity=1, fillOpacity=1),
        _points(alt, x, y).mark_point(filled=True, opacity=1),
        *_words(alt, x, y),
    )
    return _framed(alt, layers)


def _framed(alt: Any, layers: Any) -> Any:
    """A chart whose limits and size the script sets."""
    params = [alt.param(name=name, value=i % 2) for i, name in enumerate(_PART)]
    return layers.add_params(*params)


def _spans(alt: Any, x: Any, y: Any) -> Any:
    """Ranges of cost that can be reached, and that cannot."""
    return _layer(
        alt,
        "spans",
        x=x,
        x2="x2:Q",
        y=y,
        strokeDash=alt.StrokeDash("dash:N", scale=None),
        strokeWidth=alt.StrokeWidth("thick:Q", scale=None),
        opacity=alt.Opacity("opacity:Q", scale=None),
        tooltip=[_name(alt), "tip:N"],
    )


def _points(alt: Any, x: Any, y: Any) -> Any:
    tips = [_name(alt), _tip(alt, "x", "cost")]
    shape, area = alt.Shape("shape:N", scale=None), alt.Size("area:Q", scale=None)
    return _layer(alt, "points", x=x, y=y, shape=shape, size=area, tooltip=tips)


def _after(alt: Any, x: Any, y: Any) -> Any:
    """Each group's cost after a repair: hollow, to tell it from the present one."""
    tips = [_name(alt), _tip(alt, "x", "cost after the repair")]
    fill = alt.Fill("paper:N", scale=None, legend=None)
    shape, area = alt.Shape("shape:N", scale=None), alt.Size("area:Q", scale=None)
    return _layer(alt, "after", x=x, y=y, shape=shape, size=area, fill=fill, tooltip=tips)


def _plane(alt: Any) -> Any:
    """The groups between perfect and no information, in the plane of the two rates."""
    x, y = (_rate(alt, name) for name in ("x", "y"))
    rates = [_tip(alt, "x", "false alarms"), _tip(alt, "y", "misses")]
    tips = [_name(alt), alt.Tooltip("what:N", title="what"), *rates]

    def marks(data: str, **mark: Any) -> Any:
        shape = alt.Shape("shape:N", scale=None)
        layer = _layer(alt, data, x=x, y=y, shape=shape, tooltip=tips)
        return layer.mark_point(opacity=1, **mark)

    level = _layer(alt, "levels", x=x, y=y, order="order:Q")
    heads = _layer(alt, "heads", x=x, y=y, angle=alt.Angle("angle:Q", scale=None), tooltip=tips)
    rules = partial(_rules, alt, x, y)
    layers = alt.layer(
        rules("diagonal", strokeWidth=1.5),
        level.mark_line(strokeWidth=2, strokeDash=[2, 3], clip=True),
        rules("lines", strokeWidth=2, opacity=0.75),
        rules("beyond", strokeWidth=2, strokeDash=[4, 4]).properties(name="beyond"),
        rules("arrows", strokeWidth=4),
        heads.mark_point(shape="triangle-up", filled=True, size=170, opacity=1),
        marks("trivial", filled=False, size=120, strokeWidth=2),
        marks("needed", filled=False, size=280, strokeWidth=3.5),
        marks("groups", filled=True, size=230),
        *_words(alt, x, y),
    )
    return _framed(alt, layers)


def _rules(alt: Any, x: Any, y: Any, data: str, **mark: Any) -> Any:
    """Lines between two points each."""
    return _layer(alt, data, x=x, y=y, x2="x2:Q", y2="y2:Q").mark_rule(clip=True, **mark)


def _rate(alt: Any, name: str) -> Any:
    """An axis of the plane."""
    titles = {
        "x": ["False alarms →", "average score of actual negatives"],
        "y": ["Misses ↑", "shortfall of actual positives"],
    }
    return _axis(alt, name, titles[name])


def _axis(alt: Any, name: str, title: Any, **options: Any) -> Any:
    """An axis whose limits the script sets; the title of the vertical one is above it."""
    kind, ends = {"x": (alt.X, _PART[:2]), "y": (alt.Y, _PART[2:])}[name]
    scale = alt.Scale(domain=[alt.ExprRef(end) for end in ends], nice=False, zero=False)
    on_top = {
        "titleAngle": 0,
        "titleAlign": "left",
        "titleAnchor": "end",
        "titleX": -44,
        "titleBaseline": "middle",
    }
    on_top |= {"titleY": -14 * len(title) if isinstance(title, list) else -14}
    axis = alt.Axis(
        tickCount=6, labelSeparation=6, **(on_top if name == "y" else {}), **options
    )  # fmt: skip
    return kind(f"{name}:Q", title=title, scale=scale, axis=axis)


def _words(alt: Any, x: Any, y: Any) -> list[Any]:
    """Texts, and lines to what they are about; alignment cannot be a field: each has a layer."""
    ties = _layer(alt, "ties", x=x, y=y, x2="x2:Q", y2="y2:Q")
    layers = [ties.mark_rule(strokeWidth=1).properties(name="ties")]
    for align in ("left", "right", "center"):
        layer = _layer(alt, "texts", x=x, y=y, text="text:N")
        layers.append(
            layer.transform_filter(f"datum.align === '{align}'").mark_text(
                align=align,
                fontSize=12.5,
                limit=190,
                dx=alt.ExprRef("datum.dx"),
                dy=alt.ExprRef("datum.dy"),
                fontWeight=alt.ExprRef("datum.weight"),
            )
        )
    return layers


def _reliability(alt: Any) -> Any:
    """A chart of scores beside the share that came true, for one group."""
    unit = alt.Scale(domain=[0, 1], nice=False)
    axis = alt.Axis(tickCount=5)
    x = alt.X("x:Q", title="Score", scale=unit, axis=axis)
    # The bars that count people are in a strip below 0, where nobody takes them for rates.
    tall = alt.Scale(domain=[-0.2, 1], nice=False)
    rates = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], format=".1f", domain=False)
    y = alt.Y("y:Q", title="Came true", scale=tall, axis=rates)
    tips = [
        alt.Tooltip("range:N", title="scores"),
        _tip(alt, "n", "people", ",.6"),
        _tip(alt, "x", "average score"),
        _tip(alt, "y", "came true"),
    ]
    ends = {"x2": "x2:Q", "y2": "y2:Q"}
    return alt.layer(
        _layer(alt, "bars", x=x, y=y, **ends).mark_bar(opacity=0.35),
        _layer(alt, "diagonal", x=x, y=y, **ends).mark_rule(strokeDash=[3, 3]),
        _layer(alt, "whiskers", x=x, y=y, y2="y2:Q").mark_rule(strokeWidth=1.5),
        _layer(alt, "bins", x=x, y=y).mark_line(strokeWidth=2),
        _layer(alt, "bins", x=x, y=y, tooltip=tips).mark_point(filled=True, size=60, opacity=1),
    ).properties(width="container", height=260)


def _values(alt: Any) -> Any:
    """A chart of the share of positives among people passed over and selected, and of scores."""
    x = _axis(alt, "x", "Positive among the passed over →", grid=False)
    y = _axis(alt, "y", "Positive among the selected ↑", grid=False)
    rates = [_tip(alt, "y", "among the selected"), _tip(alt, "x", "among the passed over")]
    tips = [_name(alt), alt.Tooltip("what:N", title="what"), *rates]

    shape = alt.Shape("shape:N", scale=None)
    fill = alt.Fill("paper:N", scale=None, legend=None)
    base = _layer(alt, "base", x=x, y=y, tooltip=[_name(alt), _tip(alt, "y", "base rate")])
    hollow = _layer(alt, "predicted", x=x, y=y, shape=shape, fill=fill, tooltip=tips)
    rules = partial(_rules, alt, x, y)
    layers = alt.layer(
        _layer(alt, "area", x=x, y=y, x2="x2:Q", y2="y2:Q").mark_rect(clip=True, opacity=0.6),
        rules("diagonal", strokeWidth=1.5, strokeDash=[2, 3]),
        rules("lines", strokeWidth=1, opacity=0.5),
        rules("whiskers", strokeWidth=1.5),
        rules("links", strokeWidth=2, strokeDash=[2, 2]),
        base.mark_tick(thickness=3, size=14, orient="vertical", opacity=1),
        hollow.mark_point(size=110, strokeWidth=2.2, opacity=1, fillOpacity=1),
        _layer(alt, "groups", x=x, y=y, shape=shape, tooltip=tips).mark_point(
            filled=True, size=190, opacity=1
        ),
        *_words(alt, x, y),
    )
    return _framed(alt, layers)


_PART = ("left", "right", "low", "high")
"""The ends of both axes, which the script sets."""
