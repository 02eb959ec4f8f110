"""Log an audit to MLflow: numbers as metrics, and the JSON, the page and the rule as artifacts.

Needs ``pip install "isocost[mlflow]"``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from isocost.checks import check_flag, short
from isocost.errors import Problem, UsageError, require_package
from isocost.groups import names_of
from isocost.judging.audit import Audit, audits
from isocost.page.report import report_html
from isocost.rules import Rule, check_rule
from isocost.verdict.sentences import plain
from isocost.verdict.wording import statement

LONGEST = 100
"""Characters of a group's name in the name of a metric; MLflow allows 250 for the whole."""

BATCH = 1000
"""The most metrics that a tracking server accepts at once."""


@audits("rule")
def log_audit(
    audit: Audit, rule: Rule | None = None, *, report: bool = True, prefix: str = "isocost"
) -> str:
    """Log an audit to the active run of MLflow, or to a new one if there is none.

    Parameters
    ----------
    audit : Audit, Tally, or data
        A tally is audited first, and data are counted before that.  Its numbers become metrics:
        ``isocost/groups/GROUP/fpr``, ``isocost/overall/fpr``, ``isocost/disparities/fpr``, with
        ``_low`` and ``_high`` of disparities that have an interval.  Numbers that are not defined
        are left out.
    rule : Rule, optional
        A repair to keep beside the audit.
    report : bool
        Whether to log the page of :func:`isocost.report`; it takes a second or more.
    prefix : str
        The first part of every name.  A run has one audit for each prefix.
    cost, threshold, tolerance
        As for :func:`isocost.audit`; not with an audit, which has its own.
    **reading
        With data: the keywords of :func:`isocost.tally`, such as ``score``, ``label``, ``group``.

    Returns
    -------
    str
        The id of the run.

    Notes
    -----
    Artifacts are ``isocost/audit.json``, ``isocost/report.html`` and ``isocost/rule.json``;
    parameters say what was asked (cost, threshold, tolerance, confidence, columns); the tag
    ``isocost.verdict`` is the headline.  In names of metrics, characters of groups that MLflow does
    not allow become underscores; the JSON has the groups as they are.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> from isocost.mlflow import log_audit
    >>> audit = ic.audit(compas(), cost="fpr")
    >>> run_id = log_audit(audit, ic.withhold(compas(), "fpr", 0.06))  # doctest: +SKIP
    """
    if rule is not None:
        check_rule(rule)
    check_flag("report", report)
    if not isinstance(prefix, str) or not re.fullmatch(r"\w[\w\-]{0,49}", prefix):
        must = "must be at most 50 letters, digits, underscores and hyphens"
        raise UsageError(Problem("prefix", must, short(prefix), 'for example prefix="after"'))
    install = 'pip install "isocost[mlflow]"'
    mlflow = require_package("mlflow", "mlflow", "is needed to log an audit", install)
    # Made before anything is logged: a run has all of it or nothing.
    page = report_html(audit, None if rule is None else [rule]) if report else None
    asked: dict[str, Any] = {
        "cost": audit.cost,
        "threshold": audit.threshold,
        "tolerance": audit.feasibility.tolerance,
        "confidence": audit.confidence,
        **audit.tally.columns,
        "rule": None if rule is None else rule.method,
    }
    parameters = {
        f"{prefix}.{name}": ", ".join(map(str, x)) if isinstance(x, list | tuple) else str(x)
        for name, x in asked.items()
        if x is not None
    }
    run = mlflow.active_run() or mlflow.start_run()
    logged = mlflow.get_run(run.info.run_id).data.params
    for name, text in parameters.items():
        if logged.get(name, text) != text:
            must = "must be new in a run, unless the audit was made with the same arguments"
            got = f"{prefix!r}, and {name} is {logged[name]} there, not {text}"
            step = 'pass another prefix, for example prefix="after", or start another run'
            raise UsageError(Problem("prefix", must, got, step))
    mlflow.log_params(parameters)
    mlflow.set_tag(f"{prefix}.verdict", plain(statement(audit).headline))
    metrics = list(metrics_of(audit, prefix).items())
    for start in range(0, len(metrics), BATCH):
        mlflow.log_metrics(dict(metrics[start : start + BATCH]))
    mlflow.log_text(audit.to_json(), f"{prefix}/audit.json")
    if page is not None:
        mlflow.log_text(page, f"{prefix}/report.html")
    if rule is not None:
        mlflow.log_text(rule.to_json() + "\n", f"{prefix}/rule.json")
    return str(run.info.run_id)


def metrics_of(audit: Audit, prefix: str = "isocost") -> dict[str, float]:
    """The numbers of an audit by names that MLflow allows.

    Examples
    --------
    >>> import isocost as ic
    >>> from isocost.examples import compas
    >>> from isocost.mlflow import metrics_of
    >>> found = metrics_of(ic.audit(compas(), cost="fpr", confidence=None))
    >>> round(found["isocost/groups/Caucasian/fpr"], 4), round(found["isocost/disparities/cost"], 4)
    (0.1472, 0.0875)
    """
    groups = names_of(audit.groups)
    safe = dict(zip(groups, _safe_names(groups.values()), strict=True))
    numbers: dict[str, float] = {}
    for group, measures in audit.groups.items():
        numbers |= {f"groups/{safe[group]}/{key}": value for key, value in measures.values.items()}
    numbers |= {f"overall/{key}": value for key, value in audit.overall.values.items()}
    numbers |= {f"disparities/{key}": one.difference for key, one in audit.disparities.items()}
    if audit.intervals is not None:
        for key, (low, high) in audit.intervals.disparities.items():
            numbers |= {f"disparities/{key}_low": low, f"disparities/{key}_high": high}
    return {f"{prefix}/{key}": value for key, value in numbers.items() if math.isfinite(value)}


def _safe_names(names: Iterable[str]) -> list[str]:
    """Names that may be parts of a metric's name, each once.

    Examples
    --------
    >>> _safe_names(["F, 30", "a/b", "a|b", "..", ""])
    ['F_ 30', 'a_b', 'a_b_2', '_', '_2']
    """
    chosen: list[str] = []
    # Some stores keep metrics as files, and some file systems do not tell "a" from "A".
    used: set[str] = set()
    for name in names:
        # A part of a path must not be empty, "." or "..", or end in what is trimmed.
        short_name = re.sub(r"[^\w\-. ]", "_", name)[:LONGEST].strip(". ") or "_"
        unique, number = short_name, 1
        while unique.casefold() in used:
            number += 1
            unique = f"{short_name.rstrip('_')}_{number}"
        used.add(unique.casefold())
        chosen.append(unique)
    return chosen
