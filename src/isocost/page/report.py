"""The report: one HTML file that holds everything, works offline and recomputes as controls move.

It is made from nothing but a tally and how it was made, both of which it holds, so that
:func:`isocost.verify` can make it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from html import escape
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np

from isocost.atomic import check_ending, replacing, write_text
from isocost.checks import check_kind, check_path, check_text, check_whole, finite_or_none
from isocost.errors import DataError, FileError, Problem, listing, speaking
from isocost.groups import group_names, names_of, shown_names, to_json
from isocost.judging.audit import Audit, audit, audits
from isocost.measures.feasibility import MIN_LABEL, fitted_groups
from isocost.measures.table import MEASURES, Measure
from isocost.page.assets import (
    charts,
    embedded_json,
    filled,
    page_file,
    page_script,
    policy,
    vega_script,
    versions,
)
from isocost.page.facts import (
    COSTS,
    GLOSSARY,
    HEADS,
    METHODS,
    WORDS,
    computed,
    decided_only,
    facts,
    row_titles,
    spoken_names,
)
from isocost.page.layouts import page_layouts
from isocost.page.payload import (
    OF_COST,
    Origin,
    cost_evidence,
    held_tally,
    offered_thresholds,
    page_commands,
    payload,
    rounded,
    single_text,
    threshold_evidence,
    undecided,
)
from isocost.page.repair_tables import (
    MARKS,
    Line,
    bounds_table,
    compact,
    given_repairs,
    handed_over_sections,
    lines_of,
    outlook_rows,
    repair_rows,
    thresholds_table,
    told_of,
)
from isocost.plots.display import PALETTE
from isocost.question import Question
from isocost.readings import SHELL
from isocost.repairs.composition import named_rules
from isocost.rules import Rule
from isocost.tallies import Tally, TallyLike
from isocost.verdict.judgement import ANSWERS, CALIBRATED, REASONS, SLACK
from isocost.verdict.sentences import Vocabulary, plain, with_ways
from isocost.verdict.wording import DETAILS, FEW, MOST_IN_PLANE, MOST_SHARES, figures_of, is_offered

ENDINGS = (".html", ".htm", ".pdf")
"""How the name of a report may end."""

Rules: TypeAlias = Mapping[str, Rule] | Iterable[Rule] | None


@audits("rules", "path")
def report(
    audit: Audit,
    rules: Rules = None,
    path: str | Path = "report.html",
    *,
    title: str | None = None,
    min_count: int = 0,
    origin: Origin | None = None,
    people: str | None = None,
    outcome: str | None = None,
    positive_means: str | None = None,
    force: bool = True,
) -> Path:
    """Write the report: one HTML file that works offline, by e-mail and in print.

    Parameters
    ----------
    audit : Audit, Tally, or data
        What it is about.  A tally is audited first, and data are counted before that.
    rules : {name: Rule} or several rules, optional
        Repairs to compare; by default every method, as far as it is feasible.
    path : str or Path
        Where to write, ending in .html, .htm or .pdf; whole or not at all.  A PDF takes a browser
        such as Chromium on this machine.
    title : str, optional
        What stands on top.
    min_count : int
        Bins of scores are merged until no cell of the page has fewer rows; groups with fewer
        rows of a label are left out.
    cost, threshold, tolerance
        As for :func:`isocost.audit`; not with an audit, which has its own.
    origin : isocost.page.payload.Origin, optional
        Where the data came from, for the table of provenance and the commands that the page offers.
    people, outcome, positive_means : str, optional
        Words for people, the positive outcome and a high score, such as "defendants",
        "reoffended" and "risk".  The outcome completes "people who ...", in the past tense:
        "were denied"; the words for the others may follow a slash: "repaid / did not repay".
    force : bool
        Whether an existing file may be replaced.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

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
    words = {"people": people, "outcome": outcome, "positive_means": positive_means}
    page: dict[str, Any] = {"title": title, "min_count": min_count, "origin": origin, **words}
    text = report_html(audit, rules, **page)
    if Path(path).suffix.lower() == ".pdf":
        write_pdf(text, path, force=force)
    else:
        write_text(path, text, force=force)
    return Path(path)


