"""isocost doctor: what is installed, what that gives, and what is missing."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import webbrowser
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path
from typing import Any

import typer

from isocost import __version__
from isocost.cli.options import other
from isocost.cli.output import Printer, print_json, say

GIVES = {
    "plot": "pictures with matplotlib: isocost.plots",
    "report": "the page: ic.report, isocost report",
    "excel": "Excel workbooks: ic.tally('data.xlsx')",
    "serve": "the local page: isocost serve",
    "spark": "frames of Spark; needs Java",
    "dask": "frames of dask",
    "mlflow": "audits in MLflow: isocost.mlflow",
}
"""The purpose of each extra; which packages it brings is read from the metadata."""

FRAMES = ("pandas", "polars", "pyarrow", "dask", "ibis-framework", "pyspark")
"""Libraries whose frames are read; any of them does."""


@dataclass(frozen=True)
class Package:
    """A package by the name that pip knows: its version here, the versions that isocost needs.

    The problem, if it cannot be used: missing, too old, or the error when it is imported.
    """

    name: str
    version: str | None
    needs: str
    problem: str | None


def requirements() -> dict[str | None, list[str]]:
    """The requirements in the metadata of isocost: by extra, and None for what is always needed."""
    requirements: dict[str | None, list[str]] = {None: []}
    for line in requires("isocost") or ():
        requirement, _, marker = line.partition(";")
        extra = re.search(r"""extra\s*==\s*['"]([^'"]+)['"]""", marker)
        requirements.setdefault(extra[1] if extra else None, []).append(requirement.strip())
    return requirements


def examined(requirement: str, *, load: bool = False) -> Package:
    """The state of a package that a requirement names; with ``load`` it is imported too.

    Examples
    --------
    >>> examined("numpy>=2.0").problem, examined("numpy>=1000").problem
    (None, 'too old')
    >>> examined("no-such-package[extra]>=1")
    Package(name='no-such-package', version=None, needs='>=1', problem='missing')
    """
    match = re.match(r"([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*(.*)", requirement)
    if match is None:
        raise AssertionError(f"not a requirement: {requirement}")
    name, needs = match[1], match[2].strip()
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Package(name, None, needs, "missing")
    # isocost sets no other bounds.
    bound = re.search(r">=\s*([\d.]+)", needs)
    if bound is not None and _release(installed) < _release(bound[1]):
        return Package(name, installed, needs, "too old")
    problem = None
    if load:
        own = _normal(name)
        modules = _modules().get(own, [own])
        try:
            import_module(own if own in modules else min(modules))
        except Exception as error:
            # A broken library may raise anything.
            problem = f"{type(error).__name__}: {error}"
    return Package(name, installed, needs, problem)


def _release(text: str) -> tuple[int, ...]:
    """The numbers of a version, without zeros at the end: 1.3.0 is 1.3."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


@cache
def _modules() -> dict[str, list[str]]:
    """The modules of each distribution that people import."""
    modules: dict[str, list[str]] = {}
    for module, names in packages_distributions().items():
        if module.isidentifier() and not module.startswith("_"):
            for name in names:
                modules.setdefault(_normal(name), []).append(module)
    return modules


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


def extra(name: str, asked: dict[str | None, list[str]]) -> dict[str, Any]:
    """The state of an extra, with the packages that cannot be used."""
    missing = [one.name for one in map(examined, _flat(name, asked)) if one.problem]
    return {
        "name": name,
        "gives": GIVES[name],
        "installed": not missing,
        "missing": missing,
        "install": f'pip install "isocost[{name}]"',
    }


def _flat(name: str, asked: dict[str | None, list[str]]) -> Iterator[str]:
    """The requirements of an extra; ``isocost[report]`` stands for those of report."""
    for requirement in asked.get(name, ()):
        own = re.fullmatch(r"isocost\[([^\]]*)\]", requirement)
        if own is None:
            yield requirement
        else:
            for other in own[1].split(","):
                yield from _flat(other.strip(), asked)


def java() -> dict[str, str | None]:
    """The path and version of Java, which Spark needs."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    path = path or shutil.which("java")
    if path is None:
        return {"path": None, "version": None}
    try:
        done = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return {"path": path, "version": None}
    number = re.search(r'version "([^"]+)"', done.stderr + done.stdout)
    return {"path": path, "version": number[1] if number else None}


def browser() -> str | None:
    """The browser that isocost serve would open."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return None
    return str(getattr(browser, "name", "") or type(browser).__name__)


def findings() -> dict[str, Any]:
    """All of it, as plain values for JSON."""
    asked = requirements()
    needed = [examined(requirement, load=True) for requirement in asked[None]]
    return {
        "isocost": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "required": [asdict(package) for package in needed],
        "extras": [extra(name, asked) for name in GIVES if name in asked],
        "frames": {name: examined(name).version for name in FRAMES},
        "java": java(),
        "browser": browser(),
        "broken": [package.name for package in needed if package.problem],
    }


def doctor(
    json_: bool = other(False, "Print it as JSON.", "--json"),
) -> None:
    """Say what is installed, what that gives, and the line that installs what is missing."""
    report = findings()
    if json_:
        print_json(report)
    else:
        _show(report)
    if report["broken"]:
        raise typer.Exit(2)


def _show(report: dict[str, Any]) -> None:
    out = Printer()
    say(f"isocost {report['isocost']}, Python {report['python']}, {report['platform']}\n")
    needs = [
        [one["name"], one["version"] or "-", one["needs"], one["problem"] or "ok"]
        for one in report["required"]
    ]
    extras = [
        [one["name"], "yes" if one["installed"] else "no", one["gives"]] for one in report["extras"]
    ]
    out.table("What isocost needs", ["package", "version", "needs", ""], needs)
    say()
    out.table("Extras", ["extra", "installed", "gives"], extras)
    frames = report["frames"]
    there = [f"{name} {number}" for name, number in frames.items() if number]
    out.prose(f"\nFrames: {', '.join(there) or 'none; dicts of arrays and files are read'}.")
    at = report["java"]
    where = f"{at['version'] or 'of unknown version'} ({at['path']})" if at["path"] else "not found"
    out.prose(f"Java: {where}; Spark needs it.")
    out.prose(
        f"Browser: {report['browser'] or 'not found; isocost serve prints the address to open'}."
    )
    absent = [one["name"] for one in report["extras"] if not one["installed"]]
    if absent:
        say(f'\nTo add what is missing: pip install "isocost[{",".join(absent)}]"')
    if report["broken"]:
        say(f"\nBroken: {', '.join(report['broken'])}. To fix it: pip install --upgrade isocost")
    else:
        say("\nEverything isocost needs is there.")
