"""The options of commands, each described where it is declared.

An option is a parameter of a command, or a field of a dataclass for options that always come
together; its default is made by :func:`option`.  :func:`expanded` gives the command line an option
for each, named after the parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from isocost.atomic import check_target
from isocost.checks import check_threshold, check_tolerance
from isocost.engines.kinds import FileReading
from isocost.errors import Problem, UsageError
from isocost.grid import BINS
from isocost.question import DEFAULT, Question
from isocost.readings import TREATMENTS, Missing

if TYPE_CHECKING:
    from isocost.repairs.table import Option, Repair


def option(
    panel: str | None,
    default: Any,
    help: str | Callable[[], str],
    *names: str,
    choices: Callable[[], Iterable[str]] | Iterable[str] = (),
    **more: Any,
) -> Any:
    """The default of a parameter or a field that is an option of the command line.

    ``panel`` is its heading in the help, ``names`` are two dashes and the name of the parameter
    unless given, ``choices`` the words that it may be, and ``more`` keywords of ``typer.Option``.
    A help or choices that take time to import are functions.
    """
    how = {"panel": panel, "help": help, "names": names, "choices": choices, "more": more}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=how)
    return field(default=default, metadata=how)


in_data = partial(option, "Data")
in_measured = partial(option, "What is measured")
in_repair = partial(option, "Repair")
in_layouts = partial(option, "Layouts")
in_output = partial(option, "Output")
other = partial(option, None)

REQUIRED = MISSING
"""The default of an option that must be given."""


def as_in(kind: Any, name: str) -> Any:
    """The option that a dataclass has under this name, for another command."""
    (shared,) = (one for one in fields(kind) if one.name == name)
    return field(default=shared.default, metadata=shared.metadata)


@cache
def expanded(function: Callable[..., Any], *more: inspect.Parameter) -> Callable[..., Any]:
    """The function with typer's parameters: one for each option, also of its dataclasses.

    It also has the parameters ``more``, and does not pass them on.
    """
    hints = get_type_hints(function, include_extras=True)
    classes: dict[str, Any] = {n: kind for n, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in classes:
            parameters += _parameters(classes[name])
        elif isinstance(parameter.default, Field):
            parameters.append(parameter_of(name, hints[name], parameter.default))
        else:
            parameters.append(parameter.replace(annotation=hints[name]))
    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([one.replace(kind=keyword) for one in (*parameters, *more)])

    @wraps(function)
    def call(**options: Any) -> Any:
        given = {one.name: _plain(options[one.name]) for one in parameters}
        for name, kind in classes.items():
            values = {one.name: given.pop(one.name) for one in _parameters(kind)}
            rest = {n: values.pop(n) for n in values.keys() - {one.name for one in fields(kind)}}
            given[name] = kind(**values, given=rest) if rest else kind(**values)
        return function(**given)

    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    return call


def _plain(value: Any) -> Any:
    """Words as strings, where typer has members of an Enum."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.value if isinstance(value, StrEnum) else value


@cache
def _parameters(kind: Any) -> tuple[inspect.Parameter, ...]:
    """The options of a dataclass as parameters."""
    hints = get_type_hints(kind)
    own = [parameter_of(one.name, hints[one.name], one) for one in fields(kind) if one.metadata]
    return (*own, *(kind.more_parameters() if hasattr(kind, "more_parameters") else ()))


def parameter_of(name: str, hint: Any, described: Field[Any]) -> inspect.Parameter:
    """An option as typer's parameter; ``described`` is what :func:`option` returned."""
    how, default = described.metadata, described.default
    if described.default_factory is not MISSING:
        default = described.default_factory()
    listed = how["choices"]() if callable(how["choices"]) else how["choices"]
    if listed:
        # Typer lists the members of an Enum.
        word: Any = StrEnum("word", {each: each for each in listed})  # type: ignore[misc]
        hint = {str: word, str | None: word | None, list[str] | None: list[word] | None}[hint]
    made = typer.Option(
        *(how["names"] or [f"--{name.replace('_', '-')}"]),
        help=how["help"]() if callable(how["help"]) else how["help"],
        rich_help_panel=how["panel"],
        **how["more"],
    )
    default = inspect.Parameter.empty if default is MISSING else default
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=Annotated[hint, made])


