"""The options that several commands share, described once.

Options that always come together are the fields of a dataclass.  A command has one parameter of
that type, and :func:`expanded` gives the command line an option for each field.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import typer

from isocost.atomic import check_target
from isocost.checks import check_threshold, check_tolerance
from isocost.engines.kinds import FileReading
from isocost.errors import Problem, UsageError
from isocost.grid import BINS
from isocost.question import DEFAULT, Question

if TYPE_CHECKING:
    from isocost.repairs.table import Option

in_data = partial(typer.Option, rich_help_panel="Data")
in_measured = partial(typer.Option, rich_help_panel="What is measured")
in_repair = partial(typer.Option, rich_help_panel="Repair")
in_layouts = partial(typer.Option, rich_help_panel="Layouts")
in_output = partial(typer.Option, rich_help_panel="Output")
"""An option under one of the headings of a command's help; those under none come last."""

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
    str | None, in_data("--memory-limit", help="Memory for reading files; default: 1GiB.")
]
Threads = Annotated[
    int | None, in_data("--threads", help="Number of threads; default: one per core.")
]
Edges = Annotated[
    list[float] | None,
    in_data("--edge", help="A further bin edge, such as a threshold; may be repeated."),
]
Force = Annotated[bool, in_output("--force", help="Replace the output if it exists.")]
Output = Annotated[Path | None, in_output("--output", "-o", help="File to write.")]
OutputColumn = Annotated[
    str | None,
    in_output(
        "--output-column",
        help="Column to write, also in place of an existing one; default: repaired_SCORE, added.",
    ),
]
Plot = Annotated[
    bool | None, in_output("--plot/--no-plot", help="Draw the audit.  [default: on a terminal]")
]
Full = Annotated[
    bool,
    in_output("--full", help="Print every usual number and note, not only what fits a screen."),
]
LabelColumn = Annotated[str, in_data("--label", help="Column of labels, 0/1 or boolean.")]
WeightColumn = Annotated[str | None, in_data("--weight", help="Column of weights.")]
Positive = Annotated[
    str | None, in_data("--positive", help="The positive label, if labels are not 0/1.")
]
Bins = Annotated[int, in_data("--bins", help="Number of bins of equal width to count scores in.")]
Scale = Annotated[
    str,
    in_data(
        "--scale",
        help="What the scores are: probability, percent, logit, or rank (deciles; or rank:1-10).",
    ),
]
Decimal = Annotated[
    str | None,
    in_data("--decimal", help="Decimal sign, . or ,; default: a comma if every score fits."),
]
Encoding = Annotated[
    str | None,
    in_data("--encoding", help="Encoding of text; default: UTF-8, or what the file's bytes show."),
]
Sheet = Annotated[
    str | None, in_data("--sheet", help="Sheet of a workbook; default: the only one.")
]
_MissingGroup = Annotated[
    str | None, in_data("--missing-group", help="Group of the rows whose group is missing.")
]


@dataclass(frozen=True)
class Columns:
    """The columns of the data, and how to read and count them."""

    score: Annotated[str, in_data("--score", help="Column of scores in [0, 1].")] = "score"
    label: LabelColumn = "label"
    group: Annotated[
        list[str], in_data("--group", help="Column of groups; repeat it for intersections.")
    ] = field(default_factory=lambda: ["group"])
    weight: WeightColumn = None
    positive: Positive = None
    missing_group: _MissingGroup = None
    drop_group: Annotated[
        list[str] | None, in_data("--drop-group", help="Group to leave out; may be repeated.")
    ] = None
    merge_groups: Annotated[
        list[str] | None,
        in_data("--merge-groups", help='Groups to count as one: "A,B=other"; may be repeated.'),
    ] = None
    bins: Bins = BINS
    memory_limit: MemoryLimit = None
    threads: Threads = None
    scale: Scale = "probability"
    decimal: Decimal = None
    encoding: Encoding = None
    sheet: Sheet = None
    handed_over: Annotated[
        bool,
        in_data(
            "--handed-over", help="Count people without a score apart: a rule handed them over."
        ),
    ] = False
    drop_missing: Annotated[
        bool,
        in_data("--drop-missing", help="Leave out rows without score, label, group or weight."),
    ] = False

    @property
    def reading(self) -> FileReading:
        """The way in which files are read."""
        names = ("decimal", "encoding", "sheet", "memory_limit", "threads")
        return FileReading(**{name: getattr(self, name) for name in names})


