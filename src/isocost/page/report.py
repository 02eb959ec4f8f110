"""The report: one HTML file that holds everything, works offline and recomputes as controls move.

It is made from nothing but a tally and how it was made, both of which it holds, so that
:func:`verify` can make it again: a changed digit, word, style or script differs from the page made
again, and so does all that follows from a changed tally.  Somebody who makes the whole page again
from other data is not found out: compare the digest of the file that the page names.  Another
version of isocost may word things differently: of its pages only the numbers are checked.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import cache
from html import escape
from html.parser import HTMLParser
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from isocost import __version__
from isocost.atomic import check_ending, read_text, replacing, write_text
from isocost.checks import check_kind, check_path, check_text, check_whole
from isocost.errors import (
    DataError,
    FileError,
    IsocostError,
    Problem,
    require_package,
    speaking,
)
from isocost.groups import Group, group_names, names_of, to_json
from isocost.judging.audit import Audit, Others, audited, audits
from isocost.measures.feasibility import fitted_groups
from isocost.measures.intervals import UNKNOWN, Estimates
from isocost.measures.table import MEASURES, Measure
from isocost.page.charts import INSTALL, altair
from isocost.page.payload import FORMAT, VERSION, Origin, held_tally, page_file, payload
from isocost.page.view import view
from isocost.question import DEFAULT, Question
from isocost.readings import SHELL
from isocost.repairs.composition import named_rules
from isocost.repairs.table import REPAIRS
from isocost.rules import Rule
from isocost.tallies import TallyLike
from isocost.verdict.sentences import Vocabulary, plain

ENDINGS = (".html", ".htm", ".pdf")
"""How the name of a report may end."""

ALWAYS = ("selection_rate", "impact_ratio", "ppv", "false_omission_rate")
"""What an auditor looks for, beside the measures that were chosen."""

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
    text = report_html(audit, rules, title=title, min_count=min_count, origin=origin, **words)
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
    tally, question = audit.tally, audit.question
    # A page compares groups: without two it would say nothing.
    fitted_groups(tally)
    held = payload(tally, min_count, audit.threshold, audit.measures, audit.compared)
    kept = [
        group
        for group, name in zip(tally.groups, group_names(tally.groups), strict=True)
        if name in held["names"]
    ]
    if len(kept) < 2:
        rule = "must leave at least two groups to compare"
        got = f"{held['min_count']}, which leaves {len(kept)}"
        step = "use a smaller number, or pool groups with tally.relabel"
        raise DataError(Problem("min_count", rule, got, step))
    # A rule that changes nothing has the notes that every rule has on groups that are left out.
    nothing = REPAIRS["withhold"].rule(tally, DEFAULT.but(tolerance=1.0), fitted=kept)
    held["rule_notes"] = list(nothing.notes)
    own = [one for name, one in audit.measures.items() if name not in MEASURES]
    kept_question = question.among(kept).but(
        measures=[name for name in audit.shown if name in MEASURES],
        reference=question.reference if question.reference in kept else None,
    )
    # SOURCE_DATE_EPOCH, in seconds, makes reports reproducible.
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else datetime.now(UTC)
    others, names = others_of(audit, kept, held["min_count"]), names_of(audit.groups)
    told = {*kept, *others.examined, *others.small}
    made = {
        "title": title or "Do errors cost every group the same?",
        "versions": versions(),
        "made_on": f"{now:%Y-%m-%d %H:%M} UTC",
        "origin": (origin or Origin()).to_dict(),
        "vocabulary": asdict(vocabulary),
        "groups": [to_json(group) for group in kept],
        "question": kept_question.to_dict(),
        "own_measures": [_measure_dict(one) for one in own],
        "others": others.to_dict(),
        "hidden": [name for group, name in names.items() if group not in told],
        "rules": None if rules is None else {n: r.to_json() for n, r in named_rules(rules).items()},
    }
    is_whole = not (held["merged"] or held["left_out"])
    functions = [one for one in own if not one.is_plain]
    return remade(held, made, functions, audit.estimates if is_whole else None)


def others_of(audit: Audit, kept: Collection[Group], least: int) -> Others:
    """What a page is told of the groups that it does not hold; nothing of fewer than ``least``."""
    counts = dict(zip(audit.groups, audit.tally.totals.n, strict=True))
    examined = {
        group: one
        for group, one in audit.examined.items()
        if group not in kept and not ((counts[group] > 0) & (counts[group] < least)).any()
    }
    small = {group: math.nan if least else n for group, n in audit.too_small.items()}
    return Others(examined, audit.bias if examined else UNKNOWN, small)


def _measure_dict(measure: Measure) -> dict[str, Any]:
    """A user's measure for JSON; only its name if it is a function."""
    if not measure.is_plain:
        return {"name": measure.name}
    texts = ("name", "title", "label", "sentence", "better", "family", "printed")
    adds = {kind: [float(one) for one in given] for kind, given in measure.adds.items()}
    named = {name: getattr(measure, name) for name in texts}
    return {**named, "over": list(measure.over), "adds": adds}