@audits("rules")
def report_html(
    audit: Audit,
    rules: Rules = None,
    *,
    title: str | None = None,
    min_count: int = 0,
    origin: Origin | None = None,
    people: str | None = None,
    outcome: str | None = None,
    positive_means: str | None = None,
) -> str:
    """The page of :func:`report` as text."""
    if title is not None:
        check_text("title", title)
    step = "leave it out, or make one with isocost.page.payload.Origin"
    check_kind("origin", origin, (Origin, type(None)), "must be an Origin", step)
    words = {"people": people, "outcome": outcome, "positive_means": positive_means}
    vocabulary = Vocabulary(**{name: word for name, word in words.items() if word is not None})
    subject = audit
    # A page compares groups: without two it would say nothing.
    fitted_groups(subject.tally)
    # Commands are about the data, in which the other groups are.
    selected = subject.tally.select(list(subject.compared))
    compared = replace(selected, reading=subject.tally.reading)
    held = payload(compared, min_count, (subject.threshold,), subject.measures)
    names = names_of(subject.groups)
    held["left_out"] += [names[group] for group in names if group not in subject.compared]
    if len(held["groups"]) < 2:
        rule = "must leave at least two groups to compare"
        got = f"{held['min_count']}, which leaves {len(held['groups'])}"
        step = "use a smaller number, or pool groups with tally.relabel"
        raise DataError(Problem("min_count", rule, got, step))
    made = {
        "title": title or "Do errors cost every group the same?",
        "versions": versions(),
        "made_on": f"{_now():%Y-%m-%d %H:%M} UTC",
        "origin": (origin or Origin()).to_dict(),
        "vocabulary": asdict(vocabulary),
        **_settings(subject, held),
        "one_label": [names[g] for g in subject.examined if g not in subject.compared],
        "rules": None if rules is None else {n: r.to_dict() for n, r in named_rules(rules).items()},
    }
    functions = [one for one in _own_measures(subject) if not one.is_plain]
    return remade(held, made, functions)


def _own_measures(subject: Audit) -> list[Measure]:
    return [one for name, one in subject.measures.items() if name not in MEASURES]


BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge",
    "microsoft-edge", "brave-browser",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)  # fmt: skip
"""Programs that print a page to PDF without a window; ISOCOST_BROWSER names another."""

PRINTING = 120
"""Seconds until a browser is given up."""


def write_pdf(html: str, path: str | Path, *, force: bool = True) -> None:
    """Print a page to PDF with a browser of this machine."""
    own = os.environ.get("ISOCOST_BROWSER")
    program = next(filter(None, map(shutil.which, [own] if own else BROWSERS)), None)
    if program is None:
        got = f"ISOCOST_BROWSER={own}" if own else "neither Chromium, Chrome nor Edge was found"
        step = "install Chromium, or name the report .html and print it to PDF in your browser"
        raise FileError(Problem("PDF", "takes a browser that prints without a window", got, step))
    with replacing(path, force=force) as target, TemporaryDirectory() as folder:
        page, printed = Path(folder, "report.html"), Path(folder, "report.pdf")
        page.write_text(html.replace("<html ", "<html data-paper ", 1), encoding="utf-8")
        # Root may not use the sandbox; the page has a policy that lets it run nothing else.
        flags = ["--headless", "--disable-gpu", "--no-pdf-header-footer", "--no-first-run"]
        flags += ["--virtual-time-budget=20000", f"--user-data-dir={Path(folder, 'profile')}"]
        flags += ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command = [program, *flags, f"--print-to-pdf={printed}", page.as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, timeout=PRINTING, check=False)
            said = done.stderr.decode(errors="replace").strip()[-200:]
        except (OSError, subprocess.TimeoutExpired) as error:
            said = str(error)[:200]
        if not printed.exists():
            step = "name the report .html and print it to PDF in your browser"
            rule = f"must be printed by {Path(program).name}"
            raise FileError(Problem("PDF", rule, said or "no file", step))
        shutil.copyfile(printed, target)


def _now() -> datetime:
    """The date of a report; SOURCE_DATE_EPOCH, in seconds, makes reports reproducible."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else datetime.now(UTC)


def _settings(subject: Audit, held: dict[str, Any]) -> dict[str, Any]:
    """What the page needs to make its audit again."""
    names, question = group_names(subject.tally.groups), subject.question
    kept = [g for g, name in zip(subject.tally.groups, names, strict=True) if name in held["names"]]
    asked = question.among(kept).but(
        measures=[name for name in subject.shown if name in MEASURES],
        reference=question.reference if question.reference in kept else None,
    )
    return {
        "groups": [to_json(group) for group in kept],
        "question": asked.to_dict(),
        "own_measures": [_measure_dict(one) for one in _own_measures(subject)],
    }


def _measure_dict(measure: Measure) -> dict[str, Any]:
    """A user's measure for JSON; only its name if it is a function."""
    if not measure.is_plain:
        return {"name": measure.name}
    texts = ("name", "title", "label", "sentence", "better", "family", "printed")
    adds = {kind: [float(one) for one in given] for kind, given in measure.adds.items()}
    named = {name: getattr(measure, name) for name in texts}
    return {**named, "over": list(measure.over), "adds": adds}