Cost = Annotated[str, in_measured("--cost", help="fpr, fnr, weighted:FP,FN or plain:FP,FN.")]


def _asked(name: str, text: str) -> Any:
    """An option for a field of a question."""
    usual = getattr(DEFAULT, name)
    shown = "" if usual is None else f"  [default: {usual}]"
    return in_measured(f"--{name.replace('_', '-')}", help=f"{text}{shown}", show_default=False)


@dataclass(frozen=True)
class Asking:
    """The fields of a question; None where nothing was given."""

    cost: Annotated[str | None, _asked("cost", "fpr, fnr, weighted:FP,FN or plain:FP,FN.")] = None
    threshold: Annotated[
        float | None, _asked("threshold", "Scores at or above this are treated as positive.")
    ] = None
    tolerance: Annotated[
        float | None,
        _asked("tolerance", "How far costs may differ; with fit, for a repair of rates, these."),
    ] = None
    confidence: Annotated[
        float | None,
        _asked("confidence", "Confidence of the intervals, which decide what is established."),
    ] = None
    replicates: Annotated[
        int | None, _asked("replicates", "Draws for the intervals of gaps; 0 for none.")
    ] = None
    remakes: Annotated[
        int | None,
        _asked(
            "remakes",
            "How often to make a rule again, for what it does to new people; default: 200, 30 if "
            "it takes a linear program, fewer with many groups.",
        ),
    ] = None
    seed: Annotated[int | None, _asked("seed", "Seed of everything that is drawn.")] = None
    min_group: Annotated[
        int | None,
        _asked("min_group", "Smaller groups are listed, not compared or repaired."),
    ] = None

    def question(self, usual: Mapping[str, Any] | None = None, **more: Any) -> Question:
        """What is asked; ``usual`` are the values of fields that were not given."""
        if self.threshold is not None:
            check_threshold(self.threshold, "--threshold")
        if self.tolerance is not None:
            check_tolerance(self.tolerance, "--tolerance")
        names = (one.name for one in fields(Asking))
        given = {n: value for n in names if (value := getattr(self, n)) is not None}
        return Question(**{**(usual or {}), **given, **more})


@dataclass(frozen=True)
class Measuring(Asking):
    """Options of an audit."""

    measures: Annotated[
        str | None,
        in_measured(
            "--measures",
            help=f"What to show: {', '.join(_families())} or all, or names of measures with commas "
            "between, such as ppv,npv,auc; default: what most people look for.",
        ),
    ] = None
    reference: Annotated[
        str | None,
        in_measured(
            "--reference",
            help="Group that impact ratios and standardized differences compare with; default: "
            "the one with the highest selection rate, or mean score.",
        ),
    ] = None


def _families() -> tuple[str, ...]:
    from isocost.measures.table import FAMILIES

    return tuple(FAMILIES)


class Side(StrEnum):
    """The side of the threshold on which people are selected."""

    above = "above"
    below = "below"


@dataclass(frozen=True)
class LayoutOptions:
    """A layout instead of the audit; the fields are arguments of :func:`isocost.layout`."""

    layout: Annotated[
        str | None,
        in_layouts(
            "--layout",
            help="Print the tables that a law or a guideline asks for instead: ll144, tripod.",
        ),
    ] = None
    unknown: Annotated[
        list[str] | None,
        in_layouts(
            "--unknown",
            help="ll144: value of a group column that stands for an unknown category; may be "
            "repeated.  The value of --missing-group is one.",
        ),
    ] = None
    selected: Annotated[
        Side,
        in_layouts("--selected", help="ll144: who is selected, by the side of the threshold."),
    ] = Side.above


