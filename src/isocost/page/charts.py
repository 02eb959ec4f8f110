"""The pictures: specifications for Vega-Lite, whose data the script fills in, and small drawings.

A chart of the page is a function here, its place in ``template.html``, and a function of
``web/app/figures.js`` that makes its data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from isocost.cells import Cells
from isocost.errors import require_package
from isocost.groups import Group
from isocost.measures.intervals import design_effects, normal_quantile, score_interval
from isocost.plots.display import PALETTE
from isocost.repairs.review import EDGES, REVIEWERS, HandedOver
from isocost.tallies import Tally
from isocost.typing import Ints
from isocost.verdict.sentences import number, percent

INSTALL = 'pip install "isocost[report]"'

LIMITS = ("left", "right", "low", "high")
"""The ends of both axes, which the script sets."""

MOST_PANELS = 8
"""Of so many groups there is a picture; of more, those of whom most are handed over."""

BAR, TALL = 30.0, 110.0
"""How wide and how high bars can be, in units of the drawing."""

LONG = 220.0
"""How long the axis from 0 to 1 is in the table, in the same units."""

MARKS = {
    "circle": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
    "square": "M-4.5-4.5H4.5V4.5H-4.5Z",
    "diamond": "M0-6.5L5.5 0L0 6.5L-5.5 0Z",
    "triangle-up": "M0-6L6 4.5H-6Z",
    "cross": "M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "triangle-down": "M0 6L6-4.5H-6Z",
}
"""The marks of groups, which differ without colour too: Vega's names, and paths around (0, 0)."""

BY_WHOM = {
    "perfect": "Everybody, if the reviewer is never wrong",
    "score": "Everybody, if the reviewer decides as the old score did",
    "coin": "Everybody, if the reviewer tosses a coin",
}

CHARTS: dict[str, Callable[[Any], Any]] = {}
"""The functions that make the charts, by name."""


def altair() -> Any:
    """The package that writes the specifications."""
    return require_package("altair", "altair", "is needed to draw the report", INSTALL)


@cache
def charts() -> dict[str, dict[str, Any]]:
    """The specifications, by name.

    Examples
    --------
    >>> sorted(charts())
    ['costs', 'plane', 'reliability', 'values']
    """
    specs = {name: make(altair()).to_dict() for name, make in CHARTS.items()}
    return {n: {k: v for k, v in spec.items() if k != "$schema"} for n, spec in specs.items()}


