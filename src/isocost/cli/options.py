"""The options that several commands share, described once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from isocost.repairs.registry import REPAIRS, Option

__all__ = [
    "AllowDecisionChanges",
    "Bins",
    "Confidence",
    "CostOption",
    "Data",
    "DataOrTallies",
    "DropGroup",
    "Equal",
    "Force",
    "GroupColumns",
    "Infeasible",
    "Json",
    "Keep",
    "LabelColumn",
    "Levels",
    "MemoryLimit",
    "MissingGroup",
    "Output",
    "Plot",
    "Positive",
    "Rates",
    "RepairCost",
    "RepairMethod",
    "Replicates",
    "ScoreColumn",
    "Seed",
    "Threads",
    "Threshold",
    "Tolerance",
    "WeightColumn",
]

_DATA = (
    "CSV, TSV, JSON lines or Parquet, a folder or a glob in quotes; - reads CSV from standard "
    "input."
)
Data = Annotated[str, typer.Argument(help=_DATA)]
DataOrTallies = Annotated[
    list[str],
    typer.Argument(help=f"{_DATA} Or tallies, as isocost tally wrote them; several are added."),
]
MemoryLimit = Annotated[
    str | None, typer.Option("--memory-limit", help="Memory that files may take; default: 1GiB.")
]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads; default: one a core.")]
ScoreColumn = Annotated[str, typer.Option("--score", help="Column of scores in [0, 1].")]
LabelColumn = Annotated[str, typer.Option("--label", help="Column of labels, 0/1 or boolean.")]
GroupColumns = Annotated[
    list[str], typer.Option("--group", help="Column of groups; give it again for intersections.")
]
WeightColumn = Annotated[str | None, typer.Option("--weight", help="Column of weights.")]
Positive = Annotated[
    str | None, typer.Option("--positive", help="The positive label, if labels are not 0/1.")
]
MissingGroup = Annotated[
    str | None, typer.Option("--missing-group", help="Group of the rows whose group is missing.")
]
DropGroup = Annotated[
    list[str] | None, typer.Option("--drop-group", help="Leave this group out; may be given again.")
]
Bins = Annotated[int, typer.Option("--bins", help="Bins of equal width to count scores in.")]
CostOption = Annotated[str, typer.Option("--cost", help="fpr, fnr, weighted:FP,FN or plain:FP,FN.")]
Threshold = Annotated[
    float, typer.Option("--threshold", help="Score from which people are treated as positive.")
]
Confidence = Annotated[float, typer.Option("--confidence", help="Confidence of the intervals.")]
Replicates = Annotated[
    int, typer.Option("--replicates", help="Resamples for the intervals; 0 for closed forms only.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the resamples.")]
Tolerance = Annotated[float, typer.Option("--tolerance", help="How far costs may differ.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write.")]
Plot = Annotated[
    bool | None,
    typer.Option("--plot/--no-plot", help="Draw the audit.  [default: on a terminal]"),
]


def _having(setting: str) -> dict[str, Option]:
    """The option that each repair has for a setting."""
    return {
        name: option
        for name, repair in REPAIRS.items()
        for option in repair.options
        if option.setting == setting
    }


def _words(setting: str) -> Any:
    """The words that a setting of repairs may be, as an Enum, because typer lists those."""
    found = next(iter(_having(setting).values()))
    return StrEnum(setting, {word: word for word in found.choices})


def _repair_option(setting: str, default: str = "") -> Any:
    """A setting of repairs on the command line, described as the registry does."""
    by_help: dict[str, list[str]] = {}
    for name, option in _having(setting).items():
        by_help.setdefault(option.help, []).append(name)
    told = " ".join(f"{', '.join(names)}: {text}" for text, names in by_help.items())
    return typer.Option(f"--{setting.replace('_', '-')}", help=f"{told}{default}")


if TYPE_CHECKING:
    _Method: TypeAlias = str
    _Rate: TypeAlias = str
    _Keep: TypeAlias = str
    _Infeasible: TypeAlias = str
    _Rates: TypeAlias = str
else:
    _Method = StrEnum("method", {name: name for name in REPAIRS})
    _Rate, _Keep, _Infeasible, _Rates = map(_words, ("equal", "keep", "infeasible", "rates"))

RepairMethod = Annotated[_Method, typer.Option("--method", help="How to repair.")]
RepairCost = Annotated[str | None, _repair_option("cost", "  [default: fnr]")]
Equal = Annotated[list[_Rate], _repair_option("equal")]
Keep = Annotated[_Keep, _repair_option("keep")]
Levels = Annotated[int, _repair_option("levels")]
Rates = Annotated[_Rates, _repair_option("rates")]
AllowDecisionChanges = Annotated[bool, _repair_option("allow_decision_changes")]
Infeasible = Annotated[_Infeasible, _repair_option("infeasible")]