# Data

_DATA = (
    "CSV, TSV, JSON lines or Parquet, a folder or a glob in quotes; - reads CSV from standard "
    "input."
)
Data = Annotated[str, typer.Argument(help=_DATA)]
DataOrTallies = Annotated[
    list[str],
    typer.Argument(help=f"{_DATA} Or tallies, as isocost tally wrote them; several are added."),
]


@dataclass(frozen=True)
class Texts:
    """Options for text and workbooks."""

    decimal: str | None = in_data(
        None, "Decimal sign, . or ,; default: a comma if every score fits."
    )
    encoding: str | None = in_data(
        None, "Encoding of text; default: UTF-8, or what the file's bytes show."
    )
    sheet: str | None = in_data(None, "Sheet of a workbook; default: the only one.")


@dataclass(frozen=True)
class Files(Texts):
    """Options for reading files."""

    memory_limit: str | None = in_data(None, "Memory for reading files; default: 1GiB.")
    threads: int | None = in_data(None, "Number of threads; default: one per core.")


@dataclass(frozen=True)
class _Roles:
    """The columns of the data, and how to count them."""

    score: str = in_data("score", "Column of scores in [0, 1].")
    label: str = in_data("label", "Column of labels, 0/1 or boolean.")
    group: list[str] = in_data(["group"], "Column of groups; repeat it for intersections.")
    weight: str | None = in_data(None, "Column of weights.")
    person: str | None = in_data(None, "Column that says who a row is about, if some have several.")
    id: str | None = in_data(None, "Column of ids; the audit warns if they repeat.")
    positive: str | None = in_data(None, "The positive label, if labels are not 0/1.")
    missing_label: str = in_data("refuse", "Rows without a label.", choices=TREATMENTS)
    missing_group: str = in_data(
        "refuse", "Rows without a group: refuse, drop, keep, or the group to count them in."
    )
    drop_group: list[str] | None = in_data(None, "Group to leave out; may be repeated.")
    merge_groups: list[str] | None = in_data(
        None, 'Groups to count as one: "A,B=other"; may be repeated.'
    )
    bins: int = in_data(BINS, "Number of bins of equal width to count scores in.")
    scale: str = in_data(
        "probability",
        "What the scores are: probability, percent, logit, or rank (deciles; or rank:1-10).",
    )
    handed_over: bool = in_data(
        False, "Count people without a score apart: a rule handed them over."
    )
    drop_missing: bool = in_data(False, "Leave out rows that lack one of these values.")


@dataclass(frozen=True)
class Columns(Files, _Roles):
    """The columns of the data, and how to read and count them."""

    @property
    def missing(self) -> Missing:
        """The treatment of rows that lack a value."""
        return Missing.asked(self.missing_label, self.missing_group, self.drop_missing)

    @property
    def reading(self) -> FileReading:
        """The way in which files are read."""
        return FileReading(**{one.name: getattr(self, one.name) for one in fields(Files)})


def edges() -> Any:
    """The option for bin edges."""
    return in_data(None, "A further bin edge, such as a threshold; may be repeated.")


