"""The charts of the page, as Vega-Lite specifications, and their colours."""

from __future__ import annotations

from functools import cache
from typing import Any

from isocost.errors import MissingDependencyError, Problem

__all__ = ["SHAPES", "charts"]

SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
"""So that groups differ without colour too."""


def _altair() -> Any:
    try:
        import altair as alt
    except ImportError as error:
        raise MissingDependencyError(
            Problem(
                "altair",
                "is needed to draw the report",
                "no such package",
                'pip install "isocost[report]"',
            )
        ) from error
    return alt


@cache
def charts() -> dict[str, dict[str, Any]]:
    """The specifications, by name: "costs", "plane" and "reliability".

    Examples
    --------
    >>> sorted(charts())
    ['costs', 'plane', 'reliability']
    """
    makers = {"costs": _costs, "plane": _plane, "reliability": _reliability}
    return {name: make(_altair()).to_dict() for name, make in makers.items()}


def _layer(alt: Any, data: str, **encodings: Any) -> Any:
    """A chart of one of the data sets that the script fills; colours are taken as they come."""
    color = alt.Color("color:N", scale=None, legend=None)
    return alt.Chart(alt.NamedData(name=data)).encode(color=color, **encodings)


def _tip(alt: Any, field: str, title: str, format: str = ".3f") -> Any:
    return alt.Tooltip(f"{field}:Q", title=title, format=format)


def _name(alt: Any) -> Any:
    return alt.Tooltip("name:N", title="group")


def _costs(alt: Any) -> Any:
    """Where each group's cost is, how far it can be raised, and the line it has to reach.

    Axes have no fixed format: Vega then writes as many digits as their ticks need.
    """
    wide = alt.Scale(domain=[0, alt.ExprRef("high")], nice=False)
    axis = alt.Axis(tickCount=5, labelSeparation=6, grid=False)
    tall = alt.Scale(domain=[-0.55, alt.ExprRef("rows")], nice=False)
    x = alt.X("x:Q", title=None, scale=wide, axis=axis)
    y = alt.Y("row:Q", axis=None, scale=tall)

    def texts(data: str, align: str, dx: int, dy: int, **mark: Any) -> Any:
        layer = _layer(alt, data, x=x, y=y, text="text:N")
        return layer.mark_text(align=align, dx=dx, dy=dy, limit=260, **mark)

    ends = _layer(alt, "ends", x=x, y=y, tooltip=[_name(alt), _tip(alt, "x", "highest possible")])
    layers = alt.layer(
        _layer(alt, "target", x=x, tooltip="tip:N").mark_rule(strokeWidth=2, strokeDash=[2, 3]),
        _spans(alt, x, y).mark_rule(strokeCap="butt"),
        ends.mark_tick(thickness=3, size=22, orient="vertical"),
        _after(alt, x, y).mark_point(size=150, strokeWidth=2.5, opacity=1, fillOpacity=1),
        _points(alt, x, y).mark_point(filled=True, size=190, opacity=1),
        texts("names", "left", 0, 0, fontWeight=600, fontSize=14),
        texts("values", "center", 0, 20, fontSize=12.5),
        texts("gaps", "right", -7, -13, fontSize=12.5, fontWeight=600),
    )
    found = layers.add_params(alt.param(name="high", value=1), alt.param(name="rows", value=2))
    return found.properties(width="container", height=200)


def _spans(alt: Any, x: Any, y: Any) -> Any:
    """Stretches of cost: what can be had, and what cannot."""
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
    return _layer(alt, "points", x=x, y=y, shape=alt.Shape("shape:N", scale=None), tooltip=tips)


def _after(alt: Any, x: Any, y: Any) -> Any:
    """Where a repair takes each group's cost: hollow, so that it is not taken for the present."""
    tips = [_name(alt), _tip(alt, "x", "cost after the repair")]
    fill = alt.Fill("paper:N", scale=None, legend=None)
    shape = alt.Shape("shape:N", scale=None)
    return _layer(alt, "after", x=x, y=y, shape=shape, fill=fill, tooltip=tips)


def _plane(alt: Any) -> Any:
    """The groups between perfect and no information, in the plane of the two rates."""
    x, y = (_rate(alt, name) for name in ("x", "y"))
    rates = [_tip(alt, "x", "false alarms"), _tip(alt, "y", "misses")]
    tips = [_name(alt), alt.Tooltip("what:N", title="what"), *rates]

    def rules(data: str, **mark: Any) -> Any:
        return _layer(alt, data, x=x, y=y, x2="x2:Q", y2="y2:Q").mark_rule(clip=True, **mark)

    def marks(data: str, **mark: Any) -> Any:
        shape = alt.Shape("shape:N", scale=None)
        layer = _layer(alt, data, x=x, y=y, shape=shape, tooltip=tips)
        return layer.mark_point(opacity=1, **mark)

    level = _layer(alt, "levels", x=x, y=y, order="order:Q")
    heads = _layer(alt, "heads", x=x, y=y, angle=alt.Angle("angle:Q", scale=None), tooltip=tips)
    layers = alt.layer(
        rules("diagonal", strokeWidth=1.5),
        level.mark_line(strokeWidth=2, strokeDash=[2, 3], clip=True),
        rules("lines", strokeWidth=2, opacity=0.75),
        rules("beyond", strokeWidth=2, strokeDash=[4, 4]),
        rules("arrows", strokeWidth=4),
        heads.mark_point(shape="triangle-up", filled=True, size=170, opacity=1),
        marks("trivial", filled=False, size=120, strokeWidth=2),
        marks("needed", filled=False, size=280, strokeWidth=3.5),
        marks("groups", filled=True, size=230),
        *(_words(alt, x, y, align) for align in ("left", "right", "center")),
    )
    found = layers.add_params(alt.param(name="right", value=1), alt.param(name="top", value=1))
    return found.properties(width="container", height=440)


def _rate(alt: Any, name: str) -> Any:
    """An axis of the plane; its end is a parameter that the script sets."""
    kind, end, title = {
        "x": (alt.X, "right", ["False alarms →", "average score of actual negatives"]),
        "y": (alt.Y, "top", ["Misses →", "shortfall of actual positives"]),
    }[name]
    scale = alt.Scale(domain=[0, alt.ExprRef(end)], nice=False)
    axis = alt.Axis(tickCount=6, labelSeparation=6)
    return kind(f"{name}:Q", title=title, scale=scale, axis=axis)


def _words(alt: Any, x: Any, y: Any, align: str) -> Any:
    """Texts in the plane; their alignment cannot be a field, so each kind has a layer."""
    layer = _layer(alt, "texts", x=x, y=y, text="text:N")
    return layer.transform_filter(f"datum.align === '{align}'").mark_text(
        align=align,
        fontSize=12.5,
        limit=190,
        dx=alt.ExprRef("datum.dx"),
        dy=alt.ExprRef("datum.dy"),
        fontWeight=alt.ExprRef("datum.weight"),
    )


def _reliability(alt: Any) -> Any:
    """What scores say beside what came true, for one group."""
    unit = alt.Scale(domain=[0, 1], nice=False)
    axis = alt.Axis(tickCount=5)
    x = alt.X("x:Q", title="Score", scale=unit, axis=axis)
    # Bars of how many people stand in a strip below 0, where nobody reads them as rates.
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
