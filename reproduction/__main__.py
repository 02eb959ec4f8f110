"""The command line: ``python -m reproduction`` reruns the paper, ``... data`` lists its data.

Exit codes: 0 done; 2 bad usage or missing data; 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import textwrap
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isocost.atomic import write_text
from isocost.errors import FileError, IsocostError, Problem, UsageError
from isocost.tables import text_table
from reproduction.fetch import SOURCES, DataSource, cache_folder, find, locate, need_packages

# What trains and draws is imported where it is used: ``data`` needs none of it.
if TYPE_CHECKING:
    from reproduction.experiments import RunOptions
    from reproduction.rerun import Reproduction
    from reproduction.study import Experiment

MINUTES = {
    "income": (0.7, 1.0), "health": (0.03, 0.03), "recidivism": (0.3, 0.3),
    "german": (0.03, 0.03), "law": (0.1, 0.1), "taiwan": (0.2, 0.3),
}  # fmt: skip
"""For one split on two cores, quick and full: half of the processor time that parts took."""

OUTPUT = Path("build/reproduction")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        need_packages("pooch")
        if given[:1] == ["data"]:
            return _data(_data_arguments(given[1:]))
        need_packages("joblib", "pandas", "matplotlib", "cvxpy")
        return _run(_run_arguments(given))
    except IsocostError as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("reproduction: interrupted", file=sys.stderr)
        return 130


def _run_arguments(given: Sequence[str]) -> argparse.Namespace:
    from reproduction.study import EXPERIMENTS

    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Rerun the paper's experiments, draw its figures and check its claims.",
        epilog="python -m reproduction data --help: list and fetch the data.",
    )
    parser.add_argument("experiment", nargs="?", choices=["all", *EXPERIMENTS], default="all")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="the paper's procedure: all rows, grids")
    size.add_argument("--quick", action="store_true", help="small grids, fewer rows (default)")
    parser.add_argument(
        "--repeats", type=int, help="number of random splits (default: more where people are few)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the first split")
    parser.add_argument(
        "-o", "--output", type=Path, default=OUTPUT, help=f"folder to write to (default: {OUTPUT})"
    )
    parser.add_argument("--page", type=Path, help="Markdown page to write (default: in --output)")
    parser.add_argument("--data", type=Path, help="folder to look for data in")
    parser.add_argument("--jobs", type=int, help="number of processes (default: one per core)")
    parser.add_argument("--fresh", action="store_true", help="ignore models of earlier runs")
    return parser.parse_args(given)


def _run(arguments: argparse.Namespace) -> int:
    from reproduction import markdown_page
    from reproduction.experiments import RunOptions
    from reproduction.rerun import save
    from reproduction.study import EXPERIMENTS

    page = arguments.page or arguments.output / "reproduction.md"
    _check(arguments, page)
    chosen = list(EXPERIMENTS.values())
    if arguments.experiment != "all":
        chosen = [EXPERIMENTS[arguments.experiment]]
    options = RunOptions(
        full=arguments.full,
        repeats=arguments.repeats,
        seed=arguments.seed,
        data=arguments.data,
        cache=None if arguments.fresh else cache_folder() / "trained",
        report=_tell,
        **({} if arguments.jobs is None else {"jobs": arguments.jobs}),
    )
    _tell(_expected(chosen, options))
    done, left_out = _rerun(chosen, options)
    written = save(done, options, arguments.output)
    figures = markdown_page.relative(arguments.output, page)
    write_text(page, markdown_page.page(done, options, _command(arguments), figures))
    for one in done:
        print(f"{one.experiment.title}: the paper's claims\n{_verdicts(one)}\n")
    missing = (reason for one in done for reason in one.missing)
    for reason in dict.fromkeys([*left_out, *missing]):
        _tell(reason)
    print(f"{len(written)} files are in {arguments.output}; the page is {page}.")
    return 0


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _check(arguments: argparse.Namespace, page: Path) -> None:
    """Raise for anything that would fail only after hours of training."""
    from isocost.plots.display import require_matplotlib
    from reproduction.rerun import create_folder

    for name in ("repeats", "jobs"):
        number = getattr(arguments, name)
        if number is not None and number < 1:
            step = f"use --{name} 1, or omit it"
            raise UsageError(Problem(f"--{name}", "must be 1 or more", str(number), step))
    if arguments.seed < 0:
        raise UsageError(
            Problem("--seed", "must be 0 or more", str(arguments.seed), "use --seed 0")
        )
    if arguments.data is not None and not arguments.data.is_dir():
        step = "check the path, or omit it to search the cache and the network"
        raise FileError(Problem("--data", "must be a folder", str(arguments.data), step))
    if page.is_dir():
        step = f"name a file, such as {page / 'reproduction.md'}"
        raise FileError(Problem("--page", "must be a file", f"the folder {page}", step))
    require_matplotlib()
    create_folder(arguments.output)
    create_folder(page.parent, "--page")


def _expected(chosen: list[Experiment], options: RunOptions) -> str:
    minutes = sum(MINUTES[one.name][options.full] * len(options.seeds(one)) for one in chosen)
    names = ", ".join(one.name for one in chosen)
    text = f"Reproducing {names}: about {max(1, round(minutes))} min on two cores."
    if options.full:
        text += " Trained models are cached: an interrupted run resumes where it stopped."
    return text


def _rerun(chosen: list[Experiment], options: RunOptions) -> tuple[list[Reproduction], list[str]]:
    """The experiments whose data are available, and the reasons why others are left out."""
    from reproduction.rerun import reproduce

    done, left_out = [], []
    for experiment in chosen:
        try:
            done.append(reproduce(experiment, options))
        except FileError as error:
            if len(chosen) == 1:
                raise
            left_out.append(f"{experiment.title} was left out.\n{error}")
    return done, left_out


def _command(arguments: argparse.Namespace) -> str:
    words = ["python -m reproduction", *([arguments.experiment] * (arguments.experiment != "all"))]
    words.append("--full" if arguments.full else "--quick")
    words += [f"--repeats {arguments.repeats}"] if arguments.repeats is not None else []
    words += [f"--seed {arguments.seed}"] if arguments.seed else []
    paths = {"-o": arguments.output, "--page": arguments.page, "--data": arguments.data}
    words += [f"{o} {shlex.quote(p.as_posix())}" for o, p in paths.items() if p is not None]
    return " ".join([*words, "--fresh"] if arguments.fresh else words)


def _verdicts(one: Reproduction) -> str:
    """Each claim with its bar, and below it the verdict for each kind of scores."""
    from reproduction.markdown_page import by_claim, verdicts

    _, rows = verdicts(by_claim(one))
    scores, measured = (max(len(row[column]) for row in rows) for column in (1, 2))
    lines = []
    for (claim, needed), group in groupby(rows, key=lambda row: (row[0], row[3])):
        lines += textwrap.wrap(f"{claim} ({needed})", 80, subsequent_indent="    ")
        lines += [f"  {row[1]:<{scores}}  {row[2]:<{measured}}  {row[4]}" for row in group]
    return "\n".join(lines)


def _data_arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction data",
        description="List the data sets with rows, licence and location, and fetch them.",
    )
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(SOURCES)} (default: all)")
    parser.add_argument("--fetch", action="store_true", help="download those not yet available")
    parser.add_argument("--data", type=Path, help="folder to look in before the cache")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args(given)


def _data(arguments: argparse.Namespace) -> int:
    sources = [_known(name) for name in arguments.names or SOURCES]
    failures = _fetch(sources, arguments.data) if arguments.fetch else []
    described = [_describe(source, arguments.data) for source in sources]
    if arguments.json:
        print(json.dumps({"cache": str(cache_folder()), "datasets": described}, indent=2))
    else:
        _show(described, hint=not arguments.fetch)
    for failure in failures:
        print(f"reproduction: {failure}", file=sys.stderr)
    return 2 if failures else 0


def _known(name: str) -> DataSource:
    if name not in SOURCES:
        step = f"use {', '.join(SOURCES)}, or no name for all"
        raise UsageError(Problem("data", "must be a known data set", repr(name), step))
    return SOURCES[name]


def _fetch(sources: list[DataSource], data: Path | None) -> list[FileError]:
    """Fetch what is not there; return the first problem of each data set."""
    failures = []
    for source in sources:
        try:
            for file in source.files:
                locate(source, file, data)
        except FileError as failure:
            failures.append(failure)
    return failures


def _describe(source: DataSource, data: Path | None) -> dict[str, Any]:
    files = [_describe_file(source, file, data) for file in source.files]
    return {
        "name": source.name,
        "title": source.title,
        "rows": source.rows,
        "licence": source.licence,
        "citation": source.citation,
        "doi": source.doi,
        "page": source.page,
        "where": _where([file["where"] for file in files]),
        "files": files,
    }


def _describe_file(source: DataSource, file: str, data: Path | None) -> dict[str, Any]:
    described = {"name": file, "sha256": source.files[file], "path": None}
    try:
        location = find(source, file, data)
    except FileError as error:
        if error.problems[0].name == "data folder":
            raise
        return described | {"where": "not the published file"}
    if location is None:
        return described | {"where": "not yet"}
    return described | {"where": location.where, "path": str(location.path)}


def _where(of_files: list[str]) -> str:
    """One word if all files are in the same place, otherwise the number of files in each."""
    counts = {where: of_files.count(where) for where in sorted(set(of_files))}
    if len(counts) == 1:
        return of_files[0]
    return ", ".join(f"{count} {where}" for where, count in counts.items())


def _show(described: list[dict[str, Any]], hint: bool) -> None:
    header = ["data", "rows", "files", "licence", "where"]
    rows = [
        [one["name"], f"{one['rows']:,}", str(len(one["files"])), one["licence"], one["where"]]
        for one in described
    ]
    print(text_table(header, rows))
    for one in described:
        doi = f"doi {one['doi']}, " if one["doi"] else ""
        print(f"\n{one['name']}: {one['citation']}\n  {doi}{one['page']}")
        for folder in dict.fromkeys(str(Path(f["path"]).parent) for f in one["files"] if f["path"]):
            print(f"  in {folder}")
        if hint and "not yet" in one["where"]:
            print(f"  to fetch it: python -m reproduction data {one['name']} --fetch")


if __name__ == "__main__":
    sys.exit(main())
