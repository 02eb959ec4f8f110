"""isocost: risk scores that stay calibrated and whose errors cost every group the same.

Everything is arithmetic on a tally, one small table made in one pass over any data; and every
repair is a rule, one small table that any engine can apply.  Names are loaded when they
are first used, so that importing isocost stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from isocost.costs import Cost
    from isocost.engines.cellrows import tally_from_cells
    from isocost.engines.dispatch import tally
    from isocost.engines.rewrite import apply_file
    from isocost.engines.tally_sql import tally_sql
    from isocost.errors import (
        ConstraintWarning,
        DataError,
        FileError,
        InfeasibleError,
        InfeasibleWarning,
        IsocostError,
        IsocostWarning,
        MissingDependencyError,
        RuleError,
        UncertainWarning,
        UsageError,
    )
    from isocost.measure.audit import Audit, audit
    from isocost.measure.bounds import Bounds, bounds
    from isocost.measure.comparison import distinct
    from isocost.measure.disparity import Disparity
    from isocost.measure.feasibility import Feasibility, feasibility
    from isocost.measure.functions import calibration_gap, generalized_fnr, generalized_fpr
    from isocost.measure.intervals import Intervals, intervals
    from isocost.measure.measures import Measures
    from isocost.measure.table import MEASURES, Measure
    from isocost.measure.watch import watch
    from isocost.measure.watched import Watch
    from isocost.promises import Promise
    from isocost.repair.changes import Changes
    from isocost.repair.coarsen import coarsen, decision_limit
    from isocost.repair.compare import Comparison, compare
    from isocost.repair.frontier import Frontier, frontier
    from isocost.repair.odds import equalize_odds
    from isocost.repair.reconcile import Reconcilability, reconcile
    from isocost.repair.registry import REPAIRS, Repair
    from isocost.repair.withhold import withhold
    from isocost.rules import Rule
    from isocost.show.report import report, report_html, show_report
    from isocost.tallies import Tally

_HOME = {
    "Audit": "measure.audit",
    "Bounds": "measure.bounds",
    "Changes": "repair.changes",
    "Comparison": "repair.compare",
    "ConstraintWarning": "errors",
    "Cost": "costs",
    "DataError": "errors",
    "Disparity": "measure.disparity",
    "Feasibility": "measure.feasibility",
    "FileError": "errors",
    "Frontier": "repair.frontier",
    "InfeasibleError": "errors",
    "InfeasibleWarning": "errors",
    "Intervals": "measure.intervals",
    "IsocostError": "errors",
    "IsocostWarning": "errors",
    "MEASURES": "measure.table",
    "Measure": "measure.table",
    "Measures": "measure.measures",
    "MissingDependencyError": "errors",
    "Promise": "promises",
    "REPAIRS": "repair.registry",
    "Reconcilability": "repair.reconcile",
    "Repair": "repair.registry",
    "Rule": "rules",
    "RuleError": "errors",
    "Tally": "tallies",
    "UncertainWarning": "errors",
    "UsageError": "errors",
    "Watch": "measure.watched",
    "apply_file": "engines.rewrite",
    "audit": "measure.audit",
    "bounds": "measure.bounds",
    "calibration_gap": "measure.functions",
    "coarsen": "repair.coarsen",
    "compare": "repair.compare",
    "decision_limit": "repair.coarsen",
    "distinct": "measure.comparison",
    "equalize_odds": "repair.odds",
    "feasibility": "measure.feasibility",
    "frontier": "repair.frontier",
    "generalized_fnr": "measure.functions",
    "generalized_fpr": "measure.functions",
    "intervals": "measure.intervals",
    "reconcile": "repair.reconcile",
    "report": "show.report",
    "report_html": "show.report",
    "show_report": "show.report",
    "tally": "engines.dispatch",
    "tally_from_cells": "engines.cellrows",
    "tally_sql": "engines.tally_sql",
    "watch": "measure.watch",
    "withhold": "repair.withhold",
}

__all__ = [
    "MEASURES",
    "REPAIRS",
    "Audit",
    "Bounds",
    "Changes",
    "Comparison",
    "ConstraintWarning",
    "Cost",
    "DataError",
    "Disparity",
    "Feasibility",
    "FileError",
    "Frontier",
    "InfeasibleError",
    "InfeasibleWarning",
    "Intervals",
    "IsocostError",
    "IsocostWarning",
    "Measure",
    "Measures",
    "MissingDependencyError",
    "Promise",
    "Reconcilability",
    "Repair",
    "Rule",
    "RuleError",
    "Tally",
    "UncertainWarning",
    "UsageError",
    "Watch",
    "__version__",
    "apply_file",
    "audit",
    "bounds",
    "calibration_gap",
    "coarsen",
    "compare",
    "decision_limit",
    "distinct",
    "equalize_odds",
    "feasibility",
    "frontier",
    "generalized_fnr",
    "generalized_fpr",
    "intervals",
    "reconcile",
    "report",
    "report_html",
    "show_report",
    "tally",
    "tally_from_cells",
    "tally_sql",
    "watch",
    "withhold",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'isocost' has no attribute {name!r}")
    value = getattr(import_module(f"isocost.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
