"""The report: one HTML file that holds everything, works offline and recomputes as one moves it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

from isocost import __version__
from isocost.atomic import check_ending, write_text
from isocost.checks import check_kind, check_path, check_text, check_whole
from isocost.costs import CostLike
from isocost.errors import DataError, MissingDependencyError, Problem, UsageError
from isocost.groups import group_names, names_of
from isocost.measures.audit import Audit, audit
from isocost.plots.style import PALETTE
from isocost.repairs.unseen import NUMBERS
from isocost.reports.assets import embedded_json, page_file, page_script, policy, vega_script
from isocost.reports.charts import SHAPES, charts
from isocost.reports.facts import facts, row_titles, shown_names, spoken_names
from isocost.reports.offers import (
    Offer,
    compact,
    given_repairs,
    options_of,
    outlook_rows,
    repair_rows,
)
from isocost.reports.payload import Origin, payload, single_text, undecided
from isocost.reports.words import COSTS, GLOSSARY, HEADS, METHODS, WORDS
from isocost.rules import Rule
from isocost.tallies import Tally
from isocost.verdict.judgement import ANSWERS, CALIBRATED, MIN_LABEL, REASONS, SLACK
from isocost.verdict.wording import more_data

__all__ = ["ENDINGS", "ShownReport", "report", "report_html", "show_report"]

ENDINGS = (".html", ".htm")
"""How the name of a report may end."""

Rules: TypeAlias = Mapping[str, Rule] | Iterable[Rule] | None


def report(
    audit: Audit | Tally,
    rules: Rules = None,
    path: str | Path = "report.html",
    *,
    title: str | None = None,
    min_count: int = 0,
    cost: CostLike | None = None,
    threshold: float | None = None,
    tolerance: float | None = None,
    origin: Origin | None = None,
    force: bool = True,
) -> Path:
    """Write the report: one HTML file that works offline, by e-mail and in print.

    Parameters
    ----------
    audit : Audit or Tally
        What it is about.  A tally is audited first.
    rules : {name: Rule} or several rules, optional
        Repairs to compare; by default every method, as far as it is feasible.
    path : str or Path
        Where to write, ending in .html or .htm; whole or not at all.
    title : str, optional
        What stands on top.
    min_count : int
        Bins of scores are merged until no cell of the page has fewer rows; groups with fewer
        rows of a label are left out.
    cost, threshold, tolerance
        As for :func:`isocost.audit`; for a tally only, an audit has its own.
    origin : isocost.reports.payload.Origin, optional
        How the data were read, for the command lines that the page offers.
    force : bool
        Whether an existing file may be replaced.

    Returns
    -------
    Path
        Where it is.

    Notes
    -----
    The page holds the tally, never rows.  It recomputes measures, feasibility and ``withhold``.
    Intervals and the other repairs are computed in advance, for a few settings; the page says so
    where they do not apply.  The rules passed here are included as they are, whatever
    ``min_count`` says.

    Examples
    --------
    >>> import isocost as ic, tempfile
    >>> from isocost.examples import compas
    >>> a = ic.audit(compas(), cost="fpr")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ic.report(a, path=f"{folder}/report.html").name
    'report.html'
    """
    check_path(path)
    check_ending(path, *ENDINGS)
    options: dict[str, Any] = {"cost": cost, "threshold": threshold, "tolerance": tolerance}
    text = report_html(audit, rules, title=title, min_count=min_count, origin=origin, **options)
    write_text(path, text, force=force)
    return Path(path)


def report_html(
    audit: Audit | Tally,
    rules: Rules = None,
    *,
    title: str | None = None,
    min_count: int = 0,
    cost: CostLike | None = None,
    threshold: float | None = None,
    tolerance: float | None = None,
    origin: Origin | None = None,
) -> str:
    """The page of :func:`report` as text."""
    if title is not None:
        check_text("title", title)
    step = "leave it out, or make one with isocost.reports.payload.Origin"
    check_kind("origin", origin, (Origin, type(None)), "must be an Origin", step)
    subject = _audited(audit, {"cost": cost, "threshold": threshold, "tolerance": tolerance})
    compared = subject.tally.select(list(subject.compared))
    held = payload(compared, min_count, (subject.threshold,), subject.measures)
    held["left_out"] += _not_compared(subject)
    subject = _without_small_groups(subject, held)
    found = options_of(subject, rules)
    hidden = undecided(held, subject.tally.grid, subject.threshold)
    repairs = repair_rows(subject, found, not hidden)
    outlooks = outlook_rows(subject, found, rules is not None, not hidden)
    scripts = [vega_script(), page_script()]
    name = title or "Do errors cost every group the same?"
    said = facts(subject, name, _suppressed(held), hidden, single_text(held))
    data = {
        "tally": held,
        "origin": (origin or Origin()).to_dict(),
        "own": _own(subject, hidden),
        "judgement": JUDGEMENT,
        "rules": {} if rules is None else _embedded(subject.tally, found),
        "given": given_repairs(subject, held),
        "called": list(shown_names(subject.groups).values()),
        "spoken": [spoken.text for spoken in spoken_names(subject.groups).values()],
        "words": {**WORDS, "costs": COSTS, "methods": METHODS, "heads": HEADS,
                  "rows": row_titles(subject)},
        "charts": {key: {k: v for k, v in spec.items() if k != "$schema"}
                   for key, spec in charts().items()},
        "palette": PALETTE,
        "shapes": SHAPES,
    }  # fmt: skip
    return _rendered(subject, said, repairs, outlooks, data, scripts)


def _rendered(
    subject: Audit,
    said: dict[str, Any],
    repairs: list[Any],
    outlooks: list[Any],
    data: Any,
    scripts: list[str],
) -> str:
    environment, markup = _jinja()
    level = subject.intervals.confidence if subject.intervals else 0.95
    return str(
        environment.from_string(page_file("template.html")).render(
            audit=subject,
            facts=said,
            repairs=repairs,
            outlooks=outlooks,
            outlook_heads=list(NUMBERS.values()),
            names=list(shown_names(subject.groups).values()),
            glossary=GLOSSARY,
            heads=HEADS,
            holds=WORDS["holds"],
            level=f"{100 * level:.4g} %",
            version=__version__,
            policy=policy(scripts),
            style=markup(page_file("page.css")),
            scripts=[markup(script) for script in scripts],
            data=markup(embedded_json(data)),
        )
    )


def _jinja() -> tuple[Any, Any]:
    try:
        import jinja2
        import markupsafe
    except ImportError as error:
        raise MissingDependencyError(
            Problem(
                "jinja2",
                "is needed to write the report",
                "no such package",
                'pip install "isocost[report]"',
            )
        ) from error
    undefined = jinja2.StrictUndefined
    return jinja2.Environment(autoescape=True, undefined=undefined), markupsafe.Markup


def _audited(subject: object, options: dict[str, Any]) -> Audit:
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(subject, Tally):
        return audit(subject, **given)
    step = "make a tally: isocost.tally(data, score=..., label=..., group=...)"
    audited: Audit = check_kind("audit", subject, Audit, "must be an Audit or a Tally", step)
    if given:
        got, step = ", ".join(given), "leave them out, or pass the tally instead of the audit"
        raise UsageError(Problem("settings", "belong to the audit already", got, step))
    return audited


def _not_compared(subject: Audit) -> list[str]:
    names = names_of(subject.groups)
    return [names[group] for group in subject.groups if group not in subject.compared]


def _without_small_groups(subject: Audit, held: dict[str, Any]) -> Audit:
    """The same audit of the groups that may be shown; the page must not tell of the others."""
    if not held["left_out"]:
        return subject
    names = group_names(subject.tally.groups)
    kept = [g for g, n in zip(subject.tally.groups, names, strict=True) if n in held["names"]]
    if len(kept) < 2:
        raise DataError(
            Problem(
                "min_count",
                "must leave two groups to compare",
                f"{held['min_count']}, which leaves {len(kept)}",
                "use a smaller number, or pool groups with tally.relabel",
            )
        )
    found = subject.intervals
    return audit(
        subject.tally.select(kept),
        subject.cost,
        subject.threshold,
        None if found is None else found.confidence,
        2000 if found is None else found.replicates,
        0 if found is None else found.seed,
        tolerance=subject.feasibility.tolerance,
        measures=subject.measures.values(),
        min_group=subject.min_group,
    )


def _suppressed(held: dict[str, Any]) -> str:
    parts = []
    if held["min_count"]:
        parts.append(f"cells of fewer than {held['min_count']} rows, merged with their neighbours")
    elif held["merged"]:
        parts.append("bins of scores merged, because so many would make the page too large")
    if held["left_out"]:
        parts.append(f"groups too small to show: {', '.join(held['left_out'])}")
    return "; ".join(parts) or "nothing"


JUDGEMENT = {
    "answers": ANSWERS,
    "reasons": [(reason, dict(needed), act) for reason, needed, act in REASONS],
    "slack": SLACK,
    "calibrated": CALIBRATED,
}
"""The tables of the judgement, for the page."""


def _own(subject: Audit, hidden: Collection[int]) -> dict[str, Any]:
    """The audit's own settings and what was computed for them alone."""
    found = subject.intervals
    disparity = found and found.disparities.get("cost")
    columns = [*subject.groups.values(), subject.overall]
    untold = {*hidden, len(columns) - 1} if hidden else set()
    hides = {name for name, one in subject.measures.items() if one.uses_threshold}
    spans = [
        {k: list(v) for k, v in m.intervals.items() if place not in untold or k not in hides}
        for place, m in enumerate(columns)
    ]
    groups = list(subject.groups)
    highest = [groups.index(group) for group in subject.verdict.highest]
    return {
        "cost": _cost(subject),
        "threshold": subject.threshold,
        "tolerance": subject.feasibility.tolerance,
        "intervals": spans,
        "confidence": None if found is None else found.confidence,
        "verdict": {**subject.verdict.to_dict(), "highest": highest},
        "floors": [subject.gap_floor(group) for group in subject.groups],
        "min_group": subject.min_group,
        "min_label": MIN_LABEL,
        "more_data": more_data(subject),
        "difference": None if found is None else list(found.differences["cost"]),
        "disparity": disparity and list(disparity),
    }


