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
    from isocost.engines.dispatch import tally
    from isocost.engines.files import apply_file
    from isocost.engines.warehouse.tally_sql import tally_from_cells, tally_sql
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
    from isocost.measures.audit import Audit, Disparity, Measures, audit
    from isocost.measures.bounds import Bounds, bounds
    from isocost.measures.feasibility import Feasibility, feasibility
    from isocost.measures.functions import calibration_gap, generalized_fnr, generalized_fpr
    from isocost.measures.intervals import Intervals, intervals
    from isocost.measures.table import MEASURES, Measure
    from isocost.measures.theorems import distinct
    from isocost.monitor.watch import Watch, watch
    from isocost.promises import Promise
    from isocost.repairs.coarsen import coarsen, decision_limit
    from isocost.repairs.compare import Changes, Comparison, compare
    from isocost.repairs.frontier import Frontier, frontier
    from isocost.repairs.odds import equalize_odds
    from isocost.repairs.reconcile import Reconcilability, reconcile
    from isocost.repairs.registry import REPAIRS, Repair
    from isocost.repairs.withhold import withhold
    from isocost.reports.report import report, report_html, show_report
    from isocost.rules import Rule
    from isocost.tallies import Tally

_HOME = {
    "Audit": "measures.audit",
    "Bounds": "measures.bounds",
    "Changes": "repairs.compare",
    "Comparison": "repairs.compare",
    "ConstraintWarning": "errors",
    "Cost": "costs",
    "DataError": "errors",
    "Disparity": "measures.audit",
    "Feasibility": "measures.feasibility",
    "FileError": "errors",
    "Frontier": "repairs.frontier",
    "InfeasibleError": "errors",
    "InfeasibleWarning": "errors",
    "Intervals": "measures.intervals",
    "IsocostError": "errors",
    "IsocostWarning": "errors",
    "MEASURES": "measures.table",
    "Measure": "measures.table",
    "Measures": "measures.audit",
    "MissingDependencyError": "errors",
    "Promise": "promises",
    "REPAIRS": "repairs.registry",
    "Reconcilability": "repairs.reconcile",
    "Repair": "repairs.registry",
    "Rule": "rules",
    "RuleError": "errors",
    "Tally": "tallies",
    "UncertainWarning": "errors",
    "UsageError": "errors",
    "Watch": "monitor.watch",
    "apply_file": "engines.files",
    "audit": "measures.audit",
    "bounds": "measures.bounds",
    "calibration_gap": "measures.functions",
    "coarsen": "repairs.coarsen",
    "compare": "repairs.compare",
    "decision_limit": "repairs.coarsen",
    "distinct": "measures.theorems",
    "equalize_odds": "repairs.odds",
    "feasibility": "measures.feasibility",
    "frontier": "repairs.frontier",
    "generalized_fnr": "measures.functions",
    "generalized_fpr": "measures.functions",
    "intervals": "measures.intervals",
    "reconcile": "repairs.reconcile",
    "report": "reports.report",
    "report_html": "reports.report",
    "show_report": "reports.report",
    "tally": "engines.dispatch",
    "tally_from_cells": "engines.warehouse.tally_sql",
    "tally_sql": "engines.warehouse.tally_sql",
    "watch": "monitor.watch",
    "withhold": "repairs.withhold",
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