@dataclass(frozen=True)
class RepairedColumns:
    """The columns that a rule is applied to."""

    score: str | None = in_data(None, "Column of scores; default: as in the rule.")
    group: list[str] | None = in_data(None, "Column of groups; default: as in the rule.")
    id: str | None = in_data(None, "Column that identifies the person; for rules with a coin.")
    changed: str | None = in_output(None, "Column to add: whether the score changed.")
    handed_over: str | None = in_data(None, "Column to add: whether the person is handed over.")
    unknown: str = in_data("error", "Groups the rule does not know.", choices=("error", "keep"))
    missing_group: str | None = in_data(None, "Group of the rows whose group is missing.")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of :func:`isocost.apply_file` and :meth:`isocost.Rule.to_sql`."""
        return {**vars(self), "group": self.group or None}


# Questions


def _asked(name: str, text: str) -> Any:
    """An option for a field of a question."""
    usual = getattr(DEFAULT, name)
    shown = "" if usual is None else f"  [default: {usual}]"
    return in_measured(None, f"{text}{shown}", show_default=False)


@dataclass(frozen=True)
class Asking:
    """The fields of a question; None where nothing was given."""

    cost: str | None = _asked("cost", "fpr, fnr, weighted:FP,FN or plain:FP,FN.")
    threshold: float | None = _asked(
        "threshold", "Scores at or above this are treated as positive."
    )
    tolerance: float | None = _asked(
        "tolerance", "How far costs may differ; with fit, for a repair of rates, these."
    )
    confidence: float | None = _asked(
        "confidence", "Confidence of the intervals, which decide what is established."
    )
    replicates: int | None = _asked("replicates", "Draws for the intervals of gaps; 0 for none.")
    remakes: int | None = _asked(
        "remakes",
        "How often to make a rule again, for what it does to new people; default: 200, 30 if it "
        "takes a linear program, fewer with many groups.",
    )
    seed: int | None = _asked("seed", "Seed of everything that is drawn.")
    min_group: int | None = _asked(
        "min_group", "Smaller groups are listed, not compared or repaired."
    )

    def question(self, usual: Mapping[str, Any] | None = None, **more: Any) -> Question:
        """The question; ``usual`` are the values of fields that were not given."""
        # Asked here too, so that the messages name the options.
        if self.threshold is not None:
            check_threshold(self.threshold, "--threshold")
        if self.tolerance is not None:
            check_tolerance(self.tolerance, "--tolerance")
        names = (one.name for one in fields(Asking))
        given = {n: value for n in names if (value := getattr(self, n)) is not None}
        return Question(**{**(usual or {}), **given, **more})


def words_of(question: Question) -> list[str]:
    """Options that ask a question again, beside its cost and tolerance."""
    names = ("threshold", "confidence", "replicates", "remakes", "seed", "min_group")
    given = question.changed(*names).items()
    # There is no option for no intervals.
    known = [(name.replace("_", "-"), value) for name, value in given if value is not None]
    return [word for name, value in known for word in (f"--{name}", f"{value:.12g}")]


def _measures_help() -> str:
    from isocost.measures.table import FAMILIES

    return (
        f"What to show: {', '.join(FAMILIES)} or all, or names of measures with commas between, "
        "such as ppv,npv,auc; default: what most people look for."
    )


@dataclass(frozen=True)
class Measuring(Asking):
    """Options of an audit."""

    measures: str | None = in_measured(None, _measures_help)
    reference: str | None = in_measured(
        None,
        "Group that impact ratios and standardized differences compare with; default: the one with "
        "the highest selection rate, or mean score.",
    )


@dataclass(frozen=True)
class LayoutOptions:
    """A layout instead of the audit; the fields are arguments of :func:`isocost.layout`."""

    layout: str | None = in_layouts(
        None, "Print the tables that a law or a guideline asks for instead: ll144, tripod."
    )
    unknown: list[str] | None = in_layouts(
        None,
        "ll144: value of a group column that stands for an unknown category; may be repeated.  The "
        "value of --missing-group is one.",
    )
    selected: str = in_layouts(
        "above",
        "ll144: who is selected, by the side of the threshold.",
        choices=("above", "below"),
    )


# Repairs


def repair_names() -> tuple[str, ...]:
    """The names of all repairs."""
    from isocost.repairs.table import REPAIRS

    return tuple(REPAIRS)


def map_names() -> tuple[str, ...]:
    """The names of the maps that recalibrate."""
    from isocost.repairs.recalibrate import METHODS

    return METHODS


def share_of(text: Any) -> float | str:
    """A share as a number, or the word for the least; what is neither is refused later."""
    try:
        return float(text)
    except ValueError:
        return str(text)


@dataclass(frozen=True)
class Repairing(Asking):
    """A question, and the options that the table of repairs lists: ``given``."""

    method: str = in_repair("withhold", "How to repair.", choices=repair_names)
    given: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def more_parameters() -> Iterator[inspect.Parameter]:
        """An option for each setting of repairs; repairs may share it."""
        from isocost.repairs.table import REPAIRS

        listed: dict[str, list[tuple[Repair, Option]]] = {}
        for repair in REPAIRS.values():
            for one in repair.options:
                listed.setdefault(one.name, []).append((repair, one))
        # The threshold, and how far groups may differ, are fields of the question.
        for name, settings in listed.items():
            if name in ("thresholds", "tolerance"):
                continue
            by_help: dict[str, list[str]] = {}
            for repair, one in settings:
                by_help.setdefault(one.help, []).append(repair.name)
            text = " ".join(f"{', '.join(names)}: {text}" for text, names in by_help.items())
            repair, first = settings[0]
            default = inspect.signature(repair.make).parameters[name].default
            hint: Any = type(default)
            more: dict[str, Any] = {}
            if first.many:
                hint, default = list[str] | None, None
            if name == "share":
                hint, default, text = Any, None, f"{text} Default: what it takes."
                more = {"parser": share_of, "metavar": "NUMBER|least"}
            words = [word for _, one in settings for word in one.choices]
            yield parameter_of(name, hint, in_repair(default, text, choices=words, **more))

    @property
    def options(self) -> dict[str, Any]:
        """The options of the repair that were given, as plain values: a rule keeps them."""
        levels = self.given["levels"]
        options = {
            **self.given,
            "tolerance": self.tolerance,
            "equal": self.given["equal"] or None,
            "levels": int(levels) if levels.isdecimal() else levels,
            "floor": _floors(self.given["floor"] or ()),
        }
        # What is equal, or handed over, by default differs by repair.
        return {name: value for name, value in options.items() if value is not None}


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


# Output


def _contradiction(option: str, other: str, step: str = "leave out one of them") -> UsageError:
    return UsageError(Problem(option, "must agree with the other options", other, step))


@dataclass(frozen=True)
class Printing:
    """The format of a printed result, and a file for its numbers."""

    json: bool = in_output(False, "The same as --format json.")
    format: str | None = in_output(
        None,
        "How to print the result; default: table.",
        choices=("table", "json", "csv", "markdown"),
    )
    csv: Path | None = in_output(None, "Also write the numbers to this CSV file.")
    force: bool = in_output(False, "Replace the output if it exists.")

    def __post_init__(self) -> None:
        """Raise if options contradict each other, or the file cannot be written."""
        if self.json and self.format not in (None, "json"):
            raise _contradiction("--json", f"--format {self.format}")
        if self.csv is not None:
            check_target(self.csv, self.force, ".csv")
        elif self.force:
            step = "name a file with --csv, or leave out --force"
            raise _contradiction("--force", "no --csv", step)

    @property
    def chosen(self) -> str:
        """The format."""
        return "json" if self.json else self.format or "table"

    def check_plot(self, plot: bool | None) -> None:
        """Raise if a drawing is asked for in a format that has none."""
        if plot and self.chosen != "table":
            raise _contradiction("--plot", f"--format {self.chosen}")


@dataclass(frozen=True)
class Writing:
    """A file for a result, which is printed without one."""

    output: Path | None = in_output(None, "File to write.", "--output", "-o")
    force: bool = as_in(Printing, "force")

    def check(self, *endings: str) -> None:
        """Raise if the file cannot be written, or has another ending."""
        if self.output is not None:
            check_target(self.output, self.force, *endings)
