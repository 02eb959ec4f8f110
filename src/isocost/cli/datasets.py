"""isocost datasets: what data the experiments need, where they are, and under which licence."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated, Any

import typer

from isocost.cli import options
from isocost.cli.output import complain, prose, say, show_table
from isocost.errors import FileError, Problem, UsageError
from isocost.experiments.catalogue import SOURCES, Item, Source
from isocost.experiments.sources import cache_folder, find, locate

__all__ = ["datasets"]


def datasets(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Which: {', '.join(SOURCES)}. All if none is named.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder with data of yours, before ISOCOST_DATA.")
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Obtain those that are not here and can be had.")
    ] = False,
    json: options.Json = False,
) -> None:
    """List the data of the paper's experiments: rows, licence, where they are; fetch them."""
    sources = [_known(name) for name in names or SOURCES]
    failures = _fetch(sources, data) if fetch else []
    described = [_describe(source, data) for source in sources]
    if json:
        say(json_text.dumps({"cache": str(cache_folder()), "datasets": described}, indent=2))
    else:
        _show(described, hint=not fetch)
    for failure in failures:
        complain(failure, 2)
    if failures:
        raise typer.Exit(2)


def _known(name: str) -> Source:
    if name not in SOURCES:
        step = f"name one of {', '.join(SOURCES)}, or none for all"
        raise UsageError(Problem("dataset", "must be one that isocost knows", repr(name), step))
    return SOURCES[name]


def _fetch(sources: list[Source], data: Path | None) -> list[FileError]:
    """Obtain what can be had; the first problem of each data set."""
    failures = []
    for source in sources:
        try:
            for item in source.items if source.fetchable else ():
                locate(item, data)
        except FileError as failure:
            failures.append(failure)
    return failures


def _describe(source: Source, data: Path | None) -> dict[str, Any]:
    files = [_describe_file(item, data) for item in source.items]
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


def _describe_file(item: Item, data: Path | None) -> dict[str, Any]:
    path = None
    try:
        found = find(item, data)
        where, path = (found.place, str(found.path)) if found else ("not yet", None)
    except FileError as error:
        if error.problems[0].name == "data folder":
            raise
        where = "not the published file"
    return {
        "name": item.name,
        "bytes": item.bytes,
        "sha256": item.sha256,
        "where": where,
        "path": path,
    }


def _where(places: list[str]) -> str:
    """One word for all files of a data set; otherwise how many are where."""
    counts = {place: places.count(place) for place in sorted(set(places))}
    if len(counts) == 1:
        return places[0]
    return ", ".join(f"{count} {place}" for place, count in counts.items())


def _show(described: list[dict[str, Any]], hint: bool) -> None:
    header = ["data", "rows", "files", "licence", "where"]
    rows = [
        [one["name"], f"{one['rows']:,}", str(len(one["files"])), one["licence"], one["where"]]
        for one in described
    ]
    show_table("Data of the paper's experiments", header, rows)
    for one in described:
        doi = f"doi {one['doi']}, " if one["doi"] else ""
        prose(f"\n{one['name']}: {one['citation']}\n  {doi}{one['page']}", piped=False)
        folders = dict.fromkeys(str(Path(f["path"]).parent) for f in one["files"] if f["path"])
        for folder in folders:
            say(f"  in {folder}")
        if hint and "not yet" in one["where"]:
            say(f"  {_how(SOURCES[one['name']])}")


def _how(source: Source) -> str:
    if source.fetchable:
        return f"to fetch it: isocost datasets {source.name} --fetch"
    return "to supply it: put the files into a folder and name that, ISOCOST_DATA or --data"