def chart(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add a chart to the page under the name of the function that makes it of altair."""
    CHARTS[make.__name__] = make
    return make


def _layer(alt: Any, data: str, **encodings: Any) -> Any:
    """A chart of one of the data sets that the script fills; colours are taken as they come."""
    for name in ("shape", "fill", "size", "angle", "strokeWidth", "opacity"):
        if isinstance(encodings.get(name), str):
            kind = getattr(alt, name[:1].upper() + name[1:])
            encodings[name] = kind(encodings[name], scale=None, legend=None)
    color = alt.Color("color:N", scale=None, legend=None)
    return alt.Chart(alt.NamedData(name=data)).encode(color=color, **encodings)


def _tips(alt: Any, *names: str, format: str = ".3r", **numbers: str) -> list[Any]:
    """What a mark tells when it is pointed at: texts, and then numbers, by field."""
    titles = {"name": "group", "range": "scores"}
    texts = [alt.Tooltip(f"{name}:N", title=titles.get(name, name)) for name in names]
    return texts + [alt.Tooltip(f"{n}:Q", title=t, format=format) for n, t in numbers.items()]


def _axis(alt: Any, name: str, title: Any, **options: Any) -> Any:
    """An axis whose limits the script sets; the title of the vertical one is above it.

    It has no fixed format: Vega then writes as many digits as the ticks need.
    """
    kind, ends = {"x": (alt.X, LIMITS[:2]), "y": (alt.Y, LIMITS[2:])}[name]
    scale = alt.Scale(domain=[alt.ExprRef(end) for end in ends], nice=False, zero=False)
    if name == "y":
        lines = len(title) if isinstance(title, list) else 1
        options |= {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": -44}
        options |= {"titleBaseline": "middle", "titleY": -14 * lines}
    axis = alt.Axis(**{"tickCount": 6, "labelSeparation": 6, **options})
    return kind(f"{name}:Q", title=title, scale=scale, axis=axis)


def _rules(alt: Any, x: Any, y: Any, data: str, **mark: Any) -> Any:
    """Lines between two points each."""
    return _layer(alt, data, x=x, y=y, x2="x2:Q", y2="y2:Q").mark_rule(clip=True, **mark)


def _framed(alt: Any, x: Any, y: Any, *layers: Any) -> Any:
    """A chart whose limits and size the script sets; texts, and lines to their marks, on top."""
    ties = _layer(alt, "ties", x=x, y=y, x2="x2:Q", y2="y2:Q")
    words = [ties.mark_rule(strokeWidth=1).properties(name="ties")]
    # Alignment cannot be a field: each has a layer.
    for align in ("left", "right", "center"):
        layer = _layer(alt, "texts", x=x, y=y, text="text:N")
        words.append(
            layer.transform_filter(f"datum.align === '{align}'").mark_text(
                align=align,
                fontSize=12.5,
                limit=190,
                dx=alt.ExprRef("datum.dx"),
                dy=alt.ExprRef("datum.dy"),
                fontWeight=alt.ExprRef("datum.weight"),
            )
        )
    params = [alt.param(name=name, value=i % 2) for i, name in enumerate(LIMITS)]
    return alt.layer(*layers, *words).add_params(*params)


@chart
def costs(alt: Any) -> Any:
    """Each group's cost, how far it can be raised, and the line it has to reach."""
    x = _axis(alt, "x", None, tickCount=5, grid=False)
    tall = alt.Scale(domain=[alt.ExprRef("low"), alt.ExprRef("high")], nice=False)
    y = alt.Y("y:Q", axis=None, scale=tall)
    marks = {"x": x, "y": y, "shape": "shape:N", "size": "area:Q"}
    ends = _layer(alt, "ends", x=x, y=y, tooltip=_tips(alt, "name", x="highest possible"))
    spans = _layer(alt, "spans", x=x, x2="x2:Q", y=y, strokeWidth="thick:Q",
                   tooltip=_tips(alt, "name", "tip"))  # fmt: skip
    missing = _layer(alt, "missing", x=x, x2="x2:Q", y=y, tooltip=_tips(alt, "name", "tip"))
    after = _layer(alt, "after", **marks, fill="paper:N",
                   tooltip=_tips(alt, "name", x="cost after the repair"))  # fmt: skip
    points = _layer(alt, "points", **marks, tooltip=_tips(alt, "name", x="cost"))
    return _framed(
        alt, x, y,
        _layer(alt, "target", x=x, tooltip="tip:N").mark_rule(strokeWidth=2, strokeDash=[2, 3]),
        spans.mark_rule(strokeCap="butt", opacity=0.32),
        missing.mark_rule(strokeCap="butt", strokeWidth=3, strokeDash=[5, 4]),
        _layer(alt, "whiskers", x=x, x2="x2:Q", y=y).mark_rule(strokeWidth=1.5, clip=True),
        ends.mark_tick(thickness=3, size=alt.ExprRef("datum.long"), orient="vertical"),
        after.mark_point(strokeWidth=2.5, opacity=1, fillOpacity=1),
        points.mark_point(filled=True, opacity=1),
    )  # fmt: skip


@chart
def plane(alt: Any) -> Any:
    """The groups between perfect and no information, in the plane of the two rates."""
    x = _axis(alt, "x", ["False alarms →", "average score of actual negatives"])
    y = _axis(alt, "y", ["Misses ↑", "shortfall of actual positives"])
    tips = _tips(alt, "name", "what", x="false alarms", y="misses")

    def marks(data: str, **mark: Any) -> Any:
        return _layer(alt, data, x=x, y=y, shape="shape:N", tooltip=tips).mark_point(
            opacity=1, **mark
        )

    heads = _layer(alt, "heads", x=x, y=y, angle="angle:Q", tooltip=tips)
    return _framed(
        alt, x, y,
        _rules(alt, x, y, "diagonal", strokeWidth=1.5),
        _layer(alt, "levels", x=x, y=y, order="order:Q").mark_line(
            strokeWidth=2, strokeDash=[2, 3], clip=True
        ),
        _rules(alt, x, y, "lines", strokeWidth=2, opacity=0.75),
        _rules(alt, x, y, "beyond", strokeWidth=2, strokeDash=[4, 4]).properties(name="beyond"),
        _rules(alt, x, y, "arrows", strokeWidth=4),
        heads.mark_point(shape="triangle-up", filled=True, size=170, opacity=1),
        marks("trivial", filled=False, size=120, strokeWidth=2),
        marks("needed", filled=False, size=280, strokeWidth=3.5),
        marks("groups", filled=True, size=230),
    )  # fmt: skip


@chart
def values(alt: Any) -> Any:
    """The share of positives among people passed over and selected, and of scores."""
    x = _axis(alt, "x", "Positive among the passed over →", grid=False)
    y = _axis(alt, "y", "Positive among the selected ↑", grid=False)
    tips = _tips(alt, "name", "what", y="among the selected", x="among the passed over")
    marks = {"x": x, "y": y, "shape": "shape:N", "tooltip": tips}
    base = _layer(alt, "base", x=x, y=y, tooltip=_tips(alt, "name", y="base rate"))
    return _framed(
        alt, x, y,
        _layer(alt, "area", x=x, y=y, x2="x2:Q", y2="y2:Q").mark_rect(clip=True, opacity=0.6),
        _rules(alt, x, y, "diagonal", strokeWidth=1.5, strokeDash=[2, 3]),
        _rules(alt, x, y, "lines", strokeWidth=1, opacity=0.5),
        _rules(alt, x, y, "whiskers", strokeWidth=1.5),
        _rules(alt, x, y, "links", strokeWidth=2, strokeDash=[2, 2]),
        base.mark_tick(thickness=3, size=14, orient="vertical", opacity=1),
        _layer(alt, "predicted", **marks, fill="paper:N").mark_point(
            size=110, strokeWidth=2.2, opacity=1, fillOpacity=1
        ),
        _layer(alt, "groups", **marks).mark_point(filled=True, size=190, opacity=1),
    )  # fmt: skip


@chart
def reliability(alt: Any) -> Any:
    """Scores beside the share that came true, for one group."""
    unit = alt.Scale(domain=[0, 1], nice=False)
    x = alt.X("x:Q", title="Score", scale=unit, axis=alt.Axis(tickCount=5))
    # The bars that count people are in a strip below 0, where nobody takes them for rates.
    tall = alt.Scale(domain=[-0.2, 1], nice=False)
    rates = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], format=".1f", domain=False)
    y = alt.Y("y:Q", title="Came true", scale=tall, axis=rates)
    people = _tips(alt, "range", n="people", format=",.6")
    tips = people + _tips(alt, x="average score", y="came true")
    ends = {"x": x, "y": y, "x2": "x2:Q", "y2": "y2:Q"}
    return alt.layer(
        _layer(alt, "bars", **ends).mark_bar(opacity=0.35),
        _layer(alt, "diagonal", **ends).mark_rule(strokeDash=[3, 3]),
        _layer(alt, "whiskers", x=x, y=y, y2="y2:Q").mark_rule(strokeWidth=1.5),
        _layer(alt, "bins", x=x, y=y).mark_line(strokeWidth=2),
        _layer(alt, "bins", x=x, y=y, tooltip=tips).mark_point(filled=True, size=60, opacity=1),
    ).properties(width="container", height=260)