@speaking(SHELL)
def remade(held: dict[str, Any], made: dict[str, Any], functions: Iterable[Measure] = ()) -> str:
    """The page from what it holds and how it was made, which is all that it shows.

    So that :func:`isocost.verify` can make it again.  Measures of one's own are held too, except
    for ``functions``.  Whoever reads the page, it names commands, never functions of Python.
    """
    subject = _remade_audit(held, made, functions)
    rules = made["rules"]
    given = None if rules is None else {n: Rule.from_json(json.dumps(r)) for n, r in rules.items()}
    origin, vocabulary = Origin.from_dict(made["origin"]), Vocabulary(**made["vocabulary"])
    lines = lines_of(subject, given)
    hidden = undecided(held, subject.tally.grid, subject.threshold)
    files = origin.to_dict()["data"] or ["data.csv"]
    said = facts(subject, made["title"], hidden, files, vocabulary)
    said["decided_only"] = decided_only(subject, held)
    said["one_label"] = ""
    if made["one_label"]:
        said["one_label"] = WORDS["one_label"].format(groups=listing(made["one_label"]))
    said["computed"] = computed(subject, made, _suppressed(held), single_text(held))
    outlooks = outlook_rows(subject, lines, not hidden)
    deferring = lines if given is not None or not said["none_advised"] else []
    data = {
        "tally": held,
        "made": made,
        "commands": page_commands(subject.tally, held["names"], files),
        "own": _own(subject, held, hidden),
        "judgement": JUDGEMENT,
        "rules": {} if given is None else _embedded(subject.tally, lines),
        "given": given_repairs(subject, held),
        "called": list(shown_names(subject.groups).values()),
        "spoken": [spoken.text for spoken in spoken_names(subject.groups).values()],
        "words": {**{name: with_ways(text) for name, text in WORDS.items()}, **vocabulary.fields(),
                  "costs": COSTS, "methods": METHODS, "heads": HEADS, "rows": row_titles(subject)},
        "charts": {key: {k: v for k, v in spec.items() if k != "$schema"}
                   for key, spec in charts().items()},
        "palette": PALETTE,
        "marks": MARKS,
        "outlooks": {one["label"]: one["expected"] for one in outlooks},
    }  # fmt: skip
    tables = {
        "repairs": repair_rows(subject, lines, not hidden),
        "handed": handed_over_sections(subject, deferring, not hidden),
        "thresholds": thresholds_table(subject, held),
        "bounds": bounds_table(subject),
        "outlooks": outlooks and _outlook_table(outlooks, lines if given is not None else []),
        "layouts": page_layouts(subject, held, subject.tally.reading.missing_group),
    }
    return _rendered(subject, said, tables, data, [vega_script(), page_script()])


def _remade_audit(
    held: dict[str, Any], made: dict[str, Any], functions: Iterable[Measure]
) -> Audit:
    """The audit that a page is about."""
    known = {one.name: one for one in functions}
    own = [known[one["name"]] if one["name"] in known else Measure(**one)
           for one in made["own_measures"]]  # fmt: skip
    question = Question.from_dict(made["question"])
    measures = [*dict.fromkeys([*question.measures, *ALWAYS]), *own]
    tally = held_tally(held, made["groups"])
    return audit(tally, question=question.but(measures=measures), warn=False)


def _outlook_table(outlooks: list[dict[str, Any]], lines: list[Line]) -> dict[str, Any]:
    """Expected effects of repairs on new people, as header, rows and notes."""
    return {
        "header": ["Repair", *told_of(lines).values()],
        "rows": [[one["label"], *one["cells"]] for one in outlooks],
        "notes": [one["notes"] for one in outlooks],
    }


ALWAYS = ("selection_rate", "impact_ratio", "ppv", "false_omission_rate")
"""What an auditor looks for, beside the measures that were chosen."""


def _rendered(
    subject: Audit, said: dict[str, Any], tables: dict[str, Any], data: Any, scripts: list[str]
) -> str:
    markup = import_module("markupsafe").Markup
    level = subject.confidence or 0.95
    embedded = embedded_json(data)
    tolerance = subject.feasibility.tolerance
    own = {"cost": str(subject.cost), "threshold": f"{subject.threshold:g}"}
    return filled(
        "template.html",
        audit=subject,
        facts=said,
        **tables,
        contents=[one for one in CONTENTS if tables.get(one[0].removesuffix("-title"), True)],
        own_settings=WORDS["own_only"].format(**own, tolerance=f"{tolerance:g}"),
        metas=_metas(said, data["made"], embedded),
        names=list(shown_names(subject.groups).values()),
        glossary=GLOSSARY,
        heads=HEADS,
        holds=WORDS["holds"],
        level=f"{100 * level:.4g} %",
        version=data["made"]["versions"]["isocost"],
        policy=policy(scripts),
        style=markup(page_file("page.css")),
        scripts=[markup(script) for script in scripts],
        data=markup(embedded),
    )