class PrintedAs(StrEnum):
    """The formats of a printed result."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"


@dataclass(frozen=True)
class Printing:
    """The format of a printed result, and a file for its numbers."""

    json: Annotated[bool, in_output("--json", help="The same as --format json.")] = False
    format: Annotated[
        PrintedAs | None, in_output("--format", help="How to print the result; default: table.")
    ] = None
    csv: Annotated[
        Path | None, in_output("--csv", help="Also write the numbers to this CSV file.")
    ] = None
    force: Force = False

    def chosen(self, plot: bool | None = None) -> PrintedAs:
        """The format, once all options are known to agree and the file can be written."""
        if self.json and self.format not in (None, PrintedAs.json):
            _contradiction("--json", f"--format {self.format}")
        if self.force and self.csv is None:
            _contradiction("--force", "no --csv", "name a file with --csv, or leave out --force")
        chosen = PrintedAs.json if self.json else self.format or PrintedAs.table
        if plot and chosen is not PrintedAs.table:
            _contradiction("--plot", f"--format {chosen}")
        if self.csv is not None:
            check_target(self.csv, self.force, ".csv")
        return chosen


def _contradiction(option: str, other: str, step: str = "leave out one of them") -> None:
    raise UsageError(Problem(option, "must agree with the other options", other, step))


class Unknown(StrEnum):
    """Treatments of groups that a rule does not know."""

    error = "error"
    keep = "keep"


@dataclass(frozen=True)
class RepairedColumns:
    """The columns that a rule is applied to."""

    score: Annotated[
        str | None, in_data("--score", help="Column of scores; default: as in the rule.")
    ] = None
    group: Annotated[
        list[str] | None, in_data("--group", help="Column of groups; default: as in the rule.")
    ] = None
    id: Annotated[
        str | None,
        in_data("--id", help="Column that identifies the person; for rules with a coin."),
    ] = None
    changed: Annotated[
        str | None, in_output("--changed", help="Column to add: whether the score changed.")
    ] = None
    handed_over: Annotated[
        str | None,
        in_data("--handed-over", help="Column to add: whether the person is handed over."),
    ] = None
    unknown: Annotated[Unknown, in_data("--unknown", help="Groups the rule does not know.")] = (
        Unknown.error
    )
    missing_group: _MissingGroup = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of :func:`isocost.apply_file` and :meth:`isocost.Rule.to_sql`."""
        return {**vars(self), "group": self.group or None, "unknown": self.unknown.value}