# Numbers that only pictures show


def _tenths(tally: Tally, group: int) -> tuple[Cells, Ints]:
    """The cells of a group, and the tenth of the scores in which each of them is."""
    cells = tally.cells.take(tally.cells.of_group(group))
    firsts = [tally.grid.first_bin(edge) for edge in EDGES[:-1]]
    return cells, np.searchsorted(firsts, cells.bin, side="right") - 1


def came_true(tally: Tally, group: int, level: float) -> list[dict[str, float]]:
    """Mean label against mean score by tenth of the scores, with Wilson's interval.

    With weights the number of rows is (sum w)^2 / sum w^2.

    Examples
    --------
    >>> from isocost.examples import compas
    >>> first = came_true(compas(), 1, 0.95)[0]
    >>> round(first["mean_score"], 3), round(first["mean_label"], 3)
    (0.216, 0.209)
    """
    cells, tenth = _tenths(tally, group)
    z, points = normal_quantile((1.0 + level) / 2.0), []
    effect = float(design_effects(tally)[group])
    for place in np.unique(tenth).tolist():
        own = cells.take(np.flatnonzero(tenth == place))
        w, rows = float(own.w.sum()), float(own.w.sum() ** 2 / own.w2.sum() / effect)
        share = float((own.w * own.label).sum()) / w
        low, high = score_interval(share, share * (1.0 - share), rows, (0.0, 1.0), z)
        ends = {"lo": place / 10, "hi": (place + 1) / 10, "n": float(own.n.sum()), "weight": w}
        means = {"mean_score": float(own.wh.sum()) / w, "mean_label": share}
        points.append({**ends, **means, "low": low, "high": high})
    return points