@speaking(SHELL)
def remade(
    held: dict[str, Any],
    made: dict[str, Any],
    functions: Iterable[Measure] = (),
    known: Estimates | None = None,
) -> str:
    """The page from what it holds and how it was made, which is all that it shows.

    So that :func:`verify` can make it again.  Measures of one's own are held too, except for
    ``functions``; numbers that are ``known`` of the same tally are not computed again.  Whoever
    reads the page, it names commands, never functions of Python.
    """
    given = {one.name: one for one in functions}
    own = [given.get(one["name"]) or Measure(**one) for one in made["own_measures"]]
    question = Question.from_dict(made["question"])
    measures = [*dict.fromkeys([*question.measures, *ALWAYS]), *own]
    tally = held_tally(held, made["groups"])
    others = Others.from_dict(made["others"])
    subject = audited(tally, question.but(measures=measures), known, others)
    texts = made["rules"]
    rules = None if texts is None else {name: Rule.from_json(one) for name, one in texts.items()}
    data = view(subject, held, made, rules)
    shown, scripts = data.pop("shown"), [vega_script(), page_script()]
    embedded = embedded_json(data)
    # What a machine that reads only the head of the page should know.
    metas = {
        "description": plain(shown["verdict"]),
        "date": made["made_on"],
        "isocost:version": made["versions"]["isocost"],
        "isocost:data": f"sha256:{hashlib.sha256(embedded.encode()).hexdigest()}",
        **{f"isocost:file:{name}": f"sha256:{sha}" for name, _, sha in made["origin"]["files"]},
    }
    markup = import_module("markupsafe").Markup
    return filled(
        "template.html",
        scripts,
        **shown,
        metas=metas,
        version=made["versions"]["isocost"],
        scripts=[markup(script) for script in scripts],
        data=markup(embedded),
    )


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
        # In any encoding it must read the same: its scripts are hashed.
        text = escape(self.html).encode("ascii", "xmlcharrefreplace").decode()
        return (
            '<iframe title="isocost report" sandbox="allow-scripts allow-downloads" '
            f'allow="clipboard-write" width="100%" height="{self.height}" style="border:0" '
            f'srcdoc="{text}"></iframe>'
        )


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


# Templates and scripts

MODEL = ("numbers", "tally", "costs", "measures", "rules")
"""The files of the model; each imports only those before it."""

APP = (
    "say", "repairs", "placing", "plane", "figures", "verdicts", "drawing", "tables", "copying",
    "pictures", "controls", "main",
)  # fmt: skip
"""The files of the page's own script, after those of the model; each imports only from before."""

_COMMENT = re.compile(r"^ */\*\*(?:(?!\*/).)*\*/\n", re.MULTILINE | re.DOTALL)
"""Comments that fill their lines: a fifth of the script, and of no use in the page."""


