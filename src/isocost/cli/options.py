"""The options that several commands share, described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Bins",
    "Confidence",
    "CostOption",
    "Data",
    "DataOrTallies",
    "DropGroup",
    "Force",
    "GroupColumns",
    "Json",
    "LabelColumn",
    "MemoryLimit",
    "MissingGroup",
    "Output",
    "Plot",
    "Positive",
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