def _cost(subject: Audit) -> dict[str, Any]:
    """The cost; numbers per group in the order of the groups."""
    cost, groups = subject.cost, tuple(subject.groups)

    def amount(value: Any) -> Any:
        return [value[group] for group in groups] if isinstance(value, Mapping) else value

    kind = str(cost).partition(":")[0].partition(" ")[0]
    return {"kind": kind, "fp": amount(cost.fp), "fn": amount(cost.fn), "text": str(cost)}


def _embedded(tally: Tally, found: list[Offer]) -> dict[str, Any]:
    return {one.label: compact(tally.groups, one.rule) for one in found if one.rule is not None}


@dataclass(frozen=True, repr=False)
class ShownReport:
    """A report inside a notebook: the page in a frame of its own that can touch nothing else.

    Attributes
    ----------
    html : str
        The page.
    height : int
        How high the frame is, in pixels.
    """

    html: str
    height: int = 900

    def __repr__(self) -> str:
        return f"Report of {len(self.html) / 1e6:.1f} MB; shown in a notebook"

    def _repr_html_(self) -> str:
        return (
            '<iframe title="isocost report" sandbox="allow-scripts" allow="clipboard-write" '
            f'width="100%" height="{self.height}" style="border:0" '
            f'srcdoc="{_ascii(self.html)}"></iframe>'
        )


def _ascii(html: str) -> str:
    """A page as an attribute that reads the same in any encoding: its scripts are hashed."""
    return escape(html).encode("ascii", "xmlcharrefreplace").decode()


def show_report(
    audit: Audit | Tally, rules: Rules = None, *, height: int = 900, **options: Any
) -> ShownReport:
    """The report as the last line of a notebook's cell; options are those of :func:`report`.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> ic.show_report(ic.audit(compas(), cost="fpr")).height
    900
    """
    height = check_whole("height", height, 1, step="use height=900, the default")
    return ShownReport(report_html(audit, rules, **options), height)