def panels(who: HandedOver, names: dict[Group, str]) -> list[dict[str, Any]]:
    """A histogram of each group's scores, whose upper parts are handed over."""
    order = sorted(who.groups, key=lambda group: -np.nan_to_num(who.groups[group].share))
    drawn = [group for group in who.groups if group in order[:MOST_PANELS]]
    people = {}
    for group in drawn:
        cells, tenth = _tenths(who.tally, who.tally.index_of(group))
        people[group] = np.bincount(tenth, cells.w, len(EDGES) - 1) / cells.w.sum()
    highest = max(float(shares.max()) for shares in people.values())
    panels = []
    for group in drawn:
        one, bars = who.groups[group], []
        for i, (share, away) in enumerate(zip(people[group], one.scores, strict=True)):
            if not share > 0.0:
                continue
            gone = float(np.nan_to_num(away))
            whole = TALL * share / highest
            bars.append({
                "x": f"{i * BAR + 2:.1f}",
                "middle": f"{(i + 0.5) * BAR:.1f}",
                "gone": f"{whole * gone:.2f}",
                "stay": f"{whole - whole * gone:.2f}",
                "top": f"{TALL - whole:.2f}",
                "split": f"{TALL - whole + whole * gone:.2f}",
                "percent": f"{100 * gone:.0f}",
                "range": f"{EDGES[i]:g} to {EDGES[i + 1]:g}",
            })  # fmt: skip
        panels.append({
            "name": names[group],
            "share": percent(one.share),
            "rows": f"{one.rows:,.0f}",
            "of": f"{who.tally.totals.n[who.tally.index_of(group)].sum():,.0f}",
            "base": or_dash(one.base_rate, percent),
            "decided_base": or_dash(one.decided_base_rate, percent),
            "bars": bars,
        })  # fmt: skip
    return panels


def rate_lines(who: HandedOver) -> list[dict[str, Any]]:
    """Lines of the table: how far both error rates of groups differ, one after the other."""
    each = who.groups.values()
    share, others = percent(who.share), percent(1.0 - who.share)
    lines: dict[str, list[tuple[float, float]]] = {
        "Everybody, before": list(who.before.values()),
        f"Decided by the score ({others} of people)": [one.decided for one in each],
        f"What the reviewer must reach for the others ({share})": [one.must_reach for one in each],
        **{BY_WHOM[name]: list(who.whole[name].values()) for name in REVIEWERS},
    }
    return [
        {"title": title, "cells": [_strip([pair[k] for pair in pairs]) for k in (0, 1)]}
        for title, pairs in lines.items()
    ]


def _strip(rates: list[float]) -> dict[str, Any]:
    """The rates of all groups on one axis, and how far they differ."""
    known = [(i, rate) for i, rate in enumerate(rates) if not math.isnan(rate)]
    if not known:
        return {"dots": [], "text": "–", "differ": ""}
    low, high = min(rate for _, rate in known), max(rate for _, rate in known)
    text = number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"
    # Each mark is smaller than the one under it, so that none hides another at the same place.
    dots = [
        {"x": f"{LONG * rate:.2f}", "scale": f"{1.35 - 0.6 * k / len(known):.2f}", **mark_of(i)}
        for k, (i, rate) in enumerate(known)
    ]
    return {"dots": dots, "text": text, "differ": f"differ by {number(high - low)}"}


def mark_of(index: int) -> dict[str, str]:
    """The colours of a group's mark by theme, and its path."""
    colors = {theme: hues[index % len(hues)] for theme, hues in PALETTE.items()}
    return {**colors, "mark": list(MARKS.values())[index % len(MARKS)]}


def or_dash(value: float, style: Callable[[float], str]) -> str:
    """A number as text, or a dash if it is not defined."""
    return "–" if math.isnan(value) else style(value)
