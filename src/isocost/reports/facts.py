"""What the report says at the audit's own settings: sentences, key numbers and tables.

Everything is made of plain texts and of :class:`Name`, so that whoever writes the page can keep
the names of groups apart from words.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from isocost import __version__
from isocost.groups import Group, shown_names
from isocost.measures.audit import Audit
from isocost.measures.feasibility import Feasibility
from isocost.reports.words import COSTS, WORDS
from isocost.verdict.sentences import Name, Sentence, fill, number, percent
from isocost.verdict.wording import blocked_group, changed_groups, statement

__all__ = ["cost_words", "facts", "row_titles", "spoken_names"]

LONGEST = 60
"""Letters of a name within a sentence."""


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


def cost_words(audit: Audit) -> dict[str, str]:
    """What the cost of the audit is called and what it means."""
    cost = audit.cost
    kind = str(cost).partition(":")[0].partition(" ")[0]
    amounts = {name: _amount(getattr(cost, name)) for name in ("fp", "fn")}
    return {name: text.format(**amounts) for name, text in COSTS[kind].items()}


def _amount(amount: float | Mapping[Group, float]) -> str:
    return "an amount of its own group" if isinstance(amount, Mapping) else f"{amount:.12g}"


def facts(
    audit: Audit,
    title: str,
    suppressed: str = "nothing",
    hidden: Collection[int] = (),
    single: str = "",
    data: str = "data.csv",
) -> dict[str, Any]:
    """Everything that the page says before anybody touches it.

    ``hidden`` are the places of groups whose rates at the threshold are not to be told;
    ``single`` says of how many people alone the page tells, ``data`` how commands name the data.
    """
    said = statement(audit, spoken_names(audit.groups), data)
    return {
        "title": title,
        "verdict": said.headline,
        "ledes": [[cost_words(audit)["meaning"]], *said.details],
        "figures": [{"alert": False, **key} for key in keys(audit)],
        "settings": settings(audit),
        "why": why(audit),
        "geometry": list(geometry(audit)),
        "table": table(audit, hidden),
        "advice": [*(said.details[-1:] if _doubt(audit) else ()), *said.notes],
        "none_advised": _none_advised(audit),
        "computed": computed(audit, suppressed, single),
        "cost": cost_words(audit),
    }


def _doubt(audit: Audit) -> str:
    """Why the data do not support a repair; nothing if they do, or if none would do it."""
    return WORDS.get(f"key_{audit.verdict.reason}", "")


def _none_advised(audit: Audit) -> str:
    why = _doubt(audit)
    return WORDS["none_advised"].format(why=why) if why else ""


def settings(audit: Audit) -> Sentence:
    """What the page is shown for: on paper there are no controls to see it from."""
    tolerance, threshold = audit.feasibility.tolerance, audit.threshold
    axis = cost_words(audit)["axis"]
    words = {"tolerance": f"{tolerance:g}", "threshold": f"{threshold:g}", "off": ""}
    return fill(WORDS["settings"], axis=axis, **words)


def why(audit: Audit) -> str:
    """What stands above the explanation."""
    reach = audit.feasibility
    if not reach.feasible:
        return WORDS["why_not" if audit.verdict.reason == "infeasible" else "why_not_measured"]
    if not reach.changed or _doubt(audit):
        return WORDS["why_nothing"]
    return WORDS["why_closer" if reach.tolerance else "why_equal"]


def keys(audit: Audit) -> Iterator[dict[str, Any]]:
    """The few numbers that stand large at the top; what the verdict rests on stands out."""
    names, reason = spoken_names(audit.groups), audit.verdict.reason
    interval = None
    if audit.intervals is not None and audit.verdict.enough:
        low, high = audit.intervals.disparities["cost"]
        level = f"{100 * audit.intervals.confidence:.4g}\u00a0%"
        interval = fill(WORDS["interval"], level=level, low=number(low), high=number(high))
    difference = number(audit.disparity.difference)
    yield {"value": difference, "label": WORDS["key_difference"], "note": interval}
    doubt = _doubt(audit)
    if doubt:
        yield {"value": WORDS["key_no"], "label": WORDS["key_not_advised"], "note": [doubt]}
    else:
        yield {**_reach_key(audit.feasibility, names), "alert": reason == "infeasible"}
    worst = max(audit.compared, key=lambda group: audit.groups[group].calibration_gap)
    yield {
        "value": number(audit.groups[worst].calibration_gap),
        "label": WORDS["key_gap"],
        "note": fill(WORDS["key_gap_note"], group=names[worst]),
        "alert": reason == "uncalibrated",
    }
    yield {
        "value": f"{audit.tally.n:,.0f}",
        "label": WORDS["key_people"],
        "note": fill(WORDS["key_people_note"], count=str(len(audit.groups))),
    }


def _reach_key(reach: Feasibility, names: Mapping[Group, Name]) -> dict[str, Any]:
    if not reach.feasible:
        short = number(reach.smallest_tolerance - reach.tolerance)
        note = fill(WORDS["key_reach_note"])
        return {"value": short, "label": WORDS["key_reach"], "note": note}
    if not reach.changed:
        note = fill(WORDS["key_nothing_note"])
        return {"value": "0", "label": WORDS["key_nothing"], "note": note}
    most = max(reach.changed, key=lambda group: reach.alpha[group])
    kind = "closer" if reach.tolerance else "withheld"
    note = fill(WORDS[f"key_{kind}_note"], group=names[most])
    return {"value": percent(reach.alpha[most]), "label": WORDS["key_withheld"], "note": note}


def geometry(audit: Audit) -> Iterator[Sentence]:
    """Why it can or cannot be had, told along the picture."""
    found, names = audit.feasibility, spoken_names(audit.groups)
    yield fill(WORDS["geometry_axes"])
    yield fill(WORDS["geometry_line"])
    within = fill(WORDS["within"], tolerance=f"{found.tolerance:g}") if found.tolerance else ""
    told: dict[str, Any] = {"high": names[found.target_group], "within": within}
    if not found.feasible:
        blocked = names[blocked_group(found)]
        yield fill(WORDS["geometry_infeasible"], **told, blocked=blocked)
    elif found.changed:
        yield fill(WORDS["geometry_feasible"], **told, changed=changed_groups(found.changed, names))
    else:
        yield fill(WORDS["geometry_equal"])
    yield fill(WORDS["geometry_both"])


def row_titles(audit: Audit) -> dict[str, tuple[str, str]]:
    """The rows of the table of numbers: what each is called, and its name among statisticians.

    The page can compute plain measures and the ten-bin gap for any settings; other gaps it cannot.
    """
    rows = {
        name: (one.label, one.title)
        for name, one in audit.measures.items()
        if one.printed and (one.is_plain or name == "calibration_gap")
    }
    first = {name: rows.pop(name) for name in ("base_rate", "mean_score")}
    return {
        "n": ("People", "rows of data in the group"),
        **first,
        "cost": ("Cost of errors", "what is to be equal"),
        "trivial_cost": ("Highest possible cost", "trivial cost: telling nobody apart"),
        **rows,
    }


def table(audit: Audit, hidden: Collection[int] = ()) -> list[dict[str, Any]]:
    """The rows of the table: for each group, and last for everybody, value and interval."""
    columns = [*audit.groups.values(), audit.overall]
    untold = {*hidden, len(columns) - 1} if hidden else set()
    rows = []
    for key, (label, hint) in row_titles(audit).items():
        hides = key in audit.measures and audit.measures[key].uses_threshold
        cells = []
        for place, m in enumerate(columns):
            value = m[key]
            text = f"{value:,.6g}" if key == "n" else number(value)
            span = m.intervals.get(key)
            if math.isnan(value) or (place in untold and hides):
                text, span = "–", None
            told = f"{number(span[0])} to {number(span[1])}" if span else ""
            cells.append({"value": text, "span": told})
        rows.append({"key": key, "label": label, "hint": hint, "cells": cells})
    return rows


def computed(audit: Audit, suppressed: str, single: str = "") -> list[tuple[str, str]]:
    """How the report was made, so that somebody else can make it again."""
    tally, found = audit.tally, audit.intervals
    columns = {k: v for k, v in tally.columns.items() if v}
    named = (f"{k}: {', '.join(v) if isinstance(v, list) else v}" for k, v in columns.items())
    rows = [
        ("Made with", f"isocost {__version__}"),
        ("Made on", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
        ("Rows", f"{tally.n:,.15g}{', weighted' if tally.is_weighted else ''}"),
        ("Columns", "; ".join(named) or "not recorded"),
        ("Groups", str(len(tally.groups))),
        ("Bins of scores", f"{tally.bins} of equal width, and the tenths"),
        ("Cost, threshold, tolerance", _settings(audit)),
    ]
    if tally.edges:
        rows.append(("Further edges", ", ".join(f"{edge:g}" for edge in tally.edges)))
    if found is None:
        rows.append(("Intervals", "none were computed"))
    else:
        how = f"{found.replicates:,} draws for calibration gaps, seed {found.seed}"
        if found.method != "replicates":
            how = "closed forms"
        rows.append(("Intervals", f"{100 * found.confidence:.4g} %; {how}"))
    rows.append(("Left out of this page", suppressed))
    rows.append(
        ("What this page holds", f"{WORDS['holds']}. {single}" if single else WORDS["holds"])
    )
    return rows


def _settings(audit: Audit) -> str:
    return f"{audit.cost}, {audit.threshold:g}, {audit.feasibility.tolerance:g}"