@cache
def expanded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a parameter for each field of its dataclass parameters, as typer needs."""
    hints = get_type_hints(function, include_extras=True)
    classes: dict[str, Any] = {n: kind for n, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in classes:
            parameters += _parameters(classes[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    @wraps(function)
    def call(**options: Any) -> Any:
        for name, kind in classes.items():
            options[name] = kind(**{f.name: options.pop(f.name) for f in fields(kind)})
        return function(**options)

    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([parameter.replace(kind=keyword) for parameter in parameters])
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


@cache
def _parameters(kind: Any) -> tuple[inspect.Parameter, ...]:
    """The fields of a dataclass as parameters."""
    choices = kind.choices() if hasattr(kind, "choices") else None
    hints = get_type_hints(kind, localns=choices, include_extras=True)
    return tuple(
        inspect.Parameter(
            f.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=f.default if f.default_factory is MISSING else f.default_factory(),
            annotation=hints[f.name],
        )
        for f in fields(kind)
    )


def repair_names() -> tuple[str, ...]:
    """The names of all repairs."""
    from isocost.repairs.table import REPAIRS

    return tuple(REPAIRS)


def _having(setting: str) -> dict[str, Option]:
    """The option that each repair has for a setting."""
    from isocost.repairs.table import REPAIRS

    return {
        name: option
        for name, repair in REPAIRS.items()
        for option in repair.options
        if option.name == setting
    }


def share_of(text: Any) -> float | str:
    """A share as a number, or the word for the least; what is neither is refused later."""
    try:
        return float(text)
    except ValueError:
        return str(text)


def _repair_option(setting: str, default: str = "", **more: Any) -> Any:
    """A setting of repairs on the command line, described as the registry does."""
    by_help: dict[str, list[str]] = {}
    for name, option in _having(setting).items():
        by_help.setdefault(option.help, []).append(name)
    text = " ".join(f"{', '.join(names)}: {text}" for text, names in by_help.items())
    return in_repair(f"--{setting.replace('_', '-')}", help=f"{text}{default}", **more)


if TYPE_CHECKING:
    _Method: TypeAlias = str
    _Rate: TypeAlias = str
    _Keep: TypeAlias = str
    _Infeasible: TypeAlias = str
    _Rates: TypeAlias = str
    _Minimize: TypeAlias = str
    _Map: TypeAlias = str
else:
    # Their home is repairs/recalibrate.py, which help texts must not load; a test compares both.
    _Map = StrEnum("map", {one: one for one in ("sigmoid", "isotonic", "histogram", "beta")})

MapMethod = Annotated[_Map, in_repair("--method", help="The map from scores to scores.")]
Recalibrate = Annotated[
    _Map | None,
    in_repair("--recalibrate", help="Make each group's scores calibrated first, by this map."),
]
Holdout = Annotated[
    str | None,
    in_data("--holdout", help="Data or a tally of people kept apart, to measure the rule on."),
]
Split = Annotated[
    float | None,
    in_data("--split", help="Share of the rows to keep apart, to measure the rule on."),
]
Anyway = Annotated[
    bool, in_repair("--anyway", help="Make the rule even if the data do not support it.")
]


@dataclass(frozen=True)
class Repairing(Asking):
    """A question, and the options of all repairs, described by their registry."""

    method: Annotated[_Method, in_repair("--method", help="How to repair.")] = "withhold"
    equal: Annotated[list[_Rate] | None, _repair_option("equal")] = None
    share: Annotated[
        Any,
        _repair_option(
            "share", " Default: what it takes.", parser=share_of, metavar="NUMBER|least"
        ),
    ] = None
    keep: Annotated[_Keep, _repair_option("keep")] = "information"
    levels: Annotated[str, _repair_option("levels")] = "auto"
    floor: Annotated[list[str] | None, _repair_option("floor")] = None
    no_worse: Annotated[bool, _repair_option("no_worse")] = False
    monotone: Annotated[bool, _repair_option("monotone")] = False
    rates: Annotated[_Rates, _repair_option("rates")] = "generalized"
    allow_decision_changes: Annotated[bool, _repair_option("allow_decision_changes")] = False
    minimize: Annotated[_Minimize, _repair_option("minimize")] = "largest"
    infeasible: Annotated[_Infeasible, _repair_option("infeasible")] = "raise"

    @staticmethod
    def choices() -> dict[str, Any]:
        """The words that some settings may be, as Enums, because typer lists those."""

        def words(setting: str) -> list[str]:
            return [word for one in _having(setting).values() for word in one.choices]

        listed = {f"_{name.title()}": words(name) for name in ("keep", "infeasible", "rates")}
        listed |= {"_Rate": words("equal"), "_Minimize": words("minimize")}
        listed["_Method"] = list(repair_names())
        return {
            name: StrEnum(name.strip("_").lower(), {word: word for word in each})
            for name, each in listed.items()
        }

    @property
    def options(self) -> dict[str, Any]:
        """The options of the repair that were given, as plain values: a rule keeps them."""
        plain = {n: str(v) if isinstance(v, StrEnum) else v for n, v in vars(self).items()}
        plain |= {
            "equal": [str(rate) for rate in self.equal or ()] or None,
            "levels": int(self.levels) if self.levels.isdecimal() else self.levels,
            "floor": _floors(self.floor or ()),
        }
        # What is equal, or handed over, by default differs by repair.
        return {name: value for name, value in plain.items() if value is not None}


def _floors(texts: Iterable[str]) -> dict[str, float] | None:
    """The floors written as NAME=NUMBER; None if there are none."""
    floors = {}
    for text in texts:
        name, _, least = text.partition("=")
        try:
            floors[name] = float(least)
        except ValueError as error:
            step = "for example --floor selection_rate=0.1"
            raise UsageError(Problem("--floor", "must be NAME=NUMBER", repr(text), step)) from error
    return floors or None