def bundle(folder: str = "model", names: Iterable[str] = MODEL) -> str:
    """The modules of a folder as one script, without import, export and comments.

    Notes
    -----
    No name is used by two of the files, and imports stand on one line each; the tests see to it.

    Examples
    --------
    >>> script = bundle()
    >>> "function withhold(" in script, "export " in script
    (True, False)
    """
    modules = (_COMMENT.sub("", page_file(folder, f"{name}.js")) for name in names)
    return re.sub(r"^import .*;\n|^export ", "", "\n".join(modules), flags=re.MULTILINE)


@cache
def page_script() -> str:
    """The model and the page's own script, as one module without imports."""
    return inert(f"{bundle()}\n{bundle('app', APP)}")


@cache
def vega_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; it takes seconds, so it is made once."""
    return inert(str(_vl_convert().javascript_bundle("window.vegaEmbed = vegaEmbed;")))


def _vl_convert() -> Any:
    rule = "is needed to put the charts into the report"
    return require_package("vl_convert", "vl-convert-python", rule, INSTALL)


def versions() -> dict[str, str]:
    """Versions of the packages that the words, style and scripts of a page come from."""
    drawing = {"altair": altair(), "vl-convert-python": _vl_convert()}
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
def _environment() -> Any:
    jinja2 = require_package("jinja2", "jinja2", "is needed to write the report", INSTALL)
    return jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, loader=jinja2.FunctionLoader(page_file)
    )


def filled(template: str, allowed: Iterable[str], /, **values: Any) -> str:
    """A template of the page with its values, under a policy that allows only these scripts."""
    style = import_module("markupsafe").Markup(page_file("page.css"))
    usual = {"version": __version__, "policy": policy(allowed), "style": style}
    return str(_environment().get_template(template).render({**usual, **values}))


# Verification

EXACT = 1e-9
"""Computers may add in another order: numbers count as equal up to this, relatively."""

MOST_LISTED = 20

FEW_WORDS = 8
"""A cell with more words than this holds a sentence."""


@dataclass(frozen=True)
class Verification:
    """The differences between a report and the same report made again.

    Attributes
    ----------
    changes : tuple of str
        Places where the page differs, with both texts.
    numbers : int
        How many numbers were compared.
    made_with : dict
        The versions of the packages that made the page, by name.
    wording_checked : bool
        True if words, style and scripts were compared too: the page was made with the versions that
        are installed here.
    """

    changes: tuple[str, ...]
    numbers: int
    made_with: dict[str, str]
    wording_checked: bool

    @property
    def unchanged(self) -> bool:
        """True if nothing that was checked was changed."""
        return not self.changes

    def lines(self) -> list[str]:
        """The result in words."""
        if self.changes:
            places = "1 place is" if len(self.changes) == 1 else f"{len(self.changes):,} places are"
            first = f"Changed: {places} not as isocost writes the page."
        elif self.wording_checked:
            first = (
                f"Unchanged: {self.numbers:,} numbers and all words, style and scripts are as "
                "isocost writes them."
            )
        else:
            first = (
                f"Numbers unchanged: {self.numbers:,} are as isocost computes them. The wording "
                "was not checked."
            )
        listed = [f"  {change}" for change in self.changes[:MOST_LISTED]]
        if len(self.changes) > MOST_LISTED:
            listed.append(f"  and {len(self.changes) - MOST_LISTED:,} more")
        if not self.wording_checked:
            made, here = (
                ", ".join(f"{name} {version}" for name, version in one.items())
                for one in (self.made_with, versions())
            )
            listed.append(
                f"The page was made with {made}, and checked with {here}. Other versions may "
                "compute and word things differently, so words, style and scripts were not checked."
            )
        return [first, *listed]

    def __repr__(self) -> str:
        return "\n".join(self.lines())


def verify(path: str | Path) -> Verification:
    """Make a report again, and list every number and word of it that was changed.

    Parameters
    ----------
    path : str or Path
        A page that :func:`isocost.report` wrote.

    Returns
    -------
    Verification
        ``unchanged`` says whether all is as computed, ``changes`` where it is not, and
        ``wording_checked`` whether words were compared.

    Notes
    -----
    Embedded numbers are compared to a relative 1e-9, and everything else letter by letter: words,
    markup, style and scripts.  A page that was made with another version of isocost, or of the
    packages that draw its charts, may differ in these: only its embedded numbers, the cells of its
    tables and the numbers in its sentences are compared.

    Examples
    --------
    >>> import isocost as ic, tempfile
    >>> from isocost.examples import compas
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = ic.report(ic.audit(compas(), "fpr", replicates=0), path=f"{folder}/report.html")
    ...     before = ic.verify(page).unchanged
    ...     _ = page.write_text(page.read_text().replace("0.447", "0.440"))
    ...     before, ic.verify(page).unchanged
    (True, False)
    """
    check_path(path)
    text = read_text(path)
    shown = _Page(text)
    data = _embedded(shown)
    try:
        made_with = {str(name): str(one) for name, one in data["made"]["versions"].items()}
        html = remade(data["tally"], data["made"])
    except (IsocostError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        got = error.problems[0].got if isinstance(error, IsocostError) else repr(error)[:200]
        raise _not_a_report(f"numbers that no page has: {got}") from error
    again, exact = _Page(html), made_with == versions()
    counter = _Counter(exact)
    changes = [
        *_different(data, json.loads(again.data), "data", counter),
        *_different_texts(shown.blocks, again.blocks, counter),
    ]
    digest = f"sha256:{hashlib.sha256(shown.data.encode()).hexdigest()}"
    if shown.digest != digest:
        changes.append("meta isocost:data: not the digest of the embedded numbers")
    if exact:
        changes += [
            f"{what}: not those of this version of isocost"
            for what in ("styles", "scripts")
            if getattr(shown, what) != getattr(again, what)
        ]
        # Around the numbers as they are embedded, every letter must be the same.
        expected = html.replace(again.data, shown.data).replace(again.digest, digest)
        if not changes and embedded_json(data) != shown.data:
            changes.append("data: not written as isocost writes it")
        elif not changes and text != expected:
            letters = enumerate(zip_longest(text, expected))
            start = next(i for i, (here, there) in letters if here != there)
            line = text.count("\n", 0, start) + 1
            here, there = (_short(one[start : start + 50]) for one in (text, expected))
            changes.append(f"markup in line {line:,}: {here} instead of {there}")
    return Verification(tuple(changes), counter.numbers, made_with, exact)


def _not_a_report(got: str) -> FileError:
    rule = "must be a report as isocost wrote it"
    step = "name an .html file of isocost report or ic.report, of this version of isocost"
    return FileError(Problem("report", rule, got, step))


def _embedded(page: _Page) -> dict[str, Any]:
    """The data of a page that can be made again."""
    try:
        data = json.loads(page.data)
        kind = (data["tally"]["format"], data["tally"]["version"])
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise _not_a_report("a file without its numbers") from error
    if kind != (FORMAT, VERSION) or "made" not in data:
        raise _not_a_report(f"version {kind[1]} of the format {kind[0]}")
    own = data["made"].get("own_measures", [])
    functions = [one["name"] for one in own if "over" not in one]
    if functions:
        names = ", ".join(map(str, functions))
        raise _not_a_report(f"measures that are functions, which it does not hold: {names}"[:200])
    return dict(data)


_BLOCKS = {
    "td", "th", "p", "li", "dd", "dt", "h1", "h2", "h3", "summary", "span", "strong", "title"
}  # fmt: skip

_VOID = {"meta", "input", "br", "path", "circle", "img", "link"}


class _Page(HTMLParser):
    """The texts of a page, each with the table and the row that it stands in; data and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.data, self.digest = "", ""
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.blocks: list[tuple[str, str]] = []
        self._table, self._row, self._column, self._section = "", "", 0, ""
        self._open: list[tuple[str, str]] = []
        self._said: list[str] = []
        self.feed(text)
        self._end_block()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "meta" and given.get("name") == "isocost:data":
            self.digest = given.get("content") or ""
        elif tag == "meta" and given.get("name"):
            self.blocks.append((f"meta {given['name']}", given.get("content") or ""))
        if tag in _BLOCKS:
            self._end_block()
        if tag == "table":
            self._table = given.get("id") or self._section
        elif tag == "tr":
            self._row, self._column = "", -1
        elif tag in ("td", "th"):
            self._column += 1
        if tag not in _VOID:
            self._open.append((tag, given.get("id") or ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self._end_block()
        if tag == "table":
            self._table = ""
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tag, name = self._open[-1] if self._open else ("", "")
        if tag == "script":
            if name == "data":
                self.data += data
            else:
                self.scripts.append(data)
        elif tag == "style":
            self.styles.append(data)
        else:
            self._said.append(data)

    def _end_block(self) -> None:
        said = re.sub(r"\s+", " ", "".join(self._said)).strip()
        self._said = []
        if not said:
            return
        tag = self._open[-1][0] if self._open else ""
        if tag in ("h2", "h3"):
            self._section = said
        if self._table and self._column == 0 and not self._row:
            self._row = said
        cell = f"table {self._table}, {self._row}, column {self._column}" if self._table else ""
        self.blocks.append((cell or f"text under {self._section or 'the headline'}", said))


@dataclass
class _Counter:
    """Numbers compared so far; ``exact`` is true if words are compared too."""

    exact: bool
    numbers: int = 0


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def _different(shown: Any, again: Any, path: str, counter: _Counter) -> Iterator[str]:
    """The places where embedded values differ; words and charts follow the version."""
    if path in ("data.words", "data.charts") and not counter.exact:
        return
    if isinstance(shown, dict) and isinstance(again, dict):
        for key in sorted({*shown, *again}):
            if key not in shown or key not in again:
                yield f"{path}.{key}: {'added' if key in shown else 'removed'}"
            else:
                yield from _different(shown[key], again[key], f"{path}.{key}", counter)
    elif isinstance(shown, list) and isinstance(again, list):
        if len(shown) != len(again):
            yield f"{path}: {len(shown)} values instead of {len(again)}"
        for i, (one, other) in enumerate(zip(shown, again, strict=False)):
            yield from _different(one, other, f"{path}[{i}]", counter)
    else:
        counter.numbers += isinstance(again, int | float)
        are_texts = isinstance(shown, str) and isinstance(again, str)
        if are_texts and not counter.exact and _TOLD.search(path):
            is_same = _NUMBER.findall(shown) == _NUMBER.findall(again)
        elif all(isinstance(one, int | float) for one in (shown, again)):
            # A truth value counts as a number here, and differs from one by its type.
            is_flag = isinstance(shown, bool), isinstance(again, bool)
            is_close = math.isclose(shown, again, rel_tol=EXACT, abs_tol=1e-12)
            is_same = is_flag[0] == is_flag[1] and is_close
        else:
            is_same = type(shown) is type(again) and shown == again
        if not is_same:
            yield f"{path}: {_short(shown)} instead of {_short(again)}"


_TOLD = re.compile(r"\.(why|notes\[\d+\])$")
"""Sentences among the numbers; other versions may word them differently."""


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _different_texts(
    shown: list[tuple[str, str]], again: list[tuple[str, str]], counter: _Counter
) -> Iterator[str]:
    """The places where texts differ; of another version, tables and numbers in sentences."""
    counter.numbers += sum(len(_NUMBER.findall(text)) for _, text in again)
    # A heading that was changed changes where what follows it stands, so only texts are matched.
    texts, others = ([text for _, text in one] for one in (shown, again))
    matcher = SequenceMatcher(None, texts, others, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        for i in range(max(b - a, d - c)):
            here = shown[a + i] if a + i < b else ("", "")
            there = again[c + i] if c + i < d else ("", "")
            location = here[0] or there[0]
            is_cell = location.startswith(("table", "meta")) and len(there[1].split()) <= FEW_WORDS
            numbers = [_NUMBER.findall(text) for _, text in (here, there)]
            if counter.exact or is_cell or numbers[0] != numbers[1]:
                yield f"{location}: {_short(here[1])} instead of {_short(there[1])}"