CONTENTS = (
    ("picture", "What errors cost"),
    ("why", "What can be equal"),
    ("table-title", "The numbers"),
    ("values-title", "What decisions tell"),
    ("reliability-title", "Do scores come true?"),
    ("repairs-title", "Repairs"),
    ("handed-title", "Handed over"),
    ("thresholds-title", "Thresholds"),
    ("bounds-title", "What nothing can do"),
    ("outlooks-title", "New people"),
    ("layouts-title", "Layouts"),
    ("next-title", "How to do it"),
    ("computed-title", "Where it comes from"),
    ("glossary-title", "In plain words"),
)
"""The contents of the page: ids, and what they are called; tables may be left out."""


def _metas(said: dict[str, Any], made: dict[str, Any], embedded: str) -> list[tuple[str, str]]:
    """What a machine that reads only the head of the page should know."""
    digest = hashlib.sha256(embedded.encode()).hexdigest()
    files = ((f"isocost:file:{name}", f"sha256:{sha}") for name, _, sha in made["origin"]["files"])
    return [
        ("description", plain(said["verdict"])),
        ("date", made["made_on"]),
        ("isocost:version", made["versions"]["isocost"]),
        ("isocost:data", f"sha256:{digest}"),
        *files,
    ]


def _suppressed(held: dict[str, Any]) -> str:
    hidden = []
    if held["min_count"]:
        hidden.append(f"cells of fewer than {held['min_count']} rows, merged with their neighbours")
    elif held["merged"]:
        hidden.append("bins of scores merged, because so many would make the page too large")
    if held["left_out"]:
        hidden.append(f"groups that are not compared: {', '.join(held['left_out'])}")
    return "; ".join(hidden) or "nothing"


JUDGEMENT = {
    "details": DETAILS,
    "answers": ANSWERS,
    "reasons": [(reason, dict(needed), act) for reason, needed, act in REASONS],
    "slack": SLACK,
    "calibrated": CALIBRATED,
    "named": FEW,
    "shares": MOST_SHARES,
    "in_plane": MOST_IN_PLANE,
}
"""The tables of the judgement and its limits, for the page."""


def _own(subject: Audit, held: dict[str, Any], hidden: Collection[int]) -> dict[str, Any]:
    """The audit's own settings, and what was computed in advance: see `cost_evidence`."""
    columns = [*subject.groups.values(), subject.overall]
    decided = {name for name, one in subject.measures.items() if one.uses_threshold}
    elsewhere = {*decided, *OF_COST}
    spans = [
        {
            name: [rounded(end) for end in ends]
            for name, ends in m.intervals.items()
            if np.isfinite(ends).all() and name not in elsewhere
        }
        for m in columns
    ]
    given = [
        {
            name: finite_or_none(m[name])
            for name in subject.shown
            if subject.measures[name].is_derived and name not in decided
        }
        for m in columns
    ]
    thresholds = offered_thresholds(subject.tally, held, subject.threshold)
    return {
        "cost": _cost(subject),
        "threshold": subject.threshold,
        "tolerance": subject.feasibility.tolerance,
        "intervals": spans,
        "given": given,
        "thresholds": thresholds,
        "at": threshold_evidence(subject, thresholds, hidden),
        "evidence": cost_evidence(subject),
        "confidence": subject.confidence,
        "groups": subject.verdict.findings.groups,
        "floors": [subject.gap_floor(group) for group in subject.groups],
        "decimals": figures_of(subject).decimals,
        "reconcilable": is_offered(subject, "reconcile"),
        "min_group": subject.question.min_group,
        "min_label": MIN_LABEL,
    }


def _cost(subject: Audit) -> dict[str, Any]:
    """The cost; numbers per group in the order of the groups."""
    cost, groups = subject.cost, tuple(subject.groups)

    def amount(value: Any) -> Any:
        return [value[group] for group in groups] if isinstance(value, Mapping) else value

    return {"kind": cost.kind, "fp": amount(cost.fp), "fn": amount(cost.fn), "text": str(cost)}


def _embedded(tally: Tally, lines: list[Line]) -> dict[str, Any]:
    return {one.label: compact(tally.groups, one.rule) for one in lines if one.rule is not None}


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
            '<iframe title="isocost report" sandbox="allow-scripts allow-downloads" '
            f'allow="clipboard-write" width="100%" height="{self.height}" style="border:0" '
            f'srcdoc="{_ascii(self.html)}"></iframe>'
        )


def _ascii(html: str) -> str:
    """A page as an attribute that reads the same in any encoding: its scripts are hashed."""
    return escape(html).encode("ascii", "xmlcharrefreplace").decode()


def show_report(
    audit: Audit | TallyLike, rules: Rules = None, *, height: int = 900, **options: Any
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
